"""The contacts that a mechanism can be given: stops, slack ropes, points and balls on lines and planes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from holonome.arguments import checked
from holonome.bodies.body import Numbers
from holonome.bodies.parts import Parts
from holonome.bodies.unilateral import SlackRope, Stop, Touch, Unilateral
from holonome.errors import ModelError


class AddingContacts(Parts):
    """The methods of a mechanism that add contacts."""

    def stops(
        self,
        joint: Any,
        lower: Numbers | None = None,
        upper: Numbers | None = None,
        *,
        restitution: Numbers = 0.0,
        coordinate: str | None = None,
        hypothesis: str = "newton",
    ) -> list[Unilateral]:
        """Keep an angle or displacement of a joint within limits.  The contacts are called after the joint,
        such as "A lower" and "A upper".

        Parameters
        ----------
        joint : Joint or name
            The joint.
        lower, upper : number
            The limits, one or both; of a joint that closes a loop, angles are those between −π and π.
        restitution : number
            Ratio of the speeds after and before an impact.
        coordinate : str
            Of a joint with several coordinates, which.
        hypothesis : "newton" or "poisson"
            As of :class:`holonome.Contact`.
        """
        found, which = self._coordinate("stops", joint, coordinate)
        law = self._contact_law(f"{found.name} stops", restitution, 0.0, None, hypothesis)
        if lower is not None and upper is not None:
            room = self._scalar(f"{found.name} upper", upper) - self._scalar(f"{found.name} lower", lower)
            self._limited(f"{found.name} upper less lower", room, lambda x: x > 0, "lower below upper")
        added = []
        for side, sign, value in (("lower", 1.0, lower), ("upper", -1.0, upper)):
            if value is not None:
                limit = self._scalar(f"{found.name} {side}", value)
                of = found.coordinates[which].name if len(found.coordinates) > 1 else ""
                name = " ".join(part for part in (found.name, of, side) if part)
                added.append(self._add_contact(Stop(name, found, which, sign, limit, *law)))
        if not added:
            raise ModelError(f"{found.name}: stops without lower= and upper=; give one of them, or both")
        return added

    def slack_rope(
        self,
        name: str,
        points: Sequence[Any],
        length: Numbers,
        *,
        restitution: Numbers = 0.0,
        hypothesis: str = "newton",
    ) -> Unilateral:
        """A rope from point to point, over pulleys too small to matter, that pulls where it is taut and else
        hangs loose.  A jerk when it becomes taut is an impact.
        """
        found = self._points_of_rope(name, points)
        law = self._contact_law(name, restitution, 0.0, None, hypothesis)
        return self._add_contact(SlackRope(name, found, self._positive(f"{name}.length", length), *law))

    def touch(
        self,
        name: str,
        a: Any,
        b: Any,
        *,
        radius: Numbers = 0.0,
        restitution: Numbers = 0.0,
        friction: Numbers = 0.0,
        static_friction: Numbers | None = None,
        hypothesis: str = "newton",
    ) -> Unilateral:
        """A point or ball b that stays on the upper side of a line or plane, may bounce, slide, stick and
        lift; :meth:`contact` is the soft alternative.

        Parameters
        ----------
        name : str
            What it is called.
        a : Point
            A point of the line (its x-axis) or plane (its x-y-plane).
        b : Point
            The point, or the centre of the ball.
        radius : number
            Of the ball; 0 for a point.
        restitution, friction, static_friction, hypothesis
            As of :class:`holonome.Contact`.
        """
        law = self._contact_law(name, restitution, friction, static_friction, hypothesis)
        ends = self._ends(name, a, b)
        return self._add_contact(Touch(name, *ends, self._not_negative(f"{name}.radius", radius), *law))

    def _contact_law(
        self, name: str, restitution: Any, friction: Any, static: Any, hypothesis: Any
    ) -> tuple[ca.SX, ca.SX, ca.SX, str]:
        e = self._scalar(f"{name}.restitution", restitution)
        mu = self._scalar(f"{name}.friction", friction)
        sticking = mu if static is None else self._scalar(f"{name}.static_friction", static)
        for what, value, most in (("restitution", e, 1.0), ("friction", mu, ca.inf)):
            if value.is_constant() and not 0 <= float(value) <= most:
                limits = "from 0 to 1" if most == 1 else "that is not negative"
                raise ModelError(f"{name}.{what}: {float(value):g}; give a number {limits}")
        return e, mu, sticking, checked("hypothesis", hypothesis, ModelError)

    def _add_contact(self, contact: Unilateral) -> Unilateral:
        self._new(contact.name)
        self.contacts[contact.name] = contact
        return contact

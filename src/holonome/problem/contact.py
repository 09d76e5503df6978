"""Unilateral constraints: distances that may not become negative, with impacts and dry friction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import NUMBERS, check_fields, read, shown
from holonome.errors import ModelError
from holonome.problem.parameters import Parameters
from holonome.problem.user_function import UserFunction

FUNCTIONS = ("gap", "slip", "restitution", "friction", "static_friction")
"""What a contact is made of, by the names of its roles."""


@dataclass(frozen=True)
class Contact:
    """A distance that must not become negative: a stop of a joint, a floor, a rope.

    While the gap is open nothing happens.  Where it closes there is an impact; a contact that stays closed
    pushes, never pulls, and opens where it would have to pull.

    Parameters
    ----------
    gap : callable(t, q, p)
        The distance, a number; where it is open it is positive.
    slip : callable(t, q, v, p), optional
        For friction: the velocity along the contact, linear in v, one number in the plane and two in space.
    restitution : number or callable(p)
        Ratio of the speeds after and before an impact, 0 to 1.
    friction : number or callable(p)
        Coefficient of Coulomb friction while it slides.
    static_friction : number or callable(p), optional
        The same while it sticks; by default that of sliding.
    hypothesis : "newton" or "poisson"
        What restitution relates: velocities, or the impulses of compression and expansion.
    name : str
        For messages and results.

    Examples
    --------
    A ball that is dropped comes to rest after an infinite number of bounces, in a finite time:

    >>> import numpy as np, holonome as hn
    >>> floor = hn.Contact(lambda q: q[0], restitution=0.5, name="floor")
    >>> ball = hn.System(1.0, [-9.81], names=["height"], contacts=[floor])
    >>> sol = hn.solve(ball, (0, 2), [1.0])
    >>> at_rest = 3 * np.sqrt(2 / 9.81)
    >>> bool(abs(sol.impacts.t[-1] - at_rest) < 1e-6), sol.contact("floor").force[[0, -1]].tolist()
    (True, [0.0, 9.81])
    """

    gap: Callable
    slip: Callable | None = None
    restitution: Any = 0.0
    friction: Any = 0.0
    static_friction: Any = None
    hypothesis: str = "newton"
    name: str = ""

    def __post_init__(self) -> None:
        for part in ("gap", "slip"):
            given = getattr(self, part)
            if not callable(given) and (part == "gap" or given is not None):
                raise ModelError(f"{part}: {shown(given)} is not callable; give a function of t, q, p")
        for part in ("restitution", "friction", "static_friction"):
            given = getattr(self, part)
            if not callable(given) and (part != "static_friction" or given is not None):
                value = read(NUMBERS, part, given, ModelError)
                if value.ndim or not 0 <= value <= (1 if part == "restitution" else np.inf):
                    range_ = "from 0 to 1" if part == "restitution" else "that is not negative"
                    raise ModelError(f"{part}: {shown(given)}; give a number {range_}")
        if self.slip is None and (
            callable(self.friction) or self.friction or self.static_friction is not None
        ):
            raise ModelError(
                "friction: it needs slip=, the velocity along the contact; give a function of q, v"
            )
        check_fields(self, ModelError)


@dataclass(frozen=True)
class ContactPlan:
    """The contacts of a system: their names and laws; their functions are among those of the system."""

    names: tuple[str, ...]
    hypotheses: tuple[str, ...]
    directions: tuple[int, ...]
    """Numbers of slip velocities."""

    def __len__(self) -> int:
        return len(self.names)

    def __bool__(self) -> bool:
        return bool(self.names)


def as_contacts(contacts: Any) -> list[Contact]:
    """Contacts from what the user gave, one or many, all of them with names."""
    if contacts is None:
        return []
    if isinstance(contacts, Contact):
        contacts = [contacts]
    if not isinstance(contacts, list | tuple) or not all(isinstance(one, Contact) for one in contacts):
        raise ModelError(f"contacts: {shown(contacts)}; give an hn.Contact or a list of them")
    names = [contact.name or f"contact[{i}]" for i, contact in enumerate(contacts)]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise ModelError(f"contacts: two of them are called {twice[0]!r}; give each a name of its own")
    return list(contacts)


def functions(contacts: list[Contact], n: int, parameters: Parameters) -> dict[str, UserFunction]:
    """What the user gave for each contact, by role."""
    found = {}
    for i, contact in enumerate(contacts):
        for part in FUNCTIONS:
            given = getattr(contact, part)
            if given is not None:
                role = f"contacts[{i}].{part}"
                found[role] = UserFunction(role, given, n, parameters)
    return found


def plan_of(contacts: list[Contact], expressions: Mapping[str, ca.SX], v: ca.SX) -> ContactPlan:
    """The contacts of a system whose functions have been traced."""
    for i in range(len(contacts)):
        slip = expressions.get(f"contacts[{i}].slip", ca.SX(0, 1))
        if ca.depends_on(ca.jacobian(slip, v), v):
            raise ModelError(
                f"contacts[{i}].slip: it is not linear in v; give the velocity along the contact"
            )
    return ContactPlan(
        tuple(contact.name or f"contact[{i}]" for i, contact in enumerate(contacts)),
        tuple(contact.hypothesis for contact in contacts),
        tuple(expressions.get(f"contacts[{i}].slip", ca.SX(0, 1)).numel() for i in range(len(contacts))),
    )


def rebuilt(parts: Mapping[str, Callable], plans: ContactPlan | None) -> list[Contact] | None:
    """Contacts from their parts by role, as they come back from a pickle or a file."""
    if not plans:
        if parts:
            raise ModelError("contacts: functions without names")
        return None
    found = []
    known = {f"contacts[{i}].{part}" for i in range(len(plans)) for part in FUNCTIONS}
    if not set(parts) <= known or not all(f"contacts[{i}].gap" in parts for i in range(len(plans))):
        raise ModelError("contacts: their functions do not fit their names")
    for i, (name, hypothesis) in enumerate(zip(plans.names, plans.hypotheses, strict=True)):
        given = {
            part: parts[f"contacts[{i}].{part}"] for part in FUNCTIONS if f"contacts[{i}].{part}" in parts
        }
        if "slip" not in given:
            given = {part: given[part] for part in ("gap", "restitution")}
        found.append(Contact(**given, hypothesis=hypothesis, name=name))
    return found

"""The parts of a mechanism by name, and how arguments that mean parts are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import checked, shown
from holonome.bodies.body import Body, Numbers, Point, new_ground, require_physical, vector
from holonome.bodies.coupling import Coupling
from holonome.bodies.geometry import symbolic
from holonome.bodies.joint import QUATERNION, Joint
from holonome.bodies.law import TracedLaw
from holonome.bodies.load import Load
from holonome.bodies.unilateral import Unilateral
from holonome.errors import ModelError
from holonome.problem.parameters import Parameters
from holonome.tracing import Watched


class Parts:
    """Bodies, joints, couplings and forces by name; base class of a mechanism."""

    def __init__(
        self,
        name: str,
        gravity: Numbers,
        parameters: Mapping[str, Any] | None,
        inputs: Mapping[str, Any] | None,
    ) -> None:
        self.name = checked("name", name, ModelError)
        self.parameters = Parameters(parameters, inputs)
        self._p = ca.SX.sym("p", self.parameters.size)
        self.p = self.parameters.namespace(self._p)
        self.u = self.parameters.namespace(self._p, "u")
        size = np.size(np.asarray(gravity, dtype=object))
        if size not in (2, 3):
            raise ModelError(
                f"gravity: {shown(gravity)}; give two numbers for a mechanism in the plane, three for one in "
                "space"
            )
        self.dimension = int(size)
        self.gravity = vector("gravity", gravity, self.dimension)
        self.ground = new_ground(self.dimension)
        self.bodies: dict[str, Body] = {"ground": self.ground}
        self.joints: dict[str, Joint] = {}
        self.forces: dict[str, Load] = {}
        self.couplings: dict[str, Coupling] = {}
        self.contacts: dict[str, Unilateral] = {}
        self._limits: list[tuple[str, ca.SX, Callable[[float], bool], str]] = []
        self._captured: list[tuple[str, tuple[Watched, ...]]] = []
        self._made: dict[str, Any] = {}

    def _new(self, name: Any) -> None:
        """A name that no part has yet."""
        if not isinstance(name, str) or not name:
            raise ModelError(f"name: {shown(name)}; give a string that is not empty")
        for what, there in (
            ("body", self.bodies),
            ("joint", self.joints),
            ("force", self.forces),
            ("coupling", self.couplings),
            ("contact", self.contacts),
        ):
            if name in there:
                raise ModelError(
                    f"{name}: there is a {what} of this name already; give each part a name of its own"
                )
        self._made.clear()

    def _ends(self, name: str, a: Any, b: Any) -> tuple[Point, Point]:
        first, second = self._point(name, a), self._point(name, b)
        if first.body is second.body:
            raise ModelError(f"{name}: both of its points are on {first.body.name!r}; connect two bodies")
        return first, second

    def _points_of_rope(self, name: str, points: Any) -> list[Point]:
        if not isinstance(points, (list, tuple)):
            raise ModelError(f"{name}.points: {shown(points)}; give a list of points")
        found = [self._point(name, point) for point in points]
        if len(found) < 2:
            raise ModelError(f"{name}.points: {len(found)} given; a rope needs at least two")
        if all(point.body is found[0].body for point in found):
            raise ModelError(f"{name}: all of its points are on {found[0].body.name!r}; connect two bodies")
        return found

    def _point(self, name: str, point: Any) -> Point:
        if isinstance(point, Body):
            point = point.points.get(point.name) if not point.rotates else Point(point, "origin", ca.SX(3, 1))
        if not isinstance(point, Point):
            raise ModelError(
                f"{name}: {shown(point)} is no point; give one such as crank['B'] or ground.at(…)"
            )
        if self.bodies.get(point.body.name) is not point.body:
            raise ModelError(f"{name}: {point.body.name!r} is a body of another mechanism")
        self._require_own(name, point.position)
        return point

    def _body(self, name: str, body: Any) -> Body:
        found = self.bodies.get(body) if isinstance(body, str) else body
        if not isinstance(found, Body) or self.bodies.get(found.name) is not found or found.ground:
            there = ", ".join(key for key in self.bodies if key != "ground") or "none"
            raise ModelError(f"{name}: there is no body {shown(body)}; there are {there}")
        return found

    def _joint(self, name: str, joint: Any) -> Joint:
        found = self.joints.get(joint) if isinstance(joint, str) else joint
        if not isinstance(found, Joint) or self.joints.get(found.name) is not found:
            there = ", ".join(self.joints) or "none"
            raise ModelError(f"{name}: there is no joint {shown(joint)}; there are {there}")
        return found

    def _coordinate(self, name: str, joint: Any, coordinate: str | None) -> tuple[Joint, int]:
        """A joint and the number of one of its coordinates."""
        found = self._joint(name, joint)
        names = [c.name for c in found.coordinates if c.kind != QUATERNION]
        if coordinate is None and len(names) == 1:
            coordinate = names[0]
        if coordinate not in names:
            there = ", ".join(names) or "none"
            raise ModelError(
                f"{name}: joint {found.name!r} has the coordinates {there}; "
                + (f"say coordinate={names[0]!r}, for example" if names else "use another joint, or body=")
            )
        return found, names.index(coordinate)

    def _law(
        self, role: str, law: Any, arguments: Mapping[str, tuple[int, ...]], size: int | None
    ) -> TracedLaw:
        if law is None:
            raise ModelError(
                f"{role}: missing; give a number or a function of {', '.join([*arguments, 'p'])}"
            )
        found = TracedLaw(role, law, arguments, size, self.parameters, self._p)
        if found.captured:
            self._captured.append((role, found.captured))
        return found

    def _positive(self, role: str, value: Any) -> ca.SX:
        return self._limited(role, value, lambda x: x > 0, "a positive number")

    def _not_negative(self, role: str, value: Any) -> ca.SX:
        return self._limited(role, value, lambda x: x >= 0, "a number that is not negative")

    def _not_zero(self, role: str, value: Any) -> ca.SX:
        return self._limited(role, value, lambda x: x != 0, "a number other than zero")

    def _limited(self, role: str, value: Any, fits: Callable[[float], bool], expected: str) -> ca.SX:
        """A number that makes sense, if it has parameters with their first values."""
        column = self._scalar(role, value)
        self._require_own(role, column)
        number = float(ca.Function("number", [self._p], [column])(self.parameters.flat))
        _require(role, number, fits, expected)
        if not column.is_constant():
            self._limits.append((role, column, fits, expected))
        return column

    def _require_own(self, role: str, *values: ca.SX) -> None:
        """ModelError if values depend on parameters of another mechanism."""
        for x in (x for value in values for x in ca.symvar(value)):
            if not ca.depends_on(self._p, x):
                raise ModelError(f"{role}: depends on a parameter of another mechanism; use m.p of this one")

    def require_sense(self, p: np.ndarray) -> None:
        """ModelError if values of parameters make no sense, such as a negative mass."""
        bodies = [body for body in self.bodies.values() if not body.inertia.is_constant()]
        if not self._limits and not bodies:
            return
        if "limits" not in self._made:
            columns = [column for _, column, _, _ in self._limits]
            tensors = [ca.densify(body.inertia) for body in bodies]
            self._made["limits"] = ca.Function("limits", [self._p], [ca.vertcat(*columns), *tensors])
        numbers, *found = self._made["limits"].call([p])
        for (role, _, fits, expected), number in zip(self._limits, np.array(numbers).ravel(), strict=True):
            _require(role, float(number), fits, expected)
        for body, tensor in zip(bodies, found, strict=True):
            require_physical(body.name, np.array(tensor), self.dimension)

    def _scalar(self, role: str, value: Any) -> ca.SX:
        found = self._law(role, value, {}, 1) if callable(value) else value
        try:
            column = found({}) if isinstance(found, TracedLaw) else symbolic(found)
            if column.numel() != 1 or (column.is_constant() and not np.isfinite(float(column))):
                raise ValueError
        except ModelError:
            raise
        except Exception:
            raise ModelError(f"{role}: {shown(value)}; give a finite number") from None
        return column


def _require(role: str, number: float, fits: Callable[[float], bool], expected: str) -> None:
    if not fits(number):
        raise ModelError(f"{role}: {number:g}; give {expected}")

"""The joints, drives and transmissions that a mechanism can be given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import casadi as ca
import numpy as np

from holonome.arguments import real_array, shown
from holonome.bodies.body import Numbers, Point
from holonome.bodies.contact import OnGuide, Rolling
from holonome.bodies.coupling import Coupling
from holonome.bodies.geometry import Frame, frame_along
from holonome.bodies.joint import IN_THE_PLANE, Distance, Joint, LowerPair, Screw
from holonome.bodies.parts import Parts
from holonome.bodies.rope import Rope
from holonome.errors import ModelError


class AddingJoints(Parts):
    """The methods of a mechanism that add joints."""

    def fixed(self, name: str, a: Any, b: Any) -> Joint:
        """Fix two bodies to each other, at two points and in the axes of these."""
        return self._lower_pair(name, "fixed", a, b, None)

    def revolute(self, name: str, a: Any, b: Any, axis: Any = None) -> Joint:
        """A hinge.

        Parameters
        ----------
        name : str
            What it is called; its coordinate is the angle by which b is turned against a.
        a, b : Point
            The two points, which coincide.
        axis : three numbers, or two such triples
            In space: the axis, in the axes of both points, or in those of a and of b; z by default.
        """
        return self._lower_pair(name, "revolute", a, b, axis)

    def prismatic(self, name: str, a: Any, b: Any, axis: Any = None) -> Joint:
        """A slide: b moves along an axis through a, without turning.  ``axis`` as for :meth:`revolute`, in
        the plane two numbers; x by default in the plane, z in space.
        """
        return self._lower_pair(name, "prismatic", a, b, axis)

    def cylindrical(self, name: str, a: Any, b: Any, axis: Any = None) -> Joint:
        """b slides along an axis through a and turns about it; ``axis`` as for :meth:`revolute`."""
        return self._lower_pair(name, "cylindrical", a, b, axis)

    def spherical(self, name: str, a: Any, b: Any) -> Joint:
        """A ball joint."""
        return self._lower_pair(name, "spherical", a, b, None)

    def universal(self, name: str, a: Any, b: Any, axes: Any = ((1, 0, 0), (0, 1, 0))) -> Joint:
        """A Cardan joint: it turns about one axis that is fixed in a, and one that is fixed in b, at right
        angles.
        """
        self._require_space(name, "universal")
        first, second = map(frame_along, self._pair_of_axes(f"{name}.axes", axes))
        turns = (
            first[:, [2, 0, 1]],
            second[:, [1, 2, 0]],
        )  # the cross has x along the first, y along the second
        return self._add_joint(LowerPair(name, "universal", *self._ends(name, a, b), turns))

    def planar(self, name: str, a: Any, b: Any, axis: Any = None) -> Joint:
        """b moves in a plane through a with this normal, and turns about the normal."""
        return self._lower_pair(name, "planar", a, b, axis)

    def screw(self, name: str, a: Any, b: Any, lead: Numbers, axis: Any = None) -> Joint:
        """A nut on a thread: b advances by ``lead`` for each turn about the axis."""
        self._require_space(name, "screw")
        turns = self._turns(f"{name}.axis", "screw", axis)
        return self._add_joint(
            Screw(name, *self._ends(name, a, b), turns, self._not_zero(f"{name}.lead", lead))
        )

    def limit(self, joint: Any, *rows: str) -> None:
        """Reduce a joint that closes a loop to some of its rows, named as ``print(m)`` and messages do, such
        as "x", "y" or "axis x": the others follow from the rest of the mechanism, or shall not hold.
        """
        found = self._joint("limit", joint)
        if found.only is not None:
            raise ModelError(f"{found.name}: it is limited already")
        points = [Frame.symbols() for _ in found.points]
        names = [row.name for row in (*found.rows(*points), *found.velocity_rows(*points))]
        unknown = [row for row in rows if row not in names]
        if unknown or not rows:
            raise ModelError(
                f"{found.name}: {shown(unknown[0]) if unknown else 'no row'} given; its rows are "
                f"{', '.join(names)}"
            )
        found.only = rows
        self._made.clear()

    def free(self, body: Any) -> Joint:
        """Say that a body moves freely in the frame; it needs no joint then."""
        found = self._body("free", body)
        name = f"{found.name} free"
        joint = LowerPair(name, "free", self.ground.points["origin"], Point(found, "origin", ca.SX(3, 1)))
        return self._add_joint(joint)

    def distance(self, name: str, a: Any, b: Any, length: Numbers) -> Joint:
        """A massless rod with a ball joint at each end."""
        meeting = "" if self.dimension == 2 else ", or use m.spherical where the points coincide"
        size = self._limited(f"{name}.length", length, lambda x: x > 0, f"a positive number{meeting}")
        return self._add_joint(Distance(name, *self._ends(name, a, b), size))

    def rope(
        self,
        name: str,
        points: Sequence[Any],
        length: Numbers,
        radii: Sequence[Numbers] | None = None,
        slips: bool | None = None,
    ) -> Joint:
        """A rope from point to point, which stays taut.

        Parameters
        ----------
        name : str
            What it is called.
        points : list of Point
            Its ends, and between them the centres of pulleys.
        length : number
            Its length, with what lies on pulleys.
        radii : list of numbers, optional
            In the plane: of the pulleys, positive where the rope goes round counterclockwise, negative where
            clockwise, zero where a pulley is too small to matter, as without radii all are.  It goes round by
            more than −45° and less than 315°.
        slips : bool
            True for a rope that slides over its pulleys, False, with radii, for one that turns them.

        Examples
        --------
        Atwood's machine with a heavy pulley: a = (m₂ − m₁) g / (m₁ + m₂ + J / r²).

        >>> import math
        >>> import holonome as hn
        >>> m = hn.Mechanism("Atwood")
        >>> pulley = m.body("pulley", mass=1.0, inertia=0.02)
        >>> _ = m.revolute("axle", m.ground.at(0, 2), pulley)
        >>> light, heavy = m.point_mass("light", 1.0), m.point_mass("heavy", 2.0)
        >>> _ = m.prismatic("left", m.ground.at(-0.2, 0), light, axis=(0, 1))
        >>> _ = m.prismatic("right", m.ground.at(0.2, 0), heavy, axis=(0, 1))
        >>> _ = m.rope("rope", [light, pulley, heavy], 2 + 0.2 * math.pi, radii=[-0.2])
        >>> sol = hn.solve(m, (0, 0.5), start={"left": 1.0})
        >>> sol.body("heavy").acceleration[1, 0].round(9).item(), round(-9.81 / (1 + 2 + 0.02 / 0.2**2), 9)
        (-2.802857143, -2.802857143)
        """
        found = self._points_of_rope(name, points)
        size = self._positive(f"{name}.length", length)
        if radii is None:
            if slips is not None:
                raise ModelError(f"{name}.slips: without radii there is nothing to turn; leave it out")
            return self._add_joint(Rope(name, found, size))
        if self.dimension == 3:
            raise ModelError(
                f"{name}.radii: ropes over pulleys with a radius are for the plane; leave them out"
            )
        if not isinstance(radii, (list, tuple, np.ndarray)) or len(radii) != len(found) - 2 or not len(radii):
            raise ModelError(
                f"{name}.radii: {shown(radii)}; give a number for each of the {len(found) - 2} points "
                "between the ends"
            )
        sizes = [self._scalar(f"{name}.radii", radius) for radius in radii]
        self._require_own(f"{name}.radii", *sizes)
        slips = False if slips is None else slips
        if not isinstance(slips, bool):
            raise ModelError(f"{name}.slips: {shown(slips)}; give True or False")
        for point, radius in zip(found[1:-1], sizes, strict=True):
            if not slips and not radius.is_zero() and (point.body.ground or not point.body.rotates):
                raise ModelError(
                    f"{name}: {point.body.name!r} cannot turn with the rope; give its pulley a body on an "
                    "axle, or slips=True"
                )
        return self._add_joint(Rope(name, found, size, sizes, slips))

    def point_on(self, name: str, a: Any, b: Any, guide: Callable) -> Joint:
        """Point b stays on a curve or surface of a's body, such as a cam or a track.

        Parameters
        ----------
        name : str
            What it is called.
        a, b : Point
            The point in whose axes the curve is given, and the one that stays on it.
        guide : callable(x, p)
            Zero on the curve (in the plane) or surface (in space), for coordinates x in the axes of a; two
            functions, as an array, make a curve in space.
        """
        ends = self._ends(name, a, b)
        law = self._law(f"{name}.guide", guide, {"x": (self.dimension,)}, None)
        if not 1 <= law.size < self.dimension:
            raise ModelError(f"{name}.guide: gives {law.size} numbers; give fewer than {self.dimension}")
        x = ca.SX.sym("x", self.dimension)
        if not ca.depends_on(law({"x": x}), x):
            raise ModelError(f"{name}.guide: does not depend on x; give a function that is zero on the curve")
        return self._add_joint(OnGuide(name, *ends, lambda x: law({"x": x})))

    def rolling(
        self,
        name: str,
        a: Any,
        b: Any,
        radius: Numbers,
        kind: Literal["wheel", "disc", "ball"] | None = None,
        axis: Any = None,
    ) -> Joint:
        """A wheel with its centre in b rolls without slipping on the ground of a.

        Parameters
        ----------
        name : str
            What it is called.
        a : Point
            In the plane a point of the line, which is its x-axis; in space one of the plane, which is its
            x-y-plane.
        b : Point
            The centre.
        radius : number
            Its radius.
        kind : "disc" or "ball"
            In space: a disc of no thickness, or a ball.
        axis : three numbers
            The axis of a disc, in the axes of b; z by default.
        """
        kind = kind or ("wheel" if self.dimension == 2 else "disc")
        fits = ("wheel",) if self.dimension == 2 else ("disc", "ball")
        if kind not in fits:
            raise ModelError(f"{name}.kind: {shown(kind)}; give {' or '.join(map(repr, fits))}")
        if axis is not None and kind != "disc":
            raise ModelError(f"{name}.axis: a {kind} needs none; leave it out")
        ends = self._ends(name, a, b)
        along = np.array([0.0, 0.0, 1.0]) if axis is None else self._axis(f"{name}.axis", axis, 3)
        turns = (np.eye(3), frame_along(along))
        return self._add_joint(Rolling(name, kind, *ends, turns, self._positive(f"{name}.radius", radius)))

    def drive(self, name: str, joint: Any, law: Any, coordinate: str | None = None) -> Coupling:
        """Prescribe an angle or a displacement of a joint as a function of t and p."""
        found, which = self._coordinate(name, joint, coordinate)
        value = self._law(f"{name}.law", law, {"t": ()}, 1)
        return self._add_coupling(Coupling(name, "drive", [(found, which, ca.SX(1))], value))

    def gear(self, name: str, joints: Sequence[Any], ratio: Numbers, phase: Numbers = 0.0) -> Coupling:
        """Couple two joints: second = ratio · first + phase.

        Angles or displacements: gears and belts have the ratio of radii, negative for outer teeth or a
        crossed belt; a rack and its pinion have the pinion's radius.
        """
        if not isinstance(joints, (list, tuple)) or len(joints) != 2:
            raise ModelError(f"{name}.joints: {shown(joints)}; give two joints")
        (first, i), (second, j) = (self._coordinate(name, joint, None) for joint in joints)
        value = self._law(f"{name}.phase", phase, {"t": ()}, 1)
        if first is second:
            raise ModelError(f"{name}.joints: {first.name!r} twice; give two joints")
        ratio = self._not_zero(f"{name}.ratio", ratio)
        return self._add_coupling(Coupling(name, "gear", [(second, j, ca.SX(1)), (first, i, -ratio)], value))

    def rack(self, name: str, pinion: Any, rack: Any, radius: Numbers, phase: Numbers = 0.0) -> Coupling:
        """A rack and pinion: displacement = radius · angle + phase."""
        self._not_zero(f"{name}.radius", radius)
        coupling = self.gear(name, [pinion, rack], radius, phase)
        coupling.what = "rack"
        return coupling

    def belt(
        self, name: str, joints: Sequence[Any], radii: Sequence[Numbers], crossed: bool = False
    ) -> Coupling:
        """A belt over two pulleys, which does not slip."""
        if not isinstance(radii, (list, tuple, np.ndarray)) or len(radii) != 2:
            raise ModelError(f"{name}.radii: {shown(radii)}; give two numbers, one for each pulley")
        first, second = (self._positive(f"{name}.radii", radius) for radius in radii)
        coupling = self.gear(name, joints, (-first if crossed else first) / second)
        coupling.what, coupling.radii = "belt", (first, second)
        return coupling

    def couple(self, name: str, terms: Mapping[Any, Numbers], value: Any = 0.0) -> Coupling:
        """Couple any number of joints: Σ coefficient · coordinate = value, as in a differential, an epicyclic
        gear or a block and tackle.

        Parameters
        ----------
        name : str
            What it is called.
        terms : dict
            Coefficients by joint; of a joint with several coordinates by the pair of its name and that of the
            coordinate.
        value : number or callable
            The right-hand side, a function of t and p.

        Examples
        --------
        A differential: the wheels turn with the carrier on average.

        >>> import holonome as hn
        >>> m = hn.Mechanism("differential", gravity=(0, 0))
        >>> for part in ("carrier", "left", "right"):
        ...     _ = m.revolute(f"{part} axle", m.ground.at(0, 0), m.body(part, 1.0, 0.01))
        >>> _ = m.couple("bevels", {"left axle": 1, "right axle": 1, "carrier axle": -2})
        >>> sol = hn.solve(m, (0, 1), speed={"left axle": 3.0, "right axle": 1.0})
        >>> sol.joint("carrier axle").rate[-1].round(12).item()
        2.0
        """
        if not isinstance(terms, Mapping) or len(terms) < 2:
            raise ModelError(
                f"{name}.terms: {shown(terms)}; give a dict of two joints or more and coefficients"
            )
        found = []
        for key, coefficient in terms.items():
            joint, coordinate = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
            chosen, which = self._coordinate(name, joint, coordinate)
            found.append((chosen, which, self._not_zero(f"{name}.terms[{shown(key)}]", coefficient)))
        if len({(joint.name, which) for joint, which, _ in found}) < len(found):
            raise ModelError(f"{name}.terms: a coordinate is there twice; give each once")
        law = self._law(f"{name}.value", value, {"t": ()}, 1)
        return self._add_coupling(Coupling(name, "coupling", found, law))

    def _add_joint(self, joint: Joint) -> Joint:
        self._new(joint.name)
        self.joints[joint.name] = joint
        return joint

    def _lower_pair(self, name: str, kind: str, a: Any, b: Any, axis: Any) -> Joint:
        if kind not in IN_THE_PLANE:
            self._require_space(name, kind)
        turns = () if axis is None and self.dimension == 2 else self._turns(f"{name}.axis", kind, axis)
        return self._add_joint(LowerPair(name, kind, *self._ends(name, a, b), turns))

    def _require_space(self, name: str, kind: str) -> None:
        if self.dimension == 2:
            raise ModelError(f"{name}: a {kind} joint is for space; this mechanism is in the plane")

    def _turns(self, argument: str, kind: str, axis: Any) -> tuple[np.ndarray, ...]:
        """Rotations from the axes of a joint to those of its points."""
        if self.dimension == 2:
            if kind != "prismatic":
                raise ModelError(f"{argument}: in the plane all joints turn about z; leave it out")
            c, s = self._axis(argument, axis, 2)
            turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            return turn, turn
        if axis is None or kind in ("spherical", "fixed"):
            return ()
        pair = self._pair_of_axes(argument, axis)
        return tuple(frame_along(u) for u in pair)

    def _pair_of_axes(self, argument: str, axis: Any) -> tuple[np.ndarray, np.ndarray]:
        """One axis for both points, or one for each."""
        try:
            array = real_array(axis)
        except (TypeError, ValueError, OverflowError):
            array = np.zeros(0)
        if array.shape == (2, 3):
            return self._axis(argument, array[0], 3), self._axis(argument, array[1], 3)
        found = self._axis(argument, axis, 3)
        return found, found

    def _axis(self, argument: str, axis: Any, size: int) -> np.ndarray:
        try:
            array = real_array(axis)
            length = float(np.linalg.norm(array))
            if array.shape != (size,) or not 0 < length < np.inf:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            expected = "two numbers" if size == 2 else "three numbers, or two such triples"
            raise ModelError(f"{argument}: {shown(axis)}; give {expected}, not all zero") from None
        return array / length

    def _add_coupling(self, coupling: Coupling) -> Coupling:
        self._new(coupling.name)
        self.couplings[coupling.name] = coupling
        return coupling

"""How a mechanism is drawn: bodies by their shapes or points, joints by symbols, wheels, springs, ground."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, pairwise
from typing import Any

import casadi as ca
import numpy as np

from holonome.bodies.body import Body, Point
from holonome.bodies.contact import OnGuide, Rolling
from holonome.bodies.coupling import Coupling
from holonome.bodies.equations import Equations
from holonome.bodies.geometry import Frame, cross
from holonome.bodies.joint import DISPLACEMENT, Distance, Joint
from holonome.bodies.load import Between, Contact, JointSpring, Load, PointSpring
from holonome.bodies.outlines import coplanar, hull, in_line, section
from holonome.bodies.rope import Rope
from holonome.bodies.shapes import Shape, Sphere, Tube
from holonome.locks import expressions
from holonome.problem.drawing import SYMBOLS, Drawing
from holonome.tracing import Traced
from holonome.tracing.values import column, has_traced

_DEPTH = 100
"""Operations down to which expressions are compared."""

_AXES = {"prismatic": (2,), "cylindrical": (2,), "screw": (2,), "revolute": (2,), "planar": (2,)}


class Picture:
    """Collects named points and what connects them."""

    def __init__(self, equations: Equations, bodies: Mapping[str, Body], flat: np.ndarray) -> None:
        self.equations, self.flat = equations, flat
        self.dimension = next(iter(bodies.values())).dimension
        self.places: dict[str, ca.SX] = {}
        self.points: dict[str, Point] = {}
        self.parts: dict[str, list[Any]] = {
            part: [] for part in ("links", "springs", "bodies", "lines", "circles", "symbols", "tracks")
        }
        self.ground: list[str] = []
        self.sliders: list[str] = []
        self.traces: list[str] = []
        self.round: set[str] = set()
        """Names of bodies that are drawn as wheels or slide on a guide."""
        positions = [point.position for body in bodies.values() for point in body.points.values()]
        positions += [body.center for body in bodies.values()]
        self.size = float(np.max(np.abs(self.numbers(ca.horzcat(*positions))), initial=0.0)) or 1.0

    def numbers(self, value: ca.SX) -> np.ndarray:
        """An expression of the parameters in numbers."""
        function = ca.Function("numbers", [self.equations.symbols.p], [ca.densify(value)])
        return np.array(function(self.flat))

    def add(self, part: str, *names: str) -> None:
        if names not in self.parts[part]:
            self.parts[part].append(names)

    def place(self, name: str, x: ca.SX) -> str:
        """A point by its place in the frame."""
        self.places.setdefault(name, x[: self.dimension])
        return name

    def point(self, point: Point, held: bool = True) -> str:
        """The name under which a point of a body is drawn; points of the ground get a support if `held`."""
        name = self._name_of(point)
        self.place(name, self.equations.kinematics.at(point).x)
        if point.body.ground and held and name not in self.ground:
            self.ground.append(name)
        return name

    def _name_of(self, point: Point) -> str:
        """A name of its own: points made by `at` may be called alike and lie apart."""
        first = name = f"{point.body.name} {point.name}"
        for k in count(2):
            known = self.points.setdefault(name, point)
            if known is point or ca.is_equal(known.position, point.position, _DEPTH):
                return name
            name = f"{first} {k}"
        raise AssertionError

    def fixed_to(self, body: Body, places: np.ndarray, what: str) -> list[str]:
        """Many points of a body at once: (points, 2 or 3) in its axes."""
        frame = self.equations.kinematics.frame(body)
        columns = frame.R[:, : places.shape[1]] @ ca.SX(ca.DM(places.T)) + ca.repmat(frame.x, 1, len(places))
        return [self.place(f"{body.name} {what} {k}", columns[:, k]) for k in range(len(places))]

    def toward(self, name: str, x: ca.SX, axis: ca.SX) -> str:
        """A point that shows a direction from x."""
        return self.place(name, x + 0.02 * self.size * axis)

    # ---------------------------------------------------------------- bodies

    def body(self, body: Body, used: Sequence[Point]) -> None:
        """Its shape, or its points: a bar between two, an outline of more."""
        if body.shape is None:
            self._by_points(body, used)
            return
        self._arms(body, body.shape, used)
        if self.dimension == 3:
            corners, faces = body.shape.outline()
            names = self.fixed_to(body, np.asarray(corners, dtype=float), "corner")
            for face in faces:
                self.add("bodies", *(names[k] for k in face))
        else:
            kind, values = section(body.shape)
            if kind == "circles":
                for radius in values:
                    self.wheel(f"{body.name} rim {radius:g}", self.equations.kinematics.frame(body), radius)
                self.round.add(body.name)
            else:
                names = self.fixed_to(body, np.array(values), "corner")
                self.add("links" if kind == "bar" else "bodies", *names)

    def _arms(self, body: Body, shape: Shape, used: Sequence[Point]) -> None:
        """Bars from the middle of a shape to joints outside it."""
        corners = np.asarray(shape.outline()[0], dtype=float)[:, : self.dimension]
        low, high = corners.min(axis=0), corners.max(axis=0)
        margin = 0.02 * np.max(high - low)
        for point in used:
            x = self.numbers(point.position).ravel()[: self.dimension]
            if np.any(x < low - margin) or np.any(x > high + margin):
                middle = self.fixed_to(body, (low + high)[None, :] / 2, "middle")[0]
                self.add("links", middle, self.point(point))

    def _by_points(self, body: Body, used: Sequence[Point]) -> None:
        by_place: dict[tuple, Point] = {}
        for point in [*used, *body.points.values()]:
            x = self.numbers(point.position).ravel()
            by_place.setdefault(tuple(np.round(x / self.size, 9).tolist()), point)
        center = tuple(np.round(self.numbers(body.center).ravel() / self.size, 9).tolist())
        mass = not by_place or (len(by_place) == 1 and body.name not in self.round)
        if len(by_place) < 2 and center not in by_place:
            by_place[center] = Point(body, "centre of mass", body.center)
        names, places = [self.point(point) for point in by_place.values()], np.array(list(by_place))
        if mass:
            self.add("symbols", "mass", self.point(by_place[center]))
        if len(names) > 1 and (ends := in_line(places)) is not None:
            self.add("links", names[ends[0]], names[ends[1]])
        elif len(names) > 1 and (flat := coplanar(places)) is not None:
            around = [names[k] for k in hull(flat)]
            self.add("bodies", *around)
            if self.dimension == 3:
                for pair in pairwise([*around, around[0]]):
                    self.add("links", *pair)
        elif len(names) > 1:
            middle = self.fixed_to(body, places.mean(axis=0, keepdims=True) * self.size, "middle")[0]
            for name in names:
                self.add("links", middle, name)

    # ---------------------------------------------------------------- joints

    def joint(self, joint: Joint) -> None:
        """The symbol of a joint, and the ground where it has an end there."""
        a, b = joint.points[0], joint.points[-1]
        if isinstance(joint, Rolling):
            self._rolling(joint)
        elif isinstance(joint, (Distance, Rope)):
            self._rod_or_rope(joint)
        elif isinstance(joint, OnGuide):
            free = b if a.body.ground else a
            self.add("symbols", "revolute", self.point(b, held=False))
            if a.body.ground or b.body.ground:
                self.traces.append(self.point(free))
        elif joint.what != "free":
            self._lower_pair(joint, a, b)

    def _lower_pair(self, joint: Joint, a: Point, b: Point) -> None:
        slides = any(c.kind == DISPLACEMENT for c in joint.coordinates) or joint.what == "screw"
        standing = [point for point in (a, b) if point.body.ground]
        shown = a if b.body.ground else b
        name = self.point(shown)
        kind = "cylindrical" if joint.what == "screw" else joint.what
        if kind not in SYMBOLS:  # of beams, or of the user's own
            for point in standing:
                self.point(point)
            return
        if slides:
            self._slide(joint, shown, bool(standing))
        else:
            for point in standing:
                self.point(point)
        if self.dimension == 2 and (standing and (slides or joint.what == "revolute")):
            return  # the support or the slider shows it
        if joint.what == "fixed" and not standing:
            return
        there = self.equations.kinematics.at(shown).x
        if slides and not standing and self.dimension == 3 and joint.what != "planar":
            if a.body.shape is not None and b.body.shape is not None:
                return
            there = (self.equations.kinematics.at(a).x + there) / 2
            name = self.place(f"{joint.name} slide", there)
        self.add("symbols", kind, name, *self._directions(joint, there))

    def _slide(self, joint: Joint, shown: Point, on_ground: bool) -> None:
        """A guide along which the path leads, or a line between the two points."""
        self.round |= {point.body.name for point in joint.points}
        if on_ground:
            self.sliders.append(self.point(shown))
        elif joint.what != "planar" and None in [body.shape for body in joint.bodies]:
            self.add("lines", *(self.point(point) for point in joint.points))

    def _directions(self, joint: Joint, there: ca.SX) -> list[str]:
        a, b = self.equations.kinematics.ends(joint)
        if joint.what == "universal":
            axes = [a.axis(0), b.axis(1)]
        elif self.dimension == 2:
            axes = [a.axis(0)] if joint.what == "prismatic" else []
        else:
            axes = [a.axis(k) for k in _AXES.get(joint.what, ())]
        return [self.toward(f"{joint.name} axis {k + 1}", there, axis) for k, axis in enumerate(axes)]

    def _rod_or_rope(self, joint: Joint) -> None:
        names = [self.point(point) for point in joint.points]
        if isinstance(joint, Rope):
            self._rope(joint, names)
        else:
            self.add("links", *names)
        for name, point in zip(names, joint.points, strict=True):
            if point.body.rotates and not point.body.ground:
                self.add("symbols", "revolute" if self.dimension == 2 else "spherical", name)

    def _rope(self, rope: Rope, names: Sequence[str]) -> None:
        """Its spans, and the pulleys that have a radius."""
        ends = self.equations.kinematics.ends(rope)
        for k, (span, pair) in enumerate(zip(rope.spans(*ends), pairwise(names), strict=True)):
            touching = [
                name if radius.is_zero() else self.place(f"{rope.name} {k} {name}", end.x + arm)
                for name, radius, end, arm in zip(
                    pair, rope.radii[k : k + 2], ends[k : k + 2], span.arms, strict=True
                )
            ]
            self.add("lines", *touching)
        for name, radius, end in zip(names, rope.radii, ends, strict=True):
            if not radius.is_zero():
                self.wheel(f"{rope.name} {name}", end, ca.fabs(radius))

    # ---------------------------------------------------------------- wheels and their ground

    def wheel(self, name: str, center: Frame, radius: Any, kind: str = "disc") -> None:
        """A circle about the z-axis of a frame, in space also a ball."""
        rims = 1 if self.dimension == 2 else {"disc": 2, "ball": 3}[kind]
        names = [self.place(f"{name} {k + 1}", center.x + radius * center.axis(k)) for k in range(rims)]
        self.add("circles", self.place(f"{name} centre", center.x), *names)

    def track(self, name: str, frame: Frame) -> None:
        """The x-axis of a frame, or in space its x-y-plane."""
        ends = [self.toward(f"{name} {axis}", frame.x, frame.axis(k)) for k, axis in enumerate("xy")]
        self.add("tracks", self.place(f"{name} origin", frame.x), *ends[: self.dimension - 1])

    def _rolling(self, joint: Rolling) -> None:
        a, b = self.equations.kinematics.ends(joint)
        self.track(f"{joint.name} ground", a)
        body = joint.points[1].body
        if not isinstance(body.shape, (Sphere, Tube)):
            self.wheel(f"{joint.name} rim", b, joint.radius, "ball" if joint.kind == "ball" else "disc")
            self.round.add(body.name)

    def contact(self, load: Contact) -> None:
        a, b = (self.equations.kinematics.at(point) for point in load.points)
        self.track(f"{load.name} ground", a)
        body = load.points[1].body
        if body.shape is None and np.all(self.numbers(load.radius) > 0):
            self.wheel(f"{load.name} rim", b, load.radius, "ball")
            self.round.add(body.name)

    def gear(self, coupling: Coupling) -> None:
        """Pitch circles of two wheels in mesh or on a belt, or of a pinion with its rack."""
        joints = [joint for joint, _, _ in coupling.terms]
        turning = [joint for joint in joints if joint.what == "revolute"]
        if len(turning) == 1 and coupling.what == "rack":
            self._pitch_circle(coupling, turning[0], -coupling.terms[1][2])
        same = coupling.radii is None and np.any(self.numbers(coupling.terms[-1][2]) == -1)
        if len(joints) != 2 or len(turning) != 2 or same or coupling.what == "coupling":
            return  # nothing that meshes
        second, first = (self.equations.kinematics.ends(joint)[1] for joint in joints)
        if coupling.radii is not None:
            radii = coupling.radii
            self._belt(coupling, first, second)
        else:
            ratio, d = -coupling.terms[1][2], second.x - first.x
            d -= (0.0 if self.dimension == 2 else ca.dot(d, first.axis(2))) * first.axis(2)
            larger = ca.norm_2(d) / ca.fabs(1 - ratio)
            radii = ca.fabs(ratio) * larger, larger
        for joint, radius in zip(reversed(joints), radii, strict=True):
            self._pitch_circle(coupling, joint, radius)

    def _belt(self, coupling: Coupling, first: Frame, second: Frame) -> None:
        """The two straight parts of a belt, tangents of its pulleys."""
        assert coupling.radii is not None
        r, R = coupling.radii
        crossed = float(self.numbers(coupling.terms[1][2]).ravel()[0]) > 0
        d = second.x - first.x
        along, across = d / ca.norm_2(d), cross(first.axis(2), d / ca.norm_2(d))
        sine = (r + R if crossed else r - R) / ca.norm_2(d)
        for side in (1, -1):
            n = sine * along + side * ca.sqrt(1 - sine**2) * across
            ends = first.x + r * n, second.x + (-R if crossed else R) * n
            self.add("lines", *(self.place(f"{coupling.name} {side} {k}", x) for k, x in enumerate(ends)))

    def _pitch_circle(self, coupling: Coupling, joint: Joint, radius: ca.SX) -> None:
        b = self.equations.kinematics.ends(joint)[1]
        self.wheel(f"{coupling.name} {joint.name}", b, ca.fabs(radius))

    # ---------------------------------------------------------------- forces

    def load(self, load: Load) -> None:
        if isinstance(load, PointSpring):
            self.add("springs", *map(self.point, load.points))
        elif isinstance(load, JointSpring) and load.joint is not None:
            if load.joint.coordinates[load.which].kind == DISPLACEMENT and self.dimension == 2:
                self.add("springs", *map(self.point, load.joint.points))
        elif isinstance(load, Between):
            self.add("lines", *map(self.point, load.points))
        elif isinstance(load, Contact):
            self.contact(load)

    def drawing(self) -> Drawing | None:
        if not self.places:
            return None
        symbols = self.equations.symbols
        points = Points(self.places, [symbols.q, symbols.s, symbols.p])
        traces = list(dict.fromkeys(self.traces))
        parts: dict[str, Any] = {**self.parts, "sliders": self.sliders, "traces": traces}
        return Drawing(points, ground=self.ground, **parts)


class Points:
    """The places of points by name, for one position or for many; expressions for traced ones."""

    def __init__(self, places: Mapping[str, ca.SX], inputs: list[ca.SX]) -> None:
        self._names, self._function = list(places), None
        self._expressions: Any = (list(places.values()), inputs)

    @property
    def place(self) -> ca.Function:
        """Made on first use: many mechanisms are never drawn."""
        if self._function is None:
            with expressions:
                columns, inputs = self._expressions
                self._function = ca.Function("points", inputs, [ca.densify(ca.horzcat(*columns))])
            self._expressions = None
        return self._function

    def __getstate__(self) -> dict[str, Any]:
        return {"_names": self._names, "_function": self.place, "_expressions": None}

    def __call__(self, q: Any, s: Any, p: Any) -> dict[str, tuple]:
        flat = [np.ravel(p[name]) for name in p]
        inputs = self.place.size1_in(2) - sum(map(np.size, flat))  # on which no place depends
        flat.append(np.zeros(inputs))
        if has_traced(q):
            parameters = column([x for values in flat for x in values])
            found = self.place(column(list(q)), column(list(s)), parameters)
            return {name: tuple(map(Traced, ca.vertsplit(found[:, k]))) for k, name in enumerate(self._names)}
        many = np.broadcast_shapes(q.shape[1:], np.shape(s)[1:])
        count = int(np.prod(many, dtype=int))
        given = [
            np.broadcast_to(x, (len(x), *many)).reshape(len(x), count)
            if x.shape[1:]
            else np.tile(x[:, None], count)
            for x in (q, np.asarray(s))
        ]
        values = np.array(
            self.place.map(count)(*given, np.tile(np.concatenate(flat)[:, None], count))
        ).reshape(self.place.size1_out(0), count, -1)
        return {name: tuple(values[:, :, k].reshape(-1, *many)) for k, name in enumerate(self._names)}


def picture(
    equations: Equations,
    bodies: Mapping[str, Body],
    joints: Mapping[str, Joint],
    forces: Mapping[str, Load],
    couplings: Mapping[str, Coupling],
    traces: Sequence[Point],
    flat: np.ndarray,
    lines: Sequence[Sequence[Point]] = (),
) -> Drawing | None:
    """The drawing of a mechanism."""
    made = Picture(equations, bodies, flat)
    used: dict[str, list[Point]] = {name: [] for name in bodies}
    for joint in joints.values():
        for point in joint.points:
            if joint.what != "free":
                used[point.body.name].append(point)
        made.joint(joint)
    for line in lines:
        for pair in pairwise([made.point(point) for point in line]):
            made.add("links", *pair)
    for load in forces.values():
        made.load(load)
    for coupling in couplings.values():
        made.gear(coupling)
    for body in bodies.values():
        if not body.ground:
            made.body(body, used[body.name])
    if traces:
        made.traces = [made.point(point) for point in traces]
    else:
        taken = {id(point) for points in used.values() for point in points}
        taken |= {id(point) for load in forces.values() for point in load.points}
        free = [p for body in bodies.values() if body.rotates for p in body.points.values()]
        free = [p for p in free if id(p) not in taken and p.body.name not in {"ground", *made.round}]
        if len(free) == 1:  # it was given to be looked at
            made.traces.append(made.point(free[0]))
    return made.drawing()

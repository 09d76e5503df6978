"""Beams and cables by finite segments.

A beam of n segments is n rigid pieces with n − 1 elastic joints.  With h = L / (n − 1), the first and the
last piece are h/2 long and all others h, so that each joint lies in the middle of the stretch h whose
curvature it stands for, with the stiffness EI/h; so both ends can be clamped, hinged or free, and nothing
changes at them.  Frequencies and deflections converge with h².

A cable is a chain of point masses, in the middle of their stretches, with a link from each to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import shown
from holonome.bodies.assembly import Near
from holonome.bodies.body import Body, Point
from holonome.bodies.geometry import ZERO, Frame
from holonome.bodies.joint import ANGLE, DISPLACEMENT, SLIDE, TURN, Coordinate, Joint, Motion, Row
from holonome.bodies.load import Scene, Spring, Wrench
from holonome.bodies.section import Rigidity
from holonome.errors import ModelError


class Bend(Joint):
    """Where two pieces of a beam meet: b turns against a about z, y and x, and may move along a's x-axis."""

    what = "bend"

    def __init__(self, name: str, a: Point, b: Point, stretches: bool) -> None:
        self.name, self.points, self.stretches = name, (a, b), stretches
        self.plane = a.body.dimension == 2
        turns = (2,) if self.plane else (2, 1, 0)
        slide = (Motion(SLIDE, 0),) if stretches else ()
        self.motions = (*slide, *(Motion(TURN, axis) for axis in turns))
        names = ["angle"] if self.plane else [f"angle {'xyz'[axis]}" for axis in turns]
        extension = (Coordinate("extension", DISPLACEMENT),) if stretches else ()
        self.coordinates = (*extension, *(Coordinate(name, ANGLE) for name in names))

    def rows(self, a: Frame, b: Frame) -> list[Row]:
        d, axes = b.x - a.x, range(2 if self.plane else 3)
        if not self.stretches:
            return [Row("xyz"[k], d[k]) for k in axes]
        return [Row("xyz"[k], ca.dot(d, a.axis(k))) for k in axes if k > 0]

    def measured(self, a: Frame, b: Frame) -> list[ca.SX]:
        found = [ca.dot(b.x - a.x, a.axis(0))] if self.stretches else []
        if self.plane:
            return [*found, b.angle - a.angle]
        R = a.R.T @ b.R
        turns = [ca.atan2(R[1, 0], R[0, 0]), ca.asin(-R[2, 0]), ca.atan2(R[2, 1], R[2, 2])]
        return found + turns


class BeamSpring(Spring):
    """The elasticity of a beam of segments: extensions and angles of all its joints."""

    what = "beam"

    def __init__(self, name: str, bends: Sequence[Bend], stiffness: ca.SX, damping: ca.SX) -> None:
        self.name, self.bends, self.each = name, list(bends), stiffness
        self.stiffness = ca.diag(ca.vertcat(*[stiffness] * len(bends)))
        self.damping = damping * self.stiffness

    def deformation(self, scene: Scene) -> ca.SX:
        values = [value for bend in self.bends for value in scene.kinematics.coordinates(bend)]
        return ca.vertcat(*values)

    def wrenches(self, scene: Scene) -> list[Wrench]:
        """By virtual displacements of the second piece at each joint."""
        found, tension = [], ca.vertsplit(self.tension(scene), self.each.numel())
        for bend, force in zip(self.bends, tension, strict=True):
            a, b = scene.kinematics.ends(bend)
            move = ca.SX.sym("virtual displacement", 6)
            rows = ca.vertcat(*bend.measured(a, b.moved(move[:3], move[3:])))
            W = ca.substitute(ca.jacobian(rows, move), move, ca.SX.zeros(6, 1))
            wrench = -W.T @ force
            first, second = bend.bodies
            found.append(Wrench(second, b.x, wrench[:3], wrench[3:]))
            found.append(Wrench(first, b.x, -wrench[:3], -wrench[3:]))
        return found


class Beam:
    """A flexible body, of which joints take points: ``beam["left"]``, ``beam["right"]``, ``beam.at(x)``.

    Attributes
    ----------
    name : str
        What it is called.
    length : float
        Its length without load.
    bodies : list of Body
        The bodies that it is made of, from left to right.
    line : list of Point
        The points along it, as it is drawn.
    """

    name: str
    length: float
    bodies: list[Body]
    points: dict[str, float]

    def __getitem__(self, point: str) -> Point:
        if point not in self.points:
            there = ", ".join(self.points)
            raise ModelError(f"{self.name}: there is no point {point!r}; its points are {there}")
        return self.at(self.points[point])

    def at(self, x: float) -> Point:
        """The point at a distance x from the left end, along the beam without load."""
        raise NotImplementedError

    def path(self, solution: Any, point: str | float) -> np.ndarray:
        """Where a point was along a run, (2 or 3, points of the run).

        Parameters
        ----------
        solution : Solution
            A run.
        point : str or float
            The name of a point, or a distance from the left end; of a beam by modes only what was named in
            ``points``, or asked for by ``at``, before the run.
        """
        found = self[point] if isinstance(point, str) else self.at(point)
        if found.body.name not in solution.system.bodies:
            raise ModelError(
                f"{self.name}.path: {shown(point)} was no point of it when the run was made; name it in "
                "m.beam(points=…)"
            )
        dimension = found.body.dimension
        return solution.body(found.body.name).point(np.array(ca.DM(found.position)).ravel()[:dimension])

    @property
    def line(self) -> list[Point]:
        return []

    def _distance(self, x: Any) -> float:
        try:
            value = float(x)
        except (TypeError, ValueError):
            value = np.nan
        if not -1e-12 * self.length <= value <= (1 + 1e-12) * self.length:
            raise ModelError(
                f"{self.name}.at: {shown(x)}; give a number from 0 to the length {self.length:g}"
            )
        return min(max(value, 0.0), self.length)

    def _named(self, points: Any) -> dict[str, float]:
        if points is not None and not isinstance(points, Mapping):
            raise ModelError(f"{self.name}.points: {shown(points)}; give a dict of names and distances")
        found = {"left": 0.0, "right": self.length}
        for name, x in (points or {}).items():
            found[name] = self._distance(x)
        return found

    def __repr__(self) -> str:
        return f"{self.name}: length {self.length:g}, {self._made_of()}"

    def _made_of(self) -> str:
        return f"{len(self.bodies)} segments"


class SegmentBeam(Beam):
    """A beam of rigid pieces."""

    def __init__(
        self,
        name: str,
        length: float,
        segments: int,
        rigidity: Rigidity,
        dimension: int,
        points: Any,
        stretches: bool,
    ) -> None:
        self.name, self.length = name, length
        h = length / (segments - 1)
        self.starts = np.concatenate([[0.0], h * (np.arange(segments - 1) + 0.5), [length]])
        self.bodies = [
            _piece(f"{name} {k + 1}", float(size), rigidity, dimension)
            for k, size in enumerate(np.diff(self.starts))
        ]
        self.points = self._named(points)
        self.bends = [
            Bend(f"{name} bend {k + 1}", a["right"], b["left"], stretches)
            for k, (a, b) in enumerate(zip(self.bodies, self.bodies[1:], strict=False))
        ]
        EI_y, EI_z = rigidity.EI
        each = [EI_y] if dimension == 2 else [EI_y, EI_z, rigidity.GJ]
        each = [rigidity.EA, *each] if stretches else each
        self.spring = BeamSpring(f"{name} elasticity", self.bends, ca.vertcat(*each) / h, rigidity.damping)

    def at(self, x: float) -> Point:
        x = self._distance(x)
        k = min(int(np.searchsorted(self.starts, x, side="right")) - 1, len(self.bodies) - 1)
        body, along = self.bodies[k], x - self.starts[k]
        for point in body.points.values():
            if abs(float(point.position[0]) - along) < 1e-12 * self.length:
                return point
        return body.at(along, *[0.0] * (body.dimension - 1))


def _piece(name: str, size: float, rigidity: Rigidity, dimension: int) -> Body:
    """A slender rigid rod along x, its origin at its left end."""
    mass = rigidity.mass * size
    across = mass * size**2 / 12
    inertia = ca.SX(3, 3)
    if dimension == 3:
        inertia[0, 0], inertia[1, 1] = rigidity.twisting * size, across
    inertia[2, 2] = across
    points: dict[str, Point] = {}
    body = Body(name, dimension, mass, inertia, ca.SX(ca.DM([size / 2, 0, 0])), points)
    points["left"] = Point(body, "left", ZERO)
    points["right"] = Point(body, "right", ca.SX(ca.DM([size, 0, 0])))
    return body


class Cable(Beam):
    """A cable: point masses with a link from each to the next."""

    def __init__(self, name: str, length: float, masses: Sequence[Body], down: Callable[[], Any]) -> None:
        self.name, self.length, self.bodies, self._down = name, length, list(masses), down
        self.points = {"left": 0.0, "right": length}

    def at(self, x: float) -> Point:
        place = self._distance(x) / self.length * (len(self.bodies) - 1)
        k = round(place)
        if abs(place - k) > 1e-9:
            raise ModelError(
                f"{self.name}.at: {shown(x)}; a cable has points at multiples of its links' length, "
                f"{self.length / (len(self.bodies) - 1):g}; choose one of these, or change segments="
            )
        return self.bodies[k].points[self.bodies[k].name]

    @property
    def line(self) -> list[Point]:
        return [body.points[body.name] for body in self.bodies]

    def _made_of(self) -> str:
        return f"{len(self.bodies) - 1} links of a cable"

    def hanging(self, left: Any, right: Any) -> dict[str, Near]:
        """Places to start from, for ``start``: a catenary between two places, a straight line if it is taut.

        Parameters
        ----------
        left, right : numbers
            Where its ends are.
        """
        a, b = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
        if a.shape != b.shape or a.shape != (self.bodies[0].dimension,):
            raise ModelError(f"{self.name}.hanging: give two places of {self.bodies[0].dimension} numbers")
        x = catenary(a, b, self.length, np.linspace(0, 1, len(self.bodies)), np.asarray(self._down()))
        return {body.name: Near({"position": row}) for body, row in zip(self.bodies, x, strict=True)}


def catenary(a: np.ndarray, b: np.ndarray, length: float, s: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Places on an inextensible cable between a and b, at shares s of its length."""
    from scipy.optimize import brentq

    up = -down / np.linalg.norm(down)
    rise = float((b - a) @ up)
    level = b - a - rise * up
    span = float(np.linalg.norm(level))
    if np.hypot(span, rise) >= length * (1 - 1e-12):
        return a + s[:, None] * (b - a)
    along = level / span if span > 1e-9 * length else _across(up)
    span = max(span, 1e-3 * length)
    wide = np.sqrt(length**2 - rise**2) / span  # sinh(z) / z with z = span / 2c
    z: Any = brentq(lambda z: np.sinh(z) / z - wide, 1e-9, 20.0 + 2 * np.log(wide))
    c = span / (2 * z)
    middle = span / 2 - c * np.arctanh(rise / length)
    begin = c * np.sinh(-middle / c)
    x = middle + c * np.arcsinh((begin + s * length) / c)
    y = c * (np.cosh((x - middle) / c) - np.cosh(middle / c))
    return a + x[:, None] * along + y[:, None] * up


def _across(up: np.ndarray) -> np.ndarray:
    found = np.eye(len(up))[int(np.argmin(np.abs(up)))]
    found = found - (found @ up) * up
    return found / np.linalg.norm(found)

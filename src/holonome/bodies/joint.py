"""What every joint offers, and the joints that are given by their freedoms alone.

A joint connects point a of one body with point b of another, each with axes of its own.  It may be used in
two ways.  In the tree of bodies it places b, by its *motions*: slides and turns from the axes of a.  Where
bodies have coordinates of their own, or a loop is closed, it is *rows* that vanish.

Slides are along the axes of a, then come turns.  Rows are the opposite: with the displacement d from a to b,

    no slides      d = 0                                 in the axes of the ground
    some slides    d · a_k = 0                           for the axes k of a along which it cannot slide
    turn about z   b_z · a_x = 0,  b_z · a_y = 0
    no turn        these two, and  b_x · a_y = 0         in the plane: the same angle
    cross          b_y · a_x = 0                         a universal joint, turns about a_x and b_y
    ball           none
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import casadi as ca
import numpy as np

from holonome.bodies.body import Body, Point
from holonome.bodies.geometry import Frame, symbolic, turned

SLIDE, TURN, SCREW, BALL = "slide", "turn", "screw", "ball"
ANGLE, DISPLACEMENT, QUATERNION = "angle", "displacement", "quaternion"


@dataclass(frozen=True)
class Motion:
    """An elementary motion along or about an axis, 0, 1 or 2; ``sign`` −1 is the inverse motion.  A screw
    advances by ``pitch`` for each radian.  Where ``of`` is given, the displacement or angle is this function
    of ``count`` coordinates, which other motions have too: the amplitudes of a flexible body.
    """

    kind: str
    axis: int = 2
    sign: float = 1.0
    pitch: ca.SX | float = 0.0
    of: Callable[[ca.SX], ca.SX] | None = None
    count: int = 1

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return 4 if self.kind == BALL else self.count

    @property
    def freedom(self) -> int:
        if self.of is not None:
            return 0
        return 3 if self.kind == BALL else 1

    @property
    def reversed(self) -> Motion:
        return replace(self, sign=-self.sign)


class Coordinate(NamedTuple):
    """A coordinate of a joint: what it is called, and what it measures."""

    name: str
    kind: str


class Row(NamedTuple):
    """A constraint row: its name, and the expression that vanishes."""

    name: str
    value: ca.SX


def typical_length(joints: Iterable[Joint], number: Callable[[ca.SX], np.ndarray | None]) -> float:
    """How far the points of a body that joints connect lie apart at most, and from its centre of mass; one if
    all coincide.  ``number`` gives expressions in numbers, or None where it does not know.
    """
    places: dict[int, list[np.ndarray]] = {}
    bodies = {id(body): body for joint in joints for body in joint.bodies}
    for body in bodies.values():
        own = [] if body.ground else [body.center, *(point.position for point in body.points.values())]
        places[id(body)] = [x for x in map(number, own) if x is not None]
    for point in (point for joint in joints for point in joint.points):
        x = number(point.position)
        if x is not None:
            places[id(point.body)].append(x)
    spans = [float(np.linalg.norm(np.ptp(x, axis=0))) for x in places.values() if x]
    return max(spans, default=0.0) or 1.0


class Joint:
    """Base class of what connects two points.  A subclass says what it can, and leaves the rest out.

    Attributes
    ----------
    name
        What the user calls it.
    points
        What it connects: a, b, and more for a rope.
    turns
        Rotation matrices from the joint's axes to those of each point; none if they are the same.
    motions
        How it places b in the axes of a; None if it cannot.
    coordinates
        What it measures, in the order of the motions.
    amplitudes
        Of a station of a flexible body: what its coordinates are called, which all stations have in common.
    """

    name: str
    points: tuple[Point, ...]
    turns: tuple[np.ndarray, ...] = ()
    motions: tuple[Motion, ...] | None = None
    coordinates: tuple[Coordinate, ...] = ()
    amplitudes: str | None = None
    what = "joint"
    only: tuple[str, ...] | None = None
    """Names of the rows that it has; None for all."""

    def limited(self, rows: list[Row]) -> list[Row]:
        """Of its rows those that it shall have."""
        return rows if self.only is None else [row for row in rows if row.name in self.only]

    @property
    def bodies(self) -> list[Body]:
        return [point.body for point in self.points]

    def turn(self, k: int) -> np.ndarray:
        return self.turns[k] if self.turns else np.eye(3)

    def rows(self, *frames: Frame) -> list[Row]:
        """What vanishes, given the frames of all points, turned into the joint's axes."""
        return []

    def velocity_rows(self, *frames: Frame) -> list[Row]:
        """What vanishes on the level of velocities, linear in them."""
        return []

    def tensions(self, multipliers: ca.SX) -> ca.SX | None:
        """Of a rod or a rope, from the multipliers of its rows."""
        return None

    def measured(self, *frames: Frame) -> list[ca.SX]:
        """Its coordinates, from the frames of all points; angles only up to full turns in space."""
        return []

    def __repr__(self) -> str:
        return f"{self.what} {self.name!r} of {', '.join(map(repr, self.points))}"


class Freedoms(NamedTuple):
    """What a kind of joint leaves free: axes along which it slides, and how it turns: "z", "xy" (a cross),
    "xyz" (a ball) or not at all.
    """

    slides: str
    turns: str


KINDS = {
    "fixed": Freedoms("", ""),
    "revolute": Freedoms("", "z"),
    "prismatic": Freedoms("z", ""),
    "cylindrical": Freedoms("z", "z"),
    "spherical": Freedoms("", "xyz"),
    "universal": Freedoms("", "xy"),
    "planar": Freedoms("xy", "z"),
    "free": Freedoms("xyz", "xyz"),
}
IN_THE_PLANE = {
    "fixed": Freedoms("", ""),
    "revolute": Freedoms("", "z"),
    "prismatic": Freedoms("x", ""),
    "free": Freedoms("xy", "z"),
}
_QUATERNION = tuple(Coordinate(name, QUATERNION) for name in ("ew", "ex", "ey", "ez"))


class LowerPair(Joint):
    """A joint given by its freedoms."""

    def __init__(self, name: str, kind: str, a: Point, b: Point, turns: tuple[np.ndarray, ...] = ()) -> None:
        self.name, self.what, self.points, self.turns = name, kind, (a, b), turns
        self.plane = a.body.dimension == 2
        self.freedoms = (IN_THE_PLANE if self.plane else KINDS)[kind]
        self.motions = tuple(self._motions())
        self.coordinates = tuple(self._coordinates())

    def _motions(self) -> list[Motion]:
        slides, turns = self.freedoms
        motions = [Motion(SLIDE, "xyz".index(axis)) for axis in slides]
        if turns == "xyz":
            return [*motions, Motion(BALL)]
        return [*motions, *(Motion(TURN, "xyz".index(axis)) for axis in turns)]

    def _coordinates(self) -> list[Coordinate]:
        slides, turns = self.freedoms
        names = [Coordinate("displacement" if len(slides) == 1 else axis, DISPLACEMENT) for axis in slides]
        if turns == "xyz":
            return [*names, *_QUATERNION]
        return names + [Coordinate("angle" if len(turns) == 1 else f"angle {k}", ANGLE) for k in turns]

    def rows(self, a: Frame, b: Frame) -> list[Row]:
        slides, turns = self.freedoms
        d, axes = b.x - a.x, "xy" if self.plane else "xyz"
        if slides:
            found = [Row(axis, ca.dot(d, a.axis("xyz".index(axis)))) for axis in axes if axis not in slides]
        else:
            found = [Row(axis, d["xyz".index(axis)]) for axis in axes]
        if self.plane:
            return found if turns else [*found, Row("angle", b.angle - a.angle)]
        if turns in ("", "z"):
            found += [
                Row("axis x", ca.dot(b.axis(2), a.axis(1))),
                Row("axis y", ca.dot(b.axis(2), a.axis(0))),
            ]
        if turns == "":
            found.append(Row("angle", ca.dot(b.axis(0), a.axis(1))))
        if turns == "xy":
            found.append(Row("cross", ca.dot(b.axis(1), a.axis(0))))
        return found

    def measured(self, a: Frame, b: Frame) -> list[ca.SX]:
        slides, turns = self.freedoms
        d = b.x - a.x
        found = [ca.dot(d, a.axis("xyz".index(axis))) for axis in slides]
        if self.plane:
            return [*found, b.angle - a.angle] if turns else found
        if turns == "z":
            found.append(_angle_about_z(a.R, b.R))
        if turns == "xy":
            found.append(ca.atan2(ca.dot(a.axis(2), b.axis(1)), ca.dot(a.axis(1), b.axis(1))))
            found.append(ca.atan2(ca.dot(b.axis(2), a.axis(0)), ca.dot(b.axis(0), a.axis(0))))
        if turns == "xyz":
            found += ca.vertsplit(quaternion_of(a.R.T @ b.R))
        return found


def _angle_about_z(a: ca.SX, b: ca.SX) -> ca.SX:
    """The angle by which b is turned about the common z-axis, between −π and π."""
    return ca.atan2(ca.dot(a[:, 1], b[:, 0]), ca.dot(a[:, 0], b[:, 0]))


def quaternion_of(R: ca.SX) -> ca.SX:
    """A unit quaternion of a rotation matrix; of its four formulas the one with the largest divisor."""
    t = [
        1 + R[0, 0] + R[1, 1] + R[2, 2],
        1 + R[0, 0] - R[1, 1] - R[2, 2],
        1 - R[0, 0] + R[1, 1] - R[2, 2],
        1 - R[0, 0] - R[1, 1] + R[2, 2],
    ]
    a, b, c = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    d, e, f = R[1, 0] + R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2]
    rows = [
        ca.vertcat(t[0], a, b, c),
        ca.vertcat(a, t[1], d, e),
        ca.vertcat(b, d, t[2], f),
        ca.vertcat(c, e, f, t[3]),
    ]
    best, found = t[0], rows[0]
    for value, row in zip(t[1:], rows[1:], strict=True):
        found = ca.if_else(value > best, row, found)
        best = ca.fmax(best, value)
    return found / (2 * ca.sqrt(best))


class Screw(Joint):
    """A nut on a thread: it advances by the lead for each turn."""

    what = "screw"

    def __init__(self, name: str, a: Point, b: Point, turns: tuple[np.ndarray, ...], lead: object) -> None:
        self.name, self.points, self.turns = name, (a, b), turns
        self.pitch = symbolic(lead) / (2 * np.pi)
        self.motions = (Motion(SCREW, pitch=self.pitch),)
        self.coordinates = (Coordinate("angle", ANGLE),)

    def rows(self, a: Frame, b: Frame) -> list[Row]:
        """The last row compares the angle with the advance up to full turns: both are read as directions."""
        d = b.x - a.x
        due = turned(2, ca.dot(d, a.axis(2)) / self.pitch)[:, 0]
        here = ca.vertcat(ca.dot(b.axis(0), a.axis(0)), ca.dot(b.axis(0), a.axis(1)), 0)
        return [
            Row("x", ca.dot(d, a.axis(0))),
            Row("y", ca.dot(d, a.axis(1))),
            Row("axis x", ca.dot(b.axis(2), a.axis(1))),
            Row("axis y", ca.dot(b.axis(2), a.axis(0))),
            Row("thread", due[0] * here[1] - due[1] * here[0]),
        ]

    def measured(self, a: Frame, b: Frame) -> list[ca.SX]:
        return [ca.dot(b.x - a.x, a.axis(2)) / self.pitch]


class Distance(Joint):
    """A massless rod with a ball at each end.  Its multiplier is the tension in it."""

    what = "distance"

    def __init__(self, name: str, a: Point, b: Point, length: object) -> None:
        self.name, self.points, self.length = name, (a, b), symbolic(length)

    def rows(self, a: Frame, b: Frame) -> list[Row]:
        d = b.x - a.x
        return [Row("length", (ca.dot(d, d) - self.length**2) / (2 * self.length))]

    def tensions(self, multipliers: ca.SX) -> ca.SX:
        return multipliers

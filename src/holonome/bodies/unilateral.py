"""Contacts between bodies: stops of joints, slack ropes, points and balls on lines and planes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import casadi as ca

from holonome.bodies.body import Point
from holonome.bodies.geometry import Frame, cross
from holonome.bodies.joint import Joint
from holonome.bodies.load import Scene, Wrench, joint_wrenches


class Unilateral(ABC):
    """Base class: a distance that must not become negative, with laws of impact and friction.

    Attributes
    ----------
    restitution, friction, static_friction
        Coefficients, as expressions of the parameters.
    hypothesis
        As of :class:`holonome.Contact`.
    """

    def __init__(
        self, name: str, restitution: ca.SX, friction: ca.SX, static_friction: ca.SX, hypothesis: str
    ) -> None:
        self.name, self.hypothesis = name, hypothesis
        self.restitution, self.friction, self.static_friction = restitution, friction, static_friction

    directions = 0
    """Numbers of slip velocities."""

    points: tuple[Point, ...] = ()
    joint: Joint | None = None

    what = "contact"

    def __repr__(self) -> str:
        where = self.joint.name if self.joint is not None else " – ".join(map(repr, self.points))
        return f"{self.what}, {where}"

    @abstractmethod
    def gap(self, scene: Scene) -> ca.SX:
        """The distance."""

    def slip(self, scene: Scene) -> ca.SX:
        """Velocities along the contact."""
        return ca.SX(0, 1)

    @abstractmethod
    def wrenches(self, scene: Scene, normal: ca.SX, friction: ca.SX) -> list[Wrench]:
        """What a force across the contact and forces along it do to bodies."""


class Stop(Unilateral):
    """A coordinate of a joint stays on one side of a value."""

    what = "stop"

    def __init__(self, name: str, joint: Joint, which: int, sign: float, value: ca.SX, *law) -> None:
        super().__init__(name, *law)
        self.joint, self.which, self.sign, self.value = joint, which, sign, value

    def gap(self, scene: Scene) -> ca.SX:
        assert self.joint is not None
        measured = self.joint.measured(*scene.kinematics.ends(self.joint))
        coordinate = scene.kinematics.coordinates(self.joint)[self.which]
        followed = ca.depends_on(coordinate, scene.kinematics.q)
        return self.sign * ((coordinate if followed else measured[self.which]) - self.value)

    def wrenches(self, scene: Scene, normal: ca.SX, friction: ca.SX) -> list[Wrench]:
        assert self.joint is not None
        values = [ca.SX(0)] * len(self.joint.coordinates)
        values[self.which] = self.sign * normal
        return joint_wrenches(scene, self.joint, values)


class BetweenPoints(Unilateral):
    """Base class of contacts that follow from the places of points."""

    @abstractmethod
    def distance(self, *ends: Frame) -> ca.SX:
        """The gap, from the frames of the points."""

    def along(self, *ends: Frame) -> ca.SX:
        """Velocities along the contact."""
        return ca.SX(0, 1)

    def _ends(self, scene: Scene) -> list[Frame]:
        return [scene.kinematics.at(point) for point in self.points]

    def gap(self, scene: Scene) -> ca.SX:
        return self.distance(*self._ends(scene))

    def slip(self, scene: Scene) -> ca.SX:
        return self.along(*self._ends(scene))

    def wrenches(self, scene: Scene, normal: ca.SX, friction: ca.SX) -> list[Wrench]:
        ends, move, found = self._ends(scene), ca.SX.sym("virtual displacement", 6), []
        for k, (point, end) in enumerate(zip(self.points, ends, strict=True)):
            moved, quickened = list(ends), list(ends)
            moved[k] = end.moved(move[:3], move[3:])
            quickened[k] = end.quickened(move[:3], move[3:])
            wrench = ca.jacobian(self.distance(*moved), move).T @ normal
            if self.directions:
                wrench += ca.jacobian(self.along(*quickened), move).T @ friction
            wrench = ca.substitute(wrench, move, ca.SX.zeros(6, 1))
            found.append(Wrench(point.body, end.x, wrench[:3], wrench[3:]))
        return found


class SlackRope(BetweenPoints):
    """A rope from point to point that may hang loose."""

    what = "slack rope"

    def __init__(self, name: str, points: Sequence[Point], length: ca.SX, *law) -> None:
        super().__init__(name, *law)
        self.points, self.length = tuple(points), length

    def distance(self, *ends: Frame) -> ca.SX:
        spans = [ca.norm_2(after.x - before.x) for before, after in pairwise(ends)]
        return self.length - sum(spans, ca.SX(0))


class Touch(BetweenPoints):
    """A point or ball b above the line (the x-axis) or plane (the x- and y-axes) of a."""

    what = "touch"

    def __init__(self, name: str, a: Point, b: Point, radius: ca.SX, *law) -> None:
        super().__init__(name, *law)
        self.points, self.radius = (a, b), radius
        self.directions = a.body.dimension - 1

    def distance(self, *ends: Frame) -> ca.SX:
        a, b = ends
        return ca.dot(a.axis(self.directions), b.x - a.x) - self.radius

    def along(self, *ends: Frame) -> ca.SX:
        a, b = ends
        down = -self.radius * a.axis(self.directions)
        slip = b.v + cross(b.w, down) - a.v - cross(a.w, b.x + down - a.x)
        return ca.vertcat(*[ca.dot(slip, a.axis(k)) for k in range(self.directions)])

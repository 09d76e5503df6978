"""Forces: what acts on bodies and joints beside gravity and constraints.

A load says what it does as *efforts*, pairs of a velocity and the force that does work on it, from which the
equations of motion follow, and as *wrenches* on bodies, from which the reactions in joints do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import casadi as ca

from holonome.arguments import shown
from holonome.bodies.body import Body, Point
from holonome.bodies.geometry import ZERO, cross, symbolic
from holonome.bodies.joint import ANGLE, BALL, DISPLACEMENT, Joint
from holonome.bodies.kinematics import Kinematics
from holonome.errors import ModelError

Law = Callable[[dict[str, Any]], ca.SX]
"""A traced law: from the expressions of what it may ask for to its value."""


class Wrench(NamedTuple):
    """A force on a body at a place, and a moment, in the axes of the ground."""

    body: Body
    at: ca.SX
    force: ca.SX
    moment: ca.SX


class Effort(NamedTuple):
    """A force and the velocity on which it does work."""

    velocity: ca.SX
    force: ca.SX


@dataclass(frozen=True, eq=False)
class Scene:
    """What a load may ask for: kinematics, time, parameters, and the multipliers of the rows of a joint."""

    kinematics: Kinematics
    t: ca.SX
    p: Any
    multipliers: dict[str, ca.SX] = field(default_factory=dict)
    forces: Callable[[str], ca.SX] | None = None


class Load:
    """Base class of all loads.

    Attributes
    ----------
    name
        What the user calls it.
    """

    name: str
    what = "force"
    points: tuple[Point, ...] = ()
    joint: Joint | None = None
    needs_multipliers = False

    def efforts(self, scene: Scene) -> list[Effort]:
        return []

    def wrenches(self, scene: Scene) -> list[Wrench]:
        return []

    def __repr__(self) -> str:
        where = self.joint.name if self.joint is not None else ", ".join(map(repr, self.points))
        return f"{self.what} {self.name!r}" + (f" at {where}" if where else "")


def joint_wrenches(scene: Scene, joint: Joint, values: Sequence[ca.SX]) -> list[Wrench]:
    """What forces on the coordinates of a joint do to its bodies: equal and opposite on both; on amplitudes
    of a flexible body they act within it.
    """
    if joint.amplitudes is not None:
        return []
    a, b = scene.kinematics.ends(joint)
    force, moment = ca.SX(3, 1), ca.SX(3, 1)
    cross_axes = {"angle x": a.axis(0), "angle y": b.axis(1), "angle": a.axis(2)}
    plane = joint.points[0].body.dimension == 2
    slides = {"displacement": a.axis(0 if plane else 2), "x": a.axis(0), "y": a.axis(1), "z": a.axis(2)}
    for coordinate, value in zip(joint.coordinates, values, strict=True):
        if coordinate.kind == DISPLACEMENT:
            force += slides[coordinate.name] * value
        elif coordinate.kind == ANGLE:
            moment += cross_axes[coordinate.name] * value
    first, second = joint.bodies
    return [Wrench(second, b.x, force, moment), Wrench(first, b.x, -force, -moment)]


class JointForce(Load):
    """A torque about a turning joint or a force along a sliding one, by a law of t, angle or displacement,
    rate and p.
    """

    joint: Joint

    def __init__(self, name: str, joint: Joint, which: int, law: Law, what: str) -> None:
        self.name, self.joint, self.which, self.law, self.what = name, joint, which, law, what

    def value(self, scene: Scene) -> ca.SX:
        coordinate = self.joint.coordinates[self.which]
        measured = scene.kinematics.coordinates(self.joint)[self.which]
        given = {
            "t": scene.t,
            coordinate.kind: measured,
            "rate": scene.kinematics.rate(measured),
            "p": scene.p,
        }
        return self.law(given)

    def efforts(self, scene: Scene) -> list[Effort]:
        measured = scene.kinematics.coordinates(self.joint)[self.which]
        return [Effort(scene.kinematics.rate(measured), self.value(scene))]

    def wrenches(self, scene: Scene) -> list[Wrench]:
        values = [ca.SX(0)] * len(self.joint.coordinates)
        values[self.which] = self.value(scene)
        return joint_wrenches(scene, self.joint, values)


class PointForce(Load):
    """Forces at points, by a law of t, their positions x and velocities v, and p."""

    def __init__(self, name: str, points: tuple[Point, ...], law: Law, what: str = "force") -> None:
        self.name, self.points, self.law, self.what = name, points, law, what

    def _forces(self, scene: Scene) -> list[ca.SX]:
        frames = [scene.kinematics.at(point) for point in self.points]
        dimension = self.points[0].body.dimension
        x, v = (
            ca.vertcat(*[part[:dimension] for part in parts])
            for parts in ([frame.x for frame in frames], [frame.v for frame in frames])
        )
        values = self.law({"t": scene.t, "x": x, "v": v, "p": scene.p})
        if dimension == 3:
            return ca.vertsplit(values, 3)
        return [ca.vertcat(part, 0) for part in ca.vertsplit(values, 2)]

    def efforts(self, scene: Scene) -> list[Effort]:
        velocities = [scene.kinematics.at(point).v for point in self.points]
        return [Effort(*pair) for pair in zip(velocities, self._forces(scene), strict=True)]

    def wrenches(self, scene: Scene) -> list[Wrench]:
        return [
            Wrench(point.body, scene.kinematics.at(point).x, force, ZERO)
            for point, force in zip(self.points, self._forces(scene), strict=True)
        ]


class BodyTorque(Load):
    """A torque on a body, in the axes of the ground, by a law of t, the angular velocity w and p."""

    what = "torque"

    def __init__(self, name: str, body: Body, law: Law) -> None:
        self.name, self.body, self.law = name, body, law

    def _value(self, scene: Scene) -> tuple[ca.SX, ca.SX]:
        w = scene.kinematics.frame(self.body).w
        plane = self.body.dimension == 2
        value = self.law({"t": scene.t, "w": w[2] if plane else w, "p": scene.p})
        return w, ca.vertcat(0, 0, value) if plane else value

    def efforts(self, scene: Scene) -> list[Effort]:
        return [Effort(*self._value(scene))]

    def wrenches(self, scene: Scene) -> list[Wrench]:
        return [Wrench(self.body, scene.kinematics.frame(self.body).x, ZERO, self._value(scene)[1])]


class Between(Load):
    """A force along the line between two points, which pulls them together where it is positive, by a law of
    t, distance, rate and p.
    """

    def __init__(self, name: str, points: tuple[Point, ...], law: Law) -> None:
        self.name, self.points, self.law = name, points, law

    def _pull(self, scene: Scene) -> tuple[ca.SX, ca.SX, ca.SX]:
        a, b = (scene.kinematics.at(point) for point in self.points)
        d = b.x - a.x
        distance = ca.norm_2(d)
        direction = d / distance
        rate = ca.dot(direction, b.v - a.v)
        return direction, rate, self.law({"t": scene.t, "distance": distance, "rate": rate, "p": scene.p})

    def efforts(self, scene: Scene) -> list[Effort]:
        _, rate, force = self._pull(scene)
        return [Effort(rate, -force)]

    def wrenches(self, scene: Scene) -> list[Wrench]:
        direction, _, force = self._pull(scene)
        a, b = self.points
        return [
            Wrench(a.body, scene.kinematics.at(a).x, force * direction, ZERO),
            Wrench(b.body, scene.kinematics.at(b).x, -force * direction, ZERO),
        ]


class Spring(Load):
    """An elastic element: deformations c that the force −c_qᵀ (K c + D c′) answers.

    Attributes
    ----------
    stiffness, damping
        K and D: matrices, or numbers for all rows.
    """

    what = "spring"
    stiffness: ca.SX
    damping: ca.SX

    def deformation(self, scene: Scene) -> ca.SX:
        raise NotImplementedError

    def tension(self, scene: Scene) -> ca.SX:
        """K c + D c′."""
        c = self.deformation(scene)
        return self.stiffness @ c + self.damping @ scene.kinematics.rate(c)


class PointSpring(Spring):
    """A spring between two points; one of length zero is elastic in all directions."""

    def __init__(self, name: str, a: Point, b: Point, stiffness: Any, damping: Any, length: Any) -> None:
        self.name, self.points = name, (a, b)
        self.length = symbolic(length)
        self.vector = self.length.is_constant() and float(self.length) == 0.0
        rows = a.body.dimension if self.vector else 1
        self.stiffness, self.damping = (symbolic(x) * ca.SX(ca.DM.eye(rows)) for x in (stiffness, damping))

    def _between(self, scene: Scene) -> ca.SX:
        a, b = (scene.kinematics.at(point) for point in self.points)
        return b.x - a.x

    def deformation(self, scene: Scene) -> ca.SX:
        d = self._between(scene)
        return d[: self.points[0].body.dimension] if self.vector else ca.norm_2(d) - self.length

    def wrenches(self, scene: Scene) -> list[Wrench]:
        d, tension = self._between(scene), self.tension(scene)
        pull = (
            tension * d / ca.norm_2(d)
            if not self.vector
            else ca.vertcat(tension, ca.SX(3 - tension.numel(), 1))
        )
        a, b = self.points
        return [
            Wrench(a.body, scene.kinematics.at(a).x, pull, ZERO),
            Wrench(b.body, scene.kinematics.at(b).x, -pull, ZERO),
        ]


class JointSpring(Spring):
    """A spring on a coordinate of a joint."""

    def __init__(self, name: str, joint: Joint, which: int, stiffness: Any, damping: Any, rest: Any) -> None:
        self.name, self.joint, self.which = name, joint, which
        self.stiffness, self.damping, self.rest = map(symbolic, (stiffness, damping, rest))

    def deformation(self, scene: Scene) -> ca.SX:
        assert self.joint is not None
        return scene.kinematics.coordinates(self.joint)[self.which] - self.rest

    def wrenches(self, scene: Scene) -> list[Wrench]:
        assert self.joint is not None
        values = [ca.SX(0)] * len(self.joint.coordinates)
        values[self.which] = -self.tension(scene)
        return joint_wrenches(scene, self.joint, values)


class Bushing(Spring):
    """A bushing between two points: displacement and angles of b as the axes of a see them.

    In space (d_x, d_y, d_z, ψ, θ, φ) as in :func:`holonome.bushing.deformation_3d`, in the plane
    (d_x, d_y, φ).
    """

    what = "bushing"

    def __init__(self, name: str, a: Point, b: Point, stiffness: ca.SX, damping: ca.SX) -> None:
        self.name, self.points, self.stiffness, self.damping = name, (a, b), stiffness, damping

    def _rows(self, a, b) -> ca.SX:
        d = a.R.T @ (b.x - a.x)
        if self.points[0].body.dimension == 2:
            return ca.vertcat(d[0], d[1], b.angle - a.angle)
        R = a.R.T @ b.R
        return ca.vertcat(d, -R[1, 2], R[0, 2], ca.atan2(R[1, 0], R[1, 1]))

    def deformation(self, scene: Scene) -> ca.SX:
        return self._rows(*(scene.kinematics.at(point) for point in self.points))

    def wrenches(self, scene: Scene) -> list[Wrench]:
        """By virtual displacements of b; the opposite acts on a, at the same place."""
        a, b = (scene.kinematics.at(point) for point in self.points)
        shift = ca.SX.sym("virtual displacement", 6)
        rows = self._rows(a, b.moved(shift[:3], shift[3:]))
        W = ca.substitute(ca.jacobian(rows, shift), shift, ca.SX.zeros(6, 1))
        wrench = -W.T @ self.tension(scene)
        first, second = (point.body for point in self.points)
        return [Wrench(second, b.x, wrench[:3], wrench[3:]), Wrench(first, b.x, -wrench[:3], -wrench[3:])]


class Friction(Load):
    """Coulomb friction in a joint, by the size N of the force that its rows transmit: a torque
    −μ r N tanh(ω/ω₀) about a turning joint, a force −μ N tanh(v/v₀) along a sliding one.
    """

    what = "friction"
    needs_multipliers = True

    def __init__(
        self, name: str, joint: Joint, which: int, coefficient: Any, radius: Any, speed: Any
    ) -> None:
        self.name, self.joint, self.which = name, joint, which
        self.coefficient, self.radius, self.speed = map(symbolic, (coefficient, radius, speed))

    def _value(self, scene: Scene) -> tuple[ca.SX, ca.SX]:
        assert self.joint is not None
        assert scene.forces is not None
        rate = scene.kinematics.rate(scene.kinematics.coordinates(self.joint)[self.which])
        force = scene.forces(self.joint.name)
        N = ca.sqrt(ca.dot(force, force) + 1e-300)
        return rate, -self.coefficient * self.radius * N * ca.tanh(rate / self.speed)

    def efforts(self, scene: Scene) -> list[Effort]:
        return [Effort(*self._value(scene))]

    def wrenches(self, scene: Scene) -> list[Wrench]:
        assert self.joint is not None
        values = [ca.SX(0)] * len(self.joint.coordinates)
        values[self.which] = self._value(scene)[1]
        return joint_wrenches(scene, self.joint, values)


class Contact(Load):
    """A point or sphere that touches a plane, by penalty after Hunt & Crossley: a normal force
    k δ^e (1 + c δ′) where it is deeper than zero, and friction −μ N tanh(|v_t|/v₀) against the sliding.
    """

    what = "contact"

    def __init__(
        self,
        name: str,
        a: Point,
        b: Point,
        radius: Any,
        stiffness: Any,
        exponent: float,
        damping: Any,
        friction: Any,
        speed: Any,
    ) -> None:
        self.name, self.points, self.exponent = name, (a, b), exponent
        self.radius, self.stiffness, self.damping = map(symbolic, (radius, stiffness, damping))
        self.friction, self.speed = map(symbolic, (friction, speed))

    def _force(self, scene: Scene) -> tuple[ca.SX, ca.SX]:
        """The place of contact and the force there."""
        a, b = (scene.kinematics.at(point) for point in self.points)
        n = a.axis(1 if self.points[0].body.dimension == 2 else 2)
        place = b.x - self.radius * n
        depth = -ca.dot(n, place - a.x)
        slip = b.v + cross(b.w, place - b.x) - a.v - cross(a.w, place - a.x)
        inside = ca.fmax(depth, 0)
        pressed = self.stiffness * inside**self.exponent
        normal = ca.fmax(pressed * (1 - self.damping * ca.dot(n, slip)), 0)
        along = slip - ca.dot(n, slip) * n
        size = ca.sqrt(ca.dot(along, along) + self.speed**2 * 1e-12)
        return place, normal * (n - self.friction * ca.tanh(size / self.speed) / size * along)

    def efforts(self, scene: Scene) -> list[Effort]:
        place, force = self._force(scene)
        a, b = (scene.kinematics.frame(point.body) for point in self.points)
        slip = b.v + cross(b.w, place - b.x) - a.v - cross(a.w, place - a.x)
        return [Effort(slip, force)]

    def wrenches(self, scene: Scene) -> list[Wrench]:
        place, force = self._force(scene)
        first, second = (point.body for point in self.points)
        return [Wrench(second, place, force, ZERO), Wrench(first, place, -force, ZERO)]


def stiffness_matrix(argument: str, value: Any, rows: int) -> ca.SX:
    """A number, a diagonal or a matrix, in full."""
    try:
        K = symbolic(value)
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        raise ModelError(f"{argument}: {shown(value)}; give numbers") from None
    if K.numel() == 1:
        return K * ca.SX(ca.DM.eye(rows))
    if K.shape == (rows, 1):
        return ca.diag(K)
    if K.shape == (rows, rows):
        return K
    raise ModelError(
        f"{argument}: shape {K.shape}; give a number, {rows} numbers or a {rows} × {rows} matrix"
    )


def counts_motion(joint: Joint) -> bool:
    """Whether a joint has coordinates that a load can act on."""
    return any(coordinate.kind in (ANGLE, DISPLACEMENT) for coordinate in joint.coordinates) and not any(
        motion.kind == BALL for motion in joint.motions or ()
    )

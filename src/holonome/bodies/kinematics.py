"""Where the links and bodies of a tree are, and how they move, in symbols.

Two recursions run from the ground outwards.  In the axes of the links themselves, for the equations of
motion, with R and d the place of a link in its parent's frame, ω_rel and v_rel its motion there:

    ω = Rᵀ ω_p + ω_rel                     V = Rᵀ (V_p + ω_p × d) + v_rel
    α = Rᵀ α_p + ω × ω_rel                 A = Rᵀ (A_p + α_p × d + ω_p × (ω_p × d)) + 2 Rᵀω_p × v_rel

where α and A are the accelerations without those of the coordinates, and A of the ground is −gravity.  And in
the axes of the ground, for the places of points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca

from holonome.bodies.body import Body, Point
from holonome.bodies.geometry import IDENTITY, ZERO, Frame, constant, cross, rotation, spin, turned, unit
from holonome.bodies.joint import ANGLE, BALL, QUATERNION, SCREW, SLIDE, TURN, Joint
from holonome.bodies.tree import Group, Link, Tree


@dataclass(frozen=True, eq=False)
class LinkState:
    """A link in its own axes, and where it lies in those of the ground."""

    R: ca.SX
    d: ca.SX
    w: ca.SX
    V: ca.SX
    alpha: ca.SX
    A: ca.SX
    frame: Frame


class Kinematics:
    """The kinematics of a tree for symbols q and v of its coordinates."""

    def __init__(
        self, tree: Tree, q: ca.SX, v: ca.SX, gravity: ca.SX, windings: Mapping[str, ca.SX] | None = None
    ) -> None:
        self.tree, self.q, self.v, self.windings = tree, q, v, windings or {}
        none = ca.SX(3, 1)
        still = Frame(ZERO, IDENTITY, ca.SX(0), none, none)
        self._ground = LinkState(IDENTITY, ZERO, none, none, none, -gravity, still)
        self.links: list[LinkState] = []
        for link in tree.links:
            self.links.append(self._moved(link))
        self._frames: dict[str, Frame] = {}

    def state(self, link: int) -> LinkState:
        return self._ground if link < 0 else self.links[link]

    def _moved(self, link: Link) -> LinkState:
        parent, motion = self.state(link.parent), link.motion
        q, rate = (x[link.first : link.first + motion.size] for x in (self.q, self.v))
        turn, shift, angle, second = IDENTITY, ZERO, ca.SX(0), None
        if motion.of is not None:
            amplitudes, rates = q, rate
            q = motion.of(amplitudes)
            rate = ca.jtimes(q, amplitudes, rates)
            second = ca.jtimes(rate, amplitudes, rates)
        w_rel, v_rel = ca.SX(3, 1), ca.SX(3, 1)
        axis = motion.sign * unit(motion.axis)
        if motion.kind in (TURN, SCREW):
            angle = motion.sign * q
            turn, w_rel = turned(motion.axis, angle), axis * rate
        if motion.kind == SLIDE:
            shift, v_rel = axis * q, axis * rate
        if motion.kind == SCREW:
            shift, v_rel = axis * motion.pitch * q, axis * motion.pitch * rate
        if motion.kind == BALL:
            turn, w_rel = rotation(q), spin(q, rate)
        place = link.place.R
        R = turn if place is IDENTITY else place if turn is IDENTITY else place @ turn
        d = link.place.x + place @ shift
        Rt = R.T
        carried = Rt @ parent.w
        w = carried + w_rel
        across = cross(parent.w, d)
        V = Rt @ (parent.V + across) + v_rel
        alpha = Rt @ parent.alpha + cross(w, w_rel)
        A = Rt @ (parent.A + cross(parent.alpha, d) + cross(parent.w, across)) + 2 * cross(carried, v_rel)
        if second is not None and motion.kind == SLIDE:
            A += axis * second
        elif second is not None:
            alpha += axis * second
        carrier = parent.frame.at(d, R, _constant_angle(place) + angle)
        frame = carrier.quickened(carrier.R @ v_rel, carrier.R @ w_rel)
        return LinkState(R, d, w, V, alpha, A, frame)

    def frame(self, body: Body) -> Frame:
        """Where a body is and how it moves."""
        if body.name not in self._frames:
            group = self.tree.group_of[body.name]
            self._frames[body.name] = self._in_link(group, self.tree.place_in_group(body))
        return self._frames[body.name]

    def _in_link(self, group: Group, place) -> Frame:
        inside = group.place @ place
        return self.state(group.link).frame.at(inside.x, inside.R, _constant_angle(inside.R))

    def at(self, point: Point, turn: ca.SX = IDENTITY) -> Frame:
        """The frame of a point, turned further."""
        R = constant(point.turn) @ turn
        return self.frame(point.body).at(point.position, R, _constant_angle(R))

    def ends(self, joint: Joint) -> list[Frame]:
        """The frames of a joint at its points, in the joint's axes."""
        frames = [self.at(point, constant(joint.turn(k))) for k, point in enumerate(joint.points)]
        if joint.amplitudes is not None:
            frames[0] = self._deflected(frames[0], joint, self.q[self.tree.amplitudes[joint.amplitudes]])
        return frames

    def _deflected(self, frame: Frame, joint: Joint, amplitudes: ca.SX) -> Frame:
        """Where the station of a flexible body is, from where it would be without deflection."""
        for motion in joint.motions or ():
            value = motion.of(amplitudes) if motion.of else ca.SX(0)
            if motion.kind == SLIDE:
                frame = frame.at(unit(motion.axis) * value)
            else:
                frame = frame.at(ZERO, turned(motion.axis, value), value)
        return frame

    def coordinates(self, joint: Joint) -> list[ca.SX]:
        """The coordinates of a joint: those of the tree itself, else what is measured."""
        if joint.name in self.tree.places:
            values = [self.q[number] for number in self.tree.places[joint.name]]
            ball = joint.coordinates[-1:] and joint.coordinates[-1].kind == QUATERNION
            if self.tree.edges[joint.name] and ball:  # walked backward it is turned back
                values[-3:] = [-value for value in values[-3:]]
            return values
        values = joint.measured(*self.ends(joint))
        winding = self.windings.get(joint.name)
        if winding is None:
            return values
        kinds = [coordinate.kind for coordinate in joint.coordinates]
        angles = iter(ca.vertsplit(winding))
        return [
            _nearest(value, next(angles)) if kind == ANGLE else value
            for kind, value in zip(kinds, values, strict=True)
        ]

    def rate(self, value: ca.SX) -> ca.SX:
        """The rate of change of an expression of q."""
        return ca.jtimes(value, self.q, self.v)


def _nearest(angle: ca.SX, winding: ca.SX) -> ca.SX:
    """An angle that is known up to full turns, near one that is known roughly."""
    return winding + ca.atan2(ca.sin(angle - winding), ca.cos(angle - winding))


def winds(joint: Joint, tree: Tree) -> list[str]:
    """The angles of a joint that are measured only up to full turns."""
    if joint.name in tree.places or joint.points[0].body.dimension == 2 or joint.what == "screw":
        return []
    return [coordinate.name for coordinate in joint.coordinates if coordinate.kind == ANGLE]


def _constant_angle(R: ca.SX) -> ca.SX:
    """The angle of a rotation about z; of others it means nothing, and nobody asks for it."""
    if R is IDENTITY:
        return ca.SX(0)
    angle = ca.atan2(R[1, 0], R[0, 0])
    return ca.SX(float(ca.evalf(angle))) if angle.is_constant() else angle

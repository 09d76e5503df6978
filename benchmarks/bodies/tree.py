"""What the codes with joint coordinates have in common: the tree of joints, its velocities at the start, and
the pairs of points that close the loops. The root of the tree is the ground.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bodies.models import GROUND, Body, Drive, Joint, Model, normals


@dataclass(frozen=True)
class Branch:
    """A body, how it hangs on the body before it, and that body's name; a body without a joint is free."""

    body: Body
    before: str
    joint: Joint | None
    drive: Drive | None

    def rates(self, model: Model) -> np.ndarray:
        """Velocities of the joint at the start: of a revolute or prismatic joint along its axis, of a
        universal one about its two axes, of a spherical one the relative angular velocity; velocity and
        angular velocity of a free body.
        """
        b, joint = self.body, self.joint
        if joint is None:
            return np.concatenate([b.velocity, b.angular_velocity])
        still = Body(GROUND, 0.0, (0.0, 0.0, 0.0), ())
        a = still if self.before == GROUND else model.body(self.before)
        w = np.subtract(b.angular_velocity, a.angular_velocity)
        if joint.kind == "revolute":
            return np.array([w @ joint.axis])
        if joint.kind == "universal":
            return np.array([w @ joint.axis, w @ joint.axis2])
        if joint.kind == "spherical":
            return w
        first, second = (
            np.array(x.velocity) + np.cross(x.angular_velocity, np.subtract(joint.point, x.center))
            for x in (a, b)
        )
        return np.array([(second - first) @ joint.axis])


def tree(model: Model) -> list[Branch]:
    """The bodies, each after the one on which it hangs."""
    drives = {drive.joint: drive for drive in model.drives}
    branches, placed = [], {GROUND}
    joints = [joint for joint in model.joints if not joint.loop]
    left = list(model.bodies)
    hung = {joint.second for joint in joints}
    while left:
        for body in left:
            joint = next((j for j in joints if j.second == body.name), None)
            if body.name not in hung or (joint is not None and joint.first in placed):
                before = GROUND if joint is None else joint.first
                branches.append(Branch(body, before, joint, joint and drives.get(joint.name)))
                placed.add(body.name)
                left.remove(body)
                break
        else:
            raise ValueError(f"{model.name}: {[body.name for body in left]} are not reached from the ground")
    return branches


@dataclass(frozen=True)
class Pair:
    """Two points, one on each body, that stay together."""

    first: str
    second: str
    point: np.ndarray


def pairs(model: Model, apart: float = 0.2) -> list[Pair]:
    """The joints that close loops as pairs of points: a spherical joint is one, a revolute joint of a planar
    mechanism too, one in space is two on its axis.
    """
    found = []
    for joint in model.joints:
        if not joint.loop:
            continue
        offsets = [0.0] if joint.kind == "spherical" or model.planar else [-apart / 2, apart / 2]
        axis = np.zeros(3) if joint.axis is None else np.array(joint.axis)
        found += [Pair(joint.first, joint.second, joint.point + offset * axis) for offset in offsets]
    return found


def frame(axis) -> np.ndarray:
    """A rotation matrix whose third column is the axis."""
    first, second = normals(axis)
    return np.stack([first, second, axis], axis=1)


def quaternion(R: np.ndarray) -> np.ndarray:
    """A unit quaternion, w first and not negative, of a rotation matrix."""
    K = np.array(
        [
            [R[0, 0] - R[1, 1] - R[2, 2], 0, 0, 0],
            [R[0, 1] + R[1, 0], R[1, 1] - R[0, 0] - R[2, 2], 0, 0],
            [R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], R[2, 2] - R[0, 0] - R[1, 1], 0],
            [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], np.trace(R)],
        ]
    )
    x, y, z, w = np.linalg.eigh(K / 3)[1][:, -1]
    q = np.array([w, x, y, z])
    return q if w >= 0 else -q

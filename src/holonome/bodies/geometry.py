"""Vectors, rotations and quaternions in symbols.

Everything is in space: a mechanism in the plane has its bodies at z = 0 and turns about z, and what is
multiplied by zero disappears while the expressions are made.  Quaternions are unit quaternions (w, x, y, z).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from holonome.tracing import Traced
from holonome.tracing.values import sx

ZERO = ca.SX(3, 1)
IDENTITY = ca.SX(ca.DM.eye(3))
_TINY = 1e-15


def symbolic(values: object) -> ca.SX:
    """Numbers and traced values as a column, or a matrix, of expressions."""
    if isinstance(values, ca.SX):
        return values
    if isinstance(values, (Traced, float, int)):
        return sx(values)
    array = np.asarray(values, dtype=object)
    if array.ndim == 2:
        return ca.vertcat(*[ca.horzcat(*map(sx, row)) for row in array])
    return ca.vertcat(*map(sx, array))


def constant(matrix: np.ndarray) -> ca.SX:
    """A matrix of numbers in which zeros and ones that are rounded are exact, so that they fold."""
    near = np.round(matrix)
    return ca.SX(ca.DM(np.where(np.abs(matrix - near) < _TINY, near, matrix)))


def skew(x: ca.SX) -> ca.SX:
    """The matrix of x ×."""
    return ca.vertcat(ca.horzcat(0, -x[2], x[1]), ca.horzcat(x[2], 0, -x[0]), ca.horzcat(-x[1], x[0], 0))


def cross(a: ca.SX, b: ca.SX) -> ca.SX:
    return ca.cross(a, b)


def unit(axis: int) -> ca.SX:
    """A unit vector along x, y or z."""
    return ca.SX(ca.DM.eye(3)[:, axis])


def turned(axis: int, angle: ca.SX) -> ca.SX:
    """The rotation about one of the axes."""
    c, s = ca.cos(angle), ca.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = ca.SX(ca.DM.eye(3))
    R[i, i], R[j, j], R[i, j], R[j, i] = c, c, -s, s
    return R


def rotation(e: ca.SX) -> ca.SX:
    """The rotation matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = ca.vertsplit(e)
    return ca.vertcat(
        ca.horzcat(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        ca.horzcat(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        ca.horzcat(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )


def spin(e: ca.SX, rate: ca.SX) -> ca.SX:
    """The angular velocity ω = 2 E(e) e′ in the axes of the body that a unit quaternion turns."""
    w, x, y, z = ca.vertsplit(e)
    return 2 * ca.vertcat(
        -x * rate[0] + w * rate[1] + z * rate[2] - y * rate[3],
        -y * rate[0] - z * rate[1] + w * rate[2] + x * rate[3],
        -z * rate[0] + y * rate[1] - x * rate[2] + w * rate[3],
    )


def frame_along(axis: np.ndarray) -> np.ndarray:
    """A rotation matrix whose third column points along an axis: one that exchanges coordinates, followed by
    the smallest rotation; for coordinate axes its entries are 0 and ±1.
    """
    u = axis / np.linalg.norm(axis)
    k = int(np.argmax(np.abs(u)))
    columns = np.roll(np.eye(3), 2 - k, axis=1)  # its third column is along k
    if u[k] < 0:
        columns = columns @ np.diag([1.0, -1.0, -1.0])
    z = columns[:, 2]
    v, c = np.cross(z, u), float(z @ u)
    V = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return (np.eye(3) + V + V @ V / (1 + c)) @ columns


@dataclass(frozen=True, eq=False)
class Frame:
    """Where something is and how it moves, in the axes of the ground.

    Attributes
    ----------
    x, R
        Its origin, and the rotation matrix from its axes to those of the ground.
    angle
        In the plane: by how much it is turned, over any number of turns.
    v, w
        Velocity of the origin, and angular velocity.
    """

    x: ca.SX
    R: ca.SX
    angle: ca.SX
    v: ca.SX
    w: ca.SX

    @classmethod
    def symbols(cls) -> Frame:
        """A frame of which nothing is known."""
        vectors = (ca.SX.sym(name, 3) for name in ("v", "w"))
        return cls(ca.SX.sym("x", 3), ca.SX.sym("R", 3, 3), ca.SX.sym("angle"), *vectors)

    def axis(self, k: int) -> ca.SX:
        return self.R[:, k]

    def at(self, position: ca.SX, turn: ca.SX = IDENTITY, angle: ca.SX | float = 0.0) -> Frame:
        """A frame that is fixed in this one."""
        arm = self.R @ position
        return Frame(self.x + arm, self.R @ turn, self.angle + angle, self.v + cross(self.w, arm), self.w)

    def moved(self, shift: ca.SX, turn: ca.SX) -> Frame:
        """The frame after a small displacement of its origin and a small rotation about it."""
        R = self.R + skew(turn) @ self.R
        return replace(self, x=self.x + shift, R=R, angle=self.angle + turn[2])

    def quickened(self, v: ca.SX, w: ca.SX) -> Frame:
        """The frame with additional velocities."""
        return replace(self, v=self.v + v, w=self.w + w)

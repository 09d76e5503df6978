"""What is known of one joint or one body along a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from holonome.bodies.joint import ANGLE, DISPLACEMENT, QUATERNION
from holonome.errors import ModelError


@dataclass(frozen=True, eq=False)
class JointMotion:
    """Coordinates of a joint along a run, and their rates, by name.

    Attributes
    ----------
    values, rates
        Dicts of arrays, one number for each point of the run.
    angle, displacement, rate
        Of a joint with one angle or one displacement; angles go on over any number of turns.
    rotation
        Of a ball joint, a scipy Rotation for each point.
    """

    name: str
    t: np.ndarray = field(repr=False)
    values: dict[str, np.ndarray] = field(repr=False)
    rates: dict[str, np.ndarray] = field(repr=False)
    kinds: dict[str, str] = field(repr=False)

    def _only(self, kind: str) -> str:
        names = [name for name, which in self.kinds.items() if which == kind]
        if len(names) != 1:
            there = ", ".join(self.kinds) or "no coordinates"
            raise AttributeError(f"{self.name}: this joint has {there}; use .values and .rates, by name")
        return names[0]

    @property
    def angle(self) -> np.ndarray:
        return self.values[self._only(ANGLE)]

    @property
    def displacement(self) -> np.ndarray:
        return self.values[self._only(DISPLACEMENT)]

    @property
    def rate(self) -> np.ndarray:
        names = [name for name, kind in self.kinds.items() if kind != QUATERNION]
        if len(names) != 1:
            raise AttributeError(f"{self.name}: this joint has several coordinates; use .rates, by name")
        return self.rates[names[0]]

    @property
    def rotation(self) -> Rotation:
        names = [name for name, kind in self.kinds.items() if kind == QUATERNION]
        if not names:
            raise AttributeError(f"{self.name}: this joint has no rotation in space; use .angle")
        w, x, y, z = (self.values[name] for name in names)
        return Rotation.from_quat(np.stack([x, y, z, w], axis=-1))


@dataclass(frozen=True, eq=False)
class BodyMotion:
    """A body along a run, in the axes of the ground.

    Attributes
    ----------
    position, velocity, acceleration
        Of the origin of its axes, (2 or 3, points).
    angle
        In the plane: its angle, over any number of turns.
    rotation
        A scipy Rotation for each point.
    angular_velocity, angular_acceleration
        Numbers in the plane, (3, points) in space.
    """

    name: str
    position: np.ndarray = field(repr=False)
    velocity: np.ndarray = field(repr=False)
    acceleration: np.ndarray = field(repr=False)
    matrix: np.ndarray = field(repr=False)  # (points, 3, 3)
    angle: np.ndarray = field(repr=False)
    angular_velocity: np.ndarray = field(repr=False)
    angular_acceleration: np.ndarray = field(repr=False)
    _center: np.ndarray = field(repr=False)
    _points: dict[str, np.ndarray] = field(repr=False)

    @property
    def at_center(self) -> np.ndarray:
        """The path of the centre of mass."""
        return self.point(self._center[: len(self.position)].tolist())

    @property
    def rotation(self) -> Rotation:
        return Rotation.from_matrix(self.matrix)

    def seen_from(self, other: BodyMotion) -> BodyMotion:
        """The motion in the axes of another body, which turn and move."""
        flat, dimension = len(self.position) == 2, len(self.position)
        d, v, a, w, alpha = (
            in_space(mine) - in_space(theirs)
            for mine, theirs in (
                (self.position, other.position),
                (self.velocity, other.velocity),
                (self.acceleration, other.acceleration),
                (self.angular_velocity, other.angular_velocity),
                (self.angular_acceleration, other.angular_acceleration),
            )
        )
        W, A = in_space(other.angular_velocity), in_space(other.angular_acceleration)
        carried = np.cross(W, d, axis=0)
        v = v - carried
        a = a - np.cross(A, d, axis=0) - np.cross(W, carried + 2 * v, axis=0)
        alpha = alpha - np.cross(W, w, axis=0)
        d, v, a, w, alpha = (np.einsum("kji,jk->ik", other.matrix, x) for x in (d, v, a, w, alpha))
        return BodyMotion(
            self.name,
            d[:dimension],
            v[:dimension],
            a[:dimension],
            np.swapaxes(other.matrix, 1, 2) @ self.matrix,
            self.angle - other.angle,
            w[2] if flat else w,
            alpha[2] if flat else alpha,
            self._center,
            self._points,
        )

    def point(self, name: str | Sequence[float]) -> np.ndarray:
        """The path of a point of the body, by its name or by its coordinates in the axes of the body."""
        dimension = len(self.position)
        if isinstance(name, str):
            if name not in self._points:
                there = ", ".join(self._points) or "none"
                raise ModelError(f"{self.name}: there is no point {name!r}; its points are {there}")
            x = self._points[name]
        else:
            x = np.asarray(name, dtype=float)
            if x.shape != (dimension,):
                raise ModelError(f"{self.name}.point: {name!r}; give a name or {dimension} numbers")
            x = np.append(x, np.zeros(3 - dimension))
        return self.position + (self.matrix @ x).T[:dimension]


def in_space(vector: np.ndarray) -> np.ndarray:
    """A vector of the plane, or a number about z, as one of space."""
    if vector.ndim == 1:
        return np.stack([0 * vector, 0 * vector, vector])
    return vector if len(vector) == 3 else np.concatenate([vector, 0 * vector[:1]])


@dataclass(frozen=True, eq=False)
class Reaction:
    """What a joint does to its second body, at its point there, in the axes of the ground.

    Attributes
    ----------
    force, moment
        (2, points) and (points,) in the plane, (3, points) both in space.  The first body feels the opposite.
    place
        Where it acts.
    determined
        False if rows are redundant so that only sums of reactions follow from the motion; of the many
        reactions that are possible these are one choice.
    tension
        In a rod or a rope; in a rope that turns its pulleys one for each span, from its first point on.
        Negative where it is pushed, None in other joints.
    """

    name: str
    force: np.ndarray = field(repr=False)
    moment: np.ndarray = field(repr=False)
    place: np.ndarray = field(repr=False)
    determined: bool = True
    tension: np.ndarray | None = field(default=None, repr=False)

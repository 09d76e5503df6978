"""Singular positions of a driven mechanism: where branches cross, and where a drive turns back.

Where branches cross, the matrix is singular but the branch itself is smooth: such a position, with its
velocities and accelerations, is the limit from both sides.  Where the drive cannot go on, the position of the
dead point is located on the curve g = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from scipy.optimize import brentq

from holonome.analysis.driven import Driven
from holonome.analysis.newton import null_space
from holonome.analysis.poses import Pose, advance, least, pose_at
from holonome.dynamics.evaluation import Point
from holonome.dynamics.kernels import kernels
from holonome.errors import HolonomeError, ModelError

if TYPE_CHECKING:
    from holonome.analysis.kinematics import Kinematics

_BESIDE = 0.05
"""How far, as a fraction of a step between values, the limit at a singular position is taken."""

_LIMIT = ((1, 15 / 20), (2, -6 / 20), (3, 1 / 20))
"""Weights of the means of both sides, which leave an error of the sixth power of their distance."""


@dataclass(frozen=True)
class DeadPoint:
    """A singular position: its place in the arrays, the value of the first drive, and "end" or "passed"."""

    index: float
    value: float
    kind: str


def limit_at(
    driven: Driven, q: np.ndarray, before: np.ndarray | None, begin: np.ndarray, asked: tuple, s: np.ndarray
) -> Pose | None:
    """A singular position as the limit from both sides of the branch that goes straight on."""
    t, end, rate, acceleration = asked
    whole = end - begin
    reached: dict[int, Pose] = {}
    for shift in (-3, -2, -1, 1, 2, 3):
        target = begin + (1 + shift * _BESIDE) * whole
        if shift == -3:
            pose = advance(driven, q, before, begin, (t, target, rate, acceleration), s)
        else:
            guess = _extrapolated(reached, shift)
            pose = pose_at(driven, t, guess, target, rate, acceleration, s)
            if pose is not None and shift > -2 and not _near(reached, pose, guess):
                return None
        if pose is None:
            return None
        reached[shift] = pose
    return Pose(_mean(reached, "q"), _mean(reached, "v"), _mean(reached, "a"), 0.0)


def _extrapolated(reached: dict[int, Pose], shift: int) -> np.ndarray:
    """Where the polynomial through the positions so far leads."""
    places = list(reached)
    if len(places) == 1:
        return reached[places[0]].q
    weights = [
        np.prod([(shift - other) / (place - other) for other in places if other != place]) for place in places
    ]
    return np.sum([w * reached[place].q for w, place in zip(weights, places, strict=True)], axis=0)


def _near(reached: dict[int, Pose], pose: Pose, guess: np.ndarray) -> bool:
    places = list(reached)
    step = np.linalg.norm(reached[places[-1]].q - reached[places[-2]].q)
    return bool(np.linalg.norm(pose.q - guess) <= 0.1 * step)


def _mean(reached: dict[int, Pose], name: str) -> np.ndarray:
    parts = [w * (getattr(reached[k], name) + getattr(reached[-k], name)) for k, w in _LIMIT]
    return np.sum(parts, axis=0)


def determinant(driven: Driven, t: float, pose: Pose, s: np.ndarray) -> float:
    """A number that changes its sign where drives and constraints become dependent."""
    point = Point(driven.system, kernels(driven.system), t, s)
    G = point(pose.q, np.zeros(pose.q.size))["C"][: driven.system.model.position_rows]
    J = np.vstack([G, driven.gradient(t, pose.q, s)])
    if J.shape[0] != J.shape[1]:
        return 1.0
    size = np.linalg.norm(J, axis=1, keepdims=True)
    return float(np.linalg.det(J / np.maximum(size, max(1e-3 * np.max(size), 1e-300))))


def crossed(
    driven: Driven, old: Pose, new: Pose, begin: np.ndarray, asked: tuple, s: np.ndarray, index: int
) -> list[DeadPoint]:
    """A crossing of branches between two values."""
    t, end, rate, acceleration = asked
    a, b = determinant(driven, t, old, s), determinant(driven, t, new, s)
    if a * b >= 0:
        return []
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        pose = pose_at(
            driven, t, old.q + middle * (new.q - old.q), begin + middle * (end - begin), rate, acceleration, s
        )
        if pose is None or high - low < 1e-9:
            break
        value = determinant(driven, t, pose, s)
        low, high = (middle, high) if value * a > 0 else (low, middle)
    share = (low + high) / 2
    value = float(begin[0] + share * (end[0] - begin[0]))
    return [DeadPoint(index + share, value, "passed")]


def turning_point(
    driven: Driven, q: np.ndarray, t: float, s: np.ndarray, begin: np.ndarray, end: np.ndarray, index: int
) -> DeadPoint | None:
    """Where a single drive turns back on the curve g = 0."""
    if len(driven.names) != 1:
        return None
    point = Point(driven.system, kernels(driven.system), t, s)
    mg = driven.system.model.position_rows

    def tangent(x: np.ndarray, before: np.ndarray | None) -> tuple[np.ndarray, float]:
        G = point(x, np.zeros(x.size))["C"][:mg]
        along = null_space(G, 1e-9)[:, -1]
        slope = float(driven.gradient(t, x, s)[0] @ along)
        if before is not None:
            along = along * (1 if along @ before > 0 else -1)
        else:
            along = along * np.sign(slope * (end[0] - begin[0]))
        return along, float(driven.gradient(t, x, s)[0] @ along)

    def closed(x: np.ndarray) -> np.ndarray:
        for _ in range(8):
            pieces = point(x, np.zeros(x.size))
            x = x + least(pieces["C"][:mg], -pieces["g"])[0]
        return x

    try:
        along, slope = tangent(q, None)
        h = 0.02 * max(float(np.max(np.abs(q))), 1e-3)
        first = slope
        for _ in range(400):
            ahead = closed(q + h * along)
            turned, slope = tangent(ahead, along)
            if slope * first <= 0:
                share: Any = brentq(
                    lambda x: tangent(closed(q + x * h * along), along)[1], 0.0, 1.0, xtol=1e-12
                )
                there = closed(q + share * h * along)
                value = float(driven.at(t, there, np.zeros(q.size), s)[0][0])
                return DeadPoint(index + (value - begin[0]) / (end[0] - begin[0]), value, "end")
            q, along = ahead, turned
    except (HolonomeError, ValueError, IndexError, np.linalg.LinAlgError):
        return None
    return None


def turning_values(driven: Driven, name: str, found: Kinematics) -> np.ndarray:
    """Values of the drive at which a quantity has a maximum or minimum."""
    expressions = driven.system.measured(name)
    if not expressions or len(expressions) != 1:
        raise ModelError(f"turns: {name!r} is not one quantity of this system")
    symbols = driven.system.symbols
    value = next(iter(expressions.values()))
    rate = ca.jtimes(value, symbols["q"], symbols["v"])
    function = ca.Function("rate", [symbols[x] for x in ("t", "q", "v", "p", "s")], [rate])
    drive = next(iter(found.drives.values()))

    def along(k: int, x: float) -> float:
        guess = found.q[:, k] + (x - drive[k]) / (drive[k + 1] - drive[k]) * (
            found.q[:, k + 1] - found.q[:, k]
        )
        pose = pose_at(driven, found.t[k], guess, np.array([x]), np.ones(1), np.zeros(1), found.s[:, k])
        assert pose is not None
        return float(function(found.t[k], pose.q, pose.v, driven.system.parameters.flat, found.s[:, k]))

    rates = [along(k, x) for k, x in enumerate(drive[:-1])]
    rates.append(along(drive.size - 2, drive[-1]))
    roots = [
        brentq(lambda x, k=k: along(k, x), drive[k], drive[k + 1], xtol=1e-13)
        for k in range(drive.size - 1)
        if rates[k] * rates[k + 1] < 0
    ]
    return np.array([*roots, *(x for x, r in zip(drive, rates, strict=True) if r == 0)])

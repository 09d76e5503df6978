"""One position of a driven mechanism, and the way from one to the next along a branch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holonome.analysis.driven import Driven
from holonome.dynamics.evaluation import Point
from holonome.dynamics.kernels import kernels
from holonome.errors import HolonomeError

_CLOSED, _SMALLEST = 1e-13, 1e-7


class Pose(NamedTuple):
    """A position with velocities and accelerations, and how regular it is."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    regular: float


def pose_at(
    driven: Driven,
    t: float,
    guess: np.ndarray,
    target: np.ndarray,
    rate: np.ndarray,
    acceleration: np.ndarray,
    s: np.ndarray,
) -> Pose | None:
    """The position near a guess with these values of the drives; None if there is none."""
    point = Point(driven.system, kernels(driven.system), t, s)
    q, mg = guess.copy(), driven.system.model.position_rows
    last = np.inf
    try:
        for _ in range(25):
            pieces = point(q, np.zeros(q.size))
            d, by_q, _ = driven.at(t, q, np.zeros(q.size), s)
            J = np.vstack([pieces["C"][:mg], by_q])
            R = np.concatenate([pieces["g"], d - target])
            step, regular = least(J, -R)
            q = q + step
            size = np.max(np.abs(step), initial=0.0) / max(np.max(np.abs(q), initial=0.0), 1e-3)
            if size < _CLOSED or (size < 1e-9 and size > 0.3 * last):
                break
            last = size
        else:
            return None
        pieces = point(q, np.zeros(q.size))
        d, by_q, _ = driven.at(t, q, np.zeros(q.size), s)
        J = np.vstack([pieces["C"][:mg], by_q])
        R = np.concatenate([pieces["g"], d - target])
        if np.any(
            np.abs(R)
            > 1e-9 * (np.abs(J) @ np.abs(q) + np.max(np.abs(J)) * 1e-3 + np.max(np.abs(target)) * 1e-2)
        ):
            return None
        v, regular = least(J, np.concatenate([-pieces["w"], rate]))
        moving = point(q, v)
        _, _, curvature = driven.at(t, q, v, s)
        a, _ = least(J, np.concatenate([-moving["gamma"], acceleration - curvature]))
    except HolonomeError:
        return None
    return Pose(q, v, a, regular)


def least(J: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, float]:
    """The least solution, and the smallest singular value that is no rounding error of a row that follows
    from others, for rows of size one.
    """
    size = np.linalg.norm(J, axis=1)
    size = np.maximum(size, max(1e-3 * np.max(size, initial=0.0), 1e-300))
    U, values, V = np.linalg.svd(J / size[:, None], full_matrices=False)
    kept = values > 1e-11 * max(values[0], 1e-300) if values.size else values > 0
    x = V[kept].T @ ((U[:, kept].T @ (right / size)) / values[kept])
    needed = J.shape[1]
    return x, float(values[needed - 1]) if values.size >= needed else 0.0


def advance(
    driven: Driven,
    q: np.ndarray,
    before: np.ndarray | None,
    begin: np.ndarray,
    asked: tuple,
    s: np.ndarray,
    smallest: float = _SMALLEST,
) -> Pose | None:
    """From one value to the next, in parts where the branch bends."""
    t, end, rate, acceleration = asked
    whole = end - begin
    length = float(np.linalg.norm(whole))
    if length == 0:
        return pose_at(driven, t, q, end, rate, acceleration, s)
    done, share, direction = 0.0, 1.0, before
    if direction is None:
        direction = _direction(driven, q, t, whole / length, s, None)
    while done < 1:
        ahead = min(1.0, done + share)
        h = (ahead - done) * length
        slope = _direction(driven, q, t, whole / length, s, direction)
        target = begin + ahead * whole
        last = ahead == 1.0
        pose = pose_at(
            driven,
            t,
            q + h * slope,
            target,
            rate if last else whole / length,
            acceleration if last else 0 * rate,
            s,
        )
        if pose is not None and _smooth(pose.q - q, h * slope):
            direction, q, done = (pose.q - q) / h, pose.q, ahead
            share *= 1.5
            if last:
                return pose
            continue
        share /= 2
        if share < smallest:
            return None
    return None


def _smooth(moved: np.ndarray, predicted: np.ndarray) -> bool:
    size = np.linalg.norm(predicted)
    return bool(np.linalg.norm(moved - predicted) <= 0.25 * size + 1e-13)


def _direction(
    driven: Driven, q: np.ndarray, t: float, drive: np.ndarray, s: np.ndarray, before: np.ndarray | None
) -> np.ndarray:
    """dq/dd along the drive; at a singular position that of the way so far."""
    point = Point(driven.system, kernels(driven.system), t, s)
    G = point(q, np.zeros(q.size))["C"][: driven.system.model.position_rows]
    J = np.vstack([G, driven.gradient(t, q, s)])
    slope, regular = least(J, np.concatenate([np.zeros(len(G)), drive]))
    if regular < 1e-3 and before is not None:
        return before
    return slope

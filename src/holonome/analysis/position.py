"""Positions in which drives have given values, one after the other along a branch.

    g(q) = 0,   d(q) = values

Each position is predicted from the one before and corrected by Gauss–Newton steps; a step after which the
correction is large is divided.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holonome.analysis.dead_points import DeadPoint, crossed, limit_at, turning_point
from holonome.analysis.driven import Driven
from holonome.analysis.given import Place
from holonome.analysis.newton import null_space
from holonome.analysis.poses import advance, pose_at
from holonome.dynamics.evaluation import Point
from holonome.dynamics.kernels import kernels
from holonome.dynamics.start import consistent_state
from holonome.errors import ModelError

_SINGULAR = 1e-3


class Found(NamedTuple):
    """What was reached."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    message: str
    dead_points: list[DeadPoint]


def follow_drives(
    driven: Driven,
    here: Place,
    t: np.ndarray,
    targets: np.ndarray,
    rates: np.ndarray,
    accelerations: np.ndarray,
) -> Found:
    """Positions at all values, as far as they are reached."""
    q = _first_guess(driven, here, t[0], targets[:, 0])
    first = pose_at(driven, t[0], q, targets[:, 0], rates[:, 0], accelerations[:, 0], here.s)
    if first is None:
        told = ", ".join(f"{name} = {x:g}" for name, x in zip(driven.names, targets[:, 0], strict=True))
        raise ModelError(f"values: the mechanism has no position near the start with {told}; begin elsewhere")
    require_determined(driven, first.q, t[0], here.s)
    poses, dead, message = [first], [], "all values were reached"
    before: np.ndarray | None = None
    for k in range(1, t.size):
        asked = t[k], targets[:, k], rates[:, k], accelerations[:, k]
        reached = advance(driven, poses[-1].q, before, targets[:, k - 1], asked, here.s)
        limit = None
        if reached is None or reached.regular < _SINGULAR:
            limit = limit_at(driven, poses[-1].q, before, targets[:, k - 1], asked, here.s)
        if limit is not None:
            dead.append(DeadPoint(float(k), float(targets[0, k]), "passed"))
        elif reached is None:
            point = turning_point(
                driven, poses[-1].q, t[k - 1], here.s, targets[:, k - 1], targets[:, k], k - 1
            )
            dead += [] if point is None else [point]
            name, where = driven.names[0], "" if point is None else f"{point.value:.6g}: a dead point"
            at = f"cannot go beyond {where}" if where else f"did not reach {targets[0, k]:.6g}"
            message = f"{name!r} {at}"
            break
        elif poses[-1].regular > 0:
            dead += crossed(driven, poses[-1], reached, targets[:, k - 1], asked, here.s, k - 1)
        pose = reached if limit is None else limit
        assert pose is not None
        step = targets[:, k] - targets[:, k - 1]
        before = (pose.q - poses[-1].q) / max(float(np.linalg.norm(step)), 1e-300)
        poses.append(pose)
    if poses[0].regular < _SINGULAR and len(poses) > 1:
        asked = t[0], targets[:, 0], rates[:, 0], accelerations[:, 0]
        limit = limit_at(driven, poses[1].q, None, targets[:, 1], asked, here.s)
        if limit is not None:
            poses[0] = limit
            dead.insert(0, DeadPoint(0.0, float(targets[0, 0]), "passed"))
    q, v, a = (np.array([getattr(pose, name) for pose in poses]).T for name in ("q", "v", "a"))
    return Found(q, v, a, message, dead)


def _first_guess(driven: Driven, here: Place, t: float, target: np.ndarray) -> np.ndarray:
    """From the start to the first values, in as many steps as it takes."""
    q = here.q
    if driven.system.model.position_rows:
        y = np.concatenate([here.q, np.zeros(q.size), here.s])
        q = consistent_state(driven.system, y, t, at_rest=True, repair=True).q
    now = driven.at(t, q, np.zeros(q.size), here.s)[0]
    none = np.zeros(target.size)
    reached = advance(driven, q, None, now, (t, target, none, none), here.s)
    return q if reached is None else reached.q


def require_determined(driven: Driven, q: np.ndarray, t: float, s: np.ndarray) -> None:
    """Drives and constraints must leave nothing free, at a place that is not special."""
    point = Point(driven.system, kernels(driven.system), t, s)
    G = point(q, np.zeros(q.size))["C"][: driven.system.model.position_rows]
    J = np.vstack([G, driven.gradient(t, q, s)])
    free = null_space(J, 1e-9)
    motions = null_space(G, 1e-9) if len(G) else np.eye(q.size)
    if free.shape[1] and motions.shape[1] > len(driven.names):
        beside = q + 1e-3 * max(float(np.max(np.abs(q))), 1e-3) * np.random.default_rng(6).normal(size=q.size)
        elsewhere = null_space(point(beside, np.zeros(q.size))["C"][: len(G)], 1e-9)
        if len(G) and elsewhere.shape[1] <= len(driven.names):
            raise ModelError(
                "values: the first position is singular, branches cross there; begin at another value, from "
                "which the branch is clear"
            )
        size = np.max(np.abs(free), axis=1)
        names = [driven.system.names[i] for i in np.argsort(-size)[:3] if size[i] > 0.1]
        more = motions.shape[1] - len(driven.names)
        raise ModelError(
            f"drive: {more} more degree{'s' * (more > 1)} of freedom stay{'s' * (more == 1)} free beside "
            f"{', '.join(driven.names)} ({', '.join(names)} …); drive {'them' if more > 1 else 'it'} as "
            "well, drive={name: values, …}"
        )

"""Positions in which drives have given values, one after the other along a branch.

    g(q) = 0,   d(q) = values

Each position is predicted from the one before and corrected by Gauss–Newton steps; a step after which the
correction is large is divided.  Where branches cross, the matrix is singular but the branch itself is smooth:
such a position, with its velocities and accelerations, is the limit from both sides.  Where the drive cannot
go on, the position of the dead point is located on the curve g = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np
from scipy.optimize import brentq

from holonome.analysis.given import Place
from holonome.analysis.newton import null_space
from holonome.dynamics.evaluation import Point
from holonome.dynamics.kernels import kernels
from holonome.dynamics.start import consistent_state
from holonome.errors import HolonomeError, ModelError
from holonome.problem.system import System

if TYPE_CHECKING:
    from holonome.analysis.kinematics import Kinematics

_SINGULAR, _CLOSED, _SMALLEST = 1e-3, 1e-13, 1e-7
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


class Found(NamedTuple):
    """What was reached."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    message: str
    dead_points: list[DeadPoint]


class Pose(NamedTuple):
    """A position with velocities and accelerations, and how regular it is."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    regular: float


@dataclass(frozen=True, eq=False)
class Driven:
    """A system with driving coordinates d(q)."""

    system: System
    names: tuple[str, ...]
    function: ca.Function  # (t, q, v, p, s) → d, d_q, curvature

    def gradient(self, t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        return self.at(t, q, np.zeros(q.size), s)[1]

    def at(
        self, t: float, q: np.ndarray, v: np.ndarray, s: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        d, by_q, curvature = self.function(t, q, v, self.system.parameters.flat, s)
        return np.array(d).ravel(), np.array(by_q).reshape(-1, q.size), np.array(curvature).ravel()

    def measured(
        self, name: str, t: np.ndarray, q: np.ndarray, v: np.ndarray, s: np.ndarray
    ) -> dict[str, np.ndarray]:
        """A quantity by name at many points."""
        found = self.system.measured(name)
        if not found:
            raise ModelError(f"there is no {name!r}; give coordinates, joints or points of bodies by name")
        symbols = self.system.symbols
        inputs = [symbols[key] for key in ("t", "q", "v", "p", "s")]
        function = ca.Function("measured", inputs, [ca.densify(ca.vertcat(*found.values()))])
        p = np.tile(self.system.parameters.flat[:, None], t.size)
        rows = np.array(function.map(t.size)(t[None, :], q, v, p, s))
        labels = [name] if len(found) == 1 else list(found)
        return {
            label: np.unwrap(row) if label.endswith("angle") or _is_angle(self.system, name) else row
            for label, row in zip(labels, rows, strict=True)
        }

    def turns(self, name: str, found: Kinematics) -> np.ndarray:
        """Values of the drive at which a quantity has a maximum or minimum."""
        expressions = self.system.measured(name)
        if not expressions or len(expressions) != 1:
            raise ModelError(f"turns: {name!r} is not one quantity of this system")
        symbols = self.system.symbols
        value = next(iter(expressions.values()))
        rate = ca.jtimes(value, symbols["q"], symbols["v"])
        function = ca.Function("rate", [symbols[x] for x in ("t", "q", "v", "p", "s")], [rate])
        drive = next(iter(found.drives.values()))

        def along(k: int, x: float) -> float:
            guess = found.q[:, k] + (x - drive[k]) / (drive[k + 1] - drive[k]) * (
                found.q[:, k + 1] - found.q[:, k]
            )
            pose = pose_at(self, found.t[k], guess, np.array([x]), np.ones(1), np.zeros(1), found.s[:, k])
            assert pose is not None
            return float(function(found.t[k], pose.q, pose.v, self.system.parameters.flat, found.s[:, k]))

        rates = [along(k, x) for k, x in enumerate(drive[:-1])]
        rates.append(along(drive.size - 2, drive[-1]))
        roots = [
            brentq(lambda x, k=k: along(k, x), drive[k], drive[k + 1], xtol=1e-13)
            for k in range(drive.size - 1)
            if rates[k] * rates[k + 1] < 0
        ]
        return np.array([*roots, *(x for x, r in zip(drive, rates, strict=True) if r == 0)])


def _is_angle(system: Any, name: str) -> bool:
    joint = getattr(system, "joints", {}).get(name)
    return joint is not None and [c.kind for c in joint.coordinates] == ["angle"]


def driven_by(system: System, names: Sequence[str]) -> Driven:
    """A system with these driving coordinates."""
    if system.model.h.numel():
        raise ModelError(
            "kinematics: this system has velocity constraints, under which positions depend on the way; use "
            "hn.solve with a drive"
        )
    parts = []
    for name in names:
        found = system.measured(name)
        if not found and " " in name:  # one component, "coupler.P x"
            found = {k: x for k, x in (system.measured(name.rpartition(" ")[0]) or {}).items() if k == name}
        if not found or len(found) != 1:
            there = ", ".join(found) if found else "coordinates, joints and points of bodies have names"
            raise ValueError(f"drive: {name!r} is not one coordinate; {there}")
        if ca.depends_on(next(iter(found.values())), system.symbols["v"]):
            raise ValueError(f"drive: {name!r} is a velocity; give what has this rate")
        parts += list(found.values())
    symbols = system.symbols
    d = ca.densify(ca.vertcat(*parts))
    by_q = ca.densify(ca.jacobian(d, symbols["q"]))
    curvature = ca.densify(ca.jtimes(by_q @ symbols["v"], symbols["q"], symbols["v"]))
    inputs = [symbols[name] for name in ("t", "q", "v", "p", "s")]
    return Driven(system, tuple(names), ca.Function("drive", inputs, [d, by_q, curvature]))


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
            step, regular = _least(J, -R)
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
        v, regular = _least(J, np.concatenate([-pieces["w"], rate]))
        moving = point(q, v)
        _, _, curvature = driven.at(t, q, v, s)
        a, _ = _least(J, np.concatenate([-moving["gamma"], acceleration - curvature]))
    except HolonomeError:
        return None
    return Pose(q, v, a, regular)


def _least(J: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, float]:
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
    _require_determined(driven, first.q, t[0], here.s)
    poses, dead, message = [first], [], "all values were reached"
    before: np.ndarray | None = None
    for k in range(1, t.size):
        asked = t[k], targets[:, k], rates[:, k], accelerations[:, k]
        reached = _advance(driven, poses[-1].q, before, targets[:, k - 1], asked, here.s)
        limit = None
        if reached is None or reached.regular < _SINGULAR:
            limit = _limit(driven, poses[-1].q, before, targets[:, k - 1], asked, here.s)
        if limit is not None:
            dead.append(DeadPoint(float(k), float(targets[0, k]), "passed"))
        elif reached is None:
            point = _dead_point(
                driven, poses[-1].q, t[k - 1], here.s, targets[:, k - 1], targets[:, k], k - 1
            )
            dead += [] if point is None else [point]
            name, where = driven.names[0], "" if point is None else f"{point.value:.6g}: a dead point"
            at = f"cannot go beyond {where}" if where else f"did not reach {targets[0, k]:.6g}"
            message = f"{name!r} {at}"
            break
        elif poses[-1].regular > 0:
            dead += _passed(driven, poses[-1], reached, targets[:, k - 1], asked, here.s, k - 1)
        pose = reached if limit is None else limit
        assert pose is not None
        step = targets[:, k] - targets[:, k - 1]
        before = (pose.q - poses[-1].q) / max(float(np.linalg.norm(step)), 1e-300)
        poses.append(pose)
    if poses[0].regular < _SINGULAR and len(poses) > 1:
        asked = t[0], targets[:, 0], rates[:, 0], accelerations[:, 0]
        limit = _limit(driven, poses[1].q, None, targets[:, 1], asked, here.s)
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
    reached = _advance(driven, q, None, now, (t, target, none, none), here.s)
    return q if reached is None else reached.q


def _require_determined(driven: Driven, q: np.ndarray, t: float, s: np.ndarray) -> None:
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


def _advance(
    driven: Driven,
    q: np.ndarray,
    before: np.ndarray | None,
    begin: np.ndarray,
    asked: tuple,
    s: np.ndarray,
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
        if share < _SMALLEST:
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
    slope, regular = _least(J, np.concatenate([np.zeros(len(G)), drive]))
    if regular < 1e-3 and before is not None:
        return before
    return slope


def _limit(
    driven: Driven, q: np.ndarray, before: np.ndarray | None, begin: np.ndarray, asked: tuple, s: np.ndarray
) -> Pose | None:
    """A singular position as the limit from both sides of the branch that goes straight on."""
    t, end, rate, acceleration = asked
    whole = end - begin
    reached: dict[int, Pose] = {}
    for shift in (-3, -2, -1, 1, 2, 3):
        target = begin + (1 + shift * _BESIDE) * whole
        if shift == -3:
            pose = _advance(driven, q, before, begin, (t, target, rate, acceleration), s)
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


def _determinant(driven: Driven, t: float, pose: Pose, s: np.ndarray) -> float:
    """A number that changes its sign where drives and constraints become dependent."""
    point = Point(driven.system, kernels(driven.system), t, s)
    G = point(pose.q, np.zeros(pose.q.size))["C"][: driven.system.model.position_rows]
    J = np.vstack([G, driven.gradient(t, pose.q, s)])
    if J.shape[0] != J.shape[1]:
        return 1.0
    size = np.linalg.norm(J, axis=1, keepdims=True)
    return float(np.linalg.det(J / np.maximum(size, max(1e-3 * np.max(size), 1e-300))))


def _passed(
    driven: Driven, old: Pose, new: Pose, begin: np.ndarray, asked: tuple, s: np.ndarray, index: int
) -> list[DeadPoint]:
    """A crossing of branches between two values."""
    t, end, rate, acceleration = asked
    a, b = _determinant(driven, t, old, s), _determinant(driven, t, new, s)
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
        value = _determinant(driven, t, pose, s)
        low, high = (middle, high) if value * a > 0 else (low, middle)
    share = (low + high) / 2
    value = float(begin[0] + share * (end[0] - begin[0]))
    return [DeadPoint(index + share, value, "passed")]


def _dead_point(
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
            x = x + _least(pieces["C"][:mg], -pieces["g"])[0]
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

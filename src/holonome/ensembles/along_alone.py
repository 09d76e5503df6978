"""What is kept of a whole motion, from the dense output of a single run: for members that lanes do not treat.

Passages are events of the run.  Means are sums after Gauss in each step, which are halved where two rules
differ; extremes are looked for at points of each step, and between those around the best by Brent's method.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from scipy.optimize import minimize_scalar

from holonome.ensembles.along import MEAN, PASSAGE, AlongTheWay
from holonome.ensembles.observed import Observed
from holonome.errors import StepFailed

_POINTS = 16
"""Inside a step at which extremes are looked for."""
_HALVINGS = 20
_MOST_PEAKS = 200
_BESIDE = (1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
"""How far beside a singular position a point is taken, on the way to the middle of the run."""
_RULES = [np.polynomial.legendre.leggauss(order) for order in (5, 8)]


def kept_of_motion(observed: Observed, sol: Any, first_passage: int) -> np.ndarray:
    """All values, in the order of their names; passages are the events of the run from this one on."""
    times = _ends_of_steps(sol)
    values: list[float] = []
    for i, (_, part) in enumerate(observed.along):
        if part.kind == PASSAGE:
            found = sol.t_events[first_passage]
            first_passage += 1
            values.append(float(found[0]) if len(found) else np.nan)
            continue
        function = _along(observed, i, sol)
        if part.kind == MEAN:
            values.append(_mean(function, times, sol.rtol))
        else:
            values += _extreme(function, part, times, sol.rtol)
    return np.array(values)


def _ends_of_steps(sol: Any) -> np.ndarray:
    """Times between which the motion is smooth, as far as the run knows."""
    history = sol.history
    inner = sol.t if history is None else history.t
    low, high = sorted((sol.t[0], sol.t[-1]))
    record = getattr(sol.sol, "record", None)
    if record is not None:
        low, high = sorted((record.t0, record.t_end))
    inner = inner[(inner > low) & (inner < high)]
    return np.unique(np.concatenate([[low], inner, [high]]))


def _along(observed: Observed, i: int, sol: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The function of which something is kept, of times."""
    system = sol.system
    model, n = system.model, system.n
    motion, lam = ca.SX.sym("motion", system.state_size), ca.SX.sym("lam", system.m)
    expression = observed.expressions_along(system, motion, lam)[i]
    needs = bool(n) and ca.depends_on(expression, ca.vertcat(motion, lam))
    function = ca.Function("along", [model.t, model.y, model.p, motion, lam], [expression])
    parameters = np.zeros(model.p.numel())
    parameters[: system.parameters.size] = system.parameters.flat

    def values(times: np.ndarray) -> np.ndarray:
        times, parts = _parts_at(sol, times)
        states = np.vstack(parts if isinstance(parts, tuple) else [parts])
        rates, multipliers = np.zeros((system.state_size, times.size)), np.zeros((system.m, times.size))
        if needs:
            for k, t in enumerate(times):
                given = [part[:, k] for part in parts]
                state = system.at(float(t), *given[:2], **({"s": given[2]} if len(given) > 2 else {}))
                rates[n : 2 * n, k], multipliers[:, k] = state.a, state.lam
        columns = np.repeat(parameters[:, None], times.size, axis=1)
        return np.array(function(times[None, :], states, columns, rates, multipliers)).ravel()

    return values


def _parts_at(sol: Any, times: np.ndarray) -> tuple[np.ndarray, Any]:
    """The state at these times; where there is none, in a singular position, at one close by."""
    try:
        return times, sol.sol(times)
    except RuntimeError:
        if times.size > 1:
            each = [_parts_at(sol, times[k : k + 1]) for k in range(times.size)]
            found = [parts if isinstance(parts, tuple) else (parts,) for _, parts in each]
            joined = tuple(np.hstack(part) for part in zip(*found, strict=True))
            return np.hstack([time for time, _ in each]), joined if len(joined) > 1 else joined[0]
    low, high = sol.sol.record.t0, sol.sol.record.t_end
    for apart in _BESIDE:
        beside = times + apart * (0.5 * (low + high) - times)
        with contextlib.suppress(RuntimeError):
            return beside, sol.sol(beside)
    raise StepFailed(f"the system could not be evaluated near t = {times[0]:.9g}")


def _mean(function: Callable[[np.ndarray], np.ndarray], times: np.ndarray, rtol: float) -> float:
    span, total, begin, end = times[-1] - times[0], 0.0, times[:-1], times[1:]
    size = 0.0
    for turn in range(_HALVINGS):
        sums = []
        for x, w in _RULES:
            middle, half = 0.5 * (begin + end), 0.5 * (end - begin)
            found = function((middle[:, None] + half[:, None] * x).ravel()).reshape(len(begin), -1)
            size = max(size, float(np.max(np.abs(found), initial=0.0)))
            sums.append(half * (found @ w))
        good = np.abs(sums[0] - sums[1]) <= 0.1 * rtol * size * np.maximum(end - begin, 1e-3 * span)
        good |= turn == _HALVINGS - 1
        total += float(np.sum(sums[1][good]))
        begin, end = begin[~good], end[~good]
        if not begin.size:
            break
        middle = 0.5 * (begin + end)
        begin, end = np.concatenate([begin, middle]), np.concatenate([middle, end])
    return total / span


def _extreme(
    function: Callable[[np.ndarray], np.ndarray], part: AlongTheWay, times: np.ndarray, rtol: float
) -> list[float]:
    """The largest value, and the first time at which it is reached within the tolerance."""
    inside = times[:-1, None] + np.diff(times)[:, None] * np.arange(_POINTS) / _POINTS
    points = np.append(inside.ravel(), times[-1])
    values = part.sign * function(points)
    if not np.all(np.isfinite(values)):
        return [np.nan, np.nan]
    last, swing = points.size - 1, np.ptp(values)
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    peaks = np.flatnonzero((values >= padded[:-2]) & (values >= padded[2:]))
    peaks = peaks[values[peaks] >= values.max() - 0.05 * swing][:_MOST_PEAKS]
    found = []
    for peak in np.union1d(peaks, [np.argmax(values)]).tolist():
        low, high = points[max(peak - 1, 0)], points[min(peak + 1, last)]
        top = minimize_scalar(
            lambda t: -part.sign * float(function(np.array([t]))[0]),
            bounds=(low, high),
            method="bounded",
            options={"xatol": 1e-9 * max(high - low, 1e-300)},
        )
        found.append(max((-float(top.fun), float(top.x)), (float(values[peak]), float(points[peak]))))
    best = max(value for value, _ in found)
    close = rtol * max(abs(best), swing)
    return [part.sign * best, min(time for value, time in found if value >= best - close)]

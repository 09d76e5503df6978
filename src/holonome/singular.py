"""Where the rank of the constraints fell on the way, found after a run from its points.

For rows of C scaled by their length at a few points, r(t) is the last pivot of an orthogonalisation with pivoting, about the smallest singular value.  At a passage it
falls to zero like |t − t*| and rises again, usually between two points.  Where r, continued straight on from one side, would fall to nothing before the next point, the
least value along the cubic Hermite interpolant of q decides.
"""

from __future__ import annotations

import math

import casadi as ca
import numpy as np
from numba import njit

from holonome.engine.calls import call, pointer
from holonome.engine.context import OK
from holonome.formulations.underlying_ode import kernels
from holonome.model import Model
from holonome.result import Solution

SINGULAR_BELOW = 1e-3
"""r below which the rank has fallen, as far as the interpolant can tell."""

_LARGEST = 2000
"""m² n up to which this costs little compared with the run."""

_SHOWN = 3
_GOLDEN = (math.sqrt(5) - 1) / 2


def singular_positions(solution: Solution) -> tuple[np.ndarray, str]:
    """Times at which the rank fell, and what there is to say of it."""
    system = solution.system
    n, m = system.dim, system.m
    if m == 0 or m * m * n > _LARGEST or solution.t.size < 3:
        return np.zeros(0), ""
    compiled, rows = kernels(system), system.kernel("rows", _rows_of)
    states = np.ascontiguousarray(solution.states[:, : 2 * n])
    times = np.empty(solution.t.size)
    found = _passages(rows.address, compiled.context(system), np.ascontiguousarray(solution.t), states, n, m, times)
    shown = ", ".join([f"{t:.6g}" for t in times[: min(found, _SHOWN)]] + ["…"] * (found > _SHOWN))
    return times[:found].copy(), f" (the rank of the constraints fell on the way, {'once' if found == 1 else f'{found} times'}: t = {shown})" if found else ""


def _rows_of(model: Model):
    return model.y, ca.SX(0, 1), ca.densify(ca.reshape(model.C.T, model.rows * model.n, 1)), None


@njit(cache=True)
def _last_pivot(rows, context, t, y, scale, n, m, C):
    """Length of what is left of the last row, when the largest rest is always taken first; NaN if C cannot be evaluated."""
    if call(rows, t, pointer(y), pointer(y), context, pointer(C)) != OK:
        return math.nan
    for i in range(m):
        for j in range(n):
            C[i, j] /= scale[i]
    length = 0.0
    for k in range(m):
        best, length = k, -1.0
        for i in range(k, m):
            square = 0.0
            for j in range(n):
                square += C[i, j] * C[i, j]
            if square > length:
                best, length = i, square
        length = math.sqrt(length)
        if not length > 1e-300:
            return 0.0
        for j in range(n):
            C[k, j], C[best, j] = C[best, j], C[k, j]
            C[k, j] /= length
        for i in range(k + 1, m):
            dot = 0.0
            for j in range(n):
                dot += C[k, j] * C[i, j]
            for j in range(n):
                C[i, j] -= dot * C[k, j]
    return length


@njit(cache=True)
def _between(times, states, left, t, n, y):
    """Cubic Hermite interpolation of q."""
    h = times[left + 1] - times[left]
    s = (t - times[left]) / h
    a, b, c, d = (1 + 2 * s) * (1 - s) ** 2, s * (1 - s) ** 2 * h, s * s * (3 - 2 * s), s * s * (s - 1) * h
    for i in range(n):
        y[i] = a * states[left, i] + b * states[left, n + i] + c * states[left + 1, i] + d * states[left + 1, n + i]
        y[n + i] = 0.0


@njit(cache=True)
def _least(rows, context, times, states, left, scale, n, m, C, y):
    """Golden section: where, and how small, r is within one step."""
    a, b = times[left], times[left + 1]
    c, d = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    _between(times, states, left, c, n, y)
    at_c = _last_pivot(rows, context, c, y, scale, n, m, C)
    _between(times, states, left, d, n, y)
    at_d = _last_pivot(rows, context, d, y, scale, n, m, C)
    for _ in range(40):
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - _GOLDEN * (b - a)
            _between(times, states, left, c, n, y)
            at_c = _last_pivot(rows, context, c, y, scale, n, m, C)
        else:
            a, c, at_c = c, d, at_d
            d = a + _GOLDEN * (b - a)
            _between(times, states, left, d, n, y)
            at_d = _last_pivot(rows, context, d, y, scale, n, m, C)
    return 0.5 * (a + b), min(at_c, at_d)


@njit(cache=True, nogil=True)
def _passages(rows, context_array, times, states, n, m, found):
    """Times at which r vanishes; returns how many there are."""
    context, count, points = pointer(context_array), 0, times.size
    C, y, scale, r = np.empty((m, n)), np.empty(2 * n), np.full(m, 1e-300), np.empty(points)
    for p in (0, points // 3, 2 * points // 3):
        y[:] = states[p]
        if call(rows, times[p], pointer(y), pointer(y), context, pointer(C)) != OK:
            return 0
        for i in range(m):
            scale[i] = max(scale[i], math.sqrt(np.sum(C[i] ** 2)))
    regular = 0
    for p in range(points):
        y[:] = states[p]
        r[p] = _last_pivot(rows, context, times[p], y, scale, n, m, C)
        regular += r[p] > SINGULAR_BELOW
    if 2 * regular < points:
        return 0  # redundant rows
    lowest = math.inf  # of the passage under way
    for p in range(points - 1):
        h = times[p + 1] - times[p]
        if r[p] > 10 * SINGULAR_BELOW:
            lowest = math.inf
        if h == 0.0:
            continue
        before = times[p] - times[p - 1] if p > 0 else 0.0
        after = times[p + 2] - times[p + 1] if p + 2 < points else 0.0
        falls = before != 0.0 and r[p] + (r[p] - r[p - 1]) * h / before < 0.3 * r[p + 1] + 0.1 * r[p]
        rises = after != 0.0 and r[p + 1] - (r[p + 2] - r[p + 1]) * h / after < 0.3 * r[p] + 0.1 * r[p + 1]
        if falls or rises or min(r[p], r[p + 1]) < SINGULAR_BELOW:
            t, low = _least(rows, context, times, states, p, scale, n, m, C, y)
            if low < SINGULAR_BELOW:
                count += lowest == math.inf
                if low < lowest:
                    found[count - 1], lowest = t, low
    return count

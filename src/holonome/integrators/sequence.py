"""What sequential regularization stores of its iterations, for explicit methods and BDF alike.

y₀(t) = y + (b s + c s²) exp(−s/τ) with s = t − t₀ begins with y, y′ and y″ of the exact solution, (2.14) of
Ascher & Lin 1995, and does not grow later.
"""

import math

from numba import njit

from holonome.machine.layout import Layout, Real, Vector, Whole

CONVERGED, HELPS = 0.5, 0.9
"""The iterations have converged when the last two differ by less, in units of the tolerance; another one
helps if it reduces the difference by this factor.
"""

TOO_LARGE_FREE, TOO_LARGE = 2.0, 30.0
"""A difference beyond which ε is too large: where ε is chosen automatically, and where it is given."""

MOST_RESTARTS = 8
_PARTLY, _SUDDEN, _SEEN = 0.3, 3.0, 1e3
_LATER = 20.0
"""Tolerance of x′ in the test for another iteration, in units of its own: near singular positions x′
converges late.
"""


class SequenceState(Layout):
    """The iterations x_1 … x_S with their y_s."""

    state: Whole  # numbers of x, for index 3 of (x, x′)
    coordinates: Whole  # numbers of x
    carried: Whole  # numbers of y_s
    index: Whole  # 2 or 3
    active: Whole  # S
    most: Whole  # the most that there may be
    automatic: Whole  # 0: S is given; 1: S is chosen automatically; 2: so is ε
    restarts: Whole
    watches_impasse: Whole
    impasse: Whole  # whether the run has reached one
    rate: Whole  # addresses
    multiplier: Whole
    difference: Real  # of the last two iterations, in units of the tolerance
    before: Real  # the same with one iteration less
    violation: Real  # of the constraints, as a change of x or x′
    largest: Real  # entry of x or x′ so far, and of its rate
    fastest: Real
    tau: Real  # time scale of y₀; 0: it is constant
    y0_time: Real
    y0_rate: Real
    eps: Vector
    y0: Vector
    y0_slope: Vector
    y0_bend: Vector
    first: Vector  # y₀ at the time asked for
    out: Vector  # result of a kernel


@njit(cache=True)
def copy(source, target, count):
    for i in range(count):
        target[i] = source[i]


@njit(cache=True)
def y0_at(q, t):
    """y₀ at a time, in ``first``."""
    s, out = t - q.y0_time, q.first
    decay = math.exp(-s * q.y0_rate)
    for i in range(q.carried):
        out[i] = q.y0[i] + s * (q.y0_slope[i] + s * q.y0_bend[i]) * decay
    return out


@njit(cache=True)
def difference(q, x, other, atol, rtol):
    """Distance of two iterations in units of the tolerance, relative to the largest entry of x; of x′
    likewise, with _LATER times the tolerance.
    """
    distance, begin, end, loosened = 0.0, 0, q.coordinates, 1.0
    for _ in range(q.index - 1):
        scale = 0.0
        for i in range(begin, end):
            scale = max(scale, abs(x[i]))
        for i in range(begin, end):
            distance = max(distance, abs(x[i] - other[i]) / ((atol[i] + rtol * scale) * loosened))
        begin, end, loosened = q.coordinates, q.state, _LATER
    return distance


@njit(cache=True)
def is_impasse(q, x, f, tolerance, eps):
    """Whether a substantial part of x′ (for index 2: of x) violates the constraints, and would be stopped
    faster than anything before.
    """
    rate = 0.0
    for i in range(q.coordinates if q.index > 2 else 0, q.state):
        q.largest = max(q.largest, abs(x[i]))
        rate = max(rate, abs(f[i]))
    if q.fastest == 0.0 or q.violation < 0.1 * _PARTLY * q.largest:
        q.fastest = max(q.fastest, rate)
    substantial = q.violation > _SEEN * tolerance and q.violation > _PARTLY * q.largest
    return substantial and q.violation > _SUDDEN * q.fastest * eps


@njit(cache=True)
def eps_is_too_large(q):
    return q.difference > (TOO_LARGE_FREE if q.automatic > 1 else TOO_LARGE)


@njit(cache=True)
def another_helps(q):
    return q.active < q.most and (q.before == 0.0 or q.difference < HELPS * q.before)


@njit(cache=True)
def may_restart(q):
    return q.automatic > 1 and q.restarts < MOST_RESTARTS

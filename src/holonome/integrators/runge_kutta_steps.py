"""Explicit Runge–Kutta methods on the underlying ODE, each step followed by a projection onto the manifold.

One step from y with k₀ = y′:

    k_i = F(t + c_i h, y + h Σ_{j<i} a_ij k_j),     ẑ = y + h Σ b_i k_i,     e = h Σ e_i k_i

ẑ is corrected by Newton steps δ until it lies on the manifold to rounding (usually one or two), the error e
is freed of its part normal to the manifold (Eich 1993, section 4.1), and the derivative at the end serves as
k₀ of the next step; all three come from one kernel, the projection (:mod:`holonome.dynamics.kernels`).
"""

from __future__ import annotations

import math

from numba import njit

from holonome.dynamics.parts import error_in
from holonome.integrators import loop, rank_watch
from holonome.integrators.between_steps import between_steps
from holonome.integrators.loop import (
    OWN,
    RunState,
    hermite,
    leave,
    propose_explicit,
    rank_watch_in,
    weighted_square,
)
from holonome.integrators.passing import LEAP, TRIED, allowed, has_leapt, leap
from holonome.integrators.projected_steps import (
    PROJECTED,
    ProjectedState,
    choose_given,
    correct_to_rounding,
    derivative,
    enter_start,
    first_projection,
    keep_beginning,
    onto_manifold,
    recall_beginning,
    watch_projected,
    widen_scales,
)
from holonome.integrators.step_size import choose_next, shrink
from holonome.integrators.tableau import END, combine
from holonome.machine.calls import shift
from holonome.machine.context import INTERRUPTED, OK, RAISED, SINGULAR
from holonome.machine.layout import Real, Vector, Whole, taken_apart

_GROW = 8.0
_LEAPT = 30.0
"""By how much less accurate the watch is over a step that passes a singular position."""

_EVERY, _HITS, _NEAR = 8, 8, 0.5
"""A step looks stiff where h|λ| is more than this part of the stability interval; checked every so many
steps, and reported after so many consecutive hits.
"""


class RungeKuttaState(ProjectedState):
    """The integrator's part of the memory."""

    stages: Whole
    order: Whole
    two_errors: Whole  # whether the method has a second error estimator
    last_weight: Real  # of the derivative at the end, in the error
    exponent: Real  # 1 / (order of the error + 1)
    beta: Real  # of the step size control
    stable: Real  # length of the real stability interval
    log_error: Real  # of the step before
    leaps: Whole  # how many were tried over a singular position
    rejected_size: Real  # of the step that was tried first
    gap_count: Whole
    stiff: Whole  # 0: not checked; otherwise 1 + consecutive hits; −1: detected
    sums: Vector  # addresses
    c: Vector
    gaps: Vector  # between stages, in the order in which they are tried
    k: Vector
    k_new: Vector


Work, parts = taken_apart(
    __name__,
    {"run": (RunState, 0), "s": (RungeKuttaState, OWN)},
    PROJECTED + "stages last_weight k k_new sums c",
)


@njit(cache=True, error_model="numpy")
def _stages(w, context, t, y, h):
    """All stages, from k₀, and the new point in z; not yet on the manifold."""
    for i in range(1, w.stages):
        combine(w.sums, i, h, y, w.k, w.z)
        status = derivative(w, context, t + w.c[i] * h, w.z, shift(w.k, i * w.stride))
        if status != OK:
            w.run.t_failed = t + w.c[i] * h
            return status
    combine(w.sums, END, h, y, w.k, w.z)
    return OK


@njit(cache=True, error_model="numpy")
def _share(w, y, h):
    """For the method of order 8, the factor e₅² / (e₅² + e₃²/100) by which its estimate of order 5 is
    reduced.

    It is taken from the whole error, so that it cannot vanish by chance.
    """
    if not w.s.two_errors:
        return 1.0
    fifth = weighted_square(w.error, y, w.z, w.atol, w.rtol, w.size)
    combine(w.sums, w.stages + 1, h, y, w.k, w.error)
    both = fifth + 0.01 * weighted_square(w.error, y, w.z, w.atol, w.rtol, w.size)
    return fifth / both if both > 0.0 else 1.0


@njit(cache=True, error_model="numpy")
def _end_without_projection(w, context, t, y, h):
    """Derivative and error at the end of a step that is not projected; as below."""
    status = derivative(w, context, t, w.z, w.projected)
    if status != OK:
        w.run.t_failed = t
        return status, loop.SINGULAR_MATRIX, math.inf
    combine(w.sums, w.stages, h, y, w.k, w.error)
    for i in range(w.size):
        w.error[i] += h * w.last_weight * w.projected[i]
    return OK, 0, weighted_square(w.error, y, w.z, w.atol, w.rtol, w.size) * _share(w, y, h)


@njit(cache=True, error_model="numpy")
def _end_with_projection(w, context, t, y, h):
    """Bring z onto the manifold; (status, cause of failure, squared error).  The derivative is left in
    ``projected``.
    """
    combine(w.sums, w.stages, h, y, w.k, w.error)
    w.error[w.size] = h * w.last_weight
    status, cause = first_projection(w, context, t)
    if status != OK:
        return status, cause, math.inf
    tangential = error_in(w.projected, w.size)
    square = weighted_square(tangential, y, w.z, w.atol, w.rtol, w.size) * _share(w, y, h)
    if square > allowed(w) ** 2 * w.size and w.run.constant == 0.0:
        return OK, loop.ERROR_TEST, square
    status, cause = correct_to_rounding(w, context, t)
    failed = status != OK or cause in (loop.PROJECTION_FAILED, loop.NOT_FINITE)
    return status, cause, math.inf if failed else square


@njit(cache=True, error_model="numpy")
def attempt(w, context, t, h):
    """Try one step of size h; the new point is left in z, its derivative in ``projected``."""
    w.run.nfev += w.stages
    w.run.error = math.inf
    status, cause, square = _stages(w, context, t, w.y, h), loop.SINGULAR_MATRIX, math.inf
    if status == OK:
        if w.s.project:
            status, cause, square = _end_with_projection(w, context, t + h, w.y, h)
        else:
            status, cause, square = _end_without_projection(w, context, t + h, w.y, h)
        finite = square
        for i in range(w.size):
            finite += w.projected[i]
        if cause == 0 and finite - finite != 0.0:
            cause = loop.NOT_FINITE
        w.run.error = math.sqrt(square / w.size)
    if status == INTERRUPTED:
        return leave(w, loop.STOPPED)
    if status == RAISED:
        return loop.FUNCTION_RAISED
    if cause == 0 and w.run.error > allowed(w) and w.run.constant == 0.0:
        return loop.ERROR_TEST
    return cause


@njit(cache=True, error_model="numpy")
def _first_step(w, context):
    """Hairer, Nørsett & Wanner, section II.4: from the sizes of y, y′ and an estimate of y″."""
    y, k, z, size, direction, t = w.y, w.k, w.z, w.size, w.run.direction, w.run.t
    span = abs(w.run.t_end - t)
    limit = min(span, w.run.h_max)
    d0 = math.sqrt(weighted_square(y, y, y, w.atol, w.rtol, size) / size)
    d1 = math.sqrt(weighted_square(k, y, y, w.atol, w.rtol, size) / size)
    h = min(0.01 * d0 / d1 if d0 > 1e-5 and d1 > 1e-5 else 1e-6 * span, limit)
    for i in range(size):
        z[i] = y[i] + direction * h * k[i]
    w.run.nfev += 1
    d2 = 0.0
    if derivative(w, context, t + direction * h, z, w.projected) == OK:
        for i in range(size):
            w.projected[i] = (w.projected[i] - k[i]) / h
        d2 = math.sqrt(weighted_square(w.projected, y, y, w.atol, w.rtol, size) / size)
    if d2 - d2 != 0.0:
        return h * 1e-3
    largest = max(d1, d2)
    other = (0.01 / largest) ** w.s.exponent if largest > 1e-15 else max(1e-6 * span, h * 1e-3)
    return min(100 * h, other, limit)


@njit(cache=True, error_model="numpy")
def begin(w, context):
    """Derivative and step size at the initial point."""
    w.run.nfev += 1
    code = enter_start(w, context)
    if code == OK:
        for i in range(w.size):
            w.k[i] = w.projected[i]
        given = choose_given(w.run, 0.0)
        w.run.h = given if given > 0.0 else _first_step(w, context)
    return code


@njit(cache=True, error_model="numpy")
def accept(w, steps, row, t, h, t_new):
    """Move on to z and choose the next step size."""
    y, z, s = w.y, w.z, w.s
    widen_scales(w, z, w.size)
    keep_beginning(w, steps, row)
    for i in range(w.size):
        w.y_old[i] = y[i]
        y[i] = z[i]
        w.k_new[i] = w.projected[i]
    choose_next(w, h, _GROW)
    if s.stiff > 0 and w.run.accepted % _EVERY == 0:
        _watch_stiffness(w, h)


@njit(cache=True, error_model="numpy")
def _looks_stiff(w, h):
    """Whether stability limits the step: h |λ| from the end of the step and its last stage, which belong to
    the same time (Hairer & Wanner, section IV.2).
    """
    combine(w.sums, w.stages - 1, h, w.y_old, w.k, w.z)
    k, rates, distance = shift(w.k, (w.stages - 1) * w.stride), 0.0, 0.0
    for i in range(w.size):
        rates += (w.k_new[i] - k[i]) ** 2
        distance += (w.y[i] - w.z[i]) ** 2
    return h * h * rates > (_NEAR * w.s.stable) ** 2 * distance


@njit(cache=True, error_model="numpy")
def _watch_stiffness(w, h):
    """Leave the loop once when stiffness is detected; the caller decides what follows."""
    if not _looks_stiff(w, h):
        w.s.stiff = 1
        return
    w.s.stiff += 1
    if w.s.stiff > _HITS:
        w.s.stiff = -1
        w.run.budget = 0


@njit(cache=True, error_model="numpy")
def watch(w, context, found):
    if w.run.watch > 0:
        leapt = _LEAPT if has_leapt(w.s) else 1.0
        rank_watch_in(w).limit = rank_watch.SINGULAR_BELOW * leapt
        w.s.leaps = 0
    watch_projected(w, context, found, w.s.project)


@njit(cache=True, error_model="numpy")
def settle(w):
    for i in range(w.size):
        w.k[i] = w.k_new[i]


@njit(cache=True, error_model="numpy")
def resume(w, context):
    """After a switch the state is the same, but the derivative and the step size are new."""
    status = derivative(w, context, w.run.t, w.y, w.k)
    if status != OK:
        return loop.STEP_TOO_SMALL if status == SINGULAR else loop.code_of(status)
    if w.run.constant == 0.0:
        w.run.h = min(w.run.h, _first_step(w, context))
        w.s.after_rejection = 0
    return OK


@njit(cache=True, error_model="numpy")
def reject(w, t, h, cause):
    """Choose another step after a rejected one; False if it cannot be made smaller."""
    passing = leap(w, h, cause)
    if passing == LEAP:
        return True
    if passing == TRIED:
        return shrink(w, t, w.s.rejected_size, loop.PROJECTION_FAILED)
    return shrink(w, t, h, cause)


propose = propose_explicit
advance = loop.advance_with(globals())


@njit(cache=True, error_model="numpy")
def inside(w, context, t, out):
    """A step from the beginning of the last one to t, so it has the method's order and lies on the
    manifold; k₀ is known.
    """
    t_old = w.run.t_old
    status = _stages(w, context, t_old, w.y_old, t - t_old)
    if status == OK and w.s.project:
        status, cause = onto_manifold(w, context, t)
        if cause != 0:
            status = max(status, SINGULAR)
    for i in range(w.size):
        out[i] = w.z[i]
    return status


@njit(cache=True, error_model="numpy")
def nearly(w, t, out):
    """Hermite's cubic through both ends of the last step."""
    hermite(w.run, t, w.y_old, w.k, w.y, w.k_new, w.size, out)


@njit(cache=True, error_model="numpy")
def recall(w, context, rows, row):
    recall_beginning(w, rows, row)
    return derivative(w, context, w.run.t_old, w.y_old, w.k)


POINTS = True
interpolant, preview, evaluate = between_steps(globals())

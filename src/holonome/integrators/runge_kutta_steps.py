"""Explicit Runge–Kutta methods on the underlying ODE, each step followed by a projection onto the manifold.

One step from y with k₀ = y′:

    k_i = F(t + c_i h, y + h Σ_{j<i} a_ij k_j),     ẑ = y + h Σ b_i k_i,     e = h Σ e_i k_i

ẑ is corrected by Newton steps δ until it lies on the manifold to rounding (usually one or two), the error e
is freed of its part normal to the manifold (Eich 1993, section 4.1), and the derivative at the end serves as
k₀ of the next step; all three come from one kernel, the projection (:mod:`holonome.dynamics.kernels`).
The solution between the steps is in :mod:`holonome.integrators.runge_kutta_output`.
"""

from __future__ import annotations

import math
from collections import namedtuple

from numba import njit

from holonome.dynamics.parts import correction_in, error_in, missed_in, regularity_in
from holonome.dynamics.projection import LARGEST_CORRECTION, MOST_CORRECTIONS, add_correction, has_converged
from holonome.integrators import loop, rank_watch
from holonome.integrators.loop import (
    OWN,
    leave,
    propose_explicit,
    rank_watch_in,
    run_state,
    watch_ends,
    weighted_square,
)
from holonome.integrators.passing import LEAP, TRIED, allowed, has_leapt, leap
from holonome.integrators.start_check import is_consistent
from holonome.integrators.step_size import choose_next, shrink
from holonome.integrators.tableau import END, combine
from holonome.machine.calls import call, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED, SINGULAR, named_context
from holonome.machine.layout import Layout, Real, Vector, Whole

_GROW = 8.0
_LEAPT = 30.0
"""By how much less accurate the watch is over a step that passes a singular position."""

_CONTRADICTION = 1e-7
"""What may remain of a row that depends on others, as a distance relative to the largest position (or
velocity).
"""

_EVERY, _HITS, _NEAR = 8, 8, 0.5
"""A step looks stiff where h|λ| is more than this part of the stability interval; checked every so many
steps, and reported after so many consecutive hits.
"""

TRUSTED, UNCONSTRAINED, CONSTRAINED = range(3)
"""What has to be checked at the start: nothing, masses, or constraints as well."""


class RungeKuttaState(Layout):
    """The integrator's part of the memory."""

    coordinates: Whole
    stages: Whole
    order: Whole
    two_errors: Whole  # whether the method has a second error estimator
    project: Whole  # whether steps end on the manifold
    check: Whole  # what has to be checked at the start
    derivative: Whole  # addresses
    projection: Whole
    dense_derivative: Whole
    dense_projection: Whole
    last_weight: Real  # of the derivative at the end, in the error
    exponent: Real  # 1 / (order of the error + 1)
    beta: Real  # of the step size control
    stable: Real  # length of the real stability interval
    log_error: Real  # of the step before
    after_rejection: Whole
    leaps: Whole  # how many were tried over a singular position
    rejected_size: Real  # of the step that was tried first
    gap_count: Whole
    kappa: Real  # constant of Newton's quadratic convergence, as measured
    scale_q: Real  # the largest position and velocity so far
    scale_v: Real
    stiff: Whole  # 0: not checked; otherwise 1 + consecutive hits; −1: detected
    sums: Vector  # addresses
    c: Vector
    gaps: Vector  # between stages, in the order in which they are tried
    k: Vector
    k_new: Vector
    z: Vector
    error: Vector
    projected: Vector  # result of the projection, which begins with the derivative


named = RungeKuttaState.named()


Work = namedtuple(
    "Work",
    "memory run s n size stride stages derivative projection dense_derivative dense_projection rtol "
    "last_weight atol y y_old z k k_new sums c error projected",
)
"""The memory taken apart once, so that loops work with plain pointers and numbers."""


@njit(cache=True, error_model="numpy")
def parts(memory):
    run, s = run_state(memory), named(shift(memory, OWN))
    return Work(
        memory,
        run,
        s,
        s.coordinates,
        run.size,
        (run.size + 3) // 4 * 4,
        s.stages,
        s.derivative,
        s.projection,
        s.dense_derivative,
        s.dense_projection,
        run.rtol,
        s.last_weight,
        run.atol,
        run.y,
        run.y_old,
        s.z,
        s.k,
        s.k_new,
        s.sums,
        s.c,
        s.error,
        s.projected,
    )


@njit(cache=True, inline="always", error_model="numpy")
def derivative(w, context, t, y, out):
    status = call(w.derivative, t, y, y, context, out)
    if status == SINGULAR:
        status = call(w.dense_derivative, t, y, y, context, out)
    return status


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
    """Derivative and error at the end of a step that is not projected; as `_project`."""
    status = derivative(w, context, t, w.z, w.projected)
    if status != OK:
        w.run.t_failed = t
        return status, loop.SINGULAR_MATRIX, math.inf
    combine(w.sums, w.stages, h, y, w.k, w.error)
    for i in range(w.size):
        w.error[i] += h * w.last_weight * w.projected[i]
    return OK, 0, weighted_square(w.error, y, w.z, w.atol, w.rtol, w.size) * _share(w, y, h)


@njit(cache=True, inline="always", error_model="numpy")
def evaluate_projection(w, context, t, y, out):
    status = call(w.projection, t, y, w.error, context, out)
    if status == SINGULAR:
        status = call(w.dense_projection, t, y, w.error, context, out)
    return status


@njit(cache=True, error_model="numpy")
def correct(w):
    """Add δ to z; its size relative to the largest position and velocity, and whether rows conflict."""
    span, missed = abs(w.run.t_end - w.run.t_start), missed_in(w.projected, w.size)
    correction, scale_q, scale_v = add_correction(
        w.z, correction_in(w.projected, w.size), w.n, w.size, w.s.scale_q, w.s.scale_v, span
    )
    return correction, missed[0] > _CONTRADICTION * scale_q or missed[1] > _CONTRADICTION * scale_v


@njit(cache=True, error_model="numpy")
def _project(w, context, t, y, h, measure):
    """Bring z onto the manifold; (status, cause of failure, squared error).  The derivative is left in
    ``projected``.

    κ is the measured constant of Newton's quadratic convergence: a correction δ leaves about κ δ².
    """
    previous, square = math.inf, 0.0
    if measure:
        combine(w.sums, w.stages, h, y, w.k, w.error)
        w.error[w.size] = h * w.last_weight
    for iteration in range(MOST_CORRECTIONS):
        status = evaluate_projection(w, context, t, w.z, w.projected)
        w.run.projections += 1
        if status != OK:
            w.run.t_failed = t
            return status, loop.SINGULAR_MATRIX, math.inf
        if measure and iteration == 0:
            tangential = error_in(w.projected, w.size)
            square = weighted_square(tangential, y, w.z, w.atol, w.rtol, w.size) * _share(w, y, h)
            if square > allowed(w) ** 2 * w.size and w.run.constant == 0.0:
                return OK, loop.ERROR_TEST, square
        correction, contradiction = correct(w)
        w.run.correction = correction
        w.run.iterations = iteration + 1
        if not correction < LARGEST_CORRECTION:
            return OK, loop.PROJECTION_FAILED if correction == correction else loop.NOT_FINITE, math.inf
        if 1e-7 < previous < 1e-2:
            w.s.kappa = max(2.0 * correction / (previous * previous), 0.5 * w.s.kappa, 1e-3)
        if has_converged(correction, previous, w.s.kappa):
            return OK, loop.CONTRADICTION if contradiction else 0, square
        if iteration > 2 and correction > previous:
            break
        previous = correction
    return OK, loop.PROJECTION_FAILED, math.inf


@njit(cache=True, error_model="numpy")
def attempt(w, context, t, h):
    """Try one step of size h; the new point is left in z, its derivative in ``projected``."""
    w.run.nfev += w.stages
    w.run.error = math.inf
    status, cause, square = _stages(w, context, t, w.y, h), loop.SINGULAR_MATRIX, math.inf
    if status == OK:
        if w.s.project:
            status, cause, square = _project(w, context, t + h, w.y, h, True)
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
def check_start(w, context):
    """Evaluate the derivative at the start into ``projected``; (status, whether consistent and regular)."""
    if w.s.check != CONSTRAINED:
        status = derivative(w, context, w.run.t, w.y, w.projected)
        return status, w.s.check == TRUSTED or named_context(context).dense_calls == 0
    for i in range(w.size + 1):
        w.error[i] = 0.0
    status = evaluate_projection(w, context, w.run.t, w.y, w.projected)
    return status, is_consistent(w.run, w.projected, context, w.n, w.size)


@njit(cache=True, error_model="numpy")
def begin(w, context):
    """Derivative and step size at the initial point."""
    y, s = w.y, w.s
    for i in range(w.n):
        s.scale_q = max(s.scale_q, abs(y[i]), w.atol[i])
    for i in range(w.n, w.size):
        s.scale_v = max(s.scale_v, abs(y[i]), w.atol[i])
    w.run.nfev += 1
    status, consistent = check_start(w, context)
    if status == OK and not consistent:
        return loop.OFF_MANIFOLD
    if status >= RAISED:
        return loop.code_of(status)
    total = 0.0
    for i in range(w.size):
        w.k[i] = w.projected[i]
        total += w.projected[i] + y[i]
    if status != OK or total - total != 0.0:
        return loop.CANNOT_START
    w.run.order = s.order
    if w.run.constant > 0.0:
        w.run.h = w.run.constant
    elif w.run.first_step > 0.0:
        w.run.h = w.run.first_step
    else:
        w.run.h = _first_step(w, context)
    return OK


@njit(cache=True, error_model="numpy")
def accept(w, steps, row, t, h, t_new):
    """Move on to z and choose the next step size."""
    n, y, z, s = w.n, w.y, w.z, w.s
    scale_q, scale_v = s.scale_q, s.scale_v
    for i in range(n):
        scale_q = max(scale_q, abs(z[i]))
    for i in range(n, w.size):
        scale_v = max(scale_v, abs(z[i]))
    s.scale_q = scale_q
    s.scale_v = scale_v
    if row >= 0 and steps.shape[1] > loop.STEP_COLUMNS:
        for i in range(w.size):
            steps[row, loop.STEP_COLUMNS + i] = y[i]
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
    """The projection has already computed the values; without it, a kernel is called."""
    run = w.run
    if w.s.project:
        step = rank_watch.Step(run.t_old, w.y_old, shift(w.y_old, w.n), run.t, w.y, shift(w.y, w.n))
        values, watch = regularity_in(w.projected, w.size), rank_watch_in(w)
        watch.limit = rank_watch.SINGULAR_BELOW * (_LEAPT if has_leapt(w.s) else 1.0)
        w.s.leaps = 0
        run.found = rank_watch.watch_step(watch, context, step, values, found, run.found)
    else:
        watch_ends(w, context, found)


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
def inside(w, context, t_old, y_old, t):
    """A step from t_old to t, in z; k₀ is known."""
    status = _stages(w, context, t_old, y_old, t - t_old)
    if status == OK and w.s.project:
        status, cause, _ = _project(w, context, t, y_old, t - t_old, False)
        if cause != 0:
            status = max(status, SINGULAR)
    return status

"""Taylor series of the underlying ODE, each step followed by a projection onto the manifold.

At the beginning of a step the coefficients of

    y(t + s σ) = Σ y_k s^k,     k ≤ N,

are known, with a unit of time σ, the size of the step before.  The step is as long as the last two of them
allow (Jorba & Zou 2005): in units of the tolerances neither |y_N| s^N nor |y_{N−1}| s^{N−1} may exceed a
bound, with which the terms that are left out sum up to a tenth of the tolerance if they go on as a geometric
series.  The sum at the end is corrected
by Newton steps until it lies on the manifold to rounding.

The series does not know what happens on the way: a force may have a kink there.  So the derivative of the sum
is compared with the accelerations, at the end of the step and, where a model has piecewise functions, also
inside it.  The difference d, over a step of size h, is an error of h d for a kink, and of h d / (N + 1) for
the first term that is left out.
"""

from __future__ import annotations

import math
from collections import namedtuple

from numba import njit

from holonome.dynamics.projection import LARGEST_CORRECTION, MOST_CORRECTIONS, has_converged
from holonome.integrators import loop
from holonome.integrators.loop import OWN, leave, propose_explicit, run_state, weighted_square
from holonome.integrators.runge_kutta_steps import (
    check_start,
    correct,
    derivative,
    evaluate_projection,
)
from holonome.integrators.runge_kutta_steps import watch as watch_with_projection
from holonome.integrators.step_size import shrink
from holonome.machine.calls import NativeKernel, call, pointer, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED, SINGULAR
from holonome.machine.layout import Layout, Real, Vector, Whole
from holonome.machine.series import ORDER, UNIT

_GROW = 10.0
_GROW_PIECEWISE = 2.0
_FAR, _ATTEMPTS = 100.0, 8
"""A unit of time that is so many times too long or too short is replaced, so many times at most."""


class TaylorState(Layout):
    """The integrator's part of the memory."""

    order: Whole
    series: Whole  # address
    safe: Real  # how large, in units of the tolerance, the last terms of a step may be
    exponent: Real  # of the step size control after a rejection
    coordinates: Whole
    project: Whole  # whether steps end on the manifold
    check: Whole  # what has to be checked at the start
    piecewise: Whole  # whether the model has piecewise functions
    derivative: Whole  # addresses
    projection: Whole
    dense_derivative: Whole
    dense_projection: Whole
    rows: Whole  # rows of coefficients for which there is room
    current: Whole  # which of the two series begins at the present point
    unit: Real  # σ of the present series, and of the one before
    unit_old: Real
    longest: Real  # step that the series at the new point allows
    after_rejection: Whole
    kappa: Real  # constant of Newton's quadratic convergence, as measured
    scale_q: Real  # the largest position and velocity so far
    scale_v: Real
    coefficients: Vector  # of both series, one after the other
    work: Vector  # of the kernel of the series
    z: Vector  # the new point
    rate: Vector  # derivative of the sum
    error: Vector
    projected: Vector  # result of the projection


named = TaylorState.named()

Work = namedtuple(
    "Work",
    "memory run s n size stride order length series derivative projection dense_derivative "
    "dense_projection rtol atol y y_old z rate error projected coefficients work",
)
"""The memory taken apart once."""


@njit(cache=True, error_model="numpy")
def parts(memory):
    run, s = run_state(memory), named(shift(memory, OWN))
    stride = (run.size + 3) // 4 * 4
    return Work(
        memory,
        run,
        s,
        s.coordinates,
        run.size,
        stride,
        s.order,
        s.rows * stride,
        s.series,
        s.derivative,
        s.projection,
        s.dense_derivative,
        s.dense_projection,
        run.rtol,
        run.atol,
        run.y,
        run.y_old,
        s.z,
        s.rate,
        s.error,
        s.projected,
        s.coefficients,
        s.work,
    )


@njit(cache=True, inline="always")
def present(w):
    """The series that begins at the present point."""
    return shift(w.coefficients, w.s.current * w.length)


@njit(cache=True, inline="always")
def former(w):
    """The series of the last step."""
    return shift(w.coefficients, (1 - w.s.current) * w.length)


@njit(cache=True, fastmath={"contract"}, error_model="numpy")
def evaluate(w, series, s, out, rate):
    """The sum at s, by Horner's rule, and its derivative by s."""
    for i in range(w.size):
        value, slope = series[w.order * w.stride + i], 0.0
        for k in range(w.order - 1, -1, -1):
            slope = slope * s + value
            value = value * s + series[k * w.stride + i]
        out[i] = value
        rate[i] = slope


@njit(cache=True, error_model="numpy")
def expand(w, context, t, y, unit, series):
    """Coefficients at a point, in a unit of time; a status."""
    w.work[ORDER] = w.order
    w.work[UNIT] = unit
    status = call(w.series, t, y, w.work, context, series)
    if status != OK:
        w.run.t_failed = t
    return status


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def longest_step(w, series, unit):
    """The step that the last two coefficients allow; infinite if they vanish, NaN if they are not finite."""
    last, other = 0.0, 0.0
    for i in range(w.size):
        weight = 1.0 / (w.atol[i] + w.rtol * abs(series[i]))
        x, y = series[w.order * w.stride + i] * weight, series[(w.order - 1) * w.stride + i] * weight
        last += x * x
        other += y * y
    if last == 0.0 and other == 0.0:
        return math.inf
    scale = 1.0 / (w.s.safe * w.s.safe * w.size)
    growth = max(math.log(last * scale) / w.order, math.log(other * scale) / (w.order - 1))
    return unit * math.exp(-0.5 * growth) if last + other < math.inf else math.nan


@njit(cache=True, error_model="numpy")
def _onto_manifold(w, context, t):
    """Bring z onto the manifold; (status, cause of failure)."""
    previous = math.inf
    for iteration in range(MOST_CORRECTIONS):
        status = evaluate_projection(w, context, t, w.z, w.projected)
        w.run.projections += 1
        if status != OK:
            w.run.t_failed = t
            return status, loop.SINGULAR_MATRIX
        correction, contradiction = correct(w)
        w.run.correction = correction
        w.run.iterations = iteration + 1
        if not correction < LARGEST_CORRECTION:
            return OK, loop.PROJECTION_FAILED if correction == correction else loop.NOT_FINITE
        if 1e-7 < previous < 1e-2:
            w.s.kappa = max(2.0 * correction / (previous * previous), 0.5 * w.s.kappa, 1e-3)
        if has_converged(correction, previous, w.s.kappa):
            return OK, loop.CONTRADICTION if contradiction else 0
        if iteration > 2 and correction > previous:
            break
        previous = correction
    return OK, loop.PROJECTION_FAILED


@njit(cache=True, error_model="numpy")
def _defect(w, rate, unit, h, per_order):
    """The error of a step of size h with this difference of the derivatives, in units of the tolerances."""
    for i in range(w.size):
        w.error[i] = h * (w.rate[i] / unit - rate[i]) * per_order
    return math.sqrt(weighted_square(w.error, w.y, w.z, w.atol, w.rtol, w.size) / w.size)


@njit(cache=True, error_model="numpy")
def _defect_inside(w, context, t, h):
    """(status, the largest error at a few points inside a step), for piecewise functions."""
    largest = 0.0
    for part in (0.15, 0.4, 0.65, 0.87):
        evaluate(w, present(w), part * h / w.s.unit, w.z, w.rate)
        status = derivative(w, context, t + part * h, w.z, w.projected)
        if status != OK:
            w.run.t_failed = t + part * h
            return status, math.inf
        largest = max(largest, _defect(w, w.projected, w.s.unit, h, 1.0))
    return OK, largest


@njit(cache=True, error_model="numpy")
def _try(w, context, t, h):
    """One step of size h into z, and the series from there; (status, cause of failure, error)."""
    inside = 0.0
    if w.s.piecewise:
        status, inside = _defect_inside(w, context, t, h)
        if status != OK:
            return status, loop.SINGULAR_MATRIX, math.inf
        if not inside <= 1.0 and w.run.constant == 0.0:
            return OK, loop.ERROR_TEST if inside == inside else loop.NOT_FINITE, inside
    evaluate(w, present(w), h / w.s.unit, w.z, w.rate)
    if w.s.project:
        for i in range(w.size + 1):
            w.error[i] = 0.0
        status, cause = _onto_manifold(w, context, t + h)
        if status != OK or cause != 0:
            return status, cause, math.inf
    status = expand(w, context, t + h, w.z, abs(h), former(w))
    if status != OK:
        return status, loop.SINGULAR_MATRIX, math.inf
    for i in range(w.size):
        w.projected[i] = former(w)[w.stride + i] / abs(h)
    per_order = 1.0 if w.s.piecewise else 1.0 / (w.order + 1)
    return OK, 0, max(inside, _defect(w, w.projected, w.s.unit, h, per_order))


@njit(cache=True, error_model="numpy")
def attempt(w, context, t, h):
    """Try one step of size h; the new point is left in z, its series in place of the former one."""
    run = w.run
    run.nfev += 1
    status, cause, run.error = _try(w, context, t, h)
    if status == INTERRUPTED:
        return leave(w, loop.STOPPED)
    if status == RAISED:
        return loop.FUNCTION_RAISED
    if cause == 0 and run.error - run.error != 0.0:
        return loop.NOT_FINITE
    if cause == 0 and run.error > 1.0 and run.constant == 0.0:
        return loop.ERROR_TEST
    if cause == 0:
        w.s.longest = longest_step(w, former(w), abs(h))
        if not w.s.longest > 0.0:
            return loop.NOT_FINITE
    return cause


@njit(cache=True, error_model="numpy")
def _begin_series(w, context):
    """The series from the present point, in a unit of time that suits it, and the first step; a status."""
    run, s = w.run, w.s
    span = abs(run.t_end - run.t_start)
    unit = run.h if run.h > 0.0 else 0.01 * span
    for _ in range(_ATTEMPTS):
        status = expand(w, context, run.t, w.y, unit, present(w))
        run.nfev += 1
        s.unit = unit
        if status != OK:
            return status
        h = longest_step(w, present(w), unit)
        if not h > 0.0:
            unit *= 1e-4
        elif h > _FAR * unit and unit < span:
            unit = min(h, span)
        elif h * _FAR < unit:
            unit = h
        else:
            break
    if run.constant == 0.0:
        run.h = min(h if h > 0.0 else 1e-6 * span, run.h_max, max(span, 10.0 * unit))
    return OK if h > 0.0 else SINGULAR


@njit(cache=True, error_model="numpy")
def begin(w, context):
    """Series and step size at the initial point."""
    y, s, run = w.y, w.s, w.run
    for i in range(w.n):
        s.scale_q = max(s.scale_q, abs(y[i]), w.atol[i])
    for i in range(w.n, w.size):
        s.scale_v = max(s.scale_v, abs(y[i]), w.atol[i])
    status, consistent = check_start(w, context)
    if status == OK and not consistent:
        return loop.OFF_MANIFOLD
    if status >= RAISED:
        return loop.code_of(status)
    total = 0.0
    for i in range(w.size):
        total += w.projected[i] + y[i]
    if status != OK or total - total != 0.0:
        return loop.CANNOT_START
    run.order = s.order
    if run.constant > 0.0:
        run.h = run.constant
    status = _begin_series(w, context)
    if status != OK:
        return loop.CANNOT_START
    if run.constant > 0.0:
        run.h = run.constant
    elif run.first_step > 0.0:
        run.h = run.first_step
    return OK


@njit(cache=True, error_model="numpy")
def accept(w, steps, row, t, h, t_new):
    """Move on to z and its series, and choose the next step size."""
    run, s, y, z = w.run, w.s, w.y, w.z
    if row >= 0 and steps.shape[1] > loop.STEP_COLUMNS:
        for i in range(w.size):
            steps[row, loop.STEP_COLUMNS + i] = y[i]
    for i in range(w.n):
        s.scale_q = max(s.scale_q, abs(z[i]))
    for i in range(w.n, w.size):
        s.scale_v = max(s.scale_v, abs(z[i]))
    for i in range(w.size):
        w.y_old[i] = y[i]
        y[i] = z[i]
    s.unit_old = s.unit
    s.unit = abs(h)
    s.current = 1 - s.current
    if run.constant == 0.0:
        most = _GROW_PIECEWISE if s.piecewise else _GROW
        most = 1.0 if s.after_rejection else most
        run.h = min(s.longest, most * abs(h), run.h_max)
    s.after_rejection = 0


@njit(cache=True, error_model="numpy")
def watch(w, context, found):
    watch_with_projection(w, context, found)


@njit(cache=True, error_model="numpy")
def resume(w, context):
    """After a switch the state is the same, but the series and the step size are new."""
    h = w.run.h
    status = _begin_series(w, context)
    if status != OK:
        return loop.STEP_TOO_SMALL if status == SINGULAR else loop.code_of(status)
    w.run.h = h if w.run.constant > 0.0 else min(h, w.run.h)
    w.s.after_rejection = 0
    return OK


propose, reject = propose_explicit, shrink
advance = loop.advance_with(globals())


@njit(cache=True, error_model="numpy")
def inside(w, context, series, unit, t_old, t):
    """The solution at a time from the series of its step, in z; a status."""
    evaluate(w, series, (t - t_old) / unit, w.z, w.rate)
    if w.s.project:
        for i in range(w.size + 1):
            w.error[i] = 0.0
        status, cause = _onto_manifold(w, context, t)
        return max(status, SINGULAR) if cause != 0 else status
    return OK


@NativeKernel
def interpolant(t, y, memory, context, out):
    """The solution at a time inside the last step: its series, projected."""
    w = parts(memory)
    status = inside(w, context, former(w), w.s.unit_old, w.run.t_old, t)
    for i in range(w.size):
        out[i] = w.z[i]
    return status


@NativeKernel
def preview(t, y, memory, context, out):
    """The series of the last step."""
    w = parts(memory)
    evaluate(w, former(w), (t - w.run.t_old) / w.s.unit_old, out, w.rate)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate_many(memory_array, context_array, times, states, steps, wanted, out):
    """The solution at many times from the stored steps; as for Runge–Kutta methods
    (:mod:`holonome.integrators.runge_kutta_output`), but with a series for each step.
    """
    memory, context = pointer(memory_array), pointer(context_array)
    w, current, unit = parts(memory), -1, 1.0
    for row in range(wanted.size):
        number = steps[row]
        if wanted[row] == times[number]:
            for i in range(w.size):
                out[row, i] = states[number, i]
            continue
        if number != current:
            for i in range(w.size):
                w.y_old[i] = states[number, i]
            following = times[number + 1] if number + 1 < times.size else w.run.t_end
            unit = abs(following - times[number])
            if expand(w, context, times[number], w.y_old, unit, present(w)) != OK:
                return row
            current = number
        if inside(w, context, present(w), unit, times[number], wanted[row]) != OK:
            return row
        for i in range(w.size):
            out[row, i] = w.z[i]
    return wanted.size

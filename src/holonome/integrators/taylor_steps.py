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

from numba import njit

from holonome.integrators import loop
from holonome.integrators.between_steps import between_steps
from holonome.integrators.loop import OWN, RunState, leave, propose_explicit, weighted_square
from holonome.integrators.projected_steps import (
    PROJECTED,
    ProjectedState,
    choose_given,
    clear_error,
    derivative,
    enter_start,
    keep_beginning,
    onto_manifold,
    recall_beginning,
    watch_projected,
    widen_scales,
)
from holonome.integrators.step_size import shrink
from holonome.machine.calls import call, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED, SINGULAR
from holonome.machine.layout import Real, Vector, Whole, taken_apart
from holonome.machine.series import ORDER, UNIT

_GROW = 10.0
_GROW_PIECEWISE = 2.0
_FAR, _ATTEMPTS = 100.0, 8
"""A unit of time that is so many times too long or too short is replaced, so many times at most."""


class TaylorState(ProjectedState):
    """The integrator's part of the memory."""

    order: Whole
    series: Whole  # address
    safe: Real  # how large, in units of the tolerance, the last terms of a step may be
    exponent: Real  # of the step size control after a rejection
    piecewise: Whole  # whether the model has piecewise functions
    length: Whole  # of a series
    current: Whole  # which of the two series begins at the present point
    unit: Real  # σ of the present series, and of the one before
    unit_old: Real
    longest: Real  # step that the series at the new point allows
    coefficients: Vector  # of both series, one after the other
    work: Vector  # of the kernel of the series
    rate: Vector  # derivative of the sum


Work, parts = taken_apart(
    __name__,
    {"run": (RunState, 0), "s": (TaylorState, OWN)},
    PROJECTED + "order length series rate coefficients work",
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
def evaluate_sum(w, series, s, out, rate):
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


@njit(cache=True, inline="always", error_model="numpy")
def _end_of_sum(w, context, t, s, series):
    """The sum at s in z, brought onto the manifold; (status, cause of failure)."""
    evaluate_sum(w, series, s, w.z, w.rate)
    if not w.s.project:
        return OK, 0
    clear_error(w)
    return onto_manifold(w, context, t)


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
        evaluate_sum(w, present(w), part * h / w.s.unit, w.z, w.rate)
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
    status, cause = _end_of_sum(w, context, t + h, h / w.s.unit, present(w))
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
    run = w.run
    code = enter_start(w, context)
    if code != OK:
        return code
    if run.constant > 0.0:
        run.h = run.constant
    if _begin_series(w, context) != OK:
        return loop.CANNOT_START
    run.h = choose_given(run, run.h)
    return OK


@njit(cache=True, error_model="numpy")
def accept(w, steps, row, t, h, t_new):
    """Move on to z and its series, and choose the next step size."""
    run, s, y, z = w.run, w.s, w.y, w.z
    keep_beginning(w, steps, row)
    widen_scales(w, z, w.size)
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
    watch_projected(w, context, found, w.s.project)


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
def inside(w, context, t, out):
    """The series of the last step, projected."""
    status, cause = _end_of_sum(w, context, t, (t - w.run.t_old) / w.s.unit_old, former(w))
    for i in range(w.size):
        out[i] = w.z[i]
    return max(status, SINGULAR) if cause != 0 else status


@njit(cache=True, error_model="numpy")
def nearly(w, t, out):
    """The series of the last step."""
    evaluate_sum(w, former(w), (t - w.run.t_old) / w.s.unit_old, out, w.rate)


@njit(cache=True, error_model="numpy")
def recall(w, context, rows, row):
    recall_beginning(w, rows, row)
    t = w.run.t_old
    following = rows[row + 1, 0] if row + 1 < rows.shape[0] else w.run.t_end
    w.s.unit_old = abs(following - t)
    return expand(w, context, t, w.y_old, w.s.unit_old, former(w))


POINTS = True
interpolant, preview, evaluate = between_steps(globals())

"""A step of all iterations of sequential regularization by an explicit Runge–Kutta method, and its memory."""

import math
from collections import namedtuple

from numba import njit

from holonome.integrators.loop import OWN, RunState, weighted_square
from holonome.integrators.sequence import SequenceState, copy, y0_at
from holonome.integrators.tableau import END, combine
from holonome.machine.calls import call, shift
from holonome.machine.context import OK, RAISED, SINGULAR
from holonome.machine.layout import Layout, Real, Vector, Whole, taken_apart


class SequentialState(Layout):
    """The explicit integrator's part of the memory."""

    stages: Whole
    stride: Whole  # doubles from one iteration, and one stage, to the next
    order: Whole
    two_errors: Whole
    mesh: Whole  # whether y_{s−1} is taken at the points of the mesh
    times: Whole  # how often (5.2) is applied
    stabilization: Whole  # addresses
    free: Whole
    holds: Whole  # whether y_s may keep its value at a singular point
    held: Whole  # how often it was held
    held_steps: Whole  # number of consecutive steps in which it was
    t_held: Real  # where it was held first
    active_old: Whole  # iterations in the last step
    last_weight: Real
    exponent: Real
    beta: Real
    log_error: Real
    after_rejection: Whole
    sums: Vector
    c: Vector
    x: Vector
    x_old: Vector
    x_new: Vector
    f: Vector
    f_old: Vector
    f_new: Vector
    carry: Vector
    carry_old: Vector
    carry_new: Vector
    k: Vector
    stage_carry: Vector
    point: Vector
    z: Vector
    error: Vector


Work, parts = taken_apart(
    __name__,
    {
        "run": (RunState, 0),
        "q": (SequenceState, OWN),
        "s": (SequentialState, OWN + SequenceState.words),
    },
    "size=q.state stride carried=q.carried stages atol=run.atol rtol=run.rtol eps=q.eps k sums c z out=q.out "
    "point",
)


Iterations = namedtuple("Iterations", "x f carry")
"""x, x′ and y of all iterations at one time."""


@njit(cache=True)
def now_in(w):
    return Iterations(w.s.x, w.s.f, w.s.carry)


@njit(cache=True)
def _rate(w, context, t, s, x, previous, last, f, carry):
    """x_s′ and y_s from y_{s−1}; exactly at a singular point y_s keeps its last value."""
    w.z[0] = w.eps[s]
    copy(previous, shift(w.z, 1), w.carried)
    status = call(w.q.rate, t, x, w.z, context, w.out)
    if status == SINGULAR and w.s.holds:
        if w.s.held == 0:
            w.s.t_held = t
        w.s.held += 1
        copy(last, shift(w.z, 1), w.carried)
        status = call(w.s.free, t, x, w.z, context, w.out)
    if status != OK:
        w.run.t_failed = t
        return status
    copy(w.out, f, w.size)
    copy(shift(w.out, w.size), carry, w.carried)
    w.q.violation = w.out[w.size + w.carried]
    return OK


@njit(cache=True)
def _stages(w, context, now, s, t, h):
    """The stages of x_s, in k."""
    stages, stride, carried = w.stages, w.stride, w.carried
    x, last = shift(now.x, s * stride), shift(now.carry, s * carried)
    own = shift(w.s.stage_carry, s * stages * carried)
    copy(shift(now.f, s * stride), w.k, stride)
    copy(last, own, carried)
    for i in range(1, stages):
        combine(w.sums, i, h, x, w.k, w.point)
        if s == 0:
            previous = y0_at(w.q, t + w.c[i] * h)
        elif w.s.mesh:
            previous = shift(w.s.carry_new, (s - 1) * carried)
        else:
            previous = shift(w.s.stage_carry, ((s - 1) * stages + i) * carried)
        k, carry = shift(w.k, i * stride), shift(own, i * carried)
        status = _rate(w, context, t + w.c[i] * h, s, w.point, previous, last, k, carry)
        if status != OK:
            return status
    return OK


@njit(cache=True)
def _stabilize(w, context, t, x):
    """(5.2), as often as asked for."""
    for _ in range(w.s.times):
        status = call(w.s.stabilization, t, x, w.z, context, w.out)
        if status >= RAISED:
            return status
        if status == OK:
            for i in range(w.size):
                x[i] += w.out[i]
    return OK


@njit(cache=True)
def _error(w, x, x_new, f_new, h):
    """Σ of the squared weighted error of one iteration; for the method of order 8 combined as in
    :mod:`holonome.integrators.runge_kutta_steps`.
    """
    error = w.s.error
    combine(w.sums, w.stages, h, x, w.k, error)
    for i in range(w.size):
        error[i] += h * w.s.last_weight * f_new[i]
    square = weighted_square(error, x, x_new, w.atol, w.rtol, w.size)
    if w.s.two_errors:
        combine(w.sums, w.stages + 1, h, x, w.k, error)
        both = square + 0.01 * weighted_square(error, x, x_new, w.atol, w.rtol, w.size)
        square = square * square / both if both != 0.0 else 0.0  # NaN remains NaN
    return square


@njit(cache=True)
def sweep(w, context, active, now, t, h, measure):
    """One step for all iterations, in order; the new ones are left in ``x_new``, ``f_new``, ``carry_new``.

    Returns the status and the squared error, summed.
    """
    total, stride, carried = 0.0, w.stride, w.carried
    for s in range(active):
        status = _stages(w, context, now, s, t, h)
        if status != OK:
            return status, math.inf
        x, last = shift(now.x, s * stride), shift(now.carry, s * carried)
        x_new, f_new, carry_new = (
            shift(w.s.x_new, s * stride),
            shift(w.s.f_new, s * stride),
            shift(w.s.carry_new, s * carried),
        )
        combine(w.sums, END, h, x, w.k, x_new)
        status = _stabilize(w, context, t + h, x_new)
        if status != OK:
            return status, math.inf
        previous = y0_at(w.q, t + h) if s == 0 else shift(w.s.carry_new, (s - 1) * carried)
        status = _rate(w, context, t + h, s, x_new, previous, last, f_new, carry_new)
        if status != OK:
            return status, math.inf
        if measure:
            total += _error(w, x, x_new, f_new, h)
    return OK, total


@njit(cache=True)
def rate_where_it_stands(w, context, t, s, previous):
    x, f = shift(w.s.x, s * w.stride), shift(w.s.f, s * w.stride)
    return _rate(w, context, t, s, x, previous, previous, f, shift(w.s.carry, s * w.carried))


@njit(cache=True)
def rates(w, context, t, active):
    """x_s′ and y_s of all iterations where they stand; a status."""
    status = OK
    for s in range(active):
        previous = y0_at(w.q, t) if s == 0 else shift(w.s.carry, (s - 1) * w.carried)
        w.run.nfev += 1
        status = rate_where_it_stands(w, context, t, s, previous)
        if status != OK:
            break
    return status

"""Explicit Runge–Kutta methods for sequential regularization: the iterations x_1 … x_S advanced together,
step by step.

    for each step:  for s = 1 … S:  a step of the method for x_s, in which y_{s−1} is known

so that nothing of y_{s−1}(t) has to be stored.  Heun's method takes y_{s−1} as mesh values, as the paper
does: y_{s−1}(t_n) in its first stage, the finished y_{s−1}(t_{n+1}) in its second.  The others take the value
that belongs to the same stage of x_{s−1}, so that they have their order for the iterations as one system.

Where the number of iterations is not given, one is added as soon as the last two differ by more than half the
tolerance at the end of a step: the new one starts from the current x_S, and the step is repeated.  Up to that
time x_{S−1} was within the tolerance, and x_S is more accurate.  If the last iteration allowed still differs
by far more, ε is too large.  Where ε is not given either, all iterations restart from x_S with ε/4 and y₀ =
y_S. In the initial layer of length ε, more iterations help only as far as y₀ agrees with y there, (2.14) and
Theorem 2.2; so y₀ starts with y, y′ and y″ of the exact solution, and after a restart with y_S and its slope.

An impasse is recognised by the velocity, a substantial part of which suddenly violates the constraints:
ε⁻¹ B E g′ is then far larger than all accelerations before.
"""

import math

from numba import njit

from holonome.integrators import loop, sequence
from holonome.integrators.between_steps import between_steps
from holonome.integrators.loop import hermite, leave, propose_explicit, watch_between
from holonome.integrators.sequence import copy
from holonome.integrators.sequential_sweep import Iterations, now_in, rate_where_it_stands, rates, sweep
from holonome.integrators.sequential_sweep import parts as parts
from holonome.integrators.step_size import choose_next, shrink
from holonome.machine.calls import call, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED

_GROW = 5.0

MOST_HELD_STEPS = 8
"""If the value is held for more consecutive steps than this, the singular position is not isolated."""


@njit(cache=True)
def _expand(w, context, other):
    """Match y₀ to y, y′, y″ of the exact solution, (2.14) with m = 2, by differences over h = τ/1000: from y
    now, after h and after ``other`` h, where ``other`` is −1 or, after a switch, 2.

    Where y is not known, y₀ stays constant.
    """
    q, n, x, t, exact = w.q, w.carried, w.s.x, w.run.t, w.q.multiplier
    h = 1e-3 * w.run.direction * q.tau
    q.y0_time = t
    q.y0_rate = w.run.direction / q.tau
    if call(exact, t, x, w.z, context, q.first) != OK:
        return
    copy(q.first, q.y0, n)
    y = shift(w.z, 1)
    for side in (h, other * h):
        copy(q.y0, y, n)
        copy(x, w.point, w.size)
        for share in (0.5, 1.0):  # the midpoint rule
            if call(w.s.free, t + (share - 0.5) * side, w.point, w.z, context, w.out) != OK:
                return
            for i in range(w.size):
                w.point[i] = x[i] + share * side * w.out[i]
            if call(exact, t + share * side, w.point, w.out, context, y) != OK:
                return
        if side == h:
            copy(y, q.first, n)
    for i in range(n):
        chord, far = (q.first[i] - q.y0[i]) / h, (y[i] - q.y0[i]) / (other * h)
        bend = (chord - far) / (h - other * h)
        slope = chord - bend * h
        q.y0_slope[i] = slope
        q.y0_bend[i] = bend + slope * q.y0_rate


@njit(cache=True)
def _add(w, context, t):
    """Add an iteration that starts where the last one is now."""
    active, s = w.q.active, w.s
    w.run.nfev += 1
    copy(shift(s.x, (active - 1) * w.stride), shift(s.x, active * w.stride), w.stride)
    w.q.active = active + 1
    return rate_where_it_stands(w, context, t, active, shift(s.carry, (active - 1) * w.carried))


@njit(cache=True)
def _enter_rates(w, context):
    """The same at the current time; OK, or a code."""
    status = rates(w, context, w.run.t, w.q.active)
    return loop.code_of(status) if status != OK else OK


@njit(cache=True)
def _restart(w, context):
    """Restart from x_S with y₀ = y_S and its slope over the last step, ε/4 and two iterations."""
    q, s, n, t, t_old, active = w.q, w.s, w.carried, w.run.t, w.run.t_old, w.q.active
    y, before = shift(s.carry, (active - 1) * n), shift(s.carry_old, (active - 1) * n)
    known = q.tau > 0.0 and s.active_old == active and t != t_old
    q.restarts += 1
    q.y0_time = t
    q.y0_rate = w.run.direction / q.tau if known else 0.0
    for i in range(n):
        slope = (y[i] - before[i]) / (t - t_old) if known else 0.0
        q.y0[i] = y[i]
        q.y0_slope[i] = slope
        q.y0_bend[i] = slope * q.y0_rate
    for number in range(q.most):
        w.eps[number] *= 0.25
        if number != active - 1:
            copy(shift(s.x, (active - 1) * w.stride), shift(s.x, number * w.stride), w.stride)
    q.active = min(2, q.most)
    q.before = 0.0
    w.run.h *= 0.25
    return _enter_rates(w, context)


@njit(cache=True)
def _show(w, x_all, carry_all, active, y):
    """The last iteration as the state of the run: x_S, and y_S as far as the state has room."""
    copy(shift(x_all, (active - 1) * w.stride), y, w.size)
    copy(shift(carry_all, (active - 1) * w.carried), shift(y, w.size), w.run.size - w.size)


@njit(cache=True)
def begin(w, context):
    """Derivatives of all iterations and the step size at the start."""
    if w.q.tau > 0.0:
        _expand(w, context, -1.0)
    w.run.order = w.s.order
    w.run.h = w.run.constant if w.run.constant > 0.0 else w.run.first_step
    return _enter_rates(w, context)


@njit(cache=True)
def resume(w, context):
    """After a switch, where y may jump, all iterations continue from the last one, with a new y₀."""
    q, x = w.q, w.s.x
    if q.tau > 0.0:
        for number in range(q.most):
            if number != q.active - 1:
                copy(shift(x, (q.active - 1) * w.stride), shift(x, number * w.stride), w.stride)
        q.before = 0.0
        _expand(w, context, 2.0)
    return _enter_rates(w, context)


@njit(cache=True)
def attempt(w, context, t, h):
    """A step of all iterations; where they have not converged, again with one more or a smaller ε."""
    run, q, s, active = w.run, w.q, w.s, w.q.active
    run.nfev += w.stages * active
    held = s.held
    status, square = sweep(w, context, active, now_in(w), t, h, True)
    run.error = math.sqrt(square / (active * w.size))
    if status == INTERRUPTED:
        return leave(w, loop.STOPPED)
    if status != OK:
        return loop.FUNCTION_RAISED if status == RAISED else loop.SINGULAR_MATRIX
    if run.error - run.error != 0.0:
        s.held = held  # it was no singular position
        return loop.NOT_FINITE
    if run.error > 1.0 and run.constant == 0.0:
        return loop.ERROR_TEST
    x = shift(s.x_new, (active - 1) * w.stride)
    q.difference = math.inf
    if active > 1:
        q.difference = sequence.difference(q, x, shift(s.x_new, (active - 2) * w.stride), w.atol, w.rtol)
    if q.automatic and q.difference > sequence.CONVERGED:
        outcome = _add_or_restart(w, context, t)
        if outcome != loop.ACCEPTED:
            return outcome
    q.before = 0.0
    s.held_steps = s.held_steps + 1 if s.held > held else 0
    if s.held_steps > MOST_HELD_STEPS:
        return leave(w, loop.STEP_TOO_SMALL)
    if q.watches_impasse:
        first = q.coordinates if q.index > 2 else 0
        f, eps = shift(s.f_new, (active - 1) * w.stride), w.eps[active - 1]
        q.impasse = sequence.is_impasse(q, x, f, w.atol[first], eps)
        if q.impasse:
            return leave(w, loop.STEP_TOO_SMALL)
    run.correction = q.difference
    run.iterations = active
    return loop.ACCEPTED


@njit(cache=True)
def _add_or_restart(w, context, t):
    """Where the last two iterations differ, add one or restart all; ACCEPTED if neither is needed."""
    q = w.q
    if sequence.another_helps(q):
        q.before = q.difference
        status = _add(w, context, t)
        return leave(w, loop.code_of(status)) if status >= RAISED else loop.REPEAT
    if not sequence.eps_is_too_large(q):
        return loop.ACCEPTED
    if not sequence.may_restart(q):
        return leave(w, loop.STEP_TOO_SMALL)
    code = _restart(w, context)
    return loop.REPEAT if code == OK else leave(w, code)


@njit(cache=True)
def _keep(w, steps, row):
    """ε, y₀ and all iterations at the beginning of a step, in a row of the history."""
    q, n, at = w.q, w.carried, loop.STEP_COLUMNS
    steps[row, at] = w.eps[0]
    steps[row, at + 1] = q.y0_time
    steps[row, at + 2] = q.y0_rate
    at += 3
    for i in range(n):
        steps[row, at + i] = q.y0[i]
        steps[row, at + n + i] = q.y0_slope[i]
        steps[row, at + 2 * n + i] = q.y0_bend[i]
    at += 3 * n
    for i in range(q.active * w.stride):
        steps[row, at + i] = w.s.x[i]


@njit(cache=True)
def _move_back(w, active):
    """The present becomes the beginning of the last step."""
    s = w.s
    copy(s.x, s.x_old, active * w.stride)
    copy(s.f, s.f_old, active * w.stride)
    copy(s.carry, s.carry_old, active * w.carried)
    s.active_old = active


@njit(cache=True)
def accept(w, steps, row, t, h, t_new):
    """Move on, and choose the next step size."""
    s, active = w.s, w.q.active
    if row >= 0 and steps.shape[1] > loop.STEP_COLUMNS:
        _keep(w, steps, row)
    _move_back(w, active)
    copy(s.x_new, s.x, active * w.stride)
    copy(s.f_new, s.f, active * w.stride)
    copy(s.carry_new, s.carry, active * w.carried)
    _show(w, s.x_new, s.carry_new, active, w.run.y)
    choose_next(w, h, _GROW)


@njit(cache=True)
def watch(w, context, found):
    s, at = w.s, (w.q.active - 1) * w.stride
    x_old, rate_old, x, rate = [shift(part, at) for part in (s.x_old, s.f_old, s.x_new, s.f_new)]
    watch_between(w, context, found, x_old, rate_old, x, rate)


propose, reject = propose_explicit, shrink
advance = loop.advance_with(globals())


@njit(cache=True)
def inside(w, context, t, out):
    """A step of all iterations from the beginning of the last one."""
    active, before = w.s.active_old, Iterations(w.s.x_old, w.s.f_old, w.s.carry_old)
    status, _ = sweep(w, context, active, before, w.run.t_old, t - w.run.t_old, False)
    _show(w, w.s.x_new, w.s.carry_new, active, out)
    return status


@njit(cache=True)
def nearly(w, t, out):
    """Hermite's cubic through both ends of the last step for x_S, a straight line for y_S."""
    run, s, last, behind = w.run, w.s, w.s.active_old - 1, shift(out, w.size)
    x, f, x_old, f_old = [shift(part, last * w.stride) for part in (s.x, s.f, s.x_old, s.f_old)]
    hermite(run, t, x_old, f_old, x, f, w.size, out)
    y, y_old = shift(s.carry, last * w.carried), shift(s.carry_old, last * w.carried)
    share = (t - run.t_old) / (run.t - run.t_old)
    for i in range(run.size - w.size):
        behind[i] = y_old[i] + share * (y[i] - y_old[i])


@njit(cache=True)
def recall(w, context, rows, row):
    """Restore what `_keep` wrote, and evaluate the rates there."""
    q, n, t, active, at = w.q, w.carried, rows[row, 0], int(rows[row, 4]), loop.STEP_COLUMNS
    w.run.t_old = t
    q.y0_time = rows[row, at + 1]
    q.y0_rate = rows[row, at + 2]
    if rows[row, at] != w.eps[0]:
        for number in range(q.most):
            w.eps[number] = rows[row, at]
    at += 3
    for i in range(n):
        q.y0[i] = rows[row, at + i]
        q.y0_slope[i] = rows[row, at + n + i]
        q.y0_bend[i] = rows[row, at + 2 * n + i]
    at += 3 * n
    for i in range(active * w.stride):
        w.s.x[i] = rows[row, at + i]
    status = rates(w, context, t, active)
    _move_back(w, active)
    return status


interpolant, preview, evaluate = between_steps(globals())

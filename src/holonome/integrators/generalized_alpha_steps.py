"""The generalised-α method: one step, its error, and the choice of the next.

With auxiliary accelerations a_n ≈ v′(t_n + Δ h), Δ = α_m − α_f,

    q_{n+1} = q_n + h v_n + h² ((½ − β) a_n + β a_{n+1}),     v_{n+1} = v_n + h ((1 − γ) a_n + γ a_{n+1})
    (1 − α_m) a_{n+1} + α_m a_n = (1 − α_f) v′_{n+1} + α_f v′_n

and the equations of a formulation at t_{n+1}.  First-order states are treated as velocities are (Jansen,
Whiting & Hulbert 2000).  As changes of q, v and v′ are proportional, with factors cj = γ/(βh) and κ cj, the
residual of the formulation serves with κ v′ in place of v′, and so does its Newton matrix; in index 3 this is
the method of Arnold & Brüls, with GGL its stabilised form.

In index 3 the method moves on velocities that miss the constraints by C h² times the normal part of the jerk
j, C = −1/12 − Δ²/4.  A run that begins with consistent velocities oscillates about these, with errors of λ of
first order (Arnold, Brüls & Cardona 2015); so the first step begins with v₀ + C h² N j and v′₀ + Δ h j.
Whenever the step changes, v is brought onto the constraints and moved anew, and a by the difference, which
keeps λ of second order with variable steps, too.
"""

from __future__ import annotations

import math

from numba import njit

from holonome.dynamics.parts import correction_in, error_in
from holonome.integrators import loop, newton
from holonome.integrators.between_steps import between_steps
from holonome.integrators.generalized_alpha_state import parts as parts
from holonome.integrators.loop import hermite, leave, propose_explicit, watch_ends
from holonome.integrators.projected_steps import choose_given, derivative, enter_scales, widen_scales
from holonome.integrators.step_size import choose_next, shrink
from holonome.machine.calls import call, call_either, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED

_GROW, _MOST_ITERATIONS = 2.0, 12
_ROUNDING, _STAGNATES = 1e-14, 1e-9
"""Corrections of q and v, relative to the largest: what is rounding, and what may end the iteration where the
next one is no smaller.
"""


@njit(cache=True, error_model="numpy")
def _jerk_at_start(w, context, epsilon):
    """j from accelerations at three times ahead, on a parabola; v′ is left in ``rate``."""
    s, n, run = w.s, w.n, w.run
    status = derivative(w, context, run.t, run.y, s.rate)
    if status != OK:
        return status
    for i in range(w.state - n):
        s.jerk[i] = -1.5 * s.rate[n + i] / epsilon
    for times in range(1, 3):
        step = times * epsilon
        for i in range(w.state):
            s.point[i] = run.y[i] + step * s.rate[i]
        for i in range(n):
            s.point[i] += 0.5 * step * step * s.rate[n + i]
        status = derivative(w, context, run.t + step, s.point, s.out)
        if status != OK:
            return status
        factor = (2.0 if times == 1 else -0.5) / epsilon
        for i in range(w.state - n):
            s.jerk[i] += factor * s.out[n + i]
    return OK


@njit(cache=True, error_model="numpy")
def _normal_part(w, context, t, y):
    """N j, what the constraints do not allow of the jerk, and the way of v back onto them."""
    s, n = w.s, w.n
    if s.normal_part == 0:
        return OK
    for i in range(w.state + 1):
        s.z[i] = 0.0
    for i in range(n):
        s.z[n + i] = s.jerk[i]
    status = call_either(s.normal_part, s.dense_normal_part, t, y, s.z, context, s.out)
    allowed, back = error_in(s.out, w.state), correction_in(s.out, w.state)
    for i in range(n):
        s.normal[i] = s.jerk[i] - allowed[n + i]
        s.back[i] = back[n + i]
    return status


@njit(cache=True, error_model="numpy")
def _first_step(w):
    """From the local error of q, C h³ j, and no more than a hundredth of the run."""
    run, total = w.run, 0.0
    for i in range(w.n):
        x = w.s.constant_q * w.s.jerk[i] / (run.atol[i] + run.rtol * abs(run.y[i]))
        total += x * x
    limit = min(0.01 * abs(run.t_end - run.t), run.h_max)
    return min(limit, 0.5 * (total / max(w.n, 1)) ** (-1.0 / 6.0)) if total > 0.0 else limit


@njit(cache=True, error_model="numpy")
def resume(w, context):
    """At the start, and after a switch: accelerations are new."""
    run, s, n = w.run, w.s, w.n
    epsilon = 1e-6 * abs(run.t_end - run.t)
    if run.constant > 0.0:
        epsilon = min(0.01 * run.constant, epsilon * 1e4)
    status = _jerk_at_start(w, context, run.direction * epsilon)
    if status == OK:
        status = _normal_part(w, context, run.t, run.y)
    if status >= RAISED:
        return loop.code_of(status)
    total = 0.0
    for i in range(w.state - n):
        s.a[i] = s.rate[n + i]
        s.slope[i] = s.jerk[i]
        s.now[w.size + n + i] = s.rate[n + i] / s.kappa
        total += s.jerk[i]
    if status != OK or total - total != 0.0:
        return loop.CANNOT_START
    for i in range(w.state):
        s.now[i] = run.y[i]
    s.h_base = 0.0
    s.jerk_known = 1
    s.started = 0
    _slopes(w, s.now, s.f)
    if run.constant == 0.0:
        run.h = min(run.h, _first_step(w)) if run.h > 0.0 else _first_step(w)
    return OK


@njit(cache=True, error_model="numpy")
def begin(w, context):
    run = w.run
    enter_scales(w, run.y, 2 * w.n)
    for i in range(2 * w.size):
        w.s.now[i] = w.y[i]
    run.order = 2
    run.h = 0.0
    code = resume(w, context)
    run.h = choose_given(run, run.h)
    return code


@njit(cache=True, error_model="numpy")
def _slopes(w, y, out):
    """Rates of q, v and s, for Hermite's cubic."""
    for i in range(w.n):
        out[i] = y[w.n + i]
    for i in range(w.n, w.state):
        out[i] = w.s.kappa * y[w.size + i]


@njit(cache=True, error_model="numpy")
def _resolves(w, h):
    """Whether steps of this size see the motion at all; faster oscillations have jerks that tell nothing."""
    s, largest = w.s, 0.0
    for i in range(w.n):
        largest = max(largest, abs(s.jerk[i]))
    return abs(h) ** 3 * largest < 0.1 * max(s.scale_q, abs(h) * s.scale_v)


@njit(cache=True, error_model="numpy")
def _move_to(w, context, t, h):
    """a and v as they belong to steps of size h; a status."""
    s, n, status = w.s, w.n, OK
    if h != s.h_base and not s.jerk_known:
        for i in range(w.state - n):
            s.jerk[i] = (s.kappa * s.now[w.size + n + i] - s.before[i]) / s.h_base
        status = _normal_part(w, context, t, s.now)
        s.jerk_known = 1
    for i in range(w.state - n):
        s.a_used[i] = s.a[i]
        s.v_used[i] = s.now[n + i]
    if h == s.h_base:
        return status
    seen = _resolves(w, h)
    if seen:
        for i in range(w.state - n):
            s.a_used[i] += s.shift * (h - s.h_base) * s.jerk[i]
    if s.normal_part != 0:
        for i in range(n):
            s.v_used[i] += s.back[i] + (s.constant_q * h * h * s.normal[i] if seen else 0.0)
    return status


@njit(cache=True, error_model="numpy")
def _predict(w, h, careful):
    """Y and Y′ with v′ extrapolated, and all else as the formulas say; what is algebraic is extrapolated,
    too.

    A ``careful`` one has q₁ = q₀ + h v₀ instead: where fast oscillations are damped, accelerations tell
    nothing.
    """
    s, n, y, dy = w.s, w.n, w.y, shift(w.y, w.size)
    ratio = h / s.h_base if s.started else 0.0
    for i in range(w.state - n):
        v_rate = s.kappa * s.now[w.size + n + i]
        rate = v_rate + (ratio * (v_rate - s.before[i]) if s.started else 0.0)
        a = s.a_used[i]
        a_new = ((1.0 - s.alpha_f) * rate + s.alpha_f * v_rate - s.alpha_m * a) / (1.0 - s.alpha_m)
        if careful:
            a_new = -(0.5 - s.beta_q) / s.beta_q * a
            rate = ((1.0 - s.alpha_m) * a_new + s.alpha_m * a - s.alpha_f * v_rate) / (1.0 - s.alpha_f)
        s.a_new[i] = a_new
        y[n + i] = s.v_used[i] + h * ((1.0 - s.gamma) * a + s.gamma * a_new)
        dy[n + i] = rate / s.kappa
    for i in range(n):
        a, a_new = s.a_used[i], s.a_new[i]
        y[i] = s.now[i] + h * (s.v_used[i] + h * ((0.5 - s.beta_q) * a + s.beta_q * a_new))
        dy[i] = y[n + i]
    for i in range(w.state, w.size):
        y[i] = s.now[i] + (ratio * (s.now[i] - s.before[i - n]) if s.started else 0.0)
        dy[i] = 0.0


@njit(cache=True, error_model="numpy")
def _correct(w, h, cj):
    """Subtract Δ; its size, of q and h v, relative to the largest so far."""
    y, dy, change, s = w.y, shift(w.y, w.size), w.scratch, w.s
    scale_q = max(s.scale_q, abs(h) * s.scale_v)
    scale_v = max(s.scale_v, s.scale_q / abs(h) * 1e-3)
    largest, total = 0.0, 0.0
    for i in range(w.size):
        y[i] -= change[i]
        dy[i] -= cj * change[i]
        total += change[i]
        if i < w.n:
            largest = max(largest, abs(change[i]) / scale_q)
        elif i < 2 * w.n:
            largest = max(largest, abs(change[i]) / scale_v)
        elif i < w.state:
            largest = max(largest, abs(change[i]) / (abs(y[i]) + w.run.atol[i]))
    return largest if total - total == 0.0 else math.nan


@njit(cache=True, error_model="numpy")
def _newton(w, context, t, h, cj):
    """Solve the equations at the end of a step, to rounding; (status, cause of failure).

    The matrix is new in each step, and again where the iteration is slow.
    """
    s, previous, kind, age = w.s, math.inf, 0, 1
    for iteration in range(_MOST_ITERATIONS):
        if age > 0:
            status, kind = newton.evaluate_matrix(w, context, t, cj)
            s.njev += 1
            age = 0
            if status != OK:
                return status, loop.SINGULAR_MATRIX
        status = call(w.residual_kernel, t, w.y, w.block, context, w.delta)
        w.run.nfev += 1
        w.run.iterations = iteration + 1
        if status != OK:
            return status, loop.SINGULAR_MATRIX
        newton.solve(w, context, kind, cj)
        change = _correct(w, h, cj)
        w.run.correction = change
        if change != change:
            return OK, loop.NOT_FINITE
        if change <= _ROUNDING or (change < _STAGNATES and change > 0.2 * previous):
            return OK, 0
        rate = change / previous
        if change < _STAGNATES and rate < 1.0 and change * rate / (1.0 - rate) <= 0.1 * _ROUNDING:
            return OK, 0
        if iteration > 3 and rate > 2.0:
            break
        age = 1 if rate > 0.1 and iteration > 0 else 0
        previous = change
    return OK, loop.NEWTON


@njit(cache=True, error_model="numpy")
def _error(w, h):
    """Estimate of the local error in units of the tolerance: C h² (a_{n+1} − a_n) of q, and the same with a
    second difference of v.
    """
    run, s, n, total, count = w.run, w.s, w.n, 0.0, 0.0
    for i in range(w.state):
        if s.error_mask[i] == 0.0:
            continue
        if i < n:
            error = s.constant_q * h * h * (s.a_new[i] - s.a_used[i])
        else:
            j = i - n
            bend = (s.a_new[j] - s.a_used[j]) - h * s.slope[j]
            error = s.constant_v * h * bend * 2.0 * h / (h + s.h_base)
        x = error / (run.atol[i] + run.rtol * max(abs(w.y[i]), abs(s.now[i])))
        total += x * x
        count += 1.0
    return math.sqrt(total / count) if count > 0.0 else 0.0


@njit(cache=True, error_model="numpy")
def attempt(w, context, t, h):
    """Newton's method at the end of a step, and the error."""
    run, s, n = w.run, w.s, w.n
    cj = s.gamma / (s.beta_q * h)
    run.error = math.inf
    w.block[0] = cj
    status = _move_to(w, context, t, h)
    cause = loop.SINGULAR_MATRIX
    for careful in range(2):
        if status != OK or (careful == 1 and cause != loop.NEWTON):
            break
        _predict(w, h, careful == 1)
        for i in range(w.state - n):
            s.rate[i] = w.y[n + i]
        status, cause = _newton(w, context, t + h, h, cj)
    if status == INTERRUPTED:
        return leave(w, loop.STOPPED)
    if status != OK or cause != 0:
        run.t_failed = t + h
        return loop.FUNCTION_RAISED if status == RAISED else cause
    for i in range(w.state - n):
        s.a_new[i] += (w.y[n + i] - s.rate[i]) / (h * s.gamma)
    run.error = _error(w, h)
    if run.error - run.error != 0.0:
        return loop.NOT_FINITE
    return loop.ERROR_TEST if run.error > 1.0 and run.constant == 0.0 else loop.ACCEPTED


@njit(cache=True, error_model="numpy")
def accept(w, steps, row, t, h, t_new):
    """Move on to the end of the step."""
    run, s, n, count = w.run, w.s, w.n, w.run.size
    for i in range(w.state - n):
        s.before[i] = s.kappa * s.now[w.size + n + i]
        s.slope[i] = (s.a_new[i] - s.a_used[i]) / h
        s.a[i] = s.a_new[i]
    for i in range(w.state, w.size):
        s.before[i - n] = s.now[i]
    for i in range(w.state):
        s.f_old[i] = s.f[i]
    for i in range(2 * w.size):
        s.now[i] = w.y[i]
    _slopes(w, w.y, s.f)
    for i in range(count):
        run.y_old[i] = run.y[i]
        run.y[i] = w.y[i]
    for i in range(w.state, count):
        s.f[i] = (run.y[i] - run.y_old[i]) / h
        s.f_old[i] = s.f[i]
    widen_scales(w, run.y, 2 * n)
    s.h_base = h
    s.jerk_known = 0
    s.started = 1
    if row >= 0 and steps.shape[1] > loop.STEP_COLUMNS:
        _keep(w, steps, row)
    choose_next(w, h, _GROW)


@njit(cache=True, error_model="numpy")
def _keep(w, steps, row):
    """Both ends of the step and the slopes there, in a row of the history."""
    at, count = loop.STEP_COLUMNS, w.run.size
    for i in range(count):
        steps[row, at + i] = w.run.y_old[i]
        steps[row, at + count + i] = w.s.f_old[i]
        steps[row, at + 2 * count + i] = w.run.y[i]
        steps[row, at + 3 * count + i] = w.s.f[i]


propose, reject, watch = propose_explicit, shrink, watch_ends
advance = loop.advance_with(globals())


@njit(cache=True, error_model="numpy")
def nearly(w, t, out):
    """Hermite's cubic through both ends of the last step."""
    hermite(w.run, t, w.run.y_old, w.s.f_old, w.run.y, w.s.f, w.run.size, out)


@njit(cache=True, error_model="numpy")
def recall(w, context, rows, row):
    """Restore what `_keep` wrote."""
    run, s, count, at = w.run, w.s, w.run.size, loop.STEP_COLUMNS
    run.t_old = rows[row, 0]
    run.t = rows[row, 0] + rows[row, 1]
    for i in range(count):
        run.y_old[i] = rows[row, at + i]
        s.f_old[i] = rows[row, at + count + i]
        run.y[i] = rows[row, at + 2 * count + i]
        s.f[i] = rows[row, at + 3 * count + i]
    return OK


interpolant, preview, evaluate = between_steps(globals())

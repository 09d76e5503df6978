"""RATTLE and its compositions: a step is s steps of sizes γ_i h, each with a half that ends on the
constraints and one that brings the velocities onto them (:mod:`holonome.formulations.hamiltonian`).

The first half is a Newton iteration to rounding.  Where the step is explicit the second is the projection
that every method has: from b, it gives the accelerations and both parts of v₁ = P (b + h/2 a).  Without
constraints that is the method of Störmer and Verlet, with one evaluation a step.

What addition rounds away is carried to the next step, and time is counted in whole steps, so that rounding
errors grow like a random walk, if at all.  The solution between the steps is a step of the same method.
"""

from numba import njit

from holonome.dynamics.parts import correction_in, error_in
from holonome.formulations.stage import named_stage, newton_change
from holonome.integrators import loop
from holonome.integrators.between_steps import between_steps
from holonome.integrators.loop import hermite, leave, propose_explicit
from holonome.integrators.projected_steps import (
    derivative,
    enter_scales,
    evaluate_projection,
    keep_beginning,
    recall_beginning,
    watch_projected,
    widen_scales,
)
from holonome.integrators.rattle_half import enter, first_half, matrices
from holonome.integrators.rattle_half import parts as parts
from holonome.machine.calls import call, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED, SINGULAR

_TINY = 1e-8
"""Times inside a step this close to its beginning, in units of the step, need no step of their own."""


@njit(cache=True, error_model="numpy")
def _move(w, h, at):
    """Write q₁ = q₀ + h b, with the carry, into ``at``."""
    n, s = w.n, w.s
    other = 2 * n + w.k + w.m
    for i in range(n):
        step = 0.5 * h * (s.x[n + i] + s.x[other + i]) if s.implicit else h * s.x[n + i]
        step += at[2 * n + i]
        q = at[i] + step
        at[2 * n + i] = step - (q - at[i])
        at[i] = q
        s.x[i] = q


@njit(cache=True, error_model="numpy")
def _explicit_end(w, context, t, h, at):
    """v₁ = P (b + h/2 a), and a, from the projection at (q₁, b)."""
    n, m, s, half, out = w.n, w.m, w.s, 0.5 * h, w.s.projected
    if m == 0:
        status = derivative(w, context, t, s.x, out)
    else:
        for i in range(n):
            s.error[i] = -half * s.x[n + i]
            s.error[n + i] = 0.0
        s.error[w.size] = half
        status = evaluate_projection(w, context, t, s.x, out)
        w.run.projections += 1
    if status != OK:
        return status
    kick, correction = error_in(out, w.size), correction_in(out, w.size)
    for i in range(n):
        a, b = out[n + i], s.x[n + i]
        step = half * a if m == 0 else kick[n + i] + correction[n + i]
        step += at[3 * n + i]
        v = b + step
        at[3 * n + i] = step - (v - b)
        at[n + i] = v
        at[4 * n + i] = a
    return OK


@njit(cache=True, error_model="numpy")
def _implicit_end(w, context, t, h, at):
    """v₁ with μ, from linear equations."""
    n, m, s = w.n, w.m, w.s
    for i in range(w.size):
        s.x_end[i] = s.x[i]
    for i in range(n):
        s.x_end[w.size + i] = s.x[n + i]
    for i in range(m):
        s.x_end[w.size + n + i] = 0.0
    s.z[0] = 0.5 * h
    status = newton_change(named_stage(s.end), t, s.x_end, s.z, context, s.change)
    if status != OK:
        return status
    for i in range(n):
        v = s.x_end[w.size + i] - s.change[i]
        at[4 * n + i] = (v - s.x[n + i]) / (0.5 * h)
        at[n + i] = v
    return OK


@njit(cache=True, error_model="numpy")
def _advance_states(w, context, t, h, at):
    """s₁ = s₀ + h/2 (r(t₀, q₀, a) + r(t₁, q₁, b)); called before q₀ is forgotten."""
    n, k, s, point, rate = w.n, w.k, w.s, w.s.point, shift(w.s.point, w.size)
    other = 2 * n + k + w.m if s.implicit else n
    for i in range(w.n):
        point[i] = at[i]
        point[n + i] = s.x[other + i]
    for i in range(k):
        point[2 * n + i] = at[5 * n + i]
    status = call(s.rates, t, point, point, context, rate)
    if status == OK:
        for i in range(k):
            at[5 * n + i] += 0.5 * h * rate[i]
        status = call(s.rates, t + h, s.x, s.x, context, rate)
    for i in range(k):
        at[5 * n + i] += 0.5 * h * rate[i]
        s.x[2 * n + i] = at[5 * n + i]
    return status


@njit(cache=True, error_model="numpy")
def _leave(w, at, y):
    """The state in the order of every method."""
    for i in range(2 * w.n):
        y[i] = at[i]
    for i in range(w.k):
        y[2 * w.n + i] = at[5 * w.n + i]


@njit(cache=True, error_model="numpy")
def _substep(w, context, t, h, at, part, use):
    """One step of RATTLE; (status, cause of failure)."""
    status, cause = first_half(w, context, t, h, at, part, use)
    if status != OK or cause != 0:
        return status, cause
    if w.k > 0:
        status = _advance_states(w, context, t, h, at)
        if status != OK:
            return status, loop.SINGULAR_MATRIX
    _move(w, h, at)
    if w.s.implicit:
        status = _implicit_end(w, context, t + h, h, at)
    else:
        status = _explicit_end(w, context, t + h, h, at)
    if status == OK:
        status = matrices(w, context, t + h, at)
    return status, loop.SINGULAR_MATRIX if status != OK else 0


@njit(cache=True, error_model="numpy")
def _step(w, context, t, h, at, use):
    """All parts of a composition; (status, cause of failure).  ``use`` tells whether they may use, and
    change, what the steps of the run have taught.
    """
    s, done, total = w.s, 0.0, 0.0
    for i in range(s.substeps):
        status, cause = _substep(w, context, t + done * h, s.gamma[i] * h, at, i, use)
        if status != OK or cause != 0:
            w.run.t_failed = t + (done + s.gamma[i]) * h
            return status, cause
        done += s.gamma[i]
    for i in range(5 * w.n + w.k):
        total += at[i]
    return OK, loop.NOT_FINITE if total - total != 0.0 else 0


@njit(cache=True, error_model="numpy")
def attempt(w, context, t, h):
    """Take one step; what is known at its end is left in ``new``."""
    run, s = w.run, w.s
    run.error = 0.0
    run.nfev += s.substeps
    for i in range(5 * w.n + w.k + s.entries):
        s.new[i] = s.now[i]
    status, cause = _step(w, context, t, h, s.new, True)
    if status == OK and cause == 0 and run.events > 0:
        status = derivative(w, context, t + h, s.new, s.rate)
        cause = loop.SINGULAR_MATRIX if status != OK else 0
    if status == INTERRUPTED:
        return leave(w, loop.STOPPED)
    return loop.FUNCTION_RAISED if status == RAISED else cause


@njit(cache=True, error_model="numpy")
def begin(w, context):
    """What is known at the initial point."""
    run = w.run
    enter_scales(w, w.y, 2 * w.n)
    run.order = w.s.order
    run.h = run.constant
    run.nfev += 1
    return resume(w, context)


@njit(cache=True, error_model="numpy")
def accept(w, steps, row, t, h, t_new):
    """Move on to the end of the step."""
    s, y = w.s, w.y
    keep_beginning(w, steps, row)
    for i in range(w.size):
        w.y_old[i] = y[i]
    _leave(w, s.new, y)
    widen_scales(w, y, 2 * w.n)
    for i in range(5 * w.n + w.k + s.entries):
        s.now[i] = s.new[i]
    s.known = min(s.known + 1, 3) if abs(h) == w.run.constant else 0
    s.latest = (s.latest + 1) % 3


@njit(cache=True, error_model="numpy")
def reject(w, t, h, cause):
    """The step is what the user said."""
    return False


@njit(cache=True, error_model="numpy")
def watch(w, context, found):
    watch_projected(w, context, found, not w.s.implicit)


@njit(cache=True, error_model="numpy")
def settle(w):
    if w.run.events > 0:
        for i in range(w.size):
            w.s.rate_old[i] = w.s.rate[i]


@njit(cache=True, error_model="numpy")
def resume(w, context):
    """At the start, and after a switch: forces are new."""
    s = w.s
    status = enter(w, context, w.run.t, w.y, s.now)
    total = 0.0
    for i in range(w.size):
        s.rate_old[i] = s.projected[i]
        s.rate[i] = s.projected[i]
        total += s.projected[i]
    s.known = 0
    if status >= RAISED:
        return loop.code_of(status)
    return OK if status == OK and total - total == 0.0 else loop.CANNOT_START


propose = propose_explicit
advance = loop.advance_with(globals())


@njit(cache=True, error_model="numpy")
def _follow(w, h, at):
    """Go along q′, v′ and s′, which are in ``projected``: in so short a time rounding is all that is left."""
    n, rate = w.n, w.s.projected
    for i in range(2 * n):
        at[i] += h * rate[i]
    for i in range(w.k):
        at[5 * n + i] += h * rate[2 * n + i]


@njit(cache=True, error_model="numpy")
def inside(w, context, t, out):
    """A step from the beginning of the last one to t; nothing of the run is changed that its steps use."""
    s, kappa, t_old = w.s, w.s.kappa, w.run.t_old
    status = enter(w, context, t_old, w.y_old, s.new)
    if status == OK and abs(t - t_old) < _TINY * w.run.constant:
        _follow(w, t - t_old, s.new)
    elif status == OK:
        status, cause = _step(w, context, t_old, t - t_old, s.new, False)
        if cause != 0:
            status = max(status, SINGULAR)
    s.kappa = kappa
    _leave(w, s.new, out)
    return status


@njit(cache=True, error_model="numpy")
def nearly(w, t, out):
    """Hermite's cubic through both ends of the last step."""
    hermite(w.run, t, w.y_old, w.s.rate_old, w.y, w.s.rate, w.size, out)


@njit(cache=True, error_model="numpy")
def recall(w, context, rows, row):
    recall_beginning(w, rows, row)
    return OK


POINTS = True
interpolant, preview, evaluate = between_steps(globals())

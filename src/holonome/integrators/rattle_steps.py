"""RATTLE and its compositions: a step is s steps of sizes γ_i h, each with a half that ends on the constraints
and one that brings the velocities onto them (:mod:`holonome.formulations.hamiltonian`).

The first half is a Newton iteration to rounding.  Where the step is explicit the second is the projection that
every method has: from b, it gives the accelerations and both parts of v₁ = P (b + h/2 a).  Without constraints
that is the method of Störmer and Verlet, with one evaluation a step.

What addition rounds away is carried to the next step, and time is counted in whole steps, so that rounding
errors grow like a random walk, if at all.  The solution between the steps is a step of the same method.
"""

from __future__ import annotations

import math
from collections import namedtuple

from numba import njit

from holonome.dynamics.parts import correction_in, error_in, regularity_in
from holonome.dynamics.projection import LARGEST_CORRECTION, add_correction, has_converged
from holonome.formulations.stage import named_stage, newton_change
from holonome.integrators import loop, rank_watch
from holonome.integrators.loop import OWN, hermite, leave, propose_explicit, rank_watch_in, run_state
from holonome.machine.calls import NativeKernel, call, pointer, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED, SINGULAR
from holonome.machine.layout import Layout, Real, Vector, Whole

_MOST_ITERATIONS = 12
_TINY = 1e-8
"""Times inside a step this close to its beginning, in units of the step, need no step of their own."""


class RattleState(Layout):
    """The integrator's part of the memory."""

    coordinates: Whole
    rows: Whole  # constraints
    states: Whole  # first-order states
    entries: Whole  # numbers that `gradient` writes
    unknowns: Whole  # of the first half
    implicit: Whole
    order: Whole
    substeps: Whole
    gradient: Whole  # addresses
    rates: Whole
    derivative: Whole
    dense_derivative: Whole
    projection: Whole
    dense_projection: Whole
    kappa: Real  # constant of Newton's quadratic convergence, as measured
    scale_q: Real  # the largest position and velocity so far
    scale_v: Real
    known: Whole  # how many steps, up to three, tell something about the next
    latest: Whole  # which third of ``bends`` is of the last step
    gamma: Vector
    half: Vector  # memory of both stages
    end: Vector
    x: Vector  # what the kernels of the first half get as y
    x_end: Vector  # and of the second
    point: Vector  # a state, and s′ there
    change: Vector
    z: Vector  # step and e of the stages
    error: Vector  # what the projection gets as z
    projected: Vector
    now: Vector  # q, v, what was rounded away of both, a, s, C and M: at the beginning of a step
    new: Vector  # the same at its end
    bend: Vector  # by which b, and a, are expected to differ from v₀ + h/2 a₀, relative to h²
    bends: Vector  # the same as found, in each part of the last three steps
    rate_old: Vector  # q′ and v′ at both ends, where events need them
    rate: Vector


named = RattleState.named()


Work = namedtuple("Work", "memory run s n m k size half end y y_old")
"""The memory taken apart once."""


@njit(cache=True)
def parts(memory):
    run, s = run_state(memory), named(shift(memory, OWN))
    half, end = named_stage(s.half), named_stage(s.end)
    return Work(memory, run, s, s.coordinates, s.rows, s.states, run.size, half, end, run.y, run.y_old)


@njit(cache=True, inline="always")
def _matrices_in(w, at):
    """The nonzeros of C and M."""
    return shift(at, 5 * w.n + w.k)


@njit(cache=True, error_model="numpy")
def _matrices(w, context, t, at):
    """What a step needs of matrices, at q."""
    if w.s.entries == 0:
        return OK
    return call(w.s.gradient, t, at, at, context, _matrices_in(w, at))


@njit(cache=True, error_model="numpy")
def _derivative(w, context, t, y, out):
    status = call(w.s.derivative, t, y, y, context, out)
    if status == SINGULAR:
        status = call(w.s.dense_derivative, t, y, y, context, out)
    return status


@njit(cache=True, error_model="numpy")
def _enter(w, context, t, y, at):
    """All that a step needs at its beginning: nothing is carried yet."""
    n, s = w.n, w.s
    for i in range(2 * n):
        at[i] = y[i]
        at[2 * n + i] = 0.0
    status = _derivative(w, context, t, y, s.projected)
    for i in range(n):
        at[4 * n + i] = s.projected[n + i]
    for i in range(w.k):
        at[5 * n + i] = y[2 * n + i]
    return _matrices(w, context, t, at) if status == OK else status


@njit(cache=True, error_model="numpy")
def _expect(w, part, use):
    """Extrapolate the bend of one part of a step from the same part of the last three."""
    s, size = w.s, 2 * w.n
    known = s.known if use else 0
    room, at = s.substeps * size, part * size
    first = shift(s.bends, s.latest * room + at)
    second = shift(s.bends, (s.latest + 2) % 3 * room + at)
    third = shift(s.bends, (s.latest + 1) % 3 * room + at)
    for i in range(size):
        if known > 2:
            s.bend[i] = 3.0 * (first[i] - second[i]) + third[i]
        elif known > 1:
            s.bend[i] = 2.0 * first[i] - second[i]
        else:
            s.bend[i] = first[i] if known else 0.0


@njit(cache=True, error_model="numpy")
def _learn(w, h, at, part):
    """Note the bend that was found."""
    n, s = w.n, w.s
    other, inverse = 2 * n + w.k + w.m, 1.0 / (h * h)
    found = shift(s.bends, ((s.latest + 1) % 3 * s.substeps + part) * 2 * n)
    for i in range(n):
        first = at[n + i] + 0.5 * h * at[4 * n + i]
        found[i] = (s.x[n + i] - first) * inverse
        found[n + i] = (s.x[other + i] - first) * inverse


@njit(cache=True, error_model="numpy")
def _predict(w, t, h, at):
    """Fill in y of the first half: what is known, and a guess of q₁, b and a."""
    n, m, s = w.n, w.m, w.s
    x, carry, a = s.x, shift(at, 2 * n), shift(at, 4 * n)
    other, known, entries = 2 * n + w.k + m, 3 * n + w.k + m, _matrices_in(w, at)
    for i in range(n):
        first = at[n + i] + 0.5 * h * a[i]
        start = at[n + i]
        if not s.implicit:
            kick = 0.5 * h * a[i] + carry[n + i]
            start += kick
            carry[n + i] = kick - (start - at[n + i])
        b = first + h * h * s.bend[i]
        v = first + h * h * s.bend[n + i]
        x[known + i] = at[i]
        x[known + n + i] = carry[i]
        x[known + 2 * n + i] = start
        x[n + i] = b
        x[other + i] = v
        x[i] = at[i] + ((0.5 * h * (b + v) if s.implicit else h * b) + carry[i])
    for i in range(m):
        x[2 * n + w.k + i] = 0.0
    x[known + 3 * n] = t
    for i in range(w.k):
        x[2 * n + i] = at[5 * n + i]
        x[known + 3 * n + 1 + i] = at[5 * n + i]
    for i in range(s.entries):
        x[known + 3 * n + w.k + 1 + i] = entries[i]


@njit(cache=True, error_model="numpy")
def _find_half(w, context, t, h):
    """Newton's method for the first half, to rounding; (status, cause of failure).

    A rounding error of the positions is one of b that is 1/h times as large; the second half removes it.
    """
    n, s, span = w.n, w.s, abs(w.run.t_end - w.run.t_start)
    previous, scale_v = math.inf, max(s.scale_v, 1e-6 * s.scale_q / abs(h))
    s.z[0] = h
    for iteration in range(_MOST_ITERATIONS):
        status = newton_change(w.half, t, s.x, s.z, context, s.change)
        if status != OK:
            return status, loop.SINGULAR_MATRIX
        for i in range(s.unknowns):
            s.change[i] = -s.change[i]
        for i in range(2 * n, s.unknowns):
            s.x[w.k + i] += s.change[i]
        correction, _, _ = add_correction(s.x, s.change, n, 2 * n, s.scale_q, scale_v, span)
        w.run.iterations = iteration + 1
        w.run.correction = correction
        if not correction < LARGEST_CORRECTION:
            return OK, loop.NEWTON if correction == correction else loop.NOT_FINITE
        if 1e-7 < previous < 1e-2:
            s.kappa = max(2.0 * correction / (previous * previous), 0.5 * s.kappa, 1e-3)
        if has_converged(correction, previous, s.kappa):
            return OK, 0
        if iteration > 4 and correction > previous:
            break
        previous = correction
    return OK, loop.NEWTON


@njit(cache=True, error_model="numpy")
def _half(w, context, t, h, at, part, use):
    """From the beginning of a step to q₁ and b in ``x``; (status, cause of failure)."""
    if w.m == 0 and not w.s.implicit:
        _start(w, h, at)
        return OK, 0
    _expect(w, part, use)
    _predict(w, t, h, at)
    status, cause = _find_half(w, context, t + h, h)
    if use and status == OK and cause == 0:
        _learn(w, h, at, part)
    return status, cause


@njit(cache=True, error_model="numpy")
def _start(w, h, at):
    """b = v₀ + h/2 a₀, where nothing has to be solved."""
    n, carry, b = w.n, shift(at, 3 * w.n), shift(w.s.x, w.n)
    for i in range(n):
        w.s.x[i] = at[i] + h * at[n + i]
        kick = 0.5 * h * at[4 * n + i] + carry[i]
        b[i] = at[n + i] + kick
        carry[i] = kick - (b[i] - at[n + i])


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
        status = _derivative(w, context, t, s.x, out)
    else:
        for i in range(n):
            s.error[i] = -half * s.x[n + i]
            s.error[n + i] = 0.0
        s.error[w.size] = half
        status = call(s.projection, t, s.x, s.error, context, out)
        if status == SINGULAR:
            status = call(s.dense_projection, t, s.x, s.error, context, out)
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
    status = newton_change(w.end, t, s.x_end, s.z, context, s.change)
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
    status, cause = _half(w, context, t, h, at, part, use)
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
        status = _matrices(w, context, t + h, at)
    return status, loop.SINGULAR_MATRIX if status != OK else 0


@njit(cache=True, error_model="numpy")
def _step(w, context, t, h, at, use):
    """All parts of a composition; (status, cause of failure).  ``use`` tells whether they may use, and change, what
    the steps of the run have taught.
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
        status = _derivative(w, context, t + h, s.new, s.rate)
        cause = loop.SINGULAR_MATRIX if status != OK else 0
    if status == INTERRUPTED:
        return leave(w, loop.STOPPED)
    return loop.FUNCTION_RAISED if status == RAISED else cause


@njit(cache=True, error_model="numpy")
def begin(w, context):
    """What is known at the initial point."""
    run, s, n = w.run, w.s, w.n
    for i in range(n):
        s.scale_q = max(s.scale_q, abs(w.y[i]), run.atol[i])
        s.scale_v = max(s.scale_v, abs(w.y[n + i]), run.atol[n + i])
    run.order = s.order
    run.h = run.constant
    run.nfev += 1
    return resume(w, context)


@njit(cache=True, error_model="numpy")
def accept(w, steps, row, t, h, t_new):
    """Move on to the end of the step."""
    s, y, y_old, n = w.s, w.y, w.y_old, w.n
    if row >= 0 and steps.shape[1] > loop.STEP_COLUMNS:
        for i in range(w.size):
            steps[row, loop.STEP_COLUMNS + i] = y[i]
    for i in range(w.size):
        y_old[i] = y[i]
    _leave(w, s.new, y)
    for i in range(n):
        s.scale_q = max(s.scale_q, abs(y[i]))
        s.scale_v = max(s.scale_v, abs(y[n + i]))
    for i in range(5 * n + w.k + s.entries):
        s.now[i] = s.new[i]
    s.known = min(s.known + 1, 3) if abs(h) == w.run.constant else 0
    s.latest = (s.latest + 1) % 3


@njit(cache=True, error_model="numpy")
def reject(w, t, h, cause):
    """The step is what the user said."""
    return False


@njit(cache=True, error_model="numpy")
def watch(w, context, found):
    """The projection has already computed the values; without it, a kernel is called."""
    if w.s.implicit:
        loop.watch_ends(w, context, found)
        return
    run, n = w.run, w.n
    step = rank_watch.Step(run.t_old, w.y_old, shift(w.y_old, n), run.t, w.y, shift(w.y, n))
    values = regularity_in(w.s.projected, w.size)
    run.found = rank_watch.watch_step(rank_watch_in(w), context, step, values, found, run.found)


@njit(cache=True, error_model="numpy")
def settle(w):
    if w.run.events > 0:
        for i in range(w.size):
            w.s.rate_old[i] = w.s.rate[i]


@njit(cache=True, error_model="numpy")
def resume(w, context):
    """At the start, and after a switch: forces are new."""
    s = w.s
    status = _enter(w, context, w.run.t, w.y, s.now)
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
def _inside(w, context, t_old, y_old, t):
    """A step from t_old to t, with its end in ``new``; nothing of the run is changed that its steps use."""
    s, kappa = w.s, w.s.kappa
    status = _enter(w, context, t_old, y_old, s.new)
    if status == OK and abs(t - t_old) < _TINY * w.run.constant:
        _follow(w, t - t_old, s.new)
    elif status == OK:
        status, cause = _step(w, context, t_old, t - t_old, s.new, False)
        if cause != 0:
            status = max(status, SINGULAR)
    s.kappa = kappa
    return status


@NativeKernel
def interpolant(t, y, memory, context, out):
    """The solution at a time inside the last step: a step of the method from its beginning."""
    w = parts(memory)
    status = _inside(w, context, w.run.t_old, w.y_old, t)
    _leave(w, w.s.new, out)
    return status


@NativeKernel
def preview(t, y, memory, context, out):
    """Hermite's cubic through both ends of the last step."""
    w = parts(memory)
    hermite(w.run, t, w.y_old, w.s.rate_old, w.y, w.s.rate, w.size, out)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(memory_array, context_array, times, states, steps, wanted, out):
    """The solution at many times from the stored steps, of which ``steps`` are those in which they lie; returns
    the number done.
    """
    memory, context = pointer(memory_array), pointer(context_array)
    w = parts(memory)
    for row in range(wanted.size):
        number = steps[row]
        for i in range(w.size):
            w.y_old[i] = states[number, i]
            out[row, i] = states[number, i]
        if wanted[row] == times[number]:
            continue
        if _inside(w, context, times[number], w.y_old, wanted[row]) != OK:
            return row
        _leave(w, w.s.new, w.y)
        for i in range(w.size):
            out[row, i] = w.y[i]
    return wanted.size

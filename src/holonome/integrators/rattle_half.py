"""RATTLE: its memory, and the first half of a step, which ends on the constraints.

The equations are in :mod:`holonome.formulations.hamiltonian`, the other half in
:mod:`holonome.integrators.rattle_steps`.
"""

from __future__ import annotations

import math

from numba import njit

from holonome.dynamics.projection import LARGEST_CORRECTION, add_correction, has_converged
from holonome.formulations.stage import named_stage, newton_change
from holonome.integrators import loop
from holonome.integrators.loop import OWN, RunState
from holonome.integrators.projected_steps import derivative, note_curvature
from holonome.machine.calls import call, shift
from holonome.machine.context import OK
from holonome.machine.layout import Layout, Real, Vector, Whole, taken_apart

_MOST_ITERATIONS = 12


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


Work, parts = taken_apart(
    __name__,
    {"run": (RunState, 0), "s": (RattleState, OWN)},
    "n=coordinates m=rows k=states size=run.size y=run.y y_old=run.y_old",
)


@njit(cache=True, inline="always")
def _matrices_in(w, at):
    """The nonzeros of C and M."""
    return shift(at, 5 * w.n + w.k)


@njit(cache=True, error_model="numpy")
def matrices(w, context, t, at):
    """What a step needs of matrices, at q."""
    if w.s.entries == 0:
        return OK
    return call(w.s.gradient, t, at, at, context, _matrices_in(w, at))


@njit(cache=True, error_model="numpy")
def enter(w, context, t, y, at):
    """All that a step needs at its beginning: nothing is carried yet."""
    n, s = w.n, w.s
    for i in range(2 * n):
        at[i] = y[i]
        at[2 * n + i] = 0.0
    status = derivative(w, context, t, y, s.projected)
    for i in range(n):
        at[4 * n + i] = s.projected[n + i]
    for i in range(w.k):
        at[5 * n + i] = y[2 * n + i]
    return matrices(w, context, t, at) if status == OK else status


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
        status = newton_change(named_stage(s.half), t, s.x, s.z, context, s.change)
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
        note_curvature(s, correction, previous)
        if has_converged(correction, previous, s.kappa):
            return OK, 0
        if iteration > 4 and correction > previous:
            break
        previous = correction
    return OK, loop.NEWTON


@njit(cache=True, error_model="numpy")
def first_half(w, context, t, h, at, part, use):
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

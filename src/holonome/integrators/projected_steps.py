"""What families share whose steps go from one state (q, v, s) to the next and end on the manifold: the check
of the start, Newton's method for the constraints at the end, and the scales by which it is judged.

``w`` is the memory of a family taken apart, ``w.s`` its record.
"""

import math

from numba import njit

from holonome.dynamics.parts import correction_in, missed_in, regularity_in
from holonome.dynamics.projection import LARGEST_CORRECTION, MOST_CORRECTIONS, add_correction, has_converged
from holonome.integrators import loop, rank_watch
from holonome.integrators.loop import rank_watch_in, watch_ends
from holonome.integrators.start_check import is_consistent
from holonome.machine.calls import call_either, shift
from holonome.machine.context import OK, RAISED, named_context
from holonome.machine.layout import Layout, Real, Vector, Whole

_CONTRADICTION = 1e-7
"""What may remain of a row that depends on others, as a distance relative to the largest position (or
velocity).
"""

TRUSTED, UNCONSTRAINED, CONSTRAINED = range(3)
"""What has to be checked at the start: nothing, masses, or constraints as well."""


class ProjectedState(Layout):
    """What the record of a family begins with whose steps are projected in this way; `explicit_fields` of its
    stepper fills it.
    """

    coordinates: Whole
    stride: Whole  # doubles from one stage, or one coefficient, to the next
    project: Whole  # whether steps end on the manifold
    check: Whole  # what has to be checked at the start
    derivative: Whole  # addresses
    projection: Whole
    dense_derivative: Whole
    dense_projection: Whole
    after_rejection: Whole
    kappa: Real  # constant of Newton's quadratic convergence, as measured
    scale_q: Real  # the largest position and velocity so far
    scale_v: Real
    z: Vector  # the new point
    error: Vector
    projected: Vector  # result of the projection, which begins with the derivative


PROJECTED = (
    "n=coordinates size=run.size stride rtol=run.rtol atol=run.atol y=run.y y_old=run.y_old z error "
    "projected "
)
"""What a step goes on using."""


@njit(cache=True, inline="always", error_model="numpy")
def derivative(w, context, t, y, out):
    return call_either(w.s.derivative, w.s.dense_derivative, t, y, y, context, out)


@njit(cache=True, inline="always", error_model="numpy")
def evaluate_projection(w, context, t, y, out):
    """The projection of y, and of the error in ``error``."""
    return call_either(w.s.projection, w.s.dense_projection, t, y, w.s.error, context, out)


@njit(cache=True, error_model="numpy")
def clear_error(w):
    """The projection has nothing to project but the point itself."""
    for i in range(w.size + 1):
        w.s.error[i] = 0.0


@njit(cache=True, error_model="numpy")
def enter_scales(w, y, end):
    """The largest position and velocity, of entries up to this one, not below what the tolerances can tell
    from zero.
    """
    s, atol = w.s, w.run.atol
    for i in range(w.n):
        s.scale_q = max(s.scale_q, abs(y[i]), atol[i])
    for i in range(w.n, end):
        s.scale_v = max(s.scale_v, abs(y[i]), atol[i])


@njit(cache=True, error_model="numpy")
def widen_scales(w, y, end):
    """The same with a new point."""
    s = w.s
    scale_q, scale_v = s.scale_q, s.scale_v
    for i in range(w.n):
        scale_q = max(scale_q, abs(y[i]))
    for i in range(w.n, end):
        scale_v = max(scale_v, abs(y[i]))
    s.scale_q = scale_q
    s.scale_v = scale_v


@njit(cache=True, error_model="numpy")
def note_curvature(s, correction, previous):
    """κ, the constant of Newton's quadratic convergence, from two corrections δ: one leaves about κ δ²."""
    if 1e-7 < previous < 1e-2:
        s.kappa = max(2.0 * correction / (previous * previous), 0.5 * s.kappa, 1e-3)


@njit(cache=True, error_model="numpy")
def _correct(w):
    """Add δ to z; its size relative to the largest position and velocity, and whether rows conflict."""
    s, span = w.s, abs(w.run.t_end - w.run.t_start)
    missed = missed_in(s.projected, w.size)
    correction, scale_q, scale_v = add_correction(
        s.z, correction_in(s.projected, w.size), w.n, w.size, s.scale_q, s.scale_v, span
    )
    return correction, missed[0] > _CONTRADICTION * scale_q or missed[1] > _CONTRADICTION * scale_v


@njit(cache=True, inline="always", error_model="numpy")
def first_projection(w, context, t):
    """Evaluate the projection of z into ``projected``; (status, cause of failure)."""
    status = evaluate_projection(w, context, t, w.s.z, w.s.projected)
    w.run.projections += 1
    if status != OK:
        w.run.t_failed = t
        return status, loop.SINGULAR_MATRIX
    return OK, 0


@njit(cache=True, error_model="numpy")
def correct_to_rounding(w, context, t):
    """Bring z onto the manifold, from its first projection; (status, cause of failure).  What belongs to the
    point is left in ``projected``.
    """
    run, s, previous = w.run, w.s, math.inf
    for iteration in range(MOST_CORRECTIONS):
        if iteration > 0:
            status, cause = first_projection(w, context, t)
            if status != OK:
                return status, cause
        correction, contradiction = _correct(w)
        run.correction = correction
        run.iterations = iteration + 1
        if not correction < LARGEST_CORRECTION:
            return OK, loop.PROJECTION_FAILED if correction == correction else loop.NOT_FINITE
        note_curvature(s, correction, previous)
        if has_converged(correction, previous, s.kappa):
            return OK, loop.CONTRADICTION if contradiction else 0
        if iteration > 2 and correction > previous:
            break
        previous = correction
    return OK, loop.PROJECTION_FAILED


@njit(cache=True, inline="always", error_model="numpy")
def onto_manifold(w, context, t):
    """Bring z onto the manifold; (status, cause of failure)."""
    status, cause = first_projection(w, context, t)
    return (status, cause) if status != OK else correct_to_rounding(w, context, t)


@njit(cache=True, error_model="numpy")
def _check_start(w, context):
    """Evaluate the derivative at the start into ``projected``; (status, whether consistent and regular)."""
    run, s = w.run, w.s
    if s.check != CONSTRAINED:
        status = derivative(w, context, run.t, run.y, s.projected)
        return status, s.check == TRUSTED or named_context(context).dense_calls == 0
    clear_error(w)
    status = evaluate_projection(w, context, run.t, run.y, s.projected)
    return status, is_consistent(run, s.projected, context, w.n, w.size)


@njit(cache=True, error_model="numpy")
def enter_start(w, context):
    """Scales and derivative at the initial point, in ``projected``; OK, or a code."""
    run, s = w.run, w.s
    enter_scales(w, run.y, w.size)
    status, consistent = _check_start(w, context)
    if status == OK and not consistent:
        return loop.OFF_MANIFOLD
    if status >= RAISED:
        return loop.code_of(status)
    total = 0.0
    for i in range(w.size):
        total += s.projected[i] + run.y[i]
    if status != OK or total - total != 0.0:
        return loop.CANNOT_START
    run.order = s.order
    return OK


@njit(cache=True, error_model="numpy")
def choose_given(run, h):
    """The first step: the constant one, the one asked for, or else this."""
    if run.constant > 0.0:
        return run.constant
    return run.first_step if run.first_step > 0.0 else h


@njit(cache=True, error_model="numpy")
def keep_beginning(w, steps, row):
    """The state at the beginning of the step, in a row of the history."""
    if row >= 0 and steps.shape[1] > loop.STEP_COLUMNS:
        for i in range(w.size):
            steps[row, loop.STEP_COLUMNS + i] = w.run.y[i]


@njit(cache=True, error_model="numpy")
def recall_beginning(w, rows, row):
    """A point, (t, y), as the beginning of a step."""
    w.run.t_old = rows[row, 0]
    for i in range(w.size):
        w.run.y_old[i] = rows[row, 1 + i]


@njit(cache=True, error_model="numpy")
def watch_projected(w, context, found, known):
    """Look for a fall of the rank in the last step; where the projection has computed the values, they are
    ``known``, else a kernel is called.
    """
    run, n = w.run, w.n
    if known:
        step = rank_watch.Step(run.t_old, run.y_old, shift(run.y_old, n), run.t, run.y, shift(run.y, n))
        values = regularity_in(w.s.projected, w.size)
        run.found = rank_watch.watch_step(rank_watch_in(w), context, step, values, found, run.found)
    else:
        watch_ends(w, context, found)

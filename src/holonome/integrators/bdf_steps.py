"""Backward differentiation formulas: a step with Newton's method, projection and the update of
its history.

References
----------
K. E. Brenan, S. L. Campbell, L. R. Petzold, Numerical Solution of Initial-Value Problems in
Differential-Algebraic Equations, SIAM 1996, chapter 5.
"""

import math
from collections import namedtuple

from numba import njit

from holonome.dynamics.projection import Projector, project
from holonome.formulations.implicit import formulation_state
from holonome.integrators import dassl, loop, newton
from holonome.integrators.dassl import MOST
from holonome.integrators.loop import OWN, leave, run_state, target, watch_ends
from holonome.machine.calls import NativeKernel, call, pointer, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED
from holonome.machine.layout import Layout, Real, Vector, Whole


class BDFState(Layout):
    """The integrator's part of the memory."""

    unknowns: Whole
    coordinates: Whole
    state: Whole  # numbers of q, v and s
    multipliers: Whole  # unknowns after them whose rows are constraints
    factor_count: Whole  # numbers of an emitted factorization
    residual: Whole  # addresses
    factors_kernel: Whole
    solution: Whole
    matrix: Whole
    prediction: Whole  # of the multipliers; 0: extrapolated
    after: Whole  # multipliers at the end of a step; 0: they are unknowns
    dense_projection: Whole  # 0: the solution between steps is not projected
    projection: Whole
    projection_factors: Whole
    projection_repeated: Whole
    projection_size: Whole  # numbers of a kept factorization
    project: Whole  # whether steps end on the manifold
    tests_all: Whole  # whether the error test sees what the projection removes
    tolerances: Whole  # how many tolerances of q the kernels get
    max_order: Whole
    max_iterations: Whole
    newton_tolerance: Real
    rate_floor: Real
    constant_order: Whole
    order: Whole
    order_old: Whole
    ns: Whole  # steps of the same size and order
    phase: Whole  # 0 while order and size rise together
    have_matrix: Whole
    kind: Whole  # which factorization is in place
    cj: Real
    cj_last: Real
    cj_of_matrix: Real
    ck: Real  # constant of the error
    rate_factor: Real  # S of Newton's convergence test
    h_old: Real
    converged: Whole
    order_new: Whole  # results of the error estimate
    estimate: Real
    terk: Real
    terkm1: Real
    erkm1: Real
    failed_in_step: Whole
    trapped: Whole  # failures since the last step of higher order
    new_starts: Whole
    njev: Whole
    newton_failures: Whole
    error_failures: Whole
    centre: Real  # of the polynomial of the last step, and its order
    polynomial_order: Whole
    psi: Vector
    alpha: Vector
    beta: Vector
    sigma: Vector
    gamma: Vector
    error_weights: Vector
    newton_weights: Vector
    yy: Vector
    e: Vector
    delta: Vector
    scratch: Vector
    factors: Vector
    dense: Vector
    pivots: Vector
    row_scale: Vector
    error_mask: Vector
    newton_mask: Vector
    row_powers: Vector
    column_powers: Vector
    atol: Vector
    row_shift: Vector
    block: Vector
    phi: Vector
    scratch_of_state: Vector
    moved: Vector
    projector_z: Vector
    projected: Vector
    dense_projected: Vector
    kept: Vector


named = BDFState.named()


Work = namedtuple(
    "Work",
    "memory run s size n state residual_kernel factors_kernel solution_kernel matrix_kernel factor_count "
    "newton_tolerance rate_floor error_count newton_count rtol multipliers tolerances atol y phi psi "
    "alpha beta sigma gamma error_weights newton_weights e delta scratch factors dense pivots row_scale "
    "error_mask newton_mask row_powers column_powers row_shift block",
)
"""The memory taken apart once."""


@njit(cache=True, error_model="numpy")
def parts(memory):
    run, s = run_state(memory), named(shift(memory, OWN))
    size = s.unknowns
    error_mask, newton_mask = s.error_mask, s.newton_mask
    error_count, newton_count = 0.0, 0.0
    for i in range(size):
        error_count += error_mask[i] > 0.0
        newton_count += newton_mask[i] > 0.0
    return Work(
        memory,
        run,
        s,
        size,
        s.coordinates,
        s.state,
        s.residual,
        s.factors_kernel,
        s.solution,
        s.matrix,
        s.factor_count,
        s.newton_tolerance,
        s.rate_floor,
        error_count,
        newton_count,
        run.rtol,
        s.multipliers,
        s.tolerances,
        s.atol,
        s.yy,
        s.phi,
        s.psi,
        s.alpha,
        s.beta,
        s.sigma,
        s.gamma,
        s.error_weights,
        s.newton_weights,
        s.e,
        s.delta,
        s.scratch,
        s.factors,
        s.dense,
        s.pivots,
        s.row_scale,
        error_mask,
        newton_mask,
        s.row_powers,
        s.column_powers,
        s.row_shift,
        s.block,
    )


@njit(cache=True, error_model="numpy")
def _correct(w, context, t):
    """Newton's method, with a new matrix if there is none or the old one fails; (status, converged)."""
    k, splits = w.s.order, w.s.prediction != 0
    while True:
        if splits:
            formulation_state(w.block).fresh = w.s.have_matrix == 0
        status = dassl.predict(w, context, t, k)
        if splits:
            if status != OK:
                return status, False
            if formulation_state(w.block).changed:
                w.s.have_matrix = 0
            dassl.set_weights(w)
        fresh = w.s.have_matrix == 0
        if fresh:
            status, kind = newton.evaluate_matrix(w, context, t, w.s.cj)
            w.s.njev += 1
            if status != OK:
                return status, False
            w.s.kind = kind
            w.s.have_matrix = 1
            w.s.cj_of_matrix = w.s.cj
            w.s.rate_factor = 100.0
        status, converged, rate_factor, evaluations = newton.iterate(
            w,
            context,
            t,
            w.s.cj,
            w.s.cj_of_matrix,
            w.s.kind,
            w.s.rate_factor,
            w.s.max_iterations,
        )
        w.run.nfev += evaluations
        w.run.iterations = evaluations
        w.s.rate_factor = rate_factor
        if converged and w.s.after != 0:
            status = _find_multipliers(w, context, t, k)
            converged = status == OK
        if converged or status != OK or fresh:
            return status, converged
        w.s.have_matrix = 0


@njit(cache=True, error_model="numpy")
def _find_multipliers(w, context, t, k):
    """Multipliers at the end of a step, where the iteration knows none; E gets their difference from the
    extrapolation.
    """
    status = call(w.s.after, t, w.y, w.block, context, w.delta)
    for i in range(w.state, w.size):
        w.e[i] = w.delta[i - w.state]
        for j in range(k + 1):
            w.e[i] -= w.phi[j * w.size + i]
    return status


@njit(cache=True, error_model="numpy")
def propose(w):
    """The step to try: shortened or stretched a little to end exactly at the target."""
    run = w.run
    h, left = run.h, target(run) - run.t
    if run.constant > 0.0:
        return h if abs(left) > abs(h) * (1.0 + 1e-9) else left
    if abs(h) > run.h_max:
        h = run.direction * run.h_max
    return left if abs(h) * (1.0 + 1e-10) >= abs(left) else h


@njit(cache=True, error_model="numpy")
def begin(w, context):
    """A run of constant order has its history already."""
    largest = 0.0
    for i in range(w.state):
        w.atol[i] = w.run.atol[i]
        largest = max(largest, w.atol[i])
    for i in range(w.state, w.size):
        w.atol[i] = largest
    if w.s.constant_order:
        dassl.set_weights(w)
    else:
        dassl.start(w)
    return OK


@njit(cache=True, error_model="numpy")
def projector(w):
    """The projection that ends a step."""
    s = w.s
    return Projector(
        w.n,
        w.state,
        abs(w.run.t_end - w.run.t_start),
        s.projection,
        s.projection_factors,
        s.projection_repeated,
        s.dense_projection,
        s.projection_size,
        s.projector_z,
        s.projected,
        s.dense_projected,
        s.kept,
    )


@njit(cache=True, error_model="numpy")
def outcome_of(w, status, error):
    """The outcome of an attempt from the status of its kernels and its error."""
    w.run.error = error
    if status == INTERRUPTED:
        return leave(w, loop.STOPPED)
    if w.s.converged:
        accepted = error <= 1.0 or (w.run.constant > 0.0 and error - error == 0.0)
        return loop.ACCEPTED if accepted else loop.ERROR_TEST
    if status == RAISED:
        return loop.FUNCTION_RAISED
    return loop.SINGULAR_MATRIX if status != OK else loop.NEWTON


@njit(cache=True, error_model="numpy")
def attempt(w, context, t, h):
    """Newton's method at the end of a step, projection, and the error."""
    s = w.s
    k = s.order
    dassl.coefficients(w, h)
    status, converged = _correct(w, context, t + h)
    s.order_new = k
    s.estimate = math.inf
    size_of_e, before, moved = math.inf, s.scratch_of_state, s.moved
    if converged and s.project:
        for i in range(w.state):
            before[i] = w.e[i]
        status = project(projector(w), context, t + h, w.y, w.e, moved)
        converged = status == OK
    s.converged = converged
    if converged:
        if s.tests_all:
            for i in range(w.state):
                w.e[i] = before[i]
        size_of_e = dassl.estimate(w, k)
        if s.project:
            for i in range(w.state):
                w.e[i] = before[i] + moved[i]
    return outcome_of(w, status, s.ck * size_of_e)


@njit(cache=True, error_model="numpy")
def accept(w, steps, row, t, h, t_new):
    """Bring the history up to date, move on, and choose order and size of the next step."""
    run, s = w.run, w.s
    k = s.order
    h_new = dassl.choose(w, h)
    dassl.update(w, k, s.max_order)
    run.order = k
    if row >= 0 and steps.shape[1] > loop.STEP_COLUMNS:
        _keep_polynomial(w, steps, row, k)
    if s.constant_order:
        s.order = k
    run.h = h if run.constant > 0.0 else h_new
    s.polynomial_order = k
    s.centre = t_new
    y, y_old = run.y, run.y_old
    for i in range(run.size):
        y_old[i] = y[i]
        y[i] = w.phi[i]
    dassl.set_weights(w)
    s.failed_in_step = 0


@njit(cache=True, error_model="numpy")
def _keep_polynomial(w, steps, row, k):
    """What the polynomial of the step is made of, in a row of the history."""
    at, count = loop.STEP_COLUMNS, w.run.size
    for j in range(k + 1):
        steps[row, at + j] = w.psi[j]
        for i in range(count):
            steps[row, at + MOST + 1 + j * count + i] = w.phi[j * w.size + i]


@njit(cache=True, error_model="numpy")
def reject(w, t, h, cause):
    """Take the step back and shrink; False if it cannot be made smaller."""
    dassl.restore(w, h)
    w.run.h = dassl.shrink(w, h)
    w.run.t_failed = t + h
    too_small = abs(w.run.h) <= 1e-15 * max(abs(t), abs(t + h)) or w.s.failed_in_step > 30
    return not (w.run.constant > 0.0 or too_small)


@njit(cache=True, error_model="numpy")
def resume(w, context):
    dassl.start(w)
    return OK


watch = watch_ends
advance = loop.advance_with(globals())


@njit(cache=True, error_model="numpy")
def _polynomial(w, t, out):
    k, step, size, count = w.s.polynomial_order, t - w.s.centre, w.size, w.run.size
    for i in range(count):
        out[i] = w.phi[i]
    c, gamma = 1.0, step / w.psi[0]
    for j in range(1, k + 1):
        c *= gamma
        gamma = (step + w.psi[j - 1]) / w.psi[j]
        for i in range(count):
            out[i] += c * w.phi[j * size + i]


@njit(cache=True, error_model="numpy")
def _solution_inside(w, context, t, out):
    """The polynomial of the last step, its positions and velocities brought onto the manifold."""
    _polynomial(w, t, out)
    if w.s.dense_projection == 0:
        return OK
    no_error = w.s.scratch_of_state
    for i in range(w.state):
        no_error[i] = 0.0
    w.s.kept[0] = 0.0  # a factorization for the end of a step
    return project(projector(w), context, t, out, no_error, w.s.moved)


@NativeKernel
def interpolant(t, y, memory, context, out):
    return _solution_inside(parts(memory), context, t, out)


@NativeKernel
def preview(t, y, memory, context, out):
    """The polynomial of the last step alone."""
    _polynomial(parts(memory), t, out)
    return OK


def polynomial_columns(size: int) -> int:
    """Columns of a row of the history that hold the polynomial of a step."""
    return (MOST + 1) * (1 + size)


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(memory_array, context_array, rows, steps, wanted, out):
    """The solution at many times from the stored polynomials; ``steps`` are the numbers of the rows in whose
    steps the times lie.  Returns the number done.
    """
    memory, context = pointer(memory_array), pointer(context_array)
    w = parts(memory)
    count, current, at = w.run.size, -1, loop.STEP_COLUMNS
    value = w.run.y_event
    for number in range(wanted.size):
        row = steps[number]
        if row != current:
            k = int(rows[row, 5])
            w.s.centre = rows[row, 0] + rows[row, 1]
            w.s.polynomial_order = k
            for j in range(k + 1):
                w.psi[j] = rows[row, at + j]
                for i in range(count):
                    w.phi[j * w.size + i] = rows[row, at + MOST + 1 + j * count + i]
            current = row
        if _solution_inside(w, context, wanted[number], value) != OK:
            return number
        for i in range(count):
            out[number, i] = value[i]
    return wanted.size

"""Radau IIA: a step with its stages, error estimate and projection.

With Z_i = Y_i − y_n and Y′_i = (1/h) Σ (A⁻¹)_ij Z_j the stages of F(t, Y, Y′) = 0 are found by

    ΔZ = T M⁻¹ T⁻¹ F,     M = ∂F/∂Y + cj ∂F/∂Y′ for each block of T⁻¹A⁻¹T,     cj = γ/h and (α − iβ)/h

(:mod:`holonome.integrators.radau_coefficients`, :mod:`holonome.integrators.radau_newton`).  The next step
begins with y_n + Z_s, brought onto the manifold where the formulation projects, and its iteration with the
collocation polynomial of this one, extrapolated.

Error estimate: (∂F/∂Y + γ/h ∂F/∂Y′)⁻¹ F(t_n, y_n, −(1/h) Σ e_i Z_i); where it is too large in a first step
or after a rejection, once more with y_n + estimate in place of y_n.  Components of index k have the weight
h^{k−1}, in this test and in that of Newton's method.

References
----------
E. Hairer, G. Wanner, Stiff differential equations solved by Radau methods, J. Comput. Appl. Math. 111 (1999).
E. Hairer, C. Lubich, M. Roche, The Numerical Solution of Differential-Algebraic Systems by Runge–Kutta
Methods, Springer 1989.
"""

import math

from numba import njit

from holonome.dynamics.projection import project
from holonome.integrators import loop, newton
from holonome.integrators.between_steps import between_steps
from holonome.integrators.loop import watch_ends
from holonome.integrators.radau_control import (
    CAUTION,
    choose_next,
    count_failure,
    first_step,
    lower_order,
    set_tolerances,
    set_weights,
    wanted_step,
)
from holonome.integrators.radau_matrices import complete
from holonome.integrators.radau_newton import evaluate_residual, find_stages, lagrange, stage
from holonome.integrators.radau_state import parts as parts
from holonome.integrators.radau_state import table_of
from holonome.integrators.residual_steps import (
    enter_tolerances,
    may_try,
    outcome_of,
    projector,
)
from holonome.integrators.residual_steps import propose as propose
from holonome.machine.calls import call_either, shift
from holonome.machine.context import OK


@njit(cache=True, error_model="numpy")
def _filtered(w, context, t, h, cj):
    """The error estimate from the residual at ``trial``, in ``e``; a status."""
    s = w.s
    status = evaluate_residual(w, context, t, w.trial, w.delta)
    if status != OK:
        return status
    newton.solve(w, context, s.kind, cj)
    s.spent += s.of_solution
    for k in range(w.size):
        w.e[k] = -w.scratch[k]
    return OK


@njit(cache=True, error_model="numpy")
def _norm_of_error(w):
    return newton.norm(w.e, w.error_weights, w.error_count, w.size)


@njit(cache=True, error_model="numpy")
def _estimate(w, context, t, h):
    """The error estimate, in ``e``; a status."""
    s, size, stages = w.s, w.size, w.s.stages
    table, dy = table_of(w, stages), shift(w.trial, size)
    cj = table.eigenvalues[0] / h
    for k in range(w.s.moving):
        w.trial[k], dy[k] = w.now[k], 0.0
    for j in range(stages):
        factor, z = table.error[j] / h, shift(w.z, j * size)
        for k in range(w.s.moving):
            dy[k] -= factor * z[k]
    status = _filtered(w, context, t, h, cj)
    if status == OK and (s.first or s.rejected) and not _norm_of_error(w) < 1.0:
        for k in range(w.s.moving):
            w.trial[k] = w.now[k] + w.e[k]
        if _filtered(w, context, t, h, cj) != OK:
            for k in range(w.s.moving):
                w.e[k] = w.trial[k] - w.now[k]
    return status


@njit(cache=True, error_model="numpy")
def begin(w, context):
    """Start from the Y and Y′ that Python has filled in."""
    s, run = w.s, w.run
    enter_tolerances(w)
    for k in range(w.size):
        w.now[k] = w.y[k]
        s.rate[k] = w.y[w.size + k]
    s.stages = s.fewest
    s.stages_polynomial = s.fewest
    s.first = 1
    s.largest = math.inf
    s.since = 1000
    set_tolerances(w)
    set_weights(w, 0.0)
    run.h = run.direction * first_step(w)
    return OK


@njit(cache=True, error_model="numpy")
def attempt(w, context, t, h):
    """Stages, error estimate and projection."""
    s, status, converged, error = w.s, OK, False, math.inf
    set_weights(w, h)
    if s.incomplete:
        status = complete(w, context, t, w.now)
        s.incomplete = 0
    if status == OK:
        status, converged = find_stages(w, context, t, h)
    if converged:
        last = shift(w.z, (s.stages - 1) * w.size)
        for k in range(w.s.moving):
            s.new[k] = w.now[k] + last[k]
        status = _estimate(w, context, t, h)
        if status == OK and s.project:
            status = project(projector(w), context, t + h, s.new, w.e, s.moved)
        converged = status == OK
    s.converged = converged
    if converged:
        error = _norm_of_error(w)
    return outcome_of(w, status, error)


@njit(cache=True, error_model="numpy")
def accept(w, steps, row, t, h, t_new):
    """Keep the polynomial, move on, and choose order and size of the next step."""
    run, s = w.run, w.s
    planned, h_new = run.h, wanted_step(w, h, run.error)
    s.error_old = max(1e-2, run.error)
    s.h_old = h
    if s.rejected and abs(h_new) > abs(h):
        h_new = h
    if abs(h) < 0.99 * abs(planned) and abs(planned) > abs(h_new):
        h_new = planned
    if row >= 0 and steps.shape[1] > loop.STEP_COLUMNS:
        _keep_polynomial(w, steps, row)
    _move_on(w, t, h)
    run.order = 2 * s.stages - 1
    if run.constant == 0.0:
        choose_next(w, h, run.direction * run.h_max if abs(h_new) > run.h_max else h_new)


@njit(cache=True, error_model="numpy")
def _move_on(w, t, h):
    """The end of the step becomes the beginning of the next."""
    run, s, size = w.run, w.s, w.size
    stages = s.stages
    table = table_of(w, stages)
    stage(w, table, stages - 1, h, w.trial)
    for k in range(w.s.moving):
        s.rate[k] = w.trial[size + k]
        w.now[k] = s.new[k]
    for k in range(stages * size):
        w.z_before[k] = w.z[k]
    s.t_polynomial = t
    s.h_polynomial = h
    s.stages_polynomial = stages
    s.first = 0
    s.rejected = 0
    s.repeated = 0
    for i in range(run.size):
        run.y_old[i] = run.y[i]
        run.y[i] = w.now[i]


@njit(cache=True, error_model="numpy")
def _keep_polynomial(w, steps, row):
    """The beginning of the step and its stages, in a row of the history."""
    at, count = loop.STEP_COLUMNS, w.run.size
    for i in range(count):
        steps[row, at + i] = w.now[i]
        for j in range(w.s.stages):
            steps[row, at + (1 + j) * count + i] = w.z[j * w.size + i]


@njit(cache=True, error_model="numpy")
def reject(w, t, h, cause):
    """Choose a smaller step; False if there is none."""
    run, s = w.run, w.s
    if cause == loop.ERROR_TEST:
        s.error_failures += 1
        s.repeated = 0
        run.h = 0.1 * h if s.first else wanted_step(w, h, run.error)
    else:
        s.newton_failures += 1
        s.repeated += 1
        s.have_matrix = 0
        s.largest = CAUTION * abs(h)
        count_failure(w)
        run.h = h * (s.smaller if cause == loop.NEWTON and s.repeated <= 3 else 0.25)
        lower_order(w)
    s.rejected = 1
    return may_try(w, t, h, s.repeated)


@njit(cache=True, error_model="numpy")
def resume(w, context):
    """Behind a switch accelerations and multipliers are others; the size of the step stays."""
    s, run = w.s, w.run
    if call_either(s.rate_kernel, s.dense_rate, run.t, w.now, w.now, context, w.trial) == OK:
        for i in range(w.state):
            s.rate[i] = w.trial[i]
    complete(w, context, run.t, w.now)
    for i in range(run.size):
        run.y[i] = w.now[i]
    s.first = 1
    s.have_matrix = 0
    return OK


watch = watch_ends
advance = loop.advance_with(globals())


@njit(cache=True, error_model="numpy")
def nearly(w, t, out):
    """The polynomial of the last step."""
    s, size, count = w.s, w.size, w.run.size
    basis, stages = s.basis, s.stages_polynomial
    lagrange(table_of(w, stages), stages, (t - s.t_polynomial) / s.h_polynomial, basis)
    for i in range(count):
        out[i] = w.run.y_old[i]
    for j in range(stages):
        factor, z = basis[1 + j], shift(w.z_before, j * size)
        for i in range(count):
            out[i] += factor * z[i]


@njit(cache=True, error_model="numpy")
def recall(w, context, rows, row):
    """Restore what `_keep_polynomial` wrote."""
    run, s, at, count = w.run, w.s, loop.STEP_COLUMNS, w.run.size
    s.t_polynomial, s.h_polynomial = rows[row, 0], rows[row, 1]
    s.stages_polynomial = (int(rows[row, 5]) + 1) // 2
    for i in range(count):
        run.y_old[i] = rows[row, at + i]
        for j in range(s.stages_polynomial):
            w.z_before[j * w.size + i] = rows[row, at + (1 + j) * count + i]
    return OK


interpolant, preview, evaluate = between_steps(globals())

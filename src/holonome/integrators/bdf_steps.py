"""Backward differentiation formulas: a step with Newton's method, projection and the update of
its history.

References
----------
K. E. Brenan, S. L. Campbell, L. R. Petzold, Numerical Solution of Initial-Value Problems in
Differential-Algebraic Equations, SIAM 1996, chapter 5.
"""

import math

from numba import njit

from holonome.dynamics.projection import project
from holonome.formulations.implicit import formulation_state
from holonome.integrators import dassl, loop, newton
from holonome.integrators.between_steps import between_steps
from holonome.integrators.dassl import MOST
from holonome.integrators.loop import OWN, RunState, watch_ends
from holonome.integrators.residual_steps import (
    TESTING,
    TestingState,
    enter_tolerances,
    may_try,
    outcome_of,
    projector,
)
from holonome.integrators.residual_steps import propose as propose
from holonome.machine.calls import call
from holonome.machine.context import OK
from holonome.machine.layout import Real, Vector, Whole, taken_apart


class BDFState(TestingState):
    """The integrator's part of the memory."""

    prediction: Whole  # of the multipliers; 0: extrapolated
    after: Whole  # multipliers at the end of a step; 0: they are unknowns
    tests_all: Whole  # whether the error test sees what the projection removes
    max_order: Whole
    rate_floor: Real
    constant_order: Whole
    order: Whole
    order_old: Whole
    ns: Whole  # steps of the same size and order
    phase: Whole  # 0 while order and size rise together
    cj: Real
    cj_last: Real
    cj_of_matrix: Real
    ck: Real  # constant of the error
    rate_factor: Real  # S of Newton's convergence test
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
    phi: Vector


Work, parts = taken_apart(
    __name__,
    {"run": (RunState, 0), "s": (BDFState, OWN)},
    TESTING
    + "newton_tolerance rate_floor rtol=run.rtol atol phi psi alpha beta sigma gamma error_mask newton_mask",
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
def begin(w, context):
    """A run of constant order has its history already."""
    enter_tolerances(w)
    if w.s.constant_order:
        dassl.set_weights(w)
    else:
        dassl.start(w)
    return OK


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
    return may_try(w, t, h, w.s.failed_in_step)


@njit(cache=True, error_model="numpy")
def resume(w, context):
    dassl.start(w)
    return OK


watch = watch_ends
advance = loop.advance_with(globals())


@njit(cache=True, error_model="numpy")
def nearly(w, t, out):
    """The polynomial of the last step."""
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
def recall(w, context, rows, row):
    """Restore what `_keep_polynomial` wrote."""
    k, at, count = int(rows[row, 5]), loop.STEP_COLUMNS, w.run.size
    w.s.centre = rows[row, 0] + rows[row, 1]
    w.s.polynomial_order = k
    for j in range(k + 1):
        w.psi[j] = rows[row, at + j]
        for i in range(count):
            w.phi[j * w.size + i] = rows[row, at + MOST + 1 + j * count + i]
    return OK


interpolant, preview, evaluate = between_steps(globals())


def polynomial_columns(size: int) -> int:
    """Columns of a row of the history that hold the polynomial of a step."""
    return (MOST + 1) * (1 + size)

"""Simplified Newton iterations for the stages of a Radau method: where they begin, and when they have
converged.

``w`` is the memory of the method taken apart (:mod:`holonome.integrators.radau_state`), ``w.s`` its record.
"""

import math

from numba import njit

from holonome.formulations.implicit import formulation_state
from holonome.integrators import newton
from holonome.integrators.radau_control import set_weights
from holonome.integrators.radau_matrices import factor_matrices, solve_blocks
from holonome.integrators.radau_state import table_of
from holonome.machine.calls import call, call_either, shift
from holonome.machine.context import OK, SINGULAR

_FARTHEST = 8.0
"""The polynomial of a step is not extrapolated over more than so many of its lengths."""


@njit(cache=True, error_model="numpy")
def lagrange(table, stages, x, basis):
    """Values at x of the polynomials that are 1 at one of the nodes 0, c, and 0 at the others."""
    for j in range(stages + 1):
        value = table.barycentric[j]
        if j > 0:
            value *= x
        for k in range(stages):
            if k + 1 != j:
                value *= x - table.nodes[k]
        basis[j] = value


@njit(cache=True, error_model="numpy")
def _predict(w, h):
    """Begin the iteration with the polynomial of the last step, or with Z = 0."""
    s, size = w.s, w.size
    table, before = table_of(w, s.stages), table_of(w, s.stages_polynomial)
    ratio = h / s.h_polynomial
    last = s.stages_polynomial
    if s.first or s.repeated > 1 or ratio > _FARTHEST:
        for i in range(s.stages * size):
            w.z[i] = 0.0
        return
    basis = s.basis
    for i in range(s.stages):
        lagrange(before, last, 1.0 + ratio * table.nodes[i], basis)
        basis[last] -= 1.0
        z = shift(w.z, i * size)
        for k in range(w.moving):
            z[k] = 0.0
        for j in range(last):
            factor, old = basis[1 + j], shift(w.z_before, j * size)
            for k in range(w.moving):
                z[k] += factor * old[k]


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc"})
def stage(w, table, i, h, out):
    """(Y, Y′) of a stage."""
    size, stages = w.size, w.s.stages
    z, dy = shift(w.z, i * size), shift(out, size)
    for k in range(w.moving):
        out[k] = w.now[k] + z[k]
        dy[k] = 0.0
    for j in range(stages):
        factor, z = table.inverse[i * stages + j] / h, shift(w.z, j * size)
        for k in range(w.moving):
            dy[k] += factor * z[k]


@njit(cache=True, error_model="numpy")
def evaluate_residual(w, context, t, point, out):
    """F at a point (Y, Y′); of index 1, y′ − f(t, y) with multipliers and accelerations that belong to y."""
    s = w.s
    w.run.nfev += 1
    s.spent += s.of_residual
    if not s.by_rate:
        return call(w.residual_kernel, t, point, w.block, context, out)
    status, dy = call_either(s.rate_kernel, s.dense_rate, t, point, point, context, out), shift(point, w.size)
    for k in range(w.moving):
        out[k] = dy[k] - out[k]
    for k in range(w.moving, w.size):
        out[k] = 0.0
    return status


@njit(cache=True, error_model="numpy")
def _new_matrices(w, context, t, h):
    """Matrices at the predicted stage in the middle of the step or, where these are not to be had, at its
    beginning.
    """
    s, status = w.s, SINGULAR
    s.have_matrix = 0
    if not s.first:
        middle = (s.stages - 1) // 2
        table = table_of(w, s.stages)
        stage(w, table, middle, h, w.y)
        status = factor_matrices(w, context, t + table.nodes[middle] * h, h)
    if status == SINGULAR:
        for k in range(w.size):
            w.y[k] = w.now[k]
            w.y[w.size + k] = s.rate[k]
        status = factor_matrices(w, context, t, h)
    if status == OK:
        if s.prediction != 0:
            set_weights(w, h)
        s.have_matrix = 1
        s.h_of_matrix = h
        s.stages_of_matrix = s.stages
        s.factor = 1.0
    return status


@njit(cache=True, error_model="numpy")
def _residuals(w, context, table, t, h):
    """F at all stages; returns a status."""
    s, status = w.s, OK
    for i in range(s.stages):
        stage(w, table, i, h, w.trial)
        status = evaluate_residual(w, context, t + table.nodes[i] * h, w.trial, w.delta)
        if status != OK:
            break
        f = shift(w.f, i * w.size)
        for k in range(w.size):
            f[k] = w.delta[k]
    return status


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _times(w, matrix, x):
    """Replace the stages x by their combinations, for each unknown."""
    size, stages, old = w.size, w.s.stages, w.s.basis
    for k in range(size):
        for j in range(stages):
            old[j] = x[j * size + k]
        for i in range(stages):
            total = 0.0
            for j in range(stages):
                total += matrix[i * stages + j] * old[j]
            x[i * size + k] = total


@njit(cache=True, error_model="numpy")
def _correct(w):
    """Subtract the corrections from Z; their norm."""
    total = 0.0
    for j in range(w.s.stages):
        z, d = shift(w.z, j * w.size), shift(w.f, j * w.size)
        for k in range(w.moving):
            z[k] -= d[k]
            e = d[k] * w.newton_weights[k]
            total += e * e
    return math.sqrt(total / (w.newton_count * w.s.stages)) if w.newton_count > 0.0 else 0.0


@njit(cache=True, error_model="numpy")
def _iterate(w, context, t, h):
    """Simplified Newton iterations, which stop as soon as they will not converge in time; returns (status,
    converged).
    """
    s, most = w.s, w.s.max_iterations
    table = table_of(w, s.stages)
    s.factor = max(s.factor, 2.2e-16) ** 0.8
    s.smaller = 0.5
    s.contraction = 0.0
    rounding = 100.0 * 2.2e-16 * newton.norm(w.now, w.newton_weights, w.newton_count, w.size)
    before, last_rate = 0.0, 0.0
    for m in range(most):
        s.iterations = m + 1
        w.run.iterations = m + 1
        status = _residuals(w, context, table, t, h)
        if status != OK:
            return status, False
        _times(w, table.back, w.f)
        solve_blocks(w, context, table, h)
        _times(w, table.transformation, w.f)
        change = _correct(w)
        s.spent += 8.0 * s.stages * s.stages * w.size
        if change <= rounding:
            return OK, True
        if not change < 1e100:
            return OK, False
        if m > 0:
            rate = change / before
            contraction = rate if m == 1 else math.sqrt(rate * last_rate)
            last_rate = rate
            s.contraction = contraction
            if contraction >= 0.99:
                return OK, change <= 100.0 * rounding
            s.factor = contraction / (1.0 - contraction)
            left = most - 1 - m
            predicted = s.factor * change * contraction**left / s.bound
            if predicted >= 1.0 and w.run.constant == 0.0:
                s.smaller = 0.8 * max(1e-4, min(20.0, predicted)) ** (-1.0 / (4.0 + left))
                return OK, False
        if s.factor * change <= s.bound:
            return OK, True
        before = change
    return OK, False


@njit(cache=True, error_model="numpy")
def _split(w, context, t, h):
    """See at the beginning of a step whether the coordinates are still well split; all its stages go by the
    same split, with the matrices of their own positions.  Returns a status.
    """
    s, state = w.s, formulation_state(w.block)
    for k in range(w.size):
        w.y[k] = w.now[k]
        w.y[w.size + k] = s.rate[k]
    state.fresh = 1
    status = call(s.prediction, t, w.y, w.block, context, w.delta)
    if state.changed:
        s.have_matrix = 0
    set_weights(w, h)
    return status


@njit(cache=True, error_model="numpy")
def find_stages(w, context, t, h):
    """Solve for Z, with new matrices if there are none for this step or the old ones fail; returns (status,
    converged).
    """
    s = w.s
    if s.prediction != 0:
        status = _split(w, context, t, h)
        if status != OK:
            return status, False
    while True:
        _predict(w, h)
        fresh = not (s.have_matrix and s.h_of_matrix == h and s.stages_of_matrix == s.stages)
        if fresh:
            status = _new_matrices(w, context, t, h)
            if status != OK:
                return status, False
        status, converged = _iterate(w, context, t, h)
        if converged or status != OK or fresh:
            return status, converged
        s.have_matrix = 0

"""Radau IIA: a step with simplified Newton iterations, error estimate, projection, and the choice of size and
order.

With Z_i = Y_i − y_n and Y′_i = (1/h) Σ (A⁻¹)_ij Z_j the stages of F(t, Y, Y′) = 0 are found by

    ΔZ = T M⁻¹ T⁻¹ F,     M = ∂F/∂Y + cj ∂F/∂Y′ for each block of T⁻¹A⁻¹T,     cj = γ/h and (α − iβ)/h

(:mod:`holonome.integrators.radau_coefficients`).  The next step begins with y_n + Z_s, brought onto the
manifold where the formulation projects, and its iteration with the collocation polynomial of this one,
extrapolated.

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
from collections import namedtuple

from numba import njit

from holonome.dynamics.projection import project
from holonome.integrators import loop, newton
from holonome.integrators.bdf_steps import outcome_of, projector
from holonome.integrators.bdf_steps import propose as propose
from holonome.integrators.loop import OWN, run_state, watch_ends
from holonome.integrators.radau_coefficients import MOST
from holonome.integrators.radau_newton import evaluate_complex, solve_complex
from holonome.machine.calls import NativeKernel, call, pointer, shift
from holonome.machine.context import OK, SINGULAR
from holonome.machine.layout import Layout, Real, Vector, Whole

TABLE = 3 * MOST * MOST + 4 * MOST + 1
"""Numbers of the coefficients of one method; those of fewer stages leave room."""

_SAFETY, _GROW, _SHRINK = 0.9, 8.0, 0.2
_KEEP_SIZE, _KEEP_RATE = 1.2, 0.03
"""A step that would grow by less keeps its size and its matrices, if Newton's method converges faster than
that.
"""

_LARGEST_RATE = 0.2
"""A rate of convergence that the next step should not exceed, if it grows with the cube of the step, as where
a stiff direction turns; if it grows more slowly, steps get there a little later.
"""

_CAUTION, _REGAIN = 0.8, 1.2
"""A step does not grow beyond this part of one at which Newton's method failed, and regains that by a factor
in every step.
"""

_FAST, _SLOW, _PATIENCE = 0.002, 0.8, 10
"""Rates of convergence up to which the order rises, and from which on it falls; and for how many steps it
then does not rise (Hairer & Wanner).
"""

_STRICT = 0.01
"""By what the tolerance of Newton's method is multiplied at constant steps, which may be smaller than the
tolerance asks for, and on index 3, where multipliers get its errors divided by h².
"""

_FARTHEST = 8.0
"""The polynomial of a step is not extrapolated over more than so many of its lengths."""


class RadauState(Layout):
    """The integrator's part of the memory."""

    unknowns: Whole
    coordinates: Whole
    state: Whole  # numbers of q, v and s
    rows: Whole  # numbers of λ
    multipliers: Whole  # unknowns after the state whose rows are constraints
    index3: Whole
    accelerations: Whole  # whether the unknowns after λ are the accelerations
    moving: (
        Whole  # unknowns that are iterated: all, or q, v and s where y′ = f(t, y) is evaluated instead of F
    )
    factor_count: Whole  # numbers of an emitted factorization
    complex_count: Whole
    complex_room: Whole  # doubles of a complex factorization
    residual: Whole  # addresses
    factors_kernel: Whole
    solution: Whole
    matrix: Whole
    complex_factors_kernel: Whole
    complex_solution: Whole
    complex_matrix: Whole
    rate_kernel: Whole  # y′ of the underlying ODE, and λ
    dense_rate: Whole
    multipliers_kernel: Whole
    dense_multipliers: Whole
    dense_projection: Whole  # 0: the solution between steps is not projected
    projection: Whole
    projection_factors: Whole
    projection_repeated: Whole
    projection_size: Whole  # numbers of a kept factorization
    project: Whole  # whether steps end on the manifold
    fewest: Whole  # stages
    most: Whole
    stages: Whole
    max_iterations: Whole
    newton_tolerance: Real  # 0: by the tolerance
    rtol: Real  # of the error test
    slack: Real  # tolerances of the error test, relative to those given
    bound: Real  # of Newton's method
    have_matrix: Whole
    kind: Whole  # which factorization is in place
    h_of_matrix: Real
    stages_of_matrix: Whole
    contraction: Real  # Θ of Newton's method
    factor: Real  # Θ/(1 − Θ), of the last step
    iterations: Whole
    largest: Real  # size up to which the step may grow
    smaller: Real  # by what to multiply the step after Newton's method failed
    converged: Whole
    first: Whole  # whether the step has none before it
    rejected: Whole  # whether the step before was rejected
    repeated: Whole  # failures of Newton's method one after the other
    h_old: Real  # of the last accepted step, and its error
    error_old: Real
    wait: Whole  # steps before another order is tried
    h_polynomial: Real  # of the last step, and where it begins
    t_polynomial: Real
    stages_polynomial: Whole
    spent: Real  # instructions
    of_residual: Real  # what they cost
    of_solution: Real
    of_factors: Real
    of_complex_solution: Real
    of_complex_factors: Real
    njev: Whole
    nlu: Whole
    newton_failures: Whole
    error_failures: Whole
    tables: Vector
    basis: Vector
    kinds: Vector
    yy: Vector  # where matrices are evaluated; at first Y and Y′ of the start
    now: Vector
    rate: Vector
    new: Vector
    z: Vector
    z_before: Vector
    f: Vector
    trial: Vector
    error_weights: Vector
    newton_weights: Vector
    e: Vector
    delta: Vector
    scratch: Vector
    factors: Vector
    dense: Vector
    pivots: Vector
    row_scale: Vector
    complex_factors: Vector
    complex_dense: Vector
    complex_pivots: Vector
    complex_scale: Vector
    complex_right: Vector
    error_mask: Vector
    newton_mask: Vector
    row_powers: Vector
    column_powers: Vector
    atol: Vector
    row_shift: Vector
    block: Vector
    scratch_of_state: Vector
    moved: Vector
    projector_z: Vector
    projected: Vector
    dense_projected: Vector
    kept: Vector


named = RadauState.named()

Work = namedtuple(
    "Work",
    "memory run s size moving n state residual_kernel factors_kernel solution_kernel matrix_kernel "
    "factor_count multipliers tolerances error_count newton_count y now z z_before f trial error_weights "
    "newton_weights e delta scratch factors dense pivots row_scale row_powers column_powers row_shift block",
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
        s.moving,
        s.coordinates,
        s.state,
        s.residual,
        s.factors_kernel,
        s.solution,
        s.matrix,
        s.factor_count,
        s.multipliers,
        0,
        error_count,
        newton_count,
        s.yy,
        s.now,
        s.z,
        s.z_before,
        s.f,
        s.trial,
        s.error_weights,
        s.newton_weights,
        s.e,
        s.delta,
        s.scratch,
        s.factors,
        s.dense,
        s.pivots,
        s.row_scale,
        s.row_powers,
        s.column_powers,
        s.row_shift,
        s.block,
    )


Table = namedtuple("Table", "nodes inverse transformation back eigenvalues error barycentric")
"""The coefficients of a method."""


@njit(cache=True)
def table_of(w, stages):
    begin = shift(w.s.tables, (stages - 3) // 2 * TABLE)
    square = stages * stages
    return Table(
        begin,
        shift(begin, stages),
        shift(begin, stages + square),
        shift(begin, stages + 2 * square),
        shift(begin, stages + 3 * square),
        shift(begin, 2 * stages + 3 * square),
        shift(begin, 3 * stages + 3 * square),
    )


@njit(cache=True, error_model="numpy")
def _set_tolerances(w):
    """Tolerances of the error test, whose estimate is of order s, so that errors at the ends of steps, of
    order 2s − 1, follow those given; and that of Newton's method (Hairer & Wanner).
    """
    s, rtol = w.s, w.run.rtol
    power = (s.stages + 1.0) / (2.0 * s.stages)
    s.rtol = 0.1 * rtol**power
    s.slack = s.rtol / rtol
    rule = max(10.0 * 2.2e-16 / s.rtol, min(0.03, s.rtol ** (1.0 / power - 1.0)))
    if w.run.constant > 0.0 or s.index3:
        rule = max(10.0 * 2.2e-16 / s.rtol, _STRICT * rule)
    s.bound = s.newton_tolerance if s.newton_tolerance > 0.0 else rule


@njit(cache=True, error_model="numpy")
def _set_weights(w, h):
    """Weights of both tests for a step of size h."""
    s, atol, powers = w.s, w.s.atol, w.column_powers
    for i in range(w.size):
        weight = 1.0 / (s.slack * atol[i] + s.rtol * abs(w.now[i]))
        if powers[i] > 0.0:
            weight *= abs(h) ** powers[i]
        w.error_weights[i], w.newton_weights[i] = s.error_mask[i] * weight, s.newton_mask[i] * weight


@njit(cache=True, error_model="numpy")
def _lagrange(table, stages, x, basis):
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
        _lagrange(before, last, 1.0 + ratio * table.nodes[i], basis)
        basis[last] -= 1.0
        z = shift(w.z, i * size)
        for k in range(w.moving):
            z[k] = 0.0
        for j in range(last):
            factor, old = basis[1 + j], shift(w.z_before, j * size)
            for k in range(w.moving):
                z[k] += factor * old[k]


@njit(cache=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _stage(w, table, i, h, out):
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
def _either(kernel, dense, t, y, context, out):
    """Call a kernel, or its dense fallback."""
    status = call(kernel, t, y, y, context, out)
    return call(dense, t, y, y, context, out) if status == SINGULAR else status


@njit(cache=True, error_model="numpy")
def _evaluate(w, context, t, point, out):
    """F at a point (Y, Y′); of index 1, y′ − f(t, y) with multipliers and accelerations that belong to y."""
    s = w.s
    w.run.nfev += 1
    s.spent += s.of_residual
    if w.moving == w.size:
        return call(w.residual_kernel, t, point, w.block, context, out)
    status, dy = _either(s.rate_kernel, s.dense_rate, t, point, context, out), shift(point, w.size)
    for k in range(w.moving):
        out[k] = dy[k] - out[k]
    for k in range(w.moving, w.size):
        out[k] = 0.0
    return status


@njit(cache=True, error_model="numpy")
def _complete(w, context, t, y):
    """Multipliers and accelerations that belong to q, v and s."""
    s, status = w.s, OK
    if s.accelerations:
        status = _either(s.rate_kernel, s.dense_rate, t, y, context, w.delta)
        for i in range(w.n):
            y[w.state + s.rows + i] = w.delta[w.n + i]
    if s.rows > 0 and status == OK:
        status = _either(s.multipliers_kernel, s.dense_multipliers, t, y, context, w.delta)
        for i in range(s.rows):
            y[w.state + i] = w.delta[i]
    return status


@njit(cache=True, error_model="numpy")
def _matrices(w, context, t, h):
    """Factor the Newton matrices at the point in ``y``; returns a status."""
    s = w.s
    eigenvalues = table_of(w, s.stages).eigenvalues
    s.njev += 1
    s.nlu += (s.stages + 1) // 2
    s.spent += s.of_factors + (s.stages - 1) // 2 * s.of_complex_factors
    if w.moving < w.size:
        status = _complete(w, context, t, w.y)
        if status != OK:
            return status
    status, s.kind = newton.evaluate_matrix(w, context, t, eigenvalues[0] / h)
    for number in range((s.stages - 1) // 2):
        if status == OK:
            a, b = eigenvalues[1 + 2 * number] / h, -eigenvalues[2 + 2 * number] / h
            status = evaluate_complex(w, context, t, number, a, b)
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
        _stage(w, table, middle, h, w.y)
        status = _matrices(w, context, t + table.nodes[middle] * h, h)
    if status == SINGULAR:
        for k in range(w.size):
            w.y[k] = w.now[k]
            w.y[w.size + k] = s.rate[k]
        status = _matrices(w, context, t, h)
    if status == OK:
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
        _stage(w, table, i, h, w.trial)
        status = _evaluate(w, context, t + table.nodes[i] * h, w.trial, w.delta)
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
def _solve_blocks(w, context, table, h):
    """Replace T⁻¹ F by M⁻¹ T⁻¹ F."""
    s, size = w.s, w.size
    for k in range(size):
        w.delta[k] = w.f[k]
    newton.solve(w, context, s.kind, table.eigenvalues[0] / h)
    for k in range(size):
        w.f[k] = w.scratch[k]
    s.spent += s.of_solution
    for number in range((s.stages - 1) // 2):
        a, b = table.eigenvalues[1 + 2 * number] / h, table.eigenvalues[2 + 2 * number] / h
        solve_complex(w, context, number, math.sqrt(a * a + b * b), shift(w.f, (1 + 2 * number) * size))
        s.spent += s.of_complex_solution


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
        _solve_blocks(w, context, table, h)
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
def _find_stages(w, context, t, h):
    """Solve for Z, with new matrices if there are none for this step or the old ones fail; returns (status,
    converged).
    """
    s = w.s
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


@njit(cache=True, error_model="numpy")
def _filtered(w, context, t, h, cj):
    """The error estimate from the residual at ``trial``, in ``e``; a status."""
    s = w.s
    status = _evaluate(w, context, t, w.trial, w.delta)
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
    for k in range(w.moving):
        w.trial[k], dy[k] = w.now[k], 0.0
    for j in range(stages):
        factor, z = table.error[j] / h, shift(w.z, j * size)
        for k in range(w.moving):
            dy[k] -= factor * z[k]
    status = _filtered(w, context, t, h, cj)
    if status == OK and (s.first or s.rejected) and not _norm_of_error(w) < 1.0:
        for k in range(w.moving):
            w.trial[k] = w.now[k] + w.e[k]
        if _filtered(w, context, t, h, cj) != OK:
            for k in range(w.moving):
                w.e[k] = w.trial[k] - w.now[k]
    return status


@njit(cache=True, error_model="numpy")
def begin(w, context):
    """Start from the Y and Y′ that Python has filled in."""
    s, run = w.s, w.run
    largest = 0.0
    for i in range(w.state):
        s.atol[i] = run.atol[i]
        largest = max(largest, run.atol[i])
    for i in range(w.state, w.size):
        s.atol[i] = largest
    for k in range(w.size):
        w.now[k] = w.y[k]
        s.rate[k] = w.y[w.size + k]
    s.stages = s.fewest
    s.stages_polynomial = s.fewest
    s.first = 1
    s.largest = math.inf
    _set_tolerances(w)
    _set_weights(w, 0.0)
    run.h = run.direction * _first_step(w)
    return OK


@njit(cache=True, error_model="numpy")
def _first_step(w):
    """A hundredth of the time in which the solution would change as much as it is large, at its present rate;
    not so little that it would move by less than half the tolerance.
    """
    run = w.run
    if run.constant > 0.0:
        return run.constant
    if run.first_step > 0.0:
        return run.first_step
    h = 0.001 * abs(loop.target(run) - run.t)
    size = newton.norm(w.now, w.error_weights, w.error_count, w.size)
    speed = newton.norm(w.s.rate, w.error_weights, w.error_count, w.size)
    allowed = max(0.5, 0.01 * size)
    if speed * h > allowed:
        h = allowed / speed
    return min(h, run.h_max)


@njit(cache=True, error_model="numpy")
def attempt(w, context, t, h):
    """Stages, error estimate and projection."""
    s = w.s
    _set_weights(w, h)
    status, converged = _find_stages(w, context, t, h)
    error = math.inf
    if converged:
        last = shift(w.z, (s.stages - 1) * w.size)
        for k in range(w.moving):
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
def _wanted(w, h, error):
    """The size of the next step: by the error, and by how it has changed (Gustafsson)."""
    s = w.s
    most, order = s.max_iterations, s.stages + 1.0
    safety = min(_SAFETY, _SAFETY * (2.0 * most + 1.0) / (2.0 * most + s.iterations))
    error = max(error, 1e-10)
    factor = max(_SHRINK, min(_GROW, safety * error ** (-1.0 / order)))
    if not s.first and s.error_old > 0.0 and error <= 1.0 and s.stages == s.stages_polynomial:
        predictive = _SAFETY * abs(h / s.h_old) * (s.error_old / (error * error)) ** (1.0 / order)
        factor = min(factor, max(_SHRINK, predictive))
    return h * factor


@njit(cache=True, error_model="numpy")
def accept(w, steps, row, t, h, t_new):
    """Keep the polynomial, move on, and choose order and size of the next step."""
    run, s = w.run, w.s
    planned, h_new = run.h, _wanted(w, h, run.error)
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
        _choose(w, h, run.direction * run.h_max if abs(h_new) > run.h_max else h_new)


@njit(cache=True, error_model="numpy")
def _choose(w, h, h_new):
    """Order and size of the next step; both are kept where the matrices serve again."""
    run, s = w.run, w.s
    ratio = h_new / h
    if s.contraction > 0.0:
        ratio = min(ratio, max(0.5, (_LARGEST_RATE / s.contraction) ** (1.0 / 3.0)))
    ratio = min(ratio, max(1.0, s.largest / abs(h)))
    s.largest *= _REGAIN
    converges = s.contraction <= _KEEP_RATE
    if not converges:
        s.have_matrix = 0
    elif s.h_of_matrix == h and 1.0 <= ratio <= _KEEP_SIZE:
        ratio = 1.0
    run.h = h * ratio
    s.wait -= 1
    if s.contraction >= _SLOW:
        _lower(w)
    elif s.contraction <= _FAST and s.wait <= 0 and s.stages < s.most and 0.8 <= ratio <= 1.25:
        s.stages += 2
        _set_tolerances(w)


@njit(cache=True, error_model="numpy")
def _lower(w):
    """Go on with a lower order, for some steps at least."""
    s = w.s
    if s.stages > s.fewest:
        s.stages -= 2
        s.wait = _PATIENCE
        _set_tolerances(w)


@njit(cache=True, error_model="numpy")
def _move_on(w, t, h):
    """The end of the step becomes the beginning of the next."""
    run, s, size = w.run, w.s, w.size
    stages = s.stages
    table = table_of(w, stages)
    _stage(w, table, stages - 1, h, w.trial)
    for k in range(w.moving):
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
        run.h = 0.1 * h if s.first else _wanted(w, h, run.error)
    else:
        s.newton_failures += 1
        s.repeated += 1
        s.have_matrix = 0
        s.largest = _CAUTION * abs(h)
        run.h = h * (s.smaller if cause == loop.NEWTON and s.repeated <= 3 else 0.25)
        _lower(w)
    s.rejected = 1
    run.t_failed = t + h
    too_small = abs(run.h) <= 1e-15 * max(abs(t), abs(t + h)) or s.repeated > 30
    return not (run.constant > 0.0 or too_small)


@njit(cache=True, error_model="numpy")
def resume(w, context):
    """Behind a switch accelerations and multipliers are others; the size of the step stays."""
    s, run = w.s, w.run
    if _either(s.rate_kernel, s.dense_rate, run.t, w.now, context, w.trial) == OK:
        for i in range(w.state):
            s.rate[i] = w.trial[i]
    _complete(w, context, run.t, w.now)
    for i in range(run.size):
        run.y[i] = w.now[i]
    s.first = 1
    s.have_matrix = 0
    return OK


watch = watch_ends
advance = loop.advance_with(globals())


@njit(cache=True, error_model="numpy")
def _polynomial(w, t, out):
    s, size, count = w.s, w.size, w.run.size
    basis, stages = s.basis, s.stages_polynomial
    _lagrange(table_of(w, stages), stages, (t - s.t_polynomial) / s.h_polynomial, basis)
    for i in range(count):
        out[i] = w.run.y_old[i]
    for j in range(stages):
        factor, z = basis[1 + j], shift(w.z_before, j * size)
        for i in range(count):
            out[i] += factor * z[i]


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


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(memory_array, context_array, rows, steps, wanted, out):
    """The solution at many times from the stored polynomials; ``steps`` are the numbers of the rows in whose
    steps the times lie.  Returns the number done.
    """
    memory, context = pointer(memory_array), pointer(context_array)
    w = parts(memory)
    run, s, current, at = w.run, w.s, -1, loop.STEP_COLUMNS
    value, count = run.y_event, run.size
    for number in range(wanted.size):
        row = steps[number]
        if row != current:
            s.t_polynomial, s.h_polynomial = rows[row, 0], rows[row, 1]
            s.stages_polynomial = (int(rows[row, 5]) + 1) // 2
            for i in range(count):
                run.y_old[i] = rows[row, at + i]
                for j in range(s.stages_polynomial):
                    w.z_before[j * w.size + i] = rows[row, at + (1 + j) * count + i]
            current = row
        if _solution_inside(w, context, wanted[number], value) != OK:
            return number
        for i in range(count):
            out[number, i] = value[i]
    return wanted.size

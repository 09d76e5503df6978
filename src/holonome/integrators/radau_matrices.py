"""The Newton matrices of Radau methods, a real one and one for each pair of complex eigenvalues:
factorizations and solutions, by the kernels of a formulation or, where these meet a small pivot, by dense
elimination of real matrices of twice the size.

``w`` is the memory of the method taken apart (:mod:`holonome.integrators.radau_state`), ``w.s`` its record.
"""

import math

from numba import njit

from holonome.algebra import dense
from holonome.integrators import newton
from holonome.integrators.newton import DENSE, FACTORED
from holonome.integrators.radau_state import table_of
from holonome.machine.calls import call, call_either, shift
from holonome.machine.context import OK, SINGULAR


@njit(cache=True, error_model="numpy")
def _evaluate_complex(w, context, t, number, a, b):
    """Factor the matrix for cj = a + ib at (Y, Y′), with this number among them; a status."""
    s = w.s
    w.scratch[0], w.scratch[1] = a, b
    for i in range(w.multipliers):
        w.scratch[2 + i] = w.row_shift[i]
    if s.complex_factors_kernel != 0:
        factors = shift(s.complex_factors, number * s.complex_room)
        status = call(s.complex_factors_kernel, t, w.y, w.scratch, context, factors)
        total = 0.0
        for i in range(s.complex_count):
            total += factors[i]
        if status == OK and total - total == 0.0:
            s.kinds[number] = FACTORED
            return OK
        if status > SINGULAR or s.complex_matrix == 0:
            return max(status, SINGULAR)
    return _evaluate_dense(w, context, t, number)


@njit(cache=True, error_model="numpy")
def _evaluate_dense(w, context, t, number):
    s, size = w.s, 2 * w.size
    matrix, total = shift(s.complex_dense, number * size * size), 0.0
    for i in range(size * size):
        matrix[i] = 0.0
    status = call(s.complex_matrix, t, w.y, w.scratch, context, matrix)
    if status != OK:
        return status
    for i in range(size * size):
        total += matrix[i]
    if total - total != 0.0:
        return SINGULAR
    s.kinds[number] = DENSE
    regular = dense.factor(matrix, shift(s.complex_pivots, number * size), s.complex_scale, size)
    return OK if regular else SINGULAR


@njit(cache=True, error_model="numpy")
def _solve_complex(w, context, number, scale, x):
    """Replace the right-hand side x, real parts first, by the solution; ``scale`` is |cj|."""
    s, size, right = w.s, w.size, w.s.complex_right
    if s.kinds[number] == FACTORED:
        factors = shift(s.complex_factors, number * s.complex_room)
        call(s.complex_solution, 0.0, x, factors, context, right)
    else:
        for i in range(2 * size):
            right[i] = x[i] * scale ** w.row_powers[i % size]
        matrix = shift(s.complex_dense, number * 4 * size * size)
        dense.solve(matrix, shift(s.complex_pivots, number * 2 * size), right, 2 * size)
        for i in range(2 * size):
            right[i] *= scale ** w.column_powers[i % size]
    for i in range(2 * size):
        x[i] = right[i]


@njit(cache=True, error_model="numpy")
def complete(w, context, t, y):
    """Multipliers and accelerations that belong to q, v and s."""
    s, status = w.s, OK
    if s.accelerations:
        status = call_either(s.rate_kernel, s.dense_rate, t, y, y, context, w.delta)
        for i in range(w.n):
            y[w.state + s.rows + i] = w.delta[w.n + i]
    if s.rows > 0 and status == OK:
        status = call_either(s.multipliers_kernel, s.dense_multipliers, t, y, y, context, w.delta)
        for i in range(s.rows):
            y[w.state + i] = w.delta[i]
    return status


@njit(cache=True, error_model="numpy")
def _multipliers_of(w, context, t):
    """What the point in ``y`` needs beside the unknowns that are iterated; returns a status."""
    s = w.s
    if s.prediction == 0:
        return complete(w, context, t, w.y)
    status = call(s.prediction, t, w.y, w.block, context, w.delta)
    for i in range(w.state, w.size):
        w.y[i] = w.delta[i - w.state]
    return status


@njit(cache=True, error_model="numpy")
def factor_matrices(w, context, t, h):
    """Factor the Newton matrices at the point in ``y``; returns a status."""
    s = w.s
    eigenvalues = table_of(w, s.stages).eigenvalues
    s.njev += 1
    s.nlu += (s.stages + 1) // 2
    s.spent += s.of_factors + (s.stages - 1) // 2 * s.of_complex_factors
    if w.moving < w.size:
        status = _multipliers_of(w, context, t)
        if status != OK:
            return status
    status, s.kind = newton.evaluate_matrix(w, context, t, eigenvalues[0] / h)
    for number in range((s.stages - 1) // 2):
        if status == OK:
            a, b = eigenvalues[1 + 2 * number] / h, -eigenvalues[2 + 2 * number] / h
            status = _evaluate_complex(w, context, t, number, a, b)
    return status


@njit(cache=True, error_model="numpy")
def solve_blocks(w, context, table, h):
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
        _solve_complex(w, context, number, math.sqrt(a * a + b * b), shift(w.f, (1 + 2 * number) * size))
        s.spent += s.of_complex_solution

"""The underlying ODE of a large system: what :mod:`holonome.dynamics.kernels` emits as code for a small one,
here by a sparse factorization of

    K = ( M  Cᵀ )
        ( C  −e )

in compiled loops.  Only the nonzeros of K and D and the vectors f, γ, g, w are emitted, by the kernel `sparse
pieces`, so that the code grows with the nonzeros alone. e is zero, or very large for rows that are left out:
those that depend on others, and for the position level those of velocity constraints.

Kernels as there; `projection` as in :mod:`holonome.formulations.coordinate_projection`, in the metric of M.
"""

from __future__ import annotations

import math

import casadi as ca
import numpy as np
from numba import njit

from holonome.algebra import sparse
from holonome.machine.calls import NativeKernel, call, integers, shift
from holonome.machine.context import COORDINATES, LEFT_OUT, OK, POSITION_ROWS, ROWS, SPARE, SPARSE
from holonome.problem.system import System

_D_PATTERN = sparse.KERNEL + 1
"""Where the memory of the factorization holds the address of the pattern of D: begins of its columns, then
rows.
"""

DERIVATIVE, LANDING, MULTIPLIERS, PROJECTION = range(4)


class SparseSaddle:
    """Plan and memory of the factorization for one system; ``memory`` is copied into each context."""

    def __init__(self, system: System) -> None:
        model = system.model
        n, m = model.n, model.rows
        K = ca.vertcat(ca.horzcat(model.M, model.C.T), ca.horzcat(model.C, ca.SX(ca.Sparsity.diag(m), 0)))
        self.plan = sparse.Plan(K.sparsity().colind(), K.sparsity().row(), [0] * n + [1] * m)
        D = model.D.sparsity()
        self._pattern = np.array([*D.colind(), *D.row()], np.int32)
        out = ca.vertcat(
            K.nz[:], model.D.nz[:], *[ca.densify(x) for x in (model.f, model.gamma, model.g, model.w)]
        )
        self.kernel = system.kernel("sparse pieces", lambda model: (model.y, ca.SX(0, 1), out, None))
        head = self.plan.memory(self.kernel.address)
        head[_D_PATTERN] = self._pattern.ctypes.data
        self.memory = np.concatenate(
            [head, np.zeros(D.nnz() + n + 2 * m + model.position_rows + 2 * (n + m) + 1)]
        )

    @property
    def instructions(self) -> tuple[int, int]:
        """Operations of a derivative and of a landing."""
        factored = self.kernel.instructions + 2 * self.plan.multiplications
        return factored + 4 * self.plan.fill, factored + 20 * self.plan.fill


@njit(cache=True)
def _leave_out(F, marks, n, m, rows):
    """Set e for the rows that are marked, and for those beyond ``rows``; the diagonal is the last entry of
    its column.
    """
    for i in range(m):
        F.values[F.begins[n + i + 1] - 1] = -SPARE if marks[i] != 0.0 or i >= rows else 0.0


@njit(cache=True)
def _by_C(F, x, n, rows, out):
    """Subtract C x."""
    for j in range(n):
        for p in range(F.begins[j], F.begins[j + 1]):
            i = F.rows[p] - n
            if 0 <= i < rows:
                out[i] -= F.values[p] * x[j]


@njit(cache=True)
def _by_D(pattern, D, x, n, out):
    """Subtract D x."""
    rows = shift(pattern, n + 1)
    for j in range(n):
        for p in range(pattern[j], pattern[j + 1]):
            out[rows[p]] -= D[p] * x[j]


@njit(cache=True)
def _onto(memory, right, x, n, m, out):
    """X + the smallest correction that meets the right-hand side of the rows."""
    for i in range(n):
        right[i] = 0.0
    solution = shift(right, n + m)
    sparse.solve(memory, right, solution)
    for i in range(n):
        out[i] = x[i] + solution[i]


@njit(cache=True)
def _largest_missed(F, marks, n, rows, left):
    """How far rows that are left out miss their linearised equations, relative to their lengths; ``left`` is
    what remains of these.
    """
    largest = 0.0
    for i in range(rows):
        if marks[i] != 0.0:
            square = 0.0
            for p in range(F.begins[n + i], F.begins[n + i + 1] - 1):
                square += F.values[p] * F.values[p]
            largest = max(largest, abs(left[i]) / max(math.sqrt(square), 1e-300))
    return largest


@njit(cache=True)
def _saddle(t, y, z, context, out, what):
    n, mg, m = int(context[COORDINATES]), int(context[POSITION_ROWS]), int(context[ROWS])
    memory, marks = shift(context, int(context[SPARSE])), shift(context, int(context[LEFT_OUT]))
    F = sparse.factors_in(memory)
    status = call(int(memory[sparse.KERNEL]), t, y, z, context, F.values)
    if status != OK:
        return status
    pattern = integers(int(memory[_D_PATTERN]))
    D = shift(F.values, F.entries)
    f = shift(D, pattern[n])
    gamma = shift(f, n)
    g = shift(gamma, m)
    w = shift(g, mg)
    right = shift(w, m)
    solution, rows, v = shift(right, n + m), shift(right, n), shift(y, n)
    lands = what in (LANDING, PROJECTION)
    error, moved = out, shift(out, 2 * n)
    if what == LANDING:
        error, moved = shift(out, 2 * n), shift(out, 4 * n)
    missed_q, missed_v, redundant = 0.0, 0.0, False
    c = z[2 * n] if what == LANDING else 0.0
    if lands:
        _leave_out(F, marks, n, m, mg)
        status = sparse.factor(memory)
        if status != OK:
            return status
        for i in range(n):
            moved[i], error[i] = 0.0, z[i] + c * v[i]
        for i in range(m):
            rows[i] = -g[i] if i < mg else 0.0
            redundant = redundant or marks[i] != 0.0
        _onto(memory, right, moved, n, m, moved)
        if redundant:
            _by_C(F, moved, n, mg, rows)
            missed_q = _largest_missed(F, marks, n, mg, rows)
        for i in range(m):
            rows[i] = 0.0
        _by_C(F, error, n, mg, rows)
        _onto(memory, right, error, n, m, error)
    if mg < m or not lands:
        _leave_out(F, marks, n, m, m)
        status = sparse.factor(memory)
        if status != OK:
            return status
    if what != PROJECTION:
        for i in range(n):
            right[i] = f[i]
        for i in range(m):
            rows[i] = -gamma[i]
        sparse.solve(memory, right, solution)
        if what == MULTIPLIERS:
            for i in range(m):
                out[i] = solution[n + i]
            return OK
        for i in range(n):
            out[i], out[n + i] = v[i], solution[i]
        if what == DERIVATIVE:
            return OK
    error_v, moved_v = shift(error, n), shift(moved, n)
    for i in range(n):
        moved_v[i], error_v[i] = 0.0, z[n + i] + (c * out[n + i] if what == LANDING else 0.0)
    for i in range(m):
        rows[i] = -w[i]
    _by_D(pattern, D, moved, n, rows)
    _onto(memory, right, moved_v, n, m, moved_v)
    if redundant:
        _by_C(F, moved_v, n, m, rows)
        missed_v = _largest_missed(F, marks, n, m, rows)
    for i in range(m):
        rows[i] = 0.0
    _by_D(pattern, D, error, n, rows)
    _by_C(F, error_v, n, m, rows)
    _onto(memory, right, error_v, n, m, error_v)
    if what == LANDING:
        out[6 * n], out[6 * n + 1] = missed_q, missed_v
    return OK


@NativeKernel
def sparse_derivative(t, y, z, context, out):
    return _saddle(t, y, z, context, out, DERIVATIVE)


@NativeKernel
def sparse_landing(t, y, z, context, out):
    return _saddle(t, y, z, context, out, LANDING)


@NativeKernel
def sparse_multipliers(t, y, z, context, out):
    return _saddle(t, y, z, context, out, MULTIPLIERS)


@NativeKernel
def sparse_projection(t, y, z, context, out):
    return _saddle(t, y, z, context, out, PROJECTION)


@NativeKernel
def scattered_pieces(t, y, z, context, out):
    """`pieces` from the sparse ones."""
    n, mg, m = int(context[COORDINATES]), int(context[POSITION_ROWS]), int(context[ROWS])
    memory = shift(context, int(context[SPARSE]))
    F = sparse.factors_in(memory)
    status = call(int(memory[sparse.KERNEL]), t, y, z, context, F.values)
    if status != OK:
        return status
    pattern = integers(int(memory[_D_PATTERN]))
    D, rows, D_out = shift(F.values, F.entries), shift(pattern, n + 1), shift(out, n * n + m * n)
    for j in range(n):
        for p in range(F.begins[j], F.begins[j + 1]):
            out[F.rows[p] * n + j] = F.values[p]  # C follows M
        for p in range(pattern[j], pattern[j + 1]):
            D_out[rows[p] * n + j] = D[p]
    vectors, target = shift(D, pattern[n]), shift(D_out, m * n)
    for i in range(n + 2 * m + mg):
        target[i] = vectors[i]
    return OK

"""The underlying ODE of a large system.  What :mod:`holonome.dynamics.emitted` emits as code for a small one
is done here by a sparse factorization of

    K = ( M  Cᵀ )
        ( C  −e )

in compiled loops.  Only the nonzeros of K and D and the vectors f, γ, g, w are emitted, as the kernel `sparse
pieces`, so that the code grows with the nonzeros alone.  e is zero, or very large for rows that are left out:
those that depend on others, and on the position level those of velocity constraints.

The kernels have the same inputs and outputs as there.
"""

from __future__ import annotations

import math
from collections import namedtuple

import casadi as ca
import numpy as np
from numba import njit

from holonome.algebra import sparse
from holonome.dynamics.parts import correction_in, error_in, missed_in, regularity_in
from holonome.machine.calls import NativeKernel, call, integers, shift
from holonome.machine.context import LEFT_OUT_SHIFT, OK, named_context
from holonome.problem.system import System

DERIVATIVE, PROJECTION, MULTIPLIERS, ONTO, REGULARITY = range(5)


class SparseSaddle:
    """Plan and memory of the factorization of one system; ``memory`` is copied into each context."""

    def __init__(self, system: System) -> None:
        model = system.lean
        n, m = model.n, model.rows
        K = ca.vertcat(ca.horzcat(model.M, model.C.T), ca.horzcat(model.C, ca.SX(ca.Sparsity.diag(m), 0)))
        self.plan = sparse.Plan(K.sparsity().colind(), K.sparsity().row(), [0] * n + [1] * m)
        D = model.D.sparsity()
        self._pattern = np.array([*D.colind(), *D.row()], np.int32)
        vectors = [ca.densify(x) for x in (model.f, model.gamma, model.g, model.w, model.r)]
        out = ca.vertcat(K.nz[:], model.D.nz[:], *vectors)
        self.kernel = system.kernel("sparse pieces", lambda model: (model.y, ca.SX(0, 1), out, None))
        extra = D.nnz() + sum(vector.numel() for vector in vectors)
        pattern = self._pattern.ctypes.data
        self.memory = self.plan.memory(self.kernel.address, pattern, extra, 2 * (n + m) + m + 1)

    @property
    def instructions(self) -> tuple[int, int]:
        """Operations of a derivative and of a projection."""
        factored = self.kernel.instructions + 2 * self.plan.multiplications
        return factored + 4 * self.plan.fill, factored + 20 * self.plan.fill


@njit(cache=True)
def _leave_out(F, marks, n, m, rows):
    """Set e for marked rows and for those beyond ``rows``; the diagonal is the last entry of its column."""
    for i in range(m):
        F.values[F.begins[n + i + 1] - 1] = -LEFT_OUT_SHIFT if marks[i] != 0.0 or i >= rows else 0.0


@njit(cache=True)
def _by_C(F, x, n, rows, out):
    """Subtract C x from ``out``."""
    for j in range(n):
        for p in range(F.begins[j], F.begins[j + 1]):
            i = F.rows[p] - n
            if 0 <= i < rows:
                out[i] -= F.values[p] * x[j]


@njit(cache=True)
def _by_D(pattern, D, x, n, out):
    """Subtract D x from ``out``."""
    rows = shift(pattern, n + 1)
    for j in range(n):
        for p in range(pattern[j], pattern[j + 1]):
            out[rows[p]] -= D[p] * x[j]


@njit(cache=True)
def _onto(memory, right, x, n, m, out):
    """Write x plus the smallest d with C d = the right-hand side of the rows, in the metric of M."""
    for i in range(n):
        right[i] = 0.0
    solution = shift(right, n + m)
    sparse.solve(memory, right, solution)
    for i in range(n):
        out[i] = x[i] + solution[i]


@njit(cache=True)
def _length(F, n, i):
    """Length of a row of C."""
    square = 0.0
    for p in range(F.begins[n + i], F.begins[n + i + 1] - 1):
        square += F.values[p] * F.values[p]
    return math.sqrt(square)


@njit(cache=True)
def _largest_missed(F, marks, n, rows, left):
    """The largest residual of the linearised equations of rows that are left out, relative to their lengths;
    ``left`` holds the residuals.
    """
    largest = 0.0
    for i in range(rows):
        if marks[i] != 0.0:
            largest = max(largest, abs(left[i]) / max(_length(F, n, i), 1e-300))
    return largest


Equations = namedtuple(
    "Equations",
    "n m mg states memory F pattern marks D f gamma g w r right rows solution direction",
)
"""What the kernel `sparse pieces` wrote, and memory for right-hand sides and solutions."""


@njit(cache=True)
def _equations(context):
    c = named_context(context)
    n, m, mg, memory = c.coordinates, c.rows, c.position_rows, c.sparse
    F, own = sparse.factors_in(memory), sparse.named_factors(memory)
    pattern = integers(own.pattern)
    D = shift(F.values, F.entries)
    f = shift(D, pattern[n])
    gamma = shift(f, n)
    g = shift(gamma, m)
    w = shift(g, mg)
    r = shift(w, m)
    right = own.right
    return Equations(
        n,
        m,
        mg,
        c.states,
        memory,
        F,
        pattern,
        c.left_out,
        D,
        f,
        gamma,
        g,
        w,
        r,
        right,
        shift(right, n),
        shift(right, n + m),
        shift(right, 2 * (n + m)),
    )


@njit(cache=True)
def _position_level(e, moved, error):
    """δq, and the tangential part of the position error; returns the largest residual of rows that are left
    out, and whether there are such rows.
    """
    n, m, mg = e.n, e.m, e.mg
    missed, redundant = 0.0, False
    for i in range(n):
        moved[i] = 0.0
    for i in range(m):
        e.rows[i] = -e.g[i] if i < mg else 0.0
        redundant = redundant or e.marks[i] != 0.0
    _onto(e.memory, e.right, moved, n, m, moved)
    if redundant:
        _by_C(e.F, moved, n, mg, e.rows)
        missed = _largest_missed(e.F, e.marks, n, mg, e.rows)
    for i in range(m):
        e.rows[i] = 0.0
    _by_C(e.F, error, n, mg, e.rows)
    _onto(e.memory, e.right, error, n, m, error)
    return missed, redundant


@njit(cache=True)
def _velocity_level(e, moved, error, redundant):
    """The same for the velocities; returns the largest residual."""
    n, m, missed = e.n, e.m, 0.0
    moved_v, error_v = shift(moved, n), shift(error, n)
    for i in range(n):
        moved_v[i] = 0.0
    for i in range(m):
        e.rows[i] = -e.w[i]
    _by_D(e.pattern, e.D, moved, n, e.rows)
    _onto(e.memory, e.right, moved_v, n, m, moved_v)
    if redundant:
        _by_C(e.F, moved_v, n, m, e.rows)
        missed = _largest_missed(e.F, e.marks, n, m, e.rows)
    for i in range(m):
        e.rows[i] = 0.0
    _by_D(e.pattern, e.D, error, n, e.rows)
    _by_C(e.F, error_v, n, m, e.rows)
    _onto(e.memory, e.right, error_v, n, m, error_v)
    return missed


@njit(cache=True)
def _accelerate(e):
    """Accelerations and multipliers, in ``e.solution``."""
    for i in range(e.n):
        e.right[i] = e.f[i]
    for i in range(e.m):
        e.rows[i] = -e.gamma[i]
    sparse.solve(e.memory, e.right, e.solution)


@njit(cache=True)
def _regularity(e):
    """What vanishes where the rank of C falls: the least eigenvalue of C M⁻¹Cᵀ with rows of length one, by a
    step of inverse iteration in the direction that the last call left.
    """
    n, growth, known = e.n, 0.0, False
    for i in range(e.m):
        known = known or e.direction[i] != 0.0
    for i in range(n):
        e.right[i] = 0.0
    for i in range(e.m):
        length = _length(e.F, n, i)
        direction = e.direction[i] if known else math.cos(float(i))
        e.rows[i] = 0.0 if e.marks[i] != 0.0 else length * direction
    sparse.solve(e.memory, e.right, e.solution)
    for i in range(e.m):
        e.direction[i] = 0.0 if e.marks[i] != 0.0 else _length(e.F, n, i) * e.solution[n + i]
        growth += e.direction[i] * e.direction[i]
    growth = math.sqrt(growth)
    for i in range(e.m):
        e.direction[i] /= max(growth, 1e-300)
    return 1.0 / max(growth, 1e-300)


@njit(cache=True)
def _saddle(t, y, z, context, out, what):
    e = _equations(context)
    n, m, size = e.n, e.m, 2 * e.n + e.states
    status = call(sparse.named_factors(e.memory).kernel, t, y, z, context, e.F.values)
    if status != OK:
        return status
    projects = what in (PROJECTION, ONTO)
    if what == PROJECTION:
        error, moved, c = error_in(out, size), correction_in(out, size), z[size]
    else:
        error, moved, c = out, shift(out, size), 0.0
    missed_q, redundant = 0.0, False
    if projects:
        _leave_out(e.F, e.marks, n, m, e.mg)
        status = sparse.factor(e.memory)
        if status != OK:
            return status
        for i in range(n):
            error[i] = z[i] + c * y[n + i]
        missed_q, redundant = _position_level(e, moved, error)
    if e.mg < m or not projects:
        _leave_out(e.F, e.marks, n, m, m)
        status = sparse.factor(e.memory)
        if status != OK:
            return status
    if what == REGULARITY:
        out[0] = _regularity(e)
        return OK
    if what != ONTO:
        _accelerate(e)
        if what == MULTIPLIERS:
            for i in range(m):
                out[i] = e.solution[n + i]
            return OK
        for i in range(n):
            out[i] = y[n + i]
            out[n + i] = e.solution[i]
        for i in range(e.states):
            out[2 * n + i] = e.r[i]
        if what == DERIVATIVE:
            return OK
    for i in range(n, size):
        error[i] = z[i] + (c * out[i] if what == PROJECTION else 0.0)
    for i in range(2 * n, size):
        moved[i] = 0.0
    missed_v = _velocity_level(e, moved, error, redundant)
    if what == PROJECTION:
        missed = missed_in(out, size)
        missed[0] = missed_q
        missed[1] = missed_v
        regularity_in(out, size)[0] = _regularity(e)
    return OK


sparse_derivative, sparse_projection, sparse_multipliers, sparse_onto, sparse_regularity = (
    NativeKernel.variants(_saddle, 5)
)
"""`derivative`, `projection` and `multipliers`; the projection of :mod:`holonome.dynamics.projection`, in the
metric of M; and what vanishes where the rank of the constraints falls.
"""


@NativeKernel
def scattered_pieces(t, y, z, context, out):
    """The kernel `pieces`, with the matrices dense, from `sparse pieces`."""
    e = _equations(context)
    n, m, F, pattern = e.n, e.m, e.F, e.pattern
    status = call(sparse.named_factors(e.memory).kernel, t, y, z, context, F.values)
    if status != OK:
        return status
    rows, D_out = shift(pattern, n + 1), shift(out, n * n + m * n)
    for j in range(n):
        for p in range(F.begins[j], F.begins[j + 1]):
            out[F.rows[p] * n + j] = F.values[p]  # C follows M
        for p in range(pattern[j], pattern[j + 1]):
            D_out[rows[p] * n + j] = e.D[p]
    target = shift(D_out, m * n)
    for i in range(n + 2 * m + e.mg + e.states):
        target[i] = e.f[i]
    return OK

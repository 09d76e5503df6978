"""Kernels for any rank of the constraints and any mass matrix that is regular on the motions they allow.

They do what the emitted kernels do (:mod:`holonome.dynamics.emitted`), from the pieces of the equations, by a
rank-revealing factorization (:mod:`holonome.algebra.saddle_point`): where a pivot tells that elimination without
pivoting is no longer safe, and from the start where a coordinate has no mass.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from holonome.algebra import saddle_point as sp
from holonome.dynamics.parts import correction_in, error_in, missed_in, regularity_in
from holonome.machine.calls import NativeKernel, as_matrix, as_vector, call, shift
from holonome.machine.context import OK, SINGULAR, named_context
from holonome.machine.layout import Layout, Vector


class DenseWork(Layout):
    """Work space: the pieces, a factorization for all rows and one for those of g, a few vectors."""

    pieces: Vector
    A: Vector
    tau: Vector
    scale: Vector
    order: Vector
    B: Vector
    pivots: Vector
    A_position: Vector
    tau_position: Vector
    scale_position: Vector
    order_position: Vector
    B_position: Vector
    pivots_position: Vector
    r: Vector
    zero: Vector
    b: Vector


_named = DenseWork.named()


def work_memory(n: int, m: int, mg: int, states: int) -> np.ndarray:
    """Work space for a system of this size."""
    factors: dict[str, Any] = {"A": m * n, "tau": m, "scale": m, "order": m, "B": n * n, "pivots": n}
    factors |= {f"{name}_position": size for name, size in factors.items()}
    return DenseWork.memory(pieces=piece_sizes(n, m, mg, states)[-1], r=n, zero=n, b=m, **factors)


def piece_sizes(n, m, mg, states):
    """Where M, C, D, f, γ, g, w and r begin in what the kernel `pieces` writes, and where they end."""
    C = n * n
    D = C + m * n
    f = D + m * n
    gamma = f + n
    g = gamma + m
    w = g + mg
    r = w + m
    return 0, C, D, f, gamma, g, w, r, r + states


_numba_sizes = njit(cache=True)(piece_sizes)


class Pieces(NamedTuple):
    """The equations in numbers."""

    M: Any
    C: Any
    D: Any
    f: Any
    gamma: Any
    g: Any
    w: Any
    r: Any


class Factors(NamedTuple):
    """QR of the rows of C, and LU of the mass matrix on their null space."""

    A: Any
    tau: Any
    scale: Any
    order: Any
    B: Any
    pivots: Any


@njit(cache=True)
def _pieces(c, work):
    n, m, mg, k, memory = c.coordinates, c.rows, c.position_rows, c.states, work.pieces
    M, C, D, f, gamma, g, w, r, _ = _numba_sizes(n, m, mg, k)
    return Pieces(
        as_matrix(shift(memory, M), n, n),
        as_matrix(shift(memory, C), m, n),
        as_matrix(shift(memory, D), m, n),
        as_vector(shift(memory, f), n),
        as_vector(shift(memory, gamma), m),
        as_vector(shift(memory, g), mg),
        as_vector(shift(memory, w), m),
        as_vector(shift(memory, r), k),
    )


@njit(cache=True)
def _whole_numbers(vector, size):
    return as_vector(vector, size).view(np.int64)


@njit(cache=True)
def _factors(c, work):
    n, m = c.coordinates, c.rows
    return Factors(
        as_matrix(work.A, m, n),
        as_vector(work.tau, m),
        as_vector(work.scale, m),
        _whole_numbers(work.order, m),
        as_matrix(work.B, n, n),
        as_vector(work.pivots, n),
    )


@njit(cache=True)
def _position_factors(c, work):
    n, m = c.coordinates, c.rows
    return Factors(
        as_matrix(work.A_position, m, n),
        as_vector(work.tau_position, m),
        as_vector(work.scale_position, m),
        _whole_numbers(work.order_position, m),
        as_matrix(work.B_position, n, n),
        as_vector(work.pivots_position, n),
    )


@njit(cache=True)
def _factor(c, p, F, rows):
    """Factor the first rows; (rank, whether the mass matrix is regular on what they allow)."""
    n = c.coordinates
    rank = sp.factor_rows(p.C, F.A, F.tau, F.scale, F.order, c.left_out, n, rows)
    return rank, sp.factor_mass(p.M, F.A, F.tau, rank, F.B, F.pivots, n)


@njit(cache=True)
def _solve(p, F, rank, a, b, x, lam, r, rows, wants_lam):
    """M x + Cᵀ λ = a, C x = b for the first rows."""
    sp.solve(p.M, F.A, F.tau, F.scale, F.order, rank, F.B, F.pivots, a, b, x, lam, r, x.size, rows, wants_lam)


@njit(cache=True)
def _begin(t, y, z, context, c, work):
    """Evaluate the pieces; a status."""
    if not c.has_work:
        return SINGULAR
    status = call(c.pieces, t, y, z, context, work.pieces)
    if status != OK:
        return status
    c.dense_calls += 1
    total = 0.0
    for i in range(_numba_sizes(c.coordinates, c.rows, c.position_rows, c.states)[-1]):
        total += work.pieces[i]
    return SINGULAR if total - total != 0.0 else OK


@njit(cache=True)
def _rate(p, F, rank, c, work, y, out):
    """(v, a, r)."""
    n, m = c.coordinates, c.rows
    b, r = as_vector(work.b, m), as_vector(work.r, n)
    for i in range(m):
        b[i] = -p.gamma[i]
    a = as_vector(shift(out, n), n)
    _solve(p, F, rank, p.f, b, a, b, r, m, False)
    for i in range(n):
        out[i] = y[n + i]
    for i in range(c.states):
        out[2 * n + i] = p.r[i]


@njit(cache=True)
def _onto(p, F, rank, work, target, x, rows):
    """The smallest x, in the metric of M, with C x = target for the first rows."""
    n = x.size
    zero, r = as_vector(work.zero, n), as_vector(work.r, n)
    for i in range(n):
        zero[i] = 0.0
    _solve(p, F, rank, zero, target, x, target, r, rows, False)


@njit(cache=True)
def _correction(p, F, rank, P, position_rank, c, work, out):
    """δ, and ρ by which dependent rows miss their linearised equations."""
    n, m, mg = c.coordinates, c.rows, c.position_rows
    size = 2 * n + c.states
    b, d = as_vector(work.b, m), correction_in(out, size)
    dq, dv = as_vector(d, n), as_vector(shift(d, n), n)
    for i in range(2 * n, size):
        d[i] = 0.0
    for i in range(mg):
        b[i] = -p.g[i]
    _onto(p, P, position_rank, work, b, dq, mg)
    for i in range(m):
        s = p.w[i]
        for j in range(n):
            s += p.D[i, j] * dq[j]
        b[i] = -s
    _onto(p, F, rank, work, b, dv, m)
    missed_g, missed_w = 0.0, 0.0
    for i in range(m):
        s, s_w = 0.0, -b[i]
        for j in range(n):
            s += p.C[i, j] * dq[j]
            s_w += p.C[i, j] * dv[j]
        if i < mg:
            missed_g = max(missed_g, abs(p.g[i] + s) / max(P.scale[i], 1e-300))
        missed_w = max(missed_w, abs(s_w) / max(F.scale[i], 1e-300))
    missed = missed_in(out, size)
    missed[0] = missed_g
    missed[1] = missed_w


@njit(cache=True)
def _tangential(p, F, rank, P, position_rank, c, work, z, out):
    """What the projection leaves of the error vector."""
    n, m, mg = c.coordinates, c.rows, c.position_rows
    size = 2 * n + c.states
    b, e = as_vector(work.b, m), error_in(out, size)
    for i in range(size):
        e[i] = z[i] + z[size] * out[i]
    e_q, e_v, x = as_vector(e, n), as_vector(shift(e, n), n), p.f
    for i in range(mg):
        s = 0.0
        for j in range(n):
            s += p.C[i, j] * e_q[j]
        b[i] = -s
    _onto(p, P, position_rank, work, b, x, mg)
    for i in range(n):
        e_q[i] += x[i]
    for i in range(m):
        s = 0.0
        for j in range(n):
            s += p.C[i, j] * e_v[j] + p.D[i, j] * e_q[j]
        b[i] = -s
    _onto(p, F, rank, work, b, x, m)
    for i in range(n):
        e_v[i] += x[i]


@njit(cache=True)
def _regularity(F, rank, c, out):
    """σ."""
    m = c.rows
    values = regularity_in(out, 2 * c.coordinates + c.states)
    values[0] = 0.0 if rank < m else F.A[m - 1, m - 1] ** 2 if m > 0 else 1.0
    for i in range(m):
        values[1 + i] = F.scale[i] ** 2


DERIVATIVE, PROJECTION, MULTIPLIERS = range(3)


@njit(cache=True)
def _dense(t, y, z, context, out, what):
    c = named_context(context)
    work = _named(c.work)
    status = _begin(t, y, z, context, c, work)
    if status != OK:
        return status
    p, F = _pieces(c, work), _factors(c, work)
    rank, regular = _factor(c, p, F, c.rows)
    c.rank = min(c.rank, rank)
    if not regular:
        return SINGULAR
    if what == MULTIPLIERS:
        n, m, b = c.coordinates, c.rows, as_vector(work.b, c.rows)
        for i in range(m):
            b[i] = -p.gamma[i]
        x, r = as_vector(work.zero, n), as_vector(work.r, n)
        _solve(p, F, rank, p.f, b, x, as_vector(out, m), r, m, True)
        return OK
    _rate(p, F, rank, c, work, y, out)
    if what == DERIVATIVE:
        return OK
    P, position_rank = F, rank
    if c.position_rows < c.rows:  # rows of velocity constraints do not belong to the position level
        P = _position_factors(c, work)
        position_rank, regular = _factor(c, p, P, c.position_rows)
        if not regular:
            return SINGULAR
    _correction(p, F, rank, P, position_rank, c, work, out)
    _regularity(F, rank, c, out)
    _tangential(p, F, rank, P, position_rank, c, work, z, out)
    return OK


@NativeKernel
def dense_derivative(t, y, z, context, out):
    """`derivative` for any rank."""
    return _dense(t, y, z, context, out, DERIVATIVE)


@NativeKernel
def dense_projection(t, y, z, context, out):
    """`projection` for any rank."""
    return _dense(t, y, z, context, out, PROJECTION)


@NativeKernel
def dense_multipliers(t, y, z, context, out):
    """`multipliers` of least norm for any rank."""
    return _dense(t, y, z, context, out, MULTIPLIERS)

"""Kernels for any rank of the constraints and any mass matrix that is regular on the motions they allow.

They compute what the emitted kernels compute (:mod:`holonome.dynamics.emitted`), from the pieces of the
equations, by a rank-revealing factorization (:mod:`holonome.algebra.saddle_point`).  They are the dense
fallback where a small pivot shows that elimination without pivoting is no longer safe, and are used
throughout where a coordinate has no mass.
"""

from collections import namedtuple
from typing import Any

import numpy as np
from numba import njit

from holonome.algebra import saddle_point as sp
from holonome.dynamics.parts import correction_in, error_in, missed_in, regularity_in
from holonome.machine.calls import NativeKernel, as_matrix, as_vector, call, shift
from holonome.machine.context import OK, SINGULAR, named_context
from holonome.machine.layout import Layout, Vector


class DenseWork(Layout):
    """Work space: the pieces, one factorization for all rows and one for those of g, and a few vectors."""

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


compiled_sizes = njit(cache=True)(piece_sizes)


Pieces = namedtuple("Pieces", "M C D f gamma g w r")
"""The equations in numbers."""


@njit(cache=True)
def _pieces(c, work):
    n, m, mg, k, memory = c.coordinates, c.rows, c.position_rows, c.states, work.pieces
    M, C, D, f, gamma, g, w, r, _ = compiled_sizes(n, m, mg, k)
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
def _factors(c, A, tau, scale, order, B, pivots):
    """These vectors of the work space as a factorization."""
    n, m = c.coordinates, c.rows
    return sp.Factors(
        as_matrix(A, m, n),
        as_vector(tau, m),
        as_vector(scale, m),
        as_vector(order, m).view(np.int64),
        as_matrix(B, n, n),
        as_vector(pivots, n),
    )


@njit(cache=True)
def _factor(c, p, F, rows):
    """Factor the first rows; returns (rank, whether the mass matrix is regular on their null space)."""
    rank = sp.factor_rows(p.C, F, c.left_out, rows)
    return rank, sp.factor_mass(p.M, F, rank)


@njit(cache=True)
def _begin(t, y, z, context, c, work):
    """Evaluate the pieces; returns a status."""
    if not c.has_work:
        return SINGULAR
    status = call(c.pieces, t, y, z, context, work.pieces)
    if status != OK:
        return status
    c.dense_calls += 1
    total = 0.0
    for i in range(compiled_sizes(c.coordinates, c.rows, c.position_rows, c.states)[-1]):
        total += work.pieces[i]
    return SINGULAR if total - total != 0.0 else OK


@njit(cache=True)
def _accelerate(p, F, rank, work, a):
    """Find the accelerations, M a + Cᵀ λ = f, C a = −γ."""
    m = p.gamma.size
    b, r = as_vector(work.b, m), as_vector(work.r, a.size)
    for i in range(m):
        b[i] = -p.gamma[i]
    sp.solve(F, rank, p.f, b, a, r)


@njit(cache=True)
def _rate(p, F, rank, c, work, y, out):
    """Write (v, a, r)."""
    n = c.coordinates
    _accelerate(p, F, rank, work, as_vector(shift(out, n), n))
    for i in range(n):
        out[i] = y[n + i]
    for i in range(c.states):
        out[2 * n + i] = p.r[i]


@njit(cache=True)
def _onto(F, rank, work, target, x):
    """Find the smallest x, in the metric of M, with C x = target for the factored rows."""
    n = x.size
    zero, r = as_vector(work.zero, n), as_vector(work.r, n)
    for i in range(n):
        zero[i] = 0.0
    sp.solve(F, rank, zero, target, x, r)


@njit(cache=True)
def _correction(p, F, rank, P, position_rank, c, work, out):
    """Write δ and ρ, the residuals of the linearised equations of dependent rows."""
    n, m, mg = c.coordinates, c.rows, c.position_rows
    size = 2 * n + c.states
    b, d = as_vector(work.b, m), correction_in(out, size)
    dq, dv = as_vector(d, n), as_vector(shift(d, n), n)
    for i in range(2 * n, size):
        d[i] = 0.0
    for i in range(mg):
        b[i] = -p.g[i]
    _onto(P, position_rank, work, b, dq)
    for i in range(m):
        s = p.w[i]
        for j in range(n):
            s += p.D[i, j] * dq[j]
        b[i] = -s
    _onto(F, rank, work, b, dv)
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
    """Write the part of the error vector that is tangential to the manifold."""
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
    _onto(P, position_rank, work, b, x)
    for i in range(n):
        e_q[i] += x[i]
    for i in range(m):
        s = 0.0
        for j in range(n):
            s += p.C[i, j] * e_v[j] + p.D[i, j] * e_q[j]
        b[i] = -s
    _onto(F, rank, work, b, x)
    for i in range(n):
        e_v[i] += x[i]


@njit(cache=True)
def _regularity(F, rank, c, out):
    """Write σ."""
    c.usual_rank = max(c.usual_rank, rank)
    last = c.usual_rank - 1
    values = regularity_in(out, 2 * c.coordinates + c.states)
    values[0] = 0.0 if rank <= last else F.A[last, last] ** 2 if last >= 0 else 1.0
    for i in range(c.rows):
        values[1 + i] = F.scale[i] ** 2


DERIVATIVE, PROJECTION, MULTIPLIERS = range(3)


@njit(cache=True)
def _dense(t, y, z, context, out, what):
    c = named_context(context)
    work = _named(c.work)
    status = _begin(t, y, z, context, c, work)
    if status != OK:
        return status
    p = _pieces(c, work)
    F = _factors(c, work.A, work.tau, work.scale, work.order, work.B, work.pivots)
    rank, regular = _factor(c, p, F, c.rows)
    c.rank = min(c.rank, rank)
    if not regular:
        return SINGULAR
    if what == MULTIPLIERS:
        a, r = as_vector(work.zero, c.coordinates), as_vector(work.r, c.coordinates)
        _accelerate(p, F, rank, work, a)
        sp.multipliers(p.M, F, rank, p.f, a, as_vector(out, c.rows), r)
        return OK
    _rate(p, F, rank, c, work, y, out)
    if what == DERIVATIVE:
        return OK
    P, position_rank = F, rank
    if c.position_rows < c.rows:  # rows of velocity constraints do not belong to the position level
        P = _factors(
            c,
            work.A_position,
            work.tau_position,
            work.scale_position,
            work.order_position,
            work.B_position,
            work.pivots_position,
        )
        position_rank, regular = _factor(c, p, P, c.position_rows)
        if not regular:
            return SINGULAR
    _correction(p, F, rank, P, position_rank, c, work, out)
    _regularity(F, rank, c, out)
    _tangential(p, F, rank, P, position_rank, c, work, z, out)
    return OK


dense_derivative, dense_projection, dense_multipliers = NativeKernel.variants(_dense, 3)
"""`derivative` and `projection` for any rank, and `multipliers` of least norm."""

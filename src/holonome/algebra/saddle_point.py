"""The saddle-point problem

    M x + Cᵀ λ = a,     C x = b

for any rank of C and a mass matrix that need only be regular on the null space of C: Householder QR with
column pivoting of Cᵀ, rows equilibrated first. With Cᵀ Π = (Y Z) (R; 0): x = Y x₁ + Z x₂, x₁ from the
independent rows, (ZᵀMZ) x₂ = Zᵀ(a − M Y x₁), and λ with the least norm among those that do the same work.

Loops, not LAPACK: it takes about the same time up to 60 unknowns, and beyond that its threads may wait for
each other.  Both factorizations with half as many rows as unknowns, in µs (``benchmarks/dense.py``; LAPACK on
one thread: on several, on a busy machine, 400 unknowns took 3 s):

    unknowns      20       40       60      100      200      400
    loops          6       34       95      460     3700    68000
    LAPACK        12       33       76      180     1000    11000
"""

import math

import numpy as np
from numba import njit

RANK_TOLERANCE = 1e-9
"""A row whose distance from the others is below this fraction of its length counts as dependent on them."""

MASS_TOLERANCE = 1e-13
"""A pivot of the reduced mass matrix below this fraction of its largest entry counts as zero."""


@njit(cache=True)
def factor_rows(C, A, tau, scale, order, left_out, n, m):
    """QR with column pivoting of Cᵀ: A (m × n) holds the rows of C, one Householder vector in each; returns
    the rank.

    A[k, k:] keeps the reflector of step k, R[k, j] = A[j, k] for later rows j; ``order`` the original number
    of each row, ``scale`` its length. Rows that are marked in ``left_out`` count as zero.
    """
    for i in range(m):
        length = 0.0
        for j in range(n):
            length += C[i, j] * C[i, j]
        scale[i] = math.sqrt(length)
        order[i] = i
        inverse = 1.0 / scale[i] if scale[i] > 0.0 and left_out[i] == 0.0 else 0.0
        for j in range(n):
            A[i, j] = C[i, j] * inverse
    rank = 0
    for k in range(min(m, n)):
        best, largest = k, -1.0
        for i in range(k, m):
            rest = 0.0
            for j in range(k, n):
                rest += A[i, j] * A[i, j]
            if rest > largest:
                best, largest = i, rest
        if not math.sqrt(largest) > RANK_TOLERANCE:
            break
        if best != k:
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
            order[k], order[best] = order[best], order[k]
        norm = math.sqrt(largest)
        alpha = -norm if A[k, k] > 0.0 else norm
        head = A[k, k] - alpha
        tau[k] = -head / alpha
        for j in range(k + 1, n):
            A[k, j] /= head
        A[k, k] = alpha
        for i in range(k + 1, m):
            s = A[i, k]
            for j in range(k + 1, n):
                s += A[k, j] * A[i, j]
            s *= tau[k]
            A[i, k] -= s
            for j in range(k + 1, n):
                A[i, j] -= s * A[k, j]
        rank += 1
    return rank


@njit(cache=True)
def _reflect(A, tau, k, x, n):
    s = x[k]
    for j in range(k + 1, n):
        s += A[k, j] * x[j]
    s *= tau[k]
    x[k] -= s
    for j in range(k + 1, n):
        x[j] -= s * A[k, j]


@njit(cache=True)
def to_split(A, tau, rank, x, n):
    """X ← Qᵀ x."""
    for k in range(rank):
        _reflect(A, tau, k, x, n)


@njit(cache=True)
def from_split(A, tau, rank, x, n):
    """X ← Q x."""
    for k in range(rank - 1, -1, -1):
        _reflect(A, tau, k, x, n)


@njit(cache=True)
def _rows_to_split(A, tau, rank, B, w, n):
    """B ← Qᵀ B, row after row, so that the inner loops are vectors; ``w`` is work space of size n."""
    for k in range(rank):
        for j in range(n):
            w[j] = B[k, j]
        for i in range(k + 1, n):
            for j in range(n):
                w[j] += A[k, i] * B[i, j]
        for j in range(n):
            w[j] *= tau[k]
            B[k, j] -= w[j]
        for i in range(k + 1, n):
            for j in range(n):
                B[i, j] -= w[j] * A[k, i]


@njit(cache=True)
def factor_mass(M, A, tau, rank, B, pivots, n):
    """B ← Qᵀ M Q, and its lower right block LU-factored with row pivoting; False if that is singular."""
    for i in range(n):
        for j in range(n):
            B[i, j] = M[j, i]
    _rows_to_split(A, tau, rank, B, pivots, n)
    for i in range(n):
        for j in range(i):
            B[i, j], B[j, i] = B[j, i], B[i, j]
    _rows_to_split(A, tau, rank, B, pivots, n)
    largest = 0.0
    for i in range(n):
        for j in range(n):
            largest = max(largest, abs(M[i, j]))
    for k in range(rank, n):
        best = k
        for i in range(k + 1, n):
            if abs(B[i, k]) > abs(B[best, k]):
                best = i
        pivots[k] = best
        if not abs(B[best, k]) > MASS_TOLERANCE * largest:
            return False
        if best != k:
            for j in range(rank, n):
                B[k, j], B[best, j] = B[best, j], B[k, j]
        for i in range(k + 1, n):
            B[i, k] /= B[k, k]
            for j in range(k + 1, n):
                B[i, j] -= B[i, k] * B[k, j]
    return True


@njit(cache=True)
def solve_rows(A, scale, order, rank, b, x1):
    """x₁ with Rᵀ x₁ = b on the independent rows."""
    for k in range(rank):
        row = order[k]
        s = b[row] / scale[row]
        for j in range(k):
            s -= A[k, j] * x1[j]
        x1[k] = s / A[k, k]


@njit(cache=True)
def solve(M, A, tau, scale, order, rank, B, pivots, a, b, x, lam, r, n, m, want_lam):
    """X and, if wanted, λ; ``r`` is work space of size n.  ``a`` is left alone."""
    solve_rows(A, scale, order, rank, b, x)
    for i in range(n):
        r[i] = a[i]
    to_split(A, tau, rank, r, n)
    for k in range(
        rank, n
    ):  # the factored block alone had its rows interchanged: B[k, :rank] still belongs to row k
        s = r[k]
        for j in range(rank):
            s -= B[k, j] * x[j]
        x[k] = s
    for k in range(rank, n):
        best = int(pivots[k])
        if best != k:
            x[k], x[best] = x[best], x[k]
    for k in range(rank, n):
        for i in range(k + 1, n):
            x[i] -= B[i, k] * x[k]
    for k in range(n - 1, rank - 1, -1):
        s = x[k]
        for j in range(k + 1, n):
            s -= B[k, j] * x[j]
        x[k] = s / B[k, k]
    from_split(A, tau, rank, x, n)
    if want_lam:
        for i in range(n):
            s = a[i]
            for j in range(n):
                s -= M[i, j] * x[j]
            r[i] = s
        to_split(A, tau, rank, r, n)
        least_norm(A, scale, order, rank, r, lam, m)


@njit(cache=True)
def least_norm(A, scale, order, rank, r, lam, m):
    """λ of least norm with (Cᵀ λ)₁ = r₁, i.e. Σ_j R[k, j] scale_j λ_j = r_k for k < rank."""
    if rank == m:
        for k in range(rank - 1, -1, -1):
            s = r[k]
            for j in range(k + 1, rank):
                s -= A[j, k] * lam[order[j]] * scale[order[j]]
            lam[order[k]] = s / (A[k, k] * scale[order[k]])
        return
    # W Wᵀ u = r with W[k, j] = R[k, j] scale_j (rank × m), λ = Wᵀ u.  Cholesky in place; the matrix is small
    # and this is not the fast path.
    S = np.empty((rank, rank))
    u = np.empty(rank)
    for i in range(rank):
        for k in range(i + 1):
            s = 0.0
            for j in range(i, m):
                s += A[j, i] * A[j, k] * scale[order[j]] ** 2
            S[i, k] = s
    for i in range(rank):
        for k in range(i + 1):
            s = S[i, k]
            for j in range(k):
                s -= S[i, j] * S[k, j]
            S[i, k] = math.sqrt(s) if i == k else s / S[k, k]
    for i in range(rank):
        s = r[i]
        for j in range(i):
            s -= S[i, j] * u[j]
        u[i] = s / S[i, i]
    for i in range(rank - 1, -1, -1):
        s = u[i]
        for j in range(i + 1, rank):
            s -= S[j, i] * u[j]
        u[i] = s / S[i, i]
    for j in range(m):
        s = 0.0
        for k in range(min(j + 1, rank)):
            s += A[j, k] * u[k]
        lam[order[j]] = s * scale[order[j]]

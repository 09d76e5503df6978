"""The saddle-point problem

    M x + Cᵀ λ = a,     C x = b

for any rank of C and a mass matrix that need only be regular on the null space of C: Householder QR with
column pivoting of Cᵀ, whose columns are equilibrated first.  With Cᵀ Π = (Y Z) (R; 0): x = Y x₁ + Z x₂, where
x₁ follows from the independent rows, (ZᵀMZ) x₂ = Zᵀ(a − M Y x₁), and λ is the solution of least norm.

Compiled loops rather than LAPACK, which takes about the same time up to 60 unknowns and whose threads, beyond
that, may wait for each other.  Time of both factorizations with half as many rows as unknowns, in µs
(``benchmarks/dense.py``; LAPACK on one thread: on several, on a busy machine, 400 unknowns took 3 s):

    unknowns      20       40       60      100      200      400
    loops          6       34       95      460     3700    68000
    LAPACK        12       33       76      180     1000    11000
"""

import math
from collections import namedtuple

import numpy as np
from numba import njit

RANK_TOLERANCE = 1e-9
"""A row whose distance from the others is below this fraction of its length counts as dependent on them."""

MASS_TOLERANCE = 1e-13
"""A pivot of the reduced mass matrix below this fraction of its largest entry counts as zero."""


Factors = namedtuple("Factors", "A tau scale order B pivots")
"""QR of the rows of C, and LU of the mass matrix on their null space.

A[k, k:] holds the Householder vector of step k, whose factor is tau[k], and A[j, k] = R[k, j] for later
rows j; ``order`` is the original number of each row, ``scale`` its length.  B = Qᵀ M Q, its lower right
block replaced by the LU factors, with the row interchanges in ``pivots``.
"""


@njit(cache=True)
def _equilibrate(C, F, left_out, m):
    """A ← the rows of C, each divided by its length."""
    n = C.shape[1]
    for i in range(m):
        length = 0.0
        for j in range(n):
            length += C[i, j] * C[i, j]
        F.scale[i] = math.sqrt(length)
        F.order[i] = i
        inverse = 1.0 / F.scale[i] if F.scale[i] > 0.0 and left_out[i] == 0.0 else 0.0
        for j in range(n):
            F.A[i, j] = C[i, j] * inverse


@njit(cache=True)
def _longest(A, k, n, m):
    """The row from k on with the largest part in the columns from k on, and the square of its length."""
    best, largest = k, -1.0
    for i in range(k, m):
        rest = 0.0
        for j in range(k, n):
            rest += A[i, j] * A[i, j]
        if rest > largest:
            best, largest = i, rest
    return best, largest


@njit(cache=True)
def factor_rows(C, F, left_out, m):
    """QR with column pivoting of the first m columns of Cᵀ; returns the rank.

    Rows that are marked in ``left_out`` count as zero.
    """
    n, A, tau = C.shape[1], F.A, F.tau
    _equilibrate(C, F, left_out, m)
    rank = 0
    for k in range(min(m, n)):
        best, largest = _longest(A, k, n, m)
        norm = math.sqrt(largest)
        if not norm > RANK_TOLERANCE:
            break
        if best != k:
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
            F.order[k], F.order[best] = F.order[best], F.order[k]
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
def _reflect(F, k, x):
    n = x.size
    s = x[k]
    for j in range(k + 1, n):
        s += F.A[k, j] * x[j]
    s *= F.tau[k]
    x[k] -= s
    for j in range(k + 1, n):
        x[j] -= s * F.A[k, j]


@njit(cache=True)
def to_split(F, rank, x):
    """Replace x by Qᵀ x."""
    for k in range(rank):
        _reflect(F, k, x)


@njit(cache=True)
def from_split(F, rank, x):
    """Replace x by Q x."""
    for k in range(rank - 1, -1, -1):
        _reflect(F, k, x)


@njit(cache=True)
def _rows_to_split(F, rank, w):
    """B ← Qᵀ B, row after row, so that the inner loops are vectors; ``w`` is work space of size n."""
    n, A, tau, B = w.size, F.A, F.tau, F.B
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
def _factor_block(B, pivots, rank, smallest):
    """LU with row pivoting of B[rank:, rank:]; False if a pivot is not above ``smallest``."""
    n = pivots.size
    for k in range(rank, n):
        best = k
        for i in range(k + 1, n):
            if abs(B[i, k]) > abs(B[best, k]):
                best = i
        pivots[k] = best
        if not abs(B[best, k]) > smallest:
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
def factor_mass(M, F, rank):
    """B ← Qᵀ M Q with its lower right block factored; False if that block is singular."""
    n, B = M.shape[0], F.B
    largest = 0.0
    for i in range(n):
        for j in range(n):
            B[i, j] = M[j, i]
            largest = max(largest, abs(M[i, j]))
    _rows_to_split(F, rank, F.pivots)
    for i in range(n):
        for j in range(i):
            B[i, j], B[j, i] = B[j, i], B[i, j]
    _rows_to_split(F, rank, F.pivots)
    return _factor_block(B, F.pivots, rank, MASS_TOLERANCE * largest)


@njit(cache=True)
def _solve_rows(F, rank, b, x1):
    """Find x₁ with Rᵀ x₁ = b on the independent rows."""
    for k in range(rank):
        row = F.order[k]
        s = b[row] / F.scale[row]
        for j in range(k):
            s -= F.A[k, j] * x1[j]
        x1[k] = s / F.A[k, k]


@njit(cache=True)
def solve(F, rank, a, b, x, r):
    """Find x; ``r`` is work space of the same size."""
    n, B = x.size, F.B
    _solve_rows(F, rank, b, x)
    for i in range(n):
        r[i] = a[i]
    to_split(F, rank, r)
    # Only the factored block had its rows interchanged: B[k, :rank] still belongs to row k.
    for k in range(rank, n):
        s = r[k]
        for j in range(rank):
            s -= B[k, j] * x[j]
        x[k] = s
    for k in range(rank, n):
        best = int(F.pivots[k])
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
    from_split(F, rank, x)


@njit(cache=True)
def multipliers(M, F, rank, a, x, lam, r):
    """Find λ of least norm with Cᵀ λ = a − M x, for the x of `solve`; ``r`` is work space of its size."""
    n = x.size
    for i in range(n):
        s = a[i]
        for j in range(n):
            s -= M[i, j] * x[j]
        r[i] = s
    to_split(F, rank, r)
    if rank == lam.size:
        _solve_columns(F, rank, r, lam)
    else:
        _least_norm(F, rank, r, lam)


@njit(cache=True)
def _solve_columns(F, rank, r, lam):
    """Find λ with Σ_j R[k, j] scale_j λ_j = r_k, where all rows are independent."""
    A, scale, order = F.A, F.scale, F.order
    for k in range(rank - 1, -1, -1):
        s = r[k]
        for j in range(k + 1, rank):
            s -= A[j, k] * lam[order[j]] * scale[order[j]]
        lam[order[k]] = s / (A[k, k] * scale[order[k]])


@njit(cache=True)
def _least_norm(F, rank, r, lam):
    """Find λ of least norm with Σ_j R[k, j] scale_j λ_j = r_k for k < rank.

    λ = Wᵀ u with W Wᵀ u = r and W[k, j] = R[k, j] scale_j (rank × m), by Cholesky's factorization; the matrix
    is small, and this is not the fast path.
    """
    A, scale, order, m = F.A, F.scale, F.order, lam.size
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

"""Dense eliminations against NumPy: LU, and the two factorizations of the saddle-point problem."""

import numpy as np
import pytest
from numba import njit

from holonome.algebra import dense
from holonome.algebra import saddle_point as sp
from holonome.machine.calls import pointer


@njit
def factor(A, pivots, scale):
    return dense.factor(pointer(A), pointer(pivots), pointer(scale), len(A))


@njit
def solve(A, pivots, x):
    dense.solve(pointer(A), pointer(pivots), pointer(x), len(A))


@pytest.mark.parametrize("n", [0, 1, 2, 7, 30, 60])
def test_lu_of_rows_of_any_scale(n):
    random = np.random.default_rng(n)
    A = random.normal(size=(n, n)) * 10.0 ** random.uniform(-9, 9, size=(n, 1))
    x, factors, pivots = random.normal(size=n), A.copy(), np.zeros(n)
    found = A @ x
    assert factor(factors, pivots, np.zeros(n))
    solve(factors, pivots, found)
    np.testing.assert_allclose(found, x, rtol=1e-9, atol=1e-11)
    L, U, order = np.tril(factors, -1) + np.eye(n), np.triu(factors), np.arange(n)
    for k, other in enumerate(pivots.astype(int)):
        order[[k, other]] = order[[other, k]]
    size = np.max(np.abs(A), axis=1, initial=0.0)[order, None]
    np.testing.assert_allclose(L @ U / size, A[order] / size, atol=1e-12)


def test_lu_notices_singular_matrices():
    random = np.random.default_rng(0)
    A = random.normal(size=(8, 8))
    for singular in (np.outer(A[0], A[1]), np.zeros((8, 8)), A * (np.arange(8) != 3)):
        assert not factor(singular.copy(), np.zeros(8), np.zeros(8))


@pytest.mark.parametrize(("n", "m", "rank"), [(1, 0, 0), (6, 3, 3), (60, 80, 30), (150, 60, 60)])
def test_the_transformed_mass(n, m, rank):
    """B = Qᵀ M Q with the reflectors of Cᵀ, for a matrix M without symmetry."""
    random = np.random.default_rng(n)
    M, C = random.normal(size=(n, n)), random.normal(size=(m, rank)) @ random.normal(size=(rank, n))
    rows, B = np.zeros((m, n)), np.zeros((n, n))
    F = sp.Factors(rows, np.zeros(m), np.zeros(m), np.zeros(m, np.int64), B, np.zeros(n))
    assert sp.factor_rows(C, F, np.zeros(m), m) == rank
    assert sp.factor_mass(M, F, rank)
    Q, B, pivots = np.eye(n), F.B, F.pivots
    for row in Q:
        sp.to_split(F, rank, row)
    np.testing.assert_allclose(Q.T @ Q, np.eye(n), atol=1e-12)
    expected = Q.T @ M @ Q
    np.testing.assert_allclose(B[:rank], expected[:rank], atol=1e-10)
    np.testing.assert_allclose(B[:, :rank], expected[:, :rank], atol=1e-10)
    L, U = np.tril(B[rank:, rank:], -1) + np.eye(n - rank), np.triu(B[rank:, rank:])
    order = np.arange(n - rank)
    for k, other in enumerate(pivots[rank:].astype(int) - rank):
        order[[k, other]] = order[[other, k]]
    np.testing.assert_allclose(L @ U, expected[rank:, rank:][order], atol=1e-10)

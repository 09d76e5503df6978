"""The dense kernel against NumPy's factorizations, for full and deficient rank; and against the kernel
without pivoting on real mechanisms.
"""

import numpy as np
import pytest

import holonome as hn
from holonome.algebra import saddle_point as sp
from holonome.dynamics.kernels import dense_derivative, dense_multipliers, dense_projection, kernels
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK


def solve(M, C, a, b):
    n, m = M.shape[0], C.shape[0]
    rows, B = np.zeros((m, n)), np.zeros((n, n))
    F = sp.Factors(rows, np.zeros(m), np.zeros(m), np.zeros(m, np.int64), B, np.zeros(n))
    rank = sp.factor_rows(C, F, np.zeros(m), m)
    if not sp.factor_mass(M, F, rank):
        return rank, None, None
    x, lam, r = np.zeros(n), np.zeros(m), np.zeros(n)
    sp.solve(F, rank, a, b, x, r)
    sp.multipliers(M, F, rank, a, x, lam, r)
    return rank, x, lam


def random_problem(n, m, rank, seed, mass_rank=None):
    random = np.random.default_rng(seed)
    L = random.normal(size=(n, mass_rank or n))
    C = random.normal(size=(m, rank)) @ random.normal(size=(rank, n))
    return L @ L.T, C, random.normal(size=n), C @ random.normal(size=n)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("n", "m", "rank"),
    [(1, 0, 0), (3, 1, 1), (5, 5, 5), (7, 6, 6), (6, 4, 2), (4, 6, 3), (5, 3, 1), (8, 10, 8)],
)
def test_against_numpy(n, m, rank, seed):
    M, C, a, b = random_problem(n, m, rank, seed)
    found_rank, x, lam = solve(M, C, a, b)
    assert found_rank == rank
    matrix = np.block([[M, C.T], [C, np.zeros((m, m))]])
    expected = np.linalg.lstsq(matrix, np.concatenate([a, b]), rcond=1e-11)[0]
    scale = max(1.0, np.max(np.abs(expected)))
    np.testing.assert_allclose(x, expected[:n], atol=1e-8 * scale)
    np.testing.assert_allclose(C.T @ lam, a - M @ x, atol=1e-8 * scale)
    np.testing.assert_allclose(lam, np.linalg.pinv(C.T, rcond=1e-10) @ (a - M @ x), atol=1e-7 * scale)


def test_singular_mass_that_is_regular_on_the_tangent_space():
    M, C, a, b = random_problem(5, 3, 3, 0, mass_rank=2)
    assert np.linalg.matrix_rank(M) == 2
    _, x, lam = solve(M, C, a, b)
    np.testing.assert_allclose(M @ x + C.T @ lam, a, atol=1e-9)
    np.testing.assert_allclose(C @ x, b, atol=1e-9)


def test_mass_that_is_singular_on_the_tangent_space_is_told():
    M, C, a, b = random_problem(6, 2, 2, 0, mass_rank=2)
    assert solve(M, C, a, b)[1] is None


def test_rows_of_very_different_length_keep_their_rank():
    C = np.array([[1e-9, 0, 0], [0, 1e7, 0], [0, 1e7, 1e-1]])
    rank, x, _ = solve(np.eye(3), C, np.zeros(3), C @ np.array([1.0, 2.0, 3.0]))
    assert rank == 3
    np.testing.assert_allclose(x, [1, 2, 3], rtol=1e-7)


@pytest.mark.parametrize("name", ["pendulum", "slider_crank_unequal", "andrews", "four_bar", "chain"])
def test_dense_and_emitted_kernels_agree(name):
    mechanism = hn.mechanisms.get(name)
    system, compiled = mechanism.system, kernels(mechanism.system)
    random, n, m = np.random.default_rng(1), system.n, system.m
    y = np.concatenate([mechanism.q0 + 1e-3 * random.normal(size=n), random.normal(size=n)])
    z, context = random.normal(size=2 * n + 1), compiled.context(system)
    for emitted, dense, size in (
        (compiled.derivative, dense_derivative, 2 * n),
        (compiled.projection, dense_projection, 6 * n + 2),
        (compiled.multipliers, dense_multipliers, m),
    ):
        first, second = np.full(compiled.projection_size, np.nan), np.full(compiled.projection_size, np.nan)
        assert run_kernel(emitted, 0.0, y, z, context, first) == OK
        assert run_kernel(dense.address, 0.0, y, z, context, second) == OK
        np.testing.assert_allclose(
            first[:size], second[:size], rtol=1e-8, atol=1e-9 * np.max(np.abs(first[:size]))
        )

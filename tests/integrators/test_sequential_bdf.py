"""SRM on BDF, for linear problems of index 2 of many shapes and sizes, against the null space of G and the
matrix exponential: x′ = A x + b − Gᵀy, G x = 0.
"""

import numpy as np
import pytest
from scipy.linalg import expm, null_space

import holonome as hn


def linear_problem(n, m):
    rng = np.random.default_rng(n + m)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    A, b = -Q @ np.diag(np.linspace(1, 2, n)) @ Q.T, rng.normal(size=n)
    G, _ = np.linalg.qr(rng.normal(size=(n, m)))
    Z = null_space(G.T)
    reduced = Z.T @ A @ Z
    exact = Z @ np.linalg.solve(reduced, (expm(0.5 * reduced) - np.eye(n - m)) @ (Z.T @ b))
    return hn.Index2System(lambda x: A @ x + b, G, lambda x: G.T @ x, n=n), exact


@pytest.mark.parametrize(
    ("n", "m"), [(8, 7), (12, 6), (16, 3), (30, 2), (24, 15), (45, 20), (60, 2), (70, 30)]
)
def test_any_number_of_unknowns(n, m):
    """Beyond 60 unknowns the matrices are sparse."""
    problem, exact = linear_problem(n, m)
    method = hn.Method(hn.SRM(eps=1e-5, E="identity"), hn.BDF())
    sol = hn.solve(problem, (0, 0.5), np.zeros(n), method=method, rtol=1e-6, atol=1e-8)
    assert sol.success, sol.message
    assert sol.steps < 150
    np.testing.assert_allclose(sol.x[:, -1], exact, atol=2e-5)

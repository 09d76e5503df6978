"""The emitted sums of Runge–Kutta steps against NumPy, the coefficients against their order conditions."""

import numpy as np
import pytest

from holonome.integrators.tableau import TABLEAUS, addresses
from holonome.machine.calls import run_kernel
from holonome.machine.layout import padded


@pytest.mark.parametrize("h", [0.37, -2.5])
@pytest.mark.parametrize("size", [1, 2, 4, 7, 12, 30])
@pytest.mark.parametrize("name", TABLEAUS)
def test_emitted_sums(name, size, h):
    rng, tableau, stride = np.random.default_rng(size), TABLEAUS[name], padded(size)
    k, y = rng.normal(size=(tableau.stages, stride)), rng.normal(size=stride)
    for address, (coefficients, with_y) in zip(addresses(TABLEAUS[name], size), tableau.sums(), strict=True):
        out = np.full(stride + 1, 7.0)
        run_kernel(address, h, y, k.ravel(), y, out)
        expected = h * coefficients @ k[: coefficients.size] + (y if with_y else 0.0)
        np.testing.assert_allclose(
            out[:stride], expected, rtol=1e-13, atol=1e-13 * np.max(np.abs(coefficients)) * abs(h)
        )
        assert out[stride] == 7.0, "nothing is written beyond"


@pytest.mark.parametrize("name", TABLEAUS)
def test_coefficients(name):
    tableau = TABLEAUS[name]
    np.testing.assert_allclose(tableau.a.sum(axis=1), tableau.c, atol=1e-14)
    for power in range(tableau.order):
        assert tableau.b @ tableau.c**power == pytest.approx(1 / (power + 1), abs=1e-14)
    assert all(abs(e.sum()) < 1e-14 for e in tableau.errors)


@pytest.mark.parametrize("name", TABLEAUS)
def test_stability_interval(name):
    """|R(z)| ≤ 1 from −stable to 0, and not much beyond."""
    tableau = TABLEAUS[name]

    def growth(z):
        return abs(
            1
            + z * tableau.b @ np.linalg.solve(np.eye(tableau.stages) - z * tableau.a, np.ones(tableau.stages))
        )

    assert max(growth(z) for z in np.linspace(-tableau.stable, 0, 400)) <= 1 + 1e-2
    assert growth(-1.05 * tableau.stable) > 1

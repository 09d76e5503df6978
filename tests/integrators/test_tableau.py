"""The emitted sums of Runge–Kutta steps against NumPy, the coefficients against their order conditions."""

import numpy as np
import pytest

import holonome as hn
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


def _own(name, a, b, errors, order):
    a = np.array(a, dtype=float)
    return hn.Tableau(name, name, a, np.array(b), a.sum(axis=1), (np.array(errors),), order, order - 1, 2.0)


OWN = {
    tableau.name: tableau
    for tableau in (
        _own("midpoint", [[0, 0], [1 / 2, 0]], [0.0, 1.0], [-1.0, 1.0, 0.0], 2),
        _own("Ralston", [[0, 0], [2 / 3, 0]], [1 / 4, 3 / 4], [-3 / 4, 3 / 4, 0.0], 2),
        _own("late", [[0, 0, 0], [0, 0, 0], [0, 1 / 2, 0]], [0.0, 0.0, 1.0], [0.0, -1.0, 1.0, 0.0], 2),
        _own("without an estimate", [[0, 0], [1 / 2, 0]], [0.0, 1.0], [0.0, 0.0, 0.0], 2),
    )
}


@pytest.mark.parametrize("formulation", [hn.UnderlyingODE(), hn.SRM(eps=0.05, iterations=2)])
@pytest.mark.parametrize("name", OWN)
def test_a_tableau_of_ones_own_has_its_order(name, formulation):
    """Also with sequential regularization, whose second iteration needs the first between the steps."""
    pendulum = hn.mechanisms.pendulum()
    method = hn.Method(formulation, hn.RungeKutta(OWN[name]))
    fine = hn.Method(formulation, hn.RungeKutta("dop853"))
    ends = [
        hn.solve(pendulum.system, (0, 0.5), pendulum.q0, method=m, step=h).q[:, -1]
        for m, h in ((method, 4e-3), (method, 2e-3), (fine, 1e-3))
    ]
    errors = [np.max(np.abs(end - ends[-1])) for end in ends[:-1]]
    assert 3.4 < errors[0] / errors[1] < 4.6

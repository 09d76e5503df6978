"""BDF on the underlying ODE, and the underlying variant of sequential regularization."""

import numpy as np
import pytest

import holonome as hn

ON_THE_ODE = [
    hn.Method(hn.UnderlyingODE(), hn.BDF()),
    hn.Method(hn.UnderlyingODE(projection=False), hn.BDF()),
    hn.Method(hn.CoordinateProjection(hn.UnderlyingODE()), hn.BDF()),
]


@pytest.mark.parametrize("method", ON_THE_ODE, ids=str)
def test_forces_of_multipliers(method):
    rubbing = hn.System(
        np.eye(2),
        lambda lam, v: np.array([1.0 - 0.2 * lam[0] * np.tanh(10 * v[0]), -9.81]),
        lambda q: q[1],
        names=["x", "y"],
    )
    expected = hn.solve(rubbing, (0, 1), [0, 0], rtol=1e-10, atol=1e-12)
    sol = hn.solve(rubbing, (0, 1), [0, 0], method=method, rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.q[:, -1], expected.q[:, -1], atol=1e-7)
    np.testing.assert_allclose(sol.lam[:, -1], expected.lam[:, -1], rtol=1e-7)


@pytest.mark.parametrize("method", ON_THE_ODE, ids=str)
def test_a_coordinate_without_mass_is_refused_by_name(method):
    light = hn.System([1.0, 0.0], [0.0, -1.0], lambda q: q[1] - q[0] ** 2, names=["x", "y"])
    with pytest.raises(ValueError, match=r"^method: .*mass\[1, 1\] is zero.*'bdf' or 'ggl'"):
        hn.solve(light, (0, 1), [1.0, 1.0], method=method)
    assert hn.solve(light, (0, 1), [1.0, 1.0], method="bdf").success


@pytest.mark.parametrize("integrator", [hn.RungeKutta("dopri5"), hn.BDF()], ids=str)
def test_srm_of_the_underlying_ode_with_velocity_constraints_alone(integrator):
    rolling = hn.System(
        np.eye(2), [0.0, -1.0], velocity_constraint=lambda q, v: v[0] - q[1] * v[1], names=["x", "y"]
    )
    expected = hn.solve(rolling, (0, 1), [0, 1], rtol=1e-10, atol=1e-12)
    method = hn.Method(hn.SRM(variant="underlying"), integrator)
    sol = hn.solve(rolling, (0, 1), [0, 1], method=method, rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.q[:, -1], expected.q[:, -1], atol=1e-6)

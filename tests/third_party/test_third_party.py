"""Methods from outside the package, each in one file: they work in solve and compare like those inside."""

import sys
from pathlib import Path

import numpy as np
import pytest

import holonome as hn

sys.path.insert(0, str(Path(__file__).parent))
import classical_runge_kutta
import penalty
import trapezoidal

METHODS = {"rk4": classical_runge_kutta.METHOD, "penalty": penalty.METHOD, "trapezoidal": trapezoidal.METHOD}
ERRORS = {"rk4": 1e-4, "penalty": 1e-3, "trapezoidal": 3e-3}


@pytest.fixture(scope="module")
def pendulum():
    found = hn.mechanisms.pendulum()
    reference = hn.solve(
        found.system, (0, 2), found.q0, found.v0, rtol=1e-12, atol=1e-14, t_eval=np.linspace(0, 2, 9)
    )
    return found, reference


@pytest.mark.parametrize("name", METHODS)
def test_the_motion_is_right(pendulum, name):
    found, reference = pendulum
    sol = hn.solve(found.system, (0, 2), found.q0, found.v0, method=METHODS[name], t_eval=reference.t)
    assert sol.success, sol.message
    assert np.max(np.abs(sol.q - reference.q)) < ERRORS[name]


@pytest.mark.parametrize("name", METHODS)
def test_everything_that_solve_offers_comes_along(pendulum, name):
    found, reference = pendulum
    options = {"method": METHODS[name], "dense_output": True, "events": hn.Event(lambda q: q[0], terminal=2)}
    sol = hn.solve(found.system, (0, 10), found.q0, found.v0, **options)
    expected = hn.solve(found.system, (0, 10), found.q0, found.v0, rtol=1e-12, events=options["events"])
    assert sol.status == 1
    np.testing.assert_allclose(sol.t_events[0], expected.t_events[0], atol=30 * ERRORS[name])
    inside = sol.sol(sol.t[3:-1])[0]
    np.testing.assert_allclose(inside, sol.q[:, 3:-1], atol=1e-9)
    back = hn.solve(
        found.system, (1, 0), reference.q[:, 4], reference.v[:, 4], method=METHODS[name], repair=True
    )
    assert np.max(np.abs(back.q[:, -1] - reference.q[:, 0])) < 10 * ERRORS[name]


def test_the_tableau_has_order_four(pendulum):
    found, reference = pendulum

    def error(h: float) -> float:
        method = hn.Method(hn.UnderlyingODE(), hn.RungeKutta(classical_runge_kutta.CLASSICAL, step=h))
        sol = hn.solve(found.system, (0, 2), found.q0, found.v0, method=method, t_eval=[2.0])
        return float(np.max(np.abs(sol.q[:, -1] - reference.q[:, -1])))

    assert 3.7 < np.log2(error(0.02) / error(0.01)) < 4.5


def test_the_trapezoidal_rule_has_order_two(pendulum):
    found, reference = pendulum

    def error(h: float) -> float:
        method = hn.Method(hn.Index1(), trapezoidal.Trapezoidal(step=h))
        sol = hn.solve(found.system, (0, 2), found.q0, found.v0, method=method, t_eval=[2.0])
        return float(np.max(np.abs(sol.q[:, -1] - reference.q[:, -1])))

    assert 1.8 < np.log2(error(0.02) / error(0.01)) < 2.2


def test_they_enter_a_comparison(pendulum):
    found, _ = pendulum
    table = hn.compare(found.system, (0, 1), found.q0, found.v0, methods=list(METHODS.values()), rtols=[1e-4])
    assert all(trial.success for trial in table.rows)


def test_a_refusal_names_the_reason():
    free = hn.System(1.0, [0.0], names=["x"])
    with pytest.raises(ValueError, match="Penalty holds constraints"):
        hn.solve(free, (0, 1), [0.0], [1.0], method=penalty.METHOD)


def test_a_combination_that_cannot_be_is_refused():
    with pytest.raises(TypeError, match="and Penalty offers 'residual'"):
        hn.Method(penalty.Penalty(), hn.RungeKutta(classical_runge_kutta.CLASSICAL))


def test_an_integrator_that_raises_is_named(pendulum):
    found, _ = pendulum

    class Broken(hn.PlainIntegrator):
        def advance(self, equations, t, y, dy, h):
            raise RuntimeError("no idea")

    sol = hn.solve(found.system, (0, 1), found.q0, found.v0, method=hn.Method(hn.UnderlyingODE(), Broken()))
    assert not sol.success
    assert "Broken raised RuntimeError: no idea" in sol.message

"""Taylor series: accuracy at all tolerances, order, the manifold, what it refuses."""

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

import holonome as hn

TAYLOR = "taylor"


def pendulum_position(t):
    """Of the pendulum of length 1, let go at rest when horizontal: sin(θ/2) = k sn(K − ω t), k² = 1/2."""
    omega, m = np.sqrt(9.81), 0.5
    sn, _, _, _ = ellipj(ellipk(m) - omega * t, m)
    angle = 2 * np.arcsin(np.sqrt(m) * sn)
    return np.array([np.sin(angle), -np.cos(angle)])


def end_error(example, t_end, exact, rtol):
    sol = hn.solve(
        example.system, (0, t_end), example.q0, example.v0, method=TAYLOR, rtol=rtol, atol=rtol * 1e-3
    )
    assert sol.success, sol.message
    return np.max(np.abs(sol.q[:, -1] - exact)), sol


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14])
def test_the_pendulum_at_all_tolerances(rtol):
    error, sol = end_error(hn.mechanisms.pendulum(), 5.0, pendulum_position(5.0), rtol)
    assert error < max(20 * rtol, 2e-14)
    assert max(sol.drift) < 5e-14


@pytest.mark.parametrize("eccentricity", [0.0, 0.6, 0.95])
@pytest.mark.parametrize("rtol", [1e-5, 1e-9, 1e-13])
def test_a_planet_after_one_period(eccentricity, rtol):
    kepler = hn.mechanisms.kepler(eccentricity=eccentricity)
    error, sol = end_error(kepler, 2 * np.pi, kepler.q0, rtol)
    assert error < max(3000 * rtol, 3e-13) / (1 - eccentricity)
    assert sol.steps < 60


@pytest.mark.parametrize(
    ("name", "t_end"), [("double_pendulum", 2.0), ("four_bar", 1.0), ("slider_crank", 0.7), ("andrews", 0.01)]
)
def test_it_agrees_with_runge_kutta(name, t_end):
    example = getattr(hn.mechanisms, name)()
    start = example.system, (0, t_end), example.q0, example.v0
    reference = hn.solve(*start, method="dop853", rtol=1e-13)
    for rtol in (1e-5, 1e-8, 1e-11):
        sol = hn.solve(*start, method=TAYLOR, rtol=rtol)
        assert sol.success
        assert np.max(np.abs(sol.q[:, -1] - reference.q[:, -1])) < 2000 * rtol * np.max(np.abs(reference.q))
        assert sol.drift[0] < 1e-14
    assert sol.steps < reference.steps / 2


@pytest.mark.parametrize("order", [2, 3, 4, 5, 8])
def test_a_constant_step_shows_the_order(order):
    pendulum, errors = hn.mechanisms.pendulum(), []
    method = hn.Method(hn.UnderlyingODE(), hn.Taylor(order=order))
    for step in (1 / 32, 1 / 64, 1 / 128) if order < 8 else (1 / 8, 1 / 12, 1 / 16):
        sol: Any = hn.solve(pendulum.system, (0, 1), pendulum.q0, pendulum.v0, method=method, step=step)
        assert set(sol.history.order) == {order}
        errors.append(np.max(np.abs(sol.q[:, -1] - pendulum_position(1.0))))
    ratio = np.log(errors[0] / errors[-1]) / np.log(4 if order < 8 else 2)
    assert order - 0.5 < ratio < order + 1.5


def test_the_order_follows_the_tolerance():
    pendulum, orders = hn.mechanisms.pendulum(), []
    for rtol in (1e-3, 1e-6, 1e-9, 1e-12):
        sol: Any = hn.solve(pendulum.system, (0, 1), pendulum.q0, pendulum.v0, method=TAYLOR, rtol=rtol)
        orders.append(sol.history.order[0])
    assert orders == sorted(set(orders))


def test_dense_output_lies_on_the_manifold_and_pickles():
    pendulum, times = hn.mechanisms.pendulum(), np.linspace(0, 3, 100)
    start = pendulum.system, (0, 3), pendulum.q0, pendulum.v0
    sol: Any = hn.solve(*start, method=TAYLOR, rtol=1e-10, dense_output=True)
    q, v = sol.sol(times)
    assert np.max(np.abs(q - np.array([pendulum_position(t) for t in times]).T)) < 1e-8
    assert np.max(np.abs(np.sum(q * q, axis=0) - 1)) < 1e-15
    assert np.max(np.abs(np.sum(q * v, axis=0))) < 1e-14
    assert np.array_equal(pickle.loads(pickle.dumps(sol)).sol(times)[0], q)
    asked = hn.solve(*start, method=TAYLOR, rtol=1e-10, t_eval=times)
    assert np.max(np.abs(asked.q - q)) < 1e-15


def test_there_and_back():
    pendulum = hn.mechanisms.pendulum()
    there = hn.solve(pendulum.system, (0, 5), pendulum.q0, pendulum.v0, method=TAYLOR, rtol=1e-12)
    back = hn.solve(pendulum.system, (5, 0), there.q[:, -1], there.v[:, -1], method=TAYLOR, rtol=1e-12)
    assert back.q[:, -1] == pytest.approx(pendulum.q0, abs=1e-10)


def test_events_are_found_to_rounding():
    pendulum = hn.mechanisms.pendulum()
    sol: Any = hn.solve(
        pendulum.system, (0, 5), pendulum.q0, pendulum.v0, method=TAYLOR, rtol=1e-12, events=lambda q: q[0]
    )
    quarter = ellipk(0.5) / np.sqrt(9.81)
    assert sol.t_events[0] == pytest.approx(quarter * np.array([1, 3, 5, 7]), abs=1e-11)


def test_forces_of_time_states_switches_and_parameters():
    def force(t, q, s, p):
        return np.array([np.where(t > 0.5, p.push, 0.0) - q[0] - s[0]])

    system = hn.System(1.0, force, n=1, states={"s": 0.2}, rate=lambda t, q, s: q - s + np.sin(3 * t),
                       parameters={"push": 2.0})  # fmt: skip
    for parameters in (None, {"push": -1.0}):
        ends = [
            hn.solve(system, (0, 4), [1], [0], method=method, rtol=rtol, parameters=parameters)
            for method, rtol in ((TAYLOR, 1e-11), ("dop853", 1e-13))
        ]
        assert np.min(np.abs(ends[0].t - 0.5)) < 1e-12
        assert ends[0].q[:, -1] == pytest.approx(ends[1].q[:, -1], abs=1e-10)
        assert ends[0].s[:, -1] == pytest.approx(ends[1].s[:, -1], abs=1e-10)


@pytest.mark.parametrize(
    "force",
    [
        lambda q, v: -9.81 - 1e4 * np.minimum(q, 0.0),
        lambda q, v: -q - 0.2 * np.sign(v) - 3 * np.abs(q),
        lambda q, v: np.where(q > 0.5, -10.0, 1.0) * np.ones(1),
    ],
    ids=["stop", "dry friction", "jump"],
)
def test_a_step_does_not_run_past_a_kink(force):
    system = hn.System(1.0, force, n=1)
    start = system, (0, 1.5), [1.0], [0.0]
    exact = hn.solve(*start, method="dop853", rtol=1e-11).q[0, -1]
    assert hn.solve(*start, method=TAYLOR, rtol=1e-7).q[0, -1] == pytest.approx(exact, abs=2e-4)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_do_not_matter(scale):
    """Coefficients of order 30 in seconds would overflow, or vanish."""
    pendulum = hn.mechanisms.pendulum(length=scale)
    t_end = 5 * np.sqrt(scale)
    sol = hn.solve(pendulum.system, (0, t_end), [scale, 0], [0, 0], method=TAYLOR, rtol=1e-12)
    assert sol.q[:, -1] / scale == pytest.approx(pendulum_position(5.0), abs=1e-10)


def test_invariants_of_an_ode_are_kept():
    circle = hn.ODE(lambda x: np.array([-x[1], x[0]]), invariant=lambda x: x @ x, n=2)
    sol = hn.solve(circle, (0, 100), [1, 0], method=TAYLOR, rtol=1e-10)
    assert np.max(np.abs(np.hypot(*sol.x) - 1)) < 1e-15
    assert abs(sol.x[0, -1] - np.cos(100)) < 1e-8


def test_a_solution_that_ends_is_told():
    sol = hn.solve(hn.ODE(lambda x: x**2, n=1), (0, 5), [1.0], method=TAYLOR)
    assert not sol.success
    assert sol.t[-1] == pytest.approx(1.0)
    assert "without bound" in sol.message


def test_a_force_that_is_not_a_number_is_told():
    sol = hn.solve(hn.System(1.0, lambda q: np.log(q), n=1), (0, 5), [0.5], [-1.0], method=TAYLOR)
    assert not sol.success
    assert sol.t[-1] < 1.0


def test_singular_positions_are_passed_and_told():
    crank = hn.mechanisms.slider_crank()
    sol = hn.solve(crank.system, (0, 1), crank.q0, crank.v0, method=TAYLOR, rtol=1e-7)
    assert sol.success
    assert sol.singular_times == pytest.approx([0.7595], abs=1e-3)


def called(q):
    return -np.array([float(str(q[0]))])


@pytest.mark.parametrize(
    ("system", "q0", "word"),
    [
        (lambda: hn.System(1.0, called, n=1), [1.0], "force could not be traced"),
        (lambda: hn.mechanisms.chain(links=60).system, None, "sparse elimination"),
        (
            lambda: hn.System(np.eye(2), [0, -9.81], lambda q: np.array([q @ q - 1, 2 * (q @ q) - 2]), n=2),
            [1, 0],
            "depend on each other",
        ),
        (
            lambda: hn.System(np.diag([1.0, 0.0]), [0, -9.81], lambda q: q[:1] - q[1:], n=2),
            [0, 0],
            "a mass for every",
        ),
    ],
    ids=["black box", "large", "redundant", "massless"],
)
def test_what_it_refuses_it_names_with_a_remedy(system, q0, word):
    start = hn.mechanisms.chain(links=60).q0 if q0 is None else q0
    with pytest.raises(ValueError, match=word) as caught:
        hn.solve(system(), (0, 1), start, method=TAYLOR)
    assert "'dop853'" in str(caught.value)


def test_the_order_is_checked():
    for wrong in (1, 33, 2.5, "high"):
        with pytest.raises((TypeError, ValueError), match="whole number from 2 to 32"):
            hn.Taylor(order=wrong)  # type: ignore[arg-type]

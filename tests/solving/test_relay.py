"""Method "auto" meets stiffness: it moves to an implicit method and back, says so, and resolves oscillations
that are above the tolerance.
"""

import sys

import numpy as np
import pytest

import holonome as hn


def damped_pair(k=1e3, c=1e3) -> hn.System:
    """A pendulum with a small mass on a stiff, strongly damped spring: rates of 1e5 beside a motion of
    seconds.
    """

    def force(q, v, p):
        spring = p.k * (q[2:] - q[:2]) + p.c * (v[2:] - v[:2])
        return np.concatenate([spring + np.array([0.0, -9.81]), 0.01 * np.array([0.0, -9.81]) - spring])

    return hn.System(
        [1.0, 1.0, 0.01, 0.01],
        force,
        lambda q: q[0] ** 2 + q[1] ** 2 - 1,
        parameters={"k": k, "c": c},
        names=["x", "y", "a", "b"],
    )


def braked() -> hn.System:
    """Two masses, the small one braked hard between t = 20 and 60 only."""
    return hn.System(
        [1.0, 0.01],
        lambda t, q, v: np.array(
            [-q[0] - 5 * (q[0] - q[1]), 5 * (q[0] - q[1]) - np.where((t > 20) & (t < 60), 2e3, 0.02) * v[1]]
        ),
        n=2,
    )


def test_stiff_damping_is_recognised_and_stepped_over():
    system, start = damped_pair(), [1.0, 0.0, 1.0, 0.0]
    sol = hn.solve(system, (0, 10), start, rtol=1e-6)
    assert sol.success
    assert sol.steps < 8000, "the explicit method alone needs 158 000"
    assert "stiffness" in sol.message
    assert sol.method == "auto: dop853 → bdf"
    reference = hn.solve(system, (0, 10), start, method="ggl", rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(sol.q[:, -1], reference.q[:, -1], atol=1e-4)
    assert np.all(np.diff(sol.t) > 0)
    assert sol.history.h.size == sol.steps


def rod_in_a_bushing() -> hn.System:
    """Rates of 2e4 to 4e4, critically damped."""
    return hn.System(
        [1.0, 1.0, 1 / 12],
        [0.0, -9.81, 0.0],
        elastic=hn.Elastic(
            lambda q: np.array([q[0] - np.sin(q[2]) / 2, q[1] + np.cos(q[2]) / 2]), stiffness=1e8, damping=1e4
        ),
        names=["x", "y", "angle"],
    )


@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
def test_radau_takes_over_where_stiff_forces_jump_often(rtol):
    """A hundred jumps: BDF begins anew at order 1 behind each of them, and needs 3000 to 8000 steps."""

    def force(t, q, v):
        spring = 1e3 * (q[2:] - q[:2]) + 1e3 * (v[2:] - v[:2])
        push = np.where(np.mod(t, 0.05) < 0.025, 5.0, -5.0)
        return np.concatenate([spring + np.array([push, -9.81]), 0.01 * np.array([0.0, -9.81]) - spring])

    system = hn.System([1.0, 1.0, 0.01, 0.01], force, lambda q: q[0] ** 2 + q[1] ** 2 - 1)
    given = system, (0, 2.5), [1.0, 0.0, 1.0, 0.0]
    sol = hn.solve(*given, rtol=rtol, atol=rtol)
    assert sol.method == "auto: dop853 → radau"
    assert sol.steps < 400
    assert sol.drift[0] < 1e-14
    assert sol.lam.shape == (1, sol.t.size)
    reference = hn.solve(*given, method="bdf", rtol=1e-10, atol=1e-10, max_steps=100_000)
    np.testing.assert_allclose(sol.q[:, -1], reference.q[:, -1], atol=max(1e-4, 10 * rtol))
    again = hn.solve(*given, rtol=rtol, atol=rtol, dense_output=True)
    np.testing.assert_array_equal(again.q, sol.q)
    np.testing.assert_allclose(again.sol(sol.t)[0], sol.q, atol=1e-12)


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_stiffness_is_met_within_a_hundred_steps(rtol):
    system, start = rod_in_a_bushing(), [0.5, 0.0, np.pi / 2]
    sol = hn.solve(system, (0, 5), start, rtol=rtol, atol=rtol)
    assert sol.method == "auto: dop853 → bdf"
    assert sol.steps < 2000, "the explicit method alone needs 15 000 to 53 000"
    met = float(sol.message.split("bdf from t = ")[1].split(")")[0].split(",")[0])
    assert np.count_nonzero(sol.t < met) < 150
    reference = hn.solve(system, (0, 5), start, method="dop853", rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(sol.q[:, -1], reference.q[:, -1], atol=1e3 * rtol)


def test_bdf_does_not_stay_at_order_one_after_an_explicit_method():
    """States of an explicit run carry errors in the fast motions; DASSL's choice of the order then takes 65
    000 steps and as many failures.
    """
    system = rod_in_a_bushing()
    explicit = hn.solve(system, (0, 0.1), [0.5, 0.0, np.pi / 2], method="dop853", rtol=1e-6, atol=1e-6)
    for i in range(20, explicit.t.size, 60):
        sol = hn.solve(
            system,
            (explicit.t[i], 5),
            explicit.q[:, i],
            explicit.v[:, i],
            method="bdf",
            rtol=1e-6,
            atol=1e-6,
            max_steps=100_000,
        )
        assert sol.success
        assert sol.steps + sol.rejections < 5000


def test_there_and_back_with_events_t_eval_and_dense_output():
    system, times = braked(), np.linspace(0, 100, 201)
    sol = hn.solve(
        system, (0, 100), [1.0, 0.0], rtol=1e-6, dense_output=True, events=hn.Event(lambda q: q[0])
    )
    assert sol.method == "auto: dop853 → bdf → dop853"
    assert sol.steps < 10_000, "the explicit method alone needs 1 250 000"
    reference = hn.solve(system, (0, 100), [1.0, 0.0], method="ggl", rtol=1e-10, atol=1e-12, t_eval=times)
    np.testing.assert_allclose(sol.sol(times)[0], reference.q, atol=5e-4)
    only = hn.solve(system, (0, 100), [1.0, 0.0], rtol=1e-6, t_eval=times)
    np.testing.assert_array_equal(only.t, times)
    np.testing.assert_allclose(only.q, reference.q, atol=5e-4)
    crossings = np.flatnonzero(np.diff(np.sign(reference.q[0])))
    assert sol.t_events[0].size == crossings.size
    np.testing.assert_allclose(sol.t_events[0], times[crossings], atol=0.5)


def test_terminal_events_count_across_the_switch():
    sol = hn.solve(braked(), (0, 100), [1.0, 0.0], events=hn.Event(lambda q: q[0], terminal=12))
    assert sol.status == 1
    assert sol.t_events[0].size == 12
    assert sol.t[-1] == sol.t_events[0][-1]
    assert sol.t[-1] > 20


def test_an_oscillation_above_the_tolerance_is_resolved():
    mechanism = hn.mechanisms.stiff_spring(eps=1e-4)
    sol = hn.solve(mechanism.system, (0, 2), mechanism.q0, mechanism.v0)
    assert sol.method == "dop853"
    assert sol.steps > 4000
    assert np.max(np.abs(sol.energy - sol.energy[0])) < 1e-3 * abs(sol.energy[0])


def test_decisions_are_repeatable():
    first, second = (hn.solve(damped_pair(), (0, 5), [1.0, 0.0, 1.0, 0.0]) for _ in range(2))
    assert first.message == second.message
    np.testing.assert_array_equal(first.y, second.y)


@pytest.mark.parametrize("name", ["pendulum", "andrews", "slider_crank", "chain"])
@pytest.mark.parametrize("rtol", [1e-2, 1e-4, 1e-7])
def test_ordinary_mechanisms_stay_explicit(name, rtol, monkeypatch):
    tried = []
    monkeypatch.setattr(
        sys.modules["holonome.solving.auto"],
        "next_leg",
        lambda *arguments, **options: tried.append(arguments),
    )
    mechanism = hn.mechanisms.get(name)
    sol = hn.solve(
        mechanism.system,
        (0, 20 * mechanism.t_span[1]) if name != "slider_crank" else mechanism.t_span,
        mechanism.q0,
        mechanism.v0,
        rtol=rtol,
        atol=rtol,
    )
    assert sol.method == "dop853"
    assert not tried, "no implicit method is compiled either"


def test_stiffness_that_begins_late_is_met_soon():
    """After thousands of steps, on the first leg and on one that came back."""

    def force(t, q, v):
        brake = np.where(((t > 500) & (t < 600)) | (t > 700), 2e3, 0.02)
        return np.array([-100 * q[0] - 5 * (q[0] - q[1]), 5 * (q[0] - q[1]) - brake * v[1]])

    system = hn.System([1.0, 0.01], force, n=2)
    sol = hn.solve(system, (0, 800), [1.0, 0.0], rtol=1e-6)
    assert sol.success
    legs = [float(part.split(",")[0].split(")")[0]) for part in sol.message.split("from t = ")[1:]]
    assert sol.method.startswith("auto: dop853 → bdf → dop853 → bdf")
    assert legs[0] == pytest.approx(500, abs=3)
    assert legs[2] == pytest.approx(700, abs=3)


def test_wanted_times_dense_output_and_progress_of_several_legs():
    told, times = [], np.linspace(0.5, 5, 10)
    system, start = rod_in_a_bushing(), [0.5, 0.0, np.pi / 2]
    sol = hn.solve(system, (0, 5), start, t_eval=times, dense_output=True, progress=told.append)
    assert sol.method == "auto: dop853 → bdf"
    np.testing.assert_array_equal(sol.t, times)
    np.testing.assert_allclose(sol.sol(times)[0], sol.q, atol=1e-12)
    early = hn.solve(system, (0, 0.003), start, rtol=1e-9, atol=1e-9).q[:, -1]
    np.testing.assert_allclose(sol.sol(0.003)[0], early, atol=1e-5)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_dense_output_of_an_ode_spans_the_legs():
    vdp = hn.ODE(lambda x: np.array([x[1], 1000 * (1 - x[0] ** 2) * x[1] - x[0], -1e-3 * x[2]]), n=3)
    solution = hn.solve(vdp, (0, 400), [2, 0, 1], dense_output=True)
    assert "→" in solution.method
    np.testing.assert_allclose(solution.sol(solution.t[::50]), solution.x[:, ::50], rtol=1e-6, atol=1e-9)
    assert solution.sol(200.0)[2] == pytest.approx(np.exp(-0.2), rel=1e-4)


def test_stiffness_beside_redundant_rows_does_not_end_a_run():
    """There is no relay where rows depend on each other; the explicit method goes on to the end."""

    def constraint(q):
        rows = np.array([q[0] - np.cos(q[2]), q[1] - np.sin(q[2])])
        return np.append(rows, 2 * rows[0] - rows[1])

    rest = np.array([1.0, 0.01, 0.01])
    system = hn.System(np.ones(3), lambda q: -2e4 * (q - rest), constraint)
    sol, same = (hn.solve(system, (0, 1), [1.0, 0, 0], method=method) for method in ("auto", "dop853"))
    assert sol.success, sol.message
    np.testing.assert_array_equal(sol.q[:, -1], same.q[:, -1])


def test_events_of_a_leg_that_has_none():
    """The only zero lies behind the change of methods; a leg without events has rows of the same width."""
    system, start = damped_pair(), [1.0, 0.0, 1.0, 0.0]
    lowest = hn.Event(lambda q: q[0], terminal=True)
    never = hn.Event(lambda q: q[0] - 2)
    sol = hn.solve(system, (0, 10), start, rtol=1e-6, events=[lowest, never])
    assert sol.method == "auto: dop853 → bdf"
    assert [states.shape for states in sol.event_states] == [(1, 8), (0, 8)]
    np.testing.assert_allclose(sol.event_states[0][0, :2], [0.0, -1.0], atol=1e-5)

"""Backward in time, output where it is asked for, dense output, events."""

import math
import tracemalloc

import numpy as np
import pytest

import holonome as hn

GRAVITY = 9.81
FINE = {"rtol": 1e-10, "atol": 1e-12}


def cartesian_pendulum(**arguments) -> hn.System:
    return hn.System(
        np.eye(2), lambda: np.array([0.0, -GRAVITY]), lambda q: q @ q - 1, names=["x", "y"], **arguments
    )


def on_manifold(sol: hn.Solution, level: float = 1e-11) -> bool:
    return sol.success and max(sol.drift) <= level


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
def test_forward_then_backward_returns(method):
    chain = hn.mechanisms.double_pendulum()
    there = hn.solve(chain.system, (0, 2), chain.q0, chain.v0, method=method, **FINE)
    back = hn.solve(chain.system, (2, 0), there.q[:, -1], there.v[:, -1], method=method, **FINE)
    assert back.success
    assert back.t[0] == 2
    assert back.t[-1] == 0
    assert np.all(np.diff(back.t) < 0)
    np.testing.assert_allclose(back.q[:, -1], chain.q0, atol=1e-6)
    assert on_manifold(back, 1e-13)


@pytest.mark.parametrize("span", [(0, 3), (3, 0), (-3, 0), (1e5, 1e5 + 3)])
def test_t_eval_gives_these_times_and_nothing_else(span):
    pendulum = hn.mechanisms.pendulum()
    times = np.linspace(*span, 37)
    sol = hn.solve(pendulum.system, span, pendulum.q0, pendulum.v0, t_eval=times, **FINE)
    np.testing.assert_array_equal(sol.t, times)
    np.testing.assert_allclose(sol.q, pendulum.exact(times - span[0])[0], atol=1e-7)
    assert sol.history is None
    assert on_manifold(sol, 1e-13)
    inner = hn.solve(pendulum.system, span, pendulum.q0, pendulum.v0, t_eval=times[3:-3], **FINE)
    np.testing.assert_array_equal(inner.q, sol.q[:, 3:-3])


def test_t_eval_keeps_memory_small():
    system = cartesian_pendulum()
    hn.solve(system, (0, 1), [1.0, 0.0], t_eval=[1.0])
    tracemalloc.start()
    sol = hn.solve(system, (0, 1000), [1.0, 0.0], t_eval=np.linspace(0, 1000, 5), step=1e-2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sol.steps == 100_000
    assert sol.t.size == 5
    assert peak < 8e6, f"{peak / 1e6:.1f} MB, but the steps alone would take 4 MB"


@pytest.mark.parametrize(("method", "order"), [("heun", 2), ("dopri5", 5), ("dop853", 8)])
def test_dense_output_is_on_the_manifold_and_has_the_order(method, order):
    pendulum = hn.mechanisms.pendulum()
    times = np.random.default_rng(0).uniform(0, 2, 200)
    errors = []
    for step in (0.1, 0.05) if order > 2 else (0.01, 0.005):
        sol = hn.solve(
            pendulum.system, (0, 2), pendulum.q0, pendulum.v0, method=method, step=step, dense_output=True
        ).sol
        q, v = sol(times)
        assert q.shape == v.shape == (2, 200)
        assert np.max(np.abs(np.sum(q * q, axis=0) - 1)) <= 1e-10
        assert np.max(np.abs(np.sum(q * v, axis=0))) <= 1e-10
        errors.append(np.max(np.abs(q - pendulum.exact(times)[0])))
    assert errors[0] / errors[1] > 2 ** (order - 0.6)


def test_dense_output_meets_the_points_and_refuses_other_times():
    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(pendulum.system, (2, 0), pendulum.q0, pendulum.v0, dense_output=True)
    q, v = sol.sol(sol.t)
    np.testing.assert_array_equal(q, sol.q)
    np.testing.assert_array_equal(v, sol.v)
    assert sol.sol(1.0)[0].shape == (2,)
    assert sol.sol([])[0].shape == (2, 0)
    with pytest.raises(ValueError, match="t:"):
        sol.sol(2.1)
    with pytest.raises(ValueError, match="t:"):
        sol.sol(math.nan)
    sparse = hn.solve(pendulum.system, (2, 0), pendulum.q0, pendulum.v0, dense_output=True, t_eval=[1.5, 0.5])
    np.testing.assert_array_equal(sparse.t, [1.5, 0.5])
    np.testing.assert_allclose(sparse.sol(sol.t)[0], sol.q, atol=1e-14)


def test_events_at_known_zeros():
    """X = cos t: zeros, their directions, the second one terminal."""
    system = hn.System(1.0, lambda q: -q)

    def passes(q):
        return q[0]

    def rises(q):
        return q[0]

    def falls(q):
        return q[0]

    rises.direction, falls.direction = 1, -1
    sol = hn.solve(
        system,
        (0, 10),
        [1.0],
        rtol=1e-13,
        atol=1e-14,
        events=[passes, rises, falls, lambda t: t - 7.25, lambda v: v[0] - 2.0],
    )
    zeros = np.pi * np.array([0.5, 1.5, 2.5])
    assert sol.status == 0
    np.testing.assert_allclose(sol.t_events[0], zeros, atol=1e-12)
    np.testing.assert_allclose(sol.t_events[1], zeros[1:2], atol=1e-12)
    np.testing.assert_allclose(sol.t_events[2], zeros[::2], atol=1e-12)
    np.testing.assert_allclose(sol.t_events[3], [7.25], rtol=1e-13)
    assert sol.t_events[4].size == 0
    assert sol.q_events[4].shape == (0, 1)
    np.testing.assert_allclose(sol.q_events[0], 0, atol=1e-12)
    np.testing.assert_allclose(sol.v_events[0][:, 0], -np.sin(zeros), atol=1e-12)


@pytest.mark.parametrize("span", [(0, 10), (0, -10)])
@pytest.mark.parametrize(("terminal", "at"), [(True, 0.5), (1, 0.5), (2, 1.5), (3, 2.5), (9, None)])
def test_terminal_events(span, terminal, at):
    event = hn.Event(lambda q: q[0], terminal=terminal)
    sol = hn.solve(
        hn.System(1.0, lambda q: -q), span, [1.0], rtol=1e-13, atol=1e-14, events=event, dense_output=True
    )
    if at is None:
        assert sol.status == 0
        assert sol.t[-1] == span[1]
        return
    assert sol.success
    assert sol.status == 1
    assert "event" in sol.message
    assert sol.t[-1] == sol.t_events[0][-1]
    np.testing.assert_allclose(sol.t[-1], math.copysign(at * math.pi, span[1]), atol=1e-12)
    np.testing.assert_allclose(sol.q[0], np.cos(sol.t), atol=1e-11)
    np.testing.assert_allclose(sol.sol(sol.t[-1])[0], 0, atol=1e-12)
    with pytest.raises(ValueError, match="t:"):
        sol.sol(1.01 * sol.t[-1])


def test_event_time_on_the_pendulum_and_states_on_the_manifold():
    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(
        pendulum.system, (0, 5), pendulum.q0, pendulum.v0, rtol=1e-12, atol=1e-13, events=lambda q: q[0]
    )
    period = float(4 * math.pi / 2 / (math.sqrt(GRAVITY) * _agm(1.0, math.cos(math.pi / 4))))
    assert sol.t_events[0].size == 4
    np.testing.assert_allclose(sol.t_events[0], period * (0.25 + 0.5 * np.arange(4)), atol=1e-10)
    assert np.max(np.abs(np.sum(sol.q_events[0] ** 2, axis=1) - 1)) < 1e-14


def _agm(a, b):
    while abs(a - b) > 1e-15 * a:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return a


def test_events_at_both_ends_and_touching_zero():
    """At the end a zero counts; at the start, where it is zero to begin with, the event has not happened."""
    system = hn.System(1.0, np.zeros(1))
    sol = hn.solve(system, (0, 1), [0.0], [1.0], events=[lambda q: q[0], lambda t: t - 1.0, lambda t: t])
    assert sol.success
    np.testing.assert_allclose(sol.t_events[1], [1.0])
    assert all(np.all((times >= 0) & (times <= 1)) for times in sol.t_events)
    bounce = hn.solve(system, (0, 1), [0.0], [1.0], events=hn.Event(lambda q: q[0], terminal=True))
    assert bounce.t[-1] == 1.0, "a start on the zero of a terminal event does not stop there"


def test_bouncing_ball_by_restarts():
    """V flips by −0.8 at each impact: impact times are a geometric series."""
    system, t, q, v, impacts = hn.System(1.0, np.array([-GRAVITY])), 0.0, np.array([1.0]), np.array([0.0]), []
    for _ in range(8):
        sol = hn.solve(
            system,
            (t, 10),
            q,
            v,
            rtol=1e-12,
            atol=1e-13,
            events=hn.Event(lambda q: q[0], terminal=True, direction=-1),
        )
        t, q, v = sol.t[-1], np.array([0.0]), -0.8 * sol.v[:, -1]
        impacts.append(t)
    first = math.sqrt(2 / GRAVITY)
    expected = first + 2 * first * np.cumsum(np.concatenate([[0.0], 0.8 ** np.arange(1, 8)]))
    np.testing.assert_allclose(impacts, expected, rtol=1e-11)


def test_several_terminal_events_in_one_step():
    events = [
        hn.Event(lambda q: q[0] - 3, terminal=True),
        hn.Event(lambda q: q[0] - 2, terminal=True),
        lambda q: q[0] - 1,
        lambda q: q[0] - 4,
    ]
    sol = hn.solve(hn.System(1.0, np.zeros(1)), (0, 10), [0.0], [1.0], first_step=10.0, events=events)
    np.testing.assert_allclose(sol.t[-1], 2.0, rtol=1e-12)
    assert [times.size for times in sol.t_events] == [0, 1, 1, 0]
    np.testing.assert_allclose(sol.q[:, -1], 2.0, rtol=1e-12)


def test_event_that_cannot_be_traced_and_with_parameters():
    def hit(q, p):
        return float(np.interp(float(q[0]), [-2, 2], [-2, 2])) - p.level

    system = hn.System(1.0, lambda q: -q, parameters={"level": 0.5})
    for level in (0.5, -0.25):
        sol = hn.solve(system, (0, 3), [1.0], rtol=1e-12, atol=1e-13, events=hit, parameters={"level": level})
        np.testing.assert_allclose(sol.t_events[0], [math.acos(level)], atol=1e-10)


def test_a_failed_event_leaves_no_trace():
    """The next run with the same event, from a start that needs repair, is like any other."""
    state = {"fails": True}

    def touchy(q):
        if state["fails"] and float(q[0]) < 0.9:
            raise RuntimeError("not yet")
        return float(q[0])

    system = cartesian_pendulum()
    first = hn.solve(system, (0, 2), [1.0, 0.0], events=touchy)
    assert not first.success
    assert "not yet" in first.message
    assert "events[0]" in first.message
    state["fails"] = False
    second = hn.solve(system, (0, 2), [1.0, 1e-5], events=touchy)
    assert second.success, second.message

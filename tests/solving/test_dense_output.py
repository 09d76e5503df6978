"""Dense output: where it ends, what it contains, and that it shows the motion that was computed."""

import pickle

import numpy as np
import pytest

import holonome as hn

METHODS = {
    "dop853": "dop853",
    "bdf": "bdf",
    "ggl": "ggl",
    "index1": "index1",
    "srm": "srm",
    "srm with bdf": hn.Method(hn.SRM(), hn.BDF()),
}
CIRCLE = hn.System(np.eye(2), np.zeros(2), lambda q: q @ q - 1, names=["x", "y"])


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("t_eval", [None, [0.1, 0.2]])
def test_it_ends_at_a_terminal_event(method, way, t_eval):
    event = hn.Event(lambda q: q[0], terminal=True)
    times = None if t_eval is None else way * np.array(t_eval)
    sol = hn.solve(
        CIRCLE,
        (0, way * 3),
        [1.0, 0.0],
        [0.0, way * 1.0],
        method=method,
        events=event,
        dense_output=True,
        t_eval=times,
    )
    end = sol.t_events[0][0]
    assert abs(end - way * np.pi / 2) < 1e-3
    np.testing.assert_allclose(sol.sol(end)[0], sol.q_events[0][0], atol=1e-12)
    with pytest.raises(ValueError, match="known from"):
        sol.sol(end + way * 1e-9)


def winding() -> hn.System:
    """W = t solves sin(w − t) = 0, and so do all t + k π; x″ = cos w, and y = sin w is a constraint."""
    return hn.System(
        np.eye(2),
        lambda w: np.array([np.cos(w[0]), 0.0]),
        lambda q, w: q[1] - np.sin(w[0]),
        unknowns={"w": 0.0},
        equations=lambda t, w: np.sin(w - t),
        names=["x", "y"],
    )


@pytest.mark.parametrize("method", ["dop853", "bdf", "ggl", "auto", "index1"])
@pytest.mark.parametrize("way", [1, -1])
def test_unknowns_stay_on_their_branch_at_times_in_any_order(method, way):
    system = winding()
    sol = hn.solve(
        system, (0, 12 * way), [0.0, 0.0], [0.0, 1.0], method=method, dense_output=True, rtol=1e-8, atol=1e-10
    )
    assert sol.success, sol.message
    times = way * np.random.default_rng(3).permutation(np.linspace(0, 12, 241))
    for output in (sol.sol, pickle.loads(pickle.dumps(sol.sol))):
        q, v = output(times)
        np.testing.assert_allclose(q, [1 - np.cos(times), np.sin(times)], atol=1e-4)
        np.testing.assert_allclose(v, [np.sin(times), np.cos(times)], atol=1e-4)
        np.testing.assert_allclose(output(11.4 * way)[0][1], np.sin(11.4 * way), atol=1e-6)


@pytest.mark.parametrize("method", ["dop853", "bdf", "auto"])
def test_first_order_states_belong_to_it(method):
    system = hn.System(
        1.0, lambda q: -q, states={"s": 1.0, "r": 0.0}, rate=lambda q, s: np.array([-s[0], q[0]])
    )
    sol = hn.solve(system, (0, 5), [0.0], [1.0], method=method, dense_output=True, rtol=1e-8, atol=1e-10)
    times = np.linspace(0, 5, 50)
    q, v, s = sol.sol(times)
    np.testing.assert_allclose(q[0], np.sin(times), atol=1e-5)
    np.testing.assert_allclose(v[0], np.cos(times), atol=1e-5)
    np.testing.assert_allclose(s, [np.exp(-times), 1 - np.cos(times)], atol=1e-5)
    assert [part.shape for part in sol.sol(1.0)] == [(1,), (1,), (2,)]


@pytest.mark.parametrize(
    "method",
    [
        hn.Method(hn.UnderlyingODE(projection=False), hn.BDF()),
        hn.Method(hn.UnderlyingODE(projection=False), hn.RungeKutta("dopri5")),
        "index1",
        "index2",
        "baumgarte",
    ],
    ids=["underlying bdf", "underlying", "index1", "index2", "baumgarte"],
)
def test_drift_is_not_hidden(method):
    """At the steps, at times asked for and in between it is the same."""
    pendulum = hn.mechanisms.pendulum()
    arguments = {"method": method, "rtol": 1e-4, "atol": 1e-6}
    sol = hn.solve(pendulum.system, (0, 20), pendulum.q0, pendulum.v0, dense_output=True, **arguments)
    asked = hn.solve(pendulum.system, (0, 20), pendulum.q0, pendulum.v0, t_eval=sol.t, **arguments)
    inside, _ = sol.sol((sol.t[1:] + sol.t[:-1]) / 2)
    drift = sol.drift[0]
    assert drift > 1e-5
    assert asked.drift[0] == pytest.approx(drift, rel=1e-6)
    assert np.max(np.abs(np.sum(inside**2, axis=0) - 1)) == pytest.approx(drift, rel=0.05)


def unable() -> hn.System:
    """The force is finite at the start only."""
    return hn.System(np.eye(2), lambda t: np.array([np.sqrt(-t), 0.0]), lambda q: q @ q - 1, names=["x", "y"])


@pytest.mark.parametrize("method", [*METHODS.values(), "cs", "index3", "auto"])
def test_a_run_without_a_step_has_none_and_says_why(method):
    sol = hn.solve(unable(), (0, 1), [1.0, 0.0], [0.0, 1.0], method=method, dense_output=True)
    assert not sol.success
    assert sol.steps == 0
    assert sol.sol is None
    assert "entry 0 of force is nan" in sol.message


def test_known_points_are_no_steps_for_it():
    method = hn.Method(hn.GGL(), hn.BDF(order=3, step=0.1))
    system = hn.System(np.eye(2), lambda t: np.array([np.sqrt(0.25 - t), 0.0]), lambda q: q @ q - 1)
    sol = hn.solve(system, (0, 1), [1.0, 0.0], [0.0, 1.0], method=method, dense_output=True)
    assert not sol.success
    assert sol.t.size == 3
    assert sol.sol is None


def test_compare_tells_of_runs_without_a_step():
    methods = ["dop853", "bdf", "ggl", "srm"]
    table = hn.compare(unable(), (0, 1), [1.0, 0.0], [0.0, 1.0], methods=methods, rtols=[1e-4])
    for method in methods:
        (row,) = table.of(method)
        assert "entry 0 of force is nan" in str(row.message)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_a_constant_order_begins_at_its_start(order):
    """Only the first points are found beforehand, not the whole run; they may need repair; events in them
    count.
    """
    falls = hn.System(1.0, lambda t: np.where(t > 0.5, np.nan, -1.0) * np.ones(1))
    method = hn.Method(hn.GGL(), hn.BDF(order=order, step=0.01))
    early = hn.solve(falls, (0, 0.4), [0.0], [1.0], method=method)
    late = hn.solve(falls, (0, 1), [0.0], [1.0], method=method)
    assert early.success
    np.testing.assert_allclose(late.t[: early.t.size - 2], early.t[:-2], atol=1e-12)
    moved = hn.solve(CIRCLE, (0, 1), [1.1, 0.0], [0.0, 1.0], method=method, repair=True, dense_output=True)
    assert moved.success
    np.testing.assert_allclose(moved.q[:, 0], [1.0, 0.0], atol=1e-12)
    events = [lambda q: q[1] - np.sin(0.002), lambda q: q[1] - np.sin(0.025)]
    found = hn.solve(CIRCLE, (0, 1), [1.0, 0.0], [0.0, 1.0], method=method, events=events, dense_output=True)
    np.testing.assert_allclose(np.concatenate(found.t_events), [0.002, 0.025], atol=1e-4)
    times = np.linspace(0, 1, 77)
    np.testing.assert_allclose(found.sol(times)[0], [np.cos(times), np.sin(times)], atol=0.01)


def test_order_one_needs_its_start_alone():
    """A force that tells when it was asked: no later than the steps went."""
    asked = []

    def force(t, q):
        asked.append(float(t))
        return np.array([-float(q[0])])

    method = hn.Method(hn.GGL(), hn.BDF(order=1, step=0.01))
    system = hn.System(1.0, force, n=1)
    asked.clear()
    sol = hn.solve(system, (0, 50), [1.0], method=method, max_steps=3)
    assert sol.steps == 3
    assert max(asked) < 0.1


def test_a_constant_order_needs_room():
    method = hn.Method(hn.GGL(), hn.BDF(order=4, step=0.1))
    for end in (0.05, 0.2, 0.3):
        with pytest.raises(ValueError, match="t_span: BDF of constant order 4"):
            hn.solve(CIRCLE, (0, end), [1.0, 0.0], [0.0, 1.0], method=method)

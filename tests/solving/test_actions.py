"""Events that act: state, parameters and inputs change on the way, and results know it."""

import numpy as np
import pytest

import holonome as hn

G = 9.81
BALL = hn.System(1.0, [-G], names=["height"], potential=lambda q: G * q[0])


def bounce(e: float, **settings) -> hn.Event:
    return hn.Event(lambda q: q[0], direction=-1, action=lambda v: {"v": -e * v}, **settings)


def times_of_bounces(e: float, count: int) -> np.ndarray:
    """Of a ball that falls from height 1."""
    first = np.sqrt(2 / G)
    return first * np.cumsum([1.0, *(2 * e**k for k in range(1, count))])


@pytest.mark.parametrize("method", ["auto", "dopri5", "heun", "bdf", "ggl", "index1"])
def test_a_ball_bounces_at_the_right_times(method):
    sol = hn.solve(BALL, (0, 2), [1.0], events=bounce(0.8), method=method)
    assert sol.success
    np.testing.assert_allclose(sol.t_events[0], times_of_bounces(0.8, 3), rtol=1e-6)


def test_both_sides_of_a_jump_are_points_and_output_times_have_one():
    sol = hn.solve(BALL, (0, 2), [1.0], events=bounce(0.8), dense_output=True)
    (jumps,) = np.nonzero(np.diff(sol.t) == 0)
    np.testing.assert_allclose(sol.v[0, jumps + 1], -0.8 * sol.v[0, jumps], rtol=1e-12)
    times = np.unique(np.append(np.linspace(0, 2, 21), sol.t_events[0]))
    at = hn.solve(BALL, (0, 2), [1.0], events=bounce(0.8), t_eval=times)
    np.testing.assert_array_equal(at.t, times)
    np.testing.assert_allclose(at.q, sol.sol(times)[0], atol=1e-9)
    assert at.v[0, np.searchsorted(times, sol.t_events[0][0])] > 0  # behind the jump


def test_an_impulse_is_answered_by_the_constraints():
    made = hn.mechanisms.pendulum()
    kick = hn.Event(lambda q: q[0], action=lambda: {"impulse": [0.5, 3.0]})
    sol = hn.solve(made.system, (0, 3), made.q0, made.v0, events=kick)
    assert sol.success
    assert sol.t_events[0].size > 1
    assert max(sol.drift) < 1e-13
    k = int(np.flatnonzero(np.diff(sol.t) == 0)[0])
    q, change = sol.q[:, k], sol.v[:, k + 1] - sol.v[:, k]
    np.testing.assert_allclose(change, [0.5, 3.0] - q * (q @ [0.5, 3.0]), atol=1e-12)


def test_parameters_and_inputs_change_and_results_follow():
    spring = hn.System(
        1.0,
        lambda q, p, u: -p.k * q + u.push,
        parameters={"k": 1.0},
        inputs={"push": 0.0},
        names=["x"],
    )
    first = hn.Event(lambda t: t - 1, action=lambda: {"parameters": {"k": 4.0}})
    second = hn.Event(lambda t: t - 2, action=lambda: {"inputs": {"push": 8.0}})
    sol = hn.solve(spring, (0, 3), [1.0], events=[first, second], rtol=1e-10, atol=1e-12)
    x = np.array([np.cos(1.0), -np.sin(1.0)])
    for center in (0.0, 2.0):  # a quarter of a period is not over: rotate by ω = 2
        c, s = np.cos(2.0), np.sin(2.0)
        x = np.array([center + (x[0] - center) * c + x[1] / 2 * s, x[1] * c - 2 * (x[0] - center) * s])
    np.testing.assert_allclose([sol.q[0, -1], sol.v[0, -1]], x, rtol=1e-8)
    np.testing.assert_allclose(sol.a[0], -sol.parameter_values[0] * sol.q[0] + sol.u.push, atol=1e-9)
    assert sol.parameter_values[0, [0, -1]].tolist() == [1.0, 4.0]


def test_terminal_counts_occurrences_and_actions_may_stop():
    sol = hn.solve(BALL, (0, 9), [1.0], events=bounce(0.8, terminal=3))
    assert (sol.status, sol.t_events[0].size) == (1, 3)
    stop = hn.Event(lambda q: q[0], action=lambda: {"stop": True})
    sol = hn.solve(BALL, (0, 9), [1.0], events=stop)
    assert (sol.status, sol.t_events[0].size) == (1, 1)


def test_several_events_at_once_act_in_their_order():
    told = []

    def note(name):
        return lambda t: told.append((name, round(t, 6)))

    events = [hn.Event(lambda t: t - 1, action=note("a")), hn.Event(lambda t: 2 * t - 2, action=note("b"))]
    assert hn.solve(BALL, (0, 2), [50.0], events=events).success
    assert told == [("a", 1.0), ("b", 1.0)]


def test_an_ode_and_first_order_states_can_jump():
    decay = hn.ODE(lambda x: -x, names=["x"])
    refill = hn.Event(lambda x: x[0] - 0.5, direction=-1, action=lambda x: {"x": x + 0.5})
    sol = hn.solve(decay, (0, 5), [1.0], events=refill)
    np.testing.assert_allclose(sol.t_events[0], np.log(2) * np.arange(1, 8), rtol=1e-6)
    counter = hn.System(1.0, [-G], states={"bounces": 0.0}, rate=lambda s: 0 * s, names=["h"])
    count = hn.Event(lambda q: q[0], direction=-1, action=lambda v, s: {"v": -v, "s": s + 1})
    assert hn.solve(counter, (0, 3), [1.0], events=count).s[0, -1] == 3


def test_backward_time():
    made = hn.mechanisms.pendulum()
    turn = hn.Event(lambda q: q[0], action=lambda v: {"v": -v})
    sol = hn.solve(made.system, (5, 0), made.q0, made.v0, events=turn)
    assert sol.success
    assert sol.t_events[0].size > 3
    assert np.all(np.diff(sol.t) <= 0)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda v: {"velocity": v}, "returned {'velocity'"),
        (lambda: 3.0, "returned 3.0; return None or a dict"),
        (lambda v: {"v": [1.0, 2.0]}, "v: 2 numbers; return 1"),
        (lambda: {"q": np.nan}, "q: nan"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda nonsense: None, "'nonsense' is not known; it may ask for t, q, v, a, p, u"),
        (lambda: {"parameters": {"k": 1}}, "'k' unknown; this system has none"),
        (lambda: {"impulse": [1.0, 2.0]}, "impulse: shape"),
    ],
)
def test_what_is_wrong_ends_the_run_and_is_told(action, message):
    sol = hn.solve(BALL, (0, 2), [1.0], events=hn.Event(lambda q: q[0], action=action))
    assert not sol.success
    assert message in sol.message
    assert "events[0].action" in sol.message
    assert sol.t.size > 2
    assert abs(sol.q[0, -1]) < 1e-9


def test_a_velocity_that_leaves_the_constraints_is_refused():
    made = hn.mechanisms.pendulum()
    leave = hn.Event(lambda q: q[0], action=lambda v: {"v": v + 1})
    sol = hn.solve(made.system, (0, 3), made.q0, made.v0, events=leave)
    assert not sol.success
    assert "violates the differentiated constraints" in sol.message


def test_an_action_without_end_is_noticed():
    stuck = hn.Event(lambda q: q[0], direction=-1, action=lambda v: {"q": [1e-9], "v": -abs(v)})
    sol = hn.solve(BALL, (0, 2), [1.0], events=stuck, max_steps=500)
    assert not sol.success
    assert "were not enough" in sol.message


def test_nothing_grows_but_the_result():
    sol = hn.solve(BALL, (0, 50), [1.0], events=bounce(1.0), t_eval=[50.0])
    assert sol.success
    assert sol.t.size == 1
    assert sol.t_events[0].size == 55
    assert len(sol.pieces) == 1


@pytest.mark.parametrize("motion", ["smooth"])
def test_combinations_that_mean_nothing_are_refused(motion):
    with pytest.raises(ValueError, match="motion='smooth' cannot be interrupted"):
        hn.solve(BALL, (0, 2), [1.0], events=bounce(0.5), motion=motion)
    constant = hn.Method(hn.GGL(), hn.BDF(order=2, step=1e-3))
    with pytest.raises(ValueError, match="constant order"):
        hn.solve(BALL, (0, 2), [1.0], events=bounce(0.5), method=constant)


def test_a_stiff_system_is_not_begun_explicitly_after_each_event():
    def stiff(q, v):
        return np.array([-1e6 * (q[0] - np.cos(v[1])) - 2e3 * v[0], -q[1]])

    system = hn.System(np.ones(2), stiff, names=["fast", "slow"])
    nudge = hn.Event(lambda q: q[1], action=lambda v: {"v": 1.001 * v})
    sol = hn.solve(system, (0, 40), [1.0, 1.0], events=nudge)
    assert sol.success
    assert sol.t_events[0].size > 8
    assert "bdf" in sol.method
    assert sol.steps < 20_000


@pytest.mark.parametrize(
    ("method", "settings"),
    [("index2", {}), ("index1", {}), ("baumgarte", {}), ("dopri5", {"projection": False}), ("auto", {})],
)
@pytest.mark.parametrize("action", [lambda: None, lambda v: {"v": -v}])
def test_methods_that_drift_find_an_event_once(method, settings, action):
    """Although the state is moved onto the constraints behind it."""
    pendulum = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1, names=["x", "y"])
    event = hn.Event(lambda q: q[1] + 0.5, action=action)
    sol = hn.solve(pendulum, (0, 4), [1, 0], method=method, events=event, rtol=1e-5, **settings)
    assert sol.success, sol.message
    assert np.min(np.diff(sol.t_events[0])) > 0.1
    if method != "index1":
        sim = hn.Simulator(pendulum, [1, 0], method=method, events=event, rtol=1e-5, **settings)
        sim.step(4.0)
        assert sim.t_events[0].size == sol.t_events[0].size


def test_an_action_that_brings_its_own_event_about_is_told_soon():
    """A billion interruptions in each second of the motion would be needed."""
    event = hn.Event(lambda q: q[0] - 0.5, action=lambda: {"q": [0.5 + 1e-9], "v": [-1.0]})
    sol = hn.solve(hn.System(1.0, lambda q: -q), (0, 7), [1.0], events=event)
    assert not sol.success
    assert "interruptions follow each other" in sol.message
    assert sol.t_events[0].size < 2000


def test_interruptions_that_are_many_but_not_too_many_go_on():
    """Those of a ball that bounces come closer and closer, until it is stopped."""
    stop = hn.Event(
        lambda q: q[0],
        direction=-1,
        action=lambda v: {"v": -0.99 * v, "stop": abs(v[0]) < 1e-4},
    )
    sol = hn.solve(hn.System(1.0, [-9.81]), (0, 1000), [1.0], events=stop)
    assert sol.success, sol.message
    assert sol.t_events[0].size > 1000

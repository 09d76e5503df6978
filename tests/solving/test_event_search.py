"""Zeros of events that share a step, touch zero, or are NaN; events of accelerations and multipliers."""

import math

import numpy as np
import pytest

import holonome as hn

FINE = {"rtol": 1e-12, "atol": 1e-14}
PLAIN = {"rtol": 1e-9, "atol": 1e-11}
OSCILLATOR = hn.System(1.0, lambda q: -q, names=["x"])
CIRCLE = hn.System(np.eye(2), np.zeros(2), lambda q: q @ q - 1, names=["x", "y"])
"""At unit speed: x = cos t, y = sin t, λ = ½."""
ROOF = hn.System(1.0, [-1.0], names=["height"])
"""h = t − t²/2 from the ground at unit speed, in steps as long as one likes: ½ at t = 1, back at t = 2."""


def below(peak, depth):
    """Zeros of sin(t) − (peak − depth) around t = π/2."""
    first = math.asin(peak - depth)
    return np.array([first, math.pi - first])


class Untraced:
    """Something that only plain numbers can be given to."""

    def __init__(self, function):
        self.function = function

    def __call__(self, t, q):
        return float(self.function(float(t), [float(x) for x in q]))


@pytest.mark.parametrize("method", ["dop853", "dopri5", "bdf", "ggl", "index1"])
@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("depth", [1e-2, 1e-4, 1e-6])
def test_two_zeros_in_one_step(method, way, depth):
    """Both are found, whichever way time goes, and with the right direction."""
    level = 1 - depth
    events = [
        lambda q: q[0] - level,
        hn.Event(lambda q: q[0] - level, direction=1),
        hn.Event(lambda q: q[0] - level, direction=-1),
        Untraced(lambda t, q: q[0] - level),
        lambda q: q[0] - (1 + depth),
    ]
    tolerances = FINE if method == "dop853" else PLAIN
    sol = hn.solve(OSCILLATOR, (0, way * 4), [0.0], [way * 1.0], method=method, events=events, **tolerances)
    zeros = way * below(1, depth)
    close = {"atol": 1e-10 if method == "dop853" else 1e-6}
    assert sol.success
    np.testing.assert_allclose(sol.t_events[0], zeros, **close)
    np.testing.assert_allclose(sol.t_events[1], zeros[:1], **close)
    np.testing.assert_allclose(sol.t_events[2], zeros[1:], **close)
    np.testing.assert_allclose(sol.t_events[3], zeros, **close)
    assert sol.t_events[4].size == 0
    np.testing.assert_allclose(sol.q_events[0][:, 0], level, atol=1e-12)


@pytest.mark.parametrize("step", [3.0, 10.0])
def test_zeros_of_a_polynomial_motion_in_one_step(step):
    """One step spans the flight: ground, two passages of a height, ground again."""
    events = [lambda q: q[0], lambda q: q[0] - 0.375, lambda v: v[0], Untraced(lambda t, q: q[0] - 0.375)]
    sol = hn.solve(ROOF, (0, step), [0.0], [1.0], method="dop853", step=step, events=events)
    assert sol.steps == 1
    np.testing.assert_allclose(sol.t_events[0], [2.0], rtol=1e-12)
    np.testing.assert_allclose(sol.t_events[1], [0.5, 1.5], rtol=1e-12)
    np.testing.assert_allclose(sol.t_events[2], [1.0], rtol=1e-12)
    np.testing.assert_allclose(sol.t_events[3], [0.5, 1.5], rtol=1e-12)


@pytest.mark.parametrize("method", ["dop853", "bdf"])
@pytest.mark.parametrize(("terminal", "at"), [(True, 0), (2, 1), (3, None)])
def test_terminal_events_among_several_in_a_step(method, terminal, at):
    """The run ends at the one that counts, and so does all that is known of it."""
    depth = 1e-4
    event = hn.Event(lambda q: q[0] - (1 - depth), terminal=terminal)
    sol = hn.solve(
        OSCILLATOR, (0, 3), [0.0], [1.0], method=method, dense_output=True,
        events=[event, lambda t: t - 1.58],
        **PLAIN,
    )  # fmt: skip
    zeros = below(1, depth)
    if at is None:
        assert sol.status == 0
        return
    assert sol.status == 1
    np.testing.assert_allclose(sol.t[-1], zeros[at], atol=1e-7)
    assert sol.t_events[0].size == at + 1
    assert sol.t_events[0][-1] == sol.t[-1]
    assert sol.t_events[1].size == at
    assert np.all(np.diff(sol.t) > 0)
    np.testing.assert_allclose(sol.sol(sol.t[-1])[0], 1 - depth, atol=1e-12)
    with pytest.raises(ValueError, match="t:"):
        sol.sol(sol.t[-1] + 1e-6)


def test_t_eval_ends_at_a_terminal_event_within_a_dip():
    event = hn.Event(lambda q: q[0] - (1 - 1e-4), terminal=True)
    times = np.linspace(0, 3, 301)
    sol = hn.solve(OSCILLATOR, (0, 3), [0.0], [1.0], events=event, t_eval=times, **FINE)
    stop = below(1, 1e-4)[0]
    np.testing.assert_array_equal(sol.t, times[times <= stop])
    np.testing.assert_allclose(sol.q[0], np.sin(sol.t), atol=1e-11)


def test_touching_zero():
    """What is zero to rounding counts once, where no direction is asked for; what keeps away does not."""
    events = [
        lambda t: (t - 1.234) ** 2,
        hn.Event(lambda t: (t - 1.234) ** 2, direction=1),
        lambda t: (t - 1.234) ** 2 + 1e-9,
        lambda t: 1 - np.sin(t),
        lambda q: (q[0] - 0.375) ** 2,
        lambda v: v @ v,
        Untraced(lambda t, q: (t - 1.234) ** 2),
    ]
    sol = hn.solve(ROOF, (0, 3), [0.0], [1.0], events=events, step=0.7)
    np.testing.assert_allclose(sol.t_events[0], [1.234], rtol=1e-12)
    assert sol.t_events[1].size == 0
    assert sol.t_events[2].size == 0
    np.testing.assert_allclose(sol.t_events[3], [math.pi / 2], atol=1e-7)
    np.testing.assert_allclose(sol.t_events[4], [0.5, 1.5], atol=1e-10)
    np.testing.assert_allclose(sol.t_events[5], [1.0], atol=1e-10)
    np.testing.assert_allclose(sol.t_events[6], [1.234], rtol=1e-8)


def test_an_event_that_is_zero_at_the_start_and_again_in_the_first_step():
    for event in (lambda q: q[0], Untraced(lambda t, q: q[0])):
        sol = hn.solve(ROOF, (0, 3), [0.0], [1.0], events=hn.Event(event, terminal=True), step=3.0)
        np.testing.assert_allclose(sol.t[-1], 2.0, rtol=1e-12)


@pytest.mark.parametrize("method", ["dop853", "bdf", "ggl", "cs", "srm", hn.Method(hn.SRM(), hn.BDF())])
def test_two_zeros_on_a_constrained_motion(method):
    depth = 1e-3
    events = [lambda q: q[1] - (1 - depth), lambda v: v[0] + (1 - depth), lambda a: a[1] + (1 - depth)]
    sol = hn.solve(
        CIRCLE, (0, 3), [1.0, 0.0], [0.0, 1.0], method=method, events=events, rtol=1e-8, atol=1e-10
    )
    assert sol.success, sol.message
    for times in sol.t_events:
        np.testing.assert_allclose(times, below(1, depth), atol=1e-4)


def test_two_zeros_of_problems_of_index_2_and_3():
    """X = sin t is led there by a constraint; x of index 2 has no velocities to look at."""
    level, zeros = 1 - 1e-3, below(1, 1e-3)
    second = hn.Index2System(lambda t: np.zeros(1), np.array([1.0]), lambda t, x: x[0] - np.sin(t), n=1)
    third = hn.Index3System(lambda t: np.zeros(1), np.array([1.0]), lambda t, x: x[0] - np.sin(t), n=1)
    events = lambda x: x[0] - level  # noqa: E731
    for method in ("srm", hn.Method(hn.SRM(), hn.BDF())):
        sol = hn.solve(second, (0, 3), [0.0], method=method, events=events, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(sol.t_events[0], zeros, atol=1e-4)
        sol = hn.solve(third, (0, 3), [0.0], [1.0], method=method, events=events, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(sol.t_events[0], zeros, atol=1e-4)


def test_two_zeros_of_an_ode_and_of_a_plain_integrator():
    rotation = hn.ODE(lambda x: np.array([x[1], -x[0]]), n=2)
    sol = hn.solve(rotation, (0, 3), [0.0, 1.0], events=lambda x: x[0] - (1 - 1e-6), **FINE)
    np.testing.assert_allclose(sol.t_events[0], below(1, 1e-6), atol=1e-9)

    class Midpoint(hn.PlainIntegrator):
        step = 0.1

        def advance(self, equations, t, y, dy, h):
            new = y + h * equations.rate(t + h / 2, y + h / 2 * dy)
            return new, equations.rate(t + h, new), None

    method = hn.Method(hn.UnderlyingODE(), Midpoint())
    sol = hn.solve(
        OSCILLATOR, (0, 3), [0.0], [1.0], method=method, events=lambda q: q[0] - (1 - 1e-3), step=0.1
    )
    np.testing.assert_allclose(sol.t_events[0], below(1, 1e-3), atol=0.05)


def test_events_of_multipliers_and_accelerations():
    """The rope of a pendulum from the horizontal carries 3 g sin φ: that is m g where sin φ = 1/3."""
    g = 9.81
    pendulum = hn.System(np.eye(2), [0.0, -g], lambda q: (q @ q - 1) / 2, names=["x", "y"])
    events = [
        lambda lam: lam[0] - g,
        lambda q: q[1] + 1 / 3,
        lambda q: q[0],
        lambda a, lam, q: a[0] + (lam[0] + 1) * q[0],
    ]
    for method in ("dop853", "bdf", "ggl", "srm"):
        sol = hn.solve(pendulum, (0, 3), [1.0, 0.0], method=method, events=events, rtol=1e-9, atol=1e-11)
        assert sol.t_events[0].size == sol.t_events[1].size > 2
        np.testing.assert_allclose(sol.t_events[0], sol.t_events[1], atol=1e-5)
        assert sol.t_events[2].size == sol.t_events[3].size > 1
        np.testing.assert_allclose(sol.t_events[2], sol.t_events[3], atol=1e-5)
    taut = hn.Event(lambda lam: lam[0] - (3 * g - 1e-3), terminal=2)
    sol = hn.solve(pendulum, (0, 3), [1.0, 0.0], events=taut, rtol=1e-11, atol=1e-13)
    assert sol.status == 1
    np.testing.assert_allclose(-3 * g * sol.q_events[0][:, 1], 3 * g - 1e-3, rtol=1e-9)
    assert sol.q_events[0][0, 0] * sol.q_events[0][1, 0] < 0


def test_events_of_states_and_unknowns():
    """S′ = q of x = sin t: s = 1 − cos t, just below 2; w is the angle of x, asin x."""
    system = hn.System(
        1.0, lambda q: -q, states={"s": 0.0}, rate=lambda q: q,
        unknowns={"w": 0.0}, equations=lambda q, w: w - 0.5 * q,
    )  # fmt: skip
    events = [lambda s: s[0] - (2 - 1e-6), lambda w: w[0] - 0.5 * (1 - 1e-6), lambda a: a[0] + (1 - 1e-6)]
    sol = hn.solve(system, (0, 5), [0.0], [1.0], events=events, **FINE)
    near = math.acos(1 - 1e-6)
    np.testing.assert_allclose(sol.t_events[0], [math.pi - near, math.pi + near], atol=1e-8)
    np.testing.assert_allclose(sol.t_events[1], below(1, 1e-6), atol=1e-8)
    np.testing.assert_allclose(sol.t_events[2], below(1, 1e-6), atol=1e-8)


def test_arguments_that_an_event_cannot_have():
    with pytest.raises(hn.ModelError, match=r"events\[0\].*'lam'.*does not have"):
        hn.solve(OSCILLATOR, (0, 1), [0.0], events=lambda lam: lam[0])
    with pytest.raises(hn.ModelError, match=r"events\[0\]: cannot be traced.*'a'"):
        hn.solve(OSCILLATOR, (0, 1), [0.0], events=lambda a: float(a[0]))
    with pytest.raises(hn.ModelError, match=r"events\[0\].*'x'.*t, q, v, p, a"):
        hn.solve(OSCILLATOR, (0, 1), [0.0], events=lambda x: x)


@pytest.mark.parametrize("method", ["dop853", "bdf"])
def test_an_event_that_is_not_a_number_stops_the_run(method):
    """At the start, on the way, or only between two points."""
    late = hn.solve(
        OSCILLATOR,
        (0, 3),
        [0.0],
        [1.0],
        method=method,
        events=[lambda q: q[0], lambda q: np.sqrt(0.5 - q[0])],
    )
    assert not late.success
    assert "events[1] is NaN" in late.message
    assert late.t[-1] <= math.pi / 6 + 1e-6
    start = hn.solve(OSCILLATOR, (0, 3), [0.0], [1.0], method=method, events=lambda q: np.log(q[0] - 0.5))
    assert not start.success
    assert "stopped at t = 0: events[0] is NaN" in start.message


def test_an_event_that_is_not_a_number_inside_a_step():
    sol = hn.solve(ROOF, (0, 2), [0.0], [1.0], events=lambda t: np.sqrt((t - 0.9) * (t - 1.1)), step=2.0)
    assert not sol.success
    assert "events[0] is NaN" in sol.message


def test_rates_are_renewed_behind_a_switch():
    """The force turns round at t = 1; in the step behind it x falls below its value there and returns."""
    system = hn.System(1.0, lambda t: np.where(t > 1, 4.0, -2.0) * np.ones(1))
    # v = 1 − 2t to −1 at t = 1, x = 0 there; then x = −(t − 1) + 2 (t − 1)², zero again at t = 1.5
    sol = hn.solve(
        system, (0, 3), [0.0], [1.0], step=3.0, events=[lambda q: q[0] + 0.12, lambda v: v[0] + 1 + 1e-9]
    )
    np.testing.assert_allclose(sol.t_events[0], [1.2, 1.3], rtol=1e-9)
    assert sol.t_events[1].size == 0

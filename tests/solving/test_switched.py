"""Constraints that events release and lock: breaking rods, latches, clutches."""

import pickle

import numpy as np
import pytest

import holonome as hn

G = 9.81


def pendulum(length=1.0):
    return hn.System(
        np.eye(2),
        [0.0, -G],
        lambda q: q @ q - length**2,
        potential=lambda q: G * q[1],
        names=["x", "y"],
        constraint_names=["rod"],
    )


def breaks():
    return hn.Event(lambda q: q[0], direction=1, action=lambda: {"release": "rod"})


@pytest.mark.parametrize("method", ["auto", "dopri5", "bdf", "ggl"])
def test_a_rod_breaks(method):
    """At the lowest point; then the mass flies along a parabola."""
    sol = hn.solve(pendulum(), (0, 2), [-1.0, 0.0], events=breaks(), method=method, rtol=1e-9, atol=1e-11)
    assert sol.success, sol.message
    t = sol.t - sol.t_events[0][0]
    flight = t > 0
    speed = np.sqrt(2 * G)
    np.testing.assert_allclose(sol.q[0, flight], speed * t[flight], atol=1e-6)
    np.testing.assert_allclose(sol.q[1, flight], -1 - G * t[flight] ** 2 / 2, atol=1e-6)
    assert np.all(sol.lam[0, flight] == 0)
    assert np.all(np.isnan(sol.g[0, flight]))
    assert sol.drift[0] < 1e-8
    assert sol.a[1, -1] == pytest.approx(-G)
    assert sol.t_events[0].size == 1


def discs(first=2.0, second=3.0):
    """Two discs on one axis, with a clutch."""
    return hn.System(
        [first, second],
        [0.0, 0.0],
        velocity_constraint=lambda v: v[0] - v[1],
        constraint_names=["clutch"],
        names=["left", "right"],
    )


def shafts(first=2.0, second=3.0):
    """The same, as a constraint on angles."""
    return hn.System(
        [first, second], [0.0, 0.0], lambda q: q[0] - q[1], constraint_names=["clutch"], names=["l", "r"]
    )


@pytest.mark.parametrize("make", [discs, shafts])
def test_a_clutch_locks_where_it_is(make):
    """Angular momentum is kept, and energy lost is that of the difference with the reduced inertia."""
    close = hn.Event(lambda t: t - 1.0, action=lambda: {"lock": "clutch"})
    open_ = hn.Event(lambda t: t - 2.0, action=lambda: {"release": ["clutch"]})
    sol = hn.solve(make().released("clutch"), (0, 3), [0, 0], [5.0, 0.0], events=[close, open_])
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.v[:, -1], 2.0, rtol=1e-12)
    np.testing.assert_allclose(sol.q[:, -1], [5.0 + 4.0, 4.0], rtol=1e-8)
    assert sol.impacts.contact == ["clutch"]
    assert sol.impacts.t[0] == pytest.approx(1.0)
    assert sol.impacts.energy_lost[0] == pytest.approx(0.5 * (2 * 3 / 5) * 25)
    assert abs(sol.impacts.impulse[0]) == pytest.approx(6.0)
    assert sol.impacts.before[0] == pytest.approx(5.0)
    assert sol.lam.shape == (1, sol.t.size)


def test_a_latch_holds_a_spring_and_lets_it_go():
    """A mass on a spring is caught where it turns, and goes on later as if nothing had been."""
    system = hn.System(
        1.0,
        lambda q: -4 * q,
        lambda q: q[0] + 1.0,
        constraint_names=["latch"],
        potential=lambda q: 2 * q[0] ** 2,
        n=1,
    )
    catch = hn.Event(lambda v: v[0], direction=1, terminal=None, action=lambda: {"lock": "latch"})
    let_go = hn.Event(lambda t: t - 3.0, action=lambda: {"release": "latch"})
    sol = hn.solve(system.released("latch"), (0, 4), [1.0], events=[catch, let_go], rtol=1e-10, atol=1e-12)
    assert sol.success, sol.message
    assert sol.t_events[0][0] == pytest.approx(np.pi / 2, rel=1e-8)
    held = (sol.t > np.pi / 2 + 1e-6) & (sol.t < 3)
    np.testing.assert_allclose(sol.q[0, held], -1, atol=1e-8)
    assert sol.q[0, -1] == pytest.approx(-np.cos(2 * 1.0), abs=1e-7)
    assert sum(sol.impacts.energy_lost) == pytest.approx(0.0, abs=1e-15)


def test_the_simulator_takes_the_same_steps_and_goes_back():
    system = discs().released("clutch")
    close = hn.Event(lambda t: t - 1.05, action=lambda: {"lock": "clutch"})
    sim = hn.Simulator(system, [0, 0], [5.0, 0.0], events=close)
    sim.step(0.5)
    before = sim.snapshot()
    sim.step(1.0)
    assert sim.impacts.energy_lost[0] == pytest.approx(15.0)
    assert sim.lam.shape == (1,)
    after, locked = sim.y, sim.snapshot()
    sol = hn.solve(system, (0, 1.5), [0, 0], [5.0, 0.0], events=close)
    np.testing.assert_allclose(after, sol.states[-1], rtol=1e-12)
    sim.restore(before)
    assert sim.v.tolist() == [5.0, 0.0]
    sim.step(1.0)
    assert np.array_equal(sim.y, after)
    sim.restore(locked)
    sim.step(1.0)
    np.testing.assert_allclose(sim.v, 2.0)
    sim.reset()
    assert sim.v.tolist() == [5.0, 0.0]
    sim.step(0.5)
    assert sim.v.tolist() == [5.0, 0.0]


def test_saved_and_pickled(tmp_path):
    sol = hn.solve(pendulum(), (0, 1), [-1.0, 0.0], events=breaks())
    for other in (pickle.loads(pickle.dumps(sol)), hn.Solution.load(sol.save(tmp_path / "run.npz"))):
        for part in ("lam", "g", "a", "energy"):
            assert np.array_equal(getattr(other, part), getattr(sol, part), equal_nan=True)
    system = pickle.loads(pickle.dumps(pendulum().released("rod")))
    assert system.m == 0
    assert hn.solve(system, (0, 1), [0.0, 1.0]).q[1, -1] == pytest.approx(1 - G / 2)


def test_with_contacts():
    """The mass falls off its rod onto a floor, and bounces there to rest."""
    floor = hn.Contact(lambda q: q[1] + 2.0, restitution=0.5, name="floor")
    system = hn.System(
        np.eye(2), [0.0, -G], lambda q: q @ q - 1, constraint_names=["rod"], contacts=floor, n=2
    )
    sol = hn.solve(system, (0, 4), [-1.0, 0.0], events=breaks())
    assert sol.success, sol.message
    assert sol.v[0, -1] == pytest.approx(np.sqrt(2 * G), rel=1e-5)
    assert sol.contact("floor").status[-1] == "closed"
    assert abs(sol.q[1, -1] + 2) < 1e-10
    first = sol.t_events[0][0]
    assert sol.impacts.t[-1] == pytest.approx(first + 3 * np.sqrt(2 / G), rel=1e-4)


def test_joints_of_a_mechanism():
    """The tip of a double pendulum breaks off at its joint, and falls with the momentum it has."""
    m = hn.Mechanism("double", gravity=(0, -G), coordinates="absolute")
    upper = m.body("upper", 1.0, 0.1, points={"A": (-0.5, 0), "B": (0.5, 0)})
    lower = m.body("lower", 1.0, 0.1, points={"B": (-0.5, 0)})
    m.revolute("A", m.ground.at(0, 0), upper["A"])
    m.revolute("B", upper["B"], lower["B"])
    snap = hn.Event(lambda t: t - 0.4, action=lambda: {"release": "B"})
    sol = hn.solve(m, (0, 1), start={"A": 0.0, "B": 0.0}, events=snap)
    assert sol.success, sol.message
    free = sol.t > 0.4
    lower = sol.body("lower")
    np.testing.assert_allclose(np.diff(lower.velocity[0][free]), 0, atol=1e-9)
    assert np.max(np.abs(sol.reaction("B").force[:, free])) == 0
    assert np.max(np.abs(sol.reaction("B").force[:, ~free])) > 1


def test_events_that_ask_for_multipliers_see_those_of_all_constraints():
    """Zero where one is released, also beside others, whose rows then lie elsewhere."""
    rail = hn.System(
        np.eye(3),
        [0.0, -G, 2.0],
        lambda q: np.array([q[:2] @ q[:2] - 1, q[2] - 5.0]),
        names=["x", "y", "z"],
        constraint_names=["rod", "stop"],
    )
    strong = hn.Event(lambda lam: lam[0] - 13, direction=1, action=lambda: {"release": "rod"})
    other = hn.Event(lambda lam: lam[1] - 1.0)  # it is always 2
    seen = []
    late = hn.Event(lambda t: t - 0.9, action=lambda lam: seen.append(lam.tolist()))
    sol = hn.solve(rail, (0, 1), [1, 0, 5], events=[strong, other, late])
    assert sol.success, sol.message
    at = sol.q_events[0][0]
    assert 1.5 * G * -at[1] == pytest.approx(13, rel=1e-5)  # λ = 3 g |y| / 2
    assert sol.t_events[1].size == 0
    assert seen == [pytest.approx([0.0, 2.0])]


def test_what_makes_no_sense_is_refused():
    def solved(action):
        return hn.solve(pendulum(), (0, 1), [1.0, 0.0], events=hn.Event(lambda t: t - 0.5, action=action))

    assert (
        "there is no constraint 'bar'; the constraints are rod" in solved(lambda: {"release": "bar"}).message
    )
    assert "locked as well" in solved(lambda: {"release": "rod", "lock": "rod"}).message
    with pytest.raises(ValueError, match="there is no constraint 'bar'"):
        pendulum().released("bar")
    assert solved(lambda: {"lock": "rod"}).success  # it holds already

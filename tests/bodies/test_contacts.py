"""Contacts of mechanisms: stops, slack ropes, points and balls that touch."""

import numpy as np
import pytest

import holonome as hn
from holonome.errors import ModelError

G = 9.81


def test_a_bowling_ball_slides_then_rolls():
    """It rolls from t = 2 v / (7 μ g) on, with 5/7 of its speed."""
    mu, v, r, m = 0.2, 4.0, 0.1, 5.0
    world = hn.Mechanism("alley", gravity=(0, 0, -G))
    ball = world.body("ball", m, 0.4 * m * r**2 * np.ones(3), center=(0, 0, 0))
    world.free("ball")
    world.touch("lane", world.ground.at(0, 0, 0), ball.at(0, 0, 0), radius=r, friction=mu)
    start, speed = {"ball": {"position": (0, 0, r)}}, {"ball": {"velocity": (v, 0, 0)}}
    sol = hn.solve(world, (0, 2), start=start, speed=speed, rtol=1e-9)
    assert sol.success, sol.message
    rolls = 2 * v / (7 * mu * G)
    status = np.array(sol.contact("lane").status)
    assert sol.t[np.flatnonzero(status == "sticks")[0]] == pytest.approx(rolls, rel=1e-6)
    velocity = sol.body("ball").velocity
    assert velocity[0, -1] == pytest.approx(5 / 7 * v, rel=1e-6)
    assert sol.contact("lane").force[-1] == pytest.approx(m * G)


def double_pendulum(**law):
    m = hn.Mechanism("arm", gravity=(0, -G))
    before, length = m.ground.at(0, 0), 1.0
    for name in ("upper", "lower"):
        bar = m.body(name, 1.0, 1 / 12, center=(length / 2, 0), points={"a": (0, 0), "b": (length, 0)})
        m.revolute(f"{name} hinge", before, bar["a"])
        before = bar["b"]
    m.stops("lower hinge", 0.0, 2.0, **law)
    return m


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_an_elbow_with_limits(coordinates):
    """Elastic stops keep the energy; behind each, the relative rate is reversed and angular momentum about
    the shoulder is what it was.
    """
    m = double_pendulum(restitution=1.0)
    m = m if coordinates == "joint" else double_pendulum(restitution=1.0)
    sol = hn.solve(m, (0, 5), start={"upper hinge": 0.2, "lower hinge": 1.0}, rtol=1e-9)
    assert sol.success, sol.message
    assert len(sol.impacts) > 2
    assert np.max(np.abs(sol.energy - sol.energy[0])) < 1e-6 * G
    jumps = np.flatnonzero(np.diff(sol.t) == 0)
    rate = sol.joint("lower hinge").rate
    np.testing.assert_allclose(rate[jumps + 1], -rate[jumps], rtol=1e-9)
    momentum = sol.system.at(sol.t, sol.q, sol.v).momentum[0]
    np.testing.assert_allclose(momentum[jumps + 1], momentum[jumps], rtol=1e-9)
    angle = sol.joint("lower hinge").angle
    assert angle.min() > -1e-9
    assert angle.max() < 2.0 + 1e-9


def test_an_elbow_that_locks_against_its_stop():
    """Plastic: the arm stays straight while it is pressed against the stop, as one bar."""
    m = double_pendulum(restitution=0.0)
    sol = hn.solve(m, (0, 3), start={"upper hinge": 0.0, "lower hinge": 0.5}, rtol=1e-9)
    assert sol.success, sol.message
    stop = sol.contact("lower hinge lower")
    closed = stop.closed
    assert closed.any()
    assert not closed.all()
    np.testing.assert_allclose(sol.joint("lower hinge").angle[closed], 0, atol=1e-11)
    assert stop.force.min() >= 0
    assert sum(sol.impacts.energy_lost) == pytest.approx(sol.energy[0] - sol.energy[-1], rel=1e-6)


def test_a_rope_over_a_pulley_lifts_when_it_is_taut():
    """A mass on a slack rope falls, is caught and hangs."""
    m = hn.Mechanism("crane", gravity=(0, -G))
    load = m.body("load", 2.0, 0.1, points={"hook": (0, 0)})
    m.free("load")
    m.slack_rope("rope", [m.ground.at(-1, 0), m.ground.at(1, 0), load["hook"]], 3.0)
    sol = hn.solve(m, (0, 2), start={"load": {"position": (1, -0.5)}})
    assert sol.success, sol.message
    rope = sol.contact("rope")
    assert sol.impacts.t[0] == pytest.approx(np.sqrt(2 * 0.5 / G), rel=1e-9)
    assert rope.status[0] == "open"
    assert rope.status[-1] == "closed"
    assert rope.force[-1] == pytest.approx(2.0 * G)
    assert sum(sol.impacts.energy_lost) == pytest.approx(2.0 * G * 0.5)


def test_a_wheel_lifts():
    """A car that brakes with its front wheel: the back one lifts if friction is strong enough."""
    h, half, mass = 0.6, 1.0, 1000.0

    def car(mu):
        m = hn.Mechanism("car", gravity=(0, -G))
        body = m.body("car", mass, 800.0, points={"front": (half, -h), "back": (-half, -h)})
        m.free("car")
        m.touch("front", m.ground.at(0, 0), body["front"], friction=mu)
        m.touch("back", m.ground.at(0, 0), body["back"])
        return hn.solve(
            m, (0, 0.1), start={"car": {"position": (0, h)}}, speed={"car": {"velocity": (20.0, 0.0)}}
        )

    sol = car(0.8)
    assert sol.success, sol.message
    # moments about the center: N_f (half - mu h) = N_b half, N_f + N_b = m g
    front = mass * G * half / (2 * half - 0.8 * h)
    assert sol.contact("front").force[-1] == pytest.approx(front, rel=1e-9)
    assert sol.contact("back").force[-1] == pytest.approx(mass * G - front, rel=1e-9)
    sol = car(1.8)  # mu h > half
    assert sol.success, sol.message
    assert sol.contact("back").status[-1] == "open"
    assert sol.contact("back").gap[-1] > 0


def test_the_simulator_knows_joints_and_contacts_by_name():
    m = double_pendulum(restitution=0.3)
    sim = hn.Simulator(m, start={"upper hinge": 0.0, "lower hinge": 0.5})
    for _ in range(50):
        sim.step(0.02)
    sol = hn.solve(m, (0, 1), start={"upper hinge": 0.0, "lower hinge": 0.5}, t_eval=[1.0])
    assert sim.joint("lower hinge").angle == pytest.approx(sol.joint("lower hinge").angle[-1], abs=1e-5)
    here = sim.contact("lower hinge lower")
    assert here.status in ("open", "closed")
    force = sim.reaction("upper hinge").force
    np.testing.assert_allclose(force, sol.reaction("upper hinge").force[:, -1], rtol=1e-3, atol=1e-3)


def test_what_makes_no_sense_is_refused():
    m = double_pendulum()
    with pytest.raises(ModelError, match="stops without lower= and upper="):
        m.stops("upper hinge")
    with pytest.raises(ModelError, match=r"restitution: 1\.5; give a number from 0 to 1"):
        m.stops("upper hinge", 0.0, restitution=1.5)

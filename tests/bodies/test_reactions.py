"""Reactions, power and work: Newton's and Euler's equations hold for every body."""

import numpy as np
import pytest

import holonome as hn
from bodies import models
from bodies.models import bar
from holonome.bodies.named_results import in_space


def imbalance(sol):
    """By how much forces and moments on a body miss mass times acceleration, the largest of all bodies."""
    system, worst, size = sol.system, 0.0, 1.0
    reactions = {name: sol.reaction(name) for name, joint in system.joints.items() if joint.what != "free"}
    named = sol._by_name
    for name in system.bodies:
        if name == "ground":
            continue
        ((center, inertial, spin_rate),) = named._needed({name})
        force, moment = -inertial, -spin_rate
        for key, reaction in reactions.items():
            ends = [end.name for end in system.joints[key].bodies]
            sign = {ends[-1]: 1.0, ends[0]: -1.0}.get(name, 0.0)
            F, T, place = (sign * in_space(reaction.force), sign * in_space(reaction.moment), reaction.place)
            force = force + F
            moment = moment + T + np.cross(in_space(place) - center, F, axis=0)
        for key in system.elements:
            wrenches = system.wrenches[key]
            for wrench, value in zip(wrenches, named._of_wrenches(key, wrenches), strict=True):
                if wrench.body.name == name:
                    force = force + value[3:6]
                    moment = moment + value[6:] + np.cross(value[:3] - center, value[3:6], axis=0)
        worst = max(worst, np.max(np.abs(force)), np.max(np.abs(moment)))
        size = max(size, np.max(np.abs(inertial)))
    return worst / size


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
@pytest.mark.parametrize(
    "model", [model for model in models.ALL if model is not models.stewart], ids=lambda m: m.__name__
)
def test_newton_and_euler_hold_for_every_body(model, coordinates):
    m, start, speed = model(coordinates)
    assert imbalance(hn.solve(m, (0, 1), start=start, speed=speed)) < 1e-10


def test_newton_and_euler_in_a_stewart_platform():
    m, start, speed = models.stewart("joint")
    assert imbalance(hn.solve(m, (0, 0.5), start=start, speed=speed)) < 1e-10


def test_both_kinds_of_coordinates_give_the_same_reactions():
    found = []
    for coordinates in ("joint", "absolute"):
        m, start, speed = models.four_bar(coordinates)
        sol = hn.solve(m, (0, 1), start=start, speed=speed, rtol=1e-11)
        found.append(np.concatenate([sol.reaction(name).force[:, -1] for name in "ABCD"]))
        assert all(sol.reaction(name).determined for name in "ABCD")
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_a_hanging_weight():
    m = hn.Mechanism("weight")
    rod, weight = bar(m, "rod"), m.point_mass("weight", 3.0)
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    m.revolute("B", rod["B"], weight)
    sol = hn.solve(m, (0, 1), start={"A": -np.pi / 2})
    np.testing.assert_allclose(sol.reaction("A").force[:, 0], [0, 4 * 9.81], atol=1e-9)
    np.testing.assert_allclose(sol.reaction("B").force[:, 0], [0, 3 * 9.81], atol=1e-9)
    turned = sol.reaction("A", frame="rod").force[:, 0]
    np.testing.assert_allclose(turned, [-4 * 9.81, 0], atol=1e-9)


def test_the_moment_in_a_weld():
    m = hn.Mechanism("cantilever")
    first, second = bar(m, "first"), bar(m, "second", 2.0, 3.0)
    m.fixed("wall", m.ground.at(0, 0), first["A"])
    m.fixed("weld", first["B"], second["A"])
    pin = bar(m, "pin", 0.1, 1e-3)
    m.revolute("hinge", m.ground.at(0, 0), pin["A"])
    sol = hn.solve(m, (0, 0.1))
    weld, wall = sol.reaction("weld"), sol.reaction("wall")
    assert weld.force[1, 0] == pytest.approx(3 * 9.81)
    assert weld.moment[0] == pytest.approx(3 * 9.81 * 1.0)
    assert wall.moment[0] == pytest.approx(3 * 9.81 * 2.0 + 9.81 * 0.5)


def test_redundant_reactions_are_told_and_their_sum_is_right():
    m = hn.Mechanism("two pins")
    rod = bar(m, "rod")
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    m.revolute("A again", m.ground.at(0, 0), rod["A"])
    for coordinates in ("joint", "absolute"):
        m._coordinates = coordinates
        m._made.clear()
        sol = hn.solve(m, (0, 1), start={"A": -np.pi / 2})
        parts = [sol.reaction("A"), sol.reaction("A again")]
        assert not any(part.determined for part in parts)
        np.testing.assert_allclose(sum(part.force[:, 0] for part in parts), [0, 9.81], atol=1e-9)
    assert m.redundant() == ["A again x", "A again y"]


def test_friction_is_proportional_to_the_reaction():
    m = hn.Mechanism("friction")
    m.revolute("A", m.ground.at(0, 0), bar(m, "rod")["A"])
    m.friction("pin", "A", 0.3, radius=0.05, speed=0.01)
    sol = hn.solve(m, (0, 2), start={"A": -1.0}, rtol=1e-8)
    assert sol.success
    rate, N = sol.joint("A").rate, np.linalg.norm(sol.reaction("A").force, axis=0)
    np.testing.assert_allclose(sol.power("pin"), -0.3 * 0.05 * N * np.tanh(rate / 0.01) * rate, rtol=1e-9)
    assert np.max(np.abs(sol.energy_error)) < 1e-6
    m = hn.Mechanism("block", gravity=(0, -9.81))
    block = m.body("block", 2.0, 1.0)
    m.prismatic("floor", m.ground.at(0, 0), block)
    m.friction("rubbing", "floor", 0.4)
    sol = hn.solve(m, (0, 0.4), speed={"floor": 3.0})
    assert sol.joint("floor").rate[-1] == pytest.approx(3 - 0.4 * 9.81 * 0.4, rel=1e-6)


def test_work_of_springs_and_motors():
    m = hn.Mechanism("lift")
    m.prismatic("rail", m.ground.at(0, 0), m.body("cage", 2.0, 1.0), axis=(0, 1))
    m.force("motor", "rail", lambda t: 25.0 + np.sin(t))
    m.spring("spring", joint="rail", stiffness=8.0, damping=0.5)
    sol = hn.solve(m, (0, 3), rtol=1e-9)
    x, v = sol.joint("rail").displacement, sol.joint("rail").rate
    assert np.max(np.abs(sol.energy_error)) < 1e-7
    total = sol.work("motor") + sol.work("spring")
    np.testing.assert_allclose(total, v**2 + 2 * 9.81 * x, atol=1e-7)
    np.testing.assert_allclose(sol.power("motor"), (25 + np.sin(sol.t)) * v, rtol=1e-12)


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_three_redundant_rows_of_a_four_bar_in_space(coordinates):
    m, start, speed = models.four_bar_in_space(coordinates)
    sol = hn.solve(m, (0, 1), start=start, speed=speed, rtol=1e-9)
    assert sol.success
    assert sol.dense_calls == 0
    assert len(m.redundant(start)) == 3
    assert not any(sol.reaction(name).determined for name in "ABCD")


def test_a_run_that_leaves_its_assembly_is_no_success(monkeypatch):
    m, start, speed = models.four_bar_in_space("absolute")
    system = m.system
    names = list(system.equations.constraints.implied)
    assert len(names) == 3
    first = system.equations.symbols.q[0]
    monkeypatch.setitem(system.equations.constraints.implied, names[0], first)
    sol = hn.solve(m, (0, 1), start=start, speed=speed)
    assert not sol.success
    assert f"has left its assembly: '{names[0]}'" in sol.message

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


@pytest.mark.parametrize("method", ["ggl", "index2", "index3", "bdf"])
def test_newton_and_euler_hold_whatever_the_method(method):
    """The reactions are those of the accelerations, not the multipliers that a method uses on its way."""
    m, start, speed = models.four_bar_in_space("absolute")
    assert imbalance(hn.solve(m, (0, 0.1), start=start, speed=speed, method=method)) < 1e-6


def test_a_run_that_leaves_its_assembly_is_no_success(monkeypatch):
    m, start, speed = models.four_bar_in_space("absolute")
    system = m.system
    names = list(system.equations.constraints.implied)
    assert len(names) == 3
    first = system.equations.symbols.q[0]
    monkeypatch.setitem(system.equations.constraints.implied, names[0], first)
    monkeypatch.setattr(hn.Mechanism, "begin_at", lambda self, *given: None)
    sol = hn.solve(m, (0, 1), start=start, speed=speed)
    assert not sol.success
    assert f"has left its assembly: '{names[0]}'" in sol.message


def gears_of_three_planets():
    """An epicyclic gear whose ring stands still; two of its meshes follow from the others."""
    m = hn.Mechanism("epicyclic")
    m.revolute("sun", m.ground.at(0, 0), m.body("sun wheel", 1.0, 0.02))
    carrier = m.body("carrier", 2.0, 0.1)
    m.revolute("carrier axle", m.ground.at(0, 0), carrier)
    m.revolute("between", carrier, m.bodies["sun wheel"])
    for k in range(3):
        x = 0.2 * np.array([np.cos(2 * np.pi * k / 3), np.sin(2 * np.pi * k / 3)])
        m.revolute(f"pin {k}", carrier.at(*x), m.body(f"planet {k}", 0.5, 0.003))
        m.gear(f"inner {k}", ["between", f"pin {k}"], ratio=-1.0)
        m.gear(f"outer {k}", [f"pin {k}", "carrier axle"], ratio=-1 / 3)
    m.torque("motor", "sun", law=lambda t: 1 + 2 * np.sin(t))
    return m


def test_redundant_gears_are_told_and_their_sum_is_right():
    m, sums = gears_of_three_planets(), []
    meshes = [f"{where} {k}" for where in ("inner", "outer") for k in range(3)]
    for coordinates in ("joint", "absolute"):
        m._coordinates = coordinates
        m._made.clear()
        sol = hn.solve(m, (0, 1), rtol=1e-10)
        assert sol.undetermined == sorted(["between", *(["sun", "carrier axle"]), *meshes])
        assert sol.reaction("pin 0").determined
        np.testing.assert_allclose(sol.joint("sun").angle, 4 * sol.joint("carrier axle").angle, atol=1e-12)
        sums.append(sum(sol.effort(f"inner {k}")[1] for k in range(3))[[0, -1]])
    np.testing.assert_allclose(*sums, rtol=1e-8)
    assert not hn.solve(hn.mechanisms.seven_joint_arm(), (0, 0.01)).undetermined


def test_dependences_of_many_rows_are_found_as_those_of_few(monkeypatch):
    m, _, _ = models.four_bar_in_space("absolute")
    before = m.bodies["rocker"] if "rocker" in m.bodies else list(m.bodies.values())[-1]
    for k in range(5):
        link = bar(m, f"link {k}")
        m.revolute(f"K{k}", before.at(0, 0, 0), link["A"])
        before = link
    m.revolute("K0 again", m.bodies["link 0"]["A"], m.joints["K0"].points[0])
    sol = hn.solve(m, (0, 0.01))
    few = sol.undetermined
    assert "K0" in few
    assert "K1" not in few
    monkeypatch.setattr("holonome.bodies.redundancy._DENSE", 0)
    assert sorted(m.system.undetermined(sol)) == few


def test_the_energy_balance_does_not_depend_on_the_points_of_the_result():
    m = hn.Mechanism("bouncing ball", gravity=(0, 0, -9.81))
    ball = m.body("ball", shape=hn.shapes.Sphere(0.1), density=240.0)
    m.free(ball)
    m.contact("floor", m.ground.at(0, 0, 0), ball, 1e5, radius=0.1, damping=0.3, friction=0.3, speed=0.01)
    start, speed = {"ball": {"position": (0, 0, 0.3)}}, {"ball": {"velocity": (1, 0, 0)}}
    errors = []
    for points in (None, np.linspace(0, 1, 11)):
        sol = hn.solve(m, (0, 1), start=start, speed=speed, rtol=1e-8, t_eval=points)
        errors.append(np.abs(sol.energy_error[-1]))
    assert errors[0] < 1e-5
    assert errors[1] == pytest.approx(errors[0], rel=0.2)
    implicit = hn.solve(m, (0, 1), start=start, speed=speed, rtol=1e-8, method="bdf", t_eval=[0, 0.5, 1])
    assert np.max(np.abs(implicit.energy_error)) < 1e-5


def test_the_energy_balance_of_a_run_that_ends_in_a_singular_position():
    m = hn.Mechanism("parallelogram")
    bars = [bar(m, name, length=2.0 if name == "coupler" else 1.0) for name in ("left", "coupler", "right")]
    m.revolute("A", m.ground.at(0, 0), bars[0]["A"])
    m.revolute("B", bars[0]["B"], bars[1]["A"])
    m.revolute("C", bars[1]["B"], bars[2]["B"])
    m.revolute("D", m.ground.at(2.5, 0), bars[2]["A"])
    m.torque("motor", "A", 30.0)
    sol = hn.solve(m, (0, 3), start={"A": 1.5}, rtol=1e-8, t_eval=np.linspace(0, 3, 31))
    assert np.all(np.isfinite(sol.energy_error))


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_the_tension_in_ropes_and_rods(coordinates):
    m = hn.Mechanism("Atwood's machine", coordinates=coordinates)
    light, heavy = m.body("light", 1.0, 0.1), m.body("heavy", 3.0, 0.1)
    m.prismatic("left", m.ground.at(0, 0), light, axis=(0, -1))
    m.prismatic("right", m.ground.at(1, 0), heavy, axis=(0, -1))
    m.rope("rope", [light, m.ground.at(0, 1), m.ground.at(1, 1), heavy], 5.0)
    weight = m.point_mass("weight", 2.0)
    m.distance("rod", m.ground.at(3, 0), weight, 1.0)
    m.free(weight)
    sol = hn.solve(m, (0, 0.5), start={"left": 1.0, "weight": {"position": (3, -1)}})
    np.testing.assert_allclose(sol.reaction("rope").tension, 2 * 1 * 3 * 9.81 / 4, rtol=1e-12)
    np.testing.assert_allclose(sol.reaction("rod").tension, 2 * 9.81, rtol=1e-12)
    assert sol.reaction("left").tension is None

"""Mechanisms whose drawing, with all coordinates at zero, is a special position or none at all."""

import numpy as np
import pytest

import holonome as hn
from bodies.models import bar


def peaucellier(coordinates):
    """Its inversor draws a straight line; with all bars on top of each other its rhombus is free to turn."""
    m = hn.Mechanism("Peaucellier", coordinates=coordinates)
    left, right, crank = bar(m, "left"), bar(m, "right"), bar(m, "crank", 0.35)
    near = [bar(m, f"near {k}", 0.4) for k in range(2)]
    far = [bar(m, f"far {k}", 0.4) for k in range(2)]
    m.revolute("O left", m.ground.at(0, 0), left["A"])
    m.revolute("O right", m.ground.at(0, 0), right["A"])
    m.revolute("Q", m.ground.at(0.35, 0), crank["A"])
    for k, arm in enumerate((left, right)):
        m.revolute(f"inner {k}", crank["B"], near[k]["A"])
        m.revolute(f"middle {k}", near[k]["B"], arm["B"])
        m.revolute(f"outer {k}", arm["B"], far[k]["A"])
    m.revolute("pen", far[0]["B"], far[1]["B"])
    angles = {"left": 26, "right": -9, "near 0": 58, "near 1": -41, "far 0": -41, "far 1": 58}
    shape = {name: hn.near({"angle": np.radians(angle)}) for name, angle in angles.items()}
    return m, {"Q": 0.3, **shape}


def scissors(coordinates, stages=3):
    """A lift of crossed bars, with a loop for each stage."""
    m = hn.Mechanism("scissors", coordinates=coordinates)
    slider = m.body("slider", 1.0, 0.1)
    m.prismatic("S", m.ground.at(0, 0), slider)
    left, right, start = m.ground.at(0, 0), slider.at(0, 0), {"S": np.cos(0.4)}
    for k in range(stages):
        up, down = bar(m, f"up {k}"), bar(m, f"down {k}")
        m.revolute(f"left {k}", left, up["A"])
        m.revolute(f"right {k}", right, down["A"])
        m.revolute(f"middle {k}", up.at(0.5, 0), down.at(0.5, 0))
        left, right = down["B"], up["B"]
        start |= {f"up {k}": hn.near({"angle": 0.4}), f"down {k}": hn.near({"angle": np.pi - 0.4})}
    m.force("jack", joint="S", law=-100.0)
    return m, start


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_rows_are_kept_that_are_redundant_only_where_bars_lie_on_each_other(coordinates):
    m, start = peaucellier(coordinates)
    sol = hn.solve(m, (0, 0.3), start=start, rtol=1e-10)
    assert sol.success
    assert np.ptp(sol.body("far 0").point("B")[0]) < 1e-10
    assert m.degrees_of_freedom() == 1
    assert m.redundant() == []


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_a_lift_of_scissors_stays_together(coordinates):
    m, start = scissors(coordinates)
    sol = hn.solve(m, (0, 0.2), start=start, rtol=1e-10)
    assert sol.success
    height = sol.body("up 2").point("B")[1]
    np.testing.assert_allclose(height, 3 * np.sin(np.arccos(sol.joint("S").displacement)), rtol=1e-9)


def test_a_start_shows_which_rows_are_needed(monkeypatch, tmp_path):
    """Even where the search has seen nothing but the special position."""
    monkeypatch.setattr("holonome.bodies.assembly.Assembly.generic", lambda self: self.positions(None)[0])
    m, start = peaucellier("joint")
    few = m.system.m
    sol = hn.solve(m, (0, 0.3), start=start, rtol=1e-10)
    assert sol.success
    assert sol.system.m > few
    assert np.ptp(sol.body("far 0").point("B")[0]) < 1e-10
    again, start = peaucellier("joint")
    q0 = sol.q[:, 0]
    assert again.system.m == few
    assert hn.solve(again, (0, 0.3), q0).system.m == sol.system.m
    file, third = sol.save(tmp_path / "run.npz"), peaucellier("joint")[0]
    assert third.system.m == few
    loaded = hn.Solution.load(file, third)
    np.testing.assert_array_equal(loaded.reaction("pen").force, sol.reaction("pen").force)
    with pytest.raises(TypeError, match="system: 'x' is no hn"):
        hn.Solution.load(file, "x")


def test_three_cranks_in_parallel_can_move():
    """Other assemblies of the same bars are rigid; Grübler's count is zero."""
    m = hn.Mechanism("three cranks")
    beam, cranks = bar(m, "beam", 2.0), [bar(m, f"crank {k}") for k in range(3)]
    for k, crank in enumerate(cranks):
        m.revolute(f"A{k}", m.ground.at(k, 0), crank["A"])
        m.revolute(f"B{k}", crank["B"], beam.at(k, 0))
    assert m.degrees_of_freedom() == 1
    assert len(m.redundant()) == 1
    start = {"A0": 1.0, "A1": hn.near(1.0), "A2": hn.near(1.0)}
    sol = hn.solve(m, (0, 1), start=start, speed={"A0": -2.0}, rtol=1e-9)
    assert sol.success
    angles = [sol.joint(f"A{k}").angle for k in range(3)]
    np.testing.assert_allclose(angles[1:], [angles[0]] * 2, atol=1e-12)


def test_a_rope_whose_points_coincide_in_the_drawing():
    m = hn.Mechanism("crane")
    trolley, load, weight = m.body("trolley", 5, 0.1), m.point_mass("load", 2.0), m.body("weight", 3.0, 0.1)
    m.prismatic("rail", m.ground.at(0, 0), trolley)
    m.prismatic("guide", m.ground.at(3, 0), weight, axis=(0, 1))
    m.rope("rope", [load, trolley, m.ground.at(3, 0), weight], length=5.0)
    m.free(load)
    assert "degrees of freedom: 3" in str(m)
    sol = hn.solve(m, (0, 0.6), start={"rail": 0.0, "guide": -1.0, "load": hn.near((0.3, -1))}, rtol=1e-9)
    assert sol.success
    spans = np.linalg.norm(sol.body("load").position - sol.body("trolley").position, axis=0)
    spans += 3 - sol.joint("rail").displacement - sol.joint("guide").displacement
    np.testing.assert_allclose(spans, 5.0, rtol=1e-12)


def test_angles_over_more_than_half_a_turn_in_one_step():
    m = hn.Mechanism("flywheel", gravity=(0, 0), coordinates="absolute")
    m.revolute("A", m.ground.at(0, 0), m.body("wheel", 1.0, 0.05))
    m.torque("motor", "A", 1.0)
    sol = hn.solve(m, (0, 4))
    np.testing.assert_allclose(sol.joint("A").angle, 10 * sol.t**2, rtol=1e-9)


def test_angles_in_a_loop_in_space_at_few_points():
    m = hn.Mechanism("flywheel", gravity=(0, 0, 0), coordinates="absolute")
    m.revolute("A", m.ground.at(0, 0, 0), m.body("wheel", 1.0, (0.05, 0.05, 0.05)))
    m.torque("motor", body="wheel", law=(0, 0, 1.0))
    for times in (None, [0.0, 1.0, 4.0]):
        sol = hn.solve(m, (0, 4), t_eval=times)
        np.testing.assert_allclose(sol.joint("A").angle, 10 * sol.t**2, rtol=1e-5, atol=1e-6)


def test_rows_that_are_kept_are_independent_in_each_position():
    m = hn.Mechanism("jack", gravity=(0, 0, -9.81), coordinates="absolute")
    spindle, table = m.body("spindle", 1, (0.01, 0.01, 0.02)), m.body("table", 10, (1, 1, 1))
    m.revolute("bearing", m.ground.at(0, 0, 0), spindle)
    m.screw("thread", spindle, table, lead=-0.01)
    m.prismatic("guide", m.ground.at(0, 0, 0), table)
    m.torque("motor", "bearing", 0.1)
    sol = hn.solve(m, (0, 1), rtol=1e-10)
    pitch = 0.01 / (2 * np.pi)
    a = (0.1 - 98.1 * pitch) / (0.02 + 10 * pitch**2)
    np.testing.assert_allclose(sol.joint("bearing").angle, a * sol.t**2 / 2, atol=1e-8)
    assert sol.system.m == 13


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
@pytest.mark.parametrize("rtol", [1e-10, 1e-12])
def test_tight_tolerances_pass_the_folded_position(coordinates, rtol):
    """Where the accelerations are 0/0, no step is too small; steps over it are tried."""
    m, start = peaucellier(coordinates)
    sol = hn.solve(m, (0, 0.8), start=start, rtol=rtol)
    assert sol.success, sol.message
    assert "the rank of the constraints fell on the way, once" in sol.message
    assert np.ptp(sol.body("far 0").point("B")[0]) < 1e-11


@pytest.mark.parametrize("rtol", [1e-10, 1e-11, 1e-12])
def test_bennetts_linkage_passes_positions_where_its_rows_depend_on_each_other(rtol):
    """Two rows of five are kept; any two of them are parallel somewhere on the way."""
    bennett = hn.mechanisms.get("bennett_linkage")
    sol = hn.solve(bennett.system, (0, 3), bennett.q0, bennett.v0, rtol=rtol)
    assert sol.success, sol.message
    assert np.ptp(sol.energy) < 1e3 * rtol * np.max(np.abs(sol.energy))

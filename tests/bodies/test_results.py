"""Events, tables, files and pictures of mechanisms; joints that are limited to some rows."""

import copy
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import holonome as hn
from bodies import models
from bodies.models import bar


def pendulum(coordinates="auto"):
    m = hn.Mechanism("pendulum", coordinates=coordinates)
    m.revolute("A", m.ground.at(0, 0), bar(m, "rod")["A"])
    return m


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_events_by_name(coordinates):
    m = pendulum(coordinates)
    down = m.event("A", -np.pi / 2, terminal=True)
    sol = hn.solve(m, (0, 5), events=down)
    assert sol.status == 1
    assert sol.joint("A").angle[-1] == pytest.approx(-np.pi / 2, abs=1e-9)
    sol = hn.solve(m, (0, 5), events=m.event(point=m.bodies["rod"]["B"], axis="y", value=-0.5))
    assert len(sol.t_events[0]) > 2
    with pytest.raises(hn.ModelError, match="give joint= or point="):
        m.event()


def test_events_of_angles_in_a_loop_in_space():
    m, start, speed = models.four_bar_in_space("absolute")
    sol = hn.solve(m, (0, 3), start=start, speed=speed, events=m.event("A", 4 * np.pi))
    assert sol.joint("A").angle[-1] > 4 * np.pi
    assert len(sol.t_events[0]) == 1
    assert np.interp(sol.t_events[0][0], sol.t, sol.joint("A").angle) == pytest.approx(4 * np.pi, abs=0.02)


def test_tables():
    m, start, speed = models.four_bar()
    sol = hn.solve(m, (0, 1), start=start, speed=speed)
    data = sol.to_xarray()
    np.testing.assert_array_equal(data.joint_values.sel(joint_coordinate="A angle"), sol.joint("A").angle)
    np.testing.assert_array_equal(data.reaction_force.sel(joint="C", axis="y"), sol.reaction("C").force[1])
    assert data.body_position.sel(body="rocker").shape == (2, sol.t.size)


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_efforts_are_what_the_laws_say_and_what_a_drive_needs(coordinates):
    """A driven arm needs J θ″ + m g r cos θ; effort times rate is power."""
    m = hn.Mechanism("driven", gravity=(0, -9.81), coordinates=coordinates)
    arm = m.body("arm", 2.0, 0.3, center=(0.5, 0), points={"A": (0, 0), "B": (1, 0)})
    m.revolute("A", m.ground.at(0, 0), arm["A"])
    m.revolute("B", arm["B"], bar(m, "rod")["A"])
    m.drive("drive", "A", law=lambda t: np.sin(2 * t))
    m.torque("motor", joint="B", law=lambda t, rate: 3 * np.cos(t) - rate)
    m.spring("spring", joint="B", stiffness=7.0, damping=0.1, rest=0.2)
    m.force("wind", at=arm["B"], law=lambda t: np.array([t, 0.0]))
    sol = hn.solve(m, (0, 2))
    B, drive = sol.joint("B"), sol.joint("A")
    np.testing.assert_allclose(sol.effort("motor"), 3 * np.cos(sol.t) - B.rate, atol=1e-12)
    np.testing.assert_allclose(sol.effort("spring"), 7 * (B.angle - 0.2) + 0.1 * B.rate, atol=1e-12)
    np.testing.assert_allclose(sol.effort("drive") * drive.rate, sol.power("drive"), atol=1e-11)
    np.testing.assert_allclose(sol.effort("wind"), [sol.t, 0 * sol.t], atol=1e-15)
    alone = hn.Mechanism("alone", gravity=(0, -9.81), coordinates=coordinates)
    arm = alone.body("arm", 2.0, 0.3, center=(0.5, 0), points={"A": (0, 0)})
    alone.revolute("A", alone.ground.at(0, 0), arm["A"])
    alone.drive("drive", "A", law=lambda t: np.sin(2 * t))
    sol = hn.solve(alone, (0, 2))
    angle, bend = np.sin(2 * sol.t), -4 * np.sin(2 * sol.t)
    needed = (0.3 + 2 * 0.25) * bend + 2 * 9.81 * 0.5 * np.cos(angle)
    np.testing.assert_allclose(sol.effort("drive"), needed, atol=1e-11)


def test_frames_of_other_bodies():
    m, start, speed = models.double_pendulum()
    sol = hn.solve(m, (0, 1), start=start, speed=speed, rtol=1e-10, t_eval=np.linspace(0, 1, 2001))
    seen = sol.body("lower", frame="upper")
    np.testing.assert_allclose(seen.position, np.tile([[1], [0], [0]], 2001), atol=1e-12)
    np.testing.assert_allclose(seen.velocity, 0, atol=1e-12)
    point, other = sol.body("lower").point("C"), sol.body("upper")
    arm = np.einsum("kji,jk->ik", other.matrix, point - other.position)
    np.testing.assert_allclose(seen.point("C"), arm, atol=1e-12)
    rate = np.gradient(seen.point("C"), sol.t, axis=1)
    expected = np.cross(seen.angular_velocity, (seen.point("C") - seen.position), axis=0)
    np.testing.assert_allclose(rate[:, 1:-1], expected[:, 1:-1], atol=1e-3)
    turned = np.gradient(sol.body("lower").angular_velocity, sol.t, axis=1)
    np.testing.assert_allclose(turned[:, 1:-1], sol.body("lower").angular_acceleration[:, 1:-1], atol=1e-3)


@pytest.mark.parametrize("model", models.ALL, ids=lambda model: model.__name__)
def test_files_and_pictures(model, tmp_path):
    m, start, speed = model()
    sol = hn.solve(m, (0, 0.2), start=start, speed=speed)
    loaded = hn.Solution.load(sol.save(tmp_path / "run.npz"))
    assert loaded.drift == sol.drift
    with pytest.raises(hn.ModelError, match="made of functions"):
        loaded.body("crank")
    named = hn.Solution.load(tmp_path / "run.npz", m)
    for name in (key for key in m.bodies if key != "ground"):
        np.testing.assert_array_equal(named.body(name).position, sol.body(name).position)
    assert sol.animate(tmp_path / "run.html").file.stat().st_size > 1000
    assert len(sol.plot()) == 3
    copy = pickle.loads(pickle.dumps(sol.system))
    assert copy.names == sol.system.names


def test_a_joint_limited_to_what_a_loop_needs():
    m, start, speed = models.four_bar_in_space("absolute")
    m.limit("D", "x", "y")
    assert m.redundant() == []
    sol = hn.solve(m, (0, 1), start=start, speed=speed)
    assert "redundant" not in str(sol)
    other, *_ = models.four_bar()
    same = hn.solve(other, (0, 1), start=start, speed=speed)
    np.testing.assert_allclose(sol.reaction("D").force[:2, -1], same.reaction("D").force[:, -1], rtol=1e-3)
    with pytest.raises(hn.ModelError, match="D: it is limited already"):
        m.limit("D", "x")
    with pytest.raises(hn.ModelError, match=r"C: 'w' given; its rows are x, y, z, axis x, axis y"):
        m.limit("C", "w")


def test_parts_may_be_added_after_a_run():
    m = pendulum()
    before = hn.solve(m, (0, 1))
    m.torque("brake", "A", lambda rate: -rate)
    after = hn.solve(m, (0, 1))
    assert before.system is not after.system
    assert abs(after.joint("A").rate[-1]) < abs(before.joint("A").rate[-1])


def test_first_use_from_several_threads():
    m, start, speed = models.stewart()
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(hn.solve, m, (0, 0.1), start=start, speed=speed) for _ in range(4)]
        ends = [run.result().states[-1] for run in runs]
    for end in ends[1:]:
        np.testing.assert_array_equal(end, ends[0])


def test_backwards_and_back():
    m, start, speed = models.spatial_slider_crank()
    sol = hn.solve(m, (0, 1), start=start, speed=speed, rtol=1e-10)
    back = hn.solve(m, (1, 0), sol.q[:, -1], sol.v[:, -1], rtol=1e-10)
    np.testing.assert_allclose(back.q[:, -1], sol.q[:, 0], atol=1e-7)


def test_the_same_digits_in_another_process():
    code = (
        "import sys; sys.path.insert(0, 'tests'); import holonome as hn; from bodies import models;"
        "m, start, speed = models.spatial_slider_crank();"
        "print(repr(hn.solve(m, (0, 1), start=start, speed=speed).states[-1].tobytes().hex()))"
    )
    found = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(2)]
    assert found[0].stdout == found[1].stdout != ""


def test_a_result_can_be_pickled_after_names_were_asked_for():
    m, start, speed = models.four_bar()
    sol = hn.solve(m, (0, 0.1), start=start, speed=speed)
    assert sol.reaction("C").force.shape == (2, sol.t.size)
    assert sol.energy_error.shape == sol.t.shape
    again = pickle.loads(pickle.dumps(sol))
    np.testing.assert_array_equal(again.lam, sol.lam)
    with pytest.raises(hn.ModelError, match="made of functions, or read from a file"):
        again.joint("A")


def test_a_mechanism_can_be_copied_but_not_pickled():
    m, start, speed = models.four_bar()
    before = hn.solve(m, (0, 0.5), start=start, speed=speed)
    other = copy.deepcopy(m)
    weight = other.point_mass("weight", 3.0)
    other.fixed("glue", other.bodies["rocker"]["B"], weight)
    changed = hn.solve(other, (0, 0.5), start=start, speed=speed)
    assert abs(changed.joint("A").angle[-1] - before.joint("A").angle[-1]) > 1e-3
    again = hn.solve(copy.deepcopy(m), (0, 0.5), start=start, speed=speed)
    np.testing.assert_array_equal(again.q, before.q)
    assert "weight" not in m.bodies
    with pytest.raises(TypeError, match=r"pickle m\.system"):
        pickle.dumps(m)

"""Mechanisms of bodies and joints move as they must: both kinds of coordinates agree with each other, with
systems written by hand and with closed forms.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import holonome as hn
from bodies import models
from bodies.models import bar


def end_state(sol):
    """Places and velocities of all bodies at the end."""
    parts = []
    for name in sol.system.bodies:
        if name != "ground":
            body = sol.body(name)
            parts += [body.position[:, -1], body.velocity[:, -1], body.matrix[-1].ravel()]
    return np.concatenate(parts)


@pytest.mark.parametrize("model", models.ALL, ids=lambda model: model.__name__)
def test_joint_and_absolute_coordinates_agree(model):
    ends = []
    for coordinates in ("joint", "absolute"):
        m, start, speed = model(coordinates)
        sol = hn.solve(m, (0, 1), start=start, speed=speed, rtol=1e-10)
        assert sol.success
        assert max(sol.drift) < 1e-12
        assert np.max(np.abs(sol.energy_error)) < 1e-6
        ends.append(end_state(sol))
    np.testing.assert_allclose(*ends, atol=2e-7)


def test_four_bar_is_that_of_the_collection():
    by_hand = hn.mechanisms.four_bar()
    for coordinates in ("joint", "absolute"):
        m, start, speed = models.four_bar(coordinates)
        sol = hn.solve(m, (0, 2), start=start, speed=speed, rtol=1e-10, parameters={"T0": 0.0, "k": 0.0})
        other = hn.solve(by_hand, (0, 2), rtol=1e-10)
        ours = np.concatenate([sol.body(name).at_center[:, -1] for name in ("crank", "coupler", "rocker")])
        np.testing.assert_allclose(ours, other.q[[0, 1, 3, 4, 6, 7], -1], atol=1e-8)
        assert sol.joint("A").angle[-1] == pytest.approx(other.q[2, -1], abs=1e-7)


def test_free_fall_and_free_rotation():
    m = hn.Mechanism("free body", gravity=(0, 0, -9.81))
    body = m.body("body", 2.0, (0.1, 0.2, 0.25), center=(0.1, 0, 0))
    m.free(body)
    turn = Rotation.from_rotvec([0.5, 0.3, 0])
    sol = hn.solve(
        m,
        (0, 2),
        start={"body": {"rotation": turn, "position": (1, 2, 3)}},
        speed={"body": {"angular_velocity": (1, 0.5, 2.0), "velocity": (0, 0, 1)}},
        rtol=1e-10,
    )
    J = np.diag([0.1, 0.2, 0.25])
    found = sol.body("body")
    spin = np.array([R @ J @ R.T @ w for R, w in zip(found.matrix, found.angular_velocity.T, strict=True)])
    np.testing.assert_allclose(spin, np.tile(spin[0], (len(spin), 1)), atol=1e-9)
    arm = turn.apply([0.1, 0, 0])
    center = np.array([1, 2, 3.0]) + arm + sol.t[-1] * (np.cross([1, 0.5, 2.0], arm) + [0, 0, 1])
    center[2] -= 9.81 / 2 * sol.t[-1] ** 2
    np.testing.assert_allclose(found.at_center[:, -1], center, atol=1e-9)


def test_a_hinge_in_space_is_a_hinge_in_the_plane():
    angles = []
    for dimension in (2, 3):
        zero = (0.0,) * (dimension - 2)
        m = hn.Mechanism("pendulum", gravity=(0, -9.81, *zero))
        m.revolute("A", m.ground.at(0, 0, *zero), bar(m, "rod")["A"])
        angles.append(hn.solve(m, (0, 3), start={"A": 0.3}, rtol=1e-10).joint("A").angle[-1])
    assert angles[0] == pytest.approx(angles[1], abs=1e-9)


def test_angles_go_on_over_many_turns():
    for coordinates in ("joint", "absolute"):
        for dimension in (2, 3):
            zero = (0.0,) * (dimension - 2)
            m = hn.Mechanism("wheel", gravity=(0, 0, *zero), coordinates=coordinates)
            m.revolute("A", m.ground.at(0, 0, *zero), bar(m, "rod")["A"])
            m.spring("soft", joint="A", stiffness=1e-3)
            sol = hn.solve(m, (0, 20), speed={"A": 5.0}, rtol=1e-9)
            omega = np.sqrt(1e-3 * 3)
            exact = 5.0 / omega * np.sin(omega * sol.t)
            np.testing.assert_allclose(sol.joint("A").angle, exact, atol=1e-5)
            assert sol.joint("A").angle[-1] > 10 * np.pi


def test_rolling():
    m = hn.Mechanism("wheel")
    wheel = m.body("wheel", mass=1, inertia=0.5 * 0.09)
    m.rolling("road", m.ground.at(0, 0), wheel, 0.3)
    m.force("push", at=wheel, law=(1.0, 0))
    sol = hn.solve(m, (0, 2))
    assert sol.body("wheel").position[0, -1] == pytest.approx(2 / 1.5, rel=1e-9)
    np.testing.assert_allclose(sol.reaction("road").force[:, -1], [-1 / 3, 9.81], atol=1e-9)
    m = hn.Mechanism("ball", gravity=(0, 0, -9.81))
    ball = m.body("ball", density=1000, shape=hn.shapes.Sphere(0.3))
    m.rolling("floor", m.ground.at(0, 0, 0), ball, 0.3, kind="ball")
    mass = float(ball.mass)
    m.force("push", at=ball, law=(0, mass, 0))
    sol = hn.solve(m, (0, 2))
    assert sol.body("ball").position[1, -1] == pytest.approx(2 / 1.4, rel=1e-8)


def test_rope_over_pulleys():
    m = hn.Mechanism("Atwood")
    light, heavy = m.point_mass("light", 1.0), m.point_mass("heavy", 2.0)
    m.rope("rope", [light, m.ground.at(-0.1, 2), m.ground.at(0.1, 2), heavy], 4.2)
    sol = hn.solve(m, (0, 0.5), start={"light": (-0.1, 0), "heavy": (0.1, 0)})
    assert sol.body("heavy").position[1, -1] == pytest.approx(-9.81 / 3 / 2 * 0.25, rel=1e-9)
    assert sol.reaction("rope").force[1, -1] == pytest.approx(2 * 9.81 * (1 - 1 / 3), rel=1e-9)


def test_gears_belts_and_racks():
    m = hn.Mechanism("train", gravity=(0, 0))
    J = {"first": 0.5, "second": 2.0, "third": 0.25}
    for k, (name, inertia) in enumerate(J.items()):
        m.revolute(name + " pin", m.ground.at(k, 0), m.body(name, 1.0, inertia))
    rack = m.body("rack", 3.0, 1.0)
    m.prismatic("slide", m.ground.at(0, 2), rack)
    m.gear("teeth", ["first pin", "second pin"], -0.5)
    m.belt("belt", ["second pin", "third pin"], (0.2, 0.1))
    m.rack("rack and pinion", "third pin", "slide", 0.1)
    m.torque("motor", "first pin", 1.0)
    sol = hn.solve(m, (0, 2))
    ratios = np.array([1.0, -0.5, -1.0])
    inertia = np.array(list(J.values())) @ ratios**2 + 3.0 * 0.1**2
    assert sol.joint("first pin").angle[-1] == pytest.approx(0.5 / inertia * 4, rel=1e-9)
    assert sol.joint("slide").displacement[-1] == pytest.approx(-0.1 * sol.joint("first pin").angle[-1])


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_drives(coordinates, dimension):
    zero = (0.0,) * (dimension - 2)
    m = hn.Mechanism("driven", gravity=(0, -9.81, *zero), coordinates=coordinates)
    upper, lower = bar(m, "upper"), bar(m, "lower")
    m.revolute("A", m.ground.at(0, 0, *zero), upper["A"])
    m.revolute("B", upper["B"], lower["A"])
    m.drive("motor", "A", lambda t: 5 * t + 0.1 * np.sin(3 * t))
    sol = hn.solve(m, (0, 3), rtol=1e-9)
    np.testing.assert_allclose(sol.joint("A").angle, 5 * sol.t + 0.1 * np.sin(3 * sol.t), atol=1e-8)
    assert np.max(np.abs(sol.energy_error)) < 1e-5


def test_bead_on_a_curve_and_point_on_a_surface():
    m = hn.Mechanism("bead")
    bead = m.point_mass("bead", 1.0)
    m.point_on("parabola", m.ground.at(0, 0), bead, lambda x: x[1] - x[0] ** 2)
    sol = hn.solve(m, (0, 2), start={"bead": (1.0, 1.0)})
    x, y = sol.body("bead").position
    np.testing.assert_allclose(y, x**2, atol=1e-14)
    m = hn.Mechanism("sphere", gravity=(0, 0, -9.81), parameters={"r": 2.0})
    bead = m.point_mass("bead", 1.0)
    m.point_on("sphere", m.ground.at(0, 0, 0), bead, lambda x, p: x @ x - p.r**2)
    sol = hn.solve(m, (0, 2), start={"bead": (0, 2.0, 0)}, speed={"bead": (1.0, 0, 0)})
    np.testing.assert_allclose(np.linalg.norm(sol.body("bead").position, axis=0), 2.0, atol=1e-13)


def test_a_screw_advances_by_its_lead():
    m = hn.Mechanism("screw", gravity=(0, 0, -9.81))
    nut = m.body("nut", 1.0, (0.01, 0.01, 0.02))
    m.screw("thread", m.ground.at(0, 0, 0), nut, lead=0.1)
    sol = hn.solve(m, (0, 2))
    pitch = 0.1 / (2 * np.pi)
    angle = -9.81 * pitch / (0.02 + pitch**2) / 2 * 4
    assert sol.joint("thread").angle[-1] == pytest.approx(angle, rel=1e-8)
    assert sol.body("nut").position[2, -1] == pytest.approx(angle * pitch, rel=1e-8)


def test_parameters_in_dimensions_compile_nothing():
    m = hn.Mechanism("pendulum", parameters={"length": 1.0, "mass": 2.0})
    length, mass = m.p.length, m.p.mass
    rod = m.body(
        "rod",
        mass,
        mass * length**2 / 12,
        center=(length / 2, 0),
        points={"A": (0, 0), "B": (length, 0)},
    )
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    for value in (1.0, 0.5):
        angle = hn.solve(m, (0, 1), parameters={"length": value}, rtol=1e-9).joint("A").angle[-1]
        other = hn.Mechanism("pendulum")
        other.revolute("A", other.ground.at(0, 0), bar(other, "rod", value, 2.0)["A"])
        assert angle == pytest.approx(hn.solve(other, (0, 1), rtol=1e-9).joint("A").angle[-1], abs=1e-9)


@pytest.mark.parametrize("method", ["auto", "bdf", "ggl", "ggl*", "cs", "cm", "index1", "index2", "srm"])
def test_every_method_works(method):
    ends = []
    for name in ("dop853", method):
        m, start, speed = models.spatial_slider_crank("joint")
        sol = hn.solve(m, (0, 0.5), start=start, speed=speed, rtol=1e-8, method=name)
        assert sol.success
        ends.append(sol.body("slider").position[:, -1])
    np.testing.assert_allclose(*ends, atol=1e-4)


def test_chain_in_space_stays_sparse():
    m = hn.Mechanism("chain", gravity=(0, 0, -9.81))
    before = m.ground.at(0, 0, 0)
    for k in range(40):
        link = bar(m, f"link {k}")
        m.spherical(f"joint {k}", before, link["A"])
        before = link["B"]
    sol = hn.solve(m, (0, 0.1))
    assert sol.success
    assert sol.system.n == 280
    assert sol.drift[0] < 1e-12
    assert sol.energy_change < 1e-4


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_a_differential_couples_three_joints(coordinates):
    """Against its two equations of motion, with an engine on the carrier and a brake on one wheel."""
    m = hn.Mechanism("differential", gravity=(0, 0, 0), coordinates=coordinates, parameters={"two": 2.0})
    for name, J in (("carrier", 0.05), ("left", 0.03), ("right", 0.04)):
        m.revolute(f"{name} axle", m.ground.at(0, 0, 0), m.body(name, 1.0, (J, J, J)))
    m.couple("bevels", {"left axle": 1, "right axle": 1, "carrier axle": -m.p.two})
    m.torque("engine", "carrier axle", 2.0)
    m.torque("brake", "left axle", lambda rate: -0.5 * rate)
    sol = hn.solve(m, (0, 1), rtol=1e-10)

    def rates(t, w):  # of the left wheel and the right one; the carrier has their mean
        J = np.array([[0.03 + 0.0125, 0.0125], [0.0125, 0.04 + 0.0125]])
        return np.linalg.solve(J, [1.0 - 0.5 * w[0], 1.0])

    exact = solve_ivp(rates, (0, 1), [0, 0], rtol=1e-11, atol=1e-12).y[:, -1]
    found = [sol.joint(f"{name} axle").rate[-1] for name in ("left", "right")]
    np.testing.assert_allclose(found, exact, rtol=1e-8)
    np.testing.assert_allclose(sum(sol.effort("bevels")), 0.0, atol=1e-10)  # of −1, −1 and 2 times λ
    assert np.max(np.abs(sol.energy_error)) < 1e-8


def test_a_shape_gives_the_inertia_of_a_mass():
    m = hn.Mechanism("rod")
    rod = hn.shapes.Rod((0, 0), (2, 0), radius=0.01)
    m.revolute("A", m.ground.at(0, 0), m.body("by mass", 3.0, shape=rod))
    m.revolute("B", m.ground.at(0, 0), m.body("by density", shape=rod, density=3.0 / rod.volume))
    sol = hn.solve(m, (0, 1))
    np.testing.assert_allclose(sol.joint("A").angle, sol.joint("B").angle, rtol=1e-12, atol=1e-14)

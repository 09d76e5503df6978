"""Joints, couplings and drives that rarely come together, against closed forms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import holonome as hn

G = 9.81


def test_a_screw_closes_the_loop_of_a_jack():
    """A nut that cannot turn drives its spindle: a = g / (1 + J / (m k²)), with k the lead by angle."""
    m, k = hn.Mechanism("jack", gravity=(0, 0, -G)), 0.1 / (2 * np.pi)
    nut, spindle = m.body("nut", 1.0, (0.1, 0.1, 0.1)), m.body("spindle", 1.0, (0.02, 0.02, 0.02))
    m.revolute("R", m.ground.at(0, 0, 0), spindle)
    m.prismatic("P", m.ground.at(0, 0, 0), nut)
    m.screw("S", spindle.at(0, 0, 0), nut.at(0, 0, 0), lead=0.1)
    sol = hn.solve(m, (0, 1), start={"R": 0.0}, rtol=1e-9)
    assert sol.success
    lift, turned = np.abs(sol.joint("P").displacement), np.abs(sol.joint("R").angle)
    np.testing.assert_allclose(lift, k * turned, atol=1e-14)
    a = -G / (1 + 0.02 / k**2)
    np.testing.assert_allclose(sol.body("nut").acceleration[2], a, rtol=1e-9)
    np.testing.assert_allclose(sol.reaction("S").force[2], G + a, rtol=1e-9)


def test_a_belt_a_gear_and_a_rolling_wheel_in_one_train():
    m = hn.Mechanism("cart")
    frame, wheel = m.body("frame", 2.0, 0.1), m.body("wheel", 1.0, 0.02)
    motor, idler = m.body("motor", 0.5, 0.001), m.body("idler", 0.3, 0.003)
    m.prismatic("rail", m.ground.at(0, 0.3), frame)
    m.revolute("axle", frame.at(0, 0), wheel)
    m.rolling("roll", m.ground.at(0, 0), wheel.at(0, 0), 0.3)
    m.revolute("shaft", frame.at(0.5, 0), motor)
    m.revolute("pin", frame.at(0.25, 0.2), idler)
    m.belt("belt", ["shaft", "pin"], (0.05, 0.1))
    m.gear("mesh", ["pin", "axle"], -0.5)
    m.torque("drive", "shaft", law=lambda rate: 1.0 - 0.01 * rate)
    sol = hn.solve(m, (0, 2), start={"rail": 0.0}, speed={"rail": 0.5}, rtol=1e-9)
    assert sol.success
    np.testing.assert_allclose(sol.joint("rail").rate, -0.3 * sol.joint("axle").rate, atol=1e-12)
    np.testing.assert_allclose(sol.joint("shaft").rate, 2 * sol.joint("pin").rate, atol=1e-12)
    assert np.max(np.abs(sol.energy_error)) < 1e-10


def test_friction_on_a_slope_by_the_reaction():
    m, slope = hn.Mechanism("block"), 0.6
    block = m.body("block", 2.0, 0.1)
    m.prismatic("P", m.ground.at(0, 0), block, axis=(np.cos(slope), -np.sin(slope)))
    m.friction("f", "P", 0.2)
    sol = hn.solve(m, (0, 1), start={"P": 0.0}, speed={"P": 0.5})
    a = G * (np.sin(slope) - 0.2 * np.cos(slope))
    np.testing.assert_allclose(sol.joint("P").rate, 0.5 + a * sol.t, rtol=1e-9)
    assert np.max(np.abs(sol.energy_error)) < 1e-9


def test_a_body_fixed_to_a_rod_without_mass():
    m = hn.Mechanism("pendulum")
    rod = m.body("rod", 0.0, 0.0, points={"A": (0, 0), "B": (1, 0)})
    bob = m.body("bob", 1.0, 0.01)
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    m.fixed("F", rod["B"], bob.at(0, 0))
    sol = hn.solve(m, (0, 1), start={"A": 0.0}, rtol=1e-9)
    assert sol.body("bob").acceleration[1, 0] == pytest.approx(-G / 1.01, rel=1e-12)


def test_a_disc_that_wobbles_keeps_its_energy():
    m, r = hn.Mechanism("disc", gravity=(0, 0, -G)), 0.5
    disc = m.body("disc", 1.0, (r * r / 4, r * r / 4, r * r / 2))
    m.rolling("roll", m.ground.at(0, 0, 0), disc.at(0, 0, 0), r, kind="disc")
    m.free(disc)
    start = {"rotation": Rotation.from_euler("x", np.pi / 2 - 0.2), "position": (0, 0, r * np.cos(0.2))}
    speed = {"disc": {"angular_velocity": (0, 3, 1)}}
    sol = hn.solve(m, (0, 1), start={"disc": start}, speed=speed, rtol=1e-9)
    assert sol.success
    assert np.ptp(sol.energy) < 1e-8
    assert max(sol.drift) < 1e-13


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_a_driven_cam_with_a_parameter(coordinates):
    m = hn.Mechanism("cam", coordinates=coordinates, parameters={"e": 0.1, "speed": 6.0})
    cam, follower = m.body("cam", 1.0, 0.02), m.body("follower", 1.0, 0.1)
    m.revolute("A", m.ground.at(0, 0), cam)
    m.prismatic("F", m.ground.at(0, 0), follower, axis=(0, 1))
    circle = lambda x, p: (x[0] - p.e) ** 2 + x[1] ** 2 - 0.09  # noqa: E731
    m.point_on("on", cam.at(0, 0), follower.at(0, 0), circle)
    m.drive("motor", "A", lambda t, p: p.speed * t)
    sol = hn.solve(m, (0, 2), start={"F": hn.near(0.3)}, parameters={"speed": 5.0}, rtol=1e-9)
    angle = 5.0 * sol.t
    lift = 0.1 * np.sin(angle) + np.sqrt(0.09 - (0.1 * np.cos(angle)) ** 2)
    np.testing.assert_allclose(sol.joint("F").displacement, lift, atol=1e-12)
    assert np.max(np.abs(sol.energy_error)) < 1e-8

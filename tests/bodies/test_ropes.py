"""Ropes over pulleys with a radius, against closed forms."""

import numpy as np
import pytest

import holonome as hn
from holonome.errors import ModelError

G = 9.81


def atwood(radius=0.2, inertia=0.02, **how):
    m = hn.Mechanism("Atwood")
    pulley = m.body("pulley", mass=3.0, inertia=inertia)
    m.revolute("axle", m.ground.at(0, 2), pulley)
    light, heavy = m.body("light", 1.0, 0.1), m.body("heavy", 2.0, 0.1)
    m.prismatic("left", m.ground.at(-radius, 0), light, axis=(0, 1))
    m.prismatic("right", m.ground.at(radius, 0), heavy, axis=(0, 1))
    m.rope("rope", [light.at(0, 0), pulley.at(0, 0), heavy.at(0, 0)], 2 + radius * np.pi, [-radius], **how)
    return m


@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
@pytest.mark.parametrize("slips", [False, True])
def test_atwoods_machine(slips, coordinates):
    """a = (m₂ − m₁) g / (m₁ + m₂ + J / r²), without J where the rope slips."""
    m = atwood(slips=slips)
    m._coordinates = coordinates
    sol = hn.solve(m, (0, 0.4), start={"left": 1.0}, rtol=1e-9)
    assert sol.success
    a = G / (3.0 + (0.0 if slips else 0.02 / 0.2**2))
    np.testing.assert_allclose(sol.body("light").acceleration[1], a, rtol=1e-9)
    np.testing.assert_allclose(sol.joint("right").displacement, 1.0 - a * sol.t**2 / 2, atol=1e-9)
    turned = 0.0 if slips else -a * sol.t**2 / 2 / 0.2
    np.testing.assert_allclose(sol.joint("axle").angle, turned, atol=1e-8)
    left, right = 1.0 * (G + a), 2.0 * (G - a)
    tension = sol.reaction("rope").tension
    np.testing.assert_allclose(tension[..., -1], left if slips else [left, right], rtol=1e-9)
    np.testing.assert_allclose(sol.reaction("axle").force[1], 3.0 * G + left + right, rtol=1e-9)
    assert np.ptp(sol.energy) < 1e-8


def test_a_block_and_tackle():
    """Four parts carry a load: it rises by a quarter of what is pulled; all pulleys have inertia."""
    m, r, J, load = hn.Mechanism("tackle"), 0.1, 0.004, 6.0
    block = m.body("block", mass=load, inertia=0.1)
    m.prismatic("guide", m.ground.at(0, 0), block, axis=(0, 1))
    fixed = [m.body(f"upper {k}", 0.5, J) for k in range(2)]
    moved = [m.body(f"lower {k}", 0.5, J) for k in range(2)]
    for k in range(2):
        m.revolute(f"axle {k}", m.ground.at(-0.2 + 0.4 * k + 0.2, 3), fixed[k])
        m.revolute(f"pin {k}", block.at(-0.2 + 0.4 * k, 0), moved[k])
    hand = m.body("hand", mass=2.0, inertia=0.1)
    m.prismatic("pull", m.ground.at(0.5, 0), hand, axis=(0, 1))
    points = [
        m.ground.at(-0.3, 3),
        moved[0].at(0, 0),
        fixed[0].at(0, 0),
        moved[1].at(0, 0),
        fixed[1].at(0, 0),
    ]
    m.rope("rope", [*points, hand.at(0, 0)], 10 + 4 * r * np.pi, [r, -r, r, -r])
    sol = hn.solve(m, (0, 0.3), start={"guide": 1.0}, rtol=1e-9)
    assert sol.success
    # parts of the rope move with 1, 2, 3 times the speed of the block, and the last with four times
    inertia = load + 1.0 + 16 * 2.0 + J / r**2 * (1**2 + 2**2 + 3**2 + 4**2)
    a = ((load + 1.0) * G - 4 * 2.0 * G) / inertia
    np.testing.assert_allclose(sol.body("block").acceleration[1], -a, rtol=1e-9)
    np.testing.assert_allclose(sol.joint("pull").rate, -4 * sol.joint("guide").rate, atol=1e-12)
    assert np.ptp(sol.energy) < 1e-8


def test_tangents_of_pulleys_of_several_sizes_keep_the_length():
    """A weight swings on a rope that winds on and off its pulleys; Newton's law holds for it."""
    m = hn.Mechanism("swing")
    wheels = [m.body(f"wheel {k}", 1.0, 0.01) for k in range(2)]
    for k, wheel in enumerate(wheels):
        m.revolute(f"axle {k}", m.ground.at(k, 0.3 * k), wheel)
    bob, counter = m.point_mass("bob", 1.0), m.body("counter", 1.1, 0.1)
    m.free(bob)
    m.prismatic("guide", m.ground.at(-0.3, -2), counter, axis=(0, 1))
    m.rope("rope", [counter.at(0, 0), wheels[0].at(0, 0), wheels[1].at(0, 0), bob], 4.5, [-0.3, -0.2])
    start = {"guide": 0.5, "bob": hn.near((1.5, -1.0))}
    sol = hn.solve(m, (0, 1.0), start=start, rtol=1e-10)
    assert sol.success
    assert np.ptp(sol.energy) < 1e-8
    assert sol.drift[0] < 1e-13
    first, middle, last = sol.reaction("rope").tension
    np.testing.assert_allclose(last, np.hypot(*(sol.body("bob").acceleration + [[0.0], [G]])), rtol=1e-7)
    for k, (radius, change) in enumerate([(0.3, first - middle), (0.2, middle - last)]):
        turning = 0.01 * sol.body(f"wheel {k}").angular_acceleration
        np.testing.assert_allclose(turning, radius * change, atol=1e-8)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"radii": [0.1, 0.2]}, "rope.radii: .* give a number for each of the 1 points"),
        ({"radii": 3}, "rope.radii: 3; give a number for each"),
        ({"radii": ["x"]}, "rope.radii: 'x'; give a finite number"),
        ({"radii": [0.1], "slips": "no"}, "rope.slips: 'no'; give True or False"),
        ({"slips": True}, "rope.slips: without radii there is nothing to turn"),
        ({"radii": [0.1]}, "'ground' cannot turn with the rope"),
    ],
)
def test_what_makes_no_sense_is_refused(how, message):
    m = hn.Mechanism("wrong")
    a, b = m.point_mass("a", 1.0), m.point_mass("b", 1.0)
    with pytest.raises(ModelError, match=message):
        m.rope("rope", [a, m.ground.at(0, 1), b], 2.0, **how)


def test_in_space_only_small_pulleys():
    m = hn.Mechanism("space", gravity=(0, 0, -G))
    a, b = m.point_mass("a", 1.0), m.point_mass("b", 1.0)
    with pytest.raises(ModelError, match=r"rope\.radii: ropes over pulleys with a radius are for the plane"):
        m.rope("rope", [a, m.ground.at(0, 0, 1), b], 2.0, [0.1])

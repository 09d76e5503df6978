"""What is found does not depend on the units: lengths, masses and times of any size."""

import numpy as np
import pytest

import holonome as hn

SCALES = [(1e-6, 1.0, 1.0), (1e6, 1.0, 1.0), (1e-6, 1e-15, 1e-3), (1e-9, 1e-24, 1e-9), (1.0, 1e-12, 1.0)]


def four_bar(length, mass, time, coordinates, dimension):
    zero = (0.0,) * (dimension - 2)
    g = 9.81 * length / time**2
    m = hn.Mechanism("four-bar", gravity=(0, -g, *zero), coordinates=coordinates)
    bars = []
    for name, size in (("crank", 0.4), ("coupler", 0.9), ("rocker", 0.7)):
        x, J = size * length, size * mass * (size * length) ** 2 / 12
        inertia = J if dimension == 2 else (J / 10, J, J)
        points = {"A": (0, 0, *zero), "B": (x, 0, *zero)}
        bars.append(m.body(name, size * mass, inertia, center=(x / 2, 0, *zero), points=points))
    crank, coupler, rocker = bars
    m.revolute("A", m.ground.at(0, 0, *zero), crank["A"])
    m.revolute("B", crank["B"], coupler["A"])
    m.revolute("C", coupler["B"], rocker["B"])
    m.revolute("D", m.ground.at(length, 0, *zero), rocker["A"])
    m.torque("motor", "A", mass * length**2 / time**2)
    return m


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("coordinates", ["joint", "absolute"])
def test_a_four_bar_in_any_units(coordinates, scale):
    dimension = 2 if scale[1] == 1.0 else 3
    found = []
    for L, M, T in ((1.0, 1.0, 1.0), scale):
        m = four_bar(L, M, T, coordinates, dimension)
        sol = hn.solve(m, (0, T), start={"A": 0.3, "D": hn.near(2)}, speed={"A": 8 / T}, rtol=1e-9)
        assert sol.success
        angle, force = sol.joint("A").angle[-1], sol.reaction("C").force[:, -1] * T**2 / M / L
        found.append(np.append(force, angle))
        assert m.degrees_of_freedom() == 1
        assert len(m.redundant()) == 3 * (dimension - 2)
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1e-7, 1.0, 1e5])
def test_slides_and_turns_start_with_the_least_energy_in_any_units(size):
    """A cart with a pendulum: of all rates that move the tip as wanted those of the least kinetic energy."""
    m = hn.Mechanism("cart")
    cart, rod = m.body("cart", 2.0, size**2), m.body("rod", 1.0, size**2 / 3, points={"tip": (size, 0)})
    m.prismatic("slide", m.ground.at(0, 0), cart)
    m.revolute("hinge", cart, rod)
    sol = hn.solve(m, (0, 1e-3), start={"hinge": 1.0}, speed={"slide": 0.1 * size})
    assert sol.joint("hinge").rate[0] == pytest.approx(0.0, abs=1e-12)
    one = hn.solve(m, (0, 1e-3), start={"hinge": 1.0}, speed={"hinge": 1.0})
    assert abs(one.joint("slide").rate[0]) < 1e-12 * size
    assert len(m.assemble({"hinge": 0.5})) == 1


def test_a_small_gap_in_a_small_mechanism_is_seen():
    m = hn.Mechanism("tiny", gravity=(0, 0, 0))
    plates = [m.body(name, 1e-9, (1e-20,) * 3) for name in "ab"]
    m.planar("A", m.ground.at(0, 0, 0), plates[0])
    m.planar("B", plates[0], plates[1])
    m.planar("C", m.ground.at(0, 0, 2e-6), plates[1].at(1e-6, 0, 1.9999e-6))
    with pytest.raises(hn.ModelError, match="joint cannot close"):
        hn.solve(m, (0, 1))

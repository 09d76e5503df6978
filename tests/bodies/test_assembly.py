"""Starts by name: what is given holds, loops close, branches are found, and what cannot close is named."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import holonome as hn
from bodies import models
from bodies.models import bar


def test_what_is_given_holds_and_the_rest_is_assembled():
    m, start, speed = models.four_bar()
    sol = hn.solve(m, (0, 0.1), start=start, speed=speed)
    assert sol.start is None  # nothing had to be moved
    assert sol.joint("A").angle[0] == pytest.approx(np.pi / 2, abs=1e-12)
    assert sol.joint("A").rate[0] == pytest.approx(6.0, abs=1e-10)
    np.testing.assert_allclose(
        sol.body("coupler").point("B")[:, 0], sol.body("rocker").point("B")[:, 0], atol=1e-12
    )


def test_any_joint_may_be_given():
    for name, value in (("B", -0.8), ("C", 1.0), ("D", -1.5)):
        m, _, _ = models.four_bar("absolute")
        sol = hn.solve(m, (0, 0.01), start={name: value}, speed={name: 1.0})
        assert sol.joint(name).angle[0] == pytest.approx(value, abs=1e-11)
        assert sol.joint(name).rate[0] == pytest.approx(1.0, abs=1e-10)


def test_both_branches_of_a_four_bar():
    m, start, _ = models.four_bar("joint")
    found = m.assemble({"A": start["A"]})
    heights = [hn.solve(m, (0, 0.01), q).body("coupler").point("B")[1, 0] for q in found]
    assert len(found) == 2
    assert min(heights) < 0 < max(heights)
    for wanted in (1.7, -2.5):
        near = hn.solve(m, (0, 0.01), start={"A": start["A"], "D": hn.near(-wanted)}).joint("D").angle[0]
        others = [hn.solve(m, (0, 0.01), q).joint("D").angle[0] for q in found]
        turn = [abs((angle + wanted + np.pi) % (2 * np.pi) - np.pi) for angle in others]
        assert near == pytest.approx(others[int(np.argmin(turn))], abs=1e-9)


def test_bodies_may_be_given_in_space():
    m, start, _ = models.stewart("joint")
    turn = Rotation.from_rotvec([0.1, -0.05, 0.2])
    start["platform"] = {"position": (0.1, 0.05, 1.2), "rotation": turn}
    sol = hn.solve(m, (0, 0.01), start=start, speed={"platform": {"velocity": (0.1, 0.2, 0.3)}})
    platform = sol.body("platform")
    np.testing.assert_allclose(platform.position[:, 0], (0.1, 0.05, 1.2), atol=1e-10)
    np.testing.assert_allclose(platform.velocity[:, 0], (0.1, 0.2, 0.3), atol=1e-9)
    assert (platform.rotation[0].inv() * turn).magnitude() < 1e-9
    for i in range(6):
        assert sol.joint(f"L{i}").displacement[0] > 1


def test_ball_joints_take_rotations():
    for coordinates in ("joint", "absolute"):
        m = hn.Mechanism("ball", gravity=(0, 0, -9.81), coordinates=coordinates)
        bob = m.body("bob", 1.0, (0.1, 0.2, 0.15), center=(0, 0, -1))
        m.spherical("A", bob, m.ground.at(0, 0, 0))  # walked back
        turn = Rotation.from_rotvec([0.5, 0.3, 0])
        sol = hn.solve(m, (0, 0.5), start={"A": turn}, speed={"A": (0, 0.5, 2.0)}, rtol=1e-9)
        assert (sol.joint("A").rotation[0].inv() * turn).magnitude() < 1e-9
        assert (sol.body("bob").rotation[0] * turn).magnitude() < 1e-9


def test_at_rest_unless_told():
    m, start, _ = models.spatial_slider_crank()
    sol = hn.solve(m, (0, 0.1), start=start)
    assert np.all(sol.v[:, 0] == 0)


def test_the_rest_moves_with_the_least_energy():
    m = hn.Mechanism("double", gravity=(0, 0))
    first, second = bar(m, "first"), bar(m, "second")
    m.revolute("A", m.ground.at(0, 0), first["A"])
    m.revolute("B", first["B"], second["A"])
    sol = hn.solve(m, (0, 0.1), start={"B": 0.7}, speed={"A": 1.0})
    energies = []
    for rate in (sol.joint("B").rate[0] + d for d in (-1e-3, 0, 1e-3)):
        energies.append(hn.solve(m, (0, 0.1), start={"B": 0.7}, speed={"A": 1.0, "B": rate}).energy[0])
    assert energies[1] < min(energies[0], energies[2])


def test_degrees_of_freedom_and_redundant_rows():
    assert models.four_bar()[0].degrees_of_freedom() == 1
    m = models.four_bar_in_space()[0]
    assert m.degrees_of_freedom() == 1
    assert len(m.redundant()) == 3
    assert "by counting -2" in str(m)
    assert models.stewart()[0].degrees_of_freedom({"platform": {"position": (0, 0, 1.1)}}) == 6
    assert models.rolling_disc()[0].degrees_of_freedom() == 3


def test_what_cannot_close_is_named_with_its_gap():
    m = hn.Mechanism("too short")
    rod = bar(m, "rod")
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    m.distance("stay", m.ground.at(5, 0), rod["B"], 1.0)
    with pytest.raises(hn.InconsistentStart, match=r"cannot be assembled.*'stay' stays open by"):
        hn.solve(m, (0, 1))
    m, _, _ = models.four_bar()
    with pytest.raises(hn.InconsistentStart, match=r"cannot be assembled"):
        hn.solve(m, (0, 1), start={"A": 1.0, "B": 0.0})


def test_drives_and_speeds_that_contradict_each_other():
    m = hn.Mechanism("two drives")
    m.revolute("A", m.ground.at(0, 0), bar(m, "rod")["A"])
    m.drive("slow", "A", lambda t: t)
    m.drive("fast", "A", lambda t: 2 * t)
    with pytest.raises(hn.InconsistentStart, match=r"slow, fast: no velocity.*contradict each other"):
        hn.solve(m, (0, 1))
    m, start, _ = models.four_bar()
    with pytest.raises(hn.InconsistentStart, match=r"speed: .*contradict"):
        hn.solve(m, (0, 1), start=start, speed={"A": 1.0, "D": 5.0})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start": {"Q": 1}}, "start: there is no joint or body 'Q'; there are A, B, C, D, crank"),
        ({"start": {"A": "x"}}, r"start\['A'\]: 'x'; give a number"),
        ({"start": {"A": np.nan}}, r"start\['A'\]: nan; give a number"),
        (
            {"start": {"crank": 3}},
            r"start\['crank'\]: .*give a dict with 'position' \(2 numbers\) and 'angle'",
        ),
        ({"start": 3}, "start: 3; give a dict"),
        ({"speed": {"Q": 1}}, "speed: there is no joint or body 'Q'"),
        ({"start": {"A": 1.0}, "q0": np.zeros(3)}, "start: q0 is given as well"),
        ({"v0": np.zeros(3)}, "v0: it goes with q0"),
    ],
)
def test_bad_starts(arguments, message):
    m, _, _ = models.four_bar("joint")
    with pytest.raises(ValueError, match=message):
        hn.solve(m, (0, 1), **arguments)


def test_a_system_of_functions_has_no_names():
    pendulum = hn.mechanisms.pendulum()
    with pytest.raises(ValueError, match=r"start: .*has no joints and bodies by name"):
        hn.solve(pendulum.system, (0, 1), start={"A": 1})
    with pytest.raises(ValueError, match="q0: missing"):
        hn.solve(pendulum.system, (0, 1))
    assert hn.solve(pendulum, (0, 1)).success  # a ready-made mechanism brings its start along


def test_a_rotation_by_half_a_turn_is_no_rotation_by_none():
    """What a body is given must hold, also where the search begins at the opposite."""
    m = hn.Mechanism("ball joint", gravity=(0, 0, -9.81))
    m.spherical("A", m.ground.at(0, 0, 0), bar(m, "rod")["A"])
    for axis in np.eye(3):
        wanted = Rotation.from_rotvec(np.pi * axis)
        for value in (wanted, hn.near(wanted)):
            sol = hn.solve(m, (0, 0.1), start={"A": value})
            assert (sol.body("rod").rotation[0].inv() * wanted).magnitude() < 1e-8
        for value in ({"rotation": wanted}, hn.near({"rotation": wanted})):
            sol = hn.solve(m, (0, 0.1), start={"rod": value})
            assert (sol.body("rod").rotation[0].inv() * wanted).magnitude() < 1e-8


def test_branches_of_what_is_free_to_move_are_its_branches():
    m, _, _ = models.four_bar()
    places = [dict(zip(m.system.names, q, strict=True)) for q in m.assemble()]
    assert len(places) == 2
    m = hn.Mechanism("cart")
    cart = m.body("cart", 2.0, 0.1)
    m.prismatic("slide", m.ground.at(0, 0), cart)
    m.revolute("hinge", cart, bar(m, "rod")["A"])
    np.testing.assert_allclose(m.assemble({"hinge": 0.5}), [[0.0, 0.5]], atol=1e-9)


def test_names_that_look_like_coordinates_of_others():
    m = hn.Mechanism("names", gravity=(0, 0, -9.81))
    plate, lid = bar(m, "plate"), bar(m, "lid")
    m.planar("P", m.ground.at(0, 0, 0), plate["A"])
    m.revolute("P x", plate["B"], lid["A"])
    assert m.system.names == ["P x", "P y", "P angle", "P x (2)"]
    sol = hn.solve(m, (0, 0.1), start={"P": {"x": 0.2}, "P x": 0.3})
    assert sol.joint("P").values["x"][0] == 0.2
    assert sol.joint("P x").angle[0] == 0.3

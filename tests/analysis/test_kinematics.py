"""Positions, velocities, accelerations and forces of driven mechanisms against closed forms."""

import pickle

import numpy as np
import pytest

import holonome as hn
from analysis.models import G, parallelogram, slider_crank

R, L = 0.3, 1.0


def crank_positions(A):
    root = np.sqrt(L**2 - (R * np.sin(A)) ** 2)
    x = R * np.cos(A) + root
    by_A = -R * np.sin(A) - R**2 * np.sin(A) * np.cos(A) / root
    second = -R * np.cos(A) - R**2 * np.cos(2 * A) / root - (R**2 * np.sin(A) * np.cos(A)) ** 2 / root**3
    return x, by_A, second


def test_slider_crank_over_two_turns():
    A = np.linspace(0, 4 * np.pi, 121)
    kin = hn.kinematics(slider_crank(), "A", A, rate=7.0, start={"A": 0.0, "D": hn.near(1.3)})
    x, by_A, second = crank_positions(A)
    assert kin.success
    assert np.allclose(kin.joint("A").angle, A, atol=1e-13)
    assert np.allclose(kin.joint("D").displacement, x, atol=1e-13)
    assert np.allclose(kin.body("piston").velocity[0], 7 * by_A, atol=1e-12)
    assert np.allclose(kin.body("piston").acceleration[0], 49 * second, atol=1e-11)
    turns = np.sort(kin.turns("D"))
    assert turns == pytest.approx(np.arange(turns.size) * np.pi, abs=1e-9)
    assert turns.size >= 4
    assert kin.t == pytest.approx(A / 7)


def test_rate_and_acceleration_of_the_drive():
    A = np.linspace(0.2, 1.0, 9)
    rate, acceleration = np.linspace(1, 3, 9), np.linspace(-2, 2, 9)
    kin = hn.kinematics(
        slider_crank(), "A", A, rate=rate, acceleration=acceleration, start={"A": 0.2, "D": hn.near(1.3)}
    )
    _, by_A, second = crank_positions(A)
    expected = second * rate**2 + by_A * acceleration
    assert np.allclose(kin.body("piston").acceleration[0], expected, atol=1e-12)


def test_values_at_times():
    """A = sin t as a spline through its values."""
    t = np.linspace(0, 3, 61)
    kin = hn.kinematics(slider_crank(), "A", np.sin(t), t=t, start={"A": 0.0, "D": hn.near(1.3)})
    assert np.allclose(kin.joint("A").rate[5:-5], np.cos(t)[5:-5], atol=1e-6)
    _, by_A, second = crank_positions(np.sin(t))
    expected = second * np.cos(t) ** 2 - by_A * np.sin(t)
    assert np.allclose(kin.body("piston").acceleration[0][8:-8], expected[8:-8], atol=2e-3)


def test_torque_of_the_crank_does_the_work():
    """The work of the torque is the change of the energy."""
    m = slider_crank()
    A = np.linspace(0, 2 * np.pi, 401)
    kin = hn.kinematics(m, "A", A, rate=5.0, start={"A": 0.0, "D": hn.near(1.3)})
    work = np.cumsum(np.append(0, (kin.efforts["A"][1:] + kin.efforts["A"][:-1]) / 2 * np.diff(A)))
    energy = kin.run.energy - kin.run.energy[0]
    assert np.allclose(work, energy, atol=5e-4)
    few = hn.kinematics(m, "A", A[::40], rate=5.0, start={"A": 0.0, "D": hn.near(1.3)})
    assert np.allclose(few.inputs("torque")["torque"], few.efforts["A"])
    assert np.allclose(few.inputs()["torque"], kin.efforts["A"][::40])


def test_reactions_agree_with_a_driven_run():
    m, driven = slider_crank(), slider_crank()
    driven.drive("drive", "A", lambda t: 0.4 + 3 * t)
    sol = hn.solve(driven, (0, 0.5), start={"D": hn.near(1.2)}, rtol=1e-10, t_eval=[0.0, 0.2, 0.5])
    kin = hn.kinematics(m, "A", 0.4 + 3 * sol.t, rate=3.0, start={"A": 0.4, "D": hn.near(1.2)})
    for joint in ("A", "B", "C", "D"):
        assert np.allclose(kin.reaction(joint).force, sol.reaction(joint).force, atol=1e-6)
    assert np.allclose(kin.efforts["A"], sol.effort("drive"), atol=1e-6)


def four_bar(a=0.3, b=1.0, c=0.8, d=1.1):
    m = hn.Mechanism("four-bar", gravity=(0, -G))
    crank = m.body("crank", 1.0, 0.1, points={"A": (0, 0), "B": (a, 0)})
    coupler = m.body("coupler", 1.0, 0.1, points={"B": (0, 0), "C": (b, 0)})
    rocker = m.body("rocker", 1.0, 0.1, points={"D": (0, 0), "C": (c, 0)})
    m.revolute("A", m.ground.at(0, 0), crank["A"])
    m.revolute("B", crank["B"], coupler["B"])
    m.revolute("C", coupler["C"], rocker["C"])
    m.revolute("D", m.ground.at(d, 0), rocker["D"])
    return m


def test_transmission_angle_of_a_four_bar():
    """cos μ = (b² + c² − |BD|²)/(2 b c)."""
    A = np.linspace(0, 2 * np.pi, 37)
    kin = hn.kinematics(four_bar(), "A", A, start={"A": 0.0, "D": hn.near(1.5)})
    square = 0.3**2 + 1.1**2 - 2 * 0.3 * 1.1 * np.cos(A)
    angle = np.arccos((1 + 0.8**2 - square) / 1.6)
    expected = np.minimum(angle, np.pi - angle)
    assert np.allclose(kin.transmission("C"), expected, atol=1e-12)
    assert np.allclose(kin.transmission("C", "B", "D"), expected, atol=1e-12)
    with pytest.raises(hn.ModelError, match="there is no joint 'X'"):
        kin.transmission("X")


def test_rocker_as_the_drive_stops_at_its_dead_point():
    """Crank and coupler in line: |CA| = a + b, from the cosine theorem at D."""
    m = four_bar()
    limit = np.pi - np.arccos((0.8**2 + 1.1**2 - 1.3**2) / (2 * 0.8 * 1.1))
    start = hn.kinematics(m, "A", [1.0], start={"A": 1.0, "D": hn.near(1.5)})
    begin = float(start.joint("D").angle[0])
    kin = hn.kinematics(m, "D", np.linspace(begin, begin - 3, 61), start={"A": 1.0, "D": begin})
    assert not kin.success
    (point,) = kin.dead_points
    assert point.kind == "end"
    assert point.value == pytest.approx(limit, abs=1e-9) or point.value == pytest.approx(
        np.pi - np.arccos((0.8**2 + 1.1**2 - 0.7**2) / (2 * 0.8 * 1.1)), abs=1e-9
    )
    assert kin.q.shape[1] == kin.drives["D"].size < 61
    turned = hn.kinematics(m, "A", np.linspace(0, 2 * np.pi, 41), start={"A": 0.0, "D": hn.near(1.5)}).turns(
        "D"
    )
    assert np.isclose(
        hn.kinematics(m, "A", np.sort(turned), start={"A": np.sort(turned)[0], "D": hn.near(1.5)})
        .joint("D")
        .angle,
        point.value,
        atol=1e-9,
    ).any()


@pytest.mark.parametrize("values", [np.linspace(0.3, 7.0, 40), np.linspace(-np.pi / 2, 2 * np.pi, 41)])
def test_parallelogram_goes_straight_through_its_singular_positions(values):
    """Also where one of them is a wanted value: positions, rates, accelerations are those of the limit."""
    kin = hn.kinematics(parallelogram(), "A", values, start={"A": values[0], "D": hn.near(values[0])})
    assert kin.success
    assert np.allclose(kin.joint("D").angle, values, atol=1e-11)
    assert np.allclose(kin.joint("D").rate, 1.0, atol=1e-9)
    assert np.max(np.abs(kin.a)) < 1e-7
    expected = [k * np.pi for k in range(3) if values[0] < k * np.pi <= values[-1] + 1e-9]
    assert [point.value for point in kin.dead_points] == pytest.approx(expected, abs=1e-6)
    assert {point.kind for point in kin.dead_points} == {"passed"}


def test_singular_start_is_told():
    with pytest.raises(hn.ModelError, match="values: the first position is singular"):
        hn.kinematics(parallelogram(), "A", [0.0, 0.1], start={"A": 0.0, "D": 0.0})


def test_redundant_rows_in_space():
    example = hn.mechanisms.bennett_linkage()
    first = next(name for name, joint in example.mechanism.joints.items() if joint.what == "revolute")
    kin = hn.kinematics(example, first, np.linspace(0.5, 1.5, 11))
    assert kin.success
    assert np.max(np.abs(kin.run.g)) < 1e-11


def test_two_drives():
    """A double pendulum driven at both joints: closed form of the tip."""
    m = hn.Mechanism("arm", gravity=(0, -G))
    a = m.body("a", 1.0, 0.1, points={"A": (0, 0), "B": (0.7, 0)})
    b = m.body("b", 1.0, 0.1, points={"B": (0, 0), "tip": (0.5, 0)})
    m.revolute("A", m.ground.at(0, 0), a["A"])
    m.revolute("B", a["B"], b["B"])
    t = np.linspace(0, 1, 11)
    kin = hn.kinematics(m, {"A": t, "B": 2 * t}, t=t)
    tip = kin.body("b").point("tip")
    assert np.allclose(tip, [0.7 * np.cos(t) + 0.5 * np.cos(3 * t), 0.7 * np.sin(t) + 0.5 * np.sin(3 * t)])
    assert set(kin.efforts) == {"A", "B"}
    with pytest.raises(hn.ModelError, match=r"drive: 1 more degree of freedom stays free beside A \(B"):
        hn.kinematics(m, "A", t)
    with pytest.raises(ValueError, match="rate: of several drives"):
        hn.kinematics(m, {"A": t, "B": t})
    inverse = hn.kinematics(
        m, {"b.tip x": 0.9 + 0.1 * t, "b.tip y": 0.2 * t}, t=t, start={"A": 0.3, "B": hn.near(-1)}
    )
    assert np.allclose(inverse.body("b").point("tip"), [0.9 + 0.1 * t, 0.2 * t])


def test_system_by_hand_and_end_of_its_circle():
    kin = hn.kinematics(hn.mechanisms.pendulum().system, "x", np.linspace(0, 1.2, 7), guess=[0.0, -1.0])
    assert not kin.success
    assert kin.dead_points[0].value == pytest.approx(1.0, abs=1e-10)
    assert np.allclose(kin.q[1], -np.sqrt(1 - kin.q[0] ** 2))
    assert "cannot go beyond 1: a dead point" in str(kin)


def test_pictures_and_animation(tmp_path):
    kin = hn.kinematics(slider_crank(), "A", np.linspace(0, 6, 31), start={"A": 0.0, "D": hn.near(1.3)})
    kin.plot(file=tmp_path / "kinematics.png")
    kin.plot(["D", "rod.C"], file=tmp_path / "chosen.png")
    assert kin.animate(tmp_path / "motion.html").file.stat().st_size > 1e5
    assert (tmp_path / "chosen.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"drive": "X", "values": [0.0]}, "drive: 'X' is not one coordinate"),
        ({"drive": "A"}, "values: missing"),
        ({"drive": 3}, "drive: 3; give"),
        ({"drive": "A", "values": [np.nan]}, "values: "),
        ({"drive": "A", "values": 1.0}, "values: give a one-dimensional"),
        ({"drive": {"A": [0.0]}, "values": [0.0]}, "values: drive is a dict"),
        ({"drive": "A", "values": [0.0, 1.0], "rate": [1.0]}, "rate: shape"),
        ({"drive": "A", "values": [0.0, 1.0], "t": [1.0, 0.0]}, "t: give 2 increasing"),
        ({"drive": "A", "values": [0.0, 1.0], "t": [0.0, 1.0], "rate": 1.0}, "rate: t is given"),
        ({"drive": "A.rate", "values": [0.0]}, "drive: 'A.rate' is a velocity"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        hn.kinematics(slider_crank(), start={"A": 0.0, "D": hn.near(1.3)}, **arguments)


def test_rolling_wheels_and_odes_are_refused_by_name():
    with pytest.raises(hn.ModelError, match="kinematics: this system has velocity constraints"):
        hn.kinematics(hn.mechanisms.whipple_bicycle(), "steer", [0.0, 0.1])
    with pytest.raises(hn.ModelError, match="an ODE has no coordinates"):
        hn.kinematics(hn.ODE(lambda x: -x, n=1), "x0", [0.0], guess=[0.0])


def test_workspace_of_an_arm_and_of_a_five_bar(tmp_path):
    """By its tip: an arm of two equal rods reaches the disc."""
    m = hn.Mechanism("arm", gravity=(0, 0))
    a = m.body("a", 1.0, 0.1, points={"A": (0, 0), "B": (0.5, 0)})
    b = m.body("b", 1.0, 0.1, points={"B": (0, 0), "tip": (0.5, 0)})
    m.revolute("A", m.ground.at(0, 0), a["A"])
    m.revolute("B", a["B"], b["B"])
    x = np.linspace(-1.2, 1.2, 7)
    space = hn.workspace(m, {"b.tip x": x, "b.tip y": x}, start={"A": 0.1, "B": 1.2})
    X, Y = np.meshgrid(x, x, indexing="ij")
    inside = np.hypot(X, Y) < 1
    inside[3, 3] = space.reached[3, 3]  # folded, where the whole arm may turn
    assert np.array_equal(space.reached, inside)
    tip = space.points("b.tip")
    assert np.allclose(tip[0][inside], X[inside])
    assert np.isnan(tip[0][~inside]).all()
    space.plot("b.tip", file=tmp_path / "workspace.png")
    with pytest.raises(ValueError, match="drives: 3; give"):
        hn.workspace(m, 3)
    with pytest.raises(hn.ModelError, match="drive: 1 more degree of freedom"):
        hn.workspace(m, {"A": x}, start={"A": 0.1, "B": 1.2})


def test_results_pickle():
    example = hn.mechanisms.spatial_slider_crank()
    kin = hn.kinematics(example, "A", np.linspace(0, 2 * np.pi, 19), rate=10.0)
    other = pickle.loads(pickle.dumps(kin))
    assert str(other) == str(kin)
    np.testing.assert_array_equal(other.efforts["A"], kin.efforts["A"])
    space = hn.workspace(example, {"A": np.linspace(0.0, 1.0, 5)})
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(space)).q, space.q)

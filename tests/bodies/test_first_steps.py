"""What a first user meets: points with axes of their own, and a mechanism that cannot move."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import holonome as hn


def test_a_point_has_axes_of_its_own():
    m = hn.Mechanism("slope", gravity=(0, 0, -9.81))
    turn = Rotation.from_euler("xyz", [30, -20, 50], degrees=True)
    sled = m.body("sled", 1.0, (0.1, 0.1, 0.1), points={"runner": ((0.1, 0, 0), turn)})
    m.prismatic("slide", m.ground.at(0, 0, 1, rotation=turn), sled["runner"])
    sol = hn.solve(m, (0, 1))
    along = turn.as_matrix()[:, 2]
    assert sol.joint("slide").displacement[-1] == pytest.approx(-9.81 / 2 * along[2], rel=1e-9)
    moved = sol.body("sled").position[:, -1] - sol.body("sled").position[:, 0]
    assert np.abs(np.cross(moved, along)).max() < 1e-13


def test_a_mechanism_that_cannot_move_says_so():
    m = hn.Mechanism("statue")
    stone = m.body("stone", 1.0, 0.1)
    m.fixed("base", m.ground.at(0, 0), stone.at(0, 0))
    with pytest.raises(hn.ModelError, match="nothing in this mechanism can move"):
        hn.solve(m, (0, 1))


def test_a_saved_result_is_read_with_its_mechanism(tmp_path):
    m = hn.Mechanism("pendulum")
    rod = m.body("rod", 1.0, 1 / 12, center=(0.5, 0), points={"A": (0, 0)})
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    sol = hn.solve(m, (0, 1), start={"A": -0.1})
    file = sol.save(tmp_path / "swing.npz")
    again = hn.Solution.load(file, m)
    assert again.joint("A").angle.tolist() == sol.joint("A").angle.tolist()
    with pytest.raises(hn.ModelError, match="or read the file with its"):
        hn.Solution.load(file).joint("A")
    assert hn.consistent(m, [0.3]).q.tolist() == [0.3]


def test_drives_that_contradict_each_other_are_named():
    m = hn.Mechanism("two cranks")
    for name, x in (("left", 0.0), ("right", 1.0)):
        crank = m.body(name, 1.0, 0.1, points={"axle": (0, 0), "pin": (0.4, 0)})
        m.revolute(f"{name} axle", m.ground.at(x, 0), crank["axle"])
        m.drive(f"{name} motor", f"{name} axle", law=(lambda t: t) if x == 0 else lambda t: t + 1)
    m.distance("rod", m.bodies["left"]["pin"], m.bodies["right"]["pin"], length=1.0)
    with pytest.raises(
        hn.InconsistentStart, match=r"against left motor, right motor .* what drives prescribe"
    ):
        hn.solve(m, (0, 1))


def test_a_ball_joint_asks_for_a_rotation():
    m = hn.Mechanism("pendulum", gravity=(0, 0, -9.81))
    bob = m.body("bob", 1.0, (0.1, 0.1, 0.1), points={"A": (0, 0, 1)})
    m.spherical("A", m.ground.at(0, 0, 0), bob["A"])
    with pytest.raises(
        hn.InconsistentStart, match=r"start\['A'\]: 0.3; give a scipy.spatial.transform.Rotation"
    ):
        hn.solve(m, (0, 1), start={"A": 0.3})

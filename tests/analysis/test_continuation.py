"""Branches, folds and branch points against closed forms."""

import numpy as np
import pytest

import holonome as hn
from analysis.models import G, governor, hoop


def test_bead_on_a_hoop_has_a_pitchfork():
    """θ = 0 loses its stability at Ω² = g/R to the two branches cos θ = g/(R Ω²)."""
    branch = hn.equilibrium(hoop(), [0.0]).follow("w2", (5.0, 20.0))
    (point,) = branch.branch_points
    assert point.value == pytest.approx(G, rel=1e-12)
    assert not branch.folds
    assert np.array_equal(branch.stable, branch.values < G)
    assert len(branch.others) == 2
    for other in branch.others:
        assert np.allclose(np.cos(other.q[0]), G / other.values, atol=1e-12)
        assert other.stable[1:].all()
    assert {np.sign(other.q[0, -1]) for other in branch.others} == {-1.0, 1.0}
    angles = sorted(float(found.q[0]) for found in branch.at(15.0))
    assert np.allclose(angles, [-np.arccos(G / 15), 0, np.arccos(G / 15)], atol=1e-10)


def von_mises(height=0.3, k=100.0):
    """Two springs of stiffness k from (∓1, 0) to the apex (0, height)."""
    rest = np.hypot(1.0, height)
    bars = [
        hn.Elastic(lambda q, side=side: np.sqrt((q[0] - side) ** 2 + q[1] ** 2) - rest, k)
        for side in (-1.0, 1.0)
    ]
    return hn.System(
        [1.0, 1.0],
        lambda p: np.array([0.0, -p.load]),
        elastic=bars,
        parameters={"load": 0.0},
        names=["x", "y"],
    )


def test_von_mises_truss_snaps_through():
    """P(y) = 2 k y (l/√(1 + y²) − 1), limit points at y² = l^{2/3} − 1."""
    branch = hn.equilibrium(von_mises(), [0.0, 0.3]).follow("load", (-3.0, 3.0), switch=False)
    l = np.hypot(1.0, 0.3)
    y = np.sqrt(l ** (2 / 3) - 1)
    limit = 200 * y * (l / np.sqrt(1 + y * y) - 1)
    folds = sorted(point.value for point in branch.folds)
    assert folds == pytest.approx([-limit, limit], rel=1e-9)
    y = branch.q[1]
    assert np.allclose(branch.values, 200 * y * (l / np.sqrt(1 + y * y) - 1), atol=1e-9)
    assert np.allclose(branch.q[0], 0, atol=1e-12)
    inside = np.abs(y) < np.sqrt(l ** (2 / 3) - 1)
    assert not branch.stable[inside].any()


def test_stiff_truss_leaves_its_symmetry():
    """A high truss goes sideways before it snaps: a branch point on either side, with branches from it."""
    branch = hn.equilibrium(von_mises(3.0), [0.0, 3.0]).follow("load", (0.0, 400.0))
    first = min(branch.branch_points, key=lambda point: point.index)
    l, y = np.hypot(1.0, 3.0), float(first.q[1])
    r = np.sqrt(1 + y * y)
    assert 1 - l * y * y / r**3 == pytest.approx(0, abs=1e-9)  # the stiffness along x vanishes
    assert branch.others
    assert max(np.max(np.abs(other.q[0])) for other in branch.others) > 0.1


def strut(k=5.0, c=0.0):
    """A rigid bar on a spring hinge under a load from above, by its tip (x, y) on the unit circle."""
    return hn.System(
        [1.0, 1.0],
        lambda q, p: np.array([-k * q[0] / np.sqrt(1 + 0 * q[0]) + p.push, -p.load]),
        lambda q: q @ q - 1,
        velocity_constraint=None,
        parameters={"load": 1.0, "push": c},
        names=["x", "y"],
    )


def test_strut_held_by_a_horizontal_spring_buckles():
    """k x y = P x: the upright strut buckles at P = k, into y = P/k, which falls."""
    branch = hn.equilibrium(strut(), [0.0, 1.0]).follow("load", (1.0, 8.0))
    assert [point.value for point in branch.branch_points] == pytest.approx([5.0], rel=1e-11)
    assert np.array_equal(branch.stable, branch.values < 5.0)
    for other in branch.others:
        assert np.allclose(other.q[1], other.values / 5.0, atol=1e-10)
        assert not other.stable[2:].any()
        assert other.values[-1] == 1.0


def test_imperfect_strut_has_a_fold_instead():
    """With a side force ε: P = k y − ε y/x on x² + y² = 1; the largest P is at x³ = ε/k."""
    branch = hn.equilibrium(strut(c=0.05), [0.0, 1.0]).follow("load", (1.0, 8.0))
    x = (0.05 / 5) ** (1 / 3)
    y = np.sqrt(1 - x * x)
    assert not branch.branch_points
    assert branch.folds[0].value == pytest.approx(5 * y - 0.05 * y / x, rel=1e-9)


def test_cubic_has_two_folds():
    arch = hn.System(1.0, lambda q, p: q - q**3 - p.load, parameters={"load": -1.0}, names=["x"])
    branch = hn.equilibrium(arch, [1.3]).follow("load", [-1.0, 1.0])
    assert sorted(point.value for point in branch.folds) == pytest.approx(
        [-2 / 27**0.5, 2 / 27**0.5], rel=1e-10
    )
    assert len(branch.at(0.0)) == 3


def test_transcritical_branches_cross():
    system = hn.System(1.0, lambda q, p: q * (p.a - q), parameters={"a": -1.0}, names=["x"])
    branch = hn.equilibrium(system, [0.0]).follow("a", (-1.0, 1.0))
    assert [point.value for point in branch.branch_points] == pytest.approx([0.0], abs=1e-9)
    assert len(branch.others) == 2
    for other in branch.others:
        assert np.allclose(other.q[0], other.values, atol=1e-9)


def test_closed_branch_ends_where_it_began():
    """The circle x² + a² = 1."""
    system = hn.System(1.0, lambda q, p: 1 - q**2 - p.a**2, parameters={"a": 0.0}, names=["x"])
    branch = hn.equilibrium(system, [1.0]).follow("a", (0.0, 5.0), step=0.01)
    assert branch.ended == "a = 0 was reached"
    branch = hn.equilibrium(system, [1.0]).follow("a", np.array([0.0, 2.0, -2.0]), step=0.02)
    assert branch.ended == "the branch closes"
    assert np.allclose(branch.q[0] ** 2 + branch.values**2, 1)


def test_wanted_values_are_points():
    wanted = [5.0, 6.5, 7.25, 9.0]
    branch = hn.equilibrium(hoop(), [0.0]).follow("w2", wanted)
    assert set(wanted) <= set(branch.values.tolist())


def test_redundant_rows_and_neutral_coordinates_do_not_disturb():
    """The hoop's bead by its height and distance, on a circle stated twice, with a free spin beside it."""

    def constraint(q):
        circle = q[0] ** 2 + q[1] ** 2 - 1
        return np.array([circle, 3 * circle])

    system = hn.System(
        np.ones(3),
        lambda q, p: np.array([p.w2 * q[0], -G, 0.0]),
        constraint,
        parameters={"w2": 5.0},
        names=["x", "y", "spin"],
    )
    branch = hn.equilibrium(system, [0.0, -1.0, 0.3]).follow("w2", (5.0, 20.0))
    assert [point.value for point in branch.branch_points] == pytest.approx([G], rel=1e-9)
    assert len(branch.others) == 2
    for other in branch.others:
        assert np.allclose(other.q[1], -G / other.values, atol=1e-8)


def test_steady_motion_can_be_followed():
    """The governor over gravity, by its mass: nothing changes; over its arm, cos θ = g/(l Ω²)."""
    branch = hn.equilibrium(governor(), [0.0, 0.9], speed={"phi": 8.0}).follow("l", (0.4, 0.8))
    assert np.allclose(np.cos(branch.q[1]), G / (branch.values * 64), atol=1e-10)
    assert np.allclose(branch.v[0], 8.0)


def test_mechanism_can_be_followed_and_drawn(tmp_path):
    m = hn.Mechanism("balance", gravity=(0, -G), parameters={"k": 20.0})
    rod = m.body("rod", 1.0, 1 / 12, center=(0.5, 0), points={"A": (0, 0), "tip": (1, 0)})
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    m.spring("hinge", joint="A", stiffness=m.p.k, rest=np.pi / 2)
    found = hn.equilibrium(m, start={"A": np.pi / 2})
    branch = found.follow("k", (20.0, 2.0))
    assert [point.value for point in branch.branch_points] == pytest.approx([G / 2], rel=1e-9)
    assert branch.quantity("A.angle")[0] == pytest.approx(np.pi / 2)
    axes = branch.plot("A.angle", file=tmp_path / "branches.png")
    assert axes.get_xlabel() == "k"
    assert (tmp_path / "branches.png").stat().st_size > 5000
    assert "branch point at k = 4.905" in str(branch)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("nonsense", (0, 1), "name: 'nonsense' is no parameter"),
        ("w2", (1.0,), "values: give"),
        ("w2", (1.0, 1.0), "values: give"),
        ("w2", (1.0, np.nan), "values"),
    ],
)
def test_wrong_arguments_are_named(name, values, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        hn.equilibrium(hoop(), [0.0]).follow(name, values)


def test_end_of_a_branch_is_told():
    none = hn.System(1.0, lambda q, p: p.a - q * q, parameters={"a": 1.0}, names=["x"])
    with pytest.raises(hn.ModelError, match="the equilibrium ends before a = -2"):
        hn.equilibrium(none, [1.0]).follow("a", (-2.0, 1.0))


def ziegler(damping):
    """Ziegler's column with its follower load, masses 2 and 1, springs, dampers and lengths of one."""
    return hn.System(
        np.array([[3.0, 1.0], [1.0, 1.0]]),
        lambda q, v, p: (
            np.array([(p.load - 2) * q[0] + (1 - p.load) * q[1], q[0] - q[1]])
            + p.damping * np.array([v[1] - 2 * v[0], v[0] - v[1]])
        ),
        parameters={"load": 0.0, "damping": damping},
        names=["lower", "upper"],
    )


@pytest.mark.parametrize(
    ("damping", "load"), [(0.0, 3.5 - np.sqrt(2)), (0.05, 41 / 28 + 0.05**2 / 2), (0.5, 41 / 28 + 0.5**2 / 2)]
)
def test_flutter_of_zieglers_column(damping, load):
    """As published by Herrmann and Jong: a little damping lowers the critical load by a third."""
    branch = hn.equilibrium(ziegler(damping), [0.0, 0.0]).follow("load", (0.0, 2.4))
    (point,) = branch.hopf_points
    assert point.kind == "Hopf point"
    assert point.value == pytest.approx(load, rel=1e-5 if damping == 0 else 1e-6)
    assert 0 < point.index < len(branch)
    omega = 2 * np.pi * point.frequency
    K = np.array([[2 - load, load - 1], [-1, 1]])
    C, M = damping * np.array([[2, -1], [-1, 1]]), np.array([[3.0, 1], [1, 1]])
    left = np.linalg.det(K - omega**2 * M + 1j * omega * C)
    assert abs(left) < (1e-4 if damping == 0 else 1e-7)
    assert "Hopf point at load" in str(branch)


def test_an_oscillation_begins_where_damping_changes_its_sign():
    oscillator = hn.System(
        1.0, lambda q, v, p: (p.mu - q**2) * v - 4 * q, parameters={"mu": -1.0}, names=["x"]
    )
    (point,) = hn.equilibrium(oscillator, [0.0]).follow("mu", (-1.0, 1.0)).hopf_points
    assert abs(point.value) < 1e-6
    assert point.frequency == pytest.approx(1 / np.pi)

"""Points with axes of their own, inertia by parameters, and where the search for a start begins."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import holonome as hn
from holonome.dynamics.evaluation import what_is_not_finite


def test_a_point_may_have_axes_of_its_own():
    """A hinge along the z-axis of a turned point is one along the direction that z is turned to."""
    turn = Rotation.from_rotvec([0.3, 1.1, -0.4])
    inertia = np.array([[0.3, 0.01, 0.02], [0.01, 0.2, 0.03], [0.02, 0.03, 0.25]])
    angles = []
    for own in (True, False):
        m = hn.Mechanism("door", gravity=(0, 0, -9.81))
        if own:
            door = m.body("door", 2.0, inertia, center=(0.4, 0.1, 0.2), points={"A": ((0, 0, 0), turn)})
            m.revolute("A", m.ground.at(0, 0, 0, rotation=turn), door["A"])
        else:
            door = m.body("door", 2.0, inertia, center=(0.4, 0.1, 0.2), points={"A": (0, 0, 0)})
            m.revolute("A", m.ground.at(0, 0, 0), door["A"], axis=turn.apply([0, 0, 1]))
        sol = hn.solve(m, (0, 1), start={"A": 0.5}, rtol=1e-10)
        angles.append(sol.joint("A").angle[-1])
    assert angles[0] == pytest.approx(angles[1], abs=1e-8)


def test_principal_moments_may_be_parameters():
    m = hn.Mechanism("wheel", gravity=(0, 0, 0), parameters={"J": 0.5})
    wheel = m.body("wheel", 1.0, (m.p.J / 2, m.p.J / 2, m.p.J))
    m.revolute("A", m.ground.at(0, 0, 0), wheel.at(0, 0, 0))
    m.torque("motor", "A", law=2.0)
    sol = hn.solve(m, (0, 1), start={"A": 0.0})
    assert sol.joint("A").rate[-1] == pytest.approx(4.0, abs=1e-9)


@pytest.mark.parametrize("gravity", [(0, 0), (0, 0, 0)])
def test_search_begins_with_the_origin_of_a_free_body(gravity):
    """A body that nothing is said about has its origin, not its centre of mass, on that of the ground; one
    that is to be near a place has its origin there.
    """
    zero = (0.0,) * len(gravity)
    arm = (1.0, *zero[1:])
    m = hn.Mechanism("free", gravity=gravity)
    box = m.body("box", 1.0, 1.0 if len(gravity) == 2 else (1, 1, 1), center=(0.4, -0.2, 0.1)[: len(gravity)])
    m.free(box)
    sol = hn.solve(m, (0, 0.1))
    assert np.allclose(sol.body("box").position[:, 0], 0, rtol=0, atol=1e-15)
    turn = {"angle": 2.0} if len(gravity) == 2 else {"rotation": Rotation.from_rotvec([1, 2, 0.5])}
    sol = hn.solve(m, (0, 0.1), start={"box": hn.near({"position": arm, **turn})})
    assert np.allclose(sol.body("box").position[:, 0], arm, rtol=0, atol=1e-15)


def test_a_linkage_is_assembled_in_the_position_it_is_described_in():
    """The upright of a suspension hangs on two balls and has coordinates of its centre of mass; its other
    position, turned by half a turn, is not taken.
    """
    example = hn.mechanisms.double_wishbone()
    sol = hn.solve(example.mechanism, (0, 0.01), start={"car": 0.0})
    assert np.allclose(sol.body("upright").position[:, 0], 0, rtol=0, atol=1e-12)


def test_bushings_are_not_blamed_for_what_is_not_finite():
    """Their stiffness is asked for without a position, to see whether it is finite."""
    m = hn.Mechanism("block", gravity=(0, 0, -9.81))
    block = m.body("block", 1.0, (1, 1, 1))
    m.free(block)
    m.bushing("mount", m.ground.at(0, 0, 0), block.at(0, 0, 0), 1e3, 1.0)
    q, v, _ = m.initial()
    assert what_is_not_finite(m.system, 0.0, np.concatenate([q, v])) == ""

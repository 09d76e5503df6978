"""Mechanisms that several tests use, each with a start and speeds by name."""

import numpy as np
from scipy.spatial.transform import Rotation

import holonome as hn


def bar(m, name, length=1.0, mass=1.0):
    """A uniform bar from A to B along x."""
    flat = m.dimension == 2
    J = mass * length**2 / 12
    zero = () if flat else (0.0,)
    return m.body(
        name,
        mass=mass,
        inertia=J if flat else (1e-3, J, J),
        center=(length / 2, 0, *zero),
        points={"A": (0, 0, *zero), "B": (length, 0, *zero)},
    )


def four_bar(coordinates="auto", dimension=2):
    zero = (0.0,) * (dimension - 2)
    m = hn.Mechanism(
        "four-bar", gravity=(0, -9.81, *zero), parameters={"T0": 1.0, "k": 0.1}, coordinates=coordinates
    )
    crank, coupler, rocker = (
        bar(m, "crank", 0.4, 0.4),
        bar(m, "coupler", 0.9, 0.9),
        bar(m, "rocker", 0.7, 0.7),
    )
    m.revolute("A", m.ground.at(0, 0, *zero), crank["A"])
    m.revolute("B", crank["B"], coupler["A"])
    m.revolute("C", coupler["B"], rocker["B"])
    m.revolute("D", rocker["A"], m.ground.at(1, 0, *zero))
    m.torque("motor", "A", lambda angle, rate, p: p.T0 - p.k * rate)
    return m, {"A": np.pi / 2, "D": hn.near(-1.7)}, {"A": 6.0}


def double_pendulum(coordinates="auto"):
    """A hinge and a Cardan joint in space, a spring, and a motor whose torque depends on the angle."""
    m = hn.Mechanism("double", gravity=(0, 0, -9.81), coordinates=coordinates)
    upper = m.body(
        "upper", 1.0, (0.1, 0.2, 0.15), points={"A": (0, 0, 0), "B": (1, 0, 0)}, center=(0.5, 0.1, 0)
    )
    lower = m.body(
        "lower", 2.0, (0.1, 0.2, 0.15), points={"B": (0, 0, 0), "C": (0, 1, 0)}, center=(0, 0.5, 0.1)
    )
    m.revolute("A", m.ground.at(0, 0, 0), upper["A"], axis=(0, 1, 0))
    m.universal("B", upper["B"], lower["B"], axes=((1, 0, 0), (0, 0, 1)))
    m.spring("spring", m.ground.at(0, 0, 1), lower["C"], stiffness=10, damping=0.3, length=0.5)
    m.torque("motor", "A", lambda t, angle, rate: np.sin(t) - 0.1 * rate - 0.2 * angle)
    return m, {"A": 0.2, "B": (0.3, 0.4)}, {"A": 1.0, "B": {"angle x": 0.3}}


def many_joints(coordinates="auto"):
    """A cylindrical and a planar joint and a screw, walked in both directions."""
    m = hn.Mechanism("many joints", gravity=(0, 0, -9.81), coordinates=coordinates)
    J = (0.1, 0.2, 0.15)
    a = m.body("a", 1.0, J, points={"A": (0, 0, 0), "B": (1, 0, 0)}, center=(0.5, 0.1, 0))
    b = m.body("b", 2.0, J, points={"B": (0, 0, 0), "C": (0, 1, 0)}, center=(0.0, 0.5, 0.1))
    c = m.body("c", 2.0, J, points={"C": (0, 0, 0)}, center=(0.0, 0.5, 0.1))
    m.cylindrical("A", a["A"], m.ground.at(0, 0, 0), axis=(1, 1, 0))
    m.planar("B", a["B"], b["B"], axis=(1, 0, 2))
    m.screw("C", b["C"], c["C"], lead=0.3, axis=(0, 1, 0))
    m.spring("upper", m.ground.at(0, 0, 1), b["C"], stiffness=50, damping=0.3, length=0.5)
    m.spring("lower", a["A"], b["C"], stiffness=50, damping=0.3, length=0.5)
    return m, {"A": (0.2, 0.3), "B": (0.3, 0.4, 0.1), "C": 0.5}, {"A": {"angle": 1.0}, "B": {"x": 0.3}}


def spatial_slider_crank(coordinates="auto"):
    m = hn.Mechanism("spatial slider-crank", gravity=(0, 0, -9.81), coordinates=coordinates)
    crank = m.body(
        "crank", 0.12, (1e-4, 1e-5, 1e-4), points={"A": (0, 0, 0), "B": (0, 0.08, 0)}, center=(0, 0.04, 0)
    )
    rod = m.body(
        "rod", 0.5, (4e-3, 4e-4, 4e-3), points={"B": (0, 0, 0), "C": (0, 0.3, 0)}, center=(0, 0.15, 0)
    )
    slider = m.body("slider", 2.0, (1e-4,) * 3, points={"C": (0, 0, 0)})
    m.revolute("A", m.ground.at(0, 0.1, 0.12), crank["A"], axis=(1, 0, 0))
    m.spherical("B", crank["B"], rod["B"])
    m.universal("C", rod["C"], slider["C"], axes=((1, 0, 0), (0, 0, 1)))
    m.prismatic("D", m.ground.at(0.2, 0, 0), slider["C"], axis=(1, 0, 0))
    return m, {"A": 0.0}, {"A": 6.0}


def stewart(coordinates="auto"):
    m = hn.Mechanism("Stewart", gravity=(0, 0, -9.81), coordinates=coordinates)
    turn = np.radians([0, 0, 120, 120, 240, 240])
    below, above = turn + np.radians([-10, 10] * 3), turn + np.radians([-50, 50] * 3)
    platform = m.body("platform", mass=10, inertia=(1, 1, 2))
    for i in range(6):
        lower = m.body(f"lower {i}", mass=1, inertia=(0.02, 0.02, 0.001), center=(0, 0, 0.3))
        upper = m.body(f"upper {i}", mass=0.5, inertia=(0.01, 0.01, 0.001), center=(0, 0, -0.3))
        m.universal(f"U{i}", m.ground.at(np.cos(below[i]), np.sin(below[i]), 0), lower.at(0, 0, 0))
        m.prismatic(f"L{i}", lower.at(0, 0, 0), upper.at(0, 0, 0))
        m.spherical(
            f"S{i}", upper.at(0, 0, 0), platform.at(0.6 * np.cos(above[i]), 0.6 * np.sin(above[i]), 0)
        )
        m.force(
            f"F{i}",
            f"L{i}",
            lambda t, displacement, rate: 60 + 40 * np.sin(t) - 20 * rate - 200 * (displacement - 1.2),
        )
    place = {"position": (0, 0, 1.1), "rotation": Rotation.identity()}
    return m, {"platform": place} | {f"L{i}": hn.near(1.2) for i in range(6)}, None


def rolling_disc(coordinates="auto"):
    m = hn.Mechanism("disc", gravity=(0, 0, -9.81), coordinates=coordinates)
    disc = m.body("disc", mass=1, inertia=(0.0225, 0.0225, 0.045))
    m.rolling("floor", m.ground.at(0, 0, 0), disc, radius=0.3)
    tilted = Rotation.from_rotvec([np.pi / 2 - 0.2, 0, 0])
    return m, {"disc": {"rotation": tilted}}, {"disc": {"angular_velocity": (0.3, 5.0, 0.0)}}


def four_bar_in_space(coordinates="auto"):
    return four_bar(coordinates, dimension=3)


ALL = [
    four_bar,
    double_pendulum,
    many_joints,
    spatial_slider_crank,
    stewart,
    rolling_disc,
    four_bar_in_space,
]

"""Double-wishbone suspension: one wheel of a car that drives over a bump.

              ├───chassis───┤          x forward, y outward, z up; the bodies have the axes of the ground
              ╞═══ upper ══╮           and their places in the design position
              │  ⟋ strut   ┃ upright
              │ ⟋     ╭────┨──▮ hub    wishbones: hinges on the chassis, ball joints on the upright
              ╞═══ lower ══╯  ▮        tie rod:   a rod of constant length from the rack to the upright
                              ▮        tyre:      vertical force kₜ (r + z_road(t) − z_hub) − dₜ z_hub′
       ~~~~~~~~~~~~~~~~~~~~~~~~~~

The chassis is a quarter of the car and moves up and down. With `bushings` each wishbone is held by two
elastic bushings in the place of its hinge. The bump is z_road = B exp(−((t − 0.5) / T)²).

Data, as is usual for a car, in metres: lower wishbone from (±0.15, 0.35, 0.19) to (0, 0.70, 0.17), upper one
from (±0.12, 0.42, 0.42) to (−0.02, 0.66, 0.45), tie rod from (−0.13, 0.38, 0.22) to (−0.14, 0.69, 0.21), hub
(0, 0.75, 0.30); strut from (0, 0.50, 0.65) to (0, 0.60, 0.18); chassis 350 kg, wishbones 4 and 3 kg, upright
with wheel 40 kg; strut k = 3e4, d = 2.5e3; tyre kₜ = 2e5, dₜ = 200; B = 0.05, T = 0.04. Start: in the design
position, in balance but for a few newtons. Bushings: 5e6 and 2e3 in all directions, 20 and 0.2 about the
axis of the wishbone, 1e3 and 5 across it.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from holonome.bodies.body import Body
from holonome.bodies.mechanism import Mechanism
from holonome.bodies.shapes import Tube
from holonome.mechanisms.example import Example

POINTS = {
    "lower front": (0.15, 0.35, 0.19),
    "lower rear": (-0.15, 0.35, 0.19),
    "lower ball": (0.0, 0.70, 0.17),
    "upper front": (0.12, 0.42, 0.42),
    "upper rear": (-0.12, 0.42, 0.42),
    "upper ball": (-0.02, 0.66, 0.45),
    "rack": (-0.13, 0.38, 0.22),
    "tie": (-0.14, 0.69, 0.21),
    "hub": (0.0, 0.75, 0.30),
    "top": (0.0, 0.50, 0.65),
    "seat": (0.0, 0.60, 0.18),
}
DESIGN = {"position": (0, 0, 0), "rotation": Rotation.identity()}
STRUT_LENGTH = 0.6595
"""Of the strut without load, so that the car is in balance in the design position."""

STIFFNESS, DAMPING = (5e6, 5e6, 5e6, 20.0, 1e3, 1e3), (2e3, 2e3, 2e3, 0.2, 5.0, 5.0)
"""Of a bushing, for displacements and for angles; it is soft about the axis of the wishbone."""


def between(a: str, b: str) -> float:
    """The distance of two points in the design position."""
    return float(np.linalg.norm(np.subtract(POINTS[a], POINTS[b])))


def hold(m: Mechanism, chassis: Body, arm: Body, name: str, bushings: bool) -> None:
    """Connect a wishbone with the chassis, by a hinge or by two bushings."""
    front, rear = f"{name} front", f"{name} rear"
    if not bushings:
        m.revolute(f"{name} hinge", chassis[front], arm[front], axis=(1, 0, 0))
        return
    for point in (front, rear):
        m.bushing(point, chassis[point], arm[point], STIFFNESS, DAMPING)


def double_wishbone(
    *,
    bushings: bool = False,
    bump: float = 0.05,
    duration: float = 0.04,
    stiffness: float = 3e4,
    damping: float = 2.5e3,
    gravity: float = 9.81,
) -> Example:
    """Suspension of one wheel of a car.

    Parameters
    ----------
    bushings : bool
        Whether the wishbones are held by elastic bushings in the place of hinges.
    bump, duration : float
        Height of the bump, and half the time in which the wheel passes it.
    stiffness, damping : float
        Of the strut.
    gravity : float
        Acceleration of gravity.
    """
    parameters = {"bump": bump, "duration": duration, "stiffness": stiffness, "damping": damping}
    m = Mechanism("double_wishbone", gravity=(0, 0, -gravity), parameters=parameters)

    def points(*names: str) -> dict[str, tuple[float, float, float]]:
        return {name: POINTS[name] for name in names}

    inner = points("lower front", "lower rear", "upper front", "upper rear", "rack", "top")
    chassis = m.body("chassis", 350, (40, 90, 100), center=(0, 0, 0.5), points=inner)
    lower_points = points("lower front", "lower ball", "lower rear", "seat")
    lower = m.body("lower wishbone", 4, (0.05, 0.05, 0.09), center=(0, 0.5, 0.18), points=lower_points)
    upper_points = points("upper front", "upper ball", "upper rear")
    upper = m.body("upper wishbone", 3, (0.02, 0.03, 0.04), center=(0, 0.52, 0.43), points=upper_points)
    outer = points("lower ball", "tie", "hub", "upper ball")
    upright = m.body("upright", 40, (0.9, 1.4, 0.9), center=(0, 0.74, 0.30), points=outer)
    m.prismatic("car", m.ground.at(0, 0.38, 0.55), chassis.at(0, 0.38, 0.55), axis=(0, 0, 1))
    wheel = m.body("wheel", 0.0, (0, 0, 0), shape=Tube(0.3, 0.18, inner=0.2, axis="y"))
    m.fixed("rim", upright["hub"], wheel.at(0, 0, 0))
    hold(m, chassis, lower, "lower", bushings)
    hold(m, chassis, upper, "upper", bushings)
    m.spherical("lower ball", lower["lower ball"], upright["lower ball"])
    m.spherical("upper ball", upper["upper ball"], upright["upper ball"])
    m.distance("tie rod", chassis["rack"], upright["tie"], between("rack", "tie"))
    strut = {"stiffness": m.p.stiffness, "damping": m.p.damping, "length": STRUT_LENGTH}
    m.spring("strut", chassis["top"], lower["seat"], **strut)
    load = 397 * gravity / 2e5

    def tyre(t, x, v, p):
        road = p.bump * np.exp(-(((t - 0.5) / p.duration) ** 2))
        return np.array([0.0, 0.0, 2e5 * (POINTS["hub"][2] + load + road - x[2]) - 200.0 * v[2]])

    m.force("tyre", at=upright["hub"], law=tyre)
    m.trace(upright["hub"], chassis["top"])
    return Example(
        name="double_wishbone",
        title="Double-wishbone suspension",
        system=m,
        t_span=(0.0, 2.0),
        start={body.name: DESIGN for body in (chassis, lower, upper, upright)},
        source="data of this project",
    )

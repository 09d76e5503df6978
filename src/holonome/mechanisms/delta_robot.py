"""Delta robot: three arms and three parallelograms of rods carry a platform that cannot turn.

        ____R____
       ▔▔╲ θ ▔▔▔▔╱                 elbow:   Eᵢ = (R + L cos θᵢ) eᵢ − L sin θᵢ z
          ╲ L   ╱                  rods:    |x + r eᵢ ± w fᵢ − Eᵢ ∓ w fᵢ| = ℓ,   two for each arm
           ╲   ╱ ℓ                 with eᵢ = (cos αᵢ, sin αᵢ, 0), fᵢ = z × eᵢ, αᵢ = 0°, 120°, 240°
            ▔▔▔
             x                     motors:  Tᵢ = k (θᵢ*(t) − θᵢ) − d θᵢ′

Inverse kinematics: with a = R − r − x·eᵢ, b = x·fᵢ, z = x·z the two rods of an arm ask for 2aL cos θ + 2zL
sin θ + a² + b² + z² + L² − ℓ² = 0, a quadratic equation for tan θ/2; its root with the elbow outside is
taken. The wanted motion goes to and fro between two places and lifts the load on the way, x*(t) = (−s cos ωt,
0, −h + u sin² ωt).

Data: R = 0.2, L = 0.24, ℓ = 0.56, r = 0.05, w = 0.04, all in metres; platform and load 0.6 kg; arms 0.4 kg as
slender bars; rods without mass; h = 0.55, s = 0.15, u = 0.08, ω = 4; k = 60, d = 1. Start: at x*(0), at rest.
The idea: R. Clavel, "Conception d'un robot parallèle rapide à 4 degrés de liberté", thesis, EPFL, 1991.
"""

from collections.abc import Callable

import numpy as np
from scipy.spatial.transform import Rotation

from holonome.bodies.assembly import near
from holonome.bodies.mechanism import Mechanism
from holonome.mechanisms.example import Example

DIRECTIONS = np.radians([0.0, 120.0, 240.0])


def arm_angle(x, direction: float, base, arm, rod, platform):
    """The angle of an arm below the horizontal for a place of the platform."""
    c, s = np.cos(direction), np.sin(direction)
    a, b, z = base - platform - (c * x[0] + s * x[1]), c * x[1] - s * x[0], x[2]
    E, F, G = 2 * a * arm, 2 * z * arm, a**2 + b**2 + z**2 + arm**2 - rod**2
    return 2 * np.arctan((G + E) / (np.sqrt(E**2 + F**2 - G**2) - F))  # without cancellation, as F < 0


def wanted_place(t, p) -> list:
    """Where the platform should be."""
    return [-p.stroke * np.cos(p.rate * t), 0.0, -p.height + p.lift * np.sin(p.rate * t) ** 2]


def motor(direction: float) -> Callable:
    """The law of one motor."""

    def law(t, angle, rate, p):
        wanted = arm_angle(wanted_place(t, p), direction, p.base, p.arm, p.rod, p.platform)
        return p.stiffness * (wanted - angle) - p.damping * rate

    return law


def delta_robot(
    *,
    base: float = 0.2,
    arm: float = 0.24,
    rod: float = 0.56,
    platform: float = 0.05,
    width: float = 0.04,
    height: float = 0.55,
    stroke: float = 0.15,
    lift: float = 0.08,
    rate: float = 4.0,
    stiffness: float = 60.0,
    damping: float = 1.0,
    gravity: float = 9.81,
) -> Example:
    """Delta robot that picks and places.

    Parameters
    ----------
    base, arm, rod, platform : float
        Radius of the hinges, lengths of arms and rods, radius of the platform.
    width : float
        Half the distance of the two rods of an arm.
    height, stroke, lift, rate : float
        The wanted motion: how far below the hinges, to which side, how much it is lifted on the way; angular
        frequency.
    stiffness, damping : float
        Of the motors.
    gravity : float
        Acceleration of gravity.
    """
    parameters = {"base": base, "arm": arm, "rod": rod, "platform": platform, "width": width}
    parameters |= {"height": height, "stroke": stroke, "lift": lift, "rate": rate}
    parameters |= {"stiffness": stiffness, "damping": damping}
    m = Mechanism("delta_robot", gravity=(0, 0, -gravity), parameters=parameters)
    p = m.p
    plate = m.body("platform", mass=0.6, inertia=(2e-4, 2e-4, 4e-4), points={"tool": (0, 0, 0)})
    place, start = (-stroke, 0.0, -height), {}
    for k, direction in enumerate(DIRECTIONS, 1):
        turn = Rotation.from_rotvec([0, 0, direction])
        c, s = np.cos(direction), np.sin(direction)
        bar = m.body(
            f"arm {k}",
            mass=0.4,
            inertia=np.array([1e-5, 1, 1]) * 0.4 * p.arm**2 / 12,
            center=(p.arm / 2, 0, 0),
            points={"hinge": (0, 0, 0), "left": (p.arm, p.width, 0), "right": (p.arm, -p.width, 0)},
        )
        hinge = m.ground.at(p.base * c, p.base * s, 0, rotation=turn)
        m.revolute(f"A{k}", hinge, bar["hinge"], axis=(0, 1, 0))
        for side, w in (("left", p.width), ("right", -p.width)):
            corner = plate.at(p.platform * c - w * s, p.platform * s + w * c, 0)
            m.distance(f"rod {k} {side}", bar[side], corner, p.rod)
        m.torque(f"motor {k}", f"A{k}", law=motor(direction))
        start[f"A{k}"] = near(arm_angle(place, direction, base, arm, rod, platform))
    m.trace(plate["tool"])
    return Example(
        name="delta_robot",
        title="Delta robot that picks and places",
        system=m,
        t_span=(0.0, 3.0),
        start={"platform": {"position": place, "rotation": Rotation.identity()}, **start},
        source="Clavel, 1991",
    )

"""Stewart platform: a plate on six legs, which make it circle and wobble.

          P₁ ______ P₂                   legs BᵢPᵢ: a universal joint below, a slide, a ball joint above
            ╱╲    ╱╲                     wanted pose:  c(t) = (A cos ωt, A sin ωt, h)
           ╱  ╲  ╱  ╲                                  R(t) turns by α about (cos ωt, sin ωt, 0)
      B₁  ╱____╲╱____╲  B₂               wanted lengths:  Lᵢ(t) = |c + R Pᵢ − Bᵢ|
                                         actuators:  Fᵢ = k (Lᵢ(t) − ℓᵢ) − d ℓᵢ′

Bodies: the platform (mass, moments of inertia J, J, 2J) and for each leg a lower and an upper slender rod,
which have no moment about their own axes, with centres at the distance 0.3 from the ends of the leg.

Data: radii 1 below and 0.6 above, the joints in pairs at ±10° and ±50° from the directions 0°, 120° and 240°;
platform 10 kg, J = 1; rods 1 kg and 0.5 kg, moments 0.02 and 0.01; h = 1.1, A = 0.2, α = 0.2, ω = 3; k = 2e3,
d = 20. Start: in the pose wanted at t = 0, at rest. The arrangement is that of D. Stewart, "A platform with
six degrees of freedom", Proc. Inst. Mech. Eng. 180 (1965) 371–386, and V. E. Gough.
"""

from collections.abc import Callable

import numpy as np
from scipy.spatial.transform import Rotation

from holonome.bodies.assembly import near
from holonome.bodies.mechanism import Mechanism
from holonome.mechanisms.example import Example


def joints(radius: float, platform_radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the legs in the axes of the ground and of the platform, (6, 3)."""
    direction = np.radians([0, 0, 120, 120, 240, 240])
    below, above = direction + np.radians([-10, 10] * 3), direction + np.radians([-50, 50] * 3)
    flat = [np.stack([np.cos(a), np.sin(a), np.zeros(6)], axis=1) for a in (below, above)]
    return radius * flat[0], platform_radius * flat[1]


def wanted_length(B, P, t, height, amplitude, tilt, rate):
    """The length of a leg in the pose that is wanted at a time: inverse kinematics."""
    c, s = np.cos(rate * t), np.sin(rate * t)
    sin, one = np.sin(tilt), 1 - np.cos(tilt)
    along = c * P[0] + s * P[1]  # Rodrigues' formula for the axis (c, s, 0) and P in the plane z = 0
    x = amplitude * c + (1 - one) * P[0] + one * along * c - B[0]
    y = amplitude * s + (1 - one) * P[1] + one * along * s - B[1]
    z = height + sin * (c * P[1] - s * P[0]) - B[2]
    return np.sqrt(x**2 + y**2 + z**2)


def actuator(B: np.ndarray, P: np.ndarray) -> Callable:
    """The law of the force in one leg."""

    def law(t, displacement, rate, p):
        wanted = wanted_length(B, P, t, p.height, p.amplitude, p.tilt, p.rate)
        return p.stiffness * (wanted - displacement) - p.damping * rate

    return law


def stewart_platform(
    *,
    radius: float = 1.0,
    platform_radius: float = 0.6,
    height: float = 1.1,
    amplitude: float = 0.2,
    tilt: float = 0.2,
    rate: float = 3.0,
    stiffness: float = 2e3,
    damping: float = 20.0,
    gravity: float = 9.81,
) -> Example:
    """Platform on six legs, each with an actuator.

    Parameters
    ----------
    radius, platform_radius : float
        Of the circles on which the joints lie, below and above.
    height, amplitude, tilt, rate : float
        Of the wanted motion: height, radius of the circle of the centre, angle and angular velocity of the
        wobble.
    stiffness, damping : float
        Of the actuators.
    gravity : float
        Acceleration of gravity.
    """
    wanted = {"height": height, "amplitude": amplitude, "tilt": tilt, "rate": rate}
    parameters = {**wanted, "stiffness": stiffness, "damping": damping}
    m = Mechanism("stewart_platform", gravity=(0, 0, -gravity), parameters=parameters)
    B, P = joints(radius, platform_radius)
    corners = {f"P{k + 1}": point for k, point in enumerate(P)}
    platform = m.body("platform", mass=10, inertia=(1, 1, 2), points=corners | {"centre": (0, 0, 0)})
    for k in range(6):
        lower = m.body(f"lower {k + 1}", mass=1, inertia=(0.02, 0.02, 0), center=(0, 0, 0.3))
        upper = m.body(f"upper {k + 1}", mass=0.5, inertia=(0.01, 0.01, 0), center=(0, 0, -0.3))
        m.universal(f"U{k + 1}", m.ground.at(*B[k]), lower.at(0, 0, 0))
        m.prismatic(f"L{k + 1}", lower.at(0, 0, 0), upper.at(0, 0, 0))
        m.spherical(f"S{k + 1}", upper.at(0, 0, 0), platform[f"P{k + 1}"])
        m.force(f"F{k + 1}", f"L{k + 1}", law=actuator(B[k], P[k]))
    m.trace(platform["centre"], platform["P1"])
    lengths = {f"L{k + 1}": near(wanted_length(B[k], P[k], 0.0, **wanted)) for k in range(6)}
    pose = {"position": (amplitude, 0, height), "rotation": Rotation.from_rotvec([tilt, 0, 0])}
    return Example(
        name="stewart_platform",
        title="Stewart platform on six actuated legs",
        system=m,
        t_span=(0.0, 5.0),
        start={"platform": pose, **lengths},
        source="Stewart, 1965; Gough, 1957",
    )

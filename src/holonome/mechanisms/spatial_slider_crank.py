"""Slider-crank in space: a crank that turns in one plane moves a slider along an axis normal to it.

      z │  ○ A                       pin:  B = (0, b − ℓ₁ sin φ, h + ℓ₁ cos φ)
        │ ╱ crank ℓ₁
        │B                           |C − B| = ℓ₂,   C = (x, 0, 0):
         ╲  rod ℓ₂                   x = √(ℓ₂² − (b − ℓ₁ sin φ)² − (h + ℓ₁ cos φ)²)
          ╲
     ──────▣──── x                   x′ = ℓ₁ φ′ ((b − ℓ₁ sin φ) cos φ + (h + ℓ₁ cos φ) sin φ) / x

The crank turns about the axis x through A = (0, b, h); at the angle φ the pin is B = A + ℓ₁ (0, −sin φ, cos
φ). The rod has a ball joint in B and a universal joint in C; the slider cannot turn.

Data: ℓ₁ = 0.08, ℓ₂ = 0.3, b = 0.1, h = 0.12; masses 0.12, 0.5 and 2; moments about the long axis and across
it 1e-5 and 1e-4 of the crank, 4e-4 and 4e-3 of the rod, 1e-4 of the slider; gravity along −z. Start: φ = 0,
the pin on top, φ′ = 6. Source: E. J. Haug, Computer Aided Kinematics and Dynamics of Mechanical Systems
(1989), and the library of benchmarks of IFToMM's technical committee for multibody dynamics.
"""

from holonome.bodies.assembly import near
from holonome.bodies.mechanism import Mechanism
from holonome.bodies.shapes import Box, Rod
from holonome.mechanisms.example import Example


def spatial_slider_crank(
    *,
    crank: float = 0.08,
    rod: float = 0.3,
    offset: float = 0.1,
    height: float = 0.12,
    angle: float = 0.0,
    omega: float = 6.0,
    gravity: float = 9.81,
) -> Example:
    """Slider-crank in space.

    Parameters
    ----------
    crank, rod : float
        Their lengths.
    offset, height : float
        Where the axis of the crank is, from the axis of the slider.
    angle, omega : float
        Angle and angular velocity of the crank at the start.
    gravity : float
        Acceleration of gravity.
    """
    lengths = {"crank": crank, "rod": rod, "offset": offset, "height": height}
    m = Mechanism("spatial_slider_crank", gravity=(0, 0, -gravity), parameters=lengths)
    p = m.p
    bar = m.body(
        "crank",
        mass=0.12,
        inertia=(1e-4, 1e-4, 1e-5),
        center=(0, 0, p.crank / 2),
        points={"A": (0, 0, 0), "B": (0, 0, p.crank)},
        shape=Rod((0, 0, 0), (0, 0, crank), 0.008),
    )
    link = m.body(
        "rod",
        mass=0.5,
        inertia=(4e-4, 4e-3, 4e-3),
        center=(p.rod / 2, 0, 0),
        points={"B": (0, 0, 0), "C": (p.rod, 0, 0)},
        shape=Rod((0, 0, 0), (rod, 0, 0), 0.005),
    )
    slider = m.body(
        "slider", mass=2.0, inertia=(1e-4, 1e-4, 1e-4), points={"C": (0, 0, 0)}, shape=Box(0.05, 0.03, 0.03)
    )
    m.revolute("A", m.ground.at(0, p.offset, p.height), bar["A"], axis=(1, 0, 0))
    m.spherical("B", bar["B"], link["B"])
    m.universal("C", slider["C"], link["C"], axes=((0, 1, 0), (0, 0, 1)))
    m.prismatic("D", m.ground.at(0, 0, 0), slider["C"], axis=(1, 0, 0))
    m.trace(bar["B"], link.at(p.rod / 2, 0, 0))
    reach = (rod**2 - offset**2 - height**2) ** 0.5 if rod**2 > offset**2 + height**2 else rod
    return Example(
        name="spatial_slider_crank",
        title="Slider-crank in space",
        system=m,
        t_span=(0.0, 5.0),
        start={"A": angle, "D": near(reach)},
        speed={"A": omega},
        source="Haug, 1989",
    )

"""Bricard linkage: six equal bars and six hinges, each normal to the next; it turns itself inside out.

       sides of length a, twists 90°, 270°, 90°, 270°, 90°, 270°:  the trihedral case with equal sides

       θ₁ = θ₃ = θ₅,   θ₂ = θ₄ = θ₆,   cos θ₁ + cos θ₂ + cos θ₁ cos θ₂ = 0

Six hinges in a loop of five bodies and the ground: 5·6 − 6·5 = 0 degrees of freedom by counting, one in
truth. At θ₁ = 90° the bars are edges of a cube. Angles are Denavit's and Hartenberg's, as in
`bennett_linkage`.

Data: a = 1, bars of 1 kg per metre, slender, no gravity. Start: θ₁ = 90°, θ₁′ = 3. Sources: R. Bricard,
Leçons de cinématique, tome II, Gauthier-Villars, 1927; Y. Chen, Z. You, T. Tarnai, "Threefold-symmetric
Bricard linkages for deployable structures", Int. J. Solids Struct. 42 (2005) 2287–2301.
"""

import numpy as np

from holonome.bodies.assembly import near
from holonome.bodies.mechanism import Mechanism
from holonome.mechanisms.bennett_linkage import closed_chain
from holonome.mechanisms.example import Example


def bricard_linkage(
    *, side: float = 1.0, theta: float = np.pi / 2, omega: float = 3.0, gravity: float = 0.0
) -> Example:
    """Bricard's linkage of six bars and six hinges at right angles.

    Parameters
    ----------
    side : float
        Length of the bars.
    theta, omega : float
        Angle and angular velocity of the first hinge at the start; the angle between −2π/3 and 2π/3.
    gravity : float
        Acceleration of gravity, along −y of the first hinge.
    """
    if not -0.5 <= np.cos(theta) < 1:
        raise ValueError(f"theta = {theta}: the linkage does not close; give an angle from 0 to 2π/3")
    other = np.arccos(-np.cos(theta) / (1 + np.cos(theta)))
    m = Mechanism("bricard_linkage", gravity=(0, -gravity, 0))
    closed_chain(m, (side,) * 6, (np.pi / 2, 3 * np.pi / 2) * 3, density=1.0)
    m.trace(m.bodies["bar 3"]["out"], m.bodies["bar 4"]["out"])
    start = {str(k): near(theta if k % 2 else other) for k in range(2, 7)}
    return Example(
        name="bricard_linkage",
        title="Bricard linkage of six hinges at right angles",
        system=m,
        t_span=(0.0, 4.0),
        start={"1": theta, **start},
        speed={"1": omega},
        source="Bricard, 1927",
    )

"""Slider-crank with unequal bars: the regular counterpart of `slider_crank`, used as a benchmark.

             ╱ ╲ ─ ─
     φ₁   1 ╱       ╲ ─ ─ 2  φ₂       M v′ = f − Gᵀλ,   M = diag(m₁, m₁, J₁, m₂, m₂, J₂)
           ╱              ╲ ─ ─                         f = −γ (0, m₁, 0, 0, m₂, 0)
          O                    ⊡ →    g₁ = x₁ − ½ℓ₁ cos φ₁                      bar 1 hinged at the origin
    ───────────────────────────── x   g₂ = y₁ − ½ℓ₁ sin φ₁
                                      g₃ = x₁ + ½ℓ₁ cos φ₁ − x₂ + ½ℓ₂ cos φ₂    bar 2 hinged to bar 1
                                      g₄ = y₁ + ½ℓ₁ sin φ₁ − y₂ + ½ℓ₂ sin φ₂
                                      g₅ = y₂ + ½ℓ₂ sin φ₂                      the slider stays on the x axis

Symbols as in `slider_crank`. Joint and slider are written differently here, so the multipliers differ too.

Data: m₁ = 1, m₂ = 2, ℓ₁ = 1, ℓ₂ = 2, γ = 9.81; start at rest with φ₁ = π/4, φ₂ = −arcsin(½ sin φ₁). As ℓ₂ >
ℓ₁ the bars never stand upright together and G keeps its rank. The crank falls to the right, hangs and swings
on until it has risen as high on the left. Reference: the solution at t = 10 (`REFERENCE`).
"""

import numpy as np

from holonome.mechanisms.example import Example, Reference, with_reference
from holonome.mechanisms.slider_crank import force, mass, points, potential, two_bars  # noqa: F401


def constraint(q, p):
    x1, y1, phi1, x2, y2, phi2 = q
    half1, half2 = p.length1 / 2, p.length2 / 2
    return np.array(
        [
            x1 - half1 * np.cos(phi1),
            y1 - half1 * np.sin(phi1),
            x1 + half1 * np.cos(phi1) - x2 + half2 * np.cos(phi2),
            y1 + half1 * np.sin(phi1) - y2 + half2 * np.sin(phi2),
            y2 + half2 * np.sin(phi2),
        ]
    )


REFERENCE = Reference(
    t=10.0,
    q=np.array(
        [
            -0.1870252959226,
            -0.46370414995454,
            -1.9541691678132,
            0.51193951042171,
            -0.46370414995454,
            0.4821714494251,
        ]
    ),
    v=np.array(
        [
            -2.3910310154074,
            0.9643719670409,
            -5.1563718281189,
            -4.2773348537589,
            0.9643719670409,
            -1.0884681042976,
        ]
    ),
    lam=np.array([-19.841720043228, -57.301443304874, 18.20089849546, 33.818571339961, -13.147172589864]),
    digits=11,
    source="this project: extrapolation of order 18 in extended precision, in the angle of bar 1",
)


@with_reference(REFERENCE)
def slider_crank_unequal(
    *,
    m1: float = 1.0,
    m2: float = 2.0,
    length1: float = 1.0,
    length2: float = 2.0,
    gravity: float = 9.81,
    phi1: float = np.pi / 4,
    omega1: float = 0.0,
) -> Example:
    """Slider-crank whose second bar is longer than the first, without singular positions.

    Parameters
    ----------
    m1, m2, length1, length2, gravity : float
        Masses and lengths of the bars and acceleration of gravity.
    phi1, omega1 : float
        Angle and angular velocity of bar 1 at the start.
    """
    parameters = {"m1": m1, "m2": m2, "length1": length1, "length2": length2, "gravity": gravity}
    return two_bars(
        constraint,
        parameters,
        (phi1, omega1),
        name="slider_crank_unequal",
        title="Slider-crank with unequal bars",
        t_span=(0.0, 10.0),
        source="benchmark of this project",
    )

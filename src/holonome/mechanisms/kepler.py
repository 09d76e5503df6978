"""Kepler's problem: a planet around a fixed sun. No constraints, but two invariants, and an exact solution.

            ─ ─ ─ ─ ─
        ─               ─            q″ = −μ q/|q|³
      ╱                   ╲
     │              ☉──────● start   energy H = |v|²/2 − μ/|q|,   angular momentum L = x v_y − y v_x
      ╲                   ╱
        ─               ─            period 2π/n  with  n² = μ/a³
            ─ ─ ─ ─ ─

Symbols: q = (x, y), the sun in the origin; gravitational parameter μ, semi-major axis a, eccentricity e.

Data: μ = a = 1, e = 0.6; start at the perihelion, a (1 − e) from the sun, which lies on the x axis. Five
revolutions.

A method that keeps H also keeps the period, so that the error grows linearly with time; without it the period
is off by more and more, and the error grows quadratically.

Exact solution, with the eccentric anomaly E of Kepler's equation E − e sin E = n t::

    q = a (cos E − e, √(1 − e²) sin E),   v = a n (−sin E, √(1 − e²) cos E) / (1 − e cos E).

References
----------
E. Hairer, C. Lubich and G. Wanner, Geometric Numerical Integration, 2nd ed., Springer 2006, sections I.2 and
IV.4. J. M. A. Danby, Fundamentals of Celestial Mechanics, 2nd ed., Willmann-Bell 1988, section 6.6.
"""

import numpy as np

from holonome.mechanisms.example import Drawing, Example, Solution
from holonome.problem.system import System

MASS = np.ones(2)


def mass():
    return MASS


def force(q, p):
    return -p.mu * q / (q[0] ** 2 + q[1] ** 2) ** 1.5


def potential(q, p):
    return -p.mu / np.sqrt(q[0] ** 2 + q[1] ** 2)


def invariant(q, v, p):
    """Energy and angular momentum."""
    return np.array([(v[0] ** 2 + v[1] ** 2) / 2 + potential(q, p), q[0] * v[1] - q[1] * v[0]])


OUTLINE = [f"outline {i}" for i in range(16)]


def points(q, radius):
    x, y = q
    angles = 2 * np.pi * np.arange(len(OUTLINE)) / len(OUTLINE)
    circle = {
        name: (x + radius * np.cos(angle), y + radius * np.sin(angle))
        for name, angle in zip(OUTLINE, angles, strict=True)
    }
    return {"sun": (0.0, 0.0), "planet": (x, y), **circle}


def eccentric_anomaly(M, eccentricity: float) -> np.ndarray:
    """E − e sin E = M for |M| ≤ π, by Newton's method from Danby's start."""
    E = M + 0.85 * eccentricity * np.sign(M)
    for _ in range(30):
        E = E - (E - eccentricity * np.sin(E) - M) / (1 - eccentricity * np.cos(E))
    return E


def solution(t, eccentricity: float, mu: float, a: float) -> Solution:
    """Exact q and v at the times `t` after the perihelion; there are no multipliers."""
    n = np.sqrt(np.longdouble(mu) / np.longdouble(a) ** 3)
    two_pi = 2 * np.longdouble("3.14159265358979323846264338327950288")
    M = np.asarray(t, np.longdouble) * n
    E = eccentric_anomaly((M - two_pi * np.round(M / two_pi)).astype(float), eccentricity)
    b = np.sqrt((1 - eccentricity) * (1 + eccentricity))
    q = a * np.array([np.cos(E) - eccentricity, b * np.sin(E)])
    v = a * float(n) / (1 - eccentricity * np.cos(E)) * np.array([-np.sin(E), b * np.cos(E)])
    return q, v, np.zeros((0, *np.shape(E)))


def kepler(*, eccentricity: float = 0.6, mu: float = 1.0, a: float = 1.0) -> Example:
    """Planet around a fixed sun, from the perihelion.

    Parameters
    ----------
    eccentricity : float
        From 0, a circle, to below 1.
    mu, a : float
        Gravitational parameter and semi-major axis.
    """
    if not 0 <= eccentricity < 1:
        raise ValueError(
            f"eccentricity = {eccentricity} must be at least 0 and below 1, where the orbit is an ellipse."
        )
    return Example(
        name="kepler",
        title="Kepler's problem: a planet around a fixed sun",
        system=System(
            MASS,
            force,
            potential=potential,
            invariant=invariant,
            parameters={"mu": mu},
            names=["x", "y"],
            name="kepler",
        ),
        t_span=(0.0, float(10 * np.pi * np.sqrt(a**3 / mu))),
        q0=np.array([a * (1 - eccentricity), 0.0]),
        v0=np.array([0.0, np.sqrt(mu / a * (1 + eccentricity) / (1 - eccentricity))]),
        exact=lambda t: solution(t, eccentricity, mu, a),
        source="classical; Hairer, Lubich & Wanner (2006)",
        drawing=Drawing(
            lambda q, p: points(q, 0.04 * a), bodies=[OUTLINE], ground=["sun"], traces=["planet"]
        ),
    )

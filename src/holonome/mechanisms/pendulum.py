"""Pendulum: a point mass on a massless rod, in Cartesian coordinates. The smallest constrained system, with
an exact solution.

        O───────────● m        m x″ = −2 x λ
        ╲  length              m y″ = −m γ − 2 y λ
         ╲                     0 = x² + y² − ℓ²
          ╲ θ from the
           ╲ downward vertical

Symbols: q = (x, y); mass m, length ℓ, gravity γ. The force in the rod is 2 ℓ λ, positive when it pulls.

Data: m = 1, ℓ = 1, γ = 9.81; released from rest at the angle θ₀, by default horizontally (θ₀ = π/2), as
drawn.

Exact solution, with ω² = γ/ℓ, modulus k = sin(θ₀/2), k′ = cos(θ₀/2) and u = ω t::

    sin(θ/2) = k cn(u)/dn(u),   cos(θ/2) = k′/dn(u),   θ′ = −2 k k′ ω sn(u)/dn(u),
    λ = m (|v|² − γ y) / (2 ℓ²),   period 4 K(k)/ω.

References
----------
E. T. Whittaker, A Treatise on the Analytical Dynamics of Particles and Rigid Bodies, 4th ed., Cambridge 1937.
NIST Digital Library of Mathematical Functions, 22.19(i) and 19.8.5.
"""

import numpy as np
from scipy.special import ellipj

from holonome.mechanisms.example import Drawing, Example, Solution
from holonome.problem.system import System


def mass(p):
    return np.array([p.m, p.m])


def force(p):
    return np.array([0.0, -p.m * p.gravity])


def constraint(q, p):
    x, y = q
    return x**2 + y**2 - p.length**2


def potential(q, p):
    return p.m * p.gravity * q[1]


def points(q, p):
    x, y = q
    return {"O": (0.0, 0.0), "mass": (x, y)}


def period(theta0: float, length: float, gravity: float) -> np.longdouble:
    """Time of one swing to and fro, 4 K(k)/ω with K = π / (2 agm(1, k′)) (DLMF 19.8.5).

    In extended precision: its rounding is multiplied by the number of periods when a late time is reduced.
    """
    a, b = np.longdouble(1), np.cos(np.longdouble(theta0) / 2)
    while abs(a - b) > 4 * np.finfo(np.longdouble).eps * a:
        a, b = (a + b) / 2, np.sqrt(a * b)
    pi = np.longdouble("3.14159265358979323846264338327950288")
    return 2 * pi / (a * np.sqrt(np.longdouble(gravity) / np.longdouble(length)))


def solution(t, theta0: float, m: float, length: float, gravity: float) -> Solution:
    """Exact q, v and λ at the times `t` after a release from rest at the angle `theta0`."""
    T = period(theta0, length, gravity)
    t = np.asarray(t, np.longdouble)
    t = (t - T * np.round(t / T)).astype(float)
    omega = np.sqrt(gravity / length)
    k, k1 = np.sin(theta0 / 2), np.cos(theta0 / 2)
    sn, cn, dn, _ = ellipj(omega * t, k**2)
    sin_half, cos_half = k * cn / dn, k1 / dn
    sin, cos = 2 * sin_half * cos_half, 1 - 2 * sin_half**2
    rate = -2 * k * k1 * omega * sn / dn
    q, v = length * np.array([sin, -cos]), length * rate * np.array([cos, sin])
    lam = m * ((length * rate) ** 2 - gravity * q[1]) / (2 * length**2)
    return q, v, lam[np.newaxis]


def pendulum(
    *, m: float = 1.0, length: float = 1.0, gravity: float = 9.81, theta0: float = np.pi / 2
) -> Example:
    """Point mass on a massless rod, released from rest at the angle `theta0` from the downward vertical.

    Parameters
    ----------
    m, length, gravity : float
        Mass, length of the rod and acceleration of gravity.
    theta0 : float
        Angle of release, between −π and π.
    """
    if not abs(theta0) < np.pi:
        raise ValueError(
            f"theta0 = {theta0} must lie between -pi and pi, where the pendulum swings to and fro."
        )
    return Example(
        name="pendulum",
        title="Pendulum in Cartesian coordinates",
        system=System(
            mass,
            force,
            constraint,
            potential=potential,
            parameters={"m": m, "length": length, "gravity": gravity},
            names=["x", "y"],
            constraint_names=["rod"],
            name="pendulum",
        ),
        t_span=(0.0, 10.0),
        q0=length * np.array([np.sin(theta0), -np.cos(theta0)]),
        v0=np.zeros(2),
        exact=lambda t: solution(t, theta0, m, length, gravity),
        source="classical; Whittaker (1937)",
        drawing=Drawing(points, links=[("O", "mass")], ground=["O"], traces=["mass"]),
    )

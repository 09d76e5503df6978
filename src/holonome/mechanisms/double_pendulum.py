"""Double pendulum: two point masses on massless rods, in Cartesian coordinates. Chaotic at the energy of its
default start.

        O────────●────────●         mᵢ xᵢ″ = −∂(λ·g)/∂xᵢ
            ℓ₁   m₁  ℓ₂   m₂        mᵢ yᵢ″ = −mᵢ γ − ∂(λ·g)/∂yᵢ
                                    0 = x₁² + y₁² − ℓ₁²
                                    0 = (x₂ − x₁)² + (y₂ − y₁)² − ℓ₂²

Symbols: q = (x₁, y₁, x₂, y₂); masses m₁, m₂, lengths ℓ₁, ℓ₂, gravity γ; the angles θ₁, θ₂ of the rods count
from the downward vertical.

Data: all masses and lengths 1, γ = 9.81; released from rest, both rods horizontal (θ₁ = θ₂ = π/2), as drawn.
Reference: the solution at t = 5 (`REFERENCE`).
"""

import numpy as np

from holonome.mechanisms.example import Drawing, Example, Reference, with_reference
from holonome.problem.system import System


def mass(p):
    return np.array([p.m1, p.m1, p.m2, p.m2])


def force(p):
    return np.array([0.0, -p.m1 * p.gravity, 0.0, -p.m2 * p.gravity])


def constraint(q, p):
    x1, y1, x2, y2 = q
    return np.array([x1**2 + y1**2 - p.length1**2, (x2 - x1) ** 2 + (y2 - y1) ** 2 - p.length2**2])


def potential(q, p):
    return p.gravity * (p.m1 * q[1] + p.m2 * q[3])


def points(q, p):
    x1, y1, x2, y2 = q
    return {"O": (0.0, 0.0), "mass1": (x1, y1), "mass2": (x2, y2)}


REFERENCE = Reference(
    t=5.0,
    q=np.array([-0.58686920981627, -0.8096817464718, -1.5507784694704, -1.0759127348127]),
    v=np.array([1.7209046070034, -1.2473369089548, 2.7543836794926, -4.9891253981133]),
    lam=np.array([13.202418882578, 8.9244667451862]),
    digits=11,
    source="this project: extrapolation of order 18 in extended precision, in the angles of the rods",
)


@with_reference(REFERENCE)
def double_pendulum(
    *,
    m1: float = 1.0,
    m2: float = 1.0,
    length1: float = 1.0,
    length2: float = 1.0,
    gravity: float = 9.81,
    theta1: float = np.pi / 2,
    theta2: float = np.pi / 2,
) -> Example:
    """Two point masses on massless rods, released from rest.

    Parameters
    ----------
    m1, m2, length1, length2, gravity : float
        Masses, lengths of the rods and acceleration of gravity.
    theta1, theta2 : float
        Angles of the rods at release, from the downward vertical.
    """
    first = length1 * np.array([np.sin(theta1), -np.cos(theta1)])
    second = first + length2 * np.array([np.sin(theta2), -np.cos(theta2)])
    return Example(
        name="double_pendulum",
        title="Double pendulum in Cartesian coordinates",
        system=System(
            mass,
            force,
            constraint,
            potential=potential,
            parameters={"m1": m1, "m2": m2, "length1": length1, "length2": length2, "gravity": gravity},
            names=["x1", "y1", "x2", "y2"],
            constraint_names=["rod 1", "rod 2"],
            name="double_pendulum",
        ),
        t_span=(0.0, 5.0),
        q0=np.concatenate([first, second]),
        v0=np.zeros(4),
        source="classical",
        drawing=Drawing(points, links=[("O", "mass1"), ("mass1", "mass2")], ground=["O"], traces=["mass2"]),
    )

"""Two-link robot arm whose hand moves along a straight line. An exact solution with a moving constraint
direction.

          ∙ elbow               M(q) q″ = f(t, q) − Gᵀλ
     ℓ  ╱   ╲  ℓ                0 = ℓ sin θ₁ + ℓ sin(θ₁ + θ₂)           (the hand stays on the x axis)
      ╱       ╲
    ○ θ₁       ⊡ hand →         M₁₁ = m₁ℓ²/3 + m₂ℓ²(4/3 + c₂)
    ─────────────────── x       M₁₂ = M₂₁ = m₂ℓ²(1/3 + c₂/2)
                                M₂₂ = m₂ℓ²/3,   c₂ = cos θ₂

    f₁ = (ℓ cos θ₁ + ℓ cos(θ₁ + θ₂)) cos t − (m₁ + 2 m₂)/3 ℓ² sin t
    f₂ = ℓ cos(θ₁ + θ₂) cos t + m₂ ℓ² (1/3 − c₂/2) sin t

Symbols: q = (θ₁, θ₂), the angle of the first link and the angle of the second one relative to the first;
masses m₁, m₂, length ℓ of both links.

Data: ℓ = 1, m₁ = m₂ = 3. With them f is, to the letter, the force printed in the paper.

Exact solution: θ₁ = sin t, θ₂ = −2 sin t, λ = cos t.

Two remarks. The example is made up: f stands for everything, with no Coriolis and centrifugal terms of M(q)
beside it; so the exact solution satisfies M q″ = f − Gᵀλ with the printed force and sign, and energy has no
meaning here. The paper writes ℓ₁ and ℓ₂, but θ₂ = −2 θ₁ keeps the hand on the line only if they are equal; f
is written above for any masses and any common length, so that the exact solution holds for all of them.

References
----------
U. Ascher and P. Lin, Sequential regularization methods for nonlinear higher index DAEs, SIAM J. Sci. Comput.
18 (1997) 160-181, Example 6.4.
"""

import numpy as np

from holonome.mechanisms.example import Drawing, Example, Solution
from holonome.problem.system import System


def mass(q, p):
    c2 = np.cos(q[1])
    coupling = p.m2 * p.length**2 * (1 / 3 + c2 / 2)
    return np.array(
        [
            [p.m1 * p.length**2 / 3 + p.m2 * p.length**2 * (4 / 3 + c2), coupling],
            [coupling, p.m2 * p.length**2 / 3],
        ]
    )


def force(t, q, p):
    theta1, theta2 = q
    G1 = p.length * (np.cos(theta1) + np.cos(theta1 + theta2))
    G2 = p.length * np.cos(theta1 + theta2)
    return np.array(
        [
            G1 * np.cos(t) - (p.m1 + 2 * p.m2) / 3 * p.length**2 * np.sin(t),
            G2 * np.cos(t) + p.m2 * p.length**2 * (1 / 3 - np.cos(theta2) / 2) * np.sin(t),
        ]
    )


def constraint(q, p):
    theta1, theta2 = q
    return p.length * (np.sin(theta1) + np.sin(theta1 + theta2))


def points(q, p):
    theta1, theta2 = q
    elbow = p.length * np.cos(theta1), p.length * np.sin(theta1)
    hand = elbow[0] + p.length * np.cos(theta1 + theta2), elbow[1] + p.length * np.sin(theta1 + theta2)
    return {"O": (0.0, 0.0), "elbow": elbow, "hand": hand}


def solution(t) -> Solution:
    """Exact q, v and λ at the times `t`."""
    t = np.asarray(t, float)
    return np.array([np.sin(t), -2 * np.sin(t)]), np.array([np.cos(t), -2 * np.cos(t)]), np.cos(t)[np.newaxis]


def two_link_arm(*, m1: float = 3.0, m2: float = 3.0, length: float = 1.0) -> Example:
    """Two-link arm with its hand on a line, driven so that θ₁ = sin t.

    Parameters
    ----------
    m1, m2, length : float
        Masses of the links and the length of each.
    """
    q0, v0, _ = solution(0.0)
    return Example(
        name="two_link_arm",
        title="Two-link robot arm with its hand on a line (Ascher & Lin, Example 6.4)",
        system=System(
            mass,
            force,
            constraint,
            inertial="in force",
            parameters={"m1": m1, "m2": m2, "length": length},
            names=["theta1", "theta2"],
            constraint_names=["hand on the line"],
            name="two_link_arm",
        ),
        t_span=(0.0, 1.0),
        q0=q0,
        v0=v0,
        exact=solution,
        source="Ascher & Lin, Example 6.4",
        drawing=Drawing(
            points,
            links=[("O", "elbow"), ("elbow", "hand")],
            ground=["O"],
            sliders=["hand"],
            traces=["elbow"],
        ),
    )

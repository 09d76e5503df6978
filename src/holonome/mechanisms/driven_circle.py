"""Driven point on a circle: stiff springs pull a mass on the unit circle after a point that runs around it.
The smooth solution is known.

           . - .                 x″ = f₁ − x λ
         .       .               y″ = f₂ − y λ
        .    O    .              0 = ½ (x² + y² − 1)
        .         .
         .       ● b₀(t) →       f = −B(t)(q − b₀(t)),   b₀ = (sin t, −cos t)
           . - .                 B = ε⁻² n nᵀ + ε⁻¹ s sᵀ,   n = b₀,  s = b₀′ = (cos t, sin t)

Symbols: q = (x, y); unit mass; b₀ the driving point, n the normal and s the tangent of the circle there;
stiffness ε⁻² along n and ε⁻¹ along s.

Data: ε = 1e-4, t ≤ 10; start on the driving point.

Exact solution: q = b₀(t), λ = 1; the springs stay without load. About it the mass can oscillate with the
frequency ε^−½.

This is the smallest problem of the class (4.2) of the paper, η(q) = B(t)(q − b₀(t)) with slowly varying B and
b₀, on which its Theorem 4.2 can be seen: off the manifold, where predictors lie, the force is large, and the
Newton iteration of CS meets derivatives of P that CM does not have.

References
----------
J. Yen and L. Petzold, An efficient Newton-type iteration for the numerical solution of highly oscillatory
constrained multibody dynamic systems, SIAM J. Sci. Comput. 19 (1998) 1513-1534 (technical report 1996),
section 4.
"""

import numpy as np

from holonome.mechanisms.example import Drawing, Example, Solution
from holonome.mechanisms.stiff_spring import constraint, mass
from holonome.problem.system import System


def force(t, q, p):
    cos, sin = np.cos(t), np.sin(t)
    dx, dy = q[0] - sin, q[1] + cos
    normal, tangential = (sin * dx - cos * dy) / p.eps**2, (cos * dx + sin * dy) / p.eps
    return np.array([-normal * sin - tangential * cos, normal * cos - tangential * sin])


def points(q, p):
    return {"O": (0.0, 0.0), "mass": (q[0], q[1])}


def solution(t) -> Solution:
    """Exact q, v and λ at the times `t`."""
    t = np.asarray(t, float)
    return np.array([np.sin(t), -np.cos(t)]), np.array([np.cos(t), np.sin(t)]), np.ones((1, *t.shape))


def driven_circle(*, eps: float = 1e-4) -> Example:
    """Point mass on the unit circle, drawn along by stiff springs.

    Parameters
    ----------
    eps : float
        The stiffness is 1/eps² normal to the circle and 1/eps along it.
    """
    q0, v0, _ = solution(0.0)
    return Example(
        name="driven_circle",
        title="Point mass on a circle, drawn along by stiff springs (class (4.2) of Yen & Petzold)",
        system=System(
            mass,
            force,
            constraint,
            parameters={"eps": eps},
            names=["x", "y"],
            constraint_names=["circle"],
            name="driven_circle",
        ),
        t_span=(0.0, 10.0),
        q0=q0,
        v0=v0,
        exact=solution,
        source="after Yen & Petzold, (4.2)",
        drawing=Drawing(points, links=[("O", "mass")], ground=["O"], traces=["mass"]),
    )

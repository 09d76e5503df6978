"""Stiff spring: a point mass on the unit circle, held by a spring of stiffness ε⁻². Fast oscillations that
one may want damped.

           . - .                 x″ = f₁ − x λ
         .       .               y″ = f₂ − y λ
        .    O    .              0 = ½ (x² + y² − 1)
        .    ╷ q_a.
         .   ⌇   .               f = −ε⁻² (l − l₀)/l (q − q_a) − (0, γ),   l = |q − q_a|
           . ● .

Symbols: q = (x, y); unit mass; q_a the point to which the spring is attached, l its length, l₀ its natural
length; gravity γ.

Data: ε = 1e-4, q_a = (0, −0.5), l₀ = 0.4, γ = 1, t ≤ 0.05; start at rest in y = −0.999, close to the
equilibrium (0, −1), about which the mass oscillates with a frequency of about √0.1/ε, some 25 times in the
interval. λ is of order ε⁻² and oscillates too. Reference: the solution at t = 0.05 (`REFERENCE`).

Deviations from the paper. The spring force is printed without its minus sign; the stretched spring would
push. The printed start (0.04471, −0.999) lies 1e-8 off the circle; here x = √(1 − y²).

References
----------
J. Yen and L. Petzold, An efficient Newton-type iteration for the numerical solution of highly oscillatory
constrained multibody dynamic systems, SIAM J. Sci. Comput. 19 (1998) 1513-1534 (technical report 1996),
section 5.1, Table 5.2.
"""

import numpy as np

from holonome.mechanisms.example import Drawing, Example, Reference, with_reference
from holonome.problem.system import System

mass = np.ones(2)


def spring_length(q, p):
    return np.sqrt((q[0] - p.anchor[0]) ** 2 + (q[1] - p.anchor[1]) ** 2)


def force(q, p):
    length = spring_length(q, p)
    pull = (length - p.natural_length) / length / p.eps**2
    return np.array([-pull * (q[0] - p.anchor[0]), -pull * (q[1] - p.anchor[1]) - p.gravity])


def constraint(q):
    x, y = q
    return (x**2 + y**2 - 1) / 2


def potential(q, p):
    return (spring_length(q, p) - p.natural_length) ** 2 / (2 * p.eps**2) + p.gravity * q[1]


def points(q, p):
    return {"O": (0.0, 0.0), "anchor": (p.anchor[0], p.anchor[1]), "mass": (q[0], q[1])}


REFERENCE = Reference(
    t=0.05,
    q=np.array([0.0037497432966098, -0.99999296968789]),
    v=np.array([-141.20535340996, -0.52948754985716]),
    lam=np.array([-9980692.4880002]),
    digits=11,
    source="this project: extrapolation of order 18 in extended precision, in the angle on the circle",
)


@with_reference(REFERENCE)
def stiff_spring(
    *,
    eps: float = 1e-4,
    anchor: tuple[float, float] = (0.0, -0.5),
    natural_length: float = 0.4,
    gravity: float = 1.0,
    height: float = -0.999,
) -> Example:
    """Point mass on the unit circle, held by a stiff spring and released from rest.

    Parameters
    ----------
    eps : float
        The stiffness of the spring is 1/eps².
    anchor, natural_length : (float, float), float
        Where the spring is attached, and its length without load.
    gravity : float
        Acceleration of gravity.
    height : float
        The y of the start, between −1 and 1; its x is positive.
    """
    return Example(
        name="stiff_spring",
        title="Point mass on a circle with a stiff spring (Yen & Petzold, Table 5.2)",
        system=System(
            mass,
            force,
            constraint,
            potential=potential,
            parameters={
                "eps": eps,
                "anchor": np.array(anchor),
                "natural_length": natural_length,
                "gravity": gravity,
            },
            names=["x", "y"],
            constraint_names=["circle"],
            name="stiff_spring",
        ),
        t_span=(0.0, 0.05),
        q0=np.array([np.sqrt((1 - height) * (1 + height)), height]),
        v0=np.zeros(2),
        source="Yen & Petzold, section 5.1, Table 5.2",
        drawing=Drawing(
            points,
            links=[("O", "mass")],
            springs=[("anchor", "mass")],
            ground=["O", "anchor"],
            traces=["mass"],
        ),
    )

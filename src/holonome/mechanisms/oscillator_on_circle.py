"""Oscillator on a circle: a point mass on the unit circle in a stiff quadratic potential, Yen & Petzold's
"linear oscillation".

           . - .                 x″ = f₁ − x λ
         .       .               y″ = f₂ − y λ
        .    O    .              0 = ½ (x² + y² − 1)
        .         .
         .       ●               f = −(ε^−a x, ε^−b (y + 1)) − (0, γ)
           . ⌇ .

Symbols: q = (x, y); unit mass; the springs hold the mass in the lowest point; gravity γ; a, b the powers of
the stiffness along x and y.

Data: ε = 1e-4, a = b = 2, γ = 1, t ≤ 0.25; released from rest 10° from the lowest point. It oscillates with a
frequency of about 1/ε, 400 times in the interval.

Exact solution, if a = b and it starts from rest. On the circle the potential is ½ε⁻²(x² + (y + 1)²) + γ y =
(ε⁻² + γ) y + const: a pendulum in the gravity ε⁻² + γ.

Deviations from the paper. The force is printed with the opposite sign of the springs, which makes the
equilibrium (0, −1) unstable, and with a = 1, b = 2, start (0, −1) with the velocity (1, 0). With the sign
corrected that problem, ``powers=(1, 2), angle=0, speed=1``, needs 20 to 60 steps; the published counts of GGL
come out with the data above.

References
----------
J. Yen and L. Petzold, An efficient Newton-type iteration for the numerical solution of highly oscillatory
constrained multibody dynamic systems, SIAM J. Sci. Comput. 19 (1998) 1513-1534 (technical report 1996),
section 5.1, Table 5.1.
"""

import numpy as np

from holonome.mechanisms.example import Drawing, Example, Solution
from holonome.mechanisms.pendulum import solution as pendulum_solution
from holonome.mechanisms.stiff_spring import constraint, mass
from holonome.problem.system import System


def force(q, p):
    return np.array([-q[0] / p.eps ** p.powers[0], -(q[1] + 1) / p.eps ** p.powers[1] - p.gravity])


def potential(q, p):
    return (
        q[0] ** 2 / (2 * p.eps ** p.powers[0])
        + (q[1] + 1) ** 2 / (2 * p.eps ** p.powers[1])
        + p.gravity * q[1]
    )


def points(q, p):
    return {"O": (0.0, 0.0), "lowest": (0.0, -1.0), "mass": (q[0], q[1])}


def solution(t, angle: float, eps: float, power: float, gravity: float) -> Solution:
    """Exact q, v and λ = q·f + |v|² at the times `t`, for equal powers and a release from rest."""
    stiffness = eps**-power
    q, v, _ = pendulum_solution(t, angle, 1.0, 1.0, stiffness + gravity)
    return q, v, (np.sum(v**2, axis=0) - stiffness * (1 + q[1]) - gravity * q[1])[np.newaxis]


def oscillator_on_circle(
    *,
    eps: float = 1e-4,
    powers: tuple[float, float] = (2, 2),
    gravity: float = 1.0,
    angle: float = np.pi / 18,
    speed: float = 0.0,
) -> Example:
    """Point mass on the unit circle, held in its lowest point by stiff springs along x and y.

    Parameters
    ----------
    eps, powers : float, (float, float)
        The stiffness along x and y is eps^−powers.
    gravity : float
        Acceleration of gravity.
    angle, speed : float
        Start: the angle from the lowest point, between −π and π, and the speed along the circle.
    """
    if not abs(angle) < np.pi:
        raise ValueError(f"angle = {angle} must lie between -pi and pi.")
    is_pendulum = powers[0] == powers[1] and speed == 0
    return Example(
        name="oscillator_on_circle",
        title="Point mass on a circle in a stiff potential (Yen & Petzold, Table 5.1)",
        system=System(
            mass,
            force,
            constraint,
            potential=potential,
            parameters={"eps": eps, "powers": np.array(powers, float), "gravity": gravity},
            names=["x", "y"],
            constraint_names=["circle"],
            name="oscillator_on_circle",
        ),
        t_span=(0.0, 0.25),
        q0=np.array([np.sin(angle), -np.cos(angle)]),
        v0=speed * np.array([np.cos(angle), np.sin(angle)]),
        exact=(lambda t: solution(t, angle, eps, powers[0], gravity)) if is_pendulum else None,
        source="Yen & Petzold, section 5.1, Table 5.1",
        drawing=Drawing(
            points,
            links=[("O", "mass")],
            springs=[("lowest", "mass")],
            ground=["O", "lowest"],
            traces=["mass"],
        ),
    )

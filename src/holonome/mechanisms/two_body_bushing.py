"""Two bodies with a bushing: the second turns about the first without changing its orientation, against a
stiff bushing between them.

     1           2              M v′ = f − Gᵀλ,   M = diag(m₁, m₁, J₁, m₂, m₂, J₂)
    ┌┴─┐ ┌⌇┐  ┌──┐
    │A ├─┘ └──┤ B│              g₁,₂,₃ = x₁, y₁, θ₁                                   (5.1a,b,c)
    └┬─┘      └──┘              g₄ = |d^AB|² − ℓ²                                     (5.1d)
     └── ℓ ─────┘               g₅ = θ₂ − θ                                           (5.1e)

    d^AB = r₁ + R(θ₁) a − r₂ − R(θ₂) b
    f: gravity on body 2, and the bushing between s₁′ on body 1 and s₂′ on body 2 (`holonome.problem.bushing`)
       with K = ε⁻¹ diag(k_x, k_y, k_θ) and C = diag(c_x, c_y, c_θ)

Symbols: q = (x₁, y₁, θ₁, x₂, y₂, θ₂), centres of mass and angles; A = a and B = b the ends of the link ℓ in
the axes of each body.

Data: a = b = 0, ℓ = 1, θ = 0, s₁′ = (0.5, 0), s₂′ = (−0.5, 0), ε = 1e-3, k = (1, 1, 1), c = (10, 10, 10);
start with the link 0.85° below the horizontal, close to rest. The masses, the gravity and the end are not
given in the paper. Here m = J = 1, gravity 1 on body 2 as in the paper's section 5.1, t ≤ 1. Reference: the
solution at t = 1 (`REFERENCE`).

Deviations from the paper. (5.1d) is printed with ℓ instead of ℓ²; ℓ = 1. The printed start (0.99989,
−1.4852e-2), velocity (−6.75e-5, −4.5444e-3), lies 6e-7 off the constraint; here x₂ and x₂′ follow from y₂ and
y₂′. With k_x = k_y and θ₁ = 0 the bushing is an ordinary isotropic spring, so the turning B(θ) of (4.3) plays
no part; `stiffness` and `frame` change that.

References
----------
J. Yen and L. Petzold, An efficient Newton-type iteration for the numerical solution of highly oscillatory
constrained multibody dynamic systems, SIAM J. Sci. Comput. 19 (1998) 1513-1534 (technical report 1996),
section 5.2, Tables 5.3 and 5.4.
"""

import numpy as np

from holonome.mechanisms.example import Drawing, Example, Reference, with_reference
from holonome.problem.bushing import deformation_2d, forces_2d
from holonome.problem.system import System


def mass(p):
    return np.array([p.m1, p.m1, p.J1, p.m2, p.m2, p.J2])


def force(q, v, p):
    on_1, on_2 = forces_2d(q[:3], v[:3], q[3:], v[3:], p.s1, p.s2, p.stiffness / p.eps, p.damping, p.frame)
    return np.array([*on_1, on_2[0], on_2[1] - p.m2 * p.gravity, on_2[2]])


def constraint(q, p):
    x1, y1, theta1, x2, y2, theta2 = q
    (ax, ay), (bx, by) = _turned(p.a, theta1), _turned(p.b, theta2)
    return np.array(
        [x1, y1, theta1, (x1 + ax - x2 - bx) ** 2 + (y1 + ay - y2 - by) ** 2 - p.length**2, theta2 - p.theta]
    )


def potential(q, p):
    c = deformation_2d(q[:3], q[3:], p.s1, p.s2, p.frame)
    return (c * p.stiffness) @ c / (2 * p.eps) + p.m2 * p.gravity * q[4]


def points(q, p):
    _, _, _, x2, y2, theta2 = q
    b, s2 = _turned(p.b, theta2), _turned(p.s2, theta2)
    return {
        "A": (p.a[0], p.a[1]),
        "S1": (p.s1[0], p.s1[1]),
        "B": (x2 + b[0], y2 + b[1]),
        "S2": (x2 + s2[0], y2 + s2[1]),
    }


def _turned(vector, angle):
    cos, sin = np.cos(angle), np.sin(angle)
    return cos * vector[0] - sin * vector[1], sin * vector[0] + cos * vector[1]


REFERENCE = Reference(
    t=1.0,
    q=np.array([0.0, 0.0, 0.0, 0.99999940745656437, -0.0010886167921522419, 0.0]),
    v=np.array([0.0, 0.0, 0.0, -6.5141404914148859e-7, -5.9838656526921400e-4, 0.0]),
    lam=np.array(
        [
            -1.0262644685407983e-4,
            -1.0946011982285178,
            -0.54730033244816946,
            2.4821571171314829e-4,
            -0.54730032890246704,
        ]
    ),
    digits=9,
    source="this project: Taylor series in 25 digits (mpmath.odefun), in the angle of the link",
)


@with_reference(REFERENCE)
def two_body_bushing(
    *,
    eps: float = 1e-3,
    stiffness: tuple[float, float, float] = (1.0, 1.0, 1.0),
    damping: tuple[float, float, float] = (10.0, 10.0, 10.0),
    frame: float = 0.0,
    s1: tuple[float, float] = (0.5, 0.0),
    s2: tuple[float, float] = (-0.5, 0.0),
    a: tuple[float, float] = (0.0, 0.0),
    b: tuple[float, float] = (0.0, 0.0),
    length: float = 1.0,
    theta: float = 0.0,
    m1: float = 1.0,
    J1: float = 1.0,
    m2: float = 1.0,
    J2: float = 1.0,
    gravity: float = 1.0,
    height: float = -1.4852e-2,
    rate: float = -4.5444e-3,
) -> Example:
    """Two bodies, the first one fixed, with a link and a bushing between them.

    Parameters
    ----------
    eps, stiffness, damping : float, three numbers, three numbers
        The bushing: stiffness (k_x, k_y, k_θ)/eps and damping (c_x, c_y, c_θ).
    frame : float
        Angle of the bushing's frame on body 1.
    s1, s2 : (float, float)
        Where the bushing is attached to each body.
    a, b, length, theta : (float, float), (float, float), float, float
        Ends of the link on each body, its length, and the angle at which body 2 is kept.
    m1, J1, m2, J2, gravity : float
        Masses, moments of inertia, and the acceleration of gravity that acts on body 2.
    height, rate : float
        Start: how high B lies above A, and the rate of that.
    """
    if not abs(height) < length:
        raise ValueError(f"height = {height} must be smaller than length = {length}")
    across = np.sqrt((length - height) * (length + height))
    (bx, by), (ax, ay) = _turned(b, theta), a
    q0 = np.array([0.0, 0.0, 0.0, ax + across - bx, ay + height - by, theta])
    v0 = np.array([0.0, 0.0, 0.0, -height * rate / across, rate, 0.0])
    return Example(
        name="two_body_bushing",
        title="Two-body pendulum with a stiff bushing (Yen & Petzold, Tables 5.3 and 5.4)",
        system=System(
            mass,
            force,
            constraint,
            potential=potential,
            parameters={
                "eps": eps,
                "stiffness": np.array(stiffness),
                "damping": np.array(damping),
                "frame": frame,
                "s1": np.array(s1),
                "s2": np.array(s2),
                "a": np.array(a),
                "b": np.array(b),
                "length": length,
                "theta": theta,
                "m1": m1,
                "J1": J1,
                "m2": m2,
                "J2": J2,
                "gravity": gravity,
            },
            names=["x1", "y1", "theta1", "x2", "y2", "theta2"],
            constraint_names=["x1", "y1", "theta1", "link", "orientation"],
            name="two_body_bushing",
        ),
        t_span=(0.0, 1.0),
        q0=q0,
        v0=v0,
        source="Yen & Petzold, section 5.2, Tables 5.3 and 5.4",
        drawing=Drawing(points, links=[("A", "B")], springs=[("S1", "S2")], ground=["A", "S1"], traces=["B"]),
    )

"""Four-bar linkage: crank, coupler and rocker in absolute coordinates, under gravity.

                     C
             b ___---╲              M v′ = f − Gᵀλ,   M = diag(mᵢ, mᵢ, Jᵢ),   f = −γ (0, mᵢ, 0),   i = a, b, c
         B---         ╲ c
       a ╱             ╲            with the unit vector e(φ) = (cos φ, sin φ) and the centres r = (x, y):
        A ──── d ───── D
                                    g₁,₂ = r_a − ½a e(φ_a)                        crank hinged in A = 0
                                    g₃,₄ = r_b − ½b e(φ_b) − r_a − ½a e(φ_a)      joint B
                                    g₅,₆ = r_b + ½b e(φ_b) − r_c − ½c e(φ_c)      joint C
                                    g₇,₈ = r_c − ½c e(φ_c) − (d, 0)               rocker hinged in D

Symbols: q = (x_a, y_a, φ_a, x_b, y_b, φ_b, x_c, y_c, φ_c), centres of mass and angles of the bars; lengths a,
b, c, and d of the ground; mass ϱ per unit of length, mᵢ = ϱℓᵢ, Jᵢ = mᵢℓᵢ²/12; gravity γ.

Data: a = 0.4, b = 0.9, c = 0.7, d = 1 (a Grashof crank-rocker, as 0.4 + 1 < 0.9 + 0.7: the crank can turn
fully), ϱ = 1, γ = 9.81; start with φ_a = π/2, φ_a′ = 6 and the joint C above the line BD. The angles of
coupler and rocker follow from the triangle BCD in closed form. Reference: the solution at t = 10
(`REFERENCE`), after 15 turns of the crank.
"""

import numpy as np

from holonome.mechanisms.example import Drawing, Example, Reference, with_reference
from holonome.problem.system import System


def mass(p):
    ma, mb, mc = p.density * p.a, p.density * p.b, p.density * p.c
    return np.array([ma, ma, ma * p.a**2 / 12, mb, mb, mb * p.b**2 / 12, mc, mc, mc * p.c**2 / 12])


def force(p):
    weight = -p.density * p.gravity
    return np.array([0.0, weight * p.a, 0.0, 0.0, weight * p.b, 0.0, 0.0, weight * p.c, 0.0])


def constraint(q, p):
    xa, ya, phi_a, xb, yb, phi_b, xc, yc, phi_c = q
    ax, ay = p.a / 2 * np.cos(phi_a), p.a / 2 * np.sin(phi_a)
    bx, by = p.b / 2 * np.cos(phi_b), p.b / 2 * np.sin(phi_b)
    cx, cy = p.c / 2 * np.cos(phi_c), p.c / 2 * np.sin(phi_c)
    return np.array(
        [
            xa - ax,
            ya - ay,
            (xb - bx) - (xa + ax),
            (yb - by) - (ya + ay),
            (xb + bx) - (xc + cx),
            (yb + by) - (yc + cy),
            xc - cx - p.d,
            yc - cy,
        ]
    )


def potential(q, p):
    return p.density * p.gravity * (p.a * q[1] + p.b * q[4] + p.c * q[7])


def points(q, p):
    xa, ya, phi_a, xb, yb, _, xc, yc, phi_c = q
    B = xa + p.a / 2 * np.cos(phi_a), ya + p.a / 2 * np.sin(phi_a)
    C = xc + p.c / 2 * np.cos(phi_c), yc + p.c / 2 * np.sin(phi_c)
    return {"A": (0.0, 0.0), "B": B, "C": C, "D": (p.d, 0.0), "coupler": (xb, yb)}


def start(
    phi_a: float, omega_a: float, a: float, b: float, c: float, d: float
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities for an angle and an angular velocity of the crank, from a e(φ_a) + b e(φ_b) =
    d + c e(φ_c) in complex numbers.
    """
    B = a * np.exp(1j * phi_a)
    BD = abs(d - B)
    if not abs(b - c) < BD < b + c:
        raise ValueError(
            f"phi_a = {phi_a}: the linkage does not close; BD = {BD:g} must lie between |b - c| = "
            f"{abs(b - c):g} and b + c = {b + c:g}."
        )
    cosine = (b**2 + BD**2 - c**2) / (2 * b * BD)
    phi_b = np.angle(d - B) + np.arccos(cosine)
    C = B + b * np.exp(1j * phi_b)
    phi_c = np.angle(C - d)
    omega_b = -a * omega_a * np.sin(phi_a - phi_c) / (b * np.sin(phi_b - phi_c))
    omega_c = a * omega_a * np.sin(phi_a - phi_b) / (c * np.sin(phi_c - phi_b))
    centres = [B / 2, (B + C) / 2, (C + d) / 2]
    B_rate = 1j * omega_a * B
    C_rate = 1j * omega_c * (C - d)
    rates = [B_rate / 2, (B_rate + C_rate) / 2, C_rate / 2]
    q0 = [[r.real, r.imag, phi] for r, phi in zip(centres, [phi_a, phi_b, phi_c], strict=True)]
    v0 = [[r.real, r.imag, omega] for r, omega in zip(rates, [omega_a, omega_b, omega_c], strict=True)]
    return np.ravel(q0), np.ravel(v0)


REFERENCE = Reference(
    t=10.0,
    q=np.ravel(
        [
            [0.027356488137804, 0.19812022248313, 95.681363341923],
            [0.4794733143187, 0.5448293248514, 0.33651281463593],
            [0.9521168261809, 0.34670910236827, 1.7080357994177],
        ]
    ),
    v=np.ravel(
        [
            [-1.2138890656329, 0.16761409516096, 6.127032618976],
            [-2.3159025844164, 0.015417615430625, -0.7529200498443],
            [-1.1020135187835, -0.15219647973033, 3.1784960684792],
        ]
    ),
    lam=np.ravel(
        [
            [0.12322517987773, 0.64222964170869],
            [0.40826989463712, 1.4951333439353],
            [-0.19559316593216, -0.083618559824259],
            [0.46865031833395, -4.3601922488413],
        ]
    ),
    digits=10,
    source="this project: extrapolation of order 18 in extended precision, in the angle of the crank",
)


@with_reference(REFERENCE)
def four_bar(
    *,
    a: float = 0.4,
    b: float = 0.9,
    c: float = 0.7,
    d: float = 1.0,
    density: float = 1.0,
    gravity: float = 9.81,
    phi_a: float = np.pi / 2,
    omega_a: float = 6.0,
) -> Example:
    """Planar four-bar linkage of three bars and the ground.

    Parameters
    ----------
    a, b, c, d : float
        Lengths of crank, coupler, rocker and ground.
    density, gravity : float
        Mass per unit of length, the same for all bars, and acceleration of gravity.
    phi_a, omega_a : float
        Angle and angular velocity of the crank at the start.
    """
    q0, v0 = start(phi_a, omega_a, a, b, c, d)
    return Example(
        name="four_bar",
        title="Four-bar linkage in absolute coordinates",
        system=System(
            mass,
            force,
            constraint,
            potential=potential,
            parameters={"a": a, "b": b, "c": c, "d": d, "density": density, "gravity": gravity},
            names=["xa", "ya", "phi_a", "xb", "yb", "phi_b", "xc", "yc", "phi_c"],
            constraint_names=["A x", "A y", "B x", "B y", "C x", "C y", "D x", "D y"],
            name="four_bar",
        ),
        t_span=(0.0, 10.0),
        q0=q0,
        v0=v0,
        source="classical",
        drawing=Drawing(
            points,
            links=[("A", "B"), ("B", "C"), ("C", "D")],
            ground=["A", "D"],
            traces=["B", "C", "coupler"],
        ),
    )

"""Wheel set on a straight track: two conical wheels on a rigid axle, rolling and creeping on two rails. The
"flying wheel set" of Eich.

          left          axle            right         q = (x, y, z, θ, φ)  lateral, upward, forward; yaw, roll
         ┌────┐                        ┌────┐         β      deviation of the spin rate from ω = V/r₀
         │    ├────────────────────────┤    │         ψ, ξ   contact point of each wheel: angle, place on axle
        ╲│____│╱                      ╲│____│╱        λ      force of the rail on each wheel (contact: λ < 0)
      ────╲__╱────                  ────╲__╱────

Seen from the front, with the left side, ξ > 0, drawn on the right. It needs all that a `System` offers:
coordinates of second order, a state β of first order, unknowns (ψ, ξ) that the constraints and forces depend
on, and forces that depend on the multipliers, here through the cube root of the normal forces.

Profiles, with σ = 1 on the left and −1 on the right:  wheel R(ξ) = r₀ + tan δ₀ (a − σξ);  rail Γ(x) = √(rₛ² −
(σx − a − rₛ sin δ₀)²) − r₀ − rₛ cos δ₀.

Each wheel touches its rail in x_c = x + ξ cosθ cosφ + R(cosθ sinφ cosψ − sinθ sinψ), y_c = y + ξ sinφ − R
cosφ cosψ. The normal n of the wheel there is also one of the rail, and the gap between the two is closed::

    0 = Γ′(x_c) n_y + n_x,   0 = n_z                     equations for ψ and ξ, index 1
    0 = y_c − Γ(x_c)                                     constraint, index 3

Motion, with sums over both wheels, w = ω + β, M₂ = −2 l² c_z θ, and the creep forces F of Kalker's theory
(`creep`)::

    m x″ = ΣF_x − 2 c_x x + (..)       m y″ = ΣF_y − m γ + (..)       m z″ = ΣF_z − 2 c_z z
    I₂ cosφ θ″ = I₂ θ′φ′ sinφ − I₁ w φ′ − (I₁ − I₂) θ′φ′ sinφ + Σ levers × F + M₂ cosφ + (..)
    I₂ φ″ = I₁ w θ′ cosφ + (I₁ − I₂) θ′² sinφ cosφ + Σ levers × F + (..)
    I₁ (β′ + sinφ θ″) = −I₁ θ′φ′ cosφ + Σ levers × F + M₂ sinφ

where (..) is the constraint force −Gᵀλ. The test set writes it +Gᵀ(1e4 λ) with the gap of the opposite sign:
its multipliers are those here divided by 1e4.

Data: those of the test set, in SI units; start at rest, 1.5 mm beside the middle; t ≤ 10. The published y and
φ are moved onto the rails, by 4e-9. Reference: the published solution at t = 10. The methods "dop853" and
"bdf" at tolerances of 1e-12 agree to 8 digits with each other, and to 5 with it.

References
----------
B. Simeon, C. Führer and P. Rentrop, Differential-algebraic equations in vehicle system dynamics, Surveys
Math. Indust. 1 (1991) 1-37. F. Mazzia and C. Magherini, Test Set for Initial Value Problem Solvers, release
2.4, University of Bari 2008, "Wheelset". E. Eich, Convergence results for a coordinate projection method
applied to mechanical systems with algebraic constraints, SIAM J. Numer. Anal. 30 (1993), section 1.2.
"""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import root

from holonome.mechanisms.example import Drawing, Example, Reference, with_reference
from holonome.problem.system import System

BODY = {"m": 16.08, "gravity": 9.81, "I1": 0.0605, "I2": 0.366, "l": 0.19}
CREEP = {
    "shear": 7.92e10,
    "nu": 0.28,
    "e": 1.3537956,
    "gamma": 0.7115218,
    "C11": 4.72772197,
    "C22": 4.27526987,
    "C23": 1.97203505,
}
PI = 3.1415926
"""As in the creep law of the test set, so that its digits come out."""

START = {"x": 0.14941e-2, "z": 0.11241e-5, "theta": -0.28573e-3}
PUBLISHED_START = np.array([0.14941e-2, 0.40089e-6, 0.11241e-5, -0.28573e-3, 0.26459e-3])
"""All five coordinates; y and φ have so few digits that the gaps are 5e-10."""
PUBLISHED_CONTACT = np.array(
    [7.5634406395172940e-6, 0.1490635714733819, -7.4122380357667139e-6, -0.1521364296121248]
)
PUBLISHED_ACCELERATION = np.array(
    [
        -1.975258894011285,
        -1.0898297102811276e-3,
        7.8855083626142589e-2,
        -5.533362821731549,
        -0.3487021489546511,
        -2.132968724380927,
    ]
)
"""(v′, β′) there, with λ = (−83.593, −74.144)."""
SCALE = 1e4
"""Multipliers here, in units of those of the test set."""
REFERENCE = Reference(
    t=10.0,
    q=np.array(
        [
            0.86355386965811e-2,
            0.13038281022727e-4,
            -0.93635784016818e-4,
            -0.13642299804033e-1,
            0.15292895005422e-2,
        ]
    ),
    v=np.array(
        [
            -0.76985374142666e-1,
            -0.25151106429207e-3,
            0.20541188079539e-2,
            -0.23904837703692,
            -0.13633468454173e-1,
        ]
    ),
    lam=SCALE * np.array([-0.10124044903201e-1, -0.56285630573753e-2]),
    s=np.array([-0.24421377661131]),
    w=np.array([0.37839614386969e-3, 0.14173214964613, -0.33666751972196e-3, -0.15949425684022]),
    digits=5,
    source="Test Set for Initial Value Problem Solvers, release 2.4",
)


class Contact(NamedTuple):
    """One wheel at its contact point: radius R and R′, the normal n, x_c and y_c, the rail's Γ′ and Γ″ with
    the gap above Γ, and the contact angle δ.
    """

    side: float
    psi: Any
    xi: Any
    R: Any
    dR: Any
    normal: tuple
    gap: Any
    slope: Any
    bend: Any
    delta: Any


def contact(side, psi, xi, q, p) -> Contact:
    x, y, _, theta, phi = q
    R, dR = p.r0 + np.tan(p.delta0) * (p.a - side * xi), -side * np.tan(p.delta0)
    normal = (
        (dR * np.cos(phi) - np.sin(phi) * np.cos(psi)) * np.cos(theta) + np.sin(psi) * np.sin(theta),
        dR * np.sin(phi) + np.cos(phi) * np.cos(psi),
        (dR * np.cos(phi) - np.sin(phi) * np.cos(psi)) * np.sin(theta) - np.sin(psi) * np.cos(theta),
    )
    x_c = (
        x
        + xi * np.cos(theta) * np.cos(phi)
        + R * (np.cos(theta) * np.sin(phi) * np.cos(psi) - np.sin(theta) * np.sin(psi))
    )
    y_c = y + xi * np.sin(phi) - R * np.cos(phi) * np.cos(psi)
    off = side * x_c - p.a - p.rs * np.sin(p.delta0)  # from the middle of the rail
    T = np.sqrt(p.rs**2 - off**2)
    rail = T - p.r0 - p.rs * np.cos(p.delta0)
    return Contact(
        side,
        psi,
        xi,
        R,
        dR,
        normal,
        y_c - rail,
        -side * off / T,
        -(p.rs**2) / T**3,
        np.arctan(-side * normal[0] / normal[1]),
    )


def contacts(q, w, p) -> tuple[Contact, Contact]:
    """Left and right."""
    return contact(1.0, w[0], w[1], q, p), contact(-1.0, w[2], w[3], q, p)


def equations(q, w, p):
    """The normal of the wheel is one of the rail."""
    left, right = contacts(q, w, p)
    return np.array(
        [
            left.slope * left.normal[1] + left.normal[0],
            left.normal[2],
            right.slope * right.normal[1] + right.normal[0],
            right.normal[2],
        ]
    )


def constraint(q, w, p):
    """How high each wheel is above its rail."""
    left, right = contacts(q, w, p)
    return np.array([left.gap, right.gap])


def normal_forces(wheels, lam):
    """N of both wheels, from the lateral and the upward part of the constraint force."""
    left, right = wheels
    across, up = left.slope * lam[0] + right.slope * lam[1], -lam[0] - lam[1]
    D = -np.sin(left.delta + right.delta)
    N_left = (np.cos(right.delta) * across - np.sin(right.delta) * up) / D
    N_right = (-np.cos(left.delta) * across - np.sin(left.delta) * up) / D
    return N_left, N_right


def creep(wheel, N, q, v, spin, p):
    """Creep force of one wheel: the linear theory of Kalker on an ellipse of Hertz with the mean half-axis c,
    limited by friction.
    """
    side, psi, xi, R, dR, _, _, slope, bend, delta = wheel
    _, _, _, theta, phi = q
    vx, vy, vz, vtheta, vphi = v
    sin, cos = np.sin(theta / np.cos(delta)), np.cos(theta / np.cos(delta))
    sp, cp, ss, cs = np.sin(phi), np.cos(phi), np.sin(psi), np.cos(psi)
    load = np.maximum(np.abs(N), 1e-12)  # a law also for a wheel without load, where Newton's method begins
    A, B = 1 / (2 * R * np.sqrt(1 + dR**2)), -bend / (2 * (1 + slope**2) ** 1.5)
    c = (3 * load * (1 - p.nu) * p.e / (2 * PI * (A + B) * p.shear * np.sqrt(p.gamma))) ** (1 / 3)
    k1 = (
        -spin * R * (sin * cs + cos * sp * ss)
        + vx
        - vtheta * (R * (sin * sp * cs + cos * ss) + xi * sin * cp)
        - vphi * cos * (xi * sp - R * cp * cs)
    )
    k2 = spin * R * cp * ss + vy + vphi * (xi * cp + R * sp * cs)
    k3 = (
        -spin * R * (cos * cs - sin * sp * ss)
        + p.V
        + vz
        - vtheta * (xi * cos * cp + R * (cos * sp * cs - sin * ss))
        + vphi * sin * (xi * sp - R * cp * cs)
    )
    rolling = np.sqrt((k1 - 2 * vx) ** 2 + (k2 - 2 * vy) ** 2 + (k3 - 2 * vz - 2 * p.V) ** 2) / 2
    nu_x = (sin * k1 + cos * k3) / rolling
    nu_y = (cos * np.cos(delta) * k1 + side * np.sin(delta) * k2 - sin * np.cos(delta) * k3) / rolling
    turn = (-side * np.sin(delta) * spin + np.cos(delta) * vtheta) / rolling
    tau = p.mu * load
    Tx = -tau * np.tanh(p.shear * c**2 * p.C11 * nu_x / tau)
    Ty = -tau * np.tanh((p.shear * c**2 * p.C22 * nu_y + p.shear * c**3 * p.C23 * turn) / tau)
    limit = tau / np.sqrt(np.maximum(Tx**2 + Ty**2, tau**2))
    Tx, Ty = limit * Tx, limit * Ty
    return sin * Tx + cos * np.cos(delta) * Ty, side * np.sin(delta) * Ty, cos * Tx - sin * np.cos(delta) * Ty


def applied(q, v, s, w, lam, p):
    """Generalised forces on q, and the moment about the axle."""
    x, _, z, theta, phi = q
    _, _, _, vtheta, vphi = v
    spin, M2 = p.V / p.r0 + s[0], -2 * p.l**2 * p.cz * theta
    st, ct, sp, cp = np.sin(theta), np.cos(theta), np.sin(phi), np.cos(phi)
    forces = [
        -2 * p.cx * x,
        -p.m * p.gravity,
        -2 * p.cz * z,
        p.I2 * vtheta * vphi * sp - p.I1 * spin * vphi - (p.I1 - p.I2) * vtheta * vphi * sp + cp * M2,
        p.I1 * spin * vtheta * cp + (p.I1 - p.I2) * vtheta**2 * sp * cp,
        -p.I1 * vtheta * vphi * cp + sp * M2,
    ]
    wheels = contacts(q, w, p)
    for wheel, N in zip(wheels, normal_forces(wheels, lam), strict=True):
        xi, R, ss, cs = wheel.xi, wheel.R, np.sin(wheel.psi), np.cos(wheel.psi)
        Fx, Fy, Fz = creep(wheel, N, q, v, spin, p)
        share = [
            Fx,
            Fy,
            Fz,
            -(xi * st + R * ss * ct * cp) * Fx - R * ss * sp * Fy + (-xi * ct + R * ss * st * cp) * Fz,
            -(xi * ct * sp - R * cs * ct * cp) * Fx
            + (xi * cp + R * cs * sp) * Fy
            + (xi * st * sp - R * cs * st * cp) * Fz,
            -R * (cs * st + ss * ct * sp) * Fx + R * ss * cp * Fy - R * (cs * ct - ss * st * sp) * Fz,
        ]
        forces = [force + part for force, part in zip(forces, share, strict=True)]
    return np.array(forces)


def mass(q, p):
    return np.array([p.m, p.m, p.m, p.I2 * np.cos(q[4]), p.I2])


def force(q, v, s, w, lam, p):
    return applied(q, v, s, w, lam, p)[:5]


def rate(q, v, s, w, lam, p):
    """β′, with θ″ from its own equation of motion."""
    forces = applied(q, v, s, w, lam, p)
    theta, phi = q[3], q[4]
    moment = forces[3]
    for wheel, multiplier in zip(contacts(q, w, p), (lam[0], lam[1]), strict=True):
        arm = wheel.R * (
            np.cos(theta) * np.sin(wheel.psi) + np.sin(theta) * np.sin(phi) * np.cos(wheel.psi)
        ) + wheel.xi * np.cos(phi) * np.sin(theta)
        moment = moment - wheel.slope * arm * multiplier
    return np.array([forces[5] / p.I1 - np.sin(phi) * moment / (p.I2 * np.cos(phi))])


def on_the_rails(x, z, theta, p):
    """Coordinates with both wheels on the rails, and the contact points."""

    def residual(unknown):
        q = np.array([x, unknown[0], z, theta, unknown[1]])
        return np.concatenate([constraint(q, unknown[2:], p), equations(q, unknown[2:], p)])

    y, phi, *w = root(residual, [0.0, 0.0, 0.0, p.a, 0.0, -p.a], tol=1e-15).x
    return np.array([x, y, z, theta, phi]), np.array(w)


HALF_WIDTH, AXLE = 0.03, 0.012
"""Of a wheel and of the axle in the picture, in metres."""
LEFT, RIGHT = ([f"{side} wheel {i}" for i in range(4)] for side in ("left", "right"))
RAIL = np.linspace(-1.0, 1.0, 21)


def on_rail(side, angle, p):
    """A point of a rail head in the cross section, by its angle on the circle of the profile."""
    middle, low = p.a + p.rs * np.sin(p.delta0), -p.r0 - p.rs * np.cos(p.delta0)
    return side * (middle + p.rs * np.sin(angle)), low + p.rs * np.cos(angle)


def points(q, p):
    """Front view; the yaw angle is left out. Rails have the shape of the profile, a circle."""
    x, y, _, _, phi = q
    found = {"centre": (x, y)}

    def on_body(along, up):
        return x + along * np.cos(phi) - up * np.sin(phi), y + along * np.sin(phi) + up * np.cos(phi)

    for side, names in ((1.0, LEFT), (-1.0, RIGHT)):
        corners = [(-HALF_WIDTH, -1), (HALF_WIDTH, -1), (HALF_WIDTH, 1), (-HALF_WIDTH, 1)]
        for i, (off, sign) in enumerate(corners):
            found[names[i]] = on_body(side * (p.a + off), sign * (p.r0 - np.tan(p.delta0) * off))
    inner = p.a - HALF_WIDTH
    found |= {
        f"axle {i}": on_body(*corner)
        for i, corner in enumerate([(-inner, -AXLE), (inner, -AXLE), (inner, AXLE), (-inner, AXLE)])
    }
    for side, name in ((1.0, "left"), (-1.0, "right")):
        found |= {f"{name} rail {i}": on_rail(side, angle, p) for i, angle in enumerate(RAIL)}
    return found


RAILS = [[f"{side} rail {i}" for i in range(RAIL.size)] for side in ("left", "right")]
FRONT_VIEW = Drawing(
    points,
    bodies=[LEFT, RIGHT, [f"axle {i}" for i in range(4)], *RAILS],
    ground=[*RAILS[0], *RAILS[1]],
    traces=["centre"],
)

SPOKES, RAIL_ENDS = 18, (-0.3, 0.3)
"""Corners of a wheel, and how far the rails go, backward and forward."""


def points_in_space(q, p):
    """Forward, to the left and upward. Wheels are truncated cones, seen without their fast spin; rails are
    cylinders.
    """
    x, y, z, theta, phi = q
    st, ct, sp, cp = np.sin(theta), np.cos(theta), np.sin(phi), np.cos(phi)

    def on_body(xi, R, psi):
        lateral = x + xi * ct * cp + R * (ct * sp * np.cos(psi) - st * np.sin(psi))
        return (
            z + xi * st * cp + R * (st * sp * np.cos(psi) + ct * np.sin(psi)),
            lateral,
            y + xi * sp - R * cp * np.cos(psi),
        )

    found = {"centre": (z, x, y)}
    for side, name in ((1.0, "left"), (-1.0, "right")):
        for off, ring in ((-HALF_WIDTH, "inner"), (HALF_WIDTH, "outer")):
            xi, R = side * (p.a + off), p.r0 - np.tan(p.delta0) * off
            found[f"{name} {ring}"] = on_body(xi, 0.0, 0.0)
            found |= {f"{name} {ring} {i}": on_body(xi, R, 2 * np.pi * i / SPOKES) for i in range(SPOKES)}
        found |= {
            f"{name} rail {i} {end}": (forward, *on_rail(side, angle, p))
            for i, angle in enumerate(RAIL[::2])
            for end, forward in zip(("back", "front"), RAIL_ENDS, strict=True)
        }
    return found


def _wheel(name: str) -> list[list[str]]:
    rings = [[f"{name} {ring} {i}" for i in range(SPOKES)] for ring in ("inner", "outer")]
    return [*rings, *([rings[0][i - 1], rings[0][i], rings[1][i], rings[1][i - 1]] for i in range(SPOKES))]


def _rail(name: str) -> list[list[str]]:
    last = len(RAIL[::2]) - 1
    ends = [[f"{name} rail {i} {end}" for i in range(last + 1)] for end in ("back", "front")]
    return [*ends, *([ends[0][i], ends[0][i + 1], ends[1][i + 1], ends[1][i]] for i in range(last))]


IN_SPACE = Drawing(
    points_in_space,
    links=[("left inner", "right inner")],
    bodies=[*_wheel("left"), *_wheel("right"), *_rail("left"), *_rail("right")],
    ground=[point for body in (*_rail("left")[:2], *_rail("right")[:2]) for point in body],
    traces=["centre"],
    camera=(28.0, 16.0),
)


@with_reference(REFERENCE)
def wheelset(
    *,
    x: float = START["x"],
    z: float = START["z"],
    theta: float = START["theta"],
    V: float = 30.0,
    mu: float = 0.12,
    cx: float = 6400.0,
    cz: float = 6400.0,
    r0: float = 0.1,
    delta0: float = 0.0262,
    a: float = 0.1506,
    rs: float = 0.06,
) -> Example:
    """Wheel set on a straight track, released from a position beside the middle.

    The remaining data are parameters of the system.

    Parameters
    ----------
    x, z, theta : float
        Start: how far to the left and forward, and the yaw angle. Height and roll follow.
    V : float
        Speed along the track.
    mu : float
        Coefficient of friction.
    cx, cz : float
        Stiffness of the springs to the car body, lateral and forward.
    r0, delta0, a, rs : float
        Radius and cone angle of the wheels, half of the gauge, and radius of the rail heads.
    """
    parameters = (
        BODY | CREEP | {"V": V, "mu": mu, "cx": cx, "cz": cz, "r0": r0, "delta0": delta0, "a": a, "rs": rs}
    )
    q0, w0 = on_the_rails(x, z, theta, SimpleNamespace(**parameters))
    return Example(
        name="wheelset",
        title="Wheel set on a straight track",
        system=System(
            mass,
            force,
            constraint,
            states={"beta": 0.0},
            rate=rate,
            unknowns=dict(zip(["psi_L", "xi_L", "psi_R", "xi_R"], w0, strict=True)),
            equations=equations,
            inertial="in force",
            parameters=parameters,
            names=["x", "y", "z", "theta", "phi"],
            constraint_names=["left contact", "right contact"],
            name="wheelset",
            drawing=IN_SPACE,
        ),
        t_span=(0.0, 10.0),
        q0=q0,
        v0=np.zeros(5),
        source="IVP Test Set; Simeon, Führer & Rentrop (1991); Eich, section 1.2",
        drawing=FRONT_VIEW,
    )

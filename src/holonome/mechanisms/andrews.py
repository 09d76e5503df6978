"""Andrews' squeezing mechanism: seven bodies in a plane, three closed loops, a motor and a spring. The
classical test of index-3 codes.

                                              C
                                            ⌇
                                          ⌇           K1  OF   crank, driven by the torque mom  angle β
                                        ⌇             K2  FE                                    θ from K1
                                      ⌇               K3  BED  plate, held by the spring CD     γ
                      B───────────  ⌇                 K4  GE                                    φ from K5
                       ╲    K3    ─D                  K5  AG                                    δ
                   ─G   ╲        ╱                    K6  HE                                    Ω from K7
            K5  ─ ─   ╲  ╲     ╱                      K7  AH                                    ε
             ─ ─     K4 ╲ ╲  ╱
        A ─              ──E━━━━━━━━━O━━━F            E joins K2, K3, K4 and K6; A, B, C and O are fixed.
             ─ ─     K6 ╱      K2     K1
            K7  ─ ─   ╱                               M(q) q″ = f(q, q′) − Gᵀλ,   g(q) = 0
                   ─H

Symbols: q = (β, θ, γ, φ, δ, Ω, ε). With e(α) = (cos α, sin α), n(α) = (sin α, −cos α) and the joint E = rr
e(β) − d e(β+θ), seen from O, the six constraints close the loops through B, G and H::

    g₁,₂ = E − B − ss n(γ),   g₃,₄ = E − A − zt e(δ) − e n(φ+δ),   g₅,₆ = E − A − u n(ε) − zf e(Ω+ε).

M and the Coriolis and centrifugal terms in f follow from the kinetic energy of the seven bodies; the torque
on β and the spring, −c₀ (l − l₀) along CD, add to f. There is no gravity. As the torque is constant, ½ c₀ (l
− l₀)² − mom β is a potential, and the energy, motor included, is constant.

Data: below, in SI units, with the names of the test set. Start at rest with θ = 0, t ≤ 0.03 s. Reference: the
solution at t = 0.03. The test set publishes one (`PUBLISHED`), by PSIDE with tolerances 1e-14, of which 10
digits of q, 9 of v and 7 of λ are right: its energy is off by 2e-10, its G v by 1e-9. `REFERENCE` was
computed in extended precision and keeps both to rounding. λ has the same sign in the test set and here.

References
----------
E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, 2nd ed., Springer 1996, section VII.7,
Figure 7.1. F. Mazzia and C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4, University of
Bari 2008, "Andrews' squeezing mechanism". W. Schiehlen (ed.), Multibody Systems Handbook, Springer 1990.
"""

import numpy as np

from holonome.mechanisms.example import Drawing, Example, Reference, with_reference
from holonome.problem.system import System

MASSES = {
    "m1": 0.04325,
    "m2": 0.00365,
    "m3": 0.02373,
    "m4": 0.00706,
    "m5": 0.07050,
    "m6": 0.00706,
    "m7": 0.05498,
}
INERTIAS = {
    "i1": 2.194e-6,
    "i2": 4.410e-7,
    "i3": 5.255e-6,
    "i4": 5.667e-7,
    "i5": 1.169e-5,
    "i6": 5.667e-7,
    "i7": 1.912e-5,
}
FRAME = {"xa": -0.06934, "ya": -0.00227, "xb": -0.03635, "yb": 0.03273, "xc": 0.014, "yc": 0.072}
LENGTHS = {
    **{"rr": 0.007, "ra": 0.00092, "d": 0.028, "da": 0.0115},
    **{"ss": 0.035, "sa": 0.01874, "sb": 0.01043, "sc": 0.018, "sd": 0.02},
    **{"e": 0.02, "ea": 0.01421, "zt": 0.04, "ta": 0.02308, "tb": 0.00916},
    **{"zf": 0.02, "fa": 0.01421, "u": 0.04, "ua": 0.01228, "ub": 0.00449},
}

START = np.array(
    [
        -0.0617138900142764496358948458001,
        0.0,
        0.455279819163070380255912382449,
        0.222668390165885884674473185609,
        0.487364979543842550225598953530,
        -0.222668390165885884674473185609,
        1.23054744454982119249735015568,
    ]
)
PUBLISHED = Reference(
    t=0.03,
    q=np.array(
        [
            15.81077119629904,
            -15.75637105984298,
            0.04082224013073101,
            -0.5347301163226948,
            0.5244099658805304,
            0.5347301163226948,
            1.048080741042263,
        ]
    ),
    v=np.array(
        [
            1139.920302151208,
            -1424.379294994111,
            11.03291221937134,
            19.29337464421385,
            0.5735699284790808,
            -19.29337464421385,
            0.3231791658026955,
        ]
    ),
    lam=np.array(
        [
            199.1753333731910,
            -29.75531228015052,
            23.06654119098399,
            31.45271365475927,
            22.64249232082739,
            11.61740700019673,
        ]
    ),
    digits=7,
    source="Test Set for Initial Value Problem Solvers, release 2.4: PSIDE, tolerances 1e-14",
)
REFERENCE = Reference(
    t=0.03,
    q=np.array(
        [
            15.810771195154,
            -15.756371058412,
            0.040822240119646,
            -0.53473011634208,
            0.52440996587995,
            0.53473011634208,
            1.0480807410419,
        ]
    ),
    v=np.array(
        [
            1139.9203022591,
            -1424.3792951775,
            11.032911910618,
            19.293374105031,
            0.57356991482948,
            -19.293374105031,
            0.32317914924912,
        ]
    ),
    lam=np.array(
        [
            199.17534810454,
            -29.755309974972,
            23.066543611622,
            31.452725275771,
            22.642494786394,
            11.617392352611,
        ]
    ),
    digits=11,
    source="this project: extrapolation of order 16 in extended precision on the underlying ODE, projected "
    "after every step",
)


def mass(q, p):
    theta, phi, omega = q[1], q[3], q[5]
    k4, k6 = p.e - p.ea, p.zf - p.fa  # from G to the centre of K4, from H to the centre of K6
    m11 = p.m1 * p.ra**2 + p.m2 * (p.rr**2 - 2 * p.da * p.rr * np.cos(theta) + p.da**2) + p.i1 + p.i2
    m21 = p.m2 * (p.da**2 - p.da * p.rr * np.cos(theta)) + p.i2
    m22 = p.m2 * p.da**2 + p.i2
    m33 = p.m3 * (p.sa**2 + p.sb**2) + p.i3
    m44 = p.m4 * k4**2 + p.i4
    m54 = p.m4 * (k4**2 + p.zt * k4 * np.sin(phi)) + p.i4
    m55 = p.m4 * (p.zt**2 + 2 * p.zt * k4 * np.sin(phi) + k4**2) + p.m5 * (p.ta**2 + p.tb**2) + p.i4 + p.i5
    m66 = p.m6 * k6**2 + p.i6
    m76 = p.m6 * (k6**2 - p.u * k6 * np.sin(omega)) + p.i6
    m77 = p.m6 * (k6**2 - 2 * p.u * k6 * np.sin(omega) + p.u**2) + p.m7 * (p.ua**2 + p.ub**2) + p.i6 + p.i7
    return np.array(
        [
            [m11, m21, 0.0, 0.0, 0.0, 0.0, 0.0],
            [m21, m22, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, m33, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, m44, m54, 0.0, 0.0],
            [0.0, 0.0, 0.0, m54, m55, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0, m66, m76],
            [0.0, 0.0, 0.0, 0.0, 0.0, m76, m77],
        ]
    )


def spring(q, p):
    """From C to D, the two ends of the spring, and its length."""
    gamma = q[2]
    x = p.xb + p.sd * np.cos(gamma) + p.sc * np.sin(gamma) - p.xc
    y = p.yb + p.sd * np.sin(gamma) - p.sc * np.cos(gamma) - p.yc
    return x, y, np.sqrt(x**2 + y**2)


def force(q, v, p):
    theta, gamma, phi, omega = q[1], q[2], q[3], q[5]
    dbeta, dtheta, _, dphi, ddelta, domega, depsilon = v
    c2 = p.m2 * p.da * p.rr * np.sin(theta)
    c4 = p.m4 * p.zt * (p.e - p.ea) * np.cos(phi)
    c6 = p.m6 * p.u * (p.zf - p.fa) * np.cos(omega)
    x, y, length = spring(q, p)
    pull = -p.c0 * (length - p.l0) / length
    lever_x = p.sc * np.cos(gamma) - p.sd * np.sin(gamma)
    lever_y = p.sd * np.cos(gamma) + p.sc * np.sin(gamma)
    return np.array(
        [
            p.mom - c2 * dtheta * (dtheta + 2 * dbeta),
            c2 * dbeta**2,
            pull * (x * lever_x + y * lever_y),
            c4 * ddelta**2,
            -c4 * dphi * (dphi + 2 * ddelta),
            -c6 * depsilon**2,
            c6 * domega * (domega + 2 * depsilon),
        ]
    )


def constraint(q, p):
    beta, theta, gamma, phi, delta, omega, epsilon = q
    x = p.rr * np.cos(beta) - p.d * np.cos(beta + theta)
    y = p.rr * np.sin(beta) - p.d * np.sin(beta + theta)
    return np.array(
        [
            x - p.xb - p.ss * np.sin(gamma),
            y - p.yb + p.ss * np.cos(gamma),
            x - p.xa - p.zt * np.cos(delta) - p.e * np.sin(phi + delta),
            y - p.ya - p.zt * np.sin(delta) + p.e * np.cos(phi + delta),
            x - p.xa - p.u * np.sin(epsilon) - p.zf * np.cos(omega + epsilon),
            y - p.ya + p.u * np.cos(epsilon) - p.zf * np.sin(omega + epsilon),
        ]
    )


def potential(q, p):
    _, _, length = spring(q, p)
    return p.c0 * (length - p.l0) ** 2 / 2 - p.mom * q[0]


def points(q, p):
    beta, theta, _, _, delta, _, epsilon = q
    x, y, _ = spring(q, p)
    F = p.rr * np.cos(beta), p.rr * np.sin(beta)
    return {
        "O": (0.0, 0.0),
        "A": (p.xa, p.ya),
        "B": (p.xb, p.yb),
        "C": (p.xc, p.yc),
        "D": (p.xc + x, p.yc + y),
        "E": (F[0] - p.d * np.cos(beta + theta), F[1] - p.d * np.sin(beta + theta)),
        "F": F,
        "G": (p.xa + p.zt * np.cos(delta), p.ya + p.zt * np.sin(delta)),
        "H": (p.xa + p.u * np.sin(epsilon), p.ya - p.u * np.cos(epsilon)),
    }


@with_reference(REFERENCE)
def andrews(*, mom: float = 0.033, c0: float = 4530.0, l0: float = 0.07785) -> Example:
    """Andrews' squeezing mechanism, started at rest.

    These arguments leave the start consistent. Masses and lengths are parameters of the system all the same.

    Parameters
    ----------
    mom : float
        Torque of the motor.
    c0, l0 : float
        Stiffness and natural length of the spring.
    """
    bars = [
        ("O", "F"),
        ("F", "E"),
        ("B", "E"),
        ("E", "D"),
        ("D", "B"),
        ("G", "E"),
        ("A", "G"),
        ("H", "E"),
        ("A", "H"),
    ]
    return Example(
        name="andrews",
        title="Andrews' squeezing mechanism",
        system=System(
            mass,
            force,
            constraint,
            potential=potential,
            inertial="in force",
            parameters=MASSES | INERTIAS | FRAME | LENGTHS | {"mom": mom, "c0": c0, "l0": l0},
            names=["beta", "theta", "gamma", "phi", "delta", "omega", "epsilon"],
            constraint_names=["loop B x", "loop B y", "loop G x", "loop G y", "loop H x", "loop H y"],
            name="andrews",
        ),
        t_span=(0.0, 0.03),
        q0=START.copy(),
        v0=np.zeros(7),
        source="IVP Test Set; Hairer & Wanner, section VII.7",
        drawing=Drawing(points, links=bars, springs=[("C", "D")], ground=["O", "A", "B", "C"], traces=["E"]),
    )

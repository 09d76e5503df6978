"""Three mechanical problems of the IVP test set, stated for this package: car axis, Fekete points and the
slider-crank with an elastic rod.  (Andrews' mechanism and the wheel set are among the package's mechanisms.)

Each has its published solution at the end; `digits` says how many significant digits of positions (relative
to the largest) it has.  Multipliers are those of M v′ = f − Gᵀλ.

References
----------
F. Mazzia and C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4, University of Bari 2008.
S. Schneider, Intégration de systèmes d'équations différentielles raides et différentielles-algébriques par
des méthodes de collocations et méthodes générales linéaires, thesis, Genève 1994 (car axis).
C. Bendtsen and P. G. Thomsen, Numerical solution of differential algebraic equations, IMM-DTU 1999 (Fekete).
B. Simeon, Modelling a flexible slider crank mechanism by a mixed system of DAEs and PDEs, Math. Modelling of
Systems 2 (1996) 1-18.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import holonome as hn


class Problem(NamedTuple):
    """A system, its start, and what is published about its end."""

    system: hn.System
    t_end: float
    q0: np.ndarray
    v0: np.ndarray
    q: np.ndarray
    v: np.ndarray
    lam: np.ndarray
    digits: int  # of q
    rough: float  # error of v and λ, relative to the largest


def car_axis() -> Problem:
    """Two wheels at the ends of a rigid axis, on springs: the left one stands on a flat road, the right one on
    a bumpy one.  q holds the upper ends of both springs, (x_l, y_l, x_r, y_r).
    """

    def road(t: Any) -> np.ndarray:
        height = 0.1 * np.sin(10 * t)
        return np.array([np.sqrt(1 - height**2), height])

    def pull(deformed: np.ndarray) -> np.ndarray:
        length = np.sqrt(deformed @ deformed)
        return (0.5 - length) / length * deformed

    mass = 10 * 1e-2**2 / 2

    def force(t, q):
        weight = np.array([0.0, -mass])
        return np.concatenate([pull(q[:2]) + weight, pull(q[2:] - road(t)) + weight])

    def constraint(t, q):
        across = q[:2] - q[2:]
        return np.array([road(t) @ q[:2], across @ across - 1])

    return Problem(
        hn.System(mass, force, constraint, names=["xl", "yl", "xr", "yr"], name="car axis"),
        3.0,
        np.array([0.0, 0.5, 1.0, 0.5]),
        np.array([-0.5, 0.0, -0.5, 0.0]),
        np.array([0.4934557842755629e-1, 0.4969894602303324, 1.041742524885400, 0.3739110272652214]),
        np.array([-0.7705836840321485e-1, 0.7446866596327776e-2, 0.1755681574942899e-1, 0.7703410437794031]),
        np.array([0.4736886750784630e-2, 0.1104680411345730e-2]),
        12,
        1e-7,
    )


RINGS = ((3, 3 / 8, 1 / 13), (7, 1 / 8, 1 / 29), (6, -2 / 15, 1 / 7), (4, -3 / 10, 1 / 17))
"""How many particles begin on a circle of latitude, and where, in units of π: latitude and first longitude."""

FEKETE_POINTS = np.array(
    [
        [-0.4070263380333202, 0.3463758772791802, 0.8451942450030429],
        [0.0775293475252155, -0.2628662719972299, 0.9617122871829146],
        [0.7100577833343567, 0.121294805558612, 0.6936177005172217],
        [0.2348267744557627, 0.7449277976923311, 0.6244509285956391],
        [-0.4341114738782885, 0.8785430442262876, 0.199272044423766],
        [-0.9515059600312596, 0.2203508762787005, 0.2146669498274008],
        [-0.6385191643609878, -0.4310833259390688, 0.6375425027722121],
        [-0.1464175087914336, -0.9380871635228862, 0.313933729874469],
        [0.5666974065069942, -0.6739221885076542, 0.4740073135462156],
        [0.9843259538440293, -0.1696995357819996, -0.0480050429060909],
        [0.1464175087914331, 0.9380871635228875, -0.3139337298744656],
        [-0.7092757549979014, 0.5264062637139616, -0.4688542938854929],
        [-0.8665731819284478, -0.4813878059756024, -0.1315929352982178],
        [-0.2347897778700538, -0.859434040801313, -0.4541441287957579],
        [0.5530976940074118, -0.7674370265615124, -0.3242273140037833],
        [0.7711050969896927, 0.6357041816577034, 0.03573685519777001],
        [0.7103951209379591, 0.2403570431280519, -0.6614886725910596],
        [-0.0303820873873566, 0.4501923293640461, -0.8924145871442046],
        [-0.5772996158107093, -0.1766763414971813, -0.7971892020969544],
        [0.2414481766969039, -0.3416456818373135, -0.908284650344625],
    ]
)


def fekete() -> Problem:
    """Twenty particles on the unit sphere that repel each other with a force 1/distance, and creep with a
    drag ½v towards a position of rest: elliptic Fekete points.
    """
    count = len(FEKETE_POINTS)
    first, second = np.triu_indices(count, 1)

    def force(q, v):
        x = q.reshape(count, 3)
        total = [-0.5 * v[3 * i : 3 * i + 3] for i in range(count)]
        for i, j in zip(first, second, strict=True):
            apart = x[i] - x[j]
            push = apart / (apart @ apart)
            total[i], total[j] = total[i] + push, total[j] - push
        return np.concatenate(total)

    def constraint(q):
        return np.array([q[3 * i : 3 * i + 3] @ q[3 * i : 3 * i + 3] - 1 for i in range(count)])

    start = [
        (
            np.cos(2 * np.pi * i / size + np.pi * turn) * np.cos(np.pi * latitude),
            np.sin(2 * np.pi * i / size + np.pi * turn) * np.cos(np.pi * latitude),
            np.sin(np.pi * latitude),
        )
        for ring, (size, latitude, turn) in enumerate(RINGS)
        for i in (range(size) if ring == len(RINGS) - 1 else range(1, size + 1))
    ]
    return Problem(
        hn.System(np.ones(3 * count), force, constraint, name="Fekete"),
        1000.0,
        np.concatenate(start),
        np.zeros(3 * count),
        FEKETE_POINTS.ravel(),
        np.zeros(3 * count),
        np.full(count, 4.75),
        11,
        1e-10,
    )


PI = 3.1415927
"""As in the test set, so that its digits come out."""
CRANK, ROD, DENSITY, SIDE = 0.15, 0.30, 7870.0, 0.0080


class Rod(NamedTuple):
    """The elastic rod: its matrices for two lateral and two axial modes, per unit of Young's modulus."""

    M: np.ndarray
    K: np.ndarray
    B: np.ndarray
    c1: np.ndarray
    c2: np.ndarray
    c12: np.ndarray
    c21: np.ndarray


def rod() -> Rod:
    volume = SIDE * SIDE * ROD
    M, K, B, (c1, c2, c12, c21) = np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((4, 4))
    M[:2, :2], M[2:, 2:] = np.eye(2) / 2, [[8, 1], [1, 2]]
    bending = PI**4 * (SIDE / ROD) ** 2
    K[:2, :2], K[2:, 2:] = np.diag([bending / 24, bending * 2 / 3]), np.array([[16, -8], [-8, 7]]) / 3
    B[0, 2], B[0, 3], B[1, 3] = -16 / PI**3, 8 / PI**3 - 1 / PI, 0.5 / PI
    c1[2:], c2[0] = (2 / 3, 1 / 6), 2 / PI
    c12[2:], c21[:2] = (ROD / 3, ROD / 6), (ROD / PI, -ROD / (2 * PI))
    return Rod(
        DENSITY * volume * M,
        SIDE * SIDE / ROD * K,
        DENSITY * volume * (B - B.T),
        *(DENSITY * volume * c for c in (c1, c2, c12, c21)),
    )


def flexible_slider_crank(stiffer: float = 1.0, damping: float = 0.0) -> Problem:
    """A crank that turns at 150 rad/s, an elastic rod and a slider.  q = (φ₁, φ₂, x₃, q₁ … q₄): angles of crank
    and rod, position of the slider, and two lateral and two axial modes of the rod.  The inertial terms follow
    from M(q), and the rod is an elastic element; `stiffer` multiplies Young's modulus.
    """
    part = rod()

    def mass(q):
        sine, cosine = np.sin(q[0] - q[1]), np.cos(q[0] - q[1])
        e = q[3:]
        between = CRANK * ROD * 0.151104 / 2 * cosine + CRANK * (
            sine * (part.c2 @ e) + cosine * (part.c1 @ e)
        )
        turning = 0.0045339259 + e @ (part.M @ e) + 2 * (part.c12 @ e)
        crank_row = CRANK * (cosine * part.c2 - sine * part.c1)
        rod_row = part.c21 + part.B.T @ e
        rows = [
            [0.002727 + 0.151104 * CRANK**2, between, 0.0, *crank_row],
            [between, turning, 0.0, *rod_row],
            [0.0, 0.0, 0.075552, 0.0, 0.0, 0.0, 0.0],
            *([crank_row[i], rod_row[i], 0.0, *part.M[i]] for i in range(4)),
        ]
        return np.array(rows)

    def constraint(t, q):
        length = ROD + q[6]
        return np.array(
            [
                CRANK * np.sin(q[0]) + length * np.sin(q[1]),
                q[2] - CRANK * np.cos(q[0]) - length * np.cos(q[1]),
                q[0] - 150.0 * t,
            ]
        )

    young = 0.20e12 * stiffer
    elastic = hn.Elastic(lambda q: q[3:], stiffness=young * part.K, damping=damping * young * part.K)
    names = ["phi1", "phi2", "x3", "q1", "q2", "q3", "q4"]
    return Problem(
        hn.System(
            mass, np.zeros(7), constraint, elastic=elastic, inertial="derived", potential=0.0, names=names
        ),
        0.1,
        np.array([0.0, 0.0, 0.450016933, 0.0, 0.0, 0.103339863e-4, 0.169327969e-4]),
        np.array(
            [
                *(150.0, -74.9957670, -0.268938672e-5),
                *(0.444896105, 0.463434311e-2, -0.178591076e-5, -0.268938672e-5),
            ]
        ),
        np.array(
            [
                *(15.0, -0.3311734988256260, 0.1697373328427860),
                *(0.1893192899613509e-3, 0.2375751249879174e-4),
                *(-0.5323896770569702e-5, -0.8363313279112129e-5),
            ]
        ),
        np.array(
            [
                *(150.0, 0.6025346755138369e2, -0.8753116326670527e1),
                *(-0.3005541400289738e-1, -0.5500431812571696e-2),
                *(0.4974111734266989e-3, 0.1105560003626645e-2),
            ]
        ),
        np.array([-0.6232935833287916e2, -0.1637920993367306e3, 0.2529857947066878e2]),
        9,
        1e-5,
    )


PROBLEMS = {"car axis": car_axis, "Fekete": fekete, "flexible slider-crank": flexible_slider_crank}

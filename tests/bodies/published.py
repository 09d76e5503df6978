"""Published and independent values for mechanisms of bodies and joints, in plain NumPy and SciPy.

Everything here is either printed in the work that its docstring names, or a closed form derived in that
docstring. Nothing comes from the code that it is to check. Units are those of SI unless stated otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.integrate import DOP853, quad
from scipy.optimize import brentq
from scipy.special import ellipj, ellipk

# ----------------------------------------------------------------------------------------------------
# The bicycle

WHIPPLE = {
    "w": 1.02,
    "c": 0.08,
    "lambda": np.pi / 10,
    "g": 9.81,
    "rR": 0.3,
    "mR": 2.0,
    "IRxx": 0.0603,
    "IRyy": 0.12,
    "xB": 0.3,
    "zB": -0.9,
    "mB": 85.0,
    "IBxx": 9.2,
    "IBxz": 2.4,
    "IByy": 11.0,
    "IBzz": 2.8,
    "xH": 0.9,
    "zH": -0.7,
    "mH": 4.0,
    "IHxx": 0.05892,
    "IHxz": -0.00756,
    "IHyy": 0.06,
    "IHzz": 0.00708,
    "rF": 0.35,
    "mF": 3.0,
    "IFxx": 0.1405,
    "IFyy": 0.28,
}
"""The benchmark bicycle: J. P. Meijaard, J. M. Papadopoulos, A. Ruina and A. L. Schwab, "Linearized dynamics
equations for the balance and steer of a bicycle: a benchmark and review", Proc. R. Soc. A 463 (2007)
1955-1982, table 1.

w is the wheelbase, c the trail, lambda the tilt of the steering axis from the vertical. R is the rear wheel,
B the rear frame with the rider, H the front frame, F the front wheel. x points forward, y to the right, z
down, the origin is the rear contact; inertias are about each body's centre, IRzz = IRxx and IFzz = IFxx.
Bodies are symmetric about the plane y = 0.
"""

WHIPPLE_M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
"""Mass matrix of roll and steer, as printed in section 5 of Meijaard et al. (2007):
M q'' + v C1 q' + (g K0 + v**2 K2) q = f with q = (roll to the right, steer to the right).
"""
WHIPPLE_C1 = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
"""Damping per speed, Meijaard et al. (2007)."""
WHIPPLE_K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
"""Stiffness per acceleration of gravity, Meijaard et al. (2007)."""
WHIPPLE_K2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])
"""Stiffness per squared speed, Meijaard et al. (2007)."""

WHIPPLE_EIGENVALUES = {
    0: (3.13164324790656, 5.53094371765393, -3.13164324790656, -5.53094371765393),
    1: (
        3.52696170990070 + 0.80774027519930j,
        3.52696170990070 - 0.80774027519930j,
        -3.13423125066578,
        -7.11008014637442,
    ),
    2: (
        2.68234517512745 + 1.68066296590675j,
        2.68234517512745 - 1.68066296590675j,
        -3.07158645641514,
        -8.67387984831735,
    ),
    3: (
        1.70675605663975 + 2.31582447384325j,
        1.70675605663975 - 2.31582447384325j,
        -2.63366137253667,
        -10.35101467245920,
    ),
    4: (
        0.41325331521125 + 3.07910818603206j,
        0.41325331521125 - 3.07910818603206j,
        -1.42944427361326,
        -12.15861426576447,
    ),
    5: (
        -0.77534188219585 + 4.46486771378823j,
        -0.77534188219585 - 4.46486771378823j,
        -0.32286642900409,
        -14.07838969279822,
    ),
    6: (
        -1.52644486584142 + 5.87673060598709j,
        -1.52644486584142 - 5.87673060598709j,
        -0.00406690076970,
        -16.08537123098026,
    ),
    7: (
        -2.13875644258362 + 7.19525913329805j,
        -2.13875644258362 - 7.19525913329805j,
        0.10268170574766,
        -18.15788466125262,
    ),
    8: (
        -2.69348683581097 + 8.46037971396931j,
        -2.69348683581097 - 8.46037971396931j,
        0.14327879765713,
        -20.27940894394569,
    ),
    9: (
        -3.21675402252485 + 9.69377351531791j,
        -3.21675402252485 - 9.69377351531791j,
        0.15790184030917,
        -22.43788559040858,
    ),
    10: (
        -3.72016840437287 + 10.90681139476287j,
        -3.72016840437287 - 10.90681139476287j,
        0.16105338653172,
        -24.62459635017404,
    ),
}
"""Eigenvalues by forward speed in m/s: weave (two), capsize, castering, with the 14 decimals of table 2 of
Meijaard et al. (2007). At rest two pairs of opposite real ones take their place.
"""

WHIPPLE_SPEEDS = {
    "double root": 0.68428307889246,
    "weave": 4.29238253634111,
    "capsize": 6.02426201538837,
}
"""Speeds at which the weave becomes oscillatory, at which it becomes stable and at which the capsize becomes
unstable: table 2 of Meijaard et al. (2007). In between the bicycle is stable by itself.
"""


def whipple_matrices(p: dict[str, float] = WHIPPLE) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """M, C1, K0 and K2 from the parameters, by appendix A of Meijaard et al. (2007), with its symbols."""
    cos, sin = np.cos(p["lambda"]), np.sin(p["lambda"])
    w, rR, rF, mR, mB, mH, mF = (p[name] for name in ("w", "rR", "rF", "mR", "mB", "mH", "mF"))
    xB, zB, xH, zH = (p[name] for name in ("xB", "zB", "xH", "zH"))
    # the whole bicycle
    mT = mR + mB + mH + mF
    xT = (xB * mB + xH * mH + w * mF) / mT
    zT = (-rR * mR + zB * mB + zH * mH - rF * mF) / mT
    ITxx = p["IRxx"] + p["IBxx"] + p["IHxx"] + p["IFxx"] + mR * rR**2 + mB * zB**2 + mH * zH**2 + mF * rF**2
    ITxz = p["IBxz"] + p["IHxz"] - mB * xB * zB - mH * xH * zH + mF * w * rF
    ITzz = p["IRxx"] + p["IBzz"] + p["IHzz"] + p["IFxx"] + mB * xB**2 + mH * xH**2 + mF * w**2
    # the front assembly
    mA = mH + mF
    xA, zA = (xH * mH + w * mF) / mA, (zH * mH - rF * mF) / mA
    IAxx = p["IHxx"] + p["IFxx"] + mH * (zH - zA) ** 2 + mF * (rF + zA) ** 2
    IAxz = p["IHxz"] - mH * (xH - xA) * (zH - zA) + mF * (w - xA) * (rF + zA)
    IAzz = p["IHzz"] + p["IFxx"] + mH * (xH - xA) ** 2 + mF * (w - xA) ** 2
    uA = (xA - w - p["c"]) * cos - zA * sin
    IAll = mA * uA**2 + IAxx * sin**2 + 2 * IAxz * sin * cos + IAzz * cos**2
    IAlx = -mA * uA * zA + IAxx * sin + IAxz * cos
    IAlz = mA * uA * xA + IAxz * sin + IAzz * cos
    mu = p["c"] / w * cos
    SR, SF = p["IRyy"] / rR, p["IFyy"] / rF
    ST, SA = SR + SF, mA * uA + mu * mT * xT
    M = [[ITxx, IAlx + mu * ITxz], [IAlx + mu * ITxz, IAll + 2 * mu * IAlz + mu**2 * ITzz]]
    K0 = [[mT * zT, -SA], [-SA, -SA * sin]]
    K2 = [[0.0, (ST - mT * zT) / w * cos], [0.0, (SA + SF * sin) / w * cos]]
    C1 = [
        [0.0, mu * ST + SF * cos + ITxz / w * cos - mu * mT * zT],
        [-(mu * ST + SF * cos), IAlz / w * cos + mu * (SA + ITzz / w * cos)],
    ]
    return np.array(M), np.array(C1), np.array(K0), np.array(K2)


def whipple_eigenvalues(v: float, p: dict[str, float] = WHIPPLE) -> np.ndarray:
    """The four eigenvalues at the forward speed v, by real part."""
    M, C1, K0, K2 = whipple_matrices(p)
    A = np.block(
        [
            [np.zeros((2, 2)), np.eye(2)],
            [-np.linalg.solve(M, p["g"] * K0 + v**2 * K2), -np.linalg.solve(M, v * C1)],
        ]
    )
    return np.sort_complex(np.linalg.eigvals(A))


# ----------------------------------------------------------------------------------------------------
# Linkages

JANSEN = {
    "a": 38.0,
    "b": 41.5,
    "c": 39.3,
    "d": 40.1,
    "e": 55.8,
    "f": 39.4,
    "g": 36.7,
    "h": 65.7,
    "i": 49.0,
    "j": 50.0,
    "k": 61.9,
    "l": 7.8,
    "m": 15.0,
}
"""The lengths of a leg of Theo Jansen's walking linkage: his "eleven holy numbers" (T. Jansen, The Great
Pretender, 010 Publishers, 2007) with the crank m and the height l of its axle above the fixed pivot.

The axle is O = (0, 0), the fixed pivot Z = (-a, -l), the crank pin X at the distance m from O. Y is above,
with XY = j and ZY = b; V on the far left with YV = e and ZV = d, so that ZYV is a triangle; W below, with ZW
= c and XW = k; U on the left with VU = f and WU = g; the foot P with UP = h and WP = i, so that UWP is a
triangle.
"""


def jansen(angle: float, numbers: dict[str, float] = JANSEN) -> dict[str, np.ndarray]:
    """The points of Jansen's leg at an angle of the crank, from intersections of circles."""
    n = numbers

    def meet(first, r1: float, second, r2: float) -> np.ndarray:
        """Where two circles meet, on the left of the way from the first centre to the second."""
        way = second - first
        d = np.hypot(*way)
        along = (d**2 + r1**2 - r2**2) / (2 * d)
        e = way / d
        return first + along * e + np.sqrt(r1**2 - along**2) * np.array([-e[1], e[0]])

    O, Z = np.zeros(2), np.array([-n["a"], -n["l"]])
    X = n["m"] * np.array([np.cos(angle), np.sin(angle)])
    Y = meet(Z, n["b"], X, n["j"])
    V = meet(Z, n["d"], Y, n["e"])
    W = meet(X, n["k"], Z, n["c"])
    U = meet(W, n["g"], V, n["f"])
    P = meet(W, n["i"], U, n["h"])
    return {"O": O, "Z": Z, "X": X, "Y": Y, "V": V, "W": W, "U": U, "P": P}


def screw(theta: float, a: float, alpha: float, offset: float = 0.0) -> np.ndarray:
    """Denavit and Hartenberg's transform: turn by theta about z, go along z by the offset, along x by a, turn
    by alpha about x.
    """
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array(
        [[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, offset], [0, 0, 0, 1]]
    )


def loop(angles, lengths, twists) -> np.ndarray:
    """The product of the transforms of a closed chain without offsets; the identity where it closes."""
    T = np.eye(4)
    for theta, a, alpha in zip(angles, lengths, twists, strict=True):
        T = T @ screw(theta, a, alpha)
    return T


BENNETT = {"a": 0.8, "alpha": np.radians(40.0), "beta": np.radians(75.0)}
"""A Bennett linkage; the other side has the length a sin(beta) / sin(alpha)."""


def bennett(theta1: float, a: float = 0.8, alpha: float = BENNETT["alpha"], beta: float = BENNETT["beta"]):
    """Angles, lengths and twists of Bennett's linkage, which closes for every theta1.

    G. T. Bennett, "A new mechanism", Engineering 76 (1903) 777-778: opposite sides are equal, there are no
    offsets, and sin(alpha) / a = sin(beta) / b. Then theta3 = -theta1, theta4 = -theta2 and
    tan(theta1 / 2) tan(theta2 / 2) = sin((beta + alpha) / 2) / sin((beta - alpha) / 2).
    """
    b = a * np.sin(beta) / np.sin(alpha)
    ratio = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    theta2 = 2 * np.arctan(ratio / np.tan(theta1 / 2))
    return (theta1, theta2, -theta1, -theta2), (a, b, a, b), (alpha, beta, alpha, beta)


def bricard(theta1: float, side: float = 1.0):
    """Angles, lengths and twists of Bricard's trihedral linkage with equal sides, in its motion of threefold
    symmetry, which closes wherever |cos(theta1) / (1 + cos(theta1))| <= 1.

    R. Bricard, Lecons de cinematique, tome II, Gauthier-Villars, 1927: without offsets, with twists 90 and
    270 degrees in turn, and a1**2 + a3**2 + a5**2 = a2**2 + a4**2 + a6**2. For equal sides theta1 = theta3 =
    theta5 and theta2 = theta4 = theta6 with cos(theta1) + cos(theta2) + cos(theta1) cos(theta2) = 0 (Y. Chen,
    Z. You and T. Tarnai, "Threefold-symmetric Bricard linkages for deployable structures", Int. J. Solids
    Struct. 42 (2005) 2287-2301). At theta1 = 90 degrees the six sides are edges of a cube.
    """
    theta2 = np.arccos(-np.cos(theta1) / (1 + np.cos(theta1)))
    twists = (np.pi / 2, 3 * np.pi / 2) * 3
    return (theta1, theta2) * 3, (side,) * 6, twists


def bricard_points(theta1: float, side: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Points on the six axes of `bricard`, between which the sides go, and the directions of these axes."""
    T, points, axes = np.eye(4), [], []
    for theta, a, alpha in zip(*bricard(theta1, side), strict=True):
        points.append(T[:3, 3])
        axes.append(T[:3, 2])
        T = T @ screw(theta, a, alpha)
    return np.array(points), np.array(axes)


def universal_joint(angle, bend: float):
    """Angle of the second shaft, and its speed over that of the first, across a universal joint.

    The first shaft's arm of the cross is normal to the plane of both shafts at angle 0; then
    tan(angle2) = cos(bend) tan(angle), and the ratio lies between cos(bend) and 1 / cos(bend). Every textbook
    on the theory of machines has it, as J. J. Uicker, G. R. Pennock and J. E. Shigley, Theory of Machines and
    Mechanisms, section on the Hooke universal joint. The angle is continuous over many turns.
    """
    angle = np.asarray(angle, dtype=float)
    turns = np.round(angle / np.pi)
    rest = angle - turns * np.pi
    second = turns * np.pi + np.arctan2(np.cos(bend) * np.sin(rest), np.cos(rest))
    return second, np.cos(bend) / (1 - np.sin(bend) ** 2 * np.sin(angle) ** 2)


# ----------------------------------------------------------------------------------------------------
# Single bodies


@dataclass(frozen=True)
class EulerTop:
    """A free body with principal moments I1 > I2 > I3, which starts with the rates (w1, 0, w3), both
    positive.

    L. D. Landau and E. M. Lifshitz, Mechanics, section 37: w1 and w3 go with cn or dn, w2 with sn, of
    (rate * t) and the parameter m below; where 2 E I2 > L**2 the roles of 1 and 3 are exchanged.
    """

    I1: float
    I2: float
    I3: float
    w1: float
    w3: float

    def _constants(self) -> tuple[bool, float, float, float]:
        I1, I2, I3 = self.I1, self.I2, self.I3
        twice_energy = I1 * self.w1**2 + I3 * self.w3**2
        L2 = (I1 * self.w1) ** 2 + (I3 * self.w3) ** 2
        about1 = twice_energy * I2 < L2
        if about1:
            # w1 never vanishes: w1 = dn, w3 = cn
            rate2 = self.w1**2 * (I1 - I2) * (I1 - I3) / (I2 * I3)
            m = (twice_energy * I1 - L2) * (I2 - I3) / ((L2 - twice_energy * I3) * (I1 - I2))
        else:
            rate2 = self.w3**2 * (I1 - I3) * (I2 - I3) / (I1 * I2)
            m = (L2 - twice_energy * I3) * (I1 - I2) / ((twice_energy * I1 - L2) * (I2 - I3))
        amplitude2 = (twice_energy * I1 - L2) / (I2 * (I1 - I2))
        if not about1:
            amplitude2 = (L2 - twice_energy * I3) / (I2 * (I2 - I3))
        return about1, np.sqrt(rate2), m, np.sqrt(amplitude2)

    @property
    def period(self) -> float:
        """Of the rates, in the body."""
        _, rate, m, _ = self._constants()
        return 4 * float(ellipk(m)) / rate

    def rates(self, t) -> np.ndarray:
        """The angular velocity in the body's principal axes, one row for each time."""
        about1, rate, m, amplitude = self._constants()
        sn, cn, dn, _ = ellipj(rate * np.asarray(t, dtype=float), m)
        w1, w3 = (dn, cn) if about1 else (cn, dn)
        return np.stack([self.w1 * w1, -amplitude * sn, self.w3 * w3], axis=-1)

    def momentum(self) -> float:
        return float(np.hypot(self.I1 * self.w1, self.I3 * self.w3))

    def rotation(self, t: float) -> np.ndarray:
        """From the body's principal axes to a frame at rest whose z is the angular momentum.

        With Euler's angles psi, theta, phi (about z, x, z) the momentum in the body is L (sin(theta)
        sin(phi), sin(theta) cos(phi), cos(theta)), and psi' = L (I1 w1**2 + I2 w2**2) / ((I1 w1)**2 + (I2
        w2)**2); psi is 0 at the start.
        """
        L, I = self.momentum(), np.array([self.I1, self.I2, self.I3])

        def speed(s: float) -> float:
            w1, w2, _ = self.rates(s)
            return L * (self.I1 * w1**2 + self.I2 * w2**2) / ((self.I1 * w1) ** 2 + (self.I2 * w2) ** 2)

        pieces = np.linspace(0.0, t, 2 + int(8 * t / self.period))
        psi = sum(quad(speed, *piece, epsabs=1e-14, epsrel=1e-13)[0] for piece in pairwise(pieces))
        x, y, z = I * self.rates(t) / L
        phi, theta = np.arctan2(x, y), np.arccos(np.clip(z, -1, 1))

        def about_z(angle: float) -> np.ndarray:
            c, s = np.cos(angle), np.sin(angle)
            return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])

        c, s = np.cos(theta), np.sin(theta)
        return about_z(psi) @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ about_z(phi)


def steady_precession(I: float, I3: float, w3: float, m: float, l: float, theta: float, g: float = 9.81):
    """The slow and the fast rate of steady precession of a heavy symmetric top, at the angle theta of its
    axis from the vertical.

    H. Goldstein, Classical Mechanics, section on the heavy symmetrical top with one point fixed: I (about the
    fixed point, normal to the axis) and I3 (about the axis), w3 the whole angular velocity about the axis, l
    from the fixed point to the centre: I W**2 cos(theta) - I3 w3 W + m g l = 0.
    """
    root = np.sqrt((I3 * w3) ** 2 - 4 * I * m * g * l * np.cos(theta))
    fast = (I3 * w3 + root) / (2 * I * np.cos(theta))
    return m * g * l / (I * np.cos(theta)) / fast, fast


def sleeping_top(I: float, I3: float, m: float, l: float, g: float = 9.81) -> float:
    """The least rate about the axis at which an upright top is stable: w3**2 = 4 I m g l / I3**2."""
    return 2 * np.sqrt(I * m * g * l) / I3


def rolling_disc(theta: float, precession: float, r: float = 0.5, g: float = 9.81, thin: float = 0.5):
    """Steady rolling of a disc of unit mass: the rate about its axis, the radius of the circle of its centre.

    theta is between the plane of the disc and the ground, ``precession`` the rate W about the vertical; the
    moment about the axis is C = thin * r**2, that about a diameter A = C / 2. In the frame of the horizontal
    tangent e1, of e2 from the contact to the centre, and of the axis e3, the angular velocity is
    W sin(theta) e2 + w3 e3, the centre moves with -r w3 e1, and Euler's equation about e1 reads
    (C + m r**2) w3 W sin(theta) - A W**2 sin(theta) cos(theta) + m g r cos(theta) = 0. So in E. J. Routh,
    Advanced Dynamics of a System of Rigid Bodies (1905), section on the motion of a hoop.
    """
    C = thin * r**2
    A = C / 2
    W = precession
    w3 = (A * W**2 * np.sin(theta) - g * r) * np.cos(theta) / ((C + r**2) * W * np.sin(theta))
    return w3, abs(r * w3 / W)


def upright_disc_speed(r: float = 0.5, g: float = 9.81, thin: float = 0.5) -> float:
    """The least speed at which a disc rolls straight ahead stably: v**2 = g r / 3 for a uniform thin disc.

    From w3**2 = A m g r / (C (C + m r**2)), E. J. Routh (1905), as `rolling_disc`.
    """
    C = thin * r**2
    return r * np.sqrt(C / 2 * g * r / (C * (C + r**2)))


# ----------------------------------------------------------------------------------------------------
# Beams

CANTILEVER = (
    1.8751040687119611,
    4.6940911329741746,
    7.8547574382376126,
    10.9955407348754670,
    14.1371683910464706,
)
"""The first roots of cos(x) cosh(x) = -1: S. Timoshenko, Vibration Problems in Engineering."""


def cantilever_frequencies(EI: float, mass_per_length: float, length: float, number: int = 5) -> np.ndarray:
    """Circular frequencies of a clamped-free beam of Euler and Bernoulli."""
    roots = [
        brentq(lambda x: np.cos(x) + 1 / np.cosh(x), (k + 0.3) * np.pi, (k + 0.7) * np.pi, xtol=1e-15)
        for k in range(number)
    ]
    return np.array(roots) ** 2 * np.sqrt(EI / (mass_per_length * length**4))


def cantilever_deflection(EI: float, force: float, length: float) -> float:
    """Of the tip, under a force across it: F L**3 / (3 EI)."""
    return force * length**3 / (3 * EI)


SPINNING_BEAM = {
    "length": 10.0,
    "EI": 1.4e4,
    "EA": 2.8e7,
    "mass per length": 1.2,
    "inertia per length": 6e-4,
    "rate": 6.0,
    "until": 15.0,
    "final extension": 5.14e-4,
}
"""A beam that is spun up about its end: J. C. Simo and L. Vu-Quoc, "On the dynamics of flexible beams under
large overall motions - the plane case: part II", J. Appl. Mech. 53 (1986) 855-863. The angle of its root is
that of `spin_up`; afterwards the tip is extended by 5.14e-4, which is rate**2 * mass * length**3 / (3 EA).
"""


def spin_up(t: float, rate: float = 6.0, until: float = 15.0) -> float:
    """The angle of the root of `SPINNING_BEAM`."""
    if t >= until:
        return rate * (t - until / 2)
    return rate / until * (t**2 / 2 + (until / (2 * np.pi)) ** 2 * (np.cos(2 * np.pi * t / until) - 1))


def spinning_extension(rate: float, EA: float, mass_per_length: float, length: float) -> float:
    """The steady extension of the tip of a thin spinning rod: u'' = -(rho A W**2 / EA) (x + u), u(0) = 0,
    u'(L) = 0, so u(L) = tan(k L) / k - L with k = W sqrt(rho A / EA).
    """
    k = rate * np.sqrt(mass_per_length / EA)
    return np.tan(k * length) / k - length


SIMEON = {
    "crank length": 0.15,
    "rod length": 0.30,
    "crank mass": 0.36,
    "rod mass": 0.151104,
    "slider mass": 0.075552,
    "crank inertia": 0.002727,
    "rod inertia": 0.0045339259,
    "E": 2.0e11,
    "height": 0.008,
    "width": 0.008,
    "density": 7870.0,
    "rate": 150.0,
    "gravity": 0.0,
    "end": 0.1,
}
"""The slider-crank with a flexible rod: B. Simeon, "Modelling a flexible slider crank mechanism by a mixed
system of DAEs and PDEs", Math. Modelling of Systems 2 (1996) 1-18, as in the test set for IVP solvers (F.
Mazzia and C. Magherini, Test Set for Initial Value Problem Solvers, release 2.4, University of Bari, 2008),
problem "Slider crank".

The crank turns with the prescribed rate; the inertias are about the axle and about the crank pin. The rod
bends as q1 sin(pi x / l) + q2 sin(2 pi x / l) and is lengthened by a parabola through q3 in the middle and q4
at the end; damping is none.
"""

SIMEON_START = {
    "rod angle": 0.0,
    "slider": 0.450016933,
    "q": (0.0, 0.0, 0.103339863e-4, 0.169327969e-4),
    "rod rate": -74.9957670,
    "slider rate": -0.268938672e-5,
    "q rate": (0.444896105, 0.463434311e-2, -0.178591076e-5, -0.268938672e-5),
}
"""The start of the test set's first run, near the smooth motion; the crank angle is 0."""


SIMEON_END = (
    -3.311734988256260e-1,
    1.697373328427860e-1,
    1.893192899613509e-4,
    2.375751249879174e-5,
    -5.323896770569702e-6,
    -8.363313279112129e-6,
)
"""Rod angle, slider and q1 to q4 after 0.1 s: the reference solution of the test set. Its slider keeps the
2e-10 by which the printed start misses the constraint, and its pi is 3.1415927, which shows in the tenth
decimal of q1.
"""


class FlexibleSliderCrank:
    """The mechanism of `SIMEON`, by Newton's law in the frame of the rod, integrated over its length.

    With p the angle of the rod, u and w its displacement along and across, the acceleration of its point x
    is, in its own frame, that of the crank pin plus p'' (-w, x + u) - p'**2 (x + u, w) + 2 p' (-w', u') +
    (u'', w''). The slider hangs on the end of the rod, at l + q4, by two constraints.

    The test set's mass matrix has 8, 1, 2 for the parabola of the axial displacement, where the integrals are
    8/15, 1/15, 2/15: axially the rod is fifteen times as heavy. ``axial_mass`` = 15 gives the test set's
    motion, 1 that of the beam, which is what a floating frame of reference should find. Axial vibrations are
    faster by the root of 15 then; the bending hardly notices.
    """

    def __init__(self, axial_mass: float = 15.0, p: dict[str, float] = SIMEON) -> None:
        self.p = p
        l, m = p["rod length"], p["rod mass"]
        x, weight = np.polynomial.legendre.leggauss(24)
        x, weight = (x + 1) / 2, weight / 2
        self.x, self.weight = l * x, m * weight
        zero = np.zeros_like(x)
        self.U = np.array([zero, zero, 4 * x * (1 - x), 2 * x**2 - x])
        self.W = np.array([np.sin(np.pi * x), np.sin(2 * np.pi * x), zero, zero])
        axial = m / 15 * np.array([[8.0, 1.0], [1.0, 2.0]])
        self.extra = np.zeros((4, 4))
        self.extra[2:, 2:] = (axial_mass - 1) * axial
        area, second = p["width"] * p["height"], p["width"] * p["height"] ** 3 / 12
        self.K = np.zeros((4, 4))
        self.K[0, 0] = p["E"] * second * (np.pi / l) ** 4 * l / 2
        self.K[1, 1] = 16 * self.K[0, 0]
        self.K[2:, 2:] = p["E"] * area / l / 3 * np.array([[16.0, -8.0], [-8.0, 7.0]])
        # the part of the inertia that the thin rod lacks: that of its cross-sections
        self.rotary = p["rod inertia"] - m * l**2 / 3

    def accelerations(self, t: float, y: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Of y = (rod angle, slider, q1, q2, q3, q4)."""
        p, angle, q, turn, rate = self.p, y[0], y[2:], v[0], v[2:]
        r, l, W = p["crank length"], p["rod length"], p["rate"]
        u, w, du, dw = q @ self.U, q @ self.W, rate @ self.U, rate @ self.W
        phi = W * t - angle
        known = np.stack(
            [
                -r * W**2 * np.cos(phi) - turn**2 * (self.x + u) - 2 * turn * dw,
                -r * W**2 * np.sin(phi) - turn**2 * w + 2 * turn * du,
            ]
        )
        # directions of p and q, in the frame of the rod
        D = np.concatenate([np.stack([-w, self.x + u])[None], np.stack([self.U, self.W], axis=1)])
        M, f = np.zeros((6, 6)), np.zeros(6)
        place = np.array([0, 2, 3, 4, 5])
        M[np.ix_(place, place)] = np.einsum("iak,jak,k->ij", D, D, self.weight)
        f[place] = -np.einsum("iak,ak,k->i", D, known, self.weight)
        M[0, 0] += self.rotary + q @ self.extra @ q
        M[1, 1] = p["slider mass"]
        M[2:, 2:] += self.extra
        f[0] -= 2 * turn * rate @ self.extra @ q
        f[2:] += turn**2 * self.extra @ q - self.K @ q
        c, s, reach = np.cos(angle), np.sin(angle), l + q[3]
        G = np.zeros((2, 6))
        G[0, [0, 5]] = reach * c, s
        G[1, [0, 1, 5]] = reach * s, 1.0, -c
        crank = W * t
        right = [
            r * W**2 * np.sin(crank) + reach * turn**2 * s - 2 * turn * rate[3] * c,
            -r * W**2 * np.cos(crank) - reach * turn**2 * c - 2 * turn * rate[3] * s,
        ]
        A = np.block([[M, G.T], [G, np.zeros((2, 2))]])
        return np.linalg.solve(A, np.concatenate([f, right]))[:6]

    def motion(self, times, steps: int = 4000) -> np.ndarray:
        """Rod angle, slider, q1 to q4, at these times, from the test set's start: DOP853 with constant steps,
        ``steps`` of them in a tenth of a second.
        """
        s = SIMEON_START
        # the printed start has nine digits; angle 0 and the constraints give the rest
        reach = self.p["rod length"] + s["q"][3]
        turn = -self.p["crank length"] * self.p["rate"] / reach
        y0 = [0.0, self.p["crank length"] + reach, *s["q"], turn, s["q rate"][3], *s["q rate"]]
        y, t, found = np.array(y0), 0.0, []

        def slope(t, y):
            return np.concatenate([y[6:], self.accelerations(t, y[:6], y[6:])])

        for end in times:
            h = (end - t) / np.ceil((end - t) * steps / self.p["end"] - 1e-9)
            run = DOP853(slope, t, y, end, max_step=h, first_step=h, rtol=1.0, atol=1e10)
            while run.status == "running":
                run.step()
            t, y = end, run.y
            found.append(y[:6].copy())
        return np.array(found)

"""Slider-crank with equal bars: two bars in absolute coordinates that pass through a singular position.

             ╱╲
     φ₁   1 ╱  ╲ 2  φ₂         M v′ = f − Gᵀλ,   M = diag(m₁, m₁, J₁, m₂, m₂, J₂)
           ╱    ╲                                f = −γ (0, m₁, 0, 0, m₂, 0)
          O      ⊡ →           g₁ = x₁ − ½ℓ₁ cos φ₁                          bar 1 hinged at the origin
    ────────────────── x       g₂ = y₁ − ½ℓ₁ sin φ₁
                               g₃ = x₂ − x₁ − ½(ℓ₁ cos φ₁ + ℓ₂ cos φ₂)       bar 2 hinged to bar 1
                               g₄ = y₂ − y₁ − ½(ℓ₁ sin φ₁ + ℓ₂ sin φ₂)
                               g₅ = ℓ₁ sin φ₁ + ℓ₂ sin φ₂                    the slider stays on the x axis

Symbols: q = (x₁, y₁, φ₁, x₂, y₂, φ₂), centres of mass and angles of the bars; masses mᵢ, lengths ℓᵢ, moments
of inertia Jᵢ = mᵢℓᵢ²/12, gravity γ.

Data: mᵢ = ℓᵢ = 1, γ = 9.81, start at rest with φ₁ = 7π/4 and φ₂ = 2π − φ₁ = π/4 (the picture upside down).
The paper does not print masses, lengths and gravity; these are the project's choice. Its second run is
``slider_crank(phi1=np.pi / 4, omega1=2 * np.sqrt(2))``.

With equal bars the last row of G is ℓ (cos φ₁, cos φ₂) in the angles and vanishes whenever both bars stand
upright, one upon the other: in φ₁ = π/2, as the paper says, and also in φ₁ = 3π/2, φ₂ = π/2, which is the
position that the default start crosses, twice in each period. There λ₅ is not determined, while q, v and Gᵀλ
stay smooth. From there the slider could also stay in the origin and the bars turn together (φ₂ = φ₁ + π); the
smooth motion continues with φ₁ + φ₂ = 2π.

Reference: the solution at t = 70 (`REFERENCE`). For equal bars (⅔ + 2 sin²φ₁) φ₁″ + 2 sin φ₁ cos φ₁ φ₁′² =
−(γ/ℓ) cos φ₁.

References
----------
U. Ascher and P. Lin, Sequential regularization methods for nonlinear higher index DAEs, SIAM J. Sci. Comput.
18 (1997) 160-181, section 5 and Example 6.5.
"""

from collections.abc import Callable

import numpy as np

from holonome.mechanisms.example import Drawing, Example, Reference, with_reference
from holonome.problem.system import System

NAMES = ["x1", "y1", "phi1", "x2", "y2", "phi2"]
JOINTS = ["hinge x", "hinge y", "joint x", "joint y", "slider"]


def mass(p):
    return np.array([p.m1, p.m1, p.m1 * p.length1**2 / 12, p.m2, p.m2, p.m2 * p.length2**2 / 12])


def force(p):
    return np.array([0.0, -p.m1 * p.gravity, 0.0, 0.0, -p.m2 * p.gravity, 0.0])


def constraint(q, p):
    x1, y1, phi1, x2, y2, phi2 = q
    half1, half2 = p.length1 / 2, p.length2 / 2
    return np.array(
        [
            x1 - half1 * np.cos(phi1),
            y1 - half1 * np.sin(phi1),
            x2 - x1 - half1 * np.cos(phi1) - half2 * np.cos(phi2),
            y2 - y1 - half1 * np.sin(phi1) - half2 * np.sin(phi2),
            p.length1 * np.sin(phi1) + p.length2 * np.sin(phi2),
        ]
    )


def potential(q, p):
    return p.gravity * (p.m1 * q[1] + p.m2 * q[4])


def points(q, p):
    x1, y1, phi1, x2, y2, phi2 = q
    joint = x1 + p.length1 / 2 * np.cos(phi1), y1 + p.length1 / 2 * np.sin(phi1)
    slider = x2 + p.length2 / 2 * np.cos(phi2), y2 + p.length2 / 2 * np.sin(phi2)
    return {"O": (0.0, 0.0), "joint": joint, "slider": slider, "centre2": (x2, y2)}


DRAWING = Drawing(
    points,
    links=[("O", "joint"), ("joint", "slider")],
    ground=["O"],
    sliders=["slider"],
    traces=["joint", "centre2"],
)


def start(phi1: float, omega1: float, length1: float, length2: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities for an angle and an angular velocity of the crank.

    The slider is on the right if bar 2 is the longer one, otherwise on the side to which bar 1 points.
    """
    sin1, cos1 = np.sin(phi1), np.cos(phi1)
    reach = length2**2 - length1**2 + (length1 * cos1) ** 2
    if reach < 0:
        raise ValueError(
            f"length2 = {length2} is too short to reach the axis from phi1 = {phi1}; at least "
            f"{abs(length1 * sin1):g} is needed."
        )
    sin2 = -length1 * sin1 / length2
    cos2 = np.copysign(np.sqrt(reach), 1.0 if length2 > length1 else cos1) / length2
    omega2 = -length1 * cos1 * omega1 / (length2 * cos2) if omega1 else 0.0
    half1, half2 = length1 / 2, length2 / 2
    q0 = [
        half1 * cos1,
        half1 * sin1,
        phi1,
        length1 * cos1 + half2 * cos2,
        length1 * sin1 + half2 * sin2,
        np.arctan2(sin2, cos2),
    ]
    v0 = [
        *(-half1 * sin1 * omega1, half1 * cos1 * omega1, omega1),
        *(
            -length1 * sin1 * omega1 - half2 * sin2 * omega2,
            length1 * cos1 * omega1 + half2 * cos2 * omega2,
            omega2,
        ),
    ]
    return np.array(q0), np.array(v0)


def two_bars(
    constraint: Callable,
    parameters: dict[str, float],
    crank: tuple[float, float],
    *,
    name: str,
    title: str,
    t_span: tuple[float, float],
    source: str,
) -> Example:
    """A slider-crank with this form of its constraints, from an angle and an angular velocity of bar 1."""
    system = System(
        mass,
        force,
        constraint,
        potential=potential,
        parameters=parameters,
        names=NAMES,
        constraint_names=JOINTS,
        name=name,
    )
    q0, v0 = start(*crank, parameters["length1"], parameters["length2"])
    return Example(
        name=name, title=title, system=system, t_span=t_span, q0=q0, v0=v0, source=source, drawing=DRAWING
    )


REFERENCE = Reference(
    t=70.0,
    q=np.array(
        [
            0.34248012501224,
            -0.36429021942896,
            5.4669381197187,
            1.0274403750367,
            -0.36429021942896,
            0.81624718746086,
        ]
    ),
    v=np.array(
        [
            -0.17986110071111,
            -0.16909279736617,
            -0.49373024890167,
            -0.53958330213332,
            -0.16909279736617,
            0.49373024890167,
        ]
    ),
    lam=np.array([5.7940265288935, -17.231012760667, 4.3455198966701, -8.6155063803335, -7.0747547852502]),
    digits=10,
    source="this project: extrapolation of order 18 in extended precision, in the angle of bar 1",
)


@with_reference(REFERENCE)
def slider_crank(
    *,
    m1: float = 1.0,
    m2: float = 1.0,
    length1: float = 1.0,
    length2: float = 1.0,
    gravity: float = 9.81,
    phi1: float = 7 * np.pi / 4,
    omega1: float = 0.0,
) -> Example:
    """Slider-crank of two bars, by default equal ones, which pass through a singular position.

    Parameters
    ----------
    m1, m2, length1, length2, gravity : float
        Masses and lengths of the bars and acceleration of gravity.
    phi1, omega1 : float
        Angle and angular velocity of bar 1 at the start.
    """
    parameters = {"m1": m1, "m2": m2, "length1": length1, "length2": length2, "gravity": gravity}
    return two_bars(
        constraint,
        parameters,
        (phi1, omega1),
        name="slider_crank",
        title="Slider-crank with equal bars, through singular positions (Ascher & Lin, Example 6.5)",
        t_span=(0.0, 70.0),
        source="Ascher & Lin, section 5 and Example 6.5",
    )

"""Chain: N equal bars in absolute coordinates, hanging from a hinge. Any size, with a banded structure.

    O━━━━━∙━━━━━∙━━━━━∙━━━━━       M v′ = f − Gᵀλ,   for each bar M = diag(m, m, J), f = −γ (0, m, 0)
      1     2     3     N
                                   0 = xᵢ − ½ℓ cos φᵢ − (xᵢ₋₁ + ½ℓ cos φᵢ₋₁)
                                   0 = yᵢ − ½ℓ sin φᵢ − (yᵢ₋₁ + ½ℓ sin φᵢ₋₁),   i = 1..N,
                                   where the end of bar 0 is the origin

Symbols: q = (x₁, y₁, φ₁, x₂, …, φ_N), centres of mass and angles of the bars; n = 3N coordinates, 2N
constraints. The whole chain has the length L and the mass μ, a bar ℓ = L/N, m = μ/N, J = mℓ²/12. Gravity γ.

Data: N = 10, L = 1, μ = 1, γ = 9.81; released from rest, horizontal, as drawn. It falls and cracks like a
whip; from then on the motion is chaotic. Reference: the solution at t = 1 (`REFERENCE`). The functions are
written with slices, so that their number of array operations does not depend on N.
"""

import itertools

import numpy as np

from holonome.mechanisms.example import Drawing, Example, Reference, with_reference
from holonome.problem.system import System


def bars(q):
    """Centres and angles of all bars: x, y, φ."""
    return q[0::3], q[1::3], q[2::3]


def half_bars(q, p):
    """From the centre of each bar to its end: the vectors ½ℓ (cos φ, sin φ)."""
    half = p.length / (len(q) // 3) / 2
    return half * np.cos(q[2::3]), half * np.sin(q[2::3])


def mass(q, p):
    links = len(q) // 3
    m = p.m / links
    return np.array([m, m, m * (p.length / links) ** 2 / 12] * links)


def force(q, p):
    links = len(q) // 3
    return np.array([0.0, -p.m / links * p.gravity, 0.0] * links)


def constraint(q, p):
    x, y, _ = bars(q)
    dx, dy = half_bars(q, p)
    begin, end = np.stack([x - dx, y - dy]), np.stack([x + dx, y + dy])
    gaps = np.concatenate([begin[:, :1], begin[:, 1:] - end[:, :-1]], axis=1)
    return gaps.T.ravel()


def potential(q, p):
    _, y, _ = bars(q)
    return p.m / len(y) * p.gravity * np.sum(y)


def points(q, p):
    x, y, _ = bars(q)
    dx, dy = half_bars(q, p)
    return {"O": (0.0, 0.0)} | {f"end{i + 1}": (x[i] + dx[i], y[i] + dy[i]) for i in range(len(x))}


def assemble(bars, angles) -> np.ndarray:
    """Coordinates from the vectors along the bars, as complex numbers, and their angles; velocities from the
    rates of both.
    """
    centres = np.cumsum(bars) - bars / 2
    return np.stack([centres.real, centres.imag, angles], axis=1).ravel()


ANGLES = np.array(
    [
        *(-2.4957330360889, -2.8082221103069, -3.4121657835681, -3.7202370217670, -3.3494490322774),
        *(-3.4254850817333, -2.6326065319604, -2.9469109623933, -2.6624249741355, -2.3726454361747),
    ]
)
RATES = np.array(
    [
        *(0.99636562285515, 9.9824003817032, 3.7275072216322, -1.1403184022445, -0.63297225475765),
        *(-8.4260202828639, -4.3237353011926, 4.2648526363682, -5.1322666453740, 0.98186813534500),
    ]
)
REFERENCE = Reference(
    t=1.0,
    q=assemble(0.1 * np.exp(1j * ANGLES), ANGLES),
    v=assemble(0.1j * RATES * np.exp(1j * ANGLES), RATES),
    digits=11,
    source="this project: extrapolation of order 18 in extended precision, in the angles of the bars",
)


@with_reference(REFERENCE)
def chain(*, links: int = 10, length: float = 1.0, m: float = 1.0, gravity: float = 9.81) -> Example:
    """Chain of equal bars, released from rest in the horizontal position.

    Parameters
    ----------
    links : int
        Number of bars.
    length, m, gravity : float
        Length and mass of the whole chain, acceleration of gravity.
    """
    if links < 1:
        raise ValueError(f"links = {links} must be at least 1.")
    number = np.arange(1, links + 1)
    ends = ["O", *(f"end{i}" for i in number)]
    return Example(
        name="chain",
        title=f"Hanging chain of {links} bars",
        system=System(
            mass,
            force,
            constraint,
            potential=potential,
            parameters={"length": length, "m": m, "gravity": gravity},
            names=[f"{coordinate}{i}" for i in number for coordinate in ("x", "y", "phi")],
            constraint_names=[f"joint {i} {direction}" for i in number for direction in ("x", "y")],
            name="chain",
        ),
        t_span=(0.0, 1.0),
        q0=assemble(np.full(links, length / links), np.zeros(links)),
        v0=np.zeros(3 * links),
        source="classical",
        drawing=Drawing(points, links=list(itertools.pairwise(ends)), ground=["O"], traces=[ends[-1]]),
    )

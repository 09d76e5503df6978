"""Bennett linkage: four bars and four skew hinges that move although counting says they cannot.

       hinges along z₁ … z₄, sides of the lengths a, b, a, b normal to them, twists α, β, α, β

       a / sin α = b / sin β          tan θ₁/2 tan θ₂/2 = sin ½(β + α) / sin ½(β − α)
                                      θ₃ = −θ₁,   θ₄ = −θ₂

Four hinges in a loop of three bodies and the ground: 3·6 − 4·5 = −2 degrees of freedom by counting, one in
truth; three of the six rows of the hinge that closes the loop follow from the others. Angles are Denavit's
and Hartenberg's: turn by θ about z, go a along x, turn by α about x.

Data: a = 0.8, α = 40°, β = 75°, b = a sin β / sin α; bars of 1 kg per metre, slender; gravity 9.81 along −y
of the first hinge. Start: θ₁ = 1, θ₁′ = 4. Source: G. T. Bennett, "A new mechanism", Engineering 76 (1903)
777–778.
"""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from holonome.bodies.assembly import near
from holonome.bodies.mechanism import Mechanism
from holonome.bodies.shapes import Rod
from holonome.mechanisms.example import Example

THIN = 1e-3
"""Moment of inertia of a bar about its own axis, as a share of that across it."""


def closed_chain(m: Mechanism, lengths: Sequence[float], twists: Sequence[float], density: float) -> None:
    """Bars in a loop, the first fixed to the ground; joint "k" turns bar k against the one before.

    Each bar lies along its x-axis; its hinges are "in", along z, and "out", which is turned by the twist.
    """
    count = len(lengths)
    ends = [Rotation.from_rotvec([twist, 0, 0]) for twist in twists]
    bars = []
    for k, (a, end) in enumerate(zip(lengths[1:], ends[1:], strict=True), 2):
        mass = density * a
        inertia = mass * a**2 / 12 * np.array([THIN, 1, 1])
        points = {"in": (0, 0, 0), "out": ((a, 0, 0), end)}
        shape = Rod((0, 0, 0), (a, 0, 0), 0.02 * max(lengths))
        bars.append(m.body(f"bar {k}", mass, inertia, center=(a / 2, 0, 0), points=points, shape=shape))
    first = m.ground.at(lengths[0], 0, 0, rotation=ends[0])
    outs = [first, *(bar["out"] for bar in bars)]
    ins = [*(bar["in"] for bar in bars), m.ground.at(0, 0, 0)]
    for k, (out, inward) in enumerate(zip(outs, ins, strict=True), 2):
        m.revolute(str(k if k <= count else 1), out, inward)


def bennett_linkage(
    *,
    a: float = 0.8,
    alpha: float = np.radians(40.0),
    beta: float = np.radians(75.0),
    theta: float = 1.0,
    omega: float = 4.0,
    gravity: float = 9.81,
) -> Example:
    """Bennett's linkage of four bars and four skew hinges.

    Parameters
    ----------
    a : float
        Length of the ground and the bar opposite; that of the others follows.
    alpha, beta : float
        The twists of these two and of the others.
    theta, omega : float
        Angle and angular velocity of the first hinge at the start.
    gravity : float
        Acceleration of gravity.
    """
    b = a * np.sin(beta) / np.sin(alpha)
    ratio = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    phi = 2 * np.arctan2(ratio * np.cos(theta / 2), np.sin(theta / 2))
    m = Mechanism("bennett_linkage", gravity=(0, -gravity, 0))
    closed_chain(m, (a, b, a, b), (alpha, beta, alpha, beta), density=1.0)
    m.trace(m.bodies["bar 3"]["in"], m.bodies["bar 3"]["out"])
    return Example(
        name="bennett_linkage",
        title="Bennett linkage of four skew hinges",
        system=m,
        t_span=(0.0, 5.0),
        start={"1": theta, "2": near(phi), "3": near(-theta), "4": near(-phi)},
        speed={"1": omega},
        source="Bennett, 1903",
    )

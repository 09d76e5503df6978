"""Arm of seven hinges that alternate between twisting and bending, as industrial robots have it.

       link k = 1 … 7: a hinge about its own z-axis; the next one is at pₖ₊₁, turned by +90° or −90° about x

       p₁ = (0, 0, 0.2),   pₖ = (0, 0.25, 0) for even k,   pₖ = (0, 0, 0.18 + 0.02 k) for k = 3, 5, 7

       torque at joint k:   τₖ − d qₖ′

Data: masses 3, 2.7, 2.4, … 1.2; centres (0.01, 0.02, 0.1); moments 0.031, 0.031, 0.006 with all products
0.001, as entries of the tensor about the centre; damping d = 0.5, τ = 0; gravity 9.81 along −z. Start: q =
0.1, 0.2, … 0.7 at rest, from where it falls. A test case of this project, whose accelerations for d = 0 have
been computed by several programs.
"""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from holonome.bodies.mechanism import Mechanism
from holonome.mechanisms.example import Example

LINKS = 7
INERTIA = [[0.031, 0.001, 0.001], [0.001, 0.031, 0.001], [0.001, 0.001, 0.006]]


def place(k: int) -> tuple[tuple[float, float, float], Rotation]:
    """Where joint k is on the link before, and how it is turned."""
    if k == 1:
        return (0.0, 0.0, 0.2), Rotation.identity()
    if k % 2 == 0:
        return (0.0, 0.25, 0.0), Rotation.from_euler("x", 90, degrees=True)
    return (0.0, 0.0, 0.18 + 0.02 * k), Rotation.from_euler("x", -90, degrees=True)


def seven_joint_arm(
    *,
    angles: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
    rates: Sequence[float] = (0.0,) * LINKS,
    torques: Sequence[float] = (0.0,) * LINKS,
    damping: float = 0.5,
    gravity: float = 9.81,
) -> Example:
    """Arm of seven hinges.

    Parameters
    ----------
    angles, rates : seven numbers
        Of the joints, at the start.
    torques : seven numbers
        At the joints, constant.
    damping : float
        Torque per angular velocity in each joint.
    gravity : float
        Acceleration of gravity.
    """
    parameters = {"torque": list(torques), "damping": damping}
    m = Mechanism("seven_joint_arm", gravity=(0, 0, -gravity), parameters=parameters)
    before = m.ground
    for k in range(1, LINKS + 1):
        points = {"in": (0, 0, 0), "out": place(k + 1) if k < LINKS else (0, 0.1, 0)}
        link = m.body(f"link {k}", 3.3 - 0.3 * k, INERTIA, center=(0.01, 0.02, 0.1), points=points)
        where, turn = place(k)
        m.revolute(f"q{k}", before.at(*where, rotation=turn), link["in"])
        m.torque(f"tau{k}", f"q{k}", law=lambda rate, p, k=k: p.torque[k - 1] - p.damping * rate)
        before = link
    m.trace(before["out"])
    return Example(
        name="seven_joint_arm",
        title="Arm of seven hinges",
        system=m,
        t_span=(0.0, 5.0),
        start={f"q{k}": angle for k, angle in enumerate(np.asarray(angles, float).tolist(), 1)},
        speed={f"q{k}": rate for k, rate in enumerate(np.asarray(rates, float).tolist(), 1)},
        source="this project",
    )

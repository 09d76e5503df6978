"""Rows between the coordinates of joints: drives, gears, racks, belts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from holonome.bodies.joint import Joint
from holonome.bodies.kinematics import Kinematics
from holonome.bodies.load import Law, Scene, Wrench, joint_wrenches


class Coupling:
    """Σ cᵢ θᵢ = law(t, p), with θᵢ an angle or a displacement of a joint.

    Attributes
    ----------
    name, what
        What the user calls it, and what it is.
    terms
        Joints, numbers of their coordinates, and the coefficients.
    law
        The right-hand side.
    radii
        Of a belt's pulleys, for its picture.
    """

    def __init__(self, name: str, what: str, terms: Sequence[tuple[Joint, int, ca.SX]], law: Law) -> None:
        self.name, self.what, self.terms, self.law = name, what, tuple(terms), law
        self.radii: tuple[ca.SX, ca.SX] | None = None

    def residual(self, kinematics: Kinematics, t: ca.SX, p: Any) -> ca.SX:
        """What vanishes."""
        parts = [c * kinematics.coordinates(joint)[which] for joint, which, c in self.terms]
        return sum(parts, ca.SX(0)) - self.law({"t": t, "p": p})

    def efforts(self, multiplier: ca.SX) -> list[tuple[Joint, int, ca.SX]]:
        """The torque or force on each of its coordinates."""
        return [(joint, which, -c * multiplier) for joint, which, c in self.terms]

    def wrenches(self, scene: Scene, multiplier: ca.SX) -> list[Wrench]:
        found = []
        for joint, which, value in self.efforts(multiplier):
            values = [ca.SX(0)] * len(joint.coordinates)
            values[which] = value
            found += joint_wrenches(scene, joint, values)
        return found

    def __repr__(self) -> str:
        return f"{self.what} {self.name!r} of {', '.join(joint.name for joint, _, _ in self.terms)}"

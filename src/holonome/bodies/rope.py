"""Ropes over pulleys.

In the plane, with radii ρ that are positive where the rope runs counterclockwise, it leaves a pulley at c for
the next along u, touching both, with n = (u_y, −u_x) on its right:

    c₂ + ρ₂ n − c₁ − ρ₁ n = ℓ u,      ℓ² = |c₂ − c₁|² − (ρ₁ − ρ₂)²

Its length is the sum of these ℓ and of |ρ| α, with α the angle from u to the next u.  A rope that does not
slip moves as fast as the rim where it touches, and along a span with one speed: u · (V₂ − V₁) = 0 for the
points of both pulleys that it touches.  The sum of these rows is the rate of the length, so the last is left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import casadi as ca
import numpy as np

from holonome.bodies.body import Point
from holonome.bodies.geometry import Frame, cross, symbolic
from holonome.bodies.joint import Joint, Row

_MIDDLE = 0.75 * np.pi
"""Angles about which a rope goes round a pulley lie within half a turn of this."""


class Span(NamedTuple):
    """Between two pulleys: its length and direction, and the arms from their centres to where it touches."""

    length: ca.SX
    direction: ca.SX
    arms: tuple[ca.SX, ca.SX]


class Rope(Joint):
    """An inextensible rope from point to point, over pulleys about those between, which stays taut.

    Attributes
    ----------
    radii
        For each point, zero at the ends.
    slips
        Whether it slides over pulleys without turning them.
    """

    what = "rope"

    def __init__(
        self,
        name: str,
        points: Sequence[Point],
        length: object,
        radii: Sequence[ca.SX] = (),
        slips: bool = True,
    ) -> None:
        self.name, self.points, self.length = name, tuple(points), symbolic(length)
        self.radii = (ca.SX(0), *radii, ca.SX(0)) if radii else (ca.SX(0),) * len(self.points)
        self.slips = slips

    def rows(self, *frames: Frame) -> list[Row]:
        spans = self.spans(*frames)
        length = sum((span.length for span in spans), ca.SX(0))
        for radius, (before, after) in zip(self.radii[1:-1], pairwise(spans), strict=True):
            if not radius.is_zero():
                length += radius * _turn(before.direction, after.direction, radius)
        return [Row("length", length - self.length)]

    def velocity_rows(self, *frames: Frame) -> list[Row]:
        if self.slips:
            return []
        found = []
        for k, span in enumerate(self.spans(*frames)[:-1]):
            first, second = (
                end.v + cross(end.w, arm) for end, arm in zip(frames[k : k + 2], span.arms, strict=True)
            )
            found.append(Row(f"span {k + 1}", ca.dot(span.direction, second - first)))
        return found

    def tensions(self, multipliers: ca.SX) -> ca.SX:
        """In the whole rope, or in each span where it turns its pulleys, from the multipliers of its rows."""
        if self.slips:
            return multipliers[0]
        return multipliers[0] + ca.vertcat(multipliers[1:], 0)

    def spans(self, *frames: Frame) -> list[Span]:
        pairs = zip(pairwise(frames), pairwise(self.radii), strict=True)
        return [_span(b.x - a.x, *radii) for (a, b), radii in pairs]


def _span(d: ca.SX, first: ca.SX, second: ca.SX) -> Span:
    if first.is_zero() and second.is_zero():
        length = ca.norm_2(d)
        return Span(length, d / length, (ca.SX(3, 1), ca.SX(3, 1)))
    square, across = ca.dot(d, d), first - second
    length = ca.sqrt(square - across**2)
    u = ca.vertcat(length * d[0] - across * d[1], length * d[1] + across * d[0], 0) / square
    right = ca.vertcat(u[1], -u[0], 0)
    return Span(length, u, (first * right, second * right))


def _turn(u: ca.SX, after: ca.SX, radius: ca.SX) -> ca.SX:
    """The angle from one direction to another, in the sense in which the rope goes round."""
    sense = ca.sign(radius)
    angle = sense * ca.atan2(u[0] * after[1] - u[1] * after[0], ca.dot(u, after))
    return sense * (_MIDDLE + ca.atan2(ca.sin(angle - _MIDDLE), ca.cos(angle - _MIDDLE)))

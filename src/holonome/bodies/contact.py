"""Joints that are contacts: points on curves and surfaces, and wheels, discs and balls that roll."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from holonome.bodies.body import Point
from holonome.bodies.geometry import Frame, cross, symbolic
from holonome.bodies.joint import Joint, Row


class OnGuide(Joint):
    """Point b stays on a curve or surface that is fixed to a: functions of its coordinates in the axes of a
    vanish.  One function makes a curve in the plane and a surface in space; two make a curve in space.
    """

    what = "point on guide"

    def __init__(self, name: str, a: Point, b: Point, guide: Callable[[ca.SX], ca.SX]) -> None:
        self.name, self.points, self.guide = name, (a, b), guide
        self.dimension = a.body.dimension

    def rows(self, a: Frame, b: Frame) -> list[Row]:
        values = self.guide((a.R.T @ (b.x - a.x))[: self.dimension])
        names = ["guide"] if values.numel() == 1 else [f"guide {k + 1}" for k in range(values.numel())]
        return [Row(name, values[k]) for k, name in enumerate(names)]


class Rolling(Joint):
    """A wheel, disc or ball with its centre in b, on a line or plane through a, without slipping.

    In the plane the line is the x-axis of a, and the wheel is above it.  In space the plane is that of the x-
    and y-axes of a.  A disc turns about the z-axis of b, and its lowest point touches the plane.
    """

    def __init__(
        self, name: str, kind: str, a: Point, b: Point, turns: tuple[np.ndarray, ...], radius: object
    ):
        self.name, self.what, self.points, self.turns = name, f"rolling {kind}", (a, b), turns
        self.kind, self.radius = kind, symbolic(radius)

    def _normal_and_contact(self, a: Frame, b: Frame) -> tuple[ca.SX, ca.SX]:
        """The normal of the line or plane, and the contact as seen from the centre."""
        if self.kind == "wheel":
            return a.axis(1), -self.radius * a.axis(1)
        n, u = a.axis(2), b.axis(2)
        if self.kind == "ball":
            return n, -self.radius * n
        down = ca.dot(n, u) * u - n
        return n, self.radius * down / ca.norm_2(down)

    def touches(self, a: Frame, b: Frame) -> ca.SX:
        """Where it touches the line or plane."""
        return b.x + self._normal_and_contact(a, b)[1]

    def rows(self, a: Frame, b: Frame) -> list[Row]:
        n, contact = self._normal_and_contact(a, b)
        return [Row("contact", ca.dot(n, b.x + contact - a.x))]

    def velocity_rows(self, a: Frame, b: Frame) -> list[Row]:
        _, contact = self._normal_and_contact(a, b)
        slip = b.v + cross(b.w, contact) - a.v - cross(a.w, b.x + contact - a.x)
        axes = "x" if self.kind == "wheel" else "xy"
        return [Row(f"slip {axis}", ca.dot(slip, a.axis(k))) for k, axis in enumerate(axes)]

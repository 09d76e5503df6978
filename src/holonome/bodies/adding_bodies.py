"""Adding bodies to a mechanism: rigid ones, from masses or from shapes, and points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import shown
from holonome.bodies.body import (
    Body,
    Numbers,
    Point,
    inertia_of,
    mass_of,
    points_of,
    require_physical,
    vector,
)
from holonome.bodies.parts import Parts
from holonome.bodies.shapes import Shape
from holonome.errors import ModelError


class AddingBodies(Parts):
    """The methods of a mechanism that add bodies."""

    def body(
        self,
        name: str,
        mass: Numbers | None = None,
        inertia: Numbers | None = None,
        *,
        center: Numbers | None = None,
        points: Mapping[str, Any] | None = None,
        shape: Shape | None = None,
        density: Numbers | None = None,
    ) -> Body:
        """Add a rigid body.

        Parameters
        ----------
        name : str
            What it is called everywhere.
        mass : number
            Its mass.
        inertia : number, three numbers or 3 × 3 array
            Moment of inertia about the centre of mass; in space the principal moments along the axes of the
            body, or the tensor in these axes.
        center : numbers, optional
            The centre of mass in the axes of the body; the origin by default.
        points : dict, optional
            Named points in the axes of the body; one with axes of its own is a pair of coordinates and a
            ``scipy.spatial.transform.Rotation``.
        shape : Shape, optional
            One of :mod:`holonome.shapes`, to draw; with ``density`` also mass, centre and inertia, and with
            ``mass`` alone centre and inertia.
        density : number, optional
            Mass by volume of the shape.
        """
        self._new(name)
        mass, inertia, center = self._inertia(name, mass, inertia, center, shape, density)
        found: dict[str, Point] = {}
        body = Body(name, self.dimension, mass, inertia, center, found, shape)
        found |= points_of(name, {} if points is None else points, self.dimension, body)
        places = [point.position for point in found.values()]
        self._require_own(name, mass, inertia, center, *places)
        if not inertia.is_constant():
            J = ca.Function("inertia", [self._p], [ca.densify(inertia)])(self.parameters.flat)
            require_physical(name, np.array(J), self.dimension)
        self.bodies[name] = body
        return body

    def _inertia(
        self, name: str, mass: Any, inertia: Any, center: Any, shape: Any, density: Any
    ) -> tuple[ca.SX, ca.SX, ca.SX]:
        if shape is not None and not isinstance(shape, Shape):
            raise ModelError(f"{name}.shape: {shown(shape)}; give one of hn.shapes, such as hn.shapes.Box")
        if density is not None:
            if shape is None or mass is not None or inertia is not None or center is not None:
                raise ModelError(
                    f"{name}.density: it goes with a shape and takes the place of mass, inertia and center"
                )
            return self._of_shape(self._mass(f"{name}.density", density), shape)
        if mass is None:
            raise ModelError(f"{name}.mass: missing; give a number, or a shape and its density")
        if inertia is None and shape is not None and center is None:
            return self._of_shape(self._mass(f"{name}.mass", mass) / shape.volume, shape)
        if inertia is None:
            raise ModelError(
                f"{name}.inertia: missing; give the moment of inertia about the centre of mass, or make it a "
                "point mass, m.point_mass"
            )
        middle = vector(
            f"{name}.center", (0.0,) * self.dimension if center is None else center, self.dimension
        )
        return self._mass(f"{name}.mass", mass), inertia_of(name, inertia, self.dimension), middle

    def _of_shape(self, density: ca.SX, shape: Shape) -> tuple[ca.SX, ca.SX, ca.SX]:
        J = density * ca.SX(ca.DM(shape.unit_inertia))
        if self.dimension == 2:
            J = ca.diag(ca.vertcat(0, 0, J[2, 2]))
        return density * shape.volume, ca.sparsify(J), ca.SX(ca.DM(shape.center))

    def _mass(self, role: str, value: Any) -> ca.SX:
        found = mass_of(role, value)
        return found if found.is_constant() else self._not_negative(role, found)

    def point_mass(self, name: str, mass: Numbers) -> Body:
        """Add a body that is a point, which has no rotation; its point is called after it."""
        self._new(name)
        points: dict[str, Point] = {}
        body = Body(
            name,
            self.dimension,
            self._mass(f"{name}.mass", mass),
            ca.SX(3, 3),
            ca.SX(3, 1),
            points,
            rotates=False,
        )
        points[name] = Point(body, name, ca.SX(3, 1))
        self.bodies[name] = body
        return body

"""Rigid bodies, the points on them, and whether their inertia makes sense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from holonome.arguments import real_array, shown
from holonome.bodies.geometry import IDENTITY, ZERO, constant, symbolic
from holonome.bodies.shapes import Shape
from holonome.errors import ModelError
from holonome.tracing.values import has_traced

Numbers = Any
"""Numbers, or traced values such as ``m.p.length / 2``."""


@dataclass(frozen=True, eq=False)
class Point:
    """A point on a body, perhaps with axes of its own, in which the axes of joints and forces are given.

    Attributes
    ----------
    body : Body
        What it is fixed to.
    name : str
        Its name on the body, or its coordinates.
    position : SX
        Where it is, in the axes of the body.
    turn : array
        Rotation matrix from its axes to those of the body.
    """

    body: Body
    name: str
    position: ca.SX
    turn: np.ndarray = field(default_factory=lambda: np.eye(3))

    def __repr__(self) -> str:
        return f"{self.body.name}[{self.name!r}]"


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body with its own axes; ``body["A"]`` is the point that was given as A, and
    ``body.at(0.1, 0.2)`` any other.
    """

    name: str
    dimension: int
    mass: ca.SX
    inertia: ca.SX  # 3 × 3, about the centre of mass, in the axes of the body
    center: ca.SX
    points: dict[str, Point] = field(default_factory=dict)
    shape: Shape | None = None
    rotates: bool = True
    ground: bool = False

    def __getitem__(self, name: str) -> Point:
        if not isinstance(name, str) or name not in self.points:
            there = ", ".join(self.points) or "none"
            raise ModelError(f"{self.name}: there is no point {name!r}; its points are {there}")
        return self.points[name]

    def at(self, *position: Numbers, rotation: Rotation | None = None) -> Point:
        """A point by its coordinates in the axes of the body.

        Parameters
        ----------
        position : numbers
            Two in the plane, three in space.
        rotation : scipy.spatial.transform.Rotation, optional
            Turns the axes of the body into those of the point.
        """
        given: Any = position[0] if len(position) == 1 else position
        if not self.rotates:
            raise ModelError(f"{self.name}.at: a point mass is its only point; give {self.name!r} itself")
        x = vector(f"{self.name}.at", given, self.dimension)
        return Point(self, _shown(given), x, _turn(f"{self.name}.at", rotation, self.dimension))

    def __repr__(self) -> str:
        return f"Body({self.name!r})"


def vector(argument: str, values: Numbers, dimension: int) -> ca.SX:
    """Two or three coordinates, which may be traced, as a vector in space."""
    try:
        array = np.asarray(values, dtype=object).ravel()
        if not has_traced(values):
            array = real_array(values)
            if not np.all(np.isfinite(array)):
                raise ValueError
        if array.shape != (dimension,):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ModelError(
            f"{argument}: {shown(values)}; give {('two', 'three')[dimension - 2]} finite numbers, as this "
            f"mechanism is in {('the plane', 'space')[dimension - 2]}"
        ) from None
    column = symbolic(array)
    return column if dimension == 3 else ca.vertcat(column, 0)


def points_of(body: str, points: Any, dimension: int, owner: Body) -> dict[str, Point]:
    """Named points from what the user gave: coordinates, or (coordinates, Rotation)."""
    if not isinstance(points, Mapping) or not all(isinstance(name, str) for name in points):
        raise ModelError(f"{body}.points: {shown(points)}; give a dict of names and coordinates")
    found = {}
    for name, given in points.items():
        rotation = None
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Rotation):
            given, rotation = given
        argument = f"{body}.points[{name!r}]"
        found[name] = Point(
            owner, name, vector(argument, given, dimension), _turn(argument, rotation, dimension)
        )
    return found


def _turn(argument: str, rotation: Any, dimension: int) -> np.ndarray:
    if rotation is None:
        return np.eye(3)
    if not isinstance(rotation, Rotation) or not rotation.single:
        raise ModelError(f"{argument}: {shown(rotation)}; give one scipy.spatial.transform.Rotation")
    R = np.array(ca.DM(constant(rotation.as_matrix())))
    if dimension == 2 and not np.allclose(R[2], (0, 0, 1), rtol=0, atol=1e-12):
        raise ModelError(f"{argument}: in the plane axes turn about z only; this rotation turns z as well")
    return R


def mass_of(role: str, mass: Numbers) -> ca.SX:
    """A mass or a density, checked where it is a number."""
    if has_traced(mass):
        return symbolic(mass)
    try:
        value = float(real_array(mass))
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{role}: {shown(mass)}; give a number") from None
    if not 0 <= value < np.inf:
        raise ModelError(f"{role}: {value:g}; give a number that is not negative")
    return ca.SX(value)


def inertia_of(body: str, inertia: Numbers, dimension: int) -> ca.SX:
    """The tensor of inertia about the centre of mass: in the plane from the moment about z, in space from
    three principal moments along the axes of the body or from a full tensor.
    """
    expected = (
        "the moment of inertia about the centre of mass, a number"
        if dimension == 2
        else "three principal moments along the body's axes, or a symmetric 3 × 3 tensor"
    )
    try:
        array = np.asarray(inertia, dtype=object) if has_traced(inertia) else real_array(inertia)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{body}.inertia: {shown(inertia)}; give {expected}") from None
    if dimension == 2 and array.shape == ():
        tensor = np.diag(np.array([0, 0, array[()]]))
    elif dimension == 3 and array.shape == (3,):
        tensor = np.diag(array)
    elif dimension == 3 and array.shape == (3, 3):
        tensor = array
    else:
        raise ModelError(f"{body}.inertia: {shown(inertia)}; give {expected}")
    if tensor.dtype == object:
        return symbolic(tensor) if dimension == 3 else _about_z(array[()])
    require_physical(body, tensor, dimension)
    return ca.sparsify(ca.SX(ca.DM(tensor)))


def _about_z(moment: Numbers) -> ca.SX:
    tensor = ca.SX(3, 3)
    tensor[2, 2] = symbolic(moment)
    return tensor


def require_physical(body: str, tensor: np.ndarray, dimension: int) -> None:
    """A tensor of inertia is symmetric, has no negative moment, and none beyond the sum of the others."""
    size = float(np.max(np.abs(tensor), initial=0.0))
    if not np.all(np.isfinite(tensor)):
        raise ModelError(f"{body}.inertia: {tensor.tolist()}; give finite numbers")
    if np.max(np.abs(tensor - tensor.T)) > 1e-12 * size:
        raise ModelError(f"{body}.inertia: must be symmetric; this is {tensor.tolist()}")
    moments = np.linalg.eigvalsh(tensor)
    if moments[0] < -1e-12 * size:
        raise ModelError(f"{body}.inertia: no moment of inertia may be negative; these are {moments[0]:g}, …")
    if dimension == 3 and moments[2] > (moments[0] + moments[1]) * (1 + 1e-9) + 1e-300:
        raise ModelError(
            f"{body}.inertia: no body has the principal moments {moments[0]:g}, {moments[1]:g}, "
            f"{moments[2]:g}, as none can be larger than the sum of the other two; they must be taken about "
            "the centre of mass, without Steiner's terms missing or doubled"
        )


def new_ground(dimension: int) -> Body:
    """What everything stands on."""
    body = Body("ground", dimension, ca.SX(0), ca.SX(3, 3), ZERO, ground=True)
    body.points["origin"] = Point(body, "origin", ZERO)
    return body


def combined(parts: list[tuple[Body, ca.SX, ca.SX]]) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Mass, centre and inertia of bodies that are fixed to each other, each with the rotation and the origin
    that place it in common axes.
    """
    placed = [
        (body.mass, R @ body.center + x, body.inertia if R is IDENTITY else R @ body.inertia @ R.T)
        for body, R, x in parts
    ]
    if len(placed) == 1:
        return placed[0]
    mass = sum((m for m, _, _ in placed), ca.SX(0))
    total = ca.if_else(mass == 0, 1, mass) if not mass.is_constant() else (mass if float(mass) else ca.SX(1))
    center = sum((m * c for m, c, _ in placed), ZERO) / total
    inertia = ca.SX(3, 3)
    for m, c, J in placed:
        d = c - center
        inertia += J + m * (ca.dot(d, d) * IDENTITY - d @ d.T)
    return mass, center, inertia


def _shown(position: Numbers) -> str:
    parts = [f"{x:g}" if isinstance(x, (int, float)) else "…" for x in np.ravel(np.asarray(position, object))]
    return f"({', '.join(parts)})"

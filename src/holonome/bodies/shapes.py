"""Shapes of bodies: their mass, centre and inertia for a density, and what is drawn of them.

A shape is centred at the origin of the body's axes unless it says otherwise.  Each knows ``volume``,
``center`` and ``unit_inertia``, the inertia about the centre for a density of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holonome.arguments import real_array, shown
from holonome.errors import ModelError


class Shape:
    """Base class of all shapes."""

    volume: float
    center: np.ndarray
    unit_inertia: np.ndarray

    def outline(self) -> tuple[np.ndarray, list[tuple[int, ...]]]:
        """Corners, and the polygons between them, in the axes of the body."""
        raise NotImplementedError


def _positive(shape: object, **sizes: float) -> None:
    for name, size in sizes.items():
        if not isinstance(size, (int, float)) or isinstance(size, bool) or not 0 < size < np.inf:
            raise ModelError(f"{type(shape).__name__}.{name}: {shown(size)}; give a positive number")


@dataclass(frozen=True)
class Box(Shape):
    """A cuboid.

    Parameters
    ----------
    x, y, z : float
        Lengths of its edges.

    Examples
    --------
    >>> import holonome as hn
    >>> box = hn.shapes.Box(1.0, 2.0, 3.0)
    >>> box.volume, (box.unit_inertia[2, 2] * 12 / box.volume).round(12).item()
    (6.0, 5.0)
    """

    x: float
    y: float
    z: float

    def __post_init__(self) -> None:
        _positive(self, x=self.x, y=self.y, z=self.z)

    @property
    def volume(self) -> float:
        return self.x * self.y * self.z

    @property
    def center(self) -> np.ndarray:
        return np.zeros(3)

    @property
    def unit_inertia(self) -> np.ndarray:
        x, y, z = self.x**2, self.y**2, self.z**2
        return self.volume / 12 * np.diag([y + z, x + z, x + y])

    def outline(self) -> tuple[np.ndarray, list[tuple[int, ...]]]:
        signs = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
        faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        return signs * np.array([self.x, self.y, self.z]) / 2, faces


def Plate(x: float, y: float, thickness: float) -> Box:
    """A rectangular plate in the x-y plane.

    Examples
    --------
    >>> import holonome as hn
    >>> hn.shapes.Plate(2.0, 1.0, 0.1).volume
    0.2
    """
    return Box(x, y, thickness)


@dataclass(frozen=True)
class Sphere(Shape):
    """A ball.

    Examples
    --------
    >>> import holonome as hn
    >>> round(hn.shapes.Sphere(1.0).volume, 6)
    4.18879
    """

    radius: float

    def __post_init__(self) -> None:
        _positive(self, radius=self.radius)

    @property
    def volume(self) -> float:
        return 4 / 3 * np.pi * self.radius**3

    @property
    def center(self) -> np.ndarray:
        return np.zeros(3)

    @property
    def unit_inertia(self) -> np.ndarray:
        return 0.4 * self.volume * self.radius**2 * np.eye(3)

    def outline(self) -> tuple[np.ndarray, list[tuple[int, ...]]]:
        heights = np.cos(np.linspace(0, np.pi, 7))
        rings = [(self.radius * np.sqrt(1 - h * h), self.radius * h) for h in heights]
        return _revolved(rings)


@dataclass(frozen=True)
class Tube(Shape):
    """A hollow cylinder about an axis; a solid one for ``inner=0``.

    Parameters
    ----------
    radius, length : float
        Outer radius, and length.
    inner : float
        Inner radius.
    axis : "x", "y" or "z"
        Along which of the body's axes it lies.

    Examples
    --------
    >>> import holonome as hn
    >>> round(hn.shapes.Tube(0.5, 2.0, inner=0.4).volume, 6)
    0.565487
    """

    radius: float
    length: float
    inner: float = 0.0
    axis: str = "z"

    def __post_init__(self) -> None:
        _positive(self, radius=self.radius, length=self.length)
        if not isinstance(self.inner, (int, float)) or not 0 <= self.inner < self.radius:
            raise ModelError(f"Tube.inner: {shown(self.inner)}; give a number from 0 to below the radius")
        if self.axis not in ("x", "y", "z"):
            raise ModelError(f"Tube.axis: {shown(self.axis)}; give 'x', 'y' or 'z'")

    @property
    def volume(self) -> float:
        return np.pi * (self.radius**2 - self.inner**2) * self.length

    @property
    def center(self) -> np.ndarray:
        return np.zeros(3)

    @property
    def unit_inertia(self) -> np.ndarray:
        radii = self.radius**2 + self.inner**2
        along, across = radii / 2, (3 * radii + self.length**2) / 12
        moments = np.full(3, across)
        moments["xyz".index(self.axis)] = along
        return self.volume * np.diag(moments)

    def outline(self) -> tuple[np.ndarray, list[tuple[int, ...]]]:
        half = self.length / 2
        corners, faces = _revolved([(self.inner, half), (self.radius, half), (self.radius, -half)])
        return np.roll(corners, "xyz".index(self.axis) + 1, axis=1), faces


def Cylinder(radius: float, length: float, axis: str = "z") -> Tube:
    """A solid cylinder.

    Examples
    --------
    >>> import holonome as hn
    >>> hn.shapes.Cylinder(1.0, 2.0).unit_inertia[2, 2] / hn.shapes.Cylinder(1.0, 2.0).volume
    0.5
    """
    return Tube(radius, length, 0.0, axis)


@dataclass(frozen=True)
class Rod(Shape):
    """A round rod between two points of the body.

    Parameters
    ----------
    start, end : three numbers, two in the plane
        Its ends, in the axes of the body.
    radius : float
        Its radius.

    Examples
    --------
    >>> import holonome as hn
    >>> hn.shapes.Rod((0, 0, 0), (2, 0, 0), radius=0.01).center
    array([1., 0., 0.])
    """

    start: Sequence[float]
    end: Sequence[float]
    radius: float

    def __post_init__(self) -> None:
        _positive(self, radius=self.radius)
        for name in ("start", "end"):
            try:
                point = real_array(getattr(self, name))
                if point.shape not in ((2,), (3,)) or not np.all(np.isfinite(point)):
                    raise ValueError
            except (TypeError, ValueError, OverflowError):
                raise ModelError(
                    f"Rod.{name}: {shown(getattr(self, name))}; give two or three numbers"
                ) from None
            object.__setattr__(self, name, tuple(np.append(point, np.zeros(3 - point.size)).tolist()))
        if np.allclose(self.start, self.end, atol=0.0):
            raise ModelError("Rod.end: the same as its start; give two different points")

    @property
    def _axis(self) -> tuple[np.ndarray, float]:
        d = np.subtract(self.end, self.start)
        length = float(np.linalg.norm(d))
        return d / length, length

    @property
    def volume(self) -> float:
        return np.pi * self.radius**2 * self._axis[1]

    @property
    def center(self) -> np.ndarray:
        return np.add(self.start, self.end) / 2

    @property
    def unit_inertia(self) -> np.ndarray:
        u, length = self._axis
        along, across = self.radius**2 / 2, (3 * self.radius**2 + length**2) / 12
        return self.volume * (across * np.eye(3) + (along - across) * np.outer(u, u))

    def outline(self) -> tuple[np.ndarray, list[tuple[int, ...]]]:
        from holonome.bodies.geometry import frame_along

        u, length = self._axis
        corners, faces = _revolved([(self.radius, length / 2), (self.radius, -length / 2)])
        return corners @ frame_along(u).T + self.center, faces


@dataclass(frozen=True, eq=False)
class Mesh(Shape):
    """A solid that a closed mesh of triangles bounds.

    Parameters
    ----------
    vertices : (k, 3) array
        The corners.
    triangles : (l, 3) array of int
        Three corners each, counterclockwise as seen from outside.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> corners = np.vstack([np.zeros(3), np.eye(3)])
    >>> tetrahedron = hn.shapes.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    >>> round(tetrahedron.volume * 6, 12), tetrahedron.center.round(12).tolist()
    (1.0, [0.25, 0.25, 0.25])
    """

    vertices: np.ndarray
    triangles: np.ndarray

    def __post_init__(self) -> None:
        try:
            vertices, triangles = real_array(self.vertices), np.array(self.triangles)
            fits = vertices.ndim == 2 and vertices.shape[1] == 3 and np.all(np.isfinite(vertices))
            fits = fits and triangles.ndim == 2 and triangles.shape[1] == 3 and triangles.dtype.kind in "iu"
            if not fits or triangles.min() < 0 or triangles.max() >= len(vertices):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise ModelError(
                "Mesh: give vertices of shape (k, 3) and triangles of shape (l, 3), numbers of vertices"
            ) from None
        edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
        there = {tuple(edge) for edge in edges.tolist()}
        if len(there) < len(edges) or any((j, i) not in there for i, j in there):
            raise ModelError(
                "Mesh.triangles: the mesh is not closed, or its triangles do not all turn the same way; "
                "every edge must belong to two triangles, once in each direction"
            )
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "triangles", triangles)
        if self.volume <= 0:
            raise ModelError("Mesh.triangles: inside out; list the corners counterclockwise from outside")

    def _moments(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Volume, first and second moments, from the tetrahedra between the origin and the triangles."""
        corners = self.vertices[self.triangles]
        volumes = np.linalg.det(corners) / 6
        sums = corners.sum(axis=1)
        first = volumes @ sums / 4
        second = np.einsum("k,ki,kj->ij", volumes, sums, sums)
        second = (second + np.einsum("k,kai,kaj->ij", volumes, corners, corners)) / 20
        return float(volumes.sum()), first, second

    @property
    def volume(self) -> float:
        return self._moments()[0]

    @property
    def center(self) -> np.ndarray:
        volume, first, _ = self._moments()
        return first / volume

    @property
    def unit_inertia(self) -> np.ndarray:
        volume, first, second = self._moments()
        second = second - np.outer(first, first) / volume
        return np.trace(second) * np.eye(3) - second

    def outline(self) -> tuple[np.ndarray, list[tuple[int, ...]]]:
        return self.vertices, [tuple(face) for face in self.triangles.tolist()]


def _revolved(
    profile: Sequence[tuple[float, float]], sides: int = 16
) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """A surface of revolution about z through rings of some radius and height."""
    angles = np.arange(sides) * 2 * np.pi / sides
    corners = np.array([[r * np.cos(a), r * np.sin(a), h] for r, h in profile for a in angles])
    faces: list[tuple[int, ...]] = []
    for ring in range(len(profile) - 1):
        begin, below = ring * sides, (ring + 1) * sides
        faces += [
            (begin + i, below + i, below + (i + 1) % sides, begin + (i + 1) % sides) for i in range(sides)
        ]
    faces.append(tuple(range(sides)))
    faces.append(tuple(range(len(corners) - 1, len(corners) - sides - 1, -1)))
    return corners, faces

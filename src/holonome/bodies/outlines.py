"""Outlines of bodies in pictures: convex hulls of points, and sections of shapes in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.bodies.shapes import Box, Rod, Shape, Sphere, Tube

_FLAT = 1e-6


def in_line(places: np.ndarray) -> tuple[int, int] | None:
    """The two outermost of points in one line; None if they are not in line."""
    around = places - places.mean(axis=0)
    _, lengths, axes = np.linalg.svd(around)
    if lengths.size > 1 and lengths[1] > _FLAT * lengths[0]:
        return None
    along = around @ axes[0]
    return int(np.argmin(along)), int(np.argmax(along))


def coplanar(places: np.ndarray) -> np.ndarray | None:
    """Two coordinates of each point in their common plane; None if there is none."""
    around = places - places.mean(axis=0)
    _, lengths, axes = np.linalg.svd(around, full_matrices=False)
    if lengths.size > 2 and lengths[2] > _FLAT * lengths[0]:
        return None
    return around @ axes[:2].T


def hull(points: np.ndarray) -> list[int]:
    """Numbers of the corners of the convex hull of points in the plane, counterclockwise."""
    order = np.lexsort((points[:, 1], points[:, 0])).tolist()

    def turn(i: int, j: int, k: int) -> float:
        (ax, ay), (bx, by) = points[j] - points[i], points[k] - points[i]
        return ax * by - ay * bx

    def half(numbers: list[int]) -> list[int]:
        found: list[int] = []
        for k in numbers:
            while len(found) > 1 and turn(found[-2], found[-1], k) <= 0:
                found.pop()
            found.append(k)
        return found[:-1]

    return half(order) + half(order[::-1])


def section(shape: Shape) -> tuple[str, Any]:
    """A shape as seen along z: ("circles", radii), ("bar", two ends) or ("outline", corners)."""
    if isinstance(shape, Sphere):
        return "circles", [shape.radius]
    if isinstance(shape, Tube) and shape.axis == "z":
        return "circles", [shape.radius, *([shape.inner] if shape.inner else [])]
    if isinstance(shape, Rod) and not np.allclose(shape.start[:2], shape.end[:2]):
        return "bar", [shape.start[:2], shape.end[:2]]
    if isinstance(shape, Box):
        x, y = shape.x / 2, shape.y / 2
        return "outline", [(-x, -y), (x, -y), (x, y), (-x, y)]
    corners = np.asarray(shape.outline()[0], dtype=float)[:, :2]
    return "outline", corners[hull(corners)]

"""The mesh of a window, on which the subsystems exchange coupling forces and motions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from scipy.interpolate import CubicHermiteSpline

from holonome.locks import cached_property


class Motion(NamedTuple):
    """Positions, velocities and accelerations at the mesh points, each points × n."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


@dataclass(frozen=True, eq=False)
class Mesh:
    """Points of a window, scaled to 0 … 1, at which coupling forces are given; between them the forces are
    piecewise linear or, if ``smooth``, one polynomial.
    """

    points: np.ndarray
    smooth: bool

    @classmethod
    def uniform(cls, intervals: int) -> Mesh:
        return cls(np.linspace(0.0, 1.0, intervals + 1), False)

    @classmethod
    def lobatto(cls, count: int) -> Mesh:
        """Chebyshev–Lobatto points, the extrema of a Chebyshev polynomial."""
        return cls((1 - np.cos(np.pi * np.arange(count) / (count - 1))) / 2, True)

    def times(self, begin: float, end: float) -> np.ndarray:
        """The times of the points in a window."""
        t = begin + (end - begin) * self.points
        t[-1] = end
        return t

    def interpolation_matrix(self, at: np.ndarray) -> np.ndarray:
        """Maps values at the mesh points to values at other points of the window."""
        if self.smooth:
            return chebyshev.chebvander(2 * at - 1, self.points.size - 1) @ self.to_coefficients
        return np.column_stack([np.interp(at, self.points, unit) for unit in np.eye(self.points.size)])

    @cached_property
    def to_coefficients(self) -> np.ndarray:
        """Maps values at the mesh points to Chebyshev coefficients."""
        return np.linalg.inv(chebyshev.chebvander(2 * self.points - 1, self.points.size - 1))

    @cached_property
    def differentiation_matrix(self) -> np.ndarray:
        """Maps values of a polynomial at the mesh points to its derivatives, in a window of length 1."""
        vandermonde = chebyshev.chebvander(2 * self.points - 1, self.points.size - 2)
        return 2 * vandermonde @ chebyshev.chebder(self.to_coefficients)

    def polynomial(self, t: np.ndarray, values: np.ndarray) -> Callable[[float], np.ndarray]:
        """The polynomial through values at the mesh points, as a function of time; ``t`` are their times."""
        coefficients = self.to_coefficients @ values
        return lambda time: chebyshev.chebval(2 * (time - t[0]) / (t[-1] - t[0]) - 1, coefficients)

    def interpolate(self, t: np.ndarray, motion: Motion, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities at other times of a window."""
        if self.smooth:
            matrix = self.interpolation_matrix((at - t[0]) / (t[-1] - t[0]))
            return matrix @ motion.q, matrix @ motion.v
        return hermite_interpolation(t, motion, at)


def hermite_interpolation(t: np.ndarray, motion: Motion, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities from cubic Hermite polynomials between the points."""
    direction = np.sign(t[-1] - t[0])
    q = CubicHermiteSpline(direction * t, motion.q, direction * motion.v)(direction * at)
    v = CubicHermiteSpline(direction * t, motion.v, direction * motion.a)(direction * at)
    return q, v

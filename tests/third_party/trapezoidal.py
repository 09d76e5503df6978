"""The trapezoidal rule, as someone outside the package would add it: an integrator in plain Python.

Y₁ = Y₀ + ½h (Y₀′ + Y₁′),     F(t₁, Y₁, Y₁′) = 0     by Newton's method with cj = 2/h
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import holonome as hn


@dataclass(frozen=True)
class Trapezoidal(hn.PlainIntegrator):
    """The trapezoidal rule on any implicit formulation; the error from the third difference."""

    step: float | None = None
    needs: ClassVar[tuple[str, ...]] = ("residual",)
    order: ClassVar[int] = 2

    def advance(self, equations, t, y, dy, h):
        new, cj = y + h * dy, 2 / h
        for _ in range(10):
            rate = cj * (new - y) - dy
            matrix = equations.matrix(t + h, new, rate, cj)
            change = np.linalg.solve(matrix, equations.residual(t + h, new, rate))
            new = new - change
            if np.max(np.abs(change)) <= 1e-12 * (1 + np.max(np.abs(new))):
                rate = cj * (new - y) - dy
                return new, rate, (new - y - h * dy) / 10
        return None


METHOD = hn.Method(hn.Index1(), Trapezoidal())

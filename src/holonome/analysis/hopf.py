"""Hopf points of a branch of equilibria: where a pair of eigenvalues crosses the imaginary axis."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from holonome.analysis.branch import HOPF, BranchPoint
from holonome.analysis.pinned import equilibrium_at, pinned
from holonome.analysis.reduced import deflated
from holonome.analysis.stability import matrix_at
from holonome.errors import HolonomeError

if TYPE_CHECKING:
    from holonome.analysis.branch import Branch

_HALVINGS = 40
_ON_AXIS, _REAL = 1e-7, 1e-6
"""Parts of the largest eigenvalue: real parts that count as none, and imaginary ones."""

_BESIDE, _CROSSES = 1e-3, 1e-4
"""Part of the way between two points in which the axis is crossed, and part of its frequency up to which a
pair counts as on it.
"""


def hopf_points(branch: Branch) -> tuple[BranchPoint, ...]:
    """All of a branch, in its order."""
    numbers = [_growing(values) for values in branch.eigenvalues]
    found = []
    for k, (before, after) in enumerate(pairwise(numbers)):
        if before is not None and after is not None and before != after:
            found.append(_located(branch, k, before))
    return tuple(point for point in found if point is not None)


def _growing(values: np.ndarray) -> int | None:
    """How many pairs of oscillations grow; None where that is not known."""
    if np.any(np.isnan(values)):
        return None
    size = np.max(np.abs(values), initial=0.0)
    return int(np.sum((values.imag > _REAL * size) & (values.real > _ON_AXIS * size)))


def _located(branch: Branch, k: int, before: int) -> BranchPoint | None:
    """The point behind point k where the number of growing oscillations changes."""
    within = _Within(branch, k)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        number = _growing(within.eigenvalues(share))
        if number is None:
            return None
        low, high = (share, high) if number == before else (low, share)
    omega = within.nearest(high).imag
    begin, end = max(0.0, low - _BESIDE), min(1.0, high + _BESIDE)
    if within.real_part(begin, omega) * within.real_part(end, omega) < 0:
        root: Any = brentq(within.real_part, begin, end, (omega,), xtol=1e-13)
        high = float(root)
    pair, X = within.nearest(high), within.at(high)
    if X is None or not abs(pair.real) <= _CROSSES * pair.imag:
        return None  # a pair that has become real, not one that crosses
    here = branch._problem.place(X)
    at = float(X[-1]), here.q.copy(), here.s.copy(), k + high, X
    return BranchPoint(HOPF, *at, frequency=float(pair.imag) / (2 * np.pi))


class _Within:
    """The equilibria between two points of a branch."""

    def __init__(self, branch: Branch, k: int) -> None:
        self.problem, (self.begin, self.end) = branch._problem, branch._X[k : k + 2]
        self.scale = self.problem.units(self.begin)
        self.scale[-1] = max(float(np.ptp(branch.values)), 1e-300)

    def at(self, share: float) -> np.ndarray | None:
        row = (self.end - self.begin) / self.scale**2
        guess = self.begin + share * (self.end - self.begin)
        return pinned(self.problem, guess, float(row @ guess), row, self.scale)

    def eigenvalues(self, share: float) -> np.ndarray:
        """NaN where they are not known."""
        X = self.at(share)
        try:
            if X is not None:
                return deflated(matrix_at(equilibrium_at(self.problem, X)).A)[0]
        except HolonomeError:
            pass
        return np.full(1, np.nan, complex)

    def nearest(self, share: float, omega: float | None = None) -> complex:
        """The oscillation nearest to the imaginary axis, or to a frequency."""
        values = self.eigenvalues(share)
        pairs = values[values.imag > _REAL * np.max(np.abs(values))]
        if not pairs.size:
            return complex(np.nan, np.nan)
        away = np.abs(pairs.real) if omega is None else np.abs(pairs - 1j * omega)
        return complex(pairs[np.argmin(away)])

    def real_part(self, share: float, omega: float) -> float:
        return self.nearest(share, omega).real

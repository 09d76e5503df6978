"""Hopf points of a branch of equilibria: where a pair of eigenvalues crosses the imaginary axis."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.analysis.branch import HOPF, BranchPoint
from holonome.analysis.pinned import equilibrium_at, pinned
from holonome.analysis.reduced import deflated
from holonome.analysis.stability import matrix_at
from holonome.errors import HolonomeError

if TYPE_CHECKING:
    from holonome.analysis.branch import Branch

_HALVINGS = 45
_ON_AXIS, _REAL = 1e-7, 1e-6
"""Parts of the largest eigenvalue: real parts that count as none, and imaginary ones."""


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
    problem, (begin, end) = branch._problem, branch._X[k : k + 2]
    scale = problem.units(begin)
    scale[-1] = max(float(np.ptp(branch.values)), 1e-300)
    row = (end - begin) / scale**2
    low, high, there = 0.0, 1.0, None
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        guess = begin + share * (end - begin)
        found = pinned(problem, guess, float(row @ guess), row, scale)
        values = None if found is None else _eigenvalues(problem, found)
        number = None if values is None else _growing(values)
        if number is None:
            return None
        if number == before:
            low = share
        else:
            high = share
        there = found, values
    assert there is not None
    X, values = there
    pair = values[values.imag > _REAL * np.max(np.abs(values))]
    if not pair.size:
        return None
    omega = float(pair[np.argmin(np.abs(pair.real))].imag)
    if np.min(np.abs(pair.real)) > 1e-4 * omega:
        return None  # a pair that has become real, not one that crosses
    here = problem.place(X)
    at = float(X[-1]), here.q.copy(), here.s.copy(), k + low, X
    return BranchPoint(HOPF, *at, frequency=omega / (2 * np.pi))


def _eigenvalues(problem: Any, X: np.ndarray) -> np.ndarray | None:
    try:
        return deflated(matrix_at(equilibrium_at(problem, X)).A)[0]
    except HolonomeError:
        return None

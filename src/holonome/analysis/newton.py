"""Newton's method for systems that may be rectangular or singular: steps of least norm, shortened where the
residual grows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from holonome.errors import HolonomeError

LARGEST_DENSE = 700
"""Unknowns beyond which matrices are factored as sparse ones."""

RANK = 1e-10
"""Singular values of a matrix in balanced units, relative to the largest, that count as zero."""

_RESIDUAL, _ROUNDING, _FLOOR, _HALVINGS, _NOISE = 1e-11, 1e-15, 1e-3, 12, 1e-14

_ALL = slice(None)

Equations = Callable[[np.ndarray], tuple[np.ndarray, Any]]


class Found(NamedTuple):
    """Where an iteration ended."""

    x: np.ndarray
    converged: bool
    residual: float  # relative to the terms that must cancel
    steps: int


def balanced(J: Any, units: Any = None, scaled: slice = _ALL) -> tuple[np.ndarray, np.ndarray]:
    """Factors of rows and columns that make the largest entries of a matrix of the order of one; only these
    columns are scaled, all others have their units.
    """
    absolute = sp.csr_matrix(abs(J)) if sp.issparse(J) else np.abs(J)
    r, c = np.ones(J.shape[0]), np.ones(J.shape[1]) if units is None else units.copy()
    for _ in range(6):
        r /= np.sqrt(_positive(_largest(absolute, 1, r, c)))
        c[scaled] /= np.sqrt(_positive(_largest(absolute, 0, r, c)))[scaled]
    r /= _positive(_largest(absolute, 1, r, c))
    return r, c


def _largest(absolute: Any, axis: int, r: np.ndarray, c: np.ndarray) -> np.ndarray:
    if sp.issparse(absolute):
        scaled = sp.diags(r) @ absolute @ sp.diags(c)
        return np.asarray(scaled.max(axis=axis).todense()).ravel()
    return np.max(absolute * r[:, None] * c, axis=axis, initial=0.0)


def _positive(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, 1.0)


def without_noise(J: Any, units: np.ndarray) -> Any:
    """A matrix without entries that are rounding errors: a unit of their unknown moves no row by more than
    that.
    """
    if sp.issparse(J):
        J = sp.csr_matrix(J)
        scaled = abs(J) @ sp.diags(units)
        largest = _positive(np.asarray(scaled.max(axis=1).todense()).ravel())
        return J.multiply(scaled > sp.diags(_NOISE * largest) @ (scaled > 0)).tocsr()
    scaled = np.abs(J) * units
    return np.where(scaled > _NOISE * np.max(scaled, axis=1, keepdims=True, initial=0.0), J, 0.0)


def least_norm(
    J: Any, R: np.ndarray, units: np.ndarray | None = None, scaled: slice = _ALL, rank: float = RANK
) -> np.ndarray:
    """The step of least norm that solves J d = −R, in the sense of least squares.

    Lengths are measured in ``units``, but for those unknowns, the multipliers, whose sizes do not matter.
    """
    if units is not None:
        J = without_noise(J, units)
    r, c = balanced(J, units, scaled)
    if not sp.issparse(J):
        return -c * np.linalg.lstsq(J * r[:, None] * c, r * R, rcond=rank)[0]
    both: Any = sp.diags(r) @ J @ sp.diags(c)
    return -c * _sparse_least_norm(both.tocsc(), r * R)


def _sparse_least_norm(J: Any, R: np.ndarray) -> np.ndarray:
    from scipy.sparse.linalg import splu

    if J.shape[0] == J.shape[1]:
        try:
            x = splu(J).solve(R)
            if np.all(np.isfinite(x)) and np.linalg.norm(J @ x - R) <= 1e-6 * np.linalg.norm(R):
                return x
        except RuntimeError:
            pass
    small, (rows, columns) = 1e-7, J.shape
    both = sp.bmat([[small * sp.eye(columns), J.T], [J, -small * sp.eye(rows)]], format="csc")
    factors, x, left = splu(both), np.zeros(columns), R
    for _ in range(3):
        x = x + factors.solve(np.concatenate([np.zeros(columns), left]))[:columns]
        left = R - J @ x
    return x


def null_space(J: np.ndarray, rank: float = RANK) -> np.ndarray:
    """An orthonormal basis of the vectors that a matrix in balanced rows maps to zero."""
    if not J.size:
        return np.eye(J.shape[1])
    r = 1 / _positive(np.max(np.abs(J), axis=1))
    _, values, rows = np.linalg.svd(J * r[:, None])
    return rows[int(np.sum(values > rank * max(values[0], 1e-300))) :].T


def relative(R: np.ndarray, J: Any, x: np.ndarray, units: np.ndarray, least: Any = 0.0) -> float:
    """The largest residual relative to the terms of its row, or to a least size of these."""
    absolute = abs(J)
    size = absolute @ np.abs(x) + _FLOOR * (absolute @ units) + 1e-300
    if np.size(least) == R.size:
        size = np.maximum(size, least)
    return float(np.max(np.abs(R) / size, initial=0.0))


def newton(
    equations: Equations,
    x: np.ndarray,
    units: np.ndarray,
    scaled: slice,
    iterations: int = 60,
    rank: float = RANK,
    least: Any = 0.0,
) -> Found:
    """Iterate until the residual is at the level of rounding.

    ``units`` are typical sizes of the unknowns, in which steps are measured; of those that are ``scaled``,
    the multipliers, they do not matter.
    """
    R, J = equations(x)
    left, count = relative(R, J, x, units, least), 0
    while count < iterations:
        count += 1
        step = least_norm(J, R, units, scaled, rank)
        if not np.all(np.isfinite(step)):
            break
        trial = _shortened(equations, x, step, R, J, 1 if left <= _RESIDUAL else _HALVINGS)
        if trial is None:
            break
        moved = np.max(np.abs(trial[0] - x) / np.maximum(np.abs(x), _FLOOR * units), initial=0.0)
        x, R, J = trial
        before, left = left, relative(R, J, x, units, least)
        if left <= _RESIDUAL and (left <= _ROUNDING or left > 0.1 * before or moved <= 1e-13):
            break
    return Found(x, left <= 1e3 * _RESIDUAL, left, count)


def _shortened(
    equations: Equations, x: np.ndarray, step: np.ndarray, R: np.ndarray, J: Any, tries: int
) -> tuple[np.ndarray, np.ndarray, Any] | None:
    """The first of the step, its half, its quarter, … with a smaller residual."""
    r, _ = balanced(J)
    before = np.linalg.norm(r * R)
    for k in range(tries):
        trial = x + step / 2**k
        try:
            value, jacobian = equations(trial)
        except HolonomeError:
            continue
        size = np.linalg.norm(r * value)
        if np.isfinite(size) and size <= (1 - 1e-3 / 2**k) * before:
            return trial, value, jacobian
    return None

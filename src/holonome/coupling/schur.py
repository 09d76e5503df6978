"""Linear algebra of the Schur complements S_j = D_j A_j⁻¹ B_j, stacked over points."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

_RANK_TOLERANCE = 1e-12
_DEPENDENT = 1e-10


def largest(values: np.ndarray) -> float:
    """The largest absolute value."""
    return float(np.max(np.abs(values), initial=0.0))


def product(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Matrix times vector at each point."""
    return np.einsum("kij,kj->ki", matrices, vectors)


def row_scale(S: np.ndarray) -> np.ndarray:
    """The scale of each constraint row, the square root of the diagonal of S."""
    scale = np.sqrt(np.abs(np.diagonal(S, axis1=-2, axis2=-1)))
    return np.where(scale > 0.0, scale, 1.0)


def is_regular(S: np.ndarray) -> bool:
    """Whether the constraint rows are independent, from Σ_j S_j at one point."""
    scale = row_scale(S)
    return bool(np.linalg.matrix_rank(S / np.outer(scale, scale), tol=_DEPENDENT) == len(S))


def inverse(S: np.ndarray) -> np.ndarray:
    """S⁻¹ at each point; the scaled pseudo-inverse where rows depend on each other."""
    scale = row_scale(S)
    scales = scale[..., :, None] * scale[..., None, :]
    return np.linalg.pinv(S / scales, rcond=_RANK_TOLERANCE) / scales


def total(S: Mapping[str, np.ndarray]) -> np.ndarray:
    """Σ_j S_j."""
    return np.stack(list(S.values())).sum(axis=0)


def contraction_rate(weights: Mapping[str, float], S: Mapping[str, np.ndarray]) -> float:
    """ρ(1 − Σ_j w_j S_j⁻¹ Σ_i S_i): the factor by which the error of λ changes in an iteration, in the limit
    of short windows, if the constraint is imposed with these weights.  Infinite if some S_j is singular.
    """
    S_total = total(S)
    error = np.eye(len(S_total))
    for name, weight in weights.items():
        if weight == 0.0:
            continue
        if np.linalg.svd(S[name], compute_uv=False)[-1] <= _RANK_TOLERANCE * np.max(np.abs(S_total)):
            return math.inf
        error -= weight * np.linalg.solve(S[name], S_total)
    return float(np.max(np.abs(np.linalg.eigvals(error))))

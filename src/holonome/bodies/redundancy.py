"""Rows that follow from others: which to leave out, so that what is kept stays independent along the motion.

In overconstrained loops, such as Bennett's linkage, rows depend on each other in every closed position,
though not beside it.  Any maximal independent set of them gives the same motion until it becomes dependent
itself, so the set is chosen that stays away from this in all positions looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import qr

_RANK = 1e-8
_DENSE = 400
"""Rows up to which dependences are found from a full matrix."""
_LOOKED_AT = 400
"""Rows, of all positions together, that are compared."""
LARGEST = 80
"""Rows beyond which all are kept, and the rank is watched during the run."""


def rows_to_leave_out(jacobians: Sequence[np.ndarray]) -> list[int]:
    """Numbers of the rows to leave out, from the derivatives of all rows in several positions."""
    rows = len(jacobians[0])
    jacobians = [J for J in jacobians if np.all(np.isfinite(J))]
    if not jacobians or not 1 < rows <= LARGEST:
        return []
    size = np.max([np.linalg.norm(J, axis=1) for J in jacobians], axis=0)
    size[size == 0] = 1.0
    scaled = [J / size[:, None] for J in jacobians]
    ranks = [np.linalg.matrix_rank(J, _RANK) for J in scaled]
    rank = max(ranks)
    if rank == rows or not rank:
        return []
    regular = [J for J, here in zip(scaled, ranks, strict=True) if here == rank]
    scaled = np.stack(regular[:: 1 + len(regular) * rows // _LOOKED_AT])
    orders = [qr(J.T, mode="r", pivoting=True)[-1] for J in (np.hstack(list(scaled)), *scaled)]
    candidates = [sorted(order[:rank].tolist()) for order in orders]
    kept = _improved(scaled, max(candidates, key=lambda kept: _score(scaled, kept)), rows)
    return [row for row in range(rows) if row not in kept]


def same_rank(kept: np.ndarray, further: np.ndarray) -> bool:
    """Whether further rows still follow from those kept."""
    both = np.vstack([kept, further])
    if not np.all(np.isfinite(both)):
        return True
    size = np.linalg.norm(both, axis=1)
    both = both / np.where(size > 0, size, 1.0)[:, None]
    rank = np.linalg.matrix_rank(both, _RANK)
    return bool(np.linalg.matrix_rank(both[: len(kept)], _RANK) == rank)


def _score(jacobians: np.ndarray, kept: Sequence[int]) -> float:
    """The least singular value of these rows in all positions."""
    return float(np.min(np.linalg.svd(jacobians[:, kept], compute_uv=False)[:, -1]))


def _improved(jacobians: np.ndarray, kept: list[int], rows: int) -> list[int]:
    """Exchange rows as long as that helps."""
    best = _score(jacobians, kept)
    for _ in range(3):
        changed = False
        for new in [row for row in range(rows) if row not in kept]:
            for old in list(kept):
                trial = sorted({*kept, new} - {old})
                score = _score(jacobians, trial)
                if score > 1.01 * best:
                    kept, best, changed = trial, score, True
                    break
        if not changed:
            break
    return kept


def in_dependences(C: Any) -> list[int]:
    """Numbers of the rows that take part in a dependence, Cᵀ u = 0; only their directions count."""
    if not C.shape[0] or not np.all(np.isfinite(C.data)):
        return []
    length = np.sqrt(C.multiply(C).sum(axis=1))
    C = C.multiply(1 / np.where(length > 0, length, 1.0)).tocsc()
    null = _dense_null_space(C.toarray()) if C.shape[0] <= _DENSE else _sparse_null_space(C)
    return np.flatnonzero(np.any(np.abs(null) > 1e-7, axis=1)).tolist()


def _dense_null_space(C: np.ndarray) -> np.ndarray:
    """Columns u with Cᵀ u = 0."""
    left, values, _ = np.linalg.svd(C)
    values = np.append(values, np.zeros(len(left) - len(values)))
    return left[:, values < _RANK * max(values[0], 1e-300)]


def _sparse_null_space(C: Any) -> np.ndarray:
    """The same by inverse iteration with C Cᵀ + ε, as a saddle point so that nothing is squared; with more
    and more columns until some of them do not belong to it.
    """
    from scipy import sparse
    from scipy.sparse.linalg import splu

    rows, columns = C.shape
    shift = -(_RANK**1.5) * sparse.identity(rows)
    saddle = sparse.bmat([[sparse.identity(columns), C.T], [C, shift]], format="csc")
    factors, random, count = splu(saddle), np.random.default_rng(3), 4
    while True:
        u = random.normal(size=(rows, min(count, rows)))
        for _ in range(4):
            solved = factors.solve(np.vstack([np.zeros((columns, u.shape[1])), u]))[columns:]
            u = np.linalg.qr(solved)[0]
        _, values, turn = np.linalg.svd(C.T @ u, full_matrices=False)
        null = u @ turn[values < _RANK].T
        if null.shape[1] < u.shape[1] or u.shape[1] == rows:
            return null
        count *= 4

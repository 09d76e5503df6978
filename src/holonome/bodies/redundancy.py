"""Rows that follow from others: which to leave out, so that what is kept stays independent along the motion.

In overconstrained loops, such as Bennett's linkage, rows depend on each other in every closed position,
though not beside it.  Any maximal independent set of them gives the same motion until it becomes dependent
itself, so the set is chosen that stays away from this in all positions looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import qr

_RANK = 1e-8
LARGEST = 80
"""Rows beyond which all are kept, and the rank is watched during the run."""


def rows_to_leave_out(jacobians: Sequence[np.ndarray]) -> list[int]:
    """Numbers of the rows to leave out, from the derivatives of all rows in several positions."""
    rows = len(jacobians[0])
    if not 1 < rows <= LARGEST:
        return []
    size = np.max([np.linalg.norm(J, axis=1) for J in jacobians], axis=0)
    size[size == 0] = 1.0
    scaled = [J / size[:, None] for J in jacobians]
    rank = max(np.linalg.matrix_rank(J, _RANK) for J in scaled)
    if rank == rows or not rank:
        return []
    *_, order = qr(np.hstack(scaled).T, mode="r", pivoting=True)
    kept = _improved(scaled, sorted(order[:rank].tolist()), rows)
    return [row for row in range(rows) if row not in kept]


def _score(jacobians: Sequence[np.ndarray], kept: Sequence[int]) -> float:
    """The least singular value of these rows in all positions."""
    return min(float(np.linalg.svd(J[kept], compute_uv=False)[-1]) for J in jacobians)


def _improved(jacobians: Sequence[np.ndarray], kept: list[int], rows: int) -> list[int]:
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

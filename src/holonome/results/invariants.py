"""Whether the invariants that a system was given are conserved by its motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from holonome.dynamics.kernels import kernels
from holonome.dynamics.start import consistent_state
from holonome.errors import HolonomeError

if TYPE_CHECKING:
    from holonome.results.evaluated import Evaluated

_POINTS_LOOKED_AT = 5


def false_invariants(solution: Evaluated) -> list[int]:
    """Entries of ``invariant`` that would change somewhere along the motion without projection."""
    _, rate, terms = solution._invariants_and_rates
    floor = 1e-6 * np.max(terms, axis=1, initial=0.0, keepdims=True)
    excess = np.abs(rate) / np.maximum(1e-5 * np.maximum(terms, floor), 1e-300)
    suspects = np.flatnonzero(np.any(excess > 1, axis=1)).tolist()
    if suspects and solution.system.m:
        suspects = [row for row in suspects if _changes_on_manifold(solution, row, excess[row], floor[row])]
    return suspects


def _changes_on_manifold(solution: Evaluated, row: int, excess: np.ndarray, floor: np.ndarray) -> bool:
    """Whether an invariant changes also on the constraints, which a method that drifts has left; looked
    at where it seems to change most.
    """
    system = solution.system
    worst = np.argsort(-excess, kind="stable")[:_POINTS_LOOKED_AT]
    for k in worst[excess[worst] > 1].tolist():
        try:
            y = consistent_state(
                system, solution.states[k, : system.state_size].copy(), float(solution.t[k]), repair=True
            ).state
        except (HolonomeError, ValueError):
            continue
        _, rate, terms = kernels(system).invariants_along(system, solution.t[k : k + 1], y[np.newaxis])
        if abs(rate[row, 0]) > 1e-5 * max(terms[row, 0], floor[0]):
            return True
    return False

"""States that were not computed by a run, as a result with all that results offer."""

from __future__ import annotations

import numpy as np

from holonome.dynamics.switched import base_of
from holonome.problem.system import System
from holonome.results.pieces import Piece
from holonome.results.solution import Solution


def run_of(
    system: System,
    t: np.ndarray,
    states: np.ndarray,
    method: str,
    a: np.ndarray | None = None,
    lam: np.ndarray | None = None,
) -> Solution:
    """A Solution of these states, one a row; with accelerations (n, points) and multipliers, where they are
    not those of the free motion.
    """
    found = Solution(
        {
            "system": base_of(system),
            "pieces": (Piece(0, base_of(system), system),) if base_of(system) is not system else (),
            "method": method,
            "t": t,
            "states": np.ascontiguousarray(states),
            "status": 0,
            "outcome": method,
            "nfev": 0,
            "steps": 0,
            "rejections": 0,
            "projections": 0,
            "rtol": 0.0,
            "atol": 0.0,
        }
    )
    known = found.__dict__
    if a is not None:
        known["rates"] = np.concatenate([a, np.zeros((len(system.states), t.size))])
    if lam is not None:
        known["lam"], known["multipliers_of_pieces"] = lam, [lam]
    return found

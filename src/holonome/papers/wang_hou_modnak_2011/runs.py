"""The model problem, runs of it, and ratios of Richardson."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import holonome as hn
from holonome.papers.paper import load

PAPER = load("wang_hou_modnak_2011")

PAPER_DATA = "wang_hou_modnak_2011"
END, TOLERANCE, SUBSTEPS = 10.0, 1e-6, 10
CLOSE_RATIO = 0.05
"""By how much a ratio R may differ from the published one; 5 % are 0.07 in the order."""

A = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([[5.0, 2.0], [2.0, 4.0]])
C = np.array([[-2.0, -1.0], [-1.0, -2.0]]), np.array([[-1.0, -2.0], [0.0, -2.0]])
D = np.array([[0.0, 1.0]]), np.array([[-2.0, 0.0]])
R = np.array([6.0, 7.0]), np.array([10.0, 4.0])


def model(ratio: float = 1.0) -> hn.CoupledSystem:
    """The model problem, (16)–(18); ``ratio`` scales mass, stiffness and load of the first structure."""
    return hn.CoupledSystem.linear(
        [ratio * A[0], A[1]],
        None,
        [ratio * C[0], C[1]],
        D,
        [ratio * R[0], R[1]],
        name="two joined structures",
    )


def simulate(
    window: float, until: float = END, substeps: int = SUBSTEPS, **options: Any
) -> hn.CoupledSolution:
    """A run of the paper: splitting (3)–(4), trapezoidal rule, ε₀ = 1e-6, no projection."""
    method = hn.LocalIteration(
        **{
            "window": window,
            "substeps": substeps,
            "update": "y",
            "rtol": 0.0,
            "atol": TOLERANCE,
            "projection": False,
            **options,
        }
    )
    return hn.solve_coupled(model(), (0.0, until), np.zeros(4), method=method)


def richardson(window: float, **options: Any) -> dict[str, float]:
    """R = |u_Δt − u_Δt/2| / |u_Δt/2 − u_Δt/4| for u = x, y, λ at the end; the order is log₂ R."""
    runs = [simulate(window / k, **options) for k in (1, 2, 4)]
    values = {
        "R_x": [run.q["x"][:, -1] for run in runs],
        "R_y": [run.q["y"][:, -1] for run in runs],
        "R_λ": [run.lam[:, -1] for run in runs],
    }
    return {name: float(np.linalg.norm(a - b) / np.linalg.norm(b - c)) for name, (a, b, c) in values.items()}


def window_of(solution: hn.CoupledSolution, end: float) -> np.ndarray:
    """The changes of x, y and λ in the iterations of the window that ends at a time."""
    history = solution.history
    return history.changes[int(np.argmin(np.abs(history.t + history.h - end)))]


def ratios_agree(expected: Mapping[str, float], found: Mapping[str, float]) -> bool:
    return all(abs(found[name] / expected[name] - 1) <= CLOSE_RATIO for name in expected)


def ratios_of(line: Mapping[str, str]) -> dict[str, float]:
    return {"R_x": float(line["x"]), "R_y": float(line["y"]), "R_λ": float(line["lam"])}


ORDERS = {
    "part": "(a) iterated, (b) one pass without iteration",
    "Δt": "length of the window",
    "M": "sub-steps in a window",
    **{
        f"R_{name}": f"ratio of the differences of {name} as Δt is halved; its order is log₂ R"
        for name in ("x", "y", "λ")
    },
}
ORDER_CRITERION = f"ratios R within {100 * CLOSE_RATIO:.0f} % of the published ones"

"""Single points of a branch of equilibria, at a value of the parameter or of another linear form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.analysis.newton import Found, newton
from holonome.analysis.problem import Problem
from holonome.errors import HolonomeError

if TYPE_CHECKING:
    from holonome.analysis.equilibrium import Equilibrium


def pinned(
    problem: Problem, X: np.ndarray, value: float, row: np.ndarray | None = None, scale: Any = None
) -> np.ndarray | None:
    """A solution with this value of the parameter, or of another linear form."""
    if row is None:
        row = np.append(np.zeros(X.size - 1), 1.0)

    def equations(x: np.ndarray) -> tuple[np.ndarray, Any]:
        R, J = problem(x)
        return np.append(R, row @ x - value), np.vstack([J, row])

    try:
        found = newton(equations, X, problem.units(X) if scale is None else scale, problem.scaled, 20)
    except (HolonomeError, np.linalg.LinAlgError):
        return None
    return found.x if found.converged else None


def equilibrium_at(problem: Problem, X: np.ndarray) -> Equilibrium:
    from holonome.analysis.equilibrium import result

    left, J = problem(X)
    size = np.abs(J) @ np.abs(X) + 1e-300
    return result(problem, Found(X, True, float(np.max(np.abs(left) / size, initial=0.0)), 0))

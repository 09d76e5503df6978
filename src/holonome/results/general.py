"""The result of a run of a general problem of index 2 or 3."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from holonome.problem.general import HigherIndex
from holonome.results.frozen import Result

_NOTHING = np.zeros(0)


class HigherIndexSolution(Result):
    """A solution of an :class:`Index2System` or :class:`Index3System`.

    Attributes
    ----------
    t : (points,) array
    x, v : (n, points) arrays
        The unknowns and, for index 3, their derivatives.
    y : (m, points) array
        From the iteration; for the variant "singular", which carries B y, the least-squares solution for a
        given B y.
    By : (n, points) array
    t_events, x_events, v_events : lists
        Times and states of each event.
    sol : callable
        With ``dense_output=True``: x, for index 3 (x, v), at any time of the run.
    singular_times : array
        Times at which GB became singular.
    success, status, message, steps, rejections, nfev, iterations, eps
        Outcome and costs.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> f = lambda t: np.array([np.cos(t), 0.0])
    >>> problem = hn.Index2System(f, np.array([0.0, 1.0]), lambda t, x: x[1] - x[0], n=2)
    >>> sol = hn.solve(problem, (0, 1), [0, 0], dense_output=True)
    >>> sol.success, bool(abs(sol.sol(0.5)[1] - np.sin(0.5)) < 1e-4)
    (True, True)
    >>> bool(abs(sol.y[0, -1] + np.cos(1)) < 1e-3)
    True
    """

    system: HigherIndex
    method: str
    t: np.ndarray
    states: np.ndarray
    status: int
    message: str
    steps: int
    rejections: int
    nfev: int
    iterations: int = 0
    eps: np.ndarray = _NOTHING
    carries_y: bool = True
    accepted: np.ndarray | None = None
    rejected: np.ndarray | None = None
    njev: int = 0
    nlu: int = 0
    error_failures: int = 0
    newton_failures: int = 0
    t_events: list[np.ndarray] | None = None
    event_states: list[np.ndarray] | None = None
    sol: Any = None
    singular_times: np.ndarray = _NOTHING

    @property
    def x(self) -> np.ndarray:
        return self.states[:, : self.system.n].T

    @property
    def v(self) -> np.ndarray:
        return self.states[:, self.system.n : self.system.order * self.system.n].T

    @property
    def x_events(self) -> list[np.ndarray] | None:
        return self._of_events(0, self.system.n)

    @property
    def v_events(self) -> list[np.ndarray] | None:
        return self._of_events(self.system.n, self.system.order * self.system.n)

    @property
    def _carried(self) -> np.ndarray:
        return self.states[:, self.system.order * self.system.n :].T

    @property
    def _B(self) -> np.ndarray:
        """B at every point, (points, n, m)."""
        e, s = self.system.equations, self.system.symbols
        B = ca.Function("B", [s["t"], e.x, s["p"]], [ca.densify(e.B)])
        return np.array(
            [np.array(B(t, x, self.system.parameters.flat)) for t, x in zip(self.t, self.x.T, strict=True)]
        )

    @property
    def y(self) -> np.ndarray:
        if self.carries_y:
            return self._carried
        return np.array(
            [np.linalg.lstsq(B, By, rcond=None)[0] for B, By in zip(self._B, self._carried.T, strict=True)]
        ).T

    @property
    def By(self) -> np.ndarray:
        return np.einsum("pnm,mp->np", self._B, self._carried) if self.carries_y else self._carried

    @property
    def g(self) -> np.ndarray:
        """Residuals of the constraints, (m, points)."""
        end = self.system.order * self.system.n
        return np.array(
            [
                np.array(self.system.values(t, row[:end], self.system.parameters.flat)[0]).ravel()
                for t, row in zip(self.t, self.states, strict=True)
            ]
        ).T

    @property
    def drift(self) -> float:
        """Largest |g|."""
        return float(np.max(np.abs(self.g), initial=0.0))

    def __repr__(self) -> str:
        return (
            f"HigherIndexSolution(system={self.system.name!r}, method={self.method!r}, points={self.t.size}, "
            f"success={self.success})"
        )

    def __str__(self) -> str:
        span = f"t = {self.t[0]:.6g} … {self.t[-1]:.6g}" if self.t.size else "no points"
        return (
            f"{'success' if self.success else 'FAILED'}: {self.message}\n  {self.system!r}; {span}, "
            f"{self.t.size} points\n"
            f"  method {self.method}: {self.steps} steps ({self.rejections} rejected), {self.nfev} "
            f"evaluations\n  constraints hold to |g| ≤ {self.drift:.1e}"
        )

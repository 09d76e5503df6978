"""The result of a coupled run: the motion of each subsystem, and what the iteration did."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from holonome.coupling.coupled_system import CoupledSystem
from holonome.results.summary import count


class IterationHistory:
    """What happened in each window.

    Attributes
    ----------
    t, h : arrays
        Beginning and length of each accepted window.
    iterations : array
        Number of iterations in it.
    contraction : array
        The average factor by which the change of λ fell in an iteration, after the first; NaN where there are
        too few iterations.
    changes : list of arrays
        For each window, (iterations × (subsystems + 1)): the changes of the positions of each subsystem and
        of λ, (6), (7), (9).
    rejected : list of (t, h, str)
        Windows that were halved, and why.
    """

    def __init__(self) -> None:
        self.changes: list[np.ndarray] = []
        self.rejected: list[tuple[float, float, str]] = []
        self._t: list[float] = []
        self._h: list[float] = []

    def accept(self, t: float, h: float, changes: np.ndarray) -> None:
        """Add a window that has converged."""
        self._t.append(t)
        self._h.append(h)
        self.changes.append(changes)

    @property
    def t(self) -> np.ndarray:
        return np.array(self._t)

    @property
    def h(self) -> np.ndarray:
        return np.array(self._h)

    @property
    def iterations(self) -> np.ndarray:
        return np.array([len(changes) for changes in self.changes], dtype=int)

    @property
    def contraction(self) -> np.ndarray:
        return np.array([contraction(changes[:, -1]) for changes in self.changes])

    def __repr__(self) -> str:
        return f"IterationHistory(windows={len(self._t)}, rejected={len(self.rejected)})"


def contraction(changes: np.ndarray) -> float:
    """The average factor by which changes fall after the first."""
    changes = changes[1:]
    if changes.size < 2 or not changes[0] > 0 or not np.all(np.isfinite(changes)):
        return math.nan
    return float((changes[-1] / changes[0]) ** (1 / (changes.size - 1)))


@dataclass(eq=False, repr=False)
class CoupledSolution:
    """Result of :func:`solve_coupled`.

    Attributes
    ----------
    t : (points,) array
        The ends of the windows, or ``t_eval``.
    q, v : dicts of (n, points) arrays
        Positions and velocities of each subsystem, by name.
    lam : (m, points) array
        Multipliers of the coupling.
    rho : dict
        Contraction rates at the initial state, in the limit of short windows, if the constraint is imposed on
        one subsystem alone; infinite where that is not possible.
    success, status, message
        Whether the final time was reached (status 0: yes, −1: no), and what happened in words.
    history : IterationHistory
        What happened in each window.

    Examples
    --------
    >>> import holonome as hn
    >>> left = hn.System(1.0, lambda q: -4.0 * q, names=["x"])
    >>> right = hn.System(3.0, [0.0], names=["x"])
    >>> pair = hn.CoupledSystem({"left": left, "right": right}, lambda left, right: left - right)
    >>> method = hn.LocalIteration(window=0.1, solvers="dop853")
    >>> sol = hn.solve_coupled(pair, (0, 1), {"left": [1.0], "right": [1.0]}, method=method)
    >>> sol.success, sorted(sol.q), sol.lam.shape
    (True, ['left', 'right'], (1, 11))
    """

    coupled: CoupledSystem
    method: str
    t: np.ndarray
    states: np.ndarray
    lam: np.ndarray
    rho: dict[str, float]
    status: int
    message: str
    history: IterationHistory

    @property
    def success(self) -> bool:
        return self.status >= 0

    @property
    def q(self) -> dict[str, np.ndarray]:
        return {name: self.states[:, part].T for name, part in self.coupled.parts.items()}

    @property
    def v(self) -> dict[str, np.ndarray]:
        return {
            name: self.states[:, self.coupled.n :][:, part].T for name, part in self.coupled.parts.items()
        }

    @property
    def drift(self) -> tuple[float, float]:
        """Largest residual of the coupling over all points, for positions and for velocities."""
        n = self.coupled.n
        coupling = self.coupled.at(self.t, self.states[:, :n], self.states[:, n:])
        return float(np.max(np.abs(coupling.g), initial=0.0)), float(np.max(np.abs(coupling.w), initial=0.0))

    def __repr__(self) -> str:
        return f"CoupledSolution(coupled={self.coupled.name!r}, points={self.t.size}, success={self.success})"

    def __str__(self) -> str:
        coupled = self.coupled
        lines = [
            f"{'success' if self.success else 'FAILED'}: {self.message}",
            f"  {coupled.name}: {count(len(coupled.subsystems), 'subsystem')} "
            f"({', '.join(coupled.subsystems)}), {count(coupled.m, 'coupling constraint')}; "
            f"t = {self.t[0]:.6g} … {self.t[-1]:.6g}, {count(self.t.size, 'point')}",
        ]
        windows = len(self.history.changes)
        if windows:
            rates = self.history.contraction
            rates = rates[np.isfinite(rates)]
            rate = f", contraction {np.median(rates):.2g}" if rates.size else ""
            lines.append(
                f"  method {self.method}: {count(windows, 'window')} ({len(self.history.rejected)} halved), "
                f"{np.mean(self.history.iterations):.1f} iterations each{rate}"
            )
        position, velocity = self.drift
        lines.append(f"  coupling holds to |g| ≤ {position:.1e}, |Gv| ≤ {velocity:.1e}")
        return "\n".join(lines)

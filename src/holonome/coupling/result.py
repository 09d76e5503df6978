"""The result of a coupled run: the motion of each subsystem, and what the iteration did."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from holonome.coupling.coupled import CoupledSystem
from holonome.results.solution import count


@dataclass(frozen=True, eq=False)
class IterationHistory:
    """What happened in each window.

    Attributes
    ----------
    t, h : arrays
        Begin and length of each accepted window.
    iterations : array
        Iterations it took.
    contraction : array
        By which factor the change of λ fell in each of these, on average after the first; NaN where that
        cannot be seen.
    changes : list of arrays
        For each window, (iterations × (subsystems + 1)): by how much the positions of each subsystem and λ
        changed, (6), (7), (9).
    rejected : list of (t, h, str)
        Windows that were halved, and why.
    """

    t: np.ndarray
    h: np.ndarray
    iterations: np.ndarray
    contraction: np.ndarray
    changes: list[np.ndarray] = field(repr=False)
    rejected: list[tuple[float, float, str]] = field(repr=False)


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
        Contraction rates at the start, in the limit of short windows, if the constraint is imposed on one
        subsystem alone; infinite where that cannot be done.
    success, status, message
        Whether the end was reached (0: yes, −1: no), and what happened in words.
    history : IterationHistory
        Window by window.

    Examples
    --------
    >>> import holonome as hn
    >>> left, right = hn.System(1.0, lambda q: -4.0 * q, names=["x"]), hn.System(3.0, [0.0], names=["x"])
    >>> pair = hn.CoupledSystem({"left": left, "right": right}, lambda left, right: left - right)
    >>> sol = hn.solve_coupled(pair, (0, 1), {"left": [1.0], "right": [1.0]}, method=hn.LocalIteration(window=0.1, solvers="dop853"))
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
        history, coupled = self.history, self.coupled
        lines = [
            f"{'success' if self.success else 'FAILED'}: {self.message}",
            f"  {coupled.name}: {count(len(coupled.subsystems), 'subsystem')} "
            f"({', '.join(coupled.subsystems)}), {count(coupled.m, 'coupling constraint')}; "
            f"t = {self.t[0]:.6g} … {self.t[-1]:.6g}, {count(self.t.size, 'point')}",
        ]
        if history.t.size:
            rates = history.contraction[np.isfinite(history.contraction)]
            rate = f", contraction {np.median(rates):.2g}" if rates.size else ""
            lines.append(
                f"  method {self.method}: {count(history.t.size, 'window')} ({len(history.rejected)} "
                f"halved), {np.mean(history.iterations):.1f} iterations each{rate}"
            )
        position, velocity = self.drift
        lines.append(f"  coupling holds to |g| ≤ {position:.1e}, |Gv| ≤ {velocity:.1e}")
        return "\n".join(lines)

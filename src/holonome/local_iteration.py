"""Local iteration: each subsystem with its own solver and mesh, the coupling forces found by iterating over one window of time after the other.

Wang, Hou & Modnak (2011) state it for two subsystems

    A_1 x″ + B_1 λ + C_1 x = r_1,      A_2 y″ + B_2 λ + C_2 y = r_2,      D_1 x″ + D_2 y″ = d                      (1)

On a window [t_n, t_{n+1}] with the i-th iterate known, their splitting (2) imposes the constraint on y,

    A_2 y″ + B_2 λ + C_2 y = r_2,   D_2 y″ = d − D_1 x″ of the i-th iterate       gives y, λ of the next           (3)
    A_1 x″ + C_1 x = r_1 − B_1 λ                                                  gives x                           (4)

until the changes of x, y and λ are below a tolerance (10); (55), (56) are the same with x and y exchanged.  In the limit of short windows the error of λ is multiplied by
−S_2⁻¹S_1 in each iteration, S_j = D_j A_j⁻¹ B_j, so one of the two may diverge, and there are systems where both do.  Here the constraint may be nonlinear (57)–(59), there may be any
number of subsystems, and by default

    λ ← λ + (Σ_j S_j)⁻¹ (Σ_j D_j q_j″ + γ)                                        0 = Σ_j D_j q_j″ + γ the constraint, differentiated twice

which is Newton's method in that limit and converges for every system.

References
----------
.. [1] J. Wang, G. Hou, C. Modnak, "An iterative method for constrained dynamic problems – a case study" (2011).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from holonome.coupled import BlackBox, CoupledSystem, Coupling
from holonome.errors import ContradictoryConstraints, InconsistentStart
from holonome.initial import SMALL, require_finite, vector
from holonome.method import Method, resolve
from holonome.result import count
from holonome.solve import time_span, wanted_times
from holonome.subsolvers import ONE_STEP, Called, Driven, Integrated, Mesh, Motion, OneStep, Subsolver, WindowFailed
from holonome.system import System
from holonome.warmup import announce_first_use

NAME = "local-iteration"
SCHUR, ANDERSON = "schur", "anderson"
SMOOTH_POINTS = 6
"""Points of the polynomial that coupling forces are in a window, unless told otherwise."""

_DEPTH, _HALVINGS, _MEASURED = 6, 12, 1e-2
_ROUNDING = 1e-14


@dataclass(frozen=True)
class LocalIteration:
    """Windows, sub-solvers and updates of the local iteration.

    Parameters
    ----------
    window : float
        Length Δt of the windows.
    substeps : int or dict
        Sub-steps M of a window for the solvers "euler", "rk2" and "trapezoidal"; by name where they differ.  A method of :func:`holonome.solve` that is named here takes so many equal
        steps, otherwise it chooses its steps itself.
    solvers : str, Method, callable or dict
        How the subsystems are solved: "euler", "rk2" (Heun), "trapezoidal", a name of :func:`holonome.methods`, a :class:`holonome.Method`, or a :class:`WindowSolver`, which is a
        function ``(t, q, v, force) -> q, v``; by name where they differ.
    update : str, dict or None
        How λ is improved.  "schur": by (Σ S_j)⁻¹ times the residual.  "anderson": the same, accelerated, for subsystems whose S_j is not exact.  The name of a subsystem: the constraint is
        imposed on it, the splittings (3)–(4) and (55)–(56).  A dict of weights with sum one: a linear combination of these.  None: "schur", or "anderson" if there are black boxes.
    nodes : int, optional
        Let coupling forces be one polynomial in each window, given at this many points.  By default they are linear between the sub-steps if all solvers are of the paper's kind, as there, and
        a polynomial given at 6 points otherwise.
    rtol, atol : float
        An iteration has converged when no position and no λ changes by more than ``atol + rtol * size``.  (The paper: rtol = 0, atol = ε₀.)
    max_iterations : int
        A window is halved if it takes more.
    iterations : int, optional
        Exactly so many iterations in each window, converged or not.
    projection : bool
        Bring positions and velocities onto all constraints at the end of each window.
    threads : bool
        Solve the subsystems of an iteration in parallel threads.  The digits are the same.
    check : bool
        Refuse an update that will diverge, judged by its contraction rate at the start.

    Examples
    --------
    >>> import holonome as hn
    >>> hn.LocalIteration(window=0.1, solvers={"x": "euler", "y": "trapezoidal"}, substeps={"x": 50, "y": 10}).window
    0.1
    """

    window: float
    substeps: int | Mapping[str, int] = 10
    solvers: Any = "trapezoidal"
    update: str | Mapping[str, float] | None = None
    nodes: int | None = None
    rtol: float = 1e-10
    atol: float = 1e-12
    max_iterations: int = 50
    iterations: int | None = None
    projection: bool = True
    threads: bool = False
    check: bool = True

    def __post_init__(self) -> None:
        if not (isinstance(self.window, Real) and 0 < self.window < math.inf):
            raise ValueError(f"window: {self.window!r}; give a positive number")
        for argument in ("rtol", "atol"):
            value = getattr(self, argument)
            if not (isinstance(value, Real) and 0 <= value < math.inf):
                raise ValueError(f"{argument}: {value!r}; give a number that is not negative")
        if self.rtol == 0 == self.atol and self.iterations is None:
            raise ValueError("atol: 0 together with rtol=0; one of them must be positive")
        for argument, least in (("max_iterations", 2), ("iterations", 1), ("nodes", 2)):
            value = getattr(self, argument)
            if value is not None and not (isinstance(value, Integral) and value >= least):
                raise ValueError(f"{argument}: {value!r}; give a whole number of at least {least}")
        for value in self.substeps.values() if isinstance(self.substeps, Mapping) else [self.substeps]:
            if not (isinstance(value, Integral) and value >= 1):
                raise ValueError(f"substeps: {value!r}; give a positive whole number")


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
        By which factor the change of λ fell in each of these, on average after the first; NaN where that cannot be seen.
    changes : list of arrays
        For each window, (iterations × (subsystems + 1)): by how much the positions of each subsystem and λ changed, (6), (7), (9).
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
        Contraction rates at the start, in the limit of short windows, if the constraint is imposed on one subsystem alone; infinite where that cannot be done.
    success, status, message
        Whether the end was reached (0: yes, −1: no), and what happened in words.
    history : IterationHistory
        Window by window.
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
        return {name: self.states[:, self.coupled.n:][:, part].T for name, part in self.coupled.parts.items()}

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
        lines = [f"{'success' if self.success else 'FAILED'}: {self.message}",
                 f"  {coupled.name}: {count(len(coupled.subsystems), 'subsystem')} ({', '.join(coupled.subsystems)}), {count(coupled.m, 'coupling constraint')}; "
                 f"t = {self.t[0]:.6g} … {self.t[-1]:.6g}, {count(self.t.size, 'point')}"]
        if history.t.size:
            rates = history.contraction[np.isfinite(history.contraction)]
            rate = f", contraction {np.median(rates):.2g}" if rates.size else ""
            lines.append(f"  method {self.method}: {count(history.t.size, 'window')} ({len(history.rejected)} halved), {np.mean(history.iterations):.1f} iterations each{rate}")
        position, velocity = self.drift
        lines.append(f"  coupling holds to |g| ≤ {position:.1e}, |Gv| ≤ {velocity:.1e}")
        return "\n".join(lines)


def solve_coupled(coupled: CoupledSystem, t_span: Sequence[float], q0: Any, v0: Any = None, *, method: LocalIteration, t_eval: Any = None, repair: bool = False) -> CoupledSolution:
    """Simulate a coupled system, each subsystem on its own, by local iteration.

    Parameters
    ----------
    coupled
        What moves.
    t_span
        Initial and final time.
    q0, v0
        Initial positions and velocities (None: at rest): a dict by the names of the subsystems, or one vector for all of them.
    method
        Windows, solvers and update.
    t_eval
        Times at which the solution is wanted, by default the ends of the windows.
    repair
        Accept initial values that are far off the constraints and start from nearby consistent ones.

    Returns
    -------
    CoupledSolution

    Examples
    --------
    The model problem of Wang, Hou & Modnak, (16)–(18):

    >>> import holonome as hn
    >>> model = hn.CoupledSystem.linear(A=[[[4, 1], [1, 3]], [[5, 2], [2, 4]]], B=None, C=[[[-2, -1], [-1, -2]], [[-1, -2], [0, -2]]],
    ...                                 D=[[0, 1], [-2, 0]], r=[[6, 7], [10, 4]])
    >>> sol = hn.solve_coupled(model, (0, 10), [0, 0, 0, 0], method=hn.LocalIteration(window=0.1))
    >>> sol.success, bool(abs(sol.q["x"][1, -1] - 2 * sol.q["y"][0, -1]) < 1e-10)
    (True, True)
    """
    announce_first_use()
    if not isinstance(coupled, CoupledSystem):
        raise TypeError(f"coupled: {coupled!r} is not an hn.CoupledSystem" + ("; use hn.solve" if isinstance(coupled, System) else ""))
    if not isinstance(method, LocalIteration):
        raise TypeError(f"method: {method!r} is not an hn.LocalIteration; give hn.LocalIteration(window=...)")
    t0, t1 = time_span(t_span)
    q, v = _state("q0", q0, coupled), _state("v0", v0, coupled)
    wanted = None if t_eval is None else wanted_times(t_eval, t0, t1)
    with ThreadPoolExecutor(len(coupled.subsystems)) if method.threads else nullcontext() as pool:
        return _Iteration(coupled, method, t0, t1, q, v, repair, pool).run(wanted)


class _Iteration:
    """One run."""

    def __init__(self, coupled: CoupledSystem, method: LocalIteration, t0: float, t1: float, q: np.ndarray, v: np.ndarray, repair: bool, pool: ThreadPoolExecutor | None) -> None:
        self.coupled, self.method, self.pool, self.t0, self.t1 = coupled, method, pool, t0, t1
        self.parts = list(coupled.parts.values())
        self.bodies = {name: subsystem if isinstance(subsystem, BlackBox) else Driven(subsystem) for name, subsystem in coupled.subsystems.items()}
        self.solvers, self.mesh = _subsolvers(coupled, method, self.bodies)
        self.measured = {name: self._measured(name, t0, q, v) for name, body in self.bodies.items() if isinstance(body, BlackBox)}
        q, v = self._consistent(t0, q, v, repair)
        self.coupled = coupled.begin(t0, q, v)
        self.q, self.v = q, v
        coupling, S = self._schur(np.array([t0]), q[None], v[None])
        self.rho = _rates({name: S_j[0] for name, S_j in S.items()})
        self.update, self.weights = _chosen(method, self.bodies)
        if self.weights and method.check:
            _refuse_divergence(self.weights, {name: S_j[0] for name, S_j in S.items()}, self.rho)
        self.a, self.lam = self._first(coupling, S)

    # the start

    def _consistent(self, t: float, q0: np.ndarray, v0: np.ndarray, repair: bool) -> tuple[np.ndarray, np.ndarray]:
        self.coupled = self.coupled.begin(t, q0, v0)
        q, v = self._projected(t, q0, v0, 50)
        for argument, given, found in (("q0", q0, q), ("v0", v0, v)):
            moved = float(np.max(np.abs(found - given)))
            if not repair and moved > SMALL * max(np.max(np.abs(given)), np.max(np.abs(found))) and (argument == "q0" or np.any(v0)):
                coupling = self.coupled.at(np.array([t]), q0[None] if argument == "q0" else q[None], v0[None])
                residual = (coupling.g if argument == "q0" else coupling.w)[0]
                worst = int(np.argmax(np.abs(residual)))
                raise InconsistentStart(f"{argument} violates the constraints of the subsystems or the coupling ({self.coupled.constraint_names[worst]} = {residual[worst]:.3g}); consistent "
                                        f"values are {moved:.3g} away (correct it, or pass repair=True to start from them)")
        return q, v

    def _first(self, coupling: Coupling, S: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations and λ at the start: Σ D_j a_j + γ = 0."""
        t = np.array([self.t0])
        a = np.zeros(self.coupled.n)
        for (name, body), part in zip(self.bodies.items(), self.parts, strict=True):
            a[part] = self.free[name] if isinstance(body, BlackBox) else body.accelerations(t, self.q[None, part], self.v[None, part], np.zeros((1, body.n)))[0]
        residual = coupling.D[0] @ a + coupling.gamma[0]
        lam = np.linalg.pinv(sum(S.values())[0], rcond=1e-12) @ residual
        for name, part in self.coupled.parts.items():
            a[part] -= self._mobility(name, t, self.q[None], self.v[None])[0] @ (coupling.B[0, part] @ lam)
        return a, lam

    def _measured(self, name: str, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The mobility of a black box: its acceleration answers linearly to the force."""
        part, h = self.coupled.parts[name], _MEASURED * min(self.method.window, abs(self.t1 - self.t0)) * math.copysign(1.0, self.t1 - self.t0)
        times, y = t + h * self.mesh.points, np.concatenate([q[part], v[part]])
        n = y.size // 2
        free = self.solvers[name].motion(times, y, np.zeros((times.size, n))).a[0]
        self.free = {**getattr(self, "free", {}), name: free}
        return np.column_stack([self.solvers[name].motion(times, y, np.tile(unit, (times.size, 1))).a[0] - free for unit in np.eye(n)])

    # windows

    def run(self, wanted: np.ndarray | None) -> CoupledSolution:
        way, window = math.copysign(1.0, self.t1 - self.t0), self.method.window
        t, h, message, status = self.t0, window, "the end was reached", 0
        times, states, lams = [t], [np.concatenate([self.q, self.v])], [self.lam]
        accepted, changes, rejected = [], [], []
        while way * (self.t1 - t) > 0:
            left = abs(self.t1 - t)
            last = h >= left * (1 - 1e-10)
            end = self.t1 if last else t + way * h
            points = t + (end - t) * self.mesh.points
            points[-1] = end
            try:
                motions, lam, steps = self._window(points)
            except WindowFailed as failure:
                rejected.append((t, abs(end - t), str(failure)))
                if abs(end - t) <= window / 2**_HALVINGS:
                    message, status = f"the iteration failed at t = {t:.6g} even in windows of {abs(end - t):.2g}: {failure}", -1
                    break
                h = abs(end - t) / 2
                continue
            accepted.append((t, end - t, len(steps), _rate(steps[:, -1])))
            changes.append(steps)
            if wanted is not None:
                self._record(points, motions, lam, wanted[(way * wanted > way * t) & (way * wanted <= way * end)], times, states, lams)
            t = end
            self.q, self.v, self.a, self.lam = motions.q[-1], motions.v[-1], motions.a[-1], lam[-1]
            if self.method.projection:
                self.q, self.v = self._projected(t, self.q, self.v, 6)
            if wanted is None:
                times.append(t)
                states.append(np.concatenate([self.q, self.v]))
                lams.append(self.lam)
            h = min(window, 2 * h)
        if wanted is not None and not (wanted.size and wanted[0] == self.t0):
            times, states, lams = times[1:], states[1:], lams[1:]
        columns = np.array(accepted).reshape(-1, 4).T
        history = IterationHistory(columns[0], columns[1], columns[2].astype(int), columns[3], changes, rejected)
        shape = (len(times), 2 * self.coupled.n)
        return CoupledSolution(self.coupled, NAME, np.array(times), np.array(states).reshape(shape), np.array(lams).reshape(len(times), -1).T, self.rho, status, message, history)

    def _record(self, t: np.ndarray, motion: Motion, lam: np.ndarray, wanted: np.ndarray, times: list, states: list, lams: list) -> None:
        if not wanted.size:
            return
        way = math.copysign(1.0, t[-1] - t[0])
        q, v = CubicHermiteSpline(way * t, motion.q, way * motion.v)(way * wanted), CubicHermiteSpline(way * t, motion.v, way * motion.a)(way * wanted)
        for i, time in enumerate(wanted):
            if self.method.projection:
                q[i], v[i] = self._projected(time, q[i], v[i], 6)
            times.append(time)
            states.append(np.concatenate([q[i], v[i]]))
        lams += list(self.mesh.matrix((wanted - t[0]) / (t[-1] - t[0])) @ lam)

    def _window(self, t: np.ndarray) -> tuple[Motion, np.ndarray, np.ndarray]:
        """Iterate over one window: the motion, λ at its points, and the changes in each iteration."""
        method, points = self.method, t.size
        lam = np.tile(self.lam, (points, 1))
        motion = Motion(*[np.tile(x, (points, 1)) for x in (self.q, self.v, self.a)])                      # (23)
        coupling, S = self._schur(t, motion.q, motion.v)
        history: list[tuple[np.ndarray, np.ndarray]] = []
        changes: list[list[float]] = []
        for i in range(method.iterations or method.max_iterations):
            new_lam = self._imposed(t, motion, lam, coupling, S) if self.weights else self._improved(motion, lam, coupling, S, history) if i else lam
            new = self._solved(t, new_lam, coupling)
            changes.append([*[float(np.max(np.abs(new.q[:, part] - motion.q[:, part]))) for part in self.parts], float(np.max(np.abs(new_lam - lam)))])
            small = self._small(changes[-1], new, new_lam) and i > 0
            motion, lam = new, new_lam
            if small and method.iterations is None:
                return motion, lam, np.array(changes)                                                      # (10)
            coupling = self.coupled.at(t, motion.q, motion.v)
            if i == 0:
                coupling, S = self._schur(t, motion.q, motion.v)
            self._refuse_growth(changes)
        if method.iterations is None:
            raise WindowFailed(f"no convergence in {method.max_iterations} iterations, contraction {_rate(np.array(changes)[:, -1]):.2g}")
        return motion, lam, np.array(changes)

    def _small(self, change: list[float], motion: Motion, lam: np.ndarray) -> bool:
        sizes = [*[np.max(np.abs(motion.q[:, part])) for part in self.parts], np.max(np.abs(lam), initial=0.0)]
        return all(c <= self.method.atol + self.method.rtol * size for c, size in zip(change, sizes, strict=True))

    def _refuse_growth(self, changes: list[list[float]]) -> None:
        if self.method.iterations is not None:
            return
        lam = [change[-1] for change in changes[1:]]
        if not all(np.isfinite(changes[-1])) or (len(lam) > 5 and lam[-1] > 10 * lam[-4] > 10 * lam[0]):
            raise WindowFailed(f"the iteration diverges, contraction {_rate(np.array(changes)[:, -1]):.2g}")

    # one iteration

    def _solved(self, t: np.ndarray, lam: np.ndarray, coupling: Coupling) -> Motion:
        """All subsystems under the coupling forces −B_j λ."""
        tau = -np.einsum("knm,km->kn", coupling.B, lam)
        if not np.all(np.isfinite(tau)):
            raise WindowFailed("the coupling forces are not finite")

        def one(item: tuple[Subsolver, slice]) -> Motion:
            solver, part = item
            return solver.motion(t, np.concatenate([self.q[part], self.v[part]]), np.ascontiguousarray(tau[:, part]))

        items = list(zip(self.solvers.values(), self.parts, strict=True))
        motions = list(self.pool.map(one, items)) if self.pool else [one(item) for item in items]
        return Motion(*[np.hstack(columns) for columns in zip(*motions, strict=True)])

    def _improved(self, motion: Motion, lam: np.ndarray, coupling: Coupling, S: dict[str, np.ndarray], history: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """λ + (Σ S_j)⁻¹ (Σ D_j q_j″ + γ), or Anderson's combination of the last of these."""
        step = _product(self.inverse, _product(coupling.D, motion.a) + coupling.gamma)
        if self.update == SCHUR:
            return lam + step
        history.append((lam, step))
        del history[:-_DEPTH]
        if len(history) == 1:
            return lam + step
        dL, dF = (np.array([(b[k] - a[k]).ravel() for a, b in zip(history, history[1:], strict=False)]).T for k in (0, 1))
        gamma = np.linalg.lstsq(dF, step.ravel(), rcond=1e-10)[0]
        return lam + step - ((dL + dF) @ gamma).reshape(lam.shape)

    def _imposed(self, t: np.ndarray, motion: Motion, lam: np.ndarray, coupling: Coupling, S: dict[str, np.ndarray]) -> np.ndarray:
        """Σ_j w_j λ_j with λ_j from imposing the constraint on subsystem j while the others keep their accelerations: (3), (55)."""
        total = np.zeros_like(lam)
        for name, weight in self.weights.items():
            if weight == 0.0:
                continue
            part, inverse, mine = self.coupled.parts[name], np.linalg.inv(S[name]), lam
            others = _product(coupling.D, motion.a) - _product(coupling.D[:, :, part], motion.a[:, part]) + coupling.gamma
            y = np.concatenate([self.q[part], self.v[part]])
            for _ in range(self.method.max_iterations):
                tau = -_product(coupling.B[:, part], mine)
                a = self.solvers[name].motion(t, y, np.ascontiguousarray(tau)).a
                step = _product(inverse, _product(coupling.D[:, :, part], a) + others)
                mine = mine + step
                if np.max(np.abs(step)) <= _ROUNDING * max(1.0, float(np.max(np.abs(mine)))) or not np.all(np.isfinite(mine)):
                    break
            total += weight * mine
        return total

    def _mobility(self, name: str, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        body, part = self.bodies[name], self.coupled.parts[name]
        if isinstance(body, BlackBox):
            return np.broadcast_to(self.measured[name], (t.size, body.n, body.n))
        return body.mobility(t, np.ascontiguousarray(q[:, part]), np.ascontiguousarray(v[:, part]))

    def _schur(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[Coupling, dict[str, np.ndarray]]:
        """The coupling and S_j = D_j A_j⁻¹ B_j at many points."""
        coupling = self.coupled.at(t, q, v)
        S = {name: coupling.D[:, :, part] @ self._mobility(name, t, q, v) @ coupling.B[:, part] for name, part in self.coupled.parts.items()}
        self.inverse = np.linalg.pinv(sum(S.values()), rcond=1e-12)
        return coupling, S

    def _projected(self, t: float, q: np.ndarray, v: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Newton's method for all position constraints, then velocities; forces of the constraints do the work, so what they cannot move stays."""
        q, v, times, n = q.copy(), v.copy(), np.array([t]), self.coupled.n
        for _ in range(most):
            for (_, body), part in zip(self.bodies.items(), self.parts, strict=True):
                if isinstance(body, Driven):
                    step = body.landed(t, np.concatenate([q[part], v[part]]))
                    q[part] += step[: body.n]
                    v[part] += step[body.n:]
            coupling = self.coupled.at(times, q[None], v[None])
            mobility = np.zeros((n, n))
            for name, part in self.coupled.parts.items():
                mobility[part, part] = self._mobility(name, times, q[None], v[None])[0]
            D = coupling.D[0]
            way = mobility @ D.T @ np.linalg.pinv(D @ mobility @ D.T, rcond=1e-12)
            dq = -way @ coupling.g[0]
            q += dq
            after = self.coupled.at(times, q[None], v[None])
            v -= way @ after.w[0]
            if np.max(np.abs(dq)) <= _ROUNDING * max(np.max(np.abs(q)), 1e-300):
                return q, v
        size = np.max(np.abs(coupling.g[0]), initial=0.0)
        if size > 1e-8 * (1 + np.max(np.abs(D) @ np.abs(q), initial=0.0)) and most > 10:
            worst = self.coupled.constraint_names[int(np.argmax(np.abs(coupling.g[0])))]
            raise ContradictoryConstraints(f"q0: no position that satisfies the coupling was found; {size:.3g} remains of {worst}. Give a better q0")
        return q, v


def _product(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Matrix times vector at each point."""
    return np.einsum("kij,kj->ki", matrices, vectors)


def _rate(changes: np.ndarray) -> float:
    """By which factor changes fall, on average after the first."""
    changes = changes[1:]
    if changes.size < 2 or not changes[0] > 0 or not np.all(np.isfinite(changes)):
        return math.nan
    return float((changes[-1] / changes[0]) ** (1 / (changes.size - 1)))


def _chosen(method: LocalIteration, bodies: Mapping[str, Any]) -> tuple[str, dict[str, float]]:
    """The update, and the weights of the subsystems on which the constraint is imposed."""
    update = method.update
    if update is None:
        update = ANDERSON if any(isinstance(body, BlackBox) for body in bodies.values()) else SCHUR
    if isinstance(update, str) and update in bodies:
        return "imposed", {update: 1.0}
    if isinstance(update, Mapping):
        if unknown := [name for name in update if name not in bodies]:
            raise ValueError(f"update: {unknown[0]!r} is not a subsystem; there are {', '.join(bodies)}")
        if not math.isclose(sum(update.values()), 1.0, abs_tol=1e-9):
            raise ValueError(f"update: the weights {dict(update)} have the sum {sum(update.values()):g}; it must be 1")
        return "imposed", {name: float(weight) for name, weight in update.items()}
    if update not in (SCHUR, ANDERSON):
        raise ValueError(f"update: {update!r} is not known; choose 'schur', 'anderson', the name of a subsystem ({', '.join(bodies)}), or a dict of weights")
    return update, {}


def _rates(S: Mapping[str, np.ndarray]) -> dict[str, float]:
    """For each subsystem ρ(S_j⁻¹ Σ_{i≠j} S_i), by which the error falls if the constraint is imposed on it."""
    return {name: _weighted_rate({name: 1.0}, S) for name in S}


def _weighted_rate(weights: Mapping[str, float], S: Mapping[str, np.ndarray]) -> float:
    """ρ(1 − Σ_j w_j S_j⁻¹ Σ_i S_i)."""
    total = sum(S.values())
    error = np.eye(len(total))
    for name, weight in weights.items():
        if weight != 0.0:
            values = np.linalg.svd(S[name], compute_uv=False)
            if values[-1] <= 1e-12 * np.max(np.abs(total)):
                return math.inf
            error -= weight * np.linalg.solve(S[name], total)
    return float(np.max(np.abs(np.linalg.eigvals(error))))


def _refuse_divergence(weights: Mapping[str, float], S: Mapping[str, np.ndarray], rho: Mapping[str, float]) -> None:
    rate = _weighted_rate(weights, S)
    if rate < 1.0:
        return
    what = f"imposing the constraint on {next(iter(weights))!r}" if len(weights) == 1 else f"the weights {dict(weights)}"
    why = f"{what} diverges: the error grows by {rate:.3g} in each iteration" if rate < math.inf else \
        f"{what} is not possible: {next(name for name in weights if rho[name] == math.inf)!r} alone cannot meet all constraints"
    best = min(rho, key=lambda name: rho[name])
    remedy = f"use update={best!r}, whose error falls by {rho[best]:.3g} in each, or the default update='schur'" if rho[best] < 1.0 else \
        "the other splittings diverge as well; use the default update='schur'"
    raise ValueError(f"update: {why}; {remedy}")


def _subsolvers(coupled: CoupledSystem, method: LocalIteration, bodies: Mapping[str, Driven | BlackBox]) -> tuple[dict[str, Subsolver], Mesh]:
    """A solver for each subsystem, and the mesh on which they exchange forces."""
    for argument, given in (("solvers", method.solvers), ("substeps", method.substeps)):
        if isinstance(given, Mapping) and (unknown := [name for name in given if name not in bodies]):
            raise ValueError(f"{argument}: {unknown[0]!r} is not a subsystem; there are {', '.join(bodies)}")
    chosen: dict[str, Any] = {}
    for name, body in bodies.items():
        given = method.solvers.get(name, "trapezoidal") if isinstance(method.solvers, Mapping) else method.solvers
        chosen[name] = body.solver if isinstance(body, BlackBox) else given
    substeps = {name: method.substeps.get(name, 10) if isinstance(method.substeps, Mapping) else method.substeps for name in bodies}
    one_step = [name for name, solver in chosen.items() if isinstance(solver, str) and solver in ONE_STEP]
    if method.nodes is None and len(one_step) == len(chosen):
        mesh = Mesh.uniform(max(substeps.values()))
    else:
        mesh = Mesh.lobatto(method.nodes or SMOOTH_POINTS)
    solvers: dict[str, Subsolver] = {}
    for name, solver in chosen.items():
        body = bodies[name]
        if name in one_step and isinstance(body, Driven):
            solvers[name] = OneStep(body, solver, substeps[name], mesh)
        elif isinstance(solver, (str, Method)) and isinstance(body, Driven):
            try:
                resolve(solver, 1e-6)
            except ValueError as error:
                raise ValueError(f"solvers: {solver!r} for {name!r} is not known; choose one of {', '.join(ONE_STEP)}, {str(error).partition('one of ')[2]}") from None
            steps = method.substeps.get(name) if isinstance(method.substeps, Mapping) else None
            solvers[name] = Integrated(body, solver, steps, mesh, max(method.rtol / 100, 1e-14), max(method.atol / 100, 1e-15))
        elif callable(solver):
            solvers[name] = Called(name, solver, body, mesh)
        else:
            raise ValueError(f"solvers: {solver!r} for {name!r}; give a name, an hn.Method or a function (t, q, v, force)")
    return solvers, mesh


def _state(argument: str, given: Any, coupled: CoupledSystem) -> np.ndarray:
    if given is None and argument == "v0":
        return np.zeros(coupled.n)
    if not isinstance(given, Mapping):
        whole = vector(argument, given, coupled.n)
    else:
        if unknown := [name for name in given if name not in coupled.parts]:
            raise ValueError(f"{argument}: {unknown[0]!r} is not a subsystem; there are {', '.join(coupled.parts)}")
        if missing := [name for name in coupled.parts if name not in given]:
            raise ValueError(f"{argument}: {missing[0]!r} is missing; give all of {', '.join(coupled.parts)}")
        whole = np.concatenate([vector(f"{argument}[{name!r}]", given[name], coupled.subsystems[name].n) for name in coupled.parts])
    require_finite(**{argument: whole})
    return whole

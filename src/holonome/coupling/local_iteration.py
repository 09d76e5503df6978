"""Local iteration: each subsystem with its own solver and mesh, the coupling forces found by iterating over
one window of time after the other.

Wang, Hou & Modnak (2011) state it for two subsystems

    A_1 x″ + B_1 λ + C_1 x = r_1,      A_2 y″ + B_2 λ + C_2 y = r_2,      D_1 x″ + D_2 y″ = d                      (1)

On a window [t_n, t_{n+1}] with the i-th iterate known, their splitting (2) imposes the constraint on y,

    A_2 y″ + B_2 λ + C_2 y = r_2,   D_2 y″ = d − D_1 x″ of the i-th iterate       gives y, λ of the next           (3)
    A_1 x″ + C_1 x = r_1 − B_1 λ                                                  gives x                           (4)

until the changes of x, y and λ are below a tolerance (10); (55), (56) are the same with x and y exchanged.
For short windows the error of λ is multiplied by −S_2⁻¹S_1 in each iteration, S_j = D_j A_j⁻¹ B_j, so one of
the two may diverge, and there are systems where both do.  The update "schur",

    λ ← λ + (Σ_j S_j)⁻¹ (Σ_j D_j q_j″ + γ)                 0 = Σ_j D_j q_j″ + γ the constraint, differentiated twice

is Newton's method in the limit of short windows, so it converges for every system there; "newton", the
default, takes the length of the window into account as well. The constraint may be nonlinear (57)–(59), and
there may be any number of subsystems.

References
----------
.. [1] J. Wang, G. Hou, C. Modnak, "An iterative method for constrained dynamic problems – a case study" (2011).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from holonome.coupling.assembly import Assembly, independent, inverse, product, rate, scale, total
from holonome.coupling.coupled import BlackBox, CoupledSystem, Coupling
from holonome.coupling.result import CoupledSolution, IterationHistory
from holonome.coupling.subsolvers import Driven, Motion, WindowFailed, subsolvers
from holonome.problem.vectors import require_finite, vector
from holonome.errors import ModelError
from holonome.machine.interruption import Interruption
from holonome.problem.system import System
from holonome.solving.first_use import announce_first_use
from holonome.solving.solve import time_span, wanted_times

NAME = "local-iteration"
NEWTON, SCHUR, ANDERSON, IMPOSED = "newton", "schur", "anderson", "imposed"
_DEPTH, _HALVINGS, _ROUNDING, _NOISE = 4, 8, 1e-14, 1e-6
_LARGEST_CORRECTION = 0.1
_SLOW = 5
"""Iterations after which black boxes are measured anew."""


@dataclass(frozen=True)
class LocalIteration:
    """Windows, sub-solvers and updates of the local iteration.

    Parameters
    ----------
    window : float
        Length Δt of the windows.
    substeps : int or dict
        Sub-steps M of a window for the solvers "euler", "rk2" and "trapezoidal"; by name where they differ.
        A method of :func:`holonome.solve` takes so many equal steps if it is named here, otherwise it chooses
        its steps itself.
    solvers : str, Method, callable or dict
        How the subsystems are solved: "euler", "rk2" (Heun), "trapezoidal", a name of
        :func:`holonome.methods`, a :class:`holonome.Method`, or a :class:`WindowSolver`, which is a function
        ``(t, q, v, force) -> q, v``; by name where they differ.
    update : str, dict or None
        How λ is improved.  "newton": by Newton's method for the whole window.  "schur": by (Σ S_j)⁻¹ times
        the residual, point by point, the limit of that for short windows; cheaper, but more iterations.
        "anderson": as "newton" with Anderson's acceleration, for subsystems that hide their equations.  The
        name of a subsystem: the constraint is imposed on it, the splittings (3)–(4) and (55)–(56).  A dict of
        weights with sum one: a linear combination of these.  None: "newton", or "anderson" with black boxes.
    nodes : int, optional
        Let coupling forces be one polynomial in each window, given at this many points.  By default they are
        linear between the sub-steps if all solvers are of the paper's kind, as there, and a polynomial given
        at 6 points otherwise.
    rtol, atol : float
        An iteration has converged when no position and no λ changes by more than ``atol + rtol * size``.
        (The paper: rtol = 0, atol = ε₀.)
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
            if not (isinstance(value, Real) and 0 <= float(value) < math.inf):
                raise ValueError(f"{argument}: {value!r}; give a number that is not negative")
        if self.rtol == 0 == self.atol and self.iterations is None:
            raise ValueError("atol: 0 together with rtol=0; one of them must be positive")
        for argument, least in (("max_iterations", 2), ("iterations", 1), ("nodes", 2)):
            value = getattr(self, argument)
            if value is not None and not (isinstance(value, Integral) and int(value) >= least):
                raise ValueError(f"{argument}: {value!r}; give a whole number of at least {least}")
        for value in self.substeps.values() if isinstance(self.substeps, Mapping) else [self.substeps]:
            if not (isinstance(value, Integral) and value >= 1):
                raise ValueError(f"substeps: {value!r}; give a positive whole number")


def solve_coupled(
    coupled: CoupledSystem,
    t_span: Sequence[float],
    q0: Any,
    v0: Any = None,
    *,
    method: LocalIteration,
    t_eval: Any = None,
    repair: bool = False,
) -> CoupledSolution:
    """Simulate a coupled system, each subsystem on its own, by local iteration.

    Parameters
    ----------
    coupled
        What moves.
    t_span
        Initial and final time.
    q0, v0
        Initial positions and velocities (None: at rest): a dict by the names of the subsystems, or one vector
        for all of them.
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
        raise TypeError(
            f"coupled: {coupled!r} is not an hn.CoupledSystem"
            + ("; use hn.solve" if isinstance(coupled, System) else "")
        )
    if not isinstance(method, LocalIteration):
        raise TypeError(f"method: {method!r} is not an hn.LocalIteration; give hn.LocalIteration(window=...)")
    t0, t1 = time_span(t_span)
    q, v = _state("q0", q0, coupled), _state("v0", v0, coupled)
    wanted = None if t_eval is None else wanted_times(t_eval, t0, t1)
    with (
        Interruption(),
        ThreadPoolExecutor(len(coupled.subsystems)) if method.threads else nullcontext() as pool,
    ):
        return _Run(coupled, method, t0, t1, q, v, repair, pool).to_the_end(wanted)


class _Run:
    """One run: its state, and what became of it so far."""

    def __init__(
        self,
        coupled: CoupledSystem,
        method: LocalIteration,
        t0: float,
        t1: float,
        q0: np.ndarray,
        v0: np.ndarray,
        repair: bool,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        self.method, self.pool, self.t0, self.t1 = method, pool, t0, t1
        bodies = {
            name: subsystem if isinstance(subsystem, BlackBox) else Driven(name, subsystem)
            for name, subsystem in coupled.subsystems.items()
        }
        self.update, self.weights = _chosen(method.update, bodies)
        self.solvers, self.mesh = subsolvers(
            bodies, method.solvers, method.substeps, method.nodes, method.rtol / 100, method.atol / 100
        )
        self.assembly = Assembly(coupled, bodies, self.solvers, self.mesh)
        self.assembly.measure(t0, q0, v0, math.copysign(min(method.window, abs(t1 - t0)), t1 - t0))
        self.q, self.v = self.assembly.consistent(t0, q0, v0, repair)
        self.coupled = self.assembly.coupled = coupled.begin(t0, self.q, self.v)
        self.a, self.lam, S = self.assembly.first(t0, self.q, self.v)
        self.rho, self.independent = {name: rate({name: 1.0}, S) for name in S}, independent(total(S))
        if self.weights:
            _refuse_divergence(self.weights, rate(self.weights, S), self.rho, method.check)
        self.accepted: list[tuple[float, float, int, float]] = []
        self.changes: list[np.ndarray] = []
        self.rejected: list[tuple[float, float, str]] = []

    def to_the_end(self, wanted: np.ndarray | None) -> CoupledSolution:
        """Window after window; those that do not converge are halved."""
        way, longest = math.copysign(1.0, self.t1 - self.t0), self.method.window
        t, h, slow, status, message = self.t0, longest, False, 0, "the end was reached"
        points = [(t, self.q, self.v, self.lam)] if wanted is None or t in wanted else []
        while t != self.t1:
            end = self.t1 if h >= abs(self.t1 - t) * (1 - 1e-10) else t + way * h
            times = t + (end - t) * self.mesh.points
            times[-1] = end
            if slow:
                self.assembly.measure(t, self.q, self.v, end - t)
            try:
                motion, lam, changes = self._window(times)
                q, v = self._landed(end, motion)
            except (WindowFailed, ModelError, np.linalg.LinAlgError) as failure:
                h, slow = abs(end - t) / 2, True
                self.rejected.append((t, 2 * h, str(failure)))
                if Interruption.requested or h < longest / 2**_HALVINGS:
                    status, message = -1, f"stopped at t = {t:.6g}, in a window of {2 * h:.2g}: {failure}"
                    break
                continue
            self.accepted.append((t, end - t, len(changes), _contraction(changes[:, -1])))
            self.changes.append(changes)
            slow = len(changes) > _SLOW
            if wanted is not None:
                points += self._between(
                    times, motion, lam, wanted[(way * wanted > way * t) & (way * wanted <= way * end)]
                )
            t, h = end, min(longest, 2 * h) if len(changes) <= self.method.max_iterations / 2 else h
            self.q, self.v, self.a, self.lam = q, v, motion.a[-1], lam[-1]
            if wanted is None:
                points.append((t, self.q, self.v, self.lam))
            if Interruption.requested and t != self.t1:
                status, message = -1, f"interrupted at t = {t:.6g}"
                break
        columns = np.array(self.accepted).reshape(-1, 4).T
        history = IterationHistory(
            columns[0], columns[1], columns[2].astype(int), columns[3], self.changes, self.rejected
        )
        sizes = (1, self.coupled.n, self.coupled.n, self.coupled.m)
        times, q, v, lams = (
            np.array([point[i] for point in points]).reshape(len(points), size)
            for i, size in enumerate(sizes)
        )
        return CoupledSolution(
            self.coupled, NAME, times[:, 0], np.hstack([q, v]), lams.T, self.rho, status, message, history
        )

    def _landed(self, t: float, motion: Motion) -> tuple[np.ndarray, np.ndarray]:
        """The end of a window, projected.  A correction that is not small beside the motion says that the
        coupling forces cannot follow what happens in the window.
        """
        if not self.method.projection:
            return motion.q[-1], motion.v[-1]
        q, v = self.assembly.projected(t, motion.q[-1], motion.v[-1])
        pairs = (
            (("positions", motion.q[-1], motion.q, q), ("velocities", motion.v[-1], motion.v, v))
            if self.method.iterations is None
            else ()
        )
        for what, end, all_points, landed in pairs:
            if _largest(landed - end) > _LARGEST_CORRECTION * _largest(
                all_points - all_points[0]
            ) + _NOISE * _largest(end):
                raise WindowFailed(
                    f"the coupling forces do not hold the {what} together between the points where they are "
                    "given"
                )
        return q, v

    def _between(
        self, t: np.ndarray, motion: Motion, lam: np.ndarray, wanted: np.ndarray
    ) -> list[tuple[float, np.ndarray, np.ndarray, np.ndarray]]:
        """Points inside a window."""
        q, v = self.mesh.between(t, motion, wanted)
        lam = self.mesh.matrix((wanted - t[0]) / (t[-1] - t[0])) @ lam
        if self.method.projection:
            for i, time in enumerate(wanted):
                q[i], v[i] = self.assembly.projected(time, q[i], v[i])
        return list(zip(wanted, q, v, lam, strict=True))

    def _window(self, t: np.ndarray) -> tuple[Motion, np.ndarray, np.ndarray]:
        """Iterate over one window: the motion, λ at its points, and the changes in each iteration."""
        method, guess = self.method, np.ones((t.size, 1))
        motion, lam = Motion(guess * self.q, guess * self.v, guess * self.a), guess * self.lam  # (23)
        coupling, tau = self.coupled.at(t, motion.q, motion.v), np.zeros_like(motion.q)
        self.memory: list[Any] = []
        changes: list[list[float]] = []
        for i in range(method.iterations or method.max_iterations):
            if i == 0 and not self.weights:
                improved, B = lam, coupling.B
            else:
                improved, B = self._improved(t, motion, lam, tau, coupling)
            tau = -product(B, improved)
            moved = self._solved(t, tau)
            parts = self.coupled.parts.values()
            changes.append(
                [
                    *[_largest(moved.q[:, part] - motion.q[:, part]) for part in parts],
                    _largest(improved - lam),
                ]
            )  # (6), (7), (9)
            motion, lam = moved, improved
            if method.iterations is None:
                if i > 0 and self._converged(changes, motion, lam):  # (10)
                    return motion, lam, np.array(changes)
                _refuse_growth(changes)
            coupling = self.coupled.at(t, motion.q, motion.v)
        if method.iterations is None:
            raise WindowFailed(
                f"no convergence in {method.max_iterations} iterations, contraction "
                f"{_contraction(np.array(changes)[:, -1]):.2g}"
            )
        return motion, lam, np.array(changes)

    def _converged(self, changes: list[list[float]], motion: Motion, lam: np.ndarray) -> bool:
        """Changes below the tolerance, or small ones that do not fall any more: what the functions of the
        user, or differences of them, are accurate to.
        """
        sizes = [*[_largest(motion.q[:, part]) for part in self.coupled.parts.values()], _largest(lam)]
        if all(
            change <= self.method.atol + self.method.rtol * size
            for change, size in zip(changes[-1], sizes, strict=True)
        ):
            return True
        last = [change[-1] for change in changes[-5:]]
        small = all(change <= _NOISE * size for change, size in zip(changes[-1], sizes, strict=True))
        return small and len(last) == 5 and min(last[2:]) > 0.5 * min(last[:2])

    def _solved(self, t: np.ndarray, tau: np.ndarray) -> Motion:
        """All subsystems under the coupling forces τ."""
        if not np.all(np.isfinite(tau)):
            raise WindowFailed("the coupling forces are not finite")

        def one(name: str) -> Motion:
            return self._alone(name, t, tau[:, self.coupled.parts[name]])

        motions = (
            list(map(one, self.solvers)) if self.pool is None else list(self.pool.map(one, self.solvers))
        )
        return Motion(*[np.hstack(columns) for columns in zip(*motions, strict=True)])

    def _alone(self, name: str, t: np.ndarray, tau: np.ndarray) -> Motion:
        part = self.coupled.parts[name]
        return self.solvers[name].motion(
            t, np.concatenate([self.q[part], self.v[part]]), np.ascontiguousarray(tau)
        )

    # updates of λ

    def _improved(
        self, t: np.ndarray, motion: Motion, lam: np.ndarray, tau: np.ndarray, coupling: Coupling
    ) -> tuple[np.ndarray, np.ndarray]:
        """The next λ, and B with which it acts."""
        if self.weights:
            return self._imposed(t, motion, lam, coupling), coupling.B
        residual = product(coupling.D, motion.a) + coupling.gamma
        if self.update == SCHUR:
            if not self.memory:
                self.memory.append(
                    inverse(
                        total(self.assembly.schur(self.assembly.mobilities(t, motion.q, motion.v), coupling))
                    )
                )
            return lam + product(self.memory[0], residual), coupling.B
        step, B = self._newton(t, motion, lam, tau, coupling, residual)
        if self.update == ANDERSON:
            self.memory = [*self.memory[1 - _DEPTH :], (lam, step)]
            step = _accelerated(self.memory)
        return lam + step, B

    def _imposed(self, t: np.ndarray, motion: Motion, lam: np.ndarray, coupling: Coupling) -> np.ndarray:
        """Σ_j w_j λ_j with λ_j from imposing the constraint on subsystem j while the others keep their
        accelerations: (3), (55).

        That is the update "schur" for this subsystem alone, repeated until nothing changes.
        """
        if not self.memory:
            S = self.assembly.schur(self.assembly.mobilities(t, motion.q, motion.v), coupling)
            self.memory.append({name: np.linalg.inv(S[name]) for name in self.weights})
        sum_of_all = np.zeros_like(lam)
        for name, weight in self.weights.items():
            part, S_inverse, own = self.coupled.parts[name], self.memory[0][name], lam
            others = (
                product(coupling.D, motion.a)
                - product(coupling.D[:, :, part], motion.a[:, part])
                + coupling.gamma
            )
            for _ in range(self.method.max_iterations):
                a = self._alone(name, t, -product(coupling.B[:, part], own)).a
                step = product(S_inverse, product(coupling.D[:, :, part], a) + others)
                own = own + step
                if not _largest(step) > _ROUNDING * max(1.0, _largest(own)):
                    break
            sum_of_all += weight * own
        return sum_of_all

    def _newton(
        self,
        t: np.ndarray,
        motion: Motion,
        lam: np.ndarray,
        tau: np.ndarray,
        coupling: Coupling,
        residual: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The step of Newton's method for λ in the whole window, and B after it.  With δv = ∫δa, δq = ∫δv and
        the mobilities X, the linearised equations are

            δa = (∂a/∂q − X ∂(Bλ)/∂q) δq + ∂a/∂v δv − X B δλ − X (B λ + τ),     D δa + ∂(D a + γ)/∂q δq + ∂γ/∂v δv = −(D a + γ),

        solved from point to point with trapezoidal integrals.  For short windows they become δa = −X B δλ, D
        δa = −(D a + γ), which is the update "schur".
        """
        points, n, m = t.size, self.coupled.n, self.coupled.m
        X = self.assembly.mobilities(t, motion.q, motion.v)
        a_q, a_v = self.assembly.sensitivities(t, motion, tau)
        force_q, level_q, level_v = self.assembly.coupling_derivatives(t, motion, lam, coupling)
        a_q -= X @ force_q
        h = np.diff(t, prepend=t[0])
        half, quarter = h[:, None, None] / 2, h[:, None, None] ** 2 / 4
        size = scale(coupling.D @ X @ coupling.B)
        rows, columns = 1 / size[:, :, None], 1 / size[:, None, :]
        level_q, level_v = rows * level_q, rows * level_v
        matrix = np.block(
            [
                [np.eye(n) - quarter * a_q - half * a_v, X @ coupling.B * columns],
                [rows * coupling.D + quarter * level_q + half * level_v, np.zeros((points, m, m))],
            ]
        )
        solution = np.linalg.inv(matrix) if self.independent else np.linalg.pinv(matrix, rcond=1e-12)
        right = np.hstack([-product(X, product(coupling.B, lam) + tau), -residual / size])
        along_q, along_v = np.concatenate([a_q, -level_q], axis=1), np.concatenate([a_v, -level_v], axis=1)
        dq, dv, step = np.zeros((points, n)), np.zeros((points, n)), np.zeros((points, n + m))
        for k in range(points):
            before = max(k - 1, 0)
            v = dv[before] + h[k] / 2 * step[before, :n]
            q = dq[before] + h[k] / 2 * (dv[before] + v)
            step[k] = solution[k] @ (right[k] + along_q[k] @ q + along_v[k] @ v)
            dq[k], dv[k] = q + h[k] ** 2 / 4 * step[k, :n], v + h[k] / 2 * step[k, :n]
        return step[:, n:] / size, self.coupled.at(t, motion.q + dq, motion.v + dv).B


def _accelerated(memory: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Anderson's step from the last pairs of λ and the step that was meant for it."""
    step = memory[-1][1]
    if len(memory) == 1:
        return step
    dL, dF = (np.array([(b[k] - a[k]).ravel() for a, b in pairwise(memory)]).T for k in (0, 1))
    weights = np.linalg.lstsq(dF, step.ravel(), rcond=1e-10)[0]
    return step - ((dL + dF) @ weights).reshape(step.shape)


def _largest(values: np.ndarray) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _contraction(changes: np.ndarray) -> float:
    """By which factor changes fall, on average after the first."""
    changes = changes[1:]
    if changes.size < 2 or not changes[0] > 0 or not np.all(np.isfinite(changes)):
        return math.nan
    return float((changes[-1] / changes[0]) ** (1 / (changes.size - 1)))


def _refuse_growth(changes: list[list[float]]) -> None:
    lam = [change[-1] for change in changes[1:]]
    if not all(map(math.isfinite, changes[-1])) or (len(lam) > 5 and lam[-1] > 10 * lam[-4] > 10 * lam[0]):
        raise WindowFailed(
            f"the iteration diverges, contraction {_contraction(np.array(changes)[:, -1]):.2g}"
        )


def _chosen(
    update: str | Mapping[str, float] | None, bodies: Mapping[str, Any]
) -> tuple[str, dict[str, float]]:
    """The update, and the weights of the subsystems on which the constraint is imposed."""
    if update is None:
        update = ANDERSON if any(isinstance(body, BlackBox) for body in bodies.values()) else NEWTON
    if isinstance(update, str) and update in bodies:
        return IMPOSED, {update: 1.0}
    if isinstance(update, Mapping):
        if unknown := [name for name in update if name not in bodies]:
            raise ValueError(f"update: {unknown[0]!r} is not a subsystem; there are {', '.join(bodies)}")
        if not math.isclose(sum(update.values()), 1.0, abs_tol=1e-9):
            raise ValueError(
                f"update: the weights {dict(update)} have the sum {sum(update.values()):g}; it must be 1"
            )
        return IMPOSED, {name: float(weight) for name, weight in update.items() if weight != 0.0}
    if update not in (NEWTON, SCHUR, ANDERSON):
        raise ValueError(
            f"update: {update!r} is not known; choose 'newton', 'schur', 'anderson', the name of a subsystem "
            f"({', '.join(bodies)}), or a dict of weights"
        )
    return update, {}


def _refuse_divergence(
    weights: Mapping[str, float], expected: float, rho: Mapping[str, float], check: bool
) -> None:
    if expected < 1.0 or (expected < math.inf and not check):
        return
    what = (
        f"imposing the constraint on {next(iter(weights))!r}"
        if len(weights) == 1
        else f"the weights {dict(weights)}"
    )
    why = (
        f"{what} diverges: the error grows by {expected:.3g} in each iteration"
        if expected < math.inf
        else f"{what} is not possible: {next(name for name in weights if rho[name] == math.inf)!r} alone "
        "cannot meet all constraints"
    )
    best = min(rho, key=lambda name: rho[name])
    remedy = (
        f"use update={best!r}, whose error falls by {rho[best]:.3g} in each, or the default, which always "
        "converges in short windows"
        if rho[best] < 1.0
        else "imposing it on any other subsystem does not converge either; use the default, which does in "
        "short windows"
    )
    raise ValueError(f"update: {why}; {remedy}")


def _state(argument: str, given: Any, coupled: CoupledSystem) -> np.ndarray:
    if given is None and argument == "v0":
        return np.zeros(coupled.n)
    if not isinstance(given, Mapping):
        whole = vector(argument, given, coupled.n)
    else:
        if unknown := [name for name in given if name not in coupled.parts]:
            raise ValueError(
                f"{argument}: {unknown[0]!r} is not a subsystem; there are {', '.join(coupled.parts)}"
            )
        if missing := [name for name in coupled.parts if name not in given]:
            raise ValueError(f"{argument}: {missing[0]!r} is missing; give all of {', '.join(coupled.parts)}")
        whole = np.concatenate(
            [
                vector(f"{argument}[{name!r}]", given[name], coupled.subsystems[name].n)
                for name in coupled.parts
            ]
        )
    require_finite(**{argument: whole})
    return whole

"""Runs of general problems of index 2 and 3 by sequential regularization, and what comes out of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from holonome.dynamics.start import vector
from holonome.errors import ModelError
from holonome.integrators import loop as run
from holonome.machine.interruption import Interruption
from holonome.machine.kernel import Kernel, kernel
from holonome.problem.event import Event
from holonome.problem.general import HigherIndex
from holonome.results.solution import rank_fell
from holonome.solving.sequential import ExplicitSequential, ImplicitSequential


@dataclass(eq=False, repr=False)
class HigherIndexSolution:
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
        Where GB became singular on the way.
    success, status, message, steps, rejections, nfev, iterations, eps
        What happened.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> problem = hn.Index2System(lambda t: np.array([np.cos(t), 0.0]), np.array([0.0, 1.0]), lambda t, x: x[1] - x[0], n=2)
    >>> sol = hn.solve(problem, (0, 1), [0, 0], dense_output=True)
    >>> sol.success, bool(abs(sol.sol(0.5)[1] - np.sin(0.5)) < 1e-4), bool(abs(sol.y[0, -1] + np.cos(1)) < 1e-3)
    (True, True, True)
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
    iterations: int
    eps: np.ndarray
    carries_y: bool = field(default=True)
    t_events: list[np.ndarray] | None = None
    event_states: list[np.ndarray] | None = None
    sol: HigherIndexOutput | None = None
    singular_times: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def success(self) -> bool:
        return self.status >= 0

    @property
    def x(self) -> np.ndarray:
        return self.states[:, : self.system.n].T

    @property
    def v(self) -> np.ndarray:
        return self.states[:, self.system.n : self.system.order * self.system.n].T

    @property
    def x_events(self) -> list[np.ndarray] | None:
        return (
            None
            if self.event_states is None
            else [states[:, : self.system.n] for states in self.event_states]
        )

    @property
    def v_events(self) -> list[np.ndarray] | None:
        return (
            None
            if self.event_states is None
            else [
                states[:, self.system.n : self.system.order * self.system.n] for states in self.event_states
            ]
        )

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
        return f"HigherIndexSolution(system={self.system.name!r}, method={self.method!r}, points={self.t.size}, success={self.success})"

    def __str__(self) -> str:
        span = f"t = {self.t[0]:.6g} … {self.t[-1]:.6g}" if self.t.size else "no points"
        return (
            f"{'success' if self.success else 'FAILED'}: {self.message}\n  {self.system!r}; {span}, "
            f"{self.t.size} points\n"
            f"  method {self.method}: {self.steps} steps ({self.rejections} rejected), {self.nfev} "
            f"evaluations\n  constraints hold to |g| ≤ {self.drift:.1e}"
        )


class HigherIndexOutput:
    """The solution at any time of a run: ``x = sol.sol(t)``, for index 3 ``x, v = sol.sol(t)``."""

    def __init__(self, output: Any, system: HigherIndex) -> None:
        self._output, self._system = output, system

    def __call__(self, t: Any) -> Any:
        n, states = self._system.n, self._output.rows(t).T
        parts = tuple(
            states[i * n : (i + 1) * n, 0] if np.ndim(t) == 0 else states[i * n : (i + 1) * n]
            for i in range(self._system.order)
        )
        return parts if self._system.order == 2 else parts[0]


@dataclass
class _Task:
    """What a stepper has to know for its dense output."""

    dense: bool
    t0: float
    rows: list[np.ndarray]

    def steps(self) -> np.ndarray:
        return np.concatenate(self.rows)


def _event_kernel(system: HigherIndex, events: Sequence[Event]) -> Kernel:
    s = system.symbols
    values = [
        system._trace(f"events[{i}]", event.function, system.f_arguments) for i, event in enumerate(events)
    ]
    for i, (value, shape) in enumerate(values):
        if value.numel() != 1:
            raise ModelError(f"events[{i}] has shape {shape}; expected a number")
    return kernel(
        ca.densify(ca.vertcat(*[value for value, _ in values])),
        [s["t"], system.equations.state, ca.SX(0, 1), s["p"]],
    )


def solve_higher_index(
    stepper: ExplicitSequential | ImplicitSequential,
    name: str,
    t0: float,
    t1: float,
    x0: Any,
    v0: Any,
    rtol: float,
    atol: Any,
    t_eval: np.ndarray | None,
    dense: bool,
    events: list[Event],
    first_step: float | None,
    max_step: float,
    max_steps: int,
) -> HigherIndexSolution:
    """One run; see :func:`holonome.solve`."""
    system: HigherIndex = stepper.system  # type: ignore[assignment]
    state = vector("x0", x0, system.n)
    if system.order == 2:
        state = np.concatenate([state, np.zeros(system.n) if v0 is None else vector("v0", v0, system.n)])
    elif v0 is not None:
        raise ValueError("v0: a problem of index 2 has no velocities; leave it out")
    _require_consistent(system, t0, state)
    memory, context, size = stepper.memory(len(events)), system.context(), state.size
    memory[[run.T, run.T_START, run.T_OLD]] = t0
    memory[run.T_END], memory[run.RTOL], memory[run.H_MAX], memory[run.FIRST_STEP] = (
        t1,
        rtol,
        max_step,
        first_step or 0.0,
    )
    at = int(memory[run.ATOL])
    memory[at : at + size] = atol
    stepper.fill(memory, context, t0, t1, state, max_steps)
    at = int(memory[run.Y])
    memory[at : at + size] = state
    memory[at + size : at + stepper.columns] = stepper.y0
    compiled = _event_kernel(system, events) if events else None
    if compiled is not None:
        memory[run.EVENT_KERNEL] = compiled.address
        for i, event in enumerate(events):
            memory[int(memory[run.EVENT_DIRECTION]) + i], memory[int(memory[run.EVENT_TERMINAL]) + i] = (
                event.direction,
                float(event.terminal or 0),
            )
    counts = np.zeros(run.COUNTS, np.int64)
    (
        counts[run.MAX_STEPS],
        counts[run.WAY],
        counts[run.KEEP_POINTS],
        counts[run.KEEP_STEPS],
        counts[run.EVENTS],
    ) = max_steps, stepper.way, t_eval is None, dense, len(events)
    wanted = np.zeros(0) if t_eval is None else t_eval
    counts[run.EVALS], counts[run.NEXT_EVAL] = wanted.size, wanted.size > 0 and wanted[0] == t0
    rows, nothing, task = 2048, np.zeros((1, 8)), _Task(dense, t0, [])
    chunks = (
        [np.concatenate([[t0], memory[at : at + stepper.columns]])[np.newaxis]]
        if counts[run.KEEP_POINTS] or counts[run.NEXT_EVAL]
        else []
    )
    code, found_rows = run.FULL, [np.empty((0, 2 + stepper.columns))]
    with Interruption() as interruption:
        while code == run.FULL and not interruption.requested:
            points, rejections = (
                np.empty((rows, 1 + stepper.columns)),
                np.empty((rows, run.REJECTION_COLUMNS)),
            )
            steps = np.empty((rows, run.STEP_COLUMNS + stepper.step_columns(task))) if dense else nothing  # type: ignore[arg-type]
            found = np.empty((64 + len(events), 2 + stepper.columns))
            counts[[run.POINTS, run.REJECTIONS, run.STEPS, run.FOUND]] = 0
            counts[run.BUDGET], begin = rows, time.perf_counter()
            code = stepper.advance(memory, context, counts, points, steps, rejections, found, wanted)
            chunks.append(points[: counts[run.POINTS]].copy())
            task.rows.append(steps[: counts[run.STEPS]].copy())
            found_rows.append(found[: counts[run.FOUND]].copy())
            if time.perf_counter() - begin < 0.05:
                rows = min(2 * rows, 65_536)
    points = np.concatenate(chunks) if chunks else np.zeros((0, 1 + stepper.columns))
    solution = HigherIndexSolution(
        system,
        name,
        points[:, 0],
        points[:, 1:],
        {run.DONE: 0, run.TERMINATED: 1}.get(code, -1),
        _message(stepper, memory, code, max_steps),
        int(counts[run.ACCEPTED]),
        int(counts[run.REJECTED]),
        int(counts[run.NFEV]),
        int(memory[stepper.loop.ACTIVE]),
        stepper.eps,
        stepper.srm.variant != "singular",
    )
    happened = np.concatenate(found_rows)
    solution.singular_times = happened[
        (happened[:, 0] < 0) & (stepper.way * happened[:, 1] <= stepper.way * memory[run.T]), 1
    ]
    if solution.singular_times.size:
        solution.message += rank_fell(solution.singular_times)
    if events:
        solution.t_events = [happened[happened[:, 0] == i, 1] for i in range(len(events))]
        solution.event_states = [happened[happened[:, 0] == i, 2:] for i in range(len(events))]
    if dense and counts[run.ACCEPTED]:
        solution.sol = HigherIndexOutput(stepper.dense_output(task, points), system)  # type: ignore[arg-type]
    return solution


def _message(
    stepper: ExplicitSequential | ImplicitSequential, memory: np.ndarray, code: int, max_steps: int
) -> str:
    """What happened, in words."""
    t = float(memory[run.T])
    text = {
        run.DONE: "the end was reached",
        run.TERMINATED: f"stopped by an event at t = {t:.9g}",
        run.FULL: f"interrupted at t = {t:.6g}",
        run.CANNOT_START: f"cannot start at t = {t:.6g}: GB is singular there",
        run.TOO_MANY_STEPS: f"stopped at t = {t:.6g} after max_steps = {max_steps} steps",
    }.get(
        code,
        f"stopped at t = {t:.6g}: "
        f"{stepper.why_stuck(memory) or f'the step size fell to {memory[run.H]:.1e}; a singular position, or a solution that ends'}",
    )
    return f"{text} ({stepper.remark(memory)})"


def _require_consistent(system: HigherIndex, t0: float, state: np.ndarray) -> None:
    """The start must satisfy g = 0 (2.3b), and for index 3 g′ = 0 (4.3b)."""
    if not np.all(np.isfinite(state)):
        raise ValueError("x0: not finite")
    g, w = (np.array(value).ravel() for value in system.values(t0, state, system.parameters.flat))
    for name, values in (("g", g), ("dg/dt", w)):
        if not np.all(np.abs(values) <= 1e-6 * (1 + np.max(np.abs(state)))):
            raise ValueError(
                f"x0: {name} = {np.array2string(values, precision=3)} at the start; it must vanish there"
            )

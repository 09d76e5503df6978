"""Runs of sequential regularization: the stepper that :mod:`holonome.running` advances for mechanical systems, and solutions of general problems of index 2 and 3."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.engine import run
from holonome.engine.calls import run_kernel
from holonome.engine.context import DENSE_CALLS, OK, RAISED, SINGULAR
from holonome.errors import SingularSystem
from holonome.formulations.sequential_regularization import SRM, Regularized, regularized
from holonome.formulations.underlying_ode import dense_landing, dense_multipliers, kernels
from holonome.higher_index import HigherIndex
from holonome.initial import vector
from holonome.integrators import runge_kutta as rk
from holonome.integrators import sequential as seq
from holonome.interruption import Interruption
from holonome.stepping import CONSISTENT, _layout, _Output, _shared, _Stepper
from holonome.system import System

if TYPE_CHECKING:
    from holonome.running import Run


class Sequential(_Stepper):
    """Explicit Runge–Kutta on the iterations of SRM, all advanced together; a stepper as in :mod:`holonome.stepping`."""

    advance = staticmethod(seq.advance)

    def __init__(self, system: System | HigherIndex, srm: SRM, tableau: str, constant: float, way: int) -> None:
        self.system, self.srm, self.tableau, self.constant, self.way = system, srm, tableau, constant, way
        problem = self.problem
        shown = problem.carried if not isinstance(system, System) else problem.m if srm.variant in ("invariant", "baumgarte") else 0
        self.columns = problem.size + shown
        self.most, self.automatic = srm.count(0.0)
        self.eps, self.y0 = np.zeros(0), np.zeros(0)

    @property
    def problem(self) -> Regularized:
        return regularized(self.system, self.srm, self.way)

    @property
    def _freedom(self) -> float:
        """1: the number of iterations is free; 2: ε as well, which an explicit method at constant step cannot make smaller."""
        return 0.0 if not self.automatic else 2.0 if self.srm.eps is None and not self.constant else 1.0

    def memory(self, events: int) -> np.ndarray:
        problem, srm = self.problem, self.srm

        def build() -> tuple[dict[int, float], int, np.ndarray]:
            header, at = _layout(self.columns, events, seq.interpolant.address)
            own, own_header = seq.own_memory(rk.TABLEAUS[self.tableau], problem.size, problem.carried, self.most, at)
            addresses = {seq.RATE: problem.address("rate"), seq.FREE: problem.address("free") if srm.variant == "singular" else 0,
                         seq.STABILIZATION: problem.address("stabilization") if srm.post_stabilization else 0}
            return header | own_header | addresses, at, own

        key = ("memory", "SRM", self.tableau, srm.variant, srm.E, srm.alpha, bool(srm.post_stabilization), self.most, self.way, events)
        memory = _shared(self.system, key, build)  # type: ignore[arg-type]
        memory[run.ON_MANIFOLD], memory[seq.CONSTANT], memory[seq.MESH], memory[seq.TIMES] = 1.0, self.constant, self.tableau == "heun", srm.post_stabilization
        memory[seq.AUTOMATIC], memory[seq.ACTIVE], memory[seq.INDEX] = self._freedom, min(2, self.most) if self.automatic else self.most, problem.order + 1
        memory[seq.IMPASSE] = 0.0 if self._stiff else -1.0
        return memory

    def begin(self, task: Run, trusted: bool) -> int:
        """Check the start, choose ε and y₀, and let all iterations begin there."""
        n, t0, x, compiled = self.system.dim, task.t0, task.state[: 2 * self.system.dim].copy(), kernels(self.system)  # type: ignore[arg-type]
        landed, zero = np.zeros(6 * n + 4), np.zeros(2 * n + 2)
        status = run_kernel(compiled.landing, t0, x, zero, task.context, landed)
        if status == SINGULAR:
            status = run_kernel(dense_landing.address, t0, x, zero, task.context, landed)
        if status >= RAISED:
            return run.USER_FUNCTION_FAILED
        if status != OK or not np.all(np.isfinite(landed[: 2 * n])) or not np.all(np.isfinite(x)):
            return run.CANNOT_START
        moved, size = (np.abs(part).reshape(2, n).max(axis=1) for part in (landed[4 * n: 6 * n], x))
        if not trusted and (task.context[DENSE_CALLS] > 0 or np.any(moved > CONSISTENT * size)):
            return run.OFF_MANIFOLD
        self.fill(task.memory, task.context, t0, task.t1, x, int(task.counts[run.MAX_STEPS]))
        task.state[2 * n:] = self.y0[: self.columns - 2 * n]
        if task.counts[run.POINTS]:
            task.points[0, 1:] = task.state
        return OK

    def fill(self, memory: np.ndarray, context: np.ndarray, t0: float, t1: float, x: np.ndarray, max_steps: int) -> None:
        """Initial values of all iterations, y₀ and ε."""
        stride = rk.padded(x.size)
        at = int(memory[seq.X])
        memory[at: at + self.most * stride].reshape(-1, stride)[:, : x.size] = x
        self.y0 = self._first_y(context, t0, x)
        if self.srm.variant == "singular" and self._exact_y(context, t0, x) is None:
            raise SingularSystem("method: SRM passes isolated singular positions, but here constraint rows depend on others from the start. "
                                 "Use SRM(E='identity'), or for mechanical systems 'dop853'")
        usual = self._usual_step(context, t0, x, float(memory[run.RTOL]), min(abs(t1 - t0), memory[run.H_MAX]))
        rate = self._stiffness(context, t0, x)
        self.eps = np.broadcast_to(self._checked_eps(rate, usual, abs(t1 - t0), max_steps), self.most).astype(float)
        self._put(memory)
        if memory[run.FIRST_STEP] == 0.0:
            fastest = rate / self.eps.min() if self._stiff and self.eps.min() > 0 else rate
            memory[run.FIRST_STEP] = min(0.1 * usual, seq.STABLE[self.tableau] / max(fastest, 1e-300), memory[run.H_MAX])

    def _put(self, memory: np.ndarray) -> None:
        for place, values in ((seq.EPS, self.eps), (seq.Y0, self.y0)):
            memory[int(memory[place]): int(memory[place]) + values.size] = values

    def _first_y(self, context: np.ndarray, t: float, x: np.ndarray) -> np.ndarray:
        problem, given = self.problem, self.srm.y0
        if isinstance(given, str):
            y = self._exact_y(context, t, x)
            return np.zeros(problem.carried) if y is None else y
        if np.size(given) not in (1, problem.carried):
            raise ValueError(f"SRM: y0 has {np.size(given)} entries; give {problem.carried}, or one number for all")
        return np.broadcast_to(np.asarray(given, dtype=float), problem.carried).copy()

    def _exact_y(self, context: np.ndarray, t: float, x: np.ndarray) -> np.ndarray | None:
        """The y of the exact solution through a point, for redundant rows the smallest; None in a singular position."""
        problem, out = self.problem, np.zeros(self.system.m + 1)
        if not isinstance(self.system, System) or self.srm.variant not in ("invariant", "baumgarte"):
            return problem.evaluate("multiplier", context, t, x, np.zeros(problem.carried + 1), problem.carried)
        status = run_kernel(kernels(self.system).multipliers, t, x, out, context, out)
        if status == SINGULAR:
            status = run_kernel(dense_multipliers.address, t, x, out, context, out)
        return out[:-1] if status == OK and np.all(np.isfinite(out)) else None

    @property
    def _stiff(self) -> bool:
        """Whether ε⁻¹ is a rate of the regularized equations: α₁ = 0."""
        alpha = self.problem.iteration.alpha
        return not (alpha and alpha[0])

    def _stiffness(self, context: np.ndarray, t: float, x: np.ndarray) -> float:
        """The fastest rate, times ε if that is one; (2.8), (4.20)."""
        problem = self.problem
        alpha, m = problem.iteration.alpha, problem.m
        if not self._stiff:
            return float(np.max(np.abs(np.roots(alpha)), initial=0.0))
        matrix = problem.evaluate("stiffness", context, t, x, np.zeros(problem.carried + 1), m * m)
        largest = 1.0 if matrix is None else float(np.max(np.abs(np.linalg.eigvals(matrix.reshape(m, m)))))
        return largest * (abs(alpha[1]) if alpha else 1.0)

    def _usual_step(self, context: np.ndarray, t: float, x: np.ndarray, rtol: float, longest: float) -> float:
        """The step that a method of this order takes, roughly: rtol^{1/p} of the time in which the motion changes, |x|/|x′| or √(|x|/|x″|) at the start."""
        problem = self.problem
        n = problem.size // problem.order
        y = self._exact_y(context, t, x)
        k = None if y is None else problem.evaluate("free", context, t, x, np.append(0.0, y), problem.size + problem.carried + 1)
        sizes = [float(np.max(np.abs(part))) for part in ((x[:n], np.zeros(1)) if k is None else (x[:n], k[:n], k[n: problem.size]))[:3] if part.size]
        times = [(sizes[0] / size) ** (1 / i) for i, size in enumerate(sizes[1:], 1) if size > 0 and sizes[0] > 0]
        return min([*times, longest]) * rtol ** (1 / rk.TABLEAUS[self.tableau].order)

    def _checked_eps(self, rate: float, usual: float, span: float, max_steps: int) -> Any:
        """ε as given, if an explicit method can work with it; else as small as it can."""
        eps, limit, h = self.srm.eps, seq.STABLE[self.tableau], self.constant
        name = {"heun": "Heun's method", "dopri5": "Dormand–Prince 5(4)", "dop853": "DOP853"}[self.tableau]
        if not self._stiff:
            if h * rate > limit:
                raise ValueError(f"SRM: alpha = {self.problem.iteration.alpha} makes the constraints a process of rate {rate:.3g}; "
                                 f"{name} with step {h:g} needs rates below {limit / h:.3g}")
            return 1e-8 if eps is None else eps
        if eps is None:
            return (2 * h or 0.5 * usual) * rate / limit
        smallest = float(np.min(eps))
        if h and h * rate > limit * smallest:
            raise ValueError(f"SRM: eps = {smallest:g} is too small for {name} with step {h:g}: h ‖GBE‖/ε = {h * rate / smallest:.3g} must not exceed {limit:g}. "
                             f"Admissible are eps ≥ {h * rate / limit:.2g}, or a step ≤ {limit * smallest / rate:.2g}; hn.BDF() takes any eps")
        if not h and span * rate > limit * smallest * max_steps:
            raise ValueError(f"SRM: eps = {smallest:g} forces {name} to about {span * rate / (limit * smallest):.1e} steps, more than max_steps = {max_steps}. "
                             f"Admissible are eps ≥ {span * rate / (limit * max_steps):.2g}; hn.BDF() takes any eps")
        return eps

    def remark(self, memory: np.ndarray) -> str:
        """What SRM did, in words."""
        active, at = int(memory[seq.ACTIVE]), int(memory[seq.EPS])
        parts = [f"SRM: {active} iteration{'s' * (active != 1)}, ε = {' / '.join(f'{e:.3g}' for e in dict.fromkeys(memory[at: at + active]))}"]
        if memory[at] != self.eps[0]:
            parts[0] += f", {self.eps[0]:.3g} at the start"
        if self.srm.variant == "singular":
            parts[0] += ", rows of G equilibrated"
        if memory[seq.HELD]:
            parts.append(f"in the singular position at t = {memory[seq.T_HELD]:.6g} (B y) kept its last value")
        return "; ".join(parts)

    def why_stuck(self, memory: np.ndarray) -> str:
        """Diagnosis, where SRM has one."""
        if memory[seq.IMPASSE] > 0:
            return (f"an impasse: no motion passes smoothly on the constraints here; {memory[seq.VIOLATION]:.2g} of a velocity of {memory[seq.LARGEST]:.2g} suddenly violates them"
                    if memory[seq.INDEX] > 2 else f"an impasse: no solution passes smoothly on the constraints here; it suddenly misses them by {memory[seq.VIOLATION]:.2g}")
        if memory[seq.HELD_STEPS] > seq.MOST_HELD_STEPS:
            return "constraint rows depend on others not in an isolated position, but from here on; use SRM(E='identity'), or for mechanical systems 'dop853'"
        if self.automatic and memory[seq.DIFFERENCE] > 1:
            return (f"the iterations do not settle: the last of {int(memory[seq.ACTIVE])} still changes by {memory[seq.DIFFERENCE]:.1g} times the tolerance. "
                    f"Give a smaller {'step' if self.constant and self.srm.eps is None else 'eps'}, or iterations=… to do without this test; or it is an impasse")
        if self.constant and self._stiff:
            return f"the constant step {self.constant:g} fails: ‖GBE‖ may have grown so much that it is unstable with ε = {self.eps.min():.3g}; give a larger eps or a smaller step"
        return ""

    def step_columns(self, task: Run) -> int:
        return 1 + self.problem.carried + self.most * rk.padded(self.problem.size) if task.dense else 0

    def dense_output(self, task: Run, points: np.ndarray) -> SequentialOutput:
        return SequentialOutput(self, task.steps(), float(task.t0))

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        """Where the system was last evaluated in vain."""
        at = int(memory[seq.POINT])
        return memory[at: at + self.problem.size].copy()


class SequentialOutput(_Output):
    """Inside a step: a step of all iterations to the wanted time."""

    def __init__(self, stepper: Sequential, steps: np.ndarray, t0: float) -> None:
        super().__init__(stepper, (t0, float(steps[-1, 0] + steps[-1, 1])))
        self.starts, self.counts, self.states = (np.ascontiguousarray(part) for part in (steps[:, 0], steps[:, 4], steps[:, run.STEP_COLUMNS:]))

    def _evaluate(self, wanted: np.ndarray, out: np.ndarray) -> int:
        memory = self.stepper.memory(0)
        self.stepper._put(memory)
        return seq.evaluate(memory, self.stepper.context(), self.starts, self.counts, self.states, wanted, out)


@dataclass(eq=False, repr=False)
class HigherIndexSolution:
    """A solution of an :class:`Index2System` or :class:`Index3System`.

    Attributes
    ----------
    t : (points,) array
    x, v : (n, points) arrays
        The unknowns and, for index 3, their derivatives.
    y : (m, points) array
        From the iteration; for the variant "singular", which carries B y, the least-squares solution for a given B y.
    By : (n, points) array
    success, status, message, steps, rejections, nfev, iterations, eps
        What happened.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> problem = hn.Index2System(lambda t: np.array([np.cos(t), 0.0]), np.array([0.0, 1.0]), lambda t, x: x[1] - x[0], n=2)
    >>> sol = hn.solve(problem, (0, 1), [0, 0])
    >>> sol.success, bool(abs(sol.x[1, -1] - np.sin(1)) < 1e-4), bool(abs(sol.y[0, -1] + np.cos(1)) < 1e-3)
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

    @property
    def success(self) -> bool:
        return self.status >= 0

    @property
    def x(self) -> np.ndarray:
        return self.states[:, : self.system.n].T

    @property
    def v(self) -> np.ndarray:
        return self.states[:, self.system.n: self.system.order * self.system.n].T

    @property
    def _carried(self) -> np.ndarray:
        return self.states[:, self.system.order * self.system.n:].T

    @property
    def _B(self) -> np.ndarray:
        """B at every point, (points, n, m)."""
        import casadi as ca

        e, s = self.system.equations, self.system.symbols
        B = ca.Function("B", [s["t"], e.x, s["p"]], [ca.densify(e.B)])
        return np.array([np.array(B(t, x, self.system.parameters.flat)) for t, x in zip(self.t, self.x.T, strict=True)])

    @property
    def y(self) -> np.ndarray:
        if self.carries_y:
            return self._carried
        return np.array([np.linalg.lstsq(B, By, rcond=None)[0] for B, By in zip(self._B, self._carried.T, strict=True)]).T

    @property
    def By(self) -> np.ndarray:
        return np.einsum("pnm,mp->np", self._B, self._carried) if self.carries_y else self._carried

    @property
    def g(self) -> np.ndarray:
        """Residuals of the constraints, (m, points)."""
        end = self.system.order * self.system.n
        return np.array([np.array(self.system.values(t, row[:end], self.system.parameters.flat)[0]).ravel() for t, row in zip(self.t, self.states, strict=True)]).T

    @property
    def drift(self) -> float:
        """Largest |g|."""
        return float(np.max(np.abs(self.g), initial=0.0))

    def __repr__(self) -> str:
        return f"HigherIndexSolution(system={self.system.name!r}, method={self.method!r}, points={self.t.size}, success={self.success})"

    def __str__(self) -> str:
        span = f"t = {self.t[0]:.6g} … {self.t[-1]:.6g}" if self.t.size else "no points"
        return (f"{'success' if self.success else 'FAILED'}: {self.message}\n  {self.system!r}; {span}, {self.t.size} points\n"
                f"  method {self.method}: {self.steps} steps ({self.rejections} rejected), {self.nfev} evaluations\n  constraints hold to |g| ≤ {self.drift:.1e}")


def solve_higher_index(system: HigherIndex, t0: float, t1: float, x0: Any, v0: Any, name: str, srm: SRM, tableau: str, constant: float, rtol: float, atol: Any,
                       t_eval: np.ndarray | None, first_step: float | None, max_step: float, max_steps: int) -> HigherIndexSolution:
    """One run; see :func:`holonome.solve`."""
    state = vector("x0", x0, system.n)
    if system.order == 2:
        state = np.concatenate([state, np.zeros(system.n) if v0 is None else vector("v0", v0, system.n)])
    elif v0 is not None:
        raise ValueError("v0: a problem of index 2 has no velocities; leave it out")
    _require_consistent(system, t0, state)
    stepper = Sequential(system, srm, tableau, constant, 1 if t1 > t0 else -1)
    memory, context, size = stepper.memory(0), system.context(), state.size
    memory[[run.T, run.T_START, run.T_OLD]] = t0
    memory[run.T_END], memory[run.RTOL], memory[run.H_MAX], memory[run.FIRST_STEP] = t1, rtol, max_step, first_step or 0.0
    at = int(memory[run.ATOL])
    memory[at: at + size] = atol
    stepper.fill(memory, context, t0, t1, state, max_steps)
    at = int(memory[run.Y])
    memory[at: at + size] = state
    memory[at + size: at + stepper.columns] = stepper.y0
    counts = np.zeros(run.COUNTS, np.int64)
    counts[run.MAX_STEPS], counts[run.WAY], counts[run.KEEP_POINTS] = max_steps, 1 if t1 > t0 else -1, t_eval is None
    wanted = np.zeros(0) if t_eval is None else t_eval
    counts[run.EVALS], counts[run.NEXT_EVAL] = wanted.size, wanted.size > 0 and wanted[0] == t0
    rows, nothing = 2048, np.zeros((1, 8))
    chunks = [np.concatenate([[t0], memory[at: at + stepper.columns]])[np.newaxis]] if counts[run.KEEP_POINTS] or counts[run.NEXT_EVAL] else []
    code = run.FULL
    with Interruption() as interruption:
        while code == run.FULL and not interruption.requested:
            points, rejections = np.empty((rows, 1 + stepper.columns)), np.empty((rows, run.REJECTION_COLUMNS))
            counts[run.POINTS] = counts[run.REJECTIONS] = 0
            counts[run.BUDGET], begin = rows, time.perf_counter()
            code = stepper.advance(memory, context, counts, points, nothing, rejections, nothing, wanted)
            chunks.append(points[: counts[run.POINTS]].copy())
            if time.perf_counter() - begin < 0.05:
                rows = min(2 * rows, 65_536)
    points = np.concatenate(chunks) if chunks else np.zeros((0, 1 + stepper.columns))
    t = float(memory[run.T])
    message = {run.DONE: "the end was reached", run.FULL: f"interrupted at t = {t:.6g}", run.CANNOT_START: f"cannot start at t = {t:.6g}: GB is singular there",
               run.TOO_MANY_STEPS: f"stopped at t = {t:.6g} after max_steps = {max_steps} steps"}.get(
        code, f"stopped at t = {t:.6g}: {stepper.why_stuck(memory) or f'the step size fell to {memory[run.H]:.1e}; a singular position, or a solution that ends'}")
    return HigherIndexSolution(system, name, points[:, 0], points[:, 1:], 0 if code == run.DONE else -1, f"{message} ({stepper.remark(memory)})", int(counts[run.ACCEPTED]),
                               int(counts[run.REJECTED]), int(counts[run.NFEV]), int(memory[seq.ACTIVE]), stepper.eps, srm.variant != "singular")


def _require_consistent(system: HigherIndex, t0: float, state: np.ndarray) -> None:
    """The start must satisfy g = 0 (2.3b), and for index 3 g′ = 0 (4.3b)."""
    if not np.all(np.isfinite(state)):
        raise ValueError("x0: not finite")
    g, w = (np.array(value).ravel() for value in system.values(t0, state, system.parameters.flat))
    for name, values in (("g", g), ("dg/dt", w)):
        if not np.all(np.abs(values) <= 1e-6 * (1 + np.max(np.abs(state)))):
            raise ValueError(f"x0: {name} = {np.array2string(values, precision=3)} at the start; it must vanish there")

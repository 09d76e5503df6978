"""solve(): validate, make consistent, run, collect."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from numbers import Integral, Real
from typing import Any

import numpy as np

from holonome.engine import run
from holonome.engine.context import DENSE_CALLS, RANK
from holonome.errors import ModelError
from holonome.events import Event, as_events, compiled_events
from holonome.formulations.underlying_ode import Kernels, dense_derivative, dense_landing, kernels
from holonome.functions import UserFunction
from holonome.initial import Start, consistent, dependent_rows, require_finite, vector, what_failed
from holonome.integrators import runge_kutta as rk
from holonome.interruption import Interruption
from holonome.method import Method, resolve
from holonome.result import History, Solution
from holonome.system import System
from holonome.warmup import announce_first_use

_FIRST_ROWS, _MOST_ROWS = 512, 65_536
_SECONDS_PER_CALL = 0.1
_SMALLEST_RTOL = 1e-14
_NO_TIMES, _NOTHING = np.zeros(0), np.zeros((1, 8))


def solve(system: System, t_span: Sequence[float], q0: Any, v0: Any = None, *, method: str | Method = "auto", rtol: float = 1e-6, atol: Any = 1e-9, t_eval: Any = None,
          dense_output: bool = False, events: Any = None, first_step: float | None = None, max_step: float = math.inf, step: float | None = None, projection: bool | None = None,
          parameters: dict[str, Any] | None = None, repair: bool = False, keep_steps: bool | None = None, max_steps: int = 5_000_000,
          progress: bool | Callable[[float], None] = False) -> Solution:
    """Simulate a system and keep it on its constraints.

    Parameters
    ----------
    system
        What moves.
    t_span
        Initial and final time; the final one may lie before the initial one.
    q0, v0
        Initial positions and velocities (None: at rest).  Small violations of the constraints are repaired and reported; large ones raise.
    method
        A name (:func:`holonome.methods` lists them) or a :class:`holonome.Method`.  "auto" chooses.
    rtol, atol
        Relative and absolute tolerance of the local error; ``atol`` may be an array, one value for each coordinate (positions and velocities alike) or for
        all positions and then all velocities.
    t_eval
        Times at which the solution is wanted.  Then only these points are kept.
    dense_output
        Provide ``sol.sol(t)``, the solution at any time.
    events
        One or several callables of any of t, q, v, p (with scipy's attributes ``terminal`` and ``direction``), or :class:`holonome.Event` objects.
    first_step, max_step
        Initial and largest step size.
    step
        Constant step size; the tolerances then play no part.
    projection
        False lets the constraints drift, to see what that does.
    parameters
        Values that replace those of the system for this run; nothing is compiled.
    repair
        Accept initial values that are far off the constraints and start from the nearest consistent ones.
    keep_steps
        Keep every step and its history; the default is to do so unless ``t_eval`` is given.
    max_steps
        Give up after so many steps.
    progress
        True shows a progress bar; a callable is told the fraction done.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> sol = hn.solve(pendulum.system, (0, 10), pendulum.q0, pendulum.v0)
    >>> sol.success, bool(abs(sol.q[:, -1] @ sol.q[:, -1] - 1) < 1e-14)
    (True, True)
    """
    announce_first_use()
    if not isinstance(system, System):
        raise TypeError(f"system: {system!r} is not an hn.System" + ("; give mechanism.system" if hasattr(system, "system") else ""))
    if parameters:
        if not isinstance(parameters, Mapping):
            raise TypeError(f"parameters: {parameters!r}; give a dict of names and values")
        system = system.with_parameters(**parameters)
    rtol, atol = _tolerances(rtol, atol, system.n)
    name, chosen = resolve(method, rtol)
    t0, t1 = _span(t_span)
    task = _Run(system, name, chosen, t0, t1, rtol, atol, projection, step)
    y0 = np.zeros(2 * system.n)
    y0[: system.n] = vector("q0", q0, system.n)
    if v0 is not None:
        y0[system.n:] = vector("v0", v0, system.n)
    if t_eval is not None:
        t_eval = _times(t_eval, t0, t1)
    keep = (t_eval is None if keep_steps is None else bool(keep_steps)) or dense_output
    task.prepare(y0, as_events(events), t_eval, keep, first_step, max_step, max_steps)
    with Interruption() if task.calls_python else nullcontext():
        code = task.advance()
        start = None
        if code in (run.OFF_MANIFOLD, run.CANNOT_START, run.USER_FUNCTION_FAILED) and task.counts[run.ACCEPTED] == 0 and not task.event_failure():
            require_finite(q0=y0[: system.n], v0=y0[system.n:])
            start = consistent(system, y0[: system.n], None if v0 is None else y0[system.n:], t0, repair=repair)
            task.restart(np.concatenate([start.q, start.v]))
            code = task.advance()
        if code == run.FULL:
            code = task.go_on(progress)
    if progress:
        task.tell_end(progress)
    return task.finish(code, start, keep, dense_output)


class _Run:
    """One run of a Runge–Kutta method on the underlying ODE: its memory, buffers and what becomes of them."""

    def __init__(self, system: System, name: str, method: Method, t0: float, t1: float, rtol: float, atol: Any, projection: bool | None, step: float | None) -> None:
        self.system, self.name, self.method, self.t0, self.t1 = system, name, method, t0, t1
        self.kernels = kernels(system)
        self.project = method.formulation.projection if projection is None else bool(projection)
        constant = step if step is not None else method.integrator.step
        if constant is not None and not (isinstance(constant, Real) and 0 < constant < math.inf):
            raise ValueError(f"step: {constant!r}; a constant step size is a positive number")
        self.constant = float(constant or 0.0)
        self.rtol, self.atol = rtol, atol
        self.foreign = system.foreign

    def prepare(self, y0: np.ndarray, events: list[Event], t_eval: np.ndarray | None, keep: bool, first_step: float | None, max_step: float, max_steps: int) -> None:
        """Lay out memory and buffers."""
        system, size = self.system, 2 * self.system.n
        memory = self.memory = _memory(system, self.kernels, self.method.integrator.name, len(events)).copy()
        memory[run.T] = memory[run.T_START] = memory[run.T_OLD] = self.t0
        memory[run.T_END], memory[run.RTOL] = self.t1, self.rtol
        memory[run.H_MAX] = _positive("max_step", max_step)
        if first_step is not None:
            memory[run.FIRST_STEP] = min(_positive("first_step", first_step), memory[run.H_MAX], abs(self.t1 - self.t0))
        if not (isinstance(max_steps, Integral) and max_steps > 0):
            raise ValueError(f"max_steps: {max_steps!r}; give a positive whole number")
        constrained = system.m > 0
        memory[rk.PROJECT], memory[rk.CONSTRAINED], memory[rk.CONSTANT] = self.project and constrained, constrained, self.constant
        atol = int(memory[run.ATOL])
        memory[atol: atol + size] = self.atol
        at = int(memory[run.Y])
        self.state = memory[at: at + size]
        self.state[:] = y0
        self.t_eval = _NO_TIMES if t_eval is None else t_eval
        counts = self.counts = np.zeros(run.COUNTS, np.int64)
        counts[run.MAX_STEPS], counts[run.WAY], counts[run.EVENTS], counts[run.KEEP_STEPS] = max_steps, 1 if self.t1 > self.t0 else -1, len(events), keep
        counts[run.KEEP_POINTS] = keep_points = keep and t_eval is None
        if t_eval is not None:
            counts[run.EVALS] = t_eval.size
            counts[run.NEXT_EVAL] = t_eval.size > 0 and t_eval[0] == self.t0
        self._prepare_events(events)
        self.calls_python = False
        for foreign in self.foreign:
            foreign.error = None
            self.calls_python |= foreign.path == "python"
        self.keep_all = keep and t_eval is not None
        self.chunks, self.step_chunks, self.rejection_chunks, self.found_chunks = [], [], [], []
        self.rows, self.budget = _FIRST_ROWS, 2000
        self._buffers()
        if keep_points or counts[run.NEXT_EVAL]:
            self.points[0, 0] = self.t0
            self.points[0, 1:] = y0
            counts[run.POINTS] = 1

    def _prepare_events(self, events: list[Event]) -> None:
        self.events, memory = events, self.memory
        self.compiled_events = compiled = compiled_events(self.system, events) if events else None
        self.context = self.kernels.context(self.system, compiled.extra if compiled else 0)
        if compiled is None:
            return
        compiled.fill(self.context)
        self.foreign = self.foreign + list(compiled.foreign.values())
        memory[run.EVENT_KERNEL] = compiled.address
        for i, event in enumerate(events):
            memory[int(memory[run.EVENT_DIRECTION]) + i] = event.direction
            memory[int(memory[run.EVENT_TERMINAL]) + i] = float(event.terminal or 0)

    def _buffers(self) -> None:
        size, counts = 2 * self.system.n, self.counts
        self.points = np.empty((self.rows, 1 + size))
        self.step_rows = np.empty((self.rows, run.STEP_COLUMNS + (size if self.keep_all else 0))) if counts[run.KEEP_STEPS] else _NOTHING
        self.rejection_rows = np.empty((self.rows, run.REJECTION_COLUMNS))
        self.found = np.empty((64 + len(self.events), 2 + size)) if self.events else _NOTHING
        counts[run.POINTS] = counts[run.STEPS] = counts[run.REJECTIONS] = counts[run.FOUND] = 0

    def restart(self, y0: np.ndarray) -> None:
        """Begin again from other initial values."""
        self.state[:] = y0
        self.memory[rk.SCALE_Q] = self.memory[rk.SCALE_V] = 0.0
        self.memory[rk.CONSTRAINED] = 0.0
        if self.counts[run.POINTS]:
            self.points[0, 1:] = y0

    def advance(self) -> int:
        """Call the compiled loop once."""
        self.counts[run.BUDGET] = self.budget
        return rk.advance(self.memory, self.context, self.counts, self.points, self.step_rows, self.rejection_rows, self.found, self.t_eval)

    def event_failure(self) -> bool:
        """Whether it was an event, not the system, that raised."""
        return any(f.error is not None for f in self.compiled_events.foreign.values()) if self.compiled_events else False

    def _collect(self) -> None:
        """Move what the buffers hold to the results."""
        counts = self.counts
        for chunks, buffer, used in ((self.chunks, self.points, counts[run.POINTS]), (self.step_chunks, self.step_rows, counts[run.STEPS]),
                                     (self.rejection_chunks, self.rejection_rows, counts[run.REJECTIONS]), (self.found_chunks, self.found, counts[run.FOUND])):
            if used:
                chunks.append(buffer[:used] if 2 * used > len(buffer) or len(buffer) <= _FIRST_ROWS else buffer[:used].copy())

    def finish(self, code: int, start: Start | None, keep: bool, dense_output: bool) -> Solution:
        """Put the result together."""
        self._collect()
        points = _joined(self.chunks, 1 + 2 * self.system.n)
        counts, memory, system = self.counts, self.memory, self.system
        status = {run.DONE: 0, run.TERMINATED: 1}.get(code, -1)
        message = "the end was reached" if code == run.DONE else self._message(code)
        if start is not None and start.message:
            message += f" ({start.message})"
        found = _joined(self.found_chunks, 2 + 2 * system.n) if self.events else None
        solution = Solution(
            system, self.name, points[:, 0], points[:, 1:], status, message, int(counts[run.NFEV]), int(counts[run.ACCEPTED]), int(counts[run.REJECTED]),
            int(memory[run.LANDINGS]), self.rtol, self.atol, start=start, dense_calls=int(self.context[DENSE_CALLS]), lowest_rank=int(self.context[RANK]),
            t_events=None if found is None else [found[found[:, 0] == i, 1] for i in range(len(self.events))],
            event_states=None if found is None else [found[found[:, 0] == i, 2:] for i in range(len(self.events))])
        if keep:
            steps = _joined(self.step_chunks, self.step_rows.shape[1])
            rejected = _joined(self.rejection_chunks, run.REJECTION_COLUMNS)
            solution.history = History(steps, rejected, self.method.integrator.tableau.order)
        if dense_output:
            solution.sol = self._dense_output(points)
        return solution

    def go_on(self, progress: bool | Callable[[float], None]) -> int:
        """Call the compiled loop until it needs no more calls, or the user wants to stop."""
        with Interruption() as interruption, _Progress(progress) as show:
            code = run.FULL
            while code == run.FULL:
                self._collect()
                self.rows = min(2 * self.rows, _MOST_ROWS)
                self._buffers()
                begin = time.perf_counter()
                code = self.advance()
                took = time.perf_counter() - begin
                tried = self.budget - int(self.counts[run.BUDGET])
                self.budget = max(10, min(100 * self.budget, int(tried * _SECONDS_PER_CALL / max(took, 1e-9)), 10**9))
                try:
                    show((self.memory[run.T] - self.t0) / (self.t1 - self.t0))
                except KeyboardInterrupt:
                    return run.STOPPED
                if interruption.requested and code == run.FULL:
                    return run.STOPPED
        return code

    def tell_end(self, progress: bool | Callable[[float], None]) -> None:
        """A short run tells its progress once."""
        if callable(progress) and len(self.chunks) == 0:
            progress(float((self.memory[run.T] - self.t0) / (self.t1 - self.t0)))

    def _dense_output(self, points: np.ndarray) -> DenseOutput:
        times, states = points[:, 0], points[:, 1:]
        if self.keep_all:
            steps = _joined(self.step_chunks, self.step_rows.shape[1])
            times, states = np.append(steps[:, 0], self.memory[run.T]), np.vstack([steps[:, run.STEP_COLUMNS:], self.state])
        return DenseOutput(self.system, self.method.integrator.name, self.project, np.ascontiguousarray(times), np.ascontiguousarray(states))

    def _message(self, code: int) -> str:
        """What happened, in words."""
        t, y, n = float(self.memory[run.T]), self.state, self.system.n
        q, v = y[:n].copy(), y[n:].copy()
        match code:
            case run.TERMINATED:
                return f"stopped by an event at t = {t:.9g}"
            case run.STOPPED:
                return f"interrupted at t = {t:.6g}"
            case run.USER_FUNCTION_FAILED:
                return f"stopped at t = {t:.6g}: {self._user_failure(t, q, v)}"
            case run.TOO_MANY_STEPS:
                return (f"stopped at t = {t:.6g} after max_steps = {self.counts[run.MAX_STEPS]} steps; the last had size {self.memory[run.H]:.1e}. "
                        "Raise max_steps or loosen rtol; if the steps are far smaller than the motion asks for, the system is stiff")
            case run.CANNOT_START | run.OFF_MANIFOLD:
                return f"cannot start at t = {t:.6g}: {what_failed(self.system, t, q, v)}"
        return f"stopped at t = {t:.6g}: {self._why_stuck(t, q, v)}"

    def _user_failure(self, t: float, q: np.ndarray, v: np.ndarray) -> str:
        """Which function failed: as it was caught, or by calling all of them where a step, and an event, was last evaluated in vain."""
        for foreign in self.foreign:
            if foreign.error is not None:
                error = foreign.error
                text = str(error) if isinstance(error, ModelError) else f"{foreign.role} raised {type(error).__name__}: {error}"
                return f"{text} (near t = {t:.6g}, q = {np.array2string(q, precision=6, threshold=8)})"
        n, at = self.system.n, int(self.memory[rk.Z])
        z = self.memory[at: at + 2 * n].copy()
        points = [(float(self.memory[run.T_FAILED]), z[:n], z[n:]), (t, q, v)]
        for point in points:
            text = what_failed(self.system, *point)
            if not text.startswith("a derivative"):
                return text
        for i, event in enumerate(self.events):
            try:
                UserFunction(f"events[{i}]", event.function, n, self.system.parameters).evaluate({"t": t, "q": q, "v": v})
            except ModelError as error:
                return str(error)
        return text

    def _why_stuck(self, t: float, q: np.ndarray, v: np.ndarray) -> str:
        """Diagnosis of a step size that fell to nothing."""
        used = self.counts[run.REJECTIONS]
        cause = int(self.rejection_rows[used - 1, 3]) if used else 0
        size = f"the step size fell to {self.memory[run.H]:.1e}"
        if self.constant:
            size = f"the constant step {self.constant:g} fails"
        pieces = self.kernels.evaluate_pieces(self.context, t, q, v)
        if pieces is None or not all(np.all(np.isfinite(x)) for x in pieces.values()):
            return f"{size}; {what_failed(self.system, t, q, v)}"
        singular_values = np.linalg.svd(pieces["C"] / np.maximum(np.linalg.norm(pieces["C"], axis=1), 1e-300)[:, None], compute_uv=False) if self.system.m else np.ones(1)
        if cause == run.FUNCTION_RAISED:
            return f"{size}; {self._user_failure(t, q, v)}"
        if singular_values[-1] < 1e-3 and self.context[RANK] != self.system.m:
            rows = dependent_rows(np.round(pieces["C"], 12))[1] or [int(np.argmin(np.linalg.norm(pieces["C"], axis=1)))]
            names = ", ".join(self.system.constraint_names[i] for i in rows[:4])
            return f"{size}; the constraints come close to a singular position (smallest singular value {singular_values[-1]:.1e}; {names} depends on the others there)"
        largest = self.system.names[int(np.argmax(np.abs(v)))]
        if np.max(np.abs(v)) > 1e6 * max(1.0, float(self.memory[rk.SCALE_Q])) or np.max(np.abs(q)) > 1e8:
            return f"{size}; the motion grows without bound (|{largest}′| = {np.max(np.abs(v)):.1e}), the solution may end here"
        reason = {run.PROJECTION_FAILED: "no point on the constraints is found near the end of a step; an impasse, or constraints that cannot be met further on",
                  run.NOT_FINITE: "forces, masses or constraints are not finite just ahead; " + self._ahead(t, q, v),
                  run.CONTRADICTION: "constraint rows that depend on each other ask for different positions or velocities further on: they contradict each other",
                  run.SINGULAR_MATRIX: "mass matrix and constraints do not determine the accelerations just ahead",
                  run.ERROR_TEST: "the error cannot be kept below the tolerance; a jump in the forces, a singularity, or rtol too small"}.get(cause, "no step succeeds")
        return f"{size}; {reason}"

    def _ahead(self, t: float, q: np.ndarray, v: np.ndarray) -> str:
        for h in (1e-12, 1e-9, 1e-6, 1e-3):
            dt = h * (self.t1 - self.t0)
            text = what_failed(self.system, t + dt, q + dt * v, v)
            if not text.startswith("a derivative"):
                return text
        return "look at square roots, logarithms and divisions there"


class DenseOutput:
    """The solution at any time of a run: ``q, v = sol.sol(t)``; arrays (n,) for a scalar t, (n, len(t)) else.  It pickles."""

    def __init__(self, system: System, tableau: str, project: bool, times: np.ndarray, states: np.ndarray) -> None:
        self.system, self.tableau, self.project, self.times, self.states = system, tableau, project, times, states

    def _fresh_memory(self, compiled: Kernels) -> np.ndarray:
        n, memory = self.system.n, _memory(self.system, compiled, self.tableau, 0).copy()
        memory[rk.PROJECT] = self.project and self.system.m > 0
        memory[run.T_START], memory[run.T_END] = self.times[0], self.times[-1]
        memory[rk.SCALE_Q], memory[rk.SCALE_V] = (max(float(np.max(np.abs(part))), 1e-300) for part in (self.states[:, :n], self.states[:, n:]))
        return memory

    def __call__(self, t: Any) -> tuple[np.ndarray, np.ndarray]:
        wanted, n = np.atleast_1d(np.asarray(t, dtype=float)), self.system.n
        low, high = sorted((self.times[0], self.times[-1]))
        if wanted.size and not (np.all(wanted >= low - 1e-12 * abs(low)) and np.all(wanted <= high + 1e-12 * abs(high))):
            raise ValueError(f"t: the solution is known from {low:.9g} to {high:.9g} only")
        wanted = np.clip(wanted, low, high)
        out, compiled = np.empty((wanted.size, 2 * n)), kernels(self.system)
        done = rk.evaluate(self._fresh_memory(compiled), compiled.context(self.system), self.times, self.states, wanted, out)
        if done < wanted.size:
            raise RuntimeError(f"the system could not be evaluated at t = {wanted[done]:.9g}")
        q, v = out[:, :n].T, out[:, n:].T
        return (q[:, 0], v[:, 0]) if np.ndim(t) == 0 else (q, v)


def _memory(system: System, compiled: Kernels, tableau: str, events: int) -> np.ndarray:
    """A run's memory with all that does not depend on the run; made once for a system, a tableau and a number of events."""
    key = ("memory", tableau, events)
    if key not in system.shared:
        stride = rk.padded(2 * system.n)
        sizes = {run.ATOL: stride, run.Y: stride, run.Y_OLD: stride, run.Y_EVENT: 2 * stride + events, run.EVENT_OLD: events, run.EVENT_NEW: events,
                 run.EVENT_DIRECTION: events, run.EVENT_TERMINAL: events}
        header, at = {run.SIZE: 2 * system.n, run.STRIDE: stride, run.INTERPOLANT: rk.interpolant.address}, run.HEADER
        for place, size in sizes.items():
            header[place] = at
            at += rk.padded(size)
        own, own_header = rk.own_memory(rk.TABLEAUS[tableau], system.n, at)
        header |= own_header
        header |= {rk.DERIVATIVE: compiled.derivative, rk.LANDING: compiled.landing, rk.DENSE_DERIVATIVE: dense_derivative.address, rk.DENSE_LANDING: dense_landing.address}
        memory = np.concatenate([np.zeros(at), own])
        memory[list(header)] = list(header.values())
        system.shared[key] = memory
    return system.shared[key]


class _Progress:
    """A bar, a function, or nothing; shown only for runs that need more than one call."""

    def __init__(self, progress: bool | Callable[[float], None]) -> None:
        self._progress, self._bar = progress, None

    def __enter__(self) -> Callable[[float], None]:
        if callable(self._progress):
            return self._progress
        if not self._progress:
            return lambda fraction: None
        from rich.progress import Progress

        self._bar = Progress(transient=True)
        self._bar.start()
        task = self._bar.add_task("simulating", total=1.0)
        return lambda fraction: self._bar.update(task, completed=fraction)  # type: ignore[union-attr]

    def __exit__(self, *exception: Any) -> None:
        if self._bar is not None:
            self._bar.stop()


def _joined(chunks: list[np.ndarray], width: int) -> np.ndarray:
    if len(chunks) == 1:
        return chunks[0]
    joined = np.concatenate(chunks) if chunks else np.empty((0, width))
    chunks[:] = [joined]
    return joined


def _span(t_span: Sequence[float]) -> tuple[float, float]:
    try:
        t0, t1 = map(float, t_span)
    except (TypeError, ValueError):
        raise ValueError(f"t_span: {t_span!r}; give (initial time, final time)") from None
    if not (math.isfinite(t0) and math.isfinite(t1)):
        raise ValueError(f"t_span: {t_span!r} is not finite")
    if t0 == t1:
        raise ValueError(f"t_span: {t_span!r} has no length")
    return t0, t1


def _times(t_eval: Any, t0: float, t1: float) -> np.ndarray:
    try:
        times = np.array(t_eval, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"t_eval: {t_eval!r} is not an array of times") from None
    if times.ndim != 1:
        raise ValueError(f"t_eval: shape {times.shape}; give a one-dimensional array")
    if not np.all(np.isfinite(times)) or np.any((times < min(t0, t1)) | (times > max(t0, t1))):
        raise ValueError(f"t_eval: all times must lie within t_span = ({t0:g}, {t1:g})")
    if np.any(np.diff(times) * (1 if t1 > t0 else -1) <= 0):
        raise ValueError("t_eval: times must be sorted in the direction of t_span, without repetition")
    return times


def _positive(argument: str, value: float) -> float:
    if not (isinstance(value, Real) and value > 0):
        raise ValueError(f"{argument}: {value!r}; give a positive number")
    return float(value)


def _tolerances(rtol: float, atol: Any, n: int) -> tuple[float, Any]:
    if not (isinstance(rtol, Real) and 0 <= rtol < 1):
        raise ValueError(f"rtol: {rtol!r}; give a number between 0 and 1")
    relative = max(float(rtol), _SMALLEST_RTOL)
    if isinstance(atol, float) and 0 < atol < math.inf:
        return relative, atol
    try:
        array = np.asarray(atol, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"atol: {atol!r}; give a number or an array of them") from None
    if array.shape not in ((), (n,), (2 * n,)):
        raise ValueError(f"atol: shape {array.shape}; give a number, {n} values (for each coordinate) or {2 * n} (positions, then velocities)")
    if not np.all(array >= 0) or not np.all(np.isfinite(array)) or (rtol == 0 and not np.all(array > 0)):
        raise ValueError(f"atol: {atol!r}; give positive numbers")
    array = np.maximum(array, 1e-300)
    return relative, np.tile(array, 2) if array.shape == (n,) else array

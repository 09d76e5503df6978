"""A run: memory, buffers and calls of the compiled loop; then what happened, in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from holonome.dynamics.kernels import kernels
from holonome.dynamics.start import Start, dependent_rows, what_failed
from holonome.dynamics.switching_times import switching_times
from holonome.errors import ModelError
from holonome.integrators import bdf
from holonome.integrators import loop as run
from holonome.machine.context import DENSE_CALLS, OK, RANK
from holonome.machine.interruption import Interruption
from holonome.problem.event import Event, compiled_events
from holonome.problem.user_function import UserFunction
from holonome.results.solution import History, Solution
from holonome.solving.sequential import ExplicitSequential, ImplicitSequential, Sequential
from holonome.solving.stepping import UNTESTED, Explicit, Implicit

_FEWEST_ROWS, _FIRST_ROWS, _MOST_ROWS, _FIRST_NUMBERS = 64, 2048, 65_536, 1 << 17
_SECONDS_PER_CALL = 0.1
_NO_TIMES, _NOTHING = np.zeros(0), np.zeros((1, 8))


class Run:
    """One run: its memory, buffers and what becomes of them."""

    def __init__(
        self,
        stepper: Explicit | Implicit | ExplicitSequential | ImplicitSequential,
        name: str,
        t0: float,
        t1: float,
        rtol: float,
        atol: Any,
    ) -> None:
        self.stepper, self.system, self.name, self.t0, self.t1, self.rtol, self.atol = (
            stepper,
            stepper.system,
            name,
            t0,
            t1,
            rtol,
            atol,
        )
        self.kernels, self.foreign, self.trusted = kernels(self.system), self.system.foreign, False
        self.history: Solution | None = None
        self.start_of_all, self.left_out = t0, []

    def prepare(
        self,
        y0: np.ndarray,
        events: list[Event],
        t_eval: np.ndarray | None,
        keep: bool,
        dense: bool,
        first_step: float | None,
        max_step: float,
        max_steps: int,
    ) -> None:
        """Lay out memory and buffers."""
        n = self.system.dim
        stops = switching_times(self.system, self.t0, self.t1)
        memory = self.memory = self.stepper.memory(len(events))
        if stops.size:
            margin = 4 * np.spacing(max(abs(self.t0), abs(self.t1))) * (1 if self.t1 > self.t0 else -1)
            memory = self.memory = np.concatenate(
                [memory, np.column_stack([stops - margin, stops + margin]).ravel()]
            )
            memory[run.SWITCHES] = memory.size - 2 * stops.size
        memory[run.T] = memory[run.T_START] = memory[run.T_OLD] = self.t0
        memory[run.T_END], memory[run.RTOL], memory[run.H_MAX] = self.t1, self.rtol, max_step
        if first_step is not None:
            memory[run.FIRST_STEP] = min(first_step, max_step, abs(self.t1 - self.t0))
        atol = int(memory[run.ATOL])
        memory[atol : atol + 2 * n] = self.atol
        at = int(memory[run.Y])
        self.state = memory[at : at + self.stepper.columns]
        self.state[: 2 * n] = self.first = y0
        self.t_eval = _NO_TIMES if t_eval is None else t_eval
        counts = self.counts = np.zeros(run.COUNTS, np.int64)
        counts[run.MAX_STEPS], counts[run.WAY], counts[run.EVENTS], counts[run.KEEP_STEPS] = (
            max_steps,
            1 if self.t1 > self.t0 else -1,
            len(events),
            keep,
        )
        counts[run.SWITCHING_TIMES] = stops.size
        counts[run.KEEP_POINTS] = keep_points = keep and t_eval is None
        if t_eval is not None:
            counts[run.EVALS] = t_eval.size
            counts[run.NEXT_EVAL] = t_eval.size > 0 and t_eval[0] == self.t0
        self._prepare_events(events)
        self.calls_python = False
        for foreign in self.foreign:
            foreign.error = None
            self.calls_python |= foreign.path == "python"
        self.keep_all, self.dense = keep and t_eval is not None, dense
        self.chunks, self.step_chunks, self.rejection_chunks, self.found_chunks = [], [], [], []
        self.rows, self.budget = (
            min(_FIRST_ROWS, max(_FEWEST_ROWS, _FIRST_NUMBERS // self.stepper.columns)),
            2000,
        )
        self._buffers()
        if keep_points or counts[run.NEXT_EVAL]:
            self.points[0, 0] = self.t0
            self.points[0, 1:] = self.state
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
        size, counts = self.stepper.columns, self.counts
        self.points = np.empty((self.rows, 1 + size))
        self.step_rows = (
            np.empty((self.rows, run.STEP_COLUMNS + self.stepper.step_columns(self)))
            if counts[run.KEEP_STEPS]
            else _NOTHING
        )
        self.rejection_rows = np.empty((self.rows, run.REJECTION_COLUMNS))
        self.found = np.empty((64 + len(self.events), 2 + size))
        counts[run.POINTS] = counts[run.STEPS] = counts[run.REJECTIONS] = counts[run.FOUND] = 0

    def restart(self, y0: np.ndarray) -> None:
        """Begin again from other initial values, known to be consistent."""
        self.state[: y0.size] = self.first = y0
        self.trusted = True
        if self.counts[run.POINTS]:
            self.points[0, 1:] = self.state

    def advance(self) -> int:
        """Call the compiled loop once."""
        if self.counts[run.STATE] == run.START:
            if self.system.invariant_count:
                self.stepper.remember_invariants(self)
            code = self.stepper.begin(self, self.trusted)
            if code != OK:
                return code
        self.counts[run.BUDGET] = self.budget
        code = self.stepper.advance(
            self.memory,
            self.context,
            self.counts,
            self.points,
            self.step_rows,
            self.rejection_rows,
            self.found,
            self.t_eval,
        )
        return run.STOPPED if code == run.USER_FUNCTION_FAILED and Interruption.requested else code

    def steps(self) -> np.ndarray:
        """Rows of the history."""
        return _joined(self.step_chunks, self.step_rows.shape[1])

    def event_failure(self) -> bool:
        """Whether it was an event, not the system, that raised."""
        return (
            any(f.error is not None for f in self.compiled_events.foreign.values())
            if self.compiled_events
            else False
        )

    def _collect(self) -> None:
        """Move what the buffers hold to the results."""
        counts = self.counts.tolist()
        for chunks, buffer, used in (
            (self.chunks, self.points, counts[run.POINTS]),
            (self.step_chunks, self.step_rows, counts[run.STEPS]),
            (self.rejection_chunks, self.rejection_rows, counts[run.REJECTIONS]),
            (self.found_chunks, self.found, counts[run.FOUND]),
        ):
            if used:
                chunks.append(
                    buffer[:used]
                    if 2 * used > len(buffer) or len(buffer) <= _FIRST_ROWS
                    else buffer[:used].copy()
                )

    def finish(self, code: int, start: Start | None, keep: bool, dense_output: bool) -> Solution:
        """Put the result together."""
        self._collect()
        points = _joined(self.chunks, 1 + self.stepper.columns)
        counts, memory, system = self.counts.tolist(), self.memory, self.system
        status = {run.DONE: 0, run.TERMINATED: 1}.get(code, -1)
        message = "the end was reached" if code == run.DONE else self._message(code)
        if isinstance(self.stepper, Sequential):
            message += f" ({self.stepper.remark(memory)})"
        if start is not None and start.message:
            message += f" ({start.message})"
        found = (
            _joined(self.found_chunks, 2 + self.stepper.columns) if self.events or self.found_chunks else None
        )
        solution = Solution(
            system,
            self.name,
            points[:, 0],
            points[:, 1:],
            status,
            message,
            counts[run.NFEV],
            counts[run.ACCEPTED],
            counts[run.REJECTED],
            int(memory[run.LANDINGS]),
            self.rtol,
            self.atol,
            start=start,
            dense_calls=int(self.context[DENSE_CALLS]),
            lowest_rank=int(self.context[RANK]),
            t_events=[found[found[:, 0] == i, 1] for i in range(len(self.events))] if self.events else None,  # type: ignore[index]
            event_states=[found[found[:, 0] == i, 2:] for i in range(len(self.events))]
            if self.events
            else None,
        )  # type: ignore[index]
        if found is not None:
            solution.singular_times = found[
                (found[:, 0] < 0) & (counts[run.WAY] * found[:, 1] <= counts[run.WAY] * memory[run.T]), 1
            ]
        if isinstance(self.stepper, (Implicit, ImplicitSequential)):
            solution.njev = solution.nlu = counts[bdf.NJEV]
            solution.error_failures, solution.newton_failures = (
                counts[bdf.ERROR_FAILURES],
                counts[bdf.NEWTON_FAILURES],
            )
            solution.splits = self.stepper.splits(memory) if isinstance(self.stepper, Implicit) else 0
        if status >= 0 and self.left_out:
            self._check_left_out(solution)
        if keep:
            solution.history = History(self.steps(), _joined(self.rejection_chunks, run.REJECTION_COLUMNS))
        if dense_output:
            solution.sol = self.stepper.dense_output(self, points)
        return solution

    def _check_left_out(self, solution: Solution) -> None:
        """Rows that followed from others at the start, and were therefore left out, must be met all the time."""
        n, mg = self.system.dim, self.kernels.position_rows
        pieces = self.kernels.evaluate_pieces(self.context, self.t0, self.first[:n], self.first[n:])
        if pieces is None or not solution.t.size:
            return
        length = np.maximum(np.linalg.norm(pieces["C"], axis=1), 1e-300)
        size = self.rtol * (1.0 + np.max(np.abs(solution.states[:, : 2 * n]))) + np.max(
            self.atol, where=np.less(self.atol, UNTESTED), initial=0.0
        )
        missed = np.max(np.abs(solution.gv), axis=1) / length
        missed[:mg] = np.maximum(missed[:mg], np.max(np.abs(solution.g), axis=1, initial=0.0) / length[:mg])
        lost = [
            self.system.constraint_names[i]
            for i in self.left_out
            if not missed[i] <= 30 * max(size, float(np.max(np.delete(missed, self.left_out), initial=0.0)))
        ]
        if lost:
            solution.status = -1
            solution.outcome = (
                f"wrong: {', '.join(lost[:4])} followed from the other constraints at the start and was left "
                "out, but does not follow from them later. "
                "Use an explicit method, which finds out where"
            )

    def go_on(self, progress: bool | Callable[[float], None], steps: int | None = None) -> int:
        """Call the compiled loop until it needs no more calls, the user wants to stop, so many steps have
        been tried, or stiffness was met.
        """
        limit = np.inf if steps is None else self._tried() + steps
        with Interruption() as interruption, _Progress(progress) as show:
            code = run.FULL
            while code == run.FULL and not (
                self.counts[run.STATE] == run.STEPPING
                and (self._tried() >= limit or self.stepper.met_stiffness(self.memory))
            ):
                if self.counts[run.STATE] != run.START:
                    self._collect()
                    self.rows = min(2 * self.rows, _MOST_ROWS)
                    self._buffers()
                usual = self.budget
                self.budget = int(max(1, min(usual, limit - self._tried())))
                before, begin = self._tried(), time.perf_counter()
                code = self.advance()
                took = time.perf_counter() - begin
                self.budget = max(
                    10,
                    min(
                        100 * usual,
                        int((self._tried() - before) * _SECONDS_PER_CALL / max(took, 1e-9)),
                        10**9,
                    ),
                )
                try:
                    show((self.memory[run.T] - self.start_of_all) / (self.t1 - self.start_of_all))
                except KeyboardInterrupt:
                    return run.STOPPED
                if interruption.requested and code == run.FULL:
                    return run.STOPPED
        return code

    def _tried(self) -> int:
        return int(self.counts[run.ACCEPTED] + self.counts[run.REJECTED])

    def tell_end(self, progress: bool | Callable[[float], None]) -> None:
        """A short run tells its progress once."""
        if callable(progress) and len(self.chunks) == 0:
            progress(float((self.memory[run.T] - self.start_of_all) / (self.t1 - self.start_of_all)))

    def _message(self, code: int) -> str:
        """What happened, in words."""
        t, y, n = float(self.memory[run.T]), self.state, self.system.dim
        q, v = y[:n].copy(), y[n : 2 * n].copy()
        match code:
            case run.TERMINATED:
                return f"stopped by an event at t = {t:.9g}"
            case run.STOPPED:
                return f"interrupted at t = {t:.6g}"
            case run.USER_FUNCTION_FAILED:
                return f"stopped at t = {t:.6g}: {self._user_failure(t, q, v)}"
            case run.TOO_MANY_STEPS:
                done = abs(t - self.t0) / abs(self.t1 - self.t0)
                advice = (
                    "Raise max_steps or loosen rtol"
                    if done > 0.1
                    else "Hardly any progress: a force that jumps with q or v near here (dry friction at "
                    "rest? then smooth it, v/sqrt(v² + ε²), or stop with an event), "
                    "random numbers in a force, or a very stiff system (then try method='ggl')"
                )
                return f"stopped at t = {t:.6g} after max_steps = {self.counts[run.MAX_STEPS]} steps; the last had size {self.memory[run.H]:.1e}. {advice}"
            case run.CANNOT_START | run.OFF_MANIFOLD:
                return f"cannot start at t = {t:.6g}: {what_failed(self.system, t, q, v)}"
        return f"stopped at t = {t:.6g}: {self._why_stuck(t, q, v)}"

    def _user_failure(self, t: float, q: np.ndarray, v: np.ndarray) -> str:
        """Which function failed: as it was caught, or by calling all of them where a step, and an event, was
        last evaluated in vain.
        """
        for foreign in self.foreign:
            if foreign.error is not None:
                error = foreign.error
                text = (
                    str(error)
                    if isinstance(error, ModelError)
                    else f"{foreign.role} raised {type(error).__name__}: {error}"
                )
                return f"{text} (near t = {t:.6g}, q = {np.array2string(q, precision=6, threshold=8)})"
        n = self.system.dim
        z = self.stepper.failed_state(self.memory)
        points = [(float(self.memory[run.T_FAILED]), z[:n], z[n:]), (t, q, v)]
        for point in points:
            text = what_failed(self.system, *point)
            if not text.startswith("a derivative"):
                return text
        for i, event in enumerate(self.events):
            try:
                UserFunction(
                    f"events[{i}]",
                    event.function,
                    self.system.n,
                    self.system.parameters,
                    self.system.further_values,
                ).evaluate(
                    {"t": t, "q": q[: self.system.n], "v": v[: self.system.n], "s": v[self.system.n :]}
                )
            except ModelError as error:
                return str(error)
        return text

    def _why_stuck(self, t: float, q: np.ndarray, v: np.ndarray) -> str:
        """Diagnosis of a step size that fell to nothing."""
        if isinstance(self.stepper, Sequential) and (told := self.stepper.why_stuck(self.memory)):
            return told
        used = self.counts[run.REJECTIONS]
        cause = int(self.rejection_rows[used - 1, 3]) if used else 0
        size = f"the step size fell to {self.memory[run.H]:.1e}"
        if self.stepper.constant:
            size = f"the constant step {self.stepper.constant:g} fails"
        pieces = self.kernels.evaluate_pieces(self.context, t, q, v)
        if pieces is None or not all(np.all(np.isfinite(x)) for x in pieces.values()):
            return f"{size}; {what_failed(self.system, t, q, v)}"
        singular_values = (
            np.linalg.svd(
                pieces["C"] / np.maximum(np.linalg.norm(pieces["C"], axis=1), 1e-300)[:, None],
                compute_uv=False,
            )
            if self.system.m
            else np.ones(1)
        )
        if cause == run.FUNCTION_RAISED:
            return f"{size}; {self._user_failure(t, q, v)}"
        if cause == run.CONTRADICTION:
            return f"{size}; constraint rows that depend on each other ask for different positions or velocities further on: they contradict each other"
        advice = (
            "an impasse, unless another method or rtol passes it: 'dop853', 'srm' and 'bdf' differ in this"
        )
        if singular_values[-1] < 1e-3 and (
            self.context[RANK] != self.system.m or isinstance(self.stepper, Implicit)
        ):
            rows = dependent_rows(np.round(pieces["C"], 12))[1] or [
                int(np.argmin(np.linalg.norm(pieces["C"], axis=1)))
            ]
            names = ", ".join(self.system.constraint_names[i] for i in rows[:4])
            return f"{size}; the constraints come close to a singular position (smallest singular value {singular_values[-1]:.1e}; {names} depends on the others there); {advice}"
        vanishing = self._vanishing_rows(pieces["C"])
        if vanishing:
            return f"{size}; a singular position: the derivative of {', '.join(vanishing)} with respect to q vanishes there; {advice}"
        largest = self.system.all_names[int(np.argmax(np.abs(v)))]
        if np.max(np.abs(v)) > 1e6 * max(1.0, float(np.max(np.abs(q)))) or np.max(np.abs(q)) > 1e8:
            return f"{size}; the motion grows without bound (|{largest}′| = {np.max(np.abs(v)):.1e}), the solution may end here"
        reason = {
            run.NEWTON: "Newton's method does not converge; a discontinuity, a singularity, or a Jacobian "
            "that is only approximate",
            run.PROJECTION_FAILED: "no point on the constraints is found near the end of a step; an impasse, "
            "or constraints that cannot be met further on",
            run.NOT_FINITE: "forces, masses or constraints are not finite just ahead; "
            + self._ahead(t, q, v),
            run.CONTRADICTION: "constraint rows that depend on each other ask for different positions or "
            "velocities further on: they contradict each other",
            run.SINGULAR_MATRIX: "mass matrix and constraints do not determine the accelerations just ahead",
            run.ERROR_TEST: "the error cannot be kept below the tolerance; a jump in the forces, a "
            "singularity, or rtol too small",
        }.get(cause, "no step succeeds")
        return f"{size}; {reason}"

    def _vanishing_rows(self, C: np.ndarray) -> list[str]:
        """Constraints whose row of C is a thousand times smaller than at the start."""
        n = self.system.dim
        before = self.kernels.evaluate_pieces(self.context, self.t0, self.first[:n], self.first[n:])
        if before is None:
            return []
        small = np.linalg.norm(C, axis=1) < 1e-3 * np.linalg.norm(before["C"], axis=1)
        return [self.system.constraint_names[i] for i in np.flatnonzero(small)[:4]]

    def _ahead(self, t: float, q: np.ndarray, v: np.ndarray) -> str:
        for h in (1e-12, 1e-9, 1e-6, 1e-3):
            dt = h * (self.t1 - self.t0)
            text = what_failed(self.system, t + dt, q + dt * v, v)
            if not text.startswith("a derivative"):
                return text
        return "look at square roots, logarithms and divisions there"


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

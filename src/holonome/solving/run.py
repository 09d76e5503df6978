"""A run: memory, buffers and calls of the compiled loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from holonome.dynamics.start import Start
from holonome.dynamics.switching_times import switching_times
from holonome.integrators import loop
from holonome.integrators.contract import Beginning, Record, Stepper
from holonome.integrators.loop import RunState
from holonome.machine.context import OK
from holonome.machine.interruption import Interruption
from holonome.machine.layout import CHECKED, appended
from holonome.machine.progress import ProgressDisplay
from holonome.problem.event import Event, compiled_events

_FEWEST_ROWS, _FIRST_ROWS, _MOST_ROWS, _FIRST_NUMBERS = 64, 2048, 65_536, 1 << 17
_FIRST_BUDGET, _SECONDS_PER_CALL = 2000, 0.1
_NO_TIMES, _NOTHING = np.zeros(0), np.zeros((1, 8))
_AT = RunState.places


class Task(NamedTuple):
    """What is to be done, checked and complete."""

    system: Any
    name: str
    stepper: Stepper
    t0: float
    t1: float
    y0: np.ndarray
    rtol: float
    atol: Any
    t_eval: np.ndarray | None
    events: list[Event]
    keep_steps: bool
    dense_output: bool
    first_step: float | None
    max_step: float
    max_steps: int
    origin: float
    """Where the whole run began, of which this may be a later leg."""
    steps_before: int = 0
    """Steps tried by earlier legs."""

    @property
    def direction(self) -> int:
        return 1 if self.t1 > self.t0 else -1


class Run:
    """One run of a task: its memory, its buffers, and what has been collected from them."""

    def __init__(self, task: Task) -> None:
        self.task, self.stepper, self.system = task, task.stepper, task.system
        self.first = task.y0
        self.trusted = False
        self.memory = self._new_memory()
        self.whole = self.memory.view(np.int64)
        begin = int(self.whole[_AT.y])
        self.state = self.memory[begin : begin + self.stepper.columns]
        self.state[: task.y0.size] = task.y0
        self._prepare_events()
        called = any(supplied.path == "python" for supplied in self.supplied)
        self.calls_python = called or self.stepper.calls_python
        self.points_kept: list[np.ndarray] = []
        self.steps_kept: list[np.ndarray] = []
        self.rejections_kept: list[np.ndarray] = []
        self.found_kept: list[np.ndarray] = []
        self.rows = min(_FIRST_ROWS, max(_FEWEST_ROWS, _FIRST_NUMBERS // self.stepper.columns))
        self.budget = _FIRST_BUDGET
        self._new_buffers()

    def _new_memory(self) -> np.ndarray:
        """The memory of the stepper with what the task says."""
        task = self.task
        memory, direction, t_eval = self.stepper.memory(len(task.events)), task.direction, task.t_eval
        whole = memory.view(np.int64)
        memory[_AT.t] = memory[_AT.t_start] = memory[_AT.t_old] = task.t0
        memory[_AT.t_end] = task.t1
        memory[_AT.rtol] = task.rtol
        memory[_AT.h_max] = task.max_step
        if task.first_step is not None:
            memory[_AT.first_step] = min(task.first_step, task.max_step, abs(task.t1 - task.t0))
        whole[_AT.direction] = direction
        whole[_AT.max_steps] = task.max_steps
        whole[_AT.keep_steps] = task.keep_steps
        whole[_AT.keep_points] = task.keep_steps and t_eval is None
        if t_eval is not None:
            whole[_AT.evals] = t_eval.size
            whole[_AT.next_eval] = t_eval.size > 0 and t_eval[0] == task.t0
        atol = int(whole[_AT.atol])
        memory[atol : atol + task.y0.size] = task.atol
        stops = switching_times(self.system, task.t0, task.t1)
        if stops.size:
            margin = direction * 4 * np.spacing(max(abs(task.t0), abs(task.t1)))
            sides = np.column_stack([stops - margin, stops + margin]).ravel()
            whole[_AT.switches] = stops.size
            memory = appended(memory, RunState, 0, switching_times=sides)
        return memory

    def _prepare_events(self) -> None:
        """The context of the run, and its events in it and in the memory."""
        events, memory = self.task.events, self.memory
        compiled = self.compiled_events = compiled_events(self.system, events) if events else None
        self.context = self.stepper.new_context(compiled.extra if compiled else 0)
        self.supplied = list(self.system.supplied)
        if compiled is not None:
            compiled.fill(self.context)
            self.supplied += compiled.supplied.values()
            RunState.set(memory, event_kernel=compiled.address)
            RunState.vector(memory, "event_direction")[:] = [event.direction for event in events]
            RunState.vector(memory, "event_terminal")[:] = [float(event.terminal or 0) for event in events]
        for supplied in self.supplied:
            supplied.error = None

    def _new_buffers(self) -> None:
        task, size, rows = self.task, self.stepper.columns, self.rows
        self.points = np.empty((rows, 1 + size))
        self.steps = _NOTHING
        if task.keep_steps:
            further = self.stepper.step_columns(task.dense_output, task.t_eval is not None)
            self.steps = np.empty((rows, loop.STEP_COLUMNS + further))
        self.rejections = np.empty((rows, loop.REJECTION_COLUMNS))
        self.found = np.empty((64 + len(task.events), 2 + size))
        whole = self.whole
        whole[_AT.points] = whole[_AT.steps] = whole[_AT.rejections] = whole[_AT.found] = 0

    def restart(self, y0: np.ndarray) -> None:
        """Begin again from other initial values, known to be consistent."""
        self.first = self.state[: y0.size] = y0
        self.trusted = True

    def use_history(self, history: Any) -> None:
        """Begin with the solution known at a few points."""
        self._history = history

    _history: Any = None

    def _begin(self) -> int:
        """Fill in the initial values, and write the first point."""
        task, stepper = self.task, self.stepper
        if self.system.invariant_count:
            stepper.remember_invariants(self.context, task.t0, self.first)
        code = stepper.begin(self.memory, self.context, Beginning(task.t0, task.t1, self.first, self.trusted))
        if code != OK:
            return code
        if self.whole[_AT.keep_points] or self.whole[_AT.next_eval]:
            self.points[0, 0] = task.t0
            self.points[0, 1:] = self.state
            self.whole[_AT.points] = 1
        if self._history is not None:
            states = stepper.fill_history(self.memory, self.context, self._history)
            if self.whole[_AT.keep_points]:
                self.points[: len(states), 0] = self._history.t
                self.points[: len(states), 1:] = states
                self.whole[_AT.points] = len(states)
        return OK

    def advance(self) -> int:
        """Call the compiled loop once."""
        if self.whole[_AT.phase] == loop.START:
            code = self._begin()
            if code != OK:
                return code
        self.whole[_AT.budget] = self.budget
        t_eval = _NO_TIMES if self.task.t_eval is None else self.task.t_eval
        code = self.stepper.advance(
            self.memory, self.context, self.points, self.steps, self.rejections, self.found, t_eval
        )
        if CHECKED:
            self.stepper.require_intact(self.memory)
        return loop.STOPPED if code == loop.USER_FUNCTION_FAILED and Interruption.requested else code

    @property
    def t(self) -> float:
        """The time reached."""
        return float(self.memory[_AT.t])

    @property
    def tried(self) -> int:
        """Steps tried so far."""
        return int(self.whole[_AT.accepted] + self.whole[_AT.rejected])

    @property
    def fraction(self) -> float:
        """The part of the whole run that is done."""
        return (self.t - self.task.origin) / (self.task.t1 - self.task.origin)

    def go_on(self, progress: bool | Callable[[float], None], steps: int | None = None) -> int:
        """Call the compiled loop until it needs no more calls, the user wants to stop, so many steps have
        been tried, or stiffness was met.
        """
        limit = np.inf if steps is None else self.tried + steps
        with Interruption() as interruption, ProgressDisplay(progress, "simulating") as show:
            code = loop.FULL
            while code == loop.FULL and not self._pauses(limit):
                if self.whole[_AT.phase] != loop.START:
                    self.collect()
                    self.rows = min(2 * self.rows, _MOST_ROWS)
                    self._new_buffers()
                code = self._timed_advance(limit)
                try:
                    show(self.fraction)
                except KeyboardInterrupt:
                    return loop.STOPPED
                if interruption.requested and code == loop.FULL:
                    return loop.STOPPED
        return code

    def _pauses(self, limit: float) -> bool:
        between_steps = self.whole[_AT.phase] == loop.STEPPING
        return between_steps and (self.tried >= limit or self.stepper.met_stiffness(self.memory))

    def _timed_advance(self, limit: float) -> int:
        """One call, of about a tenth of a second."""
        usual = self.budget
        self.budget = int(max(1, min(usual, limit - self.tried)))
        before, begin = self.tried, time.perf_counter()
        code = self.advance()
        took = max(time.perf_counter() - begin, 1e-9)
        fitting = int((self.tried - before) * _SECONDS_PER_CALL / took)
        self.budget = max(10, min(100 * usual, fitting, 10**9))
        return code

    def collect(self) -> None:
        """Move what the buffers hold to the results."""
        whole = self.whole
        for kept, buffer, used in (
            (self.points_kept, self.points, int(whole[_AT.points])),
            (self.steps_kept, self.steps, int(whole[_AT.steps])),
            (self.rejections_kept, self.rejections, int(whole[_AT.rejections])),
            (self.found_kept, self.found, int(whole[_AT.found])),
        ):
            if used:
                copies = 2 * used <= len(buffer) and len(buffer) > _FIRST_ROWS
                kept.append(buffer[:used].copy() if copies else buffer[:used])

    def record(self) -> Record:
        """What dense output needs."""
        return Record(
            self.task.t0,
            self.t,
            self.state.copy(),
            joined(self.points_kept, 1 + self.stepper.columns),
            joined(self.steps_kept, self.steps.shape[1]),
            self.task.keep_steps and self.task.t_eval is not None,
        )

    def events_found(self) -> tuple[list[np.ndarray] | None, list[np.ndarray] | None, np.ndarray]:
        """Times and states of each event, and times at which the rank of the constraints fell."""
        if not self.task.events and not self.found_kept:
            return None, None, _NO_TIMES
        found = joined(self.found_kept, 2 + self.stepper.columns)
        direction = self.task.direction
        singular = found[(found[:, 0] < 0) & (direction * found[:, 1] <= direction * self.t), 1]
        if not self.task.events:
            return None, None, singular
        rows = [found[found[:, 0] == i] for i in range(len(self.task.events))]
        return [row[:, 1] for row in rows], [row[:, 2:] for row in rows], singular

    def event_failed(self) -> bool:
        """Whether it was an event, not the system, that raised."""
        compiled = self.compiled_events
        return compiled is not None and any(
            supplied.error is not None for supplied in compiled.supplied.values()
        )


class Outcome(NamedTuple):
    """How a run ended: its code, and the start if it had to be found."""

    code: int
    start: Start | None = None


def joined(chunks: list[np.ndarray], width: int) -> np.ndarray:
    """All rows; the list then holds them as one."""
    if len(chunks) != 1:
        chunks[:] = [np.concatenate(chunks) if chunks else np.empty((0, width))]
    return chunks[0]

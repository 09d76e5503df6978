"""A run: memory, buffers and calls of the compiled loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from holonome.dynamics.kernels import dense_derivative, dense_multipliers, kernels
from holonome.dynamics.poles import unbounded_near
from holonome.dynamics.start import Start, time_moved
from holonome.dynamics.switching_times import may_stop, stops
from holonome.integrators import loop
from holonome.integrators.contract import Beginning, Record, Stepper
from holonome.integrators.event_search import MOST_IN_STEP
from holonome.integrators.loop import RunState
from holonome.machine.context import OK, PARAMETERS, Context
from holonome.machine.interruption import Interruption
from holonome.machine.layout import CHECKED, Guards, appended
from holonome.machine.progress import ProgressDisplay
from holonome.machine.supplied import Supplied
from holonome.problem.event import Event, compiled_events

_FEWEST_ROWS, _FIRST_ROWS, _MOST_ROWS, _FIRST_NUMBERS = 64, 2048, 65_536, 1 << 17
_FIRST_BUDGET, _SECONDS_PER_CALL = 2000, 0.1
_WINDOWS, _SHORTEST_WINDOW, _MANY_FAILURES, _OUT_OF_REACH = 100, 2000, 0.2, 10
_USUAL_EVENT = (0.0, 0)
"""Both directions, and it does not end the run."""

_NO_TIMES, _NOTHING = np.zeros(0), np.zeros((1, 8))
_NO_REJECTIONS = np.zeros((0, loop.REJECTION_COLUMNS))
_AT = RunState.places
_, _write_task = RunState.stretch("t", "budget")
_read_counts, _ = RunState.stretch("nfev", "projections")
_read_rows, _write_rows = RunState.stretch("points", "found")
_, _write_kernels = RunState.stretch("event_kernel", "event_dense_multipliers")


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


class Mark(NamedTuple):
    """Where a run stood at the end of a window of steps."""

    t: float = 0.0
    tried: int = 0
    rejected: int = 0
    hopeless: int = 0  # windows in which it made hardly any progress, up to here


class Run:
    """One run of a task: its memory, its buffers, and what has been collected from them."""

    begun = False
    trusted = False
    budget = _FIRST_BUDGET
    compiled_events: Any = None
    guards: Guards
    """Of the context, in a checked build."""
    poles: Sequence[float] = ()
    """Times ahead just before which steps end, because there may be a pole."""
    _history: Any = None
    _empty: tuple[np.ndarray, np.ndarray] | None = None
    """Memory and context before the first beginning, where these serve for others."""
    _mark = Mark()
    repaired = 0.0
    """The time in which the motion goes as far as the start had to be moved to satisfy the constraints."""

    def __init__(self, task: Task, first_rows: int = _FIRST_ROWS) -> None:
        self.task, self.stepper, self.system, self.first = task, task.stepper, task.system, task.y0
        self.memory = self._new_memory()
        self.supplied: Sequence[Supplied] = self.system.supplied
        self.context = self._prepare_events() if task.events else self.stepper.new_context()
        if CHECKED:
            self.guards = Guards(self.context)
        self.calls_python = self.stepper.calls_python or (bool(self.supplied) and self._supplied_by_python())
        self.full: list[Collected] = []
        self.rows = self.first_rows = min(
            first_rows, max(_FEWEST_ROWS, _FIRST_NUMBERS // self.stepper.columns)
        )
        self._new_buffers()

    def _new_memory(self) -> np.ndarray:
        """The stepper's memory, filled in from the task."""
        system, t0, t1, direction = self.system, self.task.t0, self.task.t1, self.task.direction
        memory = self.stepper.memory(len(self.task.events))
        self._enter_task(memory)
        times, at_pole = stops(system, t0, t1)
        if times.size:
            margin = direction * 4 * np.spacing(max(abs(t0), abs(t1)))
            RunState.set(memory, switches=times.size)
            sides = np.column_stack([times - margin, times + margin])
            memory = appended(memory, RunState, 0, switching_times=sides.ravel())
            self.poles = sides[at_pole, 0].tolist()
            if self.poles:
                RunState.set(memory, t_end=self.poles[0])
        return memory

    def _enter_task(self, memory: np.ndarray) -> None:
        """What a task asks for, where it begins and where it ends."""
        _, _, stepper, t0, t1, y0, rtol, atol, t_eval, _, keep_steps, *_ = task = self.task
        first_step, evals, next_eval = 0.0, 0, False
        if task.first_step is not None:
            first_step = min(task.first_step, task.max_step, abs(t1 - t0))
        if t_eval is not None:
            evals, next_eval = t_eval.size, bool(t_eval.size and t_eval[0] == t0)
        keep_points = keep_steps and t_eval is None
        numbers = (t0, t0, t0, t1, task.max_step, first_step, rtol, task.direction, task.max_steps)
        _write_task(memory, *numbers, keep_points, keep_steps, evals, next_eval, _FIRST_BUDGET)
        at_y, at_atol = stepper.given
        memory[at_y], memory[at_atol] = y0, atol

    def repeatable(self) -> bool:
        """Whether `again` may begin it anew: nothing in it belongs to its stretch of time or to its start."""
        system = self.system
        fixed = not (system.solves or system.invariant_count or may_stop(system) or self.supplied)
        if fixed and self._history is None and not CHECKED:
            self._empty = self.memory.copy(), self.context[: PARAMETERS + system.context_size].copy()
        return self._empty is not None

    def again(self, task: Task) -> None:
        """Begin anew with another stretch, perhaps with other parameters, of the same system."""
        assert self._empty is not None
        memory, context = self._empty
        self.task, self.system, self.first = task, task.system, task.y0
        self.memory[:], self.context[: context.size] = memory, context
        self.system.fill_parameters(self.context)
        if self.stepper.left_out:
            Context.vector(self.context, "left_out")[:] = 0.0
            self.stepper.left_out = ()
        self._enter_task(self.memory)
        self.begun, self.trusted, self.full, self._mark, self.repaired = False, False, [], Mark(), 0.0
        self.budget, self.rows = _FIRST_BUDGET, self.first_rows
        self._new_buffers()

    def _look_at_pole(self) -> int:
        """At the end of a stretch up to a possible pole: AT_POLE if there is one, else FULL, to go on."""
        t, *self.poles = self.poles
        y, span = self.state[: self.system.state_size].copy(), self.task.t1 - self.task.origin
        if unbounded_near(self.system, t, y, span):
            return loop.AT_POLE
        t_end = self.poles[0] if self.poles else self.task.t1
        RunState.set(self.memory, t_end=t_end, phase=loop.CROSSING)
        return loop.FULL

    def _supplied_by_python(self) -> bool:
        """Whether one of the functions that are called is Python; forget their earlier errors."""
        for supplied in self.supplied:
            supplied.error = None
        return any(supplied.path == "python" for supplied in self.supplied)

    def _prepare_events(self) -> np.ndarray:
        """Enter the events into the memory; a context with room for them."""
        events, memory = self.task.events, self.memory
        compiled = self.compiled_events = compiled_events(self.system, events)
        context = self.stepper.new_context(compiled.extra)
        compiled.fill(context)
        if compiled.supplied:
            self.supplied = [*self.supplied, *compiled.supplied.values()]
        _write_kernels(memory, compiled.address, *self._kernels_for_events(compiled))
        at_exact, at_direction, at_terminal = self.stepper.of_events
        memory[at_exact] = compiled.exact
        settings = [(event.direction, event.terminal or 0) for event in events]
        if settings != [_USUAL_EVENT] * len(events):
            memory[at_direction], memory[at_terminal] = zip(*settings, strict=True)
        return context

    def _kernels_for_events(self, compiled: Any) -> tuple[int, int, int, int]:
        """Addresses of the kernels for the accelerations and multipliers that events need, each followed by
        its dense fallback; 0 where they do not.
        """
        rate = dense_rate = multipliers = dense_lam = 0
        if compiled.needs_motion:
            rate, dense_rate = kernels(self.system).derivative, dense_derivative.address
        if compiled.needs_multipliers and self.stepper.columns == self.system.state_size:
            multipliers, dense_lam = kernels(self.system).multipliers, dense_multipliers.address
        return rate, dense_rate, multipliers, dense_lam

    def _new_buffers(self) -> None:
        task, size, rows = self.task, self.stepper.columns, self.rows
        self.points = np.empty((rows, 1 + size))
        self.steps = _NOTHING
        if task.keep_steps:
            extra = self.stepper.step_columns(task.dense_output, task.t_eval is not None)
            self.steps = np.empty((rows, loop.STEP_COLUMNS + extra))
        self.rejections = np.empty((rows, loop.REJECTION_COLUMNS))
        self.found = np.empty((64 + MOST_IN_STEP * len(task.events), 2 + size))

    def restart(self, y0: np.ndarray) -> None:
        """Begin again from other initial values, known to be consistent."""
        self.repaired = time_moved(self.first, y0, self.system.n)
        self.first = self.memory[self.stepper.given[0]] = y0
        self.trusted, self.begun = True, False

    def begins_at_events(self, numbers: Sequence[int], span: float) -> None:
        """Events that were located where this run begins, part of one of this length, are not found again."""
        RunState.vector(self.memory, "event_fired")[list(numbers)] = span

    def use_history(self, history: Callable[[np.ndarray], Any]) -> None:
        """Begin with the solution at a few points; ``history`` computes it from a consistent start."""
        self._history = history

    def _begin(self) -> int:
        """Fill in the initial values."""
        task, stepper = self.task, self.stepper
        if self.system.invariant_count:
            stepper.remember_invariants(self.context, task.t0, self.first)
        code = stepper.begin(self.memory, self.context, Beginning(task.t0, task.t1, self.first, self.trusted))
        if code != OK:
            return code
        if self._history is not None:
            self._fill_history()
        return OK

    def _fill_history(self) -> None:
        """Enter the points that are known in advance."""
        history = self._history(self.first)
        run, times, first = RunState.of(self.memory), history.t, self.state.copy()
        states = self.stepper.fill_history(self.memory, self.context, history)
        if not run["keep_points"]:
            times, states = times[:1], first[None, :]
        if run["keep_points"] or run["next_eval"]:
            self.points[: len(states), 0] = times
            self.points[: len(states), 1:] = states
            run["points"] = len(states)

    def advance(self) -> int:
        """Call the compiled loop once."""
        if not self.begun:
            code = self._begin()
            if code != OK:
                return code
            self.begun = True
        t_eval = _NO_TIMES if self.task.t_eval is None else self.task.t_eval
        code = self.stepper.advance(
            self.memory, self.context, self.points, self.steps, self.rejections, self.found, t_eval
        )
        if CHECKED:
            self.stepper.require_intact(self.memory)
            self.guards.require_intact(self.context, "the context")
        if code == loop.DONE and self.poles:
            return self._look_at_pole()
        return loop.STOPPED if code == loop.USER_FUNCTION_FAILED and Interruption.requested else code

    def first_advance(self) -> int:
        """Call it so that Ctrl-C is noted, not raised, in callbacks from compiled code."""
        if not self.calls_python:
            return self.advance()
        with Interruption():
            return self.advance()

    @property
    def state(self) -> np.ndarray:
        """The state reached, with multipliers where the method has them."""
        begin = self.stepper.given[0].start
        return self.memory[begin : begin + self.stepper.columns]

    @property
    def phase(self) -> int:
        return RunState.of(self.memory)["phase"]  # type: ignore[return-value]

    @property
    def t(self) -> float:
        """The time reached."""
        return float(self.memory[_AT.t])

    @property
    def tried(self) -> int:
        """Steps tried so far."""
        return self.counts[1] + self.counts[2]

    @property
    def counts(self) -> tuple[int, ...]:
        """Evaluations, accepted steps, rejected steps, projections."""
        return _read_counts(self.memory)

    @property
    def fraction(self) -> float:
        """The part of the whole run that is done."""
        return (self.t - self.task.origin) / (self.task.t1 - self.task.origin)

    def go_on(self, progress: bool | Callable[[float], None], steps: int | None = None) -> int:
        """Call the compiled loop until it needs no more calls, the user wants to stop, so many steps have
        been tried, or stiffness was detected.
        """
        limit = np.inf if steps is None else self.tried + steps
        with Interruption() as interruption, ProgressDisplay(progress, "simulating") as show:
            code = loop.FULL
            while code == loop.FULL and not self._pauses(limit):
                if self.phase != loop.START:
                    self.collect()
                code = self._timed_advance(limit)
                try:
                    show(self.fraction)
                except KeyboardInterrupt:
                    return loop.STOPPED
                if interruption.requested and code == loop.FULL:
                    return loop.STOPPED
        return code

    def _pauses(self, limit: float) -> bool:
        pauses = self.tried >= limit or self.stepper.met_stiffness(self.memory)
        return pauses and self.phase == loop.STEPPING

    def _timed_advance(self, limit: float) -> int:
        """One call, of about a tenth of a second."""
        usual = self.budget
        before = self.tried
        window = max(_SHORTEST_WINDOW, self.task.max_steps // _WINDOWS)
        steps = min(usual, limit - before, self._mark.tried + window - before)
        RunState.set(self.memory, budget=int(max(1, steps)))
        begin = time.perf_counter()
        code = self.advance()
        took = max(time.perf_counter() - begin, 1e-9)
        fitting = int((self.tried - before) * _SECONDS_PER_CALL / took)
        self.budget = max(10, min(100 * usual, fitting, 10**9))
        if code == loop.FULL and self.tried >= self._mark.tried + window and self._chatters():
            return loop.CHATTERING
        return code

    def _chatters(self) -> bool:
        """Whether, in two windows one after the other, many steps failed and the end is out of reach at this
        pace.  Windows are counted in steps, so that it does not depend on the machine.
        """
        mark, now = self._mark, Mark(self.t, self.tried, self.counts[2])
        tried, failed = now.tried - mark.tried, now.rejected - mark.rejected
        progress = abs(now.t - (mark.t if mark.tried else self.task.t0))
        needed = abs(self.task.t1 - now.t) * tried / max(progress, 1e-300)
        hopeless = failed > _MANY_FAILURES * tried and needed > _OUT_OF_REACH * self.task.max_steps
        self._mark = now._replace(hopeless=mark.hopeless + 1 if hopeless else 0)
        return self._mark.hopeless >= 2

    def collect(self) -> None:
        """Set the full buffers aside and make new ones."""
        self.full.append(self._used())
        self.rows = min(2 * self.rows, _MOST_ROWS)
        self._new_buffers()
        _write_rows(self.memory, 0, 0, 0, 0)

    def _used(self) -> Collected:
        points, steps, rejections, found = _read_rows(self.memory)
        return Collected(
            self.points[:points],
            self.steps[:steps],
            self.rejections[:rejections] if rejections else _NO_REJECTIONS,
            self.found[:found],
        )

    def trim(self) -> None:
        """Keep no more memory than what has been written needs."""
        self.points, self.steps, self.rejections, self.found = (rows.copy() for rows in self._used())

    def collected(self) -> Collected:
        """All points, steps, rejected steps and events so far."""
        used = self._used()
        if self.full:
            parts = zip(*[*self.full, used], strict=True)
            return Collected(*(np.concatenate([part for part in p if len(part)] or p[:1]) for p in parts))
        return used

    def record(self, collected: Collected) -> Record:
        """What dense output needs."""
        beside_points = self.task.keep_steps and self.task.t_eval is not None
        solved = self.system.solved_in(self.context) if self.system.solves else None
        first, last = self.first, self.state.copy()
        return Record(
            self.task.t0, self.t, first, last, solved, collected.points, collected.steps, beside_points
        )

    def events_in(
        self, found: np.ndarray
    ) -> tuple[list[np.ndarray] | None, list[np.ndarray] | None, np.ndarray]:
        """Times and states of each event, and times at which the rank of the constraints fell."""
        if not self.task.events and not len(found):
            return None, None, _NO_TIMES
        which, times, states = found[:, 0], found[:, 1], found[:, 2:]
        events, numbers, singular = len(self.task.events), set(which.tolist()), _NO_TIMES
        if -1.0 in numbers:
            direction = self.task.direction
            singular = times[(which < 0) & (direction * times <= direction * self.t)]
        if not events:
            return None, None, singular
        if events == 1 and -1.0 not in numbers:
            return [times], [states], singular
        rows = [which == i for i in range(events)]
        return [times[row] for row in rows], [states[row] for row in rows], singular

    def event_failed(self) -> bool:
        """Whether it was an event, not the system, that raised."""
        compiled = self.compiled_events
        return compiled is not None and any(
            supplied.error is not None for supplied in compiled.supplied.values()
        )


class Collected(NamedTuple):
    """What the compiled loop has written, as rows."""

    points: np.ndarray
    steps: np.ndarray
    rejections: np.ndarray
    found: np.ndarray


class Outcome(NamedTuple):
    """How a run ended: its code, and the start if it had to be found."""

    code: int
    start: Start | None = None

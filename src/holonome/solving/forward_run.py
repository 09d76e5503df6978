"""A run without an end of its own: it is asked for one stretch after the other, in the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holonome.dynamics.switching_times import may_stop, stops
from holonome.integrators import loop
from holonome.integrators.contract import Beginning
from holonome.integrators.event_search import MOST_IN_STEP
from holonome.integrators.loop import RunState
from holonome.machine.context import PARAMETERS, Context
from holonome.machine.interruption import Interruption
from holonome.machine.layout import appended
from holonome.solving.run import Run, Task

_ROWS, _FEWEST_TIMES = 64, 16
_AT = RunState.places
_WATCH = _AT.watch
_, _write_times = RunState.stretch("t", "t_end")
_, _write_counts = RunState.stretch("nfev", "projections")
_, _write_rows = RunState.stretch("points", "found")
_, _write_budget = RunState.stretch("budget", "budget")
_, _write_switches = RunState.stretch("switches", "next_switch")
_read_phase, _ = RunState.stretch("phase", "phase")
_FIRST, _MOST = 2000, 200_000
"""Steps between two looks at Ctrl-C."""


class ForwardRun(Run):
    """Goes on to one time after the other: from where it is, or as a new run begins there.

    A new beginning has nothing of what was before but the state: memory and context are those of a new run,
    so that steps are the same to the last digit.
    """

    fired: Sequence[int] = ()  # events that ended the last stretch
    room = 0  # for times at which steps end

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        if not self.stepper.projects_anyway:
            self.memory[_WATCH] = 0.0  # nobody asks when the rank fell, and finding out would cost much
        self.empty = self.memory.copy()
        self.flat = task.system.parameters.flat.copy()
        self.kept = PARAMETERS + task.system.context_size
        self.new_context = self.context[: self.kept].copy()
        self.may_stop = may_stop(task.system)
        self.t0, self.t1 = task.t0, task.t1

    def _new_buffers(self) -> None:
        columns = 1 + self.stepper.columns
        self.rows = _ROWS
        self.points, self.steps = np.empty((1, columns)), np.empty((1, 1))
        self.rejections = np.empty((_ROWS, loop.REJECTION_COLUMNS))
        self.found = np.empty((_ROWS + MOST_IN_STEP * len(self.task.events), 1 + columns))

    def write(self, begin: int, values: Any) -> None:
        """Change parameters or inputs in their flat array, from one on."""
        end = begin + (1 if type(values) is float else values.size)
        self.flat[begin:end] = values
        at = slice(PARAMETERS + begin, PARAMETERS + end)
        self.new_context[at] = self.context[at] = values
        if begin < self.task.system.parameters.of_inputs.start:
            for context in (self.new_context, self.context):
                self.task.system.fill_terms(context)

    def begin_at(self, t: float, y: np.ndarray, t1: float, trusted: Sequence[int] | None = None) -> int:
        """Begin there as a new run does, and go on to t1; a code of the loop.  If the state is known to be
        consistent, ``trusted`` says which rows are left out.
        """
        self._prepare(t, y, t1, trusted)
        return self.advance_all()

    def try_start(self, t: float, y: np.ndarray, t1: float) -> int:
        """Whether it can begin there: FULL, or a code of the loop."""
        self._prepare(t, y, t1, None)
        _write_budget(self.memory, 0)
        return self.first_advance()

    def _prepare(self, t: float, y: np.ndarray, t1: float, trusted: Sequence[int] | None) -> None:
        memory, stepper, task = self.memory, self.stepper, self.task
        left = memory[stepper.of_events[2]].copy() if task.events else None
        memory[:] = self.empty
        if left is not None:
            memory[stepper.of_events[2]] = left
        _write_times(memory, t, t, t, t1)
        if task.first_step is not None:
            memory[_AT.first_step] = min(task.first_step, task.max_step, t1 - t)
        memory[stepper.given[0]] = y
        self._renew_context()
        self.t0, self.t1, self.first, self.begun = t, t1, y, False
        self.trusted, self.repaired = trusted is not None, 0.0
        if trusted:
            stepper.left_out = trusted
        self.poles, self.full = (), []
        if self.fired:
            self.begins_at_events(self.fired, t1 - t)
        if self.may_stop:
            self._enter_stops(t, t1)

    def go_to(self, t1: float) -> int:
        """Go on from here to t1, with step size, order, factorization and warm start as they are."""
        memory, t = self.memory, self.memory[_AT.t]
        memory[_AT.t_start], memory[_AT.t_end] = t, t1
        _write_counts(memory, 0, 0, 0, 0)
        _write_rows(memory, 0, 0, 0, 0)
        if self.stepper.constant:
            memory[_AT.h] = self.stepper.constant
        self.t0, self.t1, self.poles, self.full = float(t), t1, (), []
        if self.may_stop:
            self._enter_stops(self.t0, t1)
        return self.advance_all()

    def _renew_context(self) -> None:
        """Forget what kernels have remembered; what is solved for inside evaluations becomes a guess."""
        context, stepper = self.context, self.stepper
        if self.system.solves:
            self.system = self.system.with_solved(context)
        context[: self.kept] = self.new_context
        if self.system.solves:
            self.system.fill_guess(context)
        if stepper.left_out:
            Context.vector(context, "left_out")[:] = 0.0
            stepper.left_out = ()

    def _enter_stops(self, t: float, t1: float) -> None:
        """Note the times on the way at which conditions on time change, or where there may be a pole."""
        times, at_pole = stops(self.present_system(), t, t1)
        _write_switches(self.memory, times.size, 0)
        if not times.size:
            return
        margin = 4 * np.spacing(max(abs(t), abs(t1)))
        sides = np.column_stack([times - margin, times + margin])
        span = RunState.span(self.memory, "switching_times")
        while span.stop - span.start < sides.size:
            self._make_room()
            span = RunState.span(self.memory, "switching_times")
        self.memory[span.start : span.start + sides.size] = sides.ravel()
        self.poles = sides[at_pole, 0].tolist()
        if self.poles:
            self.settle_task()
            self.memory[_AT.t_end] = self.poles[0]

    def _make_room(self) -> None:
        """For more times at which steps end."""
        self.room = max(2 * self.room, _FEWEST_TIMES)
        self.memory, self.empty = (
            appended(memory, RunState, 0, switching_times=np.zeros(2 * self.room))
            for memory in (self.memory, self.empty)
        )

    def _begin(self) -> int:
        stepper = self.stepper
        if self.system.invariant_count:
            stepper.invariants = None
            stepper.remember_invariants(self.context, self.t0, self.first)
        return stepper.begin(self.memory, self.context, Beginning(self.t0, self.t1, self.first, self.trusted))

    def advance_all(self) -> int:
        """Call the compiled loop until it needs no more calls."""
        code = self.first_advance()
        if code != loop.FULL:
            return code
        budget = _FIRST
        with Interruption() as interruption:
            while code == loop.FULL:
                if interruption.requested:
                    return loop.STOPPED
                self.collect()
                _write_budget(self.memory, budget)
                code = self.advance()
                budget = min(2 * budget, _MOST)
        return code

    def present_system(self) -> Any:
        """The system with the parameters and inputs of now."""
        parameters = self.system.parameters
        if not np.array_equal(parameters.flat, self.flat):
            self.system = self.system.with_values(self.flat)
        return self.system

    def settle_task(self) -> None:
        """Let the task say what this stretch was about, for a diagnosis or a repair."""
        task = self.task
        self.task = task._replace(
            system=self.present_system(), t0=self.t0, t1=self.t1, origin=self.t0, y0=self.first
        )

    def changes(self) -> tuple[np.ndarray, ...]:
        """What memory and context hold that a new run's do not, as places and words: no addresses, so that it
        means the same in another process.
        """
        left_out = Context.vector(self.context, "left_out").copy()
        context = self.context[: self.kept]
        return *_changes(self.memory, self.empty), *_changes(context, self.new_context), left_out

    def restore(self, flat: np.ndarray, size: int, changes: tuple[np.ndarray, ...]) -> None:
        """Be as a run was whose parameters, size of memory and changes these are."""
        places, words, places_in_context, words_in_context, left_out = changes
        self.write(0, flat)
        while self.memory.size < size:
            self._make_room()
        self.memory[:] = self.empty
        self.memory.view(np.int64)[places] = words
        self.context[: self.kept] = self.new_context
        self.context.view(np.int64)[places_in_context] = words_in_context
        Context.vector(self.context, "left_out")[:] = left_out
        self.stepper.left_out = np.flatnonzero(left_out).tolist()
        self.begun, self.full, self.poles = True, [], ()


def _changes(now: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    words, known = now.view(np.int64), before.view(np.int64)
    places = np.flatnonzero(words != known)
    return places, words[places].copy()

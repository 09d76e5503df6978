"""Runs with interruptions: by events that act, by clocks such as sampled controllers, by contacts that close,
open, stick and slip.

Between two interruptions a run is what it always is: a task, carried out by one leg or several.  Each piece
begins anew from the state that the interruption leaves behind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from holonome.integrators import loop
from holonome.machine.interruption import Interruption
from holonome.machine.progress import ProgressDisplay
from holonome.problem.event import Event
from holonome.results.solution import Piece, Solution
from holonome.solving.carry_out import carry_out, new_stepper
from holonome.solving.diagnosis import rank_fell
from holonome.solving.methods import AUTO_METHOD, STIFF_METHOD, Method, registry
from holonome.solving.moment import Change, Interrupted, Moment
from holonome.solving.result import SUMMED, JoinedOutput, checked_solution, fields_of
from holonome.solving.run import Outcome, Run, Task

_STUCK = 200
"""Interruptions one after the other at the same time after which a run gives up."""


class Clock(Protocol):
    """What acts at times that are known beforehand."""

    def next_time(self, t: float) -> float:
        """The next time at or after t; infinite if there is none."""
        ...

    def act(self, moment: Moment) -> Change:
        """What changes at such a time; it must then name a later one."""
        ...


class Options(NamedTuple):
    """How pieces are run, beside what a task says."""

    method: Method
    relay: bool
    projection: bool | None
    step: float | None
    at_rest: bool
    repair: bool
    progress: Any


def run_in_pieces(task: Task, options: Options, clocks: Sequence[Clock] = ()) -> Solution:
    """A task with interruptions."""
    return PiecewiseRun(task, options, clocks).carried_out()


class PiecewiseRun:
    """A run, as far as it got."""

    def __init__(self, task: Task, options: Options, clocks: Sequence[Clock]) -> None:
        self.task, self.options, self.clocks = task, options, clocks
        self.t, self.y, self.system = task.t0, task.y0, task.system
        self.events = [event if event.action is None else _acting(event) for event in task.events]
        self.left = [int(event.terminal or 0) for event in task.events]
        self.fired: list[int] = []  # events at this time
        self.implicit = False  # whether the last leg was, where methods take turns
        self.repeated = 0
        self.parts = _Parts(task)

    def carried_out(self) -> Solution:
        goal, ending = self.task.t1, ""
        with (
            Interruption() as interruption,
            ProgressDisplay(self.options.progress, "simulating") as show,
        ):
            while not ending:
                try:
                    stopped = self._interrupt()
                except Interrupted as error:
                    ending = str(error)
                    self.parts.status = -1
                    break
                if stopped or self.t == goal:
                    ending = "the end was reached" if not stopped else self._stopped()
                    break
                outcome = self._piece()
                show(self._fraction())
                if outcome.code not in (loop.DONE, loop.TERMINATED):
                    ending = self.parts.outcome
                elif interruption.requested:
                    ending = f"interrupted at t = {self.t:.6g}"
                    self.parts.status = -1
        return self.parts.solution(ending)

    def _stopped(self) -> str:
        self.parts.status = 1
        return f"stopped by an event at t = {self.t:.9g}"

    def _fraction(self) -> float:
        return (self.t - self.task.t0) / (self.task.t1 - self.task.t0)

    def _interrupt(self) -> bool:
        """All that acts at this time; whether the run stops here."""
        stop = False
        for clock in self.clocks:
            if clock.next_time(self.t) == self.t and self.t != self.task.t1:
                stop |= self._change(clock.act(Moment(self.system, self.t, self.y)))
        for number in self.fired:
            event = self.task.events[number]
            if event.action is not None:
                role = f"events[{number}].action"
                moment = Moment(self.system, self.t, self.y)
                stop |= self._change(moment.changed(role, moment.call(event.action, role)))
            if self.left[number]:
                self.left[number] -= 1
                stop |= self.left[number] == 0
        return stop

    def _change(self, change: Change) -> bool:
        self.system, self.y = change.system, change.y
        return change.stop

    def _next_stop(self) -> float:
        """Where this piece ends at the latest."""
        times = [clock.next_time(math.nextafter(self.t, math.inf)) for clock in self.clocks]
        return min([*times, self.task.t1]) if self.task.direction > 0 else self.task.t1

    def _piece(self) -> Outcome:
        """Run up to the next interruption; how that ended."""
        run, options = self._new_run(self._next_stop()), self.options
        if self.fired:
            run.begins_at_events(self.fired, abs(self.task.t1 - self.task.t0))
        legs, outcome = carry_out(
            run,
            options.relay,
            options.at_rest and not self.parts.count,
            options.repair and not self.parts.count,
            False,
        )
        last = legs[-1]
        self.implicit = last.stepper.implicit
        self.parts.add(legs, outcome, Piece(self.parts.points, self.system, self.system))
        moved = last.t != self.t
        self.repeated = 0 if moved else self.repeated + 1
        self.t, self.y = last.t, last.state[: self.system.state_size].copy()
        self.fired = []
        if outcome.code == loop.TERMINATED:
            self.fired = [
                i for i, times in enumerate(self.parts.last_events) if times.size and times[-1] == self.t
            ]
        if self.repeated > _STUCK:
            raise Interrupted(
                f"stopped at t = {self.t:.9g}: {self.repeated} interruptions one after the other without any "
                "progress in time"
            )
        return outcome

    def _new_run(self, stop: float) -> Run:
        task, options = self.task, self.options
        name, method = task.name, options.method
        if options.relay and self.implicit:
            name, method = STIFF_METHOD, registry()[STIFF_METHOD].method
        elif options.relay:
            name, method = AUTO_METHOD, registry()[AUTO_METHOD].method
        stepper = new_stepper(self.system, name, method, task.t0, task.t1, options.projection, options.step)
        counted = [
            Event(event.function, int(left or event.terminal or 0), event.direction)
            for event, left in zip(self.events, self.left, strict=True)
        ]
        return Run(
            task._replace(
                system=self.system,
                name=name,
                stepper=stepper,
                t0=self.t,
                t1=stop,
                y0=self.y,
                t_eval=self._times(stop),
                events=counted,
                first_step=task.first_step if not self.parts.count else None,
                max_steps=max(task.max_steps - self.parts.tried, 1),
                steps_before=self.parts.tried,
            )
        )

    def _times(self, stop: float) -> np.ndarray | None:
        """The output times of a piece; where two pieces meet, the later one answers."""
        times, direction = self.task.t_eval, self.task.direction
        if times is None:
            return None
        ahead = times[direction * times >= direction * self.t]
        return ahead[direction * ahead <= direction * stop] if stop != self.task.t1 else ahead


def _acting(event: Event) -> Event:
    """The same event, at which the compiled loop stops each time."""
    return Event(event.function, 1, event.direction)


class _Parts:
    """What has been collected of a run in pieces."""

    def __init__(self, task: Task) -> None:
        self.task, self.first = task, None
        self.rows: dict[str, list[np.ndarray]] = {
            name: [] for name in ("t", "states", "accepted", "rejected")
        }
        self.events: list[list[np.ndarray]] = [[] for _ in task.events]
        self.event_states: list[list[np.ndarray]] = [[] for _ in task.events]
        self.singular: list[np.ndarray] = []
        self.outputs: list[tuple[Any, float]] = []
        self.counts = dict.fromkeys(SUMMED, 0)
        self.pieces: list[Piece] = []
        self.methods: dict[str, None] = {}
        self.fields: dict[str, Any] = {}
        self.start: Any = None
        self.count = self.points = self.tried = self.status = 0
        self.outcome, self.last_events = "", []

    def add(self, legs: list[Run], outcome: Outcome, piece: Piece) -> None:
        """The legs of the next piece."""
        fields, size = fields_of(legs, outcome), self.task.system.state_size
        if self.first is None:
            self.first, self.start = legs[0], fields["start"]
        self._drop_repeated(legs[0].task.t0)
        new = self.points == 0 or self.pieces[-1][1:] != piece[1:]
        if new and fields["t"].size:
            if self.pieces and self.pieces[-1].begin == self.points:
                self.pieces.pop()
            self.pieces.append(piece._replace(begin=self.points))
        self.fields = fields
        self.points += fields["t"].size
        for name, rows in self.rows.items():
            if name in fields and len(fields[name]):
                rows.append(fields[name][:, :size] if name == "states" else fields[name])
        self.last_events = fields["t_events"] or []
        for found, into in (
            (self.last_events, self.events),
            (fields["event_states"] or [], self.event_states),
        ):
            for values, rows in zip(found, into, strict=False):
                if len(values):
                    rows.append(values[:, :size] if values.ndim > 1 else values)
        if fields["singular_times"].size:
            self.singular.append(fields["singular_times"])
        if fields.get("sol") is not None:
            self.outputs.append((fields["sol"], legs[-1].t))
        for name in SUMMED:
            self.counts[name] += fields.get(name, 0)
        self.methods |= dict.fromkeys(leg.task.name for leg in legs)
        self.count += 1
        self.tried = self.counts["steps"] + self.counts["rejections"]
        self.status, self.outcome = fields["status"], fields["outcome"]

    def _drop_repeated(self, t: float) -> None:
        """With output times, the point where a piece begins is not that of the end of the one before."""
        if self.task.t_eval is not None and self.rows["t"] and self.rows["t"][-1][-1] == t:
            for name in ("t", "states"):
                self.rows[name][-1] = self.rows[name][-1][:-1]
                if not len(self.rows[name][-1]):
                    self.rows[name].pop()
            self.points -= 1

    def solution(self, ending: str) -> Solution:
        """All pieces as one."""
        task, size = self.task, self.task.system.state_size
        empty = {"t": np.zeros(0), "states": np.zeros((0, size))}
        columns = {"accepted": loop.STEP_COLUMNS, "rejected": loop.REJECTION_COLUMNS}
        fields = {name: self.fields[name] for name in ("rtol", "atol")} if self.fields else {}
        fields |= self.counts | {
            "rtol": task.rtol,
            "atol": task.atol,
            "system": task.system,
            "start": self.start,
        }
        for name, rows in self.rows.items():
            if name in columns and (not task.keep_steps or not self.count):
                continue
            width = columns.get(name)
            rows = [values[:, :width] for values in rows] if width else rows
            fallback = empty[name] if name in empty else np.zeros((0, width or 0))
            fields[name] = np.concatenate(rows) if rows else fallback
        if task.events:
            fields["t_events"] = [np.concatenate(rows) if rows else np.zeros(0) for rows in self.events]
            fields["event_states"] = [
                np.concatenate(rows) if rows else np.zeros((0, size)) for rows in self.event_states
            ]
        fields["singular_times"] = np.concatenate(self.singular) if self.singular else np.zeros(0)
        fields["lowest_rank"] = self.fields.get("lowest_rank", 0)
        if self.outputs:
            outputs, ends = zip(*self.outputs, strict=True)
            fields["sol"] = JoinedOutput(task.system, list(outputs), np.array(ends), task.direction)
        names = list(self.methods) or [task.name]
        fields["method"] = names[0] if len(names) == 1 else f"auto: {', '.join(names)}"
        fields["status"] = self.status
        fields["outcome"] = ending + rank_fell(fields["singular_times"])
        fields["pieces"] = tuple(self.pieces)
        solution = Solution(fields)
        return solution if self.first is None else checked_solution(solution, self.first)

"""Runs with interruptions: by events that act, by clocks such as sampled controllers, by contacts that close,
open, stick and slip.

Between two interruptions a run is what it always is: a task, carried out by one leg or several.  Each piece
begins again from the state that the interruption leaves behind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from holonome.dynamics.contacts import begins_of
from holonome.dynamics.modes import Watch
from holonome.dynamics.start import consistent_state
from holonome.dynamics.switched import base_of
from holonome.dynamics.switching_times import stops
from holonome.errors import HolonomeError
from holonome.integrators import loop
from holonome.machine.interruption import Interruption
from holonome.machine.progress import ProgressDisplay
from holonome.problem.event import Event
from holonome.problem.parameters import Parameters
from holonome.problem.system import System
from holonome.results.impacts import Impacts
from holonome.results.pieces import Piece
from holonome.results.solution import Solution
from holonome.solving.carry_out import carry_out, new_stepper
from holonome.solving.contact_changes import ContactChanges
from holonome.solving.diagnosis import rank_fell
from holonome.solving.echoes import Echoes
from holonome.solving.methods import AUTO_METHOD, STIFF_METHOD, Method, registry
from holonome.solving.moment import Change, Interrupted, Moment
from holonome.solving.result import SUMMED, JoinedOutput, checked_solution, fields_of
from holonome.solving.run import Outcome, Run, Task

_ROWS = 64
"""Of the first buffers of a piece, which is often short."""

_STUCK, _CROWDED = 200, 1000
"""Interruptions one after the other, so many roundings of time apart at most, after which a run gives up."""

_MANY, _OUT_OF_REACH = 500, 10
"""Interruptions after which it is asked whether the end can be reached at this pace: with so many times as
many as there may be steps it cannot.
"""


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
    keep_impacts: bool = True


def run_in_pieces(task: Task, options: Options, clocks: Sequence[Clock] = ()) -> Solution:
    """A task with interruptions."""
    return PiecewiseRun(task, options, clocks).carried_out()


class PiecewiseRun:
    """A run, as far as it got."""

    def __init__(self, task: Task, options: Options, clocks: Sequence[Clock]) -> None:
        self.task, self.options, self.clocks = task, options, clocks
        self.t, self.y, self.system = task.t0, task.y0, task.system
        self.solved = task.system  # with the constraints of closed contacts
        self.events = [event if event.action is None else _acting(event) for event in task.events]
        self.left = [int(event.terminal or 0) for event in task.events]
        self.fired: list[int] = []  # events at this time
        self.implicit = False  # whether the last leg was, where methods take turns
        self.repeated, self.repaired = 0, 0.0
        self.echoes, self.heard = Echoes(task.direction), []
        self.marks = [task.t0]  # the time after each so many interruptions
        self.parts, self._base = _Parts(task), (task.system, base_of(task.system))
        self.impacts = impact_recorder(self._base[1], not options.keep_impacts)
        self._runs: dict[tuple, Run] = {}
        self._asked: dict[int, tuple[str, ...]] = {}  # arguments of actions
        self.contacts: ContactChanges | None = None
        self.watches: list[Watch] = []
        self.switches: list[float] = []
        if task.system.contacts:
            self._meet_contacts()

    def _meet_contacts(self) -> None:
        """Contacts begin where all constraints hold.  Forces that jump may open or close them."""
        task, options = self.task, self.options
        if task.system.m:
            start = consistent_state(
                task.system, self.y, self.t, at_rest=options.at_rest, repair=options.repair
            )
            self.y, self.parts.start = start.state, start
        self.contacts = ContactChanges(task.system, self.t, self.y, self.impacts)
        self.switches = stops(task.system, task.t0, task.t1).times.tolist()

    def carried_out(self) -> Solution:
        with (
            Interruption() as interruption,
            ProgressDisplay(self.options.progress, "simulating") as show,
        ):
            ending = ""
            try:
                while not ending:
                    stopped = self._interrupt()
                    if stopped or self.t == self.task.t1:
                        ending = self._at_end(stopped)
                        break
                    outcome = self._piece()
                    show((self.t - self.task.t0) / (self.task.t1 - self.task.t0))
                    if outcome.code not in (loop.DONE, loop.TERMINATED):
                        ending = self.parts.outcome
                    elif interruption.requested:
                        ending, self.parts.status = f"interrupted at t = {self.t:.6g}", -1
            except Interrupted as error:
                ending, self.parts.status = str(error), -1
            except (HolonomeError, ValueError) as error:
                if not self.parts.count:
                    raise
                ending, self.parts.status = f"stopped at t = {self.t:.6g}: {error}", -1
        if not self.parts.points:
            solved = self.system if self.contacts is None else self.contacts.all_open(self.system)
            self.parts.add_point(self.t, self.y, Piece(0, self.base, solved))
        wanted = self.contacts is not None or self.impacts
        return self.parts.solution(ending, self.impacts if wanted else None)

    @property
    def base(self) -> System:
        """The system with all of its constraints: the same object as long as nothing changes."""
        if self._base[0] is not self.system:
            self._base = self.system, base_of(self.system)
        return self._base[1]

    def _at_end(self, stopped: bool) -> str:
        self.parts.status = int(stopped)
        wrong = self.contacts.at_end(self.system, self.t, self.y) if self.contacts else ""
        if wrong:
            self.parts.status = -1
            return wrong
        remark = f" ({self.parts.start.message})" if self.parts.start and self.parts.start.message else ""
        return (f"stopped by an event at t = {self.t:.9g}" if stopped else "the end was reached") + remark

    def _interrupt(self) -> bool:
        """All that acts at this time; whether the run stops here."""
        stop = False
        if self.t != self.task.t1:
            for clock in self.clocks:
                if clock.next_time(self.t) == self.t:
                    stop |= self._change(clock.act(Moment(self.system, self.t, self.y)))
        for number in [k for k in self.fired if k < len(self.events) and k not in self.heard]:
            event = self.task.events[number]
            if event.action is not None:
                role = f"events[{number}].action"
                moment, names = Moment(self.system, self.t, self.y), self._asked.get(number)
                answer, self._asked[number] = moment.call(event.action, role, names)
                stop |= self._change(moment.changed(role, answer))
            if self.left[number]:
                self.left[number] -= 1
                stop |= self.left[number] == 0
        if self.switches and self.t == self._before(self.switches[0]):
            self.t = 2 * self.switches.pop(0) - self.t
        self.solved = self.system
        if self.contacts is not None and self.t != self.task.t1 and not stop:
            fired = [self.watches[k - len(self.events)] for k in self.fired if k >= len(self.events)]
            self.y, self.solved = self.contacts.update(self.system, self.t, self.y, fired)
            self.watches = self.solved.watches
            again = {(watch.contact, watch.what) for watch in fired}
            self.fired = [k for k in self.fired if k < len(self.events)] + [
                len(self.events) + k
                for k, watch in enumerate(self.watches)
                if (watch.contact, watch.what) in again
            ]
        return stop

    def _change(self, change: Change) -> bool:
        self.system, self.y = change.system, change.y
        self.repaired = max(self.repaired, change.repaired)
        note_locked(self.impacts, self.t, change)
        return change.stop

    def _before(self, switch: float) -> float:
        """Just before a time at which forces jump."""
        task = self.task
        return switch - task.direction * 4 * np.spacing(max(abs(task.t0), abs(task.t1)))

    def _next_stop(self) -> float:
        """Where this piece ends at the latest."""
        direction = self.task.direction
        times = [clock.next_time(math.nextafter(self.t, direction * math.inf)) for clock in self.clocks]
        times += [self._before(switch) for switch in self.switches[:1]]
        return direction * min(direction * time for time in (*times, self.task.t1))

    def _piece(self) -> Outcome:
        """Run up to the next interruption; how that ended."""
        self.parts.note_inputs(self.t, self.base.parameters)
        run, options, first = self._new_run(self._next_stop()), self.options, not self.parts.count
        if self.fired:
            run.begins_at_events(self.fired, abs(self.task.t1 - self.task.t0))
        repair = options.repair if first else self.contacts is not None  # of the roundings of an impact
        legs, outcome = carry_out(run, options.relay, options.at_rest and first, repair, False)
        for leg in legs:
            leg.trim()
        last = legs[-1]
        self.implicit = last.stepper.implicit
        self.echoes.expect(self.fired, self.t, max(self.repaired, run.repaired))
        self.parts.add(legs, outcome, Piece(self.parts.points, self.base, self.solved))
        least = _CROWDED * np.spacing(max(abs(self.task.t0), abs(self.task.t1)))
        self.repeated = 0 if abs(last.t - self.t) > least else self.repeated + 1
        self.t, self.y = last.t, last.state[: self.system.state_size].copy()
        self._follow_solved(last)
        self.fired, self.heard, self.repaired = [], [], 0.0
        if outcome.code == loop.TERMINATED:
            self.fired = [
                i for i, times in enumerate(self.parts.last_events) if times.size and times[-1] == self.t
            ]
            own = [number for number in self.fired if number < len(self.events)]
            self.heard = self.echoes.among(own, self.t)
            self.parts.forget_last(self.heard)
        if outcome.code in (loop.DONE, loop.TERMINATED) and self.parts.tried >= self.task.max_steps:
            raise Interrupted(
                f"stopped at t = {self.t:.9g}: {self.task.max_steps} steps and {self.parts.count} "
                "interruptions were not enough; give a larger max_steps, or look at what interrupts"
            )
        if self.repeated > _STUCK:
            raise Interrupted(
                f"stopped at t = {self.t:.9g}: {self.repeated} interruptions one after the other without any "
                "progress in time"
            )
        if self.parts.count % _MANY == 0:
            self._require_progress()
        return outcome

    def _require_progress(self) -> None:
        """Give up where interruptions follow each other so closely, at a pace that does not fall, that the
        end is out of reach.
        """
        self.marks.append(self.t)
        if len(self.marks) < 3:
            return
        earlier, latest = np.abs(np.diff(self.marks[-3:]))
        needed = abs(self.task.t1 - self.t) * _MANY / max(latest, 1e-300)
        if latest > 0.9 * earlier and needed > _OUT_OF_REACH * self.task.max_steps:
            raise Interrupted(
                f"stopped at t = {self.t:.9g}: interruptions follow each other every {latest / _MANY:.1e}, "
                f"so that {needed:.0e} of them would be needed up to the end; look at what interrupts: an "
                "action that brings its own event about, or a clock with a short period"
            )

    def _follow_solved(self, last: Run) -> None:
        """The next piece goes on with the unknowns of this one."""
        if self.contacts is None and self.system.solves:
            self.system = self.system.with_solved(last.context)
        elif self.system.unknowns:
            solved = last.system.with_solved(last.context)
            self.system = self.system.with_unknowns(list(solved.unknowns.values()))

    def _new_run(self, stop: float) -> Run:
        task, options = self.task, self.options
        name, method = task.name, options.method
        if options.relay:
            name = STIFF_METHOD if self.implicit else AUTO_METHOD
            method = registry()[name].method
        task = task._replace(
            system=self.solved,
            name=name,
            t0=self.t,
            t1=stop,
            y0=self.y,
            t_eval=self._times(stop),
            first_step=task.first_step if not self.parts.count else None,
            max_steps=max(task.max_steps - self.parts.tried, 1),
            steps_before=self.parts.tried,
        )
        key = name, tuple(self.left), id(self.solved.compiled)
        run = self._runs.get(key)
        if run is not None and self._serves(run):
            run.again(task._replace(stepper=run.stepper, events=run.task.events))
            return run
        span = self.task.t0, self.task.t1
        stepper = new_stepper(self.solved, name, method, *span, options.projection, options.step)
        run = Run(task._replace(stepper=stepper, events=self._events_now()), _ROWS)
        if run.repeatable():
            self._runs[key] = run
        return run

    def _serves(self, run: Run) -> bool:
        """Whether a run of the same mode may be begun anew: dense output needs its own parameters."""
        if self.task.dense_output:
            return run.system is self.solved
        return run.system.compiled is self.solved.compiled

    def _events_now(self) -> list[Event]:
        """The events of a piece: those of the user, and of contacts."""
        events = [
            Event(event.function, 1 if acts.action else left, event.direction)
            for event, acts, left in zip(self.events, self.task.events, self.left, strict=True)
        ]
        return events + [watch.event for watch in self.watches]

    def _times(self, stop: float) -> np.ndarray | None:
        """The output times of a piece; where two pieces meet, the later one answers."""
        times, direction = self.task.t_eval, self.task.direction
        if times is None:
            return None
        begin = np.searchsorted(direction * times, direction * self.t)
        return times[begin : np.searchsorted(direction * times, direction * stop, "right")]


def impact_recorder(system: System, summed: bool = False) -> Impacts.Recorder:
    """For impacts of contacts, and of constraints that are locked."""
    return Impacts.Recorder(Impacts.names_in(system), begins_of(system), summed)


def note_locked(impacts: Impacts.Recorder, t: float, change: Change) -> None:
    """The impact by which constraints were locked, if there was one."""
    locked = change.locked
    if locked is not None and locked.rows:
        impacts.note_locked(t, locked.rows, locked.before, locked.impulse, locked.lost)


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
        self.trace: list[tuple[float, np.ndarray]] = []  # inputs, where they change
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

    def forget_last(self, numbers: Sequence[int]) -> None:
        """The last occurrence of some events was none."""
        for number in numbers:
            for rows in (self.events[number], self.event_states[number]):
                rows[-1] = rows[-1][:-1]

    def add_point(self, t: float, y: np.ndarray, piece: Piece) -> None:
        """The only point of a run that did not get anywhere."""
        self.rows["t"], self.rows["states"] = [np.array([t])], [y[np.newaxis].copy()]
        self.pieces, self.points = [piece], 1

    def note_inputs(self, t: float, parameters: Parameters) -> None:
        """Where a piece begins: what the inputs are from there on."""
        values = parameters.flat[parameters.of_inputs]
        if values.size and not (self.trace and np.array_equal(self.trace[-1][1], values)):
            if self.trace and self.trace[-1][0] == t:
                self.trace.pop()
            self.trace.append((t, values))

    def _drop_repeated(self, t: float) -> None:
        """With output times, the point where a piece begins is not that of the end of the one before."""
        if self.task.t_eval is not None and self.rows["t"] and self.rows["t"][-1][-1] == t:
            for name in ("t", "states"):
                self.rows[name][-1] = self.rows[name][-1][:-1]
                if not len(self.rows[name][-1]):
                    self.rows[name].pop()
            self.points -= 1

    def solution(self, ending: str, impacts: Impacts.Recorder | None) -> Solution:
        """All pieces as one."""
        task, size = self.task, self.task.system.state_size
        empty = {"t": np.zeros(0), "states": np.zeros((0, size))}
        columns = {"accepted": loop.STEP_COLUMNS, "rejected": loop.REJECTION_COLUMNS}
        fields = {name: self.fields[name] for name in ("rtol", "atol")} if self.fields else {}
        fields |= self.counts | {
            "rtol": task.rtol,
            "atol": task.atol,
            "system": base_of(task.system),
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
        if impacts is not None:
            fields["impacts"] = found = impacts.impacts()
            fields["outcome"] += found.gains()
        if self.trace:
            fields["trace"] = np.array([[t, *values] for t, values in self.trace])
        solution = Solution(fields)
        return solution if self.first is None else checked_solution(solution, self.first)

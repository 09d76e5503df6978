"""A simulator's run in pieces: through contacts that close, open, stick and slide, and events that act.

Each mode of the contacts has a forward run of its own, which is made when it is first needed and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from holonome.dynamics.modes import Watch, mode_of
from holonome.dynamics.start import consistent_state
from holonome.dynamics.switched import SwitchedSystem, base_of, switched
from holonome.dynamics.switching_times import stops
from holonome.integrators import loop
from holonome.problem.event import Event
from holonome.problem.system import System
from holonome.solving.carry_out import REFUSED, consistent_start, new_stepper
from holonome.solving.contact_changes import ContactChanges
from holonome.solving.echoes import Echoes
from holonome.solving.forward_run import ForwardRun
from holonome.solving.methods import Method
from holonome.solving.moment import Interrupted, Moment
from holonome.solving.pieces import impact_recorder, note_locked
from holonome.solving.run import Task

_T = loop.RunState.places.t

_STUCK, _CROWDED = 200, 250
"""Interruptions one after the other, so many margins of time apart at most, after which a step gives up."""


class Place(NamedTuple):
    """Where a run in pieces is, without its memory."""

    released: tuple[int, ...] | None
    """Constraints that do not hold; None if none was ever released."""
    statuses: tuple[str, ...]
    """What contacts do."""
    scales: tuple
    """Of the contacts."""
    left: tuple[int, ...]
    """How often events may still happen."""
    fired: tuple[int, ...]
    """Events at this time."""


class ForwardPieces:
    """Goes on to one time after the other, with interruptions on the way.

    Attributes
    ----------
    run
        The run of the present mode.
    found
        Times of each event since the last call.
    """

    def __init__(self, task: Task, method: Method, projection: bool | None, step: float | None) -> None:
        self.task, self._how = task, (method, projection, step)
        self.system: System = task.system
        self.impacts = impact_recorder(base_of(task.system))
        self._runs: dict[int, ForwardRun] = {}
        self._asked: dict[int, tuple[str, ...]] = {}
        self._first_left = tuple(int(event.terminal or 0) for event in task.events)
        self.contacts: ContactChanges | None = None
        self.statuses: tuple[str, ...] = ()
        self.watches: Sequence[Watch] = ()
        self.left, self.fired = list(self._first_left), []
        self.echoes, self.heard, self.repaired = Echoes(), [], 0.0
        self.found: list[list[float]] = [[] for _ in task.events]
        self.steps, self.anew = 0, True

    def start(self, system: System, t: float, y: np.ndarray, at_rest: bool, repair: bool) -> np.ndarray:
        """Begin at a state, or at a consistent one near it, with what contacts do there; the state."""
        if system.contacts:
            if system.m:
                y = consistent_state(system, y, t, at_rest=at_rest, repair=repair).state
            self.contacts = ContactChanges(system, t, y, self.impacts)
        self.system, self.left, self.fired = system, list(self._first_left), []
        self.echoes, self.heard, self.repaired = Echoes(), [], 0.0
        return self._enter(t, y)

    def _enter(self, t: float, y: np.ndarray) -> np.ndarray:
        """Choose the mode, and the run that goes with it; the state, after impacts."""
        solved: Any = self.system
        if self.contacts is not None:
            own = len(self.task.events)
            fired = [self.watches[k - own] for k in self.fired if k >= own]
            y, solved = self.contacts.update(self.system, t, y, fired)
            self.statuses, self.watches = solved.statuses, solved.watches
            again = {(watch.contact, watch.what) for watch in fired}
            self.fired = [k for k in self.fired if k < own] + [
                own + k for k, watch in enumerate(self.watches) if (watch.contact, watch.what) in again
            ]
        self.run = self._run_of(solved)
        return y

    def _run_of(self, solved: Any) -> ForwardRun:
        run = self._runs.get(id(solved.compiled))
        if run is None:
            task, (method, projection, step) = self.task, self._how
            stepper = new_stepper(solved, task.name, method, task.t0, task.t1, projection, step)
            events = [
                Event(event.function, 1 if event.action or event.terminal else 0, event.direction)
                for event in task.events
            ]
            events += [watch.event for watch in self.watches]
            run = ForwardRun(task._replace(system=solved, stepper=stepper, events=events))
            self._runs[id(solved.compiled)] = run
        run.write(0, solved.parameters.flat)
        if solved.unknowns:
            run.system = run.system.with_unknowns(list(solved.unknowns.values()))
        return run

    def put(self, t: float, y: np.ndarray) -> None:
        """Enter a state, and the parameters that go with it, into the memory."""
        run = self.run
        run.memory[run.stepper.given[0]] = y
        run.memory[_T] = run.t0 = run.t1 = t
        run.write(0, self.system.parameters.flat)

    def present_system(self) -> System:
        """The system with the parameters and inputs of now."""
        flat = self.run.flat[: self.system.parameters.size]
        if not np.array_equal(flat, self.system.parameters.flat):
            self.system = self.system.with_values(flat.copy())
        return self.system

    def place(self) -> Place:
        """What `go_back` needs, beside the parameters of the run."""
        contacts = self.contacts
        scales = () if contacts is None else tuple(contacts.scales.tolist())
        switches = self.system.released_rows if isinstance(self.system, SwitchedSystem) else None
        return Place(switches, self.statuses, scales, tuple(self.left), tuple(self.fired))

    def go_back(self, place: Place, flat: np.ndarray) -> None:
        """Be in the mode of a place, with these parameters of its run."""
        base = base_of(self.system)
        size, g = base.parameters.size, base.model.position_rows
        self.system = solved = base.with_values(flat[:size])
        if place.released is not None:
            self.system = solved = switched(solved, place.released, flat[size : size + g])
            size += g
        self.statuses, self.left, self.fired = place.statuses, list(place.left), list(place.fired)
        if self.contacts is not None:
            self.contacts.scales[:] = place.scales
            solved = mode_of(self.system, place.statuses, flat[size:].copy())
            self.watches = solved.watches
        self.run = self._run_of(solved)

    def go_to(self, t: float, y: np.ndarray, t1: float, anew: bool) -> int:
        """On to t1, from this state if it is to begin anew; a code of the loop, TERMINATED if an event ends
        the step early.
        """
        system = self.present_system()
        self.found, self.steps, repeated = [[] for _ in self.task.events], 0, 0
        self.impacts = impact_recorder(base_of(system))
        if self.contacts is not None:
            self.contacts.impacts = self.impacts
        switches = [] if self.contacts is None else stops(system, t, t1).times.tolist()
        margin = 4 * float(np.spacing(max(abs(t), abs(t1))))
        while True:
            code = self._piece(t, y, switches[0] - margin if switches else t1, anew)
            if code not in (loop.DONE, loop.TERMINATED):
                return code
            before, t, y = t, self.run.t, self.run.state[: self.system.state_size].copy()
            self._follow()
            y, ended = self._acted(t, y)
            anew = bool(self.fired or switches or ended)
            if switches and t == switches[0] - margin:
                t = switches.pop(0) + margin
            if ended or t >= t1:
                if anew:
                    self.put(t, y)
                self.anew = anew
                return loop.TERMINATED if ended else loop.DONE
            repeated = repeated + 1 if t - before <= _CROWDED * margin else 0
            if repeated > _STUCK:
                raise Interrupted(
                    f"stopped at t = {t:.9g}: {repeated} interruptions one after the other without any "
                    "progress in time"
                )
            if self.steps > self.task.max_steps:
                raise Interrupted(
                    f"stopped at t = {t:.9g}: {self.task.max_steps} steps were not enough; give a larger "
                    "max_steps, or look at what interrupts"
                )

    def _piece(self, t: float, y: np.ndarray, stop: float, anew: bool) -> int:
        """Up to an interruption."""
        if not anew:
            code = self.run.go_to(stop)
        else:
            y = self._enter(t, y)
            run = self.run
            run.fired = self.fired
            code = run.begin_at(t, y, stop)
            if code in REFUSED and run.tried == 0 and not run.event_failed():
                run.settle_task()
                consistent_start(run, False, self.contacts is not None)
                code = run.advance_all()
        repaired = self.run.repaired if anew else 0.0
        self.echoes.expect(self.fired, t, max(repaired, self.repaired))
        self.fired, self.heard, self.repaired = [], [], 0.0
        self.steps += self.run.counts[1]
        times = self.run.events_in(self.run.collected().found)[0] or []
        for found, rows in zip(times, self.found, strict=False):
            rows += found.tolist()
        if code == loop.TERMINATED:
            self.fired = [k for k, found in enumerate(times) if found.size and found[-1] == self.run.t]
            own = [k for k in self.fired if k < len(self.left)]
            self.heard = self.echoes.among(own, self.run.t)
            for number in self.heard:
                self.found[number].pop()
            left = self.run.stepper.of_events[2]
            self.run.memory[left] = self.run.empty[left]
        return code

    def _follow(self) -> None:
        """The next piece goes on with the unknowns of this one."""
        run = self.run
        if self.system.unknowns:
            solved = run.present_system().with_solved(run.context)
            self.system = self.system.with_unknowns(list(solved.unknowns.values()))

    def _acted(self, t: float, y: np.ndarray) -> tuple[np.ndarray, bool]:
        """What the events at this time leave behind, and whether one of them ends the step."""
        ended = False
        for number in [k for k in self.fired if k < len(self.left) and k not in self.heard]:
            action, role = self.task.events[number].action, f"events[{number}].action"
            if action is not None:
                moment = Moment(self.system, t, y)
                answer, self._asked[number] = moment.call(action, role, self._asked.get(number))
                change = moment.changed(role, answer)
                note_locked(self.impacts, t, change)
                self.repaired = max(self.repaired, change.repaired)
                self.system, y, ended = change.system, change.y, ended or change.stop
            if self.left[number]:
                self.left[number] -= 1
                if not self.left[number]:
                    self.left[number], ended = self._first_left[number], True
        return y, ended

"""What an ensemble computes, complete and checked, and how some of its members are computed.

A `Study` holds no results and no compiled code of its own, so that it can be sent to another process; the
loops that it needs are made once for each system (`lane_loop`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holonome.ensembles.design import Design
from holonome.ensembles.lane import DONE, EVENT, HEAD, LAST, TOO_MANY
from holonome.ensembles.lane_loop import METHODS, Job, LaneLoop, Plan, make_plan, obstacle
from holonome.ensembles.observed import Observed
from holonome.ensembles.one_by_one import solve_member
from holonome.errors import HolonomeError
from holonome.machine.interruption import Interruption
from holonome.solving.methods import AUTO

MOST_STEPS = 100_000
"""Steps after which a trajectory leaves its lane, so that it does not hold up what else is asked for."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Results of some members, one a row: what is kept, by name; where the run ended; the event that ended
    it, or −1; steps tried; how often the rank of the constraints fell; and why some failed, by row.
    """

    kept: dict[str, np.ndarray]
    end: np.ndarray
    event: np.ndarray
    steps: np.ndarray
    singular: np.ndarray
    messages: dict[int, str]

    @property
    def count(self) -> int:
        return self.end.size


@dataclass(frozen=True, eq=False)
class Study:
    """All that determines the results."""

    system: Any
    made: Any
    """The mechanism whose joints have names, or None."""
    design: Design
    base: np.ndarray
    """The inputs (t₀, t₁, y₀, p) of all members, but for what varies."""
    start: dict[str, Any] | None
    speed: dict[str, Any] | None
    assembles: bool
    times: np.ndarray | None
    observed: Observed
    method: Any
    rtol: float
    atol: Any
    first_step: float | None
    max_step: float
    max_steps: int
    repair: bool
    at_rest: bool
    """Whether no velocities were given, so that those at rest are meant."""
    digest: dict[str, str] = field(default_factory=dict)
    """What it is, by parts: equal studies have equal results."""

    @property
    def obstacle(self) -> str:
        """Why members are computed one by one; empty if they are not."""
        if self.method != AUTO and self.method not in METHODS:
            return "this method"
        return obstacle(self.system) or self.observed.obstacle(self.system)

    @property
    def settings(self) -> np.ndarray:
        size, atol = self.system.state_size, np.asarray(self.atol, dtype=float)
        most = min(self.max_steps, MOST_STEPS)
        head = [self.rtol, self.max_step, self.first_step or 0.0, most]
        return np.concatenate([head, np.broadcast_to(atol, (size,))])

    def plan(self) -> Plan:
        """The parts of the loop."""
        name = "dop853" if self.method == AUTO else self.method
        return make_plan(self.system, name, self.observed, self.method == AUTO)

    def inputs(self, first: int, count: int) -> tuple[np.ndarray, dict[int, str]]:
        """All inputs that differ, one member a row, and why some members have none."""
        columns, failures = self.design.columns(first, count), dict[int, str]()
        if not self.assembles:
            return columns, failures
        states = np.full((count, self.system.state_size), np.nan)
        for row in range(count):
            try:
                states[row] = self._assembled(first + row, columns[row])
            except (HolonomeError, ValueError) as error:
                failures[row] = str(error)
        return np.concatenate([columns, states], axis=1), failures

    @property
    def places(self) -> np.ndarray:
        """The inputs in the columns of `inputs`."""
        state = range(HEAD, HEAD + self.system.state_size) if self.assembles else ()
        return np.concatenate([self.design.places, np.array(state, dtype=np.int64)])

    def _assembled(self, member: int, values: np.ndarray) -> np.ndarray:
        """The start of a member whose loops have to be closed first."""
        inputs = self.base.copy()
        inputs[self.design.places] = values
        flat = inputs[HEAD + self.system.state_size :]
        changed = self.system.parameters.with_flat(flat.copy())
        varied = self.design.by_name(member)
        start, speed = ({**(given or {}), **varied[kind]} or None for kind, given in self._by_name())
        q0, v0, s0 = self.made.initial(float(inputs[0]), start, speed, dict(changed))
        return self.system.full_state(q0, v0, s0)

    def _by_name(self) -> tuple[tuple[str, Any], ...]:
        return ("start", self.start), ("speed", self.speed)

    def job(self, columns: np.ndarray) -> Job:
        """The work on members with these inputs."""
        count, varied, total = len(columns), columns.shape[1], self.base.size
        begin, stride = np.arange(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
        begin[self.places], stride[self.places] = total + np.arange(varied), varied
        times = np.zeros(0) if self.times is None else self.times
        out = np.full((count, times.size, self.observed.size if times.size else 0), np.nan)
        return Job(
            np.concatenate([self.base, columns.ravel()]),
            begin,
            stride,
            count,
            self.settings,
            times,
            out,
            np.full((count, LAST + self.system.state_size + len(self.observed.names_along)), np.nan),
        )

    def rows(self, first: int, count: int, march: Callable[[Job], None] | None, threads: int = 1) -> Rows:
        """The results of some members; ``march`` carries out a job, None: one by one."""
        columns, failures = self.inputs(first, count)
        job = self.job(columns)
        if march is None:
            job.last[:, 0] = TOO_MANY
        else:
            march(job)
        status = job.last[:, 0]
        good = (status == DONE) | (status == EVENT)
        messages = dict[int, str]()
        values, along = self._values(job, good), job.last[:, LAST + self.system.state_size :].copy()
        along[~good] = np.nan
        end, event = job.last[:, 1].copy(), np.where(status == EVENT, job.last[:, 3], -1.0)
        steps, singular = job.last[:, 2].copy(), job.last[:, 4].copy()
        left = [row for row in np.flatnonzero(~good).tolist() if row not in failures]

        def alone(row: int) -> None:
            if Interruption.requested:
                return
            found = solve_member(self, self._inputs_of(columns[row]))
            values[row], along[row], end[row] = found.values, found.along, found.end
            event[row], steps[row], singular[row] = found.event, found.steps, found.singular
            if not found.success:
                messages[row] = found.message or "failed"

        if threads > 1 and len(left) > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(alone, left))
        else:
            for row in left:
                alone(row)
        for row, message in failures.items():
            values[row], along[row], end[row], messages[row] = np.nan, np.nan, np.nan, message
            steps[row] = singular[row] = 0
        kept = self.observed.split(values, along, self.times is not None)
        whole = event.astype(np.int16), steps.astype(np.int32), np.nan_to_num(singular).astype(np.int16)
        return Rows(kept, end, *whole, messages)

    def _inputs_of(self, values: np.ndarray) -> np.ndarray:
        inputs = self.base.copy()
        inputs[self.places] = values
        return inputs

    def _values(self, job: Job, good: np.ndarray) -> np.ndarray:
        """What is observed, (members, times, numbers); without times, at the end."""
        if self.times is not None:
            return job.out
        values = np.full((job.members, 1, self.observed.size), np.nan)
        if good.any():
            inputs = job.last[good, 1], job.last[good, LAST : LAST + self.system.state_size]
            parameters = self._parameters(job, good)
            values[good, 0] = self.observed.evaluate(self.system, *inputs, parameters)
        return values

    def _parameters(self, job: Job, good: np.ndarray) -> np.ndarray:
        """The parameters of some members, one a row."""
        places = HEAD + self.system.state_size + np.arange(self.system.parameters.size)
        numbers = np.flatnonzero(good)[:, None]
        return job.table[job.begin[places] + numbers * job.stride[places]]


def lane_loop(study: Study) -> LaneLoop:
    """The compiled loop of a study; equal ones share it, for as long as the process lives."""
    key = (study.observed.key, study.method)
    made: tuple[LaneLoop, Any] = study.system.compiled.latest(
        "lane loop", key, lambda: (LaneLoop(study.plan()), study.observed)
    )
    made[1].require_unchanged()
    return made[0]


def marching(study: Study, threads: int) -> Callable[[Job], None] | None:
    """What carries out jobs on this machine's processor; None where members are computed one by one."""
    if study.obstacle:
        return None
    loop = lane_loop(study)

    def march(job: Job) -> None:
        counter = np.zeros(1, dtype=np.int64)
        if threads == 1 or job.members <= loop.width:
            loop(job, counter)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda _: loop(job, counter), range(threads)))

    return march

"""What each lane remembers, how it takes a trajectory, and what it writes of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from holonome.ensembles.along import MEAN, PASSAGE, AlongTheWay
from holonome.machine.code import Cells, Code, Mask, Real, select

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holonome.integrators.tableau import Tableau

RUNNING, DONE, EVENT, INCONSISTENT, SINGULAR, STIFF, TOO_SMALL, TOO_MANY, IDLE = range(9)
"""States of a lane, and how a trajectory ended; from INCONSISTENT on it is handed over."""

LAST = 5
"""Numbers that the result of a trajectory has before its state, behind which is what is kept of the whole
motion: status, time, steps tried, event, falls of the rank.
"""

SETTINGS = 4
"""Numbers that the settings have before the absolute tolerances: rtol, largest step, first step (0: none),
most steps.
"""

HEAD = 2
"""Inputs of a trajectory before its state: initial and final time."""


NODES = 3
"""Places inside a step at which functions that are searched are looked at."""


class Lane:
    """The memory of the lanes, and code that fills and empties it.

    Parameters
    ----------
    code
        Where to.
    tableau
        The method.
    size, coordinates, parameters
        Numbers of the state, of positions in it, of parameters.
    projects
        Whether there is a manifold.
    observed
        Numbers of an output.
    directions
        Of the events that end a run, as in :class:`holonome.Event`.
    along
        What is kept of the whole motion.
    lengths
        Numbers that show when the rank of the constraints falls.
    watch_stiffness
        Whether stiff trajectories are handed over.
    """

    def __init__(
        self,
        code: Code,
        tableau: Tableau,
        size: int,
        coordinates: int,
        parameters: int,
        *,
        projects: bool,
        observed: int,
        directions: Sequence[float] = (),
        along: Sequence[AlongTheWay] = (),
        lengths: int = 0,
        watch_stiffness: bool = True,
    ) -> None:
        self.code, self.tableau, self.size, self.n = code, tableau, size, coordinates
        self.parameters, self.projects, self.observed = parameters, projects, observed
        self.watch_stiffness, self.along, self.lengths = watch_stiffness, along, lengths
        self.ends = len(directions)
        searched = [part for part in along if part.kind != MEAN]
        self.watched = [AlongTheWay("end", len, direction) for direction in directions] + searched
        self.means = len(along) - len(searched)
        self.more = sum(len(part.names("")) for part in along)
        cells = code.cells
        self.y, self.z, self.p = cells("y", size), cells("z", size), cells("p", parameters)
        self.rates = size - coordinates
        self.slopes = self.rates + self.means
        """Rates of velocities and states, and of the integrals."""
        self.k = [cells(f"k{i}", self.slopes) for i in range(tableau.stages)]
        self.rate, self.weight = cells("rate", self.slopes), cells("weight", size)
        self.e = cells("e", size + 1)
        self.projected = cells("projected", self.slopes + 2 * size + lengths)
        self.atol, self.late = cells("atol", size), cells("late", size)
        self.seen = cells("seen", observed)
        own = "t t_end t_next direction h log_error after_rejection starting status member row tried hits"
        for name in f"{own} upcoming scale_q scale_v kappa span".split():
            setattr(self, name, cells(name))
        watched = len(self.watched)
        self.before, self.values = cells("before", 2 * watched), cells("values", 2 * watched)
        self.inside = cells("inside", size)
        self.nodes = [cells(f"node{i}", 2 * watched) for i in range(NODES)]
        self.reach, self.best, self.best_time = (cells(f"{n}s", watched) for n in ("reach", "best", "when"))
        self.sums, self.top = cells("sums", self.means), cells("top", self.means)
        self.length, self.longest = cells("length", lengths), cells("longest", lengths)
        search = "searching guess beyond low high side which searched hint hints ended t_begin"
        rank = (
            "r_behind r_before step_before armed fell singular low_end high_end inner at_low at_high at_inner"
        )
        for name in f"{search} {rank}".split():
            setattr(self, name, cells(name))
        for name in ["correction", "previous", "pending", "failed", "square", "turn", "regular"]:
            setattr(self, name, cells(f"of_{name}"))

    t: Cells
    t_end: Cells
    t_next: Cells
    direction: Cells
    h: Cells
    log_error: Cells
    after_rejection: Cells
    starting: Cells
    status: Cells
    member: Cells
    row: Cells
    tried: Cells
    hits: Cells
    upcoming: Cells
    threads: Real
    scale_q: Cells
    scale_v: Cells
    kappa: Cells
    span: Cells
    searching: Cells
    guess: Cells
    beyond: Cells
    low: Cells
    high: Cells
    side: Cells
    which: Cells
    searched: Cells
    hint: Cells
    hints: Cells
    ended: Cells
    t_begin: Cells
    r_behind: Cells
    r_before: Cells
    step_before: Cells
    armed: Cells
    fell: Cells
    singular: Cells
    low_end: Cells
    high_end: Cells
    inner: Cells
    at_low: Cells
    at_high: Cells
    at_inner: Cells
    correction: Cells
    previous: Cells
    pending: Cells
    failed: Cells
    square: Cells
    turn: Cells
    regular: Cells

    def _begin(self) -> None:
        code = self.code
        for c in range(self.size):
            self.atol[c] = code.everywhere(code.read("%settings", SETTINGS + c))
        settings = [code.everywhere(code.read("%settings", i)) for i in range(SETTINGS)]
        self.rtol, self.largest, self.first, self.most = settings
        for cells, count in ((self.y, self.size), (self.p, self.parameters), (self.k[0], self.slopes)):
            for c in range(count):
                cells[c] = 0.0
        own = (value for value in vars(self).values() if isinstance(value, Cells))
        many = (self.y, self.z, self.p, self.rate, self.weight, self.e, self.projected, self.late, self.atol)
        many += (self.seen, self.before, self.values, self.inside, self.reach, self.best, self.best_time)
        for cells in own:
            if cells not in (*many, self.sums, self.top, self.length, self.longest):
                cells[0] = 0.0
        self.member[0], self.status[0] = -1.0, DONE
        if code.lanes.card:
            self.upcoming[0], self.threads = code.thread()

    def _renew(self) -> None:
        """Lanes that are done write their result and take the next trajectory."""
        code, write = self.code, self.code.write
        with code.each_lane((self.status[0] > RUNNING + 0.5) & (self.status[0] < IDLE - 0.5)) as lane:
            member = self.member.at(0, lane)
            with code.when((member >= 0.0).name):
                number = write.value(f"fptosi double {member.name} to i64")
                first = code.whole("mul", number, LAST + self.size + self.more)
                head = (self.status, self.t, self.tried, self.ended, self.singular)
                for i, value in enumerate(
                    [cells.at(0, lane) for cells in head]
                    + [self.y.at(c, lane) for c in range(self.size)]
                    + list(self._kept_of_motion(lane))
                ):
                    code.keep(value, "%last", code.whole("add", first, i))
            number = self._next_number(lane)
            self.status.put(0, lane, IDLE)
            with code.when(write.value(f"icmp slt i64 {number}, %members")):
                self._take(lane, number)

    def _kept_of_motion(self, lane: str) -> Iterator[Real]:
        """Of a trajectory that is done, in the order of the names."""
        watched, mean = self.ends, 0
        for part in self.along:
            if part.kind == MEAN:
                yield self.sums.at(mean, lane) / (self.t.at(0, lane) - self.t_begin.at(0, lane))
                mean += 1
                continue
            yield self.best.at(watched, lane) * (part.sign if part.is_extreme else 1.0)
            if part.is_extreme:
                yield self.best_time.at(watched, lane)
            watched += 1

    def _next_number(self, lane: str) -> str:
        """Of the trajectory that a lane takes next: from the counter; on a card, where a counter for so many
        threads would be a bottleneck, every thread has its own ones.
        """
        if not self.code.lanes.card:
            return self.code.write.value("atomicrmw add ptr %counter, i64 1 monotonic")
        number = self.upcoming.at(0, lane)
        self.upcoming.put(0, lane, number + self.threads)
        return self.code.write.value(f"fptosi double {number.name} to i64")

    def _input(self, number: str, i: int) -> Real:
        """An input of a trajectory: a column of the table, or the same for all."""
        code, write = self.code, self.code.write
        begin, stride = (
            write.value(f"load i64, ptr {write.address(place, i)}") for place in ("%begin", "%stride")
        )
        return code.read("%table", code.whole("add", begin, code.whole("mul", stride, number)))

    def _take(self, lane: str, number: str) -> None:
        """Begin a trajectory."""
        code, write = self.code, self.code.write
        t, t_end = self._input(number, 0), self._input(number, 1)
        for c in range(self.size):
            self.y.put(c, lane, self._input(number, HEAD + c))
        for c in range(self.parameters):
            self.p.put(c, lane, self._input(number, HEAD + self.size + c))
        for cells in (self.log_error, self.after_rejection, self.tried, self.hits, self.row, self.h):
            cells.put(0, lane, 0.0)
        for cells in (self.scale_q, self.scale_v, self.searching, self.which, self.status, self.hint):
            cells.put(0, lane, 0.0)
        for cells in (self.hints, self.ended, self.singular, self.armed, self.step_before):
            cells.put(0, lane, 0.0)
        for cells, count in ((self.k[0], self.slopes), (self.sums, self.means), (self.top, self.means)):
            for c in range(count):
                cells.put(c, lane, 0.0)
        for c in range(self.lengths):
            self.longest.put(c, lane, 0.0)
        for c, part in enumerate(self.watched):
            self.reach.put(c, lane, 0.0)
            self.best.put(c, lane, math.nan if part.kind == PASSAGE else -math.inf)
            self.best_time.put(c, lane, math.nan)
        forward = Real(code.one, code.one.number(1.0)).with_sign_of(t_end - t)
        name = write.value(f"sitofp i64 {number} to double")
        values = {self.t: t, self.t_end: t_end, self.direction: forward, self.span: abs(t_end - t)}
        values |= {self.t_begin: t, self.fell: -math.inf * forward}
        values |= {self.member: Real(code.one, name), self.starting: 1.0, self.kappa: 10.0}
        for cells, value in values.items():
            cells.put(0, lane, value)
        self._skip_rows(lane, t, forward)

    def _skip_rows(self, lane: str, t: Real, forward: Real) -> None:
        """The first time of output that does not lie before t; the rows of earlier ones stay as they are."""
        code, write = self.code, self.code.write
        zero = Real(code.one, code.one.number(0.0))
        self.row.put(0, lane, zero)
        with code.loop() as loop:
            row = self.row.at(0, lane)
            number = write.value(f"fptosi double {row.name} to i64")
            loop.leave(write.value(f"icmp sge i64 {number}, %times_count"))
            loop.leave(((code.read("%times", number) - t) * forward >= 0.0).name)
            self.row.put(0, lane, row + 1.0)
        self._aim(lane)

    def _aim(self, lane: str) -> None:
        """Steps end at the next time of output, or at the end."""
        code, write = self.code, self.code.write
        t_end, forward = self.t_end.at(0, lane), self.direction.at(0, lane)
        self.t_next.put(0, lane, t_end)
        number = write.value(f"fptosi double {self.row.at(0, lane).name} to i64")
        with code.when(write.value(f"icmp slt i64 {number}, %times_count")):
            wanted = code.read("%times", number)
            self.t_next.put(0, lane, select((wanted - t_end) * forward <= 0.0, wanted, t_end))

    def _report(self, accept: Mask, reached: Mask, stop: Mask) -> None:
        """Write outputs, and end what is at its end."""
        code, write = self.code, self.code.write
        reached = reached & (self.status[0] < RUNNING + 0.5)
        with code.when(reached.any()):
            if self.observed:
                given = self.y.pointer(), self.y.pointer(), self.p.pointer()
                code.call("observe", self.t[0], *given, self.seen.pointer())
            with code.each_lane(reached) as lane:
                t, t_end = self.t.at(0, lane), self.t_end.at(0, lane)
                number = write.value(f"fptosi double {self.row.at(0, lane).name} to i64")
                inside = write.value(f"icmp slt i64 {number}, %times_count")
                with code.when(inside):
                    self._write_row(lane, number, t)
                with code.when(t.equals(t_end).name):
                    self.status.put(0, lane, DONE)
                self._aim(lane)
        self.status[0] = select(stop & (self.status[0] < EVENT), EVENT, self.status[0])

    def _write_row(self, lane: str, number: str, t: Real) -> None:
        """One output, if this is its time."""
        code, write = self.code, self.code.write
        with code.when(code.read("%times", number).equals(t).name):
            member = write.value(f"fptosi double {self.member.at(0, lane).name} to i64")
            place = code.whole("add", code.whole("mul", member, "%times_count"), number)
            first = code.whole("mul", place, self.observed)
            for i in range(self.observed):
                code.keep(self.seen.at(i, lane), "%out", code.whole("add", first, i))
            self.row.put(0, lane, self.row.at(0, lane) + 1.0)

"""The loop that takes many trajectories from their starts to their ends, written for W lanes.

Every turn of the loop is one step of an explicit Runge–Kutta method in each lane, of its own trajectory, from
its own time with its own step size:

    k_i = F(t + c_i h, y + h Σ a_ij k_j),    ẑ = y + h Σ b_i k_i,    e = h Σ e_i k_i

ẑ returns to the manifold by Newton steps, and e is freed of its part normal to it, exactly as in
:mod:`holonome.integrators.runge_kutta_steps`.  A lane whose step fails tries a smaller one in the next turn.
Lanes do not see each other: what a lane computes depends on its own trajectory alone.

A lane begins a trajectory with a step of size 0, which evaluates the rates and brings the start onto the
manifold.  It ends steps at the times of output.  Where an event ends the run, the step across it is repeated
with other sizes until the crossing is bracketed to rounding.  A lane that is done writes its result and takes
the next trajectory, whose number it gets from a counter that all threads share.

What this loop does not treat itself it hands over, by a status: stiffness, singular positions, inconsistent
starts, steps that become too small.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from holonome.dynamics.projection import LARGEST_CORRECTION, MOST_CORRECTIONS, ROUNDING
from holonome.machine.code import Cells, Code, Mask, Real, larger, select, smaller

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holonome.integrators.tableau import Tableau

RUNNING, DONE, EVENT, INCONSISTENT, SINGULAR, STIFF, TOO_SMALL, TOO_MANY, IDLE = range(9)
"""States of a lane, and how a trajectory ended; from INCONSISTENT on it is handed over."""

LAST = 4
"""Numbers that the result of a trajectory has before its state: status, time, steps tried, event."""

SETTINGS = 4
"""Numbers that the settings have before the absolute tolerances: rtol, largest step, first step (0: none),
most steps.
"""

HEAD = 2
"""Inputs of a trajectory before its state: initial and final time."""

ARGUMENTS = (
    "ptr noalias %table, ptr noalias %begin, ptr noalias %stride, i64 %members, ptr noalias %counter, "
    "ptr noalias %settings, ptr noalias %times, i64 %times_count, ptr noalias %out, ptr noalias %last"
)
_GROW, _FIRST_GROWTH, _SHRINK, _SAFETY = 8.0, 1000.0, 0.2, 0.9
_STIFF_STEPS = 64
_BISECT_AFTER = 30
_ROUNDED = 1e-15
"""Coefficients that are zero but for rounding."""
_EPS = float(np.finfo(float).eps)


class March:
    """Writes the loop.

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
        watch_stiffness: bool = True,
    ) -> None:
        self.code, self.tableau, self.size, self.n = code, tableau, size, coordinates
        self.parameters, self.projects, self.observed = parameters, projects, observed
        self.directions, self.watch_stiffness = directions, watch_stiffness
        cells = code.cells
        self.y, self.z, self.p = cells("y", size), cells("z", size), cells("p", parameters)
        self.rates = size - coordinates
        self.k = [cells(f"k{i}", self.rates) for i in range(tableau.stages)]
        self.rate, self.weight = cells("rate", self.rates), cells("weight", size)
        self.e, self.projected = cells("e", size + 1), cells("projected", 3 * size - coordinates)
        self.atol, self.late = cells("atol", size), cells("late", size)
        self.seen = cells("seen", observed)
        own = "t t_end t_next direction h log_error after_rejection starting status member row tried hits"
        for name in f"{own} upcoming scale_q scale_v kappa span".split():
            setattr(self, name, cells(name))
        self.before = cells("before", len(directions))
        for name in ["searching", "guess", "beyond", "low", "high", "side", "which", "searched"]:
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
    correction: Cells
    previous: Cells
    pending: Cells
    failed: Cells
    square: Cells
    turn: Cells
    regular: Cells

    def write(self, head: str) -> str:
        """The whole function."""
        code = self.code
        self._begin()
        with code.loop() as loop:
            with code.when((self.status[0] > RUNNING + 0.5).any()):
                self._renew()
            loop.leave(code.lanes.all_true((self.status[0] > IDLE - 0.5).name))
            self._step()
        return code.function(head)

    def _begin(self) -> None:
        code = self.code
        for c in range(self.size):
            self.atol[c] = code.everywhere(code.read("%settings", SETTINGS + c))
        settings = [code.everywhere(code.read("%settings", i)) for i in range(SETTINGS)]
        self.rtol, self.largest, self.first, self.most = settings
        for cells, count in ((self.y, self.size), (self.p, self.parameters), (self.k[0], self.rates)):
            for c in range(count):
                cells[c] = 0.0
        own = (value for value in vars(self).values() if isinstance(value, Cells))
        many = (self.y, self.z, self.p, self.rate, self.weight, self.e, self.projected, self.late, self.atol)
        for cells in own:
            if cells not in (*many, self.seen, self.before):
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
                first = code.whole("mul", number, LAST + self.size)
                for i, cells in enumerate((self.status, self.t, self.tried, self.which)):
                    code.keep(cells.at(0, lane), "%last", code.whole("add", first, i))
                for c in range(self.size):
                    code.keep(self.y.at(c, lane), "%last", code.whole("add", first, LAST + c))
            number = self._next_number(lane)
            self.status.put(0, lane, IDLE)
            with code.when(write.value(f"icmp slt i64 {number}, %members")):
                self._take(lane, number)

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
        for cells in (self.scale_q, self.scale_v, self.searching, self.which, self.status):
            cells.put(0, lane, 0.0)
        for c in range(self.rates):
            self.k[0].put(c, lane, 0.0)
        forward = Real(code.one, code.one.number(1.0)).with_sign_of(t_end - t)
        name = write.value(f"sitofp i64 {number} to double")
        values = {self.t: t, self.t_end: t_end, self.direction: forward, self.span: abs(t_end - t)}
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

    def _step(self) -> None:
        """One step in every lane."""
        starting, searching = self.starting[0] > 0.5, self.searching[0] > 0.5
        t, left = self.t[0], abs(self.t_next[0] - self.t[0])
        wish = select(searching, self.guess[0], smaller(self.h[0], self.largest))
        wish = select(starting, 0.0, wish)
        reaches = wish >= left * (1 - 1e-10)
        halves = select(wish > 0.5 * left, 0.5 * left, wish)
        length = select(reaches, left, select(searching, wish, halves))
        step = self.direction[0] * length
        t_new = select(reaches, self.t_next[0], t + step)
        running = self.status[0] < RUNNING + 0.5
        self.tried[0] = self.tried[0] + 1.0
        good = self._stages(t, step)
        share = self._estimate(step)
        good = self._onto_manifold(t_new, step, running & good, starting, share) & good
        error = (self.square[0] * (1 / max(self.size, 1))).sqrt()
        total = self.square[0]
        for c in range(self.rates):
            total = total + self.rate[c]
        good = good & running & (self.failed[0] < 0.5)
        finite = total.is_finite()
        passed = good & finite & ((error <= 1.0) | starting)
        crossing, stop = self._look_for_events(t, t_new, length, passed, starting, searching)
        accept = passed & ~(crossing & ~stop)
        retry = passed & crossing & ~stop
        self._control(length, error, good & finite, accept, retry, starting, searching | retry, reaches)
        self._watch(step, accept)
        self._refuse(t, t_new, running, accept | retry, starting, good)
        self._accept(t_new, accept, starting)
        self._report(accept, accept & reaches, stop)

    def _sum(self, coefficients: np.ndarray, c: int) -> Real:
        """Σ a_j k_j[c], in two halves that do not wait for each other; on a card, where other threads use the
        time, as one sum, with one operation less.
        """
        sums: list[Real] = []
        for turn, j in enumerate(np.flatnonzero(np.abs(coefficients) > _ROUNDED).tolist()):
            product = self.k[j][c] * float(coefficients[j])
            if turn and self.code.lanes.card:
                sums = [sums[0] + product]
            else:
                sums = [*sums, product] if turn < 2 else [sums[1], sums[0] + product]
        if not sums:
            return self.code.number(0.0)
        return sums[0] + sums[1] if len(sums) == 2 else sums[0]

    def _changes(self, coefficients: np.ndarray, step: Real) -> Iterator[Real]:
        """h Σ a_j y′_j, component by component.  As q′ = v, that of q is a sum of accelerations, too:

        h Σ a_i v_i = h (Σ a_i) v + h² Σ_j (Σ_i a_i a_ij) k_j
        """
        whole = float(np.sum(coefficients))
        nested = coefficients @ self.tableau.a[: len(coefficients), : len(coefficients)]
        for c in range(self.n):
            change = step * step * self._sum(nested, c)
            if abs(whole) > _ROUNDED:
                change = step * whole * self.y[self.n + c] + change
            yield change
        for c in range(self.rates):
            yield step * self._sum(coefficients, c)

    def _stages(self, t: Real, step: Real) -> Mask:
        """All stages, and the new point in z; whether all were regular."""
        code, tableau = self.code, self.tableau
        least = code.number(1.0)
        for i in range(1, tableau.stages):
            stage = self.late if i == tableau.stages - 1 else self.z
            for c, change in enumerate(self._changes(tableau.a[i, :i], step)):
                stage[c] = self.y[c] + change
            given = stage.pointer(), stage.pointer(), self.p.pointer(), self.k[i].pointer()
            margin = code.call("rate", t + step * float(tableau.c[i]), *given)
            least = select(margin > 0.0, least, 0.0)
        for c, change in enumerate(self._changes(tableau.b, step)):
            self.z[c] = self.y[c] + change
        return least > 0.5

    def _estimate(self, step: Real) -> Real:
        """The error estimate into e; for two estimates, the factor e₅² / (e₅² + e₃²/100) of its square."""
        stages, (first, *others) = self.tableau.stages, self.tableau.errors
        fifth = third = self.code.number(0.0)
        for c, error in enumerate(self._changes(first[:stages], step)):
            size = larger(abs(self.y[c]), abs(self.z[c]))
            weight = 1.0 / (self.atol[c] + self.rtol * size)
            self.weight[c], self.e[c] = weight, error
            scaled = error * weight
            fifth = fifth + scaled * scaled
        if others:
            for c, error in enumerate(self._changes(others[0][:stages], step)):
                scaled = error * self.weight[c]
                third = third + scaled * scaled
        self.e[self.size] = step * float(first[stages])
        if not others:
            return self.code.number(1.0)
        both = fifth + 0.01 * third
        return select(both > 0.0, fifth / both, 1.0)

    def _onto_manifold(self, t: Real, step: Real, wanted: Mask, starting: Mask, share: Real) -> Mask:
        """Bring z onto the manifold, with its rates and the squared error; whether it was regular.

        ``failed`` says where Newton's method did not converge.
        """
        code, size = self.code, self.size
        self.failed[0], self.square[0], self.correction[0] = 0.0, 0.0, 0.0
        given = self.z.pointer(), self.e.pointer(), self.p.pointer()
        if not self.projects:
            margin = code.call("rate", t, *given, self.rate.pointer())
            square = code.number(0.0)
            for c in range(size):
                rate = self.z[self.n + c] if c < self.n else self.rate[c - self.n]
                scaled = (self.e[c] + self.e[size] * rate) * self.weight[c]
                square = square + scaled * scaled
            self.square[0] = square * share
            return margin > 0.0
        self.previous[0], self.pending[0], self.turn[0] = math.inf, wanted.as_number(), 0.0
        self.regular[0] = 1.0
        with code.loop() as loop:
            margin = code.call("projection", t, *given, self.projected.pointer())
            pending = self.pending[0] > 0.5
            self.regular[0] = select(pending & ~(margin > 0.0), 0.0, self.regular[0])
            with code.when((self.turn[0] < 0.5).any()):
                self._measure(share)
            self._correct(pending, starting)
            self.turn[0] = self.turn[0] + 1.0
            more = self.pending[0] > 0.5
            loop.leave(code.lanes.all_true((~more | (self.turn[0] > MOST_CORRECTIONS - 0.5)).name))
        self.failed[0] = select(self.pending[0] > 0.5, 1.0, self.failed[0])
        return self.regular[0] > 0.5

    def _measure(self, share: Real) -> None:
        """The square of the tangential error."""
        square = self.code.number(0.0)
        for c in range(self.size):
            scaled = self.projected[self.rates + c] * self.weight[c]
            square = square + scaled * scaled
        self.square[0] = square * share

    def _correct(self, pending: Mask, starting: Mask) -> None:
        """One Newton step where it is pending, and whether it was the last one."""
        size, tiny = self.size, 1e-300
        scale_q = self.scale_q[0]
        scale_v = larger(self.scale_v[0], tiny)
        largest_q = largest_v = total = self.code.number(0.0)
        for c in range(self.rates):
            self.rate[c] = select(pending, self.projected[c], self.rate[c])
        for c in range(size):
            delta = self.projected[self.rates + size + c]
            total = total + delta
            moved = select(pending, self.z[c] + delta, self.z[c])
            self.z[c] = moved
            if c < self.n:
                scale_q, largest_q = larger(scale_q, abs(moved)), larger(largest_q, abs(delta))
            else:
                scale_v, largest_v = larger(scale_v, abs(moved)), larger(largest_v, abs(delta))
        scale_v = larger(scale_v, select(self.span[0] > 0.0, scale_q / self.span[0], 0.0))
        found = larger(largest_q / larger(scale_q, tiny), largest_v / scale_v)
        before, kappa = self.previous[0], self.kappa[0]
        measured = larger(2.0 * found / (before * before), larger(0.5 * kappa, 1e-3))
        kappa = select(pending & (before > 1e-7) & (before < 1e-2), measured, kappa)
        self.kappa[0] = kappa
        last = (kappa * found * found <= ROUNDING) | ((found < 1e-7) & (found > 0.1 * before))
        far = ~((found < LARGEST_CORRECTION) & total.is_finite())
        far = far | ((self.turn[0] > 2.5) & (found > before) & ~last)
        self.failed[0] = select(pending & far, 1.0, self.failed[0])
        self.correction[0] = select(self.turn[0] < 0.5, found, self.correction[0])
        missed = (self.square[0] > self.size) & ~starting
        self.pending[0] = (pending & ~last & ~far & ~missed).as_number()
        self.previous[0] = found

    def _control(
        self,
        length: Real,
        error: Real,
        sound: Mask,
        accept: Mask,
        retry: Mask,
        starting: Mask,
        fixed: Mask,
        reaches: Mask,
    ) -> None:
        """The next step size, by Gustafsson's control."""
        tableau = self.tableau
        exponent, beta = 1 / (tableau.error_order + 1), tableau.beta
        young = self.log_error[0].equals(0.0)
        log_error = larger(error, select(young, 1e-30, 1e-10)).log()
        usual = beta * self.log_error[0] - (exponent - 0.75 * beta) * log_error
        grown = _SAFETY * select(young, -exponent * log_error, usual).exp()
        log_error = larger(log_error, math.log(1e-10))
        limit = select(young, _FIRST_GROWTH, _GROW)
        limit = select(self.after_rejection[0] > 0.5, 1.0, limit)
        after = length * smaller(limit, larger(grown, _SHRINK))
        after = select(reaches, larger(after, self.h[0]), after)
        shrunk = length * larger(_SAFETY * (-exponent * log_error).exp(), _SHRINK)
        failed = select(sound, shrunk, 0.25 * length)
        h = select(accept, after, select(retry, self.h[0], failed))
        h = select(fixed & (accept | retry), self.h[0], h)
        self.h[0] = select(starting & accept, self._first_length(), h)
        settled = accept & ~fixed & ~starting
        self.log_error[0] = select(settled, log_error, self.log_error[0])
        rejected = select(~(accept | retry), 1.0, self.after_rejection[0])
        self.after_rejection[0] = select(settled, 0.0, rejected)

    def _first_length(self) -> Real:
        """The first guess of Hairer, Nørsett & Wanner, section II.4, from the sizes of y and y′; the step
        after it may be much larger.
        """
        d0 = d1 = self.code.number(0.0)
        for c in range(self.size):
            weight = 1.0 / (self.atol[c] + self.rtol * abs(self.z[c]))
            rate = self.z[self.n + c] if c < self.n else self.rate[c - self.n]
            a, b = self.z[c] * weight, rate * weight
            d0, d1 = d0 + a * a, d1 + b * b
        mean = 1 / max(self.size, 1)
        d0, d1 = (d0 * mean).sqrt(), (d1 * mean).sqrt()
        usual = select((d0 > 1e-5) & (d1 > 1e-5), 0.01 * d0 / d1, 1e-6 * self.span[0])
        return select(self.first > 0.0, self.first, smaller(usual, self.span[0]))

    def _watch(self, step: Real, accept: Mask) -> None:
        """Count consecutive steps that stability seems to limit (Hairer & Wanner, section IV.2)."""
        if not self.watch_stiffness:
            return
        rates = distance = self.code.number(0.0)
        last = self.k[-1]
        for c in range(self.size):
            moved = self.z[c] - self.late[c]
            distance = distance + moved * moved
            if self.n <= c < 2 * self.n:
                rates = rates + moved * moved
        for c in range(self.rates):
            change = self.rate[c] - last[c]
            rates = rates + change * change
        limit = (0.5 * self.tableau.stable) ** 2
        stiff = step * step * rates > limit * distance
        self.hits[0] = select(accept, select(stiff, self.hits[0] + 1.0, 0.0), self.hits[0])

    def _refuse(self, t: Real, t_new: Real, running: Mask, fine: Mask, starting: Mask, good: Mask) -> None:
        """Hand over what cannot go on here."""
        status = self.status[0]
        h = self.h[0]
        small = (h <= 1e-15 * larger(abs(t), abs(t_new))) | (h < 1e-290) | ~h.is_finite()
        status = select(running & ~fine & small & ~starting, TOO_SMALL, status)
        status = select(running & (self.tried[0] > self.most), TOO_MANY, status)
        if self.watch_stiffness:
            status = select(running & (self.hits[0] > _STIFF_STEPS), STIFF, status)
        far = self.correction[0] * self.correction[0] > 0.01 * self.rtol
        status = select(running & starting & (~fine | far), INCONSISTENT, status)
        if self.projects:
            status = select(running & starting & (self.regular[0] < 0.5), SINGULAR, status)
        self.status[0] = status

    def _accept(self, t_new: Real, accept: Mask, starting: Mask) -> None:
        """Move on."""
        scale_q, scale_v = self.scale_q[0], self.scale_v[0]
        for c in range(self.size):
            value = select(accept, self.z[c], self.y[c])
            self.y[c] = value
            size = larger(abs(value), self.atol[c])
            if c < self.n:
                scale_q = larger(scale_q, size)
            else:
                scale_v = larger(scale_v, size)
        for c in range(self.rates):
            self.k[0][c] = select(accept, self.rate[c], self.k[0][c])
        self.scale_q[0], self.scale_v[0] = scale_q, scale_v
        self.t[0] = select(accept, t_new, self.t[0])
        self.starting[0] = select(accept & starting, 0.0, self.starting[0])

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

    def _look_for_events(
        self, t: Real, t_new: Real, length: Real, passed: Mask, starting: Mask, searching: Mask
    ) -> tuple[Mask, Mask]:
        """Where a step crosses an event, and where it does so within rounding.

        The crossing is bracketed between t, as steps short of it are accepted, and ``beyond``; the next size
        is chosen by the Illinois variant of regula falsi, later by bisection.
        """
        no = Mask(self.code.lanes, (self.code.number(0.0) > 1.0).name)
        if not self.directions:
            return no, no
        code, count = self.code, len(self.directions)
        values = code.cells("values", count)
        given = self.z.pointer(), self.z.pointer(), self.p.pointer(), values.pointer()
        code.call("events", t_new, *given)
        crossing, least = no, code.number(math.inf)
        low, high, which = self.low[0], self.high[0], self.which[0]
        held = code.number(0.0)
        for i, direction in enumerate(self.directions):
            old, new = self.before[i], values[i]
            rising, falling = (old < 0.0) & (new >= 0.0), (old > 0.0) & (new <= 0.0)
            crosses = rising if direction > 0 else falling if direction < 0 else rising | falling
            crosses = crosses & passed & ~starting
            part = old / (old - new)
            first = crosses & (part < least)
            least = select(first, part, least)
            low, high = select(first, old, low), select(first, new, high)
            held = select(self.which[0].equals(float(i)), new, held)
            which = select(first, float(i), which)
            crossing = crossing | crosses
        tolerance = 2 * _EPS * larger(abs(t), abs(t_new)) + 1e-16 * self.span[0]
        stop = crossing & (length <= tolerance)
        again, short = crossing & ~stop, passed & searching & ~crossing
        same_side = searching & (self.side[0] > 0.5)
        low = select(again & same_side, 0.5 * self.low[0], low)
        other_side = searching & (self.side[0] < -0.5)
        high = select(short, select(other_side, 0.5 * self.high[0], self.high[0]), high)
        low = select(short, held, low)
        self.side[0] = select(again, 1.0, select(short, -1.0, 0.0))
        beyond = select(again, t_new, self.beyond[0])
        self.beyond[0] = beyond
        room = abs(beyond - select(short, t_new, t))
        self.searched[0] = select(again & ~searching, 0.0, self.searched[0] + 1.0)
        part = select(self.searched[0] > _BISECT_AFTER, 0.5, low / (low - high))
        guess = smaller(larger(room * part, 0.5 * tolerance), larger(room - 0.5 * tolerance, room * 0.5))
        self.guess[0] = select(again | short, select(room <= tolerance, room, guess), self.guess[0])
        self.low[0], self.high[0] = low, high
        self.which[0] = select(crossing, which, self.which[0])
        over = ~passed | (short & ~(room > 0.0))
        self.searching[0] = select(again, 1.0, select(over, 0.0, self.searching[0]))
        kept = passed & ~again
        for i in range(count):
            self.before[i] = select(kept, values[i], self.before[i])
        return crossing, stop

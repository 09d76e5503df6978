"""The search inside a step in every lane: for events that end the run, first passages and extremes.

Each function w that is watched is known with its exact rate ẇ = w_t + w_y y′ at both ends of a step, and for
an approximation of the state at a few nodes inside.  What is looked for is a zero

- of w, where it changes its sign in the wanted direction;
- of ẇ, where w is on one side at both ends but goes towards zero and comes back, and its tangents meet close
  to zero or beyond: behind that extremum, w has crossed twice, or touches zero there;
- of ẇ, where an extreme is wanted and the tangents meet beyond the best value so far.

The first of them, by linear interpolation, is bracketed between t and ``beyond``, where t moves on with the
steps that end short of it.  The next size follows from the Illinois variant of regula falsi, later from
bisection.  Extremes are not aimed at, as symmetric mechanisms have them in singular positions, but brackets
on both sides of them; the cubic through their ends gives the value.  If nodes show a change that the ends do
not show, or more of them, the step is repeated up to the first of those nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holonome.ensembles.along import MAXIMUM, MINIMUM, AlongTheWay
from holonome.ensembles.lane import NODES, SINGULAR
from holonome.ensembles.lane_rank import RankInLanes
from holonome.machine.code import Cells, Mask, Real, larger, select, smaller

_BISECT_AFTER = 30
_EPS = float(np.finfo(float).eps)
_MOST_HINTS = 12
_TOUCHES = 1e-12
"""What counts as zero where a function only touches it, relative to its largest value so far."""
_CLOSE = 1.25
"""A function is followed to its extremum where the tangents go this close to zero: by four fifths."""
_FINE = 1e-3
"""The error of an extreme, relative to rtol and the largest value."""


@dataclass(frozen=True)
class _Found:
    """What a step shows of one function: a change of its sign, a dip, or an extreme that is worth it; whether
    that is known as well as it can be; and how much of the step lies before it.
    """

    changes: Mask
    dips: Mask
    settled: Mask
    turned: Mask
    part: Real

    @property
    def any(self) -> Mask:
        return self.changes | self.dips | self.turned


class SearchInLanes(RankInLanes):
    """Writes what follows from the functions that are watched."""

    def _no(self) -> Mask:
        return Mask(self.code.lanes, (self.code.number(0.0) > 1.0).name)

    def _search(
        self, t: Real, t_new: Real, step: Real, passed: Mask, starting: Mask, searching: Mask
    ) -> tuple[Mask, Mask]:
        """Which steps are to be repeated, and which end their runs."""
        if not self.watched:
            return self._no(), self._no()
        code, count, length = self.code, len(self.watched), abs(step)
        self._look(t_new, self.z, self.values)
        tolerance = 2 * _EPS * larger(abs(t), abs(t_new)) + 1e-16 * self.span[0]
        active, small = passed & ~starting, length <= tolerance
        hinted = self._hints(t, step, active & ~searching & ~small)
        active = active & ~hinted
        crossing, open_, least = self._no(), self._no(), code.number(np.inf)
        low, high, which, held = self.low[0], self.high[0], self.which[0], code.number(0.0)
        seen: list[_Found] = []
        for i, part in enumerate(self.watched):
            found = self._between(i, part, self.before, self.values, step, small)
            seen.append(found)
            wanted = found.any & active
            for number, mask in ((i, found.changes), (count + i, found.dips | found.turned)):
                old, new = self._side(self.before, number), self.values[number]
                first = mask & active & (found.part < least)
                least = select(first, found.part, least)
                low, high = select(first, old, low), select(first, new, high)
                held = select(self.which[0].equals(float(number)), new, held)
                which = select(first, float(number), which)
            crossing, open_ = crossing | wanted, open_ | (wanted & ~found.settled)
        stop = crossing & ~open_
        again, short = crossing & open_, active & searching & ~crossing
        self._aim_inside(t, t_new, length, again, short, low, high, which, held, tolerance, searching)
        retry = again | hinted
        kept = passed & ~retry
        end = self._note(t, t_new, step, seen, stop, kept)
        self.hints[0] = select(kept, 0.0, self.hints[0])
        over = ~passed | stop | (short & ~(abs(self.beyond[0] - t_new) > 0.0))
        self.searching[0] = select(again, 1.0, select(over | hinted, 0.0, self.searching[0]))
        for i in range(2 * count):
            self.before[i] = select(kept, self.values[i], self.before[i])
        return retry, end

    def _look(self, t: Real, state: Cells, out: Cells) -> None:
        self.code.call("events", t, state.pointer(), state.pointer(), self.p.pointer(), out.pointer())

    def _side(self, values: Cells, number: int) -> Real:
        """A value at the begin of an interval; where a function is zero, that just behind."""
        value, count = values[number], len(self.watched)
        if number >= count:
            return value
        return select(value.equals(0.0), 1e-200 * values[count + number] * self.direction[0], value)

    def _between(
        self, i: int, part: AlongTheWay, begin: Cells, end: Cells, step: Real, small: Mask
    ) -> _Found:
        """What the values and rates at both ends of an interval show."""
        if part.kind in (MAXIMUM, MINIMUM):
            return self._extreme(i, part.sign, begin, end, step, small)
        count = len(self.watched)
        old, new = self._side(begin, i), end[i]
        rising, falling = (old < 0.0) & (new >= 0.0), (old > 0.0) & (new <= 0.0)
        wanted = part.direction
        changes = rising if wanted > 0 else falling if wanted < 0 else rising | falling
        one = self.code.number(1.0).with_sign_of(old)
        down, up = one * begin[count + i] * step, one * end[count + i] * step
        begin_at, end_at = abs(old), one * new
        x = smaller(larger((begin_at - end_at + up) / (up - down), 0.0), 1.0)
        touch = _TOUCHES * self.reach[i]
        dips = (down < 0.0) & (up > 0.0) & (end_at > 0.0) & (begin_at <= touch - _CLOSE * down * x)
        touched = dips & (end_at <= touch)
        if i >= self.ends:
            still = ~(abs(self.best[i]) >= 0.0)  # NaN: not yet passed
            changes, dips, touched = changes & still, dips & still, touched & still
        part_before = select(changes, old / (old - new), down / (down - up))
        turned = touched if wanted == 0.0 else self._no()
        return _Found(changes | turned, dips & ~turned, small | touched, self._no(), part_before)

    def _extreme(self, i: int, sign: float, begin: Cells, end: Cells, step: Real, small: Mask) -> _Found:
        count, no = len(self.watched), self._no()
        old, new = sign * begin[i], sign * end[i]
        up, down = sign * begin[count + i] * step, sign * end[count + i] * step
        turns = (up > 0.0) & (down < 0.0)
        x = smaller(larger((new - old - down) / (up - down), 0.0), 1.0)
        fine = self._fine(i)
        beyond = old + up * x > larger(self.best[i], new) + fine
        apart = abs(old + 0.5 * up * x - (new + 0.5 * down * (x - 1.0)))
        near = _FINE * self.rtol
        enough = self.reach[i] * near.sqrt() * near.sqrt().sqrt()  # the cubic's error is of apart^(4/3)
        settled = small | (smaller(up, -down) <= fine) | (apart <= enough)
        return _Found(no, no, settled, turns & beyond, up / (up - down))

    def _top(self, i: int, sign: float, step: Real) -> tuple[Real, Real]:
        """Value and place of an extreme inside a step, by the cubic through values and rates at its ends."""
        count = len(self.watched)
        old, new = sign * self.before[i], sign * self.values[i]
        up, down = sign * self.before[count + i] * step, sign * self.values[count + i] * step
        change = new - old
        b, c = 3 * change - 2 * up - down, up + down - 2 * change
        x = up / (larger(b * b - 3 * c * up, 0.0).sqrt() - b)
        return old + x * (up + x * (b + x * c)), x

    def _fine(self, i: int) -> Real:
        return _FINE * self.rtol * self.reach[i]

    def _hints(self, t: Real, step: Real, active: Mask) -> Mask:
        """Where nodes show more than the ends of a step: the step is repeated up to the first of them."""
        few = active & (self.hints[0] < _MOST_HINTS - 0.5)
        no_step = Mask(self.code.lanes, (self.code.number(0.0) > 1.0).name)
        for k, cells in enumerate(self.nodes):
            x = (k + 1) / (NODES + 1)
            self._preview(step, x)
            self._look(t + step * x, self.inside, cells)
        places = [self.before, *self.nodes, self.values]
        first = self.code.number(np.inf)
        for i, part in enumerate(self.watched):
            number = self.code.number(0.0)
            own = self.code.number(np.inf)
            for k in reversed(range(NODES + 1)):
                small = step * (1 / (NODES + 1))
                found = self._between(i, part, places[k], places[k + 1], small, no_step).any
                number = number + found.as_number()
                own = select(found, float(k + 1), own)
            ends = self._between(i, part, self.before, self.values, step, no_step).any
            more = (number > 1.5) | ((number > 0.5) & ~ends)
            first = select(more, smaller(first, own), first)
        hinted = few & (first < NODES + 0.5)
        self.hint[0] = select(hinted, abs(step) * first * (1 / (NODES + 1)), 0.0)
        self.hints[0] = self.hints[0] + hinted.as_number()
        return hinted

    def _aim_inside(
        self,
        t: Real,
        t_new: Real,
        length: Real,
        again: Mask,
        short: Mask,
        low: Real,
        high: Real,
        which: Real,
        held: Real,
        tolerance: Real,
        searching: Mask,
    ) -> None:
        """The next size where a zero is bracketed."""
        turns = self._no()
        for i, watched in enumerate(self.watched):
            if watched.is_extreme:
                turns = turns | which.equals(float(len(self.watched) + i))
        straight = select(short, held / (held - self.high[0]), low / (low - high))
        same = searching & self.which[0].equals(which)
        same_side = same & (self.side[0] > 0.5)
        low = select(again & same_side, 0.5 * self.low[0], low)
        other_side = searching & (self.side[0] < -0.5)
        high = select(short, select(other_side, 0.5 * self.high[0], self.high[0]), high)
        low = select(short, held, low)
        self.side[0] = select(again, 1.0, select(short, -1.0, 0.0))
        beyond = select(again, t_new, self.beyond[0])
        self.beyond[0] = beyond
        room = abs(beyond - select(short, t_new, t))
        self.searched[0] = select(again & ~searching, 0.0, self.searched[0] + 1.0)
        regular = low / (low - high)
        part = select((self.searched[0] > _BISECT_AFTER) | ~(regular > 0.0), 0.5, regular)
        beside = select(same_side, 0.85 * straight, smaller(1.15 * straight, 0.95))
        part = select(turns & (straight > 0.0) & (self.searched[0] < _BISECT_AFTER), beside, part)
        guess = smaller(larger(room * part, 0.5 * tolerance), larger(room - 0.5 * tolerance, room * 0.5))
        self.guess[0] = select(again | short, select(room <= tolerance, room, guess), self.guess[0])
        self.low[0], self.high[0] = select(again | short, low, self.low[0]), high
        self.which[0] = select(again, which, self.which[0])

    def _note(self, t: Real, t_new: Real, step: Real, seen: list[_Found], stop: Mask, kept: Mask) -> Mask:
        """Remember passages and extremes; which runs end here."""
        ended, total = self._no(), self.code.number(0.0)
        for i, (part, found) in enumerate(zip(self.watched, seen, strict=True)):
            value, here = self.values[i], t_new
            total = total + value
            hit = stop & found.changes
            if i < self.ends:
                self.ended[0] = select(hit & ~ended, float(i), self.ended[0])
                ended = ended | hit
            elif part.is_extreme:
                sign, fine = part.sign, self._fine(i)
                found_best, x = self._top(i, sign, step)
                top = stop & found.turned & (found_best.is_finite())
                best = select(top, found_best, sign * value)
                higher = top & (sign * value > best)
                best, here = larger(best, sign * value), select(top & ~higher, t + step * x, t_new)
                better = kept & (best > self.best[i] + fine)
                better = better | (kept & ~(self.best[i] > -np.inf))
                self.best[i] = select(better, best, self.best[i])
                self.best_time[i] = select(better, here, self.best_time[i])
            else:
                self.best[i] = select(hit, t_new, self.best[i])
            size = larger(self.reach[i], abs(value))
            self.reach[i] = select(kept, size, self.reach[i])
        self.status[0] = select(kept & ~total.is_finite(), SINGULAR, self.status[0])
        return ended

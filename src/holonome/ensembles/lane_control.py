"""What follows from a step in every lane: the size of the next one, the search for events, or the end."""

from __future__ import annotations

import math

import numpy as np

from holonome.ensembles.lane import INCONSISTENT, SINGULAR, STIFF, TOO_MANY, TOO_SMALL
from holonome.ensembles.lane_step import StepInLanes
from holonome.machine.code import Mask, Real, larger, select, smaller

_GROW, _FIRST_GROWTH, _SHRINK, _SAFETY = 8.0, 1000.0, 0.2, 0.9
_STIFF_STEPS = 64
_BISECT_AFTER = 30
_EPS = float(np.finfo(float).eps)


class ControlInLanes(StepInLanes):
    """Writes what is decided after a step."""

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

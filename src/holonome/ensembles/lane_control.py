"""What follows from a step in every lane: the size of the next one, or the end."""

from __future__ import annotations

import math

from holonome.ensembles.lane import INCONSISTENT, SINGULAR, STIFF, TOO_MANY, TOO_SMALL
from holonome.ensembles.lane_search import SearchInLanes
from holonome.machine.code import Mask, Real, larger, select, smaller

_GROW, _FIRST_GROWTH, _SHRINK, _SAFETY = 8.0, 1000.0, 0.2, 0.9
_STIFF_STEPS = 64


class ControlInLanes(SearchInLanes):
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

    def _add_up(self, step: Real, accept: Mask) -> None:
        """The integrals over a step."""
        for c, change in enumerate(self._integral_changes(self.tableau.b, step)):
            self.sums[c] = self.sums[c] + select(accept, change, 0.0)
            now = abs(self.rate[self.rates + c])
            self.top[c] = select(accept, larger(self.top[c], now), self.top[c])

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
        for c in range(self.slopes):
            self.k[0][c] = select(accept, self.rate[c], self.k[0][c])
        self.scale_q[0], self.scale_v[0] = scale_q, scale_v
        self.t[0] = select(accept, t_new, self.t[0])
        self.starting[0] = select(accept & starting, 0.0, self.starting[0])

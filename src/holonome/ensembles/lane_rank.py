"""The state inside a step, and whether the rank of the constraints falls there."""

from __future__ import annotations

from holonome.ensembles.lane_step import StepInLanes
from holonome.integrators.rank_watch import SINGULAR_BELOW
from holonome.machine.code import Cells, Mask, Real, larger, select, smaller

_PARABOLAS = 10
_APART = 0.02
"""Distance of another point where a parabola has its least value at a point that is known."""


class RankInLanes(StepInLanes):
    """Writes what :mod:`holonome.integrators.rank_watch` does after a step: r, the root of the least of some
    numbers that vanish where the rank falls, each relative to its largest value so far.  Where r may have
    fallen to nothing inside the step it is evaluated there.
    """

    def _preview(self, step: Real, x: Real | float) -> None:
        """An approximation of the state at the fraction x of a step into ``inside``: Hermite's polynomial of
        degree 5 for the positions, with its derivative for the velocities, and of degree 3 for the states.
        """
        x = x if isinstance(x, Real) else self.code.number(x)
        x2, x3 = x * x, x * x * x
        late = x3 * (10 - 15 * x + 6 * x2)
        v0, v1 = x - x3 * (6 - 8 * x + 3 * x2), x3 * (7 * x - 4 - 3 * x2)
        a0, a1 = 0.5 * x2 * (1 - 3 * x + 3 * x2 - x3), 0.5 * x3 * (1 - 2 * x + x2)
        rate = 30 * x2 * (1 - 2 * x + x2)
        v0_rate, v1_rate = 1 - x2 * (18 - 32 * x + 15 * x2), x2 * (28 * x - 12 - 15 * x2)
        a0_rate, a1_rate = 0.5 * x * (2 - 9 * x + 12 * x2 - 5 * x3), 0.5 * x2 * (3 - 8 * x + 5 * x2)
        for c in range(self.n):
            q, v, a = self.y[c], self.y[self.n + c], self.k[0][c]
            there, w, b = self.z[c] - q, self.z[self.n + c], self.rate[c]
            self.inside[c] = q + late * there + step * (v0 * v + v1 * w + step * (a0 * a + a1 * b))
            slope = (rate * there) / step + v0_rate * v + v1_rate * w
            self.inside[self.n + c] = slope + step * (a0_rate * a + a1_rate * b)
        late, begin, end = x2 * (3 - 2 * x), x * (1 - 2 * x + x2), x2 * (x - 1)
        for c in range(2 * self.n, self.size):
            s, r, u = self.y[c], self.k[0][c - self.n], self.rate[c - self.n]
            self.inside[c] = s + late * (self.z[c] - s) + step * (begin * r + end * u)

    def _root(self, values: Cells, first: int = 0) -> Real:
        least = self.code.number(1.0)
        for i in range(self.lengths):
            least = smaller(least, values[first + i] / larger(self.longest[i], 1e-300))
        return larger(least, 0.0).sqrt()

    def _root_at(self, t: Real, step: Real, x: Real | float) -> Real:
        """r at the fraction x of a step."""
        self._preview(step, x)
        given = self.inside.pointer(), self.inside.pointer(), self.p.pointer(), self.length.pointer()
        self.code.call("rank", t + step * x, *given)
        return self._root(self.length)

    def _watch_rank(self, t: Real, t_new: Real, step: Real, accept: Mask, starting: Mask) -> None:
        """Count the falls of the rank."""
        if not self.lengths:
            return
        first = self.slopes + 2 * self.size
        for i in range(self.lengths):
            value = self.projected[first + i]
            self.longest[i] = select(accept, larger(self.longest[i], value), self.longest[i])
        r, behind, before = self._root(self.projected, first), self.r_behind[0], self.r_before[0]
        length = abs(step)
        falls = (behind - before) * length < (0.3 * r - 0.9 * behind) * self.step_before[0]
        much = (abs(r - behind) > 0.2) | (abs(behind - before) > 0.2)
        small = (r < SINGULAR_BELOW) | (behind < SINGULAR_BELOW)
        suspect = accept & ~starting & (falls | much | small)
        with self.code.when(suspect.any()):
            self._look_for_fall(t, step, suspect, r)
        self.r_before[0] = select(accept, select(starting, r, behind), before)
        self.r_behind[0] = select(accept, r, behind)
        self.step_before[0] = select(accept, length, self.step_before[0])
        self.armed[0] = select(accept & (r > 10 * SINGULAR_BELOW), 1.0, self.armed[0])

    def _look_for_fall(self, t: Real, step: Real, suspect: Mask, r: Real) -> None:
        """By a point in the middle; where that shows a dip, by two more, and where these do, by the least
        value.  Only lanes that need it cost time, but all wait for them.
        """
        behind, code = self.r_behind[0], self.code
        least, largest = smaller(r, behind), larger(r, behind)
        middle = self._root_at(t, step, 0.5)
        suspect = suspect & ((least <= 0.25 * largest) | (middle <= 0.425 * (least + largest)))
        with code.when(suspect.any()):
            early, late = (self._root_at(t, step, x) for x in (0.25, 0.75))
            lowest = smaller(smaller(least, middle), smaller(early, late))
            suspect = suspect & (lowest <= 0.35 * largest)
            first, last = early < smaller(middle, late), late < smaller(early, middle)

            def among(a: Real | float, b: Real | float, c: Real | float) -> Real:
                return select(first, a, select(last, c, code.number(b) if isinstance(b, float) else b))

            self.low_end[0], self.inner[0], self.high_end[0] = (
                among(0.25 * k, 0.25 * (k + 1), 0.25 * (k + 2)) for k in range(3)
            )
            self.at_low[0] = self._squared(among(behind, early, middle))
            self.at_inner[0] = self._squared(among(early, middle, late))
            self.at_high[0] = self._squared(among(middle, late, r))
            self._least_root(t, step, suspect)
            place = t + step * self.inner[0]
            far = abs(place - self.fell[0]) > 0.02 * abs(step)
            low = self.at_inner[0] < SINGULAR_BELOW**2
            new = suspect & low & (self.armed[0] > 0.5) & far
            self.singular[0] = self.singular[0] + new.as_number()
            self.fell[0] = select(new, place, self.fell[0])
            self.armed[0] = select(new, 0.0, self.armed[0])

    def _squared(self, value: Real) -> Real:
        return value * value

    def _least_root(self, t: Real, step: Real, suspect: Mask) -> None:
        """Parabolas through three points of r², which is one where r is straight; the place and the least
        value stay in ``inner`` and ``at_inner``.
        """
        self.turn[0] = suspect.as_number() * _PARABOLAS
        with self.code.loop() as loop:
            loop.leave(self.code.lanes.all_true((self.turn[0] < 0.5).name))
            open_ = self.turn[0] > 0.5
            a, b, c = self.low_end[0], self.inner[0], self.high_end[0]
            below, least, above = self.at_low[0], self.at_inner[0], self.at_high[0]
            left, right = (b - a) * (least - above), (b - c) * (least - below)
            move = -0.5 * ((b - a) * left - (b - c) * right) / (left - right)
            side = select(c - b > b - a, _APART * (c - b), _APART * (a - b))
            small = ~(abs(move) > abs(side))
            x = b + select(small, side, smaller(larger(move, 0.9 * (a - b)), 0.9 * (c - b)))
            root = self._root_at(t, step, x)
            new = root * root
            lower, behind = new < least, x < b
            self.low_end[0] = select(open_, select(lower, select(behind, a, b), select(behind, x, a)), a)
            self.high_end[0] = select(open_, select(lower, select(behind, b, c), select(behind, c, x)), c)
            at_a = select(lower, select(behind, below, least), select(behind, new, below))
            at_c = select(lower, select(behind, least, above), select(behind, above, new))
            self.at_low[0], self.at_high[0] = select(open_, at_a, below), select(open_, at_c, above)
            self.inner[0] = select(open_ & lower, x, b)
            self.at_inner[0] = select(open_ & lower, new, least)
            done = (self.at_inner[0] < SINGULAR_BELOW**2) | (small & ~lower)
            self.turn[0] = select(open_ & ~done, self.turn[0] - 1.0, 0.0)

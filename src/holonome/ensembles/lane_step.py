"""One step of an explicit Runge–Kutta method in every lane, with its error and the return to the manifold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from holonome.dynamics.projection import LARGEST_CORRECTION, MOST_CORRECTIONS, ROUNDING
from holonome.ensembles.lane import Lane
from holonome.machine.code import Mask, Real, larger, select

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROUNDED = 1e-15
"""Coefficients that are zero but for rounding."""


class StepInLanes(Lane):
    """Writes a step: from y to z, with the rates there and the squared error."""

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

    def _integral_changes(self, coefficients: np.ndarray, step: Real) -> Iterator[Real]:
        """h Σ a_j f_j, function by function."""
        for c in range(self.rates, self.slopes):
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

    def _mean_error(self, step: Real) -> Real:
        """The largest error of an integral, relative to what its function may add up to in the whole run."""
        stages, estimates = self.tableau.stages, self.tableau.errors
        largest = self.code.number(0.0)
        every = [self._integral_changes(estimate[:stages], step) for estimate in estimates]
        for c, (first, *others) in enumerate(zip(*every, strict=True)):
            now, at = self.rate[self.rates + c], self.rates + c
            size = larger(self.top[c], larger(abs(self.k[0][at]), abs(now))) * self.span[0]
            error = abs(first + step * now * float(estimates[0][stages]))
            for other in others:
                both = error * error + 0.01 * other * other
                error = select(both > 0.0, error * error / both.sqrt(), error)
            largest = larger(largest, error / (self.rtol * size + 1e-290))
        return largest

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
            scaled = self.projected[self.slopes + c] * self.weight[c]
            square = square + scaled * scaled
        self.square[0] = square * share

    def _correct(self, pending: Mask, starting: Mask) -> None:
        """One Newton step where it is pending, and whether it was the last one."""
        size, tiny = self.size, 1e-300
        scale_q = self.scale_q[0]
        scale_v = larger(self.scale_v[0], tiny)
        largest_q = largest_v = total = self.code.number(0.0)
        for c in range(self.slopes):
            self.rate[c] = select(pending, self.projected[c], self.rate[c])
        for c in range(size):
            delta = self.projected[self.slopes + size + c]
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

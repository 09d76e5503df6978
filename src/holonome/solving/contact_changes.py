"""The contacts of a run: impacts, and which contacts are open, closed, stick or slide from there on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from holonome.dynamics.complementarity import OPEN as SOLVED_OPEN
from holonome.dynamics.complementarity import SLIDE as SOLVED_SLIDE
from holonome.dynamics.complementarity import NoSolution, solve_contacts
from holonome.dynamics.contacts import Answer, Contacts, answer_of, contacts_at
from holonome.dynamics.impact import impulses
from holonome.dynamics.modes import (
    BREAKS,
    CLOSED,
    OPEN,
    RELEASES,
    SLIDE,
    STICK,
    STOPS,
    ModeSystem,
    Watch,
    contact_data,
    mode_of,
)
from holonome.dynamics.start import consistent_state
from holonome.errors import HolonomeError, InconsistentStart
from holonome.problem.system import System
from holonome.results.impacts import Impacts
from holonome.solving.moment import Interrupted

_GAP, _TOUCHING, _PENETRATING = 1e-13, 10.0, 1e-6
"""The gap at which a contact closes, below zero by this part of the positions; how many of these count as
touching; and the part of the positions from which on a start is refused."""

_DEEP = 1.01
"""How many of these below zero an open contact may be."""

_MOVED = 0.1
"""The part of the way at full speed between two interruptions that positions are taken to have moved at
least, where all of them are zero at both ends.
"""

_SPEED, _SLIP, _LEFT_OVER = 1e-10, 1e-8, 1e-4
"""Speeds, as parts of the largest, that count as none, as no slip in two directions, and that such a slip may
have across where it stops.
"""

_BOUNCE = 1e-13
"""Bounces that rise no higher, as a part of the positions, are over."""

_YIELDING = 1 - 1e-7
"""Friction that was exhausted is taken as a little less, to learn in which direction a contact slides."""


class Closed(NamedTuple):
    """What an update found."""

    y: np.ndarray
    solved: ModeSystem


class ContactChanges:
    """Follows the contacts of a run."""

    def __init__(self, system: System, t0: float, y0: np.ndarray) -> None:
        self.count, self.n = len(system.contacts), system.n
        self.poisson = [hypothesis == "poisson" for hypothesis in system.contacts.hypotheses]
        self.size = self.speed = 0.0
        self.last = t0, 0.0
        self.impacts = Impacts.Recorder(system.contacts.names)
        self._grow(t0, y0)
        self._refuse_penetration(system, contacts_at(system, t0, y0))

    def _grow(self, t: float, y: np.ndarray) -> None:
        """Scales: the largest position and velocity so far, and what was moved in between."""
        n, (before, speed) = self.n, self.last
        now = float(np.max(np.abs(y[n : 2 * n]), initial=0.0))
        moved = _MOVED * max(speed, now) * (t - before)
        self.size = max(self.size, moved, float(np.max(np.abs(y[:n]), initial=0.0)))
        self.speed, self.last = max(self.speed, now), (t, now)

    def _refuse_penetration(self, system: System, here: Contacts) -> None:
        worst = int(np.argmin(here.gap))
        if here.gap[worst] < -max(_PENETRATING * self.size, 1e-300):
            raise InconsistentStart(
                f"contacts: {system.contacts.names[worst]} is penetrated by {-here.gap[worst]:.3g}; give "
                "positions where all gaps are open or closed"
            )

    def update(self, system: System, t: float, y: np.ndarray, fired: Sequence[Watch]) -> Closed:
        """Impacts at this time, and the mode that follows."""
        try:
            return self._update(system, t, y, fired)
        except NoSolution:
            names = ", ".join(system.contacts.names)
            raise Interrupted(
                f"stopped at t = {t:.9g}: no contact forces agree with Coulomb's law of friction (Painlevé's "
                f"paradox) at {names}; rigid bodies jam there. Take less friction, or a compliant contact"
            ) from None
        except HolonomeError as error:
            if isinstance(error, Interrupted):
                raise
            raise Interrupted(f"stopped at t = {t:.9g}: {error}") from error

    def _update(self, system: System, t: float, y: np.ndarray, fired: Sequence[Watch]) -> Closed:
        self._grow(t, y)
        here = contacts_at(system, t, y)
        self._refuse_penetration(system, here)
        touching = self._touching(here, t, fired)
        if np.any(here.normal[touching] < -self._slow(_SPEED)):
            y = self._impact(t, y, here, answer_of(system, t, y, here), touching)
            self._grow(t, y)
            here = contacts_at(system, t, y)
        released = {watch.contact for watch in fired if watch.what == RELEASES}
        slow = self._slow(_SPEED)
        resting = [i for i in touching.tolist() if here.normal[i] <= slow]
        chosen = [i for i in resting if i not in released]
        statuses, directions = (OPEN,) * self.count, np.zeros((self.count, 2))
        if chosen:
            statuses, directions = self._statuses(here, answer_of(system, t, y, here), chosen, fired)
        y = self._parted(system, t, y, here, statuses, resting)
        data = contact_data(self.count)
        data[0], data[1] = self._delta, self._slow(_SLIP) ** 2
        data[2:] = directions.ravel()
        solved = mode_of(system, statuses, data)
        if solved.m:
            y = consistent_state(solved, y, t, repair=True).state
        return Closed(y, solved)

    def at_end(self, system: System, t: float, y: np.ndarray) -> str:
        """What is wrong with the last state; empty if nothing is."""
        try:
            self._grow(t, y)
            self._refuse_penetration(system, contacts_at(system, t, y))
        except HolonomeError as error:
            return f"wrong: {error}"
        return ""

    def all_open(self, system: System) -> ModeSystem:
        """The mode in which no contact is closed."""
        return mode_of(system, (OPEN,) * self.count, contact_data(self.count))

    def _slow(self, part: float) -> float:
        return max(part * self.speed, 1e-290)

    def _still(self, directions: int, stops: bool) -> float:
        """The speed up to which a slip counts as none; it may be left over where two directions stop."""
        if directions == 1:
            return np.inf if stops else self._slow(_SPEED)
        return self._slow(_LEFT_OVER if stops else _SLIP)

    def _touching(self, here: Contacts, t: float, fired: Sequence[Watch]) -> np.ndarray:
        """Those that have just closed, and those whose gaps are rounding, also of the time at which these
        closed.
        """
        near = here.gap <= _TOUCHING * (self._delta + np.spacing(abs(t)) * self.speed)
        near[[watch.contact for watch in fired]] = True
        return np.flatnonzero(near)

    def _parted(
        self,
        system: System,
        t: float,
        y: np.ndarray,
        here: Contacts,
        statuses: Sequence[str],
        resting: Sequence[int],
    ) -> np.ndarray:
        """The state without the roundings by which open contacts would not be seen to close: a gap that is
        below zero by more than it is where one closes, a rate that is negative although a contact parts.
        """
        parting = [i for i in resting if statuses[i] == OPEN]
        deep = [i for i in range(self.count) if statuses[i] == OPEN and here.gap[i] < -_DEEP * self._delta]
        if not deep and not np.any(here.normal[parting] < 0):
            return y
        answer, n, y = answer_of(system, t, y, here), self.n, y.copy()
        A = answer.A[np.ix_(here.begins, here.begins)]
        mobility = answer.mobility[:, here.begins]
        y[n : 2 * n] += mobility[:, parting] @ _pushed(A, parting, -here.normal[parting])
        change, moved = np.zeros(n), {i for i, what in enumerate(statuses) if what != OPEN}
        while not moved.issuperset(deep):
            moved |= set(deep)
            rows = sorted(moved)
            x = _pushed(A, rows, -here.gap[rows])
            gaps = here.gap + A[:, rows] @ x
            deep = [i for i in range(self.count) if gaps[i] < -_DEEP * self._delta]
            change = mobility[:, rows] @ x
        y[:n] += change
        return y

    @property
    def _delta(self) -> float:
        """The gap at which contacts close, less than zero by so much."""
        return _GAP * self.size

    def _impact(
        self, t: float, y: np.ndarray, here: Contacts, answer: Answer, touching: np.ndarray
    ) -> np.ndarray:
        """The state after an impact.  Contacts that would rise too little to be seen stay closed."""
        x, u = impulses(answer.A, here, touching, here.law.restitution, self.poisson)
        falling, rates = -answer.b[here.begins], u[here.begins]
        rise = np.where(falling > 0, rates**2 / (2 * np.maximum(falling, 1e-300)), np.inf)
        low = [i for i in touching if rates[i] <= self._slow(_SPEED) or rise[i] <= _BOUNCE * self.size]
        if any(rates[i] > 0 for i in low):
            rows = self._rows_at_rest(here, answer, u, low)
            x[rows] += np.linalg.lstsq(answer.A[np.ix_(rows, rows)], -u[rows], rcond=1e-12)[0]
            u = here.u + answer.A @ x
        after = y.copy()
        n = self.n
        change = answer.mobility @ x
        after[n : 2 * n] += change
        lost = -float(change @ answer.M @ (y[n : 2 * n] + change / 2))
        self.impacts.note(t, here, x, u, lost)
        return after

    def _rows_at_rest(self, here: Contacts, answer: Answer, u: np.ndarray, low: Sequence[int]) -> np.ndarray:
        """Rows of contacts whose bounces are over, those of slips among them that friction ends as well."""
        weight = float(np.max(np.abs(answer.b), initial=0.0))
        slow = 10 * np.sqrt(2 * weight * _BOUNCE * self.size)
        rows = []
        for i in low:
            first, *along = np.arange(u.size)[here.rows(i)].tolist()
            rubs = here.law.friction[i] > 0 and np.linalg.norm(u[along]) <= slow
            rows += [first, *along] if rubs else [first]
        return np.array(rows)

    def _statuses(
        self, here: Contacts, answer: Answer, chosen: Sequence[int], fired: Sequence[Watch]
    ) -> tuple[tuple[str, ...], np.ndarray]:
        """What each contact does from here on, and the directions in which contacts slide."""
        what = {watch.contact: watch.what for watch in fired}
        statuses, directions = [OPEN] * self.count, np.zeros((self.count, 2))
        rows, begins = here.part(chosen)
        sizes = np.diff(np.append(begins, rows.size))
        mu, sliding = here.law.static[chosen].copy(), np.zeros(len(chosen), dtype=bool)
        given = np.zeros((len(chosen), 2))
        for k, i in enumerate(chosen):
            slip = here.u[here.rows(i)][1:]
            speed = float(np.linalg.norm(slip))
            if what.get(i) == BREAKS:
                mu[k] = min(here.law.friction[i], here.law.static[i] * _YIELDING)
            elif slip.size and speed > self._still(slip.size, what.get(i) == STOPS):
                sliding[k] = True
                given[k, : slip.size] = slip / speed
                mu[k] = here.law.friction[i]
        A, b = answer.A[np.ix_(rows, rows)], answer.b[rows]
        found = solve_contacts(A, b, begins, mu, given, sliding)
        new = (found.status == SOLVED_SLIDE) & ~sliding
        if np.any(new & (mu > here.law.friction[chosen])):
            sliding, given = sliding | new, found.directions
            mu = np.where(new, here.law.friction[chosen], mu)
            found = solve_contacts(A, b, begins, mu, given, sliding)
        for k, i in enumerate(chosen):
            if found.status[k] == SOLVED_OPEN:
                continue
            if sizes[k] == 1 or mu[k] == 0:
                statuses[i] = CLOSED
            else:
                statuses[i] = SLIDE if found.status[k] == SOLVED_SLIDE else STICK
            directions[i] = found.directions[k]
        return tuple(statuses), directions


def _pushed(A: np.ndarray, rows: Sequence[int], change: np.ndarray) -> np.ndarray:
    """Impulses that change these velocities, or gaps, so much."""
    return np.linalg.lstsq(A[np.ix_(rows, rows)], change, rcond=1e-12)[0]

"""The contacts of a run: impacts, and which contacts are open, closed, stick or slide from there on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from holonome.dynamics import contact_update
from holonome.dynamics.contact_update import GAP, SLIP
from holonome.dynamics.contacts import begins_of, contact_kernel, contacts_along, explain_refusal
from holonome.dynamics.evaluation import what_failed
from holonome.dynamics.kernels import kernels
from holonome.dynamics.modes import (
    BREAKS,
    CLOSED,
    CLOSES,
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

_STATUSES = (OPEN, CLOSED, STICK, SLIDE)
_FIRED = {CLOSES: 1, RELEASES: 2, BREAKS: 3, STOPS: 4}
"""In the order of :mod:`holonome.dynamics.contact_update`."""


class Closed(NamedTuple):
    """What an update found."""

    y: np.ndarray
    solved: ModeSystem


class ContactChanges:
    """Follows the contacts of a run."""

    def __init__(self, system: System, t0: float, y0: np.ndarray, impacts: Impacts.Recorder) -> None:
        count, begins = len(system.contacts), begins_of(system)
        self.scales, self.impacts = np.array([0.0, 0.0, t0, 0.0]), impacts
        poisson = np.array([hypothesis == "poisson" for hypothesis in system.contacts.hypotheses])
        self._known = begins, poisson
        self._found = np.zeros(count, np.int64), np.zeros((count, 2)), np.zeros(2 + 3 * begins[-1])
        self._nothing = np.zeros(count, np.int64)
        self._solved: Any = None
        self._enter(system)
        contact_update.grow(t0, y0, system.n, self.scales)
        gap = self._gaps(system, t0, y0)
        self._refuse_penetration(system, gap)

    def _enter(self, system: System) -> None:
        """Take the kernels of another system, with a context of its values."""
        compiled, g = kernels(system), system.model.position_rows
        self.system, self._context = system, compiled.context(system)
        self._addresses = contact_kernel(system), compiled.pieces
        self._sizes = np.array([system.n, system.m, g, len(system.states)])

    def _gaps(self, system: System, t: float, y: np.ndarray) -> np.ndarray:
        explain_refusal(system, t, y)
        return contacts_along(system, np.array([t]), y[np.newaxis]).gap[0]

    def _refuse_penetration(self, system: System, gap: np.ndarray) -> None:
        worst = contact_update.penetrated(gap, self.scales)
        if worst >= 0:
            raise InconsistentStart(
                f"contacts: {system.contacts.names[worst]} is penetrated by {-gap[worst]:.3g}; give "
                "positions where all gaps are open or closed"
            )

    def update(self, system: System, t: float, y: np.ndarray, fired: Sequence[Watch]) -> Closed:
        """Impacts at this time, and the mode that follows."""
        try:
            return self._update(system, t, y.copy(), fired)
        except HolonomeError as error:
            if isinstance(error, Interrupted):
                raise
            raise Interrupted(f"stopped at t = {t:.9g}: {error}") from error

    def _update(self, system: System, t: float, y: np.ndarray, fired: Sequence[Watch]) -> Closed:
        what = self._nothing
        if fired:
            what = what.copy()
            for watch in fired:
                what[watch.contact] = _FIRED[watch.what]
        statuses, directions, record = self._found
        if system is not self.system or system.solves:  # and then from the same guess
            self._enter(system)
        known = self._sizes, *self._known, what, self.scales
        code = contact_update.update(
            *self._addresses, self._context, t, y, *known, statuses, directions, record
        )
        if code != contact_update.DONE:
            self._refuse(code, system, t, y)
        if record[0]:
            self.impacts.note(t, record)
        solved = self._mode(system, statuses, directions)
        if solved.m:
            y = consistent_state(solved, y, t, repair=True).state
        return Closed(y, solved)

    def _refuse(self, code: int, system: System, t: float, y: np.ndarray) -> None:
        """Say why an update cannot be made."""
        if code == contact_update.NOT_FINITE:
            raise Interrupted(f"stopped at t = {t:.9g}: {what_failed(system, t, y)}")
        if code == contact_update.NO_SOLUTION:
            raise Interrupted(
                f"stopped at t = {t:.9g}: no contact forces agree with Coulomb's law of friction (Painlevé's "
                f"paradox) at {', '.join(system.contacts.names)}; rigid bodies jam there. Take less "
                "friction, or a compliant contact"
            )
        self._refuse_penetration(system, self._gaps(system, t, y))

    def _mode(self, system: System, statuses: np.ndarray, directions: np.ndarray) -> ModeSystem:
        """The system in this mode: the same object as long as nothing changes."""
        data = contact_data(statuses.size)
        data[0], data[1] = GAP * self.scales[0], contact_update.slow(self.scales, SLIP) ** 2
        data[2:] = directions.ravel()
        key = system, statuses.tobytes(), data.tobytes()
        if self._solved is None or self._solved[0][0] is not system or self._solved[0][1:] != key[1:]:
            names = tuple(_STATUSES[what] for what in statuses.tolist())
            self._solved = key, mode_of(system, names, data)
        return self._solved[1]

    def at_end(self, system: System, t: float, y: np.ndarray) -> str:
        """What is wrong with the last state; empty if nothing is."""
        try:
            contact_update.grow(t, y, system.n, self.scales)
            self._refuse_penetration(system, self._gaps(system, t, y))
        except HolonomeError as error:
            return f"wrong: {error}"
        return ""

    def all_open(self, system: System) -> ModeSystem:
        """The mode in which no contact is closed."""
        return mode_of(system, (OPEN,) * len(system.contacts), contact_data(len(system.contacts)))

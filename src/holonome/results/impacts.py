"""The impacts of a run, and its contacts along it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

_GAINED = 1e-6
"""A part of the work of an impulse from which on it counts as a gain."""

_ROWS = ("before", "after", "impulse", "friction", "energy_lost", "number")


@dataclass(frozen=True, eq=False)
class Impacts:
    """The impacts of a run, one entry for each contact that took part; with ``keep_steps=False`` one entry
    for each contact, whose impulses and losses are sums and whose other numbers are those of its last impact.

    Attributes
    ----------
    t
        Times.
    contact
        Names of the contacts, or of constraints that an action has locked.
    before, after
        Rates of the gap.
    impulse, friction
        Impulses across and along the contact.
    energy_lost
        By the whole impact, at the first of the contacts that took part in it; 0 at the others.
    number
        How many impacts an entry stands for.
    """

    t: np.ndarray
    contact: list[str] = field(repr=False)
    before: np.ndarray = field(repr=False)
    after: np.ndarray = field(repr=False)
    impulse: np.ndarray = field(repr=False)
    friction: np.ndarray = field(repr=False)
    energy_lost: np.ndarray = field(repr=False)
    number: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return self.t.size

    @staticmethod
    def names_in(system: Any) -> list[str]:
        """What can suffer an impact: contacts, and constraints that are locked."""
        return [*system.contacts.names, *system.constraint_names]

    @classmethod
    def of_table(cls, table: np.ndarray, names: Sequence[str]) -> Impacts:
        """From rows of numbers, in which contacts have numbers too."""
        t, which, *rows = table.T.copy()
        return cls(t, [names[int(i)] for i in which], *rows)

    def table(self, names: Sequence[str]) -> np.ndarray:
        """The same as rows of numbers."""
        which = [names.index(name) for name in self.contact]
        rows = [getattr(self, part) for part in _ROWS]
        return np.column_stack([self.t, which, *rows])

    def of(self, name: str) -> Impacts:
        """Those of one contact."""
        mine = np.array([contact == name for contact in self.contact], dtype=bool)
        rows = [getattr(self, part)[mine] for part in _ROWS]
        return Impacts(self.t[mine], [name] * int(mine.sum()), *rows)

    def lost_until(self, times: np.ndarray, side: Literal["left", "right"] = "right") -> np.ndarray:
        """The energy that impacts have taken up to these times; NaN where only its sum is known later."""
        lost = np.concatenate([[0.0], np.cumsum(self.energy_lost)])[np.searchsorted(self.t, times, side)]
        if np.all(self.number == 1) or not self.t.size:
            return lost
        return np.where(times >= self.t[-1], lost, np.nan)

    def gains(self) -> str:
        """Where energy was gained, in words; empty if nowhere."""
        gained = self.energy_lost < -_GAINED * np.abs(self.impulse * self.before)
        if not np.any(gained):
            return ""
        first = int(np.argmax(gained))
        return (
            f"; {int(np.sum(self.number[gained]))} of the impacts gained energy, first that of "
            f"{self.contact[first]} at t = {self.t[first]:.9g}: Newton's hypothesis together with friction "
            "may; give the contact hypothesis='poisson'"
        )

    class Recorder:
        """Collects impacts on the way, as compactly as numbers can be kept, or adds them up."""

        columns: ClassVar[int] = 2 + len(_ROWS)

        def __init__(self, names: Sequence[str], begins: np.ndarray, summed: bool = False) -> None:
            self.names, self.begins, self.rows = names, begins.tolist(), array("d")
            self.sums: dict[int, list[float]] | None = {} if summed else None

        def __bool__(self) -> bool:
            return bool(self.rows or self.sums)

        def note(self, t: float, record: np.ndarray) -> None:
            """One impact: whether, what it took, impulses along all rows, velocities before and after it."""
            _, lost, *numbers = record.tolist()
            rows = self.begins[-1]
            for i, first in enumerate(self.begins[:-1]):
                x = numbers[first : self.begins[i + 1]]
                if x[0] == 0.0:
                    continue
                before, after = numbers[rows + first], numbers[2 * rows + first]
                self._add((t, i, before, after, x[0], math.hypot(*x[1:]), lost))
                lost = 0.0

        def note_locked(self, t: float, rows: Sequence[int], rates: Any, impulse: Any, lost: float) -> None:
            """Constraints that were locked, whose numbers follow those of the contacts."""
            for row, rate, pushed in zip(rows, rates.tolist(), impulse.tolist(), strict=True):
                self._add((t, len(self.begins) - 1 + row, rate, 0.0, pushed, 0.0, lost))
                lost = 0.0

        def _add(self, row: tuple[float, ...]) -> None:
            if self.sums is None:
                self.rows.extend(row)
                return
            which = int(row[1])
            *_, impulse, friction, lost, number = self.sums.pop(which, [0.0] * self.columns)
            added = row[4] + impulse, row[5] + friction, row[6] + lost, number + 1
            self.sums[which] = [*row[:4], *added]

        def impacts(self) -> Impacts:
            if self.sums is not None:
                table = np.array(list(self.sums.values())).reshape(-1, self.columns)
            else:
                table = np.array(self.rows).reshape(-1, self.columns - 1)
                table = np.column_stack([table, np.ones(len(table))])
            return Impacts.of_table(table, self.names)


@dataclass(frozen=True, eq=False)
class ContactMotion:
    """A contact along a run.

    Attributes
    ----------
    gap, rate, slip
        The distance, its rate, and the velocities along the contact, (directions, points).
    force, friction
        What pushes, never negative, and the friction, (directions, points).
    status
        "open", "closed", "sticks" or "slides", at each point.
    """

    name: str
    gap: np.ndarray = field(repr=False)
    rate: np.ndarray = field(repr=False)
    slip: np.ndarray = field(repr=False)
    force: np.ndarray = field(repr=False)
    friction: np.ndarray = field(repr=False)
    status: list[str] = field(repr=False)

    @property
    def closed(self) -> np.ndarray:
        """Whether it is closed, at each point."""
        return np.array([what != "open" for what in self.status], dtype=bool)

"""The impacts of a run, and its contacts along it."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True, eq=False)
class Impacts:
    """The impacts of a run, one entry for each contact that took part.

    Attributes
    ----------
    t
        Times.
    contact
        Names of the contacts.
    before, after
        Rates of the gap.
    impulse, friction
        Impulses across and along the contact.
    energy_lost
        By the whole impact, at the first of the contacts that took part in it; 0 at the others.
    """

    t: np.ndarray
    contact: list[str] = field(repr=False)
    before: np.ndarray = field(repr=False)
    after: np.ndarray = field(repr=False)
    impulse: np.ndarray = field(repr=False)
    friction: np.ndarray = field(repr=False)
    energy_lost: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return self.t.size

    @classmethod
    def of_table(cls, table: np.ndarray, names: Sequence[str]) -> Impacts:
        """From rows of numbers, in which contacts have numbers too."""
        t, which, before, after, impulse, friction, lost = table.T.copy()
        return cls(t, [names[int(i)] for i in which], before, after, impulse, friction, lost)

    def table(self, names: Sequence[str]) -> np.ndarray:
        """The same as rows of numbers."""
        which = [names.index(name) for name in self.contact]
        rows = [self.before, self.after, self.impulse, self.friction, self.energy_lost]
        return np.column_stack([self.t, which, *rows])

    def of(self, name: str) -> Impacts:
        """Those of one contact."""
        mine = np.array([contact == name for contact in self.contact], dtype=bool)
        rows = [
            getattr(self, part)[mine] for part in ("before", "after", "impulse", "friction", "energy_lost")
        ]
        return Impacts(self.t[mine], [name] * int(mine.sum()), *rows)

    class Recorder:
        """Collects impacts on the way, as compactly as numbers can be kept."""

        columns: ClassVar[int] = 7

        def __init__(self, names: Sequence[str], begins: np.ndarray) -> None:
            self.names, self.begins, self.rows = names, begins.tolist(), array("d")

        def note(self, t: float, record: np.ndarray) -> None:
            """One impact: whether, what it took, impulses along all rows, velocities before and after it."""
            _, lost, *numbers = record.tolist()
            rows = self.begins[-1]
            for i, first in enumerate(self.begins[:-1]):
                x = numbers[first : self.begins[i + 1]]
                if x[0] == 0.0:
                    continue
                before, after = numbers[rows + first], numbers[2 * rows + first]
                self.rows.extend((t, i, before, after, x[0], math.hypot(*x[1:]), lost))
                lost = 0.0

        def impacts(self) -> Impacts:
            return Impacts.of_table(np.array(self.rows).reshape(-1, self.columns), self.names)


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

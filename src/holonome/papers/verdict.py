"""Verdicts on what a paper publishes: rows of tables, and statements in words.

reproduced      agrees within the band that is told
fitted          agrees, on data that we chose so that it agrees: evidence for the data, not for the paper
differs         does not agree; the reason is told
not published   there is nothing to compare with

Statements of our own hold or fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

REPRODUCED, FITTED, DIFFERS, NOT_PUBLISHED = "reproduced", "fitted", "differs", "not published"
HOLDS, FAILS = "holds", "fails"
"""Verdicts on our own claims, for which there is nothing to reproduce."""
OURS = "Not in the paper"


@dataclass(frozen=True)
class Band:
    """A measured number, and where it must lie for a verdict.

    Attributes
    ----------
    what : str
        What was measured.
    value, low, high : float
        The number and the ends of its band, which belong to it.
    """

    what: str
    value: float
    low: float = -math.inf
    high: float = math.inf

    @property
    def holds(self) -> bool:
        return self.low <= self.value <= self.high

    @classmethod
    def near(cls, what: str, value: float, expected: float, allowed: float) -> Band:
        """Within an allowed deviation of a number."""
        return cls(what, float(value), expected - allowed, expected + allowed)

    @classmethod
    def within_factor(cls, what: str, value: float, expected: float, factor: float) -> Band:
        """Within a factor of a positive number."""
        return cls(what, float(value), expected / factor, expected * factor)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: an end that is open is None."""
        ends = {"low": self.low, "high": self.high}
        open_ended = {end: None if math.isinf(at) else at for end, at in ends.items()}
        return {"what": self.what, "value": float(self.value), **open_ended}

    def __str__(self) -> str:
        return f"{self.what} = {self.value:.3g}, wanted in [{self.low:.3g}, {self.high:.3g}]"


Condition = bool | Band | Sequence[Band]
"""What a verdict rests on: bands, or a condition that is not about a number."""


def _met(condition: Condition) -> tuple[bool, tuple[Band, ...]]:
    if isinstance(condition, Band):
        condition = [condition]
    if isinstance(condition, Sequence):
        return all(band.holds for band in condition), tuple(condition)
    return bool(condition), ()


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes
    ----------
    case : mapping
        What was run, e.g. method, tolerance and stiffness.
    published, measured : mapping
        Values by name; empty where there are none.
    verdict : str
        "reproduced", "fitted", "differs" or "not published".
    why : str
        Why it differs, or what was fitted.
    """

    case: Mapping[str, Any]
    published: Mapping[str, float]
    measured: Mapping[str, float]
    verdict: str
    why: str = ""

    @classmethod
    def compared(
        cls,
        case: Mapping[str, Any],
        published: Mapping[str, float],
        measured: Mapping[str, float],
        agrees: bool,
        why: str,
        fitted: str = "",
    ) -> Row:
        """Values beside published ones, with the reason if they differ; `fitted` tells what was chosen to
        make them agree.
        """
        good = (FITTED, fitted) if fitted else (REPRODUCED, "")
        return cls(case, published, measured, *(good if agrees else (DIFFERS, why)))


@dataclass(frozen=True)
class Claim:
    """A statement of the paper in words, what was found here, and the verdict, with the bands on which it
    rests; `by` distinguishes our own claims, which hold or fail.
    """

    statement: str
    finding: str
    verdict: str
    by: str = "The paper"
    bands: tuple[Band, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For JSON and reports."""
        return asdict(self) | {"bands": [band.to_dict() for band in self.bands]}

    @classmethod
    def of(cls, statement: str, holds: Condition, finding: str, fitted: bool = False) -> Claim:
        """A claim of the paper that was checked, perhaps on data that were chosen to make it true."""
        met, bands = _met(holds)
        return cls(statement, finding, (FITTED if fitted else REPRODUCED) if met else DIFFERS, bands=bands)

    @classmethod
    def ours(cls, statement: str, holds: Condition, finding: str) -> Claim:
        """A claim of our own that was checked."""
        met, bands = _met(holds)
        return cls(statement, finding, HOLDS if met else FAILS, by=OURS, bands=bands)


@dataclass(frozen=True)
class Misprint:
    """Something in a paper that is wrong or cannot be read.

    Attributes
    ----------
    where, printed, correct : str
        The place, what stands there, and what should.
    why : str
        Why we think so.
    seen_in : tuple of str
        Names of the experiments that it concerns.
    """

    where: str
    printed: str
    correct: str
    why: str
    seen_in: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.where}: printed is {self.printed}; it should be {self.correct}."


@dataclass(frozen=True)
class Item:
    """A table, figure, example or theorem of a paper: the experiments that compute it, or why none does."""

    number: str
    what: str
    experiments: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def testable(self) -> bool:
        return bool(self.experiments)

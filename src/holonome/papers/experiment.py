"""Results of reproducing a paper: published and measured values, verdicts, claims and notes.

An `Experiment` prints itself in 80 columns, saves its numbers as CSV and its picture as PNG, and gives a
dictionary for reports. There are two kinds: a `Table` compares row by row, a `Figure` draws curves; both can
check what the paper says in words.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.comparison import as_text
from holonome.papers.terminal import printed
from holonome.papers.verdict import Claim, Misprint, Row

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment(ABC):
    """A table or figure of a paper, recomputed.

    Attributes
    ----------
    paper, name, title, about : str
        The paper, the name under which the experiment is found, what it shows, and what is done.
    symbols : mapping
        What the names in the rows mean.
    rows : sequence of Row
        Published and measured values.
    criterion : str
        What "reproduced" means for a row.
    claims : sequence of Claim
        What the paper says about it, checked.
    notes : sequence of str
        What was assumed where the paper says nothing, and what else has to be known.
    misprints : sequence of Misprint
        What is wrong in the paper and concerns this experiment.
    seconds : float
        How long it took.
    """

    paper: str = ""
    name: str = ""
    title: str = ""
    about: str = ""
    symbols: Mapping[str, str] = field(default_factory=dict)
    rows: Sequence[Row] = ()
    criterion: str = ""
    claims: Sequence[Claim] = ()
    notes: Sequence[str] = ()
    misprints: Sequence[Misprint] = ()
    seconds: float = 0.0

    @property
    def heading(self) -> str:
        return f"{spoken(self.name)}: {self.title}"

    @property
    def stem(self) -> str:
        """The common beginning of the names of its files."""
        return f"{self.paper}-{self.name}"

    @property
    def verdicts(self) -> dict[str, int]:
        """Number of rows and claims with each verdict."""
        given = [item.verdict for item in (*self.rows, *self.claims)]
        return {verdict: given.count(verdict) for verdict in dict.fromkeys(given)}

    @abstractmethod
    def draw(self, axes: Any = None) -> Any:
        """Draw into the given axes, or into a new figure, and return the axes."""

    @abstractmethod
    def records(self) -> Iterator[dict[str, Any]]:
        """The numbers, one dictionary for each line of a CSV file."""

    @abstractmethod
    def _new_axes(self, shown: bool) -> Any: ...

    def save(self, folder: str | Path) -> list[Path]:
        """Write the numbers (.csv) and the picture (.png) into the folder, and return their paths."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        table, picture = folder / f"{self.stem}.csv", folder / f"{self.stem}.png"
        records = list(self.records())
        with table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(key for record in records for key in record)))
            writer.writeheader()
            writer.writerows(records)
        self.picture().savefig(picture, dpi=130)
        return [table, picture, *self._further_files(folder / self.stem)]

    def picture(self, titled: bool = True) -> Any:
        """The picture as a separate matplotlib figure, with or without the heading."""
        axes = np.ravel(self.draw(self._new_axes(shown=False)))
        figure = axes[0].get_figure(root=True)
        if not titled:
            figure.suptitle("")
        return figure

    def _further_files(self, stem: Path) -> list[Path]:
        """Save what a kind of experiment has in addition."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """The whole result, for JSON and reports; the curves of a figure are in its CSV file."""
        return {
            "paper": self.paper,
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "seconds": self.seconds,
            "verdicts": self.verdicts,
            "criterion": self.criterion,
            "symbols": dict(self.symbols),
            "rows": [asdict(row) for row in self.rows],
            "claims": [claim.to_dict() for claim in self.claims],
            "notes": list(self.notes),
            "misprints": [asdict(misprint) for misprint in self.misprints],
        }

    def __rich__(self) -> RenderableType:
        return printed(self)

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{times} {verdict}" for verdict, times in self.verdicts.items())
        return f"<{self.paper} {self.heading}: {verdicts}>"


def spoken(name: str) -> str:
    """The name of an experiment as a heading: "Table 5.2"."""
    return name.replace("-", " ").capitalize()

"""Results of reproducing a paper: tables and figures with published and measured values, verdicts, claims and
notes.

An `Experiment` prints itself in 80 columns, saves its numbers as CSV and its picture as PNG, and gives a
dictionary for reports. There are two kinds: a `Table` compares row by row, a `Figure` draws curves; both can
check what the paper says in words.
"""

from __future__ import annotations

import csv
import functools
import inspect
import time
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from holonome.comparison import as_text
from holonome.mechanisms import Example
from holonome.papers.verdict import (
    DIFFERS,
    FAILS,
    FITTED,
    HOLDS,
    NOT_PUBLISHED,
    OURS,
    REPRODUCED,
    Band,
    Claim,
    Item,
    Misprint,
    Row,
)
from holonome.results.solution import Solution
from holonome.solving.solve import solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import RenderableType

_COLOURS = {
    REPRODUCED: "green",
    FITTED: "cyan",
    DIFFERS: "yellow",
    NOT_PUBLISHED: "dim",
    HOLDS: "green",
    FAILS: "red",
}

__all__ = [
    "DIFFERS",
    "FAILS",
    "FITTED",
    "HOLDS",
    "LOGARITHMIC",
    "NOT_PUBLISHED",
    "OURS",
    "REPRODUCED",
    "Band",
    "Claim",
    "Curve",
    "Experiment",
    "Figure",
    "Item",
    "Misprint",
    "Panel",
    "Paper",
    "Progress",
    "Row",
    "Table",
    "load",
    "published",
    "run_of",
    "spoken",
]

LOGARITHMIC = {"xscale": "log", "yscale": "log"}
"""Axes of a panel."""

Progress = Callable[[float, str], None]
"""Called with the fraction done and what comes next."""


def run_of(mechanism: Example, t_span: tuple[float, float] | None = None, **options: Any) -> Solution:
    """A run of a mechanism, over its own interval unless another is given."""
    return solve(mechanism.system, t_span or mechanism.t_span, mechanism.q0, mechanism.v0, **options)


def silent(fraction: float, what: str) -> None:
    """Show no progress."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A line, or markers, with its label."""

    label: str
    x: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    style: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes and what is drawn there; `axes` are further properties, such as yscale="log"."""

    title: str
    xlabel: str
    ylabel: str
    curves: Sequence[Curve]
    axes: Mapping[str, Any] = field(default_factory=dict, repr=False)


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
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        parts: list[Any] = [
            Text(self.heading, style="bold"),
            *([Padding(Text(self.about), (0, 0, 0, 2))] if self.about else []),
            *(self._table() if self.rows else []),
        ]
        for claim in self.claims:
            verdict = Text(claim.verdict, style=_COLOURS[claim.verdict])
            parts.append(Padding(Text(f"{claim.by}: ", style="cyan") + Text(claim.statement), (0, 0, 0, 2)))
            parts.append(
                Padding(Text("Here: ", style="cyan") + Text(claim.finding + " ") + verdict, (0, 0, 0, 4))
            )
        parts += [Padding(Text(f"Note: {note}", style="dim"), (0, 0, 0, 2)) for note in self.notes]
        parts += [
            Padding(Text(f"Misprint in {misprint}", style="dim"), (0, 0, 0, 2)) for misprint in self.misprints
        ]
        return Group(*parts)

    def _table(self) -> list[RenderableType]:
        from rich.padding import Padding
        from rich.table import Table as Grid
        from rich.text import Text

        has_published = any(row.published for row in self.rows)
        names = list(dict.fromkeys(key for row in self.rows for key in (row.published or row.measured)))
        grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="cyan")
        for name in self.rows[0].case:
            grid.add_column(name, no_wrap=True)
        for name in ("published", "measured", "verdict") if has_published else ("measured", ""):
            grid.add_column(name, no_wrap=True)
        reasons = list(dict.fromkeys(row.why for row in self.rows if row.why))
        for row in self.rows:
            mark = f" [{reasons.index(row.why) + 1}]" if row.why else ""
            values = [row.published, row.measured] if has_published else [row.measured]
            verdict = row.verdict if has_published else ""
            grid.add_row(
                *map(str, row.case.values()),
                *(_joined(side) for side in values),
                Text((verdict + mark).strip(), style=_COLOURS[row.verdict]),
            )
        lines = [Padding(Text(f"[{i + 1}] {reason}"), (0, 0, 0, 2)) for i, reason in enumerate(reasons)]
        criterion = [Padding(Text(f"reproduced: {self.criterion}"), (0, 0, 0, 2))] if self.criterion else []
        meaning = "; ".join(f"{name}: {meaning}" for name, meaning in self.symbols.items())
        told = [f"values: {'/'.join(names)}", *([meaning] if meaning else [])]
        return [
            *(Padding(Text(text, style="dim"), (0, 0, 0, 2)) for text in told),
            Padding(grid, (0, 0, 0, 2)),
            *criterion,
            *lines,
        ]

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{times} {verdict}" for verdict, times in self.verdicts.items())
        return f"<{self.paper} {self.heading}: {verdicts}>"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Table(Experiment):
    """Values in rows; its picture shows those named in `shown`, or the first."""

    shown: Sequence[str] = ()

    def records(self) -> Iterator[dict[str, Any]]:
        for row in self.rows:
            yield {
                **row.case,
                **{f"{key} published": value for key, value in row.published.items()},
                **row.measured,
                "verdict": row.verdict,
                "why": row.why,
            }

    def draw(self, axes: Axes | None = None) -> Axes:
        """Values of each row, published and measured."""
        from holonome import plot

        with plot.house_style():
            axes = self._new_axes(shown=True) if axes is None else axes
            assert axes is not None
            first = next(
                (
                    next(iter(row.measured or row.published))
                    for row in self.rows
                    if row.measured or row.published
                ),
                "",
            )
            groups = [tuple(row.case.values())[1:] for row in self.rows]
            for i in (i for i, group in enumerate(groups) if list(dict.fromkeys(groups)).index(group) % 2):
                axes.axhspan(i - 0.5, i + 0.5, color="#F4F4F4", zorder=0)
            drawn = self.shown or (first,)
            for value, hollow, filled in zip(
                drawn, plot.COLOURS[1:], plot.COLOURS[1:] if len(drawn) > 1 else plot.COLOURS, strict=False
            ):
                styles: dict[str, dict[str, Any]] = {
                    "published": {"color": hollow, "mfc": "none", "mew": 1.8, "ms": 9},
                    "measured": {"color": filled, "ms": 6},
                }
                for side, style in styles.items():
                    points = [
                        (getattr(row, side)[value], i)
                        for i, row in enumerate(self.rows)
                        if value in getattr(row, side)
                    ]
                    if points:
                        axes.plot(
                            *zip(*points, strict=True),
                            "o",
                            label=side if len(drawn) == 1 else f"{value}, {side}",
                            **style,
                        )
            axes.set(
                xscale="log",
                xlabel=" / ".join(drawn),
                ylabel=", ".join(self.rows[0].case) if self.rows else "",
                title=self.heading,
                ylim=(len(self.rows) - 0.4, -0.6),
            )
            axes.set_yticks(
                range(len(self.rows)), ["  ".join(map(str, row.case.values())) for row in self.rows]
            )
            _tick(axes.xaxis, 1e3)
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return axes

    def _new_axes(self, shown: bool) -> Axes:
        from holonome import plot

        with plot.house_style():
            return plot.new_figure(8.4, 1.4 + 0.27 * len(self.rows), shown=shown).subplots()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Figure(Experiment):
    """Curves in one or several panels, `columns` of them in a row (None: all), each of a size in inches;
    `frames`, if there are any, make an animation.
    """

    panels: Sequence[Panel] = ()
    columns: int | None = None
    size: tuple[float, float] = (4.6, 3.8)
    frames: Sequence[Panel] = ()

    def animate(self, file: str | Path, fps: int = 12) -> Path:
        """Write the frames as a GIF, one after the other in the same axes."""
        from matplotlib.animation import FuncAnimation, PillowWriter

        from holonome import plot

        if not self.frames:
            raise ValueError(f"{self.name}: has no animation")
        with plot.house_style():
            figure = plot.new_figure(1.6 + self.size[0], 0.6 + self.size[1], shown=False)
            axes = figure.subplots()

            def show(number: int) -> list[Any]:
                panel = self.frames[number]
                axes.clear()
                for curve in panel.curves:
                    axes.plot(curve.x, curve.y, label=curve.label or None, **curve.style)
                axes.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel, **panel.axes)
                axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
                return []

            FuncAnimation(figure, show, frames=len(self.frames)).save(
                Path(file), writer=PillowWriter(fps=fps), dpi=80
            )
        return Path(file)

    def _further_files(self, stem: Path) -> list[Path]:
        return [self.animate(stem.with_name(f"{stem.name}.gif"))] if self.frames else []

    def records(self) -> Iterator[dict[str, Any]]:
        for panel in self.panels:
            for curve in panel.curves:
                for x, y in zip(curve.x, curve.y, strict=True):
                    yield {"panel": panel.title, "curve": curve.label, "x": float(x), "y": float(y)}

    def draw(self, axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
        """Draw the panels, each into its axes. Labels that they share are told once."""
        from holonome import plot

        with plot.house_style():
            axes = self._new_axes(shown=True) if axes is None else axes
            assert axes is not None
            if len(axes) != len(self.panels):
                raise ValueError(f"axes: {len(axes)} given; {self.name} draws {len(self.panels)} panels")
            labels = [[curve.label for curve in panel.curves if curve.label] for panel in self.panels]
            for one, panel, own in zip(axes, self.panels, labels, strict=True):
                for curve in panel.curves:
                    one.plot(curve.x, curve.y, label=curve.label or None, **curve.style)
                one.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel, **panel.axes)
                if one.get_xscale() == "log":
                    _tick(one.xaxis, 30.0)
                if own and own != labels[-1]:
                    one.legend(loc="best")
            if labels[-1]:
                axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return axes

    def _new_axes(self, shown: bool) -> Sequence[Axes]:
        from holonome import plot

        columns = self.columns or len(self.panels)
        rows = -(-len(self.panels) // columns)
        with plot.house_style():
            figure = plot.new_figure(1.0 + self.size[0] * columns, 0.4 + self.size[1] * rows, shown=shown)
            figure.suptitle(self.heading, x=0.01, ha="left", fontsize=12)
            return list(np.ravel(figure.subplots(rows, columns, squeeze=False)))[: len(self.panels)]


def _tick(axis: Any, short: float) -> None:
    """Ticks of a logarithmic axis: at 1, 2, 5, 10 … if the ratio of its ends is below a limit, otherwise at
    powers of ten.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axis.get_view_interval()
    if high < short * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


Reproduction = TypeVar("Reproduction", bound=Experiment)


@dataclass(frozen=True)
class Paper:
    """A paper and its experiments.

    Attributes
    ----------
    name, title, reference, summary : str
        The name on the command line, authors and year, the full reference, and what the paper does.
    contents : sequence of Item
        All numbered tables, figures, examples and theorems.
    misprints : sequence of Misprint
        What is wrong in the paper.
    experiments : dict
        Functions by name, each of which takes ``progress`` and returns an `Experiment`.
    """

    name: str
    title: str
    reference: str
    summary: str = ""
    contents: Sequence[Item] = field(default=(), repr=False)
    misprints: Sequence[Misprint] = field(default=(), repr=False)
    experiments: dict[str, Callable[..., Experiment]] = field(default_factory=dict, repr=False)
    titles: dict[str, str] = field(default_factory=dict, repr=False)

    def experiment(
        self, name: str, title: str
    ) -> Callable[[Callable[..., Reproduction]], Callable[..., Reproduction]]:
        """Decorate a function: it is registered under this name, and its result carries the title, the
        description (the docstring) and the time it took.
        """

        def decorate(function: Callable[..., Reproduction]) -> Callable[..., Reproduction]:
            @functools.wraps(function)
            def run(progress: Progress = silent) -> Reproduction:
                begin = time.perf_counter()
                result = function(progress)
                return replace(
                    result,
                    paper=self.name,
                    name=name,
                    title=title,
                    about=" ".join((inspect.getdoc(function) or "").split()),
                    misprints=[misprint for misprint in self.misprints if name in misprint.seen_in],
                    seconds=time.perf_counter() - begin,
                )

            self.experiments[name], self.titles[name] = run, title
            return run

        return decorate


def spoken(name: str) -> str:
    """The name of an experiment as a heading: "Table 5.2"."""
    return name.replace("-", " ").capitalize()


def load(paper: str) -> Paper:
    """The paper of a module, as its ``paper.toml`` in the data files describes it."""
    told = tomllib.loads((_data(paper) / "paper.toml").read_text(encoding="utf-8"))
    contents = [
        Item(item["number"], item["what"], tuple(item.get("experiments", ())), item.get("why_not", ""))
        for item in told.pop("contents", ())
    ]
    misprints = [
        Misprint(item["where"], item["printed"], item["correct"], item["why"], tuple(item.get("seen_in", ())))
        for item in told.pop("misprints", ())
    ]
    return Paper(**told, contents=contents, misprints=misprints)


def published(paper: str, table: str) -> list[dict[str, str]]:
    """A published table, from the data files of this package."""
    return list(csv.DictReader((_data(paper) / f"{table}.csv").read_text(encoding="utf-8").splitlines()))


def _data(paper: str) -> Traversable:
    return resources.files("holonome.papers") / "data" / paper


def _joined(values: Mapping[str, float]) -> str:
    return "/".join(_shown(value) for value in values.values()) or "–"


def _shown(value: float) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if 1e-2 <= abs(value) < 1e4 or value != value else f"{value:.1e}"

"""An experiment in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holonome.papers.verdict import DIFFERS, FAILS, FITTED, HOLDS, NOT_PUBLISHED, REPRODUCED

if TYPE_CHECKING:
    from rich.console import RenderableType

    from holonome.papers.experiment import Experiment

_COLOURS = {
    REPRODUCED: "green",
    FITTED: "cyan",
    DIFFERS: "yellow",
    NOT_PUBLISHED: "dim",
    HOLDS: "green",
    FAILS: "red",
}


def printed(experiment: Experiment) -> RenderableType:
    """The whole result, as rich prints it."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[Any] = [
        Text(experiment.heading, style="bold"),
        *([Padding(Text(experiment.about), (0, 0, 0, 2))] if experiment.about else []),
        *(_table(experiment) if experiment.rows else []),
    ]
    for claim in experiment.claims:
        verdict = Text(claim.verdict, style=_COLOURS[claim.verdict])
        parts.append(Padding(Text(f"{claim.by}: ", style="cyan") + Text(claim.statement), (0, 0, 0, 2)))
        parts.append(
            Padding(Text("Here: ", style="cyan") + Text(claim.finding + " ") + verdict, (0, 0, 0, 4))
        )
    remarks = [f"Note: {note}" for note in experiment.notes]
    remarks += [f"Misprint in {misprint}" for misprint in experiment.misprints]
    parts += [Padding(Text(remark, style="dim"), (0, 0, 0, 2)) for remark in remarks]
    return Group(*parts)


def _table(experiment: Experiment) -> list[RenderableType]:
    """Rows of values with their verdicts, and what the names mean."""
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    has_published = any(row.published for row in experiment.rows)
    names = list(dict.fromkeys(key for row in experiment.rows for key in (row.published or row.measured)))
    grid = Grid(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="cyan")
    for name in experiment.rows[0].case:
        grid.add_column(name, no_wrap=True)
    for name in ("published", "measured", "verdict") if has_published else ("measured", ""):
        grid.add_column(name, no_wrap=True)
    reasons = list(dict.fromkeys(row.why for row in experiment.rows if row.why))
    for row in experiment.rows:
        mark = f" [{reasons.index(row.why) + 1}]" if row.why else ""
        values = [row.published, row.measured] if has_published else [row.measured]
        verdict = row.verdict if has_published else ""
        grid.add_row(
            *map(str, row.case.values()),
            *(_joined(side) for side in values),
            Text((verdict + mark).strip(), style=_COLOURS[row.verdict]),
        )
    lines = [f"reproduced: {experiment.criterion}"] if experiment.criterion else []
    lines += [f"[{i + 1}] {reason}" for i, reason in enumerate(reasons)]
    meaning = "; ".join(f"{name}: {meaning}" for name, meaning in experiment.symbols.items())
    heads = [f"values: {'/'.join(names)}", *([meaning] if meaning else [])]
    return [
        *(Padding(Text(text, style="dim"), (0, 0, 0, 2)) for text in heads),
        Padding(grid, (0, 0, 0, 2)),
        *(Padding(Text(line), (0, 0, 0, 2)) for line in lines),
    ]


def _joined(values: Mapping[str, float]) -> str:
    return "/".join(_shown(value) for value in values.values()) or "–"


def _shown(value: float) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if 1e-2 <= abs(value) < 1e4 or value != value else f"{value:.1e}"

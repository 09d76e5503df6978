"""A table of a paper, recomputed, and its picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holonome import plot
from holonome.papers.experiment import Experiment
from holonome.papers.figure import few_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
            few_ticks(axes.xaxis, 1e3)
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return axes

    def _new_axes(self, shown: bool) -> Axes:

        with plot.house_style():
            return plot.new_figure(8.4, 1.4 + 0.27 * len(self.rows), shown=shown).subplots()

"""A figure of a paper, recomputed: curves in panels, and what moves in an animation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome import plot
from holonome.papers.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOGARITHMIC = {"xscale": "log", "yscale": "log"}
"""Axes of a panel."""


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
                    few_ticks(one.xaxis, 30.0)
                if own and own != labels[-1]:
                    one.legend(loc="best")
            if labels[-1]:
                axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return axes

    def _new_axes(self, shown: bool) -> Sequence[Axes]:

        columns = self.columns or len(self.panels)
        rows = -(-len(self.panels) // columns)
        with plot.house_style():
            figure = plot.new_figure(1.0 + self.size[0] * columns, 0.4 + self.size[1] * rows, shown=shown)
            figure.suptitle(self.heading, x=0.01, ha="left", fontsize=12)
            return list(np.ravel(figure.subplots(rows, columns, squeeze=False)))[: len(self.panels)]


def few_ticks(axis: Any, short: float) -> None:
    """Ticks of a logarithmic axis: at 1, 2, 5, 10 … if the ratio of its ends is below a limit, otherwise at
    powers of ten.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = axis.get_view_interval()
    if high < short * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())

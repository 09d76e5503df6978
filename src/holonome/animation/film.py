"""Animations as films, drawn with matplotlib: GIF through Pillow, MP4 through ffmpeg."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome import plot
from holonome.animation.scene import Arrow, Scene
from holonome.plot.mechanism import Instant, Look, draw_frame
from holonome.problem.drawing import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FPS = {".gif": 20, ".mp4": 30}
_SECONDS = 6.0
_NEEDS = {
    ".gif": ("pillow", "Pillow, which is not installed: pip install pillow"),
    ".mp4": (
        "ffmpeg",
        "ffmpeg, which is not found; install it with your system's packages, or write .gif or .html",
    ),
}
_TRACE, _FORCE, _MOMENT = "#D55E00", "#00805D", "#A8447D"


def write(scenes: Sequence[Scene], title: str, file: Path) -> None:
    """Write a film of all scenes, side by side with a common clock, to a file whose suffix selects the
    format.
    """
    from matplotlib import animation

    suffix = file.suffix.lower()
    writer, needed = _NEEDS[suffix]
    if not animation.writers.is_available(writer):
        raise RuntimeError(f"file: {str(file)!r} needs {needed}")
    for scene in scenes:
        if scene.drawing is None:
            raise ValueError(
                f"drawing: missing for system {scene.solution.system.name!r}, in whose coordinates no points "
                "are found; give drawing=hn.Drawing(...), or write .html, which then shows the coordinates"
            )
    spans = np.array([[scene.solution.t[0], scene.solution.t[-1]] for scene in scenes])
    direction = 1.0 if np.all(spans[:, 1] >= spans[:, 0]) else -1.0
    begin = direction * np.min(direction * spans[:, 0])
    end = direction * np.max(direction * spans[:, 1])
    times = np.linspace(begin, end, int(_FPS[suffix] * _SECONDS) if begin != end else 1)
    with plot.house_style():
        figure = plot.new_figure(0.6 + 5.4 * len(scenes), 5.2, shown=False)
        figure.suptitle(title, x=0.02, ha="left", fontsize=12)
        panels = figure.subplots(1, len(scenes), squeeze=False)[0]
        colours = plot.COLOURS[: len(scenes)] * len(scenes)
        stages = [
            _stage(scene, axes, times, colour, scene.title + ",  " if len(scenes) > 1 else "")
            for scene, axes, colour in zip(scenes, panels, colours, strict=False)
        ]
        boxes = np.array([[axes.get_xlim(), axes.get_ylim()] for axes in panels])
        if len({scene.drawing for scene in scenes}) == 1:  # the same mechanism at the same scale
            boxes[:] = np.stack([boxes[..., 0].min(axis=0), boxes[..., 1].max(axis=0)], axis=1)
        for axes, (xlim, ylim) in zip(panels, boxes, strict=True):
            axes.set(xlim=xlim, ylim=ylim, aspect="equal")

        def show(number: int) -> list[Any]:
            for stage in stages:
                stage(number)
            return []

        show(0)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # once is enough for all frames

        options = {
            "writer": animation.writers[writer](fps=_FPS[suffix]),
            "dpi": 80 if suffix == ".gif" else 120,
        }
        animation.FuncAnimation(figure, show, frames=times.size).save(file, **options)


def _stage(scene: Scene, axes: Axes, times: np.ndarray, colour: str, heading: str) -> Callable[[int], None]:
    """Draw a scene; returns a function that moves it to a frame."""
    drawing = scene.drawing
    assert drawing is not None
    within = np.clip(times, *sorted((scene.solution.t[0], scene.solution.t[-1])))
    points, forces = scene.points(within), scene.arrows(within)
    seen = drawing.seen(points)
    for name in drawing.traces:
        axes.plot(*seen[name], color=_TRACE, linewidth=0.9, alpha=0.45, zorder=1)
    draw_frame(axes, drawing, points)
    everything = np.concatenate([_with_rims(drawing, name, seen, points) for name in seen], axis=1)
    axes.update_datalim(everything.T[np.all(np.isfinite(everything), axis=0)])
    axes.margins(0.1)
    axes.autoscale_view()
    axes.set(xlabel="x", ylabel="y")
    if len(next(iter(points.values()))) == 3:
        axes.set_axis_off()
    drawn: list[Any] = []

    def show(number: int) -> None:
        while drawn:
            drawn.pop().remove()
        instant = Instant(axes, drawing, {name: x[:, number] for name, x in points.items()}, look)
        instant.draw()
        for force in forces:
            _draw_force(instant, drawing, scene, force, number)
        drawn.extend(instant.artists)
        axes.set_title(f"{heading}t = {times[number]:.4g}")

    look = Look(colour, True, 3.0)
    return show


def _with_rims(
    drawing: Drawing, name: str, seen: Mapping[str, np.ndarray], points: Mapping[str, np.ndarray]
) -> np.ndarray:
    """The places of a point, and those around it where it is the centre of a wheel."""
    found = [seen[name]]
    for center, rim, *_ in drawing.circles:
        if center == name:
            radius = np.linalg.norm(points[rim][:, 0] - points[center][:, 0])
            found += [seen[name] - radius, seen[name] + radius]
    return np.concatenate(found, axis=1)


def _draw_force(instant: Instant, drawing: Drawing, scene: Scene, force: Arrow, number: int) -> None:
    colour = _MOMENT if force.is_moment else _FORCE
    begin, end = force.begin[:, number], force.end[:, number]
    if force.is_moment and len(begin) == 2:
        instant.turn(begin, float(end[0] - begin[0]) / scene.reach, colour, force.name)
        return
    ends = drawing.seen({"begin": begin, "end": end})
    instant.arrow(ends["begin"], ends["end"], colour, force.name)

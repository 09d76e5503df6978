"""Animations as films, drawn with matplotlib: GIF through Pillow, MP4 through ffmpeg."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome import plot
from holonome.animation.scene import Scene
from holonome.plot.motion import zigzag

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
_FRAME, _TRACE = "#59626A", "#D55E00"


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
    points = scene.points(np.clip(times, *sorted((scene.solution.t[0], scene.solution.t[-1]))))
    spatial = len(next(iter(points.values()))) == 3
    points = drawing.seen(points)
    ground = set(drawing.ground)
    moving = []

    def add(outline: np.ndarray, **style: Any) -> None:
        (line,) = axes.plot(*outline[..., 0].T, **{"color": colour, "solid_capstyle": "round", **style})
        moving.append((line, outline))

    def path(names: Sequence[str]) -> np.ndarray:
        return np.stack([points[name] for name in names])

    for name in drawing.traces:
        axes.plot(*points[name], color=_TRACE, linewidth=0.9, alpha=0.45, zorder=1)
    for body in drawing.bodies:
        add(path([*body, body[0]]), linewidth=1.0, color=_FRAME if set(body) <= ground else colour)
    for pair in drawing.springs:
        add(zigzag(*path(pair)), linewidth=1.1, color=_FRAME)
    for pair in drawing.links:
        add(path(pair), linewidth=3.2, zorder=3)
    outlined = {name for body in drawing.bodies for name in body}
    joints = dict.fromkeys(
        name for pair in (*drawing.links, *drawing.springs) for name in pair
    ) or dict.fromkeys(drawing.traces)
    small = {"markersize": 2.0 if len(joints) > 30 else 5.0}
    for names, style in (
        (drawing.ground, {"marker": "^", "markersize": 8.0, "color": _FRAME}),
        (drawing.sliders, {"marker": "s", "markersize": 10.0}),
        (
            [name for name in joints if name not in ground and name not in drawing.sliders],
            {"marker": "o", **small},
        ),
    ):
        if shown := [name for name in names if name not in outlined]:
            add(path(shown), linestyle="none", zorder=4, **style)
    everything = np.concatenate(list(points.values()), axis=1)
    axes.update_datalim(everything.T[np.all(np.isfinite(everything), axis=0)])
    axes.margins(0.1)
    axes.autoscale_view()
    axes.set(xlabel="x", ylabel="y")
    if spatial:
        axes.set_axis_off()

    def show(number: int) -> None:
        for line, outline in moving:
            line.set_data(*outline[..., number].T)
        axes.set_title(f"{heading}t = {times[number]:.4g}")

    return show

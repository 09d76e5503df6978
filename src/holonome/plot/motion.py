"""The motion itself: the mechanism at a few instants, paths of its points, phase plots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.plot.mechanism import Instant, Look, draw_frame
from holonome.plot.style import DARK, legend, one, sentence, smooth, smooth_positions, styled, symbol, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.problem.drawing import Drawing
    from holonome.results.solution import Solution

_LENGTH = 1.35
"""Length of the motion that is drawn, in units of its extent: one swing, or less than half a turn."""

_MOST_PATHS = 7


@styled
def plot_motion(
    solution: Solution, drawing: Drawing | None = None, axes: Axes | None = None, instants: int = 7
) -> Axes:
    """The mechanism at a few instants, from pale to dark, and the traces of its points over the whole run.

    The drawing is that of the system, if none is given.
    """
    from matplotlib.colors import LinearSegmentedColormap

    axes = one(axes, 5.6, 5.0)
    drawing = drawing or solution.system.drawing
    if drawing is None:
        raise ValueError(f"drawing: system {solution.system.name!r} has none; give an hn.Drawing")
    t, points = _points(solution, drawing)
    in_space, places = len(next(iter(points.values()))) == 3, points
    points = drawing.seen(points)
    for name in drawing.traces:
        axes.plot(
            *points[name],
            color=theme().trace,
            linewidth=1.1,
            alpha=0.9 if _sweeps(points[name]) < 40 else 0.35,
            zorder=4,
        )
    chosen = _instants(points, instants)
    shades = LinearSegmentedColormap.from_list("time", [theme().early, theme().middle, theme().late])(
        np.linspace(0, 1, len(chosen))
    )
    for k, colour in zip(chosen, shades, strict=True):
        look = Look(tuple(colour), k == chosen[-1], 2 + k / t.size)
        Instant(axes, drawing, {name: x[:, k] for name, x in places.items()}, look).draw()
    if chosen:
        draw_frame(axes, drawing, places)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    if in_space:
        azimuth, elevation = drawing.camera
        axes.set(xlabel=f"seen from azimuth {azimuth:g}°, elevation {elevation:g}°", ylabel="")
    else:
        axes.set(xlabel="x", ylabel="y")
    first, last = ("dim", "bright") if theme() is DARK else ("pale", "dark")
    times = (
        f", t = {t[chosen[0]]:.3g} ({first}) to {t[chosen[-1]]:.3g} ({last})"
        if len(chosen) > 1
        else f" at t = {t[0]:.3g}"
        if chosen
        else ""
    )
    axes.set_title(sentence(solution.system.name) + times)
    return axes


def _points(solution: Solution, drawing: Drawing) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times, and the points of a drawing at these times."""
    system = solution.system
    t, q = smooth_positions(solution)
    _, s = smooth(solution, solution.s, lambda: solution.rates[system.n :])
    return t, drawing.at(q, system.parameters.namespace(system.parameters.flat), t, s)


@styled
def plot_path(
    solution: Solution,
    axes: Axes | None = None,
    points: Sequence[str | Sequence[str]] | None = None,
    drawing: Drawing | None = None,
) -> Axes:
    """Paths in the plane or in space; a circle marks the start, a disc the end.

    Parameters
    ----------
    solution
        What :func:`holonome.solve` returned.
    axes
        Where to draw; None makes a figure, in three dimensions if the paths have three.
    points
        What to follow: names of points of the drawing, or pairs and triples of coordinate names such as ("x",
        "y"). None takes the traces of the drawing, else coordinates called x, y, z, or x1, y1, and so on.
    drawing
        How the mechanism is drawn; None takes the drawing of the system.
    """
    from matplotlib.ticker import MaxNLocator

    paths = _paths(solution, points, drawing)
    in_space = len(next(iter(paths.values()))) == 3
    axes = one(axes, 5.6, 5.0, projection="3d") if in_space else one(axes, 5.6, 5.0)
    for (name, path), colour in zip(paths.items(), theme().colours * len(paths), strict=False):
        if not in_space and len(paths) == 1 and _sweeps(path) > 40:
            axes.plot(*path, color=colour, linewidth=0.8, alpha=0.5)
        else:
            axes.plot(*path, color=colour, label=name)
        _mark(axes, path[:, :1], colour)
        _mark(axes, path[:, -1:], colour, face=colour)
    labels = _axis_labels(points)
    axes.set(
        xlabel=labels[0],
        ylabel=labels[1],
        title=f"{sentence(solution.system.name)}: path of {next(iter(paths))}"
        if len(paths) == 1
        else f"{sentence(solution.system.name)}: paths",
    )
    if in_space:
        axes.set(zlabel=labels[2])
        axes.set_aspect("equal")
        extents = np.ptp(np.hstack(list(paths.values())), axis=1)
        three: Any = (axes.xaxis, axes.yaxis, axes.zaxis)
        for axis, extent in zip(three, extents, strict=True):
            axis.labelpad = 8
            axis.set_pane_color(theme().paper)
            axis.set_major_locator(MaxNLocator(int(np.clip(6 * extent / max(np.max(extents), 1e-300), 1, 6))))
    else:
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.08)
    if len(paths) > 1:
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(1.05 if in_space else 1.0, 1.0),
            handlelength=1.2,
            borderaxespad=0.2,
        )
    return axes


def _axis_labels(points: Sequence[str | Sequence[str]] | None) -> tuple[str, ...]:
    """The names of the coordinates where one group of them was asked for, else x, y and z."""
    if points is not None and len(points) == 1 and not isinstance(points[0], str):
        return tuple(map(symbol, points[0]))
    return "x", "y", "z"


def _paths(
    solution: Solution, points: Sequence[str | Sequence[str]] | None, drawing: Drawing | None
) -> dict[str, np.ndarray]:
    """The paths to draw, by name."""
    q, names = smooth_positions(solution)[1], solution.system.names
    drawing = drawing or solution.system.drawing
    known = _points(solution, drawing)[1] if drawing is not None else {}
    if points is None:
        points = (
            list(drawing.traces) or [name for name in known if name not in drawing.ground]
            if drawing is not None
            else _positions_by_name(names)
        )
        points = points[:: max(1, -(-len(points) // _MOST_PATHS))]
        if not points:
            raise ValueError(
                f"points: no coordinates of {solution.system.name!r} are called x and y; give pairs of "
                f"names, points=[({names[0]!r}, {names[-1]!r})], or a drawing"
            )
    paths = {}
    for point in points:
        if isinstance(point, str):
            if point not in known:
                remedy = (
                    f"it has {', '.join(known)}"
                    if known
                    else "give drawing=..., or a pair of coordinate names"
                )
                raise ValueError(f"points: {point!r} is not a point of the drawing; {remedy}")
            paths[point] = known[point]
            continue
        unknown = [name for name in point if name not in names]
        if unknown or len(point) not in (2, 3):
            raise ValueError(
                f"points: {unknown[0]!r} is not one of {', '.join(names)}"
                if unknown
                else f"points: {point!r}; give two or three coordinate names"
            )
        paths[f"({', '.join(map(symbol, point))})"] = np.stack([q[names.index(name)] for name in point])
    if len({len(path) for path in paths.values()}) > 1:
        raise ValueError("points: some are in the plane and some in space; draw them apart")
    return paths


def _positions_by_name(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Coordinates that are called x, y and z, or x1, y1 and z1, or bob_x and bob_y."""
    groups: dict[tuple, dict[str, str]] = {}
    for name in names:
        match = re.fullmatch(r"(?:(.*)_)?([xyz])_?(\d*|[A-Z]\w*)", name)
        if match:
            groups.setdefault((match[1], match[3]), {})[match[2]] = name
    found = [tuple(name for _, name in sorted(group.items())) for group in groups.values() if len(group) > 1]
    return [group for group in found if len(group) == max(map(len, found))]


@styled
def plot_phase(
    solution: Solution, axes: Axes | None = None, coordinates: Sequence[str] | None = None
) -> Axes:
    """Phase plot: velocity against position, for the named coordinates or the one that swings most; of an
    ODE, one component against another.
    """
    axes, system = one(axes), solution.system
    if not system.n:
        components = list(system.states)
        chosen = list(coordinates or components[:2])
        _require(chosen, components)
        if len(chosen) != 2:
            raise ValueError(f"coordinates: {len(chosen)} given; a phase plot of an ODE shows two components")
        x, y = (
            smooth(solution, solution.x, lambda: solution.rates)[1][components.index(name)] for name in chosen
        )
        axes.plot(x, y)
        _mark(axes, np.stack([x[:1], y[:1]]), theme().colours[0])
        axes.set(xlabel=symbol(chosen[0]), ylabel=symbol(chosen[1]), title="Phase plot")
        return axes
    chosen = [system.names[_most_mobile(solution)]] if coordinates is None else list(coordinates)
    _require(chosen, system.names)
    rows = [system.names.index(name) for name in chosen]
    q, v = smooth_positions(solution)[1], smooth(solution, solution.v, lambda: solution.a)[1]
    for row, name, colour in zip(rows, chosen, theme().colours * len(chosen), strict=False):
        axes.plot(q[row], v[row], color=colour, label=symbol(name), linewidth=1.3)
        _mark(axes, np.stack([q[row, :1], v[row, :1]]), colour)
    alone = symbol(chosen[0]) if len(chosen) == 1 else ""
    axes.set(
        xlabel=f"position {alone}".strip(),
        ylabel=f"velocity {alone}′" if alone else "velocity",
        title="Phase plot",
    )
    if len(chosen) > 1:
        legend(axes)
    return axes


def _most_mobile(solution: Solution) -> int:
    """The coordinate that moves most among those that reverse their direction, or else among all."""
    if not solution.t.size:
        return 0
    moved = np.ptp(solution.q, axis=1)
    turns = (np.min(solution.v, axis=1) < 0) & (np.max(solution.v, axis=1) > 0)
    return int(np.argmax(np.where(turns, moved, 0.0) if turns.any() else moved))


def _require(names: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"coordinates: {unknown[0]!r} is not one of {', '.join(known)}")


def _mark(axes: Axes, point: np.ndarray, colour: str, face: str | None = None) -> None:
    """A circle around a point, empty unless it has a colour inside."""
    style: dict[str, Any] = {"markeredgecolor": colour, "markeredgewidth": 1.5, "markersize": 6, "zorder": 5}
    axes.plot(*point, "o", color=face or theme().paper, **style)


def _sweeps(path: np.ndarray) -> float:
    """Length of a path in units of its extent."""
    extent = float(np.max(np.ptp(path, axis=1))) if path.size else 0.0
    return float(np.sum(np.hypot(*np.diff(path, axis=1)))) / extent if extent > 0 else 0.0


def _instants(points: dict[str, np.ndarray], count: int) -> list[int]:
    """Indices of a few instants, equally spaced along the path of the point that moves most, before it
    repeats itself.
    """
    total = next(iter(points.values())).shape[1]
    if total < 2:
        return [0] * total
    path = max(points.values(), key=lambda xy: float(np.sum(np.hypot(*np.diff(xy, axis=1)))))
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path, axis=1)))])
    end = min(length[-1], _LENGTH * float(np.max(np.ptp(path, axis=1))))
    return sorted(set(np.clip(np.searchsorted(length, np.linspace(0, end, count)), 0, total - 1).tolist()))

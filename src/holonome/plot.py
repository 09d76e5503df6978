"""Pictures of a solution: the motion, coordinates over time, drift, energy, step sizes.

Every function draws into the axes it is given, or into a new figure, and returns the axes. matplotlib is loaded on first use. Figures are made
without pyplot, so nothing depends on a display, unless pyplot or a notebook is in use and could show them.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.drawing import Drawing
    from holonome.result import Solution

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, distinct for colour-blind readers too; without the yellow, which is faint on white."""

SMALLEST = 1e-17
"""Where the logarithmic axis of a drift ends; zeros are drawn here."""

_GREEK = re.compile("alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi|chi|psi|omega")
_FADED, _DARK, _TRACE, _FRAME = "#C9DCEA", "#003F66", "#D55E00", "#444444"
_CAUSE_MARKERS = {"error test": ("x", "#D55E00"), "projection": ("v", "#009E73"), "not finite": ("s", "#CC79A7"), "singular": ("D", "#000000")}
_FINE = 2000
_MOST_LINES = 8
_WAY = 1.35
"""How far a motion is drawn, in units of its extent: a swing from side to side, or less than half a turn."""

Plot = TypeVar("Plot", bound=Callable)


@contextmanager
def house_style() -> Iterator[None]:
    """The look of all pictures of this package."""
    from cycler import cycler
    from matplotlib import rc_context

    style: dict[Any, Any] = {
        "axes.prop_cycle": cycler(color=COLOURS), "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#666666",
        "axes.axisbelow": True, "axes.titlesize": 11, "axes.titlelocation": "left", "axes.titlepad": 9, "axes.labelsize": 10,
        "axes.grid": True, "grid.color": "#E4E4E4", "grid.linewidth": 0.7,
        "xtick.labelsize": 9, "ytick.labelsize": 9, "xtick.color": "#444444", "ytick.color": "#444444",
        "lines.linewidth": 1.5, "lines.solid_capstyle": "round", "legend.frameon": False, "legend.fontsize": 9,
        "font.family": "DejaVu Sans", "mathtext.fontset": "dejavusans", "agg.path.chunksize": 10_000, "savefig.dpi": 110}
    with rc_context(style):
        yield


def _styled(function: Plot) -> Plot:
    @functools.wraps(function)
    def styled(*arguments, **options):
        with house_style():
            return function(*arguments, **options)

    return styled  # type: ignore[return-value]


def new_figure(width: float, height: float, *, shown: bool = True):
    """A figure; one of pyplot's if it is to be shown and pyplot or a notebook is in use."""
    options: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
    if shown and ("matplotlib.pyplot" in sys.modules or "ipykernel" in sys.modules):
        from matplotlib import pyplot

        return pyplot.figure(**options)
    from matplotlib.figure import Figure

    return Figure(**options)


@_styled
def plot_solution(solution: Solution, axes: Sequence[Axes] | None = None, file: str | Path | None = None,
                  drawing: Drawing | None = None) -> Sequence[Axes]:
    """Three panels: the motion, the positions and the drift.

    Parameters
    ----------
    solution
        What :func:`holonome.solve` returned.
    axes
        Three axes to draw into; None makes a figure.
    file
        Where to save the picture; the ending says how (.png, .svg, .pdf).
    drawing
        How to draw the mechanism, as in ``mechanism.drawing``. Without it, the first two panels are positions and velocities.

    Returns
    -------
    sequence of three matplotlib axes
    """
    figure = None
    if axes is None:
        figure = new_figure(14.5, 4.6, shown=file is None)
        axes = list(figure.subplots(1, 3, width_ratios=[1.1, 1, 1]))
    if len(axes) != 3:
        raise ValueError(f"axes: {len(axes)} given; plot_solution draws three panels")
    if not solution.system.n:
        for k, (name, values) in enumerate(zip(solution.system.states, solution.x, strict=True)):
            axes[0].plot(solution.t, values, ["-", "--"][k // len(COLOURS) % 2], label=symbol(name))
        axes[0].set(xlabel="time t", title="Components")
        first, second = (list(solution.system.states)[k % len(solution.x)] for k in (0, 1))
        axes[1].plot(solution.x[0], solution.x[1 % len(solution.x)])
        axes[1].set(xlabel=symbol(first), ylabel=symbol(second), title="Phase plot")
        _legend(axes[0])
        for i, values in enumerate(solution.invariant):
            axes[2].semilogy(solution.t, np.maximum(np.abs(values - values[0]), SMALLEST), label=f"invariant {i}")
        axes[2].set(xlabel="time t", title="Change of the invariants")
        if len(solution.invariant):
            _legend(axes[2])
        if file is not None:
            (figure or axes[0].get_figure(root=True)).savefig(file)  # type: ignore[union-attr]
        return axes
    if drawing is not None:
        plot_motion(solution, drawing, axes[0])
        plot_positions(solution, axes[1])
    else:
        plot_positions(solution, axes[0])
        plot_velocities(solution, axes[1])
    plot_drift(solution, axes[2])
    if file is not None:
        (figure or axes[0].get_figure(root=True)).savefig(file)  # type: ignore[union-attr]
    return axes


@_styled
def plot_motion(solution: Solution, drawing: Drawing, axes: Axes | None = None, instants: int = 7) -> Axes:
    """The mechanism at a few instants, from pale to dark, and the paths of its interesting points over the whole run."""
    from matplotlib.colors import LinearSegmentedColormap

    axes = _one(axes)
    t, q = _smooth_positions(solution)
    p = solution.system.parameters.namespace(solution.system.parameters.flat)
    points = drawing.seen(drawing.at(q, p, t))
    for name in drawing.traces:
        axes.plot(*points[name], color=_TRACE, linewidth=1.1, alpha=0.9 if _sweeps(points[name]) < 40 else 0.35, zorder=4)
    chosen = _telling_instants(points, instants)
    shades = LinearSegmentedColormap.from_list("time", [_FADED, COLOURS[0], _DARK])(np.linspace(0, 1, len(chosen)))
    for k, colour in zip(chosen, shades, strict=True):
        _draw_instant(axes, drawing, {name: xy[:, k] for name, xy in points.items()}, colour, is_last=k == chosen[-1], order=2 + k / t.size)
    _draw_frame(axes, drawing, points)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.set(xlabel="x", ylabel="y")
    times = f", t = {t[chosen[0]]:.3g} (pale) to {t[chosen[-1]]:.3g} (dark)" if len(chosen) > 1 else f" at t = {t[0]:.3g}" if chosen else ""
    axes.set_title(_sentence(solution.system.name) + times)
    return axes


@_styled
def plot_positions(solution: Solution, axes: Axes | None = None, coordinates: Sequence[str] | None = None) -> Axes:
    """Positions over time: those named, else all of them, else those that move most."""
    t, q = _smooth_positions(solution)
    return _plot_coordinates(solution, _one(axes), t, q, coordinates, "", "positions")


@_styled
def plot_velocities(solution: Solution, axes: Axes | None = None, coordinates: Sequence[str] | None = None) -> Axes:
    """Velocities over time: those named, else all of them, else those that change most."""
    t, v = _smooth(solution, solution.v, lambda: solution.a)
    return _plot_coordinates(solution, _one(axes), t, v, coordinates, "′", "velocities")


@_styled
def plot_drift(solution: Solution, axes: Axes | None = None) -> Axes:
    """How far the solution is from its constraints, and how much its energy changes, on a logarithmic axis."""
    axes, system, held = _one(axes), solution.system, []
    if solution.g.size:
        axes.semilogy(solution.t, _log_size(solution.g), label="|g|  position")
        held.append(f"|g| ≤ {solution.drift[0]:{'.0e' if solution.drift[0] else 'g'}}")
    if solution.gv.size:
        axes.semilogy(solution.t, _log_size(solution.gv), label="|Gv|  velocity")
        held.append(f"|Gv| ≤ {solution.drift[1]:{'.0e' if solution.drift[1] else 'g'}}")
    if solution.energy is not None and solution.t.size:
        axes.semilogy(solution.t[1:], _log_size(solution.energy - solution.energy[0])[1:], color=COLOURS[2], label="|E − E₀|  energy")
    if axes.lines:
        axes.set_ylim(SMALLEST / 2, max(axes.get_ylim()[1], 1e-12))
        _legend(axes)
    else:
        axes.text(0.5, 0.5, "no constraints and no potential", transform=axes.transAxes, ha="center", color=_FRAME)
    axes.set(xlabel="time t", ylabel="deviation")
    axes.set_title("Constraints: " + ", ".join(held) if held else f"{_sentence(system.name)}: drift")
    return axes


@_styled
def plot_energy(solution: Solution, axes: Axes | None = None) -> Axes:
    """Change of the total energy over time."""
    if solution.energy is None:
        raise ValueError(f"solution: system {solution.system.name!r} has no potential, so its energy is not known; give potential=... to System")
    axes = _one(axes)
    change = solution.energy - solution.energy[:1]
    axes.axhline(0.0, color=_FRAME, linewidth=0.8)
    axes.plot(solution.t, change)
    axes.set(xlabel="time t", ylabel="E − E₀")
    axes.set_title(f"Energy changes by at most {np.max(np.abs(change), initial=0.0):.1e}")
    return axes


@_styled
def plot_steps(solution: Solution, axes: Axes | None = None) -> Axes:
    """Step sizes over time; steps that were rejected are marked by cause."""
    history = solution.history
    if history is None:
        raise ValueError("solution: its steps were not kept; solve with keep_steps=True")
    axes = _one(axes)
    axes.semilogy(history.t, np.abs(history.h), drawstyle="steps-post", label=f"accepted ({solution.steps})")
    causes = np.array(history.cause)
    for cause in dict.fromkeys(history.cause):
        marker, colour = _CAUSE_MARKERS.get(cause, ("o", _FRAME))
        chosen = causes == cause
        label = f"rejected: {cause} ({chosen.sum()})"
        axes.semilogy(history.rejected_t[chosen], np.abs(history.rejected_h[chosen]), marker, color=colour, markersize=5, label=label)
    axes.set(xlabel="time t", ylabel="step size h")
    axes.set_title(f"{solution.method}: {solution.steps} steps, {solution.rejections} rejected")
    _legend(axes)
    return axes


def _one(axes: Axes | None) -> Axes:
    return new_figure(6.4, 4.4).subplots() if axes is None else axes


def _sentence(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def symbol(name: str) -> str:
    """A coordinate's name as one writes it: Greek letters, and indices below."""
    match = re.fullmatch(r"([A-Za-z]+?)_?(\d*|(?<=_)[A-Za-z0-9]+)", name)
    if match is None or (len(match[1]) > 1 and not _GREEK.fullmatch(match[1])):
        return name.replace("$", r"\$")
    letter, index = match[1].replace("phi", "varphi"), match[2]
    if len(letter) > 1:
        letter = "\\" + letter
    return f"${letter}" + (f"_{{{index}}}" if index else "") + "$"


def _log_size(rows: np.ndarray) -> np.ndarray:
    """Largest absolute value at each time, ready for a logarithmic axis."""
    return np.maximum(np.max(np.abs(np.atleast_2d(rows)), axis=0), SMALLEST)


def _has_all_steps(solution: Solution) -> bool:
    return solution.history is not None and solution.t.size > 2 and solution.history.t.size + 1 == solution.t.size


def _smooth_positions(solution: Solution) -> tuple[np.ndarray, np.ndarray]:
    return _smooth(solution, solution.q, lambda: solution.v)


def _smooth(solution: Solution, values: np.ndarray, rates: Callable[[], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Times and values, with points between the steps; the steps themselves are too long for a smooth curve."""
    t = solution.t
    if not _has_all_steps(solution) or t.size > _FINE:
        return t, values
    from scipy.interpolate import CubicHermiteSpline

    way = 1.0 if t[-1] > t[0] else -1.0
    wanted = np.unique(np.concatenate([way * t, np.linspace(way * t[0], way * t[-1], _FINE)]))
    return way * wanted, CubicHermiteSpline(way * t, values, way * rates(), axis=1)(wanted)


def _plot_coordinates(solution: Solution, axes: Axes, t: np.ndarray, values: np.ndarray, coordinates: Sequence[str] | None, prime: str,
                      what: str) -> Axes:
    system = solution.system
    if coordinates is not None:
        unknown = [name for name in coordinates if name not in system.names]
        if unknown:
            raise ValueError(f"coordinates: {unknown[0]!r} is not one of {', '.join(system.names)}")
        rows = [system.names.index(name) for name in coordinates]
    elif system.n <= _MOST_LINES or not t.size:
        rows = list(range(system.n))[:_MOST_LINES]
    else:
        rows = sorted(np.argsort(-np.ptp(values, axis=1), kind="stable")[: _MOST_LINES - 2])
    styles = ["-", "--"]
    for k, row in enumerate(rows):
        axes.plot(t, values[row], styles[k // len(COLOURS) % 2], label=symbol(system.names[row]) + prime)
    axes.set(xlabel="time t", ylabel=what[:-1] if len(rows) == 1 else what)
    axes.set_title(f"{_sentence(what)}: {len(rows)} of {system.n} coordinates" if len(rows) < system.n else _sentence(what))
    _legend(axes)
    return axes


def _legend(axes: Axes) -> None:
    """Few entries above the curves, where they need little room; many beside the panel."""
    from matplotlib.ticker import LogLocator

    count = len(axes.get_legend_handles_labels()[1])
    if count > 4:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=1.2, borderaxespad=0.2)
        return
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log":
        axes.set_ylim(low, high * (high / low) ** (0.12 + 0.07 * (count > 2)))
        axes.yaxis.set_major_locator(LogLocator(numticks=9))
    else:
        axes.set_ylim(low, high + 0.14 * (high - low))
    columns = 2 if count > 2 and axes.get_yscale() == "log" else count
    axes.legend(loc="upper left", ncols=columns, handlelength=1.4, columnspacing=1.4, borderaxespad=0.1)


def _sweeps(path: np.ndarray) -> float:
    """How often a path fills its own extent."""
    extent = float(np.max(np.ptp(path, axis=1))) if path.size else 0.0
    return float(np.sum(np.hypot(*np.diff(path, axis=1)))) / extent if extent > 0 else 0.0


def _telling_instants(points: dict[str, np.ndarray], count: int) -> list[int]:
    """Indices of a few instants, equally far apart along the path of the point that moves most, before it repeats itself."""
    total = next(iter(points.values())).shape[1]
    if total < 2:
        return [0] * total
    path = max(points.values(), key=lambda xy: float(np.sum(np.hypot(*np.diff(xy, axis=1)))))
    length = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(path, axis=1)))])
    end = min(length[-1], _WAY * float(np.max(np.ptp(path, axis=1))))
    return sorted(set(np.clip(np.searchsorted(length, np.linspace(0, end, count)), 0, total - 1).tolist()))


def _draw_instant(axes: Axes, drawing: Drawing, points: dict[str, np.ndarray], colour: Any, *, is_last: bool, order: float) -> None:
    for body in drawing.bodies:
        if not set(body) <= set(drawing.ground):
            outline = np.stack([points[name] for name in body], axis=1)
            axes.fill(*outline, facecolor=(colour[:3], 0.12) if is_last else "none", edgecolor=colour, linewidth=1.8 if is_last else 0.9, zorder=order)
    for begin, end in drawing.springs if is_last else ():
        axes.plot(*_zigzag(points[begin], points[end]), color=colour, linewidth=1.1, zorder=order)
    for begin, end in drawing.links:
        axes.plot(*np.stack([points[begin], points[end]], axis=1), color=colour, linewidth=3.0 if is_last else 1.6, zorder=order)
    joints = [name for pair in (*drawing.links, *drawing.springs) for name in pair if name not in drawing.ground and name not in drawing.sliders]
    few = len(set(joints)) <= 12
    for names, marker, size in ((dict.fromkeys(joints), "o", 5.5 if few else 3.0), (drawing.sliders, "s", 10.0)):
        if names and is_last:
            x, y = np.stack([points[name] for name in names], axis=1)
            axes.plot(x, y, marker, color="white", markeredgecolor=colour, markeredgewidth=1.4, markersize=size, zorder=4.5)


def _draw_frame(axes: Axes, drawing: Drawing, points: dict[str, np.ndarray]) -> None:
    """Fixed bodies, and triangles where the mechanism is held."""
    from matplotlib.markers import MarkerStyle
    from matplotlib.path import Path as Outline

    triangle = MarkerStyle(Outline([(0, 0), (-0.8, -1.3), (0.8, -1.3), (0, 0)], closed=True))
    fixed = [body for body in drawing.bodies if set(body) <= set(drawing.ground)]
    for body in fixed:
        axes.fill(*np.stack([points[name][:, 0] for name in body], axis=1), facecolor="#DDDDDD", edgecolor=_FRAME, linewidth=1.0, zorder=1.5)
    for name in (name for name in drawing.ground if not any(name in body for body in fixed)):
        x, y = points[name][:, :1]
        axes.plot(x, y, marker=triangle, linestyle="none", color=_FRAME, markersize=9, zorder=5, clip_on=False)
        axes.plot(x, y, "o", color="white", markeredgecolor=_FRAME, markeredgewidth=1.4, markersize=4.5, zorder=5.5, clip_on=False)


def _zigzag(begin: np.ndarray, end: np.ndarray, coils: int = 9) -> np.ndarray:
    """A spring between two points."""
    along = end - begin
    across = 0.035 * np.array([-along[1], along[0]])
    place = np.concatenate([[0.0, 0.15], 0.15 + 0.7 * (np.arange(2 * coils) + 0.5) / (2 * coils), [0.85, 1.0]])
    side = np.concatenate([[0.0, 0.0], np.tile([1.0, -1.0], coils), [0.0, 0.0]])
    return begin[:, None] + along[:, None] * place + across[:, None] * side

"""The look of all pictures: colours that colour-blind readers can tell apart, legible in print and, in their
dark version, on a screen at night.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.results.solution import Solution

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, distinct for colour-blind readers too; without the yellow, which is faint on
white.
"""

SMALLEST = 1e-17
"""Where the logarithmic axis of a drift ends; zeros are drawn here."""

MARKERS = "osD^vPX"
_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi"
    "|chi|psi|omega"
)
_FINE, _INTERVALS = 2000, 600


@dataclass(frozen=True)
class Theme:
    """Colours of curves, background (`paper`), text (`ink`), axes, grid and fixed bodies; `early`, `middle`
    and `late` shade a mechanism by time, `trace` is for the paths of points.
    """

    colours: tuple[str, ...]
    paper: str
    ink: str
    frame: str
    grid: str
    ground: str
    early: str
    middle: str
    late: str
    trace: str


LIGHT = Theme(
    COLOURS, "#FFFFFF", "#111111", "#444444", "#E4E4E4", "#DDDDDD", "#C9DCEA", "#0072B2", "#003F66", "#D55E00"
)
DARK = Theme(
    ("#56B4E9", "#FF8C42", "#2FC79B", "#E59BC6", "#F0E442", "#A6A6FF", "#FFFFFF"),
    "#16181D",
    "#F2F2F2",
    "#B5B8BF",
    "#31353D",
    "#3A3F48",
    "#2B4455",
    "#56B4E9",
    "#D6EEFF",
    "#FF8C42",
)

_in_force: ContextVar[Theme | None] = ContextVar("theme", default=None)


def theme() -> Theme:
    """The colours in force: those of the surrounding `house_style`, else dark ones if matplotlib's own style
    is dark.
    """
    chosen = _in_force.get()
    if chosen is None:
        from matplotlib import colors, rcParams

        red, green, blue = colors.to_rgb(rcParams["figure.facecolor"])
        chosen = DARK if 0.3 * red + 0.59 * green + 0.11 * blue < 0.4 else LIGHT
    return chosen


@contextmanager
def house_style(dark: bool | None = None) -> Iterator[None]:
    """The look of all pictures of this package, for everything drawn inside.

    Parameters
    ----------
    dark
        Light lines on a dark background. None follows the surrounding style, be it another ``house_style`` or
        a dark style of matplotlib such as ``"dark_background"``.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> with hn.plot.house_style(dark=True):
    ...     axes = hn.solve(pendulum.system, (0, 1), pendulum.q0).plot(drawing=pendulum.drawing)
    """
    from cycler import cycler
    from matplotlib import rc_context

    look = theme() if dark is None else DARK if dark else LIGHT
    style: dict[Any, Any] = {
        "axes.prop_cycle": cycler(color=look.colours),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": look.frame,
        "axes.axisbelow": True,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.titlepad": 9,
        "axes.labelsize": 10,
        "axes.grid": True,
        "grid.color": look.grid,
        "grid.linewidth": 0.7,
        "figure.facecolor": look.paper,
        "axes.facecolor": look.paper,
        "text.color": look.ink,
        "axes.labelcolor": look.ink,
        "axes.titlecolor": look.ink,
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
        "xtick.color": look.frame,
        "ytick.color": look.frame,
        "lines.linewidth": 1.5,
        "lines.solid_capstyle": "round",
        "legend.frameon": False,
        "legend.fontsize": 9,
        "font.family": "DejaVu Sans",
        "mathtext.fontset": "dejavusans",
        "agg.path.chunksize": 10_000,
        "savefig.dpi": 110,
    }
    token = _in_force.set(look)
    try:
        with rc_context(style):
            yield
    finally:
        _in_force.reset(token)


Plot = TypeVar("Plot", bound=Callable)


def styled(function: Plot) -> Plot:
    """Decorate a function so that it draws in the house style."""

    @functools.wraps(function)
    def draw(*arguments, **options):
        with house_style():
            return function(*arguments, **options)

    return draw  # type: ignore[return-value]


def new_figure(width: float, height: float, *, shown: bool = True):
    """A figure; one of pyplot's if it is to be shown and pyplot or a notebook is in use."""
    options: dict[str, Any] = {"figsize": (width, height), "layout": "constrained"}
    if shown and ("matplotlib.pyplot" in sys.modules or "ipykernel" in sys.modules):
        from matplotlib import pyplot

        return pyplot.figure(**options)
    from matplotlib.figure import Figure

    return Figure(**options)


def one(axes: Axes | None, width: float = 6.4, height: float = 4.4, **subplot: Any) -> Axes:
    """The axes given, or those of a new figure."""
    return new_figure(width, height).add_subplot(**subplot) if axes is None else axes


def save(axes: Axes, file: str | Path | None) -> None:
    """Save the figure of these axes, if a file is named."""
    if file is not None:
        axes.get_figure(root=True).savefig(file)  # type: ignore[union-attr]


def sentence(name: str) -> str:
    """A name as the beginning of a title."""
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def symbol(name: str) -> str:
    """The name of a coordinate in mathematical notation, with Greek letters and subscripts."""
    match = re.fullmatch(r"([A-Za-z]+?)_?(\d*|(?<=_)[A-Za-z0-9]+)", name)
    if match is None or (len(match[1]) > 1 and not _GREEK.fullmatch(match[1])):
        return name.replace("$", r"\$")
    letter, index = match[1].replace("phi", "varphi"), match[2]
    if len(letter) > 1:
        letter = "\\" + letter
    return f"${letter}" + (f"_{{{index}}}" if index else "") + "$"


def sizes(t: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and the largest absolute values at these times, for a logarithmic axis; of many points, the
    largest in each of several hundred intervals.
    """
    size = np.maximum(np.max(np.abs(np.atleast_2d(rows)), axis=0), SMALLEST)
    if t.size <= 2 * _INTERVALS:
        return t, size
    starts = np.linspace(0, t.size, _INTERVALS, endpoint=False).astype(int)
    return t[starts], np.maximum.reduceat(size, starts)


def smooth(
    solution: Solution, values: np.ndarray, rates: Callable[[], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Times and values with points interpolated between the steps, which are too long for a smooth curve."""
    t = solution.t
    has_all_steps = solution.history is not None and t.size > 2 and solution.history.t.size + 1 == t.size
    if not has_all_steps or t.size > _FINE:
        return t, values
    from scipy.interpolate import CubicHermiteSpline

    sign = 1.0 if t[-1] > t[0] else -1.0
    wanted = np.unique(np.concatenate([sign * t, np.linspace(sign * t[0], sign * t[-1], _FINE)]))
    return sign * wanted, CubicHermiteSpline(sign * t, values, sign * rates(), axis=1)(wanted)


def smooth_positions(solution: Solution) -> tuple[np.ndarray, np.ndarray]:
    return smooth(solution, solution.q, lambda: solution.v)


def legend(axes: Axes) -> None:
    """A legend above the curves if it has few entries, otherwise beside the panel."""
    from matplotlib.ticker import LogLocator

    labels = axes.get_legend_handles_labels()[1]
    count = len(labels)
    if count > 4 or sum(map(len, labels)) > 60:
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

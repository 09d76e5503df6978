"""Several runs in one picture: work and precision, and quantities of different methods over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.plot.style import (
    MARKERS,
    legend,
    one,
    save,
    sentence,
    sizes,
    smooth_positions,
    styled,
    symbol,
    theme,
)
from holonome.results.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COSTS = {"seconds": "time [s]", "evaluations": "evaluations", "steps": "steps"}


@styled
def work_precision(
    runs: Any,
    axes: Axes | None = None,
    *,
    cost: str = "seconds",
    reference: Any = None,
    file: str | Path | None = None,
) -> Axes:
    """Work–precision diagram: the cost over the error achieved, one line for each method; further right is
    more accurate, further down is cheaper.

    Parameters
    ----------
    runs
        What :func:`holonome.compare` returned; or solutions, as a dict of lists by name or as one list, which
        is sorted by method.
    axes
        Where to draw; None makes a figure.
    cost
        "seconds" (of a comparison only), "evaluations" or "steps".
    reference
        For solutions: the positions at their end, or a much more accurate solution.
    file
        Where to save the picture; the ending says how.
    """
    if cost not in COSTS:
        raise ValueError(f"cost: {cost!r} is not known; choose {', '.join(COSTS)}")
    lines = _of_comparison(runs, cost) if hasattr(runs, "rows") else _of_solutions(runs, cost, reference)
    given, look = axes, theme()
    axes = one(axes, 7.4, 4.8)
    for number, (label, (points, failed)) in enumerate(lines.items()):
        x, y = np.array(points).reshape(-1, 2).T
        told = f"{label} ({failed} failed)" if failed else label
        axes.loglog(
            x,
            y,
            marker=MARKERS[number % len(MARKERS)],
            color=look.colours[number % len(look.colours)],
            linestyle=["-", "--"][number // len(look.colours) % 2],
            markersize=6,
            markeredgecolor=look.paper,
            markeredgewidth=0.8,
            label=told,
        )
    good_to = getattr(runs, "reference_error", 0.0)
    left, right = axes.get_xlim()
    if left < good_to < right:
        axes.axvspan(left, good_to, color=look.grid, zorder=0.5, label="below the reference's error")
    if given is None or not axes.xaxis_inverted():
        axes.set_xlim(right, left)
    axes.set(xlabel="largest relative error", ylabel=COSTS[cost])
    axes.set_title(
        f"{sentence(runs.name)}: work and precision" if hasattr(runs, "name") else "Work and precision"
    )
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
    save(axes, file)
    return axes


Lines = dict[str, tuple[list[tuple[float, float]], int]]
"""Points (error, cost) of each method, and how many of its runs failed."""


def _of_comparison(comparison: Any, cost: str) -> Lines:
    lines = {}
    for method in comparison.methods:
        rows = comparison.of(method)
        points = [(row.error, getattr(row, cost)) for row in rows if row.success and row.error > 0]
        lines[method] = points, sum(not row.success for row in rows)
    return lines


def _of_solutions(
    runs: Mapping[str, Sequence[Solution]] | Sequence[Solution], cost: str, reference: Any
) -> Lines:
    if cost == "seconds":
        raise ValueError(
            "cost: solutions do not know their time; choose cost='evaluations' or 'steps', or use hn.compare"
        )
    if reference is None:
        raise ValueError(
            "reference: missing; give the positions at the end, or a much more accurate solution"
        )
    if not isinstance(runs, Mapping):
        runs = {
            method: [run for run in runs if run.method == method]
            for method in dict.fromkeys(run.method for run in runs)
        }
    expected = _end(reference) if isinstance(reference, Solution) else np.asarray(reference, dtype=float)
    lines = {}
    for label, solutions in runs.items():
        solutions = [solutions] if isinstance(solutions, Solution) else solutions
        done = [run for run in solutions if run.success]
        points = [
            (
                float(np.max(np.abs(_end(run) - expected)) / np.max(np.abs(expected))),
                run.nfev if cost == "evaluations" else run.steps,
            )
            for run in done
        ]
        lines[label] = [point for point in points if point[0] > 0], len(solutions) - len(done)
    return lines


def _end(solution: Solution) -> np.ndarray:
    return (solution.q if solution.system.n else solution.x)[:, -1]


QUANTITIES = {
    "drift": "|g|",
    "velocity drift": "|Gv|",
    "energy": "|E − E₀|",
    "steps": "step size h",
    "order": "order",
}


@styled
def plot_comparison(
    solutions: Mapping[str, Solution] | Sequence[Solution], axes: Axes | None = None, what: str = "drift"
) -> Axes:
    """One quantity over time, as computed by several methods.

    Parameters
    ----------
    solutions
        A dict of solutions by name; of a list, the names are the methods.
    axes
        Where to draw; None makes a figure.
    what
        "drift", "velocity drift", "energy", "steps", "order", or the name of a coordinate.
    """
    runs = dict(solutions) if isinstance(solutions, Mapping) else {run.method: run for run in solutions}
    if len(runs) < len(solutions):
        raise ValueError("solutions: two have the same method; give a dict of names and solutions")
    axes, colours = one(axes, 7.4, 4.4), theme().colours
    for number, (label, run) in enumerate(runs.items()):
        style: dict[str, Any] = {
            "label": label,
            "color": colours[number % len(colours)],
            "linestyle": ["-", "--", ":"][number // len(colours) % 3],
            "linewidth": 1.3,
        }
        _draw_quantity(axes, run, what, label, style)
    axes.set(
        xlabel="time t",
        ylabel=QUANTITIES.get(what, symbol(what)),
        title=sentence(what) if what in QUANTITIES else symbol(what),
    )
    if len(runs) <= 4 and max(map(len, runs), default=0) < 12:
        legend(axes)
    else:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
    return axes


def _draw_quantity(axes: Axes, run: Solution, what: str, label: str, style: dict[str, Any]) -> None:
    history: Any = run.history
    energy: Any = run.energy
    if what in ("steps", "order") and history is None:
        raise ValueError(f"solutions: the steps of {label!r} were not kept; solve with keep_steps=True")
    if what == "energy" and energy is None:
        raise ValueError(f"solutions: the energy of {label!r} is not known; give potential=... to System")
    match what:
        case "drift":
            axes.semilogy(*sizes(run.t, run.g), **style)
        case "velocity drift":
            axes.semilogy(*sizes(run.t, run.gv), **style)
        case "energy":
            axes.semilogy(*sizes(run.t[1:], (energy - energy[0])[1:]), **style)
        case "steps":
            axes.semilogy(history.t, np.abs(history.h), drawstyle="steps-post", **style)
        case "order":
            axes.plot(history.t, history.order, drawstyle="steps-post", **style)
        case _:
            names = run.system.names
            if what not in names:
                raise ValueError(
                    f"what: {what!r} is not known; choose one of {', '.join([*QUANTITIES, *names])}"
                )
            t, q = smooth_positions(run)
            axes.plot(t, q[names.index(what)], **style)

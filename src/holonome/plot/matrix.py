"""The saddle-point matrix (M Gᵀ; G 0): its pattern, and its condition along a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from holonome.plot.over_time import saddle_point
from holonome.plot.style import legend, one, sentence, smooth, styled, symbol, theme
from holonome.problem.system import System

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.results.solution import Solution

_NAMED = 24
"""Largest matrix whose rows are named."""
_SQUARES = 400
"""Largest matrix whose entries are drawn as squares rather than as pixels."""
_POINTS = 500
_WORK = 4e9
"""Most points at which the condition is computed, and most operations spent on it."""
_LARGEST = 1e18
"""Condition numbers are cut off here."""


@styled
def plot_sparsity(system: System | Solution, axes: Axes | None = None) -> Axes:
    """Which entries of the matrix (M Gᵀ; G 0) can differ from zero."""
    from matplotlib.colors import ListedColormap

    system = system if isinstance(system, System) else system.system
    axes, model, look = one(axes, 5.2, 5.0), system.model, theme()
    M, C = model.M.sparsity(), model.C.sparsity()
    n, size = model.n, model.n + model.rows
    mass_rows, mass_columns = np.array(M.get_triplet(), int).reshape(2, -1)
    rows, columns = np.array(C.get_triplet(), int).reshape(2, -1)
    entries = M.nnz() + 2 * C.nnz()
    if size <= _SQUARES:
        picture = np.zeros((size, size))
        picture[mass_rows, mass_columns] = 1
        picture[n + rows, columns] = picture[columns, n + rows] = 2
        axes.imshow(
            picture,
            cmap=ListedColormap([look.paper, look.colours[0], look.colours[1]]),
            vmin=0,
            vmax=2,
            interpolation="nearest",
        )
    else:
        for x, y, colour in ((mass_columns, mass_rows, 0), (columns, n + rows, 1), (n + rows, columns, 1)):
            axes.plot(x, y, ",", color=look.colours[colour])
        axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal")
    for place in (n - 0.5,) if model.rows else ():
        axes.axhline(place, color=look.frame, linewidth=0.8)
        axes.axvline(place, color=look.frame, linewidth=0.8)
    axes.grid(visible=False)
    if size <= _NAMED:
        names = [*map(symbol, system.all_names), *system.constraint_names]
        axes.set_yticks(range(size), names)
        axes.set_xticks([])
    for label, colour in (("M  masses", 0), ("G  constraints", 1)) if model.rows else (("M  masses", 0),):
        axes.plot([], [], "s", color=look.colours[colour], label=label)
    axes.legend(
        loc="upper left", bbox_to_anchor=(0.0, -0.02 if size <= _NAMED else -0.07), ncols=2, handlelength=1.0
    )
    axes.set_title(f"{sentence(system.name)}: {entries} of {size}² entries, {100 * entries / size**2:.2g} %")
    return axes


@styled
def plot_condition(solution: Solution, axes: Axes | None = None) -> Axes:
    """Condition number of (M Gᵀ; G 0) and of G over time; singular positions are marked."""
    system = solution.system
    axes, n, m = one(axes), system.n, system.m
    y = solution.states[:, : system.state_size].T
    t, y = smooth(solution, y, lambda: np.concatenate([solution.v, solution.rates]))
    count = int(min(_POINTS, t.size, max(20, _WORK / (10 * (n + m) ** 3))))
    chosen = np.unique(np.linspace(0, t.size - 1, count).astype(int)) if t.size else np.zeros(0, int)
    whole, rows = np.full((2, chosen.size), np.nan)
    for i, k in enumerate(chosen):
        pieces = saddle_point(system, t[k], y[:, k])
        if pieces is not None:
            M, C = pieces
            whole[i] = min(np.linalg.cond(np.block([[M, C.T], [C, np.zeros((m, m))]])), _LARGEST)
            rows[i] = min(np.linalg.cond(C), _LARGEST) if m else np.nan
    axes.semilogy(t[chosen], whole, label="(M Gᵀ; G 0)" if m else "M")
    if m:
        axes.semilogy(t[chosen], rows, label="G")
    for number, time in enumerate(solution.singular_times):
        axes.axvline(
            time,
            color=theme().colours[3],
            linewidth=1.0,
            linestyle=":",
            label="singular position" if number == 0 else None,
        )
    axes.set(xlabel="time t", ylabel="condition number")
    axes.set_title("Condition of the saddle-point matrix" if m else "Condition of the mass matrix")
    legend(axes)
    return axes

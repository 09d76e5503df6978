"""Pictures of this room: eigenvalues, Bode plots, diagrams of branches, curves of kinematics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.plot.style import legend, new_figure, one, save, sentence, styled, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.analysis.branch import Branch
    from holonome.analysis.kinematics import Kinematics
    from holonome.analysis.response import Response
    from holonome.analysis.workspace import Workspace

_MOST = 6


@styled
def plot_eigenvalues(values: np.ndarray, axes: Axes | None = None, file: str | Path | None = None) -> Axes:
    """Eigenvalues in the complex plane; those that grow have another colour."""
    axes = one(axes)
    both = np.concatenate([values, np.conj(values[values.imag > 0])])
    grows = both.real > 1e-9 * np.max(np.abs(both), initial=0.0)
    look = theme()
    for chosen, colour, label in (
        (~grows, look.colours[0], "decay or stay"),
        (grows, look.colours[1], "grow"),
    ):
        if chosen.any():
            axes.plot(both.real[chosen], both.imag[chosen], "o", color=colour, label=label)
    axes.axvline(0.0, color=look.frame, linewidth=0.8)
    axes.axhline(0.0, color=look.frame, linewidth=0.8)
    axes.set(xlabel="real part, 1/s", ylabel="imaginary part, rad/s", title="eigenvalues")
    if grows.any() and not grows.all():
        legend(axes)
    save(axes, file)
    return axes


@styled
def plot_response(found: Response, axes: Any = None, file: str | Path | None = None) -> Axes:
    """Magnitude and phase over frequency."""
    panels = new_figure(6.4, 5.6).subplots(2, 1, sharex=True) if axes is None else np.ravel(axes)
    if len(panels) != 2:
        raise ValueError("axes: give two, for magnitude and phase")
    pairs = [(i, j) for i in range(len(found.outputs)) for j in range(len(found.inputs))][:_MOST]
    finite = np.isfinite(found.values).all(axis=(0, 1)) & (found.frequencies > 0)
    frequencies, values = found.frequencies[finite], found.values[..., finite]
    for i, j in pairs:
        label = found.outputs[i] + (f" by {found.inputs[j]}" if len(found.inputs) > 1 else "")
        panels[0].loglog(frequencies, np.abs(values[i, j]), label=label)
        panels[1].semilogx(frequencies, np.degrees(np.unwrap(np.angle(values[i, j]))))
    by = f" to {found.inputs[0]}" if len(found.inputs) == 1 else ""
    panels[0].set(ylabel="magnitude", title=f"{sentence(found.name)}: response{by}")
    panels[1].set(xlabel="frequency, Hz", ylabel="phase, degrees")
    if len(pairs) > 1 or len(found.inputs) == 1:
        legend(panels[0])
    save(panels[0], file)
    return panels[0]


@styled
def plot_branches(
    branch: Branch, what: str, axes: Axes | None = None, file: str | Path | None = None
) -> Axes:
    """A quantity over the parameter: solid where stable, else dashed, with folds and branch points."""
    axes = one(axes)
    look = theme()
    for k, part in enumerate(branch.everything):
        values, y = part.values, part.quantity(what)
        colour = look.colours[k % len(look.colours)]
        for begin, end, stable in part.stretches:
            axes.plot(values[begin:end], y[begin:end], "-" if stable else "--", color=colour)
        for points, marker, label in ((part.folds, "D", "fold"), (part.branch_points, "o", "branch point")):
            for point in points:
                known = axes.get_legend_handles_labels()[1]
                axes.plot(
                    point.value,
                    part.quantity_at(what, point),
                    marker,
                    color=look.ink,
                    markerfacecolor=look.paper,
                    label=None if label in known else label,
                    zorder=3,
                )
    axes.set(xlabel=branch.name, ylabel=what, title=f"{sentence(branch.system.name)}: equilibria")
    if axes.get_legend_handles_labels()[1]:
        legend(axes)
    save(axes, file)
    return axes


@styled
def plot_kinematics(
    found: Kinematics, names: Sequence[str] | None, axes: Any = None, file: str | Path | None = None
) -> Axes:
    """Curves over the driving coordinate."""
    curves = found.curves(names)
    panels = (
        np.atleast_1d(new_figure(6.4, 1.2 + 2.2 * len(curves)).subplots(len(curves), 1, sharex=True))
        if axes is None
        else np.ravel(axes)
    )
    if len(panels) != len(curves):
        raise ValueError(f"axes: give {len(curves)}, one for each of {', '.join(curves)}")
    label, x = found.abscissa
    for panel, (title, rows) in zip(panels, curves.items(), strict=True):
        for name, values in rows.items():
            panel.plot(x, values, label=name)
        for point in found.dead_points:
            panel.axvline(np.interp(point.index, np.arange(x.size), x), color=theme().frame, linestyle=":")
        panel.set(ylabel=title)
        if len(rows) > 1:
            legend(panel)
    panels[0].set(title=f"{sentence(found.system.name)} over {label}")
    panels[-1].set(xlabel=label)
    save(panels[0], file)
    return panels[0]


@styled
def plot_workspace(
    found: Workspace, name: str, axes: Axes | None = None, file: str | Path | None = None
) -> Axes:
    """The places of a point over the grid, with lines of equal drives."""
    axes = one(axes)
    points = found.points(name)
    if len(points) < 2:
        raise ValueError(f"name: {name!r} is no point; give one such as 'coupler.P'")
    x, y = points[0], points[1]
    look = theme()
    for rows in (zip(x, y, strict=True), zip(x.T, y.T, strict=True)) if x.ndim == 2 else (((x, y),),):
        for a, b in rows:
            axes.plot(a, b, color=look.colours[0], linewidth=0.6)
    axes.set(
        xlabel="x", ylabel="y", aspect="equal", title=f"{sentence(found.system.name)}: where {name} reaches"
    )
    save(axes, file)
    return axes

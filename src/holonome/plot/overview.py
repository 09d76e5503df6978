"""An overview of a run in three panels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holonome.plot.motion import plot_motion, plot_phase
from holonome.plot.over_time import (
    conserves_energy,
    plot_drift,
    plot_energy,
    plot_positions,
    plot_states,
    plot_velocities,
)
from holonome.plot.steps import plot_steps
from holonome.plot.style import house_style, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.problem.drawing import Drawing
    from holonome.results.solution import Solution

_MANY_REJECTIONS, _WIDE_STEPS = 0.3, 1e3


def plot_solution(
    solution: Solution,
    axes: Sequence[Axes] | None = None,
    file: str | Path | None = None,
    drawing: Drawing | None = None,
    dark: bool | None = None,
) -> Sequence[Axes]:
    """An overview in three panels: the motion, what is special about the run, and what was conserved.

    The first shows the mechanism or, without a drawing, its positions. The second shows the step sizes if the
    run was difficult, otherwise the positions or, if these are in the first panel, the first-order states or
    velocities. The third shows the drift or, if the system conserves nothing, the energy or the steps.

    Parameters
    ----------
    solution
        What :func:`holonome.solve` returned.
    axes
        Three axes to draw into; None makes a figure.
    file
        Where to save the picture; the ending says how (.png, .svg, .pdf).
    drawing
        How to draw the mechanism; None takes the drawing of the system.
    dark
        Dark background; see `house_style`.

    Returns
    -------
    sequence of three matplotlib axes
    """
    with house_style(dark):
        if axes is None:
            axes = list(new_figure(14.5, 4.6, shown=file is None).subplots(1, 3, width_ratios=[1.1, 1, 1]))
        if len(axes) != 3:
            raise ValueError(f"axes: {len(axes)} given; plot_solution draws three panels")
        for draw, panel in zip(_choice(solution, drawing), axes, strict=True):
            draw(solution, panel)
        save(axes[0], file)
    return axes


def _choice(solution: Solution, drawing: Drawing | None) -> list[Callable[[Solution, Axes], Axes]]:
    """The functions that draw the panels."""
    system, history = solution.system, solution.history
    drawing = drawing or system.drawing
    if not system.n:
        return [
            plot_states,
            plot_phase if len(system.states) > 1 else plot_steps if history is not None else plot_states,
            plot_drift if system.invariant_count or history is None else plot_steps,
        ]
    first = plot_positions if drawing is None else lambda solution, axes: plot_motion(solution, drawing, axes)
    second = plot_velocities if drawing is None else plot_positions
    if _was_difficult(solution):
        second = plot_steps
    elif system.states and drawing is None:
        second = plot_states
    third = plot_drift
    if not system.m and not system.invariant_count and not conserves_energy(solution):
        third = (
            plot_energy
            if solution.energy is not None
            else plot_steps
            if history is not None and second is not plot_steps
            else plot_phase
        )
    return [first, second, third]


def _was_difficult(solution: Solution) -> bool:
    """Whether the steps are worth showing: stiffness, many rejections, or sizes that differ by orders of
    magnitude apart from the start and the end.
    """
    history = solution.history
    if history is None or solution.steps < 20:
        return False
    h = np.abs(history.h)[5:-1]
    return (
        "→" in solution.method
        or solution.method == "smooth"
        or solution.rejections > _MANY_REJECTIONS * solution.steps
        or bool(np.max(h) > _WIDE_STEPS * np.min(h))
    )

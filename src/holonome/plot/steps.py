"""What the solver did: step sizes, orders, and why steps were rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from holonome.plot.style import legend, one, styled, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.results.solution import Solution

_CAUSES = {
    "error test": ("x", 1),
    "Newton": ("+", 4),
    "projection": ("v", 2),
    "singular": ("D", 6),
    "not finite": ("s", 3),
    "contradiction": ("*", 3),
}
"""Marker and number of the colour."""


@styled
def plot_steps(solution: Solution, axes: Axes | None = None) -> Axes:
    """Step sizes over time, rejected steps marked by cause and, if it changes, the order at the bottom, on
    the right axis.
    """
    history = solution.history
    if history is None:
        raise ValueError("solution: its steps were not kept; solve with keep_steps=True")
    axes, colours = one(axes), theme().colours
    axes.semilogy(
        history.t,
        np.abs(history.h),
        drawstyle="steps-post",
        linewidth=1.2,
        label=f"accepted ({solution.steps})",
    )
    causes = np.array(history.cause)
    for cause in dict.fromkeys(history.cause):
        marker, number = _CAUSES.get(cause, ("o", 5))
        chosen = causes == cause
        axes.semilogy(
            history.rejected_t[chosen],
            np.abs(history.rejected_h[chosen]),
            marker,
            color=colours[number],
            markersize=5,
            zorder=4,
            label=f"{cause} ({chosen.sum()})",
        )
    if history.h.size > 20:
        low = np.min(np.abs(history.h[10:])) / 2
        axes.set_ylim(max(axes.get_ylim()[0], low))
    axes.set(xlabel="time t", ylabel="step size h")
    axes.set_title(f"{solution.method}: {solution.steps} steps, {solution.rejections} rejected")
    orders = np.unique(history.order)
    if orders.size > 1:
        _draw_order(axes, history.t, history.order)
    legend(axes)
    return axes


def _draw_order(axes: Axes, t: np.ndarray, order: np.ndarray) -> None:
    """The order in the lowest fifth of the panel, for which the step sizes make room."""
    low, high = axes.get_ylim()
    axes.set_ylim(low / (high / low) ** 0.32, high)
    right, most = axes.twinx(), int(np.max(order))
    right.fill_between(t, order, step="post", color=theme().frame, alpha=0.22, linewidth=0)
    right.plot(t, order, drawstyle="steps-post", color=theme().frame, linewidth=0.8)
    right.set(ylim=(0, 5 * most), yticks=sorted({1, (most + 1) // 2, most}))
    right.set_ylabel("order", loc="bottom")
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
    axes.set_zorder(right.get_zorder() + 1)
    axes.patch.set_visible(False)

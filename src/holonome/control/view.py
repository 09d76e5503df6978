"""A mechanism as it is now, as an array of pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.animation.inference import inferred
from holonome.plot import house_style, new_figure
from holonome.plot.mechanism import Instant, Look, draw_frame
from holonome.problem.drawing import Drawing
from holonome.solving.simulator import Simulator

_INCHES, _DPI, _MARGIN = 4.0, 100, 0.15
_COLOUR = "#0072B2"


class View:
    """A picture that follows a simulator.

    Parameters
    ----------
    simulator
        What is shown.
    drawing
        How it is drawn; None takes the drawing of the system, or one that is inferred from its coordinates.
    """

    def __init__(self, simulator: Simulator, drawing: Drawing | None = None) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        system = simulator.system
        self.simulator = simulator
        found = drawing or system.drawing or inferred(simulator.solution)
        if found is None:
            raise ValueError(
                f"drawing: system {system.name!r} has none, and no points are found in its coordinates; give "
                "drawing=hn.Drawing(...)"
            )
        self.drawing = found
        with house_style():
            self.figure = new_figure(_INCHES, _INCHES, shown=False)
            self.axes = self.figure.add_subplot()
            self.canvas = FigureCanvasAgg(self.figure)
            draw_frame(self.axes, self.drawing, {name: x[:, None] for name, x in self._points().items()})
            self.axes.set_axis_off()
            self.axes.set_aspect("equal")
        self.low, self.high = np.full(2, np.inf), np.full(2, -np.inf)
        self.drawn: list[Any] = []

    def _points(self) -> dict[str, np.ndarray]:
        sim = self.simulator
        return self.drawing.at(sim.q, sim.p, sim.t, sim.s)

    def pixels(self) -> np.ndarray:
        """Red, green and blue of each pixel, as bytes."""
        with house_style():
            while self.drawn:
                self.drawn.pop().remove()
            points = self._points()
            instant = Instant(self.axes, self.drawing, points, Look(_COLOUR, True, 3.0))
            instant.draw()
            self.drawn.extend(instant.artists)
            self._make_room(np.stack(list(self.drawing.seen(points).values())))
            self.canvas.draw()
        return np.asarray(self.canvas.buffer_rgba())[..., :3].copy()

    def _make_room(self, places: np.ndarray) -> None:
        """Everything that has ever been shown stays within the picture, which does not shrink."""
        self.low = np.minimum(self.low, places.min(axis=0))
        self.high = np.maximum(self.high, places.max(axis=0))
        middle, half = (self.low + self.high) / 2, np.max(self.high - self.low) * (0.5 + _MARGIN) + 1e-12
        self.axes.set_xlim(middle[0] - half, middle[0] + half)
        self.axes.set_ylim(middle[1] - half, middle[1] + half)

"""What an animation shows of a run: the points of its drawing in frames at equal distances in time, and curves of energy and drift."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from holonome.animation.inference import inferred
from holonome.drawing import Drawing
from holonome.plot import SMALLEST
from holonome.result import Solution

MOST_FRAMES = 2000
ROOM = 2_400_000
"""Bytes that the positions of all runs together may take in a page; mechanisms of very many points get fewer frames."""
MOST_POINTS = 2400
"""Of a curve."""
_MOST_COORDINATES = 8
_COARSE = 0.02
"""Stored points are too far apart to draw what lies between if a cubic that leaves out every other one misses it by more, in units of the motion's extent."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A run, and how to draw it: as told, as its system tells, or as inferred; None where there is nothing but coordinates."""

    solution: Solution
    drawing: Drawing | None
    title: str

    @classmethod
    def of(cls, solution: Solution, drawing: Drawing | None = None, title: str | None = None) -> Scene:
        name = solution.system.name.replace("_", " ")
        return cls(solution, drawing or solution.system.drawing or inferred(solution), title or name[:1].upper() + name[1:])

    @cached_property
    def kept(self) -> np.ndarray:
        """Indices of the stored points, each time once."""
        t = self.solution.t
        way = 1.0 if t[-1] >= t[0] else -1.0
        return np.flatnonzero(np.diff(t, prepend=t[0] - way) * way > 0)

    def positions(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and states at any times: from the dense output, or a cubic through positions and velocities; where the points are too sparse, the last one before."""
        solution, kept = self.solution, self.kept
        system = solution.system
        t, values, rates = solution.t[kept], np.concatenate([solution.q, solution.s])[:, kept], np.concatenate([solution.v, np.zeros_like(solution.s)])[:, kept]
        if kept.size < 2:
            found = np.repeat(values[:, :1], times.size, axis=1)
        else:
            from scipy.interpolate import CubicHermiteSpline

            way = 1.0 if t[-1] > t[0] else -1.0
            if system.states:
                rates[system.n:] = solution.rates[system.n:, kept]
            cubic = CubicHermiteSpline(way * t, values, way * rates, axis=1)
            if kept.size > 4:
                every_other = CubicHermiteSpline(way * t[::2], values[:, ::2], way * rates[:, ::2], axis=1)
                missed = np.abs(every_other(way * t[1:-1:2]) - values[:, 1:-1:2])
                # a cubic is 16 times as exact on intervals of half the length
                coarse = np.any(missed / 16 > _COARSE * np.maximum(np.ptp(values, axis=1, keepdims=True), 1e-300))
            else:
                coarse = False
            found = values[:, np.clip(np.searchsorted(way * t, way * times, side="right") - 1, 0, t.size - 1)] if coarse else cubic(way * times)
            if solution.sol is not None and system.n:
                found[: system.n] = solution.sol(times)[0]
        return found[: system.n], found[system.n:]

    def points(self, times: np.ndarray) -> dict[str, np.ndarray]:
        """The points of the drawing at any times."""
        assert self.drawing is not None
        q, s = self.positions(times)
        parameters = self.solution.system.parameters
        return self.drawing.at(q, parameters.namespace(parameters.flat), times, s)

    def small_print(self) -> str:
        """Method, tolerances and steps."""
        solution = self.solution
        atol = f"{float(solution.atol):g}" if np.ndim(solution.atol) == 0 else "by component"
        rejected = f", {solution.rejections} rejected" if solution.rejections else ""
        return f"{solution.method} · rtol {solution.rtol:g}, atol {atol} · {solution.steps} steps{rejected} · {solution.t.size} points"

    def curves(self) -> list[dict[str, Any]]:
        """Panel, name, times and values of each curve; of long runs the points that stand out."""
        solution, t, found = self.solution, self.solution.t, []

        def add(panel: str, name: str, values: np.ndarray) -> None:
            chosen = telling(t, values)
            found.append({"panel": panel, "name": name, "t": t[chosen], "y": values[chosen]})

        if self.drawing is None:
            names, values = solution.system.all_names, np.concatenate([solution.q, solution.s])
            moved = np.argsort(-np.ptp(values, axis=1), kind="stable")[:_MOST_COORDINATES]
            for k in sorted(moved):
                add("coordinates", names[k], values[k])
        if solution.system.n:
            kinetic = solution._over(solution.system.kernel("kinetic energy", _kinetic).address, 1)[0]
            if solution.energy is None:
                add("energy", "kinetic", kinetic)
            else:
                for name, values in (("total", solution.energy), ("kinetic", kinetic), ("potential", solution.energy - kinetic)):
                    add("energy", name, values)
        for name, rows in (("|g|", solution.g), ("|Gv|", solution.gv)):
            if rows.size:
                add("drift", name, np.maximum(np.max(np.abs(rows), axis=0), SMALLEST))
        if solution.energy is not None:
            add("drift", "|E − E₀|", np.maximum(np.abs(solution.energy - solution.energy[0]), SMALLEST))
        for k, values in enumerate(solution.invariant):
            add("drift", f"invariant {k}", np.maximum(np.abs(values - values[0]), SMALLEST))
        return found

    def data(self, room: float) -> dict[str, Any]:
        """All that the page needs to know, within about `room` bytes for the positions."""
        solution = self.solution
        span = [float(solution.t[0]), float(solution.t[-1])]
        known = {"title": self.title, "small": self.small_print(), "trouble": "" if solution.success else solution.message, "span": span,
                 "curves": [{**curve, "t": packed(curve["t"], "<f8"), "y": packed(curve["y"], "<f8")} for curve in self.curves()]}
        if self.drawing is None:
            return known
        drawing = self.drawing
        start = self.points(solution.t[:1])
        values = sum(xyz.size for name, xyz in start.items() if name not in drawing.ground)
        count = max(2, min(MOST_FRAMES, int(room / (16 / 3) / max(values, 1)))) if span[1] != span[0] else 1
        points = self.points(np.linspace(span[0], span[1], count))
        moving = [name for name, xyz in points.items() if np.max(np.ptp(xyz, axis=1)) > 0]
        names = [*moving, *(name for name in points if name not in moving)]
        everything = np.concatenate([points[name] for name in names], axis=1)
        finite = everything[:, np.all(np.isfinite(everything), axis=0)]
        origin = (finite.min(axis=1) + finite.max(axis=1)) / 2
        index = {name: k for k, name in enumerate(names)}
        dimension = len(origin)
        track = np.stack([(points[name] - origin[:, None]).T for name in moving], axis=1) if moving else np.zeros((count, 0, dimension))
        return known | {
            "frames": count, "dimension": dimension, "origin": origin.tolist(), "names": names, "camera": list(drawing.camera), "moving": packed(track, "<f4"),
            "fixed": [(points[name][:, 0] - origin).tolist() for name in names[len(moving):]],
            "links": [[index[name] for name in pair] for pair in drawing.links], "springs": [[index[name] for name in pair] for pair in drawing.springs],
            "bodies": [[index[name] for name in body] for body in drawing.bodies], "ground": [index[name] for name in drawing.ground],
            "sliders": [index[name] for name in drawing.sliders], "traces": [index[name] for name in drawing.traces],
            "guides": [guide for name in drawing.sliders if (guide := _guide(points[name] - origin[:, None])) is not None]}


def packed(values: np.ndarray, kind: str) -> str:
    """Numbers as base64 text, little-endian."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def telling(t: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Indices of points that show a curve: all of them, or the lowest and the highest in each of equal intervals of time, with both ends."""
    if t.size <= MOST_POINTS:
        return np.arange(t.size)
    place = np.minimum((np.abs(t - t[0]) / abs(t[-1] - t[0]) * (MOST_POINTS // 2)).astype(int), MOST_POINTS // 2 - 1)
    order = np.lexsort((values, place))
    last = np.flatnonzero(np.diff(place[order], append=-1))
    first = np.concatenate([[0], last[:-1] + 1])
    return np.unique(np.concatenate([[0], order[first], order[last], [t.size - 1]]))


def _guide(path: np.ndarray) -> list[list[float]] | None:
    """The ends of a path, if it is straight."""
    middle = path.mean(axis=1, keepdims=True)
    axes, lengths, _ = np.linalg.svd(path - middle, full_matrices=False)
    if lengths[0] == 0 or lengths[1] > 1e-3 * lengths[0]:
        return None
    along = axes[:, 0] @ (path - middle)
    return [(middle[:, 0] + axes[:, 0] * end).tolist() for end in (along.min(), along.max())]


def _kinetic(model):
    n = model.n - model.states
    v, M = model.v[:n], model.M[:n, :n]
    return model.y, ca.SX(0, 1), ca.densify(ca.dot(v, M @ v) / 2), None

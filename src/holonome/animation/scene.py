"""What an animation shows of a run: the points of its drawing in frames equally spaced in time, and curves of
energy and drift.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holonome.animation.inference import inferred
from holonome.locks import cached_property
from holonome.plot import SMALLEST
from holonome.plot.over_time import conserves_energy
from holonome.problem.drawing import GROUPS, SINGLE, Drawing
from holonome.problem.solids import outward
from holonome.results.quantities import Acting, acting, energies, quantity
from holonome.results.solution import Solution

MOST_FRAMES = 2000
ROOM = 3_000_000
"""Bytes that the positions of all runs together may take in a page; mechanisms of very many points get fewer
frames.
"""
MOST_POINTS = 2400
"""Most points of a curve."""
_MOST_COORDINATES = 8
_LONGEST_ARROW = 0.25
"""In units of the extent of the mechanism."""
_COARSE = 0.02
"""Stored points are too far apart for interpolation if the error of a polynomial through them is larger, in
units of the motion's extent.
"""


class Arrow(NamedTuple):
    """A force along a film: its name and both ends; of a moment in the plane, x shows how large it is."""

    name: str
    begin: np.ndarray
    end: np.ndarray
    is_moment: bool


@dataclass(frozen=True, eq=False)
class Scene:
    """A run and its drawing: the given one, that of the system, or an inferred one; None where only
    coordinates can be shown.
    """

    solution: Solution
    drawing: Drawing | None
    title: str
    graphs: Sequence[str | Sequence[str]] | None = None
    forces: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        solution: Solution,
        drawing: Drawing | None = None,
        title: str | None = None,
        graphs: Sequence[str | Sequence[str]] | None = None,
        forces: Sequence[str] = (),
    ) -> Scene:
        name = solution.system.name.replace("_", " ")
        return cls(
            solution,
            drawing or solution.system.drawing or inferred(solution),
            title or name[:1].upper() + name[1:],
            graphs,
            forces,
        )

    @cached_property
    def kept(self) -> np.ndarray:
        """Indices of the stored points, without repeated times."""
        t = self.solution.t
        direction = 1.0 if t[-1] >= t[0] else -1.0
        return np.flatnonzero(np.diff(t, prepend=t[0] - direction) * direction > 0)

    def positions(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and states at any times: from the dense output, or by interpolation of values and
        rates; if the points are too far apart for that, the values of the point before.
        """
        solution, n = self.solution, self.solution.system.n
        if solution.sol is not None and n:
            return solution.sol(times)[0], _between(
                solution.t[self.kept], [solution.s[:, self.kept], solution.rates[n:, self.kept]], times
            )
        parts = [[solution.q, solution.v, solution.a], [solution.s, solution.rates[n:]]]
        q, s = (
            _between(solution.t[self.kept], [values[:, self.kept] for values in part], times)
            for part in parts
        )
        return q, s

    def points(self, times: np.ndarray) -> dict[str, np.ndarray]:
        """The points of the drawing, if there is one, at any times."""
        if self.drawing is None:
            return {}
        q, s = self.positions(times)
        parameters = self.solution.system.parameters
        return self.drawing.at(q, parameters.namespace(parameters.flat), times, s)

    @cached_property
    def reach(self) -> float:
        """Length of the longest arrows."""
        assert self.drawing is not None
        tracks = {name for track in self.drawing.tracks for name in track}
        found = self.points(self.solution.t[self.kept]).items()
        points = np.stack([xyz for name, xyz in found if name not in tracks])
        finite = points[..., np.all(np.isfinite(points), axis=(0, 1))]
        if not finite.size:
            return 1.0
        pose, run = np.max(np.ptp(finite, axis=0)), np.max(np.ptp(finite, axis=(0, 2)))
        return _LONGEST_ARROW * float(max(pose, 0.4 * run))

    @cached_property
    def forces_along_the_run(self) -> list[tuple[Acting, float]]:
        """The forces to draw, each with the length of an arrow for one unit: large ones take about a quarter
        of the mechanism, and so do large moments; short peaks may lead out of the picture.
        """
        found = [part for name in self.forces for part in acting(self.solution, name)]
        scales = {}
        for kind in (False, True):
            sizes = [np.linalg.norm(part.value, axis=0) for part in found if part.is_moment == kind]
            usual = np.percentile(np.concatenate(sizes), 95) if sizes else 0.0
            scales[kind] = self.reach / usual if usual > 0 else 0.0
        return [(part, scales[part.is_moment]) for part in found]

    def arrows(self, times: np.ndarray) -> list[Arrow]:
        """Arrows of forces and moments at any times."""
        t, way = self.solution.t[self.kept], 1.0 if self.solution.t[-1] >= self.solution.t[0] else -1.0
        found = []
        for part, scale in self.forces_along_the_run if self.forces else ():
            place, value = part.place[:, self.kept], part.value[:, self.kept] * scale
            begin = _smooth(way * t, place, way * times)
            moved = np.stack([np.interp(way * times, way * t, row) for row in value])
            if len(moved) < len(begin):  # a moment in the plane
                moved = np.concatenate([moved, np.zeros_like(moved)])
            found.append(Arrow(part.name, begin, begin + moved, part.is_moment))
        return found

    def small_print(self) -> str:
        """Method, tolerances and steps."""
        solution = self.solution
        given = np.asarray(solution.atol)
        tolerances = np.unique(given[given < 1e100])  # components that are not tested have a huge tolerance
        atol = _number(float(tolerances[0])) if tolerances.size == 1 else "by component"
        rejected = f", {solution.rejections} rejected" if solution.rejections else ""
        return (
            f"{solution.method} · rtol {_number(solution.rtol)}, atol {atol} · {solution.steps} "
            f"steps{rejected} · {solution.t.size} points"
        )

    def curves(self) -> list[dict[str, Any]]:
        """Panel, name, times and values of each curve; long runs are thinned out."""
        solution, t = self.solution, self.solution.t
        found = []

        def add(panel: str, name: str, values: np.ndarray) -> None:
            chosen = telling(t, values)
            found.append({"panel": panel, "name": name, "t": t[chosen], "y": values[chosen]})

        if self.graphs is not None:
            for panel, name, values in named_curves(solution, self.graphs):
                add(panel, name, values)
            return found
        if self.drawing is None or not solution.system.n:
            names, values = solution.system.all_names, np.concatenate([solution.q, solution.s])
            moved = np.argsort(-np.ptp(values, axis=1), kind="stable")[:_MOST_COORDINATES]
            for k in sorted(moved):
                add("coordinates", names[k], values[k])
        if solution.system.n:
            for name, values in energies(solution).items():
                add("energy", name, values)
        for panel, name, values in _drifts(solution):
            add(panel, name, values)
        return found

    def data(self, room: float) -> dict[str, Any]:
        """The data of the page, with about `room` bytes for the positions."""
        solution = self.solution
        span = [float(solution.t[0]), float(solution.t[-1])]
        known = {
            "title": self.title,
            "small": self.small_print(),
            "trouble": "" if solution.success else solution.message,
            "span": span,
            "curves": [
                {**curve, "t": packed(curve["t"], "<f8"), "y": packed(curve["y"], "<f8")}
                for curve in self.curves()
            ],
        }
        return known if self.drawing is None else known | self._moving_points(self.drawing, span, room)

    def _moving_points(self, drawing: Drawing, span: list[float], room: float) -> dict[str, Any]:
        """The drawing, and its points in each frame."""
        start = self.points(self.solution.t[:1])
        values = sum(xyz.size for name, xyz in start.items() if name not in drawing.ground)
        count = max(2, min(MOST_FRAMES, int(room / (16 / 3) / max(values, 1)))) if span[1] != span[0] else 1
        times = np.linspace(span[0], span[1], count)
        points = self.points(times)
        forces = self.arrows(times)
        for k, arrow in enumerate(forces):
            points |= {_arrow(k, arrow): arrow.begin, f"{_arrow(k, arrow)} tip": arrow.end}
        moving = [name for name, xyz in points.items() if np.max(np.ptp(xyz, axis=1)) > 0]
        names = [*moving, *(name for name in points if name not in moving)]
        everything = np.concatenate([points[name] for name in names], axis=1)
        finite = everything[:, np.all(np.isfinite(everything), axis=0)]
        origin = (finite.min(axis=1) + finite.max(axis=1)) / 2
        dimension = len(origin)
        track = (
            np.stack([(points[name] - origin[:, None]).T for name in moving], axis=1)
            if moving
            else np.zeros((count, 0, dimension))
        )
        return {
            "frames": count,
            "dimension": dimension,
            "origin": origin.tolist(),
            "names": names,
            "camera": list(drawing.camera),
            "moving": packed(track, "<f4"),
            "fixed": [(points[name][:, 0] - origin).tolist() for name in names[len(moving) :]],
            **_numbered(drawing, forces, {name: k for k, name in enumerate(names)}),
            "outward": outward(drawing.bodies, {name: xyz[:, 0] for name, xyz in points.items()})
            if dimension == 3
            else [],
            "reach": self.reach,
            "guides": [_guide(points[name] - origin[:, None]) for name in drawing.sliders],
        }


def named_curves(
    solution: Solution, graphs: Sequence[str | Sequence[str]]
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Panel, name and values of the curves that a user asks for: a panel for each entry of the list."""
    for entry in graphs:
        names = [entry] if isinstance(entry, str) else list(entry)
        for name in names:
            if name == "drift":
                yield from _drifts(solution)
                continue
            for label, values in quantity(solution, name).items():
                yield ", ".join(names) if len(names) < 4 else f"{names[0]} … {names[-1]}", label, values


def _drifts(solution: Solution) -> Iterator[tuple[str, str, np.ndarray]]:
    """How far constraints, energy and invariants are from being kept."""
    for name, rows in (("|g|", solution.g), ("|Gv|", solution.gv)):
        if rows.size:
            yield "drift", name, np.maximum(np.max(np.abs(rows), axis=0), SMALLEST)
    if solution.energy is not None and conserves_energy(solution):
        yield "drift", "|E − E₀|", np.maximum(np.abs(solution.energy - solution.energy[0]), SMALLEST)
    for k, values in enumerate(solution.invariant):
        yield "drift", f"invariant {k}", np.maximum(np.abs(values - values[0]), SMALLEST)


def _smooth(t: np.ndarray, values: np.ndarray, times: np.ndarray) -> np.ndarray:
    """A cubic spline through values, which are all finite in a run."""
    from scipy.interpolate import CubicSpline

    if t.size < 2:
        return np.repeat(values[:, :1], times.size, axis=1)
    return CubicSpline(t, values, axis=1)(times)


def _between(t: np.ndarray, derivatives: Sequence[np.ndarray], times: np.ndarray) -> np.ndarray:
    """Values at other times by Hermite interpolation of degree 5 or 3, whichever reproduces every second
    point better from the others.
    """
    values = derivatives[0]
    if t.size < 2 or not values.size:
        return np.repeat(values[:, :1], times.size, axis=1)
    errors = {}
    for count in range(2, len(derivatives) + 1):
        known = derivatives[:count]
        missed = (
            hermite(t[::2], [x[:, ::2] for x in known], t[1:-1:2]) - values[:, 1:-1:2]
            if t.size > 4
            else np.zeros((1, 1))
        )
        extent = np.maximum(np.ptp(values, axis=1, keepdims=True), 1e-300)
        error = np.max(np.abs(missed) / extent, initial=0.0) / 4**count  # on intervals of half the length
        errors[count] = error if all(np.all(np.isfinite(x)) for x in known) else np.inf
    count = min(errors, key=lambda key: errors[key])
    if errors[count] > _COARSE:
        return values[:, _before(t, times, t.size - 1)]
    return hermite(t, derivatives[:count], times)


def hermite(t: np.ndarray, derivatives: Sequence[np.ndarray], times: np.ndarray) -> np.ndarray:
    """Piecewise polynomial through values, rates and, if given, second derivatives, each (n, points)."""
    k = _before(t, times, t.size - 2)
    h = t[k + 1] - t[k]
    x = (times - t[k]) / h
    if len(derivatives) == 2:
        begin, end = [1 - x**2 * (3 - 2 * x), x * (1 - x) ** 2], [x**2 * (3 - 2 * x), x**2 * (x - 1)]
    else:
        begin = [
            1 - x**3 * (10 - 15 * x + 6 * x**2),
            x - x**3 * (6 - 8 * x + 3 * x**2),
            x**2 * (1 - x) ** 3 / 2,
        ]
        end = [x**3 * (10 - 15 * x + 6 * x**2), -(x**3) * (4 - 7 * x + 3 * x**2), x**3 * (1 - x) ** 2 / 2]
    terms = [h**j * (begin[j] * y[:, k] + end[j] * y[:, k + 1]) for j, y in enumerate(derivatives)]
    return np.sum(terms, axis=0)


def _before(t: np.ndarray, times: np.ndarray, last: int) -> np.ndarray:
    """Indices of the stored points before these times, up to ``last``."""
    direction = 1.0 if t[-1] > t[0] else -1.0
    return np.clip(np.searchsorted(direction * t, direction * times, side="right") - 1, 0, last)


def _number(x: float) -> str:
    return re.sub(r"e-0?", "e−", f"{x:g}")


def packed(values: np.ndarray, kind: str) -> str:
    """Numbers as base64 text, little-endian."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def telling(t: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Indices of the points that represent a curve: all of them or, of many, both ends and the lowest and
    highest in each of equal time intervals.
    """
    if t.size <= MOST_POINTS:
        return np.arange(t.size)
    place = np.minimum(
        (np.abs(t - t[0]) / abs(t[-1] - t[0]) * (MOST_POINTS // 2)).astype(int), MOST_POINTS // 2 - 1
    )
    order = np.lexsort((values, place))
    last = np.flatnonzero(np.diff(place[order], append=-1))
    first = np.concatenate([[0], last[:-1] + 1])
    return np.unique(np.concatenate([[0], order[first], order[last], [t.size - 1]]))


def _arrow(k: int, arrow: Arrow) -> str:
    return f"{'moment' if arrow.is_moment else 'force'} {k + 1} of {arrow.name}"


def _numbered(drawing: Drawing, forces: Sequence[Arrow], index: Mapping[str, int]) -> dict[str, Any]:
    """The parts of a drawing, and the forces, by the numbers of their points."""
    ends = [(_arrow(k, arrow), f"{_arrow(k, arrow)} tip") for k, arrow in enumerate(forces)]
    return {
        **{part: [[index[name] for name in group] for group in getattr(drawing, part)] for part in GROUPS},
        **{part: [index[name] for name in getattr(drawing, part)] for part in SINGLE},
        "symbols": [[kind, *(index[name] for name in names)] for kind, *names in drawing.symbols],
        "forces": [
            {"name": arrow.name, "ends": [index[name] for name in pair], "moment": arrow.is_moment}
            for arrow, pair in zip(forces, ends, strict=True)
        ],
    }


def _guide(path: np.ndarray) -> list[list[float]] | None:
    """The ends of a path, if it is straight."""
    middle = path.mean(axis=1, keepdims=True)
    axes, lengths, _ = np.linalg.svd(path - middle, full_matrices=False)
    if lengths[0] == 0 or lengths[1] > 1e-3 * lengths[0]:
        return None
    along = axes[:, 0] @ (path - middle)
    return [(middle[:, 0] + axes[:, 0] * end).tolist() for end in (along.min(), along.max())]

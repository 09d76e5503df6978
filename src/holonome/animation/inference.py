"""Infer a drawing for a system that has none: points from the names of its coordinates, bars and joints from
its constraints.

Coordinates named x and y (x1 and y1, bob_x and bob_y; with z for points in space) are a point; with an angle
(phi1, theta_bob) they are a body in the plane. The meaning of a constraint row follows from its gradient
along the run. Let n be the part of the gradient that belongs to a point r::

    rod between two points        n₁ = −n₂, parallel to r₁ − r₂
    rod from a fixed point c      c = r − n/κ is constant, with the curvature κ = τᵀ(∂n/∂r)τ, τ ⟂ n, |τ| = 1
    rod from a guided point       the same, where the constraint and c depend on time
    straight guide                κ = 0, and n keeps its direction
    joint of a body at r + R(φ)a  g_φ = n · R′(φ)a, linear in a

This depends neither on how a constraint is written, |r|² − ℓ² or |r| − ℓ, nor on how accurately a run
satisfies it.  Springs are found in the same way, from the deformations of elastic elements.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from holonome.problem.checks import difference
from holonome.problem.drawing import Drawing
from holonome.problem.system import System
from holonome.results.solution import Solution

_NAME = re.compile(r"(?:(?P<axis>[xyzXYZ])_?(?P<key>\w*))|(?:(?P<before>\w+?)_?(?P<last>[xyzXYZ]))")
_RATES = ("v", "V", "vel", "velocity", "u", "w", "omega", "a", "acc", "p", "F", "f", "d")
"""Prefixes of x and y in names that are not positions."""
_ANGLES = ("phi", "varphi", "theta", "alpha", "psi", "angle", "rotation", "rot")
_SAMPLES = 9
_EXACT, _CLOSE = 1e-5, 1e-3
"""Tolerances for gradients, and for lengths in a run that drifts, both relative."""
_MOST_ENTRIES = 1_000_000
"""Of the gradients; larger systems are not searched for rods."""
_MOST_TRACES = 3


@dataclass(frozen=True)
class Point:
    """A point mass or, with an angle, a body: rows of the coordinates."""

    name: str
    rows: list[int]
    angle: int | None = None

    @property
    def columns(self) -> list[int]:
        return self.rows if self.angle is None else [*self.rows, self.angle]

    def place(self, q: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Where its point a is, r + R(φ) a, in one position or many."""
        if self.angle is None:
            return q[self.rows]
        sin, cos = np.sin(q[self.angle]), np.cos(q[self.angle])
        return np.stack(
            [q[self.rows[0]] + cos * a[0] - sin * a[1], q[self.rows[1]] + sin * a[0] + cos * a[1]]
        )


def inferred(solution: Solution) -> Drawing | None:
    """A drawing from names and constraints, or None if there are no points."""
    system = solution.system
    if not system.n:
        points = named_points(list(system.states))
        return (
            Drawing(
                lambda s: {point.name: tuple(s[point.rows]) for point in points},
                traces=[point.name for point in points],
            )
            if points
            else None
        )
    if points := named_points(system.names):
        return _Search(solution, points).drawing()
    if system.names == [f"q{i}" for i in range(system.n)]:
        for size in (2, 3):
            points = [
                Point(f"{k + 1}", list(range(size * k, size * (k + 1)))) for k in range(system.n // size)
            ]
            if (
                size * len(points) == system.n
                and (found := _Search(solution, points)).links
                and found.explained == system.model.position_rows
            ):
                return found.drawing()
    return None


def named_points(names: Sequence[str]) -> list[Point]:
    """Points and bodies among coordinates, by their names; only points in space, if there are any."""
    groups: dict[str, dict[str, int]] = {}
    for row, name in enumerate(names):
        if match := _NAME.fullmatch(name):
            key, axis = (match["key"], match["axis"]) if match["axis"] else (match["before"], match["last"])
            if match["axis"] or key not in _RATES:
                groups.setdefault(key, {}).setdefault(axis.lower(), row)
    points = []
    for key, axes in groups.items():
        if len(axes) >= 2:
            angles = {form.format(word, key) for word in _ANGLES for form in ("{0}{1}", "{0}_{1}", "{1}_{0}")}
            angle = (
                next((row for row, name in enumerate(names) if name in angles), None)
                if len(axes) == 2
                else None
            )
            points.append(Point(key or "point", [axes[axis] for axis in "xyz" if axis in axes], angle))
    return [point for point in points if len(point.rows) == max(len(other.rows) for other in points)]


class _Search:
    """Examines each row of the constraints and of the elastic deformations at a few instants of a run."""

    def __init__(self, solution: Solution, points: list[Point]) -> None:
        self.points, self.system = points, solution.system
        self.links: list[tuple[str, str]] = []
        self.springs: list[tuple[str, str]] = []
        self.sliders: list[str] = []
        self.bodies: list[list[str]] = []
        self.fixed: dict[str, np.ndarray] = {}
        self.driven: dict[str, Callable[[float, np.ndarray], np.ndarray]] = {}
        self.joints: list[tuple[str, int, np.ndarray]] = []  # name, number of the body, place on it
        self.explained = 0
        self.gradients = _gradients(self.system)
        if self.gradients is None:
            return
        at = np.unique(np.linspace(0, solution.t.size - 1, _SAMPLES).astype(int))
        self.t, self.q = solution.t[at], solution.q.T[at]
        r = self.q[:, [row for point in points for row in point.rows]]
        self.scale = max(float(np.max(np.ptp(r, axis=0))), float(np.max(np.abs(r)))) or 1.0
        self.G = np.array([self.gradients(t, q) for t, q in zip(self.t, self.q, strict=True)])
        if np.all(np.isfinite(self.G)):
            self._look()

    def _look(self) -> None:
        G, groups = self.G, {}
        for row, size in enumerate(np.max(np.abs(G), axis=(0, 2))):
            here = np.any(np.abs(G[:, row]) > 1e-9 * size, axis=0)
            touched = tuple(k for k, point in enumerate(self.points) if np.any(here[point.columns]))
            if 1 <= len(touched) <= 2 and np.sum(here) == np.sum(
                here[[column for k in touched for column in self.points[k].columns]]
            ):
                turns = any(self.points[k].angle is not None and here[self.points[k].angle] for k in touched)
                if (
                    turns
                    and row < self.system.model.position_rows
                    and np.any(here[self.points[touched[0]].rows])
                ):
                    groups.setdefault(touched, []).append(row)
                elif not turns and (
                    self._rod(row, *touched) if len(touched) == 2 else self._rod_or_guide(row, touched[0])
                ):
                    self.explained += row < self.system.model.position_rows
        for touched, rows in groups.items():
            self._joint(touched, G[:, rows])
        self._outline_bodies()

    def _connect(self, row: int, first: str, second: str) -> bool:
        (self.links if row < self.system.model.position_rows else self.springs).append((first, second))
        return True

    def _ground(self, place: np.ndarray) -> str:
        """The name of a fixed point, which may be known already."""
        for name, known in self.fixed.items():
            if np.linalg.norm(known - place) < _CLOSE * self.scale:
                return name
        self.fixed[f"ground {len(self.fixed) + 1}"] = place
        return f"ground {len(self.fixed)}"

    def _rod(self, row: int, i: int, j: int) -> bool:
        """A rod or a spring between two points."""
        first, second = self.points[i], self.points[j]
        n = self.G[:, row, first.rows]
        opposite = -self.G[:, row, second.rows]
        between = self.q[:, first.rows] - self.q[:, second.rows]
        lengths = np.linalg.norm(n, axis=1) * np.linalg.norm(between, axis=1)
        if (
            np.any(lengths == 0)
            or not np.allclose(n, opposite, rtol=0, atol=_EXACT * np.max(np.abs(n)))
            or np.any(np.abs(np.sum(n * between, axis=1)) < (1 - _EXACT) * lengths)
        ):
            return False
        return self._connect(row, first.name, second.name)

    def _rod_or_guide(self, row: int, k: int) -> bool:
        """A row that involves one point: its distance from a fixed or driven point, or a straight guide."""
        point = self.points[k]
        r = self.q[:, point.rows]
        n = self.G[:, row, point.rows]
        length = np.linalg.norm(n, axis=1)
        if np.any(length < 1e-9 * np.max(length)):
            return False
        bend = np.array([self._curvature(row, point, t, q) for t, q in zip(self.t, self.q, strict=True)])
        straight = np.abs(bend) * self.scale < _EXACT * length
        if np.any(straight):
            keeps_direction = np.allclose(n / length[:, None], n[0] / length[0], rtol=0, atol=_EXACT)
            if not (
                np.all(straight)
                and keeps_direction
                and len(point.rows) == 2
                and row < self.system.model.position_rows
            ):
                return False
            self.sliders.append(point.name)
            return True
        centres = r - n / bend[:, None]
        if np.max(np.ptp(centres, axis=0)) < _CLOSE * self.scale:
            return self._connect(row, self._ground(np.mean(centres, axis=0)), point.name)
        distance = np.linalg.norm(r - centres, axis=1)
        if (
            row >= self.system.model.position_rows
            or not ca.depends_on(self.system.model.g[row], self.system.model.t)
            or np.ptp(distance) > _CLOSE * self.scale
        ):
            return False
        name = f"driven {len(self.driven) + 1}"
        self.driven[name] = lambda t, q: (
            q[point.rows] - self.gradients(t, q)[row, point.rows] / self._curvature(row, point, t, q)  # type: ignore
        )
        self.sliders.append(name)
        return self._connect(row, name, point.name)

    def _curvature(self, row: int, point: Point, t: float, q: np.ndarray) -> float:
        """τᵀ (∂n/∂r) τ."""
        assert self.gradients is not None
        n = self.gradients(t, q)[row, point.rows]
        step = 1e-4 * self.scale
        tau = np.zeros(q.size)
        across = np.array([-n[1], n[0]]) if n.size == 2 else np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        tau[point.rows] = across / np.linalg.norm(across)
        change = self.gradients(t, q + step * tau)[row] - self.gradients(t, q - step * tau)[row]
        return float(change @ tau / (2 * step))

    def _joint(self, touched: tuple[int, ...], G: np.ndarray) -> None:
        """A point that two bodies share, or that slides on or is fixed to the frame: a from g_φ = n · R′(φ)
        a, by least squares over all rows and times.
        """
        owners, places = [], []
        for k in touched:
            body, a = self.points[k], np.zeros(2)
            if body.angle is not None:
                sin, cos = np.sin(self.q[:, body.angle]), np.cos(self.q[:, body.angle])
                turned = np.array([[-sin, -cos], [cos, -sin]])  # R′(φ)
                A = np.einsum("kri,ijk->krj", G[:, :, body.rows], turned).reshape(-1, 2)
                b = G[:, :, body.angle].ravel()
                a, *_ = np.linalg.lstsq(A, b, rcond=1e-6)
                if np.any(np.abs(A @ a - b) > _EXACT * self.scale * np.max(np.abs(G))):
                    return
            owners.append((k, a))
            places.append(body.place(self.q.T, a))
        directions = np.linalg.matrix_rank(
            G[..., self.points[touched[0]].rows].reshape(-1, 2), tol=1e-6 * np.max(np.abs(G))
        )
        apart = (
            places[0] - places[1]
            if len(touched) == 2
            else places[0] - places[0].mean(axis=1, keepdims=True)
            if directions == 2
            else np.zeros(2)
        )
        if np.max(np.abs(apart)) > 10 * _CLOSE * self.scale:
            return
        name = f"joint {len({joint for joint, _, _ in self.joints} - set(self.fixed)) + 1}"
        if len(touched) == 1 and directions == 2:
            name = self._ground(places[0].mean(axis=1))
        elif len(touched) == 1:
            self.sliders.append(name)
        self.joints += [(name, k, a) for k, a in owners]
        self.explained += G.shape[1]

    def _outline_bodies(self) -> None:
        """A bar between two joints of a body, or from its joint to its centre; an outline where three points
        are not in line.
        """
        for k, body in enumerate(self.points):
            places = {name: a for name, owner, a in self.joints if owner == k}
            if body.angle is None or not places:
                continue
            if len(places) < 3:
                places[body.name] = np.zeros(2)
            around = np.array(list(places.values())) - np.mean(list(places.values()), axis=0)
            length, width = np.linalg.svd(around, compute_uv=False)
            if len(around) > 2 and width > _CLOSE * length:
                self.bodies.append(
                    [list(places)[i] for i in np.argsort(np.arctan2(around[:, 1], around[:, 0]))]
                )
            elif length > 0:
                self.links.append(
                    max(
                        itertools.combinations(places, 2),
                        key=lambda pair: float(np.linalg.norm(places[pair[0]] - places[pair[1]])),
                    )
                )

    def drawing(self) -> Drawing:
        """The result; free points leave traces, or only the last one if there are many."""
        points, joints, fixed, driven = self.points, self.joints, self.fixed, self.driven

        def places(t, q):
            found = {point.name: tuple(q[point.rows]) for point in points}
            found |= {name: tuple(points[k].place(q, a)) for name, k, a in joints}
            times = np.broadcast_to(t, q.shape[1:])
            for name, centre in driven.items():
                found[name] = tuple(
                    centre(float(times), q)
                    if q.ndim == 1
                    else np.array([centre(*at) for at in zip(times, q.T, strict=True)]).T
                )
            return found | {name: tuple(place) for name, place in fixed.items()}

        held = [name for name in dict.fromkeys(self.sliders) if self.sliders.count(name) > 1]  # by two guides
        sliders = [name for name in dict.fromkeys(self.sliders) if name not in held]
        inner = [k for k in range(len(points)) if sum(owner == k for _, owner, _ in joints) > 1]
        free = [
            *(name for name, _, _ in joints),
            *(point.name for k, point in enumerate(points) if k not in inner),
        ]
        free = [name for name in dict.fromkeys(free) if name not in {*fixed, *held, *sliders}]
        return Drawing(
            places,
            links=self.links,
            springs=self.springs,
            ground=[*fixed, *held],
            sliders=sliders,
            bodies=self.bodies,
            traces=free if len(free) <= _MOST_TRACES else free[-1:],
        )


def _gradients(system: System) -> Callable[[float, np.ndarray], np.ndarray] | None:
    """Derivatives of g and of the elastic deformations with respect to q; None where there are none, or too
    many, or they depend on unknowns.
    """
    model = system.model
    rows = model.g if model.elastic is None else ca.vertcat(model.g, model.elastic.c)
    if system.unknowns or not rows.numel() or rows.numel() * system.n > _MOST_ENTRIES:
        return None
    if system.paths.get("constraint") in ("numba", "python"):
        constraint = system.functions["constraint"]
        return lambda t, q: difference(
            lambda x: constraint.evaluate({"t": t, "q": x, "v": np.zeros(q.size)}), q
        )
    function = ca.Function("gradients", [model.t, model.q, model.p], [ca.densify(ca.jacobian(rows, model.q))])
    parameters, rest = np.zeros(model.p.numel()), np.zeros(model.n - system.n)
    parameters[: system.parameters.size] = system.parameters.flat
    return lambda t, q: np.asarray(function(t, np.concatenate([q, rest]), parameters))[:, : system.n]

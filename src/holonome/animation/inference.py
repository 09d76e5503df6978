"""A drawing for a system that has none: points from the names of its coordinates, bars and joints from its constraints.

Coordinates named x and y (x1 and y1, bob_x and bob_y; with z for points in space) are a point; with an angle (phi1, theta_bob) they are a body in the plane. What a row of the
constraints says is seen in its gradient along the run. Let n be its part that belongs to a point r::

    rod between two points        n₁ = −n₂, parallel to r₁ − r₂
    rod from a fixed point c      c = r − n/κ is the same at all times, with the curvature κ = τᵀ(∂n/∂r)τ, τ ⟂ n, |τ| = 1
    straight guide                κ = 0, and n keeps its direction
    joint of a body at r + R(φ)a  g_φ = n · R′(φ)a, linear in a

This depends neither on how a constraint is written, |r|² − ℓ² or |r| − ℓ, nor on how well a run keeps it. Deformations of elastic elements are looked at in the same way: springs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from holonome.drawing import Drawing
from holonome.result import Solution
from holonome.system import System

_NAME = re.compile(r"(?:(?P<axis>[xyzXYZ])_?(?P<key>\w*))|(?:(?P<before>\w+?)_?(?P<last>[xyzXYZ]))")
_RATES = ("v", "V", "vel", "velocity", "u", "w", "omega", "a", "acc", "p", "F", "f", "d")
"""What stands before x and y if they are no positions."""
_ANGLES = ("phi", "theta", "alpha", "psi", "angle", "varphi", "rotation", "rot")
_SAMPLES = 9
_EXACT = 1e-5
_MOST_TRACES = 3


@dataclass
class _Point:
    """A point mass or, with an angle, a body: rows of the coordinates."""

    name: str
    rows: list[int]
    angle: int | None = None

    @property
    def columns(self) -> list[int]:
        return self.rows if self.angle is None else [*self.rows, self.angle]


@dataclass
class _Parts:
    """What was found: joints of bodies by name as (body, a), fixed points, and the elements of a drawing."""

    joints: dict[str, tuple[int, np.ndarray]] = field(default_factory=dict)
    fixed: dict[str, np.ndarray] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    springs: list[tuple[str, str]] = field(default_factory=list)
    sliders: list[str] = field(default_factory=list)
    bodies: list[list[str]] = field(default_factory=list)
    explained: int = 0

    def ground(self, place: np.ndarray, scale: float) -> str:
        """The name of a fixed point, which may be known already."""
        for name, known in self.fixed.items():
            if np.linalg.norm(known - place) < 1e-3 * scale:
                return name
        self.fixed[f"ground {len(self.fixed) + 1}"] = place
        return f"ground {len(self.fixed)}"


def inferred(solution: Solution) -> Drawing | None:
    """A drawing from names and constraints, or None where there is nothing like a point."""
    system = solution.system
    if not solution.t.size:
        return None
    points = named_points(system.names if system.n else list(system.states))
    if not system.n:
        return _drawing(points, _Parts(), on_states=True) if points else None
    if points:
        return _drawing(points, _elements(solution, points))
    if system.names != [f"q{i}" for i in range(system.n)] or not system.model.position_rows:
        return None
    for size in (2, 3):
        if system.n % size == 0:
            points = [_Point(f"{k + 1}", list(range(size * k, size * (k + 1)))) for k in range(system.n // size)]
            parts = _elements(solution, points)
            if parts.links and parts.explained == system.model.position_rows:
                return _drawing(points, parts)
    return None


def named_points(names: Sequence[str]) -> list[_Point]:
    """Points among coordinates, by their names."""
    groups: dict[str, dict[str, int]] = {}
    for row, name in enumerate(names):
        match = _NAME.fullmatch(name)
        if match:
            key, axis = (match["key"], match["axis"]) if match["axis"] else (match["before"], match["last"])
            if match["axis"] or key not in _RATES:
                groups.setdefault(key, {}).setdefault(axis.lower(), row)
    points = [_Point(key or "point", [axes[axis] for axis in "xyz" if axis in axes]) for key, axes in groups.items() if len(axes) >= 2]
    keys = [key for key, axes in groups.items() if len(axes) >= 2]
    for point, key in zip(points, keys, strict=True):
        if len(point.rows) == 2:
            angles = {f"{word}{key}" for word in _ANGLES} | {f"{word}_{key}" for word in _ANGLES} | {f"{key}_{word}" for word in _ANGLES}
            point.angle = next((row for row, name in enumerate(names) if name in angles), None)
    if any(len(point.rows) == 3 for point in points):
        points = [point for point in points if len(point.rows) == 3]
    return points


def _elements(solution: Solution, points: list[_Point]) -> _Parts:
    """Rods, guides, joints and springs from the gradients of constraints and deformations."""
    parts, system = _Parts(), solution.system
    gradients = _gradients(system)
    if gradients is None:
        return parts
    at = np.unique(np.linspace(0, solution.t.size - 1, _SAMPLES).astype(int))
    t, q = solution.t[at], solution.q.T[at]
    G = np.array([gradients(*sample) for sample in zip(t, q, strict=True)])
    r = [q[:, point.rows] for point in points]
    scale = max(max(float(np.max(np.ptp(x, axis=0), initial=0.0)), float(np.max(np.abs(x), initial=0.0))) for x in r) or 1.0
    size = np.max(np.abs(G), axis=(0, 2))
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in range(G.shape[1]):
        touched = tuple(k for k, point in enumerate(points) if np.any(np.abs(G[:, row, point.columns]) > 1e-9 * size[row]))
        others = np.delete(G[:, row], [column for k in touched for column in points[k].columns], axis=1)
        if touched and len(touched) <= 2 and not np.any(np.abs(others) > 1e-9 * size[row]):
            groups.setdefault(touched, []).append(row)
    for touched, rows in groups.items():
        left = [row for row in rows if not _rod(parts, points, touched, row, G, r, scale, gradients, t, q, row >= system.model.position_rows)]
        left = [row for row in left if row < system.model.position_rows]
        if left and any(points[k].angle is not None for k in touched):
            _joint(parts, points, touched, G[:, left], q, scale)
    _outline_bodies(parts, points)
    return parts


def _gradients(system: System) -> Callable[[float, np.ndarray], np.ndarray] | None:
    """Derivatives of g and of the elastic deformations with respect to q; None where they cannot be traced, or depend on unknowns."""
    model = system.model
    rows = model.g if model.elastic is None else ca.vertcat(model.g, model.elastic.c)
    if system.foreign or system.unknowns or not rows.numel():
        return None
    function = ca.Function("gradients", [model.t, model.q, model.p], [ca.densify(ca.jacobian(rows, model.q))])
    parameters, rest = system.parameters.flat, np.zeros(model.n - system.n)
    return lambda t, q: np.asarray(function(t, np.concatenate([q, rest]), parameters))[:, : system.n]


def _rod(parts: _Parts, points: list[_Point], touched: tuple[int, ...], row: int, G: np.ndarray, r: list[np.ndarray], scale: float,
         gradients: Callable[[float, np.ndarray], np.ndarray], t: np.ndarray, q: np.ndarray, is_spring: bool) -> bool:
    """Whether the row is a rod, a spring or a guide of points; what it is becomes a part."""
    first = points[touched[0]]
    if any(points[k].angle is not None and np.any(np.abs(G[:, row, points[k].angle]) > 1e-9 * np.max(np.abs(G[:, row]))) for k in touched):
        return False
    n, found = G[:, row, first.rows], parts.springs if is_spring else parts.links
    length = np.linalg.norm(n, axis=1)
    if np.any(length < 1e-12 * np.max(length)) or not np.all(np.isfinite(n)):
        return False
    if len(touched) == 2:
        second = points[touched[1]]
        between = r[touched[0]] - r[touched[1]]
        distance = np.linalg.norm(between, axis=1)
        opposite = np.allclose(n, -G[:, row, second.rows], rtol=0, atol=_EXACT * np.max(length))
        if not opposite or np.any(distance == 0) or np.any(np.abs(np.sum(n * between, axis=1)) < (1 - _EXACT) * length * distance):
            return False
        found.append((first.name, second.name))
        parts.explained += not is_spring
        return True
    step, bend = 1e-4 * scale, np.empty(len(t))
    for k, (time, position) in enumerate(zip(t, q, strict=True)):
        across = np.zeros(len(position))
        across[first.rows] = _tangent(n[k] / length[k])
        difference = gradients(time, position + step * across)[row] - gradients(time, position - step * across)[row]
        bend[k] = difference @ across / (2 * step)
    if np.all(np.abs(bend) * scale < _EXACT * length):
        direction = n / length[:, None]
        if not is_spring and len(first.rows) == 2 and np.allclose(direction, direction[0], rtol=0, atol=_EXACT):
            parts.sliders.append(first.name)
            parts.explained += 1
            return True
        return False
    if np.any(np.abs(bend) * scale < _EXACT * length):
        return False
    centres = r[touched[0]] - n / bend[:, None]
    if np.max(np.ptp(centres, axis=0)) > 1e-3 * scale:
        return False
    found.append((parts.ground(np.mean(centres, axis=0), scale), first.name))
    parts.explained += not is_spring
    return True


def _tangent(normal: np.ndarray) -> np.ndarray:
    """A unit vector at right angles to another."""
    if len(normal) == 2:
        return np.array([-normal[1], normal[0]])
    tangent = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    return tangent / np.linalg.norm(tangent)


def _joint(parts: _Parts, points: list[_Point], touched: tuple[int, ...], G: np.ndarray, q: np.ndarray, scale: float) -> None:
    """A point that two bodies share, or that one body shares with the frame: a from g_φ = n · R′(φ) a, by least squares over all rows and times."""
    places, owners = [], []
    for k in touched:
        body = points[k]
        if body.angle is None:
            a = np.zeros(2)
        else:
            sin, cos = np.sin(q[:, body.angle]), np.cos(q[:, body.angle])
            turned = np.stack([np.stack([-sin, -cos], axis=1), np.stack([cos, -sin], axis=1)], axis=1)  # R′(φ)
            A, b = np.einsum("kri,kij->krj", G[:, :, body.rows], turned).reshape(-1, 2), G[:, :, body.angle].ravel()
            a, *_ = np.linalg.lstsq(A, b, rcond=1e-6)
            if np.any(np.abs(A @ a - b) > 1e-4 * scale * np.max(np.abs(G))):
                return
        places.append(_on_body(q.T, body, a))
        owners.append((k, a))
    straight = np.linalg.matrix_rank(G[..., points[touched[0]].rows].reshape(-1, 2), tol=1e-6 * np.max(np.abs(G))) == 1
    if len(touched) == 2:
        if np.max(np.abs(places[0] - places[1])) > 1e-2 * scale:
            return
    elif not straight and np.max(np.ptp(places[0], axis=1)) > 1e-2 * scale:
        return
    for k, a in owners:
        parts.joints[f"joint {len(parts.joints) + 1}"] = (k, a)
    name = f"joint {len(parts.joints)}"
    if len(touched) == 1 and straight:
        parts.sliders.append(name)
    elif len(touched) == 1:
        del parts.joints[name]
        ground = parts.ground(np.mean(places[0], axis=1), scale)
        parts.joints[ground] = owners[0]
    parts.explained += G.shape[1]


def _outline_bodies(parts: _Parts, points: list[_Point]) -> None:
    """Bars between the joints of a body, through its centre; an outline where there are three."""
    for k, body in enumerate(points):
        if body.angle is None:
            continue
        joints = [name for name, (owner, _) in parts.joints.items() if owner == k]
        if len(joints) >= 3:
            places = np.array([parts.joints[name][1] for name in joints])
            order = np.argsort(np.arctan2(*(places - places.mean(axis=0)).T[::-1]))
            parts.bodies.append([joints[i] for i in order])
        elif len(joints) == 2:
            a, b = (parts.joints[name][1] for name in joints)
            aside = abs(a[0] * b[1] - a[1] * b[0]) / max(float(np.linalg.norm(a - b)), 1e-300)
            if aside < 1e-3 * np.linalg.norm(a - b):
                parts.links.append((joints[0], joints[1]))
            else:
                parts.bodies.append([*joints, body.name])
        elif joints:
            parts.links.append((joints[0], body.name))


def _on_body(q: np.ndarray, body: _Point, a: np.ndarray) -> np.ndarray:
    if body.angle is None:
        return q[body.rows]
    sin, cos = np.sin(q[body.angle]), np.cos(q[body.angle])
    return np.stack([q[body.rows[0]] + cos * a[0] - sin * a[1], q[body.rows[1]] + sin * a[0] + cos * a[1]])


def _drawing(points: list[_Point], parts: _Parts, on_states: bool = False) -> Drawing:
    """Put together; the first and the last points leave traces."""
    held = {body.name: [name for name, (owner, _) in parts.joints.items() if owner == k] for k, body in enumerate(points)}

    def places(q, s):
        rows = s if on_states else q
        found = {point.name: tuple(rows[i] for i in point.rows) for point in points}
        found |= {name: tuple(_on_body(rows, points[k], a)) for name, (k, a) in parts.joints.items() if name not in parts.fixed}
        return found | {name: tuple(place) for name, place in parts.fixed.items()}

    used = {name for group in itertools.chain(parts.links, parts.springs, parts.bodies) for name in group}
    candidates = [point.name for point in points if point.name in used or not held[point.name]] or [point.name for point in points]
    twice = dict.fromkeys(parts.sliders)
    ground = list(parts.fixed)
    for name in [name for name in twice if parts.sliders.count(name) > 1]:  # two guides hold a point
        ground.append(name)
        del twice[name]
    movable = [name for name in candidates if name not in ground]
    return Drawing(places, links=parts.links, springs=parts.springs, ground=ground, sliders=list(twice), bodies=parts.bodies,
                   traces=movable if len(movable) <= _MOST_TRACES else movable[-1:])

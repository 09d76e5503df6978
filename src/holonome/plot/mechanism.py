"""A mechanism at one instant, drawn with matplotlib: bodies, joints, wheels, springs, its ground, forces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.plot.style import DARK, theme
from holonome.problem.solids import normal, outward

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.problem.drawing import Drawing

COILS = 9
"""Of a spring."""
_SOLID = 5
"""More faces than these in space are those of solids, whose edges are not drawn."""
_RING = np.linspace(0.0, 2 * np.pi, 49)
_SUN = np.array([0.3, 0.4, 0.866])
_GRAIN = 12
"""Faces are divided into pieces of this part of the mechanism, so that they can be sorted by depth."""
_BARS = {"revolute": (1.0, 0.55), "cylindrical": (1.7, 0.6), "prismatic": (1.4, 0.8)}
"""Half lengths and widths of symbols along an axis, in units of the size of a marker."""


@dataclass(frozen=True)
class Look:
    """How an instant is drawn: its colour, whether in full, and above which other things."""

    colour: Any
    full: bool
    order: float


class Instant:
    """Draws a mechanism at one instant into axes of the plane.

    Attributes
    ----------
    points
        Its points, in the plane or in space.
    seen
        The same in the plane of the picture.
    artists
        What has been drawn.
    """

    def __init__(self, axes: Axes, drawing: Drawing, points: Mapping[str, np.ndarray], look: Look) -> None:
        self.axes, self.drawing, self.points, self.look = axes, drawing, points, look
        self.seen = drawing.seen(points)
        self.spatial = len(next(iter(points.values()))) == 3
        self.artists: list[Any] = []

    @property
    def _above(self) -> float:
        """Where symbols are: above all but solids, most of which hide their joints."""
        return self.look.order - 0.01 if self.spatial and len(self.drawing.bodies) > _SOLID else 4.5

    def draw(self) -> list[Any]:
        drawing, look = self.drawing, self.look
        if self.spatial and len(drawing.bodies) > _SOLID:
            self._solids() if look.full else self._silhouettes()
        else:
            self._outlines()
        for circle in drawing.circles:
            self._wheel(circle)
        if look.full:
            for begin, end in drawing.springs:
                coil = zigzag(self.seen[begin], self.seen[end])
                self._line(coil, linewidth=1.1)
            for pair in drawing.lines:
                places = [self.seen[name] for name in pair]
                self._line(places, linewidth=1.2, color=theme().frame, zorder=self.look.order - 0.01)
        for pair in drawing.links:
            self._line([self.seen[name] for name in pair], linewidth=3.0 if look.full else 1.6)
        if look.full:
            self._joints()
            for begin, end in drawing.arrows:
                self.arrow(self.seen[begin], self.seen[end], look.colour)
        return self.artists

    def _line(self, places: Any, **style: Any) -> None:
        options = {"color": self.look.colour, "zorder": self.look.order, "solid_capstyle": "round", **style}
        self.artists += self.axes.plot(*np.array(places).T, **options)

    def _fill(self, corners: np.ndarray, **style: Any) -> None:
        self.artists += self.axes.fill(*corners.T, **{"zorder": self.look.order, **style})

    # ---------------------------------------------------------------- bodies

    def _outlines(self) -> None:
        for body in self.drawing.bodies:
            if not set(body) <= set(self.drawing.ground):
                self._fill(
                    np.array([self.seen[name] for name in body]),
                    facecolor=(_rgb(self.look.colour), 0.12) if self.look.full else "none",
                    edgecolor=self.look.colour,
                    linewidth=1.8 if self.look.full else 0.9,
                )

    def _solids(self) -> None:
        """All faces that are turned to the eye, shaded, from back to front."""
        from matplotlib.collections import PolyCollection

        sides = outward(self.drawing.bodies, self.points)
        eye = self.drawing.view()
        grain = np.max(np.ptp(np.array(list(self.points.values())), axis=0)) / _GRAIN or 1.0
        cells, colours = [], []
        for body, side in zip(self.drawing.bodies, sides, strict=True):
            corners = np.array([self.points[name] for name in body])
            n = normal(corners)
            if side and side * (n @ eye[2]) <= 0:
                continue
            found = _cells(corners, grain)
            cells += found
            light = float(abs(n @ _SUN) / (np.linalg.norm(n) or 1.0))
            colours += [shade(self.look.colour, light)] * len(found)
        places = [cell @ eye.T for cell in cells]
        order = sorted(range(len(cells)), key=lambda k: float(places[k][:, 2].mean()))
        shown = [colours[k] for k in order]
        polygons = PolyCollection(
            [places[k][:, :2] for k in order],
            facecolors=shown,
            edgecolors=shown,
            linewidths=0.4,
            zorder=self.look.order,
        )
        self.artists.append(self.axes.add_collection(polygons))

    def _silhouettes(self) -> None:
        """The outline of each face's body, as far as a convex one has it."""
        from scipy.spatial import ConvexHull, QhullError

        for names in _connected(self.drawing.bodies):
            places = np.array([self.seen[name] for name in names])
            try:
                outline = places[ConvexHull(places).vertices]
            except QhullError:
                continue
            self._fill(outline, facecolor="none", edgecolor=self.look.colour, linewidth=0.8)

    def _wheel(self, circle: Sequence[str]) -> None:
        """Its rim, and spokes that show how it turns."""
        center, *rims = (self.points[name] for name in circle)
        arms = [rim - center for rim in rims]
        if self.spatial and len(arms) != 2:
            self._ball(self.seen[circle[0]], float(np.linalg.norm(arms[0])))
            return
        u, v = arms if self.spatial else (arms[0], np.array([-arms[0][1], arms[0][0]]))
        ring = self._flat(center, u, v, _RING)
        face = (_rgb(self.look.colour), 0.14) if self.look.full else "none"
        self._fill(ring, facecolor=face, edgecolor=self.look.colour, linewidth=1.8 if self.look.full else 0.9)
        if not self.look.full:
            return
        for k, end in enumerate(self._flat(center, u, v, _RING[:-1:8])):
            spoke = {"linewidth": 0.7, "alpha": 0.5} if k else {"linewidth": 1.6}
            self._line([self.seen[circle[0]], end], **spoke)

    def _flat(self, center: np.ndarray, u: np.ndarray, v: np.ndarray, angles: np.ndarray) -> np.ndarray:
        """Points of a circle in the plane of the picture, a row for each."""
        ring = center + np.outer(np.cos(angles), u) + np.outer(np.sin(angles), v)
        return ring @ self.drawing.view()[:2].T if self.spatial else ring

    def _ball(self, center: np.ndarray, radius: float) -> None:
        steps = 8 if self.look.full else 1
        for k in range(steps):
            part = 1.0 - k / steps
            disc = center + radius * (part * _circle() + (1 - part) * np.array([-0.35, 0.4]))
            face = shade(self.look.colour, k / steps) if self.look.full else "none"
            edge = self.look.colour if k == 0 else "none"
            self._fill(disc, facecolor=face, edgecolor=edge, linewidth=0.9)

    # ---------------------------------------------------------------- joints

    def _joints(self) -> None:
        drawing = self.drawing
        style = {"color": theme().paper, "markeredgecolor": self.look.colour, "markeredgewidth": 1.4}
        if drawing.symbols or drawing.circles:
            for kind, name, *toward in drawing.symbols:
                self._symbol(kind, self.seen[name], [self.seen[other] - self.seen[name] for other in toward])
        else:
            pairs = [*drawing.links, *drawing.springs]
            fixed = {*drawing.ground, *drawing.sliders}
            names = dict.fromkeys(name for pair in pairs for name in pair if name not in fixed)
            self._mark(names, "o", 5.5 if len(names) <= 12 else 3.0, **style)
        marked = {name for _, name, *_ in drawing.symbols} if self.spatial else set()
        self._mark([name for name in drawing.sliders if name not in marked], "s", 10.0, **style)

    def _mark(self, names: Any, marker: Any, size: float, **style: Any) -> None:
        if names:
            x, y = np.stack([self.seen[name] for name in names], axis=1)
            options = {
                "linestyle": "none",
                "zorder": self._above,
                "marker": marker,
                "markersize": size,
                **style,
            }
            self.artists += self.axes.plot(x, y, **options)

    def _symbol(self, kind: str, place: np.ndarray, axes: Sequence[np.ndarray]) -> None:
        from matplotlib.markers import MarkerStyle
        from matplotlib.path import Path

        inside, edge, marker, size = theme().paper, self.look.colour, "o", 5.5
        along = axes[0] if axes and np.linalg.norm(axes[0]) > 0 else None
        if kind in _BARS and along is not None:
            half, wide = _BARS[kind]
            box = [(-half, -wide), (half, -wide), (half, wide), (-half, wide), (-half, -wide)]
            turned = MarkerStyle(Path(box, closed=True)).rotated(rad=float(np.arctan2(along[1], along[0])))
            marker, size = turned, 9.0 * half if self.spatial else 11.0
        elif kind == "mass":
            inside, edge, size = self.look.colour, theme().paper, 9.0
        elif kind == "universal":
            marker, size = "P", 8.0
        elif kind in ("planar", "fixed"):
            marker, size = {"planar": "D", "fixed": "s"}[kind], 6.0
        elif kind == "spherical":
            inside = shade(self.look.colour, 0.8)
        options = {"markeredgecolor": edge, "markeredgewidth": 1.3, "color": inside, "linestyle": "none"}
        options |= {"marker": marker, "markersize": size, "zorder": self._above}
        self.artists += self.axes.plot(*place[:, None], **options)

    # ---------------------------------------------------------------- forces

    def arrow(self, begin: np.ndarray, end: np.ndarray, colour: Any, label: str = "") -> None:
        """An arrow, with a name at its tip."""
        from matplotlib.patches import FancyArrowPatch

        if not np.linalg.norm(end - begin) > 0:
            return
        options = {"arrowstyle": "-|>", "mutation_scale": 11, "shrinkA": 0, "shrinkB": 0}
        patch = FancyArrowPatch(tuple(begin), tuple(end), color=colour, linewidth=1.8, zorder=6, **options)
        self.artists.append(self.axes.add_patch(patch))
        if label:
            self._label(end, colour, label)

    def turn(self, place: np.ndarray, size: float, colour: Any, label: str) -> None:
        """A moment in the plane as an arc; a size of 1 is three quarters of a turn."""
        from matplotlib.patches import FancyArrowPatch

        sweep = float(np.clip(270 * size, -300, 300))
        if abs(sweep) < 5:
            return
        radius = 0.06 * max(np.ptp(self.axes.get_xlim()), np.ptp(self.axes.get_ylim()))
        angles = np.radians(90 + np.linspace(-sweep / 2, sweep / 2, 25))
        arc = place + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        self._line(arc[:-3], linewidth=1.8, color=colour, zorder=6)
        options = {"arrowstyle": "-|>", "mutation_scale": 11, "shrinkA": 0, "shrinkB": 0}
        head = FancyArrowPatch(tuple(arc[-4]), tuple(arc[-1]), color=colour, zorder=6, **options)
        self.artists.append(self.axes.add_patch(head))
        self._label(place + radius, colour, label)

    def _label(self, place: np.ndarray, colour: Any, text: str) -> None:
        options = {"textcoords": "offset points", "xytext": (5, 3), "fontsize": 8}
        self.artists.append(self.axes.annotate(text, tuple(place), color=colour, zorder=7, **options))


def draw_frame(axes: Axes, drawing: Drawing, points: Mapping[str, np.ndarray]) -> None:
    """What does not move: fixed bodies, supports at fixed points, and the ground on which wheels roll."""
    from matplotlib.markers import MarkerStyle
    from matplotlib.path import Path as Outline

    seen = drawing.seen(points)
    for track in drawing.tracks:
        _rail(axes, seen, track) if len(track) == 2 else _plane(axes, drawing, points, track)
    triangle = MarkerStyle(Outline([(0, 0), (-0.8, -1.3), (0.8, -1.3), (0, 0)], closed=True))
    fixed = [body for body in drawing.bodies if set(body) <= set(drawing.ground)]
    for body in fixed:
        outline = np.stack([seen[name][:, 0] for name in body], axis=1)
        look = {"facecolor": theme().ground, "edgecolor": theme().frame, "linewidth": 1.0, "zorder": 1.5}
        axes.fill(*outline, **look)
    on_body = {name for body in fixed for name in body}
    place = {"linestyle": "none", "clip_on": False}
    for name in (name for name in drawing.ground if name not in on_body):
        x, y = seen[name][:, :1]
        axes.plot(x, y, marker=triangle, color=theme().frame, markersize=9, zorder=5, **place)
        ring = {"markeredgecolor": theme().frame, "markeredgewidth": 1.4, "markersize": 4.5}
        axes.plot(x, y, marker="o", color=theme().paper, zorder=5.5, **ring, **place)


def _rail(axes: Axes, seen: Mapping[str, np.ndarray], track: Sequence[str]) -> None:
    from matplotlib.patheffects import Normal, withTickedStroke

    begin, end = (seen[name][:, 0] for name in track)
    direction = (end - begin) / np.linalg.norm(end - begin)
    along = np.concatenate([direction @ (xy - begin[:, None]) for xy in seen.values()])
    along = along[np.isfinite(along)]
    margin = 0.25 * np.ptp(along)
    ends = np.array([begin + x * direction for x in (along.min() - margin, along.max() + margin)])
    (line,) = axes.plot(*ends.T, color=theme().frame, linewidth=1.2, zorder=1.2, scalex=False, scaley=False)
    line.set_path_effects([Normal(), withTickedStroke(spacing=7, angle=-135, length=0.7, linewidth=0.5)])


def _plane(axes: Axes, drawing: Drawing, points: Mapping[str, np.ndarray], track: Sequence[str]) -> None:
    """The part of a plane below or above the motion."""
    o, a, b = (points[name][:, 0] for name in track)
    u, w = (a - o) / np.linalg.norm(a - o), (b - o) / np.linalg.norm(b - o)
    everything = np.concatenate(list(points.values()), axis=1)
    everything = everything[:, np.all(np.isfinite(everything), axis=0)] - o[:, None]
    x, y = u @ everything, w @ everything
    margin = 0.08 * max(np.ptp(x), np.ptp(y))
    xs, ys = (x.min() - margin, x.max() + margin), (y.min() - margin, y.max() + margin)
    corners = [o + i * u + j * w for i, j in ((xs[0], ys[0]), (xs[1], ys[0]), (xs[1], ys[1]), (xs[0], ys[1]))]
    outline = np.array(corners) @ drawing.view()[:2].T
    axes.fill(*outline.T, facecolor=theme().ground, alpha=0.35, edgecolor=theme().frame, zorder=1)


def shade(colour: Any, light: float) -> Any:
    """A colour in some light, from 0 to 1."""
    share = 0.6 - 0.55 * light if theme() is DARK else 0.08 + 0.6 * light
    toward = 0.0 if theme() is DARK else 1.0
    return tuple(float(x + share * (toward - x)) for x in _rgb(colour))


def _rgb(colour: Any) -> Any:
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


def _circle() -> np.ndarray:
    return np.stack([np.cos(_RING), np.sin(_RING)], axis=1)


def _cells(corners: np.ndarray, grain: float) -> list[np.ndarray]:
    """A face with four corners in pieces, others as they are."""
    if len(corners) != 4:
        return [corners]
    a, b, c, d = corners
    length = [float(np.linalg.norm(edge)) for edge in (b - a, c - d, c - b, d - a)]
    rows = int(np.clip(np.ceil(max(length[:2]) / grain), 1, 12))
    columns = int(np.clip(np.ceil(max(length[2:]) / grain), 1, 12))
    x, y = np.linspace(0, 1, rows + 1)[:, None, None], np.linspace(0, 1, columns + 1)[None, :, None]
    grid = (1 - x) * ((1 - y) * a + y * d) + x * ((1 - y) * b + y * c)
    return [
        np.array([grid[i, j], grid[i + 1, j], grid[i + 1, j + 1], grid[i, j + 1]])
        for i in range(rows)
        for j in range(columns)
    ]


def _connected(faces: Sequence[Sequence[str]]) -> list[set[str]]:
    """The points of faces that share some."""
    found: list[set[str]] = []
    for face in faces:
        touched = [names for names in found if not names.isdisjoint(face)]
        found = [names for names in found if names.isdisjoint(face)] + [set(face).union(*touched)]
    return found


def zigzag(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Vertices of a spring between two points of the plane."""
    along = end - begin
    across = 0.035 * np.array([-along[1], along[0]])
    teeth = (np.arange(2 * COILS) + 0.5) / (2 * COILS)
    place = np.concatenate([[0.0, 0.15], 0.15 + 0.7 * teeth, [0.85, 1.0]])
    side = np.concatenate([[0.0, 0.0], np.tile([1.0, -1.0], COILS), [0.0, 0.0]])
    return begin + along * place[:, None] + across * side[:, None]

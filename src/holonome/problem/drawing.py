"""How to draw a mechanism: named points that follow from its coordinates, and what connects them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holonome.arguments import check_fields
from holonome.errors import ModelError
from holonome.tracing import argument_names

_ARGUMENTS = ("t", "q", "s", "x", "p")
SYMBOLS = {
    "revolute": 1,
    "prismatic": 1,
    "cylindrical": 1,
    "spherical": 0,
    "universal": 2,
    "planar": 1,
    "fixed": 0,
    "mass": 0,
}
"""Kinds of symbols, and how many directions each may have."""
GROUPS = ("links", "springs", "bodies", "lines", "circles", "tracks", "arrows")
SINGLE = ("ground", "sliders", "traces")


@dataclass(frozen=True, eq=False)
class Drawing:
    """How to draw a mechanism, in the plane or in space.

    Parameters
    ----------
    points : callable(q, p)
        The named points, each a pair (x, y) or a triple (x, y, z) with z upward. It names the arguments it
        wants, any subset of ``t``, ``q``, ``s``, ``p``, and works for one position, q of shape (n,), and for
        many, (n, times). For an :class:`holonome.ODE` the components are ``x``.
    links : pairs of names
        Rigid bars.
    springs : pairs of names
        Springs.
    ground : names
        Points that are fixed in the frame.
    sliders : names
        Points that slide along a guide.
    traces : names
        Points whose path is worth seeing.
    bodies : sequences of names
        Outlines of rigid bodies, in space their faces; one whose points are all fixed belongs to the frame.
    lines : pairs of names
        Thin lines: ropes, belts, rods without mass.
    circles : sequences of names
        Wheels: the centre and a point of the rim, to which a spoke leads. In space two points of the rim, at
        right angles, make a disc, and one makes a ball, or three, which show how it turns.
    symbols : (kind, name) or (kind, name, direction, ...)
        Joints: "revolute", "prismatic", "cylindrical", "spherical", "universal", "planar", "fixed"; and
        "mass", a point with mass. A direction is a second point, toward which the axis of a joint leads.
        Where there are any, no symbols are guessed from the links.
    tracks : pairs of names, triples in space
        A line on whose left side something rolls, or a plane, through these points; as far as the picture
        goes.
    arrows : pairs of names
        An arrow from the first point to the second, such as a force.
    camera : (float, float)
        From where a drawing in space is seen: azimuth in the x-y plane and elevation above it, in degrees.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> drawing = hn.Drawing(
    ...     lambda q, p: {"pivot": (0.0, 0.0), "bob": (q[0], q[1])},
    ...     links=[("pivot", "bob")],
    ...     ground=["pivot"],
    ...     traces=["bob"],
    ... )
    >>> pendulum = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1, names=["x", "y"], drawing=drawing)
    >>> pendulum.drawing.at(np.array([0.6, -0.8]), None)["bob"]
    array([ 0.6, -0.8])
    """

    points: Callable[..., Mapping[str, tuple]]
    links: Sequence[tuple[str, str]] = ()
    springs: Sequence[tuple[str, str]] = ()
    ground: Sequence[str] = ()
    sliders: Sequence[str] = ()
    traces: Sequence[str] = ()
    bodies: Sequence[Sequence[str]] = ()
    lines: Sequence[tuple[str, str]] = ()
    circles: Sequence[Sequence[str]] = ()
    symbols: Sequence[Sequence[str]] = ()
    tracks: Sequence[Sequence[str]] = ()
    arrows: Sequence[tuple[str, str]] = ()
    camera: tuple[float, float] = (-60.0, 20.0)

    def __post_init__(self) -> None:
        if not callable(self.points):
            raise ModelError(
                f"points: {type(self.points).__name__}; give a function of q and p that returns a dict of "
                "points"
            )
        unknown = [name for name in argument_names(self.points, "points") if name not in _ARGUMENTS]
        if unknown:
            raise ModelError(
                f"points: its argument {unknown[0]!r} is not known; choose from {', '.join(_ARGUMENTS)}"
            )
        check_fields(self, ModelError)
        for kind, *names in self.symbols:
            if kind not in SYMBOLS:
                raise ModelError(f"symbols: {kind!r} is not a kind; choose from {', '.join(SYMBOLS)}")
            if len(names) > 1 + SYMBOLS[kind]:
                raise ModelError(
                    f"symbols: {(kind, *names)!r} has {len(names) - 1} directions; {kind!r} has at most "
                    f"{SYMBOLS[kind]}"
                )

    def named(self) -> list[tuple[str, tuple[str, ...]]]:
        """The points that each part names, with the field that it stands in."""
        groups = [(field, tuple(group)) for field in GROUPS for group in getattr(self, field)]
        single = [(field, (name,)) for field in SINGLE for name in getattr(self, field)]
        return [*groups, *single, *(("symbols", tuple(names)) for _, *names in self.symbols)]

    def at(self, q: np.ndarray, p: Any, t: Any = 0.0, s: Any = ()) -> dict[str, np.ndarray]:
        """Every point as an array of shape (2,) or (2, times), in space (3,) or (3, times), fixed ones
        included.
        """
        q, s = np.asarray(q), np.asarray(s)
        given = {"t": t, "q": q, "s": s, "x": s, "p": p}
        found = self.points(**{name: given[name] for name in argument_names(self.points)})
        if not isinstance(found, Mapping) or not found:
            raise ModelError(
                f"points: returned {type(found).__name__}; it must return a dict with the coordinates of "
                "each named point"
            )
        shape = np.broadcast_shapes(q.shape[1:], s.shape[1:], np.shape(t))
        points = {
            str(name): np.stack([np.broadcast_to(np.asarray(c, dtype=float), shape) for c in xyz])
            for name, xyz in found.items()
        }
        sizes = {name: len(xyz) for name, xyz in points.items()}
        if len(set(sizes.values())) > 1 or next(iter(sizes.values())) not in (2, 3):
            odd = min(sizes, key=lambda name: list(sizes.values()).count(sizes[name]))
            raise ModelError(
                f"points: {odd!r} has {sizes[odd]} coordinates; all points need two, or all three"
            )
        for field, names in self.named():
            for name in names:
                if name not in points:
                    there = ", ".join(list(points)[:12])
                    raise ModelError(f"{field}: there is no point {name!r}; the points are {there}")
        self.require_dimension(next(iter(sizes.values())))
        return points

    def require_dimension(self, dimension: int) -> None:
        """Circles and tracks have more points in space."""
        for circle in self.circles:
            if dimension == 2 and len(circle) != 2:
                raise ModelError(
                    f"circles: {circle!r}; in the plane give the centre and one point of the rim"
                )
        for track in self.tracks:
            if len(track) != dimension:
                what = "two points of a line" if dimension == 2 else "three points of a plane"
                raise ModelError(f"tracks: {track!r}; give {what}")

    def seen(self, points: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Points in the plane of the picture: as they are, or those of space as the camera sees them."""
        if len(next(iter(points.values()))) == 2:
            return dict(points)
        plane = self.view()[:2]
        return {name: plane @ xyz for name, xyz in points.items()}

    def view(self) -> np.ndarray:
        """Directions in space that the camera sees to the right, upward and toward itself."""
        a, e = np.radians(self.camera)
        right, ahead = np.array([-np.sin(a), np.cos(a), 0.0]), np.array([np.cos(a), np.sin(a), 0.0])
        up = np.array([0.0, 0.0, 1.0])
        return np.stack([right, np.cos(e) * up - np.sin(e) * ahead, np.cos(e) * ahead + np.sin(e) * up])

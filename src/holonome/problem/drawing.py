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
        Outlines of rigid bodies; one whose points are all fixed belongs to the frame.
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
        for field in ("links", "springs", "ground", "sliders", "traces", "bodies"):
            for group in getattr(self, field):
                for name in [group] if isinstance(group, str) else group:
                    if name not in points:
                        raise ModelError(
                            f"{field}: there is no point {name!r}; the points are "
                            f"{', '.join(list(points)[:12])}"
                        )
        return points

    def seen(self, points: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Points in the plane of the picture: as they are, or those of space as the camera sees them."""
        if len(next(iter(points.values()))) == 2:
            return dict(points)
        a, e = np.radians(self.camera)
        plane = np.array(
            [[-np.sin(a), np.cos(a), 0.0], [-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)]]
        )
        return {name: plane @ xyz for name, xyz in points.items()}

"""hn.workspace: all positions over a grid of drives, and which points of bodies reach where."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.analysis.carried import Carried
from holonome.analysis.dead_points import determinant
from holonome.analysis.driven import Driven, driven_by
from holonome.analysis.given import given, place
from holonome.analysis.poses import advance, pose_at
from holonome.analysis.position import require_determined
from holonome.arguments import NUMBERS, read, shown
from holonome.errors import ModelError
from holonome.problem.system import System

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_PARTS = 0.02
"""The smallest part of a step from one position of the grid to the next that is tried."""


@dataclass(frozen=True, eq=False)
class Workspace(Carried):
    """Positions over a grid of drives: result of :func:`holonome.workspace`.

    Attributes
    ----------
    drives : dict of arrays
        The values along each axis of the grid.
    q : array, (n, …grid)
        Positions; not a number where the mechanism cannot be.
    reached : array of bool, (…grid)
        Where it can be, without a singular position on the way from the start.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> m = hn.Mechanism("arm", gravity=(0, 0))
    >>> a = m.body("a", 1.0, 0.1, points={"A": (0, 0), "B": (0.7, 0)})
    >>> b = m.body("b", 1.0, 0.1, points={"B": (0, 0), "tip": (0.5, 0)})
    >>> _ = m.revolute("A", m.ground.at(0, 0), a["A"]), m.revolute("B", a["B"], b["B"])
    >>> space = hn.workspace(m, {"A": np.linspace(0, 1, 5), "B": np.linspace(0.1, 3, 6)})
    >>> space.reached.all().item(), space.points("b.tip").shape
    (True, (2, 5, 6))
    """

    system: System
    drives: dict[str, np.ndarray]
    q: np.ndarray
    reached: np.ndarray
    _driven: Driven = field(repr=False)
    _s: np.ndarray = field(repr=False)

    def points(self, name: str) -> np.ndarray:
        """A point of a body, or another quantity by name, over the grid; not a number where it cannot be."""
        flat = self.q.reshape(len(self.q), -1)
        good = self.reached.ravel()
        count = int(good.sum())
        zero = np.zeros((len(flat), count))
        states = np.tile(self._s[:, None], count)
        found = self._driven.measured(name, np.zeros(count), flat[:, good], zero, states)
        values = np.full((len(found), flat.shape[1]), np.nan)
        values[:, good] = np.array(list(found.values()))
        return values.reshape(len(found), *self.reached.shape)

    def plot(self, name: str, axes: Axes | None = None, file: str | Path | None = None) -> Axes:
        """Where a point of a body reaches."""
        from holonome.analysis.pictures import plot_workspace

        return plot_workspace(self, name, axes, file)

    def __str__(self) -> str:
        share = 100 * float(np.mean(self.reached))
        ranges = ", ".join(f"{name} = {x[0]:.4g} … {x[-1]:.4g}" for name, x in self.drives.items())
        return f"workspace of {self.system.name} over {ranges}: {share:.0f}% of {self.reached.size} positions"


def workspace(
    system: Any,
    drives: Mapping[str, Any],
    *,
    guess: Any = None,
    start: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> Workspace:
    """All positions of a mechanism over a grid of its drives, on one branch.

    Parameters
    ----------
    system : System, Mechanism or Example
    drives : dict
        For each drive the values that it takes, in increasing or decreasing order.
    guess, start
        A position within the grid, as in :func:`holonome.equilibrium`; chooses the branch.
    parameters, inputs : dict
        Values that replace those of the system.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> bar = hn.mechanisms.pendulum().system
    >>> print(hn.workspace(bar, {"x": np.linspace(-2, 2, 9)}, guess=[0.0, -1.0]))
    workspace of pendulum over x = -2 … 2: 33% of 9 positions
    """
    subject = given(system, parameters, inputs)
    grid = _grid(drives)
    here = place(subject, guess, start, 0.0)
    driven = driven_by(subject.system, list(grid))
    axes, shape = list(grid.values()), tuple(x.size for x in grid.values())
    now = driven.at(0.0, here.q, 0 * here.q, here.s)[0]
    first = tuple(int(np.argmin(np.abs(x - value))) for x, value in zip(axes, now, strict=True))
    none = np.zeros(len(axes))

    def target(cell: tuple[int, ...]) -> np.ndarray:
        return np.array([x[k] for x, k in zip(axes, cell, strict=True)])

    q = np.full((subject.system.n, *shape), np.nan)
    closed = pose_at(driven, 0.0, here.q, now, none, none, here.s)
    begun = (
        None
        if closed is None
        else advance(driven, closed.q, None, now, (0.0, target(first), none, none), here.s)
    )
    if begun is None:
        raise ModelError("start: no position of the grid is reached from it; begin closer to the grid")
    require_determined(driven, begun.q, 0.0, here.s)
    side = np.sign(determinant(driven, 0.0, begun, here.s))
    q[(slice(None), *first)] = begun.q
    waiting, tried = deque([first]), {first}
    while waiting:
        cell = waiting.popleft()
        for beside in _neighbours(cell, shape):
            if beside in tried:
                continue
            asked = 0.0, target(beside), none, none
            pose = advance(driven, q[(slice(None), *cell)], None, target(cell), asked, here.s, _PARTS)
            if pose is None or np.sign(determinant(driven, 0.0, pose, here.s)) != side:
                continue
            tried.add(beside)
            q[(slice(None), *beside)] = pose.q
            waiting.append(beside)
    return Workspace(subject.system, grid, q, np.isfinite(q[0]), driven, here.s)


def _grid(drives: Any) -> dict[str, np.ndarray]:
    if not isinstance(drives, Mapping) or not drives:
        raise ValueError(f"drives: {shown(drives)}; give a dict of names and values")
    found = {str(name): read(NUMBERS, f"drives[{name!r}]", x) for name, x in drives.items()}
    for name, x in found.items():
        if x.ndim != 1 or not x.size:
            raise ValueError(f"drives[{name!r}]: give a one-dimensional array of values")
    return found


def _neighbours(cell: tuple[int, ...], shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    found = []
    for axis, (k, size) in enumerate(zip(cell, shape, strict=True)):
        for other in (k - 1, k + 1):
            if 0 <= other < size:
                found.append((*cell[:axis], other, *cell[axis + 1 :]))
    return found

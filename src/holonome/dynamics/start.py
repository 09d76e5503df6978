"""Consistent initial values: q with g = 0, v on the velocity level, λ with the accelerations; redundant and
contradictory constraints are named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holonome.arguments import checked, shown
from holonome.dynamics.evaluation import Point
from holonome.dynamics.kernels import dense_derivative, dense_multipliers, kernels
from holonome.dynamics.nearest import nearest_position, nearest_velocity
from holonome.dynamics.projection import nearest_point
from holonome.dynamics.rank import (
    dependent_rows,
    explain_singular,
    refuse_negative_mass,
    refuse_singular_position,
)
from holonome.dynamics.sparse_saddle import sparse_onto
from holonome.errors import ContradictoryConstraints, InconsistentStart
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK
from holonome.problem.system import System
from holonome.problem.vectors import require_finite

SMALL = 1e-3
"""A correction up to this fraction of the largest position (or velocity) is made silently."""

_ROUNDING = 1e-14
_ROUNDING_OF_FORCES = 1e-11
"""Accelerations that are left of forces that balance each other, as a part of those without constraints."""

"""Nor is one of this size, where all positions are zero."""

_FAR = 0.1
"""A small system further off than this, relative to its size, is not left to the projection of a step."""


@dataclass(frozen=True)
class Start:
    """Consistent values, and how far they are from those given.

    Attributes
    ----------
    q, v, a, lam, s
        Positions, velocities, accelerations, multipliers and first-order states.
    moved_q, moved_v
        Largest change of a position and of a velocity.
    rank
        Number of independent constraint rows.
    redundant
        Names of the rows that follow from others; their multipliers are those of least norm.

    Examples
    --------
    >>> import holonome as hn
    >>> start = hn.consistent(hn.mechanisms.pendulum().system, [0.6, -0.8001])
    >>> start.rank, start.redundant, start.moved_q < 1e-3
    (1, (), True)
    """

    t: float
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    moved_q: float
    moved_v: float
    rank: int
    redundant: tuple[str, ...] = ()
    s: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def state(self) -> np.ndarray:
        """(q, v, s)."""
        return np.concatenate([self.q, self.v, self.s])

    @property
    def message(self) -> str:
        """What was done, in words; empty if nothing was."""
        parts = []
        if self.moved_q > 0 or self.moved_v > 0:
            parts.append(
                f"initial values moved onto the constraints by {self.moved_q:.1e} (q) and {self.moved_v:.1e} "
                "(v)"
            )
        if self.redundant:
            parts.append(f"redundant: {', '.join(self.redundant)}")
        return "; ".join(parts)


def consistent(
    system: Any,
    q0,
    v0=None,
    t0: float = 0.0,
    *,
    s0=None,
    fixed: Sequence[str | int] = (),
    metric: str = "mass",
    repair: bool = False,
) -> Start:
    """Find consistent values near the given ones.

    Parameters
    ----------
    q0, v0
        Positions and velocities; v0 = None means at rest, as far as the constraints allow.
    t0
        Initial time.
    s0
        First-order states, where the system has some; None takes the values given to the system.
    fixed
        Names or numbers of coordinates whose position and velocity must stay as given.
    metric
        "mass" or "euclidean": in which sense the new values are nearest.
    repair
        Accept corrections of any size.  Otherwise those above 0.1 % raise :class:`InconsistentStart`.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum().system
    >>> hn.consistent(pendulum, [0.6, -0.8001]).q.round(6)
    array([ 0.599952, -0.800036])
    """
    system = getattr(system, "system", system)
    if not isinstance(system, System):
        raise TypeError(f"system: {shown(system)} is not an hn.System")
    t0, repair = checked("t0", t0), checked("repair", repair)
    system.require_unchanged()
    y = system.start_state(t0, q0, v0, s0, repair)
    return consistent_state(system, y, t0, at_rest=v0 is None, fixed=fixed, metric=metric, repair=repair)


def consistent_state(
    system: System,
    y: np.ndarray,
    t0: float = 0.0,
    *,
    at_rest: bool = False,
    fixed: Sequence[str | int] = (),
    metric: str = "mass",
    repair: bool = False,
) -> Start:
    """As :func:`consistent`, near a state (q, v, s); ``at_rest`` if no velocities were given."""
    n = system.n
    q0, v0, s = y[:n], y[n : 2 * n], y[2 * n :]
    require_finite(q0=q0, v0=v0, s0=s)
    free = _free(system, fixed)
    metric = checked("metric", metric)
    point = Point(system, kernels(system), float(t0), s)
    found = _by_projection(point, q0, v0) if free.all() and metric == "mass" else None
    if found is None:
        q = nearest_position(point, q0, v0, free, metric)
        v = nearest_velocity(point, q, v0, free, metric)
    else:
        q, v, a, lam = found
    moved_q, moved_v = float(np.max(np.abs(q - q0), initial=0.0)), float(np.max(np.abs(v - v0), initial=0.0))
    if not repair:
        _refuse_large(point, q0, v0, q, v, moved_q, 0.0 if at_rest else moved_v)
    rank, redundant = system.m, []
    if found is None:
        rank, redundant = dependent_rows(point(q, v)["C"])
        a, lam = _accelerations(point, q, v)
    names = tuple(system.constraint_names[i] for i in redundant)
    return Start(float(t0), q, v, a, lam, moved_q, moved_v, rank, names, s.copy())


def time_moved(before: np.ndarray, after: np.ndarray, n: int) -> float:
    """The time in which positions move as far as they were moved."""
    speed = float(np.max(np.abs(after[n : 2 * n]), initial=0.0))
    moved = float(np.max(np.abs(after[:n] - before[:n]), initial=0.0))
    return moved / speed if speed > 0 else 0.0


def _by_projection(
    point: Point, q0: np.ndarray, v0: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """The nearest q and v by the projection used in steps, with a and λ; None if that does not converge, if
    rows depend on each other, or if a small system is far off, which other ways treat with more care.
    """
    compiled, n = point.compiled, len(q0)
    if compiled.dense or point.system.invariant_count:
        return None
    first = np.concatenate([q0, v0, point.s])
    y, size = first.copy(), first.size
    kernel, offset, room, far = compiled.projection, size, compiled.projection_size, _FAR
    if compiled.sparse:
        kernel, offset, room, far = sparse_onto.address, 0, 2 * size + 1, math.inf
    status = nearest_point(
        kernel, offset, n, point.t, first, point.context, np.zeros(room + size + 2), y, far
    )
    return _with_multipliers(point, y) if status == OK else None


def _with_multipliers(
    point: Point, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """q, v, a and λ of a consistent state; None if rows depend on each other."""
    compiled, n, size, z = point.compiled, point.system.n, y.size, np.zeros(y.size + 2)
    rate, lam = np.zeros(size + 1), np.zeros(point.system.m + 1)
    for kernel, out in ((compiled.derivative, rate), (compiled.multipliers, lam)):
        if run_kernel(kernel, point.t, y, z, point.context, out) != OK or not math.isfinite(out.sum()):
            return None
    return y[:n], y[n : 2 * n], rate[n : 2 * n].copy(), lam[:-1]


def _free(system: System, fixed: Sequence[str | int]) -> np.ndarray:
    free = np.ones(system.n, bool)
    fixed = checked("fixed", fixed)
    for item in [fixed] if isinstance(fixed, (str, int)) else fixed:
        if isinstance(item, str) and item not in system.names:
            raise ValueError(f"fixed: {item!r} is not a coordinate; there are {', '.join(system.names)}")
        index = system.names.index(item) if isinstance(item, str) else int(item)
        if not -system.n <= index < system.n:
            raise ValueError(f"fixed: {item!r} is out of range for {system.n} coordinates")
        free[index] = False
    return free


def _refuse_large(point: Point, q0, v0, q, v, moved_q: float, moved_v: float) -> None:
    names, C = point.system.constraint_names, point(q0, v0)
    remedy = "correct it, or pass repair=True to start from the nearest consistent values"
    if moved_q > max(SMALL * max(np.max(np.abs(q)), np.max(np.abs(q0))), _ROUNDING):
        worst = int(np.argmax(np.abs(C["g"])))
        raise InconsistentStart(
            f"q0 violates the constraints: {names[worst]} = {C['g'][worst]:.3g}; the nearest position is "
            f"{moved_q:.3g} away ({remedy})"
        )
    if moved_v > SMALL * max(np.max(np.abs(v)), np.max(np.abs(v0))):
        refuse_singular_position(point, q, v0)
        at = point(q, v0)
        worst = int(np.argmax(np.abs(at["w"])))
        what = (
            f"the differentiated constraints: d/dt {names[worst]}"
            if worst < point.compiled.position_rows
            else f"the velocity constraints: {names[worst]}"
        )
        raise InconsistentStart(
            f"v0 violates {what} = {at['w'][worst]:.3g}; the nearest velocity is {moved_v:.3g} away "
            f"({remedy})"
        )


def _accelerations(point: Point, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    system, n = point.system, q.size
    y = np.concatenate([q, v, point.s])
    rate, lam = np.empty(y.size + 1), np.zeros(system.m + 1)
    pieces = point(q, v)
    status = run_kernel(dense_derivative.address, point.t, y, y, point.context, rate)
    if status != OK or not np.all(np.isfinite(rate[:-1])):
        explain_singular(system, pieces, point.t)
    refuse_negative_mass(system, pieces, point.t)
    run_kernel(dense_multipliers.address, point.t, y, y, point.context, lam)
    a = rate[n : 2 * n]
    left = np.abs(pieces["C"] @ a + pieces["gamma"])
    size = np.abs(pieces["C"]) @ np.abs(a) + np.abs(pieces["gamma"])
    free = np.abs(np.linalg.lstsq(pieces["M"], pieces["f"], rcond=None)[0])
    rounding = _ROUNDING_OF_FORCES * np.max(np.abs(pieces["C"]) @ free, initial=0.0)
    bad = left > 1e-6 * np.max(size, initial=0.0) + rounding + 1e-300
    if bad.any():
        worst = ", ".join(system.constraint_names[i] for i in np.flatnonzero(bad)[:6])
        raise ContradictoryConstraints(
            f"dependent constraints ask for different accelerations at t = {point.t:.6g}: {worst} cannot "
            "hold together with the others"
        )
    return a, lam[:-1]

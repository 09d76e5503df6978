"""Switching times: instants at which forces, masses or constraints switch to another formula because of a
condition on time.

A traced expression contains its conditions.  Those that depend on t alone, such as ``t > 5`` in a pulse, are
located before a run, so that no step crosses one: a long step cannot skip a short pulse, and the error test
never sees a jump.  Conditions that are linear in t are solved, however many there are; others are sampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

_COMPARISONS = {ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_FMIN, ca.OP_FMAX}
_KINKS = {ca.OP_FABS, ca.OP_SIGN}
_GRID, _BISECTIONS = 20_001, 60
_SPARSELY = 8
"""Points of the grid for each change of a sign, at least."""

_LARGEST_GRID = 2_000_000
"""Values of conditions at once; a grid is not refined beyond that."""

_NEVER = np.zeros(0)


def _conditions(formulas: list[ca.SX], t: ca.SX, state: ca.SX) -> list[ca.SX]:
    """Expressions in t and p alone whose sign decides between formulas."""
    whole = ca.vertcat(*[ca.reshape(part, part.numel(), 1) for part in formulas])
    if not ca.depends_on(whole, t):
        return []
    found, seen = [], set()
    stack = [element for element in ca.vertsplit(ca.SX(ca.DM.ones(1)) * whole) if not element.is_constant()]
    while stack:
        node = stack.pop()
        key = node.element_hash()
        if key in seen or node.is_constant() or node.is_symbolic():
            continue
        seen.add(key)
        children = [node.dep(i) for i in range(node.n_dep())]
        difference = None
        if node.op() in _COMPARISONS:
            difference = children[0] - children[1]
        elif node.op() in _KINKS:
            difference = children[0]
        if difference is not None and ca.depends_on(difference, t) and not ca.depends_on(difference, state):
            found.append(difference)
        stack += children
    return found


@dataclass(frozen=True)
class Conditions:
    """Functions of time whose signs decide between formulas; those of the form a + b t, and others."""

    straight: ca.Function | None  # from p to a and b
    curved: ca.Function | None  # from t and p to their values
    used: np.ndarray  # which entries of the parameters they contain


def _conditions_of_time(system: Any) -> Conditions | None:
    t, known = system.symbols["t"], system.parameters.size
    p, blocks = system.context_symbols[:known], system.context_symbols[known:]
    found = _conditions(system.formulas, t, ca.vertcat(system.model.y, blocks))
    if not found:
        return None
    values = ca.vertcat(*found)
    slopes = ca.jacobian(values, t)
    contained = {symbol.element_hash() for symbol in ca.symvar(values)}
    used = np.array([i for i in range(known) if p[i].element_hash() in contained], dtype=int)
    is_straight = [not ca.depends_on(slopes[i], t) for i in range(len(found))]
    straight = [i for i, fits in enumerate(is_straight) if fits]
    curved = [i for i, fits in enumerate(is_straight) if not fits]
    lines = [ca.substitute(values[straight], t, 0), ca.densify(slopes[straight])]
    return Conditions(
        ca.Function("straight", [p[used.tolist()]], lines) if straight else None,
        ca.Function("curved", [t, p[used.tolist()]], [values[curved]]) if curved else None,
        used,
    )


def switching_times(system: Any, t0: float, t1: float) -> np.ndarray:
    """Switching times strictly inside a run, in the order in which it meets them."""
    conditions = system.compiled.once("switching conditions", lambda: _conditions_of_time(system))
    if conditions is None:
        return _NEVER
    p = system.parameters.flat[conditions.used]
    found = [_of_straight(conditions.straight, p)] if conditions.straight else []
    if conditions.curved:
        found.append(_of_curved(conditions.curved, p, t0, t1))
    direction = 1 if t1 > t0 else -1
    margin = 16 * np.spacing(max(abs(t0), abs(t1)))
    times = np.unique(np.concatenate(found))[::direction]
    elapsed = direction * times
    times = times[(elapsed > direction * t0 + margin) & (elapsed < direction * t1 - margin)]
    return times[np.concatenate([[True], np.abs(np.diff(times)) > 4 * margin])[: times.size]]


def _of_straight(function: ca.Function, p: np.ndarray) -> np.ndarray:
    """Zeros of a + b t: all of them, however close together."""
    values, slopes = (np.array(part).ravel() for part in function(p))
    with np.errstate(all="ignore"):
        times = -values / slopes
    return times[np.isfinite(times)]


def _of_curved(function: ca.Function, p: np.ndarray, t0: float, t1: float) -> np.ndarray:
    """Where signs change between the points of a grid, refined while they change too often for it."""
    points = _GRID
    while True:
        grid = np.linspace(t0, t1, points)
        values = _signs(function, grid, p)
        rows, columns = np.nonzero(values[:, 1:] != values[:, :-1])
        most = np.bincount(rows, minlength=1).max()
        if most <= points / _SPARSELY or points * len(values) > _LARGEST_GRID:
            break
        points = 4 * points
    low, high, sign_low = grid[columns], grid[columns + 1], values[rows, columns]
    at_once = max(1, _LARGEST_GRID // len(values))
    for begin in range(0, rows.size, at_once):
        part = slice(begin, begin + at_once)
        _bisect(function, p, rows[part], low[part], high[part], sign_low[part])
    return 0.5 * (low + high)


def _bisect(function: ca.Function, p: np.ndarray, rows: Any, low: Any, high: Any, sign_low: Any) -> None:
    """Narrow the intervals in which the signs of these conditions change to rounding."""
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        same = _signs(function, middle, p)[rows, np.arange(rows.size)] == sign_low
        low[:], high[:] = np.where(same, middle, low), np.where(same, high, middle)


def _signs(function: ca.Function, times: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Which conditions are positive, one column for each time."""
    return np.array(function(times[None, :], p[:, None])) > 0

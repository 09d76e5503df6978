"""Switching times: instants at which forces, masses or constraints switch to another formula because of a
condition on time.

A traced expression contains its conditions.  Those that depend on t alone, such as ``t > 5`` in a pulse, the
knots of a table over t, or the jumps of ``t % 2``, are located before a run, so that no step crosses one: a
long step cannot skip a short pulse, and the error test never sees a jump.  Where a denominator that depends
on t alone vanishes there may be a pole; a run ends its steps there as well, and looks (`solving/run.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

_COMPARISONS = {ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_FMIN, ca.OP_FMAX}
_KINKS = {ca.OP_FABS, ca.OP_SIGN}
_STEPS = {ca.OP_FLOOR, ca.OP_CEIL}
_PRODUCTS = {ca.OP_MUL, ca.OP_SQ, ca.OP_SQRT, ca.OP_FABS, ca.OP_NEG, ca.OP_TWICE}
_POWERS = {ca.OP_POW, ca.OP_CONSTPOW}
_WHERE_ZERO, _WHERE_WHOLE, _WHERE_HALF = range(3)
_GRID, _BISECTIONS, _AT_ONCE, _MOST = 20_001, 60, 2_000_000, 1_000_000
_SPARSELY = 8
"""Points of the grid for each change of a sign, at least."""
_NEVER = np.zeros(0)


def _operations(formulas: list[ca.SX]) -> Iterator[tuple[int, list[ca.SX]]]:
    """All operations in the formulas, each with its operands."""
    whole = ca.vertcat(*[ca.reshape(part, part.numel(), 1) for part in formulas])
    seen = set()
    stack = [element for element in ca.vertsplit(ca.SX(ca.DM.ones(1)) * whole) if not element.is_constant()]
    while stack:
        node = stack.pop()
        key = node.element_hash()
        if key in seen or node.is_constant() or node.is_symbolic():
            continue
        seen.add(key)
        children = [node.dep(i) for i in range(node.n_dep())]
        yield node.op(), children
        stack += children


def _conditions(formulas: list[ca.SX]) -> Iterator[tuple[ca.SX, int]]:
    """Expressions whose sign, or next whole number, or next half of one, decides between formulas."""
    for op, children in _operations(formulas):
        if op in _COMPARISONS:
            yield children[0] - children[1], _WHERE_ZERO
        elif op in _KINKS:
            yield children[0], _WHERE_ZERO
        elif op in _STEPS:
            yield children[0], _WHERE_WHOLE
        elif op in (ca.OP_FMOD, ca.OP_REMAINDER):
            yield children[0] / children[1], _WHERE_WHOLE if op == ca.OP_FMOD else _WHERE_HALF


def conditions(formulas: list[ca.SX]) -> list[ca.SX]:
    """Expressions that vanish where formulas have a kink or a jump; those of ``floor`` and ``%`` are not
    among them.
    """
    return [condition for condition, kind in _conditions(formulas) if kind == _WHERE_ZERO]


def _denominators(formulas: list[ca.SX]) -> Iterator[tuple[ca.SX, int]]:
    """Expressions that vanish where a formula has a pole; of products, their factors."""
    for op, children in _operations(formulas):
        if op == ca.OP_TAN:
            yield children[0] / math.pi, _WHERE_HALF
        elif op in (ca.OP_INV, ca.OP_LOG) or (op in _POWERS and _may_be_negative(children[1])):
            yield from _factors(children[0])
        elif op == ca.OP_DIV:
            yield from _factors(children[1])


def _may_be_negative(exponent: ca.SX) -> bool:
    return not exponent.is_constant() or float(exponent) < 0


def _factors(product: ca.SX) -> Iterator[tuple[ca.SX, int]]:
    stack = [product]
    while stack:
        node = stack.pop()
        if node.is_constant():
            continue
        if not node.is_symbolic() and (node.op() in _PRODUCTS or node.op() in _POWERS):
            stack += [node.dep(i) for i in range(node.n_dep() if node.op() in _PRODUCTS else 1)]
        elif not node.is_symbolic() and node.op() == ca.OP_DIV:
            stack.append(node.dep(0))
        else:
            yield node, _WHERE_ZERO


class _Conditions:
    """Conditions on t and the parameters alone, those linear in t apart from the others."""

    def __init__(self, found: list[tuple[ca.SX, int]], t: ca.SX, p: ca.SX) -> None:
        expressions, kinds = (
            ca.vertcat(*[condition for condition, _ in found]),
            np.array([k for _, k in found]),
        )
        slopes = ca.jacobian(expressions, t)
        contained = {symbol.element_hash() for symbol in ca.symvar(expressions)}
        self.used = np.array([i for i in range(p.numel()) if p[i].element_hash() in contained], dtype=int)
        p = p[self.used.tolist()]
        linear = ~_depend(slopes, t)
        rows = [np.flatnonzero(linear).tolist(), np.flatnonzero(~linear).tolist()]
        self.linear_kinds = kinds[rows[0]]
        self.linear = ca.Function("linear", [t, p], [expressions[rows[0]], ca.densify(slopes[rows[0]])])
        waves = [expressions[i] if not kinds[i] else _wave(expressions[i], kinds[i]) for i in rows[1]]
        self.others = ca.Function("others", [t, p], [ca.vertcat(*waves)]) if waves else None
        self._last: tuple[tuple, np.ndarray] = (), _NEVER

    def times(self, t0: float, t1: float, p: np.ndarray) -> np.ndarray:
        """All times between t0 < t1 at which a condition changes, unsorted."""
        offsets, slopes = (np.array(part).ravel() for part in self.linear(0.0, p))
        moving = slopes != 0
        offsets, slopes, kinds = offsets[moving], slopes[moving], self.linear_kinds[moving]
        crossings = kinds == _WHERE_ZERO
        found = [-offsets[crossings] / slopes[crossings]]
        for a, b, kind in zip(slopes[~crossings], offsets[~crossings], kinds[~crossings], strict=True):
            found.append(_whole_between(a, b, 0.5 if kind == _WHERE_HALF else 0.0, t0, t1))
        if self.others is not None:
            found.append(self._zeros_of(self.others, t0, t1, p))
        return np.concatenate(found)

    def _zeros_of(self, others: ca.Function, t0: float, t1: float, p: np.ndarray) -> np.ndarray:
        """Those of the last call, if it asked the same."""
        asked = t0, t1, p.tobytes()
        known, zeros = self._last
        if known != asked:
            zeros = _zeros(others, t0, t1, p)
            self._last = asked, zeros
        return zeros


def _wave(expression: ca.SX, kind: int) -> ca.SX:
    """A function that is zero where the expression is whole, or a half more."""
    return (ca.sin if kind == _WHERE_WHOLE else ca.cos)(math.pi * expression)


def _whole_between(a: float, b: float, offset: float, t0: float, t1: float) -> np.ndarray:
    """Times at which a t + b is a whole number plus the offset."""
    low, high = sorted((a * t0 + b - offset, a * t1 + b - offset))
    if not high - low < _MOST:
        return _NEVER
    return (np.arange(math.ceil(low), math.floor(high) + 1) + offset - b) / a


def _zeros(function: ca.Function, t0: float, t1: float, p: np.ndarray) -> np.ndarray:
    """Changes of sign between the points of a grid, which is refined while they are too many for it, located
    by bisection.
    """
    points = _GRID
    while True:
        grid = np.linspace(t0, t1, points)
        values = _signs(function, grid, p)
        rows, columns = np.nonzero(values[:, 1:] != values[:, :-1])
        most = np.bincount(rows, minlength=1).max()
        if most <= points / _SPARSELY or points * len(values) > _AT_ONCE:
            break
        points = 4 * points
    low, high, sign_low = grid[columns], grid[columns + 1], values[rows, columns]
    at_once = max(1, _AT_ONCE // len(values))
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


def _depend(expressions: ca.SX, symbols: ca.SX) -> np.ndarray:
    """Which entries of a column depend on any of the symbols."""
    depend = np.zeros(expressions.numel(), bool)
    depend[ca.jacobian_sparsity(expressions, symbols).row()] = True
    return depend


class _OfTime(NamedTuple):
    """Conditions on time alone, and denominators that depend on time alone; None if there are none."""

    conditions: _Conditions | None = None
    denominators: _Conditions | None = None


def _of_time(system: Any) -> _OfTime | None:
    t, formulas = system.symbols["t"], system.formulas
    if not any(ca.depends_on(formula, t) for formula in formulas if formula.numel()):
        return None
    found = _OfTime(*(_chosen(system, list(kind(formulas))) for kind in (_conditions, _denominators)))
    return found if any(found) else None


def _chosen(system: Any, found: list[tuple[ca.SX, int]]) -> _Conditions | None:
    """Those that depend on time, and otherwise on parameters alone."""
    if not found:
        return None
    t, p = system.symbols["t"], system.context_symbols
    whole = ca.vertcat(*[condition for condition, _ in found])
    varying = ca.vertcat(system.model.y, p[system.parameters.size :])
    chosen = _depend(whole, t) & ~_depend(whole, varying)
    found = [condition for condition, is_chosen in zip(found, chosen, strict=True) if is_chosen]
    return _Conditions(found, t, p[: system.parameters.size]) if found else None


class Stops(NamedTuple):
    """Times strictly inside a run that no step crosses, in the order in which it meets them, and at which of
    them there may be a pole.
    """

    times: np.ndarray = _NEVER
    poles: np.ndarray = np.zeros(0, bool)


_NO_STOPS = Stops()


def may_stop(system: Any) -> bool:
    """Whether there are any conditions on time, or denominators of time alone."""
    return system.compiled.once("conditions of time", lambda: _of_time(system)) is not None


def stops(system: Any, t0: float, t1: float) -> Stops:
    """Switching times, and where denominators vanish."""
    found = system.compiled.once("conditions of time", lambda: _of_time(system))
    if found is None:
        return _NO_STOPS
    start, end, p = min(t0, t1), max(t0, t1), system.parameters.flat
    switches, poles = (_NEVER if part is None else part.times(start, end, p[part.used]) for part in found)
    margin = 16 * np.spacing(max(abs(t0), abs(t1)))
    times = np.unique(np.concatenate([switches, poles]))
    times = times[(times > start + margin) & (times < end - margin)]
    if not times.size:
        return _NO_STOPS
    times = times if t1 > t0 else times[::-1]
    times = times[np.concatenate([[True], np.abs(np.diff(times)) > 4 * margin])]
    return Stops(times, np.any(np.abs(times[:, None] - poles) <= 4 * margin, axis=1))

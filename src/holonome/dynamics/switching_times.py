"""Switching times: instants at which forces, masses or constraints switch to another formula because of a
condition on time.

A traced expression contains its conditions.  Those that depend on t alone, such as ``t > 5`` in a pulse, are
located before a run, so that no step crosses one: a long step cannot skip a short pulse, and the error test
never sees a jump.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

_COMPARISONS = {ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_FMIN, ca.OP_FMAX}
_KINKS = {ca.OP_FABS, ca.OP_SIGN}
_GRID, _BISECTIONS, _MOST = 20_001, 60, 10_000
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


def _conditions_of_time(system: Any) -> ca.Function | None:
    t, p = system.symbols["t"], system.context_symbols
    conditions = _conditions(system.formulas, t, system.model.y)
    return ca.Function("conditions", [t, p], [ca.vertcat(*conditions)]) if conditions else None


def switching_times(system: Any, t0: float, t1: float) -> np.ndarray:
    """Switching times strictly inside a run, in the order in which it meets them."""
    function = system.compiled.once("switching conditions", lambda: _conditions_of_time(system))
    if function is None:
        return _NEVER
    p = np.zeros(function.numel_in(1))
    p[: system.parameters.size] = system.parameters.flat

    def signs(times: np.ndarray) -> np.ndarray:
        return np.array(function(times[None, :], np.tile(p[:, None], (1, times.size)))) > 0

    grid = np.linspace(t0, t1, _GRID)
    values = signs(grid)
    rows, columns = np.nonzero(values[:, 1:] != values[:, :-1])
    if rows.size > _MOST or not rows.size:
        return np.zeros(0)
    low, high = grid[columns], grid[columns + 1]
    sign_low = values[rows, columns]
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        same = signs(middle)[rows, np.arange(rows.size)] == sign_low
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    direction = 1 if t1 > t0 else -1
    margin = 16 * np.spacing(max(abs(t0), abs(t1)))
    times = np.unique(0.5 * (low + high))[::direction]
    elapsed = direction * times
    times = times[(elapsed > direction * t0 + margin) & (elapsed < direction * t1 - margin)]
    apart = np.concatenate([[True], np.abs(np.diff(times)) > 4 * margin]) if times.size else np.zeros(0, bool)
    return times[apart]

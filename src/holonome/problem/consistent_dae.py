"""Consistent initial values of a DAE: the variables that were given are kept, and algebraic variables and all
derivatives are found, by Gauss and Newton's method on the equations and their hidden constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from holonome.errors import InconsistentStart, SingularSystem

if TYPE_CHECKING:
    from holonome.problem.dae import DAE

_ITERATIONS = 60
_SMALL = 1e-3
"""A change of what was given up to this fraction of its largest value is made silently."""
_ROUNDING = 1e-12
_RANK = 1e-13


class _Constraints:
    """The equations and hidden constraints of a DAE at a time, with their derivatives."""

    def __init__(self, system: DAE, t0: float) -> None:
        symbols = system.symbols
        column = system.traced_functions["invariant"]
        matrix = ca.densify(ca.jacobian(column, symbols["s"]))
        arguments = [symbols["t"], symbols["s"], symbols["p"]]
        self._values = system.compiled.once(
            "hidden constraints", lambda: ca.Function("hidden", arguments, [column, matrix])
        )
        self._t, self._p = t0, system.parameters.flat

    def __call__(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rest, matrix = self._values(self._t, state, self._p)
        return np.array(rest).ravel(), np.array(matrix)

    def solve(self, state: np.ndarray, free: np.ndarray) -> np.ndarray:
        """The state near the given one, changed where it is free, that satisfies them best."""
        state = state.copy()
        rest, matrix = self(state)
        for _ in range(_ITERATIONS):
            scale = _row_scales(matrix)
            if not np.all(np.isfinite(matrix)):
                break
            step = np.linalg.lstsq((matrix / scale)[:, free], rest / scale[:, 0], rcond=_RANK)[0]
            size = np.linalg.norm(rest / scale[:, 0])
            for halvings in range(30):
                trial = state.copy()
                trial[free] -= step / 2**halvings
                new, slope = self(trial)
                if np.linalg.norm(new / scale[:, 0]) < size * (1 - 0.1 / 2**halvings):
                    break
            else:
                break
            state, rest, matrix = trial, new, slope
        return state


def _row_scales(matrix: np.ndarray) -> np.ndarray:
    largest = np.max(np.abs(matrix), axis=1, keepdims=True)
    return np.where(largest > 0, largest, 1.0)


def consistent_values(
    system: DAE, t0: float, x: np.ndarray, slopes: np.ndarray | None, repair: bool
) -> np.ndarray:
    """The state of a DAE at given variables x, and x′ where x″ occurs (None: as small as possible)."""
    facts, n = system.structure, x.size
    state = np.zeros(len(system.states))
    state[:n] = np.where(np.isnan(x), 0.0, x)
    names = list(system.states)
    moving = {names.index(names[j] + "'"): j for j in facts["second_order"]}
    if slopes is not None:
        for place, j in moving.items():
            state[place] = 0.0 if np.isnan(slopes[j]) else slopes[j]
    if not system.invariant_count:
        return state
    given = np.arange(state.size) < n
    given[facts["algebraic"]] = False
    given[np.flatnonzero(np.isnan(x))] = False
    constraints = _Constraints(system, t0)
    still = given.copy()
    still[[place for place, j in moving.items() if slopes is None or not np.isnan(slopes[j])]] = True
    state = constraints.solve(state, ~still)
    if slopes is None and moving:
        state = constraints.solve(state, ~given)
    else:
        given = still
    found = constraints.solve(state, np.ones(state.size, bool))
    _require_found(system, constraints, t0, found)
    _refuse_large(system, constraints, state, found, given, repair)
    return found


def _require_found(system: DAE, constraints: _Constraints, t0: float, found: np.ndarray) -> None:
    rest, matrix = constraints(found)
    scale = _row_scales(matrix)[:, 0] * (1 + np.max(np.abs(found)))
    if not np.all(np.abs(rest) <= 1e-8 * scale):
        worst = int(np.nanargmax(np.where(np.isfinite(rest), np.abs(rest) / scale, np.inf)))
        raise InconsistentStart(
            f"q0: no consistent values were found near it at t = {t0:.6g}; "
            f"{system.structure['hidden'][worst]} = {rest[worst]:.3g} is left. "
            "Give values nearer to a solution, also of the algebraic variables"
        )
    columns = np.max(np.abs(matrix), axis=0)
    scaled = matrix / np.where(columns > 0, columns, 1.0)
    values = np.linalg.svd(scaled / _row_scales(scaled), compute_uv=False)
    if values[-1] <= _RANK * values[0]:
        raise SingularSystem(
            f"the hidden constraints depend on each other at t = {t0:.6g}: either the start is a singular "
            "position, or the index is higher than the structural index. Try another start; if that "
            "fails, combine the equations by hand so that derivatives that cancel do so as written"
        )


def _refuse_large(
    system: DAE,
    constraints: _Constraints,
    before: np.ndarray,
    found: np.ndarray,
    given: np.ndarray,
    repair: bool,
) -> None:
    change = np.abs(found - before)[given]
    moved = float(np.max(change, initial=0.0))
    if repair or moved <= max(_SMALL * float(np.max(np.abs(found[given]), initial=0.0)), _ROUNDING):
        return
    rest, matrix = constraints(before)
    worst = int(np.argmax(np.abs(rest) / _row_scales(matrix)[:, 0]))
    raise InconsistentStart(
        f"q0 violates the equations: {system.structure['hidden'][worst]} = {rest[worst]:.3g}; the nearest "
        f"consistent values are {moved:.3g} away (correct it, give NaN for what is to be found, or pass "
        "repair=True to start from them)"
    )

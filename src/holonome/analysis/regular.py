"""Whether a state has a linearisation: the rank of the constraints must not fall there, and what decides
between formulas must not vanish, as at the kink of |q| or the jump of sign(v).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from holonome.analysis.given import Place
from holonome.analysis.newton import null_space
from holonome.dynamics.evaluation import Point
from holonome.dynamics.kernels import kernels
from holonome.dynamics.rank import always_dependent_rows, dependent_rows
from holonome.dynamics.switching_times import conditions
from holonome.errors import ModelError
from holonome.machine.context import PARAMETERS
from holonome.problem.system import System

_DISTANCE = 1e-6
"""How far to both sides formulas are compared, relative to the state."""

_KINK = 1e-3
"""A change of the slope relative to the slope: that of a smooth formula is about the distance."""


def require_regular(system: System, here: Place) -> None:
    """Raise ModelError where small deviations from a state are no linear system."""
    if not system.n + len(system.states):
        return
    point = Point(system, kernels(system), here.t, here.s)
    C = point(here.q, here.v)["C"]
    if len(C):
        _require_rank(system, here, C)
    _require_derivatives(system, here, point, C)


def _require_rank(system: System, here: Place, C: np.ndarray) -> None:
    _, dependent = dependent_rows(C)
    if not dependent:
        return
    try:
        always = always_dependent_rows(system, here.t, np.concatenate([here.q, here.v, here.s]))
    except ModelError:
        return  # whether the rank is less than nearby is not known
    rows = [system.constraint_names[i] for i in dependent if i not in always]
    if rows:
        raise ModelError(
            f"state: a singular position, where {', '.join(rows[:4])} depends on the other constraints: more "
            "motions satisfy the linearised constraints than the constraints themselves, so there is no "
            "linearisation; take a state beside it"
        )


def _require_derivatives(system: System, here: Place, point: Point, C: np.ndarray) -> None:
    deciding = system.compiled.once("conditions of state", lambda: _conditions_of(system))
    if deciding is None:
        return
    p = point.context[PARAMETERS : PARAMETERS + system.model.p.numel()]
    tangent = null_space(C) if len(C) else np.eye(system.n)
    for seed in range(2):
        d = _direction(here, tangent, seed)
        y = np.concatenate([here.q, here.v, here.s])
        before, after = (np.array(deciding(here.t, y + sign * d, p)).ravel() for sign in (-1, 1))
        if np.any(np.sign(before) != np.sign(after)) and (what := _kink(system, point, y, d)):
            raise ModelError(
                f"state: {what} has no derivative there: a formula of it has a kink or a jump, as |q| and "
                "sign(v) have at zero, so there is no linearisation; take a state beside it, or a smooth "
                "formula such as tanh(v / small)"
            )


def _conditions_of(system: System) -> ca.Function | None:
    model = system.model
    found = [c for c in conditions(system.formulas) if ca.depends_on(c, model.y)]
    return ca.Function("conditions", [model.t, model.y, model.p], [ca.vertcat(*found)]) if found else None


def _direction(here: Place, tangent: np.ndarray, seed: int) -> np.ndarray:
    """A small deviation that the constraints allow."""
    random = np.random.default_rng(seed)
    sizes = [_DISTANCE * (float(np.max(np.abs(x), initial=0.0)) or 1.0) for x in (here.q, here.v, here.s)]
    parts = [tangent @ random.normal(size=tangent.shape[1]) for _ in range(2)]
    return np.concatenate(
        [size * part for size, part in zip(sizes, [*parts, random.normal(size=here.s.size)], strict=True)]
    )


def _kink(system: System, point: Point, y: np.ndarray, d: np.ndarray) -> str:
    """What changes by other slopes to both sides of a state; empty if all is smooth there."""
    n = system.n

    def at(y: np.ndarray) -> dict[str, np.ndarray]:
        beside = Point(system, point.compiled, point.t, y[2 * n :])
        return beside(y[:n], y[n : 2 * n])

    before, middle, half, after = (at(y + share * d) for share in (-1, 0, 0.5, 1))
    for name, what in (("f", "force"), ("M", "mass"), ("C", "constraint"), ("r", "rate")):
        slope = after[name] - middle[name]
        others = middle[name] - before[name], 2 * (half[name] - middle[name])
        rounding = 1e-12 * np.max(np.abs(middle[name]), initial=0.0)
        for other in others:
            size = np.maximum(np.abs(slope), np.abs(other))
            if np.any(np.abs(slope - other) > _KINK * size + rounding):
                return what
    return ""

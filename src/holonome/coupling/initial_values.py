"""Initial values of a coupled system: given by subsystem or as one vector, and made consistent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from holonome.coupling.coupled_dynamics import CoupledDynamics
from holonome.coupling.coupled_system import CoupledSystem
from holonome.coupling.subsolvers import require_subsystems
from holonome.dynamics.start import SMALL
from holonome.errors import ContradictoryConstraints, InconsistentStart
from holonome.problem.vectors import require_finite, vector

_MOST_STEPS = 50
_REMAINDER = 1e-8
"""Residual, relative to max(1, |q|), above which the constraints count as contradictory."""


def state_vector(argument: str, given: Any, coupled: CoupledSystem) -> np.ndarray:
    """Initial positions or velocities of all subsystems from a dict or a vector, checked."""
    if not isinstance(given, Mapping):
        values = vector(argument, given, coupled.n)
    else:
        require_subsystems(argument, given, coupled.parts)
        for name in coupled.parts:
            if name not in given:
                raise ValueError(
                    f"{argument}: {name!r} is missing; give values for all of {', '.join(coupled.parts)}"
                )
        values = np.concatenate(
            [
                vector(f"{argument}[{name!r}]", given[name], subsystem.n)
                for name, subsystem in coupled.subsystems.items()
            ]
        )
    require_finite(**{argument: values})
    return values


def consistent_values(
    dynamics: CoupledDynamics, t: float, q0: np.ndarray, v0: np.ndarray, repair: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities near the given ones that satisfy all constraints; large corrections are made
    only if ``repair`` is set.
    """
    coupled = dynamics.coupled
    here = np.array([t])
    q, v = dynamics.project(t, q0, v0, _MOST_STEPS)
    left = np.abs(coupled.at(here, q[None], v[None]).g[0])
    if np.any(left > _REMAINDER * max(1.0, float(np.max(np.abs(q))))) or not np.all(np.isfinite(q)):
        worst = int(np.argmax(left))
        raise ContradictoryConstraints(
            f"q0: no position near it satisfies the coupling; {left[worst]:.3g} remains of "
            f"{coupled.constraint_names[worst]}. Give a better q0"
        )
    if not repair:
        _refuse_large_change(coupled, "q0", q0, q, coupled.at(here, q0[None], v0[None]).g[0])
        if np.any(v0):
            _refuse_large_change(coupled, "v0", v0, v, coupled.at(here, q[None], v0[None]).w[0])
    return q, v


def _refuse_large_change(
    coupled: CoupledSystem, argument: str, given: np.ndarray, found: np.ndarray, residual: np.ndarray
) -> None:
    change = float(np.max(np.abs(found - given)))
    if change <= SMALL * max(np.max(np.abs(given)), np.max(np.abs(found))):
        return
    worst = int(np.argmax(np.abs(residual)))
    raise InconsistentStart(
        f"{argument} violates the constraints: {coupled.constraint_names[worst]} = {residual[worst]:.3g}; "
        f"consistent values are {change:.3g} away (correct it, or pass repair=True to start from them)"
    )

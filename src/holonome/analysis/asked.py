"""From the arguments of hn.equilibrium to its equations, and where the search for a solution begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from holonome.analysis.balance import Balance
from holonome.analysis.given import Place
from holonome.analysis.newton import least_norm
from holonome.analysis.problem import Problem, held, rows
from holonome.arguments import shown
from holonome.problem.system import System


def stated(system: System, here: Place, speed: Any, free: list[str], fixed: list[str], t: float) -> Problem:
    """The equations of what is asked for."""
    speed = dict(speed or {})
    if speed and system.n == 0:
        raise ValueError("speed: an ODE has no velocities; leave it out")
    names = tuple(_free_names(system, free, speed))
    known = {name: value for name, value in speed.items() if not hasattr(value, "value") and name not in free}
    speeds, every = (rows(system, held(system, "speed", values, t)) for values in (known, speed))
    positions = rows(system, [pair for name in fixed for pair in _measured(system, name)])
    target = positions.at(system, here)[0]
    balance = Balance(system, names)
    moving = bool(speed) or _driven(system, here, balance)
    return Problem(system, t, moving, balance, names, speeds, positions, every, target)


def _free_names(system: System, free: list[str], speed: Any) -> list[str]:
    names = []
    for name in free:
        if name in system.parameters:
            names.append(name)
        elif name not in (speed or {}):
            there = ", ".join(system.parameters) or "none"
            reason = (
                "is solved for anyway; hold it with fixed=…, or free a parameter"
                if system.measured(name) is not None
                else "is no parameter or input"
            )
            raise ValueError(f"free: {name!r} {reason}; parameters and inputs are {there}")
    return names


def _measured(system: System, name: str) -> list[tuple[str, ca.SX]]:
    found = system.measured(name)
    if found is None:
        raise ValueError(f"fixed: there is no {name!r}; give coordinates, joints or points by name")
    return list(found.items())


def _driven(system: System, here: Place, balance: Balance) -> bool:
    """Whether constraints that change with time do not allow rest."""
    if not system.m:
        return False
    _, rates, size = balance.violated(system, replace(here, v=np.zeros(system.n)))
    reach = max(float(np.max(np.abs(here.q), initial=0.0)), 1e-3)
    return bool(np.max(np.abs(rates)) > 1e-9 * size * reach)


def first_multipliers(problem: Problem, here: Place) -> np.ndarray:
    """Multipliers that come closest to balance."""
    system = problem.system
    if not system.m:
        return np.zeros(0)
    if system.model.lam.numel() and system.multipliers is not None:
        return system.multipliers
    found = problem.derivatives(problem.unknowns(here, np.zeros(system.m)))
    if system.n + system.m <= 700:
        return np.linalg.lstsq(found.full("balance", "lam"), -found.of("balance"), rcond=1e-10)[0]
    return least_norm(found.block("balance", "lam"), found.of("balance"))


def first_rates(problem: Problem, here: Place) -> np.ndarray:
    """Velocities of least norm that constraints and speeds ask for."""
    system, still = problem.system, replace(here, v=np.zeros(problem.system.n))
    value, _, by_v = problem.every_speed.at(system, still)
    rows, right = by_v, -value
    if system.m:
        state = still.at(system)
        rows, right = np.vstack([state.G, rows]), np.concatenate([-state.gv, right])
    return np.linalg.lstsq(rows, right, rcond=1e-10)[0]


def numbers_of(speed: Any) -> Any:
    """Values of ``speed`` without what says that they are only near."""
    if speed is None:
        return None
    if not isinstance(speed, Mapping):
        raise ValueError(f"speed: {shown(speed)}; give a dict of names and values")
    return {name: getattr(value, "value", value) for name, value in speed.items()}

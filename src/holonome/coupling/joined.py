"""A coupled system in one piece: its subsystems and the coupling joined to one System."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca

from holonome.errors import ModelError
from holonome.problem.system import System
from holonome.problem.user_function import Expression


class _Equations(NamedTuple):
    """The expressions of one system in the symbols of the whole."""

    M: ca.SX
    f: ca.SX
    g: ca.SX
    h: ca.SX
    V: ca.SX


def join(coupling: System, subsystems: Mapping[str, System], parts: Mapping[str, slice], name: str) -> System:
    """The subsystems and the coupling, a System of all coordinates, as one System; the rows of the coupling
    come first among its constraints.  The values of parameters are fixed.
    """
    n = coupling.n
    t = ca.SX.sym("t")
    q = ca.SX.sym("q", n)
    v = ca.SX.sym("v", n)
    of_coupling = _equations("coupling", coupling, t, q, v)
    of_subsystems = [
        _equations(key, system, t, q[parts[key]], v[parts[key]]) for key, system in subsystems.items()
    ]
    joined = {
        "mass": ca.reshape(ca.diagcat(*[x.M for x in of_subsystems]).T, -1, 1),
        "force": ca.vertcat(*[x.f for x in of_subsystems]),
        "constraint": ca.vertcat(of_coupling.g, *[x.g for x in of_subsystems]),
    }
    velocity_constraint = ca.vertcat(*[x.h for x in of_subsystems])
    if velocity_constraint.numel():
        joined["velocity_constraint"] = velocity_constraint
    if all(x.V.numel() for x in of_subsystems):
        joined["potential"] = ca.sum1(ca.vertcat(*[x.V for x in of_subsystems]))
    multipliers = joined["constraint"].numel() + velocity_constraint.numel()
    sizes = {"p": 0, "s": 0, "w": 0, "lam": multipliers}
    inputs = {"t": t, "q": q, "v": v} | {symbol: ca.SX.sym(symbol, size) for symbol, size in sizes.items()}
    functions: dict[str, Any] = {
        role: Expression(role, ca.Function("joined", list(inputs.values()), [ca.densify(value)]), n)
        for role, value in joined.items()
    }
    return System(
        functions.pop("mass"),
        functions.pop("force"),
        functions.pop("constraint"),
        **functions,
        inertial="in force",
        names=[f"{key} {coordinate}" for key, system in subsystems.items() for coordinate in system.names],
        constraint_names=_constraint_names(coupling, subsystems),
        name=name,
    )


def _equations(key: str, system: System, t: ca.SX, q: ca.SX, v: ca.SX) -> _Equations:
    if system.supplied:
        raise ModelError(
            f"whole: the {system.supplied[0].role} of {key!r} cannot be traced, so its equations cannot be "
            "joined with the others; use hn.solve_coupled"
        )
    model = system.model
    potential = ca.SX(0, 1) if model.V is None else model.V
    function = ca.Function(
        key, [model.t, model.q, model.v, model.p], [model.M, model.f, model.g, model.h, potential]
    )
    return _Equations(*function(t, q, v, system.parameters.flat))


def _constraint_names(coupling: System, subsystems: Mapping[str, System]) -> list[str]:
    """Position constraints first, then velocity constraints."""
    position = list(coupling.constraint_names)
    velocity = []
    for key, system in subsystems.items():
        names = [f"{key} {name}" for name in system.constraint_names]
        position += names[: system.model.position_rows]
        velocity += names[system.model.position_rows :]
    return position + velocity

"""Outputs of a linearisation: quantities by name, or functions of the state, the inputs, accelerations and
multipliers, with their derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from holonome.analysis.given import Place
from holonome.arguments import shown
from holonome.dynamics.state import _motion_symbols
from holonome.errors import ModelError
from holonome.problem.system import System


@dataclass(frozen=True, eq=False)
class Outputs:
    """Names, values, and derivatives by q, v, s, a, λ and the parameters."""

    names: tuple[str, ...]
    value: np.ndarray
    by: tuple[np.ndarray, ...]


def outputs_at(
    system: System, given: Sequence[Any] | str, here: Place, a: np.ndarray, lam: np.ndarray
) -> Outputs:
    """The outputs asked for, at a state."""
    wanted = [given] if isinstance(given, str) or callable(given) else given
    if not isinstance(wanted, list | tuple):
        raise ValueError(f"outputs: {shown(given)}; give names, or functions of t, q, v, s, a, lam, p, u")
    found: dict[str, ca.SX] = {}
    for number, entry in enumerate(wanted):
        found |= _expressions(system, entry, number)
    model, symbols = system.model, system.symbols
    own_a, own_lam = _motion_symbols(model)
    value = ca.densify(ca.vertcat(ca.SX(0, 1), *found.values()))
    for name, symbol in (("unknowns w", model.u), ("multipliers on which forces depend", model.lam)):
        if symbol.numel() and ca.depends_on(value, symbol):
            raise ModelError(f"outputs: they depend on the {name}; give quantities of q, v, s, a and lam")
    symbols_of = [model.q, model.v, model.s, own_a, own_lam, symbols["p"]]
    inputs = [model.t, *symbols_of]
    parts = [value, *(ca.densify(ca.jacobian(value, x)) for x in symbols_of)]
    numbers = [here.t, here.q, here.v, here.s, a, lam, system.parameters.flat]
    values = [np.array(x) for x in ca.Function("outputs", inputs, parts).call(numbers)]
    shaped = [x.reshape(len(found), y.numel()) for x, y in zip(values[1:], symbols_of, strict=True)]
    return Outputs(tuple(found), values[0].ravel(), tuple(shaped))


def _expressions(system: System, entry: Any, number: int) -> dict[str, ca.SX]:
    if isinstance(entry, str):
        found = system.measured(entry)
        if found is None:
            raise ValueError(f"outputs: there is no {entry!r}; there are {_known(system)}")
        return found
    if not callable(entry):
        raise ValueError(f"outputs: {shown(entry)}; give names, or functions of t, q, v, s, a, lam, p, u")
    role = f"outputs[{number}]"
    name = getattr(entry, "__name__", "")
    label = role if name in ("", "<lambda>") else name
    a, lam = _motion_symbols(system.model)
    value: Any = system.event_function(role, entry).expression(system.symbols | {"a": a, "lam": lam})
    if not isinstance(value, ca.SX):
        raise ModelError(f"{role}: cannot be traced; write it with NumPy functions")
    rows = ca.vertsplit(ca.densify(value))
    return {label if len(rows) == 1 else f"{label}[{k}]": row for k, row in enumerate(rows)}


def _known(system: Any) -> str:
    """What may be asked for instead."""
    names = [*getattr(system, "joints", ()), *(x for x in getattr(system, "bodies", ()) if x != "ground")]
    shown_names = [*names, *system.names[:6], *list(system.states)[:6]]
    return ", ".join(shown_names) + (" …" if len(system.names) > 6 else "")

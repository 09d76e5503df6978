"""What ``print(system)`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from holonome.problem.system import System

_PATHS = {
    "constant": "constant",
    "traced": "traced, exact derivatives, native code",
    "numba": "compiled by numba, finite differences",
    "python": "called in Python, finite differences",
}

_INERTIAL = {
    "derived": "derived from mass and added to force",
    "in force": "contained in force",
}


def shortened(names: Sequence[str]) -> list[str]:
    """The names, of a long list the first and the last."""
    return list(names) if len(names) <= 9 else [*names[:4], "…", *names[-2:]]


def description(system: System) -> str:
    """Sizes and names, how each function is evaluated, where the inertial terms are, and the parameters."""
    width = max(20, *map(len, system.functions))
    lines = [_headline(system)]
    for role, function in system.functions.items():
        reason = f"  ({function.reason})" if function.reason else ""
        lines.append(f"  {role:{width}s} {_PATHS[function.path]}{reason}")
    if system.inertial:
        lines.append(f"  {'inertial terms':{width}s} {_INERTIAL[system.inertial]}")
    for kind, what in (("p", "parameters"), ("u", "inputs")):
        values = [
            f"{name} = {np.array2string(np.asarray(system.parameters[name]), precision=6, threshold=6)}"
            for name in system.parameters.layout_of(kind)
        ]
        if values:
            lines.append(f"  {what:{width}s} {', '.join(values)}")
    return "\n".join(lines)


def _headline(system: System) -> str:
    counts = {"position": system.model.position_rows, "velocity": system.model.h.numel()}
    kinds = " + ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    rows = f"{kinds} constraint row{'s' * (system.m != 1)}" if kinds else "no constraints"
    line = f"System {system.name!r}: {_counted('coordinate', system.names)}, {rows}"
    for what, values in (("state", system.states), ("unknown", system.unknowns)):
        if values:
            line += f", {_counted(what, list(values))}"
    return line


def _counted(what: str, names: Sequence[str]) -> str:
    """How many there are, and their names."""
    return f"{len(names)} {what}{'s' * (len(names) != 1)} ({', '.join(shortened(names))})"

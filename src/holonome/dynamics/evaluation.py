"""M, f, C, … of a system at one state; where that fails, which of the user's functions is to blame."""

from __future__ import annotations

import numpy as np

from holonome.dynamics.kernels import Kernels
from holonome.errors import ModelError
from holonome.problem.parameters import Parameters
from holonome.problem.system import System
from holonome.problem.user_function import UserFunction


class Point:
    """M, f, C, … of a system at a given time; names the function that fails."""

    def __init__(self, system: System, compiled: Kernels, t: float, s: np.ndarray) -> None:
        self.system, self.compiled, self.t, self.s = system, compiled, t, s
        self.context = compiled.context(system)

    def __call__(self, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        y = np.concatenate([q, v, self.s])
        pieces = self.compiled.evaluate_pieces(self.context, self.t, y)
        if pieces is None or not all(np.all(np.isfinite(x)) for x in pieces.values()):
            raise ModelError(what_failed(self.system, self.t, y))
        return pieces


def what_failed(system: System, t: float, y: np.ndarray) -> str:
    """Which of the user's functions raises or is not finite at a state, or else what may have failed, in
    words.
    """
    text, here = what_is_not_finite(system, t, y), _where(system, t, y)
    if text:
        return text
    if system.unknowns and "lam" not in system.further_names:
        return (
            f"the equations for the unknowns {', '.join(system.unknowns)} have no solution near their last "
            f"values, do not determine them, or a derivative is not finite {here}"
        )
    if "lam" in system.further_names:
        return (
            f"the multipliers λ, on which forces depend, are not found {here}: that needs independent "
            "constraints and a regular mass matrix, forces that leave λ determined and are finite near the "
            f"first guess, {_first_guess(system)}"
        )
    return f"a derivative of the system's functions is not finite {here}"


def what_is_not_finite(system: System, t: float, y: np.ndarray) -> str:
    """Which of the user's functions raises or is not finite at a state, in words; nothing if all is well."""
    n, here = system.n, _where(system, t, y)
    point = {"t": t, "q": y[:n], "v": y[n : 2 * n], "s": y[2 * n :]}
    for function in system.functions.values():
        texts = [
            _what_is_wrong(function, point | lam, system.parameters, here)
            for lam in _multipliers_to_try(system, function)
        ]
        if all(texts):
            return texts[0]
    return ""


def _where(system: System, t: float, y: np.ndarray) -> str:
    return f"(at t = {t:.6g}, q = {np.array2string(y[: system.n], precision=6, threshold=8)})"


def _multipliers_to_try(system: System, function: UserFunction) -> list[dict[str, np.ndarray]]:
    """Values of λ to evaluate a function with: a force that is finite with one of them is not to blame."""
    if "lam" not in system.further_names or "lam" not in function.arguments:
        return [{}]
    first = [] if system.multipliers is None else [system.multipliers]
    return [{"lam": lam} for lam in (*first, *np.outer((0.0, 1e-3, -1e-3, 1.0, -1.0), np.ones(system.m)))]


def _first_guess(system: System) -> str:
    if system.multipliers is None:
        return "λ = 0; give a better one, lam0=[...]"
    return f"lam0 = {np.array2string(system.multipliers, precision=6, threshold=8)}; give a better one"


def _what_is_wrong(function: UserFunction, point: dict, parameters: Parameters, here: str) -> str:
    """Whether a function raises or is not finite at a point, in words."""
    try:
        value = function.evaluate(point, parameters)
    except ModelError as error:
        return str(error)
    if np.all(np.isfinite(value)):
        return ""
    where = np.unravel_index(int(np.argmin(np.isfinite(value))), value.shape)
    entry = f"entry {', '.join(map(str, where))} of {function.role}" if value.size > 1 else function.role
    return f"{entry} is {value[where]} {here}"

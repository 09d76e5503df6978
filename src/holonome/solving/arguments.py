"""The arguments of solve, checked: each error names the argument and says what to give instead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from holonome.problem.vectors import require_finite, vector

_SMALLEST_RTOL = 1e-14


def checked_system(system: Any, parameters: Any, w0: Any, lam0: Any = None) -> Any:
    """The system with the parameters and guesses of this run."""
    if not hasattr(system, "mechanical"):
        remedy = ""
        if hasattr(system, "system"):
            remedy = "; give mechanism.system"
        elif hasattr(system, "subsystems"):
            remedy = "; use hn.solve_coupled"
        raise TypeError(f"system: {system!r} is not an hn.System{remedy}")
    if parameters:
        if not isinstance(parameters, Mapping):
            raise TypeError(f"parameters: {parameters!r}; give a dict of names and values")
        system = system.with_parameters(**parameters)
    if w0 is not None:
        if not system.mechanical:
            raise ValueError("w0: a problem of index 2 or 3 has no unknowns of this kind; leave it out")
        system = system.with_unknowns(vector("w0", w0, len(system.unknowns)))
    if lam0 is not None:
        if not system.mechanical or "lam" not in system.further_names:
            raise ValueError("lam0: no force of this system depends on lam, so none is needed; leave it out")
        guess = vector("lam0", lam0, system.m)
        require_finite(lam0=guess)
        system = system.with_multipliers(guess)
    return system


def time_span(t_span: Sequence[float]) -> tuple[float, float]:
    """Initial and final time."""
    try:
        t0, t1 = t_span
        t0, t1 = float(t0), float(t1)
    except (TypeError, ValueError):
        raise ValueError(f"t_span: {t_span!r}; give (initial time, final time)") from None
    if not (math.isfinite(t0) and math.isfinite(t1)):
        raise ValueError(f"t_span: {t_span!r} is not finite")
    if t0 == t1:
        raise ValueError(f"t_span: {t_span!r} has no length")
    return t0, t1


def wanted_times(t_eval: Any, t0: float, t1: float) -> np.ndarray | None:
    """Times at which the solution is wanted; None for all steps."""
    if t_eval is None:
        return None
    try:
        times = np.array(t_eval, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"t_eval: {t_eval!r} is not an array of times") from None
    if times.ndim != 1:
        raise ValueError(f"t_eval: shape {times.shape}; give a one-dimensional array")
    if not np.all(np.isfinite(times)) or np.any((times < min(t0, t1)) | (times > max(t0, t1))):
        raise ValueError(f"t_eval: all times must lie within t_span = ({t0:g}, {t1:g})")
    if np.any(np.diff(times) * (1 if t1 > t0 else -1) <= 0):
        raise ValueError("t_eval: times must be sorted in the direction of t_span, without repetition")
    return times


def positive(argument: str, value: Any) -> float:
    """A positive number, perhaps infinite."""
    if (type(value) is not float and not isinstance(value, Real)) or not float(value) > 0:
        raise ValueError(f"{argument}: {value!r}; give a positive number")
    return float(value)


def step_limit(max_steps: Any) -> int:
    """The largest number of steps."""
    if (type(max_steps) is not int and not isinstance(max_steps, Integral)) or not 0 < int(max_steps) < 2**62:
        raise ValueError(f"max_steps: {max_steps!r}; give a positive whole number")
    return int(max_steps)


def constant_step(step: Any, chosen: float | None) -> float:
    """A constant step size, as an argument of solve or of the integrator; 0 if there is none."""
    constant = chosen if step is None else step
    if constant is None:
        return 0.0
    if not (isinstance(constant, Real) and 0 < float(constant) < math.inf):
        raise ValueError(f"step: {constant!r}; a constant step size is a positive number")
    return float(constant)


def relative_tolerance(rtol: Any) -> float:
    """The relative tolerance, not below what doubles allow."""
    if (type(rtol) is not float and not isinstance(rtol, Real)) or not 0 <= float(rtol) < 1:
        raise ValueError(f"rtol: {rtol!r}; give a number between 0 and 1")
    return max(float(rtol), _SMALLEST_RTOL)


def absolute_tolerances(atol: Any, rtol: Any, n: int, levels: int, states: int) -> float | np.ndarray:
    """A number, or one for each entry of (x, …, s): ``levels`` times n of x and its derivatives, then the
    states.
    """
    if type(atol) is float and 0 < atol < math.inf:
        return atol
    try:
        array = np.asarray(atol, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"atol: {atol!r}; give a number or an array of them") from None
    shapes: dict[tuple[int, ...], str] = {(): "a number"}
    if n:
        shapes[n,] = f"{n} values (for each coordinate)"
        if levels == 2:
            shapes[2 * n,] = f"{2 * n} (positions, then velocities)"
    if states:
        size = levels * n + states
        shapes[size,] = f"{size} (with the states behind)" if n else f"{states} values (for each component)"
    if array.shape not in shapes:
        *others, last = shapes.values()
        raise ValueError(f"atol: shape {array.shape}; give {', '.join(others)} or {last}")
    if not np.all(array >= 0) or not np.all(np.isfinite(array)) or (rtol == 0 and not np.all(array > 0)):
        raise ValueError(f"atol: {atol!r}; give positive numbers")
    array = np.maximum(array, 1e-300)
    if array.shape == (n,) and n:
        array = np.tile(array, levels)
    if array.shape == (levels * n,) and states:
        array = np.append(array, np.full(states, np.mean(array)))
    return array


def refuse_for_general(projection: Any, motion: str, repair: bool) -> None:
    """Arguments of solve that mean nothing for a problem of index 2 or 3."""
    given = {"projection": projection is not None, "motion": motion != "all", "repair": bool(repair)}
    for argument, used in given.items():
        if used:
            raise ValueError(f"{argument}: it has no meaning for a problem of index 2 or 3; leave it out")

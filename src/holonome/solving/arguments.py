"""The arguments of solve, checked: each error names the argument and says what to give instead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from holonome.arguments import ARGUMENTS, checked, shown
from holonome.problem.vectors import require_finite, vector

MANY = 2**40
_SMALLEST_RTOL = 1e-14
_PLAIN = (float, int)


def checked_system(system: Any, parameters: Any, inputs: Any, w0: Any, lam0: Any = None) -> Any:
    """The system with the parameters, inputs and guesses of this run."""
    if not hasattr(system, "mechanical"):
        remedy = ""
        if hasattr(system, "subsystems"):
            remedy = "; use hn.solve_coupled"
        raise TypeError(f"system: {shown(system)} is not an hn.System{remedy}")
    if parameters is not None:
        system = system.with_parameters(**system.parameters.own("parameters", parameters))
    if inputs is not None:
        system = system.with_parameters(**system.parameters.own("inputs", inputs))
    if w0 is not None:
        if not system.mechanical or not system.unknowns:
            raise ValueError("w0: this system has no unknowns w; leave it out")
        guess = vector("w0", w0, len(system.unknowns), "unknowns")
        require_finite(w0=guess)
        system = system.with_unknowns(guess)
    if lam0 is not None:
        if not system.mechanical or "lam" not in system.further_names:
            raise ValueError("lam0: no force of this system depends on lam, so none is needed; leave it out")
        guess = vector("lam0", lam0, system.m, "multipliers")
        require_finite(lam0=guess)
        system = system.with_multipliers(guess)
    return system


def assembled(
    made: Any, t_span: Any, q0: Any, v0: Any, s0: Any, start: Any, speed: Any, parameters: Any
) -> tuple[Any, Any, Any, Any]:
    """The system of a mechanism, and its start: as given, or assembled from values by name."""
    if q0 is not None:
        for argument, value in (("start", start), ("speed", speed)):
            if value is not None:
                raise ValueError(f"{argument}: q0 is given as well; give one of them")
        mechanism = getattr(made, "mechanism", made)
        if hasattr(mechanism, "begin_at"):
            mechanism.begin_at(q0, *_moment(t_span, parameters))
        return made.system, q0, v0, s0
    for argument, value in (("v0", v0), ("s0", s0)):
        if value is not None:
            raise ValueError(f"{argument}: it goes with q0; give both, or start and speed")
    t0, values = _moment(t_span, parameters)
    q0, v0, s0 = made.initial(t0, start, speed, values)
    return made.system, q0, v0, s0  # after the start, on which may depend what rows it needs


def _moment(t_span: Any, parameters: Any) -> tuple[float, Any]:
    return time_span(t_span)[0], None if parameters is None else checked("parameters", parameters)


def refuse_start_by_name(system: Any, start: Any, speed: Any) -> None:
    """A system of functions has no joints and bodies by name, and needs q0."""
    for argument, value in (("start", start), ("speed", speed)):
        if value is not None:
            raise ValueError(
                f"{argument}: {shown(system)} has no joints and bodies by name, as an hn.Mechanism has; give "
                "q0 and v0"
            )
    if hasattr(system, "mechanical"):
        raise ValueError("q0: missing; give the initial positions")


_USUAL = {
    "dense_output": False,
    "first_step": None,
    "max_step": math.inf,
    "step": None,
    "projection": None,
    "motion": "all",
    "repair": False,
    "keep_steps": None,
    "max_steps": object(),  # every value is read
    "progress": False,
}
"""Arguments of solve, with values that need no reading."""

_READERS = [(ARGUMENTS[name].read, usual) for name, usual in _USUAL.items()]


def options(
    dense_output: Any,
    first_step: Any,
    max_step: Any,
    step: Any,
    projection: Any,
    motion: Any,
    repair: Any,
    keep_steps: Any,
    max_steps: Any,
    progress: Any,
) -> Sequence[Any]:
    """These arguments of solve, in the order of _USUAL."""
    if (
        first_step is step is projection is keep_steps is None
        and dense_output is repair is progress is False
        and max_step is math.inf
        and motion is _USUAL["motion"]
        and type(max_steps) is int
        and 0 < max_steps < MANY
    ):
        return False, None, math.inf, None, None, motion, False, None, max_steps, False
    given = dense_output, first_step, max_step, step, projection
    given = *given, motion, repair, keep_steps, max_steps, progress
    try:
        return [
            value if value is usual else read(value)
            for (read, usual), value in zip(_READERS, given, strict=True)
        ]
    except (TypeError, ValueError, OverflowError):
        return [checked(name, value) for name, value in zip(_USUAL, given, strict=True)]


def time_span(t_span: Sequence[float]) -> tuple[float, float]:
    """Initial and final time."""
    if type(t_span) is not tuple or len(t_span) != 2:
        t_span = checked("t_span", t_span).tolist()
    t0, t1 = t_span
    if type(t0) not in _PLAIN or type(t1) not in _PLAIN:
        t0, t1 = checked("t_span", t_span).tolist()
    if not (-math.inf < t0 < math.inf and -math.inf < t1 < math.inf):
        checked("t_span", t_span)
    if t0 == t1:
        raise ValueError(f"t_span: {shown(t_span)} has no length")
    return float(t0), float(t1)


def refuse_for_fixed_step(name: str, first_step: float | None, max_step: float) -> None:
    """Arguments that mean nothing to a method whose steps are never chosen."""
    for argument, given in (("first_step", first_step is not None), ("max_step", max_step < math.inf)):
        if given:
            raise ValueError(f"{argument}: {name!r} takes steps of one size; leave it out, and give step=")


def wanted_times(t_eval: Any, t0: float, t1: float) -> np.ndarray | None:
    """Times at which the solution is wanted; None for all steps."""
    if t_eval is None:
        return None
    if type(t_eval) is np.ndarray and t_eval.dtype == float and t_eval.ndim == 1:
        times = t_eval.copy()
    else:
        times = checked("t_eval", t_eval)
    low, high, rising = (t0, t1, times) if t1 > t0 else (t1, t0, times[::-1])
    if times.size and low <= rising[0] and rising[-1] <= high and (rising[1:] > rising[:-1]).all():
        return times
    checked("t_eval", times)
    if np.any((times < low) | (times > high)):
        raise ValueError(f"t_eval: all times must lie within t_span = ({t0:g}, {t1:g})")
    if np.any(np.diff(times) * (1 if t1 > t0 else -1) <= 0):
        raise ValueError("t_eval: times must be sorted in the direction of t_span, without repetition")
    return times


def constant_step(step: Any, chosen: float | None) -> float:
    """A constant step size, as an argument of solve or of the integrator; 0 if there is none."""
    constant = chosen if step is None else step
    return 0.0 if constant is None else checked("step", constant)


def relative_tolerance(rtol: Any) -> float:
    """The relative tolerance, not below what doubles allow."""
    if type(rtol) is not float or not _SMALLEST_RTOL <= rtol < 1:
        rtol = max(checked("rtol", rtol), _SMALLEST_RTOL)
    return rtol


def absolute_tolerances(atol: Any, n: int, levels: int, states: int) -> float | np.ndarray:
    """A number, or one for each entry of (x, …, s): ``levels`` times n of x and its derivatives, then the
    states.
    """
    if type(atol) is float and 0 < atol < math.inf:
        return atol
    array = checked("atol", atol)
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
    if array.shape == (n,) and n:
        array = np.tile(array, levels)
    if array.shape == (levels * n,) and states:
        array = np.append(array, np.full(states, np.mean(array)))
    return array


def refuse_for_general(projection: Any, motion: str, repair: bool) -> None:
    """Arguments of solve that mean nothing for a problem of index 2 or 3."""
    given = {"projection": projection is not None, "motion": motion != "all", "repair": repair}
    for argument, used in given.items():
        if used:
            raise ValueError(f"{argument}: it has no meaning for a problem of index 2 or 3; leave it out")


def refuse_in_pieces(task: Any, motion: str, controlled: bool) -> None:
    """What cannot begin again in the middle of a run."""
    what = "controllers" if controlled else "contacts" if task.system.contacts else "events: an action"
    if not task.system.mechanical:
        raise ValueError(f"{what}: problems of index 2 and 3 cannot be interrupted; leave it out")
    if motion != "all":
        raise ValueError(f"{what}: motion='smooth' cannot be interrupted; leave one of them out")
    if task.stepper.known_times(0.0) is not None:
        raise ValueError(
            f"{what}: a method of constant order begins with known points and cannot be interrupted; choose "
            "another method"
        )
    if task.system.contacts and task.t1 < task.t0:
        raise ValueError("t_span: impacts and friction cannot be undone, so time must run forward here")

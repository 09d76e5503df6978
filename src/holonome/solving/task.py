"""From arguments to a task: what `solve` and `Simulator` read in the same way."""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.solving import arguments
from holonome.solving.carry_out import new_stepper
from holonome.solving.methods import Method
from holonome.solving.tolerances import default_tolerance


def stated(
    system: Any,
    t_span: Any,
    q0: Any,
    v0: Any,
    s0: Any,
    start: Any,
    speed: Any,
    parameters: Any,
    inputs: Any,
    w0: Any,
    lam0: Any,
) -> tuple[Any, Any, Any, Any]:
    """The system with its values for this run, and (q0, v0, s0) as given, or assembled from names."""
    if hasattr(system, "system"):
        system, q0, v0, s0 = arguments.assembled(system, t_span, q0, v0, s0, start, speed, parameters)
    elif start is not None or speed is not None or q0 is None:
        arguments.refuse_start_by_name(system, start, speed)
    system = arguments.checked_system(system, parameters, inputs, w0, lam0)
    system.require_unchanged()
    return system, q0, v0, s0


def checked_stepper(
    system: Any,
    name: str,
    method: Method,
    t0: float,
    t1: float,
    projection: bool | None,
    step: float | None,
    first_step: float | None,
    max_step: float,
) -> Any:
    """What advances the system by a method, to which step sizes must mean something."""
    stepper = new_stepper(system, name, method, t0, t1, projection, step)
    if stepper.fixed_step:
        arguments.refuse_for_fixed_step(name, first_step, max_step)
    return stepper


def tolerances(
    system: Any, y0: np.ndarray, t0: float, t1: float, rtol: float, atol: Any
) -> tuple[float, Any]:
    """The relative and the absolute tolerance."""
    if atol is not None:
        atol = arguments.absolute_tolerances(atol, system.n, system.levels, len(system.states))
    rtol = arguments.relative_tolerance(rtol)
    return rtol, default_tolerance(system, y0, t0, t1, rtol) if atol is None else atol

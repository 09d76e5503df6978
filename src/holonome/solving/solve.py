"""solve(): validate, make consistent, run, collect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from holonome.dynamics.kernels import kernels
from holonome.dynamics.start import (
    always_dependent_rows,
    consistent_state,
    full_state,
    require_finite,
    vector,
)
from holonome.errors import HolonomeError
from holonome.formulations.coordinate_projection import CoordinateProjection
from holonome.formulations.index1 import Index1
from holonome.formulations.sequential_regularization import SRM
from holonome.formulations.underlying_ode import UnderlyingODE
from holonome.integrators import loop as run
from holonome.integrators.bdf import BDF, NEW_STARTS
from holonome.integrators.runge_kutta import RungeKutta
from holonome.machine.context import DENSE_CALLS
from holonome.machine.interruption import Interruption
from holonome.problem.event import Event, as_events
from holonome.problem.general import HigherIndex
from holonome.problem.system import ODE, System
from holonome.results.solution import Solution, rank_fell
from holonome.solving.auto import Relay, watch_stiffness
from holonome.solving.first_use import announce_first_use
from holonome.solving.general_run import solve_higher_index
from holonome.solving.methods import AUTO, SMOOTH, STIFF_METHOD, Method, resolve
from holonome.solving.run import Run
from holonome.solving.sequential import ExplicitSequential, ImplicitSequential
from holonome.solving.slow_motion import about_smooth_motion, slow_start
from holonome.solving.stepping import UNTESTED, Explicit, Implicit

_SMALLEST_RTOL = 1e-14


def solve(
    system: System,
    t_span: Sequence[float],
    q0: Any,
    v0: Any = None,
    *,
    s0: Any = None,
    w0: Any = None,
    method: str | Method = "auto",
    rtol: float = 1e-6,
    atol: Any = 1e-9,
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    first_step: float | None = None,
    max_step: float = math.inf,
    step: float | None = None,
    projection: bool | None = None,
    motion: str = "all",
    parameters: dict[str, Any] | None = None,
    repair: bool = False,
    keep_steps: bool | None = None,
    max_steps: int = 5_000_000,
    progress: bool | Callable[[float], None] = False,
) -> Solution:
    """Simulate a system and keep it on its constraints.

    Parameters
    ----------
    system
        What moves.  Also an :class:`Index2System` or :class:`Index3System`, with its x at the start as
        ``q0``; the result then is a :class:`HigherIndexSolution`.
    t_span
        Initial and final time; the final one may lie before the initial one.
    q0, v0
        Initial positions and velocities (None: at rest).  Small violations of the constraints are repaired
        and reported; large ones raise.
    s0, w0
        Initial values of the first-order states and guesses for the unknowns of a system that has them; by
        default those that it was given.
    method
        A name (:func:`holonome.methods` lists them) or a :class:`holonome.Method`.  "auto" chooses.
    rtol, atol
        Relative and absolute tolerance of the local error; ``atol`` may be an array, one value for each
        coordinate (positions and velocities alike) or for all positions and then all velocities.
    t_eval
        Times at which the solution is wanted.  Then only these points are kept.
    dense_output
        Provide ``sol.sol(t)``, the solution at any time.
    events
        One or several callables of any of t, q, v, p (with scipy's attributes ``terminal`` and
        ``direction``), or :class:`holonome.Event` objects.
    first_step, max_step
        Initial and largest step size.
    step
        Constant step size; the tolerances then play no part.
    projection
        False lets the constraints drift, to see what that does.
    motion
        "all": every oscillation above the tolerance is resolved.  "smooth": only the slow motion is wanted;
        fast oscillations are damped out, and the result says how much energy that took.  With stiff forces
        given as :class:`holonome.Elastic` the number of steps does not grow with the stiffness.
    parameters
        Values that replace those of the system for this run; nothing is compiled.
    repair
        Accept initial values that are far off the constraints and start from the nearest consistent ones.
    keep_steps
        Keep every step and its history; the default is to do so unless ``t_eval`` is given.
    max_steps
        Give up after so many steps.
    progress
        True shows a progress bar; a callable is told the fraction done.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> sol = hn.solve(pendulum.system, (0, 10), pendulum.q0, pendulum.v0)
    >>> sol.success, bool(abs(sol.q[:, -1] @ sol.q[:, -1] - 1) < 1e-14)
    (True, True)
    """
    announce_first_use()
    if isinstance(system, HigherIndex):
        return _higher_index(
            system,
            t_span,
            q0,
            v0,
            method,
            rtol,
            atol,
            t_eval,
            dense_output,
            events,
            first_step,
            max_step,
            step,
            parameters,
            max_steps,
        )  # type: ignore[return-value]
    if not isinstance(system, System):
        remedy = (
            "; give mechanism.system"
            if hasattr(system, "system")
            else "; use hn.solve_coupled"
            if hasattr(system, "subsystems")
            else ""
        )
        raise TypeError(f"system: {system!r} is not an hn.System{remedy}")
    if parameters:
        if not isinstance(parameters, Mapping):
            raise TypeError(f"parameters: {parameters!r}; give a dict of names and values")
        system = system.with_parameters(**parameters)
    if w0 is not None:
        system = system.with_unknowns(vector("w0", w0, len(system.unknowns)))
    rtol, atol = _tolerances(rtol, atol, system.n, len(system.states))
    name, chosen = resolve(method, motion)
    t0, t1 = time_span(t_span)
    task = Run(_stepper(system, chosen, t0, t1, projection, step), name, t0, t1, rtol, atol)
    if isinstance(system, ODE):
        if v0 is not None or s0 is not None:
            raise ValueError(f"{'v0' if v0 is not None else 's0'}: an ODE has x0 alone")
        q0, v0, s0 = np.zeros(0), None, vector("x0", q0, len(system.states))
    y0 = np.concatenate(full_state(system, q0, v0, s0))
    given, settled = (
        y0,
        slow_start(system, t0, y0[: system.dim], y0[system.dim :], abs(t1 - t0), rtol, atol)
        if motion == SMOOTH and np.all(np.isfinite(y0))
        else None,
    )
    if settled is not None:
        y0 = np.concatenate(settled)
    if t_eval is not None:
        t_eval = wanted_times(t_eval, t0, t1)
    keep = (t_eval is None if keep_steps is None else bool(keep_steps)) or dense_output
    first_step = None if first_step is None else _positive("first_step", first_step)
    if (type(max_steps) is not int and not isinstance(max_steps, Integral)) or max_steps <= 0:
        raise ValueError(f"max_steps: {max_steps!r}; give a positive whole number")
    task.prepare(
        y0,
        as_events(events),
        t_eval,
        keep,
        dense_output,
        first_step,
        _positive("max_step", max_step),
        int(max_steps),
    )
    relay, relays = (
        None,
        method == AUTO
        and motion != SMOOTH
        and step is None
        and projection is None
        and not kernels(system).dense,
    )
    if relays:
        watch_stiffness(task)
    if isinstance(chosen.integrator, BDF) and chosen.integrator.order:
        task.history = _known_points(system, chosen.integrator, t0, t1, y0)
    with Interruption() if task.calls_python else nullcontext():
        code = task.advance()
        start = None
        if (
            code in (run.OFF_MANIFOLD, run.CANNOT_START, run.USER_FUNCTION_FAILED)
            and task.counts[run.ACCEPTED] == 0
            and not task.event_failure()
        ):
            require_finite(q0=y0[: system.dim], v0=y0[system.dim :])
            states = y0[system.dim + system.n :] if system.states else None
            start = consistent_state(
                system,
                y0[: system.n],
                None if v0 is None else y0[system.dim : system.dim + system.n],
                t0,
                s0=states,
                repair=repair,
            )
            if start.redundant and isinstance(task.stepper, Explicit):
                task.stepper.left_out = always_dependent_rows(system, t0, start.q, start.v)
            task.restart(np.concatenate([start.q, start.v]))
            code = task.advance()
        if code == run.FULL:
            with Interruption():
                if relays and task.context[DENSE_CALLS] == 0:
                    relay = Relay(task, partial(_next_leg, keep=keep, dense=dense_output, max_step=max_step))
                    code = relay.go_on(progress)
                else:
                    code = task.go_on(progress)
    if progress:
        (task if relay is None else relay.legs[-1]).tell_end(progress)
    solution = (task if relay is None else relay).finish(code, start, keep, dense_output)
    if solution.singular_times.size:
        solution.outcome += rank_fell(solution.singular_times)
    if system.invariant_count and solution.success and solution.false_invariants():
        solution.status = -1
        solution.outcome = f"wrong: entry {solution.false_invariants()[0]} of invariant changes along the motion, so it must not be held; it is no invariant of this system"
    if motion == SMOOTH:
        solution.remarks.append(partial(about_smooth_motion, given=given if settled is not None else None))
    return solution


def _next_leg(
    implicit: bool, t: float, y: np.ndarray, leg: Run, *, keep: bool, dense: bool, max_step: float
) -> Run | None:
    """The same run from here on by a method of the other kind; None if it cannot start here."""
    system, (name, method) = leg.system, STIFF_METHOD if implicit else resolve(AUTO)
    task = Run(_stepper(system, method, t, leg.t1, None, None), name, t, leg.t1, leg.rtol, leg.atol)
    task.start_of_all = leg.start_of_all
    task.stepper.invariants, task.stepper.left_out = leg.stepper.invariants, leg.stepper.left_out
    left = [
        Event(event.function, int(leg.memory[int(leg.memory[run.EVENT_TERMINAL]) + i]), event.direction)
        for i, event in enumerate(leg.events)
    ]
    way = 1 if leg.t1 > t else -1
    t_eval = leg.t_eval[way * leg.t_eval > way * t] if leg.counts[run.KEEP_POINTS] == 0 else None
    first = None if implicit else abs(float(leg.memory[run.H]))
    task.prepare(
        y,
        left,
        t_eval,
        keep,
        dense,
        first,
        max_step,
        max(1, int(leg.counts[run.MAX_STEPS]) - int(leg.counts[run.ACCEPTED] + leg.counts[run.REJECTED])),
    )
    system.copy_unknowns(leg.context, task.context)
    if implicit:
        task.counts[NEW_STARTS] = 1  # an explicit method at its limit leaves errors in the fast motions
    try:
        start = consistent_state(system, y[: system.dim], y[system.dim :], t, repair=True)
    except (HolonomeError, ValueError):
        return None
    task.restart(np.concatenate([start.q, start.v]))
    return task


def _higher_index(
    system: HigherIndex,
    t_span: Any,
    x0: Any,
    v0: Any,
    method: str | Method,
    rtol: float,
    atol: Any,
    t_eval: Any,
    dense_output: bool,
    events: Any,
    first_step: Any,
    max_step: Any,
    step: Any,
    parameters: Any,
    max_steps: int,
) -> Any:
    """Problems of index 2 and 3 in general form, by sequential regularization."""
    if parameters:
        system = system.with_parameters(**parameters)
    name, chosen = resolve("srm" if method == AUTO else method)
    if not isinstance(chosen.formulation, SRM):
        raise ValueError(
            f"method: {method!r} is made for mechanical systems; for {system!r} use 'srm' or "
            "Method(SRM(...), RungeKutta(...)), Method(SRM(...), BDF())"
        )
    rtol, atol = _tolerances(rtol, atol, system.n, 0)
    t0, t1 = time_span(t_span)
    stepper = _sequential(system, chosen, _constant_step(chosen, step), 1 if t1 > t0 else -1)
    return solve_higher_index(
        stepper,
        name,
        t0,
        t1,
        x0,
        v0,
        rtol,
        np.ravel(atol)[: system.n * system.order],
        None if t_eval is None else wanted_times(t_eval, t0, t1),
        dense_output,
        as_events(events),
        None if first_step is None else _positive("first_step", first_step),
        _positive("max_step", max_step),
        max_steps,
    )


def _constant_step(method: Method, step: float | None) -> float:
    constant = step if step is not None else method.integrator.step
    if constant is not None and not (isinstance(constant, Real) and 0 < constant < math.inf):
        raise ValueError(f"step: {constant!r}; a constant step size is a positive number")
    return float(constant or 0.0)


def _sequential(
    system: System | HigherIndex, method: Method, step: float, way: int
) -> ExplicitSequential | ImplicitSequential:
    """What advances SRM."""
    srm, integrator = method.formulation, method.integrator
    assert isinstance(srm, SRM)
    return (
        ImplicitSequential(system, srm, integrator, step, way)
        if isinstance(integrator, BDF)
        else ExplicitSequential(system, srm, integrator.name, step, way)
    )


def _stepper(
    system: System, method: Method, t0: float, t1: float, projection: bool | None, step: float | None
) -> Explicit | Implicit | ExplicitSequential | ImplicitSequential:
    """What advances this method."""
    size = _constant_step(method, step)
    if isinstance(method.formulation, SRM):
        return _sequential(system, method, size, 1 if t1 > t0 else -1)
    if isinstance(method.integrator, RungeKutta) and isinstance(method.formulation, UnderlyingODE):
        return Explicit(
            system,
            method.integrator.name,
            method.formulation.projection if projection is None else bool(projection),
            size,
        )
    formulation = method.formulation
    if (
        isinstance(formulation, CoordinateProjection)
        and isinstance(formulation.formulation, Index1)
        and formulation.formulation.alpha is None
    ):
        formulation = replace(
            formulation, formulation=formulation.formulation.with_time_constant(abs(t1 - t0) / 200)
        )
    if isinstance(formulation, Index1) and formulation.alpha is None:
        formulation = formulation.with_time_constant(5 * size if size else abs(t1 - t0) / 200)
    if isinstance(formulation, Index1) and formulation.alpha and t1 < t0:
        formulation = replace(formulation, alpha=-formulation.alpha)
    if isinstance(method.integrator, RungeKutta):
        assert isinstance(formulation, Index1)
        return Explicit(
            system,
            method.integrator.name,
            bool(projection),
            size,
            (formulation.alpha or 0.0, formulation.beta or 0.0),
        )
    if projection is False and isinstance(formulation, CoordinateProjection):
        formulation = formulation.formulation
    if isinstance(formulation, UnderlyingODE):
        projection = formulation.projection if projection is None else projection
    if projection and isinstance(formulation, (Index1, UnderlyingODE)):
        formulation = CoordinateProjection(formulation)
    if projection and not isinstance(formulation, CoordinateProjection):
        raise ValueError(
            f"projection: {type(formulation).__name__} has none; leave it out, or use method 'bdf'"
        )
    return Implicit(system, formulation, method.integrator, size)


def _known_points(system: System, integrator: BDF, t0: float, t1: float, y0: np.ndarray) -> Solution:
    """The first points of a run at constant order, to rounding."""
    h = math.copysign(integrator.step or 0.0, t1 - t0)
    count = integrator.order or 1
    times = t0 + h * np.arange(count)
    s = y0[system.dim + system.n :]
    start = (s,) if isinstance(system, ODE) else (y0[: system.n], y0[system.dim : system.dim + system.n])
    further = {"s0": s} if system.states and not isinstance(system, ODE) else {}
    return solve(
        system,
        (t0, float(times[-1]) if count > 1 else t1),
        *start,
        **further,
        method="dop853",
        rtol=1e-14,
        atol=1e-14,
        t_eval=times,
    )


def time_span(t_span: Sequence[float]) -> tuple[float, float]:
    try:
        t0, t1 = map(float, t_span)
    except (TypeError, ValueError):
        raise ValueError(f"t_span: {t_span!r}; give (initial time, final time)") from None
    if not (math.isfinite(t0) and math.isfinite(t1)):
        raise ValueError(f"t_span: {t_span!r} is not finite")
    if t0 == t1:
        raise ValueError(f"t_span: {t_span!r} has no length")
    return t0, t1


def wanted_times(t_eval: Any, t0: float, t1: float) -> np.ndarray:
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


def _with_states(atol: Any, n: int, states: int) -> np.ndarray:
    """Tolerances of everything that the engine sees: the positions that carry states are not tested, states
    like velocities of the mean tolerance.
    """
    atol = np.asarray(atol)
    own = atol[2 * n :] if atol.shape == (2 * n + states,) else np.full(states, np.mean(atol))
    full = np.broadcast_to(atol, 2 * n) if atol.shape != (2 * n + states,) else atol[: 2 * n]
    return np.concatenate([full[:n], np.full(states, 10 * UNTESTED), full[n:], own])


def _positive(argument: str, value: float) -> float:
    if (type(value) is not float and not isinstance(value, Real)) or not value > 0:
        raise ValueError(f"{argument}: {value!r}; give a positive number")
    return float(value)


def _tolerances(rtol: float, atol: Any, n: int, states: int) -> tuple[float, Any]:
    if (type(rtol) is not float and not isinstance(rtol, Real)) or not 0 <= rtol < 1:
        raise ValueError(f"rtol: {rtol!r}; give a number between 0 and 1")
    relative = max(float(rtol), _SMALLEST_RTOL)
    if isinstance(atol, float) and 0 < atol < math.inf:
        return relative, _with_states(atol, n, states) if states else atol
    try:
        array = np.asarray(atol, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"atol: {atol!r}; give a number or an array of them") from None
    shapes = {(): "a number"} | (
        {(n,): f"{n} values (for each coordinate)", (2 * n,): f"{2 * n} (positions, then velocities)"}
        if n
        else {}
    )
    shapes |= (
        {
            (2 * n + states,): f"{2 * n + states} (with the states behind)"
            if n
            else f"{states} values (for each component)"
        }
        if states
        else {}
    )
    if array.shape not in shapes:
        raise ValueError(
            f"atol: shape {array.shape}; give {', '.join(list(shapes.values())[:-1])} or "
            f"{list(shapes.values())[-1]}"
        )
    if not np.all(array >= 0) or not np.all(np.isfinite(array)) or (rtol == 0 and not np.all(array > 0)):
        raise ValueError(f"atol: {atol!r}; give positive numbers")
    array = np.maximum(array, 1e-300)
    array = np.tile(array, 2) if array.shape == (n,) and n else array
    return relative, _with_states(array, n, states) if states else array

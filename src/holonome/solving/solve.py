"""solve(): read the arguments, find a start, run, and put the result together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from holonome.dynamics.switched import SwitchedSystem
from holonome.problem.event import as_events
from holonome.results.solution import Solution
from holonome.solving import arguments
from holonome.solving.carry_out import carry_out
from holonome.solving.first_use import announce_first_use
from holonome.solving.methods import AUTO, SMOOTH, Method, resolve
from holonome.solving.pieces import Options, run_in_pieces
from holonome.solving.result import finish
from holonome.solving.run import Run, Task
from holonome.solving.sampled import SampledClock, as_controllers
from holonome.solving.slow_motion import about_smooth_motion, slow_start
from holonome.solving.task import checked_stepper, stated, tolerances


def solve(
    system: Any,
    t_span: Sequence[float],
    q0: Any = None,
    v0: Any = None,
    *,
    start: Any = None,
    speed: Any = None,
    s0: Any = None,
    w0: Any = None,
    lam0: Any = None,
    method: str | Method = "auto",
    rtol: float = 1e-6,
    atol: Any = None,
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    controllers: Any = None,
    first_step: float | None = None,
    max_step: float = math.inf,
    step: float | None = None,
    projection: bool | None = None,
    motion: str = "all",
    parameters: dict[str, Any] | None = None,
    inputs: dict[str, Any] | None = None,
    repair: bool = False,
    keep_steps: bool | None = None,
    max_steps: int = 5_000_000,
    progress: bool | Callable[[float], None] = False,
) -> Solution:
    """Simulate a system and keep it on its constraints.

    Parameters
    ----------
    system
        What moves: a :class:`System`, a :class:`Mechanism`, or a ready-made mechanism, which brings its start
        along.  Also an :class:`Index2System` or :class:`Index3System`, with its x at the start as
        ``q0``; the result then is a :class:`HigherIndexSolution`.
    t_span
        Initial and final time; the final one may lie before the initial one.
    q0, v0
        Initial positions and velocities (None: at rest).  Small violations of the constraints are repaired
        and reported; large ones raise.
    start, speed
        Of a :class:`holonome.Mechanism` instead of these: dicts with the coordinates of some joints and
        bodies, and their rates, by name.  The rest is assembled so that all loops close.
    s0, w0
        Initial values of the first-order states and guesses for the unknowns of a system that has them; by
        default those that it was given.
    lam0
        A guess for the multipliers at the start, where forces depend on them; by default 0 and, where that
        fails, a few other values are tried.
    method
        A name (:func:`holonome.methods` lists them) or a :class:`holonome.Method`.  "auto" chooses.
    rtol, atol
        Relative and absolute tolerance of the local error; ``atol`` may be an array, one value for each
        coordinate (positions and velocities alike) or for all positions and then all velocities.  By default
        it is a thousandth of ``rtol``, times the size of positions and velocities in powers of a thousand:
        1e-9 for a mechanism of metres, 1e-15 for one of micrometres.
    t_eval
        Times at which the solution is wanted.  Then only these points are kept.
    dense_output
        Provide ``sol.sol(t)``, the solution at any time: (q, v), or (q, v, s) with first-order states.
    events
        One or several callables of any of t, q, v, p, a, lam, s, w (with scipy's attributes ``terminal``
        and ``direction``), or :class:`holonome.Event` objects.
    controllers
        One or several :class:`holonome.Sampled`: laws in plain Python that are called at regular times and
        set inputs, which are held in between.  No step crosses a tick; ``sol.inputs`` has what they set.
    first_step, max_step
        Initial and largest step size.
    step
        Constant step size; the tolerances then play no part.
    projection
        False lets the constraints drift, to see what that does.
    motion
        "all": every oscillation above the tolerance is resolved.  "smooth": only the slow motion is wanted;
        fast oscillations are damped out, and the result says how much energy that took.  With stiff forces
        given as :class:`holonome.Elastic` the number of steps does not grow with the stiffness.  Where they
        are too soft for that to pay, an explicit method takes over, and the message says so.
    parameters
        Values that replace those of the system for this run; nothing is compiled.
    inputs
        The same for the inputs of the system.
    repair
        Accept initial values that are far off the constraints and start from the nearest consistent ones.
    keep_steps
        Keep every step and its history; the default is to do so unless ``t_eval`` is given.  With False,
        impacts are added up, not listed, so that a million of them need no memory.
    max_steps
        Give up after so many steps.
    progress
        True shows a progress bar; a callable is called with the fraction done.

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
    system, q0, v0, s0 = stated(system, t_span, q0, v0, s0, start, speed, parameters, inputs, w0, lam0)
    ok = arguments.options(
        dense_output, first_step, max_step, step, projection, motion, repair, keep_steps, max_steps, progress
    )
    dense_output, first_step, max_step, step, projection, motion, repair, keep_steps, max_steps, progress = ok
    if not system.mechanical:
        arguments.refuse_for_general(projection, motion, repair)
    t0, t1 = arguments.time_span(t_span)
    name, chosen = resolve(method, motion, system)
    stepper = checked_stepper(system, name, chosen, t0, t1, projection, step, first_step, max_step)
    y0 = stated_y0 = system.start_state(t0, q0, v0, s0, repair)
    rtol, atol = tolerances(system, y0, t0, t1, rtol, atol)
    if motion == SMOOTH and np.all(np.isfinite(y0)):
        y0 = slow_start(system, t0, y0, abs(t1 - t0), rtol, atol)
    times = arguments.wanted_times(t_eval, t0, t1)
    keep = (times is None if keep_steps is None else keep_steps) or dense_output
    wanted = times, as_events(events), keep, dense_output, first_step, max_step, max_steps, t0
    task = Task(system, name, stepper, t0, t1, y0, rtol, atol, *wanted)
    relay = method == AUTO and step is None and projection is None
    if (
        controllers is not None
        or system.contacts
        or isinstance(system, SwitchedSystem)
        or any(event.action is not None for event in task.events)
    ):
        arguments.refuse_in_pieces(task, motion, controllers is not None)
        clocks = [] if controllers is None else [SampledClock(as_controllers(controllers), system, t0, t1)]
        rest = projection, step, v0 is None, repair, progress
        options = Options(chosen, relay, *rest, keep_impacts=keep_steps is not False)
        return run_in_pieces(task, options, clocks)
    run = Run(task)
    known = stepper.known_times(t0)
    if known is not None:
        _refuse_short_interval(task, known)
        run.use_history(partial(_known_points, task, known))
    legs, outcome = carry_out(run, relay, v0 is None, repair, progress)
    remarks = ()
    if motion == SMOOTH:
        remarks = (partial(about_smooth_motion, given=None if y0 is stated_y0 else stated_y0),)
    return finish(legs, outcome, remarks)


def _known_points(task: Task, times: np.ndarray, y0: np.ndarray) -> Solution:
    """The first points of a run at constant order, from its start, to rounding."""
    system, n = task.system, task.system.n
    if times.size == 1:
        costs = dict.fromkeys(("nfev", "steps", "rejections", "projections"), 0)
        known = {"system": system, "method": "", "status": 0, "outcome": "", "rtol": task.rtol, "atol": 0.0}
        return Solution({**known, **costs, "t": times, "states": y0[np.newaxis]})
    start: dict[str, Any] = (
        {"q0": y0[:n], "v0": y0[n : 2 * n], "s0": y0[2 * n :] if system.states else None} if n else {"q0": y0}
    )
    span = (task.t0, float(times[-1]))
    found = solve(system, span, **start, method="dop853", rtol=1e-14, atol=1e-14, t_eval=times)
    if not found.success:
        raise ValueError(f"method: a constant order begins with {times.size} known points; {found.message}")
    return found


def _refuse_short_interval(task: Task, times: np.ndarray) -> None:
    """A run at constant order takes at least one step after its known points."""
    if abs(times[-1] - task.t0) >= abs(task.t1 - task.t0) * (1 - 1e-12):
        raise ValueError(
            f"t_span: BDF of constant order {times.size} starts after {times.size} known points, at "
            f"t = {times[-1]:.6g}, but the run ends at {task.t1:.6g}; give a smaller step or a lower order"
        )

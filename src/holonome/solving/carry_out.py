"""A task from its start to its end: what advances it, where it may begin, by one leg or several."""

from __future__ import annotations

from typing import Any

from holonome.dynamics.kernels import kernels
from holonome.dynamics.rank import always_dependent_rows
from holonome.dynamics.start import consistent_state
from holonome.integrators import loop
from holonome.integrators.contract import Request
from holonome.machine.context import Context
from holonome.machine.interruption import Interruption
from holonome.problem.vectors import require_finite
from holonome.solving import arguments
from holonome.solving.auto import go_on, watch_pace
from holonome.solving.methods import Method
from holonome.solving.run import Outcome, Run

REFUSED = (loop.OFF_MANIFOLD, loop.CANNOT_START, loop.USER_FUNCTION_FAILED)
"""Codes with which a run refuses its start, which consistent values nearby may cure."""


def new_stepper(
    system: Any,
    name: str,
    method: Method,
    t0: float,
    t1: float,
    projection: bool | None = None,
    step: float | None = None,
) -> Any:
    """What advances this system by this method."""
    size = arguments.constant_step(step, method.integrator.step)
    formulation = method.formulation
    if projection is not None:
        formulation = formulation.with_projection(projection)
    formulation = formulation.for_run(t1 - t0, size)
    reason = formulation.refuses(system)
    if reason:
        raise ValueError(f"method: {reason}")
    if system.mechanical and system.hidden_constraints and not formulation.projects:
        raise ValueError(
            f"method: steps of {name!r} as set up here do not end on the hidden constraints of a DAE, which "
            "would drift; use 'auto', 'bdf' or 'radau', with projection"
        )
    if not (formulation.projects_error or method.integrator.tests_whole_error):
        raise ValueError("projects_error: it has a meaning for BDF only; leave it out")
    if not system.mechanical and method.integrator.form(formulation) != "sequence":
        raise ValueError(
            f"method: {name!r} is made for mechanical systems; for {system!r} use 'srm' or "
            "Method(SRM(...), RungeKutta(...)), Method(SRM(...), BDF())"
        )
    return method.integrator.stepper(Request(system, formulation, size, 1 if t1 > t0 else -1))


def carry_out(run: Run, relay: bool, at_rest: bool, repair: bool, progress: Any) -> tuple[list[Run], Outcome]:
    """Run to the end; where the start is refused, from consistent values near it.  With ``relay`` other legs
    may take over where stiffness begins or ends, if the system allows for them.
    """
    start, legs = None, [run]
    relay = relay and run.system.mechanical and not kernels(run.system).dense
    if relay:
        watch_pace(run)
    code = run.first_advance()
    if code in REFUSED and _may_start_elsewhere(run):
        start = consistent_start(run, at_rest, repair)
        code = run.first_advance()
    if code == loop.FULL:
        with Interruption():
            if relay and Context.of(run.context)["dense_calls"] == 0:
                code = go_on(legs, progress)
            else:
                if relay:
                    watch_pace(run, False)
                code = run.go_on(progress)
    if callable(progress) and not legs[-1].full:
        progress(legs[-1].fraction)  # a short run reports its progress once
    return legs, Outcome(code, start)


def _may_start_elsewhere(run: Run) -> bool:
    return run.system.mechanical and run.tried == 0 and not run.event_failed()


def consistent_start(run: Run, at_rest: bool, repair: bool) -> Any:
    """Consistent values near those given, with which the run begins again."""
    system, t0, y0 = run.system, run.task.t0, run.first
    n = system.n
    require_finite(q0=y0[:n], v0=y0[n : 2 * n], s0=y0[2 * n :])
    start = consistent_state(system, y0, t0, at_rest=at_rest, repair=repair)
    if start.redundant and run.stepper.leaves_out_rows:
        run.stepper.left_out = always_dependent_rows(system, t0, start.state)
    run.restart(start.state)
    return start

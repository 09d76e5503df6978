"""Stiffness without expertise: a relay of explicit and implicit legs, for method "auto".

A run begins explicit.  When its steps look as if stability limited them (`_looks_stiff` in
:mod:`holonome.integrators.runge_kutta_steps`), and after every few thousand steps, the fastest rate of the
system, ρ, is estimated by power iteration on differences of the accelerations.  Where the step is no longer
small compared with 1/ρ, stability may be what limits it, and an implicit leg is tried from there for a few
hundred steps; whichever makes more progress for its cost goes on.  The way back is the same, where the
implicit steps have become so small that an explicit method could take them.  Costs are counted in
instructions of the kernels, so the decision is the same on every machine.  An oscillation above the tolerance
has to be resolved by either kind, and then the explicit one wins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.dynamics.kernels import kernels
from holonome.dynamics.start import consistent_state
from holonome.errors import HolonomeError
from holonome.integrators import loop
from holonome.integrators.contract import Request
from holonome.integrators.loop import RunState
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK
from holonome.machine.progress import ProgressDisplay
from holonome.problem.event import Event
from holonome.solving.methods import AUTO_METHOD, STIFF_METHOD, registry
from holonome.solving.run import Run

CHECK_EVERY, TRIAL, SOON = 2000, 300, 125
_STIFF, _NOT_STIFF, _BETTER = 1.5, 3.0, 1.3


def go_on(legs: list[Run], progress: Any) -> int:
    """From the first leg to the end, or to where nothing goes on; further legs are appended."""
    with ProgressDisplay(progress, "simulating") as show:
        return _relay(legs, show)


def _relay(legs: list[Run], progress: Any) -> int:
    leg, pause = legs[0], CHECK_EVERY
    mark = _Mark(leg, leg.task.t0, 0.0)
    while True:
        code = leg.go_on(progress, steps=pause)
        if code != loop.FULL:
            return code
        if leg.stepper.met_stiffness(leg.memory):
            pause = SOON
            leg.stepper.watch_stiffness(leg.memory, False)
        rival, rival_code = _rival(leg, mark)
        if rival is None:
            pause = min(4 * pause, 100 * CHECK_EVERY) if mark.suspicious else CHECK_EVERY
            mark = _Mark(leg)
            continue
        legs.append(rival)
        if rival_code != loop.FULL:
            return rival_code
        leg, pause, mark = rival, CHECK_EVERY, _Mark(rival)
        leg.stepper.watch_stiffness(leg.memory)


def _rival(leg: Run, mark: _Mark) -> tuple[Run | None, int]:
    """A leg of the other kind that does better from here, if there is one."""
    implicit = leg.stepper.implicit
    y = leg.state[: leg.system.state_size].copy()
    stiffness = abs(float(RunState.of(leg.memory)["h"])) * fastest_rate(leg, leg.t, y)
    mark.suspicious = stiffness < _NOT_STIFF if implicit else stiffness > _STIFF
    rival = next_leg(leg, leg.t, y) if mark.suspicious else None
    if rival is None:
        return None, loop.FULL
    begin = _Mark(rival)
    code = rival.go_on(False, steps=TRIAL)
    better = code == loop.FULL and begin.efficiency() > _BETTER * mark.efficiency()
    return (rival, code) if better or code in (loop.DONE, loop.TERMINATED) else (None, loop.FULL)


def next_leg(leg: Run, t: float, y: np.ndarray) -> Run | None:
    """The same run from here on by a method of the other kind; None if it cannot start here."""
    task, system, implicit = leg.task, leg.system, not leg.stepper.implicit
    if leg.tried >= task.max_steps:
        return None
    try:
        start = consistent_state(system, y, t, repair=True)
    except (HolonomeError, ValueError):
        return None
    name = STIFF_METHOD if implicit else AUTO_METHOD
    method, direction = registry()[name].method, task.direction
    formulation = method.formulation.for_run(task.t1 - t, 0.0)
    stepper = method.integrator.stepper(Request(system, formulation, 0.0, direction))
    stepper.invariants = leg.stepper.invariants
    stepper.left_out = leg.stepper.left_out
    terminal = RunState.vector(leg.memory, "event_terminal")
    events = [
        Event(event.function, int(left), event.direction)
        for event, left in zip(task.events, terminal, strict=True)
    ]
    times = None if task.t_eval is None else task.t_eval[direction * task.t_eval > direction * t]
    run = Run(
        task._replace(
            name=name,
            stepper=stepper,
            t0=t,
            y0=start.state,
            t_eval=times,
            events=events,
            first_step=None if implicit else abs(float(RunState.of(leg.memory)["h"])),
            max_steps=task.max_steps - leg.tried,
            steps_before=task.steps_before + leg.tried,
        )
    )
    system.copy_unknowns(leg.context, run.context)
    if implicit:
        stepper.expect_disturbance(run.memory)
    run.restart(start.state)
    return run


class _Mark:
    """Where a leg stood, to measure what it did since."""

    def __init__(self, leg: Run, t: float | None = None, cost: float | None = None) -> None:
        self.leg, self.suspicious = leg, False
        self.t = leg.t if t is None else t
        self.cost = leg.stepper.cost(leg.memory) if cost is None else cost

    def efficiency(self) -> float:
        """Time advanced for each instruction."""
        cost = self.leg.stepper.cost(self.leg.memory) - self.cost
        return abs(self.leg.t - self.t) / max(cost, 1.0)


def fastest_rate(leg: Run, t: float, y: np.ndarray) -> float:
    """The spectral radius of the underlying ODE's Jacobian, roughly, by power iteration on differences."""
    derivative, size = kernels(leg.system).derivative, y.size
    weight = np.max(leg.task.atol) + leg.task.rtol * np.abs(y)
    base, moved = np.empty(size + 1), np.empty(size + 1)
    if run_kernel(derivative, t, y, y, leg.context, base) != OK:
        return 0.0
    direction, rate = np.random.default_rng(0).normal(size=size) * weight, 0.0
    for _ in range(30):
        length = np.linalg.norm(direction / weight)
        if not 0 < length < np.inf:
            return 0.0
        direction *= 1e-2 / length
        if run_kernel(derivative, t, y + direction, y, leg.context, moved) != OK:
            return 0.0
        change = moved[:size] - base[:size]
        found = np.linalg.norm(change / weight) / 1e-2
        rate = 0.7 * rate + 0.3 * found if rate else found
        direction = change
    return float(rate)

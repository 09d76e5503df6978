"""Automatic treatment of stiffness, method "auto": a relay of explicit and implicit legs.

A run begins explicit.  When its steps look as if stability limited them (`_looks_stiff` in
:mod:`holonome.integrators.runge_kutta_steps`), and after every few thousand steps, the fastest rate of the
system, ρ, is estimated by power iteration on differences of the accelerations.  Where the step is no longer
small compared with 1/ρ, stability may be what limits it, and an implicit leg is tried from there for a few
hundred steps; the one that makes more progress for its cost continues.  The same test leads back where
the implicit steps have become so small that an explicit method could take them.  Costs are counted in
instructions of the kernels, so the decision is the same on every machine.  An oscillation above the tolerance
has to be resolved by either kind, and then the explicit one wins.

Where forces jump at known times ahead, BDF begins again at order 1 after each of them, while a Radau method
goes on with the step it had.  So both are tried there.

``motion="smooth"`` is a relay too.  It begins with the form for smooth motion, whose steps do not grow where
elements are soft or only moderately stiff, since their oscillations are then within reach of its error test.
So after a few steps an explicit leg is tried to measure its pace, and takes over if it is faster.
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
from holonome.solving.methods import (
    AUTO_METHOD,
    JUMPING_METHOD,
    SMOOTH,
    SMOOTH_METHOD,
    STIFF_METHOD,
    registry,
)
from holonome.solving.run import Run

CHECK_EVERY, TRIAL, SOON = 2000, 300, 125
_FEWER = 5
"""Trials of Radau methods, whose steps cost more and reach farther, are by this factor shorter."""

FIRST_SMOOTH, _SMOOTH_TRIAL = 40, 20
_STIFF, _NOT_STIFF, _BETTER, _PATIENCE = 1.5, 3.0, 1.3, 0.2
_ENDS = loop.DONE, loop.TERMINATED


def watch_pace(run: Run, wanted: bool = True) -> None:
    """Let the first leg pause where it should be compared with another."""
    run.stepper.watch_stiffness(run.memory, wanted)
    if run.task.name == SMOOTH:
        RunState.set(run.memory, budget=FIRST_SMOOTH if wanted else run.budget)


def go_on(legs: list[Run], progress: Any) -> int:
    """Run from the first leg to the end, or until no step succeeds; later legs are appended."""
    stiff = SMOOTH if legs[0].task.name == SMOOTH else STIFF_METHOD
    code = loop.FULL
    with ProgressDisplay(progress, "simulating") as show:
        while code == loop.FULL:
            relay = _smooth_leg if legs[-1].task.name == SMOOTH else _leg
            code = relay(legs, show, stiff)
    return code


def _leg(legs: list[Run], progress: Any, stiff: str) -> int:
    """The last leg, until it ends or a rival is appended."""
    leg, pause = legs[-1], CHECK_EVERY
    if len(legs) == 1:
        mark = _Mark(leg, leg.task.t0, 0.0)
    else:
        mark = _Mark(leg)
        leg.stepper.watch_stiffness(leg.memory)
    while True:
        code = leg.go_on(progress, steps=pause)
        if code != loop.FULL:
            return code
        if leg.stepper.met_stiffness(leg.memory):
            pause = SOON
            leg.stepper.watch_stiffness(leg.memory, False)
        rival, rival_code = _rival(leg, mark, stiff)
        if rival is not None:
            legs.append(rival)
            return rival_code
        pause = min(4 * pause, 100 * CHECK_EVERY) if mark.suspicious else CHECK_EVERY
        mark = _Mark(leg)


def _smooth_leg(legs: list[Run], progress: Any, stiff: str) -> int:
    """The same for a leg of smooth motion.  It is left where explicit steps are larger, but not before it has
    taken a fifth of their number up to the end: until then oscillations may be damped, and its steps grow.
    """
    leg, pause, explicit_step, patience = legs[-1], FIRST_SMOOTH, np.inf, 0.0
    while True:
        mark = _Mark(leg)
        code = leg.go_on(progress, steps=pause)
        if code != loop.FULL:
            return code
        rival, pause = None, 2 * pause
        if leg.tried >= patience and mark.mean_step() < explicit_step:
            rival = next_leg(leg, leg.t, leg.state[: leg.system.state_size].copy(), AUTO_METHOD)
        if rival is not None:
            begin = _Mark(rival)
            code = rival.go_on(False, steps=_SMOOTH_TRIAL)
            explicit_step = begin.mean_step()
            patience = _PATIENCE * abs(leg.task.t1 - leg.t) / max(explicit_step, 1e-300)
            ahead = mark.mean_step() < explicit_step and leg.tried >= patience
            if code in _ENDS or (code == loop.FULL and ahead):
                legs.append(rival)
                return code
        if leg.tried < patience:
            pause = max(10, min(pause, int(patience) - leg.tried))


def _rival(leg: Run, mark: _Mark, stiff: str) -> tuple[Run | None, int]:
    """A leg of the other kind that does better from here, if there is one."""
    implicit = leg.stepper.implicit
    y = leg.state[: leg.system.state_size].copy()
    stiffness = abs(float(RunState.of(leg.memory)["h"])) * fastest_rate(leg, leg.t, y)
    mark.suspicious = stiffness < _NOT_STIFF if implicit else stiffness > _STIFF
    name = AUTO_METHOD if implicit else stiff
    rival = next_leg(leg, leg.t, y, name) if mark.suspicious else None
    if rival is None:
        return None, loop.FULL
    begin = _Mark(rival)
    code = rival.go_on(False, steps=TRIAL)
    if code in _ENDS:
        return rival, code
    least, found = _BETTER * mark.efficiency(), None
    if code == loop.FULL and begin.efficiency() > least:
        least, found = _BETTER * begin.efficiency(), rival
    if not implicit and stiff == STIFF_METHOD and _jumps_ahead(leg):
        other = next_leg(leg, leg.t, y, JUMPING_METHOD)
        if other is not None:
            begin = _Mark(other)
            code = other.go_on(False, steps=TRIAL // _FEWER)
            if code in (*_ENDS, loop.FULL) and begin.efficiency() > least:
                return other, code
    return found, loop.FULL


def _jumps_ahead(leg: Run) -> bool:
    """Whether there are several times ahead at which steps must end."""
    run = RunState.of(leg.memory)
    return run["switches"] - run["next_switch"] > 1


def next_leg(leg: Run, t: float, y: np.ndarray, name: str) -> Run | None:
    """The same run from here on by another method; None if it cannot start here."""
    task, system, implicit = leg.task, leg.system, not leg.stepper.implicit
    if leg.tried >= task.max_steps:
        return None
    try:
        start = consistent_state(system, y, t, repair=True)
    except (HolonomeError, ValueError):
        return None
    method, direction = SMOOTH_METHOD if name == SMOOTH else registry()[name].method, task.direction
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
        self.tried = leg.tried

    def efficiency(self) -> float:
        """Time advanced for each instruction."""
        cost = self.leg.stepper.cost(self.leg.memory) - self.cost
        return abs(self.leg.t - self.t) / max(cost, 1.0)

    def mean_step(self) -> float:
        """Time advanced for each step tried."""
        return abs(self.leg.t - self.t) / max(self.leg.tried - self.tried, 1)


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

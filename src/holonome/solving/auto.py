"""Stiffness without expertise: a relay of explicit and implicit legs, for method "auto".

A run begins explicit.  When its steps look as if stability limited them (`_looks_stiff` in
:mod:`holonome.integrators.runge_kutta`), and after every few thousand steps, the fastest rate of the system,
ρ, is estimated by power iteration on differences of the accelerations.  Where the step is no longer small
against 1/ρ, stability may be what limits it, and an implicit leg is tried from there for a few hundred steps;
the one that makes more progress for its cost goes on.  Back it goes the same way, where the implicit steps
have become so small that an explicit method could take them.  Costs are counted in instructions of the
kernels, so the decision is the same on every machine.  An oscillation above the tolerance has to be resolved
by either kind, and then the explicit one wins.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from holonome.dynamics.kernels import kernels
from holonome.integrators import bdf
from holonome.integrators import loop as run
from holonome.integrators import runge_kutta as rk
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK
from holonome.results.solution import History, Solution
from holonome.solving.run import Run
from holonome.solving.stepping import UNTESTED, Implicit

CHECK_EVERY, TRIAL, SOON = 2000, 300, 125
_STIFF, _NOT_STIFF, _BETTER = 1.5, 3.0, 1.3


def watch_stiffness(leg: Run) -> None:
    """Have an explicit leg stop once when its steps look stiff."""
    leg.memory[rk.STIFF] = 1.0


class Relay:
    """Legs of one run; ``open_leg(implicit, t, y, leg)`` makes the next one, or None if it cannot start."""

    def __init__(self, first: Run, open_leg: Callable[[bool, float, np.ndarray, Run], Run | None]) -> None:
        self.legs, self.open_leg, self.switches = [first], open_leg, []

    def go_on(self, progress) -> int:
        """To the end, or to where nothing goes on."""
        leg, pause = self.legs[0], CHECK_EVERY
        mark = _Mark(leg, leg.t0, 0.0)
        while True:
            code = leg.go_on(progress, steps=pause)
            if code != run.FULL:
                return code
            if leg.stepper.met_stiffness(leg.memory):
                pause, leg.memory[rk.STIFF] = SOON, 0.0
            rival, rival_code = self._rival(leg, mark)
            if rival is None:
                pause = min(4 * pause, 100 * CHECK_EVERY) if mark.suspicious else CHECK_EVERY
                mark = _Mark(leg)
                continue
            self.legs.append(rival)
            self.switches.append((float(leg.memory[run.T]), rival.name))
            if rival_code != run.FULL:
                return rival_code
            leg, pause, mark = rival, CHECK_EVERY, _Mark(rival)
            if not isinstance(leg.stepper, Implicit):
                watch_stiffness(leg)

    def _rival(self, leg: Run, mark: _Mark) -> tuple[Run | None, int]:
        """A leg of the other kind that does better from here, if there is one."""
        implicit = isinstance(leg.stepper, Implicit)
        t, y = float(leg.memory[run.T]), leg.state[: 2 * leg.system.dim].copy()
        stiffness = abs(float(leg.memory[run.H])) * fastest_rate(leg, t, y)
        mark.suspicious = stiffness < _NOT_STIFF if implicit else stiffness > _STIFF
        if not mark.suspicious:
            return None, run.FULL
        rival = self.open_leg(not implicit, t, y, leg)
        if rival is None:
            return None, run.FULL
        begin = _Mark(rival)
        code = rival.go_on(False, steps=TRIAL)
        if code in (run.DONE, run.TERMINATED) or (
            code == run.FULL and begin.efficiency() > _BETTER * mark.efficiency()
        ):
            return rival, code
        return None, run.FULL

    def finish(self, code: int, start, keep: bool, dense: bool) -> Solution:
        """One result from all legs."""
        parts = [
            leg.finish(
                code if leg is self.legs[-1] else run.DONE,
                start if leg is self.legs[0] else None,
                keep,
                dense,
            )
            for leg in self.legs
        ]
        solution = (
            parts[-1]
            if len(parts) == 1
            else _merged(parts, np.array([leg.memory[run.T] for leg in self.legs]))
        )
        if self.switches:
            told = ", then ".join(f"{name} from t = {t:.6g}" for t, name in self.switches)
            solution.outcome += f" (stiffness was met: {self.legs[0].name}, then {told})"
            solution.method = "auto: " + " → ".join(leg.name for leg in self.legs)
        return solution


class _Mark:
    """Where a leg stood, to measure what it did since."""

    def __init__(self, leg: Run, t: float | None = None, cost: float | None = None) -> None:
        self.leg, self.suspicious = leg, False
        self.t, self.cost = float(leg.memory[run.T]) if t is None else t, _cost(leg) if cost is None else cost

    def efficiency(self) -> float:
        return abs(float(self.leg.memory[run.T]) - self.t) / max(_cost(self.leg) - self.cost, 1.0)


def _cost(leg: Run) -> float:
    """Instructions spent, in the kernels and around them."""
    system, counts, stepper = leg.system, leg.counts, leg.stepper
    steps = float(counts[run.ACCEPTED] + counts[run.REJECTED])
    if isinstance(stepper, Implicit):
        evaluation, factorization = stepper.compiled.instructions
        return (
            counts[run.NFEV] * evaluation
            + counts[bdf.NJEV] * factorization
            + steps * 30 * stepper.compiled.size
        )
    derivative, landing = kernels(system).instructions
    return (
        counts[run.NFEV] * (derivative + 12 * system.dim)
        + leg.memory[run.LANDINGS] * landing
        + steps * 20 * system.dim
    )


def fastest_rate(leg: Run, t: float, y: np.ndarray) -> float:
    """The spectral radius of the underlying ODE's Jacobian, roughly, by power iteration on differences."""
    derivative, size = kernels(leg.system).derivative, y.size
    weight = np.max(leg.atol, where=np.less(leg.atol, UNTESTED), initial=0.0) + leg.rtol * np.abs(y)
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
        rate = (
            0.7 * rate + 0.3 * np.linalg.norm(change / weight) / 1e-2
            if rate
            else np.linalg.norm(change / weight) / 1e-2
        )
        direction = change
    return float(rate)


class JoinedOutput:
    """Dense output of several legs: each answers for its own time."""

    def __init__(self, outputs: list, ends: np.ndarray, way: float) -> None:
        self.outputs, self.ends, self.way = outputs, ends, way

    def __call__(self, t):
        times = np.atleast_1d(np.asarray(t, dtype=float))
        which = np.searchsorted(self.way * self.ends[:-1], self.way * times)
        system = self.outputs[0].stepper.system
        y = np.empty((2 * system.n or len(system.states), times.size))
        for i, output in enumerate(self.outputs):
            mine = which == i
            if mine.any():
                y[:, mine] = np.concatenate(output(times[mine])) if system.n else output(times[mine])
        y = y[:, 0] if np.ndim(t) == 0 else y
        return (y[: system.n], y[system.n :]) if system.n else y


def _merged(parts: list[Solution], ends: np.ndarray) -> Solution:
    """The legs' results, which end at these times, as one; the first point of a later leg is the last of the
    one before it.
    """
    last, n = parts[-1], parts[0].system.dim
    skip = [0] + [
        int(part.t.size > 0 and before.t.size > 0 and part.t[0] == before.t[-1])
        for before, part in pairwise(parts)
    ]
    last.t = np.concatenate([part.t[s:] for part, s in zip(parts, skip, strict=True)])
    last.states = np.concatenate([part.states[s:, : 2 * n] for part, s in zip(parts, skip, strict=True)])
    for name in (
        "nfev",
        "steps",
        "rejections",
        "landings",
        "njev",
        "nlu",
        "error_failures",
        "newton_failures",
        "dense_calls",
    ):
        setattr(last, name, sum(getattr(part, name) for part in parts))
    last.start, last.singular_times = parts[0].start, np.concatenate([part.singular_times for part in parts])
    histories = [part.history for part in parts if part.history is not None]
    if histories:
        last.history = History(
            np.concatenate([h.accepted[:, : run.STEP_COLUMNS] for h in histories]),
            np.concatenate([h.rejected for h in histories]),
        )
    if last.t_events is not None:
        count = len(last.t_events)
        last.t_events = [np.concatenate([(part.t_events or [])[i] for part in parts]) for i in range(count)]
        last.event_states = [
            np.concatenate([(part.event_states or [])[i][:, : 2 * n] for part in parts]) for i in range(count)
        ]
    if last.sol is not None:
        last.sol = JoinedOutput([part.sol for part in parts], ends, 1.0 if last.t[-1] >= last.t[0] else -1.0)
    return last

"""A member alone, by the ordinary solve: what the loops do not treat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.ensembles.along import PASSAGE
from holonome.ensembles.along_alone import kept_of_motion
from holonome.ensembles.lane import HEAD
from holonome.errors import HolonomeError
from holonome.problem.event import Event
from holonome.solving.solve import solve

if TYPE_CHECKING:
    from holonome.ensembles.study import Study


@dataclass(frozen=True, eq=False)
class Alone:
    """What a member alone gives: what is observed, (times, numbers); what is kept of the whole motion; where
    it ended; the event that ended it, or −1; its steps; how often the rank fell; why it failed; and whether
    it succeeded.
    """

    values: np.ndarray
    along: np.ndarray
    end: float = np.nan
    event: int = -1
    steps: int = 0
    singular: int = 0
    message: str = ""
    success: bool = False


def solve_member(study: Study, inputs: np.ndarray) -> Alone:
    """Compute it; what fails is told, not raised."""
    count = 1 if study.times is None else study.times.size
    values = np.full((count, study.observed.size), np.nan)
    along = np.full(len(study.observed.names_along), np.nan)
    try:
        sol, event = _solution(study, inputs)
        if sol.success and along.size:
            along = kept_of_motion(study.observed, sol, len(study.observed.events))
    except (HolonomeError, ValueError, ArithmeticError) as error:
        return Alone(values, along, message=str(error) or type(error).__name__)
    if study.times is None:
        if sol.success:
            values[0] = _observed(study, sol, np.array([-1]))[0]
    else:
        rows = np.searchsorted(sol.t * sol_direction(sol, inputs), study.times * sol_direction(sol, inputs))
        rows = np.minimum(rows, sol.t.size - 1)
        reached = np.flatnonzero(sol.t[rows] == study.times) if sol.t.size else np.zeros(0, int)
        if reached.size:
            values[reached] = _observed(study, sol, rows[reached])
    steps, singular = sol.steps + sol.rejections, len(sol.singular_times)
    message = "" if sol.success else sol.message
    return Alone(values, along, _end(sol, event), event, steps, singular, message, bool(sol.success))


def sol_direction(sol: Any, inputs: np.ndarray) -> float:
    """1 for a run forward in time, −1 for one backward."""
    return 1.0 if inputs[1] > inputs[0] else -1.0


def _end(sol: Any, event: int) -> float:
    if event >= 0:
        return float(sol.t_events[event][-1])
    return float(sol.t[-1]) if sol.t.size else np.nan


def _solution(study: Study, inputs: np.ndarray) -> tuple[Any, int]:
    """The run, and the event that ended it, or −1."""
    system, n = study.system, study.system.n
    t0, t1 = float(inputs[0]), float(inputs[1])
    y0 = inputs[HEAD : HEAD + system.state_size]
    changed = system.with_values(inputs[HEAD + system.state_size :])
    start: dict[str, Any] = {"q0": y0}
    if n:
        start = {"q0": y0[:n], "v0": None if study.at_rest else y0[n : 2 * n]}
        if system.states:
            start["s0"] = y0[2 * n :]
    own_events = [replace(event, terminal=True) for event in study.observed.events]
    passages = [part for _, part in study.observed.along if part.kind == PASSAGE]
    events = own_events + [Event(part.function, direction=part.direction) for part in passages]
    times = None
    if not own_events:
        low, high = min(t0, t1), max(t0, t1)
        own = np.zeros(0) if study.times is None else study.times
        own = own[(own >= low) & (own <= high)]
        times = own if own.size and own[-1] == t1 else np.append(own, t1)
    elif study.times is not None:
        low, high = min(t0, t1), max(t0, t1)
        times = study.times[(study.times >= low) & (study.times <= high)]
        times = times if times.size else np.array([t1])
    sol = solve(
        changed,
        (t0, t1),
        **start,
        method=study.method,
        rtol=study.rtol,
        atol=study.atol,
        t_eval=times,
        events=events or None,
        dense_output=bool(study.observed.along),
        first_step=study.first_step,
        max_step=study.max_step,
        max_steps=study.max_steps,
        repair=study.repair,
    )
    ended = [i for i, found in enumerate((sol.t_events or [])[: len(own_events)]) if len(found)]
    return sol, ended[0] if ended and sol.status == 1 else -1


def _observed(study: Study, sol: Any, rows: np.ndarray) -> np.ndarray:
    """What is observed at some points of a run."""
    system, observed = sol.system, study.observed
    states = np.vstack(_state(sol, system))[:, rows].T
    parameters = np.broadcast_to(system.parameters.flat, (len(rows), system.parameters.size))
    motion = lam = None
    if any(quantity.function is not None for quantity in observed.quantities) and system.n:
        rates = [sol.v, sol.a] + ([np.zeros((len(system.states), sol.t.size))] if system.states else [])
        motion, lam = np.vstack(rates)[:, rows].T, sol.lam[:, rows].T
    return observed.evaluate(system, sol.t[rows], states, parameters, motion, lam)


def _state(sol: Any, system: Any) -> list[np.ndarray]:
    if not system.n:
        return [sol.x]
    return [sol.q, sol.v, *([sol.s] if system.states else [])]

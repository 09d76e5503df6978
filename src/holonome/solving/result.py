"""The result of a run, or of several legs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from holonome.dynamics.kernels import kernels
from holonome.integrators import loop
from holonome.machine.context import Context
from holonome.results.general import HigherIndexSolution
from holonome.results.solution import Solution
from holonome.solving.diagnosis import message, rank_fell
from holonome.solving.methods import SMOOTH
from holonome.solving.run import Outcome, Run

_read_rank, _ = Context.stretch("dense_calls", "rank")
_STATUS = {loop.DONE: 0, loop.TERMINATED: 1}


def finish(legs: list[Run], outcome: Outcome, remarks: tuple[Callable[[Solution], str], ...] = ()) -> Any:
    """The result of a run, perhaps of several legs."""
    fields, last, wanted = fields_of(legs, outcome), legs[-1], legs[0].task.t_eval
    fields["outcome"] += rank_fell(fields["singular_times"])
    if not fields["t"].size and outcome.code != loop.DONE and wanted is not None and wanted.size:
        fields["t"], fields["states"] = np.array([last.t]), last.state[np.newaxis].copy()
    if not last.system.mechanical:
        return _general_solution(last, fields)
    return checked_solution(Solution(fields | {"remarks": remarks}), legs[0])


def checked_solution(solution: Solution, first: Run) -> Solution:
    """The same, or a failure where a run that reached its end got something wrong all the same."""
    wrong = ""
    if solution.success:
        wrong = _what_is_wrong(first, solution) or solution.system.objection(solution)
    return solution.changed(status=-1, outcome=wrong) if wrong else solution


def fields_of(legs: list[Run], outcome: Outcome) -> dict[str, Any]:
    """All fields of the solution of one run, perhaps of several legs."""
    fields = _fields(legs[-1], outcome)
    if len(legs) > 1:
        parts = [_fields(leg, Outcome(loop.DONE)) for leg in legs[:-1]] + [fields]
        fields = _merged(parts, legs)
        fields["start"] = outcome.start
    return fields


def _fields(run: Run, outcome: Outcome) -> dict[str, Any]:
    """Those of one leg."""
    task, stepper, collected = run.task, run.stepper, run.collected()
    points = collected.points
    t_events, event_states, singular = run.events_in(collected.found)
    nfev, steps, rejections, projections = run.counts
    fields = {
        "system": run.system,
        "method": task.name,
        "t": points[:, 0],
        "states": points[:, 1:],
        "status": _STATUS.get(outcome.code, -1),
        "outcome": message(run, outcome),
        "nfev": nfev,
        "steps": steps,
        "rejections": rejections,
        "projections": projections,
        "rtol": task.rtol,
        "atol": task.atol,
        "start": outcome.start,
        "t_events": t_events,
        "event_states": event_states,
        "singular_times": singular,
        **stepper.counts(run.memory),
    }
    if run.system.mechanical:
        fields["dense_calls"], fields["lowest_rank"] = _read_rank(run.context)
    if task.keep_steps:
        fields["accepted"], fields["rejected"] = collected.steps, collected.rejections
    if task.dense_output and len(collected.steps):
        fields["sol"] = stepper.dense_output(run.record(collected))
    return fields


SUMMED = (
    "nfev",
    "steps",
    "rejections",
    "projections",
    "njev",
    "nlu",
    "error_failures",
    "newton_failures",
    "dense_calls",
)


def _merged(parts: list[dict[str, Any]], legs: list[Run]) -> dict[str, Any]:
    """Several legs as one; the first point of a later leg is the last of the one before it."""
    fields, size = dict(parts[-1]), legs[0].system.state_size
    skip = [0] + [_begins_where(part, before) for before, part in pairwise(parts)]
    pairs = list(zip(parts, skip, strict=True))
    fields["t"] = np.concatenate([part["t"][first:] for part, first in pairs])
    fields["states"] = np.concatenate([part["states"][first:, :size] for part, first in pairs])
    fields |= {name: sum(part.get(name, 0) for part in parts) for name in SUMMED}
    fields["singular_times"] = np.concatenate([part["singular_times"] for part in parts])
    if "accepted" in fields:
        columns = slice(loop.STEP_COLUMNS)
        fields["accepted"] = np.concatenate([part["accepted"][:, columns] for part in parts])
        fields["rejected"] = np.concatenate([part["rejected"] for part in parts])
    if fields["t_events"] is not None:
        events = range(len(fields["t_events"]))
        fields["t_events"] = [np.concatenate([part["t_events"][i] for part in parts]) for i in events]
        states = [[part["event_states"][i][:, :size] for part in parts] for i in events]
        fields["event_states"] = [np.concatenate(rows) for rows in states]
    known = [(part["sol"], leg.t) for part, leg in zip(parts, legs, strict=True) if part.get("sol")]
    if known:
        outputs, ends = zip(*known, strict=True)
        fields["sol"] = JoinedOutput(legs[0].system, list(outputs), np.array(ends), legs[0].task.direction)
    names, smooth = " → ".join(leg.task.name for leg in legs), legs[0].task.name == SMOOTH
    told = ", then ".join(f"{leg.task.name} from t = {leg.task.t0:.6g}" for leg in legs[1:])
    why = "explicit steps are larger than those of smooth motion" if smooth else "stiffness was met"
    fields["outcome"] += f" ({why}: {legs[0].task.name}, then {told})"
    fields["method"] = names if smooth else f"auto: {names}"
    return fields


def _begins_where(part: dict[str, Any], before: dict[str, Any]) -> int:
    return int(part["t"].size > 0 and before["t"].size > 0 and part["t"][0] == before["t"][-1])


class JoinedOutput:
    """Dense output of several legs or pieces: each answers for its own time,
    the later one where they meet.
    """

    def __init__(self, system: Any, outputs: list, ends: np.ndarray, direction: float) -> None:
        self.system, self.outputs, self.ends, self.direction = system, outputs, ends, direction

    def __call__(self, t: Any) -> Any:
        return self.system.split_state(self.rows(t), np.ndim(t) == 0)

    def rows(self, t: Any) -> np.ndarray:
        """States, one row for each time."""
        times, size = np.atleast_1d(np.asarray(t, dtype=float)), self.system.state_size
        leg = np.searchsorted(self.direction * self.ends[:-1], self.direction * times, "right")
        rows = np.empty((times.size, size))
        for i in np.unique(leg):
            rows[leg == i] = self.outputs[i].rows(times[leg == i])[:, :size]
        return rows


def _general_solution(run: Run, fields: dict[str, Any]) -> HigherIndexSolution:
    message_, kept = fields.pop("outcome"), HigherIndexSolution.field_names()
    stepper = run.stepper
    fields |= {"message": message_, "eps": stepper.eps, "carries_y": stepper.srm.variant != "singular"}
    return HigherIndexSolution({name: value for name, value in fields.items() if name in kept})


def _what_is_wrong(run: Run, solution: Solution) -> str:
    """What a run that reached its end got wrong all the same."""
    if solution.system.invariant_count and solution.false_invariants():
        return (
            f"wrong: entry {solution.false_invariants()[0]} of invariant changes along the motion, so it "
            "must not be "
            "held; it is no invariant of this system"
        )
    formulation = run.stepper.formulation
    if formulation.drifts and formulation.damping is None and solution.singular_times.size:
        return (
            f"wrong: the constraints became singular at t = {solution.singular_times[0]:.6g}, where a method "
            "whose constraints drift may leave its branch unnoticed. Use 'auto', 'bdf' or 'srm'"
        )
    return _lost_rows(run, solution) if run.stepper.implicit and run.stepper.left_out else ""


def _lost_rows(run: Run, solution: Solution) -> str:
    """Rows that followed from others at the start, and were therefore left out, must hold during the whole
    run.
    """
    compiled, left_out = kernels(run.system), list(run.stepper.left_out)
    pieces = compiled.evaluate_pieces(run.context, run.task.t0, run.first)
    if pieces is None or not solution.t.size:
        return ""
    mg, size = compiled.position_rows, run.system.state_size
    length = np.maximum(np.linalg.norm(pieces["C"], axis=1), 1e-300)
    tolerance = run.task.rtol * (1.0 + np.max(np.abs(solution.states[:, :size]))) + np.max(run.task.atol)
    missed = np.max(np.abs(solution.gv), axis=1) / length
    missed[:mg] = np.maximum(missed[:mg], np.max(np.abs(solution.g), axis=1, initial=0.0) / length[:mg])
    usual = float(np.max(np.delete(missed, left_out), initial=0.0))
    lost = [run.system.constraint_names[i] for i in left_out if not missed[i] <= 30 * max(tolerance, usual)]
    if not lost:
        return ""
    return (
        f"wrong: {', '.join(lost[:4])} followed from the other constraints at the start and was left out, "
        "but does not "
        "follow from them later. Use an explicit method, which finds out where"
    )

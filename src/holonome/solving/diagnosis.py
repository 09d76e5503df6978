"""What happened to a run, in words: every message of success and failure is made here."""

from __future__ import annotations

import numpy as np

from holonome.dynamics.evaluation import what_failed, what_is_not_finite
from holonome.dynamics.kernels import kernels
from holonome.dynamics.modes import ModeEvent
from holonome.dynamics.poles import unbounded_near
from holonome.dynamics.rank import dependent_rows, free_motions
from holonome.errors import ModelError
from holonome.integrators import loop
from holonome.integrators.loop import RunState
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK, Context
from holonome.solving.run import Outcome, Run

_JUMPS = (
    "Hardly any progress: a force that jumps with q or v near here (dry friction at rest? then smooth it, "
    "v/sqrt(v² + ε²), or stop with an event), random numbers in a force, or a very stiff system (then try "
    "method='ggl')"
)
_MANY_FAILURES, _SUDDENLY_SMALL, _NEAR_POLE = 0.3, 1e-3, 1e-4
_CONTRADICTION = (
    "constraint rows that depend on each other ask for different positions or velocities further on: they "
    "contradict "
    "each other"
)
_REASONS = {
    loop.NEWTON: "Newton's method does not converge; a discontinuity, a singularity, or a Jacobian that is "
    "only approximate",
    loop.PROJECTION_FAILED: "no point on the constraints is found near the end of a step; an impasse, or "
    "constraints "
    "that cannot be met further on",
    loop.CONTRADICTION: _CONTRADICTION,
    loop.SINGULAR_MATRIX: "mass matrix and constraints do not determine the accelerations just ahead",
    loop.ERROR_TEST: "the error cannot be kept below the tolerance; a jump in the forces, a singularity, or "
    "rtol too small",
}
_IMPASSE = "an impasse, unless another method or rtol passes it: 'dop853', 'srm' and 'bdf' differ in this"


def message(run: Run, outcome: Outcome) -> str:
    """How a run ended."""
    code = outcome.code
    text = "the end was reached" if code == loop.DONE else _ending(run, code)
    remark = run.stepper.remark(run.memory)
    if remark:
        text += f" ({remark})"
    if outcome.start is not None and outcome.start.message:
        text += f" ({outcome.start.message})"
    return text


def _ending(run: Run, code: int) -> str:
    t = run.t
    match code:
        case loop.TERMINATED:
            return f"stopped by an event at t = {t:.9g}"
        case loop.STOPPED | loop.FULL:
            return f"interrupted at t = {t:.6g}"
        case loop.USER_FUNCTION_FAILED:
            return f"stopped at t = {t:.6g}: {_user_failure(run)}"
        case loop.EVENT_NOT_A_NUMBER:
            return _event_not_a_number(run)
        case loop.TOO_MANY_STEPS:
            return _too_many_steps(run)
        case loop.AT_POLE:
            return f"stopped at t = {t:.6g}: {_unbounded_function(run)}"
        case loop.CHATTERING:
            h = float(RunState.of(run.memory)["h"])
            return f"stopped at t = {t:.6g} after {run.tried} steps; the last had size {h:.1e}. {_JUMPS}"
        case loop.CANNOT_START | loop.OFF_MANIFOLD if run.system.mechanical:
            return f"cannot start at t = {t:.6g}: {what_failed(run.system, t, _state(run))}"
        case loop.CANNOT_START:
            return f"cannot start at t = {t:.6g}: GB is singular there"
    return f"stopped at t = {t:.6g}: {_why_stuck(run)}"


def _event_not_a_number(run: Run) -> str:
    state = RunState.of(run.memory)
    t, number = float(state["t_failed"]), int(state["event_failed"]) - 1
    function = run.task.events[number].function
    if isinstance(function, ModeEvent):
        why = what_is_not_finite(run.system, t, _state(run))
        return f"stopped at t = {t:.6g}: {why or f'{function.quantity} is NaN there'}"
    return (
        f"stopped at t = {t:.6g}: events[{number}] is NaN there. An "
        "event must be defined along the whole motion; look at square roots, logarithms and divisions in it, "
        "or stop before with a terminal event"
    )


def _state(run: Run) -> np.ndarray:
    return run.state[: run.system.state_size].copy()


def _too_many_steps(run: Run) -> str:
    task, h = run.task, float(RunState.of(run.memory)["h"])
    steps = task.steps_before + task.max_steps
    advice = _JUMPS if _creeps(run, h) else "Raise max_steps or loosen rtol"
    return f"stopped at t = {run.t:.6g} after max_steps = {steps} steps; the last had size {h:.1e}. {advice}"


def _creeps(run: Run, h: float) -> bool:
    """Whether steps fail again and again, or have become far smaller than they were."""
    state = RunState.of(run.memory)
    accepted, rejected = int(state["accepted"]), int(state["rejected"])
    usual = abs(run.t - run.task.t0) / max(accepted, 1)
    return rejected > _MANY_FAILURES * (accepted + rejected) or abs(h) < _SUDDENLY_SMALL * usual


def _user_failure(run: Run) -> str:
    """Which function failed: the one whose error was caught, or else found by calling all of them at the
    states of the last failures.
    """
    t, y = run.t, _state(run)
    for supplied in run.supplied:
        if supplied.error is not None:
            error = supplied.error
            named = isinstance(error, ModelError)
            text = str(error) if named else f"{supplied.role} raised {type(error).__name__}: {error}"
            return (
                f"{text} (near t = {t:.6g}, "
                f"q = {np.array2string(y[: run.system.n], precision=6, threshold=8)})"
            )
    if not run.system.mechanical:
        return "a function is not finite there"
    text = ""
    for point in ((float(RunState.of(run.memory)["t_failed"]), run.stepper.failed_state(run.memory)), (t, y)):
        text = what_failed(run.system, *point)
        if not text.startswith("a derivative"):
            return text
    return _event_failure(run, t, y) or text


def _event_failure(run: Run, t: float, y: np.ndarray) -> str:
    system, n = run.system, run.system.n
    for i, event in enumerate(run.task.events):
        function = system.event_function(f"events[{i}]", event.function)
        try:
            function.evaluate({"t": t, "q": y[:n], "v": y[n : 2 * n], "s": y[2 * n :]})
        except ModelError as error:
            return str(error)
    return ""


def _why_stuck(run: Run) -> str:
    """Diagnosis of a step size that fell to nothing."""
    if run.system.mechanical:
        reason = _not_finite_ahead(run, run.t, _state(run), 0)
    else:
        state = RunState.of(run.memory)
        ahead = run.t + run.task.direction * max(abs(state["h"]), 16 * np.spacing(abs(run.t)))
        reason = run.system.not_finite(ahead, _state(run))
    reason = reason or _unbounded_function(run) or run.stepper.why_stuck(run.memory)
    if reason:
        return reason
    size = f"the step size fell to {RunState.of(run.memory)['h']:.1e}"
    if not run.system.mechanical:
        return f"{size}; a singular position, or a solution that ends"
    if run.stepper.constant:
        size = f"the constant step {run.stepper.constant:g} fails"
    return f"{size}; {_why_no_step(run, _last_cause(run))}"


def _unbounded_function(run: Run) -> str:
    """Whether a function has a pole here, or at one of the times where that was to be looked at."""
    span = run.task.t1 - run.task.origin
    near = [t for t in run.poles if abs(t - run.t) < _NEAR_POLE * abs(span)] or [run.t]
    return unbounded_near(run.system, near[0], _state(run), span)


def _last_cause(run: Run) -> int:
    used = int(RunState.of(run.memory)["rejections"])
    return int(run.rejections[used - 1, 3]) if used else 0


def _why_no_step(run: Run, cause: int) -> str:
    t, y = run.t, _state(run)
    pieces = kernels(run.system).evaluate_pieces(run.context, t, y)
    if cause == loop.FUNCTION_RAISED:
        return _user_failure(run)
    if pieces is None or not all(np.all(np.isfinite(x)) for x in pieces.values()):
        return what_failed(run.system, t, y)
    if cause == loop.CONTRADICTION:
        return _CONTRADICTION
    reason = _singular_position(run, pieces["C"]) or _not_finite_ahead(run, t, y, cause)
    reason = reason or _singular_mass(run, pieces) or _unbounded(run, y)
    if reason:
        return reason
    if cause == loop.SINGULAR_MATRIX and "lam" in run.system.further_names:
        return (
            "the multipliers λ, on which forces depend, are not found just ahead; are they finite for all λ?"
        )
    reason = _REASONS.get(cause, "no step succeeds")
    if cause == loop.NEWTON and run.stepper.constant:
        return f"{reason}, or the step is too large; give a smaller step"
    return reason


def _singular_position(run: Run, C: np.ndarray) -> str:
    """Whether the constraints lose rank here."""
    system, names = run.system, run.system.constraint_names
    if not system.m:
        return ""
    lengths = np.maximum(np.linalg.norm(C, axis=1), 1e-300)
    smallest = np.linalg.svd(C / lengths[:, None], compute_uv=False)[-1]
    known = Context.of(run.context)["rank"] == system.m and not run.stepper.implicit
    if smallest < 1e-3 and not known:
        rows = dependent_rows(np.round(C, 12))[1] or [int(np.argmin(lengths))]
        depends = ", ".join(names[i] for i in rows[:4])
        return (
            f"the constraints come close to a singular position (smallest singular value {smallest:.1e}; "
            f"{depends} "
            f"depends on the others there); {_IMPASSE}"
        )
    before = kernels(system).evaluate_pieces(run.context, run.task.t0, run.first)
    if before is None:
        return ""
    small = lengths < 1e-3 * np.linalg.norm(before["C"], axis=1)
    vanishing = ", ".join(names[i] for i in np.flatnonzero(small)[:4])
    return (
        f"a singular position: the derivative of {vanishing} with respect to q vanishes there; {_IMPASSE}"
        if vanishing
        else ""
    )


def _unbounded(run: Run, y: np.ndarray) -> str:
    """Whether the motion grows without bound."""
    n, names = run.system.n, run.system.all_names
    q, rates = np.abs(y[:n]), np.abs(y[n:])
    largest = float(np.max(q, initial=0.0))
    if not (np.max(rates) > 1e6 * max(1.0, largest) or largest > 1e8):
        return ""
    name = names[int(np.argmax(rates))]
    return f"the motion grows without bound (|{name}′| = {np.max(rates):.1e}), the solution may end here"


def _singular_mass(run: Run, pieces: dict[str, np.ndarray]) -> str:
    """Whether a motion that the constraints allow has lost its inertia during the run."""
    before = kernels(run.system).evaluate_pieces(run.context, run.task.t0, run.first)
    if before is None:
        return ""
    least = [_least_inertia(found) for found in (before, pieces)]
    if not 0 < least[0] < np.inf or abs(least[1]) > 1e-6 * least[0]:
        return ""
    return "the mass matrix becomes singular for motions that the constraints allow"


def _least_inertia(pieces: dict[str, np.ndarray]) -> float:
    """The smallest eigenvalue of the mass matrix over motions that the constraints allow."""
    free = free_motions(pieces)
    return float(np.linalg.eigvalsh(free.T @ pieces["M"] @ free)[0]) if free.shape[1] else np.inf


_FAR, _CLOSE = (1e-12, 1e-9, 1e-6, 1e-3), (1e-12, 1e-9, 1e-6)
"""How far ahead to look for values that are not finite, in units of the whole run: further where the method
has already found one.
"""


def _not_finite_ahead(run: Run, t: float, y: np.ndarray, cause: int) -> str:
    """Which function is not finite slightly ahead, whatever made the method fail."""
    seen = cause == loop.NOT_FINITE
    rates = np.zeros(y.size + 1)
    status = run_kernel(kernels(run.system).derivative, t, y, y, run.context, rates)
    moves = [np.append(y[run.system.n : 2 * run.system.n], np.zeros(y.size - run.system.n))]
    if status == OK and np.all(np.isfinite(rates)):
        moves.insert(0, rates[:-1])
    distances = [h * (run.task.t1 - run.task.origin) for h in (_FAR if seen else _CLOSE)]
    if run.stepper.constant:
        distances.append(run.task.direction * run.stepper.constant)
    for dt in distances:
        for move in moves:
            text = what_is_not_finite(run.system, t + dt, y + dt * move)
            if text:
                return f"forces, masses or constraints are not finite just ahead; {text}"
    if seen:
        return (
            "forces, masses or constraints are not finite just ahead; look at square roots, logarithms and "
            "divisions there"
        )
    return ""


def rank_fell(times: np.ndarray) -> str:
    """Where the rank of the constraints fell during the run."""
    if not times.size:
        return ""
    shown = ", ".join([f"{t:.6g}" for t in times[:3]] + ["…"] * (times.size > 3))
    often = "once" if times.size == 1 else f"{times.size} times"
    return f" (the rank of the constraints fell on the way, {often}: t = {shown})"

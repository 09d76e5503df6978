"""The loop that all integrators share: it takes steps and records points, events and switches.

A family of integrators is a module whose compiled functions know its mathematics; `advance` calls those of
these names, until the end is reached, no step succeeds, a terminal event stops the run, a buffer is full, or
as many steps have been tried as Python allowed.  All that a run knows lives in its memory, so it resumes
where it stopped, and the loop allocates nothing.

    parts(memory)                  the memory taken apart once: a tuple ``w`` with ``w.run``, the `RunState`,
                                   ``w.memory``, and what else the family needs
    begin(w, context)              prepare the first step; OK, or a code with which to leave
    propose(w)                     size of the next step, with its sign
    attempt(w, context, t, h)      try it; ACCEPTED, REPEAT (with changed memory), the cause of a rejection,
                                   or LEAVE with the code in ``w.run.code``; the error in ``w.run.error``
    reject(w, t, h, cause)         choose a smaller step; False if there is none
    accept(w, steps, row, t, h, t_new)
                                   move on to t_new and choose the next step; row ≥ 0 is a row of the
                                   history that may get extra columns
    watch(w, context, found)       notice a fall of the rank of the constraints in the last step
    settle(w)                      after the points of a step have been written
    resume(w, context)             restart after a switch; OK, or a code with which to leave
"""

import math
from typing import Any

from numba import njit

from holonome.integrators import event_search, rank_watch
from holonome.integrators.event_search import MOST_IN_STEP
from holonome.machine.calls import as_matrix, as_vector, filled_in, pointer, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED
from holonome.machine.layout import Layout, Real, Vector, Whole


class RunState(Layout):
    """What is asked of a run, and where it stands."""

    t: Real  # time reached
    t_old: Real  # where the last step began
    t_start: Real
    t_end: Real
    h_max: Real
    first_step: Real  # asked for by the user; 0: to be chosen
    rtol: Real
    direction: Whole  # 1, or −1 backward in time
    max_steps: Whole
    keep_points: Whole  # whether every step is a point of the result
    keep_steps: Whole  # whether the history is kept
    evals: Whole  # number of times asked for
    next_eval: Whole
    budget: Whole  # steps that this call may still try
    constant: Real  # constant step size; 0: by the tolerances
    size: Whole  # numbers of a stored state
    h: Real  # size of the next step, as the family counts it
    phase: Whole  # what comes next: START, STEPPING, RECORDING, ENDING, CROSSING
    code: Whole  # why the family leaves the loop
    error: Real  # of the last step, in units of the tolerance
    correction: Real  # relative size of its last correction
    iterations: Whole  # how many corrections, or iterations of Newton's method
    order: Whole  # of the last step
    t_failed: Real  # where an evaluation failed last
    nfev: Whole  # evaluations
    accepted: Whole
    rejected: Whole
    projections: Whole
    points: Whole  # rows used of each buffer
    steps: Whole
    rejections: Whole
    found: Whole
    known: Whole  # steps known in advance; the first step of the run is counted from their beginning
    on_manifold: Whole  # whether the ends of steps need no projection before they are stored
    far_side: Whole  # whether the state just after a switch is stored as a point, too
    switches: Whole  # number of switching times
    next_switch: Whole
    events: Whole  # number of events
    event_kernel: Whole  # address of the kernel for their values and rates
    event_rate: Whole  # address of the kernel for y′, where they need it, and of its dense fallback
    event_dense_rate: Whole
    event_multipliers: Whole  # the same for λ, where the state holds none
    event_dense_multipliers: Whole
    event_state: Whole  # numbers of q, v and s
    event_rows: Whole  # multipliers
    event_failed: Whole  # 1 + number of an event that is NaN
    event_stop: Real  # where the first terminal event ends the run, times the direction
    interpolant: Whole  # address of the kernel for the state inside the last step
    preview: Whole  # the same, cheap and almost right
    watch: Whole  # where the memory of the rank watch begins; 0: there is none
    atol: Vector
    y: Vector
    y_old: Vector
    y_event: Vector
    event_z: Vector  # y′ and λ, for the events
    event_work: Vector  # their values and rates
    event_old: Vector
    event_new: Vector
    event_nodes: Vector  # the same at the nodes inside the last step
    event_line: Vector  # those of one event at ends and nodes
    event_exact: Vector  # whether its rate is known
    event_direction: Vector
    event_terminal: Vector
    event_fired: Vector  # of those that have just ended another run here, its length
    switching_times: Vector  # just before and just after each


run_state = RunState.named()
OWN = RunState.words
"""Where the record of the family begins."""

DONE, TERMINATED, FULL, STEP_TOO_SMALL, USER_FUNCTION_FAILED = range(5)
TOO_MANY_STEPS, CANNOT_START, OFF_MANIFOLD, STOPPED, EVENT_NOT_A_NUMBER = range(5, 10)
"""What `advance` returns."""

CHATTERING, AT_POLE = 10, 11
"""How a run ends that makes hardly any progress, or comes to a pole."""

ERROR_TEST, PROJECTION_FAILED, NOT_FINITE, SINGULAR_MATRIX, FUNCTION_RAISED, CONTRADICTION, NEWTON = range(
    1, 8
)
ACCEPTED, REPEAT, LEAVE = 0, -1, -2
"""Outcomes of an attempt; positive ones are causes of a rejection."""

CAUSES = {
    ERROR_TEST: "error test",
    PROJECTION_FAILED: "projection",
    NOT_FINITE: "not finite",
    SINGULAR_MATRIX: "singular",
    FUNCTION_RAISED: "function raised",
    CONTRADICTION: "contradiction",
    NEWTON: "Newton",
}

START, STEPPING, RECORDING, ENDING, CROSSING = range(5)
"""Phases between two calls."""

STEP_COLUMNS, REJECTION_COLUMNS = 6, 4
"""A row of the history: t, h, error, correction, iterations, order; and of the rejected steps: t, h, error,
cause.
"""


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def weighted_square(e, y, z, atol, rtol, size):
    """Σ (e_i / (atol_i + rtol max(|y_i|, |z_i|)))²."""
    total = 0.0
    for i in range(size):
        x = e[i] / (atol[i] + rtol * max(abs(y[i]), abs(z[i])))
        total += x * x
    return total


@njit(cache=True)
def code_of(status):
    """The code with which a run ends when a kernel returns this status at a point that cannot be avoided."""
    return USER_FUNCTION_FAILED if status == RAISED else STOPPED if status == INTERRUPTED else CANNOT_START


@njit(cache=True)
def _store(points, row, t, y, size):
    points[row, 0] = t
    for i in range(size):
        points[row, 1 + i] = y[i]


@njit(cache=True)
def _shorten(run, found, first, stop):
    """Let the last step end at a terminal event."""
    keep = first
    for row in range(first, run.found):
        if run.direction * found[row, 1] <= stop:
            keep = row + 1
            for j in range(run.size):
                run.y[j] = found[row, 2 + j]
    run.found = keep
    run.t = run.direction * stop
    run.phase = ENDING


@njit(cache=True)
def _event_code(status):
    """The code with which a run ends when events cannot be evaluated."""
    if status == event_search.NOT_A_NUMBER:
        return EVENT_NOT_A_NUMBER
    return STOPPED if status == INTERRUPTED else USER_FUNCTION_FAILED


@njit(cache=True)
def _find_events(run, memory, context, found):
    """Look for events in the last step, and shorten it at the first terminal one."""
    first = run.found
    status = event_search.search(run, memory, context, found)
    if status != OK:
        return _event_code(status)
    if run.event_stop != math.inf:
        _shorten(run, found, first, run.event_stop)
    return DONE


@njit(cache=True)
def _may_step(run, steps, rejections, found):
    """DONE if buffers and budget allow another step, else why not."""
    room = run.steps < steps.shape[0] and run.rejections < rejections.shape[0]
    if run.budget <= 0 or not room or run.found + MOST_IN_STEP * run.events + 2 > found.shape[0]:
        return FULL
    if run.accepted + run.rejected >= run.max_steps:
        return TOO_MANY_STEPS
    run.budget -= 1
    return DONE


@njit(cache=True)
def target(run):
    """The time that the next step must not cross: just before the next switch, or the end."""
    if run.next_switch < run.switches:
        return run.switching_times[2 * run.next_switch]
    return run.t_end


@njit(cache=True)
def _record(run, memory, context, points, t_eval):
    """Write the output points inside the last step; FULL if the buffer is full before all are written."""
    direction, t = run.direction, run.t
    while run.next_eval < run.evals and direction * t_eval[run.next_eval] <= direction * t:
        if run.points == points.shape[0]:
            return FULL
        time = t_eval[run.next_eval]
        if time == t and run.on_manifold:
            _store(points, run.points, t, run.y, run.size)
        else:
            if event_search.state_at(run, memory, context, time, run.y_event) != OK:
                run.t_failed = time
                return USER_FUNCTION_FAILED
            _store(points, run.points, time, run.y_event, run.size)
        run.points += 1
        run.next_eval += 1
    if run.keep_points:
        if run.points == points.shape[0]:
            return FULL
        _store(points, run.points, t, run.y, run.size)
        run.points += 1
    return DONE


@njit(cache=True)
def _cross(run, points):
    """Step over a switch; FULL if the buffer has no room for the point after it."""
    stored = run.keep_points and run.far_side
    if stored and run.points == points.shape[0]:
        return FULL
    run.t = run.switching_times[2 * run.next_switch + 1]
    run.next_switch += 1
    if stored:
        _store(points, run.points, run.t, run.y, run.size)
        run.points += 1
    return DONE


@njit(cache=True)
def _arrival(run, t, h):
    """The time at the end of a step: exactly the target or, at a constant step, a multiple of it."""
    aim = target(run)
    if abs(h) == abs(aim - t):
        return aim
    if run.constant > 0.0 and run.switches == 0:
        return run.t_start + run.direction * run.constant * run.accepted
    return t + h


@njit(cache=True)
def _note_rejection(run, rejections, t, h, cause):
    row = run.rejections
    rejections[row, 0] = t
    rejections[row, 1] = h
    rejections[row, 2] = run.error
    rejections[row, 3] = cause
    run.rejections += 1
    run.rejected += 1


@njit(cache=True)
def _note_step(run, steps, row, t, h):
    """The columns of the history that every family has."""
    steps[row, 0] = t
    steps[row, 1] = h
    steps[row, 2] = run.error
    steps[row, 3] = run.correction
    steps[row, 4] = run.iterations
    steps[row, 5] = run.order
    run.steps += 1


@njit(cache=True)
def rank_watch_in(w):
    """The memory of the rank watch, by name."""
    return rank_watch.named(shift(w.memory, w.run.watch))


@njit(cache=True)
def watch_between(w, context, found, x_old, rate_old, x, rate):
    """Look for a fall of the rank in the last step, from positions and their rates at both ends."""
    run = w.run
    step = rank_watch.Step(run.t_old, x_old, rate_old, run.t, x, rate)
    run.found = rank_watch.watch_point(rank_watch_in(w), context, step, found, run.found)


@njit(cache=True)
def watch_ends(w, context, found):
    """The same for states (q, v)."""
    y, y_old = w.run.y, w.run.y_old
    watch_between(w, context, found, y_old, shift(y_old, w.n), y, shift(y, w.n))


@njit(cache=True)
def leave(w, code):
    """The outcome of an attempt after which the run returns with this code."""
    w.run.code = code
    return LEAVE


@njit(cache=True)
def hermite(run, t, y_old, f_old, y, f, size, out):
    """The cubic through both ends of the last step, with their slopes."""
    h = run.t - run.t_old
    s = (t - run.t_old) / h
    a, c = (1 + 2 * s) * (1 - s) ** 2, s * s * (3 - 2 * s)
    b, d = s * (1 - s) ** 2 * h, s * s * (s - 1) * h
    for i in range(size):
        out[i] = a * y_old[i] + b * f_old[i] + c * y[i] + d * f[i]


@njit(cache=True, error_model="numpy")
def propose_explicit(w):
    """Size of the step to try, with its sign: it hits the target exactly, with no tiny step before it."""
    run = w.run
    left, h = abs(target(run) - run.t), run.h
    if run.constant > 0.0:
        return run.direction * (left if left < run.constant * (1 + 1e-9) else run.constant)
    if h >= left * (1 - 1e-10):
        return run.direction * left
    return run.direction * (0.5 * left if h > 0.5 * left else h)


parts: Any = None  # the functions of a family (`advance_with`)
begin = propose = attempt = reject = accept = watch = resume = parts


@njit(cache=True)
def settle(w):
    """Nothing is left to do after the points of a step have been written, unless a family says otherwise."""


@njit(cache=True, inline="always")
def _borrowed(array):
    """The same numbers as an array to which nobody counts references, which takes a fifth of a small step."""
    return as_matrix(pointer(array), array.shape[0], array.shape[1])


def _advance(
    memory_array, context_array, points_array, steps_array, rejections_array, found_array, times_array
):
    """Take steps until there is something to report."""
    memory, context = pointer(memory_array), pointer(context_array)
    points, steps = _borrowed(points_array), _borrowed(steps_array)
    rejections, found = _borrowed(rejections_array), _borrowed(found_array)
    t_eval = as_vector(pointer(times_array), len(times_array))
    w = parts(memory)
    run = w.run
    if run.phase == START:
        code = begin(w, context)
        if code != OK:
            return code
        if run.points == 0 and (run.keep_points or run.next_eval > 0):
            _store(points, 0, run.t, run.y, run.size)
            run.points = 1
        if run.events > 0:
            status = event_search.start(run, context)
            if status != OK:
                return _event_code(status)
        if run.watch > 0:
            rank_watch.start(rank_watch_in(w), context, run.t_start, run.y)
        run.phase = STEPPING
    while True:
        if run.phase == CROSSING:
            if _cross(run, points) == FULL:
                return FULL
            code = resume(w, context)
            if code != OK:
                return code
            if run.events > 0:
                event_search.renew_rates(run, context)
            run.phase = STEPPING
        elif run.phase != STEPPING:
            code = _record(run, memory, context, points, t_eval)
            if code != DONE:
                return code
            if run.phase == ENDING:
                return TERMINATED
            if run.t == run.t_end:
                return DONE
            if run.next_switch < run.switches and run.t == target(run):
                run.phase = CROSSING
                continue
            settle(w)
            run.phase = STEPPING
        code = _may_step(run, steps, rejections, found)
        if code != DONE:
            return code
        t, h = run.t, propose(w)
        if t + h == t:
            return STEP_TOO_SMALL
        outcome = attempt(w, context, t, h)
        if outcome == LEAVE:
            return run.code
        if outcome == REPEAT:
            w = parts(memory)
            continue
        if outcome != ACCEPTED:
            _note_rejection(run, rejections, t, h, outcome)
            if not reject(w, t, h, outcome):
                return STEP_TOO_SMALL
            continue
        run.accepted += 1
        row = run.steps if run.keep_steps else -1
        t_new = _arrival(run, t, h)
        accept(w, steps, row, t, h, t_new)
        if row >= 0:
            _note_step(run, steps, row, t, h)
        run.t_old = run.t_start if run.accepted == run.known + 1 else t
        run.t = t_new
        if run.watch > 0:
            watch(w, context, found)
        run.phase = RECORDING
        if run.events > 0:
            code = _find_events(run, memory, context, found)
            if code != DONE:
                return code


_FAMILY = ("parts", "begin", "propose", "attempt", "reject", "accept", "watch", "settle", "resume")


def advance_with(family: dict[str, Any]) -> Any:
    """The loop, compiled with the functions of a family, found under these names in its module."""
    return njit(cache=True, nogil=True, error_model="numpy")(filled_in(_advance, family, _FAMILY))

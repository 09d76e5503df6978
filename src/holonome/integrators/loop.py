"""The one loop of every integrator: steps, points, events, switches, and what is noted of them.

A family of integrators brings a few compiled functions that know its mathematics; `advance` calls them, until
the end is reached, nothing goes any further, a terminal event stops the run, a buffer is full, or as many
steps have been tried as Python allowed.  All that a run knows lives in its memory, so it resumes where it
was, and nothing is allocated on the way.

    parts(memory)                  the memory taken apart once: a tuple ``w`` with ``w.run``, the `RunState`,
                                   ``w.memory``, and whatever the family works with
    begin(w, context)              prepare the first step; OK, or a code with which to leave
    propose(w)                     size of the next step, with its sign
    attempt(w, context, t, h)      try it; ACCEPTED, REPEAT (with changed memory), the cause of a rejection,
                                   or LEAVE with the code in ``w.run.code``; the error in ``w.run.error``
    reject(w, t, h, cause)         choose a smaller step; False if there is none
    accept(w, steps, row, t, h, t_new)
                                   move on to t_new and choose the next step; row ≥ 0 is a row of the
                                   history that may get further columns
    watch(w, context, found)       notice a fall of the rank of the constraints in the last step
    settle(w)                      after the points of a step have been written
    resume(w, context)             begin anew behind a switch; OK, or a code with which to leave
"""

import math
from types import FunctionType
from typing import Any

from numba import njit

from holonome.integrators import rank_watch
from holonome.machine.calls import call, pointer, shift
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
    on_manifold: Whole  # whether the ends of steps need no projection before they are stored
    far_side: Whole  # whether the far side of a switch is a point of its own
    switches: Whole  # number of switching times
    next_switch: Whole
    events: Whole  # number of events
    event_kernel: Whole  # address
    interpolant: Whole  # address of the kernel for the state inside the last step
    watch: Whole  # where the memory of the rank watch begins; 0: there is none
    atol: Vector
    y: Vector
    y_old: Vector
    y_event: Vector
    event_work: Vector
    event_old: Vector
    event_new: Vector
    event_direction: Vector
    event_terminal: Vector
    switching_times: Vector  # just before and just behind each


run_state = RunState.named()
OWN = RunState.words
"""Where the record of the family begins."""

DONE, TERMINATED, FULL, STEP_TOO_SMALL, USER_FUNCTION_FAILED = range(5)
TOO_MANY_STEPS, CANNOT_START, OFF_MANIFOLD, STOPPED = range(5, 9)
"""What `advance` returns."""

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

_ROOT_TOLERANCE = 1e-13
_ROOT_ITERATIONS = 100


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
def _state_at(run, memory, context, t, out):
    """The solution inside the last step, on the manifold."""
    return call(run.interpolant, t, out, memory, context, out)


@njit(cache=True)
def _event_at(run, memory, context, index, t):
    """Value of one event inside the last step; the state is left in ``y_event``."""
    if _state_at(run, memory, context, t, run.y_event) != OK:
        return math.nan
    if call(run.event_kernel, t, run.y_event, run.y_event, context, run.event_work) != OK:
        return math.nan
    return run.event_work[index]


@njit(cache=True)
def _root(run, memory, context, index, a, fa, b, fb):
    """Chandrupatla's method: bisection, or inverse quadratic interpolation where that is safe.

    Returns the end of the final bracket behind the crossing.
    """
    c, fc, x = a, fa, 0.5
    for _ in range(_ROOT_ITERATIONS):
        new = a + x * (b - a)
        f = _event_at(run, memory, context, index, new)
        if not math.isfinite(f):  # a singular position, perhaps: beside it
            for nearby in (0.4, 0.6, 0.2, 0.8):
                new = a + nearby * (b - a)
                f = _event_at(run, memory, context, index, new)
                if math.isfinite(f):
                    break
        if not math.isfinite(f):
            return b
        if (f > 0) == (fa > 0) and f != 0.0:
            c, fc = a, fa
        else:
            c, b, fc, fb = b, a, fb, fa
        a, fa = new, f
        # a and b bracket the root; a is the newest
        width = abs(b - a)
        smallest = _ROOT_TOLERANCE * max(abs(a), abs(b)) + 1e-300
        if fa == 0.0 or width <= smallest:
            break
        x = 0.5
        if fb != fc and fa != fc:
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            if phi * phi < xi and (1 - phi) * (1 - phi) < 1 - xi:
                x = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        edge = 0.5 * smallest / width
        x = min(1 - edge, max(edge, x))
    return a


@njit(cache=True)
def _add_event(run, memory, context, found, index, time):
    """A row of ``found`` for an event; False if the state there cannot be had."""
    if _state_at(run, memory, context, time, run.y_event) != OK:
        return False
    row = run.found
    found[row, 0] = index
    found[row, 1] = time
    for j in range(run.size):
        found[row, 2 + j] = run.y_event[j]
    run.found += 1
    return True


@njit(cache=True)
def _sort_by_time(found, first, end, direction):
    """Insertion sort; there are few of them."""
    for i in range(first + 1, end):
        for j in range(i, first, -1):
            if direction * found[j, 1] < direction * found[j - 1, 1]:
                for k in range(found.shape[1]):
                    found[j, k], found[j - 1, k] = found[j - 1, k], found[j, k]


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
def _find_events(run, memory, context, found):
    """Look for sign changes over the last step, and shorten it at the first terminal one."""
    old, new = run.event_old, run.event_new
    if call(run.event_kernel, run.t, run.y, run.y, context, new) != OK:
        return USER_FUNCTION_FAILED
    first, stop = run.found, math.inf
    for i in range(run.events):
        rising = old[i] < 0.0 and new[i] >= 0.0 and run.event_direction[i] >= 0.0
        falling = old[i] > 0.0 and new[i] <= 0.0 and run.event_direction[i] <= 0.0
        if rising or falling:
            root = run.t
            if new[i] != 0.0:
                root = _root(run, memory, context, i, run.t_old, old[i], run.t, new[i])
            if not _add_event(run, memory, context, found, i, root):
                return USER_FUNCTION_FAILED
            if run.event_terminal[i] > 0.0:
                run.event_terminal[i] -= 1.0
                if run.event_terminal[i] == 0.0:
                    stop = min(stop, run.direction * root)
    _sort_by_time(found, first, run.found, run.direction)
    for i in range(run.events):
        old[i] = new[i]
    if stop != math.inf:
        _shorten(run, found, first, stop)
    return DONE


@njit(cache=True)
def _may_step(run, steps, rejections, found):
    """DONE if buffers and budget allow another step, else why not."""
    room = run.steps < steps.shape[0] and run.rejections < rejections.shape[0]
    if run.budget <= 0 or not room or run.found + run.events + 2 > found.shape[0]:
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
    """Write the points that the last step owes; FULL if the buffer is full before all are written."""
    direction, t = run.direction, run.t
    while run.next_eval < run.evals and direction * t_eval[run.next_eval] <= direction * t:
        if run.points == points.shape[0]:
            return FULL
        time = t_eval[run.next_eval]
        if time == t and run.on_manifold:
            _store(points, run.points, t, run.y, run.size)
        else:
            if _state_at(run, memory, context, time, run.y_event) != OK:
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
    """Step over a switch; FULL if there is no room for its far side."""
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
def rank_watch_in(run, memory):
    """The memory of the rank watch, by name."""
    return rank_watch.named(shift(memory, run.watch))


@njit(cache=True, error_model="numpy")
def propose_explicit(run):
    """Size of the step to try, with its sign: it hits the target exactly, with no tiny step before it."""
    left, h = abs(target(run) - run.t), run.h
    if run.constant > 0.0:
        return run.direction * (left if left < run.constant * (1 + 1e-9) else run.constant)
    if h >= left * (1 - 1e-10):
        return run.direction * left
    return run.direction * (0.5 * left if h > 0.5 * left else h)


parts: Any = None  # a family brings these functions (`advance_with`)
begin: Any = None
propose: Any = None
attempt: Any = None
reject: Any = None
accept: Any = None
watch: Any = None
settle: Any = None
resume: Any = None


def _advance(memory_array, context_array, points, steps, rejections, found, t_eval):
    """Go on until something has to be told."""
    memory, context = pointer(memory_array), pointer(context_array)
    w = parts(memory)
    run = w.run
    if run.phase == START:
        code = begin(w, context)
        if code != OK:
            return code
        if run.points == 0 and (run.keep_points or run.next_eval > 0):
            _store(points, 0, run.t, run.y, run.size)
            run.points = 1
        if run.events > 0 and call(run.event_kernel, run.t, run.y, run.y, context, run.event_old) != OK:
            return USER_FUNCTION_FAILED
        if run.watch > 0:
            rank_watch.start(rank_watch_in(run, memory), context, run.t, run.y)
        run.phase = STEPPING
    while True:
        if run.phase == CROSSING:
            if _cross(run, points) == FULL:
                return FULL
            code = resume(w, context)
            if code != OK:
                return code
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
        run.t_old = t
        run.t = t_new
        if run.watch > 0:
            watch(w, context, found)
        run.phase = RECORDING
        if run.events > 0:
            code = _find_events(run, memory, context, found)
            if code != DONE:
                return code


def advance_with(module: str, **family: Any) -> Any:
    """The loop, compiled with the functions of a family, which are named above."""
    loop = FunctionType(_advance.__code__, {**globals(), **family}, "advance")
    loop.__module__ = module
    loop.__qualname__ = f"advance_with_{module.replace('.', '_')}"  # Numba's cache goes by this name
    return njit(cache=True, nogil=True, error_model="numpy")(loop)

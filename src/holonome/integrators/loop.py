"""The frame of a run that every integrator shares: its memory, its counters, the recording of points and the
search for events.

An integrator is a compiled function ``advance(memory, context, counts, points, steps, rejections, found,
t_eval)`` that goes on until it is done or stuck, a terminal event stops it, a buffer is full, or
``counts[BUDGET]`` steps have been tried; Python then empties the buffers and calls it again.  All its state
lives in ``memory`` and ``counts``, so it resumes where it was, and nothing is allocated on the way.
"""

import math

from numba import njit

from holonome.integrators import rank_watch as rank
from holonome.machine.calls import call, shift
from holonome.machine.context import OK

# counts
(
    BUDGET,
    POINTS,
    STEPS,
    REJECTIONS,
    FOUND,
    NEXT_EVAL,
    KEEP_POINTS,
    KEEP_STEPS,
    EVENTS,
    NFEV,
    ACCEPTED,
    REJECTED,
    MAX_STEPS,
    STATE,
    WAY,
    EVALS,
    SWITCHING_TIMES,
    NEXT_SWITCH,
) = range(18)
COUNTS = 40
"""Size of ``counts``: steps still allowed in this call; rows used of each buffer; next output time; which
rows are wanted; numbers of events, evaluations, steps …
"""

# memory: a header, then tolerances, events and the integrator's own part
(
    SIZE,
    STRIDE,
    T,
    T_END,
    T_OLD,
    H,
    H_TRY,
    H_MAX,
    RTOL,
    FIRST_STEP,
    INTERPOLANT,
    EVENT_KERNEL,
    ATOL,
    EVENT_OLD,
    EVENT_NEW,
    EVENT_DIRECTION,
    EVENT_TERMINAL,
    Y,
    Y_OLD,
    Y_EVENT,
    OWN,
    T_START,
    CORRECTION,
    LANDINGS,
    T_FAILED,
    ITERATIONS,
    ON_MANIFOLD,
    SWITCHES,
    WATCH,
) = range(29)
HEADER = 112
"""Numbers: size and padded stride of the state, times, step sizes, tolerances.  Addresses: interpolant, event
kernel.  Offsets: the arrays that follow.
"""

# what `advance` returns
(
    DONE,
    TERMINATED,
    FULL,
    STEP_TOO_SMALL,
    USER_FUNCTION_FAILED,
    TOO_MANY_STEPS,
    CANNOT_START,
    OFF_MANIFOLD,
    STOPPED,
) = range(9)

# causes of a rejected step
ERROR_TEST, PROJECTION_FAILED, NOT_FINITE, SINGULAR_MATRIX, FUNCTION_RAISED, CONTRADICTION, NEWTON = range(
    1, 8
)
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
"""States between two calls."""

STEP_COLUMNS, REJECTION_COLUMNS = 6, 4
"""A row of the history: t, h, error, last correction, iterations, order; and of the rejected steps: t, h,
error, cause.
"""

_ROOT_TOLERANCE = 1e-13
_ROOT_ITERATIONS = 100


@njit(cache=True, inline="always")
def part(memory, offset):
    """The array of the memory whose offset stands at this place of the header."""
    return shift(memory, int(memory[offset]))


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def weighted_square(e, y, z, atol, rtol, size):
    """Σ (e_i / (atol_i + rtol max(|y_i|, |z_i|)))²."""
    total = 0.0
    for i in range(size):
        x = e[i] / (atol[i] + rtol * max(abs(y[i]), abs(z[i])))
        total += x * x
    return total


@njit(cache=True)
def store(points, row, t, y, size):
    """One row (t, y) of a buffer."""
    points[row, 0] = t
    for i in range(size):
        points[row, 1 + i] = y[i]


@njit(cache=True)
def state_at(memory, context, t, out):
    """The solution inside the last step, on the manifold."""
    return call(int(memory[INTERPOLANT]), t, out, memory, context, out)


@njit(cache=True)
def _event_at(memory, context, index, t):
    """Value of one event inside the last step; the state is left in Y_EVENT."""
    y = part(memory, Y_EVENT)
    if state_at(memory, context, t, y) != OK:
        return math.nan
    work = shift(y, 2 * int(memory[STRIDE]))
    if call(int(memory[EVENT_KERNEL]), t, y, y, context, work) != OK:
        return math.nan
    return work[index]


@njit(cache=True)
def _root(memory, context, index, a, fa, b, fb):
    """Chandrupatla's method: bisection, or inverse quadratic interpolation where that is safe.  Returns the
    end of the final bracket behind the crossing.
    """
    c, fc, x = a, fa, 0.5
    for _ in range(_ROOT_ITERATIONS):
        new = a + x * (b - a)
        f = _event_at(memory, context, index, new)
        if not math.isfinite(f):  # a singular position, perhaps: beside it
            for nearby in (0.4, 0.6, 0.2, 0.8):
                new = a + nearby * (b - a)
                f = _event_at(memory, context, index, new)
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
def find_events(memory, context, counts, found):
    """Look for sign changes over the last step; shortens the step at the first terminal one.  Returns
    (status, terminated).
    """
    count = counts[EVENTS]
    old, new, direction, terminal = (
        part(memory, EVENT_OLD),
        part(memory, EVENT_NEW),
        part(memory, EVENT_DIRECTION),
        part(memory, EVENT_TERMINAL),
    )
    t_old, t, size = memory[T_OLD], memory[T], int(memory[SIZE])
    y = part(memory, Y)
    if call(int(memory[EVENT_KERNEL]), t, y, y, context, new) != OK:
        return False, False
    first, stop = counts[FOUND], math.inf
    way = counts[WAY]
    for i in range(count):
        rising, falling = old[i] < 0.0 and new[i] >= 0.0, old[i] > 0.0 and new[i] <= 0.0
        if (rising and direction[i] >= 0.0) or (falling and direction[i] <= 0.0):
            root = t if new[i] == 0.0 else _root(memory, context, i, t_old, old[i], t, new[i])
            if state_at(memory, context, root, part(memory, Y_EVENT)) != OK:
                return False, False
            row = counts[FOUND]
            found[row, 0] = i
            found[row, 1] = root
            event_state = part(memory, Y_EVENT)
            for j in range(size):
                found[row, 2 + j] = event_state[j]
            counts[FOUND] += 1
            if terminal[i] > 0.0:
                terminal[i] -= 1.0
                if terminal[i] == 0.0:
                    stop = min(stop, way * root)
    for i in range(first + 1, counts[FOUND]):  # by time; few of them
        for j in range(i, first, -1):
            if way * found[j, 1] < way * found[j - 1, 1]:
                for k in range(size + 2):
                    found[j, k], found[j - 1, k] = found[j - 1, k], found[j, k]
    for i in range(count):
        old[i] = new[i]
    if stop == math.inf:
        return True, False
    keep = first
    for row in range(first, counts[FOUND]):
        if way * found[row, 1] <= stop:
            keep = row + 1
            for j in range(size):
                y[j] = found[row, 2 + j]
    counts[FOUND] = keep
    memory[T] = way * stop
    return True, True


@njit(cache=True)
def another_step(counts, steps, rejections, found):
    """Whether there is room and leave for one more step: DONE if so, else why not."""
    room = (
        counts[STEPS] < steps.shape[0]
        and counts[REJECTIONS] < rejections.shape[0]
        and counts[FOUND] + counts[EVENTS] + 2 <= found.shape[0]
    )
    if counts[BUDGET] <= 0 or not room:
        return FULL
    if counts[ACCEPTED] + counts[REJECTED] >= counts[MAX_STEPS]:
        return TOO_MANY_STEPS
    counts[BUDGET] -= 1
    return DONE


@njit(cache=True)
def watch_start(memory, context, x):
    """Begin to watch the rank of the constraints."""
    if memory[WATCH] > 0.0:
        rank.watch_start(part(memory, WATCH), context, memory[T], x)


@njit(cache=True)
def watch(memory, context, counts, found, x1, dx1, x2, dx2):
    """Notice a fall of the rank in the last step, from x1 to x2; for integrators that do not know the pivots."""
    if memory[WATCH] > 0.0:
        counts[FOUND] = rank.watch_point(
            part(memory, WATCH), context, memory[T_OLD], x1, dx1, memory[T], x2, dx2, found, counts[FOUND]
        )


@njit(cache=True)
def target(memory, counts):
    """The time that the next step must not cross: just before the next switch, or the end."""
    if counts[NEXT_SWITCH] < counts[SWITCHING_TIMES]:
        return part(memory, SWITCHES)[2 * counts[NEXT_SWITCH]]
    return memory[T_END]


@njit(cache=True)
def record(memory, context, counts, points, t_eval):
    """Write the points that the last step owes; FULL if the buffer is full before all are written."""
    size, way, t = int(memory[SIZE]), counts[WAY], memory[T]
    y = part(memory, Y)
    while counts[NEXT_EVAL] < counts[EVALS] and way * t_eval[counts[NEXT_EVAL]] <= way * t:
        if counts[POINTS] == points.shape[0]:
            return FULL
        time = t_eval[counts[NEXT_EVAL]]
        if time == t and memory[ON_MANIFOLD] > 0.0:
            store(points, counts[POINTS], t, y, size)
        else:
            state = part(memory, Y_EVENT)
            if state_at(memory, context, time, state) != OK:
                memory[T_FAILED] = time
                return USER_FUNCTION_FAILED
            store(points, counts[POINTS], time, state, size)
        counts[POINTS] += 1
        counts[NEXT_EVAL] += 1
    if counts[KEEP_POINTS]:
        if counts[POINTS] == points.shape[0]:
            return FULL
        store(points, counts[POINTS], t, y, size)
        counts[POINTS] += 1
    return DONE


@njit(cache=True)
def at_switch(memory, counts):
    """Whether the run stands just before the next switch."""
    return counts[NEXT_SWITCH] < counts[SWITCHING_TIMES] and memory[T] == target(memory, counts)


@njit(cache=True)
def pass_switch(memory, counts):
    """Move on to the far side of a switch."""
    memory[T] = part(memory, SWITCHES)[2 * counts[NEXT_SWITCH] + 1]
    counts[NEXT_SWITCH] += 1


@njit(cache=True)
def cross_switch(memory, counts, points):
    """Step over a switch; the far side is a point of its own.  FULL if there is no room for it."""
    if counts[KEEP_POINTS] and counts[POINTS] == points.shape[0]:
        return FULL
    pass_switch(memory, counts)
    if counts[KEEP_POINTS]:
        store(points, counts[POINTS], memory[T], part(memory, Y), int(memory[SIZE]))
        counts[POINTS] += 1
    return DONE


@njit(cache=True)
def tell(memory, context, counts, points, t_eval):
    """After a step: write its points.  Returns (whether the loop is to be left, with which code)."""
    code = record(memory, context, counts, points, t_eval)
    if code != DONE:
        return True, code
    if counts[STATE] == ENDING:
        return True, TERMINATED
    return memory[T] == memory[T_END], DONE


@njit(cache=True)
def arrive(memory, counts, t, h, constant):
    """The time at the end of a step: exactly the target or, at a constant step, a multiple of it, where that
    is meant.
    """
    aim = target(memory, counts)
    if abs(h) == abs(aim - t):
        memory[T] = aim
    elif constant > 0.0 and counts[SWITCHING_TIMES] == 0:
        memory[T] = memory[T_START] + counts[WAY] * constant * counts[ACCEPTED]
    else:
        memory[T] = t + h


@njit(cache=True)
def look_for_events(memory, context, counts, found):
    """After an accepted step: events in it; DONE, or USER_FUNCTION_FAILED."""
    counts[STATE] = RECORDING
    if counts[EVENTS] > 0:
        fine, terminated = find_events(memory, context, counts, found)
        if not fine:
            return USER_FUNCTION_FAILED
        if terminated:
            counts[STATE] = ENDING
    return DONE

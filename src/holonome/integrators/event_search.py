"""Zeros of events inside a step.

Events and their rates are known at both ends of a step.  In between, the family's *preview*, a cheap
approximation of the state, shows at a few nodes what to expect:

- nothing: no change of sign, and no extremum that comes close to zero;
- one zero between the ends: it is located with the interpolant, which is accurate;
- anything else: the nodes are evaluated again, with the interpolant.  A change of sign between two of them is
  a zero.  Where the rate changes its sign so that the event may reach zero, the extremum is located first:
  there are two zeros beside it if it lies on the other side, and it is one itself if it is zero to rounding.

The rate of a traced event of t, q, v, s, w is exact, e_t + e_q v + e_v a + e_s s′.  Of other events it is
that of the polynomial through the nodes.
"""

import math

from numba import njit

from holonome.machine.calls import call, call_either, shift
from holonome.machine.context import OK, RAISED, SINGULAR

NODES = 3
"""Inside a step."""

MOST_IN_STEP = 2 * (NODES + 1)
"""Zeros of one event."""

NOT_A_NUMBER = -1
"""Beside the status of a kernel: an event is NaN."""

_NOTHING, _ONE, _MORE = range(3)
_LAST = NODES + 1
_ROOT_TOLERANCE, _ROOT_ITERATIONS = 1e-13, 100
_CLOSE = 0.1
"""An extremum is located where it may come this close to zero, relative to the change over the step."""
_ROUNDING = 1e-12
"""What counts as zero where an event only touches it, relative to its values in the step."""
_JUST_LOCATED = 1e-10
"""What is left of an event where it was located and another run begins, relative to what it changes in a run.
"""
_APART = 1e-4
"""Distance of the points of a difference quotient, relative to that of two nodes."""


@njit(cache=True)
def state_at(run, memory, context, t, out):
    """The solution inside the last step, on the manifold."""
    return call(run.interpolant, t, out, memory, context, out)


@njit(cache=True)
def _either(kernel, dense, t, y, context, out, size):
    """Call a kernel, or its dense fallback; NaN where both find the matrix singular."""
    status = call_either(kernel, dense, t, y, y, context, out)
    if status == SINGULAR:
        for i in range(size):
            out[i] = math.nan
        return OK
    return status


@njit(cache=True)
def _evaluate(run, context, t, y, out):
    """All events at a state, then their rates."""
    z, state, status = run.event_z, run.event_state, OK
    if run.event_rate != 0:
        status = _either(run.event_rate, run.event_dense_rate, t, y, context, z, state)
    if run.event_multipliers != 0:
        lam, rows = shift(z, state), run.event_rows
        if status < RAISED:
            status = _either(run.event_multipliers, run.event_dense_multipliers, t, y, context, lam, rows)
    else:
        for i in range(state, run.size):
            z[i] = y[i]
    return call(run.event_kernel, t, y, z, context, out) if status < RAISED else status


@njit(cache=True)
def _require_numbers(run, t, values):
    for i in range(run.events):
        if values[i] != values[i]:
            run.event_failed = 1 + i
            run.t_failed = t
            return NOT_A_NUMBER
    return OK


@njit(cache=True)
def start(run, context):
    """Values and rates at the start; OK, a status, or NOT_A_NUMBER."""
    status = _evaluate(run, context, run.t_start, run.y, run.event_old)
    for i in range(run.events):
        if run.event_exact[i] == 0.0:
            run.event_old[run.events + i] = math.nan
        reach = abs(run.event_old[run.events + i]) * run.event_fired[i]
        if run.event_fired[i] > 0.0 and not abs(run.event_old[i]) > _JUST_LOCATED * reach:
            run.event_old[i] = 0.0
    return _require_numbers(run, run.t_start, run.event_old) if status == OK else status


@njit(cache=True)
def renew_rates(run, context):
    """Evaluate the rates again after a switch; the values before it stay, as they may jump across zero."""
    status = _evaluate(run, context, run.t, run.y, run.event_work)
    for i in range(run.events, 2 * run.events):
        exact = status == OK and run.event_exact[i - run.events] != 0.0
        run.event_old[i] = run.event_work[i] if exact else math.nan


@njit(cache=True)
def _node(run, k):
    """Time of a node; those of number 0 and NODES + 1 are the ends of the step."""
    return run.t if k == _LAST else run.t_old + (run.t - run.t_old) * k / _LAST


@njit(cache=True)
def _preview(run, memory, context):
    """Values and rates at the nodes, for the approximate state; NaN where there are none."""
    for k in range(NODES):
        t, out = _node(run, 1 + k), shift(run.event_nodes, k * (2 * run.events + 1))
        status = call(run.preview, t, run.y_event, memory, context, run.y_event)
        if status == OK:
            status = _evaluate(run, context, t, run.y_event, out)
        if status != OK:
            for i in range(run.events):
                out[i] = math.nan


@njit(cache=True)
def _look_inside(run, memory, context):
    """Values and rates at the nodes, by the interpolant; NaN where the state is not available."""
    for k in range(NODES):
        t, out = _node(run, 1 + k), shift(run.event_nodes, k * (2 * run.events + 1))
        if state_at(run, memory, context, t, run.y_event) == OK:
            status = _evaluate(run, context, t, run.y_event, out)
            if status == OK:
                status = _require_numbers(run, t, out)
            if status != OK:
                return status
        else:
            for i in range(run.events):
                out[i] = math.nan
    return OK


@njit(cache=True)
def _fill_line(run, i):
    """Values of one event at the ends and the nodes, followed by its rates per interval between nodes."""
    e, old, new, nodes, events = run.event_line, run.event_old, run.event_new, run.event_nodes, run.events
    r, unit, stride = shift(e, _LAST + 1), (run.t - run.t_old) / _LAST, 2 * run.events + 1
    e[0] = old[i]
    e[_LAST] = new[i]
    r[0] = old[events + i] * unit
    for k in range(NODES):
        e[1 + k] = nodes[k * stride + i]
        r[1 + k] = nodes[k * stride + events + i] * unit
    r[_LAST] = new[events + i] * unit
    if run.event_exact[i] == 0.0:  # of the polynomial through the five values
        if r[0] != r[0]:
            r[0] = (-25 * e[0] + 48 * e[1] - 36 * e[2] + 16 * e[3] - 3 * e[4]) / 12
        r[1] = (-3 * e[0] - 10 * e[1] + 18 * e[2] - 6 * e[3] + e[4]) / 12
        r[2] = (e[0] - 8 * e[1] + 8 * e[3] - e[4]) / 12
        r[3] = (-e[0] + 6 * e[1] - 18 * e[2] + 10 * e[3] + 3 * e[4]) / 12
        r[4] = (3 * e[0] - 16 * e[1] + 36 * e[2] - 48 * e[3] + 25 * e[4]) / 12
        new[events + i] = r[4] / unit


@njit(cache=True)
def _side(e, r, k):
    """Sign of an event at a node, or just after it."""
    for value in (e[k], r[k], e[k + 1]):
        if value != 0.0:
            return math.copysign(1.0, value)
    return 0.0


@njit(cache=True)
def _dips(e, r, k, side):
    """Whether it may reach zero and return between two nodes: it goes there at the first, comes back at the
    second, and the tangents there meet close to zero or beyond.
    """
    down, up = side * r[k], side * r[k + 1]
    if not (down < 0.0 < up):
        return False
    low, high = e[0], e[0]
    for j in range(1, _LAST + 1):
        low, high = min(low, e[j]), max(high, e[j])
    begin, end = side * e[k], side * e[k + 1]
    x = min(1.0, max(0.0, (begin - end + up) / (up - down)))
    return begin + down * x <= _CLOSE * (high - low)


@njit(cache=True)
def _pattern(e, r):
    """What the values at the nodes imply."""
    zeros = 0
    for k in range(_LAST):
        if e[k + 1] != e[k + 1]:
            return _MORE
        side = _side(e, r, k)
        if side * e[k + 1] < 0.0 or (e[k + 1] == 0.0 and side != 0.0):
            zeros += 1
        elif _dips(e, r, k, side):
            return _MORE
    if zeros == 0:
        return _NOTHING
    return _ONE if zeros == 1 and _side(e, r, 0) * e[_LAST] <= 0.0 else _MORE


@njit(cache=True)
def _value_at(run, memory, context, i, t):
    """An event inside the last step, by the interpolant; the values of all are left in ``event_work``."""
    if state_at(run, memory, context, t, run.y_event) != OK:
        return math.nan
    if _evaluate(run, context, t, run.y_event, run.event_work) != OK:
        return math.nan
    value = run.event_work[i]
    if value != value:
        run.event_failed = 1 + i
        run.t_failed = t
    return value


@njit(cache=True, error_model="numpy")
def _rate_at(run, memory, context, i, t):
    """Its rate per interval between nodes."""
    unit = (run.t - run.t_old) / _LAST
    if run.event_exact[i] != 0.0:
        _value_at(run, memory, context, i, t)
        return run.event_work[run.events + i] * unit
    begin, end, apart = t - _APART * unit, t + _APART * unit, unit / abs(unit)
    if apart * begin < apart * run.t_old:
        begin = run.t_old
    if apart * end > apart * run.t:
        end = run.t
    change = _value_at(run, memory, context, i, end) - _value_at(run, memory, context, i, begin)
    return change / (end - begin) * unit


@njit(cache=True)
def _measured(run, memory, context, i, rate, t):
    """An event, or its rate."""
    return _rate_at(run, memory, context, i, t) if rate else _value_at(run, memory, context, i, t)


@njit(cache=True)
def _root(run, memory, context, i, rate, a, fa, b, fb):
    """Chandrupatla's method for a zero of an event or of its rate: bisection, or inverse quadratic
    interpolation where that is safe.  NaN if the event is NaN there.
    """
    c, fc, x = a, fa, 0.5
    for _ in range(_ROOT_ITERATIONS):
        new = a + x * (b - a)
        f = _measured(run, memory, context, i, rate, new)
        if not math.isfinite(f):  # perhaps a singular position: try beside it
            for nearby in (0.4, 0.6, 0.2, 0.8):
                new = a + nearby * (b - a)
                f = _measured(run, memory, context, i, rate, new)
                if math.isfinite(f):
                    run.event_failed = 0
                    break
        if not math.isfinite(f):
            return math.nan if run.event_failed else b
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
def _note(run, memory, context, found, i, time, direction):
    """A row of ``found`` for a zero crossed in the wanted direction: 1 rising, −1 falling, 0 touched."""
    wanted = run.event_direction[i]
    if time != time:
        return NOT_A_NUMBER
    if wanted != 0.0 and wanted * direction <= 0.0:
        return OK
    status = state_at(run, memory, context, time, run.y_event)
    if status != OK:
        return max(status, RAISED)
    row = run.found
    found[row, 0] = i
    found[row, 1] = time
    for j in range(run.size):
        found[row, 2 + j] = run.y_event[j]
    run.found += 1
    if run.event_terminal[i] > 0.0:
        run.event_terminal[i] -= 1.0
        if run.event_terminal[i] == 0.0:
            run.event_stop = min(run.event_stop, run.direction * time)
    return OK


@njit(cache=True)
def _cross(run, memory, context, found, i, a, ea, b, eb, side):
    """The zero between two times, at the first of which the event is on this side."""
    if ea == 0.0:  # the zero it comes from, not the one that is sought
        ea = side * 1e-300
    root = b if eb == 0.0 else _root(run, memory, context, i, False, a, ea, b, eb)
    return _note(run, memory, context, found, i, root, -side)


@njit(cache=True)
def _dip(run, memory, context, found, i, k, side):
    """Two zeros beside an extremum between two nodes, one that is touched there, or none."""
    e, a, b = run.event_line, _node(run, k), _node(run, k + 1)
    r = shift(e, _LAST + 1)
    time = _root(run, memory, context, i, True, a, r[k], b, r[k + 1])
    value = _value_at(run, memory, context, i, time)
    if run.event_failed:
        return NOT_A_NUMBER
    largest = 0.0
    for j in range(_LAST + 1):
        largest = max(largest, abs(e[j]))
    if abs(value) <= _ROUNDING * largest:
        return _note(run, memory, context, found, i, time, 0.0)
    if not side * value < 0.0:
        return OK
    status = _cross(run, memory, context, found, i, a, e[k], time, value, side)
    if status != OK:
        return status
    return _cross(run, memory, context, found, i, time, value, b, e[k + 1], -side)


@njit(cache=True)
def _walk(run, memory, context, found, i):
    """All zeros of an event, from one node to the next; nodes without a value are passed over."""
    e, k, status = run.event_line, 0, OK
    r = shift(e, _LAST + 1)
    while k < _LAST and status == OK:
        side, following = _side(e, r, k), k + 1
        while e[following] != e[following]:
            following += 1
        if side * e[following] < 0.0 or (e[following] == 0.0 and side != 0.0):
            a, b = _node(run, k), _node(run, following)
            status = _cross(run, memory, context, found, i, a, e[k], b, e[following], side)
        elif following == k + 1 and _dips(e, r, k, side):
            status = _dip(run, memory, context, found, i, k, side)
        k = following
    return status


@njit(cache=True)
def _sort_by_time(found, first, end, direction):
    """Insertion sort; there are few of them."""
    for i in range(first + 1, end):
        for j in range(i, first, -1):
            if direction * found[j, 1] < direction * found[j - 1, 1]:
                for k in range(found.shape[1]):
                    found[j, k], found[j - 1, k] = found[j - 1, k], found[j, k]


@njit(cache=True)
def _search_all(run, memory, context, found):
    e, r, looked, status = run.event_line, shift(run.event_line, _LAST + 1), False, OK
    for i in range(run.events):
        _fill_line(run, i)
        pattern = _pattern(e, r)
        if pattern == _MORE and not looked:
            status = _look_inside(run, memory, context)
            if status != OK:
                return status
            looked = True
            _fill_line(run, i)
            pattern = _pattern(e, r)
        if pattern == _ONE:
            side = _side(e, r, 0)
            status = _cross(run, memory, context, found, i, run.t_old, e[0], run.t, e[_LAST], side)
        elif pattern == _MORE:
            status = _walk(run, memory, context, found, i)
        if status != OK:
            return status
    return OK


@njit(cache=True)
def search(run, memory, context, found):
    """Rows of ``found`` for the zeros in the last step, in the order of time, and in ``event_stop`` where a
    terminal one ends the run; OK, a status, or NOT_A_NUMBER.
    """
    run.event_failed = 0
    run.event_stop = math.inf
    first = run.found
    status = _evaluate(run, context, run.t, run.y, run.event_new)
    if status == OK:
        status = _require_numbers(run, run.t, run.event_new)
    if status == OK:
        _preview(run, memory, context)
        status = _search_all(run, memory, context, found)
    _sort_by_time(found, first, run.found, run.direction)
    for i in range(2 * run.events):
        run.event_old[i] = run.event_new[i]
    return status

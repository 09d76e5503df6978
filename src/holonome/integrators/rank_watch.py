"""Whether the rank of the constraints falls during a run, checked after every step.

The integrators supply a few numbers that vanish where the rank falls: the least pivot of S = C M⁻¹Cᵀ
relative to its diagonal entry, the squared sine of an angle between rows, and these diagonal entries, squared
lengths.  r is the root of the least of them, each relative to its largest value so far.  At a singular
position r falls to zero like |t − t*| and rises again, usually between two points.  Where r, continued
straight on, would fall to nothing before the next point, or where it changes much from point to point, it is
evaluated inside the step, along the cubic Hermite interpolant of x, and its least value decides; only then is
a kernel called.  Beside rows that are redundant all the time, the pivot is the last of the usual rank, which
is that of the start.
"""

import math
from collections import namedtuple
from typing import Any

from numba import njit

from holonome.machine.calls import call, shift
from holonome.machine.context import OK, SINGULAR, named_context
from holonome.machine.layout import Layout, Real, Vector, Whole


class RankWatch(Layout):
    """What the watch knows; there are ``size`` positions and ``count`` values."""

    kernel: Whole  # address
    dense: Whole  # of the kernel for any rank; 0: there is none
    offset: Whole  # where in its result the values stand
    size: Whole
    count: Whole
    step: Real  # size of the last step
    before: Real  # r before it
    behind: Real  # r after it
    armed: Whole  # whether r was large since the last fall
    limit: Real  # the r below which the rank has fallen, as far as the interpolant can tell
    lowest: Real  # its least value in the last fall
    last: Real  # the time of that
    inverse: Vector  # inverses of the largest values so far
    x: Vector  # a point inside a step
    out: Vector  # result of the kernel


named = RankWatch.named()

SINGULAR_BELOW = 1e-3
"""The r below which the rank has fallen, as far as the interpolant can tell."""

_GOLDEN = (math.sqrt(5) - 1) / 2
_MUCH = 0.2
_DEEP = 0.35


def fields(kernel: int, dense: int, offset: int, size: int, count: int, state: int) -> dict[str, Any]:
    """What the memory of a watch is made with, for kernels that take a state of this size; kernel 0 watches
    nothing.
    """
    return {
        "kernel": kernel,
        "dense": dense,
        "offset": offset,
        "size": size,
        "count": count,
        "limit": SINGULAR_BELOW,
        "lowest": math.inf,
        "last": -math.inf,
        "inverse": [math.inf] * count,
        "x": max(2 * size, state),
        "out": offset + count + 1,
    }


Step = namedtuple("Step", "t1 x1 dx1 t2 x2 dx2")
"""A step from t1 to t2: positions and their rates at both ends."""


@njit(cache=True)
def _least_value(watch, values):
    """The least of the values, each relative to its largest so far.

    It is zero if the first value is negative, which says that elimination failed.
    """
    inverse, least = watch.inverse, 1.0
    for i in range(watch.count):
        relative = values[i] * inverse[i]
        if relative > 1.0:
            inverse[i] = 1.0 / values[i]
        least = min(least, relative)
    return max(least, 0.0)


@njit(cache=True)
def _values(watch, context, t, x):
    """The values at a point: whether they are known, and where they stand."""
    status = call(watch.kernel, t, x, x, context, watch.out)
    if status == SINGULAR and watch.dense > 0:
        status = call(watch.dense, t, x, x, context, watch.out)
    values = shift(watch.out, watch.offset)
    if status == SINGULAR:
        values[0] = -1.0
    return status in (OK, SINGULAR), values


@njit(cache=True)
def _r(watch, context, t, step):
    """r at a time inside a step."""
    n, h = watch.size, step.t2 - step.t1
    x, s = watch.x, (t - step.t1) / h
    a = (1 + 2 * s) * (1 - s) ** 2
    b = s * (1 - s) ** 2 * h
    c = s * s * (3 - 2 * s)
    d = s * s * (s - 1) * h
    for i in range(n):
        x[i] = a * step.x1[i] + b * step.dx1[i] + c * step.x2[i] + d * step.dx2[i]
        x[n + i] = 0.0
    known, values = _values(watch, context, t, x)
    return math.sqrt(_least_value(watch, values)) if known else math.inf


@njit(cache=True)
def _golden_section(watch, context, step):
    """Where r is least inside a step, and its value there."""
    a, b = step.t1, step.t2
    c, d = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    at_c, at_d = _r(watch, context, c, step), _r(watch, context, d, step)
    for _ in range(40):
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - _GOLDEN * (b - a)
            at_c = _r(watch, context, c, step)
        else:
            a, c, at_c = c, d, at_d
            d = a + _GOLDEN * (b - a)
            at_d = _r(watch, context, d, step)
    return 0.5 * (a + b), min(at_c, at_d)


@njit(cache=True)
def _search(watch, context, step, found, row):
    """Look for a singular position inside a step; returns the number of rows used.

    During a slow passage the least r counts.
    """
    h = step.t2 - step.t1
    least, largest = min(watch.before, watch.behind), max(watch.before, watch.behind)
    middle = _r(watch, context, 0.5 * (step.t1 + step.t2), step)
    if least > 0.25 * largest and middle > 0.425 * (least + largest):  # no dip
        return row
    for part in (0.25, 0.75):
        least = min(least, middle, _r(watch, context, step.t1 + part * h, step))
    if least > _DEEP * largest:
        return row
    t, low = _golden_section(watch, context, step)
    if not low < watch.limit:
        return row
    if watch.armed and abs(t - watch.last) > 0.02 * abs(h):
        row += 1
    elif row == 0 or found[row - 1, 0] >= 0.0 or not low < watch.lowest:  # the same passage
        return row
    found[row - 1, 0] = -1.0
    found[row - 1, 1] = t
    watch.armed = 0
    watch.lowest = low
    watch.last = t
    return row


@njit(cache=True)
def watch_step(watch, context, step, values, found, row):
    """After a step: notice a fall of the rank.

    Rows (−1, t*) are added to ``found``; returns how many rows that has.
    """
    r, r1, before, h = (
        math.sqrt(_least_value(watch, values)),
        watch.behind,
        watch.before,
        abs(step.t2 - step.t1),
    )
    falls = (r1 - before) * h < (0.3 * r - 0.9 * r1) * watch.step
    watch.before = r1
    watch.behind = r
    watch.step = h
    if falls or abs(r - r1) > _MUCH or abs(r1 - before) > _MUCH or r < SINGULAR_BELOW or r1 < SINGULAR_BELOW:
        row = _search(watch, context, step, found, row)
    if r > 10.0 * SINGULAR_BELOW:
        watch.armed = 1
    return row


@njit(cache=True)
def watch_point(watch, context, step, found, row):
    """The same for integrators that have not computed the values."""
    known, values = _values(watch, context, step.t2, step.x2)
    return watch_step(watch, context, step, values, found, row) if known else row


@njit(cache=True)
def start(watch, context, t, x):
    """Evaluate the values at the start, and again after a switch."""
    known, values = _values(watch, context, t, x)
    if watch.dense > 0 and watch.inverse[0] == math.inf and values[0] == 0.0:
        c = named_context(context)
        c.usual_rank = c.rank
        known, values = _values(watch, context, t, x)
    r = math.sqrt(_least_value(watch, values)) if known else 0.0
    watch.before = r
    watch.behind = r
    watch.armed = r > 10.0 * SINGULAR_BELOW
    watch.step = 0.0

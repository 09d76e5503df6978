"""Whether the rank of the constraints falls on the way, watched after every step.

The integrators hand over a few numbers that vanish where the rank falls: the least pivot of S = C M⁻¹Cᵀ
relative to its diagonal entry, the squared sine of an angle between rows, and these diagonal entries, squared
lengths.  r is the root of the least of them, each relative to its largest value so far.  At a singular
position r falls to zero like |t − t*| and rises again, usually between two points.  Where r, continued
straight on, would fall to nothing before the next point, or where it changes much from point to point, it is
evaluated inside the step, along the cubic Hermite interpolant of x, and its least value decides; only then is
a kernel called.

    memory: numbers as below, then the inverses of the largest values, a point inside a step, and the result
    of the kernel there
"""

import math

import numpy as np
from numba import njit

from holonome.machine.calls import call, shift
from holonome.machine.context import OK, SINGULAR

(KERNEL, OFFSET, SIZE, VALUES, STEP, R1, R2, ARMED, LOWEST, LAST, INVERSE) = range(11)
"""The kernel, and where in its result the values stand; numbers of positions and of values; the last step and
r before and behind it; whether r was large since the last fall, its least value then and its time; arrays.
"""

SINGULAR_BELOW = 1e-3
"""R below which the rank has fallen, as far as the interpolant can tell."""

_GOLDEN, _MUCH, _DEEP = (math.sqrt(5) - 1) / 2, 0.2, 0.35


def own_memory(kernel: int, offset: int, size: int, values: int) -> np.ndarray:
    """Memory of the watch."""
    memory = np.zeros(INVERSE + values + 2 * size + offset + values + 1)
    memory[[KERNEL, OFFSET, SIZE, VALUES, LOWEST, LAST]] = kernel, offset, size, values, math.inf, -math.inf
    memory[INVERSE : INVERSE + values] = math.inf
    return memory


@njit(cache=True)
def _least_value(watch, values):
    """The least of the values, each relative to its largest so far; zero if the first one is negative, which
    says that elimination failed.
    """
    inverse, least = shift(watch, INVERSE), 1.0
    for i in range(int(watch[VALUES])):
        relative = values[i] * inverse[i]
        if relative > 1.0:
            inverse[i] = 1.0 / values[i]
        least = min(least, relative)
    return max(least, 0.0)


@njit(cache=True)
def _values(watch, context, t, x):
    """The values at a point: whether they are known, and where they stand."""
    out = shift(watch, INVERSE + int(watch[VALUES]) + 2 * int(watch[SIZE]))
    status, values = call(int(watch[KERNEL]), t, x, x, context, out), shift(out, int(watch[OFFSET]))
    if status == SINGULAR:
        values[0] = -1.0
    return status in (OK, SINGULAR), values


@njit(cache=True)
def _r(watch, context, t, t1, x1, dx1, t2, x2, dx2):
    """R at a time inside a step from t1, x1 to t2, x2."""
    n, h = int(watch[SIZE]), t2 - t1
    x, s = shift(watch, INVERSE + int(watch[VALUES])), (t - t1) / h
    a, b, c, d = (1 + 2 * s) * (1 - s) ** 2, s * (1 - s) ** 2 * h, s * s * (3 - 2 * s), s * s * (s - 1) * h
    for i in range(n):
        x[i], x[n + i] = a * x1[i] + b * dx1[i] + c * x2[i] + d * dx2[i], 0.0
    known, values = _values(watch, context, t, x)
    return math.sqrt(_least_value(watch, values)) if known else math.inf


@njit(cache=True)
def _search(watch, context, t1, x1, dx1, t2, x2, dx2, found, row):
    """Look for a singular position inside a step, by golden section; returns the number of rows used.  Of a
    slow passage the least r counts.
    """
    a, b, least, largest = t1, t2, min(watch[R1], watch[R2]), max(watch[R1], watch[R2])
    middle = _r(watch, context, 0.5 * (t1 + t2), t1, x1, dx1, t2, x2, dx2)
    if least > 0.25 * largest and middle > 0.425 * (least + largest):  # no dip
        return row
    for part in (0.25, 0.75):
        least = min(least, middle, _r(watch, context, t1 + part * (t2 - t1), t1, x1, dx1, t2, x2, dx2))
    if least > _DEEP * largest:
        return row
    c, d = b - _GOLDEN * (b - a), a + _GOLDEN * (b - a)
    at_c, at_d = (
        _r(watch, context, c, t1, x1, dx1, t2, x2, dx2),
        _r(watch, context, d, t1, x1, dx1, t2, x2, dx2),
    )
    for _ in range(40):
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - _GOLDEN * (b - a)
            at_c = _r(watch, context, c, t1, x1, dx1, t2, x2, dx2)
        else:
            a, c, at_c = c, d, at_d
            d = a + _GOLDEN * (b - a)
            at_d = _r(watch, context, d, t1, x1, dx1, t2, x2, dx2)
    t, low = 0.5 * (a + b), min(at_c, at_d)
    if not low < SINGULAR_BELOW:
        return row
    if watch[ARMED] > 0.0 and abs(t - watch[LAST]) > 0.02 * abs(t2 - t1):
        row += 1
    elif row == 0 or found[row - 1, 0] >= 0.0 or not low < watch[LOWEST]:  # the same passage
        return row
    found[row - 1, 0], found[row - 1, 1] = -1.0, t
    watch[ARMED], watch[LOWEST], watch[LAST] = 0.0, low, t
    return row


@njit(cache=True)
def watch_step(watch, context, t1, x1, dx1, t2, x2, dx2, values, found, row):
    """After a step from t1, x1 to t2, x2: notice a fall of the rank.  Rows (−1, t*) are added to ``found``;
    returns how many rows that has.
    """
    r, r1, before, h = math.sqrt(_least_value(watch, values)), watch[R2], watch[R1], abs(t2 - t1)
    falls = (r1 - before) * h < (0.3 * r - 0.9 * r1) * watch[STEP]
    watch[R1], watch[R2], watch[STEP] = r1, r, h
    if falls or abs(r - r1) > _MUCH or abs(r1 - before) > _MUCH or r < SINGULAR_BELOW or r1 < SINGULAR_BELOW:
        row = _search(watch, context, t1, x1, dx1, t2, x2, dx2, found, row)
    if r > 10.0 * SINGULAR_BELOW:
        watch[ARMED] = 1.0
    return row


@njit(cache=True)
def watch_point(watch, context, t1, x1, dx1, t2, x2, dx2, found, row):
    """The same for integrators that do not have the values at hand."""
    known, values = _values(watch, context, t2, x2)
    return watch_step(watch, context, t1, x1, dx1, t2, x2, dx2, values, found, row) if known else row


@njit(cache=True)
def watch_start(watch, context, t, x):
    """At the start, and behind a switch."""
    known, values = _values(watch, context, t, x)
    watch[R1] = watch[R2] = math.sqrt(_least_value(watch, values)) if known else 0.0
    watch[ARMED], watch[STEP] = watch[R2] > 10.0 * SINGULAR_BELOW, 0.0

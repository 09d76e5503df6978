"""What contacts do at an interruption: impacts, and which of them are open, closed, stick or slide then.

All of it is one compiled function, as there may be a million impacts in a run.
"""

import math
from collections import namedtuple

import numpy as np
from numba import njit

from holonome.dynamics.complementarity import OPEN as SOLVED_OPEN
from holonome.dynamics.complementarity import SLIDE as SOLVED_SLIDE
from holonome.dynamics.complementarity import solve_contacts
from holonome.dynamics.contacts import constrained
from holonome.dynamics.dense import compiled_sizes
from holonome.dynamics.impact import block, impulses, rows_of
from holonome.machine.calls import call, pointer
from holonome.machine.context import OK

OPEN, CLOSED, STICK, SLIDE = range(4)
"""What a contact does."""

NOTHING, CLOSES, RELEASES, BREAKS, STOPS = range(5)
"""What has interrupted a run at a contact."""

DONE, UNUSABLE, PENETRATED, NOT_FINITE, NO_SOLUTION = range(5)
"""How an update ends."""

GAP, _TOUCHING, _PENETRATING = 1e-13, 10.0, 1e-6
"""The gap at which a contact closes, below zero by this part of the positions; how many of these count as
touching; and the part of the positions from which on a start is refused."""

_DEEP = 1.01
"""How many of these below zero an open contact may be."""

_MOVED = 0.1
"""The part of the way at full speed between two interruptions that positions are taken to have moved at
least, where all of them are zero at both ends.
"""

_SPEED, SLIP, _LEFT_OVER = 1e-10, 1e-8, 1e-4
"""Speeds, as parts of the largest, that count as none, as no slip in two directions, and that such a slip may
have across where it stops.
"""

_AHEAD = 1.1
"""Scales grow by this factor at least, so that a mode is not another one after each impact."""

_BOUNCE = 1e-13
"""Bounces that rise no higher, as a part of the positions, are over."""

_YIELDING = 1 - 1e-7
"""Friction that was exhausted is taken as a little less, to learn in which direction a contact slides."""

_DEPENDENT = 1e-12

_Here = namedtuple("_Here", "gap u gamma J e mu static begins")
"""Contacts at a state, as `holonome.dynamics.contacts.Contacts`."""

_Answer = namedtuple("_Answer", "A b mobility M")
"""The accelerations of contacts, u′ = A x + b, and Δv = ``mobility`` x, by forces x along their rows."""


@njit(cache=True)
def grow(t, y, n, scales):
    """Scales: the largest position and velocity so far, the time, and the velocity there."""
    now = size = 0.0
    for i in range(n):
        size, now = max(size, abs(y[i])), max(now, abs(y[n + i]))
    moved = _MOVED * max(scales[3], now) * (t - scales[2])
    if max(moved, size) > scales[0]:
        scales[0] = _AHEAD * max(moved, size)
    if now > scales[1]:
        scales[1] = _AHEAD * now
    scales[2], scales[3] = t, now


@njit(cache=True)
def slow(scales, part):
    """A part of the largest speed."""
    return max(part * scales[1], 1e-290)


@njit(cache=True)
def _look(kernel, t, y, context, n, begins):
    """The contacts at a state, and DONE, or UNUSABLE."""
    count, rows = begins.size - 1, begins[-1]
    out = np.zeros(4 * count + 2 * rows + rows * n + 1)
    status = call(kernel, t, pointer(y), pointer(y), pointer(context), pointer(out))
    first, law = count + 2 * rows, count + 2 * rows + rows * n
    J, total = out[first:law].reshape((rows, n)), np.sum(out[:law])
    e, mu, static = out[law : law + count], out[law + count : law + 2 * count], out[law + 2 * count : -1]
    here = _Here(out[:count], out[count : count + rows], out[count + rows : first], J, e, mu, static, begins)
    usable = status == OK and total - total == 0.0
    for i in range(count):
        usable = usable and 0.0 <= e[i] <= 1.0 and 0.0 <= mu[i] <= static[i]
    return here, DONE if usable else UNUSABLE


@njit(cache=True)
def _answer(pieces, t, y, context, sizes, here):
    """How contacts answer to forces, and DONE, or NOT_FINITE."""
    n, m, mg, states = sizes
    at_M, at_C, at_D, at_f, at_gamma, at_g, _, _, end = compiled_sizes(n, m, mg, states)
    out = np.zeros(end + 1)
    status = call(pieces, t, pointer(y), pointer(out), pointer(context), pointer(out))
    total = np.sum(out)
    M, C = out[at_M:at_C].reshape((n, n)), out[at_C:at_D].reshape((m, n))
    if status != OK or total - total != 0.0:
        return _Answer(M, out, M, M), NOT_FINITE
    forces = np.empty((n, 1 + here.u.size))
    forces[:, 0], forces[:, 1:] = out[at_f:at_gamma], here.J.T
    found = constrained(M, C, forces, -out[at_gamma:at_g])
    mobility = np.ascontiguousarray(found[:, 1:])
    A, b = here.J @ mobility, here.J @ np.ascontiguousarray(found[:, 0]) + here.gamma
    return _Answer((A + A.T) / 2, b, mobility, M), DONE


@njit(cache=True)
def penetrated(gap, scales):
    """The number of the contact that is penetrated; −1 if none is."""
    worst = int(np.argmin(gap))
    return worst if gap[worst] < -max(_PENETRATING * scales[0], 1e-300) else -1


@njit(cache=True)
def _touching(here, t, fired, scales):
    """Those that have just closed, and those whose gaps are rounding, also of the time at which these
    closed.
    """
    near = _TOUCHING * (GAP * scales[0] + np.spacing(abs(t)) * scales[1])
    return (here.gap <= near) | (fired != NOTHING)


@njit(cache=True)
def _pushed(A, rows, change):
    """Impulses that change these velocities, or gaps, so much."""
    return np.linalg.lstsq(block(A, rows), change, _DEPENDENT)[0]


@njit(cache=True)
def _impact(y, n, here, answer, touching, poisson, scales, record):
    """Let y be the state after an impact, noted in ``record``.  Contacts that would rise too little to be
    seen stay closed.
    """
    begins, u, x, rows = here.begins, here.u.copy(), np.zeros(here.u.size), here.u.size
    if not impulses(answer.A, u, begins, touching, here.e, here.mu, poisson, x):
        return NO_SOLUTION
    low, again = np.zeros(begins.size - 1, dtype=np.bool_), False
    for i in np.flatnonzero(touching):
        falling, rate = -answer.b[begins[i]], u[begins[i]]
        rise = rate**2 / (2 * max(falling, 1e-300)) if falling > 0 else math.inf
        low[i] = rate <= slow(scales, _SPEED) or rise <= _BOUNCE * scales[0]
        again = again or (low[i] and rate > 0)
    if again:
        still = _rows_at_rest(here, answer, u, np.flatnonzero(low), scales)
        x[still] += _pushed(answer.A, still, -u[still])
        u = here.u + answer.A @ x
    change, lost = answer.mobility @ x, 0.0
    for i in range(n):
        for j in range(n):
            lost -= change[i] * answer.M[i, j] * (y[n + j] + change[j] / 2)
    for i in range(n):
        y[n + i] += change[i]
    record[0], record[1] = 1.0, lost
    record[2 : 2 + rows], record[2 + rows : 2 + 2 * rows], record[2 + 2 * rows :] = x, here.u, u
    return DONE


@njit(cache=True)
def _rows_at_rest(here, answer, u, low, scales):
    """Rows of contacts whose bounces are over, those of slips among them that friction ends as well."""
    still = np.zeros(u.size, dtype=np.bool_)
    weight = np.max(np.abs(answer.b))
    least = 10 * math.sqrt(2 * weight * _BOUNCE * scales[0])
    for i in low:
        first, end = here.begins[i], here.begins[i + 1]
        still[first] = True
        if here.mu[i] > 0 and math.sqrt(np.sum(u[first + 1 : end] ** 2)) <= least:
            still[first:end] = True
    return np.flatnonzero(still)


@njit(cache=True)
def _still(directions, stops, scales):
    """The speed up to which a slip counts as none; it may be left over where two directions stop."""
    if directions == 1:
        return math.inf if stops else slow(scales, _SPEED)
    return slow(scales, _LEFT_OVER if stops else SLIP)


@njit(cache=True)
def _choose(here, answer, chosen, fired, scales, statuses, directions):
    """Find what each of the contacts at rest does from here on, and the directions in which they slide."""
    rows, begins = rows_of(here.begins, chosen)
    mu, count = here.static[chosen], chosen.size
    sliding, given, status = np.zeros(count, np.bool_), np.zeros((count, 2)), np.zeros(count, np.int64)
    for k in range(count):
        i = chosen[k]
        slip = here.u[here.begins[i] + 1 : here.begins[i + 1]]
        speed = math.sqrt(np.sum(slip * slip))
        if fired[i] == BREAKS:
            mu[k] = min(here.mu[i], here.static[i] * _YIELDING)
        elif slip.size and speed > _still(slip.size, fired[i] == STOPS, scales):
            sliding[k] = True
            given[k, : slip.size] = slip / speed
            mu[k] = here.mu[i]
    A, b, x, w, none = block(answer.A, rows), answer.b[rows], np.zeros(rows.size), np.zeros(rows.size), 0 * mu
    d = given.copy()
    if not solve_contacts(A, b, begins, mu, d, sliding, none, x, w, status):
        return NO_SOLUTION
    new = (status == SOLVED_SLIDE) & ~sliding
    if np.any(new & (mu > here.mu[chosen])):
        mu, sliding = np.where(new, here.mu[chosen], mu), sliding | new
        if not solve_contacts(A, b, begins, mu, d, sliding, none, x, w, status):
            return NO_SOLUTION
    for k in range(count):
        if status[k] == SOLVED_OPEN:
            continue
        i = chosen[k]
        if begins[k + 1] - begins[k] == 1 or mu[k] == 0:
            statuses[i] = CLOSED
        else:
            statuses[i] = SLIDE if status[k] == SOLVED_SLIDE else STICK
        directions[i] = d[k]
    return DONE


@njit(cache=True)
def _part(y, n, here, answer, statuses, parting, delta):
    """Take away the roundings by which open contacts would not be seen to close: a gap that is below zero by
    more than it is where one closes, a rate that is negative although a contact parts.
    """
    begins = here.begins[:-1]
    A, mobility = block(answer.A, begins), np.ascontiguousarray(answer.mobility[:, begins])
    if parting.size:
        push = _pushed(A, parting, -here.u[begins[parting]])
        y[n : 2 * n] += np.ascontiguousarray(mobility[:, parting]) @ push
    moved = statuses != OPEN
    deep = ~moved & (here.gap < -_DEEP * delta)
    change = np.zeros(n)
    while np.any(deep & ~moved):
        moved = moved | deep
        rows = np.flatnonzero(moved)
        x = _pushed(A, rows, -here.gap[rows])
        gaps = here.gap + np.ascontiguousarray(A[:, rows]) @ x
        deep = (statuses == OPEN) & (gaps < -_DEEP * delta)
        change = np.ascontiguousarray(mobility[:, rows]) @ x
    y[:n] += change


@njit(cache=True)
def update(
    kernel, pieces, context, t, y, sizes, begins, poisson, fired, scales, statuses, directions, record
):
    """Let y be the state behind impacts, ``statuses`` what contacts do from there on, ``directions`` where
    they slide, and ``record`` what an impact was: whether there was one, what it took, impulses along all
    rows, and velocities before and after it.  DONE, or why not.

    ``sizes`` are n, m, rows of g and the number of states; ``scales`` those of `grow`.
    """
    n = sizes[0]
    statuses[:], directions[:], record[0] = OPEN, 0.0, 0.0
    grow(t, y, n, scales)
    here, code = _look(kernel, t, y, context, n, begins)
    if code != DONE:
        return code
    if penetrated(here.gap, scales) >= 0:
        return PENETRATED
    touching = _touching(here, t, fired, scales)
    if not np.any(touching):
        return DONE
    if np.any(touching & (here.u[begins[:-1]] < -slow(scales, _SPEED))):
        answer, code = _answer(pieces, t, y, context, sizes, here)
        if code == DONE:
            code = _impact(y, n, here, answer, touching, poisson, scales, record)
        if code == DONE:
            grow(t, y, n, scales)
            here, code = _look(kernel, t, y, context, n, begins)
        if code != DONE:
            return code
    rates = here.u[begins[:-1]]
    resting = touching & (rates <= slow(scales, _SPEED))
    delta = GAP * scales[0]
    if not np.any(resting) and not np.any(here.gap < -_DEEP * delta):
        return DONE
    answer, code = _answer(pieces, t, y, context, sizes, here)
    chosen = np.flatnonzero(resting & (fired != RELEASES))
    if code == DONE and chosen.size:
        code = _choose(here, answer, chosen, fired, scales, statuses, directions)
    parting = resting & (statuses == OPEN)
    if code == DONE and (
        np.any(parting & (rates < 0)) or np.any((statuses == OPEN) & (here.gap < -_DEEP * delta))
    ):
        _part(y, n, here, answer, statuses, np.flatnonzero(parting), delta)
    return code

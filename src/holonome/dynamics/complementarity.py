"""Unilateral contacts with Coulomb friction: forces x, of each contact (N, F), with w = A x + b and

    0 ≤ N,  0 ≤ w_N,  N w_N = 0;     F = −μ N d,  d = w_T / |w_T|  where w_T ≠ 0,  |F| ≤ μ N  where w_T = 0.

w are accelerations, or velocities after an impact where x are impulses.  A contact that slides already has a
given direction d.  Sweeps over the contacts, each solved by itself (projected Gauss–Seidel), find out which
of them are open, stick or slide; with these decisions the equations are linear, and they are solved and
checked.  Where the sweeps do not settle, all decisions of a small problem are tried.

All of it is compiled, as it runs at each impact.
"""

import math

import numpy as np
from numba import njit

from holonome.algebra.least_squares import column_solved

OPEN, STICK, SLIDE = 0, 1, 2
"""What a contact does; without friction a closed one counts as sticking."""

_SWEEPS, _SETTLED, _EXACT, _SETTLED_WELL, _TRIED = 1000, 1e-13, 1e-9, 1e-7, 1500
_DEPENDENT, _LARGE = 1e-10, 100.0
"""Singular values that count as zero, and forces that are so large only because of them."""

_LAWS = np.array([[STICK, 0.0], [SLIDE, 1.0], [SLIDE, -1.0]])
"""What a closed contact with one slip velocity can do, and in which direction."""


@njit(cache=True)
def solve_contacts(A, b, begins, mu, d, sliding, before, x, w, status):
    """Find forces x on contacts, w = A x + b, what each contact does, and the directions d, two numbers a
    row; False if no forces satisfy the law of friction (Painlevé's paradox).

    Rows of contact i are from ``begins[i]`` to ``begins[i + 1]``.  Where it is ``sliding``, its direction is
    given; ``before`` are normal impulses that friction may count on in addition.
    """
    size_w, size_x = _scale(A, b)
    count, given = mu.size, d.copy()
    x[:], presses = 0.0, np.empty(count, dtype=np.bool_)
    settled = _sweeps(A, b, begins, mu, d, sliding, before, x, status)
    swept, decided = x.copy(), status.copy()
    for i in range(count):
        presses[i] = x[begins[i]] > 0
    if _with_decisions(A, b, begins, mu, d, sliding, before, status, presses, size_w, size_x, x, w):
        return True
    status[:], x[:] = decided, swept
    w[:] = A @ x + b
    if settled and _is_solution(x, w, status, d, begins, mu, sliding, before, _SETTLED_WELL, size_w, size_x):
        return True
    for number in range(_ways(begins, mu, sliding, before)):
        d[:] = given
        _decide(number, begins, mu, sliding, before, status, presses, d)
        if _with_decisions(A, b, begins, mu, d, sliding, before, status, presses, size_w, size_x, x, w):
            return True
    return False


@njit(cache=True)
def _scale(A, b):
    """Sizes of w and of x."""
    size, steepest, mobility = 1e-300, 0.0, math.inf
    for i in range(b.size):
        size, steepest = max(size, abs(b[i])), max(steepest, A[i, i])
    for i in range(b.size):
        if A[i, i] > 1e-12 * steepest:
            mobility = min(mobility, A[i, i])
    return size, size / mobility if mobility < math.inf else size


@njit(cache=True)
def _sweeps(A, b, begins, mu, d, sliding, before, x, status):
    """Projected Gauss–Seidel; whether it settled."""
    largest = 0.0
    for _ in range(_SWEEPS):
        change, largest = 0.0, 0.0
        for i in range(mu.size):
            row, rows = begins[i], begins[i + 1] - begins[i]
            w = b[row]
            for j in range(x.size):
                w += A[row, j] * x[j]
            old = x[row]
            pull = A[row, row]
            if sliding[i] and rows > 1:
                for k in range(rows - 1):
                    pull -= mu[i] * A[row, row + 1 + k] * d[i, k]
            if pull <= 0.0:
                return False
            new = max(0.0, old - w / pull)
            change = max(change, abs(new - old))
            x[row] = new
            status[i] = STICK if new > 0.0 else OPEN
            bound = mu[i] * (new + before[i])
            if rows > 1 and sliding[i]:
                for k in range(rows - 1):
                    force = -bound * d[i, k]
                    change = max(change, abs(force - x[row + 1 + k]))
                    x[row + 1 + k] = force
                status[i] = SLIDE if new + before[i] > 0.0 else OPEN
            elif rows > 1 and new + before[i] > 0.0:
                status[i] = STICK
                steepest, length = 0.0, 0.0
                for k in range(1, rows):
                    steepest = max(steepest, A[row + k, row + k])
                for k in range(1, rows):
                    w = b[row + k]
                    for j in range(x.size):
                        w += A[row + k, j] * x[j]
                    d[i, k - 1] = x[row + k] - w / steepest if steepest > 0.0 else 0.0
                    length += d[i, k - 1] ** 2
                length = np.sqrt(length)
                factor = bound / length if length > bound else 1.0
                for k in range(1, rows):
                    force = factor * d[i, k - 1]
                    change = max(change, abs(force - x[row + k]))
                    x[row + k] = force
                    d[i, k - 1] = -d[i, k - 1] / length if length > 0.0 else 0.0
                if factor < 1.0:
                    status[i] = SLIDE
            else:
                for k in range(1, rows):
                    x[row + k] = 0.0
            largest = max(largest, new, bound)
        if change <= _SETTLED * largest or change == 0.0:
            return True
    return False


@njit(cache=True)
def _with_decisions(A, b, begins, mu, d, sliding, before, status, presses, size_w, size_x, x, w):
    """Find the forces if each contact does what ``status`` says, those that press without moving across;
    False if that contradicts the laws.
    """
    known, columns, x[:] = np.zeros(b.size, dtype=np.bool_), np.zeros((b.size, b.size)), 0.0
    for i in range(mu.size):
        row, end = begins[i], begins[i + 1]
        if presses[i]:
            known[row] = True
            columns[row, row] = 1.0
        if status[i] == SLIDE:
            for k in range(row + 1, end):
                columns[k, row] = -mu[i] * d[i, k - row - 1]
                x[k] = -mu[i] * before[i] * d[i, k - row - 1]
        elif mu[i] > 0 and status[i] == STICK:
            for k in range(row + 1, end):
                known[k] = True
                columns[k, k] = 1.0
    rows = np.flatnonzero(known)
    if rows.size:
        B = np.ascontiguousarray(columns[:, rows])
        S, right = (A @ B)[rows], -(A @ x + b)[rows]
        x += B @ column_solved(S, right, _DEPENDENT, _LARGE * size_x)
    w[:] = A @ x + b
    for i in range(mu.size):
        if status[i] == SLIDE and not sliding[i]:
            largest = 0.0
            for k in range(begins[i] + 1, begins[i + 1]):
                largest = max(largest, abs(w[k]))
            if largest <= _EXACT * size_w:
                status[i] = STICK  # at the bound of friction, but it does not move
    return _is_solution(x, w, status, d, begins, mu, sliding, before, _EXACT, size_w, size_x)


@njit(cache=True)
def _is_solution(x, w, status, d, begins, mu, sliding, before, tolerance, size_w, size_x):
    """Whether the laws hold."""
    size_w, size_x = tolerance * size_w, tolerance * max(size_x, np.max(np.abs(x)))
    for i in range(mu.size):
        row, end = begins[i], begins[i + 1]
        N, rate = x[row], w[row]
        if not (rate + size_w >= 0 and N + size_x >= 0) or (rate > size_w and size_x < N):
            return False
        bound = mu[i] * (N + before[i])
        if end == row + 1 or mu[i] == 0 or bound <= size_x:
            continue
        if status[i] == OPEN:
            return False
        if status[i] == SLIDE and not sliding[i] and not _against(d[i], w[row + 1 : end], size_w):
            return False
        if status[i] == STICK:
            F, across = x[row + 1 : end], w[row + 1 : end]
            if math.sqrt(np.sum(F * F)) > bound + size_x or np.max(np.abs(across)) > size_w:
                return False
    return True


@njit(cache=True)
def _against(d, w_T, size):
    """Whether something slides in the direction against which friction acts."""
    along, across = 0.0, 0.0
    for k in range(w_T.size):
        along += d[k] * w_T[k]
    for k in range(w_T.size):
        across += (w_T[k] - along * d[k]) ** 2
    return along >= -size and math.sqrt(across) <= 1e4 * size


@njit(cache=True)
def _choices(i, begins, mu, sliding, before):
    """How many things a contact with one slip velocity at most can do when closed, and in how many ways."""
    rows = begins[i + 1] - begins[i]
    closed = 3 if rows == 2 and mu[i] > 0 and not sliding[i] else 1
    return closed, 1 + closed * (2 if before[i] > 0 else 1)


@njit(cache=True)
def _ways(begins, mu, sliding, before):
    """How many decisions there are to try; none where there are too many, or two slip velocities."""
    number = 1
    for i in range(mu.size):
        if begins[i + 1] - begins[i] > 2 and mu[i] > 0 and not sliding[i]:
            return 0
        number *= _choices(i, begins, mu, sliding, before)[1]
        if number > _TRIED:
            return 0
    return number


@njit(cache=True)
def _decide(number, begins, mu, sliding, before, status, presses, d):
    """The decisions of this number: what contacts do, which of them press, and in which directions."""
    for i in range(mu.size - 1, -1, -1):
        closed, ways = _choices(i, begins, mu, sliding, before)
        way, number = number % ways, number // ways
        presses[i] = way < closed
        if way == ways - 1:
            status[i] = OPEN
        elif closed == 1:
            slides = sliding[i] and mu[i] > 0 and begins[i + 1] > begins[i] + 1
            status[i] = SLIDE if slides else STICK
        else:
            what, sign = _LAWS[way % closed]
            status[i] = int(what)
            if sign != 0.0:
                d[i, 0], d[i, 1] = sign, 0.0

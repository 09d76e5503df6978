"""Unilateral contacts with Coulomb friction: forces x, of each contact (N, F), with w = A x + b and

    0 ≤ N,  0 ≤ w_N,  N w_N = 0;     F = −μ N d,  d = w_T / |w_T|  where w_T ≠ 0,  |F| ≤ μ N  where w_T = 0.

w are accelerations, or velocities after an impact where x are impulses.  A contact that slides already has a
given direction d.  Sweeps over the contacts, each solved by itself (projected Gauss–Seidel), find out which
of them are open, stick or slide; with these decisions the equations are linear, and they are solved and
checked.  Where the sweeps do not settle, all decisions of a small problem are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numba import njit

OPEN, STICK, SLIDE = 0, 1, 2
"""What a contact does; without friction a closed one counts as sticking."""

_SWEEPS, _SETTLED, _EXACT, _TRIED = 1000, 1e-13, 1e-9, 1500
_DEPENDENT, _LARGE = 1e-10, 100.0
"""Singular values that count as zero, and forces that are so large only because of them."""


class Found(NamedTuple):
    """Forces x, w, what each contact does, and the directions d of those that slide."""

    x: np.ndarray
    w: np.ndarray
    status: np.ndarray
    directions: np.ndarray
    """A row of two numbers for each contact."""


class NoSolution(ArithmeticError):
    """No forces satisfy the law of friction (Painlevé's paradox)."""


def solve_contacts(
    A: np.ndarray,
    b: np.ndarray,
    begins: np.ndarray,
    mu: np.ndarray,
    directions: np.ndarray,
    sliding: np.ndarray,
    before: np.ndarray | None = None,
) -> Found:
    """Forces on contacts.

    Parameters
    ----------
    A, b
        w = A x + b.
    begins
        Where the rows of each contact begin.
    mu
        Coefficients of friction.
    directions, sliding
        The direction d of each contact, two numbers a row, and whether it is given.
    before
        Normal impulses that friction may count on in addition.
    """
    before = np.zeros(mu.size) if before is None else before
    ends = np.append(begins[1:], b.size).astype(np.int64)
    begins = begins.astype(np.int64)
    scale = _scale(A, b)
    x, d = np.zeros(b.size), directions.copy()
    status = np.zeros(mu.size, dtype=np.int64)
    settled = _sweeps(A, b, begins, ends, mu, d, sliding, before, x, status, _SWEEPS, _SETTLED)
    exact = _with_decisions(A, b, begins, ends, mu, d, sliding, before, status, x[begins] > 0, scale)
    if exact is not None:
        return exact
    found = Found(x, A @ x + b, status, d)
    if settled and _is_solution(found, begins, ends, mu, sliding, before, 1e-7, scale):
        return found
    for decisions, presses, chosen in _all_decisions(begins, ends, mu, d, sliding, before):
        exact = _with_decisions(A, b, begins, ends, mu, chosen, sliding, before, decisions, presses, scale)
        if exact is not None:
            return exact
    raise NoSolution("no contact forces satisfy the law of friction")


def _scale(A: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Sizes of w and of x."""
    size = max(float(np.max(np.abs(b), initial=0.0)), 1e-300)
    diagonal = np.diag(A)
    mobility = np.min(diagonal[diagonal > 1e-12 * np.max(diagonal, initial=0.0)], initial=np.inf)
    return size, size / mobility if np.isfinite(mobility) else size


@njit(cache=True)
def _sweeps(A, b, begins, ends, mu, d, sliding, before, x, status, most, settled):
    """Projected Gauss–Seidel; whether it settled."""
    largest = 0.0
    for _ in range(most):
        change, largest = 0.0, 0.0
        for i in range(mu.size):
            row, rows = begins[i], ends[i] - begins[i]
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
        if change <= settled * largest or change == 0.0:
            return True
    return False


def _with_decisions(A, b, begins, ends, mu, d, sliding, before, status, presses, scale) -> Found | None:
    """The forces if each contact does what ``status`` says, those that press without moving across, or None
    if that contradicts the laws.
    """
    known: list[int] = []
    columns, offset = np.zeros((b.size, b.size)), np.zeros(b.size)
    for i, what in enumerate(status):
        row, end = int(begins[i]), int(ends[i])
        if presses[i]:
            known.append(row)
            columns[row, row] = 1.0
        if what == SLIDE:
            columns[row + 1 : end, row] = -mu[i] * d[i, : end - row - 1]
            offset[row + 1 : end] = -mu[i] * before[i] * d[i, : end - row - 1]
        elif end > row + 1 and (mu[i] > 0 and what == STICK):
            known += range(row + 1, end)
            columns[range(row + 1, end), range(row + 1, end)] = 1.0
    x = offset
    if known:
        B = columns[:, known]
        S, right = (A @ B)[known], -(A @ offset + b)[known]
        try:
            z = np.linalg.solve(S, right)
            usable = np.abs(S @ z - right).max() <= 1e-10 * scale[0] and np.abs(z).max() <= _LARGE * scale[1]
        except np.linalg.LinAlgError:
            usable = False
        if not usable:
            z = np.linalg.lstsq(S, right, rcond=_DEPENDENT)[0]
        x = B @ z + offset
    found = Found(x, A @ x + b, np.array(status), d.copy())
    for i in np.flatnonzero((found.status == SLIDE) & ~sliding):
        if np.abs(found.w[begins[i] + 1 : ends[i]]).max(initial=0.0) <= _EXACT * scale[0]:
            found.status[i] = STICK  # at the bound of friction, but it does not move
    return found if _is_solution(found, begins, ends, mu, sliding, before, _EXACT, scale) else None


def _is_solution(found, begins, ends, mu, sliding, before, tolerance, scale) -> bool:
    """Whether the laws hold."""
    size_w = tolerance * scale[0]
    size_x = tolerance * max(scale[1], float(np.max(np.abs(found.x), initial=0.0)))
    for i, what in enumerate(found.status):
        row, end = int(begins[i]), int(ends[i])
        N, w = found.x[row], found.w[row]
        if min(w + size_w, N + size_x) < 0 or (w > size_w and size_x < N):
            return False
        bound = mu[i] * (N + before[i])
        if end == row + 1 or mu[i] == 0 or bound <= size_x:
            continue
        F, w_T, d = found.x[row + 1 : end], found.w[row + 1 : end], found.directions[i, : end - row - 1]
        if what == OPEN or (what == SLIDE and not sliding[i] and not _against(d, w_T, size_w)):
            return False
        if what == STICK and (np.linalg.norm(F) > bound + size_x or np.max(np.abs(w_T)) > size_w):
            return False
    return True


def _against(d: np.ndarray, w_T: np.ndarray, size: float) -> bool:
    """Whether something slides in the direction against which friction acts."""
    along = float(d @ w_T)
    return bool(along >= -size and np.linalg.norm(w_T - along * d) <= 1e4 * size)


def _all_decisions(
    begins, ends, mu, d, sliding, before
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """All that contacts can do, of contacts with one slip velocity at most: decisions, which of them press,
    and the directions.
    """
    choices: list[Sequence[tuple[int, float, bool]]] = []
    for i in range(mu.size):
        rows = ends[i] - begins[i]
        if rows == 1 or mu[i] == 0:
            closed = [(STICK, 0.0)]
        elif sliding[i]:
            closed = [(SLIDE, 0.0)]
        elif rows == 2:
            closed = [(STICK, 0.0), (SLIDE, 1.0), (SLIDE, -1.0)]
        else:
            return
        ways = [True, False] if before[i] > 0 else [True]
        choices.append([(*one, presses) for presses in ways for one in closed] + [(OPEN, 0.0, False)])
    if np.prod([float(len(choice)) for choice in choices]) > _TRIED:
        return
    for decisions in product(*choices):
        chosen = d.copy()
        for i, (what, sign, _) in enumerate(decisions):
            if what == SLIDE and sign:
                chosen[i] = (sign, 0.0)
        yield np.array([one[0] for one in decisions]), np.array([one[2] for one in decisions]), chosen

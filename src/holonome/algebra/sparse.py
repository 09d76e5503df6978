"""Sparse LU of matrices with a fixed pattern and changing values, in compiled loops over index arrays.

    P A Q = L U,     L lower triangular with unit diagonal, stored by columns;
                     U upper triangular, stored by columns, the inverse of its diagonal apart

Q is a minimum-degree order, computed once for a pattern.  P is chosen from the values, column by column, when
the first matrix is factored (Gilbert & Peierls): pivots on the diagonal are preferred, and if the backward
error shows that this was not stable, pivots are chosen by size.  New values are then factored with the
existing pivots and pattern, as KLU does.  Each pivot is compared with the terms it was summed from; if one
has lost its digits, new pivots are chosen.

A *plan* holds what is fixed for a pattern, the *memory* of a factorization everything else, so that several
runs may share a plan.  Nothing is allocated during a run.

References
----------
J. R. Gilbert, T. Peierls, Sparse partial pivoting in time proportional to arithmetic operations, SIAM J. Sci.
Stat. Comput. 9 (1988). T. A. Davis, Direct Methods for Sparse Linear Systems, SIAM 2006, chapters 3, 6 and 7.
T. A. Davis, E. Palamadai Natarajan, Algorithm 907: KLU, ACM Trans. Math. Softw. 37 (2010).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

import numpy as np
from numba import njit

from holonome.algebra.ordering import minimum_degree
from holonome.machine.calls import integers, shift
from holonome.machine.context import OK, SINGULAR
from holonome.machine.layout import Layout, Vector, Whole


class SparseFactors(Layout):
    """Memory of one factorization; row indices and column pointers are 32-bit integers."""

    plan: Whole  # address
    kernel: Whole  # address of a kernel that writes the values, for the owner's use
    pattern: Whole  # address of another pattern, for the owner's use
    chosen: Whole  # whether pivots have been chosen
    choices: Whole  # how often
    L: Vector
    U: Vector
    inverse: Vector  # of the pivots
    x: Vector
    scale: Vector
    check: Vector  # three vectors, for the backward error
    L_rows: Vector
    U_rows: Vector
    L_begins: Vector
    U_begins: Vector
    place: Vector  # of each row in the pivot order
    work: Vector  # four vectors, for the choice of pivots
    values: Vector  # of the matrix, followed by extra numbers that the owner's kernel writes
    right: Vector  # for the owner's use


named_factors = SparseFactors.named()

PIVOT_MARGIN = 1e-8
"""A pivot smaller than this, relative to the terms it was summed from, has lost its digits."""

_NOTHING_LEFT = 1e-14
"""The same where the pivots are newly chosen: below it the matrix counts as singular."""

_STABLE = 1e-10
"""Largest backward error, max |r| / (|A||x| + |b|), that new pivots may have."""

_ANY, _LARGE = 1e-12, 0.1
"""A pivot on the diagonal is accepted if it is larger than this, relative to the largest in its column, with
equilibrated rows: in the first attempt, and in the second.
"""


class Plan:
    """Order of elimination and room for the factors of a square matrix with a given pattern.

    Parameters
    ----------
    begins, rows
        The pattern by columns, as in ``scipy.sparse.csc_matrix`` (indptr, indices).  Row i is paired with
        column i.
    stages
        A number for each column; a column is eliminated after its neighbours with smaller numbers, since its
        pivot might vanish otherwise.

    Attributes
    ----------
    array
        The plan as 32-bit integers, for the compiled loops.
    fill, multiplications
        Number of entries of L (U has as many) and of multiplications in a factorization, if all pivots are on
        the diagonal.
    """

    def __init__(self, begins: Sequence[int], rows: Sequence[int], stages: Sequence[int]) -> None:
        size, entries = len(begins) - 1, len(rows)
        neighbours: list[set[int]] = [set() for _ in range(size)]
        for column in range(size):
            for row in rows[begins[column] : begins[column + 1]]:
                if row != column:
                    neighbours[column].add(row)
                    neighbours[row].add(column)
        order, degrees = minimum_degree(neighbours, stages)
        self.size, self.entries = size, entries
        self.fill, self.multiplications = sum(degrees), sum(d * d for d in degrees)
        self.room = min(2 * self.fill + 4 * size, size * size)
        self.array = np.concatenate([[size, entries, self.room], order, begins, rows]).astype(np.int32)

    def memory(self, kernel: int = 0, pattern: int = 0, extra: int = 0, right: int = 0) -> np.ndarray:
        """Memory for one factorization, for ``extra`` values behind those of the matrix and for ``right``
        numbers of right-hand sides; the plan must outlive it.
        """
        size, half, room = self.size, self.size // 2 + 1, self.room
        rows = room // 2 + 1
        return SparseFactors.memory(
            plan=self.array.ctypes.data,
            kernel=kernel,
            pattern=pattern,
            L=room,
            U=room,
            inverse=size,
            x=size,
            scale=size,
            check=3 * size,
            L_rows=rows,
            U_rows=rows,
            L_begins=half,
            U_begins=half,
            place=half,
            work=4 * half,
            values=self.entries + extra,
            right=right,
        )


Factors = namedtuple(
    "Factors",
    "size entries room order begins rows values L U inverse x scale check L_rows U_rows L_begins U_begins "
    "place work",
)
"""Plan and memory as separate arrays."""


@njit(cache=True)
def factors_in(memory):
    m = named_factors(memory)
    plan = integers(m.plan)
    size, entries, room = int(plan[0]), int(plan[1]), int(plan[2])
    return Factors(
        size,
        entries,
        room,
        shift(plan, 3),
        shift(plan, 3 + size),
        shift(plan, 4 + 2 * size),
        m.values,
        m.L,
        m.U,
        m.inverse,
        m.x,
        m.scale,
        m.check,
        integers(m.L_rows),
        integers(m.U_rows),
        integers(m.L_begins),
        integers(m.U_begins),
        integers(m.place),
        integers(m.work),
    )


@njit(cache=True)
def _reach(F, column, k, mark, stack, resume, reached):
    """Write the rows in which column k of L and U has entries, in topological order, to the end of
    ``reached``; returns where they begin.
    """
    top = F.size
    for p in range(F.begins[column], F.begins[column + 1]):
        if mark[F.rows[p]] == k:
            continue
        head = 0
        stack[0] = F.rows[p]
        while head >= 0:
            i = stack[head]
            j = F.place[i]
            if mark[i] != k:
                mark[i] = k
                resume[head] = F.L_begins[j] if j >= 0 else 0
            finished = True
            for r in range(resume[head], F.L_begins[j + 1] if j >= 0 else 0):
                if mark[F.L_rows[r]] != k:
                    resume[head] = r + 1
                    head += 1
                    stack[head] = F.L_rows[r]
                    finished = False
                    break
            if finished:
                head -= 1
                top -= 1
                reached[top] = i
    return top


@njit(cache=True)
def _choose_pivots(F, diagonal):
    """Choose pivots and patterns, and store them; False if no pivot is left, or no memory."""
    size, x, place = F.size, F.x, F.place
    mark = F.work
    stack = shift(F.work, size)
    resume = shift(F.work, 2 * size)
    reached = shift(F.work, 3 * size)
    in_L, in_U = 0, 0
    for i in range(size):
        place[i] = mark[i] = -1
        F.scale[i] = x[i] = 0.0
    for p in range(F.entries):
        F.scale[F.rows[p]] = max(F.scale[F.rows[p]], abs(F.values[p]))
    for k in range(size):
        F.L_begins[k], F.U_begins[k] = in_L, in_U
        column = F.order[k]
        top = _reach(F, column, k, mark, stack, resume, reached)
        if in_L + size - top > F.room or in_U + size - top > F.room:
            return False
        for p in range(F.begins[column], F.begins[column + 1]):
            x[F.rows[p]] = F.values[p]
        pivot, largest = -1, 0.0
        for r in range(top, size):
            i = reached[r]
            j = place[i]
            if j >= 0:
                F.U_rows[in_U] = j
                in_U += 1
                for p in range(F.L_begins[j], F.L_begins[j + 1]):
                    x[F.L_rows[p]] -= F.L[p] * x[i]
            elif abs(x[i]) > largest * F.scale[i]:
                pivot, largest = i, abs(x[i]) / F.scale[i]
        if pivot < 0 or not largest < np.inf:
            return False
        if mark[column] == k and place[column] < 0 and abs(x[column]) >= diagonal * largest * F.scale[column]:
            pivot = column
        place[pivot] = k
        inverse = 1.0 / x[pivot]
        for r in range(top, size):
            i = reached[r]
            if place[i] < 0:
                F.L_rows[in_L], F.L[in_L] = i, x[i] * inverse
                in_L += 1
            x[i] = 0.0
        F.L_begins[k + 1], F.U_begins[k + 1] = in_L, in_U
    for p in range(in_L):
        F.L_rows[p] = place[F.L_rows[p]]
    return True


@njit(cache=True)
def _refactor(F, margin):
    """Factor with the stored pivots and patterns; False if a pivot is too small."""
    x, place = F.x, F.place
    L, L_rows, L_begins = F.L, F.L_rows, F.L_begins
    U, U_rows, U_begins = F.U, F.U_rows, F.U_begins
    for i in range(F.size):
        x[i] = 0.0
    for k in range(F.size):
        column = F.order[k]
        for p in range(F.begins[column], F.begins[column + 1]):
            x[place[F.rows[p]]] = F.values[p]
        pivot = x[k]
        terms = abs(pivot)
        for p in range(U_begins[k], U_begins[k + 1]):
            j = U_rows[p]
            u = x[j]
            x[j] = 0.0
            U[p] = u
            for r in range(L_begins[j], L_begins[j + 1]):
                x[L_rows[r]] -= L[r] * u
            terms += abs(x[k] - pivot)
            pivot = x[k]
        if not abs(pivot) > margin * terms:
            return False
        x[k] = 0.0
        inverse = 1.0 / pivot
        F.inverse[k] = inverse
        for r in range(L_begins[k], L_begins[k + 1]):
            i = L_rows[r]
            L[r] = x[i] * inverse
            x[i] = 0.0
    return True


@njit(cache=True)
def _solve(F, right, out):
    x = F.x
    L, L_rows, L_begins = F.L, F.L_rows, F.L_begins
    U, U_rows, U_begins = F.U, F.U_rows, F.U_begins
    for i in range(F.size):
        x[F.place[i]] = right[i]
    for k in range(F.size):
        factor = x[k]
        if factor != 0.0:
            for p in range(L_begins[k], L_begins[k + 1]):
                x[L_rows[p]] -= L[p] * factor
    for k in range(F.size - 1, -1, -1):
        factor = x[k] * F.inverse[k]
        x[k] = factor
        if factor != 0.0:
            for p in range(U_begins[k], U_begins[k + 1]):
                x[U_rows[p]] -= U[p] * factor
    for k in range(F.size):
        out[F.order[k]] = x[k]


@njit(cache=True)
def _backward_error(F):
    """Componentwise backward error (Oettli & Prager) of A x = b; b holds the largest entry of each row."""
    x, r, bound = F.check, shift(F.check, F.size), shift(F.check, 2 * F.size)
    _solve(F, F.scale, x)
    for i in range(F.size):
        r[i] = bound[i] = F.scale[i]
    for j in range(F.size):
        for p in range(F.begins[j], F.begins[j + 1]):
            term = F.values[p] * x[j]
            r[F.rows[p]] -= term
            bound[F.rows[p]] += abs(term)
    largest = 0.0
    for i in range(F.size):
        largest = max(largest, abs(r[i]) / bound[i])
    return largest


@njit(cache=True)
def factor(memory):
    """Factor the values in the memory; returns a status."""
    F, state = factors_in(memory), named_factors(memory)
    total = 0.0
    for p in range(F.entries):
        total += F.values[p]
    if total - total != 0.0:
        return SINGULAR
    if state.chosen and _refactor(F, PIVOT_MARGIN):
        return OK
    state.choices += 1
    regular = _choose_pivots(F, _ANY) and _refactor(F, PIVOT_MARGIN) and _backward_error(F) < _STABLE
    if not regular:
        regular = _choose_pivots(F, _LARGE) and _refactor(F, _NOTHING_LEFT) and _backward_error(F) < _STABLE
    state.chosen = regular
    return OK if regular else SINGULAR


@njit(cache=True)
def solve(memory, right, out):
    """Write A⁻¹ right to ``out``, which may be the same vector."""
    _solve(factors_in(memory), right, out)

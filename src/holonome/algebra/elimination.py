"""Sparse LU of a symbolic matrix, without pivoting, for emitted code."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from holonome.algebra.ordering import markowitz

PIVOT_MARGIN = 1e-8
"""Smallest pivot, relative to the terms it was summed from, that the elimination without pivoting accepts."""


class Elimination:
    """Sparse LU without pivoting of a symbolic matrix; unknowns are eliminated group by group, within each
    group in an order with little fill.
    """

    def __init__(self, J: ca.SX, groups: Sequence[range]) -> None:
        size = J.size1()
        rows: list[dict[int, ca.SX]] = [{} for _ in range(size)]
        for row, column, value in zip(J.sparsity().row(), _columns(J), J.nonzeros(), strict=True):
            rows[row][column] = ca.SX(value)  # pyright: ignore
        self.order = markowitz([set(row) for row in rows], groups)
        self.values: list[ca.SX] = []
        self.margin = ca.SX(np.inf)
        columns: list[set[int]] = [set() for _ in range(size)]
        for i, row in enumerate(rows):
            for j in row:
                columns[j].add(i)
        self.steps: list[tuple[int, int, list[tuple[int, int]], list[tuple[int, int]]]] = []
        done: set[int] = set()
        sums = [ca.fabs(rows[i].get(i, ca.SX(0))) for i in range(size)]
        for k in self.order:
            pivot = rows[k].get(k)
            if pivot is None:
                raise ArithmeticError("structurally singular")
            self.margin = ca.fmin(self.margin, ca.fabs(pivot) - PIVOT_MARGIN * sums[k])
            inverse = 1 / pivot
            done.add(k)
            position = self._keep(inverse)
            upper = [(j, self._keep(value)) for j, value in rows[k].items() if j not in done]
            below = []
            for i in sorted(columns[k] - done):
                factor = rows[i].pop(k) * inverse
                below.append((i, self._keep(factor)))
                for j, at_ in upper:
                    term = factor * self.values[at_]
                    rows[i][j] = rows[i].get(j, ca.SX(0)) - term
                    columns[j].add(i)
                    if i == j:
                        sums[i] += ca.fabs(term)
            self.steps.append((k, position, upper, below))

    def _keep(self, value: ca.SX) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def solve(self, right: ca.SX, factors: ca.SX) -> ca.SX:
        x = ca.vertsplit(right)
        for k, _, _, below in self.steps:
            for i, at_ in below:
                x[i] = x[i] - factors[at_] * x[k]
        for k, position, upper, _ in reversed(self.steps):
            for j, at_ in upper:
                x[k] = x[k] - factors[at_] * x[j]
            x[k] = x[k] * factors[position]
        return ca.vertcat(*x)


def _columns(J: ca.SX) -> list[int]:
    return [column for column, count in enumerate(np.diff(J.sparsity().colind())) for _ in range(count)]

"""Sparse LU of a symbolic matrix, real or complex, without pivoting, for emitted code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from holonome.algebra.ordering import markowitz

PIVOT_MARGIN = 1e-8
"""Smallest pivot, relative to the terms it was summed from, that the elimination without pivoting accepts."""


class Complex:
    """A complex number of two expressions; parts that are zero vanish from what is computed with them."""

    __slots__ = ("imaginary", "real")

    def __init__(self, real: ca.SX, imaginary: ca.SX) -> None:
        self.real, self.imaginary = real, imaginary

    def __mul__(self, other: Complex) -> Complex:
        a, b, c, d = self.real, self.imaginary, other.real, other.imaginary
        return Complex(a * c - b * d, a * d + b * c)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.real - other.real, self.imaginary - other.imaginary)

    def inverse(self) -> Complex:
        square = self.real * self.real + self.imaginary * self.imaginary
        return Complex(self.real / square, -self.imaginary / square)

    def size(self) -> ca.SX:
        return ca.fabs(self.real) + ca.fabs(self.imaginary)


def complex_numbers(column: ca.SX) -> list[Complex]:
    """The entries of a column: all real parts, then all imaginary ones."""
    parts = ca.vertsplit(column)
    half = len(parts) // 2
    return [Complex(*pair) for pair in zip(parts[:half], parts[half:], strict=True)]


def column_of(values: Sequence[Any]) -> ca.SX:
    """The inverse of `complex_numbers`; of real entries, their column."""
    if values and isinstance(values[0], Complex):
        values = [value.real for value in values] + [value.imaginary for value in values]
    return ca.vertcat(*values)


class Elimination:
    """Sparse LU without pivoting of a symbolic matrix, with an imaginary part or without; unknowns are
    eliminated group by group, within each group in an order with little fill.
    """

    def __init__(self, J: ca.SX, groups: Sequence[range], imaginary: ca.SX | None = None) -> None:
        size, zero = J.size1(), ca.SX(0)
        self._real = imaginary is None
        self._zero = zero if imaginary is None else Complex(zero, zero)
        rows: list[dict[int, Any]] = _entries(J, imaginary)
        self.order = markowitz([set(row) for row in rows], groups)
        self.values: list[Any] = []
        self.margin = ca.SX(np.inf)
        columns: list[set[int]] = [set() for _ in range(size)]
        for i, row in enumerate(rows):
            for j in row:
                columns[j].add(i)
        self.steps: list[tuple[int, int, list[tuple[int, int]], list[tuple[int, int]]]] = []
        done: set[int] = set()
        sums = [self._size(rows[i].get(i, self._zero)) for i in range(size)]
        for k in self.order:
            pivot = rows[k].get(k)
            if pivot is None:
                raise ArithmeticError("structurally singular")
            self.margin = ca.fmin(self.margin, self._size(pivot) - PIVOT_MARGIN * sums[k])
            inverse = 1 / pivot if self._real else pivot.inverse()
            done.add(k)
            position = self._keep(inverse)
            upper = [(j, self._keep(value)) for j, value in rows[k].items() if j not in done]
            below = []
            for i in sorted(columns[k] - done):
                factor = rows[i].pop(k) * inverse
                below.append((i, self._keep(factor)))
                for j, at_ in upper:
                    term = factor * self.values[at_]
                    rows[i][j] = rows[i].get(j, self._zero) - term
                    columns[j].add(i)
                    if i == j:
                        sums[i] += self._size(term)
            self.steps.append((k, position, upper, below))

    def _size(self, value: Any) -> ca.SX:
        return ca.fabs(value) if self._real else value.size()

    def _keep(self, value: Any) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def solve(self, right: ca.SX, factors: ca.SX) -> ca.SX:
        """The solution from the column of `values`; complex columns have the imaginary parts behind."""
        split: Any = ca.vertsplit if self._real else complex_numbers
        x, known = list(split(right)), split(factors)
        for k, _, _, below in self.steps:
            for i, at_ in below:
                x[i] = x[i] - known[at_] * x[k]
        for k, position, upper, _ in reversed(self.steps):
            for j, at_ in upper:
                x[k] = x[k] - known[at_] * x[j]
            x[k] = x[k] * known[position]
        return column_of(x)


def _entries(J: ca.SX, imaginary: ca.SX | None) -> list[dict[int, Any]]:
    """Nonzeros by row and column."""
    rows: list[dict[int, Any]] = [{} for _ in range(J.size1())]
    for row, column, value in zip(J.sparsity().row(), _columns(J), J.nonzeros(), strict=True):
        rows[row][column] = ca.SX(value)  # pyright: ignore
    if imaginary is None:
        return rows
    parts, zero = _entries(imaginary, None), ca.SX(0)
    return [
        {j: Complex(row.get(j, zero), part.get(j, zero)) for j in {**row, **part}}
        for row, part in zip(rows, parts, strict=True)
    ]


def _columns(J: ca.SX) -> list[int]:
    return [column for column, count in enumerate(np.diff(J.sparsity().colind())) for _ in range(count)]

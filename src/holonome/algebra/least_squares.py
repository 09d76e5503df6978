"""Small linear systems that are usually regular: LU, and where that leaves a residual or very large numbers,
the solution of least norm by singular values.
"""

import numpy as np
from numba import njit

from holonome.algebra import dense

_RESIDUAL = 1e-10


@njit(cache=True)
def solved(matrix, right, dependent, largest):
    """x with ``matrix`` x = ``right``, columns apart; singular values below ``dependent`` times the largest
    count as zero, and numbers above ``largest`` as their consequence.
    """
    n, columns = right.shape
    factors, pivots, scale = matrix.copy().reshape(n * n), np.empty(n), np.empty(n)
    usable = dense.factor(factors, pivots, scale, n)
    x, size, left, most = right.copy(), 0.0, 0.0, 0.0
    if usable:
        for k in range(columns):
            column = x[:, k].copy()
            dense.solve(factors, pivots, column, n)
            x[:, k] = column
        for i in range(n):
            for k in range(columns):
                residual = -right[i, k]
                for j in range(n):
                    residual += matrix[i, j] * x[j, k]
                size, left = max(size, abs(right[i, k])), max(left, abs(residual))
                most = max(most, abs(x[i, k]))
        usable = left <= _RESIDUAL * size and most <= largest
    return x if usable else np.linalg.lstsq(matrix, right, dependent)[0]


@njit(cache=True)
def column_solved(matrix, right, dependent, largest):
    """The same for one column."""
    return solved(matrix, right.reshape((right.size, 1)), dependent, largest)[:, 0].copy()

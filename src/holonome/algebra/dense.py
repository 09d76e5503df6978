"""Dense LU with scaled row pivoting.

Compiled loops rather than LAPACK: the Newton matrices factored here have at most 60 unknowns (larger ones are
sparse), and up to that size both take the same time.  Time to factor and solve once, in µs
(``benchmarks/dense.py``; LAPACK on one thread: on several, on a busy machine, 400 unknowns took 300 ms):

    unknowns      20       40       60      100      200      400
    loops          2        8       20       75      490     3700
    LAPACK         4        9       18       51      250     1500
"""

from numba import njit

_SMALLEST_PIVOT = 1e-15
"""Relative to the largest original entry of its row; with a smaller pivot the matrix counts as singular."""


@njit(cache=True, error_model="numpy")
def factor(A, pivots, scale, n):
    """LU with row pivoting of A (n × n, stored by rows), in place; False if singular."""
    for i in range(n):
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(A[i * n + j]))
        scale[i] = largest
    for k in range(n):
        best, ratio = k, -1.0
        for i in range(k, n):
            size = abs(A[i * n + k]) / scale[i] if scale[i] > 0.0 else 0.0
            if size > ratio:
                best, ratio = i, size
        pivots[k] = best
        if not ratio > _SMALLEST_PIVOT:
            return False
        if best != k:
            scale[k], scale[best] = scale[best], scale[k]
            for j in range(n):
                A[k * n + j], A[best * n + j] = A[best * n + j], A[k * n + j]
        for i in range(k + 1, n):
            factor = A[i * n + k] / A[k * n + k]
            A[i * n + k] = factor
            if factor != 0.0:
                for j in range(k + 1, n):
                    A[i * n + j] -= factor * A[k * n + j]
    return True


@njit(cache=True, error_model="numpy")
def solve(A, pivots, x, n):
    """Solve with the factors of `factor`, in place."""
    for k in range(n):
        best = int(pivots[k])
        if best != k:
            x[k], x[best] = x[best], x[k]
    for i in range(n):
        s = x[i]
        for j in range(i):
            s -= A[i * n + j] * x[j]
        x[i] = s
    for i in range(n - 1, -1, -1):
        s = x[i]
        for j in range(i + 1, n):
            s -= A[i * n + j] * x[j]
        x[i] = s / A[i * n + i]

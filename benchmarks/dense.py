"""The compiled loops of the dense eliminations compared with LAPACK as shipped with SciPy.

    OPENBLAS_NUM_THREADS=1 python benchmarks/dense.py [--quick]

Without the variable OpenBLAS shares the larger problems among threads, which on a busy machine wait for each
other: 400 unknowns took 300 ms instead of 2 (LU) and 3000 ms instead of 11 (saddle point).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numba import njit
from scipy.linalg.lapack import dgeqp3, dgetrf, dgetrs, dormqr

from harness.options import Options
from holonome.algebra import dense
from holonome.algebra import saddle_point as sp
from holonome.machine.calls import pointer

SIZES = (20, 40, 60, 100, 200, 400, 600)


@njit
def _lu(A, x, pivots, scale):
    dense.factor(pointer(A), pointer(pivots), pointer(scale), len(A))
    dense.solve(pointer(A), pointer(pivots), pointer(x), len(A))


@njit
def _saddle_point(M, C, F):
    rank = sp.factor_rows(C, F, np.zeros(len(C)), len(C))
    return sp.factor_mass(M, F, rank)


def lu(A: np.ndarray) -> Callable[[], object]:
    """Factor and solve once."""
    x, pivots, scale = np.ones(len(A)), np.zeros(len(A)), np.zeros(len(A))
    return lambda: _lu(A.copy(), x, pivots, scale)


def lu_by_lapack(A: np.ndarray) -> Callable[[], object]:
    x, A = np.ones(len(A)), np.asfortranarray(A)
    return lambda: dgetrs(*dgetrf(A)[:2], x)


def saddle_point(A: np.ndarray) -> Callable[[], object]:
    """Both factorizations, with half as many rows as unknowns."""
    m = len(A) // 2
    n = len(A)
    rows, B = np.zeros((m, n)), np.zeros((n, n))
    F = sp.Factors(rows, np.zeros(m), np.zeros(m), np.zeros(m, np.int64), B, np.zeros(n))
    return lambda: _saddle_point(A, A[:m], F)


def saddle_point_by_lapack(A: np.ndarray) -> Callable[[], object]:
    m, M = len(A) // 2, np.asfortranarray(A)
    Ct, room = np.asfortranarray(A[:m].T), 64 * len(A) + 5000

    def factor() -> object:
        Q, _, tau, _, _ = dgeqp3(Ct, lwork=room)
        B = dormqr("R", "N", Q, tau, dormqr("L", "T", Q, tau, M, room)[0], room)[0]
        return dgetrf(B[m:, m:])

    return factor


def fastest(work: Callable[[], object], size: int) -> float:
    """Microseconds."""
    times = []
    for _ in range(5 if size > 300 else 50):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e6 * min(times)


def main() -> None:
    sizes = SIZES[:1] if Options(__doc__).given().quick else SIZES
    print("µs".ljust(24) + "".join(f"{n:9d}" for n in sizes))
    for make in (lu, lu_by_lapack, saddle_point, saddle_point_by_lapack):
        matrices = [np.random.default_rng(n).normal(size=(n, n)) for n in sizes]
        times = [fastest(make(A), len(A)) for A in matrices]
        print(make.__name__.replace("_", " ").ljust(24) + "".join(f"{t:9.0f}" for t in times))


if __name__ == "__main__":
    main()

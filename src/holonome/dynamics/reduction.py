"""Accelerations from a smaller system: constraints with constant coefficients are eliminated beforehand.

In absolute coordinates many constraints have the form x = l cos φ: the matrix C_KJ of their coefficients,
rows K and coordinates J, is constant and regular.  Then

    a_J = X a_R + τ,     X = −C_KJ⁻¹ C_KR,     τ = C_KJ⁻¹ b_K

and M a + Cᵀλ = f, C a = b becomes a system of the same kind for the other coordinates R and the other rows,
with TᵀM T for M, Tᵀ(f − M τ) for f and C T for C, where T = (X, I). A slider-crank of two bodies is left with
two angles and one constraint.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from holonome.dynamics.manifold import PIVOT_MARGIN, Saddle, smallest_pivot

LARGEST = 60
"""Coordinates and constraints up to which this is tried: in long chains T is full, and nothing is gained."""
_SMALL_PIVOT = 0.1
"""Pivots must be larger than this, relative to the largest candidate."""
_DEPENDENT = 1e-6
"""And larger than this, relative to the length of their row: otherwise the row depends on others, and the
margin of `reduced_accelerations` is small.
"""


def constant_block(C: ca.SX) -> tuple[list[int], list[int]]:
    """Rows K and columns J of a constant regular block of C, found by elimination; pivots in sparse rows and
    columns come first, and small ones are avoided.
    """
    shape = C.shape
    at = C.sparsity().get_triplet()
    constant, A = np.ones(shape, bool), np.zeros(shape)
    constant[at] = [entry.is_constant() for entry in C.nonzeros()]
    A[constant] = np.array(ca.evalf(ca.substitute(C, ca.veccat(*ca.symvar(C)), 0)))[constant]
    A /= np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-300)
    row_entries, column_entries = (
        np.bincount(index, minlength=size) for index, size in zip(at, shape, strict=True)
    )
    rows, columns = [], []
    while True:
        size = (
            np.abs(A)
            * constant[:, columns].all(axis=1, keepdims=True)
            * constant[rows].all(axis=0)
            * constant
        )
        size[rows], size[:, columns] = 0.0, 0.0
        candidates = np.argwhere(size > max(_SMALL_PIVOT * np.max(size, initial=0.0), _DEPENDENT))
        if not len(candidates):
            return rows, columns
        i, j = min(candidates.tolist(), key=lambda at: (row_entries[at[0]] * column_entries[at[1]], *at))
        rows.append(i)
        columns.append(j)
        factors = A[:, j] / A[i, j]
        factors[i] = 0.0
        A = A - np.outer(factors, A[i])


def reduced_accelerations(M: ca.SX, whole: Saddle, f: ca.SX, b: ca.SX) -> tuple[ca.SX, ca.SX] | None:
    """The solution a of M a + Cᵀλ = f, C a = b, and the margin by which it is regular; None if there is
    nothing to eliminate beforehand.

    The remaining pivots are those of the ``whole`` system, so they are compared with its diagonal.
    """
    C = whole.C
    m, n = C.shape
    K, J = constant_block(C) if n + m <= LARGEST else ([], [])
    if not K:
        return None
    others, R = [i for i in range(m) if i not in K], [j for j in range(n) if j not in J]
    inverse = ca.sparsify(ca.DM(np.linalg.inv(np.array(ca.evalf(C[K, J])))))
    T, particular = ca.SX(n, len(R)), ca.SX(n, 1)
    T[J, :], T[R, :] = -inverse @ C[K, R], ca.SX.eye(len(R))
    particular[J] = inverse @ b[K, 0]
    mass, force = ca.sparsify(T.T @ M @ T), T.T @ (f - M @ particular)
    factors = ca.ldl((mass + mass.T) / 2)
    saddle = Saddle(ca.sparsify(C[others, :] @ T), factors)
    a, _ = saddle.solve(ca.ldl_solve(force, *factors), b[others, 0] - C[others, :] @ particular)
    pivots = smallest_pivot(ca.diag(mass), factors)
    if saddle.factors is not None:
        pivots = ca.fmin(pivots, smallest_pivot(ca.diag(whole.S)[others, 0], saddle.factors))
    return T @ a + particular, pivots - PIVOT_MARGIN

"""The linearisation in all coordinates and multipliers,  E x′ = J x + B u,  x = (ξ, ζ, σ, δλ), sparse:

    ξ′ = ζ − X ξ
    M ζ′ = −K ξ − (D + M X) ζ − S σ − Cᵀ δλ + B u
    σ′ = r_q ξ + r_v ζ + r_s σ + r_λ δλ + r_u u
    0 = G ξ  (position constraints),   0 = W ξ + C ζ  (velocity constraints)

Modes near a given frequency follow by shift and invert.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigs, splu

from holonome.analysis.balance import Balance
from holonome.analysis.given import Place
from holonome.analysis.symmetry import steady_acceleration
from holonome.errors import ModelError
from holonome.problem.system import System

_REGULAR = 1e-12
_ARPACK: Any = 1e-12


@dataclass(frozen=True, eq=False)
class Pencil:
    """E x′ = J x + B u.  The entries of x are those of q, v, s and λ."""

    E: Any
    J: Any
    B: np.ndarray
    n: int
    k: int

    @classmethod
    def at(
        cls, system: System, here: Place, lam: np.ndarray, names: tuple[str, ...], X: np.ndarray | None = None
    ) -> Pencil:
        a = np.zeros(system.n)
        if X is not None and np.any(X):
            a, _, _ = steady_acceleration(system, here.q, here.v)
        found, n, k, g = Balance(system, names).at(system, here, a, lam), system.n, len(system.states), 0
        turn = sp.csc_matrix((n, n)) if X is None else sp.csc_matrix(X)
        g = system.model.position_rows
        M, C = found.block("balance", "a"), found.block("w", "v")
        velocity = slice(g, system.m)
        W = found.block("w", "q")
        r = [found.block("r", x) for x in ("q", "v", "s", "lam")]
        eye = sp.eye(n, format="csc")
        J: Any = sp.bmat(
            [
                [-turn, eye, None, None],
                [
                    -found.block("balance", "q"),
                    -(found.block("balance", "v") + M @ turn),
                    -found.block("balance", "s"),
                    -found.block("balance", "lam"),
                ],
                r,
                [found.block("g", "q"), sp.csc_matrix((g, n)), None, sp.csc_matrix((g, system.m))],
                [W[velocity], C[velocity], None, None],
            ],
            format="csc",
        )
        E: Any = sp.block_diag([eye, M, sp.eye(k), sp.csc_matrix((system.m, system.m))], format="csc")
        B = np.zeros((J.shape[0], found.by_names.shape[1]))
        B[n : 2 * n] = -found.by_names[found.rows("balance")]
        B[2 * n : 2 * n + k] = found.by_names[found.rows("r")]
        return cls(E, J, B, n, k)

    def factors(self, shift: complex) -> Factors:
        """The LU factors of J − shift E; rows that follow from others are made regular by a small number."""
        matrix, rows, columns = _in_unit_sizes((self.J - shift * self.E).tocsc())
        try:
            found = splu(matrix)
            probe = found.solve(np.ones(matrix.shape[0], matrix.dtype))
            if np.all(np.isfinite(probe)) and _left(matrix, probe) < 1e-6:
                return Factors(found, rows, columns)
        except RuntimeError:
            pass
        ends = np.zeros(matrix.shape[0])
        ends[2 * self.n + self.k :] = -_REGULAR
        return Factors(splu((matrix + sp.diags(ends)).tocsc()), rows, columns)

    def solve(self, shift: complex, right: np.ndarray) -> np.ndarray:
        """x with (shift E − J) x = right."""
        return -self.factors(shift).solve(right.astype(complex))

    def modes(self, count: int, near: float) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues nearest to a frequency in Hz, and their vectors as columns."""
        size = self.J.shape[0]
        count = min(count, max(self.n - 1, 1))
        shift = self._shift(near)
        factors = self.factors(shift)
        E = self.E.astype(complex)
        operator: Any = LinearOperator
        inverse = operator((size, size), lambda x: factors.solve(E @ x.astype(complex)), dtype=complex)
        start = inverse @ (inverse @ np.ones(size, complex))  # leaves what is infinite behind
        try:
            values, vectors, *_ = eigs(
                inverse, k=min(2 * count + 2, size - 2), which="LM", v0=start, tol=_ARPACK
            )
        except Exception as error:
            raise ModelError(
                f"modes: the iteration for eigenvalues near {near:g} Hz failed ({error})"
            ) from None
        found = shift + 1 / values
        kept = np.isfinite(found) & (np.abs(values) > 1e-9 * np.max(np.abs(values)))
        order = np.argsort(np.abs(found[kept] - 2j * np.pi * near), kind="stable")
        return found[kept][order], vectors[:, kept][:, order]

    def _shift(self, near: float) -> complex:
        """Near the imaginary axis, where no eigenvalue is expected."""
        M, K = abs(self.E[self.n : 2 * self.n]).max(), abs(self.J[self.n : 2 * self.n, : self.n]).max()
        scale = np.sqrt(K / M) if M > 0 and K > 0 else 1.0
        return complex(1e-3 * max(2 * np.pi * near, 1e-3 * scale), 2 * np.pi * near)


class Factors(NamedTuple):
    """LU factors of a matrix whose rows and columns are multiplied by these numbers."""

    lu: Any
    rows: np.ndarray
    columns: np.ndarray

    def solve(self, right: np.ndarray) -> np.ndarray:
        rows, columns = (
            (self.rows, self.columns) if right.ndim == 1 else (self.rows[:, None], self.columns[:, None])
        )
        return columns * self.lu.solve(rows * right)


def _in_unit_sizes(matrix: sp.csc_matrix) -> tuple[sp.csc_matrix, np.ndarray, np.ndarray]:
    """The matrix with rows and columns whose largest entries are one, and by what they were multiplied:
    constraints in any unit are then as firm as they should be.
    """
    rows = _inverse_sizes(abs(matrix).max(axis=1))
    matrix = sp.diags(rows) @ matrix
    columns = _inverse_sizes(abs(matrix).max(axis=0))
    return (matrix @ sp.diags(columns)).tocsc(), rows, columns


def _inverse_sizes(sizes: Any) -> np.ndarray:
    found = sizes.toarray().ravel()
    return 1 / np.where(found > 0, found, 1.0)


def _left(matrix: sp.csc_matrix, x: np.ndarray) -> float:
    return float(np.max(np.abs(matrix @ x - 1.0)))

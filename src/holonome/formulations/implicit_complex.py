"""The matrix ∂F/∂Y + cj ∂F/∂Y′ of a formulation for complex cj = a + ib, and its elimination, for implicit
Runge–Kutta methods.

As the real one (:mod:`holonome.formulations.implicit`) it is eliminated by straight-line code, which knows
that most of its entries are real, or by compiled loops, as a real matrix of twice the size,

    P  −Q
    Q   P          with P = ∂F/∂Y + a ∂F/∂Y′, Q = b ∂F/∂Y′

whose rows and columns that belong together stay together.  All columns of complex numbers have the real parts
first.  Kernels, with y = (Y, Y′) and z = (a, b, e):

    factors       out = the nonzeros of L and U
    solution      y = right-hand side, z = (L, U), out = solution
    matrix        out = the real matrix of twice the size, row by row, rows and columns scaled by powers of
                  |cj|; for the dense elimination, which clears the memory first
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from holonome.algebra import sparse
from holonome.algebra.elimination import Elimination, column_of
from holonome.formulations.implicit import ImplicitKernels, factor_sparse, solve_sparse
from holonome.machine.compiled import made_once

EMITTED_UP_TO = 40
"""Unknowns: a complex elimination is about three times as long as a real one."""


class ComplexKernels:
    """Addresses of the kernels for complex cj."""

    def __init__(self, real: ImplicitKernels) -> None:
        self.real, self.system, self.size = real, real.system, real.size
        self._lengths: dict[str, int] = {}

    @made_once
    def _b(self) -> ca.SX:
        return ca.SX.sym("b")

    @made_once
    def _imaginary(self) -> ca.SX:
        r = self.real.residual
        return self._b * ca.jacobian(r.F, r.dY)

    @property
    def _y(self) -> ca.SX:
        return ca.vertcat(self.real.residual.Y, self.real.residual.dY)

    @property
    def _z(self) -> ca.SX:
        return ca.vertcat(self.real.residual.cj, self._b, self.real._row_shift)

    @property
    def sparse(self) -> bool:
        """Whether the elimination is done by compiled loops instead of emitted code."""
        return self.size > EMITTED_UP_TO

    @made_once
    def _doubled(self) -> ca.SX:
        """The real matrix of twice the size."""
        P, Q = self.real._matrix, self._imaginary
        return ca.vertcat(ca.horzcat(P, -Q), ca.horzcat(Q, P))

    @made_once
    def _plan(self) -> sparse.Plan:
        stages, pattern = np.zeros(self.size, int), self._doubled.sparsity()
        for number, group in enumerate(self.real.residual.groups):
            stages[group] = number
        return sparse.Plan(pattern.colind(), pattern.row(), np.tile(stages, 2).tolist())

    @made_once
    def _elimination(self) -> Elimination | None:
        if self.sparse:
            return None
        try:
            return Elimination(self.real._matrix, self.real.residual.groups, self._imaginary)
        except ArithmeticError:
            return None

    @property
    def factor_count(self) -> int:
        """Numbers that an emitted factorization consists of."""
        return 0 if self._elimination is None else 2 * len(self._elimination.values)

    @property
    def factor_memory(self) -> np.ndarray:
        """Memory for one factorization."""
        return self._plan.memory(self._nonzeros) if self.sparse else np.zeros(self.factor_count + 1)

    @property
    def instructions(self) -> tuple[int, int]:
        """Length of the code for a solution and for a factorization."""
        length = self._lengths
        if self.sparse:
            return 4 * self._plan.fill, length["nonzeros"] + 2 * self._plan.multiplications
        if self._elimination is None:
            return 8 * self.size**2, 8 * self.size**3
        return length["solution"], length["factors"]

    def _address(self, what: str, build) -> int:
        kernel = self.system.kernel(f"{self.real.name}: complex {what}", build)
        self._lengths[what] = kernel.instructions
        return kernel.address

    @made_once
    def _nonzeros(self) -> int:
        return self._address("nonzeros", lambda model: (self._y, self._z, self._doubled.nz[:], None))

    @made_once
    def factors(self) -> int:
        e = self._elimination
        if self.sparse:
            return factor_sparse.address
        if e is None:
            return 0
        return self._address(
            "factors", lambda model: (self._y, self._z, ca.densify(column_of(e.values)), e.margin)
        )

    @made_once
    def solution(self) -> int:
        e = self._elimination
        if e is None:
            return solve_sparse.address if self.sparse else 0
        right, factors = ca.SX.sym("F", 2 * self.size), ca.SX.sym("factors", 2 * len(e.values))
        return self._address(
            "solution", lambda model: (right, factors, ca.densify(e.solve(right, factors)), None)
        )

    @made_once
    def matrix(self) -> int:
        if self.real.sparse:
            return 0
        r, scaled = self.real.residual, self._doubled
        if r.row_powers.size:
            size = ca.sqrt(r.cj * r.cj + self._b * self._b)
            rows, columns = (size ** ca.DM(np.tile(p, 2)) for p in (r.row_powers, r.column_powers))
            scaled = ca.diag(rows) @ scaled @ ca.diag(columns)
        flat = ca.reshape(scaled.T, 4 * self.size**2, 1)
        return self._address("matrix", lambda model: (self._y, self._z, flat, None))

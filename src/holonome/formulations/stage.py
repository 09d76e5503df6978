"""Small systems of equations F(X) = 0 inside a step, with their exact Newton matrices.

Kernels, with y that contains X and what is known, and z = (h, e):

    newton      out = Δ with F′ Δ = F, elimination and all, in one call
    residual    out = F
    nonzeros    out = the nonzeros of F′, column by column
    matrix      out = F′, row by row; the caller clears the memory before

Small ones need `newton` alone; where a pivot of it has lost its digits, matrix and residual are evaluated and
eliminated with row pivoting.  Of large ones the nonzeros are emitted, and compiled loops eliminate
(:mod:`holonome.algebra.sparse`).  e_i, one for each row of constraints, is zero, or very large where the row
follows from others: subtracted from the diagonal, it keeps the multiplier as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numba import njit

from holonome.algebra import dense, sparse
from holonome.algebra.elimination import Elimination
from holonome.equations.model import Model
from holonome.formulations.implicit import EMITTED_UP_TO, elimination_plan
from holonome.machine.calls import call
from holonome.machine.compiled import made_once
from holonome.machine.context import OK, SINGULAR
from holonome.machine.layout import Layout, Vector, Whole


@dataclass(frozen=True, eq=False)
class Stage:
    """Unknowns X, all that y contains, the symbol h, F′, F, and which of the unknowns are multipliers, whose
    rows are constraints.
    """

    X: ca.SX
    y: ca.SX
    h: ca.SX
    matrix: ca.SX
    F: ca.SX
    multipliers: range


def column_of_nonzeros(x: ca.SX) -> ca.SX:
    """The entries of a matrix that are not structurally zero, column by column."""
    return ca.vertcat(*(ca.SX(entry) for entry in x.nonzeros()))  # pyright: ignore


class StageState(Layout):
    """Memory of a stage: addresses of its kernels, and room for an elimination."""

    size: Whole
    newton: Whole  # 0: too large, or pivots are zero
    nonzeros: Whole  # whether compiled loops eliminate
    residual: Whole
    matrix: Whole
    factors: Vector
    dense: Vector
    pivots: Vector
    scale: Vector
    right: Vector


named_stage = StageState.named()


class StageKernels:
    """Machine code of a stage for one system."""

    def __init__(self, system: Any, name: str, build: Callable[[Model], Stage]) -> None:
        self.system, self.name, self._build = system, name, build

    @made_once
    def stage(self) -> Stage:
        return self._build(self.system.model)

    @property
    def size(self) -> int:
        return self.stage.X.numel()

    @made_once
    def _e(self) -> ca.SX:
        return ca.SX.sym("e", len(self.stage.multipliers))

    @made_once
    def _matrix(self) -> ca.SX:
        shift = ca.SX(self.size, 1)
        shift[list(self.stage.multipliers)] = self._e
        return self.stage.matrix - ca.diag(ca.sparsify(shift))

    @property
    def sparse(self) -> bool:
        return self.size > EMITTED_UP_TO

    @made_once
    def _plan(self) -> sparse.Plan:
        return elimination_plan(self._matrix, self._groups)

    @property
    def _groups(self) -> tuple[Sequence[int], Sequence[int]]:
        multipliers = self.stage.multipliers
        return [i for i in range(self.size) if i not in multipliers], multipliers

    def _kernel(self, what: str, out: ca.SX, margin: ca.SX | None = None) -> int:
        z = ca.vertcat(self.stage.h, self._e)
        found = self.system.kernel(f"{self.name}: {what}", lambda model: (self.stage.y, z, out, margin))
        return found.address

    @made_once
    def newton(self) -> int:
        if self.sparse:
            return 0
        try:
            elimination = Elimination(self._matrix, self._groups)  # type: ignore[arg-type]
        except ArithmeticError:
            return 0
        change = elimination.solve(ca.densify(self.stage.F), ca.vertcat(*elimination.values))
        return self._kernel("newton", ca.densify(change), elimination.margin)

    @made_once
    def residual(self) -> int:
        return self._kernel("residual", ca.densify(self.stage.F))

    @made_once
    def nonzeros(self) -> int:
        return self._kernel("nonzeros", column_of_nonzeros(self._matrix)) if self.sparse else 0

    @made_once
    def matrix(self) -> int:
        return 0 if self.sparse else self._kernel("matrix", ca.reshape(self._matrix.T, self.size**2, 1))

    def memory(self) -> np.ndarray:
        """Memory for one run."""
        size = self.size
        return StageState.memory(
            size=size,
            newton=self.newton,
            nonzeros=self.nonzeros != 0,
            residual=self.residual,
            matrix=self.matrix,
            factors=self._plan.memory(self.nonzeros) if self.sparse else 0,
            dense=0 if self.sparse else size * size,
            pivots=size,
            scale=size,
            right=size,
        )


@njit(cache=True, error_model="numpy")
def newton_change(stage, t, y, z, context, out):
    """Δ with F′ Δ = F, not a number where these are not finite; returns a status."""
    status = SINGULAR
    if stage.newton != 0:
        status = call(stage.newton, t, y, z, context, out)
    return _by_parts(stage, t, y, z, context, out) if status == SINGULAR else status


@njit(cache=True, error_model="numpy")
def _by_parts(stage, t, y, z, context, out):
    """The same for large stages, or with row pivoting."""
    status = call(stage.residual, t, y, z, context, stage.right)
    if status != OK:
        return status
    if stage.nonzeros != 0:
        factors = sparse.named_factors(stage.factors)
        status = call(factors.kernel, t, y, z, context, factors.values)
        if status == OK:
            status = sparse.factor(stage.factors)
        if status == OK:
            sparse.solve(stage.factors, stage.right, out)
        return status
    matrix, total = stage.dense, 0.0
    for i in range(stage.size * stage.size):
        matrix[i] = 0.0
    status = call(stage.matrix, t, y, z, context, matrix)
    if status != OK:
        return status
    for i in range(stage.size * stage.size):
        total += matrix[i]
    for i in range(stage.size):
        total += stage.right[i]
        out[i] = stage.right[i]
    if total - total != 0.0:
        out[0] = math.nan
        return OK
    if not dense.factor(matrix, stage.pivots, stage.scale, stage.size):
        return SINGULAR
    dense.solve(matrix, stage.pivots, out, stage.size)
    return OK

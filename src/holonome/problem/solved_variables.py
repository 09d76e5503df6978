"""Expressions for the variables that are solved for inside an evaluation: unknowns w, multipliers lam."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from holonome.equations.model import Model

KernelExpressions = tuple[ca.SX, ca.SX, ca.SX, ca.SX | None]
"""Of a kernel: the symbols of its inputs y and z, the column of results, and the margin of regularity."""

_PIVOT_MARGIN = 1e-13
"""Smallest pivot of M, relative to its diagonal entry, that has any digits left."""


def newton_step(name: str) -> Callable[[Model], KernelExpressions]:
    """The step of Newton's method for the unknowns, or for λ."""

    def build(model: Model) -> KernelExpressions:
        if name == "lam":
            step, margin = _step_of_multipliers(model)
        else:
            step, margin = _solution(ca.jacobian(model.k, model.u), -model.k), None
        return model.y, ca.SX(0, 1), ca.densify(step), margin

    return build


def _step_of_multipliers(model: Model) -> tuple[ca.SX, ca.SX | None]:
    """Δλ and the margin, from C M⁻¹(f(λ) − Cᵀ λ) + γ = 0; where M is singular, from

        M a + Cᵀ(λ + Δλ) = f + f_λ Δλ,    C a + γ = 0

    with M and the rows of C in units of their size.
    """
    lam, C = model.lam, model.C
    if _is_singular(model.M):
        unit = ca.sum1(ca.fabs(ca.diag(model.M)))
        rows = ca.sqrt(ca.sum2(C**2))
        forces = (C.T - ca.jacobian(model.f, lam)) / ca.repmat(rows.T, model.n, 1)
        zero = ca.SX(C.size1(), C.size1())
        matrix = ca.blockcat([[model.M / unit, forces], [C / ca.repmat(rows, 1, model.n), zero]])
        solution = _solution(matrix, ca.vertcat((model.f - C.T @ lam) / unit, -model.gamma / rows))
        return unit * solution[model.n :] / rows, None
    D, L, order = ca.ldl(model.M)
    residual = C @ ca.ldl_solve(model.f - C.T @ lam, D, L, order) + model.gamma
    pivots = ca.fabs(D / ca.diag(model.M)[list(order)])
    return _solution(ca.jacobian(residual, lam), -residual), ca.mmin(pivots) - _PIVOT_MARGIN


def _solution(matrix: ca.SX, column: ca.SX) -> ca.SX:
    return ca.solve(ca.densify(matrix), ca.densify(column))


def _is_singular(M: ca.SX) -> bool:
    """Whether a mass matrix is known to be singular whatever its arguments."""
    if ca.sprank(M) < M.size1():
        return True
    return M.is_constant() and np.linalg.matrix_rank(ca.DM(M).full(), hermitian=True) < M.size1()


def tangent(model: Model) -> KernelExpressions:
    """By how much the unknowns change for z = (Δt, Δy), to first order."""
    move = ca.SX.sym("move", 1 + model.y.numel())
    change = model.u_t * move[0] + model.u_q @ move[1 : 1 + model.n]
    return model.y, move, ca.densify(change), None

"""Expressions for the variables that are solved for inside an evaluation: unknowns w, multipliers lam."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from holonome.equations.model import Model

KernelExpressions = tuple[ca.SX, ca.SX, ca.SX, ca.SX | None]
"""Of a kernel: the symbols of its inputs y and z, the column of results, and the margin of regularity."""


def newton_step(name: str) -> Callable[[Model], KernelExpressions]:
    """The step of Newton's method for the unknowns, or for λ from C M⁻¹(f(λ) − Cᵀ λ) + γ = 0."""

    def build(model: Model) -> KernelExpressions:
        if name == "lam":
            x = model.lam
            residual = model.C @ ca.solve(model.M, model.f - model.C.T @ x) + model.gamma
        else:
            x = model.u
            residual = model.k
        step = -ca.solve(ca.densify(ca.jacobian(residual, x)), ca.densify(residual))
        return model.y, ca.SX(0, 1), ca.densify(step), None

    return build


def tangent(model: Model) -> KernelExpressions:
    """By how much the unknowns change for z = (Δt, Δy), to first order."""
    move = ca.SX.sym("move", 1 + model.y.numel())
    change = model.u_t * move[0] + model.u_q @ move[1 : 1 + model.n]
    return model.y, move, ca.densify(change), None

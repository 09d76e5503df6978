"""The projection onto the manifold, as expressions: (2.5) of Eich 1993, linearised, for a state and for an
error vector.

The manifold is 0 = g(t, q), 0 = w(t, q, v), 0 = I(t, q, v) − I₀ with the user's invariants I.  In the metric
W, the mass matrix or the identity,

    δq smallest with  G δq = −g,     δv smallest with  C δv = −w − D δq,
    then  (δq, δv) += T W⁻¹∇Iᵀ k     with k such that  ∇I (δq, δv) = I₀ − I

T keeps the part of a vector that is tangential to the constraints: G e_q = 0, C e_v + D e_q = 0.  The
correction for the invariants is tangential, so that the constraints remain satisfied.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from holonome.equations.model import Model

PIVOT_MARGIN = 1e-7
"""Smallest pivot of M and S, relative to its diagonal entry, that the code without pivoting accepts; it costs
about that many digits.
"""


_DEPENDENT = 1e-12
"""Regularization of the matrix for the invariants, relative to its diagonal, for dependent gradients."""


class Saddle:
    """Symbolic solution of W x + Cᵀ λ = a, C x = b by the range space of W⁻¹Cᵀ: LDLᵀ of S = C W⁻¹ Cᵀ, no
    pivoting.
    """

    def __init__(self, C: ca.SX, factors: tuple) -> None:
        self.C, self.rows = C, C.shape[0]
        self.WiCt = ca.ldl_solve(C.T, *factors) if self.rows else ca.SX(C.shape[1], 0)
        S = ca.sparsify(C @ self.WiCt)
        self.S = (S + S.T) / 2
        self.factors = ca.ldl(self.S) if self.rows else None

    def solve(self, Wia: ca.SX, b: ca.SX) -> tuple[ca.SX, ca.SX]:
        if self.factors is None:
            return Wia, ca.SX(0, 1)
        lam = ca.ldl_solve(self.C @ Wia - b, *self.factors)
        return Wia - self.WiCt @ lam, lam

    def onto(self, residual: ca.SX) -> ca.SX:
        """The smallest x, in the metric W, with C x = −residual."""
        return (
            ca.SX(self.C.shape[1], 1)
            if self.factors is None
            else -self.WiCt @ ca.ldl_solve(residual, *self.factors)
        )

    def margin(self) -> ca.SX:
        return (
            ca.SX(np.inf)
            if self.factors is None
            else smallest_pivot(ca.diag(self.S), self.factors) - PIVOT_MARGIN
        )

    def lengths(self) -> ca.SX:
        """The least relative pivot and the diagonal of S, which vanish where the rank falls."""
        return (
            ca.SX(1, 1)
            if self.factors is None
            else ca.vertcat(smallest_pivot(ca.diag(self.S), self.factors), ca.diag(self.S))
        )

    def kept(self) -> list[ca.SX]:
        """The factorization, for use at another point."""
        return [self.WiCt] if self.factors is None else [self.WiCt, self.factors[0], self.factors[1]]

    def with_kept(self, kept: list[ca.SX], C: ca.SX) -> Saddle:
        """The same factorization, as symbols, with another C for products."""
        other = object.__new__(Saddle)
        other.C = C
        other.rows = self.rows
        other.WiCt = kept[0]
        other.S = self.S
        other.factors = None if self.factors is None else (kept[1], kept[2], self.factors[2])
        return other


def smallest_pivot(diagonal: ca.SX, factors: tuple) -> ca.SX:
    """The least ratio of a pivot to the diagonal entry it came from."""
    D, _, order = factors
    diagonal = diagonal[list(order)]
    smallest = ca.SX(np.inf)
    for i in range(D.numel()):
        smallest = ca.fmin(smallest, ca.if_else(D[i] > 0, D[i] / diagonal[i], 0))
    return smallest


class Manifold:
    """The linearised projection of one model; ``factors`` is LDLᵀ of the metric, ``everything`` the saddle
    for all constraint rows, if it is known already.
    """

    def __init__(self, model: Model, factors: tuple, everything: Saddle | None = None) -> None:
        self.model, self.metric = model, factors
        self.all = everything or Saddle(model.C, factors)
        self.position = self.all if model.position_rows == model.rows else Saddle(model.G, factors)
        self.directions, self.inverse = self._invariants()

    def _invariants(self) -> tuple[ca.SX, ca.SX]:
        """T W⁻¹∇Iᵀ, and the inverse of ∇I T W⁻¹∇Iᵀ."""
        model, n = self.model, self.model.n
        count = model.I.numel()
        if not count:
            return ca.SX(model.y.numel(), 0), ca.SX(0, 0)
        gradient = model.I_y.T
        by_q, by_v, by_s = ca.vertsplit(gradient, [0, n, 2 * n, model.y.numel()])
        raised = ca.vertcat(ca.ldl_solve(by_q, *self.metric), ca.ldl_solve(by_v, *self.metric), by_s)
        directions = ca.horzcat(*[self._tangential_to_constraints(raised[:, i]) for i in range(count)])
        S = ca.densify(model.I_y @ directions)
        return ca.densify(directions), ca.densify(ca.inv(S + ca.diag(_DEPENDENT * ca.diag(S) + 1e-200)))

    def _tangential_to_constraints(self, x: ca.SX) -> ca.SX:
        n, model = self.model.n, self.model
        x_q, x_v, x_s = ca.vertsplit(x, [0, n, 2 * n, model.y.numel()])
        x_q = x_q + self.position.onto(model.G @ x_q)
        x_v = x_v + self.all.onto(model.C @ x_v + model.D @ x_q)
        return ca.vertcat(x_q, x_v, x_s)

    def _along_invariants(self, x: ca.SX, residual: ca.SX | float) -> ca.SX:
        """Add to x what makes ∇I x = −residual."""
        return (
            x - self.directions @ (self.inverse @ (self.model.I_y @ x + residual))
            if self.model.I.numel()
            else x
        )

    def tangential(self, e: ca.SX) -> ca.SX:
        """The part of an error vector that is tangential to the manifold."""
        return self._along_invariants(self._tangential_to_constraints(e), 0.0)

    def correction(self) -> ca.SX:
        """(δq, δv, δs)."""
        model = self.model
        dq = self.position.onto(model.g)
        dv = self.all.onto(model.w + model.D @ dq)
        return self._along_invariants(ca.vertcat(dq, dv, ca.SX(model.states, 1)), model.I - model.I_start)

    def margin(self) -> ca.SX:
        return ca.fmin(self.all.margin(), self.position.margin())

    @property
    def kept(self) -> ca.SX:
        """The factorization as a column."""
        parts = [
            *self.all.kept(),
            *(self.position.kept() if self.position is not self.all else []),
            self.directions,
            self.inverse,
        ]
        return ca.vertcat(*[part.nz[:] for part in parts if part.nnz()])

    def with_kept(self, column: ca.SX) -> Manifold:
        """The same manifold with the factorization of another point, given as a column of symbols."""
        at = 0

        def take(part: ca.SX) -> ca.SX:
            nonlocal at
            values = column[at : at + part.nnz()]
            at += part.nnz()
            return ca.SX(part.sparsity(), values)

        other, model = object.__new__(Manifold), self.model
        other.model, other.metric = model, self.metric
        other.all = self.all.with_kept([take(part) for part in self.all.kept()], model.C)
        other.position = other.all
        if self.position is not self.all:
            other.position = self.position.with_kept([take(part) for part in self.position.kept()], model.G)
        other.directions, other.inverse = take(self.directions), take(self.inverse)
        return other

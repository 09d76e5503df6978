"""The kernels of a mechanical system as expressions; M = LDLᵀ and S = C M⁻¹ Cᵀ = L′D′L′ᵀ without pivoting.

    derivative      out = (v, a, r)
    projection      z = (e, c), out = (v, a, r;  P(e + c (v, a, r));  δ;  ρ;  σ)
    multipliers     out = λ
    residuals       out = (g, w)
    energy          out = T + V
    pieces          out = (M, C, D, f, γ, g, w, r), for the dense kernels

`projection` is everything that is needed at the end of a step, with one factorization.  δ = (δq, δv, δs) is a
Newton step, in the metric of M, for g(q) = 0 and w(q, v) = 0 together: G δq = −g, C δv = −w − D δq; δs serves
invariants alone.  P removes from an error vector what that step will remove (Eich 1993, section 4.1):
G e_q = 0, C e_v + D e_q = 0.  ρ is the largest residual, on the position and on the velocity level, of the
linearised equations of rows that depend on others: zero for a regular system.  σ shows when the rank is about
to drop (:mod:`holonome.integrators.rank_watch`): the least pivot of S relative to its diagonal entry, and the
diagonal entries.
"""

from __future__ import annotations

from itertools import pairwise

import casadi as ca
import numpy as np

from holonome.dynamics.manifold import PIVOT_MARGIN, Manifold, smallest_pivot
from holonome.dynamics.reduction import reduced_accelerations
from holonome.equations.model import Model

LARGEST_ELIMINATION = 1_000_000
"""Multiplications beyond which emitting an elimination takes longer than a run with the dense kernels."""

_NOTHING = ca.SX(0, 1)


class Emitted:
    """The expressions shared by the kernels of one model."""

    def __init__(self, model: Model, alpha: ca.SX | float = 0.0, beta: ca.SX | float = 0.0) -> None:
        self.model = model
        factors = ca.ldl(model.M)
        Mif = ca.ldl_solve(model.f, *factors)
        self.manifold = Manifold(model, factors)
        saddle = self.manifold.all
        level = (
            model.gamma
            + 2 * alpha * model.w
            + beta**2 * ca.vertcat(model.g, ca.SX(model.rows - model.position_rows, 1))
        )
        self.a, self.lam = saddle.solve(Mif, -level)
        self.implied = self.lam
        """λ from the forces, also where these depend on λ."""
        if model.lam.numel():
            self.a, self.lam = Mif - saddle.WiCt @ model.lam, model.lam
        self.margin = ca.fmin(
            smallest_pivot(ca.diag(model.M), factors) - PIVOT_MARGIN, self.manifold.margin()
        )
        self._level = level

    def derivative(self, model: Model):
        """The accelerations alone, by whichever elimination takes fewer instructions."""
        a, margin = self.a, self.margin
        reduced = None
        if not model.lam.numel():
            reduced = reduced_accelerations(model.M, self.manifold.all, model.f, -self._level)
        if reduced is not None and instructions(reduced[0]) < instructions(a):
            a, margin = reduced
        return model.y, _NOTHING, ca.densify(ca.vertcat(model.v, a, model.r)), margin

    def multipliers(self, model: Model):
        return model.y, _NOTHING, ca.densify(self.lam), self.margin

    def projection(self, model: Model):
        size, manifold = model.y.numel(), self.manifold
        z = ca.SX.sym("z", size + 1)
        rate = ca.vertcat(model.v, self.a, model.r)
        error = manifold.tangential(z[:size] + z[size] * rate)
        out = ca.vertcat(rate, error, manifold.correction(), ca.SX(2, 1), manifold.all.lengths())
        return model.y, z, ca.densify(out), self.margin


def instructions(expression: ca.SX) -> int:
    """Number of instructions that evaluate an expression."""
    return ca.Function("length", ca.symvar(expression), [expression], {"cse": True}).n_instructions()


def pieces(model: Model):
    """The equations in numbers; structural zeros of the matrices are not written, so the caller must clear
    the memory once.
    """
    M, C, D = [ca.reshape(part.T, part.numel(), 1) for part in (model.M, model.C, model.D)]
    vectors = [ca.densify(part) for part in (model.f, model.gamma, model.g, model.w, model.r)]
    return model.y, _NOTHING, ca.vertcat(M, C, D, *vectors), None


def residuals(model: Model):
    return model.y, _NOTHING, ca.densify(ca.vertcat(model.g, model.w)), None


def energy(model: Model):
    kinetic = ca.dot(model.v, model.M @ model.v) / 2
    return model.y, _NOTHING, ca.densify(kinetic + (0 if model.V is None else model.V)), None


def invariants(model: Model):
    """The invariants, and their derivatives with respect to t and, row by row, to the state."""
    by_y = ca.reshape(model.I_y.T, model.I_y.numel(), 1)
    return model.y, _NOTHING, ca.densify(ca.vertcat(model.I, model.by_t(model.I), by_y)), None


def unknowns(model: Model):
    return model.y, _NOTHING, ca.densify(model.u), None


def elimination_cost(model: Model) -> int:
    """Multiplications of the two sparse factorizations; a large number where a coordinate has no mass, which
    only the dense kernels can treat.
    """
    M = (model.M + model.M.T).sparsity()
    if not all(M.has_nz(i, i) for i in range(model.n)):
        return LARGEST_ELIMINATION + 1
    cost = factorization_cost(M)
    if cost <= LARGEST_ELIMINATION and model.rows:
        C = ca.DM(model.C.sparsity(), 1)
        cost += factorization_cost((C @ ca.DM(_inverse_pattern(M), 1) @ C.T).sparsity())
    return cost


def factorization_cost(pattern: ca.Sparsity) -> int:
    """Multiplications of a sparse factorization of a symmetric matrix with these nonzeros."""
    upper, _ = pattern.ldl()
    return int(np.sum(np.diff(upper.T.colind()).astype(np.int64) ** 2))


def _inverse_pattern(M: ca.Sparsity) -> ca.Sparsity:
    """Pattern of M⁻¹: full within each block of coordinates that M couples."""
    if M.size1() == 0:
        return M
    _, order, ends = M.scc()
    pairs = [(i, j) for a, b in pairwise(ends) for i in order[a:b] for j in order[a:b]]
    rows, columns = zip(*pairs, strict=True)
    return ca.Sparsity.triplet(M.size1(), M.size1(), rows, columns)

"""The equations of sequential regularization, one by one, after Ascher & Lin 1995.

For s = 1, 2, … and a given y₀(t), with the small parameter ε and the regularization matrix E:

index 2     x_s′ = f − B y_s                                                            (2.4)
            y_s = y_{s−1} + ε⁻¹ E (α₁ dg/dt + α₂ g)                                     (2.5); α₁ = 0: (2.15)
  singular  (B y)_s = P (B y)_{s−1} + ε⁻¹ B (GB)⁻¹ g,     P = B (GB)⁻¹ G                (3.2b)
                (3.1) is printed with the wrong sign
index 3     x_s″ = f − B y_s,   y_s = y_{s−1} + ε⁻¹ E (α₁ g″ + α₂ g′ + α₃ g)            (4.4), (4.5)
                variant "baumgarte"
            z_s′ = f̂(z_s) − D ζ_s,   ζ_s = ζ_{s−1} + ε⁻¹ h(z_s),   D = diag(Gᵀ, Gᵀ)     (4.12)
                variant "underlying"; f̂ is the underlying ODE, h = (g, g′)
            z₁′ = z₂ − ε⁻¹ B E g,   z₂′ = f − B y_s,   y_s = y_{s−1} + ε⁻¹ E G z₂       (4.14)–(4.16)
                variant "invariant"
  singular  z₁′ = z₂ − ε⁻¹ B (GB)⁻¹ g,   z₂′ = f − ŷ_s,   ŷ_s = P ŷ_{s−1} + ε⁻¹ P z₂    (4.23)

Mechanical systems are index 3 with B = M⁻¹Gᵀ: (5.3)–(5.4) is "invariant", (5.5)–(5.6) "singular".  Where the
constraints contain t, G z₂ and P z₂ become g′ and B (GB)⁻¹ g′; velocity constraints, which the paper does not
have, join on the velocity level.

With α₁ ≠ 0 the derivative of g contains x_s′ and so y_s itself.  Solved for y_s, (2.5) reads (ε + α₁ E GB)
y_s = ε y_{s−1} + E (α₁ (G f + g_t) + α₂ g), a regular system for any ε ≥ 0, equivalent to (2.12); ε = 0 is
Baumgarte's method (2.13).

(GB)⁻¹ is applied through the orthogonalised rows of G, each scaled to length one before: P and B(GB)⁻¹g do
not depend on the scaling, so that a row may vanish along the way as long as its direction has a limit.
Exactly at a singular point the kernel returns SINGULAR and (B y)_s keeps its last value.

Backward in time stability asks for −ε, and for signs of α₁, α₂, α₃ that alternate: what is meant are
derivatives in the direction of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from holonome.formulations.implicit import Residual
from holonome.locks import cached_property
from holonome.problem.general import Equations

if TYPE_CHECKING:
    from holonome.formulations.sequential_regularization import SRM

INDEPENDENT = 1e-13
"""Distance of a constraint row from the others, relative to its length, below which the position counts as
singular.
"""


class Inverse:
    """(GB)⁻¹ through orthogonalised rows, for the first ``rows`` of C.

    B = M⁻¹Cᵀ: modified Gram–Schmidt on the columns b_i of B in the metric of M gives e_k with e_jᵀ M e_k =
    δ_jk, and B (GB)⁻¹ u = Σ e_k û_k, where û undergoes what the columns do.  General B: QR of the scaled GB.
    """

    def __init__(self, e: Equations, rows: int) -> None:
        self.e, self.rows = e, rows
        G = e.C[:rows, :]
        self.scale = [1 / ca.sqrt(ca.sumsqr(G[i, :]) + 1e-300) for i in range(rows)]
        self.margin, self.r, self.basis = ca.SX(np.inf), {}, []
        B = ca.densify(e.B[:, :rows])
        if e.mass is None:
            S = ca.vertcat(*[self.scale[i] * G[i, :] for i in range(rows)]) @ B
            S = ca.horzcat(*[S[:, j] / ca.sqrt(ca.sumsqr(B[:, j]) + 1e-300) for j in range(rows)])
            self.column = [1 / ca.sqrt(ca.sumsqr(B[:, j]) + 1e-300) for j in range(rows)]
            self.Q, self.R = ca.qr(ca.densify(S))
            for i in range(rows):
                self.margin = ca.fmin(self.margin, ca.fabs(self.R[i, i]) - INDEPENDENT)
            return
        duals = []
        for i in range(rows):
            b, dual = (
                self.scale[i] * B[:, i],
                ca.densify(self.scale[i] * G[i, :].T),
            )  # a vector and M times it
            size = ca.sqrt(ca.dot(b, dual))
            for k, (basis, d) in enumerate(zip(self.basis, duals, strict=True)):
                self.r[i, k] = ca.dot(d, b)
                b, dual = b - self.r[i, k] * basis, dual - self.r[i, k] * d
            rest = ca.sqrt(ca.fmax(ca.dot(b, dual), 0))
            self.margin = ca.fmin(self.margin, ca.if_else(size > 1e-140, rest / size, 0) - INDEPENDENT)
            self.r[i, i] = rest
            self.basis.append(b / rest)
            duals.append(dual / rest)

    def _hat(self, u: ca.SX) -> list[ca.SX]:
        hat: list[ca.SX] = []
        for i in range(self.rows):
            rest = self.scale[i] * u[i]
            for k in range(i):
                rest = rest - self.r[i, k] * hat[k]
            hat.append(rest / self.r[i, i])
        return hat

    def lift(self, u: ca.SX) -> ca.SX:
        """B (GB)⁻¹ u."""
        if self.rows == 0:
            return ca.SX(self.e.n, 1)
        if self.e.mass is None:
            return self.e.By(self.solve(u))
        return sum(
            (basis * hat for basis, hat in zip(self.basis, self._hat(u), strict=True)), ca.SX(self.e.n, 1)
        )

    def solve(self, u: ca.SX) -> ca.SX:
        """(GB)⁻¹ u."""
        if self.e.mass is None:
            scaled = ca.vertcat(*[self.scale[i] * u[i] for i in range(self.rows)])
            y = ca.solve(self.R, self.Q.T @ scaled)
            return ca.vertcat(*[self.column[j] * y[j] for j in range(self.rows)])
        y = self._hat(u)
        for i in reversed(range(self.rows)):
            for k in range(i + 1, self.rows):
                y[i] = y[i] - self.r[k, i] * y[k]
            y[i] = y[i] / self.r[i, i]
        return ca.vertcat(*[self.scale[i] * y[i] for i in range(self.rows)])


def _plainly(A: Callable, u: ca.SX) -> ca.SX:
    return A(u)


class Iteration:
    """Expressions of one variant for one set of equations; ``direction`` is −1 for runs backward in time."""

    def __init__(self, e: Equations, srm: SRM, direction: int) -> None:
        self.e, self.srm, self.direction = e, srm, direction
        self.alpha = tuple(direction**i * a for i, a in enumerate(srm.checked_alpha(e.order)))
        self.singular = srm.variant == "singular"
        self.E = "inverse" if self.singular else srm.E
        self.mg = e.g.numel()
        self.carried = (
            e.n if self.singular else (self.mg + e.m if srm.variant == "underlying" and e.order == 2 else e.m)
        )
        self.eps, self.previous = ca.SX.sym("eps"), ca.SX.sym("previous", self.carried)  # |ε|
        self.z = ca.vertcat(self.eps, self.previous)
        self.signed_eps = self.eps if self.alpha else direction * self.eps
        self.unknown, self.dx, self.dy = (
            ca.SX.sym("y", self.carried),
            ca.SX.sym("dx", e.state.numel()),
            ca.SX.sym("dy", self.carried),
        )

    @cached_property
    def all(self) -> Inverse:
        return Inverse(self.e, self.e.m)

    @cached_property
    def position(self) -> Inverse:
        return self.all if self.mg == self.e.m else Inverse(self.e, self.mg)

    @cached_property
    def _matrix(self) -> ca.SX:
        return self.e.matrix(self.E, self.e.m)  # type: ignore[arg-type]

    def Eu(self, u: ca.SX) -> ca.SX:
        """E u, for all rows or those of g."""
        e, rows = self.e, u.numel()
        match self.E:
            case "identity":
                return u
            case "inverse":
                return (self.all if rows == e.m else self.position).solve(u)
            case "transpose":
                return e.B[:, :rows].T @ (e.C[:rows, :].T @ u)
        return self._matrix[:rows, :rows] @ u

    def BEu(self, u: ca.SX) -> ca.SX:
        if u.numel() == 0:
            return ca.SX(self.e.n, 1)
        return (
            (self.all if u.numel() == self.e.m else self.position).lift(u)
            if self.E == "inverse"
            else self.e.By(self.Eu(u))
        )

    @property
    def margin(self) -> ca.SX | None:
        built = [self.__dict__[name].margin for name in ("all", "position") if name in self.__dict__]
        return None if not built else built[0] if len(built) == 1 else ca.fmin(*built)

    def _implicit(self, u: ca.SX) -> ca.SX:
        """y_s from (ε + α₁ E C B) y_s = ε y_{s−1} + E u, with u = α₁ (C f + γ) + …"""
        alpha, e = self.alpha[0], self.e
        rhs = self.eps * self.previous + self.Eu(u)
        if self.E == "inverse":
            return rhs / (self.eps + alpha)
        EGB = ca.horzcat(*[self.Eu(column) for column in ca.horzsplit(e.C @ e.B)])
        return ca.solve(ca.densify(self.eps * ca.SX.eye(e.m) + alpha * EGB), ca.densify(rhs))

    def _motion(self, yhat: ca.SX, correction: ca.SX | None = None) -> ca.SX:
        """x′ = f − (B y)  or  (x′, x″) = (v − correction, f − (B y))."""
        e = self.e
        if e.order == 1:
            return e.f - yhat
        return ca.vertcat(e.v if correction is None else e.v - correction, e.f - yhat, e.r)

    def y(self, apply: Callable = _plainly) -> ca.SX:
        """y_s in terms of x_s, ε and y_{s−1}; ``apply(A, u)`` is A u, where A multiplies what the constraints
        lack.
        """
        e = self.e
        if self.singular:
            return apply(self.all.lift, e.C @ self.previous + e.w / self.signed_eps)  # (3.2b), (4.23c), (5.6)
        if e.order == 1 or self.srm.variant == "baumgarte":
            padded = ca.vertcat(e.g, ca.SX(e.m - self.mg, 1))
            levels = [e.gamma, e.w, padded] if e.order == 2 else [e.gamma, e.g]
            u = sum(
                (alpha * level for alpha, level in zip(self.alpha[1:], levels[1:], strict=True)),
                ca.SX(e.m, 1),
            )
            if self.alpha[0]:
                return self._implicit(u + self.alpha[0] * (e.C @ e.f + e.gamma))
            return self.previous + apply(self.Eu, u) / self.signed_eps  # (2.5), (4.5)
        if self.srm.variant == "underlying":
            return self.previous + ca.vertcat(e.g, e.w) / self.signed_eps  # (4.12b)
        return self.previous + apply(self.Eu, e.w) / self.signed_eps  # (4.16), (5.4)

    def motion(self, y: ca.SX, apply: Callable = _plainly) -> ca.SX:
        """x_s′, for index 3 (x_s′, x_s″), with a given y_s."""
        e = self.e
        if self.singular:
            return self._motion(
                y, None if e.order == 1 else apply(self.position.lift, e.g) / self.signed_eps
            )  # (4.23a), (5.5a)
        if e.order == 1 or self.srm.variant == "baumgarte":
            return self._motion(e.By(y))  # (2.4), (4.4)
        if self.srm.variant == "underlying":
            a = e.f - self.all.lift(e.C @ e.f + e.gamma)
            position, velocity = ca.vertsplit(y, [0, self.mg, self.carried])
            return ca.vertcat(e.v - e.G.T @ position, a - e.C.T @ velocity, e.r)  # (4.12a)
        return self._motion(e.By(y), apply(self.BEu, e.g) / self.signed_eps)  # (4.14), (5.3)

    def rate(self, _):
        e, y = self.e, self.y()
        size = e.C.T @ e.w if self.srm.variant == "underlying" and e.order == 2 else self.BEu(e.w)
        return self._out(self.motion(y), y, size)

    def residual(self, apply: Callable = _plainly) -> Residual:
        """For BDF: Y = (x_s, y_s), y_s is a separate unknown; F may ask for ε and y_{s−1}."""
        F = ca.vertcat(self.dx - self.motion(self.unknown, apply), self.unknown - self.y(apply))
        size, whole = self.dx.numel(), F.numel()
        mask = np.concatenate([np.ones(size), np.zeros(self.carried)])
        return Residual(
            ca.vertcat(self.e.state, self.unknown),
            ca.vertcat(self.dx, self.dy),
            F,
            (range(size), range(size, whole)),
            mask,
            mask,
            0,
            -mask,
            np.zeros(whole),
            tolerance=self.z,
        )

    @cached_property
    def jacobians(self) -> tuple[ca.SX, ca.SX]:
        """∂F/∂Y and ∂F/∂Y′ without derivatives of E and B E where they multiply ε⁻¹ times what the
        constraints lack.

        That is small in the solution, but large where an iteration of Newton's method begins; with it the
        region of convergence would shrink with ε.
        """
        frozen: list[tuple[ca.SX, ca.SX]] = []

        def apply(A: Callable, u: ca.SX) -> ca.SX:
            if u.numel() == 0:
                return A(u)
            matrix = ca.horzcat(*[A(column) for column in ca.horzsplit(ca.SX.eye(u.numel()))])
            frozen.append((ca.SX.sym("A", matrix.sparsity()), matrix))
            return frozen[-1][0] @ u

        r = self.residual(apply)
        values = (
            ca.vertcat(*[symbol.nz[:] for symbol, _ in frozen]),
            ca.vertcat(*[matrix.nz[:] for _, matrix in frozen]),
        )
        return ca.substitute(ca.jacobian(r.F, r.Y), *values), ca.jacobian(r.F, r.dY)

    def _out(self, motion: ca.SX, y: ca.SX, size: ca.SX):
        largest = ca.SX(0)
        for i in range(size.numel()):
            largest = ca.fmax(largest, ca.fabs(size[i]))
        return self.e.state, self.z, ca.densify(ca.vertcat(motion, y, largest)), self.margin

    def free(self, _):
        e = self.e
        if self.srm.variant == "underlying" and e.order == 2:
            return self._out(
                ca.vertcat(e.v, e.f - self.all.lift(e.C @ e.f + e.gamma), e.r), self.previous, ca.SX(1, 1)
            )
        return self._out(
            self._motion(self.previous if self.singular else e.By(self.previous)), self.previous, ca.SX(1, 1)
        )[:3] + (None,)

    def multiplier(self, _):
        e, needed = self.e, self.e.C @ self.e.f + self.e.gamma
        if self.srm.variant == "underlying" and e.order == 2:
            return e.state, self.z, ca.densify(ca.SX(self.carried, 1)), None  # ζ = 0 is exact
        y = self.all.lift(needed) if self.singular else self.all.solve(needed)
        return e.state, self.z, ca.densify(y), self.all.margin

    def stabilization(self, _):
        e = self.e
        step = self.all.lift(e.w)
        if e.order == 2:
            step = ca.vertcat(self.position.lift(e.g), step, ca.SX(e.s.numel(), 1))
        return e.state, self.z, ca.densify(-step), self.margin

    def regularity(self, _):
        """Of a general problem: what vanishes where GB becomes singular."""
        e, R = self.e, self.all.R
        pivots = [ca.fabs(R[i, i]) for i in range(e.m)]
        rows = [ca.sumsqr(e.G[i, :]) for i in range(e.m)] + [ca.sumsqr(e.B[:, i]) for i in range(e.m)]
        smallest = pivots[0]
        for pivot in pivots[1:]:
            smallest = ca.fmin(smallest, pivot)
        return e.state, self.z, ca.densify(ca.vertcat(smallest**2, *rows)), None

    def pieces(self, _):
        """Of a large general problem: the nonzeros of GB, those of GBE, and G f + γ."""
        e = self.e
        entries = [matrix.nz[:] for matrix in (self.GB, self.GBE)]
        return e.state, self.z, ca.densify(ca.vertcat(*entries, e.C @ e.f + e.gamma)), None

    @cached_property
    def GB(self) -> ca.SX:
        return self.e.C @ ca.sparsify(self.e.B)

    @cached_property
    def GBE(self) -> ca.SX:
        return self.GB if self.E == "identity" else self.GB @ self._matrix

    def stiffness(self, _):
        e = self.e
        if self.srm.variant == "underlying" and e.order == 2:
            matrix = e.C @ e.C.T
        elif self.E == "inverse":
            matrix = ca.SX.eye(e.m)
        else:
            matrix = e.C @ ca.horzcat(*[self.BEu(column) for column in ca.horzsplit(ca.SX.eye(e.m))])
        return e.state, self.z, ca.densify(ca.reshape(matrix.T, e.m * e.m, 1)), None

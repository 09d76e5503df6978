"""Hamilton's form of the equations, for methods that are symplectic: positions q and momenta p = M(t, q) v.

    q′ = M⁻¹ p,     p′ = φ(t, q, v) − Gᵀ λ,     φ = f + Ṁ v,     0 = g(t, q)

φ is −∂H/∂q plus whatever does not come from a potential: the inertial terms in f and Ṁ v leave ½ ∂(vᵀ M
v)/∂q. One step of RATTLE from (q₀, v₀) to (q₁, v₁), with the velocities a and b that belong to the momentum
in the middle of it at both ends ((1.26) in section VII.1 of Hairer, Lubich & Wanner, for momenta):

    M₀ (a − v₀) = h/2 φ(t₀, q₀, a) − G₀ᵀ Λ,     M₁ b = M₀ a,     q₁ − q₀ = h/2 (a + b),     0 = g(t₁, q₁)
    M₁ (v₁ − b) = h/2 φ(t₁, q₁, b) − G₁ᵀ μ,     0 = w(t₁, q₁, v₁)

First-order states whose rates do not depend on them, s′ = r(t, q, v), move with the positions: s₁ − s₀ =
h/2 (r(t₀, q₀, a) + r(t₁, q₁, b)).

Where M is constant and f does not depend on v, the step is *explicit* up to the constraints: a = b, and h/2
M⁻¹f₀ is known.  It may be replaced there by h/2 times the acceleration at the beginning, which differs from
it by a combination of the columns of M⁻¹G₀ᵀ and so leaves only a small Λ.

Both halves are small systems of equations F(X) = 0, `Stage`, with exact Newton matrices
(:mod:`holonome.formulations.stage`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca

from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.stage import Stage, StageKernels, column_of_nonzeros


@dataclass(frozen=True)
class Hamiltonian(Formulation):
    """Positions and momenta, for :class:`Rattle`.

    References
    ----------
    E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration, Springer 2006, section VII.1.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum, method = hn.mechanisms.pendulum(), hn.Method(hn.Hamiltonian(), hn.Rattle(step=0.01))
    >>> sol = hn.solve(pendulum.system, (0, 100), pendulum.q0, pendulum.v0, method=method)
    >>> sol.success, sol.steps, sol.drift[0] < 1e-13
    (True, 10000, True)
    """

    offers: ClassVar[tuple[str, ...]] = ("momentum",)

    def refuses(self, system: Any) -> str | None:
        reason = _reason(system) if system.mechanical else None
        return reason and f"Rattle {reason}"

    def momentum(self, system: Any) -> MomentumKernels:
        """Machine code for the two halves of a step."""
        return system.compiled.once(("momentum", self), lambda: MomentumKernels(system))


_INSTEAD = "use 'auto' or 'bdf'"


def _reason(system: Any) -> str | None:
    """What stands against a step from positions and momenta."""
    model = system.model
    if not system.n:
        return f"needs positions and momenta, and an ODE has neither; {_INSTEAD}"
    if ca.depends_on(ca.vertcat(ca.vec(model.M), model.g, model.r), model.s):
        return (
            "needs first-order states that are integrals along the motion: rates, masses and constraints "
            f"must not depend on them; {_INSTEAD}"
        )
    if model.h.numel():
        return f"needs position constraints; velocity constraints leave no symplectic flow; {_INSTEAD}"
    if model.I.numel():
        return "keeps what its flow keeps, and cannot be held to an invariant; leave that out"
    if model.lam.numel():
        return f"needs forces that do not depend on lam; {_INSTEAD}"
    return _not_traced(system)


def _not_traced(system: Any) -> str | None:
    """Implicit steps evaluate functions at both ends at once, which only expressions allow."""
    for role, function in system.functions.items():
        if function.supplied is not None and "v" in function.arguments:
            return f"needs {role} as an expression where it depends on v, and it cannot be traced; {_INSTEAD}"
    if (system.supplied or system.unknowns) and is_implicit(system.model):
        what = "functions that cannot be traced" if system.supplied else "unknowns w"
        return f"needs a constant M and forces that do not depend on v where there are {what}; {_INSTEAD}"
    return None


def is_implicit(model: Model) -> bool:
    """Whether M varies or forces depend on v, so that the momentum in the middle is the root of equations."""
    return ca.depends_on(model.M, ca.vertcat(model.t, model.q, model.u)) or ca.depends_on(model.f, model.v)


class MomentumKernels:
    """The stages of a step, with the memory that they work on.

    half      y = (q₁, b, s, Λ, a;  q₀, carry, v₀, t₀, s₀, C₀, M₀),  z = (h, e):  X = (q₁, b, Λ, a), without a
              where the step is explicit; v₀ is then v₀ + h/2 a₀, and M₀ is left out
    end       y = (q₁, b, s₁, v₁, μ),  z = (h/2, e):  X = (v₁, μ), where the step is implicit
    gradient  out = (C, M), their nonzeros, at both ends
    rates     out = s′

    e is added to the diagonal of the rows of constraints, very large for those that follow from others.
    """

    def __init__(self, system: Any) -> None:
        model = system.model
        self.system, self.implicit = system, is_implicit(model)
        n, m = model.n, model.rows
        self.entries = model.C.nnz() + (model.M.nnz() if self.implicit else 0)
        self.unknowns = 3 * n + m if self.implicit else 2 * n + m
        self.half = StageKernels(system, "momentum: half", self._half)
        self.end = StageKernels(system, "momentum: end", self._end) if self.implicit else None

    @property
    def rates(self) -> int:
        """Address of the kernel for s′."""

        def build(model: Model):
            return model.y, ca.SX(0, 1), ca.densify(model.r), None

        return self.system.kernel("momentum: rates", build).address

    @property
    def gradient(self) -> int:
        """Address of the kernel for what a step needs of the matrices at its beginning."""

        def build(model: Model):
            values = [column_of_nonzeros(model.C)]
            if self.implicit:
                values.append(column_of_nonzeros(model.M))
            return model.y, ca.SX(0, 1), ca.vertcat(*values), None

        return self.system.kernel("momentum: gradient", build).address

    def _half(self, model: Model) -> Stage:
        n, m = model.n, model.rows
        q, b, lam, a, q0, carry, v0 = (
            ca.SX.sym(name, size)
            for name, size in zip(("q", "b", "L", "a", "q0", "c", "v0"), (n, n, m, n, n, n, n), strict=True)
        )
        t0, h, s0 = ca.SX.sym("t0"), ca.SX.sym("h"), ca.SX.sym("s0", model.states)
        entries = ca.SX.sym("C0", model.C.nnz())
        C0 = ca.SX(model.C.sparsity(), entries)
        g, C = _at(model, model.g, q, b), _at(model, model.C, q, b)
        none = ca.SX(m, m)
        if not self.implicit:
            M = model.M
            F = ca.vertcat((q - q0) - (h * b + carry), M @ (b - v0) + C0.T @ lam, g)
            J = ca.blockcat(
                [
                    [ca.SX.eye(n), -h * ca.SX.eye(n), ca.SX(n, m)],
                    [ca.SX(n, n), M, C0.T],
                    [C, ca.SX(m, n), none],
                ]
            )
            y = ca.vertcat(q, b, model.s, lam, a, q0, carry, v0, t0, s0, entries)
            return Stage(ca.vertcat(q, b, lam), y, h, ca.sparsify(J), F, range(2 * n, 2 * n + m))
        mass_entries = ca.SX.sym("M0", model.M.nnz())
        M0 = ca.SX(model.M.sparsity(), mass_entries)
        M, phi = _at(model, model.M, q, b), model.f + model.inertial[0]
        phi = ca.substitute(phi, ca.vertcat(model.t, model.y), ca.vertcat(t0, q0, a, s0))
        F = ca.vertcat(
            (q - q0) - (h / 2 * (a + b) + carry),
            M @ b - M0 @ a,
            g,
            M0 @ (a - v0) - h / 2 * phi + C0.T @ lam,
        )
        X = ca.vertcat(q, b, lam, a)
        known = ca.vertcat(q0, carry, v0, t0, s0, entries, mass_entries)
        y = ca.vertcat(q, b, model.s, lam, a, known)
        return Stage(X, y, h, ca.jacobian(F, X), F, range(2 * n, 2 * n + m))

    def _end(self, model: Model) -> Stage:
        n, m = model.n, model.rows
        b, v1, mu, h = model.v, ca.SX.sym("v1", n), ca.SX.sym("mu", m), ca.SX.sym("h")
        phi, w = model.f + model.inertial[0], ca.substitute(model.w, model.v, v1)
        C = ca.substitute(model.C, model.v, v1)
        F = ca.vertcat(model.M @ (v1 - b) - h * phi + C.T @ mu, w)
        J = ca.blockcat([[model.M, C.T], [C, ca.SX(m, m)]])
        X = ca.vertcat(v1, mu)
        return Stage(X, ca.vertcat(model.y, X), h, ca.sparsify(J), F, range(n, n + m))


def _at(model: Model, x: ca.SX, q: ca.SX, v: ca.SX) -> ca.SX:
    return ca.substitute(x, ca.vertcat(model.q, model.v), ca.vertcat(q, v))

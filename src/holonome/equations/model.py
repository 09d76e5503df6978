"""The equations of a system as expressions: what the user stated, and the derivatives that methods need.

    M(t, q) v′ = f(t, q, v) − Cᵀ λ
    0 = g(t, q)                 position constraints
    0 = h(t, q, v)              velocity constraints, linear in v: A(q) v − b

Elastic elements are part of f: f = f_rest − c_qᵀ (K c + D c′), with deformations c(t, q) and
c′ = c_q v + c_t.

A system may have four more things:

- first-order states s with s′ = r(t, q, v, s, …);
- unknowns u with 0 = k(t, q, u), on which all functions may depend: they are solved for inside every
  evaluation (:mod:`holonome.machine.inner_newton`), and derivatives are total ones, with u_q = −k_u⁻¹ k_q;
- forces that depend on λ;
- invariants I(t, q, v, s), which keep their initial values.

On the velocity level both constraints together read 0 = w(t, q, v) = (G v + g_t, h), and differentiated once
more C v′ + γ = 0 with C = ∂w/∂v, D = ∂w/∂q, γ = D v + ∂w/∂t.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca

from holonome.locks import cached_property


@dataclass(frozen=True, eq=False)
class Elements:
    """Deformations c(t, q) of all elastic elements, their stiffness K and damping D, and ``rest``, the forces
    of the system without them.
    """

    c: ca.SX
    K: ca.SX
    D: ca.SX
    rest: ca.SX

    def rate(self, model: Model) -> ca.SX:
        """c′ along the motion."""
        return ca.jtimes(self.c, model.q, model.v) + ca.jacobian(self.c, model.t)

    def force(self, model: Model) -> ca.SX:
        return -ca.jacobian(self.c, model.q).T @ (self.K @ self.c + self.D @ self.rate(model))

    @property
    def energy(self) -> ca.SX:
        return ca.dot(self.c, self.K @ self.c) / 2


@dataclass(frozen=True, eq=False)
class Model:
    """Symbols and expressions; ``given`` holds derivatives that are not taken from the expressions but
    supplied (of functions that cannot be traced), ``slopes`` symbols of supplied values with their
    derivatives with respect to q and v.
    """

    t: ca.SX
    q: ca.SX
    v: ca.SX
    p: ca.SX
    M: ca.SX
    f: ca.SX
    g: ca.SX
    h: ca.SX
    V: ca.SX | None = None
    given: Mapping[str, ca.SX] = field(default_factory=dict)
    slopes: Sequence[tuple[ca.SX, ca.SX, ca.SX]] = ()
    elastic: Elements | None = None
    s: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    r: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    u: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    k: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    lam: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    I: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    I_start: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    damping: ca.SX = field(default_factory=lambda: ca.SX(2, 1))

    @property
    def y(self) -> ca.SX:
        """Positions, velocities and first-order states: the state that kernels are given."""
        return ca.vertcat(self.q, self.v, self.s)

    @property
    def states(self) -> int:
        """Number of first-order states."""
        return self.s.numel()

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return self.q.numel()

    @property
    def position_rows(self) -> int:
        return self.g.numel()

    @property
    def rows(self) -> int:
        """Number of all constraint rows, so of multipliers."""
        return self.g.numel() + self.h.numel()

    @cached_property
    def G(self) -> ca.SX:
        return self._choose("G", lambda: self.by_q(self.g))

    @cached_property
    def _w_position(self) -> ca.SX:
        return self.G @ self.v + self._choose("g_t", lambda: self.by_t(self.g))

    @cached_property
    def w(self) -> ca.SX:
        return ca.vertcat(self._w_position, self.h)

    @cached_property
    def C(self) -> ca.SX:
        return ca.vertcat(self.G, self._choose("A", lambda: ca.jacobian(self.h, self.v)))

    @cached_property
    def D(self) -> ca.SX:
        return ca.vertcat(
            self._choose("D_g", lambda: self.by_q(self._w_position)),
            self._choose("D_h", lambda: self.by_q(self.h)),
        )

    @cached_property
    def gamma(self) -> ca.SX:
        return ca.vertcat(
            self._choose("gamma_g", lambda: self.along_the_motion(self._w_position)),
            self._choose("gamma_h", lambda: self.along_the_motion(self.h)),
        )

    @cached_property
    def inertial(self) -> tuple[ca.SX, ca.SX]:
        """Ṁ v and −½ ∂(vᵀ M v)/∂q, whose sum are the inertial terms c of Lagrange's equations."""
        momentum = self.M @ self.v
        return self.along_the_motion(momentum), -self.by_q(ca.dot(self.v, momentum)).T / 2

    @cached_property
    def u_q(self) -> ca.SX:
        return -ca.solve(ca.jacobian(self.k, self.u), ca.jacobian(self.k, self.q))

    @cached_property
    def u_t(self) -> ca.SX:
        return -ca.solve(ca.jacobian(self.k, self.u), ca.jacobian(self.k, self.t))

    @cached_property
    def I_y(self) -> ca.SX:
        """∂I/∂(q, v, s)."""
        return ca.horzcat(self.by_q(self.I), ca.jacobian(self.I, self.v), ca.jacobian(self.I, self.s))

    def by_supplied_values(self, x: ca.SX) -> ca.SX:
        """What supplied values add to the derivative of an expression with respect to (q, v)."""
        slopes = list(self.slopes)
        if "G" in self.given:
            slopes.append((self.g, self.G, ca.SX(self.g.numel(), self.n)))
        if "A" in self.given:
            slopes.append((self.h, self.given["D_h"], self.given["A"]))
        return sum(
            (ca.jacobian(x, values) @ ca.horzcat(by_q, by_v) for values, by_q, by_v in slopes),
            ca.SX(x.numel(), 2 * self.n),
        )

    def by_q(self, x: ca.SX) -> ca.SX:
        """Derivative with respect to q, the unknowns following."""
        partial = ca.jacobian(x, self.q)
        return partial + ca.jacobian(x, self.u) @ self.u_q if self.u.numel() else partial

    def by_t(self, x: ca.SX) -> ca.SX:
        """Derivative with respect to t, the unknowns following."""
        partial = ca.jacobian(x, self.t)
        return partial + ca.jacobian(x, self.u) @ self.u_t if self.u.numel() else partial

    def along_the_motion(self, x: ca.SX) -> ca.SX:
        """Derivative with respect to time at constant v."""
        rate = ca.jtimes(x, self.q, self.v) + ca.jacobian(x, self.t)
        return rate + ca.jtimes(x, self.u, self.u_q @ self.v + self.u_t) if self.u.numel() else rate

    def _choose(self, name: str, derive) -> ca.SX:
        return self.given[name] if name in self.given else derive()

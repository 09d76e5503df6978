"""The terms of a mechanism's equations by CasADi, many times faster than in the complex plane."""

from __future__ import annotations

import math

import casadi as ca
import numpy as np

from random_systems.mechanisms import Mechanism
from random_systems.symbols import Symbol, expression, symbols


class Buffered:
    """A function of vectors whose arguments and values stay where they are in memory."""

    def __init__(self, inputs: list[ca.SX], outputs: list[ca.SX]) -> None:
        function = ca.Function("terms", inputs, outputs)
        self.buffer, self.trigger = function.buffer()
        self.inputs = [np.zeros(x.numel()) for x in inputs]
        self.flat = [np.zeros(x.numel()) for x in outputs]
        for i, array in enumerate(self.inputs):
            self.buffer.set_arg(i, array.data)
        for i, array in enumerate(self.flat):
            self.buffer.set_res(i, array.data)
        self.outputs = [a.reshape(x.shape, order="F") for a, x in zip(self.flat, outputs, strict=True)]

    def __call__(self, *given) -> list[np.ndarray]:
        for array, value in zip(self.inputs, given, strict=True):
            array[:] = value
        self.trigger()
        return self.outputs


class CompiledTerms:
    """M, C, γ, the force as a function of λ, and the rate of the states; see Motion.terms."""

    def __init__(self, part: Mechanism, inertial: bool, rows: int) -> None:
        t, q, v = ca.SX.sym("t"), ca.SX.sym("q", part.n), ca.SX.sym("v", part.n)
        s, w = ca.SX.sym("s", len(part.states)), ca.SX.sym("w", len(part.unknowns))
        lam = ca.SX.sym("lam", rows)
        self.unknowns = bool(part.unknowns)
        # w(q) is defined by w + 0.3 sin w = q₀.
        slope = (
            ca.horzcat(1 / (1 + 0.3 * ca.cos(w)), ca.SX(1, part.n - 1)) if self.unknowns else ca.SX(0, part.n)
        )
        by_q = lambda x: ca.jacobian(x, q) + ca.jacobian(x, w) @ slope  # noqa: E731
        rate = lambda x: ca.jacobian(x, t) + by_q(x) @ v  # noqa: E731
        at, Q, V, S, W = Symbol(t), symbols(q), symbols(v), symbols(s), symbols(w)

        M = expression(part.mass(at, Q))
        C, gamma = ca.SX(0, part.n), ca.SX(0, 1)
        if part.constraint:
            g = expression(part.constraint(at, Q, W))
            C, gamma = by_q(g), rate(rate(g))
        if part.velocity:
            row = expression(part.velocity(at, Q, V))
            C, gamma = ca.vertcat(C, ca.jacobian(row, v)), ca.vertcat(gamma, rate(row))
        force = expression(part.force(at, Q, V, S, W, symbols(lam)))
        if inertial:
            force -= rate(M @ v) - 0.5 * ca.jacobian(v.T @ M @ v, q).T
        if part.elastic:
            deformation, stiffness, damping = part.elastic
            c = expression(deformation(at, Q))
            force -= ca.jacobian(c, q).T * (stiffness * c + damping * rate(c))
        further = expression(part.rate(at, Q, V, S)) if part.rate else ca.SX(0, 1)
        dense = [ca.densify(x) for x in (M, C, gamma, further)]
        self.fixed = Buffered([t, q, v, s, w], dense)
        self.force = Buffered([t, q, v, s, w, lam], [ca.densify(force)])

    def __call__(self, t, q, v, s):
        w = solved(q[0]) if self.unknowns else ()
        M, C, gamma, further = self.fixed(t, q, v, s, w)
        return M, C, gamma[:, 0], lambda lam: self.force(t, q, v, s, w, lam)[0], further[:, 0]


def solved(right: float) -> float:
    """The w with w + 0.3 sin w = right, by Newton's method."""
    w = right
    for _ in range(60):
        step = (w + 0.3 * math.sin(w) - right) / (1 + 0.3 * math.cos(w))
        w -= step
        if abs(step) < 1e-15 * (1 + abs(w)):
            break
    return w

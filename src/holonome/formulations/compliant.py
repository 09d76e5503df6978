"""Elastic elements as compliant constraints: the form for smooth motion, for any stiffness.

The forces σ = K c of springs and d = D c′ of dampers are unknowns beside the multipliers, and springs are
stabilised on both levels as Gear, Gupta & Leimkuhler stabilise constraints, with a second multiplier ν that
vanishes as μ does:

    q′ − v + Gᵀ μ + c_qᵀ ν = 0                        M v′ + Cᵀ λ + c_qᵀ (σ + d) − f_rest = 0
    w(t, q, v) = 0                                    g(t, q) = 0
    K (c′ − s′) − σ′ + cj² m B ν = 0                  K (c − s − η B ν/cj) − σ = 0
    D (c′ − cj s(d)) − d = 0

with B = Σ c_q² and A = Σ c_q²/M over the coordinates, m = B/A.  For K → ∞ these are the equations of GGL for
the constraints (g, c) = 0, so the steps tend to those of the rigid limit; for soft elements ν is nearly zero
and they are the ordinary ones.  Newton's matrix takes the stiffness ∂(c_qᵀ σ)/∂q from σ as extrapolated along
the motion.  With σ = K c(q) inside f it would take it from the predicted q, which is off by some e: soft
modes get a spurious stiffness K e, their increments vanish, and the iteration stops or converges falsely.

Elements that repeat each other or a constraint would for K → ∞ leave σ and ν to chance.  So there is a spring
in series with each element,

    s(σ) = τ asinh(η A σ / (τ cj²))

which is 1/η times as stiff as inertia is within a step and never yields more than a few τ, a thousandth of
the tolerance of c, under any load.  It and the term η B ν/cj vanish with the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca

from holonome.arguments import check_fields
from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.ggl import GGL
from holonome.formulations.implicit import Residual, at, rate_of_states, residual_of, unknowns

SOFTNESS = 1e-6
"""η: compliance of a spring in series, relative to that of inertia within a step."""

_TINY = 1e-30


@dataclass(frozen=True)
class Compliant(Formulation):
    """Forces of elastic elements as unknowns.  For a system without elements this is GGL with the same error
    test.

    Parameters
    ----------
    error_test
        Which components the error test sees: "q", "qv" or "all".  Only with "q" can steps grow over fast
        oscillations.
    newton_test
        Which components the convergence test of Newton's method sees.
    slack
        τ: how much a spring in series may yield, in units of the tolerance.  0 leaves these springs out; very
        stiff elements must then be independent of each other and of the constraints.

    References
    ----------
    J. Yen, L. Petzold, An efficient Newton-type iteration for the numerical solution of highly oscillatory
    constrained multibody dynamic systems, SIAM J. Sci. Comput. 19 (1998): the problem.

    Examples
    --------
    A mass on a very stiff spring, loaded by its weight: the slow motion is to hang still.

    >>> import holonome as hn
    >>> hanging = hn.System(1.0, [-9.81], elastic=hn.Elastic(lambda q: q[0], stiffness=1e12), names=["x"])
    >>> sol = hn.solve(hanging, (0, 10), [-9.81e-12], method=hn.Method(hn.Compliant(), hn.BDF(max_order=2)))
    >>> sol.success, sol.steps < 100
    (True, True)
    """

    error_test: str = "q"
    newton_test: str = "q"
    slack: float = 1e-3
    offers: ClassVar[tuple[str, ...]] = ("residual",)
    for_bdf: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def residual(self, model: Model) -> Residual:
        elastic = model.elastic
        if elastic is None:
            return GGL(self.error_test).residual(model)
        n, mg, rows = model.n, model.position_rows, elastic.c.numel()
        damped = [i for i in range(rows) if not elastic.D[i, :].is_zero()]
        Y, dY, y, dy = unknowns(model, mu=mg, sigma=rows, nu=rows, d=len(damped))
        cj, tolerance = ca.SX.sym("cj"), ca.SX.sym("tolerance", n)
        sigma, nu, d = y["sigma"], y["nu"], y["d"]
        c, rate, K, D = (
            at(model, elastic.c, y),
            at(model, elastic.rate(model), y),
            elastic.K,
            elastic.D[damped, damped],
        )
        c_q, M = ca.jacobian(c, y["q"]), at(model, model.M, y)
        mass = ca.diag(M)
        A, B = c_q**2 @ (mass / (mass**2 + _TINY**2)), ca.sum2(c_q**2)
        effective_mass = (B + _TINY) / (A + _TINY)
        s = self._series(A / cj**2, ca.sqrt(c_q**2 @ tolerance**2))
        F = ca.vertcat(
            dy["q"] - y["v"] + at(model, model.G, y).T @ y["mu"] + c_q.T @ nu,
            M @ dy["v"]
            + at(model, model.C, y).T @ y["lam"]
            + c_q.T @ (sigma + _spread(d, damped, rows))
            - at(model, elastic.rest, y),
            rate_of_states(model, y, dy),
            at(model, model.w, y),
            at(model, model.g, y),
            K @ (rate - ca.jtimes(s(sigma), sigma, dy["sigma"]))
            - dy["sigma"]
            + cj**2 * effective_mass * (B + _TINY) * nu,
            K @ (c - s(sigma) - SOFTNESS * B * nu / cj) - sigma,
            (D @ (rate - cj * s(_spread(d, damped, rows)))[damped] - d) if damped else ca.SX(0, 1),
        )
        initial = ca.vertcat(ca.SX(mg, 1), K @ c, ca.SX(rows, 1), D @ rate[damped] if damped else ca.SX(0, 1))
        multipliers, others = model.rows + mg, {"cj": cj, "tolerance": tolerance, "initial": initial}
        return residual_of(model, Y, dY, F, self.error_test, self.newton_test, multipliers, **others)

    def _series(self, inertia: ca.SX, tolerance: ca.SX) -> Callable[[ca.SX], ca.SX]:
        """The law s(σ) of the springs in series, from the inertial compliance A/cj² and c's tolerance."""
        tau = self.slack * tolerance + _TINY**2
        return lambda force: (
            tau * ca.asinh(SOFTNESS * inertia * force / tau) if self.slack else ca.SX(force.numel(), 1)
        )


def _spread(d: ca.SX, damped: list[int], rows: int) -> ca.SX:
    """Forces of the dampers at the places of their elements among all."""
    whole = ca.SX(rows, 1)
    for number, row in enumerate(damped):
        whole[row] = d[number]
    return whole

"""Index 1, (1.5) of Eich 1993: accelerations and multipliers as unknowns; and Baumgarte's stabilisation of
it.

    q′ − v = 0,     v′ − a = 0,     M a + Cᵀ λ − f = 0,     C a + γ + 2α w + β² g = 0

α = β = 0 is plain index 1, whose constraints drift.  (For velocity constraints the term β² is absent.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import casadi as ca
import numpy as np

from holonome.arguments import ARGUMENTS, check_fields, read
from holonome.dynamics.kernels import unprojected_derivative
from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.implicit import Residual, at, rate_of_states, tested, unknowns
from holonome.problem.system import System


@dataclass(frozen=True)
class Index1(Formulation):
    """Constraints on the acceleration level.

    Parameters
    ----------
    alpha, beta
        Baumgarte's parameters; equal ones damp a violation critically, with time constant 1/α.  None takes
        five steps as time constant, or, where the steps are chosen by the tolerances, a two-hundredth of the
        run.
    error_test
        Which components the error test sees: "q", "qv" or "all".

    References
    ----------
    E. Eich, Convergence results for a coordinate projection method applied to mechanical systems with
    algebraic constraints, SIAM J. Numer. Anal. 30 (1993).

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> drifts = hn.solve(
    ...     pendulum.system, (0, 100), pendulum.q0, pendulum.v0,
    ...     method=hn.Method(hn.Index1(), hn.BDF()),
    ... )
    >>> held = hn.solve(
    ...     pendulum.system, (0, 100), pendulum.q0, pendulum.v0,
    ...     method=hn.Method(hn.CoordinateProjection(hn.Index1()), hn.BDF()),
    ... )
    >>> drifts.drift[0] > 1e-4, held.drift[0] < 1e-14
    (True, True)
    """

    alpha: float | None = 0.0
    beta: float | None = 0.0
    error_test: str = "qv"
    offers: ClassVar[tuple[str, ...]] = ("residual", "rate")
    drifts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def for_run(self, span: float, step: float) -> Index1:
        """α and β as numbers, with the sign that damps in the direction of the run."""
        alpha, beta = self.alpha, self.beta
        if alpha is None or beta is None:
            alpha = beta = 1 / (5 * step if step else abs(span) / 200)
        if not alpha and not beta:
            return self
        return BaumgarteIndex1(alpha if span > 0 else -alpha, beta, self.error_test)

    def rate(self, system: System) -> int:
        return unprojected_derivative(system, self.damping is not None)

    def parameters(self, model: Model) -> tuple[ca.SX | float, ca.SX | float]:
        """α and β in the equations."""
        if self.alpha is None or self.beta is None:
            raise ValueError("alpha: None is replaced by solve(), which knows the step; give a number here")
        return self.alpha, self.beta

    def with_projection(self, wanted: bool) -> Formulation:
        from holonome.formulations.coordinate_projection import (
            CoordinateProjection,  # which builds on this form
        )

        return CoordinateProjection(self) if wanted else self

    def residual(self, model: Model) -> Residual:
        alpha, beta = self.parameters(model)
        n, m, mg, state = model.n, model.rows, model.position_rows, model.y.numel()
        Y, dY, y, dy = unknowns(model, a=n)
        C = at(model, model.C, y)
        level = (
            at(model, model.gamma, y)
            + 2 * alpha * at(model, model.w, y)
            + beta**2 * ca.vertcat(at(model, model.g, y), ca.SX(m - mg, 1))
        )
        F = ca.vertcat(
            dy["q"] - y["v"],
            dy["v"] - y["a"],
            rate_of_states(model, y, dy),
            C @ y["a"] + level,
            at(model, model.M, y) @ y["a"] + C.T @ y["lam"] - at(model, model.f, y),
        )
        size = Y.numel()
        groups = range(state), range(state + m, size), range(state, state + m)
        row_powers = np.concatenate([np.full(state, -1.0), np.zeros(m + n)])
        return Residual(
            Y,
            dY,
            F,
            groups,
            tested(self.error_test, model, size),
            tested("qv", model, size),
            m,
            row_powers,
            np.zeros(size),
            accelerations=True,
        )


@dataclass(frozen=True)
class BaumgarteIndex1(Index1):
    """Baumgarte's stabilisation in a run.  α and β are part of its context, so that runs with others share
    all code: they are equal.
    """

    alpha: float = field(default=0.0, compare=False, repr=False)
    beta: float = field(default=0.0, compare=False, repr=False)

    @property
    def damping(self) -> tuple[float, float]:  # type: ignore[override]
        return self.alpha, self.beta

    def parameters(self, model: Model) -> tuple[ca.SX, ca.SX]:
        return model.damping[0], model.damping[1]


def Baumgarte(alpha: float | None = None, beta: float | None = None, error_test: str = "qv") -> Index1:
    """Index 1 with Baumgarte's stabilisation; by default α = β, with a time constant of a few steps.

    References
    ----------
    J. Baumgarte, Stabilization of constraints and integrals of motion in dynamical systems, Comput. Methods
    Appl. Mech. Eng. 1 (1972).

    Examples
    --------
    >>> import holonome as hn
    >>> hn.Baumgarte(alpha=20.0)
    Index1(alpha=20.0, beta=20.0, error_test='qv')
    """
    alpha = read(ARGUMENTS["Baumgarte.alpha"], "alpha", alpha)
    return Index1(alpha, alpha if beta is None else beta, error_test)

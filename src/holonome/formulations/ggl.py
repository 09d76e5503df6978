"""Gear, Gupta & Leimkuhler's stabilised index 2, (1.3) of Yen & Petzold 1996: both levels at once, with a
second multiplier μ that vanishes.

q′ − v + Gᵀ μ = 0,     M v′ + Cᵀ λ − f = 0,     w(t, q, v) = 0,     g(t, q) = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import casadi as ca

from holonome.arguments import check_fields
from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.implicit import (
    ImplicitKernels,
    Residual,
    at,
    balance,
    rate_of_states,
    residual_of,
    unknowns,
)
from holonome.problem.system import System


@dataclass(frozen=True)
class GGL(Formulation):
    """Stabilised index 2.

    Parameters
    ----------
    error_test
        Which components the error test sees: "q", "qv" or "all"; with ``predict_multipliers`` also "x" or
        "xw", the independent coordinates (and their velocities).
    newton_test
        Which components the convergence test sees; "all" includes the multipliers.
    predict_multipliers
        Start λ and μ of each step from the residuals r₁ = v − q′ and r₂ = f − M v′ of the predicted motion,
        by the pseudo-inverse (GY)⁻ᵀYᵀ of Gᵀ, instead of extrapolating them.  With ``newton_test="qv"`` this
        is GGL* of Yen & Petzold, section 5.2; Y is the split of
        :mod:`holonome.formulations.coordinate_split`.

    References
    ----------
    C. W. Gear, B. Leimkuhler, G. K. Gupta, Automatic integration of Euler–Lagrange equations with
    constraints, J. Comput. Appl. Math. 12 (1985).

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> sol = hn.solve(
    ...     pendulum.system, (0, 10), pendulum.q0, pendulum.v0,
    ...     method=hn.Method(hn.GGL(error_test="q"), hn.BDF()),
    ... )
    >>> sol.success, sol.drift[0] < 1e-6
    (True, True)
    """

    error_test: str = "qv"
    newton_test: str = "qv"
    predict_multipliers: bool = False
    offers: ClassVar[tuple[str, ...]] = ("residual",)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.independent and not self.predict_multipliers:
            raise ValueError(
                f"error_test: {self.error_test!r} needs the split of the coordinates, so "
                "predict_multipliers=True"
            )

    def residual(self, model: Model) -> Residual:
        mg = model.position_rows
        Y, dY, y, dy = unknowns(model, mu=mg)
        F = ca.vertcat(
            dy["q"] - y["v"] + at(model, model.G, y).T @ y["mu"],
            balance(model, y, dy["v"]),
            rate_of_states(model, y, dy),
            at(model, model.w, y),
            at(model, model.g, y),
        )
        error_test = "all" if self.independent else self.error_test
        return residual_of(model, Y, dY, F, error_test, self.newton_test, model.rows + mg)

    def kernels(self, system: System) -> ImplicitKernels:
        if not self.predict_multipliers:
            return ImplicitKernels(system, repr(self), self.residual)
        from holonome.formulations.coordinate_split import (
            PredictionKernels,  # which itself builds on this form
        )

        return PredictionKernels(
            system, repr(self), self.residual, self.error_test if self.independent else ""
        )

    @property
    def for_bdf(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.predict_multipliers

    @property
    def independent(self) -> bool:
        """Whether the error test sees the independent coordinates only."""
        return self.error_test in ("x", "xw")

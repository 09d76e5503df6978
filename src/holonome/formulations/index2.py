"""Index 2: the constraints are imposed on the velocities; positions drift.

q′ − v = 0,     M v′ + Cᵀ λ − f = 0,     w(t, q, v) = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import casadi as ca

from holonome.arguments import check_fields
from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.implicit import Residual, at, equations_of_motion, residual_of, unknowns


@dataclass(frozen=True)
class Index2(Formulation):
    """Constraints on the velocity level.

    Parameters
    ----------
    error_test
        Which components the error test sees: "q", "qv" or "all".

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> sol = hn.solve(
    ...     pendulum.system, (0, 100), pendulum.q0, pendulum.v0,
    ...     method=hn.Method(hn.Index2(), hn.BDF()),
    ... )
    >>> position, velocity = sol.drift
    >>> position > 10 * velocity
    True
    """

    error_test: str = "qv"
    offers: ClassVar[tuple[str, ...]] = ("residual",)
    drifts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def residual(self, model: Model) -> Residual:
        Y, dY, y, dy = unknowns(model)
        F = ca.vertcat(
            equations_of_motion(model, y, dy),
            at(model, model.w, y),
        )
        return residual_of(model, Y, dY, F, self.error_test, "qv", model.rows)

"""Index 2: the constraints are imposed on the velocities; positions drift.

q′ − v = 0,     M v′ + Cᵀ λ − f = 0,     w(t, q, v) = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np

from holonome.arguments import check_fields
from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.implicit import Residual, at, rate_of_states, tested, unknowns


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
        m, state = model.rows, model.y.numel()
        Y, dY, y, dy = unknowns(model)
        F = ca.vertcat(
            dy["q"] - y["v"],
            at(model, model.M, y) @ dy["v"] + at(model, model.C, y).T @ y["lam"] - at(model, model.f, y),
            rate_of_states(model, y, dy),
            at(model, model.w, y),
        )
        return Residual(
            Y,
            dY,
            F,
            (range(state), range(state, Y.numel())),
            tested(self.error_test, model, Y.numel()),
            tested("qv", model, Y.numel()),
            m,
            np.concatenate([np.full(state, -1.0), np.zeros(m)]),
            np.concatenate([np.zeros(state), np.ones(m)]),
        )

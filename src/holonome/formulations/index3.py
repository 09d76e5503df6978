"""The equations as they stand, (1.1) of Yen & Petzold 1996: index 3.

q′ − v = 0,     M v′ + Cᵀ λ − f = 0,     g(t, q) = 0,     h(t, q, v) = 0
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
class Index3(Formulation):
    """The unmodified equations of index 3; variable steps are safe at low order only.

    Parameters
    ----------
    error_test
        Which components the error test and the convergence test see: "q", "qv" or "all".

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> sol = hn.solve(
    ...     pendulum.system, (0, 10), pendulum.q0, pendulum.v0,
    ...     method=hn.Method(hn.Index3(), hn.BDF(max_order=2)),
    ... )
    >>> position, velocity = sol.drift
    >>> velocity > 100 * position
    True
    """

    error_test: str = "q"
    offers: ClassVar[tuple[str, ...]] = ("residual",)

    def __post_init__(self) -> None:
        check_fields(self)

    def residual(self, model: Model) -> Residual:
        n, m, k, state = model.n, model.rows, model.states, model.y.numel()
        Y, dY, y, dy = unknowns(model)
        C = at(model, model.C, y)
        F = ca.vertcat(
            dy["q"] - y["v"],
            at(model, model.M, y) @ dy["v"] + C.T @ y["lam"] - at(model, model.f, y),
            rate_of_states(model, y, dy),
            at(model, model.g, y),
            at(model, model.h, y),
        )
        powers = np.concatenate(
            [
                np.full(n, -1.0),
                np.full(n, -2.0),
                np.full(k, -1.0),
                np.zeros(model.position_rows),
                np.full(model.h.numel(), -1.0),
            ]
        )
        return Residual(
            Y,
            dY,
            F,
            (range(state), range(state, Y.numel())),
            tested(self.error_test, model, Y.numel()),
            tested(self.error_test, model, Y.numel()),
            m,
            powers,
            np.concatenate([np.zeros(n), np.ones(n), np.zeros(k), np.full(m, 2.0)]),
        )

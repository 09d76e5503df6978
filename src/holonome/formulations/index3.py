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
from holonome.formulations.implicit import Residual, at, equations_of_motion, residual_of, unknowns


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
        Y, dY, y, dy = unknowns(model)
        F = ca.vertcat(
            equations_of_motion(model, y, dy),
            at(model, model.g, y),
            at(model, model.h, y),
        )
        parts = model.n, model.n, model.states, model.position_rows, model.h.numel()
        powers = {
            "row_powers": np.repeat([-1.0, -2.0, -1.0, 0.0, -1.0], parts),
            "column_powers": np.repeat([0.0, 1.0, 0.0, 2.0, 2.0], parts),
        }
        return residual_of(model, Y, dY, F, self.error_test, self.error_test, model.rows, **powers)

"""Generalised coordinate partitioning, (1.5) of Yen & Petzold 1996, after Wehage & Haug 1982.

Coordinates q = X x + Y y, of which the constraints determine the dependent ones, y = h(x); only x is
integrated,

    M̂(x, h(x)) x″ = f̂

Nothing is inserted: with ν = Yᵀ(v′_true − v′) and μ the same for q, corrections of the dependent coordinates
alone, a step solves

    q′ − v + Y_g μ = 0                         of which Xᵀ says x′ = Xᵀv
    M (v′ + Y ν) + Cᵀ λ − f = 0
    C (v′ + Y ν) + γ = 0                       the acceleration constraints, which have to be formed
    0 = g,    0 = w                            y and y′, inside the iteration

for q, v, λ, μ, ν.  Yᵀ of the first row and of v′ + Y ν only determine μ and ν: what the formula of the
integrator says of dependent coordinates goes there and has no effect.  Newton's matrix is the derivative of
these equations; it is regular as long as C Y is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from holonome.arguments import check_fields, shown
from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.implicit import (
    ImplicitKernels,
    Residual,
    at,
    rate_of_states,
    residual_of,
    unknowns,
)
from holonome.problem.system import System


@dataclass(frozen=True)
class CoordinatePartitioning(Formulation):
    """Generalised coordinate partitioning: independent coordinates are integrated, dependent ones follow from
    the constraints inside the iteration.

    Parameters
    ----------
    dependent
        Names or numbers of the dependent coordinates, as many as constraint rows; those of the position
        constraints first.  The partition stays: where the constraints do not determine these coordinates,
        steps become short and the run ends.

    References
    ----------
    R. A. Wehage, E. J. Haug, Generalized coordinate partitioning for dimension reduction in analysis of
    constrained dynamic systems, J. Mech. Design 104 (1982).

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> sol = hn.solve(
    ...     pendulum.system, (0, 1), [0.6, -0.8], [0, 0],
    ...     method=hn.Method(hn.CoordinatePartitioning(["y"]), hn.BDF()),
    ... )
    >>> sol.success, sol.drift[0] < 1e-6
    (True, True)
    """

    dependent: Sequence[str | int] = ()
    offers: ClassVar[tuple[str, ...]] = ("residual",)

    def __post_init__(self) -> None:
        check_fields(self)

    def refuses(self, system: Any) -> str | None:
        if len(self.dependent) != system.m:
            return (
                f"has {len(self.dependent)} dependent coordinates for {system.m} constraint rows; "
                "name as many as there are rows, dependent=[...]"
            )
        return None

    def kernels(self, system: System) -> ImplicitKernels:
        numbers = _numbers(self.dependent, system)
        return ImplicitKernels(system, repr(self), lambda model: _residual(model, numbers))


def _numbers(dependent: Sequence[str | int], system: System) -> list[int]:
    """The dependent coordinates by number."""
    found = []
    for item in dependent:
        known = item in system.names if isinstance(item, str) else -system.n <= item < system.n
        if not known:
            raise ValueError(
                f"dependent: {shown(item)} is no coordinate of this system; there are "
                f"{', '.join(system.names)}"
            )
        found.append(system.names.index(item) if isinstance(item, str) else int(item) % system.n)
    if len(set(found)) < len(found):
        raise ValueError("dependent: a coordinate is named twice")
    return found


def _residual(model: Model, dependent: list[int]) -> Residual:
    mg, rows = model.position_rows, model.rows
    Y, dY, y, dy = unknowns(model, mu=mg, nu=rows)
    columns = ca.SX.eye(model.n)[:, dependent]
    a = dy["v"] + columns @ y["nu"]
    M, C, f, gamma, w, g = (
        at(model, part, y) for part in (model.M, model.C, model.f, model.gamma, model.w, model.g)
    )
    F = ca.vertcat(
        dy["q"] - y["v"] + columns[:, :mg] @ y["mu"],
        M @ a + C.T @ y["lam"] - f,
        rate_of_states(model, y, dy),
        C @ a + gamma,
        g,
        w,
    )
    found = residual_of(model, Y, dY, F, "qv", "qv", rows + mg)
    found.error_tested[dependent[:mg]] = 0.0
    found.error_tested[np.array(dependent, dtype=int) + model.n] = 0.0
    return found

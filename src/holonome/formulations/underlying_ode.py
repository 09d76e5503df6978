"""The underlying ordinary differential equation, (1.7) of Eich 1993.

    q′ = v,     v′ = a   from   M a + Cᵀ λ = f,   C a = −γ

Explicit methods take its right-hand side from :mod:`holonome.dynamics.kernels`, with the way back to the
manifold; BDF takes the residual below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import casadi as ca
import numpy as np

from holonome.arguments import check_fields
from holonome.dynamics.emitted import Emitted
from holonome.dynamics.kernels import kernels
from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.implicit import Residual, at, rate_of_states, residual_of, unknowns
from holonome.problem.solved_variables import KernelExpressions
from holonome.problem.system import System

LARGEST_DERIVED = 500
"""Coordinates and constraints beyond which the derivatives of the accelerations, which are not sparse, are
too many for BDF.
"""


@dataclass(frozen=True)
class UnderlyingODE(Formulation):
    """Integrate q′ = v, v′ = a(t, q, v) and stay on the manifold by projection.

    Parameters
    ----------
    projection
        After each step q and v return to the manifold.  Without it the constraints drift.

    References
    ----------
    E. Eich, Convergence results for a coordinate projection method applied to mechanical systems with
    algebraic constraints, SIAM J. Numer. Anal. 30 (1993).

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> loose = hn.Method(hn.UnderlyingODE(projection=False), hn.RungeKutta("dop853"))
    >>> sol = hn.solve(pendulum.system, (0, 100), pendulum.q0, pendulum.v0, method=loose)
    >>> sol.drift[0] > 1e-6
    True
    """

    projection: bool = True
    offers: ClassVar[tuple[str, ...]] = ("rate", "residual", "series")

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def projects(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.projection

    @property
    def drifts(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return not self.projection

    def with_projection(self, wanted: bool) -> UnderlyingODE:
        return replace(self, projection=wanted)

    def rate(self, system: System) -> int:
        return kernels(system).derivative

    def motion(self, system: System) -> KernelExpressions:
        return kernels(system).motion

    def residual(self, model: Model) -> Residual:
        """For BDF: q′ − v = 0, v′ − a = 0, λ − λ(t, q, v) = 0."""
        if model.n + model.rows > LARGEST_DERIVED:
            raise ValueError(
                f"method: an implicit method on the underlying ODE is made for up to {LARGEST_DERIVED} "
                f"coordinates and constraints together; this has {model.n + model.rows}. "
                "Use 'bdf' or 'ggl'"
            )
        M = model.M.sparsity()
        without = [i for i in range(model.n) if not M.has_nz(i, i)]
        if without:
            raise ValueError(
                f"method: an implicit method on the underlying ODE needs M⁻¹, but mass[{without[0]}, "
                f"{without[0]}] is zero. Use 'bdf' or 'ggl', or an explicit method"
            )
        emitted = Emitted(model)
        Y, dY, y, dy = unknowns(model)
        F = ca.vertcat(
            dy["q"] - y["v"],
            dy["v"] - at(model, emitted.a, y),
            rate_of_states(model, y, dy),
            y["lam"] - at(model, emitted.implied, y),
        )
        return residual_of(model, Y, dY, F, "qv", "qv", 0, column_powers=np.zeros(Y.numel()))

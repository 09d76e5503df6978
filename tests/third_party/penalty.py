"""The penalty method, as someone outside the package would add it: a formulation.

    M v′ + Gᵀ λ = f,     λ = κ² g + 2 κ g′       (on the velocity level alone: λ = 2 κ w)

A stiff spring and a damper hold every constraint; for κ → ∞ the motion tends to that on the manifold.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import casadi as ca
import numpy as np

import holonome as hn
from holonome.formulations.implicit import at, rate_of_states, tested, unknowns


@dataclass(frozen=True)
class Penalty(hn.Formulation):
    """Constraints held by springs of stiffness κ²."""

    kappa: float = 1e4
    direction: int = 1
    offers: ClassVar[tuple[str, ...]] = ("residual",)
    drifts: ClassVar[bool] = True

    def for_run(self, span, step):
        """Dampers must damp in the direction of the run."""
        return replace(self, direction=1 if span > 0 else -1)

    def refuses(self, system):
        """Springs need something to hold."""
        return None if system.m else "Penalty holds constraints, and this system has none; use 'dop853'"

    def residual(self, model):
        Y, dY, y, dy = unknowns(model)
        state, size = model.y.numel(), Y.numel()
        velocity_rows = ca.SX(model.rows - model.position_rows, 1)
        gap = ca.vertcat(at(model, model.g, y), velocity_rows)
        F = ca.vertcat(
            dy["q"] - y["v"],
            at(model, model.M, y) @ dy["v"] + at(model, model.C, y).T @ y["lam"] - at(model, model.f, y),
            rate_of_states(model, y, dy),
            y["lam"] / self.kappa**2 - gap - 2 * self.direction / self.kappa * at(model, model.w, y),
        )
        groups = (range(state), range(state, size))
        mask = tested("qv", model, size)
        return hn.Residual(
            Y,
            dY,
            F,
            groups,
            mask,
            mask,
            multipliers=0,
            row_powers=np.zeros(size),
            column_powers=np.zeros(size),
        )


METHOD = hn.Method(Penalty(), hn.BDF())

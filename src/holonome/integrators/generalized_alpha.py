"""The generalised-α method: the user's options, and the stepper for a system.

A step is in :mod:`holonome.integrators.generalized_alpha_steps`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from holonome.arguments import check_fields
from holonome.dynamics.kernels import dense_derivative, dense_projection, kernels
from holonome.dynamics.manifold import Saddle
from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.ggl import GGL
from holonome.formulations.implicit import ImplicitKernels, Residual
from holonome.formulations.index3 import Index3
from holonome.integrators import generalized_alpha_steps as alpha_steps
from holonome.integrators.contract import Integrator, Request, Stepper
from holonome.integrators.dense_output import StepOutput
from holonome.integrators.generalized_alpha_state import GeneralizedAlphaState
from holonome.integrators.loop import OWN, RunState
from holonome.integrators.residual_stepper import ResidualStepper


@dataclass(frozen=True)
class GeneralizedAlpha(Integrator):
    """The generalised-α method, of order 2 with damping of fast oscillations that is chosen.

    With :class:`Index3` it is the method that structural dynamics uses for mechanisms; with :class:`GGL`
    velocities satisfy the constraints, too.  Positions satisfy them to rounding.  The oscillations of λ after
    the start, and after changes of the step, are removed by starting values that are moved accordingly, so λ
    is of order 2.

    Parameters
    ----------
    rho_inf
        By what fast oscillations are multiplied in a step: from 1, not at all damped, to 0, gone at once.
    step
        Constant step size; None chooses it by the tolerances.

    References
    ----------
    J. Chung, G. M. Hulbert, A time integration algorithm for structural dynamics with improved numerical
    dissipation: the generalized-α method, J. Appl. Mech. 60 (1993). M. Arnold, O. Brüls, Convergence of the
    generalized-α scheme for constrained mechanical systems, Multibody Syst. Dyn. 18 (2007). M. Arnold, O.
    Brüls, A. Cardona, Error analysis of generalized-α Lie group time integration methods for constrained
    mechanical systems, Numer. Math. 129 (2015).

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> def error(step):
    ...     sol = hn.solve(
    ...         pendulum.system, (0, 1), pendulum.q0, pendulum.v0, t_eval=[0.5, 1.0],
    ...         method=hn.Method(hn.Index3(), hn.GeneralizedAlpha(0.8, step=step)),
    ...     )
    ...     exact = hn.solve(pendulum.system, (0, 1), pendulum.q0, pendulum.v0, t_eval=[0.5, 1.0], rtol=1e-12)
    ...     return abs(sol.lam - exact.lam).max()
    >>> bool(3.8 < error(0.01) / error(0.005) < 4.2)
    True
    """

    rho_inf: float = 0.9
    step: float | None = None
    needs: ClassVar[tuple[str, ...]] = ("residual",)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def label(self) -> str:
        return f"GeneralizedAlpha({self.rho_inf:g})"

    @property
    def coefficients(self) -> dict[str, float]:
        """α_m, α_f, β and γ of Chung & Hulbert, and what follows from them."""
        rho = self.rho_inf
        alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)
        shift = alpha_m - alpha_f
        gamma, beta = 0.5 - shift, 0.25 * (1 - shift) ** 2
        return {
            "alpha_m": alpha_m,
            "alpha_f": alpha_f,
            "beta_q": beta,
            "gamma": gamma,
            "kappa": (1 - alpha_m) * beta / (gamma**2 * (1 - alpha_f)),
            "shift": shift,
            "constant_q": 1 / 6 - beta - shift / 2,
            "constant_v": 1 / 6 - (1 - gamma) * shift**2 / 2 - gamma * (1 + shift) ** 2 / 2,
        }

    def form(self, formulation: Formulation) -> str | None:
        """A residual without projection."""
        return None if formulation.projects else super().form(formulation)

    def refuses(self, formulation: Formulation) -> str | None:
        if formulation.projects:
            name = type(formulation).__name__
            return f"takes steps that do not end with a projection, as those of {name} do"
        return super().refuses(formulation)

    def stepper(self, request: Request) -> Stepper:
        return GeneralizedAlphaStepper(self, request)


_ARNOLD = "Arnold & Brüls, Multibody Syst. Dyn. 18 (2007); Chung & Hulbert, J. Appl. Mech. 60 (1993)"
_STABILISED = "Arnold, Brüls & Cardona, Numer. Math. 129 (2015)"
METHODS = {
    "gen-alpha": (
        Index3("qv"),
        GeneralizedAlpha(),
        "the generalised-α method on index 3, of order 2, with damping that is chosen",
        f"{_ARNOLD}; {_STABILISED}",
    ),
    "gen-alpha-ggl": (
        GGL(),
        GeneralizedAlpha(),
        "the generalised-α method on the stabilised form: velocities satisfy the constraints, too",
        f"{_ARNOLD}; {_STABILISED}",
    ),
}


def with_rates_scaled(residual: Residual, model: Model, kappa: float) -> Residual:
    """The same with κ v′ and κ s′ in place of v′ and s′."""
    n, state = model.n, model.y.numel()
    rates = residual.dY[n:state]
    return replace(residual, F=ca.substitute(residual.F, rates, kappa * rates))


def _normal_part_of_positions(model: Model):
    """In the layout of a projection: e − x with G x = G e and no part along velocity constraints, and δ."""
    n, size = model.n, model.y.numel()
    z = ca.SX.sym("z", size + 1)
    saddle = Saddle(model.C, ca.ldl(model.M))
    x = saddle.onto(-ca.vertcat(model.G @ z[n : 2 * n], ca.SX(model.h.numel(), 1)))
    back = saddle.onto(model.w)
    none, states = ca.SX(n, 1), ca.SX(size - 2 * n, 1)
    out = ca.vertcat(ca.SX(size, 1), none, z[n : 2 * n] - x, states, none, back, states)
    return model.y, z, ca.densify(out), saddle.margin()


class GeneralizedAlphaStepper(ResidualStepper):
    """The generalised-α method on an implicit formulation."""

    advance, evaluate = staticmethod(alpha_steps.advance), staticmethod(alpha_steps.evaluate)
    interpolant, preview = alpha_steps.interpolant, alpha_steps.preview
    output = StepOutput
    layout = GeneralizedAlphaState
    far_side = True
    on_manifold = True

    @property
    def compiled(self) -> ImplicitKernels:
        system, formulation, kappa = self.system, self.formulation, self.integrator.coefficients["kappa"]

        def make() -> ImplicitKernels:
            name = f"{formulation!r}, rates times {kappa!r}"
            return ImplicitKernels(
                system, name, lambda model: with_rates_scaled(formulation.residual(model), model, kappa)
            )

        return system.compiled.once(("generalized alpha", formulation, kappa), make)

    def _own(self) -> list:
        system, size, usual = self.system, self.compiled.size, kernels(self.system)
        n, state = system.n, system.state_size
        fields: dict[str, Any] = self.residual_fields() | self.integrator.coefficients
        fields |= {
            "derivative": usual.derivative,
            "dense_derivative": dense_derivative.address,
            "normal_part": self._normal_part(),
            "dense_normal_part": dense_projection.address,
            "exponent": 1 / 3,
            "yy": 2 * size,
            "now": 2 * size,
            "scratch": size + 3,
            "out": usual.projection_size + state + 4,
            "before": size - n,
            "z": state + 2,
            "rate": state + 1,
            "point": state,
        }
        fields |= dict.fromkeys(("a", "a_used", "a_new", "v_used", "jerk", "slope"), state - n)
        fields |= dict.fromkeys(("delta", "row_scale"), size)
        fields |= dict.fromkeys(("normal", "back"), n) | dict.fromkeys(("f", "f_old"), self.columns)
        return [(GeneralizedAlphaState, fields)]

    def _normal_part(self) -> int:
        """Address of the kernel for the part of the jerk by which velocities are moved in index 3; 0 in other
        forms, which hold velocities on the constraints.

        Where there are velocity constraints, or invariants that projections hold, it is one more kernel.
        """
        system, usual = self.system, kernels(self.system)
        mg = system.model.position_rows
        if not isinstance(self.formulation, Index3) or not mg:
            return 0
        if mg == system.m and not system.invariant_count:
            return usual.projection
        if usual.sparse or usual.dense:
            return 0
        return system.kernel("generalized alpha: normal part", _normal_part_of_positions).address

    def counts(self, memory: np.ndarray) -> dict[str, int]:
        matrices = int(GeneralizedAlphaState.of(memory, OWN)["njev"])
        return {"njev": matrices, "nlu": matrices}

    def cost(self, memory: np.ndarray) -> float:
        run, (evaluation, factorization) = RunState.of(memory), self.compiled.instructions
        return run["nfev"] * evaluation + self.counts(memory)["njev"] * factorization

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        return 4 * self.columns if dense else 0

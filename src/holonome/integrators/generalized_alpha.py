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
from holonome.dynamics.projection import projection_kernels
from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.ggl import GGL
from holonome.formulations.implicit import ImplicitKernels, Residual
from holonome.formulations.index3 import Index3
from holonome.integrators import generalized_alpha_steps as alpha_steps
from holonome.integrators.contract import (
    Beginning,
    DenseOutput,
    Integrator,
    Record,
    Request,
    Stepper,
    initial_multipliers,
    initial_unknowns,
    rows_left_out,
)
from holonome.integrators.generalized_alpha_state import GeneralizedAlphaState
from holonome.integrators.loop import OWN, STEP_COLUMNS, RunState
from holonome.integrators.start_check import check_start
from holonome.machine.context import LEFT_OUT_SHIFT, OK


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
        """A residual whose unknowns are all there is, without projection."""
        plain = type(formulation).kernels is Formulation.kernels
        plain |= isinstance(formulation, GGL) and not formulation.predict_multipliers
        return super().form(formulation) if plain and not formulation.projects else None

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


class GeneralizedAlphaStepper(Stepper):
    """The generalised-α method on an implicit formulation."""

    advance = staticmethod(alpha_steps.advance)
    interpolant = alpha_steps.interpolant
    preview = alpha_steps.preview
    implicit = True
    on_manifold = True

    def __init__(self, integrator: GeneralizedAlpha, request: Request) -> None:
        super().__init__(request)
        self.integrator = integrator
        self.layout_key = (integrator, self.formulation)
        self.columns = self.system.state_size + self.system.m

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
        system, compiled = self.system, self.compiled
        residual, size, state = compiled.residual, compiled.size, system.state_size
        usual = kernels(system)
        rates = state - system.n
        fields: dict[str, Any] = self.integrator.coefficients | {
            "unknowns": size,
            "coordinates": system.n,
            "state": state,
            "rows": system.m,
            "multipliers": residual.multipliers,
            "factor_count": compiled.factor_count,
            "residual": compiled.F,
            "factors_kernel": compiled.factors,
            "solution": compiled.solution,
            "matrix": compiled.matrix,
            "derivative": usual.derivative,
            "dense_derivative": dense_derivative.address,
            "projection": self._normal_part(),
            "dense_projection": dense_projection.address,
            "exponent": 1 / 3,
            "yy": 2 * size,
            "now": 2 * size,
            "error_mask": residual.error_tested,
            "block": compiled.block,
            "factors": compiled.factor_memory,
            "dense": size * size if compiled.matrix else 0,
            "row_shift": residual.multipliers,
            "row_powers": residual.row_powers if len(residual.row_powers) else size,
            "column_powers": residual.column_powers if len(residual.column_powers) else size,
            "scratch": size + 3,
            "projected": usual.projection_size + state + 4,
            "before": size - system.n,
            "f": self.columns,
            "f_old": self.columns,
            "z": state + 2,
            "kept": 2,
        }
        fields |= dict.fromkeys(("a", "a_used", "a_new", "v_used", "jerk", "slope"), rates)
        fields |= dict.fromkeys(("delta", "pivots", "row_scale"), size)
        fields |= {"normal": system.n, "back": system.n, "rate": state + 1, "point": state}
        fields |= dict.fromkeys(("no_error", "moved"), state) | self._projection_fields()
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

    def _projection_fields(self) -> dict[str, Any]:
        """Of the projection between steps, where there is one."""
        system, state = self.system, self.system.state_size
        room = {"projector_z": state + 2, "projector_out": 2 * state + 1}
        if not system.projects or self.formulation.drifts or kernels(system).dense:
            return room
        return room | {"between": projection_kernels(system, "mass", False).projection}

    def begin(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> int:
        """Accelerations and multipliers at the start; or why there are none."""
        self.prepare_context(context)
        t0, y = beginning.t0, beginning.y
        code, rate = check_start(self.system, memory, context, beginning.trusted)
        if code != OK:
            return code
        lam = initial_multipliers(self.system, context, beginning)
        self.left_out, C = rows_left_out(self, context, beginning)
        if C is not None and self.left_out:
            self.prepare_context(context)
            self._leave_out(memory, C, lam)
        start = initial_unknowns(self.system, self.compiled, context, t0, np.concatenate([y, lam]), rate)
        GeneralizedAlphaState.vector(memory, "now", OWN)[:] = start
        begin = self.given[0].start
        memory[begin : begin + self.columns] = start[: self.columns]
        return OK

    def _leave_out(self, memory: np.ndarray, C: np.ndarray, lam: np.ndarray) -> None:
        """Rows that follow from others keep their multipliers, zero; the others take their part."""
        left_out, m, mg = list(self.left_out), self.system.m, self.system.model.position_rows
        kept = [i for i in range(m) if i not in left_out]
        force = lam @ C
        lam[:] = 0.0
        lam[kept] = np.linalg.lstsq(C[kept].T, force, rcond=None)[0]
        row_shift = GeneralizedAlphaState.vector(memory, "row_shift", OWN)
        row_shift[left_out] = LEFT_OUT_SHIFT
        if row_shift.size > m:
            row_shift[[m + i for i in left_out if i < mg]] = LEFT_OUT_SHIFT
        GeneralizedAlphaState.set(memory, OWN, between=0)

    def counts(self, memory: np.ndarray) -> dict[str, int]:
        matrices = int(GeneralizedAlphaState.of(memory, OWN)["njev"])
        return {"njev": matrices, "nlu": matrices}

    def cost(self, memory: np.ndarray) -> float:
        run, (evaluation, factorization) = RunState.of(memory), self.compiled.instructions
        return run["nfev"] * evaluation + self.counts(memory)["njev"] * factorization

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        return 4 * self.columns if dense else 0

    def dense_output(self, record: Record) -> GeneralizedAlphaOutput:
        return GeneralizedAlphaOutput(self, record)

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        return GeneralizedAlphaState.vector(memory, "yy", OWN)[: self.system.state_size].copy()


class GeneralizedAlphaOutput(DenseOutput):
    """Hermite's cubic in every step, brought onto the constraints."""

    @property
    def _begins(self) -> tuple[np.ndarray, np.ndarray]:
        steps, at = self.record.steps, STEP_COLUMNS
        return steps[:, 0], steps[:, at : at + self.stepper.columns]

    def _evaluate(self, context: np.ndarray, wanted: np.ndarray, out: np.ndarray) -> int:
        memory, steps = self.stepper.memory(0), self._steps_with(wanted)
        RunState.set(memory, t_start=self.record.t0, t_end=self.record.t_end)
        return alpha_steps.evaluate(memory, context, self.record.steps, steps, wanted, out)

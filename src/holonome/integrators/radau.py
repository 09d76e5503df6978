"""Radau IIA methods: the user's options, and the stepper for a system.

The coefficients are in :mod:`holonome.integrators.radau_coefficients`, a step is in
:mod:`holonome.integrators.radau_steps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from holonome.arguments import check_fields
from holonome.dynamics.kernels import dense_derivative, dense_multipliers, kernels
from holonome.formulations.coordinate_projection import CoordinateProjection
from holonome.formulations.implicit_complex import ComplexKernels
from holonome.formulations.index1 import Index1
from holonome.formulations.underlying_ode import UnderlyingODE
from holonome.integrators import radau_steps
from holonome.integrators.contract import Integrator, Request, Stepper
from holonome.integrators.loop import OWN, RunState
from holonome.integrators.radau_coefficients import STAGES, Coefficients, coefficients
from holonome.integrators.radau_state import TABLE, RadauState
from holonome.integrators.residual_stepper import ResidualStepper

ORDERS = tuple(2 * stages - 1 for stages in STAGES)


@dataclass(frozen=True)
class Radau(Integrator):
    """Radau IIA methods: implicit Runge–Kutta methods of order 5, 9 and 13, for stiff and
    differential-algebraic equations.

    They are L-stable at every order, change the size of their steps freely, and begin with large steps, also
    behind events and jumps, where BDF must begin anew at order 1.

    Parameters
    ----------
    order
        5, 9 or 13.  "adaptive" begins with 5, raises the order where Newton's method converges fast and
        lowers it where it is slow or fails; at a constant step it is 5.
    step
        Constant step size; None chooses it by the tolerances.
    newton_tolerance
        Bound for the estimated error of Newton's method, in units of the tolerance of the error test; None
        follows that tolerance.

    References
    ----------
    E. Hairer, G. Wanner, Stiff differential equations solved by Radau methods, J. Comput. Appl. Math. 111
    (1999) 93-111.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> sol = hn.solve(
    ...     pendulum.system, (0, 10), pendulum.q0, pendulum.v0, method=hn.Method(hn.GGL(), hn.Radau(order=9))
    ... )
    >>> sol.success, int(sol.history.order.max())
    (True, 9)
    """

    order: int | str = "adaptive"
    step: float | None = None
    newton_tolerance: float | None = None
    needs: ClassVar[tuple[str, ...]] = ("residual",)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def stages(self) -> tuple[int, int]:
        """Fewest and most."""
        if isinstance(self.order, str):
            return STAGES[0], STAGES[-1]
        stages = (self.order + 1) // 2
        return stages, stages

    def stepper(self, request: Request) -> Stepper:
        return RadauStepper(self, request)


METHODS = {
    "radau": (
        CoordinateProjection(),
        Radau(),
        "Radau IIA of order 5, 9 and 13 on index 1 with coordinate projection: large steps on stiff systems",
        "Hairer & Wanner, J. Comput. Appl. Math. 111 (1999)",
    ),
}

_read_counts, _ = RadauState.stretch("njev", "error_failures", OWN)


class RadauStepper(ResidualStepper):
    """Radau IIA on an implicit formulation."""

    advance, evaluate = staticmethod(radau_steps.advance), staticmethod(radau_steps.evaluate)
    interpolant, preview = radau_steps.interpolant, radau_steps.preview
    layout = RadauState

    def __init__(self, integrator: Radau, request: Request) -> None:
        super().__init__(integrator, request)
        residual = self.compiled.residual
        if ca.depends_on(residual.F, ca.vertcat(residual.cj, residual.tolerance)):
            raise ValueError(
                f"method: {type(self.formulation).__name__} as it is set up here is made for BDF, into whose "
                "steps it looks; with Radau() use GGL(), Index1(), Index2(), Index3() or "
                "CoordinateProjection()"
            )
        if self.index1 or self.compiled.prediction:
            self.columns = self.system.state_size

    @property
    def index1(self) -> bool:
        """Whether y′ = f(t, y) is evaluated in place of F.  Multipliers and accelerations are then exact at
        every stage, so that simplified Newton iterations converge faster by a factor O(h).
        """
        form = self.formulation
        return form.damping is None and isinstance(form, (Index1, UnderlyingODE, CoordinateProjection))

    @property
    def complex(self) -> ComplexKernels:
        """Kernels for the complex eigenvalues."""
        key = ("implicit, complex", self.formulation)
        return self.system.compiled.once(key, lambda: ComplexKernels(self.compiled))

    def _own(self) -> list:
        fields = self.residual_fields() | self._complex_fields() | self._costs() | self._vectors()
        system, found = self.system, kernels(self.system)
        fewest, most = self.integrator.stages
        residual, size = self.compiled.residual, self.compiled.size
        index3 = bool(np.any(residual.column_powers > 1))
        newton_mask = np.ones(size) if index3 else residual.newton_tested.copy()
        if self.compiled.prediction:
            newton_mask[system.state_size :] = 0.0  # multipliers follow from what is iterated
        fields |= self.tests(newton_mask) | {
            "rows": system.m,
            "index3": index3,
            "moving": self.columns if self.columns == system.state_size else size,
            "by_rate": self.index1,
            "prediction": self.compiled.prediction,
            "accelerations": residual.accelerations,
            "rate_kernel": found.derivative,
            "dense_rate": dense_derivative.address,
            "multipliers_kernel": found.multipliers if system.m else 0,
            "dense_multipliers": dense_multipliers.address,
            "fewest": fewest,
            "most": most,
            "max_iterations": 20 if self.constant else 10,
            "newton_tolerance": self.integrator.newton_tolerance or 0.0,
        }
        return [(RadauState, fields)]

    def _complex_fields(self) -> dict[str, Any]:
        found, size = self.complex, self.compiled.size
        pairs = (self.integrator.stages[1] - 1) // 2
        memory = found.factor_memory
        return {
            "complex_count": found.factor_count,
            "complex_room": memory.size,
            "complex_factors_kernel": found.factors,
            "complex_solution": found.solution,
            "complex_matrix": found.matrix,
            "complex_factors": np.tile(memory, pairs),
            "complex_dense": pairs * 4 * size * size if found.matrix else 0,
            "complex_pivots": pairs * 2 * size,
            "complex_scale": 2 * size,
            "complex_right": 2 * size + 1,
            "kinds": pairs,
        }

    def _costs(self) -> dict[str, float]:
        """Instructions of the kernels."""
        compiled, found = self.compiled, self.complex
        _ = compiled.F, compiled.factors, compiled.solution, found.factors, found.solution
        iteration, factors = compiled.instructions
        solution, complex_factors = found.instructions
        evaluation = 0.5 * iteration
        if self.index1 and not kernels(self.system).dense:
            evaluation = kernels(self.system).instructions[0]
        return {
            "of_residual": evaluation,
            "of_solution": 0.5 * iteration,
            "of_factors": factors,
            "of_complex_solution": solution,
            "of_complex_factors": complex_factors,
        }

    def _vectors(self) -> dict[str, Any]:
        size, most = self.compiled.size, self.integrator.stages[1]
        tables = np.concatenate([_table(coefficients(stages)) for stages in STAGES if stages <= most])
        fields: dict[str, Any] = dict.fromkeys(
            ("now", "rate", "new", "error_weights", "newton_weights", "e"), size
        )
        fields |= {"atol": size, "row_scale": size, "delta": size + 2, "scratch": size + 4}
        fields |= {"yy": 2 * size, "trial": 2 * size + 2, "basis": most + 1}
        return fields | dict.fromkeys(("z", "z_before", "f"), most * size) | {"tables": tables}

    def counts(self, memory: np.ndarray) -> dict[str, int]:
        names = ("njev", "nlu", "newton_failures", "error_failures")
        return dict(zip(names, _read_counts(memory), strict=True)) | self.count_splits(memory)

    def cost(self, memory: np.ndarray) -> float:
        run = RunState.of(memory)
        steps = float(run["accepted"] + run["rejected"])
        return float(RadauState.of(memory, OWN)["spent"]) + steps * 30 * self.compiled.size

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        return (1 + self.integrator.stages[1]) * self.columns if dense else 0


def _table(found: Coefficients) -> np.ndarray:
    """The coefficients as the compiled code wants them."""
    parts = found.nodes, found.inverse, found.transformation, found.back, found.eigenvalues, found.error
    flat = np.concatenate([part.ravel() for part in (*parts, found.barycentric)])
    return np.concatenate([flat, np.zeros(TABLE - flat.size)])

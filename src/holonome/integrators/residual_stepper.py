"""What implicit families share on a formulation that gives a residual: a part of their memory, and the start
with accelerations, multipliers and rows that are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.dynamics.kernels import dense_projection, kernels
from holonome.dynamics.projection import projection_kernels
from holonome.formulations.implicit import FormulationState, ImplicitKernels
from holonome.integrators.contract import (
    Beginning,
    Integrator,
    Request,
    Stepper,
    initial_multipliers,
    initial_unknowns,
    rows_left_out,
)
from holonome.integrators.dense_output import EarlierStepOutput
from holonome.integrators.loop import OWN
from holonome.integrators.start_check import check_start
from holonome.machine.calls import run_kernel
from holonome.machine.context import LEFT_OUT_SHIFT, OK


class ResidualStepper(Stepper):
    """Base class; ``layout`` is that of the family, whose ``yy`` holds Y and Y′ at the start."""

    output = EarlierStepOutput
    implicit = True
    far_side = False

    def __init__(self, integrator: Integrator, request: Request) -> None:
        super().__init__(request)
        self.integrator: Any = integrator
        self.layout_key = (integrator, self.formulation)
        self.columns = self.system.state_size + self.system.m

    @property
    def compiled(self) -> ImplicitKernels:
        system, formulation = self.system, self.formulation
        return system.compiled.once(("implicit", formulation), lambda: formulation.kernels(system))

    def residual_fields(self) -> dict[str, Any]:
        """Numbers and vectors that every family has, under the same names."""
        system, compiled, formulation = self.system, self.compiled, self.formulation
        residual, size, state = compiled.residual, compiled.size, system.state_size
        fields = {
            "unknowns": size,
            "coordinates": system.n,
            "state": state,
            "multipliers": residual.multipliers,
            "factor_count": compiled.factor_count,
            "residual": compiled.F,
            "factors_kernel": compiled.factors,
            "solution": compiled.solution,
            "matrix": compiled.matrix,
            "dense_projection": dense_projection.address if system.projects and not formulation.drifts else 0,
            "factors": compiled.factor_memory,
            "dense": size * size if compiled.matrix else 0,
            "pivots": size,
            "error_mask": residual.error_tested,
            "row_powers": residual.row_powers if len(residual.row_powers) else size,
            "column_powers": residual.column_powers if len(residual.column_powers) else size,
            "row_shift": residual.multipliers,
            "block": compiled.block,
            "scratch_of_state": state,
            "moved": state,
            "dense_projected": kernels(system).projection_size + 4,
            "projected": 2 * state + 1,
            "kept": 2,
        }
        return fields | self._projection_fields()

    def tests(self, newton_mask: np.ndarray) -> dict[str, Any]:
        """Numbers and vectors of a family whose steps may be projected, and whose tests see only some of the
        unknowns, that of Newton's method those with this mask.
        """
        error_mask = self.compiled.residual.error_tested
        return {
            "project": self.formulation.projects and self.system.projects,
            "newton_mask": newton_mask,
            "error_count": np.count_nonzero(error_mask > 0),
            "newton_count": np.count_nonzero(newton_mask > 0),
        }

    def _projection_fields(self) -> dict[str, Any]:
        system, formulation, state = self.system, self.formulation, self.system.state_size
        if not system.projects or kernels(system).dense:
            return {"projector_z": state + 2}
        found = projection_kernels(system, formulation.metric, formulation.relaxed)
        return {
            "projection": found.projection,
            "projection_factors": found.factors,
            "projection_repeated": found.repeated,
            "projection_size": found.size,
            "projector_z": found.size + state + 2,
        }

    def begin(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> int:
        """Accelerations and multipliers at the start; or why there are none."""
        self.prepare_context(context)
        t0, y = beginning.t0, beginning.y
        code, rate = check_start(self.system, memory, context, beginning.trusted)
        if code != OK:
            return code
        lam = initial_multipliers(self.system, context, beginning)
        holds_multipliers = self.compiled.residual.multipliers > 0
        self.left_out, C = rows_left_out(self, context, beginning, holds_multipliers)
        if self.left_out:
            self.prepare_context(context)
            self._leave_out(memory, C, lam)
        self._fill(memory, context, t0, np.concatenate([y, lam]), rate)
        return OK

    def _leave_out(self, memory: np.ndarray, C: np.ndarray, lam: np.ndarray) -> None:
        """Rows that follow from others keep their multipliers, zero; the others take their part."""
        left_out, m, mg = list(self.left_out), self.system.m, self.system.model.position_rows
        self.layout.set(memory, OWN, projection=0, projection_factors=0)  # the emitted one knows all rows
        kept = [i for i in range(m) if i not in left_out]
        force = lam @ C
        lam[:] = 0.0
        lam[kept] = np.linalg.lstsq(C[kept].T, force, rcond=None)[0]
        row_shift = self.layout.vector(memory, "row_shift", OWN)
        row_shift[left_out] = LEFT_OUT_SHIFT
        if row_shift.size > m:
            row_shift[[m + i for i in left_out if i < mg]] = LEFT_OUT_SHIFT

    def _fill(
        self, memory: np.ndarray, context: np.ndarray, t0: float, shown: np.ndarray, rate: np.ndarray
    ) -> None:
        """Y and Y′ at the start, from (q, v, s, λ) and the rates of the state."""
        start = self.layout.vector(memory, "yy", OWN)
        start[:] = initial_unknowns(self.system, self.compiled, context, t0, shown, rate)
        begin = self.given[0].start
        memory[begin : begin + self.columns] = start[: self.columns]
        self._first_split(memory, context, t0)

    def finish_layout(self, memory: np.ndarray) -> None:
        """Some vectors lie in the formulation's own memory."""
        record = self.layout.of(memory, OWN)
        for name, offset in self.compiled.borrowed.items():
            record[name] = record["block"] + offset

    def _first_split(self, memory: np.ndarray, context: np.ndarray, t0: float) -> None:
        """Split the coordinates at the start, where a formulation does."""
        compiled = self.compiled
        if compiled.prediction:
            start, block = (self.layout.vector(memory, name, OWN) for name in ("yy", "block"))
            FormulationState.set(block, fresh=1)
            run_kernel(compiled.prediction, t0, start.copy(), block, context, np.zeros(compiled.size))
            masks = {test: self.layout.vector(memory, f"{test}_mask", OWN) for test in ("error", "newton")}
            counts = {f"{test}_count": np.count_nonzero(mask) for test, mask in masks.items()}
            self.layout.set(memory, OWN, **counts)  # the split says what is tested

    def count_splits(self, memory: np.ndarray) -> dict[str, int]:
        """How often the split of the coordinates was changed, where there is one."""
        compiled = self.compiled
        if not compiled.prediction:
            return {}
        return {"splits": compiled.splits(self.layout.vector(memory, "block", OWN))}

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        return self.layout.vector(memory, "yy", OWN)[: self.system.state_size].copy()

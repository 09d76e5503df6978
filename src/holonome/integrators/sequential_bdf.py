"""Sequential regularization by BDF, for an ε of any size: the stepper for a system."""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.integrators import bdf_steps, sequential_bdf_steps
from holonome.integrators.bdf_stepper import BDFOutput, history_fields, matrix_counts, newton_fields
from holonome.integrators.bdf_steps import BDFState
from holonome.integrators.contract import Beginning, Request
from holonome.integrators.loop import OWN, RunState
from holonome.integrators.sequence import SequenceState
from holonome.integrators.sequential import Sequential
from holonome.integrators.sequential_bdf_steps import SequentialBDFState


class ImplicitSequential(Sequential):
    """BDF, for an ε of any size."""

    advance, evaluate = staticmethod(sequential_bdf_steps.advance), staticmethod(bdf_steps.evaluate)
    interpolant = bdf_steps.interpolant
    output = BDFOutput
    layout = BDFState
    implicit = True
    far_side = False
    sequence_at = OWN + BDFState.words
    _at = OWN + BDFState.words + SequenceState.words

    def __init__(self, integrator: Any, request: Request) -> None:
        self.integrator = integrator
        super().__init__(request)
        self.layout_key = ("SRM", integrator, self.srm.key, *self._sequence_key)
        if self.srm.post_stabilization:
            raise ValueError(
                "SRM: post_stabilization moves a point away from the polynomial that BDF goes through; use "
                "RungeKutta('dop853'), or CoordinateProjection() with BDF()"
            )
        if integrator.order:
            raise ValueError(
                "BDF: a constant order needs a known history, which the iterations of SRM do not have; use "
                "max_order"
            )

    def _own(self) -> list:
        problem, most = self.problem, self.most
        compiled, one, sequence = problem.implicit, problem.size + problem.carried, self.sequence_fields()
        residual, factors = compiled.residual, compiled.factor_memory
        dense = one * one if compiled.matrix else 0
        newton = newton_fields(self.integrator, self.constant)
        bdf = (
            newton
            | history_fields(most * one, one)
            | {
                "unknowns": sequence["active"] * one,
                "error_count": sequence["active"] * problem.size,
                "newton_count": sequence["active"] * problem.size,
                "coordinates": problem.coordinates,
                "state": problem.size,
                "factor_count": compiled.factor_count,
                "residual": compiled.F,
                "factors_kernel": compiled.factors,
                "solution": compiled.solution,
                "matrix": compiled.matrix,
                "factors": np.tile(factors, most),
                "dense": most * dense,
                "pivots": most * one,
                "error_mask": np.tile(residual.error_tested, most),
                "newton_mask": np.tile(residual.newton_tested, most),
                "row_powers": residual.row_powers,
                "column_powers": residual.column_powers,
                "block": 2 + problem.carried,
            }
        )
        own = {
            "factor_room": factors.size,
            "dense_room": dense,
            "work": 2 * one,
            "rates": most,
            "kinds": most,
            "rate_old": problem.size,
        }
        return [(BDFState, bdf), (SequenceState, sequence), (SequentialBDFState, own)]

    def _fill(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> None:
        """ε is √rtol/10 of the time in which the motion changes, so that the second iteration comes close to
        the tolerance.
        """
        x, carried = beginning.y, self.problem.carried
        time_scale, rate = self._first_values(memory, context, beginning)
        usual = 0.1 * float(np.sqrt(RunState.of(memory)["rtol"])) * time_scale * rate if self._stiff else 1e-8
        self.eps = np.broadcast_to(usual if self.srm.eps is None else self.srm.eps, self.most).astype(float)
        self._put(memory)
        one = x.size + carried
        atol = np.append(RunState.vector(memory, "atol")[: x.size], np.ones(carried))
        BDFState.vector(memory, "yy", OWN)[: self.most * one] = np.tile(
            np.concatenate([x, self.y0]), self.most
        )
        BDFState.vector(memory, "atol", OWN)[:] = np.tile(atol, self.most)

    def counts(self, memory: np.ndarray) -> dict[str, int]:
        return super().counts(memory) | matrix_counts(memory)

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        return bdf_steps.polynomial_columns(self.columns) if dense else 0

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        return SequentialBDFState.vector(memory, "work", self._at)[: self.problem.size].copy()

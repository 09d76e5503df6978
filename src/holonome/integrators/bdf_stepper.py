"""Backward differentiation formulas: the stepper for a system, and what their memory is made with."""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.integrators import bdf_steps
from holonome.integrators.bdf_steps import BDFState
from holonome.integrators.contract import fill_behind
from holonome.integrators.dassl import MOST
from holonome.integrators.dense_output import EarlierStepOutput
from holonome.integrators.loop import OWN, STEP_COLUMNS, RunState
from holonome.integrators.residual_stepper import ResidualStepper


def history_fields(size: int, one: int) -> dict[str, Any]:
    """Vectors of BDF for so many unknowns in all, and in one Newton matrix."""
    fields: dict[str, Any] = dict.fromkeys(("psi", "alpha", "beta", "sigma", "gamma"), 10)
    fields |= dict.fromkeys(("error_weights", "newton_weights", "e", "delta", "atol"), size)
    return fields | {"yy": 2 * size, "phi": (MOST + 3) * size, "scratch": one + 3, "row_scale": one}


_read_counts, _ = BDFState.stretch("njev", "error_failures", OWN)


def matrix_counts(memory: np.ndarray) -> dict[str, int]:
    """Jacobians, factorizations and failures of a run."""
    matrices, newton_failures, error_failures = _read_counts(memory)
    return {
        "njev": matrices,
        "nlu": matrices,
        "newton_failures": newton_failures,
        "error_failures": error_failures,
    }


def newton_fields(integrator: Any, constant: float) -> dict[str, Any]:
    """Settings for order and Newton's method."""
    return {
        "max_order": integrator.order or integrator.max_order,
        "max_iterations": 10 if constant else 4,
        "newton_tolerance": integrator.newton_tolerance,
        "rate_floor": integrator.rate_floor,
    }


class BDFOutput(EarlierStepOutput):
    """Inside a step of BDF: its polynomial, which belongs to its end."""

    @property
    def _begins(self) -> tuple[np.ndarray, np.ndarray]:
        """The start, and where the polynomial of each step but the last ends."""
        steps, at, first = self.record.steps[:-1], STEP_COLUMNS + MOST + 1, self.record.first_state
        times = np.append(self.record.t0, steps[:, 0] + steps[:, 1])
        return times, np.vstack([first, steps[:, at : at + first.size]])


class BDFStepper(ResidualStepper):
    """BDF on an implicit formulation."""

    advance, evaluate = staticmethod(bdf_steps.advance), staticmethod(bdf_steps.evaluate)
    interpolant, preview = bdf_steps.interpolant, bdf_steps.preview
    output = BDFOutput
    layout = BDFState

    def _own(self) -> list:
        system, compiled = self.system, self.compiled
        fields = newton_fields(self.integrator, self.constant) | history_fields(compiled.size, compiled.size)
        fields |= self.residual_fields() | self.tests(compiled.residual.newton_tested)
        fields |= {
            "tolerances": 0 if compiled.prediction else system.n,
            "prediction": compiled.prediction,
            "after": compiled.after,
            "tests_all": self.formulation.projects
            and system.projects
            and not self.formulation.projects_error,
        }
        return [(BDFState, fields)]

    def known_times(self, t0: float) -> np.ndarray | None:
        if not self.integrator.order:
            return None
        return t0 + self.direction * self.constant * np.arange(self.integrator.order)

    def fill_history(self, memory: np.ndarray, context: np.ndarray, history: Any) -> np.ndarray:
        """Begin at a constant order k with the backward differences of k known points: φ_i = ∇^{i−1} Y."""
        size, k, h = self.compiled.size, self.integrator.order or 1, self.direction * self.constant
        rows = np.zeros((k, size))
        rows[:, : self.columns] = np.hstack([history.states[:, : self.system.state_size], history.lam.T])
        if self.compiled.residual.accelerations:
            rows[:, self.columns : self.columns + self.system.n] = history.a.T
        for row, t in zip(rows, history.t, strict=True):
            fill_behind(self.compiled, context, row, t, self.columns)
        phi = BDFState.vector(memory, "phi", OWN).reshape(-1, size)
        differences = rows[::-1].copy()
        for i in range(k):
            phi[i] = differences[0]
            differences = differences[:-1] - differences[1:]
        BDFState.vector(memory, "psi", OWN)[: MOST + 1] = h * np.arange(1, MOST + 2)
        # φ_{k+1} of the coming step is the (unknown) k-th difference; DASSL's predictor then is of order k −
        # 1, which costs an iteration but no accuracy
        phi[k] = 0.0
        RunState.set(memory, t=history.t[-1], h=h, accepted=k - 1, known=k - 1)
        BDFState.set(
            memory, OWN, h_old=h, cj=1 / h, rate_factor=100.0, order=k, order_old=k, phase=1, constant_order=1
        )
        return rows[:, : self.columns]

    def counts(self, memory: np.ndarray) -> dict[str, int]:
        return matrix_counts(memory) | self.count_splits(memory)

    def cost(self, memory: np.ndarray) -> float:
        run, (evaluation, factorization) = RunState.of(memory), self.compiled.instructions
        steps = float(run["accepted"] + run["rejected"])
        matrices = BDFState.of(memory, OWN)["njev"]
        return run["nfev"] * evaluation + matrices * factorization + steps * 30 * self.compiled.size

    def expect_disturbance(self, memory: np.ndarray) -> None:
        """A method at its stability limit leaves errors in the fast motions, so order and step increase
        together.
        """
        BDFState.set(memory, OWN, new_starts=1)

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        return bdf_steps.polynomial_columns(self.columns) if dense else 0

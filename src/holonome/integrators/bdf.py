"""Backward differentiation formulas: the user's options, and the stepper for a system.

The formulas are in :mod:`holonome.integrators.dassl`, a step is in :mod:`holonome.integrators.bdf_steps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from holonome.arguments import check_fields
from holonome.formulations.coordinate_projection import CoordinateProjection
from holonome.formulations.coordinate_split import CoordinateSplit
from holonome.formulations.ggl import GGL
from holonome.formulations.implicit import FormulationState
from holonome.formulations.index1 import Baumgarte, Index1
from holonome.formulations.index2 import Index2
from holonome.formulations.index3 import Index3
from holonome.integrators import bdf_steps
from holonome.integrators.bdf_steps import BDFState
from holonome.integrators.contract import DenseOutput, Integrator, Record, Request, Stepper, fill_behind
from holonome.integrators.dassl import MOST
from holonome.integrators.loop import OWN, STEP_COLUMNS, RunState
from holonome.integrators.residual_stepper import ResidualStepper
from holonome.integrators.sequential import ImplicitSequential
from holonome.machine.calls import run_kernel


@dataclass(frozen=True)
class BDF(Integrator):
    """Backward differentiation formulas.

    Parameters
    ----------
    max_order
        Highest order, 1 to 5 (6 with a constant step).
    step
        Constant step size; None chooses it by the tolerances.
    order
        Constant order, with a constant step, for order studies.
    newton_tolerance
        Bound for the estimated error of Newton's method, in units of the tolerance.
    rate_floor
        Lower bound of the factor by which a change of Newton's method is multiplied to estimate its error.

    DASSL has 0.33 and 0 for the last two (``BDF.dassl()``): errors that it leaves hide in the higher
    differences, keep the order low and cost a third more steps. With 0 the choice of the order is DASSL's in
    every respect as well; otherwise a run that stays at low order under stiff forces makes a new start.

    References
    ----------
    K. E. Brenan, S. L. Campbell, L. R. Petzold, Numerical Solution of Initial-Value Problems in
    Differential-Algebraic Equations, SIAM 1996.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> second = hn.solve(
    ...     pendulum.system, (0, 10), pendulum.q0, pendulum.v0,
    ...     method=hn.Method(hn.GGL(), hn.BDF(max_order=2)),
    ... )
    >>> fifth = hn.solve(
    ...     pendulum.system, (0, 10), pendulum.q0, pendulum.v0,
    ...     method=hn.Method(hn.GGL(), hn.BDF()),
    ... )
    >>> second.steps > 3 * fifth.steps, int(fifth.history.order.max())
    (True, 5)
    """

    max_order: int = 5
    step: float | None = None
    order: int | None = None
    newton_tolerance: float = 0.01
    rate_floor: float = 0.1
    needs: ClassVar[tuple[str, ...]] = ("residual", "sequence")
    tests_whole_error: ClassVar[bool] = True

    @classmethod
    def dassl(cls, max_order: int = 5) -> BDF:
        """DASSL's own convergence test and choice of the order, as in the papers."""
        return cls(max_order, newton_tolerance=0.33, rate_floor=0.0)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.max_order == 6 and self.step is None:
            raise ValueError("max_order: 6 needs a constant step; choose 1 to 5, or give step=")
        if self.order is not None and self.step is None:
            raise ValueError(f"order: {self.order}; a constant order needs a constant step, so give step=")

    def stepper(self, request: Request) -> Stepper:
        steppers = {"residual": BDFStepper, "sequence": ImplicitSequential}
        return steppers[self.form(request.formulation) or "residual"](self, request)


_EICH = "Eich, SIAM J. Numer. Anal. 30 (1993)"
_DASSL = "Brenan, Campbell & Petzold, Numerical Solution of Initial-Value Problems in DAEs (1996)"
_GGL = "Gear, Leimkuhler & Gupta, J. Comput. Appl. Math. 12 (1985)"
_YEN = "Yen & Petzold, SIAM J. Sci. Comput. 19 (1998)"
METHODS = {
    "bdf": (
        CoordinateProjection(),
        BDF(),
        "BDF on index 1 with coordinate projection: the robust choice among the implicit methods",
        f"{_EICH}; {_DASSL}",
    ),
    "ggl": (
        GGL(),
        BDF(),
        "BDF on the stabilised index-2 form of Gear, Gupta & Leimkuhler",
        f"{_GGL}; {_DASSL}",
    ),
    "ggl*": (
        GGL(predict_multipliers=True),
        BDF.dassl(),
        "GGL* of Yen & Petzold: DASSL's convergence test without multipliers, which are predicted from the "
        "motion",
        f"{_YEN}; {_DASSL}",
    ),
    "cs": (
        CoordinateSplit("CS"),
        BDF(),
        "BDF with coordinate splitting, Newton's method without multipliers",
        f"{_YEN}; {_DASSL}",
    ),
    "cm": (
        CoordinateSplit("CM"),
        BDF(),
        "BDF with coordinate splitting, the modified iteration for highly oscillatory systems",
        f"{_YEN}; {_DASSL}",
    ),
    "index3": (Index3(), BDF(), "BDF on the equations as they stand", _DASSL),
    "index2": (Index2(), BDF(), "BDF with the constraints on the velocity level; positions drift", _DASSL),
    "index1": (Index1(), BDF(), "BDF with the constraints on the acceleration level; drifts", _EICH),
    "baumgarte": (
        Baumgarte(),
        BDF(),
        "BDF with Baumgarte's stabilisation of index 1",
        "Baumgarte, Comput. Methods Appl. Mech. Eng. 1 (1972)",
    ),
}


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


def newton_fields(integrator: BDF, constant: float) -> dict[str, Any]:
    """Settings for order and Newton's method."""
    return {
        "max_order": integrator.order or integrator.max_order,
        "max_iterations": 10 if constant else 4,
        "newton_tolerance": integrator.newton_tolerance,
        "rate_floor": integrator.rate_floor,
    }


class BDFStepper(ResidualStepper):
    """BDF on an implicit formulation."""

    advance = staticmethod(bdf_steps.advance)
    interpolant = bdf_steps.interpolant
    preview = bdf_steps.preview
    layout = BDFState

    def _own(self) -> list:
        system, compiled = self.system, self.compiled
        fields = newton_fields(self.integrator, self.constant) | history_fields(compiled.size, compiled.size)
        fields |= self.residual_fields() | {
            "tolerances": 0 if compiled.prediction else system.n,
            "prediction": compiled.prediction,
            "after": compiled.after,
            "tests_all": self.formulation.projects
            and system.projects
            and not self.formulation.projects_error,
        }
        return [(BDFState, fields)]

    def finish_layout(self, memory: np.ndarray) -> None:
        """Some vectors lie in the formulation's own memory."""
        record = BDFState.of(memory, OWN)
        for name, offset in self.compiled.borrowed.items():
            record[name] = record["block"] + offset

    def _fill(
        self, memory: np.ndarray, context: np.ndarray, t0: float, shown: np.ndarray, rate: np.ndarray
    ) -> None:
        super()._fill(memory, context, t0, shown, rate)
        compiled = self.compiled
        if compiled.prediction:
            start, block = (BDFState.vector(memory, name, OWN) for name in ("yy", "block"))
            FormulationState.set(block, fresh=1)
            run_kernel(compiled.prediction, t0, start.copy(), block, context, np.zeros(compiled.size))

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
        counts, compiled = matrix_counts(memory), self.compiled
        if compiled.prediction:
            counts["splits"] = compiled.splits(BDFState.vector(memory, "block", OWN))
        return counts

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

    def dense_output(self, record: Record) -> BDFOutput:
        return BDFOutput(self, record)


class BDFOutput(DenseOutput):
    """Inside a step of BDF: its polynomial, brought onto the manifold."""

    @property
    def _begins(self) -> tuple[np.ndarray, np.ndarray]:
        """The start, and where the polynomial of each step but the last ends."""
        steps, at, first = self.record.steps[:-1], STEP_COLUMNS + MOST + 1, self.record.first_state
        times = np.append(self.record.t0, steps[:, 0] + steps[:, 1])
        return times, np.vstack([first, steps[:, at : at + first.size]])

    def _evaluate(self, context: np.ndarray, wanted: np.ndarray, out: np.ndarray) -> int:
        memory, record, steps = self.stepper.memory(0), self.record, self._steps_with(wanted, "left")
        RunState.set(memory, t_start=record.t0, t_end=record.t_end)
        return bdf_steps.evaluate(memory, context, record.steps, steps, wanted, out)

"""Backward differentiation formulas: the user's options, and the stepper for a system.

The formulas are in :mod:`holonome.integrators.dassl`, a step is in :mod:`holonome.integrators.bdf_steps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from holonome.arguments import check_fields
from holonome.dynamics.kernels import dense_projection, kernels
from holonome.dynamics.projection import projection_kernels
from holonome.dynamics.rank import always_dependent_rows, dependent_rows
from holonome.errors import SingularSystem
from holonome.formulations.coordinate_projection import CoordinateProjection
from holonome.formulations.coordinate_split import CoordinateSplit
from holonome.formulations.ggl import GGL
from holonome.formulations.implicit import FormulationState, ImplicitKernels
from holonome.formulations.index1 import Baumgarte, Index1
from holonome.formulations.index2 import Index2
from holonome.formulations.index3 import Index3
from holonome.integrators import bdf_steps
from holonome.integrators.bdf_steps import BDFState
from holonome.integrators.contract import (
    Beginning,
    DenseOutput,
    Integrator,
    Record,
    Request,
    Stepper,
    fill_behind,
    initial_multipliers,
    initial_unknowns,
)
from holonome.integrators.dassl import MOST
from holonome.integrators.loop import OWN, STEP_COLUMNS, RunState
from holonome.integrators.sequential import ImplicitSequential
from holonome.integrators.start_check import check_start
from holonome.machine.calls import run_kernel
from holonome.machine.context import LEFT_OUT_SHIFT, OK, Context


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
_read_rank, _ = Context.stretch("rank", "rank")


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


class BDFStepper(Stepper):
    """BDF on an implicit formulation."""

    advance = staticmethod(bdf_steps.advance)
    interpolant = bdf_steps.interpolant
    preview = bdf_steps.preview
    implicit = True
    far_side = False

    def __init__(self, integrator: BDF, request: Request) -> None:
        super().__init__(request)
        self.integrator = integrator
        self.layout_key = (integrator, self.formulation)
        self.columns = self.system.state_size + self.system.m

    @property
    def compiled(self) -> ImplicitKernels:
        system, formulation = self.system, self.formulation
        return system.compiled.once(("implicit", formulation), lambda: formulation.kernels(system))

    def _own(self) -> list:
        system, compiled, formulation = self.system, self.compiled, self.formulation
        residual, size, state = compiled.residual, compiled.size, system.state_size
        block = compiled.block
        fields = history_fields(size, size) | {
            "unknowns": size,
            "coordinates": system.n,
            "state": state,
            "multipliers": residual.multipliers,
            "tolerances": 0 if compiled.prediction else system.n,
            "factor_count": compiled.factor_count,
            "residual": compiled.F,
            "factors_kernel": compiled.factors,
            "solution": compiled.solution,
            "matrix": compiled.matrix,
            "prediction": compiled.prediction,
            "after": compiled.after,
            "dense_projection": dense_projection.address if system.projects and not formulation.drifts else 0,
            "project": formulation.projects and system.projects,
            "tests_all": formulation.projects and system.projects and not formulation.projects_error,
            "factors": compiled.factor_memory,
            "dense": size * size if compiled.matrix else 0,
            "pivots": size,
            "error_mask": residual.error_tested,
            "newton_mask": residual.newton_tested,
            "row_powers": residual.row_powers if len(residual.row_powers) else size,
            "column_powers": residual.column_powers if len(residual.column_powers) else size,
            "row_shift": residual.multipliers,
            "block": block,
            "scratch_of_state": state,
            "moved": state,
            "dense_projected": kernels(system).projection_size + 4,
            "projected": 2 * state + 1,
            "kept": 2,
        }
        return [
            (BDFState, newton_fields(self.integrator, self.constant) | fields | self._projection_fields())
        ]

    def finish_layout(self, memory: np.ndarray) -> None:
        """Some vectors lie in the formulation's own memory."""
        record = BDFState.of(memory, OWN)
        for name, offset in self.compiled.borrowed.items():
            record[name] = record["block"] + offset

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
        t0, y, m = beginning.t0, beginning.y, self.system.m
        code, rate = check_start(self.system, memory, context, beginning.trusted)
        if code != OK:
            return code
        lam = initial_multipliers(self.system, context, beginning)
        if _read_rank(context)[0] < m:
            self._leave_out_redundant(memory, context, t0, y, lam)
        self._fill(memory, context, t0, np.concatenate([y, lam]), rate)
        return OK

    def _leave_out_redundant(
        self, memory: np.ndarray, context: np.ndarray, t0: float, y: np.ndarray, lam: np.ndarray
    ) -> None:
        """Leave out rows that always follow from others, which then have no multiplier; at a singular
        position BDF cannot start.
        """
        system, m, mg = self.system, self.system.m, self.system.model.position_rows
        pieces = kernels(system).evaluate_pieces(context, t0, y)
        C = pieces["C"]  # pyright: ignore[reportOptionalSubscript]
        rank, here = dependent_rows(C)
        self.left_out = always_dependent_rows(system, t0, y)
        multipliers = self.compiled.residual.multipliers
        if multipliers == 0 or len(self.left_out) < len(here):
            what = (
                "needs independent constraints" if multipliers == 0 else "cannot start in a singular position"
            )
            names = ", ".join(system.constraint_names[i] for i in here[:4])
            raise SingularSystem(
                f"method: {type(self.formulation).__name__} with BDF {what}; here only {rank} of {m} rows "
                "are "
                f"independent ({names} depends on others). Use an explicit method, which handles that"
            )
        self.prepare_context(context)
        BDFState.set(memory, OWN, projection=0, projection_factors=0)  # the emitted projection knows all rows
        kept = [i for i in range(m) if i not in self.left_out]
        force = lam @ C
        lam[:] = 0.0
        lam[kept] = np.linalg.lstsq(C[kept].T, force, rcond=None)[0]
        row_shift = BDFState.vector(memory, "row_shift", OWN)
        row_shift[list(self.left_out)] = LEFT_OUT_SHIFT
        if multipliers > m:
            row_shift[[m + i for i in self.left_out if i < mg]] = LEFT_OUT_SHIFT

    def _fill(
        self, memory: np.ndarray, context: np.ndarray, t0: float, shown: np.ndarray, rate: np.ndarray
    ) -> None:
        """Y and Y′ at the start, from (q, v, s, λ) and the rates of the state."""
        compiled = self.compiled
        start = BDFState.vector(memory, "yy", OWN)
        start[:] = initial_unknowns(self.system, compiled, context, t0, shown, rate)
        begin = self.given[0].start
        memory[begin : begin + self.columns] = start[: self.columns]
        if compiled.prediction:
            block = BDFState.vector(memory, "block", OWN)
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

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        return BDFState.vector(memory, "yy", OWN)[: self.system.state_size].copy()


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

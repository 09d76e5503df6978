"""Steppers for sequential regularization: the iterations of :class:`holonome.SRM`, all advanced together, by
explicit Runge–Kutta methods or by BDF, for mechanical systems and for general problems of index 2 and 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import splu

from holonome.dynamics.kernels import dense_multipliers, kernels
from holonome.errors import SingularSystem
from holonome.formulations.sequential_regularization import SRM, regularized
from holonome.integrators import bdf_steps, rank_watch, sequential_bdf_steps, sequential_steps
from holonome.integrators.bdf_steps import BDFState
from holonome.integrators.contract import Beginning, DenseOutput, Record, Request, Stepper
from holonome.integrators.loop import OWN, STEP_COLUMNS, RunState
from holonome.integrators.sequence import SequenceState
from holonome.integrators.sequential_bdf_steps import SequentialBDFState
from holonome.integrators.sequential_steps import MOST_HELD_STEPS, SequentialState
from holonome.integrators.start_check import check_start
from holonome.integrators.tableau import Tableau
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK, SINGULAR
from holonome.machine.layout import padded


def splu_solve(matrix: Any, right: np.ndarray) -> np.ndarray | None:
    """The solution of a sparse system; None if it is singular."""
    try:
        return splu(matrix).solve(right)
    except RuntimeError:
        return None


class Sequential(Stepper):
    """What explicit methods and BDF share; their common record begins at ``sequence_at``."""

    sequence_at: int
    on_manifold = True

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        srm: SRM = self.formulation
        problem = regularized(self.system, srm, self.direction)
        self.srm, self.problem, mechanical = srm, problem, self.system.mechanical
        shown = problem.m if srm.variant in ("invariant", "baumgarte") else 0
        self.columns = problem.size + (shown if mechanical else problem.carried)
        self.most, self.automatic = srm.count()
        self.eps, self.y0 = np.zeros(0), np.zeros(0)

    @property
    def _sequence_key(self) -> tuple:
        return self.most, self.direction, self.srm.eps is None

    def sequence_fields(self) -> dict[str, Any]:
        """What the record of the iterations is made with."""
        problem, automatic = self.problem, self.automatic
        smaller_eps = self.srm.eps is None and (self.implicit or not self.constant)
        return {
            "state": problem.size,
            "coordinates": problem.coordinates,
            "carried": problem.carried,
            "index": problem.order + 1,
            "active": min(2, self.most) if automatic else self.most,
            "most": self.most,
            "automatic": (2 if smaller_eps else 1) if automatic else 0,
            "watches_impasse": self._stiff,
            "rate": problem.address("rate"),
            "multiplier": self._multiplier,
            "eps": self.most,
            **dict.fromkeys(("y0", "y0_slope", "y0_bend", "first"), problem.carried),
            "out": problem.size + problem.carried + 2,
        }

    def new_context(self, extra: int = 0) -> np.ndarray:
        return super().new_context(extra) if self.system.mechanical else self.system.context(extra)

    def prepare_context(self, context: np.ndarray) -> None:
        if self.system.mechanical:
            super().prepare_context(context)

    def watch_fields(self) -> dict[str, Any]:
        """Memory of the watch over the rank of C, or of GB; of a large general problem it is not watched,
        and `remark` says so.
        """
        if self.system.mechanical:
            return super().watch_fields()
        n, m = self.system.n, self.system.m
        if self.problem.large:
            return rank_watch.fields(0, 0, 0, 0, 0, 0)
        return rank_watch.fields(self.problem.address("regularity"), 0, 0, n, 1 + 2 * m, self.problem.size)

    def begin(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> int:
        """Check the start, choose ε and y₀, and let all iterations begin there."""
        if self.system.mechanical:
            self.prepare_context(context)
            code, _ = check_start(self.system, memory, context, beginning.trusted)
            if code != OK:
                return code
        else:
            self.system.require_consistent(beginning.t0, beginning.y)
        self._fill(memory, context, beginning)
        y, state = RunState.vector(memory, "y"), beginning.y
        y[: state.size] = state
        y[state.size : self.columns] = self.y0[: self.columns - state.size]
        return OK

    def _fill(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> None:
        """Initial values of all iterations, y₀ and ε."""
        raise NotImplementedError

    def _first_values(
        self, memory: np.ndarray, context: np.ndarray, beginning: Beginning
    ) -> tuple[float, float]:
        """Choose y₀; the time scale of the motion, and the fastest rate of the regularization, times ε if
        that is one.
        """
        t0, t1, x, _ = beginning
        self.y0 = self._first_y(context, t0, x)
        if self.srm.variant == "singular" and self._exact_y(context, t0, x) is None:
            self._refuse_singular_mass(context, t0, x)
            raise SingularSystem(
                "method: SRM passes isolated singular positions, but here constraint rows depend on others "
                "from the "
                "start. Use SRM(E='identity'), or for mechanical systems 'dop853'"
            )
        longest = min(abs(t1 - t0), float(memory[RunState.places.h_max]))
        return self._time_scale(context, t0, x, longest), self._stiffness(context, t0, x)

    def _refuse_singular_mass(self, context: np.ndarray, t: float, x: np.ndarray) -> None:
        pieces = kernels(self.system).evaluate_pieces(context, t, x) if self.system.mechanical else None
        if pieces is not None and np.linalg.matrix_rank(pieces["M"]) < self.system.n:
            raise SingularSystem(
                f"mass: singular at t = {t:.6g}; SRM needs a regular mass matrix, use 'dop853' or 'ggl'"
            )

    def _put(self, memory: np.ndarray) -> None:
        SequenceState.vector(memory, "eps", self.sequence_at)[: self.eps.size] = self.eps
        SequenceState.vector(memory, "y0", self.sequence_at)[: self.y0.size] = self.y0

    def _first_y(self, context: np.ndarray, t: float, x: np.ndarray) -> np.ndarray:
        problem, given = self.problem, self.srm.y0
        if isinstance(given, str):
            y = self._exact_y(context, t, x)
            return np.zeros(problem.carried) if y is None else y
        if np.size(given) not in (1, problem.carried):
            raise ValueError(
                f"SRM: y0 has {np.size(given)} entries; give {problem.carried}, or one number for all"
            )
        return np.broadcast_to(np.asarray(given, dtype=float), problem.carried).copy()

    @property
    def _carries_multipliers(self) -> bool:
        """Whether y is λ of a mechanical system."""
        return self.system.mechanical and self.srm.variant in ("invariant", "baumgarte")

    def _exact_y(self, context: np.ndarray, t: float, x: np.ndarray) -> np.ndarray | None:
        """The y of the exact solution through a point, for redundant rows the smallest; None in a singular
        position.
        """
        problem, out = self.problem, np.zeros(self.system.m + 1)
        if problem.large:
            found = problem.matrices(context, t, x)
            y = None if found is None else splu_solve(found[0], found[2])
            return y if y is not None and np.all(np.isfinite(y)) else None
        if not self._carries_multipliers:
            return problem.evaluate(
                "multiplier", context, t, x, np.zeros(problem.carried + 1), problem.carried
            )
        status = run_kernel(kernels(self.system).multipliers, t, x, out, context, out)
        if status == SINGULAR:
            status = run_kernel(dense_multipliers.address, t, x, out, context, out)
        return out[:-1] if status == OK and np.all(np.isfinite(out)) else None

    @property
    def _multiplier(self) -> int:
        """The kernel for the y of the exact solution."""
        return (
            kernels(self.system).multipliers
            if self._carries_multipliers
            else 0
            if self.problem.large
            else self.problem.address("multiplier")
        )

    @property
    def _stiff(self) -> bool:
        """Whether ε⁻¹ is a rate of the regularized equations: α₁ = 0."""
        alpha = self.problem.iteration.alpha
        return not (alpha and alpha[0])

    def _stiffness(self, context: np.ndarray, t: float, x: np.ndarray) -> float:
        """The fastest rate, times ε if that is one; (2.8), (4.20)."""
        problem = self.problem
        alpha, m = problem.iteration.alpha, problem.m
        if not self._stiff:
            return float(np.max(np.abs(np.roots(alpha)), initial=0.0))
        if problem.large:
            found = problem.matrices(context, t, x)
            sizes = np.ones(1) if found is None else abs(found[1]).sum(axis=1)
            return float(np.max(sizes)) * (abs(alpha[1]) if alpha else 1.0)
        matrix = problem.evaluate("stiffness", context, t, x, np.zeros(problem.carried + 1), m * m)
        if matrix is None:
            self._refuse_singular_mass(context, t, x)
        largest = 1.0 if matrix is None else float(np.max(np.abs(np.linalg.eigvals(matrix.reshape(m, m)))))
        return largest * (abs(alpha[1]) if alpha else 1.0)

    def _time_scale(self, context: np.ndarray, t: float, x: np.ndarray, longest: float) -> float:
        """The time in which the motion changes, |x|/|x′| or √(|x|/|x″|) at the start."""
        problem = self.problem
        n, size = problem.coordinates, problem.size
        y = self._exact_y(context, t, x)
        k = None
        if y is not None:
            k = problem.evaluate("free", context, t, x, np.append(0.0, y), size + problem.carried + 1)
        parts = (x[:n], np.zeros(1)) if k is None else (x[:n], k[:n], k[n:size])
        sizes = [float(np.max(np.abs(part))) for part in parts if part.size]
        scales = [
            (sizes[0] / size) ** (1 / i) for i, size in enumerate(sizes[1:], 1) if size > 0 and sizes[0] > 0
        ]
        return min([longest, *scales])

    def remark(self, memory: np.ndarray) -> str:
        """What SRM did, in words."""
        active = int(SequenceState.of(memory, self.sequence_at)["active"])
        eps = SequenceState.vector(memory, "eps", self.sequence_at)
        used = " / ".join(f"{e:.3g}" for e in dict.fromkeys(eps[:active]))
        text = f"SRM: {active} iteration{'s' * (active != 1)}, ε = {used}"
        if self.eps.size and eps[0] != self.eps[0]:
            text += f", {self.eps[0]:.3g} at the start"
        if self.srm.variant == "singular":
            text += ", rows of G equilibrated"
        if self.problem.large:
            text += ", too large to be watched for singular positions"
        return text

    def why_stuck(self, memory: np.ndarray) -> str:
        """Diagnosis, where SRM has one."""
        q = SequenceState.of(memory, self.sequence_at)
        if q["impasse"]:
            missed, largest = q["violation"], q["largest"]
            if q["index"] > 2:
                return (
                    "an impasse: no motion passes smoothly on the constraints here; "
                    f"{missed:.2g} of a velocity of {largest:.2g} suddenly violates them"
                )
            return (
                "an impasse: no solution passes smoothly on the constraints here; "
                f"it suddenly misses them by {missed:.2g}"
            )
        return self._why_unsettled(q)

    def _why_unsettled(self, q: Any) -> str:
        if not (self.automatic and q["difference"] > 1):
            return ""
        smaller = "step" if self.constant and self.srm.eps is None else "eps"
        return (
            f"the iterations do not settle: the last of {int(q['active'])} still changes by "
            f"{q['difference']:.1g} times "
            f"the tolerance. Give a smaller {smaller}, or iterations=… to do without this test; or it is an "
            "impasse"
        )

    def counts(self, memory: np.ndarray) -> dict[str, int]:
        return {"iterations": int(SequenceState.of(memory, self.sequence_at)["active"])}


class ExplicitSequential(Sequential):
    """Explicit Runge–Kutta methods."""

    advance = staticmethod(sequential_steps.advance)
    interpolant = sequential_steps.interpolant
    preview = sequential_steps.preview
    sequence_at = OWN
    _at = OWN + SequenceState.words

    def __init__(self, tableau: Tableau, request: Request) -> None:
        self.tableau = tableau
        super().__init__(request)
        self.layout_key = ("SRM", tableau, self.srm.key, self.srm.post_stabilization, *self._sequence_key)

    def _own(self) -> list:
        from holonome.integrators.runge_kutta import tableau_fields  # which chooses this stepper

        problem, srm, most = self.problem, self.srm, self.most
        size, carried, stages = problem.size, problem.carried, self.tableau.stages
        whole = most * padded(size)
        own = tableau_fields(self.tableau, size) | {
            "mesh": all(c in (0, 1) for c in self.tableau.c),
            "times": srm.post_stabilization,
            "stabilization": problem.address("stabilization") if srm.post_stabilization else 0,
            "free": problem.address("free"),
            "holds": srm.variant == "singular",
            **dict.fromkeys(("x", "x_old", "x_new", "f", "f_old", "f_new"), whole),
            **dict.fromkeys(("carry", "carry_old", "carry_new"), most * carried),
            "stage_carry": most * stages * carried,
            "point": padded(size),
            "z": carried + 1,
            "error": padded(size),
        }
        return [(SequenceState, self.sequence_fields()), (SequentialState, own)]

    def _fill(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> None:
        t0, t1, x, _ = beginning
        run, stride = RunState.of(memory), padded(x.size)
        SequentialState.vector(memory, "x", self._at).reshape(-1, stride)[:, : x.size] = x
        time_scale, rate = self._first_values(memory, context, beginning)
        usual = time_scale * float(run["rtol"]) ** (1 / self.tableau.order)
        tau = time_scale if isinstance(self.srm.y0, str) and not self.problem.large else 0.0
        SequenceState.set(memory, self.sequence_at, tau=tau)
        eps = self._checked_eps(rate, usual, abs(t1 - t0), int(run["max_steps"]))
        self.eps = np.broadcast_to(eps, self.most).astype(float)
        self._put(memory)
        if run["first_step"] == 0.0:
            smallest = self.eps.min()
            fastest = rate / smallest if self._stiff and smallest > 0 else rate
            run["first_step"] = min(0.1 * usual, self.tableau.stable / max(fastest, 1e-300), run["h_max"])

    def _checked_eps(self, rate: float, usual: float, span: float, max_steps: int) -> Any:
        """ε as given, if an explicit method can work with it; else as small as it can."""
        eps, limit, h, name = self.srm.eps, self.tableau.stable, self.constant, self.tableau.title
        if not self._stiff:
            if h * rate > limit:
                raise ValueError(
                    f"SRM: alpha = {self.problem.iteration.alpha} makes the constraints a process of rate "
                    f"{rate:.3g}; "
                    f"{name} with step {h:g} needs rates below {limit / h:.3g}"
                )
            return 1e-8 if eps is None else eps
        if eps is None:
            return (2 * h or 0.5 * usual) * rate / limit
        smallest = float(np.min(eps))
        if h and h * rate > limit * smallest:
            raise ValueError(
                f"SRM: eps = {smallest:g} is too small for {name} with step {h:g}: h ‖GBE‖/ε = "
                f"{h * rate / smallest:.3g} must not exceed {limit:g}. Admissible are eps ≥ "
                f"{h * rate / limit:.2g}, or a "
                f"step ≤ {limit * smallest / rate:.2g}; hn.BDF() takes any eps"
            )
        if not h and span * rate > limit * smallest * max_steps:
            raise ValueError(
                f"SRM: eps = {smallest:g} forces {name} to about {span * rate / (limit * smallest):.1e} "
                "steps, more than "
                f"max_steps = {max_steps}. Admissible are eps ≥ {span * rate / (limit * max_steps):.2g}; "
                "hn.BDF() takes "
                "any eps"
            )
        return eps

    def remark(self, memory: np.ndarray) -> str:
        own = SequentialState.of(memory, self._at)
        held = (
            f"; in the singular position at t = {own['t_held']:.6g} (B y) kept its last value"
            if own["held"]
            else ""
        )
        return super().remark(memory) + held

    def why_stuck(self, memory: np.ndarray) -> str:
        text = super().why_stuck(memory)
        if text:
            return text
        if SequentialState.of(memory, self._at)["held_steps"] > MOST_HELD_STEPS:
            return (
                "constraint rows depend on others not in an isolated position, but from here on; use "
                "SRM(E='identity'), "
                "or for mechanical systems 'dop853'"
            )
        if self.constant and self._stiff:
            return (
                f"the constant step {self.constant:g} fails: ‖GBE‖ may have grown so much that it is "
                "unstable with ε = "
                f"{self.eps.min():.3g}; give a larger eps or a smaller step"
            )
        return ""

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        return 3 + 3 * self.problem.carried + self.most * padded(self.problem.size) if dense else 0

    def dense_output(self, record: Record) -> SequentialOutput:
        return SequentialOutput(self, record)

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        return SequentialState.vector(memory, "point", self._at)[: self.problem.size].copy()


class ImplicitSequential(Sequential):
    """BDF, for an ε of any size."""

    advance = staticmethod(sequential_bdf_steps.advance)
    interpolant = bdf_steps.interpolant
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
        from holonome.integrators.bdf import history_fields, newton_fields  # which chooses this stepper

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
        from holonome.integrators.bdf import matrix_counts

        return super().counts(memory) | matrix_counts(memory)

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        return bdf_steps.polynomial_columns(self.columns) if dense else 0

    def dense_output(self, record: Record) -> DenseOutput:
        from holonome.integrators.bdf import BDFOutput

        return BDFOutput(self, record)

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        return SequentialBDFState.vector(memory, "work", self._at)[: self.problem.size].copy()


class SequentialOutput(DenseOutput):
    """Inside a step: a step of all iterations to the wanted time."""

    def __init__(self, stepper: ExplicitSequential, record: Record) -> None:
        super().__init__(stepper, record)
        steps = record.steps
        parts = (steps[:, 0], steps[:, 4], steps[:, STEP_COLUMNS:])
        self.starts, self.counts, self.states = (np.ascontiguousarray(part) for part in parts)

    @property
    def _begins(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of the first iterations, which all steps have."""
        problem = self.stepper.problem
        at = 3 + 3 * problem.carried
        return self.starts, self.states[:, at : at + problem.size]

    def _evaluate(self, context: np.ndarray, wanted: np.ndarray, out: np.ndarray) -> int:
        memory = self.stepper.memory(0)
        self.stepper._put(memory)
        found = self.starts, self.counts, self.states, self._steps_with(wanted)
        return sequential_steps.evaluate(memory, context, *found, wanted, out)

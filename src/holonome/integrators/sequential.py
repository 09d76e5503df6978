"""Steppers for sequential regularization: the iterations of :class:`holonome.SRM`, all advanced together, by
explicit Runge–Kutta methods (:mod:`holonome.integrators.sequential_explicit`) or by BDF
(:mod:`holonome.integrators.sequential_bdf`), for mechanical systems and for problems of index 2 and 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.linalg import splu

from holonome.dynamics.kernels import dense_multipliers, kernels
from holonome.errors import SingularSystem
from holonome.formulations.sequential_regularization import SRM, regularized
from holonome.integrators import rank_watch
from holonome.integrators.contract import Beginning, Request, Stepper
from holonome.integrators.loop import RunState
from holonome.integrators.sequence import SequenceState
from holonome.integrators.start_check import check_start
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK, SINGULAR


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

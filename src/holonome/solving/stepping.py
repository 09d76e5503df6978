"""Steppers: what a run has to know of its integrator.  Each lays out the integrator's memory, puts the
initial values in, and offers the compiled loop and the solution between steps.

A stepper has ``columns``, the size of a stored state, which begins with q and v; ``advance``, the compiled
loop; ``memory(events)``; ``begin(run, trusted)``, which returns OK or why the run cannot start;
``step_columns(run)``, columns of the history beyond the common ones; and ``dense_output(run, points)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.dynamics.kernels import (
    dense_derivative,
    dense_landing,
    dense_multipliers,
    kernels,
    stabilised_derivative,
)
from holonome.dynamics.start import always_dependent_rows, dependent_rows
from holonome.errors import ModelError, SingularSystem
from holonome.formulations.coordinate_projection import CoordinateProjection, projection_kernels
from holonome.formulations.coordinate_split import CHANGES
from holonome.formulations.implicit import FRESH, ImplicitKernels
from holonome.integrators import bdf
from holonome.integrators import loop as run
from holonome.integrators import rank_watch as rank
from holonome.integrators import runge_kutta as rk
from holonome.machine.calls import run_kernel
from holonome.machine.context import DENSE_CALLS, LEFT_OUT, OK, RAISED, RANK, SINGULAR, SPARE
from holonome.problem.system import System

if TYPE_CHECKING:
    from holonome.results.solution import Solution
    from holonome.solving.run import Run

LARGEST_IMPLICIT = 1000
"""Coordinates and constraints; the dense elimination that stands behind the emitted one would need too much
memory beyond.
"""

UNTESTED = 1e290
"""Absolute tolerance of what is not tested: the positions that carry first-order states."""

CONSISTENT = 1e-13
"""Corrections of the initial values, relative to the largest, that count as rounding."""


def _layout(size: int, events: int, interpolant: int) -> tuple[dict[int, float], int]:
    """Header entries of the arrays that every integrator has, and where its own part begins."""
    stride = rk.padded(size)
    sizes = {
        run.ATOL: stride,
        run.Y: stride,
        run.Y_OLD: stride,
        run.Y_EVENT: 2 * stride + events,
        run.EVENT_OLD: events,
        run.EVENT_NEW: events,
        run.EVENT_DIRECTION: events,
        run.EVENT_TERMINAL: events,
    }
    header: dict[int, float] = {run.SIZE: size, run.STRIDE: stride, run.INTERPOLANT: interpolant}
    at = run.HEADER
    for place, length in sizes.items():
        header[place] = at
        at += rk.padded(length)
    return header, at


def watch_memory(system: System, for_nothing: bool = False) -> np.ndarray:
    """Memory of the watch over the rank of the constraints, whose values stand at the end of a landing; a
    landing for its sake alone does not call Python.

    Large systems, whose landing is sparse, are not watched: their pivots are those of another order of
    elimination, and say nothing.
    """
    if (
        system.m == 0
        or kernels(system).sparse
        or not (for_nothing or all(foreign.path != "python" for foreign in system.foreign))
    ):
        return np.zeros(0)
    return rank.own_memory(kernels(system).landing, 6 * system.dim + 2, system.dim, 1 + system.m)


def _shared(
    system: Any,
    key: tuple,
    build: Callable[[], tuple[dict[int, float], int, np.ndarray]],
    watch: Callable[[Any], np.ndarray] = watch_memory,
) -> np.ndarray:
    """A copy of a memory that is laid out once for a system: what ``build`` says, and that of the watch."""

    def make() -> np.ndarray:
        header, at, own = build()
        watching = watch(system)
        memory = np.concatenate([np.zeros(at), own, watching])
        memory[[*header, run.WATCH]] = [*header.values(), at + own.size if watching.size else 0]
        return memory

    return system.compiled.once(key, make).copy()


class _Stepper:
    """What all steppers do about invariants and redundant rows: values at the start, and marks, belong to the
    context of a run and of its dense output.
    """

    system: System
    invariants: np.ndarray | None = None
    left_out: Sequence[int] = ()

    def met_stiffness(self, memory: np.ndarray) -> bool:
        """Whether a run stopped because its steps look as if stability limited them."""
        return False

    def remember_invariants(self, task: Run) -> None:
        if self.invariants is None:
            compiled, count = kernels(self.system), self.system.invariant_count
            if compiled.dense:
                raise ModelError(
                    "invariant: this system needs pivoting (a coordinate without mass, or a very large "
                    "system), which cannot project onto invariants"
                )
            out, y = np.zeros(3 * count + 1), task.state[: 2 * self.system.dim].copy()
            if run_kernel(compiled.invariants, task.t0, y, out, task.context, out) == OK and np.all(
                np.isfinite(out)
            ):
                self.invariants = out[:count].copy()
                refuse_false_invariants(out[:-1].reshape(3, count), task.t0)
            elif np.all(np.isfinite(y)) and not np.all(np.isfinite(out[:count])):
                raise ModelError(
                    f"invariant: entry {int(np.argmin(np.isfinite(out[:count])))} is not finite at the start"
                )
            else:
                return
        self.system.fill_invariants(task.context, self.invariants)

    def context(self) -> np.ndarray:
        """A context for dense output."""
        context = kernels(self.system).context(self.system)
        if self.invariants is not None:
            self.system.fill_invariants(context, self.invariants)
        self.mark_left_out(context)
        return context

    def mark_left_out(self, context: np.ndarray) -> None:
        """Tell the dense kernels which rows to leave out."""
        if self.left_out:
            context[[int(context[LEFT_OUT]) + i for i in self.left_out]] = 1.0


def refuse_false_invariants(values: np.ndarray, t: float) -> None:
    """Raise if something that is said to be invariant changes along the motion; ``values`` are invariants,
    their rates, and the terms of these.
    """
    for i, (_, rate, terms) in enumerate(values.T):
        if abs(rate) > 1e-6 * terms:
            raise ModelError(
                f"invariant: entry {i} changes along the motion, at the rate {rate:.3g} at t = {t:.6g}; it "
                "is no invariant of this system"
            )


class Explicit(_Stepper):
    """Runge–Kutta on the underlying ODE."""

    advance = staticmethod(rk.advance)

    def __init__(
        self,
        system: System,
        tableau: str,
        project: bool,
        constant: float,
        stabilisation: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.system, self.tableau, self.project, self.constant, self.stabilisation = (
            system,
            tableau,
            project,
            constant,
            stabilisation,
        )
        self.columns = 2 * system.dim

    def memory(self, events: int) -> np.ndarray:
        key = ("memory", self.tableau, self.stabilisation, self.project, events)
        memory = self._new_memory(key, events)
        constrained = self.system.projects
        memory[run.ON_MANIFOLD] = 1.0
        memory[rk.PROJECT], memory[rk.CONSTANT] = self.project and constrained, self.constant
        memory[rk.CHECK] = rk.CONSTRAINED if constrained else rk.UNCONSTRAINED
        return memory

    def _new_memory(self, key: tuple, events: int) -> np.ndarray:
        def build() -> tuple[dict[int, float], int, np.ndarray]:
            compiled = kernels(self.system)
            header, at = _layout(self.columns, events, rk.interpolant.address)
            own, own_header = rk.own_memory(self.tableau, self.system.dim, self.system.m, at)
            derivative = (
                stabilised_derivative(self.system, *self.stabilisation)
                if any(self.stabilisation)
                else compiled.derivative
            )
            addresses = {
                rk.DERIVATIVE: derivative,
                rk.LANDING: compiled.landing,
                rk.DENSE_DERIVATIVE: dense_derivative.address,
                rk.DENSE_LANDING: dense_landing.address,
            }
            return header | own_header | addresses, at, own

        return _shared(self.system, key, build, partial(watch_memory, for_nothing=self.project))

    def met_stiffness(self, memory: np.ndarray) -> bool:
        return memory[rk.STIFF] < 0

    def begin(self, task: Run, trusted: bool) -> int:
        """The compiled loop itself checks the start, unless it is known to be consistent."""
        self.mark_left_out(task.context)
        if trusted:
            task.memory[rk.SCALE_Q] = task.memory[rk.SCALE_V] = 0.0
            task.memory[rk.CHECK] = rk.TRUSTED
        return OK

    def step_columns(self, task: Run) -> int:
        return self.columns if task.keep_all else 0

    def dense_output(self, task: Run, points: np.ndarray) -> ExplicitOutput:
        times, states = points[:, 0], points[:, 1:]
        if task.keep_all:
            steps = task.steps()
            times, states = (
                np.append(steps[:, 0], task.memory[run.T]),
                np.vstack([steps[:, run.STEP_COLUMNS :], task.state]),
            )
        return ExplicitOutput(self, np.ascontiguousarray(times), np.ascontiguousarray(states))

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        """Where the system was last evaluated in vain."""
        at = int(memory[rk.Z])
        return memory[at : at + 2 * self.system.dim].copy()


class Implicit(_Stepper):
    """BDF on an implicit formulation."""

    advance = staticmethod(bdf.advance)

    def __init__(self, system: System, formulation: Any, integrator: bdf.BDF, constant: float) -> None:
        self.system, self.formulation, self.integrator, self.constant = (
            system,
            formulation,
            integrator,
            constant,
        )
        self.projection = formulation if isinstance(formulation, CoordinateProjection) else None
        self.metric = (
            (self.projection.metric, self.projection.relaxed) if self.projection else ("mass", False)
        )
        self.columns = 2 * system.dim + system.m

    @property
    def compiled(self) -> ImplicitKernels:
        system, formulation = self.system, self.formulation

        def make() -> ImplicitKernels:
            own = getattr(formulation, "kernels", None)
            return own(system) if own else ImplicitKernels(system, repr(formulation), formulation.residual)

        return system.compiled.once(("implicit", formulation), make)

    def memory(self, events: int) -> np.ndarray:
        compiled = self.compiled

        def build() -> tuple[dict[int, float], int, np.ndarray]:
            header, at = _layout(self.columns, events, bdf.interpolant.address)
            emitted = self.system.projects and not kernels(self.system).dense
            keeps = self.system.projects and not getattr(self.formulation, "drifts", False)
            own, own_header = bdf.own_memory(
                compiled,
                projection_kernels(self.system, *self.metric) if emitted else None,
                self.system.dim,
                at,
            )
            return header | own_header | {bdf.DENSE_LANDING: dense_landing.address if keeps else 0}, at, own

        memory = _shared(self.system, ("memory", self.formulation, events), build)
        memory[bdf.MAX_ORDER], memory[bdf.NEWTON_TOLERANCE] = (
            self.integrator.order or self.integrator.max_order,
            self.integrator.newton_tolerance,
        )
        memory[bdf.MAX_ITERATIONS], memory[bdf.RATE_FLOOR] = (
            10 if self.constant else 4,
            self.integrator.rate_floor,
        )
        memory[bdf.CONSTANT_STEP] = self.constant
        memory[bdf.PROJECT] = self.projection is not None and self.system.projects
        return memory

    def begin(self, task: Run, trusted: bool) -> int:
        """Accelerations and multipliers at the start; or why there are none."""
        n, m, y, compiled = (
            self.system.dim,
            self.system.m,
            task.state[: 2 * self.system.dim].copy(),
            kernels(self.system),
        )
        landed, lam, zero = np.zeros(compiled.landing_size), np.zeros(m + 1), np.zeros(2 * n + 2)
        status = run_kernel(compiled.landing, task.t0, y, zero, task.context, landed)
        if status == SINGULAR:
            status = run_kernel(dense_landing.address, task.t0, y, zero, task.context, landed)
        if status >= RAISED:
            return run.USER_FUNCTION_FAILED
        finite, on_manifold = bdf.check_start(y, landed, n, CONSISTENT)
        if status != OK or not finite:
            return run.CANNOT_START
        if not trusted and m and (task.context[DENSE_CALLS] > 0 or not on_manifold):
            return run.OFF_MANIFOLD
        if m and run_kernel(compiled.multipliers, task.t0, y, zero, task.context, lam) == SINGULAR:
            run_kernel(dense_multipliers.address, task.t0, y, zero, task.context, lam)
        if task.context[RANK] < m:
            self._leave_out_redundant(task, y, lam)
        self._fill(task, y, landed[n : 2 * n], lam[:m])
        if task.history is not None:
            self._fill_history(task, task.history)
        return OK

    def _leave_out_redundant(self, task: Run, y: np.ndarray, lam: np.ndarray) -> None:
        """Rows that always follow from others are left out and get no multiplier; in a singular position BDF
        cannot start.
        """
        n, m, mg, memory, name = (
            self.system.dim,
            self.system.m,
            self.system.model.position_rows,
            task.memory,
            type(self.formulation).__name__,
        )
        C = kernels(self.system).evaluate_pieces(task.context, task.t0, y[:n], y[n:])["C"]  # pyright: ignore[reportOptionalSubscript]
        rank, here = dependent_rows(C)
        task.left_out = self.left_out = always_dependent_rows(self.system, task.t0, y[:n], y[n:])
        if self.compiled.residual.multipliers == 0 or len(task.left_out) < len(here):
            what = (
                "needs independent constraints"
                if self.compiled.residual.multipliers == 0
                else "cannot start in a singular position"
            )
            raise SingularSystem(
                f"method: {name} with BDF {what}; here only {rank} of {m} rows are independent "
                f"({', '.join(self.system.constraint_names[i] for i in here[:4])} "
                "depends on others). Use an explicit method, which handles that"
            )
        self.mark_left_out(task.context)
        memory[[bdf.PROJECTION_KERNEL, bdf.PROJECTION_FACTORS]] = 0.0  # the emitted projection knows all rows
        kept = [i for i in range(m) if i not in task.left_out]
        force = lam[:m] @ C
        lam[:m] = 0.0
        lam[kept] = np.linalg.lstsq(C[kept].T, force, rcond=None)[0]
        at = int(memory[bdf.SPARE])
        memory[[at + i for i in task.left_out]] = SPARE
        if self.compiled.residual.multipliers > m:
            memory[[at + m + i for i in task.left_out if i < mg]] = SPARE

    def _fill(self, task: Run, y: np.ndarray, a: np.ndarray, lam: np.ndarray) -> None:
        n, m, memory, compiled = self.system.dim, self.system.m, task.memory, self.compiled
        size, at, atol = compiled.size, int(memory[bdf.YY]), int(memory[bdf.ATOL_ALL])
        start = memory[at : at + 2 * size]
        start[: 2 * n], start[2 * n : 2 * n + m] = y, lam
        if compiled.residual.accelerations:
            start[2 * n + m : 3 * n + m] = a
        self._fill_further(task, start[:size], task.t0)
        start[size : size + n], start[size + n : size + 2 * n] = y[n:], a
        task.state[:] = start[: self.columns]
        if compiled.prediction:
            block = int(memory[bdf.BLOCK])
            memory[block + FRESH] = 1.0
            run_kernel(
                compiled.prediction, task.t0, start.copy(), memory[block:], task.context, np.zeros(size)
            )
        memory[atol : atol + size] = (
            task.atol
            if isinstance(task.atol, float)
            else np.max(task.atol, where=np.less(task.atol, UNTESTED), initial=0.0)
        )
        memory[atol : atol + 2 * n] = task.atol
        if task.counts[run.POINTS]:
            task.points[0, 1:] = task.state

    def _fill_further(self, task: Run, unknowns: np.ndarray, t: float) -> None:
        """Unknowns behind q, v, λ that the formulation knows from these."""
        if self.compiled.initial:
            values = np.zeros(self.compiled.size - self.columns + 1)
            run_kernel(self.compiled.initial, t, unknowns.copy(), values, task.context, values)
            unknowns[self.columns :] = values[:-1]

    def _fill_history(self, task: Run, history: Solution) -> None:
        """Begin at a constant order k with the backward differences of k known points: φ_i = ∇^{i−1} Y at a
        constant step.
        """
        memory, counts, size, k, h = (
            task.memory,
            task.counts,
            self.compiled.size,
            self.integrator.order or 1,
            task.counts[run.WAY] * self.constant,
        )
        rows = np.zeros((k, size))
        rows[:, : self.columns] = np.hstack([history.states[:, : 2 * self.system.dim], history.lam.T])
        if self.compiled.residual.accelerations:
            rows[:, self.columns : self.columns + self.system.dim] = history.rates.T
        for row, t in zip(rows, history.t, strict=True):
            self._fill_further(task, row, t)
        phi, psi = int(memory[bdf.PHI]), int(memory[bdf.PSI])
        differences = rows[::-1].copy()
        for i in range(k):
            memory[phi + i * size : phi + (i + 1) * size] = differences[0]
            differences = differences[:-1] - differences[1:]
        memory[psi : psi + bdf.MOST + 1] = h * np.arange(1, bdf.MOST + 2)
        # φ_{k+1} of the coming step is the (unknown) k-th difference; DASSL's predictor then is of order k −
        # 1, which costs an iteration but no accuracy
        memory[phi + k * size : phi + (k + 1) * size] = 0.0
        memory[run.T] = history.t[-1]
        memory[run.H] = memory[bdf.H_OLD] = h
        memory[bdf.CJ], memory[bdf.RATE_FACTOR] = 1 / h, 100.0
        counts[bdf.ORDER] = counts[bdf.ORDER_OLD] = k
        counts[bdf.PHASE], counts[bdf.CONSTANT_ORDER], counts[run.STATE], counts[run.ACCEPTED] = (
            1,
            1,
            run.STEPPING,
            k - 1,
        )
        if counts[run.KEEP_POINTS]:
            task.points[:k, 0], task.points[:k, 1:] = history.t, rows[:, : self.columns]
            counts[run.POINTS] = k

    def step_columns(self, task: Run) -> int:
        return bdf.polynomial_columns(self.columns) if task.dense else 0

    def dense_output(self, task: Run, points: np.ndarray) -> ImplicitOutput:
        return ImplicitOutput(self, task.steps(), float(task.t0))

    def splits(self, memory: np.ndarray) -> int:
        """How often the coordinates were split anew."""
        return int(memory[int(memory[bdf.BLOCK]) + CHANGES]) if self.compiled.prediction else 0

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        """Where the system was last evaluated in vain."""
        at = int(memory[bdf.YY])
        return memory[at : at + 2 * self.system.dim].copy()


class _Output:
    """The solution at any time of a run: ``q, v = sol.sol(t)``, or ``x = sol.sol(t)`` for an ODE; arrays (n,)
    for a scalar t, (n, len(t)) else.  It pickles.
    """

    def __init__(self, stepper: Any, times: tuple[float, float]) -> None:
        self.stepper, self._limits = stepper, (min(times), max(times))

    def __call__(self, t: Any) -> Any:
        out, n, own = self.rows(t), self.stepper.system.dim, self.stepper.system.n
        if own == 0:
            x = out[:, n : 2 * n].T
            return x[:, 0] if np.ndim(t) == 0 else x
        q, v = out[:, :own].T, out[:, n : n + own].T
        return (q[:, 0], v[:, 0]) if np.ndim(t) == 0 else (q, v)

    def rows(self, t: Any) -> np.ndarray:
        """Stored states, one row for each time."""
        wanted, (low, high) = np.atleast_1d(np.asarray(t, dtype=float)), self._limits
        if wanted.size and not (
            np.all(wanted >= low - 1e-12 * abs(low)) and np.all(wanted <= high + 1e-12 * abs(high))
        ):
            raise ValueError(f"t: the solution is known from {low:.9g} to {high:.9g} only")
        wanted = np.clip(wanted, low, high)
        out = np.empty((wanted.size, self.stepper.columns))
        done = self._evaluate(wanted, out)
        if done < wanted.size:
            raise RuntimeError(f"the system could not be evaluated at t = {wanted[done]:.9g}")
        return out

    def _evaluate(self, wanted: np.ndarray, out: np.ndarray) -> int:
        raise NotImplementedError


class ExplicitOutput(_Output):
    """Between two points of a Runge–Kutta run: a step of the method."""

    def __init__(self, stepper: Explicit, times: np.ndarray, states: np.ndarray) -> None:
        super().__init__(stepper, (times[0], times[-1]))
        self.times, self.states = times, states

    def _evaluate(self, wanted: np.ndarray, out: np.ndarray) -> int:
        n, memory = self.stepper.system.dim, self.stepper.memory(0)
        memory[run.T_START], memory[run.T_END] = self.times[0], self.times[-1]
        memory[rk.SCALE_Q], memory[rk.SCALE_V] = (
            max(float(np.max(np.abs(x))), 1e-300) for x in (self.states[:, :n], self.states[:, n:])
        )
        return rk.evaluate(memory, self.stepper.context(), self.times, self.states, wanted, out)


class ImplicitOutput(_Output):
    """Inside a step of BDF: its polynomial, brought onto the manifold."""

    def __init__(self, stepper: _Stepper, steps: np.ndarray, t0: float) -> None:
        super().__init__(stepper, (t0, float(steps[-1, 0] + steps[-1, 1])))
        self.steps = steps

    def _evaluate(self, wanted: np.ndarray, out: np.ndarray) -> int:
        return bdf.evaluate(self.stepper.memory(0), self.stepper.context(), self.steps, wanted, out)

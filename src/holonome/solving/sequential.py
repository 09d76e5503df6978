"""Steppers of sequential regularization, as in :mod:`holonome.solving.stepping`, for mechanical systems and
for general problems of index 2 and 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.dynamics.kernels import dense_landing, dense_multipliers, kernels
from holonome.errors import SingularSystem
from holonome.formulations.sequential_regularization import SRM, Regularized, regularized
from holonome.integrators import bdf
from holonome.integrators import loop as run
from holonome.integrators import rank_watch as rank
from holonome.integrators import runge_kutta as rk
from holonome.integrators import sequential as seq
from holonome.integrators import sequential_bdf as sbdf
from holonome.machine.calls import run_kernel
from holonome.machine.context import DENSE_CALLS, OK, RAISED, SINGULAR
from holonome.problem.general import HigherIndex
from holonome.problem.system import System
from holonome.solving.stepping import (
    CONSISTENT,
    ImplicitOutput,
    _layout,
    _Output,
    _shared,
    _Stepper,
    watch_memory,
)

if TYPE_CHECKING:
    from holonome.solving.run import Run


class Sequential(_Stepper):
    """A stepper for the iterations of SRM, all advanced together, as in :mod:`holonome.solving.stepping`;
    ``loop`` is the integrator with its places in the memory.
    """

    loop: Any

    def __init__(self, system: System | HigherIndex, srm: SRM, constant: float, way: int) -> None:
        self.system, self.srm, self.constant, self.way = system, srm, constant, way
        problem = self.problem
        shown = (
            problem.carried
            if not isinstance(system, System)
            else problem.m
            if srm.variant in ("invariant", "baumgarte")
            else 0
        )
        self.columns = problem.size + shown
        self.most, self.automatic = srm.count(0.0)
        self.eps, self.y0 = np.zeros(0), np.zeros(0)

    @property
    def problem(self) -> Regularized:
        return regularized(self.system, self.srm, self.way)

    def _set_up(self, memory: np.ndarray, smaller_eps: bool) -> np.ndarray:
        """What both loops have to know: whether the number of iterations is free (1), and ε as well (2), how
        many begin, the index, whether to look for an impasse.
        """
        loop, free = self.loop, 2.0 if self.srm.eps is None and smaller_eps else 1.0
        memory[run.ON_MANIFOLD] = 1.0
        memory[loop.AUTOMATIC], memory[loop.ACTIVE], memory[loop.INDEX] = (
            free * self.automatic,
            min(2, self.most) if self.automatic else self.most,
            self.problem.order + 1,
        )
        memory[loop.IMPASSE] = 0.0 if self._stiff else -1.0
        return memory

    def context(self) -> np.ndarray:
        """A context for dense output."""
        return super().context() if isinstance(self.system, System) else self.system.context()

    def begin(self, task: Run, trusted: bool) -> int:
        """Check the start, choose ε and y₀, and let all iterations begin there."""
        n, t0, x, compiled = (
            self.system.dim,
            task.t0,
            task.state[: 2 * self.system.dim].copy(),
            kernels(self.system),
        )  # type: ignore[arg-type]
        landed, zero = np.zeros(compiled.landing_size), np.zeros(2 * n + 2)
        status = run_kernel(compiled.landing, t0, x, zero, task.context, landed)
        if status == SINGULAR:
            status = run_kernel(dense_landing.address, t0, x, zero, task.context, landed)
        if status >= RAISED:
            return run.USER_FUNCTION_FAILED
        if status != OK or not np.all(np.isfinite(landed[: 2 * n])) or not np.all(np.isfinite(x)):
            return run.CANNOT_START
        moved, size = (np.abs(part).reshape(2, n).max(axis=1) for part in (landed[4 * n : 6 * n], x))
        if not trusted and (task.context[DENSE_CALLS] > 0 or np.any(moved > CONSISTENT * size)):
            return run.OFF_MANIFOLD
        self.fill(task.memory, task.context, t0, task.t1, x, int(task.counts[run.MAX_STEPS]))
        task.state[2 * n :] = self.y0[: self.columns - 2 * n]
        if task.counts[run.POINTS]:
            task.points[0, 1:] = task.state
        return OK

    def _first_values(
        self, context: np.ndarray, t0: float, x: np.ndarray, longest: float
    ) -> tuple[float, float]:
        """Choose y₀; returns the time scale of the motion and the fastest rate of the regularization, times ε
        if that is one.
        """
        self.y0 = self._first_y(context, t0, x)
        if self.srm.variant == "singular" and self._exact_y(context, t0, x) is None:
            raise SingularSystem(
                "method: SRM passes isolated singular positions, but here constraint rows depend on others "
                "from the start. "
                "Use SRM(E='identity'), or for mechanical systems 'dop853'"
            )
        return self._time_scale(context, t0, x, longest), self._stiffness(context, t0, x)

    def _watch(self, system: System | HigherIndex) -> np.ndarray:
        """Memory of the watch over the rank of C, or of GB."""
        if isinstance(system, System):
            return watch_memory(system)
        return rank.own_memory(self.problem.address("regularity"), 0, system.n, 1 + 2 * system.m)

    def _put(self, memory: np.ndarray) -> None:
        for at, values in ((memory[self.loop.EPS], self.eps), (memory[self.loop.Y0] + 2, self.y0)):
            memory[int(at) : int(at) + values.size] = values

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

    def _exact_y(self, context: np.ndarray, t: float, x: np.ndarray) -> np.ndarray | None:
        """The y of the exact solution through a point, for redundant rows the smallest; None in a singular
        position.
        """
        problem, out = self.problem, np.zeros(self.system.m + 1)
        if not isinstance(self.system, System) or self.srm.variant not in ("invariant", "baumgarte"):
            return problem.evaluate(
                "multiplier", context, t, x, np.zeros(problem.carried + 1), problem.carried
            )
        status = run_kernel(kernels(self.system).multipliers, t, x, out, context, out)
        if status == SINGULAR:
            status = run_kernel(dense_multipliers.address, t, x, out, context, out)
        return out[:-1] if status == OK and np.all(np.isfinite(out)) else None

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
        matrix = problem.evaluate("stiffness", context, t, x, np.zeros(problem.carried + 1), m * m)
        largest = 1.0 if matrix is None else float(np.max(np.abs(np.linalg.eigvals(matrix.reshape(m, m)))))
        return largest * (abs(alpha[1]) if alpha else 1.0)

    def _time_scale(self, context: np.ndarray, t: float, x: np.ndarray, longest: float) -> float:
        """The time in which the motion changes, |x|/|x′| or √(|x|/|x″|) at the start."""
        problem = self.problem
        n = problem.size // problem.order
        y = self._exact_y(context, t, x)
        k = (
            None
            if y is None
            else problem.evaluate(
                "free", context, t, x, np.append(0.0, y), problem.size + problem.carried + 1
            )
        )
        sizes = [
            float(np.max(np.abs(part)))
            for part in ((x[:n], np.zeros(1)) if k is None else (x[:n], k[:n], k[n : problem.size]))[:3]
            if part.size
        ]
        return min(
            [
                longest,
                *[
                    (sizes[0] / size) ** (1 / i)
                    for i, size in enumerate(sizes[1:], 1)
                    if size > 0 and sizes[0] > 0
                ],
            ]
        )

    @property
    def _multiplier(self) -> int:
        """The kernel for the y of the exact solution."""
        plain = isinstance(self.system, System) and self.srm.variant in ("invariant", "baumgarte")
        return kernels(self.system).multipliers if plain else self.problem.address("multiplier")  # type: ignore[arg-type]

    def remark(self, memory: np.ndarray) -> str:
        """What SRM did, in words."""
        loop = self.loop
        active, at = int(memory[loop.ACTIVE]), int(memory[loop.EPS])
        parts = [
            f"SRM: {active} iteration{'s' * (active != 1)}, ε = "
            f"{' / '.join(f'{e:.3g}' for e in dict.fromkeys(memory[at : at + active]))}"
        ]
        if memory[at] != self.eps[0]:
            parts[0] += f", {self.eps[0]:.3g} at the start"
        if self.srm.variant == "singular":
            parts[0] += ", rows of G equilibrated"
        if loop is seq and memory[seq.HELD]:
            parts.append(
                f"in the singular position at t = {memory[seq.T_HELD]:.6g} (B y) kept its last value"
            )
        return "; ".join(parts)

    def why_stuck(self, memory: np.ndarray) -> str:
        """Diagnosis, where SRM has one."""
        loop = self.loop
        if memory[loop.IMPASSE] > 0:
            missed, largest = memory[loop.VIOLATION], memory[loop.LARGEST]
            return (
                f"an impasse: no motion passes smoothly on the constraints here; {missed:.2g} of a velocity "
                f"of {largest:.2g} suddenly violates them"
                if memory[loop.INDEX] > 2
                else "an impasse: no solution passes smoothly on the constraints here; it suddenly misses "
                f"them by {missed:.2g}"
            )
        if loop is seq and memory[seq.HELD_STEPS] > seq.MOST_HELD_STEPS:
            return "constraint rows depend on others not in an isolated position, but from here on; use SRM(E='identity'), or for mechanical systems 'dop853'"
        if self.automatic and memory[loop.DIFFERENCE] > 1:
            return (
                f"the iterations do not settle: the last of {int(memory[loop.ACTIVE])} still changes by "
                f"{memory[loop.DIFFERENCE]:.1g} times the tolerance. "
                f"Give a smaller {'step' if self.constant and self.srm.eps is None else 'eps'}, or "
                "iterations=… to do without this test; or it is an impasse"
            )
        if self.constant and self._stiff and loop is seq:
            return f"the constant step {self.constant:g} fails: ‖GBE‖ may have grown so much that it is unstable with ε = {self.eps.min():.3g}; give a larger eps or a smaller step"
        return ""


class ExplicitSequential(Sequential):
    """Explicit Runge–Kutta methods."""

    advance, loop = staticmethod(seq.advance), seq

    def __init__(
        self, system: System | HigherIndex, srm: SRM, tableau: str, constant: float, way: int
    ) -> None:
        super().__init__(system, srm, constant, way)
        self.tableau = tableau

    def memory(self, events: int) -> np.ndarray:
        problem, srm = self.problem, self.srm

        def build() -> tuple[dict[int, float], int, np.ndarray]:
            header, at = _layout(self.columns, events, seq.interpolant.address)
            own, own_header = seq.own_memory(self.tableau, problem.size, problem.carried, self.most, at)
            addresses = {
                seq.RATE: problem.address("rate"),
                seq.FREE: problem.address("free"),
                seq.MULTIPLIER: self._multiplier,
                seq.HOLDS: srm.variant == "singular",
                seq.STABILIZATION: problem.address("stabilization") if srm.post_stabilization else 0,
            }
            return header | own_header | addresses, at, own

        key = (
            "memory",
            "SRM",
            self.tableau,
            srm.variant,
            srm.E,
            srm.alpha,
            bool(srm.post_stabilization),
            self.most,
            self.way,
            events,
        )
        memory = _shared(self.system, key, build, self._watch)
        memory[seq.CONSTANT], memory[seq.MESH], memory[seq.TIMES] = (
            self.constant,
            self.tableau == "heun",
            srm.post_stabilization,
        )
        return self._set_up(memory, not self.constant)

    def fill(
        self, memory: np.ndarray, context: np.ndarray, t0: float, t1: float, x: np.ndarray, max_steps: int
    ) -> None:
        """Initial values of all iterations, y₀ and ε."""
        stride = rk.padded(x.size)
        at = int(memory[seq.X])
        memory[at : at + self.most * stride].reshape(-1, stride)[:, : x.size] = x
        time_scale, rate = self._first_values(context, t0, x, min(abs(t1 - t0), memory[run.H_MAX]))
        usual = time_scale * float(memory[run.RTOL]) ** (1 / rk.TABLEAUS[self.tableau].order)
        memory[seq.TAU] = time_scale if isinstance(self.srm.y0, str) else 0.0
        self.eps = np.broadcast_to(self._checked_eps(rate, usual, abs(t1 - t0), max_steps), self.most).astype(
            float
        )
        self._put(memory)
        if memory[run.FIRST_STEP] == 0.0:
            fastest = rate / self.eps.min() if self._stiff and self.eps.min() > 0 else rate
            memory[run.FIRST_STEP] = min(
                0.1 * usual, rk.TABLEAUS[self.tableau].stable / max(fastest, 1e-300), memory[run.H_MAX]
            )

    def _checked_eps(self, rate: float, usual: float, span: float, max_steps: int) -> Any:
        """ε as given, if an explicit method can work with it; else as small as it can."""
        eps, limit, h = self.srm.eps, rk.TABLEAUS[self.tableau].stable, self.constant
        name = {"heun": "Heun's method", "dopri5": "Dormand–Prince 5(4)", "dop853": "DOP853"}[self.tableau]
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
                f"{h * rate / smallest:.3g} must not exceed {limit:g}. "
                f"Admissible are eps ≥ {h * rate / limit:.2g}, or a step ≤ {limit * smallest / rate:.2g}; "
                "hn.BDF() takes any eps"
            )
        if not h and span * rate > limit * smallest * max_steps:
            raise ValueError(
                f"SRM: eps = {smallest:g} forces {name} to about {span * rate / (limit * smallest):.1e} "
                f"steps, more than max_steps = {max_steps}. "
                f"Admissible are eps ≥ {span * rate / (limit * max_steps):.2g}; hn.BDF() takes any eps"
            )
        return eps

    def step_columns(self, task: Run) -> int:
        return 3 + 3 * self.problem.carried + self.most * rk.padded(self.problem.size) if task.dense else 0

    def dense_output(self, task: Run, points: np.ndarray) -> SequentialOutput:
        return SequentialOutput(self, task.steps(), float(task.t0))

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        """Where the system was last evaluated in vain."""
        at = int(memory[seq.POINT])
        return memory[at : at + self.problem.size].copy()


class ImplicitSequential(Sequential):
    """BDF, for an ε of any size."""

    advance, loop = staticmethod(sbdf.advance), sbdf

    def __init__(
        self, system: System | HigherIndex, srm: SRM, integrator: bdf.BDF, constant: float, way: int
    ) -> None:
        super().__init__(system, srm, constant, way)
        self.integrator = integrator
        if srm.post_stabilization:
            raise ValueError(
                "SRM: post_stabilization moves a point away from the polynomial that BDF goes through; use "
                "RungeKutta('dop853'), or CoordinateProjection() with BDF()"
            )
        if integrator.order:
            raise ValueError(
                "BDF: a constant order needs a known history, which the iterations of SRM do not have; use "
                "max_order"
            )

    def memory(self, events: int) -> np.ndarray:
        problem, srm, integrator = self.problem, self.srm, self.integrator

        def build() -> tuple[dict[int, float], int, np.ndarray]:
            header, at = _layout(self.columns, events, bdf.interpolant.address)
            own, own_header = sbdf.own_memory(problem.implicit, problem.size, problem.carried, self.most, at)
            return header | own_header | {sbdf.RATE: problem.address("rate")}, at, own

        memory = _shared(
            self.system,
            ("memory", "SRM", "BDF", srm.variant, srm.E, srm.alpha, self.most, self.way, events),
            build,
            self._watch,
        )
        memory[bdf.MAX_ORDER], memory[bdf.NEWTON_TOLERANCE], memory[bdf.RATE_FLOOR] = (
            integrator.max_order,
            integrator.newton_tolerance,
            integrator.rate_floor,
        )
        memory[bdf.MAX_ITERATIONS], memory[bdf.CONSTANT_STEP] = 10 if self.constant else 4, self.constant
        self._set_up(memory, True)
        memory[bdf.UNKNOWNS] = memory[sbdf.ACTIVE] * problem.implicit.size
        return memory

    def fill(
        self, memory: np.ndarray, context: np.ndarray, t0: float, t1: float, x: np.ndarray, max_steps: int
    ) -> None:
        """Initial values of all iterations, y₀ and ε: √rtol/10 of the time in which the motion changes, so
        that the second iteration comes close to the tolerance.
        """
        problem = self.problem
        time_scale, rate = self._first_values(context, t0, x, min(abs(t1 - t0), memory[run.H_MAX]))
        usual = 0.1 * float(np.sqrt(memory[run.RTOL])) * time_scale * rate if self._stiff else 1e-8
        self.eps = np.broadcast_to(usual if self.srm.eps is None else self.srm.eps, self.most).astype(float)
        self._put(memory)
        for place, values in (
            (bdf.YY, np.concatenate([x, self.y0])),
            (bdf.ATOL_ALL, np.append(memory[int(memory[run.ATOL]) :][: x.size], np.ones(problem.carried))),
        ):
            at = int(memory[place])
            memory[at : at + self.most * problem.implicit.size] = np.tile(values, self.most)

    def step_columns(self, task: Run) -> int:
        return bdf.polynomial_columns(self.columns) if task.dense else 0

    def dense_output(self, task: Run, points: np.ndarray) -> ImplicitOutput:
        return ImplicitOutput(self, task.steps(), float(task.t0))

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        """Where the system was last evaluated in vain."""
        at = int(memory[sbdf.WORK])
        return memory[at : at + self.problem.size].copy()


class SequentialOutput(_Output):
    """Inside a step: a step of all iterations to the wanted time."""

    def __init__(self, stepper: ExplicitSequential, steps: np.ndarray, t0: float) -> None:
        super().__init__(stepper, (t0, float(steps[-1, 0] + steps[-1, 1])))
        self.starts, self.counts, self.states = (
            np.ascontiguousarray(part) for part in (steps[:, 0], steps[:, 4], steps[:, run.STEP_COLUMNS :])
        )

    def _evaluate(self, wanted: np.ndarray, out: np.ndarray) -> int:
        memory = self.stepper.memory(0)
        self.stepper._put(memory)
        return seq.evaluate(
            memory, self.stepper.context(), self.starts, self.counts, self.states, wanted, out
        )

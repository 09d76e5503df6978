"""The solution at any time of a run, from what its history holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from holonome.dynamics.kernels import dense_multipliers, kernels, over_points
from holonome.integrators.loop import OWN, STEP_COLUMNS, RunState
from holonome.locks import cached_property

if TYPE_CHECKING:
    from holonome.integrators.contract import Stepper

_PARTS_OF_A_STEP = 64


class Record(NamedTuple):
    """What a run leaves behind for its dense output."""

    t0: float
    t_end: float
    first_state: np.ndarray
    last_state: np.ndarray
    solved: np.ndarray | None  # what was solved for inside the last evaluation
    points: np.ndarray  # rows (t, state)
    steps: np.ndarray  # rows of the history
    steps_beside_points: bool


class DenseOutput(ABC):
    """The solution at any time of a run: ``q, v = sol.sol(t)``, ``q, v, s = sol.sol(t)`` for a system with
    first-order states, ``x = sol.sol(t)`` for an ODE.

    Arrays (n,) for a scalar t, (n, len(t)) else.  It pickles.
    """

    def __init__(self, stepper: Stepper, record: Record) -> None:
        self.stepper: Any = stepper
        self.record = record

    def __call__(self, t: Any) -> Any:
        return self.stepper.system.split_state(self.rows(t), np.ndim(t) == 0)

    def rows(self, t: Any) -> np.ndarray:
        """Stored states, one row for each time."""
        low, high = sorted((self.record.t0, self.record.t_end))
        wanted = np.atleast_1d(np.asarray(t, dtype=float))
        inside = (wanted >= low - 1e-12 * abs(low)) & (wanted <= high + 1e-12 * abs(high))
        if not np.all(inside):
            raise ValueError(f"t: the solution is known from {low:.9g} to {high:.9g} only")
        wanted = np.clip(wanted, low, high)
        out = np.empty((wanted.size, self.stepper.columns))
        for mine, context in self._contexts(wanted):
            part = np.empty((mine.size, self.stepper.columns))
            done = self._evaluate(context, wanted[mine], part)
            if done < mine.size:
                raise RuntimeError(f"the system could not be evaluated at t = {wanted[mine[done]]:.9g}")
            out[mine] = part
        return out

    def _contexts(self, wanted: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Which of the times are evaluated together, and in which context: variables that are solved for
        inside an evaluation are followed from the beginning of the step, as others may solve the same
        equations.
        """
        system, context = self.stepper.system, self.stepper.context()
        if not system.solves:
            yield np.arange(wanted.size), context
            return
        steps = self._steps_with(wanted)
        for step in np.unique(steps):
            system.recall_solved(context, self._solved_at_begins[step])
            yield np.flatnonzero(steps == step), context

    def _steps_with(self, wanted: np.ndarray, side: Literal["left", "right"] = "right") -> np.ndarray:
        """The numbers of the steps in which times lie; of two that meet there, the one on this side."""
        direction, (times, _) = self.stepper.direction, self._begins
        return np.maximum(np.searchsorted(direction * times, direction * wanted, side) - 1, 0)

    @cached_property
    def _solved_at_begins(self) -> list[np.ndarray]:
        """What is solved for at the beginning of each step, followed backward from the end of the run."""
        system, (times, states) = self.stepper.system, self._begins
        compiled, context, found = kernels(system), self.stepper.context(), []
        system.recall_solved(context, self.record.solved)
        sought = [(compiled.unknowns, 0, len(system.unknowns))] if system.unknowns else []
        if system.model.lam.numel():
            sought.append((compiled.multipliers, dense_multipliers.address, system.m))
        for k in range(times.size - 1, -1, -1):
            pair = [min(k + 1, times.size - 1), k]
            for address, dense, size in sought:
                out, near = np.empty((2, size)), np.ascontiguousarray(states[pair, : system.state_size])
                over_points(address, dense, context, times[pair], near, out, _PARTS_OF_A_STEP)
            found.append(system.solved_in(context))
        return found[::-1]

    @property
    @abstractmethod
    def _begins(self) -> tuple[np.ndarray, np.ndarray]:
        """Times and states at which the steps begin."""

    @abstractmethod
    def _evaluate(self, context: np.ndarray, wanted: np.ndarray, out: np.ndarray) -> int:
        """Fill the rows of ``out``; how many were done."""


class StepOutput(DenseOutput):
    """From the steps that the history holds."""

    side: ClassVar[Literal["left", "right"]] = "right"
    """Whose step a time is part of where two meet."""

    @property
    def _begins(self) -> tuple[np.ndarray, np.ndarray]:
        steps, at = self.record.steps, STEP_COLUMNS + self.stepper.state_column
        return steps[:, 0], steps[:, at : at + self.stepper.columns]

    @property
    def _rows(self) -> np.ndarray:
        return self.record.steps

    def _evaluate(self, context: np.ndarray, wanted: np.ndarray, out: np.ndarray) -> int:
        memory = self._memory()
        return self.stepper.evaluate(
            memory, context, self._rows, self._steps_with(wanted, self.side), wanted, out
        )

    def _memory(self) -> np.ndarray:
        """Memory of a run that has come to its end."""
        memory, record = self.stepper.memory(0), self.record
        RunState.set(memory, t_start=record.t0, t_end=record.t_end)
        self.stepper.recall_run(memory, record)
        return memory


class EarlierStepOutput(StepOutput):
    """The same where a time between two steps is part of the earlier one."""

    side = "left"


class PointOutput(StepOutput):
    """From points alone, or the beginnings of steps where these were kept beside the points: a step of the
    method from the one before.
    """

    def __init__(self, stepper: Stepper, record: Record) -> None:
        if not record.steps_beside_points:
            record = record._replace(t_end=float(record.points[-1, 0]))
        super().__init__(stepper, record)

    @cached_property
    def _rows(self) -> np.ndarray:
        """(t, y) of all points."""
        record = self.record
        if not record.steps_beside_points:
            return np.array(record.points, order="C")
        steps = record.steps[:, [0, *range(STEP_COLUMNS, STEP_COLUMNS + self.stepper.columns)]]
        return np.vstack([steps, [record.t_end, *record.last_state]])

    @property
    def _begins(self) -> tuple[np.ndarray, np.ndarray]:
        return self._rows[:, 0], self._rows[:, 1:]

    def _memory(self) -> np.ndarray:
        """It knows the largest position and velocity."""
        memory, n = super()._memory(), self.stepper.system.n
        largest = np.max(np.abs(self._rows[:, 1:]), axis=0)
        scale_q, scale_v = (part.max(initial=0.0) for part in (largest[:n], largest[n:]))
        self.stepper.layout.set(memory, OWN, scale_q=scale_q, scale_v=scale_v)
        return memory

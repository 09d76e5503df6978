"""Sequential regularization by explicit Runge–Kutta methods: the stepper for a system."""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.integrators import sequential_steps
from holonome.integrators.contract import Beginning, Record, Request
from holonome.integrators.dense_output import StepOutput
from holonome.integrators.loop import OWN, RunState
from holonome.integrators.sequence import SequenceState
from holonome.integrators.sequential import Sequential
from holonome.integrators.sequential_steps import MOST_HELD_STEPS
from holonome.integrators.sequential_sweep import SequentialState
from holonome.integrators.tableau import Tableau, tableau_fields
from holonome.machine.layout import padded


class ExplicitSequential(Sequential):
    """Explicit Runge–Kutta methods."""

    advance, evaluate = staticmethod(sequential_steps.advance), staticmethod(sequential_steps.evaluate)
    interpolant, preview = sequential_steps.interpolant, sequential_steps.preview
    output = StepOutput
    layout = SequentialState
    sequence_at = OWN
    _at = OWN + SequenceState.words

    def __init__(self, tableau: Tableau, request: Request) -> None:
        self.tableau = tableau
        super().__init__(request)
        self.layout_key = ("SRM", tableau, self.srm.key, self.srm.post_stabilization, *self._sequence_key)

    def _own(self) -> list:
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
        return self.state_column + self.most * padded(self.problem.size) if dense else 0

    @property
    def state_column(self) -> int:
        """That of the first iteration, which all steps have."""
        return 3 + 3 * self.problem.carried

    def recall_run(self, memory: np.ndarray, record: Record) -> None:
        self._put(memory)

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        return SequentialState.vector(memory, "point", self._at)[: self.problem.size].copy()

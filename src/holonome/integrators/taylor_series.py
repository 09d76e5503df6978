"""The series of one system as machine code, and the order that suits a tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable

import casadi as ca

from holonome.dynamics.kernels import kernels
from holonome.equations.program import Program
from holonome.equations.series import Series
from holonome.machine.compiled import made_once
from holonome.machine.kernel import ARGUMENTS, BLOCK, Kernel, compiled
from holonome.machine.series import Code, is_straight, series_assembly
from holonome.problem.solved_variables import KernelExpressions
from holonome.problem.system import System

LARGEST_ORDER, _SMALLEST_CHOSEN = 32, 6
_OPTIMISED_UP_TO = 5000
"""Instructions.  Optimising takes twenty times as long and makes code twice as fast; LLVM's next level takes
twice as long again, for nothing.
"""
_AROUND_A_STEP = 2200
"""Instructions of a step beside its series and its projection."""


class SeriesKernels:
    """Machine code for the Taylor coefficients of one system, made for an order when it is first needed."""

    def __init__(self, system: System, motion: Callable[[System], KernelExpressions]) -> None:
        self.system = system
        _refuse(system)
        y, z, out, margin = motion(system)
        self._refuse_called(out)
        inputs = [system.model.t, y, z, system.context_symbols]
        outputs = [out] if margin is None else [out, margin]
        names = ["out", "margin"][: len(outputs)]
        function = ca.Function("series", inputs, outputs, list(ARGUMENTS), names, {"cse": True})
        self.series = Series.of(Program.of(function))
        self.straight = is_straight(self.series)
        self._best: dict[float, int] = {}

    def _refuse_called(self, out: ca.SX) -> None:
        """Raise if the accelerations contain what is not an expression."""
        system, symbols = self.system, self.system.model.p
        for offset, supplied in system._supplied.items():
            if ca.depends_on(out, symbols[offset : offset + supplied.size]):
                raise ValueError(
                    f"method: 'taylor' needs every function as an expression, but {supplied.role} could not "
                    "be traced, as print(system) says; use 'dop853', or write it in functions of NumPy"
                )
        if system.solvers(out):
            raise ValueError(
                "method: 'taylor' cannot follow variables that are solved for inside an evaluation, "
                "unknowns or multipliers on which forces depend; use 'dop853'"
            )

    @made_once
    def work(self) -> int:
        """Size of the work space."""
        return self._code(LARGEST_ORDER).work

    def address(self, order: int) -> int:
        """Address of the kernel for an order."""
        made_for = order if self.straight else LARGEST_ORDER
        return self.system.compiled.once(("series", self, made_for), lambda: self._compile(made_for)).address

    def _compile(self, order: int) -> Kernel:
        code = self._code(order)
        return compiled(code.text, "series", self._level, self._length)

    def _code(self, order: int) -> Code:
        return series_assembly(self.series, "series", order, 0 if self.straight else BLOCK)

    @property
    def _length(self) -> int:
        return len(self.series.operations) + self.series.cost

    @property
    def _level(self) -> int:
        """How well the code is optimised."""
        return 1 if self.straight or self._length <= _OPTIMISED_UP_TO else 0

    def cost(self, order: int) -> float:
        """Instructions of a series of this order, with those of its convolutions."""
        vectors = -(-len(self.series.convolutions) // 8)
        return len(self.series.operations) + order * self.series.cost + 1.5 * vectors * order * order

    def best_order(self, rtol: float) -> int:
        """The order with the least cost for a unit of time, where steps are ρ rtol^(1/N) long."""
        if rtol not in self._best:
            fixed, log = _AROUND_A_STEP + kernels(self.system).instructions[1], -math.log(rtol)
            orders = range(_SMALLEST_CHOSEN, LARGEST_ORDER + 1)
            self._best[rtol] = min(orders, key=lambda N: (fixed + self.cost(N)) * math.exp(log / N))
        return self._best[rtol]


def _refuse(system: System) -> None:
    compiled = kernels(system)
    if compiled.sparse:
        raise ValueError(
            f"method: 'taylor' is made for smaller systems; this one, with {system.n} coordinates and "
            f"{system.m} constraints, is solved by sparse elimination. Use 'dop853'"
        )
    if compiled.dense:
        raise ValueError(
            "method: 'taylor' needs a mass for every coordinate and an elimination of moderate size; use "
            "'dop853'"
        )

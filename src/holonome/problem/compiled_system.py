"""The contexts and kernels of a system: what it gives to compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from holonome.equations.model import Model
from holonome.locks import cached_property
from holonome.machine import inner_newton
from holonome.machine.compiled import Compiled
from holonome.machine.context import PARAMETERS, write_block
from holonome.machine.inner_newton import SolvedBlock
from holonome.machine.kernel import OPTIMISED_UP_TO, Kernel, kernel
from holonome.machine.supplied import Supplied
from holonome.problem.parameter_terms import ParameterTerms, parameter_terms
from holonome.problem.parameters import Parameters
from holonome.problem.solved_variables import KernelExpressions, newton_step, tangent


class CompiledSystem:
    """Base class of a system whose model is known."""

    model: Model
    parameters: Parameters
    unknowns: dict[str, float]
    multipliers: np.ndarray | None  # a guess for λ, where forces depend on it
    state_size: int
    compiled: Compiled
    _further: dict[str, np.ndarray]
    _supplied: dict[int, Supplied]
    _solved: dict[str, tuple[int, ca.SX]]
    with_unknowns: Callable[[Any], Any]
    with_multipliers: Callable[[Any], Any]

    @property
    def context_size(self) -> int:
        """Doubles that a context holds behind its record."""
        return self.lean.p.numel()

    @property
    def context_symbols(self) -> ca.SX:
        """Symbols of what a context holds behind its record."""
        return self.lean.p

    @property
    def lean(self) -> Model:
        """The model as kernels of the motion see it: long terms of parameters alone are symbols."""
        return self._terms.model

    @property
    def _terms(self) -> ParameterTerms:
        model, constant = self.model, self.parameters.of_inputs.start
        return self.compiled.once("terms of parameters", lambda: parameter_terms(model, model.p[:constant]))

    def context(self, extra: int = 0) -> np.ndarray:
        """A context (:mod:`holonome.machine.context`) with an empty record, with parameters and blocks, and
        with room for ``extra`` doubles behind them.
        """
        context = np.zeros(PARAMETERS + self.context_size + extra)
        self.fill_parameters(context)
        for name, (offset, _) in self._solved.items():
            write_block(context, offset, self._block_of_solved(name))
        self.fill_guess(context)
        for offset, supplied in self._supplied.items():
            write_block(context, offset, supplied.block())
        return context

    def fill_parameters(self, context: np.ndarray) -> None:
        """Write the parameters into a context, and what depends on them alone."""
        context[PARAMETERS : PARAMETERS + self.parameters.size] = self.parameters.flat
        self.fill_terms(context)

    def fill_terms(self, context: np.ndarray) -> None:
        """Compute the terms of the parameters that stand in a context."""
        terms = self._terms
        if terms.count:
            at = PARAMETERS + self.model.p.numel()
            parameters = context[PARAMETERS : PARAMETERS + self.parameters.of_inputs.start]
            context[at : at + terms.count] = terms.values(parameters)

    def fill_guess(self, context: np.ndarray) -> None:
        """Write the guesses for the unknowns and for λ into a context."""
        if "w" in self._solved:
            offset, _ = self._solved["w"]
            SolvedBlock.vector(context, "values", PARAMETERS + offset)[:] = list(self.unknowns.values())
        if "lam" in self._solved:
            begin, guess = PARAMETERS + self._solved["lam"][0], self.multipliers
            inner_newton.allow_guesses(context, begin, guess is None)
            SolvedBlock.vector(context, "values", begin)[:] = 0.0 if guess is None else guess

    def copy_unknowns(self, source: np.ndarray, target: np.ndarray) -> None:
        """Copy what was solved for from one context of this system to another."""
        for name, (offset, _) in self._solved.items():
            begin = PARAMETERS + offset
            end = begin + self.empty_block(name).size
            target[begin:end] = source[begin:end]

    @property
    def solves(self) -> bool:
        """Whether variables are solved for inside evaluations, which follow them from one to the next."""
        return bool(self._solved)

    def solved_in(self, context: np.ndarray) -> np.ndarray:
        """What was solved for last in a context, and where; no addresses."""
        parts = []
        for offset, _ in self._solved.values():
            begin = PARAMETERS + offset
            parts.append([SolvedBlock.of(context, begin)["last_time"]])
            parts += [SolvedBlock.vector(context, name, begin) for name in ("last_state", "values")]
        return np.concatenate(parts)

    def with_solved(self, context: np.ndarray) -> Any:
        """The same system, whose guesses for the unknowns and for λ are what was solved for in a context."""
        other = self
        for name, (offset, _) in self._solved.items():
            begin = PARAMETERS + offset
            if SolvedBlock.of(context, begin)["found"]:
                values = SolvedBlock.vector(context, "values", begin)
                other = other.with_unknowns(values) if name == "w" else other.with_multipliers(values)
        return other

    def recall_solved(self, context: np.ndarray, solved: np.ndarray) -> None:
        """Let a context go on from there."""
        at = 0
        for offset, _ in self._solved.values():
            begin = PARAMETERS + offset
            SolvedBlock.set(context, begin, found=1, last_time=solved[at])
            at += 1
            for name in ("last_state", "values"):
                place = SolvedBlock.span(context, name, begin)
                end = at + place.stop - place.start
                context[place] = solved[at:end]
                at = end

    def fill_invariants(self, context: np.ndarray, values: np.ndarray) -> None:
        """Write the values that the invariants shall keep into a context."""
        at = PARAMETERS + self.model.p.numel() - values.size
        context[at : at + values.size] = values

    def fill_damping(self, context: np.ndarray, alpha: float, beta: float) -> None:
        """Write Baumgarte's parameters into a context."""
        at = PARAMETERS + self.model.p.numel() - self.model.I_start.numel() - 2
        context[at : at + 2] = alpha, beta

    def empty_block(self, name: str) -> np.ndarray:
        """The block of w or lam, without any addresses."""
        return inner_newton.new_block(self._further[name].size, self.state_size)

    def _block_of_solved(self, name: str) -> np.ndarray:
        """The block of w or lam, with the addresses of this process."""
        block = self.empty_block(name)
        step = self.kernel(f"step of {name}", newton_step(name)).address
        prediction = self.kernel("step of w: prediction", tangent).address if name == "w" else 0
        inner_newton.fill_addresses(block, step, prediction)
        return block

    @cached_property
    def supplied(self) -> list[Supplied]:
        """The functions that are called rather than traced."""
        return list(self._supplied.values())

    def kernel(
        self,
        name: str,
        build: Callable[[Model], KernelExpressions],
        optimised_up_to: int = OPTIMISED_UP_TO,
        lean: bool = False,
    ) -> Kernel:
        """A compiled kernel, made on first use.

        Parameters
        ----------
        name
            Key under which this system remembers it.
        build
            From the model to (y, z, out, margin): the symbols of the kernel's two inputs, the column of
            results, and the margin of regularity (or None).
        optimised_up_to
            Number of instructions beyond which it is compiled quickly rather than well.
        lean
            Whether it is made of the lean model; it must not differentiate with respect to parameters.
        """

        def make() -> Kernel:
            y, z, out, margin = build(self.lean if lean else self.model)
            suppliers = self._suppliers(name, out)
            inputs = [self.model.t, y, z, self.context_symbols]
            return kernel(out, inputs, margin=margin, suppliers=suppliers, optimised_up_to=optimised_up_to)

        return self.compiled.once(("kernel", name), make)

    def _suppliers(self, name: str, out: ca.SX) -> tuple[int, ...]:
        """Offsets of the blocks whose values an expression contains, of those needed for them first."""
        called = []
        for offset, supplied in self._supplied.items():
            for begin, end in ((0, supplied.own_size), (supplied.own_size, supplied.size)):
                if end > begin and ca.depends_on(out, self.model.p[offset + begin : offset + end]):
                    called.append(offset + begin)
        return tuple(called) + self.solvers(out, but=name.removeprefix("step of ").partition(":")[0])

    def solvers(self, out: ca.SX, but: str = "") -> tuple[int, ...]:
        """Offsets of the blocks of variables that are solved for, as far as an expression contains them."""
        needed = [
            key for key, (_, symbols) in self._solved.items() if key != but and ca.depends_on(out, symbols)
        ]
        if "lam" in needed and "w" in self._solved:
            needed = ["w", "lam"]
        return tuple(self._solved[key][0] for key in needed)

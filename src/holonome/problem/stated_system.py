"""What the other rooms ask a system: its sizes and names, states, events, and copies with other values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import casadi as ca
import numpy as np

from holonome.errors import ModelError
from holonome.locks import cached_property
from holonome.machine.supplied import Supplied
from holonome.problem import elastic as elements
from holonome.problem.compiled_system import CompiledSystem
from holonome.problem.frozen_values import require_unchanged
from holonome.problem.parameters import Parameters
from holonome.problem.user_function import UserFunction
from holonome.problem.vectors import vector


class StatedSystem(CompiledSystem):
    """A system that has been stated in full, with a model."""

    mechanical = True
    levels = 2
    hidden_constraints = False
    """Whether there are constraints that only a projection after every step keeps, and a start with them."""

    @property
    def traced_functions(self) -> Mapping[str, ca.SX]:
        """What the functions of the system are in its symbols, by role."""
        return self._expressions

    @property
    def formulas(self) -> list[ca.SX]:
        """Expressions in which conditions on time are looked for."""
        model = self.model
        return [model.M, model.f, model.g, model.h, model.r]

    def function_values(self, t: float, y: np.ndarray) -> dict[str, np.ndarray]:
        """What the user's functions give at a state, where they do not depend on λ."""
        n = self.n
        point = {"t": t, "q": y[:n], "v": y[n : 2 * n], "s": y[2 * n :]}
        return {
            function.role: function.evaluate(point, self.parameters)
            for function in self.functions.values()
            if "lam" not in function.arguments
        }

    def split_state(self, rows: np.ndarray, single: bool) -> Any:
        """(q, v), with first-order states (q, v, s), or x of an ODE, from stored states, one a row."""
        n, end = self.n, self.state_size
        parts = [rows[:, :n].T, rows[:, n : 2 * n].T] if n else []
        if self.states:
            parts.append(rows[:, 2 * n : end].T)
        if single:
            parts = [part[:, 0] for part in parts]
        return tuple(parts) if n else parts[0]

    def full_state(self, q0: Any, v0: Any = None, s0: Any = None) -> np.ndarray:
        """A state (q, v, s) from the user's initial values."""
        n, k = self.n, len(self.states)
        if s0 is not None and not k:
            raise ValueError("s0: the system has no first-order states")
        q = vector("q0", q0, n)
        v = np.zeros(n) if v0 is None else vector("v0", v0, n)
        if not k:
            return np.concatenate((q, v))
        s = list(self.states.values()) if s0 is None else vector("s0", s0, k, "states")
        return np.concatenate((q, v, s))

    def start_state(
        self, t0: float, q0: Any, v0: Any = None, s0: Any = None, repair: bool = False
    ) -> np.ndarray:
        """A state from the user's initial values at a time; it need not satisfy the constraints yet."""
        return self.full_state(q0, v0, s0)

    def event_function(self, role: str, function: Callable) -> UserFunction:
        """An event, which may ask for accelerations and multipliers too."""
        further = dict(self.further_values)
        if self.n:
            further["a"] = np.zeros(self.n)
        if self.own_count:
            further["lam"] = np.zeros(self.own_count)
        return UserFunction(role, function, self.n, self.parameters, further)

    def event_expression(self, role: str, function: Callable, motion: ca.SX, lam: ca.SX) -> ca.SX | Supplied:
        """An event as an expression, also of the rates of the state and the multipliers, or as a function to
        be called.
        """
        own, event = ca.SX.sym("lam", self.own_count), self.event_function(role, function)
        known, values = self.own_symbols(lam), {"a": motion[self.n : 2 * self.n]}
        if known.is_valid_input():
            return event.expression(self.symbols | values | {"lam": known})
        found = event.expression(self.symbols | values | {"lam": own})
        if isinstance(found, Supplied):
            if "lam" not in event.arguments:
                return found
            raise ModelError(
                f"{role}: cannot be traced, so it may not ask for lam where constraints are released; write "
                "it with NumPy functions"
            )
        return ca.substitute(found, own, known)

    def event_rate(self, event: ca.SX, motion: ca.SX) -> ca.SX:
        """The rate of an event of t, q, v, s, w, given those of the state."""
        model, n = self.model, self.n
        rate = model.along_the_motion(event)
        if n:
            rate += ca.jtimes(event, model.v, motion[n : 2 * n])
        if self.states:
            rate += ca.jtimes(event, model.s, motion[2 * n :])
        return rate

    def measured(self, name: str) -> dict[str, ca.SX] | None:
        """Expressions of the state by name, for outputs and drives: a coordinate "x", its velocity "x'", or a
        first-order state; None if there is no such name.
        """
        model = self.model
        for names, values in ((self.names, model.q), (list(self.states), model.s)):
            if name in names:
                return {name: values[names.index(name)]}
        if name.endswith("'") and name[:-1] in self.names:
            return {name: model.v[self.names.index(name[:-1])]}
        return None

    def named_results(self, solution: Any) -> Any:
        """What a solution says by the names of bodies and joints; a system of functions has none."""
        raise ModelError(
            "this system was made of functions, or read from a file, so its result knows no bodies and "
            "joints by name; use sol.q, sol.v and sol.lam, make an hn.Mechanism, or read the file with its "
            "mechanism, hn.Solution.load(file, m)"
        )

    @property
    def own_count(self) -> int:
        """The number of multipliers that users see."""
        return self.m

    def own_symbols(self, lam: ca.SX) -> ca.SX:
        """As `own_multipliers`, of symbols."""
        return lam

    def own_residuals(self, residuals: np.ndarray) -> np.ndarray:
        """Of the residuals of all constraints, those of constraints that hold; NaN elsewhere."""
        return residuals

    def own_multipliers(self, lam: np.ndarray) -> np.ndarray:
        """Of the multipliers of this system, (m, points), those of its constraints without contacts."""
        return lam

    def objection(self, solution: Any) -> str:
        """Why a run that reached its end shall not count as a success; empty if nothing is wrong."""
        return ""

    def named_data(self, solution: Any) -> dict[str, Any]:
        """What a solution says by name, for tables; nothing for a system of functions."""
        return {}

    def require_unchanged(self) -> None:
        """ModelError if a value that a function has captured is another one than when it was traced."""
        if self._frozen is not None:
            require_unchanged(self._frozen)

    @cached_property
    def m(self) -> int:
        """Number of constraint rows."""
        return self.model.rows

    @cached_property
    def invariant_count(self) -> int:
        return self.model.I.numel()

    @property
    def paths(self) -> dict[str, str]:
        """How each function reaches the engine: "constant", "traced", "numba" or "python"."""
        return {role: function.path for role, function in self.functions.items()}

    @property
    def p(self) -> Any:
        """The parameters as its functions see them, ``system.p.length``."""
        return self.parameters.namespace(self.parameters.flat)

    @property
    def u(self) -> Any:
        """The inputs as its functions see them, ``system.u.torque``."""
        return self.parameters.namespace(self.parameters.flat, "u")

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self.parameters.inputs

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the components that results have as x: all first-order states."""
        return tuple(self.states)

    @property
    def orders_of_states(self) -> tuple[int, ...]:
        """Of states that are derivatives of others, by which order; none are here."""
        return ()

    @property
    def all_names(self) -> list[str]:
        """Names of the coordinates and of the first-order states."""
        return [*self.names, *self.states]

    @property
    def sizes_in_words(self) -> str:
        """How many coordinates, states, unknowns and constraints there are."""
        sizes = {
            "coordinate": self.n,
            "state": len(self.states),
            "unknown": len(self.unknowns),
            "constraint": self.m,
            "invariant": self.invariant_count,
        }
        told = [
            f"{size} {what}{'s' * (size != 1)}"
            for what, size in sizes.items()
            if size or (what in ("coordinate", "constraint") and self.n)
        ]
        return ", ".join(told)

    @property
    def projects(self) -> bool:
        """Whether there is a manifold to return to."""
        return self.m > 0 or self.invariant_count > 0

    @property
    def has_energy(self) -> bool:
        """Whether a potential was given."""
        return self.model.V is not None

    def with_parameters(self, **values: Any) -> Self:
        """The same system with other values of parameters or inputs; shares all compiled code."""
        other = self._with(parameters=self.parameters.changed(values))
        if self.model.elastic is not None:
            other._check_elements(self.parameters)
        return other

    def with_values(self, flat: np.ndarray) -> Self:
        """The same system with these values of parameters and inputs, as they lie one after the other."""
        return self._with(parameters=self.parameters.with_flat(flat.copy()))

    def with_unknowns(self, values: Any) -> Self:
        """The same system with other guesses for its unknowns; shares all compiled code."""
        guesses = np.asarray(values, dtype=float).ravel().tolist()
        return self._with(unknowns=dict(zip(self.unknowns, guesses, strict=True)))

    def with_multipliers(self, values: Any) -> Self:
        """The same system with a guess for the multipliers on which its forces depend; shares all compiled
        code.
        """
        return self._with(multipliers=np.array(values, dtype=float))

    def _with(self, **attributes: Any) -> Self:
        """A copy in which these attributes are others."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **attributes)
        return other

    @property
    def further_names(self) -> tuple[str, ...]:
        """Which of s, w and lam the functions may ask for."""
        return tuple(self._further)

    @property
    def further_values(self) -> dict[str, np.ndarray]:
        """States and unknowns at the start, as far as there are any, for functions to be tried out with."""
        return {name: values for name, values in self._further.items() if name != "lam"}

    def _check_elements(self, before: Parameters | None = None) -> None:
        """Look at stiffness and damping, unless their parameters are those that were checked before."""
        parts = self.model.elastic
        if parts is None:
            return
        found = self.compiled.once("elastic matrices", lambda: elements.Matrices(parts, self.symbols["p"]))
        if before is None or np.any(self.parameters.flat[found.places] != before.flat[found.places]):
            elements.check(self._elements, found, self._expressions, self.parameters)

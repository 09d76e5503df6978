"""Problems of index 2 and 3 beyond mechanics, (1.1) of Ascher & Lin 1995:

    x⁽ᵛ⁾ = f(x, …, t) − B(x, t) y,     0 = g(x, t)

If G B is regular, with G = g_x, the index is 2 for ν = 1 and 3 for ν = 2.
`Equations` holds them as expressions, for a formulation to work with; a mechanical system gives the same with
B = M⁻¹Gᵀ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import checked, numbers, read, shown
from holonome.equations.model import Model
from holonome.errors import ModelError
from holonome.locks import cached_property, expressions
from holonome.machine.compiled import Compiled
from holonome.machine.context import PARAMETERS
from holonome.machine.kernel import Kernel, kernel
from holonome.problem.checks import names_or_number
from holonome.problem.frozen_values import require_unchanged
from holonome.problem.parameters import Parameters
from holonome.problem.repetition import require_same_answers
from holonome.problem.vectors import require_finite, vector
from holonome.tracing import Captured, Frozen, argument_names, trace, traced


@dataclass(frozen=True, eq=False)
class Equations:
    """(1.1) as expressions.

    Attributes
    ----------
    order
        ν, 1 or 2.
    t, x, v
        Symbols of time, x and (ν = 2) x′.
    f
        Right-hand side without y.
    g, G
        Position constraints and g_x.
    w, C, gamma
        ν = 2: on the velocity level w(t, x, x′) = 0, that is G x′ + g_t and velocity constraints; C = ∂w/∂x′;
        w′ = C x″ + γ.  ν = 1: w = g, C = G, γ = g_t.
    matrix
        Traces a function of the user that returns a matrix.
    given
        The matrix B; None for a mechanical system, where B = M⁻¹Cᵀ.
    mass
        Factors of M = LDLᵀ, for a mechanical system.
    s, r
        First-order states of a mechanical system, and their rates.
    """

    order: int
    t: ca.SX
    x: ca.SX
    v: ca.SX
    f: ca.SX
    g: ca.SX
    G: ca.SX
    w: ca.SX
    C: ca.SX
    gamma: ca.SX
    matrix: Callable[[Callable, int], ca.SX]
    given: ca.SX | None = None
    mass: tuple | None = None
    s: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    r: ca.SX = field(default_factory=lambda: ca.SX(0, 1))

    @property
    def n(self) -> int:
        return self.x.numel()

    @property
    def m(self) -> int:
        """Number of rows, so of y."""
        return self.w.numel()

    @property
    def y(self) -> ca.SX:
        """The state, as kernels are given it."""
        return self.state

    @property
    def state(self) -> ca.SX:
        return ca.vertcat(self.x, self.v, self.s) if self.order == 2 else self.x

    def By(self, y: ca.SX) -> ca.SX:
        """B y; for fewer y than rows, with the columns of the first of them, which are those of g."""
        rows = y.size1()
        return ca.ldl_solve(self.C[:rows, :].T @ y, *self.mass) if self.mass else self.given[:, :rows] @ y  # type: ignore[index]

    @cached_property
    def B(self) -> ca.SX:
        return self.By(ca.SX(ca.DM.eye(self.m)))


class HigherIndex:
    """What index 2 and index 3 share: tracing, parameters, kernels.  ``order`` is ν."""

    order: int
    f_arguments: tuple[str, ...]
    mechanical = False
    states: Mapping[str, float] = {}
    invariant_count = 0
    projects = False
    orders_of_states = ()
    solves = False
    contacts: tuple[()] = ()

    def __init__(
        self,
        f: Callable,
        B: Any,
        g: Callable,
        *,
        n: int | None = None,
        names: Sequence[str] | None = None,
        parameters: Mapping[str, Any] | None = None,
        name: str = "system",
    ) -> None:
        self.names = names_or_number(names, n, "unknowns x")
        self.n = len(self.names)
        self.name = checked("name", name, ModelError)
        self.parameters = Parameters(parameters)
        self.compiled = Compiled()
        self.symbols = {
            "t": ca.SX.sym("t"),
            "x": ca.SX.sym("x", self.n),
            "v": ca.SX.sym("v", self.n if self.order == 2 else 0),
            "p": ca.SX.sym("p", self.parameters.size),
        }
        with expressions:
            self.equations = self._equations(f, B, g)
        self.m = self.equations.g.numel()
        given = {"f": f, "B": B, "g": g}
        self._frozen = (
            Frozen(
                (role, Captured(function).settled()) for role, function in given.items() if callable(function)
            )
            or None
        )

    def require_unchanged(self) -> None:
        """ModelError if a value that a function has captured is another one than when it was traced."""
        if self._frozen is not None:
            require_unchanged(self._frozen)

    def _equations(self, f: Callable, B: Any, g: Callable) -> Equations:
        """The user's functions as expressions, with the derivatives of g."""
        t, x, v, _ = self.symbols.values()
        fx, shape = self._trace("f", f, self.f_arguments)
        if fx.numel() != self.n:
            raise ModelError(f"f has shape {shape}; expected ({self.n},)")
        if not callable(g):
            raise ModelError(f"g: {shown(g)} is not callable; give a function of any of t, x, p")
        gx, _ = self._trace("g", g, ("t", "x", "p"))
        G, g_t = ca.jacobian(gx, x), ca.jacobian(gx, t)
        w = gx
        gamma = g_t
        if self.order == 2:
            w = G @ v + g_t
            gamma = ca.jtimes(w, x, v) + ca.jacobian(w, t)
        m = gx.numel()
        if not 0 < m <= self.n:
            raise ModelError(f"g has {m} rows; expected 1 to {self.n}, no more than there are unknowns")
        return Equations(
            self.order,
            t,
            x,
            v,
            fx,
            gx,
            G,
            w,
            C=G,
            gamma=gamma,
            matrix=lambda function, size: self._matrix("E", function, size, size),
            given=self._matrix("B", B, self.n, m),
        )

    def _trace(self, role: str, function: Any, allowed: tuple[str, ...]) -> tuple[ca.SX, tuple[int, ...]]:
        if not callable(function):
            kind = numbers(f"a function of any of {', '.join(allowed)}, or an array of numbers")
            values = read(kind, role, function, ModelError)
            return ca.SX(ca.DM(values.ravel())), values.shape
        unknown = [name for name in argument_names(function, role) if name not in allowed]
        if unknown:
            raise ModelError(
                f"{role}: its argument {unknown[0]!r} is not known; arguments go by name and may be any of "
                f"{', '.join(allowed)}"
            )
        given = {
            "t": traced(self.symbols["t"], ()),
            "x": traced(self.symbols["x"], (self.n,)),
            "p": self.parameters.namespace(self.symbols["p"]),
        }
        if "v" in allowed:
            given["v"] = traced(self.symbols["v"], (self.n,))
        require_same_answers(role, lambda point: self._call(function, point), self._points())
        try:
            return trace(function, {name: given[name] for name in argument_names(function)})
        except Exception as reason:
            raise ModelError(
                f"{role}: cannot be traced ({reason}); write it with NumPy functions of its arguments"
            ) from None

    def _points(self) -> list[dict[str, Any]]:
        """Points at which functions are tried out; no particular meaning."""
        random = np.random.default_rng(1)
        p = self.parameters.namespace(self.parameters.flat)
        return [
            {"t": t, "x": random.uniform(0.2, 0.9, self.n), "v": random.uniform(-0.5, 0.5, self.n), "p": p}
            for t in (0.37, 1.3)
        ]

    @staticmethod
    def _call(function: Callable, point: Mapping[str, Any]) -> Any:
        with np.errstate(all="ignore"):
            return function(**{name: point[name] for name in argument_names(function)})

    def _matrix(self, role: str, function: Any, rows: int, columns: int) -> ca.SX:
        flat, shape = self._trace(role, function, ("t", "x", "p"))
        if shape != (rows, columns) and not (
            flat.numel() == rows * columns and 1 in (rows, columns) and len(shape) <= 2
        ):
            raise ModelError(f"{role} has shape {shape}; expected ({rows}, {columns})")
        return ca.reshape(flat, columns, rows).T

    def with_parameters(self, **values: Any):
        """The same system with other parameter values; shares all compiled code."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.parameters = self.parameters.changed(values)
        return other

    def kernel(
        self,
        name: str,
        build: Callable[[Equations], tuple[ca.SX, ca.SX, ca.SX, ca.SX | None]],
        lean: bool = False,
    ) -> Kernel:
        """A compiled kernel (:mod:`holonome.machine.kernel`), made on first use: ``build`` gives its
        inputs y, z, the column of results, and the margin of regularity.  ``lean`` is for systems, whose
        long terms of parameters are taken out; these equations stand as they are.
        """

        def make() -> Kernel:
            y, z, out, margin = build(self.equations)
            return kernel(out, [self.symbols["t"], y, z, self.symbols["p"]], margin=margin)

        return self.compiled.once(("kernel", name), make)

    @property
    def levels(self) -> int:
        """Of x and its derivatives in a state."""
        return self.order

    @property
    def state_size(self) -> int:
        """Numbers of a state: x, for index 3 with x′."""
        return self.order * self.n

    @property
    def all_names(self) -> list[str]:
        return self.names

    @property
    def supplied(self) -> list:
        """Functions that are called rather than traced: there are none."""
        return []

    @property
    def formulas(self) -> list[ca.SX]:
        """Expressions in which conditions on time are looked for."""
        return [self.equations.f, self.equations.B, self.equations.g]

    @property
    def model(self) -> Equations:
        return self.equations

    def split_state(self, rows: np.ndarray, single: bool) -> Any:
        """x, for index 3 (x, x′), from stored states, one a row."""
        parts = tuple(rows[:, i * self.n : (i + 1) * self.n].T for i in range(self.order))
        if single:
            parts = tuple(part[:, 0] for part in parts)
        return parts if self.order == 2 else parts[0]

    def full_state(self, x0: Any, v0: Any, s0: Any) -> np.ndarray:
        """A state from the user's initial values."""
        if s0 is not None:
            raise ValueError("s0: a problem of index 2 or 3 has no first-order states; leave it out")
        x = vector("q0", x0, self.n, "components")
        if self.order == 1:
            if v0 is not None:
                raise ValueError("v0: a problem of index 2 has no velocities; leave it out")
            return x.copy()
        return np.concatenate([x, np.zeros(self.n) if v0 is None else vector("v0", v0, self.n, "components")])

    def start_state(self, t0: float, x0: Any, v0: Any, s0: Any, repair: bool = False) -> np.ndarray:
        """A state from the user's initial values at a time."""
        return self.full_state(x0, v0, s0)

    def require_consistent(self, t0: float, state: np.ndarray) -> None:
        """The start must satisfy g = 0 (2.3b), and for index 3 g′ = 0 (4.3b)."""
        require_finite(q0=state[: self.n], v0=state[self.n :])
        g, w = (np.array(value).ravel() for value in self.values(t0, state, self.parameters.flat))
        for name, values in (("g", g), ("dg/dt", w)):
            if not np.all(np.abs(values) <= 1e-6 * (1 + np.max(np.abs(state)))):
                shown = np.array2string(values, precision=3)
                raise ValueError(f"q0: {name} = {shown} at the start; it must vanish there")

    def event_expression(self, role: str, function: Callable, motion: ca.SX, lam: ca.SX) -> ca.SX:
        """An event as an expression."""
        value, shape = self._trace(role, function, self.f_arguments)
        if value.numel() != 1:
            raise ModelError(f"{role} has shape {shape}; expected a number")
        return value

    def event_rate(self, event: ca.SX, motion: ca.SX) -> ca.SX | None:
        """The rate of an event; None where it depends on derivatives that a state does not tell."""
        t, x, v, _ = self.symbols.values()
        if ca.depends_on(event, v if self.order == 2 else x):
            return None
        rate = ca.jacobian(event, t)
        return rate + ca.jtimes(event, x, v) if self.order == 2 else rate

    @property
    def context_size(self) -> int:
        return self.parameters.size + 1

    @property
    def context_symbols(self) -> ca.SX:
        """Symbols of what a context holds behind its record."""
        return ca.vertcat(self.symbols["p"], ca.SX.sym("free"))

    def solvers(self, out: ca.SX) -> tuple[int, ...]:
        return ()

    def context(self, extra: int = 0) -> np.ndarray:
        """All that stays fixed in a run."""
        context = np.zeros(PARAMETERS + self.context_size + extra)
        self.fill_parameters(context)
        return context

    def fill_parameters(self, context: np.ndarray) -> None:
        """Write the parameters into a context."""
        context[PARAMETERS : PARAMETERS + self.parameters.size] = self.parameters.flat

    def not_finite(self, t: float, state: np.ndarray) -> str:
        """Which of f, B and g is not finite at a point, in words; empty if all are."""
        for name, entries in self.function_values(t, state).items():
            if not np.all(np.isfinite(entries)):
                i = int(np.argmin(np.isfinite(entries)))
                return f"entry {i} of {name} is {entries[i]} (at t = {t:.6g})"
        return ""

    def function_values(self, t: float, state: np.ndarray) -> dict[str, np.ndarray]:
        """What the user's functions give at a point."""
        found = self._functions(t, state, self.parameters.flat)
        return {name: np.array(ca.densify(value)).ravel() for name, value in zip("fBg", found, strict=True)}

    @cached_property
    def _functions(self) -> ca.Function:
        e = self.equations
        return ca.Function("functions", [e.t, e.state, self.symbols["p"]], [e.f, e.B, e.g])

    @cached_property
    def values(self) -> ca.Function:
        """(t, state, p) ↦ g and w."""
        e = self.equations
        return ca.Function("values", [e.t, e.state, self.symbols["p"]], [e.g, e.w])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, n={self.n}, m={self.m})"


class Index2System(HigherIndex):
    """x′ = f(x, t) − B(x, t) y,  0 = g(x, t), with G B regular except, perhaps, in isolated points; (2.1) of
    Ascher & Lin.

    Parameters
    ----------
    f : callable(t, x, p)
        n values; functions name the arguments they want.
    B : array or callable(t, x, p)
        n × m matrix; a vector if m = 1.
    g : callable(t, x, p)
        m constraints.
    n, names, parameters, name
        As for :class:`System`; one of ``n`` and ``names`` is needed.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> problem = hn.Index2System(
    ...     lambda t, x: np.array([1 - np.exp(-t), np.cos(t) + np.exp(t) * np.sin(t)]),
    ...     lambda x: x,
    ...     lambda t, x: (x @ x - np.exp(-2 * t) - np.sin(t) ** 2) / 2,
    ...     n=2,
    ... )
    >>> sol = hn.solve(problem, (0, 1), [1, 0])
    >>> bool(abs(sol.y[0, -1] - np.e) < 1e-4)
    True
    """

    order, f_arguments = 1, ("t", "x", "p")


class Index3System(HigherIndex):
    """x″ = f(x, x′, t) − B(x, t) y,  0 = g(x, t); (4.1) of Ascher & Lin.  Mechanical systems are better given
    as :class:`System`.

    Parameters
    ----------
    f : callable(t, x, v, p)
        n values; ``v`` is x′.
    B, g, n, names, parameters, name
        As for :class:`Index2System`.

    Examples
    --------
    A point that is led along a line, x″ = −B y with 0 = x − sin t:

    >>> import numpy as np, holonome as hn
    >>> led = hn.Index3System(lambda t: np.array([0.0]), np.array([1.0]), lambda t, x: x[0] - np.sin(t), n=1)
    >>> sol = hn.solve(led, (0, 1), [0], [1], rtol=1e-8)
    >>> bool(abs(sol.x[0, -1] - np.sin(1)) < 1e-6)
    True
    """

    order, f_arguments = 2, ("t", "x", "v", "p")


def mechanical(model: Model, matrix: Callable[[Callable, int], ca.SX]) -> Equations:
    """(5.1) as (4.1): f → M⁻¹f, B = M⁻¹Cᵀ."""
    factors = ca.ldl(model.M)
    return Equations(
        2,
        model.t,
        model.q,
        model.v,
        ca.ldl_solve(model.f, *factors),
        model.g,
        model.G,
        model.w,
        model.C,
        model.gamma,
        matrix,
        mass=factors,
        s=model.s,
        r=model.r,
    )

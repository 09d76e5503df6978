"""DAE: differential-algebraic equations of any index, F(t, x, x′, x″) = 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import shown
from holonome.errors import ModelError
from holonome.locks import expressions
from holonome.problem.checks import names_or_number
from holonome.problem.consistent_dae import consistent_values
from holonome.problem.description import shortened
from holonome.problem.higher_index import Reduced, Variables, reduced
from holonome.problem.ode import ODE
from holonome.problem.parameters import Parameters
from holonome.problem.repetition import require_same_answers
from holonome.problem.system import System
from holonome.problem.user_function import Expression
from holonome.problem.vectors import require_finite, vector
from holonome.tracing import Captured, Frozen, argument_names, trace, traced

_ALLOWED = ("t", "x", "dx", "ddx", "p")


class DAE(ODE):
    """Differential-algebraic equations 0 = f(t, x, x′, x″) of any index, as many as variables.

    Their structure says how often each equation must be differentiated (Pantelides' algorithm, in Pryce's
    form); the derivatives are exact.  What is solved is the underlying ODE; the equations and all their
    hidden constraints are kept by projection after every step.

    :func:`solve` takes the variables at the start as ``q0``, and where second derivatives occur x′ as ``v0``
    (by default zero, as far as possible).  Algebraic variables and derivatives are found, so their values
    are only guesses; so is everything that is given as NaN.

    Parameters
    ----------
    f : callable(t, x, dx, ddx, p)
        What must vanish; ``dx`` is x′, ``ddx`` is x″.
    names, n
        Names of the variables, or their number.
    parameters : dict, optional
        Numbers and arrays that ``f`` sees as ``p.name``.
    name : str, optional
        A name for messages and plots.

    Attributes
    ----------
    index : int
        The structural index.
    differentiated : tuple of int
        How often each equation must be differentiated.
    freedoms : int
        How many values may be chosen at the start.

    Examples
    --------
    A pendulum; the force of its rod is one of the variables:

    >>> import numpy as np, holonome as hn
    >>> pendulum = hn.DAE(
    ...     lambda x, ddx: np.array([
    ...         ddx[0] + x[2] * x[0],
    ...         ddx[1] + x[2] * x[1] + 9.81,
    ...         x[0]**2 + x[1]**2 - 1,
    ...     ]),
    ...     names=["x", "y", "force"],
    ... )
    >>> pendulum.index, pendulum.differentiated, pendulum.freedoms
    (3, (0, 0, 2), 2)
    >>> sol = hn.solve(pendulum, (0, 10), [1, 0, 0])
    >>> bool(np.max(np.abs(np.hypot(*sol.x[:2]) - 1)) < 1e-14)
    True
    """

    def __init__(
        self,
        f: Callable,
        *,
        names: Sequence[str] | None = None,
        n: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        name: str = "dae",
    ) -> None:
        if not callable(f):
            raise ModelError(
                f"f: {shown(f)} is not callable; give a function of any of {', '.join(_ALLOWED)}"
            )
        names = names_or_number(names, n, "variables")
        own = Parameters(parameters)
        with expressions:
            symbols = Variables(tuple(names), ca.SX.sym("t"), ca.SX.sym("p", own.size))
            found = reduced(_traced(f, symbols, own), symbols, own.flat)
            functions = _functions(found, symbols)
        self.structure = _facts(names, found)
        System.__init__(
            self,
            np.zeros((0, 0)),
            np.zeros(0),
            n=0,
            states=dict.fromkeys((names[j] + "'" * order for j, order in found.states), 0.0),
            rate=functions["rate"],
            invariant=functions.get("invariant"),
            parameters=parameters,
            name=name,
        )
        self._frozen = Frozen([("f", Captured(f).settled())]) or None

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables x."""
        return tuple(self.states)[: self.structure["variables"]]

    @property
    def index(self) -> int:
        return self.structure["index"]

    @property
    def differentiated(self) -> tuple[int, ...]:
        return tuple(self.structure["differentiated"])

    @property
    def orders_of_states(self) -> tuple[int, ...]:
        return tuple(self.structure["orders"])

    @property
    def hidden_constraints(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.invariant_count > 0

    @property
    def freedoms(self) -> int:
        return len(self.states) - self.invariant_count

    def full_state(self, q0: Any, v0: Any = None, s0: Any = None) -> np.ndarray:
        """A state from all of its values, as a result or a snapshot has them."""
        if np.shape(q0) == (len(self.states),) and v0 is None and s0 is None:
            return vector("q0", q0, len(self.states), "components").copy()
        return self.start_state(0.0, q0, v0, s0)

    def start_state(
        self, t0: float, q0: Any, v0: Any = None, s0: Any = None, repair: bool = False
    ) -> np.ndarray:
        """The consistent state that belongs to the variables x, NaN where one is to be found, and to x′ where
        x″ occurs.
        """
        if s0 is not None:
            raise ValueError("s0: a DAE has initial values q0 (and v0) alone; leave it out")
        count = len(self.variables)
        if np.shape(q0) == (len(self.states),) and len(self.states) > count:
            return self.full_state(q0)
        x = vector("q0", q0, count, "variables")
        second = self.structure["second_order"]
        if v0 is not None and not second:
            raise ValueError(
                "v0: no second derivative occurs in this DAE, so its start has no velocities; leave it out"
            )
        require_finite(q0=np.where(np.isnan(x), 0.0, x))
        slopes = None
        if v0 is not None:
            slopes = vector("v0", v0, count, "variables")
            require_finite(v0=np.where(np.isnan(slopes), 0.0, slopes))
        return consistent_values(self, t0, x, slopes, repair)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"structure": self.structure}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.structure = state["structure"]
        super().__setstate__(state)

    def __repr__(self) -> str:
        return f"DAE({self.name!r}, n={len(self.variables)}, index={self.index})"

    def __str__(self) -> str:
        facts = self.structure
        lines = [
            f"DAE {self.name!r}: {len(self.variables)} variables ({', '.join(shortened(self.variables))}), "
            f"structural index {self.index}, {self.freedoms} degree{'s' * (self.freedoms != 1)} of freedom"
        ]
        often = [f"equation[{i}] {times} ×" for i, times in enumerate(self.differentiated) if times]
        lines.append(f"  differentiated       {', '.join(shortened(often)) or 'no equation'}")
        lines += [f"  replaced             {what}" for what in facts["combined"]]
        hidden = facts["hidden"]
        lines.append(f"  kept                 {', '.join(shortened(hidden)) or 'nothing'}")
        return "\n".join(lines)


def _facts(names: Sequence[str], found: Reduced) -> dict[str, Any]:
    """What is known of a DAE beside its ODE, as plain data."""
    return {
        "variables": len(names),
        "index": found.found.index,
        "differentiated": list(found.found.c),
        "algebraic": [j for j, order in enumerate(found.found.d) if order == 0],
        "second_order": list(found.second_order),
        "hidden": list(found.hidden),
        "orders": [order for _, order in found.states],
        "combined": list(found.combined),
    }


def _functions(found: Reduced, symbols: Variables) -> dict[str, Expression]:
    """The rate, and the invariants if there are any, as functions of a system of states."""
    none = [ca.SX.sym(name, 0) for name in "qv"]
    arguments = [symbols.t, *none, symbols.p, found.symbols]
    parts = {"rate": found.rate} | ({"invariant": found.invariant} if found.invariant.numel() else {})
    return {
        role: Expression(role, ca.Function(role, arguments, [column]), 0) for role, column in parts.items()
    }


def _traced(f: Callable, symbols: Variables, parameters: Parameters) -> ca.SX:
    """The equations of the user as expressions."""
    n = len(symbols.names)
    wanted = argument_names(f, "f")
    unknown = [name for name in wanted if name not in _ALLOWED]
    if unknown:
        raise ModelError(
            f"f: its argument {unknown[0]!r} is not known; arguments go by name and may be any of "
            f"{', '.join(_ALLOWED)}"
        )
    columns = {name: symbols.at(order) for order, name in enumerate(("x", "dx", "ddx"))}
    given = {"t": traced(symbols.t, ()), "p": parameters.namespace(symbols.p)}
    given |= {name: traced(column, (n,)) for name, column in columns.items()}
    require_same_answers("f", lambda point: _called(f, wanted, point), _points(n, parameters))
    try:
        equations, shape = trace(f, {name: given[name] for name in wanted})
    except Exception as reason:
        raise ModelError(
            f"f: cannot be traced ({reason}); its derivatives are needed, so write it with NumPy "
            "functions of its arguments"
        ) from None
    if equations.numel() != n:
        raise ModelError(f"f has shape {shape}; expected ({n},), as many equations as variables")
    return equations


def _points(n: int, parameters: Parameters) -> list[dict[str, Any]]:
    """Points at which the equations are tried out; no particular meaning."""
    random = np.random.default_rng(1)
    p = parameters.namespace(parameters.flat)
    return [
        {"t": t, "p": p} | {name: random.uniform(0.2, 0.9, n) for name in ("x", "dx", "ddx")}
        for t in (0.37, 1.3)
    ]


def _called(f: Callable, wanted: Sequence[str], point: Mapping[str, Any]) -> Any:
    with np.errstate(all="ignore"):
        return f(**{name: point[name] for name in wanted})

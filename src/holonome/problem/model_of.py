"""From the user's functions to a model: each is traced, and what a context must hold is laid out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import casadi as ca
import numpy as np

from holonome.equations.model import Model
from holonome.errors import ModelError
from holonome.machine.inner_newton import SolvedBlock
from holonome.machine.supplied import Supplied
from holonome.problem import elastic as elements
from holonome.problem.checks import DERIVATIVES
from holonome.problem.parameters import Parameters
from holonome.problem.user_function import UserFunction
from holonome.tracing import argument_names, trace, traced


@dataclass
class TracedFunctions:
    """The functions of a system as expressions, and symbols of what follows the parameters in a context."""

    symbols: dict[str, ca.SX]
    end: int  # how much of the context behind its record is laid out
    expressions: dict[str, ca.SX] = field(default_factory=dict)
    derivatives: dict[str, ca.SX] = field(default_factory=dict)  # of supplied functions
    slopes: dict[str, list[tuple[ca.SX, ca.SX, ca.SX]]] = field(default_factory=dict)  # of them, by role
    supplied: dict[int, Supplied] = field(default_factory=dict)  # by the offset of their block
    solved: dict[str, tuple[int, ca.SX]] = field(default_factory=dict)  # offset of the block, variables
    blocks: list[ca.SX] = field(default_factory=list)

    def add(self, role: str, expression: ca.SX | Supplied) -> None:
        """Enter a function; one that is supplied is given a block."""
        if isinstance(expression, Supplied):
            block = ca.SX.sym(role, expression.size)
            self.supplied[self.end] = expression
            self.slopes[role] = expression.slopes(block)
            expression, derivatives = expression.symbols(block)
            self.derivatives |= derivatives
            self._add_block(block)
        self.expressions[role] = expression

    def add_solved(self, name: str, empty: np.ndarray) -> None:
        """Give w or lam a block."""
        variables = self.symbols[name]
        values = SolvedBlock.span(empty, "values")
        block = ca.SX.sym(f"block of {name}", empty.size)
        self.solved[name] = self.end, variables
        self._add_block(ca.vertcat(block[: values.start], variables, block[values.stop :]))

    def _add_block(self, block: ca.SX) -> None:
        self.blocks.append(block)
        self.end += block.numel()


def trace_functions(
    functions: Mapping[str, UserFunction], parameters: Parameters, n: int, further: dict[str, np.ndarray]
) -> TracedFunctions:
    """Trace every function, constraints first: they tell how many multipliers there are, which gives the
    ``lam`` in ``further`` its size.
    """
    symbols = {
        "t": ca.SX.sym("t"),
        "q": ca.SX.sym("q", n),
        "v": ca.SX.sym("v", n),
        "p": ca.SX.sym("p", parameters.size),
    } | {name: ca.SX.sym(name, np.size(further.get(name, ()))) for name in ("s", "w")}
    found = TracedFunctions(symbols, parameters.size)
    constraints = [role for role in functions if "constraint" in role]
    for role in constraints:
        found.add(role, functions[role].expression(symbols))
    rows = sum(expression.numel() for expression in found.expressions.values())
    symbols["lam"] = ca.SX.sym("lam", rows)
    if "lam" in further:
        further["lam"] = np.zeros(rows)
    for role, function in functions.items():
        if role not in constraints:
            found.add(role, function.expression(symbols))
    return found


def model_of(found: TracedFunctions) -> Model:
    """The equations, without elastic elements; Baumgarte's parameters and the values that invariants keep
    come last in a context.
    """
    none = ca.SX(0, 1)
    expressions, symbols = found.expressions, found.symbols
    n = symbols["q"].numel()
    invariant = expressions.get("invariant", none)
    start, damping = ca.SX.sym("invariant", invariant.numel()), ca.SX.sym("damping", 2)
    return Model(
        symbols["t"],
        symbols["q"],
        symbols["v"],
        p=ca.vertcat(symbols["p"], *found.blocks, damping, start),
        M=ca.sparsify(ca.reshape(expressions["mass"], n, n).T),
        f=expressions["force"],
        g=expressions.get("constraint", none),
        h=expressions.get("velocity_constraint", none),
        V=expressions.get("potential"),
        given=found.derivatives,
        slopes=[entry for entries in found.slopes.values() for entry in entries],
        s=symbols["s"],
        r=expressions.get("rate", none),
        u=symbols["w"] if "w" in found.solved else none,
        k=expressions.get("equations", none),
        lam=symbols["lam"] if "lam" in found.solved else none,
        I=invariant,
        I_start=start,
        damping=damping,
    )


def with_elements(
    model: Model,
    names: Sequence[str],
    expressions: Mapping[str, ca.SX],
    functions: Mapping[str, UserFunction],
) -> Model:
    """The forces of elastic elements enter f, their energy the potential."""
    if not names:
        return model
    elastic = elements.combined(names, expressions, functions, model.f)
    return replace(
        model,
        f=model.f + elastic.force(model),
        V=None if model.V is None else model.V + elastic.energy,
        elastic=elastic,
    )


def with_written_derivatives(
    model: Model,
    written: Mapping[str, Callable],
    functions: Mapping[str, UserFunction],
    found: TracedFunctions,
) -> Model:
    """Hand-written derivatives that can be traced replace the finite differences of functions that cannot."""
    n, parameters = model.n, functions["force"].parameters
    symbols = {
        "t": traced(model.t, ()),
        "q": traced(model.q, (n,)),
        "v": traced(model.v, (n,)),
        "p": parameters.namespace(found.symbols["p"]),
    }
    known = {}
    for key, function in written.items():
        role = DERIVATIVES.get(key, "")
        if role not in found.slopes:
            continue
        try:
            flat, _ = trace(function, {name: symbols[name] for name in argument_names(function)})
        except Exception:
            continue
        rows = found.expressions[role].numel()
        if flat.numel() != rows * n:
            raise ModelError(f"derivatives[{key!r}]: {flat.numel()} values; expected {rows} × {n}")
        known[key] = ca.reshape(flat, n, rows).T
    if "constraint_q" in known:
        model = _with_written_gradient(model, known["constraint_q"], "t" in functions["constraint"].arguments)
    slopes = list(model.slopes)
    for values, by_q, by_v in found.slopes.get("force", ()):
        slopes = [entry for entry in slopes if entry[0] is not values]
        slopes.append((values, known.get("force_q", by_q), known.get("force_v", by_v)))
    return replace(model, slopes=slopes)


def _with_written_gradient(model: Model, G: ca.SX, of_time: bool) -> Model:
    """G is known, and with it the derivatives of w = G v + g_t; g_t and γ too, unless g depends on time."""
    Gv, G_t = G @ model.v, ca.reshape(ca.jacobian(ca.vec(G), model.t), *G.shape)
    given = dict(model.given, G=G, D_g=ca.jacobian(Gv, model.q) + G_t)
    if not of_time:
        given |= {"g_t": ca.SX(G.size1(), 1), "gamma_g": ca.jtimes(Gv, model.q, model.v)}
    return replace(model, given=given)

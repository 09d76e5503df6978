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
    supplied: dict[int, Supplied] = field(default_factory=dict)  # by the offset of their block
    solved: dict[str, tuple[int, ca.SX]] = field(default_factory=dict)  # offset of the block, variables
    blocks: list[ca.SX] = field(default_factory=list)

    def add(self, role: str, expression: ca.SX | Supplied) -> None:
        """Enter a function; one that is supplied is given a block."""
        if isinstance(expression, Supplied):
            block = ca.SX.sym(role, expression.size)
            self.supplied[self.end] = expression
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
        suppliers=tuple(found.supplied),
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


def with_written_derivative(model: Model, written: Callable, parameters: Parameters, p: ca.SX) -> Model:
    """A hand-written G replaces the finite differences of a constraint that cannot be traced, if G can be."""
    n, rows = model.n, model.g.numel()
    symbols = {"q": traced(model.q, (n,)), "p": parameters.namespace(p)}
    try:
        flat, _ = trace(written, {name: symbols[name] for name in argument_names(written)})
    except Exception:
        return model
    if flat.numel() != rows * n:
        raise ModelError(f"derivatives['constraint_q']: {flat.numel()} values; expected {rows} × {n}")
    G = ca.reshape(flat, n, rows).T
    given = dict(
        model.given,
        G=G,
        g_t=ca.SX(rows, 1),
        D_g=ca.jacobian(G @ model.v, model.q),
        gamma_g=ca.jtimes(G @ model.v, model.q, model.v),
    )
    return replace(model, given=given)

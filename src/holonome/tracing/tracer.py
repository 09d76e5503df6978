"""`trace` itself: a function is run once per path through its branches on traced values, depth first, and the
results are joined by ``if_else``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca

from holonome.locks import expressions
from holonome.tracing.arguments import bind
from holonome.tracing.copies import Copies
from holonome.tracing.explanations import explain
from holonome.tracing.scalar_rules import select_sx
from holonome.tracing.session import Session, Untraceable
from holonome.tracing.values import SEQUENCES, NotNumeric, column, flatten

_Result = tuple[ca.SX, tuple[int, ...]]


def trace(function: Callable, arguments: Mapping[str, Any]) -> tuple[ca.SX, tuple[int, ...]]:
    """Run a function with traced arguments and return what it computes as an expression.

    Parameters
    ----------
    function : callable
        Ordinary NumPy code; neither it nor anything it refers to is changed.
    arguments : Mapping
        Arguments by name: traced values, numbers, arrays or a `Namespace` of them.

    Returns
    -------
    expression : casadi.SX
        Dense column of the elements of the returned value in row-major order.
    shape : tuple of int
        Shape of the returned value.

    Raises
    ------
    Untraceable
        If the function does what cannot be expressed, for instance converts a traced value to float.
    TypeError
        If the function returns something other than real numbers, or values of different shapes on different
        branches.
    """
    session = Session(function)

    def call_afresh() -> Any:
        """Call copies of their own on each path: nothing stored on one path shows up on another."""
        positional, keywords = bind(function, arguments)
        return Copies().replace(function)(*positional, **keywords)

    with expressions, session.active(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # libraries that warn of traced values; numbers follow
        return _explore(session, call_afresh, [])


def _explore(session: Session, call: Callable[[], Any], script: list[bool]) -> _Result:
    """Run all paths that begin with the script and join them."""
    result = _run(session, call, script)
    path, conditions = session.script, session.conditions
    for k in reversed(range(len(script), len(conditions))):
        result = _join(session.name, conditions[k], result, _explore(session, call, [*path[:k], False]))
    return result


def _run(session: Session, call: Callable[[], Any], script: list[bool]) -> _Result:
    try:
        value = session.run(call, script)
    except Untraceable:
        raise
    except Exception as error:
        explain(error, session)
        raise
    return _flat_result(session.name, value)


def _flat_result(name: str, value: Any) -> _Result:
    try:
        shape, elements = flatten(value)
    except NotNumeric as error:
        part = (
            f"a {type(value).__name__} with "
            if isinstance(value, SEQUENCES) and "ragged" not in str(error)
            else ""
        )
        hint = (
            "; is a return statement missing?"
            if value is None
            else ", expected a real number or an array of real numbers"
        )
        raise TypeError(f"{name} returned {part}{error}{hint}") from None
    return column(elements), shape


def _join(name: str, condition: ca.SX, chosen: _Result, other: _Result) -> _Result:
    (expression, shape), (other_expression, other_shape) = chosen, other
    if shape != other_shape:
        raise TypeError(
            f"{name} returns a value of shape {shape} on one branch and of shape {other_shape} on another"
        )
    pairs = [select_sx(condition, expression[i], other_expression[i]) for i in range(expression.numel())]
    return (ca.densify(ca.vertcat(*pairs)) if pairs else expression), shape

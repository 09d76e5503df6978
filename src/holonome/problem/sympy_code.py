"""SymPy expressions are written as NumPy code."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.errors import ModelError

if TYPE_CHECKING:
    import sympy as sp


@dataclass(frozen=True)
class NumPyFunction:
    """A function of some of t, q, v, p given by its source text, so that it can be printed and pickled.

    Attributes
    ----------
    name : str
        The function that `source` defines.
    arguments : tuple of str
        Its arguments in order.
    source : str
        NumPy code.
    """

    name: str
    arguments: tuple[str, ...]
    source: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return NumPyFunction, (self.name, self.arguments, self.source)

    def __str__(self) -> str:
        return self.source

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in self.arguments]
        )

    @functools.cached_property
    def _function(self) -> Callable[..., Any]:
        namespace: dict[str, Any] = {"numpy": np}
        exec(compile(self.source, f"<from_sympy: {self.name}>", "exec"), namespace)
        return namespace[self.name]


def numpy_function(label: str, part: sp.Matrix) -> NumPyFunction:
    """Write the expressions as NumPy code: a matrix for mass, Gt and Ab, a number for potential, a vector
    otherwise.
    """
    import sympy as sp

    used = {symbol.name[0] for symbol in part.free_symbols}
    arguments = tuple(argument for argument in "tqvp" if argument in used)
    printer = _printer_class()({"strict": True, "fully_qualified_modules": True})
    common, entries = sp.cse(part.flat(), symbols=sp.numbered_symbols("x"))
    try:
        lines = [f"    {symbol} = {printer.doprint(expression)}" for symbol, expression in common]
        texts = [printer.doprint(entry) for entry in entries]
    except sp.printing.codeprinter.PrintMethodNotImplementedError as error:
        raise ModelError(
            f"{label} contains a function that has no counterpart in NumPy: {str(error).splitlines()[0]}"
        ) from error

    if label == "potential":
        result = texts[0]
    elif part.cols == 1 and label != "mass":
        result = f"numpy.array([{', '.join(texts)}])"
    else:
        rows = [f"[{', '.join(texts[i * part.cols : (i + 1) * part.cols])}]" for i in range(part.rows)]
        result = f"numpy.array([{', '.join(rows)}])"
    return NumPyFunction(
        label,
        arguments,
        "\n".join([f"def {label}({', '.join(arguments)}):", *lines, f"    return {result}", ""]),
    )


@functools.cache
def _printer_class() -> type:
    """SymPy's printer with choices as where, minimum and maximum, which can be traced; numpy.select and
    ufunc.reduce cannot.
    """
    import sympy as sp
    from sympy.printing.numpy import NumPyPrinter

    def nested(function: str, texts: Sequence[str]) -> str:
        return functools.reduce(lambda a, b: f"{function}({a}, {b})", texts)

    class Printer(NumPyPrinter):
        def _print_Float(self, expr: Any) -> str:
            return repr(float(expr))

        def _print_Zero(self, expr: Any) -> str:
            return "0.0"

        def _print_Pow(self, expr: Any, rational: bool = False) -> str:
            if expr.exp.is_Rational and expr.exp.is_negative:
                return f"(1/{self.parenthesize(1 / expr, sp.printing.precedence.PRECEDENCE['Pow'])})"
            return self._hprint_Pow(expr, rational=rational, sqrt="numpy.sqrt")

        def _print_Piecewise(self, expr: Any) -> str:
            *cases, last = expr.args
            text = (
                self._print(last.expr)
                if last.cond == sp.true
                else f"numpy.where({self._print(last.cond)}, {self._print(last.expr)}, numpy.nan)"
            )
            for case in reversed(cases):
                text = f"numpy.where({self._print(case.cond)}, {self._print(case.expr)}, {text})"
            return text

        def _print_Relational(self, expr: Any) -> str:
            return f"({self._print(expr.lhs)} {expr.rel_op} {self._print(expr.rhs)})"

        def _print_And(self, expr: Any) -> str:
            return nested("numpy.logical_and", [self._print(a) for a in expr.args])

        def _print_Or(self, expr: Any) -> str:
            return nested("numpy.logical_or", [self._print(a) for a in expr.args])

        def _print_Min(self, expr: Any) -> str:
            return nested("numpy.minimum", [self._print(a) for a in expr.args])

        def _print_Max(self, expr: Any) -> str:
            return nested("numpy.maximum", [self._print(a) for a in expr.args])

        def _print_Heaviside(self, expr: Any) -> str:
            return self._print(expr.rewrite(sp.Piecewise))

        def _print_sign(self, expr: Any) -> str:
            return f"numpy.sign({self._print(expr.args[0])})"

    return Printer

"""What elementary functions do to traced scalars; NumPy's ufuncs, its other functions and the module math all
go by these rules.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import casadi as ca

from holonome.tracing.values import Traced, binary, record_binary, record_unary, sx, unary

TRIGONOMETRIC = ("sin", "cos", "tan", "sinh", "cosh", "tanh")


def select(condition: Any, chosen: Any, other: Any) -> Any:
    """Return ``chosen if condition else other`` for scalars, traced or not."""
    if type(condition) is not Traced:
        return chosen if condition else other
    if type(chosen) is not Traced and type(other) is not Traced and chosen == other:
        return chosen
    return Traced(select_sx(condition.sx, sx(chosen), sx(other)))


def select_sx(condition: ca.SX, chosen: ca.SX, other: ca.SX) -> ca.SX:
    """Return ``condition ? chosen : other``; NaN in the part not taken is masked, also in the derivatives
    (CasADi 3.8, both modes).
    """
    if ca.is_equal(chosen, other, 2):
        return chosen
    kept = binary(ca.OP_IF_ELSE_ZERO, condition, chosen)
    return binary(ca.OP_ADD, kept, binary(ca.OP_IF_ELSE_ZERO, unary(ca.OP_NOT, condition), other))


def real_or(recorded: Callable, real: Callable) -> Callable:
    """Use `recorded` if an argument is traced, `real` otherwise."""

    def function(*args: Any) -> Any:
        return recorded(*args) if any(type(argument) is Traced for argument in args) else real(*args)

    return function


sqrt = record_unary(ca.OP_SQRT)
log = record_unary(ca.OP_LOG)
_sin = record_unary(ca.OP_SIN)
_exp = record_unary(ca.OP_EXP)
_log1p = record_unary(ca.OP_LOG1P)
_sign = record_unary(ca.OP_SIGN)
_floor = record_unary(ca.OP_FLOOR)
_fmax = record_binary(ca.OP_FMAX)
_fmin = record_binary(ca.OP_FMIN)
larger = real_or(_fmax, max)
smaller = real_or(_fmin, min)


def _logaddexp(x: Any, y: Any) -> Any:
    return _fmax(x, y) + _log1p(_exp(-abs(x - y)))


def _heaviside(x: Any, at_zero: Any) -> Any:
    return select(x == 0, at_zero, select(x > 0, 1.0, 0.0))


def sinc(x: Traced) -> Any:
    angle = select(x == 0, 1.0, math.pi * x)
    return select(x == 0, 1.0, _sin(angle) / angle)


_AS_IN_CASADI = (*TRIGONOMETRIC, "sqrt", "exp", "expm1", "log", "log1p", "floor", "ceil", "sign")
SCALAR_RULES: dict[str, Callable] = {
    **{name: record_unary(getattr(ca, f"OP_{name.upper()}")) for name in _AS_IN_CASADI},
    **{f"arc{name}": record_unary(getattr(ca, f"OP_A{name.upper()}")) for name in TRIGONOMETRIC},
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "divmod": divmod,
    "fmod": record_binary(ca.OP_FMOD),
    "power": operator.pow,
    "float_power": operator.pow,
    "square": lambda x: x**2,
    "reciprocal": lambda x: 1.0 / x,
    "negative": operator.neg,
    "positive": operator.pos,
    "conjugate": operator.pos,
    "absolute": abs,
    "fabs": abs,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "logical_and": record_binary(ca.OP_AND),
    "logical_or": record_binary(ca.OP_OR),
    "logical_xor": lambda x, y: (x != 0) ^ (y != 0),
    "logical_not": operator.invert,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "invert": operator.invert,
    "maximum": _fmax,
    "minimum": _fmin,
    "fmax": _fmax,
    "fmin": _fmin,
    "arctan2": record_binary(ca.OP_ATAN2),
    "hypot": record_binary(ca.OP_HYPOT),
    "copysign": record_binary(ca.OP_COPYSIGN),
    "signbit": lambda x: x < 0,
    "exp2": lambda x: 2.0**x,
    "log2": lambda x: log(x) / math.log(2.0),
    "log10": lambda x: log(x) / math.log(10.0),
    "logaddexp": _logaddexp,
    "cbrt": lambda x: _sign(x) * abs(x) ** (1.0 / 3.0),
    "heaviside": _heaviside,
    "trunc": lambda x: _sign(x) * _floor(abs(x)),
    "deg2rad": lambda x: x * (math.pi / 180.0),
    "radians": lambda x: x * (math.pi / 180.0),
    "rad2deg": lambda x: x * (180.0 / math.pi),
    "degrees": lambda x: x * (180.0 / math.pi),
}
"""What a ufunc does to scalars of which at least one is traced."""

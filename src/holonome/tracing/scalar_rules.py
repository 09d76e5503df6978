"""What elementary functions do to traced scalars; NumPy's ufuncs, its other functions and the module math all
go by these rules.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

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
floor = real_or(record_unary(ca.OP_FLOOR), math.floor)
_fmax = record_binary(ca.OP_FMAX)
_fmin = record_binary(ca.OP_FMIN)
_fmod = record_binary(ca.OP_FMOD)
_copysign = record_binary(ca.OP_COPYSIGN)
ieee_remainder = record_binary(ca.OP_REMAINDER)
both = record_binary(ca.OP_AND)
either = record_binary(ca.OP_OR)
_WHOLE_FROM = 2.0**52
"""From here on every double is a whole number."""


def is_nan(x: Traced) -> Traced:
    """Written so that CasADi does not simplify it, as it does with ``x != x``."""
    return ~either(x <= 0, x > 0)


def is_infinite(x: Traced) -> Traced:
    return abs(x) == math.inf  # type: ignore


def is_finite(x: Traced) -> Traced:
    return abs(x) < math.inf


def larger(x: Any, y: Any) -> Any:
    """As the builtin max: the first where they are equal or cannot be compared."""
    return select(y > x, y, x)


def smaller(x: Any, y: Any) -> Any:
    """As the builtin min."""
    return select(y < x, y, x)


def _with_nan(pick: Callable) -> Callable:
    """The larger or smaller of two, and NaN if one of them is."""

    def rule(x: Any, y: Any) -> Any:
        if type(x) is not Traced:
            x, y = y, x
        picked = pick(x, y)  # NaN if x is, as nothing compares with it
        if type(y) is not Traced:
            return y if math.isnan(y) else picked
        return select(is_nan(y), y, picked)

    return rule


maximum = _with_nan(larger)
minimum = _with_nan(smaller)


def is_close(x: Any, y: Any, tolerance: Any) -> Any:
    return either(x == y, both(abs(x - y) <= tolerance, both(abs(x) < math.inf, abs(y) < math.inf)))


def _logaddexp(x: Any, y: Any) -> Any:
    return _fmax(x, y) + _log1p(_exp(-abs(select(x == y, 0.0, x - y))))


def _logaddexp2(x: Any, y: Any) -> Any:
    return _logaddexp(x * math.log(2.0), y * math.log(2.0)) / math.log(2.0)


def _heaviside(x: Any, at_zero: Any) -> Any:
    side = 0.5 * (_sign(x) + 1.0) if type(x) is Traced else float(np.heaviside(x, 0.5))
    return select(x == 0, at_zero, side)


def sinc(x: Traced) -> Any:
    angle = select(x == 0, 1.0, math.pi * x)
    return select(x == 0, 1.0, _sin(angle) / angle)


def trunc(x: Traced) -> Any:
    return _sign(x) * floor(abs(x))


def rint(x: Traced) -> Any:
    """The nearest whole number, of two the even one."""
    return select(abs(x) < _WHOLE_FROM, x - ieee_remainder(x, 1.0), x)


def _modf(x: Traced) -> tuple[Any, Any]:
    whole = trunc(x)
    return select(is_infinite(x), 0.0, x - whole), whole


def _crosses(rest: Any, y: Any) -> Any:
    """Whether a remainder with the sign of the dividend must move to that of the divisor."""
    if type(y) is not Traced:
        return rest < 0 if y > 0 else rest > 0
    return either(both(rest < 0, y > 0), both(rest > 0, y < 0))


def remainder(x: Any, y: Any) -> Any:
    """As in Python, with the sign of the divisor."""
    rest = _fmod(x, y)
    return select(_crosses(rest, y), rest + y, rest)


def floor_divide(x: Any, y: Any) -> Any:
    rest = _fmod(x, y)
    quotient = (x - rest) / y - select(_crosses(rest, y), 1.0, 0.0)
    below = floor(quotient)
    result = below + select(quotient - below > 0.5, 1.0, 0.0)
    return select(y == 0, x / y, result) if type(y) is Traced or y == 0 else result


_AS_IN_CASADI = (*TRIGONOMETRIC, "sqrt", "exp", "expm1", "log", "log1p", "floor", "ceil", "sign")
SCALAR_RULES: dict[str, Callable] = {
    **{name: record_unary(getattr(ca, f"OP_{name.upper()}")) for name in _AS_IN_CASADI},
    **{f"arc{name}": record_unary(getattr(ca, f"OP_A{name.upper()}")) for name in TRIGONOMETRIC},
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": floor_divide,
    "remainder": remainder,
    "divmod": lambda x, y: (floor_divide(x, y), remainder(x, y)),
    "fmod": _fmod,
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
    "logical_and": both,
    "logical_or": either,
    "logical_xor": lambda x, y: (x != 0) ^ (y != 0),
    "logical_not": operator.invert,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "invert": operator.invert,
    "maximum": maximum,
    "minimum": minimum,
    "fmax": _fmax,
    "fmin": _fmin,
    "arctan2": record_binary(ca.OP_ATAN2),
    "hypot": record_binary(ca.OP_HYPOT),
    "copysign": _copysign,
    "signbit": lambda x: _copysign(1.0, x) < 0,
    "isnan": is_nan,
    "isinf": is_infinite,
    "isfinite": is_finite,
    "rint": rint,
    "modf": _modf,
    "ldexp": lambda x, exponent: x * 2.0**exponent,
    "exp2": lambda x: 2.0**x,
    "log2": lambda x: log(x) / math.log(2.0),
    "log10": lambda x: log(x) / math.log(10.0),
    "logaddexp": _logaddexp,
    "logaddexp2": _logaddexp2,
    "cbrt": lambda x: _sign(x) * abs(x) ** (1.0 / 3.0),
    "heaviside": _heaviside,
    "trunc": trunc,
    "deg2rad": lambda x: x * (math.pi / 180.0),
    "radians": lambda x: x * (math.pi / 180.0),
    "rad2deg": lambda x: x * (180.0 / math.pi),
    "degrees": lambda x: x * (180.0 / math.pi),
}
"""What a ufunc does to scalars of which at least one is traced."""

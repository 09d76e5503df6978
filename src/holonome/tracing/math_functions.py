"""What the module math and the builtins max, min and isinstance do to traced values.

They know nothing of NumPy's protocols, so the user's code gets versions of them that do (`look_alikes`,
`copies`).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from holonome.tracing.scalar_rules import (
    SCALAR_RULES,
    TRIGONOMETRIC,
    ieee_remainder,
    is_close,
    larger,
    log,
    maximum,
    real_or,
    smaller,
    sqrt,
)
from holonome.tracing.values import NUMBERS, Traced, TracedArray, has_traced, record_unary

_erf = record_unary(ca.OP_ERF)
_log = real_or(log, math.log)


def _log_to_base(x: Any, base: Any = None) -> Any:
    return _log(x) if base is None else _log(x) / _log(base)


def _sum(values: Any) -> Any:
    return functools.reduce(operator.add, values, 0.0)


def _hypot(*coordinates: Any) -> Any:
    return (
        SCALAR_RULES["hypot"](*coordinates)
        if len(coordinates) == 2
        else sqrt(_sum(x**2 for x in coordinates))
    )


def _is_close(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
    return is_close(a, b, maximum(rel_tol * maximum(abs(a), abs(b)), abs_tol))


_AS_IN_NUMPY = (
    *TRIGONOMETRIC,
    "sqrt",
    "cbrt",
    "exp",
    "expm1",
    "exp2",
    "log1p",
    "log2",
    "log10",
    "floor",
    "ceil",
    "fabs",
    "fmod",
    "copysign",
    "degrees",
    "radians",
    "isnan",
    "isinf",
    "isfinite",
    "trunc",
    "modf",
)
_RULES: dict[str, Callable] = {
    **{name: SCALAR_RULES[name] for name in _AS_IN_NUMPY},
    **{f"a{name}": SCALAR_RULES[f"arc{name}"] for name in (*TRIGONOMETRIC, "tan2")},
    "pow": operator.pow,
    "log": _log_to_base,
    "hypot": _hypot,
    "dist": lambda p, q: _hypot(*(x - y for x, y in zip(p, q, strict=True))),
    "fsum": _sum,
    "prod": lambda values, *, start=1.0: functools.reduce(operator.mul, values, start),
    "sumprod": lambda p, q: _sum(x * y for x, y in zip(p, q, strict=True)),
    "fma": lambda x, y, z: x * y + z,
    "isclose": _is_close,
    "remainder": ieee_remainder,
    "erf": _erf,
    "erfc": lambda x: 1.0 - _erf(x),
}


def _math_version(original: Callable, rule: Callable) -> Callable:
    def version(*args: Any, **options: Any) -> Any:
        args = tuple(
            value.item() if isinstance(value, TracedArray) and value.ndim == 0 else value for value in args
        )
        return rule(*args, **options) if has_traced(args) else original(*args, **options)

    return functools.update_wrapper(version, original, assigned=("__name__", "__doc__"), updated=())


def _extreme(original: Callable, pick: Callable) -> Callable:
    """Return a version of the builtin max or min that needs no branches."""

    def version(*args: Any, **options: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else args
        if (
            options
            or not any(type(value) is Traced for value in values)
            or not all(isinstance(value, NUMBERS) for value in values)
        ):
            return original(values, **options) if len(args) == 1 else original(*args, **options)
        return functools.reduce(pick, values)

    return version


ORIGINAL_CLASS = "_original_class"
"""Where the copy of a class for tracing keeps the class."""


def _originals(kinds: Any) -> Any:
    if isinstance(kinds, tuple):
        return tuple(map(_originals, kinds))
    return vars(kinds).get(ORIGINAL_CLASS, kinds) if isinstance(kinds, type) else kinds


def _isinstance(instance: Any, kinds: Any) -> bool:
    return isinstance(np.float64() if type(instance) is Traced else instance, _originals(kinds))


MATH_VERSIONS = {
    name: _math_version(getattr(math, name), rule) for name, rule in _RULES.items() if hasattr(math, name)
}
BUILTIN_VERSIONS = {"isinstance": _isinstance, "max": _extreme(max, larger), "min": _extreme(min, smaller)}

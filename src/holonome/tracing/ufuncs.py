"""What NumPy's ufuncs do to traced values: the rules for scalars, applied to arrays by ufuncs for objects."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from holonome.tracing.scalar_rules import SCALAR_RULES, real_or
from holonome.tracing.session import refuse
from holonome.tracing.values import (
    SEQUENCES,
    Traced,
    as_array,
    check_dtype,
    column,
    has_traced,
    has_traced_array,
    is_real,
    lift,
    lower,
    plain,
    sx,
    unwrap,
)

_SAFE_ON_FLOATS = frozenset(
    {
        "add",
        "subtract",
        "multiply",
        "negative",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal",
        "not_equal",
    }
)
_LONG_SUM = 100
"""Terms of a sum beyond which CasADi adds them up in one call."""

_IDENTITIES = {"add": 0.0, "multiply": 1.0, "logical_and": True, "logical_or": False}


def _elementwise(ufunc: np.ufunc, rule: Callable) -> Any:
    """Return a ufunc for object arrays that applies the rule to traced elements and the original ufunc to the
    others.
    """
    name = ufunc.__name__
    scalar = rule if name in _SAFE_ON_FLOATS else real_or(rule, lambda *args: _plain_result(ufunc(*args)))
    options = {"identity": _IDENTITIES[name]} if name in _IDENTITIES else {}
    return np.frompyfunc(scalar, ufunc.nin, ufunc.nout, **options)


def _plain_result(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, tuple) else plain(value)


_UFUNC_RULES = {getattr(np, name): rule for name, rule in SCALAR_RULES.items()}
_ELEMENTWISE = {ufunc: _elementwise(ufunc, rule) for ufunc, rule in _UFUNC_RULES.items()}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple, options: dict[str, Any]) -> Any:
    """Call a ufunc, or a method of it, whose arguments may be traced."""
    if not has_traced(inputs) and method != "at" and not has_traced_array(options.get("out")):
        result = getattr(ufunc, method)(
            *lower(inputs), **{name: lower(value) for name, value in options.items()}
        )
        return result if options.get("out") else lift(result)
    if (
        method == "__call__"
        and not options
        and ufunc in _UFUNC_RULES
        and not any(isinstance(value, SEQUENCES) for value in inputs)
    ):
        return _UFUNC_RULES[ufunc](*map(plain, inputs)) if all(map(is_real, inputs)) else NotImplemented
    options = _object_options(options)
    arrays = _object_arrays(method, inputs)
    return (
        NotImplemented if arrays is None else unwrap(_apply_to_object_arrays(ufunc, method, arrays, options))
    )


def _object_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a ufunc as they apply to object arrays."""
    kept = {
        name: value
        for name, value in options.items()
        if name not in ("dtype", "casting", "subok", "order", "signature")
    }
    if has_traced(kept.get("where")):
        refuse("it passes traced conditions as the argument `where`")
    if options.get("dtype") is not None and np.dtype(options["dtype"]).kind != "b":
        check_dtype(options["dtype"])
    if kept.pop("out", None) is not None:
        outputs = options["out"] if isinstance(options["out"], tuple) else (options["out"],)
        if any(output is not None and output.dtype != object for output in outputs):
            refuse(
                "it writes traced values into an array of plain numbers that was not created by the function "
                "itself"
            )
        kept["out"] = tuple(None if output is None else output.view(np.ndarray) for output in outputs)
    return kept


def _object_arrays(method: str, inputs: tuple) -> list[Any] | None:
    """Return the operands of a ufunc as object arrays and the indices of `at` and `reduceat` as they are,
    None if an operand is no number.
    """
    arrays: list[Any] = []
    for k, value in enumerate(inputs):
        if k == 1 and method in ("at", "reduceat"):
            arrays.append(value)
        elif isinstance(value, SEQUENCES) or is_real(value):
            arrays.append(_object_array(value))
        else:
            return None
    return arrays


def _object_array(value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return value.astype(object)
    if isinstance(value, SEQUENCES):
        return as_array(value).view(np.ndarray)
    return np.fromiter([value], dtype=object, count=1).reshape(())


def _apply_to_object_arrays(ufunc: np.ufunc, method: str, arrays: list[Any], options: dict[str, Any]) -> Any:
    if ufunc.signature is not None:
        return _apply_gufunc(ufunc, arrays, options)
    if ufunc in _ELEMENTWISE:
        elementwise = _ELEMENTWISE[ufunc]
        return (
            _reduce(elementwise, arrays[0], **options)
            if method == "reduce"
            else getattr(elementwise, method)(*arrays, **options)
        )
    if all(set(loop) <= set("O->") for loop in ufunc.types):
        return getattr(ufunc, method)(*arrays, **options)
    refuse(f"it calls np.{ufunc.__name__}, which has no traced version")


def _apply_gufunc(ufunc: np.ufunc, arrays: list[np.ndarray], options: dict[str, Any]) -> Any:
    if all(array.size for array in arrays):
        return ufunc(*arrays, **options)
    return ufunc(*(np.zeros(array.shape) for array in arrays)).astype(object)


def _reduce(
    elementwise: Any,
    array: np.ndarray,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    **options: Any,
) -> Any:
    """Reduce over one or several axes by folding them into one: a ufunc without identity reduces over one
    axis only.
    """
    axes = range(array.ndim) if axis is None else np.atleast_1d(axis) % max(array.ndim, 1)
    others = [k for k in range(array.ndim) if k not in axes]
    folded = array.transpose(*others, *axes).reshape(
        *(array.shape[k] for k in others), math.prod(array.shape[k] for k in axes)
    )
    if options.get("where", True) is not True:
        refuse("it reduces with the argument `where`")
    initial = (
        {"initial": options["initial"]}
        if options.get("initial", np._NoValue) not in (np._NoValue, None)
        else {}
    )
    if elementwise is _ELEMENTWISE[np.add] and folded.shape == (folded.size,) and folded.size > _LONG_SUM:
        result = Traced(ca.sum1(column(list(folded))) + sx(initial.get("initial", 0.0)))
    else:
        result = elementwise.reduce(folded, axis=-1, **initial)
    if keepdims:
        result = as_array(result).reshape([1 if k in axes else size for k, size in enumerate(array.shape)])
    if out is None:
        return result
    out[0][...] = result
    return out[0]

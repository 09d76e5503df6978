"""What NumPy's functions other than ufuncs do to traced values: by a rule where there is one, otherwise by
NumPy's own code on object arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from holonome.tracing.linear_algebra import cross, det, inv, norm, solve
from holonome.tracing.numpy_protocol import numpy_answers
from holonome.tracing.scalar_rules import is_close, real_or, select, sinc
from holonome.tracing.session import refuse
from holonome.tracing.ufuncs import apply_ufunc
from holonome.tracing.values import (
    Traced,
    TracedArray,
    as_array,
    check_dtype,
    from_flat,
    has_traced,
    has_traced_array,
    lift,
    lower,
    map_parts,
    unwrap,
)


def apply_function(function: Callable, args: tuple, options: dict[str, Any]) -> Any:
    """Call a NumPy function whose arguments may be traced."""
    if (
        has_traced(args)
        or any(map(has_traced, options.values()))
        or (function in _SHARES_MEMORY and has_traced_array(args))
    ):
        rule = _RULES.get(function)
        return rule(*args, **options) if rule is not None else _call_with_arrays(function, args, options)
    if options.get("out") is not None:
        return _call_with_arrays(function, args, options)
    result = _RULES_FOR_FLOATS.get(function, function)(
        *lower(args), **{name: lower(value) for name, value in options.items()}
    )
    return result if function in _STAYS_REAL else lift(result)


def _call_with_arrays(function: Callable, args: tuple, options: dict[str, Any]) -> Any:
    """Run NumPy's own implementation on object arrays."""
    if "dtype" in options:
        check_dtype(options.pop("dtype"))
    convert = (
        _nested_parts if function is np.block else _parts if function in _TAKES_SEQUENCES else as_argument
    )
    args = tuple(map(convert, args))
    options = {name: convert(value) for name, value in options.items()}
    if hasattr(function, "_implementation"):
        return unwrap(
            np.ndarray.__array_function__(from_flat([], (0,)), function, (TracedArray,), args, options)
        )
    return unwrap(function(*args, **options))


def as_argument(value: Any) -> Any:
    return as_array(value) if has_traced(value) else value


def _parts(value: Any) -> Any:
    return map_parts(as_argument, value) if type(value) in (list, tuple) else as_argument(value)


def _nested_parts(value: Any) -> Any:
    return map_parts(_nested_parts, value) if type(value) in (list, tuple) else as_argument(value)


def _array(value: Any, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0, **options: Any) -> Any:
    if not has_traced(value) and dtype is not None and np.dtype(dtype).kind not in "fO":
        return np.array(lower(value), dtype=dtype, ndmin=ndmin)
    check_dtype(dtype)
    array = as_array(value)
    array = array.copy() if copy and array is value else array
    return array.reshape((1,) * (ndmin - array.ndim) + array.shape) if ndmin > array.ndim else array


def _asarray(value: Any, dtype: Any = None, *options: Any, **keywords: Any) -> Any:
    return _array(value, dtype, copy=False)


def _copy(value: Any, *options: Any, **keywords: Any) -> TracedArray:
    return as_array(value).copy()


def _full(shape: Any, fill_value: Any, dtype: Any = None, **options: Any) -> TracedArray:
    check_dtype(dtype)
    array = np.empty(shape, dtype=object).view(TracedArray)
    array[...] = fill_value
    return array


def _full_like(
    array: Any, fill_value: Any, dtype: Any = None, *options: Any, shape: Any = None, **keywords: Any
) -> Any:
    shape = np.shape(array) if shape is None else shape
    return apply_function(
        np.full,
        (shape, fill_value),
        {"dtype": None if dtype is object or dtype == np.dtype(object) else dtype},
    )


def _zeros_like(array: Any, dtype: Any = None, *options: Any, **keywords: Any) -> Any:
    return _full_like(array, 0.0, dtype, **keywords)


def _ones_like(array: Any, dtype: Any = None, *options: Any, **keywords: Any) -> Any:
    return _full_like(array, 1.0, dtype, **keywords)


_select_elements = np.frompyfunc(select, 3, 1)


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        refuse("it asks np.where for the positions of traced conditions")
    return unwrap(_select_elements(*(as_array(part).view(np.ndarray) for part in (condition, *choices))))


def _choose_last(conditions: Iterable[Any], choices: Iterable[Any], default: Any) -> Any:
    """Return, element by element, the choice that belongs to the last condition that holds."""
    result = default
    for condition, choice in zip(conditions, choices, strict=True):
        result = _where(condition, choice, result)
    return result


def _select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0.0) -> Any:
    return _choose_last(reversed(condlist), reversed(choicelist), default)


def _piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **options: Any) -> Any:
    conditions = (
        list(condlist)
        if isinstance(condlist, (list, tuple)) or np.ndim(condlist) > np.ndim(x)
        else [condlist]
    )
    choices = [function(x, *args, **options) if callable(function) else function for function in funclist]
    default = choices.pop() if len(choices) > len(conditions) else 0.0
    return _choose_last(conditions, choices, default)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any) -> Any:
    low, high = options.get("min", a_min), options.get("max", a_max)
    result = a if low is None else np.maximum(a, low)
    result = result if high is None else np.minimum(result, high)
    if out is None:
        return result
    out[...] = result
    return out


def _is_close(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    a, b = as_array(a), as_array(b)
    close = unwrap(np.frompyfunc(is_close, 3, 1)(a, b, atol + rtol * abs(b)))
    return close | (np.isnan(a) & np.isnan(b)) if equal_nan else close


def _all_close(*args: Any, **options: Any) -> Any:
    return np.all(_is_close(*args, **options))


def _polyval(p: Any, x: Any) -> Any:
    x = x if type(x) is Traced else as_array(x)
    result = 0.0 * x
    for coefficient in as_array(p):
        result = result * x + coefficient
    return result


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if has_traced(xp) or period is not None:
        refuse("it calls np.interp with a traced table of abscissae or a period")
    nodes, values = lower(as_array(xp)).tolist(), list(as_array(fp))
    if len(nodes) != len(values) or not nodes:
        raise ValueError("fp and xp are not of the same length.")
    ends = (values[0] if left is None else left, values[-1] if right is None else right)
    return _map_elements(lambda at: _piecewise_linear(at, nodes, values, *ends), x)


def _piecewise_linear(x: Any, nodes: list[float], values: list[Any], left: Any, right: Any) -> Any:
    """The value of the piece in which x lies; NaN where x is."""
    pieces = [k for k in range(len(nodes) - 1) if nodes[k + 1] > nodes[k]]

    def within(first: int, last: int) -> Any:
        """The pieces from one to another, halved again and again."""
        if first == last:
            k = pieces[first]
            slope = (values[k + 1] - values[k]) / (nodes[k + 1] - nodes[k])
            return values[k] + slope * (x - nodes[k])
        middle = (first + last + 1) // 2
        return select(x < nodes[pieces[middle]], within(first, middle - 1), within(middle, last))

    inner = within(0, len(pieces) - 1) if pieces else values[0]
    beyond = select(x > nodes[-1], right, x)
    inside = select(x == nodes[-1], values[-1], select(x < nodes[-1], inner, beyond))
    return select(x < nodes[0], left, inside)


def _search_sorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    if sorter is not None:
        refuse("it calls np.searchsorted with a sorter")
    edges = list(as_array(a))
    return _map_elements(lambda at: sum(~(at <= e) if side == "left" else ~(at < e) for e in edges), v)


def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    if has_traced(bins) or np.any(np.diff(lower(as_array(bins))) < 0):
        refuse("it calls np.digitize with bins that do not increase")
    return _search_sorted(bins, x, "left" if right else "right")


def _round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    scale = 10.0 ** abs(decimals)
    a = as_argument(a)
    result = np.rint(a * scale) / scale if decimals >= 0 else np.rint(a / scale) * scale
    if out is None:
        return result
    out[...] = result
    return out


def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    largest = np.finfo(float).max
    low, high = -largest if neginf is None else neginf, largest if posinf is None else posinf
    x = as_argument(x)
    return _choose_last([np.isnan(x), x == -np.inf, x == np.inf], [nan, low, high], x)


def _without_nan(reduction: Callable, instead: float) -> Callable:
    def rule(a: Any, *args: Any, **options: Any) -> Any:
        return reduction(_nan_to_num(a, nan=instead, posinf=np.inf, neginf=-np.inf), *args, **options)

    return rule


def _nan_mean(a: Any, axis: Any = None, **options: Any) -> Any:
    counted = _where(np.isnan(as_argument(a)), 0.0, 1.0)
    return np.nansum(a, axis=axis, **options) / np.sum(counted, axis=axis, **options)


def _sort(a: Any, axis: int | None = -1, **options: Any) -> Any:
    """A network of comparisons, NaN last."""
    array = as_array(a).ravel() if axis is None else np.moveaxis(as_array(a), axis, 0)
    rows = list(array)
    for end in range(len(rows) - 1, 0, -1):
        for k in range(end):
            first, second = rows[k], rows[k + 1]
            swapped = np.logical_or(second < first, np.logical_and(np.isnan(first), ~np.isnan(second)))
            rows[k], rows[k + 1] = _where(swapped, second, first), _where(swapped, first, second)
    return np.stack(rows) if axis is None else np.moveaxis(np.stack(rows), 0, axis)


def _median(a: Any, axis: Any = None, **options: Any) -> Any:
    if options:
        refuse("it calls np.median with options")
    rows = list(np.moveaxis(as_array(a), axis, 0) if axis is not None else as_array(a).ravel())
    ordered = list(np.sort(np.stack(rows), axis=0))
    middle = 0.5 * (ordered[(len(rows) - 1) // 2] + ordered[len(rows) // 2])
    return _where(np.isnan(ordered[-1]), ordered[-1], middle)


def _sinc(x: Any) -> Any:
    return _map_elements(real_or(sinc, np.sinc), x)


def _map_elements(function: Callable, x: Any) -> Any:
    return unwrap(np.frompyfunc(function, 1, 1)(as_array(x).view(np.ndarray)))


def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, **options: Any) -> Any:
    if options.get("retstep") or options.get("axis"):
        refuse("it calls np.linspace with traced ends and options")
    fractions = np.linspace(0.0, 1.0, num, endpoint=endpoint).reshape(
        -1, *(1,) * max(np.ndim(start), np.ndim(stop))
    )
    return start + fractions * (stop - start)


def _cross(a: Any, b: Any, *axes: Any, **options: Any) -> Any:
    first, second = as_array(a), as_array(b)
    if axes or options or first.shape[-1:] + second.shape[-1:] not in ((2, 2), (3, 3)):
        return _call_with_arrays(np.cross, (first, second, *axes), options)
    return cross(first, second)


def _is_scalar(value: Any) -> bool:
    return type(value) is Traced or np.isscalar(value)


def _refusing(name: str) -> Callable[..., NoReturn]:
    def rule(*args: Any, **options: Any) -> NoReturn:
        refuse(f"it calls np.{name}, which has no traced version")

    return rule


_WITHOUT_RULE = ("unique", "histogram")
_LINALG_WITHOUT_RULE = (
    "cholesky",
    "cond",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "lstsq",
    "matrix_rank",
    "pinv",
    "qr",
    "slogdet",
    "svd",
)
_RULES: dict[Callable, Callable] = {
    np.array: _array,
    np.asarray: _asarray,
    np.asanyarray: _asarray,
    np.ascontiguousarray: _asarray,
    np.asfortranarray: _asarray,
    np.asarray_chkfinite: _asarray,
    np.copy: _copy,
    np.full: _full,
    np.full_like: _full_like,
    np.zeros_like: _zeros_like,
    np.empty_like: _zeros_like,
    np.ones_like: _ones_like,
    np.where: _where,
    np.select: _select,
    np.piecewise: _piecewise,
    np.clip: _clip,
    np.isclose: _is_close,
    np.allclose: _all_close,
    np.polyval: _polyval,
    np.interp: _interp,
    np.linspace: _linspace,
    np.sinc: _sinc,
    np.round: _round,
    np.around: _round,
    np.nan_to_num: _nan_to_num,
    np.searchsorted: _search_sorted,
    np.digitize: _digitize,
    np.sort: _sort,
    np.median: _median,
    np.nansum: _without_nan(np.sum, 0.0),
    np.nanprod: _without_nan(np.prod, 1.0),
    np.nanmax: lambda a, axis=None, **options: np.fmax.reduce(as_array(a), axis=axis, **options),
    np.nanmin: lambda a, axis=None, **options: np.fmin.reduce(as_array(a), axis=axis, **options),
    np.nanmean: _nan_mean,
    np.real: lambda value: value,
    np.imag: lambda value: 0.0 * value,
    np.isscalar: _is_scalar,
    np.cross: _cross,
    np.linalg.norm: norm,
    np.linalg.solve: solve,
    np.linalg.inv: inv,
    np.linalg.det: det,
    **{getattr(np, name): _refusing(name) for name in _WITHOUT_RULE},
    **{getattr(np.linalg, name): _refusing(f"linalg.{name}") for name in _LINALG_WITHOUT_RULE},
}
_RULES_FOR_FLOATS: dict[Callable, Callable] = {np.empty: np.zeros, np.empty_like: np.zeros_like}
_STAYS_REAL = frozenset({np.linspace, np.arange, np.logspace, np.geomspace})
_TAKES_SEQUENCES = frozenset(
    {np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.linalg.multi_dot}
)
# Functions that write to an argument or may return a view of it: a copy of the argument would not do.
_SHARES_MEMORY = frozenset(
    getattr(np, name)
    for name in (
        *("fill_diagonal", "copyto", "put", "place", "putmask", "put_along_axis"),
        *(
            "array",
            "asarray",
            "asanyarray",
            "ascontiguousarray",
            "asfortranarray",
            "asarray_chkfinite",
            "atleast_1d",
            "atleast_2d",
            "atleast_3d",
        ),
        *(
            "reshape",
            "ravel",
            "transpose",
            "swapaxes",
            "moveaxis",
            "rollaxis",
            "squeeze",
            "expand_dims",
            "diagonal",
            "diag",
            "real",
        ),
        *(
            "split",
            "array_split",
            "hsplit",
            "vsplit",
            "dsplit",
            "flip",
            "fliplr",
            "flipud",
            "rot90",
            "broadcast_to",
            "broadcast_arrays",
        ),
    )
)

numpy_answers.ufunc, numpy_answers.function = apply_ufunc, apply_function

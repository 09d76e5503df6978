"""Turns ordinary NumPy functions into CasADi expressions by running them once with symbolic arguments.

A `Traced` scalar records what is done to it in a 1x1 `casadi.SX`; a `TracedArray` is an object array of such scalars and plain floats. NumPy's
protocols (``__array_ufunc__``, ``__array_function__``) bring most of NumPy to them, but not what never sees a traced argument: ``np.zeros`` makes an
array of floats that cannot hold a traced value, ``np.array`` makes an array that NumPy's functions cannot work on, ``math.sin`` wants a float. Two
measures help:

* *Copies.* The function runs as a copy whose globals, closure and defaults refer to tracing versions: the modules numpy and math to look-alikes,
  functions imported from them to their versions, other user functions (also methods, partials, Numba's dispatchers and user modules) to copies of
  their own, made when first called, and objects of user classes to twins: instances of a throw-away subclass that owns a shallow copy of the
  attributes. The user's own functions and objects are never changed, and what the function stores on them while it is traced is forgotten.
  Functions of libraries are not copied.
* *Patches.* What copies do not reach (classes instantiated inside the function, ``super().method()``, imports inside the function) still finds the
  creation functions of numpy and all of math replaced while the function runs. The patch is made under a lock, undone in ``finally``, and passes
  straight through to the original for other threads and for calls that come from a library. NumPy's types and ufuncs are not patched: others rely
  on their identity.

A branch on a traced value is decided by a script. The function is run once per path, depth first, and the results are joined by ``if_else``.
"""

from __future__ import annotations

import abc
import builtins
import contextlib
import functools
import inspect
import itertools
import math
import numbers
import opcode
import operator
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import casadi as ca
import numpy as np

__all__ = ["Namespace", "Traced", "TracedArray", "Untraceable", "argument_names", "trace", "traced"]

MAX_PATHS = 64
MAX_DECISIONS = 64
MODEL_ARGUMENTS = frozenset({"t", "q", "v", "p", "s", "w", "lam", "x"})

_LIBRARIES = frozenset(sys.stdlib_module_names | {"numpy", "scipy", "casadi", "numba", "llvmlite", "sympy", "matplotlib", "pandas", "xarray"})
_LARGEST_CONSTANT_ARRAY = 10_000
_DEEPEST_CONTAINER = 3
_REMEMBERED_CONDITIONS = 8
_LARGEST_DETERMINANT = 7
_PLAIN_NUMBERS = (float, int, bool)
_COMPLEX = (complex, np.complexfloating)
_NUMBERS = (float, int, np.number, np.bool_, numbers.Real)

_unary: Callable[[int, ca.SX], ca.SX] = ca.SX.unary
_binary: Callable[[int, ca.SX, ca.SX], ca.SX] = ca.SX.binary


class Untraceable(Exception):
    """The function cannot be traced; the message says why in plain words."""


class _State(threading.local):
    session: _Session | None = None


_state = _State()
_patch_lock = threading.RLock()


def _is_library(module_name: str | None) -> bool:
    return module_name is not None and (module_name == __name__ or module_name.partition(".")[0] in _LIBRARIES)


def _is_library_frame(frame: types.FrameType) -> bool:
    return _is_library(frame.f_globals.get("__name__"))


def _describe_line(filename: str, line: int | None) -> str:
    session = _state.session
    if line is None or session is None or filename == session.filename:
        return "" if line is None else f" (line {line})"
    return f" (line {line} of {filename.replace(chr(92), '/').rpartition('/')[2]})"


def _current_line() -> str:
    """Where in the user's code we are now, as ' (line 12)'."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not _Session.run.__code__:
        if not _is_library_frame(frame):
            return _describe_line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return ""


def _refuse(reason: str) -> NoReturn:
    """Raise `Untraceable` and remember it, should the user's function swallow it."""
    error = Untraceable(reason + _current_line())
    if _state.session is not None:
        _state.session.refusal = error
    raise error


def _sx(value: Any) -> ca.SX:
    return value.sx if type(value) is Traced else ca.SX(float(value))


def _operand(value: Any) -> ca.SX | None:
    """Return the expression of a real scalar, None for anything else."""
    if type(value) is Traced:
        return value.sx
    if isinstance(value, _COMPLEX):
        _refuse("it mixes complex numbers with traced values")
    return ca.SX(float(value)) if isinstance(value, _NUMBERS) else None


def _operator(op: int, name: str, reflected: bool = False) -> Callable[[Traced, Any], Any]:
    function = getattr(operator, name)

    def method(self: Traced, other: Any) -> Any:
        if isinstance(other, (list, tuple)):
            array = _as_array(other)
            return function(array, self) if reflected else function(self, array)
        expression = _operand(other)
        if expression is None:
            return NotImplemented
        return Traced(_binary(op, expression, self.sx) if reflected else _binary(op, self.sx, expression))

    return method


def _refusing(action: str) -> Callable[..., NoReturn]:
    def method(self: Traced, *args: Any) -> NoReturn:
        _refuse(f"it {action}")

    return method


class Traced:
    """A real scalar that records the operations on it.

    Parameters
    ----------
    sx : casadi.SX
        The 1x1 expression this value stands for.
    """

    __slots__ = ("sx",)
    __array_priority__ = 1000.0
    shape: tuple[int, ...] = ()
    ndim = 0
    size = 1
    dtype = np.dtype(object)
    imag = 0.0

    def __init__(self, sx: ca.SX) -> None:
        self.sx = sx

    def __repr__(self) -> str:
        return f"Traced({self.sx})"

    def __str__(self) -> str:
        return str(self.sx)

    def __format__(self, specification: str) -> str:
        if specification:
            _refuse(f"it formats a traced value with {specification!r}")
        return str(self)

    def __getattr__(self, name: str) -> Any:
        if name not in _SCALAR_METHODS:
            raise AttributeError(f"'Traced' object has no attribute {name!r}", name=name, obj=self)
        return getattr(_from_flat([self], ()), name)

    def __add__(self, other: Any) -> Any:
        return self if type(other) in _PLAIN_NUMBERS and other == 0 else _add(self, other)

    def __mul__(self, other: Any) -> Any:
        if type(other) in _PLAIN_NUMBERS and other in (0, 1):
            return self if other else 0.0
        return NotImplemented if isinstance(other, (list, tuple)) else _multiply(self, other)

    __radd__ = __add__
    __rmul__ = __mul__
    __sub__ = _operator(ca.OP_SUB, "sub")
    __rsub__ = _operator(ca.OP_SUB, "sub", reflected=True)
    __truediv__ = _operator(ca.OP_DIV, "truediv")
    __rtruediv__ = _operator(ca.OP_DIV, "truediv", reflected=True)
    __pow__ = _operator(ca.OP_POW, "pow")
    __rpow__ = _operator(ca.OP_POW, "pow", reflected=True)
    __lt__ = _operator(ca.OP_LT, "lt")
    __le__ = _operator(ca.OP_LE, "le")
    __gt__ = _operator(ca.OP_LT, "gt", reflected=True)
    __ge__ = _operator(ca.OP_LE, "ge", reflected=True)
    __eq__ = _operator(ca.OP_EQ, "eq")  # type: ignore[assignment]
    __ne__ = _operator(ca.OP_NE, "ne")  # type: ignore[assignment]
    __and__ = __rand__ = _operator(ca.OP_AND, "and_")
    __or__ = __ror__ = _operator(ca.OP_OR, "or_")
    __xor__ = __rxor__ = _operator(ca.OP_NE, "xor")

    def __floordiv__(self, other: Any) -> Any:
        return _floor(self / other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _floor(other / self)

    def __mod__(self, other: Any) -> Any:
        return self - other * _floor(self / other)

    def __rmod__(self, other: Any) -> Any:
        return other - self * _floor(other / self)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __neg__(self) -> Traced:
        return Traced(_unary(ca.OP_NEG, self.sx))

    def __pos__(self) -> Traced:
        return self

    def __abs__(self) -> Traced:
        return Traced(_unary(ca.OP_FABS, self.sx))

    def __invert__(self) -> Traced:
        return Traced(_unary(ca.OP_NOT, self.sx))

    def __floor__(self) -> Traced:
        return Traced(_unary(ca.OP_FLOOR, self.sx))

    def __ceil__(self) -> Traced:
        return Traced(_unary(ca.OP_CEIL, self.sx))

    def __bool__(self) -> bool:
        if self.sx.is_constant():
            return bool(float(self.sx))
        if _state.session is None:
            raise Untraceable("a traced value has no truth value outside of a trace")
        return _state.session.decide(self.sx)

    __float__ = _refusing("converts a traced value to float")
    __int__ = _refusing("converts a traced value to int")
    __complex__ = _refusing("converts a traced value to complex")
    __index__ = _refusing("uses a traced value as an index or a count")
    __round__ = _refusing("rounds a traced value")
    __trunc__ = _refusing("truncates a traced value to an integer")
    __hash__ = _refusing("uses a traced value as a dictionary key or in a set")  # type: ignore[assignment]

    @property
    def T(self) -> Traced:
        return self

    @property
    def real(self) -> Traced:
        return self

    def conjugate(self) -> Traced:
        return self

    conj = copy = item = squeeze = conjugate

    def astype(self, dtype: Any, **options: Any) -> Traced:
        _check_dtype(dtype)
        return self

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return _apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Callable, kinds: Any, args: tuple, options: dict[str, Any]) -> Any:
        return _apply_function(function, args, options)


numbers.Real.register(Traced)

_SCALAR_METHODS = frozenset({"all", "any", "clip", "dot", "flatten", "max", "mean", "min", "prod", "ravel", "reshape", "sum", "tolist", "transpose"})
_add = _operator(ca.OP_ADD, "add")
_multiply = _operator(ca.OP_MUL, "mul")


class TracedArray(np.ndarray):
    """Object array whose elements are `Traced` or plain numbers."""

    __array_priority__ = 1000.0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return _apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Callable, kinds: Any, args: tuple, options: dict[str, Any]) -> Any:
        return _apply_function(function, args, options)

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(_usable_index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, TracedArray) and _has_traced(index) and np.ndim(value) == 0 and index.shape == self.shape:
            index, value = ..., _where(index, value, self)
        index = _usable_index(index)
        if isinstance(value, (np.ndarray, list, tuple)):
            value = _as_array(value)
            if _addresses_element(self, index):
                if value.size != 1:
                    raise ValueError("setting an array element with a sequence.")
                value = value.item()
        super().__setitem__(index, value)

    def astype(self, dtype: Any, **options: Any) -> Any:
        if not _has_traced(self):
            return _lift(_lower(self).astype(dtype))
        _check_dtype(dtype)
        return self.copy()

    def dot(self, other: Any, out: Any = None) -> Any:
        return _apply_function(np.dot, (self, other), {} if out is None else {"out": out})

    def clip(self, min: Any = None, max: Any = None, **options: Any) -> Any:  # noqa: A002
        return _clip(self, min, max)

    @property
    def real(self) -> TracedArray:
        return self

    @property
    def imag(self) -> TracedArray:
        return _from_flat([0.0] * self.size, self.shape)


def _usable_index(index: Any) -> Any:
    """Turn masks that are object arrays into arrays of bool; traced conditions become branches."""
    if isinstance(index, tuple):
        return tuple(_usable_index(part) for part in index)
    if not isinstance(index, TracedArray):
        return index
    if _has_traced(index) and not all(isinstance(value, (bool, np.bool_)) or _is_condition(value) for value in index.flat):
        _refuse("it uses a traced value as an index")
    if not _has_traced(index):
        return _lower(index)
    return np.array([bool(value) for value in index.flat]).reshape(index.shape)


def _is_condition(value: Any) -> bool:
    return type(value) is Traced and (value.sx.is_constant() or value.sx.op() in _CONDITIONS)


_CONDITIONS = frozenset({ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR})


def _addresses_element(array: np.ndarray, index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return len(parts) == array.ndim and all(isinstance(part, (int, np.integer)) for part in parts)


def traced(sx: ca.SX, shape: tuple[int, ...]) -> Traced | TracedArray:
    """Wrap a flat column of expressions.

    Parameters
    ----------
    sx : casadi.SX
        Column with as many entries as `shape` has elements, in row-major order.
    shape : tuple of int
        ``()`` makes a `Traced`, anything else a `TracedArray`.

    Returns
    -------
    Traced or TracedArray
    """
    elements = [Traced(sx[i]) for i in range(math.prod(shape))]
    return elements[0] if shape == () else _from_flat(elements, shape)


def _from_flat(elements: Sequence[Any], shape: tuple[int, ...]) -> TracedArray:
    return np.fromiter(elements, dtype=object, count=len(elements)).reshape(shape).view(TracedArray)


def _has_traced(value: Any) -> bool:
    kind = type(value)
    if kind is Traced:
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.hasobject and any(type(element) is Traced for element in value.flat)
    return kind in (list, tuple) and any(map(_has_traced, value))


def _has_traced_array(value: Any) -> bool:
    return isinstance(value, TracedArray) or (type(value) in (list, tuple) and any(map(_has_traced_array, value)))


class _NotNumeric(Exception):
    """Something that is no real number stands where a number is expected; the message is a noun phrase."""


def _plain(value: Any) -> Any:
    """Return an element of a traced array: `Traced` and bool as they are, other numbers as float."""
    if type(value) in (Traced, float, bool):
        return value
    if isinstance(value, _COMPLEX):
        raise _NotNumeric("a complex number")
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, _NUMBERS):
        return float(value)
    raise _NotNumeric("None" if value is None else f"an object of type {type(value).__name__}")


def _flatten(value: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return shape and row-major elements of a number, an array or nested lists of them."""
    if isinstance(value, np.ndarray):
        return value.shape, [_plain(element) for element in value.ravel().tolist()] if value.ndim else [_plain(value.item())]
    if not isinstance(value, (list, tuple, range)):
        return (), [_plain(value)]
    parts = [_flatten(part) for part in value]
    shapes = dict.fromkeys(shape for shape, _ in parts)
    if len(shapes) > 1:
        raise _NotNumeric(f"a ragged sequence with parts of the shapes {', '.join(map(str, shapes))}")
    return (len(parts), *next(iter(shapes), ())), list(itertools.chain.from_iterable(elements for _, elements in parts))


def _as_array(value: Any) -> TracedArray:
    if type(value) is TracedArray:
        return value
    try:
        shape, elements = _flatten(value)
    except _NotNumeric as error:
        if "complex" in str(error):
            _refuse("it mixes complex numbers with traced values")
        raise ValueError(f"setting an array element with a sequence: found {error}") from None
    return _from_flat(elements, shape)


def _unwrap(value: Any) -> Any:
    """Turn object arrays into traced arrays, and those without dimensions into their element."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.view(TracedArray) if value.ndim else value.item()
    if type(value) in (list, tuple):
        return type(value)(map(_unwrap, value))
    return value


def _lower(value: Any) -> Any:
    """Turn traced arrays without traced elements back into ordinary arrays."""
    if isinstance(value, TracedArray) and not _has_traced(value):
        return np.array(value.ravel().tolist(), dtype=None if value.size else float).reshape(value.shape)
    if type(value) in (list, tuple):
        return type(value)(map(_lower, value))
    return value


def _lift(value: Any) -> Any:
    """Turn arrays of floats into traced arrays, so that traced values can be assigned to their elements."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim:
        return value.astype(object).view(TracedArray)
    return _unwrap(value)


def _check_dtype(dtype: Any) -> None:
    """Refuse to convert traced content to anything but floats, which is ignored."""
    if dtype is not None and np.dtype(dtype).kind not in "fO":
        _refuse(f"it converts a traced value to {np.dtype(dtype)}")


def _select_sx(condition: ca.SX, chosen: ca.SX, other: ca.SX) -> ca.SX:
    """Return ``condition ? chosen : other``; NaN in the part not taken is masked, also in the derivatives (CasADi 3.8, both modes)."""
    if ca.is_equal(chosen, other, 2):
        return chosen
    kept = _binary(ca.OP_IF_ELSE_ZERO, condition, chosen)
    return _binary(ca.OP_ADD, kept, _binary(ca.OP_IF_ELSE_ZERO, _unary(ca.OP_NOT, condition), other))


def _select(condition: Any, chosen: Any, other: Any) -> Any:
    if type(condition) is not Traced:
        return chosen if condition else other
    if type(chosen) is not Traced and type(other) is not Traced and chosen == other:
        return chosen
    return Traced(_select_sx(condition.sx, _sx(chosen), _sx(other)))


_select_elements = np.frompyfunc(_select, 3, 1)


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        _refuse("it asks np.where for the positions of traced conditions")
    return _unwrap(_select_elements(*(_as_array(part).view(np.ndarray) for part in (condition, *choices))))


def _record_unary(op: int) -> Callable[[Traced], Traced]:
    return lambda x: Traced(_unary(op, x.sx))


def _record_binary(op: int) -> Callable[[Any, Any], Traced]:
    return lambda x, y: Traced(_binary(op, _sx(x), _sx(y)))


def _real_or(recorded: Callable, real: Callable) -> Callable:
    """Use `recorded` if an argument is traced, `real` otherwise."""

    def function(*args: Any) -> Any:
        return recorded(*args) if any(type(argument) is Traced for argument in args) else real(*args)

    return function


_sqrt = _record_unary(ca.OP_SQRT)
_exp = _record_unary(ca.OP_EXP)
_log = _record_unary(ca.OP_LOG)
_log1p = _record_unary(ca.OP_LOG1P)
_sign = _record_unary(ca.OP_SIGN)
_fmax = _record_binary(ca.OP_FMAX)
_fmin = _record_binary(ca.OP_FMIN)
_floor = _real_or(_record_unary(ca.OP_FLOOR), np.floor)
_larger = _real_or(_fmax, max)
_smaller = _real_or(_fmin, min)


def _logaddexp(x: Any, y: Any) -> Any:
    return _fmax(x, y) + _log1p(_exp(-abs(x - y)))


def _heaviside(x: Any, at_zero: Any) -> Any:
    return _select(x == 0, at_zero, _select(x > 0, 1.0, 0.0))


def _sinc(x: Traced) -> Any:
    angle = _select(x == 0, 1.0, math.pi * x)
    return _select(x == 0, 1.0, Traced(_unary(ca.OP_SIN, _sx(angle))) / angle)


def _truncate(x: Traced) -> Any:
    return _sign(x) * _floor(abs(x))


_SAME_NAME = {
    name: _record_unary(getattr(ca, f"OP_{op}"))
    for name, op in {
        **{
            name: name.upper()
            for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "exp", "expm1", "log", "log1p", "floor", "ceil", "sign")
        },
        **{f"arc{name}": f"A{name.upper()}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    }.items()
}

# What a ufunc does to scalars of which at least one is traced.
_SCALAR_RULES: dict[str, Callable] = {
    **_SAME_NAME,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "divmod": divmod,
    "power": operator.pow,
    "float_power": operator.pow,
    "negative": operator.neg,
    "positive": operator.pos,
    "absolute": abs,
    "fabs": abs,
    "conjugate": operator.pos,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "logical_and": _record_binary(ca.OP_AND),
    "logical_or": _record_binary(ca.OP_OR),
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
    "arctan2": _record_binary(ca.OP_ATAN2),
    "hypot": _record_binary(ca.OP_HYPOT),
    "fmod": _record_binary(ca.OP_FMOD),
    "copysign": _record_binary(ca.OP_COPYSIGN),
    "square": lambda x: x**2,
    "reciprocal": lambda x: 1.0 / x,
    "exp2": lambda x: 2.0**x,
    "log2": lambda x: _log(x) / math.log(2.0),
    "log10": lambda x: _log(x) / math.log(10.0),
    "cbrt": lambda x: _sign(x) * abs(x) ** (1.0 / 3.0),
    "deg2rad": lambda x: x * (math.pi / 180.0),
    "radians": lambda x: x * (math.pi / 180.0),
    "rad2deg": lambda x: x * (180.0 / math.pi),
    "degrees": lambda x: x * (180.0 / math.pi),
    "heaviside": _heaviside,
    "logaddexp": _logaddexp,
    "trunc": _truncate,
    "signbit": lambda x: x < 0,
}

_SAFE_ON_FLOATS = frozenset({"add", "subtract", "multiply", "negative", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})
_IDENTITIES = {"add": 0.0, "multiply": 1.0, "logical_and": True, "logical_or": False}


def _elementwise(ufunc: np.ufunc, rule: Callable) -> Any:
    """Return a ufunc for object arrays that applies the rule to traced elements and the original ufunc to the others."""
    name = ufunc.__name__
    scalar = rule if name in _SAFE_ON_FLOATS else _real_or(rule, lambda *args: _lower_result(ufunc(*args)))
    options = {"identity": _IDENTITIES[name]} if name in _IDENTITIES else {}
    return np.frompyfunc(scalar, ufunc.nin, ufunc.nout, **options)


def _lower_result(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, tuple) else _plain(value)


_UFUNC_RULES = {getattr(np, name): rule for name, rule in _SCALAR_RULES.items()}
_ELEMENTWISE = {ufunc: _elementwise(ufunc, rule) for ufunc, rule in _UFUNC_RULES.items()}


def _apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple, options: dict[str, Any]) -> Any:
    if not _has_traced(inputs) and method != "at" and not _has_traced_array(options.get("out")):
        result = getattr(ufunc, method)(*_lower(inputs), **{name: _lower(value) for name, value in options.items()})
        return result if options.get("out") else _lift(result)
    if method == "__call__" and not options and ufunc in _UFUNC_RULES and not any(isinstance(value, (np.ndarray, list, tuple)) for value in inputs):
        return _apply_to_scalars(ufunc, inputs)
    options = _object_options(options)
    arrays = [value if k == 1 and method in ("at", "reduceat") else _object_array(value) for k, value in enumerate(inputs)]
    if any(array is None for array in arrays):
        return NotImplemented
    if ufunc.signature is not None:
        result = _apply_gufunc(ufunc, arrays, options)
    elif ufunc not in _ELEMENTWISE and all(set(loop) <= set("O->") for loop in ufunc.types):
        result = getattr(ufunc, method)(*arrays, **options)
    elif ufunc not in _ELEMENTWISE:
        _refuse(f"it calls np.{ufunc.__name__}, which has no traced version")
    elif method == "reduce":
        result = _reduce(_ELEMENTWISE[ufunc], arrays[0], **options)
    else:
        result = getattr(_ELEMENTWISE[ufunc], method)(*arrays, **options)
    return _unwrap(result)


def _apply_to_scalars(ufunc: np.ufunc, inputs: tuple) -> Any:
    try:
        return _UFUNC_RULES[ufunc](*map(_plain, inputs))
    except _NotNumeric as error:
        if "complex" in str(error):
            _refuse("it mixes complex numbers with traced values")
        return NotImplemented


def _object_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a ufunc as they apply to object arrays."""
    kept = {name: value for name, value in options.items() if name not in ("dtype", "casting", "subok", "order", "signature")}
    if _has_traced(kept.get("where")):
        _refuse("it passes traced conditions as the argument `where`")
    if options.get("dtype") is not None and np.dtype(options["dtype"]).kind != "b":
        _check_dtype(options["dtype"])
    if kept.pop("out", None) is not None:
        outputs = options["out"] if isinstance(options["out"], tuple) else (options["out"],)
        if any(output is not None and output.dtype != object for output in outputs):
            _refuse("it writes traced values into an array of plain numbers that was not created by the function itself")
        kept["out"] = tuple(None if output is None else output.view(np.ndarray) for output in outputs)
    return kept


def _object_array(value: Any) -> np.ndarray | None:
    if isinstance(value, (np.ndarray, list, tuple)):
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            return value.astype(object)
        return _as_array(value).view(np.ndarray)
    if isinstance(value, _COMPLEX):
        _refuse("it mixes complex numbers with traced values")
    return np.fromiter([value], dtype=object, count=1).reshape(()) if isinstance(value, _NUMBERS) else None


def _apply_gufunc(ufunc: np.ufunc, arrays: list[np.ndarray], options: dict[str, Any]) -> Any:
    if all(array.size for array in arrays):
        return ufunc(*arrays, **options)
    return ufunc(*(np.zeros(array.shape) for array in arrays)).astype(object)


def _reduce(elementwise: Any, array: np.ndarray, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """Reduce over one or several axes by folding them into one: a ufunc without identity reduces over one axis only."""
    axes = range(array.ndim) if axis is None else np.atleast_1d(axis) % max(array.ndim, 1)
    others = [k for k in range(array.ndim) if k not in axes]
    folded = array.transpose(*others, *axes).reshape(*(array.shape[k] for k in others), math.prod(array.shape[k] for k in axes))
    if options.get("where", True) is not True:
        _refuse("it reduces with the argument `where`")
    initial = {"initial": options["initial"]} if options.get("initial", np._NoValue) not in (np._NoValue, None) else {}
    result = elementwise.reduce(folded, axis=-1, **initial)
    if keepdims:
        result = _as_array(result).reshape([1 if k in axes else size for k, size in enumerate(array.shape)])
    if out is None:
        return result
    out[0][...] = result
    return out[0]


def _apply_function(function: Callable, args: tuple, options: dict[str, Any]) -> Any:
    """Call a NumPy function whose arguments may be traced."""
    if _has_traced(args) or any(map(_has_traced, options.values())):
        rule = _FUNCTION_RULES.get(function)
        return rule(*args, **options) if rule is not None else _call_with_arrays(function, args, options)
    if function in _SHARES_MEMORY and _has_traced_array(args):
        rule = _FUNCTION_RULES.get(function)
        return rule(*args, **options) if rule is not None else _call_with_arrays(function, args, options)
    if options.get("out") is not None:
        return _call_with_arrays(function, args, options)
    result = _REAL_RULES.get(function, function)(*_lower(args), **{name: _lower(value) for name, value in options.items()})
    return result if function in _STAYS_REAL else _lift(result)


def _call_with_arrays(function: Callable, args: tuple, options: dict[str, Any]) -> Any:
    """Run NumPy's own implementation on object arrays."""
    if "dtype" in options:
        _check_dtype(options.pop("dtype"))
    convert = _nested_parts if function is np.block else _parts if function in _TAKES_SEQUENCES else _argument
    args = tuple(map(convert, args))
    options = {name: convert(value) for name, value in options.items()}
    if hasattr(function, "_implementation"):
        return _unwrap(np.ndarray.__array_function__(_from_flat([], (0,)), function, (TracedArray,), args, options))
    return _unwrap(function(*args, **options))


def _argument(value: Any) -> Any:
    return _as_array(value) if _has_traced(value) else value


def _parts(value: Any) -> Any:
    return type(value)(map(_argument, value)) if type(value) in (list, tuple) else _argument(value)


def _nested_parts(value: Any) -> Any:
    return type(value)(map(_nested_parts, value)) if type(value) in (list, tuple) else _argument(value)


def _array(value: Any, dtype: Any = None, *, copy: bool | None = True, ndmin: int = 0, **options: Any) -> Any:
    if not _has_traced(value) and dtype is not None and np.dtype(dtype).kind not in "fO":
        return np.array(_lower(value), dtype=dtype, ndmin=ndmin)
    _check_dtype(dtype)
    array = _as_array(value)
    array = array.copy() if copy and array is value else array
    return array.reshape((1,) * (ndmin - array.ndim) + array.shape) if ndmin > array.ndim else array


def _asarray(value: Any, dtype: Any = None, *options: Any, **keywords: Any) -> Any:
    return _array(value, dtype, copy=False)


def _copy(value: Any, *options: Any, **keywords: Any) -> TracedArray:
    return _as_array(value).copy()


def _full(shape: Any, fill_value: Any, dtype: Any = None, **options: Any) -> TracedArray:
    _check_dtype(dtype)
    array = np.empty(shape, dtype=object).view(TracedArray)
    array[...] = fill_value
    return array


def _full_like(array: Any, fill_value: Any, dtype: Any = None, *options: Any, shape: Any = None, **keywords: Any) -> Any:
    shape = np.shape(array) if shape is None else shape
    return _apply_function(np.full, (shape, fill_value), {"dtype": None if dtype is object or dtype == np.dtype(object) else dtype})


def _zeros_like(array: Any, dtype: Any = None, *options: Any, **keywords: Any) -> Any:
    return _full_like(array, 0.0, dtype, **keywords)


def _ones_like(array: Any, dtype: Any = None, *options: Any, **keywords: Any) -> Any:
    return _full_like(array, 1.0, dtype, **keywords)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **options: Any) -> Any:
    low, high = options.get("min", a_min), options.get("max", a_max)
    result = a if low is None else np.maximum(a, low)
    result = result if high is None else np.minimum(result, high)
    if out is None:
        return result
    out[...] = result
    return out


def _is_close(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    a, b = (_as_array(value) if isinstance(value, (list, tuple)) else value for value in (a, b))
    return abs(a - b) <= atol + rtol * abs(b)


def _all_close(*args: Any, **options: Any) -> Any:
    return np.all(_is_close(*args, **options))


def _polyval(p: Any, x: Any) -> Any:
    x = x if type(x) is Traced else _as_array(x)
    result = 0.0 * x
    for coefficient in _as_array(p):
        result = result * x + coefficient
    return result


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if _has_traced(xp) or period is not None:
        _refuse("it calls np.interp with a traced table of abscissae or a period")
    nodes, values = _lower(_as_array(xp)).tolist(), list(_as_array(fp))
    pieces = np.frompyfunc(lambda at: _piecewise_linear(at, nodes, values, left, right), 1, 1)
    return _unwrap(pieces(_as_array(x).view(np.ndarray)))


def _piecewise_linear(x: Any, nodes: list[float], values: list[Any], left: Any, right: Any) -> Any:
    result = _select(x <= nodes[-1], values[-1], values[-1] if right is None else right)
    for k in reversed(range(len(nodes) - 1)):
        if nodes[k + 1] > nodes[k]:
            slope = (values[k + 1] - values[k]) / (nodes[k + 1] - nodes[k])
            result = _select(x < nodes[k + 1], values[k] + slope * (x - nodes[k]), result)
    return _select(x < nodes[0], values[0] if left is None else left, result)


def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, **options: Any) -> Any:
    if options.get("retstep") or options.get("axis"):
        _refuse("it calls np.linspace with traced ends and options")
    fractions = np.linspace(0.0, 1.0, num, endpoint=endpoint).reshape(-1, *(1,) * max(np.ndim(start), np.ndim(stop)))
    return start + fractions * (stop - start)


def _choose_first(conditions: Sequence[Any], choices: Sequence[Any], default: Any = 0.0) -> Any:
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = _where(condition, choice, result)
    return result


def _piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **options: Any) -> Any:
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) or np.ndim(condlist) > np.ndim(x) else [condlist]
    choices = [function(x, *args, **options) if callable(function) else function for function in funclist]
    default = choices.pop() if len(choices) > len(conditions) else 0.0
    return functools.reduce(lambda result, case: _where(case[0], case[1], result), zip(conditions, choices, strict=True), default)


def _cross(a: Any, b: Any, *axes: Any, **options: Any) -> Any:
    first, second = _as_array(a), _as_array(b)
    if axes or options or not first.shape[-1:] == second.shape[-1:] == (3,):
        if not axes and not options and first.shape[-1:] == second.shape[-1:] == (2,):
            return first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0]
        return _call_with_arrays(np.cross, (first, second, *axes), options)
    (a1, a2, a3), (b1, b2, b3) = np.moveaxis(first, -1, 0), np.moveaxis(second, -1, 0)
    return np.stack([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1], axis=-1)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002
    x = _as_array(x)
    if axis is None and ord is None:
        return _root_of_squares(x, None, keepdims)
    axes = tuple(range(x.ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    return _vector_norm(x, ord, axes[0], keepdims)


def _root_of_squares(x: TracedArray, axis: Any, keepdims: bool) -> Any:
    return np.sqrt(np.sum(x**2, axis=axis, keepdims=keepdims))


def _vector_norm(x: TracedArray, order: Any, axis: int, keepdims: bool) -> Any:
    if order in (None, 2):
        return _root_of_squares(x, axis, keepdims)
    if order in (np.inf, -np.inf):
        return (np.max if order > 0 else np.min)(abs(x), axis=axis, keepdims=keepdims)
    if not order:
        return np.sum(_where(x != 0, 1.0, 0.0), axis=axis, keepdims=keepdims)
    total = np.sum(abs(x) ** order if order != 1 else abs(x), axis=axis, keepdims=keepdims)
    return total if order == 1 else total ** (1.0 / order)


def _matrix_norm(x: TracedArray, order: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    if order in (None, "fro"):
        return _root_of_squares(x, axes, keepdims)
    if order not in (1, -1, np.inf, -np.inf):
        _refuse(f"it asks for the matrix norm of order {order}")
    summed, other = axes if abs(order) == 1 else axes[::-1]
    sums = np.sum(abs(x), axis=summed, keepdims=True)
    result = (np.max if order > 0 else np.min)(sums, axis=other, keepdims=True)
    return result if keepdims else np.squeeze(result, axis=axes)


def _column(elements: Sequence[Any]) -> ca.SX:
    return ca.densify(ca.vertcat(*map(_sx, elements))) if len(elements) else ca.SX(0, 1)


def _matrix(array: np.ndarray) -> ca.SX:
    rows, columns = array.shape
    return ca.sparsify(ca.reshape(_column(list(array.flat)), columns, rows).T)


def _square_matrices(function: Callable) -> Callable:
    """Apply a function of one matrix to a stack of matrices."""

    def rule(a: Any) -> Any:
        array = _as_array(a)
        if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
            raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
        if array.ndim == 2:
            return function(array)
        return _as_array([rule(part) for part in array])

    return rule


@_square_matrices
def _inv(a: TracedArray) -> Any:
    return _solve(a, np.eye(len(a)))


@_square_matrices
def _det(a: TracedArray) -> Any:
    if len(a) > _LARGEST_DETERMINANT:
        _refuse(f"it takes the determinant of a matrix with {len(a)} rows, more than {_LARGEST_DETERMINANT}")
    return Traced(ca.densify(ca.det(_matrix(a))))


def _solve(a: Any, b: Any) -> Any:
    a, b = _as_array(a), _as_array(b)
    if a.ndim > 2:
        stack = [b] * len(a) if b.ndim == 1 else np.broadcast_to(b, a.shape[:-1] + b.shape[-1:])
        return _as_array([_solve(matrix, side) for matrix, side in zip(a, stack, strict=True)])
    if a.shape != (len(a), len(b)):
        raise np.linalg.LinAlgError(f"solve: the matrix has shape {a.shape}, the right-hand side {b.shape}")
    if not _has_traced(a):
        return np.linalg.inv(_lower(a)) @ b
    solution = _solve_symbolically(_matrix(a), _matrix(b.reshape(len(b), -1)))
    return traced(ca.vec(ca.densify(solution).T), b.shape)


def _solve_symbolically(matrix: ca.SX, right_hand_side: ca.SX) -> ca.SX:
    try:
        return ca.solve(matrix, right_hand_side)
    except RuntimeError:
        _refuse("it solves linear equations whose matrix is singular whatever the values are")


def _is_scalar(value: Any) -> bool:
    return type(value) is Traced or np.isscalar(value)


def _sinc_elements(x: Any) -> Any:
    return _unwrap(np.frompyfunc(_real_or(_sinc, np.sinc), 1, 1)(_as_array(x).view(np.ndarray)))


def _refuse_function(name: str) -> Callable[..., NoReturn]:
    def rule(*args: Any, **options: Any) -> NoReturn:
        _refuse(f"it calls np.{name}, which has no traced version")

    return rule


_FUNCTION_RULES: dict[Callable, Callable] = {
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
    np.clip: _clip,
    np.isclose: _is_close,
    np.allclose: _all_close,
    np.polyval: _polyval,
    np.interp: _interp,
    np.linspace: _linspace,
    np.select: _choose_first,
    np.piecewise: _piecewise,
    np.cross: _cross,
    np.sinc: _sinc_elements,
    np.real: lambda value: value,
    np.imag: lambda value: 0.0 * value,
    np.isscalar: _is_scalar,
    np.linalg.norm: _norm,
    np.linalg.solve: _solve,
    np.linalg.inv: _inv,
    np.linalg.det: _det,
    **{
        getattr(np.linalg, name): _refuse_function(f"linalg.{name}")
        for name in ("cholesky", "cond", "eig", "eigh", "eigvals", "eigvalsh", "lstsq", "matrix_rank", "pinv", "qr", "slogdet", "svd")
    },
    **{getattr(np, name): _refuse_function(name) for name in ("round", "around", "nan_to_num", "unique", "histogram", "searchsorted", "digitize")},
}
_REAL_RULES: dict[Callable, Callable] = {np.empty: np.zeros, np.empty_like: np.zeros_like}
_STAYS_REAL = frozenset({np.linspace, np.arange, np.logspace, np.geomspace})
# Functions that write to an argument or may return a view of it: a copy of the argument would not do.
_SHARES_MEMORY = frozenset(
    getattr(np, name)
    for name in (
        *("fill_diagonal", "copyto", "put", "place", "putmask", "put_along_axis"),
        *("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "atleast_1d", "atleast_2d", "atleast_3d"),
        *("reshape", "ravel", "transpose", "swapaxes", "moveaxis", "rollaxis", "squeeze", "expand_dims", "diagonal", "diag", "real"),
        *("split", "array_split", "hsplit", "vsplit", "dsplit", "flip", "fliplr", "flipud", "rot90", "broadcast_to", "broadcast_arrays"),
    )
)
_TAKES_SEQUENCES = frozenset({np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.linalg.multi_dot})


class _TracingUfunc:
    """A ufunc that also takes lists with traced elements."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc

    def __call__(self, *args: Any, **options: Any) -> Any:
        if _has_traced(args):
            args = tuple(value if type(value) is Traced else _argument(value) for value in args)
            return self.ufunc(*args, **options)
        result = self.ufunc(*_lower(args), **options)
        return result if options.get("out") is not None else _lift(result)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ufunc, name)


def _tracing_function(function: Callable) -> Callable:
    def version(*args: Any, **options: Any) -> Any:
        return _apply_function(function, args, options)

    return functools.update_wrapper(version, function, assigned=("__name__", "__doc__"), updated=())


class _Float64Type(type):
    """Makes `_Float64` pass for `numpy.float64`."""

    def __call__(cls, value: Any = 0.0) -> Any:
        if _has_traced(value):
            return value if type(value) is Traced else _as_array(value)
        return np.float64(value)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (Traced, np.float64))


class _Float64(metaclass=_Float64Type):
    dtype = np.dtype(np.float64)


def _fsum(values: Any) -> Any:
    return functools.reduce(operator.add, values, 0.0)


def _hypot(*coordinates: Any) -> Any:
    if len(coordinates) == 2:
        return _SCALAR_RULES["hypot"](*coordinates)
    return _sqrt(_fsum(x**2 for x in coordinates))


def _math_log(x: Any, base: Any = None) -> Any:
    logarithm = _real_or(_log, math.log)
    return logarithm(x) if base is None else logarithm(x) / logarithm(base)


def _math_isclose(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
    return abs(a - b) <= _larger(rel_tol * _larger(abs(a), abs(b)), abs_tol)


_MATH_NAMES = {f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")} | {"atan2": "arctan2"}
_MATH_RULES: dict[str, Callable] = {
    **{name: _SCALAR_RULES[name] for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "exp", "expm1", "exp2", "log1p", "log2", "log10")},
    **{name: _SCALAR_RULES[name] for name in ("floor", "ceil", "cbrt", "fabs", "fmod", "copysign", "degrees", "radians")},
    **{name: _SCALAR_RULES[rule] for name, rule in _MATH_NAMES.items()},
    "pow": operator.pow,
    "log": _math_log,
    "hypot": _hypot,
    "dist": lambda p, q: _hypot(*(x - y for x, y in zip(p, q, strict=True))),
    "fsum": _fsum,
    "prod": lambda values, *, start=1.0: functools.reduce(operator.mul, values, start),
    "sumprod": lambda p, q: _fsum(x * y for x, y in zip(p, q, strict=True)),
    "fma": lambda x, y, z: x * y + z,
    "isclose": _math_isclose,
    "erf": _record_unary(ca.OP_ERF),
    "erfc": lambda x: 1.0 - Traced(_unary(ca.OP_ERF, x.sx)),
}


def _tracing_math(name: str, original: Callable) -> Callable:
    rule = _MATH_RULES[name]

    def version(*args: Any, **options: Any) -> Any:
        args = tuple(value.item() if isinstance(value, TracedArray) and value.ndim == 0 else value for value in args)
        return rule(*args, **options) if _has_traced(args) else original(*args, **options)

    return functools.update_wrapper(version, original, assigned=("__name__", "__doc__"), updated=())


def _tracing_extreme(original: Callable, pick: Callable) -> Callable:
    """Return a version of the builtin max or min that needs no branches."""

    def version(*args: Any, **options: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else args
        if options or not any(type(value) is Traced for value in values) or not all(isinstance(value, (Traced, *_NUMBERS)) for value in values):
            return original(values, **options) if len(args) == 1 else original(*args, **options)
        return functools.reduce(pick, values)

    return version


def _tracing_isinstance(instance: Any, kinds: Any) -> bool:
    return isinstance(np.float64() if type(instance) is Traced else instance, kinds)


_BUILTIN_VERSIONS = {"isinstance": _tracing_isinstance, "max": _tracing_extreme(max, _larger), "min": _tracing_extreme(min, _smaller)}


def _versions_of(module: types.ModuleType) -> dict[str, Any]:
    """Return the tracing versions of the functions of numpy or numpy.linalg by name."""
    kinds = (types.FunctionType, types.BuiltinFunctionType, type(np.sum))
    versions: dict[str, Any] = {}
    for name, value in vars(module).items():
        if isinstance(value, np.ufunc):
            versions[name] = _TracingUfunc(value)
        elif isinstance(value, kinds) and not name.startswith("_"):
            versions[name] = _tracing_function(value)
    return versions


def _look_alike(module: types.ModuleType, versions: dict[str, Any]) -> types.ModuleType:
    mirror = types.ModuleType(module.__name__, module.__doc__)
    vars(mirror).update(versions, __getattr__=functools.partial(getattr, module))
    return mirror


_MATH_VERSIONS = {name: _tracing_math(name, getattr(math, name)) for name in _MATH_RULES if hasattr(math, name)}
_LINALG_VERSIONS = _versions_of(np.linalg)
_NUMPY_VERSIONS = _versions_of(np) | {"float64": _Float64, "double": _Float64}
_LINALG = _look_alike(np.linalg, _LINALG_VERSIONS)
_LOOK_ALIKES = {math: _look_alike(math, _MATH_VERSIONS), np.linalg: _LINALG, np: _look_alike(np, _NUMPY_VERSIONS | {"linalg": _LINALG})}
# Originals are kept beside their versions, so that no other object can take over their id.
_VERSIONS = {
    id(original := getattr(module, name)): (original, version)
    for module, versions in ((np, _NUMPY_VERSIONS), (np.linalg, _LINALG_VERSIONS), (math, _MATH_VERSIONS))
    for name, version in versions.items()
} | {id(getattr(builtins, name)): (getattr(builtins, name), version) for name, version in _BUILTIN_VERSIONS.items()}
_CREATION = (
    *("zeros", "ones", "empty", "full", "eye", "identity", "diag", "zeros_like", "ones_like", "empty_like", "full_like"),
    *("array", "asarray", "asanyarray", "ascontiguousarray", "copy", "isscalar"),
)


def _in_user_code_only(original: Callable, version: Callable) -> Callable:
    def patched(*args: Any, **options: Any) -> Any:
        if _state.session is None or _is_library_frame(sys._getframe(1)):
            return original(*args, **options)
        return version(*args, **options)

    return functools.update_wrapper(patched, original, assigned=("__name__", "__doc__", "__module__"), updated=())


_PATCHES = [(np, name, _in_user_code_only(getattr(np, name), _NUMPY_VERSIONS[name])) for name in _CREATION]
_PATCHES += [(math, name, _in_user_code_only(getattr(math, name), version)) for name, version in _MATH_VERSIONS.items()]


@contextlib.contextmanager
def _patched() -> Iterator[None]:
    with _patch_lock:
        originals = [(module, name, getattr(module, name)) for module, name, _ in _PATCHES]
        try:
            for module, name, patched in _PATCHES:
                setattr(module, name, patched)
            yield
        finally:
            for module, name, original in originals:
                setattr(module, name, original)


class _ModuleView(types.ModuleType):
    """A user's module whose functions are copies for tracing."""

    def __init__(self, module: types.ModuleType, copies: _Copies) -> None:
        super().__init__(module.__name__)
        vars(self)["_original"] = module
        vars(self)["_copies"] = copies

    def __getattr__(self, name: str) -> Any:
        return self._copies.replace(getattr(self._original, name))


class _NoSubclassHook:
    """Keeps the twin of a class from being announced to the class's own ``__init_subclass__``."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        pass


_NOT_TWINNED = frozenset(
    {
        "__init__",
        "__new__",
        "__init_subclass__",
        "__class_getitem__",
        "__getattribute__",
        "__getattr__",
        "__setattr__",
        "__delattr__",
        "__eq__",
        "__hash__",
    }
)


class _Copies:
    """Replaces what a function refers to by versions for tracing; one instance serves one run."""

    def __init__(self) -> None:
        self._replacements: dict[int, tuple[Any, Any]] = {}
        self._functions: dict[int, tuple[types.FunctionType, types.FunctionType]] = {}

    def replace(self, value: Any, depth: int = 0) -> Any:
        """Return the version of any object for tracing: itself where nothing needs to change."""
        if value is None or type(value) in (float, int, str, bool, Traced, TracedArray):
            return value
        known = _VERSIONS.get(id(value)) or self._replacements.get(id(value))
        if known is not None:
            return known[1]
        replacement = self._make(value, depth)
        self._replacements[id(value)] = (value, replacement)
        self._replacements[id(replacement)] = (replacement, replacement)
        return replacement

    def _make(self, value: Any, depth: int) -> Any:
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, types.FunctionType):
            return value if _is_library(value.__globals__.get("__name__")) else self._deferred(value)
        if isinstance(value, types.MethodType):
            return types.MethodType(self.replace(value.__func__), self.replace(value.__self__))
        if isinstance(value, functools.partial):
            return functools.partial(self.replace(value.func), *map(self.replace, value.args), **self._values(value.keywords))
        if isinstance(value, functools._lru_cache_wrapper):
            return self.replace(value.__wrapped__)
        if _is_dispatcher(value):
            return self.replace(value.py_func)
        if isinstance(value, np.ndarray):
            return _lift(value) if value.size <= _LARGEST_CONSTANT_ARRAY else value
        if type(value) in (list, tuple, dict):
            return self._container(value, depth) if depth < _DEEPEST_CONTAINER and len(value) <= _LARGEST_CONSTANT_ARRAY else value
        return self._twin(value)

    def _values(self, mapping: Mapping[str, Any] | None) -> dict[str, Any]:
        return {name: self.replace(value) for name, value in (mapping or {}).items()}

    def _module(self, module: types.ModuleType) -> types.ModuleType:
        if module in _LOOK_ALIKES:
            return _LOOK_ALIKES[module]
        return module if _is_library(module.__name__) or isinstance(module, _ModuleView) else _ModuleView(module, self)

    def _container(self, container: Any, depth: int) -> Any:
        if type(container) is dict:
            return {key: self.replace(value, depth + 1) for key, value in container.items()}
        return type(container)(self.replace(value, depth + 1) for value in container)

    def _deferred(self, function: types.FunctionType) -> Callable:
        """Return a function that makes the copy when it is called."""

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            return self._copy(function)(*args, **options)

        return call

    def _copy(self, function: types.FunctionType) -> types.FunctionType:
        if id(function) not in self._functions:
            namespace = {name: function.__globals__[name] for name in ("__builtins__", "__name__") if name in function.__globals__}
            cells = tuple(map(self._cell, function.__closure__ or ()))
            defaults = tuple(map(self.replace, function.__defaults__ or ()))
            copy = types.FunctionType(function.__code__, namespace, function.__name__, defaults, cells)
            copy.__kwdefaults__ = self._values(function.__kwdefaults__)
            copy.__dict__.update(function.__dict__)
            self._functions[id(function)] = (function, copy)
            for name in _global_names(function.__code__):
                if name in function.__globals__:
                    namespace[name] = self.replace(function.__globals__[name])
                elif name in _BUILTIN_VERSIONS:
                    namespace[name] = _BUILTIN_VERSIONS[name]
        return self._functions[id(function)][1]

    def _cell(self, cell: types.CellType) -> types.CellType:
        try:
            return types.CellType(self.replace(cell.cell_contents))
        except ValueError:
            return cell

    def _twin(self, value: Any) -> Any:
        """Return an instance of a subclass whose methods are copies, with a shallow copy of the attributes."""
        kind = type(value)
        if _is_library(kind.__module__) or type(kind) not in (type, abc.ABCMeta) or kind.__getattribute__ is not object.__getattribute__:
            return value
        try:
            twin = object.__new__(type(kind)(kind.__name__, (_NoSubclassHook, kind), self._twin_members(kind)))
        except TypeError:
            return value
        for name, attribute in _attributes(value).items():
            object.__setattr__(twin, name, attribute)
        return twin

    def _twin_members(self, kind: type) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for base in reversed(kind.__mro__):
            if not _is_library(base.__module__):
                for name, member in vars(base).items():
                    members.pop(name, None)
                    members.update(self._twin_member(name, member))

        def read(twin: Any, name: str) -> Any:
            value = object.__getattribute__(twin, name)
            return value if name.startswith("__") or isinstance(value, types.MethodType) else self.replace(value)

        return members | {"__getattribute__": read, "__module__": kind.__module__, "__del__": lambda twin: None}

    def _twin_member(self, name: str, member: Any) -> dict[str, Any]:
        if name in _NOT_TWINNED:
            return {}
        if isinstance(member, types.FunctionType):
            return {name: self.replace(member)}
        if isinstance(member, property):
            return {name: property(*map(self.replace, (member.fget, member.fset, member.fdel)))}
        if isinstance(member, staticmethod):
            return {name: staticmethod(self.replace(member.__func__))}
        return {}


def _is_dispatcher(value: Any) -> bool:
    """Whether the value is a function compiled by Numba."""
    return type(value).__module__.partition(".")[0] == "numba" and hasattr(value, "py_func")


def _global_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


def _attributes(value: Any) -> dict[str, Any]:
    slots = itertools.chain.from_iterable(_slot_names(base) for base in type(value).__mro__)
    attributes = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return attributes | getattr(value, "__dict__", {})


def _slot_names(kind: type) -> list[str]:
    return [name for name, member in vars(kind).items() if isinstance(member, types.MemberDescriptorType)]


class _Session:
    """One trace: the decisions on the path it is on, and what went wrong."""

    def __init__(self, function: Callable) -> None:
        self.refusal: Untraceable | None = None
        self.script: list[bool] = []
        self.conditions: list[ca.SX] = []
        self.paths = 0
        self.name = getattr(function, "__name__", type(function).__name__)
        self.filename = _source_file(function)

    def decide(self, condition: ca.SX) -> bool:
        """Answer a condition as the script says, with True where it says nothing yet; the same question gets the same answer."""
        for answer, earlier in zip(self.script, self.conditions[:_REMEMBERED_CONDITIONS], strict=False):
            if ca.is_equal(condition, earlier, 6):
                return answer
        if len(self.conditions) >= MAX_DECISIONS:
            _refuse(f"it takes more than {MAX_DECISIONS} decisions on traced values in one run, perhaps in a loop that iterates until convergence")
        if len(self.script) == len(self.conditions):
            self.script.append(True)
        self.conditions.append(condition)
        return self.script[len(self.conditions) - 1]

    def run(self, call: Callable[[_Copies], Any], script: list[bool]) -> tuple[ca.SX, tuple[int, ...]]:
        """Run fresh copies of the function along the path that begins with the script: nothing stored on one path shows up on another."""
        self.paths += 1
        if self.paths > MAX_PATHS:
            raise Untraceable(f"it has more than {MAX_PATHS} branches that depend on traced values")
        self.script, self.conditions = list(script), []
        try:
            value = call(_Copies())
        except Untraceable:
            raise
        except Exception as error:
            self._explain(error)
            raise
        if self.refusal is not None:
            raise self.refusal
        return self._result(value)

    def explore(self, call: Callable[[_Copies], Any], script: list[bool]) -> tuple[ca.SX, tuple[int, ...]]:
        """Run all paths that begin with the script and join them."""
        result = self.run(call, script)
        path, conditions = self.script, self.conditions
        for k in reversed(range(len(script), len(conditions))):
            result = self._join(conditions[k], result, self.explore(call, [*path[:k], False]))
        return result

    def _join(self, condition: ca.SX, chosen: tuple, other: tuple) -> tuple[ca.SX, tuple[int, ...]]:
        if chosen[1] != other[1]:
            raise TypeError(f"{self.name} returns a value of shape {chosen[1]} on one branch and of shape {other[1]} on another")
        pairs = [_select_sx(condition, chosen[0][i], other[0][i]) for i in range(chosen[0].numel())]
        return (ca.densify(ca.vertcat(*pairs)) if pairs else chosen[0]), chosen[1]

    def _result(self, value: Any) -> tuple[ca.SX, tuple[int, ...]]:
        try:
            shape, elements = _flatten(value)
        except _NotNumeric as error:
            part = f"a {type(value).__name__} with " if isinstance(value, (list, tuple, np.ndarray)) and "ragged" not in str(error) else ""
            hint = "; is a return statement missing?" if value is None else ", expected a real number or an array of real numbers"
            raise TypeError(f"{self.name} returned {part}{error}{hint}") from None
        return _column(elements), shape

    def _explain(self, error: Exception) -> None:
        """Raise `Untraceable` in place of an error that would not have come without tracing."""
        if self.refusal is not None:
            raise self.refusal from error
        line = _line_of(error)
        if not _is_raised_by_statement(error) and _comes_from_tracing(error):
            raise Untraceable(f"it does something that traced values do not support: {error}{line}") from error
        if self.conditions:
            raise Untraceable(f"it raises {type(error).__name__} on one of its branches{line}") from error


def _source_file(function: Any) -> str:
    while isinstance(function, (functools.partial, types.MethodType)) or hasattr(function, "py_func"):
        function = getattr(function, "func", None) or getattr(function, "__func__", None) or function.py_func
    code = getattr(function, "__code__", None) or getattr(vars(type(function)).get("__call__"), "__code__", None)
    return code.co_filename if code is not None else ""


def _traceback(error: Exception) -> list[types.TracebackType]:
    entries = []
    entry = error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    return entries


def _line_of(error: Exception) -> str:
    """Return the innermost line of the user's code that the error passed through, as ' (line 12)'."""
    for entry in reversed(_traceback(error)):
        if not _is_library_frame(entry.tb_frame):
            return _describe_line(entry.tb_frame.f_code.co_filename, entry.tb_lineno)
    return ""


def _is_raised_by_statement(error: Exception) -> bool:
    """Whether the user's code raised the error by a raise statement."""
    last = _traceback(error)[-1]
    return not _is_library_frame(last.tb_frame) and last.tb_frame.f_code.co_code[last.tb_lasti] == opcode.opmap["RAISE_VARARGS"]


_ALSO_WRONG_FOR_FLOATS = re.compile(
    r"unsupported operand|not supported between instances|bad operand|object is not|non-iterable|has no len"
    r"|returned NotImplemented|positional argument|unexpected keyword"
)
_CAUSED_BY_TRACING = re.compile(
    r"Traced|dtype\('?O'?\)|\bobject (arrays?|dtype)|dtype object|type object|loop of ufunc|not supported for the input types", re.IGNORECASE
)


def _comes_from_tracing(error: Exception) -> bool:
    if isinstance(error, AttributeError):
        kind = np.ndarray if isinstance(error.obj, TracedArray) else np.float64 if isinstance(error.obj, (Traced, float)) else None
        return kind is not None and hasattr(kind, error.name)
    if type(error).__module__.partition(".")[0] == "numba":
        return True
    message = str(error)
    return isinstance(error, (TypeError, ValueError, NotImplementedError, IndexError)) and bool(
        _CAUSED_BY_TRACING.search(message) and not _ALSO_WRONG_FOR_FLOATS.search(message)
    )


class Namespace:
    """The parameters of a model as attributes and items: ``p.g`` and ``p["g"]``; immutable.

    Parameters
    ----------
    values : Mapping
        Numbers, arrays or traced values by name.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._missing(name), name=name, obj=self)

    def __getitem__(self, name: str) -> Any:
        if name not in vars(self):
            raise KeyError(self._missing(name))
        return vars(self)[name]

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"parameters cannot be changed here: {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"parameters cannot be deleted: {name!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __contains__(self, name: object) -> bool:
        return name in vars(self)

    def __len__(self) -> int:
        return len(vars(self))

    def __repr__(self) -> str:
        return f"Namespace({vars(self)!r})"

    def _missing(self, name: str) -> str:
        known = ", ".join(vars(self)) or "none"
        return f"there is no parameter {name!r}; the parameters are: {known}"


def _as_argument(value: Any) -> Any:
    if isinstance(value, Namespace):
        return Namespace({name: _as_argument(value[name]) for name in value})
    return _lift(value)


def _signature(function: Callable) -> inspect.Signature:
    try:
        return inspect.signature(function.py_func if _is_dispatcher(function) else function)
    except ValueError as error:
        raise TypeError(f"the arguments of {function!r} cannot be found out; wrap it in a lambda") from error


def _bind(function: Callable, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Sort arguments into those passed by position and those passed by name."""
    keywords = {name: _as_argument(value) for name, value in arguments.items()}
    parameters = _signature(function).parameters.values()
    by_position = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY]
    return [keywords.pop(name) for name in by_position if name in keywords], keywords


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
        If the function returns something other than real numbers, or values of different shapes on different branches.
    """
    session = _Session(function)
    outer = _state.session

    def call(copies: _Copies) -> Any:
        positional, keywords = _bind(function, arguments)
        return copies.replace(function)(*positional, **keywords)

    with _patched():
        _state.session = session
        try:
            return session.explore(call, [])
        finally:
            _state.session = outer


def argument_names(function: Callable) -> tuple[str, ...]:
    """Return the names of the parameters to be passed to a function.

    Parameters
    ----------
    function : callable
        Function, lambda, partial, bound method, callable object or function compiled by Numba.

    Returns
    -------
    tuple of str
        All parameters without default, and those with default whose name is that of a model argument (t, q, v, p, s, w, lam, x).

    Raises
    ------
    TypeError
        If the function takes ``*args`` or ``**kwargs``, or its parameters cannot be found out.
    """
    fixed = function.keywords if isinstance(function, functools.partial) else {}
    names = []
    for parameter in _signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{_describe(function)} takes {str(parameter).partition(':')[0]}; its arguments are passed by name, so spell them out")
        if parameter.name not in fixed and (parameter.default is parameter.empty or parameter.name in MODEL_ARGUMENTS):
            names.append(parameter.name)
    return tuple(names)


def _describe(function: Callable) -> str:
    return getattr(function, "__name__", None) or repr(function)

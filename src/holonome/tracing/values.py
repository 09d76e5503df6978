"""`Traced` and `TracedArray`, which record what is done to them, and conversion from and to ordinary numbers
and arrays.
"""

from __future__ import annotations

import itertools
import math
import numbers
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import casadi as ca
import numpy as np

from holonome.tracing.conditions import is_condition, is_whole
from holonome.tracing.numpy_protocol import AskedByNumPy
from holonome.tracing.session import NoNumber, refuse, state

NUMBERS = (float, int, np.number, np.bool_, numbers.Real)
SEQUENCES = (np.ndarray, list, tuple)
_COMPLEX = (complex, np.complexfloating)
_PLAIN_NUMBERS = (float, int, bool)
_SCALAR_METHODS = frozenset(
    {
        *("all", "any", "clip", "dot", "flatten", "max", "mean"),
        *("min", "prod", "ravel", "reshape", "sum", "tolist", "transpose"),
    }
)

unary: Callable[[int, ca.SX], ca.SX] = ca.SX.unary
binary: Callable[[int, ca.SX, ca.SX], ca.SX] = ca.SX.binary


def record_unary(op: int) -> Callable[[Traced], Traced]:
    return lambda x: Traced(unary(op, x.sx))


def record_binary(op: int) -> Callable[[Any, Any], Traced]:
    return lambda x, y: Traced(binary(op, sx(x), sx(y)))


def _operator(op: int, name: str, reflected: bool = False) -> Callable[[Traced, Any], Any]:
    function = getattr(operator, name)

    def method(self: Traced, other: Any) -> Any:
        if isinstance(other, (list, tuple)):
            array = as_array(other)
            return function(array, self) if reflected else function(self, array)
        if not is_real(other):
            return NotImplemented
        return Traced(binary(op, sx(other), self.sx) if reflected else binary(op, self.sx, sx(other)))

    return method


def _unless_same(method: Callable[[Traced, Any], Any], of_itself: Callable[[Traced], Any]) -> Any:
    """A comparison in which a value compared with itself asks whether it is NaN, which CasADi forgets."""

    def compare(self: Traced, other: Any) -> Any:
        same = type(other) is Traced and ca.is_equal(self.sx, other.sx, 1)
        return of_itself(self) if same else method(self, other)

    return compare


def _refusing(action: str) -> Callable[..., NoReturn]:
    def method(self: Traced, *args: Any) -> NoReturn:
        refuse(f"it {action}")

    return method


_add = _operator(ca.OP_ADD, "add")
_multiply = _operator(ca.OP_MUL, "mul")


class Traced(AskedByNumPy):
    """A real scalar that records the operations on it.

    Parameters
    ----------
    sx : casadi.SX
        The 1x1 expression this value stands for.
    """

    __slots__ = ("sx",)
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
            refuse(f"it formats a traced value with {specification!r}")
        return str(self)

    def __getattr__(self, name: str) -> Any:
        if name not in _SCALAR_METHODS:
            raise AttributeError(f"'Traced' object has no attribute {name!r}", name=name, obj=self)
        return getattr(from_flat([self], ()), name)

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
    __eq__ = _unless_same(_operator(ca.OP_EQ, "eq"), lambda x: ~np.isnan(x))
    __ne__ = _unless_same(_operator(ca.OP_NE, "ne"), lambda x: np.isnan(x))
    __and__ = __rand__ = _operator(ca.OP_AND, "and_")
    __or__ = __ror__ = _operator(ca.OP_OR, "or_")
    __xor__ = __rxor__ = _operator(ca.OP_NE, "xor")
    __neg__ = record_unary(ca.OP_NEG)
    __abs__ = record_unary(ca.OP_FABS)
    __invert__ = record_unary(ca.OP_NOT)
    __floor__ = record_unary(ca.OP_FLOOR)
    __ceil__ = record_unary(ca.OP_CEIL)

    def __floordiv__(self, other: Any) -> Any:
        return np.floor_divide(self, other)  # type: ignore

    def __rfloordiv__(self, other: Any) -> Any:
        return np.floor_divide(other, self)  # type: ignore

    def __mod__(self, other: Any) -> Any:
        return np.remainder(self, other)  # type: ignore

    def __rmod__(self, other: Any) -> Any:
        return np.remainder(other, self)  # type: ignore

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __round__(self, digits: int | None = None) -> Any:
        return np.round(self, digits or 0)  # type: ignore

    def __trunc__(self) -> Any:
        return np.trunc(self)

    def __pos__(self) -> Traced:
        return self

    def __bool__(self) -> bool:
        if self.sx.is_constant():
            return bool(float(self.sx))
        if state.session is None:
            raise NoNumber
        return state.session.decide(self.sx)

    __float__ = _refusing("converts a traced value to float")
    __int__ = _refusing("converts a traced value to int")
    __complex__ = _refusing("converts a traced value to complex")
    __index__ = _refusing("uses a traced value as an index or a count")
    __hash__ = _refusing("uses a traced value as a dictionary key or in a set")

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
        check_dtype(dtype)
        return self


numbers.Real.register(Traced)


class TracedArray(AskedByNumPy, np.ndarray):
    """Object array whose elements are `Traced` or plain numbers."""

    def __getitem__(self, index: Any) -> Any:
        if type(index) is Traced and self.ndim and not _is_condition(index):
            return _looked_up(list(self), index)
        if isinstance(index, TracedArray) and not all(map(_is_condition_or_number, index.flat)):
            return np.stack([self[at] for at in index])
        return super().__getitem__(_usable_index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        if (
            isinstance(index, TracedArray)
            and has_traced(index)
            and np.ndim(value) == 0
            and index.shape == self.shape
        ):
            index, value = ..., np.where(index, value, self)
        index = _usable_index(index)
        if isinstance(value, SEQUENCES):
            value = as_array(value)
            if _addresses_element(self, index):
                if value.size != 1:
                    raise ValueError("setting an array element with a sequence.")
                value = value.item()
        super().__setitem__(index, value)

    def astype(self, dtype: Any, **options: Any) -> Any:
        if not has_traced(self):
            return lift(lower(self).astype(dtype))
        check_dtype(dtype)
        return self.copy()

    @property
    def ctypes(self) -> NoReturn:
        refuse("it hands the memory of an array to compiled code")

    def tobytes(self, order: Any = "C") -> bytes:
        if has_traced(self):
            refuse("it reads the bytes of a traced array")
        return lower(self).tobytes(order)

    def dot(self, other: Any, out: Any = None) -> Any:
        return np.dot(self, other, out=out)

    def clip(self, min: Any = None, max: Any = None, **options: Any) -> Any:  # noqa: A002
        return np.clip(self, min, max)

    @property
    def real(self) -> TracedArray:
        return self

    @property
    def imag(self) -> TracedArray:
        return from_flat([0.0] * self.size, self.shape)


def _usable_index(index: Any) -> Any:
    """Turn masks that are object arrays into arrays of bool; traced conditions become branches."""
    if isinstance(index, tuple):
        return tuple(map(_usable_index, index))
    if not isinstance(index, TracedArray):
        return index
    if not has_traced(index):
        return lower(index)
    if not all(isinstance(value, (bool, np.bool_)) or _is_condition(value) for value in index.flat):
        refuse("it uses a traced value as an index")
    return np.array([bool(value) for value in index.flat]).reshape(index.shape)


def _looked_up(rows: list[Any], index: Traced) -> Any:
    """The row at a traced position, NaN where there is none."""
    if not is_whole(index.sx):
        refuse("it uses a traced value as an index")
    at = np.where(index < 0, index + len(rows), index)  # type: ignore

    def within(first: int, last: int) -> Any:
        if first == last:
            return rows[first]
        middle = (first + last + 1) // 2
        return np.where(at < middle, within(first, middle - 1), within(middle, last))

    return np.where((at >= 0) & (at < len(rows)), within(0, len(rows) - 1), math.nan)


def _is_condition_or_number(value: Any) -> bool:
    return type(value) is not Traced or _is_condition(value)


def _is_condition(value: Any) -> bool:
    return type(value) is Traced and is_condition(value.sx)


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
    elements = list(map(Traced, sx.elements()))  # type: ignore
    return elements[0] if shape == () else from_flat(elements, shape)


def from_flat(elements: Sequence[Any], shape: tuple[int, ...]) -> TracedArray:
    return np.fromiter(elements, dtype=object, count=len(elements)).reshape(shape).view(TracedArray)


def sx(value: Any) -> ca.SX:
    """Return the expression of a real scalar."""
    return value.sx if type(value) is Traced else ca.SX(float(value))


def column(elements: Sequence[Any]) -> ca.SX:
    """Return the dense column of the expressions of real scalars."""
    return ca.densify(ca.vertcat(*map(sx, elements))) if len(elements) else ca.SX(0, 1)


def has_traced(value: Any) -> bool:
    """Whether the value is traced, or is an array, list or tuple with something traced in it."""
    kind = type(value)
    if kind is Traced:
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.hasobject and any(type(element) is Traced for element in value.flat)
    return kind in (list, tuple) and any(map(has_traced, value))


def has_traced_array(value: Any) -> bool:
    """Whether the value is or contains a traced array, even one whose elements are all plain."""
    return isinstance(value, TracedArray) or (
        type(value) in (list, tuple) and any(map(has_traced_array, value))
    )


class NotNumeric(Exception):
    """Something that is no real number stands where a number is expected; the message is a noun phrase."""


class _ComplexNumber(NotNumeric):
    pass


def _refuse_complex() -> NoReturn:
    refuse("it mixes complex numbers with traced values")


def is_real(value: Any) -> bool:
    """Whether the value is a real scalar, traced or not; a complex number is refused."""
    if type(value) is Traced:
        return True
    if isinstance(value, _COMPLEX):
        _refuse_complex()
    return isinstance(value, NUMBERS)


def plain(value: Any) -> Any:
    """Return an element of a traced array: `Traced` and bool as they are, other numbers as float."""
    if type(value) in (Traced, float, bool):
        return value
    if isinstance(value, _COMPLEX):
        raise _ComplexNumber("a complex number")
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, NUMBERS):
        return float(value)
    raise NotNumeric("None" if value is None else f"an object of type {type(value).__name__}")


def flatten(value: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return shape and row-major elements of a number, an array or nested lists of them."""
    if isinstance(value, np.ndarray):
        return value.shape, [plain(element) for element in value.ravel().tolist()]
    if not isinstance(value, (list, tuple, range)):
        return (), [plain(value)]
    parts = [flatten(part) for part in value]
    shapes = dict.fromkeys(shape for shape, _ in parts)
    if len(shapes) > 1:
        raise NotNumeric(f"a ragged sequence with parts of the shapes {', '.join(map(str, shapes))}")
    return (len(parts), *next(iter(shapes), ())), list(
        itertools.chain.from_iterable(elements for _, elements in parts)
    )


def as_array(value: Any) -> TracedArray:
    if type(value) is TracedArray:
        return value
    try:
        shape, elements = flatten(value)
    except _ComplexNumber:
        _refuse_complex()
    except NotNumeric as error:
        raise ValueError(f"setting an array element with a sequence: found {error}") from None
    return from_flat(elements, shape)


def map_parts(function: Callable, value: Any) -> Any:
    """Apply a function to the parts of a list or a tuple; anything else comes back as it is."""
    return type(value)(map(function, value)) if type(value) in (list, tuple) else value


def unwrap(value: Any) -> Any:
    """Turn object arrays into traced arrays, and those without dimensions into their element."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.view(TracedArray) if value.ndim else value.item()
    return map_parts(unwrap, value)


def lower(value: Any) -> Any:
    """Turn traced arrays without traced elements back into ordinary arrays."""
    if isinstance(value, TracedArray) and not has_traced(value):
        return np.array(value.ravel().tolist(), dtype=None if value.size else float).reshape(value.shape)
    return map_parts(lower, value)


def lift(value: Any) -> Any:
    """Turn arrays of floats into traced arrays, so that traced values can be assigned to their elements."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim:
        return value.astype(object).view(TracedArray)
    return unwrap(value)


def check_dtype(dtype: Any) -> None:
    """Refuse to convert traced content to anything but floats, which is ignored."""
    if dtype is not None and np.dtype(dtype).kind not in "fO":
        refuse(f"it converts a traced value to {np.dtype(dtype)}")

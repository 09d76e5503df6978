"""Calls through plain addresses, so that one compiled engine serves every model.

Passing compiled functions as arguments would make Numba compile the engine anew for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numba
from llvmlite import ir
from numba import cfunc, njit, types
from numba.extending import intrinsic, overload

from holonome.locks import cached_property
from holonome.machine.context import SINGULAR

Doubles = types.CPointer(types.float64)
Integers = types.CPointer(types.int32)
KERNEL = types.int32(types.float64, Doubles, Doubles, Doubles, Doubles)
"""status = kernel(t, y, z, context, out)"""


class NativeKernel:
    """A kernel written in Python, compiled by Numba when its address is first asked for and kept in Numba's
    cache.
    """

    def __init__(self, function: Callable) -> None:
        self.function = function

    @classmethod
    def variants(cls, function: Any, count: int) -> tuple[NativeKernel, ...]:
        """Kernels that call a function with one more argument, 0, 1, … in turn."""
        module = {"__name__": function.__module__, "function": function}
        return tuple(
            cls(
                filled_in(
                    _variant, module | {"what": what}, ("function", "what"), f"{function.__name__}{what}"
                )
            )
            for what in range(count)
        )

    @cached_property
    def _compiled(self) -> Any:
        return cfunc(KERNEL, cache=True)(self.function)

    @property
    def address(self) -> int:
        return self._compiled.address


def _data(cg: Any, builder: Any, kind: Any, value: Any) -> Any:
    """The address behind a pointer, or behind an array, which stands for one in a checked build."""
    return cg.make_array(kind)(cg, builder, value).data if isinstance(kind, types.Array) else value


@intrinsic
def _call(typingctx, address, t, y, z, context, out):
    """Call the kernel at an address."""
    given = (t, y, z, context, out)

    def codegen(cg, builder, signature, arguments):
        kinds = [cg.get_value_type(kind) for kind in KERNEL.args]
        function = ir.FunctionType(cg.get_value_type(KERNEL.return_type), kinds)
        pointers = [_data(cg, builder, *pair) for pair in zip(signature.args[2:], arguments[2:], strict=True)]
        return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), [arguments[1], *pointers])

    kinds = [
        kind if isinstance(kind, types.Array) else told for kind, told in zip(given, KERNEL.args, strict=True)
    ]
    return KERNEL.return_type(types.int64, *kinds), codegen


@intrinsic
def _shift(typingctx, place, offset):
    """Pointer arithmetic: the address of ``place[offset]``; of an array, the rest of it from there."""

    def codegen(cg, builder, signature, arguments):
        if not isinstance(place, types.Array):
            return builder.gep(arguments[0], [arguments[1]])
        whole = cg.make_array(place)(cg, builder, arguments[0])
        rest = cg.make_array(place)(cg, builder)
        size = cg.get_constant(types.intp, 8)
        length = builder.sub(builder.extract_value(whole.shape, 0), arguments[1])
        data = builder.gep(whole.data, [arguments[1]])
        cg.populate_array(rest, data=data, shape=[length], strides=[size], itemsize=size, meminfo=None)
        return rest._getvalue()

    return place(place, types.int64), codegen


@intrinsic
def _integers(typingctx, place):
    """The memory at an address, or behind a pointer to doubles, as 32-bit integers."""

    def codegen(cg, builder, signature, arguments):
        target = cg.get_value_type(Integers)
        if isinstance(place, types.Integer):
            return builder.inttoptr(arguments[0], target)
        return builder.bitcast(_data(cg, builder, place, arguments[0]), target)

    return Integers(types.int64 if isinstance(place, types.Integer) else place), codegen


@intrinsic
def _pointer(typingctx, array):
    """Address of an array's data."""

    def codegen(cg, builder, signature, arguments):
        return _data(cg, builder, signature.args[0], arguments[0])

    return Doubles(array), codegen


call: Any = _call
shift: Any = _shift
integers: Any = _integers
pointer: Any = _pointer
carray: Any = numba.carray  # pyright: ignore[reportPrivateImportUsage]


def as_vector(place, size):
    """A vector as an array."""
    raise NotImplementedError("for compiled code")


def as_matrix(place, rows, columns):
    """A vector as a matrix, row by row."""
    raise NotImplementedError("for compiled code")


@overload(as_vector, inline="always")
def _as_vector(place, size):
    if isinstance(place, types.Array):
        return lambda place, size: place[:size]
    return lambda place, size: carray(place, (size,))


@overload(as_matrix, inline="always")
def _as_matrix(place, rows, columns):
    if isinstance(place, types.Array):
        return lambda place, rows, columns: place[: rows * columns].reshape((rows, columns))
    return lambda place, rows, columns: carray(place, (rows, columns))


@njit(cache=True, inline="always")
def call_either(kernel, pivoting, t, y, z, context, out):
    """Call a kernel or, where a pivot of it has lost its digits, the one that pivots."""
    status = call(kernel, t, y, z, context, out)
    if status == SINGULAR:
        status = call(pivoting, t, y, z, context, out)
    return status


def filled_in(template: Any, module: Mapping[str, Any], names: tuple[str, ...], name: str = "") -> Any:
    """A function that calls others by these names, with those of a module; Numba's cache tells it from the
    same with those of another module by its own name.
    """
    own, where = {name: module[name] for name in names if name in module}, module["__name__"]
    function = FunctionType(
        template.__code__, {**template.__globals__, **own}, name or template.__name__.lstrip("_")
    )
    function.__module__ = where
    function.__qualname__ = f"{function.__name__}_with_{where.replace('.', '_')}"
    return function


function: Any = None  # of the kernels that are variants of one
what = 0


def _variant(t, y, z, context, out):
    return function(t, y, z, context, out, what)


@njit(cache=True)
def run_kernel(address, t, y, z, context, out):
    """Call a kernel from Python."""
    return call(address, t, pointer(y), pointer(z), pointer(context), pointer(out))

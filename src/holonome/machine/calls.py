"""Calls through plain addresses, so that one compiled engine serves every model.

Passing compiled functions as arguments would make Numba compile the engine anew for each of them.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numba
from llvmlite import ir
from numba import cfunc, njit, types
from numba.extending import intrinsic

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

    @cached_property
    def _compiled(self) -> Any:
        return cfunc(KERNEL, cache=True)(self.function)

    @property
    def address(self) -> int:
        return self._compiled.address


@intrinsic
def _call(typingctx, address, t, y, z, context, out):
    """Call the kernel at an address."""

    def codegen(cg, builder, signature, arguments):
        function = ir.FunctionType(
            cg.get_value_type(KERNEL.return_type), [cg.get_value_type(a) for a in KERNEL.args]
        )
        return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), arguments[1:])

    return KERNEL.return_type(types.int64, *KERNEL.args), codegen


@intrinsic
def _shift(typingctx, pointer, offset):
    """Pointer arithmetic: the address of ``pointer[offset]``."""

    def codegen(cg, builder, signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), codegen


@intrinsic
def _integers(typingctx, place):
    """The memory at an address, or behind a pointer to doubles, as 32-bit integers."""

    def codegen(cg, builder, signature, arguments):
        target = cg.get_value_type(Integers)
        return (
            builder.inttoptr(arguments[0], target)
            if isinstance(place, types.Integer)
            else builder.bitcast(arguments[0], target)
        )

    return Integers(types.int64 if isinstance(place, types.Integer) else place), codegen


@intrinsic
def _pointer(typingctx, array):
    """Address of an array's data."""

    def codegen(cg, builder, signature, arguments):
        return cg.make_array(signature.args[0])(cg, builder, arguments[0]).data

    return Doubles(array), codegen


call: Any = _call
shift: Any = _shift
integers: Any = _integers
pointer: Any = _pointer
carray: Any = numba.carray  # pyright: ignore[reportPrivateImportUsage]


@njit(cache=True)
def run_kernel(address, t, y, z, context, out):
    """Call a kernel from Python."""
    return call(address, t, pointer(y), pointer(z), pointer(context), pointer(out))

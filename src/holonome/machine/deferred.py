"""A kernel that is compiled when compiled code first calls it: one that most runs never need."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from holonome.machine.context import INTERRUPTED, RAISED, Context

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, *[ctypes.c_void_p] * 4)


class Deferred:
    """Stands in a context for a kernel: its first call compiles it, and writes its address into the context
    so that later ones go there directly.

    Parameters
    ----------
    field
        Where contexts have the address.
    make
        Gives the address.
    """

    def __init__(self, field: str, make: Callable[[], int]) -> None:
        self._field, self._make = field, make
        self._callback = _SIGNATURE(self._call)
        self.address: int = ctypes.cast(self._callback, ctypes.c_void_p).value or 0

    def _call(self, t: float, y: int, z: int, context: int, out: int) -> int:
        try:
            address = self._make()
            record = np.ctypeslib.as_array((ctypes.c_double * Context.words).from_address(context))
            Context.set(record, 0, **{self._field: address})
            return _SIGNATURE(address)(t, y, z, context, out)
        except KeyboardInterrupt:
            return INTERRUPTED
        except BaseException:  # an exception that leaves a callback is lost
            return RAISED

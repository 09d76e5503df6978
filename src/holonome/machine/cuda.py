"""NVIDIA's driver, called directly: programs in PTX, memory of the card, launches.

Nothing but the driver is needed, which comes with the card.  Its functions are those of ``cuda.h``.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

from holonome.errors import HolonomeError

_CAPABILITY = (75, 76)
_PROCESSORS = 16
_LOG, _LOG_SIZE = 5, 6
_ROOM = 8192


class CardError(HolonomeError):
    """There is no card, or its driver refuses something."""


@cache
def _driver() -> ctypes.CDLL:
    names = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
    for name in names:
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        raise CardError("no NVIDIA driver was found on this machine; use device='cpu'")
    code = library.cuInit(0)
    if code:
        raise CardError(f"the NVIDIA driver does not start: {_words(library, code)}; use device='cpu'")
    return library


def _words(library: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    library.cuGetErrorString(code, ctypes.byref(text))
    return text.value.decode() if text.value else f"error {code}"


def _checked(function: str, *arguments: Any) -> None:
    library = _driver()
    code = getattr(library, function)(*arguments)
    if code:
        raise CardError(f"{function}: {_words(library, code)}")


def available() -> bool:
    """Whether there is a card with a driver."""
    try:
        card()
    except CardError:
        return False
    return True


class Card:
    """The first card, with its own context."""

    def __init__(self) -> None:
        device, context = ctypes.c_int(), ctypes.c_void_p()
        _checked("cuDeviceGet", ctypes.byref(device), 0)
        self._device = device
        _checked("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._context = context
        self.enter()
        name = ctypes.create_string_buffer(256)
        _checked("cuDeviceGetName", name, 256, device)
        self.name = name.value.decode()
        major, minor = (self._attribute(number) for number in _CAPABILITY)
        self.architecture = f"sm_{major}{minor}"
        self.processors = self._attribute(_PROCESSORS)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        _checked("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value

    def enter(self) -> None:
        """Let this thread use the card."""
        _checked("cuCtxSetCurrent", self._context)

    @property
    def free(self) -> int:
        """Bytes of memory that are free."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        _checked("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def wait(self) -> None:
        """Until all that was begun is done."""
        _checked("cuCtxSynchronize")


@cache
def card() -> Card:
    """The card of this process."""
    return Card()


class CardProgram:
    """A function of a PTX module in the card's memory."""

    def __init__(self, source: str, name: str) -> None:
        card().enter()
        log = ctypes.create_string_buffer(_ROOM)
        options = (ctypes.c_int * 2)(_LOG, _LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), ctypes.c_void_p(_ROOM))
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        try:
            _checked(
                "cuModuleLoadDataEx", ctypes.byref(self._module), source.encode() + b"\0", 2, options, values
            )
        except CardError as error:
            raise CardError(f"{error} {log.value.decode(errors='replace')}".strip()) from None
        _checked("cuModuleGetFunction", ctypes.byref(self._function), self._module, name.encode())

    def resident(self, block: int) -> int:
        """Blocks of so many threads that a multiprocessor holds at once."""
        count = ctypes.c_int()
        size = ctypes.c_size_t(0)
        _checked(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(count), self._function, block, size
        )
        return max(count.value, 1)

    def launch(self, blocks: int, threads: int, *arguments: Any) -> None:
        """Begin; addresses on the card are given as `CardArray`, whole numbers as int."""
        values = [
            argument.address if isinstance(argument, CardArray) else ctypes.c_int64(argument)
            for argument in arguments
        ]
        pointers = (ctypes.c_void_p * len(values))(
            *[ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values]
        )
        _checked("cuLaunchKernel", self._function, blocks, 1, 1, threads, 1, 1, 0, None, pointers, None)


class CardArray:
    """Memory on the card; it is given back with the object."""

    def __init__(self, size: int) -> None:
        self.address, self.size = ctypes.c_uint64(), max(size, 8)
        _checked("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(self.size))

    @classmethod
    def of(cls, array: np.ndarray) -> CardArray:
        """A copy of an array."""
        made = cls(array.nbytes)
        made.write(array)
        return made

    def write(self, array: np.ndarray) -> None:
        """Copy an array to the card."""
        array = np.ascontiguousarray(array)
        if array.nbytes:
            _checked(
                "cuMemcpyHtoD_v2",
                self.address,
                ctypes.c_void_p(array.ctypes.data),
                ctypes.c_size_t(array.nbytes),
            )

    def read(self, array: np.ndarray) -> None:
        """Copy from the card into an array."""
        if array.nbytes:
            _checked(
                "cuMemcpyDtoH_v2",
                ctypes.c_void_p(array.ctypes.data),
                self.address,
                ctypes.c_size_t(array.nbytes),
            )

    def __del__(self) -> None:
        if getattr(self, "address", None) is not None and self.address.value:
            library = _driver()
            card().enter()
            library.cuMemFree_v2(self.address)
            self.address = ctypes.c_uint64()

"""Functions that cannot be traced: called as they are, with finite differences where derivatives are needed.

A supplied function owns a block of the context (:mod:`holonome.machine.context`).  A kernel that needs it
calls the block's driver first, which calls the function (compiled by Numba if that succeeds, otherwise Python
through ctypes) and writes its values and, for constraints, their derivatives into the block
(:mod:`holonome.machine.supplied_blocks`).  There the kernel reads them like parameters.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from holonome.machine.context import INTERRUPTED, OK, PARAMETERS, RAISED, Block
from holonome.machine.interruption import Interruption
from holonome.machine.native_version import native_version
from holonome.machine.supplied_blocks import (
    ConstraintBlock,
    SlopesBlock,
    ValueBlock,
    VelocityConstraintBlock,
    gradients,
    matrix,
    new_block,
    new_slopes,
    supply_constraint,
    supply_slopes,
    supply_value,
    supply_velocity_constraint,
)
from holonome.tracing import Namespace

_DRIVERS = {"constraint": supply_constraint, "velocity_constraint": supply_velocity_constraint}
_LAYOUTS: dict[str, type[Block]] = {
    "constraint": ConstraintBlock,
    "velocity_constraint": VelocityConstraintBlock,
}


_DERIVATIVES = {"constraint": ("G", "g_t", "D_g", "gamma_g"), "velocity_constraint": ("A", "D_h", "gamma_h")}
_MATRICES = ("G", "A", "D_g", "D_h")
_SLOPES = {
    "mass": (("value",), None),
    "force": (("value",), None),
    "constraint": (("G", "g_t"), gradients),
    "velocity_constraint": (("A",), matrix),
}
"""Values whose derivatives enter Newton's matrices, and what computes them if not the function itself."""


class Supplied:
    """One function that is called rather than traced.

    Parameters
    ----------
    role
        "mass", "force", "constraint", "velocity_constraint" or "potential".
    function, arguments
        The user's callable and the names of what it wants.
    rows
        Number of values.
    normalise
        Turns what the function returns into an array of that many values, or raises.
    probe
        Arguments for which it can be called.
    """

    def __init__(
        self,
        role: str,
        function: Callable,
        arguments: Sequence[str],
        n: int,
        rows: int,
        normalise: Callable[[Any], np.ndarray],
        parameters: Any,
        probe: Mapping[str, Any],
    ) -> None:
        self.role = role
        self.function = function
        self.arguments = tuple(arguments)
        self.n = n
        self.rows = rows
        self.normalise = normalise
        self.parameters = parameters
        self._raised = threading.local()
        self._views: dict[tuple[int, int], np.ndarray] = {}
        self._namespaces: tuple[bytes, dict[str, Namespace]] = (b"", {})
        self._native = native_version(self, probe)
        self.path = "numba" if self._native is not None else "python"
        self._layout = _LAYOUTS.get(role, ValueBlock)
        self._empty = new_block(role, n, rows, "t" in self.arguments)
        self._slopes = self._new_slopes() if role in _SLOPES else np.zeros(0)
        self._callback = (
            None
            if self._native is not None
            else ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, *[ctypes.c_void_p] * 4)(self._call)
        )

    @property
    def error(self) -> BaseException | None:
        """What it raised last, in this thread: runs in other threads have errors of their own."""
        return getattr(self._raised, "error", None)

    @error.setter
    def error(self, error: BaseException | None) -> None:
        self._raised.error = error

    @property
    def address(self) -> int:
        if self._native is not None:
            return self._native.address
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0  # type: ignore[arg-type]

    @property
    def size(self) -> int:
        """Doubles of the block, and of the block of slopes that follows it."""
        return self._empty.size + self._slopes.size

    @property
    def own_size(self) -> int:
        """Doubles of the block without the slopes."""
        return self._empty.size

    def block(self) -> np.ndarray:
        """A new block, with the addresses of this process."""
        block = self._empty.copy()
        driver = _DRIVERS.get(self.role, supply_value)
        self._layout.set(block, driver=driver.address, function=self.address)
        if not self._slopes.size:
            return block
        slopes, (_, values) = self._slopes.copy(), _SLOPES[self.role]
        function = self.address if values is None else values.address
        SlopesBlock.set(slopes, driver=supply_slopes.address, function=function)
        if values is not None:
            SlopesBlock.vector(slopes, "inner")[:] = block
        return np.concatenate([block, slopes])

    def _new_slopes(self) -> np.ndarray:
        """The block of slopes, without any addresses."""
        names, values = _SLOPES[self.role]
        count = sum(self._layout.vector(self._empty, name).size for name in names)
        both = "v" in self.arguments and self.role != "velocity_constraint"
        inner = np.zeros(0 if values is None else self._empty.size)
        return new_slopes(self.n, count, self.n * (1 + both), inner)

    def slopes(self, block: ca.SX) -> list[tuple[ca.SX, ca.SX, ca.SX]]:
        """Symbols of values, and their derivatives with respect to q and v, as parts of the block's."""
        if not self._slopes.size:
            return []
        names, n = _SLOPES[self.role][0], self.n
        values = ca.vertcat(*(block[self._layout.span(self._empty, name)] for name in names))
        flat = block[self._empty.size :][SlopesBlock.span(self._slopes, "slopes")]
        by_state = ca.reshape(flat, flat.numel() // values.numel(), values.numel()).T
        by_v = by_state[:, n:] if by_state.size2() > n else ca.SX(values.numel(), n)
        return [(values, by_state[:, :n], by_v)]

    def symbols(self, block: ca.SX) -> tuple[ca.SX, dict[str, ca.SX]]:
        """The value, and derivatives by name, as parts of the block's symbols."""

        def part(name: str) -> ca.SX:
            values = block[self._layout.span(self._empty, name)]
            columns = self.n if name in _MATRICES else 1
            return ca.reshape(values, columns, self.rows).T

        return part("value"), {name: part(name) for name in _DERIVATIVES.get(self.role, ())}

    def value(self, arguments: Mapping[str, Any]) -> np.ndarray:
        """Call the user's function in Python."""
        return self.normalise(self.function(**{name: arguments[name] for name in self.arguments}))

    def _view(self, address: int, size: int) -> np.ndarray:
        view = self._views.get((address, size))
        if view is None:
            if len(self._views) > 1000:
                self._views.clear()
            view = self._views[address, size] = np.ctypeslib.as_array(
                (ctypes.c_double * size).from_address(address)
            )
        return view

    def _call(self, t: float, y: int, z: int, context: int, out: int) -> int:
        if Interruption.requested:
            return INTERRUPTED
        try:
            state = self._view(y, 2 * self.n)
            arguments = {
                "t": t,
                "q": state[: self.n].copy(),
                "v": state[self.n :].copy(),
                **self._parameters_at(context),
            }
            with np.errstate(all="ignore"):
                self._view(out, self.rows)[:] = self.value(arguments).ravel()
        except KeyboardInterrupt:
            return INTERRUPTED
        except BaseException as error:
            self.error = error
            return RAISED
        return OK

    def _parameters_at(self, context: int) -> dict[str, Namespace]:
        """Parameters p and inputs u, as far as they are asked for."""
        kinds = [kind for kind in "pu" if kind in self.arguments]
        if not kinds:
            return {}
        flat = self._view(context, PARAMETERS + self.parameters.size)[PARAMETERS:]
        key, namespaces = self._namespaces
        if not namespaces or key != flat.tobytes():
            values = flat.copy()
            namespaces = {kind: self.parameters.namespace(values, kind) for kind in kinds}
            self._namespaces = values.tobytes(), namespaces
        return namespaces

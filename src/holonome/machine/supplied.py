"""Functions that cannot be traced: called as they are, with finite differences for what only a derivative can
tell.

A supplied function owns a block of the context (:mod:`holonome.machine.context`):

    0 driver    1 function    2 n    3 rows    4 depends on t    5 … 7 free    8 … values    … work

A kernel that needs it calls the driver first, which calls the function (compiled by Numba if that succeeds,
else Python through ctypes) and writes its values and, for constraints, their derivatives behind the block's
head.  There the kernel reads them like parameters.  Central differences of order four: about 1e-11 of the
value, 1e-9 for γ.
"""

from __future__ import annotations

import contextlib
import ctypes
import warnings
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np
from numba import cfunc, njit

from holonome.machine.calls import KERNEL, NativeKernel, call, carray, shift
from holonome.machine.context import INTERRUPTED, OK, PARAMETERS, RAISED
from holonome.machine.interruption import Interruption
from holonome.tracing import Namespace

HEAD = 8
_STEP, _STEP_TWICE, _LARGEST_TIME = 1e-3, 2.5e-3, 1e-4


@NativeKernel
def _supply_value(t, y, block, context, out):
    return call(np.int64(block[1]), t, y, block, context, shift(block, 8))


@njit(cache=True, inline="always")
def _differences(function, t, y, block, context, at, n, first, rows, work, jacobian):
    """∂/∂y[first:first+n] of a function with ``rows`` values, at the point ``at`` (a copy of y that is moved
    and put back).
    """
    a, b, c, d = work, shift(work, rows), shift(work, 2 * rows), shift(work, 3 * rows)
    for j in range(first, first + n):
        centre = at[j]
        h = _STEP * max(1.0, abs(centre))
        status = 0
        at[j] = centre + h
        status |= call(function, t, at, block, context, a)
        at[j] = centre - h
        status |= call(function, t, at, block, context, b)
        at[j] = centre + 2 * h
        status |= call(function, t, at, block, context, c)
        at[j] = centre - 2 * h
        status |= call(function, t, at, block, context, d)
        at[j] = centre
        if status != 0:
            return RAISED
        for i in range(rows):
            jacobian[i * n + j - first] = (8 * (a[i] - b[i]) - (c[i] - d[i])) / (12 * h)
    return OK


@njit(cache=True, inline="always")
def _line(y, n, depends_on_t):
    """A step along (1, v) that moves neither q nor t too far."""
    size, speed = 1.0, 0.0
    for i in range(n):
        size, speed = max(size, abs(y[i])), max(speed, abs(y[n + i]))
    step = _STEP_TWICE * size / speed if speed > 0.0 else 1.0
    return min(step, _LARGEST_TIME) if depends_on_t else step


@NativeKernel
def _supply_constraint(t, y, block, context, out):
    """g, G, g_t, D, γ."""
    function, n, rows, depends_on_t = (
        np.int64(block[1]),
        np.int64(block[2]),
        np.int64(block[3]),
        block[4] != 0.0,
    )
    g = shift(block, 8)
    G, g_t = shift(g, rows), shift(g, rows + rows * n)
    D, gamma = shift(g_t, rows), shift(g_t, rows + rows * n)
    at = shift(gamma, rows)
    work = shift(at, 2 * n)
    plus, minus = shift(work, 4 * rows), shift(work, 4 * rows + rows * n)
    for i in range(2 * n):
        at[i] = y[i]
    if (
        call(function, t, y, block, context, g) != 0
        or _differences(function, t, y, block, context, at, n, 0, rows, work, G) != 0
    ):
        return RAISED
    for i in range(rows):
        g_t[i] = 0.0
    status = 0
    if depends_on_t:
        h = _LARGEST_TIME
        a, b, c, d = work, shift(work, rows), shift(work, 2 * rows), shift(work, 3 * rows)
        status |= call(function, t + h, y, block, context, a)
        status |= call(function, t - h, y, block, context, b)
        status |= call(function, t + 2 * h, y, block, context, c)
        status |= call(function, t - 2 * h, y, block, context, d)
        for i in range(rows):
            g_t[i] = (8 * (a[i] - b[i]) - (c[i] - d[i])) / (12 * h)
    h = _line(y, n, depends_on_t)
    for i in range(rows):
        gamma[i] = -30.0 * g[i]
    for k in range(-2, 3):
        if k != 0:
            for i in range(n):
                at[i] = y[i] + k * h * y[n + i]
            status |= call(function, t + k * h, at, block, context, work)
            weight = 16.0 if abs(k) == 1 else -1.0
            for i in range(rows):
                gamma[i] += weight * work[i]
    for i in range(rows):
        gamma[i] /= 12 * h * h
    for sign in (-1, 1):
        for i in range(n):
            at[i] = y[i] + sign * h * y[n + i]
        status |= _differences(
            function, t + sign * h, y, block, context, at, n, 0, rows, work, plus if sign > 0 else minus
        )
    for i in range(rows * n):
        D[i] = (plus[i] - minus[i]) / (2 * h)
    return OK if status == 0 else RAISED


@NativeKernel
def _supply_velocity_constraint(t, y, block, context, out):
    """h, A, D, γ."""
    function, n, rows, depends_on_t = (
        np.int64(block[1]),
        np.int64(block[2]),
        np.int64(block[3]),
        block[4] != 0.0,
    )
    h_ = shift(block, 8)
    A, D = shift(h_, rows), shift(h_, rows + rows * n)
    gamma = shift(D, rows * n)
    at = shift(gamma, rows)
    work = shift(at, 2 * n)
    for i in range(2 * n):
        at[i] = y[i]
    status = call(function, t, y, block, context, h_)
    status |= _differences(function, t, y, block, context, at, n, n, rows, work, A)
    status |= _differences(function, t, y, block, context, at, n, 0, rows, work, D)
    h = _line(y, n, depends_on_t)
    for i in range(rows):
        gamma[i] = 0.0
    for k in range(-2, 3):
        if k != 0:
            for i in range(n):
                at[i] = y[i] + k * h * y[n + i]
            status |= call(function, t + k * h, at, block, context, work)
            weight = 8.0 * k if abs(k) == 1 else -0.5 * k
            for i in range(rows):
                gamma[i] += weight * work[i]
    for i in range(rows):
        gamma[i] /= 12 * h
    return OK if status == 0 else RAISED


_DRIVERS = {"constraint": _supply_constraint, "velocity_constraint": _supply_velocity_constraint}
_DERIVATIVES = {"constraint": ("G", "g_t", "D_g", "gamma_g"), "velocity_constraint": ("A", "D_h", "gamma_h")}


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
        self.role, self.function, self.arguments, self.n, self.rows = (
            role,
            function,
            tuple(arguments),
            n,
            rows,
        )
        self.normalise, self.parameters = normalise, parameters
        self.error: BaseException | None = None
        self._views: dict[tuple[int, int], np.ndarray] = {}
        self._namespace: tuple[bytes, Namespace | None] = (b"", None)
        self._native = _native(self, probe)
        self.path = "numba" if self._native is not None else "python"
        self._callback = (
            None
            if self._native is not None
            else ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, *[ctypes.c_void_p] * 4)(self._call)
        )

    @property
    def address(self) -> int:
        if self._native is not None:
            return self._native.address
        return ctypes.cast(self._callback, ctypes.c_void_p).value or 0  # type: ignore[arg-type]

    @property
    def size(self) -> int:
        """Doubles of the block."""
        r, n = self.rows, self.n
        work = {"constraint": 2 * n + 4 * r + 2 * r * n, "velocity_constraint": 2 * n + 4 * r}.get(
            self.role, 0
        )
        return HEAD + self._values + work

    @property
    def _values(self) -> int:
        r, n = self.rows, self.n
        return {"constraint": 3 * r + 2 * r * n, "velocity_constraint": 2 * r + 2 * r * n}.get(self.role, r)

    def head(self) -> list[float]:
        """Beginning of the block, with the addresses of this process."""
        driver = _DRIVERS.get(self.role, _supply_value)
        return [
            float(driver.address),
            float(self.address),
            self.n,
            self.rows,
            float("t" in self.arguments),
            0.0,
            0.0,
            0.0,
        ]

    def symbols(self, block: ca.SX) -> tuple[ca.SX, dict[str, ca.SX]]:
        """The value, and derivatives by name, as parts of the block's symbols."""
        at, r, n = HEAD, self.rows, self.n

        def take(rows: int, columns: int) -> ca.SX:
            nonlocal at
            part = ca.reshape(block[at : at + rows * columns], columns, rows).T
            at += rows * columns
            return part

        value = block[at : at + r]
        at += r
        shapes = {"G": (r, n), "A": (r, n), "D_g": (r, n), "D_h": (r, n)}
        return value, {name: take(*shapes.get(name, (r, 1))) for name in _DERIVATIVES.get(self.role, ())}

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
                "p": self._parameters_at(context),
            }
            with np.errstate(all="ignore"):
                self._view(out, self.rows)[:] = self.value(arguments).ravel()
        except KeyboardInterrupt:
            return INTERRUPTED
        except BaseException as error:
            self.error = error
            return RAISED
        return OK

    def _parameters_at(self, context: int) -> Namespace | None:
        if "p" not in self.arguments:
            return None

        flat = self._view(context, PARAMETERS + self.parameters.size)[PARAMETERS:]
        key, namespace = self._namespace
        if namespace is None or key != flat.tobytes():
            namespace = self.parameters.namespace(flat.copy())
            self._namespace = flat.tobytes(), namespace
        return namespace


def _native(supplied: Supplied, probe: Mapping[str, Any]) -> Any:
    """The function as compiled by Numba behind the kernel's signature, or None where that fails."""
    from numba.core.errors import NumbaError

    names = supplied.parameters.names
    Parameters = (
        namedtuple("Parameters", names)
        if names and all(n.isidentifier() and not n.startswith("_") for n in names)
        else None
    )
    if "p" in supplied.arguments and Parameters is None:
        return None
    source = _wrapper_source(
        supplied, supplied.function(**{name: probe[name] for name in supplied.arguments})
    )
    if source is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inner = supplied.function if hasattr(supplied.function, "py_func") else njit(supplied.function)
            scope = {
                "np": np,
                "carray": carray,
                "inner": inner,
                "Parameters": Parameters,
                "OK": OK,
                "RAISED": RAISED,
            }
            exec(source, scope)
            compiled = cfunc(KERNEL)(scope["wrapper"])
        return compiled if _agrees(compiled, supplied, probe) else None
    except (
        NumbaError,
        TypeError,
        AttributeError,
        NotImplementedError,
        ValueError,
        IndexError,
        KeyError,
        AssertionError,
    ):
        return None


def _wrapper_source(supplied: Supplied, sample: Any) -> str | None:
    """Python text of a function with the kernel's signature around the user's."""
    n, array = supplied.n, np.asarray(sample)
    if (
        array.dtype == object
        or array.size != supplied.rows
        or (isinstance(sample, (list, tuple)) and array.ndim > 1)
    ):
        return None
    fields = []
    for _, shape, offset in supplied.parameters.layout:
        at = PARAMETERS + offset
        size = int(np.prod(shape, dtype=int))
        fields.append(
            f"context[{at}]" if shape == () else f"carray(context, ({at + size},))[{at}:].reshape({shape!r})"
        )
    arguments = {
        "t": "t",
        "q": f"carray(y, ({2 * n},))[:{n}].copy()",
        "v": f"carray(y, ({2 * n},))[{n}:].copy()",
        "p": f"Parameters({', '.join(fields)})",
    }
    call_text = f"inner({', '.join(arguments[a] for a in supplied.arguments)})"
    store = {
        0: ["out[0] = result"],
        1: [f"for i in range({array.size}):", "    out[i] = result[i]"],
        2: [
            f"for i in range({array.shape[0] if array.ndim else 1}):",
            f"    for j in range({array.shape[1] if array.ndim > 1 else 1}):",
            f"        out[i * {array.shape[1] if array.ndim > 1 else 1} + j] = result[i, j]",
        ],
    }.get(array.ndim)
    if store is None:
        return None
    size = {0: "False", 1: f"len(result) != {array.size}", 2: f"result.shape != {array.shape!r}"}[array.ndim]
    lines = [
        "def wrapper(t, y, z, context, out):",
        "    status = OK",
        "    try:",
        f"        result = {call_text}",
        f"        if {size}:",
        "            return RAISED",
        *["        " + line for line in store],
        "    except Exception:",
        "        status = RAISED",
        "    return status",
    ]
    return "\n".join(lines)


def _agrees(compiled, supplied: Supplied, probe: Mapping[str, Any]) -> bool:
    """Whether the compiled function gives what the Python one gives."""
    y = np.concatenate([probe["q"], probe["v"]])
    context = np.concatenate([np.zeros(PARAMETERS), supplied.parameters.flat, [0.0]])
    out, none = np.full(supplied.rows, np.nan), np.zeros(1)
    pointers = [a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in (y, none, context, out)]
    if compiled.ctypes(probe["t"], *pointers) != OK:
        return False
    with contextlib.suppress(Exception):
        return np.allclose(out, supplied.value(probe).ravel(), rtol=1e-9, atol=1e-12, equal_nan=True)
    return False

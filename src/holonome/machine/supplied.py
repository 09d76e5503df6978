"""Functions that cannot be traced: called as they are, with finite differences where derivatives are needed.

A supplied function owns a block of the context (:mod:`holonome.machine.context`).  A kernel that needs it
calls the block's driver first, which calls the function (compiled by Numba if that succeeds, otherwise Python
through ctypes) and writes its values and, for constraints, their derivatives into the block.  There the kernel
reads them like parameters.  Central differences of order four are accurate to about 1e-11 of the value, 1e-9
for γ.
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

from holonome.machine.calls import KERNEL, NativeKernel, call, carray
from holonome.machine.context import INTERRUPTED, OK, PARAMETERS, RAISED, Block
from holonome.machine.interruption import Interruption
from holonome.machine.layout import Vector, Whole
from holonome.tracing import Namespace

_STEP = 1e-3
_STEP_TWICE = 2.5e-3
_LARGEST_TIME = 1e-4


class ValueBlock(Block):
    """Of a function of which no derivatives are needed."""

    function: Whole  # its address
    value: Vector


class ConstraintBlock(Block):
    """Of position constraints g; matrices row by row."""

    function: Whole  # its address
    n: Whole  # coordinates
    rows: Whole
    depends_on_time: Whole
    value: Vector
    G: Vector
    g_t: Vector
    D_g: Vector
    gamma_g: Vector
    moved: Vector  # a state close by
    ahead: Vector  # values there: one step and two steps ahead and behind
    behind: Vector
    far_ahead: Vector
    far_behind: Vector
    G_ahead: Vector
    G_behind: Vector


class VelocityConstraintBlock(Block):
    """Of velocity constraints h; matrices row by row."""

    function: Whole  # its address
    n: Whole  # coordinates
    rows: Whole
    depends_on_time: Whole
    value: Vector
    A: Vector
    D_h: Vector
    gamma_h: Vector
    moved: Vector  # a state close by
    ahead: Vector  # values there: one step and two steps ahead and behind
    behind: Vector
    far_ahead: Vector
    far_behind: Vector


_value_block = ValueBlock.named()
_constraint_block = ConstraintBlock.named()
_velocity_constraint_block = VelocityConstraintBlock.named()


@NativeKernel
def _supply_value(t, y, memory, context, out):
    block = _value_block(memory)
    return call(block.function, t, y, y, context, block.value)


@njit(cache=True)
def _slope(block, i, h):
    """Derivative of value i, from the values one and two steps h ahead and behind."""
    near = block.ahead[i] - block.behind[i]
    far = block.far_ahead[i] - block.far_behind[i]
    return (8 * near - far) / (12 * h)


@njit(cache=True)
def _differences(block, t, context, first, jacobian):
    """The Jacobian of the function with respect to n entries of the moved state, from ``first`` on; each is
    changed and restored.
    """
    n, at = block.n, block.moved
    for j in range(first, first + n):
        centre = at[j]
        h = _STEP * max(1.0, abs(centre))
        at[j] = centre + h
        status = call(block.function, t, at, at, context, block.ahead)
        at[j] = centre - h
        status |= call(block.function, t, at, at, context, block.behind)
        at[j] = centre + 2 * h
        status |= call(block.function, t, at, at, context, block.far_ahead)
        at[j] = centre - 2 * h
        status |= call(block.function, t, at, at, context, block.far_behind)
        at[j] = centre
        if status != OK:
            return status
        for i in range(block.rows):
            jacobian[i * n + j - first] = _slope(block, i, h)
    return OK


@njit(cache=True)
def _time_derivative(block, t, y, context, derivative):
    """The partial derivative of the function with respect to time."""
    h = _LARGEST_TIME
    status = call(block.function, t + h, y, y, context, block.ahead)
    status |= call(block.function, t - h, y, y, context, block.behind)
    status |= call(block.function, t + 2 * h, y, y, context, block.far_ahead)
    status |= call(block.function, t - 2 * h, y, y, context, block.far_behind)
    for i in range(block.rows):
        derivative[i] = _slope(block, i, h)
    return status


@njit(cache=True)
def _step_along(block, y):
    """A step along (1, v) that moves neither q nor t too far."""
    size = 1.0
    speed = 0.0
    for i in range(block.n):
        size = max(size, abs(y[i]))
        speed = max(speed, abs(y[block.n + i]))
    step = _STEP_TWICE * size / speed if speed > 0.0 else 1.0
    return min(step, _LARGEST_TIME) if block.depends_on_time else step


@njit(cache=True)
def _move(block, y, step):
    """The moved state becomes y after a step along v."""
    for i in range(block.n):
        block.moved[i] = y[i] + step * y[block.n + i]
        block.moved[block.n + i] = y[block.n + i]


@njit(cache=True)
def _values_along(block, t, y, context, h):
    """The values one and two steps h ahead and behind, along (1, v)."""
    _move(block, y, h)
    status = call(block.function, t + h, block.moved, y, context, block.ahead)
    _move(block, y, -h)
    status |= call(block.function, t - h, block.moved, y, context, block.behind)
    _move(block, y, 2 * h)
    status |= call(block.function, t + 2 * h, block.moved, y, context, block.far_ahead)
    _move(block, y, -2 * h)
    status |= call(block.function, t - 2 * h, block.moved, y, context, block.far_behind)
    return status


@NativeKernel
def _supply_constraint(t, y, memory, context, out):
    """The values g, G, g_t, D and γ."""
    block = _constraint_block(memory)
    g = block.value
    status = call(block.function, t, y, y, context, g)
    if status != OK:
        return status
    _move(block, y, 0.0)
    status |= _differences(block, t, context, 0, block.G)
    if block.depends_on_time:
        status |= _time_derivative(block, t, y, context, block.g_t)
    if status != OK:
        return status
    h = _step_along(block, y)
    status |= _values_along(block, t, y, context, h)
    for i in range(block.rows):
        near = block.ahead[i] + block.behind[i]
        far = block.far_ahead[i] + block.far_behind[i]
        block.gamma_g[i] = (16 * near - far - 30 * g[i]) / (12 * h * h)
    _move(block, y, h)
    status |= _differences(block, t + h, context, 0, block.G_ahead)
    _move(block, y, -h)
    status |= _differences(block, t - h, context, 0, block.G_behind)
    for i in range(block.rows * block.n):
        block.D_g[i] = (block.G_ahead[i] - block.G_behind[i]) / (2 * h)
    return status


@NativeKernel
def _supply_velocity_constraint(t, y, memory, context, out):
    """The values h, A, D and γ."""
    block = _velocity_constraint_block(memory)
    status = call(block.function, t, y, y, context, block.value)
    if status != OK:
        return status
    _move(block, y, 0.0)
    status |= _differences(block, t, context, block.n, block.A)
    status |= _differences(block, t, context, 0, block.D_h)
    if status != OK:
        return status
    h = _step_along(block, y)
    status |= _values_along(block, t, y, context, h)
    for i in range(block.rows):
        block.gamma_h[i] = _slope(block, i, h)
    return status


_DRIVERS = {"constraint": _supply_constraint, "velocity_constraint": _supply_velocity_constraint}
_LAYOUTS: dict[str, type[Block]] = {
    "constraint": ConstraintBlock,
    "velocity_constraint": VelocityConstraintBlock,
}


def _new_block(role: str, n: int, rows: int, depends_on_time: bool) -> np.ndarray:
    """The block of a function, without any addresses."""
    samples = dict.fromkeys(("ahead", "behind", "far_ahead", "far_behind"), rows)
    numbers = {"n": n, "rows": rows, "depends_on_time": depends_on_time}
    match role:
        case "constraint":
            matrices = dict.fromkeys(("G", "D_g", "G_ahead", "G_behind"), rows * n)
            return ConstraintBlock.memory(
                **numbers, value=rows, g_t=rows, gamma_g=rows, moved=2 * n, **samples, **matrices
            )
        case "velocity_constraint":
            return VelocityConstraintBlock.memory(
                **numbers, value=rows, A=rows * n, D_h=rows * n, gamma_h=rows, moved=2 * n, **samples
            )
    return ValueBlock.memory(value=rows)


_DERIVATIVES = {"constraint": ("G", "g_t", "D_g", "gamma_g"), "velocity_constraint": ("A", "D_h", "gamma_h")}
_MATRICES = ("G", "A", "D_g", "D_h")


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
        self.error: BaseException | None = None
        self._views: dict[tuple[int, int], np.ndarray] = {}
        self._namespace: tuple[bytes, Namespace | None] = (b"", None)
        self._native = _native(self, probe)
        self.path = "numba" if self._native is not None else "python"
        self._layout = _LAYOUTS.get(role, ValueBlock)
        self._empty = _new_block(role, n, rows, "t" in self.arguments)
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
        return self._empty.size

    def block(self) -> np.ndarray:
        """A new block, with the addresses of this process."""
        block = self._empty.copy()
        driver = _DRIVERS.get(self.role, _supply_value)
        self._layout.set(block, driver=driver.address, function=self.address)
        return block

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

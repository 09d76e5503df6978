"""A supplied function compiled by Numba, with the signature of a kernel."""

from __future__ import annotations

import contextlib
import ctypes
import warnings
from collections import namedtuple
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from numba.core.errors import NumbaError, UnsupportedBytecodeError

from holonome.machine.calls import carray
from holonome.machine.context import OK, PARAMETERS, RAISED
from holonome.machine.kernel import host
from holonome.machine.native_cache import compiled_kernel

if TYPE_CHECKING:
    from holonome.machine.supplied import Supplied

_NOT_COMPILED = (
    NumbaError,
    UnsupportedBytecodeError,
    TypeError,
    AttributeError,
    NotImplementedError,
    ValueError,
    IndexError,
    KeyError,
    AssertionError,
)


def native_version(supplied: Supplied, probe: Mapping[str, Any]) -> Any:
    """The function, compiled by Numba with the signature of a kernel, or None where that fails."""
    tuples = {kind: _named_values(kind, supplied) for kind in "pu"}
    if any(kind in supplied.arguments and values is None for kind, values in tuples.items()):
        return None
    sample = supplied.function(**{name: probe[name] for name in supplied.arguments})
    source = _wrapper_source(supplied, sample)
    if source is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inner = supplied.function if hasattr(supplied.function, "py_func") else njit(supplied.function)
            scope = {"np": np, "carray": carray, "inner": inner}
            scope |= {_TUPLES[kind]: values for kind, values in tuples.items()}
            scope |= {"OK": OK, "RAISED": RAISED, "__name__": __name__}
            exec(source, scope)
            compiled = compiled_kernel(scope["wrapper"], source, supplied.function, host())
        return compiled if compiled is not None and _agrees(compiled, supplied, probe) else None
    except _NOT_COMPILED:
        return None


_TUPLES = {"p": "Parameters", "u": "Inputs"}


def _named_values(kind: str, supplied: Supplied) -> Any:
    """The class of what the function sees as p or u; None if there are none, or names do not allow it."""
    names = list(supplied.parameters.layout_of(kind))
    if names and all(name.isidentifier() and not name.startswith("_") for name in names):
        return namedtuple(_TUPLES[kind], names)
    return None


def _wrapper_source(supplied: Supplied, sample: Any) -> str | None:
    """Python text of a function with the signature of a kernel around the user's."""
    array = np.asarray(sample)
    nested = isinstance(sample, (list, tuple)) and array.ndim > 1
    if array.dtype == object or array.size != supplied.rows or nested or array.ndim > 2:
        return None
    arguments = _argument_sources(supplied)
    lines = [
        "def wrapper(t, y, z, context, out):",
        "    status = OK",
        "    try:",
        f"        result = inner({', '.join(arguments[name] for name in supplied.arguments)})",
        *["        " + line for line in _store_source(array.shape)],
        "    except Exception:",
        "        status = RAISED",
        "    return status",
    ]
    return "\n".join(lines)


def _argument_sources(supplied: Supplied) -> dict[str, str]:
    """Python text of what the user's function is given, by the names of its arguments."""
    n = supplied.n
    sources = {
        "t": "t",
        "q": f"carray(y, ({2 * n},))[:{n}].copy()",
        "v": f"carray(y, ({2 * n},))[{n}:].copy()",
    }
    for kind, name in _TUPLES.items():
        fields = []
        for shape, offset in supplied.parameters.layout_of(kind).values():
            begin = PARAMETERS + offset
            end = begin + int(np.prod(shape, dtype=int))
            array = f"carray(context, ({end},))[{begin}:].reshape({shape!r})"
            fields.append(f"context[{begin}]" if shape == () else array)
        sources[kind] = f"{name}({', '.join(fields)})"
    return sources


def _store_source(shape: tuple[int, ...]) -> list[str]:
    """Python text that stores a result of this shape, and refuses any other."""
    if shape == ():
        return ["out[0] = result"]
    if len(shape) == 1:
        return [
            f"if len(result) != {shape[0]}:",
            "    return RAISED",
            f"for i in range({shape[0]}):",
            "    out[i] = result[i]",
        ]
    rows, columns = shape
    return [
        f"if result.shape != {shape!r}:",
        "    return RAISED",
        f"for i in range({rows}):",
        f"    for j in range({columns}):",
        f"        out[i * {columns} + j] = result[i, j]",
    ]


def _agrees(compiled: Any, supplied: Supplied, probe: Mapping[str, Any]) -> bool:
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

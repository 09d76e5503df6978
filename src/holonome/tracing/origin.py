"""Whose code is it? The user's is copied, and its lines are named in messages; that of libraries, and of this
package, stays as it is.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

_LIBRARIES = frozenset(
    sys.stdlib_module_names
    | {"numpy", "scipy", "casadi", "numba", "llvmlite", "sympy", "matplotlib", "pandas", "xarray"}
)
_THIS_PACKAGE = __name__.rpartition(".")[0]


def is_library(module_name: str | None) -> bool:
    if module_name is None:
        return False
    return (
        module_name.partition(".")[0] in _LIBRARIES
        or module_name == _THIS_PACKAGE
        or module_name.startswith(_THIS_PACKAGE + ".")
    )


def is_library_frame(frame: types.FrameType) -> bool:
    return is_library(frame.f_globals.get("__name__"))


def is_dispatcher(value: Any) -> bool:
    """Whether the value is a function compiled by Numba."""
    return type(value).__module__.partition(".")[0] == "numba" and hasattr(value, "py_func")


def source_file(function: Any) -> str:
    """Return the file that a function, method, partial, callable object or function compiled by Numba is
    written in, "" if unknown.
    """
    while isinstance(function, (functools.partial, types.MethodType)) or hasattr(function, "py_func"):
        function = getattr(function, "func", None) or getattr(function, "__func__", None) or function.py_func
    code = getattr(function, "__code__", None) or getattr(
        vars(type(function)).get("__call__"), "__code__", None
    )
    return code.co_filename if code is not None else ""

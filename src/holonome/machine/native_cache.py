"""What Numba made of the user's functions, kept with the kernels of models: compiling takes it seconds.

A file is named after all that the code depends on: the text of the function and of those it calls, the values
that they have captured, which Numba compiles in, and the versions of everything.  Where something has no
canonical text, nothing is kept.
"""

from __future__ import annotations

import marshal
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import serialize, sigutils
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.errors import NumbaError, UnsupportedBytecodeError

from holonome.machine import cache as files
from holonome.machine.calls import KERNEL
from holonome.tracing import Captured

_CANNOT = b"cannot be compiled"
_VERSIONS = (sys.version, numba.__version__, np.__version__, llvmlite.__version__)


class _NoText(Exception):
    """A captured value whose text does not determine it."""


def compiled_kernel(wrapper: Callable, source: str, function: Callable, host: tuple[str, ...]) -> Any:
    """A kernel compiled by Numba, from the cache if it is there; None if it is known not to compile.

    Parameters
    ----------
    wrapper, source
        A function with the signature of a kernel around the user's, and its text.
    function
        The user's function.
    host
        What describes the processor.
    """
    compiled = CFunc(wrapper, sigutils.normalize_signature(KERNEL), locals={}, options={})
    try:
        path = files.path_of([source, *_texts(function), *_VERSIONS, *host])
    except _NoText:
        path = None
    if path is None:
        compiled.compile()
        return compiled
    path = path.with_suffix(".numba")
    if files.read(path) == _CANNOT:
        return None
    compiled._cache = _Kept(path)
    try:
        compiled.compile()
    except (NumbaError, UnsupportedBytecodeError):
        files.write(path, _CANNOT)
        raise
    return compiled


class _Kept:
    """Numba's interface to a cache, with one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load_overload(self, signature: Any, target: Any) -> Any:
        stored = files.read(self._path)
        if stored is None:
            return None
        try:
            target.refresh()
            return CompileResult._rebuild(target, *pickle.loads(stored))
        except Exception:
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Code with addresses of this process in it is not kept."""
        if not result.library.has_dynamic_globals and not result.lifted:
            files.write(self._path, serialize.dumps(result._reduce()))


def _texts(function: Callable) -> Iterator[str]:
    captured = Captured(function)
    for part in captured.functions:
        yield marshal.dumps(_without_lines(part.__code__), 2).hex()
        yield _text(part.__defaults__)
        yield _text(part.__kwdefaults__)
    for name, module in captured.modules:
        yield f"{name} {module}"
    for item in captured.watched:
        yield f"{item.name} {_text(item.value)}"


def _without_lines(code: types.CodeType) -> types.CodeType:
    """The code as it would be in any file and at any line."""
    constants = tuple(_without_lines(c) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_filename="", co_firstlineno=1, co_linetable=b"", co_consts=constants)


def _text(value: Any) -> str:
    """A text that determines a value."""
    if (
        value is None
        or type(value) in (bool, int, float, complex, str, bytes)
        or isinstance(value, np.generic)
    ):
        return f"{type(value).__name__} {value!r}"
    if type(value) is np.ndarray and not value.dtype.hasobject:
        return f"{value.dtype.str} {value.shape} {value.flags.c_contiguous} {value.tobytes().hex()}"
    if type(value) in (list, tuple):
        return f"{type(value).__name__} [{', '.join(map(_text, value))}]"
    if isinstance(value, types.FunctionType) or hasattr(value, "py_func"):
        return "function"  # its own text is among the others, or it belongs to a library
    if isinstance(value, (np.ufunc, types.BuiltinFunctionType)) or value in (np.float64, np.int64):
        return f"{type(value).__name__} {getattr(value, '__module__', '')} {value.__name__}"
    raise _NoText

"""numpy and math as the rest of the user's code sees them while a function is traced.

What copies do not reach (classes instantiated inside the function, ``super().method()``, imports inside the
function) still finds the creation functions of numpy and all of math replaced while the function runs. The
patch is made under a lock, undone in ``finally``, and passes straight through to the original for other
threads and for calls that come from a library. NumPy's types and ufuncs are not patched: others rely on their
identity.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from holonome.locks import new_lock
from holonome.tracing.look_alikes import NUMPY_VERSIONS
from holonome.tracing.math_functions import MATH_VERSIONS
from holonome.tracing.origin import is_library_frame
from holonome.tracing.session import state

_CREATION = (
    "zeros",
    "ones",
    "empty",
    "full",
    "eye",
    "identity",
    "diag",
    "zeros_like",
    "ones_like",
    "empty_like",
    "full_like",
    "array",
    "asarray",
    "asanyarray",
    "ascontiguousarray",
    "copy",
    "isscalar",
)


def _in_user_code_only(original: Callable, version: Callable) -> Callable:
    def patch(*args: Any, **options: Any) -> Any:
        if state.session is None or is_library_frame(sys._getframe(1)):
            return original(*args, **options)
        return version(*args, **options)

    return functools.update_wrapper(
        patch, original, assigned=("__name__", "__doc__", "__module__"), updated=()
    )


_PATCHES = [(np, name, _in_user_code_only(getattr(np, name), NUMPY_VERSIONS[name])) for name in _CREATION]
_PATCHES += [
    (math, name, _in_user_code_only(getattr(math, name), version)) for name, version in MATH_VERSIONS.items()
]
_lock = new_lock()


@contextlib.contextmanager
def patched() -> Iterator[None]:
    with _lock:
        originals = [(module, name, getattr(module, name)) for module, name, _ in _PATCHES]
        try:
            for module, name, patch in _PATCHES:
                setattr(module, name, patch)
            yield
        finally:
            for module, name, original in originals:
                setattr(module, name, original)

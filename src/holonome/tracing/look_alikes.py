"""The modules numpy, numpy.linalg and math as the copy of a function sees them, and the versions of their
functions one by one.
"""

from __future__ import annotations

import builtins
import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from holonome.tracing.array_functions import apply_function, as_argument
from holonome.tracing.math_functions import BUILTIN_VERSIONS, MATH_VERSIONS
from holonome.tracing.values import Traced, as_array, has_traced, lift, lower


class _TracingUfunc:
    """A ufunc that also takes lists with traced elements."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc

    def __call__(self, *args: Any, **options: Any) -> Any:
        if has_traced(args):
            return self.ufunc(
                *(value if type(value) is Traced else as_argument(value) for value in args), **options
            )
        result = self.ufunc(*lower(args), **options)
        return result if options.get("out") is not None else lift(result)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.ufunc, name)
        if not callable(value):
            return value
        return lambda *args, **options: value(*map(as_argument, args), **options)


def _tracing_function(function: Callable) -> Callable:
    def version(*args: Any, **options: Any) -> Any:
        return apply_function(function, args, options)

    return functools.update_wrapper(version, function, assigned=("__name__", "__doc__"), updated=())


class _Float64Type(type):
    """Makes `_Float64` pass for `numpy.float64`."""

    def __call__(cls, value: Any = 0.0) -> Any:
        if has_traced(value):
            return value if type(value) is Traced else as_array(value)
        return np.float64(value)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (Traced, np.float64))


class _Float64(metaclass=_Float64Type):
    dtype = np.dtype(np.float64)


def _versions_of(module: types.ModuleType) -> dict[str, Any]:
    """Return the tracing versions of the functions of numpy or numpy.linalg by name."""
    kinds = (types.FunctionType, types.BuiltinFunctionType, type(np.sum))
    versions: dict[str, Any] = {}
    for name, value in vars(module).items():
        if isinstance(value, np.ufunc):
            versions[name] = _TracingUfunc(value)
        elif isinstance(value, kinds) and not name.startswith("_"):
            versions[name] = _tracing_function(value)
    return versions


def _look_alike(module: types.ModuleType, versions: dict[str, Any]) -> types.ModuleType:
    mirror = types.ModuleType(module.__name__, module.__doc__)
    vars(mirror).update(versions, __getattr__=functools.partial(getattr, module))
    return mirror


NUMPY_VERSIONS = _versions_of(np) | {"float64": _Float64, "double": _Float64}
_LINALG_VERSIONS = _versions_of(np.linalg)
_LINALG = _look_alike(np.linalg, _LINALG_VERSIONS)
LOOK_ALIKES = {
    math: _look_alike(math, MATH_VERSIONS),
    np.linalg: _LINALG,
    np: _look_alike(np, NUMPY_VERSIONS | {"linalg": _LINALG}),
}
_VERSIONS_BY_MODULE = (
    (np, NUMPY_VERSIONS),
    (np.linalg, _LINALG_VERSIONS),
    (math, MATH_VERSIONS),
    (builtins, BUILTIN_VERSIONS),
)
VERSIONS = {
    id(original := getattr(module, name)): (original, version)
    for module, versions in _VERSIONS_BY_MODULE
    for name, version in versions.items()
}
"""Originals and their versions by the original's id; an original is kept so that no other object can take
over its id.
"""

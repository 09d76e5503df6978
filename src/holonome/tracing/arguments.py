"""What a function asks for by the names of its parameters, and what it is given: traced values and the
`Namespace` of a model's parameters.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from holonome.tracing.origin import is_dispatcher
from holonome.tracing.values import lift

_MODEL_ARGUMENTS = frozenset({"t", "q", "v", "p", "s", "w", "lam", "x", "u"})


class Namespace:
    """The parameters of a model as attributes and items: ``p.g`` and ``p["g"]``; immutable.

    Parameters
    ----------
    values : Mapping
        Numbers, arrays or traced values by name.
    read : callable, optional
        Makes the value of a name from what `values` says of it, when it is first asked for: a function seldom
        reads all of many thousands.
    """

    __slots__ = ("__dict__", "_read", "_values")

    def __init__(self, values: Mapping[str, Any], read: Callable[[Any], Any] | None = None) -> None:
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_read", read)
        if read is None:
            vars(self).update(values)

    def __getattr__(self, name: str) -> Any:
        if name in Namespace.__slots__ or name not in self._values:
            raise AttributeError(self._missing(name), name=name, obj=self)
        value = vars(self)[name] = self._read(self._values[name])
        return value

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise KeyError(self._missing(name))
        return getattr(self, name)

    def __reduce__(self) -> tuple:
        return Namespace, ({name: self[name] for name in self},)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"parameters cannot be changed here: {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"parameters cannot be deleted: {name!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Namespace({ ({name: self[name] for name in self})!r})"

    def _missing(self, name: str) -> str:
        known = ", ".join(self._values) or "none"
        return f"there is no parameter {name!r}; the parameters are: {known}"


def argument_names(function: Callable, role: str = "") -> tuple[str, ...]:
    """Return the names of the parameters to be passed to a function.

    Parameters
    ----------
    function : callable
        Function, lambda, partial, bound method, callable object or function compiled by Numba.
    role : str
        What a message calls it beside its own name.

    Returns
    -------
    tuple of str
        All parameters without default, and those with default whose name is that of a model argument (t, q,
        v, p, u, s, w, lam, x).

    Raises
    ------
    TypeError
        If the function takes ``*args`` or ``**kwargs``, or its parameters cannot be found out.
    """
    fixed = function.keywords if isinstance(function, functools.partial) else {}
    names = []
    for parameter in _signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            name = getattr(function, "__name__", None) or repr(function)
            name = f"{role}: {name}" if role else name
            raise TypeError(
                f"{name} takes {str(parameter).partition(':')[0]}; its arguments are passed by name, so "
                "spell them out"
            )
        if parameter.name not in fixed and (
            parameter.default is parameter.empty or parameter.name in _MODEL_ARGUMENTS
        ):
            names.append(parameter.name)
    return tuple(names)


def bind(function: Callable, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Sort arguments into those passed by position and those passed by name."""
    keywords = {name: _as_argument(value) for name, value in arguments.items()}
    parameters = _signature(function).parameters.values()
    by_position = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY]
    return [keywords.pop(name) for name in by_position if name in keywords], keywords


def _as_argument(value: Any) -> Any:
    if isinstance(value, Namespace):
        return Namespace({name: name for name in value}, lambda name: _as_argument(value[name]))
    lifted = lift(value)
    return lifted.copy() if isinstance(lifted, np.ndarray) else lifted


def _signature(function: Callable) -> inspect.Signature:
    try:
        return inspect.signature(function.py_func if is_dispatcher(function) else function)
    except ValueError as error:
        raise TypeError(f"the arguments of {function!r} cannot be found out; wrap it in a lambda") from error

"""Ready-made mechanisms with a start, a picture and, where one is known, their solution.

Each mechanism has its own file: a module ``x.py`` in this folder with a function ``x`` that returns an
`Example` is found automatically. It is then available as ``mechanisms.x(...)`` and
``mechanisms.get("x", ...)``; the module itself, with its plain functions, is
``sys.modules["holonome.mechanisms.x"]``.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Callable

from holonome.mechanisms.example import Drawing, Example, Reference

__all__ = ["Drawing", "Example", "Reference", "available", "get"]


class _Factories(dict[str, Callable[..., Example]]):
    """Functions by name; prints the names."""

    def __repr__(self) -> str:
        return f"<mechanisms: {', '.join(self)}>"


def available() -> dict[str, Callable[..., Example]]:
    """All mechanisms of this package: the name of each and the function that makes it.

    Examples
    --------
    >>> import holonome as hn
    >>> "four_bar" in hn.mechanisms.available()
    True
    """
    return _Factories(_FACTORIES)


def get(name: str, **parameters) -> Example:
    """Make the mechanism of this name; `parameters` are the keyword arguments of its function.

    Examples
    --------
    >>> import holonome as hn
    >>> hn.mechanisms.get("chain", links=5).system.m
    10
    """
    if name not in _FACTORIES:
        near = difflib.get_close_matches(name, _FACTORIES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(_FACTORIES)}."
        raise ValueError(f"name = {name!r} is not a mechanism; {hint}")
    return _FACTORIES[name](**parameters)


def _discover() -> dict[str, Callable[..., Example]]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "example")
    return {name: getattr(importlib.import_module(f"{__name__}.{name}"), name) for name in names}


_FACTORIES = _discover()
globals().update(_FACTORIES)

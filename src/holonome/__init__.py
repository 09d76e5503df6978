"""holonome: simulate mechanical systems with constraints, drift-free, at native speed, from plain NumPy
functions.

`__init__.pyi` lists the public names.  Each is loaded when it is first asked for, so that the command line
answers at once; for the same reason nothing that takes time is imported here.
"""

from importlib import import_module

__version__ = "0.1.0"

with open(__file__.removesuffix(".py") + ".pyi", encoding="utf-8") as _file:
    _words = [_line.split() for _line in _file if _line.startswith("from ")]
_HOME = {name: module for _, module, _, name, *_ in _words}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _HOME[name]
    value = (
        import_module(f"{module}.{name}")
        if module == __name__
        else getattr(import_module(module), name, None)
    )
    if value is None:  # a module of a room
        value = import_module(f"{module}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

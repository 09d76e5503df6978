"""holonome: simulate mechanical systems with constraints, drift-free, at native speed, from plain NumPy
functions.

`__init__.pyi` lists the public names.  Each is loaded when it is first asked for, so that the command line
answers at once.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_LINE = re.compile(r"^from (\S+) import (\w+) as", re.MULTILINE)
_HOME = {
    name: module for module, name in _LINE.findall(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
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

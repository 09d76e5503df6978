"""Reproduced papers: each is a module, and each of its tables and figures a function that computes it and
compares it with the published one.

A module or package ``authors_year`` in this folder with a `Paper` named ``PAPER`` is found automatically. It
is then available as ``papers.authors_year``, and as ``holonome reproduce authors`` on the command line. They
are loaded lazily.
"""

import difflib
import importlib
import pkgutil
from typing import Any

from holonome.papers.experiment import Experiment
from holonome.papers.figure import Curve, Figure, Panel
from holonome.papers.paper import Paper
from holonome.papers.table import Table
from holonome.papers.verdict import Band, Claim, Item, Misprint, Row

__all__ = [
    "Band",
    "Claim",
    "Curve",
    "Experiment",
    "Figure",
    "Item",
    "Misprint",
    "Panel",
    "Paper",
    "Row",
    "Table",
    "available",
    "get",
    "names",
]

_MODULES = {
    module.name.rpartition("_")[0].replace("_", "-"): module.name
    for module in pkgutil.iter_modules(__path__)
    if module.name[-4:].isdigit()
}


def names() -> list[str]:
    """Names of all papers, without loading them."""
    return list(_MODULES)


def available() -> dict[str, Paper]:
    """All papers by name.

    Examples
    --------
    >>> import holonome as hn
    >>> list(hn.papers.available())
    ['ascher-lin', 'eich', 'wang-hou-modnak', 'yen-petzold']
    """
    return {name: get(name) for name in _MODULES}


def get(name: str) -> Paper:
    """The paper of this name, with its experiments.

    Examples
    --------
    >>> import holonome as hn
    >>> "table-5.2" in hn.papers.get("yen-petzold").experiments
    True
    """
    if name not in _MODULES:
        raise ValueError(f"{name!r} is not a paper; {nearest(name, _MODULES)}")
    return importlib.import_module(f"{__name__}.{_MODULES[name]}").PAPER


def nearest(name: str, names: Any) -> str:
    """A suggestion for a name that is not known."""
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}."


def __getattr__(name: str) -> Any:
    if name in (*_MODULES.values(), "report"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES.values(), "report"})

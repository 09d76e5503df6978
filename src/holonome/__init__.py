"""holonome: simulate mechanical systems with constraints, drift-free, at native speed, from plain NumPy functions.

The public names are loaded when one of them is first asked for, so that the command line answers at once.
"""

# ruff: noqa: F403, F405
import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holonome import bushing, mechanisms, papers, plot
    from holonome.api import *

__version__ = "0.1.0"

__all__ = [
    "BDF", "GGL", "ODE", "SRM", "Animation", "Baumgarte", "BlackBox", "BoundarySolution", "Comparison", "Compliant", "ContradictoryConstraints", "CoordinateProjection",
    "CoordinateSplit", "CoupledSolution", "CoupledSystem", "Drawing", "Elastic", "Event", "HigherIndexSolution", "History", "HolonomeError", "InconsistentStart", "Index1",
    "Index2", "Index2System", "Index3", "Index3System", "LocalIteration", "Method", "ModelError", "RungeKutta", "SingularSystem", "Solution", "Start", "System", "Trial",
    "UnderlyingODE", "WindowSolver", "animate", "bushing", "compare", "consistent", "from_sympy", "mechanisms", "methods", "papers", "plot", "solve", "solve_bvp",
    "solve_coupled",
]

_MODULES = ("bushing", "mechanisms", "papers", "plot")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    api = importlib.import_module(f"{__name__}.api")
    globals().update({public: getattr(api, public) for public in __all__ if public not in _MODULES})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """A public function hides the module it lives in: ``holonome.solve`` is the function, whatever is imported first."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _MODULES or name not in __all__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

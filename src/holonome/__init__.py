"""holonome: simulate mechanical systems with constraints, drift-free, at native speed, from plain NumPy functions."""

from holonome import mechanisms
from holonome.errors import ContradictoryConstraints, HolonomeError, InconsistentStart, ModelError, SingularSystem
from holonome.events import Event
from holonome.formulations.underlying_ode import UnderlyingODE
from holonome.initial import Start, consistent
from holonome.integrators.runge_kutta import RungeKutta
from holonome.interop.sympy import from_sympy
from holonome.method import Method, methods
from holonome.result import History, Solution
from holonome.solve import solve
from holonome.system import System

__version__ = "0.1.0"

__all__ = ["ContradictoryConstraints", "Event", "History", "HolonomeError", "InconsistentStart", "Method", "ModelError", "RungeKutta", "SingularSystem", "Solution", "Start",
           "System", "UnderlyingODE", "consistent", "from_sympy", "mechanisms", "methods", "solve"]

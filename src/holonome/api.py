"""The public classes and functions; the package loads them when one of them is first asked for."""

# ruff: noqa: F401
from holonome.animation import Animation, animate
from holonome.boundary import BoundarySolution, solve_bvp
from holonome.compare import Comparison, Trial, compare
from holonome.coupled import BlackBox, CoupledSystem, WindowSolver
from holonome.coupled_result import CoupledSolution
from holonome.drawing import Drawing
from holonome.elastic import Elastic
from holonome.errors import ContradictoryConstraints, HolonomeError, InconsistentStart, ModelError, SingularSystem
from holonome.events import Event
from holonome.formulations.compliant import Compliant
from holonome.formulations.coordinate_projection import CoordinateProjection
from holonome.formulations.coordinate_split import CoordinateSplit
from holonome.formulations.ggl import GGL
from holonome.formulations.index1 import Baumgarte, Index1
from holonome.formulations.index2 import Index2
from holonome.formulations.index3 import Index3
from holonome.formulations.sequential_regularization import SRM
from holonome.formulations.underlying_ode import UnderlyingODE
from holonome.higher_index import Index2System, Index3System
from holonome.higher_index_run import HigherIndexSolution
from holonome.initial import Start, consistent
from holonome.integrators.bdf import BDF
from holonome.integrators.runge_kutta import RungeKutta
from holonome.interop.sympy import from_sympy
from holonome.local_iteration import LocalIteration, solve_coupled
from holonome.method import Method, methods
from holonome.result import History, Solution
from holonome.solve import solve
from holonome.system import ODE, System

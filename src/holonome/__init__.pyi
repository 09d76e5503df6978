"""The public names: this list is the only one.  `__init__.py` reads it, and so do editors and type checkers."""

from holonome import mechanisms as mechanisms
from holonome import papers as papers
from holonome import plot as plot
from holonome.animation import Animation as Animation
from holonome.animation import animate as animate
from holonome.boundary_values import BoundarySolution as BoundarySolution
from holonome.boundary_values import solve_bvp as solve_bvp
from holonome.comparison import Comparison as Comparison
from holonome.comparison import Trial as Trial
from holonome.comparison import compare as compare
from holonome.coupling.black_box import BlackBox as BlackBox
from holonome.coupling.black_box import WindowSolver as WindowSolver
from holonome.coupling.coupled_system import CoupledSystem as CoupledSystem
from holonome.coupling.local_iteration import LocalIteration as LocalIteration
from holonome.coupling.local_iteration import solve_coupled as solve_coupled
from holonome.coupling.result import CoupledSolution as CoupledSolution
from holonome.dynamics.start import Start as Start
from holonome.dynamics.start import consistent as consistent
from holonome.errors import ContradictoryConstraints as ContradictoryConstraints
from holonome.errors import HolonomeError as HolonomeError
from holonome.errors import InconsistentStart as InconsistentStart
from holonome.errors import ModelError as ModelError
from holonome.errors import SingularSystem as SingularSystem
from holonome.formulations.compliant import Compliant as Compliant
from holonome.formulations.coordinate_projection import CoordinateProjection as CoordinateProjection
from holonome.formulations.coordinate_split import CoordinateSplit as CoordinateSplit
from holonome.formulations.ggl import GGL as GGL
from holonome.formulations.index1 import Baumgarte as Baumgarte
from holonome.formulations.index1 import Index1 as Index1
from holonome.formulations.index2 import Index2 as Index2
from holonome.formulations.index3 import Index3 as Index3
from holonome.formulations.sequential_regularization import SRM as SRM
from holonome.formulations.underlying_ode import UnderlyingODE as UnderlyingODE
from holonome.integrators.bdf import BDF as BDF
from holonome.integrators.runge_kutta import RungeKutta as RungeKutta
from holonome.problem import bushing as bushing
from holonome.problem.drawing import Drawing as Drawing
from holonome.problem.elastic import Elastic as Elastic
from holonome.problem.event import Event as Event
from holonome.problem.from_sympy import from_sympy as from_sympy
from holonome.problem.general import Index2System as Index2System
from holonome.problem.general import Index3System as Index3System
from holonome.problem.ode import ODE as ODE
from holonome.problem.system import System as System
from holonome.results.general import HigherIndexSolution as HigherIndexSolution
from holonome.results.solution import History as History
from holonome.results.solution import Solution as Solution
from holonome.solving.methods import Method as Method
from holonome.solving.methods import methods as methods
from holonome.solving.solve import solve as solve

__version__: str
__all__: list[str]

"""Local iteration: each subsystem has its own solver and steps, and the coupling forces are found by
iterating over one window of time after another.

Wang, Hou & Modnak (2011) state it for two subsystems

    A_1 x″ + B_1 λ + C_1 x = r_1,      A_2 y″ + B_2 λ + C_2 y = r_2,      D_1 x″ + D_2 y″ = d           (1)

On a window [t_n, t_{n+1}], given the i-th iterate, their splitting (2) imposes the constraint on y,

    A_2 y″ + B_2 λ + C_2 y = r_2,   D_2 y″ = d − D_1 x″ of the i-th iterate       gives the next y, λ     (3)
    A_1 x″ + C_1 x = r_1 − B_1 λ                                                  gives the next x        (4)

until the changes of x, y and λ are below a tolerance (10); (55), (56) are the same with x and y exchanged.
In short windows an iteration multiplies the error of λ by −S_2⁻¹S_1 with S_j = D_j A_j⁻¹ B_j, so one of the
two splittings may diverge, and for some systems both do.  The update "schur",

    λ ← λ + (Σ_j S_j)⁻¹ (Σ_j D_j q_j″ + γ),       where 0 = Σ_j D_j q_j″ + γ is the constraint, differentiated
                                                 twice,

is Newton's method in the limit of short windows, so it converges for every system there; "newton", the
default, takes the length of the window into account as well.  The constraint may be nonlinear, (57)–(59), and
there may be any number of subsystems.

References
----------
.. [1] J. Wang, G. Hou, C. Modnak, "An iterative method for constrained dynamic problems – a case study"
   (2011).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from holonome.arguments import check_fields, checked, shown
from holonome.coupling.coupled_system import CoupledSystem
from holonome.coupling.initial_values import state_vector
from holonome.coupling.result import CoupledSolution
from holonome.coupling.run import Run
from holonome.machine.interruption import Interruption
from holonome.machine.progress import ProgressDisplay
from holonome.problem.system import System
from holonome.solving.arguments import time_span, wanted_times
from holonome.solving.first_use import announce_first_use


@dataclass(frozen=True)
class LocalIteration:
    """Windows, solvers and update of the local iteration.

    Parameters
    ----------
    window : float
        Length Δt of the windows.
    substeps : int or dict
        Number M of sub-steps in a window for the solvers "euler", "rk2" and "trapezoidal"; a dict gives one
        number for each subsystem.  A method of :func:`holonome.solve` takes as many equal steps if the dict
        names its subsystem; otherwise it chooses its steps itself.
    solvers : str, Method, callable or dict
        How the subsystems are solved: "euler", "rk2" (Heun), "trapezoidal", a name of
        :func:`holonome.methods`, a :class:`holonome.Method`, or a :class:`WindowSolver`, which is a function
        ``(t, q, v, force) -> q, v``; a dict gives one solver for each subsystem.
    update : str, dict or None
        How λ is updated.  "newton": Newton's method for the whole window.  "schur": (Σ S_j)⁻¹ times the
        residual at each point, the limit for short windows; cheaper, but it needs more iterations.
        "anderson": "newton" with Anderson acceleration, for subsystems that hide their equations.  The name
        of a subsystem: the constraint is imposed on it, the splittings (3)–(4) and (55)–(56).  A dict of
        weights whose sum is one: a linear combination of these.  None: "newton", or "anderson" with black
        boxes.
    nodes : int, optional
        Represent the coupling forces in each window by one polynomial through this many points.  By default
        they are piecewise linear between the sub-steps if all solvers are those of the paper, as there, and a
        polynomial through 6 points otherwise.
    rtol, atol : float
        An iteration has converged when no position and no λ changes by more than ``atol + rtol * size``.
        (The paper: rtol = 0, atol = ε₀.)
    max_iterations : int
        A window that needs more iterations is halved.
    iterations : int, optional
        Perform exactly this many iterations in each window, whether they converge or not.
    projection : bool
        Project positions and velocities onto all constraints at the end of each window.
    threads : bool
        Solve the subsystems in parallel threads.  The results are identical.
    check : bool
        Refuse an update that will diverge, judged by its contraction rate at the initial state.

    Examples
    --------
    >>> import holonome as hn
    >>> solvers = {"x": "euler", "y": "trapezoidal"}
    >>> hn.LocalIteration(window=0.1, solvers=solvers, substeps={"x": 50, "y": 10}).window
    0.1
    """

    window: float
    substeps: int | Mapping[str, int] = 10
    solvers: Any = "trapezoidal"
    update: str | Mapping[str, float] | None = None
    nodes: int | None = None
    rtol: float = 1e-10
    atol: float = 1e-12
    max_iterations: int = 50
    iterations: int | None = None
    projection: bool = True
    threads: bool = False
    check: bool = True

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rtol == 0 == self.atol and self.iterations is None:
            raise ValueError("atol: 0 together with rtol=0; one of them must be positive")


def solve_coupled(
    coupled: CoupledSystem,
    t_span: Sequence[float],
    q0: Any,
    v0: Any = None,
    *,
    method: LocalIteration,
    t_eval: Any = None,
    repair: bool = False,
    progress: bool | Callable[[float], None] = False,
) -> CoupledSolution:
    """Simulate a coupled system, each subsystem on its own, by local iteration.

    Parameters
    ----------
    coupled
        The coupled system.
    t_span
        Initial and final time.
    q0, v0
        Initial positions and velocities (v0=None: at rest): a dict by the names of the subsystems, or one
        vector for all of them.
    method
        Windows, solvers and update.
    t_eval
        Times at which the solution is wanted, by default the ends of the windows.
    repair
        Accept initial values that are far from the constraints and start from nearby consistent ones.
    progress
        True shows a progress bar; a callable is called with the fraction of the time span that is done.

    Returns
    -------
    CoupledSolution

    Examples
    --------
    The model problem of Wang, Hou & Modnak, (16)–(18):

    >>> import holonome as hn
    >>> model = hn.CoupledSystem.linear(
    ...     A=[[[4, 1], [1, 3]], [[5, 2], [2, 4]]],
    ...     B=None,
    ...     C=[[[-2, -1], [-1, -2]], [[-1, -2], [0, -2]]],
    ...     D=[[0, 1], [-2, 0]],
    ...     r=[[6, 7], [10, 4]],
    ... )
    >>> sol = hn.solve_coupled(model, (0, 10), [0, 0, 0, 0], method=hn.LocalIteration(window=0.1))
    >>> sol.success, bool(abs(sol.q["x"][1, -1] - 2 * sol.q["y"][0, -1]) < 1e-10)
    (True, True)
    """
    announce_first_use()
    if not isinstance(coupled, CoupledSystem):
        raise TypeError(
            f"coupled: {shown(coupled)} is not an hn.CoupledSystem"
            + ("; use hn.solve" if isinstance(coupled, System) else "")
        )
    if not isinstance(method, LocalIteration):
        raise TypeError(
            f"method: {shown(method)} is not an hn.LocalIteration; give hn.LocalIteration(window=...)"
        )
    repair, progress = checked("repair", repair), checked("progress", progress)
    t0, t1 = time_span(t_span)
    q = state_vector("q0", q0, coupled)
    v = np.zeros(coupled.n) if v0 is None else state_vector("v0", v0, coupled)
    times = None if t_eval is None else wanted_times(t_eval, t0, t1)
    with (
        Interruption(),
        ThreadPoolExecutor(len(coupled.subsystems)) if method.threads else nullcontext() as pool,
        ProgressDisplay(progress, "simulating") as show,
    ):
        return Run(coupled, method, (t0, t1), q, v, repair, pool).solve(times, show)

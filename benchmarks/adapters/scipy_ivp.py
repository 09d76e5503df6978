"""SciPy's solve_ivp on the underlying ODE: DOP853, and Radau with the exact Jacobian.

The accelerations are C code of CasADi, compiled by gcc and wrapped by Numba, which is faster than anything
written in NumPy. Nothing holds the constraints, so the solution drifts.
"""

from __future__ import annotations

import numpy as np
import scipy
from scipy.integrate import solve_ivp

from harness.protocol import Code, Functions, Outcome, Problem, require_accelerations, timed


def version() -> str:
    return scipy.__version__


def codes(problem: Problem) -> dict[str, Code]:
    require_accelerations(problem)
    functions = Functions(problem)

    def code(method: str, **options) -> Code:
        def run(tolerance: float, **more):
            return solve_ivp(
                functions.derivative,
                (0.0, problem.end),
                problem.y0,
                method,
                rtol=max(tolerance, 1e-13),
                atol=tolerance,
                **options,
                **more,
            )

        def solve(tolerance: float) -> Outcome:
            solution, seconds = timed(lambda: run(tolerance))
            return Outcome(
                solution.y[:, -1] if solution.success else None,
                seconds,
                solution.t.size - 1,
                solution.nfev,
                "" if solution.success else solution.message,
            )

        def states(tolerance: float, times: np.ndarray | None) -> np.ndarray:
            return run(tolerance, t_eval=times).y.T

        return Code(solve, states)

    return {
        "solve_ivp DOP853": code("DOP853"),
        "solve_ivp Radau": code("Radau", jac=functions.derivative_jacobian),
    }

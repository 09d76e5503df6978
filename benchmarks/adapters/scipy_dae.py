"""scipy_dae: Radau IIA of order 5 and BDF, on the form GGL, with the exact matrices.

Residual and matrices are C code of CasADi, compiled by gcc and wrapped by Numba. Algebraic unknowns have the
absolute tolerance 1e6: `var_index`, which its documentation gives for scaling their errors, "is not
implemented yet". For smooth motion so have the velocities; Radau is damping by itself, BDF has the order 2 at
most.
"""

from __future__ import annotations

from importlib.metadata import version as installed

import numpy as np
from scipy_dae.integrate import solve_dae

from harness.protocol import CannotState, Code, Functions, Outcome, Problem, timed

UNTESTED = 1e6


def version() -> str:
    return installed("scipy_dae")


def codes(problem: Problem) -> dict[str, Code]:
    if not problem.forms:
        raise CannotState(
            "the equations of long chains were not written out"
            if problem.links
            else "no constraints, so no differential-algebraic form"
        )
    functions, data, smooth = Functions(problem), problem.forms["ggl"], problem.motion == "smooth"
    residual, matrix = functions.residual("ggl"), functions.matrix("ggl")

    def jacobian(t, y, yp, f=None):
        of_y = matrix(t, y, yp, 0.0)
        return of_y, matrix(t, y, yp, 1.0) - of_y

    def code(method: str, **options) -> Code:
        def run(tolerance: float, **more):
            atol = np.array([tolerance, UNTESTED if smooth else tolerance, UNTESTED])[data.kinds]
            return solve_dae(
                residual,
                (0.0, problem.end),
                data.Y0,
                data.dY0,
                method=method,
                rtol=tolerance,
                atol=atol,
                jac=jacobian,
                **options,
                **more,
            )

        def solve(tolerance: float) -> Outcome:
            solution, seconds = timed(lambda: run(tolerance))
            state = solution.y[: problem.states, -1] if solution.success else None
            return Outcome(
                state,
                seconds,
                solution.t.size - 1,
                solution.nfev,
                "" if solution.success else solution.message,
            )

        def states(tolerance: float, times: np.ndarray | None) -> np.ndarray:
            return run(tolerance, t_eval=times).y[: problem.states].T

        return Code(solve, states)

    return {"Radau": code("Radau"), "BDF": code("BDF", **({"max_order": 2} if smooth else {}))}

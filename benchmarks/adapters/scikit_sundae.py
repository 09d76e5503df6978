"""scikit-sundae: IDA from Python, on the forms of index 2 and GGL, with dense LU and the exact matrix.

Residual and matrix are C code of CasADi, compiled by gcc and wrapped by Numba. Settings as for IDA in C
("tuned"): algebraic unknowns are marked, which also takes them out of the error test, and have the absolute
tolerance 1e6, which keeps them out of the Newton test; for smooth motion so have the velocities, and the
order is 2 at most. Its Newton bound cannot be chosen.
"""

from __future__ import annotations

import numpy as np
import sksundae

from harness.protocol import CannotState, Code, Functions, Outcome, Problem, timed

UNTESTED = 1e6


def version() -> str:
    return sksundae.__version__


def codes(problem: Problem) -> dict[str, Code]:
    if not problem.forms:
        raise CannotState(
            "the equations of long chains were not written out; see IDA in C"
            if problem.links
            else "no constraints, so no differential-algebraic form"
        )
    functions = Functions(problem)

    def code(form: str) -> Code:
        data = problem.forms[form]
        residual = functions.residual(form)
        matrix = functions.matrix(form)
        smooth = problem.motion == "smooth"

        def resfn(t, y, yp, res):
            res[:] = residual(t, y, yp)

        def jacfn(t, y, yp, res, cj, JJ):
            JJ[:] = matrix(t, y, yp, cj)

        def run(tolerance: float, times: np.ndarray):
            atol = np.array([tolerance, UNTESTED if smooth else tolerance, UNTESTED])[data.kinds]
            algebraic, order = np.flatnonzero(data.kinds == 2), 2 if smooth else 5
            solver = sksundae.ida.IDA(
                resfn,
                jacfn=jacfn,
                rtol=tolerance,
                atol=atol,
                algebraic_idx=algebraic,
                max_num_steps=1_000_000,
                max_order=order,
            )
            return solver.solve(times, data.Y0, data.dY0)

        def solve(tolerance: float) -> Outcome:
            solution, seconds = timed(lambda: run(tolerance, np.array([0.0, problem.end])))
            state = solution.y[-1, : problem.states] if solution.success else None
            return Outcome(
                state,
                seconds,
                solution.t.size - 1,
                solution.nfev,
                "" if solution.success else str(solution.message),
            )

        def states(tolerance: float, times: np.ndarray | None) -> np.ndarray:
            found = run(
                tolerance, np.array([0.0, problem.end]) if times is None else np.concatenate([[0.0], times])
            )
            return found.y[:, : problem.states] if times is None else found.y[1:, : problem.states]

        return Code(solve, states)

    return {"IDA index 2": code("index2"), "IDA GGL": code("ggl")}

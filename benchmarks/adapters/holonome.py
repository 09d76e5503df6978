"""holonome itself, with its defaults: rtol = atol = the level. The time is that of a whole call of hn.solve()
from Python, which also keeps every step.

For smooth motion it gets ``motion="smooth"`` and nothing else. Chains get BDF on the forms of index 2 and GGL
as well.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import holonome as hn
from harness import problems
from harness.protocol import Code, Outcome, Problem, timed
from holonome.dynamics.kernels import kernels
from holonome.machine.calls import call, pointer

SAME_ODE = hn.Method(hn.CoordinateProjection(hn.UnderlyingODE()), hn.BDF())


def version() -> str:
    return hn.__version__


def codes(problem: Problem) -> dict[str, Code]:
    stated = problems.get(problem.folder.name)
    system = stated.system

    def code(kernel: float = 0.0, **options) -> Code:
        def run(tolerance: float, **more):
            return hn.solve(
                system,
                (0, stated.end),
                stated.q0,
                stated.v0,
                rtol=tolerance,
                atol=tolerance,
                **options,
                **more,
            )

        def solve(tolerance: float) -> Outcome:
            try:
                solution, seconds = timed(lambda: run(tolerance))
            except hn.HolonomeError as error:
                return Outcome(None, 0.0, message=str(error))
            state = np.concatenate([solution.q[:, -1], solution.v[:, -1]])
            return Outcome(
                state if solution.success else None,
                seconds,
                solution.steps,
                solution.nfev,
                "" if solution.success else solution.message,
            )

        def states(tolerance: float, times: np.ndarray | None) -> np.ndarray:
            return run(tolerance, t_eval=times).y.T

        return Code(solve, states, kernel=kernel, compiles=120.0)

    if problem.motion == "smooth":
        return {"smooth": code(motion="smooth")}
    found = {"auto": code(bare_evaluation(system, stated.state0))}
    if problem.rows:
        found |= {method: code(method=method) for method in ("bdf", "index2", "ggl", "radau")}
        if problem.explicit:
            found["bdf on the underlying ODE"] = code(method=SAME_ODE)
    return found


@njit
def repeat(address, y, context, out, count):
    """Call a kernel repeatedly, each time with a state that depends on the last result, as an integrator
    does.
    """
    for _ in range(count):
        call(address, 0.0, pointer(y), pointer(y), pointer(context), pointer(out))
        for i in range(y.size):
            y[i] += 1e-13 * out[i]


def bare_evaluation(system: hn.System, state: np.ndarray) -> float:
    """Seconds for one evaluation of the accelerations."""
    if system.unknowns or system.states:
        return 0.0
    compiled = kernels(system)
    context, out, y = compiled.context(system), np.empty(2 * system.n + 1), state.copy()
    repeat(compiled.derivative, y, context, out, 10)
    count = max(3, 100_000 // system.n)
    return (
        min(timed(lambda: repeat(compiled.derivative, y, context, out, count))[1] for _ in range(5)) / count
    )

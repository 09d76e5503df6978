"""diffrax on the underlying ODE, on the CPU in double precision: Tsit5 and Dopri8 with a PI controller of the step size.

The accelerations are CasADi's instructions written as JAX operations on scalars, which XLA fuses; ``jnp.linalg.solve`` on the saddle-point matrix, as one would write it by hand, is several times slower on these small systems.
The whole solve is one jitted function, compiled once for all tolerances; its compilation shows in the time to the first result only. It is timed until the result is there (block_until_ready).
Nothing holds the constraints, so the solution drifts.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import casadi as ca
import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from harness.protocol import CannotState, Code, Outcome, Problem, timed

jax.config.update("jax_enable_x64", True)

MOST_STEPS = 200_000
MOST_POINTS = 16_384
_OPERATIONS = {
    "OP_ADD": jnp.add, "OP_SUB": jnp.subtract, "OP_MUL": jnp.multiply, "OP_DIV": jnp.divide, "OP_NEG": jnp.negative, "OP_SQ": lambda a: a * a, "OP_TWICE": lambda a: 2.0 * a, "OP_INV": lambda a: 1.0 / a,
    "OP_SIN": jnp.sin, "OP_COS": jnp.cos, "OP_SQRT": jnp.sqrt, "OP_POW": jnp.power, "OP_CONSTPOW": jnp.power, "OP_FABS": jnp.abs, "OP_EXP": jnp.exp, "OP_LOG": jnp.log, "OP_TANH": jnp.tanh, "OP_TAN": jnp.tan,
    "OP_ATAN2": jnp.arctan2, "OP_ASSIGN": lambda a: a, "OP_ATAN": jnp.arctan, "OP_FMAX": jnp.maximum, "OP_FMIN": jnp.minimum,
}
_NAMES = {value: name for name, value in vars(ca).items() if name.startswith("OP_") and isinstance(value, int)}


def version() -> str:
    return f"{diffrax.__version__}, JAX {jax.__version__}"


def codes(problem: Problem) -> dict[str, Code]:
    if not problem.explicit:
        raise CannotState("needs accelerations as a function of the state" + (" (not written out for long chains)" if problem.links else ", but forces depend on λ and on unknowns"))
    function = ca.Function.load(str(problem.folder / "derivative.casadi"))
    term = diffrax.ODETerm(lambda t, y, _: _evaluate(function, t, y))

    def code(solver) -> Code:
        y0 = jnp.asarray(problem.y0)

        @eqx.filter_jit
        def run(tolerance, saveat, most=MOST_STEPS):
            controller = diffrax.PIDController(rtol=tolerance, atol=tolerance, pcoeff=0.3, icoeff=0.4)
            return diffrax.diffeqsolve(term, solver, 0.0, problem.end, None, y0, saveat=saveat, stepsize_controller=controller, max_steps=most, throw=False)

        def solve(tolerance: float) -> Outcome:
            at_end, tolerance = diffrax.SaveAt(t1=True), jnp.asarray(tolerance)
            solution, seconds = timed(lambda: jax.block_until_ready(run(tolerance, at_end)))
            y, good = np.asarray(solution.ys[-1]), bool(solution.result == diffrax.RESULTS.successful)
            message = "" if good and np.all(np.isfinite(y)) else str(diffrax.RESULTS[solution.result]) or "not finite"
            evaluations = (solver.tableau.num_stages - solver.tableau.fsal) * int(solution.stats["num_steps"])
            return Outcome(None if message else y, seconds, int(solution.stats["num_accepted_steps"]), evaluations, message.strip().split("\n")[0])

        def states(tolerance: float, times: np.ndarray | None) -> np.ndarray:
            saveat = diffrax.SaveAt(steps=True) if times is None else diffrax.SaveAt(ts=jnp.asarray(times))
            ys = np.asarray(run(jnp.asarray(tolerance), saveat, MOST_POINTS if times is None else MOST_STEPS).ys)
            return ys[np.all(np.isfinite(ys), axis=1)]

        return Code(solve, states)

    return {"Tsit5": code(diffrax.Tsit5()), "Dopri8": code(diffrax.Dopri8())}


def _evaluate(function: ca.Function, t, y):
    """The instructions of a CasADi function on JAX scalars."""
    work, out = {}, [0.0] * function.numel_out(0)
    for k in range(function.n_instructions()):
        name, to, of = _NAMES[function.instruction_id(k)], function.instruction_output(k), function.instruction_input(k)
        match name:
            case "OP_INPUT":
                work[to[0]] = t if of[0] == 0 else y[of[1]]
            case "OP_OUTPUT":
                out[to[1]] = work[of[0]]
            case "OP_CONST":
                work[to[0]] = function.instruction_constant(k)
            case _:
                work[to[0]] = _OPERATIONS[name](*[work[i] for i in of])
    return jnp.stack([jnp.asarray(value, float) for value in out])

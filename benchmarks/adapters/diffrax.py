"""diffrax on the underlying ODE, on the CPU in double precision: Tsit5 and Dopri8 with a PI controller of the
step size.

The accelerations are CasADi's instructions written as JAX operations on scalars, which XLA fuses: no small
matrices, no calls of LAPACK. On three problems they are also what one would write in JAX, "linear algebra by
JAX": jnp.linalg.solve of M a + Cᵀλ = f, C a = −γ. The whole solve is one jitted function, compiled once for
all tolerances; its compilation shows in the time to the first result only. It is timed until the result is
there (block_until_ready). Nothing holds the constraints, so the solution drifts.
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

from harness.protocol import Code, Outcome, Problem, require_accelerations, timed

jax.config.update("jax_enable_x64", True)

MOST_STEPS = 200_000
AS_ONE_WOULD_WRITE_IT = ("pendulum", "slider_crank", "andrews")
_OPERATIONS = {
    "OP_ADD": jnp.add,
    "OP_SUB": jnp.subtract,
    "OP_MUL": jnp.multiply,
    "OP_DIV": jnp.divide,
    "OP_NEG": jnp.negative,
    "OP_INV": lambda a: 1.0 / a,
    "OP_SQ": lambda a: a * a,
    "OP_TWICE": lambda a: 2.0 * a,
    "OP_SIN": jnp.sin,
    "OP_COS": jnp.cos,
    "OP_SQRT": jnp.sqrt,
    "OP_POW": jnp.power,
    "OP_CONSTPOW": jnp.power,
    "OP_ASSIGN": lambda a: a,
}
_NAMES = {
    value: name for name, value in vars(ca).items() if name.startswith("OP_") and isinstance(value, int)
}


def version() -> str:
    return f"{diffrax.__version__}, JAX {jax.__version__}"


def codes(problem: Problem) -> dict[str, Code]:
    require_accelerations(problem)
    function = ca.Function.load(str(problem.folder / "derivative.casadi"))
    straight = diffrax.ODETerm(lambda t, y, _: _evaluate(function, t, y)[0])

    def code(solver, term=straight) -> Code:
        y0, most = jnp.asarray(problem.y0), MOST_STEPS // 10 if problem.motion == "smooth" else MOST_STEPS

        @eqx.filter_jit
        def run(tolerance, saveat):
            controller = diffrax.PIDController(rtol=tolerance, atol=tolerance, pcoeff=0.3, icoeff=0.4)
            return diffrax.diffeqsolve(
                term,
                solver,
                0.0,
                problem.end,
                None,
                y0,
                saveat=saveat,
                stepsize_controller=controller,
                max_steps=most,
                throw=False,
            )

        def solve(tolerance: float) -> Outcome:
            at_end, tolerance = diffrax.SaveAt(t1=True), jnp.asarray(tolerance)
            solution, seconds = timed(lambda: jax.block_until_ready(run(tolerance, at_end)))
            y, good = np.asarray(solution.ys[-1]), bool(solution.result == diffrax.RESULTS.successful)
            message = (
                ""
                if good and np.all(np.isfinite(y))
                else str(diffrax.RESULTS[solution.result]) or "not finite"
            )
            evaluations = (solver.tableau.num_stages - solver.tableau.fsal) * int(solution.stats["num_steps"])
            return Outcome(
                None if message else y,
                seconds,
                int(solution.stats["num_accepted_steps"]),
                evaluations,
                message.strip().split("\n")[0],
            )

        def states(tolerance: float, times: np.ndarray | None) -> np.ndarray:
            if times is None:
                # It would need another compilation, and show nothing that the times below do not show:
                # without projection, steps are as accurate as dense output.
                return np.empty((0, problem.states))
            return np.asarray(run(jnp.asarray(tolerance), diffrax.SaveAt(ts=jnp.asarray(times))).ys)

        return Code(solve, states, compiles=60.0)

    found = {"Tsit5": code(diffrax.Tsit5()), "Dopri8": code(diffrax.Dopri8())}
    if problem.folder.name in AS_ONE_WOULD_WRITE_IT:
        saddle, n = ca.Function.load(str(problem.folder / "saddle.casadi")), problem.n

        def derivative(t, y, _):
            matrix, right = _evaluate(saddle, t, y)
            return jnp.concatenate(
                [y[n:], jnp.linalg.solve(matrix.reshape(right.size, right.size), right)[:n]]
            )

        found |= {
            f"{name}, linear algebra by JAX": code(solver, diffrax.ODETerm(derivative))
            for name, solver in (("Tsit5", diffrax.Tsit5()), ("Dopri8", diffrax.Dopri8()))
        }
    return found


def _evaluate(function: ca.Function, t, y):
    """The instructions of a CasADi function on JAX scalars."""
    work, out = {}, [[0.0] * function.numel_out(i) for i in range(function.n_out())]
    for k in range(function.n_instructions()):
        name = _NAMES[function.instruction_id(k)]
        to = function.instruction_output(k)
        of = function.instruction_input(k)
        match name:
            case "OP_INPUT":
                work[to[0]] = t if of[0] == 0 else y[of[1]]
            case "OP_OUTPUT":
                out[to[0]][to[1]] = work[of[0]]
            case "OP_CONST":
                work[to[0]] = function.instruction_constant(k)
            case _:
                work[to[0]] = _OPERATIONS[name](*[work[i] for i in of])
    return [jnp.stack([jnp.asarray(value, float) for value in values]) for values in out]

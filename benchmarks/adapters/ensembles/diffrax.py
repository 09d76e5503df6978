"""diffrax on the CPU in double precision: Tsit5 with a PI controller, vmap over all members, one jitted
function (of Dopri8 compilation takes minutes); the operations are on scalars, which XLA fuses.  Nothing holds
the constraints.
"""

from __future__ import annotations

import os
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
sys.path.pop(0)  # this file has the package's name
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

sys.path.insert(0, __file__.rpartition("/")[0])
from talk import BINARY, evaluated, run, unary

jax.config.update("jax_enable_x64", True)


def make(task):
    given = jnp.array(task["p"])

    def rates(t, y, p):
        found = evaluated(task, unary(jnp), BINARY, float, t, y, p)
        return jnp.stack([jnp.asarray(value, float) for value in found])

    def member(value, tolerance):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(rates),
            diffrax.Tsit5(),
            0.0,
            task["end"],
            None,
            jnp.array(task["y0"]),
            args=given.at[task["place"]].set(value),
            stepsize_controller=diffrax.PIDController(
                rtol=tolerance, atol=1e-2 * tolerance, pcoeff=0.3, icoeff=0.4
            ),
            max_steps=None,
            throw=False,
        )
        return solution.ys[-1]

    every = jax.jit(jax.vmap(member, in_axes=(0, None)))
    values = jnp.array(task["values"])
    jax.block_until_ready(every(values, 1e-2))
    return lambda tolerance: np.asarray(jax.block_until_ready(every(values, tolerance)))


run(make)

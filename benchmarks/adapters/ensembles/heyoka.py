"""heyoka's batch mode: Taylor series, as many trajectories in an instruction as it recommends, one integrator
for all of them; the parameter that varies is one of its run-time parameters.  It does not project.
"""

from __future__ import annotations

import sys

sys.path.pop(0)  # this file has the package's name
import heyoka as hy
import numpy as np

sys.path.insert(0, __file__.rpartition("/")[0])
from talk import BINARY, evaluated, run, unary


def make(task):
    size, batch = len(task["y0"]), hy.recommended_simd_size()
    names = [f"y{i}" for i in range(size)]
    y = hy.make_vars(*names)
    p = [hy.expression(float(value)) for value in task["p"]]
    p[task["place"]] = hy.par[0]
    rates = evaluated(task, unary(hy), BINARY, lambda x: hy.expression(float(x)), hy.time, y, p)
    values = np.array(task["values"])
    first = np.repeat(np.array(task["y0"])[:, None], batch, axis=1)
    integrators = {}

    def solve(tolerance):
        if tolerance not in integrators:
            integrators[tolerance] = hy.taylor_adaptive_batch(
                list(zip(y, rates, strict=True)), first.copy(), pars=np.zeros((1, batch)), tol=tolerance
            )
        ta, ends = integrators[tolerance], np.empty((values.size, size))
        for begin in range(0, values.size, batch):
            some = values[begin : begin + batch]
            ta.set_time(0.0)
            ta.state[:] = first
            ta.pars[0, :] = some[-1]
            ta.pars[0, : some.size] = some
            ta.propagate_until(task["end"])
            ends[begin : begin + batch] = ta.state.T[: some.size]
        return ends

    return lambda tolerance: solve(tolerance)


run(make)

"""SciPy's solve_ivp, DOP853, in a process of a pool; Numba compiles the accelerations."""

from __future__ import annotations

import sys

sys.path.pop(0)  # this file has the package's name
import multiprocessing

import numpy as np
from numba import njit
from scipy.integrate import solve_ivp

sys.path.insert(0, __file__.rpartition("/")[0])
from talk import run

TEXT = {"neg": "-{0}", "sq": "{0} * {0}", "twice": "{0} + {0}", "inv": "1.0 / {0}", "add": "{0} + {1}"}
TEXT |= {
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "pow": "{0} ** {1}",
    "constpow": "{0} ** {1}",
}
TASK = {}


def written(task):
    lines, program = ["def rates(t, y, p):", f"    out = np.empty({len(task['y0'])})"], task["program"]
    for i, (name, *given) in enumerate(program["operations"]):
        if name == "input":
            value = "t" if given[0] == 0 else f"{'y_p'[given[0] - 1]}[{given[1]}]"
        elif name == "const":
            value = repr(float(given[0]))
        else:
            value = TEXT.get(name, f"np.{name}({{0}})").format(*[f"x{k}" for k in given])
        lines.append(f"    x{i} = {value}")
    lines += [f"    out[{i}] = x{k}" for i, k in enumerate(program["outputs"][0]["operations"])]
    space = {"np": np}
    exec("\n".join([*lines, "    return out"]), space)
    return njit(error_model="numpy")(space["rates"])


def member(given):
    value, tolerance = given
    p = np.array(TASK["p"])
    p[TASK["place"]] = value
    found = solve_ivp(
        TASK["rates"],
        (0, TASK["end"]),
        TASK["y0"],
        "DOP853",
        t_eval=[TASK["end"]],
        rtol=max(tolerance, 3e-14),
        atol=1e-2 * tolerance,
        args=(p,),
    )
    return found.y[:, -1] if found.success else np.full(len(TASK["y0"]), np.inf)


def make(task):
    TASK.update(task, rates=written(task))
    TASK["rates"](0.0, np.array(task["y0"]), np.array(task["p"]))
    places = sorted({*range(0, len(task["values"]), 10), *task["checked"]})
    pool = multiprocessing.get_context("fork").Pool(1)

    def solve(tolerance):
        ends = np.full((len(task["values"]), len(task["y0"])), np.inf)
        ends[places] = pool.map(member, [(task["values"][i], tolerance) for i in places])
        return ends

    solve.scale = len(task["values"]) / len(places)
    return solve


run(make)

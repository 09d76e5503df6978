"""Taylor series against heyoka's, on the same accelerations, and against dop853, in one run.

    python benchmarks/taylor.py [--peers PYTHON] [--rounds N] [--out FILE] [--quick]

PYTHON is one that has heyoka; without it only ours is measured.  heyoka gets the straight-line program of our
accelerations, operation by operation, with numbers for the parameters; it does not project.  All codes are
asked in turns, and the best of all rounds counts.  For each power of ten the cheapest run with an error below
it is shown.

    us          heyoka: propagate_until of an integrator that exists; ours: reset and advance_to of a
                hn.Simulator, which exists too
    us, solve   a whole call of hn.solve from Python with its result
    compile     seconds that the making of an integrator takes, ours with all of its kernels; no cache
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
os.environ["HOLONOME_CACHE"] = tempfile.mkdtemp()

import casadi as ca  # noqa: E402
import numpy as np  # noqa: E402

import holonome as hn  # noqa: E402
from harness.options import Options, long_stamp  # noqa: E402
from harness.tables import write_rows  # noqa: E402
from holonome.dynamics.kernels import kernels  # noqa: E402
from holonome.equations.program import Program  # noqa: E402

LEVELS = [10.0**-k for k in range(4, 14)]
TOLERANCES = [10.0 ** (-k / 2) for k in range(5, 31)]
PEER = """
import json, sys, time
import heyoka as hy, numpy as np
task = json.loads(sys.stdin.read())
names = [f"y{i}" for i in range(len(task["y0"]))]
y = hy.make_vars(*names) if len(names) > 1 else [hy.make_vars(*names)]
number = lambda x: hy.expression(float(x))
unary = {"neg": lambda a: -a, "sq": lambda a: a * a, "twice": lambda a: a + a, "inv": lambda a: 1.0 / a,
         "sqrt": hy.sqrt, "sin": hy.sin, "cos": hy.cos, "exp": hy.exp, "tan": hy.tan}
binary = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
          "div": lambda a, b: a / b, "pow": lambda a, b: a**b, "constpow": lambda a, b: a**b}
values = []
for name, *given in task["program"]["operations"]:
    if name == "input":
        value = hy.time if given[0] == 0 else y[given[1]] if given[0] == 1 else number(task["p"][given[1]])
    elif name == "const":
        value = number(given[0])
    elif len(given) == 1:
        value = unary[name](values[given[0]])
    else:
        value = binary[name](values[given[0]], values[given[1]])
    values.append(value)
rates = [values[i] for i in task["program"]["outputs"][0]["operations"]]
found = []
for tol in task["tolerances"]:
    began = time.perf_counter()
    ta = hy.taylor_adaptive(list(zip(y, rates)), task["y0"], tol=tol)
    built = time.perf_counter() - began
    best = float("inf")
    for _ in range(task["repeat"]):
        ta.time = 0.0
        ta.state[:] = task["y0"]
        began = time.perf_counter()
        outcome = ta.propagate_until(task["t_end"])
        best = min(best, time.perf_counter() - began)
    found.append([tol, best, ta.state.tolist(), ta.order, outcome[3], built])
print(json.dumps(found))
"""
OPERATIONS = {"input", "const", "neg", "sq", "twice", "inv", "sqrt", "sin", "cos", "exp", "tan"} | {
    "add", "sub", "mul", "div", "pow", "constpow"
}  # fmt: skip


class Problem:
    """A system, its start, and the exact state at the end."""

    def __init__(self, name: str, example: Any, t_end: float, system: Any = None) -> None:
        self.name, self.t_end, self.system = name, t_end, system or example.system
        self.q0, self.v0 = example.q0, example.v0
        began = time.perf_counter()
        hn.solve(self.system, (0, 1e-9), self.q0, self.v0, method="taylor", rtol=1e-10)
        self.compiled = time.perf_counter() - began
        if example.exact is None:
            ends = [
                hn.solve(self.system, (0, t_end), self.q0, self.v0, method=method, rtol=rtol, atol=1e-17)
                for method, rtol in (("dop853", 3e-14), ("taylor", 1e-14))
            ]
            states = [np.concatenate([end.q[:, -1], end.v[:, -1]]) for end in ends]
            print(f"{name}: reference known to {np.max(np.abs(states[0] - states[1])):.1e}")
            self.end = (states[0] + states[1]) / 2
        else:
            q, v, *_ = example.exact(t_end)
            self.end = np.concatenate([q, v]).astype(float)

    def error(self, state: Any) -> float:
        return float(np.max(np.abs(state - self.end) / (1 + np.abs(self.end))))

    def task(self, repeat: int, tolerances: list[float]) -> str:
        """What heyoka is asked."""
        model = self.system.model
        y, z, out, _ = kernels(self.system).motion
        function = ca.Function(
            "f", [model.t, y, z, model.p], [out], ["t", "y", "z", "p"], ["out"], {"cse": True}
        )
        program = Program.of(function)
        assert {name for name, *_ in program.operations} <= OPERATIONS
        return json.dumps(
            {
                "program": program.as_dict(),
                "p": self.system.parameters.flat.tolist(),
                "y0": np.concatenate([self.q0, self.v0]).tolist(),
                "t_end": self.t_end,
                "tolerances": tolerances,
                "repeat": repeat,
            }
        )


def problems(quick: bool) -> list[Problem]:
    free_fall = hn.System(1.0, -9.81, n=1)
    hn.solve(free_fall, (0, 1), [0], [0], method="taylor")  # compiles the engine
    if quick:
        return [Problem("pendulum", hn.mechanisms.pendulum(), 1.0)]
    kepler = hn.mechanisms.kepler()
    free = hn.System(
        np.eye(2),
        lambda q, p: -p.mu * q / (q @ q) ** 1.5,
        parameters={"mu": 1.0},
        names=["x", "y"],
        name="kepler",
    )
    return [
        Problem("pendulum", hn.mechanisms.pendulum(), 10.0),
        Problem("Kepler", kepler, 10 * np.pi, free),
        Problem("Kepler, invariants kept", kepler, 10 * np.pi),
        Problem("double pendulum", hn.mechanisms.double_pendulum(), 5.0),
        Problem("slider-crank", hn.mechanisms.slider_crank(), 0.7),
        Problem("four-bar", hn.mechanisms.four_bar(), 2.0),
        Problem("Andrews", hn.mechanisms.andrews(), 0.03),
    ]


def best_of(repeat: int, call: Any) -> float:
    best = np.inf
    for _ in range(repeat):
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def ours(problem: Problem, method: str, repeat: int, tolerances: list[float]) -> list[dict[str, Any]]:
    found = []
    for rtol in tolerances:
        options = {"method": method, "rtol": rtol, "atol": rtol * 1e-3}
        span, times = (0.0, problem.t_end), [problem.t_end]
        call = lambda: hn.solve(problem.system, span, problem.q0, problem.v0, t_eval=times, **options)  # noqa: E731
        sol = call()
        if not sol.success:
            continue
        sim = hn.Simulator(problem.system, problem.q0, problem.v0, **options)

        def advance(sim: hn.Simulator = sim) -> None:
            sim.reset()
            sim.advance_to(problem.t_end)

        error = problem.error(np.concatenate([sol.q[:, -1], sol.v[:, -1]]))
        row = {"error": error, "us": best_of(repeat, advance), "us, solve": best_of(repeat, call)}
        found.append(row | {"steps": sol.steps})
    return found


def theirs(task: str, problem: Problem, python: str) -> list[dict[str, Any]]:
    run = subprocess.run([python, "-c", PEER], input=task, check=True, capture_output=True, text=True)
    return [
        {"error": problem.error(np.array(state)), "us": seconds, "steps": steps, "built": built}
        for _, seconds, state, _, steps, built in json.loads(run.stdout)
    ]


def main() -> None:
    parser = Options(__doc__, "taylor.csv")
    parser.add_argument("--peers", help="a Python with heyoka")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=10)
    arguments = parser.given()
    tolerances = TOLERANCES
    if arguments.quick:
        arguments.rounds, arguments.repeat, tolerances = 1, 1, TOLERANCES[:10:3]
    rows: list[dict[str, Any]] = []
    for problem in problems(arguments.quick):
        runs: dict[str, list[dict[str, Any]]] = {"taylor": [], "dop853": [], "heyoka": []}
        task = problem.task(arguments.repeat, tolerances)
        for _ in range(arguments.rounds):
            for method in ("taylor", "dop853"):
                runs[method] += ours(problem, method, arguments.repeat, tolerances)
            if arguments.peers:
                runs["heyoka"] += theirs(task, problem, arguments.peers)
        for row in compared(problem, runs):
            rows.append(row | long_stamp())
            print(*row.values(), sep="\t", flush=True)
        write_rows(arguments.out, rows)


def compared(problem: Problem, runs: dict[str, list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """A row for each power of ten."""
    for level in LEVELS:
        row = {"problem": problem.name, "error": f"{level:.0e}"}
        best = {name: cheapest(found, level) for name, found in runs.items()}
        for name, run in best.items():
            row[f"{name}, us"] = microseconds(run, "us")
        for name in ("taylor", "dop853"):
            row[f"{name}, us, solve"] = microseconds(best[name], "us, solve")
        for name in ("heyoka", "dop853"):
            row[f"to {name}"] = ratio(best["taylor"], best[name])
        row["compile, s"] = f"{problem.compiled:.2f}"
        built = max((run["built"] for run in runs["heyoka"]), default=np.nan)
        yield row | {"compile heyoka, s": f"{built:.2f}"}


def cheapest(runs: list[dict[str, Any]], level: float) -> dict[str, Any] | None:
    """The fastest run with an error below a level."""
    return min((run for run in runs if run["error"] <= level), key=lambda run: run["us"], default=None)


def microseconds(run: dict[str, Any] | None, what: str) -> str:
    return "" if run is None else f"{1e6 * run[what]:.1f}"


def ratio(run: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    return "" if run is None or other is None else f"{run['us'] / other['us']:.2f}"


if __name__ == "__main__":
    main()

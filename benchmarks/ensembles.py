"""Throughput of ensembles: lanes against the compiled loop alone and against a Python loop over hn.solve, and
two threads against one, all in one run.

    python benchmarks/ensembles.py [--members N] [--rounds N] [--out FILE] [--quick]

Members differ in one parameter by a percent.  Every code has the same tolerances; the errors, against runs at
a tolerance of 1e-13, say that the work is the same.  "loop" is the time within the compiled loop of solve,
without any Python around it.  Ways take turns, and the best of all rounds counts; times are those of the
processor, so that a machine that is not quite idle will do, but for two threads against one, by the clock.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from datetime import date
from typing import Any
from unittest.mock import patch

import numpy as np

import holonome as hn
from harness.options import Options
from harness.tables import write_rows
from holonome.integrators.runge_kutta import RungeKuttaStepper

PROBLEMS = {
    "pendulum": ("gravity", 10.0),
    "slider_crank": ("gravity", 10.0),
    "four_bar": ("gravity", 10.0),
    "andrews": ("mom", 0.03),
}
RTOL, CHECKED = 1e-6, 8


class Loop:
    """The compiled loop, with a clock."""

    def __init__(self) -> None:
        self.loop, self.spent = RungeKuttaStepper.advance, 0.0

    def __call__(self, *arguments: Any) -> int:
        begin = time.thread_time()
        code = self.loop(*arguments)
        self.spent += time.thread_time() - begin
        return code


def took(action: Callable[[], Any], clock: Callable[[], float] = time.thread_time) -> float:
    begin = clock()
    action()
    return clock() - begin


def measure(name: str, members: int, rounds: int) -> dict[str, Any]:
    """Microseconds for a member, by each way, and ratios."""
    parameter, end = PROBLEMS[name]
    made = getattr(hn.mechanisms, name)()
    values = made.system.parameters[parameter] * np.linspace(1.0, 1.01, members)
    loop = Loop()

    def solve(value: float, rtol: float = RTOL) -> hn.Solution:
        changed = {parameter: float(value)}
        return hn.solve(made.system, (0, end), made.q0, made.v0, parameters=changed, rtol=rtol, t_eval=[end])

    few = values[:: max(1, members // 40)]

    def inside() -> float:
        loop.spent = 0.0
        for value in few:
            solve(value)
        return loop.spent

    def study(threads: int) -> Any:
        return hn.ensemble(
            made.system, (0, end), made.q0, made.v0, over={parameter: values}, threads=threads, rtol=RTOL
        )

    one, two = study(1), study(2)
    ds = one.run()
    best: dict[str, float] = dict.fromkeys(
        ("solve", "loop", "one", "one_by_clock", "two_by_clock", "two_work"), np.inf
    )
    for _ in range(rounds):
        best["solve"] = min(best["solve"], took(lambda: [solve(value) for value in few]) / len(few))
        with patch.object(RungeKuttaStepper, "advance", staticmethod(loop)):
            best["loop"] = min(best["loop"], inside() / len(few))
        best["one"] = min(best["one"], took(one.run) / members)
        for way, e in (("one", one), ("two", two)):
            key = f"{way}_by_clock"
            best[key] = min(best[key], took(e.run, time.perf_counter) / members)
        best["two_work"] = min(best["two_work"], took(two.run, time.process_time) / members)
    errors = []
    for member in range(0, members, max(1, members // CHECKED)):
        exact, ours = solve(values[member], 1e-13).q[:, -1], solve(values[member]).q[:, -1]
        errors.append([np.max(np.abs(found - exact)) for found in (ds.q.values[member], ours)])
    row = {"problem": name, "members": members} | {f"{way}_us": 1e6 * t for way, t in best.items()}
    row |= {
        "loop_by_lanes": best["loop"] / best["one"],
        "solve_by_lanes": best["solve"] / best["one"],
        "two_threads_by_one": best["one_by_clock"] / best["two_by_clock"],
        "work_of_two_threads": best["two_work"] / best["one"],
    }
    row["error_lanes"], row["error_solve"] = np.max(errors, axis=0)
    return row


def main() -> None:
    parser = Options(__doc__, "ensembles.csv")
    parser.add_argument("--members", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.given()
    members, rounds = (16, 1) if options.quick else (options.members, options.rounds)
    rows = []
    for name in list(PROBLEMS)[: 1 if options.quick else None]:
        row = measure(name, members, rounds)
        print({key: value if isinstance(value, str) else float(f"{value:.3g}") for key, value in row.items()})
        rows.append(row | {"machine": platform.processor() or platform.machine(), "date": date.today()})
    write_rows(options.out, rows)


if __name__ == "__main__":
    main()

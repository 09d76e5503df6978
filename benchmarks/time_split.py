"""Where the time of one call of hn.solve() goes: the compiled loop, its evaluations of the accelerations
alone, and Python around it.

    python benchmarks/time_split.py [--out FILE] [--quick]

Best of 1500 calls each, in microseconds, with "auto" and rtol = atol, on pendulum, slider-crank (10 s) and
Andrews' mechanism (0.03 s). Run it on an idle machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from unittest.mock import patch

import numpy as np

import holonome as hn
from adapters.holonome import bare_evaluation
from harness.options import Options, stamp
from harness.tables import write_rows
from holonome.integrators.runge_kutta import RungeKuttaStepper

MECHANISMS, TOLERANCES, REPEATS = ("pendulum", "slider_crank_unequal", "andrews"), (1e-4, 3e-6, 1e-6), 1500


def best(action: Callable[[], float], repeats: int) -> float:
    return 1e6 * min(action() for _ in range(repeats))


class Loop:
    """The compiled loop, with a clock."""

    def __init__(self) -> None:
        self.loop, self.spent = RungeKuttaStepper.advance, 0.0

    def __call__(self, *arguments) -> int:
        begin = time.perf_counter()
        code = self.loop(*arguments)
        self.spent += time.perf_counter() - begin
        return code


def measure(name: str, tolerance: float, repeats: int) -> dict:
    mechanism, loop = hn.mechanisms.get(name), Loop()

    def solve() -> hn.Solution:
        return hn.solve(
            mechanism.system, mechanism.t_span, mechanism.q0, mechanism.v0, rtol=tolerance, atol=tolerance
        )

    def whole() -> float:
        begin = time.perf_counter()
        solve()
        return time.perf_counter() - begin

    def inside() -> float:
        loop.spent = 0.0
        solve()
        return loop.spent

    sol, call = solve(), best(whole, repeats)
    with patch.object(RungeKuttaStepper, "advance", staticmethod(loop)):
        compiled = best(inside, repeats)
    evaluation = min(
        bare_evaluation(mechanism.system, np.concatenate([mechanism.q0, mechanism.v0])) for _ in range(5)
    )
    return {
        "mechanism": name,
        "tolerance": tolerance,
        "steps": sol.steps,
        "evaluations": sol.nfev,
        "call_us": f"{call:.1f}",
        "loop_us": f"{compiled:.1f}",
        "evaluations_us": f"{1e6 * evaluation * sol.nfev:.1f}",
        "evaluation_ns": f"{1e9 * evaluation:.1f}",
    } | stamp()


def main() -> None:
    arguments = Options(__doc__, "time_split.csv").given()
    names, repeats = (MECHANISMS[:1], 2) if arguments.quick else (MECHANISMS, REPEATS)
    found = []
    for name in names:
        for tolerance in TOLERANCES:
            found.append(measure(name, tolerance, repeats))
            print(", ".join(f"{key} {value}" for key, value in list(found[-1].items())[:8]), flush=True)
    write_rows(arguments.out, found)


if __name__ == "__main__":
    main()

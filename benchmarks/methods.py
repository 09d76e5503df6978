"""Our methods against each other, by class of problem: what each costs for a given error, and how well the
constraints hold.

    python benchmarks/methods.py [--out FILE] [--quick]

Problems: pendulum, slider-crank and four-bar linkage (10 s, nothing stiff), Andrews' mechanism (0.03 s), the
slider-crank with equal bars through its singular positions (10 s), and a rod in a bushing with stiffness 1e8
and damping 1e4, started at rest off its slow motion (5 s, stiff). The error is the largest |y − y_ref| / (1 +
|y_ref|) over positions and velocities at the end; the reference is "dop853" at 1e-13. Each method runs at
rtol = atol = 1e-3 … 1e-11; for each target the run with the fewest evaluations that meets it is shown, with
the shortest of 3 to 50 times. A method that meets no target within 300 000 steps has no row for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np

import holonome as hn
from harness.options import Options, stamp
from harness.tables import write_rows

TARGETS, TOLERANCES, MOST_STEPS = (1e-4, 1e-6), [10.0**-k for k in range(3, 12)], 300_000
METHODS = ("auto", *(name for name, entry in hn.methods().items() if not entry.fixed_step))


def rod() -> tuple:
    def end(q):
        return np.array([q[0] - np.sin(q[2]) / 2, q[1] + np.cos(q[2]) / 2])

    system = hn.System(
        [1.0, 1.0, 1 / 12],
        [0.0, -9.81, 0.0],
        elastic=hn.Elastic(end, stiffness=1e8, damping=1e4),
        names=["x", "y", "angle"],
    )
    return system, (0.0, 5.0), np.array([0.5, 0.0, np.pi / 2]), np.zeros(3)


MECHANISMS = ("pendulum", "slider_crank_unequal", "four_bar", "andrews", "slider_crank")


def problems(names: Iterable[str] = MECHANISMS) -> dict[str, tuple]:
    found = {}
    for name in names:
        mechanism = hn.mechanisms.get(name)
        found[name] = mechanism.system, (0.0, 0.03 if name == "andrews" else 10.0), mechanism.q0, mechanism.v0
    return found | {"rod in a stiff bushing": rod()}


def study(name: str, problem: tuple, methods: Iterable[str] = METHODS) -> list[dict]:
    def run(method: str, rtol: float) -> hn.Solution:
        return hn.solve(
            *problem, method=method, rtol=rtol, atol=rtol, max_steps=MOST_STEPS, t_eval=[problem[1][1]]
        )

    reference = hn.solve(*problem, method="dop853", rtol=1e-13, atol=1e-13, t_eval=[problem[1][1]]).y[:, -1]
    rows = []
    for method in methods:
        left, runs = list(TARGETS), []
        for rtol in TOLERANCES:
            try:
                sol = run(method, rtol)
            except ValueError as error:
                print(f"{name:24s} {method:10s} {error}")
                break
            error = (
                float(np.max(np.abs(sol.y[:, -1] - reference) / (1 + np.abs(reference))))
                if sol.success
                else np.inf
            )
            runs.append((rtol, error, sol))
            left = [target for target in left if error > target]
            if not left or (not sol.success and rtol < 1e-6):
                break
        for target in TARGETS:
            good = [entry for entry in runs if entry[1] <= target]
            if not good:
                continue
            rtol, error, sol = min(good, key=lambda entry: entry[2].nfev)
            first = _seconds(run, method, rtol)
            seconds = min(_seconds(run, method, rtol) for _ in range(int(np.clip(0.2 / first, 3, 50))))
            full = hn.solve(*problem, method=method, rtol=rtol, atol=rtol, max_steps=MOST_STEPS)
            rows.append(
                {
                    "problem": name,
                    "method": method,
                    "target": target,
                    "rtol": rtol,
                    "error": f"{error:.2e}",
                    "steps": sol.steps,
                    "evaluations": sol.nfev,
                    "microseconds": round(1e6 * seconds),
                    "largest_g": f"{full.drift[0]:.1e}",
                    "largest_gv": f"{full.drift[1]:.1e}",
                }
                | stamp()
            )
            print(
                f"{name:24s} {method:10s} {target:g}: rtol {rtol:g}, {sol.steps} steps, {sol.nfev} "
                f"evaluations, {1e6 * seconds:.0f} µs, |g| {full.drift[0]:.1e}",
                flush=True,
            )
    return rows


def _seconds(run, method: str, rtol: float) -> float:
    begin = time.perf_counter()
    run(method, rtol)
    return time.perf_counter() - begin


def main() -> None:
    arguments = Options(__doc__, "methods.csv").given()
    if arguments.quick:
        rows = study("pendulum", problems(("pendulum",))["pendulum"], ("auto", "ggl"))
    else:
        rows = [row for name, problem in problems().items() for row in study(name, problem)]
    write_rows(arguments.out, rows)


if __name__ == "__main__":
    main()

"""What a step of fixed size costs, in units of one evaluation of the accelerations, by RATTLE, its
composition of order 8, generalised α, BDF and Heun's method.

    python benchmarks/fixed_steps.py [--out FILE] [--quick] [--long]

With --long, one run of RATTLE instead: 10⁸ steps of a pendulum (10⁶ with --quick), and the band in which
its energy stays; some minutes, in memory that does not grow. All take the same number of steps from the
same start, in turns; the best of all rounds counts, as it does for the bare evaluation.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import holonome as hn
from adapters.holonome import bare_evaluation
from harness.options import Options, stamp
from harness.tables import write_rows

STEPS, REPEATS = 20_000, 5
METHODS = {
    "rattle": hn.Method(hn.Hamiltonian(), hn.Rattle()),
    "rattle8": hn.Method(hn.Hamiltonian(), hn.Rattle(order=8)),
    "gen-alpha": hn.Method(hn.Index3(), hn.GeneralizedAlpha()),
    "gen-alpha-ggl": hn.Method(hn.GGL(), hn.GeneralizedAlpha()),
    "ggl, order 2": hn.Method(hn.GGL(), hn.BDF(max_order=2)),
    "heun": hn.Method(hn.UnderlyingODE(), hn.RungeKutta("heun")),
}
SPANS = {"kepler": 40.0, "pendulum": 200.0, "double_pendulum": 100.0, "slider_crank": 10.0, "four_bar": 10.0}


def seconds(system: hn.System, q0: Any, v0: Any, method: hn.Method, end: float, steps: int) -> float:
    """Seconds of a step."""
    begin = time.process_time()
    sol = hn.solve(
        system, (0, end), q0, v0, method=method, step=end / steps, t_eval=[end], max_steps=steps + 1
    )
    assert sol.success, sol
    return (time.process_time() - begin) / steps


def problem(name: str) -> tuple[hn.System, Any, Any]:
    """RATTLE holds no invariants by projection, so Kepler's problem is stated without them."""
    if name == "kepler":
        return hn.System(np.eye(2), lambda q: -q / np.sqrt(q @ q) ** 3), [0.4, 0.0], [0.0, 2.0]
    given = hn.mechanisms.get(name)
    return given.system, given.q0, given.v0


def long_run(steps: int) -> None:
    """The energy of a pendulum over so many steps of 0.01 s, at a thousand of them."""
    system, q0, v0 = problem("pendulum")
    end, begin = 0.01 * steps, time.process_time()
    sol = hn.solve(
        system,
        (0, end),
        q0,
        v0,
        method="rattle",
        step=0.01,
        t_eval=np.linspace(0, end, 1001),
        max_steps=steps + 1,
        keep_steps=False,
    )
    assert sol.success, sol
    seconds, halves = time.process_time() - begin, np.split(sol.energy[1:] - sol.energy[0], 2)
    bands = [f"{np.min(half):.2e} … {np.max(half):.2e}" for half in halves]
    print(f"{sol.steps} steps in {seconds:.1f} s, {1e9 * seconds / sol.steps:.0f} ns each")
    print(f"energy {sol.energy[0]:.6g}, off by {bands[0]} in the first half, {bands[1]} in the second")
    print(f"constraints hold to {sol.drift[0]:.1e}, {sol.drift[1]:.1e}")


def main() -> None:
    options = Options(__doc__, "fixed_steps.csv")
    options.add_argument("--long", action="store_true", help="10⁸ steps of RATTLE on a pendulum")
    arguments = options.given()
    if arguments.long:
        long_run(10**6 if arguments.quick else 10**8)
        return
    names, steps, repeats = list(SPANS), STEPS, REPEATS
    if arguments.quick:
        names, steps, repeats = ["kepler"], STEPS // 100, 1
    rows = []
    for name in names:
        end = SPANS[name] * steps / STEPS
        system, q0, v0 = problem(name)
        bare = bare_evaluation(system, np.concatenate([q0, v0]))
        rounds = [
            [seconds(system, q0, v0, method, end, steps) for method in METHODS.values()]
            for _ in range(repeats + 1)
        ]
        for label, step in zip(METHODS, np.min(rounds[1:], axis=0), strict=True):
            rows.append(
                {
                    "mechanism": name,
                    "method": label,
                    "step_in_evaluations": round(step / bare, 1),
                    "ns_per_step": round(step * 1e9),
                }
                | stamp()
            )
            print(f"{name:16} {label:14} {step / bare:6.1f} evaluations, {step * 1e9:7.0f} ns a step")
    write_rows(arguments.out, rows)


if __name__ == "__main__":
    main()

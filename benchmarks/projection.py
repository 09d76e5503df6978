"""What the projection costs: a step of BDF on index 1 with and without it, at the same constant steps.

    python benchmarks/projection.py [--out FILE] [--quick]

Medians of alternating runs; the ratio of each pair of runs is taken, so that the load of the machine cancels.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import holonome as hn
from harness.options import Options, stamp
from harness.tables import write_rows

MECHANISMS = ("pendulum", "slider_crank_unequal", "andrews")
STEPS, REPEATS = 2000, 41
FORMULATIONS = {
    "index 1": hn.Index1(),
    "projected": hn.CoordinateProjection(),
    "projected, euclidean": hn.CoordinateProjection(metric="euclidean"),
    "projected, relaxed": hn.CoordinateProjection(relaxed=True),
}


def seconds(mechanism: Any, formulation: hn.Formulation, steps: int) -> float:
    end = mechanism.t_span[1]
    method = hn.Method(formulation, hn.BDF(step=end / steps))
    start = mechanism.q0, mechanism.v0
    begin = time.perf_counter()
    hn.solve(mechanism.system, (0, end), *start, method=method, rtol=1e-6, atol=1e-6, t_eval=[0.0])
    return time.perf_counter() - begin


def main() -> None:
    arguments = Options(__doc__, "projection.csv").given()
    names, steps, repeats = (MECHANISMS[:1], 50, 1) if arguments.quick else (MECHANISMS, STEPS, REPEATS)
    rows = []
    for name in names:
        mechanism = hn.mechanisms.get(name)
        rounds = [
            [seconds(mechanism, formulation, steps) for formulation in FORMULATIONS.values()]
            for _ in range(repeats + 1)
        ]
        taken = np.array(rounds[1:])
        for label, own in zip(FORMULATIONS, taken.T, strict=True):
            share = float(np.median(1 - taken[:, 0] / own))
            rows.append(
                {
                    "mechanism": name,
                    "formulation": label,
                    "ns_per_step": round(float(np.median(own)) / steps * 1e9),
                    "share_of_projection": round(share, 3),
                }
                | stamp()
            )
            step = rows[-1]["ns_per_step"]
            print(f"{name:22s} {label:22s} {step:6d} ns a step, projection {share:6.1%} of it")
    write_rows(arguments.out, rows)


if __name__ == "__main__":
    main()

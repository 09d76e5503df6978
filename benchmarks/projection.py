"""What the projection costs: a step of BDF on index 1 with and without it, at the same constant steps.

    python benchmarks/projection.py [--out benchmarks/results/projection.csv]

Medians of alternating runs; the ratio of each pair of runs is taken, so that the load of the machine cancels.
"""

from __future__ import annotations

import argparse
import platform
import time
from datetime import date
from pathlib import Path

import numpy as np

import holonome as hn
from harness.tables import write_rows

STEPS, REPEATS = 2000, 41
FORMULATIONS = {
    "index 1": hn.Index1(),
    "projected": hn.CoordinateProjection(),
    "projected, euclidean": hn.CoordinateProjection(metric="euclidean"),
    "projected, relaxed": hn.CoordinateProjection(relaxed=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "projection.csv")
    arguments = parser.parse_args()
    rows = []
    for name in ("pendulum", "slider_crank_unequal", "andrews"):
        mechanism = hn.mechanisms.get(name)
        end, seconds = mechanism.t_span[1], {label: [] for label in FORMULATIONS}
        for _ in range(REPEATS + 1):
            for label, formulation in FORMULATIONS.items():
                begin = time.perf_counter()
                hn.solve(
                    mechanism.system,
                    (0, end),
                    mechanism.q0,
                    mechanism.v0,
                    method=hn.Method(formulation, hn.BDF(step=end / STEPS)),
                    rtol=1e-6,
                    atol=1e-6,
                    t_eval=[0.0],
                )
                seconds[label].append(time.perf_counter() - begin)
        plain = np.array(seconds["index 1"][1:])
        for label in FORMULATIONS:
            own = np.array(seconds[label][1:])
            share = float(np.median(1 - plain / own))
            rows.append(
                {
                    "mechanism": name,
                    "formulation": label,
                    "ns_per_step": round(float(np.median(own)) / STEPS * 1e9),
                    "share_of_projection": round(share, 3),
                    "date": date.today().isoformat(),
                    "machine": platform.machine(),
                    "holonome": hn.__version__,
                }
            )
            print(
                f"{name:22s} {label:22s} {rows[-1]['ns_per_step']:6d} ns a step, projection {share:6.1%} of "
                "it"
            )
    write_rows(arguments.out, rows)


if __name__ == "__main__":
    main()

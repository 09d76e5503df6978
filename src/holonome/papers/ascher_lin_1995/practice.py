"""The methods of this package on a mechanism that passes singular positions, from random starts."""

from __future__ import annotations

import numpy as np

import holonome as hn
from holonome.papers.ascher_lin_1995.runs import PAPER
from holonome.papers.paper import Progress
from holonome.papers.table import Table
from holonome.papers.verdict import NOT_PUBLISHED, Band, Claim, Row

RUNS = {
    "auto": (60, "auto"),
    "BDF with projection": (20, "bdf"),
    "SRM on BDF": (6, hn.Method(hn.SRM(variant="singular"), hn.BDF())),
    "srm": (4, "srm"),
}
"""Methods, and from how many starts."""


@PAPER.experiment("random-starts", "the slider-crank from random starts, rtol 1e-8")
def random_starts(progress: Progress) -> Table:
    """
    The slider-crank with equal bars for 3 s, from random angles and velocities and with random first steps,
    by four methods of this package, rtol = atol = 1e-8: whether the motion stays on its branch, φ₁ + φ₂ = 2π,
    and by how much the energy changes, relative to the largest kinetic energy.
    """
    system, rows = hn.mechanisms.slider_crank().system, []
    inertia = np.array([1.0, 1.0, 1 / 12, 1.0, 1.0, 1 / 12])
    for name, (count, method) in RUNS.items():
        random = np.random.default_rng(1)
        steps, changes, passages, left = [], [], 0, 0
        for i in range(count):
            progress((len(rows) + i / count) / len(RUNS), name)
            start = hn.mechanisms.slider_crank(
                phi1=float(random.uniform(0, 2 * np.pi)), omega1=float(random.uniform(-3, 3))
            )
            first = float(10 ** random.uniform(-6, -2))
            run = hn.solve(
                system, (0, 3), start.q0, start.v0, method=method, rtol=1e-8, atol=1e-8, first_step=first
            )
            assert run.energy is not None
            kinetic = 0.5 * np.max(np.sum(inertia[:, None] * run.v**2, axis=0))
            branch = np.abs(np.angle(np.exp(1j * (run.q[2] + run.q[5]))))
            left += not run.success or float(np.max(branch)) > 1e-3
            changes.append(float(np.max(np.abs(run.energy - run.energy[0])) / kinetic))
            steps.append(run.steps)
            passages += int(np.sum(np.diff(np.sign(np.cos(run.q[2]))) != 0))
        found = {
            "starts": count,
            "passages": passages,
            "left": left,
            "steps": float(np.mean(steps)),
            "energy": max(changes),
        }
        rows.append(Row({"method": name}, {}, found, NOT_PUBLISHED))
    by = {row.case["method"]: row.measured for row in rows}
    return Table(
        rows=rows,
        shown=("steps",),
        symbols={
            "passages": "of a singular position",
            "left": "runs that leave their branch",
            "steps": "on average",
            "energy": "largest change over the largest kinetic energy",
        },
        claims=[
            Claim.ours(
                "All four stay on their branch; explicit methods with projection take the fewest steps, and "
                "keep the energy better than BDF.",
                [
                    Band("runs that leave", sum(row["left"] for row in by.values()), high=0),
                    Band(
                        "steps of the others over those of auto",
                        min(row["steps"] for name, row in by.items() if name != "auto") / by["auto"]["steps"],
                        3,
                    ),
                    Band(
                        "energy of auto over that of BDF",
                        by["auto"]["energy"] / by["BDF with projection"]["energy"],
                        high=0.5,
                    ),
                ],
                f"{sum(row['passages'] for row in by.values())} passages; "
                + ", ".join(
                    f"{name} {row['steps']:.0f} steps, energy to {row['energy']:.0e}"
                    for name, row in by.items()
                )
                + ".",
            )
        ],
    )

"""(1.5): generalised coordinate partitioning, which the introduction sets beside coordinate splitting."""

from __future__ import annotations

import numpy as np

import holonome as hn
from holonome.papers.paper import Progress
from holonome.papers.table import Table
from holonome.papers.verdict import NOT_PUBLISHED, Band, Claim, Row
from holonome.papers.yen_petzold_1996.runs import PAPER, SYMBOLS, counts

_START = {"q0": [0.6, -0.8], "v0": [0.0, 0.0]}
_TOLERANCES = (1e-4, 1e-6, 1e-8)


def _operations(system: hn.System, formulation: hn.Formulation) -> int:
    """Of an iteration and a factorization together."""
    kernels = formulation.kernels(system)
    for what in ("F", "block", "factors", "solution"):
        getattr(kernels, what)  # compiles them, after which their lengths are known
    return sum(kernels.instructions)


def _spring() -> hn.System:
    """A point on the unit circle that a spring of stiffness 1e4 holds at 45° below the horizontal."""
    anchor = np.array([1.0, -1.0]) / np.sqrt(2)
    return hn.System(np.eye(2), lambda q: -1e4 * (q - 0.9 * anchor), lambda q: q @ q - 1, names=["x", "y"])


@PAPER.experiment("equation-1.5", "generalised coordinate partitioning beside CS")
def equation_1_5(progress: Progress) -> Table:
    """
    A pendulum that stays below the horizontal, and a point on a circle with a stiff spring, by (1.5) with y
    as the dependent coordinate, and by CS: medians of the counts over five tolerances within 1 %, and the
    error of the positions at the end. Then the scalar operations of one iteration and one factorization,
    those of the split not counted.
    """
    pendulum = hn.mechanisms.pendulum().system
    forms = {"(1.5)": hn.CoordinatePartitioning(["y"]), "CS": hn.CoordinateSplit("CS")}
    rows, steps, errors = [], {name: [] for name in forms}, {name: [] for name in forms}
    for problem, system, end in (("pendulum", pendulum, 5.0), ("stiff spring", _spring(), 1.0)):
        reference = hn.solve(system, (0, end), **_START, rtol=1e-12, atol=1e-13).q[:, -1]
        for tolerance in _TOLERANCES:
            progress(len(rows) / 14, f"{problem}, TOL {tolerance:g}")
            for name, formulation in forms.items():
                method = hn.Method(formulation, hn.BDF.dassl())
                runs = [
                    hn.solve(system, (0, end), **_START, method=method, rtol=close, atol=close)
                    for close in tolerance * (1 + np.arange(5) / 500)
                ]
                found = {key: float(np.median([counts(run)[key] for run in runs])) for key in counts(runs[0])}
                error = float(np.median([np.max(np.abs(run.q[:, -1] - reference)) for run in runs]))
                steps[name].append(found["steps"])
                errors[name].append(error)
                case = {"problem": problem, "TOL": f"{tolerance:g}", "method": name}
                rows.append(Row(case, {}, {**found, "error": error}, NOT_PUBLISHED))
    ratios = np.array(steps["(1.5)"]) / np.array(steps["CS"])
    cost = {name: _operations(pendulum, formulation) for name, formulation in forms.items()}
    worst = float(np.max(np.array(errors["(1.5)"]) / np.array(errors["CS"])))
    return Table(
        rows=rows,
        symbols={**SYMBOLS, "error": "of the positions at the end"},
        claims=[
            Claim.of(
                "(1.5) requires forming the derivative of the velocity constraints explicitly, which "
                "CS does not.",
                Band("operations of (1.5) over those of CS", cost["(1.5)"] / cost["CS"], low=1.0),
                f"an iteration and a factorization take {cost['(1.5)']} and {cost['CS']} operations on the "
                "pendulum.",
            ),
            Claim.ours(
                "In steps and errors both are alike: what is integrated are the same "
                "independent coordinates.",
                [
                    Band("steps of (1.5) over those of CS, at least", float(np.min(ratios)), low=0.6),
                    Band("at most", float(np.max(ratios)), high=1.5),
                ],
                f"(1.5) takes {np.min(ratios):.2f} to {np.max(ratios):.2f} times the steps of CS, and its "
                f"error is at most {worst:.1f} times as large.",
            ),
        ],
    )

"""The method with and without projection, and the pendulum over fifty periods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import holonome as hn
from holonome.papers.paper import load, run_of
from holonome.plot import COLOURS

PAPER = load("eich_1993")

GRAVITY = 13.7503716373294544
"""Of the pendulum of section 3.3, so that its period is 2 s."""

FORMULATIONS = {"no": hn.Index1(), "yes": hn.CoordinateProjection(metric="euclidean")}
"""Without and with projection."""

STYLES = {"no": {"color": COLOURS[1]}, "yes": {"color": COLOURS[0]}}
LABELS = {"no": "without projection", "yes": "with projection"}
SIDES = {"no": "without", "yes": "with"}
ERRORS = {"Δx": "dx", "Δy": "dy", "Δẋ": "dvx", "Δẏ": "dvy", "Δλ": "dlambda"}
"""Columns of Table 3.1, and their names in the data file."""
RUNS = 8
"""Tolerances within 1 % with which each row is computed: single errors depend on rounding and scatter over
two powers of ten.
"""
MARGIN = 3.0


def method(projection: str, integrator: hn.BDF | None = None) -> hn.Method:
    """BDF with DASSL's test for the convergence of Newton's method, unless another is given."""
    return hn.Method(FORMULATIONS[projection], integrator or hn.BDF.dassl())


def fifty_periods(
    projection: str, tolerance: float, integrator: hn.BDF | None = None, absolute: float = 0.1
) -> dict[str, float]:
    """Errors of the pendulum after 50 periods, and the residual x² + y² − 1 at that time; RTOL = TOL, ATOL =
    `absolute` TOL.
    """
    pendulum = hn.mechanisms.pendulum(gravity=GRAVITY)
    solution = run_of(
        pendulum,
        (0, 100),
        method=method(projection, integrator),
        rtol=tolerance,
        atol=absolute * tolerance,
    )
    (x, y), (vx, vy), lam = (
        solution.q[:, -1],
        solution.v[:, -1],
        2 * solution.lam[0, -1],
    )  # λ of (3.15) is twice that of m x″ = −2 x λ
    errors = {"Δx": x - 1, "Δy": y, "Δẋ": vx, "Δẏ": vy, "Δλ": lam, "RES": solution.g[0, -1]}
    return {name: abs(float(value)) for name, value in errors.items()}


def scatter(projection: str, tolerance: float, count: int = RUNS, **options: Any) -> dict[str, np.ndarray]:
    """Errors with several tolerances within 1 %."""
    runs = [fifty_periods(projection, tolerance * (1 + i / 1000), **options) for i in range(count)]
    return {name: np.array([run[name] for run in runs]) for name in runs[0]}


def gain(without: Mapping[str, np.ndarray], with_: Mapping[str, np.ndarray]) -> float:
    """By how much projection reduces Δẏ, in the mean square of several runs."""
    return float(np.sqrt(np.mean(without["Δẏ"] ** 2) / np.mean(with_["Δẏ"] ** 2)))

"""Time against error on the five mechanical problems of the IVP test set: Andrews' mechanism, car axis, Fekete
points, the slider-crank with an elastic rod, and the wheel set.

    python benchmarks/test_set.py [--out FILE] [--quick]

Methods: the default, "ggl", "bdf" and "radau", at rtol = atol = 1e-2 … 1e-11.  The error is the largest
|q − q_ref| / (1 + |q_ref|) at the end; q_ref is a run of the default at 1e-13 (wheel set 1e-11), whose
distance from the published end is in the file as well.  For each target the run that takes the least
processor time and meets it counts.  Processor time is that of this process, of a whole call, the shortest of
several.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import holonome as hn
from harness.options import Options, stamp
from harness.tables import write_rows

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "integrators")]
import ivp_test_set  # noqa: E402

METHODS = ("auto", "ggl", "bdf", "radau")
TARGETS, TOLERANCES = (1e-3, 1e-6, 1e-9), [10.0**-k for k in range(2, 12)]
_REPEAT, _LONG, _MOST_STEPS = 0.1, 1.0, 300_000
"""Seconds for which runs are repeated, and from which on tighter tolerances are left out."""


class Problem(NamedTuple):
    """A system, its start, the published positions, and the tolerance of the reference."""

    system: Any
    end: float
    q0: np.ndarray
    v0: np.ndarray
    published: np.ndarray
    finest: float


def _ready_made(name: str, published: np.ndarray, finest: float) -> Problem:
    made = hn.mechanisms.get(name)
    return Problem(made.system, made.reference.t, made.q0, made.v0, published, finest)


def problems(names: list[str]) -> dict[str, Problem]:
    found: dict[str, Callable[[], Problem]] = {
        "Andrews": lambda: _ready_made(
            "andrews", importlib.import_module("holonome.mechanisms.andrews").PUBLISHED.q, 1e-13
        ),
        "car axis": lambda: _stated("car axis"),
        "Fekete": lambda: _stated("Fekete"),
        "flexible slider-crank": lambda: _stated("flexible slider-crank"),
        "wheel set": lambda: _ready_made("wheelset", hn.mechanisms.wheelset().reference.q, 1e-11),
    }
    return {name: make() for name, make in found.items() if not names or name in names}


def _stated(name: str) -> Problem:
    given = ivp_test_set.PROBLEMS[name]()
    return Problem(given.system, given.t_end, given.q0, given.v0, given.q, 1e-13)


def _run(problem: Problem, method: str, rtol: float) -> hn.Solution:
    return hn.solve(
        problem.system,
        (0, problem.end),
        problem.q0,
        problem.v0,
        method=method,
        rtol=rtol,
        atol=rtol,
        t_eval=[problem.end],
        max_steps=_MOST_STEPS,
    )


def _timed(problem: Problem, method: str, rtol: float, repeat: float) -> tuple[hn.Solution, float]:
    """A run with the shortest of its processor times, in seconds."""
    best, began = np.inf, time.perf_counter()
    while True:
        start = time.process_time()
        sol = _run(problem, method, rtol)
        best = min(best, time.process_time() - start)
        if time.perf_counter() - began >= repeat:
            return sol, best


def _error(found: np.ndarray, reference: np.ndarray) -> float:
    return float(np.max(np.abs(found - reference) / (1 + np.abs(reference))))


def study(name: str, problem: Problem, tolerances: list[float], repeat: float) -> list[dict]:
    reference = _run(problem, "auto", problem.finest).q[:, -1]
    rows = []
    for method in METHODS:
        runs = []
        _run(problem, method, tolerances[0])
        for rtol in tolerances:
            sol, seconds = _timed(problem, method, rtol, repeat)
            error = _error(sol.q[:, -1], reference) if sol.success else np.inf
            runs.append((seconds, error, rtol, sol))
            if error < min(TARGETS) / 3 or seconds > _LONG:
                break
        for target in TARGETS:
            good = [run for run in runs if run[1] <= target]
            if good:
                seconds, error, rtol, sol = min(good, key=lambda run: run[0])
                rows.append(
                    {
                        "problem": name,
                        "published": f"{_error(problem.published, reference):.0e}",
                        "target": target,
                        "method": method,
                        "rtol": rtol,
                        "error": f"{error:.1e}",
                        "steps": sol.steps,
                        "evaluations": sol.nfev,
                        "milliseconds": round(1e3 * seconds, 3),
                    }
                    | stamp()
                )
    return rows


def main() -> None:
    arguments = Options(__doc__, "test_set.csv").given()
    tolerances, repeat = (TOLERANCES[2:5], 0.0) if arguments.quick else (TOLERANCES, _REPEAT)
    rows = []
    for name, problem in problems(["car axis"] if arguments.quick else []).items():
        found = study(name, problem, tolerances, repeat)
        for row in found:
            print(*(row[key] for key in list(row)[:9]), flush=True)
        rows += found
        write_rows(arguments.out, rows)


if __name__ == "__main__":
    main()

"""The methods of section 5, runs with them, and what is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import holonome as hn
from holonome.mechanisms import Example
from holonome.papers.paper import Progress, load, published, run_of
from holonome.papers.verdict import DIFFERS, NOT_PUBLISHED, Band, Claim, Condition, Row

PAPER = load("yen_petzold_1996")

SYMBOLS = {
    "method": "GGL: stabilised index 2; GGL*: multipliers left out of its convergence test; CS: coordinate "
    "splitting; CM: its modification; CMp: CM with P at each predictor, ours",
    "TOL": "relative and absolute tolerance",
    "ε": "the smaller, the stiffer",
    "steps": "accepted steps",
    "fevals": "evaluations of the residual",
    "jevals": "evaluations of the Jacobian",
    "etfs": "failures of the error test",
    "ctfs": "failures of Newton's method to converge",
}

FIRST_STEP = 1e-6
"""The paper does not give the first step; with this one the counts of Table 5.2 are reproduced exactly."""

Counts = Mapping[str, float]
COUNTED = ("steps", "fevals", "jevals", "etfs", "ctfs")


@dataclass(frozen=True)
class Criterion:
    """Which counts must agree, and how closely; a count may always be off by one."""

    counts: tuple[str, ...]
    close: float

    def agrees(self, expected: Counts, found: Counts) -> bool:
        return all(
            abs(found[name] - expected[name]) <= max(1.0, self.close * expected[name]) for name in self.counts
        )

    def __str__(self) -> str:
        return f"{', '.join(self.counts)} within {100 * self.close:.0f} % of the published ones, or one off"


ALL_COUNTS = Criterion(COUNTED, 0.02)
"""With the paper's data: first step and roundings move a count by one per cent."""
MAIN_COUNTS = Criterion(("steps", "fevals", "jevals"), 0.2)
"""With data that are guessed."""

MOST_STEPS = 30_000

Key = tuple[str, str, str]


def methods(test: str) -> dict[str, hn.Method]:
    """The methods of section 5 by name; `test` says whether their error tests see positions ("q", section
    5.1) or velocities too ("qv", section 5.2).
    """
    independent = {"q": "x", "qv": "xw"}[test]
    formulations = {
        "GGL": hn.GGL(error_test=test, newton_test="all"),
        "GGL*": hn.GGL(error_test="q", newton_test="qv")
        if test == "q"
        else hn.GGL(error_test="xw", newton_test="qv", predict_multipliers=True),
        "CS": hn.CoordinateSplit("CS", error_test=independent),
        "CM": hn.CoordinateSplit("CM", refresh="jacobian", error_test=independent),
        "CMp": hn.CoordinateSplit("CM", error_test=independent),
    }
    return {
        name: hn.Method(formulation, hn.BDF.dassl(max_order=2)) for name, formulation in formulations.items()
    }


def simulate(
    mechanism: Example, method: hn.Method, tolerance: float, first_step: float | None = FIRST_STEP
) -> hn.Solution:
    """One run with RTOL = ATOL = TOL."""
    return run_of(
        mechanism,
        method=method,
        rtol=tolerance,
        atol=tolerance,
        first_step=first_step,
        max_steps=MOST_STEPS,
    )


def counts(solution: hn.Solution) -> Counts:
    """What the paper counts: steps, evaluations, Jacobians, failures of the error test and of the convergence
    test.
    """
    return {
        "steps": solution.steps,
        "fevals": solution.nfev,
        "jevals": solution.njev,
        "etfs": solution.error_failures,
        "ctfs": solution.newton_failures,
    }


def compared_rows(
    table: str,
    mechanism: Callable[[float], Example],
    test: str,
    reasons: Mapping[str, str],
    progress: Progress,
    criterion: Criterion = ALL_COUNTS,
    fitted: str = "",
) -> list[Row]:
    """Run each row of a published table, and CMp beside each CM; `fitted` tells which data were chosen."""
    lines = published("yen_petzold_1996", table)
    lines = [
        line
        for expected in lines
        for line in (
            (
                expected,
                {
                    **dict.fromkeys(expected, ""),
                    "method": "CMp",
                    "TOL": expected["TOL"],
                    "eps": expected["eps"],
                },
            )
            if expected["method"] == "CM"
            else (expected,)
        )
    ]
    rows = []
    for i, line in enumerate(lines):
        progress(i / len(lines), f"{line['method']}, TOL {line['TOL']}, ε {line['eps']}")
        case = {"method": line["method"], "TOL": line["TOL"], "ε": line["eps"]}
        expected = {name: int(line[name]) for name in COUNTED if line[name]}
        rows.append(
            _row(
                case,
                expected,
                mechanism(float(line["eps"])),
                methods(test)[line["method"]],
                reasons.get(line["method"], ""),
                criterion,
                fitted,
            )
        )
    return rows


def _row(
    case: dict[str, str],
    expected: Counts,
    mechanism: Example,
    method: hn.Method,
    reason: str,
    criterion: Criterion,
    fitted: str,
) -> Row:
    tolerance = float(case["TOL"])
    solution = simulate(mechanism, method, tolerance)
    found = counts(solution)
    if not solution.success:
        return Row(case, expected, found, DIFFERS if expected else NOT_PUBLISHED, why_stopped(solution))
    if not expected:
        return Row(case, expected, found, NOT_PUBLISHED)
    agree = criterion.agrees(expected, found)
    why = "" if agree else reason or _scatter(mechanism, method, tolerance)
    return Row.compared(case, expected, found, agree, why, fitted)


def why_stopped(solution: hn.Solution) -> str:
    return (
        f"Given up at t = {solution.t[-1]:.3g}, after {MOST_STEPS} steps accepted or rejected."
        if solution.message.find("max_steps") > 0
        else solution.message
    )


def _scatter(mechanism: Example, method: hn.Method, tolerance: float) -> str:
    """How much the number of steps depends on the first step, in words."""
    steps = [simulate(mechanism, method, tolerance, first).steps for first in (1e-5, 1e-6, 1e-7, 1e-8)]
    return (
        f"The number depends on chance: first steps of 1e-5 to 1e-8 lead to {min(steps)} to {max(steps)} "
        "steps."
    )


def by_case(rows: Iterable[Row]) -> dict[Key, Mapping[str, float]]:
    """What was measured, by method, TOL and ε."""
    return {
        (row.case["method"], row.case["TOL"], row.case["ε"]): row.measured for row in rows if row.measured
    }


def claim_about(
    statement: str,
    rows: Iterable[Row],
    check: Callable[[dict[Key, Mapping[str, float]]], tuple[Condition, str]],
    fitted: bool = False,
) -> Claim:
    """A claim about the rows of a table."""
    return Claim.of(statement, *check(by_case(rows)), fitted=fitted)


def cases_of(found: dict[Key, Mapping[str, float]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((tolerance, eps) for _, tolerance, eps in found))


def needs_fewest(
    method: str, others: Iterable[str], what: str, found: dict[Key, Mapping[str, float]]
) -> tuple[Condition, str]:
    """Whether a method needs the fewest evaluations (or steps) in all cases, and by which factors."""
    factors = [
        min(found[other, *case][what] for other in others) / found[method, *case][what]
        for case in cases_of(found)
    ]
    return (
        [Band(f"{what} over those of {method}", factor, 1.02) for factor in factors],
        f"the best of the others needs {' / '.join(f'{factor:.2f}' for factor in factors)} times as many "
        f"{what} as {method}.",
    )

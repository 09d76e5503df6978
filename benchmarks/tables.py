"""Insert measured numbers into the pages: every table between the marks `<!-- table: name -->` and `<!-- end
of table -->` is generated from the results.

    python benchmarks/tables.py [--check]

With --check nothing is written; it says which pages are out of date, and the exit code is 1 if any is.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "which_method.md",
    ROOT / "docs" / "beside_the_trusted_codes.md",
    ROOT / "docs" / "benchmarks_test_set.md",
    ROOT / "docs" / "papers" / "smooth_motion.md",
    ROOT / "benchmarks" / "findings.md",
)
MARKED = re.compile(r"(<!-- table: (\w+) -->\n).*?(\n<!-- end of table -->)", re.DOTALL)


def read(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def foundation() -> str:
    """What a run costs, and against a loop that is compiled for one model."""
    measured = {(row["mechanism"], row["quantity"]): float(row["value"]) for row in read("foundation.csv")}
    mechanisms = ("pendulum", "slider_crank_unequal", "andrews")

    def row(label: str, quantity: str, unit: str, digits: int = 0) -> list[str]:
        return [label, *(f"{measured[mechanism, quantity]:.{digits}f}{unit}" for mechanism in mechanisms)]

    rows = [row("accelerations, one evaluation", "accelerations", " ns")]
    for error in ("0.0001", "1e-06"):
        rows += [
            row(
                f"`solve` as a whole (10 s; Andrews 0.03 s) at error {float(error):.0e}",
                f"holonome dop853, error {error}",
                " µs",
            ),
            row(
                f"its ratio to a loop compiled for this one model, at error {float(error):.0e}",
                f"solve / yardstick, error {error}",
                "",
                2,
            ),
        ]
    return table(["", "pendulum", "slider-crank (6 coordinates, 5 constraints)", "Andrews (7, 6)"], rows)


def methods() -> str:
    """Cost of an error of 1e-4, by method and problem."""
    problems = {
        "pendulum": "pendulum",
        "slider_crank_unequal": "slider-crank",
        "four_bar": "four-bar",
        "andrews": "Andrews",
        "slider_crank": "singular positions",
        "rod in a stiff bushing": "stiff bushing",
    }
    found = {
        (row["method"], row["problem"]): row for row in read("methods.csv") if float(row["target"]) == 1e-4
    }
    names = dict.fromkeys(method for method, _ in found)

    def cell(row: dict[str, str] | None) -> str:
        return "–" if row is None else f"{int(row['evaluations'])}, {_time(float(row['microseconds']))}"

    rows = [
        [
            name,
            *(cell(found.get((name, problem))) for problem in problems),
            found[name, "four_bar"]["largest_g"] if (name, "four_bar") in found else "–",
        ]
        for name in names
    ]
    return table(["method", *problems.values(), "largest g, four-bar"], rows)


def _time(microseconds: float) -> str:
    value, unit = (
        (f"{microseconds:.0f}", "µs")
        if microseconds < 1000
        else (f"{microseconds / 1000:.1f}", "ms")
        if microseconds < 1e5
        else (f"{microseconds / 1e6:.1f}", "s")
    )
    return f"{value}\N{NO-BREAK SPACE}{unit}"


def smooth() -> str:
    """Steps on the slow motion of a rod in a bushing, with the error of q, by stiffness."""
    runs = [
        row
        for row in read("smooth_motion.csv")
        if row["problem"] == "bushing" and float(row["tolerance"]) == 1e-4
    ]
    eps = ("0.01", "0.0001", "1e-06", "1e-08")
    found = {(row["method"], row["eps"]): row for row in runs}
    rigid = next(row for row in runs if row["method"] == "rigid limit")

    def cell(row: dict[str, str]) -> str:
        return (
            "wrong"
            if float(row["error"]) > 1
            else "stopped"
            if row["finished"] != "True"
            else f"{row['steps']} ({float(row['error']):.0e})"
        )

    labels = {"GGL": "GGL, order 2", "compliant": '`motion="smooth"`'}
    rows = [
        [label, *(cell(found[name, e]) for e in eps), cell(rigid) if name == "compliant" else ""]
        for name, label in labels.items()
    ]
    return table(["", *(f"ε = {float(e):.0e}" for e in eps), "rigid joint"], rows)


def study() -> str:
    """Steps and errors on the smooth motion of stiff systems, by method and stiffness."""
    eps = ("0.01", "0.0001", "1e-06", "1e-08", "1e-10")
    chosen = {
        ("driven", 1e-3): ("GGL", "GGL*", "CS", "CM", "compliant"),
        ("driven", 1e-6): ("GGL", "CM", "compliant"),
        ("bushing", 1e-4): ("GGL", "compliant"),
        ("bushing", 1e-6): ("GGL", "compliant", "compliant, order 5"),
        ("turning_bushing", 1e-4): ("GGL", "GGL*", "compliant"),
        ("spring", 1e-3): ("GGL", "CM", "compliant"),
        ("anisotropic", 1e-3): ("GGL", "CM", "compliant"),
    }
    found = {
        (row["problem"], float(row["tolerance"]), row["method"], row["eps"]): row
        for row in read("smooth_motion.csv")
    }
    rigid = {key[:2]: row for key, row in found.items() if key[2] == "rigid limit"}

    def cell(row: dict[str, str] | None) -> str:
        if row is None:
            return ""
        return (
            "*"
            if row["finished"] != "True"
            else "wrong"
            if float(row["error"]) > 1
            else f"{row['steps']} ({float(row['error']):.0e})"
        )

    rows = []
    for (problem, tolerance), methods in chosen.items():
        for method in methods:
            first = method == methods[0]
            rows.append(
                [
                    problem.replace("_", " ") if first else "",
                    f"{tolerance:.0e}" if first else "",
                    method,
                    *(cell(found.get((problem, tolerance, method, e))) for e in eps),
                    cell(rigid.get((problem, tolerance))) if first else "",
                ]
            )
    return table(["", "TOL", "method", *(f"ε = {float(e):.0e}" for e in eps), "rigid limit"], rows)


def split() -> str:
    """Where the time of a call goes."""
    labels = {"pendulum": "pendulum", "slider_crank_unequal": "slider-crank", "andrews": "Andrews"}
    rows = []
    for row in read("time_split.csv"):
        call, loop = float(row["call_us"]), float(row["loop_us"])
        rows.append(
            [
                labels[row["mechanism"]],
                f"{float(row['tolerance']):.0e}",
                row["steps"],
                row["evaluations"],
                *(f"{value:.0f}" for value in (call, loop, float(row["evaluations_us"]), call - loop)),
            ]
        )
    return table(
        [
            "",
            "tolerance",
            "steps",
            "evaluations",
            "whole call",
            "compiled loop",
            "evaluations alone",
            "Python",
        ],
        rows,
    )


TRUSTED_ERRORS = (1e-3, 1e-6, 1e-9)


def _trusted_times() -> dict[str, dict[tuple[str, str], list[float]]]:
    """Microseconds of each code at three errors, by problem; infinite where it does not get there."""
    sys.path.insert(0, str(Path(__file__).parent))
    from harness.report import Results

    results = Results.load(RESULTS / "trusted.csv")
    times: dict[str, dict[tuple[str, str], list[float]]] = {}
    for problem in dict.fromkeys(row["problem"] for row in results.of("run")):
        times[problem] = {}
        for peer, code in results.codes(problem):
            found = [results.curve(problem, peer, code).at(error) for error in TRUSTED_ERRORS]
            times[problem][peer, code] = [math.inf if time is None else time[0] for time in found]
    return times


def trusted() -> str:
    """The fastest of our methods and of theirs, and the ratio of the times."""
    rows = []
    for problem, times in _trusted_times().items():
        for i, error in enumerate(TRUSTED_ERRORS):
            ours, theirs = (
                min((time[i], code) for (peer, code), time in times.items() if (peer == "holonome") == own)
                for own in (True, False)
            )
            name = problem.replace("_", " ") if i == 0 else ""
            ratio = f"{theirs[0] / ours[0]:.2g}" if math.isfinite(theirs[0]) else "–"
            rows.append(
                [name, f"{error:.0e}", *(f"{code}, {_time(time)}" for time, code in (ours, theirs)), ratio]
            )
    return table(["problem", "error", "our fastest", "their fastest", "theirs / ours"], rows)


FORTRAN = ("RADAU5", "RADAU", "RODAS", "PHEM56", "DASPK", "ODASSL", "MEBDFI", "IDA", "CVODE", "ARKODE")


def trusted_codes() -> str:
    """Time of each code on its best form at the middle error, over that of our default."""
    rows = []
    for problem, times in _trusted_times().items():
        ours = times["holonome", "auto"][1]

        def best(name: str, times=times) -> float:
            return min(
                (
                    time[1]
                    for (peer, code), time in times.items()
                    if peer != "holonome" and code.split()[0].strip(",") == name
                ),
                default=math.inf,
            )

        ratios = [best(name) / ours for name in FORTRAN]
        rows.append(
            [
                problem.replace("_", " "),
                _time(ours),
                *(f"{r:.2g}" if r < 10 else f"{r:.0f}" if math.isfinite(r) else "–" for r in ratios),
            ]
        )
    return table(["problem", "our default", *FORTRAN], rows)


def test_set() -> str:
    """Processor time and evaluations for an error, on the problems of the IVP test set."""
    measured = read("test_set.csv")
    found = {(row["problem"], row["method"], float(row["target"])): row for row in measured}
    targets = dict.fromkeys(float(row["target"]) for row in measured)
    names = dict.fromkeys(row["method"] for row in measured)

    def cell(row: dict[str, str] | None) -> str:
        return "–" if row is None else f"{row['evaluations']}, {_time(1e3 * float(row['milliseconds']))}"

    rows = [
        [
            problem if target == max(targets) else "",
            f"{target:.0e}",
            *(cell(found.get((problem, name, target))) for name in names),
        ]
        for problem in dict.fromkeys(row["problem"] for row in measured)
        for target in targets
    ]
    return table(["", "error", *(f'"{name}"' for name in names)], rows)


TABLES: dict[str, Callable[[], str]] = {
    "foundation": foundation,
    "methods": methods,
    "smooth": smooth,
    "split": split,
    "study": study,
    "trusted": trusted,
    "trusted_codes": trusted_codes,
    "test_set": test_set,
}


def written(page: Path) -> str:
    """The page with its tables as they should be."""
    return MARKED.sub(
        lambda match: match[1] + TABLES[match[2]]() + match[3], page.read_text(encoding="utf-8")
    )


def main() -> None:
    old = [page for page in PAGES if written(page) != page.read_text(encoding="utf-8")]
    for page in old:
        print(page.relative_to(ROOT), "is out of date" if "--check" in sys.argv else "written")
        if "--check" not in sys.argv:
            page.write_text(written(page), encoding="utf-8")
    if old and "--check" in sys.argv:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

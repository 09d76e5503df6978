"""How long this package takes against SUNDIALS in C, for the same error at the end.

    apt-get install libsundials-dev
    python benchmarks/against_sundials.py [--out benchmarks/results/sundials.csv]

Each formulation is run over tolerances from 1e-3 to 1e-10; the codes take turns.  Our time is that of a whole call of hn.solve() in Python, theirs
that of the solve alone in C.  Where a peer has two sensible settings both are run and the faster one counts, for each error.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import casadi as ca
import numpy as np
from rich.console import Console
from rich.table import Table

import holonome as hn
from foundation import MECHANISMS, _at_error
from sundials.peers import Peer, version

TOLERANCES = 10.0 ** -np.arange(3.0, 10.1, 0.5)
ERRORS = (1e-4, 1e-6)
GOAL = 0.5
REPEATS = 15
FEWEST = 3
"""Points around an error without which a code has no time there: it failed at most tolerances."""

NEWTON = 0.01
"""Bound for Newton's method, in units of the tolerance, in the tuned settings of a peer; ours is the same, IDA's own is 0.33 and CVODE's 0.1."""

UNTESTED = 1e6
"""Absolute tolerance of the multipliers in the tuned settings of IDA: so large that its Newton test does not see them, as ours does not."""

Code = Callable[[float], tuple[np.ndarray | None, float, int, str]]
COMPARISONS = {
    "GGL": ("holonome ggl", ("IDA GGL", "IDA GGL, tuned"), GOAL),
    "index 2": ("holonome index2", ("IDA index 2", "IDA index 2, tuned"), GOAL),
    "underlying ODE, BDF": ("holonome bdf on the same ODE", ("CVODE BDF", "CVODE BDF, tuned"), GOAL),
    "underlying ODE": ("holonome auto", ("CVODE BDF", "CVODE BDF, tuned"), GOAL),
    "underlying ODE, Adams": ("holonome auto", ("CVODE Adams, no projection",), None),
    "underlying ODE, Runge–Kutta": ("holonome auto", ("ARKODE order 5", "ARKODE order 8"), None),
}
"""Ours, theirs, and the goal for the ratio; those without a goal show what other formulas of SUNDIALS do on the same equations."""


def codes(mechanism, end: float) -> dict[str, Code]:
    """Every code as a function of the tolerance that returns state at the end (None after a failure), seconds, steps and message."""
    system, q0, v0 = mechanism.system, mechanism.q0, mechanism.v0
    peer = Peer(system, q0, v0)

    def ours(method: str | hn.Method) -> Code:
        def run(tolerance: float):
            begin = time.perf_counter()
            solution = hn.solve(system, (0, end), q0, v0, method=method, rtol=tolerance, atol=tolerance)
            seconds = time.perf_counter() - begin
            return solution.y[:, -1] if solution.success else None, seconds, solution.steps, "" if solution.success else solution.message

        return run

    def theirs(method, *arguments, **settings) -> Code:
        def run(tolerance: float):
            result = method(*arguments, end, tolerance, **settings)
            return result.y if result.success else None, result.seconds, result.counts["steps"], result.message

        return run

    peers = {}
    for form, name in (("ggl", "GGL"), ("index2", "index 2")):
        peers |= {f"IDA {name}": theirs(peer.ida, form),
                  f"IDA {name}, tuned": theirs(peer.ida, form, multiplier_tolerance=UNTESTED, newton_tolerance=NEWTON)}
    peers |= {"CVODE BDF": theirs(peer.cvode), "CVODE BDF, tuned": theirs(peer.cvode, newton_tolerance=NEWTON),
              "CVODE Adams, no projection": theirs(peer.cvode, adams=True)}
    peers |= {f"ARKODE order {order}": theirs(peer.arkode, order) for order in (5, 8)}
    same = hn.Method(hn.CoordinateProjection(hn.UnderlyingODE()), hn.BDF())
    return {f"holonome {method}": ours(method) for method in ("ggl", "index2", "bdf", "auto")} | {"holonome bdf on the same ODE": ours(same)} | peers


def work_precision(name: str, end: float) -> list[dict]:
    """Error and time of every code at every tolerance; the codes take turns."""
    mechanism = hn.mechanisms.get(name)
    reference = hn.solve(mechanism.system, (0, end), mechanism.q0, mechanism.v0, method="dop853", rtol=1e-14, atol=1e-14).y[:, -1]
    points, competitors = [], codes(mechanism, end)
    for tolerance in TOLERANCES:
        runs = {code: [run(tolerance)] for code, run in competitors.items()}
        for _ in range(REPEATS):
            for code, run in competitors.items():
                runs[code].append(run(tolerance))
        for code, (first, *timed) in runs.items():
            y, _, steps, message = first
            seconds = [run[1] for run in timed]
            error = np.nan if y is None else float(np.max(np.abs(y - reference) / (1 + np.abs(reference))))
            points.append({"mechanism": name, "code": code, "tolerance": tolerance, "error": error, "median": float(np.median(seconds)),
                           "minimum": min(seconds), "steps": steps, "message": message})
    return points


def compare(name: str, points: list[dict]) -> list[dict]:
    """Times at the same error, and their ratio."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        if point["mechanism"] == name and np.isfinite(point["error"]):
            curves.setdefault(point["code"], []).append((point["error"], point["median"]))
    rows = []
    for formulation, (ours, theirs, goal) in COMPARISONS.items():
        for error in ERRORS:
            competing = [code for code in theirs if _near(curves.get(code, []), error) >= FEWEST]
            times = {code: _at_error(curves[code], error) for code in (ours, *competing)}
            best = min(competing, key=lambda code: (_beyond(curves[code], error), times[code]))
            rows.append({"mechanism": name, "formulation": formulation, "error": error, "ours": times[ours], "peer": best, "theirs": times[best],
                         "ratio": times[ours] / times[best], "goal": goal, "beyond": [code for code in (ours, best) if _beyond(curves[code], error)]})
    return rows


def _near(curve: list[tuple[float, float]], error: float) -> int:
    """Number of points from which `_at_error` takes the time."""
    return sum(abs(np.log(reached / error)) < np.log(100) for reached, _ in curve)


def _beyond(curve: list[tuple[float, float]], error: float) -> bool:
    """Whether no run came as close as this error, so that the time is an extrapolation."""
    return min(reached for reached, _ in curve) > error


def failures() -> Table:
    """What IDA says when the multipliers have the tolerance of the other unknowns, with and without a part in the error test."""
    table = Table("mechanism", "form", "error test sees multipliers", "steps", "IDA says", title="IDA with one tolerance, 1e-6, for all unknowns")
    for name, end in MECHANISMS.items():
        mechanism = hn.mechanisms.get(name)
        peer = Peer(mechanism.system, mechanism.q0, mechanism.v0)
        for form in ("ggl", "index2"):
            for suppress in (False, True):
                result = peer.ida(form, end, 1e-6, suppress=suppress)
                table.add_row(name, form, "no" if suppress else "yes", str(result.counts["steps"]), result.message or "(runs)")
    return table


def show(rows: list[dict], title: str) -> Table:
    table = Table("mechanism", "formulation", "error", "ours, µs", "fastest peer", "theirs, µs", "ratio", "goal", "met", title=title)
    for row in rows:
        ours, theirs = (("~" if code in row["beyond"] else "") + f"{1e6 * seconds:.0f}"
                        for code, seconds in ((COMPARISONS[row["formulation"]][0], row["ours"]), (row["peer"], row["theirs"])))
        goal, met = ("", "") if row["goal"] is None else (f"{row['goal']:g}", "yes" if row["ratio"] <= row["goal"] else "NO")
        table.add_row(row["mechanism"], row["formulation"], f"{row['error']:g}", ours, row["peer"], theirs, f"{row['ratio']:.3f}", goal, met)
    return table


def write(target: Path, points: list[dict], rows: list[dict], here: dict) -> None:
    """All measured points, then the times at the same error (without a tolerance)."""
    lines = [{"mechanism": p["mechanism"], "code": p["code"], "tolerance": f"{p['tolerance']:.3g}", "error": f"{p['error']:.3g}",
              "median_us": f"{1e6 * p['median']:.4g}", "minimum_us": f"{1e6 * p['minimum']:.4g}", "steps": p["steps"], "message": p["message"]}
             for p in points]
    for row in rows:
        common = {"mechanism": row["mechanism"], "error": f"{row['error']:g}", "formulation": row["formulation"]}
        ours = COMPARISONS[row["formulation"]][0]
        for code, seconds, ratio in ((ours, row["ours"], f"{row['ratio']:.3f}"), (row["peer"], row["theirs"], "")):
            note = "extrapolated" if code in row["beyond"] else ""
            lines.append(common | {"code": code, "median_us": f"{1e6 * seconds:.4g}", "ratio": ratio, "message": note})
    columns = ["mechanism", "formulation", "code", "tolerance", "error", "median_us", "minimum_us", "steps", "ratio", "message"]
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*columns, *here], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(line | here for line in lines)


def _machine() -> str:
    """Name and number of the processors."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "sundials.csv")
    target = parser.parse_args().out
    peer_version, build = version(), "-O3 -march=native" if os.environ.get("SUNDIALS_DIR") else "the distribution's"
    points: list[dict] = []
    rows: list[dict] = []
    progress = Console(stderr=True)
    for name, end in MECHANISMS.items():
        with progress.status(f"{name} …"):
            points += work_precision(name, end)
            rows += compare(name, points)
    here = {"date": date.today(), "machine": _machine(), "python": platform.python_version(), "holonome": hn.__version__, "casadi": ca.__version__,
            "sundials": peer_version, "build": build}
    console = Console()
    console.print(show(rows, ", ".join(f"{key} {value}" for key, value in here.items())))
    with progress.status("failures of IDA …"):
        console.print(failures())
    write(target, points, rows, here)


if __name__ == "__main__":
    main()

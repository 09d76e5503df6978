"""Tables and pictures from the results of `measure`: docs/benchmarks.md and docs/images/peers_*.png. Needs
neither holonome nor any peer.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

ERRORS = tuple(10.0**-k for k in range(3, 10))
WINDOW = 100.0
"""Points within this factor of an error give the straight line through the logarithms from which the time
there is read.
"""
FAMILIES = {
    "Mechanisms": (
        "pendulum",
        "slider_crank",
        "andrews",
        "four_bar",
        "bushing",
        "wheelset",
        "kepler",
        "singular",
        "duplicated",
    ),
    "Smooth motion": ("spring_0.0001", "spring_1e-06", "spring_1e-08", "driven_0.0001", "driven_1e-08"),
    "Chains": ("chain_10", "chain_100", "chain_1000"),
}
TITLES = {
    "pendulum": "Pendulum, 10 s",
    "slider_crank": "Slider-crank, n = 6, m = 5, 10 s",
    "andrews": "Andrews' squeezing mechanism, 0.03 s",
    "four_bar": "Four-bar linkage, 10 s",
    "bushing": "Two bodies with a bushing, 1 s",
    "wheelset": "Wheel set, 1 s",
    "kepler": "Kepler's problem with two invariants, 5 revolutions",
    "singular": "Slider-crank with equal bars, through singular positions, 10 s",
    "duplicated": "Pendulum, its constraint stated twice",
    "spring_0.0001": "Stiff spring, ε = 1e-4",
    "spring_1e-06": "Stiff spring, ε = 1e-6",
    "spring_1e-08": "Stiff spring, ε = 1e-8",
    "driven_0.0001": "Driven point on a circle, ε = 1e-4",
    "driven_1e-08": "Driven point on a circle, ε = 1e-8",
    "chain_10": "Chain of 10 bars, 1 s",
    "chain_100": "Chain of 100 bars, 0.2 s",
    "chain_1000": "Chain of 1000 bars, 0.05 s",
}
COLOURS = {
    "holonome": "black",
    "sundials": "C0",
    "sundials -O3": "C9",
    "scikit-sundae": "C2",
    "scipy_dae": "C1",
    "scipy": "C3",
    "diffrax": "C4",
    "exudyn": "C6",
    "mujoco": "C8",
}

NUMBERS = (
    "level",
    "error",
    "median_us",
    "low_us",
    "high_us",
    "steps",
    "evaluations",
    "kernel_ns",
    "g",
    "Gv",
    "I",
    "g_between",
    "Gv_between",
)
Row = dict[str, Any]
Choice = Callable[[str, str], bool]
"""Whether a code of a peer takes part."""


@dataclass(frozen=True)
class Curve:
    """Times of one code against its errors; each time is a median with its quartiles, in microseconds."""

    errors: np.ndarray
    times: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def at(self, error: float) -> tuple[float, float, float] | None:
        """Median and quartiles at an error, by a straight line through the logarithms of the points around
        it; None if no run was as good.
        """
        if not self.errors.size or np.min(self.errors) > error:
            return None
        x = np.log(np.maximum(self.errors, 1e-16) / error)
        near = np.abs(x) < math.log(WINDOW)
        if not np.any(x[near] > 0) or not np.any(
            x[near] <= 0
        ):  # no points on both sides: the cheapest run that is good enough
            good = np.flatnonzero(self.errors <= error)
            best = good[np.argmin(self.times[good])]
            return float(self.times[best]), float(self.low[best]), float(self.high[best])
        height = [
            float(np.exp(np.polyfit(x[near], np.log(t[near]), 1)[1]))
            for t in (self.times, self.low, self.high)
        ]
        return height[0], height[1], height[2]


@dataclass(frozen=True)
class Results:
    """The rows of a file, numbers as numbers (NaN where there is none)."""

    rows: list[Row]

    @classmethod
    def load(cls, file: Path) -> Results:
        with file.open(newline="", encoding="utf-8") as stream:
            return cls(
                [row | {key: float(row[key] or "nan") for key in NUMBERS} for row in csv.DictReader(stream)]
            )

    def of(self, kind: str, **fixed: str) -> list[Row]:
        return [
            row
            for row in self.rows
            if row["kind"] == kind and all(row[key] == value for key, value in fixed.items())
        ]

    def runs(self, problem: str, peer: str, code: str) -> list[Row]:
        """Those that reached the end."""
        return [
            row
            for row in self.of("run", problem=problem, peer=peer, code=code)
            if math.isfinite(row["error"]) and row["median_us"] > 0
        ]

    def codes(self, problem: str) -> list[tuple[str, str]]:
        return list(dict.fromkeys((row["peer"], row["code"]) for row in self.of("run", problem=problem)))

    def curve(self, problem: str, peer: str, code: str) -> Curve:
        rows = self.runs(problem, peer, code)
        return Curve(
            *(np.array([row[key] for row in rows]) for key in ("error", "median_us", "low_us", "high_us"))
        )

    def fastest(
        self, problem: str, choose: Choice, error: float
    ) -> tuple[str, tuple[float, float, float]] | None:
        """The fastest of the chosen codes at an error."""
        times = [
            (f"{peer} {code}", self.curve(problem, peer, code).at(error))
            for peer, code in self.codes(problem)
            if choose(peer, code)
        ]
        return min(
            ((name, time) for name, time in times if time is not None),
            key=lambda item: item[1][0],
            default=None,
        )


def nearest(rows: Iterable[Row], error: float = 1e-6) -> Row:
    """The run whose error is nearest to this one."""
    return min(rows, key=lambda row: abs(math.log(max(row["error"], 1e-16) / error)))


@dataclass(frozen=True)
class Verdict:
    """One line of the table of goals: ours over theirs, with the spread of the quartiles."""

    what: str
    goal: float
    ratio: float
    low: float
    high: float
    detail: str

    @classmethod
    def missing(cls, what: str, goal: float, reason: str) -> Verdict:
        return cls(what, goal, math.nan, math.nan, math.nan, reason)

    @property
    def met(self) -> str:
        return "not measured" if math.isnan(self.ratio) else ("yes" if self.ratio <= self.goal else "**no**")

    @property
    def measured(self) -> list[str]:
        return (
            ["–", "–"]
            if math.isnan(self.ratio)
            else [f"{self.ratio:.3g}", f"{self.low:.3g} … {self.high:.3g}"]
        )


def _of(peer: str, beginning: str = "") -> Choice:
    return lambda p, c: p == peer and c.startswith(beginning)


def _ratio(
    results: Results,
    what: str,
    problem: str,
    theirs: Choice,
    error: float,
    goal: float = math.nan,
    ours: str = "auto",
) -> Verdict:
    a = results.fastest(problem, lambda p, c: (p, c) == ("holonome", ours), error)
    b = results.fastest(problem, theirs, error)
    label = f"{problem}: {what}, error {error:.0e}"
    if a is None or b is None:
        return Verdict.missing(label, goal, f"no time of {'ours' if a is None else 'the peer'} at this error")
    (_, a), (name, b) = a, b
    return Verdict(
        label,
        goal,
        a[0] / b[0],
        a[1] / b[2],
        a[2] / b[1],
        f"{microseconds(a[0])} against {microseconds(b[0])} of {name}",
    )


def goals(results: Results) -> list[Verdict]:
    """The goals, which refer to Debian's build of SUNDIALS, and whether they are met."""
    adams = _of("sundials", "CVODE Adams")
    projected = _of("sundials", "CVODE BDF, projected")

    def by_jax(peer: str, code: str) -> bool:
        return peer == "diffrax" and "by JAX" in code

    def straight(peer: str, code: str) -> bool:
        return peer == "diffrax" and "by JAX" not in code

    named = [
        ("pendulum", "CVODE with projection", projected, 0.04),
        ("slider_crank", "CVODE with projection", projected, 0.03),
        ("andrews", "CVODE with projection", projected, 0.05),
        ("pendulum", "diffrax Tsit5, which drifts", lambda p, c: (p, c) == ("diffrax", "Tsit5"), 0.25),
        ("slider_crank", "CVODE Adams, which drifts", adams, 0.06),
        ("slider_crank", "diffrax with linear algebra by JAX, which drifts", by_jax, 0.06),
        ("slider_crank", "diffrax with our elimination as straight-line code, which drifts", straight, 0.06),
        ("andrews", "CVODE Adams, which drifts", adams, 0.14),
    ]
    found = [
        _ratio(results, what, problem, choose, error, goal)
        for problem, what, choose, goal in named
        for error in (1e-4, 1e-6)
    ]
    for peer, goal in (("scikit-sundae", 1 / 80), ("scipy_dae", 1 / 250)):
        found += [
            _ratio(results, peer, problem, _of(peer), 1e-4, goal)
            for problem in ("pendulum", "slider_crank", "andrews")
        ]
    found += [_spring(results, problem) for problem in ("spring_0.0001", "spring_1e-06", "spring_1e-08")]
    return found + [_chain(results, form, links) for form in ("index 2", "GGL") for links in (10, 100, 1000)]


FORM_BY_FORM = (
    ("ARKODE", "auto"),
    ("CVODE BDF, projected", "auto"),
    ("CVODE Adams", "auto"),
    ("CVODE BDF, projected", "bdf on the underlying ODE"),
    ("IDA GGL", "ggl"),
    ("IDA index 2", "index2"),
)


def others(results: Results) -> list[Verdict]:
    """Comparisons without a goal: with an optimised SUNDIALS, with its explicit methods, projected by hand,
    and form by form.
    """
    found = []
    for problem in ("pendulum", "slider_crank", "andrews"):
        for peer, mark in (("sundials", ""), ("sundials -O3", " -O3")):
            for theirs, ours in FORM_BY_FORM:
                found += [
                    _ratio(
                        results, f"our {ours} to {theirs}{mark}", problem, _of(peer, theirs), error, ours=ours
                    )
                    for error in (1e-4, 1e-6)
                ]
    return [verdict for verdict in found if math.isfinite(verdict.ratio)]


def _spring(results: Results, problem: str, error: float = 1e-3) -> Verdict:
    """Our time at the coarsest tolerance with which the error is reached, against Exudyn with 50 steps."""
    what = f"{problem}: Exudyn with 50 steps, generalised-α"
    chosen = [
        code for peer, code in results.codes(problem) if peer == "exudyn" and code.startswith("generalised")
    ]
    theirs = [row for code in chosen for row in results.runs(problem, "exudyn", code) if row["level"] == 50]
    ours = [row for row in results.runs(problem, "holonome", "smooth") if row["error"] <= error]
    if not ours or not theirs:
        return Verdict.missing(what, 1.0, f"{'we do' if not ours else 'Exudyn does'} not reach {error:.0e}")
    a, b = max(ours, key=lambda row: row["level"]), theirs[0]
    detail = (
        f"{microseconds(a['median_us'])} (tolerance {a['level']:g}, error {a['error']:.0e}) against "
        f"{microseconds(b['median_us'])} (error {b['error']:.0e})"
    )
    return Verdict(
        what,
        1.0,
        a["median_us"] / b["median_us"],
        a["low_us"] / b["high_us"],
        a["high_us"] / b["low_us"],
        detail,
    )


def _chain(results: Results, form: str, links: int) -> Verdict:
    """Time of a step at the same tolerance, the one nearest to 1e-6."""
    what, problem = f"chain_{links}, a step: IDA {form}, banded", f"chain_{links}"
    ours, theirs = (
        {row["level"]: row for row in results.runs(problem, peer, code) if row["error"] < 1}
        for peer, code in (
            ("holonome", {"index 2": "index2", "GGL": "ggl"}[form]),
            ("sundials", f"IDA {form}, banded"),
        )
    )
    common = sorted(set(ours) & set(theirs), key=lambda level: abs(math.log10(level) + 6))
    if not common:
        return Verdict.missing(what, 0.5, "no run of ours" if not ours else "no common tolerance")
    a, b = ours[common[0]], theirs[common[0]]
    per_step = a["steps"] / b["steps"]
    return Verdict(
        what,
        0.5,
        a["median_us"] / b["median_us"] / per_step,
        a["low_us"] / b["high_us"] / per_step,
        a["high_us"] / b["low_us"] / per_step,
        f"{a['median_us'] / a['steps']:.3g} µs against {b['median_us'] / b['steps']:.3g} µs, tolerance "
        f"{common[0]:g}",
    )


def microseconds(value: float) -> str:
    return (
        f"{value:.0f} µs"
        if value < 1e3
        else (f"{value / 1e3:.3g} ms" if value < 1e6 else f"{value / 1e6:.3g} s")
    )


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return (
        "\n".join(
            lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        )
        + "\n"
    )


def goals_table(results: Results) -> str:
    return markdown(
        ["ours / theirs", "goal", "measured", "spread", "met", ""],
        [[v.what, f"{v.goal:.3g}", *v.measured, v.met, v.detail] for v in goals(results)],
    )


def others_table(results: Results) -> str:
    return markdown(
        ["ours / theirs", "measured", "spread", ""],
        [[v.what, *v.measured, v.detail] for v in others(results)],
    )


def problem_table(results: Results, problem: str) -> str:
    """Every code that finishes a run: time at each error; steps, evaluations and drift near error 1e-6; then
    what failed. The fastest at 1e-6 come first.
    """
    lines, failed = [], []
    for peer, code in results.codes(problem):
        runs = results.runs(problem, peer, code)
        name = f"**{peer}: {code}**" if peer == "holonome" else f"{peer}: {code}"
        if not runs:
            message = results.of("run", problem=problem, peer=peer, code=code)[0]["message"]
            failed.append(f"{name}: {message.rstrip('.')}")
            continue
        times, typical = [results.curve(problem, peer, code).at(error) for error in ERRORS], nearest(runs)
        drift = next(iter(results.of("drift", problem=problem, peer=peer, code=code)), None)
        sizes = [
            "" if drift is None or math.isnan(drift[key]) or drift[key] == 0 else f"{drift[key]:.0e}"
            for key in ("g", "g_between", "Gv", "Gv_between", "I")
        ]
        rank = [math.inf if time is None else time[0] for time in (times[3], times[1], times[0])]
        lines.append(
            (
                rank,
                [
                    name,
                    *["–" if time is None else microseconds(time[0]) for time in times],
                    f"{min(row['error'] for row in runs):.0e}",
                    f"{typical['steps']:.0f}",
                    f"{typical['evaluations']:.0f}" if typical["evaluations"] else "",
                    *sizes,
                ],
            )
        )
    header = [
        "code",
        *[f"{error:.0e}" for error in ERRORS],
        "best error",
        "steps",
        "evaluations",
        "\\|g\\|",
        "between steps",
        "\\|Gv\\|",
        "between steps",
        "\\|I − I₀\\|",
    ]
    text = markdown(header, [line for _, line in sorted(lines, key=lambda item: item[0])])
    absent = [
        f"{row['peer']}: {row['message']}"
        for kind in ("refused", "failed")
        for row in results.of(kind, problem=problem)
    ]
    for title, items in (("Failed", failed), ("Not stated", absent)):
        if items:
            text += f"\n{title}: " + "; ".join(items) + ".\n"
    return text


def first_table(results: Results) -> str:
    kinds = ("fresh", "new", "known")
    found = {kind: {row["peer"]: row for row in results.of(f"first, {kind}")} for kind in kinds}
    peers = list(dict.fromkeys(peer for kind in kinds for peer in found[kind]))

    def cell(kind: str, peer: str) -> str:
        row = found[kind].get(peer)
        return "–" if row is None or math.isnan(row["median_us"]) else f"{row['median_us'] / 1e6:.2g} s"

    return markdown(
        ["peer", "nothing compiled yet", "a new model", "a known model"],
        [[peer, *[cell(kind, peer) for kind in kinds]] for peer in peers],
    )


def growth_table(results: Results) -> str:
    """Microseconds of a step at the level nearest to the tolerance 1e-6, or to 1000 steps, and the exponent
    of N between the last two.
    """
    problems, found = FAMILIES["Chains"], {}
    for problem in problems:
        for peer, code in results.codes(problem):
            runs = [row for row in results.runs(problem, peer, code) if row["error"] < 1]
            if runs:
                row = min(
                    runs, key=lambda row: abs(math.log10(row["level"]) - (-6 if row["level"] < 1 else 3))
                )
                found.setdefault((peer, code), {})[problem] = row["median_us"] / row["steps"]
    lines = []
    for (peer, code), steps in found.items():
        known = [(float(problem.split("_")[1]), steps[problem]) for problem in problems if problem in steps]
        exponent = (
            f"{math.log(known[-1][1] / known[-2][1]) / math.log(known[-1][0] / known[-2][0]):.2f}"
            if len(known) > 1
            else ""
        )
        lines.append(
            [
                f"{peer}: {code}",
                *[f"{steps[problem]:.3g}" if problem in steps else "–" for problem in problems],
                exponent,
            ]
        )
    return markdown(["µs a step", "N = 10", "100", "1000", "grows as N to the"], lines)


def limit_table(results: Results) -> str:
    """Time of a run near error 1e-6 over that of its evaluations of the accelerations alone."""
    lines = []
    for problem in FAMILIES["Mechanisms"] + FAMILIES["Chains"]:
        for peer, code in results.codes(problem):
            runs = [
                row
                for row in results.runs(problem, peer, code)
                if row["kernel_ns"] > 0 and row["evaluations"] > 0
            ]
            if runs:
                row = nearest(runs)
                bare = row["kernel_ns"] * row["evaluations"] / 1e3
                lines.append(
                    [
                        TITLES.get(problem, problem),
                        f"{peer}: {code}",
                        f"{row['kernel_ns']:.0f} ns",
                        f"{row['evaluations']:.0f}",
                        microseconds(bare),
                        microseconds(row["median_us"]),
                        f"{row['median_us'] / bare:.1f}",
                    ]
                )
    return markdown(
        ["problem", "code", "one evaluation", "evaluations", "together", "run", "run / evaluations"], lines
    )


def draw(results: Results, folder: Path) -> dict[str, Path]:
    """A picture of time against error for each family, a panel for each problem; colours are peers, lines are
    codes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for family, names in FAMILIES.items():
        here = [name for name in names if results.of("run", problem=name)]
        if not here:
            continue
        columns = min(3, len(here))
        lines = -(-len(here) // columns)
        figure, axes = plt.subplots(
            lines, columns, figsize=(4.6 * columns, 3.7 * lines), squeeze=False, layout="constrained"
        )
        for axis in axes.flat[len(here) :]:
            axis.set_visible(False)
        handles = {}
        for axis, problem in zip(axes.flat, here, strict=False):
            for peer, code in results.codes(problem):
                curve, ours = results.curve(problem, peer, code), peer == "holonome"
                style = {"lw": 1.6, "ms": 5, "zorder": 3} if ours else {"lw": 0.7, "ms": 3, "alpha": 0.7}
                (handles[peer],) = axis.loglog(
                    np.maximum(curve.errors, 1e-14),
                    curve.times / 1e3,
                    ".-",
                    color=COLOURS.get(peer, "0.5"),
                    **style,
                )
            axis.invert_xaxis()
            axis.set_title(TITLES.get(problem, problem), fontsize=9)
            axis.set_xlabel("error at the end")
            axis.set_ylabel("ms")
            axis.grid(alpha=0.3)
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=3 * columns)
        files[family] = folder / f"peers_{family.lower().replace(' ', '_')}.png"
        figure.savefig(files[family], dpi=110)
        plt.close(figure)
    return files


INTRODUCTION = """# Benchmarks

{where}
This page is written by `python benchmarks/peers.py report` from
[peers.csv](../benchmarks/results/peers.csv); `benchmarks/README.md` describes how it is measured, and the
settings of each peer with their reasons.

Times are medians of runs taken in turns, read off at the same achieved error: the largest
|y − y_ref| / (1 + |y_ref|) of positions and velocities at the end, of positions alone for smooth motion. Ours
are whole calls of `hn.solve()` from Python; those of SUNDIALS are the solve alone in C. |g|, |Gv| and the
change of invariants are the largest over the run, at the steps and between them.

## Goals

SUNDIALS is Debian's package here, which is compiled without optimisation. The spread is that of the
quartiles.
"""
OTHERS = """## Beyond the goals

The same against a build of SUNDIALS with -O3, against its explicit Runge–Kutta methods with a projection
written by hand, and by formulation.
"""
FIRST = """## Time to the first result

Slider-crank at tolerance 1e-6 (or with 1000 steps), from the start of the process: import, compilation, and
one run. Peers in Python get C functions, so the time of gcc and Numba is included.
"""
LIMIT = """## Distance to the limit

Time of a run near error 1e-6 divided by the time of its evaluations of the accelerations alone. What exceeds
one is error control, projection, storage and, for us, Python.
"""


FINDINGS = Path(__file__).parents[1] / "findings.md"
"""Why goals were missed, and what the measurements say about the choice of a method; written by hand."""
SUMMARY = (
    ("default, against CVODE's BDF with projection", "auto", "sundials", "CVODE BDF, projected"),
    ("default, against ARKODE with projection", "auto", "sundials", "ARKODE"),
    ("BDF on GGL, against IDA on GGL", "ggl", "sundials", "IDA GGL"),
    ("BDF on index 2, against IDA on index 2", "index2", "sundials", "IDA index 2"),
    (
        "BDF with projection, against CVODE's BDF with projection",
        "bdf on the underlying ODE",
        "sundials",
        "CVODE BDF, projected",
    ),
    ("default, against scikit-sundae", "auto", "scikit-sundae", ""),
    ("default, against scipy_dae", "auto", "scipy_dae", ""),
    ("default, against SciPy", "auto", "scipy", ""),
    ("default, against diffrax", "auto", "diffrax", ""),
    ("default, against Exudyn", "auto", "exudyn", ""),
)
BEGIN, END = "<!-- peers: written by benchmarks/peers.py report -->", "<!-- end of peers -->"


def summary(results: Results) -> str:
    """Ratios at errors 1e-4 / 1e-6 on three problems, for the README; in brackets to SUNDIALS with -O3."""
    problems = ("pendulum", "slider_crank", "andrews")

    def pair(problem: str, ours: str, peer: str, theirs: str) -> str:
        ratios = [
            _ratio(results, "", problem, _of(peer, theirs), error, ours=ours).ratio for error in (1e-4, 1e-6)
        ]
        return " / ".join("–" if math.isnan(ratio) else f"{ratio:.2g}" for ratio in ratios)

    def cell(problem: str, ours: str, peer: str, theirs: str) -> str:
        optimised = results.of("version", peer="sundials -O3") and peer == "sundials"
        return pair(problem, ours, peer, theirs) + (
            f" ({pair(problem, ours, 'sundials -O3', theirs)})" if optimised else ""
        )

    return markdown(
        ["", "pendulum", "slider-crank", "Andrews"],
        [[what, *[cell(problem, *rest) for problem in problems]] for what, *rest in SUMMARY],
    )


def write(source: Path, page: Path, readme: Path | None = None) -> None:
    """The page with all tables and pictures; a readme gets the summary between its marks."""
    results = Results.load(source)
    pictures = draw(results, page.parent / "images")
    one = next(iter(results.of("run")), {})
    versions = [f"{row['peer']} {row['version']}" for row in results.of("version")] + [
        f"{row['peer']} is missing ({row['message']})" for row in results.of("absent")
    ]
    where = (
        f"Measured on {one.get('date')} on {one.get('machine')}, Python {one.get('python')}, one thread: "
        f"{', '.join(versions)}."
    )
    parts = [
        INTRODUCTION.format(where=where),
        goals_table(results),
        FINDINGS.read_text(encoding="utf-8"),
        OTHERS,
        others_table(results),
    ]
    for family, file in pictures.items():
        parts += [f"## {family}\n", f"![time against error](images/{file.name})\n"]
        for name in FAMILIES[family]:
            if results.of("run", problem=name):
                parts += [f"### {TITLES[name]}\n", problem_table(results, name)]
    parts += [
        "## How time grows with the length of a chain\n",
        growth_table(results),
        FIRST,
        first_table(results),
        LIMIT,
        limit_table(results),
    ]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")
    if readme is not None and BEGIN in (text := readme.read_text(encoding="utf-8")):
        before, rest = text.split(BEGIN, 1)
        readme.write_text(
            f"{before}{BEGIN}\n\n{summary(results)}\n{END}{rest.split(END, 1)[1]}", encoding="utf-8"
        )

"""Ascher & Lin 1995: sequential regularization methods for nonlinear higher index DAEs.

All runs of section 6 take Heun's method at constant step and y₀ ≡ 0, with y_{s−1} carried as mesh values;
"Baumgarte" is α₁ = 1, ε = 0 with α₂ = 1/h. Errors are largest over the components; drift is the largest |g|.

References
----------
U. Ascher and P. Lin, Sequential regularization methods for nonlinear higher index DAEs, SIAM J. Sci. Comput.
18 (1997) 160-181. The technical report of 1995 is quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import holonome as hn
from holonome.papers.experiment import (
    LOGARITHMIC,
    Claim,
    Curve,
    Figure,
    Panel,
    Progress,
    Row,
    Table,
    load,
    published,
    run_of,
)
from holonome.plot import COLOURS

PAPER = load("ascher_lin_1995")

CLOSE, CLOSE_FOURTH = 0.05, 0.15
"""Allowed relative deviations of an error, in iterations 1 to 3, and in iteration 4, where only the error of
Heun's method is left.
"""

SYMBOLS = {
    "method": "α₁ = 1: not stiff, one iteration; α₁ = 0: iterated; E: the matrix in front of the penalty; "
    "Baumgarte: (2.13)",
    "it.": "iterations s",
    "t": "time",
    "ex": "largest error of the components of x",
    "drift": "largest |g|",
}

CRITERION = (
    f"every value within {100 * CLOSE:.0f} % of the published one, in iteration 4 within "
    f"{100 * CLOSE_FOURTH:.0f} %"
)

Exact = Callable[[Any], np.ndarray]
Problem = tuple[Any, Exact]
"""An `hn.Index2System` and its solution."""


def heun(step: float, **srm: Any) -> hn.Method:
    """The paper's method: y₀ ≡ 0, Heun at constant step."""
    return hn.Method(hn.SRM(y0=0.0, **srm), hn.RungeKutta("heun", step=step))


def baumgarte(step: float) -> hn.Method:
    """(2.13) with α₂ = 1/h."""
    return heun(step, eps=0.0, iterations=1, E="inverse", alpha=(1.0, 1 / step))


def example_3_1_problem() -> Problem:
    """Example 3.1; P depends on the direction in which (0, π) is approached. The first entry of f is printed
    as sin x₁, with which the stated solution is none.
    """

    def f(x):
        return np.array([np.sin(x[1]), 2 * np.sin(x[1]) - np.sin(x[0])]) / (np.sin(x[1]) - np.sin(x[0]))

    system = hn.Index2System(
        f, lambda x: np.sin(x), lambda x: -np.cos(x[0]) - np.cos(x[1]), n=2, name="example 3.1"
    )
    return system, lambda t: np.array([t - np.pi / 2, t + np.pi / 2])


def example_6_1() -> Problem:
    """Example 6.1, without a singularity. f₁ is printed as 1 − eᵗ; the stated solution belongs to 1 − e⁻ᵗ."""
    system = hn.Index2System(
        lambda t: np.array([1 - np.exp(-t), np.cos(t) + np.exp(t) * np.sin(t)]),
        lambda x: x,
        lambda t, x: (x @ x - np.exp(-2 * t) - np.sin(t) ** 2) / 2,
        n=2,
        name="example 6.1",
    )
    return system, lambda t: np.array([np.exp(-t), np.sin(t)])


def example_6_2() -> Problem:
    """Example 6.2: singular at t = 1/2, where y is bounded."""
    system = hn.Index2System(
        lambda t: np.array([1 + (t - 0.5) * np.exp(t), 2 * t + (t**2 - 0.25) * np.exp(t)]),
        lambda x: x,
        lambda t, x: (x @ x - (t - 0.5) ** 2 - (t**2 - 0.25) ** 2) / 2,
        n=2,
        name="example 6.2",
    )
    return system, lambda t: np.array([t - 0.5, t**2 - 0.25])


def example_6_3() -> Problem:
    """Example 6.3: singular at t = 1/2, where y is unbounded."""
    system = hn.Index2System(
        lambda t, x: np.array([-x[0] + x[1] - np.sin(t) - (1 + 2 * t), 0.0]),
        lambda x: np.array([0.0, x[0]]),
        lambda t, x: x[0] ** 2 + x[0] * (x[1] - np.sin(t) - 1 + 2 * t),
        n=2,
        name="example 6.3",
    )
    return system, lambda t: np.array([1 - 2 * t, np.sin(t)])


def errors(
    problem: Problem, method: hn.Method, times: Sequence[float], end: float = 1.0
) -> dict[float, dict[str, float]]:
    """Error and drift at the wanted times; NaN after a failure. The nearest point of the mesh is taken, so
    that a failure at the singular point is seen as the paper shows it.
    """
    system, exact = problem
    sol = hn.solve(system, (0, end), exact(0.0), method=method)
    ex, drift, found = np.max(np.abs(sol.x - exact(sol.t)), axis=0), np.max(np.abs(sol.g), axis=0), {}
    for t in times:
        i = int(np.argmin(np.abs(sol.t - t)))
        near = abs(sol.t[i] - t) < 1e-6
        found[t] = {"ex": float(ex[i]) if near else np.nan, "drift": float(drift[i]) if near else np.nan}
    return found


def _row(
    case: dict[str, str], expected: dict[str, float], found: dict[str, float], iteration: int, why: str
) -> Row:
    allowed = CLOSE if iteration < 4 else CLOSE_FOURTH
    good = all(
        np.isnan(found[name]) if np.isnan(value) else abs(found[name] - value) <= allowed * value
        for name, value in expected.items()
    )
    return Row.compared(case, expected, found, good, why)


def _index_2(
    table: str,
    methods: Callable[[str, int], tuple[Problem, hn.Method]],
    reasons: dict[tuple[str, str, str], str],
    default: str,
    progress: Progress,
) -> list[Row]:
    """Rows of Tables 6.1 to 6.3."""
    lines, rows, known = published("ascher_lin_1995", table), [], {}
    for i, line in enumerate(lines):
        key = line["method"], int(line["iteration"])
        if key not in known:
            progress(i / len(lines), f"{key[0]}, iteration {key[1]}")
            problem, method = methods(*key)
            known[key] = errors(
                problem,
                method,
                [float(other["t"]) for other in lines if (other["method"], int(other["iteration"])) == key],
            )
        case = {"method": line["method"], "it.": line["iteration"], "t": line["t"]}
        expected = {name: float(line[name]) for name in ("ex", "drift")}
        rows.append(
            _row(
                case,
                expected,
                known[key][float(line["t"])],
                key[1],
                reasons.get((line["method"], line["iteration"], line["t"]), default),
            )
        )
    return rows


_MATRICES = {"E=I": "identity", "E=(GB)ᵀ": "transpose", "E=(GB)⁻¹": "inverse"}


def _of_table_6_1(method: str, iteration: int) -> tuple[Problem, hn.Method]:
    if method == "Baumgarte":
        return example_6_1(), baumgarte(1e-3)
    alpha, E = method.split()
    if alpha == "α1=1":
        return example_6_1(), heun(1e-3, eps=1e-8, iterations=1, E=_MATRICES[E], alpha=(1.0, 1.0))
    return example_6_1(), heun(1e-3, eps=5e-3, iterations=iteration, E=_MATRICES[E])


@PAPER.experiment("table-6.1", "Example 6.1, index 2 without a singularity, h = 0.001")
def table_6_1(progress: Progress) -> Table:
    """
    Two equations with one constraint and the exact solution (e⁻ᵗ, sin t), by Heun's method with h = 0.001 and
    y₀ ≡ 0: a single iteration with α₁ = 1 and ε = 1e-8, one to four iterations with α₁ = 0 and ε = 5e-3, each
    for three matrices E, and Baumgarte's method.
    """
    fits = "fits its neighbours and its drift."
    misprint = {
        ("α1=0 E=(GB)ᵀ", "1", ".5"): f"Misprint: .16e-1 {fits}",
        ("α1=0 E=(GB)ᵀ", "4", ".5"): f"Misprint: .91e-6 {fits}",
    }
    rows = _index_2("table_6_1", _of_table_6_1, misprint, "", progress)
    per = {
        row.case["it."]: row.measured["ex"]
        for row in rows
        if row.case["method"] == "α1=0 E=I" and row.case["t"] == "1"
    }
    ratios = [per[str(s)] / per[str(s + 1)] for s in (1, 2)]
    return Table(
        rows=rows,
        symbols=SYMBOLS,
        criterion=CRITERION,
        claims=[
            Claim.of(
                "For α₁ = 0 each iteration improves the error at a rate of about O(ε), until that of the "
                "second-order method is reached.",
                min(ratios) > 20,
                f"at t = 1 with E = I by factors of {ratios[0]:.0f} and {ratios[1]:.0f}, ε being 1/200; "
                "the fourth iteration is left with the error of Heun's method.",
            )
        ],
    )


def _of_table_6_2(method: str, iteration: int) -> tuple[Problem, hn.Method]:
    return example_6_2(), {
        "α1=1": partial(heun, eps=1e-10, iterations=1, E="inverse", alpha=(1.0, 1e3)),
        "Baumgarte": baumgarte,
        "α1=0": partial(heun, eps=1e-3, iterations=iteration, variant="singular"),
    }[method](1e-3)


@PAPER.experiment("table-6.2", "Example 6.2, singular at t = 1/2 with bounded y, h = ε = 0.001")
def table_6_2(progress: Progress) -> Table:
    """
    Two equations with a constraint that loses its rank at t = 1/2, where the step falls exactly on the
    singular point. Three methods: (3.2), which is made for it, with one to four iterations; α₁ = 1 with ε =
    1e-10; and Baumgarte's.
    """
    why = (
        "The drifts of this row are those of α₂ = 1/h, as for Baumgarte, not of α₂ = 1; its errors do not "
        "come out with either, nor with another E."
    )
    rows = _index_2("table_6_2", _of_table_6_2, {}, why, progress)
    worst = {
        row.case["method"] + row.case["it."]: row.measured["ex"] for row in rows if row.case["t"] == ".7"
    }
    return Table(
        rows=rows,
        symbols=SYMBOLS,
        criterion=CRITERION,
        claims=[
            Claim.of(
                "The errors of Baumgarte's method and of α₁ ≠ 0 deteriorate at the singularity; SRM with α₁ "
                "= 0 performs better.",
                worst["α1=03"] < 0.01 * min(worst["Baumgarte1"], worst["α1=11"]),
                f"at t = 0.7 {worst['Baumgarte1']:.1e} and {worst['α1=11']:.1e} against {worst['α1=03']:.1e} "
                "after three iterations.",
            )
        ],
        notes=["With α₂ = 1 the row α₁ = 1 has errors of order 1 after the singular point."],
    )


def _of_table_6_3(method: str, iteration: int) -> tuple[Problem, hn.Method]:
    return example_6_3(), baumgarte(1e-3) if method == "Baumgarte" else heun(
        1e-3, eps=1e-3, iterations=iteration, variant="singular"
    )


@PAPER.experiment("table-6.3", "Example 6.3, singular at t = 1/2 with unbounded y, h = ε = 0.001")
def table_6_3(progress: Progress) -> Table:
    """As Table 6.2, but with a multiplier y = −cos t/(1 − 2t) that is unbounded at the singular point t =
    1/2: (3.2) with three iterations, and Baumgarte's method.
    """
    rows = _index_2(
        "table_6_3",
        _of_table_6_3,
        {},
        "At the singular point only the blow-up is meaningful: both values are rounding divided by rounding.",
        progress,
    )
    blown = [row for row in rows if row.case["method"] == "Baumgarte" and row.case["t"] in (".5", ".7", "1")]
    return Table(
        rows=rows,
        symbols=SYMBOLS,
        criterion=CRITERION + "; NaN where NaN is printed",
        claims=[
            Claim.of(
                "Baumgarte's method blows up upon hitting the singularity, SRM with α₁ = 0 performs well.",
                all(not row.measured["ex"] < 1 for row in blown),
                "so it is; SRM's errors come out to the two digits published.",
            )
        ],
    )


@PAPER.experiment("table-6.4", "Example 6.4, a two-link arm, (5.3)–(5.4) with E = I, h = 0.001, ε = 0.005")
def table_6_4(progress: Progress) -> Table:
    """
    A two-link robot arm whose end moves on a line, with the exact solution θ₁ = sin t, θ₂ = −2 sin t, by the
    method for mechanical systems with E = I, which needs neither second derivatives of the constraints nor
    GM⁻¹Gᵀ. The mechanism is `two_link_arm`.
    """
    mechanism = hn.mechanisms.two_link_arm()
    assert mechanism.exact is not None
    rows, known, lines = [], {}, published("ascher_lin_1995", "table_6_4")
    for line in lines:
        s, t = int(line["iteration"]), float(line["t"])
        if s not in known:
            progress((s - 1) / 3, f"iteration {s}")
            sol = run_of(
                mechanism,
                (0, 1),
                method=heun(1e-3, eps=5e-3, iterations=s),
                t_eval=[0.1, 0.5, 1.0],
            )
            q, v, _ = mechanism.exact(sol.t)
            known[s] = {
                name: np.max(np.abs(values), axis=0)
                for name, values in {
                    "eq": sol.q - q,
                    "ev": sol.v - v,
                    "pdrift": sol.g,
                    "vdrift": sol.gv,
                }.items()
            }
        at = [0.1, 0.5, 1.0].index(t)
        for level, names in (("position", ("eq", "pdrift")), ("velocity", ("ev", "vdrift"))):
            expected = {name: float(line[name]) for name in names}
            found = {name: float(known[s][name][at]) for name in names}
            shown = (
                {"error": expected[names[0]], "drift": expected[names[1]]},
                {"error": found[names[0]], "drift": found[names[1]]},
            )
            rows.append(
                _row(
                    {"it.": line["iteration"], "t": line["t"], "level": level},
                    *shown,
                    s,
                    "Misprint: .44e-2 fits the values before and after it.",
                )
            )
    told = ", ".join(f"{known[s]['eq'][2]:.1e}" for s in (1, 2, 3))
    return Table(
        rows=rows,
        symbols={
            "it.": "iterations s",
            "t": "time",
            "level": "position: eq and pdrift of the paper, velocity: ev and vdrift",
            "error": "largest error of the components",
            "drift": "|g|, or |G v|",
        },
        criterion=CRITERION,
        claims=[
            Claim.of(
                "The accuracy is improved significantly by the first two iterations; the third is "
                "unnecessary, as the error of Runge–Kutta dominates.",
                known[2]["eq"][2] < 1e-3 * known[1]["eq"][2],
                f"at t = 1 the errors of q are {told}.",
            )
        ],
        notes=[f"The printed ε = 5e-4 of the third iteration is refused here: {_refused(mechanism)}"],
    )


def _refused(mechanism: Any) -> str:
    try:
        run_of(
            mechanism,
            (0, 1),
            method=heun(1e-3, eps=[5e-3, 5e-3, 5e-4], iterations=3),
        )
    except ValueError as error:
        return str(error).split(". Admissible")[0] + "."
    return "it is not."


_CRANK = "Masses, lengths and gravity are not published; taken here: uniform bars with m = ℓ = 1, and 9.81."


def crank(iterations: int, t_eval: np.ndarray, **start: float) -> hn.Solution:
    """Example 6.5: (5.5)–(5.6) with h = ε = 1e-4."""
    mechanism = hn.mechanisms.slider_crank(**start)
    return run_of(
        mechanism,
        (0, float(t_eval[-1])),
        method=heun(1e-4, eps=1e-4, iterations=iterations, variant="singular"),
        t_eval=t_eval,
    )


@PAPER.experiment("table-6.5", "Example 6.5, drifts of the slider-crank at t = 30, h = ε = 1e-4")
def table_6_5(progress: Progress) -> Table:
    """
    A slider-crank with bars of equal length passes a singular position in every swing. Its drifts after 30 s
    by (5.5)–(5.6), made for this, with one and two iterations. The mechanism is `slider_crank`.
    """
    rows, drift = [], {}
    for line in published("ascher_lin_1995", "table_6_5"):
        s = int(line["iteration"])
        progress((s - 1) / 2, f"iteration {s}")
        sol = crank(s, np.array([30.0]))
        found = {
            "position drift": float(np.max(np.abs(sol.g))),
            "velocity drift": float(np.max(np.abs(sol.gv))),
        }
        drift[s] = found
        expected = {name: float(line[name]) for name in found}
        rows.append(
            _row(
                {"it.": line["iteration"]},
                expected,
                found,
                s,
                "The drift is proportional to the multipliers, so to data that are not published.",
            )
        )
    factor = drift[1]["velocity drift"] / drift[2]["velocity drift"]
    return Table(
        rows=rows,
        symbols={
            "it.": "iterations s",
            "position drift": "largest |g| at t = 30",
            "velocity drift": "largest |G v| at t = 30",
        },
        criterion=CRITERION,
        claims=[
            Claim.of(
                "The second iteration improves the drift by about 1000.",
                factor > 100,
                f"the velocity drift by {factor:.0f}.",
            )
        ],
        notes=[_CRANK, "The position drift of the second iteration is that of Heun's method."],
    )


def _curves(x: np.ndarray, values: dict[str, np.ndarray]) -> list[Curve]:
    return [
        Curve(name, x, y, {"color": colour, "linewidth": 0.9})
        for (name, y), colour in zip(values.items(), COLOURS, strict=False)
    ]


@PAPER.experiment("figure-6.1", "the slider-crank through its singular positions up to t = 70")
def figure_6_1(progress: Progress) -> Figure:
    """
    The slider-crank of Table 6.5 from φ₁ = 7π/4 at rest, 70 s with h = ε = 1e-4: the angles θ₁ = φ₁ − 3π/2
    and θ₂ = φ₂ − π/2, their velocities, and the error of θ₁ for one, two and three iterations, against a run
    with projection at a tolerance of 1e-13. Then four other methods are tried on it.
    """
    times, mechanism = np.linspace(0, 70, 3501), hn.mechanisms.slider_crank()
    exact = run_of(mechanism, (0, 70), rtol=1e-13, atol=1e-13, t_eval=times)
    solutions = {}
    for s in (1, 2, 3):
        progress((s - 1) / 3, f"iteration {s}")
        solutions[s] = crank(s, times)
    last = solutions[3]
    angles = {"θ₁": last.q[2] - 1.5 * np.pi, "θ₂": last.q[5] - 0.5 * np.pi}
    velocities = {"θ₁′": last.v[2], "θ₂′": last.v[5]}
    difference = {
        f"iteration {s}": np.abs(sol.q[2] - exact.q[2][: sol.t.size]) for s, sol in solutions.items()
    }
    worst = dict(enumerate((float(np.max(values)) for values in difference.values()), 1))
    done = all(sol.success for sol in solutions.values())
    return Figure(
        panels=[
            Panel(
                "angles", "time t [s]", "[rad]", _curves(times, angles), {"xlim": (0, 70), "ylim": (-1, 1.8)}
            ),
            Panel(
                "angular velocities",
                "time t [s]",
                "[rad/s]",
                _curves(times, velocities),
                {"xlim": (0, 70), "ylim": (-1.8, 3.2)},
            ),
            Panel(
                "error of θ₁",
                "time t [s]",
                "[rad]",
                _curves(
                    times[1:], {name: np.maximum(value[1:], 1e-12) for name, value in difference.items()}
                ),
                {"yscale": "log", "xlim": (0, 70)},
            ),
        ],
        columns=1,
        size=(7.4, 2.2),
        claims=[
            Claim.of(
                "The solution is calculated until t = 70 without any difficulty.",
                done and worst[2] < 1e-3 and worst[3] < 1e-5,
                f"largest errors of θ₁ of {worst[1]:.2g}, {worst[2]:.1e}, {worst[3]:.1e} after 1, 2, 3 "
                "iterations.",
            ),
            _others(mechanism),
        ],
        notes=[_CRANK],
    )


def _others(mechanism: Any) -> Claim:
    """How the methods for regular problems fare."""
    tried = {
        "E = I": hn.Method(hn.SRM(eps=1e-3, iterations=3, y0=0.0), hn.RungeKutta("heun", step=1e-4)),
        "the unstabilised ODE": hn.Method(
            hn.UnderlyingODE(projection=False), hn.RungeKutta("heun", step=1e-4)
        ),
        "Baumgarte, α = (200, 1e4)": hn.Method(hn.Baumgarte(100.0, 100.0), hn.RungeKutta("heun", step=1e-4)),
        "projection (dop853, rtol 1e-8)": hn.Method(hn.UnderlyingODE(), hn.RungeKutta("dop853")),
    }
    told, wrong = [], []
    for name, method in tried.items():
        sol = run_of(
            mechanism,
            (0, 70),
            method=method,
            rtol=1e-8,
            atol=1e-8,
            keep_steps=False,
            t_eval=[35.0, 70.0],
        )
        with np.errstate(all="ignore"):
            change = (
                float(np.max(np.abs(sol.energy - mechanism_energy(mechanism))))
                if sol.success and sol.energy is not None
                else np.inf
            )
        wrong.append(not change < 0.1)
        told.append(f"{name} {'fails' if wrong[-1] else f'keeps the energy to {change:.0e}'}")
    statement = (
        "The formulations without regard to singularities, and the usual stabilizations, give wildly "
        "different results after several periods."
    )
    return Claim.of(statement, all(wrong), "; ".join(told) + ".")


def mechanism_energy(mechanism: Any) -> float:
    """The energy at the start."""
    sol = run_of(mechanism, (0, 1e-3))
    assert sol.energy is not None
    return float(sol.energy[0])


@PAPER.experiment("figure-6.2", "acceleration of the slider end, φ₁(0) = π/4, φ₁′(0) = 2√2")
def figure_6_2(progress: Progress) -> Figure:
    """
    The slider-crank started at φ₁ = π/4 with a velocity that carries it around: the horizontal acceleration
    of the slider end with three iterations, and the relative change of the energy, which should be zero, with
    one to four.
    """
    times, changes, last = np.linspace(0, 10, 4001), {}, None
    for s in (1, 2, 3, 4):
        progress((s - 1) / 4, f"iteration {s}")
        sol = crank(s, times, phi1=np.pi / 4, omega1=2 * np.sqrt(2))
        assert sol.energy is not None
        changes[s] = (sol.energy - sol.energy[0]) / sol.energy[0]
        last = sol if s == 3 else last
    assert last is not None
    slider = last.v[3] - 0.5 * np.sin(last.q[5]) * last.v[5]
    acceleration = np.gradient(slider, times)
    inner = (
        (acceleration[1:-1] > acceleration[:-2])
        & (acceleration[1:-1] > acceleration[2:])
        & (acceleration[1:-1] > 0.5 * np.max(acceleration))
    )
    peaks = acceleration[1:-1][inner]
    spread = float(np.ptp(peaks) / np.max(peaks))
    return Figure(
        panels=[
            Panel(
                "acceleration of the slider end, three iterations",
                "time t [s]",
                "[m/s²]",
                _curves(times, {"": acceleration}),
                {"xlim": (0, 10)},
            ),
            Panel(
                "relative change of the energy",
                "time t [s]",
                "|ΔE|/E",
                _curves(
                    times[1:],
                    {
                        f"iteration {s}": np.maximum(np.abs(change[1:]), 1e-10)
                        for s, change in changes.items()
                    },
                ),
                {"yscale": "log", "xlim": (0, 10)},
            ),
        ],
        columns=1,
        size=(7.4, 2.6),
        claims=[
            Claim.of(
                "The maximum values in each period do not differ, as they do in an earlier result.",
                spread < 0.02,
                f"{peaks.size} maxima, equal to {spread:.1%}; the energy changes by "
                f"{', '.join(f'{change[-1]:.1g}' for change in changes.values())} in 1 to 4 iterations, "
                "so that it takes three.",
            )
        ],
        notes=[_CRANK, "The interval of time is not given; t ≤ 10 here."],
    )


@PAPER.experiment(
    "example-3.1", "P depends on the direction of approach: (3.2) through the singular point t = π/2"
)
def example_3_1(progress: Progress) -> Figure:
    """
    A problem whose solution passes a singular point at t = π/2 and whose projection depends on the direction
    of approach, by (3.2) with h = ε = 0.001 and one to three iterations: the error of x, and the largest
    entry of B y, which should be 1/2.
    """
    system, exact = example_3_1_problem()
    errors_, sizes = [], []
    ends = {}
    for s in (1, 2, 3):
        progress((s - 1) / 3, f"iteration {s}")
        sol = hn.solve(
            system, (0, 3), exact(0.0), method=heun(1e-3, eps=1e-3, iterations=s, variant="singular")
        )
        ex = np.max(np.abs(sol.x - exact(sol.t)), axis=0)
        ends[s] = float(np.max(ex[(sol.t > 0.3) & (sol.t < 1.3)])), float(ex[-1])
        errors_.append(
            Curve(f"iteration {s}", sol.t[1:], np.maximum(ex[1:], 1e-13), {"color": COLOURS[s - 1]})
        )
        sizes.append(
            Curve(f"iteration {s}", sol.t, np.max(np.abs(sol.By), axis=0), {"color": COLOURS[s - 1]})
        )
    return Figure(
        panels=[
            Panel("error of x", "time t", "", errors_, {"yscale": "log"}),
            Panel("largest |(B y)ᵢ|, exactly 1/2", "time t", "", sizes, {"ylim": (0, 1.5)}),
        ],
        claims=[
            Claim.of(
                "Near the singular point the accuracy is reduced and no longer behaves like O(εˢ); B y may "
                "fail to be approximated there.",
                all(ends[s][1] > 10 * ends[s][0] for s in (2, 3)),
                f"errors of x before the singular point {', '.join(f'{ends[s][0]:.0e}' for s in ends)}, "
                f"after it {', '.join(f'{ends[s][1]:.0e}' for s in ends)}.",
            )
        ],
        notes=["The error after the point remains, as nothing draws a solution back along the constraint."],
    )


_TIMES = np.linspace(0.4, 1.0, 13)
_EPS = np.array([1e-2, 5e-3, 2e-3, 1e-3])
_SMALL_EPS = np.array([2e-3, 1e-3, 5e-4, 2.5e-4])
"""For index 2, where the layer at the start is longer; for index 3 the errors of y would be those of
rounding.
"""
Errors = tuple[float, float]
"""Of x and y, or of q, v and λ."""


def _slope(eps: np.ndarray, values: np.ndarray) -> float:
    return float(np.polyfit(np.log(eps), np.log(values), 1)[0])


def _theorem(
    statement: str,
    cases: dict[str, Callable[[float, int], Errors]],
    names: tuple[str, str],
    progress: Progress,
    notes: list[str],
    values_of_eps: np.ndarray = _EPS,
) -> Figure:
    panels, told, good = [], [], []
    for i, (case, run) in enumerate(cases.items()):
        curves = []
        for s in (1, 2, 3):
            progress((i + (s - 1) / 3) / len(cases), f"{case}, iteration {s}")
            for name, values, dashed in zip(
                names, np.array([run(float(eps), s) for eps in values_of_eps]).T, (False, True), strict=True
            ):
                style = {
                    "color": COLOURS[s - 1],
                    "marker": "o",
                    "ms": 4,
                    "linestyle": "--" if dashed else "-",
                    "mfc": "none" if dashed else COLOURS[s - 1],
                }
                curves.append(Curve(f"{name}, s = {s}", values_of_eps, values, style))
        slopes = [[_slope(values_of_eps, curve.y) for curve in curves[k::2]] for k in (0, 1)]
        panels.append(Panel(case, "ε", "largest error", curves, LOGARITHMIC))
        told.append(
            f"{case}: "
            + " and ".join(
                f"{', '.join(f'{slope:.2f}' for slope in of)} ({name})"
                for name, of in zip(names, slopes, strict=True)
            )
        )
        good.append(all(abs(slope - s) <= 0.1 for of in slopes for s, slope in enumerate(of, 1)))
    return Figure(
        panels=panels,
        claims=[Claim.of(statement, all(good), "slopes for s = 1, 2, 3: " + "; ".join(told) + ".")],
        notes=notes,
    )


def index_2_error(eps: float, s: int, **srm: Any) -> Errors:
    """Largest errors of x and y on Example 6.1 away from the layer at the start, with an integrator that adds
    nothing to them.
    """
    system, exact = example_6_1()
    method = hn.Method(hn.SRM(eps=eps, iterations=s, y0=0.0, **srm), hn.RungeKutta("dop853"))
    sol = hn.solve(system, (0, 1), exact(0.0), method=method, rtol=1e-13, atol=1e-14, t_eval=_TIMES)
    return float(np.max(np.abs(sol.x - exact(sol.t)))), float(np.max(np.abs(sol.y - np.exp(sol.t))))


def _arm(eps: float, s: int, **srm: Any) -> hn.Solution:
    mechanism = hn.mechanisms.two_link_arm()
    method = hn.Method(hn.SRM(eps=eps, iterations=s, **srm), hn.RungeKutta("dop853"))
    return run_of(
        mechanism,
        (0, 1),
        method=method,
        rtol=1e-13,
        atol=1e-14,
        t_eval=_TIMES,
    )


def index_3_error(eps: float, s: int, **srm: Any) -> Errors:
    """Largest errors of q and v, and of λ, on the two-link arm."""
    sol, exact = _arm(eps, s, **srm), hn.mechanisms.two_link_arm().exact
    assert exact is not None
    q, v, lam = exact(sol.t)
    return float(max(np.max(np.abs(sol.q - q)), np.max(np.abs(sol.v - v)))), float(
        np.max(np.abs(sol.lam - lam))
    )


@PAPER.experiment("theorem-2.1", "α₁ = 1: the error after s iterations is O(εˢ)")
def theorem_2_1(progress: Progress) -> Figure:
    """
    Example 6.1 with α₁ = 1 for four values of ε and one to three iterations, with an integrator that adds no
    error of its own (DOP853 with a tolerance of 1e-13). Shown are the largest errors for 0.4 ≤ t ≤ 1; a slope
    of s in these logarithmic axes means O(εˢ).
    """
    cases = {
        f"α₁ = 1, {name}": partial(index_2_error, E=E, alpha=(1.0, 1.0)) for name, E in _MATRICES.items()
    }
    return _theorem(
        "x_s − x_e = O(εˢ) and y_s − y_e = O(εˢ) for 0 ≤ t ≤ t_f and s ≥ 1.",
        cases,
        ("x", "y"),
        progress,
        [],
        _SMALL_EPS,
    )


@PAPER.experiment("theorem-2.2", "α₁ = 0: the error after s iterations is O(εˢ) away from an initial layer")
def theorem_2_2(progress: Progress) -> Figure:
    """As for Theorem 2.1, but with α₁ = 0. As y₀ ≡ 0 is not y(0), m = −1 in (2.14), and there is a layer at
    the start; errors are measured after it.
    """
    cases = {f"α₁ = 0, {name}": partial(index_2_error, E=E) for name, E in _MATRICES.items()}
    return _theorem(
        "x_s − x_e = O(εˢ) and y_s − y_e = O(εˢ) for all s away from an initial layer of size O(ε).",
        cases,
        ("x", "y"),
        progress,
        [],
        _SMALL_EPS,
    )


@PAPER.experiment("theorem-4.1", "index 3, (4.14)–(4.16): the error after s iterations is O(εˢ)")
def theorem_4_1(progress: Progress) -> Figure:
    """
    The two-link arm (`two_link_arm`) for four values of ε and one to three iterations, with an integrator
    that adds no error of its own (DOP853 with a tolerance of 1e-13). Shown are the largest errors of
    positions and velocities z, and of the multiplier, for 0.4 ≤ t ≤ 1.
    """
    cases = {
        "E = I": partial(index_3_error),
        "E = (GB)⁻¹": partial(index_3_error, E="inverse"),
        "(5.5)–(5.6)": partial(index_3_error, variant="singular"),
    }
    return _theorem(
        "z_s − z_e = O(εˢ) and y_s − y_e = O(εˢ) for s ≤ m + 1, if y₀ satisfies (2.14).",
        cases,
        ("z", "y"),
        progress,
        [
            "y₀ is λ(0), so that m = 0. The order is also found for s = 2 and 3, away from the layer, as "
            "Remark 4.2 expects."
        ],
    )


@PAPER.experiment("remark-4.1", "drift with the two kinds of stabilization")
def remark_4_1(progress: Progress) -> Figure:
    """
    The two-link arm with one iteration: the largest |g| for 0.4 ≤ t ≤ 1 against ε, with the iteration based
    on Baumgarte's stabilization, (4.4)–(4.5) with α = (0, 1, 1), and with that based on the invariants,
    (4.14)–(4.16).
    """
    kinds = {
        "Baumgarte, (4.4)–(4.5)": {"variant": "baumgarte", "alpha": (0.0, 1.0, 1.0)},
        "invariants, (4.14)–(4.16)": {},
    }
    curves, slopes = [], []
    for (name, options), colour in zip(kinds.items(), (COLOURS[1], COLOURS[0]), strict=True):
        progress(len(curves) / 2, name)
        values = np.array([np.max(np.abs(_arm(float(eps), 1, **options).g)) for eps in _EPS])
        slopes.append(_slope(_EPS, values))
        curves.append(Curve(name, _EPS, values, {"color": colour, "marker": "o", "ms": 4}))
    return Figure(
        panels=[Panel("drift after one iteration", "ε", "largest |g|", curves, LOGARITHMIC)],
        size=(6.4, 3.6),
        claims=[
            Claim.of(
                "With Baumgarte's stabilization the drift is only O(t ε), which can be much worse than what "
                "(4.20a) gives, O(ε²).",
                abs(slopes[0] - 1) < 0.1 and abs(slopes[1] - 2) < 0.1,
                f"it falls like ε^{slopes[0]:.2f} and ε^{slopes[1]:.2f}.",
            )
        ],
    )


@PAPER.experiment("figure-5.1", "the slider-crank at its start and later")
def figure_5_1(progress: Progress) -> Figure:
    """
    The two bars of equal length in their first position, φ₁ = 7π/4, and at five later instants up to the
    singular position and beyond: where both bars are upright the last row of G vanishes. The mechanism is
    `slider_crank`.
    """
    progress(0.0, "projection, DOP853")
    mechanism, times = hn.mechanisms.slider_crank(), np.linspace(0, 1.2, 6)
    sol = run_of(
        mechanism,
        (0, float(times[-1])),
        rtol=1e-10,
        atol=1e-10,
        t_eval=times,
    )
    curves = []
    for i, t in enumerate(times):
        joint = 2 * sol.q[:2, i]
        end = 2 * sol.q[3:5, i] - joint
        style = {
            "color": "#000000" if i == 0 else COLOURS[0],
            "linestyle": "-" if i == 0 else ":",
            "marker": "o",
            "ms": 4,
            "linewidth": 2.0 if i == 0 else 1.4,
        }
        curves.append(
            Curve(
                f"t = {t:.2f} s", np.array([0.0, joint[0], end[0]]), np.array([0.0, joint[1], end[1]]), style
            )
        )
    speed = float(np.min(np.abs(sol.v[2, 1:])))
    lengths = max(float(np.max(np.abs(np.hypot(np.diff(curve.x), np.diff(curve.y)) - 1))) for curve in curves)
    return Figure(
        panels=[Panel("", "x [m]", "y [m]", curves, {"aspect": "equal"})],
        size=(6.4, 2.5),
        claims=[
            Claim.of(
                "The solution is smooth in the passage through the singularity, with a nonzero velocity.",
                bool(sol.success and curves[-1].x[2] < 0 and speed > 0.1),
                f"the slider passes from x = {curves[0].x[2]:.2f} to {curves[-1].x[2]:.2f} m, the crank "
                f"turns at {speed:.1f} rad/s at least; "
                f"the bars keep their length to {lengths:.0e} m.",
            )
        ],
        notes=["The start is that of Example 6.5.", _CRANK],
    )

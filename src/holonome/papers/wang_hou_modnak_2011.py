"""Wang, Hou & Modnak 2011: an iterative method for constrained dynamic problems.

The model problem (16)–(18), two structures that are joined by x₂ = 2 y₁, at rest in the beginning:

    | 4 1 | x″ = | 2 1 | x + | 6 | − | 0 |          | 5 2 | y″ = | 1 2 | y + | 10 | + | 2λ |
    | 1 3 |      | 1 2 |     | 7 |   | λ |          | 2 4 |      | 0 2 |     |  4 |   |  0 |

is solved for 0 ≤ t ≤ 10 by the splitting (3)–(4), which imposes the constraint on y, in windows Δt of M
sub-steps; here that is ``LocalIteration(update="y", projection=False)``.

References
----------
J. Wang, G. Hou and C. Modnak, An iterative method for constrained dynamic problems – a case study, 2011.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

import holonome as hn
from holonome.papers.experiment import (
    NOT_PUBLISHED,
    Claim,
    Curve,
    Figure,
    Panel,
    Progress,
    Row,
    Table,
    load,
    published,
)
from holonome.plot import COLOURS

PAPER = load("wang_hou_modnak_2011")

PAPER_DATA = "wang_hou_modnak_2011"
END, TOLERANCE, SUBSTEPS = 10.0, 1e-6, 10
CLOSE_ORDER = 0.25
"""By how much an order may differ from the published one."""

A = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([[5.0, 2.0], [2.0, 4.0]])
C = np.array([[-2.0, -1.0], [-1.0, -2.0]]), np.array([[-1.0, -2.0], [0.0, -2.0]])
D = np.array([[0.0, 1.0]]), np.array([[-2.0, 0.0]])
R = np.array([6.0, 7.0]), np.array([10.0, 4.0])


def model(ratio: float = 1.0) -> hn.CoupledSystem:
    """The model problem, (16)–(18); ``ratio`` scales mass, stiffness and load of the first structure."""
    return hn.CoupledSystem.linear(
        [ratio * A[0], A[1]],
        None,
        [ratio * C[0], C[1]],
        D,
        [ratio * R[0], R[1]],
        name="two joined structures",
    )


def simulate(
    window: float, until: float = END, substeps: int = SUBSTEPS, **options: Any
) -> hn.CoupledSolution:
    """A run of the paper: splitting (3)–(4), trapezoidal rule, ε₀ = 1e-6, no projection."""
    method = hn.LocalIteration(
        **{
            "window": window,
            "substeps": substeps,
            "update": "y",
            "rtol": 0.0,
            "atol": TOLERANCE,
            "projection": False,
            **options,
        }
    )
    return hn.solve_coupled(model(), (0.0, until), np.zeros(4), method=method)


def richardson(window: float, **options: Any) -> dict[str, float]:
    """R = |u_Δt − u_Δt/2| / |u_Δt/2 − u_Δt/4| for u = x, y, λ at the end; the order is log₂ R."""
    runs = [simulate(window / k, **options) for k in (1, 2, 4)]
    values = {
        "R_x": [run.q["x"][:, -1] for run in runs],
        "R_y": [run.q["y"][:, -1] for run in runs],
        "R_λ": [run.lam[:, -1] for run in runs],
    }
    return {name: float(np.linalg.norm(a - b) / np.linalg.norm(b - c)) for name, (a, b, c) in values.items()}


def _window(solution: hn.CoupledSolution, end: float) -> np.ndarray:
    """The changes of x, y and λ in the iterations of the window that ends at a time."""
    history = solution.history
    return history.changes[int(np.argmin(np.abs(history.t + history.h - end)))]


def _orders_agree(expected: Mapping[str, float], found: Mapping[str, float]) -> bool:
    return all(abs(np.log2(found[name] / expected[name])) <= CLOSE_ORDER for name in expected)


def _ratios(line: Mapping[str, str]) -> dict[str, float]:
    return {"R_x": float(line["x"]), "R_y": float(line["y"]), "R_λ": float(line["lam"])}


_ORDERS = {
    "part": "(a) iterated, (b) one pass without iteration",
    "Δt": "length of the window",
    "M": "sub-steps in a window",
    **{
        f"R_{name}": f"ratio of the differences of {name} as Δt is halved; its order is log₂ R"
        for name in ("x", "y", "λ")
    },
}
ORDER_CRITERION = f"orders log₂ R within {CLOSE_ORDER} of the published ones"


@PAPER.experiment("table-1", "convergence ratios of x in the window that ends at t = 2, ε₀ = 1e-6")
def table_1(progress: Progress) -> Table:
    """
    The iteration in the window that ends at t = 2, with windows of 1 and 0.5 and ten sub-steps of the
    trapezoidal rule: the change of x in an iteration, (9), over that in the one before, until all changes are
    below 1e-6.
    """
    constant = (
        "The iteration is linear: soon every change is the same multiple of the one before, close to 4/11. "
        "Ratios that fall steadily cannot come from it."
    )
    start = "The first ratio compares with the initial guess (23), whose details are not told."
    rows, sizes, published_ends = [], {}, []
    for window in ("1.0", "0.5"):
        progress(0.0 if window == "1.0" else 0.5, f"Δt = {window}")
        changes = _window(simulate(float(window), 2.0), 2.0)[:, 0]
        ratios = changes[1:] / changes[:-1]
        expected = [float(line["ratio"]) for line in published(PAPER_DATA, "table_1") if line["dt"] == window]
        sizes[window] = float(changes[0])
        published_ends.append(float(changes[0] * np.prod(expected)))
        for i, ratio in enumerate(ratios):
            case = {"Δt": window, "i": str(i + 1)}
            if i < len(expected):
                rows.append(
                    Row.compared(
                        case,
                        {"ratio": expected[i]},
                        {"ratio": float(ratio)},
                        abs(ratio - expected[i]) <= 0.05 * expected[i],
                        start if i == 0 else constant,
                    )
                )
            else:
                rows.append(Row(case, {}, {"ratio": float(ratio)}, NOT_PUBLISHED))
    asymptotic = [row.measured["ratio"] for row in rows if int(row.case["i"]) > 2]
    steady = bool(max(asymptotic) - min(asymptotic) < 0.02 and abs(np.mean(asymptotic) - 0.37) < 0.01)
    left = (
        f"the first change is {sizes['1.0']:.1f} and {sizes['0.5']:.1f}; times the published ratios, "
        f"{published_ends[0]:.0e} and {published_ends[1]:.0e} would be left of it."
    )
    return Table(
        rows=rows,
        symbols={
            "Δt": "length of the window",
            "i": "iteration",
            "ratio": "ε_x of iteration i + 1 over ε_x of iteration i",
        },
        criterion="ratio within 5 %",
        claims=[
            Claim.of(
                "The ratios are consistent with the predicted rate of convergence 0.36 + 0.13 Δt², (54).",
                steady,
                f"from i = 3 on they lie between {min(asymptotic):.3f} and {max(asymptotic):.3f}.",
            ),
            Claim.of(
                "With these ratios 11 and 3 iterations suffice for ε₀ = 1e-6.",
                max(published_ends) <= TOLERANCE,
                left,
            ),
        ],
    )


@PAPER.experiment("iterations", "number of iterations (section 5)")
def iterations(progress: Progress) -> Table:
    """The numbers of iterations that section 5 of the paper tells: in the window that ends at t, until
    changes of x, y and λ are below ε₀.
    """
    rows, told = [], published(PAPER_DATA, "iterations")
    for i, line in enumerate(told):
        progress(i / len(told), f"Δt = {line['dt']}, ε₀ = {line['tolerance']}")
        found = len(
            _window(
                simulate(float(line["dt"]), float(line["t"]), atol=float(line["tolerance"])), float(line["t"])
            )
        )
        expected = int(line["iterations"])
        why = (
            "A change of order 1 that falls by 0.37 in each iteration needs 13 to 18 of them; the published "
            "numbers contradict the published rate (54)."
        )
        case = {"Δt": line["dt"], "t": line["t"], "ε₀": line["tolerance"]}
        rows.append(
            Row.compared(
                case, {"iterations": expected}, {"iterations": found}, abs(found - expected) <= 1, why
            )
        )
    newton = max(
        int(np.max(simulate(window, 3.0, update="newton").history.iterations)) for window in (1.0, 0.5)
    )
    return Table(
        rows=rows,
        symbols={"Δt": "length of the window", "t": "its end", "ε₀": "tolerance of the iteration"},
        criterion="one more or less",
        notes=[f"Newton's method for the window, the default here, takes at most {newton}."],
    )


@PAPER.experiment("table-2", "order of accuracy, with and without iteration")
def table_2(progress: Progress) -> Table:
    """
    The model problem up to t = 10 by the trapezoidal rule with Δt, Δt/2 and Δt/4, and the ratio R of the
    differences of their results: 4 for order two, 2 for order one. Part (a) iterates in windows Δt of ten
    sub-steps, part (b) makes one pass without iteration in each step Δt/10.
    """
    coarse = (
        "Steps of 0.1 are too long for the first order to show: the ratios settle at 2 from steps of 0.01 on."
    )
    rows, told = [], published(PAPER_DATA, "table_2")
    for i, line in enumerate(told):
        progress(i / len(told), f"({line['part']}), Δt = {line['dt']}")
        window = float(line["dt"])
        found = (
            richardson(window)
            if line["part"] == "a"
            else richardson(window / SUBSTEPS, substeps=1, iterations=1)
        )
        rows.append(
            Row.compared(
                {"part": line["part"], "Δt": line["dt"]},
                _ratios(line),
                found,
                _orders_agree(_ratios(line), found),
                coarse,
            )
        )
    return Table(
        rows=rows,
        symbols=_ORDERS,
        criterion=ORDER_CRITERION,
        claims=[
            Claim.of(
                "Iterated, the trapezoidal rule keeps its order 2.",
                _all_near(rows[:2], 4.0),
                "R = " + _range(rows[:2]),
            ),
            Claim.of(
                "Without iteration its order falls to 1.",
                _all_near(rows[3:], 2.0),
                f"for Δt = {rows[3].case['Δt']} R = " + _range(rows[3:]),
            ),
        ],
        notes=[
            "(b) is one pass of (3) and (4) in each step, with the acceleration of x from the step before."
        ],
    )


def _all_near(rows: list[Row], expected: float) -> bool:
    return all(abs(value - expected) <= 0.1 for row in rows for value in row.measured.values())


def _range(rows: list[Row]) -> str:
    values = [value for row in rows for value in row.measured.values()]
    return f"{min(values):.2f} to {max(values):.2f}."


@PAPER.experiment("table-3", "the constraint x₂ − 2 y₁ at t = 10, with and without iteration")
def table_3(progress: Progress) -> Table:
    """
    By how much the constraint is violated at t = 10, where x₂ itself is 4359: part (a) iterates in windows Δt
    of ten sub-steps of the trapezoidal rule until changes are below ε₀ = 1e-6, part (b) makes one pass
    without iteration in each step Δt/10.
    """
    rows, told = [], published(PAPER_DATA, "table_3")
    lagged = (
        "Not explained. One pass leaves an error of first order, which falls to zero with Δt; the published "
        "values grow. The misprinted signs do not lead to them."
    )
    for i, line in enumerate(told):
        progress(i / len(told), f"({line['part']}), Δt = {line['dt']}")
        window, with_iteration = float(line["dt"]), line["part"] == "a"
        run = simulate(window) if with_iteration else simulate(window / SUBSTEPS, substeps=1, iterations=1)
        found, expected = abs(float(run.q["x"][1, -1] - 2 * run.q["y"][0, -1])), float(line["residual"])
        agree = found < TOLERANCE if with_iteration else abs(found / expected - 1) < 0.2
        rows.append(
            Row.compared(
                {"part": line["part"], "Δt": line["dt"]},
                {"residual": expected},
                {"residual": found},
                agree,
                lagged,
            )
        )
    tight = [
        abs(float(run.q["x"][1, -1] - 2 * run.q["y"][0, -1]))
        for run in (simulate(0.1, atol=atol) for atol in (1e-6, 1e-8))
    ]
    iterated, one_pass = (
        [row.measured["residual"] for row in rows if row.case["part"] == part] for part in "ab"
    )
    second_order = all(abs(np.log2(a / b) - 2) < CLOSE_ORDER for a, b in pairwise(iterated))
    return Table(
        rows=rows,
        symbols={
            "part": "(a) iterated, (b) one pass without iteration",
            "Δt": "length of the window",
            "residual": "|x₂ − 2 y₁| at t = 10",
        },
        criterion="(a) below ε₀ = 1e-6; (b) within 20 %",
        claims=[
            Claim.of(
                "Iterated, the residual falls with second order in Δt.",
                second_order,
                f"it is set by ε₀: for Δt = 0.1 {tight[0]:.0e} with ε₀ = 1e-6 and {tight[1]:.0e} with 1e-8.",
            ),
            Claim.of(
                "Without iteration the constraint is seriously violated.",
                min(one_pass) > 1,
                f"{' / '.join(f'{value:.1f}' for value in one_pass)} where x₂ itself is 4359: first order.",
            ),
        ],
        notes=[
            "The projection at the ends of windows, left out here as in the paper, holds the constraint to "
            "rounding."
        ],
    )


@PAPER.experiment("table-4", "order of accuracy with the explicit Runge–Kutta method of order 2, Δt = 1")
def table_4(progress: Progress) -> Table:
    """The same ratios R as in Table 2 (a) for Heun's method, with windows of 1 and M sub-steps in each."""
    rows, told = [], published(PAPER_DATA, "table_4")
    for i, line in enumerate(told):
        progress(i / len(told), f"M = {line['M']}")
        found = richardson(1.0, substeps=int(line["M"]), solvers="rk2")
        rows.append(
            Row.compared(
                {"M": line["M"]}, _ratios(line), found, _orders_agree(_ratios(line), found), "Another order."
            )
        )
    return Table(
        rows=rows,
        symbols=_ORDERS,
        criterion=ORDER_CRITERION,
        claims=[Claim.of("Order 2 for x, y and λ.", _all_near(rows, 4.0), "R = " + _range(rows))],
        notes=["Which method of order 2 the paper takes is not told; here it is Heun's."],
    )


@PAPER.experiment("mixed-solvers", "explicit Euler for x, the trapezoidal rule for y (section 5)")
def mixed_solvers(progress: Progress) -> Table:
    """The same ratios R as in Table 2 (a) with Euler's explicit method for x and the trapezoidal rule for y,
    Δt = 0.1.
    """
    progress(0.0, "Δt = 0.1")
    (line,) = published(PAPER_DATA, "mixed_solvers")
    found = richardson(float(line["dt"]), solvers={"x": "euler", "y": "trapezoidal"})
    why = (
        "Euler's error in x is of first order, and x drives λ and y. Nothing in the iteration, which only "
        "finds the λ of the discrete equations, could take it away."
    )
    agree = _orders_agree(_ratios(line), found)
    claim = Claim.of(
        "Euler for x and the trapezoidal rule for y together are of second order.",
        agree,
        f"R = {found['R_x']:.2f}, {found['R_y']:.2f}, {found['R_λ']:.2f}.",
    )
    return Table(
        rows=[Row.compared({"Δt": line["dt"]}, _ratios(line), found, agree, why)],
        symbols=_ORDERS,
        criterion=ORDER_CRITERION,
        claims=[claim],
    )


def constants() -> tuple[float, float]:
    """E and F of section 4, from the eigenvectors of A = [[5, 1], [2, 7]]/11."""
    r, Q = (part.real for part in np.linalg.eig(np.array([[5.0, 1.0], [2.0, 7.0]]) / 11))
    P = np.linalg.inv(Q)
    weights = np.abs(Q[1]) * np.abs(P[:, 0] - 4 * P[:, 1])
    return float(weights @ r / 22), float(np.sum(weights) / 11)


def bound(window: float) -> float:
    """γ of (50), with β the positive root of (49)."""
    (E, F), h2 = constants(), window**2
    first, second = (E / 8 + F / 64) * h2 + F / 8, (F / 16 - E) * h2 - F
    beta = float(np.max(np.real(np.roots([first, second, -F / 2 * h2]))))
    return F / 16 * h2 + beta * first


def contraction(window: float, name: str = "y", **options: Any) -> float:
    """By which factor the changes of λ fall in the first window, with the constraint imposed on a subsystem,
    after a few iterations.
    """
    changes = simulate(window, window, update=name, check=False, iterations=9, **options).history.changes[0][
        :, -1
    ]
    return float((changes[-1] / changes[-4]) ** (1 / 3))


@PAPER.experiment("convergence", "rate of convergence against Δt: predicted (50), (54) and measured")
def convergence(progress: Progress) -> Figure:
    """
    By which factor the changes of λ fall in each iteration, for windows of 0.02 to 2: measured in the first
    window; the bound γ of (50); and the spectral radius ρ to which it tends in short windows. On the left the
    splitting of the paper, which imposes the constraint on y; on the right the one of (55)–(56), which
    imposes it on x.
    """
    windows = np.array([0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0])
    measured: dict[str, np.ndarray] = {}
    for k, name in enumerate(("y", "x")):
        progress(k / 2, f"constraint imposed on {name}")
        measured[name] = np.array([contraction(window, name) for window in windows])
    E, F = constants()
    rho = simulate(0.1, 0.1).rho
    dashed = {"linestyle": "--", "color": COLOURS[2]}
    panels = [
        Panel(
            "imposed on y, (3)–(4)",
            "window Δt",
            "factor of an iteration",
            [
                Curve("measured", windows, measured["y"], {"color": COLOURS[0], "marker": "o"}),
                Curve(
                    "bound γ, (50)",
                    windows,
                    np.array([bound(window) for window in windows]),
                    {"color": COLOURS[1]},
                ),
                Curve("ρ for Δt → 0", windows, np.full(windows.size, rho["y"]), dashed),
            ],
            {"ylim": (0.3, 1.0)},
        ),
        Panel(
            "imposed on x, (55)–(56)",
            "window Δt",
            "factor of an iteration",
            [
                Curve("measured", windows, measured["x"], {"color": COLOURS[0], "marker": "o"}),
                Curve("ρ for Δt → 0", windows, np.full(windows.size, rho["x"]), dashed),
            ],
            {"ylim": (0.0, 4.0)},
        ),
    ]
    below = all(measured["y"][i] <= bound(window) + 1e-3 for i, window in enumerate(windows))
    return Figure(
        panels=panels,
        claims=[
            Claim.of(
                "The iteration converges with γ ≈ 0.36 + 0.13 Δt², also for relatively large Δt.",
                below and abs(measured["y"][0] - 4 / 11) < 0.005,
                f"measured {measured['y'][0]:.3f} for Δt = {windows[0]:g} and {measured['y'][5]:.3f} for Δt "
                f"= 1, where the bound is {bound(1.0):.3f}.",
            ),
            Claim.of(
                "E ≈ 0.12, F ≈ 0.36.",
                abs(E - 0.12) < 0.005 and abs(F - 0.36) < 0.005,
                f"E = {E:.3f}, F = {F:.4f} = 4/11.",
            ),
            Claim.of(
                "A similar procedure can be based on (55) and (56).",
                bool(measured["x"][0] < 1),
                f"imposed on x the changes are multiplied by {measured['x'][0]:.2f} in each iteration.",
            ),
        ],
        notes=[
            "For Δt → 0 the error of λ is multiplied by −S₂⁻¹S₁ with S_j = D_j A_j⁻¹ B_j, here 4/11; with x "
            "and y exchanged by 11/4.",
            "`solve_coupled` computes these numbers before a run and refuses what diverges.",
        ],
    )


@PAPER.experiment("mass-ratios", "iterations for structures of different mass")
def mass_ratios(progress: Progress) -> Table:
    """
    The model problem with all of the first structure, masses, stiffness and load, multiplied by a ratio,
    which the paper does not do: iterations in a window of 0.1, until changes are below 1e-10, by Newton's
    method for the window (the default here), by its limit for short windows, and by the two splittings of the
    paper.
    """
    rows, ratios = [], (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
    for i, ratio in enumerate(ratios):
        progress(i / len(ratios), f"ratio {ratio:g}")
        found: dict[str, float] = {}
        for update in ("newton", "schur", "y", "x"):
            method = hn.LocalIteration(window=0.1, update=update, check=False)
            run = hn.solve_coupled(model(ratio), (0.0, 0.5), np.zeros(4), method=method)
            found[update] = int(np.max(run.history.iterations)) if run.success else float("nan")
        rows.append(
            Row(
                {"ratio": f"{ratio:g}"},
                {},
                {**found, "ρ of y": run.rho["y"], "ρ of x": run.rho["x"]},
                NOT_PUBLISHED,
            )
        )
    most = max(row.measured[update] for row in rows for update in ("newton", "schur"))
    claim = Claim.ours(
        "Newton's method and its limit for short windows take at most 8 iterations for every ratio.",
        most <= 8,
        f"at most {most:.0f}.",
    )
    return Table(
        rows=rows,
        claims=[claim],
        symbols={
            "ratio": "of the first structure to that of the paper",
            "newton": "Newton's method for the window",
            "schur": "λ += (S₁ + S₂)⁻¹ times the residual",
            "y": "constraint imposed on y, (3)–(4)",
            "x": "imposed on x, (55)–(56)",
            "ρ of y": "factor of an iteration in short windows",
            "ρ of x": "the same; NaN: the iteration diverges, as ρ > 1",
        },
    )

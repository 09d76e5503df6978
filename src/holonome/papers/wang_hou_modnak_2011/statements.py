"""The bounds of section 4, (34) to (46), the error after i iterations, (51), and the weights of section 6."""

from __future__ import annotations

import numpy as np
from scipy.integrate import cumulative_simpson

from holonome.papers.figure import LOGARITHMIC, Curve, Figure, Panel
from holonome.papers.paper import Progress
from holonome.papers.table import Table
from holonome.papers.verdict import NOT_PUBLISHED, Band, Claim, Row
from holonome.papers.wang_hou_modnak_2011.convergence import bound, constants
from holonome.papers.wang_hou_modnak_2011.runs import PAPER, simulate
from holonome.plot import COLOURS

POINTS = 2001


def _twice_integrated(t: np.ndarray, a: np.ndarray) -> np.ndarray:
    """From zero and at rest."""
    v = cumulative_simpson(a, x=t, initial=0.0)
    return cumulative_simpson(v, x=t, initial=0.0)


def _driven(t: np.ndarray, A: np.ndarray, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The solution of e″ = A e + force from zero, and e″; by Picard's iteration, which converges in short
    windows.
    """
    e = np.zeros_like(force)
    for _ in range(40):
        a = A @ e + force
        e = np.array([_twice_integrated(t, row) for row in a])
    return e, A @ e + force


def one_iteration(t: np.ndarray, a: np.ndarray) -> dict[str, np.ndarray]:
    """The errors of iteration i + 1 by (28) to (30) and (37), with the right signs, from the second
    derivative a of the error of x₂ in iteration i.
    """
    x2 = _twice_integrated(t, a)
    y2 = _driven(t, np.array([[0.5]]), -a[np.newaxis] / 4)[0][0]
    lam = -0.25 * x2 - 0.5 * y2 + a
    A = np.array([[5.0, 1.0], [2.0, 7.0]]) / 11
    x, acceleration = _driven(t, A, np.array([lam, -4 * lam]) / 11)
    return {
        "x2": x2,
        "y1": x2 / 2,
        "y2": y2,
        "λ": lam,
        "x1+": x[0],
        "x2+": x[1],
        "a+": acceleration[1],
        "a": a,
    }


def shapes(window: float) -> tuple[np.ndarray, list[np.ndarray]]:
    """Accelerations of all kinds: polynomials, waves, and kicks that make the error of x₂ a plateau."""
    t = np.linspace(0.0, window, POINTS)
    s = t / window
    kicks = [np.where(s < w, 1.0, np.where(s < 2 * w, -1.0, 0.0)) for w in (0.02, 0.05, 0.1)]
    smooth = [np.ones_like(s), s, 1 - s, s**2, np.cos(np.pi * s), np.sin(np.pi * s), np.cos(4 * np.pi * s)]
    return t, [*smooth, *kicks]


def _norm(values: np.ndarray) -> float:
    return float(np.max(np.abs(values)))


@PAPER.experiment("bounds", "the bounds (34) to (46) for the errors of one iteration")
def bounds(progress: Progress) -> Table:
    """
    Errors of x₂ of ten shapes in windows of 0.25 to 1, and what one iteration makes of them by the equations
    of section 4: the left side over the right side of each bound, at most. Above 1 the bound is wrong. For
    the terms O(Δt⁴) Δt⁴/100 of the error that they belong to is granted.
    """
    E, F = constants()
    Q = np.linalg.eig(np.array([[5.0, 1.0], [2.0, 7.0]]) / 11)[1].real
    P = np.linalg.inv(Q)
    F1 = float(np.sum(np.abs(Q[0]) * np.abs(P[:, 0] - 4 * P[:, 1])) / 11)
    printed = {
        "(34) y₁": lambda n, h: n["x2"] / 2,
        "(35) y₂": lambda n, h: (1 / 4 + h**2 / 32) * n["x2"],
        "(36) λ": lambda n, h: (1 / 8 + h**2 / 64) * n["x2"] + n["a"],
        "(42) x₂": lambda n, h: h**2 * F / 2 * n["λ"],
        "(43) x₂″": lambda n, h: (h**2 * E + F) * n["λ"],
        "(46) x₁": lambda n, h: F1 * h**2 * (n["x2"] / 16 + n["a"] / 2),
        "(35) corrected": lambda n, h: (1 / 4 + h**2 / 16) * n["x2"],
        "(36) corrected": lambda n, h: (1 / 8 + h**2 / 32) * n["x2"] + n["a"],
    }
    left = {"(34)": "y1", "(35)": "y2", "(36)": "λ", "(42)": "x2+", "(43)": "a+", "(46)": "x1+"}
    worst = dict.fromkeys(printed, 0.0)
    for i, window in enumerate((0.25, 0.5, 1.0)):
        progress(i / 3, f"Δt = {window:g}")
        t, kinds = shapes(window)
        for a in kinds:
            norms = {name: _norm(values) for name, values in one_iteration(t, a).items()}
            for name, right in printed.items():
                slack = window**4 / 100 * norms["x2" if name[:4] in ("(34)", "(35)", "(36)") else "λ"]
                worst[name] = max(worst[name], (norms[left[name[:4]]] - slack) / right(norms, window))
    rows = [Row({"bound": name}, {}, {"left / right": value}, NOT_PUBLISHED) for name, value in worst.items()]
    told = ["(34) y₁", "(35) y₂", "(36) λ", "(42) x₂", "(43) x₂″", "(46) x₁"]
    broken = [name for name in told if worst[name] > 1 + 1e-4]
    return Table(
        rows=rows,
        symbols={"left / right": "largest quotient of both sides over all shapes and windows"},
        claims=[
            Claim.of(
                "The errors of one iteration are bounded by (34) to (46).",
                [Band(name, worst[name], high=1 + 1e-4) for name in told],
                f"{', '.join(broken)} does not hold: its left side is up to {worst[broken[0]]:.3f} times "
                "the right "
                "one."
                if broken
                else "so they are.",
            ),
            Claim.ours(
                "With Δt²/16 in (35) and Δt²/32 in (36) they are bounds.",
                [Band(name, worst[name], high=1 + 1e-4) for name in worst if name.endswith("corrected")],
                f"{worst['(35) corrected']:.4f} and {worst['(36) corrected']:.4f} at most.",
            ),
        ],
    )


@PAPER.experiment("iteration-error", "the error after i iterations, (51)")
def iteration_error(progress: Progress) -> Figure:
    """
    The first window of the model problem, iterated i times, against the same window iterated to rounding: the
    distance of x and of λ at its end, for windows of 0.05 to 0.4.
    """
    windows, curves = np.array([0.05, 0.1, 0.2, 0.4]), []
    orders, factors = {}, []
    before: np.ndarray | None = None
    exact = [simulate(float(h), float(h), atol=1e-14) for h in windows]
    for count, colour in zip((1, 2, 4), COLOURS, strict=False):
        progress(count / 5, f"{count} iterations")
        runs = [simulate(float(h), float(h), iterations=count, check=False) for h in windows]
        pairs = list(zip(runs, exact, strict=True))
        x = np.array([_norm(run.q["x"][:, -1] - end.q["x"][:, -1]) for run, end in pairs])
        lam = np.array([_norm(run.lam[:, -1] - end.lam[:, -1]) for run, end in pairs])
        for name, values, style in (("x", x, "-"), ("λ", lam, "--")):
            orders[name, count] = float(np.polyfit(np.log(windows), np.log(values), 1)[0])
            curves.append(
                Curve(
                    f"{name}, i = {count}",
                    windows,
                    values,
                    {"color": colour, "linestyle": style, "marker": "o"},
                )
            )
        if before is not None and count == 2:
            factors.append(float(x[0] / before[0]))
        before = x
    of_x, of_lam = ([orders[name, count] for count in (1, 2, 4)] for name in ("x", "λ"))
    return Figure(
        panels=[Panel("", "window Δt", "distance from the converged iteration", curves, LOGARITHMIC)],
        size=(6.4, 3.4),
        claims=[
            Claim.of(
                "The iteration introduces an error of at most O(Δt⁴), (51).",
                [
                    Band.near(f"order of x, i = {i}", value, 4, 0.1)
                    for i, value in zip((1, 2, 4), of_x, strict=True)
                ],
                f"after 1, 2 and 4 iterations x is off by O(Δt^p) with p = "
                f"{', '.join(f'{value:.2f}' for value in of_x)}; λ, of which nothing is said, with p = "
                f"{', '.join(f'{value:.2f}' for value in of_lam)}.",
            ),
            Claim.of(
                "Each iteration multiplies the error by γ at most.",
                Band("second over first", factors[0], high=bound(0.05) + 1e-3),
                f"by {factors[0]:.3f} for Δt = 0.05, where γ = {bound(0.05):.3f}.",
            ),
        ],
        notes=["An iteration that has converged to rounding leaves no error of its own; ε₀ decides."],
    )


@PAPER.experiment("weights", "combinations of the two splittings (section 6)")
def weights(progress: Progress) -> Figure:
    """
    The constraint imposed on y with a weight w and on x with 1 − w, Δt = 0.1: by which factor the changes of
    λ fall in each iteration, measured, and |w · 4/11 + (1 − w) · 11/4|, which follows from both factors.
    """
    given, measured = np.array([0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3]), []
    for i, w in enumerate(given):
        progress(i / given.size, f"w = {w:g}")
        run = simulate(0.1, 0.1, update={"y": float(w), "x": float(1 - w)}, check=False, iterations=5)
        changes = run.history.changes[0][:, -1]
        measured.append(float(changes[-1] / changes[-2]))
    measured = np.array(measured)
    line = np.abs(given * 4 / 11 + (1 - given) * 11 / 4)
    best = 121 / 105
    run = simulate(0.1, 0.1, update={"y": best, "x": 1 - best}, check=False, iterations=4)
    changes = run.history.changes[0][:, -1]
    factor = float(changes[2] / changes[1])
    apart = float(np.max(np.abs(measured - line)))
    return Figure(
        panels=[
            Panel(
                "",
                "weight w of the constraint on y",
                "factor of an iteration",
                [
                    Curve("measured", given, measured, {"color": COLOURS[0], "marker": "o", "linestyle": ""}),
                    Curve("from the two splittings", given, line, {"color": COLOURS[1]}),
                ],
            )
        ],
        size=(6.4, 3.4),
        claims=[
            Claim.of(
                "There may be an optimal combination of the two splittings.",
                [
                    Band("factor with w = 121/105", factor, high=0.01),
                    Band("from the line, at most", apart, high=0.03),
                ],
                f"with w = 121/105, where the line is zero, the changes fall by {factor:.1e} in an "
                "iteration; "
                "this is λ += (S₁ + S₂)⁻¹ times the residual.",
            ),
            Claim.ours(
                "No weights between 0 and 1 are better than imposing the constraint on y alone.",
                Band(
                    "smallest factor for 0 ≤ w ≤ 1",
                    float(np.min(measured[given <= 1])),
                    measured[given == 1][0],
                ),
                f"for w = 1 it is {measured[given == 1][0]:.3f}, for w = 0.7 "
                f"{measured[given == 0.7][0]:.2f}: "
                "both errors of λ have the same sign, so that the best combination extrapolates.",
            ),
        ],
    )

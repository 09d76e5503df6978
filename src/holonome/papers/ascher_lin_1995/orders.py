"""Theorems 2.1, 2.2 and 4.1, Remark 4.1 and Example 3.1."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import holonome as hn
from holonome.papers.ascher_lin_1995.runs import (
    PAPER,
    example_3_1_problem,
    example_6_1,
    heun,
)
from holonome.papers.ascher_lin_1995.tables import MATRICES
from holonome.papers.figure import LOGARITHMIC, Curve, Figure, Panel
from holonome.papers.paper import Progress, run_of
from holonome.papers.verdict import Band, Claim
from holonome.plot import COLOURS


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
                [Band(f"after over before, s = {s}", ends[s][1] / ends[s][0], 10) for s in (2, 3)],
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


def slope_of(eps: np.ndarray, values: np.ndarray) -> float:
    return float(np.polyfit(np.log(eps), np.log(values), 1)[0])


def _theorem(
    statement: str,
    cases: dict[str, Callable[[float, int], Errors]],
    names: tuple[str, str],
    progress: Progress,
    notes: list[str],
    values_of_eps: np.ndarray = _EPS,
) -> Figure:
    panels, told, bands = [], [], []
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
        slopes = [[slope_of(values_of_eps, curve.y) for curve in curves[k::2]] for k in (0, 1)]
        panels.append(Panel(case, "ε", "largest error", curves, LOGARITHMIC))
        told.append(
            f"{case}: "
            + " and ".join(
                f"{', '.join(f'{slope:.2f}' for slope in of)} ({name})"
                for name, of in zip(names, slopes, strict=True)
            )
        )
        bands += [
            Band.near(f"{case}, s = {s}", slope, s, 0.1) for of in slopes for s, slope in enumerate(of, 1)
        ]
    return Figure(
        panels=panels,
        claims=[Claim.of(statement, bands, "slopes for s = 1, 2, 3: " + "; ".join(told) + ".")],
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
    cases = {f"α₁ = 1, {name}": partial(index_2_error, E=E, alpha=(1.0, 1.0)) for name, E in MATRICES.items()}
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
    cases = {f"α₁ = 0, {name}": partial(index_2_error, E=E) for name, E in MATRICES.items()}
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
        slopes.append(slope_of(_EPS, values))
        curves.append(Curve(name, _EPS, values, {"color": colour, "marker": "o", "ms": 4}))
    return Figure(
        panels=[Panel("drift after one iteration", "ε", "largest |g|", curves, LOGARITHMIC)],
        size=(6.4, 3.6),
        claims=[
            Claim.of(
                "With Baumgarte's stabilization the drift is only O(t ε), which can be much worse than what "
                "(4.20a) gives, O(ε²).",
                [Band.near("Baumgarte", slopes[0], 1, 0.1), Band.near("invariants", slopes[1], 2, 0.1)],
                f"it falls like ε^{slopes[0]:.2f} and ε^{slopes[1]:.2f}.",
            )
        ],
    )

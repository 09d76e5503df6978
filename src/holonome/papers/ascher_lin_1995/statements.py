"""What the paper states between its tables: (4.12), (5.2), errors in the initial layer, Example 6.4 with the
other E, turning points, methods on the velocity level, and boundary values.
"""

from __future__ import annotations

import math

import numpy as np

import holonome as hn
from holonome.papers.ascher_lin_1995.orders import slope_of
from holonome.papers.ascher_lin_1995.runs import PAPER, errors, example_6_1, example_6_2, heun
from holonome.papers.ascher_lin_1995.tables import MATRICES
from holonome.papers.figure import LOGARITHMIC, Curve, Figure, Panel
from holonome.papers.paper import Progress, run_of
from holonome.papers.table import Table
from holonome.papers.verdict import NOT_PUBLISHED, Band, Claim, Row
from holonome.plot import COLOURS


@PAPER.experiment("equation-4.12", "index 3 on the underlying ODE, (4.12)")
def equation_4_12(progress: Progress) -> Table:
    """
    The two-link arm by (4.12), which regularizes the underlying ODE with its invariants, from ζ₀ = ζ ≡ 0, by
    Heun's method with h = 1e-3, beside the underlying ODE alone: error of q and drift, for two ε and one or
    two iterations, up to t = 40.
    """
    mechanism = hn.mechanisms.two_link_arm()
    assert mechanism.exact is not None
    solver, rows = hn.RungeKutta("heun", step=1e-3), []
    cases: list[tuple[str, str, hn.Method]] = [
        ("–", "–", hn.Method(hn.UnderlyingODE(projection=False), solver)),
        *(
            (f"{eps:g}", f"{s}", hn.Method(hn.SRM(variant="underlying", eps=eps, iterations=s), solver))
            for eps in (1e-2, 5e-3)
            for s in (1, 2)
        ),
    ]
    for i, (eps, s, method) in enumerate(cases):
        progress(i / len(cases), f"ε = {eps}, iteration {s}")
        run = run_of(mechanism, (0, 40), method=method)
        error = float(np.max(np.abs(run.q - mechanism.exact(run.t)[0])))
        rows.append(
            Row({"ε": eps, "it.": s}, {}, {"error of q": error, "drift": float(run.drift[0])}, NOT_PUBLISHED)
        )
    found = [row.measured["error of q"] for row in rows[1:]]
    return Table(
        rows=rows,
        symbols={
            "ε": "of (4.12); –: the underlying ODE without it",
            "it.": "iterations s",
            "error of q": "largest, up to t = 40",
            "drift": "largest |g|",
        },
        claims=[
            Claim.of(
                "(4.12) is simple, though potentially stiff, with ζ₀ = 0 the obvious choice.",
                [Band("spread of the errors over ε and s", max(found) / min(found), high=1.001)],
                "so obvious that nothing is left to iterate: from the exact ζ₀ = 0 one iteration gives the "
                f"exact motion for every ε; all errors are {max(found):.1e}, that of Heun's method.",
            )
        ],
        notes=["On this arm the ODE alone hardly drifts; the invariants are met to rounding either way."],
    )


@PAPER.experiment("equation-5.2", "post-stabilization, (5.2), none to three times")
def equation_5_2(progress: Progress) -> Table:
    """
    The two-link arm by α₁ = 1, which alone lets the constraints drift, with Heun's method, h = 0.01, up to t
    = 10, and with (5.2) after each step, none to three times.
    """
    mechanism, rows = hn.mechanisms.two_link_arm(), []
    assert mechanism.exact is not None
    for times in range(4):
        progress(times / 4, f"{times} times")
        srm = hn.SRM(
            variant="baumgarte",
            alpha=(1.0, 0.0, 0.0 if times else 1e-9),
            E="inverse",
            iterations=1,
            eps=1e-8,
            post_stabilization=times,
        )
        run = run_of(mechanism, (0, 10), method=hn.Method(srm, hn.RungeKutta("heun", step=1e-2)))
        error = float(np.max(np.abs(run.q - mechanism.exact(run.t)[0])))
        found = {"|g|": float(run.drift[0]), "|G v|": float(run.drift[1]), "error of q": error}
        rows.append(Row({"times": times}, {}, found, NOT_PUBLISHED))
    once, twice, thrice = (row.measured["|G v|"] for row in rows[1:])
    return Table(
        rows=rows,
        shown=("|g|", "|G v|"),
        symbols={"times": "how often (5.2) is applied after each step", "error of q": "largest"},
        claims=[
            Claim.of(
                "(5.2), applied twice, performs very well although it leaves g_xx out.",
                [Band("|G v| after twice", twice, high=1e-14), Band("gain of the second", once / twice, 100)],
                f"once leaves |G v| of {once:.0e}, twice {twice:.0e}, three times {thrice:.0e}.",
            )
        ],
        notes=["The position constraint of this arm is met to rounding after one application."],
    )


def _from_a_polynomial(degree: int) -> tuple[hn.Index2System, np.polynomial.Polynomial]:
    """Example 6.1 with y₀ the Taylor polynomial of y = eᵗ of this degree, so that (2.14) holds with m =
    degree; 0 for degree −1. It is subtracted from y: f − B y₀ in place of f, and y₀ ≡ 0.
    """
    y0 = np.polynomial.Polynomial([1 / math.factorial(k) for k in range(degree + 1)] or [0.0])

    def f(t, x):
        known = np.array([1 - np.exp(-t), np.cos(t) + np.exp(t) * np.sin(t)])
        return known - x * sum(c * t**k for k, c in enumerate(y0.coef))

    system = hn.Index2System(
        f, lambda x: x, lambda t, x: (x @ x - np.exp(-2 * t) - np.sin(t) ** 2) / 2, n=2, name="example 6.1"
    )
    return system, y0


LAYER_EPS = np.array([4e-3, 2e-3, 1e-3])


@PAPER.experiment("initial-layer", "Theorem 2.2 from the start on, for m = −1, 0, 1, 2")
def initial_layer(progress: Progress) -> Table:
    """
    Example 6.1 with α₁ = 0 and E = I, from y₀ that agrees with y at the start in its first m derivatives,
    (2.14): the orders in ε of the largest errors of x and y on all of 0 ≤ t ≤ 1, the layer at the start
    included, with an integrator that adds nothing to them.
    """
    rows, bands = [], []
    for m in (-1, 0, 1, 2):
        system, y0 = _from_a_polynomial(m)
        for s in (1, 2, 3, 4):
            progress((m + 1) / 4 + s / 16, f"m = {m}, iteration {s}")
            found = []
            for eps in LAYER_EPS:
                method = hn.Method(hn.SRM(eps=float(eps), iterations=s, y0=0.0), hn.RungeKutta("dop853"))
                run = hn.solve(system, (0, 1), [1.0, 0.0], method=method, rtol=1e-13, atol=1e-14)
                exact = np.array([np.exp(-run.t), np.sin(run.t)])
                found.append(
                    (np.max(np.abs(run.x - exact)), np.max(np.abs(run.y[0] + y0(run.t) - np.exp(run.t))))
                )
            orders = {
                f"order of {name}": slope_of(LAYER_EPS, values)
                for name, values in zip("xy", np.array(found).T, strict=True)
            }
            rows.append(Row({"m": str(m), "s": s}, {}, orders, NOT_PUBLISHED))
            if s <= m + 1:
                bands += [
                    Band.near(f"{name}, m = {m}, s = {s}", value, s, 0.1) for name, value in orders.items()
                ]
    beyond = {
        row.case["m"]: row.measured["order of y"]
        for row in rows
        if row.case["s"] == 4 and row.case["m"] != "2"
    }
    return Table(
        rows=rows,
        symbols={"m": "derivatives of y₀ that agree with those of y at the start", "s": "iteration"},
        claims=[
            Claim.of(
                "x_s − x_e = O(εˢ) and y_s − y_e = O(εˢ) for 1 ≤ s ≤ m + 1 and all 0 ≤ t ≤ t_f.",
                bands,
                "so it is, within 0.1 in all orders.",
            ),
            Claim.of(
                "For s > m + 1 it holds only away from an initial layer.",
                [
                    Band.near(f"order of y, m = {m}, s = 4", value, int(m) + 1, 0.1)
                    for m, value in beyond.items()
                ],
                "in the layer y stays of order m + 1: "
                + ", ".join(f"{value:.2f} for m = {m}" for m, value in beyond.items())
                + " and s = 4"
                + "; x is better by one.",
            ),
        ],
    )


@PAPER.experiment("example-6.4", "the two-link arm with the other choices of E")
def example_6_4(progress: Progress) -> Table:
    """As Table 6.4, h = 0.001 and ε = 0.005, with E = I, (GB)ᵀ and (GB)⁻¹: the error of q at t = 1."""
    mechanism, rows = hn.mechanisms.two_link_arm(), []
    assert mechanism.exact is not None
    for name, E in MATRICES.items():
        progress(len(rows) / 3, name)
        found = {}
        for s in (1, 2, 3):
            run = run_of(
                mechanism, (0, 1), method=heun(1e-3, eps=5e-3, iterations=s, E=E), t_eval=[0.1, 0.5, 1.0]
            )
            found[f"it. {s}"] = float(np.max(np.abs(run.q - mechanism.exact(run.t)[0])[:, -1]))
        rows.append(Row({"E": name}, {}, found, NOT_PUBLISHED))
    first, second = ([row.measured[name] for row in rows] for name in ("it. 1", "it. 2"))
    return Table(
        rows=rows,
        symbols={"it. 1": "error of q at t = 1 after one iteration", "it. 2": "two", "it. 3": "three"},
        claims=[
            Claim.of(
                "Qualitatively similar results are obtained for E = (GB)ᵀ and E = (GB)⁻¹.",
                [
                    Band("largest over smallest error, first iteration", max(first) / min(first), high=2),
                    *(
                        Band("second over first iteration", b / a, high=0.01)
                        for a, b in zip(first, second, strict=True)
                    ),
                ],
                f"after one iteration the errors lie between {min(first):.1e} and {max(first):.1e}; the "
                "second "
                f"leaves {second[0]:.0e} with E = I, but {second[1]:.0e} and {second[2]:.0e} with the "
                "others.",
            )
        ],
    )


@PAPER.experiment("turning-point", "E = I and E = (GB)ᵀ where GB vanishes (section 3)")
def turning_point(progress: Progress) -> Table:
    """Example 6.2, singular at t = 1/2, with h = ε = 0.001 and three iterations: the error of x with the
    three choices of E.
    """
    rows, times = [], [0.3, 0.5, 0.7, 1.0]
    for name, E in MATRICES.items():
        progress(len(rows) / 3, name)
        found = errors(example_6_2(), heun(1e-3, eps=1e-3, iterations=3, E=E), times)
        rows.append(Row({"E": name}, {}, {f"t = {t:g}": found[t]["ex"] for t in times}, NOT_PUBLISHED))
    worst = {row.case["E"]: max(row.measured.values()) for row in rows}
    loss = {name: value / worst["E=(GB)⁻¹"] for name, value in worst.items()}
    return Table(
        rows=rows,
        symbols={f"t = {t:g}": "error of x" for t in times},
        claims=[
            Claim.of(
                "E = I and E = (GB)ᵀ yield a turning point problem, which degrades the numerical "
                "performance.",
                [Band(f"loss with {name}", loss[name], 100) for name in ("E=I", "E=(GB)ᵀ")],
                f"the largest errors are {worst['E=I']:.0e} and {worst['E=(GB)ᵀ']:.0e}, against "
                f"{worst['E=(GB)⁻¹']:.0e} with E = (GB)⁻¹.",
            )
        ],
    )


@PAPER.experiment("velocity-level", "methods without position constraints at a singular position (section 5)")
def velocity_level(progress: Progress) -> Table:
    """
    The slider-crank with equal bars over 6 s by methods that keep the constraints on different levels, with
    ten tolerances from 1e-3 to 1e-8 each: how many runs leave the motion by more than 0.1 rad.
    """
    mechanism, times = hn.mechanisms.slider_crank(), np.linspace(0, 6, 301)
    exact = run_of(mechanism, (0, 6), rtol=1e-12, atol=1e-12, t_eval=times)
    methods = {
        "accelerations: underlying ODE, DOP853": hn.Method(
            hn.UnderlyingODE(projection=False), hn.RungeKutta("dop853")
        ),
        "velocities: index 2, BDF": hn.Method(hn.Index2(), hn.BDF()),
        "positions too: GGL, BDF": hn.Method(hn.GGL(), hn.BDF()),
        "positions too: projection, BDF": hn.Method(hn.CoordinateProjection(), hn.BDF()),
        "positions too: projection, DOP853": hn.Method(hn.UnderlyingODE(), hn.RungeKutta("dop853")),
    }
    rows, tolerances = [], np.logspace(-3, -8, 10)
    for name, method in methods.items():
        progress(len(rows) / len(methods), name)
        wrong = 0
        for tolerance in tolerances:
            run = run_of(mechanism, (0, 6), method=method, rtol=tolerance, atol=tolerance, t_eval=times)
            error = np.abs(run.q[2] - exact.q[2][: run.t.size])
            wrong += run.t.size < times.size or not np.max(error) < 0.1
        rows.append(
            Row({"constraints kept": name}, {}, {"wrong": wrong, "runs": len(tolerances)}, NOT_PUBLISHED)
        )
    counts = [int(row.measured["wrong"]) for row in rows]
    return Table(
        rows=rows,
        symbols={"wrong": "runs in which the angle of the crank is wrong by more than 0.1 rad"},
        claims=[
            Claim.of(
                "Methods that do not impose the constraints on the position level perform particularly "
                "poorly "
                "here, with a vastly different solution profile.",
                [
                    Band("wrong without position constraints", min(counts[:2]), 1),
                    Band("wrong with them", max(counts[2:]), high=0),
                ],
                f"{counts[0]} and {counts[1]} of {len(tolerances)} runs without them leave the motion, and "
                f"{max(counts[2:])} of those that have them.",
            )
        ],
    )


@PAPER.experiment("boundary-values", "a boundary value problem by SRM")
def boundary_values(progress: Progress) -> Figure:
    """
    Example 6.1 with x₂(1) given instead of a start, by collocation in each iteration (`solve_bvp`), α₁ = 1
    and E = (GB)⁻¹: the largest error of x against ε, for one to three iterations.
    """
    system, exact = example_6_1()
    values_of_eps, curves, slopes = np.array([1e-2, 3e-3, 1e-3]), [], []
    for s in (1, 2, 3):
        found = []
        for eps in values_of_eps:
            progress((s - 1) / 3, f"iteration {s}, ε = {eps:g}")
            result = hn.solve_bvp(
                system,
                lambda xa, xb: [xb[1] - np.sin(1.0)],
                np.linspace(0, 1, 11),
                lambda t: [1 - 0.6 * t, t],
                srm=hn.SRM(eps=float(eps), iterations=s, E="inverse", alpha=(1.0, 1.0)),
                tol=1e-10,
            )
            found.append(float(np.max(np.abs(result.x - exact(result.t)))))
        slopes.append(slope_of(values_of_eps, np.array(found)))
        style = {"color": COLOURS[s - 1], "marker": "o", "ms": 4}
        curves.append(Curve(f"s = {s}", values_of_eps, np.array(found), style))
    return Figure(
        panels=[Panel("", "ε", "largest error of x", curves, LOGARITHMIC)],
        size=(6.4, 3.4),
        claims=[
            Claim.of(
                "The estimates hold for boundary value problems too, x_s − x_e = O(εˢ) (Theorem 2.1).",
                [Band.near(f"slope, s = {s}", slope, s, 0.15) for s, slope in enumerate(slopes, 1)],
                f"slopes {', '.join(f'{slope:.2f}' for slope in slopes)} for s = 1, 2, 3.",
            )
        ],
    )

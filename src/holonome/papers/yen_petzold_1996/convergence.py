"""Theorems 3.1, 4.1 and 4.2, and Algorithm 2.1: how CS and CM converge."""

from __future__ import annotations

import numpy as np

from holonome.papers.figure import LOGARITHMIC, Curve, Figure, Panel
from holonome.papers.paper import Progress
from holonome.papers.verdict import Band, Claim
from holonome.papers.yen_petzold_1996.figures import METHOD_COLOURS
from holonome.papers.yen_petzold_1996.runs import PAPER
from holonome.papers.yen_petzold_1996.step import Step, off_the_manifold, swinging
from holonome.plot import COLOURS


@PAPER.experiment("theorem-4.2", "rates of convergence of CS and CM against δ/ε")
def theorem_4_2(progress: Progress) -> Figure:
    """
    One step of implicit Euler, h = 0.1, for the point mass on the circle with stiffness 1/ε along it and 1/ε²
    across it. Newton's method starts at a distance δ from the circle and keeps the matrix of its start; shown
    are the rates at which CS and CM converge, as spectral radii, and their increments.
    """
    progress(0.0, "one step of implicit Euler")
    ratios = np.logspace(-3, 2, 101)
    rates = {
        (kind, eps): np.array(
            [off_the_manifold(float(eps), ratio * float(eps)).rate(kind) for ratio in ratios]
        )
        for kind in ("CS", "CM")
        for eps in ("1e-3", "1e-4")
    }
    curves = [
        Curve(
            f"{kind}, ε = {eps}",
            ratios,
            rate,
            {"color": METHOD_COLOURS[kind], "linestyle": {"1e-3": "--", "1e-4": "-"}[eps]},
        )
        for (kind, eps), rate in rates.items()
    ]
    limit = Curve("no convergence above", ratios[[0, -1]], np.ones(2), {"color": "#444444", "linewidth": 0.8})
    middle = (ratios > 0.02) & (ratios < 0.2)
    slope = np.polyfit(np.log(ratios[middle]), np.log(rates["CS", "1e-4"][middle]), 1)[0]
    apart = float(np.max(np.abs(np.log(rates["CS", "1e-3"] / rates["CS", "1e-4"])[middle])))
    worst = max(float(np.max(rate)) for (kind, _), rate in rates.items() if kind == "CM")
    needed, increments = {}, []
    for isotropic in (False, True):
        for kind in ("CS", "CM"):
            sizes = off_the_manifold(1e-4, 1e-3, isotropic).iterate(kind)[1]
            needed[kind, isotropic] = len(sizes) if sizes[-1] <= 1e-12 else None
            style = {
                "color": METHOD_COLOURS[kind],
                "linestyle": "--" if isotropic else "-",
                "marker": "s" if isotropic else "o",
                "ms": 7 if kind == "CS" else 3.5,
                "mfc": "none",
            }
            increments.append(
                Curve(
                    f"{kind}, stiffness {'1/ε², 1/ε²' if isotropic else '1/ε, 1/ε²'}",
                    np.arange(1, len(sizes) + 1)[:12],
                    sizes[:12],
                    style,
                )
            )
    told = {
        key: "does not converge" if number is None else f"needs {number} iterations"
        for key, number in needed.items()
    }
    halved = off_the_manifold(1e-4, 1e-5, h=0.05).rate("CS") / off_the_manifold(1e-4, 1e-5).rate("CS")
    return Figure(
        panels=[
            Panel(
                "rate of convergence",
                "δ/ε",
                r"$\sigma = \varrho(I - J_0^{-1} J^*)$",
                [*curves, limit],
                LOGARITHMIC | {"ylim": (1e-10, 1e3)},
            ),
            Panel(
                "increments, ε = 1e-4, δ = 1e-3",
                "iteration",
                "size of the increment of q",
                increments,
                {"yscale": "log"},
            ),
        ],
        claims=[
            Claim.of(
                "The rate of CS grows in proportion to δ/ε.",
                [Band.near("exponent", slope, 1, 0.1), Band("between the two ε", apart, high=0.15)],
                f"like (δ/ε)^{slope:.2f} for δ/ε between 0.02 and 0.2, with the same factor for both ε "
                f"within {np.expm1(apart):.0%}.",
            ),
            _rate_of_cm(),
            Claim.ours(
                "From starts that lie off the circle along its normal, where P does not change, the rate "
                "of CM "
                "follows δ, not δ/ε.",
                Band("σ(CM) up to δ/ε = 100", worst, high=0.1),
                f"σ(CM) stays below {worst:.2g} up to δ/ε = 100.",
            ),
            Claim.of(
                "So CM converges where CS does not.",
                needed["CS", False] is None and needed["CM", False] is not None,
                f"at ε = 1e-4, δ = 1e-3 CS {told['CS', False]}, CM {told['CM', False]}; with isotropic "
                f"stiffness CS {told['CS', True]}, CM {told['CM', True]}.",
            ),
            Claim.of(
                "σ(CS) has a factor h.",
                Band.near("factor for half the step", halved, 0.5, 0.1),
                f"half the step changes σ(CS) by a factor of {halved:.3f}: as long as h² > ε it does not "
                "depend on h.",
            ),
        ],
        notes=[
            "f = −(x/ε, (y + 1)/ε²) − (0, 1), h = 0.1, from (0, −1) with the velocity (0.01, 0); the "
            "iteration starts in (0, −1 − δ), with its matrix there.",
            "The iteration is the corrected one.",
        ],
    )


def _rate_of_cm() -> Claim:
    """σ(CM) against h, and from a start that is displaced along the circle as well."""
    steps = (0.2, 0.1, 0.05, 0.025)
    rates = [off_the_manifold(1e-4, 1e-3, h=h).rate("CM") for h in steps]
    aside = Step([1e4, 1e8], [1e-2, -1.0 - 1e-4], [0.01, 0.0]).rate("CM")
    return Claim.of(
        "The rate of CM is O(h), whatever δ/ε.",
        [Band.near("σ for h = 0.025 over σ for 0.2", rates[-1] / rates[0], 1 / 8, 0.05)],
        f"σ(CM) is {min(rates):.6f} to {max(rates):.6f} for h = 0.2, 0.1, 0.05 and 0.025, so that it "
        "does not "
        f"fall with h; and a start that lies 0.01 off the solution along the circle, where P changes, makes "
        f"it {aside:.2f} (ε = 1e-4).",
    )


@PAPER.experiment("algorithm-2.1", "the CS iteration as printed and as it should be")
def algorithm_2_1(progress: Progress) -> Figure:
    """
    One step of implicit Euler, h = 0.1, for the point mass on the circle, without springs and with springs of
    stiffness 10 and 100. Shown is what is left of the projected equations P r = 0 in the course of three
    iterations: (2.23) and (2.24), (2.25) and (2.26), and the corrected decoupling, all with the signs that
    (2.22) asks for.
    """
    progress(0.0, "one step of implicit Euler")
    problems = {"pendulum": swinging([0.0, 0.0], np.pi / 4), "with springs": swinging([10.0, 100.0], 0.3)}
    panels, left, apart = [], {}, 0.0
    for title, step in problems.items():
        J, exact = step.jacobian(step.q, step.v, "CS", step.P(step.q)), [np.concatenate([step.q, step.v])]
        iterates = {
            "corrected": step.iterate("CS")[0],
            "(2.23), (2.24)": step.iterate_as_printed(True),
            "(2.25)": step.iterate_as_printed(False),
        }
        for _ in iterates["corrected"][1:]:
            q, v = exact[-1][:2], exact[-1][2:]
            exact.append(exact[-1] - np.linalg.solve(J, step.F(q, v, step.P(q))))
        apart = max(apart, float(np.max(np.abs(np.array(exact) - iterates["corrected"]))))
        curves = []
        for (name, points), style in zip(
            iterates.items(),
            (
                {"color": COLOURS[2], "marker": "o", "ms": 4},
                {"color": COLOURS[1], "marker": "s", "ms": 4, "mfc": "none"},
                {"color": COLOURS[3], "marker": "^", "ms": 4, "mfc": "none"},
            ),
            strict=True,
        ):
            values = np.array(
                [max(np.max(np.abs(step.P(y[:2]) @ r)) for r in step.residuals(y[:2], y[2:])) for y in points]
            )
            left[title, name] = float(values[-1])
            curves.append(Curve(name, np.arange(values.size)[:25], np.maximum(values, 1e-15)[:25], style))
        panels.append(
            Panel(title, "iteration", "largest |P r|", curves, {"yscale": "log", "ylim": (1e-15, 1e2)})
        )
    told = ", ".join(
        f"{left['with springs', name]:.1g} after {name}" for name in ("(2.23), (2.24)", "(2.25)")
    )
    return Figure(
        panels=panels,
        claims=[
            Claim.of(
                "The iterates of Algorithm 2.1 converge to the solution of Newton's method (section 2.4).",
                [
                    Band(f"|P r| after {name}", left["with springs", name], high=1e-10)
                    for name in ("(2.23), (2.24)", "(2.25)")
                ],
                f"with springs |P r| stays at {told}; the increments vanish, but not the residual.",
            ),
            Claim.ours(
                "The corrected decoupling has the iterates of Newton's method on (2.12).",
                Band("difference", apart, high=1e-13),
                f"they differ by {apart:.0e} at most.",
            ),
        ],
    )


@PAPER.experiment("theorem-3.1", "how far CM's solution is from that of CS")
def theorem_3_1(progress: Progress) -> Figure:
    """
    One step of implicit Euler, h = 0.1, for the point mass on the circle with three stiffnesses. CM fixes P
    at a point q₀ at a distance from the solution q* of CS, and converges to another point q̄*; shown is the
    distance of the two, and its ratio to the bracket of (3.7).
    """
    progress(0.0, "one step of implicit Euler")
    distances, away, ratios = np.logspace(-6, -0.7, 30), [], []
    for label, stiffness, colour in (
        ("no springs", [0.0, 0.0], COLOURS[0]),
        ("stiffness 10, 100", [10.0, 100.0], COLOURS[2]),
        ("stiffness 1e2, 1e4", [1e2, 1e4], COLOURS[1]),
    ):
        last = swinging(stiffness)
        q, v = last.solution("CS")
        normal = max(abs(r[last.y]) for r in last.residuals(q, v))  # ‖Yᵀr(q*)‖
        ends = [Step(stiffness, q + d * np.array([0.6, 0.8]), v, last.qn, last.vn, last.h) for d in distances]
        found = np.array([np.linalg.norm(step.solution("CM")[0] - q) for step in ends])
        bracket = np.array(
            [
                normal * d + d**2 + np.linalg.norm(step.solution("CM")[0] - step.q) ** 2
                for step, d in zip(ends, distances, strict=True)
            ]
        )
        away.append(Curve(label, distances, found, {"color": colour}))
        ratios.append(Curve(label, distances, found / bracket, {"color": colour}))
    C = max(float(np.max(curve.y)) for curve in ratios)
    slope = float(np.polyfit(np.log(distances[:15]), np.log(away[1].y[:15]), 1)[0])
    return Figure(
        panels=[
            Panel(
                "distance of the solutions",
                "‖q* − q₀‖",
                "‖q̄* − q*‖",
                away,
                LOGARITHMIC,
            ),
            Panel("over the bracket of (3.7)", "‖q* − q₀‖", "C", ratios, LOGARITHMIC),
        ],
        claims=[
            Claim.of(
                "‖q̄* − q*‖ ≤ C (‖Yᵀr(q*)‖ ‖q* − q₀‖ + ‖q* − q₀‖² + ‖q̄* − q₀‖²) with a moderate constant C.",
                Band("C", C, high=1),
                f"C = {C:.1g} suffices.",
            ),
            Claim.ours(
                "The distance is of first order in ‖q* − q₀‖, not of second, so that CM is as accurate as "
                "its P is recent.",
                Band.near("exponent", slope, 1, 0.05),
                f"it grows like ‖q* − q₀‖^{slope:.2f}.",
            ),
        ],
    )


@PAPER.experiment("theorem-4.1", "convergence of CS for steps of the order of √ε")
def theorem_4_1(progress: Progress) -> Figure:
    """
    One step of implicit Euler for the point mass on the circle, with stiffness 1/ε across the circle and a
    tenth of it along, started h² from the solution in position and h in velocity. Shown is the rate of
    convergence of CS against h²/ε.
    """
    progress(0.0, "one step of implicit Euler")
    products, curves, worst = np.logspace(-2, 3, 41), [], 0.0
    for eps, colour in ((1e-3, COLOURS[0]), (1e-5, COLOURS[2]), (1e-7, COLOURS[1])):
        rates = []
        for product in products:
            h, stiffness = float(np.sqrt(product * eps)), [0.1 / eps, 1 / eps]
            q, v = Step(stiffness, [0.0, -1.0], [0.01, 0.0], h=h).solution("CS")
            rates.append(
                Step(stiffness, q + h**2 * np.array([0.6, -0.8]), v + h * np.array([0.8, 0.6]), h=h).rate(
                    "CS"
                )
            )
        worst = max(worst, max(rate for rate, product in zip(rates, products, strict=True) if product <= 1))
        curves.append(
            Curve(f"ε = {eps:.0e}".replace("e-0", "e-"), products, np.array(rates), {"color": colour})
        )
    limit = Curve(
        "no convergence above", products[[0, -1]], np.ones(2), {"color": "#444444", "linewidth": 0.8}
    )
    return Figure(
        panels=[
            Panel(
                "rate of convergence of CS",
                "h²/ε",
                "σ(CS)",
                [*curves, limit],
                LOGARITHMIC,
            )
        ],
        size=(6.4, 3.8),
        claims=[
            Claim.of(
                "CS converges if h² ≤ c ε for some moderate c.",
                Band("σ(CS) for h² ≤ ε", worst, high=0.5),
                f"for h² ≤ ε its rate is {worst:.0e} at most; the condition is sufficient, not necessary.",
            )
        ],
        notes=[
            "The theorem asks for ‖q₀‖ = O(h²), ‖v₀‖ = O(h); that is read as the distance from the solution."
        ],
    )

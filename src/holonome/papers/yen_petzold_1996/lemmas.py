"""Lemmas 2.2, 3.1 and 4.1."""

from __future__ import annotations

import numpy as np

from holonome.papers.figure import LOGARITHMIC, Curve, Figure, Panel
from holonome.papers.paper import Progress
from holonome.papers.verdict import Band, Claim
from holonome.papers.yen_petzold_1996.figures import METHOD_COLOURS
from holonome.papers.yen_petzold_1996.runs import PAPER
from holonome.papers.yen_petzold_1996.step import off_the_manifold, swinging
from holonome.plot import COLOURS


@PAPER.experiment("lemma-2.2", "the Jacobian of the projected equations")
def lemma_2_2(progress: Progress) -> Figure:
    """The matrix (2.14), which rests on Lemma 2.2, in one step of the point mass with springs, against
    central differences of the equations (2.12) with steps of all sizes.
    """
    progress(0.0, "one step of implicit Euler")
    step, sizes = swinging([10.0, 100.0], 0.3), np.logspace(-9, -1, 33)
    y = np.concatenate([step.q, step.v])
    J = step.jacobian(step.q, step.v, "CS", step.P(step.q))

    def F(y: np.ndarray) -> np.ndarray:
        return step.F(y[:2], y[2:], step.P(y[:2]))

    apart = np.array(
        [
            np.max(
                np.abs(np.stack([(F(y + e) - F(y - e)) / (2 * size) for e in size * np.eye(4)], axis=1) - J)
            )
            for size in sizes
        ]
    ) / np.max(np.abs(J))
    slope = float(np.polyfit(np.log(sizes[-12:-4]), np.log(apart[-12:-4]), 1)[0])
    return Figure(
        panels=[
            Panel(
                "",
                "step of the differences",
                "relative distance from (2.14)",
                [Curve("", sizes, apart, {"color": COLOURS[0], "marker": "o", "ms": 3.5})],
                LOGARITHMIC,
            )
        ],
        size=(6.4, 3.4),
        claims=[
            Claim.of(
                "d(P r)/dq = P ∂(Gᵀs)/∂q with s = −(GY)⁻ᵀYᵀr, (2.9), so that (2.14) is the Jacobian of "
                "(2.12).",
                [Band("distance", float(np.min(apart)), high=1e-9), Band.near("order", slope, 2, 0.05)],
                f"the distance falls like the step to the power of {slope:.2f}, as it must, down to "
                f"{np.min(apart):.0e}, where rounding takes over.",
            )
        ],
    )


@PAPER.experiment("lemma-3.1", "a bound for the derivative of P r without that of r")
def lemma_3_1(progress: Progress) -> Figure:
    """On the circle: the largest ‖d(P r)/dq − P dr/dq‖ in discs of radius ϱ₀ around (0, −1), for residuals
    with |Yᵀr| = 1, and the bound (3.4) with and without the factor ϱ₀.
    """
    progress(0.0, "discs")
    radii = np.logspace(-3, -0.3, 20)
    norm_P, C1 = (
        np.array([max(value(x, y) for x, y in _disc(radius)) for radius in radii])
        for value in (lambda x, y: np.hypot(1, x / y), lambda x, y: 1 / abs(y))
    )
    left = np.array(
        [max(np.hypot(1, x / y) / abs(y) for x, y in _disc(radius)) for radius in radii]
    )  # ‖P ∂(Gᵀs)/∂q‖ = ‖P‖ |s|, and C₂ = 1
    curves = [
        Curve("left side", radii, left, {"color": COLOURS[0]}),
        Curve("ϱ₀ C₁C₂‖Yᵀr‖, as printed", radii, radii * C1, {"color": COLOURS[1]}),
        Curve("‖P‖ C₁C₂‖Yᵀr‖", radii, norm_P * C1, {"color": COLOURS[2], "linestyle": "--"}),
    ]
    return Figure(
        panels=[Panel("", "radius ϱ₀ of the disc", "for |Yᵀr| = 1", curves, LOGARITHMIC)],
        size=(6.4, 3.4),
        claims=[
            Claim.of(
                "The derivative is bounded by ϱ₀ C₁C₂‖Yᵀr‖ in a disc of radius ϱ₀, (3.4).",
                bool(np.all(left <= radii * C1)),
                f"for ϱ₀ = {radii[0]:g} it is {left[0] / (radii[0] * C1[0]):.0f} times as large.",
            ),
            Claim.ours(
                "It is bounded by ‖P‖ C₁C₂‖Yᵀr‖.",
                bool(np.all(left <= (1 + 1e-12) * norm_P * C1)),
                "so it is, for every radius.",
            ),
        ],
    )


@PAPER.experiment("lemma-4.1", "distance of the Jacobians at the start and at the solution")
def lemma_4_1(progress: Progress) -> Figure:
    """
    In the steps of Theorem 4.2, h = 0.1, with stiffness 1/ε along the circle and 1/ε² across it: the distance
    of the Jacobian at the start, δ off the circle, from that at the solution.
    """
    progress(0.0, "one step of implicit Euler")
    shares, distances = np.logspace(-2, 1, 31), {}
    for kind in ("CS", "CM"):
        for eps in ("1e-3", "1e-4"):
            distances[kind, eps] = np.array(
                [
                    np.linalg.norm(
                        np.subtract(*off_the_manifold(float(eps), share * float(eps)).jacobians(kind)), 2
                    )
                    for share in shares
                ]
            )
    curves = [
        Curve(
            f"{kind}, ε = {eps}",
            shares,
            values,
            {"color": METHOD_COLOURS[kind], "linestyle": {"1e-3": "--", "1e-4": "-"}[eps]},
        )
        for (kind, eps), values in distances.items()
    ]
    halved = [
        float(np.linalg.norm(np.subtract(*off_the_manifold(1e-4, 1e-4, h=h).jacobians("CS")), 2))
        for h in (0.1, 0.05)
    ]
    most = max(float(np.max(values)) for (kind, _), values in distances.items() if kind == "CM")
    return Figure(
        panels=[Panel("", "δ/ε", "‖J₀ − J*‖", curves, LOGARITHMIC)],
        size=(6.4, 3.6),
        claims=[
            Claim.of(
                "For CS ‖J₀ − J*‖ is O(h) times δ times the stiffness, plus O(h), (4.10).",
                Band.near("factor for half the step", halved[1] / halved[0], 0.5, 0.1),
                f"{halved[0]:.0f} and {halved[1]:.0f} with h = 0.1 and 0.05 for δ = 1e-4 and a stiffness of "
                "1e8: it is δ times the stiffness, and does not fall with h.",
            ),
            _for_cm(most),
        ],
    )


def _for_cm(kept: float) -> Claim:
    """(4.11) reads ‖J̄(q₀) − J(q*)‖, with P(q₀) in the first and P(q*) in the second."""
    distances = []
    for h in (0.1, 0.05):
        step = off_the_manifold(1e-4, 1e-4, h=h)
        q, v = step.solution("CM")
        at_start = step.jacobian(step.q, step.v, "CM", step.P(step.q))
        distances.append(float(np.linalg.norm(at_start - step.jacobian(q, v, "CM", step.P(q)), 2)))
    return Claim.of(
        "For CM ‖J̄₀ − J*‖ is O(h), (4.11).",
        Band.near("factor for half the step", distances[1] / distances[0], 0.5, 0.1),
        f"{distances[0]:.0f} and {distances[1]:.0f} with h = 0.1 and 0.05 for ε = δ = 1e-4, as P(q₀) and "
        "P(q*) "
        f"differ and are multiplied by 1/ε²; it is small, {kept:.2g} at most, only if J* is taken with "
        "P(q₀), "
        "which is the Jacobian of other equations.",
    )


def _disc(radius: float) -> list[tuple[float, float]]:
    """The centre (0, −1) of a disc and points on its rim."""
    return [
        (0.0, -1.0),
        *((radius * float(np.cos(a)), -1 + radius * float(np.sin(a))) for a in np.linspace(0, 2 * np.pi, 73)),
    ]

"""The rate of convergence, section 4, and other masses."""

from __future__ import annotations

from typing import Any

import numpy as np

import holonome as hn
from holonome.papers.figure import Curve, Figure, Panel
from holonome.papers.paper import Progress
from holonome.papers.table import Table
from holonome.papers.verdict import NOT_PUBLISHED, Band, Claim, Row
from holonome.papers.wang_hou_modnak_2011.runs import PAPER, model, simulate
from holonome.plot import COLOURS


def constants() -> tuple[float, float]:
    """E and F of section 4, from the eigenvectors of A = [[5, 1], [2, 7]]/11."""
    r, Q = (part.real for part in np.linalg.eig(np.array([[5.0, 1.0], [2.0, 7.0]]) / 11))
    P = np.linalg.inv(Q)
    weights = np.abs(Q[1]) * np.abs(P[:, 0] - 4 * P[:, 1])
    return float(weights @ r / 22), float(np.sum(weights) / 11)


def beta_of(window: float) -> float:
    """The positive root β of (49)."""
    (E, F), h2 = constants(), window**2
    first, second = (E / 8 + F / 64) * h2 + F / 8, (F / 16 - E) * h2 - F
    return float(np.max(np.real(np.roots([first, second, -F / 2 * h2]))))


def bound(window: float) -> float:
    """γ of (50)."""
    (E, F), h2 = constants(), window**2
    return F / 16 * h2 + beta_of(window) * ((E / 8 + F / 64) * h2 + F / 8)


def _slope_of_beta() -> float:
    """The coefficient of Δt² in β."""
    return (beta_of(0.01) - 8) / 0.01**2


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
    above = max(float(measured["y"][i] - bound(window)) for i, window in enumerate(windows))
    return Figure(
        panels=panels,
        claims=[
            Claim.of(
                "The iteration converges with γ ≈ 0.36 + 0.13 Δt², also for relatively large Δt.",
                [
                    Band("measured above the bound", above, high=1e-3),
                    Band.near("short windows", measured["y"][0], 4 / 11, 0.005),
                ],
                f"measured {measured['y'][0]:.3f} for Δt = {windows[0]:g} and {measured['y'][5]:.3f} for Δt "
                f"= 1, where the bound is {bound(1.0):.3f}.",
            ),
            Claim.of(
                "E ≈ 0.12, F ≈ 0.36.",
                [Band.near("E", E, 0.12, 0.005), Band.near("F", F, 0.36, 0.005)],
                f"E = {E:.3f}, F = {F:.4f} = 4/11.",
            ),
            Claim.of(
                "β ≈ 8.00 − 1.20 Δt².",
                Band.near("coefficient of Δt² in β", _slope_of_beta(), -1.2, 0.05),
                f"the coefficient is {_slope_of_beta():.3f}: by (49) β = 8 − Δt² + O(Δt⁴), whatever E and F.",
            ),
            Claim.of(
                "A similar procedure can be based on (55) and (56).",
                Band("factor", measured["x"][0], high=1),
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
        Band("iterations", most, high=8),
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

"""Figures 5.1 to 5.6."""

from __future__ import annotations

import numpy as np

import holonome as hn
from holonome.mechanisms import Example
from holonome.papers.figure import LOGARITHMIC, Curve, Figure, Panel
from holonome.papers.paper import Progress
from holonome.papers.verdict import Claim
from holonome.papers.yen_petzold_1996.runs import PAPER, methods, simulate
from holonome.papers.yen_petzold_1996.tables import BUSHING_DATA
from holonome.plot import COLOURS

METHOD_COLOURS = {
    "GGL": COLOURS[0],
    "GGL*": COLOURS[5],
    "CS": COLOURS[2],
    "CM": COLOURS[1],
    "CMp": COLOURS[4],
}
_STYLES = {
    name: {"color": colour, "linestyle": "--" if name in ("GGL*", "CMp") else "-"}
    for name, colour in METHOD_COLOURS.items()
}


def _solutions(mechanism: Example, test: str, tolerance: float, progress: Progress) -> dict[str, hn.Solution]:
    """A run with every method."""
    chosen, solutions = methods(test), {}
    for i, (name, method) in enumerate(chosen.items()):
        progress(i / len(chosen), name)
        solutions[name] = simulate(mechanism, method, tolerance)
    return solutions


def _energy_figure(
    mechanism: Example, lowest: float, tolerance: float, notes: list[str], progress: Progress
) -> Figure:
    """Energy above the lowest one over time by all methods, and when a tenth of it is left."""
    solutions = _solutions(mechanism, "q", tolerance, progress)
    left = {
        name: (solution.energy - lowest) / (solution.energy[0] - lowest)
        for name, solution in solutions.items()
        if solution.energy is not None
    }
    damped = {name: _time_below(0.1, solutions[name].t, share) for name, share in left.items()}
    told = (
        "a tenth of the energy is left, if at all, at t = "
        + ", ".join(f"{time:.2g} ({name})" for name, time in damped.items() if time < np.inf)
        + "."
    )
    statement = (
        "CM achieves the strongest damping, because DASSL is able to increase the step faster with it."
    )
    claim = Claim.of(
        statement, damped["CM"] < 0.9 * min(damped[name] for name in ("GGL", "GGL*", "CS")), told
    )
    end = min(
        1.2 * max(_time_below(0.02, solutions[name].t, share) for name, share in left.items()),
        mechanism.t_span[1],
    )
    linear = [Curve(name, solutions[name].t, share, _STYLES[name]) for name, share in left.items()]
    logarithmic = [
        Curve(name, solutions[name].t[1:], np.maximum(share[1:], 1e-9), _STYLES[name])
        for name, share in left.items()
    ]
    panels = [
        Panel(
            "total energy above the equilibrium",
            "time t [s]",
            "energy, start = 1",
            linear,
            {"ylim": (-0.02, 1.05), "xlim": (0, end)},
        ),
        Panel(
            "the same, logarithmic",
            "time t [s]",
            "energy, start = 1",
            logarithmic,
            LOGARITHMIC | {"ylim": (1e-6, 3)},
        ),
    ]
    return Figure(panels=panels, claims=[claim], notes=notes)


def _time_below(share: float, t: np.ndarray, values: np.ndarray) -> float:
    """From when on the values stay below a share; infinity if they do not."""
    above = np.flatnonzero(values > share)
    return float("inf") if above[-1] + 1 == t.size else float(t[above[-1] + 1])


@PAPER.experiment("figure-5.1", "energy on the linear oscillatory force, ε = 1e-6, TOL = 1e-3")
def figure_5_1(progress: Progress) -> Figure:
    """
    What is left of the energy above the equilibrium, over time, on the problem of Table 5.1
    (`oscillator_on_circle`) with ε = 1e-6. The exact energy is constant; what is lost is damped by the
    method.
    """
    notes = ["The problem is that of Table 5.1: ε⁻² in both directions, released from rest at 10°."]
    return _energy_figure(hn.mechanisms.oscillator_on_circle(eps=1e-6), -1.0, 1e-3, notes, progress)


@PAPER.experiment("figure-5.3", "energy on the oscillatory spring, ε = TOL = 1e-4")
def figure_5_3(progress: Progress) -> Figure:
    """
    What is left of the energy above the equilibrium, over time, on the problem of Table 5.2 (`stiff_spring`).
    The exact energy is constant; what is lost is damped by the method.
    """
    notes = ["CM's loss comes from a P that is kept over several steps."]
    return _energy_figure(
        hn.mechanisms.stiff_spring(eps=1e-4), 0.1**2 / (2 * 1e-4**2) - 1, 1e-4, notes, progress
    )


@PAPER.experiment("figure-5.4", "position, velocity and multiplier on the oscillatory spring, ε = TOL = 1e-4")
def figure_5_4(progress: Progress) -> Figure:
    """Horizontal position x, horizontal velocity w and multiplier λ, times ε², over time on the problem of
    Table 5.2 (`stiff_spring`), one line of panels for each method.
    """
    solutions = _solutions(hn.mechanisms.stiff_spring(eps=1e-4), "q", 1e-4, progress)
    shown = {
        "x": lambda solution: solution.q[0],
        "w": lambda solution: solution.v[0],
        "ε²λ": lambda solution: 1e-8 * solution.lam[0],
    }
    panels = []
    for name, solution in solutions.items():
        xlabel = "time t [s]" if name == list(solutions)[-1] else ""
        style = {"color": METHOD_COLOURS[name], "linewidth": 0.9}
        panels += [
            Panel(
                f"{name}: {label}",
                xlabel,
                "",
                [Curve("", solution.t, values(solution), style)],
                {"xlim": (0, 0.05), "ylim": limits},
            )
            for (label, values), limits in zip(
                shown.items(), [(-0.05, 0.05), (-160, 160), (-0.1012, -0.0995)], strict=True
            )
        ]
    return Figure(
        panels=panels,
        columns=len(shown),
        size=(3.6, 1.75),
        notes=["The paper's figure shows the same quantities; it has no numbers to compare with."],
    )


@PAPER.experiment("figure-5.6", "step sizes on the bushing, ε = 1e-5")
def figure_5_6(progress: Progress) -> Figure:
    """The step size h over time on the two bodies with a bushing (`two_body_bushing`), ε = 1e-5, TOL = 1e-4,
    one panel for each method.
    """
    solutions = _solutions(hn.mechanisms.two_body_bushing(eps=1e-5), "qv", 1e-4, progress)
    panels = [
        Panel(
            f"{name}: {solution.steps} steps, {solution.rejections} rejected",
            "time t [s]" if name == list(solutions)[-1] else "",
            "h",
            [
                Curve(
                    "",
                    solution.history.t,
                    solution.history.h,
                    {"color": METHOD_COLOURS[name], "drawstyle": "steps-post", "linewidth": 1.1},
                )
            ],
            {"yscale": "log", "xlim": (0, 1), "ylim": (1e-6, 0.3)},
        )
        for name, solution in solutions.items()
        if solution.history is not None
    ]
    statement = "CM takes much larger steps than GGL, GGL* and CS."
    told = ", ".join(f"{name} {solution.steps}" for name, solution in solutions.items())
    claim = Claim.of(
        statement,
        2 * solutions["CM"].steps < solutions["CS"].steps,
        f"steps: {told}; on this isotropic bushing the rates of CS and CM are equal.",
    )
    return Figure(
        panels=panels,
        columns=1,
        size=(7.2, 1.5),
        claims=[claim],
        notes=["TOL is not given; 1e-4 as in Table 5.4.", BUSHING_DATA],
    )

"""Figures 1.2 to 1.4, the wheel set."""

from __future__ import annotations

import numpy as np

import holonome as hn
from holonome.papers.eich_1993.runs import FORMULATIONS, LABELS, PAPER, STYLES, method
from holonome.papers.figure import Curve, Figure, Panel
from holonome.papers.paper import Progress, run_of
from holonome.papers.verdict import Band, Claim


def wheel_set(projection: str, tolerance: float, end: float, integrator: hn.BDF | None = None) -> hn.Solution:
    """A run of the wheel set on its straight track."""
    mechanism = hn.mechanisms.wheelset()
    return run_of(
        mechanism,
        (0, end),
        method=method(projection, integrator),
        rtol=tolerance,
        atol=tolerance,
    )


_TRACK = (
    "The paper's track is circular and its data are not published; here the straight track of the IVP Test "
    "Set. The drift is much smaller than the paper's."
)


@PAPER.experiment(
    "figures-1.2-and-1.3", "residuals of the wheel set on position and velocity level, TOL = 1e-5"
)
def figures_1_2_and_1_3(progress: Progress) -> Figure:
    """
    A railway wheel set on a straight track (`wheelset`, from the Test Set for IVP Solvers) is simulated for
    10 s by BDF on the equations of index 1, with and without projection. Shown is by how much the contact
    conditions between wheels and rails are violated: as in the paper, and on a logarithmic axis.
    """
    solutions = {}
    for projection in FORMULATIONS:
        progress(len(solutions) / 2, LABELS[projection])
        solutions[projection] = wheel_set(projection, 1e-5, 10.0)
    levels = {"position": ("g", "m", 1e-18), "velocity": ("gv", "m/s", 1e-19)}
    panels = [
        Panel(
            f"{level} level, left wheel",
            "",
            f"residual [{unit}]",
            [
                Curve(LABELS[projection], solution.t, getattr(solution, name)[0], STYLES[projection])
                for projection, solution in solutions.items()
            ],
        )
        for level, (name, unit, _) in levels.items()
    ]
    for level, (name, unit, smallest) in levels.items():
        curves = [
            Curve(
                LABELS[projection],
                solution.t,
                np.maximum(np.max(np.abs(getattr(solution, name)), axis=0), smallest),
                {**STYLES[projection], "linewidth": 0.8},
            )
            for projection, solution in solutions.items()
        ]
        panels.append(
            Panel(
                f"{level} level, both wheels",
                "time t [s]",
                f"largest residual [{unit}]",
                curves,
                {"yscale": "log"},
            )
        )
    drift, kept = solutions["no"].drift, solutions["yes"].drift
    half = float(np.max(np.abs(solutions["no"].g[:, solutions["no"].t <= 5])))
    return Figure(
        panels=panels,
        columns=2,
        size=(5.0, 2.9),
        claims=[
            Claim.of(
                "The solution of the index-1 system drifts off the constraints.",
                Band("|g|", drift[0], 1e-6),
                f"|g| reaches {drift[0]:.1e} m and |Gv| {drift[1]:.1e} m/s; |g| is {drift[0] / half:.1f} "
                "times what it was at t = 5.",
            ),
            Claim.of(
                "With projection the residuals cannot be distinguished from the zero axis; they are at "
                "rounding level.",
                Band("|g| and |Gv|", max(kept), high=1e-15),
                f"|g| ≤ {kept[0]:.1e}, |Gv| ≤ {kept[1]:.1e}.",
            ),
        ],
        notes=[_TRACK],
    )


FLIGHT_TOLERANCE, FLIGHT_END = 8e-3, 100.0
"""A tolerance just small enough to resolve the hunting motion, with which the wheel set rises, and a run ten
times as long as in the paper.
"""


@PAPER.experiment("figure-1.4", "the flying wheel set, without and with projection")
def figure_1_4(progress: Progress) -> Figure:
    """
    The wheel set in cross section, at five instants of a run of 100 s with the loose tolerance 8e-3: without
    projection it leaves the rails, with projection it stays. The titles tell how high it is without.
    """
    drawing, solutions = hn.mechanisms.wheelset().drawing, {}
    assert drawing is not None
    for projection in FORMULATIONS:
        progress(len(solutions) / 2, LABELS[projection])
        solutions[projection] = wheel_set(projection, FLIGHT_TOLERANCE, FLIGHT_END)
    height = float(np.mean(wheel_set("no", 1e-5, 10.0).g[:, -1]))
    heights = {projection: float(np.mean(solution.g[:, -1])) for projection, solution in solutions.items()}
    low, high = min(-0.25, min(heights.values()) - 0.15), max(0.25, max(heights.values()) + 0.25)

    def instant(t: float) -> Panel:
        curves = []
        for projection, solution in reversed(solutions.items()):
            state = solution.q[:, np.argmin(np.abs(solution.t - t))]
            curves += _outlines(drawing, state, solution.system, projection)
        above = float(np.mean(solutions["no"].g[:, np.argmin(np.abs(solutions["no"].t - t))]))
        limits = {"aspect": "equal", "xlim": (-0.28, 0.28), "ylim": (low, high)}
        return Panel(
            f"t = {t:g} s: {round(above, 2) + 0.0:.2f} m", "x [m]", "y [m]" if t == 0 else "", curves, limits
        )

    return Figure(
        panels=[instant(t) for t in np.linspace(0, FLIGHT_END, 5)],
        frames=[instant(t) for t in np.linspace(0, FLIGHT_END, 51)],
        size=(2.0, 3.1),
        claims=[
            Claim.of(
                "Without projection the solution is physically meaningless: the wheel set is flying.",
                Band("height", abs(heights["no"]), 0.1),
                f"after {FLIGHT_END:g} seconds, at TOL {FLIGHT_TOLERANCE:g}, it is {abs(heights['no']):.2f} "
                f"m {'above' if heights['no'] > 0 else 'below'} the rails.",
                fitted=True,
            ),
            Claim.of(
                "It does so at a height of 1.27 m after 10 seconds, at TOL 1e-5.",
                Band.within_factor("height", abs(height), 1.27, 2),
                f"{height:.1e} m.",
            ),
            Claim.of(
                "With projection it stays on the track.",
                Band("height", abs(heights["yes"]), high=1e-15),
                f"|g| ≤ {solutions['yes'].drift[0]:.0e} m.",
            ),
        ],
        notes=[
            _TRACK
            + " Whether the wheel set rises or sinks, and how fast, changes with the tolerance; this one was "
            "chosen to make it fly."
        ],
    )


def _outlines(
    drawing: hn.mechanisms.Drawing, q: np.ndarray, system: hn.System, projection: str
) -> list[Curve]:
    """The bodies of a drawing as closed lines; the rails in grey."""
    points, curves = drawing.at(q, system.parameters.namespace(system.parameters.flat)), []
    for body in drawing.bodies:
        fixed = set(body) <= set(drawing.ground)
        if fixed and projection == "no":
            continue
        x, y = np.stack([points[name] for name in (*body, body[0])], axis=1)
        curves.append(
            Curve(
                "" if fixed or any(curve.label for curve in curves) else LABELS[projection],
                x,
                y,
                {"color": "#666666"} if fixed else STYLES[projection],
            )
        )
    return curves

"""``holonome demo``: a first demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holonome.cli.app import Command, app

if TYPE_CHECKING:
    from holonome.bodies.mechanism import Mechanism
    from holonome.mechanisms.example import Example
    from holonome.results.solution import Solution


@app.command(cls=Command)
def demo(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to put the page and the picture.")
    ] = Path(),
) -> None:
    """See it work: Andrews' squeezing mechanism beside a four-bar of bodies and joints, as a page with an
    animation too, and what a pendulum does without projection.
    """
    from dataclasses import replace

    import numpy as np

    from holonome import mechanisms
    from holonome.animation import animate
    from holonome.cli import printing
    from holonome.cli.simulation import relative, rows, simulate
    from holonome.cli.subject import Subject
    from holonome.mechanisms.andrews import PUBLISHED

    printing.require_folder("--out", out)
    printing.compile_engine()
    andrews = mechanisms.get("andrews")
    pendulum = replace(mechanisms.get("pendulum"), t_span=(0.0, 100.0))
    squeezer = simulate(Subject(andrews))
    parts = four_bar()
    q0, v0, _ = parts.initial(start={"A": 0.3}, speed={"A": 600.0})
    linkage = simulate(
        Subject(mechanisms.Example(parts.name, parts.name, parts.system, andrews.t_span, q0, v0))
    )
    held, loose = (simulate(Subject(pendulum), projection=projection) for projection in (True, False))
    console = printing.out()
    told, solution = dict(rows(squeezer)), squeezer.solution
    errors = [relative(solution.q[:, -1], PUBLISHED.q), relative(solution.v[:, -1], PUBLISHED.v)]
    told["error"] = (
        f"positions {errors[0]:.1e}, velocities {errors[1]:.1e}, relative to the\nsolution published in the "
        "Test Set for IVP Solvers"
    )
    printing.print_summary(
        console, f"{andrews.title}: seven bodies, three loops, a motor and a spring", list(told.items())
    )
    console.print()
    told = dict(rows(linkage))
    turns = float(np.ptp(linkage.solution.joint("A").angle)) / (2 * np.pi)
    force = float(np.max(np.hypot(*linkage.solution.reaction("C").force)))
    energy, unexplained = linkage.solution.energy, np.max(np.abs(linkage.solution.energy_error))
    assert energy is not None
    told["energy"] = (
        f"{energy[0]:.3g} J, {energy[-1]:.3g} J at the end: the motor's work, to {unexplained:.1e} J"
    )
    told["crank"] = f"turns {turns:.2f} times"
    told["joint C"] = f"transmits up to {force:.2g} N"
    printing.print_summary(console, "A four-bar of three bodies, four joints and a motor", list(told.items()))
    console.print()
    lengths = [float(np.max(np.abs(np.hypot(*done.solution.q) - 1))) for done in (held, loose)]
    printing.print_summary(
        console,
        "A pendulum with a rod of 1 m, for 100 s: what projection is good for",
        [
            ("with projection", f"{held.solution.drift_in_words}; the rod changes by {_length(lengths[0])}"),
            ("without", f"{loose.solution.drift_in_words}; the rod changes by {_length(lengths[1])}"),
            (
                "speed",
                f"{printing.duration(held.seconds)} of computing with projection, "
                f"{printing.duration(loose.seconds)} without",
            ),
        ],
    )
    picture, page = out.resolve() / "holonome-demo.png", out.resolve() / "holonome-demo.html"
    created = printing.create_folders([picture])
    plot_demo(andrews, solution, held.solution, loose.solution, picture)
    with printing.alive("writing the page"):
        titles = [andrews.title, "A four-bar, from bodies and joints"]
        animate([solution, linkage.solution], page, titles=titles, title="Two mechanisms with one clock")
    console.print()
    printing.print_summary(
        console,
        "",
        [
            ("next", "holonome mechanisms, holonome animate four_bar, holonome new my_model.py"),
            ("picture", printing.told(picture, created)),
            ("page", f"{printing.told(page, created)}: both mechanisms in motion"),
            ("open", page.as_uri()),
        ],
    )


def four_bar() -> Mechanism:
    """A four-bar of the size of Andrews' mechanism, in metres."""
    import holonome as hn

    m = hn.Mechanism("four-bar", gravity=(0, -9.81))
    crank = m.body("crank", 0.04, 2.2e-6, center=(0.0035, 0), points={"A": (0, 0), "B": (0.007, 0)})
    tip = {"B": (0, 0), "C": (0.028, 0), "P": (0.014, 0.012)}
    coupler = m.body("coupler", 0.02, 2e-6, center=(0.014, 0.004), points=tip)
    rocker = m.body("rocker", 0.02, 2e-6, center=(0.01, 0), points={"C": (0.02, 0), "D": (0, 0)})
    m.revolute("A", m.ground.at(0, 0), crank["A"])
    m.revolute("B", crank["B"], coupler["B"])
    m.revolute("C", coupler["C"], rocker["C"])
    m.revolute("D", m.ground.at(0.03, 0), rocker["D"])
    m.torque("motor", joint="A", law=0.01)
    m.trace(coupler["P"])
    return m


def plot_demo(andrews: Example, squeezer: Solution, held: Solution, loose: Solution, file: Path) -> None:
    """The picture of the demo: Andrews' mechanism at a few instants, its angles, and a pendulum's drift with
    and without projection.
    """
    import numpy as np

    from holonome import plot

    assert andrews.drawing is not None
    with plot.house_style():
        figure = plot.new_figure(11.6, 5.08, shown=False)
        motion, angles, drift = figure.subplots(1, 3, width_ratios=[1.2, 1, 1])
        plot.plot_motion(squeezer, andrews.drawing, motion, instants=6)
        motion.set(xlabel="x [m]", ylabel="y [m]", title="Andrews' squeezing mechanism, pale to dark")
        plot.plot_positions(squeezer, angles, coordinates=["gamma", "phi", "delta", "epsilon"])
        angles.set(
            xlabel="time [s]", ylabel="angle [rad]", title=f"Four of its angles, {squeezer.steps} steps"
        )
        for solution, colour, label in (
            (loose, plot.COLOURS[1], "without projection"),
            (held, plot.COLOURS[0], "with projection"),
        ):
            so_far = np.maximum.accumulate(np.abs(np.hypot(*solution.q) - 1))
            drift.semilogy(
                solution.t, np.maximum(so_far, plot.SMALLEST), color=colour, linewidth=2.0, label=label
            )
        drift.set(
            xlabel="time [s]",
            ylabel="largest error of its length so far [m]",
            title="A pendulum's rod of 1 m",
            ylim=(1e-17, 1),
        )
        drift.legend(loc="center right")
        figure.savefig(file, dpi=138)


def _length(metres: float) -> str:
    if metres >= 1e-2:
        return f"{metres * 100:.2g} cm"
    return f"{metres * 1e3:.2g} mm" if metres >= 1e-4 else f"{metres:.1e} m"

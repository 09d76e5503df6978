"""Smooth motion of stiff systems: steps and error against the stiffness, for every method that claims to be
insensitive to it.

    python benchmarks/smooth_motion.py [--out FILE] [--image FILE] [--quick]

Each problem has elastic elements with stiffness 1/ε² or 1/ε.  The error is the largest distance of a step
from the slow motion.  That is known in closed form (driven); it is the rest in the equilibrium, of which only
the end is looked at (spring, anisotropic); or it comes from a run that resolves everything, started on the
slow motion (bushings, ε ≥ 1e-3), or from the rigid limit, from which it differs by O(ε²).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table

import holonome as hn
from harness.options import Options
from harness.tables import write_rows

STIFFNESS = [10.0**-k for k in range(2, 11)]
TOLERANCES = [1e-3, 1e-4, 1e-6]
MOST_STEPS = 20_000
IMAGE = Path(__file__).parents[1] / "docs" / "images" / "smooth_motion.png"


@dataclass(frozen=True)
class Problem:
    """A stiff system on its slow motion, or started off it; ``slow`` gives the slow motion, ``rigid`` the
    system for ε = 0.
    """

    system: hn.System
    t_end: float
    q0: np.ndarray
    v0: np.ndarray
    slow: Callable[[np.ndarray], np.ndarray]
    rigid: hn.System | None = None
    at_end_only: bool = False


def _circle(q):
    return (q @ q - 1) / 2


def spring(eps: float) -> Problem:
    """Table 5.2 of Yen & Petzold: the oscillation has to die out; the slow motion is the rest at (0, −1)."""
    element = hn.Elastic(lambda q: np.sqrt(q[0] ** 2 + (q[1] + 0.5) ** 2) - 0.4, lambda p: p.k)
    system = hn.System(np.ones(2), [0.0, -1.0], _circle, elastic=element, parameters={"k": 1 / eps**2})
    start = hn.mechanisms.stiff_spring(eps=eps)
    return Problem(system, 0.05, start.q0, start.v0, _at_the_bottom, at_end_only=True)


def anisotropic(eps: float) -> Problem:
    """A point on the circle, held with 1/ε across and 1/ε² along the radius of the lowest point; started 10°
    off it.
    """
    system = hn.System(
        np.ones(2),
        [0.0, -1.0],
        _circle,
        elastic=hn.Elastic(lambda q: q - np.array([0.0, -1.0]), lambda p: p.k),
        parameters={"k": np.array([1 / eps, 1 / eps**2])},
    )
    angle = np.deg2rad(10)
    return Problem(
        system, 10.0, np.array([np.sin(angle), -np.cos(angle)]), np.zeros(2), _at_the_bottom, at_end_only=True
    )


def _at_the_bottom(t):
    return np.outer([0.0, -1.0], np.ones_like(t))


def _from_guide(t, q):
    """Where the point is, seen from b0(t) = (sin t, −cos t): along the normal and along the tangent."""
    x, y = q[0] - np.sin(t), q[1] + np.cos(t)
    return np.array([np.sin(t) * x - np.cos(t) * y, np.cos(t) * x + np.sin(t) * y])


def driven(eps: float) -> Problem:
    """A point on the circle, drawn along it by b0(t) with 1/ε² along the normal and 1/ε along the tangent; q
    = b0(t) is a solution.
    """
    system = hn.System(
        np.ones(2),
        constraint=_circle,
        elastic=hn.Elastic(_from_guide, lambda p: p.k),
        parameters={"k": np.array([1 / eps**2, 1 / eps])},
    )
    rigid = hn.System(np.ones(2), np.zeros(2), lambda t, q: np.array([_circle(q), _from_guide(t, q)[1]]))
    return Problem(
        system,
        10.0,
        np.array([0.0, -1.0]),
        np.array([1.0, 0.0]),
        lambda t: np.array([np.sin(t), -np.cos(t)]),
        rigid,
    )


ROD = {"mass": [1.0, 1.0, 1 / 12], "force": [0.0, -9.81, 0.0], "names": ["x", "y", "angle"]}


def _end_of_rod(q):
    return np.array([q[0] - np.sin(q[2]) / 2, q[1] + np.cos(q[2]) / 2])


def _in_frame_of_rod(q):
    x, y = _end_of_rod(q)
    return np.array([np.cos(q[2]) * x + np.sin(q[2]) * y, np.cos(q[2]) * y - np.sin(q[2]) * x])


def bushing(eps: float, deformation: Callable = _end_of_rod) -> Problem:
    """A swinging rod whose end is held by a bushing with k_x = 10 k_y = 1/ε²; its frame is fixed in space or
    turns with the rod.
    """
    k, start = np.array([1.0, 0.1]) / eps**2, np.array([np.sin(1.0) / 2, -np.cos(1.0) / 2, 1.0])
    system = hn.System(**ROD, elastic=hn.Elastic(deformation, lambda p: p.k), parameters={"k": k})
    rigid = hn.System(**ROD, constraint=deformation)
    loads = hn.consistent(rigid, start).lam / k
    relaxed = hn.consistent(
        hn.System(**ROD, constraint=lambda q, p: deformation(q) - p.loads, parameters={"loads": loads}),
        start,
        repair=True,
    ).q
    resolved = eps >= 1e-3
    reference = hn.solve(
        system if resolved else rigid,
        (0, 5),
        relaxed if resolved else start,
        method="dop853",
        rtol=1e-10,
        atol=1e-12,
        dense_output=True,
    )
    return Problem(system, 5.0, relaxed, np.zeros(3), lambda t: reference.sol(t)[0], rigid)


def turning_bushing(eps: float) -> Problem:
    return bushing(eps, _in_frame_of_rod)


PROBLEMS = [spring, anisotropic, driven, bushing, turning_bushing]


def methods() -> dict[str, hn.Method]:
    """All of order two at most, with an error test on positions; those that this version does not have are
    left out.
    """
    found = {
        "GGL": hn.Method(hn.GGL(error_test="q"), hn.BDF(max_order=2)),
        "GGL*": hn.Method(hn.GGL(error_test="q", predict_multipliers=True), hn.BDF.dassl(max_order=2)),
        "compliant": hn.Method(hn.Compliant(), hn.BDF(max_order=2)),
        "compliant, order 5": hn.Method(hn.Compliant(), hn.BDF(max_order=5)),
    }
    if hasattr(hn, "CoordinateSplit"):
        found |= {
            name: hn.Method(hn.CoordinateSplit(name, error_test="x"), hn.BDF.dassl(max_order=2))
            for name in ("CS", "CM")
        }
    return found


def measure(problem: Problem, method: hn.Method, tolerance: float, rigid: bool = False) -> dict[str, object]:
    """One run: what it took, and how far it is from the slow motion."""
    system = problem.system if not rigid else problem.rigid
    try:
        q0 = problem.q0 if not rigid else hn.consistent(system, problem.q0, repair=True).q
        sol = hn.solve(
            system,
            (0, problem.t_end),
            q0,
            problem.v0,
            method=method,
            rtol=tolerance,
            atol=tolerance,
            max_steps=MOST_STEPS,
        )
    except hn.HolonomeError:
        return {
            "steps": 0,
            "evaluations": 0,
            "matrices": 0,
            "rejected": 0,
            "error": np.nan,
            "finished": False,
        }
    distance = np.max(np.abs(sol.q - problem.slow(sol.t)), axis=0)
    return {
        "steps": sol.t.size - 1,
        "evaluations": sol.nfev,
        "matrices": sol.njev,
        "rejected": len(sol.history.rejected),
        "error": float(distance[-1] if problem.at_end_only else np.max(distance)),
        "finished": sol.success,
    }


def study(stiffness: list[float], tolerances: list[float]) -> list[dict[str, object]]:
    rows, chosen = [], methods()
    for make in PROBLEMS:
        for eps in stiffness:
            problem = make(eps)
            for tolerance in tolerances:
                runs = {name: measure(problem, method, tolerance) for name, method in chosen.items()}
                if problem.rigid is not None and eps == stiffness[-1]:
                    runs["rigid limit"] = measure(problem, chosen["GGL"], tolerance, rigid=True)
                rows += [
                    {
                        "problem": make.__name__,
                        "tolerance": tolerance,
                        "eps": 0.0 if name == "rigid limit" else eps,
                        "method": name,
                    }
                    | result
                    for name, result in runs.items()
                ]
    return rows


def draw(rows: list[dict[str, object]], file: Path, tolerance: float = 1e-4) -> None:
    """Steps and error against ε, one column a problem; a hollow mark is a run that did not reach the end,
    whose error is not shown.
    """
    names = list(dict.fromkeys(row["method"] for row in rows if row["method"] != "rigid limit"))
    figure, axes = plt.subplots(
        2, len(PROBLEMS), figsize=(3.1 * len(PROBLEMS), 5.4), sharex=True, layout="constrained"
    )
    for column, make in enumerate(PROBLEMS):
        here = [row for row in rows if row["problem"] == make.__name__ and row["tolerance"] == tolerance]
        for axis, quantity in zip(axes[:, column], ("steps", "error"), strict=True):
            for number, name in enumerate(names):
                runs = [row for row in here if row["method"] == name and row["steps"]]
                x, y, done = (np.array([row[key] for row in runs]) for key in ("eps", quantity, "finished"))
                if quantity == "error":
                    y = np.where(done, np.maximum(y, 1e-9), np.nan)
                axis.loglog(x, y, color=f"C{number}", lw=2.5 if name == "compliant" else 1, label=name)
                axis.loglog(x[done], y[done], "o", color=f"C{number}", ms=4)
                axis.loglog(x[~done], y[~done], "o", color=f"C{number}", ms=4, mfc="white")
            for row in here:
                if row["method"] == "rigid limit" and quantity == "steps":
                    axis.axhline(row["steps"], color="0.6", lw=1, ls="--", label="rigid limit (GGL)")
            axis.grid(alpha=0.3)
        axes[0, column].set_title(make.__name__.replace("_", " "))
        axes[1, column].set_xlabel("ε")
        axes[1, column].axhline(tolerance, color="0.6", lw=1, ls=":")
        axes[1, column].invert_xaxis()
        axes[1, column].set_ylim(5e-10, 1e3)
    axes[0, 0].set_ylabel("steps")
    axes[1, 0].set_ylabel("error of q")
    figure.legend(*axes[0, 2].get_legend_handles_labels(), loc="outside lower center", ncols=len(names) + 1)
    figure.suptitle(f"Smooth motion at tolerance {tolerance:g}")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def show(rows: list[dict[str, object]]) -> None:
    chosen = [1e-2, 1e-4, 1e-6, 1e-8, 1e-10]
    table = Table(
        "problem",
        "tolerance",
        "method",
        *(f"ε = {eps:g}" for eps in chosen),
        title="steps (error); * did not reach the end",
    )
    for make in PROBLEMS:
        for tolerance in TOLERANCES:
            here = [row for row in rows if row["problem"] == make.__name__ and row["tolerance"] == tolerance]
            for name in dict.fromkeys(row["method"] for row in here):
                runs = {row["eps"]: row for row in here if row["method"] == name}
                cells = [runs.get(0.0 if name == "rigid limit" else eps) for eps in chosen]
                table.add_row(
                    make.__name__,
                    f"{tolerance:g}",
                    name,
                    *(
                        f"{run['steps']}{'' if run['finished'] else '*'} ({run['error']:.0e})"
                        for run in cells
                        if run
                    ),
                )
    Console(width=180).print(table)


def main() -> None:
    parser = Options(__doc__, "smooth_motion.csv")
    parser.add_argument("--image", type=Path, help="where the picture goes")
    arguments = parser.given()
    image = arguments.image or (arguments.out.with_suffix(".png") if arguments.quick else IMAGE)
    rows = study(STIFFNESS[:1], [1e-4]) if arguments.quick else study(STIFFNESS, TOLERANCES)
    write_rows(arguments.out, [row | {"error": f"{row['error']:.3e}"} for row in rows])
    draw(rows, image)
    show(rows)


if __name__ == "__main__":
    main()

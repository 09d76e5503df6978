"""Quantities over time: coordinates, states, multipliers, joint forces, drift, energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.dynamics.kernels import kernels, over_points
from holonome.plot.style import (
    SMALLEST,
    legend,
    one,
    sentence,
    sizes,
    smooth,
    smooth_positions,
    styled,
    symbol,
    theme,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.problem.system import System
    from holonome.results.solution import Solution

_MOST_LINES = 8
_FORCE_POINTS = 600
_NOT_CONSERVED = 1e-4
"""A change of energy above this fraction of the power exchanged between kinetic and potential energy counts.
"""


@styled
def plot_positions(
    solution: Solution, axes: Axes | None = None, coordinates: Sequence[str] | None = None
) -> Axes:
    """Positions over time: those named, else all of them, else those that move most."""
    return _curves(
        one(axes), *smooth_positions(solution), solution.system.names, "coordinates", coordinates, "positions"
    )


@styled
def plot_velocities(
    solution: Solution, axes: Axes | None = None, coordinates: Sequence[str] | None = None
) -> Axes:
    """Velocities over time: those named, else all of them, else those that change most."""
    t, v = smooth(solution, solution.v, lambda: solution.a)
    return _curves(
        one(axes), t, v, solution.system.names, "coordinates", coordinates, "velocities", prime="′"
    )


@styled
def plot_states(solution: Solution, axes: Axes | None = None, states: Sequence[str] | None = None) -> Axes:
    """First-order states over time, or the components of an ODE."""
    system = solution.system
    if not system.states:
        raise ValueError(f"solution: system {system.name!r} has no first-order states")
    t, s = smooth(solution, solution.s, lambda: solution.rates[system.n :])
    return _curves(
        one(axes), t, s, list(system.states), "states", states, "states" if system.n else "components"
    )


@styled
def plot_inputs(solution: Solution, axes: Axes | None = None, inputs: Sequence[str] | None = None) -> Axes:
    """Inputs over time, as stairs that jump where a controller or an event has set them: those named, else
    all of them.
    """
    system, axes = solution.system, one(axes)
    if not system.inputs:
        raise ValueError(f"solution: system {system.name!r} has no inputs")
    names = list(system.inputs)
    end = solution.t[-1:]
    for k in _places("inputs", inputs, names):
        stairs = solution.inputs[names[k]]
        rows = stairs.values.reshape(-1, stairs.t.size)
        for number, row in enumerate(rows):
            label = symbol(names[k]) if len(rows) == 1 else f"{names[k]}[{number}]"
            axes.plot(np.append(stairs.t, end), np.append(row, row[-1:]), drawstyle="steps-post", label=label)
    axes.set(xlabel="time t", ylabel="u", title="Inputs")
    legend(axes)
    return axes


@styled
def plot_multipliers(
    solution: Solution, axes: Axes | None = None, constraints: Sequence[str] | None = None
) -> Axes:
    """Multipliers λ over time, labelled by their constraints: those named, else all of them, else those that
    change most.
    """
    system = solution.system
    if not system.m:
        raise ValueError(f"solution: system {system.name!r} has no constraints, so no multipliers")
    axes = _curves(
        one(axes),
        solution.t,
        solution.lam,
        system.constraint_names,
        "constraints",
        constraints,
        "multipliers",
    )
    axes.set_ylabel("λ")
    if solution.start is not None and solution.start.redundant:
        axes.set_title("Multipliers (rows are redundant: not unique)")
    return axes


@styled
def plot_joint_forces(
    solution: Solution,
    axes: Axes | None = None,
    coordinates: Sequence[str] | None = None,
    constraints: Sequence[str] | None = None,
) -> Axes:
    """The force of each constraint on each coordinate, −G_ji λ_j: a force, or a torque where the coordinate
    is an angle.  All of them, or those that change most; ``coordinates`` and ``constraints``
    choose.
    """
    system = solution.system
    if not system.m:
        raise ValueError(f"solution: system {system.name!r} has no constraints, so no forces of joints")
    chosen = (
        np.unique(np.linspace(0, solution.t.size - 1, min(_FORCE_POINTS, solution.t.size)).astype(int))
        if solution.t.size
        else np.zeros(0, int)
    )
    rows = _places("constraints", constraints, system.constraint_names)
    columns = _places("coordinates", coordinates, system.names)
    forces = np.full((chosen.size, len(rows), len(columns)), np.nan)
    for force, k in zip(forces, chosen, strict=True):
        pieces = saddle_point(system, solution.t[k], solution.states[k])
        if pieces is not None:
            force[:] = -(pieces[1] * solution.lam[:, k, None])[np.ix_(rows, columns)]
    acting = np.argwhere(np.any(np.nan_to_num(forces) != 0, axis=0))
    names = [
        f"{system.constraint_names[rows[j]]} on {symbol(system.names[columns[i]])}"
        for j, i in acting.tolist()
    ]
    axes = _curves(
        one(axes),
        solution.t[chosen],
        forces[:, acting[:, 0], acting[:, 1]].T,
        names,
        "coordinates",
        None,
        "forces of the constraints",
    )
    axes.set_ylabel("−Gᵢⱼ λᵢ")
    return axes


@styled
def plot_joints(
    solution: Solution,
    joints: Sequence[str] | None = None,
    axes: Axes | None = None,
    *,
    rates: bool = False,
) -> Axes:
    """Angles and displacements of joints of a :class:`holonome.Mechanism` over time, or their rates: those of
    the joints named, else of all of them.
    """
    named = _joints(solution, joints)
    curves: dict[str, np.ndarray] = {}
    for name in named:
        motion = solution.joint(name)
        found = motion.rates if rates else motion.values
        curves |= {
            f"{name} {key}" if len(found) > 1 else name: values
            for key, values in found.items()
            if motion.kinds[key] != "quaternion" or joints is not None
        }
    if not curves:
        raise ValueError(f"joints: {', '.join(named) or 'none'}: no angle and no displacement")
    return _named_curves(one(axes), solution, curves, "rates of joints" if rates else "joints")


@styled
def plot_reactions(
    solution: Solution,
    joints: Sequence[str] | None = None,
    axes: Axes | None = None,
    *,
    moments: bool = False,
    size: bool = False,
) -> Axes:
    """Reaction forces in joints of a :class:`holonome.Mechanism` over time, or their moments: by components
    in the axes of the ground, or only their sizes; of the joints named, else of all of them.
    """
    curves: dict[str, np.ndarray] = {}
    what = "moment" if moments else "force"
    open_ones = []
    for name in _joints(solution, joints):
        found = solution.reaction(name)
        values = np.atleast_2d(found.moment if moments else found.force)
        label = name if found.determined else f"{name} (one of many)"
        open_ones += [] if found.determined else [name]
        if size or len(values) == 1:
            curves[label] = np.linalg.norm(values, axis=0) if size else values[0]
        else:
            curves |= {f"{label} {axis}": row for axis, row in zip("xyz", values, strict=False)}
    axes = _named_curves(one(axes), solution, curves, f"reaction {what}s")
    if open_ones:
        axes.set_title(f"Reaction {what}s (not determined in {', '.join(open_ones[:3])})")
    return axes


def _joints(solution: Solution, wanted: Sequence[str] | None) -> list[str]:
    """The names of joints, which must be there."""
    there = getattr(solution.system, "joints", None)
    if there is None:
        raise ValueError(
            f"solution: {solution.system.name!r} has no joints by name, as the run of an hn.Mechanism has"
        )
    known = [name for name, joint in there.items() if joint.what != "free"]
    names = [wanted] if isinstance(wanted, str) else list(known if wanted is None else wanted)
    for name in names:
        if name not in known:
            raise ValueError(f"joints: {name!r} is not one of {', '.join(known)}")
    return names


def _named_curves(axes: Axes, solution: Solution, curves: dict[str, np.ndarray], what: str) -> Axes:
    colours = theme().colours
    for k, (label, values) in enumerate(curves.items()):
        style = ["-", "--", ":"][k // len(colours) % 3]
        axes.plot(solution.t, values, style, color=colours[k % len(colours)], label=label)
    axes.set(xlabel="time t", ylabel=what, title=sentence(what))
    legend(axes)
    return axes


def _places(argument: str, wanted: Sequence[str] | None, names: Sequence[str]) -> list[int]:
    """Where the wanted names stand; None wants all."""
    for name in wanted or ():
        if name not in names:
            raise ValueError(f"{argument}: {name!r} is not one of {', '.join(names)}")
    return [names.index(name) for name in (names if wanted is None else wanted)]


def saddle_point(system: System, t: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """M and G, with the rows of velocity constraints, at one point; None if their evaluation fails."""
    found = kernels(system)
    pieces = found.evaluate_pieces(found.context(system), float(t), np.ascontiguousarray(y))
    return None if pieces is None else (pieces["M"], pieces["C"])


@styled
def plot_drift(solution: Solution, axes: Axes | None = None) -> Axes:
    """Residuals of constraints and invariants and, if the system conserves it, the change of energy, on a
    logarithmic axis.
    """
    axes = one(axes)
    colours = theme().colours
    held = []
    if solution.g.size:
        axes.semilogy(*sizes(solution.t, solution.g), color=colours[0], label="|g|  position")
        held.append(f"|g| ≤ {solution.drift[0]:{'.0e' if solution.drift[0] else 'g'}}")
    if solution.gv.size:
        axes.semilogy(*sizes(solution.t, solution.gv), color=colours[1], label="|Gv|  velocity")
        held.append(f"|Gv| ≤ {solution.drift[1]:{'.0e' if solution.drift[1] else 'g'}}")
    if solution.invariant.size:
        axes.semilogy(
            *sizes(solution.t, solution.invariant - solution.invariant[:, :1]),
            color=colours[3],
            label="|I − I₀|  invariants",
        )
    if solution.energy is not None and conserves_energy(solution):
        axes.semilogy(
            *sizes(solution.t[1:], (solution.energy - solution.energy[0])[1:]),
            color=colours[2],
            label="|E − E₀|  energy",
        )
    if axes.lines:
        axes.set_ylim(SMALLEST / 2, max(axes.get_ylim()[1], 1e-12))
        legend(axes)
    else:
        note = "there are no conserved quantities"
        axes.text(0.5, 0.5, note, transform=axes.transAxes, ha="center", color=theme().frame)
    axes.set(xlabel="time t", ylabel="deviation")
    axes.set_title("Constraints: " + ", ".join(held) if held else "Conserved quantities")
    return axes


@styled
def plot_energy(solution: Solution, axes: Axes | None = None) -> Axes:
    """Energy over time: its change if the system conserves it, else the energy itself."""
    if solution.energy is None:
        raise ValueError(
            f"solution: system {solution.system.name!r} has no potential, so its energy is not known; give "
            "potential=... to System"
        )
    axes, change = one(axes), solution.energy - solution.energy[:1]
    if conserves_energy(solution):
        axes.axhline(0.0, color=theme().frame, linewidth=0.8)
        axes.plot(solution.t, change)
        axes.set(
            xlabel="time t",
            ylabel="E − E₀",
            title=f"Energy changes by at most {np.max(np.abs(change), initial=0.0):.1e}",
        )
    else:
        axes.plot(solution.t, solution.energy)
        axes.set(
            xlabel="time t",
            ylabel="E",
            title="Energy, "
            + (f"{solution.energy[0]:.4g} → {solution.energy[-1]:.4g}" if solution.t.size else "no points"),
        )
    return axes


def conserves_energy(solution: Solution) -> bool:
    """Whether the system conserves its energy: E′ along q′ = v, v′ = a, by finite differences, is small
    compared with the power exchanged between kinetic and potential energy.
    """
    t, n, size = solution.t, solution.system.n, solution.system.state_size
    if solution.energy is None or t.size < 2:
        return False
    k = np.unique(np.linspace(0, t.size - 1, 40).astype(int))
    states, rates = np.ascontiguousarray(solution.states[k, :size]), np.zeros((k.size, size))
    rates[:, :n] = states[:, n : 2 * n]
    rates[:, n:] = solution.rates[:, k].T
    speed = np.max(np.abs(rates[:, :n]), initial=0.0)
    acceleration = np.max(np.abs(rates[:, n : 2 * n]), initial=0.0)
    h = 1e-4 * min(speed / acceleration if acceleration > 0 else np.inf, abs(t[-1] - t[0]))
    if not h > 0:
        return True
    position = np.where(np.arange(size) < n, rates, 0.0)
    velocity = np.where(np.arange(size) >= n, rates, 0.0)

    def power(direction: np.ndarray, time: float) -> np.ndarray:
        sides = [np.empty((k.size, 1)) for _ in range(2)]
        found = kernels(solution.system)
        for side, sign in zip(sides, (1, -1), strict=True):
            over_points(
                found.energy,
                0,
                found.context(solution.system),
                t[k] + sign * time * h,
                states + sign * h * direction,
                side,
                64 if solution.system.unknowns else 1,
            )
        return (sides[0] - sides[1])[:, 0] / (2 * h)

    # The constraint forces do work only because the constraints are not satisfied exactly.
    drift = np.sum(solution.lam[:, k] * solution.gv[:, k], axis=0)
    gained = power(rates, 1.0) + drift
    exchanged = np.abs(power(position, 0.0)) + np.abs(power(velocity, 0.0))
    return bool(np.max(np.abs(gained)) <= _NOT_CONSERVED * np.max(exchanged, initial=1e-300))


def _curves(
    axes: Axes,
    t: np.ndarray,
    values: np.ndarray,
    names: Sequence[str],
    argument: str,
    wanted: Sequence[str] | None,
    what: str,
    prime: str = "",
) -> Axes:
    """Rows of an array over time: those wanted, else all of them, else those that change most."""
    if wanted is not None:
        rows = _places(argument, wanted, names)
    elif len(names) <= _MOST_LINES or not t.size:
        rows = list(range(len(names)))[:_MOST_LINES]
    else:
        rows = sorted(np.argsort(-np.ptp(values, axis=1), kind="stable")[: _MOST_LINES - 2])
    colours = theme().colours
    for k, row in enumerate(rows):
        axes.plot(
            t,
            values[row],
            ["-", "--"][k // len(colours) % 2],
            color=colours[k % len(colours)],
            label=symbol(names[row]) + prime,
        )
    axes.set(xlabel="time t", ylabel=what[:-1] if len(rows) == 1 and what.endswith("s") else what)
    axes.set_title(
        f"{sentence(what)}: {len(rows)} of {len(names)}" if len(rows) < len(names) else sentence(what)
    )
    legend(axes)
    return axes

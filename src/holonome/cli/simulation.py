"""Run the subject of a command, and summarize the result."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from holonome.cli.app import FAILED, INTERRUPTED, fail
from holonome.cli.printing import duration, working
from holonome.cli.subject import Subject
from holonome.integrators.bdf import BDF
from holonome.mechanisms.example import Example
from holonome.results.solution import Solution
from holonome.results.summary import count
from holonome.solving.methods import Method, resolve
from holonome.solving.solve import solve

PICTURES = (".png", ".svg", ".pdf")
DATA = (".csv", ".npz", ".nc")
_FEW = 100_000
"""Evaluations that take less than a second, so that a run which took longer has spent the time on loading."""


@dataclass(frozen=True, eq=False)
class Done:
    """A finished run: the mechanism, its solution, and how long the first and a second computation took; NaN
    for a result that was saved.
    """

    mechanism: Example
    solution: Solution
    first: float = math.nan
    seconds: float = math.nan


def simulate(subject: Subject, **options: Any) -> Done:
    """Run it; short runs are repeated, so that the time does not include loading."""
    mechanism = subject.mechanism

    def once() -> tuple[float, Solution]:
        with working("simulating") as progress:
            begin = time.perf_counter()
            solution = solve(
                mechanism.system,
                mechanism.t_span,
                mechanism.q0,
                mechanism.v0,
                progress=progress,
                **subject.further,
                **options,
            )
            return time.perf_counter() - begin, solution

    first, solution = once()
    seconds = once()[0] if solution.success and (first < 1.0 or solution.nfev < _FEW) else first
    return Done(mechanism, solution, first, seconds)


def with_order(method: str, max_order: int | None) -> str | Method:
    """A method with limited order; only methods with BDF have this option."""
    if max_order is None:
        return method
    chosen = resolve(method)[1]
    if method == "auto" or not isinstance(chosen.integrator, BDF):
        raise ValueError(
            f"--max-order: {method} has no order to choose; use a method with BDF, such as bdf or ggl"
        )
    return replace(chosen, integrator=replace(chosen.integrator, max_order=max_order))


def stop_if_failed(solution: Solution) -> None:
    """Exit with an error code if the run failed."""
    if not solution.success:
        fail(solution.message, INTERRUPTED if solution.message.startswith("interrupted") else FAILED)


def targets(paths: list[Path], name: str, endings: tuple[str, ...] = PICTURES + DATA) -> list[Path]:
    """The files to write; a folder gets a picture and a table."""
    files = []
    for path in paths:
        if path.is_dir() or not path.suffix:
            files += [path / f"{name}.png", path / f"{name}.csv"]
        elif path.suffix in endings:
            files.append(path)
        else:
            raise ValueError(
                f"--out: {str(path)!r} ends in {path.suffix!r}; use {', '.join(endings)} or a folder"
            )
    return files


def relative(found: np.ndarray, expected: np.ndarray | None) -> float:
    """Largest error relative to the largest value."""
    if expected is None:
        return math.nan
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


def error(done: Done) -> tuple[float, str] | None:
    """Largest relative error of the positions, and the reference in words."""
    mechanism, solution = done.mechanism, done.solution
    if mechanism.exact is not None and solution.t.size:
        return relative(solution.q, mechanism.exact(solution.t)[0]), "the exact solution"
    reference = mechanism.reference
    if reference is None or reference.q is None or not solution.t.size or solution.t[-1] != reference.t:
        return None
    source = f"the reference at t = {reference.t:g} ({reference.digits} digits)"
    return relative(solution.q[:, -1], reference.q), source


def rows(done: Done) -> list[tuple[str, str]]:
    """The summary of a run, as (heading, text)."""
    solution, system = done.solution, done.solution.system
    told = [
        ("system", system.sizes_in_words),
        (
            "time",
            f"{solution.t[0]:.6g} … {solution.t[-1]:.6g}, {count(solution.t.size, 'point')}"
            if solution.t.size
            else "no points",
        ),
        ("method", f"{solution.method}, rtol {solution.rtol:g}"),
        ("steps", f"{solution.steps}, {solution.rejections} rejected, {count(solution.nfev, 'evaluation')}"),
    ]
    if not math.isnan(done.seconds):
        also = (
            f" (second run; first {duration(done.first)}, with loading)"
            if done.first > 2 * done.seconds
            else ""
        )
        told.append(("speed", f"{duration(done.seconds)} of computing{also}"))
    if system.m:
        told.append(("constraints", f"hold to {solution.drift_in_words}"))
    if solution.energy is not None and solution.t.size:
        told.append(("energy", solution.energy_in_words))
    found = error(done)
    if found:
        told.append(("error", f"{found[0]:.1e}, relative to {found[1]}"))
    if solution.success and solution.message != "the end was reached":
        told.append(("note", solution.message))
    return told


def as_dict(done: Done, files: list[Path]) -> dict[str, Any]:
    """The summary of a run for JSON, with the final state."""
    solution, system = done.solution, done.solution.system
    found, known, change = error(done), solution.energy, solution.energy_change
    final, energy = {}, None
    if known is not None and known.size:
        energy = {"initial": float(known[0]), "change": None if math.isnan(change) else change}
    if solution.t.size:
        named = {
            "q": (system.names, solution.q),
            "v": (system.names, solution.v),
            "lam": (system.constraint_names, solution.lam),
            "s": (list(system.states), solution.s),
            "w": (list(system.unknowns), solution.w),
        }
        final = {"t": float(solution.t[-1])} | {
            key: dict(zip(names, values[:, -1].tolist(), strict=True))
            for key, (names, values) in named.items()
            if names or key in "qv"
        }
    return {
        "mechanism": done.mechanism.name,
        "coordinates": system.n,
        "constraints": system.m,
        "parameters": {name: np.asarray(value).tolist() for name, value in system.parameters.items()},
        "success": solution.success,
        "status": solution.status,
        "message": solution.message,
        "method": solution.method,
        "rtol": solution.rtol,
        "points": int(solution.t.size),
        "steps": solution.steps,
        "rejections": solution.rejections,
        "nfev": solution.nfev,
        "seconds": done.seconds,
        "first_seconds": done.first,
        "drift": dict(zip(("g", "gv"), solution.drift, strict=True)),
        "energy": energy,
        "error": None if found is None else dict(zip(("relative", "against"), found, strict=True)),
        "final": final,
        "files": [str(file) for file in files],
    }

"""A cell of the matrix: a kind of system and a method, and the checks that options are made of."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

import holonome as hn
from conformance.kinds import KINDS, Problem
from conformance.methods import PROMISES, RESIDUALS, RTOL, Promise, Subject


class Refused(Exception):
    """The run was refused, in good order."""


class Stopped(Exception):
    """The run ended on the way, and said so."""


@cache
def problem_of(kind: str) -> Problem:
    return KINDS[kind]()


@dataclass(eq=False)
class Cell:
    """A method on a kind of system."""

    kind: str
    subject: Subject
    bounds: dict[str, float] = field(default_factory=dict)
    """The largest error seen, in units of what is allowed; for the curious."""

    @cached_property
    def problem(self) -> Problem:
        return problem_of(self.kind)

    @property
    def promise(self) -> Promise:
        """What the method promises; for general problems of index 2 and 3 every method is SRM."""
        return PROMISES[hn.SRM](None) if self.problem.higher_index else self.subject.promise

    # Runs

    @property
    def given(self) -> dict[str, Any]:
        """What tells ``solve`` to take the method."""
        constant = {"step": self.problem.t_end / self.problem.steps} if self.subject.fixed_step else {}
        return constant | self.subject.arguments

    def attempt(self, problem: Problem | None = None, **further: Any) -> Any:
        """A run, which may fail; one that is refused must be refused in good order."""
        task = problem or self.problem
        arguments = {
            "t_span": (0.0, task.t_end),
            "q0": task.q0,
            "v0": task.v0,
            "max_steps": 5000,
            "rtol": RTOL,
            "atol": task.atol,
        }
        try:
            return hn.solve(task.system, **(arguments | self.given | further))
        except (hn.HolonomeError, ValueError, TypeError) as error:
            check_words(error)
            raise Refused(f"{type(error).__name__}: {error}") from error

    def solve(self, problem: Problem | None = None, **further: Any) -> Any:
        """A run that must reach its end."""
        sol = self.attempt(problem, **further)
        if not sol.success:
            assert sol.message, "fails without a word"
            self.check_shapes(sol)
            raise Stopped(sol.message)
        return sol

    def simulator(self) -> hn.Simulator:
        """A simulator at the start of the problem."""
        task = self.problem
        given = {"max_steps": 5000, "rtol": RTOL, "atol": task.atol} | self.given
        try:
            return hn.Simulator(task.system, task.q0, task.v0, **given)
        except (hn.HolonomeError, ValueError, TypeError) as error:
            check_words(error)
            raise Refused(f"{type(error).__name__}: {error}") from error

    def advance(self, sim: hn.Simulator, t: float) -> None:
        try:
            sim.advance_to(t)
        except hn.StepFailed as error:
            raise Stopped(str(error)) from error

    def state(self, sim: hn.Simulator) -> dict[str, np.ndarray]:
        return {part: getattr(sim, part) for part in self.parts}

    def refuses(self, **further: Any) -> bool:
        """Whether a run does not even start."""
        try:
            self.attempt(**further)
        except Refused:
            return True
        return False

    def shifted(self, argument: str) -> np.ndarray:
        """The start moved off the constraints."""
        task = self.problem
        given, off = (task.q0, task.off_q) if argument == "q0" else (task.v0, task.off_v)
        return np.asarray(off) + (0.0 if given is None else np.asarray(given))

    def end(self, sol: Any) -> dict[str, Any]:
        """The last point as a start; where a run that drifts has ended, that must be repaired."""
        system = self.problem.system
        if isinstance(system, (hn.ODE, hn.Index2System)):
            return {"q0": sol.x[:, -1]}
        if isinstance(system, hn.Index3System):
            return {"q0": sol.x[:, -1], "v0": sol.v[:, -1]}
        states = {"s0": sol.s[:, -1]} if system.states else {}
        unknowns = {"w0": sol.w[:, -1]} if system.unknowns else {}
        return {"q0": sol.q[:, -1], "v0": sol.v[:, -1], "repair": bool(system.m)} | states | unknowns

    # What is known

    @property
    def parts(self) -> list[str]:
        """Names of the arrays that make up the motion."""
        system = self.problem.system
        if self.problem.higher_index:
            return ["x", "v"] if isinstance(system, hn.Index3System) else ["x"]
        if isinstance(system, hn.ODE):
            return ["x"]
        return ["q", "v", "s"] if system.states else ["q", "v"]

    @property
    def multipliers(self) -> str:
        return "y" if self.problem.higher_index else "lam"

    def reference(self, times: np.ndarray) -> dict[str, np.ndarray]:
        """The exact motion, by part, at increasing times."""
        if self.problem.exact is not None:
            values = [self.problem.exact(t) for t in times]
            return {part: np.array([value[part] for value in values]).T for part in values[0]}
        return reference_run(self.kind, tuple(times.tolist()))

    def residuals(self, sol: Any) -> tuple[np.ndarray, np.ndarray]:
        """Residuals of the constraints on the level of positions and of velocities, by point."""
        if self.problem.residual is not None:
            rows = [np.atleast_1d(self.problem.residual(t, x)) for t, x in zip(sol.t, sol.x.T, strict=True)]
            return np.array(rows).T, np.zeros((0, sol.t.size))
        return sol.g, sol.gv

    def distance(self, sol: Any) -> float:
        """How far stored points may be from the manifold, relative to the size of things."""
        rows = list(self.residuals(sol))
        if not self.problem.higher_index and sol.invariant.size:
            rows.append(sol.invariant - sol.invariant[:, :1])
        return max(np.max(np.abs(row), initial=0.0) for row in rows) / self.problem.size

    # Checks

    def check(self, sol: Any, times: float = 1.0) -> None:
        """Everything that must hold of any run; errors may be so many times larger than usual."""
        self.check_shapes(sol)
        self.check_constraints(sol)
        chosen = np.unique(np.linspace(0, sol.t.size - 1, 9).astype(int))
        chosen = chosen[np.append(True, np.diff(sol.t[chosen]) != 0)]
        order = chosen if sol.t[0] <= sol.t[-1] else chosen[::-1]
        parts = [*self.parts, *([self.multipliers] if self.problem.unique_multipliers else [])]
        found = {part: getattr(sol, part)[:, order] for part in parts}
        self.check_values(sol.t[order], found, times)

    def check_shapes(self, sol: Any) -> None:
        system = self.problem.system
        assert sol.t.ndim == 1
        assert np.all(np.isfinite(sol.t))
        states = len(getattr(system, "states", ()))
        sizes = {"q": system.n, "v": system.n, "s": states, "x": states or system.n}
        for part in self.parts:
            values = getattr(sol, part)
            expected = (sizes[part], sol.t.size)
            assert values.shape == expected, f"{part}: shape {values.shape}, expected {expected}"
            assert np.all(np.isfinite(values)), f"{part} is not finite"
        lam = getattr(sol, self.multipliers)
        assert lam.shape == (system.m, sol.t.size), f"{self.multipliers}: shape {lam.shape}"
        if sol.success:
            assert np.all(np.isfinite(lam)), f"{self.multipliers} is not finite"

    def check_constraints(self, sol: Any) -> None:
        """Residuals as small as the method promises."""
        kept_on = (self.promise.position, self.promise.velocity)
        levels = zip(("position", "velocity"), kept_on, self.residuals(sol), strict=True)
        for level, kept, rows in levels:
            size = self.problem.size
            if level == "velocity" and not self.problem.higher_index and rows.size:
                size *= max(1.0, np.max(np.abs(sol.v)) / np.max(np.abs(sol.q)))
            largest = float(np.max(np.abs(rows), initial=0.0)) / size
            self.note(f"{level} residual", largest / RESIDUALS[kept])
            assert largest <= RESIDUALS[kept], f"{level} constraints off by {largest:.1e}, promised to {kept}"

    def check_values(self, t: np.ndarray, found: dict[str, np.ndarray], times: float = 1.0) -> None:
        """Motion and multipliers against the reference."""
        exact = self.reference(t)
        for part, values in found.items():
            if not values.size:
                continue
            error = float(np.max(np.abs(values - exact[part]))) / self.scales[part]
            multiple = self.promise.multipliers if part == self.multipliers else self.promise.error
            allowed = times * multiple * RTOL
            self.note(f"error of {part}", error / allowed)
            assert error <= allowed, f"{part} is wrong by {error:.1e} of its size, allowed {allowed:.1e}"

    @cached_property
    def scales(self) -> dict[str, float]:
        """The largest value of each part of the exact motion."""
        values = self.reference(np.linspace(0, self.problem.t_end, 9))
        return {part: float(np.max(np.abs(array), initial=0.0)) for part, array in values.items()}

    def check_event(self, sol: Any) -> None:
        """Found once, where the reference has it."""
        times = sol.t_events[0]
        assert times.shape == (1,), f"found {times.size} times, at {times}"
        exact = event_time(self.kind)
        allowed = self.promise.error * RTOL * self.problem.t_end
        self.note("error of the event", abs(times[0] - exact) / allowed)
        assert abs(times[0] - exact) <= allowed, f"event at {times[0]:.9g}, expected {exact:.9g}"

    def dense(self, sol: Any, t: Any) -> dict[str, np.ndarray]:
        """What the dense output gives, by part."""
        values = sol.sol(t)
        values = values if isinstance(values, tuple) else (values,)
        return dict(zip(self.parts, values, strict=False))

    def check_dense(self, sol: Any, t: np.ndarray) -> None:
        found = self.dense(sol, t)
        for part, values in found.items():
            assert np.all(np.isfinite(values)), f"dense output: {part} is not finite"
        self.check_values(t, found)

    def note(self, what: str, size: float) -> None:
        self.bounds[what] = max(float(size), self.bounds.get(what, 0.0))


@cache
def reference_run(kind: str, times: tuple[float, ...]) -> dict[str, np.ndarray]:
    """By dop853 at the tightest tolerance."""
    sol = _fine(kind, t_eval=np.array(times))
    parts = ("x", "lam") if isinstance(problem_of(kind).system, hn.ODE) else ("q", "v", "s", "lam")
    return {part: getattr(sol, part) for part in parts}


def _fine(kind: str, **further: Any) -> Any:
    task = problem_of(kind)
    sol = hn.solve(
        task.system,
        (0.0, task.t_end),
        task.q0,
        task.v0,
        method="dop853",
        rtol=1e-12,
        atol=task.atol * 1e-5,
        **further,
    )
    assert sol.success, f"the reference fails: {sol.message}"
    return sol


@cache
def event_time(kind: str) -> float:
    """When the event of a problem happens."""
    task = problem_of(kind)
    if task.exact is None:
        return float(_fine(kind, events=task.event).t_events[0][0])
    return _bisected(lambda t: float(task.event(task.exact(t)["x"])), 0.0, task.t_end)


def _bisected(function: Any, low: float, high: float) -> float:
    rises = function(high) > 0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if (function(middle) > 0) == rises else (middle, high)
    return low


# Words of a refusal

WITH_ARGUMENTS = (hn.solve, hn.Simulator, hn.System, hn.ODE, hn.Index2System, hn.SRM, hn.BDF, hn.RungeKutta)
ARGUMENTS = {name for thing in WITH_ARGUMENTS for name in inspect.signature(thing).parameters}
ARGUMENTS = {name for name in ARGUMENTS if len(name) > 1} | {"SRM", "BDF", "RungeKutta", "x0", "f"}
REMEDY = re.compile(
    r"\b(use|give|pass|choose|leave|correct|raise|loosen|make|write|try|start|remove|needs?"
    r"|must|expected|wants?|may be|admissible|system has|alone|at t)\b",
    re.IGNORECASE,
)
"""Something to do, what there is instead, or where to look."""


def check_words(error: Exception) -> None:
    """A refusal names an argument, and what to do or where to look; it does not come from below."""
    text = str(error)
    shown = f"{type(error).__name__}: {text[:200]}"
    assert set(re.findall(r"\w+", text)) & ARGUMENTS, f"names no argument: {shown}"
    assert REMEDY.search(text), f"says nothing about what to do: {shown}"
    assert "casadi" not in text.lower(), f"comes from below: {shown}"

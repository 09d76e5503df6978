"""Options of ``solve``: one function each, which runs a cell and asserts what must hold.

A function asks for a run by ``cell.solve(...)``, which ends the cell if the run is refused or stops on the
way.  Where failing is the point it uses ``cell.attempt(...)`` or ``cell.refuses(...)``.
"""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import holonome as hn
from conformance.cells import Cell
from conformance.kinds import KINDS, Problem

OPTIONS: dict[str, Callable[[Cell], None]] = {}
NEEDS: dict[str, Callable[[Problem], bool]] = {}
"""For which problems an option makes sense."""

THREADED = ("pendulum", "unknowns", "large rope", "larger rope")
"""Kinds that four threads try; each method compiles everything anew there."""


def option(needs: Callable[[Problem], bool] = lambda problem: True) -> Callable[[Callable], Callable]:
    """Enter a function as an option, under its name, for the problems that it makes sense for."""

    def enter(check: Callable[[Cell], None]) -> Callable[[Cell], None]:
        name = check.__name__.replace("_", " ")
        OPTIONS[name] = check
        NEEDS[name] = needs
        return check

    return enter


def applies(cell: Cell, option: str) -> bool:
    """Whether there is such a cell: "smooth" is no method for general problems of index 2 and 3, nor one that
    takes a step at a time.
    """
    problem = cell.problem
    without_smooth = problem.higher_index or option == "simulator"
    return NEEDS[option](problem) and not (without_smooth and "motion" in cell.subject.arguments)


@option()
def plain(cell: Cell) -> None:
    sol = cell.solve()
    assert sol.status == 0
    assert sol.t[-1] == cell.problem.t_end, f"ends at {sol.t[-1]!r}"
    assert sol.t.size == sol.steps + 1, f"{sol.t.size} points of {sol.steps} steps"
    cell.check(sol)


@option()
def t_eval(cell: Cell) -> None:
    wanted = cell.problem.t_end * np.array([0.05, 0.3, 0.31, 0.77, 1.0])
    sol = cell.solve(t_eval=wanted)
    assert np.array_equal(sol.t, wanted), f"other times: {sol.t}"
    cell.check(sol)


@option()
def events(cell: Cell) -> None:
    sol = cell.solve(events=cell.problem.event)
    cell.check(sol)
    assert len(sol.t_events) == 1
    cell.check_event(sol)


@option()
def terminal_event(cell: Cell) -> None:
    sol = cell.solve(events=hn.Event(cell.problem.event, terminal=True))
    assert sol.status == 1, f"status {sol.status}: {sol.message}"
    assert sol.t[-1] == sol.t_events[0][-1], f"ends at {sol.t[-1]!r}, the event is at {sol.t_events[0]!r}"
    cell.check(sol)
    cell.check_event(sol)


@option()
def dense_output(cell: Cell) -> None:
    """Passes through the stored points; on the manifold, so it misses them by no more than they miss that."""
    sol = cell.solve(dense_output=True)
    off = cell.distance(sol)
    for k in range(0, sol.t.size, max(1, sol.t.size // 20)):
        for part, value in cell.dense(sol, sol.t[k]).items():
            stored = getattr(sol, part)[:, k]
            assert value.shape == stored.shape, f"{part}: shape {value.shape} instead of {stored.shape}"
            away = np.max(np.abs(value - stored)) / cell.scales[part]
            assert away <= 1e-9 + 2 * off, f"misses {part} at t[{k}] = {sol.t[k]:.6g} by {away:.1e}"
    between = cell.problem.t_end * np.array([0.111, 0.333, 0.5, 0.888])
    cell.check_dense(sol, between)


@option()
def backward(cell: Cell) -> None:
    forward = cell.solve()
    sol = cell.solve(t_span=(cell.problem.t_end, 0.0), **cell.end(forward))
    assert sol.t[0] == cell.problem.t_end
    assert sol.t[-1] == 0
    assert np.all(np.diff(sol.t) < 0)
    cell.check(sol, times=2.0)


@option()
def constant_step(cell: Cell) -> None:
    h = cell.problem.t_end / cell.problem.steps
    sol = cell.solve(step=h)
    assert sol.steps == cell.problem.steps, f"{sol.steps} steps instead of {cell.problem.steps}"
    assert np.allclose(np.diff(sol.t), h, rtol=1e-9, atol=0), "the step is not constant"
    cell.check(sol, times=10.0)


@option(needs=lambda problem: problem.fails)
def not_finite_at_once(cell: Cell) -> None:
    if not cell.refuses(parameters={"until": -1.0}):
        sol = cell.attempt(parameters={"until": -1.0})
        assert not sol.success, "reaches its end nevertheless"
        assert sol.message, "fails without a word"
        cell.check_shapes(sol)


@option(needs=lambda problem: problem.fails)
def not_finite_later(cell: Cell) -> None:
    until = 0.6 * cell.problem.t_end
    sol = cell.attempt(parameters={"until": until})
    assert not sol.success, "goes on where the force is not a number"
    assert sol.message
    cell.check_shapes(sol)
    assert sol.t[-1] <= until, f"has points up to {sol.t[-1]}, but the force ends at {until}"


@option(needs=lambda problem: problem.fails)
def not_finite_in_words(cell: Cell) -> None:
    sol = cell.attempt(parameters={"until": 0.6 * cell.problem.t_end})
    assert re.search(r"not finite|\bnan\b", sol.message), f"does not say why: {sol.message}"


@option(needs=lambda problem: problem.off_q is not None)
def inconsistent_position(cell: Cell) -> None:
    assert cell.refuses(q0=cell.shifted("q0")), "begins off the constraints"


@option(needs=lambda problem: problem.off_v is not None)
def inconsistent_velocity(cell: Cell) -> None:
    assert cell.refuses(v0=cell.shifted("v0")), "begins with velocities that the constraints do not allow"


@option(needs=lambda problem: problem.off_q is not None)
def repair(cell: Cell) -> None:
    """The nearest consistent start; it must be one indeed, and the run must begin there."""
    sol = cell.solve(q0=cell.shifted("q0"), repair=True)
    cell.check_shapes(sol)
    residual = cell.residuals(sol)[0][:, 0]
    assert np.max(np.abs(residual)) <= 1e-10 * cell.problem.size, f"begins off the constraints, by {residual}"


@option()
def few_steps(cell: Cell) -> None:
    sol = cell.attempt(max_steps=1, first_step=cell.problem.t_end / 100)
    assert not sol.success, "does not stop"
    assert "max_steps" in sol.message, sol.message
    assert sol.steps + sol.rejections <= 1
    cell.check_shapes(sol)


@option()
def step_bounds(cell: Cell) -> None:
    largest = cell.problem.t_end / 40
    sol = cell.solve(max_step=largest, first_step=largest / 1000)
    cell.check(sol)
    taken = np.diff(sol.t)
    assert np.max(taken) <= largest * (1 + 1e-9), f"a step of {np.max(taken):.3g} > {largest:.3g}"
    assert taken[0] <= largest / 1000 * (1 + 1e-9), f"the first step is {taken[0]:.3g}"


@option()
def acting_event(cell: Cell) -> None:
    """An action that changes nothing: the run goes on anew from where it was."""
    times: list[float] = []
    sol = cell.solve(events=hn.Event(cell.problem.event, action=lambda t: times.append(t)))
    assert times == sol.t_events[0].tolist(), f"acted at {times}, not at {sol.t_events[0]}"
    cell.check(sol, times=10.0)
    cell.check_event(sol)


@option()
def sampled(cell: Cell) -> None:
    """A law that only looks; no step crosses its ticks, and each period is like a run of its own."""
    end, ticks = cell.problem.t_end, []
    sol = cell.solve(controllers=hn.Sampled(lambda t: ticks.append(t), every=end / 7))
    assert len(ticks) == 7, f"{len(ticks)} ticks"
    assert np.all(np.isin(ticks, sol.t)), f"steps cross the ticks at {ticks}"
    cell.check(sol, times=10.0)


@option(needs=lambda problem: not problem.higher_index)
def simulator(cell: Cell) -> None:
    """Goes on over six stretches, and from a snapshot to the same digits."""
    sim, end = cell.simulator(), cell.problem.t_end
    times, found = np.linspace(0, end, 7)[1:], []
    for k, t in enumerate(times):
        snapshot = sim.snapshot()
        cell.advance(sim, t)
        before = cell.state(sim)
        if k in (0, 3):
            sim.restore(pickle.loads(pickle.dumps(snapshot)))
            cell.advance(sim, t)
        found.append(cell.state(sim))
        same = all(np.array_equal(before[part], found[-1][part]) for part in before)
        assert same, f"another state than before at t = {t:.6g}"
    cell.check_values(times, {part: np.array([one[part] for one in found]).T for part in cell.parts}, 10.0)


@option()
def progress(cell: Cell) -> None:
    told: list[float] = []
    sol = cell.solve(progress=told.append)
    assert told, "nobody is told"
    assert told[-1] == 1.0, f"the last word is {told[-1]}"
    cell.check(sol)


@option()
def foreign_arguments(cell: Cell) -> None:
    """What has no meaning for a system must not be ignored."""
    system = cell.problem.system
    absent: dict[str, Any] = {"s0": [1.0], "w0": [1.0], "parameters": {"no such": 1.0}}
    if getattr(system, "states", None) and not isinstance(system, hn.ODE):
        del absent["s0"]
    if getattr(system, "unknowns", None):
        del absent["w0"]
    if cell.problem.higher_index:
        absent |= {"projection": True, "motion": "smooth"}
    accepted = [name for name, value in absent.items() if not cell.refuses(**{name: value})]
    assert not accepted, f"ignored: {', '.join(accepted)}"


@option()
def four_threads(cell: Cell) -> None:
    """Four threads solve a new system at once; all get what one thread alone gets, bit for bit."""
    shared = KINDS[cell.kind]()
    found: list[Any] = [None] * 4
    gate = threading.Barrier(4)

    def run(i: int) -> None:
        gate.wait()
        try:
            found[i] = cell.solve(shared)
        except Exception as error:
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = cell.solve(KINDS[cell.kind]())
    for sol in found:
        assert not isinstance(sol, BaseException), f"{sol}, but not for one thread alone"
        assert np.array_equal(sol.t, alone.t), "other steps than one thread alone"
        for part in cell.parts:
            same = np.array_equal(getattr(sol, part), getattr(alone, part))
            assert same, f"another {part} than one thread alone"

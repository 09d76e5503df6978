"""What `print` says of a solution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from holonome.results.solution import Solution

_EVENTS_SHOWN = 3


def summary(solution: Solution) -> str:
    """What `print` says of a run."""
    system = solution.system
    span = f"t = {solution.t[0]:.6g} … {solution.t[-1]:.6g}" if solution.t.size else "no points"
    lines = [
        f"{'success' if solution.success else 'FAILED'}: {solution.message}",
        f"  {system.name}: {system.sizes_in_words}; {span}, {count(solution.t.size, 'point')}",
        f"  method {solution.method}, rtol {solution.rtol:g}: {count(solution.steps, 'step')} "
        f"({solution.rejections} rejected), {count(solution.nfev, 'evaluation')}",
    ]
    if solution.njev:
        lines.append(
            f"  {solution.njev} Jacobians; {solution.error_failures} failures of the error test, "
            f"{solution.newton_failures} of Newton's method"
        )
    if system.m and solution.t.size:
        lines.append(f"  constraints hold to {solution.drift_in_words}")
    if system.invariant_count and solution.t.size > 1:
        change = np.max(np.abs(solution.invariant - solution.invariant[:, :1]))
        lines.append(f"  invariants change by at most {change:.1e}")
    if solution.energy is not None and solution.t.size:
        lines.append(f"  energy {solution.energy_in_words}")
    lines += _events_in_words(solution)
    if solution.dense_calls:
        trouble = (
            f"constraints of rank {solution.lowest_rank}: redundant rows or a singular position, handled"
            if solution.lowest_rank < system.m
            else "nearly dependent constraints or masses, handled with pivoting"
        )
        lines.append(f"  {trouble} ({count(solution.dense_calls, 'evaluation')})")
    return "\n".join(lines)


def _events_in_words(solution: Solution) -> list[str]:
    lines = []
    for i, times in enumerate(solution.t_events or []):
        shown = [f"{t:.6g}" for t in times[:_EVENTS_SHOWN]] + ["…"] * (len(times) > _EVENTS_SHOWN)
        lines.append(
            f"  events[{i}]: {len(times) or 'none'} found" + (f", t = {', '.join(shown)}" if shown else "")
        )
    return lines


def count(number: int, thing: str) -> str:
    """A number of things, in words."""
    return f"{number} {thing}" + ("" if number == 1 else "s")

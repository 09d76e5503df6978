"""Integrals along a run, such as the work of a motor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.animation.scene import hermite
from holonome.errors import HolonomeError
from holonome.solving.solve import solve

if TYPE_CHECKING:
    from holonome.results.solution import Solution

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)


def integral(solution: Solution, rate: Callable[[Solution], np.ndarray]) -> np.ndarray:
    """The integral of a rate from the first point to each, by Gauss's formula in each interval.

    Between the points the motion is taken from the dense output; without, it is integrated once more from
    point to point where that was done by an explicit method, whose steps are long, and else interpolated.
    """
    t = solution.t
    if t.size < 2:
        return np.zeros(t.size)
    h = np.diff(t)
    nodes = (t[:-1, None] + h[:, None] * (1 + _NODES) / 2).ravel()
    pieces = tuple(piece._replace(begin=_NODES.size * piece.begin) for piece in solution.pieces)
    between = solution.changed(t=nodes, states=_states(solution, nodes), pieces=pieces)
    values = rate(between).reshape(h.size, -1)
    return np.concatenate([[0.0], np.cumsum(values @ _WEIGHTS * h / 2)])


def _states(solution: Solution, times: np.ndarray) -> np.ndarray:
    """States (q, v, s) at times between the points."""
    if solution.sol is not None:
        return np.concatenate(solution.sol(times)).T
    if solution.njev == 0 or solution.pieces:
        return np.concatenate(
            [_again(solution, k, part) for k, part in enumerate(np.split(times, len(times) // 4))]
        )
    n = solution.system.n
    keep = np.flatnonzero(np.diff(solution.t, prepend=np.nan) != 0)  # an event may be there twice
    t, y = solution.t[keep], solution.states[keep, : solution.system.state_size].T
    rates = solution.rates[:, keep]
    q, v, s = y[:n], y[n : 2 * n], y[2 * n :]
    parts = [hermite(t, [q, v, rates[:n]], times), hermite(t, [v, rates[:n]], times)]
    return np.concatenate([*parts, hermite(t, [s, rates[n:]], times)]).T


def _again(solution: Solution, k: int, times: np.ndarray) -> np.ndarray:
    """States between two points, by a run of its own from the first of them."""
    system, t, n = solution.solved_at(k), solution.t, solution.system.n
    y = solution.states[k, : system.state_size].copy()
    if t[k] == t[k + 1]:
        return np.tile(y, (times.size, 1))
    start: dict[str, Any] = {"q0": y[:n], "v0": y[n : 2 * n]}
    if system.states:
        start["s0"] = y[2 * n :]
    span, rtol = (float(t[k]), float(t[k + 1])), min(solution.rtol, 1e-9)
    found = solve(system, span, **start, method="dop853", rtol=rtol, t_eval=times, repair=True)
    if not found.success:
        raise HolonomeError(
            f"the motion between t = {span[0]:g} and {span[1]:g} is not known: {found.message}"
        )
    return found.states[:, : system.state_size]

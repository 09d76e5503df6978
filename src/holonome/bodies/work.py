"""Integrals along a run, such as the work of a motor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.solving.solve import solve

if TYPE_CHECKING:
    from holonome.results.solution import Solution

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_FIRST, _LAST = slice(None, -1), slice(1, None)
_HALVINGS = 10
"""How often a step is halved in which a rate has kinks, such as those of contacts."""


@dataclass(frozen=True, eq=False)
class _Piece:
    """The motion between two points of a result: a mesh of times, and the states (q, v, s) between them."""

    mesh: np.ndarray
    states: Callable[[np.ndarray], np.ndarray]


def integral(solution: Solution, rate: Callable[[Solution], np.ndarray]) -> np.ndarray:
    """The integral of a rate from the first point to each, by Gauss's formula in each step and in its halves,
    and again in halves where the two differ.
    """
    t = solution.t
    if t.size < 2:
        return np.zeros(t.size)
    pieces = _pieces(solution)
    of = np.repeat(np.arange(t.size - 1), [piece.mesh.size - 1 for piece in pieces])
    begin, end = (np.concatenate([piece.mesh[part] for piece in pieces]) for part in (_FIRST, _LAST))
    parts, size = np.zeros(t.size - 1), 0.0
    for left in reversed(range(_HALVINGS)):
        middle = (begin + end) / 2
        halves = np.stack([begin, begin, middle], 1), np.stack([end, middle, end], 1)
        whole, first, last = _sums(solution, rate, pieces, of, *halves).T
        fine = first + last
        size = size or float(np.sum(np.abs(fine)))
        again = np.abs(fine - whole) > 1e-3 * max(solution.rtol, 1e-9) * size / t.size
        again &= left > 0
        np.add.at(parts, of[~again], fine[~again])
        if not again.any():
            break
        of, middle = np.repeat(of[again], 2), middle[again]
        begin, end = (np.stack(pair, 1).ravel() for pair in ((begin[again], middle), (middle, end[again])))
    return np.concatenate([[0.0], np.cumsum(parts)])


def _sums(solution: Solution, rate, pieces: list[_Piece], of, begin, end) -> np.ndarray:
    """Gauss's formula for rows of intervals, each row in the piece ``of``."""
    nodes = begin[..., None] + (end - begin)[..., None] * (1 + _NODES) / 2
    states = [pieces[k].states(row.ravel()) for k, row in zip(of, nodes, strict=True)]
    parts = [p._replace(begin=nodes[0].size * int(np.searchsorted(of, p.begin))) for p in solution.pieces]
    between = solution.changed(t=nodes.ravel(), states=np.concatenate(states), pieces=tuple(parts))
    return (rate(between).reshape(nodes.shape) @ _WEIGHTS) * (end - begin) / 2


def _pieces(solution: Solution) -> list[_Piece]:
    """The motion from point to point.  Where the points are steps it is that of the dense output or, as the
    steps of implicit methods are short, interpolated; else it is integrated once more.
    """
    t = solution.t
    if t.size <= solution.steps or (solution.sol is None and (solution.pieces or not solution.njev)):
        return [_again(solution, k) for k in range(t.size - 1)]
    return [_Piece(t[k : k + 2], partial(_between, solution)) for k in range(t.size - 1)]


def _between(solution: Solution, times: np.ndarray) -> np.ndarray:
    """By the dense output, which has no values beside a singular position."""
    if solution.sol is not None:
        try:
            return np.concatenate(solution.sol(times)).T
        except RuntimeError:
            pass
    return _interpolated(solution, times)


def _interpolated(solution: Solution, times: np.ndarray) -> np.ndarray:
    """Hermite interpolation between the points."""
    from holonome.animation.scene import hermite

    n = solution.system.n
    keep = np.flatnonzero(np.diff(solution.t, prepend=np.nan) != 0)  # an event may be there twice
    t, y = solution.t[keep], solution.states[keep, : solution.system.state_size].T
    rates = solution.rates[:, keep]
    q, v, s = y[:n], y[n : 2 * n], y[2 * n :]
    parts = [hermite(t, [q, v, rates[:n]], times), hermite(t, [v, rates[:n]], times)]
    return np.concatenate([*parts, hermite(t, [s, rates[n:]], times)]).T


def _again(solution: Solution, k: int) -> _Piece:
    """The motion between two points, by a run of its own from the first of them; where that stops, as it may
    beside a singular position that the run itself has passed, by interpolation.
    """
    system, t, n = solution.solved_at(k), solution.t, solution.system.n
    y = solution.states[k, : system.state_size].copy()
    if abs(t[k + 1] - t[k]) <= 1e-13 * abs(t[k]):  # an event, or an impasse
        return _Piece(t[k : k + 2], lambda times: np.tile(y, (times.size, 1)))
    start: dict[str, Any] = {"q0": y[:n], "v0": y[n : 2 * n]}
    if system.states:
        start["s0"] = y[2 * n :]
    span, rtol = (float(t[k]), float(t[k + 1])), min(solution.rtol, 1e-9)
    method = "auto" if solution.njev else "dop853"
    found = solve(system, span, **start, method=method, rtol=rtol, dense_output=True, repair=True)
    if not found.success:
        return _Piece(t[k : k + 2], partial(_interpolated, solution))
    return _Piece(found.t, partial(_between, found))

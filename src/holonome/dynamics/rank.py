"""What the rank of the constraints says at a state: which rows depend on others, which motions are left, and
whether these have inertia.
"""

from __future__ import annotations

import numpy as np

from holonome.algebra.saddle_point import RANK_TOLERANCE
from holonome.dynamics.evaluation import Point
from holonome.dynamics.kernels import kernels
from holonome.dynamics.nearest import nearest_position
from holonome.errors import InconsistentStart, SingularSystem
from holonome.problem.system import System


def dependent_rows(C: np.ndarray) -> tuple[int, list[int]]:
    """Rank of C, and the rows that depend on rows before them; only their directions count, not their
    lengths.
    """
    basis, dependent = np.zeros((0, C.shape[1])), []
    for i, row in enumerate(C):
        length = np.linalg.norm(row)
        rest = row / length if length > 0 else row
        for _ in range(2):
            rest = rest - basis.T @ (basis @ rest)
        size = np.linalg.norm(rest)
        if size > RANK_TOLERANCE * 10:
            basis = np.vstack([basis, rest / size])
        else:
            dependent.append(i)
    return len(basis), dependent


def always_dependent_rows(system: System, t: float, y: np.ndarray) -> list[int]:
    """Rows that depend on those before them not only here, as in a singular position, but also nearby on the
    manifold.
    """
    n = system.n
    q, v = y[:n], y[n : 2 * n]
    point = Point(system, kernels(system), t, y[2 * n :])
    C = point(q, v)["C"]
    rank, dependent = dependent_rows(C)
    directions = np.linalg.svd(C)[2][rank:]
    for seed in range(2 if len(directions) else 0):
        direction = np.random.default_rng(seed).normal(size=len(directions)) @ directions
        near = _nearby(point, q, v, direction)
        dependent = [i for i in dependent if i in dependent_rows(point(near, v)["C"])[1]]
    return dependent


def _nearby(point: Point, q: np.ndarray, v: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """A position on the manifold near q in this direction."""
    distance = 1e-2 * (float(np.max(np.abs(q))) or 1.0)
    moved = q + distance * direction / np.linalg.norm(direction)
    return nearest_position(point, moved, v, np.ones(q.size, bool), "euclidean")


def refuse_singular_position(point: Point, q: np.ndarray, v: np.ndarray) -> None:
    """Raise where rows vanish, or depend on others, at q but not nearby on the manifold: C v = 0 then has too
    many solutions, and uᵀγ = 0 for uᵀC = 0 decides.
    """
    here, names = point(q, v), point.system.constraint_names
    near = _nearby(point, q, v, np.random.default_rng(0).normal(size=q.size))
    around = point(near, v)["C"]
    usual = np.maximum(np.linalg.norm(around, axis=1), 1e-300)
    C = here["C"] / usual[:, None]
    C[np.linalg.norm(C, axis=1) < 1e-7] = 0.0
    rows = [i for i in dependent_rows(C)[1] if i not in dependent_rows(around)[1]]
    if not rows:
        return
    left, values, _ = np.linalg.svd(C)
    null = left[:, np.append(values, np.zeros(len(left) - len(values))) < 1e-7]
    curvature = float(np.max(np.abs(null.T @ (here["gamma"] / usual)), initial=0.0))
    decision = (
        "but v0 does not satisfy it: no motion passes here with this velocity"
        if curvature > 1e-6 * float(np.max(np.abs(v))) ** 2
        else "and v0 satisfies it, but no method can begin here; start beside it, from q0 + 1e-4 * v0 with "
        "repair=True"
    )
    raise InconsistentStart(
        f"q0 is a singular position: {', '.join(names[i] for i in rows[:4])} depends on the other "
        "constraints there or has no derivative, and G v = 0 does not tell which velocities are possible. "
        f"The second derivative of the constraints decides the branch, {decision}"
    )


def free_motions(pieces: dict[str, np.ndarray]) -> np.ndarray:
    """Columns that span the motions allowed by the constraints."""
    C = pieces["C"]
    rank = np.linalg.matrix_rank(C, 1e-9 * max(np.linalg.norm(C), 1e-300)) if len(C) else 0
    return np.linalg.svd(C)[2][rank:].T


def refuse_negative_mass(system: System, pieces: dict[str, np.ndarray], t: float) -> None:
    null = free_motions(pieces)
    if not null.shape[1]:
        return
    values, vectors = np.linalg.eigh(null.T @ pieces["M"] @ null)
    if values[0] < -1e-10 * np.max(np.abs(values)):
        names = _largest_components(system, null @ vectors[:, 0])
        raise SingularSystem(
            f"mass: negative for motions that the constraints allow, at t = {t:.6g}: moving {names} has "
            "kinetic energy below zero. Look at its signs"
        )


def explain_singular(system: System, pieces: dict[str, np.ndarray], t: float) -> None:
    """Raise, and name the motion that neither mass nor constraints determine."""
    null = free_motions(pieces)
    reduced = null.T @ pieces["M"] @ null
    names = _largest_components(system, null @ np.linalg.svd(reduced)[2][-1])
    raise SingularSystem(
        f"mass: singular for motions that the constraints allow, at t = {t:.6g}: {names} can move without "
        "any inertia. Give it mass or a constraint"
    )


def _largest_components(system: System, direction: np.ndarray) -> str:
    """The coordinates that take part most in a motion."""
    size = np.abs(direction)
    names = [system.all_names[i] for i in np.argsort(-size) if size[i] > 0.3 * np.max(size)]
    return ", ".join(names[:5])

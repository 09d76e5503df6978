"""The position and the velocity nearest to given ones that satisfy the constraints, also where some
coordinates are held fixed, rows depend on each other, or the way is long.
"""

from __future__ import annotations

import numpy as np

from holonome.dynamics.evaluation import Point
from holonome.errors import ContradictoryConstraints, InconsistentStart, ModelError

_ITERATIONS, _ROUNDING = 100, 1e-14


def nearest_position(
    point: Point, q0: np.ndarray, v0: np.ndarray, free: np.ndarray, metric: str
) -> np.ndarray:
    """The position nearest to q0, by the Gauss–Newton method: each iterate is nearest to q0 on the linearised
    constraints; steps are shortened while |g| grows.
    """
    mg, q = point.compiled.position_rows, q0.copy()
    pieces = point(q, v0)
    if mg == 0:
        return q
    tolerance = _residual_tolerance(pieces["C"][:mg], q0)
    for _ in range(_ITERATIONS):
        g, G = pieces["g"], pieces["C"][:mg]
        if np.all(np.abs(g) <= tolerance) and np.array_equal(q, q0):
            return q
        W = _metric(pieces["M"], metric)[np.ix_(free, free)]
        step = np.zeros_like(q)
        step[free] = _constrained_step(W, G[:, free], (q0 - q)[free], g)
        q, pieces = _shortened(point, q, v0, step, g)
        tolerance = _residual_tolerance(pieces["C"][:mg], q)
        moved, size = np.max(np.abs(step)), max(np.max(np.abs(q)), 1e-300)
        if moved <= 1e-13 * size or (moved <= 1e-9 * size and np.all(np.abs(pieces["g"]) <= tolerance)):
            break
    if np.any(np.abs(pieces["g"]) > 1e3 * tolerance + 1e-12 * np.max(np.abs(g), initial=0.0)):
        q = _least_squares(point, q, v0, free)
        pieces = point(q, v0)
        if np.any(np.abs(pieces["g"]) > 1e4 * _residual_tolerance(pieces["C"][:mg], q) + 1e-12):
            _explain_infeasible(point, q, pieces, free)
    return q


def nearest_velocity(
    point: Point, q: np.ndarray, v0: np.ndarray, free: np.ndarray, metric: str
) -> np.ndarray:
    pieces = point(q, v0)
    C = pieces["C"]
    if not len(C):
        return v0.copy()
    level = _residual_tolerance(C, v0)
    if np.all(np.abs(pieces["w"]) <= level):
        return v0.copy()
    v = v0.copy()
    for _ in range(3):
        w = point(q, v)["w"]
        step = _constrained_step(
            _metric(pieces["M"], metric)[np.ix_(free, free)], C[:, free], np.zeros(int(free.sum())), w
        )
        v[free] += step
    w = point(q, v)["w"]
    size = np.linalg.norm(C, axis=1) * max(np.max(np.abs(v)), np.max(np.abs(v0)), 1e-300) + np.abs(
        pieces["w"]
    )
    bad = np.abs(w) > 1e-8 * size + 1e-300
    if bad.any():
        worst = ", ".join(point.system.constraint_names[i] for i in np.flatnonzero(bad)[:6])
        held = "" if free.all() else " with the fixed components"
        raise ContradictoryConstraints(
            f"no velocity{held} satisfies the differentiated constraints together: {np.max(np.abs(w)):.3g} "
            f"remains of {worst} at t = {point.t:.6g}"
        )
    return v


def _constrained_step(W: np.ndarray, J: np.ndarray, target: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """The d nearest to ``target`` in the metric W with J d = −residual, in the least-squares sense where J
    has dependent rows.
    """
    L = np.linalg.cholesky(W)
    Jw = np.linalg.solve(L, J.T).T
    scale = np.linalg.norm(Jw, axis=1)
    scale[scale == 0] = 1.0
    correction = np.linalg.lstsq(Jw / scale[:, None], (-residual - J @ target) / scale, rcond=1e-10)[0]
    return target + np.linalg.solve(L.T, correction)


def _metric(M: np.ndarray, metric: str) -> np.ndarray:
    """A positive definite matrix that defines distances; the identity if the mass matrix is not definite."""
    if metric == "mass":
        values = np.linalg.eigvalsh((M + M.T) / 2)
        if values[0] > 1e-10 * values[-1] > 0:
            return M
    return np.eye(len(M))


def _shortened(
    point: Point, q: np.ndarray, v: np.ndarray, step: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Take the step, or the first of its halves, quarters, … that does not make |g| grow much."""
    before, failure = float(np.max(np.abs(g))), None
    for k in range(12):
        try:
            pieces = point(q + step / 2**k, v)
        except ModelError as error:
            failure = error
            continue
        if np.max(np.abs(pieces["g"])) <= max(1.5 * before, 1e-12) or k == 11:
            return q + step / 2**k, pieces
    raise failure or ModelError("internal: no step could be taken")


def _residual_tolerance(G: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Rounding level of each g."""
    return (
        _ROUNDING * (np.abs(G) @ np.abs(q) + np.linalg.norm(G, axis=1) * np.max(np.abs(q), initial=0.0))
        + 1e-300
    )


def _least_squares(point: Point, q: np.ndarray, v: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Minimize the sum of squares of g: the last resort, and a compromise where there is no solution."""
    from scipy.optimize import least_squares

    if not free.any():
        return q

    def at(x: np.ndarray) -> np.ndarray:
        moved = q.copy()
        moved[free] = x
        return moved

    mg = point.compiled.position_rows
    try:
        result = least_squares(
            lambda x: point(at(x), v)["g"],
            q[free],
            jac=lambda x: point(at(x), v)["C"][:mg, free],  # type: ignore[arg-type]
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
        )
    except (ModelError, ValueError):
        return q
    return at(result.x)


def _explain_infeasible(point: Point, q: np.ndarray, pieces: dict[str, np.ndarray], free: np.ndarray) -> None:
    """Raise, and name the constraints that cannot be satisfied together, or not from this start."""
    g, G, names = pieces["g"], pieces["C"][: point.compiled.position_rows], point.system.constraint_names
    worst = [names[i] for i in np.argsort(-np.abs(g)) if abs(g[i]) > 0.1 * np.max(np.abs(g))][:6]
    slope = np.linalg.norm(G[:, free].T @ g) / max(np.linalg.norm(G[:, free]) * np.linalg.norm(g), 1e-300)
    fixed = [name for name, moves in zip(point.system.names, free, strict=True) if not moves]
    held = f" while {', '.join(fixed)} stay fixed" if fixed else ""
    size = f"{np.max(np.abs(g)):.3g} remains of {', '.join(worst)}"
    flat = [
        names[i]
        for i in np.flatnonzero(np.abs(g) > 0)
        if np.max(np.abs(G[i]), initial=0.0) < 1e-8 * max(1.0, float(np.max(np.abs(G))))
    ]
    if flat and len(g) == len(flat):
        raise InconsistentStart(
            f"no position that satisfies all constraints was found from q0{held}: {size}, and the gradient "
            f"of {', '.join(flat)} vanishes there. Give a better q0"
        )
    if slope < 1e-4:
        raise ContradictoryConstraints(
            f"the constraints contradict each other near q0{held}: at the best compromise {size}. "
            "Remove or correct one of these rows, or start elsewhere"
        )
    raise InconsistentStart(
        f"no position that satisfies all constraints was found from q0{held}: {size} after {_ITERATIONS} "
        "iterations. Give a better q0"
    )

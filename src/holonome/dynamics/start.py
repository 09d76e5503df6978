"""Consistent initial values: q with g = 0, v on the velocity level, λ with the accelerations; redundant and
contradictory constraints are named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from holonome.algebra.saddle_point import RANK_TOLERANCE
from holonome.arguments import checked, shown
from holonome.dynamics.kernels import Kernels, dense_derivative, dense_multipliers, kernels
from holonome.dynamics.projection import nearest_point
from holonome.dynamics.sparse_saddle import sparse_onto
from holonome.errors import ContradictoryConstraints, InconsistentStart, ModelError, SingularSystem
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK
from holonome.problem.parameters import Parameters
from holonome.problem.system import System
from holonome.problem.user_function import UserFunction
from holonome.problem.vectors import require_finite

SMALL = 1e-3
"""A correction up to this fraction of the largest position (or velocity) is made silently."""

_ITERATIONS, _ROUNDING, _FAR = 100, 1e-14, 0.1


@dataclass(frozen=True)
class Start:
    """Consistent values, and how far they are from those given.

    Attributes
    ----------
    q, v, a, lam, s
        Positions, velocities, accelerations, multipliers and first-order states.
    moved_q, moved_v
        Largest change of a position and of a velocity.
    rank
        Number of independent constraint rows.
    redundant
        Names of the rows that follow from others; their multipliers are those of least norm.

    Examples
    --------
    >>> import holonome as hn
    >>> start = hn.consistent(hn.mechanisms.pendulum().system, [0.6, -0.8001])
    >>> start.rank, start.redundant, start.moved_q < 1e-3
    (1, (), True)
    """

    t: float
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    moved_q: float
    moved_v: float
    rank: int
    redundant: tuple[str, ...] = ()
    s: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def state(self) -> np.ndarray:
        """(q, v, s)."""
        return np.concatenate([self.q, self.v, self.s])

    @property
    def message(self) -> str:
        """What was done, in words; empty if nothing was."""
        parts = []
        if self.moved_q > 0 or self.moved_v > 0:
            parts.append(
                f"initial values moved onto the constraints by {self.moved_q:.1e} (q) and {self.moved_v:.1e} "
                "(v)"
            )
        if self.redundant:
            parts.append(f"redundant: {', '.join(self.redundant)}")
        return "; ".join(parts)


def consistent(
    system: System,
    q0,
    v0=None,
    t0: float = 0.0,
    *,
    s0=None,
    fixed: Sequence[str | int] = (),
    metric: str = "mass",
    repair: bool = False,
) -> Start:
    """Find consistent values near the given ones.

    Parameters
    ----------
    q0, v0
        Positions and velocities; v0 = None means at rest, as far as the constraints allow.
    t0
        Initial time.
    s0
        First-order states, where the system has some; None takes the values given to the system.
    fixed
        Names or numbers of coordinates whose position and velocity must stay as given.
    metric
        "mass" or "euclidean": in which sense the new values are nearest.
    repair
        Accept corrections of any size.  Otherwise those above 0.1 % raise :class:`InconsistentStart`.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum().system
    >>> hn.consistent(pendulum, [0.6, -0.8001]).q.round(6)
    array([ 0.599952, -0.800036])
    """
    if not isinstance(system, System):
        raise TypeError(f"system: {shown(system)} is not an hn.System")
    t0, repair = checked("t0", t0), checked("repair", repair)
    system.require_unchanged()
    y = system.full_state(q0, v0, s0)
    return consistent_state(system, y, t0, at_rest=v0 is None, fixed=fixed, metric=metric, repair=repair)


def consistent_state(
    system: System,
    y: np.ndarray,
    t0: float = 0.0,
    *,
    at_rest: bool = False,
    fixed: Sequence[str | int] = (),
    metric: str = "mass",
    repair: bool = False,
) -> Start:
    """As :func:`consistent`, near a state (q, v, s); ``at_rest`` if no velocities were given."""
    n = system.n
    q0, v0, s = y[:n], y[n : 2 * n], y[2 * n :]
    require_finite(q0=q0, v0=v0, s0=s)
    free = _free(system, fixed)
    metric = checked("metric", metric)
    point = _Point(system, kernels(system), float(t0), s)
    found = _by_projection(point, q0, v0) if free.all() and metric == "mass" else None
    if found is None:
        q = _nearest_position(point, q0, v0, free, metric)
        v = _nearest_velocity(point, q, v0, free, metric)
    else:
        q, v, a, lam = found
    moved_q, moved_v = float(np.max(np.abs(q - q0), initial=0.0)), float(np.max(np.abs(v - v0), initial=0.0))
    if not repair:
        _refuse_large(point, q0, v0, q, v, moved_q, 0.0 if at_rest else moved_v)
    rank, redundant = system.m, []
    if found is None:
        rank, redundant = dependent_rows(point(q, v)["C"])
        a, lam = _accelerations(point, q, v)
    names = tuple(system.constraint_names[i] for i in redundant)
    return Start(float(t0), q, v, a, lam, moved_q, moved_v, rank, names, s.copy())


def _by_projection(
    point: _Point, q0: np.ndarray, v0: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """The nearest q and v by the projection used in steps, with a and λ; None if that does not converge, if
    rows depend on each other, or if a small system is far off, which other ways treat with more care.
    """
    compiled, n = point.compiled, len(q0)
    if compiled.dense or point.system.invariant_count:
        return None
    first = np.concatenate([q0, v0, point.s])
    y, size = first.copy(), first.size
    kernel, offset, room, far = compiled.projection, size, compiled.projection_size, _FAR
    if compiled.sparse:
        kernel, offset, room, far = sparse_onto.address, 0, 2 * size + 1, math.inf
    status = nearest_point(
        kernel, offset, n, point.t, first, point.context, np.zeros(room + size + 2), y, far
    )
    return _with_multipliers(point, y) if status == OK else None


def _with_multipliers(
    point: _Point, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """q, v, a and λ of a consistent state; None if rows depend on each other."""
    compiled, n, size, z = point.compiled, point.system.n, y.size, np.zeros(y.size + 2)
    rate, lam = np.zeros(size + 1), np.zeros(point.system.m + 1)
    for kernel, out in ((compiled.derivative, rate), (compiled.multipliers, lam)):
        if run_kernel(kernel, point.t, y, z, point.context, out) != OK or not math.isfinite(out.sum()):
            return None
    return y[:n], y[n : 2 * n], rate[n : 2 * n].copy(), lam[:-1]


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
    point = _Point(system, kernels(system), t, y[2 * n :])
    C = point(q, v)["C"]
    rank, dependent = dependent_rows(C)
    directions = np.linalg.svd(C)[2][rank:]
    for seed in range(2 if len(directions) else 0):
        direction = np.random.default_rng(seed).normal(size=len(directions)) @ directions
        near = _nearby(point, q, v, direction)
        dependent = [i for i in dependent if i in dependent_rows(point(near, v)["C"])[1]]
    return dependent


def _nearby(point: _Point, q: np.ndarray, v: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """A position on the manifold near q in this direction."""
    distance = 1e-2 * max(1.0, float(np.max(np.abs(q))))
    moved = q + distance * direction / np.linalg.norm(direction)
    return _nearest_position(point, moved, v, np.ones(q.size, bool), "euclidean")


class _Point:
    """M, f, C, … of a system at a given time; names the function that fails."""

    def __init__(self, system: System, compiled: Kernels, t: float, s: np.ndarray) -> None:
        self.system, self.compiled, self.t, self.s = system, compiled, t, s
        self.context = compiled.context(system)

    def __call__(self, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        y = np.concatenate([q, v, self.s])
        pieces = self.compiled.evaluate_pieces(self.context, self.t, y)
        if pieces is None or not all(np.all(np.isfinite(x)) for x in pieces.values()):
            raise ModelError(what_failed(self.system, self.t, y))
        return pieces


def what_failed(system: System, t: float, y: np.ndarray) -> str:
    """Which of the user's functions raises or is not finite at a state, or else what may have failed, in
    words.
    """
    text, here = what_is_not_finite(system, t, y), _where(system, t, y)
    if text:
        return text
    if system.unknowns and "lam" not in system.further_names:
        return (
            f"the equations for the unknowns {', '.join(system.unknowns)} have no solution near their last "
            f"values, do not determine them, or a derivative is not finite {here}"
        )
    if "lam" in system.further_names:
        return (
            f"the multipliers λ, on which forces depend, are not found {here}: that needs independent "
            "constraints and a regular mass matrix, forces that leave λ determined and are finite near the "
            f"first guess, {_first_guess(system)}"
        )
    return f"a derivative of the system's functions is not finite {here}"


def _where(system: System, t: float, y: np.ndarray) -> str:
    return f"(at t = {t:.6g}, q = {np.array2string(y[: system.n], precision=6, threshold=8)})"


def what_is_not_finite(system: System, t: float, y: np.ndarray) -> str:
    """Which of the user's functions raises or is not finite at a state, in words; nothing if all is well."""
    n, here = system.n, _where(system, t, y)
    point = {"t": t, "q": y[:n], "v": y[n : 2 * n], "s": y[2 * n :]}
    for function in system.functions.values():
        texts = [
            _what_is_wrong(function, point | lam, system.parameters, here)
            for lam in _multipliers_to_try(system, function)
        ]
        if all(texts):
            return texts[0]
    return ""


def _multipliers_to_try(system: System, function: UserFunction) -> list[dict[str, np.ndarray]]:
    """Values of λ to evaluate a function with: a force that is finite with one of them is not to blame."""
    if "lam" not in system.further_names or "lam" not in function.arguments:
        return [{}]
    first = [] if system.multipliers is None else [system.multipliers]
    return [{"lam": lam} for lam in (*first, *np.outer((0.0, 1e-3, -1e-3, 1.0, -1.0), np.ones(system.m)))]


def _first_guess(system: System) -> str:
    if system.multipliers is None:
        return "λ = 0; give a better one, lam0=[...]"
    return f"lam0 = {np.array2string(system.multipliers, precision=6, threshold=8)}; give a better one"


def _what_is_wrong(function: UserFunction, point: dict, parameters: Parameters, here: str) -> str:
    """Whether a function raises or is not finite at a point, in words."""
    try:
        value = function.evaluate(point, parameters)
    except ModelError as error:
        return str(error)
    if np.all(np.isfinite(value)):
        return ""
    where = np.unravel_index(int(np.argmin(np.isfinite(value))), value.shape)
    entry = f"entry {', '.join(map(str, where))} of {function.role}" if value.size > 1 else function.role
    return f"{entry} is {value[where]} {here}"


def _free(system: System, fixed: Sequence[str | int]) -> np.ndarray:
    free = np.ones(system.n, bool)
    fixed = checked("fixed", fixed)
    for item in [fixed] if isinstance(fixed, (str, int)) else fixed:
        if isinstance(item, str) and item not in system.names:
            raise ValueError(f"fixed: {item!r} is not a coordinate; there are {', '.join(system.names)}")
        index = system.names.index(item) if isinstance(item, str) else int(item)
        if not -system.n <= index < system.n:
            raise ValueError(f"fixed: {item!r} is out of range for {system.n} coordinates")
        free[index] = False
    return free


def _metric(M: np.ndarray, metric: str) -> np.ndarray:
    """A positive definite matrix that defines distances; the identity if the mass matrix is not definite."""
    if metric == "mass":
        values = np.linalg.eigvalsh((M + M.T) / 2)
        if values[0] > 1e-10 * values[-1] > 0:
            return M
    return np.eye(len(M))


def _constrained_step(W: np.ndarray, J: np.ndarray, wish: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """The d nearest to ``wish`` in the metric W with J d = −residual, in the least-squares sense where J has
    dependent rows.
    """
    L = np.linalg.cholesky(W)
    Jw = np.linalg.solve(L, J.T).T
    scale = np.linalg.norm(Jw, axis=1)
    scale[scale == 0] = 1.0
    correction = np.linalg.lstsq(Jw / scale[:, None], (-residual - J @ wish) / scale, rcond=1e-10)[0]
    return wish + np.linalg.solve(L.T, correction)


def _nearest_position(
    point: _Point, q0: np.ndarray, v0: np.ndarray, free: np.ndarray, metric: str
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


def _least_squares(point: _Point, q: np.ndarray, v: np.ndarray, free: np.ndarray) -> np.ndarray:
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


def _residual_tolerance(G: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Rounding level of each g."""
    return (
        _ROUNDING * (np.abs(G) @ np.abs(q) + np.linalg.norm(G, axis=1) * np.max(np.abs(q), initial=0.0))
        + 1e-300
    )


def _shortened(
    point: _Point, q: np.ndarray, v: np.ndarray, step: np.ndarray, g: np.ndarray
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


def _explain_infeasible(
    point: _Point, q: np.ndarray, pieces: dict[str, np.ndarray], free: np.ndarray
) -> None:
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


def _nearest_velocity(
    point: _Point, q: np.ndarray, v0: np.ndarray, free: np.ndarray, metric: str
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


def _refuse_large(point: _Point, q0, v0, q, v, moved_q: float, moved_v: float) -> None:
    names, C = point.system.constraint_names, point(q0, v0)
    remedy = "correct it, or pass repair=True to start from the nearest consistent values"
    if moved_q > SMALL * max(np.max(np.abs(q)), np.max(np.abs(q0))):
        worst = int(np.argmax(np.abs(C["g"])))
        raise InconsistentStart(
            f"q0 violates the constraints: {names[worst]} = {C['g'][worst]:.3g}; the nearest position is "
            f"{moved_q:.3g} away ({remedy})"
        )
    if moved_v > SMALL * max(np.max(np.abs(v)), np.max(np.abs(v0))):
        _refuse_singular(point, q, v0)
        at = point(q, v0)
        worst = int(np.argmax(np.abs(at["w"])))
        what = (
            f"the differentiated constraints: d/dt {names[worst]}"
            if worst < point.compiled.position_rows
            else f"the velocity constraints: {names[worst]}"
        )
        raise InconsistentStart(
            f"v0 violates {what} = {at['w'][worst]:.3g}; the nearest velocity is {moved_v:.3g} away "
            f"({remedy})"
        )


def _refuse_singular(point: _Point, q: np.ndarray, v: np.ndarray) -> None:
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


def _accelerations(point: _Point, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    system, n = point.system, q.size
    y = np.concatenate([q, v, point.s])
    rate, lam = np.empty(y.size + 1), np.zeros(system.m + 1)
    pieces = point(q, v)
    status = run_kernel(dense_derivative.address, point.t, y, y, point.context, rate)
    if status != OK or not np.all(np.isfinite(rate[:-1])):
        _explain_singular(system, pieces, point.t)
    _refuse_negative_mass(system, pieces, point.t)
    run_kernel(dense_multipliers.address, point.t, y, y, point.context, lam)
    a = rate[n : 2 * n]
    left = np.abs(pieces["C"] @ a + pieces["gamma"])
    size = np.abs(pieces["C"]) @ np.abs(a) + np.abs(pieces["gamma"])
    bad = left > 1e-6 * np.max(size, initial=0.0) + 1e-300
    if bad.any():
        worst = ", ".join(system.constraint_names[i] for i in np.flatnonzero(bad)[:6])
        raise ContradictoryConstraints(
            f"dependent constraints ask for different accelerations at t = {point.t:.6g}: {worst} cannot "
            "hold together with the others"
        )
    return a, lam[:-1]


def free_motions(pieces: dict[str, np.ndarray]) -> np.ndarray:
    """Columns that span the motions allowed by the constraints."""
    C = pieces["C"]
    rank = np.linalg.matrix_rank(C, 1e-9 * max(np.linalg.norm(C), 1e-300)) if len(C) else 0
    return np.linalg.svd(C)[2][rank:].T


def _refuse_negative_mass(system: System, pieces: dict[str, np.ndarray], t: float) -> None:
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


def _explain_singular(system: System, pieces: dict[str, np.ndarray], t: float) -> None:
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

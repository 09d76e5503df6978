"""Branches of equilibria while a parameter changes: pseudo-arclength steps, folds, branch points, and the
branches that cross there.

With X = (x, p), the unknowns and the parameter, and J = ∂R/∂X, the tangent is the vector of the null space
of J nearest to the one before; a step along it is corrected by Gauss–Newton steps of least norm.  At a fold
the p-component of the tangent changes sign; at a branch point the determinant of J does, bordered by the
tangent and by what does not matter on the whole branch (redundant rows, coordinates that nothing depends on).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from holonome.analysis.balance import Balance
from holonome.analysis.branch import BRANCH, FOLD, Branch, BranchPoint
from holonome.analysis.newton import RANK, newton, without_noise
from holonome.analysis.pinned import pinned
from holonome.analysis.problem import Problem
from holonome.arguments import NUMBERS, checked, read
from holonome.errors import HolonomeError, ModelError

if TYPE_CHECKING:
    from holonome.analysis.equilibrium import Equilibrium

_SMALLEST, _LARGEST = 1e-7, 400
_TURNS = 0.9
"""Cosine of the largest angle between the tangents at both ends of a step."""


class _Path(NamedTuple):
    """How a branch is followed: scales of the unknowns, bounds, steps, and what borders J."""

    problem: Problem
    scale: np.ndarray
    weight: np.ndarray
    low: float
    high: float
    largest: float
    most: int
    sizes: np.ndarray  # of the rows of J
    rows: np.ndarray
    columns: np.ndarray


def follow(
    found: Equilibrium,
    name: str,
    values: Any,
    *,
    step: float = 0.02,
    switch: bool = True,
    max_points: int = 1000,
) -> Branch:
    """The branch through an equilibrium; see :meth:`Equilibrium.follow`."""
    step, switch = checked("fraction", step), checked("switch", switch)
    most = checked("max_points", max_points)
    wanted = read(NUMBERS, "values", values)
    if wanted.ndim != 1 or wanted.size < 2 or wanted.min() == wanted.max():
        raise ValueError("values: give (from, to), or an array of values")
    problem = _with_parameter(found, name)
    X = np.append(found._x, float(found.system.parameters[name]))
    if X.size > _LARGEST:
        raise ModelError(f"follow: {found.system.name} is too large to be followed")
    X = _brought_to(problem, X, float(wanted[0]), name)
    path = _path(problem, X, float(wanted.min()), float(wanted.max()), step, most)
    heading = np.zeros(X.size)
    heading[-1] = np.sign(wanted[-1] - wanted[0])
    return _branch(path, X, heading, name, 2 if switch else 0, wanted)


def _with_parameter(found: Equilibrium, name: str) -> Problem:
    system, problem = found.system, found._problem
    if name not in system.parameters or np.ndim(system.parameters[name]):
        there = [key for key in system.parameters if np.ndim(system.parameters[key]) == 0]
        raise ValueError(
            f"name: {name!r} is no parameter that is one number; there are {', '.join(there) or 'none'}"
        )
    if name in problem.free:
        raise ValueError(f"name: {name!r} was found for this equilibrium; choose another parameter")
    names = (*problem.free, name)
    return replace(problem, system=system, free=names, balance=Balance(system, names))


def _brought_to(problem: Problem, X: np.ndarray, value: float, name: str) -> np.ndarray:
    """The equilibrium with another value of the parameter, in as many steps as it takes."""
    begin, done, share = X[-1], 0.0, 1.0
    while done < 1:
        ahead = min(1.0, done + share)
        there = pinned(problem, X, begin + ahead * (value - begin))
        if there is not None:
            X, done, share = there, ahead, 2 * share
        else:
            share /= 4
            if share < 1e-4:
                raise ModelError(f"values: the equilibrium ends before {name} = {value:g}; begin elsewhere")
    return X


def _path(problem: Problem, X: np.ndarray, low: float, high: float, step: float, most: int) -> _Path:
    scale, weight = problem.units(X), np.zeros(X.size)
    at = problem.layout
    for name in ("q", "s"):
        weight[at[name]] = 1.0
    weight[at["free"]] = 1.0
    scale[-1] = high - low
    none = np.zeros((0, 0))
    path = _Path(problem, scale, weight, low, high, step, most, _sizes(problem, X, scale), none, none)
    left, right = _null_spaces(path, X)
    tangent = _aligned(right, np.append(np.zeros(X.size - 1), 1.0))
    others = right - np.outer(tangent, tangent @ right)
    U, values, _ = np.linalg.svd(others, full_matrices=False)
    return path._replace(rows=left, columns=U[:, values > 0.5])


def _sizes(problem: Problem, X: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Of the rows of J near a point, in units of the unknowns."""
    _, here = problem(X)
    _, beside = problem(X + 0.01 * scale)
    size = np.max(np.maximum(np.abs(here), np.abs(beside)) * scale, axis=1, initial=0.0)
    return np.where(size > 0, size, 1.0)


def _scaled(path: _Path, X: np.ndarray) -> np.ndarray:
    """J in units of the unknowns, its rows of about size one."""
    _, J = path.problem(X)
    return without_noise(J, path.scale) * path.scale / path.sizes[:, None]


def _null_spaces(path: _Path, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    U, values, rows = np.linalg.svd(_scaled(path, X))
    rank = int(np.sum(values > 1e-8 * values[0]))
    return U[:, rank:], rows[rank:].T


def _aligned(null: np.ndarray, tangent: np.ndarray) -> np.ndarray:
    """The vector of a null space nearest to another."""
    found = null @ (null.T @ tangent)
    return found / max(np.linalg.norm(found), 1e-300)


def _tangent(path: _Path, X: np.ndarray, before: np.ndarray) -> np.ndarray:
    """In units of the unknowns, of length one in what counts."""
    J = _scaled(path, X)
    _, values, rows = np.linalg.svd(J)
    expected = J.shape[1] - 1 - path.columns.shape[1]
    null = rows[min(expected, int(np.sum(values > RANK * values[0]))) :].T
    null = null - path.columns @ (path.columns.T @ null)
    U, sizes, _ = np.linalg.svd(null, full_matrices=False)
    found = _aligned(U[:, sizes > 0.5], before)
    return found / max(np.linalg.norm(path.weight * found), 1e-300)


def _bordered(path: _Path, X: np.ndarray, tangent: np.ndarray) -> float:
    """A number that changes sign at a branch point."""
    J = _scaled(path, X)
    border = np.column_stack([path.columns, tangent])
    corner = np.zeros((border.shape[1], path.rows.shape[1]))
    whole = np.block([[J, path.rows], [border.T, corner]])
    if whole.shape[0] != whole.shape[1]:
        return 1.0
    sign, size = np.linalg.slogdet(whole)
    return float(sign * np.exp(np.clip(size, -700, 700)))


def _corrected(path: _Path, X: np.ndarray, ranks: tuple[float, ...] = (RANK,)) -> np.ndarray | None:
    """The nearest solution; in units in which singular values below ``rank`` count as zero."""
    for rank in ranks:
        try:
            found = newton(path.problem, X, path.scale, path.problem.scaled, 12, rank, 0.1 * path.sizes)
        except (HolonomeError, np.linalg.LinAlgError):
            continue
        if found.converged:
            return found.x
    return None


def _branch(
    path: _Path, X: np.ndarray, heading: np.ndarray, name: str, depth: int, wanted: np.ndarray
) -> Branch:
    """Follow a branch to an end of the range, back to its beginning, or until it ends."""
    points, specials, ended = [X], [], f"{path.most} points"
    try:
        tangent = _tangent(path, X, heading)
    except np.linalg.LinAlgError:
        tangent = heading
    h, first = path.largest, tangent
    test = None if depth < 0 else _bordered(path, X, tangent)
    while len(points) < path.most:
        taken = _step(path, points[-1], tangent, h)
        if taken is None:
            h /= 2
            if h < _SMALLEST:
                ended = "the branch could not be followed further"
                break
            continue
        ahead, turned = taken
        value = _bordered(path, ahead, turned)
        specials += _between(path, points[-1], ahead, tangent, turned, h, test, value, len(points) - 1)
        out = not path.low <= ahead[-1] <= path.high
        if out:
            bound = path.low if ahead[-1] < path.low else path.high
            last = pinned(path.problem, ahead, bound)
            if last is not None and abs(points[-1][-1] - bound) > 1e-9 * path.scale[-1]:
                last[-1] = bound
                points += [*_marked(path, points[-1], last, wanted), last]
            ended = f"{name} = {bound:g} was reached"
            break
        points += [*_marked(path, points[-1], ahead, wanted), ahead]
        closed = np.linalg.norm(path.weight * (ahead - points[0]) / path.scale) < 0.5 * h
        if len(points) > 8 and closed and turned @ first > 0.9:
            ended = "the branch closes"
            break
        tangent, test, h = turned, value, min(1.4 * h, path.largest)
    inside = [point for point in specials if path.low <= point.value <= path.high]
    branch_points = [point for point in inside if point.kind == BRANCH]
    others = [
        other
        for point in (branch_points if depth > 0 else ())
        for other in _others(path, point, name, depth - 1, wanted)
    ]
    whole = np.array(points)
    folds = tuple(point for point in inside if point.kind == FOLD)
    return Branch(
        path.problem.system,
        name,
        whole[:, -1],
        folds,
        tuple(branch_points),
        tuple(others),
        ended,
        path.problem,
        whole,
    )


def _step(path: _Path, X: np.ndarray, tangent: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray] | None:
    """The next point and its tangent; None if the step is too long."""
    guess = X + h * path.scale * tangent
    ahead = _corrected(path, guess)
    if ahead is None:
        return None
    moved = np.linalg.norm(path.weight * (ahead - guess) / path.scale)
    if moved > 0.3 * h:
        return None
    turned = _tangent(path, ahead, tangent)
    cosine = (path.weight * turned) @ (path.weight * tangent)
    return (ahead, turned) if cosine > _TURNS else None


def _marked(path: _Path, X: np.ndarray, ahead: np.ndarray, wanted: np.ndarray) -> list[np.ndarray]:
    """Solutions at wanted values between two points."""
    a, b = X[-1], ahead[-1]
    between = [value for value in wanted if (a - value) * (b - value) < 0]
    found = [
        pinned(path.problem, X + (value - a) / (b - a) * (ahead - X), value)
        for value in sorted(between, reverse=bool(b < a))
    ]
    return [x for x in found if x is not None]


def _between(
    path: _Path,
    X: np.ndarray,
    ahead: np.ndarray,
    tangent: np.ndarray,
    turned: np.ndarray,
    h: float,
    test: float | None,
    value: float,
    index: int,
) -> list[BranchPoint]:
    """Folds and branch points between two points."""
    found = []
    if tangent[-1] * turned[-1] < 0:
        found.append(_located(path, X, tangent, h, index, FOLD))
    if test is not None and test * value < 0:
        point = _located(path, X, tangent, h, index, BRANCH)
        if point is not None and _singular(path, point._X):
            found.append(point)
    del ahead
    return [point for point in found if point is not None]


def _located(
    path: _Path, X: np.ndarray, tangent: np.ndarray, h: float, index: int, kind: str
) -> BranchPoint | None:
    """The point within a step where a test function vanishes."""

    def at(share: float) -> np.ndarray:
        there = _corrected(path, X + share * h * path.scale * tangent, (RANK, 1e-7, 1e-5))
        if there is None:
            raise ArithmeticError
        return there

    def test(share: float) -> float:
        there = at(share)
        turned = _tangent(path, there, tangent)
        return float(turned[-1]) if kind == FOLD else _bordered(path, there, turned)

    options: Any = {"xtol": 1e-12, "rtol": 1e-12, "maxiter": 60, "full_output": True, "disp": False}
    try:
        share, *_ = brentq(test, 0.0, 1.0, **options)
        found = at(float(share))
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        return None
    here = path.problem.place(found)
    return BranchPoint(kind, float(found[-1]), here.q.copy(), here.s.copy(), index + share, found)


def _singular(path: _Path, X: np.ndarray) -> bool:
    """Whether the rank of J really falls."""
    J = _scaled(path, X)
    values = np.linalg.svd(J, compute_uv=False)
    expected = J.shape[1] - 1 - path.columns.shape[1]
    return bool(values[expected - 1] < 1e-5 * max(values[0], 1.0))


def _others(path: _Path, point: BranchPoint, name: str, depth: int, wanted: np.ndarray) -> list[Branch]:
    """The branches that cross at a branch point."""
    J = _scaled(path, point._X)
    _, _, rows = np.linalg.svd(J)
    expected = J.shape[1] - 1 - path.columns.shape[1]
    null = rows[expected - 1 :].T
    null = null - path.columns @ (path.columns.T @ null)
    U, sizes, _ = np.linalg.svd(null, full_matrices=False)
    plane = U[:, sizes > 0.5]
    along = _along(path, point, plane)
    across = plane - np.outer(along, along @ plane)
    U, sizes, _ = np.linalg.svd(across, full_matrices=False)
    direction = U[:, 0]
    found = []
    for sign in (1.0, -1.0):
        begun = _begun(path, point._X, sign * direction)
        if begun is not None:
            branch = _branch(path, begun, begun - point._X, name, depth, wanted)
            whole = np.vstack([point._X, branch._X])
            shifted = (
                tuple(_shifted(x) for x in branch.folds),
                tuple(_shifted(x) for x in branch.branch_points),
            )
            found.append(
                replace(branch, values=whole[:, -1], _X=whole, folds=shifted[0], branch_points=shifted[1])
            )
    return found


def _shifted(point: BranchPoint) -> BranchPoint:
    return replace(point, index=point.index + 1)


def _along(path: _Path, point: BranchPoint, plane: np.ndarray) -> np.ndarray:
    """The direction of the branch on which a branch point was found, from points beside it."""
    h = 0.02 * path.largest
    heading = np.append(np.zeros(point._X.size - 1), 1.0)
    guess = _aligned(plane, heading)
    sides = [_corrected(path, point._X + sign * h * path.scale * guess) for sign in (1.0, -1.0)]
    if sides[0] is None or sides[1] is None:
        return guess
    return _aligned(plane, (sides[0] - sides[1]) / path.scale)


def _begun(path: _Path, X: np.ndarray, direction: np.ndarray) -> np.ndarray | None:
    """A first point on another branch."""
    row = direction / path.scale
    for h in (0.5 * path.largest, 0.1 * path.largest, 0.02 * path.largest):
        found = pinned(path.problem, X + h * path.scale * direction, float(row @ X) + h, row, path.scale)
        if found is not None and np.linalg.norm(path.weight * (found - X) / path.scale) < 5 * h:
            return found
    return None

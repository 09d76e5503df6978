"""Is an equilibrium or a steady motion stable?  By the reduced Hessian where forces are conservative, else by
the eigenvalues of the linearisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from holonome.analysis.newton import newton
from holonome.analysis.reduced import Reduced, deflated, reduced_steady
from holonome.analysis.symmetry import generator, steady
from holonome.errors import HolonomeError

if TYPE_CHECKING:
    from holonome.analysis.equilibrium import Equilibrium

LARGEST = 700
"""Coordinates and constraints beyond which only some modes are looked at."""

_GROWS, _ZERO = 1e-9, 1e-11


@dataclass(frozen=True, eq=False)
class Stability:
    """What the linearisation says: see :class:`holonome.Equilibrium`."""

    stable: bool | None
    verdict: str
    eigenvalues: np.ndarray
    hessian: np.ndarray | None
    neutral: int
    told: tuple[str, ...] = ()


def matrix_at(found: Equilibrium) -> Reduced:
    """The linearisation at an equilibrium."""
    system, here = found.system, found.place
    X = np.zeros((system.n, system.n))
    if found.moving:
        turning = steady(system, here)
        X = generator(system, here) if turning is None else turning
    return reduced_steady(system, here, found.lam, X, ())


def stability(found: Equilibrium) -> Stability:
    if found.system.n + found.system.m > LARGEST:
        return _of_some_modes(found)
    try:
        reduced = matrix_at(found)
    except HolonomeError as error:
        return Stability(None, f"stability not known ({error})", np.zeros(0, complex), None, 0)
    values, zeros, kernel = deflated(reduced.A)
    hessian = None if found.moving else hessian_of(reduced)
    told = [_count(zeros)] if zeros else []
    if hessian is not None:
        return _by_energy(found, reduced, hessian, values, zeros, kernel, told)
    return _by_eigenvalues(found, reduced, values, zeros, kernel, told)


def hessian_of(reduced: Reduced) -> np.ndarray | None:
    """Eigenvalues of the reduced stiffness relative to the reduced mass, of conservative forces with or
    without damping; None for others.
    """
    if reduced.second_order is None:
        return None
    M, D, K = reduced.second_order
    if (
        not M.size
        or not _symmetric(K)
        or not _symmetric(D)
        or np.any(np.linalg.eigvalsh(D) < -_ZERO * _size(D))
    ):
        return None
    try:
        return scipy.linalg.eigh((K + K.T) / 2, (M + M.T) / 2, eigvals_only=True)
    except np.linalg.LinAlgError:
        return None


def _size(x: np.ndarray) -> float:
    return float(np.max(np.abs(x), initial=0.0))


def _symmetric(x: np.ndarray) -> bool:
    return _size(x - x.T) <= 1e-9 * _size(x)


def _by_energy(
    found: Equilibrium,
    reduced: Reduced,
    hessian: np.ndarray,
    values: np.ndarray,
    zeros: list[int],
    kernel: np.ndarray,
    told: list[str],
) -> Stability:
    """Lagrange and Dirichlet: a minimum of the potential energy is stable, and no other equilibrium is."""
    size = _size(hessian)
    stiff = reduced.second_order
    assert stiff is not None
    neutral = int(np.sum(np.abs(hessian) <= _ZERO * size)) if size else hessian.size
    worst, rest = hessian[0], sum(zeros)
    if worst < -_ZERO * size:
        count = int(np.sum(hessian < -_ZERO * size))
        verdict = f"unstable, as the potential energy falls in {count} direction{'s' * (count != 1)}"
        return Stability(False, verdict, values, hessian, rest, tuple(told))
    if neutral:
        verdict = _neutral(found, reduced, kernel, neutral)
        return Stability(None, verdict, values, hessian, rest, tuple(told))
    damped = np.linalg.eigvalsh(stiff[1])[0] > _ZERO * _size(stiff[1])
    verdict = f"{'asymptotically ' if damped else ''}stable, the potential energy has a minimum"
    return Stability(True, verdict, values, hessian, rest, tuple(told))


def _by_eigenvalues(
    found: Equilibrium,
    reduced: Reduced,
    values: np.ndarray,
    zeros: list[int],
    kernel: np.ndarray,
    told: list[str],
) -> Stability:
    size, neutral = _size(values), sum(zeros)
    fastest = float(np.max(values.real, initial=-np.inf))
    if fastest > _GROWS * size:
        kind = "oscillating" if abs(values[np.argmax(values.real)].imag) > _GROWS * size else "monotonously"
        verdict = f"unstable, deviations grow {kind}, by e in {1 / fastest:.3g}"
        return Stability(False, verdict, values, None, neutral, tuple(told))
    if zeros and not _family(found, reduced, kernel):
        verdict = "not decided by the linearisation: an eigenvalue is zero, as at a fold or a branch point"
        return Stability(None, verdict, values, None, neutral, tuple(told))
    if len(zeros) > 1 and not found.moving:
        verdict = "neutral: what is pushed drifts away at constant speed"
        return Stability(None, verdict, values, None, neutral, tuple(told))
    if not values.size:
        return Stability(None, "neutral: nothing brings it back", values, None, neutral, tuple(told))
    if fastest < -_GROWS * size:
        verdict = "asymptotically stable" + (", but for where on the family it is" if zeros else "")
        return Stability(True, verdict, values, None, neutral, tuple(told))
    verdict = "stable to first order, with undamped oscillations"
    return Stability(True, verdict, values, None, neutral, tuple(told))


def _count(zeros: list[int]) -> str:
    many = sum(zeros)
    return f"{many} eigenvalue{'s are' if many > 1 else ' is'} zero"


def _neutral(found: Equilibrium, reduced: Reduced, kernel: np.ndarray, count: int) -> str:
    """What a Hessian with zero eigenvalues means, with names of what moves along."""
    names = _moving_names(found, reduced, kernel)
    if _family(found, reduced, kernel):
        return f"neutral in {names}, which nothing brings back; stable in all else"
    what = "s are" if count > 1 else " is"
    return (
        f"not decided by second derivatives: {count} eigenvalue{what} zero along {names}, as at a fold or a "
        "branch point"
    )


def _moving_names(found: Equilibrium, reduced: Reduced, kernel: np.ndarray) -> str:
    k = len(found.system.states)
    names: dict[str, None] = {}
    for column in kernel.T:
        xi, _, sigma = reduced.tangent.deviations(column, k)
        for words, part in ((found.system.names, xi), (list(found.system.states), sigma)):
            size = _size(part)
            for name, x in zip(words, part, strict=True):
                if size and abs(x) > 0.3 * size:
                    names[name] = None
    chosen = list(names)
    return ", ".join(chosen[:4]) + (" …" if len(chosen) > 4 else "") or "some direction"


def _family(found: Equilibrium, reduced: Reduced, kernel: np.ndarray) -> bool:
    """Whether equilibria go on in all directions in which the linearisation has the eigenvalue zero."""
    problem, x = found._problem, found._x
    at, k = problem.layout, len(found.system.states)
    reach = max(_size(found.q), _size(found.s), 1e-3)
    for column in kernel.T:
        xi, _, sigma = reduced.tangent.deviations(column, k)
        z = np.zeros(x.size)
        z[at["q"]], z[at["s"]] = xi, sigma
        length = np.linalg.norm(z)
        if length < 1e-6:
            continue
        z *= 1e-3 * reach / length
        try:
            there = newton(problem, x + z, problem.units(x), problem.scaled)
        except HolonomeError:
            return False
        if not there.converged or (there.x - x) @ z < 0.9 * (z @ z):
            return False
    return True


def _of_some_modes(found: Equilibrium) -> Stability:
    """Of a large system only the modes nearest to zero are looked at."""
    from holonome.analysis.pencil import Pencil

    try:
        values, _ = Pencil.at(found.system, found.place, found.lam, ()).modes(12, 0.0)
    except (HolonomeError, RuntimeError) as error:
        return Stability(None, f"stability not known ({error})", np.zeros(0, complex), None, 0)
    size = _size(values)
    if np.max(values.real) > 1e-6 * size:
        return Stability(False, "unstable", values, None, 0)
    told = ("of a large system the 12 modes nearest to zero were looked at",)
    return Stability(None, "no instability among the slowest modes", values, None, 0, told)

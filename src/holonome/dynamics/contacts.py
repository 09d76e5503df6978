"""What the contacts of a system are at a state: gaps, velocities along and across, and how these answer to
impulses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import casadi as ca
import numpy as np
from numba import njit

from holonome.algebra.least_squares import solved
from holonome.dynamics.kernels import kernels, over_points
from holonome.equations.model import Model
from holonome.errors import ModelError
from holonome.problem.system import System

_DEPENDENT = 1e-13
"""Singular values that count as zero."""


class Law(NamedTuple):
    """Coefficients of each contact."""

    restitution: np.ndarray
    friction: np.ndarray
    static: np.ndarray


class Contacts(NamedTuple):
    """Contacts at some states.  Rows of ``J`` belong to velocities ``u = J v + …``: of each contact first its
    gap, then those along it, where they begin at ``begins``; ``gamma`` is u′ − J v′.
    """

    gap: np.ndarray
    u: np.ndarray
    gamma: np.ndarray
    J: np.ndarray
    law: Law
    begins: np.ndarray

    def rows(self, contact: int) -> slice:
        """The rows of a contact."""
        ends = np.append(self.begins[1:], self.u.shape[-1])
        return slice(int(self.begins[contact]), int(ends[contact]))


def expressions(system: System) -> tuple[list[ca.SX], list[ca.SX], list[list[ca.SX]]]:
    """Gaps, slip velocities and coefficients of each contact."""
    found = system.traced_functions
    count = len(system.contacts)
    gaps = [found[f"contacts[{i}].gap"] for i in range(count)]
    slips = [found.get(f"contacts[{i}].slip", ca.SX(0, 1)) for i in range(count)]
    laws = []
    for i in range(count):
        e, mu = (found[f"contacts[{i}].{part}"] for part in ("restitution", "friction"))
        laws.append([e, mu, found.get(f"contacts[{i}].static_friction", mu)])
    return gaps, slips, laws


def _column(system: System, model: Model) -> tuple[ca.SX, ca.SX, ca.SX, None]:
    gaps, slips, laws = expressions(system)
    velocities = []
    for gap, slip in zip(gaps, slips, strict=True):
        rate = model.by_q(gap) @ model.v + model.by_t(gap)
        velocities += [rate, slip]
    u = ca.vertcat(*velocities)
    gamma, J = model.along_the_motion(u), ca.jacobian(u, model.v)
    law = ca.vertcat(*(value for values in zip(*laws, strict=True) for value in values))
    out = ca.vertcat(*gaps, u, gamma, ca.vec(ca.densify(J).T), law)
    return model.y, ca.SX(0, 1), ca.densify(out), None


def contact_kernel(system: System) -> int:
    """Address of the kernel for gaps, u, γ, J by rows, and coefficients by kinds."""
    return system.kernel("contacts", lambda model: _column(system, model)).address


def begins_of(system: System) -> np.ndarray:
    """Where the rows of each contact begin, and where the last ones end."""
    return np.cumsum([0, *(1 + directions for directions in system.contacts.directions)])


def contacts_along(system: System, t: np.ndarray, states: np.ndarray) -> Contacts:
    """The contacts at many states, one a row; what cannot be evaluated is NaN."""
    count, n, begins = len(system.contacts), system.n, begins_of(system)
    rows = int(begins[-1])
    out = np.full((t.size, count + 2 * rows + rows * n + 3 * count), np.nan)
    over_points(contact_kernel(system), 0, kernels(system).context(system), t, states, out, 1)
    first = count + 2 * rows
    law = first + rows * n
    return Contacts(
        out[:, :count],
        out[:, count : count + rows],
        out[:, count + rows : first],
        out[:, first:law].reshape(-1, rows, n),
        Law(*(out[:, law + k * count : law + (k + 1) * count] for k in range(3))),
        begins[:-1],
    )


def explain_refusal(system: System, t: float, y: np.ndarray) -> None:
    """Raise what makes contacts unusable at a state: a number that is not finite, or a wrong coefficient."""
    found = contacts_along(system, np.array([t]), y[np.newaxis])
    numbers = found.gap.sum() + found.u.sum() + found.gamma.sum() + found.J.sum()
    if not np.isfinite(numbers):
        pairs = zip(system.contacts.names, found.gap[0], strict=True)
        names = [name for name, gap in pairs if not np.isfinite(gap)]
        raise ModelError(f"contacts: {', '.join(names) or 'one of them'} is not finite at t = {t:.6g}")
    law = Law(*(part[0] for part in found.law))
    for name, e, mu, static in zip(system.contacts.names, *law, strict=True):
        if not 0 <= e <= 1:
            raise ModelError(f"contacts: restitution of {name} is {e:g}; it must be from 0 to 1")
        if not 0 <= mu <= static:
            raise ModelError(
                f"contacts: friction of {name} is {mu:g} while it slides and {static:g} while it sticks; "
                "give numbers that are not negative, the second not below the first"
            )


@njit(cache=True)
def constrained(M, C, forces, along):
    """Accelerations on constraints by forces, columns, the first of which has C a = along:

    M a + Cᵀ λ = f,    C a = along (0 for further columns).
    """
    n, m = M.shape[0], C.shape[0]
    matrix, right = np.zeros((n + m, n + m)), np.zeros((n + m, forces.shape[1]))
    matrix[:n, :n], right[:n], heaviest = M, forces, math.sqrt(max(np.max(np.abs(M)), 1e-300))
    for i in range(m):
        scale = heaviest / max(math.sqrt(np.sum(C[i] * C[i])), 1e-300)
        matrix[n + i, :n] = matrix[:n, n + i] = scale * C[i]
        right[n + i, 0] = along[i] * scale
    return solved(matrix, right, _DEPENDENT, math.inf)[:n].copy()

"""What the contacts of a system are at a state: gaps, velocities along and across, and how these answer to
impulses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from holonome.dynamics.evaluation import what_failed
from holonome.dynamics.kernels import kernels, over_points
from holonome.equations.model import Model
from holonome.errors import ModelError
from holonome.problem.system import System


class Law(NamedTuple):
    """Coefficients of each contact."""

    restitution: np.ndarray
    friction: np.ndarray
    static: np.ndarray


class Contacts(NamedTuple):
    """Contacts at a state.  Rows of ``J`` belong to velocities ``u = J v + …``: of each contact first its
    gap, then those along it, where they begin at ``begins``; ``gamma`` is u′ − J v′.
    """

    gap: np.ndarray
    u: np.ndarray
    gamma: np.ndarray
    J: np.ndarray
    law: Law
    begins: np.ndarray

    @property
    def normal(self) -> np.ndarray:
        """Rates of the gaps."""
        return self.u[self.begins]

    def rows(self, contact: int) -> slice:
        """The rows of a contact."""
        ends = np.append(self.begins[1:], self.u.shape[-1])
        return slice(int(self.begins[contact]), int(ends[contact]))

    def part(self, chosen: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """The rows of some contacts, and where each begins among them."""
        rows = [np.arange(self.u.size)[self.rows(i)] for i in chosen]
        return np.concatenate(rows), np.cumsum([0, *map(len, rows[:-1])])


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


def contacts_at(system: System, t: float, y: np.ndarray) -> Contacts:
    """The contacts of a system at a state."""
    found = contacts_along(system, np.array([t]), y[np.newaxis])
    if not np.isfinite(found.gap.sum() + found.u.sum() + found.gamma.sum() + found.J.sum()):
        names = [
            name for name, gap in zip(system.contacts.names, found.gap[0], strict=True) if gap - gap != 0
        ]
        raise ModelError(f"contacts: {', '.join(names) or 'one of them'} is not finite at t = {t:.6g}")
    law = Law(*(part[0] for part in found.law))
    _require_sensible(system, law)
    return Contacts(found.gap[0], found.u[0], found.gamma[0], found.J[0], law, found.begins)


def contacts_along(system: System, t: np.ndarray, states: np.ndarray) -> Contacts:
    """The contacts at many states, one a row; what cannot be evaluated is NaN."""
    count, n = len(system.contacts), system.n
    sizes = 1 + np.array(system.contacts.directions, dtype=int)
    rows = int(np.sum(sizes))
    kernel = system.kernel("contacts", lambda model: _column(system, model))
    out = np.full((t.size, count + 2 * rows + rows * n + 3 * count), np.nan)
    over_points(kernel.address, 0, kernels(system).context(system), t, states, out, 1)
    first = count + 2 * rows
    law = first + rows * n
    return Contacts(
        out[:, :count],
        out[:, count : count + rows],
        out[:, count + rows : first],
        out[:, first:law].reshape(-1, rows, n),
        Law(*(out[:, law + k * count : law + (k + 1) * count] for k in range(3))),
        np.cumsum([0, *sizes[:-1]]),
    )


def _require_sensible(system: System, law: Law) -> None:
    e, mu, static = law
    if e.min() >= 0 and e.max() <= 1 and mu.min() >= 0 and (static - mu).min() >= 0:
        return
    for name, e, mu, static in zip(system.contacts.names, *law, strict=True):
        if not 0 <= e <= 1:
            raise ModelError(f"contacts: restitution of {name} is {e:g}; it must be from 0 to 1")
        if not 0 <= mu <= static:
            raise ModelError(
                f"contacts: friction of {name} is {mu:g} while it slides and {static:g} while it sticks; "
                "give numbers that are not negative, the second not below the first"
            )


class Answer(NamedTuple):
    """How the rows of `Contacts` answer: u′ = A x + b, and Δv = ``mobility`` x, to forces x along them."""

    A: np.ndarray
    b: np.ndarray
    mobility: np.ndarray
    M: np.ndarray


def answer_of(system: System, t: float, y: np.ndarray, contacts: Contacts) -> Answer:
    """The accelerations of the contacts by forces along them, without contacts in b."""
    compiled = kernels(system)
    pieces = compiled.evaluate_pieces(compiled.context(system), t, y)
    if pieces is None or not all(np.isfinite(value.sum()) for value in pieces.values()):
        raise ModelError(what_failed(system, t, y))
    M, C, n = pieces["M"], pieces["C"], system.n
    right = np.column_stack([pieces["f"], contacts.J.T])
    found = constrained(M, C, right, -pieces["gamma"])
    a, mobility = found[:, 0], found[:, 1:]
    A = contacts.J @ mobility
    return Answer((A + A.T) / 2, contacts.J @ a + contacts.gamma, mobility, M.reshape(n, n))


def constrained(M: np.ndarray, C: np.ndarray, forces: np.ndarray, along: Any = 0.0) -> np.ndarray:
    """Accelerations on constraints by forces, one or several as columns, the first of which has C a = along:

    M a + Cᵀ λ = f,    C a = along (0 for further columns).
    """
    n, m = M.shape[0], C.shape[0]
    right = np.zeros((n + m, forces[0].size))
    right[:n] = forces.reshape(n, -1)
    matrix = M
    if m:
        scale = np.sqrt(np.max(np.abs(M), initial=1e-300)) / np.maximum(np.linalg.norm(C, axis=1), 1e-300)
        rows = C * scale[:, np.newaxis]
        right[n:, 0] = along * scale
        matrix = np.block([[M, rows.T], [rows, np.zeros((m, m))]])
    try:
        found = np.linalg.solve(matrix, right)
        if np.abs(matrix @ found - right).max() <= 1e-10 * np.abs(right).max():
            return found[:n].reshape(forces.shape)
    except np.linalg.LinAlgError:
        pass
    return np.linalg.lstsq(matrix, right, rcond=1e-13)[0][:n].reshape(forces.shape)

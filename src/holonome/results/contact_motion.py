"""A contact along a run: its gap, its forces and what it does."""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.dynamics.contacts import contacts_along
from holonome.errors import ModelError
from holonome.results.impacts import ContactMotion


def contact_motion(solution: Any, name: str) -> ContactMotion:
    """The motion of one contact."""
    names = solution.system.contacts.names
    if name not in names:
        there = ", ".join(names) or "none; give the system contacts=[...]"
        raise ModelError(f"there is no contact {name!r}; the contacts are {there}")
    number, parts, statuses = names.index(name), [], []
    pieces = zip(solution.pieces, solution.parts(), solution.multipliers_of_pieces, strict=True)
    for piece, (system, t, states), lam in pieces:
        along = contacts_along(system, t, states)
        rows = along.rows(number)
        slip = along.u[:, rows][:, 1:].T
        forces = piece.solved.contact_forces(number, lam, slip, along.law.friction[:, number])
        parts.append((along.gap[:, number], along.u[:, rows.start], slip, *forces))
        statuses += [piece.solved.statuses[number]] * t.size
    if not parts:
        directions = solution.system.contacts.directions[number]
        none, along = np.zeros(0), np.zeros((directions, 0))
        return ContactMotion(name, none, none, along, none, along, [])
    gap, rate, slip, force, friction = (
        np.concatenate(values, axis=-1) for values in zip(*parts, strict=True)
    )
    return ContactMotion(name, gap, rate, slip, force, friction, statuses)


def contact_power(solution: Any) -> np.ndarray:
    """The power of all contacts at each point."""
    names, system = solution.system.contacts.names, solution.system
    power = np.zeros(solution.t.size)
    if not names:
        return power
    found = [contact_motion(solution, name) for name in names]
    begin = 0
    for part, t, states in solution.parts():
        here = slice(begin, begin + t.size)
        along, begin = contacts_along(part, t, states), here.stop
        x = np.vstack([row for one in found for row in (one.force[here], *one.friction[:, here])])
        v = states[:, system.n : 2 * system.n]
        power[here] = np.einsum("rk,krn,kn->k", x, along.J, v)
    return power

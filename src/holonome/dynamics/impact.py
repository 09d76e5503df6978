"""Impacts: what becomes of the velocities where gaps close, several of them at once.

Of the contacts that approach, each is reflected with its coefficient of restitution, all of them together,
and that is repeated until none approaches any more (generalised reflections): what touches without
approaching is left alone at first, so that a blow passes through a row of balls, and what approaches at the
same time is treated alike.  Newton's hypothesis relates velocities, u⁺ = −e u⁻, Poisson's the impulses of
compression and expansion.  Impulses obey the same laws of friction as forces (:mod:`complementarity`).

References
----------
C. Glocker, F. Pfeiffer, Multiple impacts with friction in rigid multibody systems, Nonlinear Dynamics 7
(1995).
B. Smith, D. M. Kaufman, E. Vouga, R. Tamstorf, E. Grinspun, Reflections on simultaneous impact, ACM Trans.
Graph. 31 (2012).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holonome.dynamics.complementarity import solve_contacts
from holonome.dynamics.contacts import Contacts

_ROUNDS, _APPROACHES = 200, 1e-11


def impulses(
    A: np.ndarray, contacts: Contacts, touching: np.ndarray, e: np.ndarray, poisson: Sequence[bool]
) -> tuple[np.ndarray, np.ndarray]:
    """Impulses along the rows of the contacts, and the velocities of these after them.

    Parameters
    ----------
    A
        Change of the velocities by impulses.
    contacts
        The contacts before the impact.
    touching
        Numbers of those that touch.
    e
        Coefficients of restitution, of all contacts.
    poisson
        Whether these are meant in Poisson's sense.
    """
    u, total = contacts.u.copy(), np.zeros(contacts.u.size)
    small = _APPROACHES * np.max(np.abs(u[contacts.begins[touching]]), initial=0.0)
    for _ in range(_ROUNDS):
        approaching = [i for i in touching if u[contacts.begins[i]] < -small]
        if not approaching:
            return total, u
        x = _reflection(A, contacts, u, approaching, e, poisson)
        u, total = u + A @ x, total + x
    x = _reflection(A, contacts, u, list(touching), np.zeros(e.size), [False] * e.size)
    return total + x, u + A @ x


def _reflection(A, contacts: Contacts, u, chosen: list[int], e, poisson) -> np.ndarray:
    """Impulses of these contacts, all at once."""
    rows, begins = contacts.part(chosen)
    part, mu = A[np.ix_(rows, rows)], contacts.law.friction[chosen]
    nothing, none = np.zeros((len(chosen), 2)), np.zeros(len(chosen), dtype=bool)
    newton = np.array([0.0 if poisson[i] else e[i] for i in chosen])
    b = u[rows].copy()
    b[begins] *= 1 + newton
    x = solve_contacts(part, b, begins, mu, nothing, none).x
    expansion = np.array([e[i] if poisson[i] else 0.0 for i in chosen]) * x[begins]
    if np.any(expansion > 0):
        given = np.zeros(x.size)
        given[begins] = expansion
        b += part @ (x + given)
        x = x + given + solve_contacts(part, b, begins, mu, nothing, none, expansion).x
    out = np.zeros(u.size)
    out[rows] = x
    return out

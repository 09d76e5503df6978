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

import numpy as np
from numba import njit

from holonome.dynamics.complementarity import solve_contacts

_ROUNDS, _APPROACHES = 200, 1e-11


@njit(cache=True)
def impulses(A, u, begins, touching, e, mu, poisson, total):
    """Find impulses along the rows of the contacts, ``total``, and let the velocities ``u`` be those after
    them; False where no impulses satisfy the law of friction.

    Parameters
    ----------
    A
        Change of the velocities by impulses.
    u
        The velocities along the rows, before and then after the impact.
    begins
        Where the rows of each contact begin, and where the last ones end.
    touching
        Whether each contact touches.
    e, mu
        Coefficients of restitution and friction, of all contacts.
    poisson
        Whether restitution is meant in Poisson's sense.
    """
    total[:], largest = 0.0, 0.0
    for i in np.flatnonzero(touching):
        largest = max(largest, abs(u[begins[i]]))
    for _ in range(_ROUNDS):
        approaching = touching & (u[begins[:-1]] < -_APPROACHES * largest)
        if not np.any(approaching):
            return True
        if not _reflect(A, u, begins, np.flatnonzero(approaching), e, mu, poisson, total):
            return False
    nothing = np.zeros(e.size)
    return _reflect(A, u, begins, np.flatnonzero(touching), nothing, mu, nothing > 0, total)


@njit(cache=True)
def rows_of(begins, chosen):
    """The rows of some contacts, and where each begins among them."""
    mine = np.zeros(chosen.size + 1, dtype=np.int64)
    for k in range(chosen.size):
        mine[k + 1] = mine[k] + begins[chosen[k] + 1] - begins[chosen[k]]
    rows = np.empty(mine[-1], dtype=np.int64)
    for k in range(chosen.size):
        for j in range(mine[k], mine[k + 1]):
            rows[j] = begins[chosen[k]] + j - mine[k]
    return rows, mine


@njit(cache=True)
def block(A, rows):
    """The rows and columns of these numbers."""
    part = np.empty((rows.size, rows.size))
    for i in range(rows.size):
        for j in range(rows.size):
            part[i, j] = A[rows[i], rows[j]]
    return part


@njit(cache=True)
def _reflect(A, u, begins, chosen, e, mu, poisson, total):
    """Add the impulses of these contacts, all at once."""
    rows, mine = rows_of(begins, chosen)
    part, friction, d = block(A, rows), mu[chosen], np.zeros((chosen.size, 2))
    sliding, status = np.zeros(chosen.size, dtype=np.bool_), np.zeros(chosen.size, dtype=np.int64)
    b, x, w, expansion = u[rows], np.zeros(rows.size), np.zeros(rows.size), np.zeros(chosen.size)
    for k in range(chosen.size):
        if not poisson[chosen[k]]:
            b[mine[k]] *= 1 + e[chosen[k]]
    if not solve_contacts(part, b, mine, friction, d, sliding, expansion, x, w, status):
        return False
    for k in range(chosen.size):
        if poisson[chosen[k]]:
            expansion[k] = e[chosen[k]] * x[mine[k]]
    if np.any(expansion > 0):
        for k in range(chosen.size):
            x[mine[k]] += expansion[k]
        b += part @ x
        more = np.zeros(rows.size)
        d[:] = 0.0
        if not solve_contacts(part, b, mine, friction, d, sliding, expansion, more, w, status):
            return False
        x += more
    for j in range(rows.size):
        total[rows[j]] += x[j]
        for i in range(u.size):
            u[i] += A[i, rows[j]] * x[j]
    return True

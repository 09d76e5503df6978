"""The structure of a differential-algebraic system: how often each equation must be differentiated.

The signature σ_ij is the order of the highest derivative of x_j in equation i, −∞ where x_j does not occur. A
transversal of largest value assigns an equation to each variable; the smallest offsets c, d ≥ 0 with

    d_j − c_i ≥ σ_ij,     with equality on the transversal,

say that equation i is differentiated c_i times and that x_j then occurs up to its derivative of order d_j
(Pryce 2001); the c_i are those that Pantelides' algorithm counts.  There are Σ d − Σ c degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

NOWHERE = -1
"""In a signature: the variable does not occur in the equation."""


@dataclass(frozen=True)
class Structure:
    """Offsets of a signature.

    Attributes
    ----------
    c
        How often each equation is differentiated.
    d
        Order of the highest derivative of each variable in the differentiated equations.
    equation
        The equation that is assigned to each variable.
    """

    c: tuple[int, ...]
    d: tuple[int, ...]
    equation: tuple[int, ...]

    @property
    def index(self) -> int:
        """The structural index: one more differentiation is needed where a variable has no derivative."""
        return max(self.c, default=0) + (0 in self.d)

    @property
    def freedoms(self) -> int:
        return sum(self.d) - sum(self.c)


def unmatched(signature: np.ndarray) -> tuple[list[int], list[int]]:
    """Equations and variables for which no partner is left; none if the structure is regular."""
    found = maximum_bipartite_matching(csr_matrix(signature > NOWHERE), perm_type="column")
    equations = [i for i in range(len(signature)) if found[i] < 0]
    return equations, sorted(set(range(signature.shape[1])) - set(found.tolist()))


def structure(signature: np.ndarray, least: Sequence[int] | None = None) -> Structure:
    """The smallest offsets of a regular signature; with ``least``, those with at least so many
    differentiations of each equation and a derivative of every variable.
    """
    n = len(signature)
    value = np.where(signature > NOWHERE, signature, -(n + 1) * (int(np.max(signature)) + 1.0))
    rows, columns = linear_sum_assignment(value, maximize=True)
    equation = np.empty(n, dtype=int)
    equation[columns] = rows
    c = np.zeros(n, dtype=int) if least is None else np.array(least, dtype=int)
    floor = 0 if least is None else 1
    while True:
        reach = np.where(signature > NOWHERE, signature + c[:, None], 0)
        d = np.maximum(np.max(reach, axis=0), floor)
        wanted = c.copy()
        wanted[equation] = d - signature[equation, np.arange(n)]
        if np.array_equal(wanted, c):
            return Structure(*(tuple(map(int, values)) for values in (c, d, equation)))
        c = wanted

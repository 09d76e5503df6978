"""The equations of a state that persists, and their exact sparse derivatives:

    Φ = ( M a + Cᵀ λ − f,  w,  g,  r )      of  (q, v, s, a, λ)  and of parameters,

where w are the constraints on the velocity level and r the rates of the first-order states.  Of an
equilibrium a = v = 0 and Φ = 0; in a steady motion a is what turns the velocities of unit quaternions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import scipy.sparse as sp

from holonome.analysis.given import Place
from holonome.dynamics.state import _motion_symbols, _total
from holonome.equations.model import Model
from holonome.errors import ModelError
from holonome.problem.system import System

LARGEST_FULL = 2000
"""Unknowns of Φ up to which its derivatives are full matrices."""


class Derivatives(NamedTuple):
    """Φ and its derivatives at a state."""

    value: np.ndarray
    matrix: Any  # full for small systems, sparse for large ones
    by_names: np.ndarray
    n: int
    m: int
    g: int
    k: int

    def rows(self, name: str) -> slice:
        """Where "balance", "w", "g" or "r" lie."""
        ends = np.cumsum([0, self.n, self.m, self.g, self.k])
        place = ("balance", "w", "g", "r").index(name)
        return slice(int(ends[place]), int(ends[place + 1]))

    def columns(self, name: str) -> slice:
        """Where "q", "v", "s", "a" or "lam" lie."""
        ends = np.cumsum([0, self.n, self.n, self.k, self.n, self.m])
        place = ("q", "v", "s", "a", "lam").index(name)
        return slice(int(ends[place]), int(ends[place + 1]))

    def block(self, rows: str, columns: str) -> sp.csc_matrix:
        """A block as a sparse matrix."""
        return sp.csc_matrix(self.matrix[self.rows(rows), self.columns(columns)])

    def full(self, rows: str, columns: str) -> np.ndarray:
        """A block as an array."""
        found = self.matrix[self.rows(rows), self.columns(columns)]
        return found.toarray() if sp.issparse(found) else found

    def of(self, rows: str) -> np.ndarray:
        return self.value[self.rows(rows)]


class _Pattern(NamedTuple):
    """The column of a kernel, and where its entries belong."""

    inputs: ca.SX
    column: ca.SX
    size: int
    rows: np.ndarray
    places: np.ndarray
    width: int


class Balance:
    """Φ of a system, also derived by parameters and inputs of these names."""

    def __init__(self, system: System, names: tuple[str, ...] = ()) -> None:
        self.names = names
        _require_traced(system, names)
        pattern = system.compiled.once(("balance", names), lambda: _pattern(system, names))
        self.pattern = pattern
        self.address = system.kernel(
            f"balance by {names}", lambda model: (model.y, pattern.inputs, pattern.column, None)
        ).address

    def at(self, system: System, here: Place, a: np.ndarray, lam: np.ndarray) -> Derivatives:
        pattern, n, k = self.pattern, system.n, len(system.states)
        further = np.concatenate([a, lam])[np.newaxis]
        out = here.at(system)._over(self.address, 0, pattern.column.numel(), further)[0]
        value, entries = out[: pattern.size], out[pattern.size :]
        shape = pattern.size, pattern.width
        own = 3 * n + k + system.m
        if own <= LARGEST_FULL:
            whole: Any = np.zeros(shape)
            whole[pattern.rows, pattern.places] = entries
            by_names = whole[:, own:]
        else:
            whole = sp.csc_matrix((entries, (pattern.rows, pattern.places)), shape=shape)
            by_names = whole[:, own:].toarray() if self.names else np.zeros((pattern.size, 0))
        return Derivatives(value, whole[:, :own], by_names, n, system.m, system.model.position_rows, k)


def _pattern(system: System, names: tuple[str, ...]) -> _Pattern:
    model = system.model
    a, lam = _motion_symbols(model)
    phi = _phi(model, a, lam)
    blocks = [_total(model, phi, x) for x in (model.q, model.v, model.s)]
    blocks += [ca.jacobian(phi, a), ca.jacobian(phi, lam)]
    blocks += [_total(model, phi, model.p[system.parameters.place(name)]) for name in names]
    matrix = ca.sparsify(ca.horzcat(*blocks))
    rows, places = (np.array(x, dtype=int) for x in matrix.sparsity().get_triplet())
    entries: Any = matrix.nonzeros()
    column = ca.vertcat(phi, *entries)
    return _Pattern(ca.vertcat(a, lam), column, phi.numel(), rows, places, matrix.shape[1])


def _phi(model: Model, a: ca.SX, lam: ca.SX) -> ca.SX:
    """Φ, in which forces that depend on λ depend on the symbol for it."""
    phi = ca.densify(ca.vertcat(model.M @ a + model.C.T @ lam - model.f, model.w, model.g, model.r))
    return ca.substitute(phi, model.lam, lam) if model.lam.numel() else phi


def _require_traced(system: System, names: tuple[str, ...]) -> None:
    """Functions that are called have no derivatives by parameters."""
    for function in system.functions.values():
        asked = [kind for kind in ("p", "u") if kind in function.arguments]
        for name in names:
            kind = "u" if name in system.parameters.inputs else "p"
            if function.supplied is not None and kind in asked:
                raise ModelError(
                    f"{function.role}: how it depends on {name!r} is not known, since the function cannot be "
                    f"traced ({function.reason}); write it with NumPy functions"
                )

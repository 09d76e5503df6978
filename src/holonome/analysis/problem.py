"""The equations of an equilibrium or a steady motion, in the unknowns x = (q, v, s, λ, φ):

    M a + Cᵀ λ = f,   g = 0,   r = 0,       and in motion   w = 0,   held velocities,

with a = 0, or what turns unit quaternions, and further unknowns φ: free parameters and inputs, with as many
held positions.  At rest v is zero and no unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
import scipy.sparse as sp

from holonome.analysis.balance import Balance, Derivatives
from holonome.analysis.given import Place, named_numbers
from holonome.analysis.newton import LARGEST_DENSE, null_space
from holonome.analysis.symmetry import steady_acceleration
from holonome.equations.program import Program
from holonome.problem.system import System

_VANISHES = 1e-13
"""Sizes up to which nothing can be said about units."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Further equations, expressions of the state, and what messages call them."""

    names: tuple[str, ...]
    function: ca.Function

    def __reduce__(self) -> tuple:
        return _rows_of, (self.names, Program.of(self.function))

    def at(self, system: System, here: Place) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, and derivatives by q and v."""
        found = self.function(here.t, here.q, here.v, system.parameters.flat, here.s)
        value, by_q, by_v = (np.array(x) for x in found)
        shape = len(self.names), system.n
        return value.ravel(), by_q.reshape(shape), by_v.reshape(shape)


def _rows_of(names: tuple[str, ...], program: Program) -> Rows:
    """Rows from a pickle."""
    return Rows(names, program.function("rows"))


def rows(system: System, named: Sequence[tuple[str, ca.SX]]) -> Rows:
    symbols = system.symbols
    value = ca.densify(ca.vertcat(ca.SX(0, 1), *(expression for _, expression in named)))
    inputs = [symbols[name] for name in ("t", "q", "v", "p", "s")]
    parts = [
        value,
        ca.densify(ca.jacobian(value, symbols["q"])),
        ca.densify(ca.jacobian(value, symbols["v"])),
    ]
    return Rows(tuple(name for name, _ in named), ca.Function("rows", inputs, parts))


def held(system: System, argument: str, values: Mapping[str, Any], t: float) -> list[tuple[str, ca.SX]]:
    """What vanishes where coordinates, joints or bodies have these positions or velocities."""
    own = getattr(system, "held", None)
    if own is not None:
        return own(argument, values, t)
    numbers = named_numbers(argument, system, values, states=False)
    symbol = system.symbols["v" if argument == "speed" else "q"]
    return [(name, symbol[system.names.index(name)] - value) for name, value in numbers.items()]


@dataclass(frozen=True, eq=False)
class Problem:
    """What is solved: a system, what moves, what is held and what is free."""

    system: System
    t: float
    moving: bool
    balance: Balance
    free: tuple[str, ...]
    speeds: Rows
    positions: Rows
    every_speed: Rows  # also of those that are only a guess
    target: np.ndarray  # the values of ``positions``

    def __reduce__(self) -> tuple:
        """Pickles hold no compiled equations."""
        further = self.speeds, self.positions, self.every_speed, self.target
        return _again, (self.system, self.t, self.moving, self.free, *further)

    @property
    def layout(self) -> dict[str, slice]:
        """Where the unknowns lie."""
        system = self.system
        sizes = {
            "q": system.n,
            "v": system.n * self.moving,
            "s": len(system.states),
            "lam": system.m,
            "free": sum(np.size(system.parameters[name]) for name in self.free),
        }
        ends = np.cumsum([0, *sizes.values()])
        return {name: slice(int(a), int(b)) for name, a, b in zip(sizes, ends[:-1], ends[1:], strict=True)}

    @property
    def size(self) -> int:
        return self.layout["free"].stop

    @property
    def scaled(self) -> slice:
        """Unknowns whose sizes do not matter: the multipliers."""
        return self.layout["lam"]

    def place(self, x: np.ndarray) -> Place:
        at = self.layout
        v = x[at["v"]] if self.moving else np.zeros(self.system.n)
        return Place(self.t, x[at["q"]], v, x[at["s"]])

    def system_at(self, x: np.ndarray) -> System:
        """The system with the values of the free parameters."""
        if not self.free:
            return self.system
        return self.system.with_parameters(**self.values(x))

    def values(self, x: np.ndarray) -> dict[str, Any]:
        """Free parameters by name."""
        found, begin = {}, self.layout["free"].start
        for name in self.free:
            old = np.asarray(self.system.parameters[name])
            part = x[begin : begin + old.size].reshape(old.shape)
            found[name] = float(part) if old.shape == () else part
            begin += old.size
        return found

    def with_values(self, values: Mapping[str, Any]) -> Problem:
        return replace(self, system=self.system.with_parameters(**values))

    def unknowns(self, here: Place, lam: np.ndarray) -> np.ndarray:
        v = here.v if self.moving else np.zeros(0)
        free = [np.ravel(self.system.parameters[name]) for name in self.free]
        return np.concatenate([here.q, v, here.s, lam, *free])

    def derivatives(self, x: np.ndarray) -> Derivatives:
        """Φ and its derivatives, with a as it must be."""
        system, here = self.system_at(x), self.place(x)
        a, _, _ = steady_acceleration(system, here.q, here.v)
        return self.balance.at(system, here, a, x[self.layout["lam"]])

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, Any]:
        """All equations and their derivatives by the unknowns."""
        found, here, system = self.derivatives(x), self.place(x), self.system_at(x)
        chosen = self._rows_kept(found)
        value, further = self._further(system, here, found)
        R = np.concatenate([found.value[chosen], value])
        matrix = found.matrix
        by_q, by_v = matrix[:, found.columns("q")], matrix[:, found.columns("v")]
        if self.moving:
            _, a_q, a_v = steady_acceleration(system, here.q, here.v)
            by_a = matrix[:, found.columns("a")]
            if sp.issparse(matrix):
                a_q, a_v = sp.csc_matrix(a_q), sp.csc_matrix(a_v)
            by_q, by_v = by_q + by_a @ a_q, by_v + by_a @ a_v
        blocks = [by_q, *([by_v] if self.moving else []), matrix[:, found.columns("s")]]
        blocks += [matrix[:, found.columns("lam")], found.by_names]
        if not sp.issparse(matrix) and self.size <= LARGEST_DENSE:
            return R, np.vstack([np.hstack(blocks)[chosen], further])
        whole: Any = sp.hstack([sp.csc_matrix(block) for block in blocks], format="csr")
        J = whole[chosen]
        return R, sp.vstack([J, sp.csr_matrix(further)], format="csc")

    def _rows_kept(self, found: Derivatives) -> np.ndarray:
        """Rows of Φ that count: at rest without w, in motion without states that only count turns."""
        names = ("balance", "w", "g", "r") if self.moving else ("balance", "g", "r")
        kept = [np.arange(found.rows(name).start, found.rows(name).stop) for name in names]
        counted = list(getattr(self.system, "counted_turns", ()))
        kept[-1] = np.delete(kept[-1], counted)
        return np.concatenate(kept)

    def _further(self, system: System, here: Place, found: Derivatives) -> tuple[np.ndarray, np.ndarray]:
        """Held positions and velocities; velocities that nothing determines are zero."""
        at, parts = self.layout, []
        value, by_q, _ = self.positions.at(system, here)
        parts.append((value - self.target, by_q, np.zeros_like(by_q)))
        if self.moving:
            parts.append(self.speeds.at(system, here))
            _, _, of_speeds = self.every_speed.at(system, here)
            N = null_space(np.vstack([found.full("w", "v"), of_speeds]))
            parts.append((N.T @ here.v, np.zeros(N.T.shape), N.T))
        values = np.concatenate([part[0] for part in parts])
        J = np.zeros((values.size, self.size))
        J[:, at["q"]] = np.vstack([part[1] for part in parts])
        if self.moving:
            J[:, at["v"]] = np.vstack([part[2] for part in parts])
        return values, J

    def units(self, x: np.ndarray) -> np.ndarray:
        """Typical sizes of the unknowns, by kind."""
        found = np.ones(x.size)
        for part in self.layout.values():
            size = float(np.max(np.abs(x[part]), initial=0.0))
            found[part] = size if size > _VANISHES else 1.0
        return found


def _again(system: System, t: float, moving: bool, free: tuple[str, ...], *further: Any) -> Problem:
    """A problem from a pickle."""
    return Problem(system, t, moving, Balance(system, free), free, *further)

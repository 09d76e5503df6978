"""What is evaluated at the points of a run when first asked for: multipliers, rates, residuals, energy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from holonome.dynamics.kernels import Kernels, dense_derivative, dense_multipliers, kernels, over_points
from holonome.locks import cached_property
from holonome.problem.system import System
from holonome.results.frozen import Result
from holonome.results.invariants import false_invariants
from holonome.results.pieces import Piece
from holonome.results.stairs import Stairs, inputs_of
from holonome.tracing import Namespace


class Evaluated(Result):
    """Quantities of a run with a system, times, states and pieces."""

    @property
    def _kernels(self) -> Kernels:
        return kernels(self.system)

    @property
    def _own_states(self) -> np.ndarray:
        """(points, state): what kernels are given, without multipliers."""
        return np.ascontiguousarray(self.states[:, : self.system.state_size])

    def over(self, address: int, size: int, dense: int = 0) -> np.ndarray:
        """The values of a kernel of the system at all points, (size, points)."""
        parts = [_over_part(system, address, size, dense, *rest) for system, *rest in self.parts()]
        return np.concatenate(parts, axis=1) if parts else np.zeros((size, 0))

    def parts(self, solved: bool = False) -> Iterator[tuple[System, np.ndarray, np.ndarray]]:
        """For each piece the system, or the one that was solved, with its times and states."""
        states, pieces = self._own_states, self.pieces or (Piece(0, self.system, self.system),)
        ends = [*(piece.begin for piece in pieces[1:]), self.t.size]
        for piece, end in zip(pieces, ends, strict=True):
            rows = slice(piece.begin, end)
            yield piece.solved if solved else piece.system, self.t[rows], states[rows]

    def solved_at(self, point: int) -> System:
        """The system that was solved from this point on."""
        found = self.system
        for piece in self.pieces:
            found = piece.solved if piece.begin <= point else found
        return found

    @cached_property
    def parameter_values(self) -> np.ndarray:
        """Parameters, followed by the inputs, at each point, (values, points)."""
        if not self.pieces:
            return np.tile(self.system.parameters.flat[:, None], self.t.size)
        values = [np.tile(system.parameters.flat[:, None], t.size) for system, t, _ in self.parts()]
        return np.concatenate(values, axis=1)

    @cached_property
    def u(self) -> Any:
        """The inputs at each point, by name."""
        layout = self.system.parameters.layout_of("u")
        return Namespace(
            {
                name: self.parameter_values[offset : offset + math.prod(shape)].reshape(*shape, -1)
                for name, (shape, offset) in layout.items()
            }
        )

    @cached_property
    def inputs(self) -> dict[str, Stairs]:
        """When inputs changed, and to what, by name."""
        return inputs_of(self)

    @cached_property
    def lam(self) -> np.ndarray:
        if self.states.shape[1] > self.system.state_size:
            return self.states[:, self.system.state_size :].T
        parts = zip(self.parts(solved=True), self.multipliers_of_pieces, strict=True)
        found = [system.own_multipliers(lam) for (system, _, _), lam in parts]
        return np.concatenate(found, axis=1) if found else np.zeros((self.system.m, 0))

    @cached_property
    def multipliers_of_pieces(self) -> list[np.ndarray]:
        """Of each piece the multipliers of what was solved, those of closed contacts among them."""
        return [
            _over_part(system, kernels(system).multipliers, system.m, dense_multipliers.address, *rest)
            for system, *rest in self.parts(solved=True)
        ]

    @cached_property
    def rates(self) -> np.ndarray:
        """Accelerations, followed by the rates of the first-order states."""
        size, found = self.system.state_size, []
        for system, *rest in self.parts(solved=True):
            address = kernels(system).derivative
            found.append(_over_part(system, address, size, dense_derivative.address, *rest)[self.system.n :])
        return np.concatenate(found, axis=1) if found else np.zeros((size - self.system.n, 0))

    @property
    def a(self) -> np.ndarray:
        return self.rates[: self.system.n]

    @cached_property
    def _residuals(self) -> np.ndarray:
        pieces, rows = self.pieces, self._kernels.position_rows + self.system.m
        if all(type(piece.solved) is type(piece.system) for piece in pieces):
            return self.over(self._kernels.residuals, rows)
        address, found = self._kernels.residuals, []
        for piece, (system, *rest) in zip(pieces, self.parts(), strict=True):
            found.append(piece.solved.own_residuals(_over_part(system, address, rows, 0, *rest)))
        return np.concatenate(found, axis=1)

    @property
    def g(self) -> np.ndarray:
        """Residuals of the position constraints, (rows, points); NaN where one is released."""
        return self._residuals[: self._kernels.position_rows]

    @property
    def gv(self) -> np.ndarray:
        """Residuals on the velocity level, G v + g_t and A v − b, (rows, points)."""
        return self._residuals[self._kernels.position_rows :]

    @cached_property
    def w(self) -> np.ndarray:
        """Unknowns, (unknowns, points)."""
        return self.over(self._kernels.unknowns, len(self.system.unknowns))

    @cached_property
    def invariant(self) -> np.ndarray:
        """Values of the invariants, (invariants, points)."""
        return self._invariants_and_rates[0]

    @cached_property
    def _invariants_and_rates(self) -> np.ndarray:
        return self._kernels.invariants_along(self.system, self.t, self._own_states)

    def false_invariants(self) -> list[int]:
        """Entries of ``invariant`` that would change somewhere along the motion without projection."""
        return false_invariants(self) if self.system.invariant_count else []

    @cached_property
    def energy(self) -> np.ndarray | None:
        """Kinetic and potential energy together; None if the system has no potential."""
        return self.over(self._kernels.energy, 1)[0] if self.system.has_energy else None

    @property
    def energy_change(self) -> float:
        """Largest change of the energy since the first point; NaN if there is no other, or no potential."""
        if self.energy is None or self.t.size < 2:
            return np.nan
        return float(np.max(np.abs(self.energy - self.energy[0])))

    @property
    def energy_in_words(self) -> str:
        """The energy at the first point, and its change if there are others."""
        if self.energy is None or not self.t.size:
            return "not known"
        change = f", changes by at most {self.energy_change:.1e}" if self.t.size > 1 else ""
        return f"{self.energy[0]:.6g}{change}"

    @property
    def drift(self) -> tuple[float, float]:
        """Largest |g| and |G v| over all points."""
        g, gv = np.abs(self.g), np.abs(self.gv)
        position = float(np.fmax.reduce(g, axis=None, initial=0.0))
        return position, float(np.fmax.reduce(gv, axis=None, initial=0.0))

    @property
    def drift_in_words(self) -> str:
        """The drift of the levels that have constraints: "|g| ≤ 2.2e-16, |Gv| ≤ 1.3e-15"."""
        position, velocity = self.drift
        return (f"|g| ≤ {position:.1e}, " if self._kernels.position_rows else "") + f"|Gv| ≤ {velocity:.1e}"


def _over_part(
    system: System, address: int, size: int, dense: int, t: np.ndarray, states: np.ndarray
) -> np.ndarray:
    """The values of a kernel at points of one piece, (size, points).  Where λ or the unknowns cannot be
    followed from one point to the next, they are searched for again.
    """
    out = np.full((t.size, size), np.nan)
    begin, fewest = 0, 64 if system.unknowns else 1
    while size and begin < t.size:
        context, rest = kernels(system).context(system), slice(begin, None)
        done = over_points(address, dense, context, t[rest], states[rest], out[rest], fewest)
        if not done:
            break
        begin += done
    return out.T

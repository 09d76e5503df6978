"""Mobilities, Schur complements, Jacobians and projections of the subsystems and their coupling.

Quantities of all subsystems together are arrays (points × n), with the subsystems side by side.
"""

from __future__ import annotations

import numpy as np

from holonome.coupling.black_box import BlackBox
from holonome.coupling.constraints import Coupling
from holonome.coupling.coupled_system import CoupledSystem
from holonome.coupling.driven import DrivenSubsystem
from holonome.coupling.mesh import Mesh, Motion
from holonome.coupling.schur import inverse, product, total
from holonome.coupling.subsolvers import Subsolver, Subsystem

_TRIAL_FRACTION = 1e-2
"""Fraction of a window over which black boxes are measured."""

_ROUNDING = 1e-14


class CoupledDynamics:
    """The equations of motion of all subsystems, and the coupling between them."""

    def __init__(
        self,
        coupled: CoupledSystem,
        subsystems: dict[str, Subsystem],
        solvers: dict[str, Subsolver],
        mesh: Mesh,
    ) -> None:
        self.coupled = coupled
        self.parts = coupled.parts
        self._subsystems = subsystems
        self._solvers = solvers
        self._mesh = mesh
        self._measured_acceleration: dict[str, np.ndarray] = {}
        self._measured_mobility: dict[str, np.ndarray] = {}

    def measure_black_boxes(self, t: float, q: np.ndarray, v: np.ndarray, window: float) -> None:
        """The free acceleration and the mobility of each black box, from trial runs over a small part of a
        window; the acceleration is an affine function of the force.
        """
        times = t + _TRIAL_FRACTION * window * self._mesh.points
        for name, subsystem in self._subsystems.items():
            if not isinstance(subsystem, BlackBox):
                continue
            part = self.parts[name]
            y = np.concatenate([q[part], v[part]])
            trial_forces = [np.zeros(subsystem.n), *np.eye(subsystem.n)]
            free, *forced = (
                self._solvers[name].motion(times, y, np.tile(force, (times.size, 1))).a[0]
                for force in trial_forces
            )
            self._measured_acceleration[name] = free
            self._measured_mobility[name] = np.column_stack([a - free for a in forced])

    def free_accelerations(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Accelerations without coupling forces at one point, 1 × n."""
        a = np.zeros((1, self.coupled.n))
        for name, subsystem in self._subsystems.items():
            part = self.parts[name]
            if isinstance(subsystem, BlackBox):
                a[:, part] = self._measured_acceleration[name]
            else:
                no_force = np.zeros((1, subsystem.n))
                a[:, part] = subsystem.accelerations(np.array([t]), q[None, part], v[None, part], no_force)
        return a

    def mobilities(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Accelerations per unit force, (points × n × n), with one diagonal block for each subsystem: A_j⁻¹,
        or its restriction to the subsystem's own constraints.
        """
        X = np.zeros((t.size, self.coupled.n, self.coupled.n))
        for name, subsystem in self._subsystems.items():
            part = self.parts[name]
            if isinstance(subsystem, BlackBox):
                X[:, part, part] = self._measured_mobility[name]
            else:
                X[:, part, part] = subsystem.mobility(t, q[:, part], v[:, part])
        return X

    def schur_complements(self, X: np.ndarray, coupling: Coupling) -> dict[str, np.ndarray]:
        """S_j = D_j A_j⁻¹ B_j at each point."""
        return {
            name: coupling.D[:, :, part] @ X[:, part, part] @ coupling.B[:, part]
            for name, part in self.parts.items()
        }

    def acceleration_jacobians(
        self, t: np.ndarray, motion: Motion, forces: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """∂a/∂q and ∂a/∂v under fixed forces, (points × n × n); zero for black boxes, where they are not
        known.
        """
        by_q = np.zeros((t.size, self.coupled.n, self.coupled.n))
        by_v = np.zeros_like(by_q)
        for name, subsystem in self._subsystems.items():
            if isinstance(subsystem, DrivenSubsystem):
                part = self.parts[name]
                jacobians = subsystem.acceleration_jacobians(
                    t, motion.q[:, part], motion.v[:, part], forces[:, part]
                )
                by_q[:, part, part] = jacobians[:, :, : subsystem.n]
                by_v[:, part, part] = jacobians[:, :, subsystem.n :]
        return by_q, by_v

    def project(
        self, t: float, q: np.ndarray, v: np.ndarray, max_steps: int = 6
    ) -> tuple[np.ndarray, np.ndarray]:
        """Newton's method for all position constraints, then for the velocities.  Corrections are directed
        along constraint forces, so coordinates that these do not move keep their values.
        """
        q = q.copy()
        v = v.copy()
        here = np.array([t])
        for _ in range(max_steps):
            for name, subsystem in self._subsystems.items():
                if isinstance(subsystem, DrivenSubsystem):
                    part = self.parts[name]
                    q[part], v[part] = subsystem.project(t, q[part], v[part])
            coupling = self.coupled.at(here, q[None], v[None])
            X = self.mobilities(here, q[None], v[None])
            D_transposed = coupling.D.transpose(0, 2, 1)
            projector = (X @ D_transposed @ inverse(coupling.D @ X @ D_transposed))[0]
            step = projector @ coupling.g[0]
            q -= step
            v -= projector @ self.coupled.at(here, q[None], v[None]).w[0]
            if not np.max(np.abs(step)) > _ROUNDING * max(float(np.max(np.abs(q))), 1e-300):
                break
        return q, v

    def initial_accelerations(
        self, t: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Accelerations, λ and S_j at the initial state, from Σ D_j a_j + γ = 0."""
        here = np.array([t])
        free = self.free_accelerations(t, q, v)
        coupling = self.coupled.at(here, q[None], v[None])
        X = self.mobilities(here, q[None], v[None])
        S = self.schur_complements(X, coupling)
        lam = product(inverse(total(S)), product(coupling.D, free) + coupling.gamma)
        a = free - product(X, product(coupling.B, lam))
        return a[0], lam[0], {name: S_j[0] for name, S_j in S.items()}

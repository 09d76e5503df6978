"""The subsystems of a run and their coupling, put together: what both the iteration and its start need to
know at given points.

Quantities of all subsystems together are arrays (points × n), with the subsystems side by side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holonome.coupling.coupled import BlackBox, CoupledSystem, Coupling
from holonome.coupling.subsolvers import Driven, Mesh, Motion, Subsolver
from holonome.dynamics.start import SMALL
from holonome.errors import ContradictoryConstraints, InconsistentStart

_ROUNDING, _MEASURED, _DIFFERENCE, _RANK = 1e-14, 1e-2, 1e-7, 1e-12


class Assembly:
    """Subsystems, coupling, solvers and the mesh on which forces are exchanged."""

    def __init__(
        self,
        coupled: CoupledSystem,
        bodies: dict[str, Driven | BlackBox],
        solvers: dict[str, Subsolver],
        mesh: Mesh,
    ) -> None:
        self.coupled, self.bodies, self.solvers, self.mesh, self.parts = (
            coupled,
            bodies,
            solvers,
            mesh,
            coupled.parts,
        )
        self.measured: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    # what the equations need

    def mobilities(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The answer of all accelerations to unit forces, (points × n × n), a block for each subsystem:
        A_j⁻¹, or what its own constraints leave of it.
        """
        X = np.zeros((t.size, self.coupled.n, self.coupled.n))
        for name, body in self.bodies.items():
            part = self.parts[name]
            X[:, part, part] = (
                self.measured[name][1]
                if isinstance(body, BlackBox)
                else body.mobility(t, q[:, part], v[:, part])
            )
        return X

    def schur(self, X: np.ndarray, coupling: Coupling) -> dict[str, np.ndarray]:
        """S_j = D_j A_j⁻¹ B_j at each point."""
        return {
            name: coupling.D[:, :, part] @ X[:, part, part] @ coupling.B[:, part]
            for name, part in self.parts.items()
        }

    def sensitivities(self, t: np.ndarray, motion: Motion, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """∂a/∂q and ∂a/∂v under fixed forces τ, (points × n × n); zero for black boxes, where they are not
        known.
        """
        a_q, a_v = np.zeros((2, t.size, self.coupled.n, self.coupled.n))
        for name, body in self.bodies.items():
            if isinstance(body, Driven):
                part = self.parts[name]
                both = body.sensitivities(t, motion.q[:, part], motion.v[:, part], tau[:, part])
                a_q[:, part, part], a_v[:, part, part] = both[:, :, : body.n], both[:, :, body.n :]
        return a_q, a_v

    def coupling_derivatives(
        self, t: np.ndarray, motion: Motion, lam: np.ndarray, coupling: Coupling
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """∂(Bλ)/∂q, ∂(D a + γ)/∂q and ∂γ/∂v at each point, by differences."""
        n, points, j = self.coupled.n, t.size, np.arange(self.coupled.n)
        q, v = np.tile(motion.q, (2 * n, 1, 1)), np.tile(motion.v, (2 * n, 1, 1))
        step_q, step_v = (
            _DIFFERENCE * np.maximum(1.0, np.max(np.abs(x), axis=0)) for x in (motion.q, motion.v)
        )
        q[j, :, j] += step_q[:, None]
        v[n + j, :, j] += step_v[:, None]
        moved = self.coupled.at(np.tile(t, 2 * n), q.reshape(-1, n), v.reshape(-1, n))
        many = (2 * n, points)
        force = np.einsum("ckij,kj->cki", moved.B.reshape(*many, n, -1), lam) - product(coupling.B, lam)
        level = (
            np.einsum("ckij,kj->cki", moved.D.reshape(*many, -1, n), motion.a)
            + moved.gamma.reshape(*many, -1)
            - product(coupling.D, motion.a)
            - coupling.gamma
        )
        force_q, level_q, level_v = (
            (change / step[:, None, None]).transpose(1, 2, 0)
            for change, step in ((force[:n], step_q), (level[:n], step_q), (level[n:], step_v))
        )
        return force_q, level_q, level_v

    # the start

    def measure(self, t: float, q: np.ndarray, v: np.ndarray, window: float) -> None:
        """The free acceleration and the mobility of each black box, from trial runs over a small part of a
        window: the acceleration is affine in the force.
        """
        times = t + _MEASURED * window * self.mesh.points
        for name, body in self.bodies.items():
            if isinstance(body, BlackBox):
                part = self.parts[name]
                y = np.concatenate([q[part], v[part]])
                free, *pushed = (
                    self.solvers[name].motion(times, y, np.tile(force, (times.size, 1))).a[0]
                    for force in [np.zeros(body.n), *np.eye(body.n)]
                )
                self.measured[name] = free, np.column_stack([a - free for a in pushed])

    def consistent(
        self, t: float, q0: np.ndarray, v0: np.ndarray, repair: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Nearby values on all constraints; large corrections are made only if asked for."""
        self.coupled = self.coupled.begin(t, q0, v0)
        q, v = self.projected(t, q0, v0, 50)
        here = np.array([t])
        left = np.abs(self.coupled.at(here, q[None], v[None]).g[0])
        if np.any(left > 1e-8 * max(1.0, float(np.max(np.abs(q))))) or not np.all(np.isfinite(q)):
            worst = int(np.argmax(left))
            name = self.coupled.constraint_names[worst]
            raise ContradictoryConstraints(
                f"q0: no position near it satisfies the coupling; {left[worst]:.3g} remains of {name}. Give "
                "a better q0"
            )
        of_q0, of_v0 = (
            self.coupled.at(here, q0[None], v0[None]).g[0],
            self.coupled.at(here, q[None], v0[None]).w[0],
        )
        for argument, given, found, residual in (("q0", q0, q, of_q0), ("v0", v0, v, of_v0)):
            moved, worst = float(np.max(np.abs(found - given))), int(np.argmax(np.abs(residual)))
            at_rest = argument == "v0" and not np.any(v0)
            if (
                not repair
                and not at_rest
                and moved > SMALL * max(np.max(np.abs(given)), np.max(np.abs(found)))
            ):
                name = self.coupled.constraint_names[worst]
                raise InconsistentStart(
                    f"{argument} violates the constraints: {name} = {residual[worst]:.3g}; consistent values "
                    f"are {moved:.3g} away "
                    "(correct it, or pass repair=True to start from them)"
                )
        return q, v

    def first(
        self, t: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Accelerations, λ and S_j at the start, from Σ D_j a_j + γ = 0."""
        here, a = np.array([t]), np.zeros((1, self.coupled.n))
        for name, body in self.bodies.items():
            part = self.parts[name]
            a[:, part] = (
                self.measured[name][0]
                if isinstance(body, BlackBox)
                else body.accelerations(here, q[None, part], v[None, part], np.zeros((1, body.n)))
            )
        coupling, X = self.coupled.at(here, q[None], v[None]), self.mobilities(here, q[None], v[None])
        S = self.schur(X, coupling)
        lam = product(inverse(total(S)), product(coupling.D, a) + coupling.gamma)
        return (
            (a - product(X, product(coupling.B, lam)))[0],
            lam[0],
            {name: S_j[0] for name, S_j in S.items()},
        )

    def projected(
        self, t: float, q: np.ndarray, v: np.ndarray, most: int = 6
    ) -> tuple[np.ndarray, np.ndarray]:
        """Newton's method for all position constraints, then for velocities; constraint forces do the work,
        so what they cannot move stays.
        """
        q, v, here = q.copy(), v.copy(), np.array([t])
        for _ in range(most):
            for name, body in self.bodies.items():
                if isinstance(body, Driven):
                    part = self.parts[name]
                    q[part], v[part] = body.landed(t, q[part], v[part])
            coupling, X = self.coupled.at(here, q[None], v[None]), self.mobilities(here, q[None], v[None])
            way = (
                X @ coupling.D.transpose(0, 2, 1) @ inverse(coupling.D @ X @ coupling.D.transpose(0, 2, 1))
            )[0]
            step = way @ coupling.g[0]
            q -= step
            v -= way @ self.coupled.at(here, q[None], v[None]).w[0]
            if not np.max(np.abs(step)) > _ROUNDING * max(float(np.max(np.abs(q))), 1e-300):
                break
        return q, v


def product(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Matrix times vector at each point."""
    return np.einsum("kij,kj->ki", matrices, vectors)


def scale(S: np.ndarray) -> np.ndarray:
    """The size of each constraint row, the root of the diagonal of S."""
    size = np.sqrt(np.abs(np.diagonal(S, axis1=-2, axis2=-1)))
    return np.where(size > 0.0, size, 1.0)


def independent(S: np.ndarray) -> bool:
    """Whether the constraint rows are independent, from Σ_j S_j at one point."""
    size = scale(S)
    return bool(np.linalg.matrix_rank(S / np.outer(size, size), tol=1e-10) == len(S))


def inverse(S: np.ndarray) -> np.ndarray:
    """S⁻¹ at each point; where rows depend on each other, the inverse that leads to small λ."""
    size = scale(S)
    sizes = size[..., :, None] * size[..., None, :]
    return np.linalg.pinv(S / sizes, rcond=_RANK) / sizes


def total(S: dict[str, np.ndarray]) -> Any:
    """Σ_j S_j."""
    return np.sum(list(S.values()), axis=0)


def rate(weights: dict[str, float], S: dict[str, np.ndarray]) -> float:
    """ρ(1 − Σ_j w_j S_j⁻¹ Σ_i S_i): by which the error of λ falls, in short windows, if the constraint is
    imposed with these weights.  Infinite where some S_j is singular.
    """
    whole = total(S)
    error = np.eye(len(whole))
    for name, weight in weights.items():
        if weight != 0.0:
            if np.linalg.svd(S[name], compute_uv=False)[-1] <= _RANK * np.max(np.abs(whole)):
                return math.inf
            error -= weight * np.linalg.solve(S[name], whole)
    return float(np.max(np.abs(np.linalg.eigvals(error))))

"""Updates of the coupling forces λ from one iteration to the next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from holonome.coupling.black_box import BlackBox
from holonome.coupling.constraints import Coupling
from holonome.coupling.coupled_dynamics import CoupledDynamics
from holonome.coupling.mesh import Motion
from holonome.coupling.schur import contraction_rate, inverse, is_regular, largest, product, row_scale, total
from holonome.coupling.subsolvers import Subsystem, require_subsystems

NEWTON = "newton"
SCHUR = "schur"
ANDERSON = "anderson"

_ANDERSON_DEPTH = 4
_ROUNDING = 1e-14
_PSEUDO_INVERSE_TOLERANCE = 1e-12

AdvanceSubsystem = Callable[[str, np.ndarray, np.ndarray], Motion]
"""(name, times, forces) → motion of one subsystem from the beginning of the current window."""


class Iterate(NamedTuple):
    """The result of an iteration: the motion under the coupling forces, λ, and the coupling there."""

    t: np.ndarray
    motion: Motion
    lam: np.ndarray
    forces: np.ndarray
    coupling: Coupling

    @property
    def residual(self) -> np.ndarray:
        """D a + γ."""
        return product(self.coupling.D, self.motion.a) + self.coupling.gamma


class Update(Protocol):
    """Computes the next λ, and the matrix B by which it acts."""

    corrects_initial_guess: bool
    """Whether it is applied before the first iteration, to the constant continuation of λ."""

    def begin_window(self) -> None: ...

    def __call__(self, iterate: Iterate) -> tuple[np.ndarray, np.ndarray]: ...


class SchurUpdate:
    """λ + (Σ S_j)⁻¹ (D a + γ) at each point."""

    corrects_initial_guess = False

    def __init__(self, dynamics: CoupledDynamics) -> None:
        self._dynamics = dynamics
        self._inverse: np.ndarray | None = None

    def begin_window(self) -> None:
        self._inverse = None

    def __call__(self, iterate: Iterate) -> tuple[np.ndarray, np.ndarray]:
        if self._inverse is None:
            self._inverse = inverse(total(_schur_complements(self._dynamics, iterate)))
        return iterate.lam + product(self._inverse, iterate.residual), iterate.coupling.B


class ImposedUpdate:
    """Σ_j w_j λ_j, with λ_j from imposing the constraint on subsystem j while the others keep their
    accelerations: (3), (55).

    Each λ_j is found by applying the Schur update to this subsystem alone until it converges.
    """

    corrects_initial_guess = True

    def __init__(
        self,
        dynamics: CoupledDynamics,
        weights: Mapping[str, float],
        advance: AdvanceSubsystem,
        max_iterations: int,
    ) -> None:
        self._dynamics = dynamics
        self._weights = weights
        self._advance = advance
        self._max_iterations = max_iterations
        self._inverses: dict[str, np.ndarray] = {}

    def begin_window(self) -> None:
        self._inverses = {}

    def __call__(self, iterate: Iterate) -> tuple[np.ndarray, np.ndarray]:
        if not self._inverses:
            S = _schur_complements(self._dynamics, iterate)
            self._inverses = {name: np.linalg.inv(S[name]) for name in self._weights}
        lam = np.zeros_like(iterate.lam)
        for name, weight in self._weights.items():
            lam += weight * self._impose_on(name, iterate)
        return lam, iterate.coupling.B

    def _impose_on(self, name: str, iterate: Iterate) -> np.ndarray:
        part = self._dynamics.parts[name]
        D = iterate.coupling.D[:, :, part]
        B = iterate.coupling.B[:, part]
        contribution_of_others = iterate.residual - product(D, iterate.motion.a[:, part])
        lam = iterate.lam
        for _ in range(self._max_iterations):
            a = self._advance(name, iterate.t, -product(B, lam)).a
            step = product(self._inverses[name], product(D, a) + contribution_of_others)
            lam = lam + step
            if not largest(step) > _ROUNDING * max(1.0, largest(lam)):
                break
        return lam


class NewtonUpdate:
    """Newton's method for λ in the whole window.

    With δv = ∫δa, δq = ∫δv and the mobilities X, the linearised equations are

        δa = (∂a/∂q − X ∂(Bλ)/∂q) δq + ∂a/∂v δv − X B δλ − X (B λ + τ),
        D δa + ∂(D a + γ)/∂q δq + ∂γ/∂v δv = −(D a + γ),

    solved from point to point with trapezoidal integrals.  In the limit of short windows they become
    δa = −X B δλ, D δa = −(D a + γ), which is the Schur update.
    """

    corrects_initial_guess = False

    def __init__(self, dynamics: CoupledDynamics, regular: bool) -> None:
        self._dynamics = dynamics
        self._regular = regular

    def begin_window(self) -> None:
        pass

    def __call__(self, iterate: Iterate) -> tuple[np.ndarray, np.ndarray]:
        step, B = self.step(iterate)
        return iterate.lam + step, B

    def step(self, iterate: Iterate) -> tuple[np.ndarray, np.ndarray]:
        """δλ, and B after the step."""
        t = iterate.t
        n = self._dynamics.coupled.n
        h = np.diff(t, prepend=t[0])
        linearized = self._linearize(iterate, h)
        dq = np.zeros((t.size, n))
        dv = np.zeros((t.size, n))
        solution = np.zeros((t.size, n + iterate.lam.shape[1]))
        for k in range(t.size):
            before = max(k - 1, 0)
            v = dv[before] + h[k] / 2 * solution[before, :n]
            q = dq[before] + h[k] / 2 * (dv[before] + v)
            right_side = linearized.right_side[k] + linearized.by_q[k] @ q + linearized.by_v[k] @ v
            solution[k] = linearized.inverse[k] @ right_side
            dq[k] = q + h[k] ** 2 / 4 * solution[k, :n]
            dv[k] = v + h[k] / 2 * solution[k, :n]
        B = self._dynamics.coupled.at(t, iterate.motion.q + dq, iterate.motion.v + dv).B
        return solution[:, n:] / linearized.scale, B

    def _linearize(self, iterate: Iterate, h: np.ndarray) -> _Linearized:
        t, motion, lam, forces, coupling = iterate
        n = self._dynamics.coupled.n
        m = lam.shape[1]
        X = self._dynamics.mobilities(t, motion.q, motion.v)
        a_by_q, a_by_v = self._dynamics.acceleration_jacobians(t, motion, forces)
        of_coupling = self._dynamics.coupled.coupling_jacobians(t, *motion, lam)
        a_by_q -= X @ of_coupling.force_by_q
        scale = row_scale(coupling.D @ X @ coupling.B)
        rows = 1 / scale[:, :, None]
        level_by_q = rows * of_coupling.level_by_q
        level_by_v = rows * of_coupling.level_by_v
        half = h[:, None, None] / 2
        matrix = np.block(
            [
                [np.eye(n) - half**2 * a_by_q - half * a_by_v, X @ coupling.B / scale[:, None, :]],
                [rows * coupling.D + half**2 * level_by_q + half * level_by_v, np.zeros((t.size, m, m))],
            ]
        )
        imbalance = -product(X, product(coupling.B, lam) + forces)
        if self._regular:
            inverse_matrix = np.linalg.inv(matrix)
        else:
            inverse_matrix = np.linalg.pinv(matrix, rcond=_PSEUDO_INVERSE_TOLERANCE)
        return _Linearized(
            inverse_matrix,
            np.hstack([imbalance, -iterate.residual / scale]),
            np.concatenate([a_by_q, -level_by_q], axis=1),
            np.concatenate([a_by_v, -level_by_v], axis=1),
            scale,
        )


class _Linearized(NamedTuple):
    """The linearised equations for (δa, scale · δλ) at each point: the inverse of their matrix, the
    right-hand side, its derivatives with respect to δq and δv, and the scale.
    """

    inverse: np.ndarray
    right_side: np.ndarray
    by_q: np.ndarray
    by_v: np.ndarray
    scale: np.ndarray


class AndersonUpdate:
    """The Newton update with Anderson acceleration."""

    corrects_initial_guess = False

    def __init__(self, newton: NewtonUpdate) -> None:
        self._newton = newton
        self._history: list[tuple[np.ndarray, np.ndarray]] = []

    def begin_window(self) -> None:
        self._history = []

    def __call__(self, iterate: Iterate) -> tuple[np.ndarray, np.ndarray]:
        step, B = self._newton.step(iterate)
        self._history = [*self._history[1 - _ANDERSON_DEPTH :], (iterate.lam, step)]
        return iterate.lam + self._accelerated_step(), B

    def _accelerated_step(self) -> np.ndarray:
        step = self._history[-1][1]
        if len(self._history) == 1:
            return step
        lam_differences, step_differences = (
            np.array([(after[k] - before[k]).ravel() for before, after in pairwise(self._history)]).T
            for k in (0, 1)
        )
        weights = np.linalg.lstsq(step_differences, step.ravel(), rcond=1e-10)[0]
        return step - ((lam_differences + step_differences) @ weights).reshape(step.shape)


def create_update(
    chosen: str | Mapping[str, float] | None,
    dynamics: CoupledDynamics,
    subsystems: Mapping[str, Subsystem],
    S: Mapping[str, np.ndarray],
    advance: AdvanceSubsystem,
    max_iterations: int,
    refuse_divergence: bool,
) -> Update:
    """The update that the user chose, from the Schur complements at the initial state."""
    if chosen is None:
        has_black_box = any(isinstance(subsystem, BlackBox) for subsystem in subsystems.values())
        chosen = ANDERSON if has_black_box else NEWTON
    if isinstance(chosen, Mapping) or chosen in subsystems:
        weights = _checked_weights(chosen, subsystems)
        _require_convergence(weights, S, refuse_divergence)
        return ImposedUpdate(dynamics, weights, advance, max_iterations)
    if chosen == SCHUR:
        return SchurUpdate(dynamics)
    if chosen not in (NEWTON, ANDERSON):
        raise ValueError(
            f"update: {chosen!r} is not known; choose 'newton', 'schur', 'anderson', the name of a subsystem "
            f"({', '.join(subsystems)}), or a dict of weights"
        )
    newton = NewtonUpdate(dynamics, is_regular(total(S)))
    return AndersonUpdate(newton) if chosen == ANDERSON else newton


def _checked_weights(chosen: str | Mapping[str, float], subsystems: Mapping[str, Any]) -> dict[str, float]:
    if isinstance(chosen, str):
        return {chosen: 1.0}
    require_subsystems("update", chosen, subsystems)
    weight_sum = sum(chosen.values())
    if not math.isclose(weight_sum, 1.0, abs_tol=1e-9):
        raise ValueError(f"update: the weights {dict(chosen)} have the sum {weight_sum:g}; it must be 1")
    return {name: float(weight) for name, weight in chosen.items() if weight != 0.0}


def _require_convergence(
    weights: Mapping[str, float], S: Mapping[str, np.ndarray], refuse_divergence: bool
) -> None:
    """Raise if the constraint cannot be imposed with these weights, or if the iteration would diverge."""
    factor = contraction_rate(weights, S)
    if factor < 1.0 or (factor < math.inf and not refuse_divergence):
        return
    rho = {name: contraction_rate({name: 1.0}, S) for name in S}
    if len(weights) == 1:
        choice = f"imposing the constraint on {next(iter(weights))!r}"
    else:
        choice = f"imposing the constraint with the weights {dict(weights)}"
    if factor < math.inf:
        problem = f"{choice} diverges: the error grows by a factor of {factor:.3g} in each iteration"
    else:
        singular = next(name for name in weights if rho[name] == math.inf)
        problem = f"{choice} is not possible: {singular!r} alone cannot satisfy all constraints"
    best = min(rho, key=lambda name: rho[name])
    if rho[best] < 1.0:
        remedy = (
            f"use update={best!r}, whose error falls by a factor of {rho[best]:.3g} in each iteration, or "
            "the default, which always converges in short windows"
        )
    else:
        remedy = (
            "imposing it on any other subsystem does not converge either; use the default, which converges "
            "in short windows"
        )
    raise ValueError(f"update: {problem}; {remedy}")


def _schur_complements(dynamics: CoupledDynamics, iterate: Iterate) -> dict[str, np.ndarray]:
    X = dynamics.mobilities(iterate.t, iterate.motion.q, iterate.motion.v)
    return dynamics.schur_complements(X, iterate.coupling)

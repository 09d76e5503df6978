"""Subsystems that are given as a :class:`holonome.System`, under prescribed coupling forces."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from holonome.coupling.jacobians import addresses_of, row_major
from holonome.coupling.mesh import Motion
from holonome.coupling.one_step import NO_CONVERGENCE, evaluate, integrate
from holonome.dynamics.evaluation import what_failed
from holonome.dynamics.kernels import dense_projection, kernels, over_points
from holonome.equations.model import Model
from holonome.errors import HolonomeError, ModelError, SingularSystem
from holonome.machine.calls import run_kernel
from holonome.machine.compiled import Compiled
from holonome.machine.context import OK, PARAMETERS, RAISED, SINGULAR
from holonome.problem.parameters import Parameters
from holonome.problem.system import System

FORCE = "coupling force"
WINDOW = "coupling window"
"""Parameters that :func:`driven_system` adds."""

_PSEUDO_INVERSE_TOLERANCE = 1e-12


class WindowFailed(HolonomeError):
    """A subsystem could not be advanced over this window; a shorter one may help."""


def driven_system(system: System, degree: int) -> System:
    """The same system under an additional force, a polynomial of this degree in t over a window.

    Its Chebyshev coefficients, (degree + 1) × n, are the parameter ``FORCE``; the beginning and the length of
    the window are the parameter ``WINDOW``.  Degree 0 is a constant force.  Its kernels are compiled once for
    a system and all its copies with other parameters.
    """
    driven = system.compiled.once(("driven", degree), lambda: _new_driven_system(system, degree))
    if driven.parameters.flat[: system.parameters.size].tobytes() == system.parameters.flat.tobytes():
        return driven
    return driven.with_parameters(**system.parameters)


def _new_driven_system(system: System, degree: int) -> System:
    model = system.model
    own_size = system.parameters.size
    other = object.__new__(System)
    other.__dict__.update(system.__dict__)
    inputs = {name: system.parameters[name] for name in system.parameters.inputs}
    other.parameters = Parameters(
        {name: value for name, value in system.parameters.items() if name not in inputs},
        inputs | {WINDOW: [0.0, 1.0], FORCE: np.zeros((degree + 1, system.n))},
    )
    added_size = other.parameters.size - own_size
    added = ca.SX.sym("coupling", added_size)
    force = _chebyshev_sum(
        ca.reshape(added[2:], system.n, degree + 1), 2 * (model.t - added[0]) / added[1] - 1
    )
    p = ca.vertcat(model.p[:own_size], added, model.p[own_size:])
    other.model = replace(
        model,
        p=p,
        f=model.f + force,
        elastic=None if model.elastic is None else replace(model.elastic, rest=model.elastic.rest + force),
    )
    other.symbols = dict(system.symbols, p=p[: own_size + added_size])
    other._supplied = {offset + added_size: supplied for offset, supplied in system._supplied.items()}
    other.compiled = Compiled()
    return other


def _chebyshev_sum(coefficients: ca.SX, s: ca.SX) -> ca.SX:
    """Σ_k coefficients[:, k] T_k(s), by Clenshaw's recurrence."""
    n, count = coefficients.shape
    b = ca.SX(n, 1)
    b_next = ca.SX(n, 1)
    for k in range(count - 1, 0, -1):
        b, b_next = coefficients[:, k] + 2 * s * b - b_next, b
    return coefficients[:, 0] + s * b - b_next


class DrivenSubsystem:
    """A System under prescribed forces: its accelerations, its mobility and its own constraints."""

    def __init__(self, name: str, system: System) -> None:
        self.name = name
        self.system = system
        self.n = system.n
        self._driven = driven_system(system, 0)
        self._addresses = addresses_of(self._driven)
        self._context = kernels(self._driven).context(self._driven)
        self._force_offset = PARAMETERS + self._driven.parameters.size - self.n
        self._own_context = kernels(system).context(system)
        model = system.model
        self._mass_varies = ca.depends_on(model.M, ca.vertcat(model.t, model.y)) or bool(system.supplied)
        self._constant_mobility: np.ndarray | None = None

    def integrate(
        self, kind: int, t: np.ndarray, y: np.ndarray, forces: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """States (points × 2n) and accelerations (points × n) at the times ``t`` by a one-step method, from
        the state ``y`` at ``t[0]``.
        """
        states = np.empty((t.size, 2 * self.n))
        states[0] = y
        accelerations = np.empty((t.size, self.n))
        status = integrate(
            kind, self._addresses, t, forces, self._context, self._force_offset, states, accelerations
        )
        self._check(status, t, states)
        if not np.isfinite(states).all():
            raise WindowFailed(f"{self.name}: the motion is not finite")
        return states, accelerations

    def accelerations(self, t: np.ndarray, q: np.ndarray, v: np.ndarray, forces: np.ndarray) -> np.ndarray:
        """Accelerations at given points under given forces, points × n."""
        return self._evaluate(t, np.hstack([q, v]), forces, with_jacobians=False)[0]

    def motion(self, t: np.ndarray, q: np.ndarray, v: np.ndarray, forces: np.ndarray) -> Motion:
        """Positions and velocities with the accelerations that belong to them."""
        return Motion(q, v, self.accelerations(t, q, v, forces))

    def acceleration_jacobians(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, forces: np.ndarray
    ) -> np.ndarray:
        """Derivatives of the accelerations with respect to positions and velocities, points × n × 2n."""
        return self._evaluate(t, np.hstack([q, v]), forces, with_jacobians=True)[1]

    def _evaluate(
        self, t: np.ndarray, states: np.ndarray, forces: np.ndarray, with_jacobians: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        accelerations = np.empty((t.size, self.n))
        jacobians = np.empty((t.size if with_jacobians else 0, self.n, 2 * self.n))
        status = evaluate(
            self._addresses,
            t,
            states,
            np.ascontiguousarray(forces),
            self._context,
            self._force_offset,
            accelerations,
            jacobians,
        )
        self._check(status, t, states)
        return accelerations, jacobians

    def _check(self, status: int, t: np.ndarray, states: np.ndarray) -> None:
        """Raise unless the status is OK."""
        if status == NO_CONVERGENCE:
            raise WindowFailed(f"{self.name}: Newton's method of the trapezoidal rule does not converge")
        if status >= RAISED:
            raise ModelError(what_failed(self.system, float(t[0]), states[0]))
        if status != OK:
            raise WindowFailed(f"{self.name}: mass and constraints do not determine the accelerations")

    def mobility(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Accelerations per unit force, points × n × n: M⁻¹ without constraints, otherwise the block of the
        inverse of the saddle-point matrix.
        """
        n = self.n
        if self._constant_mobility is not None:
            return np.broadcast_to(self._constant_mobility, (t.size, n, n))
        M, C = self._inertia(t, q, v)
        m = self.system.m
        if m:
            largest_mass = np.max(np.abs(M), axis=(1, 2), keepdims=True)
            C = C * (largest_mass / np.maximum(np.linalg.norm(C, axis=2, keepdims=True), 1e-300))
            matrix = np.block([[M, C.transpose(0, 2, 1)], [C, np.zeros((t.size, m, m))]])
            return np.linalg.pinv(matrix, rcond=_PSEUDO_INVERSE_TOLERANCE)[:, :n, :n]
        try:
            mobility = np.linalg.inv(M)
        except np.linalg.LinAlgError:
            raise SingularSystem(
                f"subsystems[{self.name!r}]: its mass matrix is singular, so it cannot be solved on its own; "
                "cut the system at other joints"
            ) from None
        if not self._mass_varies:
            self._constant_mobility = mobility[0]
        return mobility

    def _inertia(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M (points × n × n) and C (points × m × n)."""
        n = self.n
        m = self.system.m
        out = np.empty((t.size, n * n + m * n))
        address = self.system.kernel("inertia", _inertia).address
        done = over_points(address, 0, self._own_context, t, np.hstack([q, v]), out)
        if done < t.size:
            raise ModelError(what_failed(self.system, float(t[done]), np.concatenate([q[done], v[done]])))
        return out[:, : n * n].reshape(t.size, n, n), out[:, n * n :].reshape(t.size, m, n)

    def project(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities after one Newton step towards the subsystem's own constraints."""
        if not self.system.m:
            return q, v
        n = self.n
        y = np.concatenate([q, v])
        compiled = kernels(self.system)
        out = np.zeros(compiled.projection_size)
        no_error = np.zeros(2 * n + 2)
        status = run_kernel(compiled.projection, t, y, no_error, self._own_context, out)
        if status == SINGULAR:
            status = run_kernel(dense_projection.address, t, y, no_error, self._own_context, out)
        if status != OK:
            raise ModelError(what_failed(self.system, t, y))
        return q + out[4 * n : 5 * n], v + out[5 * n : 6 * n]


def _inertia(model: Model):
    return model.y, ca.SX(0, 1), ca.vertcat(row_major(model.M), row_major(model.C)), None

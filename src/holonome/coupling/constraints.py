"""The constraints between subsystems: position constraints g(t, q_1, …, q_N) = 0, or the linear form
Σ D_j x_j″ = d of Wang, Hou & Modnak.

Quantities of all subsystems together are arrays (points × n), with the subsystems side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from holonome.coupling.jacobians import (
    coupling_jacobian,
    coupling_terms,
    is_traced,
    jacobians_at_points,
    row_major,
)
from holonome.dynamics.evaluation import what_failed
from holonome.dynamics.kernels import over_points
from holonome.equations.model import Model
from holonome.errors import ModelError
from holonome.problem.system import System
from holonome.tracing import argument_names


class Coupling(NamedTuple):
    """The coupling at many points: D (m × n) and B (n × m) for all coordinates together, γ in D a + γ = 0,
    and the residuals g of the positions and w of the velocities.
    """

    D: np.ndarray
    B: np.ndarray
    gamma: np.ndarray
    g: np.ndarray
    w: np.ndarray


class CouplingJacobians(NamedTuple):
    """∂(Bλ)/∂q, ∂(D a + γ)/∂q and ∂γ/∂v at many points."""

    force_by_q: np.ndarray
    level_by_q: np.ndarray
    level_by_v: np.ndarray


class PositionCoupling:
    """Constraints g(t, q_1, …) = 0 between subsystems, given by the user's function.

    Their derivatives come from a System that has no other equations.
    """

    def __init__(
        self,
        function: Callable,
        parts: Mapping[str, slice],
        parameters: Mapping[str, Any] | None,
        constraint_names: Sequence[str] | None,
    ) -> None:
        arguments = _checked_arguments(function, parts)
        self.n = max(part.stop for part in parts.values())
        try:
            self.system = System(
                1.0,
                np.zeros(self.n),
                _of_all_coordinates(function, {name: parts.get(name) for name in arguments}),
                n=self.n,
                parameters=parameters,
                constraint_names=constraint_names,
                name="coupling",
            )
        except ModelError as error:
            raise ModelError(re.sub(r"^constraint\b:?", "coupling:", str(error))) from error
        self.m = self.system.m
        if constraint_names is None:
            self.system.constraint_names = [f"coupling[{i}]" for i in range(self.m)]

    def at(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> Coupling:
        n = self.n
        m = self.m
        out = np.empty((t.size, m * n + 3 * m))
        address = self.system.kernel("coupling", _coupling).address
        done = over_points(address, 0, self.system.context(), t, np.hstack([q, v]), out)
        self._require_all(done, t, q, v)
        D = out[:, : m * n].reshape(t.size, m, n)
        gamma, g, w = np.split(out[:, m * n :], 3, axis=1)
        return Coupling(D, D.transpose(0, 2, 1), gamma, g, w)

    def jacobians(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, lam: np.ndarray
    ) -> CouplingJacobians:
        """Exact if the function can be traced, otherwise by differences."""
        n = self.n
        exact = is_traced(self.system)
        if exact:
            kernel = self.system.kernel("coupling jacobian", coupling_jacobian)
        else:
            kernel = self.system.kernel("coupling terms", coupling_terms)
        out = np.empty((t.size, n + self.m, 2 * n))
        done = jacobians_at_points(
            kernel.address,
            t,
            np.hstack([q, v]),
            np.hstack([a, lam]),
            self.system.context(),
            exact,
            out,
        )
        self._require_all(done, t, q, v)
        return CouplingJacobians(out[:, :n, :n], out[:, n:, :n], out[:, n:, n:])

    def _require_all(self, done: int, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        if done < t.size:
            reason = what_failed(self.system, float(t[done]), np.concatenate([q[done], v[done]]))
            raise ModelError(reason.replace("constraint", "coupling", 1))


def _checked_arguments(function: Callable, parts: Mapping[str, slice]) -> list[str]:
    """The names of the arguments of a coupling."""
    arguments = list(argument_names(function, "coupling"))
    for name in arguments:
        if name not in (*parts, "t", "p"):
            raise ModelError(
                f"coupling: its argument {name!r} is not known; arguments go by name and may be any of "
                f"{', '.join(parts)}, t, p"
            )
    if not any(name in parts for name in arguments):
        raise ModelError(
            f"coupling: none of its arguments is a subsystem; the subsystems are {', '.join(parts)}"
        )
    return arguments


def _of_all_coordinates(function: Callable, parts: Mapping[str, slice | None]) -> Callable:
    """The coupling as a function of all coordinates together."""

    def constraint(t, q, p):
        given = {"t": t, "p": p}
        return function(**{name: given[name] if part is None else q[part] for name, part in parts.items()})

    return constraint


def _coupling(model: Model):
    """Kernel → (G, γ, g, w)."""
    return (
        model.y,
        ca.SX(0, 1),
        ca.vertcat(row_major(model.G), ca.densify(ca.vertcat(model.gamma, model.g, model.w))),
        None,
    )


class LinearCoupling:
    """Σ D_j x_j″ = d, where D_j, B_j and d are arrays or functions of t.

    If all D_j and d are constant, the constraint can be integrated; the state ``start`` = (t, q, v) fixes its
    constants of integration.
    """

    def __init__(
        self,
        D: list[Any],
        B: list[Any],
        d: Any,
        start: tuple[float, np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self._D = D
        self._B = B
        self._d = d
        self._start = start
        self._integrable = not (callable(d) or any(callable(D_j) for D_j in D))

    def starting_at(self, t: float, q: np.ndarray, v: np.ndarray) -> LinearCoupling:
        return LinearCoupling(self._D, self._B, self._d, (t, q.copy(), v.copy()))

    def at(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> Coupling:
        D = _concatenated_over_time(self._D, t, 1)
        B = _concatenated_over_time(self._B, t, 0)
        d = _concatenated_over_time([self._d], t, 0)
        if not self._integrable or self._start is None:
            return Coupling(D, B, -d, np.zeros_like(d), np.zeros_like(d))
        t0, q0, v0 = self._start
        s = (t - t0)[:, None]
        g = (q - q0 - s * v0) @ D[0].T - d * s**2 / 2
        w = (v - v0) @ D[0].T - d * s
        return Coupling(D, B, -d, g, w)

    def jacobians(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, lam: np.ndarray
    ) -> CouplingJacobians:
        """Zero: D, B and d do not depend on the state."""
        n = q.shape[1]
        level = np.zeros((t.size, lam.shape[1], n))
        return CouplingJacobians(np.zeros((t.size, n, n)), level, level)


def at_time(value: Any, t: Any) -> Any:
    """The value of an array, or of a function of t."""
    return value(t) if callable(value) else value


def _concatenated_over_time(matrices: list[Any], t: np.ndarray, axis: int) -> np.ndarray:
    """Matrices side by side (axis 1), or one above the other (axis 0), at each time."""
    if any(callable(matrix) for matrix in matrices):
        return np.array([np.concatenate([at_time(x, time) for x in matrices], axis=axis) for time in t])
    constant = np.concatenate(matrices, axis=axis)
    return np.broadcast_to(constant, (t.size, *constant.shape))

"""Solvers of subsystems: from a start and the coupling forces at the points of a window's mesh to the motion
at the same points.

Three kinds: the one-step methods of Wang, Hou & Modnak with their own sub-steps, all methods of
:func:`holonome.solve`, and functions of the user (:class:`WindowSolver`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import casadi as ca
import numpy as np
from numpy.polynomial import chebyshev
from scipy.interpolate import CubicHermiteSpline

from holonome.coupling.coupled import FORCE, WINDOW, BlackBox, WindowSolver, driven, landed, place_of_force
from holonome.coupling.one_step import (
    EULER,
    HEUN,
    NO_CONVERGENCE,
    TRAPEZOIDAL,
    accelerations,
    march,
    sensitivities,
)
from holonome.dynamics.kernels import dense_derivative, kernels, over_points
from holonome.dynamics.start import what_failed
from holonome.equations.model import Model
from holonome.errors import HolonomeError, ModelError, SingularSystem
from holonome.machine.context import OK, RAISED
from holonome.problem.system import System
from holonome.solving.methods import Method, methods, resolve
from holonome.solving.solve import solve

ONE_STEP = {"euler": EULER, "rk2": HEUN, "trapezoidal": TRAPEZOIDAL}
"""The solvers of the paper."""


DEFAULT, DEFAULT_STEPS = "trapezoidal", 10
"""Where nothing is said for a subsystem."""

SMOOTH_POINTS = 6
"""Points of the polynomial that coupling forces are in a window, unless told otherwise."""

MOST_STEPS = 20_000
"""Steps after which a method is believed to be stuck in a window."""


class WindowFailed(HolonomeError):
    """A subsystem could not be advanced over this window; a shorter one may help."""


class Motion(NamedTuple):
    """Positions, velocities and accelerations at the points of the mesh, each points × n."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


@dataclass(frozen=True, eq=False)
class Mesh:
    """Points of a window, 0 … 1, at which coupling forces are given; between them they are linear, or, if
    ``smooth``, one polynomial.
    """

    points: np.ndarray
    smooth: bool

    @classmethod
    def uniform(cls, intervals: int) -> Mesh:
        return cls(np.linspace(0.0, 1.0, intervals + 1), False)

    @classmethod
    def lobatto(cls, count: int) -> Mesh:
        """Extrema of a Chebyshev polynomial."""
        return cls((1 - np.cos(np.pi * np.arange(count) / (count - 1))) / 2, True)

    def matrix(self, at: np.ndarray) -> np.ndarray:
        """Takes values at the points of the mesh to values at other places in the window."""
        if self.smooth:
            return chebyshev.chebvander(2 * at - 1, self.points.size - 1) @ self.to_coefficients
        return np.column_stack([np.interp(at, self.points, unit) for unit in np.eye(self.points.size)])

    @cached_property
    def to_coefficients(self) -> np.ndarray:
        """Takes values at the points to coefficients in Chebyshev polynomials."""
        return np.linalg.inv(chebyshev.chebvander(2 * self.points - 1, self.points.size - 1))

    @cached_property
    def derivative(self) -> np.ndarray:
        """Takes values of a polynomial at the points to its derivatives there, for a window of length 1."""
        return (
            2
            * chebyshev.chebvander(2 * self.points - 1, self.points.size - 2)
            @ chebyshev.chebder(self.to_coefficients)
        )

    def function(self, t: np.ndarray, values: np.ndarray) -> Callable[[float], np.ndarray]:
        """A polynomial as a function of time; ``t`` are the times of the points."""
        coefficients = self.to_coefficients @ values
        return lambda time: chebyshev.chebval(2 * (time - t[0]) / (t[-1] - t[0]) - 1, coefficients)

    def between(self, t: np.ndarray, motion: Motion, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities at other times of a window."""
        if self.smooth:
            matrix = self.matrix((wanted - t[0]) / (t[-1] - t[0]))
            return matrix @ motion.q, matrix @ motion.v
        return hermite(t, motion, wanted)


def hermite(t: np.ndarray, motion: Motion, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities by cubic polynomials between the points."""
    way = np.sign(t[-1] - t[0])
    q, v = (
        CubicHermiteSpline(way * t, x, way * rate)(way * wanted)
        for x, rate in ((motion.q, motion.v), (motion.v, motion.a))
    )
    return q, v


class Subsolver(Protocol):
    """Advances one subsystem."""

    def motion(self, t: np.ndarray, y: np.ndarray, tau: np.ndarray) -> Motion:
        """The motion at the times ``t`` of the mesh from the state ``y`` at ``t[0]`` under the forces ``tau``
        (points × n).
        """
        ...


class Driven:
    """A System under given forces: its accelerations, its inertia and its own constraints."""

    def __init__(self, name: str, system: System) -> None:
        self.name, self.system, self.n = name, system, system.n
        self.driven = driven(system, 0)
        compiled = kernels(self.driven)
        self.address, self.twin, self.place = (
            compiled.derivative,
            dense_derivative.address,
            place_of_force(self.driven),
        )
        self.context, self.landing_context = compiled.context(self.driven), kernels(system).context(system)
        self.varies = ca.depends_on(system.model.M, ca.vertcat(system.model.t, system.model.y)) or bool(
            system.foreign
        )
        self.constant: np.ndarray | None = None

    def accelerations(self, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        out = np.empty((t.size, self.n))
        self.check(
            accelerations(
                self.address,
                self.twin,
                t,
                np.hstack([q, v]),
                np.ascontiguousarray(tau),
                self.context,
                self.place,
                out,
            ),
            t,
            np.hstack([q, v]),
        )
        return out

    def sensitivities(self, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Derivatives of the accelerations with respect to positions and velocities, (points × n × 2n)."""
        out = np.empty((t.size, self.n, 2 * self.n))
        self.check(
            sensitivities(
                self.address,
                self.twin,
                t,
                np.hstack([q, v]),
                np.ascontiguousarray(tau),
                self.context,
                self.place,
                out,
            ),
            t,
            np.hstack([q, v]),
        )
        return out

    def mobility(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The answer of the accelerations to unit forces, (points × n × n): M⁻¹ where there are no
        constraints, else what these let through.
        """
        n, m = self.n, self.system.m
        if self.constant is not None:
            return np.broadcast_to(self.constant, (t.size, n, n))
        out = np.empty((t.size, n * n + m * n))
        done = over_points(
            self.system.kernel("inertia", _inertia).address,
            0,
            self.landing_context,
            t,
            np.hstack([q, v]),
            out,
        )
        if done < t.size:
            raise ModelError(what_failed(self.system, float(t[done]), q[done], v[done]))
        M, C = out[:, : n * n].reshape(t.size, n, n), out[:, n * n :].reshape(t.size, m, n)
        if not m:
            try:
                X = np.linalg.inv(M)
                self.constant = None if self.varies else X[0]
                return X
            except np.linalg.LinAlgError:
                raise SingularSystem(
                    f"subsystems[{self.name!r}]: its mass matrix is singular, so it cannot move on its own; "
                    "cut the system elsewhere"
                ) from None
        C = C * (
            np.max(np.abs(M), axis=(1, 2), keepdims=True)
            / np.maximum(np.linalg.norm(C, axis=2, keepdims=True), 1e-300)
        )
        return np.linalg.pinv(
            np.block([[M, C.transpose(0, 2, 1)], [C, np.zeros((t.size, m, m))]]), rcond=1e-12
        )[:, :n, :n]

    def landed(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nearer to its own constraints, by one step of Newton's method."""
        if not self.system.m:
            return q, v
        step = landed(self.system, self.landing_context, t, np.concatenate([q, v]))
        return q + step[: self.n], v + step[self.n :]

    def check(self, status: int, t: np.ndarray, states: np.ndarray) -> None:
        if status >= RAISED and status != NO_CONVERGENCE:
            raise ModelError(what_failed(self.system, float(t[0]), states[0, : self.n], states[0, self.n :]))
        if status != OK:
            why = (
                "Newton's method of the trapezoidal rule does not converge"
                if status == NO_CONVERGENCE
                else "mass and constraints do not determine the accelerations"
            )
            raise WindowFailed(f"{self.name}: {why}")


def _inertia(model: Model):
    M, C = (ca.reshape(ca.densify(part).T, part.numel(), 1) for part in (model.M, model.C))
    return model.y, ca.SX(0, 1), ca.vertcat(M, C), None


class OneStep:
    """Explicit Euler, Heun's method or the trapezoidal rule with constant sub-steps; between these, cubic
    polynomials.
    """

    def __init__(self, subsystem: Driven, kind: str, substeps: int, mesh: Mesh) -> None:
        self.subsystem, self.kind, self.mesh = subsystem, ONE_STEP[kind], mesh
        self.steps = np.linspace(0.0, 1.0, substeps + 1)
        self.same = np.array_equal(self.steps, mesh.points)
        self.interpolation = mesh.matrix(self.steps)

    def motion(self, t: np.ndarray, y: np.ndarray, tau: np.ndarray) -> Motion:
        sub, n = self.subsystem, self.subsystem.n
        times = t if self.same else t[0] + (t[-1] - t[0]) * self.steps
        forces = np.ascontiguousarray(tau) if self.same else self.interpolation @ tau
        states, a = np.empty((times.size, 2 * n)), np.empty((times.size, n))
        states[0] = y
        sub.check(
            march(self.kind, sub.address, sub.twin, times, forces, sub.context, sub.place, states, a),
            times,
            states,
        )
        if not np.isfinite(states).all():
            raise WindowFailed("the motion is not finite")
        motion = Motion(states[:, :n], states[:, n:], a)
        if self.same:
            return motion
        q, v = hermite(times, motion, t)
        return Motion(q, v, sub.accelerations(t, q, v, tau))


class Integrated:
    """Any method of :func:`holonome.solve`."""

    def __init__(
        self,
        subsystem: Driven,
        method: str | Method,
        substeps: int | None,
        mesh: Mesh,
        rtol: float,
        atol: float,
    ) -> None:
        self.subsystem, self.method, self.substeps, self.mesh, self.rtol, self.atol = (
            subsystem,
            method,
            substeps,
            mesh,
            rtol,
            atol,
        )
        self.driven = driven(subsystem.system, mesh.points.size - 1)

    def motion(self, t: np.ndarray, y: np.ndarray, tau: np.ndarray) -> Motion:
        n = self.subsystem.n
        parameters = {WINDOW: [t[0], t[-1] - t[0]], FORCE: self.mesh.to_coefficients @ tau}
        step = None if self.substeps is None else abs(t[-1] - t[0]) / self.substeps
        sol = solve(
            self.driven,
            (t[0], t[-1]),
            y[:n],
            y[n:],
            method=self.method,
            rtol=self.rtol,
            atol=self.atol,
            t_eval=t,
            step=step,
            parameters=parameters,
            max_steps=MOST_STEPS,
        )
        if not sol.success or sol.t.size < t.size:
            raise WindowFailed(sol.message)
        q, v = np.ascontiguousarray(sol.q.T), np.ascontiguousarray(sol.v.T)
        return Motion(q, v, self.subsystem.accelerations(t, q, v, tau))


class Called:
    """A function of the user."""

    def __init__(self, name: str, solver: WindowSolver, subsystem: Driven | BlackBox, mesh: Mesh) -> None:
        self.name, self.solver, self.subsystem, self.mesh = name, solver, subsystem, mesh

    def motion(self, t: np.ndarray, y: np.ndarray, tau: np.ndarray) -> Motion:
        n = self.subsystem.n
        parts = [
            np.asarray(part, dtype=float)
            for part in self.solver(t.copy(), y[:n].copy(), y[n:].copy(), self.mesh.function(t, tau))
        ]
        if len(parts) not in (2, 3) or any(part.shape != (n, t.size) for part in parts):
            raise ValueError(
                f"solvers: that of {self.name!r} returned shapes "
                f"{', '.join(str(part.shape) for part in parts)}; expected q, v and perhaps a, each "
                f"{(n, t.size)}"
            )
        q, v = parts[0].T, parts[1].T
        if not (np.all(np.isfinite(q)) and np.all(np.isfinite(v))):
            raise WindowFailed(f"the solver of {self.name!r} returned values that are not finite")
        if isinstance(self.subsystem, Driven):
            return Motion(q, v, self.subsystem.accelerations(t, q, v, tau))
        return Motion(q, v, parts[2].T if len(parts) == 3 else self.mesh.derivative @ v / (t[-1] - t[0]))


def subsolvers(
    bodies: Mapping[str, Driven | BlackBox],
    solvers: Any,
    substeps: int | Mapping[str, int],
    nodes: int | None,
    rtol: float,
    atol: float,
) -> tuple[dict[str, Subsolver], Mesh]:
    """A solver for each subsystem, and the mesh on which they exchange forces, from what the user asks for
    (:class:`holonome.LocalIteration`).
    """
    for argument, given in (("solvers", solvers), ("substeps", substeps)):
        if isinstance(given, Mapping) and (unknown := [name for name in given if name not in bodies]):
            raise ValueError(f"{argument}: {unknown[0]!r} is not a subsystem; there are {', '.join(bodies)}")
    chosen: dict[str, Any] = {
        name: body.solver
        if isinstance(body, BlackBox)
        else solvers.get(name, DEFAULT)
        if isinstance(solvers, Mapping)
        else solvers
        for name, body in bodies.items()
    }
    steps = {
        name: substeps.get(name, DEFAULT_STEPS) if isinstance(substeps, Mapping) else substeps
        for name in bodies
    }
    paper = all(isinstance(solver, str) and solver in ONE_STEP for solver in chosen.values())
    mesh = (
        Mesh.uniform(max(steps.values())) if paper and nodes is None else Mesh.lobatto(nodes or SMOOTH_POINTS)
    )
    known, found = [*ONE_STEP, "auto", *methods()], {}
    for name, body in bodies.items():
        solver = chosen[name]
        if isinstance(solver, (str, Method)) and isinstance(body, Driven):
            if isinstance(solver, str) and solver in ONE_STEP:
                found[name] = OneStep(body, solver, steps[name], mesh)
                continue
            try:
                resolve(solver)
            except ValueError:
                raise ValueError(
                    f"solvers: {solver!r} for {name!r} is not known; choose one of {', '.join(known)}, an "
                    "hn.Method, or a function"
                ) from None
            equal = substeps.get(name) if isinstance(substeps, Mapping) else None
            found[name] = Integrated(body, solver, equal, mesh, max(rtol, 1e-14), max(atol, 1e-15))
        elif callable(solver):
            found[name] = Called(name, solver, body, mesh)  # type: ignore[arg-type]
        else:
            raise ValueError(
                f"solvers: {solver!r} for {name!r}; give a name, an hn.Method or a function (t, q, v, force)"
            )
    return found, mesh

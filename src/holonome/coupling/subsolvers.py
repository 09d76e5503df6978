"""Solvers of subsystems: from an initial state and the coupling forces at the mesh points of a window to the
motion at the same points.

There are three kinds: the one-step methods of Wang, Hou & Modnak with their own sub-steps, all methods of
:func:`holonome.solve`, and the user's functions (:class:`WindowSolver`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from holonome.coupling.black_box import BlackBox, WindowSolver
from holonome.coupling.driven import FORCE, WINDOW, DrivenSubsystem, WindowFailed, driven_system
from holonome.coupling.mesh import Mesh, Motion, hermite_interpolation
from holonome.coupling.one_step import EULER, HEUN, TRAPEZOIDAL
from holonome.solving.methods import Method, methods, resolve
from holonome.solving.solve import solve

ONE_STEP = {"euler": EULER, "rk2": HEUN, "trapezoidal": TRAPEZOIDAL}
"""The solvers of the paper."""

DEFAULT_SOLVER = "trapezoidal"
DEFAULT_SUBSTEPS = 10
"""For subsystems that a dict of solvers or of sub-steps does not mention."""

DEFAULT_NODES = 6
"""Points of the polynomial that represents coupling forces in a window."""

MAX_STEPS = 20_000
"""Number of steps in a window after which a method is considered stuck."""

_LEAST_RTOL = 1e-14
_LEAST_ATOL = 1e-15

Subsystem = DrivenSubsystem | BlackBox


class Subsolver(Protocol):
    """Advances one subsystem over a window."""

    def motion(self, t: np.ndarray, y: np.ndarray, forces: np.ndarray) -> Motion:
        """The motion at the times ``t`` of the mesh from the state ``y`` at ``t[0]`` under the forces
        (points × n).
        """
        ...


class OneStepSolver:
    """Explicit Euler, Heun's method or the trapezoidal rule with constant sub-steps, and cubic Hermite
    interpolation where the sub-steps differ from the mesh.
    """

    def __init__(self, subsystem: DrivenSubsystem, kind: str, substeps: int, mesh: Mesh) -> None:
        self._subsystem = subsystem
        self._kind = ONE_STEP[kind]
        self._steps = np.linspace(0.0, 1.0, substeps + 1)
        self._on_mesh = np.array_equal(self._steps, mesh.points)
        self._interpolation = mesh.interpolation_matrix(self._steps)

    def motion(self, t: np.ndarray, y: np.ndarray, forces: np.ndarray) -> Motion:
        n = self._subsystem.n
        if self._on_mesh:
            states, a = self._subsystem.integrate(self._kind, t, y, np.ascontiguousarray(forces))
            return Motion(states[:, :n], states[:, n:], a)
        times = t[0] + (t[-1] - t[0]) * self._steps
        states, a = self._subsystem.integrate(self._kind, times, y, self._interpolation @ forces)
        q, v = hermite_interpolation(times, Motion(states[:, :n], states[:, n:], a), t)
        return self._subsystem.motion(t, q, v, forces)


class MethodSolver:
    """Any method of :func:`holonome.solve`, with equal steps if ``substeps`` is given."""

    def __init__(
        self,
        subsystem: DrivenSubsystem,
        method: str | Method,
        substeps: int | None,
        mesh: Mesh,
        rtol: float,
        atol: float,
    ) -> None:
        self._subsystem = subsystem
        self._substeps = substeps
        self._mesh = mesh
        self._options = {"method": method, "rtol": max(rtol, _LEAST_RTOL), "atol": max(atol, _LEAST_ATOL)}
        self._driven = driven_system(subsystem.system, mesh.points.size - 1)

    def motion(self, t: np.ndarray, y: np.ndarray, forces: np.ndarray) -> Motion:
        n = self._subsystem.n
        solution = solve(
            self._driven,
            (t[0], t[-1]),
            y[:n],
            y[n:],
            t_eval=t,
            step=None if self._substeps is None else abs(t[-1] - t[0]) / self._substeps,
            inputs={WINDOW: [t[0], t[-1] - t[0]], FORCE: self._mesh.to_coefficients @ forces},
            max_steps=MAX_STEPS,
            **self._options,
        )
        if not solution.success or solution.t.size < t.size:
            raise WindowFailed(f"{self._subsystem.name}: {solution.message}")
        q = np.ascontiguousarray(solution.q.T)
        v = np.ascontiguousarray(solution.v.T)
        return self._subsystem.motion(t, q, v, forces)


class UserSolver:
    """The user's own function."""

    def __init__(self, name: str, solver: WindowSolver, subsystem: Subsystem, mesh: Mesh) -> None:
        self._name = name
        self._solver = solver
        self._subsystem = subsystem
        self._mesh = mesh

    def motion(self, t: np.ndarray, y: np.ndarray, forces: np.ndarray) -> Motion:
        n = self._subsystem.n
        force = self._mesh.polynomial(t, forces)
        motion = self._solver(t.copy(), y[:n].copy(), y[n:].copy(), force)
        try:
            returned = [np.asarray(x, dtype=float) for x in motion]
        except (TypeError, ValueError):
            returned = []
        if len(returned) not in (2, 3) or any(x.shape != (n, t.size) for x in returned):
            shapes = ", ".join(str(x.shape) for x in returned) or "none"
            raise ValueError(
                f"solvers: the solver of {self._name!r} returned shapes {shapes}; it must return q, v and "
                f"optionally a, each of shape {(n, t.size)}"
            )
        if not all(np.all(np.isfinite(x)) for x in returned):
            raise WindowFailed(f"{self._name}: its solver returned values that are not finite")
        q = returned[0].T
        v = returned[1].T
        if isinstance(self._subsystem, DrivenSubsystem):
            return self._subsystem.motion(t, q, v, forces)
        if len(returned) == 3:
            return Motion(q, v, returned[2].T)
        return Motion(q, v, self._mesh.differentiation_matrix @ v / (t[-1] - t[0]))


def create_subsolvers(
    subsystems: Mapping[str, Subsystem],
    solvers: Any,
    substeps: int | Mapping[str, int],
    nodes: int | None,
    rtol: float,
    atol: float,
) -> tuple[dict[str, Subsolver], Mesh]:
    """A solver for each subsystem, and the mesh on which they exchange forces, from the options of
    :class:`holonome.LocalIteration`.
    """
    for argument, given in (("solvers", solvers), ("substeps", substeps)):
        if isinstance(given, Mapping):
            require_subsystems(argument, given, subsystems)
    chosen = {name: _chosen_solver(name, subsystem, solvers) for name, subsystem in subsystems.items()}
    steps = {
        name: substeps.get(name, DEFAULT_SUBSTEPS) if isinstance(substeps, Mapping) else substeps
        for name in subsystems
    }
    if nodes is None and all(isinstance(solver, str) and solver in ONE_STEP for solver in chosen.values()):
        mesh = Mesh.uniform(max(steps.values()))
    else:
        mesh = Mesh.lobatto(nodes or DEFAULT_NODES)
    created: dict[str, Subsolver] = {}
    for name, subsystem in subsystems.items():
        solver = chosen[name]
        if not isinstance(solver, str | Method):
            created[name] = UserSolver(name, solver, subsystem, mesh)
            continue
        assert isinstance(subsystem, DrivenSubsystem)
        if isinstance(solver, str) and solver in ONE_STEP:
            created[name] = OneStepSolver(subsystem, solver, steps[name], mesh)
        else:
            equal_steps = substeps.get(name) if isinstance(substeps, Mapping) else None
            created[name] = MethodSolver(subsystem, solver, equal_steps, mesh, rtol, atol)
    return created, mesh


def require_subsystems(argument: str, names: Mapping[str, Any], subsystems: Mapping[str, Any]) -> None:
    """Raise unless all keys are names of subsystems."""
    for name in names:
        if name not in subsystems:
            raise ValueError(
                f"{argument}: {name!r} is not a subsystem; the subsystems are {', '.join(subsystems)}"
            )


def _chosen_solver(name: str, subsystem: Subsystem, solvers: Any) -> Any:
    """The solver of one subsystem, checked: a name, a Method or a callable."""
    if isinstance(subsystem, BlackBox):
        return subsystem.solver
    solver = solvers.get(name, DEFAULT_SOLVER) if isinstance(solvers, Mapping) else solvers
    if isinstance(solver, str | Method):
        if isinstance(solver, str) and solver in ONE_STEP:
            return solver
        try:
            resolve(solver)
        except ValueError:
            known = ", ".join([*ONE_STEP, "auto", *methods()])
            raise ValueError(
                f"solvers: {solver!r} for {name!r} is not known; choose one of {known}, an hn.Method, or a "
                "function"
            ) from None
    elif not callable(solver):
        raise ValueError(
            f"solvers: {solver!r} for {name!r}; give a name, an hn.Method or a function (t, q, v, force)"
        )
    return solver

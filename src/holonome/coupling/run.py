"""A run of the local iteration: window after window, each iterated until it has converged, or halved."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holonome.coupling.black_box import BlackBox
from holonome.coupling.coupled_dynamics import CoupledDynamics
from holonome.coupling.coupled_system import CoupledSystem
from holonome.coupling.driven import DrivenSubsystem, WindowFailed
from holonome.coupling.initial_values import consistent_values
from holonome.coupling.mesh import Motion
from holonome.coupling.result import CoupledSolution, IterationHistory, contraction
from holonome.coupling.schur import contraction_rate, largest, product
from holonome.coupling.subsolvers import Subsystem, create_subsolvers
from holonome.coupling.updates import Iterate, create_update
from holonome.errors import ModelError
from holonome.machine.interruption import Interruption

if TYPE_CHECKING:
    from holonome.coupling.local_iteration import LocalIteration

NAME = "local-iteration"

_MOST_HALVINGS = 8
_SLOW_ITERATIONS = 5
"""Number of iterations in a window after which black boxes are measured again."""

_LARGEST_CORRECTION = 0.1
"""Largest correction at the end of a window, relative to the motion in the window."""

_NOISE = 1e-6
"""Relative size below which changes that no longer fall count as noise."""

_SUBSOLVER_TOLERANCE = 1e-2
"""Tolerance of the solvers of subsystems relative to that of the iteration."""


class _Point(NamedTuple):
    """One point of the solution."""

    t: float
    q: np.ndarray
    v: np.ndarray
    lam: np.ndarray


class _Window(NamedTuple):
    """The last iterate in a window, and the changes in each iteration, iterations × (subsystems + 1)."""

    t: np.ndarray
    motion: Motion
    lam: np.ndarray
    changes: np.ndarray


class Run:
    """The state of a run, and its history so far."""

    def __init__(
        self,
        coupled: CoupledSystem,
        method: LocalIteration,
        t_span: tuple[float, float],
        q0: np.ndarray,
        v0: np.ndarray,
        repair: bool,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        self._method = method
        self._pool = pool
        self._t0, self._t1 = t_span
        self._direction = math.copysign(1.0, self._t1 - self._t0)
        subsystems: dict[str, Subsystem] = {
            name: subsystem if isinstance(subsystem, BlackBox) else DrivenSubsystem(name, subsystem)
            for name, subsystem in coupled.subsystems.items()
        }
        self._solvers, self._mesh = create_subsolvers(
            subsystems,
            method.solvers,
            method.substeps,
            method.nodes,
            _SUBSOLVER_TOLERANCE * method.rtol,
            _SUBSOLVER_TOLERANCE * method.atol,
        )
        first_window = self._direction * min(method.window, abs(self._t1 - self._t0))
        initial = coupled.starting_at(self._t0, q0, v0)
        self._dynamics = CoupledDynamics(initial, subsystems, self._solvers, self._mesh)
        self._dynamics.measure_black_boxes(self._t0, q0, v0, first_window)
        self._q, self._v = consistent_values(self._dynamics, self._t0, q0, v0, repair)
        self._coupled = self._dynamics.coupled = coupled.starting_at(self._t0, self._q, self._v)
        self._a, self._lam, S = self._dynamics.initial_accelerations(self._t0, self._q, self._v)
        self._rho = {name: contraction_rate({name: 1.0}, S) for name in S}
        self._update = create_update(
            method.update, self._dynamics, subsystems, S, self._advance, method.max_iterations, method.check
        )
        self._history = IterationHistory()

    def solve(self, t_eval: np.ndarray | None, show: Callable[..., Any]) -> CoupledSolution:
        """Advance to the final time; windows that do not converge are halved."""
        t = self._t0
        length = self._method.window
        slow = False
        status = 0
        message = "the end was reached"
        points: list[_Point] = []
        if t_eval is None or t in t_eval:
            points.append(_Point(t, self._q, self._v, self._lam))
        while t != self._t1:
            end = self._t1 if length >= abs(self._t1 - t) * (1 - 1e-10) else t + self._direction * length
            if slow:
                self._dynamics.measure_black_boxes(t, self._q, self._v, end - t)
            try:
                window = self._iterate(self._mesh.times(t, end))
                projected = self._project_end(window)
            except (WindowFailed, ModelError, np.linalg.LinAlgError) as failure:
                self._history.rejected.append((t, abs(end - t), str(failure)))
                length = abs(end - t) / 2
                slow = True
                if Interruption.requested or length < self._method.window / 2**_MOST_HALVINGS:
                    status = -1
                    message = f"stopped at t = {t:.6g}, in a window of length {2 * length:.2g}: {failure}"
                    break
                continue
            iterations = len(window.changes)
            self._history.accept(t, end - t, window.changes)
            slow = iterations > _SLOW_ITERATIONS
            if iterations <= self._method.max_iterations / 2:
                length = min(self._method.window, 2 * length)
            t = end
            self._q, self._v = projected
            self._a = window.motion.a[-1]
            self._lam = window.lam[-1]
            points += self._points_to_keep(window, t_eval)
            show((t - self._t0) / (self._t1 - self._t0))
            if Interruption.requested and t != self._t1:
                status = -1
                message = f"interrupted at t = {t:.6g}"
                break
        return self._solution(points, status, message)

    def _solution(self, points: list[_Point], status: int, message: str) -> CoupledSolution:
        n = self._coupled.n
        return CoupledSolution(
            self._coupled,
            NAME,
            np.array([point.t for point in points]),
            np.array([[*point.q, *point.v] for point in points]).reshape(-1, 2 * n),
            np.array([point.lam for point in points]).reshape(-1, self._coupled.m).T,
            self._rho,
            status,
            message,
            self._history,
        )

    def _project_end(self, window: _Window) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities at the end of a window, projected.  A correction that is not small
        compared with the motion shows that the coupling forces do not resolve the motion in the window.
        """
        motion = window.motion
        if not self._method.projection:
            return motion.q[-1], motion.v[-1]
        q, v = self._dynamics.project(float(window.t[-1]), motion.q[-1], motion.v[-1])
        if self._method.iterations is None:
            for what, values, projected in (("positions", motion.q, q), ("velocities", motion.v, v)):
                allowed = _LARGEST_CORRECTION * largest(values - values[0]) + _NOISE * largest(values[-1])
                if largest(projected - values[-1]) > allowed:
                    raise WindowFailed(
                        f"the coupling forces do not hold the {what} together between the mesh points; use "
                        "more nodes or shorter windows"
                    )
        return q, v

    def _points_to_keep(self, window: _Window, t_eval: np.ndarray | None) -> list[_Point]:
        """The end of a window, or the wanted times in it."""
        begin = window.t[0]
        end = window.t[-1]
        if t_eval is None:
            return [_Point(float(end), self._q, self._v, self._lam)]
        inside = (self._direction * t_eval > self._direction * begin) & (
            self._direction * t_eval <= self._direction * end
        )
        times = t_eval[inside]
        q, v = self._mesh.interpolate(window.t, window.motion, times)
        lam = self._mesh.interpolation_matrix((times - begin) / (end - begin)) @ window.lam
        if self._method.projection:
            for i, time in enumerate(times):
                q[i], v[i] = self._dynamics.project(time, q[i], v[i])
        return [_Point(*point) for point in zip(times, q, v, lam, strict=True)]

    def _iterate(self, t: np.ndarray) -> _Window:
        """Iterate over one window."""
        ones = np.ones((t.size, 1))
        motion = Motion(ones * self._q, ones * self._v, ones * self._a)  # (23)
        lam = ones * self._lam
        coupling = self._coupled.at(t, motion.q, motion.v)
        forces = np.zeros_like(motion.q)
        changes: list[list[float]] = []
        self._update.begin_window()
        for i in range(self._method.iterations or self._method.max_iterations):
            if i > 0 or self._update.corrects_initial_guess:
                new_lam, B = self._update(Iterate(t, motion, lam, forces, coupling))
            else:
                new_lam = lam
                B = coupling.B
            forces = -product(B, new_lam)
            new_motion = self._advance_all(t, forces)
            changes.append(self._changes(new_motion.q - motion.q, new_lam - lam))  # (6), (7), (9)
            motion = new_motion
            lam = new_lam
            if self._method.iterations is None:
                if i > 0 and self._converged(changes, motion, lam):  # (10)
                    return _Window(t, motion, lam, np.array(changes))
                _refuse_growth(changes)
            coupling = self._coupled.at(t, motion.q, motion.v)
        if self._method.iterations is None:
            raise WindowFailed(
                f"no convergence in {self._method.max_iterations} iterations, contraction factor "
                f"{contraction(np.array(changes)[:, -1]):.2g}"
            )
        return _Window(t, motion, lam, np.array(changes))

    def _changes(self, q: np.ndarray, lam: np.ndarray) -> list[float]:
        """The largest entries of the positions of each subsystem, and of λ."""
        return [*[largest(q[:, part]) for part in self._coupled.parts.values()], largest(lam)]

    def _converged(self, changes: list[list[float]], motion: Motion, lam: np.ndarray) -> bool:
        """Whether changes are below the tolerance, or small and no longer falling: then they have reached the
        accuracy of the user's functions, or of differences of them.
        """
        method = self._method
        sizes = self._changes(motion.q, lam)
        if all(
            change <= method.atol + method.rtol * size
            for change, size in zip(changes[-1], sizes, strict=True)
        ):
            return True
        small = all(change <= _NOISE * size for change, size in zip(changes[-1], sizes, strict=True))
        last = [change[-1] for change in changes[-5:]]
        return small and len(last) == 5 and min(last[2:]) > 0.5 * min(last[:2])

    def _advance_all(self, t: np.ndarray, forces: np.ndarray) -> Motion:
        """The motion of all subsystems under the coupling forces."""
        if not np.all(np.isfinite(forces)):
            raise WindowFailed("the coupling forces are not finite")

        def advance(name: str) -> Motion:
            return self._advance(name, t, forces[:, self._coupled.parts[name]])

        map_all = map if self._pool is None else self._pool.map
        motions = list(map_all(advance, self._solvers))
        return Motion(*[np.hstack(columns) for columns in zip(*motions, strict=True)])

    def _advance(self, name: str, t: np.ndarray, forces: np.ndarray) -> Motion:
        """The motion of one subsystem from the beginning of the window."""
        part = self._coupled.parts[name]
        y = np.concatenate([self._q[part], self._v[part]])
        return self._solvers[name].motion(t, y, np.ascontiguousarray(forces))


def _refuse_growth(changes: list[list[float]]) -> None:
    lam = [change[-1] for change in changes[1:]]
    if not all(map(math.isfinite, changes[-1])) or (len(lam) > 5 and lam[-1] > 10 * lam[-4] > 10 * lam[0]):
        factor = contraction(np.array(changes)[:, -1])
        raise WindowFailed(f"the iteration diverges, contraction factor {factor:.2g}")

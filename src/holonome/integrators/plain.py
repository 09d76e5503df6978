"""Integrators in plain Python: a class with one method is enough.  Events, output times, switches, step size
control, dense output and messages come with it, as the compiled loop calls the method through an address.

    @dataclass(frozen=True)
    class ImplicitEuler(PlainIntegrator):
        step: float | None = None
        needs: ClassVar = ("residual",)

        def advance(self, equations, t, y, dy, h): ...

It costs some microseconds a step; for speed there is :mod:`holonome.integrators.contract`.
"""

from __future__ import annotations

import ctypes
import math
from abc import abstractmethod
from collections import namedtuple
from typing import Any, ClassVar

import numpy as np
from numba import njit

from holonome.dynamics.kernels import kernels
from holonome.integrators import loop
from holonome.integrators.contract import (
    Beginning,
    Integrator,
    Request,
    Stepper,
    initial_multipliers,
    initial_unknowns,
)
from holonome.integrators.dense_output import StepOutput
from holonome.integrators.loop import (
    OWN,
    hermite,
    leave,
    propose_explicit,
    run_state,
    watch_ends,
    weighted_square,
)
from holonome.integrators.start_check import check_start
from holonome.integrators.step_size import choose_next, shrink
from holonome.machine.calls import NativeKernel, call, run_kernel, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED, SINGULAR
from holonome.machine.interruption import Interruption
from holonome.machine.layout import Layout, Real, Vector, Whole

_GROW = 5.0


class PlainIntegrator(Integrator):
    """Base class of integrators in plain Python.

    ``needs`` is ("rate",) or ("residual",), ``order`` the order of the error estimate, for the step size
    control.

    Examples
    --------
    Explicit Euler, with a return to the manifold after each step:

    >>> import holonome as hn
    >>> class Euler(hn.PlainIntegrator):
    ...     def advance(self, equations, t, y, dy, h):
    ...         new = equations.project(t + h, y + h * dy)
    ...         rate = equations.rate(t + h, new)
    ...         return new, rate, h / 2 * (rate - dy)
    >>> pendulum, method = hn.mechanisms.pendulum(), hn.Method(hn.UnderlyingODE(), Euler())
    >>> sol = hn.solve(pendulum.system, (0, 1), pendulum.q0, pendulum.v0, method=method, rtol=1e-3, atol=1e-4)
    >>> sol.success, sol.drift[0] < 1e-4
    (True, True)
    """

    needs: ClassVar[tuple[str, ...]] = ("rate",)
    order: ClassVar[int] = 1

    @abstractmethod
    def advance(
        self, equations: PlainEquations, t: float, y: np.ndarray, dy: np.ndarray, h: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None] | None:
        """One step from t to t + h, where h may be negative.

        Parameters
        ----------
        equations
            What is solved: ``rate(t, y)`` and ``project(t, y)``, or ``residual(t, y, dy)`` and ``matrix(t, y,
            dy, cj)``.
        t, y, dy, h
            Where the step begins, with the derivative there, and its size.

        Returns
        -------
        (y, dy, error) at the end of the step, the error None at a constant step; or None if the step fails.
        """

    def stepper(self, request: Request) -> PlainStepper:
        return PlainStepper(self, request)


class PlainEquations:
    """The equations of a formulation, in NumPy; ``size`` unknowns, the first ``state`` of them (q, v, s)."""

    def __init__(self, stepper: PlainStepper, context: np.ndarray) -> None:
        self._stepper, self._context = stepper, context
        self.size, self.state = stepper.size, stepper.system.state_size

    def rate(self, t: float, y: np.ndarray) -> np.ndarray:
        """The y′ of the underlying ODE."""
        return self._evaluate(self._stepper.rate, t, y, y, self.size)

    def project(self, t: float, y: np.ndarray) -> np.ndarray:
        """A Newton step from y onto the manifold."""
        compiled, size = kernels(self._stepper.system), self.size
        out = self._evaluate(compiled.projection, t, y, np.zeros(size + 2), compiled.projection_size)
        return y + out[2 * size : 3 * size]

    def residual(self, t: float, y: np.ndarray, dy: np.ndarray) -> np.ndarray:
        """F(t, y, y′)."""
        z = np.zeros(1 + self._stepper.system.n)
        return self._evaluate(self._stepper.compiled.F, t, np.concatenate([y, dy]), z, self.size)

    def matrix(self, t: float, y: np.ndarray, dy: np.ndarray, cj: float) -> np.ndarray:
        """∂F/∂y + cj ∂F/∂y′."""
        compiled = self._stepper.compiled
        z = np.zeros(1 + compiled.residual.multipliers + self._stepper.system.n)
        z[0] = cj
        flat = self._evaluate(compiled.plain_matrix, t, np.concatenate([y, dy]), z, self.size**2)
        return flat.reshape(self.size, self.size)

    def _evaluate(self, address: int, t: float, y: np.ndarray, z: np.ndarray, size: int) -> np.ndarray:
        out = np.zeros(size + 1)
        if run_kernel(address, t, np.ascontiguousarray(y, dtype=float), z, self._context, out) != OK:
            raise ArithmeticError("the equations cannot be evaluated there")
        return out[:size]


class PlainState(Layout):
    """The integrator's part of the memory."""

    callback: Whole  # address
    unknowns: Whole
    coordinates: Whole
    state: Whole
    order: Whole
    exponent: Real
    beta: Real
    log_error: Real
    after_rejection: Whole
    h: Vector  # the step to try
    now: Vector  # y, y′
    before: Vector  # the same before the last step
    new: Vector  # y, y′ and the error after the step


named = PlainState.named()


Work = namedtuple("Work", "memory run s n size")
"""The memory taken apart once."""


@njit(cache=True)
def parts(memory):
    s = named(shift(memory, OWN))
    return Work(memory, run_state(memory), s, s.coordinates, s.unknowns)


@njit(cache=True)
def begin(w, context):
    run = w.run
    run.order = w.s.order
    run.h = 1e-4 * abs(run.t_end - run.t)
    if run.constant > 0.0:
        run.h = run.constant
    elif run.first_step > 0.0:
        run.h = run.first_step
    run.h = min(run.h, run.h_max)
    return OK


@njit(cache=True)
def attempt(w, context, t, h):
    run, s, size = w.run, w.s, w.size
    s.h[0] = h
    run.nfev += 1
    run.error = math.inf
    status = call(s.callback, t, s.now, s.h, context, s.new)
    if status == INTERRUPTED:
        return leave(w, loop.STOPPED)
    if status != OK:
        run.t_failed = t + h
        return loop.FUNCTION_RAISED if status == RAISED else loop.NEWTON
    error = shift(s.new, 2 * size)
    run.error = math.sqrt(weighted_square(error, s.now, s.new, run.atol, run.rtol, s.state) / s.state)
    if run.error - run.error != 0.0:
        return loop.NOT_FINITE
    return loop.ERROR_TEST if run.error > 1.0 and run.constant == 0.0 else loop.ACCEPTED


@njit(cache=True)
def accept(w, steps, row, t, h, t_new):
    run, s, size = w.run, w.s, w.size
    for i in range(2 * size):
        s.before[i] = s.now[i]
        s.now[i] = s.new[i]
    count = run.size
    for i in range(count):
        run.y_old[i] = run.y[i]
        run.y[i] = s.now[i]
    if row >= 0 and steps.shape[1] > loop.STEP_COLUMNS:
        for i in range(count):
            at = loop.STEP_COLUMNS + i
            steps[row, at] = s.before[i]
            steps[row, at + count] = s.before[size + i]
            steps[row, at + 2 * count] = s.now[i]
            steps[row, at + 3 * count] = s.now[size + i]
    choose_next(w, h, _GROW)


@njit(cache=True)
def resume(w, context):
    return OK


@NativeKernel
def interpolant(t, y, memory, context, out):
    """Hermite's cubic through both ends of the last step."""
    w = parts(memory)
    before, now = w.s.before, w.s.now
    hermite(w.run, t, before, shift(before, w.size), now, shift(now, w.size), w.run.size, out)
    return OK


propose, reject, watch = propose_explicit, shrink, watch_ends
advance = loop.advance_with(globals())


class PlainOutput(StepOutput):
    """Hermite's cubic in every step."""

    def _evaluate(self, context: np.ndarray, wanted: np.ndarray, out: np.ndarray) -> int:
        from scipy.interpolate import CubicHermiteSpline

        steps, which = self.record.steps, self._steps_with(wanted)
        begin, size, ends = steps[:, 0], steps[:, 1], steps[:, loop.STEP_COLUMNS :].reshape(len(steps), 4, -1)
        for step in np.unique(which):
            here, (y, dy, y_new, dy_new) = which == step, ends[step]
            t0, h = begin[step], size[step]
            curve = CubicHermiteSpline([0.0, abs(h)], [y, y_new], np.sign(h) * np.array([dy, dy_new]))
            out[here] = curve(np.abs(wanted[here] - t0))
        return wanted.size


class PlainStepper(Stepper):
    """An integrator in plain Python on one system."""

    advance = staticmethod(advance)
    interpolant = interpolant
    output = PlainOutput
    calls_python = True
    on_manifold = True

    def __init__(self, integrator: PlainIntegrator, request: Request) -> None:
        super().__init__(request)
        self.integrator = integrator
        self.form = integrator.form(self.formulation)
        self.implicit = self.form == "residual"
        self.compiled: Any = self.formulation.kernels(self.system) if self.implicit else None
        self.rate = 0 if self.implicit else self.formulation.rate(self.system)
        self.size = self.compiled.size if self.compiled else self.system.state_size
        self.columns = self.system.state_size + (self.system.m if self.implicit else 0)
        self.layout_key = ("plain", self.formulation, type(integrator), integrator.order)
        self.error: BaseException | None = None
        self._equations: PlainEquations | None = None
        signature = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, *[ctypes.c_void_p] * 4)
        self._callback = signature(self._call)

    def memory(self, events: int) -> np.ndarray:
        memory = super().memory(events)
        PlainState.set(memory, OWN, callback=ctypes.cast(self._callback, ctypes.c_void_p).value)
        return memory

    def _own(self) -> list:
        order, size = self.integrator.order, self.size
        fields = {
            "unknowns": size,
            "coordinates": self.system.n,
            "state": self.system.state_size,
            "order": order,
            "exponent": 1 / (order + 1),
            "h": 1,
            "now": 2 * size,
            "before": 2 * size,
            "new": 3 * size,
        }
        return [(PlainState, fields)]

    def begin(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> int:
        self.prepare_context(context)
        self.error = None
        self._equations = PlainEquations(self, context)
        code, rate = check_start(self.system, memory, context, beginning.trusted)
        if code != OK:
            return code
        start = np.concatenate([beginning.y, rate])
        if self.compiled is not None:
            lam = initial_multipliers(self.system, context, beginning)
            shown = np.concatenate([beginning.y, lam])
            start = initial_unknowns(self.system, self.compiled, context, beginning.t0, shown, rate)
        PlainState.vector(memory, "now", OWN)[:] = start
        loop.RunState.vector(memory, "y")[: self.columns] = start[: self.columns]
        return OK

    def _call(self, t: float, now: int, h: int, context: int, new: int) -> int:
        """One step, called by the loop."""
        if Interruption.requested:
            return INTERRUPTED
        size, self.error = self.size, None
        try:
            start, out = _numbers(now, 2 * size), _numbers(new, 3 * size)
            y, dy = start[:size].copy(), start[size:].copy()
            found = self.integrator.advance(self._equations, t, y, dy, float(_numbers(h, 1)[0]))  # type: ignore[arg-type]
            if found is None:
                return SINGULAR
            error = found[2]
            if error is None and not self.constant:
                raise ValueError("without an error estimate it needs a constant step; give step=...")
            out[:size], out[size : 2 * size] = found[0], found[1]
            out[2 * size :] = 0.0 if error is None else error
        except KeyboardInterrupt:
            return INTERRUPTED
        except ArithmeticError:
            return SINGULAR
        except BaseException as error:
            self.error = error
            return RAISED
        return OK

    def why_stuck(self, memory: np.ndarray) -> str:
        if self.error is None:
            return ""
        return f"{self.integrator.label} raised {type(self.error).__name__}: {self.error}"

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        return 4 * self.columns if dense else 0

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        return PlainState.vector(memory, "now", OWN)[: self.system.state_size].copy()


def _numbers(address: int, size: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_double * size).from_address(address))

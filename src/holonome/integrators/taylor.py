"""Taylor series of variable order: the user's options, and the stepper for a system.

The mathematics of a step is in :mod:`holonome.integrators.taylor_steps`, the recurrences are in
:mod:`holonome.equations.series`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from holonome.arguments import check_fields
from holonome.dynamics.kernels import kernels
from holonome.errors import SingularSystem
from holonome.formulations.underlying_ode import UnderlyingODE
from holonome.integrators import taylor_steps as steps
from holonome.integrators.contract import Beginning, Integrator, Record, Request, Stepper
from holonome.integrators.explicit_stepper import ExplicitStepper
from holonome.integrators.loop import OWN, RunState
from holonome.integrators.taylor_series import LARGEST_ORDER, SeriesKernels
from holonome.integrators.taylor_steps import TaylorState
from holonome.machine.calls import run_kernel
from holonome.machine.context import SINGULAR
from holonome.machine.layout import padded
from holonome.machine.series import ORDER, UNIT


@dataclass(frozen=True)
class Taylor(Integrator):
    """Taylor series, with recurrences for every operation of the equations.

    Parameters
    ----------
    order
        Order of the series, from 2 to 32; None chooses it by the tolerance and the size of the model.
    step
        Constant step size; None chooses it by the tolerances.

    References
    ----------
    R. E. Moore, Interval Analysis, Prentice-Hall 1966.
    À. Jorba, M. Zou, A software package for the numerical integration of ODEs by means of high-order Taylor
    methods, Experimental Mathematics 14 (2005).

    Examples
    --------
    A planet on an eccentric orbit, and where it is after one period:

    >>> import numpy as np, holonome as hn
    >>> kepler = hn.mechanisms.kepler(eccentricity=0.6)
    >>> sol = hn.solve(kepler.system, (0, 2 * np.pi), kepler.q0, kepler.v0, method="taylor", rtol=1e-13)
    >>> bool(np.max(np.abs(sol.q[:, -1] - sol.q[:, 0])) < 1e-11), sol.t.size < 40
    (True, True)
    """

    order: int | None = None
    step: float | None = None
    needs: ClassVar[tuple[str, ...]] = ("series",)

    def __post_init__(self) -> None:
        check_fields(self)

    def stepper(self, request: Request) -> Stepper:
        return TaylorStepper(self.order, request)


METHODS = {
    "taylor": (
        UnderlyingODE(),
        Taylor(),
        "Taylor series of high order with projection: small models, tight tolerances",
        "Jorba & Zou, Experimental Mathematics 14 (2005); Eich, SIAM J. Numer. Anal. 30 (1993)",
    ),
}


_, _write_order = TaylorState.stretch("order", "exponent", OWN)
_REMAINDER = 0.1
"""What a step leaves out, in units of the tolerance."""


class TaylorStepper(ExplicitStepper):
    """Taylor series of the underlying ODE."""

    advance, evaluate = staticmethod(steps.advance), staticmethod(steps.evaluate)
    interpolant, preview = steps.interpolant, steps.preview
    layout = TaylorState

    def __init__(self, order: int | None, request: Request) -> None:
        super().__init__(request)
        self.order = order
        self.layout_key = ("taylor", order, self.formulation)
        self._chosen: dict[tuple[int | None, float], tuple] = {}
        self.piecewise = self.series.series.piecewise

    @property
    def series(self) -> SeriesKernels:
        """Its machine code."""
        system, formulation = self.system, self.formulation
        return system.compiled.once(
            ("series", formulation), lambda: SeriesKernels(system, formulation.motion)
        )

    def _own(self) -> list:
        length = (1 + LARGEST_ORDER) * padded(self.columns)
        own = {
            "piecewise": self.piecewise,
            "length": length,
            "coefficients": 2 * length,
            "work": self.series.work,
            "rate": padded(self.columns),
        }
        return [(TaylorState, self.explicit_fields() | own)]

    def begin(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> int:
        """The order follows from the tolerance."""
        code = super().begin(memory, context, beginning)
        self.enter_order(memory, self.order, float(memory[RunState.places.rtol]))
        if beginning.trusted:
            self._require_regular(memory, context, beginning)
        return code

    def recall_run(self, memory: np.ndarray, record: Record) -> None:
        self.enter_order(memory, int(record.steps[0, 5]), 0.5)

    def enter_order(self, memory: np.ndarray, order: int | None, rtol: float) -> None:
        """Choose the order for a tolerance, and enter what follows from it."""
        if (order, rtol) not in self._chosen:
            chosen = order or self.series.best_order(rtol)
            ratio = rtol ** (1 / chosen)
            safe = _REMAINDER * (1 - ratio) / ratio**2
            exponent = 0.5 if self.piecewise else 1 / (chosen + 1)
            self._chosen[order, rtol] = chosen, self.series.address(chosen), safe, exponent
        _write_order(memory, *self._chosen[order, rtol])

    def _require_regular(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> None:
        """Raise where rows depend on each other at the start: the series have no other elimination."""
        out = TaylorState.vector(memory, "coefficients", OWN)
        work = TaylorState.vector(memory, "work", OWN)
        work[ORDER], work[UNIT] = TaylorState.of(memory, OWN)["order"], 1.0
        address = TaylorState.of(memory, OWN)["series"]
        if run_kernel(address, beginning.t0, beginning.y, work, context, out) == SINGULAR:
            raise SingularSystem(
                "method: rows of the constraints depend on each other at the start, or a mass is singular, "
                "which Taylor series cannot treat; use 'dop853'"
            )

    def cost(self, memory: np.ndarray) -> float:
        run, order = RunState.of(memory), TaylorState.of(memory, OWN)["order"]
        _, projection = kernels(self.system).instructions
        return run["nfev"] * self.series.cost(int(order)) + run["projections"] * projection

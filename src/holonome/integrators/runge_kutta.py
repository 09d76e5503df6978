"""Explicit Runge–Kutta methods: the user's options, and the stepper for a system.

The mathematics of a step is in :mod:`holonome.integrators.runge_kutta_steps`, coefficients are in
:mod:`holonome.integrators.tableau`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from holonome.arguments import checked, shown
from holonome.dynamics.kernels import dense_derivative, dense_projection, kernels
from holonome.formulations.sequential_regularization import SRM
from holonome.formulations.underlying_ode import UnderlyingODE
from holonome.integrators import runge_kutta_output as output
from holonome.integrators import runge_kutta_steps as rk
from holonome.integrators.contract import Beginning, DenseOutput, Integrator, Record, Request, Stepper
from holonome.integrators.loop import OWN, STEP_COLUMNS, RunState
from holonome.integrators.passing import gaps
from holonome.integrators.runge_kutta_steps import RungeKuttaState
from holonome.integrators.sequential import ExplicitSequential
from holonome.integrators.tableau import TABLEAUS, Tableau, addresses
from holonome.locks import cached_property
from holonome.machine.context import OK
from holonome.machine.layout import padded


@dataclass(frozen=True)
class RungeKutta(Integrator):
    """An explicit Runge–Kutta method.

    Parameters
    ----------
    name
        "heun" (order 2), "dopri5" (Dormand–Prince 5(4)), "dop853" (Dormand–Prince 8(5,3)), or a `Tableau` of
        one's own.
    step
        Constant step size; None chooses it by the tolerances.

    References
    ----------
    J. R. Dormand, P. J. Prince, A family of embedded Runge–Kutta formulae, J. Comput. Appl. Math. 6 (1980).
    E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, Springer 1993.

    Examples
    --------
    Heun's method with two constant steps: half the step, a quarter of the error.

    >>> import numpy as np, holonome as hn
    >>> falling = hn.System(1.0, lambda v: -v, n=1)
    >>> errors = [
    ...     hn.solve(
    ...         falling,
    ...         (0, 1),
    ...         [0],
    ...         [1],
    ...         method=hn.Method(hn.UnderlyingODE(), hn.RungeKutta("heun", step=h)),
    ...     ).v[0, -1]
    ...     - np.exp(-1)
    ...     for h in (0.02, 0.01)
    ... ]
    >>> bool(3.9 < errors[0] / errors[1] < 4.1)
    True
    """

    name: str | Tableau = "dopri5"
    step: float | None = None
    needs: ClassVar[tuple[str, ...]] = ("rate", "sequence")

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", checked("step", self.step))
        known = isinstance(self.name, str) and self.name in TABLEAUS
        if not known and not isinstance(self.name, Tableau):
            raise ValueError(
                f"name: {shown(self.name)} is not known; choose one of {', '.join(TABLEAUS)}, or give a "
                "Tableau"
            )

    @property
    def tableau(self) -> Tableau:
        return self.name if isinstance(self.name, Tableau) else TABLEAUS[self.name]

    @property
    def label(self) -> str:
        return self.tableau.name

    def stepper(self, request: Request) -> Stepper:
        if self.form(request.formulation) == "sequence":
            return ExplicitSequential(self.tableau, request)
        return RungeKuttaStepper(self.tableau, request)


_HAIRER = "Hairer, Nørsett & Wanner, Solving Ordinary Differential Equations I (1993)"
_EICH = "Eich, SIAM J. Numer. Anal. 30 (1993)"
METHODS = {
    "dopri5": (
        UnderlyingODE(),
        RungeKutta("dopri5"),
        "Dormand–Prince 5(4) with projection: for rough forces",
        f"{_HAIRER}; {_EICH}",
    ),
    "dop853": (
        UnderlyingODE(),
        RungeKutta("dop853"),
        "Dormand–Prince 8(5,3) with projection: the fastest unless forces are rough or stiff",
        f"{_HAIRER}; {_EICH}",
    ),
    "heun": (
        UnderlyingODE(),
        RungeKutta("heun"),
        "Heun's method of order 2 with projection: for order studies and rough forces",
        f"{_HAIRER}; {_EICH}",
    ),
    "srm": (
        SRM(variant="singular"),
        RungeKutta("dop853"),
        "sequential regularization, iterations advanced together; passes singular positions",
        "Ascher & Lin, SIAM J. Sci. Comput. 18 (1997)",
    ),
}


def tableau_fields(tableau: Tableau, size: int) -> dict[str, Any]:
    """What the record of a method with this tableau is made with, for vectors of this size."""
    return {
        "stages": tableau.stages,
        "order": tableau.order,
        "two_errors": len(tableau.errors) - 1,
        "last_weight": tableau.errors[0][-1],
        "exponent": 1 / (tableau.error_order + 1),
        "beta": tableau.beta,
        "sums": addresses(tableau, size),
        "c": tableau.c,
        "k": tableau.stages * padded(size),
    }


_read_stiff, _write_stiff = RungeKuttaState.stretch("stiff", "stiff", OWN)


class RungeKuttaStepper(Stepper):
    """A Runge–Kutta method on the underlying ODE."""

    advance = staticmethod(rk.advance)
    interpolant = output.interpolant
    preview = output.preview
    leaves_out_rows = True

    def __init__(self, tableau: Tableau, request: Request) -> None:
        super().__init__(request)
        self.tableau = tableau
        self.layout_key = (tableau, self.formulation)
        self.projects_anyway = self.formulation.projects
        self.columns = self.system.state_size

    def _own(self) -> list:
        system, compiled, size = self.system, kernels(self.system), self.columns
        room, between = padded(size), gaps(np.array(self.tableau.c))
        fields = tableau_fields(self.tableau, size) | {
            "coordinates": system.n,
            "stable": self.tableau.stable,
            "project": self.formulation.projects and system.projects,
            "check": rk.CONSTRAINED if system.projects else rk.UNCONSTRAINED,
            "derivative": self.formulation.rate(system),
            "projection": compiled.projection,
            "dense_derivative": dense_derivative.address,
            "dense_projection": dense_projection.address,
            "gaps": between,
            "gap_count": len(between) if self.formulation.projects else 0,
            "kappa": 10.0,
            "k_new": room,
            "z": room,
            "error": room + 4,
            "projected": padded(compiled.projection_size + 4),
        }
        return [(RungeKuttaState, fields)]

    def begin(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> int:
        """The compiled loop itself checks the start, unless it is known to be consistent."""
        self.prepare_context(context)
        if beginning.trusted:
            RungeKuttaState.set(memory, OWN, scale_q=0.0, scale_v=0.0, check=rk.TRUSTED)
        return OK

    def met_stiffness(self, memory: np.ndarray) -> bool:
        return _read_stiff(memory)[0] < 0

    def watch_stiffness(self, memory: np.ndarray, wanted: bool = True) -> None:
        _write_stiff(memory, wanted)

    def cost(self, memory: np.ndarray) -> float:
        run, n = RunState.of(memory), self.system.n + len(self.system.states)
        derivative, projection = kernels(self.system).instructions
        steps = float(run["accepted"] + run["rejected"])
        return run["nfev"] * (derivative + 12 * n) + run["projections"] * projection + steps * 20 * n

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        return self.columns if beside_points else 0

    def dense_output(self, record: Record) -> RungeKuttaOutput:
        if not record.steps_beside_points:
            record = record._replace(t_end=float(record.points[-1, 0]))
        return RungeKuttaOutput(self, record)

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        return RungeKuttaState.vector(memory, "z", OWN)[: self.columns].copy()


class RungeKuttaOutput(DenseOutput):
    """Between two points of a Runge–Kutta run: a step of the method."""

    @cached_property
    def _begins(self) -> tuple[np.ndarray, np.ndarray]:
        record = self.record
        times, states = record.points[:, 0], record.points[:, 1:]
        if record.steps_beside_points:
            times = np.append(record.steps[:, 0], record.t_end)
            states = np.vstack([record.steps[:, STEP_COLUMNS:], record.last_state])
        return np.ascontiguousarray(times), np.ascontiguousarray(states)

    def _scales(self, states: np.ndarray) -> tuple[float, float]:
        """The largest position and velocity."""
        parts = np.split(np.abs(states), [self.stepper.system.n], axis=1)
        return tuple(max(float(np.max(part, initial=0.0)), 1e-300) for part in parts)  # type: ignore

    def _evaluate(self, context: np.ndarray, wanted: np.ndarray, out: np.ndarray) -> int:
        memory, (times, states) = self.stepper.memory(0), self._begins
        RunState.set(memory, t_start=times[0], t_end=times[-1])
        scale_q, scale_v = self._scales(states)
        RungeKuttaState.set(memory, OWN, scale_q=scale_q, scale_v=scale_v)
        return output.evaluate(memory, context, times, states, self._steps_with(wanted), wanted, out)

"""Explicit Runge–Kutta methods: the user's options, and the stepper for a system.

The mathematics of a step is in :mod:`holonome.integrators.runge_kutta_steps`, coefficients are in
:mod:`holonome.integrators.tableau`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from holonome.arguments import checked, shown
from holonome.dynamics.kernels import kernels
from holonome.formulations.sequential_regularization import SRM
from holonome.formulations.underlying_ode import UnderlyingODE
from holonome.integrators import runge_kutta_steps as rk
from holonome.integrators.contract import Integrator, Request, Stepper
from holonome.integrators.explicit_stepper import ExplicitStepper
from holonome.integrators.loop import OWN, RunState
from holonome.integrators.passing import gaps
from holonome.integrators.runge_kutta_steps import RungeKuttaState
from holonome.integrators.sequential_explicit import ExplicitSequential
from holonome.integrators.tableau import TABLEAUS, Tableau, tableau_fields
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


_read_stiff, _write_stiff = RungeKuttaState.stretch("stiff", "stiff", OWN)


class RungeKuttaStepper(ExplicitStepper):
    """A Runge–Kutta method on the underlying ODE."""

    advance, evaluate = staticmethod(rk.advance), staticmethod(rk.evaluate)
    interpolant, preview = rk.interpolant, rk.preview
    layout = RungeKuttaState
    leaves_out_rows = True

    def __init__(self, tableau: Tableau, request: Request) -> None:
        super().__init__(request)
        self.tableau = tableau
        self.layout_key = (tableau, self.formulation)

    def _own(self) -> list:
        size, between = self.columns, gaps(np.array(self.tableau.c))
        own = {
            "stable": self.tableau.stable,
            "gaps": between,
            "gap_count": len(between) if self.formulation.projects else 0,
            "k_new": padded(size),
        }
        return [(RungeKuttaState, self.explicit_fields() | tableau_fields(self.tableau, size) | own)]

    def met_stiffness(self, memory: np.ndarray) -> bool:
        return _read_stiff(memory)[0] < 0

    def watch_stiffness(self, memory: np.ndarray, wanted: bool = True) -> None:
        _write_stiff(memory, wanted)

    def cost(self, memory: np.ndarray) -> float:
        run, n = RunState.of(memory), self.system.n + len(self.system.states)
        derivative, projection = kernels(self.system).instructions
        steps = float(run["accepted"] + run["rejected"])
        return run["nfev"] * (derivative + 12 * n) + run["projections"] * projection + steps * 20 * n

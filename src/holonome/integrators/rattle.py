"""RATTLE: the user's options, and the stepper for a system.

The equations of a step are in :mod:`holonome.formulations.hamiltonian`, the steps in
:mod:`holonome.integrators.rattle_steps`, compositions in :mod:`holonome.integrators.composition`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from holonome.arguments import check_fields
from holonome.dynamics.kernels import dense_derivative, dense_projection, kernels
from holonome.formulations.hamiltonian import Hamiltonian, MomentumKernels
from holonome.integrators import rattle_steps
from holonome.integrators.composition import COMPOSITIONS
from holonome.integrators.contract import Beginning, Integrator, Record, Request, Stepper, rows_left_out
from holonome.integrators.dense_output import PointOutput
from holonome.integrators.loop import OWN, RunState
from holonome.integrators.rattle_half import RattleState
from holonome.integrators.start_check import check_start
from holonome.machine.context import LEFT_OUT_SHIFT, OK


@dataclass(frozen=True)
class Rattle(Integrator):
    """RATTLE, the symplectic method for constrained systems, and its symmetric compositions; without
    constraints the method of Störmer and Verlet.

    Steps have one size. On a conservative system the energy error stays bounded, over millions of steps; the
    flow is symplectic on the manifold and reversible in time.  A mass matrix that depends on q, and forces
    that depend on v, make the steps implicit.  Friction is allowed: the method is then one of its order like
    others.

    Parameters
    ----------
    step
        Size of the steps. It must be given, here or to :func:`solve`.
    order
        2, or 4, 6, 8 by 5, 9, 17 steps of order 2 in one.

    References
    ----------
    H. C. Andersen, RATTLE: a "velocity" version of the SHAKE algorithm for molecular dynamics calculations,
    J. Comput. Phys. 52 (1983). E. Hairer, C. Lubich, G. Wanner, Geometric Numerical Integration, Springer
    2006. W. Kahan, R.-C. Li, Math. Comp. 66 (1997): the compositions of order 6 and 8; M. Suzuki, Phys. Lett.
    A 146 (1990): that of order 4.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> def changes(order):
    ...     sol = hn.solve(
    ...         pendulum.system, (0, 100), pendulum.q0, pendulum.v0,
    ...         method=hn.Method(hn.Hamiltonian(), hn.Rattle(step=0.02, order=order)),
    ...     )
    ...     return float(abs(sol.energy - sol.energy[0]).max())
    >>> changes(2) < 0.03, changes(8) < 1e-6
    (True, True)
    """

    step: float | None = None
    order: int = 2
    needs: ClassVar[tuple[str, ...]] = ("momentum",)
    fixed_step: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)
        if self.order not in COMPOSITIONS:
            raise ValueError(f"order: {self.order}; give one of {', '.join(map(str, COMPOSITIONS))}")

    @property
    def label(self) -> str:
        return f"Rattle({self.order})"

    def stepper(self, request: Request) -> Stepper:
        if not request.step:
            raise ValueError(
                "step: missing; Rattle takes steps of one size, which keeps it symplectic. Give step=..., "
                "such as a fiftieth of the shortest period"
            )
        return RattleStepper(self, request)


_ANDERSEN = "Andersen, J. Comput. Phys. 52 (1983)"
_HAIRER = "Hairer, Lubich & Wanner, Geometric Numerical Integration (2006)"
_KAHAN = "Kahan & Li, Math. Comp. 66 (1997)"
_SUZUKI = "Suzuki, Phys. Lett. A 146 (1990)"
METHODS = {
    "rattle": (
        Hamiltonian(),
        Rattle(),
        "RATTLE (Störmer–Verlet without constraints), symplectic, of order 2; needs step=",
        f"{_ANDERSEN}; {_HAIRER}",
    ),
    "rattle4": (
        Hamiltonian(),
        Rattle(order=4),
        "RATTLE composed to order 4; needs step=",
        f"{_SUZUKI}; {_HAIRER}",
    ),
    "rattle6": (
        Hamiltonian(),
        Rattle(order=6),
        "RATTLE composed to order 6; needs step=",
        f"{_KAHAN}; {_HAIRER}",
    ),
    "rattle8": (
        Hamiltonian(),
        Rattle(order=8),
        "RATTLE composed to order 8, for small errors over very long times; needs step=",
        f"{_KAHAN}; {_HAIRER}",
    ),
}


class RattleStepper(Stepper):
    """RATTLE on one system."""

    advance, evaluate = staticmethod(rattle_steps.advance), staticmethod(rattle_steps.evaluate)
    interpolant, preview = rattle_steps.interpolant, rattle_steps.preview
    output = PointOutput
    layout = RattleState
    implicit = True
    on_manifold = True
    fixed_step = True

    def __init__(self, integrator: Rattle, request: Request) -> None:
        super().__init__(request)
        self.integrator = integrator
        self.layout_key = (integrator, self.formulation)
        self.columns = self.system.state_size
        self.projects_anyway = not self.compiled.implicit

    @property
    def compiled(self) -> MomentumKernels:
        return self.formulation.momentum(self.system)

    def _own(self) -> list:
        system, stages, compiled = self.system, self.compiled, kernels(self.system)
        n, m, known, size = system.n, system.m, stages.entries, system.state_size
        k = size - 2 * n
        gamma = COMPOSITIONS[self.integrator.order]
        stepped = stages.implicit or m > 0
        fields: dict[str, Any] = {
            "coordinates": n,
            "rows": m,
            "states": k,
            "entries": known,
            "unknowns": stages.unknowns,
            "implicit": stages.implicit,
            "order": self.integrator.order,
            "substeps": len(gamma),
            "gradient": stages.gradient if known else 0,
            "rates": stages.rates if k else 0,
            "derivative": compiled.derivative,
            "dense_derivative": dense_derivative.address,
            "projection": compiled.projection if m else 0,
            "dense_projection": dense_projection.address,
            "kappa": 10.0,
            "gamma": gamma,
            "half": stages.half.memory() if stepped else 0,
            "end": stages.end.memory() if stages.end else 0,
            "x": 6 * n + m + 2 * k + 1 + known,
            "x_end": size + n + m,
            "point": size + k + 1,
            "change": stages.unknowns,
            "z": 1 + m,
            "error": size + 4,
            "projected": compiled.projection_size + 4,
            "now": 5 * n + k + known,
            "new": 5 * n + k + known,
            "bend": 2 * n,
            "bends": 3 * len(gamma) * 2 * n,
            "rate_old": size + 1,
            "rate": size + 1,
        }
        return [(RattleState, fields)]

    def begin(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> int:
        """Whether it may begin there, and which rows follow from others."""
        self.prepare_context(context)
        code, _ = check_start(self.system, memory, context, beginning.trusted)
        if code == OK:
            self.left_out, _ = rows_left_out(self, context, beginning)
            self._leave_out(memory)
            self.prepare_context(context)
        return code

    def _leave_out(self, memory: np.ndarray) -> None:
        RattleState.vector(memory, "z", OWN)[[1 + i for i in self.left_out]] = LEFT_OUT_SHIFT

    def recall_run(self, memory: np.ndarray, record: Record) -> None:
        self._leave_out(memory)

    def cost(self, memory: np.ndarray) -> float:
        evaluation, projection = kernels(self.system).instructions
        return RunState.of(memory)["nfev"] * float(evaluation + 3 * projection)

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        return self.columns if beside_points else 0

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        return RattleState.vector(memory, "x", OWN)[: self.system.state_size].copy()

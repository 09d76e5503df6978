"""What explicit families on the underlying ODE share: a part of their memory, the start, and dense output."""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.dynamics.kernels import dense_derivative, dense_projection, kernels
from holonome.integrators.contract import Beginning, Request, Stepper
from holonome.integrators.dense_output import PointOutput
from holonome.integrators.loop import OWN
from holonome.integrators.projected_steps import CONSTRAINED, TRUSTED, UNCONSTRAINED
from holonome.machine.context import OK
from holonome.machine.layout import padded


class ExplicitStepper(Stepper):
    """Base class; ``layout`` is that of the family, whose ``z`` holds the point that is tried."""

    output = PointOutput

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.projects_anyway = self.formulation.projects
        self.columns = self.system.state_size

    def explicit_fields(self) -> dict[str, Any]:
        """Numbers and vectors that every family has, under the same names."""
        system, compiled, room = self.system, kernels(self.system), padded(self.columns)
        return {
            "coordinates": system.n,
            "stride": room,
            "project": self.formulation.projects and system.projects,
            "check": CONSTRAINED if system.projects else UNCONSTRAINED,
            "derivative": self.formulation.rate(system),
            "projection": compiled.projection,
            "dense_derivative": dense_derivative.address,
            "dense_projection": dense_projection.address,
            "kappa": 10.0,
            "z": room,
            "error": room + 4,
            "projected": padded(compiled.projection_size + 4),
        }

    def begin(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> int:
        """The compiled loop itself checks the start, unless it is known to be consistent."""
        self.prepare_context(context)
        if beginning.trusted:
            self.layout.set(memory, OWN, scale_q=0.0, scale_v=0.0, check=TRUSTED)
        return OK

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        return self.columns if beside_points else 0

    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        return self.layout.vector(memory, "z", OWN)[: self.columns].copy()

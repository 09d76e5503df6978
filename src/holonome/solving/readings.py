"""What a simulator shows of its present state: arrays, quantities of the system, numbers by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.dynamics.kernels import dense_derivative, dense_multipliers, kernels
from holonome.dynamics.state import State
from holonome.dynamics.switched import base_of
from holonome.errors import ModelError
from holonome.integrators.loop import RunState
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK, SINGULAR
from holonome.results.impacts import Impacts
from holonome.results.pieces import Piece
from holonome.results.solution import Solution
from holonome.solving.forward_pieces import ForwardPieces
from holonome.solving.forward_run import ForwardRun
from holonome.solving.now import Now, single

T = RunState.places.t
"""Where the time lies in the memory of a run."""

_DENSE = {"derivative": dense_derivative, "multipliers": dense_multipliers}


class Readings:
    """Base class of simulators; reading changes nothing."""

    _run: ForwardRun
    _pieces: ForwardPieces | None
    _n: int

    @property
    def t(self) -> float:
        return self._run.memory.item(T)

    @property
    def system(self) -> Any:
        """The system, with the parameters and inputs of now."""
        return base_of((self._run if self._pieces is None else self._pieces).present_system())

    @property
    def _solved(self) -> Any:
        """What is solved at present: with the constraints of closed contacts."""
        system = self._run.present_system()
        return system.with_solved(self._run.context) if system.solves else system

    @property
    def p(self) -> Any:
        """The parameters of now, ``sim.p.stiffness``."""
        return self.system.p

    @property
    def u(self) -> Any:
        """The inputs of now, ``sim.u.torque``."""
        return self.system.u

    @property
    def _y(self) -> np.ndarray:
        return self._run.memory[self._run.stepper.given[0]]

    @property
    def y(self) -> np.ndarray:
        """Positions, velocities and first-order states together."""
        return self._y.copy()

    @property
    def solution(self) -> Solution:
        """A solution with this point alone, for pictures: ``hn.plot.plot_motion(sim.solution)``."""
        counts = dict.fromkeys(("nfev", "steps", "rejections", "projections"), 0)
        task = self._run.task
        known = {"system": self.system, "method": task.name, "status": 0, "outcome": "a state"}
        tolerances = {"rtol": task.rtol, "atol": task.atol}
        points = {"t": np.array([self.t]), "states": self.y[np.newaxis]}
        if self._pieces is not None:
            points |= {"pieces": (Piece(0, self.system, self._solved),), "impacts": self.impacts}
        return Solution({**known, **counts, **tolerances, **points})

    @property
    def q(self) -> np.ndarray:
        return self._y[: self._n].copy()

    @property
    def v(self) -> np.ndarray:
        return self._y[self._n : 2 * self._n].copy()

    @property
    def s(self) -> np.ndarray:
        return self._y[2 * self._n :].copy()

    x = s

    @property
    def state(self) -> State:
        """The system at this state: ``sim.state.energy``, ``sim.state.derivative("a", by="u")``."""
        y, n = self._y, self._n
        parts = (y[:n].copy(), y[n : 2 * n].copy(), y[2 * n :].copy()) if n else (y.copy(),)
        return State(self._solved, self.t, *parts)

    @property
    def a(self) -> np.ndarray:
        n = self._n
        return self._evaluated("derivative", self._run.system.state_size)[n : 2 * n]

    @property
    def lam(self) -> np.ndarray:
        lam = self._evaluated("multipliers", self._run.system.m)
        return self._run.system.own_multipliers(lam)

    @property
    def w(self) -> np.ndarray:
        return self._evaluated("unknowns", len(self._run.system.unknowns))

    def _evaluated(self, name: str, size: int) -> np.ndarray:
        """The values of a kernel, in a context of its own, so that asking changes nothing."""
        system, y, out = self._solved, self._y.copy(), np.zeros(size + 1)
        if not size:
            return out[:0]
        compiled, zero = kernels(system), np.zeros(y.size + 2)
        context = compiled.context(system)
        status = run_kernel(getattr(compiled, name), self.t, y, zero, context, out)
        if status == SINGULAR and name in _DENSE:
            status = run_kernel(_DENSE[name].address, self.t, y, zero, context, out)
        if status != OK:
            raise ModelError(f"{name}: they cannot be evaluated at t = {self.t:.6g}")
        return out[:size]

    @property
    def steps(self) -> int:
        """Internal steps of the last step."""
        return self._run.counts[1] if self._pieces is None else self._pieces.steps

    @property
    def t_events(self) -> list[np.ndarray]:
        """Times of each event during the last step."""
        if self._pieces is not None:
            return [np.array(times) for times in self._pieces.found]
        run = self._run
        return run.events_in(run.collected().found)[0] or []

    @property
    def impacts(self) -> Impacts:
        """The impacts during the last step."""
        pieces = self._pieces
        if pieces is None:
            raise ModelError("impacts: the system has no contacts, and no event acts; give it contacts=[...]")
        return pieces.impacts.impacts()

    def contact(self, name: str) -> Any:
        """A contact now: ``sim.contact("floor").force``, ``.gap``, ``.slip``, ``.status``."""
        return single(self.solution.contact(name))

    def joint(self, name: str) -> Any:
        """Coordinates and rates of a joint of a mechanism, as numbers: ``sim.joint("A").angle``."""
        return self._now.joint(name)

    def body(self, name: str, frame: str | None = None) -> Any:
        """A body of a mechanism: ``sim.body("tool").point("P")``."""
        return self._now.body(name, frame)

    def reaction(self, name: str, frame: str | None = None) -> Any:
        """What a joint does to its second body: ``.force`` and ``.moment``."""
        return self._now.reaction(name, frame)

    def effort(self, name: str) -> Any:
        """What a force, spring or drive of a mechanism exerts."""
        return self._now.effort(name)

    def power(self, name: str) -> Any:
        """The power that a force, spring or drive of a mechanism puts in."""
        return self._now.power(name)

    @property
    def _now(self) -> Now:
        if self._pieces is not None:
            return Now.of(self.solution)
        return Now(self.system, self.t, self)

"""The loop for many trajectories of one system, compiled for the vector units of this processor."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

import casadi as ca
import numpy as np

from holonome.dynamics.emitted import LARGEST_ELIMINATION, Emitted, elimination_cost
from holonome.dynamics.kernels import EMITTED_UP_TO
from holonome.dynamics.switching_times import may_stop
from holonome.ensembles.along import MEAN, AlongTheWay
from holonome.ensembles.march import ARGUMENTS, March
from holonome.ensembles.observed import Observed
from holonome.equations.model import Model
from holonome.equations.program import Program
from holonome.integrators.tableau import TABLEAUS
from holonome.machine.code import Code
from holonome.machine.elementary import FUNCTIONS
from holonome.machine.kernel import Kernel, compiled, host
from holonome.machine.lanes import Lanes
from holonome.machine.llvm import Writer, part

LARGEST = 20_000
"""Instructions of a model beyond which its trajectories are computed one by one."""

SMALL = 400
"""Instructions of a model up to which two registers hide the latency of each other."""

METHODS = ("dop853", "dopri5", "heun")


@dataclass(frozen=True)
class Plan:
    """What a loop is made from: the parts as programs, and what the loop has to know of them."""

    rate: Program
    projection: Program | None
    observe: Program
    events: Program | None
    directions: tuple[float, ...]
    rank: Program | None
    along: tuple[AlongTheWay, ...]
    method: str
    size: int
    coordinates: int
    parameters: int
    observed: int
    watch_stiffness: bool

    @property
    def cost(self) -> int:
        """Instructions."""
        parts = (self.rate, self.projection, self.observe, self.events, self.rank)
        return sum(program.cost for program in parts if program is not None)

    def assembly(self, width: int, *, card: bool = False) -> str:
        """LLVM assembly of the whole module."""
        declarations, parts = set[str](), []
        inline = "alwaysinline nounwind" if card else "noinline nounwind"
        for name in ("rate", "projection", "observe", "events", "rank"):
            program = getattr(self, name)
            if program is not None:
                lanes = _lanes(width, card)
                parts.append(part(program, name, lanes, inline))
                declarations |= lanes.write.declarations
        code = Code(_lanes(width, card))
        march = March(
            code,
            TABLEAUS[self.method],
            self.size,
            self.coordinates,
            self.parameters,
            projects=self.projection is not None,
            observed=self.observed,
            directions=self.directions,
            along=self.along,
            lengths=0 if self.rank is None else self.rank.outputs[0].rows,
            watch_stiffness=self.watch_stiffness,
        )
        head = f"define {'ptx_kernel ' if card else ''}void @march({ARGUMENTS})"
        parts.append(march.write(head))
        return "\n".join([*sorted(declarations | code.write.declarations), *parts])


def _lanes(width: int, card: bool) -> Lanes:
    functions = FUNCTIONS if card else {}
    return Lanes(Writer(), width, align=8 * width, functions=functions, library=not card, card=card)


def obstacle(system: Any) -> str:
    """Why a system's trajectories are computed one by one; empty if the loop can treat it."""
    if not system.mechanical:
        return "a problem of index 2 or 3"
    if system.supplied:
        return "functions that could not be traced"
    if system.solves:
        return "variables that are solved for inside an evaluation"
    if system.contacts:
        return "contacts"
    if system.invariant_count:
        return "invariants"
    if may_stop(system):
        return "forces that switch at certain times"
    equations = getattr(system, "equations", None)
    if equations is not None and equations.constraints.implied:
        return "rows that follow from others, which are watched"
    model = system.model
    if model.n + model.rows > EMITTED_UP_TO or elimination_cost(model) > LARGEST_ELIMINATION:
        return "too many equations"
    return ""


def make_plan(
    system: Any,
    method: str,
    observed: Observed,
    watch_stiffness: bool,
) -> Plan:
    """The parts of a system's loop."""
    model: Model = system.model
    emitted = Emitted(model)
    y, _, rate, margin = emitted.derivative(model)
    size, none = y.numel(), ca.SX(0, 1)
    motion = ca.vertcat(model.v, emitted.a, model.r)
    symbols = ca.SX.sym("motion", size), ca.SX.sym("lam", emitted.lam.numel())
    found, events = observed.expressions(system, *symbols)
    whole = observed.expressions_along(system, *symbols)
    given = [found, *events, *whole]
    found, *given = ca.substitute(given, list(symbols), [motion, emitted.lam])
    parts = [part for _, part in observed.along]
    means = [given[len(events) + i] for i, part in enumerate(parts) if part.kind == MEAN]
    watched = given[: len(events)] + [
        given[len(events) + i] for i, part in enumerate(parts) if part.kind != MEAN
    ]
    watched = ca.vertcat(ca.SX(0, 1), *watched)
    changes = (
        ca.jtimes(watched, ca.vertcat(model.t, y), ca.vertcat(1, motion)) if watched.numel() else watched
    )

    def program(z: ca.SX, out: ca.SX, margin: ca.SX | None) -> Program:
        outputs = [ca.densify(out)] + ([] if margin is None else [margin])
        names = ["out", "margin"][: len(outputs)]
        inputs = [model.t, y, z, model.p]
        return Program.of(ca.Function("part", inputs, outputs, ["t", "y", "z", "p"], names, {"cse": True}))

    projection = rank = None
    lengths = emitted.manifold.all.lengths() if system.projects and model.rows else none
    if lengths.numel():
        rank = program(none, lengths, None)
    if system.projects:
        e, manifold = ca.SX.sym("e", size + 1), emitted.manifold
        rates = ca.vertcat(model.v, emitted.a, model.r)
        error = manifold.tangential(e[:size] + e[size] * rates)
        out = ca.vertcat(rates[model.n :], *means, error, manifold.correction(), lengths)
        projection = program(e, out, emitted.margin)
    return Plan(
        rate=program(none, ca.vertcat(rate[model.n :], *means), margin),
        projection=projection,
        observe=program(none, found, None),
        events=program(none, ca.vertcat(watched, changes), None) if watched.numel() else None,
        directions=tuple(event.direction for event in observed.events),
        rank=rank,
        along=tuple(parts),
        method=method,
        size=size,
        coordinates=model.n,
        parameters=system.parameters.size,
        observed=found.numel(),
        watch_stiffness=watch_stiffness,
    )


@cache
def _lanes_of_register() -> int:
    _, features = host()
    found = set(features.split(","))
    return 8 if "+avx512f" in found else 4 if "+avx" in found else 2


def best_width(cost: int) -> int:
    """Lanes that suit this processor: those of a vector register; twice as many for small models where there
    are enough registers.
    """
    lanes = _lanes_of_register()
    return 2 * lanes if lanes == 8 and cost <= SMALL else lanes


class LaneLoop:
    """The loop in memory.  Calls release the interpreter, and several threads may share a counter."""

    def __init__(self, plan: Plan, width: int = 0) -> None:
        self.plan, self.width = plan, width or best_width(plan.cost)
        self._kernel: Kernel = compiled(plan.assembly(self.width), "march", 2, plan.cost, simplified=True)
        kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] + [ctypes.c_void_p] * 3 + [ctypes.c_int64]
        self._call = ctypes.CFUNCTYPE(None, *kinds, ctypes.c_void_p, ctypes.c_void_p)(self._kernel.address)

    def __call__(self, job: Job, counter: np.ndarray) -> None:
        """Take trajectories from the counter until there are no more."""
        pointers = [a.ctypes.data for a in (job.table, job.begin, job.stride)]
        self._call(
            *pointers,
            job.members,
            counter.ctypes.data,
            job.settings.ctypes.data,
            job.times.ctypes.data,
            job.times.size,
            job.out.ctypes.data,
            job.last.ctypes.data,
        )


@dataclass(frozen=True)
class Job:
    """Trajectories to compute: where their inputs lie, and where results go.

    Input i of member j, of (t₀, t₁, y₀, p), is ``table[begin[i] + j stride[i]]``.
    """

    table: np.ndarray
    begin: np.ndarray
    stride: np.ndarray
    members: int
    settings: np.ndarray
    times: np.ndarray
    out: np.ndarray
    last: np.ndarray

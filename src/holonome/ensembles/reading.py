"""Arguments of `ensemble` that depend on each other: the start, times, the size of a chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import shown
from holonome.ensembles.design import BY_NAME, STATE, Design
from holonome.ensembles.lane import LAST
from holonome.ensembles.observed import RESERVED, Observed
from holonome.ensembles.samplers import MEMBER
from holonome.ensembles.study import Study
from holonome.solving import arguments

_FEWEST, _MOST, _BYTES, _CHUNKS = 512, 65_536, 1 << 26, 32
_ON_CARD = 1 << 22


class FirstStart:
    """The start that members share, but for what varies.

    ``assembles`` says whether each member has to be assembled, because values by name vary, or parameters on
    which the constraints depend; ``at_rest`` whether no velocities were given.
    """

    assembles = False
    at_rest = False

    def __init__(self, system: Any, made: Any, design: Design, t0: float) -> None:
        self.system, self.made, self.design, self.t0 = system, made, design, t0
        self.varied = {variation.name: variation.values for variation in design.variations}

    def state(self, q0: Any, v0: Any, s0: Any, start: Any, speed: Any) -> np.ndarray:
        """(q, v, s)."""
        system = self.system
        if self.made is None or q0 is not None or "q0" in self.varied:
            self._refuse_names(start, speed)
            first = q0
            if first is None:
                if "q0" not in self.varied:
                    raise ValueError("q0: missing; give the initial positions, or let them vary")
                values = self.varied["q0"]
                first = values[0] if len(values) else np.zeros(values.shape[1])
            self.at_rest = v0 is None and "v0" not in self.varied
            return system.full_state(first, v0, s0)
        for argument, value in (("v0", v0), ("s0", s0)):
            if value is not None:
                raise ValueError(f"{argument}: it goes with q0; give both, or start and speed")
        self.assembles = self.design.needs_names or self._moves_start()
        if self.assembles and not self.design.members:
            return np.zeros(system.state_size)
        values = dict(system.parameters)
        names: dict[str, dict[str, float]] = {"start": {}, "speed": {}}
        if self.assembles:
            rows = self.design.rows(0, 1)
            for variation in self.design.variations:
                if variation.name in values:
                    values[variation.name] = variation.values[rows[variation.dimension][0]]
            names = self.design.by_name(0)
        start, speed = (
            {**(given or {}), **names[kind]} or None for kind, given in (("start", start), ("speed", speed))
        )
        return system.full_state(*self.made.initial(self.t0, start, speed, values))

    def _refuse_names(self, start: Any, speed: Any) -> None:
        if self.design.needs_names:
            raise ValueError("over: 'start.…' and 'speed.…' have no effect where q0 is given; leave one out")
        if self.made is not None:
            for argument, value in (("start", start), ("speed", speed)):
                if value is not None:
                    raise ValueError(f"{argument}: q0 is given as well; give one of them")
        elif start is not None or speed is not None:
            arguments.refuse_start_by_name(self.system, start, speed)

    def _moves_start(self) -> bool:
        """Whether something varies on which the constraints depend."""
        model, parameters = self.system.model, self.system.parameters
        symbols = [
            model.p[i]
            for variation in self.design.variations
            if variation.name in parameters
            for i in range(parameters.place(variation.name).start, parameters.place(variation.name).stop)
        ]
        symbols += [model.t] if "t0" in self.varied else []
        rows = ca.vertcat(model.g, model.w)
        return bool(symbols) and ca.depends_on(rows, ca.vertcat(*symbols))


def refuse_twice(design: Design, observed: Observed, **given: Any) -> None:
    """What is given and varies as well, and names that would stand for two things in the dataset."""
    for argument, value in given.items():
        if value is None:
            continue
        varied = [variation.name for variation in design.variations]
        if argument in STATE:
            twice = [argument] if argument in varied else []
        elif not isinstance(value, Mapping):
            continue  # refused where it is read
        elif argument in BY_NAME:
            twice = [name for name in value if f"{argument}.{name}" in varied]
        else:
            twice = [name for name in value if name in varied]
        if twice:
            what = argument if argument in STATE else f"{argument}[{twice[0]!r}]"
            raise ValueError(f"{what}: it varies by over as well, so this value has no effect; leave it out")
    variables = [kept.name for kept in observed.kept(False)]
    taken = {*variables, *RESERVED} - {MEMBER}
    for variation in design.variations:
        for what, name in (("name", variation.name), ("dimension", variation.dimension)):
            if name in taken:
                also = "in keep" if name in variables else "for results"
                raise ValueError(
                    f"over[{variation.name!r}]: the {what} {name!r} is taken {also}; rename one of them"
                )


def refuse_times(design: Design, t0: float, t1: float) -> None:
    """Members whose initial and final times are equal, or which run in different directions."""
    for variation in design.variations:
        if variation.name not in ("t0", "t_end"):
            continue
        other = t1 if variation.name == "t0" else t0
        varied = {v.name for v in design.variations} >= {"t0", "t_end"}
        lengths = (variation.values - other) * (-1 if variation.name == "t0" else 1)
        if not varied and np.any(lengths * (t1 - t0) <= 0):
            worst = variation.values[np.argmin(lengths * (t1 - t0))]
            raise ValueError(
                f"over[{variation.name!r}]: {worst:g}; all members must run in the direction of t_span, for "
                "some time"
            )
    if {"t0", "t_end"} <= {variation.name for variation in design.variations}:
        begin, end = (
            np.concatenate([v.values for v in design.variations if v.name == name])
            for name in ("t0", "t_end")
        )
        forward = t1 > t0
        if begin.size and (np.max(begin) >= np.min(end) if forward else np.min(begin) <= np.max(end)):
            raise ValueError("over['t_end']: all final times must lie after all initial times")


def wanted_times(t_eval: Any, design: Design, t0: float, t1: float) -> np.ndarray | None:
    """Times of output; within the time of some member."""
    if isinstance(t_eval, Sized) and len(t_eval) == 0:
        raise ValueError(
            f"t_eval: {shown(t_eval)}; give at least one time, or leave it out for the end alone"
        )
    varied = {variation.name: variation.values for variation in design.variations if variation.values.size}
    low, high = (np.append(varied.get(name, [given]), given) for name, given in (("t0", t0), ("t_end", t1)))
    if t1 > t0:
        return arguments.wanted_times(t_eval, float(np.min(low)), float(np.max(high)))
    return arguments.wanted_times(t_eval, float(np.max(low)), float(np.min(high)))


def usual_chunk(study: Study, device: Any) -> int:
    """Members that are computed together: enough to keep all lanes busy, so few that their results need
    little memory and it is often told how far it is.
    """
    times = 1 if study.times is None else study.times.size
    size = 8 * (
        times * study.observed.size + LAST + study.system.state_size + len(study.observed.names_along)
    )
    if device == "cuda" and not study.obstacle:
        return max(1, min(_ON_CARD, 16 * _BYTES // size))
    few = max(_FEWEST, -(-study.design.members // _CHUNKS))
    return max(1, min(few, _MOST, _BYTES // size))

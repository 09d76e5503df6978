"""Sampled control: laws in plain Python, called at the ticks of a clock; inputs are held between them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holonome.arguments import check_fields, shown
from holonome.errors import HolonomeError
from holonome.solving.asking import Asking
from holonome.solving.moment import Change, Interrupted, Moment

_MARGIN = 8
"""Instants that are closer than this many roundings are one."""


@dataclass(frozen=True, eq=False)
class Sampled:
    """A controller that is called at regular times and holds inputs between them.

    Parameters
    ----------
    law : callable
        Plain Python, called at each tick with what it asks for by name: t, q, v, s, w, x, p, u, a, lam; its
        memory ``state``; of a mechanism also ``joint``, ``body``, ``reaction``, functions as those of a
        solution: ``joint("A").angle``.  It returns the value of its input, or as many values as it has
        inputs, or a dict of values by name; None changes nothing.
    every : float
        The time from one tick to the next.
    delay : float, optional
        The time that it needs: what it returns is applied so much later.
    offset : float, optional
        The time of the first tick after the start of the run.
    inputs : str or sequence of str, optional
        Names of the inputs that it sets; by default all of the system.
    state : object, optional
        Its memory: a dict, an array, an object, which the law changes in place.  Each run begins with a copy.

    Examples
    --------
    A mass is held against a constant force, by a controller with an integral:

    >>> import holonome as hn
    >>> mass = hn.System(1.0, lambda u: u.push - 3.0, inputs={"push": 0.0}, names=["x"])
    >>> def pid(q, v, state):
    ...     state["sum"] += 0.01 * q[0]
    ...     return -20 * q[0] - 8 * v[0] - 20 * state["sum"]
    >>> sol = hn.solve(mass, (0, 8), [1.0], controllers=hn.Sampled(pid, every=0.01, state={"sum": 0.0}))
    >>> bool(abs(sol.q[0, -1]) < 1e-3), round(float(sol.u.push[-1]), 2), sol.inputs["push"].t.size
    (True, 3.0, 800)
    """

    law: Callable
    every: float
    delay: float = 0.0
    offset: float = 0.0
    inputs: Sequence[str] | str | None = None
    state: Any = None

    def __post_init__(self) -> None:
        check_fields(self)
        if isinstance(self.inputs, str):
            object.__setattr__(self, "inputs", (self.inputs,))
        if isinstance(self.state, int | float | complex | str | bytes | tuple):
            raise TypeError(
                f"state: {shown(self.state)} cannot be changed in place by the law; give a dict, a list or "
                "an array"
            )


def as_controllers(controllers: Any) -> list[Sampled]:
    """Controllers from what the user gave: one or many."""
    if isinstance(controllers, Sampled):
        return [controllers]
    if not isinstance(controllers, list | tuple):
        raise TypeError(f"controllers: {shown(controllers)}; give an hn.Sampled or a list of them")
    for i, controller in enumerate(controllers):
        if not isinstance(controller, Sampled):
            raise TypeError(f"controllers[{i}]: {shown(controller)}; give an hn.Sampled")
    return list(controllers)


class _Due(NamedTuple):
    """Values that are to be applied."""

    time: float
    number: int
    values: dict[str, Any]


class SampledClock:
    """All controllers of a run: when one of them is called or its values are applied next, and what then
    changes.
    """

    def __init__(self, controllers: Sequence[Sampled], system: Any, t0: float, t1: float) -> None:
        if t1 < t0:
            raise ValueError("controllers: they cannot sample a run backward in time; exchange its times")
        self.margin = _MARGIN * np.spacing(max(abs(t0), abs(t1)))
        self.end = t1 - self.margin
        self.loops = [_Loop(number, item, system, t0) for number, item in enumerate(controllers)]
        self.due: list[_Due] = []
        owners: dict[str, int] = {}
        for loop in self.loops:
            for name in loop.owned:
                if name in owners:
                    raise ValueError(
                        f"controllers[{loop.number}].inputs: {name!r} is set by controllers[{owners[name]}] "
                        "already"
                    )
                owners[name] = loop.number
            if 0 < loop.every <= self.margin:
                raise ValueError(
                    f"controllers[{loop.number}].every: {loop.every:g} is too short beside the times of the "
                    "run"
                )
        self.owners = owners

    def next_time(self, t: float) -> float:
        """When something happens next; infinite if nothing does before the end."""
        times = [*(loop.next_tick for loop in self.loops), *(due.time for due in self.due)]
        time = min(times, default=math.inf)
        return time if time < self.end else math.inf

    def act(self, moment: Moment) -> Change:
        """Call the laws whose tick it is, and apply what is due."""
        now = moment.t + self.margin
        before, called = moment.system, [loop for loop in self.loops if loop.next_tick <= now]
        for loop in called:
            values, tick = loop.called(moment), loop.next_tick
            loop.ticks += 1
            if values:
                self.due.append(_Due(tick + loop.delay, loop.number, self._own(loop, values, moment.t)))
        ready = [due for due in self.due if due.time <= now]
        if not ready:
            return Change(before, moment.y)
        self.due = [due for due in self.due if due.time > now]
        parameters = before.parameters
        flat = parameters.flat.copy()
        for due in sorted(ready, key=lambda due: due.time):
            try:
                parameters.write(flat, due.values)
            except (ValueError, TypeError) as error:
                text = str(error).removeprefix("parameters").lstrip(": ")
                raise Interrupted(
                    f"controllers[{due.number}] failed at t = {moment.t:.9g}: {text}"
                ) from error
        if np.array_equal(flat, parameters.flat):
            return Change(before, moment.y)
        return Change(before.with_values(flat), moment.y)

    def _own(self, loop: _Loop, values: dict[str, Any], t: float) -> dict[str, Any]:
        """Values by name, of which no other controller sets one."""
        for name in values:
            owner = self.owners.setdefault(name, loop.number)
            if owner != loop.number:
                raise Interrupted(
                    f"controllers[{loop.number}] failed at t = {t:.9g}: it sets {name!r}, which "
                    f"controllers[{owner}] sets too; name what each of them sets, inputs=[...]"
                )
        return values


class _Loop:
    """One controller in a run."""

    def __init__(self, number: int, controller: Sampled, system: Any, t0: float) -> None:
        self.number = number
        self.every, self.delay, self.begin = controller.every, controller.delay, t0 + controller.offset
        self.ticks = 0
        self.owned = controller.inputs or ()
        for name in self.owned:
            if name not in system.inputs:
                raise ValueError(
                    f"controllers[{number}].inputs: {name!r} unknown; this system has "
                    f"{', '.join(system.inputs) or 'none'}"
                )
        self.inputs = tuple(self.owned or system.inputs)
        self.state = copy.deepcopy(controller.state)
        further = () if controller.state is None else ("state",)
        self.asked = Asking(controller.law, f"controllers[{number}].law", system, further)

    @property
    def next_tick(self) -> float:
        return self.begin + self.ticks * self.every

    def called(self, moment: Moment) -> dict[str, Any]:
        """Values by name, checked."""
        try:
            answer = self.asked(moment, state=self.state)
            return {} if answer is None else self._by_name(answer)
        except Exception as error:
            kind = "" if isinstance(error, HolonomeError) else f"{type(error).__name__}: "
            what = f"{kind}{error}" if str(error) else type(error).__name__
            raise Interrupted(f"controllers[{self.number}] failed at t = {moment.t:.9g}: {what}") from error

    def _by_name(self, answer: Any) -> dict[str, Any]:
        names = self.inputs
        if isinstance(answer, Mapping):
            unknown = [name for name in answer if name not in names]
            if unknown:
                raise ValueError(
                    f"it returned {unknown[0]!r}, which is none of its inputs {', '.join(names)}"
                )
            return {name: value for name, value in answer.items() if value is not None}
        if not names:
            raise ValueError(
                f"it returned {shown(answer)}, but the system has no inputs; give it inputs={{...}}"
            )
        if len(names) == 1:
            return {names[0]: _number_in(answer)}
        values = np.asarray(answer, dtype=float)
        if values.shape != (len(names),):
            raise ValueError(
                f"it returned {shown(answer)}; return {len(names)} numbers, for {', '.join(names)}, or a dict"
            )
        return dict(zip(names, values.tolist(), strict=True))


def _number_in(answer: Any) -> Any:
    """A number, also where it stands in a list or an array alone."""
    if isinstance(answer, list | tuple | np.ndarray) and np.shape(answer) == (1,):
        return float(answer[0])
    return answer

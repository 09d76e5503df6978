"""Events: functions of the motion whose zeros are wanted, compiled like the model, with their rates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import check_fields, shown
from holonome.machine.context import write_block
from holonome.machine.kernel import kernel
from holonome.machine.supplied import Supplied
from holonome.problem.frozen_values import require_unchanged
from holonome.tracing import Captured, Frozen


@dataclass(frozen=True)
class Event:
    """A zero of a function is looked for.

    Parameters
    ----------
    function
        Callable of any of t, q, v, p, of the accelerations a and the multipliers lam, and of s, w where the
        system has them; a scalar.
    terminal
        Stop there: True, or the number of occurrences after which to stop.
    direction
        Positive: only where it rises; negative: only where it falls; 0: both.
    action
        Callable of any of t, q, v, s, w, p, u, a, lam, plain Python, which is called at each occurrence and
        returns None or a dict of what changes: ``q``, ``v`` or ``s``; ``impulse``, a generalised impulse, to
        which the constraints answer; ``parameters`` and ``inputs``, dicts by name; ``release`` and ``lock``,
        names of constraints, or of joints, that no longer hold, or hold again where they are; ``stop=True``.
        New positions and velocities must satisfy the constraints; those of constraints that are locked follow
        from an impact, which is in ``sol.impacts``.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> ball = hn.System(1.0, [-9.81], names=["height"])
    >>> sol = hn.solve(ball, (0, 5), [1.0], events=hn.Event(lambda q: q[0], terminal=True))
    >>> sol.status, bool(abs(sol.t_events[0][0] - np.sqrt(2 / 9.81)) < 1e-9)
    (1, True)

    The same ball, which loses a fifth of its speed each time it touches the ground:

    >>> bounce = hn.Event(lambda q: q[0], direction=-1, action=lambda v: {"v": -0.8 * v})
    >>> sol = hn.solve(ball, (0, 2), [1.0], events=bounce)
    >>> sol.t_events[0].size, bool(abs(sol.t_events[0][1] - 2.6 * np.sqrt(2 / 9.81)) < 1e-9)
    (3, True)
    """

    function: Callable
    terminal: bool | int | None = False
    direction: float = 0.0
    action: Callable | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"function: {shown(self.function)} is not callable; give a function of t, q, v, p"
            )
        if self.action is not None and not callable(self.action):
            raise TypeError(
                f"action: {shown(self.action)} is not callable; give a function of t, q, v, p that returns "
                "a dict of what changes"
            )
        if type(self.terminal) is not bool or type(self.direction) is not float or isnan(self.direction):
            check_fields(self)


def as_events(events: Any) -> list[Event]:
    """Events from what the user gave: one or many, callables with scipy's attributes ``terminal`` and
    ``direction``, or Event objects.
    """
    if events is None:
        return []
    if callable(events) or isinstance(events, Event):
        events = [events]
    elif isinstance(events, str | bytes) or not isinstance(events, Iterable):
        raise TypeError(
            f"events: {shown(events)}; give a callable of t, q, v, p, an hn.Event, or a list of them"
        )
    result = []
    for i, event in enumerate(events):
        if not isinstance(event, Event):
            if not callable(event):
                raise TypeError(f"events[{i}]: {shown(event)}; give a callable of t, q, v, p, or an hn.Event")
            try:
                event = Event(event, getattr(event, "terminal", False), getattr(event, "direction", 0.0))
            except ValueError as error:
                raise ValueError(f"events[{i}].{error}") from None
        result.append(event)
    return result


class CompiledEvents:
    """The kernel of all events of a run and of their rates, given y′ and λ; functions that cannot be traced
    own blocks behind those of the system.

    ``exact`` says whose rate the kernel knows, ``needs_motion`` and ``needs_multipliers`` whether it looks at
    y′ and λ.
    """

    def __init__(self, system: Any, events: Sequence[Event]) -> None:
        self.events = tuple(events)
        self.supplied: dict[int, Supplied] = {}
        values, rates, blocks, captured = [], [], [], []
        motion, lam = ca.SX.sym("motion", system.state_size), ca.SX.sym("lam", system.m)
        offset = start = system.context_size
        for i, event in enumerate(self.events):
            role, read = f"events[{i}]", Captured(event.function)
            expression = system.event_expression(role, event.function, motion, lam)
            if not isinstance(expression, Supplied) or expression.path != "python":
                captured.append((role, read.settled()))
            if isinstance(expression, Supplied):
                self.supplied[offset] = expression
                offset += expression.size
                block = ca.SX.sym(f"event{i}", expression.size)
                blocks.append(block)
                expression, _ = expression.symbols(block)
                rates.append(None)
            else:
                rates.append(system.event_rate(expression, motion))
                if ca.depends_on(expression, ca.vertcat(motion, lam)):
                    rates[-1] = None  # the rates of accelerations and multipliers are not known
            values.append(expression)
        self.frozen = Frozen(captured)
        self.extra = offset - start
        self.exact = np.array([rate is not None for rate in rates], dtype=float)
        zero = ca.SX(1, 1)
        out = ca.densify(ca.vertcat(*values, *(zero if rate is None else rate for rate in rates)))
        self.needs_motion, self.needs_multipliers = ca.depends_on(out, motion), ca.depends_on(out, lam)
        context = ca.vertcat(system.context_symbols, *blocks)
        inputs = [system.symbols["t"], system.model.y, ca.vertcat(motion, lam), context]
        self._kernel = kernel(out, inputs, suppliers=system.solvers(out) + tuple(self.supplied))
        self.address = self._kernel.address

    def fill(self, context: np.ndarray) -> None:
        """Write the blocks of the supplied functions."""
        for offset, supplied in self.supplied.items():
            write_block(context, offset, supplied.block())


def compiled_events(system: Any, events: Sequence[Event]) -> CompiledEvents:
    """Compiled once for the same functions of the same system, with the values that they had captured."""
    key = ("events", *[event.function for event in events])
    try:
        hash(key)
    except TypeError:
        return CompiledEvents(system, events)
    compiled = system.compiled.latest("events", key, lambda: CompiledEvents(system, events))
    if compiled.frozen:
        require_unchanged(compiled.frozen)
    return compiled

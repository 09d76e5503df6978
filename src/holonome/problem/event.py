"""Events: functions of t, q, v, p whose zeros are wanted, compiled like the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
        Callable of any of t, q, v, p (and s, w); a scalar.
    terminal
        Stop there: True, or the number of occurrences after which to stop.
    direction
        Positive: only where it rises; negative: only where it falls; 0: both.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> ball = hn.System(1.0, [-9.81], names=["height"])
    >>> sol = hn.solve(ball, (0, 5), [1.0], events=hn.Event(lambda q: q[0], terminal=True))
    >>> sol.status, bool(abs(sol.t_events[0][0] - np.sqrt(2 / 9.81)) < 1e-9)
    (1, True)
    """

    function: Callable
    terminal: bool | int | None = False
    direction: float = 0.0

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                f"function: {shown(self.function)} is not callable; give a function of t, q, v, p"
            )
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
    """The kernel of all events of a run; functions that cannot be traced own blocks behind those of the
    system.
    """

    def __init__(self, system: Any, events: Sequence[Event]) -> None:
        self.events = tuple(events)
        self.supplied: dict[int, Supplied] = {}
        values, blocks, captured = [], [], []
        offset = start = system.context_size
        for i, event in enumerate(self.events):
            role, read = f"events[{i}]", Captured(event.function)
            expression = system.event_expression(role, event.function)
            if not isinstance(expression, Supplied) or expression.path != "python":
                captured.append((role, read.settled()))
            if isinstance(expression, Supplied):
                self.supplied[offset] = expression
                offset += expression.size
                block = ca.SX.sym(f"event{i}", expression.size)
                blocks.append(block)
                expression, _ = expression.symbols(block)
            values.append(expression)
        self.frozen = Frozen(captured)
        self.extra = offset - start
        out, state = ca.densify(ca.vertcat(*values)), system.model.y
        inputs = [system.symbols["t"], state, ca.SX(0, 1), ca.vertcat(system.context_symbols, *blocks)]
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

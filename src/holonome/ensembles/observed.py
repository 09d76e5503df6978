"""What is kept of each member: positions, velocities and states, or functions of them; and the events that
end a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import shown
from holonome.ensembles.along import AlongTheWay
from holonome.machine.supplied import Supplied
from holonome.problem.event import Event, as_events
from holonome.problem.frozen_values import require_unchanged
from holonome.tracing import Captured, Frozen

RESERVED = ("end", "event", "steps", "singular", "success", "message", "t", "coordinate", "state", "member")
"""Names in the dataset that are taken."""


@dataclass(frozen=True, eq=False)
class Quantity:
    """Something that is kept under a name: a part of the state, or a function."""

    name: str
    labels: tuple[str, ...] = ()
    """The names of its entries, for a part of the state."""
    function: Any = None

    @property
    def size(self) -> int:
        return len(self.labels) if self.function is None else 1


@dataclass(frozen=True)
class Kept:
    """A variable of the result: its name, whether it has a value for each time of output, and the names of
    its entries, if it has several.
    """

    name: str
    over_time: bool
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Observed:
    """All quantities of a study, as one column, and the events that end its runs."""

    quantities: tuple[Quantity, ...]
    events: tuple[Event, ...]
    along: tuple[tuple[str, AlongTheWay], ...] = ()
    """What is kept of whole motions, by name."""
    frozen: Frozen | None = None
    """What their functions have captured."""

    @property
    def functions(self) -> list[tuple[str, Any]]:
        """All functions, with what messages call them."""
        kept = [
            (f"keep[{quantity.name!r}]", quantity.function)
            for quantity in self.quantities
            if quantity.function is not None
        ]
        kept += [(f"keep[{name!r}]", part.function) for name, part in self.along]
        return kept + [(f"until[{i}]", event.function) for i, event in enumerate(self.events)]

    def require_unchanged(self) -> None:
        """ModelError if a value that a function has captured is another one than when it was traced."""
        if self.frozen is not None:
            require_unchanged(self.frozen)

    @property
    def size(self) -> int:
        return sum(quantity.size for quantity in self.quantities)

    def kept(self, over_time: bool) -> list[Kept]:
        """All variables of the result."""
        points = [Kept(quantity.name, over_time, quantity.labels) for quantity in self.quantities]
        return points + [Kept(name, False) for name in self.names_along]

    @property
    def names_along(self) -> list[str]:
        """Of the results of whole motions, in the order of their numbers."""
        return [found for name, part in self.along for found in part.names(name)]

    @property
    def key(self) -> tuple:
        """Equal for the same functions."""
        kept = tuple((quantity.name, quantity.function) for quantity in self.quantities)
        return kept, self.along, tuple((event.function, event.direction) for event in self.events)

    def expressions_along(self, system: Any, motion: ca.SX, lam: ca.SX) -> list[ca.SX]:
        """The functions of which something is kept."""
        return [_traced(system, f"keep[{name!r}]", part.function, motion, lam) for name, part in self.along]

    def expressions(self, system: Any, motion: ca.SX, lam: ca.SX) -> tuple[ca.SX, list[ca.SX]]:
        """What is observed, and the events, given the rates of the state and the multipliers."""
        model, n = system.model, system.n
        states = model.y[2 * n :]
        parts = {"q": model.y[:n], "v": model.y[n : 2 * n], "s": states, "x": states}
        values = [
            parts[quantity.name]
            if quantity.function is None
            else _traced(system, f"keep[{quantity.name!r}]", quantity.function, motion, lam)
            for quantity in self.quantities
        ]
        events = [
            _traced(system, f"until[{i}]", event.function, motion, lam) for i, event in enumerate(self.events)
        ]
        return ca.densify(ca.vertcat(ca.SX(0, 1), *values)), events

    def obstacle(self, system: Any) -> str:
        """Why the loop on lanes cannot be used; empty if it can."""
        for event in self.events:
            if event.terminal not in (False, True, None, 1) or event.action is not None:
                return "events that do not end the run"
        return ""

    def evaluate(
        self,
        system: Any,
        times: np.ndarray,
        states: np.ndarray,
        parameters: np.ndarray,
        motion: np.ndarray | None = None,
        lam: np.ndarray | None = None,
    ) -> np.ndarray:
        """What is observed at some points, one a row; the rates and multipliers only where they are known."""
        if not self.quantities:
            return np.zeros((len(times), 0))
        if all(quantity.function is None for quantity in self.quantities):
            offsets = {"q": 0, "v": system.n, "s": 2 * system.n, "x": 0}
            picked = [
                offsets[quantity.name] + np.arange(quantity.size, dtype=int) for quantity in self.quantities
            ]
            return states[:, np.concatenate(picked)]
        function = system.compiled.latest("observed", self.key, lambda: self._function(system))
        count = len(times)
        padded = np.zeros((count, system.model.p.numel()))
        padded[:, : parameters.shape[1]] = parameters
        given = [times[None, :], states.T, padded.T]
        if motion is not None and lam is not None:
            given += [motion.T, lam.T]
        else:
            given += list(self._motion(system).call(given))
        return np.array(function.call(given)[0]).T.reshape(count, self.size)

    def _function(self, system: Any) -> ca.Function:
        model = system.model
        motion, lam = ca.SX.sym("motion", system.state_size), ca.SX.sym("lam", system.m)
        values, _ = self.expressions(system, motion, lam)
        return ca.Function("observed", [model.t, model.y, model.p, motion, lam], [values])

    def _motion(self, system: Any) -> ca.Function:
        """Rates and multipliers, if anything asks for them."""
        model = system.model
        motion, lam = ca.SX.sym("motion", system.state_size), ca.SX.sym("lam", system.m)
        values, _ = self.expressions(system, motion, lam)
        none = [ca.SX(system.state_size, 1), ca.SX(system.m, 1)]
        if ca.depends_on(values, ca.vertcat(motion, lam)):
            from holonome.dynamics.emitted import Emitted

            emitted = Emitted(model)
            none = [ca.vertcat(model.v, emitted.a, model.r), emitted.lam]
        return ca.Function("motion", [model.t, model.y, model.p], [ca.densify(part) for part in none])

    def split(self, values: np.ndarray, along: np.ndarray, over_time: bool) -> dict[str, np.ndarray]:
        """The quantities by name, from (members, times, numbers) and those of whole motions."""
        found = {name: np.ascontiguousarray(along[:, i]) for i, name in enumerate(self.names_along)}
        at = 0
        for quantity in self.quantities:
            part = values[:, :, at : at + quantity.size]
            part = part if quantity.function is None else part[:, :, 0]
            found[quantity.name] = np.ascontiguousarray(part if over_time else part[:, 0])
            at += quantity.size
        return found


def _traced(system: Any, role: str, function: Any, motion: ca.SX, lam: ca.SX) -> ca.SX:
    expression = system.event_expression(role, function, motion, lam)
    if isinstance(expression, Supplied):
        raise ValueError(
            f"{role}: the function cannot be traced, and ensembles call no Python on the way; write it with "
            "NumPy's functions, or compute it afterwards from q and v"
        )
    return expression


def read_observed(system: Any, keep: Any, until: Any) -> Observed:
    """What the user gave as ``keep`` and ``until``."""
    n, states = system.n, tuple(system.states)
    names = {"q": tuple(system.names), "v": tuple(system.names), "s": states} if n else {"x": states}
    labels = {part: found for part, found in names.items() if found}
    if keep is None:
        keep = list(labels)
    if isinstance(keep, str):
        keep = [keep]
    quantities, along = [], []
    if isinstance(keep, Mapping):
        for name, function in keep.items():
            whole = isinstance(function, AlongTheWay)
            if not isinstance(name, str) or not (whole or callable(function)):
                raise ValueError(
                    f"keep: {shown(keep)}; give names with functions of any of t, q, v, p, a, lam, or with "
                    "hn.ensembles.maximum, minimum, mean or first_passage of one, or a list of "
                    f"{', '.join(labels)}"
                )
            if name in RESERVED:
                raise ValueError(f"keep: the name {name!r} is taken; choose another")
            if not name or "/" in name or name.startswith((".", "__", "over.")):
                raise ValueError(f"keep: {name!r} cannot be the name of an array in a store; choose another")
            if whole:
                along.append((name, function))
            else:
                quantities.append(Quantity(name, function=function))
    elif isinstance(keep, Sequence) and all(isinstance(part, str) and part in labels for part in keep):
        quantities = [Quantity(part, labels[part]) for part in keep]
    else:
        raise ValueError(
            f"keep: {shown(keep)}; give a list of {', '.join(labels)}, or a dict of names and functions"
        )
    names = [quantity.name for quantity in quantities] + [n for name, part in along for n in part.names(name)]
    taken = [name for name in names if names.count(name) > 1]
    if taken:
        raise ValueError(f"keep: the name {taken[0]!r} is taken, by the time of an extreme; choose another")
    if not quantities and not along:
        raise ValueError("keep: nothing is kept; leave it out")
    try:
        events = tuple(as_events(until))
    except TypeError as error:
        raise TypeError(str(error).replace("events", "until", 1)) from None
    for i, event in enumerate(events):
        if event.action is not None:
            raise ValueError(f"until[{i}]: its action has no effect, as the run ends there; leave it out")
    return _frozen(system, Observed(tuple(quantities), events, tuple(along)))


def _frozen(system: Any, observed: Observed) -> Observed:
    """The same, tried out, and with what its functions have captured."""
    read = [(role, Captured(function)) for role, function in observed.functions]
    symbols = ca.SX.sym("motion", system.state_size), ca.SX.sym("lam", system.m)
    observed.expressions(system, *symbols)
    observed.expressions_along(system, *symbols)
    return replace(observed, frozen=Frozen([(role, captured.settled()) for role, captured in read]))

"""A moment at which a run is interrupted: what functions of the user may ask about it, and change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from holonome.arguments import NUMBERS, checked, read, shown
from holonome.dynamics.contacts import constrained
from holonome.dynamics.start import consistent_state, time_moved
from holonome.dynamics.switched import Locked, base_of, relocked, rows_named
from holonome.errors import HolonomeError
from holonome.locks import cached_property
from holonome.problem.system import System
from holonome.tracing import argument_names

_OF_STATE = ("a", "lam", "w")


class Interrupted(HolonomeError):
    """What a function of the user did ends the run."""


class Change(NamedTuple):
    """What an interruption leaves behind."""

    system: System
    y: np.ndarray
    stop: bool = False
    locked: Locked | None = None
    """Constraints that were released or locked."""
    repaired: float = 0.0
    """The time in which the motion goes as far as the state had to be moved to satisfy the constraints."""


class Moment:
    """A state of a system, for functions that are called at interruptions."""

    def __init__(self, system: System, t: float, y: np.ndarray) -> None:
        self.system, self.t, self.y = system, t, y

    @cached_property
    def state(self) -> Any:
        """All that `system.at` knows."""
        n = self.system.n
        parts = (self.y[:n], self.y[n : 2 * n], self.y[2 * n :]) if n else (self.y,)
        return self.system.at(self.t, *parts)

    def call(
        self, function: Callable, role: str, names: tuple[str, ...] | None = None
    ) -> tuple[Any, tuple[str, ...]]:
        """Call a function of the user with what it asks for; its answer, and the names of what that is."""
        try:
            asked = argument_names(function, role) if names is None else names
            return function(**{name: self.value(name, role) for name in asked}), asked
        except Interrupted:
            raise
        except Exception as error:
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise Interrupted(f"{role} failed at t = {self.t:.9g}: {what}") from error

    def value(self, name: str, role: str) -> Any:
        """What a function of the user asks for."""
        system, n = self.system, self.system.n
        match name:
            case "t":
                return self.t
            case "p":
                return system.p
            case "u":
                return system.u
            case "x" if not n:
                return self.y.copy()
            case "q" if n:
                return self.y[:n].copy()
            case "v" if n:
                return self.y[n : 2 * n].copy()
            case "s" if system.states:
                return self.y[2 * n :].copy()
        if (name in _OF_STATE and n) and (name != "w" or system.unknowns):
            value = getattr(self.state, name)
            return system.own_multipliers(value) if name == "lam" else value
        known = ["t", *(("q", "v", "a") if n else ("x",)), "p", "u"]
        known += ["s"] * bool(n and system.states) + ["w"] * bool(system.unknowns) + ["lam"] * bool(system.m)
        raise TypeError(f"its argument {name!r} is not known; it may ask for {', '.join(known)}")

    def changed(self, role: str, answer: Any) -> Change:
        """What a function of the user wants to be different, checked."""
        if answer is None:
            return Change(self.system, self.y)
        own = ("q", "v", "s", "impulse") if self.system.n else ("x",)
        own += ("release", "lock") if base_of(self.system).m else ()
        known = (*own, "parameters", "inputs", "stop")
        if not isinstance(answer, Mapping) or any(key not in known for key in answer):
            raise Interrupted(
                f"{role}: it returned {shown(answer)}; return None or a dict of {', '.join(known)}"
            )
        try:
            return self._changed(role, answer)
        except (TypeError, ValueError, HolonomeError) as error:
            if isinstance(error, Interrupted):
                raise
            raise Interrupted(f"{role}: at t = {self.t:.9g}, {error}") from error

    def _changed(self, role: str, answer: Mapping[str, Any]) -> Change:
        system, y, n = self.system, self.y.copy(), self.system.n
        for argument in ("parameters", "inputs"):
            if answer.get(argument):
                system = system.with_parameters(**system.parameters.own(argument, answer[argument]))
        places = {"q": slice(0, n), "v": slice(n, 2 * n), "s": slice(2 * n, None), "x": slice(None)}
        for name in [name for name in answer if name in places]:
            value = read(NUMBERS, name, answer[name])
            if value.size != y[places[name]].size:
                raise ValueError(f"{name}: {value.size} numbers; return {y[places[name]].size}")
            y[places[name]] = value.ravel()
        if answer.get("impulse") is not None:
            impulse = read(NUMBERS, "impulse", answer["impulse"])
            if impulse.shape != (n,):
                raise ValueError(f"impulse: shape {impulse.shape}; return {n} numbers")
            here = Moment(system, self.t, y).state
            y[n : 2 * n] += constrained(here.M, here.G, impulse[:, np.newaxis], np.zeros(system.m))[:, 0]
        locked = self._switched(answer, system, y)
        if locked is not None:
            system, y[n : 2 * n] = locked.system, locked.v
        wanted = y
        if system.m and (system is not self.system or not np.array_equal(y, self.y)):
            y = consistent_state(system, y, self.t).state
        stop = checked("stop", answer["stop"]) if "stop" in answer else False
        repaired = time_moved(wanted, y, n)
        return Change(system, y, stop, locked, repaired)

    def _switched(self, answer: Mapping[str, Any], system: System, y: np.ndarray) -> Locked | None:
        """What becomes of constraints that are to be released or locked; None if that changes nothing."""
        rows: dict[str, list[int]] = {}
        for what in ("release", "lock"):
            names = answer.get(what) or ()
            names = [names] if isinstance(names, str) else names
            rows[what] = [row for name in names for row in rows_named(system, name)]
        both = set(rows["release"]) & set(rows["lock"])
        if both:
            raise ValueError(
                f"release: {base_of(system).constraint_names[min(both)]} is locked as well; do one of them"
            )
        if not any(rows.values()):
            return None
        return relocked(system, self.t, y, rows["release"], rows["lock"])

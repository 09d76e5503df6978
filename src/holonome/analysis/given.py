"""What the functions of this room are given: a system or a mechanism, and a place to begin, by arrays or by
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holonome.arguments import NAMES, read, real_number, shown
from holonome.dynamics.start import Start
from holonome.dynamics.state import State
from holonome.errors import ModelError
from holonome.problem.system import System
from holonome.problem.vectors import require_finite
from holonome.results.solution import Solution


@dataclass(frozen=True, eq=False)
class Given:
    """A system with the values of this call, and the mechanism that it belongs to, if there is one."""

    system: System
    made: Any = None

    @property
    def by_name(self) -> bool:
        """Whether it can be assembled from joints and bodies by name."""
        return self.made is not None and getattr(self.made, "mechanism", self.made) is not None


@dataclass(frozen=True, eq=False)
class Place:
    """A state: time, positions, velocities and first-order states."""

    t: float
    q: np.ndarray
    v: np.ndarray
    s: np.ndarray

    def at(self, system: System) -> State:
        if not system.n:
            return State(system, self.t, self.s)
        return State(system, self.t, self.q, self.v, self.s)


def given(system: Any, parameters: Any = None, inputs: Any = None) -> Given:
    """The system of an argument called ``system``; systems that are not mechanical are refused by name."""
    if isinstance(system, Given):
        return system
    made = system if hasattr(system, "system") and hasattr(system, "initial") else None
    if made is not None:
        if hasattr(made, "require_unchanged"):
            made.require_unchanged()
        system = made.system
    if not isinstance(system, System):
        kind = type(system).__name__
        if hasattr(system, "mechanical"):
            raise TypeError(
                f"system: {kind} is a general problem of higher index, which has no equilibria, modes or "
                "kinematics here; state it as an hn.System or an hn.ODE"
            )
        raise TypeError(f"system: {shown(system)}; give an hn.System or an hn.Mechanism")
    for argument, values in (("parameters", parameters), ("inputs", inputs)):
        if values is not None:
            system = system.with_parameters(**system.parameters.own(argument, values))
    system.require_unchanged()
    if system.contacts:
        raise ModelError(
            f"contacts: whether {', '.join(system.contacts.names[:4])} are open or closed changes the "
            "system; leave them out here, or put a constraint or a joint in the place of those that are "
            "closed"
        )
    return Given(system, made)


def require_traced_constraints(system: System, what: str) -> None:
    """Second derivatives of constraints are needed; of functions that are called they are not known."""
    for role in ("constraint", "velocity_constraint"):
        function = system.functions.get(role)
        if function is not None and function.supplied is not None:
            raise ModelError(
                f"{role}: cannot be traced ({function.reason}), but {what} needs its second derivatives; "
                "write it with NumPy functions"
            )


def place(
    subject: Given, guess: Any, start: Any, t: float, speed: Any = None, argument: str = "guess"
) -> Place:
    """Where to begin: from arrays, a state, an equilibrium, the last point of a run, or values by name."""
    system = subject.system
    if guess is not None and start is not None:
        raise ValueError(f"{argument}: start is given as well; give one of them")
    if guess is None:
        return _by_name(subject, start, t, speed, argument)
    if isinstance(guess, Solution):
        return _last(guess, system)
    if isinstance(guess, State | Start) or hasattr(guess, "lam"):
        return _of(guess, system)
    if isinstance(guess, Mapping):
        raise ValueError(f"{argument}: values by name go into start=…; it takes positions q, or a state")
    if isinstance(guess, tuple) and len(guess) in (2, 3) and np.ndim(guess[0]) == 1:
        return _numbers(argument, system, t, *guess)
    return _numbers(argument, system, t, guess)


def _numbers(argument: str, system: System, t: float, q: Any, v: Any = None, s: Any = None) -> Place:
    try:
        y = system.full_state(q, v, s)
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from None
    require_finite(**{argument: y})
    n = system.n
    return Place(t, y[:n], y[n : 2 * n], y[2 * n :])


def _of(state: Any, system: System) -> Place:
    n, k = system.n, len(system.states)
    if isinstance(state, State) and state.size != 1:
        raise ValueError(f"guess: {state.size} states; give one of them")
    q, v, s = (np.array(x, dtype=float).ravel() for x in (state.q, state.v, state.s))
    if (q.size, v.size, s.size) != (n, n, k):
        raise ValueError(
            f"guess: a state of another system, with {q.size} coordinates and {s.size} first-order states; "
            f"this one has {n} and {k}"
        )
    times = np.ravel(state.t)
    return Place(float(times[0]), q, v, s)


def _last(run: Solution, system: System) -> Place:
    if not run.t.size or run.system.state_size != system.state_size:
        raise ValueError("guess: a run without points, or of another system; give one of this system")
    y, n = run.states[-1, : system.state_size].copy(), system.n
    return Place(float(run.t[-1]), y[:n], y[n : 2 * n], y[2 * n :])


def _by_name(subject: Given, start: Any, t: float, speed: Any, argument: str) -> Place:
    system, n = subject.system, subject.system.n
    if start is not None and not isinstance(start, Mapping):
        raise ValueError(f"start: {shown(start)}; give a dict of names and values")
    if subject.made is not None:
        values = {name: system.parameters[name] for name in system.parameters.layout_of("p")}
        if not subject.by_name and start is None:
            q, v, s = subject.made.initial(t)
        else:
            q, v, s = subject.made.initial(t, start, speed, values)
        return _numbers("start", system, t, q, v, s)
    if start is None:
        raise ValueError(f"{argument}: missing; give positions to begin with, or start={{name: value}}")
    y = np.zeros(system.state_size)
    y[2 * n :] = list(system.states.values())
    for name, value in named_numbers("start", system, start).items():
        place = system.names.index(name) if name in system.names else 2 * n + list(system.states).index(name)
        y[place] = value
    return Place(t, y[:n], y[n : 2 * n], y[2 * n :])


def named_numbers(argument: str, system: System, values: Any, states: bool = True) -> dict[str, float]:
    """Values of coordinates, and of first-order states, by name."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{argument}: {shown(values)}; give a dict of names and values")
    there = [*system.names, *(system.states if states else ())]
    found = {}
    for name, value in values.items():
        if name not in there:
            raise ValueError(f"{argument}: there is no {shown(name)}; there are {', '.join(there[:12])}")
        found[name] = finite(f"{argument}[{name!r}]", getattr(value, "value", value))
    return found


def finite(argument: str, value: Any) -> float:
    """One finite number."""
    try:
        number = real_number(value)
        if not np.isfinite(number):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{argument}: {shown(value)}; give a finite number") from None
    return number


def name_list(argument: str, names: Any) -> list[str]:
    """Names, one alone or several."""
    if isinstance(names, str):
        return [names]
    found = read(NAMES, argument, names)
    if len(set(found)) != len(found):
        raise ValueError(f"{argument}: {shown(names)}; give a list of different names")
    return found

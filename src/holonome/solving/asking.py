"""Functions in plain Python that are called at instants of a run, with what they ask for by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holonome.solving.moment import Moment
from holonome.solving.now import Now
from holonome.tracing import argument_names

_BY_NAME = ("joint", "body", "reaction")
"""Functions that a mechanism offers: ``joint("A").angle``."""


class Asking:
    """A function of the user.

    Parameters
    ----------
    function
        What it is.
    role
        What messages call it.
    system
        Which says what can be asked for: t, q, v, s, w, x, p, u, a, lam; of a mechanism also joint, body and
        reaction.
    further
        Names of what callers give besides.
    """

    def __init__(self, function: Callable, role: str, system: Any, further: Sequence[str] = ()) -> None:
        self.function, self.role = function, role
        self.names = argument_names(function, role)
        known = [*_known(system), *further]
        unknown = [name for name in self.names if name not in known]
        if unknown:
            raise TypeError(
                f"{role}: its argument {unknown[0]!r} is not known; it may ask for {', '.join(known)}"
            )

    def __call__(self, moment: Moment, **further: Any) -> Any:
        """Its value at a moment."""
        return self.function(
            **{name: further[name] if name in further else self._value(name, moment) for name in self.names}
        )

    def _value(self, name: str, moment: Moment) -> Any:
        if name in _BY_NAME:
            return getattr(Now(moment.system, moment.t, moment.state), name)
        return moment.value(name, self.role)


def _known(system: Any) -> list[str]:
    names = ["t", *("qv" if system.n else "x"), "p", "u"]
    names += ["s"] * bool(system.n and system.states) + ["w"] * bool(system.unknowns)
    names += ["a"] * bool(system.n) + ["lam"] * bool(system.m)
    return [*names, *_BY_NAME] if hasattr(system, "joint_named") else names

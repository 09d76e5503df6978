"""A system at an instant, asked by the names of its joints and bodies, as a solution of one point is."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

_KEPT = ("_points", "_center", "kinds")


class Now:
    """What results by name need of a solution, for one point.

    Parameters
    ----------
    system
        The system with the parameters and inputs of now.
    t
        The time.
    at
        What has q, v, s, a and lam as attributes.
    """

    pieces = ()

    def __init__(self, system: Any, t: float, at: Any) -> None:
        self.system, self.t, self._at = system, np.array([t]), at
        self.parameter_values = system.parameters.flat[:, None]
        self._named = system.named_results(self)

    def parts(self, solved: bool = False) -> list[tuple[Any, np.ndarray, np.ndarray]]:
        """As of a solution in one piece."""
        return [(self.system, self.t, np.concatenate([self.q, self.v, self.s]).T)]

    @property
    def multipliers_of_pieces(self) -> list[np.ndarray]:
        return [self.lam]

    @classmethod
    def of(cls, solution: Any) -> Now:
        """A solution of one point."""
        now = cls.__new__(cls)
        now.system, now.t, now._named = solution.system, solution.t, solution._by_name
        return now

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in ("q", "v", "s", "a", "lam"):
            raise AttributeError(name)
        return getattr(self._at, name)[:, None]

    def joint(self, name: str) -> Any:
        return single(self._named.joint(name))

    def body(self, name: str, frame: str | None = None) -> Any:
        return single(self._named.body(name, frame))

    def reaction(self, name: str, frame: str | None = None) -> Any:
        return single(self._named.reaction(name, frame))

    def effort(self, name: str) -> Any:
        return self._named.effort(name)[..., 0]

    def power(self, name: str) -> Any:
        return self._named.power(name)[..., 0]


def single(result: Any) -> Any:
    """A result of one point without the axis of points."""
    values = {item.name: getattr(result, item.name) for item in fields(result)}
    return replace(result, **{name: _single(name, value) for name, value in values.items()})


def _single(name: str, value: Any) -> Any:
    if name == "status":
        return value[0]
    if name in _KEPT or not isinstance(value, np.ndarray | dict):
        return value
    if isinstance(value, dict):
        return {key: float(entry[0]) for key, entry in value.items()}
    value = value[0] if name == "matrix" else value[..., 0]
    return float(value) if value.ndim == 0 else value

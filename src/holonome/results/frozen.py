"""Results that cannot be changed once they are made."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError
from typing import Any, ClassVar, Self

import numpy as np

from holonome.locks import cached_property
from holonome.results.history import History


class Frozen:
    """Base class whose annotations are its fields, some with defaults; it is made of a dict.

    Like a frozen dataclass, but created in a fraction of the time, which matters in a call that takes
    microseconds.
    """

    _defaults: dict[str, Any] = {}  # noqa: RUF012
    _count: ClassVar[int] = 0
    _required: frozenset[str] = frozenset()

    def __init_subclass__(cls) -> None:
        names = inspect.get_annotations(cls)
        cls._defaults = {name: vars(cls)[name] for name in names if name in vars(cls)}
        cls._required = frozenset(names) - set(cls._defaults)
        cls._count = len(cls._required) + len(cls._defaults)

    def __init__(self, fields: dict[str, Any]) -> None:
        values = self.__dict__
        values.update(self._defaults)
        values.update(fields)
        if len(values) != self._count or not self._required <= fields.keys():
            raise TypeError(f"{type(self).__name__}: fields {sorted(self._required ^ fields.keys())}")

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"{type(self).__name__}.{name}: a result cannot be changed")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        """Pickles hold the fields, not what was computed from them."""
        return self._fields()

    def _fields(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in (*self._required, *self._defaults)}

    @classmethod
    def field_names(cls) -> frozenset[str]:
        return cls._required | cls._defaults.keys()

    def changed(self, **fields: Any) -> Self:
        """A copy with other values of some fields."""
        return type(self)(self._fields() | fields)


class Result(Frozen):
    """What all solutions share; their fields include a status, accepted and rejected steps."""

    @property
    def success(self) -> bool:
        return self.status >= 0

    @cached_property
    def history(self) -> History | None:
        """The steps; None unless they are kept."""
        return None if self.accepted is None else History(self.accepted, self.rejected)

    def _of_events(self, begin: int, end: int) -> list[np.ndarray] | None:
        """These components of the states at each event."""
        if self.event_states is None:
            return None
        return [states[:, begin:end] for states in self.event_states]

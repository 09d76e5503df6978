"""What a system compiles, each thing once, whichever thread asks first: kernels, plans, laid-out memories."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, overload

from holonome.locks import collector_waits, new_lock

Made = TypeVar("Made")

_KEPT = 8
"""Of what a slot was asked for last."""


class Compiled:
    """Things by key, made on first use under one lock.  A system shares it with its copies."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self._made: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What was made under this key, or ``make()``."""
        try:
            return self._made[key]
        except KeyError:
            with self.lock:
                if key not in self._made:
                    with collector_waits():
                        self._made[key] = make()
                return self._made[key]

    def latest(self, slot: str, key: Hashable, make: Callable[[], Made]) -> Made:
        """As `once`, but a slot keeps only the few that were asked for last."""
        with self.lock:
            kept: dict[Hashable, Made] = self._made.setdefault(("latest", slot), {})  # type: ignore[assignment]
            made = kept.pop(key) if key in kept else make()
            kept[key] = made
            if len(kept) > _KEPT:
                del kept[next(iter(kept))]
            return made

    def __len__(self) -> int:
        return len(self._made)


class made_once(Generic[Made]):
    """A property that is computed once, under the lock of its owner's ``system``."""

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: None, kind: type) -> made_once[Made]: ...
    @overload
    def __get__(self, owner: object, kind: Any = None) -> Made: ...
    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return self
        with owner.system.compiled.lock:
            if self._name not in owner.__dict__:
                owner.__dict__[self._name] = self._make(owner)
            return owner.__dict__[self._name]

"""Objects that change, such as simulators: one thread at a time may change them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from holonome.errors import StepFailed
from holonome.locks import new_lock

Method = TypeVar("Method", bound=Callable[..., Any])


class Turns:
    """Whose turn it is.  Copies, pickled ones too, have turns of their own."""

    def __init__(self) -> None:
        self._lock, self._taken = new_lock(), False

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._taken:  # by this thread
            self._lock.release()
            raise StepFailed(
                "this simulator is in the middle of a step; what it calls during a step, such as the action "
                "of an event, may return changes, but not step or change the simulator itself"
            )
        self._taken = True

    def __exit__(self, *_: object) -> None:
        self._taken = False
        self._lock.release()

    def __reduce__(self) -> tuple:
        return Turns, ()


def in_turn(method: Method) -> Method:
    """A method that waits until other threads have finished theirs; its object has ``_turns``."""

    @functools.wraps(method)
    def waiting(self: Any, *values: Any, **named: Any) -> Any:
        with self._turns:
            return method(self, *values, **named)

    return waiting  # type: ignore[return-value]

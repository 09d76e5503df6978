"""Locks that a process does not inherit in a locked state.

A child made by ``fork`` has only the thread that forked.  What another thread held would stay locked in it
for good, and what that thread was changing would stay half changed.  So a fork waits until nobody compiles or
traces: the thread that forks takes all locks, and both processes release them.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property:
        """As in functools, without the lock that it has before Python 3.12, which nobody else can take."""

        def __init__(self, function):
            self.function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            values = instance.__dict__
            if self.name not in values:
                values[self.name] = self.function(instance)
            return values[self.name]


PATIENCE = 120.0
"""Seconds; a fork does not wait longer."""

_locks: WeakSet[Any] = WeakSet()
_others: list[Any] = []
_taken: list[Any] = []


def new_lock() -> Any:
    """A lock that its owner may take again."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


expressions = new_lock()
"""For making expressions: CasADi has a lock of its own, which nobody else can take, and Python's warning
filters belong to all threads.
"""


_waiting, _waits = new_lock(), [0, 0]  # how many ask the collector to wait, and whether it was at work


@contextmanager
def collector_waits() -> Iterator[None]:
    """Put off the collection of garbage while much is made that stays: it would walk through all of it again
    and again, a tenth of the time.  To be entered under a lock of `new_lock`, so that no child inherits it.
    """
    with _waiting:
        if not _waits[0]:
            _waits[1] = gc.isenabled()
            gc.disable()
        _waits[0] += 1
    try:
        yield
    finally:
        with _waiting:
            _waits[0] -= 1
            if not _waits[0] and _waits[1]:
                gc.enable()


def hold_over_fork(locks: Iterable[Any]) -> None:
    """Treat the locks of others, which may be taken again by their owners, in the same way."""
    _others.extend(locks)


def _take_all() -> None:
    """Take all locks, or none: whoever holds one may be waiting for another."""
    end = time.monotonic() + PATIENCE
    while not _are_taken() and time.monotonic() < end:
        time.sleep(1e-3)


def _are_taken() -> bool:
    try:
        locks = [*_locks, *_others]
    except RuntimeError:  # another thread made one
        return False
    taken = []
    for lock in locks:
        if not lock.acquire(blocking=False):
            for other in taken:
                other.release()
            return False
        taken.append(lock)
    _taken.extend(taken)
    return True


def _release_all() -> None:
    while _taken:
        _taken.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_release_all, after_in_child=_release_all)

"""Ctrl-C during a run: noted rather than raised, so that the run ends in order and returns what it has.

An exception that Python raises inside a callback from compiled code is lost, and one between two lines of
bookkeeping spoils the books; a flag does neither.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interruption:
    """While entered, in the main thread and with Python's own handler in place, Ctrl-C only sets
    ``requested``.
    """

    requested = False

    def __enter__(self) -> type[Interruption]:
        self._mine = (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
        if self._mine:
            Interruption.requested = False
            signal.signal(signal.SIGINT, self._note)
        return Interruption

    def __exit__(self, *exception: Any) -> None:
        if self._mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            Interruption.requested = False

    @staticmethod
    def _note(number: int, frame: FrameType | None) -> None:
        Interruption.requested = True

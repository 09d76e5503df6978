"""The trace under way in this thread: the decisions on the path it is on, and what it had to refuse.

Traced values reach it when they are asked for their truth (`Session.decide`) and when they are asked for what
they cannot do (`refuse`).
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import casadi as ca

from holonome.tracing.origin import is_library_frame, source_file

MAX_PATHS = 64
MAX_DECISIONS = 64
_REMEMBERED_CONDITIONS = 8


class Untraceable(Exception):
    """The function cannot be traced; the message says why in plain words."""


class NoNumber(Untraceable, TypeError):
    """A symbol, such as the parameter of a mechanism, has been used where a number is needed."""

    def __init__(self) -> None:
        super().__init__(
            "a parameter such as m.p.length stands for any value and is no number; here a number is needed"
        )


class Session:
    """One trace of a function."""

    def __init__(self, function: Callable) -> None:
        self.refusal: Untraceable | None = None
        self.script: list[bool] = []
        self.conditions: list[ca.SX] = []
        self.paths = 0
        self.name = getattr(function, "__name__", type(function).__name__)
        self.filename = source_file(function)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make this the session of the thread; traces may be nested."""
        outer, state.session = state.session, self
        try:
            yield
        finally:
            state.session = outer

    def run(self, call: Callable[[], Any], script: list[bool]) -> Any:
        """Call along the path that begins with the script; what was refused is raised even if the user's
        function swallowed it.
        """
        self.paths += 1
        if self.paths > MAX_PATHS:
            raise Untraceable(f"it has more than {MAX_PATHS} branches that depend on traced values")
        self.script, self.conditions = list(script), []
        value = call()
        if self.refusal is not None:
            raise self.refusal
        return value

    def decide(self, condition: ca.SX) -> bool:
        """Answer a condition as the script says, with True where it says nothing yet; the same question gets
        the same answer.
        """
        for answer, earlier in zip(self.script, self.conditions[:_REMEMBERED_CONDITIONS], strict=False):
            if ca.is_equal(condition, earlier, 6):
                return answer
        if len(self.conditions) >= MAX_DECISIONS:
            refuse(
                f"it takes more than {MAX_DECISIONS} decisions on traced values in one run, perhaps in a "
                "loop that iterates until convergence"
            )
        if len(self.script) == len(self.conditions):
            self.script.append(True)
        self.conditions.append(condition)
        return self.script[len(self.conditions) - 1]


class _State(threading.local):
    session: Session | None = None


state = _State()


def refuse(reason: str) -> NoReturn:
    """Raise `Untraceable` and remember it, should the user's function swallow it."""
    if state.session is None:
        raise NoNumber
    error = Untraceable(reason + _current_line())
    state.session.refusal = error
    raise error


def _current_line() -> str:
    """Where in the user's code we are now, as ' (line 12)'."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not Session.run.__code__:
        if not is_library_frame(frame):
            return describe_line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return ""


def describe_line(filename: str, line: int | None) -> str:
    """Return ' (line 12)', with the name of the file if it is not that of the function being traced."""
    if line is None:
        return ""
    if state.session is None or filename == state.session.filename:
        return f" (line {line})"
    return f" (line {line} of {filename.replace(chr(92), '/').rpartition('/')[2]})"

"""What is said on standard error, each thing once in a process."""

from __future__ import annotations

import os
import sys

_said: set[str] = set()


def is_quiet() -> bool:
    """Whether the environment variable ``HOLONOME_QUIET`` asks for silence."""
    return os.environ.get("HOLONOME_QUIET", "") not in ("", "0")


def say_once(about: str, text: str, implies: str = "") -> None:
    """Print a line, unless one about the same was printed before or the user asked for silence; what it
    ``implies`` need not be said any more.
    """
    if about in _said or is_quiet() or sys.stderr is None:
        return
    _said.update((about, implies))
    print(f"holonome: {text}", file=sys.stderr, flush=True)


def say_that_nothing_is_kept(why: str) -> None:
    say_once("kept", f"compiled code is not kept: {why}; set HOLONOME_CACHE to a folder of your own")

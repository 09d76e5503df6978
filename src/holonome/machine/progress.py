"""The progress display of long computations: a bar in a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

PLAIN_LINES = 4
"""Lines printed at most where there is no terminal."""

QUIET_SECONDS = 2.0
"""Without a terminal, computations that take less time than this print nothing."""


class ProgressDisplay:
    """Context manager that yields ``show(fraction, text="")``.

    Parameters
    ----------
    progress : bool or callable
        False shows nothing.  True shows a bar, or without a terminal at most ``PLAIN_LINES`` lines on
        standard error.  A callable receives the arguments of ``show`` instead.
    title : str
        What is being done; ``text`` replaces it in the bar.

    Notes
    -----
    The bar appears, and rich is imported, when ``show`` is called for the first time.
    """

    def __init__(self, progress: bool | Callable[..., Any], title: str = "computing") -> None:
        if not isinstance(progress, bool) and not callable(progress):
            raise TypeError(f"progress: {progress!r}; give True, False or a function of the fraction done")
        self._progress = progress
        self._title = title
        self._bar: Any = None
        self._task: Any = None
        self._started = 0.0
        self._next_line = 0
        self._begun = False

    def __enter__(self) -> Callable[..., Any]:
        if callable(self._progress):
            return self._progress
        self._started = time.perf_counter()
        return self._show if self._progress else _show_nothing

    def __exit__(self, *exception: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _show(self, fraction: float, text: str = "") -> None:
        if not self._begun:
            self._begun = True
            self._start_bar()
        if self._bar is not None:
            self._bar.update(self._task, completed=fraction, description=text or self._title)
        else:
            self._print_line(fraction)

    def _start_bar(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        if sys.stderr.isatty() or console.is_jupyter:  # a forced colour makes no terminal of a pipe
            self._bar = Progress(console=console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=1.0)

    def _print_line(self, fraction: float) -> None:
        reached = int(PLAIN_LINES * fraction)
        if reached > self._next_line and time.perf_counter() - self._started > QUIET_SECONDS:
            self._next_line = reached
            print(f"{self._title}: {100 * fraction:.0f} %", file=sys.stderr, flush=True)


def _show_nothing(fraction: float, text: str = "") -> None:
    pass

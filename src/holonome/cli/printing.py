"""What the commands print: summaries, durations, progress."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

_stop = threading.Event()
_COMPILING = "compiling the engine, once for this machine (about 20 s)"


def out() -> Console:
    """Standard output."""
    return Console(highlight=False)


def plain_table(*columns: tuple[str, dict[str, Any]]) -> Table:
    """A table without lines."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="cyan")
    for name, options in columns:
        table.add_column(name, **options)
    return table


def print_summary(console: Console, title: str, rows: list[tuple[str, str]]) -> None:
    """Print a table of headings and texts below a title."""
    if title:
        console.print(Text(title, style="bold"))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for heading, text in rows:
        table.add_row(f"  {heading}", Text(text))
    console.print(table)


def without_nan(value: Any) -> Any:
    """The value with infinities and NaN, which JSON does not have, replaced by None."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_json(value: Any) -> None:
    import json

    print(json.dumps(without_nan(value), indent=2, ensure_ascii=False, allow_nan=False))


def short(title: str) -> str:
    """A title without its parentheses, whose content is also in the source."""
    return title.partition(" (")[0]


def duration(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.0f} µs"


def create_folders(files: list[Path]) -> set[Path]:
    """Create the folders of the files, and return those that are new."""
    created = {file.parent for file in files if not file.parent.is_dir()}
    for folder in created:
        folder.mkdir(parents=True, exist_ok=True)
    return created


def told(file: Path, created: set[Path]) -> str:
    """The path of a file, and whether its folder is new."""
    return f"{file} (in a new folder)" if file.parent in created else str(file)


def require_folder(option: str, folder: Path | None) -> None:
    if folder is not None and folder.exists() and not folder.is_dir():
        raise ValueError(f"{option}: {str(folder)!r} is not a folder")


def compile_engine() -> None:
    """Compile the engine, with a message, unless it is compiled already."""
    from holonome import mechanisms
    from holonome.solving.first_use import ensure_compiled
    from holonome.solving.solve import solve

    pendulum = mechanisms.get("pendulum")
    ensure_compiled(
        lambda: solve(pendulum.system, (0.0, 0.1), pendulum.q0, pendulum.v0).drift, lambda: alive(_COMPILING)
    )


@contextmanager
def alive(text: str, patience: float = 1.0) -> Iterator[None]:
    """Show that work is in progress once it takes longer than ``patience``: a spinner with the elapsed time
    or, without a terminal, dots.
    """
    console, done = Console(stderr=True), threading.Event()

    def show() -> None:
        if done.wait(patience):
            return
        if console.is_terminal:
            with Progress(
                SpinnerColumn(), TextColumn(text), TimeElapsedColumn(), console=console, transient=True
            ) as progress:
                progress.add_task("", total=None)
                done.wait()
            return
        print(text, end=" ", file=console.file, flush=True)
        while not done.wait(2.0):
            print(".", end="", file=console.file, flush=True)
        print(file=console.file, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def working(
    name: str, patience: float = 1.0, part: tuple[int, int, float] = (0, 1, 0.0)
) -> Iterator[Callable[..., None]]:
    """A function to be called with the fraction done and what comes next. The bar appears after a second, on
    terminals only; it swings until a fraction is known.

    For work in several parts, `part` is the number of this one, their total number and the time at which the
    first began; a second bar then shows the overall progress and the estimated time left.
    """
    console, done = Console(stderr=True), threading.Event()
    columns = (
        TextColumn("{task.fields[name]}"),
        BarColumn(),
        TextColumn("{task.fields[percent]} {task.description}"),
        TimeElapsedColumn(),
    )
    progress = Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, get_time=time.perf_counter
    )
    task, (number, parts, since) = progress.add_task("", total=None, name=name, percent=""), part
    every = progress.add_task(
        "", total=parts, completed=number, name=f"{number + 1} of {parts}", percent="", visible=parts > 1
    )
    progress.tasks[1].start_time = since or None

    def start() -> None:
        if not done.wait(patience):
            progress.start()

    def show(fraction: float, what: str = "") -> None:
        _stop_if_wanted()
        progress.update(
            task, total=1.0, completed=fraction, description=what, percent=f"{100 * fraction:3.0f} %"
        )
        left = (
            (time.perf_counter() - since) * (parts - number - fraction) / (number + fraction)
            if number
            else 0.0
        )
        progress.update(
            every,
            completed=number + fraction,
            description=f"about {left / 60:.0f} min left"
            if left > 90
            else f"about {left:.0f} s left"
            if left
            else "",
        )

    thread = threading.Thread(target=start, daemon=True)
    thread.start()
    try:
        yield show
    finally:
        done.set()
        thread.join()
        if progress.live.is_started:
            progress.stop()


@contextmanager
def stopping() -> Iterator[None]:
    """Ctrl-C ends the whole command, where a run alone would return what it has; one that a run takes for
    itself is raised again when progress is reported, or at the end.
    """
    _stop.clear()

    def stop(number: int, frame: Any) -> None:
        _stop.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
        _stop_if_wanted()
    finally:
        signal.signal(signal.SIGINT, before)
        _stop.clear()


def _stop_if_wanted() -> None:
    if _stop.is_set():
        raise KeyboardInterrupt

"""The engine is compiled once on a machine and then loaded from Numba's cache: whether that is still to come,
and telling the user while it lasts.

A marker file in :func:`holonome.machine.cache.cache_folder` says that this engine was compiled by this
Numba and this Python here. It counts only as long as Numba's own cache holds the compiled loop, so a deleted
cache or an interrupted compilation is noticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import llvmlite.binding as llvm
import numba

from holonome.integrators.runge_kutta_steps import advance
from holonome.machine.cache import cache_folder

_COMPILED_FOLDERS = ("algebra", "coupling", "dynamics", "formulations", "integrators", "machine")
_asked = False


def announce_first_use() -> None:
    """Say once, in one line on stderr, that the engine is about to be compiled, if it is; later calls do
    nothing.

    ``HOLONOME_QUIET=1`` silences it.
    """
    global _asked
    if _asked:
        return
    _asked = True
    if is_compiled():
        return
    if not is_quiet() and sys.stderr is not None:
        print(
            "holonome: compiling its engine, once on this machine (about 20 s) ...",
            file=sys.stderr,
            flush=True,
        )
    _leave_marker()


def ensure_compiled(
    simulate: Callable[[], object], announce: Callable[[], AbstractContextManager] | None = None
) -> bool:
    """Compile the engine if that is still to come; True if it was.

    Parameters
    ----------
    simulate
        A small simulation, whose side effect is the compilation.
    announce
        Makes the context in which that happens, say a spinner; called only if there is something to compile
        and the user did not ask for quiet.
    """
    global _asked
    _asked = True
    if is_compiled():
        return False
    with nullcontext() if announce is None or is_quiet() else announce():
        simulate()
    _leave_marker()
    return True


def is_compiled() -> bool:
    """Whether the engine can be loaded from Numba's cache."""
    with contextlib.suppress(OSError):
        return _marker().is_file() and _engine_is_cached()
    return False


def _engine_is_cached() -> bool:
    return any(Path(advance.stats.cache_path or ".").glob("loop.advance_with_runge_kutta_steps-*.nbi"))


def is_quiet() -> bool:
    """Whether the environment variable ``HOLONOME_QUIET`` asks for silence."""
    return os.environ.get("HOLONOME_QUIET", "") not in ("", "0")


def _marker() -> Path:
    """The marker's path; its name changes with everything that makes Numba compile again."""
    package = Path(__file__).parents[1]
    files = [file for folder in _COMPILED_FOLDERS for file in sorted((package / folder).glob("*.py"))]
    stamps = [
        f"{file.relative_to(package)} {file.stat().st_mtime_ns} {file.stat().st_size}" for file in files
    ]
    key = [
        _version(),
        numba.__version__,
        sys.version,
        llvm.get_host_cpu_name(),
        str(package),
        str(advance.stats.cache_path),
        *stamps,
    ]
    return cache_folder() / "compiled" / hashlib.sha256("\n".join(key).encode()).hexdigest()[:32]


def _version() -> str:
    try:
        return version("holonome")
    except PackageNotFoundError:
        return "source"


def _leave_marker() -> None:
    """Write the marker; where that is not allowed, the next process will ask again."""
    with contextlib.suppress(OSError):
        marker = _marker()
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()

"""The engine is compiled once on a machine and then loaded from its cache
(:mod:`holonome.machine.engine_cache`): whether it still has to be compiled, and a message to the user
meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from holonome.integrators.runge_kutta_steps import advance
from holonome.machine.announcements import is_quiet, say_once

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
    if advance.stats.cache_path:
        say_once("engine", "compiling its engine, once on this machine (about 20 s) ...")
    else:
        say_once(
            "engine",
            "compiling its engine, in every process (about 20 s): no folder can be written to keep it; set "
            "HOLONOME_CACHE to one",
            implies="kept",
        )


def ensure_compiled(
    simulate: Callable[[], object], announce: Callable[[], AbstractContextManager] | None = None
) -> bool:
    """Compile the engine unless that was done before; True if it was compiled now.

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
    return True


def is_compiled() -> bool:
    """Whether the loop of the engine is compiled in this process or can be loaded; it is kept when all that
    it calls has been compiled, so an interrupted compilation does not count.
    """
    if advance.signatures:
        return True
    with contextlib.suppress(OSError):
        return bool(advance.stats.cache_path) and any(
            Path(advance.stats.cache_path).glob(
                "loop.advance_with_holonome_integrators_runge_kutta_steps-*.nbi"
            )
        )
    return False

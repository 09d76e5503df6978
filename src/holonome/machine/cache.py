"""Files of object code: where compiled models are kept, how they are read and written, and how much of them
there may be.

A file is named after a hash of all that its code depends on (:mod:`holonome.machine.own_files`).  When all of
them together exceed ``HOLONOME_CACHE_LIMIT`` megabytes, those that were not used for the longest time go.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import platformdirs

from holonome.machine import own_files
from holonome.machine.announcements import say_once, say_that_nothing_is_kept

LIMIT = 1000
"""Megabytes, unless ``HOLONOME_CACHE_LIMIT`` says otherwise."""

_LEFT = 0.8
"""Part of the limit that is left when files are deleted."""

_OFTEN = 3600.0
"""Seconds after which a process that writes its first file looks at the size of the cache."""

_IN_USE = 24 * 3600.0
"""Seconds after which a file that is read is marked as used again."""

_written = -1
"""Bytes that this process wrote since it last looked at the size; −1 before its first file."""


def cache_folder() -> Path | None:
    """Where compiled models are kept: ``HOLONOME_CACHE``, or the user's cache folder; None for a user without
    a home.
    """
    given = os.environ.get("HOLONOME_CACHE")
    if given:
        return Path(given)
    try:
        folder = Path(platformdirs.user_cache_dir("holonome"))
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None


def path_of(parts: Iterable[str]) -> Path | None:
    """The file of the code that these texts determine."""
    folder = cache_folder()
    if folder is None:
        return None
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return folder / "models" / key[:2] / f"{key}.o"


def read(path: Path | None) -> bytes | None:
    """Code from the cache; None where there is none, it cannot be read, is damaged or not ours."""
    code = None if path is None else own_files.read(path)
    if path is not None and code is not None and _age(path) > _IN_USE:
        with contextlib.suppress(OSError):
            os.utime(path)
    return code


def write(path: Path | None, code: bytes) -> None:
    """Keep code; a cache that cannot be written is done without."""
    if path is None:
        say_that_nothing_is_kept("this user has no home")
        return
    models = path.parents[1]
    try:
        own_files.make_folder(models)
        own_files.write(path, code)
        _keep_within_limit(models, len(code))
    except own_files.NotOurs as error:
        say_that_nothing_is_kept(str(error))
    except OSError as error:
        say_that_nothing_is_kept(f"{str(models)!r} cannot be written ({error.strerror or error})")


def limit() -> float:
    """Bytes that the files may take together."""
    given = os.environ.get("HOLONOME_CACHE_LIMIT", "")
    try:
        megabytes = float(given or LIMIT)
        if megabytes >= 0:
            return 1e6 * megabytes
    except ValueError:
        pass
    say_once("limit", f"HOLONOME_CACHE_LIMIT={given!r} is not a number of megabytes; {LIMIT} is used")
    return 1e6 * LIMIT


def _keep_within_limit(models: Path, size: int) -> None:
    """Look at the size of the cache, but rarely: at the first file that a process writes if none did so
    within the hour, and then after every tenth of the limit.
    """
    global _written
    most, looked = limit(), models / "looked"
    due = _written < 0 and _age(looked) > _OFTEN
    _written = max(_written, 0) + size
    if due or _written > most / 10:
        _written = 0
        looked.touch(mode=0o600)
        os.utime(looked)
        delete_oldest(models, most)


def _age(path: Path) -> float:
    """Seconds since a file was used."""
    with contextlib.suppress(OSError):
        return time.time() - os.stat(path).st_mtime
    return math.inf


def delete_oldest(models: Path, most: float) -> None:
    """Delete the files that were not used for the longest time, if all together have more bytes than this."""
    files = sorted(_files(models))
    total = sum(size for _, size, _ in files)
    if total <= most:
        return
    for _, size, path in files:
        if total <= _LEFT * most:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= size


def _files(models: Path) -> Iterator[tuple[float, int, str]]:
    """When each file was last used, its size, and where it is; also those that were never finished."""
    with os.scandir(models) as folders:
        for folder in folders:
            if not folder.is_dir(follow_symlinks=False):
                continue
            with contextlib.suppress(OSError), os.scandir(folder) as files:
                for file in files:
                    with contextlib.suppress(OSError):
                        status = file.stat(follow_symlinks=False)
                        yield status.st_mtime, status.st_size, file.path

"""Where Numba keeps the compiled engine: a folder named after everything it was compiled from.

Numba's own cache looks at the file of a function alone: where a function that it calls was edited in another
file, the old code would go on running.  Here the folder's name is a digest of all source files that contain
compiled code, of the versions of Python, Numba and llvmlite, and of the processor; a change of any of them
begins an empty folder.  It stands in the first of these places that can be written, and that others cannot
(:mod:`holonome.machine.own_files`):

- ``NUMBA_CACHE_DIR``, if that is set,
- the package's own ``__pycache__``,
- the user's cache folder (:func:`holonome.machine.cache.cache_folder`).

Where none can be, one of them that can be read is used, and without that the engine is compiled in every
process.  Functions of other packages keep Numba's own cache.

When a new folder is made, those beside it that no process began to use within a day are deleted.  Nothing
relies on a folder to stay: what is missing, damaged or cannot be written is compiled anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from numba.core import caching, ccallback, config, dispatcher

from holonome.machine import own_files
from holonome.machine.announcements import say_that_nothing_is_kept
from holonome.machine.cache import cache_folder

COMPILED_ROOMS = ("algebra", "coupling", "dynamics", "formulations", "integrators", "machine")
"""Folders of the package that contain functions for Numba, or constants that these use."""

PACKAGE = Path(__file__).parents[1]

_UNUSED = 24 * 3600.0
"""Seconds since a process last began to use a folder, after which it may be deleted."""

_IN_USE = 3600.0
"""Seconds after which a process that begins to use a folder writes that down again."""

_SAMPLE = bytes(2**16)


@cache
def digest() -> str:
    """What the engine was compiled from, in 32 hexadecimal digits (2 ms)."""
    found = hashlib.sha256()
    build = "checked" if config.BOUNDSCHECK else "usual"
    about = (sys.version, numba.__version__, llvmlite.__version__, llvm.get_host_cpu_name(), build)
    found.update("\0".join(about).encode())
    for room in COMPILED_ROOMS:
        for file in sorted((PACKAGE / room).glob("*.py")):
            source = file.read_bytes()
            found.update(f"\0{room}/{file.name} {len(source)}\0".encode())
            found.update(source)
    return found.hexdigest()[:32]


def places() -> Iterator[Path]:
    """Folders that may hold one folder for each digest, the one preferred first."""
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR) / "holonome"
    yield PACKAGE / "__pycache__" / "engine"
    users = cache_folder()
    if users is not None:
        yield users / "engine"


@cache
def folder() -> Path | None:
    """The folder of this engine; None where nothing can be kept."""
    readable = None
    for place in places():
        candidate = place / digest()
        if _is_ready(candidate):
            return candidate
        if readable is None and _is_readable(candidate):
            readable = candidate
    return readable


def _mode(path: Path) -> int:
    """The package's own folder may be read by all who may read the package."""
    return own_files.READABLE if path.is_relative_to(PACKAGE) else own_files.PRIVATE


def _is_ready(candidate: Path) -> bool:
    """Whether the folder is ours and can be written; makes it, and tells others that it is in use."""
    is_new = not os.path.isdir(candidate)
    try:
        own_files.make_folder(candidate, _mode(candidate))
        with tempfile.NamedTemporaryFile(dir=candidate, suffix=".tmp") as file:
            file.write(_SAMPLE)  # a full disk takes empty files
        if is_new:
            remove_unused(candidate)
        if time.time() - candidate.stat().st_mtime > _IN_USE:
            os.utime(candidate)
    except OSError as error:
        if is_new:
            with contextlib.suppress(OSError):
                candidate.rmdir()
        if isinstance(error, own_files.NotOurs) and not candidate.is_relative_to(PACKAGE):
            say_that_nothing_is_kept(str(error))
        return False
    return True


def _is_readable(candidate: Path) -> bool:
    with contextlib.suppress(OSError):
        return own_files.is_ours(candidate.stat()) and os.access(candidate, os.R_OK | os.X_OK)
    return False


def remove_unused(kept: Path) -> None:
    """Delete the folders beside this one that no process began to use within a day."""
    for other in kept.parent.iterdir():
        with contextlib.suppress(OSError):
            if other != kept and other.is_dir() and time.time() - other.stat().st_mtime > _UNUSED:
                shutil.rmtree(other, ignore_errors=True)


class _Locator(caching._CacheLocator):
    """Tells Numba where the code of a function of this package is kept."""

    def __init__(self, path: Path, py_file: str, line: int) -> None:
        self._path = path
        self._py_file = py_file
        self._line = line

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator | None:
        own = folder()
        if own is None:
            return None
        return cls(own / Path(py_file).parent.name, py_file, py_func.__code__.co_firstlineno)

    def ensure_cache_path(self) -> None:
        own_files.make_folder(self._path, _mode(self._path))

    def get_cache_path(self) -> str:
        return str(self._path)

    def get_source_stamp(self) -> str:
        return digest()

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _Files(caching.IndexDataCacheFile):
    """An index and the files it names, each named after what it holds: two processes that write at the same
    time may lose an entry, but never take each other's code for their own.
    """

    def save(self, key: Any, data: Any) -> None:
        overloads = self._load_index()
        name = overloads.setdefault(key, self._data_name(_number(key)))
        self._save_data(name, data)
        self._save_index(overloads)

    def _load_index(self) -> dict:
        stored = own_files.read(Path(self._index_path), self._source_stamp)
        return {} if stored is None else pickle.loads(stored)

    def _save_index(self, overloads: dict) -> None:
        self._write(Path(self._index_path), overloads)

    def _load_data(self, name: str) -> Any:
        path = Path(self._data_path(name))
        stored = own_files.read(path, self._source_stamp)
        if stored is None:
            raise FileNotFoundError(path)
        return pickle.loads(stored)

    def _save_data(self, name: str, data: Any) -> None:
        self._write(Path(self._data_path(name)), data)

    def _write(self, path: Path, data: Any) -> None:
        own_files.write(path, self._dump(data), self._source_stamp, _mode(path))


def _number(key: Any) -> int:
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big")


class EngineCache(caching.FunctionCache):
    """Numba's cache of one function of this package."""

    _impl_class = _Implementation

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        self._cache_file = _Files(self.cache_path, self._impl.filename_base, digest())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code; None where there is none, or it is damaged, which is then forgotten."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code; a cache that cannot be written is done without."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            say_that_nothing_is_kept(
                f"{str(self.cache_path)!r} cannot be written ({error.strerror or error})"
            )


def cache_of(py_func: Any) -> Any:
    """The cache that Numba is to use for a function."""
    if not Path(inspect.getfile(py_func)).is_relative_to(PACKAGE):
        return caching.FunctionCache(py_func)
    return EngineCache(py_func) if folder() is not None else caching.NullCache()


def install() -> None:
    """Make Numba ask `cache_of`; to be called before the first function is decorated."""
    setattr(dispatcher, "FunctionCache", cache_of)  # noqa: B010
    setattr(ccallback, "FunctionCache", cache_of)  # noqa: B010

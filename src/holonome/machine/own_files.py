"""Files of machine code, which nobody else may have written: whoever can write one can make its reader do
anything.

A file begins with a digest of its place and its content, so that neither damage nor the code of something
else is taken for what was asked for.  It is read only if it belongs to this user or to the administrator and
others cannot write it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from pathlib import Path

from holonome.machine.announcements import say_that_nothing_is_kept

PRIVATE, READABLE = 0o700, 0o755
"""Folders of this user alone, and folders that others may read."""

_DIGEST = 32
_OPENING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_CREATING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class NotOurs(PermissionError):
    """Others own a file or folder, or may write it."""


def is_ours(status: os.stat_result) -> bool:
    """Whether only this user, or the administrator, can have written it."""
    if os.name != "posix":
        return True
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


def make_folder(folder: Path, mode: int = PRIVATE) -> None:
    """Make a folder, and those above it, with this mode; OSError where that fails, or it is not ours."""
    _make(folder, mode)
    status = os.stat(folder)
    if os.name == "posix" and status.st_uid == os.geteuid() and status.st_mode & 0o777 & ~mode:
        os.chmod(folder, stat.S_IMODE(status.st_mode) & mode)
        status = os.stat(folder)
    if not is_ours(status):
        raise NotOurs(f"{str(folder)!r} belongs to another user or can be written by others")


def _make(folder: Path, mode: int) -> None:
    try:
        os.mkdir(folder, mode)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    except FileNotFoundError:
        _make(folder.parent, mode)
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, mode)


def read(path: Path, stamp: str = "") -> bytes | None:
    """What `write` wrote here with this stamp; None where there is nothing, or it is damaged, or not ours."""
    with contextlib.suppress(OSError):
        with open(os.open(path, _OPENING), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None
            if not is_ours(status):
                if status.st_uid != os.geteuid():
                    say_that_nothing_is_kept(f"files in {str(path.parents[1])!r} belong to another user")
                return None
            stored = file.read()
        if stored[:_DIGEST] == _digest(path, stamp, stored[_DIGEST:]):
            return stored[_DIGEST:]
    return None


def write(path: Path, content: bytes, stamp: str = "", mode: int = PRIVATE) -> None:
    """Write in one move, so that no reader ever sees half a file; OSError where that fails, and then nothing
    is left behind.
    """
    make_folder(path.parent, mode)
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(os.open(unfinished, _CREATING, mode & 0o666), "wb") as file:
            file.write(_digest(path, stamp, content) + content)
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _digest(path: Path, stamp: str, content: bytes) -> bytes:
    found = hashlib.sha256(f"{stamp}\0{path.parent.name}\0{path.name}\0".encode())
    found.update(content)
    return found.digest()

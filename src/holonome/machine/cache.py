"""Files of object code: where compiled models are kept, and how they are read and written.

A file is named after a hash of all that its code depends on, and begins with a digest of the code, so that
damage is noticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Where compiled models are kept: ``HOLONOME_CACHE``, or the user's cache folder."""
    return Path(os.environ.get("HOLONOME_CACHE") or platformdirs.user_cache_dir("holonome"))


def path_of(parts: Iterable[str]) -> Path:
    """The file of the code that these texts determine."""
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return cache_folder() / "models" / key[:2] / f"{key}.o"


def read(path: Path) -> bytes | None:
    """Code from the cache; None where there is none, it cannot be read, or it is damaged."""
    with contextlib.suppress(OSError):
        stored = path.read_bytes()
        digest, code = stored[:32], stored[32:]
        if hashlib.sha256(code).digest() == digest:
            return code
    return None


def write(path: Path, code: bytes) -> None:
    """Write in one move, so that no reader ever sees half a file; a cache that cannot be written is done
    without.
    """
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(file.name, path)

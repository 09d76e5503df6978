"""The tests keep their own cache of models, and throw Numba's away when the engine's source has changed:
Numba looks at the file of a function alone, not at the files of those it calls.
"""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "holonome"
COMPILED = ("algebra", "coupling", "dynamics", "formulations", "integrators", "machine")


def _forget_stale_engine() -> None:
    files = [file for folder in COMPILED for file in sorted((SOURCE / folder).rglob("*.py"))]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    stamp = SOURCE / "machine" / "__pycache__" / "engine.sha256"
    if not stamp.is_file() or stamp.read_text() != digest:
        for compiled in [*SOURCE.rglob("*.nbi"), *SOURCE.rglob("*.nbc")]:
            compiled.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest)


if "PYTEST_XDIST_WORKER" not in os.environ:
    _forget_stale_engine()
    os.environ.setdefault("HOLONOME_CACHE", tempfile.mkdtemp(prefix="holonome-tests-"))
os.environ["HOLONOME_QUIET"] = "1"


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")

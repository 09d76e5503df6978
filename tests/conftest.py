"""The tests keep their own cache of models, and throw Numba's away when the engine's source has changed: Numba looks at the file of a function alone, not at the files of
those it calls.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "holonome"
COMPILED = ("engine", "formulations", "integrators")


def _forget_stale_engine() -> None:
    files = [file for folder in COMPILED for file in sorted((SOURCE / folder).rglob("*.py"))] + [SOURCE / "foreign.py"]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    stamp = SOURCE / "engine" / "__pycache__" / "engine.sha256"
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


class Experiments(Mapping):
    """The results of a paper's experiments by name, each computed when it is first asked for."""

    def __init__(self, paper) -> None:
        self._experiments, self._results = paper.experiments, {}

    def __getitem__(self, name: str):
        if name not in self._results:
            self._results[name] = self._experiments[name]()
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._experiments)

    def __len__(self) -> int:
        return len(self._experiments)


@pytest.fixture(scope="session")
def experiments():
    """``experiments(paper)`` computes only what a test asks for; all of a paper takes up to half a minute."""
    return Experiments

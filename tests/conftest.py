"""The tests keep their own cache of models."""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping

import pytest

if "PYTEST_XDIST_WORKER" not in os.environ:
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

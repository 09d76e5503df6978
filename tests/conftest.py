"""The tests keep their own cache of models."""

import os
import sys
import tempfile

import pytest

if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ.setdefault("HOLONOME_CACHE", tempfile.mkdtemp(prefix="holonome-tests-"))
os.environ["HOLONOME_QUIET"] = "1"


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")

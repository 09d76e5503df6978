"""What Numba made of a function is found again, and only where the function and its values are the same."""

import numba
import numpy as np
import pytest
from numba.core.ccallback import CFunc

import holonome as hn


@pytest.fixture
def compilations(tmp_path, monkeypatch):
    """An empty cache, and what is compiled in spite of it."""
    monkeypatch.setenv("HOLONOME_CACHE", str(tmp_path))
    made, original = [], CFunc._compile_uncached

    def counted(self):
        made.extend(["wrapper"] * (self._pyfunc.__name__ == "wrapper"))  # others belong to the engine
        return original(self)

    monkeypatch.setattr(CFunc, "_compile_uncached", counted)
    return made


@numba.njit
def helper(x, k):
    return -k * float(x)


def system(k, factor=1.0):
    table = np.array([k, 0.0])

    def force(q):
        return np.array([helper(q[0], table[0]) * factor])

    return hn.System(1.0, force, names=["x"])


def test_compiled_once_for_the_same_function_and_values(compilations):
    for k, count in ((4.0, 1), (4.0, 1), (9.0, 2), (4.0, 2)):
        made = system(k)
        assert made.paths["force"] == "numba"
        assert len(compilations) == count
        end = hn.solve(made, (0, 1), [1.0], rtol=1e-10, atol=1e-11).q[0, -1]
        assert end == pytest.approx(np.cos(np.sqrt(k)), abs=1e-8)


def of_text(q):
    return [-float(str(q[0]).strip("abc"))]


def with_an_import(q):
    import math

    return [-math.copysign(abs(float(q[0])), float(q[0]))]


@pytest.mark.parametrize("force", [of_text, with_an_import])
def test_what_cannot_be_compiled_is_not_tried_again(compilations, force):
    for _ in range(3):
        assert hn.System(1.0, force, names=["x"]).paths["force"] == "python"
    assert len(compilations) == 1

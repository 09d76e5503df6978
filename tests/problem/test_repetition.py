"""Functions that draw random numbers or remember what they were asked are refused when a system is made."""

import subprocess
import sys

import numpy as np
import pytest

import holonome as hn

RNG = np.random.default_rng(1)


def legacy(q):
    return np.random.normal(size=1)  # noqa: NPY002


def legacy_minus_q(q):
    return np.random.rand(1) - q  # noqa: NPY002


def generator(q):
    return RNG.normal(size=1)


def generator_of_its_own(q):
    return np.random.default_rng().standard_normal(1)


def with_traced_mean(q):
    return np.random.normal(q[0], 1.0, size=1)  # noqa: NPY002


def shuffled(q):
    return np.random.permutation(5)[:1] * q  # noqa: NPY002


RANDOM = [legacy, legacy_minus_q, generator, generator_of_its_own, with_traced_mean, shuffled]


def refused(function):
    """Whether a force is refused with its remedy; a crash would end the process."""
    try:
        hn.System(1.0, function, names=["x"])
    except hn.ModelError as error:
        return "parameters=" in str(error) and "Random numbers" in str(error)
    return False


def test_random_forces_neither_crash_nor_pass():
    code = (
        f"import sys; sys.path.insert(0, {__file__.rpartition('/')[0]!r}); import test_repetition as test\n"
    )
    code += "print([function.__name__ for function in test.RANDOM if not test.refused(function)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_compiled_code_of_libraries_gets_arrays_of_doubles():
    """Constants that such code computes inside a traced function are those that it computes outside."""
    from scipy import linalg, ndimage, special
    from scipy.interpolate import CubicSpline

    def force(q):
        fixed = np.random.default_rng(3).normal(size=2) + np.random.RandomState(4).rand(2)
        smooth = ndimage.gaussian_filter1d([0.0, 1.0, 0.0, 2.0], 1.0)[:2]
        spline = CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])([0.5, 0.7])
        return -q * (fixed + smooth + spline + linalg.expm([[0.0, 1.0], [0.0, 0.0]])[0] + special.jv(1, 0.3))

    system = hn.System([1.0, 1.0], force)
    assert system.paths["force"] == "traced"


class Controller:
    """PI control with a memory."""

    def __init__(self):
        self.integral = 0.0

    def __call__(self, q):
        self.integral += 0.01 * q[0]
        return -q - 3.0 * self.integral


class Hold:
    """A value that is sampled now and then."""

    def __init__(self):
        self.last, self.value = -1.0, 0.0

    def force(self, t, q):
        if t > self.last + 0.1:
            self.last, self.value = t, -float(q[0])
        return [self.value]


@pytest.mark.parametrize("function", [Controller(), Hold().force])
def test_a_force_with_memory_is_refused(function):
    with pytest.raises(hn.ModelError, match=r"called again with the same arguments.*states="):
        hn.System(1.0, function, names=["x"])


def test_an_event_with_memory_is_refused():
    system = hn.System(1.0, [-1.0], names=["x"])
    with pytest.raises(hn.ModelError, match="called again with the same arguments"):
        hn.solve(system, (0, 1), [1.0], events=lambda q: q[0] + RNG.normal())


def test_problems_of_index_2_refuse_random_numbers():
    with pytest.raises(hn.ModelError, match="f: called again with the same arguments"):
        hn.Index2System(lambda x: -x + RNG.normal(size=2), [[1.0], [0.0]], lambda x: x[:1], n=2)


def test_what_remembers_answers_only_is_accepted():
    known = {}

    def force(q):
        key = float(q[0])
        if key not in known:
            known[key] = -key
        return [known[key]]

    assert hn.System(1.0, force, names=["x"]).paths["force"] == "python"

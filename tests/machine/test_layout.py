"""Memory with names: fields do not overlap, and a checked build notices whatever writes beyond a vector."""

import os
import subprocess
import sys

import numpy as np
import pytest

from holonome.dynamics.kernels import dense_derivative, kernels
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK, Context
from holonome.machine.layout import WIDTH, Layout, Real, Vector, Whole, appended, lay_out
from holonome.mechanisms import chain


class Small(Layout):
    t: Real
    steps: Whole
    y: Vector
    empty: Vector
    z: Vector


class Longer(Small):
    last: Vector


def begins(kind, memory, at=0):
    return {name: kind.span(memory, name, at) for name, what in kind.fields.items() if what == "Vector"}


def test_fields_are_apart_and_hold_what_they_were_given():
    memory = lay_out((Small, {"t": 0.5, "steps": 3, "y": np.arange(5.0), "z": 7}), (Longer, {"last": [2.0]}))
    taken = np.zeros(memory.size, int)
    for kind, at in ((Small, 0), (Longer, Small.words)):
        taken[at : at + len(kind.fields)] += 1
        for span in begins(kind, memory, at).values():
            assert span.start % WIDTH == 0  # for vector registers
            taken[span.start - 1 : span.stop] += 1  # with its length
    assert taken.max() == 1
    assert (Small.of(memory)["t"], Small.of(memory)["steps"]) == (0.5, 3)
    np.testing.assert_array_equal(Small.vector(memory, "y"), np.arange(5.0))
    np.testing.assert_array_equal(Small.vector(memory, "z"), np.zeros(7))
    np.testing.assert_array_equal(Longer.vector(memory, "last", Small.words), [2.0])


def test_a_vector_that_moves_to_the_end_leaves_the_others():
    memory = lay_out((Small, {}), (Longer, {"y": [1.0, 2.0], "last": [3.0]}))
    longer = appended(memory, Longer, Small.words, z=np.arange(6.0), empty=np.ones(1))
    expected = {"y": [1, 2], "empty": [1], "z": np.arange(6), "last": [3]}
    for name, values in expected.items():
        np.testing.assert_array_equal(Longer.vector(longer, name, Small.words), values)


def checked(program: str) -> str:
    """What a program prints, or the last line of its error, in a process with the checked build."""
    imports = ["import numpy as np", "from holonome.machine import layout", "from test_layout import *"]
    program = "\n".join([*imports, "from holonome.machine.layout import *", program])
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    environment = os.environ | {"HOLONOME_CHECKED": "1", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    return (done.stdout or done.stderr.strip().splitlines()[-1]).strip()


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 8])
def test_each_place_behind_a_vector_is_guarded(size):
    said = checked(f"""
memory = lay_out((Small, dict(y={size}, z={size})), (Longer, dict(last=np.ones({size}))))
memory = appended(memory, Small, 0, empty=np.ones({size}))
for kind, at in ((Small, 0), (Longer, Small.words)):
    layout.require_intact(memory, at, kind)
    for name, span in begins(kind, memory, at).items():
        for behind in range(4):
            other, guards = memory.copy(), layout.Guards(memory)
            other[span.stop + behind] = 0.0
            for look in (lambda: layout.require_intact(other, at, kind),
                         lambda: guards.require_intact(other, name)):
                try:
                    look()
                except MemoryError as error:
                    assert name in str(error)
                else:
                    print("not noticed:", kind, name, behind)
print("done")
""")
    assert said == "done"


def test_compiled_code_that_leaves_a_vector_is_stopped():
    said = checked("""
from numba import njit
small = Small.named()
@njit
def write(memory, i):
    small(memory).y[i] = 1.0
memory = Small.memory(y=3, z=2)
write(memory, 2)
write(memory, 3)
""")
    assert said.startswith("IndexError"), said


OVERRUN = """
import holonome as hn
from holonome.integrators.runge_kutta import RungeKuttaStepper
loop = RungeKuttaStepper.advance
def advance(memory, context, *others):
    code = loop(memory, context, *others)
    WHERE[np.flatnonzero(WHERE == layout._GUARD)[-1]] = 0.0
    return code
RungeKuttaStepper.advance = staticmethod(advance)
hn.solve(hn.System(1.0, lambda q, p: -p.k * q, parameters={"k": 1.0}), (0, 1), [1.0])
print("not noticed")
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["memory", "context"])
def test_a_run_that_wrote_beyond_a_vector_is_noticed(where):
    """The engine of the checked build may have to be compiled for it."""
    assert checked(OVERRUN.replace("WHERE", where)).startswith("MemoryError")


@pytest.mark.parametrize("links", [25, 60, 120])
def test_work_space_that_nobody_has_written_serves_the_dense_kernels(links):
    """Beyond some size it is not written when a context is made; accelerations are those of the others."""
    system, q = chain(links=links).system, chain(links=links).q0
    y, compiled = np.concatenate([q, np.zeros(q.size)]), kernels(system)
    context = compiled.context(system)
    accelerations = [np.full(y.size + 1, np.nan) for _ in range(2)]
    for address, out in zip((compiled.derivative, dense_derivative.address), accelerations, strict=True):
        assert run_kernel(address, 0.0, y, y, context, out) == OK
    assert Context.of(context)["dense_calls"] == 1
    np.testing.assert_allclose(accelerations[1][:-1], accelerations[0][:-1], atol=1e-8)

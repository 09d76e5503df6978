"""A process that is forked while another thread compiles or traces can do both."""

import multiprocessing
import threading
import time

import numpy as np
import pytest
from llvmlite.binding import ffi
from numba import njit
from numba.core.compiler_lock import global_compiler_lock

import holonome as hn
from holonome import locks
from holonome.machine.compiled import Compiled

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this machine"
)

shared = Compiled()


def _compile():
    assert shared.once("of the child", lambda: 1) == 1
    assert njit(lambda x: 2 * x)(3) == 6
    pendulum = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1.25, names=["x", "y"])
    assert hn.solve(pendulum, (0, 1), [1.0, 0.5]).success
    assert np.zeros(2).dtype == float


def _forked(action):
    """The exit code of a child; None if it hangs."""
    child = multiprocessing.get_context("fork").Process(target=action)
    child.start()
    child.join(60)
    if child.exitcode is None:
        child.kill()
        child.join()
        return None
    return child.exitcode


LOCKS = {
    "of a system": lambda: shared.lock,
    "of tracing": lambda: locks.expressions,
    "of Numba": lambda: global_compiler_lock,
    "of LLVM": lambda: ffi.lib._lock,
}


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_a_lock_that_another_thread_holds(lock):
    _compile()
    held = threading.Event()

    def hold():
        with lock():
            held.set()
            time.sleep(0.3)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert _forked(_compile) == 0
    thread.join()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_forks_while_another_thread_makes_systems():
    end = threading.Event()

    def make(factor):
        system = hn.System(np.eye(2), [0.0, -factor], lambda q: q @ q - 1, names=["x", "y"])
        hn.solve(system, (0, 0.1), [1, 0], method="ggl")

    def make_many():
        factor = 1.0
        while not end.is_set():
            factor += 0.125
            make(factor)

    _compile()
    make(1.0)  # a child that had to compile the engine would take long
    thread = threading.Thread(target=make_many)
    thread.start()
    try:
        assert [_forked(_compile) for _ in range(5)] == [0] * 5
    finally:
        end.set()
        thread.join()

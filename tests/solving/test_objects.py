"""Systems as objects: parameters, copies, pickles, threads, interruption, what a result prints."""

import _thread
import copy
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import holonome as hn

GRAVITY = 9.81
FINE = {"rtol": 1e-10, "atol": 1e-12}


def test_other_parameters_compile_nothing(monkeypatch):
    system = hn.System(
        np.eye(2),
        lambda p: np.array([0.0, -p.g]),
        lambda q, p: q @ q - p.length**2,
        parameters={"g": GRAVITY, "length": 1.0},
    )
    hn.solve(system, (0, 1), [1.0, 0.0])
    import holonome.machine.kernel

    def refuse(*_):
        raise AssertionError("compiled")

    monkeypatch.setattr(holonome.machine.kernel, "_compile", refuse)
    monkeypatch.setattr(holonome.machine.kernel, "Kernel", refuse)
    sol = hn.solve(system, (0, 1), [2.0, 0.0], parameters={"length": 2.0, "g": 3.0}, **FINE)
    np.testing.assert_allclose(
        sol.q, hn.mechanisms.pendulum(length=2.0, gravity=3.0).exact(sol.t)[0], atol=1e-8
    )
    assert system.parameters["length"] == 1.0
    assert sol.system.parameters["length"] == 2.0


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_and_pickles_of_systems_made_of_lambdas(clone):
    functions = {
        "mass": lambda q, p: np.array([[p.m, 0], [0, p.m + q[0] ** 2]]),
        "constraint": lambda q: q @ q - 1,
        "potential": lambda q, p: p.m * p.g * q[1],
    }
    functions["force"] = lambda t, v, p: np.array([0.1 * np.sin(t), -p.m * p.g]) - 0.1 * v
    system = hn.System(
        **functions,
        parameters={"m": 2.0, "g": GRAVITY},
        names=["x", "y"],
        constraint_names=["rod"],
        name="lamp",
    )
    twin = clone(system)
    assert (twin.name, twin.names, twin.constraint_names, dict(twin.parameters)) == (
        "lamp",
        ["x", "y"],
        ["rod"],
        {"m": 2.0, "g": GRAVITY},
    )
    one, two = (hn.solve(s, (0, 3), [1.0, 0.0], parameters={"g": 5.0}) for s in (system, twin))
    np.testing.assert_array_equal(one.y, two.y)
    np.testing.assert_array_equal(one.lam, two.lam)
    np.testing.assert_array_equal(one.energy, two.energy)


def test_pickled_velocity_constraint_given_as_a_matrix():
    """A(q) and A(q) v must not be confused on the way through a pickle."""
    system = hn.System(
        np.ones(3),
        np.array([1.0, 0.0, 0.0]),
        velocity_constraint=lambda q: np.array([[np.sin(q[2]), -np.cos(q[2]), 0.0]]),
    )
    one, two = (
        hn.solve(s, (0, 2), np.zeros(3), [0, 0, 1.0]) for s in (system, pickle.loads(pickle.dumps(system)))
    )
    np.testing.assert_array_equal(one.y, two.y)


def _run_apart(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


def test_dense_output_outlives_its_system():
    """``hn.solve(...).sol`` is all that is kept: machine code must not be freed under it."""
    out = _run_apart("""
        import gc, numpy as np, holonome as hn
        force = np.array([0.0, -9.81])
        rod = hn.System(np.eye(2), force, lambda q: q @ q - 1)
        sol = hn.solve(rod, (0, 1), [1.0, 0.0], dense_output=True).sol
        del rod
        gc.collect()
        for i in range(5):
            other = hn.System(np.eye(2), force, lambda q: q @ q - 2 - i)
            hn.solve(other, (0, 1), [1.0, 0.0], repair=True)
        print(abs(np.linalg.norm(sol(0.5)[0]) - 1) < 1e-12)
        """)
    assert out.strip() == "True"


def test_results_travel_between_processes(tmp_path):
    """A pickled result, dense output included, works in another process."""
    _run_apart(f"""
        import pickle, numpy as np, holonome as hn
        p = hn.mechanisms.pendulum()
        sol = hn.solve(p.system, (0, 1), p.q0, p.v0, dense_output=True)
        sol.lam, sol.drift
        pickle.dump(sol, open({str(tmp_path / "sol")!r}, "wb"))
        """)
    out = _run_apart(f"""
        import pickle, numpy as np, holonome as hn
        p = hn.mechanisms.pendulum()
        extra = hn.solve(p.system, (0, 1), p.q0, p.v0)
        sol = pickle.load(open({str(tmp_path / "sol")!r}, "rb"))
        for name in ("q", "lam", "a", "energy"):
            print(np.allclose(getattr(sol, name), getattr(extra, name), atol=1e-14))
        print(np.allclose(sol.sol(0.5)[0] @ sol.sol(0.5)[0], 1))
        """)
    assert out.split() == ["True"] * 5


def test_threads_give_the_same_digits():
    pendulum = hn.mechanisms.double_pendulum()
    alone = hn.solve(pendulum.system, (0, 20), pendulum.q0, pendulum.v0, **FINE)
    fresh = pickle.loads(pickle.dumps(pendulum.system))
    with ThreadPoolExecutor(4) as pool:
        results = [
            f.result()
            for f in [
                pool.submit(hn.solve, fresh, (0, 20), pendulum.q0, pendulum.v0, **FINE) for _ in range(8)
            ]
        ]
    assert all(np.array_equal(r.y, alone.y) for r in results)


def test_threads_with_python_functions_and_other_parameters():
    """Each run sees its own parameters."""
    table = CubicSpline([-2.0, 0.0, 2.0], [1.0, 1.0, 1.0])
    system = hn.System(1.0, lambda q, p: np.array([-p.k * q[0] * float(table(q[0]))]), parameters={"k": 1.0})
    assert system.paths["force"] == "python"
    stiffness = [1.0, 2.0, 3.0, 4.0]
    alone = [hn.solve(system, (0, 3), [1.0], parameters={"k": k}).y for k in stiffness]
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            together = [
                f.result().y
                for f in [
                    pool.submit(hn.solve, system, (0, 3), [1.0], parameters={"k": k}) for k in stiffness
                ]
            ]
    finally:
        sys.setswitchinterval(switch)
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def _interrupted(sol) -> bool:
    ordered = bool(np.all(np.diff(sol.t) > 0) and np.all(np.isfinite(sol.y)))
    return (
        not sol.success
        and sol.status == -1
        and "interrupt" in sol.message.lower()
        and sol.t.size > 1
        and ordered
    )


def test_keyboard_interrupt_in_a_progress_callback():
    def stop(fraction):
        assert 0 <= fraction <= 1
        if fraction > 0.01:
            raise KeyboardInterrupt

    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(pendulum.system, (0, 10_000), pendulum.q0, pendulum.v0, progress=stop, step=1e-3)
    assert _interrupted(sol), sol.message
    assert 100 <= sol.t[-1] < 10_000


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signals reach only the main thread: run this test without -n",
)
@pytest.mark.parametrize("kind", ["native", "python"])
def test_ctrl_c_returns_what_there_is(kind):
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a job in the background may have begun with the signal ignored
    try:
        _interrupt_a_run(kind)
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt_a_run(kind):
    table = CubicSpline([-2.0, 0.0, 2.0], [GRAVITY] * 3)
    force = np.array([0.0, -GRAVITY]) if kind == "native" else lambda q: np.array([0.0, -float(table(q[0]))])
    system = hn.System(np.eye(2), force, lambda q: q @ q - 1)
    hn.solve(system, (0, 0.1), [1.0, 0.0])
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    end = {"native": 2e5, "python": 1e3}[kind]
    sol = hn.solve(system, (0, end), [1.0, 0.0], t_eval=np.linspace(0, end, 10_001))
    timer.join()
    assert _interrupted(sol), sol.message


def test_progress_is_told_to_the_end():
    told = []
    pendulum = hn.mechanisms.pendulum()
    hn.solve(pendulum.system, (0, 100), pendulum.q0, pendulum.v0, progress=told.append, step=1e-3)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_result_prints_and_converts():
    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(pendulum.system, (0, 1), pendulum.q0, pendulum.v0)
    assert "success" in str(sol)
    assert "|g|" in str(sol)
    assert "energy" in str(sol)
    np.testing.assert_allclose(
        sol.system.functions["mass"].evaluate({"t": 0.0, "q": sol.q[:, -1], "v": sol.v[:, -1]})
        @ sol.a[:, -1],
        np.array([0, -GRAVITY]) - 2 * sol.q[:, -1] * sol.lam[0, -1],
        atol=1e-12,
    )

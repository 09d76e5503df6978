"""The progress display: what it yields, and what it prints where there is no terminal."""

import os
import subprocess
import sys

import pytest

import holonome as hn
from holonome.machine import progress
from holonome.machine.progress import ProgressDisplay


def test_a_callable_receives_what_is_shown():
    seen = []
    with ProgressDisplay(lambda *given: seen.append(given)) as show:
        show(0.25)
        show(0.5, "half")
    assert seen == [(0.25,), (0.5, "half")]


def test_false_shows_nothing(capsys):
    with ProgressDisplay(False) as show:
        show(0.5, "half")
    assert capsys.readouterr() == ("", "")


def test_without_a_terminal_there_are_a_few_plain_lines(capsys, monkeypatch):
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.0)
    with ProgressDisplay(True, "simulating") as show:
        for i in range(1001):
            show(i / 1000, f"step {i}")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [f"simulating: {percent} %" for percent in (25, 50, 75, 100)]


def test_short_computations_in_a_pipe_print_nothing():
    program = (
        "from holonome.machine.progress import ProgressDisplay\n"
        "with ProgressDisplay(True) as show:\n"
        "    for i in range(500): show(i / 500, 'text')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == done.stderr == b""


def test_a_run_of_many_legs_has_one_display(monkeypatch):
    """Each display of a relay would leave a line behind."""
    begun = []
    monkeypatch.setattr(ProgressDisplay, "_start_bar", lambda self: begun.append(self))
    fast = hn.System(1.0, lambda q: -1e4 * q, names=["x"])
    sol = hn.solve(fast, (0, 60), [1], rtol=1e-9, progress=True)
    assert sol.steps > 10_000
    assert len(begun) == 1


def test_a_forced_colour_makes_no_terminal_of_a_pipe():
    program = (
        "from holonome.machine.progress import ProgressDisplay\n"
        "with ProgressDisplay(True) as show:\n"
        "    for i in range(500): show(i / 500, 'text')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        env={**os.environ, "FORCE_COLOR": "1"},
    )
    assert done.stdout == done.stderr == b""


def test_what_is_neither_bool_nor_callable_is_refused():
    with pytest.raises(TypeError, match="progress: 'yes'; give True, False or a function"):
        ProgressDisplay("yes")


def test_compare_and_solve_coupled_report_their_progress():
    pendulum = hn.mechanisms.pendulum()
    told = []
    hn.compare(
        pendulum.system,
        (0, 1),
        pendulum.q0,
        methods=["dopri5"],
        rtols=[1e-4],
        progress=lambda fraction, text: told.append((fraction, text)),
    )
    assert told == [(0.0, "reference"), (0.5, "dopri5, rtol 0.0001")]
    pair = hn.CoupledSystem.linear([1.0, 2.0], None, [4.0, 0.0], [1.0, -1.0], [0.0, 1.0])
    fractions = []
    method = hn.LocalIteration(window=0.25)
    hn.solve_coupled(pair, (0, 1), [0, 0], method=method, progress=fractions.append)
    assert fractions == [0.25, 0.5, 0.75, 1.0]

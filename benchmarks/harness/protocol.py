"""What an adapter offers and what it gets; nothing here needs holonome.

An adapter is a module in ``adapters/`` with

``version() -> str``
    of the peer; raises if it cannot be imported.
``codes(problem) -> dict[str, Code]``
    its solvers on this problem, by name; raises `CannotState` with the reason if there are none.
"""

from __future__ import annotations

import ctypes as ct
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

import numpy as np

TOLERANCES = tuple(10.0**-k for k in np.arange(2.0, 12.1, 0.5))
STEPS = tuple(round(s) for s in 10.0 ** np.arange(1.5, 6.1, 0.5))
COMPILER = ["gcc", "-O3", "-march=native", "-shared", "-fPIC"]


class CannotState(Exception):
    """The peer has no way to state the problem; the message says why."""


def require_accelerations(problem: Problem) -> None:
    """Refuse what is not an explicit ODE."""
    if not problem.explicit:
        reason = (
            "not written out for long chains" if problem.links else "but forces depend on λ and on unknowns"
        )
        raise CannotState(f"needs accelerations as a function of the state, {reason}")
    if not np.all(np.isfinite(Functions(problem).derivative(0.0, problem.y0))):
        raise CannotState("the accelerations are not finite: G M⁻¹ Gᵀ is singular")


@dataclass(frozen=True)
class Outcome:
    """The state (q, v) at the end, None after a failure; seconds of the solve; what it took; the message of a
    failure.
    """

    y: np.ndarray | None
    seconds: float
    steps: int = 0
    evaluations: int = 0
    message: str = ""


@dataclass(frozen=True)
class Code:
    """One solver with its settings.

    Attributes
    ----------
    solve : callable(level) -> Outcome
        The level is a tolerance, or a number of steps for codes with constant steps.
    states : callable(level, times) -> (points, 2n) array
        States at the times, by the code's own interpolation; at its own steps if times is None.
    levels : sequence of floats
        From coarse to fine.
    kernel : float
        Seconds for one evaluation of the model alone; 0 if not known.
    interpolates : bool
        Whether there are states between the steps.
    compiles : float
        Seconds that the first run in a process may take for compilation.
    """

    solve: Callable[[float], Outcome]
    states: Callable[[float, np.ndarray | None], np.ndarray]
    levels: Sequence[float] = TOLERANCES
    kernel: float = 0.0
    interpolates: bool = True
    compiles: float = 10.0


class Problem(SimpleNamespace):
    """What export.py wrote, as attributes; arrays as arrays."""

    @classmethod
    def load(cls, folder: Path) -> Problem:
        data = json.loads((folder / "problem.json").read_text())
        for key in ("y0", "yp0", "lam0", "observed"):
            data[key] = np.array(data[key])
        data["forms"] = {
            name: SimpleNamespace(
                Y0=np.array(form["Y0"]),
                dY0=np.array(form["dY0"]),
                kinds=np.array(form["kinds"], np.int32),
                index=form["index"],
            )
            for name, form in data["forms"].items()
        }
        return cls(folder=folder, p=SimpleNamespace(**data["parameters"]), **data)

    def compiled(self, name: str, sources: Sequence[Path], *flags: str) -> ct.CDLL:
        """A library from the problem's C code and other sources, compiled once."""
        target = self.folder / f"{name}.so"
        if not target.exists():
            run = subprocess.run(
                [*COMPILER, f"-I{self.folder}", *map(str, sources), "-o", str(target), *flags, "-lm"],
                capture_output=True,
                text=True,
            )
            if run.returncode:
                raise RuntimeError(
                    next((line for line in run.stderr.splitlines() if "error" in line), run.stderr)
                )
        return ct.CDLL(str(target))


class Functions:
    """The problem's C functions for Python: gcc compiles them, Numba wraps them; a call costs less than a
    microsecond, of which most is Python's part.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._library = problem.compiled(
            "functions", [problem.folder / "problem.c", problem.folder / "flat.c"]
        )

    @cached_property
    def derivative(self):
        return self._wrapped("derivative", self._problem.states)

    @cached_property
    def derivative_jacobian(self):
        size = self._problem.states
        flat = self._wrapped("derivative_jacobian", size**2)
        return lambda t, y: flat(t, y).reshape(size, size).T

    def residual(self, form: str):
        return self._wrapped(f"{form}_residual", self._problem.forms[form].Y0.size)

    def matrix(self, form: str):
        """(t, Y, Y′, cj) ↦ ∂F/∂Y + cj ∂F/∂Y′."""
        size = self._problem.forms[form].Y0.size
        flat = self._wrapped(f"{form}_matrix", size**2)
        return lambda t, Y, dY, cj: flat(t, Y, dY, cj).reshape(size, size).T

    def _wrapped(self, name: str, size: int):
        import numba as nb

        function = getattr(self._library, f"flat_{name}")
        function.argtypes, function.restype = (
            [ct.c_double, ct.c_size_t, ct.c_size_t, ct.c_double, ct.c_size_t],
            ct.c_int,
        )

        @nb.njit
        def evaluate(t, a, b=None, c=0.0):
            a, b = np.ascontiguousarray(a), np.ascontiguousarray(a if b is None else b)
            out = np.empty(size)
            function(t, a.ctypes.data, b.ctypes.data, c, out.ctypes.data)
            return out

        return evaluate


def timed(action: Callable):
    """What the action returns, and its seconds of processor time."""
    begin = time.process_time()
    result = action()
    return result, time.process_time() - begin


def end_with_parent() -> None:
    """End with the parent process, even in the middle of a run (Linux)."""
    ct.CDLL(None).prctl(1, signal.SIGKILL)


def single_thread() -> None:
    """Keep this process, and the threads that libraries start, on one processor."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

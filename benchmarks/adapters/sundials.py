"""SUNDIALS in C: IDA on the implicit forms, CVODE and ARKODE on the underlying ODE.

Problem and drivers (``sundials/*.c``) are compiled together by gcc and called once a solve; what is timed is
IDASolve, CVode or ERKStepEvolve alone, by clock_gettime in C. SUNDIALS is that of the distribution, or the
one in SUNDIALS_DIR.

Settings, and why
-----------------
Dense LU with the exact matrix ∂F/∂Y + cj ∂F/∂Y′; there are 4 to 50 unknowns. The chains have a banded matrix,
with the unknowns ordered bar by bar. IDA: algebraic unknowns are marked (IDASetId) and out of the error test
(IDASetSuppressAlg); with them in it IDA takes 10⁵ to 10⁶ steps or stops. IDA, tuned: absolute tolerance 1e6
for the algebraic unknowns, because IDASetSuppressAlg leaves them in the Newton test, and the Newton bound
0.01 instead of 0.33; plain GGL fails at tight tolerances, and with 0.33 it takes up to twice as many steps.
IDA, smooth: for smooth motion also the velocities have the tolerance 1e6, and the order is 2 at most;
otherwise the error test sees the oscillation and nothing is damped. CVODE BDF: CVodeSetProjFn after each
step, error estimate projected; Newton bound 0.1 (its own), tuned 0.01. Projection is Newton's method in the
metric of M, mostly one iteration. CVODE Adams: fixed-point iteration; CVODE projects with BDF only, so this
drifts. ARKODE: Dormand & Prince's formula (order 5) and Fehlberg's (order 8), projected by
ERKStepSetPostprocessStepFn.
"""

from __future__ import annotations

import ctypes as ct
import os
import subprocess
import time
from pathlib import Path

import numpy as np

from harness.driver import ENDING, MOST_POINTS, VECTOR, WHOLE, called
from harness.protocol import CannotState, Code, Outcome, Problem

FOLDER = Path(os.environ.get("SUNDIALS_DIR") or "/usr")
SOURCES = Path(__file__).parents[1] / "sundials"
UNTESTED = 1e6
NEWTON = 0.01
FORMS = {"index1": "index 1", "index2": "index 2", "ggl": "GGL"}
_PARTS = (
    "ida",
    "cvode",
    "arkode",
    "nvecserial",
    "sunmatrixdense",
    "sunmatrixband",
    "sunlinsoldense",
    "sunlinsolband",
    "sunnonlinsolfixedpoint",
    "generic",
)


class Settings(ct.Structure):
    _fields_ = [
        (name, ct.c_double)
        for name in ("rtol", "atol", "atol_velocity", "atol_algebraic", "newton_tolerance")
    ] + [("suppress", ct.c_int), ("max_order", ct.c_int)]


def version() -> str:
    if not (FOLDER / "include" / "sundials" / "sundials_config.h").exists():
        raise ImportError(f"no SUNDIALS in {FOLDER}; install libsundials-dev, or set SUNDIALS_DIR")
    program = "#include <sundials/sundials_config.h>\nSUNDIALS_VERSION\n"
    return subprocess.run(
        ["gcc", f"-I{FOLDER}/include", "-E", "-P", "-"],
        input=program,
        text=True,
        capture_output=True,
        check=True,
    ).stdout.split('"')[-2]


def codes(problem: Problem) -> dict[str, Code]:
    found = {}
    if problem.links:
        for form in ("index2", "ggl"):
            found[f"IDA {FORMS[form]}, banded"] = _chain(problem, form)
    if problem.forms or problem.explicit:
        library = _library(
            problem,
            "sundials",
            [
                "ida.c" if problem.forms else None,
                "cvode.c" if problem.explicit else None,
                "arkode.c" if problem.explicit else None,
            ],
        )
        found |= _implicit(problem, library) if problem.forms else {}
        found |= _explicit(problem, library) if problem.explicit else {}
    if not found:
        raise CannotState("no form of the problem was written")
    return found


def _library(problem: Problem, name: str, drivers: list[str | None], *, generated: bool = True) -> ct.CDLL:
    sources = [SOURCES / driver for driver in drivers if driver] + (
        [problem.folder / "problem.c"] if generated else []
    )
    libraries = [f"-L{FOLDER}/lib", f"-Wl,-rpath,{FOLDER}/lib", *[f"-lsundials_{part}" for part in _PARTS]]
    return problem.compiled(name, sources, f"-DSTATES={problem.states}", f"-I{FOLDER}/include", *libraries)


def _implicit(problem: Problem, library: ct.CDLL) -> dict[str, Code]:
    library.run_ida.argtypes = [
        ct.c_int,
        ct.c_int,
        ct.c_double,
        ct.POINTER(Settings),
        WHOLE,
        VECTOR,
        VECTOR,
        *ENDING,
    ]

    def code(form: str, **changes) -> Code:
        data = problem.forms[form]

        def run(tolerance: float, times, points: int):
            arguments = (
                list(FORMS).index(form),
                data.Y0.size,
                problem.end,
                _settings(tolerance, **changes),
                data.kinds,
                data.Y0,
                data.dY0,
            )
            return called(library.run_ida, arguments, times, points, problem.states)

        return _code(problem, run)

    if problem.motion == "smooth":
        smooth = {
            "atol_velocity": UNTESTED,
            "atol_algebraic": UNTESTED,
            "newton_tolerance": NEWTON,
            "max_order": 2,
        }
        tuned = code("ggl", atol_algebraic=UNTESTED, newton_tolerance=NEWTON)
        return {f"IDA {FORMS[form]}, smooth": code(form, **smooth) for form in ("index2", "ggl")} | {
            "IDA GGL, tuned": tuned
        }
    return {f"IDA {name}": code(form) for form, name in FORMS.items()} | {
        f"IDA {name}, tuned": code(form, atol_algebraic=UNTESTED, newton_tolerance=NEWTON)
        for form, name in FORMS.items()
    }


def _explicit(problem: Problem, library: ct.CDLL) -> dict[str, Code]:
    library.run_cvode.argtypes = [ct.c_int, *[ct.c_double] * 3, ct.c_int, ct.c_double, VECTOR, *ENDING]
    library.run_arkode.argtypes = [ct.c_int, *[ct.c_double] * 3, ct.c_int, VECTOR, *ENDING]
    kernel = _bare(problem, library)

    def cvode(*, adams: bool = False, projected: bool = True, newton_tolerance: float = 0.1) -> Code:
        def run(tolerance: float, times, points: int):
            return called(
                library.run_cvode,
                (adams, problem.end, tolerance, tolerance, projected, newton_tolerance, problem.y0),
                times,
                points,
                problem.states,
            )

        return _code(problem, run, kernel)

    def arkode(order: int) -> Code:
        def run(tolerance: float, times, points: int):
            return called(
                library.run_arkode,
                (order, problem.end, tolerance, tolerance, True, problem.y0),
                times,
                points,
                problem.states,
            )

        return _code(problem, run, kernel)

    if problem.motion == "smooth":
        return {"CVODE BDF, projected": cvode()}
    return {
        "CVODE BDF, projected": cvode(),
        "CVODE BDF, projected, tuned": cvode(newton_tolerance=NEWTON),
        "CVODE Adams": cvode(adams=True),
        "ARKODE order 5, projected": arkode(5),
        "ARKODE order 8, projected": arkode(8),
    }


def _chain(problem: Problem, form: str) -> Code:
    """The hand-written chain: its unknowns are ordered bar by bar."""
    library = _library(problem, "chain", ["chain.c"], generated=False)
    library.run_chain.argtypes = [
        ct.c_int,
        ct.c_int,
        *[ct.c_double] * 4,
        ct.POINTER(Settings),
        WHOLE,
        VECTOR,
        VECTOR,
        *ENDING,
    ]
    links, extra = problem.links, 2 if form == "ggl" else 0
    block = 8 + extra

    def ordered(q: np.ndarray, v: np.ndarray, lam: np.ndarray) -> np.ndarray:
        return np.hstack(
            [lam.reshape(links, 2), np.zeros((links, extra)), q.reshape(links, 3), v.reshape(links, 3)]
        ).ravel()

    n = 3 * links
    q, v, a = problem.y0[:n], problem.y0[n:], problem.yp0[n:]
    Y0, dY0 = ordered(q, v, problem.lam0), ordered(v, a, 0 * problem.lam0)
    kinds = np.tile(np.array([2] * (2 + extra) + [0] * 3 + [1] * 3, np.int32), links)

    def run(tolerance: float, times, points: int):
        settings = _settings(tolerance, atol_algebraic=UNTESTED, newton_tolerance=NEWTON)
        arguments = (
            links,
            form == "ggl",
            problem.p.length,
            problem.p.m,
            problem.p.gravity,
            problem.end,
            settings,
            kinds,
            Y0,
            dY0,
        )
        states, *rest = called(library.run_chain, arguments, times, points, links * block)
        bars = states.reshape(-1, links, block)
        return np.hstack(
            [bars[:, :, 2 + extra : 5 + extra].reshape(-1, n), bars[:, :, 5 + extra :].reshape(-1, n)]
        ), *rest

    return _code(problem, run)


def _settings(
    tolerance: float,
    *,
    atol_velocity: float | None = None,
    atol_algebraic: float | None = None,
    newton_tolerance: float = 0.33,
    max_order: int = 5,
) -> Settings:
    return Settings(
        tolerance,
        tolerance,
        atol_velocity or tolerance,
        atol_algebraic or tolerance,
        newton_tolerance,
        1,
        max_order,
    )


def _code(problem: Problem, run, kernel: float = 0.0) -> Code:
    end = np.array([problem.end])

    def solve(tolerance: float) -> Outcome:
        states, seconds, counts, message = run(tolerance, end, 1)
        return Outcome(
            None if message else states[-1], seconds, counts["steps"], counts["residuals"], message
        )

    def states(tolerance: float, times: np.ndarray | None) -> np.ndarray:
        return run(tolerance, times, MOST_POINTS)[0]

    return Code(solve, states, kernel=kernel)


def _bare(problem: Problem, library: ct.CDLL) -> float:
    """Seconds for one evaluation of the accelerations, without what Python adds."""
    y, out, t = problem.y0.copy(), np.empty(problem.states), np.zeros(1)
    arguments, results = np.array([t.ctypes.data, y.ctypes.data]), np.array([out.ctypes.data])
    library.derivative.argtypes = [ct.c_size_t] * 4 + [ct.c_int]
    library.repeat.argtypes = [ct.c_size_t, ct.c_size_t, ct.c_long]
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        library.repeat(arguments.ctypes.data, results.ctypes.data, 5000)
        seconds.append(time.perf_counter() - begin)
    return min(seconds) / 5000

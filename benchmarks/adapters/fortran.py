"""Codes in Fortran that the field trusts: RADAU5, RADAU and RODAS (Hairer and Wanner), PHEM56 (Murua), DASPK
(Petzold), ODASSL (Führer) and MEBDFI (Cash).

``peers.py setup --fortran FOLDER`` compiles their sources by ``gfortran -O3 -march=native``; the drivers are
``fortran/*.c``. What is timed is the call of the code alone, in C.

Settings, and why
-----------------
Exact matrices and dense LU everywhere. RADAU5 and RADAU (orders 5, 9, 13) get the index of every unknown, by
which they scale error and Newton test; RODAS is for index 1. All three eliminate the rows q′ = v, and know
where the mass matrix is diagonal. Where M depends on q, the accelerations are unknowns too, as in the
problems of the test set of Bari. PHEM56 with the projection that it offers, after every step, and without.
DASPK: algebraic unknowns out of the error test, and, tuned, with the absolute tolerance 1e6, as IDA. ODASSL:
the constraints of position and velocity in addition to index 1, multipliers with the tolerance 1e6. MEBDFI:
the index of every unknown. A first step of 1e-6 of the interval where a code asks for one.
"""

from __future__ import annotations

import ctypes as ct
from pathlib import Path

import numpy as np

from harness.driver import ENDING, MOST_POINTS, VECTOR, WHOLE, called
from harness.protocol import CannotState, Code, Outcome, Problem

LIBRARY = Path(__file__).parents[1] / ".peers" / "fortran" / "libfortran.so"
SOURCES = Path(__file__).parents[1] / "fortran"
FORMS = {"index1": "index 1", "index2": "index 2", "index3": "index 3", "ggl": "GGL"}
UNTESTED = 1e6
_MASS_CODES = {"RADAU5": 0, "RADAU": 1, "RODAS": 2}
_RESIDUAL_CODES = {"DASPK": 0, "ODASSL": 1, "MEBDFI": 2}
_RESIDUAL_FORMS = ("index1", "index2", "ggl", "index3", "overdetermined")


def version() -> str:
    if not LIBRARY.exists():
        raise ImportError("no Fortran codes; peers.py setup --fortran FOLDER compiles their sources")
    return "as found"


def codes(problem: Problem) -> dict[str, Code]:
    if not problem.forms:
        raise CannotState(
            "no form of the problem was written" if problem.links else "there are no constraints"
        )
    drivers = ["mass.c", "residual.c", *(["half_explicit.c"] if problem.half_explicit else [])]
    library = problem.compiled(
        "fortran",
        [*(SOURCES / driver for driver in drivers), problem.folder / "problem.c"],
        f"-DSTATES={problem.states}",
        f"-DVELOCITIES={problem.n}",
        f"-L{LIBRARY.parent}",
        f"-Wl,-rpath,{LIBRARY.parent}",
        "-lfortran",
    )
    found = _with_mass_matrix(problem, library) | _residual(problem, library)
    return found | (_half_explicit(problem, library) if problem.half_explicit else {})


def _with_mass_matrix(problem: Problem, library: ct.CDLL) -> dict[str, Code]:
    library.run_mass.argtypes = [
        *[ct.c_int] * 6,
        WHOLE,
        ct.c_double,
        ct.c_double,
        VECTOR,
        VECTOR,
        *ENDING,
    ]

    def code(name: str, form: str, algebraic: float | None) -> Code:
        data = problem.mass_forms[form]
        Y0, kinds = np.array(data["Y0"]), np.array(data["kinds"])

        def arguments(tolerance: float) -> tuple:
            atol = np.where((kinds == 2) & (algebraic is not None), algebraic or 0.0, tolerance)
            return (
                _MASS_CODES[name],
                list(FORMS).index(form),
                Y0.size,
                data["second_order"],
                data["diagonal"],
                data["autonomous"],
                np.array(data["index"], np.int32),
                problem.end,
                tolerance,
                atol,
                Y0,
            )

        return _code(problem, library.run_mass, arguments)

    smooth = problem.motion == "smooth"
    found = {}
    for name in _MASS_CODES:
        for form in ("index1",) if name == "RODAS" else ("index3", "index2", "ggl"):
            found[f"{name} {FORMS[form]}"] = code(name, form, None)
            if not smooth:
                found[f"{name} {FORMS[form]}, tuned"] = code(name, form, UNTESTED)
    return found


def _residual(problem: Problem, library: ct.CDLL) -> dict[str, Code]:
    library.run_residual.argtypes = [
        *[ct.c_int] * 4,
        *[ct.c_double] * 3,
        WHOLE,
        WHOLE,
        VECTOR,
        VECTOR,
        *ENDING,
    ]
    extra = problem.rows + len(problem.mass_forms["ggl"]["Y0"]) - len(problem.mass_forms["index2"]["Y0"])

    def code(name: str, form: str, algebraic: float | None) -> Code:
        data = problem.forms["index1" if form == "overdetermined" else form]

        def arguments(tolerance: float) -> tuple:
            return (
                _RESIDUAL_CODES[name],
                _RESIDUAL_FORMS.index(form),
                data.Y0.size,
                extra if form == "overdetermined" else 0,
                problem.end,
                tolerance,
                algebraic or tolerance,
                data.kinds,
                np.array(data.index, np.int32),
                data.Y0,
                data.dY0,
            )

        return _code(problem, library.run_residual, arguments)

    found = {}
    for form in ("index1", "index2", "ggl"):
        found[f"DASPK {FORMS[form]}"] = code("DASPK", form, None)
        found[f"DASPK {FORMS[form]}, tuned"] = code("DASPK", form, UNTESTED)
    for form in ("index3", "index2", "ggl"):
        found[f"MEBDFI {FORMS[form]}"] = code("MEBDFI", form, None)
    return found | {"ODASSL": code("ODASSL", "overdetermined", UNTESTED)}


def _half_explicit(problem: Problem, library: ct.CDLL) -> dict[str, Code]:
    library.run_half_explicit.argtypes = [ct.c_int, ct.c_int, ct.c_double, ct.c_double, VECTOR, *ENDING]

    def code(project: bool) -> Code:
        return _code(
            problem,
            library.run_half_explicit,
            lambda tolerance: (problem.rows, project, problem.end, tolerance, problem.y0),
        )

    return {"PHEM56, projected": code(True), "PHEM56": code(False)}


def _code(problem: Problem, function, arguments) -> Code:
    def run(tolerance: float, times: np.ndarray | None, points: int):
        return called(function, arguments(tolerance), times, points, problem.states)

    def solve(tolerance: float) -> Outcome:
        states, seconds, counts, message = run(tolerance, np.array([problem.end]), 1)
        if not message and not np.all(np.isfinite(states)):
            message = "the state at the end is not finite"
        return Outcome(
            None if message else states[-1], seconds, counts["steps"], counts["residuals"], message
        )

    def states(tolerance: float, times: np.ndarray | None) -> np.ndarray:
        return run(tolerance, times, MOST_POINTS)[0]

    return Code(solve, states)

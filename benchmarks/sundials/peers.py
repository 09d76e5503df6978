"""SUNDIALS in C on the systems of this package: the equations are generated from the system's own expressions, compiled together with the drivers and called by ctypes.

Both sides so evaluate the same expressions.  What is timed is IDASolve or CVode alone, by clock_gettime in C; setting up is free for them.
"""

from __future__ import annotations

import ctypes as ct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np

import holonome as hn
from holonome.model import Model

_HERE = Path(__file__).parent
_COMPILER = ["gcc", "-O3", "-march=native", "-shared", "-fPIC", "-Wall"]
_LIBRARIES = ["-lsundials_ida", "-lsundials_cvode", "-lsundials_nvecserial", "-lsundials_sunmatrixdense", "-lsundials_sunlinsoldense",
              "-lsundials_sunnonlinsolfixedpoint", "-lsundials_generic", "-lm"]
_COUNTS = ("steps", "residuals", "jacobians", "error_failures", "newton_failures")
_VECTOR = np.ctypeslib.ndpointer(float, flags="C_CONTIGUOUS")
_RESULTS = [_VECTOR, ct.POINTER(ct.c_double), ct.POINTER(ct.c_long * len(_COUNTS)), ct.c_char_p]


@dataclass(frozen=True)
class Run:
    """What a solver returned: state at the end, seconds of the solve alone, counts, and its message where it failed."""

    y: np.ndarray
    seconds: float
    counts: dict[str, int]
    message: str

    @property
    def success(self) -> bool:
        return not self.message


class Peer:
    """IDA and CVODE compiled for one system and one set of parameters."""

    def __init__(self, system: hn.System, q0: np.ndarray, v0: np.ndarray) -> None:
        model = system.model
        start = hn.consistent(system, q0, v0)
        extra = np.zeros(model.position_rows)
        self.y0 = np.concatenate([start.q, start.v, start.lam, extra])
        self.yp0 = np.concatenate([start.v, start.a, 0 * start.lam, extra])
        self._states = 2 * system.n
        self._folder = tempfile.TemporaryDirectory()
        self._library = _compile(model, system.parameters.flat, Path(self._folder.name))
        self._library.run_ida.argtypes = [ct.c_int, *[ct.c_double] * 4, ct.c_int, ct.c_double, _VECTOR, _VECTOR, *_RESULTS]
        self._library.run_cvode.argtypes = [ct.c_int, *[ct.c_double] * 3, ct.c_int, ct.c_double, _VECTOR, *_RESULTS]

    def ida(self, form: str, end: float, tolerance: float, *, multiplier_tolerance: float, suppress: bool = True, newton_tolerance: float = 0.33) -> Run:
        """IDA on "ggl" or "index2"; 0.33 is its own bound for Newton's method."""
        return self._run(self._library.run_ida, form == "ggl", end, tolerance, tolerance, multiplier_tolerance, suppress, newton_tolerance, self.y0, self.yp0)

    def cvode(self, end: float, tolerance: float, *, exact_jacobian: bool = True, adams: bool = False, newton_tolerance: float = 0.1) -> Run:
        """BDF with projection, or Adams formulas without; 0.1 is its own bound for Newton's method."""
        return self._run(self._library.run_cvode, adams, end, tolerance, tolerance, exact_jacobian, newton_tolerance, self.y0)

    def _run(self, function, *arguments) -> Run:
        y, seconds, counts, message = np.empty(self._states), ct.c_double(), (ct.c_long * len(_COUNTS))(), ct.create_string_buffer(400)
        flag = function(*arguments, y, ct.byref(seconds), ct.byref(counts), message)
        text = message.value.decode() or f"flag {flag}"
        return Run(y, seconds.value, dict(zip(_COUNTS, counts, strict=True)), text if flag < 0 else "")


def version() -> str:
    """Version of the installed SUNDIALS."""
    program = '#include <sundials/sundials_config.h>\nSUNDIALS_VERSION\n'
    return subprocess.run(["gcc", "-E", "-P", "-"], input=program, text=True, capture_output=True, check=True).stdout.split('"')[-2]


def _compile(model: Model, parameters: np.ndarray, folder: Path) -> ct.CDLL:
    generator = ca.CodeGenerator("problem.c", {"with_header": True})
    for function in _functions(model, parameters):
        generator.add(function)
    generator.generate(f"{folder}/")
    sizes = [f"-DCOORDINATES={model.n}", f"-DPOSITION_ROWS={model.position_rows}", f"-DROWS={model.rows}"]
    target = folder / "peer.so"
    sources = [folder / "problem.c", _HERE / "ida.c", _HERE / "cvode.c"]
    subprocess.run([*_COMPILER, *sizes, f"-I{folder}", *map(str, sources), "-o", str(target), *_LIBRARIES], check=True)
    return ct.CDLL(str(target))


def _functions(model: Model, parameters: np.ndarray) -> list[ca.Function]:
    """Everything the drivers call, with numbers for the parameters and full columns, as SUNDIALS stores its dense matrices."""

    def function(name: str, inputs: list[ca.SX], *outputs: ca.SX) -> ca.Function:
        numbers = ca.substitute([ca.densify(output) for output in outputs], [model.p], [ca.DM(parameters)])
        return ca.Function(name, inputs, numbers, {"cse": True})

    cj = ca.SX.sym("cj")
    implicit = []
    for name in ("index2", "ggl"):
        Y, dY, F = _residual(model, name == "ggl")
        implicit += [function(f"{name}_residual", [model.t, Y, dY], F),
                     function(f"{name}_matrix", [model.t, Y, dY, cj], ca.jacobian(F, Y) + cj * ca.jacobian(F, dY))]
    solve, onto, onto_position = _elimination(model)
    derivative = ca.vertcat(model.v, solve(model.f, -model.gamma))
    e_q, e_v = ca.SX.sym("e_q", model.n), ca.SX.sym("e_v", model.n)
    tangent_q = e_q + onto_position(model.G @ e_q)
    tangent_v = e_v + onto(model.C @ e_v + model.D @ tangent_q)
    dq = onto_position(model.g)
    dv = onto(model.w + model.D @ dq)
    return [*implicit, function("derivative", [model.t, model.y], derivative), function("derivative_jacobian", [model.t, model.y], ca.jacobian(derivative, model.y)),
            function("projection", [model.t, model.y, ca.vertcat(e_q, e_v)], ca.vertcat(dq, dv), ca.vertcat(tangent_q, tangent_v))]


def _residual(model: Model, stabilised: bool) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Unknowns, their derivatives and F, as stated at the head of ida.c."""
    lam, mu = ca.SX.sym("lam", model.rows), ca.SX.sym("mu", model.position_rows if stabilised else 0)
    Y = ca.vertcat(model.q, model.v, lam, mu)
    dY = ca.SX.sym("dY", Y.numel())
    dq, dv = dY[: model.n], dY[model.n: 2 * model.n]
    kinematics = dq - model.v + (model.G.T @ mu if stabilised else 0)
    dynamics = model.M @ dv + model.C.T @ lam - model.f
    return Y, dY, ca.vertcat(kinematics, dynamics, model.w, model.g if stabilised else ca.SX(0, 1))


def _elimination(model: Model):
    """M x + Cᵀ λ = a, C x = b by LDLᵀ of M and of S = C M⁻¹ Cᵀ; and the least x, in the metric of M, with C x = −r (and with G for C)."""
    mass = ca.ldl(model.M)

    def range_space(C: ca.SX):
        MiCt = ca.ldl_solve(C.T, *mass)
        S = ca.sparsify(C @ MiCt)
        return MiCt, ca.ldl((S + S.T) / 2)

    MiCt, factors = range_space(model.C)
    MiGt, factors_position = (MiCt, factors) if model.position_rows == model.rows else range_space(model.G)

    def solve(a: ca.SX, b: ca.SX) -> ca.SX:
        Mia = ca.ldl_solve(a, *mass)
        return Mia - MiCt @ ca.ldl_solve(model.C @ Mia - b, *factors)

    return solve, lambda r: -MiCt @ ca.ldl_solve(r, *factors), lambda r: -MiGt @ ca.ldl_solve(r, *factors_position)

"""A problem as files that peers can read without this package: ``problem.c``, written by CasADi from the
system's own expressions, ``flat.c`` with plain arguments for calls from Python, and ``problem.json`` with
numbers.

Unknowns are Y = (q, v, s, u, λ, μ) with the states s and unknowns u of the system, if it has some, and μ in
the last form only::

    index 1   q′ − v = 0,          M v′ + Cᵀ λ − f = 0,   C v′ + γ = 0,      k(t, q, u) = 0
    index 2   q′ − v = 0,          M v′ + Cᵀ λ − f = 0,   w(t, q, v) = 0,    k(t, q, u) = 0
    index 3   q′ − v = 0,          M v′ + Cᵀ λ − f = 0,   g(t, q) = 0,       k(t, q, u) = 0,   h(t, q, v) = 0
    GGL       q′ − v + Gᵀ μ = 0,   M v′ + Cᵀ λ − f = 0,   w(t, q, v) = 0,    k(t, q, u) = 0,   g(t, q) = 0

The same as 𝓜 Y′ = F(t, Y) with a constant matrix 𝓜, for codes that need one: where M depends on q, the
accelerations are unknowns as well, v′ = a, and M a + Cᵀ λ = f is algebraic.  Overdetermined is index 1 with
w = 0 and g = 0 in addition.

The underlying ODE is q′ = v, v′ = a(t, q, v) by LDLᵀ of M and of S = C M⁻¹ Cᵀ, as in the library, with the
same reduction where constraints have constant coefficients, but without pivoting or any other rescue.
First-order states s′ = r come after the velocities.
"""

from __future__ import annotations

import json
from pathlib import Path

import casadi as ca
import numpy as np
from scipy.sparse import bmat, csc_array
from scipy.sparse.linalg import spsolve

import holonome as hn
from harness import implicit
from harness.implicit import FORMS, function_of
from harness.problems import Problem
from holonome.dynamics.emitted import instructions
from holonome.dynamics.manifold import Saddle
from holonome.dynamics.reduction import reduced_accelerations
from holonome.equations.model import Model

LARGEST = 10
"""Bars of the longest chain whose equations are written out: for 100 bars gcc -O3 takes more than a minute,
for 1000 hours.
"""


def export(problem: Problem, folder: Path) -> None:
    """Write problem.c, flat.c, derivative.casadi and problem.json into the folder; nothing is written if they
    are there.
    """
    if (folder / "problem.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    system, model = problem.system, problem.system.model
    n, (y, dy, lam, u) = model.n, _start(problem)
    a = dy[n : 2 * n]
    data = {
        "name": problem.name,
        "title": problem.title,
        "motion": problem.motion,
        "end": problem.end,
        "links": problem.links,
        "real": n,
        "n": model.n,
        "rows": model.rows,
        "states": y.size,
        "observed": [*range(2 * n)],
        "parameters": {key: np.asarray(value).tolist() for key, value in system.parameters.items()},
        "y0": [*y],
        "yp0": [*dy],
        "lam0": [*lam],
        "forms": {},
        "explicit": False,
        "invariants": system.invariant_count,
    }
    if problem.links <= LARGEST:
        parameters = system.parameters.flat
        numbers = np.concatenate([parameters, _invariants(model, parameters, y[:n], y[n : 2 * n])])
        functions: list[ca.Function] = []
        casadi_functions = {}
        for form in FORMS if model.rows else ():
            functions += implicit.residual_and_matrix(model, numbers, form)
            extra = np.zeros(model.position_rows if form == "ggl" else 0)
            data["forms"][form] = {
                "Y0": [*y, *u, *lam, *extra],
                "dY0": [*dy, *np.zeros(u.size + lam.size), *extra],
                "kinds": implicit.kinds(model, y.size + u.size + lam.size + extra.size),
                "index": implicit.indices(model, form, 0),
            }
        data["mass_forms"] = {}
        if model.rows:
            functions += implicit.overdetermined(model, numbers)
            for form in FORMS:
                described, found = implicit.with_mass_matrix(model, numbers, form, y, a, lam, u)
                data["mass_forms"][form] = described
                functions += found
            data["half_explicit"] = implicit.half_explicit_states(model)
            functions += implicit.half_explicit(model, numbers) if data["half_explicit"] else []
        if not model.u.numel() and not model.lam.numel():
            data["explicit"] = True
            derivative, projection = _underlying(model)
            casadi_functions["derivative"] = function_of(
                model, numbers, "derivative", [model.t, model.y], derivative
            )
            functions += [
                casadi_functions["derivative"],
                function_of(
                    model,
                    numbers,
                    "derivative_jacobian",
                    [model.t, model.y],
                    ca.jacobian(derivative, model.y),
                ),
                function_of(model, numbers, "projection", [model.t, model.y, projection[0]], *projection[1:]),
            ]
            casadi_functions["derivative"].save(str(folder / "derivative.casadi"))
            matrix = ca.blockcat([[model.M, model.C.T], [model.C, ca.SX(model.rows, model.rows)]])
            function_of(
                model, numbers, "saddle", [model.t, model.y], matrix, ca.vertcat(model.f, -model.gamma)
            ).save(str(folder / "saddle.casadi"))
        generator = ca.CodeGenerator("problem.c", {"with_header": True})
        for function in functions:
            generator.add(function)
        generator.generate(f"{folder}/")
        shims = [
            f"int flat_{function.name()}(double t, const double *a, const double *b, double c, double *out) "
            f"{{ const double *in[] = {{&t, a, b, &c}}; return {function.name()}(in, &out, 0, 0, 0); }}"
            for function in functions
            if function.n_out() == 1
        ]
        (folder / "flat.c").write_text("\n".join(['#include "problem.h"', *shims, ""]))
    (folder / "problem.json").write_text(json.dumps(data))


def constraints(problem: Problem) -> ca.Function:
    """(t, q, v) ↦ g, w, I − I₀."""
    model, p = problem.system.model, problem.system.parameters.flat
    numbers = np.concatenate([p, _invariants(model, p, problem.q0, problem.v0)])
    return function_of(
        model,
        numbers,
        "constraints",
        [model.t, model.q, model.v],
        model.g,
        model.w,
        model.I - model.I_start if model.I.numel() else model.I,
    )


def measurable(problem: Problem) -> bool:
    """Whether the constraints are functions of t, q and v alone."""
    return not problem.system.model.u.numel()


def _start(problem: Problem):
    """Consistent y = (q, v, s), y′, λ and unknowns."""
    system = problem.system
    if system.n > 100:
        q, v, a, lam = _sparse_start(problem)
        return np.concatenate([q, v]), np.concatenate([v, a]), lam, np.zeros(0)
    start = hn.consistent(system, problem.q0, problem.v0)
    y, model = system.full_state(start.q, start.v), system.model
    unknowns = (
        hn.solve(system, (0, 1e-9 * problem.end), problem.q0, problem.v0).w[:, 0]
        if system.unknowns
        else np.zeros(0)
    )
    given = [model.t, model.y, model.u, model.lam, model.p[: system.parameters.size]]
    lam = start.lam if model.lam.numel() else np.zeros(0)
    r = ca.Function("r", given, [model.r])(0.0, y, unknowns, lam, system.parameters.flat)
    return y, np.concatenate([start.v, start.a, np.asarray(r).ravel()]), start.lam, unknowns


def _sparse_start(problem: Problem) -> tuple[np.ndarray, ...]:
    """Accelerations and multipliers at rest for a large system, where ranks are not examined."""
    model = problem.system.model
    M, f, C = (
        ca.Function("e", [model.t, model.q, model.v, problem.system.symbols["p"]], [e])(
            0, problem.q0, problem.v0, problem.system.parameters.flat
        )
        for e in (model.M, model.f, model.C)
    )
    M, C = csc_array(M.sparse()), csc_array(C.sparse())
    solution = spsolve(
        bmat([[M, C.T], [C, None]], format="csc"),
        np.concatenate([np.asarray(f).ravel(), np.zeros(model.rows)]),
    )
    return problem.q0, problem.v0, *np.split(solution, [model.n])


def _invariants(model: Model, parameters: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    if not model.I.numel():
        return np.zeros(0)
    symbols = model.p[: parameters.size]
    return np.asarray(
        ca.Function("I", [model.t, model.q, model.v, symbols], [model.I])(0, q, v, parameters)
    ).ravel()


def _underlying(model: Model):
    """The right side, and the projection: an error vector e, the correction of y, and the part of e that is
    tangential.
    """
    e_q, e_v = ca.SX.sym("e_q", model.n), ca.SX.sym("e_v", model.n)
    e = ca.vertcat(e_q, e_v)
    mass = ca.ldl(model.M)
    if not model.rows:
        derivative = ca.vertcat(model.v, ca.ldl_solve(model.f, *mass))
        if not model.I.numel():
            return derivative, (e, ca.SX.zeros(2 * model.n), e)
        J = model.I_y
        onto = J.T @ ca.solve(J @ J.T, ca.SX.eye(J.shape[0]))
        return derivative, (e, -onto @ (model.I - model.I_start), e - onto @ (J @ e))

    def range_space(C: ca.SX):
        MiCt = ca.ldl_solve(C.T, *mass)
        S = ca.sparsify(C @ MiCt)
        return MiCt, ca.ldl((S + S.T) / 2)

    MiCt, factors = range_space(model.C)
    MiGt, factors_position = (MiCt, factors) if model.position_rows == model.rows else range_space(model.G)

    def onto(r: ca.SX) -> ca.SX:
        return -MiCt @ ca.ldl_solve(r, *factors)

    def onto_position(r: ca.SX) -> ca.SX:
        return -MiGt @ ca.ldl_solve(r, *factors_position)

    Mif = ca.ldl_solve(model.f, *mass)
    a = Mif - MiCt @ ca.ldl_solve(model.C @ Mif + model.gamma, *factors)
    reduced = reduced_accelerations(model.M, Saddle(model.C, mass), model.f, -model.gamma)
    derivative = ca.vertcat(
        model.v, reduced[0] if reduced is not None and instructions(reduced[0]) < instructions(a) else a
    )
    tangent_q = e_q + onto_position(model.G @ e_q)
    tangent_v = e_v + onto(model.C @ e_v + model.D @ tangent_q)
    dq = onto_position(model.g)
    dv = onto(model.w + model.D @ dq)
    return derivative, (e, ca.vertcat(dq, dv), ca.vertcat(tangent_q, tangent_v))

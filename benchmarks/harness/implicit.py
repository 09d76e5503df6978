"""The implicit forms of a problem as functions of CasADi, for `export`."""

from __future__ import annotations

import casadi as ca
import numpy as np

from holonome.equations.model import Model

FORMS = ("index1", "index2", "index3", "ggl")


def function_of(
    model: Model, numbers: np.ndarray, name: str, inputs: list[ca.SX], *outputs: ca.SX
) -> ca.Function:
    """With numbers for the parameters and full columns, as SUNDIALS and Fortran store dense matrices."""
    count = numbers.size - model.I.numel()
    symbols = ca.vertcat(model.p[:count], model.I_start if model.I.numel() else ca.SX(0, 1))
    dense = ca.substitute([ca.densify(output) for output in outputs], [symbols], [ca.DM(numbers)])
    return ca.Function(name, inputs, dense, {"cse": True})


class _Unknowns:
    """The unknowns of a form, and its equations apart from the kinematic and dynamic ones."""

    def __init__(self, model: Model, form: str) -> None:
        self.lam = ca.SX.sym("lam", model.rows)
        self.mu = ca.SX.sym("mu", model.position_rows if form == "ggl" else 0)
        self.f, self.r = (
            ca.substitute([model.f, model.r], [model.lam], [self.lam])
            if model.lam.numel()
            else (model.f, model.r)
        )
        self.dq = model.v - (model.G.T @ self.mu if form == "ggl" else 0)

    def rows(self, model: Model, form: str, a: ca.SX) -> ca.SX:
        """The constraints, given the accelerations, and what determines the unknowns of the system."""
        rows = {
            "index1": model.C @ a + model.gamma,
            "index2": model.w,
            "index3": ca.vertcat(model.g, *ca.vertsplit(model.w)[model.position_rows :]),
            "ggl": model.w,
        }[form]
        return ca.vertcat(rows, model.k, model.g if form == "ggl" else ca.SX(0, 1))


def residual_and_matrix(model: Model, numbers: np.ndarray, form: str) -> list[ca.Function]:
    """F(t, Y, Y′) and ∂F/∂Y + cj ∂F/∂Y′."""
    Y, dY, F = _residual(model, form)
    cj = ca.SX.sym("cj")
    matrix = ca.jacobian(F, Y) + cj * ca.jacobian(F, dY)
    return [
        function_of(model, numbers, f"{form}_residual", [model.t, Y, dY], F),
        function_of(model, numbers, f"{form}_matrix", [model.t, Y, dY, cj], matrix),
    ]


def overdetermined(model: Model, numbers: np.ndarray) -> list[ca.Function]:
    """Index 1 with C v′ = −γ as a condition on λ, then g = 0 and w = 0, in the order that ODASSL wants; the
    matrix in two parts.
    """
    unknowns = _Unknowns(model, "index1")
    Y, dY, F = _residual(model, "index2", unknowns)
    a = ca.solve(model.M, unknowns.f - model.C.T @ unknowns.lam)
    F = ca.vertcat(F[: -model.rows - model.k.numel()], unknowns.rows(model, "index1", a), model.g, model.w)
    cj = ca.SX.sym("cj")
    matrix = ca.jacobian(F, Y) + cj * ca.jacobian(F, dY)
    first, second = matrix[: Y.numel(), :], matrix[Y.numel() :, :]
    return [
        function_of(model, numbers, "overdetermined_residual", [model.t, Y, dY], F),
        function_of(model, numbers, "overdetermined_matrix", [model.t, Y, dY, cj], first, second),
    ]


def _residual(model: Model, form: str, unknowns: _Unknowns | None = None) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Y, Y′ and F."""
    unknowns = unknowns or _Unknowns(model, form)
    Y = ca.vertcat(model.y, model.u, unknowns.lam, unknowns.mu)
    dY = ca.SX.sym("dY", Y.numel())
    n = model.n
    dq, dv, ds = dY[:n], dY[n : 2 * n], dY[2 * n : 2 * n + model.states]
    dynamics = model.M @ dv + model.C.T @ unknowns.lam - unknowns.f
    return Y, dY, ca.vertcat(dq - unknowns.dq, dynamics, ds - unknowns.r, unknowns.rows(model, form, dv))


def with_mass_matrix(
    model: Model, numbers: np.ndarray, form: str, y: np.ndarray, a: np.ndarray, lam: np.ndarray, u: np.ndarray
) -> tuple[dict, list]:
    """𝓜 Y′ = F(t, Y): what describes the form, and F, ∂F/∂Y and 𝓜 without the rows q′ = v where those are
    of this shape.
    """
    unknowns = _Unknowns(model, form)
    (M,) = ca.substitute([model.M], [model.p[: numbers.size]], [ca.DM(numbers[: model.p.numel()])])
    constant = not ca.depends_on(M, ca.vertcat(model.t, model.q, model.v, model.u))
    acceleration = ca.SX.sym("a", 0 if constant else model.n)
    Y = ca.vertcat(model.y, model.u, acceleration, unknowns.lam, unknowns.mu)
    force = unknowns.f - model.C.T @ unknowns.lam
    if constant:
        upper, lower = force, ca.SX(0, 1)
        rows = unknowns.rows(model, form, ca.solve(M, force))
    else:
        upper, lower = acceleration, force - model.M @ acceleration
        rows = unknowns.rows(model, form, acceleration)
    F = ca.vertcat(unknowns.dq, upper, unknowns.r, lower, rows)
    mass = ca.diagcat(ca.SX.eye(model.n), M if constant else ca.SX.eye(model.n), ca.SX.eye(model.states))
    mass = ca.diagcat(mass, ca.SX(F.numel() - mass.shape[0], F.numel() - mass.shape[0]))
    skipped = 0 if form == "ggl" else model.n
    mass = mass[skipped:, skipped:]
    diagonal = ca.SX(mass - ca.diag(ca.diag(mass)))
    is_diagonal = ca.sparsify(diagonal).nnz() == 0
    extra = np.zeros(unknowns.mu.numel())
    described = {
        "Y0": [*y, *u, *([] if constant else a), *lam, *extra],
        "kinds": kinds(model, Y.numel()),
        "second_order": skipped,
        "diagonal": is_diagonal,
        "autonomous": not ca.depends_on(F, model.t),
        "index": indices(model, form, 0 if constant else model.n),
    }
    inputs = [model.t, Y]
    matrix = ca.diag(mass).T if is_diagonal else mass
    return described, [
        function_of(model, numbers, f"mass_{form}_right", inputs, F[skipped:]),
        function_of(model, numbers, f"mass_{form}_jacobian", inputs, ca.jacobian(F[skipped:], Y)),
        function_of(model, numbers, f"mass_{form}_matrix", [], matrix),
    ]


def kinds(model: Model, unknowns: int) -> list[int]:
    """Of each unknown whether it is a position or state (0), a velocity (1) or algebraic (2)."""
    found = [0] * model.n + [1] * model.n + [0] * model.states
    return found + [2] * (unknowns - len(found))


def indices(model: Model, form: str, accelerations: int) -> list[int]:
    """How many unknowns have index 1, 2 and 3, in this order."""
    algebraic, differential = accelerations + model.rows, model.y.numel() + model.u.numel()
    if form == "index1":
        return [differential + algebraic, 0, 0]
    if form == "index3":
        return [model.n, differential - model.n, algebraic]
    mu = model.position_rows if form == "ggl" else 0
    return [differential, algebraic + mu, 0]


def half_explicit_states(model: Model) -> bool:
    """Whether the problem has the shape that PHEM56 knows."""
    return not (model.u.numel() or model.lam.numel() or model.states or ca.depends_on(model.M, model.v))


def half_explicit(model: Model, numbers: np.ndarray) -> list[ca.Function]:
    """The pieces of M a = f − Cᵀ λ, C v + g_t = 0, C a + γ = 0, in the groups in which PHEM56 asks for
    them.
    """
    inputs = [model.t, model.q, model.v]
    g_t = ca.substitute(model.w, model.v, ca.SX.zeros(model.n))
    g = ca.vertcat(model.g, ca.SX.zeros(model.rows - model.position_rows))

    def function(name: str, *outputs: ca.SX) -> ca.Function:
        return function_of(model, numbers, f"half_explicit_{name}", inputs, *outputs)

    return [
        function("dynamics", model.M, model.f, model.C),
        function("matrices", model.M, model.C, g_t),
        function("rows", model.C, g_t),
        function("positions", g),
        function("curvature", -model.gamma, model.f),
    ]

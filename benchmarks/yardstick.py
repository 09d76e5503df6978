"""How fast Dormand–Prince with projection can be: one loop that Numba compiles for one model, with every size
a constant.  A yardstick, not a solver.

The model's acceleration and the corrections onto the manifold are written out as Python from CasADi's
instructions and inlined into the loop by Numba, parameters as numbers. The library compiles its loop once for
all models; the benchmark shows what that generality costs.
"""

from __future__ import annotations

import math

import casadi as ca
import numpy as np
from numba import float64, njit, void

from holonome.integrators.runge_kutta import TABLEAUS

_VECTOR = float64[::1]
_NAMES = {
    value: name for name, value in vars(ca).items() if name.startswith("OP_") and isinstance(value, int)
}
_TEXT = {
    "OP_ADD": "{0} + {1}",
    "OP_SUB": "{0} - {1}",
    "OP_MUL": "{0} * {1}",
    "OP_DIV": "{0} / {1}",
    "OP_NEG": "-{0}",
    "OP_SQ": "{0} * {0}",
    "OP_TWICE": "2.0 * {0}",
    "OP_INV": "1.0 / {0}",
    "OP_SIN": "math.sin({0})",
    "OP_COS": "math.cos({0})",
    "OP_SQRT": "math.sqrt({0})",
}


def _inlined(y: ca.SX, *outputs: ca.SX):
    """A CasADi function of y as a function that Numba inlines."""
    function = ca.Function("kernel", [y], [ca.densify(output) for output in outputs], {"cse": True})
    lines = []
    for k in range(function.n_instructions()):
        name = _NAMES[function.instruction_id(k)]
        to = function.instruction_output(k)
        of = function.instruction_input(k)
        match name:
            case "OP_INPUT":
                lines.append(f"w{to[0]} = y[{of[1]}]")
            case "OP_OUTPUT":
                lines.append(f"out{to[0]}[{to[1]}] = w{of[0]}")
            case "OP_CONST":
                lines.append(f"w{to[0]} = {function.instruction_constant(k)!r}")
            case _:
                lines.append(f"w{to[0]} = " + _TEXT[name].format(*[f"w{i}" for i in of]))
    arguments = ", ".join(["y"] + [f"out{i}" for i in range(len(outputs))])
    scope = {"math": math}
    exec(f"def kernel({arguments}):\n    " + "\n    ".join(lines), scope)
    return njit(void(*[_VECTOR] * (1 + len(outputs))))(scope["kernel"])


def _kernels(system):
    model = system.model
    fixed = [
        ca.substitute(e, system.symbols["p"], ca.DM(system.parameters.flat)) if system.parameters.size else e
        for e in (model.M, model.f, model.g)
    ]
    M, f, g = ca.sparsify(ca.simplify(fixed[0])), fixed[1], fixed[2]
    q, v = model.q, model.v
    G = ca.jacobian(g, q)
    mass = ca.ldl(M)
    MiGt, Mif = ca.ldl_solve(G.T, *mass), ca.ldl_solve(f, *mass)
    S = ca.sparsify(G @ MiGt)
    schur = ca.ldl((S + S.T) / 2)
    acceleration = Mif - MiGt @ ca.ldl_solve(G @ Mif + ca.jtimes(G @ v, q, v), *schur)
    y = ca.vertcat(q, v)
    return (
        _inlined(y, ca.vertcat(v, acceleration)),
        _inlined(y, -MiGt @ ca.ldl_solve(g, *schur), g),
        _inlined(y, -MiGt @ ca.ldl_solve(G @ v, *schur)),
    )


def yardstick(system):
    """A function (y0, T, tolerance) -> (y, steps, rejected) for one autonomous system."""
    rate, project_q, project_v = _kernels(system)
    n, m = system.n, system.m
    size, tableau = 2 * n, TABLEAUS["dopri5"]
    a = np.vstack([tableau.a, tableau.b])
    e = tableau.errors[0]

    @njit
    def run(y0, end, tolerance):
        y = y0.copy()
        z = np.empty(size)
        k = np.empty((7, size))
        dq = np.empty(n)
        dv = np.empty(n)
        g = np.empty(m)
        t, h, before, steps, rejected = 0.0, end * 1e-4, 1e-4, 0, 0
        rate(y, k[0])
        while t < end * (1 - 1e-14):
            h = min(h, end - t)
            for s in range(1, 7):
                for i in range(size):
                    x = 0.0
                    for j in range(s):
                        x += a[s, j] * k[j, i]
                    z[i] = y[i] + h * x
                rate(z, k[s])
            error = 0.0
            for i in range(size):
                x = 0.0
                for j in range(7):
                    x += e[j] * k[j, i]
                error += (h * x / (tolerance * (1 + max(abs(y[i]), abs(z[i]))))) ** 2
            error = math.sqrt(error / size)
            if error > 1:
                rejected += 1
                h *= max(0.2, 0.9 * error**-0.2)
                continue
            t, steps = t + h, steps + 1
            y[:] = z
            for _ in range(3):
                project_q(y, dq, g)
                largest = 0.0
                for i in range(m):
                    largest = max(largest, abs(g[i]))
                for i in range(n):
                    y[i] += dq[i]
                if largest < 1e-7:
                    break
            project_v(y, dv)
            for i in range(n):
                y[n + i] += dv[i]
            rate(y, k[0])
            h *= min(5.0, max(0.2, 0.9 * (error + 1e-12) ** -0.14 * before**0.04))
            before = max(error, 1e-4)
        return y, steps, rejected

    return run

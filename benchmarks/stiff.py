"""Radau IIA against our BDF and SciPy's Radau on stiff problems.

    python benchmarks/stiff.py [--out FILE] [--quick]

Problems: van der Pol's equation (ε = 1e-6), Robertson's, HIRES, two bodies in a bushing, Andrews' mechanism,
a pendulum with a small mass on a stiff damper, the same under a force that jumps forty times, and a rod in a
bushing with stiffness 1e8, whose stiff direction turns.  The error is the largest |y − y_ref| / (scale +
|y_ref|) at the end; the reference is a run at 1e-12.  For each target the shortest run at rtol = 1e-2 … 1e-12
that meets it counts, and its time is the shortest of several; `ratio` is that of the time to that of "radau".
SciPy solves the underlying ODE, its rates by our compiled kernel, with its own differences for Jacobians.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

import holonome as hn
from harness.options import Options
from harness.tables import write_rows
from holonome.dynamics.kernels import kernels
from holonome.machine.calls import run_kernel

TARGETS, TOLERANCES, MOST_STEPS = (1e-3, 1e-6, 1e-9), [10.0**-k for k in range(2, 13)], 200_000
_REPEAT, _LONG = 0.2, 1.0
"""Seconds for which runs are repeated, and from which on tighter tolerances are left out."""


class Problem(NamedTuple):
    system: Any
    end: float
    q0: np.ndarray
    v0: np.ndarray | None
    scale: float


def robertson(x: np.ndarray) -> np.ndarray:
    first, second = -0.04 * x[0] + 1e4 * x[1] * x[2], 3e7 * x[1] ** 2
    return np.array([first, -first - second, second])


def hires(x: np.ndarray) -> np.ndarray:
    pair = 280 * x[5] * x[7]
    return np.array(
        [
            -1.71 * x[0] + 0.43 * x[1] + 8.32 * x[2] + 0.0007,
            1.71 * x[0] - 8.75 * x[1],
            -10.03 * x[2] + 0.43 * x[3] + 0.035 * x[4],
            8.32 * x[1] + 1.71 * x[2] - 1.12 * x[3],
            -1.745 * x[4] + 0.43 * x[5] + 0.43 * x[6],
            -pair + 0.69 * x[3] + 1.71 * x[4] - 0.43 * x[5] + 0.69 * x[6],
            pair - 1.81 * x[6],
            -pair + 1.81 * x[6],
        ]
    )


def damped_pair(push: float = 0.0) -> hn.System:
    """A pendulum with a small mass on a stiff damper, pushed to and fro."""

    def force(t, q, v):
        spring = 1e3 * (q[2:] - q[:2]) + 1e3 * (v[2:] - v[:2])
        jump = np.where(np.mod(t, 0.2) < 0.1, push, -push)
        return np.concatenate([spring + np.array([jump, -9.81]), 0.01 * np.array([0.0, -9.81]) - spring])

    return hn.System([1.0, 1.0, 0.01, 0.01], force, lambda q: q[0] ** 2 + q[1] ** 2 - 1)


def rod() -> hn.System:
    def end(q):
        return np.array([q[0] - np.sin(q[2]) / 2, q[1] + np.cos(q[2]) / 2])

    elastic = hn.Elastic(end, stiffness=1e8, damping=1e4)
    return hn.System([1.0, 1.0, 1 / 12], [0.0, -9.81, 0.0], elastic=elastic, names=["x", "y", "angle"])


def problems() -> dict[str, Problem]:
    van_der_pol = hn.ODE(lambda x: np.array([x[1], 1e6 * ((1 - x[0] ** 2) * x[1] - x[0])]), n=2)
    start = np.array([1.0, 0.0, 1.0, 0.0])
    found = {
        "van der Pol": Problem(van_der_pol, 2.0, np.array([2.0, 0.0]), None, 1.0),
        "Robertson": Problem(hn.ODE(robertson, n=3), 1e4, np.array([1.0, 0.0, 0.0]), None, 1e-6),
        "HIRES": Problem(hn.ODE(hires, n=8), 321.8122, np.array([1.0, *[0.0] * 6, 0.0057]), None, 1e-3),
        "damped pair": Problem(damped_pair(), 4.0, start, None, 1.0),
        "pushed pair": Problem(damped_pair(5.0), 4.0, start, None, 1.0),
        "rod in a stiff bushing": Problem(rod(), 2.0, np.array([0.5, 0.0, np.pi / 2]), None, 1.0),
    }
    for name in ("two_body_bushing", "andrews"):
        mechanism = hn.mechanisms.get(name)
        found[name] = Problem(mechanism.system, mechanism.t_span[1], mechanism.q0, mechanism.v0, 1.0)
    return found


def ours(problem: Problem, method: Any) -> Callable[[float], tuple]:
    def run(rtol: float) -> tuple:
        system, end, q0, v0, scale = problem
        sol = hn.solve(
            system,
            (0, end),
            q0,
            v0,
            method=method,
            rtol=rtol,
            atol=rtol * scale,
            t_eval=[end],
            max_steps=MOST_STEPS,
        )
        y = sol.x if isinstance(system, hn.ODE) else sol.y
        return (y[:, -1] if sol.success else None), sol.steps, sol.nfev

    return run


def scipy_radau(problem: Problem) -> Callable[[float], tuple]:
    system, end, q0, v0, scale = problem
    derivative, context = kernels(system).derivative, kernels(system).context(system)
    start = np.concatenate([q0, np.zeros(system.n) if v0 is None else v0]) if system.n else q0
    out = np.zeros(start.size + 1)

    def rate(t, y):
        run_kernel(derivative, t, np.ascontiguousarray(y), out, context, out)
        return out[:-1].copy()

    def run(rtol: float) -> tuple:
        found = solve_ivp(rate, (0, end), start, method="Radau", rtol=rtol, atol=rtol * scale, t_eval=[end])
        return (found.y[:, -1] if found.success else None), -1, found.nfev

    return run


def timed(run: Callable[[float], tuple], rtol: float, repeat: float) -> tuple:
    """What a run gives, with its shortest time in µs."""
    best, began = np.inf, time.perf_counter()
    while True:
        start = time.perf_counter()
        found = run(rtol)
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() - began >= repeat:
            return *found, 1e6 * best


def study(name: str, problem: Problem, tolerances: list[float], repeat: float) -> list[dict]:
    reference = ours(problem, hn.Method(hn.CoordinateProjection(), hn.Radau(order=9)))(1e-12)[0]
    codes = {
        "radau": ours(problem, "radau"),
        "radau, order 5": ours(problem, hn.Method(hn.CoordinateProjection(), hn.Radau(order=5))),
        "bdf": ours(problem, "bdf"),
        "scipy Radau": scipy_radau(problem),
    }
    rows = []
    for code, run in codes.items():
        runs = []
        run(1e-2)
        for rtol in tolerances:
            y, steps, evaluations, microseconds = timed(run, rtol, repeat)
            error = (
                np.inf if y is None else np.max(np.abs(y - reference) / (problem.scale + np.abs(reference)))
            )
            runs.append((microseconds, rtol, error, steps, evaluations))
            if error < min(TARGETS) / 3 or microseconds > 1e6 * _LONG:
                break  # it is good enough, or takes too long
        for target in TARGETS:
            good = [row for row in runs if row[2] <= target]
            if good:
                microseconds, rtol, error, steps, evaluations = min(good)
                rows.append(
                    {
                        "problem": name,
                        "target": target,
                        "code": code,
                        "rtol": rtol,
                        "error": f"{error:.1e}",
                        "steps": steps if steps >= 0 else "",
                        "evaluations": evaluations,
                        "microseconds": round(microseconds, 1),
                    }
                )
    times = {row["target"]: row["microseconds"] for row in rows if row["code"] == "radau"}
    return [row | {"ratio": round(row["microseconds"] / times.get(row["target"], np.nan), 2)} for row in rows]


def main() -> None:
    arguments = Options(__doc__, "stiff.csv").given()
    tolerances, repeat = (TOLERANCES[:4], 0.0) if arguments.quick else (TOLERANCES, _REPEAT)
    chosen = problems()
    if arguments.quick:
        chosen = {"van der Pol": chosen["van der Pol"]}
    rows = []
    for name, problem in chosen.items():
        found = study(name, problem, tolerances, repeat)
        print(*(f"{row['code']} at {row['target']:g}: {row['ratio']}" for row in found), sep=", ", flush=True)
        rows += found
        write_rows(arguments.out, rows)


if __name__ == "__main__":
    main()

"""A chain of N links in absolute coordinates: time to derive and compile, per step, and what a step consists
of, against IDA of SUNDIALS with its banded solver and with KLU.

    apt-get install libsundials-dev
    python benchmarks/chain.py [--links 10 30 100 300 1000] [--out FILE] [--quick]

Both sides integrate the GGL form by BDF with rtol = 1e-6, atol = 1e-8 and call the same compiled residual and
nonzeros of the Newton matrix; IDA has the unknowns ordered link by link, so that the band is narrow.  The
codes take turns; times per step are medians, the ratio is the median of the ratios of neighbouring runs.
SUNDIALS is that of the distribution, or the one in SUNDIALS_DIR.
"""

from __future__ import annotations

import ctypes as ct
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import casadi as ca
import numpy as np
from numba import njit

import holonome as hn
from adapters.sundials import FOLDER, version
from harness.options import Options, long_stamp
from harness.tables import write_rows
from holonome.dynamics.kernels import kernels
from holonome.formulations.implicit import ImplicitKernels
from holonome.machine.calls import call, pointer, run_kernel

RTOL, ATOL = 1e-6, 1e-8
SECONDS = {10: 0.5, 30: 0.3, 100: 0.2, 300: 0.03, 1000: 0.01}
UNTESTED = 1e6
"""Absolute tolerance of IDA's multipliers: its Newton test does not see them, as ours does not."""

REPEATS, FEW = 7, 3
"""Runs of each code, with up to 100 links and with more."""

_SOURCE = Path(__file__).parent / "sundials" / "ida_large.c"
_COUNTS = ("steps", "residuals", "jacobians", "error_failures", "newton_failures", "orders")


def compile_peer(folder: Path) -> tuple[ct.CDLL, bool]:
    """The driver, and whether it has KLU."""
    klu = any(FOLDER.glob("lib/**/libsundials_sunlinsolklu.so"))
    parts = ["ida", "nvecserial", "sunmatrixband", "sunlinsolband", "generic"] + (
        ["sunmatrixsparse", "sunlinsolklu"] if klu else []
    )
    libraries = [
        f"-L{FOLDER}/lib",
        f"-Wl,-rpath,{FOLDER}/lib",
        *[f"-lsundials_{part}" for part in parts],
        "-lm",
    ]
    flags = [f"-I{FOLDER}/include", *(["-DKLU", "-I/usr/include/suitesparse"] if klu else [])]
    subprocess.run(
        [
            "gcc",
            "-O3",
            "-march=native",
            "-shared",
            "-fPIC",
            "-Wall",
            *flags,
            str(_SOURCE),
            "-o",
            str(folder / "peer.so"),
            *libraries,
        ],
        check=True,
    )
    return ct.CDLL(str(folder / "peer.so")), klu


class Peer:
    """IDA on the GGL form of one chain."""

    def __init__(self, mechanism, library: ct.CDLL) -> None:
        system, self.library = mechanism.system, library
        r, n, m = hn.GGL().residual(system.model), system.n, system.m
        start = hn.consistent(system, mechanism.q0, mechanism.v0)
        links = n // 3
        groups = [
            np.arange(begin, begin + count * links).reshape(links, count)
            for begin, count in ((0, 3), (n, 3), (2 * n, 2), (2 * n + m, 2))
        ]  # q, v, λ, μ of each link
        order = np.concatenate(groups, axis=1).ravel()
        self.order, self.size, self.n = order, r.size, n
        picked = order.tolist()
        y = ca.vertcat(r.Y[picked], r.dY[picked])
        J = (ca.jacobian(r.F, r.Y) + r.cj * ca.jacobian(r.F, r.dY))[picked, picked]
        self.kernels = [
            system.kernel("IDA: residual", lambda model: (y, ca.SX(0, 1), ca.densify(r.F[picked]), None)),
            system.kernel("IDA: nonzeros", lambda model: (y, r.cj, J.nz[:], None)),
        ]
        pattern = J.sparsity()
        self.begins, self.rows = np.array(pattern.colind(), np.int32), np.array(pattern.row(), np.int32)
        away = self.rows - np.repeat(np.arange(self.size), np.diff(self.begins))
        self.lower, self.upper = int(away.max()), int(-away.min())
        self.context = kernels(system).context(system)
        Y = np.concatenate([start.q, start.v, start.lam, np.zeros(m)])
        dY = np.concatenate([start.v, start.a, np.zeros(2 * m)])
        self.y0, self.yp0, self.id = Y[order], dY[order], (order < 2 * n).astype(float)

    def run(
        self, end: float, klu: bool, newton_tolerance: float
    ) -> tuple[np.ndarray | None, float, dict[str, int], str]:
        """State at the end, seconds, counts, message."""
        vector = [np.ctypeslib.ndpointer(kind, flags="C_CONTIGUOUS") for kind in (float, np.int32)]
        out = np.empty(self.size)
        seconds = ct.c_double()
        counts = (ct.c_long * len(_COUNTS))()
        message = ct.create_string_buffer(400)
        function = self.library.run_ida_large
        function.argtypes = [
            ct.c_void_p,
            ct.c_void_p,
            vector[0],
            ct.c_int,
            vector[1],
            vector[1],
            ct.c_int,
            ct.c_int,
            ct.c_int,
            vector[0],
            *[ct.c_double] * 5,
            *[vector[0]] * 3,
            ct.c_void_p,
            ct.c_void_p,
            ct.c_char_p,
        ]
        flag = function(
            self.kernels[0].address,
            self.kernels[1].address,
            self.context,
            self.size,
            self.begins,
            self.rows,
            self.lower,
            self.upper,
            klu,
            self.id,
            end,
            RTOL,
            ATOL,
            UNTESTED,
            newton_tolerance,
            self.y0,
            self.yp0,
            out,
            ct.byref(seconds),
            ct.byref(counts),
            message,
        )
        y = np.empty(self.size)
        y[self.order] = out
        return (
            (y[: 2 * self.n] if flag >= 0 else None),
            seconds.value,
            dict(zip(_COUNTS, counts, strict=True)),
            message.value.decode() if flag < 0 else "",
        )


@njit
def _repeat(address, y, z, context, out, times):
    for _ in range(times):
        call(address, 0.0, pointer(y), pointer(z), pointer(context), pointer(out))


def _cost(address: int, y: np.ndarray, z: np.ndarray, context: np.ndarray, out: np.ndarray) -> float:
    """Microseconds of a call; the least of a few."""
    times = []
    _repeat(address, y, z, context, out, 1)
    for _ in range(9):
        begin = time.perf_counter()
        _repeat(address, y, z, context, out, 20)
        times.append((time.perf_counter() - begin) / 20)
    return 1e6 * min(times)


def parts(mechanism) -> dict[str, float]:
    """What the pieces of an iteration, a factorization and an evaluation of the accelerations cost."""
    system = mechanism.system
    newton, explicit = ImplicitKernels(system, "GGL", hn.GGL().residual), kernels(system)
    context, memory, n = explicit.context(system), newton.factor_memory, system.n
    Y, z, right = np.zeros(2 * newton.size), np.zeros(newton.size + 1), np.ones(newton.size)
    Y[:n], z[0] = mechanism.q0, 1e3
    run_kernel(newton.factors, 0.0, Y, z, context, memory)
    y, out = np.concatenate([mechanism.q0, mechanism.v0]), np.zeros(explicit.projection_size + 4)
    weights = np.zeros(2 * n + 2)
    return {
        "residual": _cost(newton.F, Y, z, context, np.zeros(newton.size + 1)),
        "factorization": _cost(newton.factors, Y, z, context, memory),
        "solution": _cost(newton.solution, right, memory, context, np.zeros(newton.size + 1)),
        "accelerations": _cost(explicit.derivative, y, weights, context, out),
        "projection": _cost(explicit.projection, y, weights, context, out),
    }


def first_result(links: int, method: str) -> float:
    """Seconds of the processor from the mechanism to a first short result in a new process that finds no
    compiled model, but the engine.
    """
    program = (
        "import holonome as hn, time; hn.solve(hn.mechanisms.pendulum().system, (0, 0.1), [1, 0], "
        f"method={method!r}); b = time.process_time(); "
        f"c = hn.mechanisms.chain(links={links}); hn.solve(c.system, (0, 1e-4), c.q0, c.v0, "
        f"method={method!r}); print(time.process_time() - b)"
    )
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2 if links == 10 else 1):  # the first may compile the engine
            result = subprocess.run(
                [sys.executable, "-c", program],
                env=os.environ | {"HOLONOME_CACHE": folder},
                capture_output=True,
                text=True,
                check=True,
            )
    return float(result.stdout.split()[-1])


def codes(mechanism, peer: Peer, end: float, klu: bool) -> dict[str, Callable[[], tuple]]:
    """What is compared: functions that return the state at the end, seconds, counts, and a message."""

    def ours(method: str) -> tuple:
        start = mechanism.q0, mechanism.v0
        begin = time.perf_counter()
        sol = hn.solve(mechanism.system, (0, end), *start, method=method, rtol=RTOL, atol=ATOL)
        seconds = time.perf_counter() - begin
        order = float(np.mean(sol.history.order)) if sol.njev else np.nan
        counts = {"steps": sol.steps, "residuals": sol.nfev, "jacobians": sol.njev, "order": order}
        return sol.y[:, -1] if sol.success else None, seconds, counts, "" if sol.success else sol.message

    def theirs(solver: bool, newton: float) -> tuple:
        y, seconds, counts, message = peer.run(end, solver, newton)
        return y, seconds, counts | {"order": counts["orders"] / max(counts["steps"], 1)}, message

    found: dict[str, Callable[[], tuple]] = {
        f"holonome {method}": partial(ours, method) for method in ("ggl", "bdf", "dop853")
    }
    for solver, newton in product([False, True] if klu else [False], (0.33, 0.01)):
        name = f"IDA {'KLU' if solver else 'banded'}, Newton {newton}"
        found[name] = partial(theirs, solver, newton)
    return found


def measure(links: int, library: ct.CDLL, klu: bool, quick: bool) -> list[dict]:
    mechanism, end = hn.mechanisms.chain(links=links), SECONDS[links] / (100 if quick else 1)
    peer, start = Peer(mechanism, library), (mechanism.q0, mechanism.v0)
    reference = hn.solve(mechanism.system, (0, end), *start, method="dop853", rtol=1e-11, atol=1e-12).y[:, -1]
    chosen = codes(mechanism, peer, end, klu)
    runs: dict[str, list[tuple]] = {code: [] for code in chosen}
    for _ in range((1 if quick else REPEATS if links <= 100 else FEW) + 1):
        for code, run in chosen.items():
            runs[code].append(run())
    per_step = {
        code: np.array([run[1] / max(run[2]["steps"], 1) for run in done[1:]]) for code, done in runs.items()
    }
    rows, costs = [], parts(mechanism)
    for code, done in runs.items():
        y, _, counts, message = done[-1]
        rows.append(
            {
                "links": links,
                "unknowns": peer.size,
                "code": code,
                "us_per_step": 1e6 * np.median(per_step[code]),
                "steps": counts["steps"],
                "residuals": counts["residuals"],
                "jacobians": counts["jacobians"],
                "order": counts["order"],
                "ms_in_all": 1e3 * np.median([run[1] for run in done[1:]]),
                "error": np.nan if y is None else float(np.max(np.abs(y - reference)[: peer.n])),
                "ratio_of_ggl": np.median(per_step["holonome ggl"] / per_step[code]),
                "first_result_s": np.nan,
                "message": message,
            }
        )
        if code.startswith("holonome") and not quick:
            rows[-1]["first_result_s"] = first_result(links, code.split()[1])
        show(rows[-1])
    rows[0] |= {f"us_{name}": value for name, value in costs.items()}
    print(
        "      "
        + ", ".join(f"{name} {value:.1f}" for name, value in costs.items())
        + " µs; first result "
        + ", ".join(f"{row['code'][9:]} {row['first_result_s']:.2f} s" for row in rows[:3]),
        flush=True,
    )
    return rows


def show(row: dict) -> None:
    print(
        f"{row['links']:5d} {row['code']:26s} {row['us_per_step']:9.1f} µs a step, order {row['order']:.1f}, "
        f"{row['steps']:6d} steps, {row['ms_in_all']:9.2f} ms, error {row['error']:.1e}, "
        f"ratio {row['ratio_of_ggl']:.3f} {row['message']}",
        flush=True,
    )


def main() -> None:
    parser = Options(__doc__, "chain.csv")
    parser.add_argument("--links", type=int, nargs="+", default=list(SECONDS), choices=list(SECONDS))
    arguments = parser.given()
    here = long_stamp() | {"sundials": version(), "optimised": "SUNDIALS_DIR" in os.environ}
    rows: list[dict] = []
    with tempfile.TemporaryDirectory() as folder:
        library, klu = compile_peer(Path(folder))
        for links in [10] if arguments.quick else arguments.links:
            rows += [
                {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()}
                | here
                for row in measure(links, library, klu, arguments.quick)
            ]
            write_rows(arguments.out, rows)


if __name__ == "__main__":
    main()

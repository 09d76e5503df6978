"""What the foundation costs: calls of solve, kernels, solves against the bare evaluations and against a loop
made for one model, start-up times, memory.

    python benchmarks/foundation.py [--out FILE] [--quick]

Every line is measured in this one run; times of competing codes are taken in turn and their medians compared,
because machines are noisy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import casadi as ca
import numpy as np
from rich.console import Console
from rich.table import Table

import holonome as hn
from adapters.holonome import repeat as _dependent_calls
from harness.options import Options, long_stamp
from harness.tables import write_rows
from holonome.dynamics.kernels import kernels
from yardstick import yardstick

MECHANISMS = {"pendulum": 10.0, "slider_crank_unequal": 10.0, "andrews": 0.03}
TOLERANCES = 10.0 ** -np.arange(3.0, 10.1, 0.25)
LIMITS = {"pendulum": 4.0, "slider_crank_unequal": 2.5, "andrews": 2.5}


class Sizes(NamedTuple):
    """How much is measured."""

    mechanisms: tuple[str, ...] = tuple(MECHANISMS)
    tolerances: np.ndarray = TOLERANCES
    turns: int = 25
    calls: int = 2000
    processes: int = 5
    fresh: bool = True
    seconds: int = 1000
    links: tuple[int, ...] = (10, 30, 100, 300, 1000)


QUICK = Sizes(("pendulum",), 10.0 ** -np.arange(3.0, 8.0), 1, 2, 1, False, 1, (10,))


def kernel_time(mechanism) -> float:
    """Seconds for one evaluation of the accelerations."""
    system, compiled = mechanism.system, kernels(mechanism.system)
    y = np.concatenate([mechanism.q0, mechanism.v0])
    context = compiled.context(system)
    out = np.empty(2 * system.n + 1)
    _dependent_calls(compiled.derivative, y, context, out, 10)
    return (
        min(
            _seconds(lambda: _dependent_calls(compiled.derivative, y, context, out, 20_000))
            for _ in range(20)
        )
        / 20_000
    )


def _seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def _end_state(system, end, q0, v0, method: str, tolerance: float) -> np.ndarray:
    return hn.solve(system, (0, end), q0, v0, method=method, rtol=tolerance, atol=tolerance).y[:, -1]


def solves(rows: list[dict], sizes: Sizes) -> None:
    """Time of a solve against its evaluations, and against the yardstick at the same error."""
    for name in sizes.mechanisms:
        end, mechanism = MECHANISMS[name], hn.mechanisms.get(name)
        system, q0, v0 = mechanism.system, mechanism.q0, mechanism.v0
        kernel = kernel_time(mechanism)
        limit = {"slider_crank_unequal": 100, "andrews": 300}.get(name, 100)
        _add(rows, name, "accelerations", kernel * 1e9, "ns", limit)
        solution = hn.solve(system, (0, end), q0, v0, method="dopri5")
        took = np.median(
            [
                _seconds(lambda: hn.solve(system, (0, end), q0, v0, method="dopri5"))
                for _ in range(2 * sizes.turns)
            ]
        )
        _add(
            rows,
            name,
            "solve / (evaluations x kernel)",
            float(took) / (solution.nfev * kernel),
            "",
            LIMITS[name],
        )
        reference = hn.solve(system, (0, end), q0, v0, method="dop853", rtol=1e-14, atol=1e-14).y[:, -1]
        y0, bare = np.concatenate([q0, v0]), yardstick(system)
        codes = {
            "yardstick": lambda tolerance: bare(y0, end, tolerance)[0],
            "holonome dopri5": partial(_end_state, system, end, q0, v0, "dopri5"),
            "holonome dop853": partial(_end_state, system, end, q0, v0, "dop853"),
        }
        curves = _work_precision(codes, reference, sizes)
        for error in (1e-4, 1e-6):
            times = {code: _at_error(curve, error) for code, curve in curves.items()}
            _add(rows, name, f"yardstick, error {error:g}", times["yardstick"] * 1e6, "µs")
            for code in ("holonome dopri5", "holonome dop853"):
                _add(rows, name, f"{code}, error {error:g}", times[code] * 1e6, "µs")
            _add(
                rows,
                name,
                f"solve / yardstick, error {error:g}",
                min(times["holonome dopri5"], times["holonome dop853"]) / times["yardstick"],
                "",
                1.6,
            )


def _work_precision(
    codes: dict[str, Callable], reference: np.ndarray, sizes: Sizes
) -> dict[str, list[tuple[float, float]]]:
    """(error, median time) of each code at each tolerance; the codes take turns."""
    curves: dict[str, list[tuple[float, float]]] = {code: [] for code in codes}
    for tolerance in sizes.tolerances:
        times: dict[str, list[float]] = {code: [] for code in codes}
        for _ in range(sizes.turns):
            for code, run in codes.items():
                times[code].append(_seconds(lambda run=run, tolerance=tolerance: run(tolerance)))
        for code, run in codes.items():
            error = float(np.max(np.abs(run(tolerance) - reference) / (1 + np.abs(reference))))
            curves[code].append((error, float(np.median(times[code]))))
    return curves


def _at_error(curve: list[tuple[float, float]], error: float) -> float:
    """Time at an error, from a straight line through the logarithms of the points around it."""
    errors, times = np.log([max(e, 1e-16) for e, _ in curve]), np.log([t for _, t in curve])
    near = np.abs(errors - np.log(error)) < np.log(100)
    slope, height = np.polyfit(errors[near], times[near], 1)
    return float(np.exp(height + slope * np.log(error)))


def calls(rows: list[dict], sizes: Sizes) -> None:
    """What a call costs with output times, other parameters, or an event, against the bare call of a short
    run; the calls take turns.  The event is one that never happens: the search alone is paid for.
    """
    mechanism, span = hn.mechanisms.pendulum(), (0, 1)
    given: dict[str, dict] = {
        "bare": {},
        "t_eval": {"t_eval": np.linspace(0, 1, 20)},
        "parameters": {"parameters": {"gravity": 9.80665}},
        "events": {"events": lambda q: q[0] - 5.0},
    }
    times: dict[str, list[float]] = {name: [] for name in given}
    for _ in range(sizes.calls):
        for name, options in given.items():
            times[name].append(
                _seconds(
                    lambda options=options: hn.solve(
                        mechanism.system, span, mechanism.q0, mechanism.v0, **options
                    )
                )
            )
    found = {name: float(np.median(taken)) for name, taken in times.items()}
    _add(rows, "pendulum, 1 s", "a bare call of solve", found["bare"] * 1e6, "µs")
    for name in list(given)[1:]:
        _add(rows, "pendulum, 1 s", f"solve with {name} / bare", found[name] / found["bare"], "", 1.3)


NEW_MODEL = """
import time
begin = time.perf_counter()
import holonome as hn
imported = time.perf_counter()
import numpy as np
system = hn.System(
    np.diag([1.0, 1.0, 0.3]),
    lambda q, p: np.array([0.0, -p.g, 0.0]),
    lambda q: np.array([q[0] - np.cos(q[2]), q[1] - np.sin(q[2])]),
    parameters={"g": 9.81},
)
hn.solve(system, (0, 1), [1.0, 0.0, 0.0])
print(imported - begin, time.perf_counter() - imported)
"""


def start_up(rows: list[dict], sizes: Sizes) -> None:
    """Seconds to import, and to the first result of a new and of a known model, each in its own process.  On
    a fresh machine the engine is compiled as well.
    """
    with tempfile.TemporaryDirectory() as folder:
        caches = dict(os.environ, HOLONOME_CACHE=f"{folder}/models", HOLONOME_QUIET="1")
        if sizes.fresh:
            caches["NUMBA_CACHE_DIR"] = f"{folder}/numba"
            first = _seconds(lambda: _timed_process(caches))
            _add(rows, "", "first run on a fresh machine", first, "s", 60)
            shutil.rmtree(f"{folder}/models")
        _, new = _timed_process(caches)
        imports, known = zip(*[_timed_process(caches) for _ in range(sizes.processes)], strict=True)
        _add(rows, "", "import holonome", float(np.median(imports)), "s", 1.0)
        _add(rows, "", "a new model to its first result", new, "s", 2.5)
        _add(rows, "", "a known model to its first result", float(np.median(known)), "s", 0.3)


def _timed_process(environment: dict[str, str]) -> tuple[float, float]:
    output = subprocess.run(
        [sys.executable, "-c", NEW_MODEL], env=environment, check=True, capture_output=True, text=True
    ).stdout
    imported, first = map(float, output.split())
    return imported, first


MEMORY = """
import resource, sys
import holonome as hn
m = hn.mechanisms.slider_crank_unequal()
sol = hn.solve(m.system, (0, int(sys.argv[1])), m.q0, m.v0, step=1e-3)
print(sol.steps, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def memory(rows: list[dict], sizes: Sizes) -> None:
    """Peak memory of a process that stores a million steps."""
    command = [sys.executable, "-c", MEMORY, str(sizes.seconds)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    steps, megabytes = map(float, output.split())
    _add(rows, "slider_crank_unequal", f"memory for {steps:.0f} stored steps", megabytes, "MB", 1000)


def large_systems(rows: list[dict], sizes: Sizes) -> None:
    """How compilation and evaluation grow with the length of a chain."""
    for links in sizes.links:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["HOLONOME_CACHE"] = folder
            mechanism = hn.mechanisms.chain(links=links)
            build = _seconds(
                lambda: (
                    kernels(mechanism.system).derivative,
                    kernels(mechanism.system).context(mechanism.system),
                )
            )
            compiled = kernels(mechanism.system)
            y = np.concatenate([mechanism.q0, mechanism.v0])
            context = compiled.context(mechanism.system)
            out = np.empty(2 * mechanism.system.n + 1)
            repeat = max(3, 20_000 // links)
            took = (
                min(
                    _seconds(lambda: _dependent_calls(compiled.derivative, y, context, out, repeat))
                    for _ in range(5)
                )
                / repeat
            )
            _add(rows, f"chain of {links}", "instructions of the accelerations", compiled.instructions[0], "")
            _add(rows, f"chain of {links}", "deriving and compiling them", build, "s")
            _add(rows, f"chain of {links}", "accelerations", took * 1e6, "µs")
            if not compiled.sparse:
                _add(
                    rows,
                    f"chain of {links}",
                    "the same by CasADi's virtual machine",
                    _virtual_machine(compiled, y) * 1e6,
                    "µs",
                )
            del os.environ["HOLONOME_CACHE"]


def _virtual_machine(compiled, y: np.ndarray) -> float:
    """Seconds for the accelerations as CasADi itself evaluates them."""
    model = compiled.system.model
    _, z, out, margin = compiled._emitted.derivative(model)
    function = ca.Function(
        "f",
        [model.t, ca.vertcat(model.q, model.v), z, compiled.system.symbols["p"]],
        [out, margin],
        {"cse": True},
    )
    buffer, evaluate = function.buffer()
    arrays = [
        np.zeros(1),
        y,
        np.zeros(1),
        compiled.system.parameters.flat.copy(),
        np.empty(out.numel()),
        np.empty(1),
    ]
    for i, array in enumerate(arrays[:4]):
        buffer.set_arg(i, memoryview(array))
    for i, array in enumerate(arrays[4:]):
        buffer.set_res(i, memoryview(array))
    evaluate()
    return min(_seconds(lambda: [evaluate() for _ in range(10)]) for _ in range(5)) / 10


def _add(
    rows: list[dict], mechanism: str, what: str, value: float, unit: str, limit: float | None = None
) -> None:
    rows.append(
        {
            "mechanism": mechanism,
            "quantity": what,
            "value": f"{value:.4g}",
            "unit": unit,
            "limit": "" if limit is None else f"{limit:g}",
            "met": "" if limit is None else ("yes" if value <= limit else "NO"),
        }
    )


def main() -> None:
    arguments = Options(__doc__, "foundation.csv").given()
    rows: list[dict] = []
    console = Console(stderr=True)
    for part in (calls, solves, start_up, memory, large_systems):
        with console.status(f"{part.__name__} …"):
            part(rows, QUICK if arguments.quick else Sizes())
    here = long_stamp()
    table = Table(*rows[0], title=", ".join(f"{key} {value}" for key, value in here.items()))
    for row in rows:
        table.add_row(*row.values())
    Console().print(table)
    write_rows(arguments.out, [row | here for row in rows])


if __name__ == "__main__":
    main()

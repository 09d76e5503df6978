"""What it costs until a first result: systems whose functions are compiled by Numba, many parameters, large
sequential regularization, dry friction with jumps, and a consistent start.

    python benchmarks/first_use.py [--out FILE] [--quick]

Every line runs in a process of its own, with the engine compiled before and a model that no cache knows.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import holonome as hn
from harness.options import Options, stamp
from harness.tables import write_rows

FRESH = 1 + 1e-9 * (time.time_ns() % 1_000_000)
"""A constant that makes the code of each process another one."""


def solved(system: hn.System, q0: list[float], end: float = 0.1, **options) -> hn.Solution:
    return hn.solve(system, (0, end), q0, np.zeros(len(q0)), **options)


def consistent() -> float:
    """The second call."""
    system = hn.mechanisms.pendulum().system
    hn.consistent(system, [0.6, -0.8])
    begin = time.perf_counter()
    hn.consistent(system, [0.6, -0.8])
    return time.perf_counter() - begin


def called(force: Callable) -> Callable[[], float]:
    """A force with a function of NumPy that has no traced version: Numba compiles it."""

    def measure() -> float:
        begin = time.perf_counter()
        solved(hn.System(FRESH, force, n=2), [1.0, 2.0])
        return time.perf_counter() - begin

    return measure


def parameters(count: int, used: bool) -> Callable[[], float]:
    def measure() -> float:
        k = FRESH * np.linspace(1, 2, count)
        begin = time.perf_counter()
        force = (lambda q, p: -p.k.mean() * FRESH * q) if used else (lambda q, p: -p.k[0] * FRESH * q)
        solved(hn.System(1.0, force, n=1, parameters={"k": k}), [1.0])
        return time.perf_counter() - begin

    return measure


def regularised(links: int) -> Callable[[], float]:
    def measure() -> float:
        given = hn.mechanisms.chain(links=links)
        begin = time.perf_counter()
        hn.solve(given.system, (0, 0.01), given.q0, given.v0, method="srm")
        return time.perf_counter() - begin

    return measure


def friction() -> float:
    begin = time.perf_counter()
    solved(hn.System(FRESH, lambda q, v: -q - 0.3 * np.sign(v), n=1), [1.0], 10.0)
    return time.perf_counter() - begin


LINES: dict[str, Callable[[], float]] = {
    "consistent, second call": consistent,
    "np.unique": called(lambda q: -FRESH * np.unique(q)),
    "np.linalg.eigvalsh": called(lambda q: -FRESH * q - np.linalg.eigvalsh(np.outer(q, q))),
    "20 000 parameters, one used": parameters(20_000, used=False),
    "20 000 parameters, all used": parameters(20_000, used=True),
    "200 000 parameters, one used": parameters(200_000, used=False),
    "200 000 parameters, all used": parameters(200_000, used=True),
    "srm, 80 coordinates": regularised(40),
    "np.sign(v)": friction,
}
QUICK = ["consistent, second call", "20 000 parameters, one used"]


def main() -> None:
    options = Options(__doc__, "first_use.csv")
    options.add_argument("--only", choices=LINES, help="measure this one here, and print its seconds")
    arguments = options.given()
    if arguments.only:
        print(LINES[arguments.only]())
        return
    solved(hn.mechanisms.pendulum().system, [0.6, -0.8])  # the engine
    rows = []
    for name in QUICK if arguments.quick else LINES:
        done = subprocess.run(
            [sys.executable, __file__, "--only", name], check=True, capture_output=True, text=True
        )
        seconds = float(done.stdout.split()[-1])
        rows.append({"what": name, "seconds": f"{seconds:.4g}"} | stamp())
        print(f"{name:32} {seconds:9.4f} s")
    write_rows(arguments.out, rows)


if __name__ == "__main__":
    main()

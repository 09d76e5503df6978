"""Digits of many runs, recorded, and compared after a change of the code.

    python benchmarks/digits.py record FILE        # run everything and write FILE (JSON)
    python benchmarks/digits.py compare FILE       # run everything again, print what differs
    python benchmarks/digits.py list               # names of all runs

Options: ``--only TEXT`` takes the runs whose name contains TEXT (several may be given), ``--limit SECONDS``
is the time limit of one run, ``--all`` makes ``compare`` print the runs that agree as well.

Every registered method goes over every ready-made mechanism; methods put together by hand and the options
of ``solve`` go over some of them; and there is a system for every feature that a model may have.  A run
leaves its status, its counts, and its states and multipliers at about ten points.  One that is refused
leaves the type of the exception and its first line.  The runs take place in a process of their own, which
is watched: one that crashes or hangs is recorded as such, and the next one gets a new process.

``compare`` ends with 1 if a status or a count differs, or if states differ by more than ten times ``rtol``.
Wording may change.  What must be the same is exact only on the machine that recorded it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import holonome as hn

COUNTS = ("steps", "rejections", "nfev", "njev")
POINTS = 10
MOST_STEPS = 2000
LOOSE = 10
"""Differences of so many times rtol, relative to the largest value of a row, count as within tolerance."""


@dataclass(frozen=True)
class Problem:
    """What is solved."""

    system: Any
    t_span: tuple[float, float]
    q0: Any
    v0: Any = None


@dataclass(frozen=True)
class Job:
    """One run: a problem, a method and a variant, each by its name."""

    problem: str
    method: str
    variant: str = "points"

    @property
    def name(self) -> str:
        return f"{self.problem} / {self.method} / {self.variant}"


# What is solved

SPANS = {
    "andrews": 0.006,
    "chain": 0.1,
    "double_pendulum": 1.0,
    "driven_circle": 0.1,
    "four_bar": 0.5,
    "kepler": 3.0,
    "oscillator_on_circle": 0.002,
    "pendulum": 2.0,
    "slider_crank": 3.0,
    "slider_crank_unequal": 1.0,
    "stiff_spring": 0.005,
    "two_body_bushing": 0.3,
    "two_link_arm": 0.5,
    "wheelset": 0.05,
}
"""Where each mechanism ends here; one that is not named ends after a twentieth of its own span."""

ARGUMENTS: dict[str, dict[str, Any]] = {"chain": {"links": 6}}
GRAVITY = np.array([0.0, -9.81])


def circle(q):
    return q @ q - 1


def of_mechanism(name: str, **arguments) -> Problem:
    mechanism = hn.mechanisms.get(name, **(ARGUMENTS.get(name, {}) | arguments))
    first, last = mechanism.t_span
    end = SPANS.get(name, first + (last - first) / 20)
    return Problem(mechanism.system, (first, end), mechanism.q0, mechanism.v0)


def states() -> Problem:
    """A pendulum with a force behind a filter."""
    system = hn.System(
        np.eye(2),
        lambda q, s: GRAVITY - s[0] * q,
        circle,
        parameters={"k": 2.0},
        states={"filtered": 0.3, "clock": 0.0},
        rate=lambda v, s, p: np.array([p.k * (v[0] - s[0]), 1.0 - s[1]]),
    )
    return Problem(system, (0, 2), [1, 0])


def states_alone() -> Problem:
    system = hn.System(1.0, lambda q, s: -q - s, n=1, states={"filtered": 0.3}, rate=lambda v, s: 2 * (v - s))
    return Problem(system, (0, 3), [1.0])


def unknowns() -> Problem:
    """A pendulum whose constraint is written with its angle, which an equation determines."""
    system = hn.System(
        np.eye(2),
        GRAVITY,
        lambda q, w: q[0] * np.sin(w[0]) - q[1] * np.cos(w[0]) - 1,
        unknowns={"angle": 1.5},
        equations=lambda q, w: q[0] * np.cos(w[0]) + q[1] * np.sin(w[0]),
    )
    return Problem(system, (0, 2), [1, 0])


def friction(q, v, lam):
    return GRAVITY - 0.2 * np.sqrt(lam[0] ** 2 + 1e-4) * v / np.sqrt(v @ v + 1e-2)


def forces_of_lam() -> Problem:
    return Problem(hn.System(np.eye(2), friction, lambda q: np.sqrt(q @ q) - 1), (0, 2), [1, 0])


def invariants() -> Problem:
    """A pendulum that holds its energy too."""
    system = hn.System(np.eye(2), GRAVITY, circle, invariant=lambda q, v: v @ v / 2 + 9.81 * q[1])
    return Problem(system, (0, 2), [1, 0])


def redundant() -> Problem:
    """A parallelogram with a bar too many."""
    places = np.array([-0.5, 0.0, 0.5])

    def constraint(q):
        x, y, angle = q
        return (x + places * np.cos(angle) - places) ** 2 + (y + places * np.sin(angle)) ** 2 - 1

    system = hn.System(np.array([1.0, 1.0, 0.1]), np.array([0.0, -9.81, 0.0]), constraint)
    return Problem(system, (0, 1), [math.sin(1.2), -math.cos(1.2), 0.0])


def rheonomic() -> Problem:
    """A pendulum on a pivot that is shaken."""

    def constraint(t, q):
        return (q[0] - 0.3 * np.sin(4 * t)) ** 2 + q[1] ** 2 - 0.64

    start = [0.8 * math.sin(0.5), -0.8 * math.cos(0.5)]
    return Problem(hn.System(2.0, 2 * GRAVITY, constraint, n=2), (0, 2), start, [1.2, 0.0])


def skate() -> Problem:
    system = hn.System(
        np.ones(3),
        np.array([2.9, 0.0, 0.0]),
        velocity_constraint=lambda q, v: v[0] * np.sin(q[2]) - v[1] * np.cos(q[2]),
    )
    return Problem(system, (0, 3), np.zeros(3), [0, 0, 1.7])


def skate_on_sphere() -> Problem:
    """Constraints of both kinds together."""
    system = hn.System(
        np.ones(4),
        np.zeros(4),
        lambda q: q[:3] @ q[:3] - 1,
        velocity_constraint=lambda q, v: np.array([np.cos(q[3]), np.sin(q[3]), 0.0]) @ v[:3],
    )
    return Problem(system, (0, 3), [1.0, 0, 0, math.pi / 2], [0.0, 0, 1, 0.3])


def massless() -> Problem:
    """The angle of a pendulum carried along by two constraints."""
    system = hn.System(
        np.array([1.0, 1.0, 0.0]),
        np.array([0.0, -9.81, 0.0]),
        lambda q: np.array([q[0] - np.sin(q[2]), q[1] + np.cos(q[2])]),
    )
    return Problem(system, (0, 2), [1.0, 0.0, math.pi / 2], np.zeros(3))


def free() -> Problem:
    return Problem(hn.System(1.0, lambda t, q: np.cos(2 * t) - q, n=1), (0, 4), [0.0])


def switched() -> Problem:
    """A force that jumps at a known time."""
    system = hn.System(np.eye(2), lambda t: np.where(t > 0.5, 1.0, -1.0) * GRAVITY, circle)
    return Problem(system, (0, 1), [1, 0])


def elastic() -> Problem:
    """A rod in a stiff bushing, on its slow motion nearly."""
    bushing = hn.Elastic(lambda q: np.array([q[0] - np.sin(q[2]), q[1] + np.cos(q[2])]), lambda p: p.k, 10.0)
    system = hn.System(
        [1.0, 1.0, 0.1], [0.0, -9.81, 0.0], elastic=bushing, parameters={"k": np.array([1e5, 1e4])}
    )
    return Problem(system, (0, 0.5), [math.sin(1.0), -math.cos(1.0), 1.0])


def elastic_on_circle() -> Problem:
    element = hn.Elastic(lambda q: np.sqrt(q[0] ** 2 + (q[1] + 0.5) ** 2) - 0.4, 1e6)
    start = hn.mechanisms.stiff_spring(eps=1e-3)
    system = hn.System(np.ones(2), [0.0, -1.0], lambda q: circle(q) / 2, elastic=element)
    return Problem(system, (0, 0.05), start.q0, start.v0)


def black_box_force() -> Problem:
    system = hn.System(np.eye(2), lambda q: np.array([-0.1 * float(q[0]), -9.81]), circle)
    return Problem(system, (0, 0.5), [1, 0])


def black_box_constraint() -> Problem:
    table = np.array([1.0])

    def constraint(q):
        return np.array([float(q[0]) ** 2 + float(q[1]) ** 2 - table.item()])

    return Problem(hn.System(np.eye(2), GRAVITY, constraint), (0, 0.5), [1, 0])


def ode() -> Problem:
    system = hn.ODE(
        lambda x, p: np.array([x[0] * (1 - x[1]), -p.a * x[1] * (1 - x[0])]),
        parameters={"a": 1.5},
        invariant=lambda x, p: p.a * (x[0] - np.log(x[0])) + x[1] - np.log(x[1]),
        n=2,
    )
    return Problem(system, (0, 5), [0.5, 0.7])


def stiff_ode() -> Problem:
    system = hn.ODE(lambda x: np.array([x[1], 1e3 * (1 - x[0] ** 2) * x[1] - x[0]]), n=2)
    return Problem(system, (0, 50), [2.0, 0.0])


def index2() -> Problem:
    system = hn.Index2System(
        lambda t, x: np.array([1 - np.exp(-t), np.cos(t) + np.exp(t) * np.sin(t)]),
        lambda x: x,
        lambda t, x: (x @ x - np.exp(-2 * t) - np.sin(t) ** 2) / 2,
        n=2,
    )
    return Problem(system, (0, 1), [1, 0])


def index3() -> Problem:
    system = hn.Index3System(lambda v: GRAVITY - 0.1 * v, lambda x: x, lambda x: circle(x) / 2, n=2)
    return Problem(system, (0, 1), [1, 0], [0, 0])


OTHERS: dict[str, Callable[[], Problem]] = {
    function.__name__: function
    for function in (
        states,
        states_alone,
        unknowns,
        forces_of_lam,
        invariants,
        redundant,
        rheonomic,
        skate,
        skate_on_sphere,
        massless,
        free,
        switched,
        elastic,
        elastic_on_circle,
        black_box_force,
        black_box_constraint,
        ode,
        stiff_ode,
        index2,
        index3,
    )
}
LARGE = {f"chain of {links}": partial(of_mechanism, "chain", links=links) for links in (15, 25)}
"""More than 60 unknowns, and more than 100 coordinates and constraints: where other code takes over."""


@cache
def problem(name: str) -> Problem:
    return (OTHERS | LARGE)[name]() if name in OTHERS | LARGE else of_mechanism(name)


# By which method

STEP = 1 / 500
"""A constant step, as part of the run."""


def hand_made(span: float) -> dict[str, hn.Method]:
    """Methods that have no name; those with a constant step take it from the length of the run."""
    h = span * STEP
    drifting = hn.UnderlyingODE(projection=False)
    nearest = hn.CoordinateProjection(metric="euclidean", relaxed=True)
    as_printed = hn.CoordinateSplit("CM", refresh="jacobian", error_test="x")
    return {
        "heun without projection": hn.Method(drifting, hn.RungeKutta("heun", step=h)),
        "dop853 without projection": hn.Method(drifting, hn.RungeKutta("dop853")),
        "baumgarte dopri5": hn.Method(hn.Baumgarte(), hn.RungeKutta("dopri5")),
        "underlying BDF": hn.Method(hn.UnderlyingODE(), hn.BDF()),
        "ggl dassl": hn.Method(hn.GGL(error_test="q"), hn.BDF.dassl()),
        "ggl order 3": hn.Method(hn.GGL(), hn.BDF(order=3, step=h)),
        "index2 order 2": hn.Method(hn.Index2(), hn.BDF(max_order=2)),
        "projection euclidean relaxed": hn.Method(nearest, hn.BDF()),
        "projection of the underlying ODE": hn.Method(hn.CoordinateProjection(hn.UnderlyingODE()), hn.BDF()),
        "cm as printed": hn.Method(as_printed, hn.BDF.dassl()),
        "cs bound": hn.Method(hn.CoordinateSplit("CS", error_test="bound"), hn.BDF()),
        "compliant": hn.Method(hn.Compliant(error_test="qv"), hn.BDF()),
        "srm heun": hn.Method(hn.SRM(eps=5e-3, iterations=2, y0=0), hn.RungeKutta("heun", step=h / 2)),
        "srm dop853": hn.Method(hn.SRM(), hn.RungeKutta("dop853")),
        "srm inverse dopri5": hn.Method(hn.SRM(eps=1e-2, E="inverse", iterations=3), hn.RungeKutta("dopri5")),
        "srm baumgarte": hn.Method(hn.SRM(variant="baumgarte", alpha=(1, 1, 1)), hn.RungeKutta("dop853")),
        "srm underlying": hn.Method(hn.SRM(variant="underlying"), hn.RungeKutta("dopri5")),
        "srm BDF": hn.Method(hn.SRM(eps=1e-6), hn.BDF()),
        "srm singular BDF": hn.Method(hn.SRM(eps=1e-4, variant="singular", iterations=3), hn.BDF()),
        "srm post-stabilised": hn.Method(hn.SRM(post_stabilization=2), hn.RungeKutta("dopri5")),
    }


HAND_MADE = tuple(hand_made(1.0))


def method_arguments(name: str, span: float) -> dict[str, Any]:
    if name == "smooth":
        return {"motion": "smooth"}
    if name == "heun":
        return {"method": name, "rtol": 1e-3, "atol": 1e-5}
    return {"method": hand_made(span).get(name, name)}


# With which options


def at_points(first: float, last: float) -> dict[str, Any]:
    return {"t_eval": np.linspace(first, last, POINTS + 1)}


def crossing(system: Any) -> Callable:
    """An event that happens in most systems."""
    if isinstance(system, hn.Index3System):
        return lambda x, v: v[0] + v[-1]
    if isinstance(system, (hn.ODE, hn.Index2System)):
        return lambda x: x[0] - x[-1]
    return lambda q, v: v[0] + v[-1]


def variant_arguments(variant: str, task: Problem) -> dict[str, Any]:
    """Arguments of solve that go with a variant."""
    first, last = task.t_span
    third = first + (last - first) / 3
    return {
        "points": at_points(first, last),
        "kept": {},
        "dense": {"dense_output": True},
        "events": {"events": [crossing(task.system), hn.Event(lambda t: t - third)]},
        "terminal": {"events": hn.Event(lambda t: t - third, terminal=True), **at_points(first, last)},
        "backward": {"t_span": (first, 2 * first - last), **at_points(first, 2 * first - last)},
        "constant step": {"step": (last - first) * STEP},
        "step bounds": {"first_step": (last - first) / 1000, "max_step": (last - first) / 50},
        "tight": {"rtol": 1e-10, "atol": 1e-12, **at_points(first, last)},
        "no projection": {"projection": False},
        "repair": {"q0": np.asarray(task.q0, dtype=float) * 1.01, "repair": True},
        "off the start": {"q0": np.asarray(task.q0, dtype=float) + 0.1},
        "few steps": {"max_steps": 7},
    }[variant]


VARIANTS = (
    "kept",
    "dense",
    "events",
    "terminal",
    "backward",
    "constant step",
    "step bounds",
    "tight",
    "no projection",
    "repair",
    "off the start",
    "few steps",
)
NAMED_FOR_VARIANTS = ("auto", "dopri5", "bdf", "ggl", "cs", "index2", "srm", "smooth")
NAMED_FOR_LARGE = ("auto", "bdf", "ggl", "index3", "cs", "srm", "smooth", "srm BDF")
SOME_HAND_MADE = ("compliant", "srm BDF", "srm dop853", "ggl order 3", "underlying BDF")
WITH_HAND_MADE = (
    "pendulum",
    "slider_crank_unequal",
    "andrews",
    "two_link_arm",
    "two_body_bushing",
    "slider_crank",
)
WITH_SOME_HAND_MADE = ("states", "unknowns", "forces_of_lam", "redundant", "elastic_on_circle")
WITH_VARIANTS = ("pendulum", "slider_crank_unequal")
WITH_SOME_VARIANTS = ("states", "ode", "index2", "index3", "rheonomic", "skate")


def jobs() -> Iterator[Job]:
    """All runs, those of one system together."""
    named = ["auto", *(name for name, entry in hn.methods().items() if not entry.fixed_step)]
    for name in hn.mechanisms.available():
        yield from (Job(name, method) for method in named)
        if name in WITH_HAND_MADE:
            yield from (Job(name, method) for method in ("smooth", *HAND_MADE))
        if name in WITH_VARIANTS:
            yield from (Job(name, method, variant) for method in NAMED_FOR_VARIANTS for variant in VARIANTS)
    for name in OTHERS:
        higher = name in ("index2", "index3")
        sequential = [method for method in HAND_MADE if "srm" in method]
        methods = ["auto", "srm", "bdf", *sequential] if higher else [*named, "smooth"]
        yield from (Job(name, method) for method in methods)
        if name in WITH_SOME_HAND_MADE:
            yield from (Job(name, method) for method in SOME_HAND_MADE)
        if name in WITH_SOME_VARIANTS:
            methods = ["srm"] if higher else ["auto", "bdf"]
            yield from (Job(name, method, variant) for method in methods for variant in VARIANTS[:6])
    for name in LARGE:
        yield from (Job(name, method) for method in NAMED_FOR_LARGE)


# One run


def run(job: Job) -> dict[str, Any]:
    """What is recorded of a run."""
    task = problem(job.problem)
    arguments = {"t_span": task.t_span, "q0": task.q0, "v0": task.v0, "max_steps": MOST_STEPS}
    try:
        arguments |= method_arguments(job.method, task.t_span[1] - task.t_span[0])
        arguments |= variant_arguments(job.variant, task)
        return digits(hn.solve(task.system, **arguments))
    except Exception as error:
        return {"error": type(error).__name__, "message": (str(error) or "-").splitlines()[0]}


def digits(sol: Any) -> dict[str, Any]:
    chosen = np.unique(np.linspace(0, sol.t.size - 1, POINTS + 1).astype(int)) if sol.t.size else []
    higher = isinstance(sol, hn.HigherIndexSolution)
    state = np.concatenate([sol.x, sol.v] if higher else [sol.q, sol.v, sol.s])
    found = {
        "status": sol.status,
        "message": sol.message,
        "points": sol.t.size,
        "counts": [getattr(sol, count, 0) for count in COUNTS],
        "rtol": getattr(sol, "rtol", 1e-6),
        "t": sol.t[chosen].tolist(),
        "states": state[:, chosen].tolist(),
        "multipliers": (sol.y if higher else sol.lam)[:, chosen].tolist(),
    }
    if sol.t_events:
        found["t_events"] = [times.tolist() for times in sol.t_events]
    if sol.sol is not None and sol.t.size > 1:
        inside = sol.t[0] + (sol.t[-1] - sol.t[0]) * np.array([0.123, 0.456, 0.789])
        found["between"] = np.vstack(sol.sol(inside)).tolist()
    return found


def work(names: list[str]) -> None:
    """Run the jobs of these names and print what came out, a line of JSON each."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what anything else prints must not get between the lines
    known = {job.name: job for job in jobs()}
    for name in names:
        began = time.perf_counter()
        found = {"name": name} | run(known[name])
        found["seconds"] = round(time.perf_counter() - began, 3)
        print(json.dumps(found), file=out, flush=True)


# All runs, in a process that is watched


def all_runs(names: list[str], limit: float, tell: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    while waiting := [name for name in names if name not in found]:
        for record in watched(waiting, limit):
            name = record.pop("name")
            found[name] = record
            if record.get("error") in ("Crash", "Hang"):
                tell(f"{name}: {record['error']}, {record['message']}")
    return found


def watched(names: list[str], limit: float) -> Iterator[dict[str, Any]]:
    """Records from one process, to its end or to the first run that crashes or hangs."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, __file__, "work"], **streams) as process:
        lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=pump, args=(process.stdout, lines), daemon=True).start()
        assert process.stdin is not None
        process.stdin.write(json.dumps(names).encode())
        process.stdin.close()
        for name in names:
            try:
                line = lines.get(timeout=limit)
            except queue.Empty:
                process.kill()
                yield {"name": name, "error": "Hang", "message": f"no end after {limit:g} s"}
                return
            if not line:
                yield {"name": name, "error": "Crash", "message": f"return code {process.wait()}"}
                return
            yield json.loads(line)


def pump(stream: Any, lines: queue.Queue[bytes]) -> None:
    """Lines of a stream as they come, and an empty one at its end."""
    for line in stream:
        lines.put(line)
    lines.put(b"")


# Differences


def difference(old: dict[str, Any], new: dict[str, Any]) -> tuple[str, float, str]:
    """How two records differ: a word, the largest relative difference, and details."""
    if "error" in old or "error" in new:
        before, after = old.get("error", "ran"), new.get("error", "ran")
        if before != after:
            return "DIFFERS", math.inf, f"{before} -> {after}: {new.get('message', '')[:70]}"
        words = old.get("message") == new.get("message") or before in ("Crash", "Hang")
        return ("identical", 0.0, before) if words else ("wording", 0.0, f"{before}: {new['message'][:70]}")
    counts = zip(COUNTS, old["counts"], new["counts"], strict=True)
    details = [f"{name} {a} -> {b}" for name, a, b in counts if a != b]
    details += [f"{key} {old[key]} -> {new[key]}" for key in ("status", "points") if old[key] != new[key]]
    largest = max(
        distance(old.get(key, []), new.get(key, []))
        for key in ("t", "states", "multipliers", "t_events", "between")
    )
    if largest > LOOSE * old["rtol"] or details:
        return "DIFFERS", largest, ", ".join(details)
    if largest == 0:
        return ("identical" if old["message"] == new["message"] else "wording"), 0.0, new["message"][:70]
    return ("rounding" if largest <= 1e-12 else "tolerance"), largest, ""


def distance(old: list, new: list) -> float:
    """The largest difference, relative to the largest value in its row."""
    if bool(old) != bool(new) or len(old) != len(new):
        return math.inf
    if not old or isinstance(old[0], list):
        return max((distance(a, b) for a, b in zip(old, new, strict=True)), default=0.0)
    a, b = np.array(old), np.array(new)
    if np.array_equal(a, b, equal_nan=True):
        return 0.0
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return math.inf
    return float(np.nanmax(np.abs(a - b)) / max(np.nanmax(np.abs(a)), 1e-300))


def report(old: dict[str, Any], new: dict[str, Any], everything: bool) -> int:
    kinds: Counter[str] = Counter()
    for name in sorted(old.keys() | new.keys(), key=list({**old, **new}).index):
        if name not in old or name not in new:
            kind, size, details = "DIFFERS", math.inf, "not recorded" if name in new else "no longer run"
        else:
            kind, size, details = difference(old[name], new[name])
        kinds[kind] += 1
        if everything or kind != "identical":
            print(f"{kind:9}  {size:8.1e}  {name:70}  {details}")
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    return 1 if kinds["DIFFERS"] else 0


def chosen_names(only: list[str]) -> list[str]:
    return [job.name for job in jobs() if not only or any(text in job.name for text in only)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["record", "compare", "list", "work"])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    if given.command == "work":
        work(json.load(sys.stdin))
        return 0
    names = chosen_names(given.only)
    if given.command == "list":
        print("\n".join(names))
        return 0
    if given.file is None:
        parser.error(f"{given.command} needs a FILE")
    began = time.perf_counter()
    found = all_runs(names, given.limit, lambda line: print(line, file=sys.stderr))
    print(f"{len(found)} runs in {time.perf_counter() - began:.0f} s with {hn.__file__}", file=sys.stderr)
    if given.command == "record":
        given.file.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{json.dumps(name)}: {json.dumps(record)}" for name, record in found.items()]
        given.file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return 0
    old = json.loads(given.file.read_text())
    wanted = {name: record for name, record in old.items() if not given.only or name in found}
    return report(wanted, found, given.all)


if __name__ == "__main__":
    sys.exit(main())

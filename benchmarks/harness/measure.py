"""Run all codes on a problem in turns, and record the results.

Each adapter is a process of its own; they answer one at a time, so that the codes of all peers are
interleaved and none disturbs another. A code gets finer levels until a run takes longer than a limit or its
error is small enough. A process that does not answer in time is killed and started anew, and the code goes no
further.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

import numpy as np

from harness import problems
from harness.export import LARGEST, constraints, export, measurable

HERE = Path(__file__).parents[1]
ENVIRONMENT = HERE / ".peers"
RESULTS = HERE / "results" / "peers.csv"
PEERS = {
    "holonome": "holonome",
    "sundials": "sundials",
    "sundials -O3": "sundials",
    "fortran": "fortran",
    "scikit-sundae": "scikit_sundae",
    "scipy_dae": "scipy_dae",
    "scipy": "scipy_ivp",
    "diffrax": "diffrax",
    "exudyn": "exudyn",
    "mujoco": "mujoco",
}
"""Names of the peers, and their adapters. The second SUNDIALS is a build with optimisation in
.peers/sundials, which `setup` makes of the sources; Debian's has none.
"""
COLUMNS = [
    "kind",
    "problem",
    "peer",
    "code",
    "level",
    "error",
    "median_us",
    "low_us",
    "high_us",
    "runs",
    "steps",
    "evaluations",
    "kernel_ns",
    "g",
    "Gv",
    "I",
    "g_between",
    "Gv_between",
    "message",
    "version",
    "date",
    "machine",
    "python",
]
FINE_ENOUGH = 1e-10
SHORT, BLOCK = 5e-3, 5e-3
"""Runs shorter than this many seconds are timed in blocks of so many seconds; the median of a block counts as
one run.
"""
BETWEEN = 499


@dataclass(frozen=True)
class Limits:
    """How long things may take, in seconds: all repetitions at one level, one run before finer levels are
    left out, and one answer; how often, at how many levels, and whether drift is measured, too.
    """

    level: float = 0.05
    run: float = 0.8
    answer: float = 4.0
    repeats: int = 11
    levels: int = 1000
    drift: bool = True


QUICK = Limits(level=0.005, run=0.15, answer=3.0, repeats=1, levels=4)
CORE = ("pendulum", "slider_crank", "andrews")
"""Problems with two levels for each power of ten; the others have one."""


class NoAnswer(Exception):
    """A process died or did not answer in time."""


class Server:
    """One adapter in its process."""

    def __init__(self, peer: str, environment: dict[str, str] | None = None) -> None:
        self.peer, self._extra, self._folder, self.starts = peer, environment or {}, None, 0
        self._start()

    def _start(self) -> None:
        self.starts += 1
        ours = self.peer == "holonome"
        python = Path(sys.executable) if ours else ENVIRONMENT / "bin" / "python"
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        path = os.pathsep.join(
            [str(HERE), *([os.environ["PYTHONPATH"]] if ours and "PYTHONPATH" in os.environ else [])]
        )
        more = {"SUNDIALS_DIR": str(ENVIRONMENT / "sundials")} if self.peer == "sundials -O3" else {}
        environment = (
            {key: value for key, value in os.environ.items() if key != "SUNDIALS_DIR"}
            | threads
            | {"PYTHONPATH": path}
            | more
            | self._extra
        )
        command = [str(python), "-m", "harness.server", PEERS[self.peer]]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=HERE,
            env=environment,
        )
        self._rest = b""
        hello = self._read(120.0)
        self.absent, self.version = hello.get("absent", ""), hello.get("version", "")

    def ask(self, patience: float, **request) -> dict:
        """The answer; raises NoAnswer, after which the process is a new one that knows the problem."""
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._read(patience)
        except (NoAnswer, BrokenPipeError) as error:
            self.close()
            self._start()
            if self._folder and request["do"] != "prepare":
                self.ask(120.0, do="prepare", folder=self._folder)
            raise NoAnswer(str(error) or "the process ended") from None
        if request["do"] == "prepare":
            self._folder = request["folder"]
        return answer

    def _read(self, patience: float) -> dict:
        stream, deadline = self._process.stdout.fileno(), time.monotonic() + patience
        while b"\n" not in self._rest:
            if not select.select([stream], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise NoAnswer(f"no answer in {patience:g} s")
            piece = os.read(stream, 1 << 20)
            if not piece:
                raise NoAnswer("the process ended")
            self._rest += piece
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@dataclass
class Runner:
    """One code on one problem."""

    server: Server
    name: str
    levels: list[float]
    kernel: float
    interpolates: bool
    compiles: float
    ended: bool = False
    known_to: int = 0
    rows: list[dict] = field(default_factory=list)

    def solve(self, level: float, limits: Limits, block: float = 0.0) -> dict:
        """One run; the first one of a process may have to compile and gets more time."""
        patience, self.known_to = (
            limits.answer + (0 if self.known_to == self.server.starts else self.compiles),
            self.server.starts,
        )
        try:
            return self.server.ask(patience, do="solve", code=self.name, level=level, block=block)
        except NoAnswer as error:
            return {
                "y": None,
                "seconds": np.nan,
                "steps": 0,
                "evaluations": 0,
                "message": str(error),
                "silent": True,
            }


def measure(names: Iterable[str], peers: Iterable[str], limits: Limits, say=print) -> Iterator[dict]:
    """All rows of all problems."""
    servers = {peer: Server(peer) for peer in peers if peer == "holonome" or (ENVIRONMENT / "bin").exists()}
    try:
        for peer, server in servers.items():
            if server.absent:
                yield {"kind": "absent", "peer": peer, "message": server.absent}
        present = {peer: server for peer, server in servers.items() if not server.absent}
        yield from (
            {"kind": "version", "peer": peer, "version": server.version} for peer, server in present.items()
        )
        for name in names:
            yield from _problem(name, present, limits, say)
    finally:
        for server in servers.values():
            server.close()


def _problem(name: str, servers: dict[str, Server], limits: Limits, say) -> Iterator[dict]:
    problem, folder = problems.get(name), ENVIRONMENT / "problems" / name
    say(f"{name}: prepare")
    export(problem, folder)
    reference = problem.reference()
    observed = np.array(json.loads((folder / "problem.json").read_text())["observed"])
    runners: list[Runner] = []
    if problem.links > LARGEST:
        limits = replace(limits, run=4 * limits.run, answer=3 * limits.answer)
    for peer, server in servers.items():
        if peer == "sundials -O3" and (problem.links or problem.motion == problems.SMOOTH):
            continue
        own = folder.with_name(f"{name}-O3") if peer == "sundials -O3" else folder
        if own != folder and not own.exists():
            shutil.copytree(folder, own, ignore=shutil.ignore_patterns("*.so"))
        try:
            answer = server.ask(300.0, do="prepare", folder=str(own))
        except NoAnswer as error:
            answer = {"failed": str(error)}
        if "codes" not in answer:
            yield {
                "kind": "refused" if "refused" in answer else "failed",
                "problem": name,
                "peer": peer,
                "message": answer.get("refused") or answer["failed"],
            }
            continue
        for code, about in answer["codes"].items():
            runners.append(
                Runner(
                    server,
                    code,
                    about["levels"][:: 1 if name in CORE else 2][: limits.levels],
                    about["kernel"],
                    about["interpolates"],
                    about["compiles"],
                )
            )
    for k in range(max(len(runner.levels) for runner in runners)):
        active = [runner for runner in runners if k < len(runner.levels) and not runner.ended]
        say(f"{name}: level {k + 1}, {len(active)} codes")
        yield from _level(problem, name, k, active, reference, observed, limits)
    for runner in runners if limits.drift else ():
        say(f"{name}: drift of {runner.server.peer} {runner.name}")
        yield from _drift(problem, name, runner, observed, limits)


def _level(
    problem: problems.Problem,
    name: str,
    k: int,
    active: list[Runner],
    reference: np.ndarray,
    observed: np.ndarray,
    limits: Limits,
) -> Iterator[dict]:
    """One run of each code that is not counted, unless it took long; then repetitions in turns."""
    first = {id(runner): runner.solve(runner.levels[k], limits) for runner in active}
    if k == 0:
        first = {
            id(runner): answer if answer.get("silent") else runner.solve(runner.levels[k], limits)
            for runner, answer in ((runner, first[id(runner)]) for runner in active)
        }
    times: dict[int, list[float]] = {id(runner): [] for runner in active}
    wanted = {}
    for runner in active:
        seconds = first[id(runner)].get("seconds", np.nan)
        wanted[id(runner)] = (
            0
            if not np.isfinite(seconds) or first[id(runner)]["y"] is None
            else int(np.clip(limits.level / max(seconds, 1e-9), 0, limits.repeats))
        )
    for turn in range(limits.repeats):
        for runner in active:
            if turn < wanted[id(runner)]:
                again = runner.solve(
                    runner.levels[k], limits, BLOCK if first[id(runner)]["seconds"] < SHORT else 0.0
                )
                times[id(runner)].append(again.get("seconds", np.nan))
    for runner in active:
        answer = first[id(runner)]
        if "failed" in answer:
            answer = {"y": None, "seconds": np.nan, "steps": 0, "evaluations": 0, "message": answer["failed"]}
        seconds = [s for s in times[id(runner)] if np.isfinite(s)] or [answer["seconds"]]
        error = np.nan if answer["y"] is None else problem.error(np.array(answer["y"])[observed], reference)
        row = {
            "kind": "run",
            "problem": name,
            "peer": runner.server.peer,
            "code": runner.name,
            "level": runner.levels[k],
            "error": error,
            "runs": len(seconds),
        }
        row |= {
            "steps": answer["steps"],
            "evaluations": answer["evaluations"],
            "kernel_ns": 1e9 * runner.kernel,
            "message": answer["message"],
        }
        row |= dict(
            zip(("low_us", "median_us", "high_us"), 1e6 * np.percentile(seconds, [25, 50, 75]), strict=True)
        )
        runner.rows.append(row)
        runner.ended = (
            bool(answer.get("silent"))
            or answer["seconds"] > limits.run
            or (error < FINE_ENOUGH and problem.motion == problems.ALL)
            or _hopeless(runner.rows)
        )
        yield row


def _hopeless(rows: list[dict]) -> bool:
    """Whether the last four levels failed."""
    return len(rows) >= 4 and all(not np.isfinite(row["error"]) for row in rows[-4:])


def _drift(
    problem: problems.Problem, name: str, runner: Runner, observed: np.ndarray, limits: Limits
) -> Iterator[dict]:
    """Largest |g| and |Gv| after steps and between them, at the level whose error is nearest to 1e-6, or the
    smallest.
    """
    good = [row for row in runner.rows if np.isfinite(row["error"])]
    if not good or not measurable(problem) or problem.links > 100:
        return
    nearest = min(good, key=lambda row: abs(np.log(max(row["error"], 1e-16) / 1e-6)))
    row = {
        "kind": "drift",
        "problem": name,
        "peer": runner.server.peer,
        "code": runner.name,
        "level": nearest["level"],
        "error": nearest["error"],
    }
    evaluate, n = constraints(problem), problem.q0.size
    for times, columns in (
        (None, ("g", "Gv", "I")),
        (np.linspace(0, problem.end, BETWEEN + 2)[1:-1], ("g_between", "Gv_between")),
    ):
        if times is not None and not runner.interpolates:
            continue
        try:
            answer = runner.server.ask(
                limits.answer + runner.compiles,
                do="states",
                code=runner.name,
                level=nearest["level"],
                times=None if times is None else times.tolist(),
            )
        except NoAnswer:
            continue
        if not answer.get("states"):
            continue
        states = np.array(answer["states"])[:, observed]
        violations = evaluate(
            0.0, states[:, :n].T, states[:, n:].T
        )  # constraints of these problems do not depend on time
        row |= {
            column: float(np.max(np.abs(np.asarray(value)), initial=0.0))
            for column, value in zip(columns, violations, strict=False)
        }
    yield row


def first_results(
    peers: Iterable[str], name: str = "slider_crank", tolerance: float = 1e-6, say=print
) -> Iterator[dict]:
    """Seconds from the start of a process to its first result: on a fresh machine, for a new model, and for a
    known one; what gcc and Numba compile is part of it.
    """
    problem = problems.get(name)
    for peer in peers:
        with tempfile.TemporaryDirectory() as scratch:
            caches = {
                "HOLONOME_CACHE": f"{scratch}/models",
                "NUMBA_CACHE_DIR": f"{scratch}/numba",
                "HOLONOME_QUIET": "1",
            }
            for when in ("fresh", "new", "known"):
                if when == "new":
                    for folder in (f"{scratch}/models", f"{scratch}/{name}"):
                        shutil.rmtree(folder, ignore_errors=True)
                export(problem, Path(scratch) / name)
                say(f"first result of {peer}: {when}")
                begin = time.perf_counter()
                server = Server(peer, caches)
                try:
                    if server.absent:
                        break
                    codes = server.ask(300.0, do="prepare", folder=f"{scratch}/{name}").get("codes")
                    if not codes:
                        break
                    code, about = next(iter(codes.items()))
                    level = tolerance if about["levels"][0] < 1 else 1000.0
                    server.ask(300.0, do="solve", code=code, level=level, block=0.0)
                    yield {
                        "kind": f"first, {when}",
                        "problem": name,
                        "peer": peer,
                        "code": code,
                        "level": level,
                        "median_us": 1e6 * (time.perf_counter() - begin),
                        "runs": 1,
                    }
                except NoAnswer as error:
                    yield {"kind": f"first, {when}", "problem": name, "peer": peer, "message": str(error)}
                finally:
                    server.close()


def write(rows: Iterable[dict], target: Path) -> None:
    """All rows with date, machine and versions; numbers with four digits."""
    here = {"date": date.today().isoformat(), "machine": machine(), "python": platform.python_version()}
    versions = {}
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            if row["kind"] == "version":
                versions[row["peer"]] = row["version"]
            entry = here | {"version": versions.get(row["peer"], "")} | row
            writer.writerow(
                {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in entry.items()}
            )
            file.flush()


def machine() -> str:
    """Name and number of the processors."""
    info = Path("/proc/cpuinfo")
    names = (
        [
            line.split(":")[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        if info.exists()
        else []
    )
    return (
        f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )

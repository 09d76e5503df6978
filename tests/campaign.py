"""A campaign of random systems: each is solved by several methods and compared with an independent reference.

``python tests/campaign.py --systems 10000 --seed 0 --minutes 600 --out campaign.jsonl --jobs 1`` appends a
line of JSON for each system and skips those that are there; ``python tests/campaign.py report FILE`` prints
the table of docs/promises.md; ``python tests/campaign.py show 17`` solves one system again and tells all.
Workers are processes of their own, so that crashes and hangs are recorded and nothing else happens.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORKER = [sys.executable, __file__, "work"]
BATCH = 200
"""Systems for each worker."""

LONGEST = 120.0
"""Seconds without a word from a worker: it hangs."""

RESULTS = ("right", "unknown", "failed", "refused", "raw", "silent", "crash", "hang")
OTHERS_EACH = 2
"""How many methods take part besides the default."""


ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

# In the worker


def methods_of(seed: int) -> list[str]:
    """The default, and others in turn."""
    import holonome as hn

    names = [name for name, entry in hn.methods().items() if not entry.fixed_step]
    others = [names[(OTHERS_EACH * seed + i) % len(names)] for i in range(OTHERS_EACH)]
    return ["auto", *others]


def tolerance_of(seed: int) -> float:
    return (1e-6, 1e-6, 1e-8, 1e-5)[seed % 4]


def trials(seed: int, skip: list[str]) -> Iterator[dict[str, Any]]:
    """What happens to a system, piece by piece: before each run its name, behind it the outcome."""
    import numpy as np

    from random_systems.cases import Case
    from random_systems.reference import NoReference
    from random_systems.verdict import kind_of, outcome

    began = time.perf_counter()
    yield {"seed": seed, "begins": "reference"}
    try:
        case = Case(seed)
    except NoReference as reason:
        yield {"seed": seed, "left_out": str(reason)}
        return
    reference, reason = None, ""
    try:
        reference = case.reference(np.linspace(0, case.t_end, 6))
    except (NoReference, np.linalg.LinAlgError) as error:
        reason = str(error)
    growth = float(f"{reference.growth[-1]:.2g}") if reference else None
    seconds = round(time.perf_counter() - began, 1)
    known = {"structure": case.structure.name, "growth": growth, "no_reference": reason, "seconds": seconds}
    yield {"seed": seed, **known}
    yield {"seed": seed, "begins": "system"}
    try:
        system = case.system()
    except Exception as error:
        words = f"{type(error).__name__}: {error}"
        yield {"seed": seed, "method": "system", "result": kind_of(error), "words": words}
        return
    for method in methods_of(seed):
        if method not in skip:
            yield {"seed": seed, "begins": method}
            yield {
                "seed": seed,
                "method": method,
                **outcome(case, system, method, tolerance_of(seed), reference),
            }


def work() -> None:
    """Do the tasks [[seed, methods to skip], …] on stdin, and tell about each on what was stdout."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for seed, skip in json.load(sys.stdin):
        for event in trials(seed, skip):
            print(json.dumps(event), file=out, flush=True)
        print(json.dumps({"seed": seed, "done": True}), file=out, flush=True)


# In the driver


def events(tasks: list) -> Iterator[dict[str, Any]]:
    """What a worker tells; at its end {"ended": "crash" or "hang"} if it was not a good one."""
    kernels = tempfile.TemporaryDirectory(prefix="holonome-", ignore_cleanup_errors=True)
    settings = {"HOLONOME_CACHE": kernels.name, "HOLONOME_QUIET": "1", **ONE_THREAD}
    worker = subprocess.Popen(
        WORKER,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | settings,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    with worker.stdin as stdin:
        json.dump(tasks, stdin)
    lines: queue.Queue = queue.Queue()
    stdout = worker.stdout

    def read() -> None:
        for line in stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        while (line := lines.get(timeout=LONGEST)) is not None:
            yield json.loads(line)
        if worker.wait() != 0:
            yield {"ended": "crash", "words": f"the worker ended with {worker.returncode}"}
    except queue.Empty:
        yield {"ended": "hang", "words": f"nothing for {LONGEST:.0f} s"}
    finally:
        worker.kill()
        worker.wait()
        stdout.close()
        kernels.cleanup()


def campaign(seeds: list[int]) -> Iterator[dict[str, Any]]:
    """A record of each system, with as many workers as it takes."""
    tasks = [[seed, []] for seed in seeds]
    record: dict[str, Any] = {}
    while tasks:
        at = ""
        for event in events(tasks):
            if "ended" in event:
                result = {"result": event["ended"], "words": event["words"]}
                if at in ("reference", "system", ""):
                    yield {"seed": tasks[0][0], "outcomes": {at or "start": result}}
                    record, tasks = {}, tasks[1:]
                else:
                    record["outcomes"][at] = result
                    tasks[0][1] = list(record["outcomes"])
            elif "begins" in event:
                at = event["begins"]
            elif "method" in event:
                record["outcomes"][event["method"]] = {
                    key: event[key] for key in ("result", "words", "error", "seconds") if key in event
                }
            elif "done" in event:
                yield record
                record, tasks, at = {}, tasks[1:], ""
            else:
                record = event | {"outcomes": record.get("outcomes", {})}


def done_seeds(out: Path) -> set[int]:
    if not out.exists():
        return set()
    return {record["seed"] for record in read_records(out)}


def read_records(out: Path) -> list[dict[str, Any]]:
    """All whole lines; the last may have been cut off."""
    records = []
    for line in out.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


def run(arguments: argparse.Namespace) -> None:
    out = Path(arguments.out)
    known = done_seeds(out)
    seeds = [seed for seed in range(arguments.seed, arguments.seed + arguments.systems) if seed not in known]
    batches: queue.Queue = queue.Queue()
    for i in range(0, len(seeds), BATCH):
        batches.put(seeds[i : i + BATCH])
    end, lock = time.monotonic() + 60 * arguments.minutes, threading.Lock()

    def serve() -> None:
        while time.monotonic() < end:
            try:
                batch = batches.get_nowait()
            except queue.Empty:
                return
            for record in campaign(batch):
                with lock, out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
                if time.monotonic() > end:
                    return

    threads = [threading.Thread(target=serve) for _ in range(arguments.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def bluntness(systems: list[dict[str, Any]]) -> str:
    """How many comparisons are not sharp, because errors grow so much in the motion itself."""
    from conformance.methods import subjects
    from random_systems.verdict import GENEROUS

    factor = GENEROUS * subjects()["auto"].promise.error
    allowed = [factor * tolerance_of(record["seed"]) * (record.get("growth") or 0.0) for record in systems]
    one, ten = (sum(error > limit for error in allowed) for limit in (0.01, 0.1))
    return (
        f"In {one} of them the default could be off by more than 1 % unnoticed, in {ten} by more than 10 %."
    )


def report(out: Path) -> str:
    """The table, in Markdown."""
    records = {record["seed"]: record for record in read_records(out)}.values()
    counts: dict[str, Counter] = defaultdict(Counter)
    for record in records:
        for method, found in record.get("outcomes", {}).items():
            counts[method][found["result"]] += 1
    systems = [record for record in records if "structure" in record]
    structures = {record["structure"] for record in systems}
    solves = sum(sum(count.values()) for count in counts.values())
    order = ["auto", *sorted(set(counts) - {"auto"})]
    lines = [
        f"{len(systems)} systems of {len(structures)} structures, {solves} runs. {bluntness(systems)}",
        "",
        "| method | runs | " + " | ".join(RESULTS) + " |",
        "| --- |" + " --- |" * (1 + len(RESULTS)),
    ]
    for method in order:
        cells = [str(counts[method][result]) for result in RESULTS]
        lines.append(f"| {method} | {sum(counts[method].values())} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def show(seed: int) -> None:
    """All about one system, in this process."""
    for event in trials(seed, []):
        print(json.dumps(event))


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "work":
        return work()
    if command == "report":
        return print(report(Path(sys.argv[2])))
    if command == "show":
        return show(int(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first system; the others follow")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    return run(parser.parse_args())


if __name__ == "__main__":
    main()

"""A study that is killed again and again: slider-cranks with three varied parameters into a zarr store.

    python benchmarks/ensembles_store.py [--members N] [--kills N] [--threads N] [--out FILE] [--quick]

An undisturbed run comes first; it gives the digest of the results and the time within which the others are
killed with SIGKILL, at random moments.  Then the killed study is resumed to its end.  The memory of a run is
that of its process when a fifth is done and at the end, of which the results of all members are a part from
the beginning.  Figures of the machine that it runs on; a million members need about a minute on two cores.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from harness.options import Options, stamp
from harness.tables import write_rows

STUDY = """
import hashlib, json, resource, sys, time
import holonome as hn

folder, members, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
made = hn.mechanisms.slider_crank()
over = hn.ensembles.random(members, {"m1": (0.5, 1.5), "m2": (0.5, 1.5), "gravity": (9, 10)})
keep = {"x": lambda q: q[3], "energy": hn.ensembles.mean(lambda v: v @ v)}
e = hn.ensemble(made.system, (0, 10), made.q0, made.v0, over=over, keep=keep, store=folder, threads=threads)
memory = []

def resident(fraction, text):
    if fraction >= 0.2:
        with open("/proc/self/statm") as file:
            memory.append(int(file.read().split()[1]) * resource.getpagesize())

print("ready", flush=True)
begin = time.perf_counter()
ds = e.run(progress=resident)
took, digest = time.perf_counter() - begin, hashlib.sha256()
for name in sorted(ds.data_vars):
    digest.update(name.encode() + ds[name].values.tobytes())
print(json.dumps({"seconds": took, "digest": digest.hexdigest(), "memory": [memory[0], memory[-1]],
                  "failed": int((~ds.success).sum())}))
"""


def command(folder: Path, members: int, threads: int) -> list[str]:
    return [sys.executable, "-c", STUDY, str(folder), str(members), str(threads)]


def undisturbed(folder: Path, members: int, threads: int) -> dict[str, Any]:
    run = subprocess.run(command(folder, members, threads), check=True, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def kill(folder: Path, members: int, threads: int, after: float) -> float:
    """Begin, and end by SIGKILL; the part of the study that is done."""
    with subprocess.Popen(command(folder, members, threads), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
    about = folder / "progress" / "study.json"
    if not about.exists():
        return 0.0
    chunk = json.loads(about.read_text())["chunk"]
    return min(1.0, len(list(about.parent.glob("done-*"))) * chunk / members)


def measured(members: int, kills: int, threads: int) -> dict[str, Any]:
    random = np.random.default_rng()
    with tempfile.TemporaryDirectory() as place:
        whole = undisturbed(Path(place) / "whole", members, threads)
        done = []
        for _ in range(kills):
            after = float(random.uniform(0.02, 2 * whole["seconds"] / max(kills, 1)))
            done.append(kill(Path(place) / "killed", members, threads, after))
        resumed = undisturbed(Path(place) / "killed", members, threads)
    first, last = whole["memory"]
    return {
        "members": members,
        "threads": threads,
        "seconds": f"{whole['seconds']:.2f}",
        "members/s": f"{members / whole['seconds']:.0f}",
        "kills": kills,
        "done after kills": " ".join(f"{part:.2f}" for part in done),
        "identical": resumed["digest"] == whole["digest"],
        "failed": whole["failed"],
        "MB at a fifth": f"{first / 1e6:.0f}",
        "MB at the end": f"{last / 1e6:.0f}",
    }


def main() -> None:
    parser = Options(__doc__, "ensembles_store.csv")
    parser.add_argument("--members", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.given()
    if options.quick:
        options.members, options.kills = 3_000, 3
    row = measured(options.members, options.kills, options.threads)
    print(row)
    write_rows(options.out, [row | stamp()])
    if not row["identical"]:
        raise SystemExit("the resumed study differs from the undisturbed one")


if __name__ == "__main__":
    main()

"""How long a user waits for a Stewart platform: from the first line, in a new process, to the first result.

    python benchmarks/bodies/first_result.py [--rounds N]

The engine is there, as after any run before, but nothing of this model. Times are those of the processor,
since others may be using it too; of all rounds, each section's least.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

TESTS = Path(__file__).parents[2] / "tests" / "bodies"
TOTAL = "from the first line to the first result"
PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
times = [time.process_time()]
import holonome as hn, restated
from holonome import Mechanism, solve
times.append(time.process_time())
model = restated.REFERENCES["stewart"]["model"]
m = restated.mechanism(model)
m.system
times.append(time.process_time())
sol = hn.solve(m, (0, 1), start=restated.start(model), speed=restated.speed(model))
times.append(time.process_time())
assert sol.success and max(sol.drift) < 1e-12
import json
print(json.dumps(times))
"""
SECTIONS = "imports", "equations", "assembly, compiling and the run"


def first_result(rounds: int) -> dict[str, float]:
    """Seconds of each section and of all."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found: list[list[float]] = []
    for _ in range(rounds + 1):  # the first, which may have to compile the engine, does not count
        with tempfile.TemporaryDirectory() as cache:
            run = subprocess.run(
                [sys.executable, "-c", PROGRAM, str(TESTS)],
                env=environment | {"HOLONOME_CACHE": cache, "HOLONOME_QUIET": "1"},
                check=True,
                capture_output=True,
                text=True,
            )
        times = json.loads(run.stdout)
        found.append([b - a for a, b in pairwise(times)])
    least = [min(column) for column in zip(*found[1:], strict=True)]
    whole = min(sum(row) for row in found[1:])
    return dict(zip(SECTIONS, least, strict=True)) | {TOTAL: whole}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    for section, seconds in first_result(parser.parse_args().rounds).items():
        print(f"{section:45}{seconds:6.2f} s")


if __name__ == "__main__":
    main()

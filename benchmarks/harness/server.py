"""One adapter in a process of its own, ``python -m harness.server adapter``, asked line by line in JSON.

{"do": "prepare", "folder": …}: the problem; answers with the codes and their levels. {"do": "solve", "code":
…, "level": …, "block": s}: the median of runs that take s seconds together, at least one; for s > 0 after
`WARM` that do not count, because another process has just filled the processor's caches. {"do": "states",
"code": …, "level": …, "times": […] or null}: see `Code.states`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from harness.protocol import CannotState, Code, Outcome, Problem, end_with_parent, single_thread

WARM, MOST = 3, 50


def block(code: Code, level: float, seconds: float) -> Outcome:
    """One run, or the median of a block of them."""
    if seconds == 0:
        return code.solve(level)
    for _ in range(WARM):
        code.solve(level)
    outcomes, end = [code.solve(level)], time.perf_counter() + seconds
    while time.perf_counter() < end and len(outcomes) < MOST:
        outcomes.append(code.solve(level))
    return replace(outcomes[-1], seconds=float(np.median([outcome.seconds for outcome in outcomes])))


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints
    single_thread()
    end_with_parent()
    codes: dict = {}

    def answer(request: dict) -> dict:
        match request["do"]:
            case "prepare":
                problem = Problem.load(Path(request["folder"]))
                codes.clear()
                codes.update(adapter.codes(problem))
                return {
                    "codes": {
                        name: {
                            "levels": [float(level) for level in code.levels],
                            "kernel": code.kernel,
                            "interpolates": code.interpolates,
                            "compiles": code.compiles,
                        }
                        for name, code in codes.items()
                    }
                }
            case "solve":
                outcome = block(codes[request["code"]], request["level"], request["block"])
                return vars(outcome) | {"y": None if outcome.y is None else np.asarray(outcome.y).tolist()}
            case "states":
                times = request["times"]
                states = codes[request["code"]].states(
                    request["level"], None if times is None else np.array(times)
                )
                return {"states": np.asarray(states).tolist()}
        raise ValueError(request["do"])

    def send(message: dict) -> None:
        print(json.dumps(message), file=answers, flush=True)

    try:
        adapter = importlib.import_module(f"adapters.{sys.argv[1]}")
        send({"version": adapter.version()})
    except Exception as error:
        send({"absent": f"{type(error).__name__}: {error}"})
        return
    for line in sys.stdin:
        try:
            send(answer(json.loads(line)))
        except CannotState as error:
            send({"refused": str(error)})
        except Exception as error:
            send({"failed": f"{type(error).__name__}: {error}".split("\n")[0]})


if __name__ == "__main__":
    main()

"""One adapter in a process of its own, ``python -m harness.server adapter``, asked line by line in JSON.

{"do": "prepare", "folder": …}: the problem; answers with the codes and their levels.
{"do": "solve", "code": …, "level": …, "warm": k}: one timed run, after k that are not, because another process has just filled the processor's caches.
{"do": "states", "code": …, "level": …, "times": […] or null}: see `Code.states`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np

from harness.protocol import CannotState, Problem, end_with_parent, single_thread


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
                return {"codes": {name: {"levels": [float(level) for level in code.levels], "kernel": code.kernel, "interpolates": code.interpolates, "compiles": code.compiles}
                                  for name, code in codes.items()}}
            case "solve":
                for _ in range(request["warm"]):
                    codes[request["code"]].solve(request["level"])
                outcome = codes[request["code"]].solve(request["level"])
                return vars(outcome) | {"y": None if outcome.y is None else np.asarray(outcome.y).tolist()}
            case "states":
                times = request["times"]
                states = codes[request["code"]].states(request["level"], None if times is None else np.array(times))
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

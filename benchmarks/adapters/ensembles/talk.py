"""How a peer of benchmarks/ensembles_peers.py is asked: a task as JSON on the first line, then a tolerance on
each; it answers with the seconds and the ends of the members that are checked.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any


def run(make: Callable[[dict], Callable[[float], Any] | None]) -> None:
    """``make`` gives, for a task, what computes the ends of all members, or None where it cannot be stated;
    with an attribute ``scale``, it computes only one of so many members.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    task = json.loads(sys.stdin.readline())
    solve = make(task)
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        if solve is None:
            print("null", file=answers, flush=True)
            continue
        begin = time.perf_counter()
        ends = solve(json.loads(line))
        took = (time.perf_counter() - begin) * getattr(solve, "scale", 1.0)
        found = [[x if math.isfinite(x) else 1e300 for x in map(float, ends[i])] for i in task["checked"]]
        print(json.dumps({"seconds": took, "ends": found}), file=answers, flush=True)


def evaluated(task: dict, unary: dict, binary: dict, constant: Callable, t: Any, y: Any, p: Any) -> list:
    """The rates, by the instructions of the task, with somebody's operations."""
    values: list[Any] = []
    for name, *given in task["program"]["operations"]:
        if name == "input":
            value = t if given[0] == 0 else (y, None, p)[given[0] - 1][given[1]]
        elif name == "const":
            value = constant(given[0])
        elif len(given) == 1:
            value = unary[name](values[given[0]])
        else:
            value = binary[name](values[given[0]], values[given[1]])
        values.append(value)
    return [values[i] for i in task["program"]["outputs"][0]["operations"]]


BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "constpow": lambda a, b: a**b,
}


def unary(library: Any) -> dict[str, Callable]:
    plain = {
        "neg": lambda a: -a,
        "sq": lambda a: a * a,
        "twice": lambda a: a + a,
        "inv": lambda a: 1.0 / a,
    }
    return plain | {name: getattr(library, name) for name in ("sqrt", "sin", "cos", "tan", "exp")}

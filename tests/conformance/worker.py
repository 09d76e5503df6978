"""Runs cells of one kind in this process and reports each as a line of JSON.

``python -m conformance.worker KIND`` takes the cells, [[method, option], ...], as JSON from stdin;
``python -m conformance.worker KIND METHOD OPTION`` runs one cell and shows its traceback.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from conformance.cells import Cell, Refused, Stopped
from conformance.methods import subjects
from conformance.options import OPTIONS, applies


def outcome(kind: str, method: str, option: str) -> dict[str, Any]:
    """What becomes of a cell: "passed", "refused", "stopped", "failed" or "does not apply", and why."""
    began = time.perf_counter()
    cell = Cell(kind, subjects()[method])
    result, words = "passed", ""
    if not applies(cell, option):
        return {"method": method, "option": option, "result": "does not apply"}
    try:
        OPTIONS[option](cell)
    except Refused as refusal:
        result, words = "refused", str(refusal)
    except Stopped as stop:
        result, words = "stopped", str(stop)
    except AssertionError as broken:
        result, words = "failed", str(broken)
    except BaseException as error:
        result, words = "failed", f"{type(error).__name__}: {error}"
    bounds = {name: round(size, 4) for name, size in cell.bounds.items()}
    return {
        "method": method,
        "option": option,
        "result": result,
        "words": words,
        "bounds": bounds,
        "seconds": round(time.perf_counter() - began, 4),
    }


def main() -> None:
    kind = sys.argv[1]
    if len(sys.argv) == 4:
        OPTIONS[sys.argv[3]](Cell(kind, subjects()[sys.argv[2]]))
        print("passed")
        return
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what anything else prints must not get between the lines
    cells = json.load(sys.stdin)
    print("ready", file=out, flush=True)
    for method, option in cells:
        print(json.dumps(outcome(kind, method, option)), file=out, flush=True)


if __name__ == "__main__":
    main()

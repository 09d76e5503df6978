"""Starts a worker, and attributes its death or its silence to the cell that was running."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

LIMIT = 240.0
"""Seconds after which a cell counts as hanging; a busy machine may have to compile the engine first."""


def outcomes(kind: str, cells: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """What became of each cell; after a crash or a hang the next one gets a new worker."""
    found: list[dict[str, Any]] = []
    while len(found) < len(cells):
        found += _one_worker(kind, cells[len(found) :])
    return found


def _one_worker(kind: str, cells: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "conformance.worker", kind]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as worker:
        lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=_pump, args=(worker.stdout, lines), daemon=True).start()
        threading.Thread(target=_drain, args=(worker.stderr, last_words := []), daemon=True).start()
        assert worker.stdin is not None
        worker.stdin.write(json.dumps(cells).encode())
        worker.stdin.close()
        if _answer(lines) != b"ready\n":
            worker.kill()
            said = b"".join(last_words).decode(errors="replace")
            raise RuntimeError(f"the worker does not start: {said}")
        for method, option in cells:
            line = _answer(lines)
            if line is None:
                worker.kill()
                yield _failure(method, option, f"hangs: no answer in {LIMIT:g} s")
                return
            if not line:
                code = worker.wait()
                said = b"".join(last_words[-5:]).decode(errors="replace").strip()
                yield _failure(method, option, f"crashes: return code {code} {said[-300:]}".rstrip())
                return
            yield json.loads(line)


def _answer(lines: queue.Queue[bytes]) -> bytes | None:
    """The next line; empty at the end, None if there is none in time."""
    try:
        return lines.get(timeout=LIMIT)
    except queue.Empty:
        return None


def _failure(method: str, option: str, words: str) -> dict[str, Any]:
    return {"method": method, "option": option, "result": "failed", "words": words}


def _pump(stream: Any, lines: queue.Queue[bytes]) -> None:
    """Lines as they come, and an empty one at the end."""
    for line in stream:
        lines.put(line)
    lines.put(b"")


def _drain(stream: Any, lines: list[bytes]) -> None:
    lines.extend(stream)

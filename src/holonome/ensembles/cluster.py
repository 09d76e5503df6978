"""Ensembles on a cluster, by a client of dask.distributed.

The study goes to every worker once and is compiled there once.  A task is a few chunks, so many that it takes
about a second; a task whose worker dies is given to another one.
"""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from holonome.ensembles.store import Store
from holonome.ensembles.study import Rows, Study, marching

_SECONDS, _AHEAD = 1.0, 3


def chunks_on_cluster(
    client: Any, study: Study, spans: Iterable[tuple[int, int]], store: Store | None
) -> Iterator[tuple[int, Rows]]:
    """The results of chunks, as they are done."""
    bare = replace(study, observed=replace(study.observed, frozen=None))
    # Under a name of its own: that of the same study before may still be on its way out.
    sent = client.scatter(bare if study.assembles else replace(bare, made=None), broadcast=True, hash=False)
    place = None if store is None else (str(store.folder), store.members, store.chunk)
    left, together = iter(spans), 1
    workers = max(len(client.scheduler_info()["workers"]), 1)
    queue = importlib.import_module("distributed").as_completed([])
    running = 0

    def submit() -> bool:
        task = list(itertools.islice(left, together))
        if task:
            queue.add(client.submit(compute, sent, task, place, pure=False))
        return bool(task)

    while running < _AHEAD * workers and submit():
        running += 1
    for future in queue:
        running -= 1
        found, seconds = future.result()
        future.release()
        if found:
            fitting = _SECONDS * len(found) / max(seconds, 1e-3)
            together = int(min(max(fitting, 1), 2 * together))
        while running < _AHEAD * workers and submit():
            running += 1
        yield from found


def compute(
    study: Study, spans: list[tuple[int, int]], place: tuple[str, int, int] | None
) -> tuple[list[tuple[int, Rows]], float]:
    """On a worker: some chunks, and the seconds that they took."""
    from pathlib import Path

    march = marching(study, 1)
    begin, found = time.perf_counter(), []
    store = None if place is None else Store(Path(place[0]), *place[1:])
    for first, count in spans:
        rows = study.rows(first, count, march)
        if store is not None:
            store.write(first, rows)
        found.append((first, rows))
    return found, time.perf_counter() - begin

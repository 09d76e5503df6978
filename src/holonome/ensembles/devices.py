"""Where ensembles are computed: this machine's cores, a graphics card, a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from holonome.arguments import shown
from holonome.ensembles.lane_loop import Job
from holonome.ensembles.store import Store
from holonome.ensembles.study import Rows, Study, lane_loop
from holonome.ensembles.study import marching as marching_on_lanes
from holonome.machine.announcements import say_once
from holonome.machine.interruption import Interruption

CPU, CUDA = "cpu", "cuda"


def checked_device(device: Any) -> Any:
    """The device, if it is one."""
    if (isinstance(device, str) and device in (CPU, CUDA)) or all(
        hasattr(device, name) for name in ("submit", "scheduler_info")
    ):
        return device
    raise ValueError(f"device: {shown(device)}; give 'cpu', 'cuda' or a dask.distributed.Client")


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def described(device: Any, study: Study, threads: int) -> str:
    """In words."""
    if study.obstacle:
        return f"one by one, by hn.solve, because of {study.obstacle}"
    if device == CUDA:
        from holonome.ensembles.card_loop import missing_on_cards

        missing = missing_on_cards(study)
        if not missing:
            return "on the graphics card, one thread a member"
        device = CPU
    if device == CPU:
        width = lane_loop(study).width
        return f"on {threads} thread{'s' * (threads != 1)}, {width} members at a time in each"
    return "on a cluster"


def marching(device: Any, study: Study, threads: int) -> Callable[[Job], None] | None:
    """What carries out jobs in this process."""
    if device == CUDA and not study.obstacle:
        from holonome.ensembles.card_loop import card_march

        try:
            return card_march(study)
        except NotImplementedError as error:
            say_once("card", f"computed on the processor, as on the card {error}")
    return marching_on_lanes(study, threads)


def chunks(
    device: Any, study: Study, spans: Iterable[tuple[int, int]], threads: int, store: Store | None
) -> Iterator[tuple[int, Rows]]:
    """The results of chunks, as they are done."""
    if device not in (CPU, CUDA):
        from holonome.ensembles.cluster import chunks_on_cluster

        yield from chunks_on_cluster(device, study, spans, store)
        return
    march = marching(device, study, threads)
    if store is None:
        for first, count in spans:
            yield first, study.rows(first, count, march, threads)
        return
    later = list(spans)
    for wait in (False, True):  # what another process computes is looked at last
        busy = []
        for first, count in later:
            with store.claimed(first, wait) as mine:
                if mine:
                    rows = study.rows(first, count, march, threads)
                    if not Interruption.requested:
                        store.write(first, rows)
                elif store.is_done(first):
                    rows = store.read(first)
                else:
                    busy.append((first, count))
                    continue
            yield first, rows
        later = busy

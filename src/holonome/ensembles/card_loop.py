"""The loop for many trajectories on a graphics card: one thread a trajectory, everything in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from holonome.ensembles.lane_loop import Job, Plan
from holonome.ensembles.study import Study
from holonome.machine.cuda import Card, CardArray, CardProgram, card
from holonome.machine.ptx import ptx

THREADS = 64
"""In a block.  A block ends with its slowest trajectory, so that small ones are better."""


class CardLoop:
    """The loop in the memory of the card."""

    def __init__(self, plan: Plan) -> None:
        assembly = plan.assembly(1, card=True)
        self.plan, self.card = plan, card()
        self.card.enter()
        self._program = CardProgram(ptx(assembly, supported(self.card)), "march")
        self.blocks = self._program.resident(THREADS) * self.card.processors

    def __call__(self, job: Job) -> None:
        """All trajectories of a job; threads take one after the other."""
        self.card.enter()
        given = (job.table, job.begin, job.stride, np.zeros(1, np.int64), job.settings, job.times)
        table, begin, stride, counter, settings, times = map(CardArray.of, given)
        last = CardArray(job.last.nbytes)
        out = CardArray.of(job.out) if job.times.size else CardArray(8)
        blocks = min(self.blocks, -(-job.members // THREADS))
        self._program.launch(
            max(blocks, 1),
            THREADS,
            table,
            begin,
            stride,
            job.members,
            counter,
            settings,
            times,
            job.times.size,
            out,
            last,
        )
        self.card.wait()
        last.read(job.last)
        if job.times.size:
            out.read(job.out)


def supported(found: Card) -> str:
    """The generation to write for: the newest one that LLVM knows and the card understands."""
    number = int(found.architecture.removeprefix("sm_"))
    return f"sm_{max(known for known in (50, 60, 70, 75, 80, 86, 89, 90) if known <= number)}"


def missing_on_cards(study: Study) -> str:
    """Which function the loop of a study needs that is not written out; empty if it has all."""
    try:
        study.plan().assembly(1, card=True)
    except NotImplementedError as error:
        return str(error)
    return ""


def card_march(study: Study) -> Callable[[Job], None]:
    """What carries out the jobs of a study on the card."""
    key = (study.observed.key, study.method)
    made: tuple[CardLoop, Any] = study.system.compiled.latest(
        "card loop", key, lambda: (CardLoop(study.plan()), study.observed)
    )
    made[1].require_unchanged()
    return made[0]

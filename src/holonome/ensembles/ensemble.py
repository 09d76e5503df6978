"""ensemble(): many runs of one system, as one object that explains itself and runs."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holonome.arguments import PATH, checked, read
from holonome.ensembles import devices
from holonome.ensembles.dataset import Collected, as_dataset
from holonome.ensembles.design import read_design
from holonome.ensembles.observed import read_observed
from holonome.ensembles.reading import FirstStart, refuse_times, refuse_twice, usual_chunk, wanted_times
from holonome.ensembles.reductions import Reduction, read_reduction
from holonome.ensembles.store import Store
from holonome.ensembles.study import Rows, Study
from holonome.machine.interruption import Interruption
from holonome.machine.progress import ProgressDisplay
from holonome.solving import arguments
from holonome.solving.methods import Method, resolve
from holonome.solving.tolerances import default_tolerance

_TRIAL = 64


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Many runs of one system, as :func:`holonome.ensemble` makes them.

    Attributes
    ----------
    members : int
        How many.
    dimensions : dict
        What they vary along, and how many values there are.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> e = hn.ensemble(pendulum, (0, 1), over={"gravity": np.linspace(9, 10, 5), "m": [1, 2]})
    >>> e.members, dict(e.dimensions)
    (10, {'gravity': 5, 'm': 2})
    """

    study: Study
    device: Any
    store: str | None
    chunk: int
    threads: int
    reduction: Reduction | None

    @property
    def members(self) -> int:
        return self.study.design.members

    @property
    def dimensions(self) -> Mapping[str, int]:
        return self.study.design.dimensions

    def explain(self) -> str:
        """What a run will do: members, chunks, memory, how it computes, and its time from a trial of a few.

        Examples
        --------
        >>> import holonome as hn
        >>> e = hn.ensemble(hn.mechanisms.pendulum(), (0, 1), over={"m": [1, 2]})
        >>> print(e.explain().partition(";")[0])
        2 members: m 2
        """
        study, design = self.study, self.study.design
        sizes = ", ".join(f"{name} {size}" for name, size in design.dimensions.items())
        lines = [f"{self.members} member{'s' * (self.members != 1)}: {sizes}; {self._chunks} chunks"]
        lines.append(f"results: {_bytes(self._result_bytes)}" + (" in all, reduced" * bool(self.reduction)))
        lines.append(devices.described(self.device, study, self.threads))
        if self.members:
            count = min(self.members, _TRIAL)
            march = devices.marching(self.device, study, self.threads)
            study.rows(0, min(count, 2), march)
            begin = time.perf_counter()
            rows = study.rows(0, count, march)
            took = time.perf_counter() - begin
            rate = count / max(took, 1e-9)
            lines.append(f"a trial of {count}: {rate:.3g} members/s, about {_seconds(self.members / rate)}")
            if rows.messages:
                causes = _causes(Counter(rows.messages.values()))
                lines.append(f"of these, {len(rows.messages)} failed: {causes}")
        return "\n".join(lines)

    @property
    def _chunks(self) -> int:
        return -(-self.members // self.chunk)

    @property
    def _result_bytes(self) -> int:
        times = 1 if self.study.times is None else self.study.times.size
        count = 1 if self.reduction else self.members
        own = times * self.study.observed.size + len(self.study.observed.names_along)
        return count * (8 * own + 32)

    def run(self, progress: bool | Callable[..., None] = False) -> Any:
        """Compute all members, or those that a store does not hold yet.

        Parameters
        ----------
        progress
            True shows how far it is, the rate, the time left and the failures by cause; a callable is
            called with the fraction done and a text.

        Returns
        -------
        xarray.Dataset
            What is kept, with coordinates by name.  ``message`` says why a member failed, whose values are
            NaN; ``end`` is the time at which each run ended and ``event`` the event that ended it, or −1.
            After Ctrl-C it holds what is done, and the message of the others is "not computed".

        Examples
        --------
        >>> import numpy as np, holonome as hn
        >>> pendulum = hn.mechanisms.pendulum()
        >>> lengths = np.array([0.99, 1.0, 1.01])
        >>> e = hn.ensemble(
        ...     pendulum, (0, 1), over={"length": ("case", lengths),
        ...     "q0": ("case", [[length, 0.0] for length in lengths])})
        >>> ds = e.run()
        >>> dict(ds.sizes), bool(ds.success.all())
        ({'case': 3, 'coordinate': 2}, True)
        """
        progress = checked("progress", progress)
        self.study.system.require_unchanged()
        self.study.observed.require_unchanged()
        store = None if self.store is None else Store.opened(self.store, self.study, self.chunk)
        collected = Collected(self.study, self.reduction, self.members, store)
        chunk = self.chunk if store is None else store.chunk
        with ProgressDisplay(progress, "ensemble") as show, Interruption() as interruption:
            report = _Report(show, self.members)
            for first, rows in self._computed(store, chunk, interruption):
                collected.add(first, rows)
                report.add(rows)
        return as_dataset(self.study, collected, self.reduction)

    def _computed(
        self, store: Store | None, chunk: int, interruption: type[Interruption]
    ) -> Iterator[tuple[int, Rows]]:
        """Chunks as they are done, each with its first member."""
        missing = range(0, self.members, chunk)
        if store is not None:
            missing = store.missing()  # asked once: another process may fill chunks meanwhile
            yield from store.held(missing)
        spans = ((first, min(chunk, self.members - first)) for first in missing)
        for first, rows in devices.chunks(self.device, self.study, spans, self.threads, store):
            if interruption.requested:
                return
            yield first, rows


class _Report:
    """Rate, time left and failures while an ensemble runs."""

    def __init__(self, show: Callable[..., None], members: int) -> None:
        self._show, self._members, self._done = show, max(members, 1), 0
        self._causes, self._begin = Counter[str](), time.perf_counter()

    def add(self, rows: Rows) -> None:
        self._done += rows.count
        self._causes.update(rows.messages.values())
        took = time.perf_counter() - self._begin
        rate = self._done / max(took, 1e-9)
        left = (self._members - self._done) / rate
        text = f"{rate:.3g} members/s, {_seconds(left)} left"
        failures = _causes(self._causes)
        self._show(self._done / self._members, text + (f"; failed: {failures}" if failures else ""))


def _causes(messages: Counter) -> str:
    """The most frequent causes of failures, with their numbers."""
    by_cause = Counter[str]()
    for message, count in messages.items():
        if message:
            by_cause[message.partition(":")[0].partition(" at t")[0][:60]] += count
    return ", ".join(f"{count} {cause}" for cause, count in by_cause.most_common(3))


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _bytes(count: int) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000  # pyright: ignore[reportAssignmentType]
    return f"{count:.3g} TB"


def ensemble(
    system: Any,
    t_span: Sequence[float],
    q0: Any = None,
    v0: Any = None,
    *,
    over: Mapping[str, Any],
    start: Any = None,
    speed: Any = None,
    s0: Any = None,
    t_eval: Any = None,
    keep: Any = None,
    until: Any = None,
    reduce: Any = None,
    members: int | None = None,
    seed: int = 0,
    method: str | Method = "auto",
    rtol: float = 1e-6,
    atol: Any = None,
    first_step: float | None = None,
    max_step: float = math.inf,
    max_steps: int = 5_000_000,
    parameters: dict[str, Any] | None = None,
    inputs: dict[str, Any] | None = None,
    repair: bool = False,
    store: Any = None,
    chunk: int | None = None,
    device: Any = "cpu",
    threads: int | None = None,
) -> Ensemble:
    """Many runs of one system: every combination of values, each as :func:`holonome.solve` computes it.

    Parameters
    ----------
    system, t_span, q0, v0, start, speed, s0
        What moves, from when to when, and from where, as for :func:`holonome.solve`, for all members alike
        but for what varies.
    over
        What varies: a dict of names and values.  A name is that of a parameter or input; "t0", "t_end",
        "q0", "v0", "s0"; or, of a mechanism, "start.A" and "speed.A" for a joint A.  Values are a list, which
        becomes a dimension of its own, so that several lists make a grid; ``(dimension, list)``, where those
        with the same dimension go together one by one; or a function of a random generator, drawn for each of
        ``members``.  There are samplers, too: ``over=hn.ensembles.sobol(1024, {"k": (1, 5)})``.
    t_eval
        Times at which the results are wanted, the same for all; those outside the time of a member are NaN.
        By default the end alone.
    keep
        What is kept: of "q", "v", "s" (default: all); or a dict of names and functions of any of t, q, v, s,
        p, a, lam; of these, :func:`~holonome.ensembles.maximum`, :func:`~holonome.ensembles.minimum`,
        :func:`~holonome.ensembles.mean` and :func:`~holonome.ensembles.first_passage` give one value for the
        whole run.
    until
        One or several events; a run ends where one of them occurs.
    reduce
        Keep no members, only their count, mean, standard deviation, least and largest value: True, or a dict
        with the edges of histograms by name.
    members, seed
        How many members functions in ``over`` are drawn for, and what their random numbers begin with.
    method, rtol, atol, first_step, max_step, max_steps, parameters, inputs, repair
        As for :func:`holonome.solve`.
    store
        A folder in which results are kept as zarr, chunk by chunk.  A later run computes only what is
        missing, whenever the earlier one was ended.
    chunk
        Members that are computed, and stored, together.
    device
        "cpu"; "cuda", a graphics card of NVIDIA; or a client of dask.distributed.
    threads
        On the CPU; by default as many as it has cores for this process.

    Returns
    -------
    Ensemble

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> e = hn.ensemble(
    ...     hn.mechanisms.pendulum(), (0, 2), over={"gravity": np.linspace(1, 10, 4)},
    ...     t_eval=[1, 2], keep={"height": lambda q: q[1]})
    >>> ds = e.run()
    >>> ds.height.dims, ds.height.shape
    (('gravity', 't'), (4, 2))
    """
    made = system if hasattr(system, "system") else None
    shared = arguments.checked_system(made.system if made else system, parameters, inputs, None)
    if not shared.mechanical:
        raise TypeError(
            "system: ensembles are of mechanical systems and ODEs, not of problems of index 2 or 3"
        )
    if shared.hidden_constraints:
        raise TypeError(
            "system: ensembles of a DAE are not available, as the start of each member follows from its own "
            "parameters; solve its members one by one"
        )
    shared.require_unchanged()
    by_name = hasattr(made, "joints") or getattr(made, "mechanism", None) is not None
    drawn = None if members is None else checked("members", members)
    design = read_design(shared, over, drawn, checked("seed", seed), by_name)
    observed = read_observed(shared, keep, until)
    refuse_twice(
        design,
        observed,
        q0=q0,
        v0=v0,
        s0=s0,
        start=start,
        speed=speed,
        parameters=parameters,
        inputs=inputs,
    )
    t0, t1 = arguments.time_span(t_span)
    first = FirstStart(shared, made, design, t0)
    y0 = first.state(q0, v0, s0, start, speed)
    refuse_times(design, t0, t1)
    rtol = arguments.relative_tolerance(rtol)
    if atol is None:
        atol = default_tolerance(shared, y0, t0, t1, rtol)
    else:
        atol = arguments.absolute_tolerances(atol, shared.n, shared.levels, len(shared.states))
    resolve(method, "all", shared)
    if t_eval is not None and not observed.quantities:
        raise ValueError("t_eval: nothing in keep is of a time, so it has no effect; leave it out")
    study = Study(
        system=shared,
        made=made,
        design=design,
        base=np.concatenate([[t0, t1], y0, shared.parameters.flat]),
        start=start,
        speed=speed,
        assembles=first.assembles,
        times=wanted_times(t_eval, design, t0, t1),
        observed=observed,
        method=method,
        rtol=rtol,
        atol=atol,
        first_step=checked("first_step", first_step),
        max_step=checked("max_step", max_step),
        max_steps=checked("max_steps", max_steps),
        repair=checked("repair", repair),
        at_rest=first.at_rest,
    )
    return Ensemble(
        study=study,
        device=devices.checked_device(device),
        store=None if store is None else os.fspath(read(PATH, "store", store)),
        chunk=usual_chunk(study, device) if chunk is None else checked("chunk", chunk),
        threads=devices.cores() if threads is None else checked("ensemble.threads", threads),
        reduction=read_reduction(reduce, study.observed, store),
    )

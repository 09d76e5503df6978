"""compare(): the same problem by several methods at several tolerances, measured against a tight reference."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.errors import HolonomeError
from holonome.problem.system import System
from holonome.results.solution import Solution, optional
from holonome.solving.methods import SMOOTH, Method, label, resolve
from holonome.solving.solve import solve, time_span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console, ConsoleOptions, RenderResult

METHODS = ("dopri5", "dop853", "bdf", "ggl", "cm")
RTOLS = (1e-3, 1e-5, 1e-7, 1e-9)
_TIGHT, _CHECK = 1e-13, 1e-11
_POINTS = 60
_PATIENCE = 0.3
"""Seconds for which a short run is repeated, so that its time is that of a computer which does nothing else.
"""


@dataclass(frozen=True)
class Trial:
    """One method at one tolerance.

    Attributes
    ----------
    method, rtol
        What was run.
    error, velocity_error : float
        Largest error of the positions (of the components of an ODE) and of the velocities at equally spaced
        times, relative to the largest of them.
    steps, rejections, evaluations, jacobians : int
        What it cost.
    seconds : float
        Time of the whole call of ``solve``, compiling apart; the best of some.
    drift, velocity_drift : float
        Largest |g| and |G v| at the steps.
    energy : float
        Largest change of the energy; NaN if it is not known.
    success, message
        As in the solution, or the error that was raised.
    """

    method: str
    rtol: float
    error: float = math.nan
    velocity_error: float = math.nan
    steps: int = 0
    rejections: int = 0
    evaluations: int = 0
    jacobians: int = 0
    seconds: float = math.nan
    drift: float = math.nan
    velocity_drift: float = math.nan
    energy: float = math.nan
    success: bool = False
    message: str = ""


@dataclass(frozen=True, eq=False)
class Comparison:
    """What :func:`holonome.compare` found: prints as a table.

    Attributes
    ----------
    rows : list of Trial
        Each method at each tolerance. One that failed says why in ``message``; its error is NaN.
    reference_error : float
        Estimated error of the reference, below which errors mean nothing; zero for a solution that was given,
        NaN if none could be computed.
    name : str
        The system's name.
    """

    name: str
    rows: list[Trial] = field(repr=False)
    reference_error: float = 0.0

    @property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(row.method for row in self.rows))

    def of(self, method: str) -> list[Trial]:
        """The rows of one method."""
        if method not in self.methods:
            raise ValueError(f"method: {method!r} was not compared; there are {', '.join(self.methods)}")
        return [row for row in self.rows if row.method == method]

    def plot(self, axes: Axes | None = None, file: str | Path | None = None, cost: str = "seconds") -> Axes:
        """Work–precision diagram: the error reached, and what it cost ("seconds", "evaluations" or "steps")."""
        from holonome.plot import work_precision

        return work_precision(self, axes, cost=cost, file=file)

    def to_pandas(self):
        """The rows as a pandas.DataFrame."""
        return optional("pandas").DataFrame(
            [asdict(row) for row in self.rows], columns=[column.name for column in fields(Trial)]
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "reference_error": self.reference_error,
            "rows": [asdict(row) for row in self.rows],
        }

    def save(self, path: str | Path) -> Path:
        """Write the rows to a .csv file."""
        path = Path(path)
        if path.suffix != ".csv":
            raise ValueError(f"path: {str(path)!r} ends in {path.suffix!r}; use .csv")
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [column.name for column in fields(Trial)])
            writer.writeheader()
            writer.writerows(asdict(row) for row in self.rows)
        return path

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        shown = {
            "rtol": "rtol",
            "error": "error",
            "steps": "steps",
            "evaluations": "evaluations",
            "seconds": "time",
            "drift": "|g|",
            "energy": "|E−E₀|",
        }
        for column in ("energy", "drift"):
            if all(math.isnan(getattr(row, column)) for row in self.rows if row.success):
                del shown[column]
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="cyan")
        table.add_column("method", style="bold", no_wrap=True)
        width = max(map(len, ["method", *self.methods])) + 1
        for column, title in list(shown.items()):
            width += max(len(title), 7) + 1
            if width > options.max_width + 1:
                del shown[column]
            else:
                table.add_column(title, justify="right", no_wrap=True)
        notes = list(dict.fromkeys(_first_sentence(row.message) for row in self.rows if not row.success))
        for method in self.methods:
            for i, row in enumerate(self.of(method)):
                values = [_cell(column, getattr(row, column)) for column in shown]
                if not row.success:
                    values[1] = f"failed [{notes.index(_first_sentence(row.message)) + 1}]"
                table.add_row(
                    "" if i else method,
                    *(Text(value, style="" if row.success else "yellow") for value in values),
                )
        known = (
            "no reference could be computed"
            if math.isnan(self.reference_error)
            else f"errors against a reference good to about {self.reference_error:.0e}"
            if self.reference_error
            else "errors against the solution that was given"
        )
        yield Text(self.name, style="bold") + Text(f": {known}")
        yield table
        for i, note in enumerate(notes):
            yield Text(f"[{i + 1}] {note}", style="dim")

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=io.StringIO(), width=80, color_system=None, highlight=False)
        console.print(self)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]


def compare(
    system: System,
    t_span: Sequence[float],
    q0: Any,
    v0: Any = None,
    *,
    methods: Sequence[str | Method] | Mapping[str, str | Method] = METHODS,
    rtols: Sequence[float] = RTOLS,
    atol: Any = None,
    reference: Any = None,
    max_steps: int = 1_000_000,
    progress: bool | Callable[[float, str], None] = False,
    **options: Any,
) -> Comparison:
    """Solve a problem by several methods at several tolerances: what each costs, how accurate it is, how far
    it drifts.

    Parameters
    ----------
    system, t_span, q0, v0
        As in :func:`holonome.solve`.
    methods
        Names or :class:`holonome.Method` objects; a dict gives them labels. "smooth" stands for
        ``motion="smooth"``.
    rtols
        Relative tolerances.
    atol
        Absolute tolerance for all of them; None takes a thousandth of each ``rtol``.
    reference
        The solution to measure errors against: a Solution with ``dense_output=True``, or a callable that
        gives q, or (q, v), at an array of times. None computes one with rtol 1e-13.
    max_steps
        After so many steps a run counts as failed.
    progress
        True shows a progress bar; a callable is told the fraction done and what comes next.
    **options
        Further arguments of ``solve`` for all runs, such as ``parameters`` or ``repair``.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> found = hn.compare(pendulum.system, (0, 5), pendulum.q0, methods=["dopri5", "index1"], rtols=[1e-4, 1e-8])
    >>> found.of("dopri5")[1].error < found.of("dopri5")[0].error, found.of("index1")[0].drift > 1e-10
    (True, True)
    """
    named, problem = _labelled(methods), (system, time_span(t_span), q0, v0)
    rtols = [float(rtol) for rtol in np.atleast_1d(rtols)]
    for rtol in rtols:
        if not 0 < rtol < 1:
            raise ValueError(f"rtols: {rtol!r}; give numbers between 0 and 1")
    unusable = {"method", "rtol", "t_eval", "dense_output", "events", "keep_steps"} & set(options)
    if unusable:
        raise ValueError(f"{min(unusable)}: compare chooses it itself; leave it out")
    total = len(named) * len(rtols) + 1
    with _Progress(progress) as show:
        show(0.0, "reference")
        expected, good_to = _reference(problem, reference, options)
        rows = []
        for label, method in named.items():
            chosen = {"motion": SMOOTH} if method == SMOOTH else {"method": method}
            _warm_up(problem, {**options, **chosen})
            for rtol in rtols:
                show((len(rows) + 1) / total, f"{label}, rtol {rtol:g}")
                tolerances = {"rtol": rtol, "atol": 1e-3 * rtol if atol is None else atol}
                rows.append(
                    _trial(
                        label,
                        rtol,
                        problem,
                        {**options, **chosen, **tolerances, "max_steps": max_steps},
                        expected,
                    )
                )
    return Comparison(system.name, rows, good_to)


def _labelled(methods: Any) -> dict[str, Any]:
    """The methods by the names that they have in the table."""
    if isinstance(methods, (str, Method)):
        methods = [methods]
    for method in methods.values() if isinstance(methods, Mapping) else methods:
        if method != SMOOTH:
            resolve(method)
    if isinstance(methods, Mapping):
        return dict(methods)
    labels = [method if isinstance(method, str) else label(method) for method in methods]
    if len(set(labels)) < len(labels):
        raise ValueError(
            f"methods: {max(labels, key=labels.count)!r} appears more than once; give a dict of labels and "
            "methods"
        )
    return dict(zip(labels, methods, strict=True))


Expected = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Times, and positions and velocities then."""


def _reference(problem: tuple, given: Any, options: dict[str, Any]) -> tuple[Expected | None, float]:
    """What the motion is, and how well that is known."""
    t0, t1 = problem[1]
    times = np.linspace(t0, t1, _POINTS + 1)[1:]
    if given is not None:
        source = given.sol if isinstance(given, Solution) else given
        if not callable(source):
            raise ValueError(
                f"reference: {given!r}; give a Solution made with dense_output=True, or a callable of the "
                "times"
            )
        return (times, *_positions_and_velocities(source(times))), 0.0
    runs = [
        solve(*problem, **options, rtol=rtol, atol=1e-2 * rtol, dense_output=True)
        for rtol in (_TIGHT, _CHECK)
    ]
    for run in runs:
        _stop_if_interrupted(run)
    if not runs[0].success:
        return None, math.nan
    q, v = _positions_and_velocities(runs[0].sol(times))  # type: ignore[misc]
    return (times, q, v), _relative(_positions_and_velocities(runs[1].sol(times))[0], q) if runs[
        1
    ].success else math.nan  # type: ignore[misc]


def _positions_and_velocities(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of (q, v) or (q, v, λ); an array alone is positions."""
    q, v = values[:2] if isinstance(values, tuple) else (values, np.zeros((0, 1)))
    return np.asarray(q), np.asarray(v)


def _relative(found: np.ndarray, expected: np.ndarray) -> float:
    size = float(np.max(np.abs(expected), initial=0.0))
    return float(np.max(np.abs(found - expected), initial=0.0)) / (size or 1.0) if expected.size else math.nan


def _warm_up(problem: tuple, options: dict[str, Any]) -> None:
    """Compile what a method needs, in a run that ends at once."""
    system, (t0, t1), q0, v0 = problem
    with contextlib.suppress(HolonomeError, ValueError):
        solve(system, (t0, t0 + 1e-6 * (t1 - t0)), q0, v0, **options)


def _trial(
    label: str, rtol: float, problem: tuple, options: dict[str, Any], expected: Expected | None
) -> Trial:
    begin = time.perf_counter()
    try:
        found = solve(*problem, **options, dense_output=True)
    except (HolonomeError, ValueError) as error:
        return Trial(label, rtol, message=str(error))
    _stop_if_interrupted(found)
    best = first = time.perf_counter() - begin
    spent = 0.0
    while found.success and first < 10.0 and (spent == 0.0 or spent < _PATIENCE):
        begin = time.perf_counter()
        _stop_if_interrupted(solve(*problem, **options))
        best, spent = min(best, time.perf_counter() - begin), spent + time.perf_counter() - begin
    q_error = v_error = math.nan
    if found.success and expected is not None:
        q, v = _positions_and_velocities(found.sol(expected[0]))  # type: ignore[misc]
        q_error, v_error = _relative(q, expected[1]), _relative(v, expected[2])
    constrained = found.system.m > 0
    energy = (
        math.nan
        if found.energy is None or not found.t.size
        else float(np.max(np.abs(found.energy - found.energy[0])))
    )
    return Trial(
        label,
        rtol,
        q_error,
        v_error,
        found.steps,
        found.rejections,
        found.nfev,
        found.njev,
        best,
        found.drift[0] if constrained else math.nan,
        found.drift[1] if constrained else math.nan,
        energy,
        found.success,
        found.message,
    )


def _stop_if_interrupted(solution: Solution) -> None:
    if not solution.success and solution.message.startswith("interrupted"):
        raise KeyboardInterrupt


def _first_sentence(message: str) -> str:
    return message.partition(". ")[0]


def _cell(column: str, value: Any) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "–"
    if column == "seconds":
        return (
            f"{value:.2g} s"
            if value >= 0.995
            else f"{value * 1e3:.3g} ms"
            if value >= 1e-3
            else f"{value * 1e6:.0f} µs"
        )
    return f"{value:.0e}" if column == "rtol" else f"{value:.1e}" if isinstance(value, float) else str(value)


class _Progress:
    """A bar, a function, or nothing."""

    def __init__(self, progress: bool | Callable[[float, str], None]) -> None:
        self._progress, self._bar = progress, None

    def __enter__(self) -> Callable[[float, str], None]:
        if callable(self._progress):
            return self._progress
        if not self._progress:
            return lambda fraction, what: None
        from rich.progress import Progress

        self._bar = bar = Progress(transient=True)
        bar.start()
        task = bar.add_task("comparing", total=1.0)
        return lambda fraction, what: bar.update(task, completed=fraction, description=what)

    def __exit__(self, *exception: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

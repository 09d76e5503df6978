"""compare(): the same problem by several methods at several tolerances, against a tight reference."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.arguments import checked, shown
from holonome.errors import HolonomeError
from holonome.machine.progress import ProgressDisplay
from holonome.results.solution import Solution
from holonome.results.tables import optional
from holonome.solving.arguments import (
    absolute_tolerances,
    assembled,
    checked_system,
    refuse_start_by_name,
    time_span,
)
from holonome.solving.methods import SMOOTH, Method, resolve
from holonome.solving.solve import solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console, ConsoleOptions, RenderResult

METHODS = ("dopri5", "dop853", "bdf", "ggl", "cm")
RTOLS = (1e-3, 1e-5, 1e-7, 1e-9)
_REFERENCE_RTOL = 1e-13
_CHECK_RTOL = 1e-11
"""Tolerances of the reference, and of a second run that estimates its error."""

_POINTS = 60
_REPEAT_SECONDS = 0.3
"""Seconds for which a short run is repeated, so that other processes do not disturb its best time."""

_LONG_RUN = 10.0
"""Seconds from which a run is not repeated."""


_TITLES = {
    "rtol": "rtol",
    "error": "error",
    "steps": "steps",
    "evaluations": "evaluations",
    "seconds": "time",
    "drift": "|g|",
    "energy": "|E−E₀|",
}
"""Columns of the printed table."""


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
        Time of the whole call of ``solve`` without compilation; the best of several.
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
        Estimated error of the reference, below which errors are meaningless; zero for a given solution, NaN
        if no reference could be computed.
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
        """Work–precision diagram: the error against the cost, "seconds", "evaluations" or "steps"."""
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

        columns = self._columns_that_fit(options.max_width)
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="cyan")
        table.add_column("method", style="bold", no_wrap=True)
        for column in columns:
            table.add_column(_TITLES[column], justify="right", no_wrap=True)
        notes = list(dict.fromkeys(_first_sentence(row.message) for row in self.rows if not row.success))
        for method in self.methods:
            for i, row in enumerate(self.of(method)):
                values = [_cell(column, getattr(row, column)) for column in columns]
                if not row.success:
                    values[1] = f"failed [{notes.index(_first_sentence(row.message)) + 1}]"
                style = "" if row.success else "yellow"
                table.add_row("" if i else method, *(Text(value, style=style) for value in values))
        yield Text(self.name, style="bold") + Text(f": {self._reference_in_words()}")
        yield table
        for i, note in enumerate(notes):
            yield Text(f"[{i + 1}] {note}", style="dim")

    def _columns_that_fit(self, max_width: int) -> list[str]:
        """Columns with known values, as far as the width allows."""
        width = max(map(len, ["method", *self.methods])) + 1
        columns = []
        for column, title in _TITLES.items():
            optional_column = column in ("energy", "drift")
            if optional_column and all(math.isnan(getattr(row, column)) for row in self.rows if row.success):
                continue
            width += max(len(title), 7) + 1
            if width <= max_width + 1:
                columns.append(column)
        return columns

    def _reference_in_words(self) -> str:
        if math.isnan(self.reference_error):
            return "no reference could be computed"
        if self.reference_error:
            return f"errors against a reference accurate to about {self.reference_error:.0e}"
        return "errors against the given solution"

    def __str__(self) -> str:
        return as_text(self)


def as_text(printable: Any) -> str:
    """What rich prints of an object, as plain text of 80 columns."""
    from rich.console import Console

    page = io.StringIO()
    Console(file=page, width=80, color_system=None, highlight=False).print(printable)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines())


def compare(
    system: Any,
    t_span: Sequence[float],
    q0: Any = None,
    v0: Any = None,
    *,
    start: Any = None,
    speed: Any = None,
    methods: Sequence[str | Method] | Mapping[str, str | Method] = METHODS,
    rtols: Sequence[float] = RTOLS,
    atol: Any = None,
    reference: Any = None,
    max_steps: int = 1_000_000,
    progress: bool | Callable[[float, str], None] = False,
    **options: Any,
) -> Comparison:
    """Solve a problem by several methods at several tolerances, and measure cost, error and drift.

    Parameters
    ----------
    system, t_span, q0, v0, start, speed
        As in :func:`holonome.solve`.  A mechanism is assembled once, for all runs.
    methods
        Names or :class:`holonome.Method` objects; the keys of a dict are labels. "smooth" stands for
        ``motion="smooth"``.
    rtols
        Relative tolerances.
    atol
        Absolute tolerance for all of them; None takes the default of :func:`solve` for each ``rtol``.
    reference
        The solution to measure errors against: a Solution with ``dense_output=True``, or a callable that
        gives q, or (q, v), at an array of times. None computes one with rtol 1e-13.
    max_steps
        A run that needs more steps counts as failed.
    progress
        True shows a progress bar; a callable is called with the fraction done and what comes next.
    **options
        Further arguments of ``solve`` for all runs, such as ``parameters`` or ``repair``.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> names = ["dopri5", "index1"]
    >>> found = hn.compare(pendulum.system, (0, 5), pendulum.q0, methods=names, rtols=[1e-4, 1e-8])
    >>> found.of("dopri5")[1].error < found.of("dopri5")[0].error, found.of("index1")[0].drift > 1e-10
    (True, True)
    """
    named = _labelled(methods)
    if hasattr(system, "system"):
        given = options.pop("s0", None), start, speed, options.get("parameters")
        system, q0, v0, s0 = assembled(system, t_span, q0, v0, *given)
        options |= {} if s0 is None else {"s0": s0}
    elif start is not None or speed is not None or q0 is None:
        refuse_start_by_name(system, start, speed)
    problem = (system, time_span(t_span), q0, v0)
    rtols = checked("rtols", [rtols] if isinstance(rtols, Real) else rtols)
    max_steps, progress = checked("max_steps", max_steps), checked("progress", progress)
    system = checked_system(system, None, None, None)
    if atol is not None:
        absolute_tolerances(atol, system.n, system.levels, len(system.states))
    unusable = {"method", "rtol", "t_eval", "dense_output", "events", "keep_steps"} & set(options)
    if unusable:
        raise ValueError(f"{min(unusable)}: compare chooses it itself; leave it out")
    total = len(named) * len(rtols) + 1
    with ProgressDisplay(progress, "comparing") as show:
        show(0.0, "reference")
        expected, good_to = _reference(problem, reference, options)
        rows = []
        for label, method in named.items():
            chosen = {"motion": SMOOTH} if method == SMOOTH else {"method": method}
            _warm_up(problem, {**options, **chosen})
            for rtol in rtols:
                show((len(rows) + 1) / total, f"{label}, rtol {rtol:g}")
                tolerances = {"rtol": rtol, "atol": atol}
                settings = {**options, **chosen, **tolerances, "max_steps": max_steps}
                rows.append(_trial(label, rtol, problem, settings, expected))
    return Comparison(system.name, rows, good_to)


def _labelled(methods: Any) -> dict[str, Any]:
    """The methods by the names that they have in the table."""
    if isinstance(methods, (str, Method)):
        methods = [methods]
    if isinstance(methods, np.ndarray) or not isinstance(methods, Iterable):
        raise TypeError(f"methods: {shown(methods)}; give a list of names or Methods, or a dict of them")
    if not isinstance(methods, Mapping):
        methods = list(methods)
    for method in methods.values() if isinstance(methods, Mapping) else methods:
        if not (isinstance(method, str) and method == SMOOTH):
            try:
                resolve(method)
            except ValueError as error:
                raise ValueError(f"methods: {str(error).removeprefix('method: ')}") from None
    if not methods:
        raise ValueError("methods: none given; give at least one")
    if isinstance(methods, Mapping):
        return dict(methods)
    labels = [method if isinstance(method, str) else method.label for method in methods]
    if len(set(labels)) < len(labels):
        raise ValueError(
            f"methods: {max(labels, key=labels.count)!r} appears more than once; give a dict of labels and "
            "methods"
        )
    return dict(zip(labels, methods, strict=True))


Expected = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Times, and positions and velocities at these times."""


def _reference(problem: tuple, given: Any, options: dict[str, Any]) -> tuple[Expected | None, float]:
    """The reference motion, and its estimated error."""
    t0, t1 = problem[1]
    times = np.linspace(t0, t1, _POINTS + 1)[1:]
    if given is not None:
        source = given.sol if isinstance(given, Solution) else given
        if not callable(source):
            raise ValueError(
                f"reference: {given!r}; give a Solution made with dense_output=True, or a callable of the "
                "times"
            )
        q, v = _positions_and_velocities(source(times))
        return (times, checked("reference", q), checked("reference", v)), 0.0
    runs = [
        solve(*problem, **options, rtol=rtol, atol=1e-2 * rtol, dense_output=True)
        for rtol in (_REFERENCE_RTOL, _CHECK_RTOL)
    ]
    for run in runs:
        _stop_if_interrupted(run)
    if not runs[0].success:
        return None, math.nan
    q, v = _positions_and_velocities(_dense(runs[0])(times))
    error = math.nan
    if runs[1].success:
        error = _relative(_positions_and_velocities(_dense(runs[1])(times))[0], q)
    return (times, q, v), error


def _dense(solution: Solution) -> Callable:
    assert solution.sol is not None
    return solution.sol


def _positions_and_velocities(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """The first two of (q, v) or (q, v, λ); a single array holds positions."""
    q, v = values[:2] if isinstance(values, tuple) else (values, np.zeros((0, 1)))
    return np.asarray(q), np.asarray(v)


def _relative(found: np.ndarray, expected: np.ndarray) -> float:
    size = float(np.max(np.abs(expected), initial=0.0))
    return float(np.max(np.abs(found - expected), initial=0.0)) / (size or 1.0) if expected.size else math.nan


def _warm_up(problem: tuple, options: dict[str, Any]) -> None:
    """Compile what a method needs, in a very short run."""
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
    seconds = time.perf_counter() - begin
    if found.success and seconds < _LONG_RUN:
        seconds = min(seconds, _best_time(problem, options))
    q_error = math.nan
    v_error = math.nan
    if found.success and expected is not None:
        times, expected_q, expected_v = expected
        q, v = _positions_and_velocities(_dense(found)(times))
        q_error = _relative(q, expected_q)
        v_error = _relative(v, expected_v)
    drift, velocity_drift = found.drift if found.system.m else (math.nan, math.nan)
    return Trial(
        method=label,
        rtol=rtol,
        error=q_error,
        velocity_error=v_error,
        steps=found.steps,
        rejections=found.rejections,
        evaluations=found.nfev,
        jacobians=found.njev,
        seconds=seconds,
        drift=drift,
        velocity_drift=velocity_drift,
        energy=found.energy_change,
        success=found.success,
        message=found.message,
    )


def _best_time(problem: tuple, options: dict[str, Any]) -> float:
    """The least time of repeated runs, in seconds."""
    best = math.inf
    spent = 0.0
    while spent < _REPEAT_SECONDS:
        begin = time.perf_counter()
        _stop_if_interrupted(solve(*problem, **options))
        seconds = time.perf_counter() - begin
        best = min(best, seconds)
        spent += seconds
    return best


def _stop_if_interrupted(solution: Solution) -> None:
    if not solution.success and solution.message.startswith("interrupted"):
        raise KeyboardInterrupt


def _first_sentence(message: str) -> str:
    return message.partition(". ")[0]


def _cell(column: str, value: Any) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "–"
    if column == "seconds":
        if value >= 0.995:
            return f"{value:.2g} s"
        return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.0f} µs"
    if column == "rtol":
        return f"{value:.0e}"
    return f"{value:.1e}" if isinstance(value, float) else str(value)

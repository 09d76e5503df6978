"""What an integrator is: how the equations of a formulation are advanced.

An integrator is a frozen dataclass derived from `Integrator`.  It may live anywhere; nothing has to be
registered.

1.  ``needs`` names the forms of the equations it can work with, best first; a formulation ``offers`` some
    (:mod:`holonome.formulations.contract`).  A method needs one form in common.
2.  ``step`` is a constant step size, or None.
3.  `stepper` makes what advances one system: a `Stepper`.

A stepper belongs to one system and one formulation, and serves any number of runs:

4.  `_own` lays out its memory, which follows the `RunState` of every run; ``layout_key`` is what that depends
    on.
5.  `begin` fills in the initial values, or says why the run cannot start.
6.  ``advance`` is the compiled loop (:mod:`holonome.integrators.loop`) with the functions of its family.
7.  ``output`` is the kind of solution between the steps (:mod:`holonome.integrators.dense_output`), by way of
    ``evaluate`` (:mod:`holonome.integrators.between_steps`).
8.  `counts`, `remark` and `why_stuck` tell what happened.
9.  ``implicit``, `met_stiffness` and `cost` let "auto" compare methods.

:mod:`holonome.integrators.plain` has a base class for integrators in plain Python, which brings all of this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from holonome.dynamics.kernels import dense_multipliers, dense_projection, kernels
from holonome.dynamics.rank import always_dependent_rows, dependent_rows
from holonome.dynamics.sparse_saddle import sparse_regularity
from holonome.errors import ModelError, SingularSystem
from holonome.formulations.contract import Formulation
from holonome.integrators import rank_watch
from holonome.integrators.dense_output import DenseOutput, Record
from holonome.integrators.event_search import NODES
from holonome.integrators.loop import RunState
from holonome.integrators.rank_watch import RankWatch
from holonome.machine.calls import NativeKernel, run_kernel
from holonome.machine.context import OK, SINGULAR, Context
from holonome.machine.layout import Layout, lay_out, padded, require_intact


class Request(NamedTuple):
    """What a stepper is made for."""

    system: Any
    formulation: Any
    step: float  # constant step size; 0: by the tolerances
    direction: int  # 1, or −1 backward in time


class Integrator(ABC):
    """Base class of all integrators; see :mod:`holonome.integrators.contract`.

    Examples
    --------
    >>> import holonome as hn
    >>> hn.BDF().form(hn.GGL()), hn.RungeKutta().form(hn.GGL())
    ('residual', None)
    """

    needs: ClassVar[tuple[str, ...]] = ()
    fixed_step: ClassVar[bool] = False  # whether its steps are never chosen by the tolerances
    tests_whole_error: ClassVar[bool] = False  # whether the error can be tested before it is projected
    is_bdf: ClassVar[bool] = False  # whether formulations may look into its steps
    step: float | None = None

    @property
    def label(self) -> str:
        """A short name."""
        return type(self).__name__

    @abstractmethod
    def stepper(self, request: Request) -> Stepper:
        """What advances this system."""

    def form(self, formulation: Formulation) -> str | None:
        """The form in which it takes the equations of a formulation; None if there is none."""
        if formulation.for_bdf and not self.is_bdf:
            return None
        return next((form for form in self.needs if form in formulation.offers), None)

    def refuses(self, formulation: Formulation) -> str | None:
        """Why it cannot advance a formulation; None if it can."""
        if self.form(formulation) is not None:
            return None
        name = type(formulation).__name__
        if set(self.needs) & set(formulation.offers):
            return f"takes no steps of BDF, into which {name} looks as it is set up here"
        needs, offers = (" or ".join(map(repr, forms)) for forms in (self.needs, formulation.offers))
        return f"needs the form {needs}, and {name} offers {offers}"


class Beginning(NamedTuple):
    """Where a run begins."""

    t0: float
    t1: float
    y: np.ndarray  # (q, v, s)
    trusted: bool  # known to be consistent


class Stepper(ABC):
    """Base class of all steppers."""

    advance: Callable[..., int]
    interpolant: NativeKernel
    preview: NativeKernel | None = None  # a cheaper approximation, good enough to detect events
    evaluate: Callable[..., int]  # the solution at many times from the history
    output: type[DenseOutput]
    state_column: int = 0  # where a row of the history, behind the common columns, holds the state
    layout: type[Layout]  # the family's own
    layout_key: tuple  # what its memory depends on, beside the system
    columns: int
    given: tuple[slice, slice]  # where state and absolute tolerances stand in a memory
    of_events: tuple[slice, ...]  # where it is said which rates are exact, which directions count, what stops
    implicit: bool = False
    calls_python: bool = False
    far_side: bool = True
    projects_anyway: bool = False  # whether every step ends with a projection
    on_manifold: bool = False  # whether points need no projection before they are stored
    leaves_out_rows: bool = False  # whether its kernels may be told which rows follow from others
    fixed_step: bool = False  # whether its steps are never chosen by the tolerances
    invariants: np.ndarray | None = None
    left_out: Sequence[int] = ()

    def __init__(self, request: Request) -> None:
        self.system, self.formulation, self.constant, self.direction = request

    @abstractmethod
    def begin(self, memory: np.ndarray, context: np.ndarray, beginning: Beginning) -> int:
        """Fill in the initial values; OK, or a code."""

    def dense_output(self, record: Record) -> DenseOutput:
        """The solution at any time of a run."""
        return self.output(self, record)

    def recall_run(self, memory: np.ndarray, record: Record) -> None:  # noqa: B027
        """Enter what dense output needs to know about a run."""

    @abstractmethod
    def failed_state(self, memory: np.ndarray) -> np.ndarray:
        """The state of the last failed evaluation."""

    def step_columns(self, dense: bool, beside_points: bool) -> int:
        """Columns of the history beyond the common ones, with dense output and where steps are kept beside
        points.
        """
        return 0

    def known_times(self, t0: float) -> np.ndarray | None:
        """Times at which the solution must be known before the run can begin."""
        return None

    def fill_history(self, memory: np.ndarray, context: np.ndarray, history: Any) -> np.ndarray:
        """Use the solution at these times; the stored states."""
        raise NotImplementedError

    def counts(self, memory: np.ndarray) -> dict[str, int]:
        """Costs, by the names that they have in a solution."""
        return {}

    def remark(self, memory: np.ndarray) -> str:
        """What is special about the run, in words."""
        return ""

    def why_stuck(self, memory: np.ndarray) -> str:
        """Why no step succeeds, where the method itself knows."""
        return ""

    def met_stiffness(self, memory: np.ndarray) -> bool:
        """Whether a run paused because its steps look as if stability limited them."""
        return False

    def watch_stiffness(self, memory: np.ndarray, wanted: bool = True) -> None:  # noqa: B027
        """Let a run pause when it meets stiffness, where the method can tell."""

    def cost(self, memory: np.ndarray) -> float:
        """Instructions spent so far, in the kernels and around them."""
        return 0.0

    def new_context(self, extra: int = 0) -> np.ndarray:
        """A context for a run, with room for so many doubles after the parameters."""
        return kernels(self.system).context(self.system, extra)

    def context(self) -> np.ndarray:
        """A context for dense output."""
        context = self.new_context()
        self.prepare_context(context)
        return context

    def expect_disturbance(self, memory: np.ndarray) -> None:  # noqa: B027
        """Prepare for initial values with errors in fast motions."""

    def prepare_context(self, context: np.ndarray) -> None:
        """Write what belongs to the run into a context: initial values of invariants, rows to leave out."""
        if self.invariants is not None:
            self.system.fill_invariants(context, self.invariants)
        if self.formulation.damping is not None:
            self.system.fill_damping(context, *self.formulation.damping)
        if self.left_out:
            Context.vector(context, "left_out")[list(self.left_out)] = 1.0

    def remember_invariants(self, context: np.ndarray, t0: float, y: np.ndarray) -> None:
        """Values that the invariants shall keep: those of the start."""
        if self.invariants is None:
            self.invariants = initial_invariants(self.system, context, t0, y)
        if self.invariants is not None:
            self.system.fill_invariants(context, self.invariants)

    def watch_fields(self) -> dict[str, Any]:
        """Memory of the rank watch; a projection for its sake alone does not call Python."""
        system, compiled = self.system, kernels(self.system)
        native = self.projects_anyway or all(supplied.path != "python" for supplied in system.supplied)
        if system.m == 0 or not native:
            return rank_watch.fields(0, 0, 0, 0, 0, 0)
        if compiled.sparse:
            return rank_watch.fields(sparse_regularity.address, 0, 0, system.n, 1, system.state_size)
        offset = 3 * system.state_size + 2
        return rank_watch.fields(
            compiled.projection, dense_projection.address, offset, system.n, 1 + system.m, system.state_size
        )

    def memory(self, events: int) -> np.ndarray:
        """Memory of a run with so many events: a copy of one that is laid out once for a system."""
        key = ("memory", self.layout_key, self.constant, events)
        template, self.given, self.of_events = self.system.compiled.once(key, lambda: self._lay_out(events))
        return template.copy()

    def _lay_out(self, events: int) -> tuple[np.ndarray, tuple[slice, slice], tuple[slice, ...]]:
        parts, watch = self._own(), self.watch_fields()
        place = RunState.words + sum(layout.words for layout, _ in parts)
        fields = run_fields(self.columns, events, self.system.m) | {
            "interpolant": self.interpolant.address,
            "preview": (self.preview or self.interpolant).address if events else 0,
            "constant": self.constant,
            "watch": place if watch["kernel"] else 0,
            "far_side": self.far_side,
            "on_manifold": self.on_manifold,
            "event_state": self.system.state_size,
        }
        memory = lay_out((RunState, fields), *parts, (RankWatch, watch))
        self.finish_layout(memory)
        size, (y, atol) = (
            self.system.state_size,
            (RunState.span(memory, name).start for name in ("y", "atol")),
        )
        of_events = [RunState.span(memory, f"event_{what}") for what in ("exact", "direction", "terminal")]
        return memory, (slice(y, y + size), slice(atol, atol + size)), tuple(of_events)

    def finish_layout(self, memory: np.ndarray) -> None:  # noqa: B027
        """Change what was laid out, before it is kept."""

    def _own(self) -> list:
        """The family's layouts, with what they are made with."""
        raise NotImplementedError

    def require_intact(self, memory: np.ndarray) -> None:
        """In a checked build: raise if something wrote beyond one of the vectors of a memory."""
        at = 0
        for layout in (RunState, *(layout for layout, _ in self._own()), RankWatch):
            require_intact(memory, at, layout)
            at += layout.words


def run_fields(columns: int, events: int, rows: int) -> dict[str, Any]:
    """What the record of every run is made with; ``rows`` multipliers may be asked for by events."""
    room, pair = padded(columns), 2 * events + 1
    searched = {"event_z": columns + rows + 2, "event_line": 2 * (NODES + 2)} if events else {}
    return searched | {
        "size": columns,
        "events": events,
        "event_rows": rows,
        "atol": room,
        "y": room,
        "y_old": room,
        "y_event": room,
        "event_work": pair,
        "event_old": pair,
        "event_new": pair,
        "event_nodes": NODES * pair,
        "event_exact": events,
        "event_direction": events,
        "event_terminal": events,
        "event_fired": events,
    }


def initial_invariants(system: Any, context: np.ndarray, t0: float, y: np.ndarray) -> np.ndarray | None:
    """Values of the invariants at the start; None where they cannot be evaluated for another reason."""
    compiled, count = kernels(system), system.invariant_count
    if compiled.dense:
        raise ModelError(
            "invariant: this system needs pivoting (a coordinate without mass, or a very large system), "
            "which cannot "
            "project onto invariants"
        )
    out = np.zeros(count * (2 + y.size) + 1)
    evaluated = run_kernel(compiled.invariants, t0, y, out, context, out) == OK
    if evaluated and np.all(np.isfinite(y)) and not np.all(np.isfinite(out[:count])):
        raise ModelError(
            f"invariant: entry {int(np.argmin(np.isfinite(out[:count])))} is not finite at the start"
        )
    values = compiled.invariants_along(system, np.array([t0]), y[np.newaxis])[:, :, 0]
    if not evaluated or not np.all(np.isfinite(values)):
        return None
    _refuse_false_invariants(values, t0)
    return values[0].copy()


def _refuse_false_invariants(values: np.ndarray, t: float) -> None:
    """Raise if something that is said to be invariant changes along the motion.

    ``values`` are invariants, their rates, and the terms of these.
    """
    rounding = 1e-14 * np.max(values[2], initial=0.0)
    for i, (_, rate, terms) in enumerate(values.T):
        if abs(rate) > 1e-6 * terms + rounding:
            raise ModelError(
                f"invariant: entry {i} changes along the motion, at the rate {rate:.3g} at t = {t:.6g}; it "
                "is no "
                "invariant of this system"
            )


def initial_multipliers(system: Any, context: np.ndarray, beginning: Beginning) -> np.ndarray:
    """λ at the start; of least norm where rows depend on each other."""
    m, y = system.m, beginning.y
    lam, zero = np.zeros(m + 1), np.zeros(y.size + 2)
    if m and run_kernel(kernels(system).multipliers, beginning.t0, y, zero, context, lam) == SINGULAR:
        run_kernel(dense_multipliers.address, beginning.t0, y, zero, context, lam)
    return lam[:m]


def initial_unknowns(
    system: Any, compiled: Any, context: np.ndarray, t0: float, shown: np.ndarray, rate: np.ndarray
) -> np.ndarray:
    """Y and Y′ of a residual at the start, from (q, v, s, λ) and the rates of the state."""
    n, size, columns = system.n, compiled.size, shown.size
    start = np.zeros(2 * size)
    start[:columns] = shown
    if compiled.residual.accelerations:
        start[columns : columns + n] = rate[n : 2 * n]
    fill_behind(compiled, context, start[:size], t0, columns)
    start[size : size + rate.size] = rate
    return start


def fill_behind(compiled: Any, context: np.ndarray, unknowns: np.ndarray, t: float, columns: int) -> None:
    """Unknowns after q, v, s, λ that a formulation computes from these."""
    if compiled.initial:
        values = np.zeros(compiled.size - columns + 1)
        run_kernel(compiled.initial, t, unknowns.copy(), values, context, values)
        unknowns[columns:] = values[:-1]


_read_rank, _ = Context.stretch("rank", "rank")


def rows_left_out(
    stepper: Any, context: np.ndarray, beginning: Beginning, holds_multipliers: bool = True
) -> tuple[Sequence[int], Any]:
    """Rows that always follow from others, where the check of the start has met any, and C there.

    Raises where rows depend on others only here, at a singular position, or where the method has no
    multipliers that could stay as they are.
    """
    system = stepper.system
    if not system.m or _read_rank(context)[0] >= system.m:
        return (), None
    t0, y = beginning.t0, beginning.y
    C = kernels(system).evaluate_pieces(context, t0, y)["C"]  # pyright: ignore[reportOptionalSubscript]
    rank, here = dependent_rows(C)
    left_out = always_dependent_rows(system, t0, y)
    if not holds_multipliers or len(left_out) < len(here):
        what = "cannot start in a singular position" if holds_multipliers else "needs independent constraints"
        names = ", ".join(system.constraint_names[i] for i in here[:4])
        raise SingularSystem(
            f"method: {type(stepper.formulation).__name__} with {stepper.integrator.label} {what}; here only "
            f"{rank} of {system.m} rows are independent ({names} depends on others). Use an explicit method, "
            "which handles that"
        )
    return left_out, C

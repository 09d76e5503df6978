"""Simulator: a system that is taken one stretch of time after the other, for controllers and games."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from holonome.arguments import checked, shown
from holonome.dynamics.switched import SwitchedSystem
from holonome.errors import HolonomeError, StepFailed
from holonome.integrators import loop
from holonome.problem.event import as_events
from holonome.solving import arguments
from holonome.solving.carry_out import REFUSED, consistent_start
from holonome.solving.diagnosis import message
from holonome.solving.first_use import announce_first_use
from holonome.solving.forward_pieces import ForwardPieces, Place
from holonome.solving.forward_run import ForwardRun
from holonome.solving.methods import Method, resolve
from holonome.solving.moment import Interrupted
from holonome.solving.readings import Readings, T
from holonome.solving.run import Outcome, Task
from holonome.solving.snapshot import Snapshot
from holonome.solving.task import checked_stepper, tolerances
from holonome.solving.turns import Turns, in_turn

_A_WHILE = 1.0
"""A length of time, where a method or a tolerance depends on that of a run, which is not known."""


class Simulator(Readings):
    """A system or mechanism that is simulated step by step, with inputs that change on the way.

    ``sim.step(dt)`` goes on where the last step ended: the size of internal steps, their order,
    factorizations and all that a method remembers are kept.  ``sim.step(dt, torque=1.2)`` changes inputs,
    which may jump, so the method begins anew, exactly as :func:`solve` does with the present state as its
    start.

    Parameters
    ----------
    system
        A :class:`System`, a :class:`Mechanism`, or a ready-made mechanism, which brings its start along.
    q0, v0, start, speed, s0, w0, lam0
        Where it begins, as for :func:`solve`.
    t0
        The time there.
    method, rtol, atol, first_step, max_step, step, projection
        As for :func:`solve`.  ``step`` is the constant size of internal steps; the last of a stretch is
        shorter where it does not fit.
    events
        As for :func:`solve`; a terminal one ends a step early, one with an action acts.
    parameters, inputs
        Values that replace those of the system at first.
    repair
        Accept initial values that are far off the constraints.
    max_steps
        Give up after so many internal steps in one step.

    Attributes
    ----------
    t : float
        The time reached.
    q, v, s, x : arrays
        Positions, velocities, first-order states; x of an ODE.
    a, lam, w : arrays
        Accelerations, multipliers and unknowns.
    state : State
        The system at this state, with everything that :meth:`System.at` tells: ``sim.state.energy``.
    steps : int
        Internal steps that the last step took.
    terminated : bool
        Whether the last step ended early, at a terminal event.
    t_events : list of arrays
        Times of each event during the last step.
    impacts : Impacts
        The impacts during the last step, of a system with contacts.

    Examples
    --------
    A pendulum with a motor in its pivot, held by a controller that is called a thousand times a second:

    >>> import numpy as np, holonome as hn
    >>> arm = hn.Mechanism("arm", inputs={"torque": 0.0})
    >>> rod = arm.body("rod", 1.0, 0.1, center=(0.5, 0), points={"A": (0, 0)})
    >>> _ = arm.revolute("A", arm.ground.at(0, 0), rod["A"])
    >>> _ = arm.torque("motor", joint="A", law=lambda u: u.torque)
    >>> sim = hn.Simulator(arm, start={"A": -0.2})
    >>> for _ in range(3000):
    ...     sim.step(1e-3, torque=9.81 / 2 - 20 * sim.q[0] - 4 * sim.v[0])
    >>> sim.t, bool(abs(sim.joint("A").angle) < 1e-3)
    (3.0, True)
    """

    def __init__(
        self,
        system: Any,
        q0: Any = None,
        v0: Any = None,
        *,
        start: Any = None,
        speed: Any = None,
        s0: Any = None,
        w0: Any = None,
        lam0: Any = None,
        t0: float = 0.0,
        method: str | Method = "auto",
        rtol: float = 1e-6,
        atol: Any = None,
        first_step: float | None = None,
        max_step: float = math.inf,
        step: float | None = None,
        projection: bool | None = None,
        events: Any = None,
        parameters: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        repair: bool = False,
        max_steps: int = 100_000,
    ) -> None:
        announce_first_use()
        self._t0 = t0 = checked("t0", t0)
        self._made = system
        system, q0, v0, s0 = self._start(q0, v0, s0, start, speed, parameters)
        system = arguments.checked_system(system, parameters, inputs, w0, lam0)
        if not system.mechanical:
            raise ValueError(
                f"system: {shown(system)} is of index 2 or 3 in general, which Simulator does not step; use "
                "hn.solve"
            )
        system.require_unchanged()
        self._repair = checked("repair", repair)
        name, chosen = resolve(method, system=system)
        t1 = t0 + _A_WHILE
        stepper = checked_stepper(system, name, chosen, t0, t1, projection, step, first_step, max_step)
        if stepper.known_times(t0) is not None:
            raise ValueError(
                "method: BDF of constant order begins behind points known already; leave order out"
            )
        y0 = system.start_state(t0, q0, v0, s0, self._repair)
        rtol, atol = tolerances(system, y0, t0, t1, rtol, atol)
        task = Task(
            system,
            name,
            stepper,
            t0,
            t1,
            y0,
            rtol,
            atol,
            None,
            as_events(events),
            False,
            False,
            checked("first_step", first_step),
            checked("max_step", max_step),
            checked("max_steps", max_steps),
            t0,
        )
        self._pieces: ForwardPieces | None = None
        if system.contacts or isinstance(system, SwitchedSystem) or any(e.action for e in task.events):
            self._pieces = ForwardPieces(task, chosen, projection, step)
        else:
            self._run = ForwardRun(task)
        self._n, self._task, self._turns = system.n, task, Turns()
        inputs_there = system.parameters.layout_of("u")
        self._places = {name: place for name, (shape, place) in inputs_there.items() if shape == ()}
        self._first = self._settled(y0, v0 is None, t0), self._run.flat.copy()
        self._reset_to(t0, *self._first[0])

    def _start(self, q0: Any, v0: Any, s0: Any, start: Any, speed: Any, parameters: Any) -> tuple:
        """The system and its initial values, as given or assembled."""
        made = self._made
        if hasattr(made, "system"):
            span = self._t0, self._t0 + _A_WHILE
            return arguments.assembled(made, span, q0, v0, s0, start, speed, parameters)
        if start is not None or speed is not None or q0 is None:
            arguments.refuse_start_by_name(made, start, speed)
        return made, q0, v0, s0

    def _settled(self, y0: np.ndarray, at_rest: bool, t0: float) -> tuple[np.ndarray, tuple | None]:
        """Initial values and, if they had to be made consistent, which rows of the constraints follow from
        others; None if they are taken as they are.
        """
        repair = self._repair
        if self._pieces is not None:
            y0 = self._started(self._pieces, t0, y0, at_rest)
            repair = repair or self._pieces.contacts is not None
        run = self._run
        code = run.try_start(t0, y0, t0 + _A_WHILE)
        left_out = None
        if code in REFUSED and not run.event_failed():
            run.settle_task()
            y0 = consistent_start(run, at_rest, repair).state
            left_out = tuple(run.stepper.left_out)
            code = run.first_advance()
        if code != loop.FULL:
            raise StepFailed(self._why(code))
        return y0, left_out

    def _started(self, pieces: ForwardPieces, t0: float, y0: np.ndarray, at_rest: bool) -> np.ndarray:
        """The state behind what contacts do at the start."""
        try:
            y0 = pieces.start(pieces.system, t0, y0, at_rest, self._repair)
        except Interrupted as error:
            raise StepFailed(str(error)) from error
        self._run = pieces.run
        return y0

    def _reset_to(self, t: float, y: np.ndarray, trusted: tuple | None) -> None:
        if self._pieces is not None:
            self._started(self._pieces, t, y, False)
        run = self._run
        run.t0, run.t1, run.fired = t, t, ()
        run.memory[:] = run.empty
        run.memory[run.stepper.given[0]] = y
        run.memory[T] = t
        self._anew, self._trusted, self.terminated = True, trusted, False
        self._clock = t, 0.0, 0

    @in_turn
    def step(self, dt: float, /, **inputs: Any) -> None:
        """Go on for a while; inputs by name, constant from now on until they are changed.

        Equal steps end at multiples: after a million of a millisecond the time is 1000.0.
        """
        if type(dt) is not float or not 0.0 < dt < math.inf:
            dt = checked("dt", dt)
        base, last, count = self._clock
        if dt != last:
            base, count = self.t, 0
        self._go_to(base + (count + 1) * dt, inputs)
        self._clock = (self.t, 0.0, 0) if self.terminated else (base, dt, count + 1)

    @in_turn
    def advance_to(self, t: float, /, **inputs: Any) -> None:
        """As `step`, up to a time."""
        t = checked("t0", t)
        if not t > self.t:
            raise ValueError(f"t: {t:.9g} does not lie ahead; the time is {self.t:.9g}")
        self._go_to(t, inputs)
        self._clock = self.t, 0.0, 0

    @in_turn
    def change(self, **values: Any) -> None:
        """Change parameters or inputs by name; the next step begins anew with them."""
        self._enter(values)
        self._anew = True

    def _enter(self, values: Mapping[str, Any]) -> None:
        """Write values of parameters and inputs by name."""
        run = self._run
        flat = run.flat.copy()
        run.system.parameters.write(flat, values)
        if run.system.model.elastic is not None:
            run.present_system().with_parameters(**values)  # which looks at stiffness and damping
        run.write(0, flat)

    def _set_inputs(self, inputs: dict[str, Any]) -> None:
        run, places = self._run, self._places
        for name, value in inputs.items():
            if name not in places or type(value) is not float or not -math.inf < value < math.inf:
                self._enter(run.system.parameters.own("inputs", inputs))
                return
        for name, value in inputs.items():
            run.write(places[name], value)

    def _go_to(self, t1: float, inputs: dict[str, Any]) -> None:
        run, memory, anew = self._run, self._run.memory, self._anew
        at = run.stepper.given[0]
        t, y, flat = memory[T], memory[at].copy(), None
        context = run.context[: run.kept].copy() if run.system.solves else None
        place = None
        if self._pieces is not None:
            place, flat = self._pieces.place(), run.flat.copy()
        if inputs:
            flat = run.flat.copy()
            self._set_inputs(inputs)
        try:
            if self._pieces is not None:
                code = self._in_pieces(self._pieces, float(t), y, t1, bool(anew or inputs))
            else:
                code = self._begin(float(t), y, t1) if anew or inputs else run.go_to(t1)
            if code != loop.DONE and code != loop.TERMINATED:
                raise KeyboardInterrupt if code == loop.STOPPED else StepFailed(self._why(code))
        except BaseException:
            self._take_back(float(t), y, flat, context, place)
            raise
        self.terminated, self._trusted = code == loop.TERMINATED, None
        if self._pieces is not None:
            self._anew = self._pieces.anew
            return
        self._anew, run.fired = self.terminated, []
        if self.terminated:
            run.fired = [i for i, times in enumerate(self.t_events) if times.size and times[-1] == self.t]
            self._forget_terminal()

    def _in_pieces(self, pieces: ForwardPieces, t: float, y: np.ndarray, t1: float, anew: bool) -> int:
        """On to t1 with interruptions; a code of the loop."""
        try:
            return pieces.go_to(t, y, t1, anew)
        except HolonomeError as error:
            raise StepFailed(str(error)) from error
        finally:
            self._run = pieces.run

    def _begin(self, t: float, y: np.ndarray, t1: float) -> int:
        """As a new run from here."""
        run = self._run
        code = run.begin_at(t, y, t1, self._trusted)
        if code in REFUSED and run.tried == 0 and not run.event_failed():
            run.settle_task()
            consistent_start(run, False, self._repair)
            code = run.advance_all()
        return code

    def _take_back(
        self, t: float, y: np.ndarray, flat: np.ndarray | None, context: Any, place: Place | None
    ) -> None:
        """Be as before a step that failed; the next one begins anew."""
        if self._pieces is not None and place is not None and flat is not None:
            self._pieces.go_back(place, flat)
            self._run = self._pieces.run
        run = self._run
        if flat is not None:
            run.write(0, flat)
        if run.system.solves:
            run.context[: run.kept] = context
        run.memory[run.stepper.given[0]] = y
        run.memory[T] = run.t0 = run.t1 = t
        self._anew = True

    def _forget_terminal(self) -> None:
        """The next step may end at the same events again."""
        run = self._run
        left = run.stepper.of_events[2]
        counts = run.memory[left]
        run.memory[left] = np.where(counts == 0.0, run.empty[left], counts)

    def _why(self, code: int) -> str:
        """The words that solve has for such an end."""
        run = self._run
        run.settle_task()
        return message(run, Outcome(code))

    @in_turn
    def snapshot(self) -> Snapshot:
        """All that is needed to go on from here, now or in another process."""
        run = self._run
        return Snapshot(
            self.t,
            self._kind,
            run.flat.copy(),
            run.memory[run.stepper.given[0]].copy(),
            self._clock,
            self._anew,
            self._trusted,
            tuple(run.fired),
            run.memory.size,
            run.changes(),
            None if self._pieces is None else self._pieces.place(),
        )

    @in_turn
    def restore(self, snapshot: Snapshot) -> None:
        """Go back, or ahead, to a snapshot, of this simulator or of another one of the same kind."""
        if not isinstance(snapshot, Snapshot):
            raise TypeError(f"snapshot: {shown(snapshot)}; give what sim.snapshot() returned")
        if snapshot.of != self._kind:
            different = [
                f"{name} {theirs!r}, not {mine!r}"
                for name, mine, theirs in zip(_KIND, self._kind, snapshot.of, strict=True)
                if mine != theirs
            ]
            raise ValueError(f"snapshot: it is of another simulator, with {', '.join(different)}")
        if self._pieces is not None and snapshot.place is not None:
            self._pieces.go_back(snapshot.place, snapshot.flat)
            self._run = self._pieces.run
        run = self._run
        run.restore(snapshot.flat, snapshot.size, snapshot.changes)
        run.t0 = run.t1 = snapshot.t
        run.fired = snapshot.fired
        self._clock, self._anew, self._trusted = snapshot.clock, snapshot.anew, snapshot.trusted
        self.terminated = False

    @property
    def _kind(self) -> tuple:
        """What two simulators must share to exchange snapshots, as in _KIND."""
        run, task, system = self._run, self._task, self._task.system
        names = tuple(name for name, _, _ in system.parameters.layout)
        step = run.stepper.constant or None
        atol = tuple(np.atleast_1d(task.atol).tolist())
        size = run.empty.size if self._pieces is None else len(system.contacts)
        sizes = system.n, system.m, len(system.states), size
        return system.name, sizes, names, task.name, step, task.rtol, atol, len(task.events)

    @in_turn
    def reset(
        self,
        q0: Any = None,
        v0: Any = None,
        *,
        start: Any = None,
        speed: Any = None,
        s0: Any = None,
        t0: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin again: at the first start, or another one, with the first parameters and inputs, but for
        those given.
        """
        run, (first, flat) = self._run, self._first
        before, place = run.flat.copy(), None if self._pieces is None else self._pieces.place()
        system = self._task.system
        system = system.with_values(flat[: system.parameters.size])
        for argument, values in (("parameters", parameters), ("inputs", inputs)):
            if values is not None:
                system = system.with_parameters(**system.parameters.own(argument, values))
        begin: float = self._t0 if t0 is None else checked("t0", t0)
        self._write(system)
        try:
            if q0 is None and start is None and speed is None and v0 is None and s0 is None:
                y, at_rest = first[0], False
                if parameters is None and begin == self._t0:
                    self._reset_to(begin, *first)
                    return
            else:
                _, q0, v0, s0 = self._start(q0, v0, s0, start, speed, parameters)
                y, at_rest = system.start_state(begin, q0, v0, s0, self._repair), v0 is None
            found = self._settled(y, at_rest, begin)
        except BaseException:
            if self._pieces is not None and place is not None:
                self._pieces.go_back(place, before)
            self._run = run
            run.write(0, before)
            raise
        self._reset_to(begin, *found)

    def _write(self, system: Any) -> None:
        """Enter the parameters and inputs of a system."""
        self._run.write(0, system.parameters.flat)
        if self._pieces is not None:
            self._pieces.system = system

    def __repr__(self) -> str:
        return f"Simulator({self._run.system.name!r}, t={self.t:.9g}, method={self._run.task.name!r})"


_KIND = ("system", "sizes", "parameters", "method", "step", "rtol", "atol", "events")

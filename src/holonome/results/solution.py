"""The result of a run: arrays as in scipy.integrate.solve_ivp, and statistics of the solver."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holonome.dynamics.kernels import dense_derivative, dense_multipliers, kernels, over_points
from holonome.dynamics.start import Start, consistent_state
from holonome.errors import HolonomeError
from holonome.locks import cached_property
from holonome.problem.system import System
from holonome.results.frozen import Result
from holonome.results.impacts import Impacts
from holonome.results.pieces import Piece, as_arrays, from_arrays
from holonome.tracing import Namespace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.animation import Animation
    from holonome.problem.drawing import Drawing

_EVENTS_SHOWN = 3
_POINTS_LOOKED_AT = 5
_NO_TIMES = np.zeros(0)


class Stairs(NamedTuple):
    """What is constant from one time to the next.

    Attributes
    ----------
    t : (steps,) array
        Where it changes; the first is the beginning of the run.
    values : array
        From there on, the last axis being that of time.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> hn.Stairs(np.array([0.0, 1.0]), np.array([5.0, 7.0])).at([0.5, 1.0])
    array([5., 7.])
    """

    t: np.ndarray
    values: np.ndarray

    def at(self, t: Any) -> Any:
        """Its values at any times; where it jumps, that behind the jump."""
        steps = np.maximum(np.searchsorted(self.t, t, "right") - 1, 0)
        return self.values[..., steps]


class Solution(Result):
    """Result of :func:`holonome.solve`.

    Attributes
    ----------
    t : (points,) array
    q, v : (n, points) arrays
        Positions and velocities.
    lam : (m, points) array
        Multipliers: M v′ = f − Gᵀ λ.
    a : (n, points) array
        Accelerations.
    s, w : arrays
        First-order states and unknowns, of a system that has them.
    success, status, message
        Whether the end was reached (0: end, 1: a terminal event, −1: neither), and what happened in words.
    t_events, q_events, v_events : lists
        Times and states of each event.
    sol : callable
        With ``dense_output=True``: (q, v) at any time of the run, on the manifold unless the method drifts;
        (q, v, s) of a system with first-order states, x of an ODE.
    nfev, njev, nlu, steps, rejections : int
        Costs: evaluations of the accelerations, Jacobians, factorizations, accepted and rejected steps.
    history : History
        The steps; None unless they are kept.
    singular_times : array
        Times at which the rank of the constraints dropped.
    u : namespace of arrays
        The inputs at each point, ``sol.u.torque``.
    inputs : dict of Stairs
        When inputs changed, and to what: ``sol.inputs["torque"].t`` and ``.values``.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> sol = hn.solve(
    ...     pendulum.system, (0, 10), pendulum.q0, pendulum.v0, t_eval=[0, 5, 10], dense_output=True
    ... )
    >>> sol.q.shape, sol.lam.shape, sol.to_pandas().columns.tolist()
    ((2, 3), (1, 3), ['x', 'y', "x'", "y'", 'lambda rod'])
    >>> q, v = sol.sol(2.5)
    >>> q.shape, bool(abs(q @ q - 1) < 1e-14)
    ((2,), True)
    """

    system: System
    method: str
    t: np.ndarray
    states: np.ndarray
    status: int
    outcome: str
    nfev: int
    steps: int
    rejections: int
    projections: int
    rtol: float
    atol: Any
    start: Start | None = None
    accepted: np.ndarray | None = None
    rejected: np.ndarray | None = None
    sol: Callable | None = None
    t_events: list[np.ndarray] | None = None
    event_states: list[np.ndarray] | None = None
    dense_calls: int = 0
    lowest_rank: int = 0
    njev: int = 0
    nlu: int = 0
    error_failures: int = 0
    newton_failures: int = 0
    splits: int = 0
    iterations: int = 0
    singular_times: np.ndarray = _NO_TIMES
    remarks: tuple[Callable[[Solution], str], ...] = ()
    pieces: tuple[Piece, ...] = ()
    impacts: Impacts | None = None
    trace: np.ndarray | None = None
    """Rows of times at which inputs changed, and all of them from there on."""

    @cached_property
    def message(self) -> str:
        """What happened, in words; computed lazily, since some remarks take time."""
        return self.outcome + "".join(remark(self) for remark in self.remarks)

    @property
    def q(self) -> np.ndarray:
        return self.states[:, : self.system.n].T

    @property
    def v(self) -> np.ndarray:
        return self.states[:, self.system.n : 2 * self.system.n].T

    @property
    def s(self) -> np.ndarray:
        """First-order states, (states, points)."""
        return self.states[:, 2 * self.system.n : self.system.state_size].T

    @property
    def x(self) -> np.ndarray:
        """Components of the solution of an :class:`holonome.ODE`, (n, points)."""
        return self.s

    @property
    def y(self) -> np.ndarray:
        """Positions and velocities together, (2n, points)."""
        return self.states[:, : 2 * self.system.n].T

    @cached_property
    def w(self) -> np.ndarray:
        """Unknowns, (unknowns, points)."""
        return self.over(self._kernels.unknowns, len(self.system.unknowns))

    @cached_property
    def invariant(self) -> np.ndarray:
        """Values of the invariants, (invariants, points)."""
        return self._invariants_and_rates[0]

    @cached_property
    def _invariants_and_rates(self) -> np.ndarray:
        return self._kernels.invariants_along(self.system, self.t, self._own_states)

    def false_invariants(self) -> list[int]:
        """Entries of ``invariant`` that would change somewhere along the motion without projection."""
        if not self.system.invariant_count:
            return []
        _, rate, terms = self._invariants_and_rates
        floor = 1e-6 * np.max(terms, axis=1, initial=0.0, keepdims=True)
        excess = np.abs(rate) / np.maximum(1e-5 * np.maximum(terms, floor), 1e-300)
        suspects = np.flatnonzero(np.any(excess > 1, axis=1)).tolist()
        if suspects and self.system.m:
            suspects = [row for row in suspects if self._changes_on_manifold(row, excess[row], floor[row])]
        return suspects

    def _changes_on_manifold(self, row: int, excess: np.ndarray, floor: np.ndarray) -> bool:
        """Whether an invariant changes also on the constraints, which a method that drifts has left; looked
        at where it seems to change most.
        """
        system = self.system
        worst = np.argsort(-excess, kind="stable")[:_POINTS_LOOKED_AT]
        for k in worst[excess[worst] > 1].tolist():
            try:
                y = consistent_state(
                    system, self.states[k, : system.state_size].copy(), float(self.t[k]), repair=True
                ).state
            except (HolonomeError, ValueError):
                continue
            _, rate, terms = self._kernels.invariants_along(system, self.t[k : k + 1], y[np.newaxis])
            if abs(rate[row, 0]) > 1e-5 * max(terms[row, 0], floor[0]):
                return True
        return False

    @property
    def q_events(self) -> list[np.ndarray] | None:
        return self._of_events(0, self.system.n)

    @property
    def v_events(self) -> list[np.ndarray] | None:
        return self._of_events(self.system.n, 2 * self.system.n)

    @property
    def _kernels(self):
        return kernels(self.system)

    @property
    def _own_states(self) -> np.ndarray:
        """(points, state): what kernels are given, without multipliers."""
        return np.ascontiguousarray(self.states[:, : self.system.state_size])

    def over(self, address: int, size: int, dense: int = 0) -> np.ndarray:
        """The values of a kernel of the system at all points, (size, points)."""
        parts = [_over_part(system, address, size, dense, *rest) for system, *rest in self.parts()]
        return np.concatenate(parts, axis=1) if parts else np.zeros((size, 0))

    def parts(self, solved: bool = False) -> Iterator[tuple[System, np.ndarray, np.ndarray]]:
        """For each piece the system, or the one that was solved, with its times and states."""
        states, pieces = self._own_states, self.pieces or (Piece(0, self.system, self.system),)
        ends = [*(piece.begin for piece in pieces[1:]), self.t.size]
        for piece, end in zip(pieces, ends, strict=True):
            rows = slice(piece.begin, end)
            yield piece.solved if solved else piece.system, self.t[rows], states[rows]

    def solved_at(self, point: int) -> System:
        """The system that was solved from this point on."""
        found = self.system
        for piece in self.pieces:
            found = piece.solved if piece.begin <= point else found
        return found

    @cached_property
    def parameter_values(self) -> np.ndarray:
        """Parameters, followed by the inputs, at each point, (values, points)."""
        if not self.pieces:
            return np.tile(self.system.parameters.flat[:, None], self.t.size)
        values = [np.tile(system.parameters.flat[:, None], t.size) for system, t, _ in self.parts()]
        return np.concatenate(values, axis=1)

    @cached_property
    def u(self) -> Any:
        """The inputs at each point, by name."""
        layout = self.system.parameters.layout_of("u")
        return Namespace(
            {
                name: self.parameter_values[offset : offset + math.prod(shape)].reshape(*shape, -1)
                for name, (shape, offset) in layout.items()
            }
        )

    @cached_property
    def inputs(self) -> dict[str, Stairs]:
        """When inputs changed, and to what, by name."""
        parameters = self.system.parameters
        trace, layout, begin = self.trace, parameters.layout_of("u"), parameters.of_inputs.start
        if trace is None:
            trace = np.append(self.t[:1], parameters.flat[parameters.of_inputs])[np.newaxis]
        if not self.t.size:
            trace = np.zeros((0, 1 + parameters.size - begin))
        found = {}
        for name, (shape, offset) in layout.items():
            first = 1 + offset - begin
            values = trace[:, first : first + math.prod(shape)].T.reshape(*shape, -1)
            changes = np.any(np.diff(values, axis=-1) != 0, axis=tuple(range(len(shape))))
            kept = np.append(np.ones(min(1, len(trace)), bool), changes)
            found[name] = Stairs(trace[kept, 0], values[..., kept])
        return found

    @cached_property
    def lam(self) -> np.ndarray:
        if self.states.shape[1] > self.system.state_size:
            return self.states[:, self.system.state_size :].T
        parts = zip(self.parts(solved=True), self.multipliers_of_pieces, strict=True)
        found = [system.own_multipliers(lam) for (system, _, _), lam in parts]
        return np.concatenate(found, axis=1) if found else np.zeros((self.system.m, 0))

    @cached_property
    def multipliers_of_pieces(self) -> list[np.ndarray]:
        """Of each piece the multipliers of what was solved, those of closed contacts among them."""
        return [
            _over_part(system, kernels(system).multipliers, system.m, dense_multipliers.address, *rest)
            for system, *rest in self.parts(solved=True)
        ]

    @cached_property
    def rates(self) -> np.ndarray:
        """Accelerations, followed by the rates of the first-order states."""
        size, found = self.system.state_size, []
        for system, *rest in self.parts(solved=True):
            address = kernels(system).derivative
            found.append(_over_part(system, address, size, dense_derivative.address, *rest)[self.system.n :])
        return np.concatenate(found, axis=1) if found else np.zeros((size - self.system.n, 0))

    @property
    def a(self) -> np.ndarray:
        return self.rates[: self.system.n]

    @cached_property
    def _residuals(self) -> np.ndarray:
        pieces, rows = self.pieces, self._kernels.position_rows + self.system.m
        if all(type(piece.solved) is type(piece.system) for piece in pieces):
            return self.over(self._kernels.residuals, rows)
        address, found = self._kernels.residuals, []
        for piece, (system, *rest) in zip(pieces, self.parts(), strict=True):
            found.append(piece.solved.own_residuals(_over_part(system, address, rows, 0, *rest)))
        return np.concatenate(found, axis=1)

    @property
    def g(self) -> np.ndarray:
        """Residuals of the position constraints, (rows, points); NaN where one is released."""
        return self._residuals[: self._kernels.position_rows]

    @property
    def gv(self) -> np.ndarray:
        """Residuals on the velocity level, G v + g_t and A v − b, (rows, points)."""
        return self._residuals[self._kernels.position_rows :]

    @cached_property
    def _by_name(self) -> Any:
        return self.system.named_results(self)

    def joint(self, name: str) -> Any:
        """Coordinates and rates of a joint of a :class:`holonome.Mechanism`: ``.angle``, ``.displacement``,
        ``.rate``, ``.rotation``, or ``.values`` and ``.rates`` by name.
        """
        return self._by_name.joint(name)

    def body(self, name: str, frame: str | None = None) -> Any:
        """A body of a mechanism: ``.position``, ``.velocity``, ``.angle``, ``.rotation``, ``.point("P")``, in
        the axes of the ground or of another body, ``frame``.
        """
        return self._by_name.body(name, frame)

    def reaction(self, name: str, frame: str | None = None) -> Any:
        """What a joint does to its second body: ``.force`` and ``.moment``, at ``.place``."""
        return self._by_name.reaction(name, frame)

    def effort(self, name: str) -> np.ndarray:
        """What a force, spring or drive of a mechanism exerts, at each point: the torque of a motor or of a
        drive, the tension of a spring; a row for each direction where it has several.
        """
        return self._by_name.effort(name)

    def contact(self, name: str) -> Any:
        """A contact along the run: ``.gap``, ``.force``, ``.friction``, ``.slip``, ``.status``; its impacts
        are ``sol.impacts.of(name)``.
        """
        from holonome.results.contact_motion import contact_motion

        return contact_motion(self, name)

    def contact_power(self) -> np.ndarray:
        """The power that all contacts put in, friction and what is moved from outside, at each point."""
        from holonome.results.contact_motion import contact_power

        return contact_power(self)

    @property
    def undetermined(self) -> list[str]:
        """Of a mechanism: the names of joints, drives and gears whose forces are one choice of many, as
        redundant rows leave open how they share what the motion needs.
        """
        return sorted(self._by_name.undetermined)

    def power(self, name: str) -> np.ndarray:
        """The power that a force, spring or drive of a mechanism puts in, at each point."""
        return self._by_name.power(name)

    def work(self, name: str) -> np.ndarray:
        """The work that a force, spring or drive of a mechanism has done since the first point."""
        return self._by_name.work(name)

    @property
    def energy_error(self) -> np.ndarray:
        """Of a mechanism: the change of its energy less the work of all motors, dampers and drives, which is
        the drift that matters where a motor works.
        """
        return self._by_name.energy_error

    @cached_property
    def energy(self) -> np.ndarray | None:
        """Kinetic and potential energy together; None if the system has no potential."""
        return self.over(self._kernels.energy, 1)[0] if self.system.has_energy else None

    @property
    def energy_change(self) -> float:
        """Largest change of the energy since the first point; NaN if there is no other, or no potential."""
        if self.energy is None or self.t.size < 2:
            return np.nan
        return float(np.max(np.abs(self.energy - self.energy[0])))

    @property
    def energy_in_words(self) -> str:
        """The energy at the first point, and its change if there are others."""
        if self.energy is None or not self.t.size:
            return "not known"
        change = f", changes by at most {self.energy_change:.1e}" if self.t.size > 1 else ""
        return f"{self.energy[0]:.6g}{change}"

    @property
    def drift(self) -> tuple[float, float]:
        """Largest |g| and |G v| over all points."""
        g, gv = np.abs(self.g), np.abs(self.gv)
        return float(np.fmax.reduce(g, axis=None, initial=0.0)), float(
            np.fmax.reduce(gv, axis=None, initial=0.0)
        )

    @property
    def drift_in_words(self) -> str:
        """The drift of the constraints that there are, as in "|g| ≤ 2.2e-16, |Gv| ≤ 1.3e-15"."""
        position, velocity = self.drift
        return (f"|g| ≤ {position:.1e}, " if self._kernels.position_rows else "") + f"|Gv| ≤ {velocity:.1e}"

    def __getstate__(self) -> dict[str, Any]:
        """Pieces travel as numbers, not as copies of the system."""
        return super().__getstate__() | {"pieces": as_arrays(self.pieces)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        pieces = from_arrays(state["pieces"], state["system"], state["t"].size)
        self.__dict__.update(state | {"pieces": pieces})

    def __repr__(self) -> str:
        return (
            f"Solution(system={self.system.name!r}, method={self.method!r}, points={self.t.size}, "
            f"success={self.success})"
        )

    def __str__(self) -> str:
        system = self.system
        span = f"t = {self.t[0]:.6g} … {self.t[-1]:.6g}" if self.t.size else "no points"
        lines = [
            f"{'success' if self.success else 'FAILED'}: {self.message}",
            f"  {system.name}: {system.sizes_in_words}; {span}, {count(self.t.size, 'point')}",
            f"  method {self.method}, rtol {self.rtol:g}: {count(self.steps, 'step')} "
            f"({self.rejections} rejected), {count(self.nfev, 'evaluation')}",
        ]
        if self.njev:
            lines.append(
                f"  {self.njev} Jacobians; {self.error_failures} failures of the error test, "
                f"{self.newton_failures} of Newton's method"
            )
        if system.m and self.t.size:
            lines.append(f"  constraints hold to {self.drift_in_words}")
        if system.invariant_count and self.t.size > 1:
            lines.append(
                f"  invariants change by at most {np.max(np.abs(self.invariant - self.invariant[:, :1])):.1e}"
            )
        if self.energy is not None and self.t.size:
            lines.append(f"  energy {self.energy_in_words}")
        lines += self._events_in_words()
        if self.dense_calls:
            trouble = (
                f"constraints of rank {self.lowest_rank}: redundant rows or a singular position, handled"
                if self.lowest_rank < system.m
                else "nearly dependent constraints or masses, handled with pivoting"
            )
            lines.append(f"  {trouble} ({count(self.dense_calls, 'evaluation')})")
        return "\n".join(lines)

    def _events_in_words(self) -> list[str]:
        lines = []
        for i, times in enumerate(self.t_events or []):
            shown = [f"{t:.6g}" for t in times[:_EVENTS_SHOWN]] + ["…"] * (len(times) > _EVENTS_SHOWN)
            lines.append(
                f"  events[{i}]: {len(times) or 'none'} found"
                + (f", t = {', '.join(shown)}" if shown else "")
            )
        return lines

    def plot(
        self,
        axes: Sequence[Axes] | None = None,
        file: str | Path | None = None,
        drawing: Drawing | None = None,
        dark: bool | None = None,
    ) -> Sequence[Axes]:
        """An overview in three panels: the motion, what is special about the run, and what was conserved.
        :mod:`holonome.plot` has many more plots.

        Parameters
        ----------
        axes : three matplotlib axes, optional
            Where to draw; None makes a figure.
        file : str or Path, optional
            Where to save the picture; the ending says how (.png, .svg, .pdf).
        drawing : Drawing, optional
            How to draw the mechanism; None takes the drawing of the system.
        dark : bool, optional
            Dark background; by default if matplotlib's style is dark.

        Returns
        -------
        sequence of three matplotlib axes

        Examples -------- Your own mechanism is drawn from its points, whose coordinates are functions of q
        and, if needed, of p, and from what connects them:

        >>> import numpy as np, holonome as hn
        >>> rod = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1, names=["x", "y"])
        >>> drawing = hn.Drawing(
        ...     points=lambda q: {"pivot": (0.0, 0.0), "bob": (q[0], q[1])},
        ...     links=[("pivot", "bob")],
        ...     ground=["pivot"],
        ...     traces=["bob"],
        ... )
        >>> axes = hn.solve(rod, (0, 1), [1, 0]).plot(drawing=drawing)
        """
        from holonome.plot import plot_solution

        return plot_solution(self, axes, file, drawing, dark)

    def plot_inputs(self, axes: Axes | None = None, inputs: Sequence[str] | None = None) -> Axes:
        """The inputs over time, as stairs; see :func:`holonome.plot.plot_inputs`."""
        from holonome.plot import plot_inputs

        return plot_inputs(self, axes, inputs)

    def animate(
        self,
        file: str | Path | None = None,
        *,
        drawing: Drawing | None = None,
        title: str | None = None,
        graphs: Sequence[str | Sequence[str]] | None = None,
        forces: Sequence[str] = (),
    ) -> Animation:
        """The mechanism in motion, with energy and drift below; :func:`holonome.animate` shows several runs
        side by side.

        Parameters
        ----------
        file : str or Path, optional
            Where to save it; the ending says how: ``.html`` is one page that needs no network, ``.gif`` and
            ``.mp4`` are films (the latter needs ffmpeg).
        drawing : Drawing, optional
            How to draw the mechanism. By default the drawing of the system; without one, points and rods are
            inferred from its coordinates and constraints.
        title : str, optional
            A heading; by default the name of the system.
        graphs : list of names, optional
            What the graphs show, such as ``["A.angle", "C.force", "energy"]``; see :func:`holonome.animate`.
        forces : list of names, optional
            Joints, forces, springs and drives of a mechanism whose forces are drawn as arrows, or
            ``"gravity"``.

        Returns
        -------
        Animation
            It shows itself in a notebook; ``.file`` is where it was saved.

        Examples
        --------
        >>> import numpy as np, holonome as hn
        >>> rod = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1, names=["x", "y"], name="pendulum")
        >>> hn.solve(rod, (0, 10), [1, 0]).animate()
        Animation('Pendulum')
        """
        from holonome.animation import animate

        return animate(self, file, drawings=drawing, title=title, graphs=graphs, forces=forces)

    def to_xarray(self):
        """The result as an xarray.Dataset with named coordinates."""
        xarray = optional("xarray")
        names, rows = self.system.names, self.system.constraint_names
        data: dict[str, Any] = {
            "q": (("coordinate", "t"), self.q),
            "v": (("coordinate", "t"), self.v),
            "lam": (("constraint", "t"), self.lam),
        }
        if self.energy is not None:
            data["energy"] = (("t",), self.energy)
        coords: dict[str, Any] = {"t": self.t, "coordinate": names, "constraint": rows}
        further = (("s", "state", self.system.states), ("w", "unknown", self.system.unknowns))
        for key, label, values in further:
            if values:
                data[key] = ((label, "t"), getattr(self, key))
                coords[label] = list(values)
        names_of_inputs, inputs = self._input_columns()
        if names_of_inputs:
            data["u"] = (("input", "t"), inputs)
            coords["input"] = names_of_inputs
        for key, (dimensions, values, labels) in self.system.named_data(self).items():
            data[key] = (dimensions, values)
            coords |= labels
        kept = ("method", "rtol", "message", "status", "steps", "rejections", "nfev")
        attributes = {"system": self.system.name} | {name: getattr(self, name) for name in kept}
        return xarray.Dataset(data, coords=coords, attrs=attributes)

    def to_pandas(self):
        """Positions, velocities, states, unknowns, multipliers and inputs as a pandas.DataFrame with time as
        its index.
        """
        pandas = optional("pandas")
        names, values = self._columns()
        return pandas.DataFrame(values.T, index=pandas.Index(self.t, name="t"), columns=names)

    def _columns(self) -> tuple[list[str], np.ndarray]:
        """Positions, velocities, states, unknowns, multipliers and inputs, with their names."""
        system = self.system
        names_of_inputs, inputs = self._input_columns()
        names = [*system.names, *[f"{name}'" for name in system.names], *system.states, *system.unknowns]
        names += [f"lambda {name}" for name in system.constraint_names]
        return [*names, *names_of_inputs], np.concatenate([self.q, self.v, self.s, self.w, self.lam, inputs])

    def _input_columns(self) -> tuple[list[str], np.ndarray]:
        """The inputs number by number, with names such as "torque" or "torques[0]"."""
        parameters = self.system.parameters
        names = []
        for name, (shape, _) in parameters.layout_of("u").items():
            entries = [",".join(map(str, index)) for index in np.ndindex(*shape)]
            names += [f"{name}[{entry}]" if entry else name for entry in entries]
        return names, self.parameter_values[parameters.of_inputs]

    def save(self, path: str | Path) -> Path:
        """Write to a file whose suffix selects the format: ``.npz``, from which :meth:`load` restores the
        result, ``.csv``, or ``.nc`` (NetCDF, needs xarray).
        """
        path = Path(path)
        match path.suffix:
            case ".nc":
                self.to_xarray().to_netcdf(path, engine="scipy")
            case ".npz":
                from holonome.results.files import write_npz

                write_npz(self, path)
            case ".csv":
                self._write_csv(path)
            case _:
                raise ValueError(f"path: {str(path)!r} ends in {path.suffix!r}; use .nc, .npz or .csv")
        return path

    def _write_csv(self, path: Path) -> None:
        names, values = self._columns()
        header, table = ",".join(["t", *names]), np.column_stack([self.t, values.T])
        np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.17g")

    @staticmethod
    def load(path: str | Path, system: Any = None) -> Solution:
        """Read a result that was saved as ``.npz``: a Solution with its system and history, but without dense
        output and events.

        Parameters
        ----------
        path : str or Path
            The file.
        system : System or Mechanism, optional
            The system, where the file does not contain it because one of its functions cannot be traced; a
            mechanism, for results by name.

        Examples
        --------
        >>> import tempfile, pathlib, holonome as hn
        >>> pendulum, file = hn.mechanisms.pendulum(), pathlib.Path(tempfile.mkdtemp()) / "swing.npz"
        >>> sol = hn.solve(pendulum.system, (0, 1), pendulum.q0)
        >>> hn.Solution.load(sol.save(file)).drift == sol.drift
        True
        """
        from holonome.results.files import read_npz

        return read_npz(Path(path), system)


def _over_part(
    system: System, address: int, size: int, dense: int, t: np.ndarray, states: np.ndarray
) -> np.ndarray:
    """The values of a kernel at points of one piece, (size, points).  Where λ or the unknowns cannot be
    followed from one point to the next, they are found anew.
    """
    out = np.full((t.size, size), np.nan)
    begin, fewest = 0, 64 if system.unknowns else 1
    while size and begin < t.size:
        context, rest = kernels(system).context(system), slice(begin, None)
        done = over_points(address, dense, context, t[rest], states[rest], out[rest], fewest)
        if not done:
            break
        begin += done
    return out.T


def count(number: int, thing: str) -> str:
    """A number of things, in words."""
    return f"{number} {thing}" + ("" if number == 1 else "s")


def optional(package: str) -> Any:
    """Import an optional dependency, or say how to install it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ModuleNotFoundError(
            f"{package} is not installed: pip install 'holonome[{package}]'", name=package
        ) from error

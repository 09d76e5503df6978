"""The result of a run: arrays as in scipy.integrate.solve_ivp, and statistics of the solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.dynamics.start import Start
from holonome.locks import cached_property
from holonome.problem.system import System
from holonome.results import tables
from holonome.results.by_name import NamedResult
from holonome.results.evaluated import Evaluated
from holonome.results.impacts import Impacts
from holonome.results.pieces import Piece, as_arrays, from_arrays
from holonome.results.summary import summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.animation import Animation
    from holonome.problem.drawing import Drawing

_NO_TIMES = np.zeros(0)


class Solution(Evaluated, NamedResult):
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
        """Components of the solution of an :class:`holonome.ODE`, or the variables of a
        :class:`holonome.DAE`, (n, points).
        """
        return self.s[: len(self.system.variables)]

    @property
    def y(self) -> np.ndarray:
        """Positions and velocities together, (2n, points)."""
        return self.states[:, : 2 * self.system.n].T

    @property
    def q_events(self) -> list[np.ndarray] | None:
        return self._of_events(0, self.system.n)

    @property
    def v_events(self) -> list[np.ndarray] | None:
        return self._of_events(self.system.n, 2 * self.system.n)

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
        return summary(self)

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
        return tables.as_dataset(self)

    def to_pandas(self):
        """Positions, velocities, states, unknowns, multipliers and inputs as a pandas.DataFrame with time as
        its index.
        """
        return tables.as_frame(self)

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
                tables.write_csv(self, path)
            case _:
                raise ValueError(f"path: {str(path)!r} ends in {path.suffix!r}; use .nc, .npz or .csv")
        return path

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

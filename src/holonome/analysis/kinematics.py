"""hn.kinematics: positions, velocities, accelerations and forces over a range of driving coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.analysis.carried import Carried
from holonome.analysis.dead_points import DeadPoint, turning_values
from holonome.analysis.driven import Driven, driven_by
from holonome.analysis.given import given, name_list, place
from holonome.analysis.position import follow_drives
from holonome.analysis.run_of import run_of
from holonome.arguments import NUMBERS, TIMES, read, shown
from holonome.dynamics.state import State
from holonome.errors import ModelError
from holonome.locks import cached_property
from holonome.problem.system import System

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.animation import Animation
    from holonome.results.solution import Solution

_LINES = 4


@dataclass(frozen=True, eq=False)
class Kinematics(Carried):
    """A mechanism over a range of its drives: result of :func:`holonome.kinematics`.

    Attributes
    ----------
    drives : dict of arrays
        Values of the driving coordinates, as far as they were reached.
    t : array
        Times, by the rate of the drive.
    q, v, a : (n, points) arrays
    success : bool
        Whether all values were reached.
    message : str
    dead_points : list of DeadPoint
        Singular positions on the way: where a drive cannot go on ("end"), or where branches cross and that
        was followed which goes straight on ("passed").
    efforts : dict of arrays
        What each drive must exert for this motion, a torque for an angle and a force for a displacement.
    system : System

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> example = hn.mechanisms.spatial_slider_crank()
    >>> kin = hn.kinematics(example, "A", np.linspace(0, 2 * np.pi, 73), rate=10.0)
    >>> kin.success, kin.joint("D").displacement.shape, bool(abs(kin.joint("A").rate - 10).max() < 1e-12)
    (True, (73,), True)
    """

    system: System
    drives: dict[str, np.ndarray]
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    s: np.ndarray
    success: bool
    message: str
    dead_points: tuple[DeadPoint, ...]
    _driven: Driven = field(repr=False)

    @cached_property
    def _balance(self) -> tuple[np.ndarray, np.ndarray]:
        """Efforts of the drives and multipliers, M a = f + dᵀ τ − Gᵀ λ, of least norm."""
        state = State(self.system, self.t, self.q, self.v, self.s if self.s.size else None)
        M, f, G = (state.rows(name) for name in ("M", "f", "G"))
        count, m = len(self.drives), self.system.m
        efforts, lam = np.zeros((count, self.t.size)), np.zeros((m, self.t.size))
        for k in range(self.t.size):
            d = self._driven.gradient(self.t[k], self.q[:, k], self.s[:, k])
            both = np.hstack([d.T, -G[k].T])
            scale = np.maximum(np.linalg.norm(both, axis=0), 1e-300)
            x = np.linalg.lstsq(both / scale, M[k] @ self.a[:, k] - f[k], rcond=1e-10)[0] / scale
            efforts[:, k], lam[:, k] = x[:count], x[count:]
        return efforts, lam

    @property
    def efforts(self) -> dict[str, np.ndarray]:
        return dict(zip(self.drives, self._balance[0], strict=True))

    @property
    def lam(self) -> np.ndarray:
        """Multipliers of the constraints in this motion, (m, points)."""
        return self._balance[1]

    def inputs(self, names: Sequence[str] | str | None = None) -> dict[str, np.ndarray]:
        """The values of inputs that give this motion, drives being left out."""
        state = State(self.system, self.t, self.q, self.v, self.s if self.s.size else None)
        if not self.system.inputs:
            raise ModelError("inputs: this system has none; kin.efforts has what the drives must exert")
        return state.inverse_dynamics(self.a, None if names is None else name_list("inputs", names))

    @cached_property
    def run(self) -> Solution:
        """The motion as a result, with all that results offer."""
        states = np.concatenate([self.q, self.v, self.s]).T
        return run_of(self.system, self.t, states, "kinematics", self.a, self.lam)

    def joint(self, name: str) -> Any:
        """A joint by name: ``.angle``, ``.displacement``, ``.rate``."""
        return self.run.joint(name)

    def body(self, name: str, frame: str | None = None) -> Any:
        """A body by name: ``.position``, ``.velocity``, ``.acceleration``, ``.point("P")``."""
        return self.run.body(name, frame)

    def reaction(self, name: str, frame: str | None = None) -> Any:
        """What a joint does to its second body in this motion."""
        return self.run.reaction(name, frame)

    def values(self, name: str) -> np.ndarray:
        """A coordinate, or a quantity of a joint or body, by name."""
        return next(iter(self._measured(name).values()))

    def _measured(self, name: str) -> dict[str, np.ndarray]:
        return self._driven.measured(name, self.t, self.q, self.v, self.s)

    def transmission(self, joint: str, *ends: str) -> np.ndarray:
        """The transmission angle: that between the lines from a joint to two others, between 0 and π/2.

        Parameters
        ----------
        joint
            Where the angle is, such as the joint between coupler and rocker.
        ends
            The two other joints; by default the other joints of the two bodies that it connects.
        """
        first, second = ends if len(ends) == 2 else self._neighbours(joint)
        places = [np.array(list(self._measured(f"{name}.place").values())) for name in (joint, first, second)]
        a, b = places[1] - places[0], places[2] - places[0]
        cosine = np.abs(np.sum(a * b, axis=0)) / (np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0))
        return np.arccos(np.clip(cosine, 0.0, 1.0))

    def _neighbours(self, joint: str) -> tuple[str, str]:
        joints = getattr(self.system, "joints", {})
        if joint not in joints:
            raise ModelError(
                f"transmission: there is no joint {joint!r}; there are {', '.join(joints) or 'none'}"
            )
        found = []
        for body in joints[joint].bodies:
            others = [x.name for x in joints.values() if x.name != joint and body in x.bodies]
            if len(others) != 1:
                raise ModelError(
                    f"transmission: {body.name} has {len(others)} other joints ({', '.join(others)}); give "
                    "the two that are meant, transmission(joint, first, second)"
                )
            found.append(others[0])
        return found[0], found[1]

    def turns(self, name: str) -> np.ndarray:
        """Values of the drive at which another coordinate turns back: dead points of the mechanism if that
        one drove it.
        """
        if len(self.drives) != 1:
            raise ModelError("turns: it is for a single drive")
        return turning_values(self._driven, name, self)

    @property
    def abscissa(self) -> tuple[str, np.ndarray]:
        """What curves are drawn over."""
        if len(self.drives) == 1:
            return next(iter(self.drives.items()))
        return "t", self.t

    def curves(self, names: Sequence[str] | None) -> dict[str, dict[str, np.ndarray]]:
        """Curves by panel and label."""
        if names is None:
            joints = [name for name, x in getattr(self.system, "joints", {}).items() if x.what != "free"]
            wanted = [name for name in joints if name not in self.drives] or list(self.system.names)
            rows: dict[str, np.ndarray] = {}
            for name in wanted[:_LINES]:
                rows |= self._measured(name)
            return {"positions": rows, "efforts": self.efforts}
        return {name: self._measured(name) for name in name_list("names", names)}

    def plot(
        self, names: Sequence[str] | None = None, axes: Any = None, file: str | Path | None = None
    ) -> Axes:
        """Curves over the drive: joints and efforts, or quantities by name, a panel for each."""
        from holonome.analysis.pictures import plot_kinematics

        return plot_kinematics(self, names, axes, file)

    def animate(self, file: str | Path | None = None) -> Animation:
        """The motion as a page or a film."""
        from holonome.animation import animate

        return animate(self.run, file, title=f"{self.system.name.replace('_', ' ')}: kinematics")

    def __str__(self) -> str:
        lines = [f"{'success' if self.success else 'FAILED'}: {self.message}"]
        for name, values in self.drives.items():
            lines.append(f"  {name} = {values[0]:.6g} … {values[-1]:.6g}, {values.size} points")
        for point in self.dead_points:
            what = "the drive cannot go on" if point.kind == "end" else "branches cross, passed straight on"
            lines.append(f"  dead point at {point.value:.6g}: {what}")
        return "\n".join(lines)


def kinematics(
    system: Any,
    drive: str | Mapping[str, Any],
    values: Any = None,
    *,
    t: Any = None,
    rate: Any = None,
    acceleration: Any = None,
    guess: Any = None,
    start: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> Kinematics:
    """Move a mechanism by its drives, and find all positions, velocities, accelerations and forces.

    Parameters
    ----------
    system : System, Mechanism or Example
    drive : name, or dict of names and values
        What is driven: a joint, a coordinate, or what else has a name, such as "coupler.P x" along an axis.
        As many drives as there are degrees of freedom.
    values : array
        The values of a single drive, in the order in which it takes them.
    t : array, optional
        Times of the values; rates and accelerations are then those of a cubic spline through them.
    rate, acceleration : number, array, or dict of them
        Of the drives instead; a single drive has the rate 1 and the acceleration 0 unless they are given.
    guess, start
        A position near the first one, as in :func:`holonome.equilibrium`; chooses the branch.
    parameters, inputs : dict
        Values that replace those of the system.

    Returns
    -------
    Kinematics
        Results by name, efforts of the drives, dead points.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> bar = hn.mechanisms.pendulum().system
    >>> kin = hn.kinematics(bar, "x", [0.0, 0.3, 0.6, 0.9, 1.2], guess=[0.0, -1.0])
    >>> print(kin)
    FAILED: 'x' cannot go beyond 1: a dead point
      x = 0 … 0.9, 4 points
      dead point at 1: the drive cannot go on
    """
    subject = given(system, parameters, inputs)
    own = subject.system
    if not own.n:
        raise ModelError("system: an ODE has no coordinates to drive")
    wanted = _values_of(drive, values)
    times, rates, accelerations = _in_time(wanted, t, rate, acceleration)
    here = place(subject, guess, start, float(times[0]))
    driven = driven_by(own, list(wanted))
    targets = np.array(list(wanted.values()))
    found = follow_drives(driven, here, times, targets, rates, accelerations)
    kept = found.q.shape[1]
    return Kinematics(
        own,
        {name: row[:kept] for name, row in zip(wanted, targets, strict=True)},
        times[:kept],
        found.q,
        found.v,
        found.a,
        np.tile(here.s[:, None], kept),
        kept == times.size,
        found.message,
        tuple(found.dead_points),
        driven,
    )


def _values_of(drive: Any, values: Any) -> dict[str, np.ndarray]:
    if isinstance(drive, Mapping):
        if values is not None:
            raise ValueError("values: drive is a dict that has them; leave it out")
        wanted = {str(name): read(NUMBERS, f"drive[{name!r}]", x) for name, x in drive.items()}
    elif isinstance(drive, str):
        if values is None:
            raise ValueError("values: missing; give the values that the drive takes")
        wanted = {drive: read(NUMBERS, "values", values)}
    else:
        raise ValueError(f"drive: {shown(drive)}; give a name, or a dict of names and values")
    shapes = {x.shape for x in wanted.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1 or not next(iter(shapes))[0]:
        raise ValueError("values: give a one-dimensional array for each drive, all of one length")
    return wanted


def _in_time(
    wanted: dict[str, np.ndarray], t: Any, rate: Any, acceleration: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, rates and accelerations, (drives, points)."""
    targets = np.array(list(wanted.values()))
    if t is not None:
        if rate is not None or acceleration is not None:
            raise ValueError(f"{'rate' if rate is not None else 'acceleration'}: t is given as well")
        return _by_spline(targets, t)
    if len(wanted) > 1 and rate is None:
        raise ValueError("rate: of several drives give t=…, the times of the values, or rate={name: …}")
    rates = _rows("rate", wanted, 1.0 if rate is None else rate)
    accelerations = _rows("acceleration", wanted, 0.0 if acceleration is None else acceleration)
    steps = np.diff(targets[0])
    means = (rates[0, 1:] + rates[0, :-1]) / 2
    if np.all(means != 0) and np.all(steps * np.sign(means) > 0):
        times = np.concatenate([[0.0], np.cumsum(steps / means)])
    else:
        times = np.arange(targets.shape[1], dtype=float)
    return times, rates, accelerations


def _by_spline(targets: np.ndarray, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from scipy.interpolate import CubicSpline

    times = read(TIMES, "t", t)
    if times.size != targets.shape[1] or times.size < 2 or np.any(np.diff(times) <= 0):
        raise ValueError(f"t: give {targets.shape[1]} increasing times, one for each value")
    spline = CubicSpline(times, targets, axis=1)
    return times, spline(times, 1), spline(times, 2)


def _rows(argument: str, wanted: dict[str, np.ndarray], value: Any) -> np.ndarray:
    if isinstance(value, Mapping):
        missing = [name for name in wanted if name not in value]
        if missing or len(value) != len(wanted):
            raise ValueError(f"{argument}: give one for each of {', '.join(wanted)}")
        rows = [value[name] for name in wanted]
    else:
        if len(wanted) > 1:
            raise ValueError(f"{argument}: {shown(value)}; give a dict, as there are several drives")
        rows = [value]
    size = len(next(iter(wanted.values())))
    found = np.zeros((len(wanted), size))
    for k, row in enumerate(rows):
        array = read(NUMBERS, argument, row)
        if array.shape not in ((), (size,)):
            raise ValueError(f"{argument}: shape {array.shape}; give a number, or {size} of them")
        found[k] = array
    return found

"""hn.equilibrium: where a system stays, at rest or in steady motion, and whether it does so stably."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.analysis.asked import first_multipliers, first_rates, numbers_of, stated
from holonome.analysis.carried import Carried
from holonome.analysis.given import Place, finite, given, name_list, place, require_traced_constraints
from holonome.analysis.newton import Found
from holonome.analysis.problem import Problem
from holonome.analysis.run_of import run_of
from holonome.analysis.search import solved
from holonome.analysis.stability import Stability, stability
from holonome.analysis.symmetry import steady
from holonome.analysis.words import SHOWN, listed
from holonome.dynamics.state import State
from holonome.errors import NoEquilibrium
from holonome.locks import cached_property
from holonome.problem.system import System

if TYPE_CHECKING:
    from holonome.analysis.branch import Branch
    from holonome.analysis.linearisation import Linearization
    from holonome.results.solution import Solution


@dataclass(frozen=True, eq=False)
class Equilibrium(Carried):
    """Where a system stays: result of :func:`holonome.equilibrium`.

    Attributes
    ----------
    q, v, s, lam : arrays
        Positions, velocities (zero at rest), first-order states and multipliers, M a + Gᵀ λ = f.
    free : dict
        Values found for the free parameters and inputs, by name.
    residual : float
        What is left of the balance, relative to the terms that cancel.
    stable : bool or None
        None where the linearisation does not decide.
    verdict : str
        The same in words.
    eigenvalues : array
        Of the linearisation, complex, in 1/s; zeros apart, whose number is ``neutral``.
    hessian : array or None
        At rest, of conservative systems: eigenvalues of the reduced Hessian of the potential energy relative
        to the reduced mass, squares of angular frequencies.
    system : System
        With the values of the free parameters.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum().system
    >>> here = hn.equilibrium(pendulum, [0.6, -0.9])
    >>> (here.q + 0).round(9).tolist(), here.stable, here.lam.round(6).tolist()
    ([0.0, -1.0], True, [4.905])
    """

    system: System
    t: float
    q: np.ndarray
    v: np.ndarray
    s: np.ndarray
    lam: np.ndarray
    free: dict[str, Any]
    residual: float
    moving: bool
    steps: int
    _problem: Problem = field(repr=False)
    _x: np.ndarray = field(repr=False)

    _kept = ("stability",)

    @cached_property
    def stability(self) -> Stability:
        return stability(self)

    @property
    def eigenvalues(self) -> np.ndarray:
        return self.stability.eigenvalues

    @property
    def hessian(self) -> np.ndarray | None:
        return self.stability.hessian

    @property
    def stable(self) -> bool | None:
        return self.stability.stable

    @property
    def verdict(self) -> str:
        return self.stability.verdict

    @property
    def neutral(self) -> int:
        return self.stability.neutral

    @property
    def place(self) -> Place:
        return Place(self.t, self.q, self.v, self.s)

    @property
    def state(self) -> State:
        """The system at this state: its masses, forces and their derivatives."""
        return self.place.at(self.system)

    @cached_property
    def run(self) -> Solution:
        """A result of one point, with all that results offer by name."""
        y = np.concatenate([self.q, self.v, self.s])
        return run_of(self.system, np.array([self.t]), y[np.newaxis], "equilibrium")

    def joint(self, name: str) -> Any:
        """A joint by name, as of a result; arrays have one entry."""
        return self.run.joint(name)

    def body(self, name: str, frame: str | None = None) -> Any:
        """A body by name, as of a result."""
        return self.run.body(name, frame)

    def reaction(self, name: str, frame: str | None = None) -> Any:
        """What a joint does to its second body."""
        return self.run.reaction(name, frame)

    def linearize(
        self, *, inputs: Sequence[str] | None = None, outputs: Sequence[Any] | None = None
    ) -> Linearization:
        """The linearisation here; see :func:`holonome.linearize`."""
        from holonome.analysis.linearisation import linearize

        return linearize(self.system, self, inputs=inputs, outputs=outputs)

    def follow(self, name: str, values: Any, **options: Any) -> Branch:
        """Follow the equilibrium while a parameter changes.

        Parameters
        ----------
        name
            A parameter or input that is one number.
        values
            (from, to), or several values at which the equilibria are wanted.
        step : float, optional
            Largest step along the branch, as a fraction of the range; 0.02 by default.
        switch : bool
            Follow the branches that cross as well; True by default.
        max_points : int
            Most points of each branch; 1000 by default.

        Returns
        -------
        Branch
            Points, folds, branch points, other branches; ``.plot()`` draws the diagram.

        Examples
        --------
        >>> import numpy as np, holonome as hn
        >>> hoop = hn.System(
        ...     1.0,
        ...     lambda q, p: (p.w2 * np.cos(q) - 9.81) * np.sin(q),
        ...     parameters={"w2": 5.0},
        ...     names=["theta"],
        ... )
        >>> branch = hn.equilibrium(hoop, [0.0]).follow("w2", (5.0, 20.0))
        >>> [round(point.value, 6) for point in branch.branch_points], len(branch.others)
        ([9.81], 2)
        """
        from holonome.analysis.continuation import follow

        return follow(self, name, values, **options)

    def __str__(self) -> str:
        what = "steady motion" if self.moving else "equilibrium"
        system = self.system
        lines = [f"{what} of {system.name}: {self.verdict}"]
        lines.append("  " + listed(system.names, self.q))
        if self.moving:
            lines.append("  rates: " + listed([f"{name}'" for name in system.names], self.v))
        if self.s.size:
            lines.append("  states: " + listed(list(system.states), self.s))
        for name, value in self.free.items():
            lines.append(f"  {name} = {np.array2string(np.asarray(value), precision=6)}")
        lines.append(f"  forces balance to {self.residual:.1e} of their size")
        lines += [f"  {line}" for line in self.stability.told]
        return "\n".join(lines)


def equilibrium(
    system: Any,
    guess: Any = None,
    *,
    start: Mapping[str, Any] | None = None,
    speed: Mapping[str, Any] | None = None,
    free: Sequence[str] | str = (),
    fixed: Sequence[str] | str = (),
    t: float = 0.0,
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
) -> Equilibrium:
    """Find an equilibrium, or with ``speed`` a steady motion.

    Parameters
    ----------
    system : System, Mechanism or Example
        What shall stay.
    guess : array, or a state, a start, an equilibrium, a run
        Positions near which is looked; of an ODE its x.
    start : dict
        The same by name: joints and bodies of a mechanism, coordinates of a system.
    speed : dict
        What moves, and how fast, by name: joints and bodies, or coordinates.  These velocities hold, those
        that constraints require follow, all others are zero.  ``hn.near(value)`` is a guess of one that is
        looked for.
    free : names
        Parameters and inputs that are looked for as well.  As many positions are usually held by ``fixed``;
        what stays open changes as little as possible.
    fixed : names
        Coordinates, or joints and points such as "A" or "coupler.P", which stay where they are at the start.
    t : float
        The time, where the system depends on it.
    parameters, inputs : dict
        Values that replace those of the system.

    Returns
    -------
    Equilibrium
        Its positions, multipliers, stability; it prints as a summary.

    Raises
    ------
    NoEquilibrium
        If none was found; the message says which forces nothing balances.

    Examples
    --------
    >>> import holonome as hn
    >>> m = hn.Mechanism("door", gravity=(0, -9.81), inputs={"torque": 0.0})
    >>> rod = m.body("rod", 2.0, 1 / 6, center=(0.5, 0), points={"A": (0, 0)})
    >>> _ = m.revolute("A", m.ground.at(0, 0), rod["A"])
    >>> _ = m.torque("motor", joint="A", law=lambda u: u.torque)
    >>> held = hn.equilibrium(m, start={"A": 0.5}, fixed="A", free="torque")
    >>> round(held.free["torque"], 6), held.stable
    (8.609085, False)
    """
    subject = given(system, parameters, inputs)
    require_traced_constraints(subject.system, "an equilibrium")
    t = finite("t", t)
    here = place(subject, guess, start, t, numbers_of(speed))
    if guess is not None and hasattr(guess, "t"):
        t = here.t
    problem = stated(subject.system, here, speed, name_list("free", free), name_list("fixed", fixed), t)
    if problem.moving:
        here = replace(here, v=first_rates(problem, here))
    return result(problem, solved(problem, problem.unknowns(here, first_multipliers(problem, here))))


def result(problem: Problem, found: Found) -> Equilibrium:
    """What was found, if the motion really is steady."""
    system, here, at = problem.system_at(found.x), problem.place(found.x), problem.layout
    _require_steady(problem, system, here)
    lam = found.x[at["lam"]]
    if system.m and system.n + system.m <= 700:
        derivatives = problem.derivatives(found.x)
        matrix = derivatives.full("balance", "lam")
        lam = lam - np.linalg.lstsq(matrix, derivatives.of("balance"), rcond=1e-10)[0]
        lam = np.linalg.lstsq(matrix, matrix @ lam, rcond=1e-10)[0]
    return Equilibrium(
        system,
        problem.t,
        _without_rounding(here.q),
        _without_rounding(here.v),
        _without_rounding(here.s),
        lam,
        problem.values(found.x),
        found.residual,
        problem.moving,
        found.steps,
        problem.with_values(problem.values(found.x)) if problem.free else problem,
        found.x,
    )


def _without_rounding(x: np.ndarray) -> np.ndarray:
    """Values with zeros where only rounding errors are left."""
    return np.where(np.abs(x) > 1e-15 * np.max(np.abs(x), initial=0.0), x, 0.0)


def _require_steady(problem: Problem, system: System, here: Place) -> None:
    if not problem.moving:
        if not system.m:
            return
        _, rates, size = problem.balance.violated(system, here)
        worst = int(np.argmax(np.abs(rates)))
        if abs(rates[worst]) > 1e-8 * size * max(float(np.max(np.abs(here.q))), 1e-3):
            raise NoEquilibrium(
                f"{system.constraint_names[worst]}: this constraint does not allow rest "
                f"({rates[worst]:.3g}); say with speed=… what moves"
            )
        return
    if system.n + system.m <= 300 and steady(system, here) is None:
        moved = [name for name, rate in zip(system.names, here.v, strict=True) if abs(rate) > 1e-9]
        raise NoEquilibrium(
            f"speed: forces balance where {', '.join(moved[:SHOWN])} move at these rates, but not further "
            "along the motion: what moves must not enter the equations. A mechanism may need "
            "coordinates='joint', so that what turns is an angle of a joint"
        )

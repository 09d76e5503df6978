"""hn.equilibrium: where a system stays, at rest or in steady motion, and whether it does so stably."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import scipy.sparse as sp

from holonome.analysis.balance import Balance
from holonome.analysis.given import Given, Place, finite, given, name_list, place, require_traced_constraints
from holonome.analysis.newton import Found, least_norm, newton, relative
from holonome.analysis.not_pickled import NotPickled
from holonome.analysis.problem import Problem, held, rows
from holonome.analysis.run_of import run_of
from holonome.analysis.stability import Stability, stability
from holonome.analysis.symmetry import steady
from holonome.arguments import shown
from holonome.dynamics.start import consistent_state
from holonome.dynamics.state import State
from holonome.errors import HolonomeError, NoEquilibrium
from holonome.locks import cached_property
from holonome.problem.system import System

if TYPE_CHECKING:
    from holonome.analysis.branch import Branch
    from holonome.analysis.linearisation import Linearization
    from holonome.results.solution import Solution

_RELAXATIONS, _REACH, _SLOWEST = 300, 0.1, 1e4
_SHOWN = 6


@dataclass(frozen=True, eq=False)
class Equilibrium(NotPickled):
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
        lines.append("  " + _listed(system.names, self.q))
        if self.moving:
            lines.append("  rates: " + _listed([f"{name}'" for name in system.names], self.v))
        if self.s.size:
            lines.append("  states: " + _listed(list(system.states), self.s))
        for name, value in self.free.items():
            lines.append(f"  {name} = {np.array2string(np.asarray(value), precision=6)}")
        lines.append(f"  forces balance to {self.residual:.1e} of their size")
        lines += [f"  {line}" for line in self.stability.told]
        return "\n".join(lines)


def _listed(names: Sequence[str], values: np.ndarray) -> str:
    size = 1e-12 * float(np.max(np.abs(values), initial=0.0))
    told = [
        f"{name} {value if abs(value) > size else 0.0:.6g}" for name, value in zip(names, values, strict=True)
    ]
    rest = [f"… ({len(told)} in all)"] if len(told) > 2 * _SHOWN else []
    return ", ".join([*(told if not rest else told[:_SHOWN]), *rest])


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
    here = place(subject, guess, start, t, _numbers_of(speed))
    if guess is not None and hasattr(guess, "t"):
        t = here.t
    problem = stated(subject, here, speed, name_list("free", free), name_list("fixed", fixed), t)
    if problem.moving:
        here = replace(here, v=_rates(problem, here))
    return solved(problem, problem.unknowns(here, _multipliers(problem, here)))


def _rates(problem: Problem, here: Place) -> np.ndarray:
    """Velocities of least norm that constraints and speeds ask for."""
    system, still = problem.system, replace(here, v=np.zeros(problem.system.n))
    value, _, by_v = problem.every_speed.at(system, still)
    rows, right = by_v, -value
    if system.m:
        state = still.at(system)
        rows, right = np.vstack([state.G, rows]), np.concatenate([-state.gv, right])
    return np.linalg.lstsq(rows, right, rcond=1e-10)[0]


def _numbers_of(speed: Any) -> Any:
    """Values of ``speed`` without what says that they are only near."""
    if speed is None:
        return None
    if not isinstance(speed, Mapping):
        raise ValueError(f"speed: {shown(speed)}; give a dict of names and values")
    return {name: getattr(value, "value", value) for name, value in speed.items()}


def stated(subject: Given, here: Place, speed: Any, free: list[str], fixed: list[str], t: float) -> Problem:
    """The equations of what is asked for."""
    system = subject.system
    names = _free_names(system, free, speed)
    given_speeds = speed or {}
    known = {
        name: value
        for name, value in given_speeds.items()
        if not hasattr(value, "value") and name not in free
    }
    every = rows(system, held(system, "speed", given_speeds, t))
    speeds = rows(system, held(system, "speed", known, t))
    positions = rows(system, [pair for name in fixed for pair in _measured(system, name)])
    target = positions.at(system, here)[0]
    balance = Balance(system, tuple(names))
    moving = bool(given_speeds) or _driven(system, here, balance)
    if system.n == 0 and given_speeds:
        raise ValueError("speed: an ODE has no velocities; leave it out")
    return Problem(system, t, moving, balance, tuple(names), speeds, positions, every, target)


def _free_names(system: System, free: list[str], speed: Any) -> list[str]:
    names = []
    for name in free:
        if name in system.parameters:
            names.append(name)
        elif name not in (speed or {}):
            there = ", ".join(system.parameters) or "none"
            reason = (
                "is solved for anyway; hold it with fixed=…, or free a parameter"
                if system.measured(name) is not None
                else "is no parameter or input"
            )
            raise ValueError(f"free: {name!r} {reason}; parameters and inputs are {there}")
    return names


def _measured(system: System, name: str) -> list[tuple[str, ca.SX]]:
    found = system.measured(name)
    if found is None:
        raise ValueError(f"fixed: there is no {name!r}; give coordinates, joints or points by name")
    return list(found.items())


def _driven(system: System, here: Place, balance: Balance) -> bool:
    """Whether constraints that change with time do not allow rest."""
    if not system.m:
        return False
    _, rates, size = balance.violated(system, replace(here, v=np.zeros(system.n)))
    reach = max(float(np.max(np.abs(here.q), initial=0.0)), 1e-3)
    return bool(np.max(np.abs(rates)) > 1e-9 * size * reach)


def _multipliers(problem: Problem, here: Place) -> np.ndarray:
    """Multipliers that come closest to balance."""
    system = problem.system
    if not system.m:
        return np.zeros(0)
    if system.model.lam.numel() and system.multipliers is not None:
        return system.multipliers
    found = problem.derivatives(problem.unknowns(here, np.zeros(system.m)))
    if system.n + system.m <= 700:
        return np.linalg.lstsq(found.full("balance", "lam"), -found.of("balance"), rcond=1e-10)[0]
    return least_norm(found.block("balance", "lam"), found.of("balance"))


def solved(problem: Problem, x: np.ndarray) -> Equilibrium:
    """Newton's method; where that fails at rest, the system is let relax first."""
    found = _newton(problem, x)
    if not found.converged and not problem.moving and problem.system.n:
        relaxed = _relaxed(problem, x)
        second = _newton(problem, relaxed)
        found = second if second.converged or second.residual < found.residual else found
    if not found.converged:
        raise NoEquilibrium(_why_none(problem, found))
    return result(problem, found)


def _newton(problem: Problem, x: np.ndarray) -> Found:
    return newton(problem, x, problem.units(x), problem.scaled, forces=problem.system.n)


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
            f"speed: forces balance where {', '.join(moved[:_SHOWN])} move at these rates, but not further "
            "along the motion: what moves must not enter the equations. A mechanism may need "
            "coordinates='joint', so that what turns is an angle of a joint"
        )


def _relaxed(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Follow the motion of a system that is damped so strongly that it hardly has speed, (M/τ) q′ = forces,
    in longer and longer steps of the implicit Euler method; the best position on the way.
    """
    at, n = problem.layout, problem.system.n
    tau, best, reach = 0.0, (np.inf, x), float(np.max(problem.units(x)[at["q"]]))
    for _ in range(_RELAXATIONS):
        limit = _REACH * max(float(np.max(np.abs(x[at["q"]]))), reach)
        try:
            R, J = problem(x)
            M = problem.derivatives(x).block("balance", "a")
            tau = tau or _first_step(problem, x, limit)
        except HolonomeError:
            return best[1]
        left = relative(R, J, x, problem.units(x))
        best = min(best, (left, x), key=lambda pair: pair[0])
        if left < 1e-6:
            break
        M = M if sp.issparse(J) else M.toarray()
        while tau > 1e-300:
            damped = J.tolil() if sp.issparse(J) else J.copy()
            damped[:n, at["q"]] = damped[:n, at["q"]] + M / tau
            matrix = damped.tocsc() if sp.issparse(J) else damped
            step = least_norm(matrix, R, problem.units(x), problem.scaled)
            moved = float(np.max(np.abs(step[at["q"]])))
            if np.isfinite(moved) and moved <= limit:
                break
            tau *= max(0.5 * limit / moved, 1e-3) if np.isfinite(moved) else 0.1
        else:
            break
        x, tau = x + step, min(2 * tau, _SLOWEST * _first_step(problem, x, limit))
    return best[1]


def _first_step(problem: Problem, x: np.ndarray, limit: float) -> float:
    """The τ in which the accelerations move the system by a tenth of a step."""
    state = problem.place(x).at(problem.system_at(x))
    return 0.1 * limit / max(float(np.max(np.abs(state.a))), 1e-300)


def _why_none(problem: Problem, found: Found) -> str:
    """Which equations stay open, in words."""
    what = "steady motion" if problem.moving else "equilibrium"
    x = _closed(problem, found.x)
    system, here = problem.system_at(x), problem.place(x)
    try:
        derivatives = problem.derivatives(x)
        g, balance, r = derivatives.of("g"), derivatives.of("balance"), derivatives.of("r")
    except HolonomeError as error:
        return f"no {what} was found: {error}"
    reach = max(np.max(np.abs(here.q), initial=0.0), 1e-3)
    if g.size and np.max(np.abs(g)) > 1e-6 * reach * max(abs(derivatives.block("g", "q")).max(), 1e-300):
        worst = system.constraint_names[int(np.argmax(np.abs(g)))]
        return f"no {what} was found near the guess: {worst} stays open by {np.max(np.abs(g)):.3g}; {_REMEDY}"
    if balance.size:
        worst = int(np.argmax(np.abs(balance)))
        if abs(balance[worst]) > 0:
            return (
                f"no {what} was found near the guess: nothing balances the force {-balance[worst]:.4g} along "
                f"{system.names[worst]!r} in the best position found ({_listed(system.names, here.q)}); "
                f"{_REMEDY}"
            )
    worst = int(np.argmax(np.abs(r))) if r.size else 0
    name = list(system.states)[worst] if r.size else "a held position"
    return f"no {what} was found near the guess: {name!r} does not stay; {_REMEDY}"


def _closed(problem: Problem, x: np.ndarray) -> np.ndarray:
    """The nearest position in which constraints hold, with the multipliers that come closest to balance."""
    here, system = problem.place(x), problem.system_at(x)
    if not system.m:
        return x
    try:
        y = consistent_state(system, np.concatenate([here.q, here.v, here.s]), here.t, repair=True).state
        there = replace(here, q=y[: system.n])
        found = problem.with_values(problem.values(x))
        return found.unknowns(there, _multipliers(found, there))
    except (HolonomeError, np.linalg.LinAlgError):
        return x


_REMEDY = "begin elsewhere, free a parameter or an input with free=…, or say with speed=… what moves"

"""Coupled systems: subsystems that are joined by constraints between them.

    M_j(t, q_j) q_j″ = f_j(t, q_j, q_j′) − (own constraints) − B_j λ,      0 = g(t, q_1, …, q_N),      D_j = ∂g/∂q_j,  B_j = D_jᵀ

The linear form (1) of Wang, Hou & Modnak states the constraint on the acceleration level, Σ D_j x_j″ = d, and
B_j may be any matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import casadi as ca
import numpy as np

from holonome.dynamics.kernels import dense_projection, kernels, over_points
from holonome.dynamics.start import what_failed
from holonome.equations.model import Model
from holonome.equations.program import Program
from holonome.errors import ModelError
from holonome.machine.calls import run_kernel
from holonome.machine.compiled import Compiled
from holonome.machine.context import OK, PARAMETERS, SINGULAR
from holonome.problem.parameters import Parameters
from holonome.problem.system import System
from holonome.problem.user_function import Expression
from holonome.tracing import argument_names

FORCE, WINDOW = "coupling force", "coupling window"
"""Parameters that :func:`driven` adds."""


class WindowSolver(Protocol):
    """Anything that advances a subsystem over a window under a given coupling force: another program, a
    measured response, ``scipy.integrate.solve_ivp``.

    It is called many times for the same window with different forces, always from the same start, so it must
    not keep a state of its own.

    Examples
    --------
    A mass that moves freely under the coupling force, by the midpoint rule over the whole window:

    >>> import holonome as hn
    >>> def free_mass(t, q, v, force):
    ...     a, s = force((t[0] + t[-1]) / 2), t - t[0]
    ...     return [q + s * v + s**2 / 2 * a], [v + s * a]
    >>> hn.BlackBox(free_mass, n=1)
    BlackBox('black box', n=1)
    """

    def __call__(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, force: Callable[[float], np.ndarray]
    ) -> Sequence[np.ndarray]:
        """The motion at the times ``t``.

        Parameters
        ----------
        t : (points,) array
            Where the motion is wanted; ``t[0]`` is the start of the window, ``t[-1]`` its end.
        q, v : (n,) arrays
            Positions and velocities at ``t[0]``.
        force : callable
            ``force(t)`` are the n generalised forces of the coupling, to be added to the subsystem's own.

        Returns
        -------
        q, v, and optionally a : (n, points) arrays
            Positions, velocities and, if they are known, accelerations; else these are taken from the
            velocities.
        """
        ...


class BlackBox:
    """A subsystem that hides its equations behind a :class:`WindowSolver`.

    Its mobility, the answer of the acceleration to a unit force, is measured by a few trial calls at the
    beginning of a run, and again where the iteration becomes slow.

    Parameters
    ----------
    solver : WindowSolver
        ``solver(t, q, v, force)`` returns the motion at the times ``t``.
    names : sequence of str, optional
        Names of the coordinates.
    n : int, optional
        Number of coordinates, where no names are given.
    name : str, optional
        A name for messages.

    Examples
    --------
    A mass on a spring, whose motion under a force is known in closed form if the force is constant in a
    window:

    >>> import numpy as np, holonome as hn
    >>> def oscillator(t, q, v, force):
    ...     s, rest = t - t[0], force((t[0] + t[-1]) / 2)
    ...     return [rest + (q - rest) * np.cos(s) + v * np.sin(s)], [-(q - rest) * np.sin(s) + v * np.cos(s)]
    >>> box = hn.BlackBox(oscillator, names=["x"])
    >>> box.n
    1
    """

    def __init__(
        self,
        solver: WindowSolver,
        *,
        names: Sequence[str] | None = None,
        n: int | None = None,
        name: str = "black box",
    ) -> None:
        if not callable(solver):
            raise TypeError(
                f"solver: {solver!r} is not callable; give a function (t, q, v, force) that returns the "
                "motion at the times t"
            )
        if names is None and n is None:
            raise ModelError("n: the number of coordinates is not known; give names=[...] or n=...")
        if isinstance(names, str):
            raise ModelError(f"names: give a list of names, not the string {names!r}")
        self.solver, self.name = solver, str(name)
        self.names = (
            [str(name) for name in names] if names is not None else [f"q{i}" for i in range(int(n or 0))]
        )
        self.n, self.m = len(self.names), 0
        if self.n < 1 or (n is not None and self.n != n):
            raise ModelError(
                f"n: {n!r}, but names tells {self.n} coordinates"
                if names is not None
                else f"n: {n!r}; a subsystem has at least one coordinate"
            )

    def __repr__(self) -> str:
        return f"BlackBox({self.name!r}, n={self.n})"


class Coupling(NamedTuple):
    """The coupling at one or many points: D (m × n) and B (n × m) for all coordinates together, γ with D a +
    γ = 0, and the residuals of position and velocity.
    """

    D: np.ndarray
    B: np.ndarray
    gamma: np.ndarray
    g: np.ndarray
    w: np.ndarray


class CoupledSystem:
    """Subsystems and the constraints between them.

    Parameters
    ----------
    subsystems : dict of System or BlackBox
        The subsystems by name; a sequence gets the names x, y, z, or x1, x2, … if there are more.
    coupling : callable
        One or many constraints, zero where they hold.  Its arguments are the names of subsystems, which stand
        for their coordinates, and ``t`` and ``p`` if it wants them.
    parameters : dict, optional
        Numbers and arrays that the coupling sees as ``p.name``.
    constraint_names : sequence of str, optional
        Names of the rows of the coupling.
    name : str, optional
        A name for messages.

    Examples
    --------
    Two masses on a rod of length 1:

    >>> import numpy as np, holonome as hn
    >>> bead = hn.System(np.eye(2), [0.0, -9.81], lambda q: q[1], names=["x", "y"])
    >>> bob = hn.System(np.eye(2), [0.0, -9.81], names=["x", "y"])
    >>> crane = hn.CoupledSystem({"bead": bead, "bob": bob}, lambda bead, bob: (bead - bob) @ (bead - bob) - 1)
    >>> crane.n, crane.m
    (4, 1)
    """

    def __init__(
        self,
        subsystems: Mapping[str, System | BlackBox] | Sequence[System | BlackBox],
        coupling: Callable,
        *,
        parameters: Mapping[str, Any] | None = None,
        constraint_names: Sequence[str] | None = None,
        name: str = "coupled system",
    ) -> None:
        self._take(subsystems, name)
        if not callable(coupling):
            raise ModelError(
                f"coupling: {coupling!r} is not callable; give a function of any of "
                f"{', '.join(self.subsystems)}, t, p"
            )
        self._coupling = _Geometric(coupling, self, parameters, constraint_names)
        self.m, self.constraint_names = self._coupling.joint.m, self._coupling.joint.constraint_names

    @classmethod
    def linear(
        cls,
        A: Sequence[Any],
        B: Sequence[Any] | None,
        C: Sequence[Any],
        D: Sequence[Any],
        r: Sequence[Any],
        d: Any = 0.0,
        *,
        names: Sequence[str] | None = None,
        name: str = "linear system",
    ) -> CoupledSystem:
        """The form (1) of the paper:  A_j x_j″ + B_j λ + C_j x_j = r_j,  Σ D_j x_j″ = d.

        Parameters
        ----------
        A, B, C, D, r : sequences
            One entry for each subsystem: an array, or a function of ``t`` that returns one.  ``B=None``
            stands for B_j = D_jᵀ.
        d : array or callable(t)
            One entry for each constraint.
        names : sequence of str, optional
            Names of the subsystems, by default x, y, ….
        name : str, optional
            A name for messages.

        Notes
        -----
        Where all D_j and d are constant, the constraint can be integrated: Σ D_j x_j = ½ d t² + c₁ t + c₀
        with the values at the start, and a run holds that and its first derivative.  Otherwise it is known on
        the acceleration level alone.

        Examples
        --------
        >>> import numpy as np, holonome as hn
        >>> two = hn.CoupledSystem.linear([1.0, 2.0], None, [4.0, 0.0], [1.0, -1.0], [0.0, 1.0])
        >>> two.n, two.m, list(two.subsystems)
        (2, 1, ['x', 'y'])
        """
        count = len(A)
        for argument, given in {"B": B, "C": C, "D": D, "r": r}.items():
            if given is not None and len(given) != count:
                raise ModelError(
                    f"{argument}: {len(given)} entries, but A has {count}; give one for each subsystem"
                )
        rows = np.size(_at(d, 0.0))
        systems, Ds, Bs = [], [], []
        for j in range(count):
            n = len(np.atleast_2d(_at(A[j], 0.0)))
            a, c = (_matrix(f"{letter}[{j}]", given[j], (n, n)) for letter, given in (("A", A), ("C", C)))
            rj = _matrix(f"r[{j}]", r[j], (n,))
            Dj = _matrix(f"D[{j}]", D[j], (rows, n))
            Bj = _transposed(Dj) if B is None else _matrix(f"B[{j}]", B[j], (n, rows))
            symmetric = not callable(a) and np.allclose(a, a.T, rtol=1e-12, atol=0.0)
            mass, force, Bj = (
                (a, _Applied(None, c, rj), Bj)
                if symmetric
                else (np.eye(n), _Applied(a, c, rj), _solved(a, Bj))
            )
            systems.append(System(mass, force, n=n))
            Ds.append(Dj)
            Bs.append(Bj)
        coupled = object.__new__(cls)
        coupled._take(dict(zip(names, systems, strict=True)) if names is not None else systems, name)
        coupled.m, coupled.constraint_names = rows, [f"coupling[{i}]" for i in range(rows)]
        coupled._coupling = _Linear(Ds, Bs, _matrix("d", d, (rows,)))
        return coupled

    def _take(self, subsystems: Any, name: str) -> None:
        if not isinstance(subsystems, Mapping):
            count = len(subsystems)
            subsystems = dict(
                zip("xyz" if count <= 3 else [f"x{i + 1}" for i in range(count)], subsystems, strict=False)
            )
        if len(subsystems) < 2:
            raise ModelError(f"subsystems: {len(subsystems)} given; a coupled system has at least two")
        for key, subsystem in subsystems.items():
            if not isinstance(subsystem, (System, BlackBox)):
                raise TypeError(
                    f"subsystems[{key!r}]: {subsystem!r} is neither an hn.System nor an hn.BlackBox"
                )
            if isinstance(subsystem, System) and (
                subsystem.states
                or subsystem.unknowns
                or subsystem.model.lam.numel()
                or subsystem.model.I.numel()
            ):
                raise ModelError(
                    f"subsystems[{key!r}]: states, unknowns, invariants and forces that depend on lam cannot "
                    "be part of a coupled system yet; "
                    "wrap it in an hn.BlackBox, or solve the whole with hn.solve"
                )
            if not str(key).isidentifier() or key in ("t", "p"):
                raise ModelError(
                    f"subsystems: {key!r} cannot be the name of an argument of the coupling; choose another"
                )
        self.name, self.subsystems = str(name), dict(subsystems)
        ends = np.cumsum([0, *[subsystem.n for subsystem in self.subsystems.values()]])
        self.parts = {
            key: slice(int(a), int(b)) for key, (a, b) in zip(self.subsystems, pairwise(ends), strict=True)
        }
        self.n = int(ends[-1])

    def __repr__(self) -> str:
        return f"CoupledSystem({self.name!r}: {', '.join(self.subsystems)}; {self.m} coupling constraint{'s' * (self.m != 1)})"

    def at(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> Coupling:
        """The coupling at many points: ``t`` (points,), ``q`` and ``v`` (points × n)."""
        return self._coupling.at(t, q, v)

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> CoupledSystem:
        """The system of a run that starts here: fixes the constants of integration of a linear constraint."""
        if not isinstance(self._coupling, _Linear):
            return self
        other = object.__new__(CoupledSystem)
        other.__dict__.update(self.__dict__)
        other._coupling = self._coupling.starting(t, q, v)
        return other

    def whole(self) -> System:
        """All subsystems and the coupling as one :class:`System`, to solve it in one piece:
        ``hn.solve(coupled.whole(), …)``.

        The rows of the coupling come first among its constraints.
        """
        if not isinstance(self._coupling, _Geometric):
            raise ModelError(
                "whole: a linear form, whose B_j may be any matrix, cannot be written as one System; state "
                "its coupling as a function"
            )
        if boxes := [key for key, subsystem in self.subsystems.items() if isinstance(subsystem, BlackBox)]:
            raise ModelError(
                f"whole: {boxes[0]!r} is a black box, so the equations of the whole are not known"
            )
        return _joined(self)


class _Geometric:
    """A coupling g(t, q_1, …) = 0, differentiated through a System that has nothing but this constraint."""

    def __init__(
        self,
        function: Callable,
        coupled: CoupledSystem,
        parameters: Mapping[str, Any] | None,
        constraint_names: Sequence[str] | None,
    ) -> None:
        wanted = argument_names(function)
        unknown = [name for name in wanted if name not in (*coupled.parts, "t", "p")]
        if unknown:
            raise ModelError(
                f"coupling: its argument {unknown[0]!r} is not known; arguments go by name and may be any of "
                f"{', '.join(coupled.parts)}, t, p"
            )
        if not any(name in coupled.parts for name in wanted):
            raise ModelError(
                f"coupling: none of its arguments is a subsystem; there are {', '.join(coupled.parts)}"
            )
        self.n, by_part = coupled.n, _by_part(function, {name: coupled.parts.get(name) for name in wanted})
        try:
            self.joint = System(
                1.0,
                np.zeros(self.n),
                by_part,
                n=self.n,
                parameters=parameters,
                constraint_names=constraint_names,
                name="coupling",
            )
        except ModelError as error:
            raise ModelError(f"coupling: {str(error).removeprefix('constraint').lstrip(': ')}") from error
        if constraint_names is None:
            self.joint.constraint_names = [f"coupling[{i}]" for i in range(self.joint.m)]

    def at(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> Coupling:
        n, m = self.n, self.joint.m
        out = np.empty((t.size, m * n + 3 * m))
        done = over_points(
            self.joint.kernel("coupling", _coupling_rows).address,
            0,
            self.joint.context(),
            t,
            np.hstack([q, v]),
            out,
        )
        if done < t.size:
            raise ModelError(
                what_failed(self.joint, float(t[done]), q[done], v[done]).replace("constraint", "coupling", 1)
            )
        D = out[:, : m * n].reshape(t.size, m, n)
        return Coupling(D, D.transpose(0, 2, 1), *np.split(out[:, m * n :], 3, axis=1))


def _by_part(function: Callable, parts: Mapping[str, slice | None]) -> Callable:
    """The coupling as a function of all coordinates together."""

    def constraint(t, q, p):
        given = {"t": t, "p": p}
        return function(**{name: given[name] if part is None else q[part] for name, part in parts.items()})

    return constraint


def _coupling_rows(model: Model):
    G = ca.reshape(ca.densify(model.G).T, model.g.numel() * model.n, 1)
    return model.y, ca.SX(0, 1), ca.densify(ca.vertcat(G, model.gamma, model.g, model.w)), None


class _Linear:
    """Σ D_j x_j″ = d."""

    def __init__(
        self, D: list[Any], B: list[Any], d: Any, start: tuple[float, np.ndarray, np.ndarray] | None = None
    ) -> None:
        self.D, self.B, self.d, self.start = D, B, d, start
        self.integrable = not (callable(d) or any(callable(D_j) for D_j in D))

    def starting(self, t: float, q: np.ndarray, v: np.ndarray) -> _Linear:
        return _Linear(self.D, self.B, self.d, (t, q.copy(), v.copy()))

    def at(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> Coupling:
        D, B, d = _over(self.D, t, 1), _over(self.B, t, 0), _over([self.d], t, 0)
        if not self.integrable or self.start is None:
            return Coupling(D, B, -d, np.zeros_like(d), np.zeros_like(d))
        t0, q0, v0 = self.start
        s = (t - t0)[:, None]
        return Coupling(D, B, -d, (q - q0 - s * v0) @ D[0].T - d * s**2 / 2, (v - v0) @ D[0].T - d * s)


class _Applied:
    """The force r − C x, or A⁻¹ (r − C x), of a linear subsystem."""

    def __init__(self, A: Any, C: Any, r: Any) -> None:
        self.A, self.C, self.r = A, C, r

    def __call__(self, t, q):
        force = _at(self.r, t) - _at(self.C, t) @ q
        return force if self.A is None else np.linalg.solve(_at(self.A, t), force)


def _at(value: Any, t: Any) -> Any:
    return value(t) if callable(value) else value


def _over(parts: list[Any], t: np.ndarray, axis: int) -> np.ndarray:
    """Matrices side by side, or one above the other, at each time."""
    if any(callable(part) for part in parts):
        return np.array([np.concatenate([_at(part, time) for part in parts], axis=axis) for time in t])
    whole = np.concatenate(parts, axis=axis)
    return np.broadcast_to(whole, (t.size, *whole.shape))


def _matrix(argument: str, value: Any, shape: tuple[int, ...]) -> Any:
    """A constant array of this shape, or a function that returns one."""
    if callable(value):

        def reshaped(t):
            return np.reshape(np.asarray(value(t)), shape)

        _matrix(argument, value(0.0), shape)
        return reshaped
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{argument}: {value!r} is not an array of real numbers") from None
    if array.size != np.prod(shape) or (array.ndim == 2 and len(shape) == 2 and array.shape != shape):
        raise ModelError(f"{argument}: shape {array.shape}; expected {shape}")
    if not np.all(np.isfinite(array)):
        raise ModelError(f"{argument}: not finite")
    return array.reshape(shape)


def _transposed(value: Any) -> Any:
    return (lambda t: value(t).T) if callable(value) else value.T


def _solved(A: Any, B: Any) -> Any:
    """A⁻¹ B."""
    return (
        (lambda t: np.linalg.solve(_at(A, t), _at(B, t)))
        if callable(A) or callable(B)
        else np.linalg.solve(A, B)
    )


def _joined(coupled: CoupledSystem) -> System:
    """The whole as one System, from the expressions of the subsystems with their parameters' values; what
    cannot be traced cannot be joined.
    """
    coupling = coupled._coupling
    assert isinstance(coupling, _Geometric)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", coupled.n), ca.SX.sym("v", coupled.n)
    parts: dict[str, list[ca.SX]] = {
        "mass": [],
        "force": [],
        "constraint": [],
        "velocity_constraint": [],
        "potential": [],
    }
    names, rows = [], {"constraint": [], "velocity_constraint": []}
    for key, system, part in [
        ("coupling", coupling.joint, slice(0, coupled.n)),
        *[(key, coupled.subsystems[key], part) for key, part in coupled.parts.items()],
    ]:
        assert isinstance(system, System)
        if system.foreign:
            raise ModelError(
                f"whole: the {system.foreign[0].role} of {key!r} cannot be traced, so its equations cannot "
                "be joined"
            )
        model = system.model
        values = ca.Function(
            key,
            [model.t, model.q, model.v, model.p],
            [model.M, model.f, model.g, model.h, model.V if model.V is not None else ca.SX(0, 1)],
        )(t, q[part], v[part], system.parameters.flat)
        prefix = "" if key == "coupling" else f"{key} "
        rows["constraint"] += [prefix + name for name in system.constraint_names[: model.position_rows]]
        rows["velocity_constraint"] += [
            prefix + name for name in system.constraint_names[model.position_rows :]
        ]
        parts["constraint"].append(values[2])
        if key != "coupling":
            names += [f"{key} {name}" for name in system.names]
            for role, value in zip(
                ("mass", "force", "velocity_constraint", "potential"),
                (values[0], values[1], values[3], values[4]),
                strict=True,
            ):
                parts[role].append(value)
    M = ca.diagcat(*parts["mass"])
    joined = {
        "mass": ca.reshape(M.T, -1, 1),
        "force": ca.vertcat(*parts["force"]),
        "constraint": ca.vertcat(*parts["constraint"]),
    }
    if rows["velocity_constraint"]:
        joined["velocity_constraint"] = ca.vertcat(*parts["velocity_constraint"])
    if all(value.numel() for value in parts["potential"]):
        joined["potential"] = ca.sum1(ca.vertcat(*parts["potential"]))
    multipliers = joined["constraint"].numel() + len(rows["velocity_constraint"])
    inputs = {"t": t, "q": q, "v": v} | {
        name: ca.SX.sym(name, size) for name, size in (("p", 0), ("s", 0), ("w", 0), ("lam", multipliers))
    }
    functions: dict[str, Any] = {
        role: Expression(role, Program.of_expressions(inputs, [ca.densify(value)]), coupled.n)
        for role, value in joined.items()
    }
    return System(
        functions.pop("mass"),
        functions.pop("force"),
        functions.pop("constraint"),
        **functions,
        names=names,
        constraint_names=rows["constraint"] + rows["velocity_constraint"],
        name=coupled.name,
    )


def driven(system: System, degree: int) -> System:
    """The same system under one more force, a polynomial of this degree in t over a window.

    Its coefficients in Chebyshev polynomials, (degree + 1) × n, are the parameter ``FORCE``; begin and length
    of the window are the parameter ``WINDOW``.  Degree 0 is a constant force, whose place in a context is
    :func:`place_of_force`.
    """
    model, own = system.model, system.parameters.size
    other = object.__new__(System)
    other.__dict__.update(system.__dict__)
    other.parameters = Parameters(
        {**system.parameters, WINDOW: [0.0, 1.0], FORCE: np.zeros((degree + 1, system.n))}
    )
    added = other.parameters.size - own
    extra = ca.SX.sym("coupling", added)
    coefficients = ca.reshape(extra[2:], system.n, degree + 1)
    s = 2 * (model.t - extra[0]) / extra[1] - 1
    b, b_next = ca.SX(system.n, 1), ca.SX(system.n, 1)
    for k in range(degree, 0, -1):
        b, b_next = coefficients[:, k] + 2 * s * b - b_next, b
    force = coefficients[:, 0] + s * b - b_next
    p = ca.vertcat(model.p[:own], extra, model.p[own:])
    elastic = None if model.elastic is None else replace(model.elastic, rest=model.elastic.rest + force)
    other.model = replace(
        model,
        p=p,
        f=model.f + force,
        elastic=elastic,
        suppliers=tuple(offset + added for offset in model.suppliers),
    )
    other.symbols = dict(system.symbols, p=p[: own + added])
    other.context_size = system.context_size + added
    other._foreign = {offset + added: foreign for offset, foreign in system._foreign.items()}
    other.compiled = Compiled()
    return other


def place_of_force(system: System) -> int:
    """Where a context of a driven system keeps a constant force."""
    return PARAMETERS + system.parameters.size - system.n


def landed(system: System, context: np.ndarray, t: float, y: np.ndarray) -> np.ndarray:
    """One Newton correction onto the system's own constraints, for positions and velocities."""
    n, compiled = system.n, kernels(system)
    out, zero = np.zeros(compiled.projection_size), np.zeros(2 * n + 2)
    status = run_kernel(compiled.projection, t, y, zero, context, out)
    if status == SINGULAR:
        status = run_kernel(dense_projection.address, t, y, zero, context, out)
    if status != OK:
        raise ModelError(what_failed(system, t, y))
    return out[4 * n : 6 * n]

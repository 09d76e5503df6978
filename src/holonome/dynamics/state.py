"""What a system is at a state, or at many: masses, forces, constraints, accelerations, their derivatives.

A quantity is a kernel of (t, q, v, s), compiled when it is first asked for.  The accelerations and
multipliers solve

    R(a, λ; x) = (M a + Cᵀ λ − f,  C a + γ) = 0,

so their derivatives by anything, x, follow from R_x and the matrix of this system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import casadi as ca
import numpy as np
from numba import njit

from holonome.arguments import NUMBERS, read, shown
from holonome.dynamics.evaluation import what_failed
from holonome.dynamics.kernels import dense_derivative, dense_multipliers, kernels
from holonome.equations.model import Model
from holonome.errors import ModelError
from holonome.machine.calls import call, pointer
from holonome.machine.context import OK, SINGULAR
from holonome.problem.system import System

Quantity = Callable[[Model], ca.SX]

_NEGLIGIBLE = 1e-11
"""Singular values of the scaled matrix of the accelerations, relative to the largest, that count as zero."""


def _kinetic(model: Model) -> ca.SX:
    return ca.dot(model.v, model.M @ model.v) / 2


def _potential(model: Model) -> ca.SX:
    if model.V is None:
        raise ModelError("potential: the system was given none, so its energy is not known")
    return model.V


EXPLICIT: dict[str, Quantity] = {
    "M": lambda model: model.M,
    "f": lambda model: model.f,
    "g": lambda model: model.g,
    "gv": lambda model: model.w,
    "G": lambda model: model.C,
    "gamma": lambda model: model.gamma,
    "momentum": lambda model: model.M @ model.v,
    "kinetic_energy": _kinetic,
    "potential_energy": _potential,
    "energy": lambda model: _kinetic(model) + _potential(model),
    "rate": lambda model: model.r,
    "invariant": lambda model: model.I,
    "w": lambda model: model.u,
}
"""Quantities that are expressions of the state."""

IMPLICIT = ("a", "lam", "constraint_force")
"""Those that follow from R = 0."""

SCALARS = ("kinetic_energy", "potential_energy", "energy")
_SYMBOLS = ("t", "q", "v", "s", "p", "u")
_ROLES_OF_GRADIENTS = ("mass", "constraint", "velocity_constraint")
_OF_GRADIENTS = ("M", "G", "gamma", "momentum", "kinetic_energy", "energy", *IMPLICIT)
"""Functions whose derivatives these quantities contain, or whose values they multiply."""


class State:
    """A system at one state, or at many: ``system.at(t, q, v)``.

    Every quantity is an attribute.  For many states, given as columns, it has one more axis, the last.

    Attributes
    ----------
    M, f : (n, n) and (n,) arrays
        Mass matrix and forces.
    g, gv : arrays
        Residuals of the position constraints, and of all constraints on the velocity level.
    G, gamma : (m, n) and (m,) arrays
        The rows of all constraints on the velocity level, G a + γ = 0.
    a, lam : (n,) and (m,) arrays
        Accelerations and multipliers, M a + Gᵀ λ = f; where rows depend on each other, those λ of least norm.
    constraint_force : (n,) array
        −Gᵀ λ.
    kinetic_energy, potential_energy, energy : numbers
    momentum : (n,) array
        M v.
    rate, w, invariant : arrays
        Rates of the first-order states, unknowns, invariants, of a system that has them.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum().system
    >>> here = pendulum.at(0, [0, -1], [2, 0])
    >>> float(here.a[1]), here.constraint_force.round(9).tolist()
    (4.0, [0.0, 13.81])
    >>> here.derivative("a", by="v").round(9).tolist()
    [[0.0, 0.0], [4.0, 0.0]]
    """

    def __init__(self, system: System, t: Any, q: Any, v: Any = None, s: Any = None) -> None:
        self.system = system
        self.times, self._states, self._single = _states(system, t, q, v, s)

    @property
    def t(self) -> Any:
        return float(self.times[0]) if self._single else self.times

    @property
    def q(self) -> np.ndarray:
        return self.shaped(self._states[:, : self.system.n], (self.system.n,))

    @property
    def v(self) -> np.ndarray:
        return self.shaped(self._states[:, self.system.n : 2 * self.system.n], (self.system.n,))

    @property
    def s(self) -> np.ndarray:
        return self.shaped(self._states[:, 2 * self.system.n :], (len(self.system.states),))

    def __getattr__(self, name: str) -> Any:
        if name in EXPLICIT:
            value = self._explicit(name)
        elif name in IMPLICIT:
            value = dict(zip(IMPLICIT, self._accelerations(), strict=True))[name]
        else:
            raise AttributeError(f"a state has no {name!r}; it has {', '.join([*EXPLICIT, *IMPLICIT])}")
        self.__dict__[name] = value
        return value

    def derivative(self, of: str, by: str) -> Any:
        """The derivative of a quantity.

        Parameters
        ----------
        of
            The name of a quantity, such as "a" or "lam".
        by
            "t", "q", "v", "s", "p" (all parameters), "u" (all inputs), or the name of one parameter or input.
            Each is varied alone: constraints do not follow.

        Returns
        -------
        array
            With the axes of the quantity, then those of what it is derived by, then that of the states.
        """
        if of not in EXPLICIT and of not in IMPLICIT:
            raise ValueError(f"of: {shown(of)}; give one of {', '.join([*EXPLICIT, *IMPLICIT])}")
        symbol, shape = self._symbol_of(by)
        self._require_traced(of, by)
        if of in EXPLICIT:
            own = self._expression(of)

            def change(model: Model) -> ca.SX:
                return _columns(_total(model, own(model), symbol))

            value = self._values(f"at: {of} by {by}", change)
            if ca.depends_on(own(self.system.model), self.system.model.lam):
                value = value + self._through_multipliers(of, by, symbol)
            return self.shaped(value, (*self._shape(of), *shape))
        a, lam = self._motion_by(by, symbol)
        if of == "a":
            return self.shaped(a, (self.system.n, *shape))
        if of == "lam":
            return self.shaped(lam, (self.system.m, *shape))
        return self._force_by(by, symbol, lam, shape)

    def inverse_dynamics(self, a: Any, inputs: Sequence[str] | None = None) -> Any:
        """The inputs that give these accelerations, least in norm where several do.

        Parameters
        ----------
        a : (n,) array, or (n, states)
            Wanted accelerations; they must agree with the constraints.
        inputs
            Names of the inputs to be found, all others staying as they are; by default all.

        Returns
        -------
        dict
            Values by name; of a system without inputs, the generalised forces that are missing, less those
            that the constraints can exert.
        """
        from holonome.dynamics.inverse import inverse_dynamics

        return inverse_dynamics(self, a, inputs)

    def __iter__(self) -> Iterator[State]:
        """Each state by itself."""
        for time, row in zip(self.times, self._states, strict=True):
            yield State(self.system, time, *self._parts(row))

    def of(self, system: System) -> State:
        """Another system at the same state, one with other parameters or inputs."""
        if self._single:
            return State(system, self.t, *self._parts(self._states[0]))
        return State(system, self.times, *self._parts(self._states.T))

    def _parts(self, y: np.ndarray) -> list[np.ndarray]:
        n = self.system.n
        return [y[:n], y[n : 2 * n], y[2 * n :]] if n else [y]

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.times)

    def _shape(self, name: str) -> tuple[int, ...]:
        n, m = self.system.n, self.system.m
        if name in SCALARS:
            return ()
        if name in ("M", "G"):
            return (n if name == "M" else m), n
        return (EXPLICIT[name](self.system.model).numel() if name in EXPLICIT else n,)

    def shaped(self, rows: np.ndarray, shape: tuple[int, ...]) -> Any:
        """Values with one state a row, as arrays of this shape with the states last."""
        array = np.moveaxis(rows.reshape(self.size, *shape), 0, -1)
        if not self._single:
            return array
        return array[..., 0] if shape else float(array[0])

    def _expression(self, name: str) -> Quantity:
        if name != "M" and name != "G":
            return EXPLICIT[name]
        return lambda model: ca.vec(EXPLICIT[name](model).T)

    def _explicit(self, name: str) -> Any:
        own = self._expression(name)
        if name == "potential_energy" or name == "energy":
            _potential(self.system.model)
        return self.shaped(self._values(f"at: {name}", own), self._shape(name))

    def _accelerations(self) -> tuple[Any, Any, Any]:
        n, m = self.system.n, self.system.m
        motion, lam = self._motion
        force = 0.0 - np.einsum("kij,ki->kj", self.rows("G"), lam)
        return self.shaped(motion, (n,)), self.shaped(lam, (m,)), self.shaped(force, (n,))

    @property
    def _motion(self) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations and multipliers, one state a row."""
        if "_found" not in self.__dict__:
            compiled, size, n = kernels(self.system), self.system.state_size, self.system.n
            rates = self._over(compiled.derivative, dense_derivative.address, size)[:, n : 2 * n]
            lam = np.zeros((self.size, 0))
            if self.system.m:
                lam = self._over(compiled.multipliers, dense_multipliers.address, self.system.m)
            for array in (rates, lam):
                array.flags.writeable = False
            self.__dict__["_found"] = rates, lam
        return self.__dict__["_found"]

    def rows(self, name: str) -> np.ndarray:
        """A quantity with the states first."""
        return self._values(f"at: {name}", self._expression(name)).reshape(self.size, *self._shape(name))

    def _values(self, key: str, build: Quantity, further: np.ndarray | None = None) -> np.ndarray:
        """The values of an expression, one state a row; ``further`` are values of the symbols of
        `_motion_symbols`.
        """

        def column(model: Model):
            a, lam = _motion_symbols(model)
            return model.y, ca.vertcat(a, lam), ca.densify(ca.vec(build(model))), None

        size = self.system.compiled.once(("size", key), lambda: build(self.system.model).numel())
        if not size:
            return np.zeros((self.size, 0))
        return self._over(self.system.kernel(key, column).address, 0, size, further)

    def _over(self, address: int, dense: int, size: int, further: np.ndarray | None = None) -> np.ndarray:
        z = np.zeros((self.size, 1)) if further is None else np.ascontiguousarray(further)
        out, context = np.zeros((self.size, size)), kernels(self.system).context(self.system)
        done = _evaluate(address, dense, context, self.times, self._states, z, out)
        if done < self.size:
            raise ModelError(what_failed(self.system, float(self.times[done]), self._states[done]))
        return out

    def _symbol_of(self, by: str) -> tuple[ca.SX, tuple[int, ...]]:
        """Symbols by which is derived, and their shape."""
        model, parameters = self.system.model, self.system.parameters
        known = {"t": model.t, "q": model.q, "v": model.v, "s": model.s}
        if by == "t":
            return model.t, ()
        if by in known:
            return known[by], (known[by].numel(),)
        if by in ("p", "u"):
            places = [parameters.place(name) for name in parameters.layout_of(by)]
            rows = [row for place in places for row in range(place.start, place.stop)]
            return model.p[rows], (len(rows),)
        if by in parameters:
            return model.p[parameters.place(by)], np.shape(parameters[by])
        there = ", ".join([*map(repr, _SYMBOLS), *map(repr, parameters)])
        raise ValueError(f"by: {shown(by)}; give one of {there}")

    def _require_traced(self, of: str, by: str) -> None:
        """Of functions that are called, first derivatives by q and v are known, by differences; no others."""
        parameters = self.system.parameters
        kind = by if by in _SYMBOLS else "u" if by in parameters.inputs else "p"
        for function in self.system.functions.values():
            if function.supplied is None:
                continue
            second = function.role in _ROLES_OF_GRADIENTS and of in _OF_GRADIENTS and kind in "qv"
            if second or (kind in function.arguments and kind not in "qv"):
                raise ModelError(
                    f"{function.role}: the derivative of {of!r} by {by!r} is not known, since the function "
                    f"cannot be traced ({function.reason}); write it with NumPy functions"
                )

    def _motion_by(self, by: str, symbol: ca.SX) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of accelerations and multipliers, (states, n, columns) and (states, m, columns)."""
        n, m, columns = self.system.n, self.system.m, symbol.numel()

        def residual(model: Model) -> ca.SX:
            return _columns(_total(model, _balance(model), symbol))

        def coupling(model: Model) -> ca.SX:
            return _columns(ca.jacobian(model.f, model.lam)) if model.lam.numel() else ca.SX(0, 1)

        a, lam = self._motion
        further = np.hstack([a, lam])
        right = self._values(f"at: balance by {by}", residual, further).reshape(self.size, n + m, columns)
        M, G = self.rows("M"), self.rows("G")
        forces = np.swapaxes(G, 1, 2).copy()
        if self.system.model.lam.numel():
            forces -= self._values("at: f by lam", coupling, further).reshape(self.size, n, m)
        return _solved(M, G, forces, right)

    def _through_multipliers(self, of: str, by: str, symbol: ca.SX) -> np.ndarray:
        """What is added where a quantity depends on λ, which follows."""
        own, m = self._expression(of), self.system.m
        slope = self._values(f"at: {of} by lam", lambda model: _columns(ca.jacobian(own(model), model.lam)))
        _, lam = self._motion_by(by, symbol)
        return (slope.reshape(self.size, -1, m) @ lam).reshape(self.size, -1)

    def _force_by(self, by: str, symbol: ca.SX, lam: np.ndarray, shape: tuple[int, ...]) -> Any:
        n, columns = self.system.n, symbol.numel()

        def turned(model: Model) -> ca.SX:
            return _columns(_total(model, model.C.T @ _motion_symbols(model)[1], symbol))

        G = self.rows("G")
        change = self._values(f"at: pull by {by}", turned, np.hstack(self._motion))
        total = -change.reshape(self.size, n, columns) - np.einsum("kij,kic->kjc", G, lam)
        return self.shaped(total, (n, *shape))


def _states(system: System, t: Any, q: Any, v: Any, s: Any) -> tuple[np.ndarray, np.ndarray, bool]:
    """Times and states, one a row, and whether it is only one."""
    n, k = system.n, len(system.states)
    sizes = {"q": (q, n), "v": (v, n), "s": (s, k)} if n else {"q": (q, k)}
    start = list(system.states.values())
    parts, counts = [], set()
    for name, (given, size) in sizes.items():
        if given is None:
            if name == "q":
                raise ValueError("q: missing; give the positions")
            given = np.array(start) if name == "s" else np.zeros(size)
        array = read(NUMBERS, name, given)
        if array.ndim == 0 and size == 1:
            array = array.reshape(1)
        if array.ndim not in (1, 2) or array.shape[0] != size:
            raise ValueError(
                f"{name}: shape {array.shape}; give ({size},), or ({size}, states) for many states"
            )
        parts.append(array)
        counts |= {array.shape[1]} if array.ndim == 2 else set()
    times = read(NUMBERS, "t", t)
    if times.ndim > 1:
        raise ValueError(f"t: shape {times.shape}; give a number, or one for each state")
    counts |= {times.size} if times.ndim else set()
    if len(counts) > 1:
        raise ValueError(
            f"t: {' and '.join(map(str, sorted(counts)))} states are given; give as many of each"
        )
    count = counts.pop() if counts else 1
    single = times.ndim == 0 and all(part.ndim == 1 for part in parts)
    columns = [part if part.ndim == 2 else part[:, np.newaxis] for part in parts]
    rows = [np.broadcast_to(part, (len(part), count)).T for part in columns]
    return np.array(np.broadcast_to(times, count)), np.ascontiguousarray(np.hstack(rows)), single


def _motion_symbols(model: Model) -> tuple[ca.SX, ca.SX]:
    """Symbols of accelerations and multipliers, always the same for a model."""
    found = model.__dict__.get("_motion_symbols")
    if found is None:
        found = ca.SX.sym("a", model.n), ca.SX.sym("lam", model.rows)
        model.__dict__["_motion_symbols"] = found
    return found


def _balance(model: Model) -> ca.SX:
    """R(a, λ)."""
    a, lam = _motion_symbols(model)
    return ca.vertcat(model.M @ a + model.C.T @ lam - model.f, model.C @ a + model.gamma)


def _total(model: Model, x: ca.SX, symbol: ca.SX) -> ca.SX:
    """The derivative of an expression, the unknowns and the values of supplied functions following, but not
    the multipliers.
    """
    x = ca.densify(x)
    found = ca.jacobian(x, symbol)
    if model.u.numel():
        found += ca.jacobian(x, model.u) @ -ca.solve(
            ca.jacobian(model.k, model.u), ca.jacobian(model.k, symbol)
        )
    if symbol is model.q or symbol is model.v:
        both = model.by_supplied_values(x)
        found += both[:, : model.n] if symbol is model.q else both[:, model.n :]
    return found


def _columns(matrix: ca.SX) -> ca.SX:
    """Row after row."""
    return ca.vec(ca.densify(matrix).T)


def _solved(
    M: np.ndarray, G: np.ndarray, forces: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(a, λ) from M a + forces λ = −r₁, G a = −r₂ at each state, in units in which M and the rows of G are of
    size 1; λ of least norm where rows depend on each other.
    """
    (count, n, _), m = M.shape, G.shape[1]
    mass = np.maximum(np.abs(M).max(axis=(1, 2), initial=0.0), 1e-300)[:, None, None]
    rows = np.maximum(np.linalg.norm(G, axis=2), 1e-300)[:, :, None]
    matrix = np.zeros((count, n + m, n + m))
    matrix[:, :n, :n] = M / mass
    matrix[:, :n, n:] = forces / np.swapaxes(rows, 1, 2)
    matrix[:, n:, :n] = G / rows
    given = -np.concatenate([right[:, :n] / mass, right[:, n:] / rows], axis=1)
    x = np.linalg.pinv(matrix, rcond=_NEGLIGIBLE) @ given if n else given
    lam = x[:, n:] * mass / rows
    dependent = np.linalg.matrix_rank(G / rows, _NEGLIGIBLE) < m if m else np.zeros(count, bool)
    for k in np.flatnonzero(dependent):
        lam[k] = np.linalg.lstsq(forces[k], forces[k] @ lam[k], rcond=_NEGLIGIBLE)[0]
    return x[:, :n], lam


@njit(cache=True, nogil=True)
def _evaluate(address, dense, context_array, times, states, further, out):
    """Evaluate a kernel at each state, or its dense fallback where it finds the matrix singular; returns the
    number of states done before a failure.
    """
    context, value = pointer(context_array), np.zeros(out.shape[1] + 1)
    y, z = np.zeros(states.shape[1] + 1), np.zeros(further.shape[1] + 1)
    for i in range(times.size):
        y[:-1] = states[i]
        z[:-1] = further[i]
        value[:] = 0.0
        status = call(address, times[i], pointer(y), pointer(z), context, pointer(value))
        if status == SINGULAR and dense != 0:
            status = call(dense, times[i], pointer(y), pointer(z), context, pointer(value))
        if status != OK or not np.all(np.isfinite(value[:-1])):
            return i
        out[i] = value[:-1]
    return times.size

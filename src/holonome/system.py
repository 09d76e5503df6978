"""System: the user's mechanical system, from plain NumPy functions to expressions and compiled kernels."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from holonome import elastic as elements
from holonome.compilation import Kernel, kernel
from holonome.elastic import Elastic
from holonome.engine.context import PARAMETERS
from holonome.errors import ModelError
from holonome.foreign import Foreign
from holonome.functions import Expression, UserFunction, probe_points
from holonome.model import Model
from holonome.parameters import Parameters
from holonome.tracing import argument_names, trace, traced

DERIVATIVES = {"constraint_q": "constraint", "force_q": "force", "force_v": "force"}
"""Hand-written derivatives that are accepted, and the function each belongs to."""


class System:
    """A mechanical system  M(t, q) v′ = f(t, q, v) − c_qᵀ (K c + D c′) − Gᵀ λ,  0 = g(t, q),  A(q) v = b.

    Every function is ordinary NumPy code and names the arguments it wants, any subset of ``t``, ``q``, ``v``, ``p``.  Nothing else is asked for: derivatives are exact
    and automatic.

    Parameters
    ----------
    mass : array or callable(t, q, p)
        n × n matrix; a vector is its diagonal, a scalar that multiple of the identity.
    force : array or callable(t, q, v, p)
        n applied forces, with gyroscopic terms.  May be left out where there are elastic elements.
    constraint : callable(t, q, p), optional
        One or many position constraints g; zero where they hold.
    velocity_constraint : callable(t, q, v, p), optional
        Non-holonomic rows.  With ``v`` among its arguments it returns the residual A(q) v − b, linear in v; without, the matrix A(q).
    elastic : Elastic or sequence of Elastic, optional
        Springs and bushings: deformations c(t, q) with stiffness K and damping D, whose forces come on top of ``force``.
    potential : callable(t, q, p), optional
        Potential energy of ``force``; that of elastic elements, ½ cᵀ K c, is added.  Only used to report the energy; forces are not derived from it.
    parameters : dict, optional
        Numbers and arrays that the functions see as ``p.name``.  They may be changed for a run without compiling anything.
    names : sequence of str, optional
        Names of the coordinates.
    n : int, optional
        Number of coordinates, where neither ``names`` nor a mass array tells it.
    constraint_names : sequence of str, optional
        Names of the rows of ``constraint`` and then of ``velocity_constraint``, for messages and plots.
    derivatives : dict, optional
        Hand-written derivatives: ``constraint_q`` (m × n), ``force_q``, ``force_v`` (n × n).  They are checked; they are needed only for functions that cannot be traced.
    name : str, optional
        A name for messages and plots.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> pendulum = hn.System(mass=np.eye(2), force=lambda q, p: np.array([0.0, -p.g]), constraint=lambda q, p: q @ q - p.length**2,
    ...                      parameters={"g": 9.81, "length": 1.0}, names=["x", "y"])
    >>> pendulum.n, pendulum.m
    (2, 1)
    """

    def __init__(self, mass: Any, force: Any = None, constraint: Callable | None = None, *, velocity_constraint: Callable | None = None,
                 elastic: Elastic | Sequence[Elastic] | None = None, potential: Any = None, parameters: Mapping[str, Any] | None = None,
                 names: Sequence[str] | None = None, n: int | None = None, constraint_names: Sequence[str] | None = None,
                 derivatives: Mapping[str, Callable] | None = None, name: str = "system") -> None:
        self.name = str(name)
        self.parameters = Parameters(parameters)
        self.n = _count(mass, names, n)
        self.names = _distinct_names("names", names, self.n) or [f"q{i}" for i in range(self.n)]
        parts = elements.as_elements(elastic)
        if force is None and parts:
            force, potential = np.zeros(self.n), 0.0 if potential is None else potential
        given = {"mass": mass, "force": force, "constraint": constraint, "velocity_constraint": velocity_constraint, "potential": potential}
        for role in ("mass", "force"):
            if given[role] is None:
                raise ModelError(f"{role}: missing; give an array or a callable")
        self.functions = {role: UserFunction(role, f, self.n, self.parameters) for role, f in given.items() if f is not None}
        self.functions |= elements.functions(parts, self.n, self.parameters)
        self._elements = list(parts)
        self._derivatives = dict(derivatives or {})
        self._build()
        self.constraint_names = _distinct_names("constraint_names", constraint_names, self.m) or self._default_constraint_names()
        self._check_derivatives()

    @property
    def paths(self) -> dict[str, str]:
        """How each function reaches the engine: "constant", "traced", "numba" or "python"."""
        return {role: function.path for role, function in self.functions.items()}

    @property
    def has_energy(self) -> bool:
        """Whether a potential was given."""
        return self.model.V is not None

    def with_parameters(self, **values: Any) -> System:
        """The same system with other parameter values; shares all compiled code."""
        other = object.__new__(System)
        other.__dict__.update(self.__dict__)
        other.parameters = self.parameters.changed(values)
        other._check_elements()
        return other

    def context(self, extra: int = 0) -> np.ndarray:
        """A context (:mod:`holonome.engine.context`) with header still empty, parameters and foreign blocks filled, and room for ``extra`` doubles behind them."""
        context = np.zeros(PARAMETERS + self.context_size + extra)
        context[PARAMETERS: PARAMETERS + self.parameters.size] = self.parameters.flat
        for offset, foreign in self._foreign.items():
            head = foreign.head()
            context[PARAMETERS + offset: PARAMETERS + offset + len(head)] = head
        return context

    @property
    def foreign(self) -> list[Foreign]:
        """The functions that are called rather than traced."""
        return list(self._foreign.values())

    def kernel(self, name: str, build: Callable[[Model], tuple[ca.SX, ca.SX, ca.SX, ca.SX | None]]) -> Kernel:
        """A compiled kernel, made on first use.

        Parameters
        ----------
        name
            Key under which this system remembers it.
        build
            From the model to (y, z, out, margin): the symbols of the kernel's two inputs, the column of results, and the margin of regularity (or None).
        """
        with self._lock:
            if name not in self.kernels:
                model = self.model
                y, z, out, margin = build(model)
                self.kernels[name] = kernel(out, [model.t, y, z, model.p], margin=margin, suppliers=model.suppliers if self._needs_suppliers(out) else ())
            return self.kernels[name]

    def _needs_suppliers(self, out: ca.SX) -> bool:
        """Whether an expression contains values of functions that cannot be traced."""
        return bool(self._foreign) and ca.depends_on(out, self.model.p[self.parameters.size:])

    def _build(self) -> None:
        """Trace every function; those that cannot be traced become blocks of the context."""
        self._lock, self.kernels, self._foreign, self.shared = threading.RLock(), {}, {}, {}
        n = self.n
        self.symbols = {"t": ca.SX.sym("t"), "q": ca.SX.sym("q", n), "v": ca.SX.sym("v", n), "p": ca.SX.sym("p", self.parameters.size)}
        expressions, given, blocks, offset = {}, {}, [], self.parameters.size
        for role, function in self.functions.items():
            expression = function.expression(self.symbols)
            if isinstance(expression, Foreign):
                block = ca.SX.sym(role, expression.size)
                self._foreign[offset] = expression
                offset += expression.size
                blocks.append(block)
                expression, derivatives = expression.symbols(block)
                given |= derivatives
            expressions[role] = expression
        self.context_size, self._expressions = offset, expressions
        t, q, v, p = self.symbols.values()
        model = Model(t, q, v, ca.vertcat(p, *blocks), ca.reshape(expressions["mass"], n, n).T, expressions["force"], expressions.get("constraint", ca.SX(0, 1)),
                      expressions.get("velocity_constraint", ca.SX(0, 1)), expressions.get("potential"), given, tuple(self._foreign))
        self.model = self._use_written_derivatives(self._with_elements(model))
        self.m = model.rows
        self._check_values()
        self._check_elements()

    def _with_elements(self, model: Model) -> Model:
        """The forces of elastic elements enter f, their energy the potential."""
        if not self._elements:
            return model
        elastic = elements.combined(self._elements, self._expressions, self.functions, model.f)
        return replace(model, f=model.f + elastic.force(model), V=None if model.V is None else model.V + elastic.energy, elastic=elastic)

    def _check_elements(self) -> None:
        if self.model.elastic is not None:
            elements.check(self._elements, self.model.elastic, self._expressions, self.symbols["p"], self.parameters)

    def _check_values(self) -> None:
        """The mass matrix must be symmetric, and a velocity constraint linear in v."""
        model, mass = self.model, self.functions["mass"]
        if model.h.numel() and not self._velocity_constraint_is_linear():
            raise ModelError("velocity_constraint: must be linear in v, A(q) v − b; this one is not")
        traced_mass = mass.foreign is None and ca.Function("check", list(self.symbols.values()), [model.M])
        for point in probe_points(self.n):
            try:
                M = traced_mass(point["t"], point["q"], point["v"], self.parameters.flat) if traced_mass else ca.DM(mass.evaluate(point))
            except ModelError:
                continue
            skew = np.abs(np.array((M - M.T).nonzeros()))
            size = np.abs(np.array(M.nonzeros()))
            if np.all(np.isfinite(size)) and np.max(skew, initial=0.0) > 1e-8 * np.max(size, initial=0.0):
                M = np.array(M)
                i, j = np.unravel_index(np.argmax(np.abs(M - M.T)), M.shape)
                raise ModelError(f"mass: must be symmetric, but M[{i},{j}] = {M[i, j]:.6g} and M[{j},{i}] = {M[j, i]:.6g}")

    def _velocity_constraint_is_linear(self) -> bool:
        model, function = self.model, self.functions["velocity_constraint"]
        if function.foreign is None:
            return not ca.jacobian(ca.jacobian(model.h, model.v), model.v).nnz()
        for point in probe_points(self.n):
            v = point["v"]
            try:
                values = [function.evaluate({**point, "v": u}) for u in (0 * v, v, 3 * v)]
            except ModelError:
                continue
            if not np.allclose(values[2] - values[0], 3 * (values[1] - values[0]), rtol=1e-8, atol=1e-10):
                return False
        return True

    def _use_written_derivatives(self, model: Model) -> Model:
        """A hand-written G replaces the finite differences of a constraint that cannot be traced."""
        written = self._derivatives.get("constraint_q")
        if written is None or "G" not in model.given or "t" in self.functions["constraint"].arguments:
            return model
        symbols = {"q": traced(model.q, (self.n,)), "p": self.parameters.namespace(self.symbols["p"])}
        try:
            flat, _ = trace(written, {name: symbols[name] for name in argument_names(written)})
        except Exception:
            return model
        rows = model.g.numel()
        if flat.numel() != rows * self.n:
            raise ModelError(f"derivatives['constraint_q']: {flat.numel()} values; expected {rows} × {self.n}")
        G = ca.reshape(flat, self.n, rows).T
        given = dict(model.given, G=G, g_t=ca.SX(rows, 1), D_g=ca.jacobian(G @ model.v, model.q), gamma_g=ca.jtimes(G @ model.v, model.q, model.v))
        return replace(model, given=given)

    def _check_derivatives(self) -> None:
        """Compare hand-written derivatives with differences of the functions themselves."""
        for key, written in self._derivatives.items():
            if key not in DERIVATIVES:
                raise ModelError(f"derivatives: {key!r} is not known; accepted are {', '.join(DERIVATIVES)}")
            role, variable = DERIVATIVES[key], key[-1]
            if role not in self.functions:
                raise ModelError(f"derivatives: {key!r} given, but the system has no {role}")
            arguments = argument_names(written)
            for point in probe_points(self.n):
                full = dict(point, p=self.parameters.namespace(self.parameters.flat))
                try:
                    expected = _difference(lambda x, point=point: self.functions[role].evaluate({**point, variable: x}), point[variable])  # noqa: B023
                    found = np.asarray(written(**{name: full[name] for name in arguments}), dtype=float).reshape(expected.shape)
                except ModelError:
                    continue
                except Exception as error:
                    raise ModelError(f"derivatives[{key!r}]: {type(error).__name__}: {error}") from error
                wrong = np.abs(found - expected) > 1e-6 * (1 + np.max(np.abs(expected), initial=0.0))
                if np.any(wrong):
                    i, j = np.argwhere(wrong)[0]
                    raise ModelError(f"derivatives[{key!r}]: entry [{i},{j}] is {found[i, j]:.8g}, but {role} itself changes by {expected[i, j]:.8g} with {variable}[{j}] "
                                     f"(at {variable} = {np.array2string(point[variable], precision=4)})")

    def _default_constraint_names(self) -> list[str]:
        position = [f"constraint[{i}]" for i in range(self.model.position_rows)]
        return position + [f"velocity_constraint[{i}]" for i in range(self.m - len(position))]

    def __getstate__(self) -> dict[str, Any]:
        """Traced functions travel as expressions, so systems made of lambdas pickle; functions that cannot be traced must pickle themselves."""
        foreign = {f.role for f in self.foreign}
        as_text = {role: ca.Function("traced", list(self.symbols.values()), [ca.densify(self._expressions[role])]).serialize() for role in self.functions if role not in foreign}
        return {"name": self.name, "parameters": dict(self.parameters), "n": self.n, "names": self.names, "constraint_names": self.constraint_names,
                "functions": {role: self.functions[role].function for role in foreign}, "traced": as_text, "derivatives": self._derivatives if foreign else {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        functions = state["functions"] | {role: Expression(role, text, state["n"]) for role, text in state["traced"].items()}
        parts = {role: functions.pop(role) for role in list(functions) if role.startswith("elastic")}
        self.__init__(**functions, elastic=elements.rebuilt(parts), parameters=state["parameters"], names=state["names"], n=state["n"],
                      constraint_names=state["constraint_names"] or None, derivatives=state["derivatives"], name=state["name"])

    def __repr__(self) -> str:
        return f"System({self.name!r}, n={self.n}, m={self.m})"

    def __str__(self) -> str:
        how = {"constant": "constant", "traced": "traced, exact derivatives, native code", "numba": "compiled by numba, finite differences",
               "python": "called in Python, finite differences"}
        counts = {"position": self.model.position_rows, "velocity": self.model.h.numel()}
        kinds = " + ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        rows = f"{kinds} constraint row{'s' * (self.m != 1)}" if kinds else "no constraints"
        lines = [f"System {self.name!r}: {self.n} coordinate{'s' * (self.n != 1)} ({', '.join(_shortened(self.names))}), {rows}"]
        width = max(20, *map(len, self.functions))
        lines += [f"  {role:{width}s} {how[f.path]}" + (f"  ({f.reason})" if f.reason else "") for role, f in self.functions.items()]
        if self.parameters:
            lines.append(f"  {'parameters':{width}s} " + ", ".join(f"{k} = {np.array2string(np.asarray(v), precision=6, threshold=6)}" for k, v in self.parameters.items()))
        return "\n".join(lines)


def _count(mass: Any, names: Sequence[str] | None, n: int | None) -> int:
    """The number of coordinates, from whatever tells it."""
    told = {}
    if names is not None:
        if isinstance(names, str):
            raise ModelError(f"names: give a list of names, not the string {names!r}")
        told["names"] = len(names)
    if n is not None:
        told["n"] = int(n)
    if not callable(mass) and mass is not None and np.ndim(mass) > 0:
        told["mass"] = len(mass)
    if not told:
        if mass is not None and not callable(mass):
            return 1
        raise ModelError("n: the number of coordinates is not known; give names=[...] or n=...")
    if len(set(told.values())) > 1:
        raise ModelError("n: " + " but ".join(f"{key} tells {value} coordinates" for key, value in told.items()))
    count = next(iter(told.values()))
    if count < 1:
        raise ModelError(f"n: a system has at least one coordinate, not {count}")
    return count


def _distinct_names(argument: str, names: Sequence[str] | None, count: int) -> list[str]:
    if names is None:
        return []
    names = [str(name) for name in names]
    if len(names) != count:
        raise ModelError(f"{argument}: {len(names)} names for {count} {'coordinates' if argument == 'names' else 'constraint rows'}")
    if len(set(names)) < len(names):
        raise ModelError(f"{argument}: {max(names, key=names.count)!r} appears more than once")
    return names


def _difference(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Jacobian by central differences of order four."""
    h, columns = 1e-3, []
    for direction in np.eye(x.size) * h:
        a, b, c, d = (function(x + k * direction) for k in (1, -1, 2, -2))
        columns.append((8 * (a - b) - (c - d)) / (12 * h))
    return np.array(columns).T


def _shortened(names: Sequence[str]) -> list[str]:
    return list(names) if len(names) <= 9 else [*names[:4], "…", *names[-2:]]

"""System: the user's mechanical system, from plain NumPy functions to expressions and compiled kernels."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from holonome.equations.model import Model
from holonome.equations.program import Program
from holonome.errors import ModelError
from holonome.machine import inner_newton
from holonome.machine.compiled import Compiled
from holonome.machine.context import PARAMETERS, write_block
from holonome.machine.inner_newton import SolvedBlock
from holonome.machine.kernel import Kernel, kernel
from holonome.machine.supplied import Supplied
from holonome.problem import elastic as elements
from holonome.problem.drawing import Drawing
from holonome.problem.elastic import Elastic
from holonome.problem.parameters import Parameters
from holonome.problem.user_function import Expression, UserFunction, probe_points
from holonome.problem.vectors import vector
from holonome.tracing import argument_names, trace, traced

DERIVATIVES = {"constraint_q": "constraint", "force_q": "force", "force_v": "force"}
"""Hand-written derivatives that are accepted, and the function each belongs to."""


class System:
    """A mechanical system  M(t, q) v′ = f(t, q, v) − c_qᵀ (K c + D c′) − Gᵀ λ,  0 = g(t, q),  A(q) v = b.

    Every function is ordinary NumPy code and names the arguments it wants, any subset of ``t``, ``q``, ``v``,
    ``p``.  Nothing else is asked for: derivatives are exact and automatic.  A system with states or unknowns
    offers them as ``s`` and ``w``, and ``force`` and ``rate`` may ask for the multipliers ``lam``.

    Parameters
    ----------
    mass : array or callable(t, q, p)
        n × n matrix; a vector is its diagonal, a scalar that multiple of the identity.
    force : array or callable(t, q, v, p)
        n applied forces, with gyroscopic terms.  May be left out where there are elastic elements.
    constraint : callable(t, q, p), optional
        One or many position constraints g; zero where they hold.
    velocity_constraint : callable(t, q, v, p), optional
        Non-holonomic rows.  With ``v`` among its arguments it returns the residual A(q) v − b, linear in v;
        without, the matrix A(q).
    elastic : Elastic or sequence of Elastic, optional
        Springs and bushings: deformations c(t, q) with stiffness K and damping D, whose forces come on top of
        ``force``.
    states, rate : dict and callable(t, q, v, s, w, lam, p), optional
        First-order states s by name with their values at the start, and s′.
    unknowns, equations : dict and callable(t, q, w, p), optional
        Unknowns w by name with a guess of their values at the start, and what must vanish: as many equations,
        which determine w.  Contact points, for example.
    invariant : callable(t, q, v, s, w, p), optional
        Quantities that the motion conserves, such as energy or momentum.  Projection keeps them at their
        initial values as well.
    potential : callable(t, q, p), optional
        Potential energy of ``force``; that of elastic elements, ½ cᵀ K c, is added.  Only used to report the
        energy; forces are not derived from it.
    parameters : dict, optional
        Numbers and arrays that the functions see as ``p.name``.  They may be changed for a run without
        compiling anything.
    names : sequence of str, optional
        Names of the coordinates.
    n : int, optional
        Number of coordinates, where neither ``names`` nor a mass array tells it.
    constraint_names : sequence of str, optional
        Names of the rows of ``constraint`` and then of ``velocity_constraint``, for messages and plots.
    derivatives : dict, optional
        Hand-written derivatives: ``constraint_q`` (m × n), ``force_q``, ``force_v`` (n × n).  They are
        checked; they are needed only for functions that cannot be traced.
    name : str, optional
        A name for messages and plots.
    drawing : Drawing, optional
        How to draw it in an animation; without, points and rods are looked for in its coordinates and
        constraints.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> pendulum = hn.System(mass=np.eye(2), force=lambda q, p: np.array([0.0, -p.g]), constraint=lambda q, p: q @ q - p.length**2,
    ...                      parameters={"g": 9.81, "length": 1.0}, names=["x", "y"])
    >>> pendulum.n, pendulum.m
    (2, 1)
    """

    def __init__(
        self,
        mass: Any,
        force: Any = None,
        constraint: Callable | None = None,
        *,
        velocity_constraint: Callable | None = None,
        elastic: Elastic | Sequence[Elastic] | None = None,
        states: Mapping[str, float] | None = None,
        rate: Callable | None = None,
        unknowns: Mapping[str, float] | None = None,
        equations: Callable | None = None,
        invariant: Callable | None = None,
        potential: Any = None,
        parameters: Mapping[str, Any] | None = None,
        names: Sequence[str] | None = None,
        n: int | None = None,
        constraint_names: Sequence[str] | None = None,
        derivatives: Mapping[str, Callable] | None = None,
        name: str = "system",
        drawing: Drawing | None = None,
    ) -> None:
        if drawing is not None and not isinstance(drawing, Drawing):
            raise ModelError(f"drawing: {type(drawing).__name__}; give an hn.Drawing")
        self.name, self.drawing = str(name), drawing
        self.parameters = Parameters(parameters)
        self.n = 0 if n == 0 and states else _count(mass, names, n)
        self.names = _distinct_names("names", names, self.n) or [f"q{i}" for i in range(self.n)]
        parts = elements.as_elements(elastic)
        if force is None and parts:
            force, potential = np.zeros(self.n), 0.0 if potential is None else potential
        self.states, self.unknowns = (
            _start_values("states", states, "rate", rate),
            _start_values("unknowns", unknowns, "equations", equations),
        )
        self.state_size = 2 * self.n + len(self.states)
        given = {
            "mass": mass,
            "force": force,
            "constraint": constraint,
            "velocity_constraint": velocity_constraint,
            "rate": rate,
            "equations": equations,
            "invariant": invariant,
            "potential": potential,
        }
        for role in ("mass", "force"):
            if given[role] is None:
                raise ModelError(f"{role}: missing; give an array or a callable")
        self._further = {
            name: np.array(list(values.values()))
            for name, values in (("s", self.states), ("w", self.unknowns))
            if values
        }
        if any(
            callable(f) and (f.uses_lam if isinstance(f, Expression) else "lam" in argument_names(f))
            for f in (force, rate)
        ):
            if constraint is None and velocity_constraint is None:
                raise ModelError("force: its argument 'lam' is not known; the system has no constraints")
            self._further["lam"] = np.zeros(0)
        self.functions = {
            role: UserFunction(role, f, self.n, self.parameters, self._further)
            for role, f in given.items()
            if f is not None
        }
        self.functions |= elements.functions(parts, self.n, self.parameters)
        self._elements = list(parts)
        self._derivatives = dict(derivatives or {})
        self._build()
        self.constraint_names = (
            _distinct_names("constraint_names", constraint_names, self.m) or self._default_constraint_names()
        )
        self._check_derivatives()

    mechanical = True
    levels = 2

    @property
    def formulas(self) -> list[ca.SX]:
        """Expressions in which conditions on time are looked for."""
        model = self.model
        return [model.M, model.f, model.g, model.h, model.r]

    def split_state(self, rows: np.ndarray, single: bool) -> Any:
        """(q, v), or x of an ODE, from stored states, one a row."""
        n = self.n
        parts = (rows[:, :n].T, rows[:, n : 2 * n].T) if n else (rows[:, : self.state_size].T,)
        if single:
            parts = tuple(part[:, 0] for part in parts)
        return parts if n else parts[0]

    def full_state(self, q0: Any, v0: Any = None, s0: Any = None) -> np.ndarray:
        """A state (q, v, s) from the user's initial values."""
        n, k = self.n, len(self.states)
        if s0 is not None and not k:
            raise ValueError("s0: the system has no first-order states")
        y = np.zeros(self.state_size)
        y[:n] = vector("q0", q0, n)
        if v0 is not None:
            y[n : 2 * n] = vector("v0", v0, n)
        if k:
            y[2 * n :] = list(self.states.values()) if s0 is None else vector("s0", s0, k)
        return y

    def event_expression(self, role: str, function: Callable) -> ca.SX | Supplied:
        """An event as an expression, or as a function to be called."""
        return UserFunction(role, function, self.n, self.parameters, self.further_values).expression(
            self.symbols
        )

    @property
    def context_symbols(self) -> ca.SX:
        """Symbols of what a context holds behind its record."""
        return self.model.p

    @property
    def paths(self) -> dict[str, str]:
        """How each function reaches the engine: "constant", "traced", "numba" or "python"."""
        return {role: function.path for role, function in self.functions.items()}

    @property
    def p(self) -> Any:
        """The parameters as its functions see them, ``system.p.length``."""
        return self.parameters.namespace(self.parameters.flat)

    @property
    def all_names(self) -> list[str]:
        """Names of the coordinates and of the first-order states."""
        return [*self.names, *self.states]

    @property
    def sizes_in_words(self) -> str:
        """How many coordinates, states, unknowns and constraints there are."""
        sizes = {
            "coordinate": self.n,
            "state": len(self.states),
            "unknown": len(self.unknowns),
            "constraint": self.m,
            "invariant": self.model.I.numel(),
        }
        told = [
            f"{size} {what}{'s' * (size != 1)}"
            for what, size in sizes.items()
            if size or (what in ("coordinate", "constraint") and self.n)
        ]
        return ", ".join(told)

    @property
    def projects(self) -> bool:
        """Whether there is a manifold to return to."""
        return self.m > 0 or self.invariant_count > 0

    @property
    def has_energy(self) -> bool:
        """Whether a potential was given."""
        return self.model.V is not None

    def with_parameters(self, **values: Any) -> System:
        """The same system with other parameter values; shares all compiled code."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.parameters = self.parameters.changed(values)
        other._check_elements()
        return other

    def with_unknowns(self, values: Any) -> System:
        """The same system with other guesses for its unknowns; shares all compiled code."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.unknowns = dict(
            zip(self.unknowns, np.asarray(values, dtype=float).ravel().tolist(), strict=True)
        )
        return other

    def context(self, extra: int = 0) -> np.ndarray:
        """A context (:mod:`holonome.machine.context`) with header still empty, parameters and supplied blocks
        filled, and room for ``extra`` doubles behind them.
        """
        context = np.zeros(PARAMETERS + self.context_size + extra)
        context[PARAMETERS : PARAMETERS + self.parameters.size] = self.parameters.flat
        for name, (offset, _) in self._solved.items():
            write_block(context, offset, self._block_of_solved(name))
        self.fill_guess(context)
        for offset, supplied in self._supplied.items():
            write_block(context, offset, supplied.block())
        return context

    def fill_guess(self, context: np.ndarray) -> None:
        """Write the guess for the unknowns into a context."""
        if "w" in self._solved:
            offset, _ = self._solved["w"]
            SolvedBlock.vector(context, "values", PARAMETERS + offset)[:] = list(self.unknowns.values())

    def copy_unknowns(self, source: np.ndarray, target: np.ndarray) -> None:
        """Copy what was solved for from one context of this system to another."""
        for name, (offset, _) in self._solved.items():
            begin = PARAMETERS + offset
            end = begin + self._empty_block(name).size
            target[begin:end] = source[begin:end]

    def fill_invariants(self, context: np.ndarray, values: np.ndarray) -> None:
        """Write the values that the invariants shall keep into a context."""
        at = PARAMETERS + self.context_size - values.size
        context[at : at + values.size] = values

    def _empty_block(self, name: str) -> np.ndarray:
        """The block of w or lam, without any addresses."""
        return inner_newton.new_block(self._further[name].size, self.state_size)

    def _block_of_solved(self, name: str) -> np.ndarray:
        """The block of w or lam, with the addresses of this process."""
        block = self._empty_block(name)
        step = self.kernel(f"step of {name}", self._newton_step(name)).address
        prediction = self.kernel("step of w: prediction", _tangent).address if name == "w" else 0
        inner_newton.fill_addresses(block, step, prediction)
        return block

    def _newton_step(self, name: str) -> Callable[[Model], tuple[ca.SX, ca.SX, ca.SX, None]]:
        """The step of Newton's method for the unknowns, or for λ from C M⁻¹(f(λ) − Cᵀ λ) + γ = 0."""

        def build(model: Model) -> tuple[ca.SX, ca.SX, ca.SX, None]:
            x, residual = model.u, model.k
            if name == "lam":
                x, residual = (
                    model.lam,
                    model.C @ ca.solve(model.M, model.f - model.C.T @ model.lam) + model.gamma,
                )
            return (
                model.y,
                ca.SX(0, 1),
                ca.densify(-ca.solve(ca.densify(ca.jacobian(residual, x)), ca.densify(residual))),
                None,
            )

        return build

    @property
    def supplied(self) -> list[Supplied]:
        """The functions that are called rather than traced."""
        return list(self._supplied.values())

    def kernel(self, name: str, build: Callable[[Model], tuple[ca.SX, ca.SX, ca.SX, ca.SX | None]]) -> Kernel:
        """A compiled kernel, made on first use.

        Parameters
        ----------
        name
            Key under which this system remembers it.
        build
            From the model to (y, z, out, margin): the symbols of the kernel's two inputs, the column of
            results, and the margin of regularity (or None).
        """

        def make() -> Kernel:
            model = self.model
            y, z, out, margin = build(model)
            suppliers = self._suppliers(name, out)
            return kernel(out, [model.t, y, z, model.p], margin=margin, suppliers=suppliers)

        return self.compiled.once(("kernel", name), make)

    def _suppliers(self, name: str, out: ca.SX) -> tuple[int, ...]:
        """Offsets of the blocks whose values an expression contains, of those needed for them first."""
        called = (
            self.model.suppliers
            if self._supplied and ca.depends_on(out, self.model.p[self.parameters.size :])
            else ()
        )
        return called + self.solvers(out, but=name.removeprefix("step of ").partition(":")[0])

    def solvers(self, out: ca.SX, but: str = "") -> tuple[int, ...]:
        """Offsets of the blocks of variables that are solved for, as far as an expression contains them."""
        needed = [
            key for key, (_, symbols) in self._solved.items() if key != but and ca.depends_on(out, symbols)
        ]
        if "lam" in needed and "w" in self._solved:
            needed = ["w", "lam"]
        return tuple(self._solved[key][0] for key in needed)

    @property
    def further_names(self) -> tuple[str, ...]:
        """Which of s, w and lam the functions may ask for."""
        return tuple(self._further)

    @property
    def further_values(self) -> dict[str, np.ndarray]:
        """States and unknowns at the start, as far as there are any, for functions to be tried out with."""
        return {name: values for name, values in self._further.items() if name != "lam"}

    def _build(self) -> None:
        """Trace every function; those that cannot be traced become blocks of the context."""
        self.compiled, self._supplied = Compiled(), {}
        n = self.n
        self.symbols = {
            "t": ca.SX.sym("t"),
            "q": ca.SX.sym("q", n),
            "v": ca.SX.sym("v", n),
            "p": ca.SX.sym("p", self.parameters.size),
            "s": ca.SX.sym("s", len(self.states)),
            "w": ca.SX.sym("w", len(self.unknowns)),
        }
        expressions, given, blocks, offset = {}, {}, [], self.parameters.size
        for role in sorted(self.functions, key=lambda role: "constraint" not in role):
            function = self.functions[role]
            if "constraint" not in role and "lam" not in self.symbols:
                rows = sum(expressions[role].numel() for role in expressions)
                self.symbols["lam"] = ca.SX.sym("lam", rows)
                if "lam" in self._further:
                    self._further["lam"] = np.zeros(rows)
            expression = function.expression(self.symbols)
            if isinstance(expression, Supplied):
                block = ca.SX.sym(role, expression.size)
                self._supplied[offset] = expression
                offset += expression.size
                blocks.append(block)
                expression, derivatives = expression.symbols(block)
                given |= derivatives
            expressions[role] = expression
        self._expressions, self._solved = expressions, {}
        t, q, v, p, s, w, lam = self.symbols.values()
        none = ca.SX(0, 1)
        M, force = ca.sparsify(ca.reshape(expressions["mass"], n, n).T), expressions["force"]
        for name, symbols in (("w", w), ("lam", lam)):
            if name in self._further:
                empty = self._empty_block(name)
                values = SolvedBlock.span(empty, "values")
                block = ca.SX.sym(f"block of {name}", empty.size)
                blocks += [block[: values.start], symbols, block[values.stop :]]
                self._solved[name] = offset, symbols
                offset += block.numel()
        invariant = expressions.get("invariant", none)
        start = ca.SX.sym("invariant", invariant.numel())
        self.context_size, self.invariant_count = offset + start.numel(), start.numel()
        model = Model(
            t,
            q,
            v,
            ca.vertcat(p, *blocks, start),
            M,
            force,
            expressions.get("constraint", none),
            expressions.get("velocity_constraint", none),
            expressions.get("potential"),
            given,
            tuple(self._supplied),
            s=s,
            r=expressions.get("rate", none),
            u=w if "w" in self._further else none,
            k=expressions.get("equations", none),
            lam=lam if "lam" in self._further else none,
            I=invariant,
            I_start=start,
        )
        self.model = self._use_written_derivatives(self._with_elements(model))
        self.m = model.rows
        self._check_values()
        self._check_elements()

    def _with_elements(self, model: Model) -> Model:
        """The forces of elastic elements enter f, their energy the potential."""
        if not self._elements:
            return model
        elastic = elements.combined(self._elements, self._expressions, self.functions, model.f)
        return replace(
            model,
            f=model.f + elastic.force(model),
            V=None if model.V is None else model.V + elastic.energy,
            elastic=elastic,
        )

    def _check_elements(self) -> None:
        if self.model.elastic is not None:
            elements.check(
                self._elements, self.model.elastic, self._expressions, self.symbols["p"], self.parameters
            )

    def _check_values(self) -> None:
        """The mass matrix must be symmetric, and a velocity constraint linear in v."""
        model, mass = self.model, self.functions["mass"]
        if model.h.numel() and not self._velocity_constraint_is_linear():
            raise ModelError("velocity_constraint: must be linear in v, A(q) v − b; this one is not")
        traced_mass = mass.supplied is None and ca.Function(
            "check", list(self.symbols.values()), [ca.reshape(self._expressions["mass"], self.n, self.n).T]
        )
        further = [np.array(list(values.values())) for values in (self.states, self.unknowns)] + [
            np.zeros(self.m)
        ]
        for point in probe_points(self.n):
            try:
                M = (
                    traced_mass(point["t"], point["q"], point["v"], self.parameters.flat, *further)
                    if traced_mass
                    else ca.DM(mass.evaluate(point))
                )
            except ModelError:
                continue
            skew = np.abs(np.array((M - M.T).nonzeros()))
            size = np.abs(np.array(M.nonzeros()))
            if np.all(np.isfinite(size)) and np.max(skew, initial=0.0) > 1e-8 * np.max(size, initial=0.0):
                M = np.array(M)
                i, j = np.unravel_index(np.argmax(np.abs(M - M.T)), M.shape)
                raise ModelError(
                    f"mass: must be symmetric, but M[{i},{j}] = {M[i, j]:.6g} and M[{j},{i}] = {M[j, i]:.6g}"
                )

    def _velocity_constraint_is_linear(self) -> bool:
        model, function = self.model, self.functions["velocity_constraint"]
        if function.supplied is None:
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
            raise ModelError(
                f"derivatives['constraint_q']: {flat.numel()} values; expected {rows} × {self.n}"
            )
        G = ca.reshape(flat, self.n, rows).T
        given = dict(
            model.given,
            G=G,
            g_t=ca.SX(rows, 1),
            D_g=ca.jacobian(G @ model.v, model.q),
            gamma_g=ca.jtimes(G @ model.v, model.q, model.v),
        )
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
                full = dict(self._further, **point, p=self.parameters.namespace(self.parameters.flat))
                try:
                    expected = difference(
                        lambda x, point=point: self.functions[role].evaluate({**point, variable: x}),
                        point[variable],
                    )
                    found = np.asarray(
                        written(**{name: full[name] for name in arguments}), dtype=float
                    ).reshape(expected.shape)
                except ModelError:
                    continue
                except Exception as error:
                    raise ModelError(f"derivatives[{key!r}]: {type(error).__name__}: {error}") from error
                wrong = np.abs(found - expected) > 1e-6 * (1 + np.max(np.abs(expected), initial=0.0))
                if np.any(wrong):
                    i, j = np.argwhere(wrong)[0]
                    raise ModelError(
                        f"derivatives[{key!r}]: entry [{i},{j}] is {found[i, j]:.8g}, but {role} itself "
                        f"changes by {expected[i, j]:.8g} with {variable}[{j}] "
                        f"(at {variable} = {np.array2string(point[variable], precision=4)})"
                    )

    def _default_constraint_names(self) -> list[str]:
        position = [f"constraint[{i}]" for i in range(self.model.position_rows)]
        return position + [f"velocity_constraint[{i}]" for i in range(self.m - len(position))]

    def __getstate__(self) -> dict[str, Any]:
        """Traced functions travel as programs, so systems made of lambdas pickle; functions that cannot be
        traced must pickle themselves. A drawing that cannot stays behind.
        """
        supplied = {f.role for f in self.supplied}
        programs = {
            role: Program.of_expressions(self.symbols, [ca.densify(self._expressions[role])])
            for role in self.functions
            if role not in supplied
        }
        return {
            "name": self.name,
            "parameters": dict(self.parameters),
            "n": self.n,
            "names": self.names,
            "constraint_names": self.constraint_names,
            "functions": {role: self.functions[role].function for role in supplied},
            "traced": programs,
            "derivatives": self._derivatives if supplied else {},
            "states": self.states or None,
            "unknowns": self.unknowns or None,
            "drawing": self.drawing if _pickles(self.drawing) else None,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        functions = state["functions"] | {
            role: Expression(role, program, state["n"]) for role, program in state["traced"].items()
        }
        parts = {role: functions.pop(role) for role in list(functions) if role.startswith("elastic")}
        System.__init__(
            self,
            **functions,
            elastic=elements.rebuilt(parts),
            states=state["states"],
            unknowns=state["unknowns"],
            parameters=state["parameters"],
            names=state["names"],
            n=state["n"],
            constraint_names=state["constraint_names"] or None,
            derivatives=state["derivatives"],
            name=state["name"],
            drawing=state["drawing"],
        )

    def __repr__(self) -> str:
        return f"System({self.name!r}, n={self.n}, m={self.m})"

    def __str__(self) -> str:
        how = {
            "constant": "constant",
            "traced": "traced, exact derivatives, native code",
            "numba": "compiled by numba, finite differences",
            "python": "called in Python, finite differences",
        }
        counts = {"position": self.model.position_rows, "velocity": self.model.h.numel()}
        kinds = " + ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        rows = f"{kinds} constraint row{'s' * (self.m != 1)}" if kinds else "no constraints"
        lines = [
            f"System {self.name!r}: {self.n} coordinate{'s' * (self.n != 1)} "
            f"({', '.join(_shortened(self.names))}), {rows}"
        ]
        for what, values in (("state", self.states), ("unknown", self.unknowns)):
            if values:
                lines[0] += (
                    f", {len(values)} {what}{'s' * (len(values) != 1)} "
                    f"({', '.join(_shortened(list(values)))})"
                )
        width = max(20, *map(len, self.functions))
        lines += [
            f"  {role:{width}s} {how[f.path]}" + (f"  ({f.reason})" if f.reason else "")
            for role, f in self.functions.items()
        ]
        if self.parameters:
            lines.append(
                f"  {'parameters':{width}s} "
                + ", ".join(
                    f"{k} = {np.array2string(np.asarray(v), precision=6, threshold=6)}"
                    for k, v in self.parameters.items()
                )
            )
        return "\n".join(lines)


def _tangent(model: Model) -> tuple[ca.SX, ca.SX, ca.SX, None]:
    """By how much the unknowns change for z = (Δt, Δy), to first order."""
    move = ca.SX.sym("move", 1 + model.y.numel())
    return model.y, move, ca.densify(model.u_t * move[0] + model.u_q @ move[1 : 1 + model.n]), None


class ODE(System):
    """Ordinary differential equations x′ = f(t, x), with quantities that they conserve.

    Parameters
    ----------
    f : callable(t, x, p)
        The rates x′.
    invariant : callable(t, x, p), optional
        Conserved quantities, one or many; projection keeps them at their initial values.
    names, n
        Names of the components, or their number.
    parameters : dict, optional
        Numbers and arrays that the functions see as ``p.name``.
    name : str, optional
        A name for messages and plots.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> circle = hn.ODE(lambda x: np.array([-x[1], x[0]]), invariant=lambda x: x @ x, n=2)
    >>> sol = hn.solve(circle, (0, 100), [1, 0])
    >>> bool(np.max(np.abs(np.hypot(*sol.x) - 1)) < 1e-14)
    True
    """

    def __init__(
        self,
        f: Callable,
        invariant: Callable | None = None,
        *,
        names: Sequence[str] | None = None,
        n: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        name: str = "ode",
    ) -> None:
        if names is None and n is None:
            raise ModelError("n: the number of components is not known; give names=[...] or n=...")
        names = (
            _distinct_names("names", names, len(names) if n is None else n)
            if names is not None
            else [f"x{i}" for i in range(int(n or 0))]
        )
        super().__init__(
            np.zeros((0, 0)),
            np.zeros(0),
            n=0,
            states=dict.fromkeys(names, 0.0),
            rate=f,
            invariant=invariant,
            parameters=parameters,
            name=name,
        )

    def full_state(self, q0: Any, v0: Any = None, s0: Any = None) -> np.ndarray:
        if v0 is not None or s0 is not None:
            raise ValueError(f"{'v0' if v0 is not None else 's0'}: an ODE has x0 alone")
        return vector("x0", q0, len(self.states))

    def __repr__(self) -> str:
        return f"ODE({self.name!r}, n={len(self.states)})"

    def __str__(self) -> str:
        rest = [
            line for line in super().__str__().split("\n")[1:] if not line.startswith(("  mass ", "  force "))
        ]
        return "\n".join(
            [
                f"ODE {self.name!r}: {len(self.states)} components "
                f"({', '.join(_shortened(list(self.states)))})",
                *rest,
            ]
        )


def _pickles(thing: Any) -> bool:
    try:
        pickle.dumps(thing)
    except Exception:
        return False
    return True


def _start_values(
    argument: str, values: Mapping[str, float] | None, needs: str, function: Callable | None
) -> dict[str, float]:
    """Names and values at the start of states or unknowns."""
    if (values is None) != (function is None):
        raise ModelError(
            f"{argument}: {'missing' if values is None else 'given'}, but {needs} is "
            f"{'given' if values is None else 'missing'}; they go together"
        )
    if values is None:
        return {}
    try:
        found = {str(name): float(value) for name, value in dict(values).items()}
    except (TypeError, ValueError):
        raise ModelError(f"{argument}: {values!r}; give a dict of names and values") from None
    if not found or not all(np.isfinite(list(found.values()))):
        raise ModelError(f"{argument}: {values!r}; give at least one name with a finite value")
    return found


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
        raise ModelError(
            "n: " + " but ".join(f"{key} tells {value} coordinates" for key, value in told.items())
        )
    count = next(iter(told.values()))
    if count < 1:
        raise ModelError(f"n: a system has at least one coordinate, not {count}")
    return count


def _distinct_names(argument: str, names: Sequence[str] | None, count: int) -> list[str]:
    if names is None:
        return []
    names = [str(name) for name in names]
    if len(names) != count:
        raise ModelError(
            f"{argument}: {len(names)} names for {count} "
            f"{'coordinates' if argument == 'names' else 'constraint rows'}"
        )
    if len(set(names)) < len(names):
        raise ModelError(f"{argument}: {max(names, key=names.count)!r} appears more than once")
    return names


def difference(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Jacobian by central differences of order four."""
    h, columns = 1e-3, []
    for direction in np.eye(x.size) * h:
        a, b, c, d = (function(x + k * direction) for k in (1, -1, 2, -2))
        columns.append((8 * (a - b) - (c - d)) / (12 * h))
    return np.array(columns).T


def _shortened(names: Sequence[str]) -> list[str]:
    return list(names) if len(names) <= 9 else [*names[:4], "…", *names[-2:]]

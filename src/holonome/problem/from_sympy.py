"""SymPy models become Systems.

Everything is brought to the form of a System, M(t, q) v' = f(t, q, v) - G(t, q)^T lam with v = q', g(t, q) =
0 and A(t, q) v = b(t, q).

Kane's method works with speeds u that need not be q'. SymPy's KanesMethod moreover eliminates the dependent
ones, which fails in singular positions. So Kane's equations are formed anew with all speeds independent, M_u
u' = f_u, and the kinematic equations, solved for u = Y(q) v + y(q), change the variables:

    M = Y^T M_u Y,    f = Y^T (f_u - M_u (Y' v + y')).

The constraints are kept as they were stated. KanesMethod asks for the time derivatives of the configuration
constraints among its velocity constraints; those follow from g = 0 and are dropped.

References
----------
T. R. Kane, D. A. Levinson, Dynamics: Theory and Applications, McGraw-Hill, 1985.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.optimize import least_squares

from holonome.errors import ModelError
from holonome.problem.system import System

if TYPE_CHECKING:
    import sympy as sp


@dataclass(frozen=True)
class NumPyFunction:
    """A function of some of t, q, v, p given by its source text, so that it can be printed and pickled.

    Attributes
    ----------
    name : str
        The function that `source` defines.
    arguments : tuple of str
        Its arguments in order.
    source : str
        NumPy code.
    """

    name: str
    arguments: tuple[str, ...]
    source: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return NumPyFunction, (self.name, self.arguments, self.source)

    def __str__(self) -> str:
        return self.source

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in self.arguments]
        )

    @functools.cached_property
    def _function(self) -> Callable[..., Any]:
        namespace: dict[str, Any] = {"numpy": np}
        exec(compile(self.source, f"<from_sympy: {self.name}>", "exec"), namespace)
        return namespace[self.name]


def from_sympy(
    model: Any = None,
    *,
    mass: Any = None,
    force: Any = None,
    constraint: Any = None,
    velocity_constraint: Any = None,
    potential: Any = None,
    inertial: Literal["derived", "in force"] | None = None,
    coordinates: Sequence[Any] | None = None,
    speeds: Sequence[Any] | None = None,
    parameters: Mapping[Any, Any] | None = None,
    time: Any = None,
    name: str | None = None,
) -> System:
    r"""Make a System of a SymPy model, or of SymPy expressions.

    Parameters
    ----------
    model : KanesMethod, LagrangesMethod or System of sympy.physics.mechanics, optional
        Its equations need not have been formed. Speeds u other than q' are transformed to q'; speeds of
        Kane's method that belong to no coordinate get one, their integral. The constraints stay constraints,
        also where the model names dependent coordinates and speeds. Without a model, `coordinates`, `mass`
        and `force` are required.
    mass : n x n Matrix
        M(t, q).
    force : n expressions
        f(t, q, v), everything on the right-hand side but the constraint forces; see `inertial`.
    constraint : expressions, optional
        g(t, q), which are to vanish; `Eq` is understood.
    velocity_constraint : expressions in the velocities, optional
        A(t, q) v - b(t, q), which are to vanish: non-holonomic constraints.
    potential : expression, optional
        Potential energy V(t, q), for the energy balance only: its forces must be part of `force` or of the
        model. A LagrangesMethod has its own.
    inertial : "derived" or "in force", optional
        Whether the inertial terms of `mass` are to be added to `force`, as for `System`. The equations of a
        model contain them.
    coordinates : n dynamicsymbols
        The coordinates q in their order.
    speeds : n dynamicsymbols, optional
        Names for the derivatives q'. `q.diff()` is understood as well.
    parameters : mapping, optional
        Values of the constants by symbol or by name. A function of time that is no coordinate, such as a
        prescribed force F(t), is given by the expression that is to stand in its place.
    time : Symbol, optional
        Default: ``dynamicsymbols._t``.
    name : str, optional
        Name of the System.

    Returns
    -------
    System
        Its parameters are the constants of the model: the symbol ``l_1`` is ``p.l_1``, ``\alpha`` is
        ``p.alpha``.

    Examples
    --------
    >>> import sympy as sp, holonome as hn
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> x, y = dynamicsymbols("x y")
    >>> m, g, l = sp.symbols("m g l")
    >>> pendulum = hn.from_sympy(
    ...     mass=m * sp.eye(2),
    ...     force=[0, -m * g],
    ...     constraint=[x**2 + y**2 - l**2],
    ...     potential=m * g * y,
    ...     coordinates=[x, y],
    ...     parameters={m: 1.0, g: 9.81, l: 1.0},
    ... )
    >>> pendulum.names, hn.solve(pendulum, (0, 1), [1, 0]).success
    (['x', 'y'], True)
    """
    try:
        from sympy.physics.mechanics import dynamicsymbols
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("from_sympy needs SymPy: pip install 'holonome[sympy]'") from error

    stated = {
        "mass": mass,
        "force": force,
        "constraint": constraint,
        "velocity_constraint": velocity_constraint,
        "coordinates": coordinates,
        "speeds": speeds,
    }
    if model is None:
        missing = [key for key in ("coordinates", "mass", "force") if stated[key] is None]
        if missing:
            raise TypeError(
                f"from_sympy needs a model, or coordinates, mass and force; missing: {', '.join(missing)}"
            )
        equations = _from_expressions(**stated, time=dynamicsymbols._t if time is None else time)
    else:
        surplus = [key for key, value in stated.items() if value is not None]
        if surplus or time is not None:
            raise TypeError(
                f"a model states its own {', '.join(surplus or ['time'])}; give a model or expressions, not "
                "both"
            )
        if inertial is not None:
            raise TypeError("a model states its own inertial terms; leave inertial out")
        equations, inertial = _from_model(model), "in force"
    if potential is not None:
        equations = replace(equations, potential=potential)
    return _to_system(equations, parameters or {}, name, inertial)


@dataclass(frozen=True)
class _Equations:
    """Expressions in the coordinates and velocities of SymPy. `velocities` maps each symbol of a velocity to
    the place of its coordinate.
    """

    time: sp.Symbol
    coordinates: tuple[sp.Expr, ...]
    velocities: Mapping[sp.Expr, int]
    mass: sp.Matrix
    force: sp.Matrix
    constraint: sp.Matrix
    velocity_constraint: sp.Matrix
    potential: sp.Expr | None = None
    derived_velocity_constraint: bool = False
    mentioned: frozenset[sp.Symbol] = frozenset()
    """Symbols of the model, also those that its equations no longer contain."""


def _column(expressions: Any) -> sp.Matrix:
    """A column of expressions; an equation a = b becomes a - b."""
    import sympy as sp

    entries: list[Any]
    if expressions is None:
        entries = []
    elif isinstance(expressions, sp.MatrixBase):
        entries = expressions.flat()
    elif isinstance(expressions, Iterable):
        entries = [sp.sympify(e) for e in expressions]
    else:
        entries = [sp.sympify(expressions)]
    return sp.Matrix(len(entries), 1, [e.lhs - e.rhs if e.is_Equality else e for e in entries])


def _rates(coordinates: Iterable[sp.Expr], time: sp.Symbol) -> dict[sp.Expr, int]:
    return {q.diff(time): i for i, q in enumerate(coordinates) if not q.is_Symbol}


def _from_expressions(
    *,
    coordinates: Any,
    speeds: Any,
    mass: Any,
    force: Any,
    constraint: Any,
    velocity_constraint: Any,
    time: sp.Symbol,
) -> _Equations:
    import sympy as sp

    q, u = _column(coordinates).flat(), _column(speeds).flat()
    if u and len(u) != len(q):
        raise ModelError(
            f"speeds has {len(u)} entries, coordinates has {len(q)}: speeds names the derivative of each "
            "coordinate, in the same order"
        )
    return _Equations(
        time=time,
        coordinates=tuple(q),
        velocities={**_rates(q, time), **{u_i: i for i, u_i in enumerate(u)}},
        mass=sp.Matrix(mass) if isinstance(mass, Iterable) else sp.Matrix([[mass]]),
        force=_column(force),
        constraint=_column(constraint),
        velocity_constraint=_column(velocity_constraint),
    )


def _from_model(model: Any) -> _Equations:
    from sympy.physics import mechanics as me

    if isinstance(model, me.LagrangesMethod):
        return _from_lagrange(model)
    if isinstance(model, me.KanesMethod):
        velocity_constraint = model._k_nh * model.u + model._f_nh if model._k_nh else None
        kinematics = (
            model._k_kqdot_implicit * model.q.diff(me.dynamicsymbols._t)
            + model._k_ku_implicit * model.u
            + model._f_k_implicit
        )
        return _from_kane(
            frame=model._inertial,
            coordinates=model.q,
            speeds=model.u,
            kinematics=kinematics,
            auxiliary=model._uaux,
            bodies=model.bodies,
            loads=model.loads,
            constraint=model._f_h,
            velocity_constraint=velocity_constraint,
        )
    if isinstance(model, me.System):
        return _from_mechanics_system(model)
    raise TypeError(
        f"model is a {type(model).__name__}; from_sympy reads KanesMethod, LagrangesMethod and System of "
        "sympy.physics.mechanics"
    )


def _from_mechanics_system(system: Any) -> _Equations:
    """Follow the method by which the equations were formed; before that, SymPy's default, Kane, unless the
    speeds are written q'.
    """
    from sympy.physics import mechanics as me

    loads = [*system.loads, *(load for actuator in system.actuators for load in actuator.to_loads())]
    rates = set(system.q.diff(me.dynamicsymbols._t))
    if isinstance(system.eom_method, me.LagrangesMethod) or (
        system.eom_method is None and rates & set(system.u)
    ):
        return _from_lagrange(
            me.LagrangesMethod(
                me.Lagrangian(system.frame, *system.bodies),
                system.q,
                forcelist=loads,
                bodies=system.bodies,
                frame=system.frame,
                hol_coneqs=list(system.holonomic_constraints),
                nonhol_coneqs=list(system.nonholonomic_constraints),
            )
        )
    return _from_kane(
        frame=system.frame,
        coordinates=system.q,
        speeds=system.u,
        kinematics=system.kdes,
        auxiliary=system.u_aux,
        bodies=system.bodies,
        loads=loads,
        constraint=system.holonomic_constraints,
        velocity_constraint=system.velocity_constraints,
    )


def _from_lagrange(model: Any) -> _Equations:
    """Lagrange's equations of the unconstrained bodies.

    The potential is -L(q, v = 0), so that v^T M v / 2 plus it is the energy integral, also in a moving frame.
    """
    from sympy.physics import mechanics as me

    t = me.dynamicsymbols._t
    lagrangian = model._L[0]
    unconstrained = me.LagrangesMethod(
        lagrangian, model.q, forcelist=model.forcelist, bodies=model.bodies, frame=model.inertial
    )
    unconstrained.form_lagranges_equations()
    rates = _rates(model.q.flat(), t)
    return _Equations(
        time=t,
        coordinates=tuple(model.q.flat()),
        velocities=rates,
        mass=unconstrained.mass_matrix,
        force=unconstrained.forcing,
        constraint=_column(model._hol_coneqs),
        velocity_constraint=_column(model.coneqs[len(model._hol_coneqs) :]),
        potential=-lagrangian.xreplace(dict.fromkeys(rates, 0)),
        mentioned=frozenset(lagrangian.free_symbols)
        | _symbols_of_bodies(model.inertial, model.bodies, model.forcelist),
    )


def _from_kane(
    *,
    frame: Any,
    coordinates: Any,
    speeds: Any,
    kinematics: Any,
    auxiliary: Any,
    bodies: Any,
    loads: Any,
    constraint: Any,
    velocity_constraint: Any,
) -> _Equations:
    """Kane's equations with all speeds independent, transformed from u to v = q'."""
    import sympy as sp
    from sympy.physics import mechanics as me

    if not bodies:
        raise ModelError(
            "this model has no bodies: give KanesMethod its bodies= and forcelist=, or call its "
            "kanes_equations(bodies, loads) first"
        )
    t = me.dynamicsymbols._t
    u = sp.Matrix(speeds)
    q, kinematics = _complete_coordinates(sp.Matrix(coordinates), u, sp.Matrix(kinematics), t)
    v = sp.Matrix([q_i.diff(t) for q_i in q.flat()])

    kane = me.KanesMethod(
        frame, q.flat(), u.flat(), kd_eqs=kinematics.flat(), u_auxiliary=list(auxiliary) or None
    )
    kane.kanes_equations(list(bodies), list(loads) if loads else None)
    M_u, f_u = kane.mass_matrix, kane.forcing

    Y, y = _speeds_of_velocities(kinematics, u, v)
    to_velocities = dict(zip(u.flat(), (Y * v + y).flat(), strict=True)) | {
        w: sp.S.Zero for a in auxiliary for w in (a, a.diff(t))
    }
    M_u, f_u = M_u.xreplace(to_velocities), f_u.xreplace(to_velocities)
    return _Equations(
        time=t,
        coordinates=tuple(q.flat()),
        velocities=_rates(q.flat(), t),
        mass=Y.T * M_u * Y,
        force=Y.T * (f_u - M_u * (Y.diff(t) * v + y.diff(t))),
        constraint=_column(constraint),
        velocity_constraint=_column(velocity_constraint).xreplace(to_velocities),
        derived_velocity_constraint=True,
        mentioned=frozenset(kinematics.free_symbols) | _symbols_of_bodies(frame, bodies, loads),
    )


def _symbols_of_bodies(frame: Any, bodies: Any, loads: Any) -> frozenset[sp.Symbol]:
    """Symbols of masses, inertias, energies and loads, whether or not they matter for the motion."""
    bodies = list(bodies or ())
    quantities = [
        quantity
        for body in bodies
        for quantity in (body.mass, body.kinetic_energy(frame), body.potential_energy)
    ]
    quantities += [
        body.central_inertia.to_matrix(body.frame) for body in bodies if hasattr(body, "central_inertia")
    ]
    return frozenset().union(
        *(quantity.free_symbols for quantity in quantities),
        *(vector.free_symbols(frame) for _, vector in loads or ()),
    )


def _complete_coordinates(
    q: sp.Matrix, u: sp.Matrix, kinematics: sp.Matrix, t: sp.Symbol
) -> tuple[sp.Matrix, sp.Matrix]:
    """Give each speed that occurs in no kinematic equation a coordinate of its own, its integral."""
    import sympy as sp
    from sympy.physics.mechanics import dynamicsymbols

    without_coordinate = [u_i for u_i in u.flat() if not kinematics.has(u_i)]
    if len(q) + len(without_coordinate) != len(u):
        raise ModelError(
            f"the model has {len(q)} coordinates ({_listed(q)}) and {len(u)} speeds ({_listed(u)}), and its "
            "kinematic equations cannot "
            "be solved for the speeds. A System has one velocity for each coordinate: describe rotations by "
            "angles in place of "
            "quaternions, and give each speed a kinematic equation"
        )
    for u_i in without_coordinate:
        integral = dynamicsymbols(f"integral_of_{u_i.func.__name__}")
        q = q.col_join(sp.Matrix([integral]))
        kinematics = kinematics.col_join(sp.Matrix([integral.diff(t) - u_i]))
    return q, kinematics


def _speeds_of_velocities(kinematics: sp.Matrix, u: sp.Matrix, v: sp.Matrix) -> tuple[sp.Matrix, sp.Matrix]:
    """Y and y of u = Y v + y, from kinematic equations that are linear in u and v."""
    import sympy as sp

    K_u, K_v = kinematics.jacobian(u), kinematics.jacobian(v)
    rest = kinematics.xreplace(dict.fromkeys(u.flat() + v.flat(), sp.S.Zero))
    try:
        solution = K_u.LUsolve(-K_v.row_join(rest))
    except sp.matrices.exceptions.NonInvertibleMatrixError as error:
        raise ModelError(
            f"the kinematic equations cannot be solved for the speeds {_listed(u)}: their coefficients are "
            "singular"
        ) from error
    return solution[:, :-1], solution[:, -1]


def _to_system(
    equations: _Equations, parameters: Mapping[Any, Any], name: str | None, inertial: Any
) -> System:
    import sympy as sp

    n = len(equations.coordinates)
    if equations.mass.shape != (n, n):
        raise ModelError(
            f"mass is {equations.mass.shape[0]} x {equations.mass.shape[1]}; there are {n} coordinates, so "
            f"it must be {n} x {n}"
        )
    if len(equations.force) != n:
        raise ModelError(f"force has {len(equations.force)} entries; there are {n} coordinates")

    parts = {
        "mass": equations.mass,
        "force": equations.force,
        "constraint": equations.constraint,
        "velocity_constraint": equations.velocity_constraint,
        "potential": _column(equations.potential),
    }
    values, substitutes = _split_parameters(parameters)
    stated = set(equations.mentioned).union(
        *(part.free_symbols | part.atoms(sp.Function) for part in (*parts.values(), *substitutes.values()))
    )
    parts = {label: _checked(label, part, equations, substitutes) for label, part in parts.items()}

    constants = sorted(
        set().union(*(part.free_symbols for part in parts.values()))
        - {equations.time, *equations.coordinates, *equations.velocities},
        key=str,
    )
    numbers = _parameter_values(constants, values)
    known = {symbol for symbol in {*constants, *stated} if symbol.is_Symbol} - {
        equations.time,
        *equations.coordinates,
        *equations.velocities,
    }
    _refuse_unknown_parameters(values, substitutes, known, stated)
    code = _CodeSymbols(n)
    names_in_code = (
        {q: code.q[i] for i, q in enumerate(equations.coordinates)}
        | {v: code.v[i] for v, i in equations.velocities.items()}
        | {c: sp.Symbol(f"p.{_identifier(c)}", real=True) for c in constants}
        | {equations.time: code.t}
    )
    parts = {label: part.xreplace(names_in_code) for label, part in parts.items()}
    _check_velocities(parts, code, equations)
    if equations.derived_velocity_constraint:
        parts["velocity_constraint"] = _without_derivatives_of_constraint(parts, code, numbers)

    for row in range(len(parts["constraint"])):
        if not parts["constraint"][row].free_symbols.intersection(code.q):
            raise ModelError(f"constraint {row} does not contain any coordinate: {equations.constraint[row]}")
    functions = {label: _emit(label, part) for label, part in parts.items() if len(part)}
    arguments: dict[str, Any] = {
        label: function if function.arguments else function() for label, function in functions.items()
    }
    arguments["inertial"] = inertial
    if name is not None:
        arguments["name"] = name
    return System(**arguments, parameters=numbers, names=[_plain_name(q) for q in equations.coordinates])


class _CodeSymbols:
    """Symbols whose names are the Python code that they stand for."""

    def __init__(self, n: int) -> None:
        import sympy as sp

        self.t = sp.Symbol("t", real=True)
        self.q = [sp.Symbol(f"q[{i}]", real=True) for i in range(n)]
        self.v = [sp.Symbol(f"v[{i}]", real=True) for i in range(n)]


def _listed(symbols: sp.Matrix) -> str:
    return ", ".join(map(str, symbols.flat()))


def _plain_name(symbol: Any) -> str:
    return symbol.name if symbol.is_Symbol else symbol.func.__name__


def _identifier(symbol: Any) -> str:
    name = re.sub(r"[\W_]+", "_", str(symbol)).strip("_")
    return name + "_" if keyword.iskeyword(name) else name if name.isidentifier() else f"p_{name}"


def _split_parameters(parameters: Mapping[Any, Any]) -> tuple[dict[Any, float], dict[Any, Any]]:
    """Separate the values of constants from the expressions for prescribed functions of time."""
    import sympy as sp

    values, substitutes = {}, {}
    for key, value in parameters.items():
        if isinstance(value, sp.Expr) and not value.is_number:
            if not isinstance(key, sp.Expr):
                raise TypeError(
                    f"parameters[{key!r}] is an expression; its key must be the symbol it replaces, not a "
                    "name"
                )
            substitutes[key] = value
        else:
            try:
                values[key] = float(value)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"parameters[{str(key)!r}] is {value!r}; a number is expected, or an expression for a "
                    "function of time"
                ) from error
    return values, substitutes


def _parameter_values(constants: Sequence[Any], values: Mapping[Any, float]) -> dict[str, float]:
    by_name = {str(key): value for key, value in values.items()} | {
        _identifier(key): value for key, value in values.items()
    }
    missing = [
        c for c in constants if c not in values and str(c) not in by_name and _identifier(c) not in by_name
    ]
    if missing:
        unused = sorted(set(map(str, values)) - set(map(str, constants)))
        hint = f" (given, but not in the model: {', '.join(unused)})" if unused else ""
        raise ModelError(f"parameters has no value for {', '.join(map(str, missing))}{hint}")
    numbers: dict[str, float] = {}
    for c in constants:
        value = (
            values[c] if c in values else by_name[str(c)] if str(c) in by_name else by_name[_identifier(c)]
        )
        if numbers.setdefault(_identifier(c), value) != value:
            raise ModelError(
                f"two constants of the model would both be called p.{_identifier(c)}, with different values; "
                "rename one of them"
            )
    return numbers


def _refuse_unknown_parameters(
    values: Mapping[Any, float], substitutes: Mapping[Any, Any], known: Iterable[Any], stated: Iterable[Any]
) -> None:
    names = {text for symbol in known for text in (str(symbol), _identifier(symbol))}
    unknown = [str(key) for key in values if names.isdisjoint({str(key), _identifier(key)})]
    unknown += [str(key) for key in substitutes if key not in stated]
    if unknown:
        there_are = (
            f"its symbols are {', '.join(sorted(map(str, known)))}"
            if known
            else "it has no symbols but its coordinates"
        )
        raise ModelError(f"parameters: the model does not contain {', '.join(unknown)}; {there_are}")


def _checked(label: str, part: sp.Matrix, equations: _Equations, substitutes: Mapping[Any, Any]) -> sp.Matrix:
    """Put expressions in the place of prescribed functions, and see that nothing but t, q, v and constants is
    left.
    """
    import sympy as sp
    from sympy.core.function import AppliedUndef

    if substitutes:
        part = part.subs(dict(substitutes)).doit()
    if any(d not in equations.velocities for d in part.atoms(sp.Derivative)):
        part = part.doit()
    for derivative in part.atoms(sp.Derivative) - set(equations.velocities):
        if derivative.expr in equations.coordinates or derivative.expr in equations.velocities:
            raise ModelError(
                f"{label} contains the acceleration {derivative}; collect the accelerations in mass"
            )
        raise ModelError(
            f"{label} contains {derivative}, which is no velocity: {derivative.expr} is not among the "
            "coordinates"
        )
    for function in part.atoms(AppliedUndef) - set(equations.coordinates) - set(equations.velocities):
        raise ModelError(
            f"{label} contains {function}, which is neither a coordinate nor a speed; if it is prescribed, "
            "put an expression for it "
            f"into parameters, {{{function}: ...}}"
        )
    return part


def _check_velocities(parts: Mapping[str, sp.Matrix], code: _CodeSymbols, equations: _Equations) -> None:
    """Only the force may be any function of the velocities."""
    for label in ("mass", "constraint", "potential"):
        for v in parts[label].free_symbols.intersection(code.v):
            advice = "; put it into velocity_constraint" if label == "constraint" else ""
            raise ModelError(
                f"{label} depends on the velocity of "
                f"{_plain_name(equations.coordinates[code.v.index(v)])}{advice}"
            )
    coefficients = parts["velocity_constraint"].jacobian(code.v)
    for i in range(coefficients.rows):
        row = coefficients[i, :]
        if row.free_symbols.intersection(code.v) and row.applyfunc(
            lambda e: e.expand()
        ).free_symbols.intersection(code.v):
            raise ModelError(f"velocity_constraint {i} is not linear in the velocities")
        if row.is_zero_matrix:
            raise ModelError(f"velocity_constraint {i} does not contain any velocity; put it into constraint")


def _without_derivatives_of_constraint(
    parts: Mapping[str, sp.Matrix], code: _CodeSymbols, numbers: Mapping[str, float]
) -> sp.Matrix:
    """Drop the velocity constraints that follow from g = 0.

    A row (A, -b) follows if it is a combination of the rows of (G, g_t). On the manifold that holds for the
    derivative of any constraint that g = 0 implies, in whatever frame it was written, so it is tested there,
    at a few random points.
    """
    import sympy as sp

    g, a = parts["constraint"], parts["velocity_constraint"]
    if not len(g) or not len(a):
        return a
    at_rest = a.xreplace(dict.fromkeys(code.v, sp.S.Zero))
    residual = _emit("g", g)
    derivative = _emit("Gt", g.jacobian(code.q).row_join(g.diff(code.t)))
    rows = _emit("Ab", a.jacobian(code.v).row_join(at_rest))
    p = SimpleNamespace(**numbers)

    def evaluate(function: NumPyFunction, t: float, q: np.ndarray) -> np.ndarray:
        available = {"t": t, "q": q, "p": p}
        return np.asarray(function(*(available[argument] for argument in function.arguments)), dtype=float)

    follows = np.ones(len(a), dtype=bool)
    for t, q in _points_on_manifold(lambda t, q: evaluate(residual, t, q), len(code.q)):
        basis = np.linalg.qr(evaluate(derivative, t, q).T)[0]
        Ab = evaluate(rows, t, q)
        outside = Ab - Ab @ basis @ basis.T
        follows &= np.linalg.norm(outside, axis=1) <= 1e-6 * np.linalg.norm(Ab, axis=1)
    return a.extract([i for i in range(len(a)) if not follows[i]], [0])


def _points_on_manifold(
    residual: Callable[[float, np.ndarray], np.ndarray], n: int, wanted: int = 3
) -> list[tuple[float, np.ndarray]]:
    """Return random points with g = 0, or any points if none are found from random starts."""
    random = np.random.default_rng(0)
    starts = [(random.uniform(0.1, 1.0), random.uniform(-1.5, 1.5, n)) for _ in range(30)]
    found: list[tuple[float, np.ndarray]] = []
    for t, start in starts:
        solution = least_squares(lambda q, t=t: residual(t, q), start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        if np.linalg.norm(solution.fun) < 1e-10 * (1.0 + np.linalg.norm(solution.x)):
            found.append((t, solution.x))
        if len(found) == wanted:
            break
    return found or starts[:wanted]


def _emit(label: str, part: sp.Matrix) -> NumPyFunction:
    """Write the expressions as NumPy code: a matrix for mass, Gt and Ab, a number for potential, a vector
    otherwise.
    """
    import sympy as sp

    used = {symbol.name[0] for symbol in part.free_symbols}
    arguments = tuple(argument for argument in "tqvp" if argument in used)
    printer = _printer_class()({"strict": True, "fully_qualified_modules": True})
    common, entries = sp.cse(part.flat(), symbols=sp.numbered_symbols("x"))
    try:
        lines = [f"    {symbol} = {printer.doprint(expression)}" for symbol, expression in common]
        texts = [printer.doprint(entry) for entry in entries]
    except sp.printing.codeprinter.PrintMethodNotImplementedError as error:
        raise ModelError(
            f"{label} contains a function that has no counterpart in NumPy: {str(error).splitlines()[0]}"
        ) from error

    if label == "potential":
        result = texts[0]
    elif part.cols == 1 and label != "mass":
        result = f"numpy.array([{', '.join(texts)}])"
    else:
        rows = [f"[{', '.join(texts[i * part.cols : (i + 1) * part.cols])}]" for i in range(part.rows)]
        result = f"numpy.array([{', '.join(rows)}])"
    return NumPyFunction(
        label,
        arguments,
        "\n".join([f"def {label}({', '.join(arguments)}):", *lines, f"    return {result}", ""]),
    )


@functools.cache
def _printer_class() -> type:
    """SymPy's printer with choices as where, minimum and maximum, which can be traced; numpy.select and
    ufunc.reduce cannot.
    """
    import sympy as sp
    from sympy.printing.numpy import NumPyPrinter

    def nested(function: str, texts: Sequence[str]) -> str:
        return functools.reduce(lambda a, b: f"{function}({a}, {b})", texts)

    class Printer(NumPyPrinter):
        def _print_Float(self, expr: Any) -> str:
            return repr(float(expr))

        def _print_Zero(self, expr: Any) -> str:
            return "0.0"

        def _print_Pow(self, expr: Any, rational: bool = False) -> str:
            if expr.exp.is_Rational and expr.exp.is_negative:
                return f"(1/{self.parenthesize(1 / expr, sp.printing.precedence.PRECEDENCE['Pow'])})"
            return self._hprint_Pow(expr, rational=rational, sqrt="numpy.sqrt")

        def _print_Piecewise(self, expr: Any) -> str:
            *cases, last = expr.args
            text = (
                self._print(last.expr)
                if last.cond == sp.true
                else f"numpy.where({self._print(last.cond)}, {self._print(last.expr)}, numpy.nan)"
            )
            for case in reversed(cases):
                text = f"numpy.where({self._print(case.cond)}, {self._print(case.expr)}, {text})"
            return text

        def _print_Relational(self, expr: Any) -> str:
            return f"({self._print(expr.lhs)} {expr.rel_op} {self._print(expr.rhs)})"

        def _print_And(self, expr: Any) -> str:
            return nested("numpy.logical_and", [self._print(a) for a in expr.args])

        def _print_Or(self, expr: Any) -> str:
            return nested("numpy.logical_or", [self._print(a) for a in expr.args])

        def _print_Min(self, expr: Any) -> str:
            return nested("numpy.minimum", [self._print(a) for a in expr.args])

        def _print_Max(self, expr: Any) -> str:
            return nested("numpy.maximum", [self._print(a) for a in expr.args])

        def _print_Heaviside(self, expr: Any) -> str:
            return self._print(expr.rewrite(sp.Piecewise))

        def _print_sign(self, expr: Any) -> str:
            return f"numpy.sign({self._print(expr.args[0])})"

    return Printer

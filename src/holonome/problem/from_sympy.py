"""SymPy models become Systems.

Everything is brought to the form of a System: M(t, q) v' = f(t, q, v) - G(t, q)^T lam with v = q', and
g(t, q) = 0, A(t, q) v = b(t, q). KanesMethod asks for the time derivatives of the configuration constraints
among its velocity constraints; those follow from g = 0 and are dropped.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.optimize import least_squares

from holonome.errors import ModelError
from holonome.problem.sympy_code import NumPyFunction, numpy_function
from holonome.problem.sympy_equations import Equations, column, from_expressions, from_model
from holonome.problem.system import System

if TYPE_CHECKING:
    import sympy as sp


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
        equations = from_expressions(**stated, time=dynamicsymbols._t if time is None else time)
    else:
        surplus = [key for key, value in stated.items() if value is not None]
        if surplus or time is not None:
            raise TypeError(
                f"a model states its own {', '.join(surplus or ['time'])}; give a model or expressions, not "
                "both"
            )
        if inertial is not None:
            raise TypeError("a model states its own inertial terms; leave inertial out")
        equations, inertial = from_model(model), "in force"
    if potential is not None:
        equations = replace(equations, potential=potential)
    return _to_system(equations, parameters or {}, name, inertial)


def _to_system(
    equations: Equations, parameters: Mapping[Any, Any], name: str | None, inertial: Any
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
        "potential": column(equations.potential),
    }
    values, substitutes = _split_parameters(parameters)
    stated = set(equations.mentioned).union(
        *(part.free_symbols | part.atoms(sp.Function) for part in (*parts.values(), *substitutes.values()))
    )
    parts = {label: _checked(label, part, equations, substitutes) for label, part in parts.items()}

    variables = {equations.time, *equations.coordinates, *equations.velocities}
    constants = sorted(set().union(*(part.free_symbols for part in parts.values())) - variables, key=str)
    numbers = _parameter_values(constants, values)
    known = {symbol for symbol in {*constants, *stated} if symbol.is_Symbol} - variables
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
    functions = {label: numpy_function(label, part) for label, part in parts.items() if len(part)}
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
    by_key: dict[Any, float] = {_identifier(key): value for key, value in values.items()}
    by_key |= {str(key): value for key, value in values.items()} | dict(values)
    missing = [c for c in constants if by_key.keys().isdisjoint((c, str(c), _identifier(c)))]
    if missing:
        unused = sorted(set(map(str, values)) - set(map(str, constants)))
        hint = f" (given, but not in the model: {', '.join(unused)})" if unused else ""
        raise ModelError(f"parameters has no value for {', '.join(map(str, missing))}{hint}")
    numbers: dict[str, float] = {}
    for c in constants:
        value = next(by_key[key] for key in (c, str(c), _identifier(c)) if key in by_key)
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


def _checked(label: str, part: sp.Matrix, equations: Equations, substitutes: Mapping[Any, Any]) -> sp.Matrix:
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
            f"put an expression for it into parameters, {{{function}: ...}}"
        )
    return part


def _check_velocities(parts: Mapping[str, sp.Matrix], code: _CodeSymbols, equations: Equations) -> None:
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
    residual = numpy_function("g", g)
    derivative = numpy_function("Gt", g.jacobian(code.q).row_join(g.diff(code.t)))
    rows = numpy_function("Ab", a.jacobian(code.v).row_join(at_rest))
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

"""What the user gives for a system, checked; every message names the argument that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import NUMBERS, checked, read, shown
from holonome.equations.model import Model
from holonome.errors import ModelError
from holonome.problem.parameters import Parameters
from holonome.problem.user_function import Expression, UserFunction, probe_points
from holonome.tracing import argument_names

DERIVATIVES = {"constraint_q": "constraint", "force_q": "force", "force_v": "force"}
"""Hand-written derivatives that are accepted, and the function each belongs to."""


def start_values(
    argument: str, values: Mapping[str, float] | None, needs: str, function: Callable | None
) -> dict[str, float]:
    """Names and values at the start of states or unknowns."""
    if (values is None) != (function is None):
        raise ModelError(
            f"{argument}: {'missing' if values is None else 'given'}, but {needs} is "
            f"{'given' if values is None else 'missing'}; they go together"
        )
    found = checked(argument, values, ModelError) or {}
    if values is not None and not found:
        raise ModelError(f"{argument}: {shown(values)}; give at least one name with a finite value")
    return found


def count(mass: Any, names: Sequence[str] | None, n: int | None) -> int:
    """The number of coordinates, from whatever gives it."""
    told = {}
    if names is not None:
        told["names"] = len(names)
    if n is not None:
        told["n"] = n
    if not callable(mass) and mass is not None:
        array = read(NUMBERS, "mass", mass, ModelError)
        if array.ndim:
            told["mass"] = len(array)
    if not told:
        if mass is not None and not callable(mass):
            return 1
        raise ModelError("n: the number of coordinates is not known; give names=[...] or n=...")
    if len(set(told.values())) > 1:
        raise ModelError(
            "n: " + " but ".join(f"{key} gives {value} coordinates" for key, value in told.items())
        )
    count = next(iter(told.values()))
    if count < 1:
        raise ModelError(f"n: a system has at least one coordinate, not {count}")
    return count


def names_or_number(names: Any, n: Any, what: str, letter: str = "x") -> list[str]:
    """Names of coordinates or components, from names or from their number."""
    names, n = checked("names", names, ModelError), checked("n", n, ModelError)
    if names is None and n is None:
        raise ModelError(f"n: the number of {what} is not known; give names=[...] or n=...")
    if names is None:
        names = [f"{letter}{i}" for i in range(n)]
    if n is not None and len(names) != n:
        raise ModelError(f"names: {len(names)} names, but n = {n}; leave n out")
    if not names:
        raise ModelError(f"{'names' if n is None else 'n'}: there must be at least one of the {what}")
    return distinct_names("names", names, len(names))


def distinct_names(argument: str, names: Any, count: int) -> list[str]:
    if names is None:
        return []
    names = checked(argument, names, ModelError)
    if len(names) != count:
        raise ModelError(
            f"{argument}: {len(names)} names for {count} "
            f"{'coordinates' if argument == 'names' else 'constraint rows'}"
        )
    if len(set(names)) < len(names):
        raise ModelError(f"{argument}: {max(names, key=names.count)!r} appears more than once")
    return names


def require_one_meaning(kinds: Mapping[str, Sequence[str]]) -> None:
    """No name may belong to two kinds of results: outputs and tables find all of them by name."""
    owners: dict[str, str] = {}
    for argument, names in kinds.items():
        for name in names:
            if name in owners:
                raise ModelError(f"{argument}: {name!r} is in {owners[name]} as well; give each its own name")
            owners[name] = argument


def asks_for_multipliers(role: str, function: Any) -> bool:
    """Whether a force or a rate depends on lam."""
    if isinstance(function, Expression):
        return function.uses_lam
    return callable(function) and "lam" in argument_names(function, role)


def require_linear_velocity_constraint(model: Model, function: UserFunction) -> None:
    """A velocity constraint must be linear in v."""
    if not _is_linear(model, function):
        raise ModelError("velocity_constraint: must be linear in v, A(q) v − b; this one is not")


def _is_linear(model: Model, function: UserFunction) -> bool:
    if function.supplied is None:
        return not ca.jacobian(ca.jacobian(model.h, model.v), model.v).nnz()
    for point in probe_points(model.n):
        v = point["v"]
        try:
            at_rest, once, thrice = (
                function.evaluate({**point, "v": velocity}) for velocity in (0 * v, v, 3 * v)
            )
        except ModelError:
            continue
        if not np.allclose(thrice - at_rest, 3 * (once - at_rest), rtol=1e-8, atol=1e-10):
            return False
    return True


def require_symmetric_mass(values: Callable[[dict[str, Any]], ca.DM], n: int) -> None:
    """The mass matrix must be symmetric; ``values`` gives it at a point."""
    for point in probe_points(n):
        try:
            M = values(point)
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


def check_derivatives(
    derivatives: Mapping[str, Callable],
    functions: Mapping[str, UserFunction],
    further: Mapping[str, np.ndarray],
    parameters: Parameters,
    n: int,
) -> None:
    """Compare hand-written derivatives with differences of the functions themselves."""
    for key, written in derivatives.items():
        if key not in DERIVATIVES:
            raise ModelError(f"derivatives: {key!r} is not known; accepted are {', '.join(DERIVATIVES)}")
        role = DERIVATIVES[key]
        if role not in functions:
            raise ModelError(f"derivatives: {key!r} given, but the system has no {role}")
        for point in probe_points(n):
            known = dict(further, **point, p=parameters.namespace(parameters.flat))
            _check_derivative(key, written, functions[role], point, known)


def _check_derivative(
    key: str,
    written: Callable,
    function: UserFunction,
    point: Mapping[str, Any],
    known: Mapping[str, Any],
) -> None:
    """Compare a hand-written derivative with differences at a point where the function can be evaluated."""
    variable = key[-1]
    try:
        expected = difference(lambda x: function.evaluate({**point, variable: x}), point[variable])
        values = written(**{name: known[name] for name in argument_names(written)})
        found = np.asarray(values, dtype=float).reshape(expected.shape)
    except ModelError:
        return
    except Exception as error:
        raise ModelError(f"derivatives[{key!r}]: {type(error).__name__}: {error}") from error
    wrong = np.abs(found - expected) > 1e-6 * (1 + np.max(np.abs(expected), initial=0.0))
    if np.any(wrong):
        i, j = np.argwhere(wrong)[0]
        raise ModelError(
            f"derivatives[{key!r}]: entry [{i},{j}] is {found[i, j]:.8g}, but {function.role} itself "
            f"changes by {expected[i, j]:.8g} with {variable}[{j}] "
            f"(at {variable} = {np.array2string(point[variable], precision=4)})"
        )


def difference(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Jacobian by central differences of order four."""
    h, columns = 1e-3, []
    for direction in np.eye(x.size) * h:
        a, b, c, d = (function(x + k * direction) for k in (1, -1, 2, -2))
        columns.append((8 * (a - b) - (c - d)) / (12 * h))
    return np.array(columns).T

"""Inertial terms: where the mass matrix depends on q, does ``force`` contain them, or are they to be derived?

Lagrange's equations M v′ + c = f have c(t, q, v) = Ṁ v − ½ ∂(vᵀ M v)/∂q, which is quadratic in v where M does
not depend on time.  A force without it gives a wrong motion, so nothing is guessed: the second derivatives of
``force`` by v are compared with those of −c at random states, along random directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from holonome.equations.model import Model
from holonome.errors import ModelError

if TYPE_CHECKING:
    from holonome.problem.system import System

_POINTS = 24
_SAY = (
    "say inertial='in force' if force contains the inertial terms −c, c(q, v) = Ṁ v − ½ ∂(vᵀ M v)/∂q, or "
    "inertial='derived' if they are to be added"
)

Values = dict[str, Any]
"""Values of t, q, v, p, s, w and lam, and of a direction d in the space of v."""


def inertial_terms_of(given: str | None, model: Model, system: System) -> str | None:
    """One of the two choices, or None where there are no inertial terms; ModelError if it cannot be told."""
    mass = system.functions["mass"]
    if mass.supplied is not None:
        return _of_supplied_mass(given, system)
    varies = ca.depends_on(model.M, ca.vertcat(model.q, model.u))
    if given is not None:
        return given if varies or ca.depends_on(model.M, model.t) else None
    return _found(model, system) if varies else None


def _of_supplied_mass(given: str | None, system: System) -> str | None:
    """The same for a mass that cannot be traced, so that its derivatives are not known."""
    mass = system.functions["mass"]
    if not {"t", "q", "w"}.intersection(mass.arguments):
        return None
    reason = f"mass cannot be traced ({mass.reason}), so its inertial terms cannot be derived"
    if given == "derived":
        raise ModelError(f"inertial: {reason}; write them into force and say inertial='in force'")
    if given is None and _differs(mass.evaluate, system.n):
        raise ModelError(
            f"inertial: mass depends on q, and {reason}; write −c, c(q, v) = Ṁ v − ½ ∂(vᵀ M v)/∂q, into "
            "force and say inertial='in force'"
        )
    return given


def _differs(mass: Callable[[Values], np.ndarray], n: int) -> bool:
    """Whether a mass has other values at other positions, at the same time."""
    random = np.random.default_rng(3)
    found = []
    for _ in range(_POINTS):
        try:
            found.append(mass({"t": 0.37, "q": random.uniform(-1, 1, n), "v": np.zeros(n)}))
        except ModelError:
            continue
    return any(not np.allclose(M, found[0], rtol=1e-12, atol=0.0, equal_nan=True) for M in found[1:])


def _found(model: Model, system: System) -> str | None:
    """What the second derivatives of force by v tell."""
    samples = list(_samples(model, system))
    if not samples:
        raise ModelError(f"inertial: mass depends on q, but neither it nor force could be tried out; {_SAY}")
    force, noise, first, second, mass = map(np.array, zip(*samples, strict=True))
    size = np.abs(first) + np.abs(second)
    if np.all(size <= 1e-13 * mass[:, None]):
        return None  # M has q in it, but is constant
    tolerance = 1e-9 * size + 1e-12 * np.max(size, axis=1, keepdims=True) + noise
    contained, absent = np.abs(force + first + second) <= tolerance, np.abs(force) <= tolerance
    if np.all(contained) and np.all(absent):
        raise ModelError(
            "inertial: mass depends on q, and force, which cannot be traced, is so large that its rounding "
            f"errors hide whether it contains the inertial terms; {_SAY}"
        )
    if np.all(contained):
        return "in force"
    if not np.all(absent):
        name = system.names[int(np.argmin(np.all(contained, axis=0)))]
        raise ModelError(
            f"inertial: mass depends on q, and force is not linear in v, but what is not linear differs from "
            f"the inertial terms (for {name!r}); {_SAY}"
        )
    if ca.depends_on(model.M, model.t):
        raise ModelError(f"inertial: mass depends on q and t, and force may contain a part of Ṁ v; {_SAY}")
    return "derived"


def _samples(model: Model, system: System) -> Iterator[tuple[np.ndarray, np.ndarray, Any, Any, float]]:
    """At random states along random directions: second derivatives of force and their rounding error, those
    of both parts of c, and the size of M.
    """
    force = system.functions["force"]
    d = ca.SX.sym("d", model.n)
    inputs = [*system.symbols.values(), d]

    def curvature(x: ca.SX) -> ca.SX:
        return ca.jtimes(ca.jtimes(x, model.v, d), model.v, d)

    parts = ca.Function("parts", inputs, [*map(curvature, model.inertial), model.M])
    traced = ca.Function("force", inputs, [ca.densify(curvature(model.f))])
    for values in _states(model, system):
        numbers = [values[name] for name in (*system.symbols, "d")]
        first, second, M = (np.array(value) for value in parts(*numbers))
        if force.supplied is None:
            second_derivative, noise = np.array(traced(*numbers)), np.zeros((model.n, 1))
        elif "v" not in force.arguments:
            second_derivative = noise = np.zeros((model.n, 1))
        else:
            second_derivative, noise = _second_difference(force.evaluate, values)
        if all(np.all(np.isfinite(value)) for value in (second_derivative, first, second, M)):
            size = float(np.max(np.abs(M)) * (values["d"] @ values["d"]))
            yield second_derivative.ravel(), noise.ravel(), first.ravel(), second.ravel(), size


def _second_difference(
    force: Callable[[Values], np.ndarray], values: Values
) -> tuple[np.ndarray, np.ndarray]:
    """f(v + d) − 2 f(v) + f(v − d), the second derivative of what is quadratic in v, and its rounding error;
    not a number where the force cannot be called.
    """
    v, d = values["v"], values["d"]
    try:
        ahead, here, behind = (force({**values, "v": x}) for x in (v + d, v, v - d))
    except ModelError:
        return np.full(v.size, np.nan), np.zeros(v.size)
    return ahead - 2 * here + behind, 1e-10 * (np.abs(ahead) + 2 * np.abs(here) + np.abs(behind))


def _states(model: Model, system: System) -> Iterator[Values]:
    """States of a fixed seed, at slow and fast velocities.  Parameters that are zero, which may switch terms
    off, are at times something else.
    """
    random = np.random.default_rng(3)
    supplied = system.functions["force"].supplied is not None
    p = system.parameters.flat
    solve_unknowns = _solver_of_unknowns(model, system)
    for i in range(_POINTS):
        other = random.uniform(0.1, 1.0, p.size)
        values = {
            "t": random.uniform(0.0, 3.0) * 10.0 ** (i % 3 - 1),
            "q": random.uniform(-1.0, 1.0, model.n) * (0.3, 1.0, 3.0)[i % 3],
            "v": random.uniform(-1.0, 1.0, model.n) * 10.0 ** (i % 4 - 1),
            "p": p if i % 2 or supplied else np.where(p == 0, other, p),
            "s": np.array(list(system.states.values())) + random.uniform(-1e-3, 1e-3, model.states),
            "lam": random.uniform(-1.0, 1.0, system.symbols["lam"].numel()),
            "d": random.uniform(-1.0, 1.0, model.n) * 10.0 ** (i % 4 - 1),
        }
        values["w"] = solve_unknowns(values)
        yield values


def _solver_of_unknowns(model: Model, system: System) -> Callable[[Values], np.ndarray]:
    """Newton's method for the unknowns that belong to a state; not numbers where it fails."""
    guess = np.array(list(system.unknowns.values()))
    if not guess.size:
        return lambda values: guess
    names = ("t", "q", "p", "w")
    inputs = [system.symbols[name] for name in names]
    k = ca.Function("k", inputs, [ca.densify(model.k), ca.densify(ca.jacobian(model.k, model.u))])

    def solved(values: Values) -> np.ndarray:
        w = guess
        for _ in range(30):
            residual, jacobian = (np.array(x) for x in k(values["t"], values["q"], values["p"], w))
            try:
                step = np.linalg.solve(jacobian, residual.ravel())
            except np.linalg.LinAlgError:
                break
            w = w - step
            if np.all(np.abs(step) <= 1e-13 * (1 + np.abs(w))):
                return w
        return np.full(guess.size, np.nan)

    return solved

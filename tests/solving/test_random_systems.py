"""Whatever the system: a run ends on its manifold, or says why it did not.  Never NaN with success, never a
hang, never an error that names nothing.

Five families of 100 random systems each, from well posed to degenerate in every way: singular and indefinite
masses, forces that end in a pole or a square root, rows that are redundant, contradictory or lose their rank
on the way, starts far off the manifold.
"""

import time

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

import holonome as hn

LONGEST = 15.0
"""Seconds; a run of 20000 steps of a small system takes well below one."""

ROLES = ("mass", "force", "constraint", "velocity_constraint", "q0", "v0", "constraints")


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLONOME_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def smooth(random: np.random.Generator, rows: int, n: int, kind: str):
    """A function R^n → R^rows: a random polynomial of degree three or less, or a random sum of sines."""
    constant, linear = random.normal(size=rows), random.normal(size=(rows, n))
    if kind == "linear":
        return lambda x: constant + linear @ x
    if kind == "sine":
        waves, phases = random.normal(size=(rows, n)), random.normal(size=rows)
        return lambda x: constant + linear @ x + np.sin(waves @ x + phases)
    square = 0.5 * random.normal(size=(rows, n, n))
    if kind == "quadratic":
        return lambda x: constant + linear @ x + np.array([x @ S @ x for S in square])
    return lambda x: constant + linear @ x + np.array([x @ S @ x for S in square]) + 0.3 * linear @ x**3


MASSES = ("identity", "scalar", "diagonal", "definite", "moving", "moving sine")
BAD_MASSES = (*MASSES, "zero", "semidefinite", "indefinite", "vanishing")


def make_mass(random: np.random.Generator, n: int, kind: str):
    A = random.normal(size=(n, n))
    match kind:
        case "identity":
            return np.eye(n)
        case "scalar":
            return lambda q: 1.0 + 0.5 * np.cos(q[0])
        case "diagonal":
            return random.uniform(0.1, 10, n)
        case "definite":
            return A.T @ A + np.eye(n)
        case "moving" | "moving sine":
            inner = smooth(random, n, n, "quadratic" if kind == "moving" else "sine")

            def mass(q):
                root = A + np.outer(inner(q), np.ones(n))
                return root.T @ root + np.eye(n)

            return mass
        case "zero":
            return np.zeros((n, n))
        case "semidefinite":
            return np.outer(A[0], A[0])
        case "indefinite":
            return A + A.T
    return lambda q: (0.2 + q[0]) * np.eye(n)


FORCES = ("constant", "polynomial", "sine", "damped", "friction", "driven", "stiff")
BAD_FORCES = (*FORCES, "explosive", "pole", "root", "logarithm", "jump", "nan")


COSTLY = ("stiff", "friction", "jump", "explosive")
"""Forces for which a method of order five or eight may well need more than 20000 steps."""


def make_force(random: np.random.Generator, n: int, kind: str):
    inner = smooth(random, n, 2 * n, "quadratic" if kind in ("polynomial", "explosive") else "sine")
    match kind:
        case "constant":
            return random.normal(size=n)
        case "polynomial":
            return lambda q, v: inner(np.concatenate([q, v])) - q**3
        case "explosive":
            return lambda q, v: inner(np.concatenate([q, v])) + 20 * q**3
        case "damped":
            return lambda q, v: -3 * q - v + inner(np.concatenate([q, v]))
        case "friction":
            return lambda q, v: -np.tanh(v / 1e-2) + inner(np.concatenate([q, v]))
        case "driven":
            return lambda t, q: np.cos(7 * t) * np.ones(n) - q
        case "stiff":
            return lambda q, v: -1e4 * q - 1e2 * v
        case "pole":
            return lambda q: -1.0 / q
        case "root":
            return lambda q: -np.sqrt(q)
        case "logarithm":
            return lambda q, v: np.log(1 + v) - 2.0
        case "jump":
            return lambda q, v: -np.sign(v) + np.where(q > 0, 1.0, -1.0)
        case "nan":
            return lambda t, q: np.sqrt(0.5 - t) * np.ones_like(q)
    return lambda q, v: inner(np.concatenate([q, v]))


CONSTRAINTS = ("linear", "quadratic", "cubic", "sine", "sphere", "rheonomic")
BAD_CONSTRAINTS = (
    *CONSTRAINTS,
    "redundant",
    "contradictory",
    "contradictory later",
    "losing rank",
    "double zero",
    "empty",
    "root",
    "too many",
)


def make_constraint(random: np.random.Generator, n: int, m: int, kind: str):
    shape = {
        "rheonomic": "sine",
        "redundant": "quadratic",
        "contradictory": "linear",
        "contradictory later": "linear",
    }.get(kind, kind)
    first = smooth(random, m, n, shape if shape in ("linear", "quadratic", "sine") else "cubic")
    match kind:
        case "sphere":
            return lambda q: np.append(q @ q - 1.0, first(q)[1:])
        case "rheonomic":
            return lambda t, q: first(q) - 0.3 * np.sin(3 * t)
        case "redundant":
            return lambda q: np.append(first(q), 3.0 * first(q)[0] - first(q)[-1])
        case "contradictory":
            return lambda q: np.append(first(q), first(q)[0] + 0.1)
        case "contradictory later":
            return lambda t, q: np.append(first(q), first(q)[0] + np.maximum(t - 0.4, 0.0) ** 3)
        case "losing rank":
            return lambda q: np.append(first(q)[1:], q[0] * q[-1] if n > 1 else q[0] * (q[0] - 0.5))
        case "double zero":
            return lambda q: first(q) ** 2
        case "empty":
            return lambda q: np.append(first(q)[1:], q @ q + 1.0)
        case "root":
            return lambda q: first(np.sqrt(q))
        case "too many":
            more = smooth(random, n + 1, n, "quadratic")
            return more
    return first


def make_velocity_constraint(random: np.random.Generator, n: int, kind: str):
    inner = smooth(random, n, n, "sine")
    if kind == "matrix":
        return lambda q: inner(q)[np.newaxis, :]
    if kind == "residual":
        return lambda t, q, v: inner(q) @ v - 0.2 * np.sin(t)
    return None


@st.composite
def systems(draw, masses, forces, constraints, velocity_constraints=("none",)):
    """(system, constraint, start, options) and a description of what was drawn."""
    n = draw(st.integers(1, 4))
    kinds = {
        "mass": draw(st.sampled_from(masses)),
        "force": draw(st.sampled_from(forces)),
        "constraint": draw(st.sampled_from(constraints)),
        "velocity": draw(st.sampled_from(velocity_constraints)),
    }
    m = draw(st.integers(1, max(1, min(n - (kinds["velocity"] != "none"), 3))))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    repair = draw(st.sampled_from((True, True, True, False)))
    at_rest = draw(st.booleans())
    method = draw(st.sampled_from(("auto", "dopri5", "dop853", "heun")))
    kinds |= {"n": n, "m": m, "repair": repair, "method": method}
    parts = {
        "mass": make_mass(random, n, kinds["mass"]),
        "force": make_force(random, n, kinds["force"]),
        "n": n,
        "constraint": None
        if kinds["constraint"] == "none"
        else make_constraint(random, n, m, kinds["constraint"]),
        "velocity_constraint": make_velocity_constraint(random, n, kinds["velocity"]),
    }
    q0, v0 = random.uniform(-1, 1, n), random.uniform(-1, 1, n)
    return parts, q0, None if at_rest else v0, {"repair": repair, "method": method}, kinds


def row_sizes(parts, t, q, v):
    """|g|, and of each row of g how much it changes with the coordinates: ∂g/∂q |q| and ∂g/∂q |v|, by
    differences.
    """
    g = parts["constraint"]
    names = g.__code__.co_varnames[: g.__code__.co_argcount]

    def value(x):
        return np.atleast_1d(g(**{name: {"t": t, "q": x}[name] for name in names}))

    steps = 1e-6 * np.eye(q.size)
    G = np.array([(value(q + d) - value(q - d)) / 2e-6 for d in steps]).T
    return np.abs(value(q)), np.abs(G) @ np.abs(q), np.abs(G) @ np.abs(v)


def attempt(parts, q0, v0, options):
    """(solution, None) or (None, error); any other exception passes."""
    try:
        with np.errstate(all="ignore"):
            return hn.solve(hn.System(**parts), (0.0, 1.0), q0, v0, max_steps=20_000, **options), None
    except (hn.HolonomeError, ValueError) as error:
        return None, error


def check_message(error: Exception, repair: bool) -> None:
    message = str(error)
    assert len(message) > 20, message
    assert any(role in message for role in ROLES), message
    if isinstance(error, hn.InconsistentStart) and not repair:
        assert "repair=True" in message or "better q0" in message, message


def check(case) -> None:
    parts, q0, v0, options, kinds = case
    note(str(kinds))
    event(f"mass {kinds['mass']}")
    event(f"force {kinds['force']}")
    event(f"constraint {kinds['constraint']}")
    begin = time.perf_counter()
    sol, error = attempt(parts, q0, v0, options)
    assert time.perf_counter() - begin < LONGEST
    if sol is None:
        event(f"raises {type(error).__name__}")
        check_message(error, options["repair"])
        return
    event(f"success {sol.success}")
    assert sol.t.size > 0
    assert np.all(np.isfinite(sol.t))
    assert np.all(np.isfinite(sol.q))
    assert np.all(np.isfinite(sol.v))
    assert np.all(np.diff(sol.t) > 0)
    if not sol.success:
        assert sol.status == -1
        assert len(sol.message) > 20
        assert (
            "max_steps" not in sol.message
            or kinds["method"] == "heun"
            or kinds["force"] in COSTLY
            or kinds["mass"] == "vanishing"
        ), sol.message
        return
    assert sol.t[-1] == 1.0
    assert sol.status == 0
    assert np.all(np.isfinite(sol.lam))
    assert np.all(np.isfinite(sol.a))
    if parts["constraint"] is not None:
        for i in np.unique(np.linspace(0, sol.t.size - 1, 30).astype(int)):
            with np.errstate(all="ignore"):
                g, position, velocity = row_sizes(parts, sol.t[i], sol.q[:, i], sol.v[:, i])
            assert np.all(g <= 1e-8 * (1 + position)), (sol.t[i], g, sol.message)
            assert np.all(np.abs(sol.gv[: g.size, i]) <= 1e-8 * (1 + position + velocity)), (
                sol.t[i],
                sol.gv[:, i],
                sol.message,
            )
    if parts["velocity_constraint"] is not None:
        assert np.max(np.abs(sol.gv[-1])) <= 1e-8 * (1 + np.max(np.abs(sol.v)))


hundred = settings(
    max_examples=100, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@hundred
@given(systems(MASSES, FORCES, ("none",)))
def test_free_systems(case):
    check(case)


@hundred
@given(systems(MASSES, FORCES, CONSTRAINTS))
def test_well_posed_constraints(case):
    check(case)


@hundred
@given(systems(MASSES, FORCES, ("none", *CONSTRAINTS), ("matrix", "residual")))
def test_velocity_constraints(case):
    check(case)


@hundred
@given(systems(BAD_MASSES, BAD_FORCES, ("none", *CONSTRAINTS)))
def test_bad_masses_and_forces(case):
    check(case)


@hundred
@given(systems(BAD_MASSES, FORCES, BAD_CONSTRAINTS, ("none", "none", "matrix")))
def test_bad_constraints(case):
    check(case)

"""Large sparse systems: the LU against NumPy, the kernels against the emitted ones, chains, nets, rings and
trees against the explicit method.
"""

import casadi as ca
import numpy as np
import pytest
from numba import njit

import holonome as hn
from holonome.algebra import sparse
from holonome.algebra.elimination import Elimination
from holonome.algebra.ordering import markowitz, minimum_degree
from holonome.dynamics import kernels as underlying_ode
from holonome.dynamics.kernels import kernels
from holonome.formulations import implicit
from holonome.formulations.implicit import ImplicitKernels
from holonome.machine.calls import pointer, run_kernel
from holonome.machine.context import OK, SINGULAR, Context


@njit
def factor(memory):
    return sparse.factor(pointer(memory))


@njit
def solve(memory, right, out):
    sparse.solve(pointer(memory), pointer(right), pointer(out))


class LU:
    """The factorization of a matrix with the pattern of another one, for tests."""

    def __init__(self, pattern, stages=None):
        size = len(pattern)
        self.columns, self.rows = np.nonzero(pattern.T)
        begins = np.concatenate([[0], np.cumsum(np.bincount(self.columns, minlength=size))])
        self.plan = sparse.Plan(begins.tolist(), self.rows.tolist(), stages or [0] * size)
        self.memory = self.plan.memory()

    def factor(self, A):
        sparse.SparseFactors.vector(self.memory, "values")[:] = A[self.rows, self.columns]
        return factor(self.memory)

    def solve(self, right):
        out = np.zeros_like(right)
        solve(self.memory, right, out)
        return out


def saddle_point(n, m, random):
    """M with masses over six decades and dense-ish rows C."""
    C = random.normal(size=(m, n)) * (random.random((m, n)) < 4 / n) + np.eye(m, n)
    return np.block([[np.diag(10.0 ** random.uniform(-6, 0, n)), C.T], [C, np.zeros((m, m))]])


@pytest.mark.parametrize("size", [1, 5, 40, 150])
def test_solutions_are_those_of_numpy(size):
    random = np.random.default_rng(size)
    K = saddle_point(2 * size, size, random)
    lu, right = LU(K, [0] * 2 * size + [1] * size), random.normal(size=3 * size)
    for _ in range(3):
        assert lu.factor(K) == OK
        x = lu.solve(right)
        assert np.max(np.abs(K @ x - right)) < 1e-10 * np.max(np.abs(K) @ np.abs(x))
        K = K * (1 + 0.1 * random.normal(size=K.shape))
    assert sparse.SparseFactors.of(lu.memory)["choices"] == 1


def test_pivots_are_chosen_anew_where_they_fail():
    """The diagonal vanishes, then the pivots that were chosen instead; a permuted matrix without any
    diagonal; a pivot that is all rounding.
    """
    random, size = np.random.default_rng(1), 60
    A = random.normal(size=(size, size)) * (random.random((size, size)) < 0.1) + 3 * np.eye(size)
    B = A - np.diag(np.diag(A)) + 3 * np.roll(np.eye(size), 1, axis=0)
    both = (A != 0) | (B != 0)
    lu, right = LU(both), random.normal(size=size)
    for count, matrix in enumerate(
        [A, B, A - 2.999999999999 * np.eye(size) * (np.arange(size) == 7)], start=1
    ):
        assert lu.factor(matrix) == OK
        np.testing.assert_allclose(lu.solve(right), np.linalg.solve(matrix, right), rtol=1e-8, atol=1e-8)
        assert sparse.SparseFactors.of(lu.memory)["choices"] <= count
    assert sparse.SparseFactors.of(lu.memory)["choices"] >= 2


def test_unstable_pivots_are_not_taken():
    """The tiny diagonal would do without cancellation in any pivot, but spoils the result."""
    random, size = np.random.default_rng(4), 30
    A = (
        random.normal(size=(size, size)) * (random.random((size, size)) < 0.2)
        + 1e-6 * np.diag(random.normal(size=size))
        + np.eye(size)[random.permutation(size)]
    )
    lu, right = LU(A), random.normal(size=size)
    assert lu.factor(A) == OK
    assert np.max(np.abs(A @ lu.solve(right) - right)) < 1e-9


def test_singular_and_infinite_matrices_are_refused():
    K = saddle_point(10, 4, np.random.default_rng(2))
    K[12], K[:, 12] = K[11], K[:, 11]
    lu = LU(K)
    assert lu.factor(K) == SINGULAR
    assert lu.factor(K * np.nan) == SINGULAR
    regular = K + np.diag([0] * 12 + [1.0] + [0])
    lu = LU(regular)
    assert lu.factor(regular) == OK


def grid(k):
    neighbours = [set() for _ in range(k * k)]
    for i in range(k):
        for j in range(k):
            for a, b in ((i + 1, j), (i, j + 1)):
                if a < k and b < k:
                    neighbours[i * k + j].add(a * k + b)
                    neighbours[a * k + b].add(i * k + j)
    return neighbours


def test_minimum_degree():
    """Less fill than the band on a grid, none on a tree, little for a hub; the neighbours of an earlier stage
    come first.
    """
    k = 30
    assert sum(minimum_degree(grid(k), [0] * k * k)[1]) < 0.4 * k**3
    random, size = np.random.default_rng(0), 500
    tree = [set() for _ in range(size)]
    for i in range(1, size):
        j = int(random.integers(i))
        tree[i].add(j)
        tree[j].add(i)
    assert sum(minimum_degree(tree, [0] * size)[1]) == size - 1
    hub = (
        [{0, i + size} if i else set(range(1, size)) for i in range(size)]
        + [set()]
        + [{i} for i in range(1, size)]
    )
    assert sum(minimum_degree(hub, [0] * size + [1] * size)[1]) < 4 * size
    graph, stages = grid(10), [int(x) for x in random.integers(0, 3, 100)]
    place = np.argsort(minimum_degree(grid(10), stages)[0])
    assert all(place[j] < place[i] for i in range(100) for j in graph[i] if stages[j] < stages[i])


def bodies(pairs, at, gravity):
    """Point masses joined by rods; the first one is fixed."""
    at, pairs = np.array(at, float), np.array(pairs)
    dimension = at.shape[1]
    lengths = np.sum((at[pairs[:, 0]] - at[pairs[:, 1]]) ** 2, axis=1)

    def rods(q):
        x = np.concatenate([at[:1], q.reshape(-1, dimension)])
        return (np.sum((x[pairs[:, 0]] - x[pairs[:, 1]]) ** 2, axis=1) - lengths) / 2

    count = len(at) - 1
    system = hn.System(
        np.ones(count * dimension),
        np.tile(gravity, count),
        rods,
        potential=lambda q: -np.sum(q.reshape(-1, dimension) @ np.array(gravity)),
    )
    return system, at[1:].ravel()


def net(k):
    number = np.arange(k * k).reshape(k, k)
    pairs = [
        *zip(number[:, :-1].ravel(), number[:, 1:].ravel(), strict=True),
        *zip(number[:-1].ravel(), number[1:].ravel(), strict=True),
    ]
    return bodies(pairs, [(i, 0, j) for i in range(k) for j in range(k)], [3.0, -9.81, -2.0])


def ring(k):
    angle = 2 * np.pi * np.arange(k) / k
    return bodies(
        [(i, (i + 1) % k) for i in range(k)], np.stack([np.cos(angle), np.sin(angle)], axis=1), [0.0, -0.1]
    )


def tree(k):
    random, pairs, at = np.random.default_rng(0), [], [np.zeros(2)]
    for i in range(1, k):
        j, angle = int(random.integers(max(0, i - 6), i)), random.uniform(0, 2 * np.pi)
        pairs.append((j, i))
        at.append(at[j] + [np.cos(angle), np.sin(angle)])
    return bodies(pairs, at, [0.0, -9.81])


SKATE = {
    "mass": [1.0, 1.0, 0.1, 2.0, 2.0],
    "force": [0.0, -9.81, 0.2, 0.0, -9.81],
    "constraint": lambda q: (q[3] - q[0]) ** 2 + (q[4] - q[1]) ** 2 - 1,
    "velocity_constraint": lambda q, v: v[0] * np.sin(q[2]) - v[1] * np.cos(q[2]),
}


@pytest.mark.parametrize("name", ["chain", "andrews", "four_bar", "skate"])
@pytest.mark.parametrize("left_out", [False, True])
def test_loops_do_what_the_emitted_code_does(name, left_out, monkeypatch):
    """Derivative, landing, multipliers and pieces; with a row that is left out, what the dense twin does."""
    found = []
    for limit in (10**9, 0):
        monkeypatch.setattr(underlying_ode, "EMITTED_UP_TO", limit)
        mechanism = None if name == "skate" else hn.mechanisms.get(name)
        system, q0 = (
            (hn.System(**SKATE), np.array([0.0, 0, 0.3, 0.6, -0.8]))
            if mechanism is None
            else (mechanism.system, mechanism.q0)
        )
        compiled, random, n, m = kernels(system), np.random.default_rng(0), system.n, system.m
        assert compiled.sparse == (limit == 0)
        context = compiled.context(system)
        y = np.concatenate([q0 + 1e-3 * random.normal(size=n), random.normal(size=n)])
        z = random.normal(size=2 * n + 2)
        addresses = compiled.derivative, compiled.projection, compiled.multipliers
        if left_out:
            Context.vector(context, "left_out")[0] = 1.0
            if limit:
                addresses = [
                    twin.address
                    for twin in (
                        underlying_ode.dense_derivative,
                        underlying_ode.dense_projection,
                        underlying_ode.dense_multipliers,
                    )
                ]
        for address, size in zip(addresses, (2 * n, 6 * n + 2, m), strict=True):
            out = np.zeros(compiled.projection_size)
            assert run_kernel(address, 0.1, y, z, context, out) == OK
            found.append(out[:size])
        found.append(np.concatenate([x.ravel() for x in compiled.evaluate_pieces(context, 0.1, y).values()]))
    for emitted, looped in zip(found[:4], found[4:], strict=True):
        np.testing.assert_allclose(looped, emitted, atol=1e-9 * np.max(np.abs(emitted)))


@pytest.mark.parametrize("method", ["bdf", "ggl", "index2", "index3", "cm", "cs", "baumgarte"])
def test_bdf_takes_the_same_steps_with_both(method, monkeypatch):
    found = []
    for limit in (10**9, 0):
        monkeypatch.setattr(underlying_ode, "EMITTED_UP_TO", limit)
        monkeypatch.setattr(implicit, "EMITTED_UP_TO", limit)
        chain = hn.mechanisms.chain(links=3)
        found.append(
            hn.solve(chain.system, (0, 0.5), chain.q0, chain.v0, method=method, rtol=1e-6, atol=1e-8)
        )
        assert found[-1].success, found[-1].message
    emitted, looped = found
    assert abs(looped.steps - emitted.steps) <= 0.02 * emitted.steps
    np.testing.assert_allclose(looped.y[:, -1], emitted.y[:, -1], atol=1e-3 if method == "index3" else 1e-5)


@pytest.mark.parametrize("method", ["bdf", "ggl", "index2", "dopri5"])
def test_chain_of_a_hundred_links(method):
    chain = hn.mechanisms.chain(links=100)
    reference = hn.solve(chain.system, (0, 0.1), chain.q0, chain.v0, method="dop853", rtol=1e-10, atol=1e-11)
    sol = hn.solve(chain.system, (0, 0.1), chain.q0, chain.v0, method=method, rtol=1e-6, atol=1e-8)
    assert sol.success, sol.message
    assert sol.dense_calls == 0
    np.testing.assert_allclose(sol.q[:, -1], reference.q[:, -1], atol=2e-6)
    assert np.ptp(sol.energy) < 1e-7
    assert np.max(np.abs(sol.g)) < (1e-6 if method == "index2" else 1e-10)
    np.testing.assert_allclose(
        sol.lam[:, -1], reference.lam[:, -1], atol=1e-3 * np.max(np.abs(reference.lam[:, -1]))
    )


def test_code_and_work_grow_linearly():
    sizes = []
    for links in (100, 200):
        system = hn.mechanisms.chain(links=links).system
        newton, explicit = ImplicitKernels(system, "GGL", hn.GGL().residual), kernels(system)
        assert newton.sparse
        assert explicit.sparse
        assert min(newton.F, newton.nonzeros) > 0
        sizes.append(
            [
                *newton.instructions,
                *explicit.instructions,
                newton.factor_memory.size,
                explicit._saddle.memory.size,
            ]
        )
    np.testing.assert_allclose(np.divide(*reversed(sizes)), 2.0, rtol=0.03)


@pytest.mark.parametrize(
    "build", [lambda: net(6), lambda: ring(80), lambda: tree(80)], ids=["net", "ring", "tree"]
)
def test_nets_rings_and_trees(build, monkeypatch):
    monkeypatch.setattr(underlying_ode, "EMITTED_UP_TO", 100)
    system, q0 = build()
    reference = hn.solve(system, (0, 0.3), q0, method="dop853", rtol=1e-9, atol=1e-10)
    assert kernels(system).sparse
    assert np.ptp(reference.energy) < 1e-6
    for method in ("ggl", "bdf"):
        sol = hn.solve(system, (0, 0.3), q0, method=method, rtol=1e-6, atol=1e-8)
        assert sol.success, sol.message
        assert sol.dense_calls == 0
        np.testing.assert_allclose(sol.q[:, -1], reference.q[:, -1], atol=1e-4)


def test_redundant_rows_and_massless_coordinates(monkeypatch):
    """A rod twice: explicit methods go over to the dense twin, BDF leaves the row out.  The middle of a rod
    as a coordinate without mass.
    """
    monkeypatch.setattr(underlying_ode, "EMITTED_UP_TO", 0)
    monkeypatch.setattr(implicit, "EMITTED_UP_TO", 0)
    chain = hn.mechanisms.chain(links=4)
    rows, n = chain.system.functions["constraint"].function, chain.system.n
    parameters = {"length": 1.0, "m": 1.0, "gravity": 9.81}
    masses, force = np.array([0.25, 0.25, 0.25 / 192] * 4), np.array([0.0, -9.81 / 4, 0.0] * 4)
    doubled = hn.System(
        masses, force, lambda q, p: np.concatenate([rows(q, p), rows(q, p)[2:3]]), parameters=parameters
    )
    extended = hn.System(
        np.append(masses, 0.0),
        np.append(force, 0.0),
        lambda q, p: np.concatenate([rows(q[:n], p), [q[n] - q[0] - q[3]]]),
        parameters=parameters,
    )
    reference = hn.solve(chain.system, (0, 0.3), chain.q0, chain.v0, rtol=1e-9, atol=1e-10)
    for method in ("dop853", "ggl", "bdf"):
        sol = hn.solve(doubled, (0, 0.3), chain.q0, method=method, rtol=1e-7, atol=1e-9)
        assert sol.success, sol.message
        assert "redundant" in sol.message
        np.testing.assert_allclose(sol.q[:, -1], reference.q[:, -1], atol=1e-4)
        sol = hn.solve(
            extended,
            (0, 0.3),
            np.append(chain.q0, chain.q0[0] + chain.q0[3]),
            method=method,
            rtol=1e-7,
            atol=1e-9,
        )
        assert sol.success, sol.message
        np.testing.assert_allclose(sol.q[:n, -1], reference.q[:, -1], atol=1e-4)


def test_consistent_start_of_a_large_system(monkeypatch):
    random, found = np.random.default_rng(0), []
    shift, v0 = 1e-5 * random.normal(size=90), random.normal(size=90)
    for limit in (10**9, 100):
        monkeypatch.setattr(underlying_ode, "EMITTED_UP_TO", limit)
        chain = hn.mechanisms.chain(links=30)
        found.append(hn.consistent(chain.system, chain.q0 + shift, v0, repair=True))
        assert kernels(chain.system).sparse == (limit == 100)
    for name in ("q", "v", "a", "lam"):
        dense, loops = (getattr(start, name) for start in found)
        np.testing.assert_allclose(loops, dense, atol=1e-7 * np.max(np.abs(dense)))
    with pytest.raises(hn.InconsistentStart, match="q0 violates the constraints"):
        hn.consistent(chain.system, chain.q0 + 1e3 * shift, v0)


def test_dense_work_is_refused_for_large_systems():
    chain = hn.mechanisms.chain(links=300)
    with pytest.raises(ValueError, match="splits coordinates by dense elimination"):
        hn.solve(chain.system, (0, 0.1), chain.q0, method="cm")
    with pytest.raises(ValueError, match="underlying ODE is made for up to"):
        hn.solve(chain.system, (0, 0.1), chain.q0, method=hn.Method(hn.UnderlyingODE(), hn.BDF()))


def test_markowitz_takes_groups_in_turn_and_the_least_fill_in_each():
    arrow = [{0, 1, 2, 3}, {0, 1}, {0, 2}, {0, 3}]
    assert markowitz(arrow, [range(4)]) == [1, 2, 0, 3]
    assert markowitz(arrow, [range(1), range(1, 4)]) == [0, 1, 2, 3]
    assert markowitz([{0, 1}, {0}], [range(2)]) == [0, 1]  # a pivot that fill makes comes last


@pytest.mark.parametrize("size", [1, 4, 12])
def test_emitted_elimination(size):
    random = np.random.default_rng(size)
    pattern = (random.uniform(size=(size, size)) < 0.3) | np.eye(size, dtype=bool)
    A = np.where(pattern, random.normal(size=(size, size)), 0.0) + size * np.eye(size)
    J, right = ca.SX.sym("J", ca.sparsify(ca.DM(A)).sparsity()), ca.SX.sym("b", size)
    found = Elimination(J, [range(size // 2), range(size // 2, size)])
    b = random.normal(size=size)
    solve = ca.Function("solve", [J, right], [found.solve(right, ca.vertcat(*found.values)), found.margin])
    x, margin = solve(ca.sparsify(ca.DM(A)), ca.DM(b))
    np.testing.assert_allclose(x.full()[:, 0], np.linalg.solve(A, b), atol=1e-12)
    assert float(margin) > 0.0


def test_emitted_elimination_of_a_structurally_singular_matrix():
    with pytest.raises(ArithmeticError, match="structurally singular"):
        Elimination(ca.SX.sym("J", ca.Sparsity.triplet(2, 2, [0, 1], [0, 0])), [range(2)])

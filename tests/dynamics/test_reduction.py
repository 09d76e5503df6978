"""Constraints with constant coefficients are solved beforehand: the accelerations are those of the whole
system.
"""

import casadi as ca
import numpy as np
import pytest

import holonome as hn
from holonome.dynamics.emitted import instructions
from holonome.dynamics.kernels import kernels
from holonome.dynamics.manifold import Saddle
from holonome.dynamics.reduction import constant_block, reduced_accelerations
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK, SINGULAR


def expression(model):
    return reduced_accelerations(model.M, Saddle(model.C, ca.ldl(model.M)), model.f, -model.gamma)[0]


def accelerations(system, q, v, t=0.3):
    """By the expression, and by NumPy from M, C, f, γ; with the status of the kernel, which agrees."""
    compiled, model = kernels(system), system.model
    context, out = compiled.context(system), np.zeros(2 * system.n + 1)
    status = run_kernel(compiled.derivative, t, np.concatenate([q, v]), np.zeros(1), context, out)
    found = np.array(
        ca.Function("a", [model.t, model.y, system.symbols["p"]], [expression(model)])(
            t, np.concatenate([q, v]), system.parameters.flat
        )
    ).ravel()
    np.testing.assert_allclose(
        out[system.n : 2 * system.n], found, rtol=1e-9, atol=1e-10 * np.max(np.abs(found))
    )
    pieces = compiled.evaluate_pieces(context, t, np.concatenate([q, v]))
    C, m = pieces["C"], system.m
    matrix = np.block([[pieces["M"], C.T], [C, np.zeros((m, m))]])
    return status, found, np.linalg.solve(matrix, np.concatenate([pieces["f"], -pieces["gamma"]]))[: system.n]


@pytest.mark.parametrize("name", ["slider_crank_unequal", "four_bar", "two_body_bushing", "chain"])
def test_accelerations_are_those_of_the_whole_system(name):
    rng = np.random.default_rng(5)
    mechanism = hn.mechanisms.get(name, **({"links": 3} if name == "chain" else {}))
    system = mechanism.system
    assert len(constant_block(system.model.C)[0]) >= 4
    whole = kernels(system)._emitted.a
    assert kernels(system).instructions[0] < instructions(whole), "the kernel takes the shorter way"
    for _ in range(20):
        status, found, expected = accelerations(
            system, mechanism.q0 + 0.3 * rng.normal(size=system.n), rng.normal(size=system.n)
        )
        assert status == OK
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * np.max(np.abs(expected)))


def test_full_masses_and_driven_constraints():
    """A rod on a carriage that is drawn along x = sin t, with a mass matrix that couples everything; y has a
    coefficient that is not constant in another row.
    """

    def mass(q):
        return np.array([[3.0, 0.2, np.cos(q[2])], [0.2, 2.0, 0.5], [np.cos(q[2]), 0.5, 4.0]])

    system = hn.System(
        mass,
        lambda t, q, v: np.array([np.cos(t) - q[0], -9.81 - v[1], -q[2]]),
        lambda t, q: np.array([q[0] - np.sin(t), q[0] + 2 * q[1] * np.cos(q[2])]),
        n=3,
    )
    assert constant_block(system.model.C) == ([0], [0])
    status, found, expected = accelerations(system, np.array([0.3, -0.4, 0.7]), np.array([1.0, 0.5, -0.2]))
    assert status == OK
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_constant_block_is_regular_and_its_pivots_are_not_small():
    rng = np.random.default_rng(3)
    x = ca.SX.sym("x")
    for _ in range(50):
        numbers = rng.integers(-2, 3, (5, 7)) * (rng.random((5, 7)) < 0.5)
        C, varying = ca.SX(ca.sparsify(ca.DM(numbers.astype(float)))), rng.random((5, 7)) < 0.2
        for i, j in np.argwhere(varying):
            C[int(i), int(j)] = x
        rows, columns = constant_block(C)
        block = np.where(varying, np.nan, numbers)[np.ix_(rows, columns)]
        assert np.all(np.isfinite(block))
        if rows:
            assert np.linalg.cond(block) < 1e3


def test_rows_that_depend_on_each_other_are_noticed_as_without_reduction():
    """A point on two circles that touch; the centre of one is a body of its own, held by constant rows."""

    def constraint(q):
        return np.array(
            [q[0], q[1], (q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 1, (q[2] - 2) ** 2 + q[3] ** 2 - 1]
        )

    system = hn.System([2.0, 2.0, 1.0, 1.0], [0.0, -19.62, 0.0, -9.81], constraint)
    compiled = kernels(system)
    assert constant_block(system.model.C)[0] == [0, 1]
    context, out, zero = compiled.context(system), np.zeros(compiled.projection_size), np.zeros(9)
    points = [np.concatenate([[0, 0, 1, gap], zero[:4]]) for gap in np.geomspace(1e-6, 0.1, 200)]
    found, expected = (
        [run_kernel(kernel, 0.0, y, zero, context, out) for y in points]
        for kernel in (compiled.derivative, compiled.projection)
    )
    assert set(expected) == {OK, SINGULAR}
    assert np.count_nonzero(np.not_equal(found, expected)) <= 8  # of a factor 100000 in the gap, one of 1.6


def test_a_row_with_constant_coefficients_may_be_stated_twice():
    """A block on a rail, stated twice, that carries a pendulum."""

    def constraint(q):
        return np.array([q[1], (q[2] - q[0]) ** 2 + (q[3] - q[1]) ** 2 - 1, q[1]])

    once = hn.System([2.0, 2.0, 1.0, 1.0], [0.0, -19.62, 0.0, -9.81], lambda q: constraint(q)[:2])
    twice = hn.System([2.0, 2.0, 1.0, 1.0], [0.0, -19.62, 0.0, -9.81], constraint)
    q0 = [0.0, 0.0, 1.0, 0.0]
    expected, found = (hn.solve(system, (0, 3), q0, rtol=1e-10, atol=1e-10) for system in (once, twice))
    assert found.success
    np.testing.assert_allclose(found.q[:, -1], expected.q[:, -1], atol=1e-7)


@pytest.mark.parametrize(
    "rows",
    [[[1e6 * 0.1, 1e6 * 0.2], [1e6 * 0.3, 1e6 * 0.6]], [[3.0, 1.0], [1.0, 0.3333333333]]],
    ids=["rounding", "nearly"],
)
def test_constant_rows_that_depend_on_each_other_up_to_rounding_are_no_pivots(rows):
    rows = np.array(rows)
    assert len(constant_block(ca.SX(ca.DM(rows)))[0]) == 1
    system = hn.System([1.0, 1.0, 1.0], [1.0, 2.0, -9.81], lambda q: rows @ q[:2], n=3)
    sol = hn.solve(system, (0, 1), [0.0, 0.0, 0.0], rtol=1e-9, atol=1e-9)
    direction = np.array([-rows[0, 1], rows[0, 0]]) / np.hypot(*rows[0])
    assert sol.success
    np.testing.assert_allclose(sol.q[:2, -1], direction * (direction @ [1.0, 2.0]) / 2, atol=1e-7)

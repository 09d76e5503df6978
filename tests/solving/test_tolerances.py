"""The default of atol follows the size of the problem; a number that is given means what it says."""

import numpy as np
import pytest

import holonome as hn


def pendulum(length: float, gravity: float = 9.81) -> hn.System:
    return hn.System(np.eye(2), [0.0, -gravity], lambda q: q @ q - length**2, names=["x", "y"])


@pytest.mark.parametrize("method", ["auto", "dopri5", "bdf", "ggl"])
@pytest.mark.parametrize("length", [1e-6, 1e6])
def test_a_pendulum_of_any_length_is_as_accurate(length, method):
    """With gravity in proportion all move alike."""
    runs = [
        hn.solve(pendulum(size, 9.81 * size), (0, 10), [size, 0.0], method=method, t_eval=[10.0])
        for size in (1.0, length)
    ]
    fine = hn.solve(pendulum(1.0), (0, 10), [1.0, 0.0], rtol=1e-12, atol=1e-14, t_eval=[10.0])
    errors = [
        np.max(np.abs(run.q[:, -1] / size - fine.q[:, -1]))
        for run, size in zip(runs, (1.0, length), strict=True)
    ]
    assert errors[1] <= 3 * errors[0] + 1e-12
    assert abs(runs[1].steps - runs[0].steps) <= 0.1 * runs[0].steps


@pytest.mark.parametrize(("size", "expected"), [(1.0, 1e-9), (1e-6, 1e-15), (2e-6, 1e-15), (5e5, 1e-3)])
def test_default_of_positions(size, expected):
    sol = hn.solve(pendulum(size), (0, 1e-3 * np.sqrt(size)), [size, 0.0])
    np.testing.assert_allclose(np.broadcast_to(sol.atol, 4)[:2], expected)


def test_default_of_velocities_at_rest_comes_from_the_accelerations():
    """√(g ℓ) for a pendulum of a micrometre, 3 mm/s."""
    sol = hn.solve(pendulum(1e-6), (0, 1e-3), [1e-6, 0.0])
    np.testing.assert_allclose(sol.atol, [1e-15, 1e-15, 1e-12, 1e-12])


def test_default_from_nothing():
    """Everything is zero at the start and moves no further than 5e-7 in this time."""
    sol = hn.solve(hn.System(1.0, lambda t: np.array([1.0]), n=1), (0, 1e-3), [0.0])
    np.testing.assert_allclose(sol.atol, [1e-15, 1e-12])
    assert sol.q[0, -1] == pytest.approx(5e-7, rel=1e-9)


def test_the_default_follows_rtol():
    sol = hn.solve(pendulum(1.0), (0, 1), [1.0, 0.0], rtol=1e-10)
    assert sol.atol == pytest.approx(1e-13)


def test_states_have_a_size_of_their_own():
    system = hn.System(1.0, lambda q: -q, n=1, states={"charge": 1e-9}, rate=lambda s: -s)
    np.testing.assert_allclose(hn.solve(system, (0, 1), [1.0]).atol, [1e-9, 1e-9, 1e-18])


@pytest.mark.parametrize("atol", [1e-9, [1e-9, 1e-8]])
def test_what_is_given_is_taken(atol):
    sol = hn.solve(pendulum(1e-6), (0, 1e-3), [1e-6, 0.0], atol=atol)
    np.testing.assert_array_equal(sol.atol, atol if np.ndim(atol) == 0 else np.tile(atol, 2))

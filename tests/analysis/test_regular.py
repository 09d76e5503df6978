"""States without a linearisation are refused, and those that only look like it are not."""

import numpy as np
import pytest

import holonome as hn


def test_singular_positions_are_refused():
    """A parallelogram that is stretched out may go on as a parallelogram or folded."""

    def constraint(q):
        a, b, c = q
        return np.array([np.cos(a) + 2 * np.cos(b) - np.cos(c) - 2, np.sin(a) + 2 * np.sin(b) - np.sin(c)])

    system = hn.System(1.0, lambda q: -np.cos(q), constraint, n=3)
    assert hn.linearize(system, [0.5, 0.0, 0.5]).A.shape == (2, 2)
    with pytest.raises(hn.ModelError, match="state: a singular position"):
        hn.linearize(system, [0.0, 0.0, 0.0])


def test_redundant_rows_are_no_singular_position():
    """Three parallel cranks: one row too many, everywhere."""

    def constraint(q):
        a, b, c = q
        return np.array([np.sin(a) - np.sin(b), np.cos(a) - np.cos(b), np.sin(b - c)])

    system = hn.System(1.0, lambda q: -q, constraint, n=3)
    assert hn.linearize(system, [0.3, 0.3, 0.3]).A.shape == (2, 2)


@pytest.mark.parametrize(
    "force",
    [
        lambda q, v: -np.abs(q),
        lambda q, v: -q - np.sign(v),
        lambda q, v: -np.maximum(q, 0.0),
        lambda q, v: -np.where(v > 0, v, 2 * v) - q,
    ],
)
def test_kinks_and_jumps_are_refused(force):
    system = hn.System(1.0, force, names=["x"])
    with pytest.raises(hn.ModelError, match="state: force has no derivative there"):
        hn.linearize(system, [0.0])


@pytest.mark.parametrize(
    ("force", "at"),
    [
        (lambda q, v: -q - np.abs(v) * v, 0.0),
        (lambda q, v: -q - np.maximum(q, 0.0) ** 2, 0.0),
        (lambda q, v: -q - np.tanh(v / 1e-3), 0.0),
        (lambda q, v: 1e6 * q**2 - q, 0.0),
        (lambda q, v: 1 - np.abs(q), 1.0),
    ],
)
def test_what_is_smooth_there_is_linearised(force, at):
    system = hn.System(1.0, force, names=["x"])
    assert hn.linearize(system, [at]).A[1, 0] == pytest.approx(-1.0)


def test_a_kink_across_the_motions_that_constraints_allow_is_none():
    system = hn.System(np.eye(2), lambda q: np.array([-q[0], -np.abs(q[1])]), lambda q: q[1])
    assert hn.linearize(system, [0.0, 0.0]).A.tolist() == [[0.0, 1.0], [-1.0, 0.0]]

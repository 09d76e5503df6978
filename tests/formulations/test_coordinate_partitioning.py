"""Generalised coordinate partitioning against other formulations, and where its partition fails."""

import numpy as np
import pytest

import holonome as hn


def by(*dependent, **options) -> hn.Method:
    return hn.Method(hn.CoordinatePartitioning(list(dependent)), hn.BDF(**options))


@pytest.mark.parametrize("dependent", ["y", 1, -1])
def test_a_pendulum(dependent):
    system = hn.mechanisms.pendulum().system
    start = (0, 3), [0.6, -0.8], [0, 0]
    sol = hn.solve(system, *start, method=by(dependent), rtol=1e-8, atol=1e-9)
    reference = hn.solve(system, *start, rtol=1e-12, atol=1e-13)
    assert sol.success
    np.testing.assert_allclose(sol.q[:, -1], reference.q[:, -1], atol=1e-6)
    np.testing.assert_allclose(sol.lam[:, -1], reference.lam[:, -1], atol=1e-4)
    assert max(sol.drift) < 1e-6


def test_a_slider_crank_with_five_constraints():
    crank = hn.mechanisms.slider_crank_unequal()
    start = (0, 1), crank.q0, crank.v0
    sol = hn.solve(crank.system, *start, method=by("x1", "y1", "x2", "y2", "phi2"), rtol=1e-8, atol=1e-9)
    reference = hn.solve(crank.system, *start, rtol=1e-11, atol=1e-12)
    assert sol.success
    np.testing.assert_allclose(sol.q[:, -1], reference.q[:, -1], atol=1e-6)


def test_states_velocity_constraints_and_time():
    """A point on a moving line, with a velocity constraint beside it, and a state."""
    system = hn.System(
        np.eye(3),
        lambda q, v, s: np.array([-q[0] + 0.1 * s[0], 0.0, -q[2]]),
        lambda t, q: q[1] - np.sin(t) * q[0] - 1,
        velocity_constraint=lambda q, v: v[2] - q[1] * v[0],
        states={"s": 0.0},
        rate=lambda q, s: q[0] - s[0],
        names=["x", "y", "z"],
    )
    start = (0, 3), [1, 1, 0], [0, 1, 0]
    sol = hn.solve(system, *start, method=by("y", "z"), rtol=1e-8, atol=1e-9)
    reference = hn.solve(system, *start, rtol=1e-11, atol=1e-12)
    assert sol.success
    np.testing.assert_allclose(sol.q[:, -1], reference.q[:, -1], atol=1e-6)
    np.testing.assert_allclose(sol.s[:, -1], reference.s[:, -1], atol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_order(order):
    system = hn.mechanisms.pendulum().system
    reference = hn.solve(system, (0, 1), [0.6, -0.8], [0, 0], rtol=1e-13, atol=1e-14).q[:, -1]
    errors = [
        np.max(
            np.abs(
                hn.solve(
                    system, (0, 1), [0.6, -0.8], [0, 0], method=by("y", order=order, step=step), rtol=1e-12
                ).q[:, -1]
                - reference
            )
        )
        for step in (0.005, 0.0025)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)


def test_a_partition_that_fails_on_the_way():
    """At x = ±1 the circle does not determine y."""
    sol = hn.solve(
        hn.mechanisms.pendulum().system, (0, 5), [0.6, -0.8], [6, 4.5], method=by("y"), max_steps=5000
    )
    assert not sol.success


@pytest.mark.parametrize(
    ("dependent", "what"),
    [((), "dependent"), (("z",), "no coordinate"), (("x", "y"), "2 dependent"), ((5,), "no coordinate")],
)
def test_what_is_refused(dependent, what):
    with pytest.raises(ValueError, match=what):
        hn.solve(hn.mechanisms.pendulum().system, (0, 1), [0.6, -0.8], [0, 0], method=by(*dependent))

"""The small models that experiments on theorems take apart are what the shipped methods do."""

import numpy as np
import pytest

import holonome as hn
from holonome.papers import eich_1993 as eich
from holonome.papers.yen_petzold_1996 import Step
from holonome.papers.yen_petzold_1996.statements import FirstOrder


def point_on_circle(stiffness) -> hn.System:
    """The point mass of `Step`."""
    k1, k2 = stiffness
    return hn.System(
        np.eye(2),
        lambda q: np.array([-k1 * q[0], -k2 * (q[1] + 1) - 1]),
        lambda q: (q @ q - 1) / 2,
        names=["x", "y"],
    )


@pytest.mark.parametrize("iteration", ["CS", "CM"])
@pytest.mark.parametrize("stiffness", [(0.0, 0.0), (10.0, 100.0), (1e2, 1e4)])
def test_a_step_is_one_of_coordinate_splitting(iteration, stiffness):
    """One step of BDF 1 by `CoordinateSplit` ends where `Step` does; for CM with P at the prediction, which
    at constant order 1 is the last point.
    """
    h, angle = 1e-3, 0.4
    qn = np.array([np.sin(angle), -np.cos(angle)])
    vn = 0.3 * np.array([np.cos(angle), np.sin(angle)])
    method = hn.Method(
        hn.CoordinateSplit(iteration), hn.BDF(max_order=1, order=1, step=h, newton_tolerance=1e-10)
    )
    run = hn.solve(point_on_circle(stiffness), (0, h), qn, vn, method=method, rtol=1e-8, atol=1e-10)
    assert run.steps == 1
    q, v = Step(stiffness, qn, vn, qn, vn, h).solution(iteration)
    np.testing.assert_allclose(run.q[:, -1], q, rtol=0, atol=1e-11)
    other = Step(stiffness, qn, vn, qn, vn, h).solution({"CS": "CM", "CM": "CS"}[iteration])[0]
    assert np.linalg.norm(other - q) > 1e-10
    np.testing.assert_allclose(run.v[:, -1], v, rtol=0, atol=1e-8)


@pytest.mark.parametrize("projection", ["no", "yes"])
def test_the_projected_method_is_the_shipped_one(projection):
    """`ProjectedBDF` and BDF, with projection or without, have the same errors at the same constant step and
    order: they start from exact values, so that nothing differs but the tolerance of Newton's method.
    """
    pendulum = hn.mechanisms.pendulum(gravity=eich.GRAVITY)
    k, h, steps = 3, 0.01, 100
    run = hn.solve(
        pendulum.system,
        (0, h * steps),
        pendulum.q0,
        pendulum.v0,
        method=eich.method(projection, hn.BDF(max_order=k, order=k, step=h, newton_tolerance=1e-8)),
        rtol=1e-10,
        atol=1e-12,
    )
    plain = eich.ProjectedBDF(k, h, projection == "yes").run(steps)
    exact = np.concatenate(pendulum.exact(run.t)[:2]).T
    assert run.t.size == len(plain)
    shipped, taken_apart = run.y.T - exact, plain - exact
    assert np.max(np.abs(taken_apart)) > 1e-6
    np.testing.assert_allclose(shipped, taken_apart, rtol=0, atol=1e-6 * np.max(np.abs(taken_apart)))


def test_the_conditions_are_those_of_a_step():
    """`FirstOrder` converges to r + Gᵀλ = 0, g = 0."""
    step = FirstOrder((10.0, 100.0), 0.1, (0.01, -1.0))
    assert step.converges("CS")
    assert step.converges("CM")
    exact = np.linalg.norm(np.linalg.inv(np.diag([20.0, 110.0])), 2)
    assert step.norm("CM") == pytest.approx(exact)

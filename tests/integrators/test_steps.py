"""Step sizes, tolerances, orders at constant step, units."""

import itertools

import numpy as np
import pytest

import holonome as hn

GRAVITY = 9.81


def on_manifold(sol: hn.Solution, level: float = 1e-11) -> bool:
    return sol.success and max(sol.drift) <= level


def test_first_and_largest_step_are_kept():
    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(pendulum.system, (0, 2), pendulum.q0, pendulum.v0, first_step=1e-3, max_step=0.02)
    assert sol.history.h[0] == 1e-3
    assert np.max(np.abs(sol.history.h)) <= 0.02 * (1 + 1e-12)
    both = hn.solve(pendulum.system, (0, 2), pendulum.q0, pendulum.v0, first_step=0.5, max_step=0.02)
    assert np.max(both.history.h) <= 0.02 * (1 + 1e-12), "max_step bounds the first step as well"
    back = hn.solve(pendulum.system, (2, 0), pendulum.q0, pendulum.v0, first_step=1e-3, max_step=0.02)
    assert abs(back.history.h[0]) == 1e-3


@pytest.mark.parametrize(
    ("method", "order", "steps"),
    [("heun", 2, (0.01, 0.005)), ("dopri5", 5, (0.05, 0.025)), ("dop853", 8, (0.1, 0.05))],
)
def test_order_at_constant_step(method, order, steps):
    """q, v and λ of the projected method converge with the order of the method."""
    pendulum = hn.mechanisms.pendulum()
    errors = []
    for step in steps:
        sol = hn.solve(pendulum.system, (0, 2), pendulum.q0, pendulum.v0, method=method, step=step)
        assert sol.steps == round(2 / step)
        assert on_manifold(sol, 1e-13)
        np.testing.assert_allclose(np.diff(sol.t), step, rtol=1e-9)
        errors.append(
            [
                np.max(np.abs(x - e))
                for x, e in zip((sol.q, sol.v, sol.lam), pendulum.exact(sol.t), strict=True)
            ]
        )
    rates = np.log2(np.divide(*errors))
    assert np.all(rates > order - 0.5), rates


def test_drift_only_without_projection():
    pendulum = hn.mechanisms.pendulum()
    drift = {
        projection: hn.solve(pendulum.system, (0, 100), pendulum.q0, pendulum.v0, projection=projection).drift
        for projection in (True, False)
    }
    assert max(drift[True]) < 1e-13
    assert drift[False][0] > 1e-5


def test_absolute_tolerances_of_each_coordinate():
    """A coordinate of size 1e-6 with its own tolerance is computed to as many digits as the others."""
    system = hn.System(1.0, lambda t, q: -np.array([1.0, 9.0]) * q, n=2)
    errors = []
    for atol in ([1e-3, 1e-14], [1e-3, 1e-14, 1e-3, 1e-14], np.array([1e-3, 1e-3])):
        sol = hn.solve(system, (0, 5), [1.0, 1e-6], rtol=1e-9, atol=atol, method="dopri5")
        errors.append(np.max(np.abs(sol.q[1] - 1e-6 * np.cos(3 * sol.t))))
    assert errors[0] == errors[1] < 1e-12
    assert errors[2] > 100 * errors[0]


def test_tolerance_is_met_over_a_wide_range():
    pendulum = hn.mechanisms.pendulum()
    tolerances = 10.0 ** -np.array([4, 6, 8, 10, 12])
    runs = [
        hn.solve(pendulum.system, (0, 5), pendulum.q0, pendulum.v0, rtol=float(e), atol=float(e))
        for e in tolerances
    ]
    errors = [np.max(np.abs(run.q - pendulum.exact(run.t)[0])) for run in runs]
    assert np.all(errors < 100 * tolerances)
    assert all(a > b for a, b in itertools.pairwise(errors))


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**30])
def test_units_do_not_matter(scale):
    """Lengths in nanometres or in gigametres, a power of two: the same steps, digit by digit."""

    def run(unit):
        system = hn.System(1.0, np.array([0.0, -GRAVITY * unit]), lambda q: q @ q - unit**2, n=2)
        return hn.solve(system, (0, 3), [unit, 0.0], atol=1e-9 * unit)

    one, other = run(1.0), run(scale)
    assert on_manifold(one, 1e-13)
    assert max(other.drift) < 1e-13 * scale**2
    np.testing.assert_array_equal(other.t, one.t)
    np.testing.assert_array_equal(other.q / scale, one.q)

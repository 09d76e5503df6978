"""Jumps and kinks in time."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import holonome as hn
from holonome.dynamics.switching_times import stops


@pytest.mark.parametrize("method", ["dopri5", "dop853", "ggl"])
@pytest.mark.parametrize("span", [(0.0, 10.0), (10.0, 0.0)])
def test_a_pulse_of_a_millisecond_is_not_skipped(method, span):
    """At rest until the pulse F on (a, b); then the oscillator moves as F (cos(t − b) − cos(t − a)), against
    the direction of time with a and b exchanged.
    """
    system = hn.System(1.0, lambda t, q: -q + np.where((t >= 3) & (t < 3.001), 1000.0, 0.0), n=1)
    sol = hn.solve(system, span, [0.0], method=method, rtol=1e-8, atol=1e-9, dense_output=method != "ggl")
    end, (a, b) = span[1], (3.0, 3.001) if span[1] > span[0] else (3.001, 3.0)
    assert sol.q[0, -1] == pytest.approx(
        1000 * (np.cos(end - b) - np.cos(end - a)), abs=2e-5 if method == "ggl" else 1e-7
    )
    assert sol.rejections < (15 if method == "ggl" else 10)
    if sol.sol is not None:
        times = np.linspace(3.002, 9, 50)
        exact = 1000 * (np.cos(times - 3.001) - np.cos(times - 3)) if span[1] > span[0] else 0 * times
        np.testing.assert_allclose(sol.sol(times)[0][0], exact, atol=1e-6)


def test_jumps_and_kinks_in_time_cost_no_rejections():
    def square_wave(t, q, v):
        return (
            -4 * q
            - 0.2 * v
            + np.sign(np.sin(3 * t + 0.5))
            + np.interp(t, [0.0, 2.0, 4.0, 20.0], [0.0, 1.0, 0.0, 0.0])
        )

    system = hn.System(1.0, square_wave, n=1)
    sol = hn.solve(system, (0, 10), [0.0], rtol=1e-9, atol=1e-10)
    assert sol.success
    assert sol.rejections <= 5
    times = np.linspace(0, 10, 41)
    reference = solve_ivp(
        lambda t, y: [y[1], square_wave(t, y[:1], y[1:])[0]],
        (0, 10),
        [0.0, 0.0],
        rtol=1e-11,
        atol=1e-12,
        t_eval=times,
        max_step=0.01,
    )
    found = hn.solve(system, (0, 10), [0.0], rtol=1e-9, atol=1e-10, t_eval=times)
    np.testing.assert_allclose(found.q[0], reference.y[0], atol=1e-6)


def test_switches_follow_the_parameters():
    system = hn.System(1.0, lambda t, q, p: -q + np.where(t > p.on, 1.0, 0.0), n=1, parameters={"on": 2.0})
    for on in (2.0, 3.5):
        sol = hn.solve(system, (0, 5), [0.0], parameters={"on": on}, rtol=1e-10, atol=1e-11)
        assert sol.q[0, -1] == pytest.approx(1 - np.cos(5 - on), abs=1e-8)
        assert np.min(np.abs(sol.t - on)) < 1e-12


def test_any_number_of_switches_is_honoured():
    """A square wave that jumps 30 000 times, and the velocity that it gives a mass."""
    system = hn.System(
        1.0, lambda t, p: np.sign(np.sin(np.pi * (p.jumps * t + 0.25))), n=1, parameters={"jumps": 30_000}
    )
    jumps = (np.arange(1, 30_001) - 0.25) / 30_000
    np.testing.assert_allclose(stops(system, 0.0, 1.0).times, jumps, rtol=0, atol=1e-14)
    sol = hn.solve(system.with_parameters(jumps=12_001), (0, 1), [0.0], max_steps=10**6)
    lasting = np.diff(np.concatenate([[0.0], (np.arange(1, 12_002) - 0.25) / 12_001, [1.0]]))
    assert sol.rejections < 30
    assert sol.v[0, -1] == pytest.approx(lasting[::2].sum() - lasting[1::2].sum(), abs=1e-10)


def test_switches_that_are_closer_than_any_grid_are_found():
    """Twelve thousand knots, some of them within a millionth of a run."""
    knots = np.concatenate([np.linspace(0.1, 0.9, 12_000), 0.95 + 1e-6 * np.arange(4)])
    system = hn.System(
        1.0, lambda t, p: sum(np.maximum(t - knot, 0.0) for knot in p.knots), n=1, parameters={"knots": knots}
    )
    for span in ((0.0, 1.0), (1.0, 0.0)):
        found = stops(system, *span).times
        np.testing.assert_allclose(found, knots if span[1] else knots[::-1], rtol=0, atol=1e-15)
    pulse = hn.System(1.0, lambda t: np.where((t >= 30) & (t < 30 + 1e-6), 1e6, 0.0), n=1)
    assert hn.solve(pulse, (0, 100), [0.0]).v[0, -1] == pytest.approx(1.0, rel=1e-6)


def test_functions_that_write_into_their_arguments():
    """They get copies, on every branch anew."""

    def force(q, v):
        q[0] = 2 * q[0]
        v[1] += 1.0
        return np.array([-q[0], -q[1] if q[1] > 0 else -2 * q[1]]) - 0.0 * v

    def same(q):
        return np.array([-2 * q[0], -q[1] if q[1] > 0 else -2 * q[1]])

    first, second = (hn.solve(hn.System(1.0, f, n=2), (0, 3), [1.0, 0.5]) for f in (force, same))
    np.testing.assert_allclose(first.q[:, -1], second.q[:, -1], rtol=1e-12)


@pytest.mark.parametrize("knots", [65, 500, 3000])
def test_tables_over_time_of_any_length(knots):
    """No step crosses a knot, and the result is that of the polygon: q'' = table(t) has an exact solution."""
    times = np.linspace(0.0, 6.0, knots)
    values = np.random.default_rng(1).normal(size=knots)
    system = hn.System(1.0, lambda t: [np.interp(t, times, values)], n=1)
    assert system.paths["force"] == "traced"
    span = (1.0, 1.0 + 100 * 6.0 / (knots - 1)) if knots > 500 else (1.0, 5.0)
    sol = hn.solve(system, span, [0.0], rtol=1e-10, atol=1e-12)
    inside = times[(times > span[0]) & (times < span[1])]
    assert np.max(np.min(np.abs(sol.t[:, None] - inside), axis=0)) < 1e-12
    grid = np.unique(np.concatenate([span, inside]))
    force = np.interp(grid, times, values)
    h, slope = np.diff(grid), np.diff(force) / np.diff(grid)
    q = v = 0.0
    for step, f, s in zip(h, force, slope, strict=False):
        q, v = q + v * step + f * step**2 / 2 + s * step**3 / 6, v + f * step + s * step**2 / 2
    assert sol.q[0, -1] == pytest.approx(q, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize(
    ("force", "jumps"),
    [
        (lambda t: [t % 2.0], [2.0, 4.0]),
        (lambda t: [np.floor(t / 1.5)], [1.5, 3.0, 4.5]),
        (lambda t: [np.ceil(2.0 - t)], [1.0, 2.0, 3.0, 4.0]),
        (lambda t: [np.round(t)], [0.5, 1.5, 2.5, 3.5, 4.5]),
        (lambda t: [np.floor(t**2 / 8.0)], [np.sqrt(8.0), 4.0, np.sqrt(24.0)]),
        (lambda t: [np.array([1.0, 4.0, 2.0])[np.searchsorted([1.0, 3.0], t)]], [1.0, 3.0]),
        (lambda t: [np.interp(t**2, [1.0, 9.0], [0.0, 1.0])], [1.0, 3.0]),
    ],
)
def test_jumps_of_whole_numbers(force, jumps):
    system = hn.System(1.0, force, n=1)
    assert system.paths["force"] == "traced"
    sol = hn.solve(system, (0, 4.95), [0.0], rtol=1e-9, atol=1e-10)
    assert np.max(np.min(np.abs(sol.t[:, None] - jumps), axis=0)) < 1e-12
    assert sol.rejections == 0


def test_more_than_ten_thousand_switches_are_honoured():
    system = hn.System(1.0, lambda t: [np.sign(np.sin(np.pi * 4000 * t))], n=1)
    sol = hn.solve(system, (0.0, 3.00001), [0.0], rtol=1e-9, atol=1e-12, max_step=1.0)
    assert sol.steps >= 12_000
    system = hn.System(1.0, lambda t: [np.floor(20_000 * t) % 2], n=1)
    assert hn.solve(system, (0.0, 1.0), [0.0]).steps >= 19_999

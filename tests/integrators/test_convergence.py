"""What must hold of the explicit methods: errors that follow the tolerance, constraints at rounding level,
energy, very long runs; against closed forms and published digits.
"""

import numpy as np
import pytest

import holonome as hn


def final_error(mechanism, reference, **options):
    """Largest error of q and v at the end, relative to 1 + |reference|."""
    solution = hn.solve(mechanism.system, mechanism.t_span, mechanism.q0, mechanism.v0, **options)
    assert solution.success, solution.message
    return np.max(np.abs(solution.y[:, -1] - reference) / (1 + np.abs(reference)))


def exact_end(mechanism):
    q, v, _ = mechanism.exact(np.array([mechanism.t_span[1]]))
    return np.concatenate([q[:, 0], v[:, 0]])


REFERENCES = {
    "pendulum": exact_end,
    "two_link_arm": exact_end,
    "andrews": lambda mechanism: np.concatenate([mechanism.reference.q, mechanism.reference.v]),
    "double_pendulum": lambda mechanism: np.concatenate([mechanism.reference.q, mechanism.reference.v]),
}


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
@pytest.mark.parametrize("name", REFERENCES)
def test_error_falls_with_the_tolerance_to_1e_11(name, method):
    mechanism = hn.mechanisms.get(name)
    reference = REFERENCES[name](mechanism)
    tolerances = 10.0 ** -np.arange(4.0, 12.0)
    errors = np.array(
        [final_error(mechanism, reference, method=method, rtol=tol, atol=tol) for tol in tolerances]
    )
    slope = np.polyfit(np.log(tolerances), np.log(np.maximum(errors, 1e-15)), 1)[0]
    assert slope > 0.65
    assert np.all(errors < 1e4 * tolerances)
    assert final_error(mechanism, reference, method=method, rtol=1e-14, atol=1e-14) < 1e-11


@pytest.mark.parametrize(
    ("method", "order", "counts"),
    [("heun", 2, (200, 400, 800)), ("dopri5", 5, (100, 200, 400)), ("dop853", 8, (16, 32, 64))],
)
def test_order_at_constant_step_with_projection(method, order, counts):
    mechanism = hn.mechanisms.pendulum()
    errors = []
    for count in counts:
        sol = hn.solve(mechanism.system, (0, 2), mechanism.q0, mechanism.v0, method=method, step=2 / count)
        exact = mechanism.exact(sol.t)
        errors.append(
            [
                np.max(np.abs(found - wanted))
                for found, wanted in zip((sol.q, sol.v, sol.lam), exact, strict=True)
            ]
        )
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.all(orders[-1] > order - 0.35), orders


@pytest.mark.parametrize("name", ["pendulum", "slider_crank_unequal", "andrews", "four_bar"])
def test_constraints_hold_at_every_point_of_100000_steps(name):
    mechanism = hn.mechanisms.get(name)
    end = 1000 * mechanism.t_span[1]
    events = hn.Event(lambda t: t - end, terminal=True)
    sol = hn.solve(
        mechanism.system,
        (0, 2 * end),
        mechanism.q0,
        mechanism.v0,
        method="dopri5",
        step=mechanism.t_span[1] / 1000,
        max_steps=100_000,
        events=events,
    )
    assert sol.steps == 100_000
    position, velocity = sol.drift
    largest_v = max(1.0, np.max(np.abs(sol.v)) * np.max(np.abs(mechanism.q0)))
    assert position <= 1e-12
    assert velocity <= 1e-12 * largest_v


def test_pendulum_of_4000_seconds_ends_on_the_circle():
    mechanism = hn.mechanisms.pendulum()
    sol = hn.solve(mechanism.system, (0, 4000), mechanism.q0, mechanism.v0, rtol=1e-6, t_eval=[4000.0])
    assert abs(np.hypot(*sol.q[:, -1]) - 1) < 1e-14
    assert np.max(np.abs(sol.gv)) < 1e-13


@pytest.mark.parametrize(
    "name", ["pendulum", "double_pendulum", "four_bar", "chain", "andrews", "slider_crank"]
)
@pytest.mark.parametrize("rtol", [1e-5, 1e-7, 1e-9])
def test_energy_stays_within_what_the_tolerance_promises(name, rtol):
    mechanism = hn.mechanisms.get(name)
    sol = hn.solve(mechanism.system, mechanism.t_span, mechanism.q0, mechanism.v0, rtol=rtol, atol=rtol)
    kinetic = sol.energy.max() - sol.energy.min()
    scale = max(1.0, np.max(np.abs(sol.energy)), 0.5 * np.max(np.sum(sol.v**2, axis=0)))
    assert kinetic <= 2 * sol.steps * rtol * scale


def test_equal_bars_pass_their_singular_position():
    mechanism = hn.mechanisms.slider_crank()
    sol = hn.solve(mechanism.system, mechanism.t_span, mechanism.q0, mechanism.v0, rtol=1e-9, atol=1e-9)
    assert np.max(np.abs(sol.q[:, -1] - mechanism.reference.q)) < 1e-6


def test_auto_begins_with_order_8_at_every_tolerance_and_says_so():
    mechanism = hn.mechanisms.pendulum()
    assert {
        hn.solve(mechanism.system, (0, 1), mechanism.q0, rtol=rtol).method for rtol in (1e-2, 1e-5, 1e-8)
    } == {"dop853"}

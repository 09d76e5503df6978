"""The five mechanical problems of the IVP test set: their published end is reached, and inertial terms of the
elastic rod are those that its author derived by hand.
"""

import functools
import importlib

import ivp_test_set
import numpy as np
import pytest

import holonome as hn

ROUGH = ("ggl", "bdf", "radau")


@functools.cache
def problem(name: str) -> ivp_test_set.Problem:
    return ivp_test_set.PROBLEMS[name]()


def end(name: str, method: str, rtol: float) -> hn.Solution:
    given = problem(name)
    sol = hn.solve(
        given.system,
        (0, given.t_end),
        given.q0,
        given.v0,
        method=method,
        rtol=rtol,
        atol=rtol,
        t_eval=[given.t_end],
    )
    assert sol.success, sol
    return sol


@pytest.mark.parametrize("name", ivp_test_set.PROBLEMS)
def test_default_reaches_the_published_end(name):
    """All digits of the positions that are published; velocities and multipliers have fewer, as the published
    start has nine digits where it is not exact.
    """
    given, sol = problem(name), end(name, "auto", 1e-12)
    np.testing.assert_allclose(sol.q[:, -1], given.q, rtol=0, atol=10.0**-given.digits * max(abs(given.q)))
    np.testing.assert_allclose(sol.v[:, -1], given.v, rtol=0, atol=given.rough * max(1.0, *abs(given.v)))
    np.testing.assert_allclose(sol.lam[:, -1], given.lam, rtol=0, atol=given.rough * max(abs(given.lam)))


@pytest.mark.parametrize("method", ROUGH)
@pytest.mark.parametrize("name", ivp_test_set.PROBLEMS)
def test_implicit_methods_reach_it_at_their_tolerance(name, method):
    given, sol = problem(name), end(name, method, 1e-7)
    assert np.max(np.abs(sol.q[:, -1] - given.q) / (1 + np.abs(given.q))) < 5e-6


def test_andrews_and_wheel_set():
    """The published end of both, which the package's own references improve on or repeat."""
    andrews = importlib.import_module("holonome.mechanisms.andrews").PUBLISHED
    for name, reference, rtol, digits in (
        ("andrews", andrews, 1e-12, 10),
        ("wheelset", hn.mechanisms.wheelset().reference, 1e-10, 5),
    ):
        mechanism = hn.mechanisms.get(name)
        start = mechanism.system, (0, reference.t), mechanism.q0, mechanism.v0
        sol = hn.solve(*start, rtol=rtol, atol=rtol, t_eval=[reference.t])
        assert sol.success, sol
        largest = np.max(np.abs(reference.q))
        np.testing.assert_allclose(sol.q[:, -1], reference.q, rtol=0, atol=10.0**-digits * largest)


def test_inertial_terms_of_the_elastic_rod():
    """f − Kq as published, with all coupling terms, at positions and velocities that mean nothing."""
    part, random = ivp_test_set.rod(), np.random.default_rng(7)
    q, v = random.normal(size=7), random.normal(size=7)
    sine, cosine, e, de = np.sin(q[0] - q[1]), np.cos(q[0] - q[1]), q[3:], v[3:]
    half, crank = ivp_test_set.CRANK * ivp_test_set.ROD * 0.151104 / 2, ivp_test_set.CRANK
    c1, c2 = part.c1, part.c2
    published = np.array(
        [
            -half * v[1] ** 2 * sine
            + crank * v[1] ** 2 * (cosine * c2 @ e - sine * c1 @ e)
            - 2 * crank * v[1] * (cosine * c1 @ de + sine * c2 @ de),
            half * v[0] ** 2 * sine
            + crank * v[0] ** 2 * (sine * c1 @ e - cosine * c2 @ e)
            - 2 * v[1] * (part.c12 @ de + de @ part.M @ e),
            0.0,
            *(
                v[1] ** 2 * (part.M @ e + part.c12)
                + crank * v[0] ** 2 * (cosine * c1 + sine * c2)
                + 2 * v[1] * part.B @ de
                - 2.0 * part.K @ e
            ),
        ]
    )
    state = ivp_test_set.flexible_slider_crank(1e-11).system.at(0.0, q, v)
    np.testing.assert_allclose(state.f, published, rtol=1e-12, atol=1e-13 * np.max(np.abs(published)))


@pytest.mark.parametrize("damping", [0.0, 1e-6])
def test_steps_of_smooth_motion_do_not_depend_on_the_rod(damping):
    """Yen and Petzold's aim on Simeon's rod: the same steps for E, 10² E, 10⁴ E, and the same slow motion."""
    found = []
    for stiffer in (1.0, 1e2, 1e4):
        given = ivp_test_set.flexible_slider_crank(stiffer, damping)
        start = given.system, (0, given.t_end), given.q0, given.v0
        sol = hn.solve(*start, motion="smooth", rtol=1e-3, atol=1e-3, t_eval=[given.t_end], repair=True)
        assert sol.success, sol
        found.append((sol.steps, sol.q[1, -1]))
    steps, angles = np.array(found).T
    assert np.ptp(steps) < 10
    assert np.max(steps) < 120
    assert np.ptp(angles) < 3e-5

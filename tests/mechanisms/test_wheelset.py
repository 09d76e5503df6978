"""The wheel set: published accelerations and solution, drift without projection, and SciPy on equations that
the library has not touched.
"""

import importlib

import numpy as np
import pytest
from test_mechanisms import Plain, parameters

import holonome as hn

MODULE = importlib.import_module("holonome.mechanisms.wheelset")
WHEELSET = hn.mechanisms.wheelset()


def run(method, tolerance, end=10.0, **options):
    solution = hn.solve(
        WHEELSET.system,
        (0, end),
        WHEELSET.q0,
        WHEELSET.v0,
        method=method,
        rtol=tolerance,
        atol=tolerance,
        **options,
    )
    assert solution.success
    return solution


def at_end(solution) -> dict[str, np.ndarray]:
    return {name: getattr(solution, name)[:, -1] for name in ("q", "v", "s", "w", "lam")}


def test_published_accelerations():
    """(v′, β′) at the published start with the published contact points and multipliers, to all digits; G by
    complex steps at fixed contact points.
    """
    p = parameters(WHEELSET)
    q = MODULE.PUBLISHED_START
    v = np.zeros(5)
    s = np.zeros(1)
    w = MODULE.PUBLISHED_CONTACT
    lam = MODULE.SCALE * np.array([-8.3593e-3, -7.4144e-3])
    G = np.array([MODULE.constraint(q + 1e-30j * e, w, p).imag / 1e-30 for e in np.eye(5)]).T
    acceleration = (MODULE.force(q, v, s, w, lam, p) - G.T @ lam) / MODULE.mass(q, p)
    assert np.allclose(
        [*acceleration, *MODULE.rate(q, v, s, w, lam, p)], MODULE.PUBLISHED_ACCELERATION, rtol=1e-12, atol=0
    )


def test_start_is_the_published_one_moved_onto_the_rails():
    p, q, w = parameters(WHEELSET), WHEELSET.q0, np.array(list(WHEELSET.system.unknowns.values()))
    published = MODULE.constraint(MODULE.PUBLISHED_START, MODULE.PUBLISHED_CONTACT, p)
    assert 1e-10 < np.max(np.abs(published)) < 1e-9
    assert np.max(np.abs(MODULE.constraint(q, w, p))) < 1e-16
    assert np.max(np.abs(MODULE.equations(q, w, p))) < 1e-15
    assert np.max(np.abs(q - MODULE.PUBLISHED_START)) < 5e-9
    assert np.max(np.abs(w - MODULE.PUBLISHED_CONTACT)) < 1e-9


def test_gap_does_not_depend_on_the_contact_point_where_the_normals_agree():
    """So that G at fixed contact points, which `rate` uses, is the total derivative."""
    p, plain = parameters(WHEELSET), Plain(WHEELSET)
    q = WHEELSET.q0 + np.array([3e-3, 1e-3, 0.0, 0.01, 2e-3])  # off the rails too
    w = plain.unknowns(0.0, q, np.zeros(5))[:4]
    by_contact = np.array([MODULE.constraint(q + 0j, w + 1e-30j * e, p).imag / 1e-30 for e in np.eye(4)])
    assert np.max(np.abs(MODULE.equations(q, w, p))) < 1e-14
    assert np.max(np.abs(by_contact)) < 1e-14


@pytest.mark.parametrize("method", ["bdf", "ggl", "dop853"])
def test_published_solution(method):
    """At TOL 1e-8 within 1e-7 (q) and 5e-6 (v); the multipliers in newtons."""
    found, reference = at_end(run(method, 1e-8)), WHEELSET.reference
    allowed = {"q": 1e-7, "v": 5e-6, "s": 5e-6, "w": 1e-7, "lam": 1e-3}
    assert all(
        np.max(np.abs(found[name] - getattr(reference, name))) < limit for name, limit in allowed.items()
    )


@pytest.mark.slow
def test_digits_of_the_published_solution():
    """An explicit and an implicit method agree to 8 digits, and with the reference to those it claims."""
    explicit = at_end(run("dop853", 1e-13))
    implicit = at_end(run("bdf", 1e-11, keep_steps=False, t_eval=[10.0]))
    for name, value in explicit.items():
        published = getattr(WHEELSET.reference, name)
        size = np.max(np.abs(published))
        assert np.max(np.abs(value - implicit[name])) < 1e-7 * size
        assert np.max(np.abs(value - published)) < 10.0**-WHEELSET.reference.digits * size


@pytest.mark.parametrize("method", ["bdf", "dop853"])
def test_projection_keeps_the_wheels_on_the_rails(method):
    position, velocity = run(method, 1e-4).drift
    assert position < 1e-16
    assert velocity < 1e-16


def test_wheel_set_leaves_the_track_without_projection():
    """By 3e-4 m here after 10 s at TOL 1e-4; how much is a matter of the details of step control."""
    solution = run("index1", 1e-4)
    assert 5e-5 < solution.drift[0] < 5e-3
    assert solution.drift[1] > 1e-5
    late, early = (np.max(np.abs(solution.g[:, solution.t <= t])) for t in (10, 2.5))
    assert late > 3 * early


@pytest.mark.slow
def test_scipy_finds_the_same_motion():
    """From the plain functions by CasADi and SciPy, with Newton's method for contact points and multipliers
    in between.
    """
    q, v = Plain(WHEELSET).integrate(WHEELSET, [0.05, 0.1], rtol=1e-9, atol=1e-12)
    solution = run("dop853", 1e-10, end=0.1, t_eval=[0.05, 0.1])
    assert np.allclose(solution.q, q, rtol=0, atol=1e-8 * np.max(np.abs(q)))
    assert np.allclose(solution.v, v, rtol=0, atol=1e-8 * np.max(np.abs(v)))


def test_rails_carry_the_weight():
    """In the middle of the track, rolling straight ahead, each rail pushes up with half of the weight; the
    cones push outwards against each other.
    """
    middle = hn.mechanisms.wheelset(x=0.0, z=0.0, theta=0.0)
    solution = hn.solve(middle.system, (0, 0.1), middle.q0, middle.v0)
    assert np.allclose(solution.q[[0, 3, 4]], 0, atol=1e-12)
    assert np.allclose(solution.lam[0], solution.lam[1], rtol=1e-9)
    assert np.isclose(-np.sum(solution.lam[:, 0]), 16.08 * 9.81, rtol=0.01)


def test_hunting_motion_needs_speed():
    """The conical wheels hunt at 30 m/s; slow ones return to the middle."""
    ends = {}
    for V in (5.0, 30.0):
        mechanism = hn.mechanisms.wheelset(V=V)
        solution = hn.solve(
            mechanism.system, (0, 5), mechanism.q0, mechanism.v0, t_eval=np.linspace(4, 5, 200)
        )
        ends[V] = np.max(np.abs(solution.q[0]))
    assert ends[5.0] < 0.1 * WHEELSET.q0[0] < 3 * WHEELSET.q0[0] < ends[30.0]

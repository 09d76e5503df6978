"""Mechanisms and features of every kind, each against something independent: a closed form, minimal
coordinates and SciPy, an invariant, promises.
"""

import _thread
import copy
import itertools
import math
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.linalg import expm

import holonome as hn

GRAVITY = 9.81
FINE = {"rtol": 1e-10, "atol": 1e-12}


def reference(rate, t_span, y0, t_eval=None):
    """The solution of y′ = rate(t, y) by SciPy, to about 1e-11; the last point, or those wanted."""
    found = solve_ivp(rate, t_span, y0, method="DOP853", rtol=3e-14, atol=1e-14, t_eval=t_eval)
    return found.y if t_eval is not None else found.y[:, -1]


def cartesian_pendulum(**arguments) -> hn.System:
    return hn.System(
        np.eye(2), lambda: np.array([0.0, -GRAVITY]), lambda q: q @ q - 1, names=["x", "y"], **arguments
    )


def on_manifold(sol: hn.Solution, level: float = 1e-11) -> bool:
    return sol.success and max(sol.drift) <= level


# Constraints that move, and constraints on velocities


def test_pendulum_on_a_pivot_that_is_shaken():
    a, omega, length = 0.3, 4.0, 0.8

    def constraint(t, q):
        return (q[0] - a * np.sin(omega * t)) ** 2 + q[1] ** 2 - length**2

    system = hn.System(2.0, np.array([0.0, -2 * GRAVITY]), constraint, n=2)
    sol = hn.solve(
        system, (0, 5), [length * math.sin(0.5), -length * math.cos(0.5)], [a * omega, 0.0], **FINE
    )

    def rate(t, y):
        return [y[1], -(GRAVITY * np.sin(y[0]) - a * omega**2 * np.sin(omega * t) * np.cos(y[0])) / length]

    angle, _ = reference(rate, (0, 5), [0.5, 0.0])
    assert on_manifold(sol)
    np.testing.assert_allclose(
        sol.q[:, -1], [a * np.sin(omega * 5) + length * np.sin(angle), -length * np.cos(angle)], atol=1e-8
    )


@pytest.mark.parametrize("v0", [None, [0.0, 1.4]])
def test_bead_on_a_rotating_rod(v0):
    """R = r₀ cosh ωt, held by a force 2 m ω r′; "at rest" means as far as the constraints allow."""
    omega, r0 = 2.0, 0.7
    system = hn.System(
        np.eye(2), np.zeros(2), lambda t, q: q[1] * np.cos(omega * t) - q[0] * np.sin(omega * t)
    )
    sol = hn.solve(system, (0, 1.5), [r0, 0.0], v0, **FINE)
    r, angle = r0 * np.cosh(omega * sol.t), omega * sol.t
    assert on_manifold(sol, 1e-12)
    np.testing.assert_allclose(sol.q, r * np.array([np.cos(angle), np.sin(angle)]), atol=1e-8)
    np.testing.assert_allclose(sol.lam[0], -2 * omega**2 * r0 * np.sinh(angle), atol=1e-7)


@pytest.mark.parametrize("form", ["matrix", "residual"])
def test_skate_on_an_inclined_plane(form):
    """Neimark & Fufaev: turning at a constant rate it does not slide down, but moves along a cycloid across
    the slope.
    """
    omega, pull = 1.7, GRAVITY * math.sin(0.3)
    rows = {
        "matrix": lambda q: np.array([[np.sin(q[2]), -np.cos(q[2]), 0.0]]),
        "residual": lambda q, v: v[0] * np.sin(q[2]) - v[1] * np.cos(q[2]),
    }[form]
    sol = hn.solve(
        hn.System(np.ones(3), np.array([pull, 0.0, 0.0]), velocity_constraint=rows),
        (0, 6),
        np.zeros(3),
        [0, 0, omega],
        **FINE,
    )
    c, turn = pull / (2 * omega**2), omega * sol.t
    assert on_manifold(sol, 1e-13)
    np.testing.assert_allclose(
        sol.q, [c * np.sin(turn) ** 2, c * (turn - np.sin(2 * turn) / 2), turn], atol=1e-8
    )


def test_chaplygin_sleigh():
    mass, inertia, a, u0, w0 = 1.3, 0.4, 0.25, 0.8, 2.0

    def sideways(q, v):
        return -np.sin(q[2]) * v[0] + np.cos(q[2]) * v[1] - a * v[2]

    system = hn.System(np.array([mass, mass, inertia]), np.zeros(3), velocity_constraint=sideways)
    sol = hn.solve(system, (0, 8), np.zeros(3), [u0, a * w0, w0], **FINE)

    def rate(t, y):
        u, w, angle = y[0], y[1], y[4]
        cos, sin = np.cos(angle), np.sin(angle)
        return [
            a * w**2,
            -mass * a * u * w / (inertia + mass * a**2),
            u * cos - a * w * sin,
            u * sin + a * w * cos,
            w,
        ]

    expected = reference(rate, (0, 8), [u0, w0, 0, 0, 0])
    np.testing.assert_allclose(sol.q[:, -1], expected[2:], atol=1e-8)
    np.testing.assert_allclose(sol.v[2, -1], expected[1], atol=1e-8)
    kinetic = 0.5 * np.array([mass, mass, inertia]) @ sol.v**2
    np.testing.assert_allclose(kinetic, kinetic[0], rtol=1e-8)


@pytest.mark.parametrize("kind", ["position", "matrix", "residual"])
def test_disc_rolls_down(kind):
    """x″ = g sin α / (1 + J/(m R²)), whether rolling is stated for positions or for velocities."""
    slope, radius, J = 0.4, 0.3, 0.05
    rows = {
        "position": {"constraint": lambda q: q[0] - radius * q[1]},
        "matrix": {"velocity_constraint": lambda q: np.array([1.0, -radius])},
        "residual": {"velocity_constraint": lambda v: v[0] - radius * v[1]},
    }[kind]
    sol = hn.solve(
        hn.System(np.array([1.0, J]), np.array([GRAVITY * math.sin(slope), 0.0]), **rows), (0, 2), [0, 0]
    )
    a = GRAVITY * math.sin(slope) / (1 + J / radius**2)
    np.testing.assert_allclose(sol.q[0], a * sol.t**2 / 2, atol=1e-12)
    np.testing.assert_allclose(sol.lam[0], GRAVITY * math.sin(slope) - a, rtol=1e-12)


def test_velocity_constraint_with_a_given_rate():
    """A v = b(t): a motor that turns a wheel; ω = sin t."""
    sol = hn.solve(
        hn.System(np.eye(1), np.zeros(1), velocity_constraint=lambda t, v: v[0] - np.sin(t)),
        (0, 3),
        [0.0],
        [0.0],
        **FINE,
    )
    np.testing.assert_allclose(sol.q[0], 1 - np.cos(sol.t), atol=1e-9)
    np.testing.assert_allclose(sol.lam[0], -np.cos(sol.t), atol=1e-11)


def test_position_and_velocity_constraints_together():
    """A skate on a sphere keeps its speed, stays on the sphere, and never moves sideways."""

    def side(q, v):
        return np.array([np.cos(q[3]), np.sin(q[3]), 0.0]) @ v[:3]

    system = hn.System(np.ones(4), np.zeros(4), lambda q: q[:3] @ q[:3] - 1, velocity_constraint=side)
    sol = hn.solve(system, (0, 10), [1.0, 0, 0, math.pi / 2], [0.0, 0, 1, 0.3], **FINE)
    assert on_manifold(sol, 1e-13)
    np.testing.assert_allclose(np.sum(sol.v**2, axis=0), 1.09, rtol=1e-9)


# No constraints, too many, and masses that are not enough


def test_linear_oscillators_without_constraints():
    rng = np.random.default_rng(5)
    K, D, M = (A @ A.T + np.eye(3) for A in rng.normal(size=(3, 3, 3)))
    y0 = rng.normal(size=6)
    sol = hn.solve(hn.System(M, lambda q, v: -K @ q - D @ v), (0, 3), y0[:3], y0[3:], **FINE)
    A = np.block([[np.zeros((3, 3)), np.eye(3)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    assert sol.lam.shape == (0, sol.t.size)
    np.testing.assert_allclose(sol.y[:, -1], expm(3 * A) @ y0, atol=1e-9)


def test_driven_oscillator():
    sol = hn.solve(hn.System(1.0, lambda t, q: np.cos(2 * t) - q), (0, 20), [0.0], **FINE)
    np.testing.assert_allclose(sol.q[0], (np.cos(sol.t) - np.cos(2 * sol.t)) / 3, atol=1e-8)


def test_mass_that_depends_on_position():
    """A free particle in polar coordinates moves along a straight line."""
    system = hn.System(
        lambda q: np.diag([1.0, q[0] ** 2]),
        lambda q, v: np.array([q[0] * v[1] ** 2, -2 * q[0] * v[0] * v[1]]),
        names=["r", "angle"],
    )
    sol = hn.solve(system, (0, 4), [1.0, 0.0], [-0.5, 0.8], **FINE)
    np.testing.assert_allclose(sol.q[0] * np.exp(1j * sol.q[1]), 1 - 0.5 * sol.t + 0.8j * sol.t, atol=1e-8)


@pytest.mark.parametrize("factor", [1.0, -1.0, 2.0, 1e-6, 1e6])
def test_a_row_twice_changes_nothing(factor):
    pendulum = hn.mechanisms.pendulum()
    rows = {
        "constraint": lambda q: np.array([q @ q - 1, factor * (q @ q - 1)]),
        "constraint_names": ["rod", "rod again"],
    }
    system = hn.System(np.eye(2), np.array([0.0, -GRAVITY]), **rows)
    sol = hn.solve(system, (0, 5), pendulum.q0, pendulum.v0, **FINE)
    q, _v, lam = pendulum.exact(sol.t)
    assert on_manifold(sol, 1e-11 * max(1, factor))
    np.testing.assert_allclose(sol.q, q, atol=1e-7)
    np.testing.assert_allclose(np.array([1, factor]) @ sol.lam, lam[0], atol=1e-6)
    assert sol.lowest_rank == 1
    assert "rod again" in sol.message, "the redundant row is named"


def test_parallelogram_with_a_redundant_bar():
    """The coupler on three equal bars moves like the bob of a pendulum, and the bars share its force."""
    pendulum = hn.mechanisms.pendulum(theta0=1.2)
    places = np.array([-0.5, 0.0, 0.5])

    def constraint(q):
        x, y, angle = q
        return (x + places * np.cos(angle) - places) ** 2 + (y + places * np.sin(angle)) ** 2 - 1

    system = hn.System(
        np.array([1.0, 1.0, 0.1]),
        np.array([0.0, -GRAVITY, 0.0]),
        constraint,
        constraint_names=["left", "middle", "right"],
    )
    sol = hn.solve(system, (0, 5), [*pendulum.q0, 0.0], [*pendulum.v0, 0.0], **FINE)
    q, _v, lam = pendulum.exact(sol.t)
    assert on_manifold(sol, 1e-10)
    np.testing.assert_allclose(sol.q, [*q, np.zeros_like(sol.t)], atol=1e-7)
    np.testing.assert_allclose(sol.lam.sum(axis=0), lam[0], atol=1e-6)
    assert sol.lowest_rank == 2


def test_coordinate_without_mass():
    """The angle of a pendulum carried along by two constraints."""
    pendulum = hn.mechanisms.pendulum()
    system = hn.System(
        np.array([1.0, 1.0, 0.0]),
        np.array([0.0, -GRAVITY, 0.0]),
        lambda q: np.array([q[0] - np.sin(q[2]), q[1] + np.cos(q[2])]),
    )
    sol = hn.solve(system, (0, 5), [1.0, 0.0, math.pi / 2], np.zeros(3), **FINE)
    assert on_manifold(sol, 1e-13)
    np.testing.assert_allclose(sol.q[:2], pendulum.exact(sol.t)[0], atol=1e-7)


def test_statically_determined_systems_stand_still():
    """As many constraints as coordinates: nothing moves, and the multipliers carry the load; a handful of
    steps suffices.
    """
    system = hn.System(
        np.eye(2),
        np.array([0.0, -GRAVITY]),
        lambda q: np.array([q @ q - 1, (q[0] - 1.1) ** 2 + q[1] ** 2 - 0.7**2]),
    )
    start = hn.consistent(system, [0.8, -0.6], repair=True)
    sol = hn.solve(system, (0, 10), start.q, start.v, max_steps=20_000)
    assert sol.success, sol.message
    assert sol.steps + sol.rejections < 100
    np.testing.assert_allclose(sol.q, start.q[:, None] * np.ones_like(sol.t), atol=1e-14)


@pytest.mark.parametrize("stiffness", [1.0, 100.0])
def test_equilibrium_is_cheap(stiffness):
    """A mass at rest on an oblique guide, held by a spring: rounding of v is not a reason for small steps."""
    along, normal = np.array([math.cos(0.3), math.sin(0.3)]), np.array([-math.sin(0.3), math.cos(0.3)])
    weight = 9.81 * along[1] * along - np.array([0.0, 9.81])
    system = hn.System(
        np.eye(2), lambda q, v: -stiffness * (q - 0.7 * along) - v + weight, lambda q: normal @ q
    )
    sol = hn.solve(system, (0, 10), 0.7 * along)
    assert sol.success, sol.message
    assert sol.steps + sol.rejections < 1000
    np.testing.assert_allclose(sol.q[:, -1], 0.7 * along, atol=1e-8)


@pytest.mark.parametrize("angle", [0.3, 0.7, 1.1])
@pytest.mark.parametrize("stiffness", [0.0, 4.0, 100.0])
def test_equilibrium_at_the_origin_is_cheap(angle, stiffness):
    """Q = 0 and v = 0, apart from rounding, for ever: what is small then is told by the tolerance, not by q
    and v.
    """
    along = np.array([math.cos(angle), math.sin(angle)])
    normal = np.array([-math.sin(angle), math.cos(angle)])
    system = hn.System(
        np.eye(2),
        lambda q, v: 9.81 * along[1] * along - np.array([0.0, 9.81]) - stiffness * q - v,
        lambda q: normal @ q,
    )
    sol = hn.solve(system, (0, 10), np.zeros(2), max_steps=20_000)
    assert sol.success, sol.message
    assert sol.steps + sol.rejections < 500
    np.testing.assert_allclose(sol.q, 0, atol=1e-7)


def test_rank_that_is_lost_for_a_moment():
    """A point on the x-axis crosses the origin, where the gradient of x y vanishes: a run stays on the axis,
    or says that it cannot go on.
    """
    sol = hn.solve(hn.System(np.eye(2), np.zeros(2), lambda q: q[0] * q[1]), (0, 2), [-1.0, 0.0], [1.0, 0.0])
    assert np.all(np.isfinite(sol.y))
    if sol.success:
        np.testing.assert_allclose(sol.q, [sol.t - 1, 0 * sol.t], atol=1e-9)
    else:
        assert "singular" in sol.message


# In space


def test_spherical_pendulum():
    system = hn.System(
        np.eye(3), np.array([0.0, 0.0, -GRAVITY]), lambda q: q @ q - 1, potential=lambda q: GRAVITY * q[2]
    )
    q0, v0 = np.array([math.sin(1.0), 0.0, -math.cos(1.0)]), np.array([0.0, 1.5, 0.0])
    sol = hn.solve(system, (0, 10), q0, v0, **FINE)
    momentum = sol.q[0] * sol.v[1] - sol.q[1] * sol.v[0]
    L = momentum[0]

    def rate(t, y):
        return [y[1], L**2 * np.cos(y[0]) / np.sin(y[0]) ** 3 - GRAVITY * np.sin(y[0]), L / np.sin(y[0]) ** 2]

    theta, _, phi = reference(rate, (0, 10), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(momentum, L, rtol=1e-9)
    np.testing.assert_allclose(sol.energy, sol.energy[0], rtol=1e-9)
    np.testing.assert_allclose(
        sol.q[:, -1], [np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), -np.cos(theta)], atol=1e-8
    )


def _E(p):
    e0, e1, e2, e3 = p
    return np.array([[-e1, e0, e3, -e2], [-e2, -e3, e0, e1], [-e3, e2, -e1, e0]])


def test_rigid_body_in_euler_parameters():
    """M = 4 EᵀJE is singular (along p), but regular for motions with |p| = 1; the free body tumbles about its
    middle axis as Euler says.
    """
    J = np.diag([1.0, 2.0, 3.5])
    system = hn.System(
        lambda q: 4 * _E(q).T @ J @ _E(q), lambda q, v: 8 * _E(v).T @ J @ _E(v) @ q, lambda q: q @ q - 1, n=4
    )
    w0, p0 = np.array([0.1, 2.0, 0.05]), np.array([1.0, 0.0, 0.0, 0.0])
    sol = hn.solve(system, (0, 10), p0, _E(p0).T @ w0 / 2, **FINE)
    expected = reference(lambda t, w: np.linalg.solve(J, -np.cross(w, J @ w)), (0, 10), w0)
    assert on_manifold(sol, 1e-12)
    np.testing.assert_allclose(2 * _E(sol.q[:, -1]) @ sol.v[:, -1], expected, atol=1e-7)


def test_rigid_triangle_of_points():
    """Thrown into the air: its centre follows a parabola, its angular momentum about it stays."""
    pairs, weights = ((0, 1), (1, 2), (2, 0)), np.array([1.0, 2.0, 0.5])

    def constraint(q):
        points = q.reshape(3, 3)
        return np.array([np.linalg.norm(points[i] - points[j]) - 1.0 for i, j in pairs])

    system = hn.System(np.repeat(weights, 3), np.outer(weights, [0, 0, -GRAVITY]).ravel(), constraint)
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0.5, math.sqrt(0.75), 0]])
    spin, throw = np.array([0.3, -2.0, 1.1]), np.array([1.0, 2.0, 5.0])
    sol = hn.solve(system, (0, 2), corners.ravel(), (np.cross(spin, corners) + throw).ravel(), **FINE)
    points, speeds = sol.q.T.reshape(-1, 3, 3), sol.v.T.reshape(-1, 3, 3)
    centre, speed = (np.einsum("i,tij->tj", weights / weights.sum(), x) for x in (points, speeds))
    momentum = np.einsum("i,tij->tj", weights, np.cross(points - centre[:, None], speeds - speed[:, None]))
    drop = np.outer(sol.t**2 / 2, [0, 0, -GRAVITY])
    assert on_manifold(sol, 1e-12)
    np.testing.assert_allclose(centre, centre[0] + np.outer(sol.t, speed[0]) + drop, atol=1e-10)
    np.testing.assert_allclose(momentum, momentum[0] * np.ones_like(momentum), atol=1e-9)


# Forces of all kinds


def test_dry_friction_on_an_inclined_plane():
    slope = 0.5
    along = np.array([math.cos(slope), -math.sin(slope)])
    normal = np.array([math.sin(slope), math.cos(slope)])

    def force(v):
        return (
            np.array([0.0, -GRAVITY]) - 0.3 * GRAVITY * math.cos(slope) * np.tanh((along @ v) / 0.01) * along
        )

    sol = hn.solve(hn.System(np.eye(2), force, lambda q: normal @ q), (0, 2), np.zeros(2), -along, **FINE)

    def rate(t, y):
        return [y[1], GRAVITY * math.sin(slope) - 0.3 * GRAVITY * math.cos(slope) * np.tanh(y[1] / 0.01)]

    np.testing.assert_allclose(along @ sol.q[:, -1], reference(rate, (0, 2), [0.0, -1.0])[0], atol=1e-8)


def test_ordinary_numpy_is_understood():
    """Array parameters, assignment into zeros, helpers, np.cross, np.where, np.linalg.norm; all traced."""

    def skew(w):
        S = np.zeros((3, 3))
        S[0, 1], S[0, 2], S[1, 2] = -w[2], w[1], -w[0]
        return S - S.T

    def force(q, v, p):
        total = np.zeros(3)
        total[2] = -p.weight
        total += p.charge * np.cross(v, p.field) + skew(p.field) @ v * 0.0
        for centre in p.centres:
            distance = np.linalg.norm(q - centre)
            total -= (
                np.where(distance > p.reach, 0.0, p.stiffness * (p.reach - distance))
                * (centre - q)
                / distance
            )
        return total

    values = {
        "weight": 1.0,
        "charge": 0.7,
        "field": [0.1, 0.2, 2.0],
        "centres": [[2.0, 0, 0], [0.0, 3, 0]],
        "reach": 1.5,
        "stiffness": 4.0,
    }
    system = hn.System(np.eye(3), force, lambda q, p: q[2] - 0.1 * p.field @ q, parameters=values)
    assert system.paths["force"] == system.paths["constraint"] == "traced"
    sol = hn.solve(system, (0, 3), [0.0, 0.0, 0.0], [1.0, 0.0, 0.125], repair=True, **FINE)
    p = type("P", (), {k: np.array(v) for k, v in values.items()})
    normal = np.array([-0.01, -0.02, 0.8])

    def rate(t, y):
        f = force(y[:3], y[3:], p)
        return np.concatenate([y[3:], f - normal * (normal @ f) / (normal @ normal)])

    expected = reference(rate, (0, 3), np.concatenate([sol.q[:, 0], sol.v[:, 0]]))
    np.testing.assert_allclose(sol.y[:, -1], expected, atol=1e-7)


def _branches(q):
    side = 1 if q[0] > 0 else -1
    return np.array([0.0, -GRAVITY * side * side])


def _loops(q):
    total, k = 0.0, 0
    while k < 3 + int(q[0] > 10):
        total, k = total - GRAVITY / 3, k + 1
    return np.array([0.0, total])


def _table(q):
    heights, values = np.array([-3.0, 0.0, 3.0]), np.array([GRAVITY, GRAVITY, GRAVITY])
    k = min(max(int(np.searchsorted(heights, float(q[1]))), 1), 2)
    return [0.0, -values[k]]


def _interp(q):
    return np.array([0.0, -float(np.interp(float(q[0]), [-2, 2], [GRAVITY, GRAVITY]))])


_SPLINE = CubicSpline(np.linspace(-2, 2, 9), np.full(9, GRAVITY))


def _spline(q):
    return np.array([0.0, -float(_SPLINE(q[0]))])


@pytest.mark.parametrize("force", [_branches, _loops, _table, _interp, _spline])
def test_forces_that_cannot_be_traced(force):
    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(hn.System(np.eye(2), force, lambda q: q @ q - 1), (0, 2), pendulum.q0, pendulum.v0, **FINE)
    assert on_manifold(sol, 1e-13)
    np.testing.assert_allclose(sol.q, pendulum.exact(sol.t)[0], atol=1e-8)


def test_spline_force_against_scipy():
    spline = CubicSpline(np.linspace(-3, 3, 13), np.sin(np.linspace(-3, 3, 13)))
    sol = hn.solve(hn.System(1.0, lambda q: -spline(q)), (0, 5), [1.3], rtol=1e-9, atol=1e-11)
    assert sol.system.paths["force"] == "python"
    np.testing.assert_allclose(
        sol.y[:, -1], reference(lambda t, y: [y[1], -spline(y[0])], (0, 5), [1.3, 0.0]), atol=1e-6
    )


@pytest.mark.parametrize("role", ["constraint", "rheonomic", "velocity", "mass", "everything"])
def test_supplied_functions_in_every_role(role):
    """Derivatives by finite differences: nine digits, and the manifold to rounding."""

    def opaque(value):
        return np.array([float(x) for x in np.atleast_1d(value)])

    theta = 1.2
    plain = {"mass": np.eye(2), "force": np.array([0.0, -GRAVITY]), "constraint": lambda q: q @ q - 1}
    parts = dict(plain)
    if role in ("constraint", "everything"):
        parts["constraint"] = lambda q: opaque(q @ q - 1)
    if role == "rheonomic":
        parts["constraint"] = lambda t, q: opaque(q @ q - 1 + 0.0 * math.sin(float(t)))
    if role == "velocity":
        parts = {"mass": plain["mass"], "force": plain["force"], "velocity_constraint": lambda q: opaque(q)}
    if role in ("mass", "everything"):
        parts["mass"] = lambda q: np.diag(opaque([1.0, 1.0 + 0.0 * float(q[0])]))
    if role == "everything":
        parts["force"] = lambda q: opaque([0.0 * float(q[0]), -GRAVITY])
    pendulum = hn.mechanisms.pendulum(theta0=theta)
    sol = hn.solve(
        hn.System(**parts, n=None if role not in ("mass", "everything") else 2),
        (0, 2),
        pendulum.q0,
        pendulum.v0,
        rtol=1e-9,
        atol=1e-11,
    )
    assert on_manifold(sol, 1e-9)
    np.testing.assert_allclose(sol.q, pendulum.exact(sol.t)[0], atol=1e-6)


def test_written_derivative_of_a_supplied_constraint():
    pendulum = hn.mechanisms.pendulum()
    derivatives = {"constraint_q": lambda q: 2 * q.reshape(1, 2)}
    system = hn.System(
        np.eye(2),
        np.array([0.0, -GRAVITY]),
        lambda q: float(q[0]) ** 2 + float(q[1]) ** 2 - 1,
        derivatives=derivatives,
    )
    sol = hn.solve(system, (0, 2), pendulum.q0, pendulum.v0, **FINE)
    np.testing.assert_allclose(sol.q, pendulum.exact(sol.t)[0], atol=1e-8)


# Time: backward, output, events


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
def test_forward_then_backward_returns(method):
    chain = hn.mechanisms.double_pendulum()
    there = hn.solve(chain.system, (0, 2), chain.q0, chain.v0, method=method, **FINE)
    back = hn.solve(chain.system, (2, 0), there.q[:, -1], there.v[:, -1], method=method, **FINE)
    assert back.success
    assert back.t[0] == 2
    assert back.t[-1] == 0
    assert np.all(np.diff(back.t) < 0)
    np.testing.assert_allclose(back.q[:, -1], chain.q0, atol=1e-6)
    assert on_manifold(back, 1e-13)


@pytest.mark.parametrize("span", [(0, 3), (3, 0), (-3, 0), (1e5, 1e5 + 3)])
def test_t_eval_gives_these_times_and_nothing_else(span):
    pendulum = hn.mechanisms.pendulum()
    times = np.linspace(*span, 37)
    sol = hn.solve(pendulum.system, span, pendulum.q0, pendulum.v0, t_eval=times, **FINE)
    np.testing.assert_array_equal(sol.t, times)
    np.testing.assert_allclose(sol.q, pendulum.exact(times - span[0])[0], atol=1e-7)
    assert sol.history is None
    assert on_manifold(sol, 1e-13)
    inner = hn.solve(pendulum.system, span, pendulum.q0, pendulum.v0, t_eval=times[3:-3], **FINE)
    np.testing.assert_array_equal(inner.q, sol.q[:, 3:-3])


def test_t_eval_keeps_memory_small():
    system = cartesian_pendulum()
    hn.solve(system, (0, 1), [1.0, 0.0], t_eval=[1.0])
    tracemalloc.start()
    sol = hn.solve(system, (0, 1000), [1.0, 0.0], t_eval=np.linspace(0, 1000, 5), step=1e-2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sol.steps == 100_000
    assert sol.t.size == 5
    assert peak < 8e6, f"{peak / 1e6:.1f} MB, but the steps alone would take 4 MB"


@pytest.mark.parametrize(("method", "order"), [("heun", 2), ("dopri5", 5), ("dop853", 8)])
def test_dense_output_is_on_the_manifold_and_has_the_order(method, order):
    pendulum = hn.mechanisms.pendulum()
    times = np.random.default_rng(0).uniform(0, 2, 200)
    errors = []
    for step in (0.1, 0.05) if order > 2 else (0.01, 0.005):
        sol = hn.solve(
            pendulum.system, (0, 2), pendulum.q0, pendulum.v0, method=method, step=step, dense_output=True
        ).sol
        q, v = sol(times)
        assert q.shape == v.shape == (2, 200)
        assert np.max(np.abs(np.sum(q * q, axis=0) - 1)) <= 1e-10
        assert np.max(np.abs(np.sum(q * v, axis=0))) <= 1e-10
        errors.append(np.max(np.abs(q - pendulum.exact(times)[0])))
    assert errors[0] / errors[1] > 2 ** (order - 0.6)


def test_dense_output_meets_the_points_and_refuses_other_times():
    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(pendulum.system, (2, 0), pendulum.q0, pendulum.v0, dense_output=True)
    q, v = sol.sol(sol.t)
    np.testing.assert_array_equal(q, sol.q)
    np.testing.assert_array_equal(v, sol.v)
    assert sol.sol(1.0)[0].shape == (2,)
    assert sol.sol([])[0].shape == (2, 0)
    with pytest.raises(ValueError, match="t:"):
        sol.sol(2.1)
    with pytest.raises(ValueError, match="t:"):
        sol.sol(math.nan)
    sparse = hn.solve(pendulum.system, (2, 0), pendulum.q0, pendulum.v0, dense_output=True, t_eval=[1.5, 0.5])
    np.testing.assert_array_equal(sparse.t, [1.5, 0.5])
    np.testing.assert_allclose(sparse.sol(sol.t)[0], sol.q, atol=1e-14)


def test_events_at_known_zeros():
    """X = cos t: zeros, their directions, the second one terminal."""
    system = hn.System(1.0, lambda q: -q)

    def passes(q):
        return q[0]

    def rises(q):
        return q[0]

    def falls(q):
        return q[0]

    rises.direction, falls.direction = 1, -1
    sol = hn.solve(
        system,
        (0, 10),
        [1.0],
        rtol=1e-13,
        atol=1e-14,
        events=[passes, rises, falls, lambda t: t - 7.25, lambda v: v[0] - 2.0],
    )
    zeros = np.pi * np.array([0.5, 1.5, 2.5])
    assert sol.status == 0
    np.testing.assert_allclose(sol.t_events[0], zeros, atol=1e-12)
    np.testing.assert_allclose(sol.t_events[1], zeros[1:2], atol=1e-12)
    np.testing.assert_allclose(sol.t_events[2], zeros[::2], atol=1e-12)
    np.testing.assert_allclose(sol.t_events[3], [7.25], rtol=1e-13)
    assert sol.t_events[4].size == 0
    assert sol.q_events[4].shape == (0, 1)
    np.testing.assert_allclose(sol.q_events[0], 0, atol=1e-12)
    np.testing.assert_allclose(sol.v_events[0][:, 0], -np.sin(zeros), atol=1e-12)


@pytest.mark.parametrize("span", [(0, 10), (0, -10)])
@pytest.mark.parametrize(("terminal", "at"), [(True, 0.5), (1, 0.5), (2, 1.5), (3, 2.5), (9, None)])
def test_terminal_events(span, terminal, at):
    event = hn.Event(lambda q: q[0], terminal=terminal)
    sol = hn.solve(
        hn.System(1.0, lambda q: -q), span, [1.0], rtol=1e-13, atol=1e-14, events=event, dense_output=True
    )
    if at is None:
        assert sol.status == 0
        assert sol.t[-1] == span[1]
        return
    assert sol.success
    assert sol.status == 1
    assert "event" in sol.message
    assert sol.t[-1] == sol.t_events[0][-1]
    np.testing.assert_allclose(sol.t[-1], math.copysign(at * math.pi, span[1]), atol=1e-12)
    np.testing.assert_allclose(sol.q[0], np.cos(sol.t), atol=1e-11)
    np.testing.assert_allclose(sol.sol(sol.t[-1])[0], 0, atol=1e-12)
    with pytest.raises(ValueError, match="t:"):
        sol.sol(1.01 * sol.t[-1])


def test_event_time_on_the_pendulum_and_states_on_the_manifold():
    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(
        pendulum.system, (0, 5), pendulum.q0, pendulum.v0, rtol=1e-12, atol=1e-13, events=lambda q: q[0]
    )
    period = float(4 * math.pi / 2 / (math.sqrt(GRAVITY) * _agm(1.0, math.cos(math.pi / 4))))
    assert sol.t_events[0].size == 4
    np.testing.assert_allclose(sol.t_events[0], period * (0.25 + 0.5 * np.arange(4)), atol=1e-10)
    assert np.max(np.abs(np.sum(sol.q_events[0] ** 2, axis=1) - 1)) < 1e-14


def _agm(a, b):
    while abs(a - b) > 1e-15 * a:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return a


def test_events_at_both_ends_and_touching_zero():
    """At the end a zero counts; at the start, where it is zero to begin with, the event has not happened."""
    system = hn.System(1.0, np.zeros(1))
    sol = hn.solve(system, (0, 1), [0.0], [1.0], events=[lambda q: q[0], lambda t: t - 1.0, lambda t: t])
    assert sol.success
    np.testing.assert_allclose(sol.t_events[1], [1.0])
    assert all(np.all((times >= 0) & (times <= 1)) for times in sol.t_events)
    bounce = hn.solve(system, (0, 1), [0.0], [1.0], events=hn.Event(lambda q: q[0], terminal=True))
    assert bounce.t[-1] == 1.0, "a start on the zero of a terminal event does not stop there"


def test_bouncing_ball_by_restarts():
    """V flips by −0.8 at each impact: impact times are a geometric series."""
    system, t, q, v, impacts = hn.System(1.0, np.array([-GRAVITY])), 0.0, np.array([1.0]), np.array([0.0]), []
    for _ in range(8):
        sol = hn.solve(
            system,
            (t, 10),
            q,
            v,
            rtol=1e-12,
            atol=1e-13,
            events=hn.Event(lambda q: q[0], terminal=True, direction=-1),
        )
        t, q, v = sol.t[-1], np.array([0.0]), -0.8 * sol.v[:, -1]
        impacts.append(t)
    first = math.sqrt(2 / GRAVITY)
    expected = first + 2 * first * np.cumsum(np.concatenate([[0.0], 0.8 ** np.arange(1, 8)]))
    np.testing.assert_allclose(impacts, expected, rtol=1e-11)


def test_several_terminal_events_in_one_step():
    events = [
        hn.Event(lambda q: q[0] - 3, terminal=True),
        hn.Event(lambda q: q[0] - 2, terminal=True),
        lambda q: q[0] - 1,
        lambda q: q[0] - 4,
    ]
    sol = hn.solve(hn.System(1.0, np.zeros(1)), (0, 10), [0.0], [1.0], first_step=10.0, events=events)
    np.testing.assert_allclose(sol.t[-1], 2.0, rtol=1e-12)
    assert [times.size for times in sol.t_events] == [0, 1, 1, 0]
    np.testing.assert_allclose(sol.q[:, -1], 2.0, rtol=1e-12)


def test_event_that_cannot_be_traced_and_with_parameters():
    def hit(q, p):
        return float(np.interp(float(q[0]), [-2, 2], [-2, 2])) - p.level

    system = hn.System(1.0, lambda q: -q, parameters={"level": 0.5})
    for level in (0.5, -0.25):
        sol = hn.solve(system, (0, 3), [1.0], rtol=1e-12, atol=1e-13, events=hit, parameters={"level": level})
        np.testing.assert_allclose(sol.t_events[0], [math.acos(level)], atol=1e-10)


def test_a_failed_event_leaves_no_trace():
    """The next run with the same event, from a start that needs repair, is like any other."""
    state = {"fails": True}

    def touchy(q):
        if state["fails"] and float(q[0]) < 0.9:
            raise RuntimeError("not yet")
        return float(q[0])

    system = cartesian_pendulum()
    first = hn.solve(system, (0, 2), [1.0, 0.0], events=touchy)
    assert not first.success
    assert "not yet" in first.message
    assert "events[0]" in first.message
    state["fails"] = False
    second = hn.solve(system, (0, 2), [1.0, 1e-5], events=touchy)
    assert second.success, second.message


# Steps


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


# Systems as objects: parameters, copies, threads, interruption


def test_other_parameters_compile_nothing(monkeypatch):
    system = hn.System(
        np.eye(2),
        lambda p: np.array([0.0, -p.g]),
        lambda q, p: q @ q - p.length**2,
        parameters={"g": GRAVITY, "length": 1.0},
    )
    hn.solve(system, (0, 1), [1.0, 0.0])
    import holonome.machine.kernel

    def refuse(*_):
        raise AssertionError("compiled")

    monkeypatch.setattr(holonome.machine.kernel, "_compile", refuse)
    monkeypatch.setattr(holonome.machine.kernel, "Kernel", refuse)
    sol = hn.solve(system, (0, 1), [2.0, 0.0], parameters={"length": 2.0, "g": 3.0}, **FINE)
    np.testing.assert_allclose(
        sol.q, hn.mechanisms.pendulum(length=2.0, gravity=3.0).exact(sol.t)[0], atol=1e-8
    )
    assert system.parameters["length"] == 1.0
    assert sol.system.parameters["length"] == 2.0


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_and_pickles_of_systems_made_of_lambdas(clone):
    functions = {
        "mass": lambda q, p: np.array([[p.m, 0], [0, p.m + q[0] ** 2]]),
        "constraint": lambda q: q @ q - 1,
        "potential": lambda q, p: p.m * p.g * q[1],
    }
    functions["force"] = lambda t, v, p: np.array([0.1 * np.sin(t), -p.m * p.g]) - 0.1 * v
    system = hn.System(
        **functions,
        parameters={"m": 2.0, "g": GRAVITY},
        names=["x", "y"],
        constraint_names=["rod"],
        name="lamp",
    )
    twin = clone(system)
    assert (twin.name, twin.names, twin.constraint_names, dict(twin.parameters)) == (
        "lamp",
        ["x", "y"],
        ["rod"],
        {"m": 2.0, "g": GRAVITY},
    )
    one, two = (hn.solve(s, (0, 3), [1.0, 0.0], parameters={"g": 5.0}) for s in (system, twin))
    np.testing.assert_array_equal(one.y, two.y)
    np.testing.assert_array_equal(one.lam, two.lam)
    np.testing.assert_array_equal(one.energy, two.energy)


def test_pickled_velocity_constraint_given_as_a_matrix():
    """A(q) and A(q) v must not be confused on the way through a pickle."""
    system = hn.System(
        np.ones(3),
        np.array([1.0, 0.0, 0.0]),
        velocity_constraint=lambda q: np.array([[np.sin(q[2]), -np.cos(q[2]), 0.0]]),
    )
    one, two = (
        hn.solve(s, (0, 2), np.zeros(3), [0, 0, 1.0]) for s in (system, pickle.loads(pickle.dumps(system)))
    )
    np.testing.assert_array_equal(one.y, two.y)


def _run_apart(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


def test_dense_output_outlives_its_system():
    """``hn.solve(...).sol`` is all that is kept: machine code must not be freed under it."""
    out = _run_apart("""
        import gc, numpy as np, holonome as hn
        force = np.array([0.0, -9.81])
        rod = hn.System(np.eye(2), force, lambda q: q @ q - 1)
        sol = hn.solve(rod, (0, 1), [1.0, 0.0], dense_output=True).sol
        del rod
        gc.collect()
        for i in range(5):
            other = hn.System(np.eye(2), force, lambda q: q @ q - 2 - i)
            hn.solve(other, (0, 1), [1.0, 0.0], repair=True)
        print(abs(np.linalg.norm(sol(0.5)[0]) - 1) < 1e-12)
        """)
    assert out.strip() == "True"


def test_results_travel_between_processes(tmp_path):
    """A pickled result, dense output included, works in another process."""
    _run_apart(f"""
        import pickle, numpy as np, holonome as hn
        p = hn.mechanisms.pendulum()
        sol = hn.solve(p.system, (0, 1), p.q0, p.v0, dense_output=True)
        sol.lam, sol.drift
        pickle.dump(sol, open({str(tmp_path / "sol")!r}, "wb"))
        """)
    out = _run_apart(f"""
        import pickle, numpy as np, holonome as hn
        p = hn.mechanisms.pendulum()
        extra = hn.solve(p.system, (0, 1), p.q0, p.v0)
        sol = pickle.load(open({str(tmp_path / "sol")!r}, "rb"))
        for name in ("q", "lam", "a", "energy"):
            print(np.allclose(getattr(sol, name), getattr(extra, name), atol=1e-14))
        print(np.allclose(sol.sol(0.5)[0] @ sol.sol(0.5)[0], 1))
        """)
    assert out.split() == ["True"] * 5


def test_threads_give_the_same_digits():
    pendulum = hn.mechanisms.double_pendulum()
    alone = hn.solve(pendulum.system, (0, 20), pendulum.q0, pendulum.v0, **FINE)
    fresh = pickle.loads(pickle.dumps(pendulum.system))
    with ThreadPoolExecutor(4) as pool:
        results = [
            f.result()
            for f in [
                pool.submit(hn.solve, fresh, (0, 20), pendulum.q0, pendulum.v0, **FINE) for _ in range(8)
            ]
        ]
    assert all(np.array_equal(r.y, alone.y) for r in results)


def test_threads_with_python_functions_and_other_parameters():
    """Each run sees its own parameters."""
    table = CubicSpline([-2.0, 0.0, 2.0], [1.0, 1.0, 1.0])
    system = hn.System(1.0, lambda q, p: np.array([-p.k * q[0] * float(table(q[0]))]), parameters={"k": 1.0})
    assert system.paths["force"] == "python"
    stiffness = [1.0, 2.0, 3.0, 4.0]
    alone = [hn.solve(system, (0, 3), [1.0], parameters={"k": k}).y for k in stiffness]
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            together = [
                f.result().y
                for f in [
                    pool.submit(hn.solve, system, (0, 3), [1.0], parameters={"k": k}) for k in stiffness
                ]
            ]
    finally:
        sys.setswitchinterval(switch)
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def _interrupted(sol) -> bool:
    ordered = bool(np.all(np.diff(sol.t) > 0) and np.all(np.isfinite(sol.y)))
    return (
        not sol.success
        and sol.status == -1
        and "interrupt" in sol.message.lower()
        and sol.t.size > 1
        and ordered
    )


def test_keyboard_interrupt_in_a_progress_callback():
    def stop(fraction):
        assert 0 <= fraction <= 1
        if fraction > 0.01:
            raise KeyboardInterrupt

    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(pendulum.system, (0, 10_000), pendulum.q0, pendulum.v0, progress=stop, step=1e-3)
    assert _interrupted(sol), sol.message
    assert 100 <= sol.t[-1] < 10_000


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signals reach only the main thread: run this test without -n",
)
@pytest.mark.parametrize("kind", ["native", "python"])
def test_ctrl_c_returns_what_there_is(kind):
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a job in the background may have begun with the signal ignored
    try:
        _interrupt_a_run(kind)
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt_a_run(kind):
    table = CubicSpline([-2.0, 0.0, 2.0], [GRAVITY] * 3)
    force = np.array([0.0, -GRAVITY]) if kind == "native" else lambda q: np.array([0.0, -float(table(q[0]))])
    system = hn.System(np.eye(2), force, lambda q: q @ q - 1)
    hn.solve(system, (0, 0.1), [1.0, 0.0])
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    end = {"native": 2e5, "python": 1e3}[kind]
    sol = hn.solve(system, (0, end), [1.0, 0.0], t_eval=np.linspace(0, end, 10_001))
    timer.join()
    assert _interrupted(sol), sol.message


def test_progress_is_told_to_the_end():
    told = []
    pendulum = hn.mechanisms.pendulum()
    hn.solve(pendulum.system, (0, 100), pendulum.q0, pendulum.v0, progress=told.append, step=1e-3)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_a_result_prints_and_converts():
    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(pendulum.system, (0, 1), pendulum.q0, pendulum.v0)
    assert "success" in str(sol)
    assert "|g|" in str(sol)
    assert "energy" in str(sol)
    np.testing.assert_allclose(
        sol.system.functions["mass"].evaluate({"t": 0.0, "q": sol.q[:, -1], "v": sol.v[:, -1]})
        @ sol.a[:, -1],
        np.array([0, -GRAVITY]) - 2 * sol.q[:, -1] * sol.lam[0, -1],
        atol=1e-12,
    )


# Switches in time


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

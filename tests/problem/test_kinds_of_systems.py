"""Systems of every kind, each against something independent: a closed form, minimal coordinates and SciPy, an
invariant.
"""

import math

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

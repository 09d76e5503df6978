"""Bushings: action and reaction, rigid motions, power, small displacements, the plane as a case of space."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import holonome as hn
from holonome.problem import bushing

K, C = np.array([[5.0, 1.0, 0.3], [1.0, 2.0, 0.2], [0.3, 0.2, 4.0]]), np.diag([0.7, 0.2, 0.5])
K_TAU, C_TAU = np.diag([3.0, 1.0, 2.0]), np.diag([0.1, 0.4, 0.3])
S_I, S_J = np.array([0.5, 0.1, -0.2]), np.array([-0.4, 0.3, 0.1])
FORCES = {
    "stiffness": K,
    "damping": C,
    "torsion": K_TAU,
    "torsion_damping": C_TAU,
    "Bi": Rotation.from_rotvec([0.2, -0.1, 0.4]).as_matrix(),
    "Bj": Rotation.from_rotvec([0.1, 0.3, 0.2]).as_matrix(),
}


def two_bodies(seed: int):
    """Position, rotation, velocity and angular velocity of two bodies in space."""
    random = np.random.default_rng(seed)
    return [
        (
            random.normal(size=3),
            Rotation.from_rotvec(0.4 * random.normal(size=3)).as_matrix(),
            random.normal(size=3),
            random.normal(size=3),
        )
        for _ in range(2)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_action_is_reaction_in_space(seed):
    (ri, *i), (rj, *j) = two_bodies(seed)
    fi, ti, fj, tj = bushing.forces_3d(ri, *i, rj, *j, S_I, S_J, **FORCES)
    np.testing.assert_allclose(fi + fj, 0, atol=1e-14)
    np.testing.assert_allclose(ti + np.cross(ri, fi) + tj + np.cross(rj, fj), 0, atol=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_a_common_rigid_motion_is_not_felt(seed):
    """Turned, shifted and in common motion, the bodies feel the same forces in their own axes."""
    (ri, Ai, vi, wi), (rj, Aj, vj, wj) = two_bodies(seed)
    random = np.random.default_rng(seed)
    R = Rotation.from_rotvec(random.normal(size=3)).as_matrix()
    shift = random.normal(size=3)
    speed = random.normal(size=3)
    spin = random.normal(size=3)

    def moved(r, A, v, w):
        return R @ r + shift, R @ A, R @ v + speed + np.cross(spin, R @ r), R @ w + spin

    before = bushing.forces_3d(ri, Ai, vi, wi, rj, Aj, vj, wj, S_I, S_J, **FORCES)
    after = bushing.forces_3d(*moved(ri, Ai, vi, wi), *moved(rj, Aj, vj, wj), S_I, S_J, **FORCES)
    np.testing.assert_allclose(after, [R @ x for x in before], atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_power_is_dissipated_and_stored(seed):
    """In the plane: power of the forces = −ċᵀC ċ − d/dt ½ cᵀK c."""
    random = np.random.default_rng(seed)
    qi, vi, qj, vj = random.normal(size=(4, 3))
    si, sj, angles = S_I[:2], S_J[:2], (0.3, -0.7)
    on_i, on_j = bushing.forces_2d(qi, vi, qj, vj, si, sj, K, C, *angles)

    def c(t):
        return bushing.deformation_2d(qi + t * vi, qj + t * vj, si, sj, *angles)

    rate = (c(1e-5) - c(-1e-5)) / 2e-5
    assert on_i @ vi + on_j @ vj == pytest.approx(-rate @ C @ rate - c(0) @ K @ rate, rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_damping_never_adds_energy_in_space(seed):
    (ri, Ai, vi, wi), (rj, Aj, vj, wj) = two_bodies(seed)
    fi, ti, fj, tj = bushing.forces_3d(
        ri,
        Ai,
        vi,
        wi,
        rj,
        Aj,
        vj,
        wj,
        S_I,
        S_J,
        stiffness=0.0,
        damping=C,
        torsion_damping=C_TAU,
        Bi=FORCES["Bi"],
    )
    assert fi @ vi + ti @ wi + fj @ vj + tj @ wj < 0


def test_small_displacements_are_linear():
    """Body 1 at rest with its frame in the attachment of body 2: force K d, torque K^τ Θ."""
    d, turn, rest = 1e-6 * np.array([1.0, -2.0, 3.0]), 1e-6 * np.array([2.0, 1.0, -1.0]), np.zeros(3)
    force, torque, *_ = bushing.forces_3d(
        rest,
        np.eye(3),
        rest,
        rest,
        d,
        Rotation.from_rotvec(turn).as_matrix(),
        rest,
        rest,
        rest,
        rest,
        K,
        torsion=K_TAU,
    )
    np.testing.assert_allclose(force, K @ d, rtol=1e-12)
    np.testing.assert_allclose(torque, K_TAU @ turn, rtol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_plane_is_a_case_of_space(seed):
    random = np.random.default_rng(seed)
    qi, vi, qj, vj = random.uniform(-1, 1, (4, 3))
    si, sj, angle = S_I[:2], S_J[:2], 0.3
    on_i, on_j = bushing.forces_2d(
        qi, vi, qj, vj, si, sj, np.diag([5.0, 2.0, 3.0]), np.diag([0.7, 0.2, 0.4]), angle
    )

    def body(q, v):
        return (
            np.array([*q[:2], 0.0]),
            Rotation.from_rotvec([0, 0, q[2]]).as_matrix(),
            np.array([*v[:2], 0.0]),
            np.array([0.0, 0.0, v[2]]),
        )

    fi, ti, fj, tj = bushing.forces_3d(
        *body(qi, vi),
        *body(qj, vj),
        np.array([*si, 0.0]),
        np.array([*sj, 0.0]),
        np.array([5.0, 2.0, 9.0]),
        np.array([0.7, 0.2, 9.0]),
        np.array([8.0, 8.0, 3.0]),
        np.array([8.0, 8.0, 0.4]),
        Bi=Rotation.from_rotvec([0, 0, angle]).as_matrix(),
    )
    np.testing.assert_allclose([*fi[:2], ti[2]], on_i, atol=1e-13)
    np.testing.assert_allclose([*fj[:2], tj[2]], on_j, atol=1e-13)
    np.testing.assert_allclose([fi[2], *ti[:2]], 0, atol=1e-13)


def test_a_system_with_a_bushing_in_space_is_traced_and_keeps_its_energy():
    """A body that turns about the vertical axis of the frame and slides on it, held by a bushing with damping
    zero.
    """

    def rotation(angle):
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

    zero = np.zeros(3)
    s1 = np.array([0.3, 0.0, 0.0])
    s2 = np.array([0.4, 0.0, 0.0])
    k = np.array([30.0, 10.0, 20.0])
    torsion = np.array([1.0, 1.0, 5.0])

    def force(q, v):
        _, _, on, torque = bushing.forces_3d(
            zero,
            np.eye(3),
            zero,
            zero,
            q[:3],
            rotation(q[3]),
            v[:3],
            np.array([0.0, 0.0, v[3]]),
            s1,
            s2,
            k,
            torsion=torsion,
        )
        return np.array([on[0], on[1], on[2], torque[2]])

    def potential(q):
        c = bushing.deformation_3d(zero, np.eye(3), q[:3], rotation(q[3]), s1, s2)
        return c[:3] @ (k * c[:3]) / 2 + torsion[2] * c[5] ** 2 / 2

    system = hn.System(np.array([1.0, 1.0, 1.0, 0.2]), force, potential=potential)
    assert not system.supplied
    sol = hn.solve(system, (0, 5), [0.1, -0.2, 0.3, 0.5], rtol=1e-10, atol=1e-12)
    assert np.ptp(sol.energy) < 1e-7 * sol.energy[0]

"""Forces that depend on λ and cannot be evaluated at λ = 0: first guesses, lam0, messages."""

import numpy as np
import pytest

import holonome as hn

SMOOTH_LAWS = {
    "tanh(1/λ)": lambda v, lam: v * np.tanh(1 / lam[0]),
    "λ²/|λ|": lambda v, lam: v * lam[0] ** 2 / np.abs(lam[0]),
    "√|λ|": lambda v, lam: v * np.sqrt(np.abs(lam[0])),
    "λ tanh(v/λ)": lambda v, lam: lam[0] * np.tanh(v / lam[0]),
    "|λ|": lambda v, lam: v * np.abs(lam[0]),
}


def pendulum(law):
    return hn.System(
        np.eye(2),
        lambda v, lam: np.array([0.0, -9.81]) - 0.1 * law(v, lam),
        lambda q: q @ q - 1,
        names=["x", "y"],
    )


def reference(law, t):
    """The pendulum in its angle, with 2 λ = |v|² − g · q from the radial direction."""
    from scipy.integrate import solve_ivp

    def rates(_, x):
        q, tangent = np.array([np.cos(x[0]), np.sin(x[0])]), np.array([-np.sin(x[0]), np.cos(x[0])])
        lam = (x[1] ** 2 - 9.81 * q[1]) / 2
        # the law's force has a radial part where it is not along v: iterate
        for _ in range(60):
            friction = 0.1 * law(x[1] * tangent, [lam])
            lam = (x[1] ** 2 - 9.81 * q[1] - q @ friction) / 2
        return [x[1], -9.81 * q[0] - tangent @ friction]

    return solve_ivp(rates, (0, t), [0.0, 3.0], rtol=1e-11, atol=1e-12).y[0, -1]


@pytest.mark.parametrize("method", ["auto", "ggl", "bdf"])
@pytest.mark.parametrize("law", SMOOTH_LAWS.values(), ids=SMOOTH_LAWS)
def test_laws_that_fail_at_zero(law, method):
    sol = hn.solve(pendulum(law), (0, 1), [1, 0], [0, 3], method=method, rtol=1e-8, atol=1e-10)
    assert sol.success
    np.testing.assert_allclose(np.arctan2(*sol.q[::-1, -1]), reference(law, 1.0), atol=2e-6)
    assert sol.lam[0, 0] == pytest.approx(4.5)


def test_a_guess_chooses_the_solution():
    """λ = 4.5 + f(λ): a force with two solutions follows the guess."""

    def law(q, lam):
        return np.array([0.5 * (lam[0] - 4.5) ** 2, -9.81])

    system = hn.System(np.eye(2), lambda q, lam: law(q, lam), lambda q: q @ q - 1, names=["x", "y"])
    found = [hn.solve(system, (0, 1e-6), [1, 0], [0, 3], lam0=lam0).lam[0, 0] for lam0 in ([4.4], [9.0])]
    np.testing.assert_allclose(found, [4.5, 8.5], rtol=1e-9)


def test_messages_name_the_multipliers():
    at_rest = pendulum(SMOOTH_LAWS["tanh(1/λ)"])  # λ = 0 is the solution there
    with pytest.raises(hn.ModelError, match=r"multipliers λ.*first guess, λ = 0; give a better one, lam0="):
        hn.solve(at_rest, (0, 1), [1, 0], [0, 0])
    with pytest.raises(hn.ModelError, match=r"multipliers λ.*lam0 = \[0\.\]"):
        hn.solve(at_rest, (0, 1), [1, 0], [0, 3], lam0=[0])
    with pytest.raises(hn.ModelError, match="entry 0 of force is nan"):
        hn.solve(pendulum(lambda v, lam: lam[0] * np.sqrt(-1 - v**2)), (0, 1), [1, 0], [0, 3])
    runs_out = hn.solve(pendulum(lambda v, lam: v * np.log(lam[0])), (0, 1), [1, 0], [0, 3])
    assert not runs_out.success
    assert "multipliers λ" in runs_out.message


def test_guess_is_checked():
    system = pendulum(SMOOTH_LAWS["|λ|"])
    with pytest.raises(ValueError, match="lam0: shape"):
        hn.solve(system, (0, 1), [1, 0], lam0=[1, 2])
    with pytest.raises(ValueError, match="lam0: entry 0 is nan"):
        hn.solve(system, (0, 1), [1, 0], lam0=[np.nan])
    with pytest.raises(ValueError, match="lam0: no force"):
        hn.solve(hn.mechanisms.pendulum().system, (0, 1), [1, 0], lam0=[1])


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize("coordinates", [2, 6])
def test_friction_beside_a_coordinate_without_mass(coordinates, unit):
    """A bead on a wire with friction, whose height is one more coordinate, without mass, in any unit of mass.
    The other beads are there for a mass matrix that is solved in another way.
    """
    beads, root = coordinates // 2, np.random.default_rng(1).normal(size=(coordinates, coordinates))

    def friction(v, lam):
        return 0.3 * np.sqrt(lam[0] ** 2 + 0.01 * unit**2) * v / np.sqrt(v @ v + 0.01)

    def constraint(q):
        return np.array([np.sqrt(q[2 * i : 2 * i + 2] @ q[2 * i : 2 * i + 2]) - 1 for i in range(beads)])

    mass = unit * (np.eye(coordinates) + root.T @ root / coordinates)
    weight = unit * np.tile([0.0, -9.81], beads)
    without = hn.System(mass, lambda v, lam: weight - friction(v, lam), constraint)
    block = np.zeros((coordinates + 1, coordinates + 1))
    block[:-1, :-1] = mass
    system = hn.System(
        block,
        lambda v, lam: np.append(weight - friction(v[:-1], lam), 0.0),
        lambda q: np.append(constraint(q[:-1]), q[-1] - np.sin(q[1])),
    )
    q0, v0 = np.tile([0.6, -0.8], beads), np.tile([0.8, 0.6], beads)
    given = {"rtol": 1e-10, "atol": 1e-12, "method": "dop853"}
    expected = hn.solve(without, (0, 1), q0, v0, **given)
    found = hn.solve(
        system, (0, 1), np.append(q0, np.sin(q0[1])), np.append(v0, np.cos(q0[1]) * v0[1]), **given
    )
    np.testing.assert_allclose(found.a[:-1, 0], expected.a[:, 0], rtol=1e-9)
    np.testing.assert_allclose(found.lam[:-1, 0], expected.lam[:, 0], rtol=1e-9)
    np.testing.assert_allclose(found.q[:-1, -1], expected.q[:, -1], rtol=1e-7)


def test_functions_that_cannot_be_traced_are_refused_for_the_reason_they_are():
    with pytest.raises(hn.ModelError, match=r"constraint: cannot be traced .* forces of lam needs"):
        hn.System(
            np.eye(2), lambda v, lam: -lam[0] * v, lambda q: {1: float(q[0]) ** 2 + float(q[1]) ** 2 - 1}[1]
        )

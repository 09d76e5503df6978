"""DAEs of any index against closed forms, published digits and other statements of the problem; refusals."""

import pickle

import numpy as np
import pytest

import holonome as hn

METHODS = ("auto", "dopri5", "bdf", "radau")
NAN = np.nan


def crane(**arguments) -> hn.DAE:
    """A force that leads a load behind a spring along sin t: index 5."""

    def equations(t, x, ddx, p):
        spring = p.k * (x[1] - x[0])
        return [ddx[0] - spring - x[2], 2 * ddx[1] + spring, x[1] - np.sin(t)]

    return hn.DAE(equations, names=["cart", "load", "force"], parameters={"k": 5.0}, **arguments)


def crane_exactly(t):
    return np.array([0.6 * np.sin(t), np.sin(t), -2.6 * np.sin(t)])


def pendulum() -> hn.DAE:
    """Of length 1, with velocities u and v as variables: index 3."""

    def equations(x, dx):
        x, y, u, v, force = x
        return [dx[0] - u, dx[1] - v, dx[2] + force * x, dx[3] + force * y + 9.81, x**2 + y**2 - 1]

    return hn.DAE(equations, names=["x", "y", "u", "v", "force"])


AMPLIFIED = [
    -0.5562145012262709e-2,
    0.3006522471903042e1,
    0.2849958788608128e1,
    0.2926422536206241e1,
    0.2704617865010554e1,
    0.2761837778393145e1,
    0.4770927631616772e1,
    0.1236995868091548e1,
]
"""The transistor amplifier at t = 0.2 (Test Set for IVP Solvers, release 2.4)."""


def amplifier() -> hn.DAE:
    def equations(t, x, dx):
        C = 1e-6 * np.arange(1, 6)
        supply, R, R0 = 6 / 9000, 9000.0, 1000.0
        first, second = (1e-6 * (np.exp((x[i] - x[i + 1]) / 0.026) - 1) for i in (1, 4))
        return [
            C[0] * (dx[0] - dx[1]) + (x[0] - 0.1 * np.sin(200 * np.pi * t)) / R0,
            C[0] * (dx[1] - dx[0]) - supply + 2 * x[1] / R + 0.01 * first,
            C[1] * dx[2] - first + x[2] / R,
            C[2] * (dx[3] - dx[4]) - supply + x[3] / R + 0.99 * first,
            C[2] * (dx[4] - dx[3]) - supply + 2 * x[4] / R + 0.01 * second,
            C[3] * dx[5] - second + x[5] / R,
            C[4] * (dx[6] - dx[7]) - supply + x[6] / R + 0.99 * second,
            C[4] * (dx[7] - dx[6]) + x[7] / R,
        ]

    return hn.DAE(equations, n=8)


@pytest.mark.parametrize("method", METHODS)
def test_a_prescribed_path_of_index_5(method):
    led = crane()
    assert (led.index, led.differentiated, led.freedoms) == (5, (0, 2, 4), 0)
    sol = hn.solve(led, (0, 10), [NAN, 0, NAN], [NAN, 1, NAN], method=method)
    assert sol.success
    np.testing.assert_allclose(sol.x, crane_exactly(sol.t), atol=1e-9)


def test_backwards_with_a_start_at_another_time():
    sol = hn.solve(crane(), (3, 1), crane_exactly(3.0), [NAN, np.cos(3), NAN], t_eval=[2.5, 1.0])
    np.testing.assert_allclose(sol.x, crane_exactly(sol.t), atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_pendulum_of_index_3(method):
    stated = pendulum()
    assert (stated.index, stated.differentiated, stated.freedoms) == (3, (1, 1, 0, 0, 2), 2)
    sol = hn.solve(stated, (0, 3), [1, 0, 0, 0, 0], method=method, rtol=1e-7)
    example = hn.mechanisms.pendulum()
    reference = hn.solve(example.system, (0, 3), [1, 0], [0, 0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sol.x[:2, -1], reference.q[:, -1], atol=2e-5)
    np.testing.assert_allclose(sol.x[4, -1], 2 * reference.lam[0, -1], rtol=1e-5)
    x, y, u, v, _ = sol.x
    assert np.max(np.abs(x**2 + y**2 - 1)) < 1e-13
    assert np.max(np.abs(x * u + y * v)) < 1e-12


def test_index_4():
    """A chain of integrators whose first value is given: the others are its derivatives, less x₀² in one."""

    def equations(t, x, dx):
        return [dx[0] - x[1], dx[1] - x[2] - x[0] ** 2, dx[2] - x[3], x[0] - np.exp(-t)]

    chain = hn.DAE(equations, n=4)
    assert (chain.index, chain.differentiated) == (4, (2, 1, 0, 3))
    sol = hn.solve(chain, (0, 5), [1, NAN, NAN, NAN])
    e = np.exp(-sol.t)
    np.testing.assert_allclose(sol.x, [e, -e, e - e**2, -e + 2 * e**2], atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_index_2_nonlinear_in_the_algebraic_variable(method):
    """x′ = −x + y + y³ with x led along 3 + sin 2t, which drives z′ = −z + y."""

    def equations(t, x, dx):
        x, z, y = x
        return [dx[0] + x - y - y**3, dx[1] + z - y, x - np.sin(2 * t) - 3]

    led = hn.DAE(equations, names=["x", "z", "y"])
    assert (led.index, led.freedoms) == (2, 1)
    sol = hn.solve(led, (0, 5), [3, 1, 0], method=method, rtol=1e-8)
    force = 2 * np.cos(2 * sol.t) + 3 + np.sin(2 * sol.t)
    np.testing.assert_allclose(sol.x[2] + sol.x[2] ** 3, force, atol=1e-11)
    other = hn.ODE(lambda t, x, p: [-x[0] + _real_root(2 * np.cos(2 * t) + 3 + np.sin(2 * t))], n=1)
    reference = hn.solve(other, (0, 5), [1], rtol=1e-11, atol=1e-11)
    assert abs(sol.x[1, -1] - reference.x[0, -1]) < 1e-6


def _real_root(force):
    """Of y + y³ = force."""
    root = np.sqrt(force**2 / 4 + 1 / 27)
    return np.cbrt(force / 2 + root) + np.cbrt(force / 2 - root)


@pytest.mark.parametrize(("method", "tolerance"), [("auto", 1e-6), ("radau", 1e-4), ("bdf", 1e-4)])
def test_the_transistor_amplifier(method, tolerance):
    stated = amplifier()
    assert (stated.index, stated.freedoms, len(stated.structure["combined"])) == (1, 5, 3)
    sol = hn.solve(stated, (0, 0.2), [0, 3, 3, 6, 3, 3, 6, 0], method=method, rtol=1e-6)
    assert sol.success
    np.testing.assert_allclose(sol.x[:, -1], AMPLIFIED, rtol=0, atol=tolerance)


def test_a_mass_matrix_that_is_not_diagonal():
    """M x′ = A x with a regular M is a linear ODE."""
    M, A = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[-1.0, 2.0], [-2.0, -1.0]])
    stated = hn.DAE(lambda x, dx: M @ dx - A @ x, n=2)
    sol = hn.solve(stated, (0, 2), [1, 0], rtol=1e-10)
    from scipy.linalg import expm

    np.testing.assert_allclose(sol.x[:, -1], expm(2 * np.linalg.solve(M, A)) @ [1, 0], atol=1e-8)
    assert (stated.index, stated.freedoms) == (0, 2)


def test_what_a_result_has():
    led = crane(name="crane")
    sol = hn.solve(
        led,
        (0, 4),
        [NAN, 0, NAN],
        [NAN, 1, NAN],
        dense_output=True,
        events=[lambda x: x[0] - 0.3],
    )
    assert sol.x.shape[0] == 3
    assert list(led.states)[:4] == ["cart", "load", "force", "cart'"]
    np.testing.assert_allclose(sol.t_events[0], [np.pi / 6, 5 * np.pi / 6], atol=1e-8)
    np.testing.assert_allclose(sol.sol(1.7)[:3], crane_exactly(1.7), atol=1e-9)
    assert "structural index 5" in str(led)
    assert "equation[2] 4 ×" in str(led)


def test_other_parameters():
    sol = hn.solve(crane(), (0, 2), [NAN, 0, NAN], [NAN, 1, NAN], parameters={"k": 10.0})
    np.testing.assert_allclose(sol.x[0], 0.8 * np.sin(sol.t), atol=1e-9)


def test_files_and_pickles(tmp_path):
    sol = hn.solve(pendulum(), (0, 1), [0.6, -0.8, 0, 0, 0])
    loaded = hn.Solution.load(sol.save(tmp_path / "run.npz"))
    assert isinstance(loaded.system, hn.DAE)
    assert loaded.system.differentiated == (1, 1, 0, 0, 2)
    np.testing.assert_array_equal(loaded.x, sol.x)
    for again in (loaded.system, pickle.loads(pickle.dumps(sol.system))):
        other = hn.solve(again, (0, 1), [0.6, -0.8, 0, 0, 0])
        np.testing.assert_allclose(other.x[:, -1], sol.x[:, -1], rtol=1e-10)


def test_starts_that_violate_what_is_hidden():
    stated = pendulum()
    with pytest.raises(hn.InconsistentStart, match=r"equation\[\d\]"):
        hn.solve(stated, (0, 1), [0.6, -0.9, 0, 0, 0])
    with pytest.raises(hn.InconsistentStart, match=r"equation\[\d\]"):
        hn.solve(stated, (0, 1), [0.6, -0.8, 1, 0, 0])
    sol = hn.solve(stated, (0, 1), [0.6, -0.9, 0, 0, 0], repair=True)
    assert np.max(np.abs(np.hypot(*sol.x[:2]) - 1)) < 1e-13


def test_a_start_at_a_singular_position():
    """Of x² + y² − 1 and x y: at (1, 0) they are independent, at no point is x² = 0 regular."""
    stated = hn.DAE(lambda x, dx: [dx[0] + x[1], x[0] ** 2], n=2)
    with pytest.raises(hn.HolonomeError, match=r"depend on each other|no consistent values"):
        hn.solve(stated, (0, 1), [0.0, 0.0])


@pytest.mark.parametrize(
    ("equations", "what"),
    [
        (lambda x, dx: [dx[0] - x[0], x[0] - 1], r"nothing is left to determine x1"),
        (lambda t, x, dx: [dx[0] + x[1] + 0 * x[0], t - 1.0], r"equation\[1\] has no variable"),
        (lambda x, dx: [dx[0] + x[0] * dx[1], x[0] * dx[0] + x[0] ** 2 * dx[1] + x[1]], "constant weights"),
        (lambda x, dx: [dx[0] + dx[1], dx[0] + dx[1]], "structurally singular"),
        (lambda x: [x[0]], "as many equations"),
        (lambda q: [q[0], q[1]], "'q' is not known"),
        (lambda x: [float(x[0]), x[1]], "cannot be traced"),
    ],
)
def test_what_is_refused(equations, what):
    with pytest.raises(hn.ModelError, match=what):
        hn.DAE(equations, n=2)


def test_states_of_other_kinds_are_refused():
    with pytest.raises(ValueError, match="v0"):
        hn.solve(pendulum(), (0, 1), [0.6, -0.8, 0, 0, 0], [0] * 5)
    with pytest.raises(ValueError, match="s0"):
        hn.solve(pendulum(), (0, 1), [0.6, -0.8, 0, 0, 0], s0=[0])
    with pytest.raises(ValueError, match="q0"):
        hn.solve(pendulum(), (0, 1), [0.6, -0.8])


@pytest.mark.parametrize("method", ["ggl", "index2", "baumgarte", "gen-alpha", "cs"])
def test_methods_that_would_let_hidden_constraints_drift_are_refused(method):
    with pytest.raises(ValueError, match=r"hidden constraints of a DAE.*'bdf'"):
        hn.solve(
            pendulum(), (0, 1), [1, 0, 0, 0, 0], method=method, **({"step": 0.01} if "gen" in method else {})
        )


def test_a_run_without_projection_is_refused():
    with pytest.raises(ValueError, match="hidden constraints of a DAE"):
        hn.solve(pendulum(), (0, 1), [1, 0, 0, 0, 0], projection=False)


def test_ensembles_are_refused_by_name():
    with pytest.raises(TypeError, match="ensembles of a DAE"):
        hn.ensemble(crane(), (0, 1), [NAN, 0, NAN], over={"t_end": [1.0, 2.0]})

"""Radau IIA: coefficients, orders in every form, published digits of stiff problems, constraints, events, and
what is refused; against theory, closed forms and references.
"""

import numpy as np
import pytest

import holonome as hn
from holonome.algebra.elimination import Elimination
from holonome.dynamics.kernels import kernels
from holonome.formulations import implicit_complex
from holonome.formulations.implicit import ImplicitKernels
from holonome.formulations.implicit_complex import ComplexKernels
from holonome.integrators.radau import ORDERS
from holonome.integrators.radau_coefficients import STAGES, coefficients
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK

FORMS = {
    "ggl": hn.GGL(),
    "index2": hn.Index2(),
    "index3": hn.Index3(),
    "index1": hn.Index1(),
    "baumgarte": hn.Baumgarte(5.0),
    "projected": hn.CoordinateProjection(),
    "ode": hn.UnderlyingODE(projection=False),
}
COUNTS = {5: (16, 32), 9: (6, 12), 13: (8, 14)}


@pytest.mark.parametrize("stages", STAGES)
def test_coefficients(stages):
    """Order 2s − 1 of the quadrature, stage order s, eigenvalues, and the error estimate's order."""
    found = coefficients(stages)
    c, A = found.nodes, np.linalg.inv(found.inverse)
    for k in range(1, stages + 1):
        np.testing.assert_allclose(A @ c ** (k - 1), c**k / k, atol=1e-14)
    for k in range(1, 2 * stages):
        assert A[-1] @ c ** (k - 1) == pytest.approx(1 / k, abs=1e-14)
    assert abs(A[-1] @ c ** (2 * stages - 1) - 1 / (2 * stages)) > 1e-9
    blocks = found.back @ found.inverse @ found.transformation
    expected = np.zeros((stages, stages))
    expected[0, 0] = found.eigenvalues[0]
    for i in range(1, stages, 2):
        a, b = found.eigenvalues[i : i + 2]
        expected[i : i + 2, i : i + 2] = [[a, b], [-b, a]]
    np.testing.assert_allclose(blocks, expected, atol=1e-10)
    # for y′ = k t^{k−1} the estimate is (y′(0) + Σ e_i c_i^k)/γ, which vanishes up to k = s
    for k in range(1, stages + 1):
        assert (k == 1) + found.error @ c**k == pytest.approx(0, abs=1e-11)
    assert abs(found.error @ c ** (stages + 1)) > 1e-4


def test_coefficients_of_order_5_have_their_closed_forms():
    found, root = coefficients(3), np.sqrt(6)
    np.testing.assert_allclose(found.nodes, [(4 - root) / 10, (4 + root) / 10, 1], rtol=1e-15)
    np.testing.assert_allclose(found.error, np.array([-13 - 7 * root, -13 + 7 * root, -1]) / 3, rtol=1e-14)
    cubic = 3 + 3 ** (2 / 3) - 3 ** (1 / 3)
    assert found.eigenvalues[0] == pytest.approx(cubic, rel=1e-13)


def expected_orders(name, s):
    """Of q, v and λ: Hairer, Lubich & Roche for forms of index 2 and 3."""
    forms = {
        "index3": (2 * s - 1, s, s - 1),
        "index2": (2 * s - 1, 2 * s - 1, s),
        "ggl": (2 * s - 1, 2 * s - 1, s),
    }
    return forms.get(name, (2 * s - 1,) * 3)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", FORMS)
def test_order_at_constant_step(name, order):
    mechanism, errors = hn.mechanisms.pendulum(theta0=1.0), []
    for count in COUNTS[order]:
        method = hn.Method(FORMS[name], hn.Radau(order=order, step=1 / count, newton_tolerance=1e-11))
        sol = hn.solve(
            mechanism.system, (0, 1), mechanism.q0, mechanism.v0, method=method, rtol=1e-4, atol=1e-4
        )
        assert sol.success, sol.message
        exact = mechanism.exact(sol.t)
        errors.append(
            [
                np.max(np.abs(found - wanted))
                for found, wanted in zip((sol.q, sol.v, sol.lam), exact, strict=True)
            ]
        )
    coarse, fine = np.array(errors)
    orders = np.log(coarse / fine) / np.log(COUNTS[order][1] / COUNTS[order][0])
    wanted = np.array(expected_orders(name, (order + 1) // 2))
    at_rounding = fine < 1e-10 * np.array([1, 10, 100])
    assert np.all((orders > wanted - 0.45) | at_rounding), (orders, wanted, errors)


@pytest.mark.parametrize("emitted", [True, False])
@pytest.mark.parametrize("name", ["ggl", "index3", "index1"])
def test_complex_matrices_are_solved(name, emitted, monkeypatch):
    """By emitted code and by loops, against NumPy."""
    if not emitted:
        monkeypatch.setattr(implicit_complex, "EMITTED_UP_TO", 0)
    mechanism, random = hn.mechanisms.slider_crank_unequal(), np.random.default_rng(0)
    system = mechanism.system
    real = ImplicitKernels(system, f"complex {name} {emitted}", FORMS[name].residual)
    found, context, size = ComplexKernels(real), kernels(system).context(system), real.size
    y = np.concatenate([mechanism.q0, mechanism.v0, random.normal(size=2 * size - 2 * system.n)])
    rest = np.zeros(size)

    def matrix(cj):
        out = np.zeros(size * size + 1)
        assert run_kernel(real.plain_matrix, 0.2, y, np.append(cj, rest), context, out) == OK
        return out[:-1].reshape(size, size)

    a, b = 30.0, -20.0
    base = matrix(0.0)
    full = base + (a + 1j * b) * (matrix(1.0) - base)
    factors, x = found.factor_memory, np.zeros(2 * size + 1)
    assert run_kernel(found.factors, 0.2, y, np.concatenate([[a, b], rest]), context, factors) == OK
    right = random.normal(size=2 * size)
    assert run_kernel(found.solution, 0.0, right, factors, context, x) == OK
    expected = np.linalg.solve(full, right[:size] + 1j * right[size:])
    np.testing.assert_allclose(x[:size] + 1j * x[size:-1], expected, rtol=1e-8, atol=1e-8)


def van_der_pol():
    return hn.ODE(lambda x: np.array([x[1], 1e6 * ((1 - x[0] ** 2) * x[1] - x[0])]), n=2)


def robertson(x):
    first, second = -0.04 * x[0] + 1e4 * x[1] * x[2], 3e7 * x[1] ** 2
    return np.array([first, -first - second, second])


def hires(x):
    return np.array(
        [
            -1.71 * x[0] + 0.43 * x[1] + 8.32 * x[2] + 0.0007,
            1.71 * x[0] - 8.75 * x[1],
            -10.03 * x[2] + 0.43 * x[3] + 0.035 * x[4],
            8.32 * x[1] + 1.71 * x[2] - 1.12 * x[3],
            -1.745 * x[4] + 0.43 * x[5] + 0.43 * x[6],
            -280 * x[5] * x[7] + 0.69 * x[3] + 1.71 * x[4] - 0.43 * x[5] + 0.69 * x[6],
            280 * x[5] * x[7] - 1.81 * x[6],
            -280 * x[5] * x[7] + 1.81 * x[6],
        ]
    )


STIFF = {
    "van der Pol": (van_der_pol, 2.0, [2, 0], [1, 1], [1.706167732170483, -0.8928097010247975]),
    "Robertson": (
        lambda: hn.ODE(robertson, n=3),
        1e11,
        [1, 0, 0],
        [1e-3, 1e-9, 1],
        [0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050],
    ),
    "HIRES": (
        lambda: hn.ODE(hires, n=8),
        321.8122,
        [1, 0, 0, 0, 0, 0, 0, 0.0057],
        np.full(8, 1e-4),
        [
            0.7371312573325668e-3,
            0.1442485726316185e-3,
            0.5888729740967575e-4,
            0.1175651343283149e-2,
            0.2386356198831331e-2,
            0.6238968252742796e-2,
            0.2849998395185769e-2,
            0.2850001604814231e-2,
        ],
    ),
}
"""Problems of the Test Set for IVP Solvers (Bari), with their published end points."""


@pytest.mark.parametrize("order", [*ORDERS, "adaptive"])
@pytest.mark.parametrize("name", STIFF)
def test_published_end_points(name, order):
    make, end, start, scale, published = STIFF[name]
    system, scale = make(), np.array(scale, dtype=float)
    for rtol in (1e-4, 1e-8):
        sol = hn.solve(
            system,
            (0, end),
            start,
            method=hn.Method(hn.CoordinateProjection(), hn.Radau(order)),
            rtol=rtol,
            atol=rtol * scale,
        )
        assert sol.success, sol.message
        error = np.abs(sol.x[:, -1] - published) / (scale + np.abs(published))
        assert np.max(error) < 30 * rtol
        assert sol.steps < 2000


@pytest.mark.parametrize(
    "method", ["radau", hn.Method(hn.GGL(), hn.Radau()), hn.Method(hn.Index2(), hn.Radau(5))]
)
def test_andrews(method):
    mechanism, errors = hn.mechanisms.andrews(), []
    reference = np.concatenate([mechanism.reference.q, mechanism.reference.v])
    tolerances = (1e-4, 1e-7, 1e-10)
    for rtol in tolerances:
        sol = hn.solve(
            mechanism.system, (0, 0.03), mechanism.q0, mechanism.v0, method=method, rtol=rtol, atol=rtol
        )
        assert sol.success, sol.message
        errors.append(np.max(np.abs(sol.y[:, -1] - reference) / (1 + np.abs(reference))))
    assert np.all(np.array(errors) < 3000 * np.array(tolerances)), errors
    if method == "radau":
        assert sol.drift[0] < 1e-13


@pytest.mark.parametrize("name", ["pendulum", "slider_crank_unequal", "four_bar", "two_body_bushing"])
def test_constraints_hold_at_and_between_steps(name):
    mechanism = hn.mechanisms.get(name)
    sol = hn.solve(
        mechanism.system,
        mechanism.t_span,
        mechanism.q0,
        mechanism.v0,
        method="radau",
        dense_output=True,
        max_steps=50_000,
    )
    assert sol.success, sol.message
    position, velocity = sol.drift
    assert position < 1e-12
    assert velocity < 1e-11 * max(1.0, np.max(np.abs(sol.v)))
    times = np.linspace(*mechanism.t_span, 200)
    only = hn.solve(
        mechanism.system,
        mechanism.t_span,
        mechanism.q0,
        mechanism.v0,
        method="radau",
        t_eval=times,
        max_steps=50_000,
    )
    q, v = sol.sol(times)
    np.testing.assert_allclose(only.q, q, atol=1e-12 * (1 + np.max(np.abs(q))))
    np.testing.assert_allclose(only.v, v, atol=1e-10 * (1 + np.max(np.abs(v))))
    assert only.drift[0] < 1e-12


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_points_between_steps_are_as_good_as_the_tolerance(rtol):
    mechanism, times = hn.mechanisms.pendulum(theta0=1.0), np.linspace(0, 5, 777)
    sol = hn.solve(
        mechanism.system,
        (0, 5),
        mechanism.q0,
        mechanism.v0,
        method="radau",
        rtol=rtol,
        atol=rtol,
        t_eval=times,
    )
    q, v, lam = mechanism.exact(times)
    assert np.max(np.abs(sol.q - q)) < 50 * rtol
    assert np.max(np.abs(sol.v - v)) < 150 * rtol
    assert np.max(np.abs(sol.lam - lam)) < 500 * rtol


def test_behind_a_jump_the_steps_go_on_as_they_were():
    """A force that jumps every half second: BDF begins anew at order 1 each time."""

    def push(t, v):
        return np.array([np.where(np.mod(t, 1.0) < 0.5, 3.0, -3.0) - 100 * v[0]])

    system = hn.System([1.0], push, names=["x"])
    few, many = (hn.solve(system, (0, 20), [0.0], method=method, rtol=1e-7) for method in ("radau", "bdf"))
    assert few.success
    assert few.steps < 0.35 * many.steps
    x = v = 0.0
    for k in range(40):
        rest = (3.0 if k % 2 == 0 else -3.0) / 100
        x, v = x + 0.5 * rest + (v - rest) * (1 - np.exp(-50.0)) / 100, rest + (v - rest) * np.exp(-50.0)
    assert few.q[0, -1] == pytest.approx(x, abs=1e-6)
    assert few.v[0, -1] == pytest.approx(v, abs=1e-6)


def test_order_is_chosen():
    """Higher orders at tight tolerances, on smooth problems; order 5 at loose ones on rough ones."""
    mechanism = hn.mechanisms.two_body_bushing()
    arguments = mechanism.system, mechanism.t_span, mechanism.q0, mechanism.v0
    tight = hn.solve(*arguments, method="radau", rtol=1e-10, atol=1e-10)
    loose = hn.solve(*arguments, method="radau", rtol=1e-3, atol=1e-3)
    assert tight.history.order.max() == 13
    assert set(tight.history.order) <= set(ORDERS)
    assert np.mean(loose.history.order) < np.mean(tight.history.order)
    assert tight.nlu > tight.njev


def test_linear_stiff_systems_take_few_steps():
    """Decaying from far off a slow solution: the number of steps does not grow with the stiffness."""
    steps = []
    for rate in (1e3, 1e6, 1e9):
        system = hn.ODE(lambda t, x, rate=rate: -rate * (x - np.cos(t)) - np.sin(t), n=1)
        sol = hn.solve(system, (0, 10), [0.0], method="radau", rtol=1e-7)
        assert sol.success
        assert abs(sol.x[0, -1] - np.cos(10)) < 1e-6
        steps.append(sol.steps)
    assert max(steps) < 60


def test_redundant_rows_and_singular_positions():
    twice = hn.System(np.eye(2), [0.0, -9.81], lambda q: np.full(2, q @ q - 1))
    once = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1)
    exact = hn.solve(once, (0, 2), [0.8, -0.6], rtol=1e-11, atol=1e-11)
    for formulation in (hn.CoordinateProjection(), hn.GGL(), hn.Index2(), hn.Index3()):
        method = hn.Method(formulation, hn.Radau())
        sol = hn.solve(twice, (0, 2), [0.8, -0.6], method=method, rtol=1e-7, atol=1e-7)
        assert sol.success, sol.message
        np.testing.assert_allclose(sol.q[:, -1], exact.q[:, -1], atol=1e-5)
        np.testing.assert_allclose(sol.lam.sum(axis=0)[-1], exact.lam[0, -1], rtol=1e-2)
    crossing = hn.System(np.ones(3), [0.3, 0.0, 0.0], lambda q: np.array([q[2], q[0] * q[1] + q[2]]))
    with pytest.raises(hn.SingularSystem, match="with Radau cannot start in a singular position"):
        hn.solve(crossing, (0, 1), [0, 0, 0], [1, 0, 0], method="radau")


def test_runs_that_cannot_go_on_say_why():
    arm = hn.System(np.eye(2), lambda t: np.array([np.sqrt(0.5 - t), -9.81]), lambda q: q @ q - 1)
    sol = hn.solve(arm, (0, 1), [1, 0], method="radau")
    assert not sol.success
    assert "not finite" in sol.message
    pulled = hn.System(np.eye(2), [0.0, -9.81], lambda t, q: q @ q - (1 - t) ** 2)
    sol = hn.solve(pulled, (0, 2), [1.0, 0.0], [-1.0, 0.0], method="radau", max_steps=3000)
    assert not sol.success
    assert sol.t[-1] <= 1
    short = hn.solve(hn.mechanisms.pendulum().system, (0, 10), [1, 0], method="radau", max_steps=5)
    assert "max_steps" in short.message


def test_backward_and_large():
    """A rope of many links, whose matrices are sparse, there and back."""
    mechanism = hn.mechanisms.chain(links=30)
    given = {"method": "radau", "rtol": 1e-6, "atol": 1e-7}
    there = hn.solve(mechanism.system, (0, 0.3), mechanism.q0, mechanism.v0, **given)
    assert there.success, there.message
    back = hn.solve(mechanism.system, (0.3, 0), there.q[:, -1], there.v[:, -1], **given)
    assert np.max(np.abs(back.q[:, -1] - mechanism.q0)) < 1e-3
    exact = hn.solve(mechanism.system, (0, 0.3), mechanism.q0, mechanism.v0, rtol=1e-10, atol=1e-11)
    assert np.max(np.abs(there.q[:, -1] - exact.q[:, -1])) < 1e-3


def test_what_is_refused():
    with pytest.raises(ValueError, match="order: 7; give 'adaptive' or 5, 9 or 13"):
        hn.Radau(order=7)
    with pytest.raises(ValueError, match="newton_tolerance"):
        hn.Radau(newton_tolerance=-1.0)
    with pytest.raises(TypeError, match="Radau"):
        hn.Method(hn.SRM(), hn.Radau())
    for formulation in (hn.CoordinateSplit(), hn.GGL(predict_multipliers=True), hn.Compliant()):
        with pytest.raises(
            TypeError, match=r"Radau takes no steps of BDF, .* With Radau use .*; with .* use BDF\(\)$"
        ):
            hn.Method(formulation, hn.Radau())


def test_a_real_elimination_is_as_it_was():
    """Complex numbers share the elimination; with no imaginary part nothing is added to it."""
    import casadi as ca

    x = ca.SX.sym("x", 4)
    matrix = ca.reshape(x, 2, 2)
    real = Elimination(matrix, [range(2)])
    both = Elimination(matrix, [range(2)], ca.SX(2, 2))
    f = ca.Function("f", [x], [ca.vertcat(*real.values), ca.vertcat(*(value.real for value in both.values))])
    first, second = f([3.0, 1.0, 2.0, 5.0])
    np.testing.assert_allclose(np.array(first), np.array(second), rtol=1e-15)


def test_stiff_controller_on_a_linkage():
    """A crank of a four-bar is held by gains 1e5 and 1e4: Newton's method soon converges again."""
    m = hn.Mechanism("four-bar", gravity=(0, -9.81))
    crank = m.body("crank", 0.4, 0.0053, center=(0.2, 0), points={"A": (0, 0), "B": (0.4, 0)})
    coupler = m.body("coupler", 1, 0.07, center=(0.45, 0), points={"B": (0, 0), "C": (0.9, 0)})
    rocker = m.body("rocker", 0.7, 0.0286, center=(0.35, 0), points={"C": (0.7, 0), "D": (0, 0)})
    m.revolute("A", m.ground.at(0, 0), crank["A"])
    m.revolute("B", crank["B"], coupler["B"])
    m.revolute("C", coupler["C"], rocker["C"])
    m.revolute("D", m.ground.at(1, 0), rocker["D"])
    m.torque("motor", joint="A", law=lambda t, angle, rate: 1e5 * (0.3 + 2 * t - angle) + 1e4 * (2 - rate))
    start = {"start": {"A": 0.3, "D": hn.near(2)}, "speed": {"A": 8.0}}
    sol, other = (hn.solve(m, (0, 2), method=name, rtol=1e-4, **start) for name in ("radau", "ggl"))
    assert sol.success
    assert sol.steps < 100
    assert sol.newton_failures < 15
    assert sol.drift[0] < 1e-12
    np.testing.assert_allclose(sol.q[:, -1], other.q[:, -1], atol=1e-3)


def test_coordinate_splitting():
    """CS with Radau solves the equations of GGL: its order, and multipliers that are as good."""
    pendulum = hn.mechanisms.pendulum()
    start = pendulum.system, (0, 1), pendulum.q0, pendulum.v0
    fine, errors = hn.solve(*start, rtol=1e-13, atol=1e-13, t_eval=[1.0]), []
    for steps in (20, 40):
        method = hn.Method(hn.CoordinateSplit("CS"), hn.Radau(order=5))
        sol = hn.solve(*start, method=method, step=1 / steps, t_eval=[1.0])
        assert max(sol.drift) < 1e-9
        errors.append(np.max(np.abs(sol.y[:, -1] - fine.y[:, -1])))
    assert np.log2(errors[0] / errors[1]) > 3.5
    for refused in (hn.CoordinateSplit("CM"), hn.CoordinateSplit("CM", refresh="jacobian")):
        with pytest.raises(TypeError, match="takes no steps of BDF"):
            hn.Method(refused, hn.Radau())

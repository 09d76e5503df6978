"""Local iteration: the convergence law of Wang, Hou & Modnak, the order of the sub-solvers, and mechanisms
cut at their joints against their solution in one piece.
"""

import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import block_diag

import holonome as hn
from holonome.coupling.driven import DrivenSubsystem, driven_system
from holonome.coupling.jacobians import LINEARIZATION, coupling_terms, is_traced, jacobians_at_points

A = [np.array([[4.0, 1], [1, 3]]), np.array([[5.0, 2], [2, 4]])]
C = [np.array([[-2.0, -1], [-1, -2]]), np.array([[-1.0, -2], [0, -2]])]
D, R = [np.array([[0.0, 1]]), np.array([[-2.0, 0]])], [np.array([6.0, 7]), np.array([10.0, 4])]
REST = np.zeros(4)


def model():
    """The model problem of the paper, (16)–(18)."""
    return hn.CoupledSystem.linear(A, None, C, D, R)


def exact(t, A=A, B=None, C=C, D=D, r=R, d=lambda t: np.zeros(1), n=4):
    """The linear form (1) in one piece, by SciPy on the accelerations of the whole; matrices may be functions
    of t.
    """

    def at(values, t):
        return [value(t) if callable(value) else np.asarray(value) for value in values]

    def rhs(t, y):
        Dt = np.hstack(at(D, t))
        Bt = Dt.T if B is None else np.vstack(at(B, t))
        matrix = np.block([[block_diag(*at(A, t)), Bt], [Dt, np.zeros((len(Dt), len(Dt)))]])
        a = np.linalg.solve(
            matrix, np.concatenate([np.concatenate(at(r, t)) - block_diag(*at(C, t)) @ y[:n], np.ravel(d(t))])
        )
        return np.concatenate([y[n:], a[:n]])

    return solve_ivp(rhs, (0, t), np.zeros(2 * n), rtol=1e-12, atol=1e-12, method="DOP853").y[:, -1]


def run(coupled, until, window, q0=REST, v0=None, **options):
    sol = hn.solve_coupled(coupled, (0, until), q0, v0, method=hn.LocalIteration(window=window, **options))
    assert sol.success, sol.message
    return sol


def end(sol):
    return sol.states[-1]


def bar(length, hinge=None):
    """A bar of mass 1 per length with its centre and angle as coordinates, perhaps hinged at its left end."""

    def hinged(q):
        return q[:2] - length / 2 * np.array([np.cos(q[2]), np.sin(q[2])]) - np.array(hinge)

    return hn.System(
        [length, length, length**3 / 12],
        [0.0, -9.81 * length, 0.0],
        hinged if hinge else None,
        names=["x", "y", "phi"],
    )


def tip(q, length):
    return q[:2] + length / 2 * np.array([np.cos(q[2]), np.sin(q[2])])


@pytest.fixture(scope="module")
def four_bar():
    """The four-bar linkage cut at its two moving joints; and its solution in one piece at t = 0.3."""
    whole = hn.mechanisms.four_bar()
    cut = hn.CoupledSystem(
        {"crank": bar(0.4, (0.0, 0.0)), "coupler": bar(0.9), "rocker": bar(0.7, (1.0, 0.0))},
        lambda crank, coupler, rocker: np.concatenate(
            [tip(coupler, -0.9) - tip(crank, 0.4), tip(coupler, 0.9) - tip(rocker, 0.7)]
        ),
        constraint_names=["B x", "B y", "C x", "C y"],
    )
    sol = hn.solve(whole.system, (0, 0.3), whole.q0, whole.v0, rtol=1e-13, atol=1e-13)
    return cut, whole.q0, whole.v0, sol.y[:, -1], sol.lam[2:6, -1]


def double_pendulum(upper, lower):
    """Two point masses on rods of length 1, cut at the joint between them."""
    return hn.CoupledSystem(
        {
            "upper": hn.System([upper, upper], [0, -9.81 * upper], lambda q: q @ q - 1),
            "lower": hn.System([lower, lower], [0, -9.81 * lower]),
        },
        lambda upper, lower: (lower - upper) @ (lower - upper) - 1,
    )


# the convergence law


@pytest.mark.parametrize("window", [1.0, 0.5, 0.1])
def test_the_splitting_contracts_by_4_over_11(window):
    """NOTES: with S_1 = 4/11 and S_2 = 1 the error of the splitting (3)–(4) falls by 4/11 = 0.364 in short
    windows.
    """
    sol = run(model(), 2, window, update="y", rtol=0, atol=1e-8)
    ratios = [changes[3:, 0] / changes[2:-1, 0] for changes in sol.history.changes]
    assert np.all(np.abs(np.concatenate(ratios) - 0.37) < 0.01)
    np.testing.assert_allclose(sol.history.contraction, 4 / 11, atol=0.02 * window + 0.002)
    assert sol.rho == pytest.approx({"x": 11 / 4, "y": 4 / 11})


def test_a_diverging_splitting_is_refused_and_the_one_that_converges_is_named():
    with pytest.raises(
        ValueError,
        match=r"update: imposing the constraint on 'x' diverges: the error grows by a factor of 2\.75 .* "
        r"use update='y', "
        r"whose error falls by a factor of 0\.364",
    ):
        run(model(), 1, 0.1, update="x")


def test_a_diverging_splitting_does_diverge():
    sol = run(model(), 0.1, 0.1, update="x", check=False, iterations=8)
    growth = sol.history.changes[0][3:, -1] / sol.history.changes[0][2:-1, -1]
    np.testing.assert_allclose(growth, 2.75, rtol=0.02)
    failed = hn.solve_coupled(
        model(), (0, 1), REST, method=hn.LocalIteration(window=0.1, update="x", check=False)
    )
    assert not failed.success
    assert "diverges" in failed.message


def test_weights_are_a_combination_of_the_splittings():
    """ρ(1 − w/S_2·(S_1 + S_2) − (1 − w)/S_1·(S_1 + S_2)) = |1 − 15/11 w − 15/4 (1 − w)|, zero for w = 1.152…,
    where the combination is the update "schur".
    """
    for w in (0.9, 1.1):
        sol = run(model(), 0.1, 0.02, update={"x": 1 - w, "y": w})
        assert sol.history.contraction[0] == pytest.approx(abs(1 - 15 / 11 * w - 15 / 4 * (1 - w)), abs=0.01)
    with pytest.raises(ValueError, match=r"update: imposing the constraint with the weights .* diverges"):
        run(model(), 1, 0.1, update={"x": 0.5, "y": 0.5})


def test_where_no_splitting_converges_the_default_does():
    """S_x = diag(1, 9) and S_y = diag(9, 1): both have ρ = 9."""
    both = hn.CoupledSystem.linear(
        [np.diag([1.0, 1 / 9]), np.diag([1 / 9, 1.0])],
        None,
        [np.eye(2), np.eye(2)],
        [np.eye(2), -np.eye(2)],
        [[1.0, 2], [3, -1]],
        [0, 0],
    )
    with pytest.raises(ValueError, match="any other subsystem does not converge either; use the default"):
        run(both, 1, 0.1, update="x")
    for update in ("newton", "schur"):
        assert np.max(run(both, 1, 0.1, update=update).history.iterations) <= 8


@pytest.mark.parametrize("update", ["newton", "schur"])
@pytest.mark.parametrize("ratio", [1e-3, 1e-1, 1.0, 1e1, 1e3])
def test_any_ratio_of_masses_converges_fast(update, ratio):
    scaled = hn.CoupledSystem.linear(
        [ratio * A[0], A[1]], None, [ratio * C[0], C[1]], D, [ratio * R[0], R[1]]
    )
    assert np.max(run(scaled, 2, 0.1, update=update).history.iterations) <= 8
    if ratio not in (1.0, 10.0):
        with pytest.raises(ValueError, match="update"):
            run(scaled, 1, 0.1, update="y" if ratio < 1 else "x")


@pytest.mark.parametrize("ratio", [1e-3, 1.0, 1e3])
def test_any_ratio_of_masses_converges_fast_in_a_nonlinear_system(ratio):
    sol = run(double_pendulum(1.0, ratio), 0.5, 0.01, [1, 0, 2, 0])
    assert np.max(sol.history.iterations) <= 8
    assert not sol.history.rejected


# order and constraint


def richardson(until, window, **options):
    ends = [run(model(), until, window / k, **options) for k in (1, 2, 4)]
    values = [(sol.q["x"][:, -1], sol.q["y"][:, -1], sol.lam[:, -1]) for sol in ends]
    return [np.linalg.norm(a - b) / np.linalg.norm(b - c) for a, b, c in zip(*values, strict=True)]


def test_the_trapezoidal_rule_keeps_its_order():
    np.testing.assert_allclose(richardson(10, 0.5), 4.0, atol=0.1)
    np.testing.assert_allclose(
        richardson(10, 0.5, update="y", rtol=0, atol=1e-6, projection=False), 4.0, atol=0.1
    )


def test_heun_keeps_its_order():
    np.testing.assert_allclose(richardson(10, 0.5, solvers="rk2"), 4.0, atol=0.1)


def test_one_solver_of_order_one_makes_the_whole_of_order_one():
    np.testing.assert_allclose(richardson(4, 0.1, solvers={"x": "euler", "y": "trapezoidal"}), 2.0, atol=0.1)


def test_without_iteration_the_order_is_one():
    """Table 2b: one lagged pass with the step Δt/M."""
    np.testing.assert_allclose(
        richardson(4, 0.02, substeps=1, update="y", iterations=1, projection=False), 2.0, atol=0.1
    )


def test_without_projection_the_constraint_is_met_to_the_tolerance():
    drift = [
        run(model(), 4, 0.2, update="y", rtol=0, atol=atol, projection=False).drift[0]
        for atol in (1e-4, 1e-6, 1e-8)
    ]
    assert drift[0] > 10 * drift[1] > 100 * drift[2]
    assert drift[2] < 1e-6
    assert run(model(), 10, 0.1).drift[0] < 1e-11


def test_a_method_of_high_order_finds_the_solution():
    sol = run(model(), 10, 0.5, solvers="dop853", nodes=8)
    np.testing.assert_allclose(end(sol), exact(10), rtol=1e-9)


def test_nonlinear_coupling_drifts_without_projection_and_not_with():
    pendulum, start = double_pendulum(1.0, 1.0), [1, 0, 2, 0]
    drift = [run(pendulum, 1, window, start, projection=False).drift[0] for window in (0.05, 0.025)]
    assert 3 < drift[0] / drift[1] < 5
    assert max(run(pendulum, 1, 0.05, start).drift) < 1e-14


# mechanisms cut at their joints


def test_the_whole_of_a_cut_mechanism_is_the_mechanism(four_bar):
    cut, q0, v0, expected, lam = four_bar
    whole = hn.solve(cut.whole(), (0, 0.3), q0, v0, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(whole.y[:, -1], expected, atol=1e-11)
    np.testing.assert_allclose(whole.lam[:4, -1], lam, atol=1e-9)
    assert whole.system.constraint_names[:5] == ["B x", "B y", "C x", "C y", "crank constraint[0]"]


@pytest.mark.parametrize(
    ("solvers", "order"),
    [("trapezoidal", 2), ("rk2", 2), ({"crank": "trapezoidal", "coupler": "rk2", "rocker": "rk2"}, 2)],
)
def test_a_four_bar_linkage_in_three_pieces_has_the_order_of_its_solvers(four_bar, solvers, order):
    cut, q0, v0, expected, lam = four_bar
    found = [run(cut, 0.3, window, q0, v0, solvers=solvers) for window in (0.02, 0.01)]
    errors = [np.max(np.abs(end(sol) - expected)) for sol in found]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)
    assert np.max(np.abs(found[1].lam[:, -1] - lam)) < 0.02 * np.max(np.abs(lam))
    assert max(found[1].drift) < 1e-14


def test_a_four_bar_linkage_in_three_pieces_with_accurate_solvers(four_bar):
    cut, q0, v0, expected, lam = four_bar
    sol = run(cut, 0.3, 0.01, q0, v0, solvers="dop853", nodes=8)
    np.testing.assert_allclose(end(sol), expected, atol=1e-11)
    np.testing.assert_allclose(sol.lam[:, -1], lam, atol=1e-8)


def test_solvers_steps_and_meshes_may_differ(four_bar):
    cut, q0, v0, expected, _ = four_bar
    fixed = hn.Method(hn.UnderlyingODE(), hn.RungeKutta("dopri5"))
    mixed = run(
        cut,
        0.3,
        0.005,
        q0,
        v0,
        solvers={"crank": fixed, "coupler": "bdf", "rocker": "rk2"},
        substeps={"crank": 2, "rocker": 40},
        rtol=1e-8,
    )
    np.testing.assert_allclose(end(mixed), expected, atol=1e-4)
    uneven = [
        run(cut, 0.3, window, q0, v0, substeps={"crank": 4, "coupler": 10, "rocker": 7})
        for window in (0.02, 0.01)
    ]
    assert np.max(np.abs(end(uneven[0]) - expected)) > 3 * np.max(np.abs(end(uneven[1]) - expected))


def test_threads_give_the_same_digits(four_bar):
    cut, q0, v0, *_ = four_bar
    for solvers in ("trapezoidal", "dopri5"):
        one, many = (
            run(cut, 0.1, 0.02, q0, v0, solvers=solvers, threads=threads) for threads in (False, True)
        )
        assert np.array_equal(one.states, many.states)
        assert np.array_equal(one.lam, many.lam)


def test_windows_that_do_not_converge_are_halved(four_bar):
    cut, q0, v0, expected, _ = four_bar
    sol = run(cut, 0.3, 0.3, q0, v0, update="schur", substeps=100)
    assert sol.history.rejected
    assert np.min(sol.history.h) < 0.3
    np.testing.assert_allclose(np.sum(sol.history.h), 0.3)
    np.testing.assert_allclose(end(sol), expected, atol=1e-2)


def test_forces_that_cannot_follow_a_stiff_subsystem_are_noticed():
    """Six points in a window of 0.1 do not resolve a relaxation in 1e-3; the windows are halved until the
    pieces hold together.
    """

    def spring(q, v):
        pull = 1e6 * (q[0] - q[1]) + 1e3 * (v[0] - v[1])
        return np.array([-pull, pull])

    stiff = hn.CoupledSystem(
        {"pair": hn.System([1.0, 1.0], spring), "mass": hn.System(3.0, lambda q: -q, n=1)},
        lambda pair, mass: pair[1] - mass[0],
    )
    sol = run(stiff, 0.5, 0.1, [1, 1, 1], solvers={"pair": "bdf", "mass": "dopri5"}, rtol=1e-7)
    assert "do not hold the" in sol.history.rejected[0][2]
    assert sol.q["mass"][0, -1] == pytest.approx(np.cos(0.5 / np.sqrt(5)), abs=1e-3)
    plain = run(stiff, 0.5, 0.1, [1, 1, 1])
    assert not plain.history.rejected
    assert plain.q["mass"][0, -1] == pytest.approx(np.cos(0.5 / np.sqrt(5)), abs=1e-5)


def test_a_coupling_that_cannot_be_traced_works_to_the_accuracy_of_its_differences():
    pair = {"x": hn.System(1.0, lambda q: -q, n=1), "y": hn.System(2.0, [1.0])}
    foreign = hn.CoupledSystem(pair, lambda x, y: [float(x[0]) - float(y[0]) - 0.1 * np.sin(3 * float(y[0]))])
    traced = hn.CoupledSystem(pair, lambda x, y: x[0] - y[0] - 0.1 * np.sin(3 * y[0]))
    np.testing.assert_allclose(end(run(foreign, 1, 0.1, [0, 0])), end(run(traced, 1, 0.1, [0, 0])), atol=1e-9)


def test_a_rolling_disc_tows_a_mass():
    """Velocity constraints inside a subsystem."""
    disc = hn.System(
        [2.0, 2.0, 0.1, 0.2],
        [0, 0, 0, 0.3],
        velocity_constraint=lambda q, v: v[:2] - 0.4 * v[3] * np.array([np.cos(q[2]), np.sin(q[2])]),
        n=4,
    )
    tow = hn.CoupledSystem(
        {"disc": disc, "mass": hn.System([1.0, 1.0], [0.0, 0.0])},
        lambda disc, mass: (disc[:2] - mass) @ (disc[:2] - mass) - 1,
    )
    q0, v0 = [0, 0, 0, 0, -1, 0], [0, 0, 1, 0, 0, 0]
    whole = hn.solve(tow.whole(), (0, 2), q0, v0, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(end(run(tow, 2, 0.1, q0, v0, solvers="dop853")), whole.y[:, -1], atol=1e-9)


def test_coupled_systems_and_results_can_be_pickled():
    pendulum = double_pendulum(1.0, 1.0)
    sol = run(pendulum, 0.1, 0.05, [1, 0, 2, 0])
    again = run(pickle.loads(pickle.dumps(pendulum)), 0.1, 0.05, [1, 0, 2, 0])
    assert np.array_equal(sol.states, again.states)
    assert pickle.loads(pickle.dumps(sol)).drift == sol.drift


def test_redundant_rows_of_the_coupling_do_no_harm(four_bar):
    cut, q0, v0, *_ = four_bar
    twice = hn.CoupledSystem(
        cut.subsystems,
        lambda crank, coupler, rocker: np.concatenate(
            [
                tip(coupler, -0.9) - tip(crank, 0.4),
                tip(coupler, 0.9) - tip(rocker, 0.7),
                2 * tip(coupler, -0.9) - 2 * tip(crank, 0.4),
            ]
        ),
    )
    for update in ("newton", "schur"):
        np.testing.assert_allclose(
            end(run(twice, 0.1, 0.01, q0, v0, update=update)), end(run(cut, 0.1, 0.01, q0, v0)), atol=1e-8
        )


def test_a_driven_joint_follows_the_time():
    """A mass is led along sin t by a heavier one, which is free; momentum: m₁x″ + m₂y″ = 0."""
    led = hn.CoupledSystem(
        {"x": hn.System(3.0, [0.0]), "y": hn.System(1.0, [0.0])},
        lambda t, x, y, p: y[0] - x[0] - p.a * np.sin(t),
        parameters={"a": 0.5},
    )
    sol = run(led, 2, 0.1, {"x": [0.0], "y": [0.0]}, {"x": [0.0], "y": [0.5]}, solvers="dop853")
    np.testing.assert_allclose(sol.q["y"][0] - sol.q["x"][0], 0.5 * np.sin(sol.t), atol=1e-12)
    np.testing.assert_allclose(3 * sol.q["x"][0] + sol.q["y"][0], 0.5 * sol.t, atol=1e-9)


# the linear form


def test_the_linear_form_with_functions_of_time_and_any_matrices():
    """Time-dependent A, B, C, D, r, d, with A not symmetric, B ≠ Dᵀ, three subsystems and two constraints."""
    A = [
        lambda t: np.array([[2 + np.sin(t), 0.3], [0.1, 1.5]]),
        np.array([[1.0, 0.4], [-0.2, 2.0]]),
        np.array([[1.5]]),
    ]
    B = [
        np.array([[1.0, 0.2], [0.1, 1]]),
        lambda t: np.array([[-1.0, 0.1 * t], [0.2, -1]]),
        np.array([[0.3, -0.5]]),
    ]
    C = [np.eye(2), lambda t: np.array([[1.0, t], [0, 1]]), np.array([[2.0]])]
    D = [np.eye(2), lambda t: -np.array([[1.0, 0.1], [0.1 * np.cos(t), 1]]), np.array([[0.2], [-0.3]])]
    r = [np.array([1.0, -1]), lambda t: np.array([np.cos(t), 0.5]), np.array([0.3])]
    d = lambda t: np.array([0.1 * np.sin(t), 0.2])  # noqa: E731
    coupled = hn.CoupledSystem.linear(A, B, C, D, r, d)
    sol = run(coupled, 2, 0.2, np.zeros(5), solvers="dop853")
    np.testing.assert_allclose(end(sol), exact(2, A, B, C, D, r, d, 5), atol=1e-8)


def test_a_constant_constraint_is_integrated_from_the_start():
    """x″ − y″ = d holds x − y = ½ d t² + c₁ t + c₀ to rounding."""
    pair = hn.CoupledSystem.linear([1.0, 2.0], None, [4.0, 0.0], [1.0, -1.0], [0.0, 1.0], 0.3)
    sol = run(pair, 3, 0.1, [0.7, 0.2], [1.0, -1.0])
    np.testing.assert_allclose(sol.q["x"][0] - sol.q["y"][0], 0.5 + 2 * sol.t + 0.15 * sol.t**2, atol=1e-13)


# foreign solvers


def scipy_solver(t, q, v, force):
    """Subsystem x of the model problem, by solve_ivp."""

    def rhs(t, y):
        return np.concatenate([y[2:], np.linalg.solve(A[0], R[0] - C[0] @ y[:2] + force(t))])

    sol = solve_ivp(
        rhs, (t[0], t[-1]), np.concatenate([q, v]), t_eval=t, rtol=1e-10, atol=1e-12, method="DOP853"
    )
    return sol.y[:2], sol.y[2:]


def test_a_subsystem_may_be_solved_by_scipy():
    sol = run(model(), 2, 0.1, solvers={"x": scipy_solver, "y": "dop853"})
    np.testing.assert_allclose(end(sol), exact(2), atol=1e-8)


@pytest.mark.parametrize("update", [None, "schur"])
def test_a_black_box_hides_its_equations(update):
    """Only motions under forces are seen; masses and accelerations are measured."""
    y = hn.System(A[1], lambda q: R[1] - C[1] @ q, n=2)
    boxed = hn.CoupledSystem({"x": hn.BlackBox(scipy_solver, n=2), "y": y}, lambda x, y: x[1] - 2 * y[0])
    sol = run(boxed, 2, 0.1, solvers={"y": "dop853"}, rtol=1e-8, update=update)
    np.testing.assert_allclose(end(sol), exact(2), atol=1e-7)
    assert np.max(sol.history.iterations) <= 8


@pytest.mark.slow
def test_two_black_boxes_with_a_nonlinear_joint():
    """A double pendulum of two programs that know nothing of each other; the mobility of the upper mass, on
    its own rod, changes as it swings.
    """
    systems = double_pendulum(1.0, 2.0).subsystems

    def program(system):
        def solver(t, q, v, force):
            pushed = hn.System(
                system.functions["mass"].function,
                lambda t: np.array([0, -9.81 * system.functions["mass"].function[0]]) + force(t),
                system.functions["constraint"].function if system.m else None,
                n=2,
            )
            sol = hn.solve(pushed, (t[0], t[-1]), q, v, t_eval=t, rtol=1e-10, atol=1e-12, repair=True)
            return sol.q, sol.v

        return hn.BlackBox(solver, names=["x", "y"])

    boxes = hn.CoupledSystem(
        {name: program(system) for name, system in systems.items()},
        lambda upper, lower: (lower - upper) @ (lower - upper) - 1,
    )
    sol = run(boxes, 0.2, 0.05, [1, 0, 2, 0], rtol=1e-7)
    assert np.max(sol.history.iterations) <= 12
    whole = hn.solve(double_pendulum(1.0, 2.0).whole(), (0, 0.2), [1, 0, 2, 0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(end(sol), whole.y[:, -1], atol=1e-5)
    with pytest.raises(hn.ModelError, match="black box"):
        boxes.whole()


# results and errors


def test_times_may_be_chosen_and_may_run_backwards():
    forwards = hn.solve_coupled(
        model(),
        (0, 1),
        REST,
        method=hn.LocalIteration(window=0.1, solvers="dop853"),
        t_eval=[0, 0.05, 0.33, 1],
    )
    assert list(forwards.t) == [0, 0.05, 0.33, 1]
    np.testing.assert_allclose(forwards.states[2], exact(0.33), atol=1e-8)
    assert forwards.lam.shape == (1, 4)
    backwards = hn.solve_coupled(
        model(),
        (1, 0),
        forwards.states[-1, :4],
        forwards.states[-1, 4:],
        method=hn.LocalIteration(window=0.1, solvers="dop853"),
    )
    np.testing.assert_allclose(end(backwards), 0, atol=1e-8)


def test_the_result_says_what_happened():
    sol = run(model(), 1, 0.1)
    assert str(sol).splitlines()[0] == "success: the end was reached"
    assert "2 subsystems (x, y), 1 coupling constraint" in str(sol)
    assert sol.method == "local-iteration"
    assert sol.q["x"].shape == sol.v["y"].shape == (2, 11)


def test_a_function_that_fails_ends_the_run_with_a_reason():
    falling = hn.CoupledSystem(
        {"x": hn.System(1.0, lambda q: np.array([-1 / np.sqrt(q[0])]), n=1), "y": hn.System(1.0, [0.0])},
        lambda x, y: x[0] - y[0],
    )
    sol = hn.solve_coupled(falling, (0, 5), [1.0, 1.0], method=hn.LocalIteration(window=0.1))
    assert not sol.success
    assert 0 < sol.t[-1] < 5
    assert "stopped at t" in sol.message


def test_inconsistent_starts_are_refused_or_repaired():
    pendulum = double_pendulum(1.0, 1.0)
    method = hn.LocalIteration(window=0.05)
    with pytest.raises(hn.InconsistentStart, match=r"q0 violates the constraints: coupling\[0\] = 0\.21"):
        hn.solve_coupled(pendulum, (0, 1), [1, 0, 2.1, 0], method=method)
    with pytest.raises(hn.InconsistentStart, match="v0 violates"):
        hn.solve_coupled(pendulum, (0, 1), [1, 0, 2, 0], [0, 0, 1, 0], method=method)
    assert max(hn.solve_coupled(pendulum, (0, 1), [1, 0, 2.1, 0], method=method, repair=True).drift) < 1e-14


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"window": -1}, "window"),
        ({"window": 0.1, "substeps": 0}, "substeps"),
        ({"window": 0.1, "substeps": {"z": 3}}, "substeps: 'z' is not a subsystem"),
        (
            {"window": 0.1, "solvers": "rk9"},
            "solvers: 'rk9' for 'x' is not known; choose one of euler, rk2, trapezoidal",
        ),
        ({"window": 0.1, "solvers": 3}, "solvers: 3"),
        ({"window": 0.1, "update": "best"}, "update: 'best' is not known; choose 'newton'"),
        ({"window": 0.1, "update": {"x": 1, "y": 1}}, "sum 2; it must be 1"),
        ({"window": 0.1, "update": {"z": 1}}, "update: 'z'"),
        ({"window": 0.1, "rtol": -1}, "rtol"),
        ({"window": 0.1, "rtol": 0, "atol": 0}, "atol"),
        ({"window": 0.1, "nodes": 1}, "nodes"),
        ({"window": 0.1, "iterations": 0}, "iterations"),
        (
            {"window": 0.1, "solvers": {"x": lambda t, q, v, force: (q, v)}},
            "solvers: the solver of 'x' returned shapes",
        ),
    ],
)
def test_errors_of_the_method_name_the_argument(options, error):
    with pytest.raises(ValueError, match=error):
        run(model(), 1, **options)


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda s: hn.CoupledSystem({"a": s}, lambda a: a[0]), "at least two"),
        (lambda s: hn.CoupledSystem({"a": s, "p": s}, lambda a: a[0]), "'p' cannot be"),
        (
            lambda s: hn.CoupledSystem({"a": s, "b": s}, lambda a, c: a[0]),
            "coupling: its argument 'c' is not known; .* a, b, t, p",
        ),
        (lambda s: hn.CoupledSystem({"a": s, "b": s}, 3), "coupling: 3 is not callable"),
        (lambda s: hn.CoupledSystem({"a": s, "b": s}, lambda t: t), "none of its arguments is a subsystem"),
        (lambda s: hn.CoupledSystem({"a": s, "b": s}, lambda a, b: np.eye(2)), "coupling: has shape"),
        (lambda s: hn.CoupledSystem.linear(A, None, C[:1], D, R), "C: 1 entries, but A has 2"),
        (lambda s: hn.CoupledSystem.linear(A, None, C, [[0, 1, 2], [1, 0]], R), r"D\[0\]: shape"),
        (
            lambda s: hn.CoupledSystem(
                {"a": s, "b": hn.System(1.0, lambda s: s, states={"s": 1.0}, rate=lambda s: -s)},
                lambda a, b: a[0] - b[0],
            ),
            "states, unknowns",
        ),
        (lambda s: hn.BlackBox(lambda t, q, v, force: (q, v)), "n: the number of coordinates"),
    ],
)
def test_errors_of_a_coupled_system_name_the_argument(build, error):
    with pytest.raises(hn.ModelError, match=error):
        build(hn.System(1.0, [0.0]))


def test_errors_of_a_run_name_the_argument():
    method = hn.LocalIteration(window=0.1)
    for arguments, error in [
        (((0, 0), REST), "t_span"),
        (((0, 1), [0, 0]), "q0"),
        (((0, 1), {"x": [0, 0]}), "q0: 'y' is missing"),
        (((0, 1), {"x": [0, 0], "z": [0]}), "q0: 'z'"),
    ]:
        with pytest.raises(ValueError, match=error):
            hn.solve_coupled(model(), *arguments, method=method)
    with pytest.raises(TypeError, match="method"):
        hn.solve_coupled(model(), (0, 1), REST, method="newton")
    with pytest.raises(TypeError, match=r"use hn\.solve"):
        hn.solve_coupled(hn.System(1.0, [0.0]), (0, 1), REST, method=method)
    with pytest.raises(TypeError, match=r"use hn\.solve_coupled"):
        hn.solve(model(), (0, 1), REST)


# derivatives


def swinging_disc(force):
    """A subsystem with a mass matrix that varies, a nonlinear constraint and a velocity constraint."""
    return hn.System(
        lambda q: np.array([[2 + np.cos(q[1]), 0.1, 0], [0.1, 3.0, 0], [0, 0, 1 + q[0] ** 2]]),
        force,
        lambda q: q[0] ** 2 + q[1] ** 2 * q[2] - 1,
        velocity_constraint=lambda q, v: v[2] - np.sin(q[0]) * v[1],
        n=3,
    )


def swinging_force(q, v):
    return np.array([np.sin(q[0]) * v[1], q[1] ** 3, -v[2] * q[0]])


def test_jacobians_of_accelerations_agree_with_differences():
    rng = np.random.default_rng(1)
    t = np.linspace(0, 1, 4)
    q, v, forces = rng.normal(size=(3, 4, 3))
    for system in (
        swinging_disc(swinging_force),
        hn.System([1.0, 2.0, 3.0], swinging_force, n=3),
        hn.System([1.0, 1.0, 1.0], swinging_force, lambda q: np.array([q @ q - 1, 2 * (q @ q) - 2]), n=3),
    ):
        exact = DrivenSubsystem("exact", system)
        black_box = DrivenSubsystem("black box", system)
        black_box._addresses[LINEARIZATION] = 0
        found = exact.acceleration_jacobians(t, q, v, forces)
        expected = black_box.acceleration_jacobians(t, q, v, forces)
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.max(np.abs(expected)))
        assert exact._addresses[LINEARIZATION] != 0


def test_jacobians_of_the_coupling_agree_with_differences():
    systems = {"x": hn.System([1.0, 1.0], [0.0, 0.0]), "y": hn.System(1.0, [0.0])}

    def joint(t, x, y):
        return np.array([np.sin(x[0]) * y[0] + x[1] ** 2 * t, x[0] * x[1] - np.cos(y[0] + t)])

    def called(t, x, y):
        return np.array([float(value) for value in joint(t, x, y)])

    rng = np.random.default_rng(2)
    t = np.linspace(0, 1, 5)
    q, v, a = rng.normal(size=(3, 5, 3))
    lam = rng.normal(size=(5, 2))
    traced = hn.CoupledSystem(systems, joint)
    black_box = hn.CoupledSystem(systems, called)
    assert is_traced(traced._coupling.system)
    assert not is_traced(black_box._coupling.system)
    exact = traced.coupling_jacobians(t, q, v, a, lam)
    differences = black_box.coupling_jacobians(t, q, v, a, lam)
    system = traced._coupling.system
    by_differences = np.empty((5, 5, 6))
    jacobians_at_points(
        system.kernel("coupling terms", coupling_terms).address,
        t,
        np.hstack([q, v]),
        np.hstack([a, lam]),
        system.context(),
        False,
        by_differences,
    )
    for name, expected in zip(
        exact._fields,
        (by_differences[:, :3, :3], by_differences[:, 3:, :3], by_differences[:, 3:, 3:]),
        strict=True,
    ):
        np.testing.assert_allclose(getattr(exact, name), expected, atol=1e-7)
        np.testing.assert_allclose(getattr(differences, name), expected, atol=2e-3)  # noise of γ


def test_a_subsystem_that_cannot_be_traced_is_differentiated_by_differences():
    def called(q):
        return np.array([-4 * float(q[0]) ** 3])

    traced = hn.System(1.0, lambda q: -4 * q**3, n=1)
    black_box = hn.System(1.0, called, n=1)
    other = hn.System(3.0, [0.0])
    ends = [
        run(hn.CoupledSystem({"x": x, "y": other}, lambda x, y: x[0] - y[0]), 1, 0.1, [1.0, 1.0])
        for x in (traced, black_box)
    ]
    np.testing.assert_allclose(end(ends[0]), end(ends[1]), atol=1e-9)
    assert np.array_equal(ends[0].history.iterations, ends[1].history.iterations)


def test_a_driven_system_is_compiled_once_and_keeps_the_parameters_of_each_copy():
    spring = hn.System(1.0, lambda q, p: -p.stiffness * q, n=1, parameters={"stiffness": 4.0})
    stiffer = spring.with_parameters(stiffness=9.0)
    driven = driven_system(spring, 0)
    assert driven_system(spring, 0) is driven
    other = driven_system(stiffer, 0)
    assert other.compiled is driven.compiled
    assert (driven.parameters["stiffness"], other.parameters["stiffness"]) == (4.0, 9.0)
    at = np.zeros(1), np.ones((1, 1)), np.zeros((1, 1)), np.full((1, 1), 0.5)
    found = [DrivenSubsystem("x", system).accelerations(*at)[0, 0] for system in (spring, stiffer, spring)]
    assert found == [-3.5, -8.5, -3.5]

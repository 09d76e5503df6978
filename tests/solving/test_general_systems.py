"""Systems with first-order states, unknowns, forces that depend on λ, invariants; ODEs with invariants."""

import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import holonome as hn

METHODS = ["dopri5", "dop853", "bdf", "ggl", "index1", "index2", "auto"]


@pytest.mark.parametrize("method", [*METHODS, "cs", "cm", "index3"])
def test_first_order_states(method):
    """An oscillator with a filtered force, against SciPy."""
    system = hn.System(
        1.0,
        lambda q, s: -q - s,
        n=1,
        states={"filtered": 0.3},
        rate=lambda v, s, p: p.k * (v - s),
        parameters={"k": 2.0},
    )
    exact = solve_ivp(
        lambda t, y: [y[1], -y[0] - y[2], 2 * (y[1] - y[2])], (0, 5), [1, 0, 0.3], rtol=1e-11, atol=1e-12
    ).y[:, -1]
    sol = hn.solve(system, (0, 5), [1], method=method, rtol=1e-8, atol=1e-9)
    assert sol.q.shape == sol.v.shape == sol.s.shape == (1, sol.t.size)
    np.testing.assert_allclose(
        [sol.q[0, -1], sol.v[0, -1], sol.s[0, -1]], exact, atol=2e-5 if method == "index3" else 1e-7
    )


def test_states_have_their_start_and_their_tolerance():
    system = hn.System(1.0, lambda q, s: -q - s, n=1, states={"a": 0.3}, rate=lambda v, s: v - s)
    a = hn.solve(system, (0, 1), [1], s0=[0.7], rtol=1e-9, atol=[1e-9])
    b = solve_ivp(
        lambda t, y: [y[1], -y[0] - y[2], y[1] - y[2]], (0, 1), [1, 0, 0.7], rtol=1e-11, atol=1e-12
    ).y[:, -1]
    assert a.s[0, -1] == pytest.approx(b[2], abs=1e-8)
    long = hn.solve(system, (0, 1000), [1], rtol=1e-6)
    assert long.steps < 3000, "the integral of the state, which nobody sees, must not be tested"
    other = pickle.loads(pickle.dumps(system))
    np.testing.assert_array_equal(hn.solve(other, (0, 1), [1]).s, hn.solve(system, (0, 1), [1]).s)
    assert "1 state (a)" in str(system)


def rod_by_angle():
    """A pendulum whose constraint is written with its angle, which an equation determines."""
    return hn.System(
        np.eye(2),
        [0.0, -9.81],
        lambda q, w: q[0] * np.sin(w[0]) - q[1] * np.cos(w[0]) - 1,
        unknowns={"angle": 1.5},
        equations=lambda q, w: q[0] * np.cos(w[0]) + q[1] * np.sin(w[0]),
    )


@pytest.mark.parametrize("method", [*METHODS, "cs", "cm"])
def test_unknowns(method):
    rod = hn.System(np.eye(2), [0.0, -9.81], lambda q: np.sqrt(q @ q) - 1)
    exact = hn.solve(rod, (0, 5), [1, 0], rtol=1e-12, atol=1e-12)
    sol = hn.solve(rod_by_angle(), (0, 5), [1, 0], method=method, rtol=1e-8, atol=1e-9)
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.q[:, -1], exact.q[:, -1], atol=1e-5)
    np.testing.assert_allclose(sol.lam[:, -1], exact.lam[:, -1], atol=1e-3)
    np.testing.assert_allclose(sol.w[0], np.unwrap(np.arctan2(sol.q[0], -sol.q[1])), atol=1e-9)
    if method in ("dopri5", "dop853", "bdf", "auto"):
        assert max(sol.drift) < 1e-14


def test_unknowns_of_a_moving_system_enter_masses_and_forces():
    """A bead on a spiral that turns: the arc is an unknown; against the same system in one coordinate."""
    system = hn.System(
        lambda w: np.array([1.0 + 0.1 * np.sin(w[0]), 1.0 + 0.1 * np.sin(w[0])]),
        lambda q, w: np.array([0.1 * w[0], -9.81]),
        lambda t, q, w: (
            np.array([q[0] - 0.3 * w[0] * np.cos(w[0] + t), q[1] - 0.3 * w[0] * np.sin(w[0] + t)])
            @ np.array([-np.sin(w[0] + t), np.cos(w[0] + t)])
        ),
        n=2,
        unknowns={"arc": 2.0},
        equations=lambda q, w: q[0] ** 2 + q[1] ** 2 - 0.09 * w[0] ** 2,
    )
    start = hn.consistent(system, [0.6 * np.cos(2.0), 0.6 * np.sin(2.0)], repair=True)
    runs = [
        hn.solve(system, (0, 0.5), start.q, start.v, method=method, rtol=1e-9, atol=1e-10)
        for method in ("dop853", "ggl", "bdf")
    ]
    for sol in runs:
        assert sol.success, sol.message
        np.testing.assert_allclose(sol.q[:, -1], runs[0].q[:, -1], atol=1e-6)
        np.testing.assert_allclose(np.sum(sol.q**2, axis=0), 0.09 * sol.w[0] ** 2, atol=1e-9)


def test_a_bad_guess_and_unknowns_that_end():
    sol = hn.solve(rod_by_angle(), (0, 1), [1, 0], w0=[1.0])
    assert sol.success
    with pytest.raises(ValueError, match="w0: shape"):
        hn.solve(rod_by_angle(), (0, 1), [1, 0], w0=[1.0, 2.0])
    ends = hn.System(
        1.0,
        lambda w: np.array([1.0 + 1e-3 * w[0]]),
        n=1,
        unknowns={"root": 1.0},
        equations=lambda q, w: w[0] ** 2 + q[0] - 1,
    )
    stopped = hn.solve(ends, (0, 10), [0.0])
    assert not stopped.success
    assert stopped.q[0, -1] == pytest.approx(1.0, abs=1e-2)


MU = 0.2


def friction(q, v, lam):
    return np.array([0.0, -9.81]) - MU * np.sqrt(lam[0] ** 2 + 1e-4) * v / np.sqrt(v @ v + 1e-2)


@pytest.mark.parametrize("method", METHODS)
def test_forces_that_depend_on_the_multipliers(method):
    """A bead on a circle with friction in proportion to the constraint force, against SciPy in the angle."""

    def rate(t, y):
        lam = y[1] ** 2 + 9.81 * np.cos(y[0])
        return [y[1], -9.81 * np.sin(y[0]) - MU * np.sqrt(lam**2 + 1e-4) * y[1] / np.sqrt(y[1] ** 2 + 1e-2)]

    angle, speed = solve_ivp(rate, (0, 3), [np.pi / 2, 0], rtol=1e-11, atol=1e-12).y[:, -1]
    system = hn.System(np.eye(2), friction, lambda q: np.sqrt(q @ q) - 1)
    sol = hn.solve(system, (0, 3), [1, 0], method=method, rtol=1e-8, atol=1e-9)
    assert np.arctan2(sol.q[0, -1], -sol.q[1, -1]) == pytest.approx(angle, abs=1e-6)
    assert sol.lam[0, -1] == pytest.approx(speed**2 + 9.81 * np.cos(angle), abs=1e-4)
    again = hn.solve(pickle.loads(pickle.dumps(system)), (0, 3), [1, 0], method=method, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(again.q, sol.q)


def test_methods_without_multipliers_refuse_forces_that_depend_on_them():
    system = hn.System(np.eye(2), friction, lambda q: np.sqrt(q @ q) - 1)
    for method in ("cs", "cm", "ggl*"):
        with pytest.raises(ValueError, match="must not depend on lam"):
            hn.solve(system, (0, 1), [1, 0], method=method)
    with pytest.raises(ValueError, match="lam"):
        hn.solve(system, (0, 1), [1, 0], method=hn.Method(hn.Baumgarte(), hn.RungeKutta("dopri5")))


def kepler(invariants=True):
    def energy_and_momentum(q, v):
        return np.array([v @ v / 2 - 1 / np.sqrt(q @ q), q[0] * v[1] - q[1] * v[0]])

    return hn.System(
        np.eye(2), lambda q: -q / np.sqrt(q @ q) ** 3, invariant=energy_and_momentum if invariants else None
    )


@pytest.mark.parametrize("method", ["dopri5", "dop853", "bdf", "auto"])
def test_invariants(method):
    """Energy and angular momentum stay, at the steps and between them, and the error is far smaller than
    without.
    """
    e, revolutions = 0.5, 50
    q0, v0, errors = np.array([1 - e, 0]), np.array([0, np.sqrt((1 + e) / (1 - e))]), []
    for held in (False, True):
        sol = hn.solve(
            kepler(held),
            (0, 2 * np.pi * revolutions),
            q0,
            v0,
            method=method,
            rtol=1e-8,
            atol=1e-10,
            dense_output=True,
        )
        assert sol.success, sol.message
        errors.append(np.max(np.abs(sol.q[:, -1] - q0)))
    assert errors[1] < 0.02 * errors[0]
    assert np.max(np.abs(sol.invariant - sol.invariant[:, :1])) < 1e-13
    q, v = sol.sol(np.linspace(0, 300, 401))
    assert np.ptp(np.sum(v**2, axis=0) / 2 - 1 / np.hypot(*q)) < 1e-12


def test_invariants_beside_constraints():
    """A pendulum that holds its energy too."""
    system = hn.System(
        np.eye(2), [0.0, -9.81], lambda q: q @ q - 1, invariant=lambda q, v: v @ v / 2 + 9.81 * q[1]
    )
    for method in ("dopri5", "bdf"):
        sol = hn.solve(system, (0, 100), [1, 0], method=method, rtol=1e-5)
        assert max(sol.drift) < 1e-13
        assert np.ptp(sol.invariant) < 1e-13


def test_ode_with_an_invariant():
    prey = hn.ODE(
        lambda x, p: np.array([x[0] * (1 - x[1]), -p.a * x[1] * (1 - x[0])]),
        invariant=lambda x, p: p.a * (x[0] - np.log(x[0])) + x[1] - np.log(x[1]),
        names=["prey", "predator"],
        parameters={"a": 1.5},
    )
    exact = solve_ivp(
        lambda t, x: [x[0] * (1 - x[1]), -1.5 * x[1] * (1 - x[0])],
        (0, 20),
        [0.5, 0.7],
        rtol=1e-11,
        atol=1e-12,
    ).y[:, -1]
    for method in ("auto", "dopri5", "bdf"):
        sol = hn.solve(
            prey,
            (0, 20),
            [0.5, 0.7],
            method=method,
            rtol=1e-8,
            atol=1e-9,
            dense_output=True,
            events=lambda x: x[0] - 1,
        )
        assert sol.success, sol.message
        np.testing.assert_allclose(sol.x[:, -1], exact, atol=2e-5)
        assert np.ptp(sol.invariant) < 1e-12
        np.testing.assert_allclose(sol.sol(sol.t[5]), sol.x[:, 5], atol=1e-12)
        assert len(sol.t_events[0]) == 8
    assert "2 components (prey, predator)" in str(prey)
    copy = pickle.loads(pickle.dumps(prey))
    np.testing.assert_array_equal(hn.solve(copy, (0, 1), [0.5, 0.7]).x, hn.solve(prey, (0, 1), [0.5, 0.7]).x)


def test_false_invariants_are_recognised():
    """At the start, or, where the rate vanishes there, at the end."""
    with pytest.raises(hn.ModelError, match="invariant: entry 0 changes along the motion"):
        hn.solve(hn.ODE(lambda x: -x, invariant=lambda x: x @ x, n=2), (0, 1), [1, 0])
    damped = hn.System(
        np.eye(2),
        lambda v: np.array([0.0, -9.81]) - 0.1 * v,
        lambda q: q @ q - 1,
        invariant=lambda q, v: v @ v / 2 + 9.81 * q[1],
    )
    sol = hn.solve(damped, (0, 1), [1, 0])
    assert not sol.success
    assert "no invariant of this system" in sol.message


def test_what_is_wrong_is_named():
    def force(q):
        return -q

    with pytest.raises(hn.ModelError, match="states: given, but rate is missing"):
        hn.System(1.0, force, n=1, states={"s": 0.0})
    with pytest.raises(hn.ModelError, match="unknowns: missing, but equations is given"):
        hn.System(1.0, force, n=1, equations=lambda q, w: w)
    with pytest.raises(hn.ModelError, match="rate has shape"):
        hn.System(1.0, force, n=1, states={"s": 0.0}, rate=lambda s: np.array([s[0], s[0]]))
    with pytest.raises(hn.ModelError, match=r"'s' is not known.*states="):
        hn.System(1.0, lambda q, s: -q, n=1)
    with pytest.raises(hn.ModelError, match="'lam' is not known"):
        hn.System(1.0, lambda q, lam: -q, n=1)
    with pytest.raises(hn.ModelError, match="n: the number of components"):
        hn.ODE(lambda x: x)
    with pytest.raises(hn.ModelError, match="'q' is not known"):
        hn.ODE(lambda q: q, n=2)
    with pytest.raises(ValueError, match="s0"):
        hn.solve(hn.System(1.0, force, n=1), (0, 1), [0], s0=[1.0])
    with pytest.raises(ValueError, match="q0"):
        hn.solve(hn.ODE(lambda x: x, n=2), (0, 1), [1.0])


@pytest.mark.parametrize("metric", ["mass", "euclidean"])
@pytest.mark.parametrize("relaxed", [False, True])
def test_variants_of_the_projection(metric, relaxed):
    """All of them stay on the manifold and follow the tolerance; in the euclidean metric the nearest point is
    the nearest indeed.
    """
    mechanism = hn.mechanisms.get("slider_crank_unequal")
    exact = hn.solve(mechanism.system, (0, 1), mechanism.q0, mechanism.v0, rtol=1e-12, atol=1e-12)
    errors = []
    for tolerance in (1e-4, 1e-7):
        method = hn.Method(hn.CoordinateProjection(metric=metric, relaxed=relaxed), hn.BDF())
        sol = hn.solve(
            mechanism.system,
            (0, 1),
            mechanism.q0,
            mechanism.v0,
            method=method,
            rtol=tolerance,
            atol=tolerance,
        )
        assert sol.success, sol.message
        assert max(sol.drift) < 1e-11
        errors.append(np.max(np.abs(sol.q[:, -1] - exact.q[:, -1])))
    assert errors[1] < 0.03 * errors[0]


def test_bad_projections_are_named():
    with pytest.raises(ValueError, match="metric"):
        hn.CoordinateProjection(metric="taxicab")
    with pytest.raises(TypeError, match="index 1"):
        hn.CoordinateProjection(hn.GGL())
    pendulum = hn.mechanisms.pendulum()
    with pytest.raises(ValueError, match="projection: GGL"):
        hn.solve(pendulum.system, (0, 1), pendulum.q0, method="ggl", projection=True)


def test_projection_can_be_left_out_and_added():
    pendulum = hn.mechanisms.pendulum()
    drift = {
        (method, projection): hn.solve(
            pendulum.system, (0, 20), pendulum.q0, method=method, projection=projection
        ).drift[0]
        for method, projection in (("bdf", None), ("bdf", False), ("index1", None), ("index1", True))
    }
    assert drift["bdf", None] < 1e-14 < 1e-8 < drift["bdf", False]
    assert drift["index1", True] < 1e-14 < 1e-8 < drift["index1", None]


@pytest.mark.parametrize(
    "method",
    [
        "index3",
        hn.Method(hn.GGL(error_test="q"), hn.BDF()),
        hn.Method(hn.CoordinateSplit("CM", error_test="x"), hn.BDF()),
        "smooth",
    ],
)
def test_states_are_tested_where_only_positions_are(method):
    ode = hn.ODE(lambda x: np.array([x[1], -x[0]]), n=2)
    options = {"motion": "smooth"} if method == "smooth" else {"method": method}
    sol = hn.solve(ode, (0, 20), [1.0, 0.0], rtol=1e-6, **options)
    np.testing.assert_allclose(sol.x[:, -1], [np.cos(20), -np.sin(20)], atol=1e-2)


def test_unknowns_follow_their_branch():
    """sin(w − q) = 0 has many solutions; w = q is the one of the start, at all outputs, however far apart."""
    system = hn.System(
        [1.0], lambda w: 0.1 * w, unknowns={"angle": 0.0}, equations=lambda q, w: np.sin(w - q)
    )
    exact = 3 / np.sqrt(0.1) * np.sinh(np.sqrt(0.1) * 5)
    for method in ("auto", "dopri5", "bdf", "ggl"):
        sol = hn.solve(system, (0, 5), [0.0], [3.0], method=method, t_eval=np.array([0.0, 5.0]))
        assert sol.q[0, -1] == pytest.approx(exact, rel=1e-4)
        assert sol.w[0, -1] == pytest.approx(exact, rel=1e-4)


def test_constant_order_with_states_and_odes():
    ode = hn.ODE(lambda x: np.array([x[1], -x[0]]), n=2)
    method = hn.Method(hn.GGL(), hn.BDF(step=1e-3, order=2))
    sol = hn.solve(ode, (0, 1), [1.0, 0.0], method=method)
    np.testing.assert_allclose(sol.x[:, -1], [np.cos(1), -np.sin(1)], atol=1e-5)
    system = hn.System(1.0, lambda q, s: -q - s, n=1, states={"a": 0.3}, rate=lambda v, s: v - s)
    for formulation in (hn.GGL(), hn.Index1()):
        sol = hn.solve(system, (0, 1), [1], method=hn.Method(formulation, hn.BDF(step=1e-3, order=3)))
        np.testing.assert_allclose(
            sol.s[0, -1], hn.solve(system, (0, 1), [1], rtol=1e-10).s[0, -1], atol=1e-7
        )


def test_stiffness_of_an_ode_is_recognised():
    stiff = hn.ODE(lambda x: np.array([x[1], 1e4 * (1 - x[0] ** 2) * x[1] - x[0]]), n=2)
    sol = hn.solve(stiff, (0, 300), [2.0, 0.0])
    assert sol.success, sol.message
    assert "bdf" in sol.method


def test_invariants_with_dependent_gradients():
    """A circular orbit, where energy and angular momentum have parallel gradients; and rest, where they
    vanish.
    """
    for method in ("dop853", "bdf"):
        sol = hn.solve(kepler(), (0, 2 * np.pi * 20), [1.0, 0.0], [0.0, 1.0], method=method, rtol=1e-8)
        assert sol.success, sol.message
        assert np.max(np.abs(sol.invariant - sol.invariant[:, :1])) < 1e-10
        np.testing.assert_allclose(sol.q[:, -1], [1, 0], atol=1e-3)
    rest = hn.System(np.eye(2), lambda q: -q, invariant=lambda q, v: q @ q + v @ v)
    assert hn.solve(rest, (0, 1), [0.0, 0.0]).success


def test_results_with_states_are_exported(tmp_path):
    ode = hn.ODE(lambda x: np.array([x[1], -x[0]]), names=["a", "b"], invariant=lambda x: x @ x)
    sol = hn.solve(ode, (0, 1), [1.0, 0.0], atol=[1e-9, 1e-8])
    assert list(sol.to_pandas().columns) == ["a", "b"]
    assert list(sol.to_xarray()["s"].dims) == ["state", "t"]
    assert sol.save(tmp_path / "x.csv").read_text().splitlines()[0] == "t,a,b"
    np.testing.assert_array_equal(np.load(sol.save(tmp_path / "x.npz"))["s"], sol.x)
    sol.plot(file=tmp_path / "x.png")
    mixed = hn.solve(rod_by_angle(), (0, 1), [1, 0])
    columns = ["q0", "q1", "q0'", "q1'", "angle", "lambda constraint[0]"]
    assert list(mixed.to_pandas().columns) == columns
    with pytest.raises(ValueError, match=r"atol: shape \(3,\); give a number or 2 values"):
        hn.solve(ode, (0, 1), [1, 0], atol=[1, 1, 1])
    with pytest.raises(ValueError, match="v0: an ODE has initial values q0 alone"):
        hn.solve(ode, (0, 1), [1, 0], [1, 0])
    assert hn.consistent(
        hn.System(1.0, lambda q, s: -q, n=1, states={"s": 1.0}, rate=lambda s: -s), [1]
    ).q.shape == (1,)


@pytest.mark.parametrize("order", [2, 3])
def test_multipliers_may_jump_at_a_known_time(order):
    """A force jumps, and with it y: no step crosses that time, and the iterations begin anew behind it."""
    kind = {2: hn.Index2System, 3: hn.Index3System}[order]
    jumping = kind(
        lambda t, x: np.array([np.where(t > 0.5, 1.0, -1.0), x[0] + np.where(t > 0.5, 3.0, 0.0)]),
        np.array([0.0, 1.0]),
        lambda x: x[1],
        n=2,
    )
    told = []
    sol = hn.solve(jumping, (0, 1), [0.0, 0.0], keep_steps=True, progress=told.append)
    assert sol.success, sol.message
    assert sol.steps < 150
    assert told[-1] == 1.0
    assert np.any(np.abs(sol.t - 0.5) < 1e-12)
    assert abs(sol.x[0, -1] - (0.0 if order == 2 else -0.25)) < 1e-9
    assert abs(sol.x[1, -1]) < 1e-6
    assert abs(sol.y[0, -1] - sol.x[0, -1] - 3) < 1e-5


@pytest.mark.slow
def test_a_problem_that_is_too_large_to_be_watched_says_so():
    n, m, method = 200, 101, hn.Method(hn.SRM(eps=1e-4, iterations=3), hn.BDF())
    B = np.eye(n)[:, :m]
    system = hn.Index2System(lambda x: -x, lambda x: B, lambda x: x[:m], n=n)
    sol = hn.solve(system, (0, 0.1), np.concatenate([np.zeros(m), np.ones(n - m)]), method=method, rtol=1e-4)
    assert sol.success
    assert "too large to be watched for singular positions" in sol.message
    np.testing.assert_allclose(sol.x[m:, -1], np.exp(-0.1), rtol=1e-4)

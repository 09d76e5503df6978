"""BDF and the implicit formulations: orders, published counts, Andrews' mechanism, drift, dense output and
events; against closed forms and references.
"""

import numpy as np
import pytest

import holonome as hn
from holonome.dynamics.kernels import kernels
from holonome.formulations.implicit import ImplicitKernels
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK

FORMULATIONS = {
    "index3": hn.Index3(error_test="qv"),
    "index2": hn.Index2(),
    "ggl": hn.GGL(),
    "index1": hn.Index1(),
    "baumgarte": hn.Baumgarte(5.0),
    "projected": hn.CoordinateProjection(),
    "ode": hn.UnderlyingODE(projection=False),
    "ggl*": hn.GGL(predict_multipliers=True),
}
STEPS = {1: (400, 800), 2: (200, 400), 3: (160, 320), 4: (120, 240), 5: (100, 200), 6: (80, 160)}


@pytest.mark.parametrize("order", STEPS)
@pytest.mark.parametrize("name", FORMULATIONS)
def test_order_at_constant_step(name, order):
    """Order k for q, v and λ in every formulation, the start being exact."""
    mechanism = hn.mechanisms.pendulum(theta0=1.0)
    errors = []
    for count in STEPS[order]:
        method = hn.Method(
            FORMULATIONS[name],
            hn.BDF(max_order=min(order, 6), step=1.0 / count, order=order, newton_tolerance=1e-10),
        )
        sol = hn.solve(
            mechanism.system, (0, 1), mechanism.q0, mechanism.v0, method=method, rtol=1e-4, atol=1e-4
        )
        assert sol.success, sol.message
        assert sol.t.size == count + 1
        late = sol.t > 0.3
        exact = mechanism.exact(sol.t)
        errors.append(
            [
                np.max(np.abs(found - wanted)[:, late])
                for found, wanted in zip((sol.q, sol.v, sol.lam), exact, strict=True)
            ]
        )
    orders = np.log2(np.array(errors[0]) / np.array(errors[1]))
    assert np.all(orders > order - 0.3), (orders, errors)


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("mechanism", ["stiff_spring", "slider_crank_unequal", "andrews", "four_bar"])
def test_newton_matrix_is_the_derivative_of_the_residual(name, mechanism):
    """Against differences; and the emitted elimination solves with it."""
    system = hn.mechanisms.get(mechanism).system
    formulation = FORMULATIONS[name]
    random = np.random.default_rng(0)
    compiled = ImplicitKernels(system, f"test {name}", formulation.residual)
    context = kernels(system).context(system)
    size, residual = compiled.size, compiled.residual
    start = hn.mechanisms.get(mechanism)
    Y = np.concatenate(
        [start.q0, start.v0 + 0.1 * random.normal(size=system.n), random.normal(size=size - 2 * system.n)]
    )
    y, cj = np.concatenate([Y, random.normal(size=size)]), 50.0

    def F(y):
        out = np.zeros(size + 1)
        assert run_kernel(compiled.F, 0.2, y, np.zeros(1), context, out) == OK
        return out[:size]

    differences = np.zeros((size, size))
    for j in range(size):
        step = np.zeros(2 * size)
        step[j], step[size + j] = 1e-6, cj * 1e-6
        differences[:, j] = (F(y + step) - F(y - step)) / 2e-6
    scaled, factors = np.zeros(size**2 + 1), np.zeros(compiled.factor_count + 1)
    run_kernel(compiled.matrix, 0.2, y, np.append(cj, np.zeros(compiled.size)), context, scaled)
    matrix = (
        (cj**-residual.row_powers)[:, None] * scaled[:-1].reshape(size, size) * cj**-residual.column_powers
    )
    np.testing.assert_allclose(matrix, differences, atol=1e-6 * np.max(np.abs(differences)))
    assert (
        run_kernel(compiled.factors, 0.2, y, np.append(cj, np.zeros(compiled.size)), context, factors) == OK
    )
    right, x = random.normal(size=size), np.zeros(size + 1)
    run_kernel(compiled.solution, 0.0, right, factors, context, x)
    expected = np.linalg.solve(matrix, right)
    np.testing.assert_allclose(x[:size], expected, rtol=1e-5, atol=1e-8 * np.max(np.abs(expected)))


@pytest.mark.parametrize("name", ["index3", "index2"])
def test_condition_of_the_scaled_matrix_does_not_grow(name):
    system = hn.mechanisms.get("slider_crank_unequal").system
    mechanism = hn.mechanisms.get("slider_crank_unequal")
    compiled = ImplicitKernels(system, f"condition {name}", FORMULATIONS[name].residual)
    context = kernels(system).context(system)
    y = np.zeros(2 * compiled.size)
    y[:6] = mechanism.q0
    conditions = []
    for cj in (1e2, 1e4, 1e6, 1e8):
        out = np.zeros(compiled.size**2 + 1)
        run_kernel(compiled.matrix, 0.0, y, np.append(cj, np.zeros(compiled.size)), context, out)
        conditions.append(np.linalg.cond(out[:-1].reshape(compiled.size, -1)))
    assert max(conditions) < 3 * min(conditions) < 1e4


def counts_on_the_stiff_spring(star, tolerance, eps=1e-4, first_step=None):
    mechanism = hn.mechanisms.stiff_spring(eps=eps)
    formulation = hn.GGL(error_test="q", newton_test="qv" if star else "all")
    method = hn.Method(formulation, hn.BDF.dassl(max_order=2))
    sol = hn.solve(
        mechanism.system,
        (0, 0.05),
        [0.04471, -0.999],
        mechanism.v0,
        method=method,
        rtol=tolerance,
        atol=tolerance,
        first_step=first_step,
    )
    return [sol.steps, sol.nfev, sol.njev, sol.error_failures, sol.newton_failures]


@pytest.mark.parametrize(
    ("tolerance", "counts"), [(1e-3, [90, 307, 55, 10, 0]), (1e-4, [841, 2561, 355, 82, 0])]
)
def test_counts_of_a_second_implementation_of_dassl(tolerance, counts):
    """Steps, evaluations, Jacobians and failures of GGL, against a re-implementation of DASSL that was
    checked against the original.
    """
    assert counts_on_the_stiff_spring(False, tolerance) == pytest.approx(counts, rel=0.15)


@pytest.mark.parametrize(
    ("star", "tolerance", "eps", "counts"),
    [
        (False, 1e-3, 1e-4, [109, 383, 56, 13, 0]),
        (False, 1e-3, 1e-5, [105, 416, 68, 11, 0]),
        (False, 1e-4, 1e-4, [822, 2534, 337, 78, 0]),
        (True, 1e-3, 1e-4, [109, 337, 45, 13, 0]),
        (True, 1e-3, 1e-5, [105, 387, 47, 12, 0]),
        (True, 1e-4, 1e-4, [818, 2572, 242, 82, 0]),
    ],
)
def test_published_counts(star, tolerance, eps, counts):
    """Table 5.2 of Yen & Petzold with a first step of 1e-6, which the paper does not give; GGL* extrapolates
    its multipliers here.
    """
    assert counts_on_the_stiff_spring(star, tolerance, eps, 1e-6) == pytest.approx(counts, rel=0.02)


@pytest.mark.parametrize("method", ["ggl", "index2", "bdf"])
def test_andrews_without_tolerances_for_multipliers(method):
    mechanism = hn.mechanisms.andrews()
    reference = np.concatenate([mechanism.reference.q, mechanism.reference.v])
    errors = []
    tolerances = 10.0 ** -np.arange(4.0, 9.5)
    for tolerance in tolerances:
        sol = hn.solve(
            mechanism.system,
            (0, 0.03),
            mechanism.q0,
            mechanism.v0,
            method=method,
            rtol=tolerance,
            atol=tolerance,
        )
        assert sol.success, sol.message
        errors.append(np.max(np.abs(sol.y[:, -1] - reference) / (1 + np.abs(reference))))
    assert np.polyfit(np.log(tolerances), np.log(errors), 1)[0] > 0.75
    assert errors[-1] < 1e-4


@pytest.mark.parametrize("method", ["bdf", "ggl", "ggl*", "index2", "index3", "index1", "baumgarte"])
def test_dense_output_t_eval_and_events(method):
    mechanism = hn.mechanisms.pendulum(theta0=1.0)
    times = np.linspace(0, 3, 50)
    options = {"method": method, "rtol": 1e-7, "atol": 1e-8}
    sol = hn.solve(mechanism.system, (0, 3), mechanism.q0, mechanism.v0, dense_output=True, **options)
    only = hn.solve(
        mechanism.system,
        (0, 3),
        mechanism.q0,
        mechanism.v0,
        t_eval=times,
        events=hn.Event(lambda q: q[0]),
        **options,
    )
    q, v = sol.sol(times)
    exact = mechanism.exact(times)
    error = 5e-3 if method == "index3" else 2e-4
    assert np.max(np.abs(q - exact[0])) < error
    np.testing.assert_allclose(only.t, times)
    assert np.max(np.abs(only.q - q)) < 1e-6
    inside = slice(1, -1)
    if method in ("index1", "index2", "baumgarte"):
        return
    assert np.max(np.abs(q[0] ** 2 + q[1] ** 2 - 1)[inside]) < 1e-10
    assert np.max(np.abs(q[0] * v[0] + q[1] * v[1])[inside]) < 1e-10
    quarter = hn.solve(
        mechanism.system,
        (0, 3),
        mechanism.q0,
        mechanism.v0,
        rtol=1e-11,
        atol=1e-12,
        events=hn.Event(lambda q: q[0]),
    ).t_events[0]
    assert only.t_events[0].size == quarter.size
    np.testing.assert_allclose(only.t_events[0], quarter, atol=error)


@pytest.mark.parametrize("eps", [1e-4, 1e-6, 1e-8])
def test_smooth_motion_needs_no_more_steps_as_the_spring_stiffens(eps):
    mechanism = hn.mechanisms.stiff_spring(eps=eps)
    sol = hn.solve(
        mechanism.system, (0, 0.05), mechanism.q0, mechanism.v0, motion="smooth", rtol=1e-3, atol=1e-3
    )
    assert sol.success
    assert sol.steps <= 150
    assert "energy" in sol.message


def test_backward_in_time_and_history():
    mechanism = hn.mechanisms.double_pendulum()
    there = hn.solve(
        mechanism.system, (0, 1), mechanism.q0, mechanism.v0, method="ggl", rtol=1e-9, atol=1e-10
    )
    back = hn.solve(
        mechanism.system,
        (1, 0),
        there.q[:, -1],
        there.v[:, -1],
        method="ggl",
        rtol=1e-9,
        atol=1e-10,
        repair=True,
    )
    np.testing.assert_allclose(back.q[:, -1], mechanism.q0, atol=1e-6)
    assert set(np.unique(there.history.order)) <= {1, 2, 3, 4, 5}
    assert there.history.order.max() == 5
    assert there.steps == there.history.h.size
    assert "Jacobians" in str(there)


def test_what_does_not_go_together_is_refused():
    with pytest.raises(TypeError, match="BDF"):
        hn.Method(hn.GGL(), hn.RungeKutta("dopri5"))
    with pytest.raises(ValueError, match="max_order"):
        hn.BDF(max_order=7)
    with pytest.raises(ValueError, match="motion"):
        hn.solve(hn.mechanisms.pendulum().system, (0, 1), [1, 0], motion="slow")
    with pytest.raises(ValueError, match="method"):
        hn.solve(hn.mechanisms.pendulum().system, (0, 1), [1, 0], motion="smooth", method="ggl")


@pytest.mark.parametrize(
    "method", ["index3", "index2", "index1", "ggl", "ggl*", "baumgarte", "bdf", "cs", "cm"]
)
def test_redundant_rows(method):
    """A row twice, and a third bar of a parallelogram, which follows from the others on the manifold only."""
    once, twice = (hn.System(np.eye(2), [0.0, -9.81], lambda q, k=k: np.full(k, q @ q - 1)) for k in (1, 2))
    a, b = (
        hn.solve(system, (0, 2), [0.8, -0.6], method=method, rtol=1e-7, atol=1e-7) for system in (once, twice)
    )
    assert b.success, b.message
    np.testing.assert_allclose(b.q[:, -1], a.q[:, -1], atol=1e-5)
    np.testing.assert_allclose(b.lam.sum(axis=0)[-1], a.lam[0, -1], rtol=1e-3)
    at = np.array([-0.5, 0.0, 0.5])
    beams = [
        hn.System(
            [1.0, 1.0, 0.1],
            [0.0, -9.81, 0.0],
            lambda q, at=at: (q[0] + at * np.cos(q[2]) - at) ** 2 + (q[1] + at * np.sin(q[2])) ** 2 - 1,
        )
        for at in (at, at[::2])
    ]
    beam, lean = (
        hn.solve(system, (0, 1), [0.6, -0.8, 0], method=method, rtol=1e-7, atol=1e-7) for system in beams
    )
    assert beam.success, beam.message
    np.testing.assert_allclose(beam.q[:, -1], lean.q[:, -1], atol=1e-4)


def test_what_redundant_rows_cannot_have():
    """The underlying ODE needs independent rows; a singular position is no redundancy."""
    twice = hn.System(np.eye(2), [0.0, -9.81], lambda q: np.full(2, q @ q - 1))
    with pytest.raises(hn.SingularSystem, match="1 of 2 rows"):
        hn.solve(twice, (0, 1), [1, 0], method=hn.Method(hn.UnderlyingODE(), hn.BDF()))
    crossing = hn.System(np.ones(3), [0.3, 0.0, 0.0], lambda q: np.array([q[2], q[0] * q[1] + q[2]]))
    with pytest.raises(hn.SingularSystem, match="singular position"):
        hn.solve(crossing, (0, 1), [0, 0, 0], [1, 0, 0], method="ggl")


@pytest.mark.parametrize("method", ["bdf", "ggl", "index2", "index3", "index1", "baumgarte"])
def test_moving_and_non_holonomic_constraints(method):
    """A bead on a rod that turns at a constant rate moves as r = cosh(t); a skate without force runs straight
    on.
    """
    rod = hn.System(np.eye(2), [0.0, 0.0], lambda t, q: q[1] * np.cos(t) - q[0] * np.sin(t))
    sol = hn.solve(rod, (0, 2), [1.0, 0.0], [0.0, 1.0], method=method, rtol=1e-8, atol=1e-9)
    assert sol.success, sol.message
    assert np.hypot(*sol.q[:, -1]) == pytest.approx(np.cosh(2.0), rel=1e-3 if method == "index3" else 1e-5)
    skate = hn.System(
        [1.0, 1.0, 0.1],
        [0.0, 0.0, 0.0],
        velocity_constraint=lambda q, v: v[0] * np.sin(q[2]) - v[1] * np.cos(q[2]),
    )
    sol = hn.solve(
        skate, (0, 2), [0.0, 0.0, 0.5], [np.cos(0.5), np.sin(0.5), 0.7], method=method, rtol=1e-8, atol=1e-9
    )
    assert sol.success, sol.message
    assert sol.q[2, -1] == pytest.approx(0.5 + 1.4, abs=1e-5)
    assert np.hypot(*sol.v[:2, -1]) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("name", ["pendulum", "slider_crank_unequal", "andrews", "four_bar"])
def test_projected_bdf_holds_the_constraints_at_every_point(name):
    mechanism = hn.mechanisms.get(name)
    sol = hn.solve(mechanism.system, mechanism.t_span, mechanism.q0, mechanism.v0, method="bdf", rtol=1e-6)
    position, velocity = sol.drift
    assert position < 1e-12
    assert velocity < 1e-11 * max(1.0, np.max(np.abs(sol.v)))


def test_only_the_tangential_part_of_a_perturbation_is_propagated():
    """Eich 1993, section 3: a start that is off the circle by 1e-4 ends on the same motion."""
    mechanism = hn.mechanisms.pendulum(theta0=1.0)
    options = {"method": "bdf", "rtol": 1e-9, "atol": 1e-11}
    exact = hn.solve(mechanism.system, (0, 2), mechanism.q0, mechanism.v0, **options)
    off = hn.solve(mechanism.system, (0, 2), mechanism.q0 * (1 + 1e-4), mechanism.v0, **options)
    assert np.max(np.abs(exact.y[:, -1] - off.y[:, -1])) < 1e-8


@pytest.mark.parametrize("integrator", [hn.RungeKutta("dopri5"), hn.RungeKutta("dop853"), hn.BDF()])
def test_baumgarte_bounds_the_drift(integrator):
    """With any integrator and without choosing parameters; plain index 1 drifts on."""
    mechanism = hn.mechanisms.pendulum()

    def drift(formulation):
        sol = hn.solve(
            mechanism.system,
            (0, 20),
            mechanism.q0,
            mechanism.v0,
            method=hn.Method(formulation, integrator),
            rtol=1e-5,
            atol=1e-6,
        )
        assert sol.success, sol.message
        return np.abs(sol.g[0])

    plain, stabilised = drift(hn.Index1()), drift(hn.Baumgarte())
    assert stabilised.max() < 0.1 * plain.max()
    assert stabilised[-stabilised.size // 4 :].max() < 3 * stabilised[: stabilised.size // 4].max()


@pytest.mark.parametrize("method", ["bdf", "ggl", "index2", "index3"])
def test_coordinate_without_mass(method):
    """The mass matrix is singular, so the elimination without pivoting hands over to the dense one."""
    system = hn.System(
        [1.0, 1.0, 0.0],
        lambda q: np.array([0.0, -9.81, -5 * q[2]]),
        lambda q: np.array([q[0] - np.sin(q[2]), q[1] + np.cos(q[2])]),
    )
    start = [1.0, 0.0, np.pi / 2]
    reference = hn.solve(system, (0, 3), start, rtol=1e-10, atol=1e-11)
    sol = hn.solve(system, (0, 3), start, method=method, rtol=1e-7, atol=1e-8)
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.q[:, -1], reference.q[:, -1], atol=1e-4)


@pytest.mark.parametrize(("name", "loses"), [("index3", True), ("index2", False), ("ggl", False)])
def test_index_3_loses_the_multipliers_where_the_step_changes(name, loses):
    """Implicit Euler: positions keep order one, but in index 3 the multiplier of a step that differs from the
    one before is wrong by O(1), however small the steps.

    The steps are h/2, h, h, …, and a last one that meets the end.
    """
    mechanism, errors = hn.mechanisms.pendulum(theta0=1.0), []
    for h in (4e-3, 2e-3, 1e-3):
        method = hn.Method(FORMULATIONS[name], hn.BDF(max_order=1, newton_tolerance=1e-12, rate_floor=1.0))
        sol = hn.solve(
            mechanism.system,
            (0, 0.2),
            mechanism.q0,
            mechanism.v0,
            method=method,
            rtol=0.5,
            atol=1.0,
            first_step=h / 2,
            max_step=h,
        )
        q, _, lam = mechanism.exact(sol.t)
        errors.append((np.max(np.abs(sol.q - q)), np.max(np.abs(sol.lam - lam))))
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.all(np.abs(orders[:, 0] - 1) < 0.1)
    if loses:
        assert np.all(np.abs(orders[:, 1]) < 0.1)
        assert errors[-1][1] > 0.1
    else:
        assert np.all(np.abs(orders[:, 1] - 1) < 0.1)


@pytest.mark.parametrize("method", ["bdf", "ggl", "dop853"])
def test_wanted_times_before_a_terminal_event_in_the_same_step(method):
    mechanism, times = hn.mechanisms.pendulum(theta0=1.0), np.linspace(0, 3, 3001)
    sol = hn.solve(
        mechanism.system,
        (0, 3),
        mechanism.q0,
        mechanism.v0,
        method=method,
        rtol=1e-8,
        atol=1e-9,
        t_eval=times,
        events=hn.Event(lambda q: q[0], terminal=True),
    )
    assert sol.status == 1
    assert sol.t[-1] <= sol.t_events[0][0] < sol.t[-1] + 1.1e-3
    np.testing.assert_allclose(sol.q, mechanism.exact(sol.t)[0], atol=1e-5)


@pytest.mark.parametrize("method", ["bdf", "ggl", "cm", "index1", "dopri5", "dop853", "auto"])
def test_rows_that_are_redundant_on_the_manifold_only(method):
    """The second row is the first times a function; off the manifold they are only nearly dependent."""
    system = hn.System(
        np.eye(2),
        [0.0, -9.81],
        lambda q: np.array([q @ q - 1, (q @ q - 1) * (2 + q[0])]),
        potential=lambda q: 9.81 * q[1],
    )
    single = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1)
    exact = hn.solve(single, (0, 2), [1, 0], rtol=1e-11, atol=1e-11)
    sol = hn.solve(system, (0, 2), [1, 0], method=method, rtol=1e-6, atol=1e-8)
    assert sol.success, sol.message
    assert sol.steps < 1000
    np.testing.assert_allclose(sol.q[:, -1], exact.q[:, -1], atol=1e-3)


@pytest.mark.parametrize("method", ["ggl", "bdf", "cs", "index1"])
def test_rows_that_were_redundant_for_a_while_only(method):
    """They agree at the start and at the end, not in between."""
    system = hn.System(
        np.eye(2),
        [0.0, -9.81],
        lambda t, q: np.array(
            [
                q[0] - np.sin(t),
                q[0] - np.sin(t) - 2 * np.maximum(0, t - 0.5) ** 3 * np.maximum(0, 1.5 - t) ** 3,
            ]
        ),
    )
    sol = hn.solve(system, (0, 2), [0, 0], [1, 0], method=method)
    assert not sol.success
    assert "constraint[1]" in sol.message or "contradict" in sol.message


@pytest.mark.parametrize(
    "method",
    [
        "baumgarte",
        hn.Method(hn.Baumgarte(10.0, 10.0), hn.BDF()),
        hn.Method(hn.Baumgarte(), hn.RungeKutta("dopri5")),
    ],
)
def test_baumgarte_backward_in_time(method):
    pendulum = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1)
    sol = hn.solve(pendulum, (0, -1), [1, 0], method=method)
    exact = hn.solve(pendulum, (0, -1), [1, 0], rtol=1e-10)
    np.testing.assert_allclose(sol.q[:, -1], exact.q[:, -1], atol=1e-3)


def test_drift_is_not_hidden_between_steps():
    pendulum = hn.mechanisms.pendulum()
    for projection, (low, high) in {None: (1e-9, 1.0), True: (0.0, 1e-14)}.items():
        sol = hn.solve(
            pendulum.system,
            (0, 20),
            pendulum.q0,
            method="index1",
            t_eval=np.linspace(0, 20, 41),
            projection=projection,
        )
        assert low <= sol.drift[0] < high


@pytest.mark.parametrize("integrator", [hn.BDF(), hn.RungeKutta("dopri5")])
@pytest.mark.parametrize("projection", [None, True])
def test_baumgartes_parameters_compile_nothing(integrator, projection):
    pendulum = hn.mechanisms.pendulum()
    given = {"method": hn.Method(hn.Baumgarte(), integrator), "projection": projection}
    hn.solve(pendulum.system, (0, 1), pendulum.q0, **given)
    known = len(pendulum.system.compiled)
    for end in (2.0, 3.0, -1.0):
        sol = hn.solve(pendulum.system, (0, end), pendulum.q0, **given)
        assert sol.success
    assert len(pendulum.system.compiled) == known


@pytest.mark.parametrize("alpha", [5.0, 20.0])
@pytest.mark.parametrize("end", [1.0, -1.0])
def test_baumgartes_parameters_act(alpha, end):
    """Off the line x = 0 the acceleration is −2α v − β² x; backwards in time, α has the other sign."""
    point = hn.System(np.eye(2), [0.0, -9.81], lambda q: q[0], names=["x", "y"])
    form = hn.Baumgarte(alpha=alpha, beta=3.0).for_run(end, 0.0)
    context, out = kernels(point).context(point), np.full(5, np.nan)
    point.fill_damping(context, *form.damping)
    assert run_kernel(form.rate(point), 0.0, np.array([0.1, 0.0, 0.2, 1.0]), out, context, out) == OK
    np.testing.assert_allclose(out[2:4], [-2 * alpha * end * 0.2 - 9.0 * 0.1, -9.81], rtol=1e-14)

"""Elastic elements, and the compliant form for smooth motion: against forces written by hand, closed forms,
the rigid limit, and finite differences.
"""

import pickle

import numpy as np
import pytest

import holonome as hn
from holonome.dynamics.kernels import kernels
from holonome.formulations.implicit import ImplicitKernels
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK

ROD = {"mass": [1.0, 1.0, 1 / 12], "force": [0.0, -9.81, 0.0], "names": ["x", "y", "angle"]}
START = np.array([np.sin(1.0) / 2, -np.cos(1.0) / 2, 1.0])
K, D = np.array([[1000.0, 200.0], [200.0, 500.0]]), np.array([[3.0, 1.0], [1.0, 2.0]])
SMOOTH = hn.Method(hn.Compliant(), hn.BDF(max_order=2))


def end_of_rod(q):
    return np.array([q[0] - np.sin(q[2]) / 2, q[1] + np.cos(q[2]) / 2])


def in_frame_of_rod(q):
    x, y = end_of_rod(q)
    return np.array([np.cos(q[2]) * x + np.sin(q[2]) * y, np.cos(q[2]) * y - np.sin(q[2]) * x])


def circle(q):
    return (q @ q - 1) / 2


def from_guide(t, q):
    x, y = q[0] - np.sin(t), q[1] + np.cos(t)
    return np.array([np.sin(t) * x - np.cos(t) * y, np.cos(t) * x + np.sin(t) * y])


def shaken(t, q):
    return end_of_rod(q) - np.array([0.1 * np.sin(3 * t), 0.0])


def by_hand(t, q, v):
    """Bushing at a shaken support, and a torsion spring 4 (φ − 0.2) with damping 0.5."""
    c_q = np.array([[1.0, 0.0, -np.cos(q[2]) / 2], [0.0, 1.0, -np.sin(q[2]) / 2]])
    rate = c_q @ v - np.array([0.3 * np.cos(3 * t), 0.0])
    return np.array([0.0, -9.81, -4.0 * (q[2] - 0.2) - 0.5 * v[2]]) - c_q.T @ (K @ shaken(t, q) + D @ rate)


def shaken_rod(**more):
    elements = [
        hn.Elastic(shaken, K, lambda p: p.damping),
        hn.Elastic(lambda q, p: q[2] - p.rest, lambda p: p.k, 0.5),
    ]
    return hn.System(**ROD, elastic=elements, parameters={"damping": D, "k": 4.0, "rest": 0.2}, **more)


@pytest.mark.parametrize("method", ["dopri5", "dop853", "bdf", "ggl", "index1", "index3"])
def test_elements_are_the_force_written_by_hand(method):
    """Accelerations at random points to rounding; runs at a constant step, so nothing amplifies it."""
    systems, random = (shaken_rod(), hn.System(**ROD | {"force": by_hand})), np.random.default_rng(0)
    for t, q, v in zip(random.random(5), random.normal(size=(5, 3)), random.normal(size=(5, 3)), strict=True):
        found, expected = (hn.consistent(system, q, v, t).a for system in systems)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)
    runs = [hn.solve(system, (0, 0.2), START, method=method, step=5e-4) for system in systems]
    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-9)
    np.testing.assert_allclose(runs[0].v, runs[1].v, atol=1e-7)


@pytest.mark.parametrize(
    "given",
    [
        2.0,
        np.float64(2.0),
        [2.0, 2.0],
        2 * np.eye(2),
        lambda p: p.two,
        lambda p: p.two * np.ones(2),
        lambda p: p.two * np.eye(2),
    ],
)
def test_stiffness_in_all_its_forms(given):
    systems = [
        hn.System([1.0, 1.0], elastic=hn.Elastic(lambda q: q, stiffness, stiffness), parameters={"two": 2.0})
        for stiffness in (given, 2.0)
    ]
    runs = [hn.solve(system, (0, 1), [1.0, 0.5], method="dop853") for system in systems]
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=1e-13)


def test_elements_beside_a_force_that_cannot_be_traced():
    table = {"push": 2.0}
    called = hn.System(
        np.ones(2),
        lambda t, q: np.array([table["push"] * float(t > -1), float(q[1] < 9)]),
        elastic=hn.Elastic(lambda q: q, [3.0, 4.0]),
    )
    traced = hn.System(np.ones(2), [2.0, 1.0], elastic=hn.Elastic(lambda q: q, [3.0, 4.0]))
    assert called.paths["force"] in ("numba", "python")
    for method in ("dop853", SMOOTH):
        runs = [hn.solve(system, (0, 1), [0.5, 0.2], method=method) for system in (called, traced)]
        np.testing.assert_allclose(runs[0].q[:, -1], runs[1].q[:, -1], atol=1e-6)
    assert hn.solve(called, (0, 1), [0.5, 0.2], motion="smooth").success


def test_energy_of_the_elements_is_added_to_the_potential():
    spring = hn.Elastic(lambda q: np.sqrt(q @ q) - 1, 50.0)
    sol = hn.solve(
        hn.System(np.eye(2), [0.0, -1.0], elastic=spring, potential=lambda q: q[1]),
        (0, 3),
        [1.2, 0.0],
        rtol=1e-10,
    )
    np.testing.assert_allclose(sol.energy, 50 * 0.2**2 / 2, atol=1e-7)
    np.testing.assert_allclose(
        hn.solve(hn.System(np.eye(2), elastic=spring), (0, 3), [1.2, 0.0], rtol=1e-10).energy, 1.0, atol=1e-7
    )
    assert not hn.System(np.eye(2), [0.0, -1.0], elastic=spring).has_energy


def test_pickle_parameters_and_description():
    system = shaken_rod(potential=lambda q: 9.81 * q[1])
    copy = pickle.loads(pickle.dumps(system))
    for chosen in ("dop853", SMOOTH):
        runs = [hn.solve(s, (0, 1), START, method=chosen, parameters={"k": 7.0}) for s in (system, copy)]
        np.testing.assert_allclose(runs[0].q[:, -1], runs[1].q[:, -1], atol=1e-8)
        np.testing.assert_allclose(runs[0].energy[-1], runs[1].energy[-1], atol=1e-7)
    stiffer = system.with_parameters(k=7.0)
    assert stiffer.compiled is system.compiled
    before = len(system.compiled)
    hn.solve(stiffer, (0, 1), START, method="dop853")
    assert len(system.compiled) == before
    assert "elastic[1].stiffness" in str(system)
    single = hn.System([1.0], elastic=hn.Elastic(lambda q: q[0], 2.0))
    assert "elastic.deformation" in str(single)
    assert str(pickle.loads(pickle.dumps(single))).count("elastic.deformation") == 1


@pytest.mark.parametrize(
    ("element", "message"),
    [
        ({"stiffness": [1.0, 2.0, 3.0]}, r"elastic.stiffness has shape \(3,\); its deformation has 2 rows"),
        ({"stiffness": np.eye(3)}, "elastic.stiffness has shape"),
        ({"stiffness": -1.0}, "elastic.stiffness: must have no negative eigenvalue"),
        ({"stiffness": [[1.0, 2.0], [2.0, 1.0]]}, "no negative eigenvalue"),
        ({"stiffness": [[1.0, 2.0], [3.0, 4.0]]}, "elastic.stiffness: must be symmetric"),
        ({"stiffness": np.inf}, "stiffness: inf; give a finite"),
        ({"stiffness": "steel"}, "stiffness: 'steel'; give a finite real number"),
        ({"stiffness": lambda q: q[0]}, "argument 'q' is not known"),
        ({"damping": -1.0}, "elastic.damping: must have no negative"),
        ({"deformation": lambda q, v: q[:2]}, "argument 'v' is not known"),
        ({"deformation": lambda q: np.ones((2, 2))}, "elastic.deformation has shape"),
        (
            {"deformation": lambda q: [float(q[0]), 0.0]},
            r"elastic.deformation: cannot be traced .* make it part of force",
        ),
        ({"deformation": 1.0}, "deformation: 1.0 is not callable"),
    ],
)
def test_bad_elements_are_refused_by_name(element, message):
    with pytest.raises(hn.ModelError, match=message):
        hn.System(**ROD, elastic=hn.Elastic(**{"deformation": end_of_rod, "stiffness": 1.0} | element))


def test_other_bad_input():
    with pytest.raises(hn.ModelError, match=r"give an hn\.Elastic or a list"):
        hn.System(**ROD, elastic=lambda q: q)
    with pytest.raises(hn.ModelError, match=r"elastic\[0\].stiffness: must have no negative"):
        hn.System(
            **ROD, elastic=[hn.Elastic(end_of_rod, lambda p: p.k)], parameters={"k": 1.0}
        ).with_parameters(k=-1.0)
    with pytest.raises(ValueError, match="slack"):
        hn.Compliant(slack=2.0)
    with pytest.raises(hn.ModelError, match="force: missing"):
        hn.System([1.0])


def test_newton_matrix_is_the_derivative_of_the_residual():
    system, random = shaken_rod(constraint=lambda t, q: q[0] - q[1] ** 2 - t), np.random.default_rng(0)
    compiled = ImplicitKernels(system, "test compliant", hn.Compliant().residual)
    context = kernels(system).context(system)
    size, cj = compiled.size, 50.0
    y, tolerances = random.normal(size=2 * size), [0.1, 0.2, 0.3]

    def F(y):
        out = np.zeros(size + 1)
        assert run_kernel(compiled.F, 0.2, y, np.array([cj, *tolerances]), context, out) == OK
        return out[:size]

    differences = np.array(
        [(F(y + step) - F(y - step)) / 2e-6 for step in np.hstack([np.eye(size), cj * np.eye(size)]) * 1e-6]
    ).T
    scaled, residual = np.zeros(size**2 + 1), compiled.residual
    run_kernel(
        compiled.matrix, 0.2, y, np.array([cj, *np.zeros(residual.multipliers), *tolerances]), context, scaled
    )
    matrix = (
        (cj**-residual.row_powers)[:, None] * scaled[:-1].reshape(size, size) * cj**-residual.column_powers
    )
    np.testing.assert_allclose(matrix, differences, atol=1e-6 * np.max(np.abs(differences)))


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_order_at_constant_step(order):
    """Order k for q and v with springs and dampers of moderate stiffness, one of them at a moving support.
    The springs in series move that by a thousandth of the tolerance.
    """
    system = shaken_rod()
    counts = {1: (1600, 3200), 2: (400, 800), 3: (200, 400), 4: (200, 400), 5: (240, 480)}[order]
    exact = hn.solve(system, (0, 0.5), START, method="dop853", rtol=1e-13, atol=1e-13).y[:, -1]
    errors = []
    for count in counts:
        integrator = hn.BDF(max_order=order, step=0.5 / count, order=order, newton_tolerance=1e-6)
        plain, usual = (
            hn.solve(system, (0, 0.5), START, method=hn.Method(form, integrator), rtol=1e-5, atol=1e-5).y[
                :, -1
            ]
            for form in (hn.Compliant(slack=0), hn.Compliant())
        )
        errors.append(np.abs(plain - exact).reshape(2, 3).max(axis=1))
        assert np.max(np.abs(plain - usual)[:3]) < 1e-7
    orders = np.log2(errors[0] / errors[1])
    assert np.all(orders > order - 0.3), (orders, errors)


def test_a_soft_system_is_solved_to_tolerance():
    """Two masses and springs of stiffness 2 and 3: closed form by eigenvectors; the error falls with the
    tolerance.
    """
    stiffness = np.array([[5.0, -3.0], [-3.0, 3.0]])
    system = hn.System(
        np.eye(2), elastic=[hn.Elastic(lambda q: q[0], 2.0), hn.Elastic(lambda q: q[1] - q[0], 3.0)]
    )
    squares, modes = np.linalg.eigh(stiffness)
    errors = []
    for tolerance in (1e-4, 1e-6, 1e-8):
        sol = hn.solve(system, (0, 5), [1.0, 0.5], motion="smooth", rtol=tolerance, atol=tolerance)
        exact = modes @ (np.cos(np.sqrt(squares)[:, None] * sol.t) * (modes.T @ [1.0, 0.5])[:, None])
        errors.append(np.max(np.abs(sol.q - exact)))
    assert errors[0] < 0.1
    assert errors[2] < errors[1] / 10 < errors[0] / 100


def driven(eps):
    """The solution is q = (sin t, −cos t): the guide itself."""
    element = hn.Elastic(from_guide, lambda p: p.k)
    system = hn.System(
        np.ones(2), constraint=circle, elastic=element, parameters={"k": np.array([1 / eps**2, 1 / eps])}
    )
    return system, 10.0, np.array([0.0, -1.0]), np.array([1.0, 0.0])


def bushing(deformation):
    def make(eps):
        return (
            hn.System(
                **ROD,
                elastic=hn.Elastic(deformation, lambda p: p.k),
                parameters={"k": np.array([1.0, 0.1]) / eps**2},
            ),
            5.0,
            START,
            np.zeros(3),
        )

    return make


RIGID = {
    "driven": hn.System(np.ones(2), np.zeros(2), lambda t, q: np.array([circle(q), from_guide(t, q)[1]])),
    "bushing": hn.System(**ROD, constraint=end_of_rod),
}
RIGID["turning"] = RIGID["bushing"]
STIFF = {"driven": driven, "bushing": bushing(end_of_rod), "turning": bushing(in_frame_of_rod)}


@pytest.mark.slow
@pytest.mark.parametrize("name", STIFF)
def test_steps_are_those_of_the_rigid_limit_and_the_error_falls_with_the_tolerance(name):
    """ε = 1e-2 … 1e-10.  The slow motion differs from the rigid one by O(ε²) for the bushings, and not at all
    for the driven point.  At ε ≥ 1e-3 an explicit method takes over, which keeps the small
    oscillation that the form for smooth motion has left it.
    """
    previous = np.inf
    for tolerance in (1e-3, 1e-4, 1e-6):
        options = {"rtol": tolerance, "atol": tolerance}
        _, t_end, q0, v0 = STIFF[name](1.0)
        limit = hn.solve(
            RIGID[name],
            (0, t_end),
            q0,
            v0,
            method=hn.Method(hn.GGL(error_test="q"), hn.BDF(max_order=2)),
            **options,
        )
        fine = (
            hn.solve(RIGID[name], (0, t_end), q0, v0, rtol=1e-10, atol=1e-11, dense_output=True)
            if name != "driven"
            else None
        )
        errors = []
        for exponent in range(2 if name == "driven" else 4, 11):
            sol = hn.solve(STIFF[name](10.0**-exponent)[0], (0, t_end), q0, v0, motion="smooth", **options)
            assert sol.success, sol.message
            assert sol.steps <= 1.3 * limit.steps, (tolerance, exponent)
            assert len(sol.history.rejected) <= 0.1 * sol.steps
            errors.append(
                np.max(
                    np.abs(
                        sol.q
                        - (np.array([np.sin(sol.t), -np.cos(sol.t)]) if fine is None else fine.sol(sol.t)[0])
                    )
                )
            )
        at_limit = np.max(
            np.abs(
                limit.q
                - (np.array([np.sin(limit.t), -np.cos(limit.t)]) if fine is None else fine.sol(limit.t)[0])
            )
        )
        assert max(errors[-5:]) <= 1.5 * at_limit
        assert max(errors[-7:]) < 0.7 * previous
        assert name != "driven" or max(errors) < 10 * tolerance
        previous = max(errors[-7:])


def test_a_start_on_the_slow_motion_of_a_soft_bushing():
    """ε = 1e-2, where the bushing gives by millimetres: against a run that resolves everything, both from the
    relaxed start.
    """
    system, k = STIFF["bushing"](1e-2)[0], np.array([1e4, 1e3])
    loads = hn.consistent(RIGID["bushing"], START).lam / k
    relaxed = hn.consistent(
        hn.System(**ROD, constraint=lambda q, p: end_of_rod(q) - p.c, parameters={"c": loads}),
        START,
        repair=True,
    ).q
    fine = hn.solve(system, (0, 5), relaxed, method="dop853", rtol=1e-10, atol=1e-12, dense_output=True)
    errors = []
    for tolerance in (1e-3, 1e-4, 1e-6):
        sol = hn.solve(system, (0, 5), relaxed, motion="smooth", rtol=tolerance, atol=tolerance)
        errors.append(np.max(np.abs(sol.q - fine.sol(sol.t)[0])))
    assert errors[2] < 3e-3
    assert errors[2] < errors[1] / 4 < errors[0] / 8


def test_prestressed_elements_keep_their_balance():
    """Two springs against each other, k₁ (x + 1) + k₂ (x − 1) = 0, loaded by 10¹²: no regularisation may
    replace their stiffnesses by equal ones.
    """
    k = np.array([1e12, 3e12])
    system = hn.System(
        np.ones(2),
        elastic=[hn.Elastic(lambda q: np.array([q[0] + 1, q[0] - 1]), k), hn.Elastic(lambda q: q[1], 1.0)],
    )
    sol = hn.solve(system, (0, 5), [0.5, 1.0], motion="smooth", rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(sol.q[0], 0.5, atol=1e-7)
    np.testing.assert_allclose(sol.q[1], np.cos(sol.t), atol=1e-3)


def test_repeated_elements_and_dampers_beyond_all_bounds():
    """Three bushings in one place, one with huge damping, on a rod that is pinned there as well: nothing but
    the pendulum is left.
    """
    elements = [
        hn.Elastic(end_of_rod, 1e20),
        hn.Elastic(in_frame_of_rod, 1e16, 1e18),
        hn.Elastic(end_of_rod, 0.0, 1e15),
    ]
    smooth = hn.Method(hn.Compliant(), hn.BDF(max_order=2))
    runs = [
        hn.solve(system, (0, 2), START, rtol=1e-5, atol=1e-5, **choice)
        for system, choice in (
            (hn.System(**ROD, constraint=end_of_rod), {"method": smooth}),
            (hn.System(**ROD, constraint=end_of_rod, elastic=elements), {"motion": "smooth"}),
        )
    ]
    assert runs[1].success
    assert runs[1].steps <= 1.3 * runs[0].steps
    fine = hn.solve(RIGID["bushing"], (0, 2), START, rtol=1e-10, atol=1e-11)
    assert (
        np.max(np.abs(runs[1].q[:, -1] - fine.q[:, -1]))
        < 1.5 * np.max(np.abs(runs[0].q[:, -1] - fine.q[:, -1])) + 1e-5
    )


def test_an_element_without_stiffness_and_a_massless_coordinate():
    """The angle has no mass: a bushing of stiffness k holds it; and an element that does nothing does
    nothing.
    """
    system = hn.System(
        [1.0, 1.0, 0.0],
        [0.0, -9.81, 0.0],
        lambda q: np.array([q[0] - np.sin(q[2]), q[1] + np.cos(q[2])]),
        elastic=[hn.Elastic(lambda q: q[2], 5.0), hn.Elastic(lambda q: q[0] * q[2], lambda p: p.nothing)],
        parameters={"nothing": 0.0},
    )
    fine = hn.solve(system, (0, 2), [1.0, 0.0, np.pi / 2], method="dop853", rtol=1e-10)
    sol = hn.solve(system, (0, 2), [1.0, 0.0, np.pi / 2], motion="smooth", rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(sol.q[:, -1], fine.q[:, -1], atol=2e-4)


def test_energy_is_told_and_backward_runs_return():
    system, _, q0, v0 = driven(1e-2)
    assert "energy" in hn.solve(system, (0, 1), q0, v0, motion="smooth").message
    soft = shaken_rod()
    there = hn.solve(
        soft, (0, 0.2), START, method=hn.Method(hn.Compliant("qv"), hn.BDF()), rtol=1e-9, atol=1e-10
    )
    back = hn.solve(
        soft,
        (0.2, 0),
        there.q[:, -1],
        there.v[:, -1],
        method=hn.Method(hn.Compliant("qv"), hn.BDF()),
        rtol=1e-9,
        atol=1e-10,
    )
    np.testing.assert_allclose(back.q[:, -1], START, atol=1e-5)


def test_stiffness_hidden_in_the_force_is_told():
    """The rod on its bushing, k = 10¹²: as an element it is solved, as a plain force Newton's method locks
    and the answer is wrong, so the message must say so.
    """
    fine = hn.solve(RIGID["bushing"], (0, 5), START, rtol=1e-9, atol=1e-10).q[:, -1]
    k = np.array([1e12, 1e11])

    def hidden(q):
        c_q = np.array([[1.0, 0.0, -np.cos(q[2]) / 2], [0.0, 1.0, -np.sin(q[2]) / 2]])
        return np.array([0.0, -9.81, 0.0]) - c_q.T @ (k * end_of_rod(q))

    element = hn.solve(
        hn.System(**ROD, elastic=hn.Elastic(end_of_rod, k)),
        (0, 5),
        START,
        motion="smooth",
        rtol=1e-4,
        atol=1e-4,
    )
    plain = hn.solve(
        hn.System(**ROD | {"force": hidden}), (0, 5), START, motion="smooth", rtol=1e-4, atol=1e-4
    )
    assert np.max(np.abs(element.q[:, -1] - fine)) < 0.05
    assert "hn.Elastic" not in element.message
    assert np.max(np.abs(plain.q[:, -1] - fine)) > 0.05
    assert "give its stiff part as hn.Elastic" in plain.message


def test_without_elements_the_form_is_ggl():
    mechanism = hn.mechanisms.slider_crank()
    runs = [
        hn.solve(mechanism.system, (0, 1), mechanism.q0, mechanism.v0, method=hn.Method(form, hn.BDF()))
        for form in (hn.Compliant("qv"), hn.GGL())
    ]
    np.testing.assert_array_equal(runs[0].q, runs[1].q)


@pytest.mark.parametrize("stretch", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("k", [1e6, 1e10])
def test_smooth_motion_begins_on_the_slow_motion_whatever_the_amplitude(k, stretch):
    """A pendulum on a stiff spring, stretched: the steps are those of one that is not, and the way is that of
    a rigid rod.
    """
    system = hn.System(
        np.eye(2),
        [0.0, -9.81],
        elastic=hn.Elastic(lambda q: np.sqrt(q @ q) - 1, k),
        potential=lambda q: 9.81 * q[1],
    )
    rigid = hn.solve(
        hn.System(np.eye(2), [0.0, -9.81], lambda q: np.sqrt(q @ q) - 1), (0, 2), [1, 0], rtol=1e-10
    )
    at_rest, stretched = (hn.solve(system, (0, 2), [1 + s, 0], motion="smooth") for s in (0.0, stretch))
    assert stretched.steps <= 1.1 * at_rest.steps
    np.testing.assert_allclose(stretched.q[:, -1], rigid.q[:, -1], atol=1e-3)
    assert "moved onto the slow motion" in stretched.message
    assert f"went from {k * stretch**2 / 2:.6g}" in stretched.message


def test_a_fast_velocity_is_taken_out_as_well():
    system = hn.System(
        np.eye(2),
        [0.0, -9.81],
        elastic=hn.Elastic(lambda q: np.sqrt(q @ q) - 1, 1e8),
        potential=lambda q: 9.81 * q[1],
    )
    struck, spared = (
        hn.solve(system, (0, 1), [0.6, -0.8], v, motion="smooth")
        for v in ([0.6 + 0.8, -0.8 + 0.6], [0.8, 0.6])
    )
    np.testing.assert_allclose(struck.v[:, 0], [0.8, 0.6], atol=1e-6)
    np.testing.assert_allclose(struck.q[:, -1], spared.q[:, -1], atol=1e-5)


def test_a_rotating_spring_keeps_its_stretch():
    """The slow motion of a mass on a spring that turns is a circle whose radius balances the centrifugal
    force.
    """
    k, omega = 1e5, 10.0
    system = hn.System(
        np.eye(2), elastic=hn.Elastic(lambda q: np.sqrt(q @ q) - 1, k), potential=lambda q: 0.0
    )
    sol = hn.solve(system, (0, 1), [1.01, 0], [0, omega], motion="smooth", rtol=1e-8)
    radius = np.hypot(*sol.q)
    assert np.ptp(radius) < 1e-6
    assert radius[0] - 1 == pytest.approx(radius[0] * (sol.v[1, 0] / radius[0]) ** 2 / k, rel=1e-3)


@pytest.mark.parametrize("length", [2.0, 1000.0])
def test_a_swinging_pendulum_is_not_taken_for_a_fast_oscillation(length):
    system = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1, potential=lambda q: 9.81 * q[1])
    sol = hn.solve(system, (0, length), [1, 0], motion="smooth", max_steps=100)
    np.testing.assert_array_equal(sol.q[:, 0], [1, 0])
    assert "moved" not in sol.message


@pytest.mark.parametrize("as_element", [True, False])
def test_smooth_motion_of_the_spring_of_the_paper_comes_to_rest(as_element):
    """Nothing in this system is slow: released far from its equilibrium, where the spring is still loaded, it
    is found there.
    """
    spring = hn.mechanisms.stiff_spring(eps=1e-8)
    element = hn.Elastic(lambda q: np.sqrt(q[0] ** 2 + (q[1] + 0.5) ** 2) - 0.4, 1e16)
    system = hn.System(np.ones(2), [0.0, -1.0], circle, elastic=element) if as_element else spring.system
    sol = hn.solve(system, spring.t_span, spring.q0, spring.v0, motion="smooth")
    assert sol.steps < 100
    np.testing.assert_allclose(sol.q[:, -1], [0, -1], atol=1e-6)

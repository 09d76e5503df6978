"""Equilibria and steady motion against closed forms; what is none is refused by name."""

import copy
import pickle

import numpy as np
import pytest

import holonome as hn
from analysis.models import G, governor, hanging, hoop, n_pendulum, oscillator, slider_crank
from bodies import published


def test_pendulum_hangs_or_stands():
    system = hn.mechanisms.pendulum().system
    low = hn.equilibrium(system, [0.6, -0.9])
    assert np.allclose(low.q, [0, -1], atol=1e-14)
    assert low.lam == pytest.approx([G / 2])
    assert low.stable
    assert low.hessian == pytest.approx([G])
    high = hn.equilibrium(system, [0.1, 0.99])
    assert np.allclose(high.q, [0, 1], atol=1e-14)
    assert high.stable is False
    assert high.hessian == pytest.approx([-G])
    assert np.sort(high.eigenvalues.real) == pytest.approx([-np.sqrt(G), np.sqrt(G)])


def test_far_guess_finds_an_equilibrium():
    """Five strings thrown about; whatever is found balances."""
    system = n_pendulum(5)
    found = hn.equilibrium(system, np.random.default_rng(0).normal(size=10))
    state = system.at(0, found.q)
    assert np.max(np.abs(state.a)) < 1e-10
    assert np.max(np.abs(state.g)) < 1e-12
    assert np.allclose(found.q[0::2], 0, atol=1e-10)


def test_spring_with_a_load_and_a_free_parameter():
    """k x = push; the push that holds x = 0.3, and the stiffness for which x = 0.3 under a given push."""
    system = oscillator()
    found = hn.equilibrium(system, [0.3], free="push", fixed="x")
    assert found.free == {"push": pytest.approx(2.4)}
    assert found.stable
    found = hn.equilibrium(system, [0.3], free=["k"], fixed=["x"], inputs={"push": 6.0})
    assert found.free["k"] == pytest.approx(20.0)
    assert found.system.parameters["k"] == pytest.approx(20.0)


def test_mechanism_by_name_and_the_torque_that_holds_it():
    """Virtual work: the torque times dA equals the work against gravity."""
    m = slider_crank()
    found = hn.equilibrium(m, start={"A": 0.7, "D": hn.near(1.2)}, fixed="A", free="torque")
    r, length = 0.3, 1.0
    height = lambda A: 0.5 * r * np.sin(A) * 1.2  # noqa: E731 - the rod's centre; the crank's is at A
    expected = G * (height(0.7 + 1e-6) - height(0.7 - 1e-6)) / 2e-6
    assert found.free["torque"] == pytest.approx(expected, rel=1e-8)
    assert found.joint("A").angle[0] == pytest.approx(0.7)
    assert found.reaction("C").force.shape == (2, 1)
    assert length == 1.0


@pytest.mark.parametrize("omega", [4.0, 6.0, 12.0])
def test_watt_governor(omega):
    """cos θ = g/(l Ω²) if Ω² > g/l, else θ = 0; deviations at a free spindle oscillate with

    ω² = Ω² sin² θ (1 + 4 · 2 m l² cos² θ / (J + 2 m l² sin² θ)).
    """
    system, l, m, J = governor(), 0.4, 1.5, 0.2
    found = hn.equilibrium(system, [0.0, 0.9], speed={"phi": omega})
    assert found.moving
    assert found.v == pytest.approx([omega, 0.0])
    theta = np.arccos(min(1.0, G / (l * omega**2)))
    assert abs(found.q[1]) == pytest.approx(theta, abs=1e-9)
    if theta > 0:
        s, c, I = np.sin(theta), np.cos(theta), 2 * m * l**2
        square = omega**2 * s**2 + 4 * I * omega**2 * s**2 * c**2 / (J + I * s**2)
        assert np.max(found.eigenvalues.imag) == pytest.approx(np.sqrt(square), rel=1e-10)
        assert found.stable


def test_upright_governor_is_unstable_above_the_critical_speed():
    for omega, stable in ((4.9, True), (5.0, False)):  # √(g/l) = 4.952
        assert hn.equilibrium(governor(), [0.0, 0.0], speed={"phi": omega}).stable is stable


@pytest.mark.parametrize("spin", [20.0, 44.0, 45.5, 80.0])
def test_sleeping_top(spin):
    """In z-y-x angles; stable where C² ω² > 4 A m g l."""
    A, C, mgl = 0.02, 0.006, 0.9
    critical = 2 * np.sqrt(A * mgl) / C

    def mass(q):
        c = q[1]  # angles a about x, b about y, then the axis: ω = (a′ cos b, b′, spin′ + a′ sin b)
        a = [A * np.cos(c) ** 2 + C * np.sin(c) ** 2, 0, C * np.sin(c)]
        return np.array([a, [0, A, 0], [C * np.sin(c), 0, C]])

    top = hn.System(
        mass,
        lambda q: mgl * np.array([np.sin(q[0]) * np.cos(q[1]), np.cos(q[0]) * np.sin(q[1]), 0.0]),
        names=["a", "b", "spin"],
        inertial="derived",
    )
    found = hn.equilibrium(top, [0.0, 0.0, 0.0], speed={"spin": spin})
    assert found.stable is bool(spin > critical)
    nutation = np.roots([A, 1j * C * spin, -mgl])  # A ζ″ − i C ω ζ′ − m g l ζ = 0 with ζ = e^{λ t}
    expected = np.sort_complex(np.concatenate([nutation, np.conj(nutation)]))
    assert np.allclose(np.sort_complex(found.eigenvalues), expected, atol=1e-9 * np.max(np.abs(expected)))


@pytest.mark.parametrize("speed", [0.5, 3.0, 4.2, 4.4, 5.0, 6.0, 6.1, 8.0, 10.0])
def test_whipple_bicycle(speed):
    """Weave, capsize and castering to 12 digits: Meijaard, Papadopoulos, Ruina & Schwab 2007."""
    motion = {"rear frame": {"velocity": (speed, 0, 0), "angular_velocity": (0, 0, 0)}, "steer": 0.0}
    found = hn.equilibrium(bicycle(), speed=motion)
    expected = published.whipple_eigenvalues(speed)
    assert found.eigenvalues.size == 4
    assert np.allclose(
        np.sort_complex(found.eigenvalues), expected, rtol=0, atol=1e-12 * np.max(np.abs(expected))
    )
    weave, capsize = published.WHIPPLE_SPEEDS["weave"], published.WHIPPLE_SPEEDS["capsize"]
    assert found.stable is (weave < speed < capsize)


def test_eigenvalues_of_the_bicycle_as_published():
    motion = {"rear frame": {"velocity": (7.0, 0, 0), "angular_velocity": (0, 0, 0)}, "steer": 0.0}
    found = np.sort_complex(hn.equilibrium(bicycle(), speed=motion).eigenvalues)
    printed = np.sort_complex(np.array(published.WHIPPLE_EIGENVALUES[7]))
    assert np.allclose(found, printed, rtol=0, atol=1e-12)


_MADE = {}


def bicycle():
    if "bicycle" not in _MADE:
        _MADE["bicycle"] = hn.mechanisms.whipple_bicycle()
    return _MADE["bicycle"]


def test_terminal_velocity_is_a_steady_motion():
    """m g = c v²: the speed is looked for."""
    body = hn.System(2.0, lambda v: -2.0 * G - 0.3 * v * np.abs(v), names=["z"])
    found = hn.equilibrium(body, [5.0], speed={"z": hn.near(-3.0)})
    assert found.v[0] == pytest.approx(-np.sqrt(2 * G / 0.3))
    assert found.stable


def test_drive_that_turns_makes_a_steady_motion():
    m = hn.Mechanism("wheel", gravity=(0, -G))
    wheel = m.body("wheel", 1.0, 0.2)
    m.revolute("A", m.ground.at(0, 0), wheel.at(0, 0))
    m.drive("motor", "A", lambda t: 5 * t)
    found = hn.equilibrium(m)
    assert found.moving
    assert found.v[0] == pytest.approx(5.0)


def test_first_order_states_follow():
    """A motor with a current s: L s′ = −R s − k v + U, spring to the wall."""
    system = hn.System(
        1.0,
        lambda q, s: 2.0 * s - 4.0 * q,
        states={"i": 0.0},
        rate=lambda v, s, u: np.array([(-3.0 * s[0] - 2.0 * v[0] + u.U) / 0.1]),
        inputs={"U": 6.0},
        names=["x"],
    )
    found = hn.equilibrium(system, [0.0])
    assert found.s == pytest.approx([2.0])
    assert found.q == pytest.approx([1.0])
    assert found.stable
    expected = np.roots(np.polyadd(np.polymul([1, 0, 4], [0.1, 3]), [4, 0]))
    assert np.allclose(np.sort_complex(found.eigenvalues), np.sort_complex(expected))


def test_equilibrium_of_an_ode():
    ode = hn.ODE(
        lambda x, p: np.array([x[1], p.a - x[0] ** 2 - x[1]]), names=["x", "y"], parameters={"a": 4.0}
    )
    found = hn.equilibrium(ode, [1.0, 0.3])
    assert found.s == pytest.approx([2.0, 0.0])
    assert found.stable
    assert np.allclose(np.sort_complex(found.eigenvalues), np.sort_complex(np.roots([1, 1, 4])))
    assert hn.equilibrium(ode, [-3.0, 0.0]).stable is False


def test_redundant_rows_share_the_load():
    """A weight on a line that is stated twice: multipliers of least norm, the same equilibrium."""
    system = hn.System(
        [1.0, 1.0],
        [0.0, -G],
        lambda q: np.array([q[1] - q[0] ** 2, 2 * (q[1] - q[0] ** 2)]),
        names=["x", "y"],
    )
    found = hn.equilibrium(system, [0.4, 0.3])
    assert np.allclose(found.q, 0, atol=1e-9)
    assert found.lam == pytest.approx([-G / 5, -2 * G / 5])
    assert found.hessian == pytest.approx([2 * G])
    assert found.stable


def test_black_box_force_has_an_equilibrium():
    def force(q):
        return np.array([-float(str(2.0 * q[0] - 1.0))])

    found = hn.equilibrium(hn.System(1.0, force, names=["x"]), [3.0])
    assert found.q == pytest.approx([0.5], abs=1e-9)
    assert found.stable


def test_black_box_constraint_is_refused_by_name():
    def constraint(q):
        return np.array([float(str(q[0] ** 2 + q[1] ** 2 - 1))])

    system = hn.System([1.0, 1.0], [0.0, -G], constraint, names=["x", "y"])
    with pytest.raises(hn.ModelError, match=r"^constraint: cannot be traced"):
        hn.equilibrium(system, [0.0, -1.0])


def test_free_body_is_neutral():
    found = hn.equilibrium(hn.System([1.0, 1.0], [0.0, 0.0], names=["x", "y"]), [3.0, 4.0])
    assert found.q.tolist() == [3.0, 4.0]
    assert found.stable is None
    assert "neutral" in found.verdict


def test_indeterminate_position_changes_least():
    """A bead on a horizontal rod stays where it is along it."""
    system = hn.System([1.0, 1.0], lambda q: np.array([0.0, -G - 100 * (q[1] - 1)]), names=["x", "y"])
    found = hn.equilibrium(system, [3.0, 4.0])
    assert found.q == pytest.approx([3.0, 1 - G / 100])
    assert found.stable is None
    assert "neutral in x" in found.verdict


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_do_not_matter(unit):
    """A pendulum in nanometres, or with a length of a million kilometres."""
    system = hn.System(
        np.ones(2) * unit,
        lambda q, p: np.array([0.0, -p.g * unit]),
        lambda q, p: q @ q - p.length**2,
        parameters={"g": G, "length": unit},
        names=["x", "y"],
    )
    found = hn.equilibrium(system, [0.6 * unit, -0.7 * unit])
    assert np.allclose(found.q / unit, [0, -1], atol=1e-9)
    assert found.hessian == pytest.approx([G / unit])
    assert found.stable


def test_nothing_balances_is_told():
    with pytest.raises(hn.NoEquilibrium, match=r"nothing balances the force -9.81 along 'y'"):
        hn.equilibrium(hn.System([1.0, 1.0], lambda q: np.array([-q[0], -G]), names=["x", "y"]), [1.0, 0.0])


def test_load_beyond_the_fold_is_told():
    arch = hn.System(1.0, lambda q, p: q - q**3 - p.load, parameters={"load": -1.0}, names=["x"])
    found = hn.equilibrium(arch, [-1.0])  # the branch of −1 has ended, the other goes on
    assert found.q[0] - found.q[0] ** 3 == pytest.approx(-1.0)
    none = hn.System(1.0, lambda q, p: 1 + q * q, names=["x"])
    with pytest.raises(hn.NoEquilibrium, match=r"nothing balances the force 1 along 'x'"):
        hn.equilibrium(none, [0.3])


def test_motion_that_is_not_steady_is_told():
    with pytest.raises(hn.NoEquilibrium, match=r"not further along the motion|was found"):
        hn.equilibrium(hn.System(1.0, lambda q: -np.sin(q), names=["angle"]), [0.0], speed={"angle": 2.0})


def test_contradictory_constraints_are_told():
    two = hn.System([1.0, 1.0], [0.0, -G], lambda q: np.array([q @ q - 1, q @ q - 2]), names=["x", "y"])
    with pytest.raises(hn.NoEquilibrium, match="stays open"):
        hn.equilibrium(two, [1.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"guess": [np.nan]}, "guess"),
        ({"guess": [1.0, 2.0]}, "guess"),
        ({}, "guess: missing"),
        ({"guess": [0.0], "start": {"x": 0.0}}, "guess: start is given"),
        ({"start": {"y": 0.0}}, "start: there is no 'y'"),
        ({"guess": [0.0], "free": ["nonsense"]}, "free: 'nonsense' is no parameter"),
        ({"guess": [0.0], "free": ["x"]}, "free: 'x' is solved for anyway"),
        ({"guess": [0.0], "fixed": ["y"]}, "fixed: there is no 'y'"),
        ({"guess": [0.0], "speed": {"x": np.nan}}, "speed"),
        ({"guess": [0.0], "speed": 3.0}, "speed"),
        ({"guess": [0.0], "t": np.inf}, "t: inf"),
        ({"guess": [0.0], "parameters": {"nonsense": 1.0}}, "parameters: 'nonsense' unknown"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        hn.equilibrium(oscillator(), **arguments)


def test_problems_of_higher_index_are_refused_by_name():
    stokes = hn.Index2System(lambda x: -x, np.ones((2, 1)), lambda x: x[0] + x[1], n=2)
    with pytest.raises(TypeError, match="Index2System is a general problem of higher index"):
        hn.equilibrium(stokes, [0.0, 0.0])
    with pytest.raises(TypeError, match="Index2System"):
        hn.linearize(stokes, [0.0, 0.0])


def test_contacts_are_refused_by_name():
    ball = hn.System(1.0, -G, contacts=hn.Contact(lambda q: q[0], name="floor"), names=["y"])
    with pytest.raises(hn.ModelError, match="contacts: whether floor"):
        hn.equilibrium(ball, [0.1])


def test_parameters_that_are_arrays_can_be_free():
    system = hn.System(
        1.0, lambda q, p: p.k[0] - p.k[1] * q, parameters={"k": np.array([1.0, 2.0])}, names=["x"]
    )
    found = hn.equilibrium(system, [3.0], free=["k"], fixed=["x"])
    assert found.free["k"].shape == (2,)
    assert found.free["k"][0] == pytest.approx(3 * found.free["k"][1])


def test_result_can_be_given_on():
    system = hn.mechanisms.pendulum().system
    found = hn.equilibrium(system, [0.6, -0.9])
    assert hn.equilibrium(system, found).q == pytest.approx(found.q)
    assert np.max(np.abs(found.state.a)) < 1e-14
    sol = hn.solve(system, (0, 1), found.q)
    assert np.max(np.abs(sol.q - found.q[:, None])) < 1e-12
    assert hn.equilibrium(system, sol).q == pytest.approx(found.q)
    assert hn.equilibrium(system, system.at(0, [0.6, -0.8])).q == pytest.approx(found.q)


def test_hoop_above_and_below_the_critical_speed():
    assert hn.equilibrium(hoop(5.0), [0.3]).q == pytest.approx([0.0], abs=1e-9)
    found = hn.equilibrium(hoop(20.0), [0.9])
    assert np.cos(found.q[0]) == pytest.approx(G / 20)
    assert found.stable
    assert hn.equilibrium(hoop(20.0), [0.0]).stable is False
    at_the_branch = hn.equilibrium(hoop(G), [0.0])
    assert at_the_branch.stable is None
    assert "fold or a branch point" in at_the_branch.verdict


def test_large_chain_hangs():
    system = n_pendulum(120)
    found = hn.equilibrium(system, hanging(120))
    assert found.q == pytest.approx(hanging(120))
    assert found.lam[0] == pytest.approx(120 * G / 2)


def test_nothing_can_move():
    system = hn.System([1.0, 1.0], [0.0, -G], lambda q: q - 1, names=["x", "y"])
    found = hn.equilibrium(system, [0.0, 0.0])
    assert found.q.tolist() == [1.0, 1.0]
    assert found.stable
    assert found.lam == pytest.approx([0.0, -G])
    assert len(found.linearize().modes()) == 0


def test_soft_mode_beside_a_stiff_one_is_not_lost():
    def force(q):
        spring = 1e12 * (q[0] - q[1])
        return np.array([-spring - G, spring - G - q[1]])

    found = hn.equilibrium(hn.System([1.0, 1.0], force, names=["x", "y"]), [0.0, 0.0])
    assert found.stable
    assert np.min(found.hessian) == pytest.approx(0.5, rel=1e-2)


def test_threads_on_first_use_agree():
    import threading

    m, found = slider_crank(), []

    def work():
        found.append(hn.equilibrium(m, start={"A": -1.0, "D": hn.near(1.2)}).eigenvalues)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(values, found[0]) for values in found)


def through_a_pickle(found):
    return pickle.loads(pickle.dumps(found))


def test_an_equilibrium_and_its_branch_pickle():
    here = hn.equilibrium(hoop(), [0.1])
    assert copy.deepcopy(here) is here
    other = through_a_pickle(here)
    assert str(other) == str(here)
    branch = other.follow("w2", (5.0, 20.0))
    again = through_a_pickle(branch)
    assert str(again) == str(branch) == str(here.follow("w2", (5.0, 20.0)))
    np.testing.assert_array_equal(again.stable, branch.stable)
    assert [x.stable for x in again.at(15.0)] == [x.stable for x in branch.at(15.0)]


def test_results_of_a_mechanism_pickle_with_what_names_of_bodies_told():
    m = slider_crank()
    rest = hn.equilibrium(m, start={"A": -1.0, "D": hn.near(1.2)})
    lin = rest.linearize(outputs=["A.angle", lambda q: q[0] ** 2])
    for result in (rest, lin, lin.modes()):
        assert str(through_a_pickle(result)) == str(result)
    other = through_a_pickle(lin)
    for name in ("A", "B", "C", "D", "M", "K"):
        np.testing.assert_array_equal(getattr(other, name), getattr(lin, name))
    mode, same = lin.modes()[0], through_a_pickle(lin.modes()[0])
    assert same.shares == mode.shares
    assert same.joints == mode.joints
    np.testing.assert_array_equal(same.run().states, mode.run().states)


def test_an_equilibrium_held_by_name_pickles_and_goes_on():
    m = hn.Mechanism("door", gravity=(0, -G), parameters={"k": 0.0}, inputs={"torque": 0.0})
    rod = m.body("rod", 2.0, 1 / 6, center=(0.5, 0), points={"A": (0, 0)})
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    m.torque("motor", joint="A", law=lambda angle, p, u: u.torque - p.k * angle)
    held = hn.equilibrium(m, start={"A": 0.5}, fixed="A", free="torque")
    other = through_a_pickle(held)
    assert other.free == held.free
    there, same = (x.follow("k", (0.0, 8.0)) for x in (held, other))
    np.testing.assert_array_equal(there.q, same.q)
    assert there[-1].free["torque"] == pytest.approx(G * np.cos(0.5) + 4.0)

"""Inertial terms of a mass matrix that depends on q: derived, contained in force, or asked for."""

import pickle

import numpy as np
import pytest
import sympy as sp
from sympy.physics import mechanics as me

import holonome as hn

TIGHT = {"rtol": 1e-12, "atol": 1e-13}


def polar_mass(q, p):
    return np.array([p.m, p.m * q[0] ** 2])


def centrifugal(q, v, p):
    return p.m * np.array([q[0] * v[1] ** 2, -2 * q[0] * v[0] * v[1]])


def polar(force=(0.0, 0.0), mass=polar_mass, **options):
    return hn.System(
        mass, force, names=["r", "phi"], **({"parameters": {"m": 2.0, "k": 0.0}, "potential": 0.0} | options)
    )


def straight(t):
    """Free motion from (1, 0) with velocity (0, 1)."""
    return np.array([np.hypot(1, t), np.arctan(t)])


def untraceable(function):
    """The same function, hidden from tracing."""

    def called(q, v):
        return np.array([float(x) for x in function(np.array([float(x) for x in q]), v)])

    return called


@pytest.mark.parametrize("method", ["auto", "dop853", "bdf", "ggl", "index2", "index3", "cs", "srm"])
def test_free_motion_in_polar_coordinates_is_straight(method):
    if method in ("auto", "dop853"):
        system = polar()
    else:  # with a constraint, so that every method has something to do: z = 0
        system = hn.System(
            lambda q: np.array([2.0, 2.0 * q[0] ** 2, 1.0]),
            [0, 0, 0],
            lambda q: q[2],
            names=["r", "phi", "z"],
        )
    q0, v0 = np.eye(system.n)[0], np.eye(system.n)[1]
    sol = hn.solve(system, (0, 2), q0, v0, method=method, rtol=1e-9, atol=1e-11)
    assert sol.success
    np.testing.assert_allclose(sol.q[:2, -1], straight(2.0), atol=1e-6 if method == "srm" else 3e-7)


def test_derived_contained_and_stated_agree():
    ways = {
        "derived": polar(),
        "in force": polar(centrifugal),
    }
    for taken, system in ways.items():
        assert system.inertial == taken
        np.testing.assert_allclose(
            hn.solve(system, (0, 2), [1, 0], [0, 1], **TIGHT).q[:, -1], straight(2.0), rtol=1e-11
        )
    assert "derived from mass" in str(ways["derived"])
    assert "contained in force" in str(ways["in force"])
    assert "inertial" not in str(polar(mass=[1.0, 1.0]))


def test_slider_crank_in_its_angle_keeps_its_energy():
    """One coordinate: M(φ) φ″ = −½ M′ φ′² − V′, the textbook's equation."""
    r, rod, crank, slider, gravity = 0.1, 0.35, 0.02, 1.3, 9.81

    def position(phi):
        return r * np.cos(phi) + np.sqrt(rod**2 - r**2 * np.sin(phi) ** 2)

    def by_angle(phi):
        return -r * np.sin(phi) - r**2 * np.sin(phi) * np.cos(phi) / np.sqrt(rod**2 - r**2 * np.sin(phi) ** 2)

    engine = hn.System(
        lambda q: np.array([[crank + slider * by_angle(q[0]) ** 2]]),
        lambda q: np.array([-slider * gravity * by_angle(q[0])]),
        potential=lambda q: slider * gravity * position(q[0]),
        names=["phi"],
    )
    sol = hn.solve(engine, (0, 3), [0.3], [20.0], **TIGHT)
    assert engine.inertial == "derived"
    assert np.max(np.abs(sol.energy - sol.energy[0])) < 1e-9 * sol.energy[0]


def test_double_pendulum_against_lagrange():
    """Minimal coordinates, with friction in the joints, which is linear in v."""
    a, b, t = *me.dynamicsymbols("a b"), me.dynamicsymbols._t
    x1, y1 = sp.sin(a), -sp.cos(a)
    x2, y2 = x1 + sp.sin(b), y1 - sp.cos(b)
    kinetic = sum(x.diff(t) ** 2 for x in (x1, y1, x2, y2)) / 2
    frame = me.ReferenceFrame("N")
    lagrange = me.LagrangesMethod(
        kinetic - sp.Rational(981, 100) * (y1 + y2), [a, b], frame=frame, forcelist=[]
    )
    lagrange.form_lagranges_equations()
    textbook = hn.from_sympy(lagrange)

    def mass(q):
        coupling = np.cos(q[0] - q[1])
        return np.array([[2.0, coupling], [coupling, 1.0]])

    minimal = hn.System(mass, lambda q: -9.81 * np.array([2 * np.sin(q[0]), np.sin(q[1])]), names=["a", "b"])
    assert (textbook.inertial, minimal.inertial) == ("in force", "derived")
    ends = [hn.solve(s, (0, 3), [1.0, 2.0], [0.5, -1.0], **TIGHT).q[:, -1] for s in (textbook, minimal)]
    np.testing.assert_allclose(*ends, rtol=1e-9)


def drag(v):
    return -np.abs(v) * v


@pytest.mark.parametrize(
    "force",
    [
        drag,
        lambda v: -np.tanh(v),
        lambda v: -v * np.sqrt(v @ v + 1e-4),
        lambda q, v, p: centrifugal(q, v, p) + drag(v),
        lambda q, v, p: 0.5 * centrifugal(q, v, p),
        lambda q, v, p: np.array([p.m * q[0] * v[1] ** 2, 0.0]),
        lambda q, v, p: np.where(np.abs(v) < 5, centrifugal(q, v, p), 0.0),
        lambda v: np.array([0.0, v[0] ** 4]),
        untraceable(lambda q, v: -np.abs(v) * v),
        lambda q, v, p: p.k * centrifugal(q, v, p),
    ],
)
def test_anything_else_is_asked_for(force):
    with pytest.raises(hn.ModelError, match=r"inertial='in force'.*inertial='derived'"):
        polar(force)
    assert polar(force, inertial="derived").inertial == "derived"
    assert polar(force, inertial="in force").inertial == "in force"


@pytest.mark.parametrize(
    "force",
    [
        lambda q: -q,
        lambda q, v: -q - 0.3 * v,
        lambda t, v: np.cos(t) * v[::-1],
        lambda v: -np.sign(v),
        lambda v: np.where(v > 0, -v, -2 * v),
        untraceable(lambda q, v: -0.2 * v),
    ],
)
def test_forces_linear_in_v_leave_the_terms_to_be_derived(force):
    assert polar(force).inertial == "derived"


def test_a_force_that_cannot_be_traced_may_contain_them():
    p = polar().p
    system = polar(untraceable(lambda q, v: centrifugal(q, v, p) - 0.1 * v))
    assert system.paths["force"] != "traced"
    assert system.inertial == "in force"


def test_parameters_that_are_zero_do_not_hide_the_terms():
    """k = 0 switches the dependence on q off; the choice must hold for other values."""

    def mass(q, p):
        return np.array([1.0 + p.k * q[1] ** 2, 1.0])

    def contained(q, v, p):
        return p.k * np.array([-2 * q[1] * v[0] * v[1], q[1] * v[0] ** 2])

    assert polar(mass=mass).inertial == "derived"
    assert polar(contained, mass=mass).inertial == "in force"


def test_a_constant_mass_that_looks_otherwise():
    def turned(q):
        R = np.array([[np.cos(q[1]), -np.sin(q[1])], [np.sin(q[1]), np.cos(q[1])]])
        return R @ np.diag([2.0, 2.0]) @ R.T

    assert polar(drag, mass=turned).inertial is None


def test_mass_that_changes_with_time():
    """Of M(t) nothing is added unasked; asked for, M v is kept, as for a cart that sand falls into."""
    cart = {"mass": lambda t: np.array([1.0 + t]), "force": [0.0], "names": ["x"]}
    for inertial, velocity in ((None, 1.0), ("in force", 1.0), ("derived", 1 / 3)):
        sol = hn.solve(hn.System(**cart, inertial=inertial), (0, 2), [0], [1], **TIGHT)
        assert sol.v[0, -1] == pytest.approx(velocity, rel=1e-11)
    with pytest.raises(hn.ModelError, match="mass depends on q and t"):
        polar(mass=lambda t, q: np.array([1.0 + t, q[0] ** 2]))


def test_mass_that_cannot_be_traced():
    def mass(q):
        return np.diag([2.0, 2.0 * float(q[0]) ** 2])

    with pytest.raises(hn.ModelError, match="mass depends on q, and mass cannot be traced"):
        polar(mass=mass)
    with pytest.raises(hn.ModelError, match="cannot be derived"):
        polar(mass=mass, inertial="derived")
    assert polar(centrifugal, mass=mass, inertial="in force").inertial == "in force"
    assert polar(drag, mass=lambda q: np.diag([2.0, 0 * float(q[0]) + 1.0])).inertial is None


def test_states_unknowns_and_multipliers():
    """M depends on an unknown w = q², solved for; the force reads a state and the multiplier."""

    def system(force):
        return hn.System(
            lambda q, w: np.array([1.0 + w[0], 1.0]),
            force,
            lambda q: q[1] - 0.5,
            unknowns={"w": 0.5},
            equations=lambda q, w: w - q[0] ** 2,
            states={"s": 0.0},
            rate=lambda s: -s,
            names=["x", "y"],
        )

    derived = system(lambda q, s, lam: np.array([0.0, 0.1 * lam[0] + s[0]]))
    contained = system(lambda q, v, s, lam: np.array([-q[0] * v[0] ** 2, 0.1 * lam[0] + s[0]]))
    assert (derived.inertial, contained.inertial) == ("derived", "in force")
    for each in (derived, contained):  # √(1 + x²) x′ is constant
        sol = hn.solve(each, (0, 1), [0.2, 0.5], [1.0, 0.0], **TIGHT)
        momentum = np.sqrt(1 + sol.q[0] ** 2) * sol.v[0]
        np.testing.assert_allclose(momentum, momentum[0], rtol=1e-10)


def test_velocity_constraint_and_elastic_element():
    """A bead held to a ray φ = ωt by A v = ω: r″ = (ω² − k/m) (r − r₀)."""
    whirled = polar(
        mass=lambda q: np.array([1.0, q[0] ** 2]),
        velocity_constraint=lambda v: v[1] - 3.0,
        elastic=hn.Elastic(lambda q: q[0], stiffness=10.0),
    )
    sol = hn.solve(whirled, (0, 2), [1, 0], [0, 3], **TIGHT)
    np.testing.assert_allclose(sol.q[0], np.cos(sol.t), atol=1e-10)
    # the force that drives it: 2 r r′ ω
    np.testing.assert_allclose(-sol.lam[0], -6 * np.cos(sol.t) * np.sin(sol.t), atol=1e-8)


def test_expressions_of_sympy():
    r, phi = me.dynamicsymbols("r phi")
    common = {"mass": sp.diag(1, r**2), "coordinates": [r, phi]}
    assert hn.from_sympy(**common, force=[0, 0]).inertial == "derived"
    assert hn.from_sympy(**common, force=[0, 0], inertial="in force").inertial == "in force"
    contained = [r * phi.diff() ** 2, -2 * r * r.diff() * phi.diff()]
    assert hn.from_sympy(**common, force=contained).inertial == "in force"


def test_what_was_taken_is_kept(tmp_path):
    for system in (polar(), polar(centrifugal), polar(drag, inertial="derived")):
        sol = hn.solve(system, (0, 1), [1, 0], [0, 1])
        sol.save(tmp_path / "run.npz")
        for copy in (
            pickle.loads(pickle.dumps(system)),
            hn.Solution.load(tmp_path / "run.npz").system,
            system.with_parameters(m=2.0),
        ):
            assert copy.inertial == system.inertial
            np.testing.assert_array_equal(hn.solve(copy, (0, 1), [1, 0], [0, 1]).q, sol.q)


def test_mechanisms_state_them():
    for make in (hn.mechanisms.andrews, hn.mechanisms.two_link_arm, hn.mechanisms.wheelset):
        assert make().system.inertial == "in force"


def test_unknown_choice():
    with pytest.raises(hn.ModelError, match="inertial: 'yes'"):
        polar(inertial="yes")


def test_rounding_errors_of_a_large_force_do_not_decide():
    """The second difference of a force that is called has no digits left of c."""
    large = lambda q, v: np.array([-1e14 * float(q[0]) - float(v[0])])  # noqa: E731
    mass = lambda q: np.array([[2 + np.cos(q[0])]])  # noqa: E731
    with pytest.raises(
        hn.HolonomeError, match="inertial: mass depends on q, and force, which cannot be traced"
    ):
        hn.System(mass, large, n=1)
    assert "derived" in str(hn.System(mass, large, n=1, inertial="derived"))

"""Linearisations, modes and responses against closed forms, trajectories and other programs."""

import numpy as np
import pytest
import scipy.linalg
from scipy.special import roots_laguerre

import holonome as hn
from analysis.models import G, governor, hanging, hoop, n_pendulum, oscillator, slider_crank


def test_mass_spring_damper_in_its_own_coordinates():
    lin = hn.linearize(oscillator(), [0.0])
    assert lin.kind == "equilibrium"
    assert lin.A.tolist() == [[0.0, 1.0], [-4.0, -0.2]]
    assert lin.B.tolist() == [[0.0], [0.5]]
    assert lin.names == ("x", "x'")
    assert (lin.M.item(), lin.damping.item(), lin.K.item()) == (2.0, 0.4, 8.0)


@pytest.mark.parametrize("links", [1, 2, 7])
def test_modes_of_pendulum_chains_are_those_of_laguerre(links):
    """Equal masses on equal strings: the squares of the frequencies are g/l times the zeros of L_n."""
    system = n_pendulum(links)
    modes = hn.linearize(system, hn.equilibrium(system, hanging(links))).modes()
    squares = np.sort((2 * np.pi * modes.frequencies) ** 2)
    assert squares == pytest.approx(G * roots_laguerre(links)[0], rel=1e-11)
    assert all(mode.damping == 0 for mode in modes)
    assert modes.neutral == 0


def test_double_pendulum_of_bodies():
    """Two uniform rods of length 1: (M, K) in closed form, by joints; in absolute coordinates the same."""
    expected = np.sqrt(
        scipy.linalg.eigh(np.diag([1.5, 0.5]) * G, np.array([[4 / 3, 0.5], [0.5, 1 / 3]]), eigvals_only=True)
    )
    for coordinates in ("joint", "absolute"):
        m = hn.Mechanism("double", gravity=(0, -G), coordinates=coordinates)
        a = m.body("a", 1.0, 1 / 12, center=(0.5, 0), points={"A": (0, 0), "B": (1, 0)})
        b = m.body("b", 1.0, 1 / 12, center=(0.5, 0), points={"B": (0, 0)})
        m.revolute("A", m.ground.at(0, 0), a["A"])
        m.revolute("B", a["B"], b["B"])
        found = hn.equilibrium(m, start={"A": -1.2, "B": 0.3})
        modes = found.linearize().modes()
        assert 2 * np.pi * modes.frequencies == pytest.approx(expected, rel=1e-11)
        assert sum(modes[0].shares.values()) == pytest.approx(1)
        assert set(modes[0].shares) == {"a", "b"}
        assert abs(modes[1].joints["B"]) > abs(modes[1].joints["A"])


def test_geometric_stiffness_of_a_loaded_pendulum():
    """A pendulum in Cartesian coordinates has no stiffness but that of the rod's force, m g/l."""
    system = hn.mechanisms.pendulum().system
    lin = hn.linearize(system, hn.equilibrium(system, [0.1, -1.0]))
    assert np.allclose(lin.A, [[0, 1], [-G, 0]])


def deviations(system, here, lin, size=1e-5, time=0.4):
    """Flows of the system after small pushes in all of z, from trajectories, and those of exp(A t)."""
    tangent = lin.reduced.tangent
    n, k = system.n, len(system.states)
    pushes = np.eye(tangent.size)
    columns = []
    for z in pushes:
        ends = []
        for sign in (1, -1):
            xi, zeta, sigma = tangent.deviations(sign * size * z, k)
            s0 = None if not k else here.s + sigma
            sol = hn.solve(
                system, (0, time), here.q + xi, here.v + zeta, s0=s0, rtol=1e-11, atol=1e-13, repair=True
            )
            assert sol.success, sol.message
            ends.append(
                np.concatenate([sol.q[tangent.iq, -1], sol.v[tangent.iv, -1], sol.s[tangent.states, -1]])
            )
        columns.append((ends[0] - ends[1]) / (2 * size))
    del n
    return np.array(columns).T, scipy.linalg.expm(lin.A * time)


@pytest.mark.parametrize("kind", ["pendulums", "slider-crank", "governor", "states", "friction of a joint"])
def test_linearisation_is_the_difference_of_trajectories(kind):
    if kind == "pendulums":
        system = n_pendulum(2)
        here = hn.equilibrium(system, hanging(2))
    elif kind == "slider-crank":
        m = slider_crank(gravity=(0, -G))
        here = hn.equilibrium(m, start={"A": -1.4, "D": hn.near(0.9)})
        system = here.system
    elif kind == "governor":
        system = governor().with_parameters(c=0.8)
        here = hn.equilibrium(system, [0.0, 0.9], speed={"phi": 7.0})
    elif kind == "states":
        system = hn.System(
            [1.0, 1.0],
            lambda q, v, s: np.array([2.0 * s[0] - 0.1 * v[0], -G]),
            lambda q: q @ q - 1,
            states={"i": 0.0},
            rate=lambda q, v, s: np.array([1.0 - s[0] - 2.0 * v[0] - q[0]]),
            names=["x", "y"],
        )
        here = hn.equilibrium(system, [0.3, -0.9])
    else:
        system = hn.System(
            [1.0, 1.0],
            lambda q, v, lam: np.array([-0.2 * v[0] - 0.3 * lam[0] * v[0], -G - 0.3 * lam[0] * v[1]]),
            lambda q: q @ q - 1,
            names=["x", "y"],
        )
        here = hn.equilibrium(system, [0.3, -0.9])
    lin = hn.linearize(system, here)
    measured, computed = deviations(system, here, lin)
    if kind == "governor":  # the spindle goes on by itself
        pass
    assert np.allclose(measured, computed, atol=2e-7 * np.max(np.abs(computed)))


def test_linearisation_about_any_state_says_so():
    """About a swinging pendulum: rates, and the slopes of θ″ = −g sin θ at that angle."""
    system = hn.System(1.0, lambda q, v: -G * np.sin(q) - 0.3 * v**3, names=["theta"])
    lin = hn.linearize(system, ([0.7], [2.0]))
    assert lin.kind == "state"
    assert lin.rates == pytest.approx([2.0, -G * np.sin(0.7) - 0.3 * 8])
    assert np.allclose(lin.A, [[0, 1], [-G * np.cos(0.7), -0.9 * 4]])
    assert "no equilibrium" in str(lin)
    with pytest.raises(hn.ModelError, match="only about an equilibrium"):
        hn.linearize(oscillator(), [1.0]).response([1.0])


def test_any_state_of_a_constrained_system():
    """A pendulum in Cartesian coordinates, by x: x″ from differences on the circle."""
    system = hn.mechanisms.pendulum().system
    angle, rate = 0.6, 1.3

    def state(x, u):
        y = -np.sqrt(1 - x * x)
        return [x, y], [u, -x * u / y]

    q, v = state(np.sin(angle), rate * np.cos(angle))
    lin = hn.linearize(system, (q, v))
    (i,) = lin.reduced.tangent.iq
    assert lin.kind == "state"
    assert i in (0, 1)

    def acceleration(x, u):
        q, v = (state(x, u)) if i == 0 else None
        return system.at(0, q, v).a[0]

    if i == 0:
        h = 1e-5
        by_x = (acceleration(q[0] + h, v[0]) - acceleration(q[0] - h, v[0])) / (2 * h)
        by_u = (acceleration(q[0], v[0] + h) - acceleration(q[0], v[0] - h)) / (2 * h)
        assert np.allclose(lin.A, [[0, 1], [by_x, by_u]], atol=1e-6)


def test_rolling_disc_wobbles_as_it_should():
    """A thin disc that rolls upright, A = m r²/4, C = m r²/2: stable above Ω² = g/(3 r)."""
    r, mass = 0.5, 2.0
    m = hn.Mechanism("disc", gravity=(0, 0, -G))
    disc = m.body(
        "disc", mass, (mass * r**2 / 4, mass * r**2 / 2, mass * r**2 / 4), points={"hub": (0, 0, 0)}
    )
    m.rolling("contact", m.ground.at(0, 0, 0), disc["hub"], radius=r, axis=(0, 1, 0))
    critical = np.sqrt(G / (3 * r))
    for spin in (0.97 * critical, 1.03 * critical, 3 * critical):
        motion = {"disc": {"velocity": (r * spin, 0, 0), "angular_velocity": (0, spin, 0)}}
        found = hn.equilibrium(m, start={"disc": {"position": (0, 0, r)}}, speed=motion)
        square = 12 / 5 * spin**2 - 4 * G / (5 * r)
        assert found.eigenvalues.size == 2
        assert found.eigenvalues[0] ** 2 == pytest.approx(-square, rel=1e-9)
        assert found.stable is bool(spin > critical)


def test_chaplygin_sleigh():
    """A knife edge a distance a behind the centre of mass: (J + m a²) ω′ = −m a u ω at the speed u."""
    mass, J, a, u = 2.0, 0.3, 0.4, 1.5
    sleigh = hn.System(
        [mass, mass, J],
        np.zeros(3),
        velocity_constraint=lambda q, v: -v[0] * np.sin(q[2]) + v[1] * np.cos(q[2]) - a * v[2],
        names=["x", "y", "heading"],
    )
    for speed in (u, -u):
        found = hn.equilibrium(sleigh, [0.0, 0.0, 0.0], speed={"x": speed, "heading": 0.0})
        expected = -mass * a * speed / (J + mass * a**2)
        assert found.eigenvalues == pytest.approx([expected], rel=1e-11)
        assert found.stable is bool(speed > 0)
        assert found.neutral == 4
    with pytest.raises(hn.ModelError, match="no form M y″"):
        _ = found.linearize().K


def test_redundant_rows_change_nothing():
    once = hn.mechanisms.pendulum().system
    twice = hn.System(
        np.ones(2), [0.0, -G], lambda q: np.array([q @ q - 1, 3 * (q @ q) - 3]), names=["x", "y"]
    )
    A = [hn.linearize(system, hn.equilibrium(system, [0.2, -1.0])).A for system in (once, twice)]
    assert np.allclose(A[0], A[1], atol=1e-12)


def test_singular_mass_is_told():
    system = hn.System([1.0, 0.0], lambda q: -q, names=["x", "y"])
    with pytest.raises(hn.SingularSystem, match="mass: singular"):
        _ = hn.linearize(system, hn.equilibrium(system, [0.1, 0.1])).A


def test_outputs_by_name_and_as_functions():
    """Position, velocity, acceleration and the force of the rod of a pushed pendulum."""
    system = hn.System(
        np.ones(2),
        lambda q, u: np.array([u.push, -G]),
        lambda q: q @ q - 1,
        inputs={"push": 0.0},
        names=["x", "y"],
    )
    lin = hn.linearize(
        system,
        hn.equilibrium(system, [0.1, -1.0]),
        outputs=["x", "y", "x'", lambda a: a[0], lambda q, lam: lam[0] + q[0], lambda u: 2 * u.push],
    )
    assert lin.outputs == ("x", "y", "x'", "outputs[3]", "outputs[4]", "outputs[5]")
    assert np.allclose(lin.C, [[1, 0], [0, 0], [0, 1], [-G, 0], [1, 0], [0, 0]])
    assert np.allclose(lin.D.ravel(), [0, 0, 0, 1, 0, 2])


def test_outputs_of_a_mechanism():
    m = slider_crank()
    found = hn.equilibrium(m, start={"A": -1.4, "D": hn.near(0.9)})
    lin = hn.linearize(m, found, outputs=["A.angle", "D", "rod.C", "piston.velocity", "A.rate"])
    assert lin.outputs[:2] == ("A.angle", "D.displacement")
    assert np.allclose(lin.C[1], lin.C[lin.outputs.index("rod.C x")], atol=1e-12)
    h = 1e-5
    D = [
        hn.kinematics(m, "A", [found.joint("A").angle[0] + x], guess=found).joint("D").displacement[0]
        for x in (h, -h)
    ]
    y = lin.C @ np.linalg.pinv(lin.C[[0, 4]])
    assert y[1, 0] == pytest.approx((D[0] - D[1]) / (2 * h), rel=1e-6)
    with pytest.raises(ValueError, match=r"outputs: there is no 'nonsense'; there are A, B"):
        hn.linearize(m, found, outputs=["nonsense"])


def test_inputs_may_be_parameters():
    lin = hn.linearize(oscillator(), ([0.5], [0.0]), inputs=["k", "push"])
    assert lin.kind == "state"
    assert np.allclose(lin.B, [[0, 0], [-0.25, 0.5]])
    with pytest.raises(ValueError, match="inputs: 'nonsense' is no input"):
        hn.linearize(oscillator(), [0.0], inputs=["nonsense"])


def test_linearisation_of_an_ode():
    ode = hn.ODE(lambda x, u: np.array([x[1], u.a - x[0] ** 2 - x[1]]), names=["x", "y"], inputs={"a": 4.0})
    lin = hn.linearize(ode, hn.equilibrium(ode, [1.5, 0.0]))
    assert lin.A.tolist() == [[0.0, 1.0], [-4.0, -1.0]]
    assert lin.B.tolist() == [[0.0], [1.0]]
    assert lin.modes()[0].frequency == pytest.approx(2 / (2 * np.pi))
    assert hn.linearize(ode, [1.0, 0.0]).kind == "state"


def test_black_box_force_is_linearised_by_differences():
    def force(q, v):
        return np.array([-float(str(4.0 * q[0] + 0.2 * v[0]))])

    lin = hn.linearize(hn.System(1.0, force, names=["x"]), [0.0])
    assert np.allclose(lin.A, [[0, 1], [-4, -0.2]], atol=1e-6)


def test_state_off_the_manifold_is_refused():
    with pytest.raises(ValueError, match="state: it violates rod"):
        hn.linearize(hn.mechanisms.pendulum().system, [0.5, -1.0])


# ------------------------------------------------------------------------------------------- modes


@pytest.mark.parametrize(("how", "tolerance"), [({"modes": 4}, 2e-4), ({"segments": 20}, 4e-3)])
def test_beam_has_the_frequencies_of_euler_and_bernoulli(how, tolerance):
    """A cantilever: cos β cosh β = −1, ω = β² √(EI/(ρ A l⁴))."""
    m = hn.Mechanism("cantilever", gravity=(0, 0))
    area, inertia, E, rho, length = 1e-4, 1e-9, 2e11, 7800.0, 0.8
    rod = m.beam("rod", length, area=area, inertia=inertia, E=E, density=rho, **how)
    m.fixed("clamp", m.ground.at(0, 0), rod["left"])
    modes = hn.linearize(m, hn.equilibrium(m)).modes(2)
    beta = np.array([1.875104068711961, 4.694091132974175])
    expected = beta**2 * np.sqrt(E * inertia / (rho * area * length**4))
    assert 2 * np.pi * modes.frequencies == pytest.approx(expected, rel=tolerance)


def test_damped_modes_are_told():
    modes = hn.linearize(oscillator(c=0.4), [0.0]).modes()
    assert modes[0].frequency == pytest.approx(2 / (2 * np.pi))
    assert modes[0].damping == pytest.approx(0.05)
    assert modes[0].time_constant == pytest.approx(10.0)
    over = hn.linearize(oscillator(c=40.0), [0.0]).modes()
    assert [mode.oscillates for mode in over] == [False, False]
    assert "decays in" in str(over)
    unstable = hn.linearize(hoop(20.0), [0.0]).modes()
    assert "grows in" in str(unstable)


def test_rigid_motions_are_counted_not_listed():
    """Two masses on a spring: one mode, and the motion of both."""
    system = hn.System([1.0, 2.0], lambda q: 3.0 * np.array([q[1] - q[0], q[0] - q[1]]), names=["a", "b"])
    modes = hn.linearize(system, [0.0, 0.0]).modes()
    assert len(modes) == 1
    assert modes.neutral == 2
    assert (2 * np.pi * modes[0].frequency) ** 2 == pytest.approx(3 * 1.5)
    assert "2 eigenvalues zero" in str(modes)
    assert modes[0].shares["a"] == pytest.approx(2 / 3)


def test_equal_frequencies_have_different_shapes():
    system = hn.System([1.0, 1.0], lambda q, v: -4 * q - 0.1 * v, names=["a", "b"])
    modes = hn.linearize(system, [0.0, 0.0]).modes()
    shapes = np.array([mode.shape for mode in modes])
    assert len(modes) == 2
    assert np.linalg.matrix_rank(shapes, 1e-6) == 2


def test_large_chain_by_shift_and_invert():
    """The lowest modes of 60 links, dense and sparse."""
    from holonome.analysis.pencil import Pencil

    system = n_pendulum(60)
    found = hn.equilibrium(system, hanging(60))
    dense = hn.linearize(system, found).modes(6).eigenvalues.imag
    values, _ = Pencil.at(found.system, found.place, found.lam, ()).modes(6, 0.0)
    sparse = np.sort(values.imag[values.imag > 0])[:6]
    assert np.allclose(sparse, dense, rtol=1e-8)
    assert np.max(np.abs(values.real)) < 1e-8 * np.max(np.abs(values))


@pytest.mark.parametrize("repeated", [1, 2])
@pytest.mark.parametrize("link", [1e-4, 1e3])
def test_shift_and_invert_in_any_unit(link, repeated):
    """Links of a tenth of a millimetre or of a kilometre, also with each row twice: frequencies as √(g/l)."""
    from holonome.analysis.pencil import Pencil

    n = 40

    def lengths(q):
        ends = np.reshape(q, (n, 2))
        d = ends - np.concatenate([[[0.0, 0.0]], ends[:-1]])
        return np.concatenate([d[:, 0] ** 2 + d[:, 1] ** 2 - link**2] * repeated)

    system = hn.System(np.ones(2 * n), np.tile([0.0, -G], n), lengths)
    q = np.stack([np.zeros(n), -link * np.arange(1.0, n + 1)], axis=1).ravel()
    found = hn.equilibrium(system, q)
    values, _ = Pencil.at(found.system, found.place, found.lam, ()).modes(5, 0.0)
    k = np.arange(float(n))
    squares = scipy.linalg.eigh_tridiagonal(2 * k + 1, k[1:], eigvals_only=True)[:5]
    sparse = np.sort(values.imag[values.imag > 0])[:5]
    assert sparse**2 * link / G == pytest.approx(squares, rel=1e-7)


@pytest.mark.slow
def test_thousand_links():
    """Against the zeros of Laguerre's polynomial, as eigenvalues of its three-term recurrence."""
    system = n_pendulum(1000)
    modes = hn.linearize(system, hn.equilibrium(system, hanging(1000))).modes(8)
    k = np.arange(1000.0)
    squares = scipy.linalg.eigh_tridiagonal(
        2 * k + 1, k[1:], select="i", select_range=(0, 7), eigvals_only=True
    )
    assert (2 * np.pi * modes.frequencies) ** 2 == pytest.approx(G * squares, rel=1e-9)


def test_mode_as_a_motion_stays_on_the_constraints(tmp_path):
    system = n_pendulum(3)
    mode = hn.linearize(system, hn.equilibrium(system, hanging(3))).modes()[1]
    run = mode.run(0.2)
    assert np.max(np.abs(run.g)) < 1e-12
    assert np.max(np.abs(run.gv)) < 1e-10
    assert run.t[-1] == pytest.approx(1 / mode.frequency)
    assert mode.animate(tmp_path / "mode.html").file.stat().st_size > 1e5
    with pytest.raises(ValueError, match="amplitude: nan"):
        mode.run(np.nan)


# ---------------------------------------------------------------------------------------- response


def test_response_of_a_mass_spring_damper():
    lin = hn.linearize(oscillator(), [0.0], outputs=["x", "x'"])
    f = np.array([0.0, 0.1, 0.3183, 2.0])
    response = lin.response(f)
    w = 2 * np.pi * f
    expected = 1 / (8 - 2 * w**2 + 0.4j * w)
    assert np.allclose(response.of("x"), expected, rtol=1e-12)
    assert np.allclose(response.of("x'", "push"), 1j * w * expected, rtol=1e-12)
    chosen = lin.response()
    peak = chosen.frequencies[np.argmax(np.abs(chosen.of("x")))]
    assert peak == pytest.approx(np.sqrt(4 - 2 * 0.1**2) / (2 * np.pi), rel=3e-3)
    assert "response of system" in str(chosen)


def test_step_by_scipy_is_the_motion():
    lin = hn.linearize(oscillator(), [0.0], outputs=["x"])
    t, x = lin.to_scipy().step(T=np.linspace(0, 5, 51))
    sol = hn.solve(oscillator(), (0, 5), [0.0], inputs={"push": 1.0}, t_eval=t, rtol=1e-10)
    assert np.allclose(sol.q[0], x, atol=1e-7)


def test_response_of_a_large_system_is_sparse():
    system = hn.System(
        np.ones(800),
        lambda q, u: (
            np.concatenate([q[1:], np.zeros(1)])
            + np.concatenate([np.zeros(1), q[:-1]])
            - 2.5 * q
            + np.concatenate([np.array([u.push]), np.zeros(799)])
        ),
        inputs={"push": 0.0},
        n=800,
    )
    lin = hn.linearize(system, hn.equilibrium(system, np.zeros(800)), outputs=["q0", "q1"])
    assert lin.large
    K = 2.5 * np.eye(800) - np.eye(800, k=1) - np.eye(800, k=-1)
    for f in (0.05, 0.2):
        expected = np.linalg.solve(K - (2 * np.pi * f) ** 2 * np.eye(800), np.eye(800)[0])
        found = lin.response([f])
        assert np.allclose(found.of("q0"), expected[0])
        assert np.allclose(found.of("q1"), expected[1])
    with pytest.raises(hn.ModelError, match="too many for full matrices"):
        _ = lin.A
    with pytest.raises(hn.ModelError, match="frequencies: give them"):
        lin.response()


def test_pictures(tmp_path):
    lin = hn.linearize(oscillator(), [0.0], outputs=["x"])
    lin.response().plot(file=tmp_path / "bode.png")
    lin.modes().plot(file=tmp_path / "eigenvalues.png")
    assert all((tmp_path / name).stat().st_size > 5000 for name in ("bode.png", "eigenvalues.png"))


def test_control_is_optional():
    lin = hn.linearize(oscillator(), [0.0], outputs=["x"])
    try:
        from control import ss  # noqa: F401
    except ImportError:
        with pytest.raises(ModuleNotFoundError, match="pip install control"):
            lin.to_control()
    else:
        assert np.allclose(lin.to_control().A, lin.A)
    with pytest.raises(hn.ModelError, match="inputs: there are none"):
        hn.linearize(hoop(), [0.0]).to_scipy()


def test_a_range_of_frequencies_has_the_narrowest_peak():
    """At resonance the amplitude is 1/(c ω), of a peak that is narrower than the spacing of 400 points."""
    c, k = 1e-4, 7.0
    spring = hn.System(1.0, lambda q, v, u: u.push - k * q - c * v, inputs={"push": 0.0}, names=["x"])
    lin = hn.linearize(spring, [0.0], outputs=["x"])
    response = lin.response(between=(0.1, 10.0))
    assert response.frequencies[[0, -1]] == pytest.approx([0.1, 10.0])
    assert np.max(response.magnitude) == pytest.approx(1 / (c * np.sqrt(k)), rel=1e-6)
    with pytest.raises(ValueError, match="between: frequencies are given"):
        lin.response([1.0], between=(0.1, 10.0))
    with pytest.raises(ValueError, match=r"between: .*increasing"):
        lin.response(between=(10.0, 0.1))


def test_python_control_has_the_same_poles_and_response():
    pytest.importorskip("control.statesp", reason="python-control is not installed: pip install control")
    import control  # not the folder of tests of this name

    spring = hn.System(2.0, lambda q, v, u: u.push - 8 * q - 0.4 * v, inputs={"push": 0.0}, names=["x"])
    lin = hn.linearize(spring, [0.0], outputs=["x", "x'"])
    given = lin.to_control()
    assert given.input_labels == ["push"]
    np.testing.assert_allclose(np.sort_complex(given.poles()), np.sort_complex(np.linalg.eigvals(lin.A)))
    hertz = np.array([0.1, 0.3, 1.0])
    theirs = control.frequency_response(given, 2 * np.pi * hertz).frdata
    np.testing.assert_allclose(theirs, lin.response(hertz).values, rtol=1e-12)

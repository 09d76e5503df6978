"""Sampled control: laws that are called at the ticks of a clock."""

import numpy as np
import pytest

import holonome as hn
from holonome.errors import ModelError

METHODS = ["auto", "dop853", "dopri5", "bdf", "ggl", "cs", "index3"]


def rod(**further):
    return hn.System(
        np.eye(2),
        lambda q, u, p: np.array([u.push, -p.g]),
        lambda q, p: q @ q - p.length**2,
        parameters={"g": 9.81, "length": 1.0},
        inputs={"push": 0.0},
        potential=lambda q, p: p.g * q[1],
        names=["x", "y"],
        **further,
    )


def mass(**inputs):
    return hn.System(1.0, lambda u: u.push, inputs={"push": 0.0} | inputs, names=["x"])


def law(t, q, v):
    return 5 * np.sin(7 * t) + 3 * q[0] - 2 * v[0]


@pytest.mark.parametrize("step", [None, 3e-3])
@pytest.mark.parametrize("method", METHODS)
def test_solve_simulator_and_a_run_for_each_period_agree_to_the_last_digit(method, step):
    system, q, v = rod(), np.array([0.6, -0.8]), np.zeros(2)
    every, count = 0.01, 50
    options = {"method": method, "step": step, "atol": 1e-9}
    sol = hn.solve(system, (0, count * every), q, v, controllers=hn.Sampled(law, every=every), **options)
    sim = hn.Simulator(system, q, v, **options)
    for k in range(count):
        t, end = k * every, (k + 1) * every
        push = float(law(t, q, v))
        assert sim.t == t
        sim.step(every, push=float(law(sim.t, sim.q, sim.v)))
        one = hn.solve(system, (t, end), q, v, inputs={"push": push}, **options)
        q, v = one.q[:, -1], one.v[:, -1]
    for found in (sol.q[:, -1], sim.q):
        assert np.array_equal(found, q)
    for found in (sol.v[:, -1], sim.v):
        assert np.array_equal(found, v)


def test_with_states_the_same():
    system = hn.System(
        1.0,
        lambda q, s, u: -q + s,
        states={"z": 0.3},
        rate=lambda s, u: u.drive - s,
        inputs={"drive": 0.0},
        names=["x"],
    )
    sol = hn.solve(
        system, (0, 1), [1.0], controllers=hn.Sampled(lambda s, q: s[0] - q[0], every=0.1), atol=1e-9
    )
    sim = hn.Simulator(system, [1.0], atol=1e-9)
    for _ in range(10):
        sim.step(0.1, drive=float(sim.s[0] - sim.q[0]))
    assert np.array_equal(sim.s, sol.s[:, -1])


def test_a_double_integrator_against_its_discrete_closed_form():
    """Held inputs make x'' = u exact: x ← x + h v + h²/2 u, v ← v + h u."""
    h, x, v = 0.05, 1.0, 0.0
    sol = hn.solve(mass(), (0, 2), [1.0], controllers=hn.Sampled(lambda q, v: -4 * q - 2 * v, every=h))
    for _ in range(40):
        u = -4 * x - 2 * v
        x, v = x + h * v + h * h / 2 * u, v + h * u
    assert sol.q[0, -1] == pytest.approx(x, rel=1e-10)
    assert sol.v[0, -1] == pytest.approx(v, rel=1e-10)


def test_delay_and_offset_shift_what_is_applied():
    seen = []

    def stairs(t):
        seen.append(t)
        return 1.0 + len(seen)

    sol = hn.solve(mass(), (1, 2), [0.0], controllers=hn.Sampled(stairs, every=0.25, delay=0.1, offset=0.125))
    assert np.allclose(seen, [1.125, 1.375, 1.625, 1.875])
    assert np.allclose(sol.inputs["push"].t, [1.0, 1.225, 1.475, 1.725, 1.975])
    assert np.array_equal(sol.inputs["push"].values, [0, 2, 3, 4, 5])
    assert sol.inputs["push"].at([1.2, 1.3, 1.99]).tolist() == [0, 2, 5]
    v = 0.25 * (2 + 3 + 4) + 0.025 * 5
    assert sol.v[0, -1] == pytest.approx(v, rel=1e-12)


def test_a_delay_longer_than_a_period():
    sol = hn.solve(mass(), (0, 1), [0.0], controllers=hn.Sampled(lambda t: t, every=0.1, delay=0.25))
    assert np.allclose(sol.inputs["push"].t[1:], 0.25 + 0.1 * np.arange(1, 8))
    assert np.allclose(sol.inputs["push"].values[1:], 0.1 * np.arange(1, 8))


def test_several_controllers_at_different_rates():
    ticks = {"a": [], "b": []}
    fast = hn.Sampled(lambda t: ticks["a"].append(t) or 1.0, every=0.1, inputs="push")
    slow = hn.Sampled(lambda t: ticks["b"].append(t) or 2.0, every=0.3, inputs=["pull"])
    system = hn.System(1.0, lambda u: u.push - u.pull, inputs={"push": 0.0, "pull": 0.0}, names=["x"])
    sol = hn.solve(system, (0, 0.9), [0.0], controllers=[fast, slow])
    assert len(ticks["a"]) == 9
    assert len(ticks["b"]) == 3
    assert sol.v[0, -1] == pytest.approx(-0.9)
    assert np.diff(np.unique(sol.t)).min() > 1e-9, "instants that are one to rounding were taken apart"


def test_inputs_by_name_arrays_and_nothing():
    system = hn.System(np.eye(2), lambda u: u.f * u.gain, inputs={"f": np.zeros(2), "gain": 1.0}, n=2)

    def change(t):
        if t < 0.35:
            return {"f": np.array([t, -t])}
        return None if t < 0.65 else {"gain": 0.0}

    sol = hn.solve(system, (0, 1), [0, 0], controllers=hn.Sampled(change, every=0.1))
    assert sol.u.f.shape == (2, sol.t.size)
    assert sol.inputs["f"].values.shape == (2, 4)
    assert np.allclose(sol.inputs["gain"].t, [0, 0.7])
    assert sol.v[0, -1] == pytest.approx(0.1 * (0.1 + 0.2) + 0.4 * 0.3)


def test_memory_belongs_to_a_run():
    def count(state):
        state["ticks"] += 1
        return float(state["ticks"])

    controller = hn.Sampled(count, every=0.1, state={"ticks": 0})
    first, second = (hn.solve(mass(), (0, 1), [0.0], controllers=controller) for _ in range(2))
    assert np.array_equal(first.q, second.q)
    assert controller.state == {"ticks": 0}


def test_multipliers_and_forces_jump_with_the_inputs():
    sol = hn.solve(
        rod(), (0, 1), [0, -1], controllers=hn.Sampled(lambda t: 10.0 * (t > 0.45), every=0.5), rtol=1e-10
    )
    jump = np.flatnonzero(np.diff(sol.t) == 0)
    assert jump.size == 1
    before, behind = int(jump[0]), int(jump[0]) + 1
    assert sol.a[0, behind] - sol.a[0, before] == pytest.approx(10.0 * sol.q[1, before] ** 2, abs=1e-8)
    assert sol.u.push[[before, behind]].tolist() == [0.0, 10.0]


def test_with_output_times_events_and_dense_output():
    times = np.linspace(0, 1, 37)
    controller = hn.Sampled(law, every=0.02)
    whole = hn.solve(rod(), (0, 1), [0.6, -0.8], controllers=controller, dense_output=True, rtol=1e-9)
    some = hn.solve(rod(), (0, 1), [0.6, -0.8], controllers=controller, t_eval=times, rtol=1e-9)
    assert np.array_equal(some.t, times)
    assert np.allclose(whole.sol(times)[0], some.q, atol=1e-10)
    assert np.allclose(some.u.push, whole.inputs["push"].at(times))
    found = hn.solve(
        rod(),
        (0, 1),
        [0.6, -0.8],
        controllers=controller,
        rtol=1e-9,
        events=[lambda q: q[0], hn.Event(lambda q: q[0] + 0.1, terminal=True)],
    )
    assert found.status == 1
    assert found.t_events[0].size
    assert abs(whole.sol(found.t_events[0])[0][0]).max() < 1e-7
    assert found.t[-1] == found.t_events[1][-1]


def test_an_event_at_a_tick_is_found_once():
    held = hn.solve(
        mass(),
        (0, 1),
        [-0.125],
        [0.25],
        controllers=hn.Sampled(lambda: 0.0, every=0.25),
        events=lambda q: q[0],
    )
    assert np.allclose(held.t_events[0], [0.5])


def test_files_and_tables_have_the_inputs(tmp_path):
    sol = hn.solve(rod(), (0, 1), [0.6, -0.8], controllers=hn.Sampled(law, every=0.1))
    again = hn.Solution.load(sol.save(tmp_path / "run.npz"))
    assert np.array_equal(again.u.push, sol.u.push)
    assert np.array_equal(again.inputs["push"].t, sol.inputs["push"].t)
    assert np.array_equal(again.a, sol.a)
    assert np.array_equal(again.energy, sol.energy)
    assert sol.to_pandas()["push"].to_numpy().tolist() == sol.u.push.tolist()
    assert sol.to_xarray()["u"].sel(input="push").to_numpy().tolist() == sol.u.push.tolist()
    axes = sol.plot_inputs()
    assert axes.lines[0].get_drawstyle() == "steps-post"


def test_a_run_without_controllers_has_its_inputs_too():
    sol = hn.solve(rod(), (0, 1), [0.6, -0.8], inputs={"push": 2.0}, t_eval=[0.5, 1.0])
    assert sol.u.push.tolist() == [2.0, 2.0]
    assert sol.inputs["push"].values.tolist() == [2.0]
    with pytest.raises(ValueError, match="no inputs"):
        hn.solve(hn.System(1.0, [0.0], names=["x"]), (0, 1), [0.0]).plot_inputs()


def test_joints_by_name():
    m = hn.Mechanism("arm", inputs={"torque": 0.0})
    arm = m.body("arm", 1.0, 0.1, center=(0.5, 0), points={"A": (0, 0), "tip": (1, 0)})
    m.revolute("A", m.ground.at(0, 0), arm["A"])
    m.torque("motor", joint="A", law=lambda u: u.torque)

    def hold(joint, body):
        assert body("arm").point("tip").shape == (2,)
        return 9.81 / 2 - 30 * (joint("A").angle - 0.2) - 6 * joint("A").rate

    sol = hn.solve(m, (0, 5), start={"A": -0.3}, controllers=hn.Sampled(hold, every=0.01))
    assert sol.joint("A").angle[-1] == pytest.approx(0.2, abs=0.02)
    assert np.allclose(sol.effort("motor"), sol.u.torque)


def test_unknowns_are_followed_on_their_branch():
    system = hn.System(
        1.0,
        lambda w, u: -w + u.push,
        unknowns={"w": -1.0},
        equations=lambda w, q: w**2 - 1 - q**2,
        inputs={"push": 0.0},
        names=["x"],
    )
    smooth = hn.solve(system, (0, 2), [0.1], rtol=1e-9)
    ticks = hn.solve(system, (0, 2), [0.1], controllers=hn.Sampled(lambda: 0.0, every=0.1), rtol=1e-9)
    assert np.all(ticks.w < 0)
    assert np.allclose(ticks.q[:, -1], smooth.q[:, -1], atol=1e-7)


def test_stiffness_is_met_with_controllers_too():
    """The relay of "auto" goes on from piece to piece."""
    system = hn.System(
        [1.0, 1e-3], lambda q, v, u: np.array([u.push, -1e4 * v[1] - 1e6 * q[1]]), inputs={"push": 0.0}, n=2
    )
    sol = hn.solve(system, (0, 100), [0, 1e-3], controllers=hn.Sampled(lambda q: -q[0], every=50.0))
    assert sol.success
    assert "bdf" in sol.method
    assert sol.steps < 20_000


def raises(t):
    if t > 0.25:
        raise ZeroDivisionError("no signal")
    return 0.0


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (raises, "controllers[0] failed at t = 0.3: ZeroDivisionError: no signal"),
        (lambda t: np.nan if t > 0.25 else 0.0, "'push'"),
        (lambda t: [1.0, 2.0] if t > 0.25 else 0.0, "push"),
        (lambda t: "much" if t > 0.25 else 0.0, "push"),
        (lambda t: {"pull": 1.0} if t > 0.25 else 0.0, "none of its inputs push"),
    ],
)
def test_a_law_that_fails_stops_the_run_with_a_diagnosis(function, words):
    sol = hn.solve(mass(), (0, 1), [0.0], controllers=hn.Sampled(function, every=0.1))
    assert not sol.success
    assert words in sol.message
    assert "0.3" in sol.message
    assert sol.t[-1] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: hn.Sampled(3.0, every=1.0), ValueError, "law: 3.0; give a function"),
        (lambda: hn.Sampled(law, every=0.0), ValueError, "every: 0.0; give a positive number"),
        (lambda: hn.Sampled(law, every=1.0, delay=-1.0), ValueError, "delay"),
        (lambda: hn.Sampled(law, every=1.0, state=1.0), TypeError, "cannot be changed in place"),
        (lambda: run(hn.Sampled(lambda z: z, every=0.1)), TypeError, "its argument 'z' is not known"),
        (lambda: run(hn.Sampled(lambda state: state, every=0.1)), TypeError, "'state' is not known"),
        (lambda: run(hn.Sampled(law, every=0.1, inputs="pull")), ValueError, "'pull' unknown"),
        (
            lambda: run([hn.Sampled(law, every=0.1, inputs="push")] * 2),
            ValueError,
            "set by controllers\\[0\\]",
        ),
        (lambda: run(law), TypeError, "give an hn.Sampled"),
        (lambda: run(hn.Sampled(law, every=0.1), t_span=(1, 0)), ValueError, "backward"),
        (lambda: run(hn.Sampled(law, every=0.1), motion="smooth"), ValueError, "controllers: motion"),
        (
            lambda: run(hn.Sampled(law, every=0.1), method=hn.Method(hn.GGL(), hn.BDF(order=2)), step=0.01),
            ValueError,
            "constant order",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def run(controllers, t_span=(0, 1), **further):
    return hn.solve(mass(), t_span, [0.0], controllers=controllers, **further)


def test_progress_is_told():
    told = []
    run(hn.Sampled(lambda: 0.0, every=0.25), progress=told.append)
    assert told == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_many_ticks_need_little_memory():
    sol = run(hn.Sampled(lambda q: -q[0], every=1e-3), t_span=(0, 5))
    assert sol.success
    assert sol.inputs["push"].t.size <= 5001
    assert sol.t[-1] == 5


def test_values_refused_by_parameters_name_the_input():
    sol = run(hn.Sampled(lambda: np.inf, every=0.1))
    assert not sol.success
    assert "'push'" in sol.message
    assert issubclass(ModelError, ValueError)

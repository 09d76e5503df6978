"""Ensembles against single runs: the same motions, for every kind of system, event and dimension, bit by bit
the same whatever else is computed beside them.
"""

import signal

import numpy as np
import pytest

import holonome as hn

pytest.importorskip("xarray")

PENDULUM = hn.mechanisms.pendulum()
ANGLES = np.linspace(0.1, 2.9, 37)
STARTS = np.c_[np.sin(ANGLES), -np.cos(ANGLES)]


def pendulums(starts=STARTS, t_span=(0, 5), **options):
    return hn.ensemble(PENDULUM.system, t_span, over={"q0": ("start", starts)}, **options).run()


def test_members_are_the_runs_of_solve_and_stay_on_the_rod():
    times = np.linspace(0, 5, 6)
    ds = pendulums(t_eval=times, rtol=1e-9)
    for start, q in zip(STARTS, ds.q.values, strict=True):
        sol = hn.solve(PENDULUM.system, (0, 5), start, t_eval=times, rtol=1e-9)
        np.testing.assert_allclose(q, sol.q.T, atol=3e-7)
    assert np.max(np.abs(np.sum(ds.q.values**2, axis=-1) - 1)) < 1e-14
    assert ds.success.all()
    assert ds.q.dims == ("start", "t", "coordinate")


@pytest.mark.parametrize("name", ["slider_crank", "four_bar", "andrews", "double_pendulum"])
def test_mechanisms_with_loops(name):
    made = getattr(hn.mechanisms, name)()
    end = 0.02 if name == "andrews" else 1.0
    names = [p for p in made.system.parameters if p in ("m1", "m2", "gravity", "mom", "c0")][:2]
    over = {p: made.system.parameters[p] * np.linspace(1.0, 1.02, 3) for p in names}
    e = hn.ensemble(made.system, (0, end), made.q0, made.v0, over=over, rtol=1e-9)
    assert not e.study.obstacle
    ds = e.run()
    assert ds.success.all()
    flat = ds.stack(member=list(over))
    for member in range(0, flat.sizes["member"], 4):
        one = flat.isel(member=member)
        values = {p: float(one[p]) for p in over}
        sol = hn.solve(made.system, (0, end), made.q0, made.v0, parameters=values, rtol=1e-9)
        np.testing.assert_allclose(one.q.values, sol.q[:, -1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 17])
def test_digits_do_not_depend_on_neighbours_chunks_or_threads(count):
    everything = pendulums(threads=1)
    some = pendulums(STARTS[:count], threads=2, chunk=5)
    np.testing.assert_array_equal(some.q.values, everything.q.values[:count])
    np.testing.assert_array_equal(some.v.values, everything.v.values[:count])


def test_members_that_fail_are_told_and_disturb_nobody():
    starts = STARTS.copy()
    starts[3], starts[7] = (5.0, 5.0), (0.0, 0.0)
    starts[5] += 1e-5  # repaired
    ds, whole = pendulums(starts), pendulums()
    good = np.setdiff1d(np.arange(37), [3, 5, 7])
    np.testing.assert_array_equal(ds.q.values[good], whole.q.values[good])
    assert np.flatnonzero(~ds.success.values).tolist() == [3, 7]
    assert np.isnan(ds.q.values[[3, 7]]).all()
    assert "rod" in str(ds.message.values[3])


def test_a_wall_that_is_hit_too_hard_fails_alone():
    impasse = hn.ODE(lambda x, p: p.k * x**2, n=1, parameters={"k": 1.0})
    ds = hn.ensemble(impasse, (0, 1), [1.0], over={"k": [0.5, 2.0, -1.0]}).run()
    np.testing.assert_allclose(ds.x.values[[0, 2], 0], [2.0, 0.5], rtol=1e-6)
    assert ds.success.values.tolist() == [True, False, True]
    assert np.isnan(ds.x.values[1, 0])


def test_backward_in_time():
    there = pendulums(t_span=(0, 3), rtol=1e-10)
    back = hn.ensemble(
        PENDULUM.system,
        (3, 0),
        over={"q0": ("start", there.q.values), "v0": ("start", there.v.values)},
        t_eval=[3, 1, 0],
        rtol=1e-10,
    ).run()
    np.testing.assert_allclose(back.q.values[:, 2], STARTS, atol=1e-8)


@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_a_run_ends_at_its_event(direction):
    event = hn.Event(lambda q: q[0], direction=direction)
    ds = pendulums(until=event, rtol=1e-10)
    assert np.max(np.abs(ds.q.values[:, 0])) < 1e-13
    assert (ds.event.values == 0).all()
    for start, end in zip(STARTS[::6], ds.end.values[::6], strict=True):
        one = hn.Event(lambda q: q[0], direction=direction, terminal=True)
        sol = hn.solve(PENDULUM.system, (0, 5), start, events=one, rtol=1e-10)
        assert abs(sol.t[-1] - end) < 1e-8


def test_the_first_of_several_events_counts():
    ds = pendulums(until=[lambda q: q[0] - 0.5, lambda t: t - 0.3], t_eval=[0.1, 0.2, 4.0])
    assert set(ds.event.values.tolist()) == {0, 1}
    late = ds.event.values == 1
    np.testing.assert_allclose(ds.end.values[late], 0.3, rtol=1e-14)
    assert np.isnan(ds.q.values[:, 2]).all()
    assert not np.isnan(ds.q.values[late, :2]).any()


def test_times_of_members():
    ds = hn.ensemble(
        PENDULUM.system, (0, 5), PENDULUM.q0, over={"t_end": [1.0, 2.0, 5.0]}, t_eval=[0, 0.5, 1.5, 4.5]
    ).run()
    assert np.isnan(ds.q.values[:, :, 0]).sum(axis=1).tolist() == [2, 1, 0]
    np.testing.assert_array_equal(ds.q.values[0, :2], ds.q.values[2, :2])
    late = hn.ensemble(PENDULUM.system, (0, 5), PENDULUM.q0, over={"t0": [0.0, 1.0]}, t_eval=[0.5, 3]).run()
    assert np.isnan(late.q.values[1, 0]).all()
    assert not np.isnan(late.q.values[1, 1]).any()


def test_quantities_with_accelerations_and_multipliers():
    ds = hn.ensemble(
        PENDULUM.system,
        (0, 2),
        PENDULUM.q0,
        over={"m": [1.0, 2.0]},
        t_eval=[1, 2],
        keep={"tension": lambda lam, p: 2 * lam[0] * p.length, "a": lambda a: a[1]},
        rtol=1e-10,
    ).run()
    for i, m in enumerate((1.0, 2.0)):
        sol = hn.solve(PENDULUM.system, (0, 2), PENDULUM.q0, t_eval=[1, 2], parameters={"m": m}, rtol=1e-10)
        np.testing.assert_allclose(ds.tension.values[i], 2 * sol.lam[0], rtol=1e-6)
        np.testing.assert_allclose(ds.a.values[i], sol.a[1], rtol=1e-6)


def test_stiff_members_are_solved_alone():
    oscillator = hn.ODE(
        lambda x, p: np.array([x[1], p.mu * (1 - x[0] ** 2) * x[1] - x[0]]), n=2, parameters={"mu": 1.0}
    )
    ds = hn.ensemble(oscillator, (0, 20), [2.0, 0.0], over={"mu": [0.1, 5.0, 1000.0]}).run()
    sol = hn.solve(oscillator, (0, 20), [2.0, 0.0], parameters={"mu": 1000.0})
    np.testing.assert_array_equal(ds.x.values[2], sol.x[:, -1])
    assert ds.success.all()


def test_what_the_loop_cannot_treat_is_solved_one_by_one():
    opaque = hn.System(1.0, lambda q: [float(str(-q[0]))], n=1)
    e = hn.ensemble(opaque, (0, 1), over={"q0": ("case", [[1.0], [2.0]])}, t_eval=[0.5, 1])
    assert "could not be traced" in e.explain()
    np.testing.assert_allclose(e.run().q.values[1, :, 0], 2 * np.cos([0.5, 1.0]), rtol=1e-5)


def test_grids_and_values_that_go_together():
    e = hn.ensemble(
        PENDULUM,
        (0, 1),
        over={"m": [1.0, 2.0], "gravity": ("k", [9.0, 10.0, 11.0]), "length": ("k", [1, 1, 1])},
    )
    assert e.members == 6
    assert dict(e.dimensions) == {"m": 2, "k": 3}
    ds = e.run()
    assert ds.q.dims == ("m", "k", "coordinate")
    assert ds.gravity.dims == ("k",)
    np.testing.assert_allclose(ds.q.values[0], ds.q.values[1], atol=1e-5)  # mass does not matter


def test_a_mechanism_is_assembled_for_each_member():
    m = hn.Mechanism("pendulum", gravity=(0, -9.81))
    rod = m.body("rod", 1.0, 0.1, center=(0, -0.5), points={"A": (0, 0)})
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    ds = hn.ensemble(m, (0, 1), over={"start.A": [0.1, 0.2], "speed.A": ("start.A", [0.0, 1.0])}).run()
    sol = hn.solve(m, (0, 1), start={"A": 0.2}, speed={"A": 1.0})
    np.testing.assert_allclose(ds.q.values[1], sol.q[:, -1], atol=1e-6)


def test_statistics_instead_of_members():
    ds = pendulums(t_eval=[1, 2])
    few = pendulums(t_eval=[1, 2], reduce={"q": np.linspace(-1, 1, 5)}, chunk=8)
    np.testing.assert_allclose(few.q_mean, ds.q.mean("start"), rtol=1e-13)
    np.testing.assert_allclose(few.q_std, ds.q.std("start", ddof=1), rtol=1e-12)
    np.testing.assert_array_equal(few.q_max, ds.q.max("start"))
    np.testing.assert_array_equal(
        few.q_histogram[0, 0], np.histogram(ds.q[:, 0, 0], np.linspace(-1, 1, 5))[0]
    )


def test_random_members_are_reproducible_alone():
    few, many = (hn.ensembles.random(n, {"m": (1, 2), "gravity": (9, 10)}, seed=3) for n in (3, 100))
    np.testing.assert_array_equal(few["gravity"][1], many["gravity"][1][:3])
    drawn = [
        hn.ensemble(PENDULUM, (0, 1), over={"m": lambda rng: rng.uniform(1, 2)}, members=n).study.design
        for n in (3, 10)
    ]
    np.testing.assert_array_equal(drawn[0].variations[0].values, drawn[1].variations[0].values[:3])


def test_progress_is_told():
    told = []
    hn.ensemble(PENDULUM, (0, 1), over={"m": np.linspace(1, 2, 50)}, chunk=10).run(
        progress=lambda fraction, text: told.append((fraction, text))
    )
    assert [fraction for fraction, _ in told] == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert "members/s" in told[0][1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"over": {"k": [1]}}, "unknown"),
        ({"over": [1]}, "give a dict"),
        ({"over": {"q0": [[1, 0]]}}, "along which dimension"),
        ({"over": {"m": ("k", [1, 2]), "length": ("k", [1, 2, 3])}}, "go together"),
        ({"over": {"m": [1, np.nan]}}, "finite"),
        ({"over": {"start.A": [1]}}, "mechanism has joints"),
        ({"over": {"t_end": [1, -1]}}, "direction of t_span"),
        ({"over": {"m": lambda rng: 1.0}}, "members"),
        ({"over": {"m": [1]}, "members": 3}, "no effect"),
        ({"over": {"m": [1]}, "t_eval": [9]}, "within t_span"),
        ({"over": {"m": [1]}, "keep": ["z"]}, "keep"),
        ({"over": {"m": [1]}, "keep": {"end": lambda q: q[0]}}, "taken"),
        ({"over": {"m": [1]}, "keep": {"f": lambda q: float(str(q[0]))}}, "cannot be traced"),
        ({"over": {"m": [1]}, "device": "abacus"}, "device"),
        ({"over": {"m": [1]}, "reduce": {"z": [0, 1]}}, "reduce"),
        ({"over": {"m": [1]}, "method": "magic"}, "method"),
        ({"over": {"m": [1]}, "parameters": {"m": 2}}, r"parameters\['m'\].*no effect"),
        ({"over": {"q0": ("case", [[0, -1]])}}, "q0.*no effect"),
        ({"over": {"m": [1]}, "keep": {"m": lambda q: q[0]}}, "taken in keep"),
        ({"over": {"m": ("q", [1])}}, "taken in keep"),
        ({"over": {"m": ("t", [1])}}, "taken for results"),
        ({"over": {"m": [1]}, "keep": {"a/b": lambda q: q[0]}}, "store"),
    ],
)
def test_what_is_wrong_is_said(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        hn.ensemble(PENDULUM.system, (0, 1), PENDULUM.q0, **options).run()


def test_captured_values_that_changed_are_refused():
    level = [0.5]
    e = hn.ensemble(PENDULUM, (0, 1), over={"m": [1.0]}, keep={"above": lambda q: q[1] - level[0]})
    assert float(e.run().above[0]) == pytest.approx(float(e.run().above[0]))
    level[0] = 0.7
    with pytest.raises(hn.ModelError, match=r"keep\['above'\]"):
        e.run()


def test_functions_missing_on_a_card_are_computed_on_the_processor():
    from math import erf

    system = hn.System(1.0, lambda q: [-erf(q[0])], n=1)
    e = hn.ensemble(system, (0, 1), [1.0], over={"t_end": [0.5, 1.0]}, device="cuda")
    assert "thread" in e.explain()
    assert e.run().success.all()


@pytest.fixture
def python_heeds_ctrl_c():
    """Python's own handler, also where a shell has started the tests in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_heeds_ctrl_c")
def test_interrupted_runs_keep_what_is_done():
    e = hn.ensemble(PENDULUM, (0, 10), over={"gravity": np.linspace(9, 10, 40_000)}, chunk=200, threads=1)
    whole = e.run()

    def stop(fraction, text):
        if fraction > 0.2:
            signal.raise_signal(signal.SIGINT)

    part = e.run(progress=stop)
    done = part.success.values
    assert 8_000 < done.sum() < 40_000
    np.testing.assert_array_equal(part.q.values[done], whole.q.values[done])
    assert set(part.message.values[~done]) == {"not computed"}
    assert np.isnan(part.q.values[~done]).all()

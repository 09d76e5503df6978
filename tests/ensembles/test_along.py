"""Extremes, means and first passages of whole motions: against closed forms, against dense single runs, and
the same digits whatever is computed beside them.
"""

import numpy as np
import pytest
from scipy.special import ellipk

import holonome as hn
from holonome.ensembles import first_passage, maximum, mean, minimum

pytest.importorskip("xarray")

PENDULUM = hn.mechanisms.pendulum()
GRAVITY = PENDULUM.system.parameters["gravity"]
ANGLES = np.linspace(0.3, 2.9, 9)
STARTS = np.c_[np.sin(ANGLES), -np.cos(ANGLES)]
PERIODS = 4 * ellipk(np.sin(ANGLES / 2) ** 2) / np.sqrt(GRAVITY)
KEEP = {
    "speed": maximum(lambda v: v @ v),
    "low": minimum(lambda q: q[1]),
    "height": mean(lambda q: q[1]),
    "kinetic": mean(lambda v: v @ v / 2),
    "tension": maximum(lambda lam: lam[0]),
    "down": first_passage(lambda q: q[0]),
    "back": first_passage(lambda q: q[0], direction=1),
}


def pendulums(count=9, **options):
    given = {"keep": KEEP, "rtol": 1e-8} | options
    return hn.ensemble(PENDULUM.system, (0, 10), over={"q0": ("start", STARTS[:count])}, **given)


def test_a_pendulum_has_its_largest_speed_period_and_energy():
    ds = pendulums().run()
    np.testing.assert_allclose(ds.speed, 2 * GRAVITY * (1 - np.cos(ANGLES)), rtol=1e-9)
    np.testing.assert_allclose(ds.speed_time, PERIODS / 4, rtol=2e-6)
    np.testing.assert_allclose(ds.low, -1.0, rtol=1e-10)
    np.testing.assert_allclose(ds.down, PERIODS / 4, rtol=1e-8)
    np.testing.assert_allclose(ds.back, 3 * PERIODS / 4, rtol=1e-8)
    np.testing.assert_allclose(ds.kinetic + GRAVITY * ds.height, -GRAVITY * np.cos(ANGLES), atol=1e-7)


def test_members_alone_give_the_same():
    study = pendulums(3).study
    lanes, alone = pendulums(3).run(), study.rows(0, 3, None)
    for name, values in alone.kept.items():
        np.testing.assert_allclose(values, lanes[name], rtol=1e-6, atol=1e-6, err_msg=name)


def test_digits_do_not_depend_on_neighbours_chunks_or_threads():
    whole, some = pendulums(threads=1).run(), pendulums(5, threads=2, chunk=2).run()
    for name in whole.data_vars:
        np.testing.assert_array_equal(whole[name].values[:5], some[name].values, err_msg=str(name))


def test_a_mean_has_the_order_of_the_method():
    """Of cos t over a long time, for an oscillator whose steps the tolerance chooses; where |q| has a kink,
    its own error estimate makes the steps smaller.
    """
    for rtol in (1e-5, 1e-7, 1e-9):
        e = hn.ensemble(
            hn.System(1.0, lambda q: -q),
            (0, 20),
            [0.0],
            [1.0],
            over={"t_end": [20.0, 13.0]},
            keep={"wave": mean(lambda q: np.cos(9 * q[0])), "kink": mean(lambda q: abs(q[0]))},
            rtol=rtol,
        )
        ds = e.run()
        for i, end in enumerate((20.0, 13.0)):
            t = np.linspace(0, end, 400_001)
            exact = np.trapezoid(np.cos(9 * np.sin(t)), t) / end
            assert abs(float(ds.wave[i]) - exact) < 2 * rtol + 1e-9
            whole = np.floor(end / np.pi)
            kink = (2 * whole + 1 - np.cos(end - whole * np.pi)) / end
            assert abs(float(ds.kink[i]) - kink) < 200 * rtol


THROWN = hn.System(1.0, [-10.0])


@pytest.mark.parametrize("under", [1e-3, 1e-6, 1e-10, 0.0])
def test_a_level_that_is_grazed_within_a_step(under):
    """The ball reaches the height 5 after a second; steps are as long as the run."""
    level, apart = 5 - under, np.sqrt(under / 5)
    given = {"q0": [0.0], "v0": [10.0], "over": {"t_end": [3.0]}}
    until = hn.ensemble(THROWN, (0, 3), **given, until=lambda q: q[0] - level).run()
    keep = {
        "first": first_passage(lambda q: q[0] - level),
        "down": first_passage(hn.Event(lambda q: q[0] - level, direction=-1)),
        "top": maximum(lambda q: q[0]),
    }
    ds = hn.ensemble(THROWN, (0, 3), **given, keep=keep).run()
    assert until.event.values == 0
    assert abs(float(until.end[0]) - (1 - apart)) < 1e-9
    assert abs(float(ds["first"][0]) - (1 - apart)) < 1e-9
    assert abs(float(ds.top[0]) - 5) < 1e-8
    if under:
        assert abs(float(ds.down[0]) - (1 + apart)) < 1e-9


def test_a_level_that_is_missed_by_little_is_missed():
    given = {"q0": [0.0], "v0": [10.0], "over": {"t_end": [3.0]}}
    ds = hn.ensemble(THROWN, (0, 3), **given, until=lambda q: q[0] - 5 - 1e-9).run()
    assert ds.event.values == -1
    assert ds.end.values == 3.0


def test_many_turns_within_a_step():
    """sin(9 q) turns up to six times in half a period, a few times within a step."""
    oscillator = hn.System(1.0, lambda q: -q)
    keep = {
        "most": maximum(lambda q: np.sin(9 * q[0]) * q[0]),
        "least": minimum(lambda q: np.sin(9 * q[0]) * q[0]),
        "passes": first_passage(lambda q: np.sin(9 * q[0]), direction=-1),
    }
    ds = hn.ensemble(oscillator, (0, 7), [0.0], [1.0], over={"t_end": [7.0]}, keep=keep, rtol=1e-6).run()
    q = np.linspace(-1, 1, 2_000_001)
    f = np.sin(9 * q) * q
    np.testing.assert_allclose([ds.most[0], ds.least[0]], [f.max(), f.min()], atol=2e-6)
    assert abs(float(ds.passes[0]) - np.arcsin(np.pi / 9)) < 1e-6


def test_backward_in_time_and_with_events():
    keep = {
        "top": maximum(lambda q: q[0]),
        "at": first_passage(lambda q: q[0] - 4),
        "mean": mean(lambda q: q[0]),
    }
    back = hn.ensemble(THROWN, (3, 0), [-15.0], [-20.0], over={"t_end": [0.0]}, keep=keep).run()
    found = [float(back[name][0]) for name in ("top", "top_time", "at", "mean")]
    np.testing.assert_allclose(found, [5, 1, 1 + np.sqrt(0.2), 0], atol=1e-8)
    ended = hn.ensemble(
        THROWN, (0, 3), [0.0], [10.0], over={"t_end": [3.0]}, keep=keep, until=lambda q: q[0] - 3.75
    ).run()
    found = [float(ended[name][0]) for name in ("end", "top", "top_time", "at", "mean")]
    np.testing.assert_allclose(found, [0.5, 3.75, 0.5, np.nan, 1.25 * (5 / 3)], atol=1e-8)


def test_statistics_of_whole_motions_and_stores(tmp_path):
    ds = pendulums().run()
    few = pendulums(reduce={"speed": [0, 20, 40]}, chunk=2).run()
    np.testing.assert_allclose(few.speed_mean, ds.speed.mean(), rtol=1e-13)
    np.testing.assert_array_equal(few.speed_histogram, np.histogram(ds.speed, [0, 20, 40])[0])
    pytest.importorskip("zarr")
    for _ in range(2):
        assert pendulums(store=tmp_path / "study", chunk=4).run().equals(ds)


def test_members_that_fail_have_nan():
    starts = np.vstack([STARTS[:2], [[5.0, 5.0]]])
    ds = hn.ensemble(PENDULUM.system, (0, 1), over={"q0": ("start", starts)}, keep=KEEP).run()
    assert ds.success.values.tolist() == [True, True, False]
    assert all(np.isnan(ds[name].values[2]) for name in KEEP)
    assert np.isfinite(ds.speed.values[:2]).all()


def test_a_function_that_is_no_number_is_told():
    for keep in (maximum, first_passage):
        ds = hn.ensemble(
            THROWN,
            (0, 3),
            [0.0],
            [10.0],
            over={"t_end": [0.5, 3.0]},
            keep={"x": keep(lambda q: np.sqrt(q[0] + 1))},
        ).run()
        assert bool(ds.success[0])
        assert np.isnan(ds.x.values[1])


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ({"x": maximum(lambda q: q[0]), "x_time": lambda t: t}, "taken"),
        ({"x": mean(lambda q: float(str(q[0])))}, "cannot be traced"),
        ({"singular": mean(lambda q: q[0])}, "taken"),
    ],
)
def test_what_is_wrong_is_said(keep, message):
    with pytest.raises((ValueError, TypeError), match=message):
        hn.ensemble(THROWN, (0, 1), [0.0], over={"t_end": [1.0]}, keep=keep)


def test_arguments_without_effect_are_refused():
    with pytest.raises(ValueError, match="t_eval"):
        hn.ensemble(
            THROWN, (0, 1), [0.0], over={"t_end": [1.0]}, t_eval=[0.5], keep={"x": mean(lambda q: q[0])}
        )
    with pytest.raises(TypeError, match="maximum"):
        maximum(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="until"):
        first_passage(hn.Event(lambda q: q[0], terminal=True))


def test_falls_of_the_rank_are_counted():
    """Equal bars lie in line twice in a turn; unequal ones never do."""
    for name, expected in (("slider_crank", True), ("slider_crank_unequal", False)):
        made = getattr(hn.mechanisms, name)()
        over = {"gravity": [9.7, 9.9], "t_end": [2.0, 5.0]}
        ds = hn.ensemble(made.system, (0, 5), made.q0, made.v0, over=over).run()
        for i, gravity in enumerate(over["gravity"]):
            for j, end in enumerate(over["t_end"]):
                given = {"parameters": {"gravity": gravity}}
                sol = hn.solve(made.system, (0, end), made.q0, made.v0, **given)
                assert int(ds.singular[i, j]) == len(sol.singular_times)
        assert bool((ds.singular > 0).any()) is expected

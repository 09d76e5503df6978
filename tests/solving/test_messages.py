"""What a run says about itself names the true reason, whichever method was used."""

import numpy as np
import pytest

import holonome as hn

METHODS = {name: {"step": 0.01} if entry.fixed_step else {} for name, entry in hn.methods().items()}


def pendulum(force=(0.0, -9.81), mass=(1.0, 1.0), **options):
    return hn.System(mass, force, lambda q: q @ q - 1, names=["x", "y"], **options)


NOT_A_NUMBER = {
    "of time": (lambda t: np.array([np.sqrt(0.3 - t), -9.81]), {}, "entry 0 of force is nan"),
    "suddenly": (lambda t: np.array([np.where(t > 0.3, np.nan, 0.0), -9.81]), {}, "entry 0 of force is nan"),
    "of position": (lambda q: np.array([np.sqrt(q[1] + 0.5), -9.81]), {}, "entry 0 of force is nan"),
    "not traced": (
        lambda t: np.array([float(np.sqrt(0.3 - float(t))), -9.81]),
        {},
        "entry 0 of force is nan",
    ),
    "mass": (
        (0.0, -9.81),
        {"mass": lambda q: np.ones(2) * np.sqrt(q[1] + 0.5), "inertial": "in force"},
        "of mass is nan",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", NOT_A_NUMBER)
def test_not_a_number_is_the_reason_that_is_named(case, method):
    if case == "mass" and METHODS[method]:
        pytest.skip("a mass that vanishes stops Newton's method in the step before")
    if case == "not traced" and method == "taylor":
        pytest.skip("it refuses functions that cannot be traced")
    force, options, told = NOT_A_NUMBER[case]
    sol = hn.solve(
        pendulum(force, **options), (0, 1), [1, 0], method=method, max_steps=100_000, **METHODS[method]
    )
    assert not sol.success
    assert told in sol.message
    assert "singular" not in sol.message
    assert np.all(np.isfinite(sol.q))


def test_a_mass_that_vanishes_is_named():
    system = hn.System(lambda t: np.array([1.0, 1 - 2 * t]), [0, -9.81], lambda q: q[0], names=["x", "y"])
    for method in ("auto", "ggl", "srm"):
        assert "mass matrix becomes singular" in hn.solve(system, (0, 1), [0, 1], method=method).message


@pytest.mark.parametrize("method", ["srm", hn.Method(hn.SRM(), hn.BDF())], ids=["srm", "bdf"])
def test_srm_names_a_singular_mass(method):
    system = hn.System(np.ones((2, 2)), [0, -9.81], lambda q: q[0] - 0.5, names=["x", "y"])
    assert hn.solve(system, (0, 1), [0.5, 1]).success
    with pytest.raises(hn.SingularSystem, match="mass: singular at t = 0; SRM needs a regular mass matrix"):
        hn.solve(system, (0, 1), [0.5, 1], method=method)


def test_a_healthy_run_that_used_up_its_steps_is_told_to_raise_them():
    sol = hn.solve(pendulum(), (0, 1e4), [1, 0], max_steps=50)
    assert "after max_steps = 50 steps" in sol.message
    assert "Raise max_steps or loosen rtol" in sol.message
    assert "jumps" not in sol.message


def test_a_run_that_creeps_is_told_of_jumps():
    rubbing = hn.System(1.0, lambda v: -np.sign(v), names=["x"])
    sol = hn.solve(rubbing, (0, 10), [0], [1], max_steps=3000)
    assert "jumps" in sol.message


def test_max_steps_is_what_was_given_after_a_switch_of_methods():
    stiff = hn.System(
        [1.0, 1.0],
        lambda t, q, v: np.array([-1e8 * (q[0] - np.sin(t)) - 1e6 * v[0], np.sin(30 * t)]),
        names=["x", "y"],
    )
    sol = hn.solve(stiff, (0, 1e5), [0, 0], max_steps=20_000)
    assert "→" in sol.method
    assert "after max_steps = 20000 steps" in sol.message
    assert sol.steps + sol.rejections <= 20_000


def test_nothing_is_said_about_the_change_of_one_point():
    system = pendulum(potential=lambda q: 9.81 * q[1], invariant=lambda q, v: v @ v / 2 + 9.81 * q[1])
    one, two = (hn.solve(system, (0, 1), [1, 0], t_eval=times) for times in ([1.0], [0.0, 1.0]))
    assert "change" not in str(one)
    assert np.isnan(one.energy_change)
    assert str(two).count("by at most") == 2
    assert two.energy_change < 1e-10


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("options", [{}, {"projection": False}], ids=["", "without projection"])
def test_a_true_invariant_stays_true_for_methods_that_drift(method, options):
    if method == "srm" or METHODS[method]:
        pytest.skip("not made for invariants")
    for share, success in ((1.0, True), (0.9, False)):
        system = pendulum(invariant=lambda q, v, share=share: v @ v / 2 + share * 9.81 * q[1])
        sol = hn.solve(system, (0, 20), [1, 0], method=method, rtol=1e-3, **options)
        assert sol.success == success, sol.message


@pytest.mark.parametrize("method", ["auto", "bdf", "ggl", "srm"])
def test_a_run_that_stops_before_its_first_point_keeps_where_it_stopped(method):
    broken = pendulum(lambda t: np.array([np.sqrt(0.3 - t), -9.81]))
    sol = hn.solve(broken, (0, 1), [1, 0], t_eval=[0.5, 1.0], method=method)
    assert sol.t == pytest.approx([0.3], abs=1e-6)
    assert sol.q.shape == (2, 1)
    assert sol.lam.shape == (1, 1)
    assert "1 point" in str(sol)
    ended = hn.solve(
        pendulum(),
        (0, 1),
        [1, 0],
        t_eval=[0.9],
        method=method,
        events=hn.Event(lambda t: t - 0.25, terminal=1),
    )
    assert ended.t == pytest.approx([0.25])
    assert hn.solve(pendulum(), (0, 1), [1, 0], t_eval=[], method=method).t.size == 0


def test_dry_friction_at_rest_is_noticed_long_before_max_steps():
    """sign(v) chatters: a tenth of the steps that are allowed is enough to see that."""
    system = hn.System(1.0, lambda q, v: -q - 0.3 * np.sign(v), n=1)
    sol = hn.solve(system, (0, 20), [1.0], max_steps=200_000)
    assert not sol.success
    assert "Hardly any progress" in sol.message
    assert sol.steps + sol.rejections <= 40_000


def test_many_small_steps_that_succeed_are_no_chatter():
    sol = hn.solve(hn.System(1.0, lambda q: -1e8 * q, n=1), (0, 10), [1.0], max_steps=30_000, rtol=1e-8)
    assert "max_steps = 30000" in sol.message

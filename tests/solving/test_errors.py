"""Every mistake gets an error that names the argument or function and says what to do; what goes wrong during
a run is told by its result.
"""

import threading
import warnings
from decimal import Decimal

import numpy as np
import pytest
from scipy.interpolate import interp1d

import holonome as hn
from holonome.solving import diagnosis

UNIT, DOWN = np.eye(2), np.array([0.0, -9.81])


def pendulum(**arguments) -> hn.System:
    return hn.System(
        **{
            "mass": UNIT,
            "force": DOWN,
            "constraint": lambda q: q @ q - 1,
            "names": ["x", "y"],
            "constraint_names": ["rod"],
        }
        | arguments
    )


def solve(system=None, t_span=(0, 1), q0=(1.0, 0.0), v0=(0.0, 0.0), **arguments):
    return hn.solve(system or pendulum(), t_span, q0, v0, **arguments)


def opaque(function):
    """The same function, but one that cannot be traced or compiled."""
    table = interp1d([-1e3, 1e3], [-1e3, 1e3])

    def call(t, q, v):
        return function(float(t), np.array([float(table(x)) for x in q]), v)

    return call


# The system


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"mass": np.ones((2, 3))}, r"mass has shape \(2, 3\).*\(2, 2\)"),
        ({"mass": lambda q: np.ones(3), "n": 2}, r"mass has shape \(3,\).*\(2, 2\)"),
        ({"mass": None}, "mass: missing"),
        ({"mass": lambda v: np.eye(2)}, "mass.*'v'.*t, q, p"),
        ({"mass": np.array([[1.0, 2.0], [0.0, 1.0]])}, r"mass.*symmetric.*M\[0,1\] = 2.*M\[1,0\] = 0"),
        ({"mass": lambda q: np.array([[1.0, q[0]], [q[1], 1.0]])}, "mass.*symmetric"),
        ({"mass": UNIT * 1j}, "mass: array.*real number"),
        ({"force": None}, "force: missing"),
        ({"force": np.zeros(3)}, r"force has shape \(3,\).*\(2,\)"),
        ({"force": lambda q: np.zeros((2, 2))}, r"force has shape \(2, 2\).*\(2,\)"),
        ({"force": lambda q: None}, "force.*NoneType"),
        ({"force": lambda q: "strong"}, "force.*str"),
        ({"force": lambda q: [1.0, [2.0, 3.0]]}, "force.*regular array"),
        ({"force": lambda q: np.array([1j, 0.0])}, "force.*complex"),
        ({"force": lambda q: 1 / 0}, "force raised ZeroDivisionError.*q ="),
        ({"force": lambda q: q[7] * q}, "force raised IndexError"),
        ({"force": lambda x: DOWN}, "force.*'x'.*t, q, v, p"),
        ({"force": lambda p: DOWN * p.gravity}, "force.*no parameter 'gravity'"),
        ({"constraint": lambda q: None}, "constraint.*NoneType"),
        ({"constraint": lambda q: np.outer(q, q)}, r"constraint has shape \(2, 2\)"),
        ({"constraint": lambda q: np.zeros(0)}, r"constraint has shape \(0,\)"),
        ({"constraint": lambda q, v: q @ v}, "constraint.*'v'.*t, q, p"),
        ({"constraint": np.zeros(2), "constraint_names": None}, "constraint.*callable"),
        (
            {"velocity_constraint": lambda q: np.zeros((1, 3)), "constraint_names": None},
            "velocity_constraint.*2 columns",
        ),
        (
            {"velocity_constraint": lambda v: v @ v - 1, "constraint_names": None},
            "velocity_constraint.*linear",
        ),
        (
            {"velocity_constraint": lambda q, v: np.outer(q, v), "constraint_names": None},
            "velocity_constraint has shape",
        ),
        ({"names": ["x"]}, "names gives 1.*mass gives 2"),
        ({"names": ["x", "x"]}, "names.*'x'"),
        ({"names": "xy"}, "names.*list"),
        ({"constraint_names": ["a", "b"]}, "constraint_names: 2 names for 1"),
        ({"parameters": {"a": "heavy"}}, r"parameters\['a'\]: 'heavy'"),
        ({"parameters": {"a": np.nan}}, r"parameters\['a'\]: nan.*finite"),
        ({"derivatives": {"constraint_q": lambda q: q}}, r"derivatives\['constraint_q'\].*entry \[0,0\]"),
        ({"derivatives": {"constraint_q": lambda q: np.zeros(5)}}, r"derivatives\['constraint_q'\]"),
        ({"derivatives": {"force_q": lambda q: np.ones((2, 2))}}, r"derivatives\['force_q'\].*entry \[0,0\]"),
        ({"derivatives": {"constraint": lambda q: q}}, "derivatives: 'constraint'.*constraint_q"),
    ],
)
def test_what_is_wrong_with_a_system(parts, message):
    with pytest.raises(hn.ModelError, match=message):
        pendulum(**parts)


def test_functions_that_hide_their_arguments():
    with pytest.raises((hn.ModelError, TypeError), match=r"\*a"):
        pendulum(force=lambda *a: DOWN)


def test_number_of_coordinates_must_be_known():
    with pytest.raises(hn.ModelError, match=r"names=\[.*n="):
        hn.System(lambda q: np.eye(2), lambda q: q)


@pytest.mark.parametrize("where", ["mass", "force"])
def test_mass_must_be_symmetric_whatever_cannot_be_traced(where):
    wrong = np.array([[1.0, 0.5], [0.0, 1.0]])
    mass, force = (
        (wrong, opaque(lambda t, q, v: DOWN))
        if where == "force"
        else (lambda q: wrong + 0 * float(q[0]), DOWN)
    )
    with pytest.raises(hn.ModelError, match="symmetric"):
        hn.System(mass, force, n=2)


def test_velocity_constraint_must_be_linear_also_if_it_cannot_be_traced():
    with pytest.raises(hn.ModelError, match="linear"):
        hn.System(UNIT, DOWN, velocity_constraint=opaque(lambda t, q, v: np.array([float(v[0]) ** 2 - 1])))


def test_building_a_system_is_silent():
    """Trying out functions at arbitrary points must not print warnings about square roots there."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hn.System(UNIT, lambda q: np.sqrt(0.5 - q) + np.log(q), lambda q: np.sqrt(q[0]) - 0.1)
        hn.System(UNIT, lambda q: np.array([np.sqrt(0.5 - float(q[0])), 1 / (float(q[1]) + 0.9)]))
    assert not caught, [str(w.message) for w in caught]


# The arguments of solve


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q0": [1.0]}, r"q0: shape \(1,\).*2 coordinates"),
        ({"q0": 1.0}, "q0: shape"),
        ({"q0": [[1.0, 0.0]]}, r"q0: shape \(1, 2\)"),
        ({"q0": ["a", 0]}, "q0.*real numbers"),
        ({"q0": None}, "q0"),
        ({"q0": np.array([1j, 0.0])}, "q0.*real"),
        ({"q0": [np.nan, 0.0]}, "q0: entry 0 is nan"),
        ({"q0": [1.0, np.inf]}, "q0: entry 1 is inf"),
        ({"v0": [1.0]}, "v0: shape"),
        ({"v0": [0.0, np.nan]}, "v0: entry 1 is nan"),
        ({"method": "rk45"}, "method: 'rk45'.*dopri5"),
        ({"method": None}, "method: None.*dopri5"),
        ({"t_span": 5}, "t_span"),
        ({"t_span": (0, 1, 2)}, "t_span"),
        ({"t_span": (0, 0)}, "t_span.*no length"),
        ({"t_span": (0, np.inf)}, "t_span.*both finite"),
        ({"t_span": (np.nan, 1)}, "t_span.*both finite"),
        ({"t_span": "ab"}, "t_span"),
        ({"t_eval": [0.5, 2.0]}, "t_eval.*within"),
        ({"t_eval": [0.5, 0.2]}, "t_eval.*sorted"),
        ({"t_eval": [0.5, 0.5]}, "t_eval.*repetition"),
        ({"t_eval": 0.5}, "t_eval.*one-dimensional"),
        ({"t_eval": [np.nan]}, "t_eval"),
        ({"t_eval": "now"}, "t_eval"),
        ({"rtol": -1e-6}, "rtol"),
        ({"rtol": 1.5}, "rtol"),
        ({"rtol": np.nan}, "rtol"),
        ({"rtol": "fine"}, "rtol"),
        ({"rtol": None}, "rtol"),
        ({"rtol": 0.0, "atol": 0.0}, "atol"),
        ({"atol": -1.0}, "atol"),
        ({"atol": np.inf}, "atol"),
        ({"atol": "fine"}, "atol"),
        ({"atol": [1e-6, 1e-6, 1e-6]}, r"atol: shape \(3,\).*2 values.*4"),
        ({"first_step": 0.0}, "first_step"),
        ({"first_step": "a"}, "first_step"),
        ({"max_step": -1.0}, "max_step"),
        ({"max_step": "a"}, "max_step"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_steps": "many"}, "max_steps"),
        ({"step": 0.0}, "step"),
        ({"step": "a"}, "step"),
        ({"step": np.nan}, "step"),
        ({"parameters": {"mass": 2.0}}, "parameters: 'mass' unknown"),
        ({"parameters": [1.0]}, "parameters"),
        ({"events": 5}, "events"),
        ({"events": [lambda q: q[0], 5]}, r"events\[1\]"),
        ({"events": lambda q: q}, r"events\[0\].*scalar"),
        ({"events": lambda z: z}, r"events\[0\].*'z'"),
        ({"events": lambda q: None}, r"events\[0\].*NoneType"),
        ({"system": "pendulum"}, "system.*System"),
    ],
)
def test_what_is_wrong_with_the_arguments(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        solve(**arguments)


def test_parameters_keep_their_shape():
    system = pendulum(force=lambda p: p.load, parameters={"load": [0.0, -1.0]})
    with pytest.raises(hn.ModelError, match=r"'load' has shape \(3,\).*\(2,\)"):
        solve(system, parameters={"load": [1.0, 2.0, 3.0]})
    with pytest.raises(hn.ModelError, match=r"'gravity' unknown; this system has load"):
        solve(system, parameters={"gravity": 1.0})


def test_ordinary_numbers_of_every_kind_are_welcome():
    """NumPy scalars of any type, integers, lists and tuples are numbers too."""
    numbers = {
        "rtol": np.float32(1e-5),
        "atol": np.float32(1e-7),
        "max_steps": np.int64(1000),
        "max_step": np.float32(0.5),
    }
    assert solve(t_span=(np.int64(0), np.float32(1)), q0=[1, 0], **numbers).success
    assert solve(t_span=np.array([0, 1]), first_step=np.float64(1e-3), t_eval=(0, 1)).success


def test_a_method_is_a_formulation_and_an_integrator():
    with pytest.raises(TypeError, match="UnderlyingODE"):
        hn.Method(hn.RungeKutta("heun"), hn.UnderlyingODE())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dopri5"):
        hn.RungeKutta("rk4")


# The start


def test_small_errors_of_the_start_are_repaired_and_reported():
    sol = solve(q0=[1.0 + 1e-5, 0.0])
    assert sol.success
    assert "1.0e-05" in sol.message
    assert abs(np.linalg.norm(sol.q[:, 0]) - 1) < 1e-15
    assert sol.start.moved_q == pytest.approx(1e-5)


def test_large_errors_of_the_start_raise():
    with pytest.raises(hn.InconsistentStart, match=r"q0.*rod = 0\.21.*repair=True"):
        solve(q0=[1.1, 0.0])
    with pytest.raises(hn.InconsistentStart, match=r"v0.*rod = 2.*repair=True"):
        solve(v0=[1.0, 0.0])
    sol = solve(q0=[1.1, 0.0], v0=[1.0, 2.0], repair=True)
    assert sol.success
    np.testing.assert_allclose(sol.q[:, 0], [1, 0], atol=1e-14)
    np.testing.assert_allclose(sol.v[:, 0], [0, 2], atol=1e-14)


@pytest.mark.parametrize("repair", [False, True])
def test_start_where_the_gradient_vanishes(repair):
    """The centre of the circle violates the constraint by one, though no small correction can tell."""
    with pytest.raises(hn.HolonomeError, match="rod"):
        solve(q0=[0.0, 0.0], repair=repair)


@pytest.mark.parametrize("q0", [[0.0, 0.0], [1.0, 0.0], [0.3, 0.0]])
def test_contradictory_rows_are_named(q0):
    """Wherever the start is, also exactly on one of the rows."""
    system = hn.System(
        UNIT,
        DOWN,
        lambda q: np.array([q[0], q[1] - q[0] ** 2, q[0] - 1.0]),
        constraint_names=["left wall", "slide", "right wall"],
    )
    with pytest.raises(hn.ContradictoryConstraints, match=r"left wall.*right wall|right wall.*left wall"):
        solve(system, q0=q0, repair=True)


def test_contradiction_of_velocities_and_accelerations_is_told():
    walls = hn.System(
        UNIT, DOWN, lambda t, q: np.array([q[0], q[0] - t]), constraint_names=["still", "moving"]
    )
    with pytest.raises(hn.ContradictoryConstraints, match=r"moving|still"):
        solve(walls, q0=[0.0, 0.0])
    walls = hn.System(
        UNIT, DOWN, lambda t, q: np.array([q[0], q[0] - t**2]), constraint_names=["still", "moving"]
    )
    with pytest.raises(hn.ContradictoryConstraints, match=r"moving|still"):
        solve(walls, q0=[0.0, 0.0])


def test_contradiction_that_arises_later_stops_the_run():
    walls = hn.System(
        UNIT,
        DOWN,
        lambda t, q: np.array([q[0], q[0] - np.maximum(t - 0.5, 0.0) ** 3]),
        constraint_names=["still", "moving"],
    )
    sol = solve(walls, q0=[0.0, 0.0])
    assert not sol.success
    assert 0.45 < sol.t[-1] < 0.6
    assert np.max(np.abs(sol.g)) < 1e-8


@pytest.mark.parametrize("q0", [[1.0, 0.0], [1.0 + 1e-6, 0.0]])
def test_redundant_rows_are_named(q0):
    system = hn.System(
        UNIT, DOWN, lambda q: np.array([q @ q - 1, 3 * (q @ q - 1)]), constraint_names=["rod", "second rod"]
    )
    sol = solve(system, q0=q0)
    assert sol.success
    assert "redundant" in sol.message
    assert "second rod" in sol.message
    assert hn.consistent(system, [1.0, 0.0]).redundant == ("second rod",)


def test_no_position_at_all():
    with pytest.raises((hn.ContradictoryConstraints, hn.InconsistentStart), match="rod"):
        solve(pendulum(constraint=lambda q: q @ q + 1), q0=[1.0, 0.5], repair=True)


def test_singular_mass():
    with pytest.raises(hn.SingularSystem, match=r"mass.*y can move"):
        solve(hn.System(np.diag([1.0, 0.0]), DOWN, names=["x", "y"]))
    with pytest.raises(hn.SingularSystem, match="mass"):
        solve(hn.System(np.ones((2, 2)), DOWN, names=["x", "y"]))


def test_mass_that_becomes_singular_on_the_way():
    sol = solve(
        hn.System(lambda q: np.diag([q[0], 1.0]), np.array([-1.0, 0.0]), n=2),
        t_span=(0, 5),
        q0=[1.0, 0.0],
        v0=[-1.0, 0.0],
    )
    assert not sol.success
    assert len(sol.message) > 20
    assert np.all(np.isfinite(sol.y))
    assert sol.q[0, -1] < 0.1


@pytest.mark.parametrize("role", ["mass", "force", "constraint"])
def test_functions_that_are_not_finite_at_the_start(role):
    bad = {
        "mass": lambda q: np.array([np.sqrt(q[1]), 1.0]),
        "force": lambda q: np.log(q - 2.0),
        "constraint": lambda q: np.sqrt(q[1] - 1),
    }[role]
    with pytest.raises(hn.ModelError, match=f"{role}.*nan.*t = 0, q ="):
        solve(pendulum(**{role: bad, "n": 2}), q0=[1.0, -1e-3], repair=True)


@pytest.mark.parametrize("fixed", ["y", ["y"], 1, -1, [1], (1,), np.int64(1), np.array([1])])
def test_consistent_with_fixed_coordinates(fixed):
    start = hn.consistent(pendulum(), [0.6, -0.9], [0.3, 0.1], fixed=fixed, repair=True)
    np.testing.assert_allclose(start.q, [np.sqrt(1 - 0.81), -0.9], rtol=1e-14)
    np.testing.assert_allclose(start.v, [0.09 / start.q[0], 0.1], rtol=1e-12)


def test_fixed_coordinates_that_cannot_be():
    with pytest.raises(ValueError, match=r"fixed: 'z'.*x, y"):
        hn.consistent(pendulum(), [0.6, -0.8], fixed=["z"])
    with pytest.raises(ValueError, match=r"fixed: 2 .*2 coordinates"):
        hn.consistent(pendulum(), [0.6, -0.8], fixed=[2])
    with pytest.raises((ValueError, TypeError), match="fixed"):
        hn.consistent(pendulum(), [0.6, -0.8], fixed=[0.7])
    with pytest.raises(hn.HolonomeError, match=r"y.*fixed.*rod"):
        hn.consistent(pendulum(), [0.6, -1.9], fixed=["y"], repair=True)
    with pytest.raises(hn.HolonomeError, match=r"x, y.*fixed.*rod"):
        hn.consistent(pendulum(), [0.6, -0.9], fixed=["x", "y"], repair=True)
    with pytest.raises(hn.ContradictoryConstraints, match="fixed"):
        hn.consistent(pendulum(), [1.0, 0.0], [1.0, 0.0], fixed=["x"], repair=True)
    with pytest.raises(ValueError, match="metric"):
        hn.consistent(pendulum(), [0.6, -0.8], metric="taxicab")


# During the run


def _raises_beyond(q):
    if float(q[0]) > 0.5:
        raise RuntimeError("the table ends here")
    return np.array([1.0, 0.0])


def _none_beyond(q):
    return None if float(q[0]) > 0.5 else np.array([1.0, 0.0])


def _longer_beyond(q):
    return np.zeros(3) if float(q[0]) > 0.5 else np.array([1.0, 0.0])


def _nan_beyond(q):
    return np.array([1.0 + 1e-12 * np.sqrt(0.5 - q[0]), 0.0])


_table = interp1d([-1.0, 0.5], [1.0, 1.0])


def _scipy_beyond(q):
    return np.array([float(_table(q[0])), 0.0])


FAILING = [
    (_raises_beyond, "RuntimeError"),
    (_none_beyond, "None"),
    (_longer_beyond, "shape"),
    (_nan_beyond, "nan"),
    (_scipy_beyond, "ValueError"),
]


@pytest.mark.parametrize(("force", "told"), FAILING)
def test_force_that_fails_later(force, told):
    """X = t²/2 reaches 0.5 at t = 1.  The run comes close to that, keeps what it has, and names function,
    time and place.
    """
    with np.errstate(all="ignore"):
        sol = solve(hn.System(UNIT, force), t_span=(0, 5), q0=[0.0, 0.0])
    assert not sol.success
    assert sol.status == -1
    assert "force" in sol.message
    assert told in sol.message
    assert "t = " in sol.message
    assert "q = [" in sol.message
    assert np.all(np.isfinite(sol.y))
    np.testing.assert_allclose(sol.q[0], sol.t**2 / 2, atol=1e-6)
    assert 0.99 < sol.t[-1] < 1.001, "a trial step that reaches too far is no reason to give up"


@pytest.mark.parametrize("role", ["mass", "constraint"])
def test_other_functions_that_fail_later(role):
    def late(value):
        def function(t, q):
            if float(t) > 0.3:
                raise OverflowError("too late")
            return value(q)

        return function

    early = {"mass": lambda q: np.eye(2), "constraint": lambda q: float(q[0]) ** 2 + float(q[1]) ** 2 - 1}
    sol = solve(pendulum(**{role: late(early[role]), "n": 2}))
    assert not sol.success
    assert role in sol.message
    assert "too late" in sol.message
    assert 0.2 < sol.t[-1] <= 0.3


def test_event_that_fails_later():
    def event(t):
        if float(t) > 0.3:
            raise OverflowError("too late")
        return 1.0

    sol = solve(events=event)
    assert not sol.success
    assert "events[0]" in sol.message
    assert "too late" in sol.message
    assert sol.t.size > 1


def test_too_many_steps():
    sol = solve(t_span=(0, 100), max_steps=50)
    assert not sol.success
    assert "max_steps" in sol.message
    assert sol.steps + sol.rejections == 50
    assert sol.t.size == sol.steps + 1


def test_motion_that_ends_in_finite_time():
    """q″ = 6 q² from q = 1, q′ = 2 is 1/(1 − t)²: the run stops at t = 1 and says so."""
    sol = solve(hn.System(1.0, lambda q: 6 * q**2), t_span=(0, 2), q0=[1.0], v0=[2.0], max_steps=20_000)
    assert not sol.success
    assert "grows" in sol.message
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-3)
    assert np.all(np.diff(sol.t) > 0)


def test_steps_that_no_longer_advance_time_end_the_run():
    """A(q) v = b with A → 0: q′ = 1 / cos q from q = 0 ends at t = 1, q = π/2; steps of size 1e-29 there are
    not progress.
    """
    system = hn.System(1.0, np.zeros(1), velocity_constraint=lambda q, v: np.cos(q) * v - 1.0)
    sol = solve(system, t_span=(0, 2), q0=[0.0], v0=None, method="heun", max_steps=50_000)
    assert not sol.success
    assert np.all(np.diff(sol.t) > 0)
    assert "max_steps" not in sol.message


def test_constraint_that_cannot_be_met_further_on():
    """The rod is shortened to nothing at t = 0.5."""
    sol = solve(pendulum(constraint=lambda t, q: q @ q - (1 - 2 * t)), v0=None)
    assert not sol.success
    assert sol.t[-1] <= 0.5
    assert np.max(np.abs(sol.g)) < 1e-12
    assert len(sol.message) > 20


@pytest.mark.parametrize("mass", [-np.eye(2), np.diag([1.0, -1.0])])
def test_negative_mass_is_refused(mass):
    with pytest.raises(hn.SingularSystem, match="mass: negative"):
        solve(pendulum(mass=mass), q0=[0.8, -0.6])
    with pytest.raises(hn.SingularSystem, match="mass: negative"):
        solve(hn.System(mass, DOWN), q0=[0.8, -0.6])


def test_words_for_velocity_constraints():
    with pytest.raises(hn.InconsistentStart, match="velocity constraints: roll = 1"):
        solve(
            hn.System(UNIT, DOWN, velocity_constraint=lambda v: v[0], constraint_names=["roll"]),
            v0=[1.0, 0.0],
        )


def test_runs_in_other_threads_leave_an_error_alone(monkeypatch):
    """A run that begins between the failure of another one and its diagnosis."""

    def force(q, v):
        if float(q[0]) > 1.0:
            raise RuntimeError("too far")
        return np.array([Decimal(float(v[0])) * 0 + 1], dtype=float)

    system = hn.System(1.0, force, names=["x"])
    assert system.paths["force"] == "python"
    diagnose = diagnosis._user_failure

    def after_another_run(run):
        other = threading.Thread(target=hn.solve, args=(system, (0, 0.1), [0.0]))
        other.start()
        other.join()
        return diagnose(run)

    monkeypatch.setattr(diagnosis, "_user_failure", after_another_run)
    assert "force raised RuntimeError: too far" in hn.solve(system, (0, 10), [0.0]).message

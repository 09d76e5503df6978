"""Forces that grow without bound at a time: no run reports success across it, and the message names them."""

import numpy as np
import pytest

import holonome as hn

CIRCLE = hn.System(
    np.eye(2),
    lambda t, p: np.array([1 / (p.pole - t), -9.81]),
    lambda q: q @ q - 1,
    names=["x", "y"],
    parameters={"pole": 0.3},
)
METHODS = ["auto", "heun", "bdf", "ggl", "ggl*", "cs", "cm", "index3", "index2", "index1", "baumgarte", "srm"]


@pytest.mark.parametrize("method", METHODS)
def test_no_method_passes_a_pole(method):
    sol = hn.solve(CIRCLE, (0, 1), [1, 0], method=method)
    assert not sol.success
    assert sol.t[-1] == pytest.approx(0.3, abs=1e-4)
    assert "force grows without bound near t = 0.3" in sol.message
    assert hn.solve(CIRCLE, (0, 1), [1, 0], method=method, parameters={"pole": 1.5}).success


def test_constant_steps_and_steps_backward_end_there_too():
    for options in ({"t_span": (0, 1), "method": "dopri5", "step": 0.01}, {"t_span": (1, 0)}):
        sol = hn.solve(CIRCLE, q0=[1, 0], **options)
        assert not sol.success
        assert "force grows without bound near t = 0.3" in sol.message


@pytest.mark.parametrize(
    ("force", "pole"),
    [
        (lambda t: 1 / (0.3 - t) ** 2, 0.3),
        (lambda t: np.tan(3 * t), np.pi / 6),
        (lambda t: t / (np.exp(t) - 1.5), np.log(1.5)),
        (lambda t: (0.3 - t) ** -3, 0.3),
        (lambda t: 1e-6 / np.abs(np.sin(t - 0.3)), 0.3),
    ],
)
def test_poles_of_many_kinds(force, pole):
    for method in ("auto", "index3"):
        sol = hn.solve(hn.System(1.0, force, names=["x"]), (0, 1), [0], method=method)
        assert not sol.success
        assert f"force grows without bound near t = {pole:.6g}" in sol.message


@pytest.mark.parametrize(
    ("force", "exact"),
    [
        (lambda t: (t**2 - 0.09) / (t - 0.3), 1 / 6 + 0.15),
        (lambda t: np.where(t < 0.2, 1 / (0.3 - t), 0.0), 0.3 - 0.1 * np.log(3) - 0.1 + 0.8 * np.log(3)),
    ],
)
@pytest.mark.parametrize("method", ["auto", "bdf", "index3"])
def test_a_denominator_that_vanishes_is_not_always_a_pole(force, exact, method):
    """x(1) = ∫ (1 − t) f(t) dt.  The tests of "index3" see positions alone: what they leave undone, divided
    by the small steps behind a jump, is an error of the velocity, which nothing takes back here.
    """
    sol = hn.solve(hn.System(1.0, force, names=["x"]), (0, 1), [0], method=method, rtol=1e-8)
    assert sol.success
    assert np.all(np.diff(sol.t) > 0)
    assert sol.q[0, -1] == pytest.approx(exact, rel=1e-3 if method == "index3" else 1e-5)


def test_index_3_is_as_accurate_behind_a_jump_if_its_tests_see_velocities():
    system = hn.System(1.0, lambda t: np.where(t < 0.2, 1 / (0.3 - t), 0.0), names=["x"])
    sol = hn.solve(system, (0, 1), [0], method=hn.Method(hn.Index3(error_test="qv"), hn.BDF()), rtol=1e-8)
    assert sol.q[0, -1] == pytest.approx(0.2 + 0.7 * np.log(3), rel=1e-6)


def test_poles_that_only_the_run_can_find_are_named():
    """Of q, of a function that is called, and of a problem of index 2."""

    def called(t):
        return 1 / (0.3 - float(str(t)))

    systems = [
        hn.System(1.0, lambda q: 1 / (0.3 - q), names=["x"]),
        hn.System(1.0, called, names=["x"]),
        hn.Index2System(
            lambda t: np.array([1 / (0.3 - t), 0]), lambda x: x, lambda x: (x @ x - 1) / 2, names=["x", "y"]
        ),
    ]
    for system, function in zip(systems, ("force", "force", "f"), strict=True):
        sol = hn.solve(system, (0, 1), [0.0] if system.n == 1 else [1.0, 0.0])
        assert not sol.success
        assert f"{function} grows without bound near t = 0.3" in sol.message

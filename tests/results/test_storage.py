"""Saved results: what comes back is what was saved, with its system, and nothing in a file is code."""

import math

import numpy as np
import pytest

import holonome as hn


@pytest.mark.parametrize("name", list(hn.mechanisms.available()))
def test_every_result_comes_back_with_its_system(name, tmp_path):
    mechanism = hn.mechanisms.get(name)
    t_span = (0.0, min(0.1, mechanism.t_span[1]))
    saved = hn.solve(mechanism.system, t_span, mechanism.q0, mechanism.v0)
    found = hn.Solution.load(saved.save(tmp_path / "run.npz"))
    assert str(found) == str(saved)
    for part in ("t", "q", "v", "s", "lam", "g", "gv", "a"):
        np.testing.assert_array_equal(getattr(found, part), getattr(saved, part), err_msg=part)
    np.testing.assert_array_equal(found.history.h, saved.history.h)
    assert found.history.cause == saved.history.cause
    assert dict(found.system.parameters).keys() == dict(mechanism.system.parameters).keys()
    again = hn.solve(found.system, t_span, mechanism.q0, mechanism.v0)
    np.testing.assert_allclose(again.q[:, -1], saved.q[:, -1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", list(hn.mechanisms.available()))
def test_drawings_come_back(name, tmp_path):
    mechanism = hn.mechanisms.get(name)
    saved = hn.solve(mechanism.system, (0.0, 0.01), mechanism.q0, mechanism.v0)
    found = hn.Solution.load(saved.save(tmp_path / "run.npz"))
    p = saved.system.parameters.namespace(saved.system.parameters.flat)
    for times in (slice(None), 0):
        before, after = (
            run.system.drawing.at(saved.q[:, times], p, saved.t[times], saved.s[:, times])
            for run in (saved, found)
        )
        assert list(before) == list(after)
        for point in before:
            np.testing.assert_allclose(after[point], before[point], rtol=0, atol=1e-14)
    assert [list(pair) for pair in found.system.drawing.links] == [
        list(pair) for pair in saved.system.drawing.links
    ]


def test_an_ode_with_its_invariant_comes_back(tmp_path):
    circle = hn.ODE(
        lambda x, p: p.omega * np.array([-x[1], x[0]]),
        invariant=lambda x: x @ x,
        names=["a", "b"],
        parameters={"omega": 2.0, "unused": np.eye(2)},
    )
    saved = hn.solve(circle, (0, 5), [1, 0], method="bdf")
    found = hn.Solution.load(saved.save(tmp_path / "run.npz"))
    assert isinstance(found.system, hn.ODE)
    np.testing.assert_array_equal(found.x, saved.x)
    np.testing.assert_array_equal(found.invariant, saved.invariant)
    np.testing.assert_array_equal(found.system.parameters["unused"], np.eye(2))


def test_a_result_without_history_comes_back(tmp_path):
    pendulum = hn.mechanisms.get("pendulum")
    saved = hn.solve(pendulum.system, (0, 1), pendulum.q0, t_eval=[0.5, 1.0])
    found = hn.Solution.load(saved.save(tmp_path / "run.npz"))
    assert found.history is None
    np.testing.assert_array_equal(found.q, saved.q)


def test_functions_that_cannot_be_traced_are_asked_for(tmp_path):
    def force(q):
        return np.array([0.0, -9.81 if math.floor(float(q[0]) * 0.0) == 0 else 0.0])

    system = hn.System(np.eye(2), force, lambda q: q @ q - 1, names=["x", "y"])
    assert system.paths["force"] != "traced"
    saved = hn.solve(system, (0, 0.5), [1, 0])
    path = saved.save(tmp_path / "run.npz")
    with pytest.raises(ValueError, match="could not be traced"):
        hn.Solution.load(path)
    np.testing.assert_array_equal(hn.Solution.load(path, system=system).lam, saved.lam)
    with pytest.raises(ValueError, match="4 coordinates and 2 constraints"):
        hn.Solution.load(path, system=hn.mechanisms.get("double_pendulum").system)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("nothing")
    np.savez(tmp_path / "other.npz", t=[0.0])
    np.savez(tmp_path / "pickle.npz", t=np.array([{}], dtype=object))
    for name, message in (
        ("text", "not a file of NumPy arrays"),
        ("other", "not a saved result"),
        ("pickle", "not a file of NumPy arrays"),
    ):
        with pytest.raises(ValueError, match=message):
            hn.Solution.load(tmp_path / f"{name}.npz")
    with pytest.raises(FileNotFoundError):
        hn.Solution.load(tmp_path / "missing.npz")

"""Inputs: numbers that are meant to change on the way, beside parameters."""

import pickle

import numpy as np
import pytest

import holonome as hn
from holonome.errors import ModelError


def pushed():
    return hn.System(
        np.eye(2),
        lambda q, p, u: np.array([u.push, -p.g]),
        lambda q: q @ q - 1,
        parameters={"g": 9.81},
        inputs={"push": 0.0},
        names=["x", "y"],
    )


def test_a_constant_input_is_like_a_parameter():
    system = pushed()
    by_input = hn.solve(system, (0, 1), [0, -1], inputs={"push": 3.0})
    constant = hn.System(np.eye(2), [3.0, -9.81], lambda q: q @ q - 1, names=["x", "y"])
    assert np.allclose(by_input.q[:, -1], hn.solve(constant, (0, 1), [0, -1]).q[:, -1], atol=1e-6)
    assert by_input.system.u.push == 3.0
    assert system.u.push == 0.0


def test_they_travel_with_pickles_and_files(tmp_path):
    sol = hn.solve(pushed(), (0, 1), [0, -1], inputs={"push": 3.0})
    sol.save(tmp_path / "run.npz")
    for system in (pickle.loads(pickle.dumps(sol.system)), hn.Solution.load(tmp_path / "run.npz").system):
        assert system.inputs == ("push",)
        assert system.u.push == 3.0
        assert np.array_equal(hn.solve(system, (0, 1), [0, -1]).q, sol.q)


@pytest.mark.parametrize("compiled", [True, False])
def test_functions_that_cannot_be_traced_see_them(compiled):
    if compiled:

        def force(q, u, p):
            return np.array([np.linalg.solve(np.diag(np.array([p.c, 1.0])), np.array([u.push, 0.0]))[0]])
    else:

        def force(q, u, p):
            return np.array([float(np.linalg.eigvalsh(np.diag([u.push / p.c, 1e3]))[0])])

    system = hn.System(1.0, force, inputs={"push": 0.5}, parameters={"c": 2.0}, names=["x"])
    sol = hn.solve(system, (0, 1), [0.0], inputs={"push": 4.0})
    assert sol.q[0, -1] == pytest.approx(1.0)


def test_mechanisms_have_them_too():
    m = hn.Mechanism("arm", inputs={"torque": 0.0, "k": 1.0})
    rod = m.body("rod", 1, 0.1, points={"A": (0, 0)}, center=(0.5, 0))
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    m.torque("motor", joint="A", law=lambda u, angle: u.torque - u.k * angle)
    held = hn.solve(m, (0, 1), inputs={"torque": 9.81 * 0.5})
    assert held.success
    assert np.max(np.abs(held.q)) < 1e-12


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: hn.solve(pushed(), (0, 1), [0, -1], parameters={"push": 1.0}),
            "'push' is one of the inputs",
        ),
        (lambda: hn.solve(pushed(), (0, 1), [0, -1], inputs={"g": 1.0}), "'g' is one of the parameters"),
        (lambda: hn.solve(pushed(), (0, 1), [0, -1], inputs={"pull": 1.0}), "'pull' unknown; .* has push"),
        (lambda: hn.System(1.0, lambda u: -u.x, names=["x"]), "argument 'u' is not known"),
        (
            lambda: hn.System(1.0, [0.0], lambda q, u: q, inputs={"a": 1.0}, names=["x"]),
            "constraint: its arg",
        ),
        (
            lambda: hn.System(1.0, [0.0], inputs={"a": 1.0}, parameters={"a": 1.0}, names=["x"]),
            "'a' is a par",
        ),
        (lambda: hn.System(1.0, [0.0], inputs={"a": "x"}, names=["x"]), r"inputs\['a'\]"),
        (lambda: hn.System(1.0, [0.0], inputs={"a": np.nan}, names=["x"]), r"inputs\['a'\]"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def test_geometry_must_not_depend_on_them():
    m = hn.Mechanism("arm", inputs={"length": 1.0})
    rod = m.body("rod", 1, 0.1, center=(0.5, 0), points={"A": (0, 0), "B": (1, 0)})
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    m.distance("rope", m.ground.at(1, 1), rod["B"], length=m.u.length)
    with pytest.raises(ModelError, match="constraint: it depends on an input"):
        m.system  # noqa: B018

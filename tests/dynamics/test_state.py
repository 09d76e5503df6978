"""What a system is at a state: values against closed forms and runs, derivatives against differences."""

import numpy as np
import pytest

import holonome as hn
from holonome.errors import ModelError

DERIVED = ("M", "f", "g", "gv", "G", "gamma", "momentum", "kinetic_energy", "a", "lam", "constraint_force")


def value(system, of, t, q, v, s, **changed):
    given = {"t": t, "q": q, "v": v, "s": s} | {k: x for k, x in changed.items() if k in "tqvs"}
    others = {k: x for k, x in changed.items() if k not in "tqvs"}
    return np.asarray(getattr(system.with_parameters(**others).at(**given), of))


def by_differences(system, of, by, t, q, v, s, eps):
    """Central differences, the axis of ``by`` last."""
    at = {"t": t, "q": q, "v": v, "s": s}
    x = at[by] if by in at else system.parameters[by]
    if np.ndim(x) == 0:
        up, down = (value(system, of, **(at | {by: x + k * eps})) for k in (1, -1))
        return (up - down) / (2 * eps)
    moves = [[value(system, of, **(at | {by: x + k * eps * e})) for k in (1, -1)] for e in np.eye(len(x))]
    return np.stack([(up - down) / (2 * eps) for up, down in moves], axis=-1)


def forced():
    """Redundant rows, an input, a state, time, a mass that depends on q."""
    return hn.System(
        lambda q: np.array([[2 + q[1] ** 2, 0.1 * q[0]], [0.1 * q[0], 1.0]]),
        lambda t, v, s, p, u: np.array([u.push * np.sin(t) + s[0], -p.g]) - 0.1 * v,
        lambda t, q: np.array([q @ q - 1 - 0.1 * t**2, 2 * (q @ q - 1 - 0.1 * t**2)]),
        states={"heat": 0.3},
        rate=lambda v, s, u: np.array([v @ v - s[0] * u.push]),
        potential=lambda q, p: p.g * q[1],
        inertial="derived",
        parameters={"g": 9.81},
        inputs={"push": 0.7},
        names=["x", "y"],
    )


@pytest.mark.parametrize("name", ["slider_crank", "wheelset", "bricard_linkage", "forced"])
def test_derivatives_are_those_of_differences(name):
    random = np.random.default_rng(3)
    if name == "forced":
        system, q = forced(), np.array([0.6, -0.8])
    else:
        example = getattr(hn.mechanisms, name)()
        system, q = example.system, np.array(example.q0, float)
    v, s = 0.03 * random.normal(size=system.n), np.array(list(system.states.values()))
    here = system.at(0.3, q, v, s)
    further = ["s", "g", "push"] if name == "forced" else []
    for of in (*DERIVED, *(["rate", "energy"] if name == "forced" else [])):
        for by in ["t", "q", "v", *further]:
            exact, errors = here.derivative(of, by), []
            for eps in (1e-4, 1e-5, 1e-6):
                found = by_differences(system, of, by, 0.3, q, v, s, eps)
                assert np.shape(exact) == np.shape(found), (of, by)
                scale = 1 + np.max(np.abs(found), initial=0.0)
                errors.append(np.max(np.abs(exact - found), initial=0.0) / scale)
            assert min(errors) < 3e-6, (of, by)


def test_closed_form_of_the_pendulum():
    here = hn.mechanisms.pendulum().system.at(0, [0, -1], [2, 0])
    assert np.allclose(here.a, [0, 4])
    assert np.allclose(here.constraint_force, [0, 4 + 9.81])
    assert here.energy == pytest.approx(2 - 9.81)
    assert np.allclose(here.momentum, [2, 0])
    assert here.kinetic_energy == 2
    assert here.potential_energy == -9.81


def test_many_states_are_those_of_a_run():
    system = hn.mechanisms.andrews().system
    example = hn.mechanisms.andrews()
    sol = hn.solve(system, (0, 0.01), example.q0, example.v0)
    many = system.at(sol.t, sol.q, sol.v)
    assert np.array_equal(many.a, sol.a)
    assert np.array_equal(many.lam, sol.lam)
    assert many.M.shape == (7, 7, sol.t.size)
    assert many.derivative("a", "q").shape == (7, 7, sol.t.size)
    residual = np.einsum("ijk,jk->ik", many.M, many.a) - many.f - many.constraint_force
    assert np.max(np.abs(residual)) < 1e-10 * np.max(np.abs(many.f))
    one = list(many)[5]
    assert np.array_equal(one.a, many.a[:, 5])
    assert one.t == sol.t[5]


def test_redundant_rows_share_the_force():
    here = forced().at(0, [0.6, -0.8], [0.8, 0.6], [0.1])
    assert np.max(np.abs(here.M @ here.a - here.f - here.constraint_force)) < 1e-13
    assert here.lam[1] == pytest.approx(2 * here.lam[0])


def test_inverse_dynamics_gives_back_the_inputs():
    system = forced()
    state = [0.4, -0.9], [0.9, 0.4], [0.1]
    wanted = system.at(1.1, *state, inputs={"push": 2.5}).a
    assert system.at(1.1, *state).inverse_dynamics(wanted) == {"push": pytest.approx(2.5)}
    cubic = hn.System(1.0, lambda u: np.array([u.x**3 + u.x]), inputs={"x": 0.1}, names=["y"])
    assert cubic.at(0, [0.0]).inverse_dynamics([10.0])["x"] == pytest.approx(2.0)
    free = hn.mechanisms.pendulum().system
    here = free.at(0, [0.6, -0.8])
    push = np.array([0.8, 0.6])  # along the circle
    assert np.allclose(here.inverse_dynamics(here.a + 3 * push), 3 * push)


def test_inverse_dynamics_says_what_cannot_be():
    system = forced()
    with pytest.raises(ValueError, match=r"a: the constraint constraint\[0\] does not allow"):
        system.at(0, [0.6, -0.8]).inverse_dynamics([1.0, 1.0])
    idle = hn.System(np.eye(2), lambda u: np.array([u.x, 0.0]), inputs={"x": 0.0}, names=["a", "b"])
    with pytest.raises(ModelError, match=r"x cannot give these accelerations.*'b'"):
        idle.at(0, [0, 0]).inverse_dynamics([1.0, 1.0])
    with pytest.raises(ValueError, match="inputs: 'z'; the inputs are x"):
        idle.at(0, [0, 0]).inverse_dynamics([1.0, 0.0], inputs=["z"])


def test_bad_states_are_named():
    system = hn.mechanisms.pendulum().system
    with pytest.raises(ValueError, match=r"q: shape \(3,\)"):
        system.at(0, [1, 2, 3])
    with pytest.raises(ValueError, match="t: 2 and 3 states"):
        system.at([0, 1], np.zeros((2, 3)))
    with pytest.raises(ValueError, match="by: 'z'"):
        system.at(0, [0, -1]).derivative("a", by="z")
    with pytest.raises(AttributeError, match="a state has no 'x'"):
        system.at(0, [0, -1]).x  # noqa: B018
    bad = hn.System(1.0, lambda q: np.array([np.sqrt(q[0])]), names=["x"])
    with pytest.raises(ModelError, match=r"force .*-1"):
        bad.at(0, [-1.0]).f  # noqa: B018
    with pytest.raises(ModelError, match="potential"):
        bad.at(0, [1.0]).energy  # noqa: B018


def test_second_derivatives_of_what_cannot_be_traced_are_refused():
    def hidden(q):
        return np.array([float(np.linalg.eigvalsh(np.diag([q @ q, 9.0]))[0]) - 1.0])

    system = hn.System(np.eye(2), [0.0, -9.81], hidden, names=["x", "y"])
    here = system.at(0, [0.6, -0.8], [0.8, 0.6])
    assert here.a.shape == (2,)
    assert np.allclose(here.derivative("g", "q"), [[1.2, -1.6]], atol=1e-6)
    with pytest.raises(ModelError, match="constraint: the derivative of 'a' by 'q' is not known"):
        here.derivative("a", "q")


def test_an_ode_has_rates():
    decay = hn.ODE(lambda x, u: -x * u.k, n=2, inputs={"k": 2.0})
    assert decay.at(0, [1.0, 2.0]).rate.tolist() == [-2.0, -4.0]
    assert decay.at(0, [[1.0, 2.0], [3.0, 4.0]]).rate.tolist() == [[-2.0, -4.0], [-6.0, -8.0]]
    assert decay.at(0, [1.0, 2.0]).derivative("rate", "u").tolist() == [[-1.0], [-2.0]]

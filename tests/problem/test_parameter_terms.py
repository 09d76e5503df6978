"""Long terms of parameters alone are computed once for a run; nothing else changes by that."""

import pickle

import numpy as np
import pytest

import holonome as hn
from holonome.problem.parameter_terms import FEWEST

K = np.linspace(1.0, 2.0, 2 * FEWEST)


def stiff(q, v, p, u):
    return -(p.k.mean() + np.sum(np.sqrt(p.k)) / p.k.size) * q - u.c * v


def oscillator() -> hn.System:
    return hn.System(1.0, stiff, names=["x"], parameters={"k": K}, inputs={"c": 0.0})


def stiffness(k):
    return np.mean(k) + np.mean(np.sqrt(k))


def frequency(k):
    return np.sqrt(stiffness(k))


@pytest.fixture(scope="module")
def system():
    return oscillator()


def test_terms_are_no_part_of_the_code(system):
    short = hn.System(
        1.0, lambda q, v, p, u: -p.k[0] * q - u.c * v, n=1, parameters={"k": K}, inputs={"c": 0}
    )
    lean, other = (s.kernel("rate", lambda m: (m.y, m.q[:0], m.f, None), lean=True) for s in (system, short))
    assert lean.instructions <= other.instructions + 3
    assert system.lean.p.numel() == system.model.p.numel() + 1


def test_few_operations_stay_in_line():
    small = hn.mechanisms.pendulum().system
    assert small.lean is small.model


@pytest.mark.parametrize("method", ["auto", "bdf", "ggl", "radau", "taylor", "rattle", "gen-alpha"])
def test_motion_with_other_parameters(system, method):
    for k in (K, 3 * K):
        options = {"step": 1e-3} if method == "rattle" else {"rtol": 1e-9, "atol": 1e-11}
        sol = hn.solve(system, (0, 1), [1.0], [0.0], method=method, parameters={"k": k}, **options)
        assert sol.success
        assert sol.q[0, -1] == pytest.approx(np.cos(frequency(k)), abs=1e-5)


def test_simulator_actions_and_inputs(system):
    sim = hn.Simulator(system, [1.0], [0.0])
    sim.step(0.5)
    before = sim.q[0]
    sim.change(k=4 * K)
    sim.step(0.5)
    w1, w2 = frequency(K), frequency(4 * K)
    q, v = np.cos(0.5 * w1), -w1 * np.sin(0.5 * w1)
    assert before == pytest.approx(q, abs=1e-6)
    assert sim.q[0] == pytest.approx(q * np.cos(0.5 * w2) + v / w2 * np.sin(0.5 * w2), abs=1e-6)


def test_an_action_changes_parameters(system):
    event = hn.Event(lambda t: t - 0.5, action=lambda p: {"parameters": {"k": 4 * p.k}})
    sol = hn.solve(system, (0, 1), [1.0], [0.0], events=event, rtol=1e-9)
    w1, w2 = frequency(K), frequency(4 * K)
    q, v = np.cos(0.5 * w1), -w1 * np.sin(0.5 * w1)
    assert sol.q[0, -1] == pytest.approx(q * np.cos(0.5 * w2) + v / w2 * np.sin(0.5 * w2), abs=1e-6)


def test_derivatives_by_parameters_see_the_terms(system):
    by_k = system.at(0, [1.0], [0.0]).derivative("f", "k")
    assert np.ravel(by_k) == pytest.approx(-(1 + 0.5 / np.sqrt(K)) / K.size, rel=1e-12)


def test_ensembles_and_pickles(system):
    done = hn.ensemble(system, (0, 1), [1.0], over={"c": [0.0, 0.1]}, t_eval=[1.0]).run()
    assert np.ravel(done["q"])[0] == pytest.approx(np.cos(frequency(K)), abs=1e-5)
    copy = pickle.loads(pickle.dumps(system))
    sol = hn.solve(copy, (0, 1), [1.0], [0.0])
    assert sol.q[0, -1] == pytest.approx(np.cos(frequency(K)), abs=1e-6)

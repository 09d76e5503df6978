"""The same mechanisms as in Pinocchio, MuJoCo, Exudyn and Drake have the same accelerations and motions."""

import numpy as np
import pytest

import holonome as hn
from bodies import by_hand, restated


@pytest.mark.parametrize("name", restated.REFERENCES)
def test_motion_and_accelerations_are_those_of_the_peers(name):
    entry = restated.REFERENCES[name]
    model, times = entry["model"], entry["times"]
    m = restated.mechanism(model)
    sol = hn.solve(
        m,
        (0, times[-1]),
        start=restated.start(model),
        speed=restated.speed(model),
        t_eval=[0.0, *times],
        rtol=1e-11,
        atol=1e-12,
    )
    assert sol.success
    theirs = np.array(entry["accelerations"])
    assert np.max(np.abs(restated.accelerations(sol, model) - theirs)) < 1e-10 * (1 + np.max(np.abs(theirs)))
    assert restated.distance(restated.states(sol, model)[1:], np.array(entry["states"])) < 1e-8
    assert m.degrees_of_freedom(restated.start(model)) == model["freedom"]
    for joint, wrench in (entry["reactions"] or {}).items():
        ours, plane = sol.reaction(joint), model["planar"]
        force, moment = np.array(wrench[:3]), np.array(wrench[3:])
        np.testing.assert_allclose(ours.force[..., 0], force[:2] if plane else force, atol=1e-9)
        np.testing.assert_allclose(ours.moment[..., 0], moment[2] if plane else moment, atol=1e-9)
        assert ours.determined


@pytest.mark.parametrize("name", by_hand.MECHANISMS)
def test_motion_is_that_of_the_hand_written_system(name):
    example = hn.mechanisms.get(name)
    m, start, speed = by_hand.MECHANISMS[name]()
    end = 0.1 * (example.t_span[1] - example.t_span[0])
    options = {"t_eval": [0.0, end / 2, end], "rtol": 1e-11, "atol": 1e-13}
    theirs = hn.solve(example.system, (0, end), example.q0, example.v0, **options)
    ours = hn.solve(m, (0, end), start=start, speed=speed, **options)
    for joint, angle in by_hand.ANGLES[name].items():
        turns = (ours.joint(joint).angle - angle(theirs.q)) / (2 * np.pi)
        np.testing.assert_allclose(turns, np.round(turns), atol=1e-9)

"""The environment of Gymnasium."""

import warnings

import numpy as np
import pytest

import holonome as hn

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed: pip install 'holonome[gym]'")


def cart_pole():
    m = hn.Mechanism("cart-pole", inputs={"push": 0.0}, parameters={"mass": 0.1})
    cart = m.body("cart", 1.0, 0.1, points={"O": (0, 0)})
    pole = m.body("pole", m.p.mass, 0.01, center=(0, 0.5), points={"foot": (0, 0), "tip": (0, 1)})
    m.prismatic("rail", m.ground.at(0, 0), cart["O"], axis=(1, 0))
    m.revolute("hinge", cart["O"], pole["foot"])
    m.force("motor", "rail", law=lambda u: u.push)
    return m


def environment(**further):
    given = {
        "every": 0.02,
        "actions": {"push": (-10, 10)},
        "reward": lambda joint: 1.0 - abs(joint("hinge").angle),
        "start": lambda random: {"start": {"rail": 0.0, "hinge": random.uniform(-0.05, 0.05)}},
        "observation": ["rail.displacement", "rail.rate", "hinge.angle", "pole.tip"],
        "terminated": lambda joint: abs(joint("hinge").angle) > 0.3,
        "time_limit": 4.0,
    }
    return hn.control.Environment(cart_pole(), **(given | further))


@pytest.mark.parametrize(
    "further",
    [
        {"render_mode": "rgb_array"},
        {"actions": [{"push": -5.0}, {"push": 5.0}]},
        {"observation": None, "bounds": (-100.0, 100.0), "terminated": None},
        {"observation": lambda q, v: np.append(q, v), "method": "bdf"},
    ],
)
def test_gymnasium_accepts_it(further):
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it would like bounds of 1
        check_env(environment(**further), skip_render_check="render_mode" not in further)


def test_a_seed_decides():
    episodes = []
    for _ in range(2):
        env = environment()
        observations = [env.reset(seed=7)[0]]
        env.action_space.seed(3)
        for _ in range(20):
            observations.append(env.step(env.action_space.sample())[0])
        episodes.append(np.array(observations))
    assert np.array_equal(*episodes)
    assert not np.array_equal(environment().reset(seed=8)[0], episodes[0][0])


def test_it_is_the_simulator():
    env = environment(observation=None, atol=1e-9)
    env.reset(seed=1, options={"start": {"hinge": 0.1}})
    sim = hn.Simulator(cart_pole(), start={"hinge": 0.1}, atol=1e-9)
    for push in (1.0, -2.0, 3.0):
        observation, *_ = env.step(np.array([push]))
        sim.step(0.02, push=push)
    assert np.array_equal(observation, sim.y)
    env.step(np.array([1000.0]))
    sim.step(0.02, push=10.0)
    assert np.array_equal(env.simulator.y, sim.y)


def test_episodes_end():
    env = environment(terminated=lambda joint: joint("hinge").angle > 0.2, time_limit=0.3)
    env.reset(seed=0, options={"start": {"hinge": 0.0}})
    flags = [env.step(np.zeros(1))[2:4] for _ in range(15)]
    assert flags == [(False, False)] * 14 + [(False, True)]
    m = cart_pole()
    event = m.event("hinge", 0.2)
    env = hn.control.Environment(
        m,
        every=0.5,
        actions={"push": (-1, 1)},
        reward=lambda t: t,
        start={"start": {"hinge": 0.1}},
        terminated=event,
    )
    env.reset()
    for _ in range(10):
        _, _, terminated, _, info = env.step(np.zeros(1))
        if terminated:
            break
    assert env.simulator.joint("hinge").angle == pytest.approx(0.2, abs=1e-9)
    assert info["t"] % 0.5 > 0.01


def test_parameters_vary_from_episode_to_episode():
    env = environment(start=lambda random: {"start": {}, "parameters": {"mass": random.uniform(1, 2)}})
    masses = set()
    for seed in range(4):
        env.reset(seed=seed)
        masses.add(env.simulator.p.mass)
    assert len(masses) == 4


def test_a_failing_step_ends_the_episode():
    system = hn.System(1.0, lambda q, u: -1 / np.sqrt(q) + u.push, inputs={"push": 0.0}, names=["x"])
    env = hn.control.Environment(
        system, every=5.0, actions={"push": (-1, 1)}, reward=lambda q: q[0], start={"q0": [1.0]}
    )
    env.reset()
    observation, _, terminated, _, info = env.step(np.array([0.0]))
    assert terminated
    assert "not finite" in info["failure"]
    assert np.array_equal(observation, [1.0, 0.0])


def test_pictures_move():
    env = environment(render_mode="rgb_array")
    env.reset(seed=1, options={"start": {"hinge": 0.2}})
    first = env.render()
    for _ in range(10):
        env.step(np.array([10.0]))
    second = env.render()
    assert first.shape == second.shape == (400, 400, 3)
    assert first.dtype == np.uint8
    assert np.any(first != second)
    assert np.array_equal(second, env.render())
    assert environment().render() is None
    env.close()


@pytest.mark.parametrize(
    ("further", "error", "words"),
    [
        ({"every": 0.0}, ValueError, "every"),
        ({"actions": {"pull": (0, 1)}}, ValueError, "'pull' is no input; this system has push"),
        ({"actions": {"push": (1, 0)}}, ValueError, "lower bound"),
        ({"actions": {"push": 3}}, ValueError, "give \\(lower, upper\\)"),
        ({"actions": []}, ValueError, "at least one choice"),
        ({"reward": lambda speed: 1.0}, TypeError, "reward: its argument 'speed' is not known"),
        ({"observation": ["hinges"]}, ValueError, "observation: 'hinges' is not known"),
        ({"start": {"hinge": 0.1}}, ValueError, "start: 'hinge' is not known; give any of q0"),
        ({"start": 3}, TypeError, "give a dict"),
        ({"render_mode": "human"}, ValueError, "rgb_array"),
        ({"events": lambda q: q[0]}, ValueError, "terminated="),
        ({"time_limit": -1.0}, ValueError, "time_limit"),
    ],
)
def test_what_makes_no_sense_is_refused(further, error, words):
    with pytest.raises(error, match=words):
        environment(**further)

"""Simulator: stepping, snapshots, inputs and parameters that change on the way."""

import copy
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import holonome as hn
from holonome.errors import ModelError, StepFailed

METHODS = {name: {"step": 0.01} if entry.fixed_step else {} for name, entry in hn.methods().items()}


def rod():
    return hn.System(
        np.eye(2),
        lambda q, u, p: np.array([u.push, -p.g]),
        lambda q, p: q @ q - p.length**2,
        parameters={"g": 9.81, "length": 1.0},
        inputs={"push": 0.0},
        potential=lambda q, p: p.g * q[1],
        names=["x", "y"],
        drawing=hn.Drawing(lambda q: {"O": (0, 0), "P": (q[0], q[1])}, links=[("O", "P")], ground=["O"]),
    )


def higher_index():
    return hn.Index2System(
        lambda x: np.array([x[1], -x[0]]), lambda x: x, lambda x: np.array([x @ x - 1]), n=2
    )


START = [0.6, -0.8]


@pytest.mark.parametrize("method", METHODS)
def test_it_follows_the_motion_and_a_snapshot_brings_back_the_digits(method):
    sim = hn.Simulator(rod(), START, method=method, rtol=1e-6, **METHODS[method])
    exact = hn.solve(rod(), (0, 1), START, rtol=1e-11, t_eval=[1.0])
    for k in range(20):
        if k == 10:
            snapshot = pickle.loads(pickle.dumps(sim.snapshot()))
        sim.step(0.05)
    assert sim.t == 1.0
    assert np.allclose(sim.q, exact.q[:, 0], atol=2e-3)
    q, v = sim.q, sim.v
    other = hn.Simulator(rod(), START, method=method, rtol=1e-6, **METHODS[method])
    for restored in (sim, other):
        restored.restore(snapshot)
        assert restored.t == 0.5
        for _ in range(10):
            restored.step(0.05)
        assert np.array_equal(restored.q, q)
        assert np.array_equal(restored.v, v)


def test_a_snapshot_means_the_same_in_another_process(tmp_path):
    sim = hn.Simulator(rod(), START, method="bdf")
    for _ in range(5):
        sim.step(0.02, push=1.0)
    sim.step(0.02)
    file = tmp_path / "snapshot"
    file.write_bytes(pickle.dumps((rod_text(), sim.snapshot())))
    for _ in range(5):
        sim.step(0.02)
    script = (
        "import pickle, sys, holonome as hn\n"
        "text, snapshot = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "exec(text)\n"
        "sim = hn.Simulator(system, [0.6, -0.8], method='bdf')\n"
        "sim.restore(snapshot)\n"
        "[sim.step(0.02) for _ in range(5)]\n"
        "print(sim.q.tobytes().hex(), sim.t, sim.u.push)\n"
    )
    run = subprocess.run([sys.executable, "-c", script, file], check=True, capture_output=True, text=True)
    digits, t, push = run.stdout.split()
    assert digits == sim.q.tobytes().hex()
    assert (float(t), float(push)) == (sim.t, 1.0)


def rod_text():
    """A module's lambda does not travel, its text does."""
    return (
        "import numpy as np\n"
        "system = hn.System(np.eye(2), lambda q, u, p: np.array([u.push, -p.g]),"
        " lambda q, p: q @ q - p.length**2, parameters={'g': 9.81, 'length': 1.0},"
        " inputs={'push': 0.0}, potential=lambda q, p: p.g * q[1], names=['x', 'y'])\n"
    )


def test_times_are_multiples_of_a_step():
    sim = hn.Simulator(hn.System(1.0, [0.0], names=["x"]), [0.0], [1.0])
    for _ in range(10_000):
        sim.step(1e-3)
    assert sim.t == 10.0
    assert sim.q[0] == pytest.approx(10.0, rel=1e-13)
    sim.advance_to(11.0)
    sim.step(0.5)
    assert sim.t == 11.5


def test_inputs_begin_anew_and_none_go_on():
    """Without inputs BDF keeps its order; with the same values it begins with small steps again."""
    kept, anew = (hn.Simulator(rod(), START, method="bdf") for _ in range(2))
    for sim in (kept, anew):
        sim.step(0.5)
    kept.step(0.1)
    anew.step(0.1, push=0.0)
    assert anew.steps > 2 * kept.steps
    assert np.allclose(kept.q, anew.q, atol=1e-4)


def test_what_it_says_is_what_the_system_says():
    sim = hn.Simulator(rod(), START)
    sim.step(0.3, push=2.0)
    here = sim.system.at(sim.t, sim.q, sim.v)
    assert np.array_equal(here.a, sim.a)
    assert np.array_equal(here.lam, sim.lam)
    assert sim.state.energy == here.energy
    assert (sim.u.push, sim.p.g) == (2.0, 9.81)
    assert np.allclose(sim.state.derivative("a", by="u").shape, (2, 1))
    before = sim.q
    before[:] = 0.0
    assert np.any(sim.q != 0.0)


def test_asking_changes_nothing():
    quiet, asked = (hn.Simulator(rod(), START, method="ggl") for _ in range(2))
    for _ in range(10):
        quiet.step(0.03)
        asked.step(0.03)
        _ = asked.a, asked.lam, asked.state.energy, asked.snapshot(), asked.solution.lam
    assert np.array_equal(quiet.q, asked.q)


def test_parameters_change_on_the_way():
    sim = hn.Simulator(rod(), START)
    sim.step(0.2)
    sim.change(g=1.62)
    sim.step(0.3)
    first = hn.solve(rod(), (0, 0.2), START)
    second = hn.solve(rod(), (0.2, 0.5), first.q[:, -1], first.v[:, -1], parameters={"g": 1.62})
    assert np.array_equal(sim.q, second.q[:, -1])
    sim.change(length=1.0001)
    sim.step(0.1)
    assert np.hypot(*sim.q) == pytest.approx(1.0001, rel=1e-12)
    q, t = sim.q, sim.t
    sim.change(length=2.0)
    with pytest.raises(hn.InconsistentStart, match="violates the constraints"):
        sim.step(0.1)
    assert np.array_equal(sim.q, q)
    assert sim.t == t
    sim.change(length=1.0001)
    sim.step(0.1)


def test_reset():
    sim = hn.Simulator(rod(), START, inputs={"push": 1.0})
    sim.step(0.3)
    q = sim.q
    sim.change(g=5.0, push=2.0)
    sim.step(0.3)
    sim.reset()
    assert (sim.t, sim.p.g, sim.u.push) == (0.0, 9.81, 1.0)
    sim.step(0.3)
    assert np.array_equal(sim.q, q)
    sim.reset([0, -1], [1, 0], t0=2.0, parameters={"g": 3.0})
    assert (sim.t, sim.p.g, sim.q.tolist(), sim.v.tolist()) == (2.0, 3.0, [0, -1], [1, 0])
    before = sim.snapshot()
    with pytest.raises(hn.InconsistentStart):
        sim.reset([0, -2])
    sim.restore(before)
    assert sim.q.tolist() == [0, -1]


def test_a_step_that_fails_says_why_and_leaves_the_state():
    system = hn.System(1.0, lambda t, q, p, u: -1 / np.sqrt(q) + u.push, inputs={"push": 0.0}, names=["x"])
    sim = hn.Simulator(system, [1.0])
    sim.step(0.1, push=0.5)
    t, q, v = sim.t, sim.q, sim.v
    with pytest.raises(hn.StepFailed, match="not finite"):
        sim.step(10.0, push=-1.0)
    assert (sim.t, sim.q, sim.v, sim.u.push) == (t, q, v, 0.5)
    alone = hn.solve(system, (t, t + 0.1), q, v, inputs={"push": 0.5})
    sim.step(0.1)
    assert np.array_equal(sim.q, alone.q[:, -1])


def test_python_functions_that_raise():
    def force(q):
        if q[0] > 0.5:
            raise RuntimeError("too far")
        return np.array([float(np.linalg.eigvalsh(np.diag([1.0, 2.0]))[0])])

    sim = hn.Simulator(hn.System(1.0, force, names=["x"]), [0.0])
    sim.step(0.5)
    with pytest.raises(hn.StepFailed, match="too far"):
        sim.step(5.0)
    assert sim.t == 0.5


def test_events_end_steps():
    ball = hn.System(1.0, [-9.81], names=["height"])
    sim = hn.Simulator(ball, [1.0], events=hn.Event(lambda q: q[0], terminal=True, direction=-1))
    sim.step(10.0)
    assert sim.terminated
    assert sim.t == pytest.approx(np.sqrt(2 / 9.81), rel=1e-9)
    assert sim.t_events[0].tolist() == [sim.t]
    bounces = [sim.t]
    for _ in range(3):
        sim.reset(sim.q, -0.5 * sim.v, t0=sim.t)
        sim.step(10.0)
        bounces.append(sim.t)
    flights = np.diff(bounces)
    assert np.allclose(flights[1:] / flights[:-1], 0.5)


def test_going_on_behind_a_terminal_event_does_not_find_it_again():
    sim = hn.Simulator(rod(), START, events=[lambda v: v[0], hn.Event(lambda q: q[0], terminal=True)])
    times = []
    while sim.t < 4:
        sim.advance_to(4.0)
        times += [sim.t] * sim.terminated
    whole = hn.solve(rod(), (0, 4), START, events=lambda q: q[0], rtol=1e-9)
    assert len(times) == whole.t_events[0].size > 2
    assert np.allclose(times, whole.t_events[0], atol=1e-4)


def test_switching_times_are_met():
    """A force that jumps with time, at times that lie within, at the end of and beside steps."""
    system = hn.System(1.0, lambda t: np.array([np.where(t < 0.25, 1.0, np.where(t < 0.5, -1.0, 0.0))]), n=1)
    sim = hn.Simulator(system, [0.0])
    for _ in range(3):
        sim.step(0.2)
        snapshot = pickle.loads(pickle.dumps(sim.snapshot()))
    assert sim.v[0] == pytest.approx(0.0, abs=1e-14)
    assert sim.q[0] == pytest.approx(0.0625, rel=1e-12)
    sim.restore(snapshot)
    many = hn.System(1.0, lambda t: np.array([np.sign(np.sin(2 * np.pi * 100 * t))]), n=1)
    sim = hn.Simulator(many, [0.0])
    sim.step(0.105)
    whole = hn.solve(many, (0, 0.105), [0.0])
    assert sim.steps > 20
    assert np.array_equal(sim.v, whole.v[:, -1])


def test_threads_share_a_system():
    system = rod()
    alone = hn.Simulator(rod(), START)
    for k in range(200):
        alone.step(1e-2, push=float(np.sin(k)))
    found = [None] * 4

    def run(i):
        sim = hn.Simulator(system, START)
        for k in range(200):
            sim.step(1e-2, push=float(np.sin(k)))
        found[i] = sim.q

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(q, alone.q) for q in found)


def test_thousands_share_what_is_compiled():
    system = rod()
    first = hn.Simulator(system, START)
    first.step(1e-2, push=1.0)
    made = len(system.compiled)
    many = [hn.Simulator(system, START) for _ in range(2000)]
    for sim in many:
        sim.step(1e-2, push=1.0)
    assert len(system.compiled) == made
    assert all(np.array_equal(sim.q, first.q) for sim in many)


def test_mechanisms_by_name():
    m = hn.Mechanism("arm", inputs={"torque": 0.0})
    arm = m.body("arm", 1.0, 0.1, center=(0.5, 0), points={"A": (0, 0), "tip": (1, 0)})
    m.revolute("A", m.ground.at(0, 0), arm["A"])
    m.torque("motor", joint="A", law=lambda u: u.torque)
    sim = hn.Simulator(m, start={"A": 0.3}, speed={"A": -0.5})
    assert (sim.joint("A").angle, sim.joint("A").rate) == (0.3, -0.5)
    assert np.allclose(sim.body("arm").point("tip"), [np.cos(0.3), np.sin(0.3)])
    assert sim.body("arm").rotation.as_matrix().shape == (3, 3)
    sim.step(0.1, torque=1.5)
    assert sim.effort("motor") == 1.5
    assert sim.power("motor") == pytest.approx(1.5 * sim.joint("A").rate)
    assert sim.reaction("A").force.shape == (2,)
    sim.reset(start={"A": 1.0})
    assert sim.joint("A").angle == 1.0
    with pytest.raises(ValueError, match="start"):
        hn.Simulator(rod(), start={"A": 1.0})


def test_ball_joints_have_rotations():
    m = hn.Mechanism("top", gravity=(0, 0, -9.81))
    top = m.body("top", 1.0, (0.1, 0.1, 0.05), center=(0, 0, 0.3))
    m.spherical("O", m.ground.at(0, 0, 0), top.at(0, 0, 0))
    sim = hn.Simulator(m, start={}, speed={"top": {"angular_velocity": (0.1, 0, 20)}})
    sim.step(0.1)
    assert sim.joint("O").rotation.as_matrix().shape == (3, 3)
    assert np.allclose(sim.joint("O").rotation.as_matrix(), sim.body("top").matrix)


def test_an_ode():
    sim = hn.Simulator(
        hn.ODE(lambda x, u: -u.rate * x, inputs={"rate": 1.0}, n=1), [1.0], method="dop853", rtol=1e-10
    )
    sim.step(1.0)
    sim.step(1.0, rate=2.0)
    assert sim.x[0] == pytest.approx(np.exp(-3), rel=1e-9)


def test_constant_steps_where_the_last_is_shorter():
    sim = hn.Simulator(rod(), START, method="dopri5", step=0.03)
    for _ in range(10):
        sim.step(0.1)
        assert sim.steps == 4
    assert np.allclose(sim.q, hn.solve(rod(), (0, 1), START, rtol=1e-10).q[:, -1], atol=1e-6)


@pytest.mark.parametrize(
    ("action", "error", "words"),
    [
        (lambda sim: sim.step(0.0), ValueError, "dt: 0.0; give a positive number"),
        (lambda sim: sim.step(np.nan), ValueError, "dt"),
        (lambda sim: sim.step("1"), ValueError, "dt"),
        (lambda sim: sim.step(0.1, pull=1.0), ModelError, "inputs: 'pull' unknown; this system has push"),
        (lambda sim: sim.step(0.1, g=1.0), ModelError, "'g' is one of the parameters; give parameters"),
        (lambda sim: sim.step(0.1, push=np.nan), ModelError, "push"),
        (lambda sim: sim.step(0.1, push=[1.0, 2.0]), ModelError, "'push' has shape"),
        (lambda sim: sim.advance_to(0.0), ValueError, "does not lie ahead"),
        (lambda sim: sim.change(pull=1.0), ModelError, "'pull' unknown"),
        (lambda sim: sim.restore(3), TypeError, "give what sim.snapshot"),
        (
            lambda sim: sim.restore(hn.Simulator(rod(), START, method="bdf").snapshot()),
            ValueError,
            "method 'bdf', not 'dop853'",
        ),
        (lambda sim: hn.Simulator(rod(), [0.6, -0.9]), hn.InconsistentStart, "violates the constraints"),
        (lambda sim: hn.Simulator(rod(), START, method="euler"), ValueError, "is not known"),
        (
            lambda sim: hn.Simulator(rod(), START, method=hn.Method(hn.GGL(), hn.BDF(order=2)), step=0.01),
            ValueError,
            "constant order",
        ),
        (
            lambda sim: hn.Simulator(higher_index(), [1.0, 0.0]),
            ValueError,
            "Simulator does not step",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(action, error, words):
    sim = hn.Simulator(rod(), START)
    with pytest.raises(error, match=words):
        action(sim)
    assert sim.t == 0.0
    sim.step(0.1)


def test_a_refused_input_changes_nothing():
    sim = hn.Simulator(rod(), START, inputs={"push": 1.0})
    with pytest.raises(ModelError):
        sim.step(0.1, push=2.0, pull=1.0)
    assert sim.u.push == 1.0
    assert sim.t == 0.0


def test_interruption_leaves_the_state():
    pressed = []

    def force(q):
        if pressed:
            raise KeyboardInterrupt
        return np.array([1.0 + 0.0 * float(str(float(q[0])))])

    sim = hn.Simulator(hn.System(1.0, force, names=["x"]), [0.0])
    sim.step(0.25)
    pressed.append("Ctrl-C")
    with pytest.raises(KeyboardInterrupt):
        sim.step(10.0)
    assert sim.t == 0.25


def bouncing(e=0.5):
    floor = hn.Contact(lambda q: q[0], restitution=e, name="floor")
    return hn.System(1.0, [-9.81], names=["height"], contacts=floor)


def test_contacts_are_those_of_solve():
    sol = hn.solve(bouncing(), (0, 2), [1.0], atol=1e-9)
    sim, impacts = hn.Simulator(bouncing(), [1.0], atol=1e-9), []
    sim.step(2.0)
    assert np.array_equal(sim.impacts.t, sol.impacts.t)
    assert np.array_equal(sim.y, [*sol.q[:, -1], *sol.v[:, -1]])
    sim.reset()
    for _ in range(200):
        sim.step(0.01)
        impacts += sim.impacts.t.tolist()
    np.testing.assert_allclose(impacts, sol.impacts.t, rtol=1e-9)
    floor = sim.contact("floor")
    assert floor.status == "closed"
    assert floor.force == pytest.approx(9.81)
    assert sim.a[0] == 0
    assert sim.lam.size == 0
    assert sim.state.a[0] == 0


@pytest.mark.parametrize("at", [0.2, 1.0, 1.9])
def test_snapshots_with_contacts(at):
    sim = hn.Simulator(bouncing(), [1.0])
    sim.advance_to(at)
    snapshot = pickle.loads(pickle.dumps(sim.snapshot()))
    sim.step(0.3)
    after = sim.y
    for other in (sim, hn.Simulator(bouncing(), [1.0])):
        other.restore(snapshot)
        assert other.t == at
        other.step(0.3)
        assert np.array_equal(other.y, after)


def test_a_controller_with_contacts_is_the_same_inside_solve():
    ground = hn.Contact(lambda q: q[1], lambda v: v[0], friction=0.4, static_friction=0.5, name="ground")
    system = hn.System(
        [1.0, 1.0],
        lambda u: np.array([u.push, -9.81]),
        n=2,
        inputs={"push": 0.0},
        contacts=ground,
    )

    def law(t):
        return 8 * np.sin(20 * t)

    sol = hn.solve(system, (0, 1), [0, 0], controllers=hn.Sampled(law, every=0.01), atol=1e-9)
    sim, seen = hn.Simulator(system, [0, 0], atol=1e-9), set()
    for _ in range(100):
        sim.step(0.01, push=float(law(sim.t)))
        seen.add(sim.contact("ground").status)
    assert np.array_equal(sim.q, sol.q[:, -1])
    assert np.array_equal(sim.v, sol.v[:, -1])
    assert seen == {"sticks", "slides"}


def test_events_act_as_in_solve():
    ball = hn.System(1.0, [-9.81], names=["height"], parameters={"e": 0.8})
    bounce = hn.Event(
        lambda q: q[0],
        direction=-1,
        action=lambda v, p: {"v": -p.e * v, "parameters": {"e": p.e / 2}},
    )
    sol = hn.solve(ball, (0, 2), [1.0], events=bounce, atol=1e-9)
    sim = hn.Simulator(ball, [1.0], events=bounce, atol=1e-9)
    sim.step(2.0)
    assert np.array_equal(sim.q, sol.q[:, -1])
    assert np.array_equal(sim.t_events[0], sol.t_events[0])
    assert sim.p.e == sol.parameter_values[0, -1] < 0.8
    sim.reset()
    assert sim.p.e == 0.8
    stop = hn.Event(lambda q: q[0], direction=-1, action=lambda v: {"v": -v, "stop": True})
    sim = hn.Simulator(ball, [1.0], events=stop)
    sim.step(1.0)
    assert sim.terminated
    assert sim.v[0] > 0
    sim.step(0.1)
    assert not sim.terminated


def test_an_action_that_fails_leaves_the_state():
    ball = hn.System(1.0, [-9.81], names=["height"], parameters={"e": 0.8})
    wrong = hn.Event(lambda q: q[0], action=lambda: {"v": np.nan})
    sim = hn.Simulator(ball, [1.0], events=wrong)
    sim.step(0.3)
    before = sim.y
    with pytest.raises(StepFailed, match=r"events\[0\].action.*v: nan"):
        sim.step(1.0)
    assert sim.t == 0.3
    assert np.array_equal(sim.y, before)


def test_painleves_paradox_is_told_and_leaves_the_state():
    tip = hn.Contact(
        lambda q: q[1] - np.sin(q[2]), lambda q, v: v[0] + np.sin(q[2]) * v[2], friction=lambda p: p.mu
    )
    rod = hn.System([1, 1, 1 / 3], [0, -9.81, 0], n=3, parameters={"mu": 0.5}, contacts=tip)
    sim = hn.Simulator(rod, [0, np.sin(1.1), 1.1], [-1.0, 0, 0])
    sim.step(1e-3)
    sim.change(mu=2.0)
    with pytest.raises(StepFailed, match="Painlevé's paradox"):
        sim.step(1e-3)
    assert sim.t == 1e-3
    with pytest.raises(StepFailed, match="Painlevé"):
        hn.Simulator(rod, [0, np.sin(1.1), 1.1], [-1.0, 0, 0], parameters={"mu": 2.0})


def test_threads_take_turns():
    """A step of one thread is not disturbed by those of others, on the same simulator."""
    sim = hn.Simulator(hn.System(1.0, lambda q: -q), [1.0], rtol=1e-9)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: sim.step(0.01), range(800)))
    assert sim.t == pytest.approx(8.0, abs=1e-12)
    assert sim.q[0] == pytest.approx(np.cos(8.0), abs=1e-6)


def test_a_simulator_cannot_be_stepped_inside_its_own_step():
    simulators = []
    event = hn.Event(lambda q: q[0], action=lambda: simulators[0].step(0.1))
    simulators.append(hn.Simulator(hn.System(1.0, lambda q: -q), [1.0], events=event))
    with pytest.raises(hn.StepFailed, match="in the middle of a step"):
        simulators[0].step(5.0)
    assert simulators[0].t == 0.0


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda sim: pickle.loads(pickle.dumps(sim))])
def test_copies_are_independent(copied):
    sim = hn.Simulator(hn.System(1.0, lambda q: -q), [1.0])
    sim.step(0.1)
    other = copied(sim)
    other.step(0.2)
    sim.step(0.2)
    assert (sim.t, *sim.y) == (other.t, *other.y)

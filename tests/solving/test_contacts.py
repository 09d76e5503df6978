"""Contacts: impacts, resting, sliding and sticking, against closed forms."""

import pickle
import resource
import tracemalloc
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad

import holonome as hn
from holonome.errors import InconsistentStart, ModelError

G = 9.81


def ball(e=0.5, *, height=1.0, mass=1.0):
    """A ball above a floor."""
    floor = hn.Contact(lambda q: q[0], restitution=e, name="floor")
    return hn.System(
        mass, [-mass * G], names=["height"], potential=lambda q: mass * G * q[0], contacts=[floor]
    ), [height]


def block(static=0.5, kinetic=0.4, angle=0.0):
    """A point mass on a slope, x downwards along it, y across it."""
    ground = hn.Contact(
        lambda q: q[1], lambda v: v[0], friction=lambda p: p.kinetic, static_friction=static, name="slope"
    )
    return hn.System(
        [2.0, 2.0],
        lambda t, u: np.array([2 * G * np.sin(angle) + u.push, -2 * G * np.cos(angle)]),
        names=["x", "y"],
        parameters={"kinetic": kinetic},
        inputs={"push": 0.0},
        contacts=ground,
    )


@pytest.mark.parametrize("method", ["auto", "dopri5", "bdf", "ggl"])
@pytest.mark.parametrize("e", [0.5, 0.8])
def test_a_ball_comes_to_rest_at_the_right_time(e, method):
    system, q0 = ball(e)
    first = np.sqrt(2 / G)
    end = first * (1 + 2 * e / (1 - e))
    sol = hn.solve(system, (0, 2 * end), q0, method=method)
    assert sol.success
    bounces = first * np.cumsum([1.0, *(2 * e**k for k in range(1, 8))])
    np.testing.assert_allclose(sol.impacts.t[:8], bounces, rtol=1e-7)
    assert sol.impacts.t[-1] == pytest.approx(end, abs=1e-6 * end / (1 - e))
    np.testing.assert_allclose(sol.impacts.after[:-1], -e * sol.impacts.before[:-1], rtol=1e-12)
    assert sum(sol.impacts.energy_lost) == pytest.approx(G)
    floor = sol.contact("floor")
    assert floor.status[0] == "open"
    assert floor.status[-1] == "closed"
    assert floor.force[-1] == pytest.approx(G)
    assert abs(sol.q[0, -1]) < 1e-12
    assert np.min(sol.q) > -1e-12


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1e6])
def test_the_size_of_things_does_not_matter(size):
    system, q0 = ball(0.5, height=size, mass=size**3)
    end = 3 * np.sqrt(2 * size / G)
    sol = hn.solve(system, (0, 2 * end), q0)
    assert sol.success
    assert sol.impacts.t[-1] == pytest.approx(end, rel=1e-5)
    assert 20 < len(sol.impacts) < 30
    assert sol.contact("floor").force[-1] == pytest.approx(size**3 * G)


def test_without_restitution_it_stays_where_it_falls():
    system, q0 = ball(0.0)
    sol = hn.solve(system, (0, 2), q0)
    assert len(sol.impacts) == 1
    assert sol.impacts.t[0] == pytest.approx(np.sqrt(2 / G))
    assert sol.impacts.impulse[0] == pytest.approx(np.sqrt(2 * G))
    assert sol.impacts.energy_lost[0] == pytest.approx(G)


@pytest.mark.parametrize("hypothesis", ["newton", "poisson"])
def test_an_elastic_ball_keeps_its_energy(hypothesis):
    floor = hn.Contact(lambda q: q[0], restitution=1.0, hypothesis=hypothesis)
    system = hn.System(1.0, [-G], names=["height"], potential=lambda q: G * q[0], contacts=floor)
    sol = hn.solve(system, (0, 100), [1.0], t_eval=[100.0])
    assert len(sol.impacts) == 111
    assert sol.energy[0] == pytest.approx(G, rel=1e-9)
    assert abs(sum(sol.impacts.energy_lost)) < 1e-9


def cradle(count, e=1.0):
    """Balls of radius 1/2 in a row on a line; x is their displacement from where they touch."""
    touches = [
        hn.Contact(lambda q, i=i: q[i + 1] - q[i], restitution=e, name=f"{i}") for i in range(count - 1)
    ]
    return hn.System(np.ones(count), np.zeros(count), contacts=touches, n=count)


@pytest.mark.parametrize("count", [3, 5])
@pytest.mark.parametrize("striking", [1, 2])
def test_newtons_cradle(count, striking):
    """As many fly away as have come, at the same speed."""
    q0, v0 = np.zeros(count), np.zeros(count)
    q0[:striking], v0[:striking] = -1.0, 1.0
    sol = hn.solve(cradle(count), (0, 3), q0, v0)
    assert sol.success
    np.testing.assert_allclose(sol.v[:, -1], [0] * (count - striking) + [1] * striking, atol=1e-12)
    np.testing.assert_allclose(np.sum(sol.v, axis=0), striking, rtol=1e-12)


def test_balls_of_a_row_that_are_not_elastic_keep_their_momentum():
    sol = hn.solve(cradle(4, 0.6), (0, 5), [-1.0, 0, 0, 0], [1.0, 0, 0, 0])
    assert sol.success
    np.testing.assert_allclose(np.sum(sol.v, axis=0), 1.0, rtol=1e-12)
    assert np.all(np.diff(sol.v[:, -1]) >= -1e-12)
    lost = 0.5 - np.sum(sol.v[:, -1] ** 2) / 2
    assert sum(sol.impacts.energy_lost) == pytest.approx(lost)


def test_two_walls_at_once():
    """Into a corner, where it does not matter whether the walls are hit together."""
    walls = [hn.Contact(lambda q, k=k: q[k], restitution=1.0, name=f"{k}") for k in range(2)]
    sol = hn.solve(hn.System(np.ones(2), np.zeros(2), contacts=walls), (0, 2), [1.0, 1.0], [-1.0, -1.0])
    np.testing.assert_allclose(sol.v[:, -1], [1.0, 1.0])
    assert np.ptp(sol.impacts.t) == 0
    assert sorted(sol.impacts.contact) == ["0", "1"]


def plank(feet, e):
    """A horizontal plank on feet at these places."""
    contacts = [
        hn.Contact(lambda q, at=at: q[0] + at * np.sin(q[1]), restitution=e, name=f"{at}") for at in feet
    ]
    return hn.System([1.0, 1 / 12], [-G, 0.0], names=["y", "angle"], contacts=contacts)


def test_more_feet_than_needed_bounce_and_rest():
    """Three feet on one line: their forces are not unique, the motion is."""
    sol = hn.solve(plank((-0.5, 0.0, 0.5), 1.0), (0, 1), [1.0, 0.0])
    assert sol.success
    assert abs(sol.q[1]).max() < 1e-12
    first = np.sqrt(2 / G)
    assert sol.v[0, -1] == pytest.approx(G * (2 * first - 1), rel=1e-9)
    sol = hn.solve(plank((-0.5, 0.0, 0.5), 0.3), (0, 2), [1.0, 0.0])
    assert sol.success
    assert abs(sol.q[0, -1]) < 1e-12
    total = sum(sol.contact(name).force[-1] for name in sol.system.contacts.names)
    assert total == pytest.approx(G)


def test_one_foot_first():
    """A tilted plank chatters down onto its second foot and lies still."""
    sol = hn.solve(plank((-0.5, 0.5), 0.4), (0, 3), [1.0, 0.2])
    assert sol.success
    np.testing.assert_allclose(sol.q[:, -1], 0, atol=1e-11)
    np.testing.assert_allclose([sol.contact(f"{x}").force[-1] for x in (-0.5, 0.5)], G / 2, rtol=1e-9)


def test_a_block_stays_below_the_angle_of_friction_and_slides_above():
    for angle, static, kinetic in ((0.4, 0.5, 0.3), (0.5, 0.5, 0.3), (0.5, 0.55, 0.3)):
        sol = hn.solve(block(static, kinetic, angle), (0, 1), [0.0, 0.0])
        slides = np.tan(angle) > static
        expected = G * (np.sin(angle) - kinetic * np.cos(angle)) / 2 if slides else 0.0
        assert sol.success
        assert sol.q[0, -1] == pytest.approx(expected, abs=1e-12)
        assert set(sol.contact("slope").status) == {"slides" if slides else "sticks"}


@pytest.mark.parametrize("v", [3.0, -3.0])
def test_a_block_that_is_thrown_stops_where_it_must(v):
    angle, mu = 0.3, 0.5
    sol = hn.solve(block(mu, mu, angle), (0, 3), [0.0, 0.0], [v, 0.0])
    brake = G * (np.sign(v) * mu * np.cos(angle) - np.sin(angle))
    at = v / brake
    assert sol.success
    assert sol.q[0, -1] == pytest.approx(v * at / 2, rel=1e-9)
    stopped = np.flatnonzero(np.array(sol.contact("slope").status) == "sticks")
    assert sol.t[stopped[0]] == pytest.approx(at, rel=1e-9)
    assert np.all(sol.v[0, stopped] == 0)


def test_a_block_that_is_thrown_upwards_comes_back():
    angle, mu = 0.6, 0.3
    sol = hn.solve(block(mu, mu, angle), (0, 2), [0.0, 0.0], [-3.0, 0.0])
    up, down = (G * (np.sin(angle) + sign * mu * np.cos(angle)) for sign in (1, -1))
    turn = 3.0 / up
    assert sol.q[0, -1] == pytest.approx(-9 / up / 2 + down * (2 - turn) ** 2 / 2, rel=1e-9)


@pytest.mark.parametrize("method", ["auto", "bdf", "ggl"])
def test_stick_and_slip_on_a_belt(method):
    """A mass on a spring and a belt: both phases in closed form, over several periods."""
    V, k, static, kinetic, m = 0.3, 40.0, 0.6, 0.25, 1.0
    belt = hn.Contact(
        lambda q: q[1], lambda v: v[0] - V, friction=kinetic, static_friction=static, name="belt"
    )
    system = hn.System([m, m], lambda q: np.array([-k * q[0], -m * G]), names=["x", "y"], contacts=belt)
    omega, rise = np.sqrt(k / m), (static - kinetic) * m * G / k
    slip = (2 * np.pi - 2 * np.arctan(rise * omega / V)) / omega
    stick = 2 * rise / V
    begins = static * m * G / k
    first = begins / V
    end = first + 3 * (slip + stick)
    sol = hn.solve(system, (0, end), [0, 0], [V, 0], method=method, rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    status = np.array(sol.contact("belt").status)
    changes = np.flatnonzero(status[1:] != status[:-1])
    times = sol.t[changes + 1]
    wanted = first + np.cumsum([0, slip, stick, slip, stick, slip])
    np.testing.assert_allclose(times[:6], wanted, rtol=1e-6)
    assert sol.q[0, -1] == pytest.approx(begins, rel=1e-6)
    friction = sol.contact("belt").friction[0]
    assert np.max(np.abs(friction)) <= static * m * G * (1 + 1e-6)


def test_a_puck_on_a_table_stops_in_a_straight_line():
    mu, v = 0.2, np.array([3.0, 4.0])
    table = hn.Contact(lambda q: q[2], lambda v: v[:2], friction=mu, name="table")
    system = hn.System(np.ones(3), [0, 0, -G], names=["x", "y", "z"], contacts=table)
    sol = hn.solve(system, (0, 4), [0, 0, 0], [*v, 0])
    assert sol.success
    distance = 25 / (2 * mu * G)
    np.testing.assert_allclose(sol.q[:, -1], [*(0.6, 0.8) * np.array(distance), 0], rtol=1e-6, atol=1e-10)
    assert sol.contact("table").status[-1] == "sticks"


def test_a_floor_that_moves_throws_it_off():
    """Where the table falls faster than g the mass leaves it."""
    A, omega = 0.01, 50.0
    table = hn.Contact(lambda t, q: q[0] - A * np.sin(omega * t), name="table")
    system = hn.System(1.0, [-G], names=["y"], contacts=table)
    sol = hn.solve(system, (0, 0.05), [0.0], [A * omega], rtol=1e-9, atol=1e-12)
    contact = sol.contact("table")
    leaves = np.arcsin(G / (A * omega**2)) / omega
    first = np.flatnonzero(np.array(contact.status) == "open")[0]
    assert sol.t[first] == pytest.approx(leaves, rel=1e-7)
    closed = contact.closed
    np.testing.assert_allclose(
        contact.force[closed][:-1], (G - A * omega**2 * np.sin(omega * sol.t[closed]))[:-1], atol=1e-7
    )


@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_a_rope_becomes_taut(e):
    """The jerk takes away the velocity along the rope, or reverses a part of it."""
    rope = hn.Contact(lambda q: 1 - np.sqrt(q @ q), restitution=e, name="rope")
    fall = hn.System(np.eye(2), [0.0, -G], names=["x", "y"], contacts=rope)
    sol = hn.solve(fall, (0, 0.6), [0.5, 0.0], rtol=1e-10, atol=1e-12)
    t = np.sqrt(2 * np.sqrt(0.75) / G)
    assert sol.impacts.t[0] == pytest.approx(t)
    k = np.flatnonzero(np.diff(sol.t) == 0)[0]
    q, speed = np.array([0.5, -np.sqrt(0.75)]), -G * t
    v = np.array([0.0, speed]) - (1 + e) * q * (q[1] * speed)
    np.testing.assert_allclose(sol.v[:, k + 1], v, rtol=1e-8, atol=1e-9)
    assert np.max(np.sqrt(np.sum(sol.q**2, axis=0))) < 1 + 1e-11
    if e == 0:
        assert sol.contact("rope").status[-1] == "closed"


def test_a_taut_rope_goes_slack():
    """A loop with too little speed: it leaves the circle where the pull ends."""
    rope = hn.Contact(lambda q: 1 - np.sqrt(q @ q), name="rope")
    system = hn.System(np.eye(2), [0.0, -G], names=["x", "y"], contacts=rope)
    v0 = np.sqrt(3.5 * G)
    sol = hn.solve(system, (0, 0.9), [0.0, -1.0], [v0, 0.0], rtol=1e-9, atol=1e-11)
    status = np.array(sol.contact("rope").status)
    k = np.flatnonzero(status == "open")[0]
    assert status[0] == "closed"
    assert sol.q[1, k] == pytest.approx((3.5 - 2) / 3, rel=1e-7)  # v² = g h where it goes slack


def rocking(b, h):
    """A homogeneous block on its corners, which do not slip."""
    corners = [
        hn.Contact(
            lambda q, side=s: q[1] + side * b * np.sin(q[2]) - h * np.cos(q[2]),
            lambda q, v, side=s: v[0] + v[2] * (h * np.cos(q[2]) - side * b * np.sin(q[2])),
            friction=50.0,
            name=name,
        )
        for s, name in ((1, "right"), (-1, "left"))
    ]
    J = (b * b + h * h) / 3
    return hn.System(
        [1.0, 1.0, J],
        [0, -G, 0],
        names=["x", "y", "angle"],
        potential=lambda q: G * q[1],
        contacts=corners,
    )


def test_a_rocking_block_has_housners_periods_and_losses():
    """G. W. Housner, The behavior of inverted pendulum structures during earthquakes, 1963."""
    b, h, angle = 0.2, 1.0, 0.08
    R, alpha = np.hypot(b, h), np.arctan2(b, h)
    p2 = 3 * G / (4 * R)
    ratio = 1 - 1.5 * np.sin(alpha) ** 2

    def quarter(theta):
        """From rest at this angle down to 0; θ = θ₀ (1 − s²) takes the root away."""

        def slowness(s):
            at = theta * (1 - s * s)
            return 2 * theta * s / np.sqrt(2 * p2 * (np.cos(alpha - theta) - np.cos(alpha - at)))

        return quad(slowness, 1e-9, 1, epsabs=1e-12)[0]

    amplitude, t, times = angle, 0.0, []
    for _ in range(4):
        t += quarter(amplitude)
        times.append(t)
        energy = np.cos(alpha - amplitude) - np.cos(alpha)
        amplitude = alpha - np.arccos(np.cos(alpha) + ratio**2 * energy)
        t += quarter(amplitude)
    y = b * np.sin(angle) + h * np.cos(angle)
    x = b * np.cos(angle) - h * np.sin(angle) - b
    sol = hn.solve(rocking(b, h), (0, times[-1] + 0.05), [x, y, angle], rtol=1e-10, atol=1e-12)
    assert sol.success, sol.message
    np.testing.assert_allclose(np.unique(sol.impacts.t), times, rtol=1e-7)
    jumps = np.flatnonzero(np.diff(sol.t) == 0)
    np.testing.assert_allclose(np.abs(sol.v[2, jumps + 1] / sol.v[2, jumps])[:4], ratio, rtol=1e-7)


def painleve(mu, angle):
    """A homogeneous rod of length 2 that slides on its lower end."""
    tip = hn.Contact(
        lambda q: q[1] - np.sin(q[2]),
        lambda q, v: v[0] + np.sin(q[2]) * v[2],
        friction=mu,
        name="tip",
    )
    q0 = [0.0, np.sin(angle), angle]
    return hn.System([1.0, 1.0, 1 / 3], [0, -G, 0], names=["x", "y", "angle"], contacts=tip), q0


def test_painleves_rod_is_told_as_such():
    """From μ > 4/3 on there are angles at which no force satisfies Coulomb's law."""
    mu, angle = 2.0, 1.1  # 1 + 3 c (c − μ s) < 0
    system, q0 = painleve(mu, angle)
    c, s = np.cos(angle), np.sin(angle)
    assert 1 + 3 * c * (c - mu * s) < 0
    sol = hn.solve(system, (0, 1), q0, [-1.0, 0, 0])
    assert not sol.success
    assert "no contact forces agree with Coulomb's law of friction (Painlevé's paradox) at tip" in sol.message
    system, q0 = painleve(1.0, angle)
    sol = hn.solve(system, (0, 0.02), q0, [-1.0, 0, 0])
    force = sol.contact("tip").force[0]
    assert force == pytest.approx(G / (1 + 3 * c * (c - s)))


def test_restitution_and_friction_at_the_end_of_a_rod():
    """Poisson's hypothesis with sliding throughout: P = (1 + e) |u| / (A_NN − μ A_NT)."""
    e, mu, angle = 0.5, 0.1, 1.0
    J = 1 / 3
    s, c = np.sin(angle), np.cos(angle)
    normal, along = np.array([0, 1, -c]), np.array([1, 0, s])
    inverse = np.diag([1, 1, 1 / J])
    for hypothesis in ("newton", "poisson"):
        tip = hn.Contact(
            lambda q: q[1] - np.sin(q[2]),
            lambda q, v: v[0] + np.sin(q[2]) * v[2],
            restitution=e,
            friction=mu,
            hypothesis=hypothesis,
        )
        system = hn.System([1.0, 1.0, J], [0, 0, 0], names=["x", "y", "angle"], contacts=tip)
        sol = hn.solve(system, (0, 1), [0, s + 0.1, angle], [5.0, -1.0, 0.0])
        mobility = inverse @ (normal - mu * along)
        P = (1 + e) / (normal @ mobility)
        np.testing.assert_allclose(sol.v[:, -1], [5.0, -1.0, 0.0] + mobility * P, rtol=1e-9)
        assert sol.impacts.friction[0] == pytest.approx(mu * P)


def test_newton_and_poisson_differ_where_the_slip_ends_in_the_impact():
    """A sphere that spins: compression ends the slip; in the expansion Poisson's has no friction left."""
    tip = {"gap": lambda q: q[1] - np.sin(q[2]), "slip": lambda q, v: v[0] + np.sin(q[2]) * v[2]}
    after = {}
    for hypothesis in ("newton", "poisson"):
        contact = hn.Contact(**tip, restitution=0.7, friction=0.8, hypothesis=hypothesis)
        system = hn.System([1.0, 1.0, 1 / 3], [0, 0, 0], names=["x", "y", "angle"], contacts=contact)
        sol = hn.solve(system, (0, 0.5), [0, np.sin(1.0) + 0.1, 1.0], [0.2, -1.0, 0.0])
        assert sol.success
        after[hypothesis] = sol.v[:, -1]
    assert np.max(np.abs(after["newton"] - after["poisson"])) > 1e-3


def test_what_makes_no_sense_is_refused():
    system, _ = ball(0.5)
    with pytest.raises(ValueError, match="time must run forward"):
        hn.solve(system, (1, 0), [1.0])
    with pytest.raises(InconsistentStart, match=r"floor is penetrated by 0\.5"):
        hn.solve(system, (0, 1), [-0.5])
    for wrong in ({"restitution": 1.2}, {"restitution": -0.1}, {"friction": -1.0}, {"friction": 0.1}):
        with pytest.raises(ModelError):
            hn.Contact(lambda q: q[0], **wrong)


def test_stacked_balls_come_to_rest_one_on_the_other():
    """Gaps that are rounding when others close are not passed by."""
    contacts = [hn.Contact(lambda q: q[0], restitution=0.6, name="floor")] + [
        hn.Contact(lambda q, k=k: q[k + 1] - q[k], restitution=0.6, name=f"{k}") for k in range(4)
    ]
    balls = hn.System(np.ones(5), -G * np.ones(5), contacts=contacts, n=5)
    sol = hn.solve(balls, (0, 15), [1, 1.1, 1.3, 1.5, 1.51])
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.q[:, -1], 0, atol=1e-10)
    forces = [sol.contact(name).force[-1] for name in sol.system.contacts.names]
    np.testing.assert_allclose(forces, G * np.arange(5, 0, -1), rtol=1e-9)


def box(e, mu, hypothesis):
    """A rectangle with four corners."""
    contacts = []
    for a, b in product((-0.5, 0.5), (-0.25, 0.25)):
        contacts.append(
            hn.Contact(
                lambda q, a=a, b=b: q[1] + a * np.sin(q[2]) + b * np.cos(q[2]),
                lambda q, v, a=a, b=b: v[0] - v[2] * (a * np.sin(q[2]) + b * np.cos(q[2])),
                restitution=e,
                friction=mu,
                hypothesis=hypothesis,
                name=f"{a} {b}",
            )
        )
    return hn.System([1, 1, 0.1], [0, -G, 0], n=3, contacts=contacts, potential=lambda q: G * q[1])


@pytest.mark.parametrize(("e", "mu", "hypothesis"), [(0.3, 0.6, "poisson"), (0.5, 0.9, "newton")])
def test_a_thrown_box_comes_to_rest(e, mu, hypothesis):
    """Two feet that rub: their forces are not unique, and the bounces of both end together."""
    random, system = np.random.default_rng(1), None
    system = box(e, mu, hypothesis)
    for _ in range(4):
        v0 = [*random.normal(size=2), 3 * random.normal()]
        sol = hn.solve(system, (0, 8), [0, 1.5, random.uniform(-3, 3)], v0)
        assert sol.success, sol.message
        np.testing.assert_allclose(sol.v[:, -1], 0, atol=1e-12)
        lost = sol.energy[0] - sol.energy[-1]
        rubbed = -np.trapezoid(sol.contact_power(), sol.t)
        assert sum(sol.impacts.energy_lost) == pytest.approx(lost - rubbed, rel=0.02)
        statuses = {sol.contact(name).status[-1] for name in system.contacts.names}
        assert statuses == {"open", "sticks"}


def test_energy_is_that_of_the_start_less_what_impacts_take():
    system, q0 = ball(0.7)
    sol = hn.solve(system, (0, 1.5), q0, rtol=1e-10, atol=1e-12)
    lost = np.array([np.sum(sol.impacts.energy_lost[sol.impacts.t <= t]) for t in sol.t])
    jumps = np.append(np.diff(sol.t) == 0, False)  # the first of both points is before the impact
    np.testing.assert_allclose((sol.energy + lost)[~jumps], G, rtol=1e-9)


def test_contacts_pickle_and_are_saved(tmp_path):
    system, q0 = ball(0.5)
    sol = hn.solve(system, (0, 2), q0)
    for other in (pickle.loads(pickle.dumps(sol)), hn.Solution.load(sol.save(tmp_path / "run.npz"))):
        assert np.array_equal(other.impacts.t, sol.impacts.t)
        assert np.array_equal(other.contact("floor").force, sol.contact("floor").force)
        assert other.contact("floor").status == sol.contact("floor").status
        assert np.array_equal(other.a, sol.a)
        assert np.array_equal(other.energy, sol.energy)


def test_what_is_not_a_number_is_named():
    def solved(**functions):
        gap = functions.get("gap", lambda q: q[0])
        force = functions.get("force", [-G])
        return hn.solve(hn.System(1.0, force, n=1, contacts=hn.Contact(gap, name="ground")), (0, 1), [1.0])

    assert "the gap of contact 'ground' is NaN" in solved(gap=lambda q: np.sqrt(q[0] - 0.5)).message
    assert "force is" in solved(force=lambda t: np.array([-G * np.sqrt(0.7 - t)])).message
    system = hn.System(
        1.0,
        [-G],
        n=1,
        parameters={"e": 0.5},
        contacts=hn.Contact(lambda q: q[0], restitution=lambda p: p.e, name="ground"),
    )
    worse = hn.Event(lambda t: t - 0.1, action=lambda: {"parameters": {"e": 1.5}})
    sol = hn.solve(system, (0, 1), [1.0], events=worse)
    assert not sol.success
    assert "restitution of ground is 1.5; it must be from 0 to 1" in sol.message


def test_parameters_of_contacts_change_on_the_way():
    """Ice from t = 1 on."""
    sol = hn.solve(
        block(0.5, 0.4),
        (0, 2),
        [0.0, 0.0],
        [10.0, 0.0],
        events=hn.Event(lambda t: t - 1, action=lambda: {"parameters": {"kinetic": 0.0}}),
    )
    assert sol.v[0, -1] == pytest.approx(10 - 0.4 * G)
    assert np.array_equal(np.unique(sol.contact("slope").friction[0]), [-0.4 * 2 * G, 0.0])


def test_a_kick_off_the_floor_and_a_start_into_it():
    system, _ = ball(0.5)
    for v0 in (3.0, -6.0):
        sol = hn.solve(system, (0, 3), [0.0], [v0])
        assert sol.success, sol.message
        assert sol.impacts.t[-1] == pytest.approx(2 * 3 / G * 2, rel=1e-5)


def test_states_unknowns_and_invariants():
    floor = hn.Contact(lambda q: q[0], restitution=0.5, name="floor")
    air = hn.System(
        1.0,
        lambda s: np.array([-G - s[0]]),
        states={"wind": 1.0},
        rate=lambda s, v: -s + v,
        contacts=floor,
        n=1,
    )
    root = hn.System(
        1.0,
        lambda w: np.array([-w[0]]),
        unknowns={"z": 1.0},
        equations=lambda w, q: w**3 + w - 10 - q,
        contacts=floor,
        n=1,
    )
    for system in (air, root):
        sol = hn.solve(system, (0, 6), [1.0])
        assert sol.success, sol.message
        assert abs(sol.q[0, -1]) < 1e-11
        assert sol.contact("floor").status[-1] == "closed"


def kane(hypothesis):
    """Kane and Levinson's double pendulum, whose tip strikes a rough floor."""
    a, b = np.radians([20, 30])
    floor = hn.Contact(
        lambda q: np.cos(a) + np.cos(b) - np.cos(q[0]) - np.cos(q[1]),
        lambda q, v: np.cos(q[0]) * v[0] + np.cos(q[1]) * v[1],
        restitution=0.5,
        friction=0.5,
        hypothesis=hypothesis,
        name="floor",
    )

    def mass(q):
        c = np.cos(q[0] - q[1]) / 2
        return np.array([[4 / 3, c], [c, 1 / 3]])

    system = hn.System(mass, lambda q: -G * np.array([1.5, 0.5]) * np.sin(q), contacts=floor, n=2)
    return system, [a, b], [-0.1, -0.2]


def test_kanes_pendulum_gains_energy_by_newtons_hypothesis_and_says_so():
    """From 0.0232 to 0.0368 joules; by Poisson's hypothesis it loses some."""
    for hypothesis in ("newton", "poisson"):
        system, q0, v0 = kane(hypothesis)
        sol = hn.solve(system, (0, 1e-3), q0, v0)
        before, after = (v @ system.at(0, q0).M @ v / 2 for v in (np.array(v0), sol.v[:, -1]))
        assert sol.impacts.energy_lost[0] == pytest.approx(before - after, abs=1e-3)
        if hypothesis == "newton":
            assert sol.impacts.energy_lost[0] == pytest.approx(-0.0136190, rel=1e-5)
            assert "1 of the impacts gained energy, first that of floor at t = 0" in sol.message
        else:
            assert sol.impacts.energy_lost[0] > 0
            assert "gained" not in sol.message


def test_impacts_can_be_added_up():
    """With what the list has: sums, and numbers of the last impact of each contact."""
    system, q0 = ball(0.8)
    settings = {"t_eval": [1.0, 5.0]}
    listed = hn.solve(system, (0, 5), q0, **settings).impacts
    added = hn.solve(system, (0, 5), q0, **settings, keep_steps=False).impacts
    assert len(added) == 1
    assert added.number.tolist() == [len(listed)]
    assert added.energy_lost[0] == pytest.approx(G)
    assert added.impulse[0] == pytest.approx(sum(listed.impulse), rel=1e-13)
    for part in ("t", "before", "after"):
        assert getattr(added, part)[0] == getattr(listed, part)[-1]
    np.testing.assert_array_equal(listed.lost_until(np.array([0.0, 5.0])), [0, sum(listed.energy_lost)])
    assert np.isnan(added.lost_until(np.array([1.0]))[0])


@pytest.mark.slow
def test_a_million_impacts_take_no_memory():
    """About a minute: after the first thousands, memory does not grow."""
    floor = hn.Contact(lambda q: q[0], restitution=1.0, name="floor")
    system = hn.System(1.0, [-G], n=1, contacts=floor)
    period = 2 * np.sqrt(2 / G)

    def most(impacts):
        tracemalloc.reset_peak()
        before, end = tracemalloc.get_traced_memory()[0], impacts * period
        sol = hn.solve(system, (0, end), [1.0], t_eval=[end], keep_steps=False, max_steps=100_000_000)
        assert sol.success
        assert sol.impacts.number[0] == pytest.approx(impacts, rel=0.02)  # periods are lost to rtol
        return tracemalloc.get_traced_memory()[1] - before

    most(3000)  # fills Python's own list of tuples to be used again, which is bounded
    tracemalloc.start()
    assert most(6000) < most(1000) + 20_000  # an object for each impact would be more than 80 kB
    tracemalloc.stop()
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    most(1_000_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < resident + 12_000  # kilobytes, 12 bytes each


@pytest.mark.slow
def test_impacts_take_no_more_memory_than_their_table():
    """56 bytes each; by Simulator nothing at all, whose impacts are those of one step."""
    floor = hn.Contact(lambda q: q[0], restitution=1.0, name="floor")
    system = hn.System(1.0, [-G], n=1, contacts=floor)
    period = 2 * np.sqrt(2 / G)
    hn.solve(system, (0, 3000 * period), [1.0], t_eval=[3000 * period])
    tracemalloc.start()
    sol = hn.solve(system, (0, 10_000 * period), [1.0], t_eval=[10_000 * period])
    assert len(sol.impacts) == 10_000
    assert tracemalloc.get_traced_memory()[1] < 4 * 56 * 10_000 + 500_000
    sim = hn.Simulator(system, [1.0])
    sim.step(10 * period)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(300):
        sim.step(10 * period)
    assert tracemalloc.get_traced_memory()[0] < before + 50_000
    tracemalloc.stop()

"""Ready-made mechanisms of bodies and joints against published numbers, closed forms and equations written by
hand.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import logm
from scipy.optimize import fsolve, minimize, root
from scipy.spatial.transform import Rotation

import holonome as hn
from bodies import published
from holonome.solving.arguments import assembled

MADE_OF_BODIES = [
    "bennett_linkage",
    "bricard_linkage",
    "delta_robot",
    "double_wishbone",
    "gyroscope",
    "jansen_linkage",
    "rope_bridge",
    "seven_joint_arm",
    "spatial_slider_crank",
    "stewart_platform",
    "universal_joint_shaft",
    "whipple_bicycle",
]
TIGHT = {"rtol": 1e-11, "atol": 1e-12}


# ---------------------------------------------------------------------------------------------- examples


@pytest.mark.parametrize("name", MADE_OF_BODIES)
def test_example_brings_a_closed_start(name):
    """Its coordinates hold all constraints, it needs no first-order states, and it has a picture."""
    example = hn.mechanisms.get(name)
    assert example.name == name == example.mechanism.name
    assert example.title
    assert example.source
    sol = hn.solve(example, (0, 1e-3))
    assert sol.success
    assert sol.drift[0] < 1e-12
    assert np.array_equal(sol.q[:, 0], example.q0)
    assert example.initial(0.0)[2] is None
    assert example.drawing is example.system.drawing is not None
    assert example.drawing.traces
    again = hn.solve(example.system, (0, 1e-3), example.q0, example.v0)
    assert np.array_equal(again.q, sol.q)


def test_example_can_be_started_elsewhere_by_name():
    example = hn.mechanisms.spatial_slider_crank()
    sol = hn.solve(example, (0, 0.1), start={"A": 2.0}, speed={"A": -1.0})
    assert sol.joint("A").angle[0] == pytest.approx(2.0, abs=1e-14)
    assert sol.joint("A").rate[0] == pytest.approx(-1.0, abs=1e-12)
    sol = hn.solve(example, (0, 0.1), start={"D": 0.22})
    assert sol.joint("D").displacement[0] == pytest.approx(0.22, abs=1e-14)
    assert sol.joint("A").rate[0] == pytest.approx(6.0, abs=1e-12)
    sol = hn.solve(example, (0, 0.1), parameters={"rod": 0.35})
    assert sol.joint("D").displacement[0] == pytest.approx(np.sqrt(0.35**2 - 0.1**2 - 0.2**2), abs=1e-12)


def test_example_of_equations_refuses_a_start_by_name():
    with pytest.raises(ValueError, match="start: pendulum begins at its own q0"):
        assembled(hn.mechanisms.pendulum(), (0, 1), None, None, None, {"A": 1.0}, None, None)


def test_nothing_is_made_before_it_is_needed():
    example = hn.mechanisms.stewart_platform()
    assert not example.mechanism._made
    with pytest.raises(AttributeError, match="no attribute 'q1'"):
        example.q1  # noqa: B018


# ---------------------------------------------------------------------------------------------- linkages


def test_universal_joint_turns_as_in_textbooks():
    """tan φ₁ cos β = tan φ₂ and φ₂′/φ₁′ = cos β / (1 − sin²β sin²φ₁)."""
    bend = np.radians(40.0)
    sol = hn.solve(hn.mechanisms.universal_joint_shaft(bend=bend), (0, 4), **TIGHT)
    first, second = sol.joint("input bearing"), sol.joint("output bearing")
    assert first.angle[-1] > 30
    expected, ratio = published.universal_joint(first.angle, bend)
    assert np.allclose(second.angle, expected, rtol=0, atol=1e-12)
    assert np.allclose(second.rate / first.rate, ratio, rtol=1e-11, atol=0)
    energy = 0.5 * (0.5 * first.rate**2 + 0.02 * second.rate**2)
    lost = solve_ivp(
        lambda t, x: -0.01 * np.interp(t, sol.t, second.rate) ** 2, (0, 4), [0.0], rtol=1e-8, max_step=0.01
    )
    assert energy[-1] - energy[0] == pytest.approx(lost.y[0, -1], rel=1e-3)


def test_slider_of_the_spatial_slider_crank_is_where_the_rod_reaches():
    sol = hn.solve(hn.mechanisms.spatial_slider_crank(), (0, 2), **TIGHT)
    angle, rate = sol.joint("A").angle, sol.joint("A").rate
    y, z = 0.1 - 0.08 * np.sin(angle), 0.12 + 0.08 * np.cos(angle)
    x = np.sqrt(0.3**2 - y**2 - z**2)
    assert np.allclose(sol.joint("D").displacement, x, rtol=0, atol=1e-14)
    speed = 0.08 * rate * (y * np.cos(angle) + z * np.sin(angle)) / x
    assert np.allclose(sol.joint("D").rate, speed, rtol=0, atol=1e-13)


def test_bennett_linkage_keeps_its_relation():
    """tan ½θ₁ tan ½θ₂ = sin ½(β + α) / sin ½(β − α), over several turns; θ₃ = −θ₁ and θ₄ = −θ₂."""
    example = hn.mechanisms.bennett_linkage()
    sol = hn.solve(example, (0, 5))
    alpha, beta = np.radians(40.0), np.radians(75.0)
    ratio = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    one, two, three, four = (sol.joint(name).angle for name in "1234")
    assert np.ptp(one) > 4 * np.pi
    gap = np.sin(one / 2) * np.sin(two / 2) - ratio * np.cos(one / 2) * np.cos(two / 2)
    assert np.max(np.abs(gap)) < 1e-12
    for a, b in ((one, three), (two, four)):
        assert np.allclose(np.exp(1j * (a + b)), 1, rtol=0, atol=1e-12)
    m = example.mechanism
    assert m.degrees_of_freedom(example.start) == 1
    assert len(m.redundant(example.start)) == 3


def test_bennett_linkage_runs_at_tight_tolerances():
    assert hn.solve(hn.mechanisms.bennett_linkage(), (0, 5), **TIGHT).success


def test_bricard_linkage_moves_although_counting_says_that_it_cannot():
    """cos θ₁ + cos θ₂ + cos θ₁ cos θ₂ = 0 with threefold symmetry."""
    example = hn.mechanisms.bricard_linkage()
    sol = hn.solve(example, (0, 4), **TIGHT)
    angles = np.array([sol.joint(str(k)).angle for k in range(1, 7)])
    odd, even = np.cos(angles[::2]), np.cos(angles[1::2])
    assert np.ptp(angles[0]) > 2
    assert np.max(np.ptp(odd, axis=0)) < 1e-10
    assert np.max(np.ptp(even, axis=0)) < 1e-10
    assert np.max(np.abs(odd[0] + even[0] + odd[0] * even[0])) < 1e-10
    assert sol.drift[0] < 1e-12
    assert example.mechanism.degrees_of_freedom(example.start) == 1
    assert len(example.mechanism.redundant(example.start)) == 1


def test_foot_of_jansens_linkage_follows_its_circles():
    """With Jansen's numbers; the stride is 56 cm and the foot lifts by about 20 cm."""
    sol = hn.solve(hn.mechanisms.jansen_linkage(), (0, 2), **TIGHT)
    angle = sol.joint("O").angle
    left, right = sol.body("left UWP").point("P"), sol.body("right UWP").point("P")
    for i in range(0, sol.t.size, 5):
        expected = published.jansen(angle[i])["P"] / 100
        assert np.allclose(left[:, i], expected, rtol=0, atol=1e-12)
        expected = published.jansen(np.pi - angle[i])["P"] / 100
        assert np.allclose(right[:, i] * [-1, 1], expected, rtol=0, atol=1e-12)
    assert np.abs(angle[-1] - angle[0]) > 2 * np.pi
    assert 0.5 < np.ptp(left[0]) < 0.7


# ---------------------------------------------------------------------------------------------- single bodies


def top_by_hand(theta, psi_rate, spin, I, J, mgl, times):
    """ϑ and ψ of a heavy symmetric top with the conserved moments about the axis and the vertical."""
    axial = J * spin
    vertical = I * psi_rate * np.sin(theta) ** 2 + axial * np.cos(theta)

    def rates(t, y):
        s, c = np.sin(y[0]), np.cos(y[0])
        psi = (vertical - axial * c) / (I * s**2)
        return [y[1], psi**2 * s * c - axial * psi * s / I + mgl * s / I, psi]

    found = solve_ivp(rates, (0, times[-1]), [theta, 0.0, 0.0], "DOP853", times, rtol=1e-12, atol=1e-13)
    return found.y[0], found.y[2]


@pytest.mark.parametrize("tilt", [np.pi / 2, 0.6])
def test_gyroscope_nods_as_lagranges_top(tilt):
    sol = hn.solve(hn.mechanisms.gyroscope(tilt=tilt), (0, 1), **TIGHT)
    tip = sol.body("top").point("centre")
    theta, psi = top_by_hand(tilt, -4.61538, 150.0, 15.234375, 0.46875, 15 * 9.81, sol.t)
    expected = np.sin(theta) * -np.sin(psi), np.sin(theta) * np.cos(psi), np.cos(theta)
    if tilt < 1:  # ω is the angular velocity about the axis as a whole
        assert np.ptp(theta) > 1e-3
    assert np.allclose(tip, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("which", ["slow", "fast"])
def test_gyroscope_precesses_steadily_at_both_rates(which):
    """I Ω² cos ϑ − J ω Ω + m γ ℓ = 0."""
    I, J, spin, tilt, mgl = 15.234375, 0.46875, 150.0, 1.2, 15 * 9.81
    slow, fast = np.sort(np.roots([I * np.cos(tilt), -J * spin, mgl]))
    rate = slow if which == "slow" else fast
    sol = hn.solve(hn.mechanisms.gyroscope(tilt=tilt, spin=spin, precession=rate), (0, 1), **TIGHT)
    x, y, z = sol.body("top").point("centre")
    assert np.allclose(z, np.cos(tilt), rtol=0, atol=1e-9)
    turned = np.unwrap(np.arctan2(-x, y))
    assert np.allclose(turned, rate * sol.t, rtol=0, atol=1e-8)


def test_moments_of_momentum_of_the_gyroscope_are_constant():
    sol = hn.solve(hn.mechanisms.gyroscope(), (0, 2), **TIGHT)
    top = sol.body("top")
    w = np.einsum("tji,jt->it", top.matrix, top.angular_velocity)
    moment = np.array([15.234375, 15.234375, 0.46875])[:, None] * w
    axial, vertical = moment[2], np.einsum("ti,it->t", top.matrix[:, 2, :], moment)
    assert np.ptp(axial) < 1e-9 * 70
    assert np.ptp(vertical) < 1e-8 * 70
    assert np.ptp(0.5 * np.sum(w * moment, axis=0) + 15 * 9.81 * top.point("centre")[2]) < 1e-9 * 5e3


ARM_ACCELERATIONS = (
    -1.6235928510154647,
    23.05815167757518,
    10.003796715504272,
    11.010262384863504,
    3.191167657855628,
    -11.18802789134785,
    -138.5423275564802,
)
"""By the articulated-body algorithm of Pinocchio, for the joint angles, rates and torques below."""


def test_accelerations_of_the_seven_joint_arm():
    arm = hn.mechanisms.seven_joint_arm(
        rates=np.linspace(-0.5, 0.8, 7), torques=np.linspace(1, -1, 7), damping=0.0
    )
    sol = hn.solve(arm, (0, 1e-3))
    assert np.allclose(sol.a[:, 0], ARM_ACCELERATIONS, rtol=0, atol=1e-11)


# ------------------------------------------------------------------------------------------ parallel robots


def stewart_by_hand(example, t, y):
    """Rates of (x, R, v, ω) of the platform, by virtual power of platform and rods.

    A leg has the direction n and the length L; a rod without moment about its axis has the virtual power
    I n″ · δn, and δn = N δs / L, N = 1 − n nᵀ, for a displacement δs of the leg's upper end.
    """
    p, down = example.system.parameters, np.array([0, 0, -9.81])
    angle = np.radians([0, 0, 120, 120, 240, 240])
    below, above = angle + np.radians([-10, 10] * 3), angle + np.radians([-50, 50] * 3)
    B = np.array([[np.cos(a), np.sin(a), 0] for a in below])
    P = 0.6 * np.array([[np.cos(a), np.sin(a), 0] for a in above])
    x, R, v, w = y[:3], y[3:12].reshape(3, 3), y[12:15], y[15:]
    axis = np.array([np.cos(p["rate"] * t), np.sin(p["rate"] * t), 0])
    wanted, axis = p["amplitude"] * axis + [0, 0, p["height"]], p["tilt"] * axis
    goal = np.linalg.norm(wanted + Rotation.from_rotvec(axis).apply(P) - B, axis=1)
    r = P @ R.T
    way, u = x + r - B, v + np.cross(w, r)
    L = np.linalg.norm(way, axis=1)[:, None]
    n = way / L
    L_rate = np.sum(n * u, axis=1, keepdims=True)
    n_rate = (u - n * L_rate) / L
    F = p["stiffness"] * (goal[:, None] - L) - p["damping"] * L_rate
    J = R @ np.diag([1.0, 1.0, 2.0]) @ R.T

    def across(z):
        return (z - n * np.sum(n * z, axis=1, keepdims=True)) / L

    def residual(a):
        s = a[:3] + np.cross(a[3:], r) + np.cross(w, np.cross(w, r))
        n_second = across(s) - 2 * L_rate / L * n_rate - np.sum(n_rate**2, axis=1, keepdims=True) * n
        upper = 0.5 * (s - 0.3 * n_second - down)
        at_s = across(0.3 * (0.3 * n_second - down) + 0.02 * n_second) + upper
        at_s += across(0.01 * n_second - 0.3 * upper) - F * n
        force = 10 * (a[:3] - down) + at_s.sum(axis=0)
        return np.append(force, J @ a[3:] + np.cross(w, J @ w) + np.cross(r, at_s).sum(axis=0))

    rest = residual(np.zeros(6))
    matrix = np.stack([residual(e) - rest for e in np.eye(6)], axis=1)
    spin = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    return np.concatenate([v, (spin @ R).ravel(), np.linalg.solve(matrix, -rest)])


def test_stewart_platform_moves_as_its_equations_written_by_hand():
    example = hn.mechanisms.stewart_platform()
    sol = hn.solve(example, (0, 1), **TIGHT)
    platform = sol.body("platform")
    y0 = np.concatenate([platform.position[:, 0], platform.matrix[0].ravel(), np.zeros(6)])
    found = solve_ivp(
        lambda t, y: stewart_by_hand(example, t, y), (0, 1), y0, "DOP853", [0.3, 1.0], rtol=1e-10, atol=1e-11
    )
    last = found.y[:, -1]
    assert np.linalg.norm(platform.position[:, -1] - platform.position[:, 0]) > 0.1
    assert np.allclose(platform.position[:, -1], last[:3], rtol=0, atol=1e-8)
    assert np.allclose(platform.matrix[-1].ravel(), last[3:12], rtol=0, atol=1e-8)
    assert np.allclose(platform.angular_velocity[:, -1], last[15:], rtol=0, atol=1e-7)


def test_legs_of_the_stewart_platform_are_as_long_as_its_pose_asks_for():
    sol = hn.solve(hn.mechanisms.stewart_platform(), (0, 2))
    platform = sol.body("platform")
    for k in range(6):
        a = np.radians(120 * (k // 2) + (10 if k % 2 else -10))
        way = platform.point(f"P{k + 1}") - np.array([[np.cos(a)], [np.sin(a)], [0]])
        length = np.linalg.norm(way, axis=0)
        assert np.allclose(sol.joint(f"L{k + 1}").displacement, length, rtol=0, atol=1e-14)


def test_arms_of_the_delta_robot_are_where_inverse_kinematics_puts_them():
    """Intersections of a circle with a sphere, by plane geometry in the plane of the arm."""
    sol = hn.solve(hn.mechanisms.delta_robot(), (0, 2), **TIGHT)
    x = sol.body("platform").position
    assert np.ptp(x[0]) > 0.2
    for k, direction in enumerate(np.radians([0.0, 120.0, 240.0]), 1):
        e = np.array([np.cos(direction), np.sin(direction), 0])
        f = np.array([-np.sin(direction), np.cos(direction), 0])
        out, side, down = e @ x + 0.05 - 0.2, f @ x, -x[2]
        reach, d = np.sqrt(0.56**2 - side**2), np.hypot(out, down)
        inner = np.arccos((0.24**2 + d**2 - reach**2) / (2 * 0.24 * d))
        assert np.allclose(sol.joint(f"A{k}").angle, np.arctan2(down, out) - inner, rtol=0, atol=1e-12)
    assert np.max(np.abs(sol.body("platform").matrix - np.eye(3))) < 1e-12


# ----------------------------------------------------------------------------------------------- vehicles


def wishbone_by_hand(lower_angle):
    """Angle of the upper wishbone, and place and rotation of the upright on a chassis at rest, for one of
    the lower one: three points coincide or keep their distance.
    """
    lower, upper = np.array([0.0, 0.70, 0.17]), np.array([-0.02, 0.66, 0.45])
    tie, rack = np.array([-0.14, 0.69, 0.21]), np.array([-0.13, 0.38, 0.22])
    length = np.linalg.norm(tie - rack)

    def swung(point, hinge, angle):
        return hinge + Rotation.from_rotvec([angle, 0, 0]).apply(point - hinge)

    ball = swung(lower, np.array([0, 0.35, 0.19]), lower_angle)

    def gaps(z):
        turn = Rotation.from_rotvec(z[1:])
        other = ball + turn.apply(upper - lower) - swung(upper, np.array([0, 0.42, 0.42]), z[0])
        return [*other, np.linalg.norm(ball + turn.apply(tie - lower) - rack) - length]

    z = root(gaps, np.zeros(4), tol=1e-14).x
    assert np.max(np.abs(gaps(z))) < 1e-13
    turn = Rotation.from_rotvec(z[1:])
    return z[0], ball + turn.apply(np.array([0.0, 0.75, 0.30]) - lower), turn.as_matrix()


def test_wheel_of_the_double_wishbone_moves_as_its_loops_close():
    sol = hn.solve(hn.mechanisms.double_wishbone(), (0, 1), **TIGHT)
    angle, lift = sol.joint("lower hinge").angle, sol.joint("car").displacement
    assert np.ptp(angle) > 0.05
    for i in np.linspace(0, sol.t.size - 1, 9, dtype=int):
        upper, hub, turn = wishbone_by_hand(angle[i])
        assert sol.joint("upper hinge").angle[i] == pytest.approx(upper, abs=1e-11)
        assert np.allclose(sol.body("upright").point("hub")[:, i] - [0, 0, lift[i]], hub, rtol=0, atol=1e-11)
        assert np.allclose(sol.body("upright").matrix[i], turn, rtol=0, atol=1e-11)


def test_bushings_of_the_double_wishbone_give_way_a_little():
    stiff = hn.solve(hn.mechanisms.double_wishbone(), (0, 1), t_eval=np.linspace(0, 1, 101))
    soft = hn.solve(hn.mechanisms.double_wishbone(bushings=True), (0, 1), t_eval=np.linspace(0, 1, 101))
    gap = soft.body("upright").point("hub") - stiff.body("upright").point("hub")
    assert 1e-5 < np.max(np.abs(gap)) < 5e-3
    gap = soft.body("lower wishbone").point("lower front") - soft.body("chassis").point("lower front")
    assert 1e-5 < np.max(np.abs(gap)) < 2e-3


def bicycle_eigenvalues(speed):
    """From the motion after small pushes: the matrix that takes (φ, δ, φ′, δ′) a time step further."""
    size, times = 1e-4, np.linspace(0, 0.5, 11)
    before, after = [], []
    still = {"rear frame": {"velocity": (speed, 0, 0)}, "steer": size}
    for pushed in (None, still):
        example = hn.mechanisms.whipple_bicycle(speed=speed, lean_rate=size)
        sol = hn.solve(example, (0, 0.5), speed=pushed, t_eval=times, rtol=1e-12, atol=1e-14)
        frame, steer = sol.body("rear frame"), sol.joint("steer")
        across = frame.matrix[:, :, 1].T
        w = frame.angular_velocity
        states = np.array([across[2], steer.angle, w[0] * across[1] - w[1] * across[0], steer.rate])
        before.append(states[:, :-1])
        after.append(states[:, 1:])
    step = np.hstack(after) @ np.linalg.pinv(np.hstack(before))
    return np.linalg.eigvals(logm(step)) / times[1]


@pytest.mark.parametrize("speed", [4, 5, 8])
def test_eigenvalues_of_the_whipple_bicycle(speed):
    """Weave, capsize and castering: Meijaard et al. (2007), table 2."""
    expected = np.sort_complex(published.WHIPPLE_EIGENVALUES[speed])
    assert np.allclose(np.sort_complex(bicycle_eigenvalues(speed)), expected, rtol=0, atol=2e-5)


def test_bicycle_is_stable_between_the_weave_and_the_capsize_speed():
    weave = bicycle_eigenvalues(published.WHIPPLE_SPEEDS["weave"])
    assert np.max(weave.real[np.abs(weave.imag) > 1]) == pytest.approx(0, abs=1e-5)
    capsize = bicycle_eigenvalues(published.WHIPPLE_SPEEDS["capsize"])
    assert np.max(capsize.real) == pytest.approx(0, abs=1e-5)


def test_bicycle_recovers_from_a_push_and_keeps_its_energy():
    """The push of the non-linear benchmark, 0.5 rad/s at 4.6 m/s."""
    sol = hn.solve(hn.mechanisms.whipple_bicycle(), (0, 5), rtol=1e-9)
    lean = np.arcsin(sol.body("rear frame").matrix[:, 2, 1])
    assert np.max(np.abs(lean)) > 0.05
    assert np.max(np.abs(lean[sol.t > 4.5])) < 0.02
    assert np.ptp(sol.energy) < 1e-7 * sol.energy[0]
    assert sol.body("rear frame").velocity[:, -1] @ sol.body("rear frame").velocity[:, -1] > 4.6**2


# -------------------------------------------------------------------------------------------------- chains


def test_rope_bridge_hangs_at_rest():
    """Until the walker comes nothing moves; the banks carry half the weight each, and the horizontal force of
    the balance of the planks, found here from the least potential energy.
    """
    planks, length, weight = 6, 10 * 1.05 / 6, 20 * 9.81
    sol = hn.solve(hn.mechanisms.rope_bridge(planks=planks, walker=0.0), (0, 1))
    assert np.max(np.abs(sol.v)) < 1e-10

    def height(angles):
        ends = np.cumsum(length * np.sin(angles))
        return np.sum(ends - length * np.sin(angles) / 2)

    closed = [
        {"type": "eq", "fun": lambda a: np.sum(np.cos(a)) * length - 10},
        {"type": "eq", "fun": lambda a: np.sum(np.sin(a)) * length},
    ]
    found = minimize(height, np.linspace(-0.5, 0.5, planks), constraints=closed, options={"ftol": 1e-14})
    angles = [sol.body(f"plank {k}").angle[0] for k in range(1, planks + 1)]
    assert np.allclose(angles, found.x, rtol=0, atol=1e-5)
    force = sol.reaction("hinge 0").force[:, 0]
    assert force[1] == pytest.approx(planks * weight / 2, rel=1e-10)
    assert force[0] == pytest.approx(force[1] / np.tan(angles[0]) * (planks - 1) / planks, rel=1e-10)


def test_bridge_of_many_planks_hangs_as_a_catenary():
    """Sag a (cosh(L/2a) − 1), where 2a sinh(L/2a) is the length."""
    a = fsolve(lambda a: 2 * a * np.sinh(5 / a) - 10.5, 9.0)[0]
    bridge = hn.mechanisms.rope_bridge(planks=40)
    assembled = bridge.mechanism.initial(0.0, bridge.start)
    assert len(assembled[0]) == bridge.system.n
    turns = np.cumsum([bridge.start[f"hinge {k}"] for k in range(40)])
    lowest = np.min(np.cumsum(10.5 / 40 * np.sin(turns)))
    assert -lowest == pytest.approx(a * (np.cosh(5 / a) - 1), rel=1e-3)


def test_walker_is_carried_by_the_bridge():
    """The force of both banks upward is what gravity and walker ask for, and what accelerates the planks."""
    sol = hn.solve(hn.mechanisms.rope_bridge(planks=8), (0, 4), rtol=1e-9)
    i = np.searchsorted(sol.t, 3.0)
    up = sol.reaction("hinge 0").force[1, i] - sol.reaction("hinge 8").force[1, i]
    lifted = 0.0
    for k in range(1, 9):
        plank = sol.body(f"plank {k}")
        arm = 10.5 / 16 * np.array([np.cos(plank.angle[i]), np.sin(plank.angle[i])])
        lifted += plank.acceleration[1, i] + plank.angular_acceleration[i] * arm[0]
        lifted -= plank.angular_velocity[i] ** 2 * arm[1]
    assert up == pytest.approx(8 * 20 * 9.81 + 700 + 20 * lifted, rel=1e-9)

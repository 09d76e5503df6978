"""Smooth motion of a double wishbone suspension: for soft, middling and stiff bushings, never many more steps
than the better of its two methods.
"""

import numpy as np
import pytest

import holonome as hn

POINTS = {  # of the suspension at rest; x forwards, y outwards, z upwards
    "lower front": (0.15, 0.0, 0.0),
    "lower rear": (-0.15, 0.0, 0.0),
    "upper front": (0.12, 0.15, 0.28),
    "upper rear": (-0.14, 0.15, 0.3),
    "lower ball": (0.0, 0.48, -0.02),
    "upper ball": (-0.01, 0.45, 0.3),
    "tie rod, inner": (-0.12, 0.08, 0.05),
    "tie rod, outer": (-0.12, 0.47, 0.04),
    "strut, lower": (0.0, 0.3, 0.0),
    "strut, upper": (0.0, 0.2, 0.55),
    "wheel": (0.0, 0.55, 0.1),
}
POINTS = {name: np.array(point) for name, point in POINTS.items()}
LOWER, UPPER, UPRIGHT = range(3)
CENTRES = np.array([[0.0, 0.25, 0.0], [0.0, 0.35, 0.3], [0.0, 0.5, 0.15]])
MASSES, INERTIA = [4.0, 2.0, 25.0], np.array([[0.06, 0.05, 0.1], [0.02, 0.02, 0.04], [0.6, 0.9, 0.6]])
AT_REST = np.hstack([CENTRES, np.zeros((3, 3))]).ravel()
SMOOTH = hn.Method(hn.Compliant(), hn.BDF(max_order=2))


def rotation(angles):
    (a, b, c), (x, y, z) = np.cos(angles), np.sin(angles)
    about_x = np.array([[1, 0, 0], [0, a, -x], [0, x, a]])
    about_y = np.array([[b, 0, y], [0, 1, 0], [-y, 0, b]])
    return about_x @ about_y @ np.array([[c, -z, 0], [z, c, 0], [0, 0, 1]])


def spin(angles):
    """T: the angular velocity in the axes of the body is T times the rates of its angles."""
    (_, b, c), (_, y, z) = np.cos(angles), np.sin(angles)
    return np.array([[b * c, z, 0], [-b * z, c, 0], [y, 0, 1]])


def place(q, body, name):
    return q[6 * body : 6 * body + 3] + rotation(q[6 * body + 3 : 6 * body + 6]) @ arm(body, name)


def arm(body, name):
    return POINTS[name] - CENTRES[body]


def mass(q):
    M = np.zeros((18, 18))
    for body in range(3):
        T = spin(q[6 * body + 3 : 6 * body + 6])
        turning = slice(6 * body + 3, 6 * body + 6)
        M[6 * body : 6 * body + 3, 6 * body : 6 * body + 3] = MASSES[body] * np.eye(3)
        M[turning, turning] = T.T @ np.diag(INERTIA[body]) @ T
    return M


def generalised(q, body, name, force):
    """A force on a point of a body, for the six coordinates of the body."""
    angles = q[6 * body + 3 : 6 * body + 6]
    return [*force, *(spin(angles).T @ np.cross(arm(body, name), rotation(angles).T @ force))]


def force(t, q, v):
    strut = place(q, LOWER, "strut, lower") - POINTS["strut, upper"]
    turning = np.cross(spin(q[3:6]) @ v[3:6], arm(LOWER, "strut, lower"))
    length, free = np.sqrt(strut @ strut), np.linalg.norm(POINTS["strut, lower"] - POINTS["strut, upper"])
    along = strut / length
    push = 2500 - 3e4 * (length - free) - 1500 * (along @ (v[:3] + rotation(q[3:6]) @ turning))
    road = 0.015 * (1 - np.cos(3 * np.pi * t))
    tyre = 3000 + 2e5 * (road - place(q, UPRIGHT, "wheel")[2] + POINTS["wheel"][2])
    weight = np.array([-9.81 * MASSES[i // 6] if i % 6 == 2 else 0.0 for i in range(18)])
    on_lower = generalised(q, LOWER, "strut, lower", push * along)
    on_upright = generalised(q, UPRIGHT, "wheel", np.array([0, 0, 1]) * tyre)
    return weight + np.array([*on_lower, *np.zeros(6), *on_upright])


def constraint(q):
    rod = place(q, UPRIGHT, "tie rod, outer") - POINTS["tie rod, inner"]
    fixed = POINTS["tie rod, outer"] - POINTS["tie rod, inner"]
    lower = place(q, LOWER, "lower ball") - place(q, UPRIGHT, "lower ball")
    upper = place(q, UPPER, "upper ball") - place(q, UPRIGHT, "upper ball")
    return np.array([*lower, *upper, rod @ rod - fixed @ fixed])


def deformation(q):
    """Of the four bushings between arms and chassis."""
    ends = (LOWER, "lower front"), (LOWER, "lower rear"), (UPPER, "upper front"), (UPPER, "upper rear")
    return np.concatenate([place(q, body, name) - POINTS[name] for body, name in ends])


@pytest.fixture(scope="module")
def suspension():
    bushings = hn.Elastic(deformation, stiffness=lambda p: p.k)
    return hn.System(mass, force, constraint, elastic=bushings, parameters={"k": 1e5}, n=18)


def steps(system, k, rtol, **choice):
    sol = hn.solve(system, (0, 2), AT_REST, rtol=rtol, parameters={"k": k}, **choice)
    assert sol.success, sol.message
    return sol.steps


@pytest.mark.slow
@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
@pytest.mark.parametrize("exponent", [4, 5, 6, 6.5, 7, 7.5, 8, 9])
def test_smooth_motion_takes_little_more_steps_than_the_better_of_its_methods(suspension, exponent, rtol):
    k = 10.0**exponent
    better = min(steps(suspension, k, rtol, method=SMOOTH), steps(suspension, k, rtol))
    assert steps(suspension, k, rtol, motion="smooth") <= 1.5 * better


@pytest.mark.parametrize("k", [1e8, 1e9, 1e11])
def test_for_stiff_bushings_the_number_of_steps_does_not_depend_on_the_stiffness(suspension, k):
    assert steps(suspension, k, 1e-4, motion="smooth") <= 1.1 * steps(suspension, 1e10, 1e-4, motion="smooth")


def test_soft_bushings_are_followed_by_an_explicit_method_and_the_result_says_so(suspension):
    sol = hn.solve(suspension, (0, 0.5), AT_REST, motion="smooth", rtol=1e-6)
    exact = hn.solve(suspension, (0, 0.5), AT_REST, rtol=1e-9)
    assert sol.method == "smooth → dop853"
    assert "explicit steps are larger than those of smooth motion: smooth, then dop853 from" in sol.message
    assert "damped out in part" in sol.message
    assert np.max(np.abs(sol.q[:, -1] - exact.q[:, -1])) < 1e-4

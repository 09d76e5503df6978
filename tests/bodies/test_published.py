"""The published values agree with each other: printed digits with formulas, closed forms with equations."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from bodies import published

REFERENCES = json.loads((Path(__file__).parent / "references.json").read_text())


def test_the_bicycle_has_the_printed_matrices():
    printed = published.WHIPPLE_M, published.WHIPPLE_C1, published.WHIPPLE_K0, published.WHIPPLE_K2
    for ours, theirs in zip(published.whipple_matrices(), printed, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)


@pytest.mark.parametrize("speed", published.WHIPPLE_EIGENVALUES)
def test_the_bicycle_has_the_printed_eigenvalues(speed):
    printed = np.sort_complex(published.WHIPPLE_EIGENVALUES[speed])
    np.testing.assert_allclose(published.whipple_eigenvalues(speed), printed, atol=5e-13)


def test_the_bicycle_is_stable_between_the_printed_speeds():
    for name in ("weave", "capsize"):
        largest = np.max(published.whipple_eigenvalues(published.WHIPPLE_SPEEDS[name]).real)
        assert abs(largest) < 1e-12


def test_jansens_leg_closes_and_walks():
    rods = {
        "m": "OX", "j": "XY", "b": "ZY", "e": "YV", "d": "ZV", "c": "ZW", "k": "XW", "f": "VU", "g": "WU",
        "h": "UP", "i": "WP",
    }  # fmt: skip
    foot = []
    for angle in np.linspace(0, 2 * np.pi, 73):
        points = published.jansen(angle)
        for name, (first, second) in rods.items():
            assert np.isclose(np.hypot(*(points[first] - points[second])), published.JANSEN[name])
        foot.append(points["P"])
    foot = np.array(foot)
    low = foot[:, 1] < np.min(foot[:, 1]) + 2  # more than a third of a turn within 2 of the ground
    assert np.mean(low) > 1 / 3
    assert np.ptp(foot[:, 0]) > 3 * np.ptp(foot[:, 1]) / 2


@pytest.mark.parametrize("angle", [0.6, 1.1, 2.5, -1.4])
def test_bennetts_linkage_closes(angle):
    np.testing.assert_allclose(published.loop(*published.bennett(angle)), np.eye(4), atol=1e-13)


@pytest.mark.parametrize("angle", [0.5, 1.2, np.pi / 2, 2.0])
def test_bricards_linkage_closes(angle):
    np.testing.assert_allclose(published.loop(*published.bricard(angle)), np.eye(4), atol=1e-13)
    points, axes = published.bricard_points(angle)
    sides = np.roll(points, -1, axis=0) - points
    np.testing.assert_allclose(np.linalg.norm(sides, axis=1), 1)
    np.testing.assert_allclose(np.sum(axes * np.roll(axes, -1, axis=0), axis=1), 0, atol=1e-13)


def test_the_universal_joint_turns_as_its_ratio_says():
    angles, step = np.linspace(-7, 7, 41), 1e-6
    before, after = (published.universal_joint(angles + d, 0.6)[0] for d in (-step, step))
    np.testing.assert_allclose(
        (after - before) / (2 * step), published.universal_joint(angles, 0.6)[1], rtol=1e-8
    )


@pytest.mark.parametrize(("w1", "w3"), [(1.0, 2.0), (2.0, 0.7)])
def test_the_euler_top_solves_eulers_equations(w1, w3):
    top = published.EulerTop(3.0, 2.0, 1.2, w1, w3)
    I = np.array([3.0, 2.0, 1.2])

    def slope(t, y):
        w, R = y[:3], y[3:].reshape(3, 3)
        x, y, z = w
        return np.concatenate(
            [np.cross(I * w, w) / I, (R @ np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])).ravel()]
        )

    t = np.linspace(0, 5, 6)
    start = np.concatenate([[w1, 0, w3], top.rotation(0.0).ravel()])
    run = solve_ivp(slope, (0, 5), start, "DOP853", t, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(top.rates(t), run.y[:3].T, atol=1e-10)
    np.testing.assert_allclose(top.rotation(5.0).ravel(), run.y[3:, -1], atol=1e-10)
    np.testing.assert_allclose(top.rotation(5.0) @ (I * top.rates(5.0)), [0, 0, top.momentum()], atol=1e-13)
    np.testing.assert_allclose(top.rates(top.period), top.rates(0.0), atol=1e-12)


def test_the_steady_motions_solve_their_equations():
    for W in published.steady_precession(0.02, 0.01, 60.0, 0.8, 0.12, 0.5):
        assert abs(0.02 * W**2 * np.cos(0.5) - 0.01 * 60 * W + 0.8 * 9.81 * 0.12) < 1e-9
    assert published.upright_disc_speed() ** 2 == pytest.approx(9.81 * 0.5 / 3)


def test_the_disc_rolls_steadily():
    """Newton and Euler in a frame at rest; the force in the contact is found from the acceleration."""
    theta, W, r, g = 1.1, 1.7, 0.5, 9.81
    w3, _ = published.rolling_disc(theta, W)
    C = 0.5 * r**2

    def state(t):
        """Momentum of the centre and angular momentum about it, from the contact to the centre."""
        c, s = np.cos(W * t), np.sin(W * t)
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        e2, e3 = (turn @ [0, np.cos(theta), np.sin(theta)], turn @ [0, -np.sin(theta), np.cos(theta)])
        w = W * np.sin(theta) * e2 + w3 * e3
        return np.cross(w, r * e2), C / 2 * W * np.sin(theta) * e2 + C * w3 * e3, r * e2

    (p0, h0, _), (p1, h1, _), (_, _, s) = state(-1e-5), state(1e-5), state(0.0)
    force = (p1 - p0) / 2e-5 + [0, 0, g]
    np.testing.assert_allclose((h1 - h0) / 2e-5, np.cross(-s, force), atol=1e-7)


def test_the_cantilever_has_the_printed_roots():
    np.testing.assert_allclose(
        np.sqrt(published.cantilever_frequencies(1, 1, 1)), published.CANTILEVER, rtol=1e-14
    )


def test_the_spinning_beam_is_extended_as_printed():
    beam = published.SPINNING_BEAM
    extension = published.spinning_extension(6.0, beam["EA"], beam["mass per length"], beam["length"])
    assert extension == pytest.approx(beam["final extension"], abs=1e-6)
    assert published.spin_up(15.0) == pytest.approx(45.0)
    assert published.spin_up(15.0 - 1e-9) == pytest.approx(45.0)


def test_the_flexible_slider_crank_ends_where_the_test_set_says():
    end = published.FlexibleSliderCrank().motion([0.1], 2000)[0]
    assert np.all(np.abs(end - published.SIMEON_END) < [1e-11, 1e-9, 1e-10, 1e-11, 1e-11, 1e-11])


@pytest.mark.parametrize("name", REFERENCES)
def test_the_references_are_known_to_ten_digits(name):
    entry = REFERENCES[name]
    assert entry["change by the last extrapolation"] < 1e-10
    assert entry["distance from the motion by hand"] < 1e-10
    states = np.array(entry["states"])
    assert states.shape == (len(entry["times"]), len(entry["model"]["bodies"]), 13)
    np.testing.assert_allclose(np.linalg.norm(states[..., 3:7], axis=-1), 1, atol=1e-13)


def test_the_four_bar_in_space_moves_as_the_one_in_the_plane():
    planar, turned = (np.array(REFERENCES[name]["states"]) for name in ("four_bar", "four_bar_in_space"))
    vector = np.array([0.4, -0.7, 0.5])
    R = Rotation.from_rotvec(vector).as_matrix()
    for part in (slice(0, 3), slice(7, 10), slice(10, 13)):
        np.testing.assert_allclose(planar[..., part] @ R.T, turned[..., part], atol=1e-11)

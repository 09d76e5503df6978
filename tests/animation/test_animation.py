"""Animations without a browser: what the page contains, frames and curves against the run, drawings that are
inferred, films, errors.
"""

import base64
import html
import json
import pickle
import re

import numpy as np
import pytest

import holonome as hn
from holonome.animation import film, scene
from holonome.animation.inference import inferred, named_points

GRAVITY = 9.81


def simulated(name, t_span=None, **options):
    mechanism = hn.mechanisms.get(name)
    return hn.solve(mechanism.system, t_span or mechanism.t_span, mechanism.q0, mechanism.v0, **options)


def points(*masses):
    """Free fall of point masses in the plane."""
    return {"mass": np.repeat(masses, 2), "force": -GRAVITY * np.ravel([[0.0, m] for m in masses])}


def data(animation):
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', animation.html, re.DOTALL)
    return json.loads(text[1])


def numbers(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def frames(run):
    """Times, and every point (times, dimension) by name, as the page has them."""
    times, size = np.linspace(*run["span"], run["frames"]), run["dimension"]
    moving = numbers(run["moving"], "<f4").reshape(run["frames"], -1, size)
    places = [
        *moving.transpose(1, 0, 2),
        *(
            np.broadcast_to(place, (run["frames"], size))
            for place in np.array(run["fixed"]).reshape(-1, size)
        ),
    ]
    return times, {name: place + run["origin"] for name, place in zip(run["names"], places, strict=True)}


def rods(solution):
    """Inferred links as lengths by pairs of names; all must be constant."""
    drawing = inferred(solution)
    assert drawing is not None
    parameters = solution.system.parameters
    places = drawing.at(solution.q, parameters.namespace(parameters.flat), solution.t, solution.s)
    lengths = {pair: np.linalg.norm(places[pair[0]] - places[pair[1]], axis=0) for pair in drawing.links}
    assert all(np.ptp(length) < 1e-6 for length in lengths.values())
    return drawing, {pair: length[0] for pair, length in lengths.items()}, places


# ---------------------------------------------------------------- the page


def test_the_page_needs_nothing_else(tmp_path):
    solution = simulated("andrews")
    animation = solution.animate(tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert text == animation.html
    assert text.startswith("<!doctype html>")
    assert animation.file == tmp_path / "run.html"
    assert len(text.encode()) < 6e6
    assert "{{" not in text.replace("${{", "")
    assert not re.search(r"\b(src|href)\s*=|url\(|@import|https?://", text)


def test_frames_follow_the_exact_solution():
    """The pendulum has a closed form; frames lie between the steps of the run."""
    mechanism = hn.mechanisms.pendulum()
    solution = hn.solve(mechanism.system, (0, 10), mechanism.q0, mechanism.v0, rtol=1e-10, atol=1e-12)
    times, places = frames(data(solution.animate())["runs"][0])
    assert times.size == scene.MOST_FRAMES > 4 * solution.t.size
    np.testing.assert_allclose(places["mass"].T, mechanism.exact(times)[0], rtol=0, atol=1e-6)
    assert np.all(places["O"] == 0)


def test_dense_output_is_used():
    mechanism = hn.mechanisms.pendulum()
    solution = hn.solve(
        mechanism.system,
        (0, 10),
        mechanism.q0,
        mechanism.v0,
        rtol=1e-10,
        atol=1e-12,
        t_eval=[0, 5, 10],
        dense_output=True,
    )
    times, places = frames(data(solution.animate())["runs"][0])
    np.testing.assert_allclose(places["mass"].T, mechanism.exact(times)[0], rtol=0, atol=1e-6)


def test_points_that_are_too_sparse_are_not_joined():
    """Seven points on a hundred swings: every frame shows one of them."""
    solution = simulated("pendulum", (0, 200), t_eval=np.linspace(0, 200, 7))
    _, places = frames(data(solution.animate())["runs"][0])
    apart = np.linalg.norm(places["mass"][:, None] - solution.q.T, axis=2)
    assert np.max(np.min(apart, axis=1)) < 1e-6


@pytest.mark.parametrize("way", [1.0, -1.0])
@pytest.mark.parametrize("degree", [3, 5])
def test_hermite_reproduces_polynomials(degree, way):
    random = np.random.default_rng(0)
    polynomials = [np.polynomial.Polynomial(random.normal(size=degree + 1)) for _ in range(3)]
    t, times = way * np.array([0.0, 0.3, 1.0, 1.1]), way * np.linspace(0, 1.1, 50)
    derivatives = [np.array([p.deriv(j)(t) for p in polynomials]) for j in range((degree + 1) // 2)]
    np.testing.assert_allclose(
        scene.hermite(t, derivatives, times), [p(times) for p in polynomials], atol=1e-12
    )


def test_curves_are_those_of_the_run():
    solution = simulated("andrews")
    curves = {
        (curve["panel"], curve["name"]): curve for curve in data(solution.animate())["runs"][0]["curves"]
    }
    expected = {
        ("energy", "total"): solution.energy,
        ("drift", "|g|"): np.max(np.abs(solution.g), axis=0),
        ("drift", "|Gv|"): np.max(np.abs(solution.gv), axis=0),
        ("drift", "|E − E₀|"): np.abs(solution.energy - solution.energy[0]),
    }
    for key, values in expected.items():
        assert np.array_equal(numbers(curves[key]["t"], "<f8"), solution.t)
        assert np.array_equal(
            numbers(curves[key]["y"], "<f8"), np.maximum(values, 1e-17) if key[0] == "drift" else values
        )
    total = numbers(curves["energy", "kinetic"]["y"], "<f8") + numbers(
        curves["energy", "potential"]["y"], "<f8"
    )
    np.testing.assert_allclose(total, solution.energy, rtol=1e-12)


def test_kinetic_energy_without_a_potential():
    solution = hn.solve(hn.System(np.diag([2.0, 3.0]), [0.0, -1.0], names=["x", "y"]), (0, 1), [0, 0], [1, 0])
    curve = next(
        curve for curve in data(solution.animate())["runs"][0]["curves"] if curve["panel"] == "energy"
    )
    assert curve["name"] == "kinetic"
    np.testing.assert_allclose(numbers(curve["y"], "<f8"), 1 + 1.5 * (solution.t / 3) ** 2, rtol=1e-9)


def test_long_runs_stay_small_and_keep_their_peaks():
    solution = simulated("pendulum", (0, 1000), t_eval=np.linspace(0, 1000, 100_001), rtol=1e-3, atol=1e-6)
    animation = solution.animate()
    run = data(animation)["runs"][0]
    assert run["frames"] == scene.MOST_FRAMES
    assert len(animation.html.encode()) < 3e6
    for curve in run["curves"]:
        if curve["name"] == "|E − E₀|":
            t, y = numbers(curve["t"], "<f8"), numbers(curve["y"], "<f8")
            assert np.max(y) == np.max(np.abs(solution.energy - solution.energy[0]))
            assert (t[0], t[-1]) == (0, 1000)
            assert np.all(np.diff(t) > 0)
            assert t.size <= scene.MOST_POINTS + 2


def test_many_points_get_fewer_frames():
    drawing = hn.Drawing(lambda q: {f"{k}": (k * q[0], q[1]) for k in range(1, 301)})
    solution = hn.solve(hn.System(**points(1.0), names=["x", "y"], drawing=drawing), (0, 1), [0, 0], [1, 1])
    animation = hn.animate([solution, solution])
    assert 100 < data(animation)["runs"][0]["frames"] < scene.MOST_FRAMES
    assert len(animation.html.encode()) < 6e6


@pytest.mark.parametrize("name", list(hn.mechanisms.available()))
def test_every_mechanism_is_animated_with_rigid_links(name):
    mechanism = hn.mechanisms.get(name)
    solution = hn.solve(mechanism.system, (0, mechanism.t_span[1] / 20), mechanism.q0, mechanism.v0)
    run = data(solution.animate())["runs"][0]
    _, places = frames(run)
    size = max(np.max(np.abs(place)) for place in places.values())
    for i, j in run["links"]:
        length = np.linalg.norm(places[run["names"][i]] - places[run["names"][j]], axis=1)
        assert np.ptp(length) < 1e-4 * size
    plane = 3 if name == "wheelset" else 2
    assert run["dimension"] == getattr(mechanism.system, "dimension", plane)
    assert run["trouble"] == ""
    assert f"{solution.steps} steps" in run["small"]


def test_wheels_stand_on_their_rails():
    """The lowest corners of the wheels in space touch the circle of the rail's head."""
    mechanism = hn.mechanisms.wheelset()
    p = mechanism.system.parameters
    places = mechanism.system.drawing.at(mechanism.q0, p.namespace(p.flat))
    for side, name in ((1, "left"), (-1, "right")):
        inner, outer = places[f"{name} inner 0"], places[f"{name} outer 0"]
        middle = np.array(
            [side * (p["a"] + p["rs"] * np.sin(p["delta0"])), -p["r0"] - p["rs"] * np.cos(p["delta0"])]
        )
        along = (outer - inner)[1:] / np.linalg.norm((outer - inner)[1:])
        off = inner[1:] - middle
        assert abs(abs(along[0] * off[1] - along[1] * off[0]) - p["rs"]) < 1e-5


def test_runs_side_by_side_have_one_clock_and_their_own_ends(tmp_path):
    long, short = simulated("pendulum", (0, 2)), simulated("pendulum", (0, 1), method="bdf")
    animation = hn.animate([long, short], tmp_path / "two.html", titles=["long", "short"])
    page = data(animation)
    assert [run["title"] for run in page["runs"]] == ["long", "short"]
    assert [run["span"] for run in page["runs"]] == [[0, 2], [0, 1]]
    assert page["title"] == "Pendulum"
    assert [run["title"] for run in data(hn.animate([long, short]))["runs"]] == [long.method, short.method]


def test_backward_and_single_points():
    run = data(simulated("pendulum", (1, 0)).animate())["runs"][0]
    assert run["span"] == [1, 0]
    mechanism = hn.mechanisms.pendulum()
    backward = hn.solve(
        mechanism.system,
        (1, 0),
        *(x[:, 0] for x in mechanism.exact(np.array([1.0]))[:2]),
        rtol=1e-10,
        atol=1e-12,
    )
    times, places = frames(data(backward.animate())["runs"][0])
    np.testing.assert_allclose(places["mass"].T, mechanism.exact(times)[0], rtol=0, atol=1e-6)
    run = data(simulated("pendulum", (0, 1), t_eval=[0.5]).animate())["runs"][0]
    assert (run["frames"], run["span"]) == (1, [0.5, 0.5])


def test_a_run_that_failed_says_so():
    system = hn.System([1.0, 1.0], lambda q: np.array([q[0] ** 2, 0.0]), names=["x", "y"])
    solution = hn.solve(system, (0, 10), [1, 0], [1, 0])
    assert not solution.success
    run = data(solution.animate())["runs"][0]
    assert run["trouble"] == solution.message
    assert run["span"][1] < 10


def test_titles_and_names_cannot_break_the_page():
    system = hn.System([1.0, 1.0], [0.0, 0.0], names=["x", "y"], name="</script><b>{{DATA}}")
    animation = hn.solve(system, (0, 1), [0, 0], [1, 1]).animate(title="<i>&{{STYLE}}")
    assert "<title>&lt;i&gt;&amp;{{STYLE}}</title>" in animation.html
    assert data(animation)["title"] == "<i>&{{STYLE}}"


def test_a_notebook_shows_the_page():
    animation = simulated("pendulum", (0, 1)).animate(title='A "quoted" title')
    frame = animation._repr_html_()
    assert html.unescape(re.search(r'srcdoc="([^"]*)"', frame)[1]) == animation.html
    assert animation.file is None
    assert repr(animation) == "Animation('A \"quoted\" title')"


def test_several_notebook_cells_may_share_a_solution():
    solution = simulated("pendulum", (0, 1))
    assert solution.animate().html == solution.animate().html


# ---------------------------------------------------------------- drawings


def test_systems_carry_a_drawing():
    drawing = hn.Drawing(
        lambda q, p: {"pivot": (0.0, 0.0), "bob": (p.length * q[0], p.length * q[1])},
        links=[("pivot", "bob")],
        ground=["pivot"],
    )
    system = hn.System(
        np.eye(2),
        [0, -GRAVITY],
        lambda q: q @ q - 1,
        parameters={"length": 3.0},
        names=["x", "y"],
        drawing=drawing,
    )
    run = data(hn.solve(system, (0, 1), [1, 0]).animate())["runs"][0]
    assert run["names"] == ["bob", "pivot"]
    run = data(hn.solve(system.with_parameters(length=5.0), (0, 1), [1, 0]).animate())["runs"][0]
    assert frames(run)[1]["bob"][0] == pytest.approx([5, 0], abs=1e-6)
    other = hn.Drawing(lambda q: {"only": (q[0], q[1])})
    assert data(hn.solve(system, (0, 1), [1, 0]).animate(drawing=other))["runs"][0]["names"] == ["only"]


def test_a_drawing_may_ask_for_time_and_states():
    drawing = hn.Drawing(lambda t, s: {"time": (t, 0 * t), "state": (t, s[0])})
    system = hn.System([1.0], [0.0], states={"c": 1.0}, rate=lambda s: -s, drawing=drawing)
    times, places = frames(data(hn.solve(system, (0, 2), [0], rtol=1e-9, atol=1e-9).animate())["runs"][0])
    np.testing.assert_allclose(places["state"], np.stack([times, np.exp(-times)], axis=1), atol=2e-5)


def test_drawings_travel_with_pickled_systems_if_they_can():
    mechanism = hn.mechanisms.pendulum()
    again = pickle.loads(pickle.dumps(mechanism.system))
    assert list(again.drawing.at(mechanism.q0, None)) == list(mechanism.drawing.at(mechanism.q0, None))
    local = hn.System(
        [1.0, 1.0], [0.0, 0.0], names=["x", "y"], drawing=hn.Drawing(lambda q: {"mass": (q[0], q[1])})
    )
    assert pickle.loads(pickle.dumps(local)).drawing is None


def test_space_is_seen_from_the_camera():
    drawing = hn.Drawing(
        lambda q: {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}, camera=(0.0, 0.0)
    )
    front = drawing.seen(drawing.at(np.zeros(1), None))
    assert np.allclose([front["x"], front["y"], front["z"]], [[0, 0], [1, 0], [0, 1]])
    above = hn.Drawing(drawing.points, camera=(-90.0, 90.0))
    top = above.seen(above.at(np.zeros(1), None))
    assert np.allclose([top["x"], top["y"], top["z"]], [[1, 0], [0, 1], [0, 0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"points": {"a": (0, 0)}}, "points: dict; give a function"),
        ({"points": lambda z: {}}, "points: its argument 'z' is not known"),
        ({"links": [("a", "b", "c")]}, "links: .*pairs of names"),
        ({"links": ["ab"]}, "links: .*'ab'.*; give pairs"),
        ({"bodies": [["a", "b"]]}, "bodies: .*at least three"),
        ({"ground": "a"}, "ground: 'a'; give a list of names"),
        ({"circles": [["a"]]}, "circles: .*a centre and one to three points"),
        ({"tracks": [["a"]]}, "tracks: .*pairs of names, or triples"),
        ({"arrows": ["ab"]}, "arrows: .*pairs of names"),
        ({"lines": [["a", "b", "c"]]}, "lines: .*pairs of names"),
        ({"symbols": [("hinge", "a")]}, "symbols: 'hinge' is not a kind; choose from revolute, "),
        ({"symbols": [("spherical", "a", "b")]}, "symbols: .* has 1 directions; 'spherical' has at most 0"),
    ],
)
def test_drawings_refuse_what_cannot_be_drawn(arguments, message):
    with pytest.raises(hn.ModelError, match=message):
        hn.Drawing(**{"points": lambda q: {"a": (q[0], q[1])}, **arguments})


@pytest.mark.parametrize(
    ("drawing", "message"),
    [
        (
            hn.Drawing(lambda q: {"a": (q[0], q[1])}, links=[("a", "b")]),
            "links: there is no point 'b'; the points are a",
        ),
        (hn.Drawing(lambda q: {"a": (q[0], q[1])}, traces=["c"]), "traces: there is no point 'c'"),
        (
            hn.Drawing(lambda q: {"a": (q[0], q[1]), "b": (q[0], q[1]), "c": (q[0], q[1], 0.0)}),
            "points: 'c' has 3 coordinates",
        ),
        (
            hn.Drawing(lambda q: {"a": (q[0], q[1])}, symbols=[("prismatic", "a", "b")]),
            "symbols: there is no point 'b'",
        ),
        (
            hn.Drawing(lambda q: {"a": (q[0], q[1])}, circles=[("a", "a", "a")]),
            "circles: .*in the plane give the centre and one",
        ),
        (
            hn.Drawing(lambda q: {"a": (q[0], q[1], 0.0)}, tracks=[("a", "a")]),
            "tracks: .*give three points of a plane",
        ),
        (hn.Drawing(lambda q: [q[0], q[1]]), "points: returned list; it must return a dict"),
    ],
)
def test_drawings_that_do_not_fit_are_refused(drawing, message):
    with pytest.raises(hn.ModelError, match=message):
        simulated("pendulum", (0, 0.1)).animate(drawing=drawing)


# ---------------------------------------------------------------- inference


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["x", "y"], [("point", [0, 1], None)]),
        (["x1", "x2", "y1", "y2"], [("1", [0, 2], None), ("2", [1, 3], None)]),
        (["bob_x", "bob_y", "cart_x"], [("bob", [0, 1], None)]),
        (["x_a", "y_a", "theta_a"], [("a", [0, 1], 2)]),
        (["x1", "y1", "phi1"], [("1", [0, 1], 2)]),
        (["x", "y", "z"], [("point", [0, 1, 2], None)]),
        (["x", "y", "vx", "vy"], [("point", [0, 1], None)]),
        (["theta1", "theta2"], []),
        (["x", "theta"], []),
        (["zeta", "xi"], []),
    ],
)
def test_points_are_found_by_name(names, found):
    assert [(point.name, point.rows, point.angle) for point in named_points(names)] == found


@pytest.mark.parametrize(
    "constraint",
    [
        lambda q: (q[0] - 1) ** 2 + (q[1] - 2) ** 2 - 0.25,
        lambda q: np.hypot(q[0] - 1, q[1] - 2) - 0.5,
        lambda q: 3 * np.log((q[0] - 1) ** 2 + (q[1] - 2) ** 2) - 6 * np.log(0.5),
    ],
)
@pytest.mark.parametrize("names", [["x", "y"], None])
def test_a_pendulum_hangs_on_its_pivot(constraint, names):
    """However the constraint is written, and with or without names."""
    solution = hn.solve(hn.System(**points(1.0), constraint=constraint, names=names), (0, 2), [1.5, 2.0])
    drawing, lengths, places = rods(solution)
    assert list(lengths.values()) == pytest.approx([0.5])
    (pivot,) = drawing.ground
    assert places[pivot][:, 0] == pytest.approx([1, 2], abs=1e-6)


def test_a_pendulum_at_rest_has_its_rod_too():
    solution = hn.solve(
        hn.System(**points(1.0), constraint=lambda q: q @ q - 1, names=["x", "y"]), (0, 1), [0, -1]
    )
    assert np.ptp(solution.q) == 1
    assert list(rods(solution)[1].values()) == pytest.approx([1])


def test_rods_are_found_in_a_run_that_drifts():
    solution = simulated("pendulum", (0, 20), method="index1", rtol=1e-3, atol=1e-3)
    assert solution.drift[0] > 1e-3
    drawing = inferred(solution)
    assert [name for pair in drawing.links for name in pair] == [drawing.ground[0], "point"]


def test_a_chain_of_points_without_names():
    def constraint(q):
        r = np.concatenate([np.zeros(2), q]).reshape(-1, 2)
        return np.array([(r[i + 1] - r[i]) @ (r[i + 1] - r[i]) - 0.04 for i in range(4)])

    solution = hn.solve(
        hn.System(**points(1, 2, 3, 4), constraint=constraint),
        (0, 1),
        0.2 * np.array([1, 0, 2, 0, 3, 0, 4, 0]),
    )
    drawing, lengths, _ = rods(solution)
    assert list(lengths) == [(drawing.ground[0], "1"), ("1", "2"), ("2", "3"), ("3", "4")]
    assert list(lengths.values()) == pytest.approx([0.2] * 4)


def test_a_four_bar_linkage_of_points():
    """Two pivots, two moving points, three rods; a coupler point completes a triangle."""

    def constraint(q):
        B, C, E = q[:2], q[2:4], q[4:]
        return np.array(
            [
                B @ B - 1,
                (C - B) @ (C - B) - 4,
                (C[0] - 2) ** 2 + C[1] ** 2 - 2.25,
                (E - B) @ (E - B) - 2,
                (E - C) @ (E - C) - 2,
            ]
        )

    system = hn.System(**points(1, 1, 1), constraint=constraint, names=["xB", "yB", "xC", "yC", "xE", "yE"])
    solution = hn.solve(
        system, (0, 2), hn.consistent(system, [0.0, 1.0, 1.9, 1.5, 0.5, 2.3], np.zeros(6), repair=True).q
    )
    drawing, lengths, places = rods(solution)
    assert {tuple(sorted(np.round(places[name][:, 0], 6) + 0.0)) for name in drawing.ground} == {
        (0, 0),
        (0, 2),
    }
    assert sorted(lengths.values()) == pytest.approx(sorted([1, 2, 1.5, 2**0.5, 2**0.5]))


@pytest.mark.parametrize(
    ("name", "lengths"),
    [("four_bar", [0.4, 0.9, 0.7]), ("slider_crank_unequal", [1.0, 2.0]), ("chain", [*[0.1] * 9, 0.05])],
)
def test_joints_of_bodies(name, lengths):
    """Bodies with x, y and an angle: bars run from joint to joint."""
    solution = simulated(name, (0, 0.5))
    drawing, found, _ = rods(solution)
    assert list(found.values()) == pytest.approx(lengths)
    assert len(drawing.ground) == (2 if name == "four_bar" else 1)
    assert len(drawing.sliders) == (name == "slider_crank_unequal")


def test_a_spherical_pendulum_is_drawn_in_space():
    for names in (["x", "y", "z"], None):
        system = hn.System(np.ones(3), [0, 0, -GRAVITY], lambda q: q @ q - 1, names=names)
        solution = hn.solve(system, (0, 1), [1, 0, 0], [0, 1, 0])
        assert list(rods(solution)[1].values()) == pytest.approx([1])
        assert data(solution.animate())["runs"][0]["dimension"] == 3


def test_guides_springs_and_driven_points():
    bead = hn.solve(
        hn.System(**points(1.0), constraint=lambda q: q[1] - 2 * q[0], names=["x", "y"]), (0, 1), [0, 0]
    )
    assert inferred(bead).sliders == ("point",)
    ((begin, end),) = data(bead.animate())["runs"][0]["guides"]
    assert (end[1] - begin[1]) / (end[0] - begin[0]) == pytest.approx(2)
    curved = hn.Drawing(
        lambda q: {"curved": (np.cos(q[0]), np.sin(q[0])), "straight": (q[0], 0 * q[0])},
        sliders=["curved", "straight"],
    )
    assert [guide is None for guide in data(bead.animate(drawing=curved))["runs"][0]["guides"]] == [
        True,
        False,
    ]
    spring = hn.System(
        **points(1.0), elastic=hn.Elastic(lambda q: np.hypot(q[0], q[1]) - 1, 50.0), names=["x", "y"]
    )
    drawing = inferred(hn.solve(spring, (0, 1), [1, 0]))
    assert drawing.springs == ((drawing.ground[0], "point"),)
    driven = hn.System(
        **points(1.0),
        constraint=lambda t, q: (q[0] - 0.1 * np.sin(5 * t)) ** 2 + q[1] ** 2 - 1,
        names=["x", "y"],
    )
    solution = hn.solve(driven, (0, 2), [1, 0], [0.5, 0])
    _, lengths, places = rods(solution)
    assert list(lengths.values()) == pytest.approx([1])
    np.testing.assert_allclose(places["driven 1"], [0.1 * np.sin(5 * solution.t), 0 * solution.t], atol=1e-6)


def test_what_is_not_there_is_not_drawn():
    """A parabola is no circle, angles are no points, numbers without names and constraints are nothing."""
    parabola = hn.solve(
        hn.System(**points(1.0), constraint=lambda q: q[1] - q[0] ** 2, names=["x", "y"]), (0, 1), [1, 1]
    )
    assert (list(inferred(parabola).links), list(inferred(parabola).sliders)) == ([], [])
    assert inferred(simulated("two_link_arm")) is None
    assert inferred(hn.solve(hn.System(**points(1.0)), (0, 1), [0, 0])) is None
    run = data(
        hn.animate(hn.solve(hn.System([1.0, 1.0], lambda q: -q, names=["theta1", "theta2"]), (0, 1), [1, 0]))
    )["runs"][0]
    assert "names" not in run
    assert [curve["name"] for curve in run["curves"] if curve["panel"] == "coordinates"] == [
        "theta1",
        "theta2",
    ]


def test_constraints_that_cannot_be_traced():
    def constraint(q):
        return float(np.hypot(q[0], q[1])) - 1.0

    system = hn.System(**points(1.0), constraint=constraint, names=["x", "y"])
    assert system.paths["constraint"] != "traced"
    assert list(rods(hn.solve(system, (0, 0.5), [1, 0]))[1].values()) == pytest.approx([1])


def test_an_ode_in_space():
    lorenz = hn.ODE(
        lambda x: np.array([10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]),
        names=["x", "y", "z"],
    )
    solution = hn.solve(lorenz, (0, 3), [1, 1, 1], rtol=1e-9, atol=1e-9)
    times, places = frames(data(solution.animate())["runs"][0])
    exact = hn.solve(lorenz, (0, 3), [1, 1, 1], rtol=1e-9, atol=1e-9, t_eval=times)
    np.testing.assert_allclose(places["point"].T, exact.x, rtol=0, atol=0.02)


# ---------------------------------------------------------------- films and errors


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
def test_films(suffix, tmp_path, monkeypatch):
    from matplotlib.animation import writers

    if suffix == "mp4" and not writers.is_available("ffmpeg"):
        pytest.skip("needs ffmpeg on the PATH: apt, brew or winget install ffmpeg")
    monkeypatch.setattr(film, "_SECONDS", 0.2)
    file = hn.animate(
        [simulated("andrews"), simulated("wheelset", (0, 0.1))], tmp_path / f"film.{suffix}"
    ).file
    head = file.read_bytes()[:12]
    assert head.startswith(b"GIF89a") if suffix == "gif" else head[4:8] == b"ftyp"
    if suffix == "gif":
        from PIL import Image

        with Image.open(file) as image:
            assert image.n_frames == 4
            first = np.asarray(image.convert("L"), float)
            image.seek(3)
            assert np.max(np.abs(np.asarray(image.convert("L"), float) - first)) > 50


def test_films_say_what_they_need(tmp_path, monkeypatch):
    from matplotlib.animation import writers

    solution = simulated("pendulum", (0, 0.1))
    monkeypatch.setattr(writers, "is_available", lambda name: False)
    with pytest.raises(RuntimeError, match="needs ffmpeg, which is not found"):
        solution.animate(tmp_path / "run.mp4")
    with pytest.raises(RuntimeError, match="needs Pillow"):
        solution.animate(tmp_path / "run.gif")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    undrawn = hn.solve(hn.System([1.0], lambda q: -q, names=["angle"], name="rotor"), (0, 1), [1])
    with pytest.raises(ValueError, match="drawing: missing for system 'rotor'"):
        undrawn.animate(tmp_path / "run.gif")


def test_bad_arguments(tmp_path):
    solution = simulated("pendulum", (0, 0.1))
    with pytest.raises(ValueError, match=r"file: .*'\.png'; use \.html, \.gif or \.mp4"):
        solution.animate(tmp_path / "run.png")
    with pytest.raises(TypeError, match="solutions: int; give what"):
        hn.animate([3])
    with pytest.raises(TypeError, match="solutions: none given"):
        hn.animate([])
    with pytest.raises(TypeError, match="drawings: str; give an"):
        solution.animate(drawing="nice")
    with pytest.raises(ValueError, match="titles: 1 given for 2 solutions"):
        hn.animate([solution, solution], titles=["one"])
    with pytest.raises(ValueError, match=r"solutions\[0\]: it has no points"):
        simulated("pendulum", (0, 1), t_eval=[]).animate()
    with pytest.raises(ValueError, match="forward in time and some backward"):
        hn.animate([solution, simulated("pendulum", (1, 0))])
    with pytest.raises(hn.ModelError, match="drawing: 'nice'; give an"):
        hn.System([1.0], [0.0], drawing="nice")


@pytest.mark.parametrize(("torque", "expected"), [(0.0, True), (3.0, False)])
def test_the_work_of_a_motor_is_no_drift(torque, expected):
    arm = hn.System(
        1.0,
        lambda q: np.array([torque - GRAVITY * np.sin(q[0])]),
        potential=lambda q: -GRAVITY * np.cos(q[0]),
        names=["phi"],
    )
    solution = hn.solve(arm, (0, 2), [0.5])
    curves = scene.Scene.of(solution).curves()
    assert any(curve["name"] == "|E − E₀|" for curve in curves) == expected
    assert any(curve["name"] == "total" for curve in curves)

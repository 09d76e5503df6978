"""Pictures of mechanisms: what is drawn of bodies and joints, forces as arrows, graphs and plots by name."""

import base64
import json
import pickle
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import holonome as hn
from holonome import plot
from holonome.animation import film
from holonome.problem.solids import outward


def four_bar():
    m = hn.Mechanism("four-bar", gravity=(0, -9.81))
    crank = m.body("crank", mass=0.4, inertia=0.005, points={"A": (0, 0), "B": (0.4, 0)}, center=(0.2, 0))
    points = {"B": (0, 0), "C": (0.9, 0), "P": (0.45, 0.2)}
    coupler = m.body("coupler", mass=0.9, inertia=0.06, points=points, center=(0.45, 0))
    rocker = m.body("rocker", mass=0.7, inertia=0.03, points={"C": (0.7, 0), "D": (0, 0)}, center=(0.35, 0))
    m.revolute("A", m.ground.at(0, 0), crank["A"])
    m.revolute("B", crank["B"], coupler["B"])
    m.revolute("C", coupler["C"], rocker["C"])
    m.revolute("D", rocker["D"], m.ground.at(1, 0))
    m.torque("motor", joint="A", law=lambda t, rate: 1.0 - 0.1 * rate)
    return m


@pytest.fixture(scope="module")
def linkage():
    return hn.solve(four_bar(), (0, 1), start={"A": np.pi / 2, "D": hn.near(1.7)}, speed={"A": 6.0})


def rolling_disc():
    m = hn.Mechanism("disc", gravity=(0, 0, -9.81))
    disc = m.body("disc", mass=1, inertia=(0.0225, 0.0225, 0.045))
    m.rolling("r", m.ground.at(0, 0, 0), disc.at(0, 0, 0), radius=0.3)
    upright = Rotation.from_rotvec([np.pi / 2 - 0.2, 0, 0])
    return hn.solve(
        m, (0, 1), start={"disc": {"rotation": upright}}, speed={"disc": {"angular_velocity": (0.3, 5.0, 0)}}
    )


def data(solution, **shown):
    page = solution.animate(**shown).html
    (run,) = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])["runs"]
    return run


def path(run, name):
    """Where a point is in each frame."""
    track = np.frombuffer(base64.b64decode(run["moving"]), "<f4").reshape(run["frames"], -1, run["dimension"])
    return track[:, run["names"].index(name)] + run["origin"]


def places(solution):
    p = solution.system.parameters
    return solution.system.drawing.at(solution.q, p.namespace(p.flat), solution.t, solution.s)


# ---------------------------------------------------------------- what is drawn


def test_a_linkage_has_bars_outlines_hinges_and_supports(linkage):
    drawing = linkage.system.drawing
    assert set(drawing.links) == {("crank A", "crank B"), ("rocker C", "rocker D")}
    assert [set(body) for body in drawing.bodies] == [{"coupler B", "coupler C", "coupler P"}]
    assert {kind for kind, *_ in drawing.symbols} == {"revolute"}
    assert len(drawing.ground) == 2
    assert drawing.traces == ("coupler P",)  # the one point that no joint uses
    found = places(linkage)
    assert np.allclose(found["coupler P"], linkage.body("coupler").point("P"), atol=1e-12)


def test_shapes_in_the_plane():
    m = hn.Mechanism("shapes", gravity=(0, -9.81))
    plank = m.body("plank", shape=hn.shapes.Box(1.2, 0.1, 0.1), density=500)
    wheel = m.body("wheel", shape=hn.shapes.Tube(0.2, 0.1, inner=0.1), density=500)
    rod = m.body("rod", shape=hn.shapes.Rod((0, 0), (0.5, 0), 0.03), density=500)
    bob = m.body("bob", shape=hn.shapes.Sphere(0.1), density=500)
    m.revolute("a", m.ground.at(0, 0), plank.at(0, 0))
    m.revolute("b", plank.at(0.5, 0), wheel.at(0, 0))
    m.prismatic("c", plank.at(-0.5, 0), rod.at(0, 0))
    m.revolute("d", rod.at(0.5, 0), bob.at(0, 0.4))
    drawing = m.system.drawing
    corners = m.system.drawing.at(np.zeros(m.system.n), m.system.p)
    (outline,) = drawing.bodies
    assert np.ptp([corners[name] for name in outline], axis=0) == pytest.approx([1.2, 0.1])
    radii = [np.linalg.norm(corners[rim] - corners[center]) for center, rim in drawing.circles]
    assert radii == pytest.approx([0.2, 0.1, 0.1])
    assert ("bob middle 0", "bob (0, 0.4)") in drawing.links  # its joint lies outside
    assert any(kind == "prismatic" for kind, *_ in drawing.symbols)


def test_solids_are_closed_and_seen_from_outside():
    m = hn.Mechanism("solids", gravity=(0, 0, -9.81))
    shapes = hn.shapes
    for k, shape in enumerate(
        (shapes.Box(1, 2, 3), shapes.Sphere(1), shapes.Cylinder(1, 2), shapes.Rod((0, 0, 0), (1, 1, 0), 0.1))
    ):
        m.free(m.body(f"b{k}", shape=shape, density=1.0))
    system = m.system
    corners = system.drawing.at(np.tile([0, 0, 0, 1.0, 0, 0, 0], 4), system.p)
    assert set(outward(system.drawing.bodies, corners)) == {1}
    inside_out = [face[::-1] for face in system.drawing.bodies]
    assert set(outward(inside_out, corners)) == {-1}
    assert set(outward(system.drawing.bodies[1:], corners)) == {0, 1}  # a side is missing


def test_wheels_roll_on_their_ground():
    solution = rolling_disc()
    drawing, found = solution.system.drawing, places(solution)
    ((center, *rims),) = drawing.circles
    assert len(rims) == 2
    for rim in rims:
        assert np.allclose(np.linalg.norm(found[rim] - found[center], axis=0), 0.3, atol=1e-9)
    ((origin, *_),) = drawing.tracks
    assert np.all(found[origin] == 0)
    assert drawing.ground == ()


def test_gears_touch_and_belts_are_tangent():
    m = hn.Mechanism("gears", gravity=(0, -9.81))
    wheels = {}
    for name, x, y in (("A", 0, 0), ("B", 0.9, 0), ("C", 2.0, 0.6)):
        wheels[name] = m.body(name.lower(), mass=1, inertia=0.1)
        m.revolute(name, m.ground.at(x, y), wheels[name].at(0, 0))
    m.gear("mesh", ["A", "B"], -0.5)
    m.belt("belt", ["B", "C"], (0.3, 0.25))
    drawing = m.system.drawing
    found = m.system.drawing.at(np.full(m.system.n, 0.3), m.system.p)
    radii = [float(np.linalg.norm(found[rim] - found[center])) for center, rim in drawing.circles]
    assert radii == pytest.approx([0.3, 0.6, 0.3, 0.25])
    for begin, end in drawing.lines:
        along = found[end] - found[begin]
        assert along @ (found[begin] - [0.9, 0]) == pytest.approx(0, abs=1e-12)
        assert along @ (found[end] - [2.0, 0.6]) == pytest.approx(0, abs=1e-12)


def test_joints_in_space_show_their_axes():
    m = hn.Mechanism("arm", gravity=(0, 0, -9.81))
    arm = m.body("arm", mass=1, inertia=(0.1, 0.1, 0.1), points={"A": (0, 0, 0), "B": (1, 0, 0)})
    hand = m.body("hand", mass=1, inertia=(0.1, 0.1, 0.1), points={"B": (0, 0, 0), "C": (0, 1, 0)})
    m.revolute("A", m.ground.at(0, 0, 0), arm["A"], axis=(0, 1, 0))
    m.universal("B", arm["B"], hand["B"], axes=((1, 0, 0), (0, 0, 1)))
    drawing, found = m.system.drawing, m.system.drawing.at(np.zeros(m.system.n), m.system.p)
    symbols = {kind: names for kind, *names in drawing.symbols}
    place, *toward = symbols["revolute"]
    direction = found[toward[0]] - found[place]
    assert np.allclose(direction / np.linalg.norm(direction), [0, 1, 0])
    assert len(symbols["universal"]) == 3


def test_drawings_travel(linkage, tmp_path):
    drawing = linkage.system.drawing
    again = pickle.loads(pickle.dumps(linkage.system)).drawing
    linkage.save(tmp_path / "run.npz")
    loaded = hn.Solution.load(tmp_path / "run.npz")
    here = places(linkage)
    for found in (again, loaded.system.drawing):
        assert [list(group) for group in found.symbols] == [list(group) for group in drawing.symbols]
        p = linkage.system.parameters
        there = found.at(linkage.q, p.namespace(p.flat), linkage.t, linkage.s)
        assert all(np.allclose(there[name], here[name], atol=1e-12) for name in here)
    assert data(loaded)["symbols"] == data(linkage)["symbols"]


# ---------------------------------------------------------------- forces and graphs by name


def test_forces_are_arrows_in_proportion(linkage):
    run = data(linkage, forces=["C", "D", "motor"])
    assert [(arrow["name"], arrow["moment"]) for arrow in run["forces"]] == [
        ("C", False),
        ("D", False),
        ("motor", True),
    ]
    begin, end = (path(run, run["names"][k]) for k in run["forces"][0]["ends"])
    assert np.allclose(begin[0], linkage.reaction("C").place[:, 0], atol=1e-6)
    shown, force = end[[0, -1]] - begin[[0, -1]], linkage.reaction("C").force[:, [0, -1]].T
    scale = np.linalg.norm(shown, axis=1) / np.linalg.norm(force, axis=1)
    assert scale[0] == pytest.approx(scale[1], rel=1e-4)
    assert np.allclose(shown, scale[0] * force, atol=1e-4)


def test_rounding_makes_no_moments(linkage):
    assert [arrow["moment"] for arrow in data(linkage, forces=["A"])["forces"]] == [False]


def test_a_rolling_wheel_feels_the_ground_where_it_touches():
    run = data(rolling_disc(), forces=["r", "gravity"])
    (contact, weight) = run["forces"]
    assert not contact["moment"]
    assert np.allclose(path(run, run["names"][contact["ends"][0]])[:, 2], 0, atol=1e-5)
    begin, end = (path(run, run["names"][k]) for k in weight["ends"])
    assert np.all((end - begin)[:, 2] < 0)
    assert np.allclose((end - begin)[:, :2], 0, atol=1e-6)


def test_graphs_are_those_that_are_named(linkage):
    names = ["A.angle", ["C.force", "coupler.P"], "motor.power", "energy", "drift"]
    curves = data(linkage, graphs=names)["curves"]
    assert list(dict.fromkeys(curve["panel"] for curve in curves))[:4] == [
        "A.angle",
        "C.force, coupler.P",
        "motor.power",
        "energy",
    ]
    shown = {curve["name"]: np.frombuffer(base64.b64decode(curve["y"])) for curve in curves}
    assert np.array_equal(shown["A.angle"], linkage.joint("A").angle)
    assert np.array_equal(shown["C.force y"], linkage.reaction("C").force[1])
    assert np.array_equal(shown["coupler.P x"], linkage.body("coupler").point("P")[0])
    assert np.array_equal(shown["motor.power"], linkage.power("motor"))
    assert "|g|" in shown


@pytest.mark.parametrize(
    "name",
    ["B", "B.rate", "B.angle rate", "C.moment", "crank", "crank.velocity", "crank.angular_velocity"]
    + ["rocker.angle", "motor", "motor.moment", "motor.work"],
)
def test_quantities_that_can_be_shown(name, linkage):
    curves = data(linkage, graphs=[name])["curves"]
    assert curves
    assert {curve["panel"] for curve in curves} == {name}


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ({"graphs": ["X.angle"]}, "graphs: there is no 'X.angle'; there are A, B, C, D, crank, "),
        ({"graphs": ["A.twist"]}, "'A.twist'; of 'A' there are rate, force, moment, angle"),
        ({"graphs": ["coupler.Q"]}, "'coupler.Q'; of 'coupler' there are B, C, P, position"),
        ({"graphs": ["motor.colour"]}, "of 'motor' there are power, work, force, moment"),
        (
            {"forces": ["X"]},
            "forces: there is no joint, force, spring or drive 'X'; there are A, B, C, D, mo",
        ),
        ({"graphs": "A.angle"}, "graphs: 'A.angle'; give a list of names"),
        ({"forces": [1]}, r"forces: \[1\]; give a list of names"),
    ],
)
def test_unknown_names_are_refused(shown, message, linkage):
    with pytest.raises((hn.ModelError, TypeError), match=message):
        linkage.animate(**shown)


def test_systems_of_functions_have_graphs_but_no_forces():
    spring = hn.System([1.0], lambda q: -q, names=["x"], potential=lambda q: q @ q / 2)
    solution = hn.solve(spring, (0, 1), [1.0])
    curves = data(solution, graphs=["x", "energy"])["curves"]
    assert [curve["panel"] for curve in curves] == ["x", "energy", "energy", "energy"]
    with pytest.raises(hn.ModelError, match="graphs: there is no 'y'; there are x, energy"):
        solution.animate(graphs=["y"])
    with pytest.raises(hn.ModelError, match=r"forces: .*not that of a Mechanism"):
        solution.animate(forces=["y"])


# ---------------------------------------------------------------- matplotlib


def test_plots_of_joints_and_reactions(linkage):
    assert len(plot.plot_joints(linkage, ["A", "B"]).lines) == 2
    assert plot.plot_joints(linkage, rates=True).get_title(loc="left") == "Rates of joints"
    axes = plot.plot_reactions(linkage, ["C"])
    assert np.array_equal(axes.lines[1].get_ydata(), linkage.reaction("C").force[1])
    (size,) = plot.plot_reactions(linkage, ["C"], size=True).lines
    assert np.allclose(size.get_ydata(), np.linalg.norm(linkage.reaction("C").force, axis=0))
    assert len(plot.plot_reactions(linkage, moments=True).lines) == 4
    for draw in (plot.plot_joints, plot.plot_reactions):
        with pytest.raises(ValueError, match="joints: 'E' is not one of A, B, C, D"):
            draw(linkage, ["E"])
    pendulum = hn.mechanisms.pendulum()
    run = hn.solve(pendulum.system, (0, 0.1), pendulum.q0, pendulum.v0)
    with pytest.raises(ValueError, match="has no joints by name"):
        plot.plot_joints(run)


def spatial():
    m = hn.Mechanism("spatial", gravity=(0, 0, -9.81))
    rod = m.body("rod", shape=hn.shapes.Rod((0, 0, 0), (1, 0, 0), 0.05), density=500.0)
    bob = m.body("bob", shape=hn.shapes.Sphere(0.2), density=500.0)
    m.universal("U", m.ground.at(0, 0, 0), rod.at(0, 0, 0), axes=((0, 0, 1), (0, 1, 0)))
    m.spherical("S", rod.at(1, 0, 0), bob.at(0, 0, 0.2))
    return hn.solve(m, (0, 0.5))


@pytest.mark.parametrize("make", [rolling_disc, spatial])
def test_motion_in_space_is_plotted_and_filmed(make, tmp_path, monkeypatch):
    solution = make()
    axes = plot.plot_motion(solution)
    axes.get_figure().canvas.draw()
    monkeypatch.setattr(film, "_SECONDS", 0.1)
    joint = next(iter(solution.system.joints))
    file = solution.animate(tmp_path / "run.gif", forces=[joint, "gravity"]).file
    assert file.read_bytes().startswith(b"GIF89a")


def test_motion_in_the_plane_is_plotted_and_filmed(linkage, tmp_path, monkeypatch):
    linkage.plot(file=tmp_path / "run.png", dark=True)
    monkeypatch.setattr(film, "_SECONDS", 0.1)
    assert linkage.animate(tmp_path / "run.gif", forces=["motor", "C"]).file.stat().st_size > 1000


def test_a_mechanism_with_inputs_is_animated(tmp_path):
    m = hn.Mechanism("door", gravity=(0, -9.81), parameters={"length": 1.0}, inputs={"torque": 0.0})
    rod = m.body("rod", 2.0, 1 / 6, center=(0.5, 0), points={"A": (0, 0), "tip": (1, 0)})
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    m.torque("motor", joint="A", law=lambda u: u.torque)
    sol = hn.solve(m, (0, 0.1), start={"A": 0.5})
    assert sol.animate(tmp_path / "door.html").file.exists()

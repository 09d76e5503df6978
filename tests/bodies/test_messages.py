"""Bad input names body, joint and remedy."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import holonome as hn
from bodies.models import bar


def plane():
    m = hn.Mechanism("plane")
    return m, bar(m, "rod")


def space():
    m = hn.Mechanism("space", gravity=(0, 0, -9.81))
    return m, bar(m, "rod")


def refused(message, build, error=hn.ModelError):
    with pytest.raises(error, match=message):
        build()


def test_bodies():
    m, rod = plane()
    refused("rod: there is a body of this name already", lambda: m.body("rod", 1, 1))
    refused("rod: there is no point 'Z'; its points are A, B", lambda: rod["Z"])
    refused("x.mass: -1; give a number that is not negative", lambda: m.body("x", -1, 1))
    refused("x.mass: missing", lambda: m.body("x"))
    refused("x.mass: nan", lambda: m.body("x", np.nan, 1))
    refused("x.inertia: missing.*m.point_mass", lambda: m.body("x", 1))
    refused("x.inertia: .*give the moment of inertia", lambda: m.body("x", 1, (1, 2, 3)))
    refused("x.inertia: no moment of inertia may be negative", lambda: m.body("x", 1, -1.0))
    refused(r"x.points\['P'\]: .*give two finite numbers", lambda: m.body("x", 1, 1, points={"P": (0, 0, 0)}))
    refused("x.points: .*give a dict", lambda: m.body("x", 1, 1, points=[(0, 0)]))
    refused("x.center: ", lambda: m.body("x", 1, 1, center=(0, np.inf)))
    refused("x.density: it goes with a shape", lambda: m.body("x", 1, 1, density=5))
    refused("x.shape: ", lambda: m.body("x", 1, 1, shape="box"))
    refused("name: 3; give a string", lambda: m.body(3, 1, 1))
    assert "x" not in m.bodies


def test_impossible_inertia():
    m, _ = space()
    refused("none can be larger than the sum of the other two", lambda: m.body("x", 1, (1, 1, 3)))
    refused("must be symmetric", lambda: m.body("x", 1, [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]))
    refused("three principal moments", lambda: m.body("x", 1, 2.0))


def test_shapes():
    refused("Box.x: -1; give a positive number", lambda: hn.shapes.Box(-1, 1, 1))
    refused("Tube.inner: ", lambda: hn.shapes.Tube(1, 1, inner=2))
    refused("Tube.axis: 'w'; give 'x', 'y' or 'z'", lambda: hn.shapes.Tube(1, 1, axis="w"))
    refused("Rod.end: the same as its start", lambda: hn.shapes.Rod((0, 0, 0), (0, 0, 0), 0.1))
    corners = np.vstack([np.zeros(3), np.eye(3)])
    refused("not closed", lambda: hn.shapes.Mesh(corners, [[0, 2, 1], [0, 1, 3], [0, 3, 2]]))
    inside_out = [[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]]
    refused("inside out", lambda: hn.shapes.Mesh(corners, inside_out))


def test_joints():
    m, rod = plane()
    ground = m.ground.at(0, 0)
    m.revolute("A", ground, rod["A"])
    refused("A: there is a joint of this name already", lambda: m.revolute("A", ground, rod["A"]))
    refused("B: both of its points are on 'rod'", lambda: m.revolute("B", rod["A"], rod["B"]))
    refused(
        r"B: \(0, 0\) is no point; give one such as crank\['B'\]", lambda: m.revolute("B", (0, 0), rod["A"])
    )
    refused("B: a spherical joint is for space", lambda: m.spherical("B", ground, rod["A"]))
    refused(
        "B.axis: in the plane all joints turn about z", lambda: m.revolute("B", ground, rod["A"], (0, 0, 1))
    )
    refused("B.axis: .*give two numbers", lambda: m.prismatic("B", ground, rod["A"], (0, 0)))
    refused("B.length: 0; give a positive number", lambda: m.distance("B", ground, rod["B"], 0))
    refused("B.points: 1 given", lambda: m.rope("B", [ground], 1.0))
    refused("B.kind: 'ball'; give 'wheel'", lambda: m.rolling("B", ground, rod, 1.0, kind="ball"))
    refused("ground.at: .*give two finite numbers", lambda: m.ground.at(0, 0, 0))
    refused("B.guide: gives 2 numbers", lambda: m.point_on("B", ground, rod["B"], lambda x: x))
    other, beam = plane()
    refused("B: 'rod' is a body of another mechanism", lambda: m.revolute("B", ground, beam["A"]))
    assert other.bodies


def test_axes_in_space():
    m, rod = space()
    refused(
        "A.axis: .*three numbers, or two such triples",
        lambda: m.revolute("A", m.ground.at(0, 0, 0), rod, (1, 0)),
    )
    refused("A.axis: .*not all zero", lambda: m.revolute("A", m.ground.at(0, 0, 0), rod, (0, 0, 0)))
    turn = Rotation.from_rotvec(np.zeros((2, 3)))
    refused("ground.at: .*give one scipy", lambda: m.ground.at(0, 0, 0, rotation=turn))


def test_forces_and_drives():
    m, rod = plane()
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    refused("t: there is no joint 'Q'; there are A", lambda: m.torque("t", "Q", 1.0))
    refused("t.law: missing", lambda: m.torque("t", "A"))
    refused("t: give joint= or body=", lambda: m.torque("t", "A", 1.0, body="rod"))
    refused(
        "t.law: its argument 'x' is not known; .*t, angle, rate, p", lambda: m.torque("t", "A", lambda x: x)
    )
    refused("t.law: gives 2 numbers; it must give 1", lambda: m.torque("t", "A", (1.0, 2.0)))
    refused(
        "t.law: cannot be traced", lambda: m.torque("t", "A", lambda angle: np.linalg.eigvals([[angle]])[0])
    )
    refused("f: joint 'A' has no displacement", lambda: m.force("f", "A", 1.0))
    refused("f.law: gives 1 numbers; it must give 2", lambda: m.force("f", at=rod["B"], law=1.0))
    refused("s.stiffness: -1", lambda: m.spring("s", joint="A", stiffness=-1))
    refused("s.length: missing", lambda: m.spring("s", m.ground.at(0, 0), rod["B"], stiffness=1))
    refused("c.radius: missing", lambda: m.friction("c", "A", 0.1))
    refused("g.joints: ", lambda: m.gear("g", ["A"], 2.0))
    refused("b: shape|b.stiffness: shape", lambda: m.bushing("b", m.ground.at(0, 0), rod["A"], (1, 2)))
    refused("load: ", lambda: m.add("spring"))
    assert not m.forces


def test_numbers_without_sense():
    m, rod = plane()
    ground = m.ground.at(0, 0)
    m.revolute("A", ground, rod["A"])
    m.revolute("B", rod["B"], bar(m, "second")["A"])
    m.prismatic("S", m.ground.at(0, 1), bar(m, "third")["A"])
    refused("s: neither stiffness nor damping", lambda: m.spring("s", joint="A"))
    refused(
        "s.length: -1; give a number that", lambda: m.spring("s", ground, rod["B"], stiffness=1, length=-1)
    )
    refused("c.coefficient: -1", lambda: m.friction("c", "A", -1, radius=1))
    refused("c.speed: 0; give a positive number", lambda: m.friction("c", "A", 1, radius=1, speed=0))
    refused("c.stiffness: 0", lambda: m.contact("c", ground, rod["B"], 0))
    refused("c.friction: -1", lambda: m.contact("c", ground, rod["B"], 1, friction=-1))
    refused("d.coefficient: -1", lambda: m.drag("d", rod["B"], -1))
    refused("b.stiffness: -1; it must have no negative", lambda: m.bushing("b", ground, rod["B"], -1))
    turning = [[1, 1, 0], [0, 1, 0], [0, 0, 1]]
    refused("b.damping: .*symmetric", lambda: m.bushing("b", ground, rod["B"], 1, turning))
    refused("r.radius: 0; give a positive number", lambda: m.rolling("r", ground, rod["B"], 0))
    refused("r.length: -1", lambda: m.rope("r", [ground, rod["B"]], -1))
    refused("r: all of its points are on 'rod'", lambda: m.rope("r", [rod["A"], rod["B"]], 1))
    refused("g.ratio: 0; give a number other than zero", lambda: m.gear("g", ["A", "B"], 0))
    refused("g.joints: 'A' twice", lambda: m.gear("g", ["A", "A"], 2))
    refused("g.radii: .*one for each pulley", lambda: m.belt("g", ["A", "B"], (1,)))
    refused("g.radii: 0; give a positive number", lambda: m.belt("g", ["A", "B"], (1, 0)))
    refused("g.radius: 0", lambda: m.rack("g", "A", "S", 0))
    refused("event.value: 'x'; give a number", lambda: m.event("A", "x"))
    refused("x.density: -5", lambda: m.body("x", shape=hn.shapes.Sphere(1.0), density=-5))
    assert not m.forces
    assert not m.couplings
    m, rod = space()
    refused("A.lead: 0; give a number other", lambda: m.screw("A", m.ground.at(0, 0, 0), rod["A"], lead=0))


def test_parameters_without_sense_are_seen_by_their_first_values():
    m = hn.Mechanism("plane", parameters={"k": -3.0})
    rod = bar(m, "rod")
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    refused(
        "s.stiffness: -3; give a number that is not negative",
        lambda: m.spring("s", joint="A", stiffness=m.p.k),
    )


def test_arguments_that_would_have_no_effect():
    m, rod = plane()
    ground = m.ground.at(0, 0)
    m.prismatic("S", ground, rod["A"])
    refused("c.radius: it has no meaning for a displacement", lambda: m.friction("c", "S", 0.1, radius=0.1))
    refused(
        "s.rest: it has no meaning for two points",
        lambda: m.spring("s", ground, rod["B"], stiffness=1, length=1, rest=1),
    )
    refused("t.coordinate: ", lambda: m.torque("t", body=rod, law=1.0, coordinate="angle"))
    refused("t.coordinate: ", lambda: m.force("t", at=rod["B"], law=(1.0, 0), coordinate="x"))
    refused("r.axis: a wheel needs none", lambda: m.rolling("r", ground, rod["B"], 1, axis=(0, 0, 1)))
    refused("u: a universal joint is for space", lambda: m.universal("u", ground, rod["B"]))
    refused("u: a screw joint is for space", lambda: m.screw("u", ground, rod["B"], 0.1))
    refused("f.at: no points", lambda: m.force("f", at=[], law=1.0))
    refused("f.between: 'ab'; give two points", lambda: m.force("f", between="ab", law=1.0))


def test_more_arguments_that_would_have_no_effect():
    m, rod = plane()
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    refused("event.axis: it has no meaning for a joint", lambda: m.event("A", 1.0, axis="y"))
    refused("event.coordinate: it has no meaning for a point", lambda: m.event(point=rod, coordinate="angle"))
    load = m.point_mass("load", 1.0)
    refused("t.body: 'load' is a point mass", lambda: m.torque("t", body=load, law=1.0))
    refused("load.at: a point mass is its only point", lambda: load.at(0.1, 0))
    refused("g.guide: does not depend on x", lambda: m.point_on("g", rod["A"], load, lambda x: 1.0))


def test_what_is_not_of_its_kind():
    m, rod = plane()
    ground = m.ground.at(0, 0)
    m.revolute("A", ground, rod["A"])
    refused("rod: there is no point", lambda: rod[["A"]])
    refused("b.stiffness: 'soft'; give numbers", lambda: m.bushing("b", ground, rod["A"], "soft"))
    refused("r.points: 3; give a list of points", lambda: m.rope("r", 3, 1.0))
    refused("r.points: 3; give a list of points", lambda: m.slack_rope("r", 3, 1.0))
    refused("r: all of its points are on 'rod'", lambda: m.slack_rope("r", [rod["A"], rod["B"]], 1.0))
    refused("r.length: -1; give a positive", lambda: m.slack_rope("r", [ground, rod["B"]], -1.0))
    refused("t.radius: -1; give a number that is not", lambda: m.touch("t", ground, rod["B"], radius=-1))
    refused("A upper less lower: -1; give lower below upper", lambda: m.stops("A", lower=2, upper=1))
    refused("c.exponent: inf", lambda: m.contact("c", ground, rod["B"], 1.0, exponent=np.inf))
    refused("event.axis: 'z'; give one of 'x', 'y'", lambda: m.event(point=rod["B"], axis="z"))
    refused("start: 3; give a dict", lambda: m.assemble(3), hn.InconsistentStart)
    refused("t0: 'x'", lambda: m.assemble(t0="x"), ValueError)
    refused("t0: nan", lambda: m.initial(np.nan), ValueError)
    refused("parameters: 3; give a dict", lambda: m.assemble(parameters=3), ValueError)
    assert not m.contacts


def test_parameters_where_numbers_are_needed():
    m = hn.Mechanism("space", gravity=(0, 0, -9.81), parameters={"a": 1.0})
    rod, other = bar(m, "rod"), hn.Mechanism("other", parameters={"a": 1.0, "b": -1.0})
    ground = m.ground.at(0, 0, 0)
    refused("A.axis: .*give three numbers", lambda: m.revolute("A", ground, rod["A"], axis=(m.p.a, 0, 1)))
    with pytest.raises(TypeError, match="stands for any value and is no number"):
        Rotation.from_euler("x", m.p.a)
    with pytest.raises(TypeError, match="stands for any value and is no number"):
        assert m.p.a > 1
    m.revolute("A", ground, rod["A"])
    refused(r"start\['A'\]: .*give a number", lambda: m.assemble({"A": m.p.a}), hn.InconsistentStart)
    refused("x.mass: -1; give a number that is not", lambda: other.body("x", other.p.b, 1.0))
    refused("x.*: depends on a parameter of another", lambda: m.body("x", other.p.a, (1, 1, 1)))
    refused(
        "x: depends on a parameter of another", lambda: m.body("x", 1, (1, 1, 1), center=(0, 0, other.p.a))
    )
    refused("Q: depends on a parameter", lambda: m.distance("Q", ground, rod.at(other.p.a, 0, 0), 1.0))
    refused("x.inertia: no body has", lambda: m.body("x", m.p.a, (m.p.a, m.p.a, 3 * m.p.a)))
    assert list(m.bodies) == ["ground", "rod"]


def test_parameters_of_a_run_without_sense():
    m = hn.Mechanism("plane", parameters={"mass": 1.0, "k": 1.0})
    rod = m.body("rod", m.p.mass, 0.1, center=(0.5, 0))
    m.revolute("A", m.ground.at(0, 0), rod)
    m.spring("s", joint="A", stiffness=m.p.k)
    assert hn.solve(m, (0, 0.1), parameters={"mass": 2.0}).success
    refused("rod.mass: -1; give", lambda: hn.solve(m, (0, 0.1), parameters={"mass": -1.0}))
    refused("s.stiffness: -1; give", lambda: hn.solve(m, (0, 0.1), [0.0], parameters={"k": -1.0}))


def test_an_event_that_was_made_before_parts_were_added():
    m, rod = plane()
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    old = m.event("A", 0.1)
    m.revolute("B", rod["B"], bar(m, "second")["A"])
    refused("was made before parts were added", lambda: hn.solve(m, (0, 1), events=old))


def test_couplings():
    m, rod = plane()
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    m.revolute("B", rod["B"], bar(m, "second")["A"])
    refused("c.terms: .*two joints or more", lambda: m.couple("c", {"A": 1}))
    refused(r"c.terms\['A'\]: 0; give a number other", lambda: m.couple("c", {"A": 0, "B": 1}))
    refused("c: there is no joint 'Z'", lambda: m.couple("c", {"A": 1, "Z": 1}))
    refused("c.terms: a coordinate is there twice", lambda: m.couple("c", {"A": 1, m.joints["A"]: 1}))
    assert not m.couplings


def test_in_the_plane_axes_turn_about_z():
    m, _ = plane()
    tilted = Rotation.from_euler("x", 0.3)
    refused("ground.at: in the plane axes turn about z only", lambda: m.ground.at(0, 0, rotation=tilted))
    refused(r"x.points\['P'\]: in the plane", lambda: m.body("x", 1, 1, points={"P": ((0, 0), tilted)}))
    turn = m.ground.at(0, 0, rotation=Rotation.from_euler("z", 0.3)).turn
    assert turn[0, 0] == pytest.approx(np.cos(0.3), rel=1e-15)


def test_rotations_where_numbers_are_asked_for():
    m, rod = space()
    m.revolute("A", m.ground.at(0, 0, 0), rod["A"])
    m.spherical("B", rod["B"], bar(m, "second")["A"])
    for name, value in (("A", Rotation.identity()), ("B", Rotation.from_rotvec(np.zeros((2, 3))))):
        refused(
            rf"start\['{name}'\]: ", lambda: hn.solve(m, (0, 1), start={name: value}), hn.InconsistentStart
        )


def test_a_drive_that_jumps_cannot_be_followed():
    m, rod = plane()
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    m.drive("d", "A", lambda t: np.where(t > 0.5, 1.0, 0.0))
    sol = hn.solve(m, (0, 1))
    assert not sol.success
    assert "constraints that cannot be met further on" in sol.message


def test_a_random_law_is_refused():
    m, rod = plane()
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    random = np.random.default_rng(1)
    refused("t.law: ", lambda: m.torque("t", "A", lambda rate: random.normal() * rate))


def test_a_captured_value_that_changes_is_noticed():
    m, rod = plane()
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    gain = 2.0
    m.torque("t", "A", lambda rate: -gain * rate)
    assert hn.solve(m, (0, 1)).success
    gain = 3.0
    refused("t.law: gain was 2.0", lambda: hn.solve(m, (0, 1)))


def test_mechanisms_that_are_not_complete():
    refused("this mechanism has no bodies", lambda: hn.solve(hn.Mechanism("empty"), (0, 1)))
    m, rod = plane()
    refused(r"rod: this body hangs on nothing; .*m.free\('rod'\)", lambda: hn.solve(m, (0, 1)))
    loose = bar(m, "loose")
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    refused("loose: this body hangs on nothing", lambda: hn.solve(m, (0, 1)))
    m.free(loose)
    assert hn.solve(m, (0, 1)).success
    m = hn.Mechanism("massless")
    m.revolute("A", m.ground.at(0, 0), m.body("ghost", 0, 0))
    refused("mass: singular.* A can move without any inertia", lambda: hn.solve(m, (0, 1)), hn.SingularSystem)
    refused("gravity: .*give two numbers for a mechanism in the plane", lambda: hn.Mechanism(gravity=(1,)))
    refused("coordinates: 'best'", lambda: hn.Mechanism(coordinates="best"))


def test_names_in_results():
    m, rod = plane()
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    sol = hn.solve(m, (0, 1))
    refused("there is no joint 'B'; there are A", lambda: sol.joint("B"))
    refused("there is no body 'B'; there are rod", lambda: sol.body("B"))
    refused("there is no force, spring or drive 'B'; there are none", lambda: sol.power("B"))
    refused("rod: there is no point 'P'", lambda: sol.body("rod").point("P"))
    with pytest.raises(AttributeError, match="A: this joint has angle"):
        _ = sol.joint("A").displacement
    plain = hn.solve(hn.mechanisms.pendulum(), (0, 1))
    refused("made of functions", lambda: plain.joint("A"))


def test_a_massless_body_is_fine_where_joints_determine_it():
    m = hn.Mechanism("coupled")
    crank, rod, slider = bar(m, "crank"), m.body("rod", 0, 0, points={"B": (0, 0), "C": (2, 0)}), None
    slider = m.body("slider", 1.0, 0.1)
    m.revolute("A", m.ground.at(0, 0), crank["A"])
    m.revolute("B", crank["B"], rod["B"])
    m.revolute("C", rod["C"], slider)
    m.prismatic("D", m.ground.at(0, 0), slider)
    sol = hn.solve(m, (0, 1), start={"A": 0.5, "D": hn.near(2.8)}, speed={"A": 3.0})
    assert sol.success
    assert sol.energy_change < 1e-4
    assert max(sol.drift) < 1e-11

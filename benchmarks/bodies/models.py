"""Mechanisms as numbers: bodies, joints, drives and the state at the start.

Every code builds its model from these, so that all of them speak of the same mechanism. Everything is seen
from the world at the start: a body has its centre there, its inertia is about the centre, and its own axes
are parallel to those of the world at the start. So a point of a body is (point - center) in its own axes, and
no rotation has to be agreed upon. Units are those of SI.

A joint connects ``first`` and ``second`` at ``point``; ``axis`` is fixed in ``first``. A revolute joint turns
and a prismatic one slides along it, both axes being the same at the start; a universal joint has ``axis``
fixed in ``first`` and ``axis2``, normal to it, in ``second``. A drive acts on the coordinate of a joint, the
angle or displacement of ``second`` seen from ``first``, zero at the start:

    effort = constant - rate * d(coordinate)/dt - stiffness * coordinate

``loop`` marks the joints that a code with joint coordinates opens and closes again by constraints. They are
spherical or revolute, so that one or two pairs of points that stay together are enough.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

GROUND = "ground"
GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True)
class Body:
    name: str
    mass: float
    center: tuple[float, ...]
    inertia: tuple[tuple[float, ...], ...]
    velocity: tuple[float, ...] = (0.0, 0.0, 0.0)
    angular_velocity: tuple[float, ...] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Joint:
    name: str
    kind: str
    first: str
    second: str
    point: tuple[float, ...]
    axis: tuple[float, ...] | None = None
    axis2: tuple[float, ...] | None = None
    loop: bool = False


@dataclass(frozen=True)
class Drive:
    joint: str
    constant: float = 0.0
    rate: float = 0.0
    stiffness: float = 0.0


@dataclass(frozen=True)
class Model:
    """A mechanism; ``freedom`` is what is left by rank, ``redundant`` the number of rows beyond that."""

    name: str
    what: str
    gravity: tuple[float, ...]
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    drives: tuple[Drive, ...] = ()
    planar: bool = False
    freedom: int = 1
    redundant: int = 0
    times: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)

    def body(self, name: str) -> Body:
        return next(body for body in self.bodies if body.name == name)

    def joint(self, name: str) -> Joint:
        return next(joint for joint in self.joints if joint.name == name)

    def plain(self) -> dict:
        """As JSON can hold it."""
        return asdict(self)


def normals(axis) -> np.ndarray:
    """Two unit vectors normal to the axis and to each other."""
    axis = unit(axis)
    first = unit(np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))]))
    return np.array([first, np.cross(axis, first)])


def unit(vector) -> np.ndarray:
    return np.asarray(vector, dtype=float) / np.linalg.norm(vector)


def rotation(vector) -> np.ndarray:
    """The matrix of a rotation vector."""
    angle = np.linalg.norm(vector)
    if angle == 0:
        return np.eye(3)
    x, y, z = np.asarray(vector) / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def starting_rates(model: Model, rates: dict[str, float], platform: dict | None = None) -> Model:
    """The model with the velocities that its joints allow at these rates of revolute and prismatic joints, or
    at these velocities and angular velocities of bodies.
    """
    index = {body.name: 6 * i for i, body in enumerate(model.bodies)}
    n = 6 * len(model.bodies)
    rows, right = [], []

    def relative(joint: Joint) -> tuple[np.ndarray, np.ndarray]:
        """Rows for the velocity of the point and the angular velocity of second relative to first."""
        point, angular = np.zeros((3, n)), np.zeros((3, n))
        for name, sign in ((joint.second, 1.0), (joint.first, -1.0)):
            if name != GROUND:
                i, (x, y, z) = index[name], np.subtract(joint.point, model.body(name).center)
                point[:, i : i + 3] = sign * np.eye(3)
                point[:, i + 3 : i + 6] = -sign * np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
                angular[:, i + 3 : i + 6] = sign * np.eye(3)
        return point, angular

    for joint in model.joints:
        point, angular = relative(joint)
        across = normals(joint.axis) if joint.axis is not None else None
        rows += list(point if joint.kind != "prismatic" else across @ point)
        if joint.kind == "revolute":
            rows += list(across @ angular)
        elif joint.kind == "prismatic":
            rows += list(angular)
        elif joint.kind == "universal":
            rows.append(np.cross(joint.axis, joint.axis2) @ angular)
    assert np.linalg.matrix_rank(rows, tol=1e-9) == n - model.freedom, model.name
    assert len(rows) - (n - model.freedom) == model.redundant, model.name
    right = [0.0] * len(rows)
    for name, value in rates.items():
        joint = model.joint(name)
        point, angular = relative(joint)
        rows.append(np.asarray(joint.axis) @ (angular if joint.kind == "revolute" else point))
        right.append(value)
    for name, values in (platform or {}).items():
        for k, value in enumerate(values):
            rows.append(np.eye(n)[index[name] + k])
            right.append(value)
    u = np.linalg.lstsq(np.array(rows), np.array(right), rcond=1e-12)[0]
    assert np.allclose(np.array(rows) @ u, right, atol=1e-12), model.name
    u[np.abs(u) < 1e-15] = 0.0
    bodies = tuple(
        replace(
            body,
            velocity=_numbers(u[6 * i : 6 * i + 3]),
            angular_velocity=_numbers(u[6 * i + 3 : 6 * i + 6]),
        )
        for i, body in enumerate(model.bodies)
    )
    return replace(model, bodies=bodies)


def _numbers(vector) -> tuple[float, ...]:
    return tuple(float(x) for x in vector)


def _matrix(matrix) -> tuple[tuple[float, ...], ...]:
    return tuple(_numbers(row) for row in np.asarray(matrix))


def rod(name: str, mass: float, start, end, radius: float) -> Body:
    """A solid cylinder from one point to another."""
    along = np.subtract(end, start)
    length = np.linalg.norm(along)
    e = along / length
    small, axial = mass * (length**2 / 12 + radius**2 / 4), mass * radius**2 / 2
    inertia = small * (np.eye(3) - np.outer(e, e)) + axial * np.outer(e, e)
    return Body(name, mass, _numbers(np.add(start, end) / 2), _matrix((inertia + inertia.T) / 2))


def joint(name, kind, first, second, point, axis=None, axis2=None, *, loop=False) -> Joint:
    return Joint(
        name,
        kind,
        first,
        second,
        _numbers(point),
        None if axis is None else _numbers(unit(axis)),
        None if axis2 is None else _numbers(unit(axis2)),
        loop,
    )


def turned(model: Model, R: np.ndarray, **changes) -> Model:
    """The model, gravity included, turned as a whole about the origin."""
    bodies = tuple(
        replace(
            b,
            center=_numbers(R @ b.center),
            inertia=_matrix(R @ np.array(b.inertia) @ R.T),
            velocity=_numbers(R @ b.velocity),
            angular_velocity=_numbers(R @ b.angular_velocity),
        )
        for b in model.bodies
    )
    joints = tuple(
        replace(
            j,
            point=_numbers(R @ j.point),
            axis=None if j.axis is None else _numbers(R @ j.axis),
            axis2=None if j.axis2 is None else _numbers(R @ j.axis2),
        )
        for j in model.joints
    )
    return replace(model, bodies=bodies, joints=joints, gravity=_numbers(R @ model.gravity), **changes)


def circles(center1, radius1: float, center2, radius2: float) -> np.ndarray:
    """Where two circles in the plane meet, on the left of the way from the first centre to the second."""
    d = np.subtract(center2, center1)
    distance = np.linalg.norm(d)
    along = (distance**2 + radius1**2 - radius2**2) / (2 * distance)
    up = np.sqrt(radius1**2 - along**2)
    e = d / distance
    return np.asarray(center1) + along * e + up * np.array([-e[1], e[0]])


def four_bar() -> Model:
    """A crank-rocker with rods of a solid cylinder and a motor whose torque falls with its speed."""
    A, D = np.zeros(2), np.array([2.0, 0.0])
    B = 0.8 * np.array([np.cos(0.3), np.sin(0.3)])
    C = circles(B, 2.2, D, 1.5)
    A, B, C, D = (np.append(point, 0.0) for point in (A, B, C, D))
    z = (0.0, 0.0, 1.0)
    model = Model(
        "four_bar",
        "planar four-bar; motor on the crank, torque 12 - 1.5 rate",
        (0.0, -9.81, 0.0),
        (
            rod("crank", 1.0, A, B, 0.03),
            rod("coupler", 2.5, B, C, 0.03),
            rod("rocker", 1.6, C, D, 0.03),
        ),
        (
            joint("A", "revolute", GROUND, "crank", A, z),
            joint("B", "revolute", "crank", "coupler", B, z),
            joint("C", "revolute", "coupler", "rocker", C, z, loop=True),
            joint("D", "revolute", GROUND, "rocker", D, z),
        ),
        (Drive("A", constant=12.0, rate=1.5),),
        planar=True,
        redundant=3,
    )
    return starting_rates(model, {"A": 2.0})


def slider_crank() -> Model:
    """Offset slider-crank with a constant torque and viscous friction of the slider."""
    A, B = np.zeros(2), 0.4 * np.array([np.cos(0.7), np.sin(0.7)])
    height = -0.1
    C = np.array([B[0] + np.sqrt(1.1**2 - (B[1] - height) ** 2), height])
    A, B, C = (np.append(point, 0.0) for point in (A, B, C))
    z = (0.0, 0.0, 1.0)
    inertia = _matrix(np.diag([0.004, 0.006, 0.007]))
    model = Model(
        "slider_crank",
        "planar slider-crank, the slide 0.1 below the crank; torque 3 on the crank, friction 2 rate of the "
        "slider",
        (0.0, -9.81, 0.0),
        (
            rod("crank", 0.7, A, B, 0.02),
            rod("rod", 1.2, B, C, 0.02),
            Body("slider", 1.5, _numbers(C), inertia),
        ),
        (
            joint("A", "revolute", GROUND, "crank", A, z),
            joint("B", "revolute", "crank", "rod", B, z),
            joint("C", "revolute", "slider", "rod", C, z, loop=True),
            joint("slide", "prismatic", GROUND, "slider", C, (1.0, 0.0, 0.0)),
        ),
        (Drive("A", constant=3.0), Drive("slide", rate=2.0)),
        planar=True,
        redundant=3,
    )
    return starting_rates(model, {"A": 4.0})


def four_bar_in_space() -> Model:
    """The planar four-bar with spatial joints, turned out of every plane of the axes: three rows too many."""
    return turned(
        four_bar(),
        rotation([0.4, -0.7, 0.5]),
        name="four_bar_in_space",
        what="the planar four-bar in 3-D with four revolute joints, three of whose rows are redundant; "
        "turned as a whole, gravity too, by the rotation vector (0.4, -0.7, 0.5), so that its motion is that "
        "of four_bar, turned",
        planar=False,
    )


def screw(theta: float, a: float, alpha: float) -> np.ndarray:
    """Denavit and Hartenberg's transform: turn by theta about z, go along x by a, turn by alpha about x."""
    c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array([[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, 0], [0, 0, 0, 1]])


def bennett() -> Model:
    """Bennett's linkage: opposite sides are equal, sin(alpha)/a = sin(beta)/b, no offsets. With the angles of
    Denavit and Hartenberg theta3 = -theta1, theta4 = -theta2, and tan(theta1/2) tan(theta2/2) =
    sin((beta + alpha)/2) / sin((beta - alpha)/2).
    """
    a, alpha, beta = 0.8, np.radians(40.0), np.radians(75.0)
    b = a * np.sin(beta) / np.sin(alpha)
    theta1 = 1.1
    theta2 = 2 * np.arctan(np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2) / np.tan(theta1 / 2))
    T, frames = np.eye(4), [np.eye(4)]
    for theta, length, twist in (
        (theta1, a, alpha),
        (theta2, b, beta),
        (-theta1, a, alpha),
        (-theta2, b, beta),
    ):
        T = T @ screw(theta, length, twist)
        frames.append(T)
    assert np.allclose(T, np.eye(4), atol=1e-13)
    turn = rotation([0.5, 0.3, -0.2])
    points = [turn @ frame[:3, 3] for frame in frames[:4]]
    axes = [turn @ frame[:3, 2] for frame in frames[:4]]
    model = Model(
        "bennett",
        "Bennett's linkage, sides 0.8 and 0.8 sin(75 deg)/sin(40 deg), twists 40 and 75 deg; the side from D "
        "to A is the ground; motor at A, torque 4 - 0.8 rate",
        GRAVITY,
        (
            rod("first", 1.0, points[0], points[1], 0.04),
            rod("second", 1.5, points[1], points[2], 0.04),
            rod("third", 1.2, points[2], points[3], 0.04),
        ),
        (
            joint("A", "revolute", GROUND, "first", points[0], axes[0]),
            joint("B", "revolute", "first", "second", points[1], axes[1]),
            joint("C", "revolute", "second", "third", points[2], axes[2], loop=True),
            joint("D", "revolute", GROUND, "third", points[3], axes[3]),
        ),
        (Drive("A", constant=4.0, rate=0.8),),
        redundant=3,
    )
    return starting_rates(model, {"A": 1.5})


def spatial_slider_crank() -> Model:
    """A crank about x, a rod between a spherical and a universal joint, a slider along x."""
    A = np.array([0.0, 0.1, 0.12])
    B = A + 0.08 * np.array([0.0, np.cos(1.0), np.sin(1.0)])
    C = np.array([np.sqrt(0.3**2 - B[1] ** 2 - B[2] ** 2), 0.0, 0.0])
    e = unit(B - C)
    axis = unit(np.cross(e, [0.0, 0.0, 1.0]))
    model = Model(
        "spatial_slider_crank",
        "revolute, spherical, universal, prismatic; torque 0.4 - 0.02 rate on the crank, friction 3 rate of "
        "the slider",
        GRAVITY,
        (
            rod("crank", 0.12, A, B, 0.01),
            rod("rod", 0.5, B, C, 0.012),
            Body("slider", 2.0, _numbers(C), _matrix(np.diag([0.001, 0.0012, 0.0015]))),
        ),
        (
            joint("A", "revolute", GROUND, "crank", A, (1.0, 0.0, 0.0)),
            joint("B", "spherical", "crank", "rod", B, loop=True),
            joint("C", "universal", "slider", "rod", C, axis, np.cross(e, axis)),
            joint("slide", "prismatic", GROUND, "slider", C, (1.0, 0.0, 0.0)),
        ),
        (Drive("A", constant=0.4, rate=0.02), Drive("slide", rate=3.0)),
    )
    return starting_rates(model, {"A": 6.0})


def stewart() -> Model:
    """Gough and Stewart's platform, 6-UPS: thirteen bodies, six legs of two parts with a spring, a damper and
    a constant push along each.
    """
    R, place = rotation([0.1, 0.2, -0.15]), np.array([0.1, -0.05, 1.0])
    bodies = [
        Body("platform", 10.0, _numbers(place), _matrix(R @ np.diag([0.95, 0.95, 1.8]) @ R.T)),
    ]
    joints, drives = [], []
    for i in range(6):
        third = 2 * np.pi / 3 * (i // 2)
        side = 1 if i % 2 else -1
        base, top = third + side * np.radians(12.0), third + side * np.radians(48.0)
        foot = np.array([np.cos(base), np.sin(base), 0.0])
        head = place + R @ (0.6 * np.array([np.cos(top), np.sin(top), 0.0]))
        e, length = unit(head - foot), np.linalg.norm(head - foot)
        axis = unit(np.cross([0.0, 0.0, 1.0], e))
        k = i + 1
        bodies += [
            rod(f"lower{k}", 2.0, foot, foot + 0.6 * e, 0.03),
            rod(f"upper{k}", 1.5, head - 0.6 * e, head, 0.02),
        ]
        joints += [
            joint(f"U{k}", "universal", GROUND, f"lower{k}", foot, axis, np.cross(e, axis)),
            joint(f"P{k}", "prismatic", f"lower{k}", f"upper{k}", foot + length / 2 * e, e),
            joint(f"S{k}", "spherical", f"upper{k}", "platform", head, loop=True),
        ]
        drives.append(Drive(f"P{k}", constant=28.0 + 2 * i, rate=60.0, stiffness=1500.0))
    model = Model(
        "stewart",
        "Gough and Stewart's platform, 6-UPS; a constant push, a spring and a damper along each leg",
        GRAVITY,
        tuple(bodies),
        tuple(joints),
        tuple(drives),
        freedom=6,
    )
    return starting_rates(model, {}, {"platform": (0.2, 0.1, -0.1, 0.3, -0.2, 0.5)})


def arm() -> Model:
    """Seven revolute joints; the numbers are in arm.json."""
    data = json.loads((Path(__file__).parent / "arm.json").read_text())
    R, p = np.eye(3), np.zeros(3)
    bodies, joints, drives = [], [], []
    before = GROUND
    for i, (link, q, torque) in enumerate(zip(data["links"], data["q"], data["tau"], strict=True), start=1):
        p = p + R @ link["p"]
        R = R @ np.array(link["R"]) @ rotation([0.0, 0.0, q])
        bodies.append(
            Body(f"link{i}", link["m"], _numbers(p + R @ link["c"]), _matrix(R @ np.array(link["I"]) @ R.T))
        )
        joints.append(joint(f"J{i}", "revolute", before, f"link{i}", p, R[:, 2]))
        drives.append(Drive(f"J{i}", constant=torque))
        before = f"link{i}"
    model = Model(
        "arm",
        "a seven-joint arm under constant torques, from the state of arm.json",
        GRAVITY,
        tuple(bodies),
        tuple(joints),
        tuple(drives),
        freedom=7,
        times=(0.05, 0.1, 0.15, 0.2),
    )
    return starting_rates(model, dict(zip((j.name for j in joints), data["v"], strict=True)))


def top() -> Model:
    """A heavy symmetric top on a fixed point, nutating."""
    R = rotation([0.0, 0.5, 0.0])
    e = R[:, 2]
    m, distance, transverse, axial = 0.8, 0.12, 0.0018, 0.0022
    model = Model(
        "top",
        "a heavy symmetric top, mass 0.8, its centre 0.12 from the fixed point, moments 0.0018 and 0.0022 "
        "about the centre, axis 0.5 from the vertical, spinning with 120 about its axis",
        GRAVITY,
        (
            Body(
                "top",
                m,
                _numbers(distance * e),
                _matrix(R @ np.diag([transverse, transverse, axial]) @ R.T),
            ),
        ),
        (joint("O", "spherical", GROUND, "top", (0.0, 0.0, 0.0)),),
        freedom=3,
        times=(0.05, 0.1, 0.15, 0.2),
    )
    spin = 120.0 * e + np.array([0.0, 0.0, 1.0])
    return starting_rates(model, {}, {"top": (*np.cross(spin, distance * e), *spin)})


def gyroscope() -> Model:
    """A rotor in two gimbals, with a weight on the inner one."""
    tilt = rotation([0.0, 0.4, 0.0])
    x, spin_axis = tilt[:, 0], tilt[:, 2]
    y = np.array([0.0, 1.0, 0.0])
    ring = np.diag([0.004, 0.004, 0.007])
    model = Model(
        "gyroscope",
        "a rotor in two gimbals: the outer turns about z, the inner about y, the rotor about its axis, 0.4 "
        "from the vertical; the centre of the inner gimbal is 0.03 along the axis",
        GRAVITY,
        (
            Body("outer", 0.5, (0.0, 0.0, 0.0), _matrix(np.diag([0.006, 0.003, 0.006]))),
            Body("inner", 0.4, _numbers(0.03 * spin_axis), _matrix(tilt @ ring @ tilt.T)),
            Body("rotor", 2.0, (0.0, 0.0, 0.0), _matrix(tilt @ np.diag([0.003, 0.003, 0.005]) @ tilt.T)),
        ),
        (
            joint("yaw", "revolute", GROUND, "outer", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
            joint("tilt", "revolute", "outer", "inner", (0.0, 0.0, 0.0), y),
            joint("spin", "revolute", "inner", "rotor", (0.0, 0.0, 0.0), spin_axis),
        ),
        freedom=3,
    )
    assert np.allclose(np.cross(y, spin_axis), x)
    return starting_rates(model, {"yaw": 0.2, "tilt": -0.3, "spin": 60.0})


MODELS: dict[str, Callable[[], Model]] = {
    factory.__name__: factory
    for factory in (
        four_bar,
        slider_crank,
        four_bar_in_space,
        bennett,
        spatial_slider_crank,
        stewart,
        arm,
        top,
        gyroscope,
    )
}

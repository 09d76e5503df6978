"""What can be measured of a mechanism by name, as expressions of its coordinates: for outputs, drives and
equilibria.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from holonome.bodies.assembly import Assembly, Near
from holonome.bodies.joint import BALL, QUATERNION

if TYPE_CHECKING:
    from holonome.bodies.body_system import BodySystem


def measured(system: BodySystem, name: str) -> dict[str, ca.SX] | None:
    """Expressions by their labels: of a joint "A", "A.rate", "A.angle", of a body "coupler.P",
    "coupler.velocity", "coupler.angle"; None if there is no such name.
    """
    for place in [len(name), *(k for k in reversed(range(len(name))) if name[k] == ".")]:
        part, what = name[:place], name[place + 1 :]
        found = None
        if part in system.joints and system.joints[part].what != "free":
            found = _of_joint(system, part, what)
        if found is None and part in system.bodies and part != "ground":
            found = _of_body(system, part, what)
        if found is not None:
            return {label: in_system(system, value) for label, value in found.items()}
    return None


def in_system(system: BodySystem, value: ca.SX) -> ca.SX:
    """An expression of the symbols of the equations, in those of the system."""
    own, theirs = system.equations.symbols, system.symbols
    names = ("t", "q", "v", "p", "s")
    return ca.substitute(
        ca.densify(ca.SX(value)),
        ca.vertcat(*(getattr(own, name) for name in names)),
        ca.vertcat(*(theirs[name] for name in names)),
    )


def _of_joint(system: BodySystem, name: str, what: str) -> dict[str, ca.SX] | None:
    joint, kinematics = system.joints[name], system.equations.kinematics
    names = [coordinate.name for coordinate in joint.coordinates]
    values = dict(zip(names, kinematics.coordinates(joint), strict=True))
    if not what:
        return {f"{name}.{key}": value for key, value in values.items()}
    if what == "rate":
        return {f"{name}.{key} rate": kinematics.rate(value) for key, value in values.items()}
    if what == "place":
        return _components(f"{name}.place", kinematics.at(joint.points[-1]).x[: system.dimension])
    if what in values:
        return {f"{name}.{what}": values[what]}
    if what.removesuffix(" rate") in values:
        return {f"{name}.{what}": kinematics.rate(values[what.removesuffix(" rate")])}
    return None


def _of_body(system: BodySystem, name: str, what: str) -> dict[str, ca.SX] | None:
    body = system.bodies[name]
    frame, d = system.equations.kinematics.frame(body), system.dimension
    if what in body.points:
        return _components(f"{name}.{what}", frame.at(body.points[what].position).x[:d])
    if what.removesuffix(".velocity") in body.points and what.endswith(".velocity"):
        return _components(f"{name}.{what}", frame.at(body.points[what[:-9]].position).v[:d])
    if what in ("", "position"):
        return _components(f"{name}.position", frame.x[:d])
    if what == "velocity":
        return _components(f"{name}.velocity", frame.v[:d])
    if what == "angle" and d == 2:
        return {f"{name}.angle": frame.angle}
    if what == "angular_velocity":
        return _components(f"{name}.{what}", frame.w if d == 3 else frame.w[2])
    return None


def _components(label: str, values: ca.SX) -> dict[str, ca.SX]:
    rows = ca.vertsplit(values)
    if len(rows) == 1:
        return {label: rows[0]}
    return {f"{label} {axis}": row for axis, row in zip("xyz", rows, strict=False)}


def held(system: BodySystem, argument: str, values: Mapping[str, Any], t: float) -> list[tuple[str, ca.SX]]:
    """What vanishes where joints and bodies have these positions ("start") or velocities ("speed")."""
    bodies = {name: body for name, body in system.bodies.items() if not body.ground}
    joints = {name: joint for name, joint in system.joints.items() if joint.what != "free"}
    assembly = Assembly(system.equations, joints, bodies, system.parameters.flat, t)
    found = []
    for name, value in values.items():
        value = value.value if isinstance(value, Near) else value
        if argument == "speed":
            rows = assembly._read_speed(name, value)
        else:
            _, rows = assembly._read(name, value, np.zeros(system.n))
        found += [(row.name, in_system(system, row.residual)) for row in rows]
    return found


def quaternions(system: BodySystem) -> list[slice]:
    """Where unit quaternions lie among the coordinates."""
    links = system.equations.tree.links
    return [slice(link.first, link.first + 4) for link in links if link.motion.kind == BALL]


def shares(system: BodySystem, t: float, q: np.ndarray, s: np.ndarray, dq: np.ndarray) -> dict[str, float]:
    """Of the kinetic energy of small motions along dq, which may be complex, the share of each body."""
    bodies = [body for body in system.bodies.values() if not body.ground]
    symbols = system.equations.symbols

    def energies() -> ca.Function:
        found = []
        for body in bodies:
            frame = system.equations.kinematics.frame(body)
            center = frame.at(body.center)
            J = frame.R @ body.inertia @ frame.R.T
            found.append(body.mass * ca.dot(center.v, center.v) + ca.dot(frame.w, J @ frame.w))
        inputs = [symbols.t, symbols.q, symbols.v, symbols.p, symbols.s]
        return ca.Function("energies", inputs, [ca.densify(ca.vertcat(*found))])

    function = system.compiled.once("shares of bodies", energies)
    rest = system.parameters.flat, s
    base = np.array(function(t, q, 0 * dq.real, *rest)).ravel()
    parts = np.sum(
        [np.array(function(t, q, part, *rest)).ravel() - base for part in (dq.real, dq.imag)], axis=0
    )
    total = float(np.sum(parts))
    if not total > 0:
        return {}
    return {body.name: float(part) / total for body, part in zip(bodies, parts, strict=True)}


def turning(system: BodySystem, t: float, q: np.ndarray, s: np.ndarray, dq: np.ndarray) -> dict[str, complex]:
    """How much the coordinates of joints change along dq."""
    names, values = [], []
    kinematics, symbols = system.equations.kinematics, system.equations.symbols
    for name, joint in system.joints.items():
        if joint.what == "free":
            continue
        for coordinate, value in zip(joint.coordinates, kinematics.coordinates(joint), strict=True):
            if coordinate.kind != QUATERNION:
                names.append(name if len(joint.coordinates) == 1 else f"{name} {coordinate.name}")
                values.append(value)
    if not names:
        return {}

    def rates() -> ca.Function:
        jacobian = ca.jacobian(ca.vertcat(*values), symbols.q)
        return ca.Function("turning", [symbols.t, symbols.q, symbols.p, symbols.s], [jacobian])

    function = system.compiled.once("turning of joints", rates)
    J = np.array(function(t, q, system.parameters.flat, s))
    return dict(zip(names, J @ dq, strict=True))


def counted_turns(system: BodySystem) -> list[int]:
    """Numbers of the first-order states that only count full turns of angles in loops."""
    return list(range(len(system.states)))

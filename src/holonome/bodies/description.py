"""What ``print(mechanism)`` says: bodies, joints, freedoms, and what is redundant, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from holonome.errors import HolonomeError

if TYPE_CHECKING:
    from holonome.bodies.mechanism import Mechanism


def description(mechanism: Mechanism) -> str:
    """Its parts, one a line, then degrees of freedom by counting and by rank."""
    where = "the plane" if mechanism.dimension == 2 else "space"
    lines = [f"Mechanism {mechanism.name!r} in {where}"]
    inner = {body for beam in mechanism.beams.values() for body in beam.bodies}
    inner |= {mechanism.bodies[name] for name in mechanism.beams if name in mechanism.bodies}
    bodies = [body for body in mechanism.bodies.values() if not body.ground and body not in inner]
    joints = [joint for joint in mechanism.joints.values() if not inner.issuperset(joint.bodies)]
    joints = [joint for joint in joints if joint.what != "free" or joint.bodies[1] not in inner]
    forces = [force for force in mechanism.forces.values() if not _within(force, inner)]
    lines += _section("bodies", [_body(body) for body in bodies])
    lines += _section("beams and cables", [repr(beam) for beam in mechanism.beams.values()])
    lines += _section("joints", [f"{j.name}: {_joint(j)}" for j in joints])
    parts = [*mechanism.couplings.values(), *forces]
    lines += _section("forces and drives", [f"{part.name}: {_part(part)}" for part in parts])
    lines += _section("contacts", [f"{one.name}: {one!r}" for one in mechanism.contacts.values()])
    if len(mechanism.bodies) > 1:
        lines += _freedom(mechanism)
    return "\n".join(lines)


def _within(force, bodies) -> bool:
    """Whether a force acts within a beam or a cable alone."""
    ends = [point.body for point in force.points] or (force.joint.bodies if force.joint else [])
    return force.what == "beam" or (len(ends) > 1 and bodies.issuperset(ends))


def _section(title: str, entries: list[str]) -> list[str]:
    if len(entries) > 24:
        entries = [*entries[:20], f"… and {len(entries) - 20} more"]
    return [f"  {title}:", *(f"    {entry}" for entry in entries)] if entries else []


def _body(body) -> str:
    mass = f"{float(body.mass):.6g}" if body.mass.is_constant() else "by parameters"
    points = f", points {', '.join(body.points)}" if body.points else ""
    return f"{body.name}: mass {mass}{points}"


def _joint(joint) -> str:
    if joint.what == "free":
        return "free in the frame"
    ends = [f"{p.body.name} {p.name}" for p in joint.points]
    return f"{joint.what}, {' – '.join(ends)}"


def _part(part) -> str:
    return repr(part).replace(f" {part.name!r}", "", 1)


def _freedom(mechanism: Mechanism) -> list[str]:
    counted = _counted(mechanism)
    try:
        free = mechanism.degrees_of_freedom()
        redundant = mechanism.redundant()
    except HolonomeError as error:
        return [f"  degrees of freedom: {counted} by counting", f"  {error}"]
    system = mechanism.system
    lines = [
        f"  degrees of freedom: {free}" + (f" (by counting {counted})" if counted != free else ""),
        f"  equations: {system.sizes_in_words}, in {_coordinates(mechanism)}",
    ]
    if redundant:
        several = f"{len(redundant)} rows follow" if len(redundant) > 1 else "1 row follows"
        lines.append(f"  redundant: {several} from others: {', '.join(redundant)}")
    return lines


def _coordinates(mechanism: Mechanism) -> str:
    joint = mechanism.system.equations.tree is mechanism.equations(False).tree
    return "joint coordinates" if joint else "absolute coordinates"


def _counted(mechanism: Mechanism) -> int:
    """Grübler's count: freedoms of all bodies less rows of all joints."""
    each = 3 if mechanism.dimension == 2 else 6
    bodies = [body for body in mechanism.bodies.values() if not body.ground]
    equations = mechanism.equations(True)
    freedoms = sum(each if body.rotates else mechanism.dimension for body in bodies)
    freedoms += sum(map(len, equations.tree.amplitudes.values()))
    rows = sum(np.size(x) for name in equations.joints for x in equations.constraints.kept[name])
    rows += sum(1 for _ in equations.couplings)
    held = [joint for joint in mechanism.joints.values() if joint.amplitudes is not None]
    rows += sum(each for joint in held if joint.name in equations.tree.edges)
    fixed = sum(each for _ in equations.tree.fixed)
    return freedoms - rows - fixed

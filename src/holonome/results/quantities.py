"""What can be asked of a run by name, for graphs and arrows: "A.angle", "C.force", "coupler.P", "energy"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from holonome.arguments import shown
from holonome.errors import ModelError

if TYPE_CHECKING:
    from holonome.results.solution import Solution

_OF_BODIES = ("position", "velocity", "acceleration", "angle", "angular_velocity", "angular_acceleration")
_ROUNDING = 1e-9
"""Of moments that follow from forces."""


class Acting(NamedTuple):
    """A force or a moment along a run: its name, where it acts, and its components there."""

    name: str
    place: np.ndarray
    value: np.ndarray
    is_moment: bool


def quantity(solution: Solution, name: str) -> dict[str, np.ndarray]:
    """The curves of a quantity by their labels.

    Parameters
    ----------
    solution
        What :func:`holonome.solve` returned.
    name
        "energy"; the name of a coordinate or state; of a joint, or "joint.angle", "joint.rate",
        "joint.force", "joint.moment"; "body.position", "body.velocity", "body.angle", "body.P" for a point
        P; of a force, spring or drive, "motor.power", "motor.work", "motor.force" or "motor.moment".
    """
    if not isinstance(name, str):
        raise ModelError(f"graphs: {shown(name)}; give the name of a quantity, such as 'A.angle' or 'energy'")
    system = solution.system
    if name == "energy":
        return energies(solution)
    for names, values in ((system.names, solution.q), (list(system.states), solution.s)):
        if name in names:
            return {name: values[names.index(name)]}
    for part, what in _splits(name):
        for there, of in ((_parts(system, "joints"), _of_joint), (_parts(system, "bodies"), _of_body)):
            if part in there and (found := of(solution, part, what)) is not None:
                return found
        if part in _parts(system, "elements"):
            found = _of_element(solution, part, what)
            if found is not None:
                return found
    raise ModelError(f"graphs: there is no {name!r}; " + _known(solution, name))


def energies(solution: Solution) -> dict[str, np.ndarray]:
    """Total, kinetic and potential energy; the kinetic one alone where the others are not known."""
    kinetic = solution.over(solution.system.kernel("kinetic energy", _kinetic).address, 1)[0]
    if solution.energy is None:
        return {"kinetic": kinetic}
    return {"total": solution.energy, "kinetic": kinetic, "potential": solution.energy - kinetic}


def acting(solution: Solution, name: str) -> list[Acting]:
    """The forces and moments of this name: the reaction of a joint, what a force, spring or drive does to
    bodies, or "gravity".
    """
    system: Any = solution.system
    joints, elements = _parts(system, "joints"), _parts(system, "elements")
    if name in joints and joints[name].what != "free":
        found = solution._by_name.reaction_at_contact(name)
        wrenches = [(found.place, found.force, np.atleast_2d(found.moment))]
    elif name in elements:
        wrenches = solution._by_name.applied(name)
    elif name == "gravity" and _parts(system, "bodies"):
        wrenches = solution._by_name.weights()
    else:
        there = ", ".join([*(n for n, joint in joints.items() if joint.what != "free"), *elements])
        remedy = (
            f"there are {there}, gravity" if joints else "the run is not that of a Mechanism, which has them"
        )
        raise ModelError(f"forces: there is no joint, force, spring or drive {shown(name)}; {remedy}")
    found = []
    for place, force, moment in wrenches:
        largest = np.max(np.abs(force), initial=0.0)
        if largest > 0:
            found.append(Acting(name, place, force, False))
        if not _is_rounding(solution, place, largest, np.max(np.abs(moment), initial=0.0)):
            found.append(Acting(name, place, moment, True))
    return found


def _is_rounding(solution: Solution, place: np.ndarray, force: float, moment: float) -> bool:
    """Whether a moment is what rounding leaves of a force that acts elsewhere."""
    if moment == 0 or force == 0:
        return moment == 0
    centers = [center for center, _, _ in solution._by_name.weights()]
    return moment <= _ROUNDING * force * max(np.max(np.abs(center - place)) for center in centers)


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """The name of a part, and what is asked of it; names may contain dots."""
    yield name, ""
    for place in (k for k in reversed(range(len(name))) if name[k] == "."):
        yield name[:place], name[place + 1 :]


def _parts(system: Any, which: str) -> dict[str, Any]:
    return getattr(system, which, {})


def _components(label: str, values: np.ndarray) -> dict[str, np.ndarray]:
    values = np.atleast_2d(values)
    if len(values) == 1:
        return {label: values[0]}
    return {f"{label} {axis}": row for axis, row in zip("xyz", values, strict=False)}


def _of_joint(solution: Solution, name: str, what: str) -> dict[str, np.ndarray] | None:
    if what in ("force", "moment"):
        return _components(f"{name}.{what}", getattr(solution.reaction(name), what))
    motion = solution.joint(name)
    if not what and motion.values:
        return {f"{name}.{key}": values for key, values in motion.values.items()}
    if what == "rate" and motion.rates:
        return {f"{name}.{key} rate": values for key, values in motion.rates.items()}
    if what in motion.values:
        return {f"{name}.{what}": motion.values[what]}
    if what.removesuffix(" rate") in motion.rates:
        return {f"{name}.{what}": motion.rates[what.removesuffix(" rate")]}
    return None


def _of_body(solution: Solution, name: str, what: str) -> dict[str, np.ndarray] | None:
    what = what or "position"
    body = solution.system.bodies[name]  # type: ignore[attr-defined]
    if body.ground:
        return None
    if what in body.points:
        return _components(f"{name}.{what}", solution.body(name).point(what))
    if what not in _OF_BODIES or (what == "angle" and body.dimension == 3):
        return None
    return _components(f"{name}.{what}", getattr(solution.body(name), what))


def _of_element(solution: Solution, name: str, what: str) -> dict[str, np.ndarray] | None:
    if what in ("", "power"):
        return {f"{name}.power": solution.power(name)}
    if what == "work":
        return {f"{name}.work": solution.work(name)}
    if what not in ("force", "moment"):
        return None
    _, force, moment = solution._by_name.applied(name)[0]
    return _components(f"{name}.{what}", force if what == "force" else moment)


def _known(solution: Solution, name: str) -> str:
    """What may be asked for instead."""
    system: Any = solution.system
    joints, bodies = _parts(system, "joints"), _parts(system, "bodies")
    elements = _parts(system, "elements")
    if not bodies:
        names = [*system.names, *system.states, "energy"]
        return f"there are {', '.join(names[:12])}"
    for part, _ in _splits(name):
        if part in joints:
            own = ["rate", "force", "moment", *(c.name for c in joints[part].coordinates)]
        elif part in bodies:
            own = [*bodies[part].points, *(x for x in _OF_BODIES if x != "angle" or system.dimension == 2)]
        elif part in elements:
            own = ["power", "work", "force", "moment"]
        else:
            continue
        return f"of {part!r} there are {', '.join(own)}"
    names = [key for key in (*joints, *bodies, *elements, "energy") if key != "ground"]
    return f"there are {', '.join(names)}"


def _kinetic(model: Any) -> tuple:
    return model.y, ca.SX(0, 1), ca.densify(ca.dot(model.v, model.M @ model.v) / 2), None

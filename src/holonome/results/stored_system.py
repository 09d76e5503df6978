"""A system as JSON text, for saved results: its functions as programs, its drawing, names and numbers.

Nothing in such a text is code, and nothing in it is trusted: every name, size and number is checked, and
anything malformed raises a ValueError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from holonome.equations.program import Program
from holonome.problem.contact import ContactPlan
from holonome.problem.dae import DAE
from holonome.problem.drawing import GROUPS, SINGLE, Drawing
from holonome.problem.ode import ODE
from holonome.problem.parameters import Parameters
from holonome.problem.system import System
from holonome.tracing import argument_names, trace, traced

_KINDS = {"System": System, "ODE": ODE, "DAE": DAE}
_KEPT = ("name", "n", "names", "constraint_names", "states", "unknowns", "inertial")
_LATER = ("lines", "circles", "symbols", "tracks", "arrows")
"""Parts of drawings that files of earlier versions do not have."""
_ELASTIC = re.compile(r"elastic(\[\d{1,6}\])?\.(deformation|stiffness|damping)")
_CONTACT = re.compile(r"contacts\[\d{1,6}\]\.(gap|slip|restitution|friction|static_friction)")
_ANY_SIZE = ("constraint", "velocity_constraint", "invariant")

LONGEST = 2**26
"""Characters of a system; those of a chain of 1000 links are 19 million."""

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that no name and no message has; a terminal may take them for commands."""


def as_text(system: System) -> str:
    """A system as JSON; empty if one of its functions could not be traced, or it is too long."""
    state = system.__getstate__()
    if state["functions"]:
        return ""
    text = json.dumps(
        {
            "kind": next(kind for kind in ("DAE", "ODE", "System") if isinstance(system, _KINDS[kind])),
            **{
                key: {name: np.asarray(value).tolist() for name, value in state[key].items()}
                for key in ("parameters", "inputs")
            },
            "drawing": _drawing_as_data(system),
            "contacts": list(zip(system.contacts.names, system.contacts.hypotheses, strict=True)),
            "functions": {role: program.as_dict() for role, program in state["traced"].items()},
        }
        | {key: state[key] for key in (*_KEPT, "structure") if key in state},
        separators=(",", ":"),
    )
    return text if len(text) <= LONGEST else ""


def from_text(text: str, rows: int) -> System:
    """Restore a system with this many constraint rows from the text of `as_text`."""
    if len(text) > LONGEST:
        raise ValueError(f"{len(text)} characters")
    try:
        return _rebuilt(json.loads(text), rows)
    except ValueError:
        raise
    except Exception as error:  # whatever a forged text makes the constructors raise
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _rebuilt(state: Any, rows: int) -> System:
    if not isinstance(state, dict) or state.get("kind") not in _KINDS:
        raise ValueError("no system")
    names = {key: _strings(state[key]) for key in ("names", "constraint_names")}
    n, states, unknowns = state["n"], _values(state["states"]), _values(state["unknowns"])
    if type(n) is not int or n != len(names["names"]):
        raise ValueError("as many names as coordinates are needed")
    if len(names["constraint_names"]) != rows:
        raise ValueError("as many names as constraints are needed")
    parameters, inputs = (
        {_word(name): _numbers(value) for name, value in state.get(key, {}).items()}
        for key in ("parameters", "inputs")
    )
    size = Parameters(parameters, inputs).size
    sizes = {"t": 1, "q": n, "v": n, "p": size, "s": len(states), "w": len(unknowns), "lam": rows}
    programs = {role: _read_function(role, given, sizes) for role, given in state["functions"].items()}
    if state["kind"] != "System" and n:
        raise ValueError("an ODE has no coordinates")
    structure = _structure(state["structure"], programs, len(states)) if state["kind"] == "DAE" else {}
    drawing = _drawing_from_data(state["drawing"], parameters, sizes) if state["drawing"] else None
    system = object.__new__(_KINDS[state["kind"]])
    system.__setstate__(
        {"name": _word(state["name"]), "n": n, "states": states or None, "unknowns": unknowns or None}
        | {
            "parameters": parameters,
            "inputs": inputs,
            "functions": {},
            "derivatives": {},
            "inertial": state.get("inertial", "in force"),
            "drawing": drawing,
            "contacts": _contacts(state.get("contacts", [])),
            "traced": programs,
        }
        | names
        | ({"structure": structure} if structure else {})
    )
    return system


def _structure(data: Any, programs: Mapping[str, Program], states: int) -> dict[str, Any]:
    """What a DAE knows of its equations: numbers of variables, orders of derivatives, names of equations."""
    count = _whole(data["variables"], 1, states)
    kept = programs["invariant"].outputs[0].rows if "invariant" in programs else 0
    found = {
        "variables": count,
        "index": _whole(data["index"], 0, 10**6),
        "differentiated": [_whole(times, 0, 10**6) for times in data["differentiated"]],
        "algebraic": [_whole(j, 0, count - 1) for j in data["algebraic"]],
        "second_order": [_whole(j, 0, count - 1) for j in data["second_order"]],
        "orders": [_whole(order, 0, 10**6) for order in data["orders"]],
    } | {key: _strings(data[key]) for key in ("hidden", "combined")}
    if (
        len(found["orders"]) != states
        or len(found["hidden"]) != kept
        or len(found["differentiated"]) != count
    ):
        raise ValueError("a DAE whose equations do not belong to its variables")
    return found


def _whole(data: Any, least: int, most: int) -> int:
    if type(data) is not int or not least <= data <= most:
        raise ValueError(f"{str(data)[:40]!r} is not a number from {least} to {most}")
    return data


def _contacts(data: Any) -> ContactPlan | None:
    """Names and hypotheses of contacts; what else they are follows from their functions."""
    if not isinstance(data, list) or not all(isinstance(one, list) and len(one) == 2 for one in data):
        raise ValueError("expected contacts as pairs of a name and a hypothesis")
    names, hypotheses = ([_word(one[k]) for one in data] for k in range(2))
    return ContactPlan(tuple(names), tuple(hypotheses), ()) if data else None


def _read_function(role: str, data: Any, sizes: Mapping[str, int]) -> Program:
    """One function, whose inputs and output must have the sizes that its role requires."""
    program = _read_program(data, sizes)
    output, n = program.outputs[0], sizes["q"]
    wanted = {"mass": n * n, "force": n, "rate": sizes["s"], "equations": sizes["w"], "potential": 1}
    if role in wanted:
        fits = output.rows == wanted[role]
    elif role in _ANY_SIZE:
        fits = output.rows > 0
    elif _CONTACT.fullmatch(role):
        fits = 0 < output.rows <= (2 if role.endswith(".slip") else 1)
    else:
        fits = _ELASTIC.fullmatch(role) is not None and output.rows > 0
    if not fits or output.columns != 1:
        raise ValueError(f"{role[:40]!r} is not a function of a system, or not of this size")
    return program


def _read_program(data: Any, sizes: Mapping[str, int]) -> Program:
    """A program with inputs of these sizes and one dense output, so that its memory is bounded by the length
    of its text.
    """
    program = Program.from_dict(data)
    if program.inputs != tuple(sizes.items()):
        raise ValueError("a function has other inputs than the system")
    if len(program.outputs) != 1 or not program.outputs[0].dense:
        raise ValueError("a function must have one output, with all its entries")
    return program


def _word(data: Any) -> str:
    if not isinstance(data, str) or CONTROL.search(data):
        raise ValueError(f"{str(data)[:40]!r} is not a name")
    return data


def _strings(data: Any) -> list[str]:
    if not isinstance(data, list):
        raise ValueError("expected a list of names")
    return [_word(name) for name in data]


def _numbers(data: Any) -> np.ndarray:
    """A number or an array of them, in nested lists."""
    array = np.array(data)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{str(data)[:40]!r} is neither a number nor an array of them")
    return array.astype(float)


def _values(data: Any) -> dict[str, float]:
    """Names and numbers; None stands for an empty dict."""
    return {_word(name): float(_numbers(value)) for name, value in (data or {}).items()}


def _drawing_as_data(system: System) -> dict[str, Any] | None:
    """A drawing with its points as a program of t, q, s and p; None if they cannot be traced."""
    drawing = system.drawing
    if drawing is None:
        return None
    try:
        names, program = _traced_points(system, drawing)
    except Exception:
        return None
    parts = {part: getattr(drawing, part) for part in (*GROUPS, *SINGLE, "symbols", "camera")}
    return {"names": names, "points": program.as_dict()} | parts


def _traced_points(system: System, drawing: Drawing) -> tuple[list[str], Program]:
    """The names of the points, and a program that computes their coordinates, one column for each point."""
    n, states = system.n, len(system.states)
    symbols = {
        "t": ca.SX.sym("t"),
        "q": ca.SX.sym("q", n),
        "s": ca.SX.sym("s", states),
        "p": system.symbols["p"],
    }
    given = {
        "t": traced(symbols["t"], ()),
        "q": traced(symbols["q"], (n,)),
        "s": traced(symbols["s"], (states,)),
        "p": system.parameters.namespace(symbols["p"]),
    }
    wanted = argument_names(drawing.points)

    def points(t: Any, q: Any, s: Any, p: Any) -> np.ndarray:
        arguments = {"t": t, "q": q, "s": s, "x": s, "p": p}
        found = drawing.points(**{name: arguments[name] for name in wanted})
        return np.array([coordinate for xyz in found.values() for coordinate in xyz])

    with np.errstate(all="ignore"):
        names = list(drawing.at(np.full(n, 0.3), system.p, 0.0, np.full(states, 0.3)))
    flat, _ = trace(points, given)
    return names, Program.of_expressions(symbols, [ca.reshape(ca.densify(flat), -1, len(names))])


def _drawing_from_data(state: Any, parameters: Mapping[str, Any], sizes: Mapping[str, int]) -> Drawing:
    names = _strings(state["names"])
    program = _read_program(state["points"], {name: sizes[name] for name in ("t", "q", "s", "p")})
    if program.outputs[0].rows not in (2, 3) or program.outputs[0].columns != len(names):
        raise ValueError("a drawing needs two or three coordinates for each of its points")
    known = set(names)
    parts: dict[str, Any] = {
        part: [_strings(group) for group in _part(state, part)] for part in (*GROUPS, "symbols")
    }
    single: dict[str, Any] = {part: _strings(state[part]) for part in SINGLE}
    azimuth, elevation = map(float, _numbers(state["camera"]))
    if not np.isfinite([azimuth, elevation]).all():
        raise ValueError("the camera of a drawing needs two angles")
    points = _points(program, names, parameters, sizes["p"])
    drawing = Drawing(points, **parts, **single, camera=(azimuth, elevation))
    if not all(known.issuperset(group) for _, group in drawing.named()):
        raise ValueError("a drawing names a point that it does not have")
    drawing.require_dimension(program.outputs[0].rows)
    return drawing


def _part(state: Any, part: str) -> list[Any]:
    """The groups of points of one part of a drawing."""
    found = state.get(part, []) if part in _LATER else state[part]
    if not isinstance(found, list):
        raise ValueError(f"{part}: expected a list")
    return found


def _points(program: Program, names: Sequence[str], parameters: Iterable[str], size: int) -> Any:
    """The ``points`` function of a drawing, evaluated by a program, for one position or many."""
    function = program.function("points")

    def points(t: Any, q: np.ndarray, s: np.ndarray, p: Any) -> dict[str, tuple]:
        flat = np.zeros(size)  # parameters, then inputs, on which no drawing depends
        known = np.concatenate([np.ravel(getattr(p, name)) for name in parameters] or [np.zeros(0)])
        flat[: known.size] = known
        many = np.broadcast_shapes(q.shape[1:], s.shape[1:], np.shape(t))
        columns = [
            np.broadcast_to(value, (*np.shape(value)[:1], *many)).reshape(-1, int(np.prod(many, dtype=int)))
            for value in (np.broadcast_to(t, (1, *many)), q, s)
        ]
        count = columns[0].shape[1]
        values = np.array(function.map(count)(*columns, np.tile(flat[:, None], count)))
        split = values.reshape(values.shape[0], -1, len(names))
        return {name: tuple(split[:, :, i].reshape(-1, *many)) for i, name in enumerate(names)}

    return points

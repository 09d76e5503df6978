"""Results on disk: ``.npz`` files that hold the numbers of a run and, as text, its system, so that all of a
:class:`holonome.Solution` comes back.

Nothing in such a file is code. Functions that could not be traced are not in it; then the system must be
given again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from holonome.errors import HolonomeError
from holonome.problem.drawing import Drawing
from holonome.problem.system import ODE, System
from holonome.results.solution import History, Solution
from holonome.tracing import argument_names, trace, traced

_NUMBERS = (
    "status",
    "nfev",
    "steps",
    "rejections",
    "projections",
    "dense_calls",
    "lowest_rank",
    "njev",
    "nlu",
    "error_failures",
    "newton_failures",
    "splits",
)
_PARTS = ("links", "springs", "ground", "sliders", "traces", "bodies", "camera")
_KINDS = {"System": System, "ODE": ODE}


def write_npz(solution: Solution, path: Path) -> None:
    """Write a result to a compressed file of NumPy arrays."""
    system, history = solution.system, solution.history
    arrays: dict[str, Any] = {
        name: getattr(solution, name)
        for name in (
            "t",
            "q",
            "v",
            "lam",
            "s",
            "w",
            "rtol",
            "atol",
            "method",
            "message",
            "singular_times",
            *_NUMBERS,
        )
    }
    arrays |= {
        "names": system.names,
        "states": list(system.states),
        "unknowns": list(system.unknowns),
        "constraint_names": system.constraint_names,
    }
    if history is not None:
        arrays |= {"accepted": history.accepted, "rejected": history.rejected}
    np.savez_compressed(path, system=_as_text(system), **arrays)


def read_npz(path: Path, system: System | None) -> Solution:
    """Read a result that `write_npz` wrote."""
    try:
        with np.load(path, allow_pickle=False) as file:
            data = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"path: {str(path)!r} is not a file of NumPy arrays") from error
    if not {"t", "q", "v", "lam", "system", "status"} <= set(data):
        raise ValueError(f"path: {str(path)!r} is not a saved result")
    found = _from_text(str(data["system"]), path) if system is None else system
    if (found.n, found.m) != (len(data["q"]), len(data["lam"])):
        raise ValueError(
            f"system: {found.n} coordinates and {found.m} constraints; the result in {str(path)!r} has "
            f"{len(data['q'])} and {len(data['lam'])}"
        )
    states = np.concatenate([data["q"], data["v"], data["s"], data["lam"]]).T.copy()
    numbers: dict[str, Any] = {name: int(data[name]) for name in _NUMBERS}
    history = History(data["accepted"], data["rejected"]) if "accepted" in data else None
    return Solution(
        found,
        str(data["method"]),
        data["t"],
        states,
        outcome=str(data["message"]),
        rtol=float(data["rtol"]),
        atol=data["atol"][()],
        history=history,
        singular_times=data["singular_times"] if "singular_times" in data else np.zeros(0),
        **numbers,
    )


def _as_text(system: System) -> str:
    """A system as JSON; empty if one of its functions could not be traced."""
    state = system.__getstate__()
    if state.pop("functions"):
        return ""
    kept = ("name", "n", "names", "constraint_names", "traced", "states", "unknowns")
    parameters = {name: np.asarray(value).tolist() for name, value in state["parameters"].items()}
    return json.dumps(
        {
            "kind": "ODE" if isinstance(system, ODE) else "System",
            "parameters": parameters,
            "drawing": _drawing_as_text(system),
        }
        | {key: state[key] for key in kept}
    )


def _drawing_as_text(system: System) -> dict[str, Any] | None:
    """A drawing with its points as expressions of t, q, s and p; None if they cannot be traced."""
    drawing = system.drawing
    if drawing is None:
        return None
    symbols = {
        "t": ca.SX.sym("t"),
        "q": ca.SX.sym("q", system.n),
        "s": ca.SX.sym("s", len(system.states)),
        "p": system.symbols["p"],
    }
    given = {
        "t": traced(symbols["t"], ()),
        "q": traced(symbols["q"], (system.n,)),
        "s": traced(symbols["s"], (len(system.states),)),
        "p": system.parameters.namespace(symbols["p"]),
    }
    wanted = argument_names(drawing.points)

    def points(t: Any, q: Any, s: Any, p: Any) -> np.ndarray:
        arguments = {"t": t, "q": q, "s": s, "x": s, "p": p}
        return np.array(
            [
                coordinate
                for xyz in drawing.points(**{name: arguments[name] for name in wanted}).values()
                for coordinate in xyz
            ]
        )

    try:
        probe = (
            np.full(system.n, 0.3),
            system.parameters.namespace(system.parameters.flat),
            0.0,
            np.full(len(system.states), 0.3),
        )
        with np.errstate(all="ignore"):
            names = list(drawing.at(*probe))
        flat, _ = trace(points, given)
        text = ca.Function(
            "points", list(symbols.values()), [ca.reshape(ca.densify(flat), -1, len(names))]
        ).serialize()
    except Exception:
        return None
    return {"names": names, "points": text} | {part: getattr(drawing, part) for part in _PARTS}


def _drawing_from_text(state: dict[str, Any], parameters: Any) -> Drawing:
    names, function = state["names"], ca.Function.deserialize(state["points"])

    def points(t: Any, q: np.ndarray, s: np.ndarray, p: Any) -> dict[str, tuple]:
        flat = np.concatenate([np.ravel(getattr(p, name)) for name in parameters] or [np.zeros(0)])
        many = np.broadcast_shapes(q.shape[1:], s.shape[1:], np.shape(t))
        columns = [
            np.broadcast_to(value, (*np.shape(value)[:1], *many)).reshape(-1, int(np.prod(many, dtype=int)))
            for value in (np.broadcast_to(t, (1, *many)), q, s)
        ]
        values = np.array(
            function.map(columns[0].shape[1])(*columns, np.tile(flat[:, None], columns[0].shape[1]))
        )
        split = values.reshape(values.shape[0], -1, len(names))
        return {name: tuple(split[:, :, i].reshape(-1, *many)) for i, name in enumerate(names)}

    return Drawing(points, **{part: state[part] for part in _PARTS})


def _from_text(text: str, path: Path) -> System:
    if not text:
        raise ValueError(
            f"system: a function of this system could not be traced, so it is not in {str(path)!r}; give "
            "system=..."
        )
    state = json.loads(text)
    kind = _KINDS[state.pop("kind")]
    parameters = {
        name: np.array(value) if isinstance(value, list) else value
        for name, value in state["parameters"].items()
    }
    system = object.__new__(kind)
    try:
        drawing = _drawing_from_text(state["drawing"], parameters) if state.get("drawing") else None
        system.__setstate__(
            {**state, "parameters": parameters, "functions": {}, "derivatives": {}, "drawing": drawing}
        )
    except (RuntimeError, HolonomeError) as error:
        raise ValueError(
            f"path: the system in {str(path)!r} cannot be read by this version of CasADi; give system=..."
        ) from error
    return system

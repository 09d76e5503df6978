"""Results on disk: ``.npz`` files that hold the numbers of a run and, as text, its system, so that all of a :class:`holonome.Solution` comes back.

Nothing in such a file is code. Functions that could not be traced are not in it; then the system must be given again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from holonome.errors import HolonomeError
from holonome.result import History, Solution
from holonome.system import ODE, System

_NUMBERS = ("status", "nfev", "steps", "rejections", "landings", "dense_calls", "lowest_rank", "njev", "nlu", "error_failures", "newton_failures", "splits")
_KINDS = {"System": System, "ODE": ODE}


def write_npz(solution: Solution, path: Path) -> None:
    """Write a result to a compressed file of NumPy arrays."""
    system, history = solution.system, solution.history
    arrays: dict[str, Any] = {name: getattr(solution, name) for name in ("t", "q", "v", "lam", "s", "w", "rtol", "atol", "method", "message", *_NUMBERS)}
    arrays |= {"names": system.names, "states": list(system.states), "unknowns": list(system.unknowns), "constraint_names": system.constraint_names}
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
        raise ValueError(f"system: {found.n} coordinates and {found.m} constraints; the result in {str(path)!r} has {len(data['q'])} and {len(data['lam'])}")
    states = np.concatenate([data["q"], np.zeros_like(data["s"]), data["v"], data["s"], data["lam"]]).T.copy()
    numbers: dict[str, Any] = {name: int(data[name]) for name in _NUMBERS}
    history = History(data["accepted"], data["rejected"]) if "accepted" in data else None
    return Solution(found, str(data["method"]), data["t"], states, message=str(data["message"]), rtol=float(data["rtol"]), atol=data["atol"][()], history=history, **numbers)


def _as_text(system: System) -> str:
    """A system as JSON; empty if one of its functions could not be traced."""
    state = system.__getstate__()
    if state.pop("functions"):
        return ""
    kept = ("name", "n", "names", "constraint_names", "traced", "states", "unknowns")
    parameters = {name: np.asarray(value).tolist() for name, value in state["parameters"].items()}
    return json.dumps({"kind": "ODE" if isinstance(system, ODE) else "System", "parameters": parameters} | {key: state[key] for key in kept})


def _from_text(text: str, path: Path) -> System:
    if not text:
        raise ValueError(f"system: a function of this system could not be traced, so it is not in {str(path)!r}; give system=...")
    state = json.loads(text)
    kind = _KINDS[state.pop("kind")]
    parameters = {name: np.array(value) if isinstance(value, list) else value for name, value in state["parameters"].items()}
    system = object.__new__(kind)
    try:
        system.__setstate__({**state, "parameters": parameters, "functions": {}, "derivatives": {}})
    except (RuntimeError, HolonomeError) as error:
        raise ValueError(f"path: the system in {str(path)!r} cannot be read by this version of CasADi; give system=...") from error
    return system

"""The subject of a command: a built-in mechanism, a model in the user's file, or a saved result."""

from __future__ import annotations

import ast
import contextlib
import difflib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from holonome import mechanisms
from holonome.bodies.assembly import near
from holonome.bodies.mechanism import Mechanism
from holonome.dynamics.start import Start
from holonome.errors import HolonomeError
from holonome.mechanisms.example import Example
from holonome.problem.drawing import Drawing
from holonome.problem.general import HigherIndex
from holonome.problem.system import System
from holonome.results.solution import Solution

_START = ("q0", "v0", "t_span", "s0", "w0", "lam0")
_NEAR = re.compile(r"near\((.*)\)")


@dataclass(frozen=True, eq=False)
class Subject:
    """A system with initial values and a time span, or a saved result."""

    mechanism: Example
    further: dict[str, Any] = field(default_factory=dict)
    saved: Solution | None = None


def find(
    text: str,
    arguments: list[str] | None = None,
    changes: list[str] | None = None,
    name: str | None = None,
    until: float | None = None,
    start: list[str] | None = None,
    speed: list[str] | None = None,
) -> Subject:
    """The subject named on the command line.

    Parameters
    ----------
    text
        Name of a mechanism, or path of a .py or .npz file.
    arguments, changes
        Assignments NAME=VALUE for the function of a mechanism, and for parameters.
    name
        Which of several systems in a file.
    until
        Final time, if not the default.
    start, speed
        Assignments NAME=VALUE for joints and bodies of an hn.Mechanism; they go before those of its file.
    """
    by_name = {"start": _assignments("--start", start), "speed": _assignments("--speed", speed)}
    built, changed = _assignments("--with", arguments), _assignments("--set", changes)
    path, accepted = Path(text), []
    if name is not None and path.suffix != ".py":
        raise ValueError("--name: chooses among the systems of a Python file")
    if path.suffix != ".py":
        _refuse_by_name(by_name, text)
    if path.suffix == ".npz":
        if built or changed or until is not None:
            raise ValueError(
                f"{'--with' if built else '--set' if changed else '--until'}: {text!r} is a saved result; "
                "run its model again to change something"
            )
        return _saved(path)
    if path.suffix == ".py":
        if built:
            raise ValueError(
                "--with: is for built-in mechanisms; in a file of yours change parameters with --set"
            )
        chosen, values = _chosen_in_file(path, name)
        if isinstance(chosen, Mechanism):
            return _assembled(path, chosen, values, changed, until, by_name)
        _refuse_by_name(by_name, path.name)
        subject = _in_file(path, chosen, values, until)
    else:
        subject = Subject(_built_in(text, built, changed))
        accepted = list(inspect.signature(mechanisms.available()[text]).parameters)
        changed = {key: value for key, value in changed.items() if key not in accepted}
    mechanism = subject.mechanism
    if changed:
        unknown = [key for key in changed if key not in mechanism.system.parameters]
        if unknown:
            known = dict.fromkeys([*accepted, *mechanism.system.parameters])
            raise ValueError(
                f"--set: {unknown[0]!r} is not a parameter of {mechanism.name}; it has "
                f"{', '.join(known) or 'none'}"
            )
        mechanism = replace(
            mechanism, system=mechanism.system.with_parameters(**changed), reference=None, exact=None
        )
    if until is not None:
        mechanism = replace(mechanism, t_span=(mechanism.t_span[0], until))
    return replace(subject, mechanism=mechanism)


def _built_in(name: str, arguments: dict[str, Any], changes: dict[str, Any]) -> Example:
    """A mechanism; changes that its function accepts are passed to it, so that the start is consistent."""
    available = mechanisms.available()
    if name not in available:
        near = difflib.get_close_matches(name, available, n=3, cutoff=0.5)
        hint = (
            f"did you mean {' or '.join(near)}?"
            if near
            else f"there are {', '.join(available)}; a file of yours ends in .py, a saved result in .npz"
        )
        raise ValueError(f"{name!r} is not a mechanism; {hint}")
    accepted = list(inspect.signature(available[name]).parameters)
    for argument in arguments:
        if argument not in accepted:
            raise ValueError(
                f"--with: {argument!r} is not an argument of {name}; it takes {', '.join(accepted)}"
            )
    try:
        return available[name](
            **arguments, **{key: value for key, value in changes.items() if key in accepted}
        )
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from error


def _refuse_by_name(by_name: dict[str, dict[str, Any]], text: str) -> None:
    for argument, given in by_name.items():
        if given:
            raise ValueError(
                f"--{argument}: {text!r} has no joints and bodies by name; it is for an hn.Mechanism in "
                "a Python file"
            )


def _assembled(
    path: Path,
    chosen: Mechanism,
    values: Mapping[str, Any],
    changed: dict[str, Any],
    until: float | None,
    by_name: dict[str, dict[str, Any]],
) -> Subject:
    """A mechanism of bodies and joints, assembled with the parameters of this run."""
    unknown = [key for key in changed if key not in chosen.parameters]
    if unknown:
        known = ", ".join(chosen.parameters) or "none"
        raise ValueError(f"--set: {unknown[0]!r} is not a parameter of {chosen.name}; it has {known}")
    given: dict[str, Any] = {}
    for argument, further in by_name.items():
        value = values.get(argument)
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(
                f"{path.name}: {argument} is a {type(value).__name__}; give a dict of joints and bodies by "
                "name"
            )
        given[argument] = {**(value or {}), **further} or None
    t0, t1 = _time_span(path, values.get("t_span"), until)
    q0, v0, s0 = chosen.initial(t0, **given, parameters=changed)
    system = chosen.system.with_parameters(**changed) if changed else chosen.system
    label = chosen.name if chosen.name != "mechanism" else path.stem
    example = Example(
        label,
        label.replace("_", " "),
        system,
        (t0, t1),
        q0,
        v0,
        source=str(path),
        drawing=system.drawing,
    )
    return Subject(example, {} if s0 is None else {"s0": s0})


def _time_span(path: Path, t_span: Any, until: float | None) -> tuple[float, float]:
    if t_span is None and until is not None:
        return 0.0, until
    if t_span is None:
        raise ValueError(f"{path.name}: has no t_span; add t_span = (0, 10), or give --until")
    if np.shape(t_span) != (2,):
        raise ValueError(f"{path.name}: t_span = {t_span!r}; give (initial time, final time)")
    return float(t_span[0]), float(t_span[1] if until is None else until)


def _chosen_in_file(path: Path, name: str | None) -> tuple[Any, dict[str, Any]]:
    """The mechanism or system that a file defines, and all that it defines."""
    values = _executed(path)
    found: dict[str, Any] = {
        key: value
        for key, value in values.items()
        if isinstance(value, (Example, Mechanism, System, HigherIndex)) and not key.startswith("_")
    }
    holders = [value for value in found.values() if isinstance(value, (Example, Mechanism))]
    inside = [value.system for value in holders] if len(found) > len(holders) else []
    found = {key: value for key, value in found.items() if not any(value is system for system in inside)}
    distinct = {id(value): key for key, value in reversed(found.items())}
    if name is not None and name not in found:
        raise ValueError(
            f"--name: {path.name} defines no system {name!r}; "
            + (f"there is {', '.join(found)}" if found else "it defines none at all")
        )
    if not found:
        raise ValueError(
            f"{path.name}: defines neither an hn.Mechanism nor an hn.System; see: holonome run --help"
        )
    if name is None and len(distinct) > 1:
        raise ValueError(f"{path.name}: defines several systems, {', '.join(found)}; choose one with --name")
    chosen = found[name or next(iter(found))]
    if isinstance(chosen, HigherIndex):
        raise ValueError(
            f"{path.name}: {name or next(iter(found))} is a {type(chosen).__name__}; run it in Python with "
            "hn.solve"
        )
    return chosen, values


def _in_file(path: Path, chosen: Example | System, values: Mapping[str, Any], until: float | None) -> Subject:
    """A system and the start beside it."""
    if isinstance(chosen, Example):
        return Subject(chosen)
    start = _start(path, values)
    t_span = _time_span(path, start.get("t_span"), until)
    drawings = [value for value in values.values() if isinstance(value, Drawing)]
    label = chosen.name if chosen.name not in ("system", "ode") else path.stem
    drawing = chosen.drawing or (drawings[0] if len(drawings) == 1 else None)
    mechanism = Example(
        label,
        label.replace("_", " "),
        chosen,
        t_span,
        start["q0"],
        start.get("v0"),  # type: ignore[arg-type]
        source=str(path),
        drawing=drawing,
    )
    return Subject(mechanism, {key: start[key] for key in ("s0", "w0", "lam0") if start.get(key) is not None})


def _start(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    start = values.get("start")
    if isinstance(start, Start):
        start = {"q0": start.q, "v0": start.v}
    if start is not None and not isinstance(start, Mapping):
        raise ValueError(
            f"{path.name}: start is a {type(start).__name__}; give a dict with q0, and v0 and t_span if need "
            "be"
        )
    given = {key: values[key] for key in (*_START, "x0") if key in values} | dict(start or {})
    if "x0" in given:
        given["q0"] = given.pop("x0")
    unknown = [key for key in given if key not in _START]
    if unknown:
        raise ValueError(f"{path.name}: start has the key {unknown[0]!r}; it may have {', '.join(_START)}")
    if "q0" not in given:
        raise ValueError(
            f"{path.name}: defines a system but no start; add q0 = [...] (and v0, t_span), or start = "
            f"{{'q0': [...], ...}}"
        )
    return given


def _executed(path: Path) -> dict[str, Any]:
    """What a file defines; errors in it become one sentence with the line number."""
    if not path.is_file():
        raise ValueError(f"{str(path)!r}: there is no such file")
    name = f"holonome_model_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ValueError(f"{path.name}, line {error.lineno}: {error.msg}") from error
    except HolonomeError as error:
        raise ValueError(f"{path.name}, line {_line(error, path)}: {error}") from error
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"{path.name}, line {_line(error, path)}: {type(error).__name__}: {error}"
        ) from error
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(path.resolve().parent))
    return vars(module)


def _line(error: BaseException, path: Path) -> int | str:
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).name == path.name
    ]
    return lines[-1] if lines and lines[-1] is not None else "?"


def _saved(path: Path) -> Subject:
    """A saved result, as if it had just been computed."""
    if not path.is_file():
        raise ValueError(f"{str(path)!r}: there is no such file")
    solution = Solution.load(path)
    if not solution.t.size:
        raise ValueError(f"{str(path)!r}: contains no points")
    system = solution.system
    mechanism = Example(
        path.stem,
        f"{system.name.replace('_', ' ')}, saved in {path.name}",
        system,
        (float(solution.t[0]), float(solution.t[-1])),
        solution.q[:, 0],
        solution.v[:, 0],
        drawing=system.drawing,
    )
    return Subject(mechanism, saved=solution)


def _assignments(option: str, texts: list[str] | None) -> dict[str, Any]:
    values = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        guess = _NEAR.fullmatch(value.strip()) if option == "--start" else None
        try:
            given = ast.literal_eval(guess[1] if guess else value.strip())
            values[name.strip()] = near(given) if guess else given
        except (ValueError, SyntaxError):
            equals = ""
        if not equals or not name.strip():
            raise ValueError(
                f"{option}: {text!r} is not of the form NAME=VALUE with a number or a list of numbers"
            )
    return values

"""Values of ``start`` and ``speed``: what a user may give for joints and bodies, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from holonome.arguments import real_array, real_number, shown
from holonome.bodies.geometry import constant
from holonome.bodies.joint import QUATERNION, Joint, quaternion_of
from holonome.errors import InconsistentStart


def by_name(argument: str, given: Any) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise InconsistentStart(f"{argument}: {shown(given)}; give a dict of names and values")
    return given or {}


def named_values(argument: str, joint: Joint, value: Any) -> dict[int, float]:
    """Values of the coordinates of a joint, by their numbers: a number, a dict by name, or all in turn."""
    names = [c.name for c in joint.coordinates if c.kind != QUATERNION]
    expected = (
        "a number"
        if len(names) == 1
        else f"a dict with any of {', '.join(names)}"
        if names
        else "a scipy.spatial.transform.Rotation"
    )
    try:
        if isinstance(value, Mapping):
            unknown = [name for name in value if name not in names]
            if unknown:
                raise InconsistentStart(
                    f"{argument}[{joint.name!r}]: {unknown[0]!r} is no coordinate of it; give {expected}"
                )
            return {names.index(name): _finite(number) for name, number in value.items()}
        values = [value] if len(names) == 1 else list(value)
        if len(values) != len(names) or not names:
            raise ValueError
        return {k: _finite(number) for k, number in enumerate(values)}
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InconsistentStart):
            raise
        raise InconsistentStart(f"{argument}[{joint.name!r}]: {shown(value)}; give {expected}") from None


def _finite(value: Any) -> float:
    number = real_number(value)
    if not np.isfinite(number):
        raise ValueError
    return number


def triple(argument: str, name: str, value: Any) -> np.ndarray:
    try:
        array = real_array(value)
        if array.shape != (3,) or not np.all(np.isfinite(array)):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InconsistentStart(f"{argument}[{name!r}]: {shown(value)}; give three finite numbers") from None
    return array


def place_of(name: str, value: Any, dimension: int) -> tuple[np.ndarray | None, Any]:
    """Position of the origin of a body, and its angle or rotation; None for what is not given."""
    second = "angle" if dimension == 2 else "rotation"
    return _pair("start", name, value, dimension, "position", second)


def motion_of(name: str, value: Any, dimension: int) -> tuple[np.ndarray | None, Any]:
    return _pair("speed", name, value, dimension, "velocity", "angular_velocity")


def _pair(
    argument: str, name: str, value: Any, dimension: int, first: str, second: str
) -> tuple[np.ndarray | None, Any]:
    expected = f"a dict with {first!r} ({dimension} numbers) and {second!r}, or one of them"
    try:
        if not isinstance(value, Mapping):
            value = {first: value}
        if not set(value) <= {first, second}:
            raise ValueError
        x, turn = value.get(first), value.get(second)
        if x is not None:
            x = real_array(x)
            if x.shape != (dimension,) or not np.all(np.isfinite(x)):
                raise ValueError
        if turn is not None and second != "rotation":
            turn = _finite(turn) if dimension == 2 else triple(argument, name, turn)
        elif turn is not None and not (isinstance(turn, Rotation) and turn.single):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InconsistentStart(f"{argument}[{name!r}]: {shown(value)}; give {expected}") from None
    return x, turn


def turned_from(R: ca.SX, wanted: Rotation) -> ca.SX:
    """Three rows that vanish where R is the wanted rotation, and nowhere else."""
    return 2 * quaternion_of(constant(wanted.as_matrix()).T @ R)[1:]

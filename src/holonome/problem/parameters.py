"""Parameters and inputs of a system: names and shapes once, values changeable at any time without compiling
anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import NUMBERS, checked, read
from holonome.errors import ModelError
from holonome.tracing import Namespace, traced


class Parameters(Mapping):
    """Named numbers and arrays, laid out one after the other in a flat array.

    Inputs are those that are meant to change on the way, and come last: functions see them as ``u``, all
    others as ``p``.
    """

    def __init__(
        self, values: Mapping[str, Any] | None = None, inputs: Mapping[str, Any] | None = None
    ) -> None:
        given = checked("parameters", values, ModelError) or {}
        driving = checked("inputs", inputs, ModelError) or {}
        twice = [name for name in driving if name in given]
        if twice:
            raise ModelError(f"inputs: {twice[0]!r} is a parameter already; give it another name")
        self.inputs = tuple(driving)
        self._values = {name: _number("parameters", name, value) for name, value in given.items()}
        self._values |= {name: _number("inputs", name, value) for name, value in driving.items()}
        self.layout, offset = [], 0
        for name, value in self._values.items():
            self.layout.append((name, value.shape, offset))
            offset += value.size
        self.size = offset
        places = {name: (shape, offset) for name, shape, offset in self.layout}
        self._places = {
            "p": {name: place for name, place in places.items() if name not in driving},
            "u": {name: places[name] for name in driving},
        }
        self.flat = (
            np.concatenate([v.ravel() for v in self._values.values()]) if self._values else np.zeros(0)
        )
        self.flat.flags.writeable = False

    @property
    def names(self) -> list[str]:
        """Of parameters and inputs."""
        return list(self._values)

    def layout_of(self, kind: str) -> dict[str, tuple[tuple[int, ...], int]]:
        """Shapes and offsets by name, of the parameters "p" or the inputs "u"."""
        return self._places[kind]

    def place(self, name: str) -> slice:
        """Where one of them lies in the flat array."""
        shape, offset = (self._places["p"] | self._places["u"])[name]
        return slice(offset, offset + math.prod(shape))

    def own(self, argument: str, given: Any) -> dict[str, Any]:
        """Values given as ``parameters`` or as ``inputs``, which must name what they say."""
        kind, other = {"parameters": ("p", "inputs"), "inputs": ("u", "parameters")}[argument]
        values = checked(argument, given) or {}
        for name in values:
            if name in self._places[kind]:
                continue
            if name in self:
                raise ModelError(f"{argument}: {name!r} is one of the {other}; give {other}={{{name!r}: …}}")
            there = ", ".join(self._places[kind]) or "none"
            raise ModelError(f"{argument}: {name!r} unknown; this system has {there}")
        return values

    def changed(self, values: Mapping[str, Any]) -> Parameters:
        """The same parameters and inputs with other values."""
        unknown = [name for name in values if name not in self._values]
        if unknown:
            raise ModelError(
                f"parameters: {', '.join(map(repr, unknown))} unknown; this system has "
                f"{', '.join(self._values) or 'none'}"
            )
        new = {name: _number("parameters", name, value) for name, value in values.items()}
        for name, value in new.items():
            if value.shape != self._values[name].shape:
                raise ModelError(
                    f"parameters: {name!r} has shape {value.shape}, the system was made with shape "
                    f"{self._values[name].shape}; "
                    "another shape needs another System"
                )
        all_values = self._values | new
        return Parameters(*({name: all_values[name] for name in self._places[kind]} for kind in "pu"))

    def namespace(self, flat: np.ndarray | ca.SX, kind: str = "p") -> Namespace:
        """What the user's functions see as ``p`` or ``u``: numbers from numbers, traced values from
        symbols.
        """

        def read(place: tuple[tuple[int, ...], int]) -> Any:
            shape, offset = place
            part = flat[offset : offset + math.prod(shape)]
            if isinstance(flat, ca.SX):
                return traced(ca.SX(part), shape)
            return float(part[0]) if shape == () else np.asarray(part).reshape(shape)

        return Namespace(self._places[kind], read)

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        return float(value) if value.shape == () else value

    def __iter__(self):
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Parameters({dict(self)!r})"


def _number(argument: str, name: str, value: Any) -> np.ndarray:
    if type(value) is float and math.isfinite(value):
        array = np.array(value)
        array.flags.writeable = False
        return array
    array = read(NUMBERS, f"{argument}[{name!r}]", value, ModelError)
    array.flags.writeable = False
    return array

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
        values = {name: _number("parameters", name, value) for name, value in given.items()}
        values |= {name: _number("inputs", name, value) for name, value in driving.items()}
        self.inputs, self.layout, offset = tuple(driving), [], 0
        for name, value in values.items():
            self.layout.append((name, value.shape, offset))
            offset += value.size
        self.size = offset
        self._all = {name: (shape, offset) for name, shape, offset in self.layout}
        self._places = {
            "p": {name: place for name, place in self._all.items() if name not in driving},
            "u": {name: self._all[name] for name in driving},
        }
        self.flat = np.concatenate([v.ravel() for v in values.values()]) if values else np.zeros(0)
        self.flat.flags.writeable = False

    @property
    def names(self) -> list[str]:
        """Of parameters and inputs."""
        return list(self._all)

    def layout_of(self, kind: str) -> dict[str, tuple[tuple[int, ...], int]]:
        """Shapes and offsets by name, of the parameters "p" or the inputs "u"."""
        return self._places[kind]

    def place(self, name: str) -> slice:
        """Where one of them lies in the flat array."""
        shape, offset = self._all[name]
        return slice(offset, offset + math.prod(shape))

    def own(self, argument: str, given: Any) -> dict[str, Any]:
        """Values given as ``parameters`` or as ``inputs``, which must name what they say."""
        kind, other = _KINDS[argument]
        places = self._places[kind]
        if type(given) is dict and given.keys() <= places.keys():
            return given
        values = checked(argument, given) or {}
        for name in values:
            if name in places:
                continue
            if name in self:
                raise ModelError(f"{argument}: {name!r} is one of the {other}; give {other}={{{name!r}: …}}")
            there = ", ".join(places) or "none"
            raise ModelError(f"{argument}: {name!r} unknown; this system has {there}")
        return values

    def changed(self, values: Mapping[str, Any]) -> Parameters:
        """The same parameters and inputs with other values."""
        flat = self.flat.copy()
        self.write(flat, values)
        flat.flags.writeable = False
        other = object.__new__(Parameters)
        other.__dict__.update(self.__dict__)
        other.flat = flat
        return other

    def write(self, flat: np.ndarray, values: Mapping[str, Any]) -> None:
        """Write values by name into a flat array; nothing where one of them is refused."""
        entries = []
        for name, value in values.items():
            if name not in self._all:
                raise self._unknown(values)
            shape, offset = self._all[name]
            if shape == () and type(value) is float and math.isfinite(value):
                entries.append((offset, value))
                continue
            array = _number("parameters", name, value)
            if array.shape != shape:
                raise ModelError(
                    f"parameters: {name!r} has shape {array.shape}, the system was made with shape "
                    f"{shape}; another shape needs another System"
                )
            entries.append((slice(offset, offset + array.size), array.ravel()))
        for place, entry in entries:
            flat[place] = entry

    def _unknown(self, values: Mapping[str, Any]) -> ModelError:
        unknown = ", ".join(repr(name) for name in values if name not in self._all)
        return ModelError(f"parameters: {unknown} unknown; this system has {', '.join(self._all) or 'none'}")

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
        shape, offset = self._all[name]
        if shape == ():
            return float(self.flat[offset])
        return self.flat[offset : offset + math.prod(shape)].reshape(shape)

    def __iter__(self):
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        return f"Parameters({dict(self)!r})"


_KINDS = {"parameters": ("p", "inputs"), "inputs": ("u", "parameters")}


def _number(argument: str, name: str, value: Any) -> np.ndarray:
    return read(NUMBERS, f"{argument}[{name!r}]", value, ModelError)

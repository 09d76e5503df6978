"""Parameters of a system: names and shapes once, values changeable at any time without compiling anything."""

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
    """Named numbers and arrays, laid out one after the other in a flat array."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        given = checked("parameters", values, ModelError) or {}
        self._values = {name: _number(name, value) for name, value in given.items()}
        self.layout, offset = [], 0
        for name, value in self._values.items():
            self.layout.append((name, value.shape, offset))
            offset += value.size
        self.size = offset
        self._places = {name: (shape, offset) for name, shape, offset in self.layout}
        self.flat = (
            np.concatenate([v.ravel() for v in self._values.values()]) if self._values else np.zeros(0)
        )
        self.flat.flags.writeable = False

    @property
    def names(self) -> list[str]:
        return list(self._values)

    def changed(self, values: Mapping[str, Any]) -> Parameters:
        """The same parameters with other values."""
        unknown = [name for name in values if name not in self._values]
        if unknown:
            raise ModelError(
                f"parameters: {', '.join(map(repr, unknown))} unknown; this system has "
                f"{', '.join(self._values) or 'none'}"
            )
        new = {name: _number(name, value) for name, value in values.items()}
        for name, value in new.items():
            if value.shape != self._values[name].shape:
                raise ModelError(
                    f"parameters: {name!r} has shape {value.shape}, the system was made with shape "
                    f"{self._values[name].shape}; "
                    "another shape needs another System"
                )
        return Parameters(self._values | new)

    def namespace(self, flat: np.ndarray | ca.SX) -> Namespace:
        """What the user's functions see as ``p``: numbers from numbers, traced values from symbols."""

        def read(place: tuple[tuple[int, ...], int]) -> Any:
            shape, offset = place
            part = flat[offset : offset + math.prod(shape)]
            if isinstance(flat, ca.SX):
                return traced(ca.SX(part), shape)
            return float(part[0]) if shape == () else np.asarray(part).reshape(shape)

        return Namespace(self._places, read)

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        return float(value) if value.shape == () else value

    def __iter__(self):
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Parameters({dict(self)!r})"


def _number(name: str, value: Any) -> np.ndarray:
    if type(value) is float and math.isfinite(value):
        array = np.array(value)
        array.flags.writeable = False
        return array
    array = read(NUMBERS, f"parameters[{name!r}]", value, ModelError)
    array.flags.writeable = False
    return array

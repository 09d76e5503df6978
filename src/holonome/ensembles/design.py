"""Which trajectories an ensemble consists of: what varies, along which dimensions, and the inputs of each
member.

The inputs of a trajectory are (t₀, t₁, y₀, p).  Most are the same for all; those that vary are *columns* of a
table with one row for each member.  Members are numbered through the grid of all dimensions, the last one
fastest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holonome.arguments import real_array, shown
from holonome.ensembles.lane import HEAD
from holonome.ensembles.samplers import MEMBER, drawn

TIMES = {"t0": 0, "t_end": 1}
STATE = ("q0", "v0", "s0")
BY_NAME = ("start", "speed")
"""``over={"start.A": …}``: the value of a joint or body by name, of a mechanism."""


@dataclass(frozen=True, eq=False)
class Variation:
    """One thing that varies: ``values[i]`` at place i along its dimension, and which inputs it sets."""

    name: str
    dimension: str
    values: np.ndarray
    places: tuple[int, ...]

    @property
    def by_name(self) -> bool:
        """Whether it needs an assembly to become inputs."""
        return self.name.partition(".")[0] in BY_NAME and "." in self.name


@dataclass(frozen=True, eq=False)
class Design:
    """All variations, and the lengths of the dimensions in their order."""

    variations: tuple[Variation, ...]
    dimensions: Mapping[str, int]

    @property
    def members(self) -> int:
        return math.prod(self.dimensions.values())

    @property
    def places(self) -> np.ndarray:
        """The inputs that vary, in the order of the columns."""
        direct = [place for variation in self.variations for place in variation.places]
        return np.array(direct, dtype=np.int64)

    def rows(self, first: int, count: int) -> dict[str, np.ndarray]:
        """The places of some members along each dimension."""
        numbers = np.arange(first, first + count)
        found = np.unravel_index(numbers, tuple(self.dimensions.values())) if self.dimensions else ()
        return dict(zip(self.dimensions, found, strict=True))

    def columns(self, first: int, count: int) -> np.ndarray:
        """The inputs that vary, of some members, one a row."""
        rows = self.rows(first, count)
        parts = [
            variation.values[rows[variation.dimension]].reshape(count, -1)
            for variation in self.variations
            if variation.places
        ]
        return np.concatenate(parts, axis=1) if parts else np.zeros((count, 0))

    def by_name(self, member: int) -> dict[str, dict[str, float]]:
        """Start and speed by name of one member, as far as they vary."""
        rows = self.rows(member, 1)
        found: dict[str, dict[str, float]] = {kind: {} for kind in BY_NAME}
        for variation in self.variations:
            if variation.by_name:
                kind, _, name = variation.name.partition(".")
                found[kind][name] = float(variation.values[rows[variation.dimension][0]])
        return found

    @property
    def needs_names(self) -> bool:
        """Whether members are assembled from values by name."""
        return any(variation.by_name for variation in self.variations)


def read_design(system: Any, over: Any, members: int | None, seed: int, mechanism: bool) -> Design:
    """The design that the user gave as ``over``."""
    if not isinstance(over, Mapping) or not all(isinstance(name, str) for name in over):
        raise TypeError(
            f"over: {shown(over)}; give a dict of what varies and its values, such as "
            '{"length": [0.9, 1.0, 1.1]}'
        )
    dimensions: dict[str, int] = {}
    variations = []
    functions = [name for name, values in over.items() if callable(values)]
    if functions and members is None:
        raise ValueError(
            f"members: over[{functions[0]!r}] is a function; say how many members it is drawn for"
        )
    if members is not None and not functions:
        raise ValueError("members: no entry of over is a function, so it has no effect; leave it out")
    for name, given in over.items():
        places, shape = _places(system, name, mechanism)
        dimension, values = _values(name, given, shape, members, seed)
        known = dimensions.setdefault(dimension, len(values))
        if known != len(values):
            raise ValueError(
                f"over[{name!r}]: {len(values)} values along {dimension!r}, which has {known} already; "
                "values that share a dimension go together, one by one"
            )
        variations.append(Variation(name, dimension, values, places))
    return Design(tuple(variations), dimensions)


def _places(system: Any, name: str, mechanism: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The inputs that a variation sets, and the shape of one of its values."""
    n, levels, states = system.n, 2 if system.n else 0, len(system.states)
    begin = HEAD + system.state_size
    if name in system.parameters:
        place = system.parameters.place(name)
        return tuple(range(begin + place.start, begin + place.stop)), np.shape(system.parameters[name])
    if name in TIMES:
        return (TIMES[name],), ()
    kind, _, inner = name.partition(".")
    if kind in BY_NAME and inner:
        if not mechanism:
            raise ValueError(f"over[{name!r}]: only a mechanism has joints by name; give q0 and v0")
        return (), ()
    sizes = {"q0": n or states, "v0": n, "s0": states if n else 0}
    if sizes.get(name):
        offset = {"q0": 0, "v0": n, "s0": levels * n}[name]
        return tuple(range(HEAD + offset, HEAD + offset + sizes[name])), (sizes[name],)
    known = [*system.parameters, *TIMES, *[kind for kind in STATE if sizes[kind]]]
    known += ["start.…", "speed.…"] * mechanism
    raise ValueError(f"over[{name!r}]: unknown; what may vary is {', '.join(known)}")


def _values(
    name: str, given: Any, shape: tuple[int, ...], members: int | None, seed: int
) -> tuple[str, np.ndarray]:
    """The dimension and the values of a variation."""
    dimension, values = name, given
    if callable(given):
        assert members is not None
        dimension, values = MEMBER, drawn(given, members, seed, name)
    elif isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        dimension, values = given
    elif shape:
        raise ValueError(
            f"over[{name!r}]: its values are arrays; say along which dimension they vary, "
            f'("name of the dimension", values)'
        )
    try:
        array = real_array(values)
    except (TypeError, ValueError):
        raise ValueError(f"over[{name!r}]: {shown(values)}; give numbers, or (dimension, numbers)") from None
    if array.ndim < 1 or array.shape[1:] != shape:
        expected = " × ".join(map(str, ("members", *shape)))
        raise ValueError(f"over[{name!r}]: shape {array.shape}; give {expected}")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"over[{name!r}]: all values must be finite")
    return dimension, array

"""Results of an ensemble: collected chunk by chunk, and as an xarray.Dataset."""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.ensembles.observed import Kept
from holonome.ensembles.reductions import Reduction, Statistics
from holonome.ensembles.study import Rows, Study

NOT_COMPUTED = "not computed"


def require_xarray() -> Any:
    """The package."""
    try:
        import xarray
    except ImportError as error:
        raise ImportError("ensembles return xarray.Dataset: pip install 'holonome[study]'") from error
    return xarray


class Collected:
    """What is known so far; memory for all members, unless they are reduced."""

    def __init__(self, study: Study, reduction: Reduction | None, members: int, store: Any = None) -> None:
        require_xarray()
        self.reduction, self.statistics = reduction, dict[str, Statistics]()
        self.failures: dict[str, int] = {}
        self.done = 0
        times = () if study.times is None else (study.times.size,)
        shapes = {
            kept.name: times * kept.over_time + ((len(kept.labels),) if kept.labels else ())
            for kept in study.observed.kept(bool(times))
        }
        if reduction is not None:
            self.statistics = {
                name: Statistics(shape, reduction.edges.get(name)) for name, shape in shapes.items()
            }
            return
        self.kept = {name: np.full((members, *shape), np.nan) for name, shape in shapes.items()}
        self.end, self.event = np.full(members, np.nan), np.full(members, -1, np.int16)
        self.steps, self.singular = np.zeros(members, np.int32), np.zeros(members, np.int16)
        self.messages = np.full(members, NOT_COMPUTED, object)

    def add(self, first: int, rows: Rows) -> None:
        """Enter the results of a chunk."""
        count = rows.count
        self.done += count
        if self.reduction is not None:
            for name, values in rows.kept.items():
                self.statistics[name].add(values)
            for message in rows.messages.values():
                self.failures[message] = self.failures.get(message, 0) + 1
            return
        span = slice(first, first + count)
        for name, values in rows.kept.items():
            self.kept[name][span] = values
        self.end[span], self.event[span] = rows.end, rows.event
        self.steps[span], self.singular[span] = rows.steps, rows.singular
        self.messages[span] = ""
        for row, message in rows.messages.items():
            self.messages[first + row] = message


def as_dataset(study: Study, collected: Collected, reduction: Reduction | None) -> Any:
    """The results by name."""
    xarray = require_xarray()
    design = study.design
    coords = _coordinates(study)
    variables = study.observed.kept(study.times is not None)
    attributes = {"system": study.system.name, "rtol": study.rtol, "method": str(study.method)}
    data: dict[str, Any] = {}
    if reduction is not None:
        kept = {
            "t",
            *("coordinate" if q.name in "qv" else "state" for q in study.observed.quantities if q.labels),
        }
        for variable in variables:
            found = collected.statistics[variable.name]
            data |= found.variables(variable.name, _dimensions(variable), coords)
            kept |= {f"{variable.name}_bin"}
        data["failures"] = sum(collected.failures.values())
        coords = {name: value for name, value in coords.items() if name in kept}
        attributes |= {"members": collected.done, "causes": str(collected.failures or "")}
        return xarray.Dataset(data, coords=coords, attrs=attributes)
    shape, dimensions = tuple(design.dimensions.values()), tuple(design.dimensions)
    for variable in variables:
        values = collected.kept[variable.name]
        data[variable.name] = (
            dimensions + _dimensions(variable),
            values.reshape(*shape, *values.shape[1:]),
        )
    data["end"] = (dimensions, collected.end.reshape(shape))
    data["steps"] = (dimensions, collected.steps.reshape(shape))
    if study.system.m:
        data["singular"] = (dimensions, collected.singular.reshape(shape))
    if study.observed.events:
        data["event"] = (dimensions, collected.event.reshape(shape))
    data["success"] = (dimensions, (collected.messages == "").reshape(shape))
    data["message"] = (dimensions, collected.messages.astype(str).reshape(shape))
    return xarray.Dataset(data, coords=coords, attrs=attributes)


def _dimensions(variable: Kept) -> tuple[str, ...]:
    return ("t",) * variable.over_time + _own_dimension(variable)


def _own_dimension(quantity: Any) -> tuple[str, ...]:
    if not quantity.labels:
        return ()
    return ("state",) if quantity.name in "sx" else ("coordinate",)


def _coordinates(study: Study) -> dict[str, Any]:
    """What varies, times, and names of coordinates and states."""
    coords: dict[str, Any] = {} if study.times is None else {"t": study.times}
    for quantity in study.observed.quantities:
        if quantity.labels:
            coords[_own_dimension(quantity)[0]] = list(quantity.labels)
    shapes = {"q0": "coordinate" if study.system.n else "state", "v0": "coordinate", "s0": "state"}
    for variation in study.design.variations:
        values, name = variation.values, variation.name
        if values.ndim == 1:
            coords[name] = ((variation.dimension,), values)
        elif name not in coords:
            own = shapes.get(name)
            labels = tuple(f"{name}_{i}" for i in range(values.ndim - 1))
            if own is not None and own in coords:
                labels = (own,)
            coords[name] = ((variation.dimension, *labels), values)
    return coords

"""A solution as a table: xarray, pandas, CSV."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from holonome.results.solution import Solution


def as_dataset(solution: Solution) -> Any:
    """The result as an xarray.Dataset with named coordinates."""
    xarray = optional("xarray")
    names, rows = solution.system.names, solution.system.constraint_names
    data: dict[str, Any] = {
        "q": (("coordinate", "t"), solution.q),
        "v": (("coordinate", "t"), solution.v),
        "lam": (("constraint", "t"), solution.lam),
    }
    if solution.energy is not None:
        data["energy"] = (("t",), solution.energy)
    coords: dict[str, Any] = {"t": solution.t, "coordinate": names, "constraint": rows}
    further = (("s", "state", solution.system.states), ("w", "unknown", solution.system.unknowns))
    for key, label, values in further:
        if values:
            data[key] = ((label, "t"), getattr(solution, key))
            coords[label] = list(values)
    names_of_inputs, inputs = input_columns(solution)
    if names_of_inputs:
        data["u"] = (("input", "t"), inputs)
        coords["input"] = names_of_inputs
    for key, (dimensions, values, labels) in solution.system.named_data(solution).items():
        data[key] = (dimensions, values)
        coords |= labels
    kept = ("method", "rtol", "message", "status", "steps", "rejections", "nfev")
    attributes = {"system": solution.system.name} | {name: getattr(solution, name) for name in kept}
    return xarray.Dataset(data, coords=coords, attrs=attributes)


def as_frame(solution: Solution) -> Any:
    """All columns as a pandas.DataFrame with time as its index."""
    pandas = optional("pandas")
    names, values = columns(solution)
    return pandas.DataFrame(values.T, index=pandas.Index(solution.t, name="t"), columns=names)


def columns(solution: Solution) -> tuple[list[str], np.ndarray]:
    """Positions, velocities, states, unknowns, multipliers and inputs, with their names."""
    system = solution.system
    names_of_inputs, inputs = input_columns(solution)
    names = [*system.names, *[f"{name}'" for name in system.names], *system.states, *system.unknowns]
    names += [f"lambda {name}" for name in system.constraint_names]
    values = [solution.q, solution.v, solution.s, solution.w, solution.lam, inputs]
    return [*names, *names_of_inputs], np.concatenate(values)


def input_columns(solution: Solution) -> tuple[list[str], np.ndarray]:
    """The inputs number by number, with names such as "torque" or "torques[0]"."""
    parameters = solution.system.parameters
    names = []
    for name, (shape, _) in parameters.layout_of("u").items():
        entries = [",".join(map(str, index)) for index in np.ndindex(*shape)]
        names += [f"{name}[{entry}]" if entry else name for entry in entries]
    return names, solution.parameter_values[parameters.of_inputs]


def write_csv(solution: Solution, path: Path) -> None:
    names, values = columns(solution)
    header, table = ",".join(["t", *names]), np.column_stack([solution.t, values.T])
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.17g")


def optional(package: str) -> Any:
    """Import an optional dependency, or say how to install it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ModuleNotFoundError(
            f"{package} is not installed: pip install 'holonome[{package}]'", name=package
        ) from error

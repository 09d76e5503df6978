"""Vectors that the user gives, checked."""

from __future__ import annotations

import numpy as np

from holonome.arguments import real_array, shown


def vector(argument: str, values, size: int, what: str = "coordinates") -> np.ndarray:
    """A real vector of the right size, perhaps the given one itself, or an error that names the argument."""
    if type(values) is np.ndarray and values.dtype == float and values.shape == (size,):
        return values
    try:
        array = real_array(values)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{argument}: {shown(values)} is not a vector of real numbers") from None
    if array.ndim == 0 and size == 1:
        array = array.reshape(1)
    if array.shape != (size,):
        raise ValueError(
            f"{argument}: shape {array.shape}; the system has {size} {what}, so it must be ({size},)"
        )
    return array


def require_finite(**vectors: np.ndarray) -> None:
    """Raise if one of the named vectors has an entry that is infinite or NaN."""
    for argument, array in vectors.items():
        if not np.all(np.isfinite(array)):
            raise ValueError(
                f"{argument}: entry {int(np.argmin(np.isfinite(array)))} is {array[~np.isfinite(array)][0]}"
            )

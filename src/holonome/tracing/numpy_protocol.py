"""The protocols by which NumPy leaves its functions to the types of their arguments.

What NumPy's functions do to traced values is not said here: :mod:`holonome.tracing.array_functions`, which
knows these values, puts the answers into `numpy_answers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class _NumPyAnswers:
    """What happens when NumPy is called with traced values."""

    ufunc: Callable[[np.ufunc, str, tuple, dict[str, Any]], Any]
    function: Callable[[Callable, tuple, dict[str, Any]], Any]


numpy_answers = _NumPyAnswers()


class AskedByNumPy:
    """The protocols by which NumPy leaves its functions to the types of their arguments."""

    __slots__ = ()

    @property
    def __array_priority__(self) -> float:
        return 1000.0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return numpy_answers.ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Callable, kinds: Any, args: tuple, options: dict[str, Any]) -> Any:
        return numpy_answers.function(function, args, options)

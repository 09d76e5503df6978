"""Whether a function gives the same answer whenever it is asked the same question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from holonome.errors import ModelError

_TOLERANCE = 1e-6


def require_same_answers(
    role: str, call: Callable[[Mapping[str, Any]], Any], points: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse a function with memory, or one that draws random numbers.

    The points are visited in turn and then backwards, so that what it remembers of one shows at another.
    Where it fails nothing is said here.
    """
    answers: dict[int, np.ndarray] = {}
    for k in (*range(len(points)), *reversed(range(len(points)))):
        try:
            answer = np.asarray(call(points[k]), dtype=float)
        except Exception:
            continue
        first = answers.setdefault(k, answer)
        scale = np.max(np.abs(first), initial=0.0, where=np.isfinite(first))
        if first.shape != answer.shape or not np.allclose(
            first, answer, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True
        ):
            raise ModelError(
                f"{role}: called again with the same arguments it gives {_text(answer)} instead of "
                f"{_text(first)}; it must depend on its arguments alone. Random numbers: draw them "
                "beforehand and give them as parameters=, with np.interp over t. Memory, such as the "
                "integral of a controller: make it one of states= with its rate="
            )


def _text(value: np.ndarray) -> str:
    return np.array2string(value, precision=6, threshold=6)

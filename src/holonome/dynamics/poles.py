"""Poles: whether a function of the user grows without bound where a run stands.

At distances δ = 10⁻², 10⁻³, … of a pole the value of a function changes more and more, as δ^(−α); near a
jump, a kink or a singularity that can be removed, less and less.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.errors import ModelError

_DISTANCES = 10.0 ** -np.arange(2, 10)
_NEAR, _GROWTH, _LARGE = 4, 2.0, 2.0


def unbounded_near(system: Any, t: float, y: np.ndarray, span: float) -> str:
    """Which function grows without bound towards a time, from where the run came or from beyond, in words;
    nothing if none does.  The state is held, or moves as its velocity says.
    """
    moves = [np.zeros(y.size)]
    if system.mechanical or system.order == 2:
        moves.append(np.concatenate([y[system.n : 2 * system.n], np.zeros(y.size - system.n)]))
    for move in moves:
        for side in (-span, span):
            values = [_values(system, t + side * d, y + side * d * move) for d in _DISTANCES]
            for name in values[0] if all(values) else ():
                if _grows(np.array([np.ravel(value[name]) for value in values])):
                    return f"{name} grows without bound near t = {t:.6g}; the solution may end there"
    return ""


def _values(system: Any, t: float, y: np.ndarray) -> dict[str, np.ndarray]:
    """What the user's functions give; nothing if one of them fails."""
    try:
        return system.function_values(t, y)
    except ModelError:
        return {}


def _grows(values: np.ndarray) -> bool:
    """Whether one of several quantities, a column each, has a pole ahead of its last row."""
    with np.errstate(all="ignore"):
        changes = np.abs(np.diff(values, axis=0))[-_NEAR:]
        growing = np.all(changes[1:] > _GROWTH * changes[:-1], axis=0)
        large = np.abs(values[-1]) > _LARGE * np.max(np.abs(values[:-_NEAR]), axis=0)
    return bool(np.any(growing & large & (changes[0] > 0)))

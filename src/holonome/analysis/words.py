"""How results of analysis are put into words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SHOWN = 6


def listed(names: Sequence[str], values: np.ndarray) -> str:
    size = 1e-12 * float(np.max(np.abs(values), initial=0.0))
    told = [
        f"{name} {value if abs(value) > size else 0.0:.6g}" for name, value in zip(names, values, strict=True)
    ]
    rest = [f"… ({len(told)} in all)"] if len(told) > 2 * SHOWN else []
    return ", ".join([*(told if not rest else told[:SHOWN]), *rest])

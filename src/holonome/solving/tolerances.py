"""The absolute tolerance where none is given: it follows the size of the problem.

A thousandth of rtol, times the size of the positions, of the velocities and of the first-order states, each
in powers of a thousand: 1 for anything that is measured in metres, 1e-6 for micrometres, 1e6 for orbits.
Sizes are those at the start.  What is zero there is estimated from the other level and the accelerations.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holonome.dynamics.kernels import kernels
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK

_PART = 1e-3
_USUAL = (0.03, 30.0)
_EQUILIBRIUM = 1e-10
"""A system that its initial accelerations would move by less than this is at rest up to rounding."""


def default_tolerance(system: Any, y: np.ndarray, t0: float, t1: float, rtol: float) -> float | np.ndarray:
    """An absolute tolerance for every entry of the state, or one for all."""
    if any(system.orders_of_states):
        return _by_order(np.array(system.orders_of_states), y, abs(t1 - t0), rtol)
    n, levels, values = system.n, system.levels, y.tolist()
    q, v, s = values[:n], values[n : levels * n], values[levels * n :]
    sizes = [max(max(part), -min(part)) if part else 1.0 for part in (q, v, s)]
    low, high = _USUAL
    if all(low <= size < high for size in sizes) or (low <= sizes[0] < high and sizes[1] == 0.0 and not s):
        return _PART * rtol
    if system.mechanical and n and not (sizes[0] and sizes[1]):
        sizes[:2] = _estimated(system, y, t0, abs(t1 - t0), *sizes[:2])
    scales = [_rounded(size) for size in sizes]
    counts = (n, (levels - 1) * n, len(s))
    return _PART * rtol * np.repeat(scales, counts)


def _by_order(orders: np.ndarray, y: np.ndarray, span: float, rtol: float) -> np.ndarray:
    """Of first-order states that are variables and their derivatives, by the order of the derivative."""
    sizes = [float(np.max(np.abs(y[orders == order]))) for order in range(np.max(orders) + 1)]
    reach = sizes[1] * span if len(sizes) > 1 else 0.0
    if sizes[0] <= _EQUILIBRIUM * reach:
        sizes[0] = min(1.0, reach)
    scales = [_rounded(max(size, sizes[0] / span**order)) for order, size in enumerate(sizes)]
    return _PART * rtol * np.array(scales)[orders]


def _estimated(system: Any, y: np.ndarray, t0: float, span: float, q: float, v: float) -> tuple[float, float]:
    """Sizes of positions and velocities where one of them, or both, are zero at the start."""
    n, compiled = system.n, kernels(system)
    rate, z = np.zeros(y.size + 1), np.zeros(y.size + 2)
    known = run_kernel(compiled.derivative, t0, y, z, compiled.context(system), rate) == OK
    a = float(np.max(np.abs(rate[n : 2 * n]))) if known else 0.0
    a = a if math.isfinite(a) else 0.0
    reach = v * span + 0.5 * a * span * span
    q = q or (min(1.0, reach) if reach > _EQUILIBRIUM else 1.0)
    return q, v or max(math.sqrt(a) * math.sqrt(q), q / span)


def _rounded(size: float) -> float:
    """The nearest power of a thousand; 1 where nothing is known."""
    if not 0 < size < math.inf:
        return 1.0
    return 1e3 ** round(math.log(size, 1e3))

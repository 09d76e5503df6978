"""Variables that are solved for inside an evaluation: the unknowns u of 0 = k(t, q, u), and λ where forces depend on it.

Each group owns a block of the context (:mod:`holonome.engine.context`):

    0 driver    1 kernel of a Newton step    2 size    3 … 7 free    8 … values    … the step    … the values before

A kernel that needs them calls the driver first.  It iterates from the values of the last evaluation, which are close by in a run, and leaves the new ones there, where the
kernel reads them like parameters.  If Newton's method fails the old values are put back and the status is SINGULAR, so that an integrator tries a shorter step.
"""

from __future__ import annotations

import math

from holonome.engine.calls import NativeKernel, call, shift
from holonome.engine.context import OK, SINGULAR

HEAD = 8
_ITERATIONS, _CONVERGED = 30, 1e-9
"""After a step smaller than this, relative to the largest value, the error of Newton's method is its square."""


@NativeKernel
def supply(t, y, block, context, out):
    """Newton's method for the values of a block."""
    kernel, size = int(block[1]), int(block[2])
    x, step = shift(block, 8), shift(block, 8 + size)
    before = shift(step, size)
    for i in range(size):
        before[i] = x[i]
    status = SINGULAR
    for _ in range(_ITERATIONS):
        code = call(kernel, t, y, y, context, step)
        if code != OK:
            status = code
            break
        largest, scale = 0.0, 1e-300
        for i in range(size):
            x[i] += step[i]
            largest, scale = max(largest, abs(step[i])), max(scale, abs(x[i]))
            if not abs(step[i]) < math.inf:
                largest = math.inf
        if largest == math.inf:
            break
        if largest <= _CONVERGED * scale:
            status = OK
            break
    if status != OK:
        for i in range(size):
            x[i] = before[i]
    return status


def block_size(size: int) -> int:
    """Doubles of the block of so many variables."""
    return HEAD + 3 * size


def head(kernel: int, size: int) -> list[float]:
    """Beginning of the block, with the addresses of this process."""
    return [float(supply.address), float(kernel), float(size), 0.0, 0.0, 0.0, 0.0, 0.0]

"""Variables that are solved for inside an evaluation: the unknowns u of 0 = k(t, q, u), and λ where forces
depend on it.

Each group owns a block of the context (:mod:`holonome.machine.context`):

    0 driver    1 kernel of a Newton step    2 size    3 whether they were found before    4 size of the state    5 kernel of a prediction    6, 7 free    8 … values    … the step
    … the values before    … time and state where they were found    … work

A kernel that needs them calls the driver first, which leaves them there, where the kernel reads them like
parameters.  It follows them from the last evaluation, which is close by in a run: predicted along the
tangent, then by Newton's method, which must converge fast, each change at most a quarter of the one before,
and come close to the prediction. Otherwise another solution might be reached; then the way from the last
state is gone in pieces.  If that fails too, the old values are put back and the status is SINGULAR, so that
an integrator tries a shorter step.
"""

from __future__ import annotations

import math

from numba import njit

from holonome.machine.calls import NativeKernel, call, shift
from holonome.machine.context import OK, SINGULAR

HEAD = 8
_ITERATIONS, _CONVERGED, _FAST, _MOST_PIECES = 30, 1e-9, 0.25, 256
"""After a step smaller than this, relative to the largest value, the error of Newton's method is its square.
"""


@njit(cache=True)
def _newton(t, y, block, context):
    """Newton's method for the values of a block; on failure they are as before."""
    kernel, size = int(block[1]), int(block[2])
    x, step = shift(block, 8), shift(block, 8 + size)
    before = shift(step, size)
    for i in range(size):
        before[i] = x[i]
    status, previous = SINGULAR, math.inf
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
        if block[3] > 0.0 and largest > _FAST * previous:
            break
        previous = largest
    if status != OK:
        for i in range(size):
            x[i] = before[i]
    return status


@njit(cache=True)
def _follow(t, y, block, context):
    """The values at a state, predicted along the tangent from where they were found last; the prediction must
    come close.  On success this becomes the last state.
    """
    size, count = int(block[2]), int(block[4])
    x, start = shift(block, 8), shift(block, 8 + 3 * size)
    kept = shift(start, 1 + 2 * count)
    move, predicted = shift(kept, size), shift(kept, size + 1 + count)
    largest = 0.0
    for i in range(size):
        kept[i], predicted[i] = x[i], 0.0
    if block[3] > 0.0 and block[5] != 0.0:
        move[0] = t - start[0]
        for i in range(count):
            move[1 + i] = y[i] - start[1 + i]
        status = call(int(block[5]), start[0], shift(start, 1), move, context, predicted)
        for i in range(size):
            if status != OK or not abs(predicted[i]) < math.inf:
                predicted[i] = 0.0
            largest = max(largest, abs(predicted[i]))
            x[i] += predicted[i]
    status = _newton(t, y, block, context)
    if status == OK and largest > 0.0:
        for i in range(size):
            if abs(x[i] - kept[i] - predicted[i]) > 0.3 * largest + 1e-6 * abs(x[i]):
                status = SINGULAR
    if status == OK:
        block[3], start[0] = 1.0, t
        for i in range(count):
            start[1 + i] = y[i]
    else:
        for i in range(size):
            x[i] = kept[i]
    return status


@NativeKernel
def supply(t, y, block, context, out):
    """Solve for the values of a block: directly, or in pieces from where they were found last."""
    size, count = int(block[2]), int(block[4])
    start = shift(block, 8 + 3 * size)
    way, x = shift(start, 1 + count), shift(block, 8)
    spare = shift(start, 2 + 3 * count + 2 * size)
    status = _follow(t, y, block, context)
    pieces = 4
    while status == SINGULAR and block[3] > 0.0 and pieces <= _MOST_PIECES:
        spare[0] = start[0]
        for i in range(count):
            spare[1 + i] = start[1 + i]
        for i in range(size):
            spare[1 + count + i] = x[i]
        for piece in range(1, pieces + 1):
            part = piece / pieces
            for i in range(count):
                way[i] = spare[1 + i] + part * (y[i] - spare[1 + i])
            status = _follow(spare[0] + part * (t - spare[0]), way, block, context)
            if status != OK:
                start[0] = spare[0]
                for i in range(count):
                    start[1 + i] = spare[1 + i]
                for i in range(size):
                    x[i] = spare[1 + count + i]
                break
        pieces *= 4
    return status


def block_size(size: int, state: int) -> int:
    """Doubles of the block of so many variables, for a state of that size."""
    return HEAD + 3 * size + (1 + 2 * state) + (size + 1 + state + size) + (1 + state + size)


def head(kernel: int, prediction: int, size: int, state: int) -> list[float]:
    """Beginning of the block, with the addresses of this process."""
    return [float(supply.address), float(kernel), float(size), 0.0, float(state), float(prediction), 0.0, 0.0]

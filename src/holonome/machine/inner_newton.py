"""Variables that are solved for inside an evaluation: the unknowns u of 0 = k(t, q, u), and λ where forces
depend on it.

Each group of variables owns a block of the context (:mod:`holonome.machine.context`), a `SolvedBlock`.  A
kernel that needs them calls the driver first, which leaves them there, where the kernel reads them like
parameters.  The driver follows them from the last evaluation, which is close by in a run: they are predicted
along the tangent and corrected by Newton's method, which must converge fast, each change at most a quarter of
the one before, and stay close to the prediction.  Otherwise it might reach another solution, so the path from
the last state is followed in pieces.  If that fails too, the old values are restored and the status is
SINGULAR, which makes an integrator try a shorter step.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from holonome.machine.calls import NativeKernel, call
from holonome.machine.context import OK, SINGULAR, Block
from holonome.machine.layout import Real, Vector, Whole

_ITERATIONS = 30
_CONVERGED = 1e-9
"""Once a step is this small relative to the largest value, the error of Newton's method is its square."""
_FAST = 0.25
_MOST_PIECES = 256
_GUESSES = (1e-3, -1e-3, 1.0, -1.0, 1e3, -1e3)
"""First values of λ to try where forces cannot be evaluated without any, as in tanh(·/λ)."""


class SolvedBlock(Block):
    """The variables, where they were found last, and work space."""

    newton_step: Whole  # address of the kernel of a Newton step
    prediction: Whole  # address of the kernel of a prediction, or 0
    size: Whole  # number of variables
    state_size: Whole
    found: Whole  # whether they were found before
    guesses: Whole  # how many of _GUESSES may be tried where Newton's method fails from the first values
    last_time: Real  # where they were found last
    last_state: Vector
    values: Vector
    step: Vector
    before: Vector  # the values before Newton's method
    kept: Vector  # the values before a prediction
    move: Vector  # from the last time and state to the new ones
    predicted: Vector  # change of the values
    between: Vector  # a state on the path in pieces
    start_state: Vector  # where the path in pieces begins
    start_values: Vector


named_block = SolvedBlock.named()


@njit(cache=True)
def _copy(source, target, size):
    for i in range(size):
        target[i] = source[i]


@njit(cache=True)
def _newton(t, y, memory, context):
    """Newton's method for the values of a block; if it fails, they are as before."""
    block = named_block(memory)
    x, step = block.values, block.step
    _copy(x, block.before, block.size)
    status = SINGULAR
    previous = math.inf
    for _ in range(_ITERATIONS):
        code = call(block.newton_step, t, y, y, context, step)
        if code != OK:
            status = code
            break
        largest = 0.0
        scale = 1e-300
        for i in range(block.size):
            x[i] += step[i]
            largest = max(largest, abs(step[i]))
            scale = max(scale, abs(x[i]))
            if not abs(step[i]) < math.inf:
                largest = math.inf
        if largest == math.inf:
            break
        if largest <= _CONVERGED * scale:
            status = OK
            break
        if block.found and largest > _FAST * previous:
            break
        previous = largest
    if status != OK:
        _copy(block.before, x, block.size)
    return status


@njit(cache=True)
def _predict(t, y, memory, context):
    """Change the values along the tangent from the last state; returns the largest change."""
    block = named_block(memory)
    x, predicted = block.values, block.predicted
    move = block.move
    for i in range(block.size):
        predicted[i] = 0.0
    if not block.found or block.prediction == 0:
        return 0.0
    move[0] = t - block.last_time
    for i in range(block.state_size):
        move[1 + i] = y[i] - block.last_state[i]
    status = call(block.prediction, block.last_time, block.last_state, move, context, predicted)
    largest = 0.0
    for i in range(block.size):
        if status != OK or not abs(predicted[i]) < math.inf:
            predicted[i] = 0.0
        largest = max(largest, abs(predicted[i]))
        x[i] += predicted[i]
    return largest


@njit(cache=True)
def _follow(t, y, memory, context):
    """The values at a state, predicted along the tangent from where they were found last; they must stay
    close to the prediction.  On success this becomes the last state.
    """
    block = named_block(memory)
    x, kept = block.values, block.kept
    predicted = block.predicted
    _copy(x, kept, block.size)
    largest = _predict(t, y, memory, context)
    status = _newton(t, y, memory, context)
    if status == OK and largest > 0.0:
        for i in range(block.size):
            if abs(x[i] - kept[i] - predicted[i]) > 0.3 * largest + 1e-6 * abs(x[i]):
                status = SINGULAR
    if status == OK:
        block.found = 1
        block.last_time = t
        _copy(y, block.last_state, block.state_size)
    else:
        _copy(kept, x, block.size)
    return status


@njit(cache=True)
def _follow_in_pieces(t, y, memory, context, pieces):
    """As `_follow`, along the straight path from the last state, in this many pieces."""
    block = named_block(memory)
    size, state_size = block.size, block.state_size
    between, start_state = block.between, block.start_state
    start_time = block.last_time
    _copy(block.last_state, start_state, state_size)
    _copy(block.values, block.start_values, size)
    for piece in range(1, pieces + 1):
        part = piece / pieces
        for i in range(state_size):
            between[i] = start_state[i] + part * (y[i] - start_state[i])
        status = _follow(start_time + part * (t - start_time), between, memory, context)
        if status != OK:
            block.last_time = start_time
            _copy(start_state, block.last_state, state_size)
            _copy(block.start_values, block.values, size)
            return status
    return OK


@njit(cache=True)
def _find(t, y, memory, context):
    """The values for the first time, from the first guess or from others."""
    block = named_block(memory)
    status = _follow(t, y, memory, context)
    for k in range(block.guesses):
        if status == OK:
            return status
        _copy(block.values, block.start_values, block.size)
        for i in range(block.size):
            block.values[i] = _GUESSES[k]
        status = _follow(t, y, memory, context)
        if status != OK:
            _copy(block.start_values, block.values, block.size)
    return status


@NativeKernel
def _solve(t, y, memory, context, out):
    """Solve for the values of a block: directly, or in pieces from where they were found last."""
    block = named_block(memory)
    if not block.found:
        return _find(t, y, memory, context)
    status = _follow(t, y, memory, context)
    pieces = 4
    while status == SINGULAR and pieces <= _MOST_PIECES:
        status = _follow_in_pieces(t, y, memory, context, pieces)
        pieces *= 4
    return status


def new_block(size: int, state_size: int) -> np.ndarray:
    """The block of so many variables, for a state of that size, without any addresses."""
    return SolvedBlock.memory(
        size=size,
        state_size=state_size,
        last_state=state_size,
        values=size,
        step=size,
        before=size,
        kept=size,
        move=1 + state_size,
        predicted=size,
        between=state_size,
        start_state=state_size,
        start_values=size,
    )


def fill_addresses(memory: np.ndarray, newton_step: int, prediction: int) -> None:
    """Write the addresses of this process into a block."""
    SolvedBlock.set(memory, driver=_solve.address, newton_step=newton_step, prediction=prediction)


def allow_guesses(memory: np.ndarray, begin: int, allowed: bool) -> None:
    """Whether other first values than those in the block at ``begin`` may be tried."""
    SolvedBlock.of(memory, begin)["guesses"] = len(_GUESSES) if allowed else 0

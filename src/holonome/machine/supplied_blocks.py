"""The blocks of supplied functions, and the drivers that fill them.

Central differences of order four are accurate to about 1e-11 of the value, 1e-9 for γ.  How far their points
lie apart is measured, for each entry of (q, v) and for time, when a run first needs it: lengths and times may
have any units.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from holonome.machine.calls import NativeKernel, call
from holonome.machine.context import OK, Block
from holonome.machine.layout import Real, Vector, Whole

_FIRST = 1e-3
"""The first step that is tried, relative to the largest position or velocity."""

_DECADES = 9
"""How much larger or smaller a step may become."""

_MUCH = 100.0
"""Growth after which steps are measured anew."""

_SLOPE = 1e-2
"""Steps of differences of order two, for Newton's matrices, relative to those of order four."""

_ACCURATE, _SECOND, _NEWTON = 1e-12, 1e-9, 1e-7
"""A step is good at once if a smaller one changes derivatives by no more than that: first ones, those along
the motion, and those of Newton's matrices.
"""

_ROUGH = 1e-5
"""A best step whose derivatives change by more is not believed before all others have been tried."""

_SMALLER = (math.sqrt(5) - 1) / 2
"""An irrational part, so that differences of a few roundings do not agree by chance."""

_NOTHING = 1e-12
"""States that are smaller say nothing about the size of the problem."""


class ValueBlock(Block):
    """Of a function of which no derivatives are needed."""

    function: Whole  # its address
    value: Vector


class DifferencedBlock(Block):
    """Of a function whose derivatives are differences."""

    function: Whole  # its address
    n: Whole  # coordinates
    rows: Whole  # values
    accuracy: Real  # of good steps
    inner: Vector  # what the function works with, besides t and (q, v)
    steps: Vector  # of q, v, t, and along the motion, relative to the others; 0 where not yet measured
    sizes: Vector  # of q and v when that was begun
    place: Vector  # q
    value: Vector
    moved: Vector  # a state close by
    centre: Vector  # values there, and one step and two steps ahead and behind
    ahead: Vector
    behind: Vector
    far_ahead: Vector
    far_behind: Vector
    slope: Vector  # what a step gives as derivatives
    bend: Vector


class ConstraintBlock(DifferencedBlock):
    """Of position constraints g; matrices row by row."""

    depends_on_time: Whole
    G: Vector
    g_t: Vector
    D_g: Vector
    gamma_g: Vector
    G_ahead: Vector
    G_behind: Vector


class VelocityConstraintBlock(DifferencedBlock):
    """Of velocity constraints h; matrices row by row."""

    depends_on_time: Whole
    A: Vector
    D_h: Vector
    gamma_h: Vector


class SlopesBlock(DifferencedBlock):
    """Of derivatives of a function, or of G, g_t or A, with respect to (q, v), for Newton's matrices."""

    derived: Whole  # whether the values are differences themselves, from the inner block
    columns: Whole  # entries of (q, v) on which the values depend
    slopes: Vector  # row by row


_differenced_block = DifferencedBlock.named()
_slopes_block = SlopesBlock.named()
_value_block = ValueBlock.named()
_constraint_block = ConstraintBlock.named()
_velocity_constraint_block = VelocityConstraintBlock.named()


@NativeKernel
def supply_value(t, y, memory, context, out):
    block = _value_block(memory)
    return call(block.function, t, y, y, context, block.value)


@njit(cache=True)
def _slope(block, i, h):
    """Derivative of value i, from the values one and two steps h ahead and behind."""
    near = block.ahead[i] - block.behind[i]
    far = block.far_ahead[i] - block.far_behind[i]
    return (8 * near - far) / (12 * h)


@njit(cache=True)
def _second(block, i, h, centre):
    """Second derivative of value i, from the same values and that in between."""
    near = block.ahead[i] + block.behind[i]
    far = block.far_ahead[i] + block.far_behind[i]
    return (16 * near - far - 30 * centre) / (12 * h * h)


@njit(cache=True)
def _value_at(block, t, context, j, shift, out):
    """The values where an entry of the moved state is shifted, or time (j = 2n), or all along (1, v)."""
    at, n = block.moved, block.n
    if j >= 2 * n:
        for i in range(n * (j - 2 * n)):
            at[i] = block.place[i] + shift * at[n + i]
        status = call(block.function, t + shift, at, block.inner, context, out)
        for i in range(n * (j - 2 * n)):
            at[i] = block.place[i]
        return status
    centre = at[j]
    at[j] = centre + shift
    status = call(block.function, t, at, block.inner, context, out)
    at[j] = centre
    return status


@njit(cache=True)
def _values_around(block, t, context, j, h):
    """The values one and two steps h ahead and behind."""
    status = _value_at(block, t, context, j, h, block.ahead)
    status |= _value_at(block, t, context, j, -h, block.behind)
    status |= _value_at(block, t, context, j, 2 * h, block.far_ahead)
    return status | _value_at(block, t, context, j, -2 * h, block.far_behind)


@njit(cache=True)
def _change(block, t, context, j, h, accuracy):
    """How much derivatives with respect to entry j change when the step is made smaller, relative to their
    size: the most in any row, and the logarithms of all together; −1 for the most if no value moves.
    """
    smaller = _SMALLER * h
    status = _values_around(block, t, context, j, h)
    for i in range(block.rows):
        block.slope[i] = _slope(block, i, h)
        block.bend[i] = h * _second(block, i, h, block.centre[i])
    status |= _values_around(block, t, context, j, smaller)
    most, together = -1.0, 0.0
    for i in range(block.rows):
        slope, bend = _slope(block, i, smaller), h * _second(block, i, smaller, block.centre[i])
        size = abs(block.slope[i]) + abs(block.bend[i]) + abs(slope) + abs(bend)
        if size == 0.0:
            continue
        change = (abs(block.slope[i] - slope) + 0.1 * abs(block.bend[i] - bend)) / size
        most = max(most, change) if change == change else math.inf
        together += math.log(change + accuracy)
    return (most, together) if status == OK else (math.inf, math.inf)


@njit(cache=True)
def _measure_step(block, t, context, j, first, accuracy):
    """The best step: the first if it is good, else one better than those ten times larger and smaller.

    It is not kept if no value moves.
    """
    best, least, change = 0, math.inf, math.inf
    call(block.function, t, block.moved, block.inner, context, block.centre)
    for tried in range(2 * _DECADES + 1):
        k = (tried + 1) // 2 * (-1 if tried % 2 else 1)
        most, together = _change(block, t, context, j, first * 10.0**k, accuracy)
        if most < 0.0:
            return first
        if together < least:
            best, least, change = k, together, most
        if change <= accuracy or (change < _ROUGH and tried == 2 * abs(best) + 2):
            break
    block.steps[j] = first * 10.0**best
    return block.steps[j]


@njit(cache=True)
def _step(block, t, context, j):
    """The step for entry j of the state, or for time behind them."""
    if block.steps[j] > 0.0:
        return block.steps[j]
    size = block.sizes[j // block.n] if j < 2 * block.n else 1.0
    return _measure_step(block, t, context, j, _FIRST * (size if size > _NOTHING else 1.0), block.accuracy)


@njit(cache=True)
def _differences(block, t, context, first, jacobian):
    """The Jacobian of the function with respect to n entries of the moved state, from ``first`` on; each is
    changed and restored.
    """
    n = block.n
    for j in range(first, first + n):
        h = _step(block, t, context, j)
        status = _values_around(block, t, context, j, h)
        if status != OK:
            return status
        for i in range(block.rows):
            jacobian[i * n + j - first] = _slope(block, i, h)
    return OK


@njit(cache=True)
def _step_along(block, t, context):
    """A step along (1, v) that moves neither q nor t too far."""
    step, n = math.inf, block.n
    for i in range(n):
        if block.steps[i] > 0.0 and block.moved[n + i] != 0.0:
            step = min(step, block.steps[i] / abs(block.moved[n + i]))
    if block.depends_on_time:
        step = min(step, block.steps[2 * n] if block.steps[2 * n] > 0.0 else _FIRST)
    if step == math.inf:
        return 1.0
    if block.steps[2 * n + 1] == 0.0:
        block.steps[2 * n + 1] = _measure_step(block, t, context, 2 * n + 1, step, _SECOND) / step
    return block.steps[2 * n + 1] * step


@njit(cache=True)
def _move(block, y, step):
    """The moved state becomes y after a step along v.  Steps are measured anew where it is much larger than
    it was: from a special position, such as zero, they are not known for others.
    """
    n, q, v = block.n, 0.0, 0.0
    for i in range(n):
        block.place[i] = y[i] + step * y[n + i]
        block.moved[i] = block.place[i]
        block.moved[n + i] = y[n + i]
        q = max(q, abs(block.place[i]))
        v = max(v, abs(y[n + i]))
    if step == 0.0 and (q > _MUCH * block.sizes[0] or v > _MUCH * block.sizes[1]):
        block.sizes[0], block.sizes[1] = q, v
        for j in range(2 * n + 2):
            block.steps[j] = 0.0


@njit(cache=True)
def _gradients(block, t, y, context):
    """G and g_t."""
    _move(block, y, 0.0)
    status = _differences(block, t, context, 0, block.G)
    if block.depends_on_time and status == OK:
        h = _step(block, t, context, 2 * block.n)
        status = _values_around(block, t, context, 2 * block.n, h)
        for i in range(block.rows):
            block.g_t[i] = _slope(block, i, h)
    return status


@NativeKernel
def gradients(t, y, memory, context, out):
    """G and g_t of the block in ``memory``."""
    block = _constraint_block(memory)
    status = _gradients(block, t, y, context)
    entries = block.rows * block.n
    for i in range(entries):
        out[i] = block.G[i]
    for i in range(block.rows):
        out[entries + i] = block.g_t[i]
    return status


@NativeKernel
def supply_constraint(t, y, memory, context, out):
    """The values g, G, g_t, D and γ."""
    block = _constraint_block(memory)
    status = call(block.function, t, y, y, context, block.value)
    if status == OK:
        status = _gradients(block, t, y, context)
    if status != OK:
        return status
    h = _step_along(block, t, context)
    status |= _values_around(block, t, context, 2 * block.n + 1, h)
    for i in range(block.rows):
        block.gamma_g[i] = _second(block, i, h, block.value[i])
    _move(block, y, h)
    status |= _differences(block, t + h, context, 0, block.G_ahead)
    _move(block, y, -h)
    status |= _differences(block, t - h, context, 0, block.G_behind)
    for i in range(block.rows * block.n):
        block.D_g[i] = (block.G_ahead[i] - block.G_behind[i]) / (2 * h)
    return status


@NativeKernel
def matrix(t, y, memory, context, out):
    """A of the block in ``memory``."""
    block = _velocity_constraint_block(memory)
    _move(block, y, 0.0)
    return _differences(block, t, context, block.n, out)


@NativeKernel
def supply_slopes(t, y, memory, context, out):
    """Derivatives by central differences, as accurate as Newton's matrices need them."""
    block, measured = _slopes_block(memory), _differenced_block(memory)
    if block.derived:
        measured = _differenced_block(block.inner)
    columns = block.columns
    _move(block, y, 0.0)
    for j in range(columns):
        _move(measured, y, 0.0)
        h = _SLOPE * _step(measured, t, context, j)
        status = _value_at(block, t, context, j, h, block.ahead)
        status |= _value_at(block, t, context, j, -h, block.behind)
        if status != OK:
            return status
        for i in range(block.rows):
            block.slopes[i * columns + j] = (block.ahead[i] - block.behind[i]) / (2 * h)
    return OK


@NativeKernel
def supply_velocity_constraint(t, y, memory, context, out):
    """The values h, A, D and γ."""
    block = _velocity_constraint_block(memory)
    status = call(block.function, t, y, y, context, block.value)
    if status != OK:
        return status
    _move(block, y, 0.0)
    status |= _differences(block, t, context, block.n, block.A)
    status |= _differences(block, t, context, 0, block.D_h)
    if status != OK:
        return status
    h = _step_along(block, t, context)
    status |= _values_around(block, t, context, 2 * block.n + 1, h)
    for i in range(block.rows):
        block.gamma_h[i] = _slope(block, i, h)
    return status


def _differenced(n: int, rows: int, accuracy: float, **others) -> dict:
    """What a block of differences is made with."""
    samples = ("value", "centre", "ahead", "behind", "far_ahead", "far_behind", "slope", "bend")
    sizes = {"moved": 2 * n, "steps": 2 * n + 2, "sizes": 2, "place": n} | dict.fromkeys(samples, rows)
    return {"n": n, "rows": rows, "accuracy": accuracy} | sizes | others


def new_block(role: str, n: int, rows: int, depends_on_time: bool) -> np.ndarray:
    """The block of a function, without any addresses."""
    match role:
        case "constraint":
            sizes = dict.fromkeys(("G", "D_g", "G_ahead", "G_behind"), rows * n)
            sizes |= {"g_t": rows, "gamma_g": rows, "depends_on_time": depends_on_time}
            return ConstraintBlock.memory(**_differenced(n, rows, _ACCURATE, **sizes))
        case "velocity_constraint":
            sizes = {"A": rows * n, "D_h": rows * n, "gamma_h": rows, "depends_on_time": depends_on_time}
            return VelocityConstraintBlock.memory(**_differenced(n, rows, _ACCURATE, **sizes))
    return ValueBlock.memory(value=rows)


def new_slopes(n: int, rows: int, columns: int, inner: np.ndarray) -> np.ndarray:
    """The block of derivatives of a function that works with an inner block, without any addresses."""
    return SlopesBlock.memory(
        **_differenced(
            n, rows, _NEWTON, derived=inner.size > 0, columns=columns, slopes=rows * columns, inner=inner
        )
    )

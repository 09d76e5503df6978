"""The blocks of supplied functions, and the drivers that fill them.

Central differences of order four are accurate to about 1e-11 of the value, 1e-9 for γ.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from holonome.machine.calls import NativeKernel, call
from holonome.machine.context import OK, Block
from holonome.machine.layout import Vector, Whole

_STEP = 1e-3
_STEP_TWICE = 2.5e-3
_SLOPE_STEP = 1e-5
_LARGEST_TIME = 1e-4


class ValueBlock(Block):
    """Of a function of which no derivatives are needed."""

    function: Whole  # its address
    value: Vector


class ConstraintBlock(Block):
    """Of position constraints g; matrices row by row."""

    function: Whole  # its address
    n: Whole  # coordinates
    rows: Whole
    depends_on_time: Whole
    value: Vector
    G: Vector
    g_t: Vector
    D_g: Vector
    gamma_g: Vector
    moved: Vector  # a state close by
    ahead: Vector  # values there: one step and two steps ahead and behind
    behind: Vector
    far_ahead: Vector
    far_behind: Vector
    G_ahead: Vector
    G_behind: Vector


class VelocityConstraintBlock(Block):
    """Of velocity constraints h; matrices row by row."""

    function: Whole  # its address
    n: Whole  # coordinates
    rows: Whole
    depends_on_time: Whole
    value: Vector
    A: Vector
    D_h: Vector
    gamma_h: Vector
    moved: Vector  # a state close by
    ahead: Vector  # values there: one step and two steps ahead and behind
    behind: Vector
    far_ahead: Vector
    far_behind: Vector


class SlopesBlock(Block):
    """Of derivatives of the values in another block with respect to (q, v), for Newton's matrices."""

    values: Whole  # address of the kernel that fills that block
    n: Whole  # coordinates
    first: Whole  # of these values in that block
    count: Whole
    columns: Whole  # entries of (q, v) on which they depend
    slopes: Vector  # row by row
    moved: Vector  # a state close by
    ahead: Vector  # values there
    filled: Vector  # a copy of that block, filled at states close by


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
def _differences(block, t, context, first, jacobian):
    """The Jacobian of the function with respect to n entries of the moved state, from ``first`` on; each is
    changed and restored.
    """
    n, at = block.n, block.moved
    for j in range(first, first + n):
        centre = at[j]
        h = _STEP * max(1.0, abs(centre))
        at[j] = centre + h
        status = call(block.function, t, at, at, context, block.ahead)
        at[j] = centre - h
        status |= call(block.function, t, at, at, context, block.behind)
        at[j] = centre + 2 * h
        status |= call(block.function, t, at, at, context, block.far_ahead)
        at[j] = centre - 2 * h
        status |= call(block.function, t, at, at, context, block.far_behind)
        at[j] = centre
        if status != OK:
            return status
        for i in range(block.rows):
            jacobian[i * n + j - first] = _slope(block, i, h)
    return OK


@njit(cache=True)
def _time_derivative(block, t, y, context, derivative):
    """The partial derivative of the function with respect to time."""
    h = _LARGEST_TIME
    status = call(block.function, t + h, y, y, context, block.ahead)
    status |= call(block.function, t - h, y, y, context, block.behind)
    status |= call(block.function, t + 2 * h, y, y, context, block.far_ahead)
    status |= call(block.function, t - 2 * h, y, y, context, block.far_behind)
    for i in range(block.rows):
        derivative[i] = _slope(block, i, h)
    return status


@njit(cache=True)
def _step_along(block, y):
    """A step along (1, v) that moves neither q nor t too far."""
    size = 1.0
    speed = 0.0
    for i in range(block.n):
        size = max(size, abs(y[i]))
        speed = max(speed, abs(y[block.n + i]))
    step = _STEP_TWICE * size / speed if speed > 0.0 else 1.0
    return min(step, _LARGEST_TIME) if block.depends_on_time else step


@njit(cache=True)
def _move(block, y, step):
    """The moved state becomes y after a step along v."""
    for i in range(block.n):
        block.moved[i] = y[i] + step * y[block.n + i]
        block.moved[block.n + i] = y[block.n + i]


@njit(cache=True)
def _values_along(block, t, y, context, h):
    """The values one and two steps h ahead and behind, along (1, v)."""
    _move(block, y, h)
    status = call(block.function, t + h, block.moved, y, context, block.ahead)
    _move(block, y, -h)
    status |= call(block.function, t - h, block.moved, y, context, block.behind)
    _move(block, y, 2 * h)
    status |= call(block.function, t + 2 * h, block.moved, y, context, block.far_ahead)
    _move(block, y, -2 * h)
    status |= call(block.function, t - 2 * h, block.moved, y, context, block.far_behind)
    return status


@njit(cache=True)
def _gradients(block, t, y, context):
    """The values g, G and g_t."""
    status = call(block.function, t, y, y, context, block.value)
    if status != OK:
        return status
    _move(block, y, 0.0)
    status |= _differences(block, t, context, 0, block.G)
    if block.depends_on_time:
        status |= _time_derivative(block, t, y, context, block.g_t)
    return status


@NativeKernel
def supply_gradients(t, y, memory, context, out):
    """The values g, G and g_t."""
    return _gradients(_constraint_block(memory), t, y, context)


@NativeKernel
def supply_constraint(t, y, memory, context, out):
    """The values g, G, g_t, D and γ."""
    block = _constraint_block(memory)
    g = block.value
    status = _gradients(block, t, y, context)
    if status != OK:
        return status
    h = _step_along(block, y)
    status |= _values_along(block, t, y, context, h)
    for i in range(block.rows):
        near = block.ahead[i] + block.behind[i]
        far = block.far_ahead[i] + block.far_behind[i]
        block.gamma_g[i] = (16 * near - far - 30 * g[i]) / (12 * h * h)
    _move(block, y, h)
    status |= _differences(block, t + h, context, 0, block.G_ahead)
    _move(block, y, -h)
    status |= _differences(block, t - h, context, 0, block.G_behind)
    for i in range(block.rows * block.n):
        block.D_g[i] = (block.G_ahead[i] - block.G_behind[i]) / (2 * h)
    return status


@NativeKernel
def supply_matrix(t, y, memory, context, out):
    """The value A."""
    block = _velocity_constraint_block(memory)
    _move(block, y, 0.0)
    return _differences(block, t, context, block.n, block.A)


@NativeKernel
def supply_slopes(t, y, memory, context, out):
    """Derivatives by central differences, as accurate as Newton's matrices need them."""
    block = _slopes_block(memory)
    at, filled, columns = block.moved, block.filled, block.columns
    for j in range(2 * block.n):
        at[j] = y[j]
    for j in range(columns):
        centre = at[j]
        h = _SLOPE_STEP * max(1.0, abs(centre))
        at[j] = centre + h
        status = call(block.values, t, at, filled, context, filled)
        for i in range(block.count):
            block.ahead[i] = filled[block.first + i]
        at[j] = centre - h
        status |= call(block.values, t, at, filled, context, filled)
        at[j] = centre
        if status != OK:
            return status
        for i in range(block.count):
            block.slopes[i * columns + j] = (block.ahead[i] - filled[block.first + i]) / (2 * h)
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
    h = _step_along(block, y)
    status |= _values_along(block, t, y, context, h)
    for i in range(block.rows):
        block.gamma_h[i] = _slope(block, i, h)
    return status


def new_block(role: str, n: int, rows: int, depends_on_time: bool) -> np.ndarray:
    """The block of a function, without any addresses."""
    samples = dict.fromkeys(("ahead", "behind", "far_ahead", "far_behind"), rows)
    numbers = {"n": n, "rows": rows, "depends_on_time": depends_on_time}
    match role:
        case "constraint":
            matrices = dict.fromkeys(("G", "D_g", "G_ahead", "G_behind"), rows * n)
            return ConstraintBlock.memory(
                **numbers, value=rows, g_t=rows, gamma_g=rows, moved=2 * n, **samples, **matrices
            )
        case "velocity_constraint":
            return VelocityConstraintBlock.memory(
                **numbers, value=rows, A=rows * n, D_h=rows * n, gamma_h=rows, moved=2 * n, **samples
            )
    return ValueBlock.memory(value=rows)

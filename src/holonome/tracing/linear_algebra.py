"""What numpy.linalg and np.cross do to traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from holonome.tracing.session import refuse
from holonome.tracing.values import Traced, TracedArray, as_array, column, has_traced, lower, traced

_LARGEST_DETERMINANT = 7


def cross(a: TracedArray, b: TracedArray) -> Any:
    """The vector product along the last axis: of three components, or of two, which gives the third."""
    first, second = np.moveaxis(a, -1, 0), np.moveaxis(b, -1, 0)
    if len(first) == len(second) == 2:
        return first[0] * second[1] - first[1] * second[0]
    (a1, a2, a3), (b1, b2, b3) = first, second
    return np.stack([a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1], axis=-1)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002
    x = as_array(x)
    if axis is None and ord is None:
        return _root_of_squares(x, None, keepdims)
    axes = tuple(range(x.ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    return _vector_norm(x, ord, axes[0], keepdims)


def _root_of_squares(x: TracedArray, axis: Any, keepdims: bool) -> Any:
    return np.sqrt(np.sum(x**2, axis=axis, keepdims=keepdims))


def _vector_norm(x: TracedArray, order: Any, axis: int, keepdims: bool) -> Any:
    if order in (None, 2):
        return _root_of_squares(x, axis, keepdims)
    if order in (np.inf, -np.inf):
        return (np.max if order > 0 else np.min)(abs(x), axis=axis, keepdims=keepdims)
    if not order:
        return np.sum(np.where(x != 0, 1.0, 0.0), axis=axis, keepdims=keepdims)
    total = np.sum(abs(x) ** order if order != 1 else abs(x), axis=axis, keepdims=keepdims)
    return total if order == 1 else total ** (1.0 / order)


def _matrix_norm(x: TracedArray, order: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    if order in (None, "fro"):
        return _root_of_squares(x, axes, keepdims)
    if order not in (1, -1, np.inf, -np.inf):
        refuse(f"it asks for the matrix norm of order {order}")
    summed, other = axes if abs(order) == 1 else axes[::-1]
    sums = np.sum(abs(x), axis=summed, keepdims=True)
    result = (np.max if order > 0 else np.min)(sums, axis=other, keepdims=True)
    return result if keepdims else np.squeeze(result, axis=axes)


def _matrix(array: np.ndarray) -> ca.SX:
    rows, columns = array.shape
    return ca.sparsify(ca.reshape(column(list(array.flat)), columns, rows).T)


def _of_square_matrices(function: Callable) -> Callable:
    """Apply a function of one matrix to a stack of matrices."""

    def rule(a: Any) -> Any:
        array = as_array(a)
        if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
            raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
        return function(array) if array.ndim == 2 else as_array([rule(part) for part in array])

    return rule


@_of_square_matrices
def inv(a: TracedArray) -> Any:
    return solve(a, np.eye(len(a)))


@_of_square_matrices
def det(a: TracedArray) -> Any:
    if len(a) > _LARGEST_DETERMINANT:
        refuse(f"it takes the determinant of a matrix with {len(a)} rows, more than {_LARGEST_DETERMINANT}")
    return Traced(ca.densify(ca.det(_matrix(a))))


def solve(a: Any, b: Any) -> Any:
    a, b = as_array(a), as_array(b)
    if a.ndim > 2:
        stack = [b] * len(a) if b.ndim == 1 else np.broadcast_to(b, a.shape[:-1] + b.shape[-1:])
        return as_array([solve(matrix, side) for matrix, side in zip(a, stack, strict=True)])
    if a.shape != (len(a), len(b)):
        raise np.linalg.LinAlgError(f"solve: the matrix has shape {a.shape}, the right-hand side {b.shape}")
    if not has_traced(a):
        return np.linalg.inv(lower(a)) @ b
    try:
        solution = ca.solve(_matrix(a), _matrix(b.reshape(len(b), -1)))
    except RuntimeError:
        refuse("it solves linear equations whose matrix is singular whatever the values are")
    return traced(ca.vec(ca.densify(solution).T), b.shape)

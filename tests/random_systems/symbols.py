"""Expressions of CasADi that NumPy's functions accept, one by one; nothing of holonome's own tracing."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np


class Symbol:
    """A scalar; arrays of them are arrays of objects."""

    def __init__(self, value: Any) -> None:
        self.value = ca.SX(value)

    def __add__(self, other):
        return combined(ca.plus, self, other)

    def __sub__(self, other):
        return combined(ca.minus, self, other)

    def __rsub__(self, other):
        return combined(ca.minus, other, self)

    def __mul__(self, other):
        return combined(ca.times, self, other)

    def __truediv__(self, other):
        return combined(ca.rdivide, self, other)

    def __rtruediv__(self, other):
        return combined(ca.rdivide, other, self)

    def __pow__(self, other):
        return combined(ca.power, self, other)

    def __gt__(self, other):
        return combined(ca.gt, self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return Symbol(-self.value)

    def __abs__(self):
        return Symbol(ca.fabs(self.value))

    def sin(self):
        return Symbol(ca.sin(self.value))

    def cos(self):
        return Symbol(ca.cos(self.value))

    def sqrt(self):
        return Symbol(ca.sqrt(self.value))

    def __array_function__(self, function, types, args, kwargs):
        if function is np.where:
            return Symbol(ca.if_else(*(plain(value) for value in args)))
        if function is np.interp:
            x, knots, values = args
            return Symbol(ca.pw_lin(plain(x), ca.DM(knots), ca.DM(values)))
        return function._implementation(*args, **kwargs)


def plain(value: Any) -> Any:
    return value.value if isinstance(value, Symbol) else value


def combined(operation, left, right):
    """Of two scalars; NumPy distributes over arrays."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return NotImplemented
    return Symbol(operation(plain(left), plain(right)))


def symbols(vector: ca.SX) -> np.ndarray:
    """The entries of a column."""
    return np.array([Symbol(entry) for entry in ca.vertsplit(vector)] if vector.numel() else [], dtype=object)


def expression(value: Any) -> ca.SX:
    """A vector or matrix of symbols and numbers, dense."""
    array = np.atleast_1d(np.asarray(value, dtype=object))
    shape = array.shape if array.ndim == 2 else (array.size, 1)
    entries = [plain(entry) for entry in array.ravel(order="F")]
    return ca.densify(ca.reshape(ca.vertcat(*entries), *shape)) if entries else ca.SX(*shape)

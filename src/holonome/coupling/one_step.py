"""One-step methods at constant step size under prescribed forces: explicit Euler, Heun's method and the
trapezoidal rule on the underlying ODE.

    Euler           y_{k+1} = y_k + h F(t_k, y_k, τ_k)
    Heun            y_{k+1} = y_k + ½h (F_k + F(t_{k+1}, y_k + h F_k, τ_{k+1}))
    trapezoidal     y_{k+1} = y_k + ½h (F_k + F(t_{k+1}, y_{k+1}, τ_{k+1}))

Here y = (q, v), F = (v, a), and τ_k are the generalised forces at the mesh points, which a context holds as
parameters of the driven system (:func:`holonome.coupling.driven.driven_system`).  The trapezoidal rule solves
its implicit equation by a simplified Newton method with the matrix I − ½h ∂F/∂y at the predictor.

All functions take ``addresses``, an array of the addresses of compiled kernels (:mod:`.jacobians`), the
context, and ``force_offset``, the position of the force in it.
"""

import numpy as np
from numba import njit

from holonome.coupling.jacobians import DENSE_DERIVATIVE, DERIVATIVE, call_with_fallback, state_jacobian
from holonome.machine.context import OK

EULER = 0
HEUN = 1
TRAPEZOIDAL = 2
NO_CONVERGENCE = 9
"""Status of :func:`integrate` where Newton's method fails."""

_MOST_NEWTON_STEPS = 20
_ROUNDING = 4e-16
_STAGNATION = 1e-11
"""Relative size below which Newton corrections that no longer fall count as rounding errors."""


@njit(cache=True, nogil=True)
def _evaluate(addresses, t, y, context, F):
    """F under the force that the context holds."""
    return call_with_fallback(addresses[DERIVATIVE], addresses[DENSE_DERIVATIVE], t, y, y, context, F)


@njit(cache=True, nogil=True)
def _inverse_newton_matrix(addresses, t, y, F, context, h):
    """(I − ½h ∂F/∂y)⁻¹, and the status."""
    size = y.size
    jacobian = np.zeros((size, size))
    status = state_jacobian(addresses, t, y, F, context, jacobian)
    if status != OK or not np.all(np.isfinite(jacobian)):
        return jacobian, status
    return np.ascontiguousarray(np.linalg.inv(np.eye(size) - 0.5 * h * jacobian)), status


@njit(cache=True, nogil=True)
def _solve_trapezoidal(addresses, t_new, h, explicit_part, context, y_new, F_new):
    """Solve y_new = explicit_part + ½h F(t_new, y_new) under the force that the context holds; ``y_new`` is
    the predictor at first, ``F_new`` becomes F at the solution.
    """
    size = y_new.size
    status = _evaluate(addresses, t_new, y_new, context, F_new)
    if status != OK:
        return status
    inverse, status = _inverse_newton_matrix(addresses, t_new, y_new, F_new, context, h)
    if status != OK:
        return status
    smallest = np.inf
    for _ in range(_MOST_NEWTON_STEPS):
        correction = inverse @ (explicit_part + 0.5 * h * F_new[:size] - y_new)
        if not np.all(np.isfinite(correction)):
            return NO_CONVERGENCE
        y_new += correction
        status = _evaluate(addresses, t_new, y_new, context, F_new)
        if status != OK:
            return status
        change = np.max(np.abs(correction))
        largest = np.max(np.abs(y_new))
        if change <= _ROUNDING * largest or (change >= 0.5 * smallest and change <= _STAGNATION * largest):
            return OK
        smallest = min(smallest, change)
    return NO_CONVERGENCE


@njit(cache=True, nogil=True)
def integrate(kind, addresses, t, forces, context, force_offset, states, accelerations):
    """Fill ``states`` (points × 2n) from its first row, and ``accelerations`` (points × n); ``forces``
    (points × n) act at the times ``t``.  Returns the status.
    """
    size = states.shape[1]
    n = size // 2
    F = np.empty(size + 1)
    F_new = np.empty(size + 1)
    for k in range(t.size):
        y = states[k]
        context[force_offset : force_offset + n] = forces[k]
        status = _evaluate(addresses, t[k], y, context, F)
        if status != OK:
            return status
        accelerations[k] = F[n:size]
        if k == t.size - 1:
            break
        h = t[k + 1] - t[k]
        y_new = states[k + 1]
        y_new[:] = y + h * F[:size]
        context[force_offset : force_offset + n] = forces[k + 1]
        if kind == HEUN:
            status = _evaluate(addresses, t[k + 1], y_new, context, F_new)
            y_new[:] = y + 0.5 * h * (F[:size] + F_new[:size])
        elif kind == TRAPEZOIDAL:
            explicit_part = y + 0.5 * h * F[:size]
            status = _solve_trapezoidal(addresses, t[k + 1], h, explicit_part, context, y_new, F_new)
        if status != OK:
            return status
    return OK


@njit(cache=True, nogil=True)
def evaluate(addresses, t, states, forces, context, force_offset, accelerations, jacobians):
    """v′ at given points under given forces, into ``accelerations`` (points × n), and ∂v′/∂(q, v), into
    ``jacobians`` (points × n × 2n) unless that is empty.  Returns the status.
    """
    size = states.shape[1]
    n = size // 2
    F = np.empty(size + 1)
    jacobian = np.zeros((size, size))
    for k in range(t.size):
        context[force_offset : force_offset + n] = forces[k]
        status = _evaluate(addresses, t[k], states[k], context, F)
        if status == OK and jacobians.size > 0:
            status = state_jacobian(addresses, t[k], states[k], F, context, jacobian)
            jacobians[k] = jacobian[n:]
        if status != OK:
            return status
        accelerations[k] = F[n:size]
    return OK

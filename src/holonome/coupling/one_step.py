"""One-step methods at constant step under a given history of forces: explicit Euler, Heun's method and the
trapezoidal rule on the underlying ODE.

    Euler           y_{k+1} = y_k + h F(t_k, y_k, τ_k)
    Heun            y_{k+1} = y_k + ½h (F_k + F(t_{k+1}, y_k + h F_k, τ_{k+1}))
    trapezoidal     y_{k+1} = y_k + ½h (F_k + F(t_{k+1}, y_{k+1}, τ_{k+1}))

y = (q, v), F = (v, a), and τ_k are generalised forces at the points of the mesh, which enter through
parameters of the system (:func:`holonome.coupling.coupled.driven`). The implicit equation of the trapezoidal
rule is solved by Newton's method with a matrix from differences of F.
"""

import numpy as np
from numba import njit

from holonome.machine.calls import call, pointer
from holonome.machine.context import OK, SINGULAR

EULER, HEUN, TRAPEZOIDAL = 0, 1, 2
NO_CONVERGENCE = 9
"""Status of :func:`march` where Newton's method fails."""

_NEWTON_STEPS, _ROUNDING, _DIFFERENCE = 20, 4e-16, 1e-7


@njit(cache=True, nogil=True)
def _rate(address, twin, t, y, tau, context, place, out):
    """F(t, y, τ), by the dense kernel where the other one finds the matrix singular."""
    for i in range(tau.size):
        context[place + i] = tau[i]
    status = call(address, t, pointer(y), pointer(y), pointer(context), pointer(out))
    if status == SINGULAR:
        status = call(twin, t, pointer(y), pointer(y), pointer(context), pointer(out))
    return status


@njit(cache=True, nogil=True)
def _newton_matrix(address, twin, t, y, tau, context, place, F, h):
    """I − ½h ∂F/∂y."""
    size = y.size
    matrix, moved, there = np.eye(size), y.copy(), np.empty(size + 1)
    for j in range(size):
        step = _DIFFERENCE * max(1.0, abs(y[j]))
        moved[j] = y[j] + step
        status = _rate(address, twin, t, moved, tau, context, place, there)
        if status != OK:
            return matrix, status
        moved[j] = y[j]
        for i in range(size):
            matrix[i, j] -= 0.5 * h * (there[i] - F[i]) / step
    return matrix, OK


@njit(cache=True, nogil=True)
def _trapezoidal_step(address, twin, t, h, y, F, tau, context, place, new, there):
    """Solve for the new state, which starts as the predictor; ``there`` is F at it in the end."""
    size = y.size
    status = _rate(address, twin, t + h, new, tau, context, place, there)
    if status != OK:
        return status
    matrix, status = _newton_matrix(address, twin, t + h, new, tau, context, place, there, h)
    if status != OK:
        return status
    smallest = np.inf
    for _ in range(_NEWTON_STEPS):
        residual = y + 0.5 * h * (F[:size] + there[:size]) - new
        if not np.all(np.isfinite(residual)):
            return NO_CONVERGENCE
        step = np.linalg.solve(matrix, residual)
        for i in range(size):
            new[i] += step[i]
        status = _rate(address, twin, t + h, new, tau, context, place, there)
        if status != OK:
            return status
        moved = np.max(np.abs(step))
        if moved <= _ROUNDING * np.max(np.abs(new)) or (
            moved >= 0.5 * smallest and moved <= 1e-11 * np.max(np.abs(new))
        ):
            return OK
        smallest = min(smallest, moved)
    return NO_CONVERGENCE


@njit(cache=True, nogil=True)
def march(kind, address, twin, t, tau, context, place, states, a):
    """Fill ``states`` (points × 2n) from its first row, and the accelerations ``a``; ``t`` and ``tau``
    (points × n) belong to the points.  Returns the status.
    """
    size = states.shape[1]
    F, there = np.empty(size + 1), np.empty(size + 1)
    for k in range(t.size):
        y = states[k]
        status = _rate(address, twin, t[k], y, tau[k], context, place, F)
        if status != OK:
            return status
        a[k] = F[size // 2 : size]
        if k == t.size - 1:
            break
        new, h = states[k + 1], t[k + 1] - t[k]
        for i in range(size):
            new[i] = y[i] + h * F[i]
        if kind == HEUN:
            status = _rate(address, twin, t[k + 1], new, tau[k + 1], context, place, there)
            for i in range(size):
                new[i] = y[i] + 0.5 * h * (F[i] + there[i])
        elif kind == TRAPEZOIDAL:
            status = _trapezoidal_step(address, twin, t[k], h, y, F, tau[k + 1], context, place, new, there)
        if status != OK:
            return status
    return OK


@njit(cache=True, nogil=True)
def accelerations(address, twin, t, states, tau, context, place, out):
    """v′ at given points under given forces, into ``out`` (points × n).  Returns the status."""
    size = states.shape[1]
    F = np.empty(size + 1)
    for k in range(t.size):
        status = _rate(address, twin, t[k], states[k], tau[k], context, place, F)
        if status != OK:
            return status
        out[k] = F[size // 2 : size]
    return OK


@njit(cache=True, nogil=True)
def sensitivities(address, twin, t, states, tau, context, place, out):
    """∂v′/∂(q, v) at given points under given forces by differences, into ``out`` (points × n × 2n).  Returns
    the status.
    """
    size = states.shape[1]
    n = size // 2
    F, there, moved = np.empty(size + 1), np.empty(size + 1), np.empty(size)
    for k in range(t.size):
        status = _rate(address, twin, t[k], states[k], tau[k], context, place, F)
        for j in range(size):
            moved[:] = states[k]
            step = _DIFFERENCE * max(1.0, abs(moved[j]))
            moved[j] += step
            status = max(status, _rate(address, twin, t[k], moved, tau[k], context, place, there))
            if status != OK:
                return status
            for i in range(n):
                out[k, i, j] = (there[n + i] - F[n + i]) / step
    return OK

"""Jacobians of the equations of motion and of the coupling.

Functions that can be traced are differentiated exactly.  The accelerations a and multipliers λ of a subsystem
satisfy M a + Cᵀ λ = f and C a = −γ, so that

    | M  Cᵀ |  ∂  | a |     ∂  | f − M a − Cᵀ λ |
    | C  0  |  ∂y | λ |  =  ∂y |   −γ − C a     |       with a and λ fixed on the right, y = (q, v).

A compiled kernel evaluates both matrices from CasADi expressions; the solution of the system is dense linear
algebra.  Functions that are called rather than traced are black boxes; kernels that contain them are
differentiated by central differences, in :func:`jacobian_by_differences` and nowhere else.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from numba import njit

from holonome.dynamics.kernels import dense_derivative, dense_multipliers, kernels
from holonome.equations.model import Model
from holonome.machine.calls import call, pointer
from holonome.machine.context import OK, SINGULAR, named_context
from holonome.problem.system import System

DERIVATIVE = 0
DENSE_DERIVATIVE = 1
MULTIPLIERS = 2
DENSE_MULTIPLIERS = 3
LINEARIZATION = 4
"""Positions in an array of addresses; the address of the linearization is 0 where it is not available."""

DIFFERENCE_STEP = 1e-4
"""Step of central differences relative to max(1, |y|).  Functions that are called give γ to about 1e-9, so a
smaller step would amplify noise.
"""

_PSEUDO_INVERSE_TOLERANCE = 1e-12


def addresses_of(system: System) -> np.ndarray:
    """Addresses of the kernels that :func:`state_jacobian` and the one-step methods call."""
    compiled = kernels(system)
    exact = is_traced(system)
    return np.array(
        [
            compiled.derivative,
            dense_derivative.address,
            compiled.multipliers,
            dense_multipliers.address,
            system.kernel("linearized motion", _linearized_motion).address if exact else 0,
        ],
        dtype=np.int64,
    )


def is_traced(system: System) -> bool:
    """Whether the equations of motion consist of expressions only, so that they can be differentiated."""
    model = system.model
    equations = ca.vertcat(ca.vec(model.M), model.f, ca.vec(model.C), model.gamma)
    return not (system.supplied and ca.depends_on(equations, model.p[system.parameters.size :]))


def row_major(matrix: ca.SX) -> ca.SX:
    """All entries of a matrix as a column, row after row."""
    return ca.reshape(ca.densify(matrix).T, matrix.numel(), 1)


def _linearized_motion(model: Model):
    """Kernel z = (a, λ) → (M, C, ∂(f − M a − Cᵀλ, −γ − C a)/∂y)."""
    a = ca.SX.sym("a", model.n)
    lam = ca.SX.sym("lam", model.rows)
    residual = ca.vertcat(model.f - model.M @ a - model.C.T @ lam, -model.gamma - model.C @ a)
    matrices = (model.M, model.C, ca.jacobian(residual, model.y))
    return model.y, ca.vertcat(a, lam), ca.vertcat(*map(row_major, matrices)), None


def coupling_terms(model: Model):
    """Kernel z = (a, λ) → (Gᵀ λ, G a + γ) of the coupling constraints."""
    z, terms = _coupling_terms(model)
    return model.y, z, ca.densify(terms), None


def coupling_jacobian(model: Model):
    """Kernel z = (a, λ) → ∂(Gᵀ λ, G a + γ)/∂(q, v)."""
    z, terms = _coupling_terms(model)
    return model.y, z, row_major(ca.jacobian(terms, model.y)), None


def _coupling_terms(model: Model) -> tuple[ca.SX, ca.SX]:
    a = ca.SX.sym("a", model.n)
    lam = ca.SX.sym("lam", model.rows)
    return ca.vertcat(a, lam), ca.vertcat(model.G.T @ lam, model.G @ a + model.gamma)


@njit(cache=True, nogil=True)
def call_with_fallback(address, dense_address, t, y, z, context, out):
    """Call a kernel, or its dense counterpart where it finds the matrix singular."""
    status = call(address, t, pointer(y), pointer(z), pointer(context), pointer(out))
    if status == SINGULAR and dense_address != 0:
        status = call(dense_address, t, pointer(y), pointer(z), pointer(context), pointer(out))
    return status


@njit(cache=True, nogil=True)
def jacobian_by_differences(address, dense_address, t, y, z, context, jacobian):
    """∂out/∂y of a kernel by central differences, into ``jacobian``.  Returns the status."""
    rows = jacobian.shape[0]
    forward = np.empty(rows + 1)
    backward = np.empty(rows + 1)
    shifted = y.copy()
    for j in range(y.size):
        step = DIFFERENCE_STEP * max(1.0, abs(y[j]))
        shifted[j] = y[j] + step
        status = call_with_fallback(address, dense_address, t, shifted, z, context, forward)
        if status != OK:
            return status
        shifted[j] = y[j] - step
        status = call_with_fallback(address, dense_address, t, shifted, z, context, backward)
        if status != OK:
            return status
        shifted[j] = y[j]
        jacobian[:, j] = (forward[:rows] - backward[:rows]) / (2 * step)
    return OK


@njit(cache=True, nogil=True)
def state_jacobian(addresses, t, y, F, context, jacobian):
    """∂F/∂y of F = (v, a) at a point where F is known, into ``jacobian`` (2n × 2n).  Returns the status."""
    size = y.size
    if addresses[LINEARIZATION] == 0:
        return jacobian_by_differences(
            addresses[DERIVATIVE], addresses[DENSE_DERIVATIVE], t, y, y, context, jacobian
        )
    c = named_context(pointer(context))
    n, m = c.coordinates, c.rows
    z = np.empty(n + m + 1)
    z[:n] = F[n:size]
    full_rank = addresses[MULTIPLIERS] != addresses[DENSE_MULTIPLIERS]
    if m > 0:
        lam = np.empty(m + 1)
        status = call(addresses[MULTIPLIERS], t, pointer(y), pointer(y), pointer(context), pointer(lam))
        if status == SINGULAR:
            full_rank = False
            status = call(
                addresses[DENSE_MULTIPLIERS], t, pointer(y), pointer(y), pointer(context), pointer(lam)
            )
        if status != OK:
            return status
        z[n : n + m] = lam[:m]
    values = np.empty(n * n + m * n + (n + m) * size + 1)
    status = call(addresses[LINEARIZATION], t, pointer(y), pointer(z), pointer(context), pointer(values))
    if status != OK:
        return status
    if not np.all(np.isfinite(values[:-1])):
        return SINGULAR
    jacobian[:] = 0.0
    for i in range(n):
        jacobian[i, n + i] = 1.0
    jacobian[n:] = _solve_linearized(n, m, values, full_rank)[:n]
    return OK


@njit(cache=True, nogil=True)
def _solve_linearized(n, m, values, full_rank):
    """∂(a, λ)/∂y up to a scaling of the rows of λ, from what the kernel of the linearization wrote."""
    M = values[: n * n].reshape((n, n))
    C = values[n * n : n * n + m * n].reshape((m, n))
    right_side = values[n * n + m * n : -1].reshape((n + m, 2 * n)).copy()
    matrix = np.zeros((n + m, n + m))
    matrix[:n, :n] = M
    size = np.max(np.abs(M))
    for i in range(m):
        length = np.sqrt(np.sum(C[i] ** 2))
        scale = size / length if length > 0.0 else 1.0
        matrix[n + i, :n] = scale * C[i]
        matrix[:n, n + i] = scale * C[i]
        right_side[n + i] *= scale
    if full_rank:
        return np.linalg.solve(matrix, right_side)
    return np.linalg.pinv(matrix, _PSEUDO_INVERSE_TOLERANCE) @ right_side


@njit(cache=True, nogil=True)
def jacobians_at_points(address, t, states, z, context, exact, out):
    """Jacobians at many points, into ``out`` (points × rows × 2n): what the kernel at this address returns if
    ``exact``, otherwise differences of it.  Returns the number of points done before a failure.
    """
    rows, columns = out.shape[1:]
    values = np.empty(rows * columns + 1)
    for k in range(t.size):
        if exact:
            status = call(address, t[k], pointer(states[k]), pointer(z[k]), pointer(context), pointer(values))
            out[k] = values[:-1].reshape((rows, columns))
        else:
            status = jacobian_by_differences(address, 0, t[k], states[k], z[k], context, out[k])
        if status != OK:
            return k
    return t.size

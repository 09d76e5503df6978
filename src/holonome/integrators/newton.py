"""Newton's method inside a step: simplified, with an estimate of its rate, for every implicit formulation.

The iteration is that of DASSL: the correction is damped by 2/(1 + cj/cj_old) if the matrix belongs to another
cj; it has converged when S ‖Δ‖ falls below a tolerance, with S = ρ/(1 − ρ) from the measured rate ρ, or when
‖Δ‖ is at rounding level; it has failed when ρ > 0.9 or after four iterations.  S starts at 100 whenever the
matrix or cj is new.  It is carried to the next step while the matrix stays; without a lower bound, one step
that converged at once makes it so small that the following ones accept the result of the first iteration
however large its error, while the matrix becomes outdated.
"""

import math

from numba import njit

from holonome.algebra import dense
from holonome.machine.calls import call, shift
from holonome.machine.context import OK, SINGULAR

FACTORED, DENSE = 1, 2
"""Which factorization is in place: the one of the formulation or the dense one."""


@njit(cache=True, error_model="numpy")
def evaluate_matrix(w, context, t, cj):
    """Factor the Newton matrix at (Y, Y′); returns (status, kind)."""
    w.scratch[0] = cj
    for i in range(w.multipliers):
        w.scratch[1 + i] = w.row_shift[i]
    for i in range(w.tolerances):
        w.scratch[1 + w.multipliers + i] = w.block[1 + i]
    if w.factors_kernel != 0:
        status = call(w.factors_kernel, t, w.y, w.scratch, context, w.factors)
        total = 0.0
        for i in range(w.factor_count):
            total += w.factors[i]
        if status == OK and total - total == 0.0:
            return OK, FACTORED
        if status > 1 or w.matrix_kernel == 0:
            return max(status, SINGULAR), FACTORED
    for i in range(w.size * w.size):
        w.dense[i] = 0.0
    status = call(w.matrix_kernel, t, w.y, w.scratch, context, w.dense)
    if status != OK:
        return status, DENSE
    total = 0.0
    for i in range(w.size * w.size):
        total += w.dense[i]
    if total - total != 0.0 or not dense.factor(w.dense, w.pivots, w.row_scale, w.size):
        return 1, DENSE
    return OK, DENSE


@njit(cache=True, error_model="numpy")
def solve(w, context, kind, cj):
    """Δ = matrix⁻¹ F, for the right-hand side in ``delta``; left in ``scratch``."""
    if kind == FACTORED:
        call(w.solution_kernel, 0.0, w.delta, w.factors, context, w.scratch)
        return
    for i in range(w.size):
        w.delta[i] *= cj ** w.row_powers[i]
    dense.solve(w.dense, w.pivots, w.delta, w.size)
    for i in range(w.size):
        w.scratch[i] = w.delta[i] * cj ** w.column_powers[i]


@njit(cache=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def norm(x, weights, count, size):
    """Weighted root mean square; weights are zero for components that are not tested."""
    total = 0.0
    for i in range(size):
        e = x[i] * weights[i]
        total += e * e
    return math.sqrt(total / count) if count > 0.0 else 0.0


@njit(cache=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _correct(w, damping, cj):
    """Subtract the damped Δ from Y and E, cj times it from Y′; returns its norm."""
    y, dy, e, delta, weights, total = w.y, shift(w.y, w.size), w.e, w.scratch, w.newton_weights, 0.0
    untested = 1.0 if w.rate_floor > 0.0 else damping
    for i in range(w.size):
        step = (untested if weights[i] == 0.0 else damping) * delta[i]
        y[i] -= step
        e[i] -= step
        dy[i] -= cj * step
        step *= weights[i]
        total += step * step
    return math.sqrt(total / w.newton_count) if w.newton_count > 0.0 else 0.0


@njit(cache=True, error_model="numpy")
def iterate(w, context, t, cj, cj_of_matrix, kind, rate_factor, most):
    """Solve F(t, Y, Y′) = 0 from the prediction in (Y, Y′); the corrections are added to E.

    A matrix of another cj is made up for by damping, except in components that are not tested, such as
    multipliers: extrapolation amplifies what damping leaves of their error in every step, and no
    test would notice.  DASSL, which has no lower bound of S, damps them all.

    Returns (status, converged, rate factor S, number of evaluations).
    """
    damping = 2.0 / (1.0 + cj / cj_of_matrix)
    rounding = 100.0 * 2.2e-16 * norm(w.y, w.newton_weights, w.newton_count, w.size)
    first, evaluations = 0.0, 0
    if w.tolerances > 0:
        w.block[0] = cj
    for m in range(most):
        status = call(w.residual_kernel, t, w.y, w.block, context, w.delta)
        evaluations += 1
        if status != OK:
            return status, False, rate_factor, evaluations
        solve(w, context, kind, cj_of_matrix)
        change = _correct(w, damping, cj)
        if change <= rounding:
            return OK, True, rate_factor, evaluations
        if not change < 1e100:
            return OK, False, rate_factor, evaluations
        if m > 0:
            rate = (
                change / first
                if m == 1
                else math.sqrt(change / first)
                if m == 2
                else (change / first) ** (1.0 / m)
            )
            if rate > 0.9:
                return OK, False, rate_factor, evaluations
            rate_factor = max(rate / (1.0 - rate), w.rate_floor)
        else:
            first = change
        if rate_factor * change <= w.newton_tolerance:
            return OK, True, rate_factor, evaluations
    return OK, False, rate_factor, evaluations

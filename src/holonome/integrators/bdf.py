"""Backward differentiation formulas with variable step and order, fixed leading coefficient: the algorithm of
DASSL.

The history is kept as modified divided differences φ_1 … φ_{k+2}; with ψ_i = h_n + … + h_{n−i+1}:

    α_i = h/ψ_i,   β_i, σ_i, γ_i by recursion,   α_s = −Σ 1/i,   α⁰ = −Σ α_i,   cj = −α_s/h
    prediction  Y⁰ = Σ φ*_i,  Y′⁰ = Σ γ_i φ*_i;   corrector  F(t, Y, Y′⁰ + cj (Y − Y⁰)) = 0;   error = max(α_{k+1}, |α_{k+1} + α_s − α⁰|) ‖Y − Y⁰‖

References
----------
K. E. Brenan, S. L. Campbell, L. R. Petzold, Numerical Solution of Initial-Value Problems in
Differential-Algebraic Equations, SIAM 1996, chapter 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from holonome.formulations.coordinate_projection import Projector, onto_manifold, project
from holonome.formulations.implicit import CHANGED, FRESH
from holonome.integrators import loop as run
from holonome.integrators import newton
from holonome.integrators.loop import part
from holonome.machine.calls import NativeKernel, call, pointer, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED

MOST = 6
"""Highest order; beyond 5 only at constant step."""

(
    UNKNOWNS,
    COORDINATES,
    MAX_ORDER,
    MAX_ITERATIONS,
    NEWTON_TOLERANCE,
    RESIDUAL_KERNEL,
    FACTORS_KERNEL,
    SOLUTION_KERNEL,
    MATRIX_KERNEL,
    FACTOR_COUNT,
    PHI,
    PSI,
    ALPHA,
    BETA,
    SIGMA,
    GAMMA,
    ERROR_WEIGHTS,
    YY,
    E,
    DELTA,
    SCRATCH,
    FACTORS,
    DENSE,
    PIVOTS,
    ROW_SCALE,
    ERROR_MASK,
    NEWTON_MASK,
    ROW_POWERS,
    COLUMN_POWERS,
    ATOL_ALL,
    DENSE_LANDING,
    DENSE_LANDED,
    MOVED,
    KEPT,
) = range(30, 64)
"""Places in the header of the memory that belong to this integrator."""

(
    ORDER,
    ORDER_OLD,
    NS,
    PHASE,
    HAVE_MATRIX,
    KIND,
    NJEV,
    NEWTON_FAILURES,
    ERROR_FAILURES,
    CONSTANT_ORDER,
    FAILED_IN_STEP,
    NEWTON_IN_STEP,
    TRAPPED,
    NEW_STARTS,
) = range(24, 38)
"""Places in ``counts`` that belong to this integrator."""

(
    CJ,
    CJ_OF_MATRIX,
    CJ_LAST,
    RATE_FACTOR,
    H_OLD,
    CENTRE,
    CK,
    CONSTANT_STEP,
    RATE_FLOOR,
    PROJECT,
    PREDICTION_KERNEL,
    NEWTON_WEIGHTS,
    SPARE,
    MULTIPLIERS,
    BLOCK,
    AFTER_KERNEL,
    PROJECTION_FACTORS,
    PROJECTION_KERNEL,
    PROJECTION_SIZE,
    PROJECTION_REPEATED,
    PROJECTION_Z,
    PROJECTED,
) = range(64, 86)
_XRATE = 0.25

_LOW, _TINY, _PATIENCE, _BACK = 2, 0.01, 8, 0.01
"""What keeps the order from staying low for good (`_choose`, `_shrink`): which orders are low; an error in
units of the tolerance that lets order and size rise together; failures before a new start, and what it makes
of the step.
"""

_AT_ONCE = 256
"""Unknowns whose differences are gone through together, so that they stay in the fastest cache."""


@dataclass(frozen=True)
class BDF:
    """Backward differentiation formulas.

    Parameters
    ----------
    max_order
        Highest order, 1 to 5 (6 with a constant step).
    step
        Constant step size; None chooses it by the tolerances.
    order
        Constant order, with a constant step, for order studies.
    newton_tolerance
        Bound for the estimated error of Newton's method, in units of the tolerance.
    rate_floor
        Lower bound of the factor by which a change of Newton's method is multiplied to estimate its error.

    DASSL has 0.33 and 0 for the last two (``BDF.dassl()``): errors that it leaves hide in the higher
    differences, keep the order low and cost a third more steps. With 0 the choice of the order is DASSL's in
    every respect as well; otherwise a run that stays at low order under stiff forces makes a new start.

    References
    ----------
    K. E. Brenan, S. L. Campbell, L. R. Petzold, Numerical Solution of Initial-Value Problems in
    Differential-Algebraic Equations, SIAM 1996.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> second = hn.solve(pendulum.system, (0, 10), pendulum.q0, pendulum.v0, method=hn.Method(hn.GGL(), hn.BDF(max_order=2)))
    >>> fifth = hn.solve(pendulum.system, (0, 10), pendulum.q0, pendulum.v0, method=hn.Method(hn.GGL(), hn.BDF()))
    >>> second.steps > 3 * fifth.steps, int(fifth.history.order.max())
    (True, 5)
    """

    max_order: int = 5
    step: float | None = None
    order: int | None = None
    newton_tolerance: float = 0.01
    rate_floor: float = 0.1

    @classmethod
    def dassl(cls, max_order: int = 5) -> BDF:
        """With the convergence test and the choice of the order of DASSL, as in the papers."""
        return cls(max_order, newton_tolerance=0.33, rate_floor=0.0)

    def __post_init__(self) -> None:
        most = 6 if self.step is not None else 5
        if not 1 <= self.max_order <= most:
            raise ValueError(
                f"BDF: max_order {self.max_order!r}; choose 1 to {most}"
                + ("" if most == 6 else " (6 needs a constant step)")
            )
        if self.order is not None and (self.step is None or not 1 <= self.order <= 6):
            raise ValueError(
                f"BDF: order {self.order!r}; a constant order is 1 to 6 and needs a constant step"
            )


class Parts(NamedTuple):
    """The memory taken apart once."""

    size: int
    n: int
    residual_kernel: int
    factors_kernel: int
    solution_kernel: int
    matrix_kernel: int
    factor_count: int
    newton_tolerance: float
    rate_floor: float
    error_count: float
    newton_count: float
    rtol: float
    atol: Any
    y: Any
    phi: Any
    psi: Any
    alpha: Any
    beta: Any
    sigma: Any
    gamma: Any
    error_weights: Any
    newton_weights: Any
    e: Any
    delta: Any
    scratch: Any
    factors: Any
    dense: Any
    pivots: Any
    row_scale: Any
    error_mask: Any
    newton_mask: Any
    row_powers: Any
    column_powers: Any
    multipliers: int
    tolerances: int
    spare: Any
    block: Any


@njit(cache=True, error_model="numpy")
def _parts(memory):
    size = int(memory[UNKNOWNS])
    error_mask, newton_mask = part(memory, ERROR_MASK), part(memory, NEWTON_MASK)
    error_count, newton_count = 0.0, 0.0
    for i in range(size):
        error_count += error_mask[i] > 0.0
        newton_count += newton_mask[i] > 0.0
    tolerances = int(memory[COORDINATES]) if memory[PREDICTION_KERNEL] == 0.0 else 0
    return Parts(
        size,
        int(memory[COORDINATES]),
        int(memory[RESIDUAL_KERNEL]),
        int(memory[FACTORS_KERNEL]),
        int(memory[SOLUTION_KERNEL]),
        int(memory[MATRIX_KERNEL]),
        int(memory[FACTOR_COUNT]),
        memory[NEWTON_TOLERANCE],
        memory[RATE_FLOOR],
        error_count,
        newton_count,
        memory[run.RTOL],
        part(memory, ATOL_ALL),
        part(memory, YY),
        part(memory, PHI),
        part(memory, PSI),
        part(memory, ALPHA),
        part(memory, BETA),
        part(memory, SIGMA),
        part(memory, GAMMA),
        part(memory, ERROR_WEIGHTS),
        part(memory, NEWTON_WEIGHTS),
        part(memory, E),
        part(memory, DELTA),
        part(memory, SCRATCH),
        part(memory, FACTORS),
        part(memory, DENSE),
        part(memory, PIVOTS),
        part(memory, ROW_SCALE),
        error_mask,
        newton_mask,
        part(memory, ROW_POWERS),
        part(memory, COLUMN_POWERS),
        int(memory[MULTIPLIERS]),
        tolerances,
        part(memory, SPARE),
        part(memory, BLOCK),
    )


def own_memory(compiled, projection, n: int, offset: int) -> tuple[np.ndarray, dict[int, float]]:
    """The integrator's part of the memory, beginning at ``offset``, and the entries of the header that
    describe it.
    """
    residual, factor_count, block = compiled.residual, compiled.factor_count, compiled.block
    size, kept, factors = residual.size, projection.size if projection else 0, compiled.factor_memory
    vectors = {
        PSI: 10,
        ALPHA: 10,
        BETA: 10,
        SIGMA: 10,
        GAMMA: 10,
        ERROR_WEIGHTS: size,
        NEWTON_WEIGHTS: size,
        YY: 2 * size,
        E: size,
        DELTA: size,
        SCRATCH: size + 1,
        FACTORS: factors.size,
        DENSE: size * size if compiled.matrix else 0,
        PIVOTS: size,
        ROW_SCALE: size,
        ERROR_MASK: size,
        NEWTON_MASK: size,
        ROW_POWERS: size,
        COLUMN_POWERS: size,
        ATOL_ALL: size,
        PHI: (MOST + 3) * size,
        DENSE_LANDED: 6 * n + compiled.system.m + 8,
        PROJECTION_Z: kept + 2 * n + 2,
        PROJECTED: 4 * n + 1,
        MOVED: 2 * n,
        KEPT: 2,
        SPARE: residual.multipliers,
        BLOCK: block.size,
    }
    values = {
        BLOCK: block,
        FACTORS: factors,
        ERROR_MASK: residual.error_tested,
        NEWTON_MASK: residual.newton_tested,
        ROW_POWERS: residual.row_powers,
        COLUMN_POWERS: residual.column_powers,
    }
    header: dict[int, float] = {
        UNKNOWNS: size,
        COORDINATES: n,
        FACTOR_COUNT: factor_count,
        MULTIPLIERS: residual.multipliers,
        RESIDUAL_KERNEL: compiled.F,
        FACTORS_KERNEL: compiled.factors,
        SOLUTION_KERNEL: compiled.solution,
        MATRIX_KERNEL: compiled.matrix,
        PREDICTION_KERNEL: compiled.prediction,
        AFTER_KERNEL: compiled.after,
        PROJECTION_SIZE: kept,
    }
    if projection:
        header |= {
            PROJECTION_KERNEL: projection.projection,
            PROJECTION_FACTORS: projection.factors,
            PROJECTION_REPEATED: projection.repeated,
        }
    own, at = np.zeros(sum(vectors.values())), 0
    for key, length in vectors.items():
        header[key] = offset + at
        if key in values and len(values[key]):
            own[at : at + length] = values[key]
        at += length
    for place, inside in ((ERROR_MASK, compiled.error_mask_at), (SPARE, compiled.spare_at)):
        if inside >= 0:
            header[place] = header[BLOCK] + inside
    return own, header


@njit(cache=True, error_model="numpy")
def check_start(y, landed, n, rounding):
    """Whether a state and its derivative are finite, and whether a landing hardly moves it."""
    finite, on_manifold = True, True
    for level in range(2):
        size, moved = 0.0, 0.0
        for i in range(level * n, (level + 1) * n):
            size, moved = max(size, abs(y[i])), max(moved, abs(landed[4 * n + i]))
            finite = finite and abs(y[i]) < math.inf and abs(landed[i]) < math.inf
        on_manifold = on_manifold and moved <= rounding * size
    return finite, on_manifold


@njit(cache=True, error_model="numpy")
def _set_weights(P):
    for i in range(P.size):
        weight = 1.0 / (P.atol[i] + P.rtol * abs(P.phi[i]))
        P.error_weights[i], P.newton_weights[i] = P.error_mask[i] * weight, P.newton_mask[i] * weight
    for i in range(P.tolerances):
        P.block[1 + i] = P.atol[i] + P.rtol * abs(P.phi[i])


@njit(cache=True, error_model="numpy")
def _coefficients(P, memory, counts, h):
    """α, β, σ, γ, ψ, cj for a step of size h at the current order; scales φ."""
    k = counts[ORDER]
    if h != memory[H_OLD] or k != counts[ORDER_OLD]:
        counts[NS] = 0
    counts[NS] = min(counts[NS] + 1, counts[ORDER_OLD] + 2)
    ns = counts[NS]
    alpha, beta, sigma, gamma, psi = P.alpha, P.beta, P.sigma, P.gamma, P.psi
    if k + 1 >= ns:
        beta[0], alpha[0], sigma[0], gamma[0] = 1.0, 1.0, 1.0, 0.0
        sum_h = h
        for i in range(1, k + 1):
            old = psi[i - 1]
            psi[i - 1] = sum_h
            beta[i] = beta[i - 1] * psi[i - 1] / old
            sum_h = old + h
            alpha[i] = h / sum_h
            sigma[i] = i * sigma[i - 1] * alpha[i]
            gamma[i] = gamma[i - 1] + alpha[i - 1] / h
        psi[k] = sum_h
    alpha_s, alpha_0 = 0.0, 0.0
    for i in range(k):
        alpha_s -= 1.0 / (i + 1.0)
        alpha_0 -= alpha[i]
    memory[CJ_LAST] = memory[CJ]
    memory[CJ] = -alpha_s / h
    memory[CK] = max(abs(alpha[k] + alpha_s - alpha_0), alpha[k])
    low = (1.0 - _XRATE) / (1.0 + _XRATE)
    ratio = memory[CJ] / memory[CJ_OF_MATRIX] if memory[CJ_OF_MATRIX] != 0.0 else 0.0
    if ratio < low or ratio > 1.0 / low:
        counts[HAVE_MATRIX] = 0
    if memory[CJ] != memory[CJ_LAST]:
        memory[RATE_FACTOR] = 100.0
    for j in range(ns, k + 1):
        for i in range(P.size):
            P.phi[j * P.size + i] *= beta[j]


@njit(cache=True, error_model="numpy")
def _predict(P, memory, context, t, k):
    """Extrapolate (Y, Y′); multipliers that the formulation predicts itself enter E with their difference, so
    that the history stays true.  Returns a status.
    """
    size, y, dy = P.size, P.y, shift(P.y, P.size)
    for begin in range(0, size, _AT_ONCE):
        end = min(begin + _AT_ONCE, size)
        for i in range(begin, end):
            y[i], dy[i], P.e[i] = P.phi[i], 0.0, 0.0
        for j in range(1, k + 1):
            g = P.gamma[j]
            for i in range(begin, end):
                value = P.phi[j * size + i]
                y[i] += value
                dy[i] += g * value
    kernel, status = int(memory[PREDICTION_KERNEL]), OK
    if kernel != 0:
        for i in range(2 * P.n, size):
            P.e[i] = -y[i]
        status = call(kernel, t, y, P.block, context, P.delta)
        for i in range(2 * P.n, size):
            value = P.delta[i - 2 * P.n]
            y[i] = value if status == OK and value - value == 0.0 else -P.e[i]
            P.e[i] += y[i]
    return status


@njit(cache=True, error_model="numpy")
def _correct(P, memory, context, counts, t):
    """Newton's method, with a new matrix if there is none or the old one fails; returns (status, converged)."""
    k, splits = counts[ORDER], memory[PREDICTION_KERNEL] != 0.0
    while True:
        if splits:
            P.block[FRESH] = counts[HAVE_MATRIX] == 0
        status = _predict(P, memory, context, t, k)
        if splits:
            if status != OK:
                return status, False
            if P.block[CHANGED] > 0.0:
                counts[HAVE_MATRIX] = 0
            _set_weights(P)
        fresh = counts[HAVE_MATRIX] == 0
        if fresh:
            status, kind = newton.evaluate_matrix(P, context, t, memory[CJ])
            counts[NJEV] += 1
            if status != OK:
                return status, False
            counts[KIND], counts[HAVE_MATRIX] = int(kind), 1
            memory[CJ_OF_MATRIX], memory[RATE_FACTOR] = memory[CJ], 100.0
        status, converged, rate_factor, evaluations = newton.iterate(
            P,
            context,
            t,
            memory[CJ],
            memory[CJ_OF_MATRIX],
            float(counts[KIND]),
            memory[RATE_FACTOR],
            int(memory[MAX_ITERATIONS]),
        )
        counts[run.NFEV] += evaluations
        counts[NEWTON_IN_STEP] = evaluations
        memory[RATE_FACTOR] = rate_factor
        if converged and memory[AFTER_KERNEL] != 0.0:
            status = _find_multipliers(P, memory, context, t, k)
            converged = status == OK
        if converged or status != OK or fresh:
            return status, converged
        counts[HAVE_MATRIX] = 0


@njit(cache=True, error_model="numpy")
def _find_multipliers(P, memory, context, t, k):
    """Multipliers at the end of a step, where the iteration knows none; E gets their difference from the
    extrapolation.
    """
    status = call(int(memory[AFTER_KERNEL]), t, P.y, P.block, context, P.delta)
    for i in range(2 * P.n, P.size):
        P.e[i] = P.delta[i - 2 * P.n]
        for j in range(k + 1):
            P.e[i] -= P.phi[j * P.size + i]
    return status


@njit(cache=True, error_model="numpy")
def _norm_of_error(P, x):
    return newton.norm(x, P.error_weights, P.error_count, P.size)


@njit(cache=True, error_model="numpy")
def _restore(P, memory, counts, h):
    """Take back what `_coefficients` did to φ and ψ."""
    k = counts[ORDER]
    for j in range(counts[NS], k + 1):
        for i in range(P.size):
            P.phi[j * P.size + i] /= P.beta[j]
    for i in range(1, k + 1):
        P.psi[i - 1] = P.psi[i] - h


@njit(cache=True, error_model="numpy")
def _update(P, k, max_order):
    """Bring the differences φ up to date with the accepted correction."""
    size = P.size
    for begin in range(0, size, _AT_ONCE):
        end = min(begin + _AT_ONCE, size)
        if k < max_order:
            for i in range(begin, end):
                P.phi[(k + 1) * size + i] = P.e[i]
        for i in range(begin, end):
            P.phi[k * size + i] += P.e[i]
        for j in range(k - 1, -1, -1):
            for i in range(begin, end):
                P.phi[j * size + i] += P.phi[(j + 1) * size + i]


@njit(cache=True, error_model="numpy")
def _power(estimate, k):
    return (2.0 * estimate + 1e-4) ** (-1.0 / (k + 1.0))


@njit(cache=True, error_model="numpy")
def _choose(P, memory, counts, h, order_new, estimate, terk, terkm1, erkm1):
    """Order and size of the next step after an accepted one; returns the size.  DASSL's block 5.

    Under stiff forces every change of the step disturbs the velocities, at order 1 by O(h), for some steps.
    DASSL raises the order only after steps of the same size, doubles the size as soon as it can, and may
    never leave order 1.  Once that was noticed (`_shrink`), or where it is to be feared, order and size rise
    together, as in the beginning, while errors are tiny; else a low order keeps its size.
    """
    k, max_order = counts[ORDER], int(memory[MAX_ORDER])
    difference = k - counts[ORDER_OLD]
    counts[ORDER_OLD] = k
    memory[H_OLD] = h
    rises = counts[NEW_STARTS] > 0
    if k > _LOW:
        counts[TRAPPED] = 0
    if rises and estimate < _TINY:
        counts[PHASE] = 0
    if order_new == k - 1 or k == max_order:
        counts[PHASE] = 1
    if counts[PHASE] == 0:
        counts[ORDER] = k + 1
        return 2.0 * h
    if order_new == k - 1:
        counts[ORDER], estimate = k - 1, erkm1
    elif k < max_order and k + 1 < counts[NS] and difference != 1:
        for i in range(P.size):
            P.delta[i] = P.e[i] - P.phi[(k + 1) * P.size + i]
        erkp1 = _norm_of_error(P, P.delta) / (k + 2.0)
        terkp1 = (k + 2.0) * erkp1
        if k == 1:
            if terkp1 < 0.5 * terk:
                counts[ORDER], estimate = k + 1, erkp1
        elif terkm1 <= min(terk, terkp1):
            counts[ORDER], estimate = k - 1, erkm1
        elif terkp1 < terk:
            counts[ORDER], estimate = k + 1, erkp1
    r = _power(estimate, counts[ORDER])
    if r >= 2.0:
        return h if rises and counts[ORDER] <= _LOW else 2.0 * h
    if r <= 1.0:
        return h * max(0.5, min(0.9, r))
    return h


@njit(cache=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _norms(P, k):
    """Of e, φ_{k+1} + e and φ_k + φ_{k+1} + e."""
    e, highest, second, weights = (
        P.e,
        shift(P.phi, k * P.size),
        shift(P.phi, (k - 1) * P.size),
        P.error_weights,
    )
    here, below, further = 0.0, 0.0, 0.0
    for i in range(P.size):
        w, x = weights[i], e[i]
        here += (x * w) * (x * w)
        x += highest[i]
        below += (x * w) * (x * w)
        x += second[i]
        further += (x * w) * (x * w)
    count = P.error_count if P.error_count > 0.0 else math.inf
    return math.sqrt(here / count), math.sqrt(below / count), math.sqrt(further / count)


@njit(cache=True, error_model="numpy")
def _estimate(P, k):
    """Error terms at orders k, k − 1, k − 2 and whether the order should fall; (‖e‖, terk, terkm1, erkm1,
    order, estimate).
    """
    size_of_e, below, further = _norms(P, k)
    erk = P.sigma[k] * size_of_e
    terk = (k + 1.0) * erk
    order, estimate, terkm1, erkm1 = k, erk, 0.0, 0.0
    if k > 1:
        erkm1 = P.sigma[k - 1] * below
        terkm1 = k * erkm1
        if k > 2:
            terkm2 = (k - 1.0) * P.sigma[k - 2] * further
            lower = max(terkm1, terkm2) <= terk
        else:
            lower = terkm1 <= 0.5 * terk
        if lower:
            order, estimate = k - 1, erkm1
    return size_of_e, terk, terkm1, erkm1, order, estimate


@njit(cache=True, error_model="numpy")
def _first_step(P, memory, counts):
    """DASSL's choice: a thousandth of the interval, less if the solution, in all that Newton's method tests,
    moves faster than half the tolerance in it.

    Not so small, though, that differences of rounding errors divided by it reach a hundredth of the
    tolerance.
    """
    h = 0.001 * abs(run.target(memory, counts) - memory[run.T])
    speed = newton.norm(shift(P.y, P.size), P.newton_weights, P.newton_count, P.size)
    if speed > 0.5 / h:
        h = 0.5 / speed
    rounding = 2.2e-16 * newton.norm(P.y, P.newton_weights, P.newton_count, P.size)
    return min(max(h, 100.0 * rounding), memory[run.H_MAX])


@njit(cache=True, error_model="numpy")
def _start(P, memory, counts):
    """Order one, from Y and Y′: at the beginning, and again after a switch."""
    for i in range(P.size):
        P.phi[i] = P.y[i]
    _set_weights(P)
    h = memory[run.FIRST_STEP] if memory[run.FIRST_STEP] > 0.0 else _first_step(P, memory, counts)
    if memory[CONSTANT_STEP] > 0.0:
        h = memory[CONSTANT_STEP]
    h *= counts[run.WAY]
    for i in range(P.size):
        P.phi[P.size + i] = h * P.y[P.size + i]
    memory[run.H], P.psi[0] = h, h
    memory[CJ], memory[CJ_OF_MATRIX], memory[RATE_FACTOR], memory[H_OLD] = 1.0 / h, 0.0, 100.0, 0.0
    counts[ORDER], counts[ORDER_OLD], counts[NS], counts[PHASE], counts[HAVE_MATRIX] = 1, 0, 0, 0, 0


@njit(cache=True, error_model="numpy")
def _shrink(P, memory, counts, h, converged, order_new, estimate):
    """Order and size after a step that failed; DASSL's block 6.

    After many failures with no step of a higher order between them a new start is made with a much smaller
    step, and then more patience.
    """
    counts[PHASE] = 1
    counts[FAILED_IN_STEP] += 1
    if not converged:
        counts[NEWTON_FAILURES] += 1
        return 0.25 * h
    counts[ERROR_FAILURES] += 1
    failures = counts[FAILED_IN_STEP]
    counts[TRAPPED] += 1
    if (
        counts[TRAPPED] > _PATIENCE << min(counts[NEW_STARTS], 20)
        and memory[MAX_ORDER] > _LOW
        and memory[RATE_FLOOR] > 0.0
    ):
        counts[TRAPPED], counts[NEW_STARTS], counts[ORDER], counts[PHASE] = 0, counts[NEW_STARTS] + 1, 1, 0
        return _BACK * h
    if failures == 1:
        counts[ORDER] = order_new
        return h * max(0.25, min(0.9, 0.9 * _power(estimate, order_new)))
    counts[ORDER] = order_new if failures == 2 else 1
    return 0.25 * h


@njit(cache=True, error_model="numpy")
def _fit_end(memory, counts):
    """The step to try: it may be shortened to meet the end, or stretched a little."""
    h, left = memory[run.H], run.target(memory, counts) - memory[run.T]
    if memory[CONSTANT_STEP] > 0.0:
        return h if abs(left) > abs(h) * (1.0 + 1e-9) else left
    if abs(h) > memory[run.H_MAX]:
        h = counts[run.WAY] * memory[run.H_MAX]
    return left if abs(h) * (1.0 + 1e-10) >= abs(left) else h


@NativeKernel
def interpolant(t, y, memory, context, out):
    """The polynomial of the last step, its positions and velocities brought onto the manifold."""
    P = _parts(memory)
    _polynomial(P, memory, t, out)
    return _onto_manifold(P, memory, context, t, out)


@njit(cache=True, error_model="numpy")
def _polynomial(P, memory, t, out):
    k, step, size, count = int(memory[run.ITERATIONS]), t - memory[CENTRE], P.size, int(memory[run.SIZE])
    for i in range(count):
        out[i] = P.phi[i]
    c, gamma = 1.0, step / P.psi[0]
    for j in range(1, k + 1):
        c *= gamma
        gamma = (step + P.psi[j - 1]) / P.psi[j]
        for i in range(count):
            out[i] += c * P.phi[j * size + i]


@njit(cache=True, error_model="numpy")
def _projector(P, memory):
    return Projector(
        P.n,
        int(memory[PROJECTION_KERNEL]),
        int(memory[PROJECTION_FACTORS]),
        int(memory[PROJECTION_REPEATED]),
        int(memory[DENSE_LANDING]),
        int(memory[PROJECTION_SIZE]),
        part(memory, PROJECTION_Z),
        part(memory, PROJECTED),
        part(memory, DENSE_LANDED),
        part(memory, KEPT),
    )


@njit(cache=True, error_model="numpy")
def _onto_manifold(P, memory, context, t, out):
    return OK if memory[DENSE_LANDING] == 0.0 else onto_manifold(_projector(P, memory), context, t, out)


@njit(cache=True, nogil=True, error_model="numpy")
def advance(memory_array, context_array, counts, points, steps, rejections, found, t_eval):
    """Integrate until something has to be told; see :mod:`holonome.integrators.loop`."""
    memory, context = pointer(memory_array), pointer(context_array)
    P = _parts(memory)
    constant = memory[CONSTANT_STEP] > 0.0
    if counts[run.STATE] == run.START:
        _start(P, memory, counts)
        if (
            counts[run.EVENTS] > 0
            and call(
                int(memory[run.EVENT_KERNEL]),
                memory[run.T],
                part(memory, run.Y),
                P.y,
                context,
                part(memory, run.EVENT_OLD),
            )
            != OK
        ):
            return run.USER_FUNCTION_FAILED
        run.watch_start(memory, context, P.y)
        counts[run.STATE] = run.STEPPING
    if counts[CONSTANT_ORDER] > 0:
        _set_weights(P)
    while True:
        if counts[run.STATE] != run.STEPPING:
            leave, code = run.tell(memory, context, counts, points, t_eval)
            if leave:
                return code
            counts[run.STATE] = run.STEPPING
        code = run.another_step(counts, steps, rejections, found)
        if code != run.DONE:
            return code
        if run.at_switch(memory, counts):
            run.pass_switch(memory, counts)
            _start(P, memory, counts)
        t, h = memory[run.T], _fit_end(memory, counts)
        if t + h == t:
            return run.STEP_TOO_SMALL
        k = counts[ORDER]
        _coefficients(P, memory, counts, h)
        status, converged = _correct(P, memory, context, counts, t + h)
        if status == INTERRUPTED:
            return run.STOPPED
        size_of_e, terk, terkm1, erkm1, order_new, estimate = math.inf, 0.0, 0.0, 0.0, k, math.inf
        projects, moved = memory[PROJECT] > 0.0, part(memory, MOVED)
        if converged and projects:
            for i in range(2 * P.n):
                P.scratch[i] = P.e[i]
            status = project(_projector(P, memory), context, t + h, P.y, P.e, moved)
            converged = status == OK
        if converged:
            size_of_e, terk, terkm1, erkm1, order_new, estimate = _estimate(P, k)
            if projects:
                for i in range(2 * P.n):
                    P.e[i] = P.scratch[i] + moved[i]
        error = memory[CK] * size_of_e
        if converged and (error <= 1.0 or (constant and error - error == 0.0)):
            _accept(P, memory, counts, steps, t, h, error, order_new, estimate, terk, terkm1, erkm1)
            y_old, y = part(memory, run.Y_OLD), part(memory, run.Y)
            run.watch(memory, context, counts, found, y_old, shift(y_old, P.n), y, shift(y, P.n))
            code = run.look_for_events(memory, context, counts, found)
            if code != run.DONE:
                return code
            continue
        if _reject(P, memory, counts, rejections, t, h, error, status, converged, order_new, estimate):
            return run.STEP_TOO_SMALL


@njit(cache=True, error_model="numpy")
def _accept(P, memory, counts, steps, t, h, error, order_new, estimate, terk, terkm1, erkm1):
    """Bring the history up to date, move on, and choose order and size of the next step."""
    k, constant, aim = counts[ORDER], memory[CONSTANT_STEP] > 0.0, run.target(memory, counts)
    h_new = _choose(P, memory, counts, h, order_new, estimate, terk, terkm1, erkm1)
    _update(P, k, int(memory[MAX_ORDER]))
    _record_step(P, memory, counts, steps, t, h, error, k)
    if counts[CONSTANT_ORDER] > 0:
        counts[ORDER] = k
    memory[run.H], memory[run.T_OLD] = h if constant else h_new, t
    if h == aim - t:
        memory[run.T] = aim
    elif constant and counts[run.SWITCHING_TIMES] == 0:
        memory[run.T] = memory[run.T_START] + counts[run.ACCEPTED] * h
    else:
        memory[run.T] = t + h
    memory[run.ITERATIONS], memory[CENTRE] = k, memory[run.T]
    y, y_old = part(memory, run.Y), part(memory, run.Y_OLD)
    for i in range(int(memory[run.SIZE])):
        y_old[i], y[i] = y[i], P.phi[i]
    _set_weights(P)
    counts[FAILED_IN_STEP] = 0


@njit(cache=True, error_model="numpy")
def _reject(P, memory, counts, rejections, t, h, error, status, converged, order_new, estimate):
    """Take the step back and shrink; True if it cannot be made smaller."""
    _restore(P, memory, counts, h)
    cause = (
        run.ERROR_TEST
        if converged
        else (
            run.FUNCTION_RAISED if status == RAISED else (run.SINGULAR_MATRIX if status != OK else run.NEWTON)
        )
    )
    row = counts[run.REJECTIONS]
    rejections[row, 0], rejections[row, 1], rejections[row, 2], rejections[row, 3] = t, h, error, cause
    counts[run.REJECTIONS] += 1
    counts[run.REJECTED] += 1
    memory[run.H] = _shrink(P, memory, counts, h, converged, order_new, estimate)
    memory[run.T_FAILED] = t + h
    return (
        memory[CONSTANT_STEP] > 0.0
        or abs(memory[run.H]) <= 1e-15 * max(abs(t), abs(t + h))
        or counts[FAILED_IN_STEP] > 30
    )


@njit(cache=True, error_model="numpy")
def _record_step(P, memory, counts, steps, t, h, error, k):
    """A row of the history; with room for it, also what the polynomial of the step is made of."""
    counts[run.ACCEPTED] += 1
    if not counts[run.KEEP_STEPS]:
        return
    row = counts[run.STEPS]
    steps[row, 0], steps[row, 1], steps[row, 2], steps[row, 3], steps[row, 4], steps[row, 5] = (
        t,
        h,
        error,
        0.0,
        counts[NEWTON_IN_STEP],
        k,
    )
    counts[run.STEPS] += 1
    if steps.shape[1] > run.STEP_COLUMNS:
        at, count = run.STEP_COLUMNS, int(memory[run.SIZE])
        for j in range(k + 1):
            steps[row, at + j] = P.psi[j]
            for i in range(count):
                steps[row, at + MOST + 1 + j * count + i] = P.phi[j * P.size + i]


def polynomial_columns(size: int) -> int:
    """Columns of a row of the history that hold the polynomial of a step."""
    return (MOST + 1) * (1 + size)


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(memory_array, context_array, rows, wanted, out):
    """The solution at many times from the stored polynomials; ``rows`` are ordered along the run.  Returns
    the number done.
    """
    memory, context = pointer(memory_array), pointer(context_array)
    P = _parts(memory)
    count, current = int(memory[run.SIZE]), -1
    way = 1.0 if rows[0, 1] > 0.0 else -1.0
    value = part(memory, run.Y_EVENT)
    for number in range(wanted.size):
        lower, upper = 0, rows.shape[0] - 1
        while lower < upper:
            middle = (lower + upper) // 2
            if way * (rows[middle, 0] + rows[middle, 1]) < way * wanted[number]:
                lower = middle + 1
            else:
                upper = middle
        if lower != current:
            k = int(rows[lower, 5])
            memory[CENTRE], memory[run.ITERATIONS] = rows[lower, 0] + rows[lower, 1], k
            for j in range(k + 1):
                P.psi[j] = rows[lower, run.STEP_COLUMNS + j]
                for i in range(count):
                    P.phi[j * P.size + i] = rows[lower, run.STEP_COLUMNS + MOST + 1 + j * count + i]
            current = lower
        _polynomial(P, memory, wanted[number], value)
        if _onto_manifold(P, memory, context, wanted[number], value) != OK:
            return number
        for i in range(count):
            out[number, i] = value[i]
    return wanted.size

"""The formulas of DASSL: backward differences of variable step and order with a fixed leading coefficient.

The history is kept as modified divided differences φ_1 … φ_{k+2}; with ψ_i = h_n + … + h_{n−i+1}:

    α_i = h/ψ_i,   β_i, σ_i, γ_i by recursion,   α_s = −Σ 1/i,   α⁰ = −Σ α_i,   cj = −α_s/h
    prediction  Y⁰ = Σ φ*_i,  Y′⁰ = Σ γ_i φ*_i
    corrector   F(t, Y, Y′⁰ + cj (Y − Y⁰)) = 0
    error       max(α_{k+1}, |α_{k+1} + α_s − α⁰|) ‖Y − Y⁰‖

``w`` is the memory of BDF taken apart (:mod:`holonome.integrators.bdf_steps`), ``w.s`` its record.

References
----------
K. E. Brenan, S. L. Campbell, L. R. Petzold, Numerical Solution of Initial-Value Problems in
Differential-Algebraic Equations, SIAM 1996, chapter 5.
"""

import math

from numba import njit

from holonome.integrators import newton
from holonome.integrators.loop import target
from holonome.machine.calls import call, shift
from holonome.machine.context import OK

MOST = 6
"""Highest order; beyond 5 only at constant step."""

_XRATE = 0.25

_LOW, _TINY, _PATIENCE, _BACK = 2, 0.01, 8, 0.01
"""What keeps the order from staying low for good (`choose`, `shrink`): which orders are low; an error in
units of the tolerance that lets order and size rise together; failures before a new start, and what it makes
of the step.
"""

_AT_ONCE = 256
"""Unknowns whose differences are gone through together, so that they stay in the fastest cache."""


@njit(cache=True, error_model="numpy")
def set_weights(w):
    for i in range(w.size):
        weight = 1.0 / (w.atol[i] + w.rtol * abs(w.phi[i]))
        w.error_weights[i], w.newton_weights[i] = w.error_mask[i] * weight, w.newton_mask[i] * weight
    for i in range(w.tolerances):
        w.block[1 + i] = w.atol[i] + w.rtol * abs(w.phi[i])


@njit(cache=True, error_model="numpy")
def coefficients(w, h):
    """α, β, σ, γ, ψ, cj for a step of size h at the current order; scales φ."""
    k = w.s.order
    if h != w.s.h_old or k != w.s.order_old:
        w.s.ns = 0
    w.s.ns = min(w.s.ns + 1, w.s.order_old + 2)
    ns = w.s.ns
    alpha, beta, sigma, gamma, psi = w.alpha, w.beta, w.sigma, w.gamma, w.psi
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
    w.s.cj_last = w.s.cj
    w.s.cj = -alpha_s / h
    w.s.ck = max(abs(alpha[k] + alpha_s - alpha_0), alpha[k])
    low = (1.0 - _XRATE) / (1.0 + _XRATE)
    ratio = w.s.cj / w.s.cj_of_matrix if w.s.cj_of_matrix != 0.0 else 0.0
    if ratio < low or ratio > 1.0 / low:
        w.s.have_matrix = 0
    if w.s.cj != w.s.cj_last:
        w.s.rate_factor = 100.0
    for j in range(ns, k + 1):
        for i in range(w.size):
            w.phi[j * w.size + i] *= beta[j]


@njit(cache=True, error_model="numpy")
def predict(w, context, t, k):
    """Extrapolate (Y, Y′); multipliers that the formulation predicts itself enter E with their difference, so
    that the history stays true.  Returns a status.
    """
    size, y, dy = w.size, w.y, shift(w.y, w.size)
    for begin in range(0, size, _AT_ONCE):
        end = min(begin + _AT_ONCE, size)
        for i in range(begin, end):
            y[i], dy[i], w.e[i] = w.phi[i], 0.0, 0.0
        for j in range(1, k + 1):
            g = w.gamma[j]
            for i in range(begin, end):
                value = w.phi[j * size + i]
                y[i] += value
                dy[i] += g * value
    kernel, status = w.s.prediction, OK
    if kernel != 0:
        for i in range(w.state, size):
            w.e[i] = -y[i]
        status = call(kernel, t, y, w.block, context, w.delta)
        for i in range(w.state, size):
            value = w.delta[i - w.state]
            y[i] = value if status == OK and value - value == 0.0 else -w.e[i]
            w.e[i] += y[i]
    return status


@njit(cache=True, error_model="numpy")
def norm_of_error(w, x):
    return newton.norm(x, w.error_weights, w.error_count, w.size)


@njit(cache=True, error_model="numpy")
def restore(w, h):
    """Take back what `coefficients` did to φ and ψ."""
    k = w.s.order
    for j in range(w.s.ns, k + 1):
        for i in range(w.size):
            w.phi[j * w.size + i] /= w.beta[j]
    for i in range(1, k + 1):
        w.psi[i - 1] = w.psi[i] - h


@njit(cache=True, error_model="numpy")
def update(w, k, max_order):
    """Bring the differences φ up to date with the accepted correction."""
    size = w.size
    for begin in range(0, size, _AT_ONCE):
        end = min(begin + _AT_ONCE, size)
        if k < max_order:
            for i in range(begin, end):
                w.phi[(k + 1) * size + i] = w.e[i]
        for i in range(begin, end):
            w.phi[k * size + i] += w.e[i]
        for j in range(k - 1, -1, -1):
            for i in range(begin, end):
                w.phi[j * size + i] += w.phi[(j + 1) * size + i]


@njit(cache=True, error_model="numpy")
def _power(error, k):
    return (2.0 * error + 1e-4) ** (-1.0 / (k + 1.0))


@njit(cache=True, error_model="numpy")
def choose(w, h):
    """Order and size of the next step after an accepted one; returns the size.  DASSL's block 5.

    Under stiff forces every change of the step disturbs the velocities, at order 1 by O(h), for some steps.
    DASSL raises the order only after steps of the same size, doubles the size as soon as it can, and may
    never leave order 1.  Once that was noticed (`shrink`), or where it is to be feared, order and size rise
    together, as in the beginning, while errors are tiny; else a low order keeps its size.
    """
    s = w.s
    k, order_new, estimated = s.order, s.order_new, s.estimate
    difference = k - s.order_old
    s.order_old = k
    s.h_old = h
    rises = s.new_starts > 0
    if k > _LOW:
        s.trapped = 0
    if rises and estimated < _TINY:
        s.phase = 0
    if order_new == k - 1 or k == s.max_order:
        s.phase = 1
    if s.phase == 0:
        s.order = k + 1
        return 2.0 * h
    if order_new == k - 1:
        s.order, estimated = k - 1, s.erkm1
    elif k < s.max_order and k + 1 < s.ns and difference != 1:
        for i in range(w.size):
            w.delta[i] = w.e[i] - w.phi[(k + 1) * w.size + i]
        erkp1 = norm_of_error(w, w.delta) / (k + 2.0)
        terkp1 = (k + 2.0) * erkp1
        if k == 1:
            if terkp1 < 0.5 * s.terk:
                s.order, estimated = k + 1, erkp1
        elif s.terkm1 <= min(s.terk, terkp1):
            s.order, estimated = k - 1, s.erkm1
        elif terkp1 < s.terk:
            s.order, estimated = k + 1, erkp1
    r = _power(estimated, s.order)
    if r >= 2.0:
        return h if rises and s.order <= _LOW else 2.0 * h
    if r <= 1.0:
        return h * max(0.5, min(0.9, r))
    return h


@njit(cache=True, fastmath={"contract", "reassoc"}, error_model="numpy")
def _norms(w, k):
    """Of e, φ_{k+1} + e and φ_k + φ_{k+1} + e."""
    e, highest, second, weights = (
        w.e,
        shift(w.phi, k * w.size),
        shift(w.phi, (k - 1) * w.size),
        w.error_weights,
    )
    here, below, lower = 0.0, 0.0, 0.0
    for i in range(w.size):
        weight, x = weights[i], e[i]
        here += (x * weight) * (x * weight)
        x += highest[i]
        below += (x * weight) * (x * weight)
        x += second[i]
        lower += (x * weight) * (x * weight)
    count = w.error_count if w.error_count > 0.0 else math.inf
    return math.sqrt(here / count), math.sqrt(below / count), math.sqrt(lower / count)


@njit(cache=True, error_model="numpy")
def estimate(w, k):
    """Error terms at orders k, k − 1, k − 2 and whether the order should fall; returns ‖e‖."""
    s = w.s
    size_of_e, below, lower_still = _norms(w, k)
    erk = w.sigma[k] * size_of_e
    s.terk = (k + 1.0) * erk
    s.order_new = k
    s.estimate = erk
    s.terkm1 = 0.0
    s.erkm1 = 0.0
    if k > 1:
        s.erkm1 = w.sigma[k - 1] * below
        s.terkm1 = k * s.erkm1
        if k > 2:
            terkm2 = (k - 1.0) * w.sigma[k - 2] * lower_still
            falls = max(s.terkm1, terkm2) <= s.terk
        else:
            falls = s.terkm1 <= 0.5 * s.terk
        if falls:
            s.order_new = k - 1
            s.estimate = s.erkm1
    return size_of_e


@njit(cache=True, error_model="numpy")
def first_step(w):
    """DASSL's choice: a thousandth of the interval, less if the solution, in all that Newton's method tests,
    moves faster than half the tolerance in it.

    Not so small, though, that differences of rounding errors divided by it reach a hundredth of the
    tolerance.
    """
    h = 0.001 * abs(target(w.run) - w.run.t)
    speed = newton.norm(shift(w.y, w.size), w.newton_weights, w.newton_count, w.size)
    if speed > 0.5 / h:
        h = 0.5 / speed
    rounding = 2.2e-16 * newton.norm(w.y, w.newton_weights, w.newton_count, w.size)
    return min(max(h, 100.0 * rounding), w.run.h_max)


@njit(cache=True, error_model="numpy")
def start(w):
    """Order one, from Y and Y′: at the beginning, and again after a switch."""
    for i in range(w.size):
        w.phi[i] = w.y[i]
    set_weights(w)
    h = w.run.first_step if w.run.first_step > 0.0 else first_step(w)
    if w.run.constant > 0.0:
        h = w.run.constant
    h *= w.run.direction
    for i in range(w.size):
        w.phi[w.size + i] = h * w.y[w.size + i]
    w.run.h = h
    w.psi[0] = h
    w.s.cj = 1.0 / h
    w.s.cj_of_matrix = 0.0
    w.s.rate_factor = 100.0
    w.s.h_old = 0.0
    w.s.order = 1
    w.s.order_old = 0
    w.s.ns = 0
    w.s.phase = 0
    w.s.have_matrix = 0


@njit(cache=True, error_model="numpy")
def shrink(w, h):
    """Order and size after a step that failed; DASSL's block 6.

    After many failures with no step of a higher order between them a new start is made with a much smaller
    step, and then more patience.
    """
    w.s.phase = 1
    w.s.failed_in_step += 1
    order_new, estimated = w.s.order_new, w.s.estimate
    if not w.s.converged:
        w.s.newton_failures += 1
        return 0.25 * h
    w.s.error_failures += 1
    failures = w.s.failed_in_step
    w.s.trapped += 1
    if w.s.trapped > _PATIENCE << min(w.s.new_starts, 20) and w.s.max_order > _LOW and w.s.rate_floor > 0.0:
        w.s.trapped = 0
        w.s.new_starts += 1
        w.s.order = 1
        w.s.phase = 0
        return _BACK * h
    if failures == 1:
        w.s.order = order_new
        return h * max(0.25, min(0.9, 0.9 * _power(estimated, order_new)))
    w.s.order = order_new if failures == 2 else 1
    return 0.25 * h

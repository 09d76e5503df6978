"""Tolerances of Radau methods, and the choice of the size and the order of their steps.

``w`` is the memory of the method taken apart (:mod:`holonome.integrators.radau_state`), ``w.s`` its record.
"""

import math

from numba import njit

from holonome.integrators import loop, newton

_SAFETY, _GROW, _SHRINK = 0.9, 8.0, 0.2
_KEEP_SIZE, _KEEP_RATE = 1.2, 0.03
"""A step that would grow by less keeps its size and its matrices, if Newton's method converges faster than
that.
"""

_LARGEST_RATE = 0.2
"""A rate of convergence that the next step should not exceed, if it grows with the cube of the step, as where
a stiff direction turns; if it grows more slowly, steps get there a little later.
"""

CAUTION, _REGAIN = 0.8, 1.2
"""A step does not grow beyond this part of one at which Newton's method failed, and regains that by a factor
in every step.
"""

_SOON, _OFTEN = 12, 3
"""After so many failures of Newton's method, each within so many steps of the one before, multipliers and
accelerations become unknowns of their own (`count_failure`).
"""

_FAST, _SLOW, _PATIENCE = 0.002, 0.8, 10
"""Rates of convergence up to which the order rises, and from which on it falls; and for how many steps it
then does not rise (Hairer & Wanner).
"""

_STRICT = 0.01
"""By what the tolerance of Newton's method is multiplied at constant steps, which may be smaller than the
tolerance asks for, and on index 3, where multipliers get its errors divided by h².
"""


@njit(cache=True, error_model="numpy")
def set_tolerances(w):
    """Tolerances of the error test, whose estimate is of order s, so that errors at the ends of steps, of
    order 2s − 1, follow those given; and that of Newton's method (Hairer & Wanner).
    """
    s, rtol = w.s, w.run.rtol
    power = (s.stages + 1.0) / (2.0 * s.stages)
    s.rtol = 0.1 * rtol**power
    s.slack = s.rtol / rtol
    rule = max(10.0 * 2.2e-16 / s.rtol, min(0.03, s.rtol ** (1.0 / power - 1.0)))
    if w.run.constant > 0.0 or s.index3:
        rule = max(10.0 * 2.2e-16 / s.rtol, _STRICT * rule)
    s.bound = s.newton_tolerance if s.newton_tolerance > 0.0 else rule


@njit(cache=True, error_model="numpy")
def set_weights(w, h):
    """Weights of both tests for a step of size h."""
    s, atol, powers = w.s, w.s.atol, w.column_powers
    for i in range(w.size):
        weight = 1.0 / (s.slack * atol[i] + s.rtol * abs(w.now[i]))
        if powers[i] > 0.0:
            weight *= abs(h) ** powers[i]
        w.error_weights[i], w.newton_weights[i] = s.error_mask[i] * weight, s.newton_mask[i] * weight


@njit(cache=True, error_model="numpy")
def first_step(w):
    """A hundredth of the time in which the solution would change as much as it is large, at its present rate;
    not so little that it would move by less than half the tolerance.
    """
    run = w.run
    if run.constant > 0.0:
        return run.constant
    if run.first_step > 0.0:
        return run.first_step
    h = 0.001 * abs(loop.target(run) - run.t)
    size = newton.norm(w.now, w.error_weights, w.error_count, w.size)
    speed = newton.norm(w.s.rate, w.error_weights, w.error_count, w.size)
    allowed = max(0.5, 0.01 * size)
    if speed * h > allowed:
        h = allowed / speed
    return min(h, run.h_max)


@njit(cache=True, error_model="numpy")
def wanted_step(w, h, error):
    """The size of the next step: by the error, and by how it has changed (Gustafsson)."""
    s = w.s
    most, order = s.max_iterations, s.stages + 1.0
    safety = min(_SAFETY, _SAFETY * (2.0 * most + 1.0) / (2.0 * most + s.iterations))
    error = max(error, 1e-10)
    factor = max(_SHRINK, min(_GROW, safety * error ** (-1.0 / order)))
    if not s.first and s.error_old > 0.0 and error <= 1.0 and s.stages == s.stages_polynomial:
        predictive = _SAFETY * abs(h / s.h_old) * (s.error_old / (error * error)) ** (1.0 / order)
        factor = min(factor, max(_SHRINK, predictive))
    return h * factor


@njit(cache=True, error_model="numpy")
def choose_next(w, h, h_new):
    """Order and size of the next step; both are kept where the matrices serve again."""
    run, s = w.run, w.s
    ratio = h_new / h
    if s.contraction > 0.0:
        ratio = min(ratio, max(0.5, (_LARGEST_RATE / s.contraction) ** (1.0 / 3.0)))
    ratio = min(ratio, max(1.0, s.largest / abs(h)))
    s.largest *= _REGAIN
    s.since += 1
    converges = s.contraction <= _KEEP_RATE
    if not converges:
        s.have_matrix = 0
    elif s.h_of_matrix == h and 1.0 <= ratio <= _KEEP_SIZE:
        ratio = 1.0
    run.h = h * ratio
    s.wait -= 1
    if s.contraction >= _SLOW:
        lower_order(w)
    elif s.contraction <= _FAST and s.wait <= 0 and s.stages < s.most and 0.8 <= ratio <= 1.25:
        s.stages += 2
        set_tolerances(w)


@njit(cache=True, error_model="numpy")
def count_failure(w):
    """Newton's method has failed.  Where it fails again and again, F is evaluated instead of f(t, y).

    The accelerations P(q) M⁻¹ f hold stiff forces times a projection P that turns with the position, so a
    matrix at one stage misses those at the others by h² ∂P/∂q times the stiffness; in F = (…, M a − f + Gᵀλ,
    G a − γ) the stiff part of f is as linear as it was given.
    """
    s = w.s
    s.soon = s.soon + 1 if s.since < _SOON else 0
    s.since = 0
    if s.by_rate and s.soon >= _OFTEN:
        s.by_rate = 0
        s.incomplete = 1
        s.moving = w.size
        s.largest = math.inf


@njit(cache=True, error_model="numpy")
def lower_order(w):
    """Go on with a lower order, for some steps at least."""
    s = w.s
    if s.stages > s.fewest:
        s.stages -= 2
        s.wait = _PATIENCE
        set_tolerances(w)

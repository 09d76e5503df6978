"""Step sizes of explicit methods, for records with exponent, beta, log_error and after_rejection."""

import math

from numba import njit

from holonome.integrators import loop

_SAFETY, _SHRINK = 0.9, 0.2


@njit(cache=True, error_model="numpy")
def next_size(run, s, h, most):
    """Gustafsson's step size control after an accepted step; the step grows ``most``-fold at most."""
    log_error = math.log(max(run.error, 1e-10))
    grow = _SAFETY * math.exp(s.beta * s.log_error - (s.exponent - 0.75 * s.beta) * log_error)
    limit = 1.0 if s.after_rejection else most
    s.log_error = log_error
    s.after_rejection = 0
    return min(abs(h) * min(limit, max(_SHRINK, grow)), run.h_max)


@njit(cache=True, error_model="numpy")
def shrink(run, s, t, h, cause):
    """Choose a smaller step after a rejected one; False if it cannot be made smaller."""
    error_test = cause == loop.ERROR_TEST
    run.h = abs(h) * (max(_SHRINK, _SAFETY * run.error**-s.exponent) if error_test else 0.25)
    s.after_rejection = 1
    too_small = run.h <= 1e-15 * max(abs(t), abs(t + h)) or run.h < 1e-290
    return not (run.constant > 0.0 or too_small)


@njit(cache=True)
def step_before(times, direction, t):
    """The number of the last of the ordered times that is not after t."""
    lower, upper = 0, times.size
    while upper - lower > 1:
        middle = (lower + upper) // 2
        if direction * times[middle] <= direction * t:
            lower = middle
        else:
            upper = middle
    return lower

"""Step sizes of explicit methods, whose records have exponent, beta, log_error and after_rejection."""

import math

from numba import njit

from holonome.integrators import loop

_SAFETY, _SHRINK = 0.9, 0.2


@njit(cache=True, error_model="numpy")
def choose_next(w, h, most):
    """Gustafsson's step size control after an accepted step, unless the step is constant; it grows
    ``most``-fold at most.
    """
    run, s = w.run, w.s
    if run.constant > 0.0:
        return
    log_error = math.log(max(run.error, 1e-10))
    grow = _SAFETY * math.exp(s.beta * s.log_error - (s.exponent - 0.75 * s.beta) * log_error)
    limit = 1.0 if s.after_rejection else most
    s.log_error = log_error
    s.after_rejection = 0
    run.h = min(abs(h) * min(limit, max(_SHRINK, grow)), run.h_max)


@njit(cache=True, error_model="numpy")
def shrink(w, t, h, cause):
    """Choose a smaller step after a rejected one; False if it cannot be made smaller."""
    run, s = w.run, w.s
    error_test = cause == loop.ERROR_TEST
    run.h = abs(h) * (max(_SHRINK, _SAFETY * run.error**-s.exponent) if error_test else 0.25)
    s.after_rejection = 1
    too_small = run.h <= 1e-15 * max(abs(t), abs(t + h)) or run.h < 1e-290
    return not (run.constant > 0.0 or too_small)

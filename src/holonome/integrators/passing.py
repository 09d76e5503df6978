"""Steps over a singular position, of Runge–Kutta methods.

The motion is smooth there, but what it follows from is 0/0: at a time δ from the singular position the
accelerations have errors like ε/δ², whatever the size of the step.  Where a stage comes too close, a smaller
step does not help; it only lands nearer.  So before the step is made smaller, some are tried whose widest
gaps between stages lie where the rank, continued straight on, will have fallen.  They have to pass the error
test, in which a part of ε/δ² is allowed for.
"""

import math

import numpy as np
from numba import njit

from holonome.integrators.loop import ERROR_TEST, PROJECTION_FAILED, SINGULAR_MATRIX, rank_watch_in

NONE, LEAP, TRIED = range(3)
MOST = 6
"""Gaps that are tried."""
_LARGEST, _AHEAD = 2.0, 2.0
"""How much larger than the rejected step others may be, and how far ahead, in such steps, a fall matters."""
_ALLOWED = 10.0
"""Error of such a step, in tolerances."""


def gaps(nodes: np.ndarray) -> np.ndarray:
    """The middles of the gaps between the nodes of a method, those first that are wide for their distance."""
    at = np.unique(np.clip(nodes, 0.0, 1.0))
    middle, width = (at[1:] + at[:-1]) / 2, np.diff(at)
    order = np.argsort(-width, kind="stable")
    return middle[order][:MOST]


@njit(cache=True, inline="always")
def has_leapt(s):
    """Whether the step just tried was such a one."""
    return 0 < s.leaps <= s.gap_count


@njit(cache=True, inline="always")
def allowed(w):
    """Error that the next step may have, in tolerances."""
    return _ALLOWED if has_leapt(w.s) else 1.0


@njit(cache=True, error_model="numpy")
def leap(w, h, cause):
    """Choose a step that passes a singular position close ahead: `LEAP`; `NONE` if there is none, `TRIED`
    once after all were tried in vain.
    """
    run, s = w.run, w.s
    if not s.after_rejection:
        s.leaps = 0
        s.rejected_size = abs(h)
    unfit = cause not in (ERROR_TEST, PROJECTION_FAILED, SINGULAR_MATRIX)
    if run.watch == 0 or run.constant > 0.0 or unfit or s.leaps > s.gap_count:
        return NONE
    watch, full = rank_watch_in(w), s.rejected_size
    falls = watch.before - watch.behind
    ahead = watch.behind * watch.step / falls if falls > 0.0 else math.inf
    while ahead < _AHEAD * full and s.leaps < s.gap_count:
        size = ahead / s.gaps[s.leaps]
        s.leaps += 1
        if size <= _LARGEST * full:
            run.h = min(size, run.h_max)
            s.after_rejection = 1
            return LEAP
    s.leaps = s.gap_count + 1
    return TRIED if abs(h) != full else NONE

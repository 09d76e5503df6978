"""The check of the initial values, the same for all integrators: can the rates be evaluated, and do the
values lie on the manifold?

A start that misses the manifold, or needs pivoting, is not repaired here; `solve` then looks for consistent
values near it (:mod:`holonome.dynamics.start`) and begins again from these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from holonome.dynamics.kernels import dense_projection, kernels
from holonome.dynamics.parts import correction_in
from holonome.integrators import loop
from holonome.integrators.loop import run_state
from holonome.machine.calls import call_either, pointer, shift
from holonome.machine.context import OK, RAISED, named_context

_ROUNDING = 1e-13
"""Corrections of the initial values, relative to the largest, that count as rounding."""


@njit(cache=True)
def _is_rounding(run, correction, begin, end):
    largest, scale = 0.0, 0.0
    for i in range(begin, end):
        largest = max(largest, abs(correction[i]))
        scale = max(scale, abs(run.y[i]), run.atol[i])
    return largest <= _ROUNDING * scale


@njit(cache=True)
def is_consistent(run, out, context, n, size):
    """Whether the projection of the start, in ``out``, moved it by rounding only, and without pivoting."""
    correction = correction_in(out, size)
    close = _is_rounding(run, correction, 0, n) and _is_rounding(run, correction, n, size)
    return close and named_context(context).dense_calls == 0


@njit(cache=True)
def _check(memory_array, context_array, out_array, projection, pivoting, n, size, constrained):
    memory, context, out = pointer(memory_array), pointer(context_array), pointer(out_array)
    run, zero = run_state(memory), shift(out, len(out_array) - size - 2)
    status = call_either(projection, pivoting, run.t, run.y, zero, context, out)
    if status >= RAISED:
        return loop.USER_FUNCTION_FAILED
    total = 0.0
    for i in range(size):
        total += out[i] + run.y[i]
    if status != OK or total - total != 0.0:
        return loop.CANNOT_START
    return OK if not constrained or is_consistent(run, out, context, n, size) else loop.OFF_MANIFOLD


def check_start(
    system: Any, memory: np.ndarray, context: np.ndarray, trusted: bool
) -> tuple[int, np.ndarray]:
    """Whether a run may begin where its memory says: OK or a code, and the rates of the state."""
    compiled, size = kernels(system), system.state_size
    out = np.zeros(compiled.projection_size + size + 2)
    constrained = system.m > 0 and not trusted
    code = _check(
        memory, context, out, compiled.projection, dense_projection.address, system.n, size, constrained
    )
    return code, out[:size]
